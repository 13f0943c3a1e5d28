//! Signals: SIGTERM and SIGINT ask for a shutdown, SIGHUP and SIGPIPE are ignored.
//!
//! A thread of its own waits for them, so the code that reacts is ordinary code, not a handler.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

use super::{log, sys};

/// A signal that asks for a shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShutdownSignal {
    /// SIGTERM: act as `shutdown-on-sigterm` says.
    Term,
    /// SIGINT: act as `shutdown-on-sigint` says.
    Int,
}

/// Keeps the signals watched until it is closed.
#[derive(Debug)]
pub struct SignalWatch {
    handle: Handle,
    is_requested: Arc<AtomicBool>,
}

impl SignalWatch {
    /// Notes that the requested shutdown is not going to happen, because it failed or was aborted, so
    /// that the next SIGINT is a request again and does not end the process at once.
    pub fn forget_request(&self) {
        self.is_requested.store(false, Ordering::Relaxed);
    }

    /// Whether a shutdown is requested; to be cleared when it is not going to happen.
    pub fn request(&self) -> Arc<AtomicBool> {
        self.is_requested.clone()
    }

    /// Stops watching; later signals are caught but have no effect.
    pub fn close(self) {
        self.handle.close();
    }
}

/// Watches for signals from now on. `on_shutdown` is called on the watching thread for each request,
/// and should only note the wish and wake somebody. A SIGINT while a request is pending ends the process
/// at once with code 1: whoever types it twice means it.
///
/// To be called after [`daemonize`](super::daemon::daemonize), because it starts a thread.
pub fn watch(mut on_shutdown: impl FnMut(ShutdownSignal) + Send + 'static) -> io::Result<SignalWatch> {
    ignore_disconnects();
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    let handle = signals.handle();
    let is_requested = Arc::new(AtomicBool::new(false));
    let requested = Arc::clone(&is_requested);
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        for signal in &mut signals {
            let (name, wish) = match signal {
                SIGINT if requested.load(Ordering::Relaxed) => {
                    log::write_signal("You insist... exiting now.");
                    std::process::exit(1);
                }
                SIGINT => ("SIGINT", ShutdownSignal::Int),
                _ => ("SIGTERM", ShutdownSignal::Term),
            };
            log::write_signal(&format!("Received {name} scheduling shutdown..."));
            requested.store(true, Ordering::Relaxed);
            on_shutdown(wish);
        }
    })?;
    Ok(SignalWatch { handle, is_requested })
}

/// Ignores the signals of a lost terminal and of a closed connection.
pub fn ignore_disconnects() {
    sys::ignore_signal(libc::SIGHUP);
    sys::ignore_signal(libc::SIGPIPE);
}
