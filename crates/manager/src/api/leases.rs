//! Leases: members ask for one, and get the newest view with it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::{Path, State};
use topology::View;
use topology::change::Change;
use topology::wire::{LeaseReply, LeaseRequest, MemberKind};

use crate::app::App;
use crate::events::Note;
use crate::members::News;

use super::guard::Body;
use super::problem::Problem;
use super::shown;

pub(super) async fn renew(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Body(request): Body<LeaseRequest>,
) -> Result<Json<LeaseReply>, Problem> {
    let arrived = Instant::now();
    let mut published = app.store.watch();
    let mut now = published.borrow_and_update().clone();
    if request.kind == MemberKind::Proxy {
        announce(&app, &id, &request, &now.topology).await?;
        now = published.borrow_and_update().clone();
    }
    let is_known = match request.kind {
        MemberKind::Server => now.topology.server(&id).is_some(),
        MemberKind::Proxy => now.topology.proxy(&id).is_some(),
    };
    if !is_known {
        app.members.forget(&id);
        return Err(Problem::missing("there is no member of this id", "it was removed, or never added"));
    }
    app.store.must_lead()?;
    let lease = shown::lease(&now.topology);
    // Noted before it is granted.
    let news = app.members.note(&id, &request, arrived, lease);
    if news != News::None {
        let action = if news == News::First { "member.first" } else { "member.restarted" };
        app.events
            .write(Note { term: now.topology.term.0, ..Note::event(action, id.clone(), request.address.clone()) });
        app.news.send_modify(|count| *count += 1);
    }
    // A lease that is late for a view would be of no use: held for half of it at most.
    let wait = Duration::from_millis(request.wait_ms).min(lease / 2);
    let end = arrived + wait;
    while now.topology.newness() <= request.newness() && !*app.stop.borrow() {
        let mut stop = app.stop.subscribe();
        tokio::select! {
            changed = published.changed() => {
                if changed.is_err() {
                    break;
                }
            }
            _ = stop.changed() => {}
            () = tokio::time::sleep_until(end.into()) => break,
        }
        now = published.borrow_and_update().clone();
    }
    app.store.must_lead()?;
    let newness = now.topology.newness();
    app.members.note_view(&id, newness);
    let view = (newness > request.newness()).then(|| View::of(&now.topology));
    Ok(Json(LeaseReply { term: newness.term, epoch: newness.epoch, lease_ms: now.topology.lease_ms, view }))
}

/// Takes note of a proxy's new address. One that was removed, and does not make itself known anew, stays unknown.
async fn announce(
    app: &Arc<App>,
    id: &str,
    request: &LeaseRequest,
    topology: &topology::Topology,
) -> Result<(), Problem> {
    let Some(known) = topology.proxy(id) else {
        return Ok(());
    };
    if known.address == request.address || request.address.is_empty() {
        return Ok(());
    }
    let change = Change::SetProxy { id: id.to_owned(), address: request.address.clone(), zone: known.zone.clone() };
    app.store.change(|_| Ok(vec![change.clone()])).await.map(|_| ())
}
