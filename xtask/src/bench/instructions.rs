//! User instructions per request, counted by callgrind: the slope between two lengths of the
//! same load, so that start and end of the server cancel out. The figure hardly depends on the
//! machine.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use testkit::Launch;
use testkit::process::Signal;

use super::race::{Load, fill_keys, generate};
use super::{Options, Row, show};

const KEYS: usize = 20_000;

/// GET and SET at two depths.
pub(super) fn run(options: &Options) -> Result<Vec<Row>> {
    ensure!(testkit::binary::on_path("valgrind").is_some(), "valgrind is missing: apt-get install valgrind");
    let mut rows = Vec::new();
    for (test, pipeline, target) in
        [("get", 16, 1_300.0), ("set", 16, 1_700.0), ("get", 1, 1_700.0), ("set", 1, 2_200.0)]
    {
        let ours = slope(&options.oxidis().args(&["--io-threads", "1"]), test, pipeline)?;
        let theirs = slope(&options.peer(), test, pipeline)?;
        let name = format!("{} -P {pipeline}", test.to_uppercase());
        rows.push(show(Row { name: name.clone(), unit: "instructions", ours, other: None, target: Some(target) }));
        let other = Some((String::from("redis-server"), theirs));
        rows.push(show(Row { name, unit: "instructions", ours, other, target: None }));
    }
    Ok(rows)
}

fn slope(launch: &Launch, test: &str, pipeline: usize) -> Result<f64> {
    let (few, many) = (20_000, 80_000);
    let first = instructions(launch, test, pipeline, few)?;
    let second = instructions(launch, test, pipeline, many)?;
    Ok((second - first) / (many - few) as f64)
}

fn instructions(launch: &Launch, test: &str, pipeline: usize, requests: usize) -> Result<f64> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("callgrind");
    let option = format!("--callgrind-out-file={}", file.display());
    let mut server = launch
        .clone()
        .wrapped(&["valgrind", "--quiet", "--tool=callgrind", &option])
        .ready_within(Duration::from_secs(120))
        .try_start()?;
    fill_keys(server.port(), KEYS, 3)?;
    let work = ["-t", test];
    let load = Load { keys: KEYS, ..Load::new(&work, pipeline) };
    generate(server.port(), &load, requests)?;
    server.stop(Signal::Terminate)?;
    let text = std::fs::read_to_string(&file).context("callgrind wrote nothing")?;
    let total = text
        .lines()
        .filter_map(|line| line.strip_prefix("totals: ").or_else(|| line.strip_prefix("summary: ")))
        .find_map(|number| number.trim().parse::<f64>().ok());
    total.context("no totals in callgrind's file")
}
