//! `cargo xtask hostile`: clients that are malformed, greedy or heavy, and what others feel.
//!
//! Each row is one test of the reliability scorecard, in a size for every day and in its full
//! size. A row fails when the server ends, a limit is passed, or the *bystander*, a second client
//! that asks 250 times a second all the while, waits too long.

mod access;
mod bystander;
mod crowds;
mod decoders;
mod disks;
mod durability;
mod encrypted;
mod flaws;
mod floods;
mod frames;
pub(crate) mod fuzz;
mod heavy;
mod inputs;
mod ledger;
mod links;
mod old_values;
mod payloads;
mod primaries;
mod scripts;
mod snapshots;
mod volumes;

use std::process::ExitCode;

use anyhow::{Result, bail, ensure};
use lexopt::prelude::*;
use testkit::{Launch, Server};

use crate::steps::{Steps, Tally};

const HELP: &str = "\
usage: cargo xtask hostile [--row B2,C3] [--full] [--peer PATH] [--list]

  --row A,B    only these rows
  --full       the stated sizes (hours, in sum); without it a size for every day
  --peer PATH  run against this redis-server instead of Oxidis: shows what the peer does
  --list       print the rows

The binary under test is $OXIDIS_BIN, else target/debug/oxidis. OXIDIS_SEED repeats a run.
";

/// How much of a row to run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    /// Seconds.
    Small,
    /// As the scorecard states it.
    Full,
}

/// What a row needs.
pub(crate) struct Context<'a> {
    launch: &'a Launch,
    size: Size,
    is_timed: bool,
}

impl<'a> Context<'a> {
    /// For a server that is slowed down by what watches it: how long others wait is not judged.
    pub(crate) fn untimed(launch: &'a Launch, size: Size) -> Context<'a> {
        Context { launch, size, is_timed: false }
    }

    /// Whether not Oxidis but another server is tested, to see what that does.
    fn is_peer(&self) -> bool {
        self.launch.is_peer()
    }

    fn server(&self, directives: &[&str]) -> Result<Server> {
        Ok(self.launch.clone().args(directives).try_start()?)
    }

    fn pick<T>(&self, small: T, full: T) -> T {
        match self.size {
            Size::Small => small,
            Size::Full => full,
        }
    }
}

/// A row of the scorecard: its name, what it does, and the test, which returns its figures.
type Row = (&'static str, &'static str, fn(&Context<'_>) -> Result<String>);

const ROWS: &[Row] = &[
    ("A1", "kill -9 under load with appendfsync always", durability::always),
    ("A2", "power cuts under load with appendfsync always", disks::power_always),
    ("A3", "power cuts under load with appendfsync everysec", disks::power_everysec),
    ("A4", "kill -9 under load with appendfsync everysec", durability::everysec),
    ("A5", "the end of the log torn off at any byte", durability::torn),
    ("A6", "garbage in the middle of the log", durability::garbage),
    ("A7", "the log's disk is full, everysec", disks::full_everysec),
    ("A8", "the log's disk is full, always", disks::full_always),
    ("A9", "the snapshot's disk is full", disks::full_snapshot),
    ("A10", "forcing the log to disk fails", disks::failing_sync),
    ("A11", "the k-th call fails, of each kind, in each scene", disks::failing_calls),
    ("A12", "snapshots under transfers show one instant", snapshots::instants),
    ("A13", "files go both ways with redis-server", snapshots::both_ways),
    ("A14", "the clock jumps and runs", snapshots::clocks),
    ("A15", "SIGTERM and SHUTDOWN at any moment under load", durability::endings),
    ("B1", "malformed frames get Redis's exact replies", frames::run),
    ("B1P", "the same frames at a proxy", frames::run_at_proxy),
    ("B2", "mutated pipelines over sockets", fuzz::frames),
    ("B3", "each decoder of bytes from outside, mutated input", decoders::run),
    ("B4", "damaged DUMP payloads, then every command on them", payloads::run),
    ("B5", "values and files as Redis 1.0 to 7.2 wrote them", old_values::payloads),
    ("B6", "a primary that sends nonsense", primaries::run),
    ("B3L", "mutated inputs for Lua's libraries, ACL rules and patterns", inputs::mutated),
    ("B7", "scripts that try to leave the sandbox", scripts::sandbox),
    ("B8", "SCRIPT KILL against loops that do not want to end", scripts::loops),
    ("B9", "scripts that take all memory or stack", scripts::bombs),
    ("B10", "patterns that take exponential time elsewhere", fuzz::patterns),
    ("C1", "connections that never end a command", crowds::slow),
    ("C2", "connections that announce gigabytes", floods::announced),
    ("C3", "floods before authentication that never read", floods::unread),
    ("C4", "large frames before authentication", floods::unauthenticated),
    ("C5", "reconnects with protocol errors and TLS hellos", floods::churn),
    ("C6", "more clients than are let in", crowds::too_many),
    ("C7", "buffers, idle time and clients' memory have limits", floods::limits),
    ("C8", "maxmemory holds under each policy", heavy::policies),
    ("C10", "one heavy client on one slot", heavy::heavy_client),
    ("D1", "a replication link that is cut, held and slowed", links::flaps),
    ("D2", "replication with redis-server in each place", links::pairs),
    ("D3", "full synchronizations under load, either end killed", links::killed_syncs),
    ("D4", "stock sentinels fail over from a killed primary", links::sentinels),
    ("E1", "every command for users with few rights, on every path", access::rights),
    ("E2", "the time of a wrong login tells nothing", access::login_times),
    ("E3", "handshakes that must fail", encrypted::handshakes),
    ("E4", "inputs of published flaws", flaws::published),
    ("E5", "planted secrets show nowhere", access::secrets),
];

pub(crate) fn main(mut parser: lexopt::Parser) -> Result<ExitCode> {
    let mut wanted: Vec<String> = Vec::new();
    let mut size = Size::Small;
    let mut launch = None;
    while let Some(arg) = parser.next()? {
        match arg {
            Long("row") => {
                wanted = parser.value()?.string()?.split(',').map(str::to_owned).collect();
            }
            Long("full") => size = Size::Full,
            Long("peer") => {
                launch = Some(Launch::program(&std::path::PathBuf::from(parser.value()?)));
            }
            Long("list") => {
                for (name, about, _) in ROWS {
                    println!("{name:<4} {about}");
                }
                return Ok(ExitCode::SUCCESS);
            }
            Long("help") | Short('h') => {
                print!("{HELP}");
                return Ok(ExitCode::SUCCESS);
            }
            other => return Err(other.unexpected().into()),
        }
    }
    if let Some(unknown) = wanted.iter().find(|name| ROWS.iter().all(|row| row.0 != **name)) {
        bail!("there is no row {unknown}: see --list");
    }
    let context = Context { launch: &launch.unwrap_or_else(Launch::oxidis), size, is_timed: true };
    let mut failed = 0;
    for (name, about, run) in ROWS {
        if !wanted.is_empty() && !wanted.iter().any(|row| row == name) {
            continue;
        }
        match attempt(*run, &context) {
            Ok(figures) => println!("ok   {name:<4} {about}: {figures}"),
            Err(problem) => {
                failed += 1;
                println!("FAIL {name:<4} {about}: {problem:#}");
            }
        }
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs a row; a check of testkit's that panics is its failure.
fn attempt(run: fn(&Context<'_>) -> Result<String>, context: &Context<'_>) -> Result<String> {
    let panicked = |payload: Box<dyn std::any::Any + Send>| {
        let text = payload.downcast_ref::<String>().cloned();
        text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
    };
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(context))) {
        Ok(result) => result,
        Err(payload) => bail!("{}", panicked(payload)),
    }
}

/// How often a row is tried whose bystander waited.
const TRIES: u32 = 3;

/// Runs all rows as steps of `cargo xtask test`.
pub(crate) fn run_all(steps: &mut Steps, launch: &Launch, size: Size) {
    let context = Context { launch, size, is_timed: true };
    for (name, about, run) in ROWS {
        steps.step(&format!("hostile {name}: {about}"), || {
            let mut tries = 1;
            // A wait may be the doing of other work on the machine; a fault of the server shows in each try.
            let output = loop {
                match attempt(*run, &context) {
                    Ok(output) => break output,
                    Err(problem) if tries < TRIES && format!("{problem:#}").contains(bystander::WAITED) => {
                        println!("       {name}: {problem:#}; once more");
                        tries += 1;
                    }
                    Err(problem) => return Err(problem),
                }
            };
            Ok(Tally { passed: 1, failed: 0, output })
        });
    }
}

/// Fails when the server ended.
fn ensure_alive(server: &mut Server) -> Result<()> {
    if let Some(status) = server.exit_status() {
        bail!("the server ended ({status}):\n{}", server.log());
    }
    let pong = server.client().run("PING");
    ensure!(pong.text() == "PONG" || pong.text().starts_with("NOAUTH"), "PING is answered by {pong}");
    Ok(())
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
