//! Follows a stock cluster: a thread that asks its servers for the map whenever [`RefreshPolicy`] says so.
//!
//! It speaks to one server at a time over a short connection with deadlines, starts with those that answered before, and
//! falls back to the addresses of the configuration. CLUSTER NODES is asked first; where it is not allowed, CLUSTER SLOTS.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use resp::{SkipState, Value, skip_reply, write_command};

use super::{ClusterMap, parse_nodes, parse_slots};
use crate::backend::greeting::Credentials;

/// How long a server may take to be reached, and to answer.
const CONNECT_LIMIT: Duration = Duration::from_millis(500);
const ANSWER_LIMIT: Duration = Duration::from_secs(1);
/// Longest answer that is read: the text of thousands of servers.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Asks one server for the map.
///
/// # Errors
/// What went wrong, for the log.
pub fn ask(server: &str, credentials: &Credentials) -> io::Result<ClusterMap> {
    let mut asker = Asker::connect(resolve(server)?)?;
    asker.log_in(credentials)?;
    let nodes = asker.call(&[b"CLUSTER", b"NODES"])?;
    let read = match &nodes {
        Value::Error(_) => parse_slots(&asker.call(&[b"CLUSTER", b"SLOTS"])?),
        nodes => parse_nodes(&String::from_utf8_lossy(nodes.as_bytes().unwrap_or_default())),
    };
    let mut map = read.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
    let host = server.rsplit_once(':').map_or(server, |(host, _)| host);
    map.fill_host(host);
    Ok(map)
}

/// The address of `host:port`; of several, the first.
///
/// # Errors
/// When the name is not known.
pub fn resolve(server: &str) -> io::Result<SocketAddr> {
    let (host, port) = server.rsplit_once(':').ok_or_else(|| io::Error::other(format!("{server}: no port")))?;
    let port: u16 = port.parse().map_err(|_| io::Error::other(format!("{server}: bad port")))?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    (host, port).to_socket_addrs()?.next().ok_or_else(|| io::Error::other(format!("{server}: no address")))
}

/// A connection for a few questions.
pub(crate) struct Asker {
    stream: TcpStream,
    received: Vec<u8>,
    until: Instant,
}

impl Asker {
    /// Connects; all questions together may take [`ANSWER_LIMIT`].
    pub(crate) fn connect(address: SocketAddr) -> io::Result<Asker> {
        let stream = TcpStream::connect_timeout(&address, CONNECT_LIMIT)?;
        stream.set_nodelay(true)?;
        Ok(Asker { stream, received: Vec::new(), until: Instant::now() + ANSWER_LIMIT })
    }

    /// AUTH, if the proxy has a password for its servers.
    pub(crate) fn log_in(&mut self, credentials: &Credentials) -> io::Result<()> {
        let Credentials { user, password } = credentials;
        if password.is_empty() {
            return Ok(());
        }
        let words: &[&[u8]] = if user.is_empty() { &[b"AUTH", password] } else { &[b"AUTH", user, password] };
        match self.call(words)? {
            Value::Error(text) => Err(io::Error::other(String::from_utf8_lossy(&text).into_owned())),
            _ => Ok(()),
        }
    }

    /// One question and its answer.
    pub(crate) fn call(&mut self, words: &[&[u8]]) -> io::Result<Value> {
        let mut request = Vec::new();
        write_command(&mut request, words);
        self.stream.set_write_timeout(Some(ANSWER_LIMIT))?;
        self.stream.write_all(&request)?;
        let bad = |error: resp::ReplyError| io::Error::new(io::ErrorKind::InvalidData, error.to_string());
        let mut state = SkipState::new();
        loop {
            if let Some(skipped) = skip_reply(&self.received, &mut state).map_err(bad)? {
                let read = resp::parse_reply(&self.received).map_err(bad)?;
                self.received.drain(..skipped.consumed);
                return read.map(|(value, _)| value).ok_or_else(|| io::Error::other("a reply ended early"));
            }
            self.fill()?;
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() || self.received.len() > ANSWER_BYTES_MAX {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        let mut chunk = [0; 16 << 10];
        let got = self.stream.read(&mut chunk)?;
        if got == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.received.extend_from_slice(chunk.get(..got).unwrap_or(&[]));
        Ok(())
    }
}
