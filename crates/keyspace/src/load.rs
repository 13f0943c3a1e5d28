//! Putting in entries that come from a file or a primary: no command, so no event, no waiter, no snapshot to heed beyond
//! the entry's generation.

use crate::entry::Entry;
use crate::lockset::LockSet;
use crate::slot::{DbIndex, Slot};

impl LockSet {
    /// Puts an entry into a held slot.
    ///
    /// # Errors
    /// The entry, when its key is there already and it `replaces` none.
    pub fn load_entry(
        &mut self,
        slot: Slot,
        db: DbIndex,
        hash: u64,
        mut entry: Entry,
        replaces: bool,
    ) -> Result<(), Entry> {
        entry.set_parity(self.keyspace().snapshots.parity());
        let snapshots_active = self.keyspace().snapshots.is_active();
        let expiry = entry.expire_at_ms();
        if entry.is_timed() {
            self.keyspace().note_timed();
        }
        let part = self.slot_mut(slot).db_or_new(db);
        if let Some((at, _)) = part.table.position(hash, entry.key()) {
            if !replaces {
                return Err(entry);
            }
            if snapshots_active {
                self.hand_over(slot, db, at);
            }
            let part = self.slot_mut(slot).db_or_new(db);
            if let Some(old) = part.table.remove(hash, entry.key()) {
                if old.is_timed() {
                    part.forget_timed();
                }
                if old.has_expiry() {
                    part.forget_expiry();
                    self.counters.add_expiring(db, -1);
                }
                self.counters.add_keys(db, -1);
            }
        }
        let part = self.slot_mut(slot).db_or_new(db);
        if let Some(at_ms) = expiry {
            part.note_expiry(at_ms);
        }
        if entry.is_timed() {
            part.note_timed(entry.earliest_field_ms());
        }
        part.table.insert_unique(hash, entry);
        if expiry.is_some() {
            self.counters.add_expiring(db, 1);
        }
        self.counters.add_keys(db, 1);
        Ok(())
    }

    /// Asks for the memory where an entry with this hash will lie, if the slot is held.
    #[inline]
    pub fn prefetch_for_loading(&self, slot: Slot, db: DbIndex, hash: u64) {
        if self.holds(slot)
            && let Some(part) = self.slot(slot).db(db)
        {
            part.table.prefetch_bucket(hash);
        }
    }
}
