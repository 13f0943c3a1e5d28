//! From the journal into the file.

use super::Aof;
use crate::log;
use crate::process::error_text;
use crate::process::log::Level;
use crate::shared::Shared;
use keyspace::journal::Reader;
use persistence::aof::Log;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Bytes of the journal taken for one write.
const WRITE_BYTES: usize = 4 << 20;
/// Memory that the buffer keeps.
const KEPT_BYTES: usize = 256 << 10;
/// Between two log lines about the same error, as in Redis.
const LOG_EVERY: Duration = Duration::from_secs(30);

/// What writes the log; one thread at a time has it.
#[derive(Default)]
pub(crate) struct Writer {
    pub(crate) log: Option<Log>,
    pub(crate) reader: Option<Reader>,
    /// Read from the journal and not in the file yet.
    pending: Vec<u8>,
    /// The second that the last time annotation tells.
    stamped_s: i64,
    /// The last read ended at the journal's end, so between commands.
    is_between: bool,
    logged: Option<Instant>,
}

impl Writer {
    /// Forces the file to disk here and now. True: it is.
    pub(crate) fn sync_here(&mut self, aof: &Aof) -> bool {
        if aof.sync_errno.load(Ordering::SeqCst) != 0 {
            return false;
        }
        let upto = aof.written();
        match self.log.as_mut().map(Log::sync) {
            None => false,
            Some(Ok(())) => {
                aof.durable.fetch_max(upto, Ordering::SeqCst);
                true
            }
            Some(Err(error)) => {
                aof.sync_errno.store(error.raw_os_error().unwrap_or(libc::EIO), Ordering::SeqCst);
                false
            }
        }
    }

    /// Begins to read the journal and write a log, from the reader's place on.
    pub(crate) fn start(&mut self, log: Log, reader: Reader) {
        self.log = Some(log);
        self.reader = Some(reader);
        self.pending = Vec::new();
        self.stamped_s = 0;
        self.is_between = true;
    }

    /// Ends it. What was not written is dropped.
    pub(crate) fn stop(&mut self) {
        *self = Writer::default();
    }

    /// Drops what is not in the file and reads on from `to`: a base holds all before.
    pub(crate) fn skip_to(&mut self, to: u64) {
        self.pending.clear();
        self.is_between = true;
        if let Some(reader) = &mut self.reader {
            reader.skip_to(to);
        }
    }
}

impl Shared {
    /// Writes what the journal holds. True: all of it (up to where the reader may go) is in the file.
    pub(crate) fn write_pending(&self, writer: &mut Writer) -> bool {
        let Writer { log: Some(file), reader: Some(reader), pending, .. } = writer else { return false };
        let mut is_stamped = false;
        loop {
            if pending.is_empty() {
                let stamp_s = super::now_s();
                if self.aof.stamps.load(Ordering::Relaxed)
                    && writer.is_between
                    && !is_stamped
                    && stamp_s != writer.stamped_s
                {
                    pending.extend_from_slice(format!("#TS:{stamp_s}\r\n").as_bytes());
                }
                let stamp = pending.len();
                let read = reader.read_for_file(pending, WRITE_BYTES, u64::MAX);
                if pending.len() == stamp {
                    // Nothing came: no annotation either.
                    pending.clear();
                    if read.is_ok() {
                        self.note_written(reader.position());
                    }
                    return true;
                }
                if stamp > 0 {
                    writer.stamped_s = stamp_s;
                    is_stamped = true;
                }
                writer.is_between = reader.behind() == 0;
            }
            match file.write(pending) {
                Ok(()) => {
                    pending.clear();
                    pending.shrink_to(KEPT_BYTES);
                    self.aof.figures.bytes.store(file.bytes(), Ordering::Relaxed);
                    self.note_written(reader.position());
                }
                Err(failure) => {
                    self.note_write_error(&failure, pending.len(), &mut writer.logged);
                    return false;
                }
            }
        }
    }

    fn note_written(&self, upto: u64) {
        let aof = &self.aof;
        aof.written.store(upto, Ordering::Release);
        if aof.write_errno.load(Ordering::Relaxed) != 0 {
            aof.write_errno.store(0, Ordering::SeqCst);
            log!(Level::Warning, "AOF write error looks solved, Redis can write again.");
            self.heed_aof();
        }
        if aof.stalled.load(Ordering::Relaxed) && self.keyspace.journal.end().saturating_sub(upto) < WRITE_BYTES as u64
        {
            aof.stalled.store(false, Ordering::SeqCst);
        }
        if aof.full.load(Ordering::Relaxed) {
            aof.full.store(false, Ordering::SeqCst);
        }
    }

    fn note_write_error(&self, failure: &persistence::aof::WriteError, wanted: usize, logged: &mut Option<Instant>) {
        let errno = failure.error.raw_os_error().unwrap_or(libc::ENOSPC);
        if logged.is_none_or(|at| at.elapsed() >= LOG_EVERY) {
            *logged = Some(Instant::now());
            if failure.written == 0 {
                log!(Level::Warning, "Error writing to the AOF file: {}", error_text(&failure.error));
            } else {
                log!(
                    Level::Warning,
                    "Short write while writing to the AOF file: (nwritten={}, expected={wanted})",
                    failure.written
                );
            }
            if failure.is_torn {
                log!(
                    Level::Warning,
                    "Could not remove short write from the append-only file.  Redis may refuse to load the AOF the next time it starts.  ftruncate: {}",
                    error_text(&failure.error)
                );
            }
        }
        self.aof.write_errno.store(errno, Ordering::SeqCst);
        self.heed_aof();
        // The writing thread tries again.
        self.aof.ring(false, true);
    }
}
