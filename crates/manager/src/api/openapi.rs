//! The OpenAPI document: made of the table of routes, with the schemas of what travels.

use serde_json::{Map, Value, json};

use super::routes::{Needs, ROUTES, Route};

/// The document.
pub(super) fn document() -> Value {
    let mut paths = Map::new();
    for route in ROUTES {
        let entry = paths.entry(route.path).or_insert_with(|| json!({}));
        if let Some(entry) = entry.as_object_mut() {
            entry.insert(route.method.to_ascii_lowercase(), operation(route));
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Oxidis manager",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Groups, servers, proxies, slots and moves of a cluster. Slots are ranges [first, last], \
                            both included; instants are milliseconds since 1970; spans are milliseconds; rates are \
                            bytes per second.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas(),
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
    })
}

fn operation(route: &Route) -> Value {
    let mut parameters: Vec<Value> = Vec::new();
    for name in route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')) {
        parameters.push(json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } }));
    }
    for (name, meaning) in route.query {
        parameters.push(json!({ "name": name, "in": "query", "description": meaning, "schema": { "type": "string" } }));
    }
    let (status, answer) = route.answer;
    let kind = if answer == "Text" { "application/openmetrics-text" } else { "application/json" };
    let mut responses = Map::new();
    responses.insert(
        status.to_string(),
        json!({
            "description": "As asked.",
            "content": { kind: { "schema": reference(answer) } },
        }),
    );
    responses.insert(
        "default".into(),
        json!({
            "description": "What is wrong, and what to do.",
            "content": { "application/json": { "schema": reference("Error") } },
        }),
    );
    let mut operation = json!({
        "operationId": route.action,
        "summary": route.summary,
        "parameters": parameters,
        "responses": responses,
    });
    if let Some(body) = route.body {
        operation["requestBody"] = json!({ "content": { "application/json": { "schema": reference(body) } } });
    }
    if route.needs != Needs::Nothing {
        operation["security"] = json!([{ "token": [] }]);
        operation["description"] = json!(format!("Needs the role {}.", route.role().name()));
    }
    operation
}

fn reference(name: &str) -> Value {
    match name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
        Some(item) => json!({ "type": "array", "items": reference(item) }),
        None => json!({ "$ref": format!("#/components/schemas/{name}") }),
    }
}

/// A field: its name, its type, what it means. A type that ends with `?` may be null or left out.
type Field = (&'static str, &'static str, &'static str);

const SCHEMAS: &[(&str, &[Field])] = &[
    ("Health", &[("status", "string", "'ok', or what is missing.")]),
    (
        "Error",
        &[
            ("error", "string", "What is wrong."),
            ("hint", "string", "What to do."),
            ("leader", "string?", "The manager to ask instead; empty while there is none."),
        ],
    ),
    ("Gone", &[("removed", "string", "What is not there any more.")]),
    ("Assigned", &[("assigned", "integer", "How many slots got an owner.")]),
    (
        "Topology",
        &[
            ("cluster", "string", "The cluster's name."),
            ("term", "integer", "Grows with each manager that begins to lead."),
            ("epoch", "integer", "Grows with each change."),
            ("leader", "string?", "The leading manager's URL."),
            ("is_leader", "boolean", "Whether the manager that answered leads."),
            ("slot_space", "string", "'redis' (16384 slots) or 'codis' (1024)."),
            ("slot_count", "integer", "Slots of the space."),
            ("unassigned", "Ranges", "Slots that no group owns."),
            ("lease_ms", "integer", "How long a member's lease lasts."),
            ("groups", "[Group]", "The groups, by number."),
            ("proxies", "[Proxy]", "The proxies."),
            ("moves", "[Move]", "Moves that are not over."),
        ],
    ),
    (
        "Group",
        &[
            ("id", "integer", "Its number."),
            ("epoch", "integer", "Of the last change of its servers or slots."),
            ("slots", "Ranges", "The slots that it owns."),
            ("slot_count", "integer", "How many those are."),
            ("servers", "[Server]", "Its servers, the primary first."),
        ],
    ),
    (
        "Server",
        &[
            ("id", "string", "Its member id."),
            ("address", "string", "host:port."),
            ("role", "string", "'primary' or 'replica'."),
            ("zone", "string", "Where it stands; may be empty."),
            ("group", "integer", "The group it belongs to."),
            ("status", "Status", "What is known of it right now."),
        ],
    ),
    (
        "Proxy",
        &[
            ("id", "string", "Its name."),
            ("address", "string", "host:port for clients."),
            ("zone", "string", "Where it stands; may be empty."),
            ("status", "Status", "What is known of it right now."),
        ],
    ),
    (
        "Status",
        &[
            ("state", "string", "'up', 'late', 'down' or 'unknown'."),
            ("last_seen_ms", "integer?", "How long ago it asked for its lease."),
            ("run", "string", "The incarnation of its process."),
            ("epoch", "integer", "The epoch of the view that it has."),
            ("facts", "object", "What it tells of itself."),
        ],
    ),
    (
        "Move",
        &[
            ("id", "integer", "Its number."),
            ("from", "integer", "The group that gives."),
            ("to", "integer", "The group that takes."),
            ("slots", "Ranges", "The slots."),
            ("slot_count", "integer", "How many those are."),
            ("stage", "string", "'planned', 'copying', 'cutover', 'committed', 'done', 'cancelled' or 'failed'."),
            ("is_paused", "boolean", "Whether it stands still by someone's wish."),
            ("state", "string", "What the source says: 'copying', 'following', 'paused', 'frozen' …."),
            ("keys", "integer", "Keys that were sent."),
            ("total_keys", "integer", "Keys that are to be sent."),
            ("bytes", "integer", "Bytes that were sent."),
            ("lag_bytes", "integer", "Bytes of changes that the target has not confirmed."),
            ("rate", "integer", "Bytes per second right now."),
            ("rate_limit", "integer?", "Most bytes per second; none is unlimited."),
            ("eta_ms", "integer?", "How long it will still take, as far as one can tell."),
            ("created_ms", "integer", "When it was asked for; 0 if that is not known any more."),
            ("ended_ms", "integer?", "When it was over."),
            ("attempts", "integer", "How often the copy was begun."),
            ("error", "string", "What went wrong last; empty if nothing did."),
            ("by", "string", "Who asked for it."),
        ],
    ),
    (
        "SlotRange",
        &[
            ("from", "integer", "The first slot."),
            ("to", "integer", "The last slot."),
            ("group", "integer?", "The group that owns them."),
            ("moving_to", "integer?", "The group they are on their way to."),
            ("move_id", "integer?", "The move that takes them there."),
        ],
    ),
    ("NewGroup", &[("id", "integer?", "Its number; the next free one if none is given.")]),
    (
        "NewServer",
        &[
            ("address", "string", "host:port."),
            ("zone", "string?", "Where it stands."),
            ("force", "boolean?", "Take it although it holds keys; as a replica it loses them."),
        ],
    ),
    (
        "NewProxy",
        &[
            ("id", "string", "The name that it keeps over restarts."),
            ("address", "string", "host:port for clients."),
            ("zone", "string?", "Where it stands."),
        ],
    ),
    (
        "Assignment",
        &[
            ("slots", "Slots", "Which; 'all' stands for all that nobody owns."),
            ("group", "integer?", "Their group; none spreads them evenly over all groups that have a server."),
        ],
    ),
    (
        "NewMove",
        &[
            ("slots", "Slots", "Which."),
            ("to", "integer", "Where they go."),
            ("rate", "integer?", "Most bytes per second."),
        ],
    ),
    ("NewRate", &[("rate", "integer?", "Most bytes per second; none or 0 is unlimited.")]),
    (
        "PlanWish",
        &[
            ("by", "string?", "What is to be even: 'slots', 'memory' or 'load'."),
            ("group", "integer?", "The group to empty (scale-in) or to fill (scale-out)."),
            ("dry_run", "boolean?", "Tell only what would be done; that is the default."),
            ("rate", "integer?", "Most bytes per second of each move."),
        ],
    ),
    (
        "Plan",
        &[
            ("kind", "string", "'rebalance', 'scale-in' or 'scale-out'."),
            ("by", "string", "'slots', 'memory' or 'load'."),
            ("dry_run", "boolean", "Whether nothing was begun."),
            ("moves", "[PlannedMove]", "What goes where."),
            ("groups", "[PlannedGroup]", "Each group before and after."),
            ("begun", "[integer]", "The moves that were begun."),
            ("notes", "[string]", "What one should know."),
        ],
    ),
    (
        "PlannedMove",
        &[
            ("from", "integer", "The group that gives."),
            ("to", "integer", "The group that takes."),
            ("slots", "Ranges", "The slots."),
            ("slot_count", "integer", "How many those are."),
            ("keys", "integer", "Keys in them."),
            ("bytes", "integer", "Bytes in them."),
        ],
    ),
    (
        "PlannedGroup",
        &[
            ("id", "integer", "Its number."),
            ("before", "Weight", "What it has now."),
            ("after", "Weight", "What it will have."),
        ],
    ),
    (
        "Weight",
        &[
            ("slots", "integer", "Slots."),
            ("keys", "integer", "Keys in them."),
            ("bytes", "integer", "Bytes in them."),
            ("ops", "integer", "Commands per second on them."),
        ],
    ),
    (
        "Event",
        &[
            ("seq", "integer", "Its number: greater than those of all before it."),
            ("at_ms", "integer", "When."),
            ("kind", "string", "'audit' for what somebody asked for, 'event' for what happened."),
            ("who", "string", "Whose token it was."),
            ("from", "string", "The address the request came from."),
            ("action", "string", "What."),
            ("object", "string", "To what."),
            ("detail", "string", "Particulars."),
            ("result", "string", "'ok', or the error."),
            ("term", "integer", "The manager's term at that time."),
            ("chain", "string", "SHA-256 over the line before and this one, in the file of the manager that wrote it."),
        ],
    ),
    (
        "Settings",
        &[
            ("moves_per_group", "integer?", "Moves that a group takes part in at the same time."),
            ("move_rate", "integer?", "Most bytes per second of a move that says nothing itself; 0 is unlimited."),
            ("freeze_ms", "integer?", "Longest that a source may hold commands back at a cut-over."),
        ],
    ),
    (
        "LeaseRequest",
        &[
            ("kind", "string", "'server' or 'proxy'."),
            ("run", "string", "The incarnation of its process."),
            ("term", "integer", "Of the view that it has; 0 without one."),
            ("epoch", "integer", "Of the view that it has; 0 without one."),
            ("address", "string", "Where it is reached."),
            ("wait_ms", "integer?", "How long it would wait for a newer view."),
            ("status", "object?", "What it tells of itself."),
        ],
    ),
    (
        "LeaseReply",
        &[
            ("term", "integer", "The leader's."),
            ("epoch", "integer", "Of the newest view."),
            ("lease_ms", "integer", "How long the lease is, from when it was asked for."),
            ("view", "object?", "The newest view, when the member's is older."),
        ],
    ),
];

fn schemas() -> Value {
    let mut all = Map::new();
    for (name, fields) in SCHEMAS {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for (field, kind, meaning) in *fields {
            let (kind, is_required) = kind.strip_suffix('?').map_or((*kind, true), |kind| (kind, false));
            let mut schema = type_of(kind);
            if let Some(schema) = schema.as_object_mut() {
                schema.insert("description".into(), json!(meaning));
            }
            properties.insert((*field).to_owned(), schema);
            if is_required {
                required.push(*field);
            }
        }
        all.insert((*name).to_owned(), json!({ "type": "object", "properties": properties, "required": required }));
    }
    let slot = json!({ "type": "integer", "minimum": 0, "maximum": 16383 });
    let range = json!({ "type": "array", "items": slot, "minItems": 2, "maxItems": 2 });
    all.insert("Ranges".into(), json!({ "type": "array", "items": range }));
    all.insert(
        "Slots".into(),
        json!({
            "oneOf": [{ "type": "string", "examples": ["0-99,200", "all"] }, reference("Ranges")],
        }),
    );
    all.insert("Text".into(), json!({ "type": "string" }));
    all.insert("Any".into(), json!({ "type": "object" }));
    Value::Object(all)
}

fn type_of(kind: &str) -> Value {
    if let Some(item) = kind.strip_prefix('[').and_then(|kind| kind.strip_suffix(']')) {
        return json!({ "type": "array", "items": type_of(item) });
    }
    match kind {
        "string" | "integer" | "boolean" | "object" => json!({ "type": kind }),
        named => reference(named),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeSet;

    use super::*;
    use crate::shapes;

    #[test]
    fn every_name_has_a_schema_and_operations_are_unique() {
        let document = document();
        let text = document.to_string();
        let known = document["components"]["schemas"].as_object().unwrap();
        for part in text.split("#/components/schemas/").skip(1) {
            let name = part.split('"').next().unwrap();
            assert!(known.contains_key(name), "{name}");
        }
        let actions: BTreeSet<&str> = ROUTES.iter().map(|route| route.action).collect();
        assert_eq!(actions.len(), ROUTES.len());
        for route in ROUTES {
            let operation = &document["paths"][route.path][route.method.to_ascii_lowercase()];
            assert_eq!(operation["operationId"], route.action);
        }
    }

    /// Schemas and types have the same fields.
    #[test]
    fn schemas_are_those_of_the_types() {
        fn fields<T: serde::Serialize>(value: &T) -> BTreeSet<String> {
            serde_json::to_value(value).unwrap().as_object().unwrap().keys().cloned().collect()
        }
        let slots = || shapes::SlotsWish::Text(String::new());
        let all: Vec<(&str, BTreeSet<String>)> = vec![
            ("Topology", fields(&shapes::Topology::default())),
            ("Group", fields(&shapes::Group::default())),
            ("Server", fields(&shapes::Server::default())),
            ("Proxy", fields(&shapes::Proxy::default())),
            ("Status", fields(&shapes::Status::default())),
            ("Move", fields(&shapes::Move::default())),
            ("SlotRange", fields(&shapes::SlotRange::default())),
            ("NewGroup", fields(&shapes::NewGroup { id: Some(1) })),
            ("NewServer", fields(&shapes::NewServer { address: "a".into(), zone: "z".into(), force: true })),
            ("NewProxy", fields(&shapes::NewProxy { id: "p".into(), address: "a".into(), zone: "z".into() })),
            ("Assignment", fields(&shapes::Assignment { slots: slots(), group: Some(1) })),
            ("NewMove", fields(&shapes::NewMove { slots: slots(), to: 1, rate: Some(1) })),
            ("NewRate", fields(&shapes::NewRate { rate: Some(1) })),
            (
                "PlanWish",
                fields(&shapes::PlanWish { by: Some("slots".into()), group: Some(1), dry_run: true, rate: Some(1) }),
            ),
            ("Plan", fields(&shapes::Plan::default())),
            ("PlannedMove", fields(&shapes::PlannedMove::default())),
            ("PlannedGroup", fields(&shapes::PlannedGroup::default())),
            ("Weight", fields(&shapes::Weight::default())),
            ("Event", fields(&shapes::Event::default())),
            (
                "Settings",
                fields(&shapes::Settings { moves_per_group: Some(1), move_rate: Some(1), freeze_ms: Some(1) }),
            ),
            ("Error", fields(&shapes::ErrorBody { leader: Some(String::new()), ..shapes::ErrorBody::default() })),
        ];
        for (name, fields) in all {
            let known = SCHEMAS.iter().find(|(known, _)| *known == name).unwrap().1;
            let known: BTreeSet<String> = known.iter().map(|(field, ..)| (*field).to_owned()).collect();
            assert_eq!(known, fields, "{name}");
        }
    }
}
