//! The atomics, locks and pauses of [`crate::lock`] and [`crate::gate`]: the machine's, or loom's when a model of them
//! is checked (`--cfg loom`).

#[cfg(loom)]
pub(crate) use self::model::{Condvar, Mutex, pause, wait, yield_now};
#[cfg(not(loom))]
pub(crate) use self::real::{Condvar, Mutex, pause, wait, yield_now};
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering, fence};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering, fence};

#[cfg(not(loom))]
mod real {
    pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard};
    pub(crate) use std::hint::spin_loop as pause;
    pub(crate) use std::thread::yield_now;

    /// Sleeps on a condition.
    pub(crate) fn wait<'m, T>(condition: &Condvar, mut guard: MutexGuard<'m, T>) -> MutexGuard<'m, T> {
        condition.wait(&mut guard);
        guard
    }
}

#[cfg(loom)]
mod model {
    pub(crate) use loom::sync::Condvar;
    use loom::sync::MutexGuard;
    pub(crate) use loom::thread::yield_now;

    /// loom's mutex with the face of the real one.
    #[derive(Default)]
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Mutex<T> {
            Mutex(loom::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
        }
    }

    /// Lets other threads of the model go on.
    pub(crate) fn pause() {
        loom::thread::yield_now();
    }

    /// Sleeps on a condition.
    pub(crate) fn wait<'m, T>(condition: &Condvar, guard: MutexGuard<'m, T>) -> MutexGuard<'m, T> {
        condition.wait(guard).unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
