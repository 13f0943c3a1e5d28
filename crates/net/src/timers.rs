//! Deadlines by key.
//!
//! An ordered set of (deadline, key) with a map from key to deadline: setting, cancelling and taking cost O(log n), the
//! next deadline O(1) in practice. Each key has at most one deadline, so a cancelled timer leaves nothing behind.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::time::{Duration, Instant};

/// Deadlines by key.
#[derive(Clone, Debug, Default)]
pub struct Timers<K> {
    queue: BTreeSet<(Instant, K)>,
    deadlines: HashMap<K, Instant>,
}

impl<K: Copy + Ord + Hash> Timers<K> {
    /// No timers.
    pub fn new() -> Self {
        Timers { queue: BTreeSet::new(), deadlines: HashMap::new() }
    }

    /// Sets the deadline of `key`, in place of an earlier one.
    pub fn set(&mut self, key: K, deadline: Instant) {
        if let Some(old) = self.deadlines.insert(key, deadline) {
            self.queue.remove(&(old, key));
        }
        self.queue.insert((deadline, key));
    }

    /// Takes the deadline of `key` back; gives it, if there was one.
    pub fn cancel(&mut self, key: K) -> Option<Instant> {
        let deadline = self.deadlines.remove(&key)?;
        self.queue.remove(&(deadline, key));
        Some(deadline)
    }

    /// The deadline of `key`.
    pub fn get(&self, key: K) -> Option<Instant> {
        self.deadlines.get(&key).copied()
    }

    /// Takes one key whose deadline has come, the earliest first.
    pub fn pop_due(&mut self, now: Instant) -> Option<K> {
        let &(deadline, key) = self.queue.first()?;
        if deadline > now {
            return None;
        }
        self.queue.pop_first();
        self.deadlines.remove(&key);
        Some(key)
    }

    /// Time until the next deadline, zero when it has passed; `None` without timers. This is what
    /// [`crate::Service::turn`] returns.
    pub fn next_in(&self, now: Instant) -> Option<Duration> {
        self.queue.first().map(|(deadline, _)| deadline.saturating_duration_since(now))
    }

    /// Number of timers.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether there are no timers.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}
