//! Clients that wait for a key: blocked on it, or watching it.

use crate::slot::DbIndex;
use crate::tracking::{Invalidation, Tracker, Trackers, TrackingCounts};
use hashbrown::HashMap;
use resp::OwnedArgs;
use smallvec::SmallVec;
use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

const WAITING: u8 = 0;
const CLAIMED: u8 = 1;
const DONE: u8 = 2;

/// A blocked command: which client waits, and what to run when its key is ready.
///
/// It may hang in several slots at once; whoever wants to end it (a push, a timeout, a kill) claims it first.
pub struct Waiter {
    /// Order of arrival.
    pub id: u64,
    /// The client's worker.
    pub worker: u16,
    /// The client's connection, as its worker knows it.
    pub token: u64,
    /// The command, as an index into the command table.
    pub command: u16,
    /// Its arguments.
    pub args: OwnedArgs,
    /// Its database.
    pub db: DbIndex,
    /// Whether the client speaks RESP3.
    pub resp3: bool,
    /// Whose rights it runs by; what it is, its worker knows.
    pub owner: Option<Arc<dyn Any + Send + Sync>>,
    state: AtomicU8,
}

impl Waiter {
    /// A waiter that nobody has claimed.
    pub fn new(
        id: u64,
        worker: u16,
        token: u64,
        command: u16,
        args: OwnedArgs,
        db: DbIndex,
        resp3: bool,
    ) -> Arc<Waiter> {
        Arc::new(Waiter { id, worker, token, command, args, db, resp3, owner: None, state: AtomicU8::new(WAITING) })
    }

    /// Takes the right to serve or end it. False: somebody else has it, or it is done.
    pub fn claim(&self) -> bool {
        self.state.compare_exchange(WAITING, CLAIMED, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Gives the claim back: it goes on waiting, unless its client has gone away meanwhile.
    pub fn release(&self) {
        let _ = self.state.compare_exchange(CLAIMED, WAITING, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Ends it: its places in slots are dropped when they are met.
    pub fn finish(&self) {
        self.state.store(DONE, Ordering::Release);
    }

    /// Whether it has ended.
    pub fn is_done(&self) -> bool {
        self.state.load(Ordering::Acquire) == DONE
    }
}

/// Set when a watched key changes; shared by all keys of one client's WATCH.
pub type WatchFlag = Arc<AtomicBool>;

/// A key in a database.
type DbKey = (DbIndex, Box<[u8]>);

/// What is absent from nearly all slots.
#[derive(Default)]
pub struct Extras {
    waiters: HashMap<DbKey, VecDeque<Arc<Waiter>>, foldhash::fast::RandomState>,
    watchers: HashMap<DbKey, Vec<WatchFlag>, foldhash::fast::RandomState>,
    tracked: HashMap<Box<[u8]>, Trackers, foldhash::fast::RandomState>,
}

impl Extras {
    /// Whether nobody waits, watches or remembers.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiters.is_empty() && self.watchers.is_empty() && self.tracked.is_empty()
    }

    /// Whether somebody remembers a key of the slot.
    #[inline]
    pub(crate) fn is_tracking(&self) -> bool {
        !self.tracked.is_empty()
    }

    /// Notes that a client remembers a key.
    pub(crate) fn track(&mut self, key: &[u8], tracker: Tracker, counts: &TrackingCounts) {
        match self.tracked.get_mut(key) {
            Some(trackers) if trackers.contains(&tracker) => {}
            Some(trackers) => {
                trackers.push(tracker);
                counts.add(0, 1);
            }
            None => {
                self.tracked.insert(key.into(), SmallVec::from_slice(&[tracker]));
                counts.add(1, 1);
            }
        }
    }

    /// The key changed: those who remember it are forgotten and returned.
    pub(crate) fn untrack(&mut self, key: &[u8], counts: &TrackingCounts) -> Option<Trackers> {
        let trackers = self.tracked.remove(key)?;
        counts.add(-1, -i64::try_from(trackers.len()).unwrap_or(0));
        Some(trackers)
    }

    /// As [`Extras::untrack`] for any one key of the slot.
    pub(crate) fn untrack_any(&mut self, counts: &TrackingCounts) -> Option<Invalidation> {
        let key = self.tracked.keys().next()?.to_vec();
        let trackers = self.untrack(&key, counts)?;
        Some(Invalidation { key, trackers })
    }

    /// Forgets what clients remember; they were told that everything is gone.
    pub(crate) fn untrack_all(&mut self, counts: &TrackingCounts) {
        let items: usize = self.tracked.values().map(SmallVec::len).sum();
        counts.add(-i64::try_from(self.tracked.len()).unwrap_or(0), -i64::try_from(items).unwrap_or(0));
        self.tracked.clear();
    }

    /// Adds a waiter behind those already there.
    pub(crate) fn add_waiter(&mut self, db: DbIndex, key: &[u8], waiter: Arc<Waiter>) {
        self.waiters.entry((db, key.into())).or_default().push_back(waiter);
    }

    /// The first waiter of a key that has not ended.
    pub(crate) fn first_waiter(&mut self, db: DbIndex, key: &[u8]) -> Option<Arc<Waiter>> {
        let queue = self.waiters.get_mut(&(db, Box::from(key)))?;
        while queue.front().is_some_and(|waiter| waiter.is_done()) {
            queue.pop_front();
        }
        let first = queue.front().cloned();
        if first.is_none() {
            self.waiters.remove(&(db, Box::from(key)));
        }
        first
    }

    /// All waiters of a key that have not ended, first come first.
    pub(crate) fn waiters_of(&mut self, db: DbIndex, key: &[u8]) -> Vec<Arc<Waiter>> {
        match self.waiters.get_mut(&(db, Box::from(key))) {
            Some(queue) => {
                queue.retain(|waiter| !waiter.is_done());
                queue.iter().cloned().collect()
            }
            None => Vec::new(),
        }
    }

    /// Takes one waiter off a key.
    pub(crate) fn remove_waiter(&mut self, db: DbIndex, key: &[u8], id: u64) {
        let place = (db, Box::from(key));
        if let Some(queue) = self.waiters.get_mut(&place) {
            queue.retain(|waiter| waiter.id != id && !waiter.is_done());
            if queue.is_empty() {
                self.waiters.remove(&place);
            }
        }
    }

    /// Whether somebody waits for the key.
    pub(crate) fn has_waiters(&self, db: DbIndex, key: &[u8]) -> bool {
        !self.waiters.is_empty() && self.waiters.contains_key(&(db, Box::from(key)))
    }

    /// Keys somebody waits for.
    pub(crate) fn waited_keys(&self) -> impl Iterator<Item = (DbIndex, &[u8])> {
        self.waiters.keys().map(|(db, key)| (*db, &**key))
    }

    /// Watches a key.
    pub(crate) fn watch(&mut self, db: DbIndex, key: &[u8], flag: WatchFlag) {
        self.watchers.entry((db, key.into())).or_default().push(flag);
    }

    /// Ends a watch.
    pub(crate) fn unwatch(&mut self, db: DbIndex, key: &[u8], flag: &WatchFlag) {
        let place = (db, Box::from(key));
        if let Some(flags) = self.watchers.get_mut(&place) {
            flags.retain(|other| !Arc::ptr_eq(other, flag));
            if flags.is_empty() {
                self.watchers.remove(&place);
            }
        }
    }

    /// The key changed: marks its watchers.
    pub(crate) fn touch(&mut self, db: DbIndex, key: &[u8]) {
        if self.watchers.is_empty() {
            return;
        }
        if let Some(flags) = self.watchers.get_mut(&(db, Box::from(key))) {
            // A flag that only we hold belongs to a watch that has ended.
            flags.retain(|flag| Arc::strong_count(flag) > 1);
            for flag in flags {
                // Read under the same slot's lock by EXEC, which orders it.
                flag.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Watched keys of a database with their flags (FLUSHALL, SWAPDB).
    pub(crate) fn watched(&self) -> impl Iterator<Item = (DbIndex, &[u8], &[WatchFlag])> {
        self.watchers.iter().map(|((db, key), flags)| (*db, &**key, flags.as_slice()))
    }
}
