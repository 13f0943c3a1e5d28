//! Who owns which slots.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};
use topology::change::Change;
use topology::{GroupId, SlotSet, Topology, plan};

use crate::app::App;
use crate::shapes::{Assignment, SlotRange, SlotsWish};

use super::guard::{Body, Done};
use super::problem::Problem;
use super::shown;

pub(super) async fn list(State(app): State<Arc<App>>) -> Json<Vec<SlotRange>> {
    Json(shown::slot_ranges(&app.store.topology()))
}

/// The slots of a request; `all` stands for `everything`.
pub(super) fn read(wish: &SlotsWish, everything: impl FnOnce() -> SlotSet) -> Result<SlotSet, Problem> {
    let wrong = |error: topology::slots::BadRanges| Problem::invalid(error.0, "give ranges like 0-99,200");
    let slots = match wish {
        SlotsWish::Text(text) if text == "all" => everything(),
        SlotsWish::Text(text) => text.parse().map_err(wrong)?,
        SlotsWish::Ranges(ranges) => {
            SlotSet::from_pairs(ranges.iter().map(|&[first, last]| (first, last)).collect()).map_err(wrong)?
        }
    };
    if slots.is_empty() {
        return Err(Problem::conflict("there are no such slots", "/slots shows who owns which"));
    }
    Ok(slots)
}

pub(super) async fn assign(State(app): State<Arc<App>>, Body(wish): Body<Assignment>) -> Result<Done<Value>, Problem> {
    let make = |topology: &Topology| {
        let slots = read(&wish.slots, || topology.unowned())?;
        match wish.group {
            Some(group) => Ok(vec![Change::AssignSlots { group: GroupId(group), slots }]),
            None if slots == topology.unowned() => Ok(plan::initial(topology)?.changes),
            None => Err(Problem::invalid(
                "a group is needed for a part of the free slots",
                "name a group, or 'all' as slots to spread them evenly",
            )),
        }
    };
    let (before, after) = app.store.change(make).await?;
    let assigned = before.unowned().difference(&after.unowned());
    let object = match wish.group {
        Some(group) => format!("group {group}"),
        None => "all groups".into(),
    };
    Ok(Done::new(json!({ "assigned": assigned.count() }), object, format!("slots {assigned}")))
}
