//! `cargo xtask bench`: speed and memory beside redis-server, as ratios with their targets.
//!
//! The server has core 0, the generator core 1. Servers take turns within each round, so that
//! what else the machine does meets all of them alike, and each figure is a median over the
//! rounds. CPU time per request, read from the scheduler's own books, is the figure to trust:
//! requests per second depend on who else is at work.

mod clients;
mod commands;
pub(crate) mod floor;
mod generator;
mod instructions;
mod log;
mod memory;
mod persistence;
mod proxy;
mod race;
mod scripts;
mod streams;
mod tail;
mod workers;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use lexopt::prelude::*;
use serde_json::json;
use testkit::{Launch, binary};

use crate::steps::target_dir;

const HELP: &str = "\
usage: cargo xtask bench [GROUP …] [options]

  core          CPU per request of GET, SET, INCR, HSET, SADD, LPUSH at -P 1, 16 and 64
  commands      … of ZADD, MSET, LRANGE_100 and 2 KiB values
  scripts       … of EVAL and FCALL; EVAL with two workers against one
  streams       … of XADD, XRANGE, XREAD, XREADGROUP, XACK
  memory        bytes per key, field and member; RSS against used_memory; growth to 10M keys
  instructions  user instructions per request, by callgrind
  workers       CPU per request with 4 workers against 1
  generator     `oxidis benchmark` against redis-benchmark; its exactness
  tail          what a probe feels while others run heavy commands
  log           what the append only file costs: everysec, always
  persistence   saving and loading five million keys: time, stalls, memory
  proxy         the proxy beside nutcracker: CPU, throughput, memory, latency, batches
  clients       120,000 clients on one server: memory, idle CPU, crowds; GET at 1,000 to 80,000
Without a group: all.

  --rounds N    rounds of each CPU row (default 5)
  --seconds S   length of one load run (default 1)
  --quick       3 short rounds and small sizes: for a look, not for a verdict
  --server PATH Oxidis's binary (default $OXIDIS_BIN, else target/release/oxidis)
  --peer PATH   the redis-server beside it
  --json FILE   also write every row there
";

type Group = (&'static str, fn(&Options) -> Result<Vec<Row>>);

const GROUPS: &[Group] = &[
    ("core", commands::core),
    ("commands", commands::others),
    ("scripts", scripts::run),
    ("streams", streams::run),
    ("memory", memory::run),
    ("instructions", instructions::run),
    ("workers", workers::run),
    ("generator", generator::run),
    ("tail", tail::run),
    ("clients", clients::run),
    ("log", log::run),
    ("persistence", persistence::run),
    ("proxy", proxy::run),
];

/// What all groups need to know.
pub(crate) struct Options {
    rounds: usize,
    seconds: f64,
    quick: bool,
    oxidis: PathBuf,
    peer: PathBuf,
}

impl Options {
    fn oxidis(&self) -> Launch {
        Launch::program(&self.oxidis)
    }

    fn peer(&self) -> Launch {
        Launch::program(&self.peer)
    }
}

/// One line of the result.
pub(crate) struct Row {
    name: String,
    unit: &'static str,
    ours: f64,
    /// What it is compared with, and that one's name.
    other: Option<(String, f64)>,
    /// Largest value allowed: of the ratio when there is another, else of our own figure.
    target: Option<f64>,
}

impl Row {
    fn ratio(&self) -> Option<f64> {
        self.other.as_ref().map(|(_, other)| self.ours / other)
    }

    fn passes(&self) -> Option<bool> {
        let value = self.ratio().unwrap_or(self.ours);
        self.target.map(|target| value <= target)
    }
}

pub(crate) fn main(mut parser: lexopt::Parser) -> Result<ExitCode> {
    let default_binary =
        std::env::var_os(binary::OXIDIS_BIN).map_or_else(|| target_dir().join("release/oxidis"), PathBuf::from);
    let peer = binary::peer("redis-server").unwrap_or_default();
    let mut options = Options { rounds: 5, seconds: 1.0, quick: false, oxidis: default_binary, peer };
    let mut wanted: Vec<String> = Vec::new();
    let mut json_file = None;
    while let Some(arg) = parser.next()? {
        match arg {
            Long("rounds") => options.rounds = parser.value()?.parse()?,
            Long("seconds") => options.seconds = parser.value()?.parse()?,
            Long("quick") => {
                options.quick = true;
                options.rounds = 3;
                options.seconds = 0.3;
            }
            Long("server") => options.oxidis = PathBuf::from(parser.value()?),
            Long("peer") => options.peer = PathBuf::from(parser.value()?),
            Long("json") => json_file = Some(PathBuf::from(parser.value()?)),
            Long("help") | Short('h') => {
                print!("{HELP}");
                return Ok(ExitCode::SUCCESS);
            }
            Value(group) => wanted.push(group.string()?),
            other => return Err(other.unexpected().into()),
        }
    }
    if let Some(unknown) = wanted.iter().find(|name| GROUPS.iter().all(|group| group.0 != **name)) {
        bail!("there is no group {unknown:?}: see --help");
    }
    if !options.oxidis.is_file() {
        bail!("no binary at {}: cargo build --release -p oxidis", options.oxidis.display());
    }
    if !options.peer.is_file() {
        bail!("redis-server is missing: apt-get install redis-server redis-tools");
    }
    let mut rows = Vec::new();
    for (name, run) in GROUPS {
        if wanted.is_empty() || wanted.iter().any(|group| group == name) {
            println!("\n{name}");
            print_head();
            let group = run(&options)?;
            rows.extend(group.into_iter().map(|row| (*name, row)));
        }
    }
    let short = rows.iter().filter(|(_, row)| row.passes() == Some(false)).count();
    let met = rows.iter().filter(|(_, row)| row.passes() == Some(true)).count();
    println!("\n{met} targets met, {short} short");
    if let Some(file) = json_file {
        let rows: Vec<_> = rows.iter().map(|(group, row)| to_json(group, row)).collect();
        std::fs::write(&file, serde_json::to_string_pretty(&rows)?)?;
    }
    Ok(if short == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print_head() {
    println!("{:<44} {:>10} {:>12}  {:<24} {:>7} {:>7}", "row", "oxidis", "other", "", "ratio", "target");
}

/// Prints a row as soon as it is known, and hands it back.
fn show(row: Row) -> Row {
    let number = |value: f64| {
        if value >= 1000.0 { format!("{value:.0}") } else { format!("{value:.2}") }
    };
    let (name, other) =
        row.other.as_ref().map_or((String::new(), String::new()), |(name, value)| (name.clone(), number(*value)));
    let ratio = row.ratio().map_or_else(String::new, |ratio| format!("{ratio:.2}"));
    let target = row.target.map_or_else(String::new, |target| format!("≤ {}", number(target).trim_end_matches(".00")));
    let mark = match row.passes() {
        Some(true) => "pass",
        Some(false) => "SHORT",
        None => "",
    };
    let head = format!("{} ({})", row.name, row.unit);
    println!("{head:<44} {:>10} {other:>12}  {name:<24} {ratio:>7} {target:>7}  {mark}", number(row.ours));
    row
}

fn to_json(group: &str, row: &Row) -> serde_json::Value {
    json!({
        "group": group,
        "row": row.name,
        "unit": row.unit,
        "oxidis": row.ours,
        "other": row.other.as_ref().map(|(name, value)| json!({"name": name, "value": value})),
        "ratio": row.ratio(),
        "target": row.target,
        "met": row.passes(),
    })
}

/// The middle value.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}
