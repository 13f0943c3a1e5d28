//! A1, A4, A5, A6, A15: a server killed, ended, or started on a damaged log. What it acknowledged is there afterwards.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use testkit::process::Signal;
use testkit::{Client, Launch, Reply, wait_until};

use super::Context;
use super::ledger::{Found, Ledger, StopOnDrop};

/// Clients that write while the server is killed.
const CLIENTS: usize = 12;
/// How long a server may take to do what it was asked.
pub(super) const LIMIT: Duration = Duration::from_secs(30);

/// A server with a log in a directory that stays.
pub(super) fn logging(context: &Context<'_>, directory: &Path, policy: &str) -> Launch {
    let args = ["--appendonly", "yes", "--appendfsync", policy, "--io-threads", "2"];
    // The other way round for a peer: it has no workers, but I/O threads.
    let args = if context.is_peer() { &args[..4] } else { &args[..] };
    context.launch.clone().directory(directory).args(args)
}

/// A1: `appendfsync always`.
pub(super) fn always(context: &Context<'_>) -> Result<String> {
    let (found, text) = kills(context, "always", context.pick(20, 1000))?;
    ensure!(found.lost == 0, "{} acknowledged writes are lost: {text}", found.lost);
    Ok(text)
}

/// A4: `appendfsync everysec`.
pub(super) fn everysec(context: &Context<'_>) -> Result<String> {
    let (found, text) = kills(context, "everysec", context.pick(20, 1000))?;
    ensure!(found.lost == 0, "{} acknowledged writes are lost: {text}", found.lost);
    Ok(text)
}

fn kills(context: &Context<'_>, policy: &str, kills: u32) -> Result<(Found, String)> {
    let directory = tempfile::tempdir()?;
    let launch = logging(context, directory.path(), policy);
    let mut random = fastrand::Rng::with_seed(testkit::seed(7));
    let mut all = Found::default();
    let mut restarts = Vec::new();
    let mut server = launch.try_start()?;
    for kill in 0..kills {
        let ledger = Ledger::open(server.port(), CLIENTS)?;
        let stop = AtomicBool::new(false);
        let mut client = server.client();
        let killed = thread::scope(|scope| {
            let _stop = StopOnDrop(&stop);
            ledger.start(scope, server.port(), &stop);
            match random.u8(0..4) {
                0 => drop(client.run("BGREWRITEAOF")),
                1 => drop(client.run("BGSAVE")),
                _ => {}
            }
            thread::sleep(Duration::from_micros(random.u64(500..200_000)));
            server.stop(Signal::Kill)
        });
        killed?;
        let fault = Instant::now();
        server = launch.try_start().with_context(|| format!("after kill {kill}"))?;
        restarts.push(fault.elapsed());
        all.add(ledger.compare(server.port(), fault).with_context(|| format!("after kill {kill}"))?);
        if kill % 50 == 49 {
            server.client().run("FLUSHALL");
        }
    }
    restarts.sort_unstable();
    let median = restarts.get(restarts.len() / 2).copied().unwrap_or_default();
    let text = format!(
        "{kills} kills, {} acknowledged, {} lost, no half transaction, no phantom, restart median {:.0} ms",
        all.acked,
        all.lost,
        median.as_secs_f64() * 1e3
    );
    Ok((all, text))
}

/// The increment that is being written.
pub(super) fn increment(directory: &Path) -> Result<PathBuf> {
    let directory = directory.join("appendonlydir");
    let text = std::fs::read_to_string(directory.join("appendonly.aof.manifest"))?;
    let line = text.lines().rfind(|line| line.ends_with("type i")).context("the manifest names no increment")?;
    Ok(directory.join(line.split(' ').nth(1).context("no name in the manifest")?))
}

/// The counters of the transactions, which must be equal.
fn halves(client: &mut Client) -> Result<i64> {
    let reply = client.call(&["MGET", "a", "b"])?;
    let Some([a, b]) = reply.items() else { bail!("MGET: {reply}") };
    ensure!(a.to_string() == b.to_string(), "half a transaction: {reply}");
    Ok(a.text().parse().unwrap_or(0))
}

fn transaction(client: &mut Client) -> Result<()> {
    let commands: [&[&str]; 5] = [&["MULTI"], &["INCR", "a"], &["INCR", "b"], &["EXEC"], &["INCR", "n"]];
    let replies = client.pipeline(&commands)?;
    ensure!(!replies.iter().any(Reply::is_error), "a transaction was refused: {replies:?}");
    Ok(())
}

/// A5: any 1 to 64 bytes missing at the end, with zeros behind the cut or not; then the server goes on twice.
pub(super) fn torn(context: &Context<'_>) -> Result<String> {
    let cuts = context.pick(16, 200_u32);
    let directory = tempfile::tempdir()?;
    let launch = logging(context, directory.path(), "no");
    let mut random = fastrand::Rng::with_seed(testkit::seed(5));
    let mut cut_transactions = 0;
    for round in 0..cuts {
        let mut server = launch.try_start()?;
        let mut client = server.client();
        for _ in 0..3 {
            transaction(&mut client)?;
        }
        let before = halves(&mut client)?;
        server.stop(Signal::Kill)?;
        let file = increment(directory.path())?;
        let whole = std::fs::read(&file)?;
        let cut = random.usize(1..=64);
        let mut bytes = whole.get(..whole.len().saturating_sub(cut)).unwrap_or_default().to_vec();
        if random.bool() && !context.is_peer() {
            bytes.resize(whole.len() + random.usize(1..5000), 0);
        }
        std::fs::write(&file, &bytes)?;
        for start in 0..3 {
            let mut server =
                launch.try_start().with_context(|| format!("round {round}, {cut} bytes cut, start {start}"))?;
            let mut client = server.client();
            let there = halves(&mut client).with_context(|| format!("{cut} bytes cut, start {start}"))?;
            cut_transactions += u32::from(there < before);
            transaction(&mut client)?;
            ensure!(!server.log().contains("CRITICAL"), "{cut} bytes cut: {}", server.log());
            server.stop(Signal::Kill)?;
        }
    }
    Ok(format!("{cuts} cuts, {cut_transactions} starts without the cut transaction, no half, no start refused"))
}

/// A6: garbage in the middle of the log: what is no command stops the start with its offset, and nothing crashes.
pub(super) fn garbage(context: &Context<'_>) -> Result<String> {
    let rounds = context.pick(10, 200_u32);
    let directory = tempfile::tempdir()?;
    let launch = logging(context, directory.path(), "no");
    let mut server = launch.try_start()?;
    let mut client = server.client();
    for index in 0..200 {
        client.call(&["SET", &format!("key:{index}"), &"value".repeat(index % 9)])?;
    }
    server.stop(Signal::Kill)?;
    let file = increment(directory.path())?;
    let whole = std::fs::read(&file)?;
    let mut random = fastrand::Rng::with_seed(testkit::seed(6));
    let (mut refused, mut loaded) = (0, 0);
    for round in 0..rounds {
        let mut bytes = whole.clone();
        let at = random.usize(30..bytes.len() - 100);
        let garbage = random.usize(1..20);
        bytes[at..at + garbage].fill_with(|| random.u8(..));
        std::fs::write(&file, &bytes)?;
        match launch.try_start() {
            Ok(mut server) => {
                loaded += 1;
                server.stop(Signal::Kill)?;
            }
            Err(error) => {
                refused += 1;
                let text = error.to_string();
                let says =
                    ["Bad file format reading the append only file", "Unknown command", "Unexpected end of file"];
                ensure!(says.iter().any(|line| text.contains(line)), "round {round}, at {at}: {text}");
            }
        }
    }
    Ok(format!(
        "{rounds} logs with garbage inside: {refused} refused with place and advice, {loaded} still well formed"
    ))
}

/// A15: SIGTERM and SHUTDOWN under load, alone and while a rewrite, a snapshot, a full synchronization or a load is under
/// way.
pub(super) fn endings(context: &Context<'_>) -> Result<String> {
    let rounds = context.pick(10, 200_u32);
    let directory = tempfile::tempdir()?;
    let launch = logging(context, directory.path(), "everysec");
    let mut random = fastrand::Rng::with_seed(testkit::seed(15));
    let mut all = Found::default();
    let mut slowest = Duration::ZERO;
    for round in 0..rounds {
        let mut server = launch.try_start().with_context(|| format!("round {round}"))?;
        let mut client = server.client();
        client.set_timeout(LIMIT)?;
        if client.run("DBSIZE") == Reply::Integer(0) {
            client.run("DEBUG POPULATE 50000 filler 40");
            client.run("BGREWRITEAOF");
        }
        let ledger = Ledger::open(server.port(), CLIENTS)?;
        let stop = AtomicBool::new(false);
        let replica = if round % 5 == 2 { Some(context.server(&[])?) } else { None };
        let began = thread::scope(|scope| -> Result<Instant> {
            let _stop = StopOnDrop(&stop);
            ledger.start(scope, server.port(), &stop);
            thread::sleep(Duration::from_millis(random.u64(5..100)));
            match (round % 5, &replica) {
                (1, _) => drop(client.run("BGREWRITEAOF")),
                (2, Some(replica)) => drop(replica.client().run(&format!("REPLICAOF 127.0.0.1 {}", server.port()))),
                (3, _) => drop(client.run("BGSAVE")),
                (4, _) => client.send(&["DEBUG", "LOADAOF"])?,
                _ => {}
            }
            thread::sleep(Duration::from_millis(random.u64(0..30)));
            let began = Instant::now();
            if random.bool() {
                server.signal(Signal::Terminate)?;
            } else if let Ok(mut other) = Client::connect(server.port()) {
                // The connection ends with the server, or it says LOADING.
                let _ = other.call(&["SHUTDOWN"]);
                server.signal(Signal::Terminate)?;
            }
            wait_until("the end", LIMIT, || server.exit_status().map(drop).ok_or("it runs"));
            Ok(began)
        })?;
        slowest = slowest.max(began.elapsed());
        ensure!(began.elapsed() < Duration::from_secs(12), "round {round}: the end took {:?}", began.elapsed());
        drop(replica);
        let mut server = launch.try_start().with_context(|| format!("after round {round}"))?;
        let found = ledger.compare(server.port(), began).with_context(|| format!("round {round}"))?;
        ensure!(found.lost == 0, "round {round}: {} acknowledged writes are lost", found.lost);
        all.add(found);
        server.stop(Signal::Kill)?;
    }
    Ok(format!("{rounds} endings, {} acknowledged, 0 lost, slowest {:.1} s", all.acked, slowest.as_secs_f64()))
}
