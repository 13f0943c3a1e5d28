//! What members, servers and managers say to each other, as JSON.

use serde::{Deserialize, Serialize};

use crate::model::{Epoch, Newness, Term};
use crate::view::View;

/// Where the manager's interface begins.
pub const PREFIX: &str = "/api/v1";

/// What kind of member asks for a lease.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemberKind {
    /// A server of a group.
    Server,
    /// A proxy.
    Proxy,
}

/// The body of `POST /api/v1/members/{id}/lease`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LeaseRequest {
    /// What the member is.
    pub kind: MemberKind,
    /// The member's incarnation: 40 hex digits, new at each start of its process.
    pub run: String,
    /// The term of the view that it has; 0 without one.
    pub term: Term,
    /// The epoch of the view that it has; 0 without one.
    pub epoch: Epoch,
    /// `host:port` where it is reached.
    pub address: String,
    /// How long the manager may hold the answer while nothing is new, in milliseconds.
    #[serde(default)]
    pub wait_ms: u64,
    /// What the member says of itself; free in form.
    #[serde(default)]
    pub status: serde_json::Value,
}

impl LeaseRequest {
    /// How new the view is that the member has.
    pub const fn newness(&self) -> Newness {
        Newness { term: self.term, epoch: self.epoch }
    }
}

/// The answer to a request for a lease (200).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LeaseReply {
    /// The leader's term.
    pub term: Term,
    /// The epoch of the newest view.
    pub epoch: Epoch,
    /// How long the lease is, in milliseconds: the member counts from before it asked, the manager from the arrival of the
    /// request.
    pub lease_ms: u64,
    /// The newest view, when the member's is older.
    #[serde(default)]
    pub view: Option<View>,
}

/// The answer of a manager that does not lead (409).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NotLeader {
    /// The leader's URL; empty while there is none.
    #[serde(default)]
    pub leader: String,
}

/// How far the source is with a move, as it says itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CopyState {
    /// The snapshot is being sent.
    Copying,
    /// The snapshot is sent; changes are sent as they come.
    Following,
    /// It rests.
    Paused,
    /// The slots are held.
    Frozen,
    /// The target owns the slots.
    Finished,
    /// Given up by wish.
    Cancelled,
    /// Given up by need.
    Failed,
}

/// The answer to `OXIDIS MOVE STATUS`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CopyStatus {
    /// The move's number.
    #[serde(rename = "move")]
    pub id: u64,
    /// How far it is.
    pub state: CopyState,
    /// Keys that were sent.
    #[serde(default)]
    pub keys: u64,
    /// Bytes that were sent.
    #[serde(default)]
    pub bytes: u64,
    /// Keys that the snapshot has.
    #[serde(default)]
    pub total_keys: u64,
    /// Bytes of changes that the target has not acknowledged.
    #[serde(default)]
    pub lag_bytes: u64,
    /// The limit, in bytes a second; 0 for none.
    #[serde(default)]
    pub rate: u64,
    /// When it began, in milliseconds of Unix time.
    #[serde(default)]
    pub started_ms: u64,
    /// Why it failed. May be empty.
    #[serde(default)]
    pub error: String,
}

/// An entry of the answer to `OXIDIS SLOTS STATS`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct SlotStats {
    /// The slot.
    pub slot: u16,
    /// Keys in it, of all databases.
    #[serde(default)]
    pub keys: u64,
    /// Bytes they take.
    #[serde(default)]
    pub bytes: u64,
    /// Commands on it per second, of late.
    #[serde(default)]
    pub ops: u64,
}
