//! Ctrl-C, where it does not simply end the program.
//!
//! At the prompt it interrupts a wait for a reply: the signal handler writes to a socket pair that the wait polls.
//! In loops over the key space it asks for the summary: a flag.

use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::SIGINT;

static PIPE: OnceLock<UnixStream> = OnceLock::new();

/// From here on Ctrl-C interrupts waits instead of ending the program. Where the system refuses, it still ends it.
pub(crate) fn interrupt_waits() {
    let Ok((reader, writer)) = UnixStream::pair() else {
        return;
    };
    if reader.set_nonblocking(true).is_ok()
        && writer.set_nonblocking(true).is_ok()
        && signal_hook::low_level::pipe::register(SIGINT, writer).is_ok()
    {
        let _ = PIPE.set(reader);
    }
}

/// What becomes readable with Ctrl-C; `None` while Ctrl-C ends the program.
pub(crate) fn pipe() -> Option<BorrowedFd<'static>> {
    PIPE.get().map(AsFd::as_fd)
}

/// Whether Ctrl-C was pressed since the last call.
pub(crate) fn take() -> bool {
    let mut buffer = [0; 64];
    let mut pressed = false;
    while let Some(mut pipe) = PIPE.get() {
        match pipe.read(&mut buffer) {
            Ok(count) if count > 0 => pressed = true,
            _ => break,
        }
    }
    pressed
}

/// A flag that Ctrl-C raises instead of ending the program.
pub(crate) fn stop_flag() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    let _ = signal_hook::flag::register(SIGINT, Arc::clone(&flag));
    flag
}

/// Whether the flag is up.
pub(crate) fn stopped(flag: &AtomicBool) -> bool {
    // Nothing else is published with the flag.
    flag.load(Ordering::Relaxed)
}
