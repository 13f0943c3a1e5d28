//! Taking a primary's snapshot.
//!
//! It is first brought to a file and read through, every value of it, and only then do the old data go: a primary that
//! sends nonsense, or breaks off, costs a replica nothing. Straight from the connection it is loaded when there are no data
//! to lose (`repl-diskless-load`).

use super::apply::Applier;
use super::link::{Ended, Line, Wire};
use super::{Phase, full_sync};
use crate::config::{Config, ReplDisklessLoad};
use crate::durability::claim::{Claim, Purpose};
use crate::durability::load::{FileHistory, LoadRules, LoadingState, empty_all, load_stream, log_failure, scrutiny_of};
use crate::durability::save::file_of;
use crate::log;
use crate::process::log::Level;
use crate::process::{error_text, now_ms};
use crate::shared::{Shared, random_id};
use ::replication::history::History;
use ::replication::payload::{Form, Payload, PayloadError};
use keyspace::codec::ValueLimits;
use keyspace::{DbIndex, Events};
use persistence::disk::DiskFile;
use persistence::rdb::{self, LoadError, Part, Splitter};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Between two signs of life to the primary while its snapshot is loaded.
const ALIVE_EVERY: Duration = Duration::from_secs(1);

/// The snapshot as it comes.
struct Incoming<'w> {
    wire: &'w mut Wire,
    payload: Payload,
    ready: Vec<u8>,
    at: usize,
}

impl Incoming<'_> {
    /// Waits for the first line.
    fn begin(&mut self) -> io::Result<Form> {
        loop {
            self.feed()?;
            if let Some(form) = self.payload.form() {
                return Ok(form.clone());
            }
            self.wire.read_more()?;
        }
    }

    fn feed(&mut self) -> io::Result<()> {
        let used = self.payload.feed(self.wire.unused(), &mut self.ready).map_err(io::Error::other)?;
        self.wire.consume(used);
        Ok(())
    }
}

impl Read for Incoming<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let rest = self.ready.get(self.at..).unwrap_or_default();
            if !rest.is_empty() {
                let taken = rest.len().min(into.len());
                if let (Some(to), Some(from)) = (into.get_mut(..taken), rest.get(..taken)) {
                    to.copy_from_slice(from);
                }
                self.at += taken;
                self.wire.shared.replication.link.read_bytes.fetch_add(taken as u64, Ordering::Relaxed);
                return Ok(taken);
            }
            self.ready.clear();
            self.at = 0;
            if self.payload.is_done() {
                return Ok(0);
            }
            self.feed()?;
            if self.ready.is_empty() && !self.payload.is_done() {
                self.wire.read_more()?;
            }
        }
    }
}

/// Takes the snapshot that follows, and begins the stream. `history`: which it is of, and how much of it it holds.
pub(super) fn take(wire: &mut Wire, applier: &mut Applier, history: Option<(String, u64)>) -> Result<(), Ended> {
    let shared = wire.shared.clone();
    let config = shared.config.snapshot();
    let replication = &shared.replication;
    replication.link.total_bytes.store(0, Ordering::Relaxed);
    replication.link.read_bytes.store(0, Ordering::Relaxed);
    replication.set_phase(Phase::Transfer);
    let is_direct = config.repl_diskless_load != ReplDisklessLoad::Disabled && is_empty(&shared);
    let mut incoming = Incoming { wire, payload: Payload::default(), ready: Vec::new(), at: 0 };
    let form = incoming.begin().map_err(|error| tell(&error, "I/O error reading bulk count from MASTER"))?;
    let to = if is_direct { "to parser" } else { "to disk" };
    match form {
        Form::Mark(_) => {
            log!(Level::Notice, "MASTER <-> REPLICA sync: receiving streamed RDB from master with EOF {to}");
        }
        Form::Length(bytes) => {
            replication.link.total_bytes.store(bytes, Ordering::Relaxed);
            log!(Level::Notice, "MASTER <-> REPLICA sync: receiving {bytes} bytes from master {to}");
        }
    }
    let loaded = if is_direct {
        load_direct(&shared, &config, &mut incoming)?
    } else {
        let path = spool(&shared, &config, &mut incoming)?;
        load_spooled(&shared, &config, &path, incoming.wire)?
    };
    let is_done = begin_stream(&shared, &config, history, &loaded, wire);
    if !is_done {
        return Err(Ended::Stopped);
    }
    applier.begin(replication.link.stream_db.load(Ordering::SeqCst));
    log!(Level::Notice, "MASTER <-> REPLICA sync: Finished with success");
    Ok(())
}

fn tell(error: &io::Error, doing: &str) -> Ended {
    if error.kind() == super::link::STOPPED {
        return Ended::Stopped;
    }
    match error.get_ref().and_then(|inner| inner.downcast_ref::<PayloadError>()) {
        Some(wrong) => log!(Level::Warning, "{wrong}"),
        None if error.kind() == io::ErrorKind::TimedOut => log!(
            Level::Warning,
            "Timeout receiving bulk data from MASTER... If the problem persists try to set the 'repl-timeout' parameter in redis.conf to a larger value."
        ),
        None if error.kind() == io::ErrorKind::UnexpectedEof => log!(Level::Warning, "{doing}: connection lost"),
        None => log!(Level::Warning, "{doing}: {}", error_text(error)),
    }
    Ended::Lost
}

fn is_empty(shared: &Shared) -> bool {
    let counted = u32::try_from(keyspace::keyspace::COUNTED_DBS).unwrap_or(16);
    shared.keyspace.databases() <= counted
        && (0..shared.keyspace.databases())
            .all(|db| shared.keyspace.counted(DbIndex(db)).is_some_and(|(keys, _)| keys == 0))
}

/// Brings the snapshot to a file of its own, checks it, and puts it in the place of the old one.
fn spool(shared: &Arc<Shared>, config: &Config, incoming: &mut Incoming<'_>) -> Result<PathBuf, Ended> {
    let disk = shared.durability.disk.clone();
    let temporary = PathBuf::from(format!("temp-{}.{}.rdb", now_ms() / 1000, std::process::id()));
    let remove = |ended: Ended| {
        // It may not be there.
        let _ = disk.remove(&temporary);
        ended
    };
    let mut file = disk.create(&temporary).map_err(|error| {
        log!(
            Level::Warning,
            "Opening the temp file needed for MASTER <-> REPLICA synchronization: {}",
            error_text(&error)
        );
        Ended::Lost
    })?;
    let mut tee = Tee { incoming, file: &mut *file, write_error: None };
    let checked = check(&mut tee, config, shared);
    let write_error = tee.write_error.take();
    drop(file);
    if let Some(error) = write_error {
        log!(
            Level::Warning,
            "Write error or short write writing to the DB dump file needed for MASTER <-> REPLICA synchronization: {}",
            error_text(&error)
        );
        return Err(remove(Ended::Lost));
    }
    match checked {
        Ok(()) => {}
        Err(LoadError::Io(error)) => return Err(remove(tell(&error, "I/O error trying to sync with MASTER"))),
        Err(error) => {
            log!(Level::Warning, "The MASTER's RDB file is no good, the old data are kept: {error}");
            return Err(remove(Ended::Lost));
        }
    }
    let path = file_of(config);
    // A snapshot of our own would take the place of this one.
    shared.durability.claims.give_up(Purpose::File);
    let moved = disk.rename(&temporary, &path).and_then(|()| disk.sync_directory(Path::new(".")));
    moved.map_err(|error| {
        log!(
            Level::Warning,
            "Failed trying to rename the temp DB into {} in MASTER <-> REPLICA synchronization: {}",
            path.display(),
            error_text(&error)
        );
        remove(Ended::Lost)
    })?;
    Ok(path)
}

/// Writes to a file what is read.
struct Tee<'t, 'w> {
    incoming: &'t mut Incoming<'w>,
    file: &'t mut dyn DiskFile,
    write_error: Option<io::Error>,
}

impl Read for Tee<'_, '_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let got = self.incoming.read(into)?;
        if let Err(error) = self.file.write_all(into.get(..got).unwrap_or_default()) {
            self.write_error = Some(error);
            return Err(io::ErrorKind::WriteZero.into());
        }
        Ok(got)
    }
}

/// Reads a file through as it comes, every value and library of it: what can be loaded once the old data are gone.
fn check(source: &mut impl Read, config: &Config, shared: &Arc<Shared>) -> Result<(), LoadError> {
    let settings = crate::settings::of(config, shared);
    let limits = ValueLimits { hash: &settings.hash, set: &settings.set, zset: &settings.zset, list: &settings.list };
    let mut splitter = Splitter::new(&mut *source, config.rdbchecksum, shared.keyspace.databases())?;
    let mut checks_library = crate::scripting::functions::checker(shared);
    loop {
        match splitter.next_part()? {
            Part::Chunk(chunk) => rdb::check_chunk(&chunk, limits, scrutiny_of(config))?,
            Part::Function(text) => checks_library(&text).map_err(LoadError::Function)?,
            Part::Field(..) | Part::ModuleData(_) => {}
            Part::End { .. } => break,
        }
    }
    // What stands behind the end is nobody's.
    io::copy(source, &mut io::sink())?;
    Ok(())
}

/// What a load needs: nobody else at the keys, and no log of what happens meanwhile.
struct Site<'s> {
    claim: Claim,
    had_log: bool,
    state: LoadingState<'s>,
}

fn prepare<'s>(shared: &'s Arc<Shared>, bytes: u64, generation: u64) -> Result<Site<'s>, Ended> {
    shared.durability.claims.give_up(Purpose::File);
    shared.durability.claims.give_up(Purpose::FullSync);
    let had_log = shared.aof.is_fed();
    if had_log {
        shared.switch_aof_off();
    }
    // What our own replicas have is another history from here on.
    shared.cut_replicas();
    let claim = Claim::wait(shared, Purpose::Loading);
    let site = Site { claim, had_log, state: LoadingState::begin(shared, bytes) };
    if shared.replication.generation() != generation {
        end(shared, site);
        return Err(Ended::Stopped);
    }
    Ok(site)
}

fn flush(shared: &Arc<Shared>, site: &mut Site<'_>) {
    if let Some(locks) = site.claim.walkers().first_mut() {
        empty_all(locks, &mut Events::default());
    }
    crate::scripting::functions::forget_all(shared);
    let tell = |worker: &mut crate::worker::Worker, _: &mut net::Conns<crate::worker::Worker>| {
        // Clients that keep copies are told that these are old.
        worker.events.flushed = true;
        worker.broadcast_changes();
    };
    shared.post(0, crate::worker::Message::Call(Box::new(tell)));
    shared.replication.state.lock().is_resumable = false;
}

fn load(
    shared: &Arc<Shared>,
    config: &Config,
    site: &mut Site<'_>,
    source: impl Read,
    stream: Option<&mut Line>,
) -> Result<FileHistory, Ended> {
    log!(Level::Notice, "MASTER <-> REPLICA sync: Flushing old data");
    flush(shared, site);
    log!(Level::Notice, "MASTER <-> REPLICA sync: Loading DB in memory");
    // A key that comes twice is no reason to have none: the last one counts.
    let rules = LoadRules { expires: false, replaces: true };
    let is_loaded = AtomicBool::new(false);
    let claim = &mut site.claim;
    let loaded = std::thread::scope(|scope| {
        let is_loaded = &is_loaded;
        let alive = stream.map(|stream| {
            scope.spawn(move || {
                while !is_loaded.load(Ordering::SeqCst) {
                    // The link's own reading finds out if the primary is gone.
                    let _ = stream.write_all(b"\n");
                    std::thread::park_timeout(ALIVE_EVERY);
                }
            })
        });
        let loaded = load_stream(shared, claim, config, source, rules);
        is_loaded.store(true, Ordering::SeqCst);
        if let Some(alive) = &alive {
            alive.thread().unpark();
        }
        loaded
    });
    match loaded {
        Ok((_, history)) => Ok(history),
        Err(error) => {
            log_failure(&error, shared.durability.loading.progress().bytes.load(Ordering::Relaxed));
            // Half of a snapshot is nobody's data.
            flush(shared, site);
            Err(Ended::Lost)
        }
    }
}

fn end(shared: &Arc<Shared>, site: Site<'_>) {
    let Site { claim, had_log, state } = site;
    drop(claim);
    drop(state);
    if had_log && let Err(error) = shared.switch_aof_on() {
        log!(
            Level::Warning,
            "Failed enabling the AOF after successful master synchronization! Trying it again in one second. {error}"
        );
    }
}

fn load_spooled(shared: &Arc<Shared>, config: &Config, path: &Path, wire: &mut Wire) -> Result<FileHistory, Ended> {
    let (file, bytes) = shared.durability.disk.open(path).map_err(|error| {
        log!(Level::Warning, "Failed trying to load the MASTER synchronization DB from disk: {}", error_text(&error));
        Ended::Lost
    })?;
    let mut site = prepare(shared, bytes, wire.generation)?;
    let loaded = load(shared, config, &mut site, file, Some(&mut wire.stream));
    end(shared, site);
    let loaded = loaded.inspect_err(|_| {
        log!(Level::Warning, "Failed trying to load the MASTER synchronization DB from disk, check server logs.");
    });
    if config.rdb_del_sync_files && config.save.is_empty() && !config.appendonly {
        log!(Level::Notice, "Removing the RDB file obtained from the master. This replica has persistence disabled");
        // It serves nobody any more; being there does no harm.
        let _ = shared.durability.disk.remove(path);
    }
    loaded
}

fn load_direct(shared: &Arc<Shared>, config: &Config, incoming: &mut Incoming<'_>) -> Result<FileHistory, Ended> {
    let mut site = prepare(shared, 0, incoming.wire.generation)?;
    let loaded = load(shared, config, &mut site, &mut *incoming, None);
    let loaded = match loaded {
        Ok(history) => {
            let mut rest = [0; 64];
            match incoming.read(&mut rest) {
                Ok(0) => Ok(history),
                _ => {
                    log!(Level::Warning, "Replication stream EOF marker is broken");
                    flush(shared, &mut site);
                    Err(Ended::Lost)
                }
            }
        }
        Err(ended) => {
            log!(Level::Warning, "Failed trying to load the MASTER synchronization DB from socket, check server logs.");
            Err(ended)
        }
    };
    end(shared, site);
    loaded
}

/// Behind the gate: the journal goes on where the snapshot ends. False: the role has changed meanwhile.
fn begin_stream(
    shared: &Arc<Shared>,
    config: &Config,
    history: Option<(String, u64)>,
    loaded: &FileHistory,
    wire: &Wire,
) -> bool {
    let replication = &shared.replication;
    let mut locks = keyspace::LockSet::new(shared.keyspace.clone());
    locks.alone(|locks| {
        if !wire.is_current() {
            return false;
        }
        let is_resumable = history.is_some();
        let (id, offset) = history.unwrap_or_else(|| (random_id(), 0));
        shared.keyspace.journal.restart_at(offset);
        full_sync::keep_backlog(shared, locks, config);
        {
            let mut state = replication.state.lock();
            state.history = History::new(id);
            state.is_resumable = is_resumable;
        }
        let db = loaded.stream_db.and_then(|db| u32::try_from(db).ok()).unwrap_or(0);
        replication.link.stream_db.store(db, Ordering::SeqCst);
        true
    })
}
