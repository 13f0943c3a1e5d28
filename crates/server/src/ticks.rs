//! A clock cheap enough to read for every command: the processor's time stamp counter.
//!
//! Hot path: one instruction a reading. The rate is measured against the monotonic clock at start.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

static TICKS_PER_US: OnceLock<u64> = OnceLock::new();

/// Ticks since some moment.
#[inline]
pub fn now() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: RDTSC is there on every x86-64 processor and touches no memory.
        unsafe { std::arch::x86_64::_rdtsc() }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        static START: OnceLock<Instant> = OnceLock::new();
        u64::try_from(START.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Ticks in a microsecond; measured at the first call, which takes about 10 ms.
pub fn per_microsecond() -> u64 {
    *TICKS_PER_US.get_or_init(|| {
        let (instant, ticks) = (Instant::now(), now());
        std::thread::sleep(Duration::from_millis(10));
        let (elapsed, ticks) = (instant.elapsed(), now().wrapping_sub(ticks));
        (ticks / u64::try_from(elapsed.as_micros()).unwrap_or(1).max(1)).max(1)
    })
}

/// Ticks as microseconds.
#[inline]
pub fn to_microseconds(ticks: u64) -> u64 {
    ticks / per_microsecond()
}

/// Turns ticks into microseconds by one multiplication.
#[derive(Clone, Copy, Debug)]
pub struct Rate(u64);

impl Rate {
    /// The measured rate.
    pub fn get() -> Rate {
        // Rounded up, so that a whole number of microseconds of ticks is not cut to one less.
        Rate(u64::MAX / per_microsecond() + 1)
    }

    /// Ticks as nanoseconds; right up to hours.
    #[inline]
    pub fn nanoseconds(self, ticks: u64) -> u64 {
        self.microseconds(ticks.saturating_mul(1000))
    }

    /// Ticks as microseconds.
    #[inline]
    pub fn microseconds(self, ticks: u64) -> u64 {
        #[allow(clippy::cast_possible_truncation)]
        let high = ((u128::from(ticks) * u128::from(self.0)) >> 64) as u64;
        high
    }
}
