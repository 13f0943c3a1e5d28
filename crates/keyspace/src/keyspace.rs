//! The keyspace: all slots, the gate, the parked, the counters.

use crate::gate::Gate;
use crate::journal::Journal;
use crate::lock::Parking;
use crate::reclaim::Reclaimer;
use crate::slot::{DbIndex, Slot, SlotCell, SlotSpace};
use crate::snapshot::Snapshots;
use crate::tracking::TrackingCounts;
use crossbeam_utils::CachePadded;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

/// Databases whose sizes are counted as they change; those beyond are walked when asked.
pub const COUNTED_DBS: usize = 16;

/// Everything that holds keys. Shared by all threads in an `Arc`; its contents are reached through
/// [`crate::LockSet`]s.
pub struct Keyspace {
    pub(crate) slots: Box<[SlotCell]>,
    /// See [`crate::snapshot`].
    pub snapshots: Snapshots,
    space: SlotSpace,
    databases: u32,
    /// What clients remember of keys.
    pub tracking: TrackingCounts,
    /// See [`Gate`].
    pub gate: Gate,
    /// What changed, for those who read it: AOF, replicas.
    pub journal: Journal,
    /// Where connections wait for slots.
    pub parking: Parking,
    /// Frees what is costly to free.
    pub reclaimer: Reclaimer,
    counters: Mutex<Vec<Arc<CachePadded<Counters>>>>,
    waiter_ids: AtomicU64,
    hides_expired: AtomicBool,
    /// Some hash has, or had, fields that end.
    has_timed: AtomicBool,
}

/// Counts kept by one thread and read by all: the owner stores, nobody else writes.
#[derive(Default)]
pub struct Counters {
    keys: [AtomicI64; COUNTED_DBS],
    expiring: [AtomicI64; COUNTED_DBS],
}

#[inline]
fn add(counter: &AtomicI64, delta: i64) {
    // Only the owner writes, so a load and a store do what an atomic add would, without its cost.
    counter.store(counter.load(Ordering::Relaxed) + delta, Ordering::Relaxed);
}

impl Counters {
    /// Notes that keys came (or went, negative) in a database.
    #[inline]
    pub(crate) fn add_keys(&self, db: DbIndex, delta: i64) {
        if let Some(counter) = self.keys.get(db.0 as usize) {
            add(counter, delta);
        }
    }

    /// Notes that keys with expiry came or went.
    #[inline]
    pub(crate) fn add_expiring(&self, db: DbIndex, delta: i64) {
        if let Some(counter) = self.expiring.get(db.0 as usize) {
            add(counter, delta);
        }
    }
}

impl Keyspace {
    /// An empty keyspace of `databases` databases.
    pub fn new(space: SlotSpace, databases: u32) -> Arc<Keyspace> {
        Arc::new(Keyspace {
            slots: (0..space.count()).map(|_| SlotCell::default()).collect(),
            snapshots: Snapshots::default(),
            space,
            databases,
            tracking: TrackingCounts::default(),
            gate: Gate::default(),
            journal: Journal::default(),
            parking: Parking::default(),
            reclaimer: Reclaimer::default(),
            counters: Mutex::new(Vec::new()),
            waiter_ids: AtomicU64::new(1),
            hides_expired: AtomicBool::new(false),
            has_timed: AtomicBool::new(false),
        })
    }

    /// How keys are spread.
    pub fn space(&self) -> SlotSpace {
        self.space
    }

    /// How many databases there are.
    pub fn databases(&self) -> u32 {
        self.databases
    }

    /// The slot of a key.
    #[inline]
    pub fn slot(&self, key: &[u8]) -> Slot {
        self.space.slot(key)
    }

    /// All slots.
    pub fn slots(&self) -> impl Iterator<Item = Slot> + use<> {
        (0..self.space.count()).map(Slot::new)
    }

    /// A number larger than all before: the order in which blocked clients arrived.
    pub fn next_waiter_id(&self) -> u64 {
        self.waiter_ids.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether keys whose time is over are hidden from commands rather than removed: on a replica, whose primary says when
    /// they go.
    #[inline]
    pub fn hides_expired(&self) -> bool {
        self.hides_expired.load(Ordering::Relaxed)
    }

    /// Sets what [`Keyspace::hides_expired`] tells. `locks` must have the gate closed: a command sees one or the other.
    ///
    /// # Panics
    /// When the gate is open: a bug in the caller.
    pub fn set_hides_expired(&self, locks: &crate::LockSet, hides: bool) {
        assert!(locks.is_alone(), "the rule changes behind the closed gate");
        self.hides_expired.store(hides, Ordering::SeqCst);
    }

    /// Counters for a thread that will change keys.
    pub(crate) fn register_counters(&self) -> Arc<CachePadded<Counters>> {
        let counters = Arc::new(CachePadded::new(Counters::default()));
        self.counters.lock().push(counters.clone());
        counters
    }

    /// Keys in a database and how many of them have an expiry; `None` for databases that are not counted.
    pub fn counted(&self, db: DbIndex) -> Option<(u64, u64)> {
        let index = db.0 as usize;
        if index >= COUNTED_DBS {
            return None;
        }
        let all = self.counters.lock();
        let keys: i64 = all.iter().map(|counters| counters.keys[index].load(Ordering::Relaxed)).sum();
        let expiring: i64 = all.iter().map(|counters| counters.expiring[index].load(Ordering::Relaxed)).sum();
        Some((u64::try_from(keys).unwrap_or(0), u64::try_from(expiring).unwrap_or(0)))
    }

    /// Notes that a hash has fields that end.
    pub(crate) fn note_timed(&self) {
        self.has_timed.store(true, Ordering::Relaxed);
    }

    /// Whether some key, or field of a hash, may have an expiry; false only when none has.
    pub fn may_expire(&self) -> bool {
        if self.databases as usize > COUNTED_DBS {
            return true;
        }
        if self.has_timed.load(Ordering::Relaxed) {
            return true;
        }
        let all = self.counters.lock();
        // Threads count apart, so a key may have come on one and gone on another: only the sums mean something.
        (0..COUNTED_DBS)
            .any(|index| all.iter().map(|counters| counters.expiring[index].load(Ordering::Relaxed)).sum::<i64>() != 0)
    }

    /// Whose the slot is, as a hint: it may change at any moment. See [`crate::LockSet::tenure`].
    pub fn tenure_hint(&self, slot: Slot) -> crate::slot::Tenure {
        crate::slot::Tenure::from_bits(self.slots[slot.index()].tenure.load(Ordering::Relaxed))
    }

    /// Prefetches the slot's lock and table head.
    #[inline]
    pub fn prefetch_slot(&self, slot: Slot) {
        crate::memory::prefetch(std::ptr::from_ref(&self.slots[slot.index()]).cast());
    }
}
