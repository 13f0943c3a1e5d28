//! A12, A13, A14: snapshots show one instant, files go both ways, and clocks that jump.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use testkit::process::{self, Signal};
use testkit::{Client, Launch, Reply, Server, text, wait_until};

use super::bystander::Bystander;
use super::durability::LIMIT;
use super::ledger::StopOnDrop;
use super::{Context, mebibytes};

const ACCOUNTS: u64 = 1000;
const START: i64 = 1000;
/// Moves money by a script.
const SCRIPT: &str = "redis.call('DECRBY', KEYS[1], ARGV[1]) return redis.call('INCRBY', KEYS[2], ARGV[1])";

fn transfer(port: u16, seed: u64, stop: &AtomicBool, done: &AtomicU64) -> Result<()> {
    let mut client = Client::connect(port)?;
    let mut random = fastrand::Rng::with_seed(seed);
    while !stop.load(Ordering::Relaxed) {
        let (from, to, amount) = (random.u64(..ACCOUNTS), random.u64(..ACCOUNTS), random.u64(1..100));
        let commands = [
            "MULTI".to_owned(),
            format!("DECRBY account:{from} {amount}"),
            format!("INCRBY account:{to} {amount}"),
            "EXEC".to_owned(),
            format!("EVAL \"{SCRIPT}\" 2 account:{to} account:{from} {amount}"),
            format!("LMOVE coins:{from} coins:{to} LEFT RIGHT"),
        ];
        let commands: Vec<_> = commands.iter().map(|command| text::words(command)).collect();
        let replies = client.pipeline(&commands)?;
        ensure!(!replies.iter().any(Reply::is_error), "a transfer was refused: {replies:?}");
        done.fetch_add(3, Ordering::Relaxed);
    }
    Ok(())
}

/// The sums of a server: money and coins.
fn totals(client: &mut Client) -> Result<(i64, i64)> {
    let (mut money, mut coins) = (0, 0);
    for first in (0..ACCOUNTS).step_by(100) {
        let mut commands = Vec::new();
        for account in first..first + 100 {
            commands.push(vec!["GET".to_owned(), format!("account:{account}")]);
            commands.push(vec!["LLEN".to_owned(), format!("coins:{account}")]);
        }
        for pair in client.pipeline(&commands)?.chunks(2) {
            let [cash, list] = pair else { continue };
            money += cash.text().parse::<i64>().with_context(|| format!("an account holds {cash}"))?;
            coins += list.integer().context("LLEN")?;
        }
    }
    Ok((money, coins))
}

pub(super) fn save(client: &mut Client) -> Result<()> {
    let reply = client.run("BGSAVE");
    ensure!(!reply.is_error(), "BGSAVE: {reply}");
    wait_until("the snapshot", LIMIT, || match client.info("rdb_bgsave_in_progress").as_deref() {
        Some("0") => Ok(()),
        state => Err(format!("{state:?}")),
    });
    ensure!(client.info("rdb_last_bgsave_status").as_deref() == Some("ok"), "BGSAVE failed");
    Ok(())
}

/// A12: transfers in transactions and scripts while snapshots run; redis-server loads each and finds nothing missing.
pub(super) fn instants(context: &Context<'_>) -> Result<String> {
    let rounds = context.pick(8, 500_u32);
    let own: &[&str] = if context.is_peer() { &[] } else { &["--io-threads", "4", "--rdb-version", "10"] };
    let server = context.server(own)?;
    let reader = Launch::redis().try_start()?;
    let mut client = server.client();
    client.set_timeout(LIMIT)?;
    for account in 0..ACCOUNTS {
        client.send(&["SET", &format!("account:{account}"), &START.to_string()])?;
        client.send(&["RPUSH", &format!("coins:{account}"), "1", "2", "3"])?;
    }
    for _ in 0..ACCOUNTS * 2 {
        client.read()?;
    }
    client.run("DEBUG POPULATE 100000 filler 100");
    let expected = (START * i64::try_from(ACCOUNTS)?, 3 * i64::try_from(ACCOUNTS)?);
    let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let seed = testkit::seed(12);
    let (before, during, grown) = thread::scope(|scope| -> Result<_> {
        let _stop = StopOnDrop(&stop);
        let writers: Vec<_> = (0..4)
            .map(|index| {
                let (stop, done, port) = (&stop, &done, server.port());
                scope.spawn(move || transfer(port, seed + index, stop, done))
            })
            .collect();
        let bystander = Bystander::start(&server, "")?;
        thread::sleep(Duration::from_secs(1));
        let before = bystander.finish()?;
        let bystander = Bystander::start(&server, "")?;
        process::reset_peak(server.pid())?;
        let resident = process::resident_bytes(server.pid())?;
        let mut peer = reader.client();
        peer.set_timeout(LIMIT)?;
        for round in 0..rounds {
            save(&mut client)?;
            std::fs::copy(server.directory().join("dump.rdb"), reader.directory().join("dump.rdb"))?;
            peer.check("DEBUG RELOAD NOSAVE", "+OK");
            let found = totals(&mut peer)?;
            ensure!(found == expected, "snapshot {round}: {found:?} instead of {expected:?}");
        }
        let grown = process::peak_resident_bytes(server.pid())?.saturating_sub(resident);
        let during = bystander.finish()?;
        stop.store(true, Ordering::Relaxed);
        for writer in writers {
            writer.join().map_err(|_| anyhow::anyhow!("a writer panicked"))??;
        }
        Ok((before, during, grown))
    })?;
    Ok(format!(
        "{rounds} snapshots under {} transfers, each whole in redis-server; p99 {:.1} ms before, {:.1} ms during; +{:.1} MiB",
        done.into_inner(),
        before.p99_ms,
        during.p99_ms,
        mebibytes(grown)
    ))
}

/// Runs a test of the project's own; each `seed` is one run.
fn own_test(context: &Context<'_>, suite: &str, test: &str, seed: u64) -> Result<()> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["test", "--quiet", "-p", "oxidis", "--test", suite, test])
        .env(testkit::binary::OXIDIS_BIN, context.launch.path())
        .env("OXIDIS_SEED", seed.to_string())
        .output()
        .context("cargo does not start")?;
    if !output.status.success() {
        bail!("{test}, seed {seed}:\n{}", String::from_utf8_lossy(&output.stdout));
    }
    Ok(())
}

/// A13: files of all kinds go to redis-server and its checkers, and come back, with equal digests.
pub(super) fn both_ways(context: &Context<'_>) -> Result<String> {
    let rounds = context.pick(1, 50);
    for seed in 0..rounds {
        own_test(context, "snapshots", "files_go_both_ways_with_redis", 6 + seed)?;
        own_test(context, "append_only", "redis_starts_on_our_files_and_we_on_its", 6 + seed)?;
    }
    let old = super::old_values::files(context)?;
    Ok(format!("{rounds} rounds of RDB files and log directories both ways; {old}"))
}

/// Where libfaketime lies.
const FAKETIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";

/// A server whose clock is what the file `clock` says.
fn with_clock(context: &Context<'_>, directory: &Path, clock: &Path) -> Result<Server> {
    let preload = format!("LD_PRELOAD={FAKETIME}");
    let file = format!("FAKETIME_TIMESTAMP_FILE={}", clock.display());
    let words = ["env", &preload, &file, "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1"];
    let launch = context.launch.clone().directory(directory).wrapped(&words);
    Ok(launch.args(&["--appendonly", "yes", "--repl-timeout", "20"]).try_start()?)
}

/// A14: the wall clock jumps by thirty days both ways and runs at twice its speed. Times to live follow it, as in Redis;
/// nothing that counts a duration does, and no thread runs hot.
pub(super) fn clocks(context: &Context<'_>) -> Result<String> {
    if !Path::new(FAKETIME).exists() {
        return Ok("skipped: libfaketime is missing (apt-get install libfaketime)".to_owned());
    }
    let directory = tempfile::tempdir()?;
    let clock = directory.path().join("clock");
    std::fs::write(&clock, "+0")?;
    let mut server = with_clock(context, directory.path(), &clock)?;
    let replica = context.server(&["--repl-timeout", "20"])?;
    let mut client = server.client();
    client.set_timeout(LIMIT)?;
    client.check("SET long 1 EX 8640000; SET short 1 EX 864000; SET stays 1; SET soon 1 PX 500", "+OK; +OK; +OK; +OK");
    replica.client().run(&format!("REPLICAOF 127.0.0.1 {}", server.port()));
    wait_until("the replica", LIMIT, || match replica.client().info("master_link_status").as_deref() {
        Some("up") => Ok(()),
        state => Err(format!("{state:?}")),
    });
    let mut steps = 0;
    let mut blocked = server.client();
    let (mut hottest, full) = (Duration::ZERO, |client: &mut Client| client.info("sync_full"));
    let syncs = full(&mut client);
    for jump in ["+30d", "-30d", "+0", "+0 x2", "-1d", "+2d", "+0"] {
        // A client that blocks for two seconds is not let go early, nor kept.
        blocked.send(&["BLPOP", "nothing", "2"])?;
        let began = Instant::now();
        thread::sleep(Duration::from_millis(100));
        std::fs::write(&clock, jump)?;
        let cpu = process::cpu_time(server.pid())?;
        client.check("INCR jumps; EXISTS stays", &format!(":{}; :1", steps + 1));
        ensure!(blocked.read()?.is_null(), "{jump}: a blocked client was served");
        let waited = began.elapsed();
        ensure!(
            waited > Duration::from_millis(900) && waited < Duration::from_secs(4),
            "{jump}: blocked for {waited:?}"
        );
        hottest = hottest.max(process::cpu_time(server.pid())?.saturating_sub(cpu));
        steps += 1;
    }
    ensure!(hottest < Duration::from_millis(1500), "a thread ran hot: {hottest:?} of CPU in two seconds");
    client.check("EXISTS long soon", ":1");
    ensure!(full(&mut client) == syncs, "the replica had to synchronize anew");
    client.check("WAIT 1 5000", ":1");
    server.stop(Signal::Kill)?;
    let server = with_clock(context, directory.path(), &clock)?;
    server.client().check("GET jumps; EXISTS long stays", &format!("{steps}; :2"));
    Ok(format!("{steps} jumps: blocked clients on time, no full synchronization, at most {hottest:.0?} of CPU a step"))
}
