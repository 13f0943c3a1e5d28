//! The append only file end to end: kills, cuts, full disks, stalls, and files that Redis shares.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;
#[path = "common/log.rs"]
mod log;

use common::run;
use log::{digest, names};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use testkit::process::Signal;
use testkit::{Client, Launch, Reply, binary, wait_until};

fn launch(directory: &Path, more: &[&str]) -> Launch {
    let always = ["--appendonly", "yes", "--save", "", "--enable-debug-command", "yes"];
    Launch::oxidis().directory(directory).args(&always).args(more)
}

fn number(reply: &Reply) -> u64 {
    match reply {
        Reply::Bulk(text) => String::from_utf8_lossy(text).parse().unwrap(),
        Reply::NullBulk => 0,
        other => panic!("{other}"),
    }
}

/// Runs commands, none of which may fail.
fn all(client: &mut Client, commands: &str) {
    for command in commands.split(';') {
        let reply = client.run(command.trim());
        assert!(!matches!(reply, Reply::Error(_)), "{command}: {reply}");
    }
}

/// Clients that write until the server is gone; what was acknowledged to each of them.
const CLIENTS: u64 = 4;

/// One client's writes: a counter, and now and then two counters in a transaction.
fn write(mut client: Client, id: u64, acked: &[AtomicU64; 2], stop: &AtomicBool) {
    let mut round = 0;
    while !stop.load(Ordering::Relaxed) {
        round += 1;
        if client.call(&["INCR", &format!("c{id}")]).is_err() {
            return;
        }
        acked[0].fetch_add(1, Ordering::Relaxed);
        if round % 3 == 0 {
            let (a, b) = (format!("a{id}"), format!("b{id}"));
            let commands: [&[&str]; 4] = [&["MULTI"], &["INCR", &a], &["INCR", &b], &["EXEC"]];
            for command in commands {
                if client.send(command).is_err() {
                    return;
                }
            }
            for index in 0..4 {
                match client.read() {
                    Ok(Reply::Array(_)) if index == 3 => {}
                    Ok(_) if index < 3 => {}
                    _ => return,
                }
            }
            acked[1].fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Kills a server again and again while clients write; each time all that was acknowledged must be there.
fn kills(policy: &str, kills: u64) {
    let directory = tempfile::tempdir().unwrap();
    let launch = launch(directory.path(), &["--appendfsync", policy, "--io-threads", "2"]);
    let mut rng = testkit::seed(7);
    let mut random = |most: u64| {
        rng = rng.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (rng >> 33) % most
    };
    let mut total = 0;
    for kill in 0..kills {
        let mut server = launch.start();
        let mut client = server.client();
        let base: Vec<[u64; 3]> = (0..CLIENTS)
            .map(|id| ["c", "a", "b"].map(|name| number(&client.run(&format!("GET {name}{id}")))))
            .collect();
        let acked: Vec<[AtomicU64; 2]> = (0..CLIENTS).map(|_| Default::default()).collect();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for id in 0..CLIENTS {
                let (client, acked, stop) = (server.client(), &acked[usize::try_from(id).unwrap()], &stop);
                scope.spawn(move || write(client, id, acked, stop));
            }
            if random(3) == 0 {
                client.run("BGREWRITEAOF");
            }
            std::thread::sleep(Duration::from_micros(500 + random(40_000)));
            server.stop(Signal::Kill).unwrap();
            stop.store(true, Ordering::Relaxed);
        });
        let server = launch.start();
        let mut client = server.client();
        for (id, (base, acked)) in base.iter().zip(&acked).enumerate() {
            let now = ["c", "a", "b"].map(|name| number(&client.run(&format!("GET {name}{id}"))));
            let acked = [acked[0].load(Ordering::Relaxed), acked[1].load(Ordering::Relaxed)];
            let new = [now[0] - base[0], now[1] - base[1]];
            total += acked[0] + acked[1];
            // One more may have been done without its answer having come.
            assert!((acked[0]..=acked[0] + 1).contains(&new[0]), "kill {kill}: {acked:?} acknowledged, {new:?} there");
            assert!((acked[1]..=acked[1] + 1).contains(&new[1]), "kill {kill}: {acked:?} acknowledged, {new:?} there");
            assert_eq!(now[1], now[2], "kill {kill}: half a transaction");
        }
    }
    assert!(total > kills, "{total}");
}

/// How often the server is killed: `OXIDIS_KILLS`, else few enough for every run of the tests.
fn times(usual: u64) -> u64 {
    std::env::var("OXIDIS_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

#[test]
fn a_killed_server_has_lost_nothing_it_acknowledged_always() {
    kills("always", times(25));
}

#[test]
fn a_killed_server_has_lost_nothing_it_acknowledged_everysec() {
    kills("everysec", times(25));
}

/// A log of single commands and transactions: whatever is cut off its end, it loads, whole commands remain, and it goes
/// on from there.
#[test]
fn a_torn_end_is_cut_off() {
    let directory = tempfile::tempdir().unwrap();
    let launch = launch(directory.path(), &["--appendfsync", "no"]);
    let mut server = launch.start();
    let mut client = server.client();
    for _ in 0..20 {
        all(&mut client, "INCR n; MULTI; INCR a; INCR b; EXEC");
    }
    server.stop(Signal::Kill).unwrap();
    let file = directory.path().join("appendonlydir").join(&names(directory.path(), 'i')[0]);
    let whole = std::fs::read(&file).unwrap();
    for cut in [1_usize, 2, 5, 12, 17, 23, 31, 40, 47, 58, 64, 71] {
        // Half of the cuts end in zeros, as a power cut leaves them.
        let mut bytes = whole[..whole.len() - cut].to_vec();
        if cut % 2 == 1 {
            bytes.resize(whole.len() + 4096, 0);
        }
        std::fs::write(&file, &bytes).unwrap();
        for _ in 0..2 {
            let mut server = launch.start();
            let mut client = server.client();
            let [a, b] = ["a", "b"].map(|name| number(&client.run(&format!("GET {name}"))));
            assert_eq!(a, b, "{cut} bytes cut: half a transaction");
            client.run("MULTI");
            client.run("INCR a");
            client.run("INCR b");
            client.run("EXEC");
            server.stop(Signal::Kill).unwrap();
        }
    }
    let server = launch.start();
    assert!(!server.log().contains("CRITICAL"));
    let log = server.log();
    drop(server);
    assert!(
        log.contains("!!! Warning: short read while loading the AOF file appendonly.aof.1.incr.aof!!!")
            || log.contains("DB loaded"),
        "{log}"
    );
}

#[test]
fn a_broken_middle_stops_the_start_with_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let launch = launch(directory.path(), &["--appendfsync", "no"]);
    let mut server = launch.start();
    server.client().check("SET a 1; SET b 2; SET c 3", "+OK; +OK; +OK");
    server.stop(Signal::Kill).unwrap();
    let name = &names(directory.path(), 'i')[0];
    let file = directory.path().join("appendonlydir").join(name);
    let mut bytes = std::fs::read(&file).unwrap();
    let at = bytes.windows(9).position(|part| part == b"$1\r\nb\r\n$1").unwrap();
    bytes[at] = b'?';
    std::fs::write(&file, &bytes).unwrap();
    let error = launch.try_start().unwrap_err().to_string();
    assert!(error.contains(&format!("Bad file format reading the append only file {name}")), "{error}");
    assert!(error.contains(&format!("The fault is at offset {at} ")), "{error}");
    let path = directory.path().join("appendonlydir/appendonly.aof.manifest");
    let checked = run(binary::oxidis(), &["check-aof".as_ref(), path.as_os_str()], "");
    assert_eq!(checked.code, Some(1), "{checked:?}");
    assert!(checked.out.contains("Expected prefix '$', got: '?'"), "{checked:?}");
    let fixed = run(binary::oxidis(), &["check-aof".as_ref(), "--fix".as_ref(), path.as_os_str()], "y\n");
    assert_eq!(fixed.code, Some(0), "{fixed:?}");
    let server = launch.start();
    server.client().check("GET a; GET b", "1; nil");
}

#[test]
fn rewriting_keeps_the_data_and_removes_old_files() {
    for preamble in ["yes", "no"] {
        let directory = tempfile::tempdir().unwrap();
        let launch = launch(directory.path(), &["--aof-use-rdb-preamble", preamble, "--appendfsync", "no"]);
        let mut server = launch.start();
        let mut client = server.client();
        all(
            &mut client,
            "RPUSH l a b c; HSET h f v g w; ZADD z 1.5 m 2 n; SADD s x y; SET e 1 EX 1000; SELECT 5; SET d 5",
        );
        all(&mut client, "XADD st 5-1 a b; XGROUP CREATE st g 0; XREADGROUP GROUP g c STREAMS st >; XADD st 7-0 c d");
        let before = digest(&mut client);
        client.run("BGREWRITEAOF");
        wait_until("the rewrite", Duration::from_secs(10), || {
            match client.info("aof_rewrite_in_progress").as_deref() {
                Some("0") if client.info("aof_rewrites").as_deref() == Some("1") => Ok(()),
                other => Err(other.map(str::to_owned)),
            }
        });
        assert_eq!(client.info("aof_last_bgrewrite_status").as_deref(), Some("ok"));
        client.run("SET after 1");
        let files = std::fs::read_dir(directory.path().join("appendonlydir")).unwrap().count();
        assert_eq!(files, 3, "base, increment and manifest");
        assert_eq!(
            names(directory.path(), 'b'),
            [format!("appendonly.aof.2.base.{}", if preamble == "yes" { "rdb" } else { "aof" })]
        );
        server.stop(Signal::Kill).unwrap();
        let server = launch.start();
        let mut client = server.client();
        client.check("SELECT 5; DEL after", "+OK; :1");
        assert_eq!(digest(&mut client), before, "preamble {preamble}");
        client.check("SELECT 5; XPENDING st g", "+OK; [:1 5-1 5-1 [[c 1]]]");
        client.check("DEBUG LOADAOF", "+OK");
        assert_eq!(digest(&mut client), before);
    }
}

#[test]
fn the_log_is_switched_on_and_off_while_the_server_runs() {
    let directory = tempfile::tempdir().unwrap();
    let launch = Launch::oxidis().directory(directory.path()).args(&["--save", ""]);
    let mut server = launch.start();
    let mut client = server.client();
    client.check("SET before 1; CONFIG SET appendonly yes; SET meanwhile 1", "+OK; +OK; +OK");
    wait_until("the first base", Duration::from_secs(10), || match client.info("aof_rewrite_in_progress").as_deref() {
        Some("0") => Ok(()),
        other => Err(other.map(str::to_owned)),
    });
    client.check("SET later 1; WAITAOF 1 0 5000", "+OK; [:1 :0]");
    client.check("CONFIG SET appendfsync always; SET last 1", "+OK; +OK");
    server.stop(Signal::Kill).unwrap();
    let mut server = launch.clone().args(&["--appendonly", "yes"]).start();
    let mut client = server.client();
    client.check("MGET before meanwhile later last", "[1 1 1 1]");
    client.check("CONFIG SET appendonly no; SET x 1; CONFIG SET appendonly yes", "+OK; +OK; +OK");
    wait_until("the second base", Duration::from_secs(10), || {
        match client.info("aof_rewrite_in_progress").as_deref() {
            Some("0") => Ok(()),
            other => Err(other.map(str::to_owned)),
        }
    });
    client.check("SET y 1", "+OK");
    server.stop(Signal::Kill).unwrap();
    let server = launch.args(&["--appendonly", "yes"]).start();
    server.client().check("MGET before x y", "[1 1 1]");
}

#[test]
fn a_stalled_disk_does_not_stall_clients() {
    let directory = tempfile::tempdir().unwrap();
    let server = launch(directory.path(), &["--appendfsync", "everysec"]).start();
    let mut client = server.client();
    client.check("DEBUG AOF-FLUSH-SLEEP 3000000; SET a 1", "+OK; +OK");
    wait_until("a sync", Duration::from_secs(5), || match client.info("aof_pending_bio_fsync").as_deref() {
        Some("1") => Ok(()),
        other => {
            client.run("INCR n");
            Err(other.map(str::to_owned))
        }
    });
    let mut longest = Duration::ZERO;
    let end = Instant::now() + Duration::from_secs(1);
    let mut count = 0;
    while Instant::now() < end {
        let started = Instant::now();
        client.run("INCR n");
        longest = longest.max(started.elapsed());
        count += 1;
    }
    assert!(longest < Duration::from_millis(500) && count > 50, "{longest:?} {count}");
    client.check("DEBUG AOF-FLUSH-SLEEP 0", "+OK");
}

#[test]
fn with_always_an_answer_waits_for_the_disk() {
    let directory = tempfile::tempdir().unwrap();
    let server = launch(directory.path(), &["--appendfsync", "always"]).start();
    let mut client = server.client();
    let mut other = server.client();
    client.check("BLPOP l 0.001", "*nil");
    other.check("DEBUG AOF-FLUSH-SLEEP 200000", "+OK");
    let started = Instant::now();
    client.check("SET a 1", "+OK");
    assert!(started.elapsed() >= Duration::from_millis(200));
    // A blocked client is answered no sooner.
    client.send(&["BLPOP", "l", "0"]).unwrap();
    let started = Instant::now();
    other.check("RPUSH l x", ":1");
    assert!(started.elapsed() >= Duration::from_millis(200));
    assert_eq!(client.read().unwrap().to_string(), "[l x]");
    let started = Instant::now();
    other.check("GET a", "1");
    assert!(started.elapsed() < Duration::from_millis(150), "who only reads does not wait");
    other.check("DEBUG AOF-FLUSH-SLEEP 0", "+OK");
}

#[test]
fn a_full_disk_refuses_writes_until_there_is_room() {
    let directory = tempfile::tempdir().unwrap();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"])
        .arg(directory.path())
        .output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        eprintln!("no right to mount: skipped");
        return;
    }
    for policy in ["everysec", "always"] {
        let mut server = launch(directory.path(), &["--appendfsync", policy, "--logfile", "/dev/null"]).start();
        let mut client = server.client();
        client.set_timeout(Duration::from_secs(3)).unwrap();
        let filler = directory.path().join("filler");
        std::fs::write(&filler, vec![b'x'; 150_000]).unwrap();
        let value = "v".repeat(4000);
        let mut acked = 0;
        let mut second = server.client();
        let refused = loop {
            match client.call(&["SET", &format!("k{acked}"), &value]) {
                Ok(Reply::Simple(_)) => acked += 1,
                Ok(reply) => break reply.to_string(),
                // `always`: the answer waits for room, so that another client is the one to be refused.
                Err(_) => break second.run("SET x 1").to_string(),
            }
            assert!(acked < 1000, "the disk does not get full");
        };
        assert_eq!(refused, "-MISCONF Errors writing to the AOF file: No space left on device", "{policy}");
        assert_eq!(second.run("PING").to_string(), refused);
        second.check("GET k0; EXISTS nothing", &format!("{value}; :0"));
        assert_eq!(second.info("aof_last_write_status").as_deref(), Some("err"));
        std::fs::remove_file(&filler).unwrap();
        wait_until("writes to be back", Duration::from_secs(1), || match second.run("SET y 1") {
            Reply::Simple(_) => Ok(()),
            other => Err(other.to_string()),
        });
        server.stop(Signal::Kill).unwrap();
        let mut server = launch(directory.path(), &["--logfile", "/dev/null"]).start();
        let mut client = server.client();
        for index in 0..acked {
            assert_eq!(client.run(&format!("STRLEN k{index}")), Reply::Integer(4000), "{policy}: k{index} of {acked}");
        }
        client.run("FLUSHALL");
        server.stop(Signal::Kill).unwrap();
        std::fs::remove_dir_all(directory.path().join("appendonlydir")).unwrap();
    }
    std::process::Command::new("umount").arg(directory.path()).status().unwrap();
}

#[test]
fn redis_starts_on_our_files_and_we_on_its() {
    let directory = tempfile::tempdir().unwrap();
    let flags = ["--appendonly", "yes", "--save", "", "--appendfsync", "no", "--enable-debug-command", "yes"];
    let ours = Launch::oxidis().directory(directory.path()).args(&flags).args(&["--rdb-version", "10"]);
    let theirs = Launch::redis().directory(directory.path()).args(&flags);
    let mut expected: Option<String> = None;
    for (round, launch) in [&theirs, &ours, &theirs, &ours].into_iter().enumerate() {
        let mut server = launch.start();
        let mut client = server.client();
        if let Some(expected) = &expected {
            assert_eq!(digest(&mut client), *expected, "round {round}: {}", server.log());
        }
        for command in [
            "RPUSH l{} a b 3; LPOP l{}; SADD s{} a b c 1 2; SPOP s{}; HSET h{} f v g 1; HINCRBYFLOAT h{} g 0.5",
            "ZADD z{} 1 a 2.5 b; XADD x{} 1-1 f v; XGROUP CREATE x{} g 0; XREADGROUP GROUP g c STREAMS x{} >; SET e{} v EX 10000",
            "MULTI; INCR n; INCR m; EXEC; SELECT 3; SET d{} 1; SELECT 0; INCRBYFLOAT f 1.25; PFADD p{} a b c; SETRANGE r{} 5 x",
        ] {
            all(&mut client, &command.replace("{}", &round.to_string()));
        }
        if round == 1 || round == 2 {
            client.run("BGREWRITEAOF");
            wait_until("the rewrite", Duration::from_secs(10), || {
                match client.info("aof_rewrite_in_progress").as_deref() {
                    Some("0") if client.info("aof_last_rewrite_time_sec").as_deref() != Some("-1") => Ok(()),
                    other => Err(other.map(str::to_owned)),
                }
            });
            client.check("SET after{} 1".replace("{}", &round.to_string()).as_str(), "+OK");
        }
        expected = Some(digest(&mut client));
        server.stop(Signal::Terminate).unwrap();
        let manifest = directory.path().join("appendonlydir/appendonly.aof.manifest");
        let checker = binary::peer("redis-check-aof").expect("redis-tools");
        let checked = run(&checker, &[manifest.as_os_str()], "");
        assert_eq!(checked.code, Some(0), "round {round}: {checked:?}");
        let checked = run(binary::oxidis(), &["check-aof".as_ref(), manifest.as_os_str()], "");
        assert_eq!(checked.code, Some(0), "round {round}: {checked:?}");
    }
}

#[test]
fn a_single_file_of_an_old_redis_becomes_a_base() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(
        directory.path().join("appendonly.aof"),
        "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n*2\r\n$4\r\nINCR\r\n$1\r\na\r\n",
    )
    .unwrap();
    let mut server = launch(directory.path(), &[]).start();
    server.client().check("GET a; INCR a", "2; :3");
    assert!(server.log().contains(
        "Successfully migrated an old-style AOF file (appendonly.aof) into the AOF directory (appendonlydir)."
    ));
    assert_eq!(names(directory.path(), 'b'), ["appendonly.aof"]);
    server.stop(Signal::Terminate).unwrap();
    launch(directory.path(), &[]).start().client().check("GET a", "3");
}
