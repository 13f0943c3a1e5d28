//! What the REST API sends and takes, as types: the manager writes them, `oxidis admin` and `oxidis up` read them.
//!
//! Slots travel as ranges `[[0, 5460], [7000, 7000]]`, both ends included; in requests a text `"0-5460,7000"` does as
//! well. Instants are milliseconds since 1970, spans are milliseconds, rates bytes per second.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Ranges of slots, both ends included.
pub type Ranges = Vec<[u16; 2]>;

/// `GET /topology`: everything at one instant.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Topology {
    /// The cluster's name.
    pub cluster: String,
    /// Grows with each manager that begins to lead.
    pub term: u64,
    /// Grows with each change that members must know.
    pub epoch: u64,
    /// The leading manager's URL, if one leads.
    pub leader: Option<String>,
    /// Whether the manager that answered leads.
    pub is_leader: bool,
    /// `redis` or `codis`.
    pub slot_space: String,
    /// Slots of the space.
    pub slot_count: u32,
    /// Slots that no group owns.
    pub unassigned: Ranges,
    /// How long a member's lease lasts.
    pub lease_ms: u64,
    /// The groups, by number.
    pub groups: Vec<Group>,
    /// The proxies.
    pub proxies: Vec<Proxy>,
    /// Moves that are not over.
    pub moves: Vec<Move>,
}

/// A primary, its replicas and their slots.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Group {
    /// Its number.
    pub id: u32,
    /// Grows with each change of its servers.
    pub epoch: u64,
    /// The slots that it owns.
    pub slots: Ranges,
    /// How many those are.
    pub slot_count: u32,
    /// Its servers, the primary first.
    pub servers: Vec<Server>,
}

/// A server of a group.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Server {
    /// Its member id.
    pub id: String,
    /// Where it listens.
    pub address: String,
    /// `primary` or `replica`.
    pub role: String,
    /// Where it stands, for clients that read nearby; may be empty.
    pub zone: String,
    /// The group it belongs to.
    pub group: u32,
    /// What is known of it right now.
    pub status: Status,
}

/// A proxy.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Proxy {
    /// Its member id.
    pub id: String,
    /// Where clients reach it.
    pub address: String,
    /// Where it stands; may be empty.
    pub zone: String,
    /// What is known of it right now.
    pub status: Status,
}

/// What is known of a member right now. Kept in memory by the leading manager only.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// `up`, `late` (its lease has ended), `down` (not heard of for a while) or `unknown` (never heard of).
    pub state: String,
    /// How long ago it asked for its lease.
    pub last_seen_ms: Option<u64>,
    /// The incarnation of its process, 40 hex digits.
    pub run: String,
    /// The epoch of the view that it has.
    pub epoch: u64,
    /// What it tells of itself: `role`, `offset`, `master_link`, `keys`, `used_memory`, `ops`, `clients` and more.
    pub facts: Map<String, Value>,
}

impl Status {
    /// A number that the member tells of itself.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u64> {
        let value = self.facts.get(name)?;
        // Rates may come with decimals; a negative one says that it is not known.
        value.as_u64().or_else(|| value.as_f64().filter(|number| *number >= 0.0).map(whole))
    }

    /// A text that the member tells of itself.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.facts.get(name)?.as_str()
    }
}

/// Slots on their way from one group to another.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Move {
    /// Its number.
    pub id: u64,
    /// The group that gives.
    pub from: u32,
    /// The group that takes.
    pub to: u32,
    /// The slots.
    pub slots: Ranges,
    /// How many those are.
    pub slot_count: u32,
    /// `planned`, `copying`, `cutover`, `committed`, `done`, `cancelled` or `failed`.
    pub stage: String,
    /// Whether it stands still by someone's wish.
    pub is_paused: bool,
    /// What the source says: `copying`, `following`, `paused`, `frozen` …; empty if it was not asked yet.
    pub state: String,
    /// Keys that were sent.
    pub keys: u64,
    /// Keys that are to be sent.
    pub total_keys: u64,
    /// Bytes that were sent.
    pub bytes: u64,
    /// Bytes of changes that the target has not confirmed.
    pub lag_bytes: u64,
    /// Bytes per second right now.
    pub rate: u64,
    /// Most bytes per second; none is unlimited.
    pub rate_limit: Option<u64>,
    /// How long it will still take, as far as one can tell.
    pub eta_ms: Option<u64>,
    /// When it was asked for.
    pub created_ms: u64,
    /// When it was over.
    pub ended_ms: Option<u64>,
    /// How often the copy was begun.
    pub attempts: u32,
    /// What went wrong last; empty if nothing did.
    pub error: String,
    /// Who asked for it.
    pub by: String,
}

impl Move {
    /// Whether nothing more will happen to it.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self.stage.as_str(), "done" | "cancelled" | "failed")
    }
}

/// `GET /slots`: a run of slots that are in the same state.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SlotRange {
    /// The first slot.
    pub from: u16,
    /// The last slot.
    pub to: u16,
    /// The group that owns them.
    pub group: Option<u32>,
    /// The group they are on their way to.
    pub moving_to: Option<u32>,
    /// The move that takes them there.
    pub move_id: Option<u64>,
}

/// `POST /groups`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewGroup {
    /// Its number; the lowest free one if none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u32>,
}

/// `POST /groups/{id}/servers`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewServer {
    /// Where it listens, `host:port`.
    pub address: String,
    /// Where it stands.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub zone: String,
    /// Take it although it holds keys. As a replica it loses them.
    #[serde(default)]
    pub force: bool,
}

/// `POST /proxies`: a proxy makes itself known.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewProxy {
    /// The name that it keeps over restarts.
    pub id: String,
    /// Where clients reach it, `host:port`.
    pub address: String,
    /// Where it stands.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub zone: String,
}

/// Slots in a request: ranges, or a text such as `0-99,200`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SlotsWish {
    /// `"0-99,200"`, or `"all"`.
    Text(String),
    /// `[[0, 99], [200, 200]]`.
    Ranges(Ranges),
}

impl fmt::Display for SlotsWish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SlotsWish::Text(text) => f.write_str(text),
            SlotsWish::Ranges(ranges) => f.write_str(&ranges_text(ranges)),
        }
    }
}

/// `POST /slots/assign`: slots that nobody owns get their first owner.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assignment {
    /// Which slots; `all` stands for all that nobody owns.
    pub slots: SlotsWish,
    /// Their group. None spreads them evenly over all groups that have a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<u32>,
}

/// `POST /moves`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewMove {
    /// Which slots. They may belong to several groups: each gets a move of its own.
    pub slots: SlotsWish,
    /// Where they go.
    pub to: u32,
    /// Most bytes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<u64>,
}

/// `POST /moves/{id}/rate`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewRate {
    /// Most bytes per second; none or 0 is unlimited.
    #[serde(default)]
    pub rate: Option<u64>,
}

/// `POST /plans/rebalance`, `/plans/scale-in` and `/plans/scale-out`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanWish {
    /// What is to be even: `slots` (the default), `memory` or `load`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The group to empty (scale-in) or to fill (scale-out).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<u32>,
    /// Tell only what would be done. That is the default.
    #[serde(default = "yes")]
    pub dry_run: bool,
    /// Most bytes per second of each move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<u64>,
}

fn yes() -> bool {
    true
}

/// What would be moved, or was begun to be.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Plan {
    /// `rebalance`, `scale-in` or `scale-out`.
    pub kind: String,
    /// `slots`, `memory` or `load`.
    pub by: String,
    /// Whether nothing was begun.
    pub dry_run: bool,
    /// What goes where.
    pub moves: Vec<PlannedMove>,
    /// Each group before and after.
    pub groups: Vec<PlannedGroup>,
    /// The moves that were begun.
    pub begun: Vec<u64>,
    /// What one should know, such as servers that could not be asked.
    pub notes: Vec<String>,
}

/// A line of a plan.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PlannedMove {
    /// The group that gives.
    pub from: u32,
    /// The group that takes.
    pub to: u32,
    /// The slots.
    pub slots: Ranges,
    /// How many those are.
    pub slot_count: u32,
    /// Keys in them.
    pub keys: u64,
    /// Bytes in them.
    pub bytes: u64,
}

/// A group before and after a plan.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PlannedGroup {
    /// Its number.
    pub id: u32,
    /// What it has now.
    pub before: Weight,
    /// What it will have.
    pub after: Weight,
}

/// What a group carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Weight {
    /// Slots.
    pub slots: u32,
    /// Keys in them.
    pub keys: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// Commands per second on them.
    pub ops: u64,
}

/// A line of the log of events: what people asked for, and what happened by itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Its number: greater than those of all before it.
    pub seq: u64,
    /// When.
    pub at_ms: u64,
    /// `audit` for what somebody asked for, `event` for what happened.
    pub kind: String,
    /// Whose token it was (`NAME (role)`), `local` where none is needed, or `manager`.
    pub who: String,
    /// The address the request came from; empty for what happened by itself.
    #[serde(default)]
    pub from: String,
    /// What: `group.add`, `move.cancel`, `member.down` …
    pub action: String,
    /// To what: `group 3`, `move 7` …
    #[serde(default)]
    pub object: String,
    /// Particulars.
    #[serde(default)]
    pub detail: String,
    /// `ok`, or the error.
    pub result: String,
    /// The manager's term at that time.
    #[serde(default)]
    pub term: u64,
    /// SHA-256 of the line before and this one without this field, in hex: a line that is taken out or changed shows.
    #[serde(default)]
    pub chain: String,
}

/// `GET /settings` and `PUT /settings`: what the leading manager goes by while it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Moves that a group takes part in at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moves_per_group: Option<u32>,
    /// Most bytes per second of a move that says nothing itself; 0 is unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub move_rate: Option<u64>,
    /// Longest that a source may hold commands back at the cut-over of a move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freeze_ms: Option<u64>,
}

/// An error of the API.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// What is wrong.
    pub error: String,
    /// What to do.
    #[serde(default)]
    pub hint: String,
    /// The leading manager, where the answer is to ask that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader: Option<String>,
}

/// The nearest whole number; 0 for what is below.
#[allow(clippy::cast_possible_truncation, reason = "`as` stops at the ends of the type")]
pub(crate) fn whole(number: f64) -> u64 {
    number.round() as u64
}

/// `0-99,200` for people.
#[must_use]
pub fn ranges_text(ranges: &[[u16; 2]]) -> String {
    let texts = ranges.iter().map(|[from, to]| if from == to { from.to_string() } else { format!("{from}-{to}") });
    texts.collect::<Vec<_>>().join(",")
}

/// How many slots ranges hold.
#[must_use]
pub fn count_slots(ranges: &[[u16; 2]]) -> u32 {
    ranges.iter().map(|[from, to]| u32::from(to.saturating_sub(*from)) + u32::from(to >= from)).sum()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn slots_are_shown_and_counted() {
        assert_eq!(ranges_text(&[[0, 99], [200, 200]]), "0-99,200");
        assert_eq!(count_slots(&[[0, 99], [200, 200], [9, 3]]), 101);
        assert_eq!(count_slots(&[[0, 16383]]), 16384);
    }

    #[test]
    fn slots_of_a_request_may_be_text_or_ranges() {
        let wish: Assignment = serde_json::from_str(r#"{"slots":"0-5","group":1}"#).unwrap();
        assert_eq!(wish.slots.to_string(), "0-5");
        let wish: Assignment = serde_json::from_str(r#"{"slots":[[0,5],[7,7]]}"#).unwrap();
        assert_eq!(wish.slots.to_string(), "0-5,7");
        assert!(serde_json::from_str::<Assignment>(r#"{"slots":"1","gruop":1}"#).is_err());
    }

    #[test]
    fn numbers_of_a_status_may_have_decimals() {
        let mut status = Status::default();
        status.facts.insert("ops".into(), 12.6.into());
        status.facts.insert("keys".into(), 7.into());
        status.facts.insert("lag".into(), (-1).into());
        assert_eq!((status.number("ops"), status.number("keys"), status.number("lag")), (Some(13), Some(7), None));
    }
}
