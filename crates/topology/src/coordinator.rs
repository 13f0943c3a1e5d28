//! The store that managers share: documents replaced by compare-and-set, an audit log, and who leads.
//!
//! All calls block for a bounded time and may be made from any thread; a program with an event loop makes them from threads of
//! its own. Two implementations hold the same tests (`tests/coordinator`):
//! - [`embedded::Embedded`]: one file, one manager, nothing to set up.
//! - [`etcd::Etcd`]: etcd version 3, for several managers.
//!
//! Whoever leads writes, and only while it leads: [`Coordinator::replace`] is refused by the store itself, not only by the
//! caller's clock, once another leadership began. So a manager that slept through its lease does no harm.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::model::{Term, Topology};

pub mod embedded;
pub mod etcd;

/// The document that the cluster's record is.
pub const TOPOLOGY: &str = "topology";
/// How many events the audit log keeps unless told otherwise.
pub const KEPT_EVENTS: u64 = 5_000;

/// Which writing of a document; 0 for none yet. Grows with each.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Version(pub u64);

/// A document of the store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Document {
    /// What it says.
    pub text: String,
    /// Which writing it is.
    pub version: Version,
}

/// A cluster's record with its version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredTopology {
    /// The record.
    pub topology: Topology,
    /// Which writing it is.
    pub version: Version,
}

/// Something that happened, to be noted.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct NewEvent {
    /// When, in milliseconds of Unix time.
    pub time_ms: u64,
    /// Who did it: a user's name, or `manager`.
    pub who: String,
    /// What kind of thing it is: `move.committed`, `server.added`.
    pub kind: String,
    /// What happened, in a sentence.
    pub text: String,
    /// More, for programs.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub detail: serde_json::Value,
}

/// An event of the audit log.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Event {
    /// Its number; each is greater than all before.
    pub id: u64,
    /// What happened.
    #[serde(flatten)]
    pub event: NewEvent,
}

/// Which events are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventsFrom {
    /// Those after this number, the oldest of them first.
    After(u64),
    /// The newest ones before this number (`u64::MAX` for the very last), newest first.
    Before(u64),
}

/// A manager that would lead.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Candidate {
    /// Its name.
    pub id: String,
    /// Its URL, where others send who asks them.
    pub url: String,
}

/// Who leads.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Leader {
    /// The manager.
    #[serde(flatten)]
    pub candidate: Candidate,
    /// Its term.
    pub term: Term,
}

/// What came of standing for election.
#[derive(Debug)]
pub enum Standing {
    /// It leads, until the leadership is lost or given back.
    Leads(Leadership),
    /// Another one leads.
    Follows(Leader),
}

/// Why the store did not do what was asked.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StoreError {
    /// The document has another version than expected: load it and think again.
    #[error("somebody else has changed it")]
    Conflict,
    /// The leadership is over.
    #[error("this manager does not lead (any more)")]
    NotLeader,
    /// The store cannot be reached; whether it was done is not known.
    #[error("{0}")]
    Unreachable(String),
    /// The store is used by another process.
    #[error("{0}")]
    Occupied(String),
    /// The store holds what it should not, or refuses for good.
    #[error("{0}")]
    Broken(String),
}

/// The store that managers share.
pub trait Coordinator: Send + Sync {
    /// Which store it is, for people: a path, or URLs.
    fn describe(&self) -> String;

    /// A document; none when it was never written.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn load(&self, name: &str) -> Result<Option<Document>, StoreError>;

    /// Writes a document if it still has the expected version (0: if there is none) and the leadership is not over, and notes
    /// the events; all or nothing.
    ///
    /// # Errors
    /// [`StoreError::Conflict`], [`StoreError::NotLeader`], or that the store cannot be reached.
    fn replace(
        &self,
        leadership: &Leadership,
        name: &str,
        expected: Version,
        text: &str,
        events: &[NewEvent],
    ) -> Result<Version, StoreError>;

    /// Waits until the document is newer than `known`, at most for `limit`, and gives it; none when nothing was new.
    ///
    /// # Errors
    /// When the store cannot be reached for all of that time.
    fn wait_newer(&self, name: &str, known: Version, limit: Duration) -> Result<Option<Document>, StoreError>;

    /// Notes events. The oldest are forgotten when there are too many.
    ///
    /// # Errors
    /// When the store cannot be reached.
    fn append(&self, events: &[NewEvent]) -> Result<(), StoreError>;

    /// Events of the audit log, `limit` of them at most.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn events(&self, from: EventsFrom, limit: usize) -> Result<Vec<Event>, StoreError>;

    /// Stands for election once. Whoever does not win asks again after a while.
    ///
    /// # Errors
    /// When the store cannot be reached.
    fn campaign(&self, candidate: &Candidate) -> Result<Standing, StoreError>;

    /// Who leads; none while nobody does.
    ///
    /// # Errors
    /// When the store cannot be reached.
    fn leader(&self) -> Result<Option<Leader>, StoreError>;

    /// Gives a leadership back, so that another can follow at once.
    fn resign(&self, leadership: Leadership);

    /// The cluster's record.
    ///
    /// # Errors
    /// When the store cannot be read, or what it holds is no record.
    fn load_topology(&self) -> Result<Option<StoredTopology>, StoreError> {
        self.load(TOPOLOGY)?.map(read_topology).transpose()
    }

    /// Writes the cluster's record, as [`Coordinator::replace`].
    ///
    /// # Errors
    /// As [`Coordinator::replace`].
    fn replace_topology(
        &self,
        leadership: &Leadership,
        expected: Version,
        topology: &Topology,
        events: &[NewEvent],
    ) -> Result<Version, StoreError> {
        let text = serde_json::to_string(topology).map_err(|error| StoreError::Broken(error.to_string()))?;
        self.replace(leadership, TOPOLOGY, expected, &text, events)
    }

    /// Waits for a newer record, as [`Coordinator::wait_newer`].
    ///
    /// # Errors
    /// As [`Coordinator::wait_newer`], or when what is there is no record.
    fn wait_newer_topology(&self, known: Version, limit: Duration) -> Result<Option<StoredTopology>, StoreError> {
        self.wait_newer(TOPOLOGY, known, limit)?.map(read_topology).transpose()
    }
}

/// The record of a document.
fn read_topology(document: Document) -> Result<StoredTopology, StoreError> {
    let topology: Topology = serde_json::from_str(&document.text)
        .map_err(|error| StoreError::Broken(format!("the store holds no record of a cluster: {error}")))?;
    topology.check().map_err(|what| StoreError::Broken(format!("the cluster's record is inconsistent: {what}")))?;
    Ok(StoredTopology { topology, version: document.version })
}

/// The right to write, held by one manager at a time. Dropping it stops its renewal; it is over then after its lease, or at
/// once by [`Coordinator::resign`].
pub struct Leadership {
    term: Term,
    /// What the store knows it by.
    token: u64,
    state: Arc<LeadershipState>,
    /// What stops the renewal when it goes.
    _renewal: Option<Box<dyn Send + Sync>>,
}

/// What the renewal of a leadership says to its holder.
struct LeadershipState {
    began: Instant,
    /// Milliseconds since `began`; `u64::MAX` for ever.
    deadline_ms: AtomicU64,
    lost: AtomicBool,
}

impl LeadershipState {
    fn new(began: Instant, deadline_ms: u64) -> Arc<LeadershipState> {
        Arc::new(LeadershipState { began, deadline_ms: AtomicU64::new(deadline_ms), lost: AtomicBool::new(false) })
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Leadership {
    /// The number of this leadership: greater than all before it.
    pub fn term(&self) -> Term {
        self.term
    }

    /// Whether it is surely still valid, by this machine's clock. Who answers for the cluster asks before each answer. It may be
    /// valid again later, in the same term, when the store was away for a while; see [`Leadership::is_lost`].
    pub fn is_valid(&self) -> bool {
        self.left_ms() > 0
    }

    /// How long it is surely still valid, in milliseconds; `u64::MAX` when nothing can end it from outside.
    pub fn left_ms(&self) -> u64 {
        // Relaxed: each value stands for itself, and an old deadline is an earlier one.
        let deadline = self.state.deadline_ms.load(Ordering::Relaxed);
        if self.is_lost() {
            0
        } else if deadline == u64::MAX {
            u64::MAX
        } else {
            deadline.saturating_sub(self.state.now_ms())
        }
    }

    /// Whether the store said that it is over; it never comes back then.
    pub fn is_lost(&self) -> bool {
        self.state.lost.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leadership").field("term", &self.term).field("left_ms", &self.left_ms()).finish()
    }
}
