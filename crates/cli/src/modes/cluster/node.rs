//! Nodes of a cluster, as each tells about itself in CLUSTER NODES.

use resp::Value;

use super::{Level, SLOTS, log};
use crate::modes::info_number;
use crate::options::{Options, Protocol};
use crate::output::{Exit, Outcome, fail, text};
use crate::session::{Report, Session};

/// A node that answers.
pub(super) struct Node {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) session: Session,
    pub(super) id: String,
    /// Without `myself`.
    pub(super) flags: Vec<String>,
    /// The id of its primary.
    pub(super) replicates: Option<String>,
    /// Whether it has each slot.
    pub(super) slots: Vec<bool>,
    /// Slots that it gives away, and the nodes that get them.
    pub(super) migrating: Vec<(String, String)>,
    /// Slots that it takes over, and the nodes that had them.
    pub(super) importing: Vec<(String, String)>,
    /// The epoch of its slots.
    pub(super) epoch: u64,
}

/// A line of CLUSTER NODES.
struct Line<'a> {
    id: &'a str,
    host: String,
    port: u16,
    flags: Vec<String>,
    primary: Option<&'a str>,
    epoch: u64,
    slots: Vec<&'a str>,
}

impl Node {
    pub(super) fn is_primary(&self) -> bool {
        !self.flags.iter().any(|flag| flag == "slave")
    }

    /// `host:port`.
    pub(super) fn place(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    pub(super) fn slot_count(&self) -> usize {
        self.slots.iter().filter(|has| **has).count()
    }

    /// `[0-5460],[7000]`.
    pub(super) fn slot_ranges(&self) -> String {
        let mut ranges = Vec::new();
        let mut start = None;
        for slot in 0..=self.slots.len() {
            let has = self.slots.get(slot).copied().unwrap_or(false);
            match (start, has) {
                (None, true) => start = Some(slot),
                (Some(first), false) => {
                    let last = slot - 1;
                    ranges.push(if first == last { format!("[{first}]") } else { format!("[{first}-{last}]") });
                    start = None;
                }
                _ => {}
            }
        }
        ranges.join(",")
    }

    /// What CLUSTER NODES says on this node.
    fn table(&mut self) -> Outcome<Result<String, String>> {
        Ok(match self.session.call(&["CLUSTER", "NODES"])? {
            Value::Error(reason) => Err(text(&reason).into_owned()),
            value => Ok(text(value.as_bytes().unwrap_or_default()).into_owned()),
        })
    }

    /// Who has which slots as this node sees it, in a form that is equal if the view is.
    pub(super) fn view(&mut self) -> Outcome<Vec<(String, Vec<String>)>> {
        let table = self.table()?.unwrap_or_default();
        let mut view: Vec<_> = lines(&table)
            .map(|line| {
                let mut slots: Vec<_> =
                    line.slots.iter().filter(|slots| !slots.starts_with('[')).map(|slots| slots.to_string()).collect();
                slots.sort_unstable();
                (line.id.to_string(), slots)
            })
            .filter(|(_, slots)| !slots.is_empty())
            .collect();
        view.sort_unstable();
        Ok(view)
    }
}

/// The nodes of the cluster that the one at `host:port` belongs to, that one first.
pub(super) fn load(options: &Options, host: &str, port: u16) -> Outcome<Vec<Node>> {
    let Some(mut first) = connect(options, host, port)? else {
        return Err(Exit(1));
    };
    let place = first.place();
    let info = first.session.call(&["INFO", "cluster"])?;
    if info_number(&text(info.as_bytes().unwrap_or_default()), "cluster_enabled") != Some(1) {
        log(Level::Error, &format!("[ERR] Node {place} is not configured as a cluster node.\n"))?;
        return Err(Exit(1));
    }
    let table = match first.table()? {
        Ok(table) => table,
        Err(reason) => return fail(format_args!("Node {place} replied with error:\n{reason}")),
    };
    read_myself(&mut first, &table);
    let mut nodes = vec![first];
    for line in lines(&table) {
        let unusable = |flag: &String| matches!(flag.as_str(), "myself" | "noaddr" | "disconnected" | "fail");
        if line.flags.iter().any(unusable) || line.host.is_empty() || line.port == 0 {
            continue;
        }
        let Some(mut node) = connect(options, &line.host, line.port)? else {
            continue;
        };
        match node.table()? {
            Ok(table) => {
                read_myself(&mut node, &table);
                nodes.push(node);
            }
            Err(_) => log(Level::Error, &format!("[ERR] Unable to load info for node {}\n", node.place()))?,
        }
    }
    for node in &nodes {
        if let Some(primary) = node.replicates.as_ref().filter(|id| !nodes.iter().any(|node| node.id == **id)) {
            let place = node.place();
            log(Level::Warning, &format!("*** WARNING: {place} claims to be slave of unknown node ID {primary}.\n"))?;
        }
    }
    Ok(nodes)
}

fn connect(options: &Options, host: &str, port: u16) -> Outcome<Option<Node>> {
    let mut options = options.clone();
    options.server.host = host.to_string();
    options.server.port = port;
    options.server.socket = None;
    options.server.database = 0;
    options.protocol = Protocol::Default;
    let mut session = Session::new(options);
    if !session.connect(Report::Loud)? {
        return Ok(None);
    }
    Ok(Some(Node {
        host: host.to_string(),
        port,
        session,
        id: String::new(),
        flags: Vec::new(),
        replicates: None,
        slots: vec![false; SLOTS],
        migrating: Vec::new(),
        importing: Vec::new(),
        epoch: 0,
    }))
}

/// Takes over what a node says about itself.
fn read_myself(node: &mut Node, table: &str) {
    let Some(line) = lines(table).find(|line| line.flags.iter().any(|flag| flag == "myself")) else {
        return;
    };
    node.id = line.id.to_string();
    node.epoch = line.epoch;
    node.replicates = line.flags.iter().any(|flag| flag == "slave").then(|| line.primary.unwrap_or("-").to_string());
    node.flags = line.flags.into_iter().filter(|flag| flag != "myself").collect();
    for slots in line.slots {
        if let Some(open) = slots.strip_prefix('[') {
            let open = open.trim_end_matches(']');
            if let Some((slot, to)) = open.split_once("->-") {
                node.migrating.push((slot.to_string(), to.to_string()));
            } else if let Some((slot, from)) = open.split_once("-<-") {
                node.importing.push((slot.to_string(), from.to_string()));
            }
            continue;
        }
        let (first, last) = slots.split_once('-').unwrap_or((slots, slots));
        if let (Ok(first), Ok(last)) = (first.parse::<usize>(), last.parse::<usize>())
            && let Some(range) = node.slots.get_mut(first..last.saturating_add(1))
        {
            range.fill(true);
        }
    }
}

/// `id host:port@bus,name flags primary ping pong epoch link slots…`.
fn lines(table: &str) -> impl Iterator<Item = Line<'_>> {
    table.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (id, place, flags, primary) = (words.next()?, words.next()?, words.next()?, words.next()?);
        let place = place.split([',', '@']).next()?;
        let (host, port) = place.rsplit_once(':')?;
        Some(Line {
            id,
            host: host.to_string(),
            port: port.parse().ok()?,
            flags: flags.split(',').map(str::to_string).collect(),
            primary: (primary != "-").then_some(primary),
            epoch: words.nth(2).and_then(|epoch| epoch.parse().ok()).unwrap_or(0),
            slots: words.skip(1).filter(|word| !word.is_empty()).collect(),
        })
    })
}
