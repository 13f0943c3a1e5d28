//! D1 to D4: replication over bad links, with redis-server, under kills, and with stock sentinels.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use testkit::process::{self, Signal};
use testkit::replicas::{Writer, equal, follow, link, up};
use testkit::sentinel::Sentinel;
use testkit::{Client, Launch, Proxy, Reply, Server, wait_until};

use super::durability::LIMIT;
use super::ledger::StopOnDrop;
use super::{Context, mebibytes};

/// One that begins to synchronize at once; redis-server reads what it sends.
fn launch(context: &Context<'_>, args: &[&str]) -> Launch {
    let own: &[&str] = if context.is_peer() { &[] } else { &["--io-threads", "2", "--rdb-version", "10"] };
    context.launch.clone().args(args).args(own).args(&["--repl-diskless-sync-delay", "0"])
}

/// Debian's, quick to synchronize.
fn peer(args: &[&str]) -> Launch {
    Launch::redis().args(args).args(&["--repl-diskless-sync-delay", "0"])
}

fn number(server: &Server, field: &str) -> u64 {
    server.client().info(field).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// D1: the link is cut, held, refused and slowed while somebody writes; after each time both ends are equal.
pub(super) fn flaps(context: &Context<'_>) -> Result<String> {
    let cuts = context.pick(12, 200_u32);
    let longest_ms = context.pick(300, 5_000_u64);
    let backlog = ["--repl-backlog-size", "64mb"];
    let (primary, replica) = (launch(context, &backlog).try_start()?, launch(context, &backlog).try_start()?);
    let proxy = Proxy::start(primary.port())?;
    let seed = testkit::seed(1);
    let mut random = fastrand::Rng::with_seed(seed);
    let mut writer = Writer::new(&primary, seed);
    writer.write(500);
    follow(&replica, proxy.port());
    let mut broken = 0;
    for cut in 0..cuts {
        let time = Duration::from_millis(random.u64(10..longest_ms));
        let before = proxy.accepted();
        let breaks = match random.u8(0..5) {
            // A reset in the middle of a piece of the stream.
            0 => {
                proxy.cut_after(random.u64(0..20_000));
                writer.write(600);
                proxy.cut();
                true
            }
            // Nothing passes for a time; the link survives.
            1 => {
                proxy.hold(true);
                writer.write(200);
                thread::sleep(time);
                proxy.hold(false);
                false
            }
            // The other side is gone for a time.
            2 | 3 => {
                proxy.refuse(true);
                proxy.cut();
                writer.write(400);
                thread::sleep(time);
                proxy.refuse(false);
                true
            }
            // Slow, and cut while it is.
            _ => {
                proxy.delay(Duration::from_millis(random.u64(1..20)));
                writer.write(200);
                proxy.cut();
                writer.write(200);
                proxy.delay(Duration::ZERO);
                true
            }
        };
        if breaks {
            broken += 1;
            wait_until("a new link", LIMIT, || if proxy.accepted() > before { Ok(()) } else { Err(cut) });
        }
        up(&replica);
        equal(&primary, &replica);
    }
    let steps = cut_at_each_step(context, &mut random)?;
    // A long cut under 50,000 writes a second.
    let stop = AtomicBool::new(false);
    let sent = AtomicU64::new(0);
    let port = primary.port();
    let (away, resynced) = (Duration::from_millis(longest_ms), number(&primary, "sync_partial_ok"));
    thread::scope(|scope| -> Result<()> {
        let _stop = StopOnDrop(&stop);
        for seed in 0..2 {
            let (stop, sent) = (&stop, &sent);
            scope.spawn(move || write(port, 25_000, seed, stop, sent));
            scope.spawn(move || pop(port, stop));
        }
        thread::sleep(Duration::from_millis(200));
        proxy.refuse(true);
        proxy.cut();
        thread::sleep(away);
        proxy.refuse(false);
        wait_until("a partial resync after the long cut", LIMIT, || match number(&primary, "sync_partial_ok") {
            count if count > resynced => Ok(()),
            count => Err((count, number(&primary, "sync_full"))),
        });
        Ok(())
    })?;
    up(&replica);
    equal(&primary, &replica);
    let (full, partial) = (number(&primary, "sync_full"), number(&primary, "sync_partial_ok"));
    ensure!(full == 1, "{full} full synchronizations, though the backlog suffices");
    Ok(format!(
        "{cuts} faults, equal after each; {broken} broken links, {partial} partial resyncs, {full} full, seed {seed}; {away:.1?} away under {} writes; \
         {steps} handshakes and snapshots cut at each byte",
        sent.into_inner()
    ))
}

/// A link that is cut after each number of bytes of its handshake and snapshot, and asked for twice at once.
fn cut_at_each_step(context: &Context<'_>, random: &mut fastrand::Rng) -> Result<u32> {
    let (primary, replica) = (launch(context, &[]).try_start()?, launch(context, &[]).try_start()?);
    let mut writer = Writer::new(&primary, 5);
    let all: Vec<u64> = context.pick((0..4).map(|_| random.u64(0..400)).collect(), (0..400).step_by(3).collect());
    for bytes in &all {
        writer.write(100);
        let proxy = Proxy::start(primary.port())?;
        proxy.cut_after(*bytes);
        replica.client().run("REPLICAOF NO ONE");
        replica.client().run("FLUSHALL");
        link(&replica, proxy.port());
        link(&replica, proxy.port());
        up(&replica);
        writer.write(100);
        equal(&primary, &replica);
    }
    Ok(u32::try_from(all.len())?)
}

/// D2: ours and redis-server in all places of a chain, and partial resyncs after the primary has changed.
pub(super) fn pairs(context: &Context<'_>) -> Result<String> {
    let runs = context.pick(1, 50_u64);
    let seed = testkit::seed(2);
    let mut partial = 0;
    for run in 0..runs {
        for ours_first in [true, false] {
            let start = |ours: bool| if ours { launch(context, &[]).try_start() } else { peer(&[]).try_start() };
            // First and third are of one kind, the second of the other.
            let (mut first, second, third) = (start(ours_first)?, start(!ours_first)?, start(ours_first)?);
            let mut writer = Writer::new(&first, seed + run);
            writer.write(800);
            follow(&second, first.port());
            follow(&third, second.port());
            writer.write(1500);
            equal(&first, &second);
            equal(&second, &third);
            // The third turns to the first, where the second already is.
            link(&third, first.port());
            up(&third);
            writer.write(500);
            equal(&first, &third);
            let offset = |server: &Server| number(server, "master_repl_offset");
            drop(writer);
            wait_until("all stand at one place", LIMIT, || {
                let all = [&first, &second, &third].map(offset);
                if all.iter().all(|one| *one == all[0]) { Ok(()) } else { Err(all) }
            });
            // The first is gone, the second takes over: the third goes on by the second name of the history.
            first.stop(Signal::Kill)?;
            second.client().check("REPLICAOF NO ONE; SET promoted 1", "+OK; +OK");
            link(&third, second.port());
            up(&third);
            equal(&second, &third);
            let resynced = number(&second, "sync_partial_ok");
            ensure!(resynced >= 1, "run {run}, ours first: {ours_first}: a full synchronization after the promotion");
            partial += resynced;
        }
    }
    Ok(format!(
        "{runs} runs each way with redis-server in each place, digests equal, {partial} partial resyncs by the second name"
    ))
}

/// What is run as a script: what it sets ends soon.
const SCRIPT: &str =
    "local n = redis.call('INCR', KEYS[1]) redis.call('PEXPIRE', KEYS[1], n % 100 + 1) return redis.call('TIME')[1]";

/// Waits for what is pushed, until told to stop.
fn pop(port: u16, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let Ok(mut client) = Client::connect(port) else {
            thread::sleep(Duration::from_millis(5));
            continue;
        };
        let commands: [&[&str]; 2] =
            [&["BLPOP", "queue:0", "queue:1", "0.05"], &["BLMOVE", "queue:2", "popped", "LEFT", "RIGHT", "0.05"]];
        while !stop.load(Ordering::Relaxed) && commands.iter().all(|command| client.call(command).is_ok()) {}
    }
}

/// Writes about so many commands a second until told to stop: expiries, transactions, scripts, pushes among them.
fn write(port: u16, rate: u64, seed: u64, stop: &AtomicBool, sent: &AtomicU64) {
    let mut random = fastrand::Rng::with_seed(seed);
    while !stop.load(Ordering::Relaxed) {
        let Ok(mut client) = Client::connect(port) else {
            thread::sleep(Duration::from_millis(5));
            continue;
        };
        let mut due = Instant::now();
        while !stop.load(Ordering::Relaxed) {
            let mut batch: Vec<Vec<String>> = Vec::new();
            while batch.len() < 50 {
                let key = random.u32(0..200_000);
                let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<String>>();
                match random.u8(0..40) {
                    0 => batch.push(words(&format!("SET e:{key} v PX {}", key % 50 + 1))),
                    1 => batch.push(vec!["EVAL".into(), SCRIPT.into(), "1".into(), format!("n:{key}")]),
                    2 => {
                        let unit = [
                            "MULTI".to_owned(),
                            format!("INCR n:{key}"),
                            format!("PEXPIRE n:{key} {}", key % 3000 + 1),
                            format!("SPOP p:{}", key % 9),
                            "EXEC".to_owned(),
                        ];
                        batch.extend(unit.iter().map(|line| words(line)));
                    }
                    3 => batch.push(words(&format!("RPUSH queue:{} x", key % 3))),
                    4 => batch.push(words(&format!("SADD p:{} a b {key}", key % 9))),
                    5..14 => batch.push(words(&format!("INCR n:{key}"))),
                    14..20 => batch.push(words(&format!("RPUSH l:{} x", key % 500))),
                    20..26 => batch.push(words(&format!("DEL s:{key}"))),
                    _ => batch.push(vec![
                        "SET".into(),
                        format!("s:{key}"),
                        "v".repeat(usize::try_from(key % 90).unwrap_or(0)),
                    ]),
                }
            }
            if client.pipeline(&batch).is_err() {
                break;
            }
            sent.fetch_add(50, Ordering::Relaxed);
            due += Duration::from_micros(50 * 1_000_000 / rate.max(1));
            thread::sleep(due.saturating_duration_since(Instant::now()));
        }
    }
}

/// D3: full synchronizations under 50,000 writes a second, either end killed at a random moment of them.
pub(super) fn killed_syncs(context: &Context<'_>) -> Result<String> {
    let rounds = context.pick(4, 100_u32);
    let keys = context.pick(100_000, 1_000_000_u32);
    let directories = [tempfile::tempdir()?, tempfile::tempdir()?];
    let first = launch(context, &["--appendonly", "yes"]).directory(directories[0].path()).ready_within(LIMIT);
    let second = launch(context, &[]).directory(directories[1].path());
    let mut primary = first.try_start()?;
    // The port stays, whoever has it.
    let first = first.port(primary.port());
    primary.client().run(&format!("DEBUG POPULATE {keys} filler 50"));
    primary.client().run("BGREWRITEAOF");
    let mut replica = second.try_start()?;
    let second = second.port(replica.port());
    let mut random = fastrand::Rng::with_seed(testkit::seed(3));
    let (stop, sent) = (AtomicBool::new(false), AtomicU64::new(0));
    let port = primary.port();
    let resident = process::resident_bytes(primary.pid())?;
    let began = Instant::now();
    let mut peak = 0;
    thread::scope(|scope| -> Result<()> {
        let _stop = StopOnDrop(&stop);
        for seed in 0..2 {
            let (stop, sent) = (&stop, &sent);
            scope.spawn(move || write(port, 25_000, seed, stop, sent));
            scope.spawn(move || pop(port, stop));
        }
        for round in 0..rounds {
            // Away and back: the place in the stream is no longer there, so all is sent.
            replica.client().run("REPLICAOF NO ONE");
            replica.client().run("FLUSHALL");
            link(&replica, port);
            thread::sleep(Duration::from_millis(random.u64(1..400)));
            let end = if random.bool() { "the replica" } else { "the primary" };
            peak = peak.max(process::peak_resident_bytes(primary.pid())?);
            if end == "the replica" {
                replica.stop(Signal::Kill)?;
                replica = second.try_start().with_context(|| format!("round {round}"))?;
                link(&replica, port);
            } else {
                primary.stop(Signal::Kill)?;
                primary = first.try_start().with_context(|| format!("round {round}"))?;
            }
            let mut client = replica.client();
            wait_until(&format!("the link after {end} was killed in round {round}"), LIMIT * 2, || {
                match client.info("master_link_status").as_deref() {
                    Some("up") => Ok(()),
                    state => Err(format!("{state:?}\n{}", testkit::replicas::log_of(&replica))),
                }
            });
        }
        Ok(())
    })?;
    equal(&primary, &replica);
    let grown = peak.saturating_sub(resident);
    let share = grown as f64 * 100.0 / resident as f64;
    Ok(format!(
        "{rounds} killed full synchronizations of {keys} keys under {:.0} writes/s, equal in the end; primary {:.0} MiB, {share:+.0} % at most",
        sent.into_inner() as f64 / began.elapsed().as_secs_f64(),
        mebibytes(resident)
    ))
}

/// Starts a server that sentinels may reconfigure.
fn with_file(launch: Launch, directory: &Path) -> Result<Server> {
    let path = directory.join("server.conf");
    std::fs::write(&path, "repl-diskless-sync-delay 0\n")?;
    // The file goes before the directives.
    let path = path.to_string_lossy().into_owned();
    Ok(launch.first(&path).directory(directory).try_start()?)
}

/// D4: three stock sentinels fail over from a killed primary, between two of ours and between ours and redis-server.
pub(super) fn sentinels(context: &Context<'_>) -> Result<String> {
    let rounds = context.pick(1, 50_u32);
    let mut slowest = Duration::ZERO;
    let (mut acked, mut sum, mut failovers) = (0, Duration::ZERO, 0);
    let own: &[&str] = if context.is_peer() { &[] } else { &["--io-threads", "2", "--rdb-version", "10"] };
    for round in 0..rounds {
        for (first, second) in [(true, true), (true, false), (false, true)] {
            let pick = |ours: bool| if ours { context.launch.clone().args(own) } else { Launch::redis() };
            let directories = [tempfile::tempdir()?, tempfile::tempdir()?];
            let mut primary = with_file(pick(first), directories[0].path())?;
            let replica = with_file(pick(second), directories[1].path())?;
            let (took, waited, sentinels) = failover(&mut primary, &replica)
                .with_context(|| format!("round {round}, primary ours: {first}, replica ours: {second}"))?;
            slowest = slowest.max(took);
            sum += took;
            failovers += 1;
            acked += waited;
            // The old primary comes back under the new one.
            let port = primary.port();
            drop(primary);
            let path = directories[0].path().join("server.conf").to_string_lossy().into_owned();
            let back = pick(first).first(&path).port(port).directory(directories[0].path()).try_start()?;
            // Sentinels that were held up for two seconds do nothing for thirty (TILT), and wait some ten more before this.
            wait_until("the old primary follows", LIMIT * 4, || match back.client().info("master_port") {
                Some(port) if port == replica.port().to_string() => Ok(()),
                state => Err(format!("{state:?}")),
            });
            up(&back);
            equal(&replica, &back);
            drop(sentinels);
        }
    }
    let mean = sum / failovers.max(1);
    // Redis' own takes 2.3 s; half a second more is allowed.
    ensure!(!context.is_timed || mean < Duration::from_millis(2_800), "the first write came only after {mean:?}");
    Ok(format!(
        "{failovers} failovers, first write after {:.1} s ({:.1} s at most), {acked} writes acknowledged by WAIT, none lost",
        mean.as_secs_f64(),
        slowest.as_secs_f64()
    ))
}

/// Kills the primary under writes. Gives when the first write succeeded, how many WAIT had confirmed, and the sentinels,
/// which make the old primary a replica when it is back.
fn failover(primary: &mut Server, replica: &Server) -> Result<(Duration, u64, Vec<Sentinel>)> {
    follow(replica, primary.port());
    let sentinels: Vec<Sentinel> = (0..3).map(|_| Sentinel::watch(primary.port())).collect();
    for sentinel in &sentinels {
        wait_until("the sentinels know each other and the replica", LIMIT, || {
            let known = (sentinel.field("num-other-sentinels"), sentinel.field("num-slaves"), sentinel.field("flags"));
            if known == ("2".into(), "1".into(), "master".into()) { Ok(()) } else { Err(known) }
        });
    }
    let confirmed = AtomicU64::new(0);
    let stop = AtomicBool::new(false);
    let port = primary.port();
    let killed = thread::scope(|scope| -> Result<Instant> {
        let _stop = StopOnDrop(&stop);
        scope.spawn(|| {
            let Ok(mut client) = Client::connect(port) else { return };
            while !stop.load(Ordering::Relaxed) {
                let (set, wait): (&[&str], &[&str]) = (&["INCR", "confirmed"], &["WAIT", "1", "1000"]);
                match client.pipeline(&[set, wait]).as_deref() {
                    Ok([Reply::Integer(count), Reply::Integer(1)]) => {
                        confirmed.store(u64::try_from(*count).unwrap_or(0), Ordering::SeqCst);
                    }
                    Ok(_) => {}
                    Err(_) => return,
                }
            }
        });
        thread::sleep(Duration::from_millis(200));
        primary.stop(Signal::Kill)?;
        Ok(Instant::now())
    })?;
    wait_until("the replica takes writes", LIMIT, || {
        // Sentinels close the connections of clients when they change a role.
        match Client::connect(replica.port()).and_then(|mut client| client.call(&["SET", "first", "1"])) {
            Ok(Reply::Simple(_)) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
    let took = killed.elapsed();
    let expected = format!("[127.0.0.1 {}]", replica.port());
    wait_until("the sentinels tell of it", LIMIT, || {
        let told: Vec<String> = sentinels.iter().map(Sentinel::primary).collect();
        if told.iter().all(|one| *one == expected) { Ok(()) } else { Err(told) }
    });
    let confirmed = confirmed.into_inner();
    let there: u64 = replica.client().run("GET confirmed").text().parse().unwrap_or(0);
    ensure!(there >= confirmed, "{confirmed} confirmed by WAIT, {there} there");
    Ok((took, confirmed, sentinels))
}
