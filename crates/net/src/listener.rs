//! Addresses, listening sockets and the options of accepted ones.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::net::{SocketAddrAny, getsockname};
use socket2::{Domain, SockAddr, SockRef, Socket, TcpKeepalive, Type};

use crate::tls::Acceptor;

/// Where to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A TCP address.
    Tcp(SocketAddr),
    /// A Unix socket's path.
    Unix(PathBuf),
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Address::Tcp(address)
    }
}

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A TCP address.
    Tcp(SocketAddr),
    /// A Unix socket: clients have no address there.
    Unix,
}

impl Peer {
    pub(crate) fn from_any(address: Option<SocketAddrAny>) -> Peer {
        match address.and_then(|address| SocketAddr::try_from(address).ok()) {
            Some(address) => Peer::Tcp(address),
            None => Peer::Unix,
        }
    }

    /// The TCP address, if it is one.
    pub fn tcp(&self) -> Option<SocketAddr> {
        match self {
            Peer::Tcp(address) => Some(*address),
            Peer::Unix => None,
        }
    }
}

/// Options for TCP connections, accepted or made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketOptions {
    /// Sends small packets at once (`TCP_NODELAY`).
    pub nodelay: bool,
    /// Idle time before the first keep-alive probe; then three probes a third of it apart (`tcp-keepalive`). `None` for
    /// no probes.
    pub keepalive: Option<Duration>,
    /// Congestion control of our own choice (`TCP_CONGESTION`), where the kernel has it. `None` for the system's.
    pub congestion: Option<&'static str>,
}

impl Default for SocketOptions {
    /// Redis' defaults: no delay, keep-alive after 300 seconds.
    fn default() -> Self {
        SocketOptions { nodelay: true, keepalive: Some(Duration::from_secs(300)), congestion: None }
    }
}

impl SocketOptions {
    /// Sets the options; a connection without them still works, so failures are ignored.
    pub(crate) fn apply(&self, socket: BorrowedFd<'_>) {
        let socket = SockRef::from(&socket);
        let _ = socket.set_tcp_nodelay(self.nodelay);
        if let Some(name) = self.congestion {
            let _ = socket.set_tcp_congestion(name.as_bytes());
        }
        let Some(idle) = self.keepalive else {
            // A listener may have had it before.
            let _ = socket.set_keepalive(false);
            return;
        };
        let interval = (idle / 3).max(Duration::from_secs(1));
        let keepalive = TcpKeepalive::new().with_time(idle).with_interval(interval).with_retries(3);
        let _ = socket.set_tcp_keepalive(&keepalive);
    }
}

/// A listening socket, ready to be given to a loop.
#[derive(Debug)]
pub struct Listener {
    pub(crate) socket: OwnedFd,
    pub(crate) is_tcp: bool,
    /// Its connections are encrypted.
    pub(crate) acceptor: Option<Arc<Acceptor>>,
}

impl Listener {
    /// Listens on a TCP address; port 0 takes a free one. With `reuseport` every loop can have a listener of its own on
    /// the same address, and the kernel deals connections out. An IPv6 address takes IPv6 clients only.
    ///
    /// # Errors
    /// When the address cannot be bound.
    pub fn tcp(address: SocketAddr, backlog: i32, reuseport: bool) -> io::Result<Listener> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM.nonblocking(), None)?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        socket.set_reuse_address(true)?;
        if reuseport {
            socket.set_reuse_port(true)?;
        }
        socket.bind(&address.into())?;
        socket.listen(backlog)?;
        Ok(Listener { socket: socket.into(), is_tcp: true, acceptor: None })
    }

    /// Listens on a Unix socket, in place of a file that is in the way; `mode` are the permissions of its file
    /// (`unixsocketperm`). The file stays when the listener is dropped.
    ///
    /// # Errors
    /// When the path cannot be bound, or its permissions not be set.
    pub fn unix(path: &Path, backlog: i32, mode: Option<u32>) -> io::Result<Listener> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let socket = Socket::new(Domain::UNIX, Type::STREAM.nonblocking(), None)?;
        socket.bind(&SockAddr::unix(path)?)?;
        socket.listen(backlog)?;
        if let Some(mode) = mode {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
        }
        Ok(Listener { socket: socket.into(), is_tcp: false, acceptor: None })
    }

    /// Makes its connections encrypted.
    #[must_use]
    pub fn secured_by(mut self, acceptor: Arc<Acceptor>) -> Listener {
        self.acceptor = Some(acceptor);
        self
    }

    /// The address it listens on.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn local_addr(&self) -> io::Result<Peer> {
        Ok(Peer::from_any(Some(getsockname(self.socket.as_fd())?)))
    }
}

/// A socket that is on its way to `address`.
pub(crate) fn start_connect(address: &Address) -> io::Result<OwnedFd> {
    let (domain, address) = match address {
        Address::Tcp(address) => (Domain::for_address(*address), SockAddr::from(*address)),
        Address::Unix(path) => (Domain::UNIX, SockAddr::unix(path)?),
    };
    let socket = Socket::new(domain, Type::STREAM.nonblocking(), None)?;
    match socket.connect(&address) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(socket.into()),
    }
}
