//! Talking to a supervisor: systemd by messages to its socket, Upstart by stopping ourselves.

use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use super::error_text;
use super::log::Level;
use super::sys;
use crate::config::Supervised;

/// Somebody supervises us, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Supervisor {
    /// Upstart, which was told by stopping.
    Upstart,
    /// systemd, which waits for messages.
    Systemd,
}

/// Finds the supervisor and tells it that we are starting. `None`: there is none, or it cannot be
/// reached, which is logged. A supervised server does not go to the background.
///
/// Must be called before any thread is started.
#[must_use]
pub fn announce_start(mode: Supervised) -> Option<Supervisor> {
    let has = |name: &str| std::env::var_os(name).is_some();
    let mode = match mode {
        Supervised::Auto if has("UPSTART_JOB") => {
            crate::log!(Level::Verbose, "Upstart supervision detected.");
            Supervised::Upstart
        }
        Supervised::Auto if has("NOTIFY_SOCKET") => {
            crate::log!(Level::Verbose, "Systemd supervision detected.");
            Supervised::Systemd
        }
        other => other,
    };
    match mode {
        Supervised::Upstart if !has("UPSTART_JOB") => {
            crate::log!(Level::Warning, "upstart supervision requested, but UPSTART_JOB not found!");
            None
        }
        Supervised::Upstart => {
            crate::log!(Level::Notice, "supervised by upstart, will stop to signal readiness.");
            sys::stop_self();
            sys::remove_environment_variable("UPSTART_JOB");
            Some(Supervisor::Upstart)
        }
        Supervised::Systemd if notify("STATUS=Redis is loading...\n") => {
            crate::log!(
                Level::Notice,
                "Supervised by systemd. Please make sure you set appropriate values for TimeoutStartSec and TimeoutStopSec in your service unit."
            );
            Some(Supervisor::Systemd)
        }
        Supervised::Systemd | Supervised::Auto | Supervised::No => None,
    }
}

/// Tells systemd that connections are accepted. `follows_primary`: we are a replica that has yet to
/// synchronize.
pub fn announce_ready(supervisor: Option<Supervisor>, follows_primary: bool) {
    if supervisor == Some(Supervisor::Systemd) {
        notify(if follows_primary {
            "STATUS=Ready to accept connections in read-only mode. Waiting for MASTER <-> REPLICA sync\n"
        } else {
            "STATUS=Ready to accept connections\n"
        });
        notify("READY=1\n");
    }
}

/// Tells systemd that we are on the way out.
pub fn announce_stop(supervisor: Option<Supervisor>) {
    if supervisor == Some(Supervisor::Systemd) {
        notify("STOPPING=1\n");
    }
}

/// Sends a message to the socket that NOTIFY_SOCKET names; a failure is logged.
fn notify(message: &str) -> bool {
    let Some(path) = std::env::var_os("NOTIFY_SOCKET") else {
        crate::log!(Level::Warning, "systemd supervision error: NOTIFY_SOCKET not found!");
        return false;
    };
    let sent = send(path.as_bytes(), message);
    if let Err(error) = &sent {
        crate::log!(Level::Warning, "systemd supervision error: sd_notify: {}", error_text(error));
    }
    sent.is_ok()
}

pub(super) fn send(path: &[u8], message: &str) -> io::Result<()> {
    // A leading @ means a name outside the file system.
    let address = match path.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(path))?,
    };
    UnixDatagram::unbound()?.send_to_addr(message.as_bytes(), &address)?;
    Ok(())
}
