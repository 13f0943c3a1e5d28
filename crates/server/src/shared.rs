//! What all workers share.

use crate::config::ConfigStore;
use crate::latency::LatencyMonitor;
use crate::offload::Offload;
use crate::pubsub::PubSub;
use crate::slowlog::SlowLog;
use crate::stats::WorkerStats;
use crate::worker::Message;
use keyspace::Keyspace;
use net::Mailbox;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

/// Shared by all workers and helper threads of one server.
pub struct Shared {
    /// The keys.
    pub keyspace: Arc<Keyspace>,
    /// The configuration.
    pub config: ConfigStore,
    /// One mailbox a worker; set when all loops are built.
    pub mailboxes: OnceLock<Vec<Mailbox<Message>>>,
    /// One block of counters a worker.
    pub stats: Vec<Arc<WorkerStats>>,
    /// Who listens to what.
    pub pubsub: PubSub,
    /// Commands that took long.
    pub slowlog: SlowLog,
    /// Events that took long.
    pub latency: LatencyMonitor,
    /// Threads for long commands.
    pub offload: Offload,
    /// Error replies by code, for INFO errorstats.
    pub error_counts: Mutex<BTreeMap<String, u64>>,
    /// When the server started, monotonic.
    pub started: Instant,
    /// When the server started, Unix ms.
    pub started_ms: i64,
    /// 40 hex digits, new at each start.
    pub run_id: String,
    /// 40 hex digits of the replication history.
    pub replication_id: String,
    /// Last client number given.
    pub client_ids: AtomicU64,
    /// Clients connected, over all workers.
    pub clients: AtomicUsize,
    /// MONITOR clients, over all workers: with any, no command takes the fast path.
    pub monitors: AtomicUsize,
    /// DEBUG SET-ACTIVE-EXPIRE.
    pub active_expire: AtomicBool,
    /// Highest `used_memory` seen.
    pub peak_memory: AtomicUsize,
    /// `used_memory` when the server was ready.
    pub startup_memory: AtomicUsize,
    /// CLIENT PAUSE: until when (Unix ms), and whether for writes only.
    pub pause_until_ms: AtomicI64,
    /// CLIENT PAUSE applies to writes only.
    pub pause_writes_only: AtomicBool,
    /// Changes since the last save.
    pub dirty_at_save: AtomicU64,
    /// Unix seconds of the last save (the start, until there is one).
    pub last_save_s: AtomicI64,
    /// Instantaneous figures, renewed ten times a second.
    pub rates: Mutex<Rates>,
    /// Clients refused for a protocol error or the like are counted here by reason.
    pub acl_denied_auth: AtomicU64,
    /// Path of the config file, if any.
    pub config_file: String,
    /// Path of the executable.
    pub executable: String,
    /// Texts of the listeners for INFO.
    pub listeners: Mutex<Vec<String>>,
    /// DEBUG-settable packed threshold of lists.
    pub quicklist_packed_threshold: AtomicUsize,
    /// Set when the server is to end.
    pub stopping: AtomicBool,
    /// Exit code for the end.
    pub exit_code: AtomicU32,
}

/// Figures per second, as INFO's `instantaneous_*`.
#[derive(Clone, Copy, Default)]
pub struct Rates {
    /// Commands.
    pub ops: f64,
    /// KiB read.
    pub in_kbps: f64,
    /// KiB written.
    pub out_kbps: f64,
    /// Event loop turns.
    pub turns: f64,
    /// Mean microseconds of a turn.
    pub turn_us: f64,
    pub(crate) last: Option<(Instant, u64, u64, u64, u64, u64)>,
}

impl Shared {
    /// Sends a message to a worker.
    pub fn post(&self, worker: u16, message: Message) {
        if let Some(mailbox) = self.mailboxes.get().and_then(|all| all.get(worker as usize)) {
            mailbox.push(message);
        }
    }

    /// Number of workers.
    pub fn workers(&self) -> usize {
        self.stats.len()
    }

    /// Sum of one counter over all workers.
    pub fn sum(&self, counter: impl Fn(&WorkerStats) -> u64) -> u64 {
        self.stats.iter().map(|stats| counter(stats)).sum()
    }

    /// Notes an error reply under its code (the first word).
    pub fn note_error(&self, text: &str) {
        let code: String = text.split(' ').next().unwrap_or("ERR").chars().take(64).collect();
        let mut counts = self.error_counts.lock();
        // A bound, as clients of scripts can make up codes.
        if counts.len() < 1024 || counts.contains_key(&code) {
            *counts.entry(code).or_default() += 1;
        }
    }

    /// Asks all workers to end.
    pub fn stop(&self, exit_code: u32) {
        self.exit_code.store(exit_code, Ordering::Relaxed);
        self.stopping.store(true, Ordering::SeqCst);
        for worker in 0..self.workers() {
            #[allow(clippy::cast_possible_truncation)]
            self.post(worker as u16, Message::Stop);
        }
    }
}
