//! The log, line by line as Redis writes it: `PID:M 30 Nov 2026 11:13:50.123 * text`.
//!
//! `M` is the role: `M` primary, `S` replica, `C` child, `X` sentinel; the sign before the text is the level.
//! Lines go to standard output or to the log file, which is opened anew for each line so that it can
//! be moved away under the server, and to syslog if that is on. A line is one write, so lines of
//! several threads do not mix. A failed write is dropped: there is nowhere to tell it.

use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::RwLock;

use super::sys;
use crate::config::{Config, LogLevel, SyslogFacility};

/// How important a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// For developers.
    Debug = 0,
    /// Rarely useful detail.
    Verbose = 1,
    /// What a production server should tell.
    Notice = 2,
    /// What somebody should look at.
    Warning = 3,
}

impl Level {
    fn sign(self) -> char {
        match self {
            Level::Debug => '.',
            Level::Verbose => '-',
            Level::Notice => '*',
            Level::Warning => '#',
        }
    }

    fn syslog_priority(self) -> i32 {
        match self {
            Level::Debug => libc::LOG_DEBUG,
            Level::Verbose => libc::LOG_INFO,
            Level::Notice => libc::LOG_NOTICE,
            Level::Warning => libc::LOG_WARNING,
        }
    }
}

/// The part that a server plays, as its log lines show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It takes writes.
    Primary,
    /// It follows another server.
    Replica,
    /// It watches other servers.
    Sentinel,
}

static LOWEST_LEVEL: AtomicU8 = AtomicU8::new(Level::Notice as u8);
static ROLE: AtomicU8 = AtomicU8::new(b'M');
static TO_SYSLOG: AtomicBool = AtomicBool::new(false);
/// `None` is standard output.
static FILE: RwLock<Option<PathBuf>> = RwLock::new(None);

/// Writes one line if its level is not below `loglevel`: `log!(Level::Notice, "took {} ms", time)`.
#[macro_export]
macro_rules! log {
    ($level:expr, $($format:tt)+) => {{
        let level: $crate::process::log::Level = $level;
        if $crate::process::log::is_enabled(level) {
            $crate::process::log::write(level, format_args!($($format)+));
        }
    }};
}

/// Sets level, file and syslog from the configuration.
pub fn configure(config: &Config) {
    set_level(config.loglevel);
    let path = std::ffi::OsString::from_vec(config.logfile.clone());
    *FILE.write() = if path.is_empty() {
        None
    } else {
        // Made absolute at once: `dir` may change later.
        Some(std::path::absolute(&path).unwrap_or_else(|_| path.into()))
    };
    if config.syslog_enabled {
        sys::open_syslog(&config.syslog_ident, facility_number(config.syslog_facility));
    }
    TO_SYSLOG.store(config.syslog_enabled, Ordering::Relaxed);
}

/// Sets the least important level that is written.
pub fn set_level(level: LogLevel) {
    let lowest = match level {
        LogLevel::Debug => Level::Debug as u8,
        LogLevel::Verbose => Level::Verbose as u8,
        LogLevel::Notice => Level::Notice as u8,
        LogLevel::Warning => Level::Warning as u8,
        LogLevel::Nothing => u8::MAX,
    };
    LOWEST_LEVEL.store(lowest, Ordering::Relaxed);
}

/// Sets the role that lines show.
pub fn set_role(role: Role) {
    let letter = match role {
        Role::Primary => b'M',
        Role::Replica => b'S',
        Role::Sentinel => b'X',
    };
    ROLE.store(letter, Ordering::Relaxed);
}

/// Whether lines of this level are written.
#[must_use]
pub fn is_enabled(level: Level) -> bool {
    level as u8 >= LOWEST_LEVEL.load(Ordering::Relaxed)
}

/// Writes one line whatever its level; the macro `log!` asks first.
pub fn write(level: Level, text: fmt::Arguments<'_>) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let role = char::from(ROLE.load(Ordering::Relaxed));
    let mut line = format!("{}:{role} {} {} ", std::process::id(), timestamp(now), level.sign());
    let text_start = line.len();
    // Writing to a string fails only if a value's own formatting does; the line then ends there.
    let _ = line.write_fmt(text);
    if TO_SYSLOG.load(Ordering::Relaxed) {
        sys::write_syslog(level.syslog_priority(), line.get(text_start..).unwrap_or_default());
    }
    line.push('\n');
    put(line.as_bytes());
}

/// Writes text as it is, without time and level, as for the picture at start.
pub fn write_raw(level: Level, text: &str) {
    if is_enabled(level) {
        put(text.as_bytes());
        if TO_SYSLOG.load(Ordering::Relaxed) {
            sys::write_syslog(level.syslog_priority(), text);
        }
    }
}

/// Writes the line of a received signal, in the shape that Redis's signal handler uses.
pub(super) fn write_signal(text: &str) {
    if is_enabled(Level::Warning) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        put(format!("{}:signal-handler ({}) {text}\n", std::process::id(), now.as_secs()).as_bytes());
    }
}

fn put(bytes: &[u8]) {
    let file = FILE.read();
    match &*file {
        None => {
            let mut output = std::io::stdout().lock();
            drop(output.write_all(bytes).and_then(|()| output.flush()));
        }
        Some(path) => {
            let opened = std::fs::OpenOptions::new().append(true).create(true).open(path);
            drop(opened.and_then(|mut file| file.write_all(bytes)));
        }
    }
}

/// `30 Nov 2026 11:13:50.123` in local time.
fn timestamp(since_1970: Duration) -> String {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let time = sys::local_time(i64::try_from(since_1970.as_secs()).unwrap_or(0));
    let month = MONTHS.get(time.month).copied().unwrap_or("Jan");
    format!(
        "{:02} {month} {} {:02}:{:02}:{:02}.{:03}",
        time.day,
        time.year,
        time.hour,
        time.minute,
        time.second,
        since_1970.subsec_millis()
    )
}

fn facility_number(facility: SyslogFacility) -> i32 {
    match facility {
        SyslogFacility::User => libc::LOG_USER,
        SyslogFacility::Local0 => libc::LOG_LOCAL0,
        SyslogFacility::Local1 => libc::LOG_LOCAL1,
        SyslogFacility::Local2 => libc::LOG_LOCAL2,
        SyslogFacility::Local3 => libc::LOG_LOCAL3,
        SyslogFacility::Local4 => libc::LOG_LOCAL4,
        SyslogFacility::Local5 => libc::LOG_LOCAL5,
        SyslogFacility::Local6 => libc::LOG_LOCAL6,
        SyslogFacility::Local7 => libc::LOG_LOCAL7,
    }
}
