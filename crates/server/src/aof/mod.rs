//! The append only file of a running server.
//!
//! ```text
//!  workers ─ append to the journal under their locks; at the end of their turn write(2) what is there (group commit),
//!     │      then let the replies go                              appendfsync everysec, no
//!     └───── hold the replies of connections that wrote until the sync thread has forced them to disk       always
//!  aof-sync   forces the file to disk: at once, again and again (always), or once a second (everysec)
//!  aof-write  writes when a worker must not: while the file is being forced to disk, and after errors
//! ```
//!
//! - [`Aof`]: offsets up to which the journal is written and on disk, and up to which replies may go.
//! - [`writer`]: from the journal into the file. [`threads`]: the two threads. [`hold`]: the workers' part.
//! - [`rewrite`]: BGREWRITEAOF, switching on and off. [`load`]: replaying at start.
//!
//! Acknowledged is what was written: under `everysec` a killed process loses nothing, a power cut what is not on disk yet.
//! A disk that stalls does not stall clients: a reply is held back for [`HOLD_MAX`] at most, and from then on none until
//! the disk has caught up; writes wait only when more than `aof-stalled-buffer-limit` has come together.
//!
//! Errors: a write that fails is tried again, writes of clients being refused meanwhile. A sync that fails is *not* tried
//! again on the same file, since the kernel may have dropped what it could not write: the log is rewritten into new files
//! from memory, and clients' writes are refused until that is done.

pub(crate) mod hold;
mod lanes;
pub mod load;
pub mod rewrite;
#[cfg(test)]
mod tests;
mod threads;
mod writer;

use crate::config::{AppendFsync, Config};
use crate::shared::Shared;
use crate::worker::Message;
use commands::CmdError;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};
pub(crate) use writer::Writer;

/// A reply waits so long at most for its write to the file while the file is being forced to disk.
pub(crate) const HOLD_MAX: Duration = Duration::from_millis(50);
/// The same while it is not: then a write takes no time, unless the threads do not get to run.
pub(crate) const HOLD_MAX_WRITING: Duration = Duration::from_millis(1000);

/// Whether there is a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// None.
    Off,
    /// Its first base is being written: the log is no good without it yet.
    Waiting,
    /// There is.
    On,
}

/// See the module. Part of [`Shared`].
pub struct Aof {
    pub(crate) writer: Mutex<Writer>,
    state: AtomicU8,
    policy: AtomicU8,
    /// Journal offset up to which the file was written.
    written: AtomicU64,
    /// Journal offset up to which the file was forced to disk.
    durable: AtomicU64,
    /// The file is being forced to disk.
    syncing: AtomicBool,
    /// The disk does not keep up: replies are not held back.
    stalled: AtomicBool,
    /// Error of the last write, 0 none.
    write_errno: AtomicI32,
    /// Error of the last sync, 0 none: nothing but a rewrite helps.
    sync_errno: AtomicI32,
    /// So much waits to be written that clients' writes wait, too.
    full: AtomicBool,
    /// `aof-timestamp-enabled`.
    stamps: AtomicBool,
    /// `no-appendfsync-on-rewrite`.
    spares_disk: AtomicBool,
    /// DEBUG AOF-FLUSH-SLEEP: microseconds that forcing the log to disk takes longer.
    pub(crate) flush_sleep_us: AtomicU64,
    /// Workers that hold replies back, a bit each (those beyond 63 share bits).
    waiting: AtomicU64,
    bell: Mutex<Bell>,
    /// For the thread that syncs.
    rung_sync: Condvar,
    /// For the thread that writes.
    rung_write: Condvar,
    pub(crate) figures: Figures,
    pub(crate) rewrite: rewrite::Rewrites,
}

/// What the threads are to do.
#[derive(Default)]
struct Bell {
    sync: bool,
    write: bool,
    end: bool,
    started: bool,
}

/// Figures for INFO.
#[derive(Default)]
pub(crate) struct Figures {
    pub(crate) bytes: AtomicU64,
    pub(crate) base_bytes: AtomicU64,
    pub(crate) delayed: AtomicU64,
}

impl Default for Aof {
    fn default() -> Self {
        Aof {
            writer: Mutex::default(),
            state: AtomicU8::new(0),
            policy: AtomicU8::new(1),
            written: AtomicU64::new(0),
            durable: AtomicU64::new(0),
            syncing: AtomicBool::new(false),
            stalled: AtomicBool::new(false),
            write_errno: AtomicI32::new(0),
            sync_errno: AtomicI32::new(0),
            full: AtomicBool::new(false),
            stamps: AtomicBool::new(false),
            spares_disk: AtomicBool::new(false),
            flush_sleep_us: AtomicU64::new(0),
            waiting: AtomicU64::new(0),
            bell: Mutex::default(),
            rung_sync: Condvar::new(),
            rung_write: Condvar::new(),
            figures: Figures::default(),
            rewrite: rewrite::Rewrites::default(),
        }
    }
}

fn policy_number(policy: AppendFsync) -> u8 {
    match policy {
        AppendFsync::Always => 0,
        AppendFsync::Everysec => 1,
        AppendFsync::No => 2,
    }
}

impl Aof {
    /// Whether there is a log.
    pub fn state(&self) -> State {
        match self.state.load(Ordering::SeqCst) {
            0 => State::Off,
            1 => State::Waiting,
            _ => State::On,
        }
    }

    pub(crate) fn set_state(&self, state: State) {
        let number = match state {
            State::Off => 0,
            State::Waiting => 1,
            State::On => 2,
        };
        self.state.store(number, Ordering::SeqCst);
    }

    /// Whether changes go to a file at all.
    #[inline]
    pub(crate) fn is_fed(&self) -> bool {
        self.state.load(Ordering::Relaxed) != 0
    }

    /// Follows the configuration.
    pub(crate) fn adopt(&self, config: &Config) {
        self.policy.store(policy_number(config.appendfsync), Ordering::SeqCst);
        self.stamps.store(config.aof_timestamp_enabled, Ordering::SeqCst);
        self.spares_disk.store(config.no_appendfsync_on_rewrite, Ordering::SeqCst);
        // A policy that asks for more has its work begun.
        self.ring(true, true);
    }

    /// The log begins at this offset of the journal; all before is in its files.
    pub(crate) fn note_start(&self, at: u64) {
        self.written.store(at, Ordering::SeqCst);
        self.durable.store(at, Ordering::SeqCst);
    }

    /// Whether clients' writes are to wait for the disk.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    pub(crate) fn is_always(&self) -> bool {
        self.policy.load(Ordering::Relaxed) == policy_number(AppendFsync::Always)
    }

    fn is_everysec(&self) -> bool {
        self.policy.load(Ordering::Relaxed) == policy_number(AppendFsync::Everysec)
    }

    /// Journal offset up to which the log was written.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// Journal offset up to which the log is on disk; for WAITAOF and for acknowledging to a primary.
    pub fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    /// Journal offset up to which replies may go to clients.
    #[inline]
    pub(crate) fn released(&self) -> u64 {
        if self.state.load(Ordering::Relaxed) != 2 {
            return u64::MAX;
        }
        if self.is_always() {
            self.durable()
        } else if self.stalled.load(Ordering::Relaxed) {
            u64::MAX
        } else {
            self.written()
        }
    }

    /// The error that keeps the log from being written, if there is one.
    pub(crate) fn errno(&self) -> Option<i32> {
        let write = self.write_errno.load(Ordering::SeqCst);
        let errno = if write != 0 { write } else { self.sync_errno.load(Ordering::SeqCst) };
        (errno != 0 && self.is_fed()).then_some(errno)
    }

    /// The answer to a write while the log cannot be written, as in Redis.
    pub(crate) fn refusal(&self) -> Option<CmdError> {
        let errno = self.errno()?;
        let text = crate::process::error_text(&std::io::Error::from_raw_os_error(errno));
        Some(CmdError::text(format!("MISCONF Errors writing to the AOF file: {text}")))
    }

    /// Has the threads look for work.
    fn ring(&self, sync: bool, write: bool) {
        let mut bell = self.bell.lock();
        if sync && !std::mem::replace(&mut bell.sync, true) {
            self.rung_sync.notify_one();
        }
        if write && !std::mem::replace(&mut bell.write, true) {
            self.rung_write.notify_one();
        }
    }

    /// Has the threads end.
    fn end_threads(&self) {
        self.bell.lock().end = true;
        self.rung_sync.notify_all();
        self.rung_write.notify_all();
    }

    /// Tells workers that hold replies back that some may go.
    fn tell_workers(&self, shared: &Shared) {
        let mut waiting = self.waiting.swap(0, Ordering::SeqCst);
        while waiting != 0 {
            let bit = waiting.trailing_zeros();
            waiting &= waiting - 1;
            let mut worker = bit as usize;
            while worker < shared.workers() {
                #[allow(clippy::cast_possible_truncation)]
                shared.post(worker as u16, Message::Call(Box::new(|_, _| {})));
                worker += 64;
            }
        }
    }
}

/// What INFO tells.
pub(crate) struct Report {
    pub(crate) buffer_bytes: u64,
    pub(crate) pending_syncs: u64,
    pub(crate) delayed: u64,
    pub(crate) bytes: u64,
    pub(crate) base_bytes: u64,
    pub(crate) is_stalled: bool,
}

impl Shared {
    /// What INFO tells of the log.
    pub(crate) fn aof_report(&self) -> Report {
        let aof = &self.aof;
        Report {
            buffer_bytes: if aof.is_fed() { self.keyspace.journal.end().saturating_sub(aof.written()) } else { 0 },
            pending_syncs: u64::from(aof.syncing.load(Ordering::Relaxed)),
            delayed: aof.figures.delayed.load(Ordering::Relaxed),
            bytes: aof.figures.bytes.load(Ordering::Relaxed),
            base_bytes: aof.figures.base_bytes.load(Ordering::Relaxed),
            is_stalled: aof.stalled.load(Ordering::Relaxed),
        }
    }

    /// Brings to the log what came from a primary; from the thread that follows it.
    pub(crate) fn log_followed(&self) {
        if !self.aof.is_fed() || self.aof.written() >= self.keyspace.journal.end() {
            return;
        }
        let mut writer = self.aof.writer.lock();
        self.write_pending(&mut writer);
        drop(writer);
        if self.aof.is_always() {
            self.aof.ring(true, false);
        }
    }

    /// Has workers heed the state of the log.
    pub(crate) fn heed_aof(&self) {
        self.durability.aof_restricts.store(self.aof.errno().is_some(), Ordering::SeqCst);
        self.durability.renew_restriction();
    }

    /// Forces the log to disk, as far as that goes, for the end of the process.
    pub(crate) fn finish_aof(self: &Arc<Self>) -> bool {
        if !self.aof.is_fed() {
            return true;
        }
        self.aof.end_threads();
        crate::log!(crate::process::log::Level::Notice, "Calling fsync() on the AOF file.");
        let mut writer = self.aof.writer.lock();
        self.write_pending(&mut writer);
        let fine = writer.sync_here(&self.aof);
        if !fine {
            crate::log!(crate::process::log::Level::Warning, "Fail to fsync the AOF file");
        }
        fine && self.aof.errno().is_none()
    }
}

/// How long something took, in Redis' form for log lines.
pub(crate) fn seconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64()
}

/// Unix seconds; for figures.
pub(crate) fn now_s() -> i64 {
    crate::process::now_ms() / 1000
}
