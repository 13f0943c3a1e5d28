//! Who may touch which slot: a thread's set of held slot locks.
//!
//! The safe face over the slots' contents: a slot's data is lent only while its lock is held by this set, or while
//! this thread has the gate closed. Locks are *waited for* in ascending order only; out of order they are only tried.

use crate::events::Events;
use crate::gate::Participant;
use crate::hashing::hash_key;
use crate::journal::effects::Effects;
use crate::keyspace::{Counters, Keyspace};
use crate::lock::Wake;
use crate::slot::{Db, DbIndex, Slot, SlotData, Tenure};
use crate::snapshot::Hand;
use crossbeam_utils::CachePadded;
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Capacity kept for stretches of a followed stream.
const FOLLOWED_KEPT: usize = 64 << 10;
/// How long a thread waits before it tries to close the gate again.
const GATE_PAUSE: std::time::Duration = std::time::Duration::from_micros(100);

/// Words of 64 bits for all numbers of a slot's type.
const WORDS: usize = (u16::MAX as usize + 1) / 64;

/// The locks one thread holds. Make one for each thread that touches keys and keep it.
pub struct LockSet {
    keyspace: Arc<Keyspace>,
    participant: Participant,
    held: SmallVec<[Slot; 32]>,
    /// One bit a slot: the same set as `held`, for a test in a few instructions. It has words for whatever number a slot
    /// could have, so that no index needs a check.
    bits: Box<[u64; WORDS]>,
    /// The gate is closed by this thread: every slot may be touched.
    alone: bool,
    inside: bool,
    /// What this thread hands over to the snapshot that runs.
    pub(crate) hand: Option<Hand>,
    /// This thread counts as a long runner at the gate instead of being inside.
    long: bool,
    pub(crate) counters: Arc<CachePadded<Counters>>,
    /// What the commands of this thread did, for the journal.
    pub effects: Effects,
    /// The commands of this thread are those of the primary: nothing is hidden from them.
    pub is_primary: bool,
    /// What a replica shows of a hash with fields whose time is over.
    pub(crate) shown_hash: Option<crate::Hash>,
}

impl LockSet {
    /// Joins the gate; holds nothing.
    pub fn new(keyspace: Arc<Keyspace>) -> LockSet {
        let participant = keyspace.gate.join();
        let counters = keyspace.register_counters();
        LockSet {
            keyspace,
            participant,
            held: SmallVec::new(),
            bits: Box::new([0; WORDS]),
            alone: false,
            inside: false,
            hand: None,
            long: false,
            counters,
            effects: Effects::default(),
            is_primary: false,
            shown_hash: None,
        }
    }

    /// The keyspace.
    #[inline]
    pub fn keyspace(&self) -> &Arc<Keyspace> {
        &self.keyspace
    }

    /// Begins a batch of commands: sleeps while the gate is closed.
    #[inline]
    pub fn enter(&mut self) {
        debug_assert!(!self.inside && self.held.is_empty());
        self.keyspace.gate.enter(self.participant);
        self.inside = true;
        self.ask_recording();
    }

    /// Asks anew whether the journal is read. Holds until the thread lets the gate be closed again; to be called by one
    /// that does not [`LockSet::enter`], when its long run has begun.
    #[inline]
    pub fn ask_recording(&mut self) {
        let recording = self.keyspace.journal.is_read();
        self.effects.set_recording(recording);
    }

    /// Ends a batch. All locks must have been given back.
    #[inline]
    pub fn leave(&mut self) {
        debug_assert!(self.inside && self.held.is_empty());
        self.inside = false;
        self.keyspace.gate.leave(self.participant);
    }

    /// Whether the slot is held (or the gate closed by us).
    #[inline]
    pub fn holds(&self, slot: Slot) -> bool {
        self.bits[slot.index() / 64] & (1 << (slot.index() % 64)) != 0 || self.alone
    }

    /// Slots held.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    #[inline]
    fn note_held(&mut self, slot: Slot) {
        self.bits[slot.index() / 64] |= 1 << (slot.index() % 64);
        self.held.push(slot);
    }

    /// Takes one more slot if it is free or becomes so within a short spin; never waits, so any order is allowed.
    #[inline(always)]
    pub fn try_lock(&mut self, slot: Slot) -> bool {
        if self.holds(slot) {
            return true;
        }
        let got = self.keyspace.slots[slot.index()].lock.try_lock_spinning();
        if got {
            self.note_held(slot);
        }
        got
    }

    /// Takes all of `slots` (ascending) or none of those not yet held.
    ///
    /// # Errors
    /// The first slot that was busy.
    pub fn try_lock_all(&mut self, slots: &[Slot]) -> Result<(), Slot> {
        debug_assert!(slots.is_sorted(), "slots are locked in ascending order");
        let before = self.held.len();
        for slot in slots {
            if !self.try_lock(*slot) {
                self.unlock_down_to(before);
                return Err(*slot);
            }
        }
        Ok(())
    }

    /// Takes all of `slots` (ascending), putting the thread to sleep while one is busy. Not for workers.
    pub fn lock_all(&mut self, slots: &[Slot]) {
        debug_assert!(self.held.is_empty(), "a thread waits with empty hands");
        while let Err(busy) = self.try_lock_all(slots) {
            if self.park(busy, Wake::Thread(std::thread::current())) {
                std::thread::park();
            }
        }
    }

    /// Leaves `wake` to be called when `slot` becomes free. False: it is free now, try again.
    pub fn park(&self, slot: Slot, wake: Wake) -> bool {
        self.keyspace.parking.park(slot, &self.keyspace.slots[slot.index()].lock, wake)
    }

    /// Gives all locks back. What was done under them goes to the journal first.
    #[inline]
    pub fn unlock_all(&mut self) {
        if self.effects.is_recording() {
            self.unlock_recorded();
        } else {
            self.unlock_down_to(0);
        }
    }

    #[inline(never)]
    fn unlock_recorded(&mut self) {
        // Inside a transaction a command that gives back its own locks does not end it.
        if !self.effects.is_open() {
            self.append_effects();
        }
        self.unlock_down_to(0);
        self.wake_readers();
    }

    /// Wakes those who read the journal, unless this thread still holds something.
    fn wake_readers(&mut self) {
        if self.held.is_empty() && !self.alone && !self.effects.wakers.is_empty() {
            crate::journal::wake(std::mem::take(&mut self.effects.wakers));
        }
    }

    /// Records a command that work outside any client's command came to. The slots of its keys must be held; it is appended
    /// to the journal before they go back.
    pub fn record(&mut self, db: DbIndex, words: &[&[u8]]) {
        self.effects.note(db, words.iter().copied(), false);
    }

    /// For commands that hold no slot: has what they did appended to the journal.
    pub fn flush_effects(&mut self) {
        if !self.effects.is_open() {
            self.append_effects();
            self.wake_readers();
        }
    }

    /// Appends what this thread's commands did to the journal. Their slots must still be held.
    pub fn append_effects(&mut self) {
        if !self.effects.followed.is_empty() {
            self.append_followed();
        }
        if !self.effects.is_empty() {
            let keyspace = &self.keyspace;
            self.effects.flush(|bytes, runs| keyspace.journal.append(bytes, runs));
        }
    }

    #[cold]
    fn append_followed(&mut self) {
        let effects = &mut self.effects;
        let wakers = self.keyspace.journal.append_followed(&effects.followed, effects.followed_replicas_only);
        effects.wakers.extend(wakers);
        effects.followed.clear();
        effects.followed.shrink_to(FOLLOWED_KEPT);
        effects.appended_to = self.keyspace.journal.end();
    }

    #[inline]
    fn unlock_down_to(&mut self, keep: usize) {
        while self.held.len() > keep {
            let Some(slot) = self.held.pop() else { break };
            self.bits[slot.index() / 64] &= !(1 << (slot.index() % 64));
            if self.keyspace.slots[slot.index()].lock.unlock() {
                self.keyspace.parking.wake(slot);
            }
        }
    }

    /// Begins a batch unless one is under way. True: it began one, and the caller must end it.
    pub fn enter_if_outside(&mut self) -> bool {
        let outside = !self.inside && !self.alone;
        if outside {
            self.enter();
        }
        outside
    }

    /// Whether this thread has the whole keyspace to itself: the gate is closed by it, or it holds every slot.
    pub fn is_alone(&self) -> bool {
        self.alone || self.held.len() == self.keyspace.space().count()
    }

    /// The slots held.
    pub fn held_slots(&self) -> &[Slot] {
        &self.held
    }

    /// Takes every slot, each by trying. False: one is busy; what was got is kept.
    pub fn try_lock_every(&mut self) -> bool {
        let keyspace = self.keyspace.clone();
        keyspace.slots().all(|slot| self.try_lock(slot))
    }

    /// A command that began at a command boundary's ease turns out to be long: from here on it holds its slots as a long
    /// runner, and if it had the gate closed, it holds all of them and the others go on. False: somebody wants the gate
    /// closed; to be tried again. [`LockSet::end_long`] ends it, or [`LockSet::end_alone`].
    pub fn go_long(&mut self) -> bool {
        if self.long {
            return true;
        }
        if self.alone {
            self.alone = false;
            // Nobody is inside and no long runner at work: every slot is free.
            let got = self.try_lock_every();
            assert!(got, "a slot is held behind the closed gate");
            self.keyspace.gate.open_as_long_run();
            self.long = true;
            return true;
        }
        if !self.inside || !self.keyspace.gate.start_long_run() {
            return false;
        }
        self.inside = false;
        self.long = true;
        self.keyspace.gate.leave(self.participant);
        true
    }

    /// Gives all locks back after [`LockSet::go_long`] and goes back into a batch. Does nothing if it was not long.
    pub fn end_long(&mut self) {
        if std::mem::take(&mut self.long) {
            self.unlock_all();
            self.keyspace.gate.end_long_run();
            self.enter();
        }
    }

    /// Gets the whole keyspace for this thread. `None`: another closer or a long command is at work; try later. Must
    /// be inside a batch, with no lock held; [`LockSet::end_alone`] goes back into it.
    pub fn begin_alone(&mut self) -> Option<Alone> {
        debug_assert!(self.held.is_empty() && !self.alone && self.inside);
        self.leave();
        let closed = self.keyspace.gate.try_close();
        self.alone = closed;
        if !closed {
            self.enter();
        }
        closed.then_some(Alone(()))
    }

    /// Runs `work` with the whole keyspace to itself, sleeping until that is possible. Not for workers; the thread must be
    /// outside a batch.
    pub fn alone<R>(&mut self, work: impl FnOnce(&mut LockSet) -> R) -> R {
        self.enter();
        let token = loop {
            if let Some(token) = self.begin_alone() {
                break token;
            }
            self.leave();
            std::thread::sleep(GATE_PAUSE);
            self.enter();
        };
        let result = work(self);
        self.end_alone(token);
        self.leave();
        result
    }

    /// Opens the gate and goes back into a batch.
    pub fn end_alone(&mut self, token: Alone) {
        let Alone(()) = token;
        self.append_effects();
        if self.long {
            self.end_long();
            return;
        }
        self.alone = false;
        self.keyspace.gate.open();
        self.wake_readers();
        self.enter();
    }

    /// After a panic in a command: gives back whatever is held, so that nobody else waits for ever.
    pub fn recover(&mut self) {
        self.append_effects();
        if std::mem::take(&mut self.alone) {
            self.keyspace.gate.open();
        }
        self.unlock_all();
        if std::mem::take(&mut self.long) {
            self.keyspace.gate.end_long_run();
        }
        if self.inside {
            self.leave();
        }
    }

    /// Whose the slot is. Only while it is held (or the gate closed) it cannot change.
    #[inline]
    pub fn tenure(&self, slot: Slot) -> Tenure {
        // Relaxed: the slot's lock orders it; who asks without the lock gets a hint.
        Tenure::from_bits(self.keyspace.slots[slot.index()].tenure.load(Ordering::Relaxed))
    }

    /// Sets whose a held slot is.
    ///
    /// # Panics
    /// When the slot is not held: a bug in the caller.
    pub fn set_tenure(&mut self, slot: Slot, tenure: Tenure) {
        assert!(self.holds(slot), "slot {slot:?} is not locked");
        self.keyspace.slots[slot.index()].tenure.store(tenure.bits(), Ordering::Relaxed);
    }

    /// Whoever watches a key of the held slot will find it changed.
    pub fn break_watches(&self, slot: Slot) {
        self.slot(slot).break_watches();
    }

    /// Notes whom to tell that the keys of the held slot that they remember are gone.
    pub fn invalidate_slot(&mut self, slot: Slot, events: &mut Events) {
        let keyspace = self.keyspace().clone();
        let data = self.slot_mut(slot);
        let Some(extras) = &mut data.extras else { return };
        while let Some(invalidation) = extras.untrack_any(&keyspace.tracking) {
            events.invalidations.push(invalidation);
        }
        if extras.is_empty() {
            data.extras = None;
        }
    }

    /// The slot's contents.
    ///
    /// # Panics
    /// When the slot is not held: a bug in the caller, never a client's doing.
    #[inline]
    pub fn slot(&self, slot: Slot) -> &SlotData {
        assert!(self.holds(slot), "slot {slot:?} is not locked");
        // SAFETY: this thread holds the slot's lock or has the gate closed, so nobody else touches the contents; the
        // borrow of self keeps the lock from being given back and from a second mutable loan.
        unsafe { &*self.keyspace.slots[slot.index()].contents.get() }
    }

    /// The slot's contents, to change. Panics as [`LockSet::slot`].
    #[inline]
    pub fn slot_mut(&mut self, slot: Slot) -> &mut SlotData {
        assert!(self.holds(slot), "slot {slot:?} is not locked");
        // SAFETY: as in `slot`; unique by &mut self, which is the only LockSet that holds the slot.
        unsafe { &mut *self.keyspace.slots[slot.index()].contents.get() }
    }
}

impl Drop for LockSet {
    fn drop(&mut self) {
        self.recover();
        self.keyspace.gate.part(self.participant);
    }
}

/// Proof that the gate was closed by [`LockSet::begin_alone`].
pub struct Alone(());

// ---- work on whole slots -----------------------------------------------------------------------------------------

impl LockSet {
    /// Takes the keys of one database (or all) out of a held slot, marking watchers of keys that were there. Returns
    /// how many.
    pub fn empty_slot(&mut self, slot: Slot, only: Option<DbIndex>, now_ms: i64, garbage: &mut Vec<Db>) -> u64 {
        let counters = self.counters.clone();
        let data = self.slot_mut(slot);
        let indices: Vec<DbIndex> = data
            .dbs()
            .filter(|(index, db)| !db.is_empty() && only.is_none_or(|only| only == *index))
            .map(|(index, _)| index)
            .collect();
        let mut gone = 0;
        let mut detached = Vec::new();
        for index in indices {
            data.touch_watchers_in(index, now_ms);
            if let Some(db) = data.take_db(index) {
                gone += db.len() as u64;
                counters.add_keys(index, -i64::try_from(db.len()).unwrap_or(0));
                counters.add_expiring(index, -i64::from(db.expiring));
                detached.push((index, db));
            }
        }
        // A snapshot that runs still wants what these hold, and frees them afterwards.
        match self.keyspace.snapshots.running() {
            Some(snapshot) => snapshot.detach(slot, detached),
            None => garbage.extend(detached.into_iter().map(|(_, db)| db)),
        }
        gone
    }

    /// Forgets what clients remember of a held slot's keys.
    pub fn untrack_slot(&mut self, slot: Slot) {
        let keyspace = self.keyspace().clone();
        let data = self.slot_mut(slot);
        if let Some(extras) = &mut data.extras {
            extras.untrack_all(&keyspace.tracking);
            if extras.is_empty() {
                data.extras = None;
            }
        }
    }

    /// Notes as ready the keys of streams that somebody waits for, before [`LockSet::empty_slot`]: readers of groups are
    /// told that those are gone.
    pub fn note_streams_gone(&self, slot: Slot, only: Option<DbIndex>, events: &mut Events) {
        let data = self.slot(slot);
        let Some(extras) = &data.extras else { return };
        for (db, key) in extras.waited_keys().filter(|(db, _)| only.is_none_or(|only| only == *db)) {
            let entry = data.db(db).and_then(|part| part.table.find(hash_key(key), key));
            if entry.is_some_and(|entry| entry.kind() == crate::entry::Kind::Stream) {
                events.ready.push((db, key.to_vec()));
            }
        }
    }

    /// Swaps two databases in a held slot; tells watchers of both, and waiters whose keys come or go by it.
    pub fn swap_slot_dbs(&mut self, slot: Slot, first: DbIndex, second: DbIndex, now_ms: i64, events: &mut Events) {
        let counters = self.counters.clone();
        let data = self.slot_mut(slot);
        data.touch_watchers_in(first, now_ms);
        data.touch_watchers_in(second, now_ms);
        let of_first = data.take_db(first).unwrap_or_default();
        let of_second = data.take_db(second).unwrap_or_default();
        let keys = i64::try_from(of_second.len()).unwrap_or(0) - i64::try_from(of_first.len()).unwrap_or(0);
        let expiring = i64::from(of_second.expiring) - i64::from(of_first.expiring);
        counters.add_keys(first, keys);
        counters.add_keys(second, -keys);
        counters.add_expiring(first, expiring);
        counters.add_expiring(second, -expiring);
        if !of_second.is_empty() {
            data.put_db(first, of_second);
        }
        if !of_first.is_empty() {
            data.put_db(second, of_first);
        }
        data.touch_watchers_in(first, now_ms);
        data.touch_watchers_in(second, now_ms);
        let Some(extras) = &data.extras else { return };
        for (db, key) in extras.waited_keys() {
            let has = |db: DbIndex| data.db(db).is_some_and(|part| part.table.find(hash_key(key), key).is_some());
            if (db == first || db == second) && (has(first) || has(second)) {
                events.ready.push((db, key.to_vec()));
            }
        }
    }
}
