//! The proxy beside nutcracker, both in front of the same server: CPU per request of the proxy itself, throughput against
//! going straight, memory, added latency, batches over several servers.
//!
//! The proxy has core 0; the server and the generator share core 1, but where a row says otherwise.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use testkit::process::{self, Signal};
use testkit::{Client, Launch, Server, binary, server::free_port};

use super::race::{Load, Runner, fill_keys, generate, race};
use super::{Options, Row, median, show};

/// Keys that are there.
const KEYS: usize = 100_000;
/// Idle clients of the memory row.
const IDLE_CLIENTS: usize = 50_000;
/// Keys of a batch.
const BATCH: usize = 100;

/// All of it.
pub(super) fn run(options: &Options) -> Result<Vec<Row>> {
    let server = backend(options, "1")?;
    let mut rows = cost(options, &server)?;
    rows.extend(throughput(options, &server)?);
    rows.extend(latency(options, &server)?);
    rows.push(batches(options)?);
    rows.extend(idle(options, &server)?);
    rows.push(instructions(options)?);
    Ok(rows)
}

fn backend(options: &Options, core: &str) -> Result<Server> {
    let server = options.oxidis().pinned(core).args(&["--io-threads", "1"]).try_start()?;
    fill_keys(server.port(), KEYS, 3)?;
    Ok(server)
}

fn launch(options: &Options, topology: &str) -> Launch {
    Launch::proxy_of(&options.oxidis).args(&["--io-threads", "1", "--topology", topology])
}

fn ours(options: &Options, server: &Server, core: &str) -> Result<Server> {
    Ok(launch(options, &format!("server 127.0.0.1:{}", server.port())).pinned(core).try_start()?)
}

fn row(name: String, unit: &'static str, ours: f64, other: Option<f64>, target: Option<f64>) -> Row {
    show(Row { name, unit, ours, other: other.map(|other| (String::from("nutcracker"), other)), target })
}

/// Nutcracker in front of a server, on core 0.
struct Nutcracker {
    child: Child,
    port: u16,
    _directory: tempfile::TempDir,
}

impl Nutcracker {
    fn start(server: &Server) -> Result<Nutcracker> {
        let program = binary::peer("nutcracker")
            .or_else(|| Some("/usr/sbin/nutcracker".into()).filter(|path: &std::path::PathBuf| path.is_file()));
        let program = program.context("nutcracker is missing: apt-get install nutcracker")?;
        let directory = tempfile::tempdir()?;
        let (port, stats) = (free_port()?, free_port()?);
        let file = directory.path().join("nutcracker.yml");
        std::fs::write(
            &file,
            format!(
                "pool:\n  listen: 127.0.0.1:{port}\n  hash: fnv1a_64\n  distribution: ketama\n  redis: true\n  servers:\n   - 127.0.0.1:{}:1\n",
                server.port()
            ),
        )?;
        let child = Command::new("taskset")
            .args(["-c", "0"])
            .arg(program)
            .args(["-s", &stats.to_string(), "-c"])
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let nutcracker = Nutcracker { child, port, _directory: directory };
        let end = Instant::now() + Duration::from_secs(10);
        while Client::connect(port).and_then(|mut client| client.call(&["GET", "probe"])).is_err() {
            ensure!(Instant::now() < end, "nutcracker does not answer on port {port}");
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(nutcracker)
    }

    fn runner(&self) -> Runner {
        // taskset has become the program.
        Runner { port: self.port, pid: self.child.id() }
    }
}

impl Drop for Nutcracker {
    fn drop(&mut self) {
        let _ = process::send_signal(self.child.id(), Signal::Terminate);
        let _ = self.child.wait();
    }
}

/// The proxy's own CPU per request.
fn cost(options: &Options, server: &Server) -> Result<Vec<Row>> {
    let proxy = ours(options, server, "0")?;
    let nutcracker = Nutcracker::start(server)?;
    let mut rows = Vec::new();
    for clients in [50, 200] {
        for (pipeline, target) in [(1, 0.80), (16, 0.35)] {
            for test in ["get", "set"] {
                let work = ["-t", test];
                let load = Load { keys: KEYS, clients, ..Load::new(&work, pipeline) };
                let costs = race(options, &[Runner::from(&proxy), nutcracker.runner()], &load)?;
                let name = format!("{} -P {pipeline}, {clients} clients", test.to_uppercase());
                rows.push(row(name, "µs", costs[0], Some(costs[1]), Some(target)));
            }
        }
    }
    let memory = [proxy.pid(), nutcracker.child.id()].map(|pid| process::resident_bytes(pid).unwrap_or(0));
    let [ours, theirs] = memory.map(mebibytes);
    rows.push(row("memory after 200 clients".into(), "MiB", ours, None, Some(12.0)));
    rows.push(row("memory after 200 clients".into(), "MiB", ours, Some(theirs), None));
    Ok(rows)
}

/// Straight throughput over throughput through the proxy; proxy and server have a core each, the generator runs where there
/// is room.
fn throughput(options: &Options, server: &Server) -> Result<Vec<Row>> {
    let proxy = ours(options, server, "0")?;
    let nutcracker = Nutcracker::start(server)?;
    let mut rows = Vec::new();
    for test in ["get", "set"] {
        let work = ["-t", test];
        let load = Load { keys: KEYS, threads: 1, ..Load::new(&work, 16) };
        let requests = if options.quick { 200_000 } else { 1_000_000 };
        let ports = [server.port(), proxy.port(), nutcracker.port];
        let mut rates = [Vec::new(), Vec::new(), Vec::new()];
        for round in 0..options.rounds {
            for turn in 0..ports.len() {
                let index = (round + turn) % ports.len();
                rates[index].push(generate(ports[index], &load, requests)?);
            }
        }
        let [straight, through, theirs] = rates.map(|rates| median(&rates));
        let name = format!("{} -P 16: straight over through", test.to_uppercase());
        rows.push(row(name.clone(), "×", straight / through, None, Some(1.0 / 0.95)));
        rows.push(row(name, "×", straight / through, Some(straight / theirs), None));
    }
    Ok(rows)
}

/// What the proxy adds to the latency at half the rate that it can do.
fn latency(options: &Options, server: &Server) -> Result<Vec<Row>> {
    let proxy = ours(options, server, "0")?;
    let work = ["-t", "get"];
    let load = Load { keys: KEYS, ..Load::new(&work, 1) };
    let rate = (generate(proxy.port(), &load, 50_000)? / 2.0).round();
    let mut added = [Vec::new(), Vec::new()];
    for _ in 0..options.rounds {
        let straight = percentiles(options, server.port(), rate)?;
        let through = percentiles(options, proxy.port(), rate)?;
        for (added, (through, straight)) in added.iter_mut().zip(through.into_iter().zip(straight)) {
            added.push((through - straight) * 1_000.0);
        }
    }
    let [p50, p99] = added.map(|added| median(&added));
    Ok(vec![
        row(format!("added at {rate:.0}/s, p50"), "µs", p50, None, Some(60.0)),
        row(format!("added at {rate:.0}/s, p99"), "µs", p99, None, Some(300.0)),
    ])
}

/// Median and 99th percentile in milliseconds at a fixed rate.
fn percentiles(options: &Options, port: u16, rate: f64) -> Result<[f64; 2]> {
    let output = Command::new("taskset")
        .args(["-c", "1"])
        .arg(&options.oxidis)
        .args(["benchmark", "-p", &port.to_string(), "-c", "50", "-t", "get", "-r", &KEYS.to_string()])
        .args(["--rate", &rate.to_string(), "--warmup", "200ms", "--output", "json"])
        .args(["--duration", &format!("{}s", options.seconds.max(0.5))])
        .output()?;
    let report: serde_json::Value =
        serde_json::from_slice(&output.stdout).with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
    let figure = |name: &str| {
        let path = format!("/tests/0/service/{name}");
        report.pointer(&path).and_then(serde_json::Value::as_f64).with_context(|| format!("no {path} in the report"))
    };
    Ok([figure("p50")?, figure("p99")?])
}

/// The time of an MGET of a hundred keys over three servers over that on one.
fn batches(options: &Options) -> Result<Row> {
    let servers = (0..3).map(|_| backend(options, "1")).collect::<Result<Vec<_>>>()?;
    let [one, two, three] = [0, 1, 2].map(|index: usize| servers[index].port());
    let three = format!("static 0-5460@127.0.0.1:{one} 5461-10922@127.0.0.1:{two} 10923-16383@127.0.0.1:{three}");
    let split = launch(options, &three).pinned("0").try_start()?;
    let whole = launch(options, &format!("static 0-16383@127.0.0.1:{one}")).pinned("0").try_start()?;
    let keys = (0..BATCH).map(|number| format!("key:{number:012}"));
    let command: Vec<String> = std::iter::once("MGET".to_owned()).chain(keys).collect();
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..options.rounds {
        for (proxy, times) in [&split, &whole].into_iter().zip(&mut times) {
            let mut client = proxy.client();
            let count = if options.quick { 2_000 } else { 10_000 };
            let started = Instant::now();
            for _ in 0..count {
                let reply = client.call(&command)?;
                ensure!(!reply.is_error(), "MGET: {reply}");
            }
            times.push(started.elapsed().as_secs_f64() * 1e6 / f64::from(count));
        }
    }
    let [split, whole] = times.map(|times| median(&times));
    Ok(show(Row {
        name: format!("MGET of {BATCH} keys over 3 servers"),
        unit: "µs",
        ours: split,
        other: Some((String::from("over 1 server"), whole)),
        target: Some(1.3),
    }))
}

/// What idle clients cost.
fn idle(options: &Options, server: &Server) -> Result<Vec<Row>> {
    let clients = if options.quick { IDLE_CLIENTS / 10 } else { IDLE_CLIENTS };
    let maxclients = (clients + 500).to_string();
    let topology = format!("server 127.0.0.1:{}", server.port());
    let proxy =
        Launch::proxy_of(&options.oxidis).args(&["--topology", &topology, "--maxclients", &maxclients]).try_start()?;
    // So many that the pools of the first ones do not count.
    proxy.client().run("GET probe");
    let before = process::resident_bytes(proxy.pid())?;
    let mut load = Command::new(&options.oxidis)
        .args(["benchmark", "-p", &proxy.port().to_string(), "--progress", "never", "-c", &clients.to_string()])
        .args(["--per-client", "1", "--hold", "60s", "-t", "get"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let end = Instant::now() + Duration::from_secs(90);
    let mut last = 0;
    let result = loop {
        std::thread::sleep(Duration::from_millis(500));
        let there = established(proxy.port());
        if there >= clients && there == last {
            break process::resident_bytes(proxy.pid()).map_err(anyhow::Error::from);
        }
        last = there;
        if Instant::now() > end || load.try_wait()?.is_some() {
            break Err(anyhow::anyhow!("only {there} of {clients} clients came"));
        }
    };
    let _ = load.kill();
    let _ = load.wait();
    let grown = result?.saturating_sub(before);
    Ok(vec![row(
        format!("memory of {clients} idle clients, each"),
        "bytes",
        to_f64(grown) / to_f64(clients as u64),
        None,
        Some(1024.0),
    )])
}

/// Connections of a port of ours that stand.
fn established(port: u16) -> usize {
    let wanted = format!(":{port:04X}");
    let text = std::fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    text.lines()
        .filter(|line| {
            let mut words = line.split_whitespace().skip(1);
            let (local, state) = (words.next().unwrap_or(""), words.nth(1).unwrap_or(""));
            local.ends_with(&wanted) && state == "01"
        })
        .count()
}

/// User instructions of the proxy per pipelined GET.
fn instructions(options: &Options) -> Result<Row> {
    ensure!(binary::on_path("valgrind").is_some(), "valgrind is missing: apt-get install valgrind");
    let server = backend(options, "1")?;
    let count = |requests: usize| -> Result<f64> {
        let directory = tempfile::tempdir()?;
        let file = directory.path().join("callgrind");
        let option = format!("--callgrind-out-file={}", file.display());
        let mut proxy = launch(options, &format!("static 0-16383@127.0.0.1:{}", server.port()))
            .wrapped(&["valgrind", "--quiet", "--tool=callgrind", &option])
            .ready_within(Duration::from_secs(120))
            .try_start()?;
        let work = ["-t", "get"];
        generate(proxy.port(), &Load { keys: KEYS, ..Load::new(&work, 16) }, requests)?;
        proxy.stop(Signal::Terminate)?;
        let text = std::fs::read_to_string(&file).context("callgrind wrote nothing")?;
        let totals =
            text.lines().filter_map(|line| line.strip_prefix("totals: ").or_else(|| line.strip_prefix("summary: ")));
        let Some(total) = totals.filter_map(|number| number.trim().parse::<f64>().ok()).next() else {
            bail!("no totals in callgrind's file");
        };
        Ok(total)
    };
    let (few, many) = (20_000, 80_000);
    let slope = (count(many)? - count(few)?) / f64::from(60_000);
    Ok(row("GET -P 16".into(), "instructions", slope, None, None))
}

fn mebibytes(bytes: u64) -> f64 {
    to_f64(bytes) / f64::from(1 << 20)
}

#[allow(clippy::cast_precision_loss, reason = "bytes for people")]
fn to_f64(number: u64) -> f64 {
    number as f64
}
