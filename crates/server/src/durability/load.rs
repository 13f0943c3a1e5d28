//! Loading a file: at start, and for DEBUG RELOAD.
//!
//! The workers run meanwhile and tell clients that the server is loading. The threads that insert are the walkers of the
//! snapshot, which nobody can take then.

use super::FunctionLoader;
use super::claim::{Claim, Purpose};
use super::save::{Asker, file_of, write_file};
use crate::config::{Config, SanitizeDumpPayload};
use crate::exec::Step;
use crate::log;
use crate::process::log::Level;
use crate::process::{error_text, now_ms};
use crate::session::Session;
use crate::shared::Shared;
use crate::worker::Worker;
use ::rdb::value::Scrutiny;
use commands::{CmdError, CommandId, options};
use keyspace::codec::ValueLimits;
use keyspace::eviction::AccessClock;
use keyspace::{Events, LockSet};
use net::ConnId;
use parking_lot::Mutex;
use persistence::bar::Bar;
use persistence::rdb::{self, Functions, LoadError, LoadOptions, Loaded, Progress, Splitter, Watcher};
use resp::Args;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Between two looks at how far a load is.
const BAR_EVERY: Duration = Duration::from_millis(50);
/// The answer to what cannot run while data is loaded.
pub(crate) const LOADING: CmdError = CmdError::new("LOADING Redis is loading the dataset in memory");

/// The load that runs, and what the last one was.
#[derive(Default)]
pub struct Loading {
    is_on: AtomicBool,
    /// Unix seconds of its begin.
    pub started_s: AtomicI64,
    /// Bytes of the file.
    pub total_bytes: AtomicU64,
    /// What the file says its writer used.
    pub used_memory: AtomicU64,
    /// Keys that the last one loaded.
    pub keys: AtomicU64,
    /// Keys that it left out because their time was over.
    pub expired: AtomicU64,
    progress: Mutex<Arc<Progress>>,
}

impl Loading {
    /// Whether data is being loaded.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// How far it is.
    pub fn progress(&self) -> Arc<Progress> {
        self.progress.lock().clone()
    }
}

/// The server is loading while this lives.
pub struct LoadingState<'s>(&'s Shared);

impl LoadingState<'_> {
    /// Begins: from here on clients are told to wait.
    pub fn begin(shared: &Shared, total_bytes: u64) -> LoadingState<'_> {
        let loading = &shared.durability.loading;
        loading.started_s.store(now_ms() / 1000, Ordering::Relaxed);
        loading.total_bytes.store(total_bytes, Ordering::Relaxed);
        loading.used_memory.store(0, Ordering::Relaxed);
        *loading.progress.lock() = Arc::default();
        loading.is_on.store(true, Ordering::SeqCst);
        shared.durability.renew_restriction();
        LoadingState(shared)
    }
}

impl LoadingState<'_> {
    /// Ends loading if it went well. If not, the server goes on refusing: it is about to end, and must not answer anybody
    /// from data that are not there.
    fn end_if(self, is_fine: bool) -> bool {
        if !is_fine {
            std::mem::forget(self);
        }
        is_fine
    }
}

impl Drop for LoadingState<'_> {
    fn drop(&mut self) {
        self.0.durability.loading.is_on.store(false, Ordering::SeqCst);
        self.0.durability.renew_restriction();
    }
}

/// What a file tells of the replication history it belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileHistory {
    /// The database that was selected in the stream.
    pub stream_db: Option<i64>,
    /// 40 hex digits.
    pub id: Option<String>,
    /// How far it had come.
    pub offset: Option<i64>,
}

/// Which rules a load follows.
#[derive(Clone, Copy, Debug)]
pub struct LoadRules {
    /// Leave out keys whose time is over: for a primary's own file.
    pub expires: bool,
    /// Replace keys that are there.
    pub replaces: bool,
}

/// How closely values of files are looked at.
pub(crate) fn scrutiny_of(config: &Config) -> Scrutiny {
    match config.sanitize_dump_payload {
        SanitizeDumpPayload::Yes => Scrutiny::Full,
        _ => Scrutiny::Structure,
    }
}

/// Puts the records of an RDB file in, with the threads of `claim`. The caller keeps a [`LoadingState`].
///
/// # Errors
/// Why the file cannot be loaded.
pub fn load_stream(
    shared: &Shared,
    claim: &mut Claim,
    config: &Config,
    source: impl io::Read,
    rules: LoadRules,
) -> Result<(Loaded, FileHistory), LoadError> {
    let databases = shared.keyspace.databases();
    let mut splitter = Splitter::new(source, config.rdbchecksum, databases)?;
    load_parts(shared, claim.walkers(), config, &mut splitter, rules)
}

/// As [`load_stream`], of a splitter, which keeps what follows the file.
///
/// # Errors
/// Why the file cannot be loaded.
pub fn load_parts(
    shared: &Shared,
    locks: &mut [LockSet],
    config: &Config,
    splitter: &mut Splitter<impl io::Read>,
    rules: LoadRules,
) -> Result<(Loaded, FileHistory), LoadError> {
    let settings = crate::settings::of(config, shared);
    let now_ms = now_ms();
    let limits = ValueLimits { hash: &settings.hash, set: &settings.set, zset: &settings.zset, list: &settings.list };
    #[allow(clippy::cast_sign_loss)]
    let (factor, decay) = (config.lfu_log_factor as u32, config.lfu_decay_time as u32);
    let options = LoadOptions {
        limits,
        clock: AccessClock::at(now_ms, settings.policy.is_lfu(), factor, decay),
        expires_before_ms: rules.expires.then_some(now_ms),
        replaces: rules.replaces,
        checks: config.rdbchecksum,
        scrutiny: scrutiny_of(config),
        key_delay_us: config.key_load_delay,
        viewer: Some(rdb::Viewer(&|db, key, value| shared.note_loaded(db, key, value))),
    };
    shared.forget_least_sizes();
    let loading = &shared.durability.loading;
    let progress = loading.progress();
    let mut teller =
        Teller { shared, history: FileHistory::default(), replaces: rules.replaces, function_loader: None };
    let loaded = rdb::load(splitter, locks, &options, &progress, &mut teller)?;
    loading.keys.store(loaded.keys, Ordering::Relaxed);
    loading.expired.store(loaded.expired, Ordering::Relaxed);
    if loaded.has_no_checksum && config.rdbchecksum {
        log!(Level::Notice, "RDB file was saved with checksum disabled: no check performed.");
    }
    for name in &loaded.empty_names {
        log!(Level::Notice, "rdbLoadObject skipping empty key: {}", String::from_utf8_lossy(name));
    }
    let (keys, expired, empty) = (loaded.keys, loaded.expired, loaded.empty);
    if empty > 0 {
        log!(
            Level::Notice,
            "Done loading RDB, keys loaded: {keys}, keys expired: {expired}, empty keys skipped: {empty}."
        );
    } else {
        log!(Level::Notice, "Done loading RDB, keys loaded: {keys}, keys expired: {expired}.");
    }
    Ok((loaded, teller.history))
}

/// Says in the log what a file tells of itself.
struct Teller<'s> {
    shared: &'s Shared,
    history: FileHistory,
    replaces: bool,
    /// Made with the first library.
    function_loader: Option<FunctionLoader>,
}

impl Functions for Teller<'_> {
    fn library(&mut self, text: &[u8]) -> Result<(), String> {
        let Some(make) = self.shared.durability.function_loader.get() else {
            return Err("this server has no functions".to_owned());
        };
        self.function_loader.get_or_insert_with(make)(text, self.replaces)
    }
}

impl Watcher for Teller<'_> {
    fn field(&mut self, name: &[u8], value: &[u8]) {
        let (name, value) = (String::from_utf8_lossy(name), String::from_utf8_lossy(value));
        let number = || value.parse::<i64>().unwrap_or(0);
        match name.to_ascii_lowercase().as_str() {
            _ if name.starts_with('%') => log!(Level::Notice, "RDB '{name}': {value}"),
            "repl-stream-db" => self.history.stream_db = Some(number()),
            "repl-id" if value.len() == 40 => self.history.id = Some(value.into_owned()),
            "repl-offset" => self.history.offset = Some(number()),
            "redis-ver" => log!(Level::Notice, "Loading RDB produced by version {value}"),
            "ctime" => {
                let age_s = (now_ms() / 1000 - number()).max(0);
                log!(Level::Notice, "RDB age {age_s} seconds");
            }
            "used-mem" => {
                let bytes = number();
                #[allow(clippy::cast_precision_loss)]
                let mebibytes = bytes as f64 / (1024.0 * 1024.0);
                log!(Level::Notice, "RDB memory usage when created {mebibytes:.2} Mb");
                let used = u64::try_from(bytes).unwrap_or(0);
                self.shared.durability.loading.used_memory.store(used, Ordering::Relaxed);
            }
            "aof-preamble" if number() != 0 => log!(Level::Notice, "RDB has an AOF tail"),
            "aof-base" if number() != 0 => log!(Level::Notice, "RDB is base AOF"),
            "repl-id" | "lua" | "aof-preamble" | "aof-base" | "redis-bits" => {}
            _ => log!(Level::Debug, "Unrecognized RDB AUX field: '{name}'"),
        }
    }

    fn module_data(&mut self, module: &str) {
        log!(
            Level::Warning,
            "The RDB file contains data of the module '{module}', which is not loaded: there are no modules here"
        );
    }
}

/// Says in the log why a file could not be loaded, as Redis does.
pub fn log_failure(error: &LoadError, position: u64) {
    match error {
        LoadError::WrongSignature | LoadError::Version(_) => log!(Level::Warning, "{error}"),
        LoadError::TooManyDatabases(databases) => log!(
            Level::Warning,
            "FATAL: Data file was created with a Redis server configured to handle more than {databases} databases. Exiting"
        ),
        LoadError::Checksum { expected, found } => {
            log!(Level::Warning, "Wrong RDB checksum expected: ({expected:x}) but got ({found:x}). Aborting now.");
            log!(Level::Warning, "Internal error in RDB reading offset {position} -> {error}");
        }
        LoadError::ShortRead => {
            log!(Level::Warning, "Short read or OOM loading DB. Unrecoverable error, aborting now.");
            log!(Level::Warning, "Internal error in RDB reading offset {position} -> {error}");
        }
        LoadError::Stopped => log!(Level::Warning, "Loading was stopped before its end"),
        _ => log!(Level::Warning, "Internal error in RDB reading offset {position} -> {error}"),
    }
}

/// A file could not be loaded; the log says why.
#[derive(Debug)]
pub struct Unreadable;

/// Loads the file `dbfilename`, if there is one. `None`: there is none. The caller keeps a [`LoadingState`], which is told
/// how long the file is.
///
/// # Errors
/// It cannot be loaded; the log says why.
pub fn load_file(
    shared: &Shared,
    claim: &mut Claim,
    config: &Config,
    path: &Path,
    rules: LoadRules,
) -> Result<Option<FileHistory>, Unreadable> {
    let (file, len) = match shared.durability.disk.open(path) {
        Ok(opened) => opened,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            let text = error_text(&error);
            log!(Level::Warning, "Fatal error: can't open the RDB file {} for reading: {text}", path.display());
            return Err(Unreadable);
        }
    };
    shared.durability.loading.total_bytes.store(len, Ordering::Relaxed);
    match load_stream(shared, claim, config, file, rules) {
        Ok((_, history)) => Ok(Some(history)),
        Err(error) => {
            log_failure(&error, shared.durability.loading.progress().bytes.load(Ordering::Relaxed));
            Err(Unreadable)
        }
    }
}

/// Loads what there is at start. False: it cannot be, and the server must not run.
pub(crate) fn load_at_start(shared: &Arc<Shared>, state: LoadingState<'_>) -> bool {
    let config = shared.config.snapshot();
    let started = Instant::now();
    let Some(mut claim) = Claim::new(shared, Purpose::Loading) else { return true };
    if config.appendonly {
        // Redis: with a log to be kept the snapshot's file is not looked at, even if there is no log yet.
        let loaded = crate::aof::load::load(shared, &config, &mut claim);
        drop(claim);
        let opened = loaded.and_then(|_| crate::aof::load::open(shared, &config));
        return state.end_if(opened.is_ok());
    }
    let path = file_of(&config);
    let rules = LoadRules { expires: true, replaces: false };
    let loaded = with_bar(shared, || load_file(shared, &mut claim, &config, &path, rules));
    drop(claim);
    state.end_if(loaded.is_ok());
    match loaded {
        Ok(None) => true,
        Ok(Some(history)) => {
            log!(Level::Notice, "DB loaded from disk: {:.3} seconds", started.elapsed().as_secs_f64());
            *shared.durability.file_history.lock() = Some(history);
            true
        }
        Err(Unreadable) => {
            if !shared.stopping.load(Ordering::Relaxed) {
                report(shared, &path);
                log!(Level::Warning, "Fatal error loading the DB, check server logs. Exiting.");
            }
            false
        }
    }
}

/// Runs a load with a bar on the terminal, if there is one.
fn with_bar<R>(shared: &Shared, work: impl FnOnce() -> R) -> R {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = std::io::stderr().is_terminal().then(|| {
            scope.spawn(|| {
                let loading = &shared.durability.loading;
                let mut bar: Option<Bar> = None;
                while !is_over.load(Ordering::SeqCst) {
                    let total = loading.total_bytes.load(Ordering::Relaxed);
                    if total > 0 {
                        let done = loading.progress().bytes.load(Ordering::Relaxed);
                        bar.get_or_insert_with(|| Bar::new("loading", total)).show(done);
                    }
                    std::thread::park_timeout(BAR_EVERY);
                }
            })
        });
        let result = work();
        is_over.store(true, Ordering::SeqCst);
        if let Some(watcher) = watcher {
            watcher.thread().unpark();
        }
        result
    })
}

/// Has the file that could not be loaded checked, as Redis does: the report goes to the standard output.
fn report(shared: &Shared, path: &Path) {
    // Best effort: the log has told already that the file cannot be loaded.
    let _ = rdb::check::check_file(path, &*shared.durability.disk, &mut io::stdout().lock());
}

// ---- DEBUG RELOAD ------------------------------------------------------------------------------------------------

/// DEBUG RELOAD [MERGE] [NOFLUSH] [NOSAVE].
pub(crate) fn reload(worker: &mut Worker, id: ConnId, session: &mut Session, args: Args<'_>) -> Result<Step, CmdError> {
    let (mut merges, mut flushes, mut saves) = (false, true, true);
    for word in args.slice(2).iter() {
        match word {
            _ if options::is_word(word, "merge") => merges = true,
            _ if options::is_word(word, "noflush") => flushes = false,
            _ if options::is_word(word, "nosave") => saves = false,
            _ => return Err(CmdError::new("ERR DEBUG RELOAD only supports the MERGE, NOFLUSH and NOSAVE options.")),
        }
    }
    if worker.locks.is_alone() || session.state.has(crate::session::State::IN_MULTI) {
        return Err(CmdError::new("ERR DEBUG RELOAD is not for transactions"));
    }
    if Claim::is_taken(&worker.shared) {
        return Ok(Step::Retry);
    }
    load_anew(worker, id, session, args, move |shared, config, events| {
        reload_here(shared, config, merges, flushes, saves, events)
    })
}

/// DEBUG LOADAOF.
pub(crate) fn reload_log(
    worker: &mut Worker,
    id: ConnId,
    session: &mut Session,
    args: Args<'_>,
) -> Result<Step, CmdError> {
    if worker.locks.is_alone() || session.state.has(crate::session::State::IN_MULTI) {
        return Err(CmdError::new("ERR DEBUG LOADAOF is not for transactions"));
    }
    if Claim::is_taken(&worker.shared) {
        return Ok(Step::Retry);
    }
    load_anew(worker, id, session, args, crate::aof::load::reload)
}

/// Has `load` run on a thread of its own; the client waits for what it says.
fn load_anew(
    worker: &mut Worker,
    id: ConnId,
    session: &mut Session,
    args: Args<'_>,
    load: impl FnOnce(&Arc<Shared>, &Config, &mut Events) -> Result<(), &'static str> + Send + 'static,
) -> Result<Step, CmdError> {
    let asker = Asker::new(worker, id, session, CommandId::Debug, args);
    let (shared, config) = (worker.shared.clone(), worker.config.clone());
    let spawned = std::thread::Builder::new().name("reload".into()).spawn(move || {
        let mut events = Events::default();
        let answer = load(&shared, &config, &mut events);
        asker.answer_with(&shared, events, |reply| match answer {
            Ok(()) => reply.ok(),
            Err(text) => reply.error(text),
        });
    });
    if spawned.is_err() {
        session.state.remove(crate::session::State::OFFLOADED);
        return Err(CmdError::new("ERR there is no thread to load on"));
    }
    Ok(Step::Parked)
}

fn reload_here(
    shared: &Arc<Shared>,
    config: &Config,
    merges: bool,
    flushes: bool,
    saves: bool,
    events: &mut Events,
) -> Result<(), &'static str> {
    if saves {
        let begun = Claim::wait(shared, Purpose::File).begin_here(config);
        if !write_file(shared, begun, config) {
            return Err("ERR");
        }
    }
    let mut claim = Claim::wait(shared, Purpose::Loading);
    let state = LoadingState::begin(shared, 0);
    if flushes && let Some(locks) = claim.walkers().first_mut() {
        empty_all(locks, events);
    }
    let path = file_of(config);
    let rules = LoadRules { expires: true, replaces: merges };
    let loaded = load_file(shared, &mut claim, config, &path, rules);
    drop(claim);
    drop(state);
    match loaded {
        Ok(Some(_)) => {
            log!(Level::Notice, "DB reloaded by DEBUG RELOAD");
            Ok(())
        }
        _ => Err("ERR Error trying to load the RDB dump, check server logs."),
    }
}

/// Takes all keys out, from a thread that is no worker.
pub fn empty_all(locks: &mut LockSet, events: &mut Events) {
    let now_ms = now_ms();
    let mut garbage = Vec::new();
    locks.alone(|locks| {
        for slot in locks.keyspace().clone().slots() {
            locks.note_streams_gone(slot, None, events);
            events.dirty += locks.empty_slot(slot, None, now_ms, &mut garbage);
            locks.untrack_slot(slot);
        }
    });
    events.flushed = true;
    locks.keyspace().reclaimer.free(garbage);
}
