//! Which clients remember the values of which keys (CLIENT TRACKING).
//!
//! The table is cut by slot and lies beside the slot's waiters, so that a read is noted and a change is met under the
//! same lock: a change that comes after a read always finds the reader. A slot that nobody tracks costs nothing; with
//! nobody in broadcasting mode a change costs one look at [`TrackingCounts::broadcasts`].
//!
//! Redis: keys are tracked by name alone, whatever their database.

use crate::db::DbView;
use crate::slot::Slot;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// A client that remembers values: its connection, as its worker knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tracker {
    /// Its worker.
    pub worker: u16,
    /// Its connection there; never used for another one.
    pub token: u64,
}

/// The clients that remember one key.
pub type Trackers = SmallVec<[Tracker; 1]>;

/// A key changed that clients remember.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Invalidation {
    /// The key.
    pub key: Vec<u8>,
    /// Who has to be told.
    pub trackers: Trackers,
}

/// A key changed while clients listen to all changes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyChange {
    /// The key.
    pub key: Vec<u8>,
    /// Whether the running command did it; false when its time was over or memory was needed.
    pub by_command: bool,
}

/// What the tables of all slots hold together.
#[derive(Default)]
pub struct TrackingCounts {
    keys: AtomicI64,
    items: AtomicI64,
    broadcasts: AtomicBool,
}

impl TrackingCounts {
    /// Keys that somebody remembers.
    pub fn keys(&self) -> u64 {
        u64::try_from(self.keys.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Pairs of a key and a client.
    pub fn items(&self) -> u64 {
        u64::try_from(self.items.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Whether all changes are to be noted. A client that turned it on has its answer, so later changes see it.
    #[inline]
    pub fn broadcasts(&self) -> bool {
        self.broadcasts.load(Ordering::Relaxed)
    }

    /// Has all changes noted, or not.
    pub fn set_broadcasts(&self, on: bool) {
        self.broadcasts.store(on, Ordering::SeqCst);
    }

    pub(crate) fn add(&self, keys: i64, items: i64) {
        self.keys.fetch_add(keys, Ordering::Relaxed);
        self.items.fetch_add(items, Ordering::Relaxed);
    }
}

impl DbView<'_> {
    /// The key changed while somebody remembers keys of its slot: notes who is to be told.
    #[cold]
    pub(crate) fn invalidate(&mut self, slot: Slot, key: &[u8]) {
        let keyspace = self.locks.keyspace().clone();
        let data = self.locks.slot_mut(slot);
        let Some(extras) = &mut data.extras else { return };
        if let Some(trackers) = extras.untrack(key, &keyspace.tracking) {
            self.events.invalidations.push(Invalidation { key: key.to_vec(), trackers });
        }
    }

    /// The key changed while somebody listens to all changes.
    #[cold]
    pub(crate) fn note_change(&mut self, key: &[u8], by_command: bool) {
        self.events.changes.push(KeyChange { key: key.to_vec(), by_command });
    }

    /// Notes that a client remembers the value of a key: it is told when the key changes.
    pub fn track(&mut self, key: &[u8], tracker: Tracker) {
        let keyspace = self.locks.keyspace().clone();
        let slot = keyspace.slot(key);
        self.locks.slot_mut(slot).extras.get_or_insert_default().track(key, tracker, &keyspace.tracking);
    }

    /// Has clients forget one key of a held slot, to bound the table. False: the slot has none.
    pub fn untrack_any(&mut self, slot: Slot) -> bool {
        let keyspace = self.locks.keyspace().clone();
        let data = self.locks.slot_mut(slot);
        let Some(extras) = &mut data.extras else { return false };
        let found = extras.untrack_any(&keyspace.tracking);
        if extras.is_empty() {
            data.extras = None;
        }
        let is_found = found.is_some();
        self.events.invalidations.extend(found);
        is_found
    }
}
