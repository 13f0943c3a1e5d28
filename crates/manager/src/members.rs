//! What the leading manager knows of members right now: when each was heard of, and what it tells of itself.
//!
//! Kept in memory only. A manager that begins to lead knows nothing yet; within a third of a lease all have told.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use topology::Newness;
use topology::lease::GrantedLease;
use topology::wire::{LeaseRequest, MemberKind};

use crate::shapes::Status;

/// Leases without a word from a member until it counts as down rather than late.
const LEASES_TO_DOWN: u32 = 2;
/// Most facts of a member that are kept, and most bytes of all of them: they come from a peer.
const FACTS_MAX: usize = 64;
const FACTS_BYTES_MAX: usize = 16 << 10;

/// The members that were heard of.
#[derive(Debug, Default)]
pub(crate) struct Members {
    inner: Mutex<HashMap<String, Record>>,
}

#[derive(Clone, Debug)]
struct Record {
    kind: MemberKind,
    run: String,
    newness: Newness,
    seen: Instant,
    /// Until when it may believe that its lease holds, by any clock.
    lease_until: Instant,
    facts: Map<String, Value>,
    /// What was told of it last.
    told: Option<State>,
}

/// Whether a member is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Its lease holds.
    Up,
    /// Its lease has ended.
    Late,
    /// It was not heard of for longer.
    Down,
    /// It was never heard of.
    Unknown,
}

impl State {
    pub(crate) fn name(self) -> &'static str {
        match self {
            State::Up => "up",
            State::Late => "late",
            State::Down => "down",
            State::Unknown => "unknown",
        }
    }
}

/// What a request for a lease says that was not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// Nothing.
    None,
    /// It is heard of for the first time.
    First,
    /// Its process is another one.
    Restarted,
}

impl Members {
    /// Notes a request that came at `now` and was granted a lease of `lease`.
    pub(crate) fn note(&self, id: &str, request: &LeaseRequest, now: Instant, lease: Duration) -> News {
        let mut members = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let before = members.get(id);
        let news = match before {
            None => News::First,
            Some(before) if before.run != request.run => News::Restarted,
            Some(_) => News::None,
        };
        let told = before.and_then(|before| before.told);
        // A lease that was granted is never taken back: a longer one from before counts on.
        let lease_ms = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX);
        let over = Duration::from_millis(GrantedLease::new(0, lease_ms).over_ms());
        let until = before.map_or(now, |before| before.lease_until).max(now + over);
        let record = Record {
            kind: request.kind,
            run: request.run.chars().take(64).collect(),
            newness: request.newness(),
            seen: now,
            lease_until: until,
            facts: facts(&request.status),
            told,
        };
        members.insert(id.to_owned(), record);
        news
    }

    /// Notes the epoch that a member got with an answer.
    pub(crate) fn note_view(&self, id: &str, newness: Newness) {
        let mut members = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(record) = members.get_mut(id) {
            record.newness = record.newness.max(newness);
        }
    }

    pub(crate) fn forget(&self, id: &str) {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }

    /// Forgets all: another manager leads, and hears of them from now on.
    pub(crate) fn clear(&self) {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Whether a member is there at `now`.
    pub(crate) fn state(&self, id: &str, now: Instant, lease: Duration) -> State {
        let members = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        members.get(id).map_or(State::Unknown, |record| record.state(now, lease))
    }

    /// What is known of a member at `now`.
    pub(crate) fn status(&self, id: &str, now: Instant, lease: Duration) -> Status {
        let members = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(record) = members.get(id) else {
            return Status { state: State::Unknown.name().into(), ..Status::default() };
        };
        let ago = now.saturating_duration_since(record.seen).as_millis();
        Status {
            state: record.state(now, lease).name().into(),
            last_seen_ms: Some(u64::try_from(ago).unwrap_or(u64::MAX)),
            run: record.run.clone(),
            epoch: record.newness.epoch.0,
            facts: record.facts.clone(),
        }
    }

    /// Members whose state is another one than was told last, with the new one; from now on it counts as told. Late ones
    /// are not news yet, nor are those that are up when they are heard of first.
    pub(crate) fn changed(&self, now: Instant, lease: Duration) -> Vec<(String, MemberKind, State)> {
        let mut members = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changed = Vec::new();
        for (id, record) in members.iter_mut() {
            let state = record.state(now, lease);
            if state == State::Late || record.told == Some(state) {
                continue;
            }
            if record.told.replace(state).is_some() || state != State::Up {
                changed.push((id.clone(), record.kind, state));
            }
        }
        changed
    }
}

impl Record {
    fn state(&self, now: Instant, lease: Duration) -> State {
        if now < self.lease_until {
            State::Up
        } else if now < self.seen + lease * LEASES_TO_DOWN {
            State::Late
        } else {
            State::Down
        }
    }
}

/// What a member tells of itself, within bounds.
fn facts(status: &Value) -> Map<String, Value> {
    let Some(told) = status.as_object() else {
        return Map::new();
    };
    let mut bytes = 0;
    let mut kept = Map::new();
    for (name, value) in told.iter().take(FACTS_MAX) {
        bytes += name.len() + value.to_string().len();
        if bytes > FACTS_BYTES_MAX {
            break;
        }
        kept.insert(name.clone(), value.clone());
    }
    kept
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use topology::{Epoch, Term};

    use super::*;

    const LEASE: Duration = Duration::from_secs(3);

    fn request(run: &str) -> LeaseRequest {
        LeaseRequest {
            kind: MemberKind::Server,
            run: run.into(),
            term: Term(1),
            epoch: Epoch(4),
            address: "h:1".into(),
            wait_ms: 0,
            status: json!({ "keys": 3 }),
        }
    }

    #[test]
    fn members_are_up_late_and_down() {
        let members = Members::default();
        let now = Instant::now();
        assert_eq!(members.state("a", now, LEASE), State::Unknown);
        assert_eq!(members.note("a", &request("1"), now, LEASE), News::First);
        assert_eq!(members.note("a", &request("1"), now, LEASE), News::None);
        assert_eq!(members.note("a", &request("2"), now, LEASE), News::Restarted);
        assert_eq!(members.status("a", now, LEASE).number("keys"), Some(3));
        assert!(members.changed(now, LEASE).is_empty(), "it is up when it is heard of first");
        let late = now + Duration::from_millis(3_100);
        assert_eq!(members.state("a", late, LEASE), State::Late);
        assert!(members.changed(late, LEASE).is_empty());
        let down = now + Duration::from_millis(6_100);
        assert_eq!(members.changed(down, LEASE), [("a".into(), MemberKind::Server, State::Down)]);
        assert!(members.changed(down, LEASE).is_empty(), "told once");
        members.note("a", &request("2"), down, LEASE);
        assert_eq!(members.changed(down, LEASE), [("a".into(), MemberKind::Server, State::Up)]);
    }

    #[test]
    fn a_lease_is_not_shortened() {
        let members = Members::default();
        let now = Instant::now();
        members.note("a", &request("1"), now, LEASE);
        members.note("a", &request("1"), now + Duration::from_secs(1), Duration::from_millis(300));
        assert_eq!(members.state("a", now + Duration::from_millis(2_900), LEASE), State::Up);
    }

    #[test]
    fn facts_are_bounded() {
        let big = json!({ "a": 1, "b": "x".repeat(FACTS_BYTES_MAX) });
        assert_eq!(facts(&big).len(), 1);
        assert!(facts(&json!("no object")).is_empty());
    }
}
