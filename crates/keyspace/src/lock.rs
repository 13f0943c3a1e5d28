//! The one-word lock of a slot, and the places where those who could not get it wait.
//!
//! Hot path: no allocation, no system call, no logging.
//!
//! States of the word: `FREE`, `HELD`, `AWAITED` (held, and somebody is parked on it). Taking and giving back an
//! uncontended lock is one atomic each. A worker never sleeps on a slot: it spins for a moment, then parks the
//! *connection* here with a [`Wake`] target and goes on with its other clients; the holder wakes all that are parked
//! when it gives the lock back.

use crate::slot::Slot;
use crate::sync::{AtomicU32, Mutex, Ordering, pause};
use std::sync::OnceLock;
use std::thread::Thread;

const FREE: u32 = 0;
const HELD: u32 = 1;
const AWAITED: u32 = 2;

/// How often a taken lock is looked at again before its owner is waited for by parking. Holders of one command's
/// locks are gone within a microsecond or so; longer holders are offloaded commands, for which spinning is waste.
const SPINS: u32 = if cfg!(loom) { 1 } else { 60 };

/// Shards of the parking place, so that unrelated slots do not meet on one mutex.
const SHARDS: usize = if cfg!(loom) { 1 } else { 64 };

/// The lock word of one slot.
pub struct SlotLock(AtomicU32);

impl Default for SlotLock {
    fn default() -> Self {
        SlotLock(AtomicU32::new(FREE))
    }
}

impl SlotLock {
    /// Takes the lock if it is free now.
    #[inline]
    pub fn try_lock(&self) -> bool {
        // Acquire pairs with the Release in `unlock`: we see what the previous holder wrote.
        self.0.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Takes the lock, looking a bounded number of times.
    #[inline]
    pub fn try_lock_spinning(&self) -> bool {
        if self.try_lock() {
            return true;
        }
        for _ in 0..SPINS {
            pause();
            if self.0.load(Ordering::Relaxed) == FREE && self.try_lock() {
                return true;
            }
        }
        false
    }

    /// Gives the lock back. True: somebody is parked and must be woken by [`Parking::wake`].
    #[inline]
    #[must_use]
    pub fn unlock(&self) -> bool {
        self.0.swap(FREE, Ordering::Release) == AWAITED
    }

    /// Whether somebody holds the lock.
    pub fn is_held(&self) -> bool {
        self.0.load(Ordering::Relaxed) != FREE
    }
}

/// Whom to wake when a slot becomes free.
pub enum Wake {
    /// A parked connection of a worker: the installed waker is called with both numbers.
    Worker {
        /// Index of the worker.
        worker: u16,
        /// What the worker gave to recognise the connection.
        token: u64,
    },
    /// A thread that called `std::thread::park`.
    Thread(Thread),
}

/// Calls back into the service to wake a worker's connection.
pub type WorkerWaker = Box<dyn Fn(u16, u64) + Send + Sync>;

/// The parked of all slots.
pub struct Parking {
    shards: [ParkingShard; SHARDS],
    waker: OnceLock<WorkerWaker>,
}

impl Default for Parking {
    fn default() -> Self {
        Parking { shards: std::array::from_fn(|_| ParkingShard::default()), waker: OnceLock::new() }
    }
}

#[derive(Default)]
struct ParkingShard(Mutex<Vec<(Slot, Wake)>>);

impl Parking {
    /// Installs how workers are woken; once, at start.
    pub fn install(&self, waker: WorkerWaker) {
        let _ = self.waker.set(waker);
    }

    /// Parks `wake` on `slot` unless its lock has become free meanwhile (then false: try again).
    pub fn park(&self, slot: Slot, lock: &SlotLock, wake: Wake) -> bool {
        let mut parked = self.shards[slot.index() % SHARDS].0.lock();
        // With the shard held, an unlocker that swaps AWAITED out waits for us before it looks at the list,
        // so the entry pushed below cannot be missed.
        match lock.0.compare_exchange(HELD, AWAITED, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) | Err(AWAITED) => {
                parked.push((slot, wake));
                true
            }
            Err(_) => false,
        }
    }

    /// Wakes all that are parked on `slot`.
    #[cold]
    pub fn wake(&self, slot: Slot) {
        let woken: Vec<Wake> = {
            let mut parked = self.shards[slot.index() % SHARDS].0.lock();
            parked.extract_if(.., |(parked_on, _)| *parked_on == slot).map(|(_, wake)| wake).collect()
        };
        woken.into_iter().for_each(|wake| self.rouse(wake));
    }

    /// Wakes one that is parked, here or elsewhere.
    pub(crate) fn rouse(&self, wake: Wake) {
        match wake {
            Wake::Thread(thread) => thread.unpark(),
            Wake::Worker { worker, token } => {
                if let Some(waker) = self.waker.get() {
                    waker(worker, token);
                }
            }
        }
    }
}
