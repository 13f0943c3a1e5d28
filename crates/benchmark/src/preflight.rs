//! The blocking connection before the load: is the server there, does it let us in, what are its
//! persistence settings, which primaries has its cluster.

use std::{
    io::{self, Read, Write},
    net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs},
    os::unix::net::UnixStream,
    path::PathBuf,
    time::Duration,
};

use resp::{SkipState, Value, parse_reply, skip_reply};

use crate::{
    options::Options,
    places::{self, SpareSources},
    report::ServerConfig,
    sys,
    template::encode,
};

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    /// An address and a port.
    Tcp(SocketAddr),
    /// A socket file.
    Unix(PathBuf),
}

/// A server to talk to, as it is named in messages and as it was reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Server {
    /// `host:port` or the path of the socket.
    pub(crate) name: String,
    /// Where it answered.
    pub(crate) address: Address,
}

/// The reason why a run ends before it starts: a text for stderr, with its line ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure(pub String);

/// A blocking connection.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: Stream,
    input: Vec<u8>,
}

#[derive(Debug)]
enum Stream {
    Tcp(TcpStream),
    Secure(Box<net::tls::Stream>),
    Unix(UnixStream),
}

impl Connection {
    /// Connects to `host:port`, or to the socket of the options, and authenticates.
    pub(crate) fn open(options: &Options, endpoint: Option<(&str, u16)>) -> Result<(Connection, Server), Failure> {
        let name = match endpoint {
            Some((host, port)) => format!("{host}:{port}"),
            None => options.server_name(),
        };
        let opened = match (&options.socket, endpoint) {
            (Some(path), None) => {
                UnixStream::connect(path).map(|stream| (Stream::Unix(stream), Address::Unix(path.clone())))
            }
            (_, Some((host, port))) => connect_tcp(host, port),
            (None, None) => connect_tcp(&options.host, options.port),
        };
        let (stream, address) =
            opened.map_err(|error| Failure(format!("Could not connect to Redis at {name}: {}\n", reason(&error))))?;
        let stream = match (stream, &options.connector) {
            (Stream::Tcp(socket), Some(connector)) => {
                let secured = secure(socket, connector)
                    .map_err(|error| Failure(format!("Could not negotiate a TLS connection: {}\n", reason(&error))))?;
                Stream::Secure(Box::new(secured))
            }
            (stream, _) => stream,
        };
        let mut connection = Connection { stream, input: Vec::new() };
        if let Some(password) = &options.password {
            let mut words: Vec<&[u8]> = vec![b"AUTH"];
            words.extend(options.user.as_deref());
            words.push(password);
            match connection.ask(&words) {
                Ok(Value::Error(text)) => {
                    let text = String::from_utf8_lossy(&text);
                    return Err(Failure(format!("Node {name} replied with error:\n{text}\n")));
                }
                Ok(_) => {}
                Err(_) => {
                    return Err(Failure(format!("ERROR: failed to fetch reply from {name}\n")));
                }
            }
        }
        Ok((connection, Server { name, address }))
    }

    /// Connects to a server that has answered before, and authenticates.
    pub(crate) fn to(options: &Options, server: &Server) -> Result<Connection, Failure> {
        match server.name.rsplit_once(':') {
            Some((host, port)) if options.socket.is_none() => {
                let port = port.parse().map_err(|_| Failure(format!("{} has no port\n", server.name)))?;
                Connection::open(options, Some((host.trim_matches(['[', ']']), port))).map(|(connection, _)| connection)
            }
            _ => Connection::open(options, None).map(|(connection, _)| connection),
        }
    }

    /// Sends one command and waits for its reply.
    pub(crate) fn ask<W: AsRef<[u8]>>(&mut self, words: &[W]) -> io::Result<Value> {
        let request = encode(words);
        match &mut self.stream {
            Stream::Tcp(stream) => stream.write_all(&request)?,
            Stream::Secure(stream) => stream.write_all(&request).and_then(|()| stream.flush())?,
            Stream::Unix(stream) => stream.write_all(&request)?,
        }
        self.reply()
    }

    /// Waits for a reply at most so long from now on.
    pub(crate) fn set_patience(&self, time: Duration) -> io::Result<()> {
        match &self.stream {
            Stream::Tcp(stream) => stream.set_read_timeout(Some(time)),
            Stream::Secure(stream) => stream.socket().set_read_timeout(Some(time)),
            Stream::Unix(stream) => stream.set_read_timeout(Some(time)),
        }
    }

    /// The next reply, or nothing when none comes in time.
    pub(crate) fn next_reply(&mut self) -> io::Result<Option<Value>> {
        match self.reply() {
            Ok(value) => Ok(Some(value)),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn reply(&mut self) -> io::Result<Value> {
        let bad = |error: resp::ReplyError| io::Error::new(io::ErrorKind::InvalidData, error);
        let mut state = SkipState::new();
        loop {
            if let Some(skipped) = skip_reply(&self.input, &mut state).map_err(bad)? {
                let parsed = parse_reply(&self.input).map_err(bad)?;
                self.input.drain(..skipped.consumed);
                return parsed.map(|(value, _)| value).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData));
            }
            let mut chunk = [0_u8; 16 * 1024];
            let read = match &mut self.stream {
                Stream::Tcp(stream) => stream.read(&mut chunk)?,
                Stream::Secure(stream) => stream.read(&mut chunk)?,
                Stream::Unix(stream) => stream.read(&mut chunk)?,
            };
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.input.extend_from_slice(&chunk[..read]);
        }
    }

    /// Persistence settings; `None` when the server does not tell.
    pub(crate) fn config(&mut self, server: &Server) -> Result<Option<ServerConfig>, Failure> {
        let mut values = Vec::new();
        for name in ["save", "appendonly"] {
            match self.ask(&["CONFIG", "GET", name]) {
                Ok(Value::Error(text)) if text.starts_with(b"NOAUTH") => {
                    let text = String::from_utf8_lossy(&text);
                    let name = &server.name;
                    return Err(Failure(format!("Node {name} replied with error:\n{text}\n")));
                }
                Ok(Value::Array(elements)) if elements.len() >= 2 => {
                    let value = elements[1].as_bytes().unwrap_or_default();
                    values.push(String::from_utf8_lossy(value).into_owned());
                }
                _ => return Ok(None),
            }
        }
        let mut values = values.into_iter();
        let (save, appendonly) = (values.next(), values.next());
        Ok(save.zip(appendonly).map(|(save, appendonly)| ServerConfig { save, appendonly }))
    }
}

/// What the system says about a failed call, without Rust's additions.
pub(crate) fn reason(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return "Server closed the connection".to_owned();
    }
    let text = error.to_string();
    let text = text.strip_prefix("failed to lookup address information: ").unwrap_or(&text);
    match text.rfind(" (os error ") {
        Some(at) => text[..at].to_owned(),
        None => text.to_owned(),
    }
}

/// Tries the addresses of `host` in turn, IPv4 first.
fn connect_tcp(host: &str, port: u16) -> io::Result<(Stream, Address)> {
    let mut addresses: Vec<SocketAddr> = (host, port).to_socket_addrs()?.collect();
    addresses.sort_by_key(SocketAddr::is_ipv6);
    let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses {
        let connected = match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
                SpareSources::of(&address).find_map(|source| connect_from(source, address)).ok_or(error)
            }
            connected => connected,
        };
        match connected {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(CONNECT_TIMEOUT))?;
                return Ok((Stream::Tcp(stream), Address::Tcp(address)));
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// A connection from another local address, where that has a free port.
fn connect_from(source: IpAddr, address: SocketAddr) -> Option<TcpStream> {
    let socket = sys::start_connect_from(source, places::port_range(), address).ok()?;
    let stream = TcpStream::from(socket);
    // On loopback the connection stands at once, or never.
    stream.set_nonblocking(false).ok()?;
    stream.peer_addr().is_ok().then_some(stream)
}

/// Shakes hands, with less patience than for a connection: a server without TLS is silent for ever.
fn secure(socket: TcpStream, connector: &net::tls::Connector) -> io::Result<net::tls::Stream> {
    socket.set_read_timeout(Some(HANDSHAKE_TIMEOUT))?;
    let secured = net::tls::Stream::connect(socket, connector)?;
    secured.socket().set_read_timeout(Some(CONNECT_TIMEOUT))?;
    Ok(secured)
}

/// Longest wait for each answer of a handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest wait for the connection and for each reply before the test. The kernel's own limit is
/// over two minutes; nobody waits that long for a typing mistake.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn reasons_are_those_of_the_system() {
        assert_eq!(reason(&io::Error::from_raw_os_error(111)), "Connection refused");
        assert_eq!(reason(&io::ErrorKind::UnexpectedEof.into()), "Server closed the connection");
    }

    #[test]
    fn a_refused_connection_names_the_server() {
        let options = Options { port: 1, ..Options::default() };
        let failure = Connection::open(&options, None).map(|_| ()).unwrap_err();
        let expected = "Could not connect to Redis at 127.0.0.1:1: Connection refused\n";
        assert_eq!(failure, Failure(expected.to_owned()));
    }
}
