//! The connection from a move's source to its target: requests and replies, one after the other.

use crate::config::Config;
use crate::process::error_text;
use crate::shared::Shared;
use net::tls::Stream;
use resp::{Value, parse_reply, write_command};
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// How often a thread that waits for the target looks whether it is to go on.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// How long a connection may take to come about.
const CONNECT_WITHIN: Duration = Duration::from_secs(3);
/// How long a request may take to be written, however late it is: cut in the middle it would end the connection.
const WRITE_WITHIN: Duration = Duration::from_secs(10);
/// Bytes read at once.
const READ_BYTES: usize = 16 << 10;

enum Line {
    Plain(TcpStream),
    /// With `tls-cluster`.
    Secure(Box<Stream>),
}

/// Why there is no reply.
#[derive(Debug)]
pub(crate) enum Fault {
    /// It has not come yet: it is waited for before the next request.
    Late,
    /// The connection is of no use any more.
    Broken(String),
}

/// See the module.
pub(crate) struct Wire {
    line: Line,
    input: Vec<u8>,
    /// Requests whose replies were not waited for.
    late: usize,
}

impl Wire {
    /// Connects to `host:port` and logs in, as a replica would.
    ///
    /// # Errors
    /// What came of it instead.
    pub(crate) fn connect(shared: &Shared, config: &Config, target: &str) -> Result<Wire, String> {
        let socket = open(target).map_err(|error| format!("connecting to {target}: {}", error_text(&error)))?;
        let line = if config.tls_cluster {
            let connector = shared.secure.connector().ok_or("TLS is not configured")?;
            let secured = socket
                .set_read_timeout(Some(CONNECT_WITHIN))
                .and_then(|()| Stream::connect(socket, &connector))
                .and_then(|stream| stream.socket().set_read_timeout(Some(LOOK_EVERY)).map(|()| stream));
            Line::Secure(Box::new(secured.map_err(|error| format!("connecting to {target}: {error}"))?))
        } else {
            Line::Plain(socket)
        };
        let mut wire = Wire { line, input: Vec::new(), late: 0 };
        if !config.masterauth.is_empty() {
            let mut words: Vec<&[u8]> = vec![b"AUTH"];
            if !config.masteruser.is_empty() {
                words.push(&config.masteruser);
            }
            words.push(&config.masterauth);
            let reply = wire.ask(&words, Instant::now() + CONNECT_WITHIN, || true).map_err(|fault| fault.text())?;
            if reply.is_error() {
                return Err(format!("the target does not let this server in: {}", text_of(&reply)));
            }
        }
        Ok(wire)
    }

    /// Sends a request and waits for its reply, as long as `goes_on` says so.
    ///
    /// # Errors
    /// The connection failed, or time was over.
    pub(crate) fn ask(&mut self, words: &[&[u8]], until: Instant, goes_on: impl Fn() -> bool) -> Result<Value, Fault> {
        while self.late > 0 {
            let reply = self.reply(until, &goes_on)?;
            self.late -= 1;
            if reply.is_error() {
                return Err(Fault::Broken(format!("the target could not follow: {}", text_of(&reply))));
            }
        }
        let mut request = Vec::new();
        write_command(&mut request, words);
        self.write(&request, until.max(Instant::now() + WRITE_WITHIN), &goes_on).map_err(Fault::Broken)?;
        let reply = self.reply(until, &goes_on);
        if matches!(reply, Err(Fault::Late)) {
            self.late += 1;
        }
        reply
    }

    fn reply(&mut self, until: Instant, goes_on: &impl Fn() -> bool) -> Result<Value, Fault> {
        loop {
            match parse_reply(&self.input) {
                Ok(Some((value, used))) => {
                    self.input.drain(..used);
                    return Ok(value);
                }
                Ok(None) => {}
                Err(error) => return Err(Fault::Broken(format!("the target answers nonsense: {error:?}"))),
            }
            if !goes_on() {
                return Err(Fault::Broken("given up".to_owned()));
            }
            if Instant::now() >= until {
                return Err(Fault::Late);
            }
            self.read_some().map_err(Fault::Broken)?;
        }
    }

    fn read_some(&mut self) -> Result<(), String> {
        let before = self.input.len();
        self.input.resize(before + READ_BYTES, 0);
        let room = self.input.get_mut(before..).unwrap_or_default();
        let read = match &mut self.line {
            Line::Plain(socket) => socket.read(room),
            Line::Secure(stream) => stream.read(room),
        };
        self.input.truncate(before + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => Err("the target closed the connection".to_owned()),
            Ok(_) => Ok(()),
            Err(error) if is_pause(&error) => Ok(()),
            Err(error) => Err(format!("reading from the target: {}", error_text(&error))),
        }
    }

    fn write(&mut self, mut bytes: &[u8], until: Instant, goes_on: &impl Fn() -> bool) -> Result<(), String> {
        while !bytes.is_empty() {
            let wrote = match &mut self.line {
                Line::Plain(socket) => socket.write(bytes),
                Line::Secure(stream) => stream.write(bytes),
            };
            match wrote {
                Ok(0) => return Err("the target closed the connection".to_owned()),
                Ok(taken) => bytes = bytes.get(taken..).unwrap_or_default(),
                Err(error) if is_pause(&error) => {}
                Err(error) => return Err(format!("writing to the target: {}", error_text(&error))),
            }
            if !goes_on() {
                return Err("given up".to_owned());
            }
            if Instant::now() >= until {
                return Err("the target did not take the stream in time".to_owned());
            }
        }
        if let Line::Secure(stream) = &mut self.line {
            stream.flush().map_err(|error| format!("writing to the target: {}", error_text(&error)))?;
        }
        Ok(())
    }
}

impl Fault {
    /// What it is, for people.
    pub(crate) fn text(self) -> String {
        match self {
            Fault::Late => "the target did not answer in time".to_owned(),
            Fault::Broken(text) => text,
        }
    }
}

/// What a reply says.
pub(crate) fn text_of(reply: &Value) -> String {
    match reply {
        Value::Error(text) | Value::Simple(text) => String::from_utf8_lossy(text).into_owned(),
        other => format!("{other:?}"),
    }
}

fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

fn open(target: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::other("the host name has no address");
    for address in target.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_WITHIN) {
            Ok(socket) => {
                socket.set_nodelay(true)?;
                socket.set_read_timeout(Some(LOOK_EVERY))?;
                socket.set_write_timeout(Some(LOOK_EVERY))?;
                return Ok(socket);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}
