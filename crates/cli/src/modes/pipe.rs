//! `--pipe`: sends the protocol that standard input holds, as fast as the server takes it, and counts replies.
//!
//! Sending and reading go on at the same time, or both ends would fill their buffers and wait for each other. At the
//! end of input an ECHO of random bytes is sent; its reply says that all others have come.

use std::io::{self, Read};
use std::time::{Duration, Instant};

use resp::Value;
use rustix::event::{PollFd, PollFlags, poll};

use crate::connection::{Connection, LinkError, plain, timespec};
use crate::output::{Exit, Outcome, complain, fail, os_text, print, print_line, text};
use crate::session::Session;

const CHUNK: usize = 64 * 1024;
const MAGIC_SIZE: usize = 20;

struct Transfer {
    /// Bytes read but not sent.
    chunk: Vec<u8>,
    sent: usize,
    input_ended: bool,
    magic: Vec<u8>,
    errors: u64,
    replies: u64,
    last_reply: Instant,
    done: bool,
}

/// Runs to the end of input and of the replies.
pub(super) fn run(session: &mut Session) -> Outcome<()> {
    session.connect_or_exit()?;
    let timeout = match session.options.pipe_timeout {
        0 => None,
        seconds => Some(Duration::from_secs(seconds)),
    };
    let Ok(connection) = session.connection() else {
        return Err(Exit(1));
    };
    if let Err(error) = connection.set_nonblocking(true) {
        return fail(format_args!("Can't set the socket in non blocking mode: {}", os_text(&error)));
    }
    let mut transfer = Transfer {
        chunk: Vec::new(),
        sent: 0,
        input_ended: false,
        magic: (0..MAGIC_SIZE).map(|_| fastrand::u8(b'a'..=b'z')).collect(),
        errors: 0,
        replies: 0,
        last_reply: Instant::now(),
        done: false,
    };
    while !transfer.done {
        let (readable, writable) = wait(connection, transfer.wants_to_send() || connection.has_unsent())?;
        if readable {
            transfer.receive(connection)?;
        }
        if writable {
            transfer.send(connection)?;
        }
        if let Some(timeout) = timeout.filter(|_| transfer.input_ended && !transfer.done)
            && transfer.last_reply.elapsed() > timeout
        {
            complain(format_args!("No replies for {} seconds: exiting.", timeout.as_secs()));
            transfer.errors += 1;
            break;
        }
    }
    print_line(format_args!("errors: {}, replies: {}", transfer.errors, transfer.replies))?;
    if transfer.errors > 0 { Err(Exit(1)) } else { Ok(()) }
}

impl Transfer {
    fn wants_to_send(&self) -> bool {
        self.sent < self.chunk.len() || !self.input_ended
    }

    fn receive(&mut self, connection: &mut Connection) -> Outcome<()> {
        let filled = connection.fill();
        loop {
            match connection.buffered() {
                Ok(Some(value)) => self.count(&plain(value))?,
                Ok(None) => break,
                Err(_) => return fail(format_args!("Error reading replies from server")),
            }
        }
        match filled {
            Ok(()) => Ok(()),
            Err(LinkError::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(_) if self.done => Ok(()),
            Err(error) => fail(format_args!("Error reading replies from server: {error}")),
        }
    }

    fn count(&mut self, value: &Value) -> Outcome<()> {
        self.last_reply = Instant::now();
        match value {
            Value::Error(reason) => {
                complain(format_args!("{}", text(reason)));
                self.errors += 1;
            }
            Value::Bulk(bytes) if self.input_ended && *bytes == self.magic => {
                self.done = true;
                return print("Last reply received from server.\n");
            }
            _ => {}
        }
        self.replies += 1;
        Ok(())
    }

    fn send(&mut self, connection: &mut Connection) -> Outcome<()> {
        if self.sent == self.chunk.len() && !self.input_ended {
            self.load()?;
        }
        let rest = self.chunk.get(self.sent..).unwrap_or_default();
        match connection.write_some(rest) {
            Ok(count) => self.sent += count,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) => return fail(format_args!("Error writing to the server: {}", os_text(&error))),
        }
        Ok(())
    }

    fn load(&mut self) -> Outcome<()> {
        self.sent = 0;
        self.chunk.resize(CHUNK, 0);
        match io::stdin().lock().read(&mut self.chunk) {
            Ok(0) => {
                self.input_ended = true;
                self.last_reply = Instant::now();
                // The line end in front closes what input may have left open.
                self.chunk = b"\r\n".to_vec();
                let echo: [&[u8]; 2] = [b"ECHO", &self.magic];
                resp::write_command(&mut self.chunk, echo);
                print("All data transferred. Waiting for the last reply...\n")
            }
            Ok(count) => {
                self.chunk.truncate(count);
                Ok(())
            }
            Err(error) => fail(format_args!("Error reading from stdin: {}", os_text(&error))),
        }
    }
}

/// Whether the server has sent something, and whether it takes something; waits a second at most.
fn wait(connection: &Connection, sending: bool) -> Outcome<(bool, bool)> {
    let wanted = if sending { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
    let mut fds = [PollFd::new(connection, wanted)];
    match poll(&mut fds, Some(&timespec(Duration::from_secs(1)))) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return fail(format_args!("Error: {}", os_text(&error.into()))),
    }
    let [fd] = fds;
    let ready = fd.revents();
    let broken = ready.intersects(PollFlags::ERR | PollFlags::HUP);
    Ok((broken || ready.contains(PollFlags::IN), ready.contains(PollFlags::OUT)))
}
