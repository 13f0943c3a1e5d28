//! A member of a cluster (a server, a proxy): a thread that holds the member's lease at the manager and receives views.
//!
//! [`Membership`] is what the rest of the process reads: the newest view, and until when the lease is valid.
#![forbid(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use arc_swap::ArcSwapOption;
use topology::View;

/// What a member knows, readable by any thread at the price of a relaxed load.
pub struct Membership {
    view: ArcSwapOption<View>,
    /// Milliseconds since `began` up to which the lease is valid; 0 before the first.
    deadline_ms: AtomicU64,
    began: Instant,
}

impl Default for Membership {
    fn default() -> Membership {
        Membership { view: ArcSwapOption::empty(), deadline_ms: AtomicU64::new(0), began: Instant::now() }
    }
}

impl Membership {
    /// The newest view; none before the first.
    pub fn view(&self) -> Option<Arc<View>> {
        self.view.load_full()
    }

    /// Milliseconds of the clock that [`Membership::deadline_ms`] is counted by.
    pub fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Until when the lease is valid, by [`Membership::now_ms`].
    #[inline]
    pub fn deadline_ms(&self) -> u64 {
        // Relaxed: the number stands for itself; who reads an old one holds an earlier deadline, which is the safe side.
        self.deadline_ms.load(Ordering::Relaxed)
    }

    /// What is left of the lease, in milliseconds; 0 without one.
    pub fn lease_left_ms(&self) -> u64 {
        self.deadline_ms().saturating_sub(self.now_ms())
    }
}
