//! The disk, as far as durability needs it: a seam, so that tests can take the power away or make calls fail.
//!
//! What POSIX promises is what [`SimulatedDisk`] keeps to: bytes are on disk after `sync`, names (created, renamed,
//! removed) after `sync_directory`; before that a crash may keep or lose each of them.

mod real;
mod simulated;
#[cfg(test)]
mod tests;

pub use real::RealDisk;
pub use simulated::{Fault, Operation, SimulatedDisk};

use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;

/// A file system.
pub trait Disk: Send + Sync {
    /// Opens a new file to write, or an old one emptied.
    ///
    /// # Errors
    /// The operating system's.
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;

    /// Opens a file to write at its end, made when missing.
    ///
    /// # Errors
    /// The operating system's.
    fn append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;

    /// Opens a file to read, and tells its length.
    ///
    /// # Errors
    /// The operating system's.
    fn open(&self, path: &Path) -> io::Result<(Box<dyn io::Read + Send>, u64)>;

    /// Gives a file another name, in place of the file that had it.
    ///
    /// # Errors
    /// The operating system's.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// The operating system's.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes a directory; fine if it is there.
    ///
    /// # Errors
    /// The operating system's.
    fn create_directory(&self, path: &Path) -> io::Result<()>;

    /// Names in a directory.
    ///
    /// # Errors
    /// The operating system's.
    fn list(&self, directory: &Path) -> io::Result<Vec<String>>;

    /// Forces the names in a directory to disk.
    ///
    /// # Errors
    /// The operating system's.
    fn sync_directory(&self, directory: &Path) -> io::Result<()>;
}

/// A file open to write.
pub trait DiskFile: Send {
    /// Writes some bytes at the end; how many were taken.
    ///
    /// # Errors
    /// The operating system's.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Forces what was written to disk.
    ///
    /// # Errors
    /// The operating system's. What was written before may be lost then, and a later success does not tell otherwise.
    fn sync(&mut self) -> io::Result<()>;

    /// Cuts the file.
    ///
    /// # Errors
    /// The operating system's.
    fn truncate(&mut self, len: u64) -> io::Result<()>;

    /// Its descriptor, for who has more to say to the kernel about it. `None`: it is no file of the kernel's.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Writes all of `bytes`.
    ///
    /// # Errors
    /// As [`DiskFile::write`].
    fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(taken) => bytes = bytes.get(taken..).unwrap_or(&[]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The directory that a path lies in.
pub fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
