//! Where to listen: the addresses of `bind`, resolved, and what a failure to open one means.
//!
//! This only makes the list; sockets are opened by the network layer, one or several per address.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};

use super::error_text;
use super::log::Level;
use crate::config::Config;

/// One address to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindAddress {
    /// The address as written, without the leading `-`; shown in messages.
    pub host: String,
    /// The resolved address. An IPv6 one must be opened for IPv6 only, so that `*` and `::*` can stand
    /// side by side.
    pub address: SocketAddr,
    /// Whether it may be missing on this machine.
    pub is_optional: bool,
}

/// A listener could not be opened and the server cannot start. The reason has been logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CannotListen;

/// The addresses of `bind` with this port; none if the port is 0 or `bind` is empty.
///
/// A host name is resolved, to IPv4 unless it has a colon. One that cannot be resolved is an error,
/// as in Redis also when it is optional.
pub fn addresses(config: &Config, port: u16) -> Result<Vec<BindAddress>, CannotListen> {
    let mut found = Vec::new();
    if port == 0 {
        return Ok(found);
    }
    for text in &config.bind {
        let text = String::from_utf8_lossy(text);
        let (host, is_optional) = match text.strip_prefix('-') {
            Some(host) => (host, true),
            None => (&*text, false),
        };
        match resolve(host, port) {
            Ok(address) => found.push(BindAddress { host: host.to_owned(), address, is_optional }),
            Err(message) => {
                log_failure(host, port, &message);
                return Err(CannotListen);
            }
        }
    }
    Ok(found)
}

fn resolve(host: &str, port: u16) -> Result<SocketAddr, String> {
    let wants_v6 = host.contains(':');
    let any: Option<IpAddr> = match host {
        "*" => Some(Ipv4Addr::UNSPECIFIED.into()),
        "::*" => Some(Ipv6Addr::UNSPECIFIED.into()),
        _ => host.parse().ok(),
    };
    if let Some(address) = any {
        return Ok(SocketAddr::new(address, port));
    }
    (host, port)
        .to_socket_addrs()
        .ok()
        .and_then(|mut addresses| addresses.find(|address| address.is_ipv6() == wants_v6))
        .ok_or_else(|| "Name or service not known".to_owned())
}

/// Judges a failure to open a listener and logs it. `Ok`: go on without this address, because it is
/// optional and missing, or the machine lacks the protocol. `Err`: the server cannot start, or CONFIG
/// SET cannot be obeyed.
pub fn judge_failure(address: &BindAddress, error: &io::Error) -> Result<(), CannotListen> {
    log_failure(&address.host, address.address.port(), &format!("bind: {}", error_text(error)));
    let number = error.raw_os_error().unwrap_or(0);
    let is_missing = number == libc::EADDRNOTAVAIL && address.is_optional;
    let lacks_protocol =
        [libc::ENOPROTOOPT, libc::EPROTONOSUPPORT, libc::ESOCKTNOSUPPORT, libc::EPFNOSUPPORT, libc::EAFNOSUPPORT]
            .contains(&number);
    if is_missing || lacks_protocol { Ok(()) } else { Err(CannotListen) }
}

fn log_failure(host: &str, port: u16, message: &str) {
    crate::log!(Level::Warning, "Warning: Could not create server TCP listening socket {host}:{port}: {message}");
}

/// Logs that the server gives up because it cannot listen. `kind` is `tcp` or `unix`.
pub fn log_giving_up(port: u16, kind: &str) {
    crate::log!(Level::Warning, "Failed listening on port {port} ({kind}), aborting.");
}

/// Logs that there is neither a port nor a Unix socket to listen on.
pub fn log_nowhere() {
    crate::log!(Level::Warning, "Configured to not listen anywhere, exiting.");
}
