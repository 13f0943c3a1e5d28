//! Very many clients on one server: do all connect and get served, what does each cost in memory and CPU, and what does
//! one client feel while others come in crowds or ask for the list of all.
//!
//! The load is `oxidis benchmark`, which spreads descriptors over threads and connections over loopback addresses, so that
//! 120,000 fit on one machine whose hard limit of descriptors is 20,000. Every wait has an end.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value as Json;
use testkit::process::{self, Signal};
use testkit::{Client, Server};

use super::floor::Floor;
use super::race::{fill_keys, start_pinned};
use super::{Options, Row, median, show};

/// Clients of the full size.
const CLIENTS: usize = 120_000;
/// Clients that come at once.
const CROWD: usize = 10_000;
/// Clients that redis-server can hold with a hard limit of 20,000 descriptors.
const PEER_CLIENTS_MAX: usize = 18_000;
/// Keys that GET asks for.
const KEYS: usize = 100_000;
/// Longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(90);

/// All of it.
pub(super) fn run(options: &Options) -> Result<Vec<Row>> {
    let scale = if options.quick { 4 } else { 1 };
    let mut rows = hold(options, CLIENTS / scale)?;
    let sizes: &[usize] = if options.quick { &[1_000, 10_000, 30_000] } else { &[1_000, 10_000, 18_000, 80_000] };
    for size in sizes {
        rows.extend(get(options, *size)?);
    }
    Ok(rows)
}

fn at_most(name: &str, unit: &'static str, ours: f64, target: f64) -> Row {
    show(Row { name: name.to_owned(), unit, ours, other: None, target: Some(target) })
}

fn told(name: &str, unit: &'static str, ours: f64) -> Row {
    show(Row { name: name.to_owned(), unit, ours, other: None, target: None })
}

// ---- held clients ------------------------------------------------------------------------------------------------

/// Memory, idle CPU and what a probe feels, with `clients` on one server.
fn hold(options: &Options, clients: usize) -> Result<Vec<Row>> {
    let maxclients = (clients + CROWD + 1_000).to_string();
    let server = options.oxidis().args(&["--maxclients", &maxclients]).try_start()?;
    let mut client = server.client();
    client.set_timeout(PATIENCE)?;
    client.run("SET probe x");
    let before = process::resident_bytes(server.pid())?;
    let socket_before = socket_memory();
    let mut rows = Vec::new();

    let load = Load::start(
        options,
        server.port(),
        &["-c", &clients.to_string(), "--per-client", "1", "--hold", "120s", "ping"],
    )?;
    // The commands of this client and of the generator's first connection are few beside those of all.
    wait("all clients have spoken", || Ok(number(&mut client, "total_commands_processed")? >= as_f64(clients)))?;
    let spoken = process::resident_bytes(server.pid())?.saturating_sub(before);
    let connected = number(&mut client, "connected_clients")?;
    rows.push(at_most("clients not connected", "clients", (as_f64(clients) - connected).max(0.0), 0.0));
    rows.push(at_most(
        "memory per client, all have just spoken",
        "bytes",
        bytes_as_f64(spoken) / as_f64(clients),
        2048.0,
    ));
    std::thread::sleep(Duration::from_secs(8));
    let rested = process::resident_bytes(server.pid())?.saturating_sub(before);
    rows.push(at_most("memory per client, after 8 s of rest", "bytes", bytes_as_f64(rested) / as_f64(clients), 512.0));
    let told_bytes = number(&mut client, "mem_clients_normal")? / as_f64(clients);
    rows.push(told("mem_clients_normal per client", "bytes", told_bytes));
    let sockets = socket_memory().saturating_sub(socket_before);
    rows.push(told("kernel memory per client, both ends", "bytes", bytes_as_f64(sockets) / as_f64(clients)));

    let (start, cpu) = (Instant::now(), process::cpu_time(server.pid())?);
    std::thread::sleep(Duration::from_secs(8));
    let used = process::cpu_time(server.pid())?.saturating_sub(cpu);
    let percent = used.as_secs_f64() * 100.0 / start.elapsed().as_secs_f64();
    rows.push(at_most("CPU with all clients idle", "% of a core", percent, 0.3));

    rows.push(at_most("probe p99 while CLIENT LIST runs", "ms", while_listing(&server)?, 20.0));
    rows.push(at_most("probe p99 while 10,000 connect", "ms", while_crowding(options, &server)?, 20.0));
    load.end()?;
    Ok(rows)
}

/// What the probe feels while another client asks for the list of all again and again.
fn while_listing(server: &Server) -> Result<f64> {
    let mut lister = server.client();
    lister.set_timeout(PATIENCE)?;
    let end = Instant::now() + Duration::from_secs(5);
    probe(server.port(), move || {
        while Instant::now() < end {
            let reply = lister.call(&["CLIENT", "LIST"])?;
            ensure!(!reply.is_error(), "CLIENT LIST: {reply}");
        }
        Ok(())
    })
}

/// What the probe feels while a crowd connects at once and stays.
fn while_crowding(options: &Options, server: &Server) -> Result<f64> {
    let mut client = server.client();
    client.set_timeout(PATIENCE)?;
    let there = number(&mut client, "connected_clients")?;
    let port = server.port();
    let oxidis = options.oxidis.clone();
    probe(port, move || {
        let load = Load::spawn(&oxidis, port, &["-c", &CROWD.to_string(), "-I"])?;
        wait("the crowd is there", || Ok(number(&mut client, "connected_clients")? >= there + as_f64(CROWD)))?;
        load.end()
    })
}

/// The 99th percentile in ms of a client that asks 100 times a second while `work` is done.
fn probe(port: u16, work: impl FnOnce() -> Result<()>) -> Result<f64> {
    const PERIOD: Duration = Duration::from_millis(10);
    let mut client = Client::connect(port)?;
    client.set_timeout(PATIENCE)?;
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let probing = scope.spawn(|| -> std::io::Result<Vec<f64>> {
            let (mut waited, started, mut due) = (Vec::new(), Instant::now(), Duration::ZERO);
            while !done.load(Ordering::Relaxed) {
                client.call(&["GET", "probe"])?;
                waited.push(started.elapsed().saturating_sub(due).as_secs_f64() * 1e3);
                due += PERIOD;
                std::thread::sleep(due.saturating_sub(started.elapsed()));
            }
            Ok(waited)
        });
        let worked = work();
        done.store(true, Ordering::Relaxed);
        let mut waited = probing.join().map_err(|_| anyhow::anyhow!("the probe panicked"))??;
        worked?;
        waited.sort_by(f64::total_cmp);
        let rank = waited.len() * 99 / 100;
        Ok(waited.get(rank.min(waited.len().saturating_sub(1))).copied().unwrap_or(0.0))
    })
}

// ---- GET ---------------------------------------------------------------------------------------------------------

/// Server CPU per GET with so many clients, beside redis-server and the floor.
fn get(options: &Options, clients: usize) -> Result<Vec<Row>> {
    let maxclients = (clients + 500).to_string();
    let ours = start_pinned(options.oxidis(), &["--maxclients", &maxclients, "--io-threads", "1"])?;
    fill_keys(ours.port(), KEYS, 3)?;
    let floor = Floor::start_for("$3\r\nxxx\r\n", clients)?;
    let mut targets = vec![("floor (bare epoll)", 1.10, floor.port(), floor.pid())];
    let peer;
    if clients <= PEER_CLIENTS_MAX {
        peer = start_pinned(options.peer(), &["--maxclients", &maxclients, "--protected-mode", "no"])?;
        fill_keys(peer.port(), KEYS, 3)?;
        targets.insert(0, ("redis-server", 0.82, peer.port(), peer.pid()));
    }
    let mut ours_cost = Vec::new();
    let mut costs = vec![Vec::new(); targets.len()];
    let (mut jain, mut late) = (1.0_f64, 0.0_f64);
    let rounds = if clients > PEER_CLIENTS_MAX { options.rounds.min(3) } else { options.rounds };
    for round in 0..rounds {
        // Who comes first alternates.
        for turn in 0..=targets.len() {
            match (turn + round) % (targets.len() + 1) {
                0 => {
                    let run = measure(options, ours.port(), ours.pid(), clients)?;
                    ours_cost.push(run.cpu_us);
                    jain = jain.min(run.jain);
                    late = late.max(run.p99_to_mean);
                }
                other => {
                    let (_, _, port, pid) = targets[other - 1];
                    costs[other - 1].push(measure(options, port, pid, clients)?.cpu_us);
                }
            }
        }
    }
    let name = format!("GET -P 1, {clients} clients");
    let mut rows = Vec::new();
    for ((other, target, _, _), theirs) in targets.iter().zip(&costs) {
        rows.push(show(Row {
            name: name.clone(),
            unit: "µs",
            ours: median(&ours_cost),
            other: Some(((*other).to_owned(), median(theirs))),
            target: Some(*target),
        }));
    }
    rows.push(at_most(&format!("{name}: 1 - Jain index"), "", 1.0 - jain, 0.05));
    rows.push(at_most(&format!("{name}: p99 to mean"), "", late, 3.0));
    Ok(rows)
}

struct Run {
    cpu_us: f64,
    jain: f64,
    p99_to_mean: f64,
}

/// One run of the generator on core 1: at least eight requests of each client.
fn measure(options: &Options, port: u16, pid: u32, clients: usize) -> Result<Run> {
    let requests = (clients * 8).max(if options.quick { 50_000 } else { 200_000 });
    let output = Command::new("timeout")
        .args(["90", "taskset", "-c", "1"])
        .arg(&options.oxidis)
        .args([
            "benchmark",
            "-p",
            &port.to_string(),
            "-t",
            "get",
            "-c",
            &clients.to_string(),
            "-n",
            &requests.to_string(),
        ])
        .args(["-r", &KEYS.to_string(), "--server-pid", &pid.to_string(), "--hold", "300ms", "--output", "json"])
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let json: Json = serde_json::from_str(&text)
        .with_context(|| format!("{clients} clients: {text}{}", String::from_utf8_lossy(&output.stderr)))?;
    let test = json.pointer("/tests/0").context("no test in the report")?;
    let figure =
        |path: &str| test.pointer(path).and_then(Json::as_f64).with_context(|| format!("no {path} in the report"));
    ensure!(
        figure("/fairness/served")? >= as_f64(clients),
        "only {} of {clients} clients were served",
        figure("/fairness/served")?
    );
    Ok(Run {
        cpu_us: figure("/server_cpu_us")?,
        jain: figure("/fairness/jain")?,
        p99_to_mean: figure("/service/p99")? / figure("/service/avg")?.max(0.001),
    })
}

// ---- helpers -----------------------------------------------------------------------------------------------------

/// A generator that runs beside us.
struct Load {
    child: Child,
}

impl Load {
    fn start(options: &Options, port: u16, arguments: &[&str]) -> Result<Load> {
        Load::spawn(&options.oxidis, port, arguments)
    }

    fn spawn(oxidis: &PathBuf, port: u16, arguments: &[&str]) -> Result<Load> {
        let child = Command::new(oxidis)
            .args(["benchmark", "-p", &port.to_string(), "--progress", "never"])
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        Ok(Load { child })
    }

    /// Ends it; what it complained of is an error.
    fn end(mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            let mut said = String::new();
            if let Some(stderr) = self.child.stderr.take() {
                for line in BufReader::new(stderr).lines().map_while(Result::ok).take(5) {
                    said.push_str(&line);
                }
            }
            bail!("the generator has ended with {status}: {said}");
        }
        process::send_signal(self.child.id(), Signal::Kill)?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wait(what: &str, mut probe: impl FnMut() -> Result<bool>) -> Result<()> {
    let end = Instant::now() + PATIENCE;
    while !probe()? {
        ensure!(Instant::now() < end, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn number(client: &mut Client, field: &str) -> Result<f64> {
    let text = client.info(field).with_context(|| format!("INFO has no {field}"))?;
    Ok(text.trim().parse()?)
}

/// Bytes of the kernel's caches of sockets and of what belongs to them.
fn socket_memory() -> u64 {
    let caches = ["TCP", "TCPv6", "sock_inode_cache", "filp", "eventpoll_epi", "dentry", "eventpoll_pwq"];
    let text = std::fs::read_to_string("/proc/slabinfo").unwrap_or_default();
    let bytes = text.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_ours = words.first().is_some_and(|name| caches.contains(name));
        let objects: u64 = words.get(1)?.parse().ok()?;
        let size: u64 = words.get(3)?.parse().ok()?;
        is_ours.then_some(objects * size)
    });
    bytes.sum()
}

#[allow(clippy::cast_precision_loss, reason = "a count of clients")]
fn as_f64(count: usize) -> f64 {
    count as f64
}

#[allow(clippy::cast_precision_loss, reason = "bytes for people")]
fn bytes_as_f64(bytes: u64) -> f64 {
    bytes as f64
}
