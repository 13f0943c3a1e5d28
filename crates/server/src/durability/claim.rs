//! The claim on the one snapshot that can run.

use super::Durability;
use crate::config::Config;
use crate::settings;
use crate::shared::Shared;
use keyspace::LockSet;
use keyspace::eviction::{AccessClock, Policy};
use keyspace::snapshot::record::{AccessForm, RecordForm};
use keyspace::snapshot::{Options, Snapshot, SnapshotSink, Totals};
use parking_lot::Mutex;
use persistence::rdb::{Header, Replication};
use rdb::codec::RDB_VERSION;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Threads that walk for one snapshot at most: more than the disk takes.
const WALKERS_MAX: usize = 8;

/// What a snapshot is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Purpose {
    /// A file, by SAVE, BGSAVE or a save point.
    File,
    /// The base of a new append only file.
    AofRewrite,
    /// A replica's full synchronization.
    FullSync,
    /// No snapshot: data is being loaded, and no snapshot can begin.
    Loading,
}

/// The snapshot that runs, for INFO and for who wants to end it.
#[derive(Clone)]
pub struct Running {
    /// What it is for.
    pub purpose: Purpose,
    /// It.
    pub snapshot: Arc<Snapshot>,
    /// When it began.
    pub since: Instant,
    /// It was ended on purpose: that is no failure.
    pub is_unwanted: Arc<AtomicBool>,
}

/// Who has the claim, and the walkers' locks while nobody has.
#[derive(Default)]
pub struct Claims(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    purpose: Option<Purpose>,
    running: Option<Running>,
    walkers: Vec<LockSet>,
}

/// The right to take a snapshot; given back when dropped.
pub struct Claim {
    shared: Arc<Shared>,
    /// What it is for.
    pub purpose: Purpose,
    walkers: Vec<LockSet>,
}

impl Claims {
    /// What somebody has claimed the snapshot for.
    pub fn purpose(&self) -> Option<Purpose> {
        self.0.lock().purpose
    }

    /// The snapshot that runs.
    pub fn running(&self) -> Option<Running> {
        self.0.lock().running.clone()
    }

    /// Ends the snapshot that runs, if it is for this purpose, without its counting as a failure. True: there was one.
    pub fn give_up(&self, purpose: Purpose) -> bool {
        let running = self.running().filter(|running| running.purpose == purpose);
        if let Some(running) = &running {
            running.is_unwanted.store(true, Ordering::SeqCst);
            running.snapshot.abort();
        }
        running.is_some()
    }
}

impl Claim {
    /// Claims the snapshot. `None`: somebody else has it.
    pub fn new(shared: &Arc<Shared>, purpose: Purpose) -> Option<Claim> {
        let mut inner = shared.durability.claims.0.lock();
        if inner.purpose.is_some() {
            return None;
        }
        inner.purpose = Some(purpose);
        let mut walkers = std::mem::take(&mut inner.walkers);
        let wanted = shared.workers().clamp(1, WALKERS_MAX);
        while walkers.len() < wanted {
            walkers.push(LockSet::new(shared.keyspace.clone()));
        }
        Some(Claim { shared: shared.clone(), purpose, walkers })
    }

    /// Whether somebody has it.
    pub fn is_taken(shared: &Shared) -> bool {
        shared.durability.claims.purpose().is_some()
    }

    /// Claims it as soon as it is free; not for workers.
    pub fn wait(shared: &Arc<Shared>, purpose: Purpose) -> Claim {
        loop {
            if let Some(claim) = Claim::new(shared, purpose) {
                return claim;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Locks for threads that work on the keys.
    pub fn walkers(&mut self) -> &mut [LockSet] {
        &mut self.walkers
    }

    /// Fixes the instant. To be called with the gate closed by `locks`; the snapshot is to be run soon.
    pub fn begin(self, locks: &LockSet, config: &Config) -> Begun {
        let durability = &self.shared.durability;
        let options = Options {
            form: record_form(config),
            slots: None,
            key_delay_us: config.rdb_key_save_delay,
            prepare_thread: Some(walker_gives_way),
        };
        // Nobody else begins one: we have the claim.
        let snapshot = self.shared.keyspace.snapshots.begin(locks, options).ok();
        let since = Instant::now();
        let is_unwanted = Arc::new(AtomicBool::new(false));
        let running = snapshot.clone().map(|snapshot| Running {
            purpose: self.purpose,
            snapshot,
            since,
            is_unwanted: is_unwanted.clone(),
        });
        durability.claims.0.lock().running = running;
        Begun {
            snapshot,
            since,
            is_unwanted,
            changes: self.shared.changes(),
            header: header(durability, config, self.purpose),
            claim: self,
        }
    }

    /// As [`Claim::begin`], from a thread that is no worker: waits for the gate.
    pub fn begin_here(mut self, config: &Config) -> Begun {
        let Some(mut locks) = self.walkers.pop() else { return self.nothing(config) };
        let mut begun = locks.alone(|locks| self.begin(locks, config));
        begun.claim.walkers.push(locks);
        begun
    }

    /// As [`Claim::begin_here`]; `first` is done at the instant, before the file's header is made.
    pub fn begin_here_after<R>(mut self, config: &Config, first: impl FnOnce(&mut LockSet) -> R) -> Option<(Begun, R)> {
        let mut locks = self.walkers.pop()?;
        let (mut begun, result) = locks.alone(|locks| {
            let result = first(locks);
            (self.begin(locks, config), result)
        });
        begun.claim.walkers.push(locks);
        Some((begun, result))
    }

    /// Without a walker there is no snapshot; a claim always has one.
    fn nothing(self, config: &Config) -> Begun {
        Begun {
            snapshot: None,
            since: Instant::now(),
            is_unwanted: Arc::default(),
            changes: self.shared.changes(),
            header: header(&self.shared.durability, config, self.purpose),
            claim: self,
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut inner = self.shared.durability.claims.0.lock();
        inner.walkers = std::mem::take(&mut self.walkers);
        inner.purpose = None;
        inner.running = None;
    }
}

/// A snapshot whose instant has passed and that is to be run.
pub struct Begun {
    snapshot: Option<Arc<Snapshot>>,
    claim: Claim,
    /// When it began.
    pub since: Instant,
    /// It was ended on purpose.
    pub is_unwanted: Arc<AtomicBool>,
    /// Changes of the data up to the instant.
    pub changes: u64,
    /// What the file begins with.
    pub header: Header,
}

impl Begun {
    /// Runs it to its end.
    ///
    /// # Errors
    /// The sink's, or that it was aborted.
    pub fn run(&mut self, sink: &mut dyn SnapshotSink) -> io::Result<Totals> {
        match self.snapshot.take() {
            Some(snapshot) => snapshot.run(&mut self.claim.walkers, sink),
            None => Err(io::Error::other("the snapshot was run already")),
        }
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        // One that was begun must be run, if only to let the next begin.
        if let Some(snapshot) = self.snapshot.take() {
            snapshot.abort();
            let _ = snapshot.run(&mut self.claim.walkers, &mut Vec::new());
        }
    }
}

/// How much nicer than the workers the threads of long work are: short requests keep most of the processors.
const NICENESS: i32 = 6;
/// The same for the threads that walk for a snapshot, of which there are as many as workers. Even so it is done in less
/// time than Redis takes.
const WALKER_NICENESS: i32 = 10;

/// Lowers the calling thread's priority. Without the right to, it stays what it is.
pub(crate) fn give_way() {
    lower_priority(NICENESS);
}

fn walker_gives_way() {
    lower_priority(WALKER_NICENESS);
}

fn lower_priority(by: i32) {
    // On Linux the process number 0 is the calling thread.
    if let Ok(niceness) = rustix::process::getpriority_process(None) {
        let _ = rustix::process::setpriority_process(None, (niceness + by).min(19));
    }
}

fn version(config: &Config) -> u16 {
    u16::try_from(config.rdb_version).unwrap_or(RDB_VERSION)
}

/// How records are written by this configuration.
pub(crate) fn record_form(config: &Config) -> RecordForm {
    let policy = settings::policy(config.maxmemory_policy);
    #[allow(clippy::cast_sign_loss)]
    let (factor, decay) = (config.lfu_log_factor as u32, config.lfu_decay_time as u32);
    let clock = AccessClock::at(crate::process::now_ms(), policy.is_lfu(), factor, decay);
    let access = match policy {
        Policy::AllKeysLru | Policy::VolatileLru => AccessForm::Idle(clock),
        Policy::AllKeysLfu | Policy::VolatileLfu => AccessForm::Frequency(clock),
        _ => AccessForm::None,
    };
    RecordForm { version: version(config), compress: config.rdbcompression, access }
}

fn header(durability: &Durability, config: &Config, purpose: Purpose) -> Header {
    let replication: Option<Replication> = durability.at_instant.get().and_then(|tell| tell());
    Header {
        version: version(config),
        redis_version: crate::process::REDIS_VERSION.to_owned(),
        created_s: crate::process::now_ms() / 1000,
        used_memory: keyspace::memory::used_bytes() as u64,
        replication: if purpose == Purpose::AofRewrite { None } else { replication },
        is_aof_base: purpose == Purpose::AofRewrite,
        functions: durability.dump_functions.get().map(|dump| dump()).unwrap_or_default(),
        checksum: config.rdbchecksum,
    }
}
