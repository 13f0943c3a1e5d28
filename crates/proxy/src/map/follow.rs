//! Follows a stock cluster: a thread that asks its servers for the map whenever [`RefreshPolicy`] says so.
//!
//! It speaks to one server at a time over a short connection with deadlines, starts with those that answered before, and
//! falls back to the addresses of the configuration. CLUSTER NODES is asked first; where it is not allowed, CLUSTER SLOTS.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use keyspace::slot::SlotSpace;
use resp::{SkipState, Value, skip_reply, write_command};
use server::log;
use server::process::log::Level;

use super::refresh::RefreshPolicy;
use super::{ClusterMap, NO_SHARD, Shard, parse_nodes, parse_slots};
use crate::backend::greeting::Credentials;
use crate::config::ReplicaReads;
use crate::shared::Shared;
use crate::slots::{BackendAddress, Kind, NO_OWNER, Replica, SlotMap};
use crate::topology::resolve;

/// How long a server may take to be reached, and to answer.
const CONNECT_LIMIT: Duration = Duration::from_millis(500);
const ANSWER_LIMIT: Duration = Duration::from_secs(1);
/// Between two looks at how far replicas are behind.
const LAG_EVERY: Duration = Duration::from_secs(1);
/// Longest answer that is read: the text of thousands of servers.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Follows the cluster of which the seeds are servers until the proxy ends. For a thread of its own.
pub fn follow(shared: &Arc<Shared>, seeds: &[String]) {
    let mut follower = Follower {
        policy: RefreshPolicy::new(),
        current: None,
        seeds,
        turn: fastrand::usize(..),
        told: false,
        looked_at: Instant::now(),
    };
    loop {
        let mut wait = follower.policy.wait(Instant::now());
        if shared.config.snapshot().replica_reads != ReplicaReads::Never {
            // How far replicas are behind is to be known in time.
            wait = wait.min(follower.looked_at + LAG_EVERY - Instant::now().min(follower.looked_at + LAG_EVERY));
        }
        if !wait.is_zero() {
            let before = Instant::now();
            if !shared.map.wait_for_wish(wait) {
                return;
            }
            if before.elapsed() < wait {
                follower.policy.want();
            }
            continue;
        }
        follower.look(shared);
    }
}

struct Follower<'a> {
    policy: RefreshPolicy,
    current: Option<ClusterMap>,
    seeds: &'a [String],
    turn: usize,
    /// That nobody answers was told.
    told: bool,
    looked_at: Instant,
}

impl Follower<'_> {
    /// Asks one server after the other until one answers.
    fn look(&mut self, shared: &Shared) {
        let config = shared.config.snapshot();
        let credentials = Credentials { user: config.backend_user.clone(), password: config.backend_password.clone() };
        self.policy.asked(Instant::now());
        self.looked_at = Instant::now();
        let mut why = String::new();
        for server in self.servers() {
            match ask(&server, &credentials) {
                Ok(map) => {
                    if self.told {
                        log!(Level::Notice, "The cluster answers again");
                        self.told = false;
                    }
                    let replicas = match config.replica_reads {
                        ReplicaReads::Never => Vec::new(),
                        _ => map
                            .shards
                            .iter()
                            .map(|shard| close_replicas(shard, &credentials, config.replica_max_lag))
                            .collect(),
                    };
                    return self.take(shared, map, replicas);
                }
                Err(error) => why = format!("{server}: {error}"),
            }
        }
        self.policy.failed();
        if !self.told {
            log!(Level::Warning, "No server of the cluster tells who owns which slot; the last one asked: {why}");
            self.told = true;
        }
    }

    /// Whom to ask: the primaries known, in turn, then their replicas, then the seeds.
    fn servers(&mut self) -> Vec<String> {
        self.turn = self.turn.wrapping_add(1);
        let mut servers: Vec<String> = Vec::new();
        if let Some(map) = &self.current {
            let mut primaries: Vec<String> = map.shards.iter().map(|shard| shard.primary.address()).collect();
            let count = primaries.len().max(1);
            primaries.rotate_left(self.turn % count);
            servers.append(&mut primaries);
            servers.extend(map.shards.iter().flat_map(|shard| shard.replicas.iter().map(super::Node::address)));
        }
        servers.extend(self.seeds.iter().filter(|seed| !servers.contains(seed)).cloned().collect::<Vec<_>>());
        servers
    }

    fn take(&mut self, shared: &Shared, map: ClusterMap, replicas: Vec<Vec<Replica>>) {
        if !self.policy.answered(Instant::now(), self.current.as_ref(), &map) {
            return;
        }
        let slots = slot_map(&map, &replicas);
        if slots.backends.is_empty() {
            // A server that belongs to no cluster yet.
            self.policy.failed();
        }
        self.current = Some(map);
        if shared.map.publish(slots) {
            log!(Level::Verbose, "The cluster's slots have changed owners");
        }
    }
}

/// What workers need of a map. Servers whose names cannot be resolved own nothing.
pub(crate) fn slot_map(map: &ClusterMap, replicas: &[Vec<Replica>]) -> SlotMap {
    let mut slots = SlotMap::empty(SlotSpace::Redis, Kind::Cluster);
    let places: Vec<u16> = map
        .shards
        .iter()
        .map(|shard| {
            let name = shard.primary.address();
            let address = resolve_node(&shard.primary.host, shard.primary.port, &name);
            address.and_then(|address| slots.backend(BackendAddress { name, address })).unwrap_or(NO_OWNER)
        })
        .collect();
    slots.owners =
        map.owners
            .iter()
            .map(|owner| {
                if *owner == NO_SHARD { NO_OWNER } else { places.get(usize::from(*owner)).copied().unwrap_or(NO_OWNER) }
            })
            .collect();
    slots.fingerprint = map.fingerprint();
    slots.replicas = vec![Vec::new(); slots.backends.len()];
    for (place, of_shard) in places.iter().zip(replicas) {
        if let Some(of_backend) = slots.replicas.get_mut(usize::from(*place)) {
            of_backend.clone_from(of_shard);
        }
    }
    slots
}

/// The replicas of a shard that its primary takes for connected and close enough.
fn close_replicas(shard: &Shard, credentials: &Credentials, lag_s_max: u32) -> Vec<Replica> {
    let ask = || -> io::Result<Value> {
        let address = resolve(&shard.primary.address()).map_err(io::Error::other)?;
        let mut asker = Asker::connect(address)?;
        asker.log_in(credentials)?;
        asker.call(&[b"INFO", b"replication"])
    };
    let Ok(info) = ask() else { return Vec::new() };
    let text = String::from_utf8_lossy(info.as_bytes().unwrap_or_default()).into_owned();
    let close = close_ports(&text, lag_s_max);
    let is_close = |node: &&super::Node| {
        close.iter().any(|(host, port)| {
            *port == node.port && (*host == node.host || node.host.parse::<std::net::IpAddr>().is_err())
        })
    };
    let of_node = |node: &super::Node| {
        let name = node.address();
        let address = resolve_node(&node.host, node.port, &name)?;
        Some(Replica { backend: BackendAddress { name, address }, zone: None })
    };
    shard.replicas.iter().filter(|node| !node.is_failed).filter(is_close).filter_map(of_node).collect()
}

/// Host and port of the replicas in a primary's INFO that are online and at most so many seconds behind.
fn close_ports(info: &str, lag_s_max: u32) -> Vec<(String, u16)> {
    let of_line = |line: &str| {
        let (name, fields) = line.trim_end().split_once(':')?;
        name.strip_prefix("slave")?.parse::<u32>().ok()?;
        let field = |wanted: &str| {
            fields
                .split(',')
                .find_map(|field| field.split_once('=').filter(|(name, _)| *name == wanted).map(|(_, value)| value))
        };
        let is_close = field("state")? == "online" && field("lag")?.parse::<u32>().ok()? <= lag_s_max;
        is_close.then_some((field("ip")?.to_owned(), field("port")?.parse().ok()?))
    };
    info.lines().filter_map(of_line).collect()
}

fn resolve_node(host: &str, port: u16, name: &str) -> Option<SocketAddr> {
    match host.parse() {
        Ok(ip) => Some(SocketAddr::new(ip, port)),
        Err(_) => resolve(name).ok(),
    }
}

/// Asks one server for the map.
///
/// # Errors
/// What went wrong, for the log.
pub fn ask(server: &str, credentials: &Credentials) -> io::Result<ClusterMap> {
    let mut asker = Asker::connect(resolve(server).map_err(io::Error::other)?)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_replicas_that_are_close_are_read_from() {
        let info = "role:master\r\nconnected_slaves:3\r\n\
                    slave0:ip=127.0.0.1,port=7003,state=online,offset=1,lag=0\r\n\
                    slave1:ip=127.0.0.2,port=7004,state=online,offset=1,lag=11\r\n\
                    slave2:ip=127.0.0.3,port=7005,state=wait_bgsave,offset=0,lag=0\r\n\
                    slave_repl_offset:5\r\n";
        assert_eq!(close_ports(info, 10), [("127.0.0.1".to_owned(), 7003)]);
    }
}
