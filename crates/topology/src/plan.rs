//! Plans as pure functions: what to assign or move so that groups carry alike, moving as little as can be.
//!
//! A plan is a list of changes with lines that explain it; a dry run shows the lines, and whoever wants the plan applies the
//! changes. Slots of open moves count for the group they go to, and stay in their move. Groups without a server take no part.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::change::{Change, NewMove, Refused};
use crate::model::{GroupId, Topology};
use crate::slots::SlotSet;
use crate::wire::SlotStats;

mod count;
#[cfg(test)]
mod tests;
mod weight;

/// By what groups are to be alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// How many slots they have.
    #[default]
    Slots,
    /// How many bytes their keys take.
    Memory,
    /// How many commands a second they get.
    Load,
}

/// What a plan is to reach.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Wish {
    /// By what groups are to be alike.
    #[serde(default)]
    pub by: Measure,
    /// Groups that are to own nothing in the end. Then nothing else is moved.
    #[serde(default)]
    pub drain: Vec<GroupId>,
    /// Groups that alone are to receive, new ones say; all of them when empty.
    #[serde(default)]
    pub into: Vec<GroupId>,
    /// How far from the mean a group may be, in percent; for memory and load. Slots are always made alike to one.
    #[serde(default = "default_tolerance")]
    pub tolerance_percent: u32,
    /// How many slots a move has at most; smaller moves hold their slots for less time.
    #[serde(default = "default_slots_per_move")]
    pub slots_per_move: usize,
    /// Bytes a second for each move; 0 for no limit.
    #[serde(default)]
    pub rate: u64,
}

impl Default for Wish {
    fn default() -> Wish {
        Wish {
            by: Measure::Slots,
            drain: Vec::new(),
            into: Vec::new(),
            tolerance_percent: default_tolerance(),
            slots_per_move: default_slots_per_move(),
            rate: 0,
        }
    }
}

/// A plan.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Plan {
    /// What to apply, in order; nothing when all is as wished.
    pub changes: Vec<Change>,
    /// What the plan does and what comes of it, for people.
    pub lines: Vec<String>,
    /// What each group carries before and after.
    pub groups: Vec<Carried>,
}

/// What a group carries before a plan and after it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Carried {
    /// The group.
    pub id: GroupId,
    /// Its slots before, those that are on their way to it included.
    pub slots_before: usize,
    /// Its slots after.
    pub slots_after: usize,
    /// What it carries before, by the wished measure: slots, bytes or commands a second.
    pub before: u64,
    /// What it carries after.
    pub after: u64,
}

/// Gives the slots that nobody owns to the groups, so that they have alike many, in few ranges.
pub fn initial(topology: &Topology) -> Result<Plan, Refused> {
    let parts = Parts::of(topology, &Wish::default(), &[])?;
    let unowned = topology.unowned();
    let mut plan = Plan { groups: parts.carried(&BTreeMap::new()), ..Plan::default() };
    for (group, slots) in count::share_out(&parts, &unowned) {
        plan.lines.push(format!("group {group} gets {}: {slots}", slots_text(slots.count())));
        for carried in plan.groups.iter_mut().filter(|carried| carried.id == group) {
            carried.slots_after += slots.count();
            carried.after = u64::try_from(carried.slots_after).unwrap_or(u64::MAX);
        }
        plan.changes.push(Change::AssignSlots { group, slots });
    }
    if plan.changes.is_empty() {
        plan.lines.push("every slot has an owner".to_string());
    }
    Ok(plan)
}

/// Moves slots between groups until the wish is met, as few as can be (of bytes or load: nearly so). `stats` names what the
/// slots carry; slots it does not name carry nothing.
pub fn rebalance(topology: &Topology, stats: &[SlotStats], wish: &Wish) -> Result<Plan, Refused> {
    let parts = Parts::of(topology, wish, stats)?;
    // Slots that carry nothing at all are made alike by their number.
    let by_weight = wish.by != Measure::Slots && parts.total() > 0;
    let flows = match (wish.drain.is_empty(), by_weight) {
        (true, false) => count::level(&parts),
        (true, true) => weight::level(&parts, wish.tolerance_percent),
        (false, false) => count::drain(&parts),
        (false, true) => weight::drain(&parts),
    };
    Ok(written(topology, &parts, wish, flows))
}

/// Moves everything off a group.
pub fn drain(topology: &Topology, group: GroupId, stats: &[SlotStats], wish: &Wish) -> Result<Plan, Refused> {
    rebalance(topology, stats, &Wish { drain: vec![group], into: Vec::new(), ..wish.clone() })
}

/// Gives a group (a new one) its share of the others' slots, and moves nothing between those.
pub fn fill(topology: &Topology, group: GroupId, stats: &[SlotStats], wish: &Wish) -> Result<Plan, Refused> {
    rebalance(topology, stats, &Wish { into: vec![group], drain: Vec::new(), ..wish.clone() })
}

/// Which slots go from which group to which.
type Flows = BTreeMap<(GroupId, GroupId), SlotSet>;

/// A group as a plan sees it.
struct Part {
    id: GroupId,
    /// What it has, with what is on its way to it.
    slots: SlotSet,
    /// What of that a plan may move.
    free: SlotSet,
    receives: bool,
    gives: bool,
    drains: bool,
}

/// The groups that take part, and what slots carry.
struct Parts {
    groups: Vec<Part>,
    /// By slot; one that is not in it carries nothing.
    weights: BTreeMap<u16, u64>,
    by: Measure,
}

impl Parts {
    fn of(topology: &Topology, wish: &Wish, stats: &[SlotStats]) -> Result<Parts, Refused> {
        for &id in wish.drain.iter().chain(&wish.into) {
            let group = topology.group(id).ok_or_else(|| Refused {
                error: format!("there is no group {id}"),
                hint: "list them with /groups".to_string(),
                kind: crate::change::RefusedKind::Missing,
            })?;
            if wish.into.contains(&id) && group.servers.is_empty() {
                return Err(conflict(format!("group {id} has no server"), "add a server to it first"));
            }
        }
        let moving = topology.moving();
        let mut groups = Vec::new();
        for group in topology.groups.iter().filter(|group| !group.servers.is_empty()) {
            let mut slots = group.slots.clone();
            for one in topology.moves.iter().filter(|one| one.stage.is_running()) {
                if one.to == group.id {
                    slots = slots.union(&one.slots);
                } else if one.from == group.id {
                    slots = slots.difference(&one.slots);
                }
            }
            let drains = wish.drain.contains(&group.id);
            let into = wish.into.contains(&group.id);
            groups.push(Part {
                id: group.id,
                free: slots.difference(&moving),
                slots,
                receives: !drains && (wish.into.is_empty() || into),
                gives: if wish.drain.is_empty() { !into || wish.into.len() > 1 } else { drains },
                drains,
            });
        }
        if !groups.iter().any(|part| part.receives) {
            return Err(conflict("no group with a server could receive slots".to_string(), "add a group and a server"));
        }
        let weights = stats.iter().map(|stats| {
            let weight = match wish.by {
                Measure::Slots => 1,
                Measure::Memory => stats.bytes,
                Measure::Load => stats.ops,
            };
            (stats.slot, weight)
        });
        Ok(Parts { groups, weights: weights.collect(), by: wish.by })
    }

    fn weight(&self, slot: u16) -> u64 {
        match self.by {
            Measure::Slots => 1,
            _ => self.weights.get(&slot).copied().unwrap_or(0),
        }
    }

    fn load(&self, slots: &SlotSet) -> u64 {
        slots.iter().fold(0, |sum: u64, slot| sum.saturating_add(self.weight(slot)))
    }

    fn total(&self) -> u64 {
        self.groups.iter().fold(0, |sum: u64, part| sum.saturating_add(self.load(&part.slots)))
    }

    fn carried(&self, flows: &Flows) -> Vec<Carried> {
        let mut after: BTreeMap<GroupId, SlotSet> =
            self.groups.iter().map(|part| (part.id, part.slots.clone())).collect();
        for ((from, to), slots) in flows {
            if let Some(had) = after.get_mut(from) {
                *had = had.difference(slots);
            }
            if let Some(had) = after.get_mut(to) {
                *had = had.union(slots);
            }
        }
        let carried = |part: &Part| {
            let after = after.get(&part.id).unwrap_or(&part.slots);
            Carried {
                id: part.id,
                slots_before: part.slots.count(),
                slots_after: after.count(),
                before: self.load(&part.slots),
                after: self.load(after),
            }
        };
        self.groups.iter().map(carried).collect()
    }
}

/// The plan that makes these flows.
fn written(topology: &Topology, parts: &Parts, wish: &Wish, flows: Flows) -> Plan {
    let groups = parts.carried(&flows);
    let mut moves = Vec::new();
    let mut lines = Vec::new();
    for ((from, to), slots) in &flows {
        let carries = match wish.by {
            Measure::Slots => String::new(),
            by => format!(" with {}", amount(by, parts.load(slots))),
        };
        lines.push(format!("move {}{carries} from group {from} to group {to}: {slots}", slots_text(slots.count())));
        let mut left = slots.clone();
        while !left.is_empty() {
            let some = left.lowest(wish.slots_per_move.max(1));
            left = left.difference(&some);
            moves.push(NewMove { from: *from, to: *to, slots: some, rate: wish.rate });
        }
    }
    for carried in &groups {
        let slots = format!("group {}: {} → {} slots", carried.id, carried.slots_before, carried.slots_after);
        lines.push(match wish.by {
            Measure::Slots => slots,
            by => format!("{slots}, {} → {}", amount(by, carried.before), amount(by, carried.after)),
        });
    }
    for part in parts.groups.iter().filter(|part| part.drains && !part.slots.difference(&part.free).is_empty()) {
        let stay = part.slots.difference(&part.free);
        lines.push(format!("slots {stay} are on their way to group {}: drain it again when they came", part.id));
    }
    if let Some(slot) = topology.unowned().first() {
        lines.push(format!(
            "{} have no owner, {slot} is the first: assign them",
            slots_text(topology.unowned().count())
        ));
    }
    if moves.is_empty() {
        lines.insert(0, "nothing to move".to_string());
        return Plan { changes: Vec::new(), lines, groups };
    }
    Plan { changes: vec![Change::PlanMoves { moves }], lines, groups }
}

fn slots_text(count: usize) -> String {
    if count == 1 { "1 slot".to_string() } else { format!("{count} slots") }
}

/// An amount with its unit.
fn amount(by: Measure, value: u64) -> String {
    match by {
        Measure::Slots => format!("{value} slots"),
        Measure::Load => format!("{value} commands/s"),
        Measure::Memory => {
            let units = ["B", "KiB", "MiB", "GiB", "TiB"];
            let mut unit = 0;
            let mut whole = value;
            let mut tenths = 0;
            while whole >= 1024 && unit + 1 < units.len() {
                tenths = (whole % 1024) * 10 / 1024;
                whole /= 1024;
                unit += 1;
            }
            let name = units.get(unit).copied().unwrap_or_default();
            if unit == 0 { format!("{whole} {name}") } else { format!("{whole}.{tenths} {name}") }
        }
    }
}

fn conflict(error: String, hint: &str) -> Refused {
    Refused { error, hint: hint.to_string(), kind: crate::change::RefusedKind::Conflict }
}

fn default_tolerance() -> u32 {
    5
}

fn default_slots_per_move() -> usize {
    256
}

/// The highest slots of a set: a group that gives keeps the beginning of its ranges.
fn highest(slots: &SlotSet, count: usize) -> SlotSet {
    let skipped = slots.count().saturating_sub(count);
    slots.iter().skip(skipped).collect()
}
