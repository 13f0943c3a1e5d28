//! Who may touch which slot: a thread's set of held slot locks.
//!
//! The safe face over the slots' contents: a slot's data is lent only while its lock is held by this set, or while
//! this thread has the gate closed. Locks are *waited for* in ascending order only; out of order they are only tried.

use crate::gate::Participant;
use crate::keyspace::{Counters, Keyspace};
use crate::lock::Wake;
use crate::slot::{Slot, SlotData};
use crossbeam_utils::CachePadded;
use smallvec::SmallVec;
use std::sync::Arc;

/// The locks one thread holds. Make one for each thread that touches keys and keep it.
pub struct LockSet {
    keyspace: Arc<Keyspace>,
    participant: Participant,
    held: SmallVec<[Slot; 32]>,
    /// One bit a slot: the same set as `held`, for a test in a few instructions.
    bits: Box<[u64; 256]>,
    /// The gate is closed by this thread: every slot may be touched.
    alone: bool,
    inside: bool,
    pub(crate) counters: Arc<CachePadded<Counters>>,
}

impl LockSet {
    /// Joins the gate; holds nothing.
    pub fn new(keyspace: Arc<Keyspace>) -> LockSet {
        let participant = keyspace.gate.join();
        let counters = keyspace.register_counters();
        LockSet { keyspace, participant, held: SmallVec::new(), bits: Box::new([0; 256]), alone: false, inside: false, counters }
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
    #[inline]
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

    /// Gives all locks back.
    #[inline]
    pub fn unlock_all(&mut self) {
        self.unlock_down_to(0);
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

    /// Runs `work` with the whole keyspace to itself. `None`: another closer or a long command is at work; try later.
    /// Must be inside a batch, with no lock held.
    pub fn try_alone<R>(&mut self, work: impl FnOnce(&mut LockSet) -> R) -> Option<R> {
        debug_assert!(self.held.is_empty() && !self.alone);
        let was_inside = self.inside;
        if was_inside {
            self.leave();
        }
        let keyspace = self.keyspace.clone();
        let result = keyspace.gate.try_close().map(|closed| {
            self.alone = true;
            let result = work(self);
            self.alone = false;
            drop(closed);
            result
        });
        if was_inside {
            self.enter();
        }
        result
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
        self.unlock_all();
        if self.inside {
            self.leave();
        }
    }
}
