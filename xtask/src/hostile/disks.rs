//! A2, A3, A7 to A11: power cuts, full disks and failing calls, from outside of the process.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use testkit::process::{self, Signal, freeze};
use testkit::{Client, Server, binary, wait_until};

use super::Context;
use super::durability::{LIMIT, logging};
use super::ledger::{Found, Ledger, StopOnDrop};
use super::volumes::{NO_RIGHT, Small, Volume, may_mount};

const CLIENTS: usize = 6;

/// A2: power cuts with `always`.
pub(super) fn power_always(context: &Context<'_>) -> Result<String> {
    power(context, "always", Duration::ZERO)
}

/// A3: power cuts with `everysec`: two seconds may be lost at most.
pub(super) fn power_everysec(context: &Context<'_>) -> Result<String> {
    power(context, "everysec", Duration::from_secs(2))
}

fn power(context: &Context<'_>, policy: &str, may_lose: Duration) -> Result<String> {
    if !may_mount() {
        return Ok(NO_RIGHT.to_owned());
    }
    let cuts = context.pick(4, 300_u32);
    let mut volume = Volume::mount()?;
    let mut random = fastrand::Rng::with_seed(testkit::seed(2));
    let mut all = Found::default();
    let longest_ms = if may_lose.is_zero() { 400 } else { 2_500 };
    let mut server = logging(context, &volume.path(), policy).try_start()?;
    for cut in 0..cuts {
        let ledger = Ledger::open(server.port(), CLIENTS)?;
        let stop = AtomicBool::new(false);
        let mut client = server.client();
        let fault = thread::scope(|scope| -> Result<Instant> {
            let _stop = StopOnDrop(&stop);
            ledger.start(scope, server.port(), &stop);
            thread::sleep(Duration::from_millis(random.u64(10..longest_ms) / 2));
            if random.u8(0..3) == 0 {
                client.run("BGREWRITEAOF");
            }
            thread::sleep(Duration::from_millis(random.u64(10..longest_ms) / 2));
            freeze(server.pid())?;
            let fault = Instant::now();
            volume.cut_power()?;
            server.stop(Signal::Kill)?;
            Ok(fault)
        })?;
        drop(server);
        volume.restore_power()?;
        server = logging(context, &volume.path(), policy)
            .try_start()
            .with_context(|| format!("the start after cut {cut} was refused"))?;
        let found = ledger.compare(server.port(), fault).with_context(|| format!("after cut {cut}"))?;
        ensure!(
            found.oldest_lost <= may_lose && (found.lost == 0 || !may_lose.is_zero()),
            "cut {cut}: {} acknowledged writes are lost, the oldest {:.2} s old",
            found.lost,
            found.oldest_lost.as_secs_f64()
        );
        all.add(found);
        if cut % 20 == 19 {
            server.client().run("FLUSHALL");
            server.client().run("BGREWRITEAOF");
        }
    }
    server.stop(Signal::Kill)?;
    Ok(format!(
        "{cuts} cuts, {} acknowledged, {} lost (the oldest {:.2} s before the cut), no start refused",
        all.acked,
        all.lost,
        all.oldest_lost.as_secs_f64()
    ))
}

/// A7: the disk of the log is full, `everysec`.
pub(super) fn full_everysec(context: &Context<'_>) -> Result<String> {
    full(context, "everysec")
}

/// A8: the disk of the log is full, `always`.
pub(super) fn full_always(context: &Context<'_>) -> Result<String> {
    full(context, "always")
}

fn full(context: &Context<'_>, policy: &str) -> Result<String> {
    if !may_mount() {
        return Ok(NO_RIGHT.to_owned());
    }
    let rounds = context.pick(1, 20_u32);
    let small = Small::mount("2m")?;
    let launch = |context: &Context<'_>| {
        logging(context, small.path(), policy).args(&["--logfile", "/dev/null", "--auto-aof-rewrite-percentage", "0"])
    };
    let (mut all, mut refused, mut slowest) = (Found::default(), 0, Duration::ZERO);
    for _ in 0..rounds {
        let mut server = launch(context).try_start()?;
        let ledger = Ledger::open(server.port(), CLIENTS)?;
        let stop = AtomicBool::new(false);
        let fault = thread::scope(|scope| -> Result<Instant> {
            let _stop = StopOnDrop(&stop);
            ledger.start(scope, server.port(), &stop);
            thread::sleep(Duration::from_millis(100));
            let filler = small.fill()?;
            let mut other = server.client();
            let no_room = "MISCONF Errors writing to the AOF file: No space left on device";
            wait_until("writes are refused", LIMIT, || match other.info("aof_last_write_status").as_deref() {
                Some("err") => Ok(()),
                state => Err(format!("{state:?}")),
            });
            other.check("SET x 1; GET nothing", &format!("-{no_room}; nil"));
            let script = other.call(&["EVAL", "return redis.call('SET', KEYS[1], 'x')", "1", "x"])?;
            ensure!(script.is_error(), "a script wrote: {script}");
            thread::sleep(Duration::from_millis(300));
            std::fs::remove_file(&filler)?;
            let freed = Instant::now();
            wait_until("writes are back", LIMIT, || match other.run("SET y 1") {
                reply if reply.is_error() => Err(reply.text()),
                _ => Ok(()),
            });
            slowest = slowest.max(freed.elapsed());
            thread::sleep(Duration::from_millis(50));
            server.stop(Signal::Kill)?;
            Ok(Instant::now())
        })?;
        refused += ledger.refused();
        drop(server);
        let mut server = launch(context).try_start()?;
        let found = ledger.compare(server.port(), fault)?;
        ensure!(found.lost == 0, "{} acknowledged writes are lost", found.lost);
        all.add(found);
        server.client().run("FLUSHALL");
        server.stop(Signal::Kill)?;
        std::fs::remove_dir_all(small.path().join("appendonlydir"))?;
    }
    ensure!(slowest < Duration::from_secs(1), "writes came back only {slowest:?} after there was room");
    Ok(format!(
        "{rounds} rounds, {} acknowledged, 0 lost, {refused} refused, writes back {:.0} ms after there was room",
        all.acked,
        slowest.as_secs_f64() * 1e3
    ))
}

/// A9: the disk of the snapshot is full: thirteen things that must hold.
pub(super) fn full_snapshot(context: &Context<'_>) -> Result<String> {
    const MISCONF: &str = "MISCONF Redis is configured to save RDB snapshots";
    if !may_mount() {
        return Ok(NO_RIGHT.to_owned());
    }
    let small = Small::mount("3m")?;
    let launch = context.launch.clone().directory(small.path());
    let mut server = launch.args(&["--save", "3600 1", "--logfile", "/dev/null"]).try_start()?;
    let mut client = server.client();
    client.check("SET a old; SAVE", "+OK; +OK");
    let file = small.path().join("dump.rdb");
    let (old, last) = (std::fs::read(&file)?, client.run("LASTSAVE"));
    client.run("DEBUG POPULATE 20000 key 40");
    let filler = small.fill()?;
    client.check("SET a new; BGSAVE", "+OK; +Background saving started");
    wait_until("the save", LIMIT, || match client.info("rdb_bgsave_in_progress").as_deref() {
        Some("0") => Ok(()),
        state => Err(format!("{state:?}")),
    });
    let mut held = 0;
    let mut hold = |is_so: bool, what: &str| -> Result<()> {
        held += 1;
        ensure!(is_so, "{what}");
        Ok(())
    };
    hold(std::fs::read(&file)? == old, "the old file has changed")?;
    let others = std::fs::read_dir(small.path())?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let left: Vec<String> = others.filter(|name| name.starts_with("temp-")).collect();
    hold(left.is_empty(), "a temporary file is left")?;
    hold(client.info("rdb_last_bgsave_status").as_deref() == Some("err"), "INFO does not tell")?;
    hold(client.run("LASTSAVE") == last, "LASTSAVE has moved")?;
    let mut refuses = |command: &[&str]| -> Result<bool> { Ok(client.call(command)?.text().contains(MISCONF)) };
    hold(refuses(&["SET", "a", "x"])?, "a write is taken")?;
    hold(refuses(&["EVAL", "return redis.call('SET', KEYS[1], 'x')", "1", "a"])?, "a script writes")?;
    hold(refuses(&["PING"])?, "PING is well")?;
    hold(client.run("GET a").text() == "new", "reads are refused")?;
    client.check("MULTI; SET a x", &format!("+OK; -{MISCONF}..."));
    hold(client.run("EXEC").text().starts_with("EXECABORT"), "a transaction writes")?;
    hold(client.run("SAVE").is_error(), "SAVE succeeds")?;
    hold(client.run("SHUTDOWN SAVE").is_error() && server.exit_status().is_none(), "it ends without saving")?;
    std::fs::remove_file(&filler)?;
    client.check("SAVE; SET a newer; SAVE", "+OK; +OK; +OK");
    hold(std::fs::read(&file)? != old, "nothing is saved")?;
    server.stop(Signal::Kill)?;
    let server = context.launch.clone().directory(small.path()).args(&["--logfile", "/dev/null"]).try_start()?;
    hold(server.client().run("GET a").text() == "newer", "the new file does not load")?;
    Ok(format!("{held} of 13"))
}

/// A tracer that makes calls of a running process fail; ended when dropped.
struct Injector(Child);

impl Injector {
    /// `inject` as strace's option of that name; calls on `paths` alone, if there are any.
    fn attach(server: &Server, inject: &str, paths: &[String]) -> Result<Injector> {
        let calls = inject.split(':').next().unwrap_or_default();
        let mut command = Command::new("strace");
        command.args([
            "-f",
            "-qq",
            "-o",
            "/dev/null",
            "-e",
            &format!("trace={calls}"),
            "-e",
            &format!("inject={inject}"),
        ]);
        for path in paths {
            command.args(["-P", path]);
        }
        let pid = server.pid();
        command.args(["-p", &pid.to_string()]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().context("strace")?;
        let injector = Injector(child);
        let end = Instant::now() + LIMIT;
        while !is_traced(pid)? {
            ensure!(Instant::now() < end, "strace does not attach");
            thread::sleep(Duration::from_millis(2));
        }
        Ok(injector)
    }
}

/// Whether every thread of a process is watched by a tracer.
fn is_traced(pid: u32) -> Result<bool> {
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = std::fs::read_to_string(task?.path().join("status")).unwrap_or_default();
        if text.lines().any(|line| line.strip_prefix("TracerPid:").is_some_and(|pid| pid.trim() == "0")) {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Drop for Injector {
    fn drop(&mut self) {
        let _ = process::send_signal(self.0.id(), Signal::Terminate);
        let _ = self.0.wait();
    }
}

/// What a row answers without strace.
const NO_STRACE: &str = "skipped: strace is missing (apt-get install strace)";

/// A10: forcing the log to disk fails, with both policies. Nothing is forced again on the same file: it is rewritten.
pub(super) fn failing_sync(context: &Context<'_>) -> Result<String> {
    if binary::on_path("strace").is_none() {
        return Ok(NO_STRACE.to_owned());
    }
    let rounds = context.pick(1, 20_u32);
    let (mut all, mut slowest) = (Found::default(), Duration::ZERO);
    for (round, policy) in (0..rounds).flat_map(|round| [(round, "always"), (round, "everysec")]) {
        let directory = tempfile::tempdir()?;
        let mut server = logging(context, directory.path(), policy).try_start()?;
        let ledger = Ledger::open(server.port(), CLIENTS)?;
        let stop = AtomicBool::new(false);
        let fault = thread::scope(|scope| -> Result<Instant> {
            let _stop = StopOnDrop(&stop);
            ledger.start(scope, server.port(), &stop);
            thread::sleep(Duration::from_millis(100));
            let injector = Injector::attach(&server, "fsync,fdatasync:error=EIO", &[])?;
            let began = Instant::now();
            let mut other = server.client();
            wait_until("the log tells of the error", LIMIT, || {
                if server.log().contains("Fail to fsync the AOF file") { Ok(()) } else { Err("nothing") }
            });
            slowest = slowest.max(began.elapsed());
            other.check("GET nothing", "nil");
            thread::sleep(Duration::from_millis(200));
            drop(injector);
            wait_until("writes are back", LIMIT, || match other.run("SET y 1") {
                reply if reply.is_error() => Err(reply.text()),
                _ => Ok(()),
            });
            thread::sleep(Duration::from_millis(50));
            server.stop(Signal::Kill)?;
            Ok(Instant::now())
        })?;
        if ledger.refused() > 0 {
            let refusal = ledger.refusal();
            let is_told = refusal.starts_with("MISCONF Errors writing to the AOF file: ");
            ensure!(is_told || refusal.starts_with("EXECABORT"), "refused with {refusal}");
        }
        let server = logging(context, directory.path(), policy).try_start()?;
        let found = ledger.compare(server.port(), fault).with_context(|| format!("round {round}, {policy}"))?;
        ensure!(found.lost == 0, "round {round}, {policy}: {} acknowledged writes are lost", found.lost);
        all.add(found);
    }
    Ok(format!(
        "{rounds} rounds of both policies, {} acknowledged, 0 lost, error told within {:.1} s",
        all.acked,
        slowest.as_secs_f64()
    ))
}

/// The calls of the sweep, as strace names them.
const CALLS: [&str; 5] =
    ["write,pwrite64,writev", "fsync,fdatasync,sync_file_range", "rename,renameat,renameat2", "ftruncate", "openat"];

/// What the server does while a call fails.
const SCENES: [&str; 4] = ["start", "rewrite", "snapshot", "full sync"];

/// A11: the k-th call of each kind fails during start, rewrite, snapshot and full synchronization.
pub(super) fn failing_calls(context: &Context<'_>) -> Result<String> {
    if binary::on_path("strace").is_none() {
        return Ok(NO_STRACE.to_owned());
    }
    let mut random = fastrand::Rng::with_seed(testkit::seed(11));
    let mut all: Vec<(usize, &str, u32)> = Vec::new();
    match std::env::var("OXIDIS_CALLS").ok().and_then(|text| text.parse().ok()).or(context.pick(None, Some(400_u32))) {
        Some(most) => {
            for k in 1..=most {
                all.extend((0..SCENES.len()).flat_map(|scene| CALLS.map(|calls| (scene, calls, k))));
            }
        }
        None => {
            all.extend((0..SCENES.len()).map(|scene| (scene, CALLS[scene], 1)));
            all.extend(
                (0..8).map(|index| (index % SCENES.len(), CALLS[random.usize(0..CALLS.len())], random.u32(1..9))),
            );
        }
    }
    let mut refused = 0;
    for (scene, calls, k) in &all {
        refused += one_failure(context, *scene, calls, *k)
            .with_context(|| format!("{}: call {k} of {calls} fails", SCENES[*scene]))?;
    }
    Ok(format!(
        "{} failing calls, nothing acknowledged lost, no directory unusable, {refused} clean refusals to start",
        all.len()
    ))
}

/// The files of a server, as it names them and as they are.
fn paths(server: Option<u32>, directory: &Path) -> Vec<String> {
    let mut names = vec!["dump.rdb".to_owned(), "appendonlydir".to_owned(), ".".to_owned()];
    let log = |name: &str| format!("appendonlydir/{name}");
    names.extend(["appendonly.aof.manifest", "temp-appendonly.aof.manifest", "temp-appendonly.aof.incr"].map(log));
    for seq in 1..8 {
        names.push(log(&format!("appendonly.aof.{seq}.incr.aof")));
        names.push(log(&format!("appendonly.aof.{seq}.base.rdb")));
    }
    if let Some(pid) = server {
        names.push(format!("temp-{pid}.rdb"));
        names.push(log(&format!("temp-rewriteaof-bg-{pid}.aof")));
        names.push(log(&format!("temp-rewriteaof-{pid}.aof")));
    }
    let whole = |name: &String| directory.join(name).to_string_lossy().into_owned();
    let absolute: Vec<String> = names.iter().map(whole).collect();
    names.into_iter().chain(absolute).collect()
}

/// Gives 1 when the server refused to start for the failure, and 0 otherwise.
fn one_failure(context: &Context<'_>, scene: usize, calls: &str, k: u32) -> Result<u32> {
    let directory = tempfile::tempdir()?;
    // The server's own directory is the real path: so are the names of its descriptors.
    let path = directory.path().canonicalize()?;
    let launch = logging(context, &path, "always");
    let mut server = launch.try_start()?;
    let ledger = Ledger::open(server.port(), 3)?;
    let stop = AtomicBool::new(false);
    let inject = format!("{calls}:error=EIO:when={k}");
    let mut refused = 0;
    thread::scope(|scope| -> Result<()> {
        let _stop = StopOnDrop(&stop);
        ledger.start(scope, server.port(), &stop);
        thread::sleep(Duration::from_millis(20));
        if scene == 0 {
            server.stop(Signal::Kill)?;
            return Ok(());
        }
        let injector = Injector::attach(&server, &inject, &paths(Some(server.pid()), &path))?;
        let mut client = server.client();
        let replica = if scene == 3 { Some(context.server(&["--repl-diskless-sync", "no"])?) } else { None };
        match (scene, &replica) {
            (1, _) => drop(client.run("BGREWRITEAOF")),
            (2, _) => drop(client.run("BGSAVE")),
            (_, Some(replica)) => drop(replica.client().run(&format!("REPLICAOF 127.0.0.1 {}", server.port()))),
            _ => {}
        }
        thread::sleep(Duration::from_millis(120));
        drop(injector);
        if server.exit_status().is_none() {
            // It lives: it must take writes again.
            wait_until("writes are back", LIMIT, || match client.run("SET y 1") {
                reply if reply.is_error() => Err(reply.text()),
                _ => Ok(()),
            });
        }
        server.stop(Signal::Kill)?;
        Ok(())
    })?;
    let fault = Instant::now();
    if scene == 0 {
        let mut words = vec!["strace", "-D", "-f", "-qq", "-o", "/dev/null", "-e"];
        let (trace, inject) = (format!("trace={calls}"), format!("inject={inject}"));
        words.extend([trace.as_str(), "-e", inject.as_str()]);
        let all = paths(None, &path);
        words.extend(all.iter().flat_map(|path| ["-P", path.as_str()]));
        match launch.clone().wrapped(&words).try_start() {
            Ok(mut server) => drop(server.stop(Signal::Kill)?),
            Err(error) if error.kind() == std::io::ErrorKind::Other => refused = 1,
            Err(error) => bail!("neither a start nor a clean end: {error}"),
        }
    }
    let server = launch.try_start().context("the start after it")?;
    let found = ledger.compare(server.port(), fault)?;
    ensure!(found.lost == 0, "{} acknowledged writes are lost", found.lost);
    let mut client = Client::connect(server.port())?;
    client.check("SET z 1", "+OK");
    Ok(refused)
}
