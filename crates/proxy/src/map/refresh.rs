//! When to ask for the map anew, and whom to believe.
//!
//! A redirection corrects one slot at once; that a server said MOVED, or cannot be reached, also asks for the whole map.
//! Such wishes come thousands at a time, so there is a least distance between two questions, which grows while nobody
//! answers. Without any wish the map is asked for every few seconds: a replica that was added says nothing by itself.
//!
//! A server that was cut off may hold an old map. One with a lower config epoch than ours is not believed, unless ours was
//! not confirmed by anybody for a while: then the cluster was perhaps built anew.

use std::time::{Duration, Instant};

use super::ClusterMap;

/// Least time between two questions.
const GAP: Duration = Duration::from_millis(100);
/// Longest time between two questions while nobody answers.
const GAP_MAX: Duration = Duration::from_secs(2);
/// Time between two questions without a reason.
const EVERY: Duration = Duration::from_secs(5);
/// Time after which a map that nobody confirmed gives way to an older one.
const UNCONFIRMED: Duration = Duration::from_secs(15);

/// See the module.
#[derive(Clone, Debug)]
pub struct RefreshPolicy {
    asked_at: Option<Instant>,
    confirmed_at: Option<Instant>,
    wanted: bool,
    failures: u32,
}

impl RefreshPolicy {
    /// Asks at once.
    pub fn new() -> Self {
        RefreshPolicy { asked_at: None, confirmed_at: None, wanted: true, failures: 0 }
    }

    /// Somebody has seen that the map is not right.
    pub fn want(&mut self) {
        self.wanted = true;
    }

    /// The time until the next question; zero: now.
    pub fn wait(&self, now: Instant) -> Duration {
        let Some(asked_at) = self.asked_at else { return Duration::ZERO };
        let gap = GAP.saturating_mul(1 << self.failures.min(8)).min(GAP_MAX);
        let gap = if self.wanted || self.failures > 0 { gap } else { EVERY };
        (asked_at + gap).saturating_duration_since(now)
    }

    /// A question begins.
    pub fn asked(&mut self, now: Instant) {
        self.asked_at = Some(now);
        // What is wanted from here on, the answer may not show yet.
        self.wanted = false;
    }

    /// Nobody answered.
    pub fn failed(&mut self) {
        self.failures = self.failures.saturating_add(1);
    }

    /// An answer came; whether it is to be taken in place of `current`.
    pub fn answered(&mut self, now: Instant, current: Option<&ClusterMap>, new: &ClusterMap) -> bool {
        self.failures = 0;
        let is_older = current.is_some_and(|current| new.epoch() < current.epoch());
        let is_empty = new.count_owned() == 0 && current.is_some_and(|current| current.count_owned() > 0);
        let is_confirmed = self.confirmed_at.is_some_and(|at| now.saturating_duration_since(at) < UNCONFIRMED);
        if (is_older || is_empty) && is_confirmed {
            // Another server may know better.
            self.wanted = true;
            return false;
        }
        self.confirmed_at = Some(now);
        true
    }
}

impl Default for RefreshPolicy {
    fn default() -> Self {
        RefreshPolicy::new()
    }
}
