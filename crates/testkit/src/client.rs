//! A blocking connection that speaks RESP2 and RESP3.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::reply::Progress;
use crate::{Reply, text};

/// How long a read or write may take before a test gives up, unless set otherwise.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(20);

/// A blocking connection to a server.
#[derive(Debug)]
pub struct Client {
    stream: Stream,
    received: Vec<u8>,
    consumed: usize,
}

#[derive(Debug)]
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Client {
    /// Connects to a port of 127.0.0.1.
    ///
    /// # Errors
    /// What connect(2) says.
    pub fn connect(port: u16) -> io::Result<Client> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        Client::new(Stream::Tcp(stream))
    }

    /// Connects to a unix socket.
    ///
    /// # Errors
    /// What connect(2) says.
    pub fn connect_unix(path: &Path) -> io::Result<Client> {
        Client::new(Stream::Unix(UnixStream::connect(path)?))
    }

    fn new(stream: Stream) -> io::Result<Client> {
        let client = Client { stream, received: Vec::new(), consumed: 0 };
        client.set_timeout(DEFAULT_TIMEOUT)?;
        Ok(client)
    }

    /// Limits each wait for the peer.
    ///
    /// # Errors
    /// When `limit` is zero.
    pub fn set_timeout(&self, limit: Duration) -> io::Result<()> {
        match &self.stream {
            Stream::Tcp(stream) => {
                stream.set_read_timeout(Some(limit))?;
                stream.set_write_timeout(Some(limit))
            }
            Stream::Unix(stream) => {
                stream.set_read_timeout(Some(limit))?;
                stream.set_write_timeout(Some(limit))
            }
        }
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// When the peer closed or takes nothing for the time limit.
    pub fn send_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.stream {
            Stream::Tcp(stream) => stream.write_all(bytes),
            Stream::Unix(stream) => stream.write_all(bytes),
        }
    }

    /// Says that nothing more will be sent; replies can still be read.
    ///
    /// # Errors
    /// When the peer closed.
    pub fn finish_sending(&self) -> io::Result<()> {
        match &self.stream {
            Stream::Tcp(stream) => stream.shutdown(std::net::Shutdown::Write),
            Stream::Unix(stream) => stream.shutdown(std::net::Shutdown::Write),
        }
    }

    /// Sends a command without waiting for the reply.
    ///
    /// # Errors
    /// As [`Client::send_raw`].
    pub fn send<A: AsRef<[u8]>>(&mut self, args: &[A]) -> io::Result<()> {
        let mut bytes = Vec::new();
        text::encode(args, &mut bytes);
        self.send_raw(&bytes)
    }

    /// Reads the next reply (or push).
    ///
    /// # Errors
    /// `UnexpectedEof` when the peer closed, `WouldBlock` when the time limit passed,
    /// `InvalidData` when the bytes are not RESP.
    pub fn read(&mut self) -> io::Result<Reply> {
        let mut progress = Progress::default();
        loop {
            let pending = self.received.get(self.consumed..).unwrap_or(&[]);
            // This spares parsing a reply of megabytes from its start after each read.
            if progress.is_whole(pending)
                && let Some((reply, length)) = Reply::parse(pending)?
            {
                self.consumed += length;
                if self.consumed == self.received.len() {
                    self.received.clear();
                    self.consumed = 0;
                }
                return Ok(reply);
            }
            if self.fill()? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    fn fill(&mut self) -> io::Result<usize> {
        if self.consumed > 0 {
            self.received.drain(..self.consumed);
            self.consumed = 0;
        }
        let mut chunk = vec![0; 64 * 1024];
        let count = self.read_some(&mut chunk)?;
        self.received.extend_from_slice(chunk.get(..count).unwrap_or(&[]));
        Ok(count)
    }

    fn read_some(&mut self, chunk: &mut [u8]) -> io::Result<usize> {
        match &mut self.stream {
            Stream::Tcp(stream) => stream.read(chunk),
            Stream::Unix(stream) => stream.read(chunk),
        }
    }

    /// Everything the peer still sends until it closes, or until it has been silent for `quiet`.
    /// The flag says whether it closed.
    pub fn read_to_end(&mut self, quiet: Duration) -> (Vec<u8>, bool) {
        let mut bytes = self.received.split_off(self.consumed);
        self.received.clear();
        self.consumed = 0;
        let _ = self.set_timeout(quiet);
        let mut chunk = vec![0; 64 * 1024];
        let closed = loop {
            match self.read_some(&mut chunk) {
                Ok(0) => break true,
                Ok(count) => bytes.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => break true,
                Err(_) => break false,
            }
        };
        let _ = self.set_timeout(DEFAULT_TIMEOUT);
        (bytes, closed)
    }

    /// Sends a command and returns its reply.
    ///
    /// # Errors
    /// As [`Client::send_raw`] and [`Client::read`].
    pub fn call<A: AsRef<[u8]>>(&mut self, args: &[A]) -> io::Result<Reply> {
        self.send(args)?;
        self.read()
    }

    /// Sends all commands at once and returns one reply for each.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub fn pipeline<C: AsRef<[A]>, A: AsRef<[u8]>>(&mut self, commands: &[C]) -> io::Result<Vec<Reply>> {
        let mut bytes = Vec::new();
        for command in commands {
            text::encode(command.as_ref(), &mut bytes);
        }
        self.send_raw(&bytes)?;
        commands.iter().map(|_| self.read()).collect()
    }

    /// Runs one command written as text (see [`text::words`]).
    ///
    /// # Panics
    /// When the connection fails.
    pub fn run(&mut self, command: &str) -> Reply {
        match self.call(&text::words(command)) {
            Ok(reply) => reply,
            Err(error) => panic!("{command}: {error}"),
        }
    }

    /// Runs the commands of a text, one after another, and compares the text form of the replies
    /// (see [`crate::reply`]): `check("SET a 1; GET a; INCR b", "+OK; 1; :1")`. An expected
    /// reply that ends in `...` is compared up to there.
    ///
    /// # Panics
    /// When a reply differs or the connection fails.
    #[track_caller]
    pub fn check(&mut self, commands: &str, replies: &str) {
        let expected = text::split(replies);
        let commands = text::split(commands);
        let mut got = Vec::new();
        for command in &commands {
            got.push(self.run(command).to_string());
        }
        let fits = |got: &String, expected: &&str| match expected.strip_suffix("...") {
            Some(start) => got.starts_with(start),
            None => got == expected,
        };
        let equal = got.len() == expected.len() && got.iter().zip(&expected).all(|(g, e)| fits(g, e));
        if equal {
            return;
        }
        let mut report = String::from("replies differ:\n");
        for (index, command) in commands.iter().enumerate() {
            let want = expected.get(index).copied().unwrap_or("(nothing was expected)");
            let got = &got[index];
            let mark = if expected.get(index).is_some_and(|e| fits(got, e)) { ' ' } else { '!' };
            report.push_str(&format!("{mark} {command}\n    got      {got}\n    expected {want}\n"));
        }
        panic!("{report}");
    }

    /// Switches the protocol version.
    ///
    /// # Panics
    /// When the server refuses.
    pub fn hello(&mut self, version: u8) -> Reply {
        let reply = self.run(&format!("HELLO {version}"));
        assert!(!reply.is_error(), "HELLO {version}: {reply}");
        reply
    }

    /// One field of INFO, from all sections.
    pub fn info(&mut self, field: &str) -> Option<String> {
        let text = self.call(&["INFO", "all"]).ok()?.text();
        info_field(&text, field)
    }

    /// Waits until the peer closes; true when it did within `limit`.
    pub fn closes_within(&mut self, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        while Instant::now() < end {
            let (_, closed) = self.read_to_end(Duration::from_millis(50));
            if closed {
                return true;
            }
        }
        false
    }
}

/// One field of the text that INFO returns.
pub fn info_field(text: &str, field: &str) -> Option<String> {
    text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).map(|value| value.trim_end().to_owned())
}
