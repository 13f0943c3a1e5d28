//! What a stock Redis or Valkey Cluster says about itself.
//!
//! Three commands tell who owns which slots, in three forms: CLUSTER SLOTS (oldest, everywhere), CLUSTER SHARDS (7.0 and
//! later) and CLUSTER NODES (a text; the only one that also tells config epochs and which slots are just moving). [`parse`]
//! reads all three to one [`ClusterMap`]; [`redirect`] reads what a server says when asked for a slot that it does not own;
//! [`refresh`] decides when to ask again, and whom to believe.

pub mod follow;
pub mod parse;
pub mod redirect;
pub mod refresh;

#[cfg(test)]
mod tests;

pub use parse::{MapError, parse_nodes, parse_shards, parse_slots};
pub use redirect::{Redirect, parse_redirect};

use crate::cursor::Fingerprint;

/// Slots of a Redis Cluster.
pub const SLOTS: usize = 16384;
/// The number of no shard.
pub const NO_SHARD: u16 = u16::MAX;

/// A server of a cluster.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Node {
    /// Its id, 40 hexadecimal digits.
    pub id: String,
    /// Address or name of its machine; empty when the server that told does not know its own.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Whether the others take it for dead or it does not serve.
    pub is_failed: bool,
}

impl Node {
    /// `host:port`, as redirections write it.
    pub fn address(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

/// Servers that hold the same slots.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Shard {
    /// The one that takes writes.
    pub primary: Node,
    /// The others.
    pub replicas: Vec<Node>,
    /// The primary's config epoch; 0 where the form does not tell.
    pub config_epoch: u64,
}

/// Who owns which slots.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClusterMap {
    /// Index in `shards` of each slot's owner, or [`NO_SHARD`].
    pub owners: Vec<u16>,
    /// By ascending ids of their primaries.
    pub shards: Vec<Shard>,
    /// Slots that the server that told is just moving or taking over.
    pub moving: Vec<u16>,
}

impl ClusterMap {
    /// A map of shards and the slots of each, as ranges with both ends. Shards without slots are left out.
    pub(crate) fn new(mut shards: Vec<(Shard, Vec<(u16, u16)>)>) -> Result<ClusterMap, MapError> {
        shards.retain(|(_, ranges)| !ranges.is_empty());
        shards.sort_by(|left, right| left.0.primary.id.cmp(&right.0.primary.id));
        let mut owners = vec![NO_SHARD; SLOTS];
        for (index, (shard, ranges)) in shards.iter().enumerate() {
            let index = u16::try_from(index).map_err(|_| MapError::new("too many shards"))?;
            for (first, last) in ranges {
                let range = usize::from(*first)..=usize::from(*last);
                let slots = owners.get_mut(range).ok_or(MapError::new("a slot is out of range"))?;
                for owner in slots {
                    // Two primaries may claim a slot while the news spreads: the later config epoch is right.
                    let other = shards.get(usize::from(*owner)).map_or(0, |(other, _)| other.config_epoch);
                    if *owner == NO_SHARD || shard.config_epoch > other {
                        *owner = index;
                    }
                }
            }
        }
        Ok(ClusterMap { owners, shards: shards.into_iter().map(|(shard, _)| shard).collect(), moving: Vec::new() })
    }

    /// The owner of a slot.
    pub fn owner(&self, slot: u16) -> Option<&Shard> {
        self.shards.get(usize::from(*self.owners.get(usize::from(slot))?))
    }

    /// How many slots have an owner.
    pub fn count_owned(&self) -> usize {
        self.owners.iter().filter(|owner| **owner != NO_SHARD).count()
    }

    /// The highest config epoch: of two maps the one with the higher is newer.
    pub fn epoch(&self) -> u64 {
        self.shards.iter().map(|shard| shard.config_epoch).max().unwrap_or(0)
    }

    /// Servers that do not know their own address have the one they were asked at.
    pub fn fill_host(&mut self, asked: &str) {
        for shard in &mut self.shards {
            for node in std::iter::once(&mut shard.primary).chain(&mut shard.replicas) {
                if node.host.is_empty() {
                    asked.clone_into(&mut node.host);
                }
            }
        }
    }

    /// See [`crate::cursor`]: who owns what, since which config epoch.
    pub fn fingerprint(&self) -> Fingerprint {
        // FNV-1a: the same in every proxy.
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut add = |bytes: &[u8]| {
            for byte in bytes {
                hash = (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
            }
        };
        for shard in &self.shards {
            add(shard.primary.id.as_bytes());
            add(&shard.config_epoch.to_le_bytes());
        }
        let mut at = 0;
        for run in self.owners.chunk_by(|left, right| left == right) {
            add(&(at as u64).to_le_bytes());
            run.first().iter().for_each(|owner| add(&owner.to_le_bytes()));
            at += run.len();
        }
        Fingerprint::of(hash)
    }
}
