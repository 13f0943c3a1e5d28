//! The walkers: threads that go over all slots and write what no writer has handed over.
//!
//! A slot's lock is held for a bounded number of entries at a time, and never while a walker waits for the queue. Walkers
//! take part at the gate only while they hold a lock.

use super::hand::Blocks;
use super::queue::Block;
use super::{Snapshot, Wanted, record};
use crate::entry::Entry;
use crate::hashing::hash_key;
use crate::lock::Wake;
use crate::lockset::LockSet;
use crate::slot::{Db, DbIndex, Slot};
use smallvec::SmallVec;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Entries looked at in one hold of a slot's lock.
const HOLD_ENTRIES: usize = 256;
/// Bytes that a walker gathers before it sends them.
const SEND_BYTES: usize = 64 << 10;
/// How long a walker sleeps for a busy slot before it looks again by itself.
const SLOT_PATIENCE: Duration = Duration::from_millis(1);

/// One walker's work in hand.
struct Walker<'s> {
    snapshot: &'s Snapshot,
    blocks: Blocks,
    /// Keys since the last pause of `rdb-key-save-delay`.
    keys: u64,
}

impl Snapshot {
    /// What a walker's thread does.
    pub(super) fn walk(&self, locks: &mut LockSet) {
        if let Some(prepare) = self.prepare_thread {
            prepare();
        }
        let walked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.walk_slots(locks)));
        if walked.is_err() {
            // A bug; the panic hook has logged it. The snapshot fails, and the tags are put right by who runs it.
            locks.recover();
            self.broken.store(true, Ordering::SeqCst);
            self.abort();
        }
        self.queue.end_producer();
    }

    /// Goes over slots until none is left.
    pub(super) fn walk_slots(&self, locks: &mut LockSet) {
        let mut walker = Walker { snapshot: self, blocks: Blocks::default(), keys: 0 };
        let slots = locks.keyspace().space().count();
        loop {
            walker.serve_wanted(locks);
            walker.take_detached();
            let next = self.next_slot.fetch_add(1, Ordering::SeqCst);
            if next >= slots {
                break;
            }
            walker.visit(locks, Slot::new(next));
        }
        // A table that was taken away while the last slots were walked.
        walker.take_detached();
        walker.send();
    }
}

impl Walker<'_> {
    /// Takes a slot, sleeping while it is busy. The gate is entered with it.
    fn lock(locks: &mut LockSet, slot: Slot) {
        loop {
            locks.enter();
            if locks.try_lock(slot) {
                return;
            }
            let is_parked = locks.park(slot, Wake::Thread(std::thread::current()));
            locks.leave();
            if is_parked {
                std::thread::park_timeout(SLOT_PATIENCE);
            }
        }
    }

    fn unlock(locks: &mut LockSet) {
        locks.unlock_all();
        locks.leave();
    }

    /// Saves an entry unless that has been done.
    fn save(&mut self, slot_is_wanted: bool, db: DbIndex, entry: &mut Entry, parity: u64) {
        if entry.parity() == parity {
            return;
        }
        entry.set_parity(parity);
        if slot_is_wanted && !self.snapshot.is_aborted() {
            self.blocks.add(db, |out| record::write(out, entry, &self.snapshot.form));
            self.keys += 1;
        }
    }

    fn visit(&mut self, locks: &mut LockSet, slot: Slot) {
        let parity = locks.keyspace().snapshots.parity();
        let is_wanted = self.snapshot.is_in_scope(slot);
        Walker::lock(locks, slot);
        let origins: SmallVec<[DbIndex; 4]> = locks
            .slot(slot)
            .dbs()
            .filter(|(_, db)| !db.is_empty())
            .map(|(current, _)| self.snapshot.origin(current))
            .collect();
        let mut looked = 0;
        for origin in origins {
            let mut cursor = 0;
            loop {
                let limit = if self.delays() { 1 } else { HOLD_ENTRIES };
                if looked >= limit || self.blocks.bytes() >= SEND_BYTES {
                    Walker::unlock(locks);
                    self.between_holds(locks);
                    looked = 0;
                    Walker::lock(locks, slot);
                }
                let current = self.snapshot.current(origin);
                let Some(db) = locks.slot_mut(slot).db_mut(current) else { break };
                cursor = db.table.scan_mut(cursor, limit - looked, |entry| {
                    looked += 1;
                    self.save(is_wanted, origin, entry, parity);
                    self.blocks.bytes() < SEND_BYTES
                });
                if cursor == 0 {
                    break;
                }
            }
        }
        Walker::unlock(locks);
        if self.blocks.bytes() >= SEND_BYTES || self.delays() {
            self.between_holds(locks);
        }
    }

    fn delays(&self) -> bool {
        self.snapshot.key_delay_us.load(Ordering::Relaxed) != 0 && !self.snapshot.is_aborted()
    }

    /// What may take a while: no lock is held.
    fn between_holds(&mut self, locks: &mut LockSet) {
        if self.blocks.bytes() >= SEND_BYTES {
            self.send();
        }
        if self.delays() {
            self.count();
            let delay_us = self.snapshot.key_delay_us.load(Ordering::Relaxed);
            let keys = std::mem::take(&mut self.keys);
            let pause_us = match u64::try_from(delay_us) {
                Ok(delay_us) => delay_us.saturating_mul(keys),
                Err(_) => keys / u64::from(delay_us.unsigned_abs()),
            };
            if pause_us > 0 {
                self.snapshot.queue.pause(Duration::from_micros(pause_us));
            }
        }
        self.serve_wanted(locks);
    }

    fn count(&mut self) {
        self.snapshot.keys_done.fetch_add(self.keys, Ordering::Relaxed);
    }

    fn send(&mut self) {
        self.count();
        self.keys = 0;
        for block in std::mem::take(&mut self.blocks).into_blocks() {
            self.push(block);
        }
    }

    fn push(&self, block: Block) {
        if !self.snapshot.is_aborted() {
            self.snapshot.queue.push_waiting(block);
        }
    }

    /// Writes entries that clients wait for, and wakes them.
    fn serve_wanted(&mut self, locks: &mut LockSet) {
        while self.snapshot.wanted_len.load(Ordering::Relaxed) > 0 {
            let next = {
                let mut wanted = self.snapshot.wanted.lock();
                let next = wanted.as_mut().and_then(|wanted| wanted.pop_front());
                self.snapshot.wanted_len.store(wanted.as_ref().map_or(0, |wanted| wanted.len()), Ordering::Relaxed);
                next
            };
            let Some(Wanted { slot, db, key, wake }) = next else { return };
            Walker::lock(locks, slot);
            let parity = locks.keyspace().snapshots.parity();
            let current = self.snapshot.current(db);
            let is_wanted = self.snapshot.is_in_scope(slot);
            if let Some(part) = locks.slot_mut(slot).db_mut(current)
                && let Some(mut place) = part.table.find_mut(hash_key(&key), &key)
            {
                self.save(is_wanted, db, place.get_mut(), parity);
            }
            Walker::unlock(locks);
            locks.keyspace().parking.rouse(wake);
            if self.blocks.bytes() >= SEND_BYTES {
                self.send();
            }
        }
    }

    /// Writes and frees tables that were taken away. Nobody else has them.
    fn take_detached(&mut self) {
        loop {
            let next = self.snapshot.detached.lock().pop();
            let Some((origin, db)) = next else { return };
            if let Some(origin) = origin {
                self.write_table(origin, &db);
            }
        }
    }

    fn write_table(&mut self, origin: DbIndex, db: &Db) {
        for entry in db.table.iter() {
            if self.snapshot.is_aborted() {
                return;
            }
            if entry.parity() != self.snapshot.parity {
                self.blocks.add(origin, |out| record::write(out, entry, &self.snapshot.form));
                self.keys += 1;
                if self.blocks.bytes() >= SEND_BYTES {
                    self.send();
                }
            }
        }
    }
}
