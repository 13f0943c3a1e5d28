//! What the machine should be set to, what the kernel is told about the process, and `--check-system`.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::thread::{CpuSet, sched_setaffinity};

use super::error_text;
use super::log::Level;
use super::sys;
use crate::config::{Config, OomScoreAdj};

const CLOCK_SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
const CLOCK_SOURCES: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
const OVERCOMMIT: &str = "/proc/sys/vm/overcommit_memory";
const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const BACKLOG_LIMIT: &str = "/proc/sys/net/core/somaxconn";
const OOM_SCORE: &str = "/proc/self/oom_score_adj";

/// Logs what about the machine's memory settings will hurt, and turns huge pages off for this process
/// if `disable-thp` says so.
pub fn warn_about_memory(config: &Config) {
    if let Err(warning) = check_overcommit() {
        crate::log!(Level::Warning, "WARNING {warning}");
    }
    if let Err(warning) = check_huge_pages()
        && !(config.disable_thp && sys::disable_huge_pages().is_ok())
    {
        crate::log!(Level::Warning, "WARNING {warning}");
    }
    if let Err(warning) = check_xen_clock() {
        crate::log!(Level::Warning, "WARNING {warning}");
    }
}

/// Logs a maxmemory so small that it must be a mistake.
pub fn warn_about_maxmemory(config: &Config) {
    if config.maxmemory > 0 && config.maxmemory < 1 << 20 {
        crate::log!(
            Level::Warning,
            "WARNING: You specified a maxmemory value that is less than 1MB (current value is {} bytes). Are you sure this is what you really want?",
            config.maxmemory
        );
    }
}

/// Logs when the kernel cuts `tcp-backlog` down.
pub fn warn_about_backlog(config: &Config) {
    let limit = read_trimmed(BACKLOG_LIMIT).and_then(|text| text.parse::<i32>().ok());
    if let Some(limit) = limit
        && limit > 0
        && limit < config.tcp_backlog
    {
        crate::log!(
            Level::Warning,
            "WARNING: The TCP backlog setting of {} cannot be enforced because {BACKLOG_LIMIT} is set to the lower value of {limit}.",
            config.tcp_backlog
        );
    }
}

/// The part that a process plays for the out-of-memory killer: which of `oom-score-adj-values` holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OomRole {
    /// It takes writes.
    Primary,
    /// It follows another server.
    Replica,
    /// It does work in the background.
    Child,
}

/// The score the process had before we changed it; `None` while we have not.
static OOM_SCORE_BASE: Mutex<Option<i32>> = Mutex::new(None);

/// Sets the kernel's out-of-memory score as the configuration says, or back to what it was when
/// `oom-score-adj` is off. The error is logged and is the text for CONFIG SET.
pub fn set_oom_score(config: &Config, role: OomRole) -> Result<(), &'static str> {
    const FAILED: &str = "Failed to set current oom_score_adj. Check server logs.";
    let [primary, replica, child] = config.oom_score_adj_values;
    let value = match role {
        OomRole::Primary => primary,
        OomRole::Replica => replica,
        OomRole::Child => child,
    };
    let mut base = OOM_SCORE_BASE.lock();
    let score = match (config.oom_score_adj, *base) {
        (OomScoreAdj::No, None) => return Ok(()),
        (OomScoreAdj::No, Some(original)) => {
            *base = None;
            original
        }
        (mode, known) => {
            let original = match known {
                Some(original) => original,
                None => read_oom_score().map_err(|error| {
                    crate::log!(Level::Warning, "Unable to read oom_score_adj: {}", error_text(&error));
                    FAILED
                })?,
            };
            *base = Some(original);
            let score = if mode == OomScoreAdj::Relative { original + value } else { value };
            score.clamp(-1000, 1000)
        }
    };
    fs::write(OOM_SCORE, format!("{score}\n")).map_err(|error| {
        crate::log!(Level::Warning, "Unable to write oom_score_adj: {}", error_text(&error));
        FAILED
    })
}

fn read_oom_score() -> io::Result<i32> {
    fs::read_to_string(OOM_SCORE)?.trim().parse().map_err(io::Error::other)
}

/// Keeps the calling thread, and those it starts later, on the processors of a list such as
/// `0-3,8-15:2`. An empty list changes nothing.
pub fn set_processors(list: &[u8]) -> io::Result<()> {
    if list.is_empty() {
        return Ok(());
    }
    let processors = parse_processors(list).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let mut set = CpuSet::new();
    for processor in processors {
        set.set(processor);
    }
    Ok(sched_setaffinity(None, &set)?)
}

/// The processors of a list: numbers and ranges with an optional step, separated by commas.
pub(super) fn parse_processors(list: &[u8]) -> Option<Vec<usize>> {
    let mut processors = Vec::new();
    for part in std::str::from_utf8(list).ok()?.split([',', ' ']).filter(|part| !part.is_empty()) {
        let (range, step) = part.split_once(':').unwrap_or((part, "1"));
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last, step): (usize, usize, usize) = (first.parse().ok()?, last.parse().ok()?, step.parse().ok()?);
        if first > last || step == 0 || last >= CpuSet::MAX_CPU {
            return None;
        }
        processors.extend((first..=last).step_by(step));
    }
    Some(processors)
}

/// `--check-system`: the report for standard output, and whether all is well.
#[must_use]
pub fn check() -> (String, bool) {
    type Check = fn() -> Result<(), String>;
    let checks: [(&str, Check); 4] = [
        ("slow-clocksource", check_clock),
        ("xen-clocksource", check_xen_clock),
        ("overcommit", check_overcommit),
        ("THP", check_huge_pages),
    ];
    let mut report = String::new();
    let mut is_well = true;
    for (name, check) in checks {
        let outcome = match check() {
            Ok(()) => "OK".to_owned(),
            Err(warning) => {
                is_well = false;
                format!("WARNING:\n{warning}")
            }
        };
        // Writing to a string cannot fail.
        let _ = writeln!(report, "[{name}]...{outcome}");
    }
    (report, is_well)
}

/// Looks whether reading the clock costs a system call each time: how many fit into a short while.
fn check_clock() -> Result<(), String> {
    const TRIAL: Duration = Duration::from_millis(50);
    /// A clock read without a system call takes some 20 to 60 ns, with one some 200 to 1000.
    const READS_MIN: u64 = 250_000;
    let start = Instant::now();
    let mut reads: u64 = 0;
    while start.elapsed() < TRIAL {
        reads += 1;
    }
    if reads >= READS_MIN {
        return Ok(());
    }
    Err(format!(
        "Slow system clocksource detected. This can result in degraded performance. Consider changing the system's clocksource. Current clocksource: {}. Available clocksources: {}. For example: run the command 'echo tsc > {CLOCK_SOURCE}' as root. To permanently change the system's clocksource you'll need to set the 'clocksource=' kernel command line parameter.",
        read_trimmed(CLOCK_SOURCE).unwrap_or_default(),
        read_trimmed(CLOCK_SOURCES).unwrap_or_default()
    ))
}

fn check_xen_clock() -> Result<(), String> {
    if read_trimmed(CLOCK_SOURCE).as_deref() != Some("xen") {
        return Ok(());
    }
    Err("Your system is configured to use the 'xen' clocksource which might lead to degraded performance. Check the result of the [slow-clocksource] system check: run 'redis-server --check-system' to check if the system's clocksource isn't degrading performance.".into())
}

fn check_overcommit() -> Result<(), String> {
    match read_trimmed(OVERCOMMIT) {
        Some(mode) if mode != "1" => Err(
            "Memory overcommit must be enabled! Without it, a background save or replication may fail under low memory condition. Being disabled, it can also cause failures without low memory condition, see https://github.com/jemalloc/jemalloc/issues/1328. To fix this issue add 'vm.overcommit_memory = 1' to /etc/sysctl.conf and then reboot or run the command 'sysctl vm.overcommit_memory=1' for this to take effect.".into(),
        ),
        _ => Ok(()),
    }
}

fn check_huge_pages() -> Result<(), String> {
    match read_trimmed(HUGE_PAGES) {
        Some(mode) if mode.contains("[always]") => Err(
            "You have Transparent Huge Pages (THP) support enabled in your kernel. This will create latency and memory usage issues with Redis. To fix this issue run the command 'echo madvise > /sys/kernel/mm/transparent_hugepage/enabled' as root, and add it to your /etc/rc.local in order to retain the setting after a reboot. Redis must be restarted after THP is disabled (set to 'madvise' or 'never').".into(),
        ),
        _ => Ok(()),
    }
}

fn read_trimmed(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// `--test-memory`: fills `mebibytes` MiB with patterns and reads them back, `passes` times over.
/// Returns the number of words that came back different; the error is the text for the user.
pub fn test_memory(mebibytes: u64, passes: u32, progress: &mut dyn FnMut(u32)) -> Result<u64, String> {
    const WORDS_PER_MIB: u64 = (1 << 20) / 8;
    let length = mebibytes
        .checked_mul(WORDS_PER_MIB)
        .and_then(|words| usize::try_from(words).ok())
        .ok_or("Unable to allocate that much memory")?;
    let mut words: Vec<u64> = Vec::new();
    words.try_reserve_exact(length).map_err(|error| format!("Unable to allocate {mebibytes} megabytes: {error}"))?;
    words.resize(length, 0);
    let mut faults = 0;
    for pass in 0..passes {
        let seed = u64::from(pass).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // Solid, alternating and address-dependent patterns find stuck bits and crossed lines.
        let pattern = |index: usize| match pass % 4 {
            0 => 0,
            1 => u64::MAX,
            2 => 0x5555_5555_5555_5555 << (index & 1),
            _ => (index as u64).wrapping_mul(0xff51_afd7_ed55_8ccd) ^ seed,
        };
        for (index, word) in words.iter_mut().enumerate() {
            *word = pattern(index);
        }
        let words = std::hint::black_box(&words);
        faults += words.iter().enumerate().filter(|(index, word)| **word != pattern(*index)).count() as u64;
        progress(pass + 1);
    }
    Ok(faults)
}
