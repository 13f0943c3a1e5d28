//! Groups and their servers.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use topology::GroupId;
use topology::change::Change;

use crate::app::App;
use crate::registrar;
use crate::shapes::{self, NewGroup, NewServer};

use super::guard::{Body, Done};
use super::problem::Problem;
use super::shown;

/// The number of a group in a path.
pub(super) fn group_id(text: &str) -> Result<GroupId, Problem> {
    text.parse()
        .map(GroupId)
        .map_err(|_| Problem::invalid(format!("'{text}' is no group number"), "/groups lists them"))
}

pub(super) async fn list(State(app): State<Arc<App>>) -> Json<Vec<shapes::Group>> {
    let topology = app.store.topology();
    Json(shown::groups(&app, &topology))
}

pub(super) async fn one(State(app): State<Arc<App>>, Path(id): Path<String>) -> Result<Json<shapes::Group>, Problem> {
    let id = group_id(&id)?;
    let topology = app.store.topology();
    let group = topology.group(id).ok_or_else(|| no_group(id))?;
    Ok(Json(shown::group(&app, &topology, group)))
}

fn no_group(id: GroupId) -> Problem {
    Problem::missing(format!("there is no group {id}"), "/groups lists them; POST /groups adds one")
}

pub(super) async fn add(
    State(app): State<Arc<App>>,
    Body(wish): Body<NewGroup>,
) -> Result<Done<shapes::Group>, Problem> {
    let change = Change::AddGroup { id: wish.id.map(GroupId) };
    let (before, after) = app.store.change(|_| Ok(vec![change.clone()])).await?;
    let added = after.groups.iter().find(|group| before.group(group.id).is_none());
    let added = added.ok_or_else(|| Problem::conflict("another change came between", "look at /groups"))?;
    Ok(Done::new(shown::group(&app, &after, added), format!("group {}", added.id), "").created())
}

pub(super) async fn remove(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<Done<serde_json::Value>, Problem> {
    let id = group_id(&id)?;
    let (before, _) = app.store.change(|_| Ok(vec![Change::RemoveGroup { id }])).await?;
    let servers = before.group(id).map(|group| group.servers.clone()).unwrap_or_default();
    for server in &servers {
        registrar::dismiss(&app, server);
    }
    let object = format!("group {id}");
    Ok(Done::new(serde_json::json!({ "removed": object }), object, format!("{} servers left", servers.len())))
}

pub(super) async fn servers(State(app): State<Arc<App>>) -> Json<Vec<shapes::Server>> {
    let topology = app.store.topology();
    Json(shown::groups(&app, &topology).into_iter().flat_map(|group| group.servers).collect())
}

pub(super) async fn add_server(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Body(wish): Body<NewServer>,
) -> Result<Done<shapes::Server>, Problem> {
    let group = group_id(&id)?;
    let server = registrar::register(&app, group, &wish).await?;
    let topology = app.store.topology();
    let shown = shown::server(&app, &topology, group, &server);
    let detail = format!("{} of group {group}", shown.role);
    Ok(Done::new(shown, format!("server {}", server.address), detail).created())
}

pub(super) async fn remove_server(
    State(app): State<Arc<App>>,
    Path((id, name)): Path<(String, String)>,
) -> Result<Done<serde_json::Value>, Problem> {
    let group = group_id(&id)?;
    let topology = app.store.topology();
    let servers = &topology.group(group).ok_or_else(|| no_group(group))?.servers;
    let server =
        servers.iter().find(|server| server.id == name || server.address == name).cloned().ok_or_else(|| {
            Problem::missing(format!("group {group} has no server '{name}'"), "/groups lists ids and addresses")
        })?;
    app.store.change(|_| Ok(vec![Change::RemoveServer { id: server.id.clone() }])).await?;
    registrar::dismiss(&app, &server);
    let object = format!("server {}", server.address);
    Ok(Done::new(serde_json::json!({ "removed": object }), object, format!("of group {group}")))
}
