//! What a command leaves behind for the executor: notifications, ready keys, counts.

use crate::slot::DbIndex;
use crate::tracking::{Invalidation, KeyChange};

/// Class of a keyspace notification; the bits of `notify-keyspace-events`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NotifyClass(pub u32);

#[allow(missing_docs)]
impl NotifyClass {
    pub const KEYSPACE: NotifyClass = NotifyClass(1 << 0);
    pub const KEYEVENT: NotifyClass = NotifyClass(1 << 1);
    pub const GENERIC: NotifyClass = NotifyClass(1 << 2);
    pub const STRING: NotifyClass = NotifyClass(1 << 3);
    pub const LIST: NotifyClass = NotifyClass(1 << 4);
    pub const SET: NotifyClass = NotifyClass(1 << 5);
    pub const HASH: NotifyClass = NotifyClass(1 << 6);
    pub const ZSET: NotifyClass = NotifyClass(1 << 7);
    pub const EXPIRED: NotifyClass = NotifyClass(1 << 8);
    pub const EVICTED: NotifyClass = NotifyClass(1 << 9);
    pub const STREAM: NotifyClass = NotifyClass(1 << 10);
    pub const KEY_MISS: NotifyClass = NotifyClass(1 << 11);
    pub const MODULE: NotifyClass = NotifyClass(1 << 13);
    pub const NEW: NotifyClass = NotifyClass(1 << 14);

    /// Whether any bit is shared.
    #[inline]
    pub fn intersects(self, other: NotifyClass) -> bool {
        self.0 & other.0 != 0
    }
}

/// One keyspace notification.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Notification {
    /// Name of the event, as `set` or `expired`.
    pub event: &'static str,
    /// The key.
    pub key: Vec<u8>,
    /// Its database.
    pub db: DbIndex,
}

/// Filled while a command runs, emptied by the executor after it.
#[derive(Default)]
pub struct Events {
    /// Classes that somebody wants (from the config), so that nothing is noted in vain.
    pub wanted: NotifyClass,
    /// Notifications in order.
    pub notifications: Vec<Notification>,
    /// Keys that appeared while somebody waits for them.
    pub ready: Vec<(DbIndex, Vec<u8>)>,
    /// Changed keys that clients remember, in order.
    pub invalidations: Vec<Invalidation>,
    /// All keys are gone, so clients are to forget all they remember.
    pub flushed: bool,
    /// All changed keys, while somebody wants to know of all.
    pub changes: Vec<KeyChange>,
    /// Keys changed by the running command (`dirty` in Redis).
    pub dirty: u64,
    /// Look-ups by readers that found the key, in total.
    pub hits: u64,
    /// Look-ups by readers that did not.
    pub misses: u64,
    /// Keys that ended by their expiry, in total.
    pub expired: u64,
    /// Fields of hashes that ended, in total.
    pub expired_fields: u64,
    /// Keys evicted, in total.
    pub evicted: u64,
}

impl Events {
    /// Notes an event of a key if its class is wanted.
    #[inline]
    pub fn notify(&mut self, class: NotifyClass, event: &'static str, db: DbIndex, key: &[u8]) {
        if self.wanted.intersects(class) {
            self.notifications.push(Notification { event, key: key.to_vec(), db });
        }
    }

    /// Whether clients are to be told of changed keys.
    #[inline]
    pub fn has_invalidations(&self) -> bool {
        !self.invalidations.is_empty() || !self.changes.is_empty() || self.flushed
    }

    /// Whether the executor has something to do after the command.
    #[inline]
    pub fn has_work(&self) -> bool {
        !self.notifications.is_empty() || !self.ready.is_empty() || self.has_invalidations()
    }
}
