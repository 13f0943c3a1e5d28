//! One blocking connection to a server.
//!
//! Reads wait in `poll` for the socket and for Ctrl-C together, so that a person can leave a reply that does not come.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use net::tls;
use resp::{ReplyError, SkipState, Value, parse_reply, skip_reply, write_command};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt;

use crate::output::{os_text, text};
use crate::signals;

/// Redis: idle seconds before the kernel probes a connection.
const KEEPALIVE: Duration = Duration::from_secs(15);
/// Bytes asked of the socket at once.
const READ_SIZE: usize = 64 * 1024;

/// Why a connection is of no use any more.
#[derive(Debug)]
pub(crate) enum LinkError {
    /// The operating system says so.
    Io(io::Error),
    /// The server closed it.
    Closed,
    /// What came is no reply.
    Protocol(ReplyError),
    /// Ctrl-C while waiting.
    Interrupted,
}

/// What a server that expects a handshake sends when there is none.
const TLS_ALERT: [u8; 1] = [0x15];

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LinkError::Io(error) => f.write_str(&os_text(error)),
            LinkError::Closed => f.write_str("Server closed the connection"),
            LinkError::Protocol(ReplyError::Type(mark)) => {
                let mark = [*mark];
                write!(f, "Protocol error, got {} as reply type byte", text(&resp::quote_repr(&mark)))?;
                if mark == TLS_ALERT { f.write_str(" (a port for TLS? Then --tls is missing)") } else { Ok(()) }
            }
            LinkError::Protocol(error) => error.fmt(f),
            LinkError::Interrupted => f.write_str("Interrupted"),
        }
    }
}

impl From<io::Error> for LinkError {
    fn from(error: io::Error) -> Self {
        LinkError::Io(error)
    }
}

/// IP versions that may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Family {
    /// Both.
    #[default]
    Any,
    /// `-4`.
    V4,
    /// `-6`.
    V6,
}

enum Stream {
    Tcp(TcpStream),
    Secure(Box<tls::Stream>),
    Unix(UnixStream),
}

/// A connection and the bytes that were read from it but not used yet.
pub(crate) struct Connection {
    stream: Stream,
    inbox: Vec<u8>,
    /// Bytes of `inbox` that were used.
    used: usize,
    /// How far the reply behind `used` has been searched for its end.
    skip: SkipState,
    outbox: Vec<u8>,
}

/// Longest wait for each answer of a handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

impl Connection {
    /// Connects to a host, trying its addresses in turn.
    pub(crate) fn tcp(host: &str, port: u16, family: Family, timeout: Option<Duration>) -> io::Result<Self> {
        let mut failure = io::Error::new(io::ErrorKind::NotFound, "Name or service not known");
        let allowed = |address: &SocketAddr| match family {
            Family::Any => true,
            Family::V4 => address.is_ipv4(),
            Family::V6 => address.is_ipv6(),
        };
        for address in (host, port).to_socket_addrs()?.filter(allowed) {
            let connected = match timeout {
                Some(timeout) => TcpStream::connect_timeout(&address, timeout),
                None => TcpStream::connect(address),
            };
            match connected {
                Ok(stream) => {
                    keep_alive(&stream);
                    return Ok(Self::new(Stream::Tcp(stream)));
                }
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    /// Connects to a Unix socket.
    pub(crate) fn unix(path: &Path) -> io::Result<Self> {
        Ok(Self::new(Stream::Unix(UnixStream::connect(path)?)))
    }

    /// Makes a connection that nothing was sent on yet an encrypted one. No answer may take longer than the timeout, ten
    /// seconds if there is none: a server without TLS would be silent for ever.
    pub(crate) fn secure(mut self, connector: &tls::Connector, timeout: Option<Duration>) -> io::Result<Self> {
        self.stream = match self.stream {
            Stream::Tcp(socket) => {
                socket.set_read_timeout(Some(timeout.unwrap_or(HANDSHAKE_TIMEOUT)))?;
                let stream = tls::Stream::connect(socket, connector)?;
                stream.socket().set_read_timeout(None)?;
                Stream::Secure(Box::new(stream))
            }
            Stream::Unix(_) | Stream::Secure(_) => {
                return Err(io::Error::other("only a TCP connection can be encrypted"));
            }
        };
        Ok(self)
    }

    fn new(stream: Stream) -> Self {
        Connection { stream, inbox: Vec::new(), used: 0, skip: SkipState::new(), outbox: Vec::new() }
    }

    /// Puts a command behind those not sent yet.
    pub(crate) fn queue<A: AsRef<[u8]>>(&mut self, arguments: &[A]) {
        write_command(&mut self.outbox, arguments);
    }

    /// Sends what is queued.
    pub(crate) fn flush(&mut self) -> Result<(), LinkError> {
        let sent = self.stream.write_all(&self.outbox).and_then(|()| self.stream.flush());
        self.outbox.clear();
        Ok(sent?)
    }

    /// Sends a command and everything queued before it.
    pub(crate) fn send<A: AsRef<[u8]>>(&mut self, arguments: &[A]) -> Result<(), LinkError> {
        self.queue(arguments);
        self.flush()
    }

    /// Sends a command and waits for its reply. Messages that answer no command are passed over.
    pub(crate) fn call<A: AsRef<[u8]>>(&mut self, arguments: &[A]) -> Result<Value, LinkError> {
        self.send(arguments)?;
        self.reply()
    }

    /// The next reply. Messages that answer no command are passed over.
    pub(crate) fn reply(&mut self) -> Result<Value, LinkError> {
        loop {
            match plain(self.read()?) {
                Value::Push(_) => {}
                value => return Ok(value),
            }
        }
    }

    /// Waits for the next reply or message.
    pub(crate) fn read(&mut self) -> Result<Value, LinkError> {
        loop {
            if let Some(value) = self.buffered()? {
                return Ok(value);
            }
            self.wait()?;
            self.fill()?;
        }
    }

    /// The next reply or message if it has been read already.
    pub(crate) fn buffered(&mut self) -> Result<Option<Value>, LinkError> {
        let rest = self.inbox.get(self.used..).unwrap_or(&[]);
        if rest.is_empty() {
            return Ok(None);
        }
        if skip_reply(rest, &mut self.skip).map_err(LinkError::Protocol)?.is_none() {
            return Ok(None);
        }
        let Some((value, length)) = parse_reply(rest).map_err(LinkError::Protocol)? else {
            return Ok(None);
        };
        self.used += length;
        if self.used == self.inbox.len() {
            self.inbox.clear();
            self.used = 0;
        }
        Ok(Some(value))
    }

    /// Takes up to `most` bytes as they are; waits for at least one.
    pub(crate) fn take_raw(&mut self, most: usize) -> Result<Vec<u8>, LinkError> {
        while self.used == self.inbox.len() {
            self.wait()?;
            self.fill()?;
        }
        let rest = self.inbox.get(self.used..).unwrap_or(&[]);
        let taken = rest.get(..rest.len().min(most)).unwrap_or(&[]).to_vec();
        self.used += taken.len();
        Ok(taken)
    }

    /// Reads once what the socket has; waits for at least a byte.
    pub(crate) fn fill(&mut self) -> Result<(), LinkError> {
        if self.used > 0 {
            self.inbox.drain(..self.used);
            self.used = 0;
        }
        let start = self.inbox.len();
        self.inbox.resize(start + READ_SIZE, 0);
        let room = self.inbox.get_mut(start..).unwrap_or_default();
        // Of an encrypted connection something may come that is nothing to read: the caller waits again.
        let read = match &mut self.stream {
            Stream::Secure(stream) => stream.read_once(room),
            stream => stream.read(room).map(Some),
        };
        self.inbox.truncate(start + read.as_ref().ok().copied().flatten().unwrap_or(0));
        match read {
            Ok(Some(0)) => Err(LinkError::Closed),
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until the socket can be read.
    fn wait(&self) -> Result<(), LinkError> {
        let Some(signals) = signals::pipe() else {
            return Ok(());
        };
        loop {
            let mut fds = [PollFd::new(self, PollFlags::IN), PollFd::from_borrowed_fd(signals, PollFlags::IN)];
            match poll(&mut fds, None) {
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(LinkError::Io(error.into())),
                Ok(_) => {}
            }
            let [socket, signal] = fds;
            if !signal.revents().is_empty() && signals::take() {
                return Err(LinkError::Interrupted);
            }
            if !socket.revents().is_empty() {
                return Ok(());
            }
        }
    }

    /// Writes raw bytes, as many as the socket takes at once.
    pub(crate) fn write_some(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    /// Whether bytes that were written wait to be sent, by the next write.
    pub(crate) fn has_unsent(&self) -> bool {
        matches!(&self.stream, Stream::Secure(stream) if stream.has_unsent())
    }

    /// Whether reads and writes wait.
    pub(crate) fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        match &self.stream {
            Stream::Tcp(stream) => stream.set_nonblocking(nonblocking),
            Stream::Secure(stream) => stream.socket().set_nonblocking(nonblocking),
            Stream::Unix(stream) => stream.set_nonblocking(nonblocking),
        }
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.stream {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Secure(stream) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(bytes),
            Stream::Secure(stream) => stream.read(bytes),
            Stream::Unix(stream) => stream.read(bytes),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Secure(stream) => stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Secure(stream) => stream.flush(),
            Stream::Tcp(_) | Stream::Unix(_) => Ok(()),
        }
    }
}

/// The reply without the attributes around it.
pub(crate) fn plain(value: Value) -> Value {
    match value {
        Value::Attribute { value, .. } => plain(*value),
        value => value,
    }
}

/// A timeout for `poll`.
pub(crate) fn timespec(timeout: Duration) -> Timespec {
    Timespec { tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX), tv_nsec: timeout.subsec_nanos().into() }
}

/// A connection without these options works as well.
fn keep_alive(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    let _ = sockopt::set_socket_keepalive(stream, true);
    let _ = sockopt::set_tcp_keepidle(stream, KEEPALIVE);
    let _ = sockopt::set_tcp_keepintvl(stream, KEEPALIVE / 3);
    let _ = sockopt::set_tcp_keepcnt(stream, 3);
}
