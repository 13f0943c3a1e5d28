//! The server as a process: log, signals, background, limits, and what the kernel is told about it.
//!
//! These are pieces that the server's main calls in this order: read the configuration, set up the
//! [`log`], [`system::warn_about_memory`], [`supervise::announce_start`], [`daemon::daemonize`] before any thread
//! exists, the start lines of [`banner`], [`limits`], [`daemon::write_pid_file`], [`title`], the listeners of
//! [`listen`], [`signals::watch`], [`crash::install`]. Nothing here knows sessions or keys.
//!
//! All `unsafe` is in the private module `sys`.

pub mod allocator;
pub mod banner;
pub mod crash;
pub mod daemon;
pub mod limits;
pub mod listen;
pub mod log;
pub mod signals;
pub mod supervise;
pub(crate) mod sys;
pub mod system;
pub mod title;
pub mod usage;

#[cfg(test)]
mod tests;

/// The version of Redis whose behaviour is ours.
pub const REDIS_VERSION: &str = "7.2.5";

/// The text of an error as C's `strerror` has it, without the number that Rust adds.
#[must_use]
pub fn error_text(error: &std::io::Error) -> String {
    let text = error.to_string();
    match error.raw_os_error() {
        Some(number) => text.trim_end_matches(&format!(" (os error {number})")).to_owned(),
        None => text,
    }
}

/// Unix time in milliseconds.
#[must_use]
pub fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Milliseconds on a clock that does not jump with the wall's: for how long something takes. Never 0.
#[must_use]
pub fn steady_ms() -> i64 {
    static BEGIN: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    let elapsed = BEGIN.get_or_init(std::time::Instant::now).elapsed();
    i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX - 1) + 1
}

/// The umask of the process: the bits that new files do not get. It is read from the kernel's report,
/// because the system call can only set it, which other threads would notice.
#[must_use]
pub fn file_mode_mask() -> u32 {
    std::fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| {
            let line = status.lines().find_map(|line| line.strip_prefix("Umask:"))?;
            u32::from_str_radix(line.trim(), 8).ok()
        })
        .unwrap_or(0o022)
}
