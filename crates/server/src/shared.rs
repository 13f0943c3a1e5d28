//! What all workers share.

use crate::acl::Acl;
use crate::aof::Aof;
use crate::config::{Config, ConfigStore, SlotSpace};
use crate::durability::Durability;
use crate::key_stats::{KeyStats, LeastSizes};
use crate::latency::LatencyMonitor;
use crate::offload::Offload;
use crate::pubsub::PubSub;
use crate::secure::Secure;
use crate::slowlog::SlowLog;
use crate::stats::WorkerStats;
use crate::tracking::Tracking;
use crate::worker::Message;
use commands::table::CommandSpec;
use keyspace::Keyspace;
use net::Mailbox;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// Shared by all workers and helper threads of one server.
pub struct Shared {
    /// The keys.
    pub keyspace: Arc<Keyspace>,
    /// The configuration.
    pub config: ConfigStore,
    /// One mailbox a worker; set when all loops are built.
    pub mailboxes: OnceLock<Vec<Mailbox<Message>>>,
    /// One block of counters a worker, then one each thread for scripts.
    pub stats: Vec<Arc<WorkerStats>>,
    /// Scripts and functions: their texts, who runs one.
    pub scripts: crate::scripting::Scripts,
    /// Who listens to what.
    pub pubsub: PubSub,
    /// Commands that took long.
    pub slowlog: SlowLog,
    /// Events that took long.
    pub latency: LatencyMonitor,
    /// Threads for long commands.
    pub offload: Offload,
    /// Threads that wait for other servers (MIGRATE).
    pub movers: Offload,
    /// Connections to them.
    pub(crate) targets: crate::migrate::Targets,
    /// Error replies by code, for INFO errorstats.
    pub error_counts: Mutex<BTreeMap<String, u64>>,
    /// When the server started, monotonic.
    pub started: Instant,
    /// When the server started, Unix ms.
    pub started_ms: i64,
    /// 40 hex digits, new at each start.
    pub run_id: String,
    /// Both roles of replication.
    pub replication: crate::replication::Replication,
    /// Counters of the thread that applies a primary's commands.
    pub link_stats: Arc<WorkerStats>,
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
    /// Snapshots, files.
    pub durability: Durability,
    /// The append only file.
    pub aof: Aof,
    /// Changes up to the last save.
    pub dirty_at_save: AtomicU64,
    /// Unix seconds of the last save (the start, until there is one).
    pub last_save_s: AtomicI64,
    /// Instantaneous figures, renewed ten times a second.
    pub rates: Mutex<Rates>,
    /// Hot and big keys, as each worker has seen them.
    pub key_stats: Vec<Mutex<KeyStats>>,
    /// What is worth a look while a file is loaded.
    pub least_sizes: LeastSizes,
    /// Who is told of changed keys.
    pub tracking: Tracking,
    /// The users.
    pub acl: Acl,
    /// Encrypted connections.
    pub(crate) secure: Secure,
    /// The cluster that this server belongs to, if it does.
    pub(crate) cluster: crate::cluster::Cluster,
    /// Path of the config file, if any.
    pub config_file: String,
    /// Path of the executable.
    pub executable: String,
    /// Each worker has a descriptor table of its own.
    pub private_tables: AtomicBool,
    /// Name by which the server was started, for the process title.
    pub program: OnceLock<Vec<u8>>,
    /// What each worker found when it last went over its share of the slots.
    pub surveys: Vec<Mutex<Survey>>,
    /// The allocator's figures and when they were taken.
    pub(crate) allocator: Mutex<Option<(Instant, crate::memory_report::AllocatorFigures)>>,
    /// DEBUG-settable packed threshold of lists.
    pub quicklist_packed_threshold: AtomicUsize,
    /// Set when the server is to end.
    pub stopping: AtomicBool,
    /// Exit code for the end.
    pub exit_code: AtomicU32,
    worker_count: usize,
    renamed: HashMap<Vec<u8>, Option<&'static CommandSpec>>,
}

/// What a walk over slots found of each database.
#[derive(Clone, Default)]
pub struct Survey {
    /// By database number.
    pub databases: Vec<DatabaseSurvey>,
}

/// One database in a [`Survey`].
#[derive(Clone, Copy, Default)]
pub struct DatabaseSurvey {
    /// Keys.
    pub keys: u64,
    /// Keys with an expiry.
    pub expiring: u64,
    /// Bytes of the tables, without what they point to.
    pub table_bytes: u64,
    /// Milliseconds left to the keys that were sampled, summed.
    pub ttl_ms: u64,
    /// How many were sampled.
    pub ttl_samples: u64,
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
            mailbox.send(message);
        }
    }

    /// Number of workers.
    pub fn workers(&self) -> usize {
        self.worker_count
    }

    /// Sum of one counter over all workers.
    pub fn sum(&self, counter: impl Fn(&WorkerStats) -> u64) -> u64 {
        self.stats.iter().chain([&self.link_stats]).map(|stats| counter(stats)).sum()
    }

    /// Notes an error reply under its code (the first word).
    pub fn note_error(&self, text: &str) {
        let word = text.split(' ').next().unwrap_or("ERR");
        let code = word.char_indices().nth(64).map_or(word, |(end, _)| &word[..end]);
        let mut counts = self.error_counts.lock();
        if let Some(count) = counts.get_mut(code) {
            *count += 1;
        } else if counts.len() < 1024 {
            // A bound, as clients of scripts can make up codes.
            counts.insert(code.to_owned(), 1);
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

impl Shared {
    /// What a server with this configuration shares.
    pub fn new(config: Config, config_file: Option<&Path>, renamed: &[(Vec<u8>, Vec<u8>)]) -> Shared {
        let space = match config.slot_space {
            SlotSpace::Redis => keyspace::slot::SlotSpace::Redis,
            SlotSpace::Codis => keyspace::slot::SlotSpace::Codis,
        };
        let keyspace = Keyspace::new(space, u32::try_from(config.databases).unwrap_or(16));
        let workers = config.io_threads as usize;
        let now_ms = crate::process::now_ms();
        Shared {
            keyspace,
            mailboxes: OnceLock::new(),
            stats: (0..workers + crate::scripting::THREADS_MAX).map(|_| Arc::default()).collect(),
            scripts: crate::scripting::Scripts::default(),
            worker_count: workers,
            pubsub: PubSub::default(),
            slowlog: SlowLog::default(),
            latency: LatencyMonitor::default(),
            offload: Offload::named("offload"),
            movers: Offload::named("migrate"),
            targets: crate::migrate::Targets::default(),
            error_counts: Mutex::default(),
            started: Instant::now(),
            started_ms: now_ms,
            run_id: random_id(),
            replication: crate::replication::Replication::new(&config),
            link_stats: Arc::default(),
            client_ids: AtomicU64::new(0),
            clients: AtomicUsize::new(0),
            monitors: AtomicUsize::new(0),
            active_expire: AtomicBool::new(true),
            peak_memory: AtomicUsize::new(0),
            startup_memory: AtomicUsize::new(0),
            pause_until_ms: AtomicI64::new(0),
            pause_writes_only: AtomicBool::new(false),
            durability: Durability::default(),
            aof: Aof::default(),
            dirty_at_save: AtomicU64::new(0),
            last_save_s: AtomicI64::new(now_ms / 1000),
            rates: Mutex::default(),
            key_stats: (0..workers).map(|_| Mutex::default()).collect(),
            least_sizes: LeastSizes::default(),
            tracking: Tracking::default(),
            acl: Acl::new(&config.requirepass),
            secure: Secure::default(),
            cluster: crate::cluster::Cluster::default(),
            config_file: config_file.map(|path| path.display().to_string()).unwrap_or_default(),
            executable: std::env::current_exe().map(|path| path.display().to_string()).unwrap_or_default(),
            private_tables: AtomicBool::new(false),
            program: OnceLock::new(),
            surveys: (0..workers).map(|_| Mutex::default()).collect(),
            allocator: Mutex::default(),
            quicklist_packed_threshold: AtomicUsize::new(keyspace::list::ListLimits::default().packed_threshold),
            stopping: AtomicBool::new(false),
            exit_code: AtomicU32::new(0),
            renamed: renames(renamed),
            config: ConfigStore::new(config, config_file.map(Path::to_path_buf)),
        }
    }

    /// Whether any command has another name.
    #[inline]
    pub fn has_renames(&self) -> bool {
        !self.renamed.is_empty()
    }

    /// What `rename-command` says of a name in any case: `None` nothing, `Some(None)` it is gone, else the command it
    /// stands for.
    #[inline]
    pub fn renamed(&self, name: &[u8]) -> Option<Option<&'static CommandSpec>> {
        if self.renamed.is_empty() {
            return None;
        }
        self.renamed.get(&name.to_ascii_lowercase()).copied()
    }
}

/// New names with their commands, and old names with nothing.
fn renames(pairs: &[(Vec<u8>, Vec<u8>)]) -> HashMap<Vec<u8>, Option<&'static CommandSpec>> {
    let mut renamed = HashMap::new();
    for (old, new) in pairs {
        let spec = commands::table::lookup(old);
        renamed.insert(old.to_ascii_lowercase(), None);
        if !new.is_empty() {
            renamed.insert(new.to_ascii_lowercase(), spec);
        }
    }
    renamed
}

/// 40 random hex digits.
pub fn random_id() -> String {
    let mut bytes = [0_u8; 20];
    if getrandom::fill(&mut bytes).is_err() {
        fastrand::fill(&mut bytes);
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
