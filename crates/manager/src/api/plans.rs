//! Plans: what to move so that groups are even, a new one gets its share, or one is emptied.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use tokio::task::JoinSet;
use topology::change::{Change, NewMove};
use topology::plan::{self, Measure, Wish};
use topology::wire::SlotStats;
use topology::{GroupId, SlotSet, Topology};

use crate::app::App;
use crate::auth::Person;
use crate::shapes::{Plan, PlanWish, PlannedGroup, PlannedMove, Weight};

use super::guard::{Body, Done};
use super::problem::Problem;
use super::shown;

/// Longest wait for a server's figures of all its slots.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Rebalance,
    ScaleOut,
    ScaleIn,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Rebalance => "rebalance",
            Kind::ScaleOut => "scale-out",
            Kind::ScaleIn => "scale-in",
        }
    }
}

type Answer = Result<Done<Plan>, Problem>;

pub(super) async fn rebalance(app: State<Arc<App>>, person: Extension<Person>, wish: Body<PlanWish>) -> Answer {
    make(&app.0, &person.0, Kind::Rebalance, &wish.0).await
}

pub(super) async fn scale_out(app: State<Arc<App>>, person: Extension<Person>, wish: Body<PlanWish>) -> Answer {
    make(&app.0, &person.0, Kind::ScaleOut, &wish.0).await
}

pub(super) async fn scale_in(app: State<Arc<App>>, person: Extension<Person>, wish: Body<PlanWish>) -> Answer {
    make(&app.0, &person.0, Kind::ScaleIn, &wish.0).await
}

async fn make(app: &Arc<App>, person: &Person, kind: Kind, wish: &PlanWish) -> Answer {
    let by = match wish.by.as_deref() {
        None | Some("slots") => Measure::Slots,
        Some("memory") => Measure::Memory,
        Some("load") => Measure::Load,
        Some(other) => {
            return Err(Problem::invalid(format!("'{other}' cannot be made even"), "by slots, memory or load"));
        }
    };
    let group = match (kind, wish.group) {
        (Kind::Rebalance, Some(_)) => {
            return Err(Problem::invalid("a rebalance is of all groups", "use /plans/scale-out or /plans/scale-in"));
        }
        (Kind::ScaleIn | Kind::ScaleOut, None) => return Err(Problem::invalid("which group?", "give 'group'")),
        (_, group) => group.map(GroupId),
    };
    let topology = app.store.topology();
    let (stats, mut notes) = figures(app, &topology).await;
    if by != Measure::Slots && !notes.is_empty() {
        return Err(Problem::upstream(notes.join("; "), "bring the servers back, or plan by slots"));
    }
    let rate = wish.rate.unwrap_or_else(|| app.settings().move_rate.unwrap_or(0));
    let aim = Wish { by, rate, ..Wish::default() };
    let plan = |topology: &Topology| -> Result<plan::Plan, Problem> {
        Ok(match (kind, group) {
            (Kind::ScaleIn, Some(group)) => plan::drain(topology, group, &stats, &aim)?,
            (Kind::ScaleOut, Some(group)) => plan::fill(topology, group, &stats, &aim)?,
            _ => plan::rebalance(topology, &stats, &aim)?,
        })
    };
    let by_slot: HashMap<u16, SlotStats> = stats.iter().map(|stats| (stats.slot, *stats)).collect();
    let shown = |topology: &Topology, plan: &plan::Plan, begun: Vec<u64>, notes: Vec<String>| {
        let moves: Vec<NewMove> = planned(plan).cloned().collect();
        Plan {
            kind: kind.name().into(),
            by: wish.by.clone().unwrap_or_else(|| "slots".into()),
            dry_run: wish.dry_run,
            moves: moves.iter().map(|one| line(one, &by_slot)).collect(),
            groups: groups(topology, &moves, &by_slot),
            begun,
            notes,
        }
    };
    let object = group.map_or_else(|| "all groups".into(), |group| format!("group {group}"));
    if wish.dry_run {
        let plan = plan(&topology)?;
        notes.extend(remarks(&plan));
        let body = shown(&topology, &plan, Vec::new(), notes);
        let detail = format!("dry run: {} moves", body.moves.len());
        return Ok(Done::new(body, object, detail));
    }
    let first = plan(&topology)?;
    if first.changes.is_empty() {
        notes.extend(remarks(&first));
        return Ok(Done::new(shown(&topology, &first, Vec::new(), notes), object, "nothing to move"));
    }
    // Planned anew on what is there when it is stored.
    let made = std::sync::Mutex::new(first);
    let (before, after) = app
        .store
        .change(|topology| {
            let plan: plan::Plan = plan(topology)?;
            let changes = plan.changes.clone();
            *made.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = plan;
            Ok(changes)
        })
        .await?;
    let begun = app.progress.begun(&before, &after, &person.to_string());
    let made = made.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    notes.extend(remarks(&made));
    let body = shown(&before, &made, begun.iter().map(|id| id.0).collect(), notes);
    let detail =
        format!("{} moves of {} slots", body.moves.len(), body.moves.iter().map(|one| one.slot_count).sum::<u32>());
    Ok(Done::new(body, object, detail))
}

/// What a plan says beside its moves and figures.
fn remarks(plan: &plan::Plan) -> Vec<String> {
    let is_remark = |line: &&String| line.contains(" are on their way ") || line.contains(" have no owner");
    plan.lines.iter().filter(is_remark).cloned().collect()
}

fn planned(plan: &plan::Plan) -> impl Iterator<Item = &NewMove> {
    plan.changes.iter().flat_map(|change| match change {
        Change::PlanMoves { moves } => moves.as_slice(),
        _ => &[],
    })
}

fn line(one: &NewMove, by_slot: &HashMap<u16, SlotStats>) -> PlannedMove {
    let weight = weigh(&one.slots, by_slot);
    PlannedMove {
        from: one.from.0,
        to: one.to.0,
        slots: shown::ranges(&one.slots),
        slot_count: weight.slots,
        keys: weight.keys,
        bytes: weight.bytes,
    }
}

fn weigh(slots: &SlotSet, by_slot: &HashMap<u16, SlotStats>) -> Weight {
    let mut weight = Weight { slots: shown::count(slots), ..Weight::default() };
    for stats in slots.iter().filter_map(|slot| by_slot.get(&slot)) {
        weight.keys = weight.keys.saturating_add(stats.keys);
        weight.bytes = weight.bytes.saturating_add(stats.bytes);
        weight.ops = weight.ops.saturating_add(stats.ops);
    }
    weight
}

/// Groups before and after: moves that go on already count as if they were over.
fn groups(topology: &Topology, moves: &[NewMove], by_slot: &HashMap<u16, SlotStats>) -> Vec<PlannedGroup> {
    let running = topology.moves.iter().filter(|one| one.stage.is_running());
    let flows: Vec<(GroupId, GroupId, &SlotSet)> = running
        .map(|one| (one.from, one.to, &one.slots))
        .chain(moves.iter().map(|one| (one.from, one.to, &one.slots)))
        .collect();
    let group = |group: &topology::Group| {
        let mut after = group.slots.clone();
        for (from, to, slots) in &flows {
            if *from == group.id {
                after = after.difference(slots);
            } else if *to == group.id {
                after = after.union(slots);
            }
        }
        PlannedGroup { id: group.id.0, before: weigh(&group.slots, by_slot), after: weigh(&after, by_slot) }
    };
    topology.groups.iter().map(group).collect()
}

/// What all slots carry, as their primaries say, and which of those could not be asked.
async fn figures(app: &Arc<App>, topology: &Topology) -> (Vec<SlotStats>, Vec<String>) {
    let mut asked = JoinSet::new();
    for group in topology.groups.iter().filter(|group| !group.slots.is_empty()) {
        let Some(primary) = group.primary() else {
            continue;
        };
        let (app, address, slots, id) = (app.clone(), primary.address.clone(), group.slots.clone(), group.id);
        asked.spawn(async move {
            let stats = app.wire.json::<Vec<SlotStats>, _>(&address, &["OXIDIS", "SLOTS", "STATS"], PATIENCE).await;
            // A server may still hold keys of slots that left it.
            let stats = stats.map(|stats| stats.into_iter().filter(|one| slots.contains(one.slot)).collect::<Vec<_>>());
            stats.map_err(|error| format!("group {id} ({address}) does not tell what its slots carry: {error}"))
        });
    }
    let (mut stats, mut notes) = (Vec::new(), Vec::new());
    for answer in asked.join_all().await {
        match answer {
            Ok(some) => stats.extend(some),
            Err(note) => notes.push(note),
        }
    }
    notes.sort();
    (stats, notes)
}
