//! SAVE, BGSAVE and save points: a snapshot into the file `dbfilename`.

use super::claim::{Begun, Claim, Purpose};
use crate::config::Config;
use crate::exec::Step;
use crate::log;
use crate::process::log::Level;
use crate::process::{error_text, now_ms};
use crate::session::{Session, State};
use crate::shared::Shared;
use crate::slowlog::kept_arguments;
use crate::worker::{Finished, Message, Worker};
use commands::{CmdError, CommandId, options};
use keyspace::Events;
use net::ConnId;
use persistence::rdb::{SaveError, SaveStep};
use resp::{Args, Proto, Reply};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Seconds after a failed save before a save point tries again, as in Redis.
const RETRY_S: i64 = 5;
/// The answer while one runs.
const IN_PROGRESS: CmdError = CmdError::new("ERR Background save already in progress");

/// A client that waits for an answer from another thread.
pub(crate) struct Asker {
    worker: u16,
    conn: ConnId,
    id: CommandId,
    proto: Proto,
    shown: Vec<Vec<u8>>,
    started: u64,
}

impl Asker {
    /// Takes the client of a running command; the command then ends with [`Step::Parked`].
    pub(crate) fn new(worker: &Worker, conn: ConnId, session: &mut Session, id: CommandId, args: Args<'_>) -> Asker {
        session.state.insert(State::OFFLOADED);
        Asker {
            worker: worker.index,
            conn,
            id,
            proto: session.proto,
            shown: kept_arguments(args),
            started: crate::ticks::now(),
        }
    }

    /// Answers and lets it go on.
    pub(crate) fn answer(self, shared: &Shared, write: impl FnOnce(&mut Reply)) {
        self.answer_with(shared, Events::default(), write);
    }

    /// As [`Asker::answer`], with what happened meanwhile.
    pub(crate) fn answer_with(self, shared: &Shared, events: Events, write: impl FnOnce(&mut Reply)) {
        self.finish(shared, events, 0, write);
    }

    /// As [`Asker::answer`], when what ends in the journal at `upto` is as safe as the policy of the log makes writes.
    pub(crate) fn answer_when_safe(self, shared: &Shared, upto: u64, write: impl FnOnce(&mut Reply)) {
        self.finish(shared, Events::default(), upto, write);
    }

    fn finish(self, shared: &Shared, events: Events, upto: u64, write: impl FnOnce(&mut Reply)) {
        let mut reply = Reply::with_buffer(Vec::new(), self.proto);
        write(&mut reply);
        let ticks = crate::ticks::now().wrapping_sub(self.started);
        let finished = Finished {
            conn: self.conn,
            id: self.id,
            shown: self.shown,
            reply: reply.take(),
            events,
            ticks,
            parts: Vec::new(),
            upto,
        };
        shared.post(self.worker, Message::Finished(finished));
    }
}

/// SAVE.
pub(crate) fn save(worker: &mut Worker, id: ConnId, session: &mut Session, args: Args<'_>) -> Result<Step, CmdError> {
    let Some(claim) = Claim::new(&worker.shared, Purpose::File) else {
        return match worker.shared.durability.claims.purpose() {
            // Redis: a rewrite of the log does not keep SAVE back; here it waits for it.
            Some(Purpose::AofRewrite | Purpose::FullSync | Purpose::Loading) => Ok(Step::Retry),
            _ => Err(IN_PROGRESS),
        };
    };
    let config = worker.config.clone();
    let Some(begun) = worker.alone(|worker| claim.begin(&worker.locks, &config)) else { return Ok(Step::Retry) };
    let asker = Asker::new(worker, id, session, CommandId::Save, args);
    worker.shared.durability.saves.fetch_add(1, Ordering::Relaxed);
    let shared = worker.shared.clone();
    let spawned = std::thread::Builder::new().name("save".into()).spawn(move || {
        let saved = write_file(&shared, begun, &config);
        asker.answer(&shared, |reply| if saved { reply.ok() } else { reply.error("ERR") });
    });
    if spawned.is_err() {
        session.state.remove(State::OFFLOADED);
        return Err(CmdError::new("ERR there is no thread to save on"));
    }
    Ok(Step::Parked)
}

/// BGSAVE [SCHEDULE].
pub(crate) fn background_save(worker: &mut Worker, session: &Session, args: Args<'_>) -> Result<Step, CmdError> {
    let schedule = match args.len() {
        1 => false,
        2 if options::is_word(&args[1], "schedule") => true,
        _ => return Err(commands::error::SYNTAX),
    };
    let durability = &worker.shared.durability;
    let purpose = durability.claims.purpose();
    let in_exec = worker.locks.is_alone() || worker.locks.held() > 0 || session.state.has(State::IN_MULTI);
    match purpose {
        Some(Purpose::File) => return Err(IN_PROGRESS),
        _ if in_exec || (purpose.is_some() && schedule) => {
            durability.is_scheduled.store(true, Ordering::Relaxed);
            worker.reply.simple("Background saving scheduled");
        }
        Some(_) => {
            return Err(CmdError::new(
                "ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE in order to schedule a BGSAVE whenever possible.",
            ));
        }
        None => match worker.begin_background_save() {
            Begin::Started => worker.reply.simple("Background saving started"),
            Begin::Busy => return Ok(Step::Retry),
            Begin::Failed => return Err(CmdError::new("ERR")),
        },
    }
    Ok(Step::Done)
}

/// What came of an attempt to begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Begin {
    Started,
    /// The gate or the claim is taken: try again soon.
    Busy,
    /// There is no thread.
    Failed,
}

impl Worker {
    fn begin_background_save(&mut self) -> Begin {
        let Some(claim) = Claim::new(&self.shared, Purpose::File) else { return Begin::Busy };
        let config = self.config.clone();
        let Some(begun) = self.alone(|worker| claim.begin(&worker.locks, &config)) else { return Begin::Busy };
        let durability = &self.shared.durability;
        durability.saves.fetch_add(1, Ordering::Relaxed);
        durability.last_try_s.store(self.now_ms / 1000, Ordering::Relaxed);
        log!(Level::Notice, "Background saving started by pid {}", std::process::id());
        let shared = self.shared.clone();
        let spawned = std::thread::Builder::new().name("bgsave".into()).spawn(move || {
            super::claim::give_way();
            let (is_unwanted, since) = (begun.is_unwanted.clone(), begun.since);
            let saved = write_file(&shared, begun, &config);
            let durability = &shared.durability;
            durability.last_took_s.store(i64::try_from(since.elapsed().as_secs()).unwrap_or(0), Ordering::Relaxed);
            if saved {
                log!(Level::Notice, "Background saving terminated with success");
            } else if is_unwanted.load(Ordering::SeqCst) {
                log!(Level::Warning, "Background saving terminated by signal {}", libc::SIGUSR1);
            } else {
                log!(Level::Warning, "Background saving error");
                shared.set_save_failed(true);
            }
        });
        match spawned {
            Ok(thread) => {
                *self.shared.durability.saver.lock() = Some(thread);
                Begin::Started
            }
            Err(error) => {
                log!(Level::Warning, "Can't save in background: fork: {}", error_text(&error));
                self.shared.set_save_failed(true);
                Begin::Failed
            }
        }
    }

    /// FLUSHALL: a file that is being written would bring the keys back, and so would the one there is.
    pub(crate) fn after_flush(&mut self) {
        let durability = &self.shared.durability;
        durability.claims.give_up(Purpose::File);
        if !self.config.save.is_empty() {
            durability.is_scheduled.store(true, Ordering::Relaxed);
        }
    }

    /// Begins a snapshot if a save point is reached or one was asked for; about ten times a second, on one worker.
    pub(crate) fn save_if_due(&mut self) {
        let durability = &self.shared.durability;
        if durability.claims.purpose().is_some() || self.shared.stopping.load(Ordering::Relaxed) {
            return;
        }
        let now_s = self.now_ms / 1000;
        let may_try = now_s - durability.last_try_s.load(Ordering::Relaxed) > RETRY_S
            || !durability.has_failed.load(Ordering::Relaxed);
        if !may_try {
            return;
        }
        let changes = self.shared.unsaved_changes();
        let since_s = now_s - self.shared.last_save_s.load(Ordering::Relaxed);
        let point = self.config.save.iter().find(|point| {
            changes >= point.changes.max(1) && since_s > i64::try_from(point.seconds).unwrap_or(i64::MAX)
        });
        let is_scheduled = durability.is_scheduled.load(Ordering::Relaxed);
        if point.is_none() && !is_scheduled {
            return;
        }
        if let Some(point) = point {
            log!(Level::Notice, "{} changes in {} seconds. Saving...", point.changes, point.seconds);
        }
        self.locks.enter();
        let begun = self.begin_background_save();
        self.locks.leave();
        if begun == Begin::Started {
            self.shared.durability.is_scheduled.store(false, Ordering::Relaxed);
        }
    }
}

impl Shared {
    /// Notes whether the last save failed, and has workers heed it.
    pub(crate) fn set_save_failed(&self, failed: bool) {
        self.durability.has_failed.store(failed, Ordering::SeqCst);
        self.durability.renew_restriction();
    }
}

/// The file that snapshots are written to.
pub(crate) fn file_of(config: &Config) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(&config.dbfilename))
}

/// Runs a snapshot into the file and says in the log what came of it. True: it is saved.
pub(crate) fn write_file(shared: &Arc<Shared>, mut begun: Begun, config: &Config) -> bool {
    let path = file_of(config);
    let temporary = PathBuf::from(format!("temp-{}.rdb", std::process::id()));
    let (changes, is_unwanted) = (begun.changes, begun.is_unwanted.clone());
    let header = std::mem::take(&mut begun.header);
    let disk = shared.durability.disk.clone();
    let in_pieces = config.rdb_save_incremental_fsync;
    let saved = persistence::rdb::save(&*disk, &path, &temporary, &header, in_pieces, |sink| begun.run(sink));
    match saved {
        Ok(totals) => {
            log!(Level::Notice, "DB saved on disk");
            shared.durability.last_handed_over.store(totals.handed_over_bytes, Ordering::Relaxed);
            shared.dirty_at_save.store(changes, Ordering::Relaxed);
            shared.last_save_s.store(now_ms() / 1000, Ordering::Relaxed);
            shared.set_save_failed(false);
            true
        }
        Err(error) => {
            if !is_unwanted.load(Ordering::SeqCst) {
                log_failure(&error, &path, &temporary);
            }
            false
        }
    }
}

/// Redis' lines.
fn log_failure(failure: &SaveError, path: &Path, temporary: &Path) {
    let text = error_text(&failure.error);
    let directory = std::env::current_dir().map_or("unknown".into(), |path| path.display().to_string());
    match failure.step {
        SaveStep::Open => log!(
            Level::Warning,
            "Failed opening the temp RDB file {} (in server root dir {directory}) for saving: {text}",
            temporary.display()
        ),
        SaveStep::Write => log!(Level::Warning, "Write error while saving DB to the disk(rdbSaveRio): {text}"),
        SaveStep::Sync => log!(Level::Warning, "Write error while saving DB to the disk(fsync): {text}"),
        SaveStep::Rename => log!(
            Level::Warning,
            "Error moving temp DB file {} on the final destination {} (in server root dir {directory}): {text}",
            temporary.display(),
            path.display()
        ),
        SaveStep::SyncDirectory => log!(Level::Warning, "Failed to fsync directory while saving DB: {text}"),
    }
}
