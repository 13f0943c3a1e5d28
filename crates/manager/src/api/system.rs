//! Health, metrics, the whole topology, and the document of the API.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use serde_json::{Value, json};

use crate::app::App;
use crate::shapes;

use super::problem::Problem;
use super::{openapi as document, shown};

pub(super) async fn healthz() -> Json<Value> {
    Json(json!({ "status": "ok" }))
}

pub(super) async fn readyz(State(app): State<Arc<App>>) -> Result<Json<Value>, Problem> {
    let now = app.store.now();
    if let Some(error) = app.store.trouble() {
        return Err(Problem::unavailable(error, "look at the log of this manager"));
    }
    match now.leader_url(&app.url) {
        Some(_) => Ok(Json(json!({ "status": "ok" }))),
        None => Err(Problem::unavailable("no manager leads right now", "one will in some seconds: try again")),
    }
}

pub(super) async fn metrics(State(app): State<Arc<App>>) -> impl IntoResponse {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], app.metrics.text(&app))
}

pub(super) async fn topology(State(app): State<Arc<App>>) -> Json<shapes::Topology> {
    Json(shown::topology(&app))
}

pub(super) async fn openapi() -> Json<Value> {
    Json(document::document())
}
