//! The REST API.
//!
//! - `routes`: all routes in a table, of which the router and the OpenAPI document are made.
//! - `guard`: what every request passes; `problem`: errors.
//! - a module a kind of thing: `groups`, `proxies`, `slots`, `moves`, `plans`, `leases`, `events`, `settings`, `system`.
//! - `shown`: the record and what is known of it right now, as the API shows it.

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::from_fn_with_state;

use crate::app::App;

mod events;
mod groups;
mod guard;
mod leases;
mod moves;
mod openapi;
mod plans;
pub(crate) mod problem;
mod proxies;
mod routes;
mod settings;
pub(crate) mod shown;
mod slots;
mod system;
#[cfg(test)]
mod tests;

use problem::Problem;
use routes::ROUTES;

/// Most bytes of a request's body.
const BODY_BYTES_MAX: usize = 1 << 20;

/// The API as a service.
pub(crate) fn router(app: &Arc<App>) -> Router {
    let mut router = Router::new();
    for route in ROUTES {
        let guarded = (route.handler)().route_layer(from_fn_with_state((app.clone(), route), guard::guard));
        router = router.route(route.path, guarded);
    }
    router
        .fallback(no_such_path)
        .method_not_allowed_fallback(no_such_method)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(app.clone())
}

async fn no_such_path(uri: Uri) -> Problem {
    let paths = ROUTES.iter().map(|route| route.path);
    let meant = options::nearest(uri.path(), paths).map(|path| format!("did you mean {path}? ")).unwrap_or_default();
    Problem::missing("there is nothing at this path", format!("{meant}/api/v1/openapi.json lists all paths"))
}

async fn no_such_method(method: Method) -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        format!("{method} is not understood here"),
        "/api/v1/openapi.json lists what each path takes",
    )
}
