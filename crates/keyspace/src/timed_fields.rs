//! Fields of hashes that end: nobody sees one whose time is over.
//!
//! On a primary such fields are removed when their hash is met, and by active expiry; each removal is recorded as HDEL. A
//! replica leaves that to its primary and shows its clients a copy of the hash without them.

use crate::db::DbView;
use crate::entry::Entry;
use crate::events::NotifyClass;
use crate::hash::Hash;
use crate::value::{ValueMut, ValueRef};

impl DbView<'_> {
    /// Whether a hash holds fields whose time is over. Commands of the primary see what the primary saw.
    #[inline]
    pub(crate) fn has_due_fields(&self, key: &[u8]) -> bool {
        self.may_have_timed(key) && self.looks_due(key)
    }

    #[inline(never)]
    fn looks_due(&self, key: &[u8]) -> bool {
        let now_ms = self.now_ms();
        !self.locks.is_primary && matches!(self.get(key), Some(ValueRef::Hash(hash)) if hash.is_due(now_ms))
    }

    /// Removes fields whose time is over, at most so many, and the hash if it is empty then.
    #[cold]
    pub(crate) fn expire_fields(&mut self, key: &[u8], count: usize) {
        if self.hides_expired() || self.locks.is_primary {
            return;
        }
        let now_ms = self.now_ms();
        let Some(ValueMut::Hash(hash)) = self.entry_mut(key).map(Entry::value_mut) else { return };
        let fields = hash.remove_due(now_ms, count);
        let is_empty = hash.is_empty();
        if fields.is_empty() {
            return;
        }
        self.events.expired_fields += fields.len() as u64;
        if self.is_recording() {
            let mut words: Vec<&[u8]> = vec![b"HDEL".as_slice(), key];
            words.extend(fields.iter().map(|field| &**field));
            let db = self.index();
            self.locks.effects.note(db, words.into_iter(), false);
        }
        self.signal_by_server(key);
        self.notify(NotifyClass::HASH, "hexpired", key);
        if is_empty {
            self.remove(key);
            self.notify(NotifyClass::GENERIC, "del", key);
        }
    }

    /// A replica's view of a hash with fields whose time is over.
    #[cold]
    pub(crate) fn read_hash_without_due(&mut self, key: &[u8]) -> Option<&Hash> {
        let now_ms = self.now_ms();
        let Some(ValueRef::Hash(hash)) = self.read(key) else { return None };
        let mut shown = hash.clone();
        shown.remove_due(now_ms, usize::MAX);
        let shown = self.locks.shown_hash.insert(shown);
        (!shown.is_empty()).then_some(&*shown)
    }

    /// A command has set times of fields of a hash; `was_timed`: before it, fields of the hash could end already.
    pub fn field_times_set(&mut self, key: &[u8], was_timed: bool) {
        let Some(ValueRef::Hash(hash)) = self.get(key) else { return };
        let (is_timed, earliest_ms) = (hash.is_timed(), hash.earliest_ms());
        if is_timed {
            self.locks.keyspace().note_timed();
        }
        if let Some(db) = self.part_of(key) {
            if is_timed && !was_timed {
                db.note_timed(earliest_ms);
            } else if let Some(at_ms) = earliest_ms {
                db.note_field_time(at_ms);
            }
        }
    }
}
