//! A snapshot into a file.

use super::{Encoder, Header};
use crate::disk::{Disk, DiskFile, directory_of};
use keyspace::snapshot::{SnapshotSink, Totals};
use std::io;
use std::path::Path;

/// Bytes gathered for one write.
const WRITE_BYTES: usize = 256 << 10;
/// Bytes after which the file is forced to disk (`rdb-save-incremental-fsync`), as in Redis.
const SYNC_BYTES: usize = 4 << 20;

/// What was being done when saving failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SaveStep {
    /// Opening the temporary file.
    Open,
    /// Taking the snapshot and writing it.
    Write,
    /// Forcing it to disk.
    Sync,
    /// Putting it in the place of the old one.
    Rename,
    /// Forcing the new name to disk.
    SyncDirectory,
}

/// Why a file could not be saved. The old one is as it was, unless the directory could not be forced to disk.
#[derive(Debug, thiserror::Error)]
#[error("saving failed while {step:?}: {error}")]
pub struct SaveError {
    /// What was being done.
    pub step: SaveStep,
    /// What stood in the way.
    #[source]
    pub error: io::Error,
}

/// Saves the snapshot that `take` writes as the file `path`, by way of `temporary` in the same directory.
///
/// # Errors
/// What failed and where. The temporary file is gone, as far as the disk lets it.
pub fn save(
    disk: &dyn Disk,
    path: &Path,
    temporary: &Path,
    header: &Header,
    syncs_in_pieces: bool,
    take: impl FnOnce(&mut dyn SnapshotSink) -> io::Result<Totals>,
) -> Result<Totals, SaveError> {
    let at = |step: SaveStep| move |error: io::Error| SaveError { step, error };
    // The snapshot has begun: whatever happens to the file, it must be run to its end.
    let file = disk.create(temporary);
    let (file, error) = match file {
        Ok(file) => (Some(file), None),
        Err(error) => (None, Some(error)),
    };
    let mut sink = FileSink { file, error, buffer: Vec::new(), unsynced: syncs_in_pieces.then_some(0) };
    let is_open = sink.file.is_some();
    let written = write(&mut sink, header, take);
    let synced = written.map_err(at(if is_open { SaveStep::Write } else { SaveStep::Open })).and_then(|totals| {
        sink.sync().map_err(at(SaveStep::Sync))?;
        Ok(totals)
    });
    drop(sink);
    let renamed = synced.and_then(|totals| {
        disk.rename(temporary, path).map_err(at(SaveStep::Rename))?;
        Ok(totals)
    });
    match renamed {
        Ok(totals) => {
            disk.sync_directory(directory_of(path)).map_err(at(SaveStep::SyncDirectory))?;
            Ok(totals)
        }
        Err(error) => {
            if is_open {
                // If even that fails, there is nothing more to be done: the next save overwrites it.
                let _ = disk.remove(temporary);
            }
            Err(error)
        }
    }
}

fn write(
    sink: &mut FileSink,
    header: &Header,
    take: impl FnOnce(&mut dyn SnapshotSink) -> io::Result<Totals>,
) -> io::Result<Totals> {
    let mut encoder = match Encoder::begin(sink, header) {
        Ok(encoder) => encoder,
        Err(error) => {
            // Without output the snapshot still has to be run.
            let _ = take(&mut Refusing);
            return Err(error);
        }
    };
    let totals = take(&mut encoder)?;
    encoder.finish()?;
    sink.flush()?;
    Ok(totals)
}

/// A sink for a snapshot that has nowhere to go.
struct Refusing;

impl SnapshotSink for Refusing {
    fn block(&mut self, _bytes: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Interrupted.into())
    }

    fn idle(&mut self) -> io::Result<()> {
        Err(io::ErrorKind::Interrupted.into())
    }
}

/// Gathers blocks into larger writes.
struct FileSink {
    file: Option<Box<dyn DiskFile>>,
    /// Why there is no file.
    error: Option<io::Error>,
    buffer: Vec<u8>,
    /// Bytes written since the last sync, if it is done in pieces.
    unsynced: Option<usize>,
}

impl FileSink {
    fn file(&mut self) -> io::Result<&mut Box<dyn DiskFile>> {
        let error = &mut self.error;
        self.file.as_mut().ok_or_else(|| error.take().unwrap_or_else(|| io::ErrorKind::NotFound.into()))
    }

    fn flush(&mut self) -> io::Result<()> {
        let buffer = std::mem::take(&mut self.buffer);
        self.file()?.write_all(&buffer)?;
        let written = buffer.len();
        self.buffer = buffer;
        self.buffer.clear();
        if let Some(unsynced) = &mut self.unsynced {
            *unsynced += written;
            if *unsynced >= SYNC_BYTES {
                *unsynced = 0;
                self.sync()?;
            }
        }
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file()?.sync()
    }
}

impl SnapshotSink for FileSink {
    fn block(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.file.is_none() {
            self.file()?;
        }
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= WRITE_BYTES { self.flush() } else { Ok(()) }
    }
}
