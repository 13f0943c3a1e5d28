//! The gate: how one thread gets the whole keyspace for a moment.
//!
//! Every thread that runs commands is a *participant*: it says "inside" before a batch of commands and "outside"
//! after it (one store and one load a batch). Closing the gate stops new batches and waits until all participants are
//! outside; the closer then runs alone and opens again. Long commands do not run as participants: they run on offload
//! threads that hold slot locks and count as `long_runners`; the gate is not closed while one of them is at work, so
//! it never waits, closed, for more than one command boundary. A script that turns out to be long changes sides while it
//! runs: from a participant, or from the closer, to a long runner that holds slot locks.

use crate::sync::{AtomicBool, AtomicU32, AtomicUsize, Condvar, Mutex, Ordering, fence, pause, wait, yield_now};
use crossbeam_utils::CachePadded;

/// Most threads that may take part: workers, offload threads, the timer thread, the tests' own.
pub const MAX_PARTICIPANTS: usize = if cfg!(loom) { 3 } else { 512 };

/// Looks at participants that are inside before a quick try is given up: some hundred microseconds, longer than a batch.
const QUICK_LOOKS: u32 = 8_192;
/// Quick tries before a closer is patient. Models have none: a look more is a state more.
const QUICK_TRIES: usize = if cfg!(loom) { 0 } else { 100 };
/// How long a patient closer waits for participants that stay inside before it gives up, to try again later: one may be a
/// script that has not said yet that it is a long one.
#[cfg(not(loom))]
const PATIENCE: std::time::Duration = std::time::Duration::from_millis(20);

/// Whether a closer has waited long enough.
#[cfg(not(loom))]
fn is_late(started: &mut Option<std::time::Instant>) -> bool {
    started.get_or_insert_with(std::time::Instant::now).elapsed() >= PATIENCE
}

/// In the model every participant comes out.
#[cfg(loom)]
fn is_late(_started: &mut Option<()>) -> bool {
    false
}

/// See the module.
pub struct Gate {
    closed: AtomicBool,
    /// A closer waits for long runners to end: no new one may begin.
    wanted: AtomicBool,
    /// Counts the tries to close: how a long command that waits knows that the closer is still there.
    tries: AtomicUsize,
    inside: Box<[CachePadded<AtomicU32>]>,
    joined: AtomicUsize,
    /// Places given back.
    free: Mutex<Vec<usize>>,
    long_runners: AtomicUsize,
    /// Tries to close, one after the other, that found somebody inside.
    failures: AtomicUsize,
    /// Set by the one closer.
    closing: AtomicBool,
    /// Guards the sleep of those who wait for the gate to open.
    sleep: Mutex<()>,
    opened: Condvar,
}

/// A thread's place at the gate.
#[derive(Clone, Copy, Debug)]
pub struct Participant(usize);

/// A long command is at work while this lives.
pub struct LongRun<'g>(&'g Gate);

impl Default for Gate {
    fn default() -> Self {
        Gate {
            closed: AtomicBool::new(false),
            wanted: AtomicBool::new(false),
            tries: AtomicUsize::new(0),
            inside: (0..MAX_PARTICIPANTS).map(|_| CachePadded::new(AtomicU32::new(0))).collect(),
            joined: AtomicUsize::new(0),
            free: Mutex::new(Vec::new()),
            long_runners: AtomicUsize::new(0),
            failures: AtomicUsize::new(0),
            closing: AtomicBool::new(false),
            sleep: Mutex::new(()),
            opened: Condvar::new(),
        }
    }
}

impl Gate {
    /// Gives the calling thread a place, until [`Gate::part`].
    ///
    /// # Panics
    /// When more than [`MAX_PARTICIPANTS`] threads are there at a time, which no configuration allows.
    pub fn join(&self) -> Participant {
        if let Some(place) = self.free.lock().pop() {
            return Participant(place);
        }
        let place = self.joined.fetch_add(1, Ordering::SeqCst);
        assert!(place < MAX_PARTICIPANTS, "more than {MAX_PARTICIPANTS} threads at the gate");
        Participant(place)
    }

    /// Gives a place back. Its thread is outside, and does not use it any more.
    pub fn part(&self, me: Participant) {
        debug_assert_eq!(self.inside[me.0].load(Ordering::Relaxed), 0);
        self.free.lock().push(me.0);
    }

    /// Says "inside"; sleeps while the gate is closed.
    #[inline]
    pub fn enter(&self, me: Participant) {
        loop {
            self.inside[me.0].store(1, Ordering::Relaxed);
            // A store, a full fence, a load, here and in `stop_participants`: at least one of the two threads sees the
            // other.
            fence(Ordering::SeqCst);
            // Acquire pairs with the Release in `open`: we see what the closer did.
            if !self.closed.load(Ordering::Acquire) {
                return;
            }
            self.inside[me.0].store(0, Ordering::Release);
            self.wait_open();
        }
    }

    /// Says "outside".
    #[inline]
    pub fn leave(&self, me: Participant) {
        self.inside[me.0].store(0, Ordering::Release);
    }

    /// Whether somebody wants the gate closed: a participant should end its batch at the next command boundary.
    #[inline]
    pub fn is_closing(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    #[cold]
    fn wait_open(&self) {
        let mut guard = self.sleep.lock();
        while self.closed.load(Ordering::SeqCst) {
            guard = wait(&self.opened, guard);
        }
    }

    /// Closes the gate: true when no participant is inside and no long runner is at work; [`Gate::open`] must follow.
    /// The caller must be outside itself and hold no slot lock. False: another closer or a long runner is at work, or a
    /// participant did not come out soon; try later. While somebody tries, no new long runner begins.
    #[must_use]
    pub fn try_close(&self) -> bool {
        if self.closing.swap(true, Ordering::SeqCst) {
            return false;
        }
        self.tries.fetch_add(1, Ordering::Relaxed);
        self.wanted.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if self.long_runners.load(Ordering::SeqCst) > 0 {
            // `wanted` stays set: the running ones end, no new ones begin, and the next try succeeds.
            self.closing.store(false, Ordering::SeqCst);
            return false;
        }
        // A participant whose thread the system has put aside would keep all others waiting at the closed gate: rather
        // let them in again and try later. Not for ever, though.
        let is_patient = self.failures.load(Ordering::Relaxed) >= QUICK_TRIES;
        if self.stop_participants(is_patient) {
            self.failures.store(0, Ordering::Relaxed);
            return true;
        }
        self.failures.fetch_add(1, Ordering::Relaxed);
        self.let_in();
        false
    }

    /// Opens the closed gate.
    pub fn open(&self) {
        self.wanted.store(false, Ordering::SeqCst);
        self.let_in();
    }

    /// Lets participants in again. Whether somebody still wants to close is another question.
    fn let_in(&self) {
        self.closed.store(false, Ordering::SeqCst);
        self.closing.store(false, Ordering::SeqCst);
        let _guard = self.sleep.lock();
        self.opened.notify_all();
    }

    /// Waits until all participants are outside. False: one was not soon, or not even when the closer was
    /// patient.
    fn stop_participants(&self, is_patient: bool) -> bool {
        self.closed.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let joined = self.joined.load(Ordering::SeqCst).min(MAX_PARTICIPANTS);
        let (mut looks, mut started) = (0_u32, None);
        for place in &self.inside[..joined] {
            // Acquire pairs with the Release in `leave`: we see what the participant did.
            while place.load(Ordering::Acquire) != 0 {
                looks += 1;
                if !is_patient {
                    if looks > QUICK_LOOKS {
                        return false;
                    }
                    pause();
                    continue;
                }
                // The thread inside may wait for our core.
                if looks.is_multiple_of(64) {
                    yield_now();
                } else {
                    pause();
                }
                if looks.is_multiple_of(1024) && is_late(&mut started) {
                    return false;
                }
            }
        }
        true
    }

    /// For the closer of the gate: opens it, but as a long command that goes on. No other closer succeeds until
    /// [`Gate::end_long_run`].
    pub(crate) fn open_as_long_run(&self) {
        self.long_runners.fetch_add(1, Ordering::SeqCst);
        self.open();
    }

    /// Announces a long command without a guard; [`Gate::end_long_run`] must follow. False: a closer is waiting.
    pub(crate) fn start_long_run(&self) -> bool {
        self.begin_long_run().map(std::mem::forget).is_some()
    }

    /// Ends a long command that has no guard.
    pub(crate) fn end_long_run(&self) {
        self.long_runners.fetch_sub(1, Ordering::SeqCst);
    }

    /// Announces a long command. `None`: a closer is waiting, come back later.
    pub fn begin_long_run(&self) -> Option<LongRun<'_>> {
        self.long_runners.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let run = LongRun(self);
        // Here an add then a load of `wanted`, in `try_close` a store of it then a load: one sees the other.
        (!self.wanted.load(Ordering::SeqCst)).then_some(run)
    }

    /// How often somebody has tried to close the gate. It stands still when a closer has given up, for example because
    /// its client went away; then [`Gate::forget_closer`].
    pub fn tries(&self) -> usize {
        self.tries.load(Ordering::Relaxed)
    }

    /// Lets long commands begin again though a closer that failed has not come back. If it does, it asks anew.
    pub fn forget_closer(&self) {
        self.wanted.store(false, Ordering::SeqCst);
    }

    /// Long commands at work now.
    pub fn long_runners(&self) -> usize {
        self.long_runners.load(Ordering::Relaxed)
    }
}

impl Drop for LongRun<'_> {
    fn drop(&mut self) {
        self.0.long_runners.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn a_closer_runs_alone() {
        let gate = Arc::new(Gate::default());
        let value = Arc::new(AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                let (gate, value) = (gate.clone(), value.clone());
                scope.spawn(move || {
                    let me = gate.join();
                    for _ in 0..2_000 {
                        gate.enter(me);
                        value.fetch_add(1, Ordering::Relaxed);
                        gate.leave(me);
                    }
                });
            }
            for _ in 0..200 {
                while !gate.try_close() {}
                let before = value.load(Ordering::Relaxed);
                std::thread::yield_now();
                assert_eq!(before, value.load(Ordering::Relaxed), "somebody ran while the gate was closed");
                gate.open();
            }
        });
        assert_eq!(value.load(Ordering::Relaxed), 6_000);
    }

    #[test]
    fn a_closer_that_went_away_is_forgotten() {
        let gate = Gate::default();
        let run = gate.begin_long_run();
        let tries = gate.tries();
        assert!(!gate.try_close());
        assert_ne!(gate.tries(), tries);
        drop(run);
        assert!(gate.begin_long_run().is_none(), "the closer may come back");
        gate.forget_closer();
        assert!(gate.begin_long_run().is_some());
    }

    #[test]
    fn long_runners_keep_it_open() {
        let gate = Gate::default();
        let run = gate.begin_long_run();
        assert!(run.is_some());
        assert!(!gate.try_close());
        assert!(gate.begin_long_run().is_none(), "a closer waits");
        drop(run);
        assert!(gate.try_close());
        assert!(gate.begin_long_run().is_none());
        gate.open();
        assert!(gate.begin_long_run().is_some());
    }
}
