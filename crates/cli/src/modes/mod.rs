//! What an option starts instead of a command: measurements, walks through the key space, pipes, scripts, clusters.

use std::thread::sleep;
use std::time::Duration;

use resp::Value;

use crate::options::Mode;
use crate::output::{Outcome, fail, print, text};
use crate::session::{Report, Session};

mod cache;
pub(crate) mod cluster;
mod eval;
mod histogram;
mod intrinsic;
mod keys;
mod latency;
mod pipe;
mod replica;
mod scan;
mod spectrum;
mod stat;

/// Runs a mode to its end.
pub(crate) fn run(session: &mut Session, mode: Mode) -> Outcome<()> {
    match mode {
        Mode::Commands => Ok(()),
        Mode::Latency => latency::run(session, latency::Lines::Rewritten),
        Mode::LatencyHistory => latency::run(session, latency::Lines::History),
        Mode::LatencyDistribution => spectrum::run(session),
        Mode::IntrinsicLatency(seconds) => intrinsic::run(Duration::from_secs(seconds)),
        Mode::LruTest(keys) => cache::run(session, keys),
        Mode::Stat => stat::run(session),
        Mode::Scan => scan::run(session),
        Mode::BigKeys => keys::run(session, keys::Measure::Elements),
        Mode::MemoryKeys(samples) => keys::run(session, keys::Measure::Memory { samples }),
        Mode::KeyStatistics(samples) => keys::run(session, keys::Measure::Both { samples }),
        Mode::HotKeys => keys::hot::run(session),
        Mode::Pipe => pipe::run(session),
        Mode::Snapshot { path, functions_only } => replica::save(session, &path, functions_only),
        Mode::Replica => replica::show(session),
        Mode::Eval(path) => eval::run(session, &path),
        Mode::Cluster(words) => cluster::run(session, &words),
        Mode::Missing(option) => {
            let with = match option.as_str() {
                "--ldb" | "--ldb-sync-mode" => "the script debugger",
                _ => "vector sets",
            };
            fail(format_args!("{option} is not available in this version yet: it follows with {with}."))
        }
    }
}

/// The reply of a command, connecting again for as long as it takes.
fn call_patiently(session: &mut Session, arguments: &[&str]) -> Outcome<Value> {
    let mut tries = 0;
    loop {
        match session.connection().and_then(|connection| connection.call(arguments)) {
            Ok(value) => {
                if tries > 0 {
                    print("\r\x1b[0K")?;
                }
                return Ok(value);
            }
            Err(_) => {
                tries += 1;
                print(format!("\r\x1b[0KReconnecting... {tries}\r"))?;
                sleep(Duration::from_secs(1));
                session.connect(Report::Quiet)?;
            }
        }
    }
}

/// INFO as text.
fn info(session: &mut Session) -> Outcome<String> {
    match call_patiently(session, &["INFO"])? {
        Value::Error(reason) => fail(format_args!("ERROR: {}", text(&reason))),
        value => Ok(text(value.as_bytes().unwrap_or_default()).into_owned()),
    }
}

/// The number behind a field of INFO.
fn info_number(info: &str, field: &str) -> Option<i64> {
    let value = info.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    value.trim().parse().ok()
}

/// A number of keys as a share of all, in percent.
#[allow(clippy::cast_precision_loss)] // Shown with two digits.
fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 }
}

/// A mean that is 0 for no values.
#[allow(clippy::cast_precision_loss)] // Shown with two digits.
fn mean(sum: u64, count: u64) -> f64 {
    if count == 0 { 0.0 } else { sum as f64 / count as f64 }
}
