//! Keeping the data: snapshots into files, loading at start, saving at the end.
//!
//! - [`claim`]: only one snapshot runs at a time; who wants one claims it, whatever it is for.
//! - [`save`]: SAVE, BGSAVE and save points.
//! - [`load`]: reading the file at start and for DEBUG RELOAD, while clients are told to wait.
//! - [`shutdown`]: what SHUTDOWN, SIGTERM and SIGINT do before the process ends.
//!
//! A snapshot's instant lies behind the closed gate, on the worker that runs the command, so that what a client wrote
//! before BGSAVE is in it and what it writes afterwards is not. All the rest happens on threads of its own.

pub mod claim;
pub mod load;
pub mod save;
pub mod shutdown;

use crate::shared::Shared;
use claim::Claims;
use load::{FileHistory, Loading};
use parking_lot::Mutex;
use persistence::disk::{Disk, RealDisk};
use persistence::rdb::Replication;
use shutdown::Shutdown;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// The answer to a write after a snapshot failed, as in Redis.
pub(crate) const SNAPSHOT_FAILED: commands::CmdError = commands::CmdError::new(
    "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. Commands that may modify the data set are disabled, because this instance is configured to report errors during writes if RDB snapshotting fails (stop-writes-on-bgsave-error option). Please check the Redis logs for details about the RDB error.",
);

/// Gives the source texts of all function libraries.
pub type DumpFunctions = Box<dyn Fn() -> Vec<Vec<u8>> + Send + Sync>;
/// Takes libraries of one file; true: one may replace another of its name. Gives why one is refused.
pub type FunctionLoader = Box<dyn FnMut(&[u8], bool) -> Result<(), String>>;
/// Makes a [`FunctionLoader`] on the thread that will use it.
pub type MakeFunctionLoader = Box<dyn Fn() -> FunctionLoader + Send + Sync>;
/// Tells where the replication history stands; called behind the closed gate at a snapshot's instant.
pub type AtInstant = Box<dyn Fn() -> Option<Replication> + Send + Sync>;

/// What the server knows of its files. Part of [`Shared`].
pub struct Durability {
    /// Who has the one snapshot.
    pub claims: Claims,
    /// Where files are.
    pub disk: Arc<dyn Disk>,
    /// A snapshot is to be written as soon as none runs.
    pub is_scheduled: AtomicBool,
    /// The last snapshot failed.
    pub has_failed: AtomicBool,
    /// Something about files keeps commands from the fast path: the last snapshot failed, or data is being loaded.
    pub restricts: AtomicBool,
    /// The append only file cannot be written.
    pub(crate) aof_restricts: AtomicBool,
    /// A replica has lost its primary and may not answer from old data.
    pub(crate) stale_restricts: AtomicBool,
    /// Unix seconds of the last attempt; 0: none.
    pub last_try_s: AtomicI64,
    /// How long the last one took; -1: there was none.
    pub last_took_s: AtomicI64,
    /// Snapshots begun.
    pub saves: AtomicU64,
    /// Bytes that writers handed over to the last one.
    pub last_handed_over: AtomicU64,
    /// Function libraries for snapshots.
    pub dump_functions: OnceLock<DumpFunctions>,
    /// The replication history for snapshots.
    pub at_instant: OnceLock<AtInstant>,
    /// Makes what takes the source texts of function libraries from a file.
    pub function_loader: OnceLock<MakeFunctionLoader>,
    /// Data being loaded.
    pub loading: Loading,
    /// What the file loaded at start told of replication.
    pub file_history: Mutex<Option<FileHistory>>,
    /// The end of the server.
    pub shutdown: Shutdown,
    /// Whether a signal has asked for the end; cleared when that is called off.
    pub(crate) signal_request: OnceLock<Arc<AtomicBool>>,
    /// The thread of the last background save, to be waited for at the end.
    pub(crate) saver: Mutex<Option<std::thread::JoinHandle<()>>>,
}

impl Default for Durability {
    fn default() -> Self {
        Durability {
            claims: Claims::default(),
            disk: Arc::new(RealDisk),
            is_scheduled: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
            restricts: AtomicBool::new(false),
            aof_restricts: AtomicBool::new(false),
            stale_restricts: AtomicBool::new(false),
            last_try_s: AtomicI64::new(0),
            last_took_s: AtomicI64::new(-1),
            saves: AtomicU64::new(0),
            last_handed_over: AtomicU64::new(0),
            dump_functions: OnceLock::new(),
            at_instant: OnceLock::new(),
            function_loader: OnceLock::new(),
            loading: Loading::default(),
            file_history: Mutex::new(None),
            shutdown: Shutdown::default(),
            signal_request: OnceLock::new(),
            saver: Mutex::new(None),
        }
    }
}

impl Shared {
    /// Changes since the last snapshot.
    pub fn unsaved_changes(&self) -> u64 {
        self.changes().saturating_sub(self.dirty_at_save.load(Ordering::Relaxed))
    }

    /// Changes since the start.
    pub fn changes(&self) -> u64 {
        self.sum(|stats| stats.dirty.get())
    }
}

impl Durability {
    /// Works out anew whether commands need a look at the state of the files.
    pub(crate) fn renew_restriction(&self) {
        let restricts = self.has_failed.load(Ordering::SeqCst)
            || self.aof_restricts.load(Ordering::SeqCst)
            || self.stale_restricts.load(Ordering::SeqCst)
            || self.loading.is_on()
            || self.shutdown.holds_writes.load(Ordering::SeqCst);
        self.restricts.store(restricts, Ordering::SeqCst);
    }
}
