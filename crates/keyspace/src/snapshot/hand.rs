//! Handing over: a writer saves what an entry held before it changes it.

use super::queue::Block;
use super::{Snapshot, record};
use crate::entry::Entry;
use crate::lockset::LockSet;
use crate::slot::{DbIndex, Slot};
use crate::table::At;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Bytes that a thread gathers before it sends them.
const SEND_BYTES: usize = 16 << 10;

/// Records by database, not sent yet.
#[derive(Default)]
pub(super) struct Blocks {
    by_db: Vec<Block>,
    bytes: usize,
}

impl Blocks {
    /// Adds the record of an entry.
    pub(super) fn add(&mut self, db: DbIndex, write: impl FnOnce(&mut Vec<u8>)) -> usize {
        let at = match self.by_db.iter().position(|block| block.db == db) {
            Some(at) => at,
            None => {
                self.by_db.push(Block { db, bytes: Vec::new() });
                self.by_db.len() - 1
            }
        };
        let Some(block) = self.by_db.get_mut(at) else { return 0 };
        let before = block.bytes.len();
        write(&mut block.bytes);
        let added = block.bytes.len() - before;
        self.bytes += added;
        added
    }

    /// Bytes of all.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes all that is there.
    pub(super) fn into_blocks(self) -> Vec<Block> {
        self.by_db
    }
}

/// A thread's connection to the snapshot that runs, kept from its first hand-over on.
pub(crate) struct Hand {
    snapshot: Arc<Snapshot>,
    /// Shared with the snapshot, which takes the rest at its end.
    blocks: Arc<Mutex<Blocks>>,
}

impl Hand {
    fn new(snapshot: Arc<Snapshot>) -> Hand {
        let blocks = Arc::new(Mutex::new(Blocks::default()));
        snapshot.hands.lock().push(blocks.clone());
        Hand { snapshot, blocks }
    }

    fn give(&self, slot: Slot, current: DbIndex, entry: &Entry) {
        let snapshot = &self.snapshot;
        if snapshot.is_aborted() || !snapshot.is_in_scope(slot) {
            return;
        }
        let db = snapshot.origin(current);
        let mut blocks = self.blocks.lock();
        let added = blocks.add(db, |out| record::write(out, entry, &snapshot.form));
        snapshot.handed_over_bytes.fetch_add(added as u64, Ordering::Relaxed);
        snapshot.keys_done.fetch_add(1, Ordering::Relaxed);
        if blocks.bytes() >= SEND_BYTES {
            let full = std::mem::take(&mut *blocks);
            drop(blocks);
            full.into_blocks().into_iter().for_each(|block| snapshot.queue.push(block));
        }
    }
}

impl LockSet {
    /// Saves the entry at `at` of a held slot unless it has been saved already. Called before every change while a
    /// snapshot runs.
    #[cold]
    #[inline(never)]
    pub(crate) fn hand_over(&mut self, slot: Slot, db: DbIndex, at: At) {
        let keyspace = self.keyspace().clone();
        let parity = keyspace.snapshots.parity();
        if self.slot(slot).db(db).is_none_or(|part| part.table().at(at).parity() == parity) {
            return;
        }
        let epoch = keyspace.snapshots.epoch();
        let hand = match self.hand.take() {
            Some(hand) if hand.snapshot.epoch == epoch => Some(hand),
            _ => keyspace.snapshots.running().map(Hand::new),
        };
        if let Some(part) = self.slot_mut(slot).db_mut(db) {
            let mut place = part.table.place_at(at);
            if let Some(hand) = &hand {
                hand.give(slot, db, place.get());
            }
            place.get_mut().set_parity(parity);
        }
        self.hand = hand;
    }

    /// Whether a snapshot wants the entry of `key` before it changes, and it is too large to be written by a worker:
    /// then [`super::Snapshots::ask_for`] it. The slot is held. A reader, which tells its time in Unix ms, changes only
    /// what has ended by then.
    pub fn is_too_large_to_hand_over(
        &self,
        slot: Slot,
        db: DbIndex,
        hash: u64,
        key: &[u8],
        reads_at_ms: Option<i64>,
    ) -> bool {
        if !self.keyspace().snapshots.is_active() {
            return false;
        }
        let Some(entry) = self.slot(slot).db(db).and_then(|part| part.table().find(hash, key)) else { return false };
        let changes = reads_at_ms.is_none_or(|now_ms| entry.expire_at_ms().is_some_and(|at_ms| at_ms <= now_ms));
        changes && self.keyspace().snapshots.wants_large(entry)
    }
}
