//! Redis Cluster seen from a load generator: the primaries with their slots, and a hash tag for
//! every slot.
//!
//! `{tag}` in a key is overwritten with three bytes that hash to a slot of the node that the
//! request goes to. Redis 7.2 used one slot per node for the whole run; here each request picks
//! one of the node's slots, so that all of them are measured.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use resp::Value;

use crate::{
    extended::ReadFrom,
    options::Options,
    preflight::{Connection, Failure, Server},
    report::ServerConfig,
    run::tell,
};

/// A primary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Primary {
    /// Node id.
    pub(crate) id: String,
    /// Address as the cluster gives it.
    pub(crate) host: String,
    /// Port.
    pub(crate) port: u16,
    /// Slots it serves.
    pub(crate) slots: Vec<u16>,
}

/// The primaries and, per primary, the tags of its slots.
#[derive(Debug)]
pub(crate) struct Cluster {
    /// Primaries with slots, in the order of CLUSTER NODES.
    pub(crate) primaries: Vec<Primary>,
    /// Where each was reached.
    pub(crate) servers: Vec<Server>,
    /// Persistence settings of each.
    pub(crate) configs: Vec<Option<ServerConfig>>,
    tags: Mutex<TagSets>,
}

/// Tags of each primary's slots; replaced as a whole when slots have moved.
#[derive(Debug, Clone)]
struct TagSets {
    version: u64,
    sets: Vec<Arc<[[u8; 3]]>>,
}

impl Cluster {
    /// Asks the server of `options` for its cluster, prints the list that redis-benchmark prints
    /// to `out`, and collects warnings in `warnings`.
    pub(crate) fn fetch(options: &Options, out: &mut String, warnings: &mut String) -> Result<Cluster, Failure> {
        let (mut connection, server) = Connection::open(options, None)?;
        let failed = || format!("Failed to fetch cluster configuration from {}\n", server.name);
        let text = match connection.ask(&["CLUSTER", "NODES"]) {
            Ok(Value::Error(text)) => {
                let text = String::from_utf8_lossy(&text);
                let name = &server.name;
                return Err(Failure(format!("Cluster node {name} replied with error:\n{text}\n{}", failed())));
            }
            Ok(value) => String::from_utf8_lossy(value.as_bytes().unwrap_or_default()).into_owned(),
            Err(_) => return Err(Failure(failed())),
        };
        let read_from = options.extended.read_from;
        let primaries = parse_nodes(&text, options, read_from, warnings)
            .map_err(|error| Failure(format!("{error}\n{}", failed())))?;
        if primaries.len() <= 1 && read_from == ReadFrom::Primaries {
            return Err(Failure(format!("Invalid cluster: {} node(s).\n", primaries.len())));
        }
        out.push_str(&format!("Cluster has {} master nodes:\n\n", primaries.len()));
        let (mut servers, mut configs) = (Vec::new(), Vec::new());
        for (index, primary) in primaries.iter().enumerate() {
            let Primary { id, host, port, .. } = primary;
            out.push_str(&format!("Master {index}: {id} {host}:{port}\n"));
            let (mut connection, server) = Connection::open(options, Some((host, *port)))?;
            let config = connection.config(&server)?;
            if config.is_none() {
                let name = &server.name;
                warnings.push_str(&format!("WARNING: Could not fetch node CONFIG {name}\n"));
            }
            servers.push(server);
            configs.push(config);
        }
        out.push('\n');
        let table = tag_table();
        let sets = primaries.iter().map(|primary| tags_of(&table, &primary.slots)).collect();
        let tags = Mutex::new(TagSets { version: 0, sets });
        Ok(Cluster { primaries, servers, configs, tags })
    }

    /// The tags of the primary at `index`, and their version.
    pub(crate) fn tags(&self, index: usize) -> (u64, Arc<[[u8; 3]]>) {
        let tags = self.lock();
        (tags.version, tags.sets.get(index).cloned().unwrap_or_default())
    }

    /// Fetches the slots anew unless somebody did since `version`. The error is for stderr.
    pub(crate) fn refresh(&self, options: &Options, version: u64) -> Result<(), String> {
        let mut tags = self.lock();
        if tags.version != version {
            return Ok(());
        }
        tell(format_args!("WARNING: Cluster slots configuration changed, fetching new one..."));
        let first = self.primaries.first();
        let endpoint = first.map(|primary| (primary.host.as_str(), primary.port));
        let (mut connection, _) = Connection::open(options, endpoint).map_err(|failure| failure.0)?;
        let reply = connection
            .ask(&["CLUSTER", "SLOTS"])
            .map_err(|error| format!("Failed to update cluster slots configuration: {error}\n"))?;
        if let Value::Error(text) = &reply {
            let text = String::from_utf8_lossy(text);
            return Err(format!("Failed to update cluster slots configuration\nCLUSTER SLOTS ERROR: {text}\n"));
        }
        let owned = parse_slots(&reply, &self.primaries)?;
        let table = tag_table();
        tags.sets = owned.iter().map(|slots| tags_of(&table, slots)).collect();
        tags.version += 1;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, TagSets> {
        self.tags.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The primary, and the thread, that the client with this number belongs to.
pub(crate) fn placement(client: usize, threads: usize, primaries: usize) -> (usize, usize) {
    let thread = client % threads.max(1);
    let primaries = primaries.max(1);
    let primary = if threads < primaries { client % primaries } else { thread % primaries };
    (thread, primary)
}

/// Reads CLUSTER NODES: primaries that have slots.
fn parse_nodes(
    text: &str,
    options: &Options,
    read_from: ReadFrom,
    warnings: &mut String,
) -> Result<Vec<Primary>, String> {
    let mut primaries = Vec::new();
    let mut replicas: Vec<(String, Primary)> = Vec::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let (Some(id), Some(address), Some(flags)) = (fields.first(), fields.get(1), fields.get(2)) else {
            return Err("Invalid CLUSTER NODES reply: missing flags.".to_owned());
        };
        let replica_of = fields.get(3).copied().unwrap_or("-");
        let is_replica = flags.contains("slave") || !replica_of.starts_with('-');
        if is_replica && (read_from == ReadFrom::Primaries || flags.contains("fail")) {
            continue;
        }
        let (host, port) = node_address(address).unwrap_or((String::new(), 0));
        let (host, port) = if host.is_empty() && flags.contains("myself") {
            (options.host.clone(), if port == 0 { options.port } else { port })
        } else {
            (host, port)
        };
        if is_replica {
            // It serves what its primary owns.
            let replica = Primary { id: (*id).to_owned(), host, port, slots: Vec::new() };
            replicas.push((replica_of.to_owned(), replica));
            continue;
        }
        let slots = slot_ranges(fields.get(8..).unwrap_or_default());
        if slots.is_empty() {
            warnings.push_str(&format!("WARNING: Master node {host}:{port} has no slots, skipping...\n"));
            continue;
        }
        primaries.push(Primary { id: (*id).to_owned(), host, port, slots });
    }
    for (primary, replica) in &mut replicas {
        let primary = primaries.iter().find(|known| known.id == *primary);
        replica.slots = primary.map_or_else(Vec::new, |primary| primary.slots.clone());
    }
    let replicas = replicas.into_iter().map(|(_, replica)| replica).filter(|replica| !replica.slots.is_empty());
    match read_from {
        ReadFrom::Primaries => {}
        ReadFrom::Replicas => {
            primaries = replicas.collect();
            if primaries.is_empty() {
                return Err("The cluster has no replicas to read from.".to_owned());
            }
        }
        ReadFrom::All => primaries.extend(replicas),
    }
    Ok(primaries)
}

/// Splits `ip:port@bus,hostname`.
fn node_address(text: &str) -> Option<(String, u16)> {
    let text = text.split(['@', ',']).next()?;
    let (host, port) = text.rsplit_once(':')?;
    Some((host.to_owned(), port.parse().ok()?))
}

fn slot_ranges(fields: &[&str]) -> Vec<u16> {
    let mut slots = Vec::new();
    for field in fields.iter().filter(|field| !field.starts_with('[')) {
        let (first, last) = field.split_once('-').unwrap_or((field, field));
        if let (Ok(first), Ok(last)) = (first.parse::<u16>(), last.parse::<u16>())
            && last < SLOTS
        {
            slots.extend(first..=last);
        }
    }
    slots
}

/// Reads CLUSTER SLOTS into the slots of each known primary.
fn parse_slots(reply: &Value, primaries: &[Primary]) -> Result<Vec<Vec<u16>>, String> {
    let mut owned = vec![Vec::new(); primaries.len()];
    for range in reply.as_elements().unwrap_or_default() {
        let fields = range.as_elements().unwrap_or_default();
        let (Some(Value::Int(first)), Some(Value::Int(last)), Some(node)) =
            (fields.first(), fields.get(1), fields.get(2))
        else {
            return Err("Failed to update cluster slots configuration: bad reply\n".to_owned());
        };
        let node = node.as_elements().unwrap_or_default();
        let id = node.get(2).and_then(Value::as_bytes).unwrap_or_default();
        let Some(index) = primaries.iter().position(|primary| primary.id.as_bytes() == id) else {
            return Err(format!(
                "Failed to update cluster slots configuration: could not find node with ID {} in \
                 current configuration.\n",
                String::from_utf8_lossy(id)
            ));
        };
        let slot = |number: i64| u16::try_from(number).unwrap_or(0).min(SLOTS - 1);
        owned[index].extend(slot(*first)..=slot(*last));
    }
    Ok(owned)
}

fn tags_of(table: &[[u8; 3]], slots: &[u16]) -> Arc<[[u8; 3]]> {
    slots.iter().filter_map(|slot| table.get(usize::from(*slot)).copied()).collect()
}

/// For every slot three letters or digits that hash to it.
pub(crate) fn tag_table() -> Vec<[u8; 3]> {
    let mut table = vec![[0_u8; 3]; usize::from(SLOTS)];
    let mut missing = table.len();
    for a in TAG_BYTES {
        for b in TAG_BYTES {
            for c in TAG_BYTES {
                let tag = [*a, *b, *c];
                let entry = &mut table[usize::from(crc16(&tag) % SLOTS)];
                if entry[0] == 0 {
                    *entry = tag;
                    missing -= 1;
                    if missing == 0 {
                        return table;
                    }
                }
            }
        }
    }
    table
}

/// CRC16/XMODEM, the hash of Redis Cluster.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(
            crc ^ (u16::from(*byte) << 8),
            |crc, _| {
                if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 }
            },
        )
    })
}

const SLOTS: u16 = 16_384;
const TAG_BYTES: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_slot_has_a_tag() {
        let table = tag_table();
        for (slot, tag) in table.iter().enumerate() {
            assert_eq!(usize::from(crc16(tag) % SLOTS), slot);
            assert_ne!(tag[0], 0);
        }
        assert_eq!(crc16(b"123456789"), 0x31c3);
    }

    #[test]
    fn nodes_are_read() {
        let text = "\
a1 127.0.0.1:7001@17001,host myself,master - 0 0 1 connected 0-2 5 [93-<-b2]
b2 ::1:7002@17002 master - 0 0 2 connected 6-7
c3 127.0.0.1:7003@17003 slave a1 0 0 3 connected
d4 127.0.0.1:7004@17004 master - 0 0 4 connected
";
        let mut warnings = String::new();
        let nodes = parse_nodes(text, &Options::default(), ReadFrom::Primaries, &mut warnings).unwrap();
        assert_eq!(nodes.len(), 2);
        assert_eq!((nodes[0].host.as_str(), nodes[0].port), ("127.0.0.1", 7001));
        assert_eq!(nodes[0].slots, [0, 1, 2, 5]);
        assert_eq!((nodes[1].host.as_str(), nodes[1].port), ("::1", 7002));
        assert_eq!(warnings, "WARNING: Master node 127.0.0.1:7004 has no slots, skipping...\n");
        assert!(parse_nodes("x", &Options::default(), ReadFrom::Primaries, &mut warnings).is_err());
        let replicas = parse_nodes(text, &Options::default(), ReadFrom::Replicas, &mut warnings).unwrap();
        let seen: Vec<(u16, &[u16])> = replicas.iter().map(|node| (node.port, node.slots.as_slice())).collect();
        assert_eq!(seen, [(7003, &[0, 1, 2, 5][..])]);
        let all = parse_nodes(text, &Options::default(), ReadFrom::All, &mut warnings).unwrap();
        assert_eq!(all.iter().map(|node| node.port).collect::<Vec<_>>(), [7001, 7002, 7003]);
    }

    #[test]
    fn clients_go_round() {
        let seen: Vec<_> = (0..4).map(|client| placement(client, 2, 3)).collect();
        assert_eq!(seen, [(0, 0), (1, 1), (0, 2), (1, 0)]);
        assert_eq!(placement(4, 3, 3), (1, 1));
    }
}
