//! What a new view decides of the moves that are under way here.
//!
//! A move that the view does not list is decided: its slots are those of the group they are listed under. The source then
//! serves them again or drops them, the target drops what it received unless it is the owner. What a target holds of a move
//! that is at `cutover` or `committed` is kept whatever becomes of the process: it may be all there is of acknowledged
//! writes.

use super::super::store::{Arrival, Leaving};
use super::super::{Map, slots_of};
use super::{Control, Hold};
use crate::log;
use crate::process::log::Level;
use keyspace::Slot;
use std::sync::Arc;
use std::time::{Duration, Instant};
use topology::{Role, SlotSet, Stage};

/// How long slots that a view gave away are still held for FINISH, which the manager sends when the target serves them. A
/// client that is sent there earlier would be sent back.
const LINGER: Duration = Duration::from_millis(500);

fn are_ours(map: &Map, slots: &SlotSet) -> bool {
    slots_of(slots).all(|slot| map.is_ours(slot))
}

impl Control {
    /// Moves away from here. A hold is decided by views that are newer than it only.
    pub(super) fn decide_outgoing(&mut self, map: &Map) {
        let going = self.shared.cluster.outgoing().into_iter().filter(|one| !one.is_over()).map(|one| one.id);
        let mut all: Vec<u64> = going.chain(self.holds.iter().map(|hold| hold.id)).collect();
        all.sort_unstable();
        all.dedup();
        for id in all {
            let hold: Option<Hold> = self.holds.iter().find(|hold| hold.id == id).cloned();
            if hold.as_ref().is_some_and(|hold| map.view.epoch.0 <= hold.epoch) {
                continue;
            }
            let outgoing = self.shared.cluster.outgoing_of(id);
            let shown = map.view.moves.iter().find(|one| one.id.0 == id);
            // One that is copied by another incarnation is none of this one's.
            let shown = shown.filter(|one| one.source_run.as_ref().is_none_or(|run| *run == self.shared.run_id));
            match shown.map(|one| one.stage) {
                Some(Stage::Cutover) => continue,
                Some(Stage::Committed) if self.lingers(id) => continue,
                Some(Stage::Copying) => {
                    if hold.is_some() {
                        self.release(id);
                        if let Some(outgoing) = outgoing {
                            outgoing.thaw();
                        }
                    }
                    continue;
                }
                // The view that says that it is copied is on its way.
                Some(Stage::Planned) if hold.is_none() => continue,
                _ => {}
            }
            let slots = match (&hold, &outgoing) {
                (Some(hold), _) => hold.slots.clone(),
                (None, Some(outgoing)) => outgoing.slots.clone(),
                (None, None) => continue,
            };
            if are_ours(map, &slots) {
                if let Some(outgoing) = outgoing {
                    outgoing.cancel();
                }
                self.release(id);
            } else if let Some(outgoing) = outgoing {
                self.finish(id, &slots, &outgoing.target.clone(), map.newness());
                outgoing.finish();
            }
        }
    }

    /// Whether the slots of a move that was decided for the target are held still, for FINISH; they are looked at again
    /// when that has been waited for long enough.
    fn lingers(&mut self, id: u64) -> bool {
        let Some(hold) = self.holds.iter_mut().find(|hold| hold.id == id) else { return false };
        if let Some(until) = hold.lingers {
            return until > Instant::now();
        }
        hold.lingers = Some(Instant::now() + LINGER);
        let shared = Arc::downgrade(&self.shared);
        let look_again = move || {
            std::thread::sleep(LINGER);
            let Some(shared) = shared.upgrade() else { return };
            shared.control(|control| {
                if let Some(map) = control.shared.cluster.map() {
                    control.decide_outgoing(&map);
                    control.settle_all();
                }
            });
        };
        if let Err(error) = std::thread::Builder::new().name("linger".into()).spawn(look_again) {
            log!(Level::Warning, "There is no thread to watch slots that are given away, they are not held: {error}");
            return false;
        }
        true
    }

    /// Moves to here; those of before a restart have no thread. Returns the slots whose contents are to be dropped.
    pub(super) fn decide_arrivals(&mut self, map: &Map) -> SlotSet {
        let mut gone = SlotSet::default();
        let Some((home, _)) = map.home else { return gone };
        for Arrival { id, slots } in self.kept.coming.clone() {
            if are_ours(map, &slots) {
                self.end_arrival(id);
                continue;
            }
            let mut to_here = map.view.moves.iter().filter(|one| one.to == home);
            let is_at_stake = to_here
                .clone()
                .any(|one| matches!(one.stage, Stage::Cutover | Stage::Committed) && !one.slots.is_disjoint(&slots));
            let incoming = self.shared.cluster.incoming_of(id);
            if is_at_stake || (incoming.is_some() && to_here.any(|one| one.id.0 == id)) {
                continue;
            }
            if let Some(incoming) = incoming {
                incoming.stop();
            }
            self.end_arrival(id);
            gone = gone.union(&slots);
        }
        gone
    }

    /// Moves away from here that were under way when the server was started: decided ones are tidied up. Returns the slots
    /// whose contents are to be dropped.
    pub(super) fn decide_leavings(&mut self, map: &Map) -> SlotSet {
        let mut dropped = SlotSet::default();
        for Leaving { id, slots, .. } in self.kept.leaving.clone() {
            let goes_on = map.view.moves.iter().any(|one| one.id.0 == id);
            if goes_on || self.shared.cluster.outgoing_of(id).is_some_and(|one| !one.is_over()) {
                continue;
            }
            self.kept.leaving.retain(|other| other.id != id);
            if matches!(map.home, Some((_, Role::Primary))) {
                let gone: SlotSet = slots.iter().filter(|slot| !map.is_ours(Slot::new(usize::from(*slot)))).collect();
                dropped = dropped.union(&gone);
            }
        }
        if !std::mem::replace(&mut self.is_tidied, true) {
            dropped = dropped.union(&self.kept.dropping);
        }
        dropped
    }
}
