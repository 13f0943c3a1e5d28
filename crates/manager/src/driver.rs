//! Drives moves: carries out what `topology::driver` says, a task a move, while this manager leads.
//!
//! The record in the store is the truth. A task that ends midway (another manager leads, the process was killed) is
//! followed by another one that reads the stage from there.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;
use topology::change::Change;
use topology::driver::{Action, Answer, Command, Driver, Ends, Pace, Seat};
use topology::{GroupId, Move, MoveId, Stage, Term, Topology};

use crate::api::problem::Problem;
use crate::api::shown;
use crate::app::App;
use crate::events::Note;
use crate::members::State;
use crate::wire::WireError;

/// Looks at the list of moves at least so often.
const PERIOD: Duration = Duration::from_secs(1);
/// Wait after a change of the record that could not be made.
const CHANGE_PAUSE: Duration = Duration::from_millis(200);
/// Longest waits for answers. FREEZE has its own time on top of this.
const STATUS_PATIENCE: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(5);

/// Drives all moves until the manager ends.
pub(crate) async fn drive(app: Arc<App>) {
    let mut tasks: HashMap<MoveId, (Term, JoinHandle<()>)> = HashMap::new();
    let mut published = app.store.watch();
    let mut stop = app.stop.subscribe();
    loop {
        let now = published.borrow_and_update().clone();
        tasks.retain(|_, (_, task)| !task.is_finished());
        if let Some(term) = now.term_led() {
            // Tasks of an earlier term end by themselves.
            tasks.retain(|_, (began, task)| *began == term || !task.is_finished());
            let limit = app.settings().moves_per_group.unwrap_or(1).max(1);
            for id in due(&now.topology, limit, |id| tasks.contains_key(&id)) {
                let task = tokio::spawn(drive_one(app.clone(), id, term));
                tasks.insert(id, (term, task));
            }
        }
        tokio::select! {
            changed = published.changed() => if changed.is_err() { return },
            _ = stop.changed() => return,
            () = tokio::time::sleep(PERIOD) => {}
        }
    }
}

/// Moves that should be driven and are not: all that have begun, and of those that are planned as many as their groups
/// may take part in.
fn due(topology: &Topology, limit: u32, is_driven: impl Fn(MoveId) -> bool) -> Vec<MoveId> {
    let mut busy: HashMap<GroupId, u32> = HashMap::new();
    let has_begun = |one: &Move| one.stage != Stage::Planned || is_driven(one.id);
    // One that stands still takes nobody's place.
    for one in topology.open_moves().filter(|one| has_begun(one) && !one.paused) {
        *busy.entry(one.from).or_default() += 1;
        *busy.entry(one.to).or_default() += 1;
    }
    let mut due = Vec::new();
    for one in topology.open_moves().filter(|one| !is_driven(one.id)) {
        if one.stage == Stage::Planned {
            let is_free = |group: &GroupId| busy.get(group).is_none_or(|count| *count < limit);
            if one.paused || !is_free(&one.from) || !is_free(&one.to) {
                continue;
            }
            *busy.entry(one.from).or_default() += 1;
            *busy.entry(one.to).or_default() += 1;
        }
        due.push(one.id);
    }
    due
}

/// Drives one move while this manager leads in `term`.
async fn drive_one(app: Arc<App>, id: MoveId, term: Term) {
    let began = Instant::now();
    let pace = Pace { freeze_timeout_ms: app.settings().freeze_ms.unwrap_or(500), ..Pace::default() };
    let mut driver = Driver::new(id, pace);
    let mut published = app.store.watch();
    let mut news = app.news.subscribe();
    let mut stop = app.stop.subscribe();
    let clock = || u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    loop {
        let now = published.borrow_and_update().clone();
        news.borrow_and_update();
        if now.term_led() != Some(term) || *stop.borrow_and_update() {
            return;
        }
        let Some(ends) = ends(&app, &now.topology, id) else {
            return;
        };
        let action = driver.next(&now.topology, &ends, clock());
        match &action {
            Action::Over => return,
            Action::Wait { ms, why } => {
                // Between two looks at a copy that goes on it waits for nothing that people should know of.
                let are_there = [&ends.source, &ends.target].into_iter().all(|seat| matches!(seat, Seat::Alive { .. }));
                if !are_there || driver.status().is_none() {
                    app.progress.waits(id, why);
                }
                // A move that waits for its turn to rest gives its place away.
                let is_resting =
                    now.topology.find_move(id).is_some_and(|one| one.stage == Stage::Planned && one.paused);
                if is_resting {
                    return;
                }
                tokio::select! {
                    () = tokio::time::sleep(Duration::from_millis(*ms)) => {}
                    _ = published.changed() => {}
                    _ = news.changed() => {}
                    _ = stop.changed() => {}
                }
            }
            Action::Apply(change) => {
                if let Err(problem) = apply(&app, id, change).await {
                    app.progress.waits(id, &problem.error);
                    tokio::select! {
                        () = tokio::time::sleep(CHANGE_PAUSE) => {}
                        _ = stop.changed() => {}
                    }
                }
            }
            Action::Send { address, command, .. } => {
                // What is sent says the leader's word: not if another one may lead.
                if app.store.must_lead().is_err() {
                    tokio::time::sleep(CHANGE_PAUSE).await;
                    continue;
                }
                let answer = send(&app, id, address, command).await;
                if let Answer::Status(status) = &answer {
                    app.progress.note(id, status, Instant::now());
                }
                driver.answered(&action, answer, clock());
            }
        }
    }
}

/// The primaries of a move's groups, as they are known from their leases.
fn ends(app: &App, topology: &Topology, id: MoveId) -> Option<Ends> {
    let one = topology.find_move(id)?;
    let lease = shown::lease(topology);
    let seat = |group: GroupId| {
        let Some(primary) = topology.group(group).and_then(|group| group.primary()) else {
            return Seat::Silent;
        };
        let now = Instant::now();
        match app.members.state(&primary.id, now, lease) {
            State::Up => {
                let run = app.members.status(&primary.id, now, lease).run;
                Seat::Alive { run, address: primary.address.clone() }
            }
            State::Unknown if app.store.leads_for() < lease * 2 => Seat::Unknown,
            State::Unknown | State::Late | State::Down => Seat::Silent,
        }
    };
    Some(Ends { source: seat(one.from), target: seat(one.to) })
}

/// Makes a change of the record, and tells of it.
async fn apply(app: &App, id: MoveId, change: &Change) -> Result<(), Problem> {
    let (before, after) = app.store.change(|_| Ok(vec![change.clone()])).await?;
    let stage = |topology: &Topology| topology.find_move(id).map(|one| one.stage);
    let (Some(now), was) = (after.find_move(id), stage(&before)) else {
        return Ok(());
    };
    if Some(now.stage) == was {
        return Ok(());
    }
    let detail = match now.stage {
        Stage::Copying if was == Some(Stage::Cutover) => format!("thawed: {}", now.reason),
        Stage::Copying => format!("slots {} from group {} to group {}", now.slots, now.from, now.to),
        Stage::Planned | Stage::Failed => now.reason.clone(),
        Stage::Committed => format!("group {} owns slots {}", now.to, now.slots),
        _ => String::new(),
    };
    let action = match now.stage {
        Stage::Planned => "move.restarted",
        Stage::Copying => "move.copying",
        Stage::Cutover => "move.cutover",
        Stage::Committed => "move.committed",
        Stage::Done => "move.done",
        Stage::Cancelled => "move.cancelled",
        Stage::Failed => "move.failed",
    };
    app.events.write(Note { term: after.term.0, ..Note::event(action, format!("move {id}"), detail) });
    if !now.stage.is_running() {
        app.progress.ended(id);
        app.metrics.move_ended(now.stage.name());
    }
    Ok(())
}

async fn send(app: &App, id: MoveId, address: &str, command: &Command) -> Answer {
    let words = command.words(id);
    let refused = |error: WireError| match error {
        WireError::Refused(text) => Answer::Refused(text),
        other => Answer::Lost(other.to_string()),
    };
    match command {
        Command::Status => match app.wire.json(address, &words, STATUS_PATIENCE).await {
            Ok(status) => Answer::Status(status),
            Err(error) => refused(error),
        },
        Command::Freeze { timeout_ms, .. } => {
            let patience = PATIENCE + Duration::from_millis(*timeout_ms);
            app.wire.command(address, &words, patience).await.map_or_else(refused, |()| Answer::Done)
        }
        _ => app.wire.command(address, &words, PATIENCE).await.map_or_else(refused, |()| Answer::Done),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use topology::change::NewMove;
    use topology::{SlotSet, SlotSpace};

    use super::*;

    fn topology() -> Topology {
        let mut changes = Vec::new();
        for group in 1..=3 {
            changes.push(Change::AddGroup { id: None });
            changes.push(Change::AddServer {
                group: GroupId(group),
                id: format!("s{group}"),
                address: format!("h:{group}"),
                zone: String::new(),
            });
        }
        changes.push(Change::AssignSlots { group: GroupId(1), slots: SlotSet::range(0, 99) });
        let one = |to, slot| NewMove { from: GroupId(1), to: GroupId(to), slots: SlotSet::range(slot, slot), rate: 0 };
        changes.push(Change::PlanMoves { moves: vec![one(2, 1), one(2, 2), one(3, 3), one(3, 4)] });
        Topology::new("c", SlotSpace::Redis).apply_all(&changes).unwrap()
    }

    fn ids(due: &[MoveId]) -> Vec<u64> {
        due.iter().map(|id| id.0).collect()
    }

    #[test]
    fn a_group_takes_part_in_so_many_moves_at_once() {
        let topology = topology();
        assert_eq!(ids(&due(&topology, 1, |_| false)), [1]);
        assert_eq!(ids(&due(&topology, 2, |_| false)), [1, 2]);
        assert_eq!(ids(&due(&topology, 4, |_| false)), [1, 2, 3, 4]);
        assert_eq!(ids(&due(&topology, 2, |id| id == MoveId(1))), [2]);
        assert_eq!(ids(&due(&topology, 1, |id| id == MoveId(1))), [0; 0]);
    }

    #[test]
    fn what_has_begun_is_driven_whatever_the_bound() {
        let run = "a".repeat(40);
        let start = |id| Change::StartCopy { id: MoveId(id), source_run: run.clone(), target_run: run.clone() };
        let topology = topology().apply_all(&[start(1), start(2)]).unwrap();
        assert_eq!(ids(&due(&topology, 1, |_| false)), [1, 2]);
        let paused = topology.apply(&Change::SetPaused { id: MoveId(1), paused: true }).unwrap();
        let paused = paused.apply(&Change::SetPaused { id: MoveId(2), paused: true }).unwrap();
        assert_eq!(ids(&due(&paused, 1, |_| false)), [1, 2, 3], "those that stand still take no place");
    }
}
