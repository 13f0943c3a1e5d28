//! The load generators, against the same redis-server: CPU of the generator per request; and how exact ours is.
//! memtier_benchmark is measured beside the two where it is installed; Debian has no package of it.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use testkit::{Server, binary, process};

use super::race::start_pinned;
use super::{Options, Row, median, show};

/// GET and SET at two depths, one thread each.
pub(super) fn run(options: &Options) -> Result<Vec<Row>> {
    let theirs = binary::peer("redis-benchmark").context("redis-benchmark is missing: apt-get install redis-tools")?;
    let memtier = binary::on_path("memtier_benchmark");
    if memtier.is_none() {
        println!(
            "memtier_benchmark is not installed, and Debian has no package of it: no rows beside it \
             (its sources: https://github.com/RedisLabs/memtier_benchmark)"
        );
    }
    let server = start_pinned(options.peer(), &[])?;
    let mut rows = Vec::new();
    for (test, pipeline, target) in [("get", 1, 0.85), ("set", 1, 0.85), ("get", 16, 0.5), ("set", 16, 0.5)] {
        let requests = if options.quick { 40_000 } else { 150_000 } * if pipeline > 1 { 6 } else { 1 };
        let mut costs = [Vec::new(), Vec::new()];
        for round in 0..options.rounds {
            for turn in 0..2 {
                let side = (round + turn) % 2;
                let (program, subcommand) =
                    if side == 0 { (options.oxidis.as_path(), Some("benchmark")) } else { (theirs.as_path(), None) };
                costs[side].push(cost(program, subcommand, &server, test, pipeline, requests)?);
            }
        }
        rows.push(show(Row {
            name: format!("{} -P {pipeline}", test.to_uppercase()),
            unit: "µs",
            ours: median(&costs[0]),
            other: Some((String::from("redis-benchmark"), median(&costs[1]))),
            target: Some(target),
        }));
        if let Some(memtier) = &memtier {
            let theirs = (0..options.rounds)
                .map(|_| memtier_cost(memtier, &server, test, pipeline, requests))
                .collect::<Result<Vec<f64>>>()?;
            rows.push(show(Row {
                name: format!("{} -P {pipeline}", test.to_uppercase()),
                unit: "µs",
                ours: median(&costs[0]),
                other: Some((String::from("memtier_benchmark"), median(&theirs))),
                target: None,
            }));
        }
    }
    rows.push(show(Row {
        name: String::from("recording a latency"),
        unit: "ns",
        ours: recording_ns(options)?,
        other: None,
        target: Some(25.0),
    }));
    rows.push(show(Row {
        name: String::from("lateness p99 at 50,000/s, open loop"),
        unit: "µs",
        ours: lateness_us(options, &server)?,
        other: None,
        target: Some(200.0),
    }));
    Ok(rows)
}

/// CPU of memtier_benchmark for the same load: one thread, fifty connections, keys of a million.
fn memtier_cost(program: &Path, server: &Server, test: &str, pipeline: usize, requests: usize) -> Result<f64> {
    const CLIENTS: usize = 50;
    let ratio = if test == "get" { "0:1" } else { "1:0" };
    let before = process::ended_children_cpu_time()?;
    let status = Command::new("taskset")
        .args(["-c", "1"])
        .arg(program)
        .args(["-p", &server.port().to_string(), "-t", "1", "-c", &CLIENTS.to_string(), "--hide-histogram"])
        .args(["-n", &(requests / CLIENTS).to_string(), "--pipeline", &pipeline.to_string(), "--ratio", ratio])
        .args(["-d", "3", "--key-maximum", "1000000", "--key-prefix", "key:"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    ensure!(status.success(), "{} ended with {status}", program.display());
    let used = process::ended_children_cpu_time()?.saturating_sub(before);
    Ok(used.as_secs_f64() * 1e6 / requests as f64)
}

/// The generator's own measurement of its histogram.
fn recording_ns(options: &Options) -> Result<f64> {
    let output =
        Command::new("taskset").args(["-c", "1"]).arg(&options.oxidis).args(["benchmark", "--self-check"]).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix("recording a latency: ")?.strip_suffix(" ns"));
    line.and_then(|cost| cost.parse().ok()).with_context(|| format!("--self-check: {text}"))
}

/// How late requests of an open loop leave the generator's core though a connection is free: the median of the rounds.
/// Infinite where the rate was not kept up, as on a machine with other work.
fn lateness_us(options: &Options, server: &Server) -> Result<f64> {
    let mut late = Vec::new();
    for _ in 0..options.rounds {
        let output = Command::new("taskset")
            .args(["-c", "1"])
            .arg(&options.oxidis)
            .args(["benchmark", "-p", &server.port().to_string(), "-c", "50", "-t", "get", "-r", "1000000"])
            .args(["--rate", "50000", "--warmup", "200ms", "--output", "json"])
            .args(["--duration", &format!("{}s", options.seconds)])
            .output()?;
        let report: serde_json::Value = serde_json::from_slice(&output.stdout)
            .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
        let figure = |path: &str| {
            report.pointer(path).and_then(serde_json::Value::as_f64).with_context(|| format!("no {path} in the report"))
        };
        // Where connections had to be waited for, lateness is the server's doing and tells nothing of the generator.
        let is_kept_up = figure("/tests/0/tps")? > 49_000.0;
        late.push(if is_kept_up { figure("/tests/0/lateness/p99")? * 1_000.0 } else { f64::INFINITY });
    }
    Ok(median(&late))
}

fn cost(
    program: &Path,
    subcommand: Option<&str>,
    server: &Server,
    test: &str,
    pipeline: usize,
    requests: usize,
) -> Result<f64> {
    let before = process::ended_children_cpu_time()?;
    let status = Command::new("taskset")
        .args(["-c", "1"])
        .arg(program)
        .args(subcommand)
        .args(["-p", &server.port().to_string(), "-q", "-c", "50", "-r", "1000000", "-t", test])
        .args(["-n", &requests.to_string(), "-P", &pipeline.to_string()])
        .stdout(Stdio::null())
        .status()?;
    ensure!(status.success(), "{} ended with {status}", program.display());
    let used = process::ended_children_cpu_time()?.saturating_sub(before);
    Ok(used.as_secs_f64() * 1e6 / requests as f64)
}
