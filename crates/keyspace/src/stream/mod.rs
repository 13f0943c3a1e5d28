//! The stream object: a log of entries, and consumer groups that read it.
//!
//! ```text
//! Stream (8 bytes) ─► Log     id of first entry ─► block (listpack of entries) ─► …        [`log`], [`block`]
//!                  └► Groups  name ─► Group: last id, pending entries, consumers           [`group`]
//! ```
//!
//! Redis keeps the blocks in a radix tree; here they are in an ordered map, which finds the last one as fast. The blocks
//! themselves are Redis' bytes, so that DUMP and snapshots are copies.
//!
//! A stream may be empty and stay: the key goes only when it is deleted.

mod block;
mod group;
mod id;
mod log;
#[cfg(test)]
mod tests;

pub use block::{Fields, StreamEntry};
pub use group::{Consumer, ConsumerId, Group, Pending};
pub use id::StreamId;
pub use log::{Entries, EntriesBack, InvalidStream, Log, StreamLimits, Trim, TrimTo};

use std::collections::BTreeMap;

/// Consumer groups by name.
pub type Groups = BTreeMap<Box<[u8]>, Group>;

#[derive(Clone, Default)]
struct Parts {
    log: Log,
    groups: Groups,
}

/// A stream: 8 bytes, whatever it holds.
#[repr(transparent)]
#[derive(Clone, Default)]
pub struct Stream(Box<Parts>);

impl Stream {
    /// A stream without entries and groups.
    pub fn new() -> Stream {
        Stream::default()
    }

    /// The entries.
    #[inline]
    pub fn log(&self) -> &Log {
        &self.0.log
    }

    /// The entries, to change.
    #[inline]
    pub fn log_mut(&mut self) -> &mut Log {
        &mut self.0.log
    }

    /// The groups.
    pub fn groups(&self) -> &Groups {
        &self.0.groups
    }

    /// The entries, and the groups to change.
    pub fn parts_mut(&mut self) -> (&Log, &mut Groups) {
        (&self.0.log, &mut self.0.groups)
    }

    /// How many entries a group has not read yet; `None` when that cannot be told.
    #[allow(clippy::cast_possible_wrap)]
    pub fn lag(&self, group: &Group) -> Option<i64> {
        let log = self.log();
        let added = log.entries_added() as i64;
        if added == 0 {
            return Some(0);
        }
        let read = match group.entries_read {
            Some(read) if !log.has_gaps_from(group.last_id) => Some(read),
            _ => log.entries_until(group.last_id),
        };
        read.map(|read| added.wrapping_sub(read))
    }

    /// Bytes of memory behind the pointer, roughly.
    pub fn memory_bytes(&self) -> usize {
        let groups: usize = self.groups().iter().map(|(name, group)| name.len() + 16 + group.memory_bytes()).sum();
        size_of::<Parts>() + self.log().memory_bytes() + groups
    }

    /// How many allocations freeing it costs, roughly.
    pub fn free_effort(&self) -> usize {
        let groups: usize = self.groups().values().map(|group| 1 + group.pending().len()).sum();
        self.log().blocks().len() + groups
    }

    /// Checks every invariant: for tests and fuzzing. Panics where one is broken.
    pub fn check(&self) {
        self.log().check();
        self.groups().values().for_each(Group::check);
    }
}
