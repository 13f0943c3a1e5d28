//! All routes of the API, each once: what it needs, what it says of itself, and its handler. The router and the OpenAPI
//! document are both made of this table.

use std::sync::Arc;

use axum::routing::{MethodRouter, delete, get, post, put};

use crate::app::App;
use crate::auth::Role;

use super::{events, groups, leases, moves, plans, proxies, settings, slots, system};

/// A route.
pub(crate) struct Route {
    /// `GET`, `POST`, `PUT` or `DELETE`.
    pub(crate) method: &'static str,
    /// As axum and OpenAPI both write it.
    pub(crate) path: &'static str,
    pub(crate) needs: Needs,
    /// Whether only the leading manager can do it.
    pub(crate) needs_leader: bool,
    /// Its name in the audit log; the operation's id in the document.
    pub(crate) action: &'static str,
    pub(crate) summary: &'static str,
    /// Names and meanings of what may stand behind a question mark.
    pub(crate) query: &'static [(&'static str, &'static str)],
    /// The schema of the body, if it takes one.
    pub(crate) body: Option<&'static str>,
    /// The status and schema of the answer when all is well. A name in brackets is a list of those.
    pub(crate) answer: (u16, &'static str),
    pub(crate) handler: fn() -> MethodRouter<Arc<App>>,
}

/// Who may use a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Anyone who reaches the port.
    Nothing,
    /// A member, for its lease.
    Lease,
    /// Anyone with a token.
    View,
    /// Who looks after the cluster.
    Operate,
    /// Who may do what can lose data.
    Administer,
}

impl Route {
    pub(crate) fn role(&self) -> Role {
        match self.needs {
            Needs::Lease => Role::Member,
            Needs::Nothing | Needs::View => Role::Viewer,
            Needs::Operate => Role::Operator,
            Needs::Administer => Role::Admin,
        }
    }

    /// Whether it changes something.
    pub(crate) fn is_change(&self) -> bool {
        self.method != "GET"
    }

    /// Whether the log of events tells of it. Leases are asked for all the while.
    pub(crate) fn is_audited(&self) -> bool {
        self.is_change() && self.action != "lease"
    }
}

const BASE: Route = Route {
    method: "GET",
    path: "",
    needs: Needs::View,
    needs_leader: false,
    action: "",
    summary: "",
    query: &[],
    body: None,
    answer: (200, "Any"),
    handler: || get(system::healthz),
};

/// The table.
pub(crate) const ROUTES: &[Route] = &[
    Route {
        path: "/healthz",
        needs: Needs::Nothing,
        action: "healthz",
        summary: "Whether the process lives.",
        answer: (200, "Health"),
        handler: || get(system::healthz),
        ..BASE
    },
    Route {
        path: "/readyz",
        needs: Needs::Nothing,
        action: "readyz",
        summary: "Whether it can serve: 200 when it leads or knows the leader, else 503.",
        answer: (200, "Health"),
        handler: || get(system::readyz),
        ..BASE
    },
    Route {
        path: "/metrics",
        action: "metrics",
        summary: "Metrics of the cluster and of this manager, as OpenMetrics text.",
        answer: (200, "Text"),
        handler: || get(system::metrics),
        ..BASE
    },
    Route {
        path: "/api/v1/openapi.json",
        needs: Needs::Nothing,
        action: "openapi",
        summary: "This document.",
        handler: || get(system::openapi),
        ..BASE
    },
    Route {
        path: "/api/v1/topology",
        action: "topology",
        summary: "The whole cluster at one instant.",
        answer: (200, "Topology"),
        handler: || get(system::topology),
        ..BASE
    },
    Route {
        path: "/api/v1/groups",
        action: "groups",
        summary: "The groups.",
        answer: (200, "[Group]"),
        handler: || get(groups::list),
        ..BASE
    },
    Route {
        method: "POST",
        path: "/api/v1/groups",
        needs: Needs::Operate,
        needs_leader: true,
        action: "group.add",
        summary: "Adds a group without servers and slots.",
        body: Some("NewGroup"),
        answer: (201, "Group"),
        handler: || post(groups::add),
        ..BASE
    },
    Route {
        path: "/api/v1/groups/{id}",
        action: "group",
        summary: "A group.",
        answer: (200, "Group"),
        handler: || get(groups::one),
        ..BASE
    },
    Route {
        method: "DELETE",
        path: "/api/v1/groups/{id}",
        needs: Needs::Administer,
        needs_leader: true,
        action: "group.remove",
        summary: "Takes away a group that owns no slots; its servers leave the cluster.",
        answer: (200, "Gone"),
        handler: || delete(groups::remove),
        ..BASE
    },
    Route {
        path: "/api/v1/servers",
        action: "servers",
        summary: "The servers of all groups.",
        answer: (200, "[Server]"),
        handler: || get(groups::servers),
        ..BASE
    },
    Route {
        method: "POST",
        path: "/api/v1/groups/{id}/servers",
        needs: Needs::Operate,
        needs_leader: true,
        action: "server.add",
        summary: "Looks at a server and takes it into a group: the first is its primary, others are replicas.",
        body: Some("NewServer"),
        answer: (201, "Server"),
        handler: || post(groups::add_server),
        ..BASE
    },
    Route {
        method: "DELETE",
        path: "/api/v1/groups/{id}/servers/{server}",
        needs: Needs::Administer,
        needs_leader: true,
        action: "server.remove",
        summary: "Takes a replica, or the last server of a group without slots, out of the cluster.",
        answer: (200, "Gone"),
        handler: || delete(groups::remove_server),
        ..BASE
    },
    Route {
        path: "/api/v1/proxies",
        action: "proxies",
        summary: "The proxies.",
        answer: (200, "[Proxy]"),
        handler: || get(proxies::list),
        ..BASE
    },
    Route {
        method: "POST",
        path: "/api/v1/proxies",
        needs: Needs::Lease,
        needs_leader: true,
        action: "proxy.add",
        summary: "Makes a proxy known, or tells its new address. Proxies do so themselves at their start.",
        body: Some("NewProxy"),
        answer: (201, "Proxy"),
        handler: || post(proxies::add),
        ..BASE
    },
    Route {
        method: "DELETE",
        path: "/api/v1/proxies/{id}",
        needs: Needs::Operate,
        needs_leader: true,
        action: "proxy.remove",
        summary: "Forgets a proxy.",
        answer: (200, "Gone"),
        handler: || delete(proxies::remove),
        ..BASE
    },
    Route {
        method: "POST",
        path: "/api/v1/members/{id}/lease",
        needs: Needs::Lease,
        needs_leader: true,
        action: "lease",
        summary: "Renews a member's lease and gives it the newest view; held for up to wait_ms while there is none.",
        body: Some("LeaseRequest"),
        answer: (200, "LeaseReply"),
        handler: || post(leases::renew),
        ..BASE
    },
    Route {
        path: "/api/v1/slots",
        action: "slots",
        summary: "Who owns which slots, and which are on their way.",
        answer: (200, "[SlotRange]"),
        handler: || get(slots::list),
        ..BASE
    },
    Route {
        method: "POST",
        path: "/api/v1/slots/assign",
        needs: Needs::Operate,
        needs_leader: true,
        action: "slots.assign",
        summary: "Gives slots that nobody owns to a group, or evenly to all groups.",
        body: Some("Assignment"),
        answer: (200, "Assigned"),
        handler: || post(slots::assign),
        ..BASE
    },
    Route {
        path: "/api/v1/moves",
        action: "moves",
        summary: "Moves that go on, and the last that ended.",
        answer: (200, "[Move]"),
        handler: || get(moves::list),
        ..BASE
    },
    Route {
        method: "POST",
        path: "/api/v1/moves",
        needs: Needs::Operate,
        needs_leader: true,
        action: "move.start",
        summary: "Moves slots to a group; several moves if they belong to several groups, or are many.",
        body: Some("NewMove"),
        answer: (201, "[Move]"),
        handler: || post(moves::start),
        ..BASE
    },
    Route {
        path: "/api/v1/moves/{id}",
        action: "move",
        summary: "A move.",
        answer: (200, "Move"),
        handler: || get(moves::one),
        ..BASE
    },
    Route {
        method: "POST",
        path: "/api/v1/moves/{id}/pause",
        needs: Needs::Operate,
        needs_leader: true,
        action: "move.pause",
        summary: "Lets a move stand still.",
        answer: (200, "Move"),
        handler: || post(moves::pause),
        ..BASE
    },
    Route {
        method: "POST",
        path: "/api/v1/moves/{id}/resume",
        needs: Needs::Operate,
        needs_leader: true,
        action: "move.resume",
        summary: "Lets a move go on.",
        answer: (200, "Move"),
        handler: || post(moves::resume),
        ..BASE
    },
    Route {
        method: "POST",
        path: "/api/v1/moves/{id}/cancel",
        needs: Needs::Operate,
        needs_leader: true,
        action: "move.cancel",
        summary: "Gives a move up; the slots stay where they are.",
        answer: (200, "Move"),
        handler: || post(moves::cancel),
        ..BASE
    },
    Route {
        method: "POST",
        path: "/api/v1/moves/{id}/rate",
        needs: Needs::Operate,
        needs_leader: true,
        action: "move.rate",
        summary: "Sets how many bytes per second a move may send.",
        body: Some("NewRate"),
        answer: (200, "Move"),
        handler: || post(moves::rate),
        ..BASE
    },
    Route {
        method: "POST",
        path: "/api/v1/plans/rebalance",
        needs: Needs::Operate,
        needs_leader: true,
        action: "plan.rebalance",
        summary: "Makes groups even by slots, memory or load. A dry run unless dry_run is false.",
        body: Some("PlanWish"),
        answer: (200, "Plan"),
        handler: || post(plans::rebalance),
        ..BASE
    },
    Route {
        method: "POST",
        path: "/api/v1/plans/scale-out",
        needs: Needs::Operate,
        needs_leader: true,
        action: "plan.scale-out",
        summary: "Gives a new group its share. A dry run unless dry_run is false.",
        body: Some("PlanWish"),
        answer: (200, "Plan"),
        handler: || post(plans::scale_out),
        ..BASE
    },
    Route {
        method: "POST",
        path: "/api/v1/plans/scale-in",
        needs: Needs::Operate,
        needs_leader: true,
        action: "plan.scale-in",
        summary: "Empties a group. A dry run unless dry_run is false.",
        body: Some("PlanWish"),
        answer: (200, "Plan"),
        handler: || post(plans::scale_in),
        ..BASE
    },
    Route {
        path: "/api/v1/events",
        action: "events",
        summary: "What was asked for, and what happened; oldest first.",
        query: &[
            ("after", "Only events with a greater number."),
            ("limit", "The newest so many (100)."),
            ("kind", "Only 'audit' or 'event'."),
            ("wait_ms", "With 'after': how long to wait for an event, at most 30000."),
        ],
        answer: (200, "[Event]"),
        handler: || get(events::list),
        ..BASE
    },
    Route {
        path: "/api/v1/settings",
        action: "settings",
        summary: "What the leading manager goes by while it runs.",
        answer: (200, "Settings"),
        handler: || get(settings::show),
        ..BASE
    },
    Route {
        method: "PUT",
        path: "/api/v1/settings",
        needs: Needs::Administer,
        needs_leader: true,
        action: "settings.change",
        summary: "Changes those settings that are named, until this manager ends.",
        body: Some("Settings"),
        answer: (200, "Settings"),
        handler: || put(settings::change),
        ..BASE
    },
];
