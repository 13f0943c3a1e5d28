//! Replaying the log at start.
//!
//! Commands run as a client's would, those of one slot in their order ([`super::lanes`]), with time standing still at 1970:
//! no key ends while the log is replayed, since the log itself says when each was found to have ended. Only commands with a
//! relative expiry, which no server writes but people do, see the real time.

use super::lanes::Lanes;
use super::rewrite::{directory_of, name_of};
use crate::config::Config;
use crate::durability::claim::{Claim, Purpose};
use crate::durability::load::{LoadRules, LoadingState, empty_all, load_parts, log_failure};
use crate::exec::{Step, single};
use crate::log;
use crate::process::error_text;
use crate::process::log::Level;
use crate::session::{ClientId, Session, State};
use crate::shared::Shared;
use crate::worker::Worker;
use commands::CommandId;
use keyspace::eviction::AccessClock;
use keyspace::{Events, LockSet};
use net::ConnId;
use persistence::aof::manifest::manifest_name;
use persistence::aof::{Frame, FrameError, Frames, Log, Manifest, ManifestError};
use persistence::disk::Disk;
use persistence::rdb::Splitter;
use resp::{Args, Proto};
use std::collections::HashMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long a command waits for a slot or the gate before it tries again.
const BUSY_PAUSE: Duration = Duration::from_micros(20);
/// What an RDB file begins with.
const RDB_MARK: &[u8] = b"REDIS";

/// The log cannot be loaded; why is in the log file.
#[derive(Debug)]
pub struct Failed;

/// How a file ended.
#[derive(PartialEq, Eq)]
enum Ended {
    Whole,
    /// Its end was cut off at this offset, and is now gone.
    Cut,
}

/// The files of the log as they are at start.
struct Files {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    name: String,
    manifest: Manifest,
    bytes: HashMap<String, u64>,
}

/// Loads the log, if there is one. True: there is one, so no snapshot is to be loaded.
///
/// # Errors
/// It is there but cannot be used.
pub fn load(shared: &Arc<Shared>, config: &Config, claim: &mut Claim) -> Result<bool, Failed> {
    let mut files = Files::open(shared, config)?;
    files.upgrade()?;
    if files.manifest.is_empty() {
        return Ok(false);
    }
    let total = files.measure()?;
    if total > 0 {
        let started = Instant::now();
        shared.durability.loading.total_bytes.store(total, Ordering::Relaxed);
        files.replay(shared, config, claim)?;
        log!(Level::Notice, "DB loaded from append only file: {:.3} seconds", super::seconds(started));
    }
    Ok(true)
}

/// DEBUG LOADAOF: writes what is to be written, empties the data set and loads it from the log.
///
/// # Errors
/// What the client is told.
pub(crate) fn reload(shared: &Arc<Shared>, config: &Config, events: &mut Events) -> Result<(), &'static str> {
    const FAILED: &str = "ERR Error trying to load the AOF files, check server logs.";
    let mut claim = Claim::wait(shared, Purpose::Loading);
    let state = LoadingState::begin(shared, 0);
    if shared.aof.is_fed() && !shared.write_pending(&mut shared.aof.writer.lock()) {
        return Err(FAILED);
    }
    if let Some(locks) = claim.walkers().first_mut() {
        empty_all(locks, events);
    }
    let loaded = load(shared, config, &mut claim);
    drop(claim);
    drop(state);
    match loaded {
        Ok(true) => {
            log!(Level::Notice, "Append Only File loaded by DEBUG LOADAOF");
            Ok(())
        }
        _ => Err(FAILED),
    }
}

/// Opens the log to be written, after [`load`]: a new one gets its first base. To be called before clients are served.
///
/// # Errors
/// It cannot be written; why is in the log file.
pub fn open(shared: &Arc<Shared>, config: &Config) -> Result<(), Failed> {
    let mut files = Files::open(shared, config)?;
    files.measure()?;
    let say = |what: &str, name: &str, error: &io::Error| {
        log!(Level::Warning, "Can't open {what} {name}: {}", error_text(error));
        Failed
    };
    let shown = files.directory.display().to_string();
    files.disk.create_directory(&files.directory).map_err(|error| say("or create append-only dir", &shown, &error))?;
    if files.manifest.is_empty() {
        files.make_base(shared, config).map_err(|error| {
            log!(Level::Warning, "Write error writing append only file on disk: {}", error_text(&error));
            Failed
        })?;
    }
    let is_new = files.manifest.increments.is_empty();
    let Files { disk, directory, name, manifest, bytes } = files;
    let opened = Log::open(disk, &directory, &name, manifest, |name| bytes.get(name).copied().unwrap_or(0));
    let mut log = opened.map_err(|error| say("the append-only file", &name, &error))?;
    // Redis: growth counts from what was there at start.
    log.mark_base();
    let doing = if is_new { "Creating" } else { "Opening" };
    log!(Level::Notice, "{doing} AOF incr file {} on server start", log.current_name());
    let removed = if config.aof_disable_auto_gc { Vec::new() } else { log.remove_history() };
    for name in removed {
        log!(Level::Notice, "Removing the history file {name} in the background");
    }
    let aof = &shared.aof;
    aof.figures.bytes.store(log.bytes(), Ordering::Relaxed);
    aof.figures.base_bytes.store(log.base_bytes(), Ordering::Relaxed);
    let mut locks = LockSet::new(shared.keyspace.clone());
    let reader = locks.alone(|locks| shared.keyspace.journal.read_from_here(locks, u64::MAX));
    aof.note_start(reader.position());
    *aof.rewrite.locks.lock() = Some(locks);
    aof.writer.lock().start(log, reader);
    aof.set_state(super::State::On);
    shared.start_aof_threads().map_err(|error| {
        log!(Level::Warning, "Can't start the threads of the append only file: {}", error_text(&error));
        Failed
    })
}

impl Files {
    fn open(shared: &Shared, config: &Config) -> Result<Files, Failed> {
        let disk = shared.durability.disk.clone();
        let (directory, name) = (directory_of(config), name_of(config));
        let path = directory.join(manifest_name(&name));
        let manifest = Manifest::load(&*disk, &path).map_err(|error| {
            log_manifest_error(&path, &error);
            Failed
        })?;
        Ok(Files { disk, directory, name, manifest: manifest.unwrap_or_default(), bytes: HashMap::new() })
    }

    fn has(&self, directory: &Path, name: &str) -> bool {
        self.disk.list(directory).is_ok_and(|names| names.iter().any(|other| other == name))
    }

    /// A single file as Redis wrote up to version 6 becomes the base of a new log.
    fn upgrade(&mut self) -> Result<(), Failed> {
        let here = Path::new(".");
        if !self.has(here, &self.name) {
            return Ok(());
        }
        let only_it = self.manifest.increments.is_empty()
            && self.manifest.base.as_ref().is_some_and(|base| base.name == self.name)
            && !self.has(&self.directory, &self.name);
        if !self.manifest.is_empty() && !only_it {
            return Ok(());
        }
        let moved = self.disk.create_directory(&self.directory).and_then(|()| {
            self.manifest.adopt_base(&self.name);
            self.manifest.store(&*self.disk, &self.directory.join(manifest_name(&self.name)))?;
            self.disk.rename(Path::new(&self.name), &self.directory.join(&self.name))?;
            self.disk.sync_directory(&self.directory)?;
            self.disk.sync_directory(here)
        });
        let (name, directory) = (&self.name, self.directory.display());
        match moved {
            Ok(()) => {
                log!(
                    Level::Notice,
                    "Successfully migrated an old-style AOF file ({name}) into the AOF directory ({directory})."
                );
                Ok(())
            }
            Err(error) => {
                log!(
                    Level::Warning,
                    "Error trying to move the old AOF file {name} into dir {directory}: {}",
                    error_text(&error)
                );
                Err(Failed)
            }
        }
    }

    /// Notes how long each file is. Gives the sum.
    fn measure(&mut self) -> Result<u64, Failed> {
        let mut total = 0;
        for part in self.manifest.base.iter().chain(&self.manifest.increments) {
            let (_, bytes) = self.disk.open(&self.directory.join(&part.name)).map_err(|error| {
                log!(
                    Level::Warning,
                    "Unable to obtain the AOF file {} length. stat: {}",
                    part.name,
                    error_text(&error)
                );
                Failed
            })?;
            total += bytes;
            self.bytes.insert(part.name.clone(), bytes);
        }
        Ok(total)
    }

    fn replay(&self, shared: &Arc<Shared>, config: &Config, claim: &mut Claim) -> Result<(), Failed> {
        let mut player = Player::new(shared, config);
        let parts: Vec<(&str, bool)> = self
            .manifest
            .base
            .iter()
            .map(|part| (part.name.as_str(), true))
            .chain(self.manifest.increments.iter().map(|part| (part.name.as_str(), false)))
            .collect();
        for (index, (name, is_base)) in parts.iter().enumerate() {
            let started = Instant::now();
            let ended = player.play(claim, self, name, *is_base)?;
            player.read_before += self.bytes.get(*name).copied().unwrap_or(0);
            // Files behind it that are empty were begun but never written: it is the last that counts.
            let is_last = parts[index + 1..].iter().all(|(name, _)| self.bytes.get(*name) == Some(&0));
            if ended == Ended::Cut && !is_last {
                log!(Level::Warning, "Fatal error: the truncated file is not the last file");
                return Err(Failed);
            }
            let kind = if *is_base { "base" } else { "incr" };
            log!(Level::Notice, "DB loaded from {kind} file {name}: {:.3} seconds", super::seconds(started));
        }
        player.end();
        Ok(())
    }

    /// An empty data set begins with an empty base, as in Redis; one that was loaded from a snapshot with all of it.
    fn make_base(&mut self, shared: &Arc<Shared>, config: &Config) -> io::Result<()> {
        let claim = Claim::new(shared, Purpose::AofRewrite).ok_or(io::ErrorKind::ResourceBusy)?;
        let mut begun = claim.begin_here(config);
        let header = std::mem::take(&mut begun.header);
        let is_rdb = config.aof_use_rdb_preamble;
        let part = self.manifest.replace_base(&self.name, is_rdb);
        let path = self.directory.join(&part.name);
        let temporary = self.directory.join(format!("temp-rewriteaof-{}.aof", std::process::id()));
        let in_pieces = config.aof_rewrite_incremental_fsync;
        if is_rdb {
            persistence::rdb::save(&*self.disk, &path, &temporary, &header, in_pieces, |sink| begun.run(sink))
                .map_err(|failure| failure.error)?;
        } else {
            persistence::aof::base::save(&*self.disk, &path, &header, in_pieces, |sink| begun.run(sink))?;
        }
        self.bytes.insert(part.name.clone(), self.disk.open(&path)?.1);
        log!(Level::Notice, "Creating AOF base file {} on server start", part.name);
        Ok(())
    }
}

fn log_manifest_error(path: &Path, error: &io::Error) {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<ManifestError>()) {
        Some(wrong) => {
            log!(Level::Warning, "\n*** FATAL AOF MANIFEST FILE ERROR ***\n");
            if let Some((number, line)) = &wrong.line {
                log!(Level::Warning, "Reading the manifest file, at line {number}\n");
                log!(Level::Warning, ">>> '{line}'\n");
            }
            log!(Level::Warning, "{}\n", wrong.why);
        }
        None => log!(
            Level::Warning,
            "Fatal error: can't open the AOF manifest file {} for reading: {}",
            path.display(),
            error_text(error)
        ),
    }
}

/// What runs commands of the log on the calling thread.
pub(super) fn replaying_worker(shared: &Arc<Shared>, config: &Config) -> Worker {
    let mut worker = Worker::new(0, shared.clone());
    let mut own = config.clone();
    own.maxmemory = 0;
    own.requirepass = Vec::new();
    worker.config = Arc::new(own);
    worker.events.wanted = keyspace::NotifyClass::default();
    worker.slow_ticks = u64::MAX;
    worker.is_replaying = true;
    worker.locks.effects.mute();
    worker.reply.set_proto(Proto::Resp2);
    let now_ms = crate::process::now_ms();
    worker.clock = AccessClock::at(now_ms, worker.settings.policy.is_lfu(), 10, 1);
    worker.now_ms = 0;
    worker
}

/// Runs the commands of the log.
struct Player {
    shared: Arc<Shared>,
    worker: Worker,
    session: Session,
    loads_truncated: bool,
    /// Bytes of the files that are done.
    read_before: u64,
}

impl Player {
    fn new(shared: &Arc<Shared>, config: &Config) -> Player {
        let worker = replaying_worker(shared, config);
        let session = Session::new(ClientId(0), 0, true, None);
        Player { shared: shared.clone(), worker, session, loads_truncated: config.aof_load_truncated, read_before: 0 }
    }

    fn end(mut self) {
        // What it counted is no client's doing.
        self.worker.events = keyspace::Events::default();
        self.worker.stats.reset();
    }

    fn play(&mut self, claim: &mut Claim, files: &Files, name: &str, is_base: bool) -> Result<Ended, Failed> {
        let path = files.directory.join(name);
        let opened = files.disk.open(&path).and_then(|(mut file, _)| {
            let mut start = vec![0; RDB_MARK.len()];
            let mut got = 0;
            while got < start.len() {
                match file.read(&mut start[got..])? {
                    0 => break,
                    some => got += some,
                }
            }
            start.truncate(got);
            Ok((file, start))
        });
        let (file, start) = opened.map_err(|error| {
            log!(
                Level::Warning,
                "Fatal error: can't open the append log file {name} for reading: {}",
                error_text(&error)
            );
            Failed
        })?;
        let mut frames = if start == RDB_MARK {
            let is_old = is_base && name == files.name;
            log!(
                Level::Notice,
                "{}",
                if is_old {
                    "Reading RDB preamble from AOF file..."
                } else {
                    "Reading RDB base file on AOF loading..."
                }
            );
            let frames = self.load_base(claim, file, start, name, is_old)?;
            if is_old {
                log!(Level::Notice, "Reading the remaining AOF tail...");
            }
            frames
        } else {
            Frames::with_start(file, start, 0)
        };
        self.session = Session::new(ClientId(0), 0, true, None);
        self.play_frames(&mut frames, name, &path, files)
    }

    /// Loads the RDB part at the beginning of a file. Gives a reader of what is behind it.
    fn load_base(
        &mut self,
        claim: &mut Claim,
        file: Box<dyn Read + Send>,
        start: Vec<u8>,
        name: &str,
        is_old: bool,
    ) -> Result<Frames, Failed> {
        let whole: Box<dyn Read + Send> = Box::new(io::Cursor::new(start).chain(file));
        let config = self.shared.config.snapshot();
        let databases = self.shared.keyspace.databases();
        // The log that follows tells of the keys that have ended since.
        let rules = LoadRules { expires: false, replaces: false };
        let loaded = Splitter::new(whole, config.rdbchecksum, databases).and_then(|mut splitter| {
            load_parts(&self.shared, claim.walkers(), &config, &mut splitter, rules)?;
            let offset = splitter.position();
            let (rest, source) = splitter.into_rest();
            Ok(Frames::with_start(source, rest, offset))
        });
        loaded.map_err(|error| {
            log_failure(&error, self.shared.durability.loading.progress().bytes.load(Ordering::Relaxed));
            let what = if is_old { "RDB preamble of the AOF" } else { "RDB base" };
            log!(Level::Warning, "Error reading the {what} file {name}, AOF loading aborted");
            Failed
        })
    }

    fn play_frames(&mut self, frames: &mut Frames, name: &str, path: &Path, files: &Files) -> Result<Ended, Failed> {
        let mut before_multi = frames.offset();
        let progress = self.shared.durability.loading.progress();
        let read_before = self.read_before;
        let mut lanes = Lanes::start(&self.shared, &self.worker.config, name);
        let ended = loop {
            let offset = frames.offset();
            match frames.next_frame() {
                Ok(Frame::Annotation) => {}
                Ok(Frame::Command) => {
                    if !self.session.state.has(State::IN_MULTI) {
                        before_multi = offset;
                    }
                    if !self.run(&mut lanes, &frames.arguments(), name) {
                        break Err(Failed);
                    }
                    progress.bytes.store(read_before + frames.offset(), Ordering::Relaxed);
                    if progress.stop.load(Ordering::Relaxed) {
                        log!(Level::Warning, "Loading was stopped before its end");
                        break Err(Failed);
                    }
                }
                Ok(Frame::End) if self.session.state.has(State::IN_MULTI) => {
                    log!(Level::Warning, "Revert incomplete MULTI/EXEC transaction in AOF file {name}");
                    break self.truncate(before_multi, name, path, files);
                }
                Ok(Frame::End) => break Ok(Ended::Whole),
                Err(FrameError::Truncated) => {
                    let valid = if self.session.state.has(State::IN_MULTI) { before_multi } else { offset };
                    break self.truncate(valid, name, path, files);
                }
                Err(FrameError::Malformed { offset, why }) => {
                    log!(
                        Level::Warning,
                        "Bad file format reading the append only file {name}: make a backup of your AOF file, then use ./redis-check-aof --fix <filename.manifest>"
                    );
                    log!(
                        Level::Warning,
                        "The fault is at offset {offset} (0x{offset:x}) of {}: {why}. All before it is intact. `oxidis check-aof` tells how much lies behind it",
                        path.display()
                    );
                    break Err(Failed);
                }
                Err(FrameError::Io(error)) => {
                    log!(
                        Level::Warning,
                        "Unrecoverable error reading the append only file {name}: {}",
                        error_text(&error)
                    );
                    break Err(Failed);
                }
            }
        };
        if !lanes.wait() {
            log!(Level::Warning, "A thread that replayed the log came down");
            return Err(Failed);
        }
        ended
    }

    /// Runs one command, or hands it to a lane. False: there is none of that name.
    fn run(&mut self, lanes: &mut Lanes, arguments: &[&[u8]], file: &str) -> bool {
        let Some(spec) = arguments.first().and_then(|name| self.worker.lookup(name)) else {
            log!(
                Level::Warning,
                "Unknown command '{}' reading the append only file {file}",
                String::from_utf8_lossy(arguments.first().copied().unwrap_or_default())
            );
            return false;
        };
        let is_queued = self.session.state.has(State::IN_MULTI) && spec.id != CommandId::Exec;
        // Neither what is queued nor what concerns the session alone touches a key.
        let is_own = is_queued || matches!(spec.id, CommandId::Select | CommandId::Multi);
        if !is_own {
            if lanes.take(spec, self.session.db, arguments) {
                return true;
            }
            if !lanes.wait() {
                return false;
            }
        }
        // Inside for this command alone: while the reader waits for lanes, they must be able to get in.
        self.worker.locks.enter();
        run_command(&mut self.worker, &mut self.session, arguments, file);
        self.worker.locks.leave();
        true
    }

    fn truncate(&mut self, valid: u64, name: &str, path: &Path, files: &Files) -> Result<Ended, Failed> {
        if !self.loads_truncated {
            log!(
                Level::Warning,
                "Unexpected end of file reading the append only file {name}. You can: 1) Make a backup of your AOF file, then use ./redis-check-aof --fix <filename.manifest>. 2) Alternatively you can set the 'aof-load-truncated' configuration option to yes and restart the server."
            );
            return Err(Failed);
        }
        log!(Level::Warning, "!!! Warning: short read while loading the AOF file {name}!!!");
        log!(Level::Warning, "!!! Truncating the AOF {name} at offset {valid} !!!");
        let cut = files.disk.append(path).and_then(|mut file| {
            file.truncate(valid)?;
            file.sync()
        });
        if let Err(error) = cut {
            log!(Level::Warning, "Error truncating the AOF file {name}: {}", error_text(&error));
            return Err(Failed);
        }
        log!(Level::Warning, "AOF {name} loaded anyway because aof-load-truncated is enabled");
        Ok(Ended::Cut)
    }
}

/// Runs one command that there is.
pub(super) fn run_command(worker: &mut Worker, session: &mut Session, arguments: &[&[u8]], file: &str) {
    let args = Args::from_slices(arguments);
    let Some(spec) = arguments.first().and_then(|name| worker.lookup(name)) else { return };
    let relative = is_relative(spec.id, args);
    if relative {
        worker.now_ms = crate::process::now_ms();
    }
    let step = loop {
        match single::run(worker, ConnId::from_u64(0), session, args) {
            // A worker looks after its slots meanwhile, or closes the gate for a moment.
            Step::Busy(_) | Step::Retry | Step::Again => {
                worker.locks.leave();
                std::thread::sleep(BUSY_PAUSE);
                worker.locks.enter();
            }
            step => break step,
        }
    };
    if relative {
        worker.now_ms = 0;
    }
    debug_assert!(step == Step::Done, "{step:?} in {file}");
    if worker.reply.as_slice().first() == Some(&b'-') {
        let text = String::from_utf8_lossy(&worker.reply.as_slice()[1..]).trim_end().to_owned();
        log!(
            Level::Warning,
            "== CRITICAL == This server is sending an error to its AOF-loading-client: '{text}' after processing the command '{}'",
            spec.name
        );
    }
    worker.reply.clear();
}

/// Whether a command counts an expiry from now.
pub(crate) fn is_relative(id: CommandId, args: Args<'_>) -> bool {
    use CommandId as C;
    match id {
        C::Expire | C::Pexpire | C::Setex | C::Psetex | C::Xadd => true,
        C::Set | C::Getex => {
            args.iter().skip(2).any(|word| word.eq_ignore_ascii_case(b"ex") || word.eq_ignore_ascii_case(b"px"))
        }
        C::Restore => !args.iter().skip(4).any(|word| word.eq_ignore_ascii_case(b"absttl")),
        _ => false,
    }
}
