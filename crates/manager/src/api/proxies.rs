//! Proxies: they make themselves known at their start.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use topology::change::Change;

use crate::app::App;
use crate::shapes::{self, NewProxy};

use super::guard::{Body, Done};
use super::problem::Problem;
use super::shown;

pub(super) async fn list(State(app): State<Arc<App>>) -> Json<Vec<shapes::Proxy>> {
    let topology = app.store.topology();
    Json(shown::proxies(&app, &topology))
}

pub(super) async fn add(
    State(app): State<Arc<App>>,
    Body(wish): Body<NewProxy>,
) -> Result<Done<shapes::Proxy>, Problem> {
    let change = Change::SetProxy { id: wish.id.clone(), address: wish.address.clone(), zone: wish.zone.clone() };
    let topology = app.store.topology();
    let is_known =
        topology.proxy(&wish.id).is_some_and(|known| known.address == wish.address && known.zone == wish.zone);
    let topology = if is_known { topology } else { app.store.change(|_| Ok(vec![change.clone()])).await?.1 };
    let proxy = topology.proxy(&wish.id).ok_or_else(|| Problem::conflict("it was removed meanwhile", "try again"))?;
    Ok(Done::new(shown::proxy(&app, &topology, proxy), format!("proxy {}", wish.id), wish.address).created())
}

pub(super) async fn remove(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<Done<serde_json::Value>, Problem> {
    app.store.change(|_| Ok(vec![Change::RemoveProxy { id: id.clone() }])).await?;
    app.members.forget(&id);
    let object = format!("proxy {id}");
    Ok(Done::new(serde_json::json!({ "removed": object }), object, ""))
}
