//! Active expiry: finds keys whose time is over though nobody asks for them.
//!
//! Each database part of a slot knows how many of its keys have an expiry and a lower bound of the earliest one, so a
//! cycle over all slots touches only those in which something may be due, and in them only the entries whose handle
//! says that they have an expiry.

use crate::db::DbView;
use crate::slot::{DbIndex, Slot};

/// Fields of one hash that are removed in one visit.
const FIELDS_PER_VISIT: usize = 256;

/// What a visit to a slot did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Visit {
    /// Keys removed.
    pub expired: usize,
    /// Whether there may be more due here: come back soon.
    pub more: bool,
}

impl DbView<'_> {
    /// Removes keys of `slot` (held) whose time is over, in all databases; looks at about `budget` entries.
    pub fn expire_slot(&mut self, slot: Slot, budget: usize) -> Visit {
        let now_ms = self.now_ms();
        let mine = self.index();
        let due: Vec<DbIndex> =
            self.locks.slot(slot).dbs().filter(|(_, db)| db.is_due(now_ms)).map(|(index, _)| index).collect();
        let mut visit = Visit::default();
        for index in due {
            self.select(index);
            let part = self.expire_part(slot, budget);
            visit.expired += part.expired;
            visit.more |= part.more;
        }
        self.select(mine);
        visit
    }

    fn expire_part(&mut self, slot: Slot, budget: usize) -> Visit {
        let now_ms = self.now_ms();
        let index = self.index();
        let mut keys: Vec<Vec<u8>> = Vec::new();
        let mut hashes: Vec<Vec<u8>> = Vec::new();
        let mut earliest = i64::MAX;
        let keyspace = self.locks.keyspace().clone();
        let Some(db) = self.locks.slot_mut(slot).db_mut(index) else { return Visit::default() };
        let from = db.expire_cursor;
        let has_timed = db.timed > 0;
        let next = db.table.scan(from, budget, |entry| {
            if let Some(at_ms) = entry.expire_at_ms() {
                if at_ms <= now_ms && keyspace.snapshots.wants_large(entry) {
                    // It is saved soon, by a thread that has the time.
                    earliest = now_ms;
                } else if at_ms <= now_ms {
                    keys.push(entry.key().to_vec());
                } else {
                    earliest = earliest.min(at_ms);
                }
            }
            if has_timed && let Some(at_ms) = entry.earliest_field_ms() {
                if at_ms <= now_ms && !keyspace.snapshots.wants_large(entry) {
                    hashes.push(entry.key().to_vec());
                }
                earliest = earliest.min(at_ms.max(now_ms));
            }
        });
        db.expire_cursor = next;
        // The bound is exact only when one scan saw the whole table.
        let whole = from == 0 && next == 0;
        let expired = keys.len();
        for key in keys {
            // Meeting a key whose time is over removes it, with its notification.
            self.exists(&key);
        }
        for key in hashes {
            self.expire_fields(&key, FIELDS_PER_VISIT);
        }
        if let Some(db) = self.locks.slot_mut(slot).db_mut(index) {
            if whole {
                db.next_expiry_ms = if earliest == i64::MAX && db.timed == 0 { 0 } else { earliest };
            } else if next == 0 {
                // A round over a big table is done; the bound is not known, so look again after a while.
                db.next_expiry_ms = now_ms + 100;
            }
        }
        Visit { expired, more: next != 0 }
    }

    /// Whether something in the held slot may be due.
    pub fn is_expiry_due(&self, slot: Slot) -> bool {
        let now_ms = self.now_ms();
        self.locks.slot(slot).dbs().any(|(_, db)| db.is_due(now_ms))
    }
}
