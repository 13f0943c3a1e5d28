//! A fault of our own, told in the log with the place and the calls that led there.

use std::backtrace::Backtrace;
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicBool, Ordering};

use super::REDIS_VERSION;
use super::log::{self, Level};

static IS_ENABLED: AtomicBool = AtomicBool::new(true);

/// Lets every panic write a report into the log, in place of Rust's own message, while
/// `crash-log-enabled` is on; otherwise one line. To be called once.
pub fn install() {
    std::panic::set_hook(Box::new(report));
}

/// Follows `crash-log-enabled`.
pub fn set_enabled(is_enabled: bool) {
    IS_ENABLED.store(is_enabled, Ordering::Relaxed);
}

fn report(info: &PanicHookInfo<'_>) {
    let thread = std::thread::current();
    let thread = thread.name().unwrap_or("unnamed");
    let message = info.payload_as_str().unwrap_or("no message");
    let place = info.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
    if !IS_ENABLED.load(Ordering::Relaxed) {
        crate::log!(Level::Warning, "Fault in thread {thread} at {place}: {message}");
        return;
    }
    log::write_raw(Level::Warning, "\n\n=== REDIS BUG REPORT START: Cut & paste starting from here ===\n");
    crate::log!(Level::Warning, "Redis {REDIS_VERSION} crashed by a fault in thread {thread}");
    crate::log!(Level::Warning, "Oxidis {}: {message}, at {place}", env!("CARGO_PKG_VERSION"));
    log::write_raw(Level::Warning, &format!("\n------ STACK TRACE ------\n{}\n", Backtrace::force_capture()));
    log::write_raw(Level::Warning, "=== REDIS BUG REPORT END. ===\n\n");
}
