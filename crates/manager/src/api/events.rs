//! The log of events.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Query, State};

use crate::app::App;
use crate::events as log;
use crate::shapes::Event;

use super::problem::Problem;

/// Between two looks at what other managers wrote.
const LOOK_PERIOD: Duration = Duration::from_secs(1);
const LIMIT: usize = 100;
const LIMIT_MAX: usize = 10_000;
const WAIT_MAX: Duration = Duration::from_secs(30);

pub(super) async fn list(
    State(app): State<Arc<App>>,
    Query(query): Query<HashMap<String, String>>,
) -> Result<Json<Vec<Event>>, Problem> {
    let number = |name: &str| match query.get(name) {
        None => Ok(None),
        Some(text) => {
            let wrong = |_| Problem::invalid(format!("'{text}' is no number"), format!("give {name}=N"));
            text.parse::<u64>().map(Some).map_err(wrong)
        }
    };
    let after = number("after")?;
    let limit = number("limit")?.map_or(LIMIT, |limit| usize::try_from(limit).unwrap_or(usize::MAX)).min(LIMIT_MAX);
    let wait = Duration::from_millis(number("wait_ms")?.unwrap_or(0)).min(WAIT_MAX);
    let kind = query.get("kind").map(String::as_str);
    if !matches!(kind, None | Some("audit" | "event")) {
        return Err(Problem::invalid("there is no such kind of event", "kind=audit or kind=event"));
    }
    let is_wanted = |event: &Event| kind.is_none_or(|kind| event.kind == kind);
    let mut newest = app.events.newest();
    let mut stop = app.stop.subscribe();
    let end = tokio::time::Instant::now() + wait;
    loop {
        newest.borrow_and_update();
        let read = app.store.ask(move |coordinator| log::read(coordinator, after, limit)).await;
        // What this manager wrote itself is better than nothing.
        let mut events = read.unwrap_or_else(|_| app.events.list(after.unwrap_or(0), limit, |_| true));
        events.retain(is_wanted);
        if !events.is_empty() || after.is_none() || *stop.borrow_and_update() {
            return Ok(Json(events));
        }
        tokio::select! {
            _ = newest.changed() => {}
            _ = stop.changed() => {}
            // Another manager may write, too.
            () = tokio::time::sleep(LOOK_PERIOD) => {}
            () = tokio::time::sleep_until(end) => return Ok(Json(Vec::new())),
        }
    }
}
