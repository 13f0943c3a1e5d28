//! Room for very many connections: descriptors, spread over threads that each have a table of their own where one table
//! is too small, and ports, spread over local addresses.
//!
//! ```text
//! descriptors   clients / (limit of one table - spare)  = threads, each with a private table
//! ports         clients / (share of the port range)     = local addresses (127.0.0.1, 127.0.0.2 … on loopback)
//! ```

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::{
    options::Options,
    preflight::{Address, Failure, Server},
    run::tell,
};

/// Where the connections are to be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Places {
    /// Threads that are needed at least.
    pub(crate) threads: usize,
    /// Each thread is to have a descriptor table of its own.
    pub(crate) private_tables: bool,
    /// Local addresses to connect from, in turn; none: the kernel's choice.
    pub(crate) sources: Vec<IpAddr>,
    /// First and last local port.
    pub(crate) ports: (u16, u16),
}

impl Places {
    /// Makes room for the options' connections: raises the limit of descriptors, or tells how many threads with a table of
    /// their own it takes; chooses local addresses where the ports of one do not suffice.
    pub(crate) fn find(options: &Options, threads: usize, servers: &[Server]) -> Result<Places, Failure> {
        let clients = options.client_count();
        let table = raise_limit(clients as u64 + threads as u64 * 4 + SPARE_DESCRIPTORS);
        let ports = port_range();
        let sources = options.extended.source_addresses.clone();
        let mut places = Places { threads, private_tables: false, sources, ports };
        if let Some(limit) = table {
            let room = usize::try_from(limit.saturating_sub(SPARE_DESCRIPTORS)).unwrap_or(usize::MAX);
            let needed = clients.checked_div(room).map(|_| clients.div_ceil(room)).unwrap_or(usize::MAX);
            if needed > THREADS_MAX {
                return Err(Failure(format!(
                    "Error: {clients} clients need more descriptors than {THREADS_MAX} threads have with a limit of {limit} \
                     each: raise it (ulimit -Hn {clients}) or lower -c\n"
                )));
            }
            // Clients of a cluster are dealt out to threads by server, so each server gets as many threads.
            let step = if options.cluster { servers.len().max(1) } else { 1 };
            places.threads = threads.max(needed).next_multiple_of(step);
            places.private_tables = true;
        }
        let addresses: Vec<IpAddr> = servers
            .iter()
            .filter_map(|server| match &server.address {
                Address::Tcp(address) => Some(address.ip()),
                Address::Unix(_) => None,
            })
            .collect();
        if addresses.is_empty() {
            return Ok(places);
        }
        let ports = usize::from(ports.1.saturating_sub(ports.0)) + 1;
        let is_loopback = addresses.iter().all(|address| address.is_loopback() && address.is_ipv4());
        let of_one = ports * servers.len();
        if places.sources.is_empty() && is_loopback && clients > of_one * ONE_ADDRESS_PERCENT / 100 {
            places.sources = loopback_addresses(clients.div_ceil((of_one * SHARE_OF_PORTS_PERCENT / 100).max(1)));
        } else if places.sources.is_empty() && is_loopback && clients > of_one * ANY_PORT_PERCENT / 100 {
            places.sources = loopback_addresses(1);
        }
        let sources = places.sources.len().max(1);
        let room = ports * sources * servers.len();
        if clients > room {
            return Err(Failure(format!(
                "Error: {clients} clients need a local port each, but {ports} ports × {sources} source addresses × {} \
                 servers are {room}: widen net.ipv4.ip_local_port_range, give more --source addresses, or lower -c\n",
                servers.len()
            )));
        }
        if options.extended.is_used && clients >= TOLD_FROM_CLIENTS {
            tell(format_args!(
                "ports: {ports} local ports × {sources} source addresses × {} servers = {room} for {clients} clients",
                servers.len()
            ));
        }
        Ok(places)
    }
}

/// Further local addresses for connections to a server on loopback: those that follow once all ports of the others are in
/// use, or rest after an earlier run. There are none to another machine, and none with `::1`, which stands alone.
#[derive(Debug, Clone)]
pub(crate) struct SpareSources {
    next: Option<u8>,
}

impl SpareSources {
    /// Those for connections to `address`.
    pub(crate) fn of(address: &SocketAddr) -> SpareSources {
        SpareSources { next: (address.ip().is_loopback() && address.is_ipv4()).then_some(FIRST_SPARE) }
    }

    /// None at all: the addresses are chosen by the user.
    pub(crate) fn none() -> SpareSources {
        SpareSources { next: None }
    }
}

impl Iterator for SpareSources {
    type Item = IpAddr;

    fn next(&mut self) -> Option<IpAddr> {
        let host = self.next?;
        self.next = host.checked_add(1).filter(|next| *next <= LAST_SPARE);
        Some(IpAddr::V4(Ipv4Addr::new(127, 0, 0, host)))
    }
}

/// Raises the limit of open descriptors to `needed`. If it stays below, what it is.
fn raise_limit(needed: u64) -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let current = limit.current.filter(|current| *current < needed)?;
    let attempts = [
        Rlimit { current: Some(needed), maximum: limit.maximum.map(|maximum| maximum.max(needed)) },
        Rlimit { current: limit.maximum.map(|maximum| maximum.min(needed)), maximum: limit.maximum },
    ];
    for attempt in attempts {
        if setrlimit(Resource::Nofile, attempt).is_ok() {
            return attempt.current.filter(|current| *current < needed);
        }
    }
    Some(current)
}

fn loopback_addresses(count: usize) -> Vec<IpAddr> {
    let last = u8::try_from(count).unwrap_or(u8::MAX).clamp(1, 254);
    (1..=last).map(|host| IpAddr::V4(Ipv4Addr::new(127, 0, 0, host))).collect()
}

/// Reads `--source`: addresses and ranges of addresses, separated by commas.
pub(crate) fn parse_sources(text: &str) -> Option<Vec<IpAddr>> {
    let mut sources = Vec::new();
    for part in text.split(',').map(str::trim) {
        match part.split_once('-') {
            None => sources.push(part.parse().ok()?),
            Some((first, last)) => sources.extend(range(first.trim().parse().ok()?, last.trim().parse().ok()?)?),
        }
    }
    Some(sources)
}

fn range(first: IpAddr, last: IpAddr) -> Option<Vec<IpAddr>> {
    match (first, last) {
        (IpAddr::V4(first), IpAddr::V4(last)) => {
            let (first, last) = (first.to_bits(), last.to_bits());
            let is_fine = last.checked_sub(first)? < SOURCES_MAX;
            is_fine.then(|| (first..=last).map(|bits| Ipv4Addr::from_bits(bits).into()).collect())
        }
        (IpAddr::V6(first), IpAddr::V6(last)) => {
            let (first, last) = (first.to_bits(), last.to_bits());
            let is_fine = last.checked_sub(first)? < u128::from(SOURCES_MAX);
            is_fine.then(|| (first..=last).map(|bits| Ipv6Addr::from_bits(bits).into()).collect())
        }
        _ => None,
    }
}

/// First and last port that connections begin from.
pub(crate) fn port_range() -> (u16, u16) {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
    let range: Vec<u16> =
        text.unwrap_or_default().split_whitespace().filter_map(|number| number.parse().ok()).collect();
    match range.as_slice() {
        [low, high] if high >= low => (*low, *high),
        _ => (32_768, 60_999),
    }
}

/// Descriptors of a table that are no connections of the load: streams, epoll, files.
const SPARE_DESCRIPTORS: u64 = 64;

/// Most threads that are started by themselves.
const THREADS_MAX: usize = 128;

/// The loopback addresses that are spare, by their last byte.
const FIRST_SPARE: u8 = 2;
const LAST_SPARE: u8 = 254;

/// Share of the ports from which on the kernel is to take odd ones as readily as even ones (see `sys`).
const ANY_PORT_PERCENT: usize = 40;

/// Share of the ports up to which one address will do: Redis in protected mode knows 127.0.0.1 only.
const ONE_ADDRESS_PERCENT: usize = 85;

/// Share of the ports of each of several addresses: finding the last free ones is slow.
const SHARE_OF_PORTS_PERCENT: usize = 55;

/// Clients from which on the reckoning of ports is shown.
const TOLD_FROM_CLIENTS: usize = 10_000;

/// Most addresses of one range.
const SOURCES_MAX: u32 = 65_536;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn sources_are_addresses_and_ranges() {
        let sources = parse_sources("127.0.0.254-127.0.1.1, ::1").unwrap();
        let texts: Vec<String> = sources.iter().map(IpAddr::to_string).collect();
        assert_eq!(texts, ["127.0.0.254", "127.0.0.255", "127.0.1.0", "127.0.1.1", "::1"]);
        for wrong in ["", "x", "127.0.0.2-127.0.0.1", "127.0.0.1-::1", "0.0.0.0-255.255.255.255"] {
            assert_eq!(parse_sources(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn loopback_has_spare_addresses() {
        let spare: Vec<IpAddr> = SpareSources::of(&"127.0.0.1:6379".parse().unwrap()).collect();
        assert_eq!(
            (spare.len(), spare[0].to_string(), spare[252].to_string()),
            (253, "127.0.0.2".into(), "127.0.0.254".into())
        );
        for other in ["10.0.0.1:6379", "[::1]:6379"] {
            assert_eq!(SpareSources::of(&other.parse().unwrap()).next(), None, "{other}");
        }
    }

    #[test]
    fn loopback_has_as_many_addresses_as_needed() {
        let texts: Vec<String> = loopback_addresses(3).iter().map(IpAddr::to_string).collect();
        assert_eq!(texts, ["127.0.0.1", "127.0.0.2", "127.0.0.3"]);
    }
}
