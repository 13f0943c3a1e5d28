//! Saving and loading five million keys beside redis-server: how long it takes, what a probe and writers feel
//! meanwhile, what memory it costs.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use testkit::{Client, Launch, Server, process};

use super::{Options, Row, show};

const KEYS: usize = 5_000_000;
/// Connections that write, and commands each has in flight.
const WRITERS: usize = 8;
const PIPELINE: usize = 16;
/// How long writers run before the save, to know their rate without it.
const BEFORE: Duration = Duration::from_secs(3);
/// Longest wait for a save or a load.
const LIMIT: Duration = Duration::from_secs(300);

/// Shares of the peer's time, of the rate before and of the data that may be taken.
const WALL_TARGET: f64 = 0.8;
const SLOWER_TARGET: f64 = 1.0 / 0.85;
const STALL_TARGET_MS: f64 = 2.0;
const MEMORY_TARGET_PERCENT: f64 = 5.0;
/// Memory that is free of charge.
const MEMORY_FREE: u64 = 32 << 20;

/// What one server took.
struct Saved {
    idle_s: f64,
    busy_s: f64,
    /// Longest waits of the probe, without and with a save, in ms.
    stall_before_ms: f64,
    stall_ms: f64,
    /// SETs a second.
    rate_before: f64,
    rate: f64,
    /// Bytes above what was resident before.
    growth: u64,
    resident: u64,
    file: Vec<u8>,
}

pub(super) fn run(options: &Options) -> Result<Vec<Row>> {
    let keys = if options.quick { KEYS / 10 } else { KEYS };
    let ours = save(options.oxidis().args(&["--io-threads", "2", "--rdb-version", "10"]), keys, false)?;
    let theirs = save(options.peer(), keys, true)?;
    let mut rows = Vec::new();
    let mut row = |name: &str, unit, ours: f64, other: Option<f64>, target| {
        let other = other.map(|other| (String::from("redis-server"), other));
        rows.push(show(Row { name: name.to_owned(), unit, ours, other, target }));
    };
    row("BGSAVE, idle", "s", ours.idle_s, Some(theirs.idle_s), Some(WALL_TARGET));
    row("BGSAVE under SET -P 16", "s", ours.busy_s, Some(theirs.busy_s), Some(WALL_TARGET));
    row("longest probe wait before it", "ms", ours.stall_before_ms, Some(theirs.stall_before_ms), None);
    row("longest probe wait during it", "ms", ours.stall_ms, None, Some(STALL_TARGET_MS));
    row("longest probe wait during it", "ms", ours.stall_ms, Some(theirs.stall_ms), None);
    row("SET during it: time per command, x", "", ours.rate_before / ours.rate, None, Some(SLOWER_TARGET));
    let slower = (ours.rate_before / ours.rate, theirs.rate_before / theirs.rate);
    row("SET during it: time per command, x", "", slower.0, Some(slower.1), None);
    #[allow(clippy::cast_precision_loss)]
    let percent = |saved: &Saved, free: u64| saved.growth.saturating_sub(free) as f64 * 100.0 / saved.resident as f64;
    row("memory growth beyond 32 MiB", "%", percent(&ours, MEMORY_FREE), None, Some(MEMORY_TARGET_PERCENT));
    row("memory growth", "%", percent(&ours, 0), Some(percent(&theirs, 0)), None);
    let both_s = (full_sync(options.oxidis(), &["--io-threads", "2"], keys)?, full_sync(options.peer(), &[], keys)?);
    row("full synchronization of a replica", "s", both_s.0, Some(both_s.1), Some(WALL_TARGET));
    let peer_s = load(options.peer(), &ours.file)?;
    for (workers, target) in [("2", 0.5), ("1", 0.8)] {
        let ours_s = load(options.oxidis().args(&["--io-threads", workers]), &ours.file)?;
        row(&format!("load, {workers} workers"), "s", ours_s, Some(peer_s), Some(target));
    }
    Ok(rows)
}

/// Saves twice: with nobody else there, and under writes.
fn save(launch: Launch, keys: usize, forks: bool) -> Result<Saved> {
    let server = launch.args(&["--rdbcompression", "yes"]).try_start()?;
    let mut client = server.client();
    client.set_timeout(LIMIT)?;
    ensure!(!client.call(&["DEBUG", "POPULATE", &keys.to_string(), "key", "3"])?.is_error());
    let idle_s = background_save(&mut client)?;
    let file = std::fs::read(server.directory().join("dump.rdb"))?;
    let (stop, sent) = (AtomicBool::new(false), AtomicU64::new(0));
    let longest = AtomicU64::new(0);
    let port = server.port();
    let mut saved = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|seed| {
                scope.spawn({
                    let (stop, sent) = (&stop, &sent);
                    move || write(port, seed as u64 + 1, keys, stop, sent)
                })
            })
            .collect();
        let probe = scope.spawn(|| probe(port, &stop, &longest));
        let measured = measure(&mut client, &server, &sent, &longest, forks);
        stop.store(true, Ordering::Relaxed);
        for writer in writers {
            writer.join().map_err(|_| anyhow::anyhow!("a writer panicked"))??;
        }
        probe.join().map_err(|_| anyhow::anyhow!("the probe panicked"))??;
        measured
    })?;
    saved.idle_s = idle_s;
    saved.file = file;
    Ok(saved)
}

fn measure(client: &mut Client, server: &Server, sent: &AtomicU64, longest: &AtomicU64, forks: bool) -> Result<Saved> {
    std::thread::sleep(Duration::from_secs(1));
    let milliseconds =
        |longest: &AtomicU64| Duration::from_nanos(longest.swap(0, Ordering::Relaxed)).as_secs_f64() * 1e3;
    let rate = |since: Instant, sent: &AtomicU64| {
        #[allow(clippy::cast_precision_loss)]
        let count = sent.swap(0, Ordering::Relaxed) as f64;
        count / since.elapsed().as_secs_f64()
    };
    sent.store(0, Ordering::Relaxed);
    longest.store(0, Ordering::Relaxed);
    let started = Instant::now();
    std::thread::sleep(BEFORE);
    let (rate_before, stall_before_ms) = (rate(started, sent), milliseconds(longest));
    let resident = process::resident_bytes(server.pid())?;
    process::reset_peak(server.pid())?;
    let started = Instant::now();
    let busy_s = background_save(client)?;
    let (rate, stall_ms) = (rate(started, sent), milliseconds(longest));
    let growth = if forks {
        // What parent and child hold twice is the copied part.
        client.info("rdb_last_cow_size").and_then(|bytes| bytes.parse().ok()).context("no rdb_last_cow_size")?
    } else {
        process::peak_resident_bytes(server.pid())?.saturating_sub(resident)
    };
    Ok(Saved { idle_s: 0.0, busy_s, stall_before_ms, stall_ms, rate_before, rate, growth, resident, file: Vec::new() })
}

/// Seconds from BGSAVE until its file is there.
fn background_save(client: &mut Client) -> Result<f64> {
    let started = Instant::now();
    let reply = client.call(&["BGSAVE"])?;
    ensure!(!reply.is_error(), "BGSAVE: {reply}");
    while client.info("rdb_bgsave_in_progress").as_deref() == Some("1") {
        ensure!(started.elapsed() < LIMIT, "BGSAVE does not end");
        std::thread::sleep(Duration::from_millis(10));
    }
    ensure!(client.info("rdb_last_bgsave_status").as_deref() == Some("ok"), "BGSAVE failed");
    Ok(started.elapsed().as_secs_f64())
}

/// Sends pipelines of SET on random keys until told to stop.
pub(super) fn write(port: u16, seed: u64, keys: usize, stop: &AtomicBool, sent: &AtomicU64) -> Result<()> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_nodelay(true)?;
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut request = Vec::new();
    let mut replies = [0_u8; PIPELINE * 5];
    while !stop.load(Ordering::Relaxed) {
        request.clear();
        for _ in 0..PIPELINE {
            // xorshift: good enough to spread keys, and costs nothing.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let key = format!("key:{}", state % keys as u64);
            write!(request, "*3\r\n$3\r\nSET\r\n${}\r\n{key}\r\n$3\r\nxyz\r\n", key.len())?;
        }
        stream.write_all(&request)?;
        stream.read_exact(&mut replies)?;
        ensure!(replies.starts_with(b"+OK\r\n"), "SET: {}", String::from_utf8_lossy(&replies));
        sent.fetch_add(PIPELINE as u64, Ordering::Relaxed);
    }
    Ok(())
}

/// Asks a thousand times a second and keeps the longest wait, in nanoseconds.
fn probe(port: u16, stop: &AtomicBool, longest: &AtomicU64) -> Result<()> {
    let mut client = Client::connect(port)?;
    client.set_timeout(LIMIT)?;
    while !stop.load(Ordering::Relaxed) {
        let asked = Instant::now();
        client.call(&["GET", "key:1"])?;
        let waited = u64::try_from(asked.elapsed().as_nanos()).unwrap_or(u64::MAX);
        longest.fetch_max(waited, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Seconds from REPLICAOF until a replica of the same kind has all and follows.
fn full_sync(launch: Launch, args: &[&str], keys: usize) -> Result<f64> {
    let launch = launch.args(args).args(&["--repl-diskless-sync-delay", "0"]);
    let (primary, replica) = (launch.try_start()?, launch.try_start()?);
    let mut client = primary.client();
    client.set_timeout(LIMIT)?;
    ensure!(!client.call(&["DEBUG", "POPULATE", &keys.to_string(), "key", "3"])?.is_error());
    let mut at_replica = replica.client();
    at_replica.set_timeout(LIMIT)?;
    let started = Instant::now();
    ensure!(!at_replica.call(&["REPLICAOF", "127.0.0.1", &primary.port().to_string()])?.is_error());
    while at_replica.info("master_link_status").as_deref() != Some("up") {
        ensure!(started.elapsed() < LIMIT, "the replica does not come up");
        std::thread::sleep(Duration::from_millis(10));
    }
    let took = started.elapsed().as_secs_f64();
    let sizes = (client.call(&["DBSIZE"])?, at_replica.call(&["DBSIZE"])?);
    ensure!(sizes.0 == sizes.1, "{} keys, {} at the replica", sizes.0, sizes.1);
    Ok(took)
}

/// Seconds from the start of a server until it answers with the data in memory.
fn load(launch: Launch, file: &[u8]) -> Result<f64> {
    let directory = tempfile::tempdir()?;
    std::fs::write(directory.path().join("dump.rdb"), file)?;
    let started = Instant::now();
    let server = launch.directory(directory.path()).ready_within(LIMIT).try_start()?;
    let took = started.elapsed().as_secs_f64();
    let size = server.client().run("DBSIZE").to_string();
    ensure!(!size.starts_with(":0"), "nothing was loaded");
    Ok(took)
}
