#![allow(clippy::unwrap_used, clippy::expect_used)]

use proptest::prelude::*;

use super::*;
use crate::model::Topology;
use crate::slots::SlotSpace;

/// A cluster with that many groups of a server each.
fn groups(space: SlotSpace, count: u32) -> Topology {
    let mut topology = Topology::new("test", space);
    for id in 1..=count {
        topology = with_group(&topology, id);
    }
    topology
}

fn with_group(topology: &Topology, id: u32) -> Topology {
    let server = Change::AddServer {
        group: GroupId(id),
        id: format!("s{id}"),
        address: format!("127.0.0.1:{}", 7000 + id),
        zone: String::new(),
    };
    topology.apply_all(&[Change::AddGroup { id: Some(GroupId(id)) }, server]).unwrap()
}

fn assigned(topology: &Topology, group: u32, slots: SlotSet) -> Topology {
    if slots.is_empty() {
        return topology.clone();
    }
    topology.apply(&Change::AssignSlots { group: GroupId(group), slots }).unwrap()
}

/// What the plan's moves lead to.
fn moved(topology: &Topology, plan: &Plan) -> Topology {
    let mut after = topology.apply_all(&plan.changes).unwrap();
    for one in after.open_moves().map(|one| one.id).collect::<Vec<_>>() {
        let (source_run, target_run) = ("a".repeat(40), "b".repeat(40));
        let start = Change::StartCopy { id: one, source_run: source_run.clone(), target_run: target_run.clone() };
        let commit = Change::Commit { id: one, source_run, target_run, attempts: 1, thaws: 0 };
        after =
            after.apply_all(&[start, Change::BeginCutover { id: one }, commit, Change::Finish { id: one }]).unwrap();
    }
    after
}

fn counts(topology: &Topology) -> Vec<usize> {
    topology.groups.iter().map(|group| group.slots.count()).collect()
}

fn moved_slots(plan: &Plan) -> usize {
    plan.changes
        .iter()
        .map(|change| match change {
            Change::PlanMoves { moves } => moves.iter().map(|new| new.slots.count()).sum(),
            _ => 0,
        })
        .sum()
}

#[test]
fn a_new_cluster_is_shared_out_in_one_range_each() {
    let empty = groups(SlotSpace::Redis, 3);
    let plan = initial(&empty).unwrap();
    let full = empty.apply_all(&plan.changes).unwrap();
    assert!(full.unowned().is_empty());
    assert!(full.groups.iter().all(|group| group.slots.ranges().len() == 1));
    assert_eq!(counts(&full).iter().max().unwrap() - counts(&full).iter().min().unwrap(), 1);
    assert_eq!(plan.groups.iter().map(|carried| carried.slots_after).collect::<Vec<_>>(), counts(&full));
    assert!(plan.lines[0].starts_with("group 1 gets 546"), "{:?}", plan.lines);
    assert!(initial(&full).unwrap().changes.is_empty());
    assert!(initial(&Topology::new("none", SlotSpace::Redis)).unwrap_err().hint.contains("add a group"));
}

#[test]
fn a_new_group_gets_its_share_and_a_drained_one_keeps_nothing() {
    let three = groups(SlotSpace::Redis, 3);
    let three = three.apply_all(&initial(&three).unwrap().changes).unwrap();
    let four = with_group(&three, 4);
    for plan in
        [rebalance(&four, &[], &Wish::default()).unwrap(), fill(&four, GroupId(4), &[], &Wish::default()).unwrap()]
    {
        assert_eq!(moved_slots(&plan), 4096);
        assert_eq!(counts(&moved(&four, &plan)), [4096; 4]);
        let Change::PlanMoves { moves } = &plan.changes[0] else { panic!("{plan:?}") };
        assert!(moves.iter().all(|new| new.slots.count() <= 256 && new.slots.ranges().len() == 1));
        assert!(plan.lines.iter().any(|line| line.starts_with("move 1366 slots from group")), "{:?}", plan.lines);
        assert!(plan.lines.contains(&"group 4: 0 → 4096 slots".to_string()), "{:?}", plan.lines);
    }
    let plan = drain(&three, GroupId(2), &[], &Wish::default()).unwrap();
    assert_eq!(counts(&moved(&three, &plan)), [8192, 0, 8192]);
    assert!(drain(&three, GroupId(9), &[], &Wish::default()).is_err());
    let nobody = groups(SlotSpace::Redis, 1);
    assert!(drain(&nobody, GroupId(1), &[], &Wish::default()).is_err());
}

#[test]
fn moving_slots_count_for_their_target_and_stay() {
    let two = assigned(&groups(SlotSpace::Codis, 2), 1, SlotSpace::Codis.all());
    let half = NewMove { from: GroupId(1), to: GroupId(2), slots: SlotSet::range(0, 511), rate: 0 };
    let moving = two.apply(&Change::PlanMoves { moves: vec![half] }).unwrap();
    assert!(rebalance(&moving, &[], &Wish::default()).unwrap().changes.is_empty());
    let plan = drain(&moving, GroupId(1), &[], &Wish::default()).unwrap();
    assert_eq!(moved_slots(&plan), 512);
    let plan = drain(&moving, GroupId(2), &[], &Wish::default()).unwrap();
    assert!(plan.lines.iter().any(|line| line.contains("on their way to group 2")), "{:?}", plan.lines);
}

#[test]
fn memory_is_made_alike_with_few_slots() {
    let two = assigned(&groups(SlotSpace::Codis, 2), 1, SlotSet::range(0, 511));
    let two = assigned(&two, 2, SlotSet::range(512, 1023));
    let heavy = |slot, bytes| SlotStats { slot, bytes, ..SlotStats::default() };
    let stats = [heavy(3, 5_000_000), heavy(4, 3_000_000), heavy(5, 2_000_000), heavy(600, 2_000_000)];
    let wish = Wish { by: Measure::Memory, ..Wish::default() };
    let plan = rebalance(&two, &stats, &wish).unwrap();
    // 10 and 2 of 12: the three goes. Nothing that is left would bring 7 and 5 nearer to each other.
    assert_eq!(moved_slots(&plan), 1, "{:?}", plan.lines);
    assert!(plan.lines[0].contains("with"), "{:?}", plan.lines);
    // Nothing is stored at all: by number then.
    let lone = with_group(&two, 3);
    assert_eq!(moved_slots(&rebalance(&lone, &[], &wish).unwrap()), 341);
}

#[test]
fn a_cluster_of_256_groups_is_planned_for() {
    let many = groups(SlotSpace::Redis, 256);
    let full = many.apply_all(&initial(&many).unwrap().changes).unwrap();
    assert_eq!(counts(&full), [64; 256]);
    let more = with_group(&full, 257);
    let plan = rebalance(&more, &[], &Wish::default()).unwrap();
    assert_eq!(moved_slots(&plan), 63);
    more.apply_all(&plan.changes).unwrap();
    // All that is heavy lies in one group.
    let stats: Vec<SlotStats> = (0..16384)
        .map(|slot| SlotStats { slot, bytes: if slot < 64 { 1 << 30 } else { 1 << 10 }, ..SlotStats::default() })
        .collect();
    let plan = rebalance(&more, &stats, &Wish { by: Measure::Memory, ..Wish::default() }).unwrap();
    assert!(plan.groups.iter().all(|carried| carried.after < 2 << 30), "{:?}", plan.lines);
    assert!(moved_slots(&plan) < 500, "{}", moved_slots(&plan));
    more.apply_all(&plan.changes).unwrap();
}

#[test]
fn amounts_are_read_by_people() {
    assert_eq!(amount(Measure::Memory, 1023), "1023 B");
    assert_eq!(amount(Measure::Memory, 1536), "1.5 KiB");
    assert_eq!(amount(Measure::Memory, u64::MAX), "16777215.9 TiB");
    assert_eq!(amount(Measure::Load, 7), "7 commands/s");
}

/// A cluster of Codis' space with its slots anyhow, some of them moving, and what they carry.
fn any_cluster() -> impl Strategy<Value = (Topology, Vec<SlotStats>)> {
    let owners = proptest::collection::vec(0u32..=8, 1024);
    let weights = proptest::collection::vec(prop_oneof![Just(0u64), 1u64..100, 1_000u64..100_000], 1024);
    (2u32..=8, owners, weights, any::<bool>()).prop_map(|(count, owners, weights, skew)| {
        let mut topology = groups(SlotSpace::Codis, count);
        for id in 1..=count {
            let slots = (0u16..).zip(&owners).filter(|(slot, owner)| {
                if skew { *slot % 3 == 0 && id == 1 || id == 2 && slot % 3 == 1 } else { **owner == id }
            });
            topology = assigned(&topology, id, slots.map(|(slot, _)| slot).collect());
        }
        let stats = (0u16..).zip(weights).map(|(slot, weight)| SlotStats { slot, keys: 1, bytes: weight, ops: weight });
        (topology, stats.collect())
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn everything_gets_an_owner_and_counts_become_alike((topology, _) in any_cluster()) {
        let plan = initial(&topology).unwrap();
        let full = topology.apply_all(&plan.changes).unwrap();
        prop_assert!(full.unowned().is_empty());
        for group in &topology.groups {
            prop_assert!(group.slots.is_subset(&full.group(group.id).unwrap().slots));
        }
        let plan = rebalance(&full, &[], &Wish::default()).unwrap();
        let after = moved(&full, &plan);
        prop_assert!(after.unowned().is_empty());
        let (before, counts) = (counts(&full), counts(&after));
        prop_assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1, "{:?}", counts);
        // The fewest: those that have most keep one more, as many of them as there must be.
        let (floor, more) = (1024 / before.len(), 1024 % before.len());
        let mut sorted = before.clone();
        sorted.sort_unstable_by(|one, two| two.cmp(one));
        let wanted = |at: usize| floor + usize::from(at < more);
        let fewest: usize = sorted.iter().enumerate().map(|(at, &had)| had.saturating_sub(wanted(at))).sum();
        prop_assert_eq!(moved_slots(&plan), fewest);
        prop_assert!(rebalance(&after, &[], &Wish::default()).unwrap().changes.is_empty());
    }

    #[test]
    fn loads_become_alike((topology, stats) in any_cluster(), by in prop_oneof![Just(Measure::Memory), Just(Measure::Load)]) {
        let wish = Wish { by, slots_per_move: 1024, ..Wish::default() };
        let plan = rebalance(&topology, &stats, &wish).unwrap();
        let heaviest = stats.iter().map(|stats| stats.bytes).max().unwrap();
        let loads = |of: fn(&Carried) -> u64| plan.groups.iter().map(of).collect::<Vec<_>>();
        let (before, after) = (loads(|carried| carried.before), loads(|carried| carried.after));
        let total: u64 = before.iter().sum();
        prop_assert_eq!(total, after.iter().sum::<u64>());
        let mean = total / before.len() as u64;
        let spread = |loads: &[u64]| loads.iter().max().unwrap() - loads.iter().min().unwrap();
        let bound = (mean / 10 + 2).max(2 * heaviest);
        prop_assert!(spread(&after) <= bound.min(spread(&before).max(bound)), "{:?} -> {:?}", before, after);
        prop_assert!(spread(&after) <= spread(&before).max(bound));
        if total > 0 {
            // Little more than what lies above the mean was moved.
            let surplus: u64 = before.iter().map(|load| load.saturating_sub(mean)).sum();
            let carried: u64 = plan.changes.iter().flat_map(|change| match change {
                Change::PlanMoves { moves } => moves.clone(),
                _ => Vec::new(),
            }).flat_map(|new| new.slots.iter().collect::<Vec<_>>()).map(|slot| stats[usize::from(slot)].bytes).sum();
            prop_assert!(carried <= surplus + heaviest * before.len() as u64, "{} of {}", carried, surplus);
        }
        moved(&topology, &plan);
    }

    #[test]
    fn draining_empties((topology, stats) in any_cluster(), by in prop_oneof![Just(Measure::Slots), Just(Measure::Memory)]) {
        let wish = Wish { by, slots_per_move: 1024, ..Wish::default() };
        let plan = drain(&topology, GroupId(1), &stats, &wish).unwrap();
        prop_assert_eq!(moved_slots(&plan), topology.groups[0].slots.count());
        let after = moved(&topology, &plan);
        prop_assert!(after.groups[0].slots.is_empty());
        prop_assert_eq!(after.unowned(), topology.unowned());
        after.apply(&Change::RemoveGroup { id: GroupId(1) }).unwrap();
    }
}
