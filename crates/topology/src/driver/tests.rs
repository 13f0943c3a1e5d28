#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::*;
use crate::change::NewMove;
use crate::model::GroupId;
use crate::slots::SlotSpace;

fn alive(letter: &str) -> Seat {
    Seat::Alive { run: letter.repeat(40), address: format!("{letter}:1") }
}

fn ends() -> Ends {
    Ends { source: alive("a"), target: alive("b") }
}

fn planned() -> Topology {
    let server = |group: u32| Change::AddServer {
        group: GroupId(group),
        id: format!("s{group}"),
        address: format!("h:{group}"),
        zone: String::new(),
    };
    let slots = SlotSet::range(0, 9);
    let changes = [
        Change::AddGroup { id: None },
        Change::AddGroup { id: None },
        server(1),
        server(2),
        Change::AssignSlots { group: GroupId(1), slots: SlotSpace::Redis.all() },
        Change::PlanMoves { moves: vec![NewMove { from: GroupId(1), to: GroupId(2), slots, rate: 1000 }] },
    ];
    Topology::new("test", SlotSpace::Redis).apply_all(&changes).unwrap()
}

fn status(state: CopyState, lag_bytes: u64) -> Answer {
    Answer::Status(CopyStatus {
        id: 1,
        state,
        keys: 0,
        bytes: 0,
        total_keys: 0,
        lag_bytes,
        rate: 1000,
        started_ms: 0,
        error: String::new(),
    })
}

/// Drives a move, answering as told; gives what was done as text, a line each.
struct Script {
    driver: Driver,
    topology: Topology,
    ends: Ends,
    now: u64,
}

impl Script {
    fn new() -> Script {
        Script { driver: Driver::new(MoveId(1), Pace::default()), topology: planned(), ends: ends(), now: 0 }
    }

    /// The next action as text, with its answer; a change is applied, a wait waited.
    fn step(&mut self, answer: Answer) -> String {
        let action = self.driver.next(&self.topology, &self.ends, self.now);
        match &action {
            Action::Apply(change) => {
                self.topology = self.topology.apply(change).unwrap();
                let json = serde_json::to_value(change).unwrap();
                json.as_object().unwrap().keys().next().unwrap().clone()
            }
            Action::Send { to, command, .. } => {
                self.driver.answered(&action, answer, self.now);
                format!("{to:?} {}", command.words(MoveId(1))[1..].join(" "))
            }
            Action::Wait { ms, why } => {
                self.now += ms;
                format!("wait for {why}")
            }
            Action::Over => "over".to_string(),
        }
    }
}

#[test]
fn a_move_goes_its_way() {
    let mut script = Script::new();
    let unknown = || Answer::Refused("ERR unknown move".to_string());
    assert_eq!(script.step(Answer::Done), "start_copy");
    assert_eq!(script.step(unknown()), "Source MOVE STATUS 1");
    assert_eq!(script.step(Answer::Done), "Source MOVE START 1 b:1 0-9 RATE 1000");
    assert_eq!(script.step(status(CopyState::Copying, 0)), "Source MOVE STATUS 1");
    assert_eq!(script.step(Answer::Done), "wait for the copy");
    assert_eq!(script.step(status(CopyState::Following, 1 << 30)), "Source MOVE STATUS 1");
    assert_eq!(script.step(Answer::Done), "wait for the copy");
    assert_eq!(script.step(status(CopyState::Following, 10)), "Source MOVE STATUS 1");
    assert_eq!(script.step(Answer::Done), "begin_cutover");
    let epoch = script.topology.epoch;
    assert_eq!(script.step(Answer::Done), format!("Source MOVE FREEZE 1 {epoch} 500"));
    assert_eq!(script.topology.owner(0), Some(GroupId(1)));
    assert_eq!(script.step(Answer::Done), "commit");
    assert_eq!(script.topology.owner(0), Some(GroupId(2)));
    let epoch = script.topology.epoch;
    assert_eq!(script.step(Answer::Lost("cut".to_string())), format!("Target IMPORT COMMIT 1 0 {epoch}"));
    assert_eq!(script.step(Answer::Done), "wait for a while, after a failure");
    assert_eq!(script.step(Answer::Done), format!("Target IMPORT COMMIT 1 0 {epoch}"));
    assert_eq!(script.step(Answer::Done), format!("Source MOVE FINISH 1 0 {epoch}"));
    assert_eq!(script.step(Answer::Done), "finish");
    assert_eq!(script.step(Answer::Done), "over");
}

#[test]
fn a_new_manager_goes_on_where_the_record_says() {
    let mut script = Script::new();
    assert_eq!(script.step(Answer::Done), "start_copy");
    script.driver = Driver::new(MoveId(1), Pace::default());
    assert_eq!(script.step(status(CopyState::Following, 0)), "Source MOVE STATUS 1");
    assert_eq!(script.step(Answer::Done), "begin_cutover");
    script.driver = Driver::new(MoveId(1), Pace::default());
    assert!(script.step(Answer::Done).starts_with("Source MOVE FREEZE"));
    script.driver = Driver::new(MoveId(1), Pace::default());
    assert!(script.step(Answer::Refused("ERR the target is slow".to_string())).starts_with("Source MOVE FREEZE"));
    assert_eq!(script.step(Answer::Done), "wait for a while, after a failure");
    assert_eq!(script.step(Answer::Done), "thaw");
    let one = script.topology.find_move(MoveId(1)).unwrap();
    assert_eq!((one.thaws, one.reason.as_str()), (1, "ERR the target is slow"));
}

#[test]
fn a_restarted_end_begins_the_copy_anew() {
    for end in [End::Source, End::Target] {
        let mut script = Script::new();
        script.step(Answer::Done);
        script.step(status(CopyState::Following, 0));
        assert_eq!(script.step(Answer::Done), "begin_cutover");
        match end {
            End::Source => script.ends.source = alive("c"),
            End::Target => script.ends.target = alive("c"),
        }
        assert_eq!(script.step(Answer::Done), "restart");
        let epoch = script.topology.epoch;
        assert_eq!(script.step(Answer::Done), format!("Source MOVE CANCEL 1 0 {epoch}"));
        assert_eq!(script.step(Answer::Done), format!("Target IMPORT ABORT 1 0 {epoch}"));
        assert_eq!(script.step(Answer::Done), "start_copy");
        assert_eq!(script.topology.find_move(MoveId(1)).unwrap().attempts, 2);
    }
}

#[test]
fn a_cancelled_move_is_taken_back_at_both_ends() {
    let mut script = Script::new();
    script.step(Answer::Done);
    script.step(status(CopyState::Following, 0));
    script.step(Answer::Done);
    script.topology = script.topology.apply(&Change::Cancel { id: MoveId(1) }).unwrap();
    script.ends.target = Seat::Silent;
    assert!(script.step(Answer::Done).starts_with("Source MOVE CANCEL 1"));
    assert_eq!(script.step(Answer::Done), "wait for the target");
    script.ends.target = alive("b");
    assert!(script.step(Answer::Done).starts_with("Target IMPORT ABORT 1"));
    assert_eq!(script.step(Answer::Done), "settle");
    assert_eq!(script.step(Answer::Done), "over");
}

#[test]
fn a_move_rests_and_changes_its_rate() {
    let mut script = Script::new();
    let change = |script: &mut Script, change: Change| script.topology = script.topology.apply(&change).unwrap();
    change(&mut script, Change::SetPaused { id: MoveId(1), paused: true });
    assert_eq!(script.step(Answer::Done), "wait for to be resumed");
    change(&mut script, Change::SetPaused { id: MoveId(1), paused: false });
    script.step(Answer::Done);
    script.step(status(CopyState::Copying, 0));
    change(&mut script, Change::SetPaused { id: MoveId(1), paused: true });
    assert_eq!(script.step(Answer::Done), "Source MOVE PAUSE 1");
    assert_eq!(script.step(status(CopyState::Paused, 0)), "Source MOVE STATUS 1");
    assert_eq!(script.step(Answer::Done), "wait for the copy");
    change(&mut script, Change::SetPaused { id: MoveId(1), paused: false });
    change(&mut script, Change::SetRate { id: MoveId(1), rate: 7 });
    assert_eq!(script.step(Answer::Done), "Source MOVE RESUME 1");
    assert_eq!(script.step(status(CopyState::Following, 1 << 40)), "Source MOVE STATUS 1");
    assert_eq!(script.step(Answer::Done), "Source MOVE RATE 1 7");
    assert_eq!(script.step(Answer::Done), "wait for the copy");
}

#[test]
fn what_never_works_fails_in_the_end() {
    let mut script = Script::new();
    for _ in 0..2_000 {
        let failed = script.topology.find_move(MoveId(1)).unwrap().stage == Stage::Failed;
        if failed {
            break;
        }
        let answer = match script.driver.next(&script.topology, &script.ends, script.now) {
            Action::Send { command: Command::Status | Command::Start { .. }, .. } => {
                Answer::Refused("ERR out of memory".to_string())
            }
            _ => Answer::Done,
        };
        script.step(answer);
    }
    let one = script.topology.find_move(MoveId(1)).unwrap();
    assert_eq!(one.stage, Stage::Failed);
    assert!(one.reason.contains("in vain") && one.reason.contains("out of memory"), "{}", one.reason);
}

#[test]
fn a_source_that_is_away_does_not_hold_up_what_is_decided() {
    let mut script = Script::new();
    script.step(Answer::Done);
    script.step(status(CopyState::Following, 0));
    script.step(Answer::Done);
    script.step(Answer::Done);
    assert_eq!(script.step(Answer::Done), "commit");
    script.ends.source = Seat::Unknown;
    assert!(script.step(Answer::Done).starts_with("Target IMPORT COMMIT"));
    assert_eq!(script.step(Answer::Done), "wait for the source");
    script.ends.source = Seat::Silent;
    assert_eq!(script.step(Answer::Done), "finish");
}
