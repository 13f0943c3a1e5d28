#![allow(clippy::unwrap_used, clippy::expect_used)]

use proptest::prelude::*;

use super::*;
use crate::slots::SlotSpace;
use crate::view::View;

fn run(letter: &str) -> String {
    letter.repeat(40)
}

fn two_groups() -> Topology {
    let server = |group, id: &str, port: u16| Change::AddServer {
        group: GroupId(group),
        id: id.to_string(),
        address: format!("127.0.0.1:{port}"),
        zone: String::new(),
    };
    let changes = [
        Change::AddGroup { id: None },
        Change::AddGroup { id: None },
        server(1, "a", 7101),
        server(1, "b", 7102),
        server(2, "c", 7111),
        Change::AssignSlots { group: GroupId(1), slots: SlotSpace::Redis.all() },
    ];
    Topology::new("test", SlotSpace::Redis).apply_all(&changes).unwrap()
}

fn planned(topology: &Topology, slots: &str) -> Topology {
    let new = NewMove { from: GroupId(1), to: GroupId(2), slots: slots.parse().unwrap(), rate: 0 };
    topology.apply(&Change::PlanMoves { moves: vec![new] }).unwrap()
}

fn to_cutover(topology: &Topology, id: MoveId) -> Topology {
    let start = Change::StartCopy { id, source_run: run("a"), target_run: run("c") };
    topology.apply_all(&[start, Change::BeginCutover { id }]).unwrap()
}

fn commit(id: MoveId) -> Change {
    Change::Commit { id, source_run: run("a"), target_run: run("c"), attempts: 1, thaws: 0 }
}

/// Each line: what is asked of two groups that have move 1 (slots 0-9) at cut-over, and a part of the answer.
#[test]
fn what_cannot_be_is_refused_with_advice() {
    let topology = to_cutover(&planned(&two_groups(), "0-9"), MoveId(1));
    let cases = [
        (r#"{"add_group":{"id":1}}"#, "group 1 is there already"),
        (r#"{"add_group":{"id":0}}"#, "no group's number"),
        (r#"{"remove_group":{"id":3}}"#, "there is no group 3"),
        (r#"{"remove_group":{"id":1}}"#, "owns 16384 slots"),
        (r#"{"remove_group":{"id":2}}"#, "move 1 (cutover) has group 2"),
        (r#"{"add_server":{"group":1,"id":"c","address":"h:1","zone":""}}"#, "a member 'c' already"),
        (r#"{"add_server":{"group":1,"id":"d","address":"127.0.0.1:7101","zone":""}}"#, "the address of 'a'"),
        (r#"{"add_server":{"group":1,"id":"d","address":"7101","zone":""}}"#, "is no address"),
        (r#"{"add_server":{"group":1,"id":"d","address":"h:0","zone":""}}"#, "is no address"),
        (r#"{"add_server":{"group":1,"id":"d","address":"h:+1","zone":""}}"#, "is no address"),
        (r#"{"add_server":{"group":1,"id":"d e","address":"h:1","zone":""}}"#, "no member's name"),
        (r#"{"add_server":{"group":9,"id":"d","address":"h:1","zone":""}}"#, "there is no group 9"),
        (r#"{"remove_server":{"id":"a"}}"#, "promote a replica first"),
        (r#"{"remove_server":{"id":"c"}}"#, "has group 2 as its source or target"),
        (r#"{"promote":{"id":"a"}}"#, "already"),
        (r#"{"remove_proxy":{"id":"a"}}"#, "there is no proxy"),
        (r#"{"assign_slots":{"group":2,"slots":[[5,6]]}}"#, "slot 5 by group 1"),
        (r#"{"assign_slots":{"group":2,"slots":[]}}"#, "no slots are named"),
        (r#"{"assign_slots":{"group":2,"slots":[[16384,16384]]}}"#, "beyond the last slot"),
        (r#"{"release_slots":{"slots":[[9,12]]}}"#, "slots 9 are in move 1"),
        (r#"{"plan_moves":{"moves":[{"from":1,"to":2,"slots":[[9,20]]}]}}"#, "slots 9 are in move 1"),
        (r#"{"plan_moves":{"moves":[{"from":2,"to":1,"slots":[[20,20]]}]}}"#, "does not belong to group 2"),
        (r#"{"plan_moves":{"moves":[{"from":1,"to":1,"slots":[[20,20]]}]}}"#, "both source and target"),
        (
            r#"{"plan_moves":{"moves":[{"from":1,"to":2,"slots":[[20,20]]},{"from":1,"to":2,"slots":[[20,20]]}]}}"#,
            "in move 2",
        ),
        (r#"{"finish":{"id":1}}"#, "move 1 is cutover, not committed"),
        (r#"{"set_paused":{"id":1,"paused":true}}"#, "move 1 is cutover, not planned or copying"),
        (r#"{"settle":{"id":1}}"#, "not cancelled or failed"),
        (r#"{"cancel":{"id":5}}"#, "there is no move 5"),
        (r#"{"commit":{"id":1,"source_run":"ff","target_run":"ff","attempts":1,"thaws":0}}"#, "another incarnation"),
        (r#"{"begin_term":{"term":0}}"#, "is not newer"),
        (r#"{"set_lease":{"lease_ms":5}}"#, "out of bounds"),
    ];
    for (change, part) in cases {
        let refused = topology.apply(&serde_json::from_str(change).unwrap()).unwrap_err();
        assert!(refused.to_string().contains(part), "{change}: {refused}");
        assert!(!refused.hint.is_empty(), "{change}");
    }
}

#[test]
fn addresses_are_told_from_others() {
    for good in ["h:1", "127.0.0.1:65535", "[::1]:7", "a-b.c_d:80"] {
        assert!(is_address(good), "{good}");
    }
    for bad in ["", ":1", "h", "h:", "h:65536", "::1:7", "[::1]", "[x]:1", "h h:1", "h:1 ", "h\n:1"] {
        assert!(!is_address(bad), "{bad}");
    }
}

#[test]
fn a_commit_hands_the_slots_over_and_nothing_else_does() {
    let id = MoveId(1);
    let start = planned(&two_groups(), "0-9,100");
    let cutover = to_cutover(&start, id);
    assert_eq!(cutover.owner(5), Some(GroupId(1)));
    let committed = cutover.apply(&commit(id)).unwrap();
    assert_eq!((committed.owner(5), committed.owner(100)), (Some(GroupId(2)), Some(GroupId(2))));
    assert_eq!(committed.owner(10), Some(GroupId(1)));
    assert_eq!(committed.groups[0].epoch, committed.epoch);
    assert_eq!(committed.find_move(id).unwrap().committed_epoch, Some(committed.epoch));
    let thawed = [Change::Thaw { id, reason: "late".to_string() }, Change::BeginCutover { id }];
    let refused = cutover.apply_all(&thawed).unwrap().apply(&commit(id)).unwrap_err();
    assert!(refused.error.contains("earlier cut-over"), "{refused}");
    assert!(committed.apply(&Change::Cancel { id }).unwrap_err().hint.contains("plan a move back"));
    let done = committed.apply(&Change::Finish { id }).unwrap();
    assert!(View::of(&done).moves.is_empty());
    assert_eq!(View::of(&committed).moves[0].stage, Stage::Committed);
}

#[test]
fn a_move_given_up_keeps_its_slots_until_both_ends_know() {
    let id = MoveId(1);
    let cancelled = to_cutover(&planned(&two_groups(), "0-9"), id).apply(&Change::Cancel { id }).unwrap();
    assert_eq!(cancelled.owner(5), Some(GroupId(1)));
    assert!(cancelled.find_move(id).unwrap().is_open());
    assert!(View::of(&cancelled).moves.is_empty());
    let new = NewMove { from: GroupId(1), to: GroupId(2), slots: "5".parse().unwrap(), rate: 0 };
    assert!(cancelled.apply(&Change::PlanMoves { moves: vec![new.clone()] }).is_err());
    let settled = cancelled.apply(&Change::Settle { id }).unwrap();
    assert!(settled.apply(&Change::PlanMoves { moves: vec![new] }).is_ok());
    // One that nobody was told of is over at once.
    let never = planned(&two_groups(), "0-9").apply(&Change::Cancel { id }).unwrap();
    assert!(!never.find_move(id).unwrap().is_open());
}

#[test]
fn a_promotion_begins_copies_anew() {
    let cutover = to_cutover(&planned(&two_groups(), "0-9"), MoveId(1));
    let promoted = cutover.apply(&Change::Promote { id: "b".to_string() }).unwrap();
    let one = promoted.find_move(MoveId(1)).unwrap();
    assert_eq!((one.stage, one.source_run.clone(), one.attempts), (Stage::Planned, None, 1));
    assert_eq!(promoted.groups[0].primary().unwrap().id, "b");
    assert!(promoted.apply(&commit(MoveId(1))).is_err());
}

#[test]
fn only_the_last_ended_moves_are_kept() {
    let mut topology = two_groups();
    for _ in 0..KEPT_MOVES + 10 {
        topology = planned(&topology, "0");
        let id = MoveId(topology.next_move.0 - 1);
        topology = topology.apply(&Change::Cancel { id }).unwrap();
    }
    assert_eq!(topology.moves.len(), KEPT_MOVES);
    assert_eq!(topology.moves.last().unwrap().id, MoveId(u64::try_from(KEPT_MOVES).unwrap() + 10));
}

#[test]
fn a_record_of_an_earlier_form_is_read() {
    let old = r#"{"cluster":"c","groups":[{"id":2,"epoch":0,"slots":[]}],
        "moves":[{"id":4,"from":1,"to":2,"slots":[[0,0]],"stage":"done","field_of_the_future":{}}],"next_move":5}"#;
    let topology: Topology = serde_json::from_str(old).unwrap();
    assert_eq!((topology.lease_ms, topology.epoch, topology.next_group), (3000, Epoch(0), GroupId(1)));
    assert_eq!(topology.slot_space, SlotSpace::Redis);
    assert!(!topology.moves[0].unsettled);
    assert_eq!(topology.check(), Ok(()));
    let next = topology.apply_all(&[Change::AddGroup { id: None }, Change::AddGroup { id: None }]).unwrap();
    assert_eq!(next.groups.iter().map(|group| group.id.0).collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn what_must_hold_is_looked_at() {
    let good = to_cutover(&planned(&two_groups(), "0-9"), MoveId(1));
    let broken = |change: fn(&mut Topology)| {
        let mut topology = good.clone();
        change(&mut topology);
        topology.check().unwrap_err()
    };
    assert!(broken(|one| one.groups[1].slots = SlotSet::range(7, 7)).contains("slot 7 has two owners"));
    assert!(broken(|one| one.groups[0].slots = SlotSet::range(5, 16383)).contains("are not group 1's"));
    assert!(broken(|one| one.groups[0].servers[1].role = Role::Primary).contains("2 primaries"));
    assert!(broken(|one| one.moves[0].source_run = None).contains("whose copy"));
    assert!(broken(|one| one.groups.reverse()).contains("out of order"));
    assert!(broken(|one| one.next_move = MoveId(1)).contains("taken"));
    assert!(broken(|one| one.moves.push(Move { id: MoveId(1), ..one.moves[0].clone() })).contains("out of order"));
}

/// Changes with so few names and numbers that many of them fit.
fn any_change() -> impl Strategy<Value = Change> {
    let group = || (1u32..=4).prop_map(GroupId);
    let slots = || (0u16..30, 0u16..8).prop_map(|(first, more)| SlotSet::range(first, first + more));
    let id = || (1u64..=12).prop_map(MoveId);
    let member = || (0u8..6).prop_map(|number| format!("m{number}"));
    let address = || (1u16..=12).prop_map(|port| format!("h:{port}"));
    let run = || prop_oneof![4 => Just("a".repeat(40)), 1 => Just("b".repeat(40))];
    let new = (group(), group(), slots()).prop_map(|(from, to, slots)| NewMove { from, to, slots, rate: 0 });
    prop_oneof![
        1 => (1u64..20).prop_map(|term| Change::BeginTerm { term: Term(term) }),
        2 => proptest::option::of(group()).prop_map(|id| Change::AddGroup { id }),
        1 => group().prop_map(|id| Change::RemoveGroup { id }),
        5 => (group(), member(), address())
            .prop_map(|(group, id, address)| Change::AddServer { group, id, address, zone: String::new() }),
        1 => member().prop_map(|id| Change::RemoveServer { id }),
        1 => (member(), address()).prop_map(|(id, address)| Change::SetServer { id, address, zone: "z".to_string() }),
        1 => member().prop_map(|id| Change::Promote { id }),
        1 => (member(), address()).prop_map(|(id, address)| Change::SetProxy { id, address, zone: String::new() }),
        1 => member().prop_map(|id| Change::RemoveProxy { id }),
        6 => (group(), slots()).prop_map(|(group, slots)| Change::AssignSlots { group, slots }),
        1 => slots().prop_map(|slots| Change::ReleaseSlots { slots }),
        6 => proptest::collection::vec(new, 1..3).prop_map(|moves| Change::PlanMoves { moves }),
        6 => (id(), run(), run()).prop_map(|(id, source_run, target_run)| Change::StartCopy { id, source_run, target_run }),
        6 => id().prop_map(|id| Change::BeginCutover { id }),
        1 => id().prop_map(|id| Change::Thaw { id, reason: "late".to_string() }),
        1 => id().prop_map(|id| Change::Restart { id, reason: "new".to_string() }),
        6 => (id(), run(), run(), 1u32..3, 0u32..2).prop_map(|(id, source_run, target_run, attempts, thaws)| {
            Change::Commit { id, source_run, target_run, attempts, thaws }
        }),
        4 => id().prop_map(|id| Change::Finish { id }),
        1 => id().prop_map(|id| Change::Cancel { id }),
        1 => id().prop_map(|id| Change::Fail { id, reason: "no".to_string() }),
        2 => id().prop_map(|id| Change::Settle { id }),
        1 => (id(), any::<bool>()).prop_map(|(id, paused)| Change::SetPaused { id, paused }),
        1 => (id(), 0u64..9).prop_map(|(id, rate)| Change::SetRate { id, rate }),
    ]
}

proptest! {
    #[test]
    fn any_changes_keep_what_must_hold(changes in proptest::collection::vec(any_change(), 0..120)) {
        let mut topology = Topology::new("test", SlotSpace::Codis);
        for change in &changes {
            let Ok(next) = topology.apply(change) else { continue };
            prop_assert_eq!(next.check(), Ok(()));
            prop_assert_eq!(next.epoch.0, topology.epoch.0 + 1);
            prop_assert!(next.newness() > topology.newness());
            // Owners change by assigning, releasing and committing only.
            if !matches!(change, Change::AssignSlots { .. } | Change::ReleaseSlots { .. } | Change::Commit { .. }) {
                for group in next.groups.iter().filter(|group| !group.slots.is_empty()) {
                    prop_assert_eq!(Some(&group.slots), topology.group(group.id).map(|before| &before.slots));
                }
            }
            for group in &next.groups {
                let before = topology.group(group.id);
                let same = before.is_some_and(|before| before.slots == group.slots && before.servers == group.servers);
                prop_assert!(same || group.epoch == next.epoch, "{:?} is not stamped by {:?}", group, change);
            }
            topology = next;
        }
        let json = serde_json::to_string(&topology).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Topology>(&json).unwrap(), &topology);
        let view = View::of(&topology);
        let json = serde_json::to_string(&view).unwrap();
        prop_assert_eq!(&serde_json::from_str::<View>(&json).unwrap(), &view);
        for change in &changes {
            let json = serde_json::to_string(change).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Change>(&json).unwrap(), change);
        }
        let table = view.slot_table();
        for slot in 0..40 {
            prop_assert_eq!(table.group(slot), topology.owner(slot));
        }
    }
}
