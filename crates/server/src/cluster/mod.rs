//! A server as a member of a cluster.
//!
//! ```text
//!  manager ──view──▶ [agent] ──▶ control thread ──▶ tenure of each slot (changed under the slot's lock)
//!                                    ▲  ▲                      │
//!  OXIDIS … COMMIT, FINISH ──────────┘  │                      ▼
//!  freeze of a move ────────────────────┘      commands: looked at under the lock ([admit])
//! ```
//!
//! A slot's [`keyspace::slot::Tenure`] says what a command on it meets: it runs, is sent elsewhere (MOVED), or waits while the slot is
//! held for a cut-over. It is changed by one thread, [`control`], which joins what is known: the newest view, what was
//! committed or finished since (the view may be late), the holds of moves, and what is being imported. As it changes under
//! the slot's lock, and commands look while they hold it, no command of the old owner runs after the change.
//!
//! - [`admit`]: the look at a command. [`commands`]: CLUSTER and its kin. [`oxidis`]: the command `OXIDIS`.
//! - [`control`]: who owns what. [`store`]: what is kept of it on disk. [`agent`]: lease and views.
//! - [`outgoing`]: a move's source: [`copy`] of the slots, [`filter`] of the journal, [`wire`] to the target.
//! - [`incoming`]: its target. [`discard`]: slots that went away are emptied.
//!
//! Not part of a cluster, all this is one relaxed load a batch of commands, and a byte on each slot's cache line that is 0.

pub(crate) mod admit;
pub(crate) mod agent;
pub(crate) mod commands;
pub(crate) mod control;
pub(crate) mod copy;
pub(crate) mod discard;
pub(crate) mod filter;
pub(crate) mod incoming;
pub(crate) mod outgoing;
pub(crate) mod oxidis;
pub(crate) mod stats;
pub(crate) mod store;
pub(crate) mod wire;

use crate::shared::Shared;
use crate::worker::Message;
use ::member::Membership;
use arc_swap::ArcSwapOption;
use control::Task;
use incoming::Incoming;
use keyspace::Slot;
use outgoing::Outgoing;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, OnceLock};
use topology::{GroupId, Newness, Role, SlotSet, SlotTable, View};

/// See the module. Part of [`Shared`].
#[derive(Default)]
pub struct Cluster {
    /// This server is a member: commands on keys are looked at.
    managed: AtomicBool,
    /// Only reads and writes with authority: see [`Authority`].
    authority: Authority,
    map: ArcSwapOption<Map>,
    /// The view by which slots are served; the map is set a moment before.
    in_force: Mutex<Newness>,
    /// Whose name this server goes by in the cluster.
    member: ArcSwapOption<String>,
    control: OnceLock<Mutex<Sender<Task>>>,
    waiting: Mutex<Waiting>,
    departed: Mutex<Vec<Departed>>,
    /// Slots that walks over the keyspace pass over.
    hidden: AtomicUsize,
    /// Moves of slots away from here, the latest last.
    outgoing: Mutex<Vec<Arc<Outgoing>>>,
    /// Moves of slots to here that go on.
    incoming: Mutex<Vec<Arc<Incoming>>>,
    /// Sampled commands by slot, kept while this server is a member.
    uses: OnceLock<Box<[AtomicU32]>>,
    uses_before: Mutex<Option<stats::Before>>,
    /// How long held commands waited, in microseconds, at most and in all; and how many they were.
    pub(crate) held: HeldFigures,
}

/// How long commands waited for slots that were held for a cut-over.
#[derive(Default)]
pub(crate) struct HeldFigures {
    /// Cut-overs.
    pub(crate) cutovers: AtomicU64,
    /// Microseconds of the longest.
    pub(crate) longest_us: AtomicU64,
    /// Microseconds of all.
    pub(crate) total_us: AtomicU64,
}

/// Until when this server may serve. See [`Authority::is_valid`].
#[derive(Default)]
struct Authority {
    /// It needs no lease: its group has no replica that could take its place.
    always: AtomicBool,
    /// Who holds the lease.
    lease: ArcSwapOption<Membership>,
}

impl Authority {
    /// Whether writes may be taken. A primary has the right while its lease is valid, or while its group has no replica
    /// that could have been put in its place. A majority of acknowledging replicas will be a third reason.
    fn is_valid(&self) -> bool {
        if self.always.load(Ordering::Relaxed) {
            return true;
        }
        let lease = self.lease.load();
        lease.as_ref().is_some_and(|lease| lease.now_ms() < lease.deadline_ms())
    }
}

/// The newest view, made ready to be looked up in.
pub(crate) struct Map {
    /// As it came.
    pub(crate) view: View,
    table: SlotTable,
    /// The group and role of this server; `None`: the view does not name it.
    pub(crate) home: Option<(GroupId, Role)>,
}

impl Map {
    fn new(view: View, member: &str) -> Map {
        let table = view.slot_table();
        let home = view.role_of(member);
        Map { view, table, home }
    }

    /// How new it is.
    pub(crate) fn newness(&self) -> Newness {
        self.view.newness()
    }

    /// The group that owns a slot.
    pub(crate) fn owner(&self, slot: Slot) -> Option<GroupId> {
        self.table.group(u16::try_from(slot.index()).unwrap_or(u16::MAX))
    }

    /// Whether the group of this server owns a slot.
    pub(crate) fn is_ours(&self, slot: Slot) -> bool {
        self.home.is_some_and(|(group, _)| self.owner(slot) == Some(group))
    }

    /// `host:port` of the primary that a slot is served by.
    pub(crate) fn address(&self, slot: Slot) -> Option<&str> {
        let group = self.view.group(self.owner(slot)?)?;
        group.primary().map(|server| server.address.as_str())
    }
}

/// Who waits for held slots.
#[derive(Default)]
struct Waiting {
    /// Connections, by worker and token.
    connections: Vec<(u16, u64)>,
    /// Long commands.
    jobs: Vec<crate::offload::Job>,
    scripts: Vec<crate::scripting::threads::Job>,
}

/// Slots that have gone to another server by a decision that the view may not show yet.
#[derive(Clone, Debug)]
pub(crate) struct Departed {
    pub(crate) slots: SlotSet,
    /// `host:port` of their new owner.
    pub(crate) target: String,
    pub(crate) newness: Newness,
}

impl Cluster {
    /// Whether this server is a member of a cluster.
    #[inline]
    pub(crate) fn is_managed(&self) -> bool {
        self.managed.load(Ordering::Relaxed)
    }

    /// Whether this server may take writes.
    pub(crate) fn has_authority(&self) -> bool {
        self.authority.is_valid()
    }

    /// Whether commands must be looked at one by one since the right to serve may be gone.
    #[inline]
    pub(crate) fn is_limited(&self) -> bool {
        self.is_managed() && !self.has_authority()
    }

    /// The newest view.
    pub(crate) fn map(&self) -> Option<Arc<Map>> {
        self.map.load_full()
    }

    /// How new the view is by which slots are served.
    pub(crate) fn in_force(&self) -> Newness {
        *self.in_force.lock()
    }

    /// The name of this server in the cluster.
    pub(crate) fn member(&self) -> Option<Arc<String>> {
        self.member.load_full()
    }

    /// Who holds the lease.
    pub(crate) fn lease(&self) -> Option<Arc<Membership>> {
        self.authority.lease.load_full()
    }

    /// Whether some slots are hidden, so that counts of all keys say too much.
    pub(crate) fn hides_slots(&self) -> bool {
        self.is_managed() && self.hidden.load(Ordering::Relaxed) > 0
    }

    /// The moves away from here.
    pub(crate) fn outgoing(&self) -> Vec<Arc<Outgoing>> {
        self.outgoing.lock().clone()
    }

    /// The move away from here of that number.
    pub(crate) fn outgoing_of(&self, id: u64) -> Option<Arc<Outgoing>> {
        self.outgoing.lock().iter().rev().find(|one| one.id == id).cloned()
    }

    /// The moves to here.
    pub(crate) fn incoming(&self) -> Vec<Arc<Incoming>> {
        self.incoming.lock().clone()
    }

    /// The move to here of that number.
    pub(crate) fn incoming_of(&self, id: u64) -> Option<Arc<Incoming>> {
        self.incoming.lock().iter().find(|one| one.id == id).cloned()
    }

    /// Has a connection looked at again when slots are no longer held. The slot that it waits for must be locked: then it
    /// cannot be let go before this is noted.
    pub(crate) fn wait(&self, worker: u16, token: u64) {
        self.waiting.lock().connections.push((worker, token));
    }

    /// Keeps a long command until slots are no longer held. As for [`Cluster::wait`].
    pub(crate) fn keep_job(&self, job: crate::offload::Job) {
        self.waiting.lock().jobs.push(job);
    }

    /// Keeps a script until slots are no longer held. As for [`Cluster::wait`].
    pub(crate) fn keep_script(&self, job: crate::scripting::threads::Job) {
        self.waiting.lock().scripts.push(job);
    }

    /// Notes a sampled use of a slot.
    pub(crate) fn note_use(&self, slot: Slot) {
        if let Some(count) = self.uses.get().and_then(|uses| uses.get(slot.index())) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Shared {
    /// Lets all go on that waited for held slots: they look again.
    pub(crate) fn wake_waiting(self: &Arc<Self>) {
        let waiting = std::mem::take(&mut *self.cluster.waiting.lock());
        for (worker, token) in waiting.connections {
            self.post(worker, Message::Wake(token));
        }
        for job in waiting.jobs {
            self.offload.submit(self, job);
        }
        for job in waiting.scripts {
            self.scripts.pool.submit(self, job);
        }
    }
}

/// The keyspace's slots of a set.
pub(crate) fn slots_of(set: &SlotSet) -> impl Iterator<Item = Slot> + '_ {
    set.iter().map(|slot| Slot::new(usize::from(slot)))
}
