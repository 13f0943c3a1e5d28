//! How far moves are: what their sources say, how fast they are, and how long they will take.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use topology::wire::{CopyState, CopyStatus};
use topology::{MoveId, Topology};

use crate::clock::now_ms;
use crate::shapes::{Event, Move, whole};

/// How much of a rate is the newest sample.
const NEWEST_SHARE: f64 = 0.3;
/// Moves that are remembered: more than the record keeps.
const REMEMBERED_MAX: usize = 10_000;

/// How far moves are.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    inner: Mutex<HashMap<MoveId, Known>>,
}

#[derive(Clone, Debug, Default)]
struct Known {
    created_ms: u64,
    ended_ms: Option<u64>,
    by: String,
    status: Option<CopyStatus>,
    /// What it waits for.
    waits: String,
    sampled: Option<Instant>,
    bytes_per_s: f64,
    keys_per_s: f64,
}

impl Progress {
    /// Notes the moves of `after` that were not in `before`, and who asked for them.
    pub(crate) fn begun(&self, before: &Topology, after: &Topology, by: &str) -> Vec<MoveId> {
        let begun: Vec<MoveId> = after.moves.iter().map(|one| one.id).filter(|id| *id >= before.next_move).collect();
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        for id in &begun {
            let known = Known { created_ms: now_ms(), by: by.to_owned(), ..Known::default() };
            inner.insert(*id, known);
        }
        if inner.len() > REMEMBERED_MAX {
            let oldest = after.moves.first().map_or(MoveId(0), |one| one.id);
            inner.retain(|id, _| *id >= oldest);
        }
        begun
    }

    /// Takes from the log of events who asked for moves, and when: a manager before this one knew.
    pub(crate) fn recall(&self, events: &[Event]) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        for event in events {
            let Some(ids) = event.object.strip_prefix("move ") else {
                continue;
            };
            for id in ids.split(", ").filter_map(|id| id.parse().ok()).map(MoveId) {
                let known = inner.entry(id).or_default();
                match event.action.as_str() {
                    "move.start" if event.result == "ok" => {
                        known.created_ms = event.at_ms;
                        known.by.clone_from(&event.who);
                    }
                    "move.done" | "move.failed" | "move.cancelled" => known.ended_ms = Some(event.at_ms),
                    _ => {}
                }
            }
        }
    }

    /// Notes what a source said at `now`.
    pub(crate) fn note(&self, id: MoveId, status: &CopyStatus, now: Instant) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let known = inner.entry(id).or_default();
        known.waits.clear();
        let grew = |new: u64, old: u64| new.checked_sub(old).map(|more| more as f64);
        if let (Some(before), Some(sampled)) = (&known.status, known.sampled) {
            let seconds = now.saturating_duration_since(sampled).as_secs_f64();
            let grown = grew(status.bytes, before.bytes).zip(grew(status.keys, before.keys));
            match grown {
                Some((bytes, keys)) if seconds > 0.0 => {
                    let blend = |old: f64, new: f64| if old == 0.0 { new } else { old + (new - old) * NEWEST_SHARE };
                    known.bytes_per_s = blend(known.bytes_per_s, bytes / seconds);
                    known.keys_per_s = blend(known.keys_per_s, keys / seconds);
                }
                Some(_) => {}
                // The copy was begun anew.
                None => (known.bytes_per_s, known.keys_per_s) = (0.0, 0.0),
            }
        }
        known.sampled = Some(now);
        known.status = Some(status.clone());
    }

    /// Notes what a move waits for.
    pub(crate) fn waits(&self, id: MoveId, what: &str) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let known = inner.entry(id).or_default();
        if known.waits != what {
            what.clone_into(&mut known.waits);
        }
    }

    /// Notes that a move is over.
    pub(crate) fn ended(&self, id: MoveId) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let known = inner.entry(id).or_default();
        known.ended_ms.get_or_insert(now_ms());
        known.waits.clear();
    }

    /// Fills in what is known of a move.
    pub(crate) fn fill(&self, shown: &mut Move) {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(known) = inner.get(&MoveId(shown.id)) else {
            return;
        };
        shown.created_ms = known.created_ms;
        shown.by.clone_from(&known.by);
        let is_over = shown.is_over();
        shown.ended_ms = known.ended_ms.filter(|_| is_over);
        if let Some(status) = known.status.as_ref().filter(|_| shown.stage != "planned") {
            shown.state = state_name(status.state).into();
            shown.keys = status.keys;
            shown.total_keys = status.total_keys;
            shown.bytes = status.bytes;
            if !is_over {
                shown.lag_bytes = status.lag_bytes;
                shown.rate = whole(known.bytes_per_s);
                shown.eta_ms = known.eta_ms(status);
            }
        }
        if !known.waits.is_empty() && !is_over {
            shown.state = format!("waits for {}", known.waits);
        }
    }
}

impl Known {
    fn eta_ms(&self, status: &CopyStatus) -> Option<u64> {
        let keys_left = status.total_keys.saturating_sub(status.keys) as f64;
        let span = |left: f64, per_s: f64| match (left, per_s) {
            (left, _) if left <= 0.0 => Some(0.0),
            (_, per_s) if per_s <= 0.0 => None,
            (left, per_s) => Some(left / per_s),
        };
        match status.state {
            CopyState::Copying => span(keys_left, self.keys_per_s).map(|seconds| whole(seconds * 1000.0)),
            CopyState::Following | CopyState::Frozen => {
                span(status.lag_bytes as f64, self.bytes_per_s).map(|seconds| whole(seconds * 1000.0))
            }
            _ => None,
        }
    }
}

fn state_name(state: CopyState) -> &'static str {
    match state {
        CopyState::Copying => "copying",
        CopyState::Following => "following",
        CopyState::Paused => "paused",
        CopyState::Frozen => "frozen",
        CopyState::Finished => "finished",
        CopyState::Cancelled => "cancelled",
        CopyState::Failed => "failed",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn status(keys: u64, bytes: u64) -> CopyStatus {
        CopyStatus {
            id: 7,
            state: CopyState::Copying,
            keys,
            bytes,
            total_keys: 1_000,
            lag_bytes: 0,
            rate: 0,
            started_ms: 0,
            error: String::new(),
        }
    }

    fn shown(progress: &Progress) -> Move {
        let mut one = Move { id: 7, stage: "copying".into(), ..Move::default() };
        progress.fill(&mut one);
        one
    }

    #[test]
    fn rates_and_ends_are_told() {
        let progress = Progress::default();
        let now = Instant::now();
        progress.note(MoveId(7), &status(0, 0), now);
        assert_eq!(shown(&progress).eta_ms, None);
        progress.note(MoveId(7), &status(100, 5_000), now + Duration::from_secs(1));
        let one = shown(&progress);
        assert_eq!((one.rate, one.eta_ms, one.keys), (5_000, Some(9_000), 100));
        // Begun anew: what was measured says nothing any more.
        progress.note(MoveId(7), &status(0, 0), now + Duration::from_secs(2));
        assert_eq!((shown(&progress).rate, shown(&progress).eta_ms), (0, None));
        progress.waits(MoveId(7), "the target");
        assert_eq!(shown(&progress).state, "waits for the target");
    }

    #[test]
    fn the_log_tells_who_began_a_move() {
        let progress = Progress::default();
        let event = |action: &str, at_ms| Event {
            action: action.into(),
            object: "move 6, 7".into(),
            who: "alice (admin)".into(),
            at_ms,
            result: "ok".into(),
            ..Event::default()
        };
        progress.recall(&[event("move.start", 5), event("move.done", 9)]);
        let one = shown(&progress);
        assert_eq!((one.created_ms, one.by.as_str(), one.ended_ms), (5, "alice (admin)", None));
    }
}
