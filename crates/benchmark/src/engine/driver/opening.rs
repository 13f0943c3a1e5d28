//! Opening connections: how many at a time, and from which local address.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    os::fd::OwnedFd,
    sync::Arc,
};

use net::{ConnId, Conns};
use rustix::{
    io::Errno,
    net::{AddressFamily, SocketFlags, SocketType, connect, ipproto, socket_with},
};

use super::{Client, Driver, Opening, RECONNECT_DELAY_NS, Seat, Settings};
use crate::{
    extended::OnError,
    places::SpareSources,
    preflight::{Address, reason},
    sys,
};

impl Driver {
    /// Opens connections that are due, up to the limit under way at once.
    pub(super) fn open(&mut self, conns: &mut Conns<Self>, now: u64) {
        let limit = (OPENING_MAX / self.settings.threads).max(1);
        while self.opening < limit
            && self.opened < self.allowed(now)
            && self.to_open.front().is_some_and(|next| next.due <= now)
        {
            let Some(Opening { seat, .. }) = self.to_open.pop_front() else {
                return;
            };
            let settings = Arc::clone(&self.settings);
            let Some(target) = settings.servers.get(seat.server as usize) else {
                return;
            };
            let opened = self.begin(conns, &settings, &target.address, seat, now);
            self.opened += 1;
            let opened = opened.and_then(|id| {
                self.opening += 1;
                match &self.settings.options.connector {
                    Some(connector) => conns.secure(id, connector),
                    None => Ok(()),
                }
            });
            if let Err(error) = opened {
                let text = reason(&error);
                if self.started && self.settings.on_error == OnError::Reconnect {
                    self.load.lost(&mut Client::new(seat, now), "connect", &text);
                    let due = now + RECONNECT_DELAY_NS;
                    self.to_open.push_back(Opening { due, seat });
                    return;
                }
                let name = &target.name;
                self.shared.fail(&format!("Could not connect to Redis at {name}: {text}"));
                return;
            }
        }
    }

    /// Begins a connection. Where the local address has no port left, because there are so many connections or those of an
    /// earlier run still rest, the next address of loopback is taken, and kept.
    fn begin(
        &mut self,
        conns: &mut Conns<Self>,
        settings: &Settings,
        address: &Address,
        seat: Seat,
        now: u64,
    ) -> io::Result<ConnId> {
        let address = match address {
            Address::Unix(path) => return conns.connect(net::Address::Unix(path.clone()), Client::new(seat, now)),
            Address::Tcp(address) => *address,
        };
        let mut source = self.spare_source.or_else(|| self.next_source());
        let mut is_second_round = false;
        loop {
            let client = Client::new(seat, now);
            let opened = match source {
                Some(source) => sys::start_connect_from(source, settings.places.ports, address)
                    .and_then(|socket| conns.adopt_connecting(socket, client)),
                None if settings.options.extended.multipath => {
                    start_multipath(address).and_then(|socket| conns.adopt_connecting(socket, client))
                }
                None => conns.connect(address, client),
            };
            match opened {
                Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
                    self.spare_source = self.spare_sources.next();
                    if self.spare_source.is_none() {
                        if is_second_round {
                            return Err(error);
                        }
                        // Connections that were closed meanwhile have given their ports back.
                        is_second_round = true;
                        self.spare_sources = spare_sources(settings);
                    }
                    source = self.spare_source.or_else(|| self.next_source());
                }
                opened => return opened,
            }
        }
    }

    /// Connections that `--connect-rate` has allowed this thread until `now`.
    fn allowed(&self, now: u64) -> u64 {
        let Some(per_second) = self.settings.options.extended.connect_rate else {
            return u64::MAX;
        };
        #[expect(clippy::cast_precision_loss, reason = "a rate")]
        let count = now as f64 / 1e9 * per_second / self.settings.threads.max(1) as f64;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole connections, never negative"
        )]
        let count = count as u64;
        count + 1
    }

    /// The local address for the next connection.
    fn next_source(&self) -> Option<IpAddr> {
        let sources = &self.settings.places.sources;
        let place = usize::try_from(self.opened).unwrap_or(0).wrapping_add(self.thread);
        sources.get(place.checked_rem(sources.len())?).copied()
    }
}

/// Local addresses beyond those that were chosen beforehand: none where the user chose.
pub(super) fn spare_sources(settings: &Settings) -> SpareSources {
    let extended = &settings.options.extended;
    let servers = settings.servers.iter().map(|server| &server.address);
    let mut addresses = servers.filter_map(|address| match address {
        Address::Tcp(address) => Some(address),
        Address::Unix(_) => None,
    });
    match addresses.next() {
        Some(first) if extended.source_addresses.is_empty() && !extended.multipath => {
            let mut spare = SpareSources::of(first);
            if !addresses.all(|other| other.ip() == first.ip()) {
                return SpareSources::none();
            }
            // The first of the addresses in use is no spare one.
            for _ in 1..settings.places.sources.len() {
                spare.next();
            }
            spare
        }
        _ => SpareSources::none(),
    }
}

/// A socket on its way to `address` by Multipath TCP.
fn start_multipath(address: SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, Some(ipproto::MPTCP))?;
    match connect(&socket, &address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
        Err(errno) => Err(errno.into()),
    }
}

/// Connections under way at once over all threads: what a listen backlog of 511 takes well.
const OPENING_MAX: usize = 256;
