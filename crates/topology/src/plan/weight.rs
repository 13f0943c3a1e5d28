//! Plans by what slots carry: bytes or commands a second.
//!
//! Step by step, from the group that carries most to the one that carries least, the biggest slot that makes neither pass the
//! mean; when each would, the smallest that still brings them nearer to each other. Each step makes the sum of squares
//! smaller and no slot moves twice, so it ends; and what moves is hardly more than what must.

use super::*;

/// A group's load, and the slots that it may give by what they carry.
struct Load {
    id: GroupId,
    load: u64,
    free: BTreeSet<(u64, u16)>,
    receives: bool,
}

/// Moves until every group is within the tolerance of the mean, or no slot is small enough to better it.
pub(super) fn level(parts: &Parts, tolerance_percent: u32) -> Flows {
    let mut loads = loads(parts);
    let mean = parts.total() / u64::try_from(loads.len()).unwrap_or(1).max(1);
    let slack = u64::try_from(u128::from(mean) * u128::from(tolerance_percent) / 100).unwrap_or(u64::MAX);
    let mut picked = Picked::new();
    // Givers that have nothing (any more) that would help.
    let mut stuck = BTreeSet::new();
    loop {
        let givers = loads.iter().enumerate().filter(|(at, load)| !stuck.contains(at) && !load.free.is_empty());
        let Some((giver, most)) = givers.max_by_key(|(_, load)| load.load) else { break };
        let takers = loads.iter().enumerate().filter(|(at, load)| load.receives && *at != giver);
        let Some((taker, least)) = takers.min_by_key(|(_, load)| load.load) else { break };
        // Whoever receives is not filled beyond the mean, though givers that may not receive be far from each other.
        let enough = least.load >= mean || most.load <= mean.saturating_add(slack);
        if enough && least.load >= mean.saturating_sub(slack) {
            break;
        }
        let Some(slot) = best(most, least, mean) else {
            stuck.insert(giver);
            continue;
        };
        give(&mut loads, giver, taker, slot, &mut picked);
    }
    flows(picked)
}

/// Gives everything that drained groups may give, the heaviest first, each to the group that carries least.
pub(super) fn drain(parts: &Parts) -> Flows {
    let mut loads = loads(parts);
    let mut picked = Picked::new();
    loop {
        let heaviest = loads.iter().enumerate().filter_map(|(at, load)| load.free.last().map(|&slot| (slot, at))).max();
        let takers = loads.iter().enumerate().filter(|(_, load)| load.receives);
        // Slots that carry nothing are spread too.
        let taker = takers.min_by_key(|(at, load)| (load.load, picked.get(at).map_or(0, Vec::len)));
        let (Some((slot, giver)), Some((taker, _))) = (heaviest, taker) else { break };
        give(&mut loads, giver, taker, slot, &mut picked);
    }
    flows(picked)
}

/// For each taker's place: slots and who gives them, and the taker.
type Picked = BTreeMap<usize, Vec<(GroupId, GroupId, u16)>>;

fn loads(parts: &Parts) -> Vec<Load> {
    let load = |part: &Part| {
        let free = if part.gives {
            part.free.iter().map(|slot| (parts.weight(slot), slot)).collect()
        } else {
            BTreeSet::new()
        };
        Load { id: part.id, load: parts.load(&part.slots), free, receives: part.receives }
    };
    parts.groups.iter().map(load).collect()
}

/// The slot to take from `most` for `least`.
fn best(most: &Load, least: &Load, mean: u64) -> Option<(u64, u16)> {
    let apart = most.load.saturating_sub(least.load);
    let limit = most.load.saturating_sub(mean).min(mean.saturating_sub(least.load));
    // A range that ends before it begins would panic.
    if limit == 0 {
        return None;
    }
    let fits = most.free.range((1, 0)..=(limit, u16::MAX)).next_back().copied();
    let Some((weight, slot)) = fits else {
        return most.free.range((1, 0)..).next().copied().filter(|&(weight, _)| weight < apart);
    };
    // A group that is heavy by one slot is not made lighter by moving all the light ones.
    let most_there_is = u128::from(weight) * most.free.len() as u128;
    (most_there_is >= u128::from(limit / 8)).then_some((weight, slot))
}

fn give(loads: &mut [Load], giver: usize, taker: usize, slot: (u64, u16), picked: &mut Picked) {
    let mut from = None;
    if let Some(load) = loads.get_mut(giver) {
        load.free.remove(&slot);
        load.load = load.load.saturating_sub(slot.0);
        from = Some(load.id);
    }
    if let (Some(load), Some(from)) = (loads.get_mut(taker), from) {
        load.load = load.load.saturating_add(slot.0);
        picked.entry(taker).or_default().push((from, load.id, slot.1));
    }
}

fn flows(picked: Picked) -> Flows {
    let mut slots: BTreeMap<(GroupId, GroupId), Vec<u16>> = BTreeMap::new();
    for (from, to, slot) in picked.into_values().flatten() {
        slots.entry((from, to)).or_default().push(slot);
    }
    slots.into_iter().map(|(pair, slots)| (pair, slots.into_iter().collect())).collect()
}
