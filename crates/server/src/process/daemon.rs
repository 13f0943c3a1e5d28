//! Going to the background, and the file that says which process that is.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use super::error_text;
use super::log::Level;
use super::sys::{self, Fork};
use crate::config::Config;

/// Where the number goes when the server runs in the background and no `pidfile` is set.
const DEFAULT_PID_FILE: &str = "/var/run/redis.pid";

/// Goes to the background: the calling process exits with 0, and a child goes on in a session of its
/// own, with its standard streams on /dev/null.
///
/// Must be called before any thread is started; it fails otherwise.
pub fn daemonize() -> io::Result<()> {
    if let Fork::Parent = sys::fork_single_threaded()? {
        std::process::exit(0);
    }
    // It can only fail for a leader of a process group, which a fresh child is not.
    let _ = rustix::process::setsid();
    let null = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    sys::replace_standard_streams(&null)
}

/// A pid file that was written.
#[derive(Debug)]
pub struct PidFile {
    path: PathBuf,
}

/// Writes the pid file if one is set or the server runs in the background. A failure is only logged:
/// a server that serves is worth more than one that does not for want of this file.
pub fn write_pid_file(config: &Config, is_background: bool) -> Option<PidFile> {
    let path = match (config.pidfile.as_slice(), is_background) {
        (b"", false) => return None,
        (b"", true) => PathBuf::from(DEFAULT_PID_FILE),
        (path, _) => PathBuf::from(OsStr::from_bytes(path)),
    };
    let path = std::path::absolute(&path).unwrap_or(path);
    match std::fs::write(&path, format!("{}\n", std::process::id())) {
        Ok(()) => Some(PidFile { path }),
        Err(error) => {
            crate::log!(Level::Warning, "Failed to write PID file: {}", error_text(&error));
            None
        }
    }
}

impl PidFile {
    /// Removes the file, at a clean exit.
    pub fn remove(self) {
        crate::log!(Level::Notice, "Removing the pid file.");
        // It may be gone already, and nothing depends on it any more.
        drop(std::fs::remove_file(&self.path));
    }
}
