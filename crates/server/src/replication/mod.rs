//! Replication of a running server, both roles.
//!
//! ```text
//!  primary:  commands ─▶ journal ─▶ [Replica::feed] on the worker that has the connection ─▶ socket
//!                          │ PSYNC: from a place that is kept, or a snapshot first ([full_sync], a thread)
//!  replica:  socket ─▶ [link] (one thread): handshake, snapshot, then commands one by one ─▶ keys
//!                          └─ the very bytes ─▶ journal ─▶ its own replicas, its AOF
//! ```
//!
//! A replica's journal is its primary's stream, byte for byte: offsets are the same, so its replicas may turn to the
//! primary and back, and a promoted replica goes on where it is. Roles change behind the closed gate.
//!
//! - [`primary`]: REPLCONF, PSYNC, feeding replicas, acknowledgements. [`full_sync`]: snapshots to replicas.
//! - [`link`]: following a primary; [`apply`]: running its commands; [`receive`]: taking its snapshot.
//! - [`role`]: REPLICAOF, ROLE, promotion. [`wait`]: WAIT. [`failover`]: FAILOVER. [`report`]: INFO.
//! - [`tend`]: what is due from time to time.

pub mod apply;
pub mod failover;
pub mod full_sync;
pub mod link;
pub mod primary;
pub mod receive;
pub mod report;
pub mod role;
pub mod tend;
pub mod wait;

use crate::config::Config;
use crate::session::Session;
use crate::shared::{Shared, random_id};
use ::replication::Severity;
use ::replication::history::{History, Kept};
use failover::Failover;
use net::ConnId;
use parking_lot::Mutex;
use persistence::rdb::Replication as FileHistory;
pub(crate) use primary::Replica;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// The server that is followed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// Host name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

/// How far the link to the primary is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Phase {
    /// There is none to be.
    None,
    /// To be connected.
    Connect,
    /// Being connected.
    Connecting,
    /// Introducing itself.
    Handshake,
    /// Taking the primary's snapshot.
    Transfer,
    /// Following.
    Connected,
}

impl Phase {
    fn of(number: u8) -> Phase {
        match number {
            1 => Phase::Connect,
            2 => Phase::Connecting,
            3 => Phase::Handshake,
            4 => Phase::Transfer,
            5 => Phase::Connected,
            _ => Phase::None,
        }
    }
}

/// Which history this server has and whom it follows; changes behind the closed gate.
pub struct State {
    /// The names of the history.
    pub history: History,
    /// The primary; `None`: this is one.
    pub target: Option<Target>,
    /// The journal's end is a place in a history that a primary may go on from.
    pub is_resumable: bool,
    /// A planned failover.
    pub failover: Failover,
}

/// What INFO tells of the link.
pub(crate) struct Link {
    phase: AtomicU8,
    /// Unix seconds of the last bytes from the primary; 0: none on this connection.
    pub(crate) last_io_s: AtomicI64,
    /// Since when the link is down, Unix seconds; 0: it never was up.
    pub(crate) down_since_s: AtomicI64,
    /// Bytes of the snapshot that is being taken; 0: not known.
    pub(crate) total_bytes: AtomicU64,
    pub(crate) read_bytes: AtomicU64,
    /// Offset of what has been read of the stream.
    pub(crate) read_offset: AtomicU64,
    /// Database that the stream has selected.
    pub(crate) stream_db: AtomicU32,
    /// The connection of the link, for whoever ends it.
    pub(crate) socket: Mutex<Option<std::net::TcpStream>>,
    /// It as a client, for the list of clients: with our own address, and its descriptor.
    pub(crate) client: Mutex<Option<(Session, Option<SocketAddr>, i32)>>,
    /// Held by the one thread that follows.
    pub(crate) turn: Mutex<()>,
}

/// See the module. Part of [`Shared`].
pub struct Replication {
    state: Mutex<State>,
    /// The clients that follow us, in order of arrival.
    replicas: Mutex<Vec<Arc<Replica>>>,
    /// Changes with every change of the role: a link of another generation stops.
    generation: AtomicU64,
    is_replica: AtomicBool,
    /// Writes need a look before they run.
    keeps_writes: AtomicBool,
    /// Writes wait: a planned failover or a shutdown is under way.
    holds_writes: AtomicBool,
    pub(crate) link: Link,
    /// Replicas heard from within `min-replicas-max-lag`.
    pub(crate) good: AtomicUsize,
    /// Clients that wait for acknowledgements, by worker.
    waiters: Mutex<Vec<(u16, ConnId)>>,
    /// A full synchronization runs.
    is_syncing: AtomicBool,
    pub(crate) figures: Figures,
    /// When each thing was last done.
    pub(crate) tended: Mutex<tend::Times>,
}

/// Counts for INFO.
#[derive(Default)]
pub(crate) struct Figures {
    pub(crate) full: AtomicU64,
    pub(crate) partial_ok: AtomicU64,
    pub(crate) partial_err: AtomicU64,
    pub(crate) input_bytes: AtomicU64,
    pub(crate) output_bytes: AtomicU64,
}

impl Replication {
    /// What a server with this configuration begins with.
    pub fn new(config: &Config) -> Replication {
        let target = config
            .replicaof
            .as_ref()
            .map(|primary| Target { host: String::from_utf8_lossy(&primary.host).into_owned(), port: primary.port });
        let is_replica = target.is_some();
        let phase = if is_replica { Phase::Connect } else { Phase::None };
        Replication {
            state: Mutex::new(State {
                history: History::new(random_id()),
                target,
                is_resumable: false,
                failover: Failover::default(),
            }),
            replicas: Mutex::default(),
            generation: AtomicU64::new(1),
            is_replica: AtomicBool::new(is_replica),
            keeps_writes: AtomicBool::new(is_replica || config.min_replicas_to_write > 0),
            holds_writes: AtomicBool::new(false),
            link: Link {
                phase: AtomicU8::new(phase as u8),
                last_io_s: AtomicI64::new(0),
                down_since_s: AtomicI64::new(0),
                total_bytes: AtomicU64::new(0),
                read_bytes: AtomicU64::new(0),
                read_offset: AtomicU64::new(0),
                stream_db: AtomicU32::new(0),
                socket: Mutex::default(),
                client: Mutex::default(),
                turn: Mutex::default(),
            },
            good: AtomicUsize::new(0),
            waiters: Mutex::default(),
            is_syncing: AtomicBool::new(false),
            figures: Figures::default(),
            tended: Mutex::default(),
        }
    }

    /// Whether this server follows another one.
    #[inline]
    pub fn is_replica(&self) -> bool {
        self.is_replica.load(Ordering::Relaxed)
    }

    /// Whether writes need a look before they run.
    #[inline]
    pub(crate) fn keeps_writes(&self) -> bool {
        self.keeps_writes.load(Ordering::Relaxed)
    }

    /// Whether writes are to wait.
    #[inline]
    pub(crate) fn holds_writes(&self) -> bool {
        self.holds_writes.load(Ordering::Relaxed)
    }

    /// Has writes wait or go on.
    pub(crate) fn hold_writes(&self, holds: bool) {
        self.holds_writes.store(holds, Ordering::SeqCst);
        if holds {
            self.keeps_writes.store(true, Ordering::SeqCst);
        }
    }

    /// How far the link is.
    pub(crate) fn phase(&self) -> Phase {
        Phase::of(self.link.phase.load(Ordering::SeqCst))
    }

    pub(crate) fn set_phase(&self, phase: Phase) {
        self.link.phase.store(phase as u8, Ordering::SeqCst);
    }

    /// Ends the connection of the link; it is made anew.
    pub(crate) fn cut_link(&self) {
        if let Some(socket) = &*self.link.socket.lock() {
            // Gone already is as good.
            let _ = socket.shutdown(std::net::Shutdown::Both);
        }
    }

    /// The number of the present role.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::SeqCst)
    }

    /// The names of the history.
    pub(crate) fn history(&self) -> History {
        self.state.lock().history.clone()
    }

    /// The primary, if this is a replica.
    pub(crate) fn target(&self) -> Option<Target> {
        self.state.lock().target.clone()
    }

    /// The replicas, in order of arrival.
    pub(crate) fn replicas(&self) -> Vec<Arc<Replica>> {
        self.replicas.lock().clone()
    }

    /// DEBUG CHANGE-REPL-ID.
    pub(crate) fn change_id(&self) {
        let mut state = self.state.lock();
        state.history = History::new(random_id());
    }
}

/// What of the journal can be sent, in PSYNC's numbers. `None`: nothing is kept.
pub(crate) fn kept(shared: &Shared) -> Option<Kept> {
    let journal = &shared.keyspace.journal;
    journal.backlog()?;
    let number = |offset: u64| i64::try_from(offset).unwrap_or(i64::MAX).saturating_add(1);
    Some(Kept { first: number(journal.start()), next: number(journal.end()) })
}

/// What snapshots tell of the history; called at their instant.
pub(crate) fn file_history(shared: &Shared) -> Option<FileHistory> {
    shared.keyspace.journal.backlog()?;
    let replication = &shared.replication;
    let is_replica = replication.is_replica();
    let state = replication.state.lock();
    if is_replica && !state.is_resumable {
        return None;
    }
    let stream_db = if is_replica { replication.link.stream_db.load(Ordering::SeqCst) } else { 0 };
    Some(FileHistory { stream_db, id: state.history.id.clone(), offset: shared.keyspace.journal.end() })
}

/// Writes lines that the protocol part left.
pub(crate) fn write_log(lines: Vec<(Severity, String)>) {
    for (severity, line) in lines {
        match severity {
            Severity::Notice => crate::log!(crate::process::log::Level::Notice, "{line}"),
            Severity::Warning => crate::log!(crate::process::log::Level::Warning, "{line}"),
        }
    }
}
