//! Time as a seam: the loop reads a [`Clock`] once per turn, tests may put in their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A source of time.
pub trait Clock: Send {
    /// Monotonic time.
    fn now(&self) -> Instant;
    /// Wall-clock time in microseconds since 1970.
    fn wall_us(&self) -> u64;
}

/// The machine's clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn wall_us(&self) -> u64 {
        // Not by rustix, though that is cheaper: its look-up of the vDSO ends a process that runs under valgrind.
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        // A clock set before 1970 reads as 1970.
        let since = since.unwrap_or_default();
        since.as_secs().saturating_mul(1_000_000) + u64::from(since.subsec_micros())
    }
}

/// A clock that stands still until it is moved. Clones share their time.
#[derive(Clone, Debug)]
pub struct ManualClock {
    start: Instant,
    elapsed_us: Arc<AtomicU64>,
    wall_us: Arc<AtomicU64>,
}

impl ManualClock {
    /// A clock that shows this wall-clock time, in microseconds since 1970.
    pub fn new(wall_us: u64) -> Self {
        ManualClock { start: Instant::now(), elapsed_us: Arc::default(), wall_us: Arc::new(AtomicU64::new(wall_us)) }
    }

    /// Moves both times forward.
    pub fn advance(&self, by: Duration) {
        let by_us = u64::try_from(by.as_micros()).unwrap_or(u64::MAX);
        // Each time is read alone; no order between the two is promised.
        self.elapsed_us.fetch_add(by_us, Ordering::Relaxed);
        self.wall_us.fetch_add(by_us, Ordering::Relaxed);
    }

    /// Sets the wall clock, as an operator or NTP would; monotonic time stays.
    pub fn set_wall_us(&self, wall_us: u64) {
        self.wall_us.store(wall_us, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Instant {
        self.start + Duration::from_micros(self.elapsed_us.load(Ordering::Relaxed))
    }

    fn wall_us(&self) -> u64 {
        self.wall_us.load(Ordering::Relaxed)
    }
}
