//! Moves of slots.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::{Extension, Json};
use topology::change::{Change, NewMove};
use topology::{GroupId, MoveId, SlotSet, Topology};

use crate::app::App;
use crate::auth::Person;
use crate::shapes::{self, NewRate};

use super::guard::{Body, Done};
use super::problem::Problem;
use super::{shown, slots};

/// Most slots of one move: those of a move are held back together at its cut-over.
const SLOTS_PER_MOVE: usize = 256;

pub(super) async fn list(State(app): State<Arc<App>>) -> Json<Vec<shapes::Move>> {
    Json(app.store.topology().moves.iter().map(|one| shown::one_move(&app, one)).collect())
}

fn move_id(text: &str) -> Result<MoveId, Problem> {
    text.parse()
        .map(MoveId)
        .map_err(|_| Problem::invalid(format!("'{text}' is no number of a move"), "/moves lists them"))
}

fn found(app: &App, topology: &Topology, id: MoveId) -> Result<shapes::Move, Problem> {
    let one = topology.find_move(id);
    let one = one.ok_or_else(|| Problem::missing(format!("there is no move {id}"), "/moves lists them"))?;
    Ok(shown::one_move(app, one))
}

pub(super) async fn one(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<Json<shapes::Move>, Problem> {
    let topology = app.store.topology();
    found(&app, &topology, move_id(&id)?).map(Json)
}

pub(super) async fn start(
    State(app): State<Arc<App>>,
    Extension(person): Extension<Person>,
    Body(wish): Body<shapes::NewMove>,
) -> Result<Done<Vec<shapes::Move>>, Problem> {
    let to = GroupId(wish.to);
    let rate = wish.rate.unwrap_or_else(|| app.settings().move_rate.unwrap_or(0));
    let make = |topology: &Topology| {
        let target = topology.group(to);
        let target = target.ok_or_else(|| Problem::missing(format!("there is no group {to}"), "/groups lists them"))?;
        let all = || topology.slot_space.all().difference(&target.slots).difference(&topology.unowned());
        let wanted = slots::read(&wish.slots, all)?;
        split(topology, to, &wanted, rate)
    };
    let (before, after) = app.store.change(make).await?;
    let begun = app.progress.begun(&before, &after, &person.to_string());
    let moves: Vec<shapes::Move> =
        after.moves.iter().filter(|one| begun.contains(&one.id)).map(|one| shown::one_move(&app, one)).collect();
    let ids: Vec<String> = begun.iter().map(ToString::to_string).collect();
    let detail = format!("slots {} to group {to}", wish.slots);
    Ok(Done::new(moves, format!("move {}", ids.join(", ")), detail).created())
}

/// The moves that bring `wanted` to a group: one a source, and more where they are many.
fn split(topology: &Topology, to: GroupId, wanted: &SlotSet, rate: u64) -> Result<Vec<Change>, Problem> {
    let there = topology.group(to).map(|group| wanted.intersection(&group.slots)).unwrap_or_default();
    if !there.is_empty() {
        return Err(Problem::conflict(format!("slots {there} belong to group {to} already"), "leave them out"));
    }
    let unowned = wanted.intersection(&topology.unowned());
    if !unowned.is_empty() {
        return Err(Problem::conflict(
            format!("slots {unowned} belong to no group"),
            "assign them (POST /slots/assign)",
        ));
    }
    let mut moves = Vec::new();
    for group in &topology.groups {
        let mut left = wanted.intersection(&group.slots);
        while !left.is_empty() {
            let some = left.lowest(SLOTS_PER_MOVE);
            left = left.difference(&some);
            moves.push(NewMove { from: group.id, to, slots: some, rate });
        }
    }
    let beyond = topology.groups.iter().fold(wanted.clone(), |left, group| left.difference(&group.slots));
    if !beyond.is_empty() {
        let last = topology.slot_space.slots() - 1;
        return Err(Problem::invalid(format!("slots {beyond} are beyond the last one"), format!("give 0 to {last}")));
    }
    Ok(vec![Change::PlanMoves { moves }])
}

async fn changed(
    app: &Arc<App>,
    id: &str,
    make: impl Fn(MoveId) -> Change,
    detail: String,
) -> Result<Done<shapes::Move>, Problem> {
    let id = move_id(id)?;
    let (_, after) = app.store.change(|_| Ok(vec![make(id)])).await?;
    Ok(Done::new(found(app, &after, id)?, format!("move {id}"), detail))
}

pub(super) async fn pause(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<Done<shapes::Move>, Problem> {
    changed(&app, &id, |id| Change::SetPaused { id, paused: true }, String::new()).await
}

pub(super) async fn resume(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<Done<shapes::Move>, Problem> {
    changed(&app, &id, |id| Change::SetPaused { id, paused: false }, String::new()).await
}

pub(super) async fn cancel(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<Done<shapes::Move>, Problem> {
    let done = changed(&app, &id, |id| Change::Cancel { id }, String::new()).await?;
    app.progress.ended(MoveId(done.body.id));
    Ok(done)
}

pub(super) async fn rate(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Body(wish): Body<NewRate>,
) -> Result<Done<shapes::Move>, Problem> {
    let rate = wish.rate.unwrap_or(0);
    changed(&app, &id, |id| Change::SetRate { id, rate }, format!("{rate} bytes/s")).await
}
