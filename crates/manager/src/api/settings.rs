//! What the leading manager goes by while it runs.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;

use crate::app::App;
use crate::shapes::Settings;

use super::guard::{Body, Done};
use super::problem::Problem;

pub(super) async fn show(State(app): State<Arc<App>>) -> Json<Settings> {
    Json(app.settings())
}

pub(super) async fn change(State(app): State<Arc<App>>, Body(wish): Body<Settings>) -> Result<Done<Settings>, Problem> {
    if wish.moves_per_group.is_some_and(|count| !(1..=64).contains(&count)) {
        return Err(Problem::invalid("moves_per_group is 1 to 64", "give another number"));
    }
    if wish.freeze_ms.is_some_and(|ms| !(10..=10_000).contains(&ms)) {
        return Err(Problem::invalid("freeze_ms is 10 to 10000", "give another number"));
    }
    let detail = serde_json::to_string(&wish).unwrap_or_default();
    Ok(Done::new(app.change_settings(&wish), "settings", detail))
}
