//! The three forms of a cluster's map.

use std::fmt;

use resp::Value;

use super::{ClusterMap, Node, SLOTS, Shard};

/// Why a reply is no map.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MapError(String);

impl MapError {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        MapError(what.into())
    }
}

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for MapError {}

/// Reads the text of CLUSTER NODES.
///
/// ```text
/// id host:port@bus[,name[,shard-id=…]] flags primary-id|- ping pong config-epoch link slots…
/// slots: 5  0-99  [5->-target-id]  [6-<-source-id]
/// ```
///
/// # Errors
/// When a line does not have that form.
pub fn parse_nodes(text: &str) -> Result<ClusterMap, MapError> {
    let mut primaries: Vec<(Shard, Vec<(u16, u16)>)> = Vec::new();
    let mut replicas: Vec<(String, Node)> = Vec::new();
    let mut moving = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let bad = || MapError::new(format!("CLUSTER NODES has a line of an unknown form: {line}"));
        let mut words = line.split_whitespace();
        let id = words.next().ok_or_else(bad)?;
        let (host, port) = endpoint(words.next().ok_or_else(bad)?).ok_or_else(bad)?;
        let flags = words.next().ok_or_else(bad)?;
        let primary_id = words.next().ok_or_else(bad)?;
        let config_epoch = words.nth(2).and_then(|epoch| epoch.parse().ok()).ok_or_else(bad)?;
        let _link = words.next();
        let has = |flag: &str| flags.split(',').any(|word| word == flag);
        if has("noaddr") || has("handshake") {
            continue;
        }
        // `fail?` is one server's suspicion only.
        let node = Node { id: id.to_owned(), host, port, is_failed: has("fail") };
        if has("slave") || has("replica") {
            replicas.push((primary_id.to_owned(), node));
            continue;
        }
        let mut ranges = Vec::new();
        for word in words {
            if let Some(marked) = word.strip_prefix('[') {
                let slot = marked.split('-').next().and_then(|slot| slot.parse().ok()).ok_or_else(bad)?;
                moving.push(slot);
            } else {
                let (first, last) = word.split_once('-').unwrap_or((word, word));
                let range = (first.parse().map_err(|_| bad())?, last.parse().map_err(|_| bad())?);
                ranges.push(checked(range).ok_or_else(bad)?);
            }
        }
        primaries.push((Shard { primary: node, replicas: Vec::new(), config_epoch }, ranges));
    }
    for (primary_id, node) in replicas {
        if let Some((shard, _)) = primaries.iter_mut().find(|(shard, _)| shard.primary.id == primary_id) {
            shard.replicas.push(node);
        }
    }
    let mut map = ClusterMap::new(primaries)?;
    map.moving = moving;
    Ok(map)
}

/// `host:port@bus,name,…`: the name counts, if there is one, as servers that have one announce it on purpose.
fn endpoint(text: &str) -> Option<(String, u16)> {
    let mut parts = text.split(',');
    let address = parts.next()?;
    let name = parts.next().filter(|name| !name.is_empty() && !name.contains('='));
    let address = address.split('@').next()?;
    let (host, port) = address.rsplit_once(':')?;
    Some((name.unwrap_or(host).to_owned(), port.parse().ok()?))
}

fn checked((first, last): (u16, u16)) -> Option<(u16, u16)> {
    (first <= last && usize::from(last) < SLOTS).then_some((first, last))
}

/// Reads the reply to CLUSTER SLOTS: ranges, each with its primary and the replicas behind it.
///
/// # Errors
/// When it does not have that form.
pub fn parse_slots(reply: &Value) -> Result<ClusterMap, MapError> {
    let bad = || MapError::new("the reply to CLUSTER SLOTS has an unknown form");
    let mut shards: Vec<(Shard, Vec<(u16, u16)>)> = Vec::new();
    for range in reply.as_elements().ok_or_else(bad)? {
        let [first, last, primary, replicas @ ..] = range.as_elements().ok_or_else(bad)? else { return Err(bad()) };
        let ends = (number(first).ok_or_else(bad)?, number(last).ok_or_else(bad)?);
        let ends = checked(ends).ok_or_else(bad)?;
        let primary = slots_node(primary).ok_or_else(bad)?;
        let known = shards.iter_mut().find(|(shard, _)| same_node(&shard.primary, &primary));
        if let Some((_, ranges)) = known {
            ranges.push(ends);
            continue;
        }
        let replicas = replicas.iter().map(slots_node).collect::<Option<Vec<_>>>().ok_or_else(bad)?;
        shards.push((Shard { primary, replicas, config_epoch: 0 }, vec![ends]));
    }
    ClusterMap::new(shards)
}

/// Before version 4 there were no ids.
fn same_node(left: &Node, right: &Node) -> bool {
    left.id == right.id && left.port == right.port && left.host == right.host
}

/// `[host or null, port, id, [metadata]]`. With `?` the endpoint is not known to the server.
fn slots_node(value: &Value) -> Option<Node> {
    let [host, port, rest @ ..] = value.as_elements()? else { return None };
    let host = match host.as_bytes() {
        None | Some(b"?") => String::new(),
        Some(host) => String::from_utf8(host.to_vec()).ok()?,
    };
    let id = rest.first().and_then(Value::as_bytes).unwrap_or_default();
    Some(Node { id: String::from_utf8(id.to_vec()).ok()?, host, port: number(port)?, is_failed: false })
}

/// Reads the reply to CLUSTER SHARDS, in either protocol version.
///
/// # Errors
/// When it does not have that form.
pub fn parse_shards(reply: &Value) -> Result<ClusterMap, MapError> {
    let bad = || MapError::new("the reply to CLUSTER SHARDS has an unknown form");
    let mut shards = Vec::new();
    for value in reply.as_elements().ok_or_else(bad)? {
        let fields = pairs(value).ok_or_else(bad)?;
        let slots = field(&fields, "slots").and_then(Value::as_elements).ok_or_else(bad)?;
        let mut ranges = Vec::new();
        for ends in slots.chunks(2) {
            let [first, last] = ends else { return Err(bad()) };
            let ends = (number(first).ok_or_else(bad)?, number(last).ok_or_else(bad)?);
            ranges.push(checked(ends).ok_or_else(bad)?);
        }
        let mut shard = Shard::default();
        let mut has_primary = false;
        for node in field(&fields, "nodes").and_then(Value::as_elements).ok_or_else(bad)? {
            let fields = pairs(node).ok_or_else(bad)?;
            let (node, is_primary) = shards_node(&fields).ok_or_else(bad)?;
            // After a failover the old primary is listed as one until it has come back.
            if is_primary && (!has_primary || shard.primary.is_failed) {
                if has_primary {
                    shard.replicas.push(std::mem::take(&mut shard.primary));
                }
                shard.primary = node;
                has_primary = true;
            } else {
                shard.replicas.push(node);
            }
        }
        if has_primary {
            shards.push((shard, ranges));
        }
    }
    ClusterMap::new(shards)
}

fn shards_node(fields: &[(&Value, &Value)]) -> Option<(Node, bool)> {
    let text = |name: &str| {
        let bytes = field(fields, name).and_then(Value::as_bytes)?;
        String::from_utf8(bytes.to_vec()).ok().filter(|text| !text.is_empty() && text != "?")
    };
    let host = text("endpoint").or_else(|| text("ip")).unwrap_or_default();
    let port = field(fields, "port").or_else(|| field(fields, "tls-port")).and_then(number)?;
    // What is `loading` does not serve either.
    let is_failed = text("health").is_some_and(|health| health != "online");
    let is_primary = text("role").is_some_and(|role| role == "master" || role == "primary");
    Some((Node { id: text("id").unwrap_or_default(), host, port, is_failed }, is_primary))
}

/// The pairs of a map, or of the flat array that it is in RESP2.
fn pairs(value: &Value) -> Option<Vec<(&Value, &Value)>> {
    if let Value::Map(pairs) = value {
        return Some(pairs.iter().map(|(name, value)| (name, value)).collect());
    }
    let elements = value.as_elements()?;
    Some(elements.as_chunks::<2>().0.iter().map(|[name, value]| (name, value)).collect())
}

fn field<'a>(pairs: &[(&Value, &'a Value)], name: &str) -> Option<&'a Value> {
    pairs.iter().find(|(field, _)| field.as_bytes() == Some(name.as_bytes())).map(|(_, value)| *value)
}

fn number(value: &Value) -> Option<u16> {
    match value {
        Value::Int(number) => u16::try_from(*number).ok(),
        other => std::str::from_utf8(other.as_bytes()?).ok()?.parse().ok(),
    }
}
