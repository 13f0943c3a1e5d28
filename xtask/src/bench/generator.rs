//! The two load generators, against the same redis-server: CPU of the generator per request.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use testkit::{Server, binary, process};

use super::race::start_pinned;
use super::{Options, Row, median, show};

/// GET and SET at two depths, one thread each.
pub(super) fn run(options: &Options) -> Result<Vec<Row>> {
    let theirs = binary::peer("redis-benchmark").context("redis-benchmark is missing: apt-get install redis-tools")?;
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
    }
    Ok(rows)
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
