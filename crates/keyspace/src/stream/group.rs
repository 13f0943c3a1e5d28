//! Consumer groups: how far a group has read, and which entries each consumer has got and not acknowledged.
//!
//! A pending entry is kept once, in the group, with the number of its consumer; the consumer keeps the ids alone.

use super::StreamId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Which consumer of its group; stays the same as long as the consumer is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConsumerId(u32);

/// An entry that was delivered and not acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pending {
    /// Who has it.
    pub consumer: ConsumerId,
    /// When it was last delivered, Unix ms.
    pub delivered_ms: i64,
    /// How often.
    pub deliveries: u64,
}

/// A consumer of a group.
#[derive(Clone, Debug)]
pub struct Consumer {
    name: Arc<[u8]>,
    /// When it last asked for something, Unix ms.
    pub seen_ms: i64,
    /// When it last got something, Unix ms; -1: never.
    pub active_ms: i64,
    pending: BTreeSet<StreamId>,
}

impl Consumer {
    /// Its name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Ids of what it has got and not acknowledged.
    pub fn pending(&self) -> &BTreeSet<StreamId> {
        &self.pending
    }
}

/// A consumer group.
///
/// Invariants: every pending entry's consumer is there and has its id; every id of a consumer is pending under it.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// The last id delivered.
    pub last_id: StreamId,
    /// Entries ever read, where that is known.
    pub entries_read: Option<i64>,
    pending: BTreeMap<StreamId, Pending>,
    consumers: Vec<Option<Consumer>>,
    names: BTreeMap<Arc<[u8]>, ConsumerId>,
    /// Free places in `consumers`.
    free: Vec<ConsumerId>,
}

impl Group {
    /// A group without consumers.
    pub fn new(last_id: StreamId, entries_read: Option<i64>) -> Group {
        Group { last_id, entries_read, ..Group::default() }
    }

    /// All pending entries.
    pub fn pending(&self) -> &BTreeMap<StreamId, Pending> {
        &self.pending
    }

    /// A consumer by its name.
    pub fn find_consumer(&self, name: &[u8]) -> Option<ConsumerId> {
        self.names.get(name).copied()
    }

    /// A consumer.
    pub fn consumer(&self, id: ConsumerId) -> Option<&Consumer> {
        self.consumers.get(id.0 as usize)?.as_ref()
    }

    /// A consumer, to change.
    pub fn consumer_mut(&mut self, id: ConsumerId) -> Option<&mut Consumer> {
        self.consumers.get_mut(id.0 as usize)?.as_mut()
    }

    /// Name of a consumer.
    pub fn consumer_name(&self, id: ConsumerId) -> &[u8] {
        self.consumer(id).map_or(&[], Consumer::name)
    }

    /// Consumers by name.
    pub fn consumers(&self) -> impl Iterator<Item = &Consumer> {
        self.names.values().filter_map(|id| self.consumer(*id))
    }

    /// How many consumers.
    pub fn consumers_len(&self) -> usize {
        self.names.len()
    }

    /// Adds a consumer seen now. `None`: there is one of that name.
    pub fn add_consumer(&mut self, name: &[u8], now_ms: i64) -> Option<ConsumerId> {
        if self.names.contains_key(name) {
            return None;
        }
        let name: Arc<[u8]> = name.into();
        let consumer = Consumer { name: name.clone(), seen_ms: now_ms, active_ms: -1, pending: BTreeSet::new() };
        let id = match self.free.pop() {
            Some(id) => id,
            None => {
                let id = ConsumerId(u32::try_from(self.consumers.len()).ok()?);
                self.consumers.push(None);
                id
            }
        };
        if let Some(place) = self.consumers.get_mut(id.0 as usize) {
            *place = Some(consumer);
        }
        self.names.insert(name, id);
        Some(id)
    }

    /// Removes a consumer with what is pending under it; gives how much that was. `None`: there is no such consumer.
    pub fn remove_consumer(&mut self, name: &[u8]) -> Option<usize> {
        let id = self.names.remove(name)?;
        let consumer = self.consumers.get_mut(id.0 as usize)?.take()?;
        self.free.push(id);
        for entry in &consumer.pending {
            self.pending.remove(entry);
        }
        Some(consumer.pending.len())
    }

    /// Makes an entry pending under a consumer, whoever had it.
    pub fn assign(&mut self, entry: StreamId, pending: Pending) {
        let old = self.pending.insert(entry, pending);
        if let Some(old) = old {
            if old.consumer == pending.consumer {
                return;
            }
            if let Some(consumer) = self.consumer_mut(old.consumer) {
                consumer.pending.remove(&entry);
            }
        }
        if let Some(consumer) = self.consumer_mut(pending.consumer) {
            consumer.pending.insert(entry);
        }
    }

    /// Ends an entry's being pending. False: it was not.
    pub fn acknowledge(&mut self, entry: StreamId) -> bool {
        let Some(pending) = self.pending.remove(&entry) else { return false };
        if let Some(consumer) = self.consumer_mut(pending.consumer) {
            consumer.pending.remove(&entry);
        }
        true
    }

    /// Bytes of memory, roughly.
    pub fn memory_bytes(&self) -> usize {
        let id = size_of::<StreamId>();
        let pending = self.pending.len() * (2 * id + size_of::<Pending>()) * 4 / 3;
        let names: usize = self.names.keys().map(|name| name.len() + 16).sum();
        size_of::<Group>() + pending + names + self.consumers.len() * (size_of::<Option<Consumer>>() + 24)
    }

    /// Checks every invariant: for tests and fuzzing. Panics where one is broken.
    pub fn check(&self) {
        for (entry, pending) in &self.pending {
            let has = self.consumer(pending.consumer).is_some_and(|consumer| consumer.pending.contains(entry));
            assert!(has, "a pending entry has its consumer");
        }
        let ids: usize = self.consumers().map(|consumer| consumer.pending.len()).sum();
        assert_eq!(ids, self.pending.len(), "ids of consumers are pending");
        assert_eq!(self.names.len() + self.free.len(), self.consumers.len(), "consumers have names");
    }
}
