//! Servers that take turns under the same load.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use testkit::{Client, Launch, Server, binary, process, text};

use super::{Options, median};

/// Keys that are there before a load runs.
pub(super) const KEYS: usize = 1_000_000;

/// A load of redis-benchmark: what it sends and how.
pub(super) struct Load<'a> {
    /// `-t` and a test's name, or a command.
    pub(super) work: &'a [&'a str],
    pub(super) pipeline: usize,
    pub(super) value_bytes: usize,
    pub(super) keys: usize,
    pub(super) threads: usize,
    pub(super) clients: usize,
}

impl<'a> Load<'a> {
    /// Fifty clients, a million keys, three bytes.
    pub(super) fn new(work: &'a [&'a str], pipeline: usize) -> Load<'a> {
        Load { work, pipeline, value_bytes: 3, keys: KEYS, threads: 0, clients: 50 }
    }
}

/// A process that answers requests.
pub(super) struct Runner {
    pub(super) port: u16,
    pub(super) pid: u32,
}

impl From<&Server> for Runner {
    fn from(server: &Server) -> Runner {
        Runner { port: server.port(), pid: server.pid() }
    }
}

/// Starts a server on core 0.
pub(super) fn start_pinned(launch: Launch, directives: &[&str]) -> Result<Server> {
    Ok(launch.pinned("0").args(directives).try_start()?)
}

/// The pair that most rows compare: Oxidis with one worker, and the peer.
pub(super) fn pair(options: &Options) -> Result<[Server; 2]> {
    Ok([start_pinned(options.oxidis(), &["--io-threads", "1"])?, start_pinned(options.peer(), &[])?])
}

/// Sends commands in big pipelines and fails on the first error reply.
pub(super) fn fill(port: u16, commands: impl Iterator<Item = String>) -> Result<()> {
    let mut client = Client::connect(port)?;
    let mut batch: Vec<Vec<Vec<u8>>> = Vec::new();
    let mut send = |batch: &mut Vec<Vec<Vec<u8>>>| -> Result<()> {
        for reply in client.pipeline(batch)? {
            ensure!(!reply.is_error(), "filling: {reply}");
        }
        batch.clear();
        Ok(())
    };
    for command in commands {
        batch.push(text::words(&command));
        if batch.len() == 1_000 {
            send(&mut batch)?;
        }
    }
    send(&mut batch)
}

/// Sets the keys that redis-benchmark asks for.
pub(super) fn fill_keys(port: u16, keys: usize, value_bytes: usize) -> Result<()> {
    let value = "x".repeat(value_bytes);
    fill(port, (0..keys).map(|i| format!("SET key:{i:012} {value}")))
}

/// Runs redis-benchmark on core 1 (or anywhere, with several threads) against a port. Returns
/// requests per second.
pub(super) fn generate(port: u16, load: &Load<'_>, requests: usize) -> Result<f64> {
    let program = binary::peer("redis-benchmark").context("redis-benchmark is missing: apt-get install redis-tools")?;
    let mut command = if load.threads == 0 {
        let mut command = Command::new("taskset");
        command.args(["-c", "1"]).arg(program);
        command
    } else {
        let mut command = Command::new(program);
        command.args(["--threads", &load.threads.to_string()]);
        command
    };
    command.args(["-h", "127.0.0.1", "--csv"]);
    for (option, value) in [
        ("-p", usize::from(port)),
        ("-n", requests),
        ("-c", load.clients),
        ("-P", load.pipeline),
        ("-d", load.value_bytes),
        ("-r", load.keys),
    ] {
        command.args([option, &value.to_string()]);
    }
    let output = command.args(load.work).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let row = text.lines().rfind(|line| line.starts_with('"') && !line.starts_with("\"test\""));
    row.and_then(|row| row.split("\",\"").nth(1)?.trim_end_matches('"').parse().ok())
        .with_context(|| format!("redis-benchmark {:?}: {text}{}", load.work, String::from_utf8_lossy(&output.stderr)))
}

/// Server CPU microseconds per request of each runner: medians over the rounds.
pub(super) fn race(options: &Options, runners: &[Runner], load: &Load<'_>) -> Result<Vec<f64>> {
    let mut requests = Vec::new();
    for runner in runners {
        let probe = 4_000 * load.pipeline;
        let rate = generate(runner.port, load, probe)?;
        requests.push(to_count(rate * options.seconds).max(probe));
    }
    let mut samples = vec![Vec::new(); runners.len()];
    for round in 0..options.rounds {
        for turn in 0..runners.len() {
            let index = (round + turn) % runners.len();
            let runner = &runners[index];
            let before = process::cpu_time(runner.pid)?;
            generate(runner.port, load, requests[index])?;
            let used = process::cpu_time(runner.pid)?.saturating_sub(before);
            samples[index].push(used.as_secs_f64() * 1e6 / requests[index] as f64);
        }
    }
    Ok(samples.iter().map(|samples| median(samples)).collect())
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of requests")]
fn to_count(value: f64) -> usize {
    value as usize
}
