//! Rewriting the log: a new base, and a new increment from the same instant on. Also how a log begins at run time.
//!
//! ```text
//!  force the old increment to disk · gate closed: the snapshot's instant; the reader of the journal stops there
//!  write the rest of the old increment, force it to disk · begin a new increment · let the reader go on
//!  run the snapshot into a temporary file, force it to disk · put it in force in the manifest · remove old files
//! ```

use super::State;
use crate::config::Config;
use crate::durability::claim::{Begun, Claim, Purpose};
use crate::log;
use crate::process::error_text;
use crate::process::log::Level;
use crate::shared::Shared;
use commands::CmdError;
use keyspace::LockSet;
use keyspace::journal::{Reader, Stopper};
use parking_lot::Mutex;
use persistence::aof::manifest::manifest_name;
use persistence::aof::{Log, Manifest};
use persistence::disk::Disk;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Failures in a row after which rewriting by itself pauses, as in Redis.
const FAILURES_MAX: u64 = 3;
/// Longest such pause.
const PAUSE_MAX_MINUTES: u64 = 60;

/// What is known of rewrites.
#[derive(Default)]
pub(crate) struct Rewrites {
    is_scheduled: AtomicBool,
    has_failed: AtomicBool,
    pub(crate) count: AtomicU64,
    pub(crate) failures: AtomicU64,
    /// Seconds the last one took, plus one; 0: there was none.
    last_took: AtomicI64,
    pub(crate) copied_bytes: AtomicU64,
    running_since: Mutex<Option<Instant>>,
    /// When the last one ended.
    ended: Mutex<Option<Instant>>,
    pause: Mutex<Pause>,
    pub(super) locks: Mutex<Option<LockSet>>,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

#[derive(Default)]
struct Pause {
    minutes: u64,
    until: Option<Instant>,
}

impl Rewrites {
    /// Has one begin as soon as it can.
    pub(crate) fn schedule(&self) {
        self.is_scheduled.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_scheduled(&self) -> bool {
        self.is_scheduled.load(Ordering::Relaxed)
    }

    pub(crate) fn status(&self) -> &'static str {
        if self.has_failed.load(Ordering::Relaxed) { "err" } else { "ok" }
    }

    pub(crate) fn last_took_s(&self) -> i64 {
        self.last_took.load(Ordering::Relaxed) - 1
    }

    pub(crate) fn running_s(&self) -> i64 {
        let running = *self.running_since.lock();
        running.map_or(-1, |since| i64::try_from(since.elapsed().as_secs()).unwrap_or(0))
    }

    pub(crate) fn is_running(&self) -> bool {
        self.running_since.lock().is_some()
    }

    /// Whether rewriting by itself is to pause after failures.
    fn is_limited(&self) -> bool {
        let mut pause = self.pause.lock();
        if self.failures.load(Ordering::Relaxed) < FAILURES_MAX {
            *pause = Pause::default();
            return false;
        }
        if let Some(until) = pause.until {
            let waits = Instant::now() < until;
            if !waits {
                pause.until = None;
            }
            return waits;
        }
        pause.minutes = (pause.minutes * 2).clamp(1, PAUSE_MAX_MINUTES);
        pause.until = Some(Instant::now() + Duration::from_secs(pause.minutes * 60));
        log!(
            Level::Warning,
            "Background AOF rewrite has repeatedly failed and triggered the limit, will retry in {} minutes",
            pause.minutes
        );
        true
    }
}

/// Where the log's files are.
pub(crate) fn directory_of(config: &Config) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(&config.appenddirname))
}

/// The log's name.
pub(crate) fn name_of(config: &Config) -> String {
    String::from_utf8_lossy(&config.appendfilename).into_owned()
}

/// How BGREWRITEAOF went.
pub(crate) enum Asked {
    Started,
    Scheduled,
}

impl Shared {
    /// BGREWRITEAOF.
    ///
    /// # Errors
    /// The command's error.
    pub(crate) fn ask_rewrite(self: &Arc<Self>, in_exec: bool) -> Result<Asked, CmdError> {
        match self.durability.claims.purpose() {
            Some(Purpose::AofRewrite) => {
                return Err(CmdError::new("ERR Background append only file rewriting already in progress"));
            }
            None if !in_exec && self.start_rewrite() => return Ok(Asked::Started),
            _ => {}
        }
        self.aof.rewrite.schedule();
        Ok(Asked::Scheduled)
    }

    /// Begins a rewrite. False: another snapshot runs, or there is no thread.
    pub(crate) fn start_rewrite(self: &Arc<Self>) -> bool {
        let Some(claim) = Claim::new(self, Purpose::AofRewrite) else { return false };
        let rewrite = &self.aof.rewrite;
        rewrite.is_scheduled.store(false, Ordering::SeqCst);
        rewrite.count.fetch_add(1, Ordering::Relaxed);
        *rewrite.running_since.lock() = Some(Instant::now());
        log!(Level::Notice, "Background append only file rewriting started by pid {}", std::process::id());
        let shared = self.clone();
        let spawned = std::thread::Builder::new().name("aof-rewrite".into()).spawn(move || run(&shared, claim));
        match spawned {
            Ok(thread) => {
                *rewrite.thread.lock() = Some(thread);
                true
            }
            Err(error) => {
                log!(Level::Warning, "Can't rewrite append only file in background: fork: {}", error_text(&error));
                *rewrite.running_since.lock() = None;
                false
            }
        }
    }

    /// Begins a rewrite if one was asked for or the log has grown enough; about ten times a second, on one worker.
    pub(crate) fn rewrite_if_due(self: &Arc<Self>, config: &Config) {
        let aof = &self.aof;
        if self.durability.claims.purpose().is_some() || self.stopping.load(Ordering::Relaxed) {
            return;
        }
        let is_broken = aof.sync_errno.load(Ordering::Relaxed) != 0 && aof.is_fed();
        if is_broken || aof.rewrite.is_scheduled() || aof.state() == State::Waiting {
            // One that fails is tried again after a second.
            let may_try = aof.rewrite.failures.load(Ordering::Relaxed) == 0
                || aof.rewrite.ended.lock().is_none_or(|at| at.elapsed() >= Duration::from_secs(1));
            if may_try {
                self.start_rewrite();
            }
            return;
        }
        let Ok(percentage) = u64::try_from(config.auto_aof_rewrite_percentage) else { return };
        let bytes = aof.figures.bytes.load(Ordering::Relaxed);
        let base = aof.figures.base_bytes.load(Ordering::Relaxed).max(1);
        let min_bytes = u64::try_from(config.auto_aof_rewrite_min_size).unwrap_or(0);
        if aof.state() != State::On || percentage == 0 || bytes <= min_bytes {
            return;
        }
        let growth = (bytes * 100 / base).saturating_sub(100);
        if growth >= percentage && !aof.rewrite.is_limited() {
            log!(Level::Notice, "Starting automatic rewriting of AOF on {growth}% growth");
            self.start_rewrite();
        }
    }

    /// `appendonly yes` at run time: the journal is recorded from here on; the log counts when its first base is written.
    ///
    /// # Errors
    /// What CONFIG SET answers.
    pub(crate) fn switch_aof_on(self: &Arc<Self>) -> Result<(), String> {
        if self.aof.is_fed() {
            return Ok(());
        }
        self.start_aof_threads().map_err(|error| error_text(&error))?;
        self.aof.set_state(State::Waiting);
        self.aof.sync_errno.store(0, Ordering::SeqCst);
        self.aof.write_errno.store(0, Ordering::SeqCst);
        if !self.start_rewrite() {
            log!(
                Level::Notice,
                "AOF was enabled but there is already another background operation. An AOF background was scheduled to start when possible."
            );
            self.aof.rewrite.schedule();
        }
        Ok(())
    }

    /// `appendonly no` at run time.
    pub(crate) fn switch_aof_off(self: &Arc<Self>) {
        if !self.aof.is_fed() {
            return;
        }
        self.durability.claims.give_up(Purpose::AofRewrite);
        let mut writer = self.aof.writer.lock();
        self.write_pending(&mut writer);
        if writer.log.is_some() && !writer.sync_here(&self.aof) {
            log!(Level::Warning, "Fail to fsync the AOF file");
        }
        writer.stop();
        self.aof.set_state(State::Off);
        drop(writer);
        self.aof.write_errno.store(0, Ordering::SeqCst);
        self.aof.sync_errno.store(0, Ordering::SeqCst);
        self.aof.rewrite.is_scheduled.store(false, Ordering::SeqCst);
        self.heed_aof();
        self.aof.waiting.store(u64::MAX, Ordering::SeqCst);
        self.aof.tell_workers(self);
    }

    /// Ends a rewrite that runs and waits for its thread, for the end of the process.
    pub(crate) fn end_rewrite(&self) {
        if self.durability.claims.give_up(Purpose::AofRewrite) {
            log!(Level::Warning, "There is a child rewriting the AOF. Killing it!");
        }
        if let Some(thread) = self.aof.rewrite.thread.lock().take() {
            // It has told of its own failure.
            let _ = thread.join();
        }
    }
}

/// A rewrite whose instant has passed.
struct Started {
    begun: Begun,
    stopper: Option<Stopper>,
    /// Of a log that begins with this rewrite.
    reader: Option<Reader>,
    /// The journal's offset at the instant.
    at: u64,
}

fn run(shared: &Arc<Shared>, claim: Claim) {
    let config = shared.config.snapshot();
    let started = Instant::now();
    let mut is_unwanted = Arc::default();
    let result = rewrite(shared, claim, &config, &mut is_unwanted);
    let rewrite = &shared.aof.rewrite;
    rewrite.last_took.store(i64::try_from(started.elapsed().as_secs()).unwrap_or(0) + 1, Ordering::Relaxed);
    *rewrite.running_since.lock() = None;
    *rewrite.ended.lock() = Some(Instant::now());
    match result {
        Ok(()) => {
            rewrite.has_failed.store(false, Ordering::Relaxed);
            rewrite.failures.store(0, Ordering::Relaxed);
            log!(Level::Notice, "Background AOF rewrite finished successfully");
        }
        Err(_) if is_unwanted.load(Ordering::SeqCst) => {
            log!(Level::Warning, "Background AOF rewrite terminated by signal {}", libc::SIGUSR1);
        }
        Err(error) => {
            log!(Level::Warning, "Background AOF rewrite terminated with error: {}", error_text(&error));
            rewrite.has_failed.store(true, Ordering::Relaxed);
            rewrite.failures.fetch_add(1, Ordering::Relaxed);
        }
    }
    shared.aof.ring(true, true);
}

fn rewrite(shared: &Arc<Shared>, claim: Claim, config: &Config, is_unwanted: &mut Arc<AtomicBool>) -> io::Result<()> {
    let aof = &shared.aof;
    let disk = shared.durability.disk.clone();
    let directory = directory_of(config);
    disk.create_directory(&directory).inspect_err(|error| {
        log!(Level::Warning, "Can't open or create append-only dir {}: {}", directory.display(), error_text(error));
    })?;
    // Most of what is to be forced to disk at the instant is forced before it.
    let handle = aof.writer.lock().log.as_ref().and_then(|log| log.sync_handle().ok());
    if aof.sync_errno.load(Ordering::SeqCst) == 0
        && let Some(mut handle) = handle
    {
        // Its error comes back with the next sync of this file.
        let _ = handle.sync();
    }
    let mut started = begin(shared, claim, config);
    is_unwanted.clone_from(&started.begun.is_unwanted);
    let first = divide(shared, &mut started, config, &*disk)?;
    let temporary = format!("temp-rewriteaof-bg-{}.aof", std::process::id());
    let path = directory.join(&temporary);
    let unfinished = directory.join(format!("temp-rewriteaof-{}.aof", std::process::id()));
    let is_rdb = config.aof_use_rdb_preamble;
    let in_pieces = config.aof_rewrite_incremental_fsync;
    let header = std::mem::take(&mut started.begun.header);
    let begun = &mut started.begun;
    let totals = if is_rdb {
        persistence::rdb::save(&*disk, &path, &unfinished, &header, in_pieces, |sink| begun.run(sink))
            .map_err(|failure| failure.error)?
    } else {
        persistence::aof::base::save(&*disk, &path, &header, in_pieces, |sink| begun.run(sink))?
    };
    aof.rewrite.copied_bytes.store(totals.handed_over_bytes, Ordering::Relaxed);
    log!(Level::Notice, "Background AOF rewrite terminated with success");
    let bytes = disk.open(&path)?.1;
    let mut writer = aof.writer.lock();
    let Some(log) = writer.log.as_mut() else { return Err(io::ErrorKind::Interrupted.into()) };
    let keeps_history = config.aof_disable_auto_gc;
    let old: Vec<String> =
        log.manifest().base.iter().chain(&log.manifest().increments).map(|part| part.name.clone()).collect();
    let name = log.replace_base(&temporary, is_rdb, bytes, first, keeps_history).inspect_err(|_| {
        let _ = disk.remove(&path);
    })?;
    log!(Level::Notice, "Successfully renamed the temporary AOF base file {temporary} into {name}");
    let in_force: Vec<&str> = log.manifest().increments.iter().map(|part| part.name.as_str()).collect();
    for name in old.iter().filter(|name| !keeps_history && !in_force.contains(&name.as_str())) {
        log!(Level::Notice, "Removing the history file {name} in the background");
    }
    aof.figures.bytes.store(log.bytes(), Ordering::Relaxed);
    aof.figures.base_bytes.store(log.base_bytes(), Ordering::Relaxed);
    drop(writer);
    // All up to the instant is in the base, which is on disk.
    aof.durable.fetch_max(started.at, Ordering::SeqCst);
    aof.sync_errno.store(0, Ordering::SeqCst);
    if aof.state() == State::Waiting {
        aof.set_state(State::On);
    }
    shared.heed_aof();
    Ok(())
}

/// Fixes the instant.
fn begin(shared: &Arc<Shared>, claim: Claim, config: &Config) -> Started {
    let aof = &shared.aof;
    let mut kept = aof.rewrite.locks.lock();
    let locks = kept.get_or_insert_with(|| LockSet::new(shared.keyspace.clone()));
    let stopper = aof.writer.lock().reader.as_ref().map(Reader::stopper);
    locks.alone(|locks| {
        let reader = stopper.is_none().then(|| shared.keyspace.journal.read_from_here(locks, u64::MAX));
        let at = stopper.as_ref().map_or_else(|| shared.keyspace.journal.end(), Stopper::stop_here);
        Started { begun: claim.begin(locks, config), stopper, reader, at }
    })
}

/// Ends the old increment at the instant and begins a new one. Gives the number of the new one.
fn divide(shared: &Arc<Shared>, started: &mut Started, config: &Config, disk: &dyn Disk) -> io::Result<u64> {
    let aof = &shared.aof;
    let mut writer = aof.writer.lock();
    if let Some(reader) = started.reader.take() {
        // The log begins: its files come into force with the base.
        let directory = directory_of(config);
        let name = name_of(config);
        let manifest = Manifest::load(disk, &directory.join(manifest_name(&name)))?.unwrap_or_default();
        let log = Log::begin_detached(shared.durability.disk.clone(), &directory, &name, manifest)?;
        log!(Level::Notice, "Creating AOF incr file {} on background rewrite", log.current_name());
        writer.start(log, reader);
        aof.written.store(started.at, Ordering::SeqCst);
        aof.durable.store(started.at, Ordering::SeqCst);
        return Ok(0);
    }
    let divided = cut(shared, &mut writer, started.at);
    if let Some(stopper) = &started.stopper {
        stopper.let_go();
    }
    divided?;
    let log = writer.log.as_ref().ok_or(io::ErrorKind::Interrupted)?;
    log!(Level::Notice, "Creating AOF incr file {} on background rewrite", log.current_name());
    Ok(log.current_seq())
}

fn cut(shared: &Arc<Shared>, writer: &mut super::Writer, at: u64) -> io::Result<()> {
    let aof = &shared.aof;
    let is_broken = aof.sync_errno.load(Ordering::SeqCst) != 0;
    if is_broken {
        // What the old file lacks is in the base to come.
        writer.skip_to(at);
    } else {
        if !shared.write_pending(writer) {
            let errno = aof.write_errno.load(Ordering::SeqCst);
            return Err(io::Error::from_raw_os_error(errno));
        }
        if !writer.sync_here(aof) {
            let errno = aof.sync_errno.load(Ordering::SeqCst);
            shared.heed_aof();
            return Err(io::Error::from_raw_os_error(errno));
        }
    }
    let log = writer.log.as_mut().ok_or(io::ErrorKind::Interrupted)?;
    // A detached log whose base failed is one file from its instant on; the new base needs a new one.
    log.begin_increment()
}
