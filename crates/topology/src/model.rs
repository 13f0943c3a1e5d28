//! The record that a cluster is: one JSON text in the coordinator, replaced as a whole by compare-and-set.
//!
//! ```text
//! Topology ── groups ── servers (one primary, its replicas)
//!    │           └───── slots   (what the group owns)
//!    ├─ moves   open ones, and the last that ended
//!    ├─ proxies
//!    └─ term, epoch: newness. Every change makes the epoch greater by one and takes the leader's term.
//! ```
//!
//! Fields that a later version adds have defaults, so that a record written before is read; unknown ones are ignored.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::slots::{SlotSet, SlotSpace};

/// The number of a group, from 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GroupId(pub u32);

/// The number of a move, from 1, never used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MoveId(pub u64);

/// How many changes a cluster has seen.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Epoch(pub u64);

/// Which leadership of a manager this was; each is greater than all before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Term(pub u64);

/// How new a record or a view is: by term, then by epoch.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Newness {
    /// The term of the leader that made it.
    pub term: Term,
    /// Its epoch.
    pub epoch: Epoch,
}

macro_rules! display_as_number {
    ($($name:ident)*) => { $(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )* };
}
display_as_number!(GroupId MoveId Epoch Term);

/// What a server is within its group.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Takes the writes.
    Primary,
    /// Follows the primary.
    Replica,
}

/// A server of a group.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Server {
    /// Its name, unique among servers and proxies.
    pub id: String,
    /// `host:port` where clients and other members reach it.
    pub address: String,
    /// What it is within the group.
    pub role: Role,
    /// Where it stands (a rack, a data centre): for reads nearby and replicas elsewhere. May be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub zone: String,
}

/// A group of servers that hold the same slots.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Group {
    /// Its number.
    pub id: GroupId,
    /// The epoch of the last change of its servers or slots.
    pub epoch: Epoch,
    /// Its servers; one of them is the primary, unless there is none at all.
    #[serde(default)]
    pub servers: Vec<Server>,
    /// What it owns.
    #[serde(default)]
    pub slots: SlotSet,
}

impl Group {
    /// The server that takes the writes.
    pub fn primary(&self) -> Option<&Server> {
        self.servers.iter().find(|server| server.role == Role::Primary)
    }

    /// The servers that follow the primary.
    pub fn replicas(&self) -> impl Iterator<Item = &Server> {
        self.servers.iter().filter(|server| server.role == Role::Replica)
    }
}

/// A proxy of the cluster.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Proxy {
    /// Its name, unique among servers and proxies.
    pub id: String,
    /// `host:port` where clients reach it.
    pub address: String,
    /// Where it stands. May be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub zone: String,
}

/// How far a move of slots is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Not begun, or to be begun anew.
    Planned,
    /// The source copies, then follows.
    Copying,
    /// The source is about to hold the slots, or holds them; who owns them is decided by the next stage.
    Cutover,
    /// The target owns the slots; both ends are being told.
    Committed,
    /// Both ends know.
    Done,
    /// Given up by somebody's wish; the source owns the slots.
    Cancelled,
    /// Given up because it could not be done; the source owns the slots.
    Failed,
}

impl Stage {
    /// Whether the move goes on.
    pub const fn is_running(self) -> bool {
        matches!(self, Stage::Planned | Stage::Copying | Stage::Cutover | Stage::Committed)
    }

    /// As in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Stage::Planned => "planned",
            Stage::Copying => "copying",
            Stage::Cutover => "cutover",
            Stage::Committed => "committed",
            Stage::Done => "done",
            Stage::Cancelled => "cancelled",
            Stage::Failed => "failed",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A move of slots from one group to another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Move {
    /// Its number.
    pub id: MoveId,
    /// The group that owns the slots until the move is committed.
    pub from: GroupId,
    /// The group that owns them from then on.
    pub to: GroupId,
    /// What moves.
    pub slots: SlotSet,
    /// How far it is.
    pub stage: Stage,
    /// Whether it is to rest. A move rests only before its cut-over.
    #[serde(default, skip_serializing_if = "is_false")]
    pub paused: bool,
    /// Since it ended in `cancelled` or `failed`: whether the two ends may still know of it and have to be told. While
    /// this is so its slots take part in no other move.
    #[serde(default, skip_serializing_if = "is_false")]
    pub unsettled: bool,
    /// The incarnation of the source's primary that copies (40 hex digits), since stage `copying`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_run: Option<String>,
    /// The incarnation of the target's primary that receives, since stage `copying`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_run: Option<String>,
    /// How many bytes a second it may send; 0 for no limit.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rate: u64,
    /// How often the copy was begun.
    #[serde(default)]
    pub attempts: u32,
    /// How often the slots were to be held and were not.
    #[serde(default, skip_serializing_if = "is_zero_u32")]
    pub thaws: u32,
    /// The epoch that made the target the owner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub committed_epoch: Option<Epoch>,
    /// Why it was begun anew or given up, for people. May be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

impl Move {
    /// Whether it still has something to do, and so keeps its slots from other moves.
    pub const fn is_open(&self) -> bool {
        self.stage.is_running() || self.unsettled
    }
}

/// A cluster.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Topology {
    /// Its name.
    pub cluster: String,
    /// How its keys are hashed.
    #[serde(default)]
    pub slot_space: SlotSpace,
    /// The term of the leader that made the last change.
    #[serde(default)]
    pub term: Term,
    /// How many changes there were.
    #[serde(default)]
    pub epoch: Epoch,
    /// How long a member's lease is, in milliseconds.
    #[serde(default = "default_lease_ms")]
    pub lease_ms: u64,
    /// Ascending by number.
    #[serde(default)]
    pub groups: Vec<Group>,
    /// Open moves and the last of those that ended, ascending by number.
    #[serde(default)]
    pub moves: Vec<Move>,
    /// Ascending by name.
    #[serde(default)]
    pub proxies: Vec<Proxy>,
    /// The number of the next move.
    #[serde(default = "first_move")]
    pub next_move: MoveId,
    /// The number of the next group that nobody named one for.
    #[serde(default = "first_group")]
    pub next_group: GroupId,
}

/// A member's lease unless told otherwise, in milliseconds.
pub const DEFAULT_LEASE_MS: u64 = 3_000;

/// How many ended moves a record keeps for people to see.
pub const KEPT_MOVES: usize = 64;

impl Topology {
    /// A cluster without anything in it.
    pub fn new(cluster: &str, slot_space: SlotSpace) -> Topology {
        Topology {
            cluster: cluster.to_string(),
            slot_space,
            term: Term(0),
            epoch: Epoch(0),
            lease_ms: DEFAULT_LEASE_MS,
            groups: Vec::new(),
            moves: Vec::new(),
            proxies: Vec::new(),
            next_move: first_move(),
            next_group: first_group(),
        }
    }

    /// How new it is.
    pub const fn newness(&self) -> Newness {
        Newness { term: self.term, epoch: self.epoch }
    }

    /// The group of that number.
    pub fn group(&self, id: GroupId) -> Option<&Group> {
        self.groups.iter().find(|group| group.id == id)
    }

    /// The server of that name, and its group.
    pub fn server(&self, id: &str) -> Option<(&Group, &Server)> {
        self.servers().find(|(_, server)| server.id == id)
    }

    /// All servers with their groups.
    pub fn servers(&self) -> impl Iterator<Item = (&Group, &Server)> {
        self.groups.iter().flat_map(|group| group.servers.iter().map(move |server| (group, server)))
    }

    /// The proxy of that name.
    pub fn proxy(&self, id: &str) -> Option<&Proxy> {
        self.proxies.iter().find(|proxy| proxy.id == id)
    }

    /// The move of that number.
    pub fn find_move(&self, id: MoveId) -> Option<&Move> {
        self.moves.iter().find(|one| one.id == id)
    }

    /// The moves that still have something to do.
    pub fn open_moves(&self) -> impl Iterator<Item = &Move> {
        self.moves.iter().filter(|one| one.is_open())
    }

    /// The group that owns a slot.
    pub fn owner(&self, slot: u16) -> Option<GroupId> {
        self.groups.iter().find(|group| group.slots.contains(slot)).map(|group| group.id)
    }

    /// The slots that no group owns.
    pub fn unowned(&self) -> SlotSet {
        self.groups.iter().fold(self.slot_space.all(), |left, group| left.difference(&group.slots))
    }

    /// The slots of open moves.
    pub fn moving(&self) -> SlotSet {
        self.open_moves().fold(SlotSet::new(), |sum, one| sum.union(&one.slots))
    }
}

fn default_lease_ms() -> u64 {
    DEFAULT_LEASE_MS
}

fn first_move() -> MoveId {
    MoveId(1)
}

fn first_group() -> GroupId {
    GroupId(1)
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_false(value: &bool) -> bool {
    !*value
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero_u32(value: &u32) -> bool {
    *value == 0
}
