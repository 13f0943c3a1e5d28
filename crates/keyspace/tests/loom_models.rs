//! Models of the slot locks and the gate: every interleaving of a few threads, checked by loom.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p keyspace --release --test loom_models` (`cargo xtask test` does).
#![cfg(loom)]
#![allow(clippy::unwrap_used, clippy::expect_used)]

use keyspace::Slot;
use keyspace::gate::Gate;
use keyspace::lock::{Parking, SlotLock, Wake};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

/// Locks, what they guard, and the place to wait.
struct World {
    locks: [SlotLock; 2],
    guarded: [UnsafeCell<u32>; 2],
    parking: Parking,
    woken: std::sync::Arc<AtomicBool>,
}

impl World {
    fn new() -> Arc<World> {
        let woken = std::sync::Arc::new(AtomicBool::new(false));
        let parking = Parking::default();
        let flag = woken.clone();
        parking.install(Box::new(move |_, _| flag.store(true, Ordering::Release)));
        Arc::new(World {
            locks: [SlotLock::default(), SlotLock::default()],
            guarded: [UnsafeCell::new(0), UnsafeCell::new(0)],
            parking,
            woken,
        })
    }

    fn unlock(&self, index: usize) {
        if self.locks[index].unlock() {
            self.parking.wake(Slot::new(index));
        }
    }

    /// Takes the locks in ascending order, parking as a worker's connection does; then changes what they guard.
    fn change(&self, wanted: &[usize]) {
        'again: loop {
            for (got, index) in wanted.iter().enumerate() {
                if self.locks[*index].try_lock_spinning() {
                    continue;
                }
                for held in wanted[..got].iter().rev() {
                    self.unlock(*held);
                }
                let wake = Wake::Worker { worker: 0, token: 0 };
                if self.parking.park(Slot::new(*index), &self.locks[*index], wake) {
                    // A worker would serve others; here the thread waits for its wake-up. If it got lost, loom reports
                    // that the model never ends.
                    while !self.woken.swap(false, Ordering::Acquire) {
                        thread::yield_now();
                    }
                }
                continue 'again;
            }
            for index in wanted {
                // SAFETY: the lock of the index is held; loom fails the model if two threads are here at once.
                self.guarded[*index].with_mut(|value| unsafe { *value += 1 });
            }
            for index in wanted.iter().rev() {
                self.unlock(*index);
            }
            return;
        }
    }
}

// SAFETY: `guarded` is touched under its locks only: what the model checks.
unsafe impl Sync for World {}
// SAFETY: as above.
unsafe impl Send for World {}

#[test]
fn a_slot_lock_excludes_and_wakes() {
    loom::model(|| {
        let world = World::new();
        let other = world.clone();
        let thread = thread::spawn(move || other.change(&[0]));
        world.change(&[0]);
        thread.join().unwrap();
        // SAFETY: both threads are done.
        assert_eq!(world.guarded[0].with(|value| unsafe { *value }), 2);
    });
}

#[test]
fn locks_in_ascending_order_never_deadlock() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let world = World::new();
        let other = world.clone();
        let thread = thread::spawn(move || other.change(&[0, 1]));
        world.change(&[0, 1]);
        thread.join().unwrap();
    });
}

/// The gate and something that whoever is let in may touch without another lock.
struct Gated {
    gate: Gate,
    value: UnsafeCell<u32>,
}

// SAFETY: `value` is touched by participants inside and by the closer: what the model checks.
unsafe impl Sync for Gated {}
// SAFETY: as above.
unsafe impl Send for Gated {}

#[test]
fn a_closed_gate_lets_nobody_in() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let gated = Arc::new(Gated { gate: Gate::default(), value: UnsafeCell::new(0) });
        let other = gated.clone();
        let participant = gated.gate.join();
        let thread = thread::spawn(move || {
            other.gate.enter(participant);
            // SAFETY: inside; the closer is not.
            other.value.with_mut(|value| unsafe { *value += 1 });
            other.gate.leave(participant);
        });
        if gated.gate.try_close() {
            // SAFETY: the gate is closed: the participant is outside.
            gated.value.with_mut(|value| unsafe { *value += 1 });
            gated.gate.open();
        }
        thread.join().unwrap();
    });
}

#[test]
fn a_closer_and_a_long_runner_exclude_each_other() {
    loom::model(|| {
        let gated = Arc::new(Gated { gate: Gate::default(), value: UnsafeCell::new(0) });
        let other = gated.clone();
        let thread = thread::spawn(move || {
            if let Some(run) = other.gate.begin_long_run() {
                // SAFETY: a long run is at work; the gate cannot close.
                other.value.with_mut(|value| unsafe { *value += 1 });
                drop(run);
            }
        });
        if gated.gate.try_close() {
            // SAFETY: the gate is closed and no long run is at work.
            gated.value.with_mut(|value| unsafe { *value += 1 });
            gated.gate.open();
        }
        thread.join().unwrap();
    });
}
