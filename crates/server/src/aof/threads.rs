//! The threads that force the log to disk, and that write it when workers must not.

use super::{Aof, State};
use crate::durability::claim::Purpose;
use crate::log;
use crate::process::error_text;
use crate::process::log::Level;
use crate::process::sys;
use crate::shared::Shared;
use persistence::aof::{Log, Sync};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How often the log is forced to disk under `everysec`.
const SYNC_EVERY: Duration = Duration::from_secs(1);
/// How often data are brought to disk before the file is forced, at most.
const BRING_TIMES: usize = 3;
/// Data that were brought in less are all but the last.
const BRING_QUICK: Duration = Duration::from_millis(10);
/// Between two tries after an error.
const RETRY_EVERY: Duration = Duration::from_millis(100);

impl Shared {
    /// Starts the threads, once.
    pub(crate) fn start_aof_threads(self: &Arc<Self>) -> std::io::Result<()> {
        if std::mem::replace(&mut self.aof.bell.lock().started, true) {
            return Ok(());
        }
        let shared = self.clone();
        std::thread::Builder::new().name("aof-sync".into()).spawn(move || {
            bind(&shared);
            sync_loop(&shared);
        })?;
        let shared = self.clone();
        std::thread::Builder::new().name("aof-write".into()).spawn(move || {
            bind(&shared);
            write_loop(&shared);
        })?;
        Ok(())
    }

    /// Whether the log may be left unforced now (`no-appendfsync-on-rewrite`).
    fn spares_disk(&self) -> bool {
        self.aof.spares_disk.load(Ordering::Relaxed)
            && matches!(self.durability.claims.purpose(), Some(Purpose::AofRewrite | Purpose::File))
    }
}

/// Keeps the calling thread on the processors for background work.
fn bind(shared: &Shared) {
    let list = &shared.config.snapshot().bio_cpulist;
    if let Err(error) = crate::process::system::set_processors(list) {
        log!(Level::Warning, "Cannot bind a thread to the processors of bio_cpulist: {}", error_text(&error));
    }
}

/// Writes when asked and after errors.
fn write_loop(shared: &Shared) {
    let aof = &shared.aof;
    loop {
        {
            let mut bell = aof.bell.lock();
            while !bell.write {
                if bell.end {
                    return;
                }
                let has_error = aof.write_errno.load(Ordering::SeqCst) != 0;
                if has_error {
                    let timed_out = aof.rung_write.wait_for(&mut bell, RETRY_EVERY).timed_out();
                    if timed_out {
                        break;
                    }
                } else {
                    aof.rung_write.wait(&mut bell);
                }
            }
            bell.write = false;
        }
        let is_fine = {
            let mut writer = aof.writer.lock();
            shared.write_pending(&mut writer)
        };
        aof.tell_workers(shared);
        if aof.is_always() {
            aof.ring(true, false);
        }
        if !is_fine && aof.is_fed() {
            std::thread::sleep(RETRY_EVERY);
        }
    }
}

/// Forces the file to disk.
fn sync_loop(shared: &Arc<Shared>) {
    let aof = &shared.aof;
    let mut handle: Option<Sync> = None;
    let mut last = Instant::now();
    loop {
        {
            let mut bell = aof.bell.lock();
            while !bell.sync {
                if bell.end {
                    return;
                }
                let left = SYNC_EVERY.saturating_sub(last.elapsed());
                if !aof.is_fed() {
                    aof.rung_sync.wait(&mut bell);
                } else if left.is_zero() || aof.rung_sync.wait_for(&mut bell, left).timed_out() {
                    break;
                }
            }
            bell.sync = false;
        }
        last = Instant::now();
        if aof.state() == State::Off {
            handle = None;
            continue;
        }
        let Some(upto) = prepare(shared, &mut handle) else { continue };
        let is_due = aof.is_always() || aof.is_everysec();
        if is_due && upto > aof.durable() && aof.sync_errno.load(Ordering::SeqCst) == 0 {
            if aof.is_always() {
                force(shared, &mut handle, upto);
            } else if let Some(upto) = bring_data(shared, &mut handle, upto) {
                force(shared, &mut handle, upto);
            }
        }
        aof.tell_workers(shared);
    }
}

/// Writes what is there and gets hold of the file. Gives the offset that a sync covers.
fn prepare(shared: &Arc<Shared>, handle: &mut Option<Sync>) -> Option<u64> {
    let aof = &shared.aof;
    let mut writer = aof.writer.lock();
    shared.write_pending(&mut writer);
    let log = writer.log.as_ref()?;
    if handle.as_ref().is_none_or(|handle| handle.generation != log.generation()) {
        *handle = log.sync_handle().ok();
    }
    handle.as_ref().map(|_| aof.written())
}

/// Brings the data of the file to disk while workers go on to write to it, so that forcing it, when they must not, has
/// little left to do. Gives the offset that a sync covers then; `None`: it failed.
fn bring_data(shared: &Arc<Shared>, handle: &mut Option<Sync>, mut upto: u64) -> Option<u64> {
    if shared.spares_disk() {
        return Some(upto);
    }
    for _ in 0..BRING_TIMES {
        let started = Instant::now();
        let brought = handle.as_ref().and_then(Sync::descriptor).map(sys::write_back);
        if let Some(Err(error)) = brought {
            // As a failed sync: a later one on this descriptor would not tell of it again.
            note_failure(shared, handle, &error);
            return None;
        }
        upto = prepare(shared, handle)?;
        if started.elapsed() < BRING_QUICK {
            break;
        }
    }
    Some(upto)
}

fn force(shared: &Arc<Shared>, handle: &mut Option<Sync>, upto: u64) {
    let aof = &shared.aof;
    if shared.spares_disk() {
        if aof.is_always() {
            // As in Redis: acknowledged though not on disk, as the directive says.
            aof.durable.fetch_max(upto, Ordering::SeqCst);
        }
        return;
    }
    let Some(open) = handle.as_mut() else { return };
    aof.syncing.store(true, Ordering::SeqCst);
    let started = Instant::now();
    let sleep_us = aof.flush_sleep_us.load(Ordering::Relaxed);
    if sleep_us > 0 {
        std::thread::sleep(Duration::from_micros(sleep_us));
    }
    let result = open.sync();
    let took = started.elapsed();
    aof.syncing.store(false, Ordering::SeqCst);
    let event = if aof.is_always() { "aof-fsync-always" } else { "aof-fsync" };
    let config = shared.config.snapshot();
    let milliseconds = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    let threshold = u64::try_from(config.latency_monitor_threshold).unwrap_or(0);
    if threshold > 0 && milliseconds >= threshold {
        shared.latency.note(event, super::now_s(), milliseconds);
    }
    match result {
        Ok(()) => {
            aof.durable.fetch_max(upto, Ordering::SeqCst);
            // WAITAOF.
            shared.replication.wake_waiters(shared);
        }
        Err(error) => note_failure(shared, handle, &error),
    }
}

/// The file could not be forced to disk. One that is no longer written was forced by who began the next.
fn note_failure(shared: &Arc<Shared>, handle: &mut Option<Sync>, error: &std::io::Error) {
    let aof = &shared.aof;
    let Some(open) = handle.take() else { return };
    if aof.writer.lock().log.as_ref().is_some_and(|log: &Log| log.generation() == open.generation) {
        sync_failed(shared, aof, error);
    }
}

/// What the kernel could not bring to disk may be lost though a later sync succeeds: only new files help.
fn sync_failed(shared: &Arc<Shared>, aof: &Aof, error: &std::io::Error) {
    log!(
        Level::Warning,
        "Fail to fsync the AOF file: {}. Writes are refused until the log is rewritten into new files.",
        error_text(error)
    );
    aof.sync_errno.store(error.raw_os_error().unwrap_or(libc::EIO), Ordering::SeqCst);
    shared.heed_aof();
    aof.rewrite.schedule();
}
