//! Runs targets on mutated seeds: the same seed gives the same inputs.
#![forbid(unsafe_code)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use fuzzing::mutate::mutate;
use fuzzing::{TARGETS, Target};
use lexopt::prelude::*;

const HELP: &str = "\
usage: fuzzing [--target A,B] [--runs N] [--seed N] [--list] [FILE]

Each target gets N mutated inputs (100000). FILE: only this input, for what a run or libFuzzer has found.
";

/// Longest time for one input.
const HANG: Duration = Duration::from_secs(1);
/// A target that does not come back at all is ended after this.
const STUCK: Duration = Duration::from_secs(20);
/// Memory of the process, above what it began with.
const GROWTH_KIB: u64 = 256 << 10;
/// Inputs made from one another before a seed is taken anew.
const GENERATIONS: usize = 4;

/// The input that runs, for who ends a stuck process.
static RUNNING: Mutex<Option<(Instant, &'static str, Vec<u8>)>> = Mutex::new(None);
static COUNT: AtomicU64 = AtomicU64::new(0);

fn main() -> Result<ExitCode> {
    let mut parser = lexopt::Parser::from_env();
    let (mut wanted, mut runs, mut seed, mut file) = (Vec::new(), 100_000_u64, 1_u64, None);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("target") => wanted = parser.value()?.string()?.split(',').map(str::to_owned).collect(),
            Long("runs") => runs = parser.value()?.parse()?,
            Long("seed") => seed = parser.value()?.parse()?,
            Long("list") => {
                TARGETS.iter().for_each(|target| println!("{}", target.name));
                return Ok(ExitCode::SUCCESS);
            }
            Long("help") | Short('h') => {
                print!("{HELP}");
                return Ok(ExitCode::SUCCESS);
            }
            Value(path) if file.is_none() => file = Some(path),
            other => return Err(other.unexpected().into()),
        }
    }
    if let Some(unknown) = wanted.iter().find(|name| TARGETS.iter().all(|target| target.name != **name)) {
        bail!("there is no target {unknown}: see --list");
    }
    let targets = || TARGETS.iter().filter(|target| wanted.is_empty() || wanted.iter().any(|name| name == target.name));
    if let Some(file) = file {
        let bytes = std::fs::read(file)?;
        targets().for_each(|target| (target.run)(&bytes));
        return Ok(ExitCode::SUCCESS);
    }
    std::thread::spawn(watch);
    let mut failed = false;
    for target in targets() {
        let began = Instant::now();
        match fuzz(target, runs, seed) {
            Ok(slowest) => {
                let rate = runs as f64 / began.elapsed().as_secs_f64();
                println!("ok   {}: {runs} inputs, {rate:.0}/s, slowest {slowest:?}", target.name);
            }
            Err(problem) => {
                failed = true;
                println!("FAIL {}: {problem:#}", target.name);
            }
        }
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn resident_kib() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|rest| rest.split_whitespace().next()).and_then(|number| number.parse().ok()).unwrap_or(0)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Gives the longest time that one input took.
fn fuzz(target: &Target, runs: u64, seed: u64) -> Result<Duration> {
    let mut random = fastrand::Rng::with_seed(seed);
    let seeds = (target.seeds)();
    ensure!(!seeds.is_empty(), "no seeds");
    for bytes in &seeds {
        one(target, bytes)?;
    }
    let before = resident_kib();
    let mut slowest = Duration::ZERO;
    let mut bytes = Vec::new();
    for run in 0..runs {
        if run % (GENERATIONS as u64) == 0 {
            bytes.clone_from(&seeds[random.usize(0..seeds.len())]);
        }
        mutate(&mut random, &mut bytes, &seeds, target.words);
        slowest = slowest.max(one(target, &bytes)?);
        if run % 1024 == 0 {
            let grown = resident_kib().saturating_sub(before);
            ensure!(grown < GROWTH_KIB, "grew by {grown} KiB by input {run}: {}", hex(&bytes));
        }
    }
    Ok(slowest)
}

fn one(target: &Target, bytes: &[u8]) -> Result<Duration> {
    let began = Instant::now();
    if let Ok(mut running) = RUNNING.lock() {
        let place = running.get_or_insert_with(|| (began, target.name, Vec::new()));
        (place.0, place.1) = (began, target.name);
        place.2.clear();
        place.2.extend_from_slice(bytes);
    }
    let outcome = catch_unwind(AssertUnwindSafe(|| (target.run)(bytes)));
    let took = began.elapsed();
    COUNT.fetch_add(1, Ordering::Relaxed);
    ensure!(outcome.is_ok(), "a panic (above) for {}", hex(bytes));
    ensure!(took < HANG, "{took:?} for {}", hex(bytes));
    Ok(took)
}

/// Ends the process when an input takes for ever.
fn watch() {
    let mut last = 0;
    loop {
        std::thread::sleep(STUCK);
        let count = COUNT.load(Ordering::Relaxed);
        if count == last
            && let Ok(running) = RUNNING.lock()
            && let Some((since, name, bytes)) = &*running
            && since.elapsed() > STUCK
        {
            println!("FAIL {name}: no end for {}", hex(bytes));
            std::process::exit(1);
        }
        last = count;
    }
}
