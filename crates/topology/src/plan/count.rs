//! Plans by the number of slots: the fewest moves that make the numbers alike to one.

use super::*;

/// How many slots a group has, and how many it may give.
struct Count {
    id: GroupId,
    had: usize,
    has: usize,
    spare: usize,
    receives: bool,
}

/// Cuts `slots` into one piece for each group that receives, so that all have alike many in the end.
pub(super) fn share_out(parts: &Parts, slots: &SlotSet) -> Vec<(GroupId, SlotSet)> {
    let mut counts = counts(parts);
    pour(&mut counts, slots.count());
    let mut left = slots.clone();
    let mut pieces = Vec::new();
    for count in counts.iter().filter(|count| count.has > count.had) {
        let piece = left.lowest(count.has - count.had);
        left = left.difference(&piece);
        pieces.push((count.id, piece));
    }
    pieces
}

/// Takes from those that have most and gives to those that have least, until they are alike to one.
pub(super) fn level(parts: &Parts) -> Flows {
    let mut counts = counts(parts);
    let share = counts.iter().map(|count| count.has).sum::<usize>().div_ceil(counts.len().max(1));
    // One slot at a time: at most as often as there are slots, over as many groups as there are.
    loop {
        let giver = counts.iter().enumerate().filter(|(_, count)| count.spare > 0).max_by_key(|(_, count)| count.has);
        let taker = counts.iter().enumerate().filter(|(_, count)| count.receives).min_by_key(|(_, count)| count.has);
        let (Some((giver, most)), Some((taker, least))) = (giver, taker) else { break };
        // Whoever receives gets no more than its share, though givers that may not receive be far from each other.
        if most.has <= least.has + 1 || least.has >= share {
            break;
        }
        if let Some(count) = counts.get_mut(giver) {
            count.has -= 1;
            count.spare -= 1;
        }
        if let Some(count) = counts.get_mut(taker) {
            count.has += 1;
        }
    }
    matched(parts, &counts)
}

/// Gives all that drained groups may give to those that have least.
pub(super) fn drain(parts: &Parts) -> Flows {
    let mut counts = counts(parts);
    let mut given = 0;
    for count in counts.iter_mut().filter(|count| count.spare > 0) {
        given += count.spare;
        count.has -= count.spare;
    }
    pour(&mut counts, given);
    matched(parts, &counts)
}

fn counts(parts: &Parts) -> Vec<Count> {
    let count = |part: &Part| {
        let has = part.slots.count();
        let spare = if part.gives { part.free.count() } else { 0 };
        Count { id: part.id, had: has, has, spare, receives: part.receives }
    };
    parts.groups.iter().map(count).collect()
}

/// Adds slots one by one, each to the group that has least.
fn pour(counts: &mut [Count], amount: usize) {
    for _ in 0..amount {
        if let Some(count) = counts.iter_mut().filter(|count| count.receives).min_by_key(|count| count.has) {
            count.has += 1;
        }
    }
}

/// Matches those that give with those that receive, in order, each with whole runs of slots.
fn matched(parts: &Parts, counts: &[Count]) -> Flows {
    let mut flows = Flows::new();
    let mut takers = counts.iter().filter(|count| count.has > count.had).map(|count| (count.id, count.has - count.had));
    let mut taker = takers.next();
    for count in counts.iter().filter(|count| count.has < count.had) {
        let free = parts.groups.iter().find(|part| part.id == count.id).map(|part| part.free.clone());
        let mut left = highest(&free.unwrap_or_default(), count.had - count.has);
        while !left.is_empty() {
            let Some((id, wants)) = taker else { break };
            let piece = left.lowest(wants);
            left = left.difference(&piece);
            let rest = wants - piece.count();
            flows.insert((count.id, id), piece);
            taker = if rest > 0 { Some((id, rest)) } else { takers.next() };
        }
    }
    flows
}
