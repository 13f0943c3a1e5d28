//! Snapshots: files both ways with redis-server, points in time under writes, failing disks, loading, shutdown.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread;
use std::time::Duration;

use common::run;
use testkit::process::Signal;
use testkit::{Client, Launch, Server, binary, text, wait_until};

const LIMIT: Duration = Duration::from_secs(20);

/// Values of every type and encoding, in three databases, some with an expiry.
fn fill(client: &mut Client, seed: u64) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut commands: Vec<String> = Vec::new();
    for db in [0, 1, 9] {
        commands.push(format!("SELECT {db}"));
        for index in 0..150 {
            let word = format!("w{}", rng.u32(..1_000_000));
            commands.push(format!("SET string:{index} {}", word.repeat(rng.usize(1..40))));
            commands.push(format!("SET number:{index} {}", rng.i64(..)));
            commands.push(format!("HSET hash:{index} a {word} b 2"));
            commands.push(format!("RPUSH list:{index} {word} 1 -5 {}", word.repeat(30)));
            commands.push(format!("SADD set:{index} {word} x y"));
            commands.push(format!("SADD intset:{index} 1 {} 300000", rng.u16(..)));
            commands.push(format!("ZADD zset:{index} 1.5 {word} -inf low 7 seven"));
            commands.push(format!("XADD stream:{index} 1-{} f {word}", index + 1));
            if index % 5 == 0 {
                commands.push(format!("PEXPIREAT string:{index} 3{:012}", rng.u64(..100_000_000_000)));
            }
        }
        for index in 0..400 {
            commands.push(format!("HSET bighash f{index} {}", rng.u64(..)));
            commands.push(format!("RPUSH biglist {index} {}", "e".repeat(rng.usize(..200))));
            commands.push(format!("SADD bigset m{index}"));
            commands.push(format!("ZADD bigzset {} m{index}", rng.i32(..)));
            commands.push(format!("XADD bigstream * f{index} {}", rng.u32(..)));
        }
        commands.push("XGROUP CREATE bigstream group 0".to_owned());
        commands.push("XREADGROUP GROUP group consumer COUNT 10 STREAMS bigstream >".to_owned());
    }
    for batch in commands.chunks(500) {
        let batch: Vec<_> = batch.iter().map(|command| text::words(command)).collect();
        for reply in client.pipeline(&batch).unwrap() {
            assert!(!reply.is_error(), "{reply}");
        }
    }
}

fn digest(client: &mut Client) -> String {
    client.run("DEBUG DIGEST").text()
}

fn wait_saved(client: &mut Client) {
    wait_until("the snapshot", LIMIT, || match client.info("rdb_bgsave_in_progress").as_deref() {
        Some("0") => Ok(()),
        other => Err(format!("{other:?}")),
    });
}

fn save(client: &mut Client) {
    client.check("BGSAVE", "+Background saving started");
    wait_saved(client);
    assert_eq!(client.info("rdb_last_bgsave_status").as_deref(), Some("ok"));
}

/// A server on the files of another's directory.
fn over(launch: Launch, directory: &Path) -> Server {
    launch.directory(directory).ready_within(LIMIT).start()
}

fn with_workers(args: &[&str]) -> Launch {
    Launch::oxidis().args(&["--io-threads", "4"]).args(args)
}

#[test]
fn files_go_both_ways_with_redis() {
    let seed = testkit::seed(6);
    let ours = with_workers(&["--rdb-version", "10"]).start();
    let mut client = ours.client();
    fill(&mut client, seed);
    let expected = digest(&mut client);
    save(&mut client);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("dump.rdb");
    std::fs::copy(ours.directory().join("dump.rdb"), &file).unwrap();
    let checker = binary::peer("redis-check-rdb").expect("redis-tools");
    let checked = run(&checker, &[&file], "");
    assert_eq!(checked.code, Some(0), "{}", checked.out);
    assert!(checked.out.contains("\\o/ RDB looks OK! \\o/"), "{}", checked.out);
    let mut theirs = over(Launch::redis(), directory.path());
    let mut peer = theirs.client();
    assert_eq!(digest(&mut peer), expected);
    // And back, with a change of theirs.
    peer.check("SET theirs 1", "+OK");
    let expected = digest(&mut peer);
    peer.check("SAVE", "+OK");
    theirs.stop(Signal::Kill).unwrap();
    let again = over(with_workers(&[]), directory.path());
    assert_eq!(digest(&mut again.client()), expected);
    assert!(again.log().contains("Done loading RDB, keys loaded:"), "{}", again.log());
    // Our own newest form, compressed or not, with and without a checksum.
    for args in [&["--rdbcompression", "no"][..], &["--rdbchecksum", "no"], &["--sanitize-dump-payload", "yes"]] {
        std::fs::copy(&file, directory.path().join("other.rdb")).unwrap();
        let mut server = over(with_workers(&[args, &["--dbfilename", "other.rdb"]].concat()), directory.path());
        let mut client = server.client();
        let expected = digest(&mut client);
        client.check("SAVE", "+OK");
        server.stop(Signal::Kill).unwrap();
        let server = over(with_workers(&["--dbfilename", "other.rdb"]), directory.path());
        assert_eq!(digest(&mut server.client()), expected, "{args:?}");
    }
}

#[test]
fn reload_keeps_everything_and_check_rdb_agrees() {
    let server = with_workers(&[]).start();
    let mut client = server.client();
    fill(&mut client, 1);
    let before = digest(&mut client);
    client.check("DEBUG RELOAD", "+OK");
    assert_eq!(digest(&mut client), before);
    client.check("DEBUG RELOAD NOSAVE NOFLUSH MERGE", "+OK");
    assert_eq!(digest(&mut client), before);
    client.check("SELECT 3; SET more 1; SELECT 0", "+OK; +OK; +OK");
    client.check("DEBUG RELOAD NOSAVE", "+OK");
    assert_eq!(digest(&mut client), before);
    assert!(client.run("DEBUG RELOAD NOSAVE NOFLUSH").is_error(), "keys come twice");
    assert!(client.run("DEBUG RELOAD WHAT").text().contains("only supports the MERGE, NOFLUSH and NOSAVE options"));
    let file = server.directory().join("dump.rdb");
    let checked = run(binary::oxidis(), &["check-rdb".as_ref(), file.as_os_str()], "");
    assert_eq!(checked.code, Some(0), "{}", checked.out);
    assert!(checked.out.contains("[info] 3615 keys read\n"), "{}", checked.out);
    assert!(checked.err.is_empty(), "{}", checked.err);
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    let checked = run(binary::oxidis(), &["check-rdb".as_ref(), file.as_os_str()], "");
    assert_eq!(checked.code, Some(1));
    assert!(checked.out.contains("--- RDB ERROR DETECTED ---\n"), "{}", checked.out);
}

/// Money goes round between accounts, by transactions and by commands on several keys.
fn transfer(server: &Server, worker: u64, accounts: u64, stop: &AtomicBool) {
    let mut client = server.client();
    let mut rng = fastrand::Rng::with_seed(worker);
    while !stop.load(Ordering::Relaxed) {
        let (from, to, amount) = (rng.u64(..accounts), rng.u64(..accounts), rng.u64(1..100));
        let commands = [
            "MULTI".to_owned(),
            format!("DECRBY account:{from} {amount}"),
            format!("INCRBY account:{to} {amount}"),
            "EXEC".to_owned(),
            format!("LMOVE coins:{from} coins:{to} LEFT RIGHT"),
            format!("SMOVE tokens:{from} tokens:{to} t{}", rng.u64(..10)),
        ];
        let commands: Vec<_> = commands.iter().map(|command| text::words(command)).collect();
        client.pipeline(&commands).unwrap();
    }
}

fn number(client: &mut Client, command: &str) -> i64 {
    let reply = client.run(command);
    reply.text().trim_start_matches(':').parse().unwrap_or_else(|_| panic!("{command}: {reply}"))
}

/// Ends the threads of a test also when it fails.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// All money, coins and tokens.
fn totals(client: &mut Client, accounts: u64) -> (i64, i64, usize) {
    let (mut money, mut coins, mut tokens) = (0, 0, 0);
    for account in 0..accounts {
        money += number(client, &format!("GET account:{account}"));
        coins += number(client, &format!("LLEN coins:{account}"));
        tokens += client.run(&format!("SMEMBERS tokens:{account}")).items().map_or(0, <[_]>::len);
    }
    (money, coins, tokens)
}

#[test]
fn a_snapshot_under_transfers_shows_one_instant() {
    const ACCOUNTS: u64 = 60;
    let server = with_workers(&[]).start();
    let mut client = server.client();
    for account in 0..ACCOUNTS {
        client.check(&format!("SET account:{account} 1000"), "+OK");
        client.run(&format!("RPUSH coins:{account} 1 2 3 4 5"));
    }
    client.run("SADD tokens:0 t0 t1 t2 t3 t4 t5 t6 t7 t8 t9");
    client.run("DEBUG POPULATE 20000");
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let _stop = StopOnDrop(&stop);
        for worker in 0..4 {
            let (server, stop) = (&server, &stop);
            scope.spawn(move || transfer(server, worker, ACCOUNTS, stop));
        }
        for round in 0..5 {
            save(&mut client);
            let directory = tempfile::tempdir().unwrap();
            std::fs::copy(server.directory().join("dump.rdb"), directory.path().join("dump.rdb")).unwrap();
            let copy = over(with_workers(&[]), directory.path());
            let expected = (1000 * i64::try_from(ACCOUNTS).unwrap(), 5 * i64::try_from(ACCOUNTS).unwrap(), 10);
            assert_eq!(totals(&mut copy.client(), ACCOUNTS), expected, "round {round}");
        }
    });
}

#[test]
fn what_was_written_before_bgsave_is_in_it_and_what_comes_after_is_not() {
    let server = with_workers(&["--rdb-key-save-delay", "200"]).start();
    let mut client = server.client();
    client.run("DEBUG POPULATE 2000");
    for index in 0..6_000 {
        client.run(&format!("RPUSH giant element:{index}"));
    }
    client.check("SET before 1", "+OK");
    let (keys, length) = (client.run("DBSIZE").text(), client.run("LLEN giant").text());
    client.check("BGSAVE", "+Background saving started");
    client.check("BGSAVE", "-ERR Background save already in progress");
    client.check("BGSAVE SCHEDULE", "-ERR Background save already in progress");
    client.check("SAVE", "-ERR Background save already in progress");
    assert_eq!(client.info("rdb_bgsave_in_progress").as_deref(), Some("1"));
    // Changes of all kinds, also of a value that no worker copies; a flush and a swap of another database.
    client.check("SET before 2; SET after 1; DEL key:1; APPEND key:2 more; EXPIRE key:3 1000", "+OK; +OK; :1; :11; :1");
    client.check("RPUSH giant one; LPOP giant", ":6001; element:0");
    client.check("MULTI; LPOP giant; DEL giant; EXEC", "+OK; +QUEUED; +QUEUED; [element:1 :1]");
    client.check("SELECT 1; SET x y; SELECT 0; SWAPDB 0 1; FLUSHDB", "+OK; +OK; +OK; +OK; +OK");
    wait_saved(&mut client);
    let copy = over(with_workers(&[]), server.directory());
    let mut client = copy.client();
    client.check("GET before; EXISTS after; EXISTS key:1; GET key:2; TTL key:3", "1; :0; :1; value:2; :-1");
    assert_eq!((client.run("DBSIZE").text(), client.run("LLEN giant").text()), (keys, length));
    client.check("SELECT 1; DBSIZE", "+OK; :0");
}

#[test]
fn save_points_and_their_fields() {
    let server = with_workers(&["--save", "1 3"]).start();
    let mut client = server.client();
    let first = client.run("LASTSAVE").text();
    client.check("SET a 1; SET b 2", "+OK; +OK");
    assert_eq!(client.info("rdb_changes_since_last_save").as_deref(), Some("2"));
    client.check("SET c 3", "+OK");
    wait_until("the save point", LIMIT, || match client.info("rdb_saves").as_deref() {
        Some("0") | None => Err("no save"),
        _ => Ok(()),
    });
    wait_saved(&mut client);
    assert_eq!(client.info("rdb_changes_since_last_save").as_deref(), Some("0"));
    assert_ne!(client.run("LASTSAVE").text(), first);
    assert!(server.log().contains("3 changes in 1 seconds. Saving..."), "{}", server.log());
    // After a flush the old file must not bring the keys back.
    client.check("FLUSHALL", "+OK");
    wait_until("the save after the flush", LIMIT, || {
        let file = std::fs::read(server.directory().join("dump.rdb")).unwrap_or_default();
        if file.len() < 200 { Ok(()) } else { Err(file.len()) }
    });
}

#[test]
fn a_failing_disk_stops_writes_until_it_is_well() {
    const MISCONF: &str = "-MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. Commands that may modify the data set are disabled, because this instance is configured to report errors during writes if RDB snapshotting fails (stop-writes-on-bgsave-error option). Please check the Redis logs for details about the RDB error.";
    let server = with_workers(&["--save", "3600 1"]).start();
    let mut client = server.client();
    client.check("SET a 1; SAVE", "+OK; +OK");
    let file = server.directory().join("dump.rdb");
    let old = std::fs::read(&file).unwrap();
    let temporary = server.directory().join(format!("temp-{}.rdb", server.pid()));
    // A full device, and a file that cannot be opened.
    symlink("/dev/full", &temporary).unwrap();
    client.check("SET a 2; BGSAVE", "+OK; +Background saving started");
    wait_saved(&mut client);
    assert!(!temporary.exists() && std::fs::symlink_metadata(&temporary).is_err(), "the temporary file is gone");
    assert_eq!(client.info("rdb_last_bgsave_status").as_deref(), Some("err"));
    assert!(server.log().contains("No space left on device"), "{}", server.log());
    client.check("SET a 3", MISCONF);
    client.check("PING", MISCONF);
    client.check("GET a; MULTI", "2; +OK");
    client.check("INCR a", MISCONF);
    client.check("EXEC", "-EXECABORT Transaction discarded because of previous errors.");
    std::fs::create_dir(&temporary).unwrap();
    client.check("SAVE", "-ERR");
    assert!(server.log().contains("Failed opening the temp RDB file"), "{}", server.log());
    assert_eq!(std::fs::read(&file).unwrap(), old);
    client.check("CONFIG SET stop-writes-on-bgsave-error no; SET a 4", "+OK; +OK");
    client.check("CONFIG SET stop-writes-on-bgsave-error yes", "+OK");
    client.check("SET a 5", MISCONF);
    // A shutdown that cannot save does not happen.
    client.check("SHUTDOWN SAVE", "-ERR Errors trying to SHUTDOWN. Check logs.");
    server.signal(Signal::Terminate).unwrap();
    wait_until("the failed shutdown", LIMIT, || {
        let count = server.log().matches("Errors trying to shut down the server").count();
        if count == 2 { Ok(()) } else { Err(count) }
    });
    std::fs::remove_dir(&temporary).unwrap();
    client.check("SAVE; SET a 6; PING", "+OK; +OK; +PONG");
    assert_ne!(std::fs::read(&file).unwrap(), old);
    // What stands in the way of the last step leaves no file behind either.
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir_all(file.join("x")).unwrap();
    client.check("SAVE", "-ERR");
    assert!(server.log().contains("Error moving temp DB file"), "{}", server.log());
    assert!(!temporary.exists());
}

/// Counts as fast as it can until the connection ends; what was answered last is in `answered`.
fn count(server: &Server, key: &str, answered: &AtomicI64, stop: &AtomicBool) {
    let mut client = server.client();
    let command = text::words(&format!("INCR {key}"));
    while !stop.load(Ordering::Relaxed) {
        let Ok(reply) = client.call(&command) else { break };
        match reply.text().trim_start_matches(':').parse::<i64>() {
            Ok(number) => answered.store(number, Ordering::SeqCst),
            Err(_) => break,
        }
    }
}

#[test]
fn a_shutdown_under_load_loses_nothing_that_was_answered() {
    let directory = tempfile::tempdir().unwrap();
    let mut before = [0_i64; 3];
    for round in 0..6 {
        let mut server = over(with_workers(&["--save", "3600 1"]), directory.path());
        let answered: [AtomicI64; 3] = Default::default();
        let mut client = server.client();
        client.run("DEBUG POPULATE 3000");
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let _stop = StopOnDrop(&stop);
            for (index, answered) in answered.iter().enumerate() {
                let (server, stop) = (&server, &stop);
                scope.spawn(move || count(server, &format!("counter:{index}"), answered, stop));
            }
            wait_until("some counting", LIMIT, || {
                let least = answered.iter().map(|answered| answered.load(Ordering::SeqCst)).min().unwrap_or(0);
                if least > before.iter().max().copied().unwrap_or(0) + 200 { Ok(()) } else { Err(least) }
            });
            match round % 3 {
                0 => server.signal(Signal::Terminate).unwrap(),
                1 => client.send(&["SHUTDOWN"]).unwrap(),
                _ => {
                    client.run("BGSAVE");
                    client.send(&["SHUTDOWN", "SAVE"]).unwrap();
                }
            }
            // The connection ends with the server.
            assert!(client.closes_within(LIMIT), "round {round}");
        });
        let status = wait_until("the end", LIMIT, || server.exit_status().ok_or("it runs"));
        assert!(status.success(), "round {round}: {status}\n{}", server.log());
        drop(server);
        let server = over(with_workers(&[]), directory.path());
        let mut client = server.client();
        for (index, answered) in answered.iter().enumerate() {
            let kept = number(&mut client, &format!("GET counter:{index}"));
            let answered = answered.load(Ordering::SeqCst);
            // At most the one command whose answer did not arrive.
            assert!((answered..=answered + 1).contains(&kept), "round {round}: {kept} kept, {answered} answered");
            assert!(kept > before[index]);
            before[index] = kept;
        }
    }
}

#[test]
fn clients_are_told_to_wait_while_data_is_loaded() {
    let server = with_workers(&[]).start();
    let mut client = server.client();
    client.run("DEBUG POPULATE 400");
    client.check("SET gone 1 PX 1; SAVE", "+OK; +OK");
    let directory = tempfile::tempdir().unwrap();
    std::fs::copy(server.directory().join("dump.rdb"), directory.path().join("dump.rdb")).unwrap();
    client.check("CONFIG SET key-load-delay 5000", "+OK");
    let mut other = server.client();
    client.send(&["DEBUG", "RELOAD"]).unwrap();
    wait_until("the load", LIMIT, || match other.info("loading").as_deref() {
        Some("1") => Ok(()),
        state => Err(format!("{state:?}")),
    });
    other.check(
        "GET key:1; PING",
        "-LOADING Redis is loading the dataset in memory; -LOADING Redis is loading the dataset in memory",
    );
    for field in ["loading_start_time", "loading_total_bytes", "loading_loaded_bytes", "loading_loaded_perc"] {
        assert!(other.info(field).is_some(), "{field}");
    }
    assert!(other.info("loading_eta_seconds").is_some());
    assert_eq!(client.read().unwrap().text(), "OK");
    other.check("GET key:1; PING", "value:1; +PONG");
    assert_eq!(other.info("loading").as_deref(), Some("0"));
    // A start: the server listens while it loads, and keys whose time is over are left out.
    let again = over(with_workers(&[]), directory.path());
    let mut client = again.client();
    assert_eq!(client.info("rdb_last_load_keys_expired").as_deref(), Some("1"));
    assert_eq!(client.info("rdb_last_load_keys_loaded").as_deref(), Some("400"));
}

#[test]
fn a_broken_file_stops_the_start_with_the_reason() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("dump.rdb");
    let start = |bytes: &[u8]| {
        std::fs::write(&file, bytes).unwrap();
        let error = with_workers(&[]).directory(directory.path()).try_start().expect_err("it must not start");
        assert_eq!(std::fs::read(&file).unwrap(), bytes, "the file is as it was");
        error.to_string()
    };
    assert!(start(b"REDIS0011\x00\x01a").contains("Short read or OOM loading DB"));
    assert!(start(b"REDIS0012").contains("Can't handle RDB format version 12"));
    assert!(start(b"nothing of the kind").contains("Wrong signature trying to load DB from file"));
    let text = start(b"REDIS0011\x00\x01a\x01b\xff12345678");
    assert!(text.contains("Wrong RDB checksum expected: (") && text.contains("RDB CRC error"), "{text}");
    assert!(text.contains("Fatal error loading the DB, check server logs. Exiting."), "{text}");
}
