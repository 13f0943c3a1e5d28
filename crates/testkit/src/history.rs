//! Decides whether a history of concurrent reads and writes of one register is linearizable:
//! whether each operation can be given one instant between its call and its return so that
//! every read returns the last value written before it.
//!
//! The search is Wing and Gong's with Lowe's memory of states that already failed: try each
//! operation that could come next (one that no unplaced operation returned before the call of),
//! and go back when none fits. Operations whose outcome is unknown, for instance because the
//! connection broke, may take effect at any later time or never.

use std::collections::{BTreeMap, HashSet};

/// What an operation did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Wrote this value.
    Write(u64),
    /// Read this value (`None`: the register was absent).
    Read(Option<u64>),
    /// Replaced the first value by the second, and said whether the first was there.
    CompareAndSet {
        /// Value that had to be there.
        expected: u64,
        /// Value that replaced it.
        new: u64,
        /// Whether it did.
        done: bool,
    },
}

/// One operation of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// What it did.
    pub action: Action,
    /// When it was called, on any clock that all clients share.
    pub called: u64,
    /// When it returned; `None` when it never did.
    pub returned: Option<u64>,
}

/// Whether the history of a register that is absent at first is linearizable.
pub fn is_linearizable(history: &[Operation]) -> bool {
    let mut operations = history.to_vec();
    operations.sort_by_key(|operation| operation.called);
    // Reads without a return say nothing.
    operations.retain(|op| op.returned.is_some() || !matches!(op.action, Action::Read(_)));
    let must_return = operations.iter().filter(|op| op.returned.is_some()).count();
    let mut search = Search { operations: &operations, failed: HashSet::new() };
    search.run(must_return)
}

/// As [`is_linearizable`], for a history without compare-and-set in which no value is written twice: in the time that sorting
/// takes, and saying what is wrong.
///
/// Each value has a cluster of operations: its write and its reads. Let `end` be the first return among them and `begin` the
/// last call. If `end < begin`, the register held the value from `end` to `begin` at least (a forward zone); else it may have
/// held it for an instant between `begin` and `end` (a backward zone). The history is linearizable when no read returned
/// before its write was called, no two forward zones overlap, and no backward zone lies within a forward one (Gibbons and
/// Korach).
///
/// # Errors
/// What contradicts what.
pub fn check_unique_writes(history: &[Operation]) -> Result<(), String> {
    struct Cluster {
        /// Of the write; `None`: nobody wrote it.
        called: Option<u64>,
        end: u64,
        begin: u64,
        is_read: bool,
        is_known: bool,
    }
    let mut clusters: BTreeMap<Option<u64>, Cluster> = BTreeMap::new();
    let fresh = || Cluster { called: None, end: u64::MAX, begin: 0, is_read: false, is_known: false };
    // Absent from before all.
    clusters.insert(None, Cluster { called: Some(0), end: 0, is_known: true, ..fresh() });
    for operation in history {
        let value = match operation.action {
            Action::Write(value) => Some(value),
            Action::Read(value) => value,
            Action::CompareAndSet { .. } => return Err("a compare-and-set is nothing for this check".to_owned()),
        };
        let is_read = matches!(operation.action, Action::Read(_));
        if is_read && operation.returned.is_none() {
            continue;
        }
        let cluster = clusters.entry(value).or_insert_with(fresh);
        if !is_read {
            cluster.called = Some(operation.called);
            cluster.is_known = operation.returned.is_some();
        }
        cluster.is_read |= is_read;
        cluster.end = cluster.end.min(operation.returned.unwrap_or(u64::MAX));
        cluster.begin = cluster.begin.max(operation.called);
    }
    clusters.retain(|_, cluster| cluster.is_read || cluster.is_known);
    for (value, cluster) in &clusters {
        match cluster.called {
            None => return Err(format!("{value:?} was read and never written")),
            Some(called) if cluster.end < called => return Err(format!("{value:?} was read before it was written")),
            Some(_) => {}
        }
    }
    let mut forward: Vec<(u64, u64, Option<u64>)> = clusters
        .iter()
        .filter(|(_, cluster)| cluster.end < cluster.begin)
        .map(|(value, cluster)| (cluster.end, cluster.begin, *value))
        .collect();
    forward.sort_unstable();
    for pair in forward.windows(2) {
        if pair[0].1 > pair[1].0 {
            return Err(format!(
                "{:?} was there at {}, {:?} at {}, and then {:?} at {}",
                pair[0].2, pair[0].0, pair[1].2, pair[1].0, pair[0].2, pair[0].1
            ));
        }
    }
    for (value, cluster) in clusters.iter().filter(|(_, cluster)| cluster.end >= cluster.begin) {
        let before = forward.partition_point(|zone| zone.0 < cluster.begin);
        let Some(zone) = before.checked_sub(1).and_then(|index| forward.get(index)) else { continue };
        if cluster.end < zone.1 {
            return Err(format!(
                "{value:?} came and went between {} and {}, when {:?} was there from {} to {}",
                cluster.begin, cluster.end, zone.2, zone.0, zone.1
            ));
        }
    }
    Ok(())
}

struct Search<'a> {
    operations: &'a [Operation],
    /// Sets of placed operations, with the value they leave, from which nothing led to the end.
    failed: HashSet<(Vec<u64>, Option<u64>)>,
}

struct Frame {
    candidates: Vec<usize>,
    placed: Option<(usize, Option<u64>)>,
}

impl Search<'_> {
    fn run(&mut self, must_return: usize) -> bool {
        let words = self.operations.len().div_ceil(64);
        let mut done = vec![0_u64; words];
        let mut value = None;
        let mut left = must_return;
        if left == 0 {
            return true;
        }
        let mut stack = vec![Frame { candidates: self.candidates(&done), placed: None }];
        while let Some(frame) = stack.last_mut() {
            // Undo what this frame tried last.
            if let Some((index, before)) = frame.placed.take() {
                done[index / 64] &= !(1 << (index % 64));
                left += usize::from(self.operations[index].returned.is_some());
                value = before;
            }
            let Some(index) = frame.candidates.pop() else {
                stack.pop();
                continue;
            };
            let Some(next) = apply(self.operations[index].action, value) else {
                continue;
            };
            frame.placed = Some((index, value));
            done[index / 64] |= 1 << (index % 64);
            left -= usize::from(self.operations[index].returned.is_some());
            value = next;
            if left == 0 {
                return true;
            }
            if self.failed.insert((done.clone(), value)) {
                let candidates = self.candidates(&done);
                stack.push(Frame { candidates, placed: None });
            }
        }
        false
    }

    /// Operations that may come next: those called before the first return among the unplaced.
    fn candidates(&self, done: &[u64]) -> Vec<usize> {
        let is_open = |index: &usize| done[index / 64] >> (index % 64) & 1 == 0;
        let mut first_return = u64::MAX;
        let mut candidates = Vec::new();
        for index in (0..self.operations.len()).filter(is_open) {
            let operation = &self.operations[index];
            if operation.called > first_return {
                break;
            }
            first_return = first_return.min(operation.returned.unwrap_or(u64::MAX));
            candidates.push(index);
        }
        candidates.retain(|&index| self.operations[index].called <= first_return);
        // The earliest return is the likeliest to come first, and is taken from the end.
        candidates.sort_by_key(|&index| std::cmp::Reverse(self.operations[index].returned.unwrap_or(u64::MAX)));
        candidates
    }
}

/// The value after an action, or `None` when it cannot happen here.
fn apply(action: Action, value: Option<u64>) -> Option<Option<u64>> {
    match action {
        Action::Write(new) => Some(Some(new)),
        Action::Read(seen) => (seen == value).then_some(value),
        Action::CompareAndSet { expected, new, done: true } => (value == Some(expected)).then_some(Some(new)),
        Action::CompareAndSet { expected, done: false, .. } => (value != Some(expected)).then_some(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(called: u64, returned: u64, action: Action) -> Operation {
        Operation { action, called, returned: Some(returned) }
    }

    /// Both checks agree on random histories, most of which are wrong, and on right ones.
    #[test]
    fn the_quick_check_agrees_with_the_search() {
        let mut counts = [0; 2];
        for seed in 0..3_000 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut value = None;
            let mut history = Vec::new();
            for number in 1..=8_u64 {
                let at = number * 10 + 100;
                let action = if random.bool() {
                    value = Some(number);
                    Action::Write(number)
                } else if random.u8(0..5) > 0 {
                    Action::Read(value)
                } else {
                    Action::Read(Some(random.u64(1..=number)))
                };
                let returned = (random.u8(0..6) > 0).then(|| at + random.u64(1..30));
                history.push(Operation { action, called: at - random.u64(1..30), returned });
            }
            // All instants differ, so that it does not matter which of two equal ones counts as first.
            for (index, operation) in history.iter_mut().enumerate() {
                operation.called = operation.called * 64 + index as u64;
                operation.returned = operation.returned.map(|at| at * 64 + 32 + index as u64);
            }
            let slow = is_linearizable(&history);
            assert_eq!(check_unique_writes(&history).is_ok(), slow, "seed {seed}: {history:?}");
            counts[usize::from(slow)] += 1;
        }
        assert!(counts.iter().all(|count| *count > 100), "{counts:?}");
    }

    #[test]
    fn a_sequential_history_is_linearizable() {
        let history = [
            op(0, 1, Action::Read(None)),
            op(2, 3, Action::Write(1)),
            op(4, 5, Action::Read(Some(1))),
            op(6, 7, Action::CompareAndSet { expected: 1, new: 2, done: true }),
            op(8, 9, Action::CompareAndSet { expected: 1, new: 3, done: false }),
            op(10, 11, Action::Read(Some(2))),
        ];
        assert!(is_linearizable(&history));
    }

    #[test]
    fn overlapping_operations_may_take_either_order() {
        let history = [
            op(0, 10, Action::Write(1)),
            op(0, 10, Action::Write(2)),
            op(1, 3, Action::Read(Some(2))),
            op(4, 9, Action::Read(Some(1))),
        ];
        assert!(is_linearizable(&history));
    }

    #[test]
    fn a_stale_read_is_found() {
        let history = [op(0, 1, Action::Write(1)), op(2, 3, Action::Write(2)), op(4, 5, Action::Read(Some(1)))];
        assert!(!is_linearizable(&history));
    }

    #[test]
    fn reads_that_go_back_are_found() {
        let history = [op(0, 20, Action::Write(1)), op(1, 2, Action::Read(Some(1))), op(3, 4, Action::Read(None))];
        assert!(!is_linearizable(&history));
    }

    #[test]
    fn a_lost_update_is_found() {
        let history = [
            op(0, 1, Action::Write(1)),
            op(2, 9, Action::CompareAndSet { expected: 1, new: 2, done: true }),
            op(3, 8, Action::CompareAndSet { expected: 1, new: 3, done: true }),
        ];
        assert!(!is_linearizable(&history));
    }

    #[test]
    fn an_operation_without_return_may_or_may_not_have_happened() {
        let unknown = Operation { action: Action::Write(7), called: 2, returned: None };
        let seen = [op(0, 1, Action::Write(1)), unknown, op(5, 6, Action::Read(Some(7)))];
        let unseen = [op(0, 1, Action::Write(1)), unknown, op(5, 6, Action::Read(Some(1)))];
        let too_early = [op(0, 1, Action::Read(Some(7))), unknown];
        assert!(is_linearizable(&seen));
        assert!(is_linearizable(&unseen));
        assert!(!is_linearizable(&too_early));
    }

    /// Random histories made from one true order are accepted; the same with one read changed
    /// to a value from the future are not.
    #[test]
    fn random_histories_and_their_corruptions() {
        for seed in 0..200 {
            let mut random = fastrand::Rng::with_seed(seed);
            let (mut value, mut history) = (None, Vec::new());
            for instant in 0..120_u64 {
                let at = instant * 10;
                let (before, after) = (random.u64(0..25), random.u64(0..25));
                let action = if random.bool() {
                    value = Some(instant);
                    Action::Write(instant)
                } else {
                    Action::Read(value)
                };
                history.push(op((at + 100) - before, at + 100 + after, action));
            }
            assert!(is_linearizable(&history), "seed {seed}");
            if let Some(index) = (1..60).find(|&i| matches!(history[i].action, Action::Read(_))) {
                let last_write = history.iter().rev().find_map(|op| match op.action {
                    Action::Write(value) => Some(value),
                    _ => None,
                });
                history[index].action = Action::Read(last_write);
                assert!(!is_linearizable(&history), "seed {seed}");
            }
        }
    }
}
