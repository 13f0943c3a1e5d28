//! Admission, limits and lines of clients.

use crate::config::{BufferLimit, ClientClass, Config};
use crate::session::{Session, State};
use crate::worker::Worker;
use commands::table::{CommandSpec, Flags};
use net::{ConnId, Conns, Peer};
use resp::Args;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Clients looked at in one sweep while their memory has a limit.
const CLIENTS_PER_SWEEP: usize = 4000;
/// Output that a client may have waiting before it has authenticated.
const UNAUTHENTICATED_OUTPUT_BYTES: usize = 1024;

/// Places beyond `maxclients` for who comes by the Unix socket: an operator is let in when clients have taken all.
const OPERATORS: usize = 8;

/// Refused for their number.
const TOO_MANY: &[u8] = b"-ERR max number of clients reached\r\n";
/// Refused by protected mode.
pub const PROTECTED: &str = "-DENIED Redis is running in protected mode because protected mode is enabled and no password is set for the \
default user. In this mode connections are only accepted from the loopback interface. If you want to connect from external computers \
to Redis you may adopt one of the following solutions: 1) Just disable protected mode sending the command 'CONFIG SET protected-mode \
no' from the loopback interface by connecting to Redis from the same host the server is running, however MAKE SURE Redis is not \
publicly accessible from internet if you do so. Use CONFIG REWRITE to make this change permanent. 2) Alternatively you can just \
disable the protected mode by editing the Redis configuration file, and setting the protected mode option to 'no', and then \
restarting the server. 3) If you started the server manually just for testing, restart it with the '--protected-mode no' option. \
4) Set up an authentication password for the default user. NOTE: You only need to do one of the above things in order for the \
server to start accepting connections from the outside.\r\n";

/// Whether a client that has just connected may stay; else what to tell it.
pub(crate) fn admit(worker: &Worker, peer: &Peer, clients: usize) -> Result<(), Vec<u8>> {
    let reserve = if matches!(peer, Peer::Unix) { OPERATORS } else { 0 };
    if clients > (worker.config.maxclients as usize).saturating_add(reserve) {
        return Err(TOO_MANY.to_vec());
    }
    if worker.config.protected_mode
        && worker.shared.acl.default_has_no_password()
        && let Some(address) = peer.tcp()
        && !is_loopback(address)
    {
        return Err(PROTECTED.as_bytes().to_vec());
    }
    Ok(())
}

fn is_loopback(address: SocketAddr) -> bool {
    match address {
        SocketAddr::V4(v4) => v4.ip().is_loopback(),
        SocketAddr::V6(v6) => v6.ip().is_loopback() || v6.ip().to_ipv4_mapped().is_some_and(|v4| v4.is_loopback()),
    }
}

/// Whether a client may keep `pending_bytes` of unsent output.
pub(crate) fn keep_with_output(worker: &mut Worker, id: ConnId, session: &mut Session, pending_bytes: usize) -> bool {
    worker.stats.recent_max_output.set(worker.stats.recent_max_output.get().max(pending_bytes as u64));
    if session.state.has(State::UNAUTHENTICATED) && pending_bytes > UNAUTHENTICATED_OUTPUT_BYTES {
        cut(worker, id, session, pending_bytes);
        return false;
    }
    if session.state.has(State::REPLICA) {
        // What it has not got is in the journal, and is limited there.
        return true;
    }
    let limit = limit_of(&worker.config, session);
    if is_over(limit, session, pending_bytes, worker.now_s) {
        cut(worker, id, session, pending_bytes);
        return false;
    }
    true
}

fn limit_of(config: &Config, session: &Session) -> BufferLimit {
    let (channels, patterns, shards) = session.subscriptions();
    let class = if channels + patterns + shards > 0 { ClientClass::Pubsub } else { ClientClass::Normal };
    config.client_output_buffer_limit.of(class)
}

fn is_over(limit: BufferLimit, session: &mut Session, pending_bytes: usize, now_s: u32) -> bool {
    let pending = pending_bytes as u64;
    if limit.hard_bytes > 0 && pending >= limit.hard_bytes {
        return true;
    }
    if limit.soft_bytes == 0 || pending < limit.soft_bytes {
        session.soft_limit_since_s = 0;
        return false;
    }
    if session.soft_limit_since_s == 0 {
        session.soft_limit_since_s = now_s;
        return false;
    }
    u64::from(now_s.saturating_sub(session.soft_limit_since_s)) > limit.soft_seconds
}

#[cold]
fn cut(worker: &mut Worker, _id: ConnId, session: &Session, pending_bytes: usize) {
    worker.stats.output_limit_disconnections.add(1);
    crate::log!(
        crate::process::log::Level::Warning,
        "Client id={} omem={pending_bytes} scheduled to be closed ASAP for overcoming of output buffer limits.",
        session.id.0
    );
}

/// Who gave a command, for MONITOR.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller {
    Client,
    Script,
}

impl Worker {
    /// MONITOR: shows a command to all who watch, secrets hidden.
    pub(crate) fn feed_monitors(&mut self, session: &Session, spec: &CommandSpec, args: Args<'_>) {
        if self.shared.monitors.load(Ordering::Relaxed) == 0
            || spec.flags.intersects(Flags::SKIP_MONITOR.with(Flags::ADMIN))
        {
            return;
        }
        self.feed_monitors_from(session, spec, args, Caller::Client);
    }

    /// As [`Worker::feed_monitors`], whatever the flags say of the command: scripts show before what they call.
    pub(crate) fn feed_monitors_from(&mut self, session: &Session, spec: &CommandSpec, args: Args<'_>, caller: Caller) {
        if self.shared.monitors.load(Ordering::Relaxed) == 0 {
            return;
        }
        let words = crate::redact::arguments(spec, args.iter().map(<[u8]>::to_vec).collect());
        let (seconds, micros) = (self.now_ms / 1000, (self.now_ms % 1000) * 1000);
        let address = match session.address {
            _ if caller == Caller::Script => "lua".to_owned(),
            Some(_) => crate::session::address_text(session.address, ""),
            None => format!("unix:{}", String::from_utf8_lossy(&self.config.unixsocket)),
        };
        let mut line = format!("+{seconds}.{micros:06} [{} {address}]", session.db.0).into_bytes();
        for word in &words {
            line.push(b' ');
            line.extend_from_slice(&resp::quote_repr(word));
        }
        line.extend_from_slice(b"\r\n");
        let line: Arc<[u8]> = line.into();
        let index = self.index;
        for worker in 0..self.shared.workers() {
            #[allow(clippy::cast_possible_truncation)]
            let worker = worker as u16;
            let line = line.clone();
            if worker == index {
                for conn in &self.monitors {
                    self.later.push(crate::worker::Later::Write(*conn, line.to_vec()));
                }
            } else {
                self.shared.post(
                    worker,
                    crate::worker::Message::Call(Box::new(move |worker, conns| {
                        for conn in worker.monitors.clone() {
                            conns.write(conn, &line);
                        }
                    })),
                );
            }
        }
    }

    /// Ends a client's MONITOR.
    pub(crate) fn stop_monitoring(&mut self, id: ConnId) {
        self.monitors.retain(|other| *other != id);
        self.shared.monitors.fetch_sub(1, Ordering::SeqCst);
    }

    /// Counts and logs bytes that are no request.
    #[cold]
    pub(crate) fn note_protocol_error(&mut self, session: &Session, error: &resp::ProtocolError) {
        self.stats.errors.add(1);
        self.shared.note_error("ERR");
        crate::log!(crate::process::log::Level::Verbose, "Protocol error ({error}) from client id={}", session.id.0);
    }

    /// The most memory that all clients may take (`maxmemory-clients`), if there is a limit.
    pub(crate) fn clients_limit(&self) -> Option<u64> {
        let limit = match self.config.maxmemory_clients {
            share if share < 0 => (self.config.maxmemory / 100).saturating_mul(share.unsigned_abs()),
            bytes => bytes.unsigned_abs(),
        };
        (limit > 0).then_some(limit)
    }

    /// Closes clients of this worker, the largest first, until its share of what all have above the limit is gone.
    fn evict_clients(&mut self, conns: &mut Conns<Worker>) {
        let Some(limit) = self.clients_limit() else { return };
        let total = self.shared.sum(|stats| stats.clients_memory.get());
        let own = self.stats.clients_memory.get();
        if total <= limit || own == 0 {
            return;
        }
        let share = u128::from(total - limit) * u128::from(own) / u128::from(total);
        let mut left = u64::try_from(share).unwrap_or(u64::MAX).max(1);
        let mut sizes: Vec<(u64, ConnId)> = conns
            .iter()
            .filter(|(_, session)| !session.state.has(State::NO_EVICT) && !session.state.has(State::REPLICA))
            .map(|(conn, session)| ((session.used_bytes() + conns.held_bytes(conn)) as u64, conn))
            .collect();
        sizes.sort_unstable_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
        for (bytes, conn) in sizes {
            if left == 0 {
                break;
            }
            left = left.saturating_sub(bytes);
            self.stats.clients_memory.set(self.stats.clients_memory.get().saturating_sub(bytes));
            self.stats.evicted_clients.add(1);
            if let Some(session) = conns.state(conn) {
                crate::log!(crate::process::log::Level::Notice, "Evicting client: id={} tot-mem={bytes}", session.id.0);
            }
            conns.close(conn, false);
        }
    }

    /// Closes clients that are idle for `timeout` seconds or above a soft limit for too long, and those whose input
    /// passed the query buffer limit; a part of them at a time.
    pub(crate) fn sweep_clients(&mut self, conns: &mut Conns<Worker>) {
        let timeout = u32::try_from(self.config.timeout).unwrap_or(0);
        let query_limit = self.config.client_query_buffer_limit;
        let mut idle: Vec<ConnId> = Vec::new();
        let mut over: Vec<(ConnId, usize)> = Vec::new();
        let now_s = self.now_s;
        let mut sweep = self.cron.sweep;
        let share = if self.clients_limit().is_some() {
            CLIENTS_PER_SWEEP
        } else {
            self.cron.sweep_share(conns.len(), timeout > 0)
        };
        let next = conns.visit(sweep.place, share, |conn, session, kept| {
            sweep.max_input = sweep.max_input.max(kept.input_bytes);
            sweep.max_output = sweep.max_output.max(kept.output_bytes);
            sweep.memory += kept.memory_bytes + session.used_bytes();
            if kept.input_bytes > query_limit {
                self.stats.query_limit_disconnections.add(1);
                over.push((conn, 0));
                return;
            }
            if kept.output_bytes > 0 && !session.state.has(State::REPLICA) {
                let limit = limit_of(&self.config, session);
                if is_over(limit, session, kept.output_bytes, now_s) {
                    over.push((conn, kept.output_bytes));
                    return;
                }
            }
            let spared = session.state.has(State::BLOCKED)
                || session.state.has(State::SUBSCRIBED)
                || session.state.has(State::MONITOR)
                || session.state.has(State::REPLICA);
            if timeout > 0 && !spared && now_s.saturating_sub(session.last_active_s) > timeout {
                idle.push(conn);
            }
        });
        match next {
            Some(place) => self.cron.sweep = crate::cron::Sweep { place, ..sweep },
            None => {
                // What came and went between two sweeps is kept for one more by `keep_with_output`.
                self.stats.recent_max_input.set(sweep.max_input as u64);
                self.stats.recent_max_output.set(sweep.max_output as u64);
                self.stats.clients_memory.set(sweep.memory as u64);
                self.cron.sweep = crate::cron::Sweep::default();
                self.evict_clients(conns);
            }
        }
        for conn in idle {
            crate::log!(crate::process::log::Level::Verbose, "Closing idle client");
            conns.close(conn, false);
        }
        for (conn, output) in over {
            if output > 0
                && let Some(session) = conns.state(conn)
            {
                cut(self, conn, session, output);
            }
            conns.close(conn, false);
        }
    }
}
