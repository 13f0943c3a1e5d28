//! CLUSTER, READONLY, READWRITE, ASKING: what clients that know Redis Cluster ask, answered from the view.
//!
//! A node's ID is made of the member's name, a shard's of the group's number, so both are the same wherever they are asked.
//! There is no bus between servers: the manager says what changes, so subcommands that would change something are refused.

use super::Map;
use crate::exec::Step;
use crate::session::{Session, State};
use crate::worker::Worker;
use ::commands::table::CommandSpec;
use ::commands::{CmdError, CommandId, options};
use keyspace::{DbIndex, Slot};
use resp::{Args, Reply};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::sync::Arc;
use topology::{Group, Role, Server, SlotSet};

/// Answer to CLUSTER and its kin outside a cluster.
const DISABLED: CmdError = CmdError::new("ERR This instance has cluster support disabled");
const INVALID_SLOT: CmdError = CmdError::new("ERR Invalid slot");
/// What the bus's port would be, above the port of clients.
const BUS_OFFSET: u32 = 10_000;
/// Keys that GETKEYSINSLOT lists at most.
const KEYS_MAX: i64 = 1 << 20;

/// A name as a node's ID: 40 hex digits.
pub(crate) fn node_id(member: &str) -> String {
    hex_of(&[b"node ", member.as_bytes()])
}

fn shard_id(map: &Map, group: &Group) -> String {
    hex_of(&[b"shard ", map.view.cluster.as_bytes(), b" ", group.id.to_string().as_bytes()])
}

fn hex_of(parts: &[&[u8]]) -> String {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update(part);
    }
    digest.finalize().iter().take(20).map(|byte| format!("{byte:02x}")).collect()
}

/// Host and port of `host:port`.
pub(crate) fn split(address: &str) -> (&str, u32) {
    match address.rsplit_once(':') {
        Some((host, port)) => (host.trim_start_matches('[').trim_end_matches(']'), port.parse().unwrap_or(0)),
        None => (address, 0),
    }
}

/// Runs one.
pub(crate) fn run(
    worker: &mut Worker,
    session: &mut Session,
    spec: &'static CommandSpec,
    args: Args<'_>,
) -> Result<Step, CmdError> {
    use CommandId as C;
    let cluster = &worker.shared.cluster;
    if !cluster.is_managed() {
        return Err(DISABLED);
    }
    let map = cluster.map();
    let member = cluster.member().unwrap_or_default();
    match spec.id {
        C::Readonly => session.state.insert(State::READS_REPLICA),
        C::Readwrite => session.state.remove(State::READS_REPLICA),
        // Slots move as wholes here, so nobody is ever sent to ask.
        C::Asking => {}
        C::ClusterKeyslot => {
            let slot = worker.locks.keyspace().slot(&args[2]);
            worker.reply.count(slot.index());
            return Ok(Step::Done);
        }
        C::ClusterCountkeysinslot => return count_keys(worker, args),
        C::ClusterGetkeysinslot => return get_keys(worker, args),
        C::ClusterMyid => {
            worker.reply.bulk(node_id(&member));
            return Ok(Step::Done);
        }
        C::ClusterMyshardid => {
            let group = map.as_ref().and_then(|map| Some((map, map.view.group(map.home?.0)?)));
            let id = match group {
                Some((map, group)) => shard_id(map, group),
                None => hex_of(&[b"alone ", member.as_bytes()]),
            };
            worker.reply.bulk(id);
            return Ok(Step::Done);
        }
        C::ClusterInfo => {
            let text = info(worker, map.as_deref());
            worker.reply.verbatim(text, "txt");
            return Ok(Step::Done);
        }
        C::ClusterNodes => {
            let text = nodes(map.as_deref(), &member, worker.now_ms);
            worker.reply.verbatim(text, "txt");
            return Ok(Step::Done);
        }
        C::ClusterSlots => {
            slots(&mut worker.reply, map.as_deref());
            return Ok(Step::Done);
        }
        C::ClusterShards => {
            let offset = worker.shared.keyspace.journal.end();
            shards(&mut worker.reply, map.as_deref(), &member, offset);
            return Ok(Step::Done);
        }
        C::ClusterLinks => {
            worker.reply.empty_array();
            return Ok(Step::Done);
        }
        C::ClusterReplicas | C::ClusterSlaves => {
            replicas(worker, map.as_ref(), &member, args)?;
            return Ok(Step::Done);
        }
        C::ClusterCountFailureReports => {
            worker.reply.int(0);
            return Ok(Step::Done);
        }
        C::ClusterSaveconfig => {}
        _ => {
            return Err(CmdError::text(format!(
                "ERR {} is not for this server: the cluster's manager says what changes, use 'oxidis admin'",
                spec.name.to_ascii_uppercase().replace('|', " ")
            )));
        }
    }
    worker.reply.ok();
    Ok(Step::Done)
}

fn slot_of(worker: &Worker, argument: &[u8], error: CmdError) -> Result<Slot, CmdError> {
    let number = options::int(argument)?;
    let slots = worker.locks.keyspace().space().count();
    usize::try_from(number).ok().filter(|number| *number < slots).map(Slot::new).ok_or(error)
}

fn count_keys(worker: &mut Worker, args: Args<'_>) -> Result<Step, CmdError> {
    let slot = slot_of(worker, &args[2], INVALID_SLOT)?;
    let held_before = worker.locks.held();
    if !worker.locks.try_lock(slot) {
        return Ok(Step::Busy(slot));
    }
    // Redis: database 0, which is the only one there.
    let keys = worker.locks.slot(slot).db(DbIndex(0)).map_or(0, keyspace::slot::Db::len);
    if worker.locks.held() > held_before {
        worker.locks.unlock_all();
    }
    worker.reply.count(keys);
    Ok(Step::Done)
}

fn get_keys(worker: &mut Worker, args: Args<'_>) -> Result<Step, CmdError> {
    let error = CmdError::new("ERR Invalid slot or number of keys");
    let count = options::int(&args[3])?;
    let slot = slot_of(worker, &args[2], error.clone())?;
    if count < 0 {
        return Err(error);
    }
    let most = usize::try_from(count.min(KEYS_MAX)).unwrap_or(0);
    let held_before = worker.locks.held();
    if !worker.locks.try_lock(slot) {
        return Ok(Step::Busy(slot));
    }
    let part = worker.locks.slot(slot).db(DbIndex(0));
    let keys: Vec<Vec<u8>> =
        part.map(|db| db.table().iter().take(most).map(|entry| entry.key().to_vec()).collect()).unwrap_or_default();
    if worker.locks.held() > held_before {
        worker.locks.unlock_all();
    }
    worker.reply.array(keys.len());
    for key in &keys {
        worker.reply.bulk(key);
    }
    Ok(Step::Done)
}

fn info(worker: &Worker, map: Option<&Map>) -> String {
    let (mut assigned, mut known, mut size, mut epoch, mut own) = (0, 1, 0, 0, 0);
    if let Some(map) = map {
        assigned = map.view.groups.iter().map(|group| group.slots.count()).sum();
        known = map.view.groups.iter().map(|group| group.servers.len()).sum();
        size = map.view.groups.iter().filter(|group| !group.slots.is_empty()).count();
        epoch = map.view.epoch.0;
        own = map.home.and_then(|(group, _)| map.view.group(group)).map_or(0, |group| group.epoch.0);
    }
    let all = worker.locks.keyspace().space().count();
    let covered = assigned == all || !worker.config.cluster_require_full_coverage;
    let state = if map.is_some() && worker.shared.cluster.has_authority() && covered { "ok" } else { "fail" };
    let mut text = String::new();
    let fields: [(&str, &dyn std::fmt::Display); 12] = [
        ("cluster_state", &state),
        ("cluster_slots_assigned", &assigned),
        ("cluster_slots_ok", &assigned),
        ("cluster_slots_pfail", &0),
        ("cluster_slots_fail", &0),
        ("cluster_known_nodes", &known),
        ("cluster_size", &size),
        ("cluster_current_epoch", &epoch),
        ("cluster_my_epoch", &own),
        ("cluster_stats_messages_sent", &0),
        ("cluster_stats_messages_received", &0),
        ("total_cluster_links_buffer_limit_exceeded", &0),
    ];
    for (name, value) in fields {
        let _ = write!(text, "{name}:{value}\r\n");
    }
    text
}

fn nodes(map: Option<&Map>, member: &str, now_ms: i64) -> String {
    let mut text = String::new();
    let Some(map) = map else {
        let _ = writeln!(text, "{} :0@0 myself,master - 0 0 0 connected", node_id(member));
        return text;
    };
    for group in &map.view.groups {
        for server in &group.servers {
            node_line(&mut text, group, server, server.id == member, Some(now_ms));
        }
    }
    text
}

/// A line of CLUSTER NODES. Without a time: as CLUSTER REPLICAS lists it, without slots of its own anyway.
fn node_line(text: &mut String, group: &Group, server: &Server, is_self: bool, now_ms: Option<i64>) {
    let (host, port) = split(&server.address);
    let is_primary = server.role == Role::Primary;
    let flags = format!("{}{}", if is_self { "myself," } else { "" }, if is_primary { "master" } else { "slave" });
    let of = group.primary().filter(|_| !is_primary).map_or("-".to_owned(), |primary| node_id(&primary.id));
    let heard_ms = if is_self { 0 } else { now_ms.unwrap_or(0) };
    let _ = write!(
        text,
        "{} {host}:{port}@{} {flags} {of} 0 {heard_ms} {} connected",
        node_id(&server.id),
        port + BUS_OFFSET,
        group.epoch
    );
    if is_primary {
        for (first, last) in group.slots.ranges() {
            let _ = if first == last { write!(text, " {first}") } else { write!(text, " {first}-{last}") };
        }
    }
    text.push('\n');
}

fn slots(reply: &mut Reply, map: Option<&Map>) {
    let Some(map) = map else {
        reply.empty_array();
        return;
    };
    // Ranges in ascending order, whoever has them, as Redis lists them.
    let mut ranges: Vec<(u16, u16, &Group)> = Vec::new();
    for group in map.view.groups.iter().filter(|group| group.primary().is_some()) {
        ranges.extend(group.slots.ranges().iter().map(|(first, last)| (*first, *last, group)));
    }
    ranges.sort_unstable_by_key(|(first, ..)| *first);
    reply.array(ranges.len());
    for (first, last, group) in ranges {
        let servers: Vec<&Server> = group.primary().into_iter().chain(group.replicas()).collect();
        reply.array(2 + servers.len());
        reply.int(i64::from(first));
        reply.int(i64::from(last));
        for server in servers {
            let (host, port) = split(&server.address);
            reply.array(4);
            reply.bulk(host);
            reply.int(i64::from(port));
            reply.bulk(node_id(&server.id));
            reply.empty_array();
        }
    }
}

fn shards(reply: &mut Reply, map: Option<&Map>, member: &str, offset: u64) {
    let Some(map) = map else {
        reply.empty_array();
        return;
    };
    reply.array(map.view.groups.len());
    for group in &map.view.groups {
        reply.map(2);
        reply.bulk("slots");
        let none = SlotSet::new();
        let slots = if group.primary().is_some() { &group.slots } else { &none };
        reply.array(slots.ranges().len() * 2);
        for (first, last) in slots.ranges() {
            reply.int(i64::from(*first));
            reply.int(i64::from(*last));
        }
        reply.bulk("nodes");
        reply.array(group.servers.len());
        for server in &group.servers {
            let (host, port) = split(&server.address);
            let is_primary = server.role == Role::Primary;
            reply.map(7);
            for (name, value) in [("id", node_id(&server.id).as_str()), ("ip", host), ("endpoint", host)] {
                if name == "ip" {
                    reply.bulk("port");
                    reply.int(i64::from(port));
                }
                reply.bulk(name);
                reply.bulk(value);
            }
            reply.bulk("role");
            reply.bulk(if is_primary { "master" } else { "replica" });
            reply.bulk("replication-offset");
            reply.int(if server.id == member { i64::try_from(offset).unwrap_or(i64::MAX) } else { 0 });
            reply.bulk("health");
            reply.bulk("online");
        }
    }
}

fn replicas(worker: &mut Worker, map: Option<&Arc<Map>>, member: &str, args: Args<'_>) -> Result<(), CmdError> {
    let wanted = String::from_utf8_lossy(&args[2]).into_owned();
    let found = map.and_then(|map| {
        map.view.groups.iter().find_map(|group| {
            group.servers.iter().find(|server| node_id(&server.id) == wanted).map(|server| (group, server))
        })
    });
    let Some((group, server)) = found else {
        return Err(CmdError::text(format!("ERR Unknown node {wanted}")));
    };
    if server.role != Role::Primary {
        return Err(CmdError::new("ERR The specified node is not a master"));
    }
    let lines: Vec<String> = group
        .replicas()
        .map(|replica| {
            let mut line = String::new();
            node_line(&mut line, group, replica, replica.id == member, Some(worker.now_ms));
            line.trim_end().to_owned()
        })
        .collect();
    worker.reply.array(lines.len());
    for line in lines {
        worker.reply.bulk(line);
    }
    Ok(())
}
