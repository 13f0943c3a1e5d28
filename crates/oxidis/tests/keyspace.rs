//! The keyspace as a whole: SCAN, expiry, eviction, FLUSHALL, SWAPDB, CLIENT PAUSE, while others write.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::{info_number, timed};
use testkit::{Client, Reply, Server, text, wait_until};

fn server() -> Server {
    Server::oxidis(&["--io-threads", "4"])
}

fn fill(client: &mut Client, prefix: &str, count: usize, value: &str) {
    let commands: Vec<_> = (0..count).map(|index| text::words(&format!("SET {prefix}:{index} {value}"))).collect();
    for batch in commands.chunks(1_000) {
        for reply in client.pipeline(batch).unwrap() {
            assert!(!reply.is_error(), "{reply}");
        }
    }
}

fn scan(client: &mut Client, options: &str) -> Vec<String> {
    let mut keys = Vec::new();
    let mut cursor = "0".to_owned();
    loop {
        let reply = client.run(&format!("SCAN {cursor} {options}"));
        let items = reply.items().unwrap();
        cursor = items[0].text();
        keys.extend(items[1].items().unwrap().iter().map(Reply::text));
        if cursor == "0" {
            return keys;
        }
    }
}

#[test]
fn scan_finds_what_stays_while_the_rest_comes_and_goes() {
    let server = server();
    let mut client = server.client();
    fill(&mut client, "stays", 5_000, "v");
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for writer in 0..3 {
            let (server, done) = (&server, &done);
            scope.spawn(move || {
                let mut client = server.client();
                // The table grows to many times its size and shrinks again, over and over.
                while !done.load(Ordering::Relaxed) {
                    fill(&mut client, &format!("goes:{writer}"), 20_000, "v");
                    for first in (0..20_000).step_by(500) {
                        let names: Vec<String> =
                            (first..first + 500).map(|index| format!("goes:{writer}:{index}")).collect();
                        client.run(&format!("UNLINK {}", names.join(" ")));
                    }
                }
            });
        }
        for options in ["COUNT 10 MATCH stays:*", "COUNT 1000", "COUNT 137 TYPE string", "COUNT 5000 MATCH s*"] {
            let found: HashSet<String> =
                scan(&mut client, options).into_iter().filter(|key| key.starts_with("stays")).collect();
            assert_eq!(found.len(), 5_000, "SCAN {options} missed keys");
        }
        done.store(true, Ordering::Relaxed);
    });
    let keys = scan(&mut client, "COUNT 100");
    let distinct: HashSet<&String> = keys.iter().collect();
    assert_eq!(distinct.len(), keys.len(), "no key comes twice from a table that stands still");
    assert_eq!(client.run("DBSIZE").integer(), Some(keys.len() as i64));
}

#[test]
fn keys_end_by_themselves() {
    let server = server();
    let mut client = server.client();
    let commands: Vec<_> =
        (0..20_000).map(|index| text::words(&format!("SET k:{index} v PX {}", 50 + index % 400))).collect();
    for batch in commands.chunks(1_000) {
        client.pipeline(batch).unwrap();
    }
    fill(&mut client, "stays", 1_000, "v");
    client.check("HSET h f v; PEXPIRE h 100; RPUSH l x; PEXPIRE l 100", ":1; :1; :1; :1");
    let ((), took) = timed(|| {
        wait_until("the end of the keys", Duration::from_secs(10), || {
            let size = client.run("DBSIZE");
            if size.integer() == Some(1_000) { Ok(()) } else { Err(size) }
        });
    });
    assert!(took < Duration::from_secs(4), "the last keys ended {took:?} late");
    assert_eq!(info_number(&mut client, "expired_keys"), 20_002);
    client.check("DEBUG SET-ACTIVE-EXPIRE 0; SET a 1 PX 10", "+OK; +OK");
    thread::sleep(Duration::from_millis(300));
    client.check("DBSIZE; GET a; DBSIZE", ":1001; nil; :1000");
    client.check("SET a 1 PX 10; DEBUG SET-ACTIVE-EXPIRE 1", "+OK; +OK");
}

#[test]
fn all_eight_policies_keep_to_the_limit() {
    const LIMIT: u64 = 24 << 20;
    for policy in [
        "noeviction",
        "allkeys-lru",
        "allkeys-lfu",
        "allkeys-random",
        "volatile-lru",
        "volatile-lfu",
        "volatile-random",
        "volatile-ttl",
    ] {
        let server =
            Server::oxidis(&["--io-threads", "4", "--maxmemory", &LIMIT.to_string(), "--maxmemory-policy", policy]);
        let volatile = policy.starts_with("volatile");
        let refused: usize = thread::scope(|scope| {
            let writers: Vec<_> = (0..4)
                .map(|writer| {
                    let server = &server;
                    scope.spawn(move || {
                        let mut client = server.client();
                        let mut refused = 0;
                        let value = "v".repeat(1_000);
                        for batch in 0..100 {
                            let commands: Vec<_> = (0..100)
                                .map(|index| {
                                    let ttl = if volatile { " EX 1000" } else { "" };
                                    text::words(&format!("SET {writer}:{batch}:{index} {value}{ttl}"))
                                })
                                .collect();
                            let replies = client.pipeline(&commands).unwrap();
                            for reply in replies.iter().filter(|reply| reply.is_error()) {
                                assert_eq!(reply.text(), "OOM command not allowed when used memory > 'maxmemory'.");
                                refused += 1;
                            }
                        }
                        refused
                    })
                })
                .collect();
            writers.into_iter().map(|writer| writer.join().unwrap()).sum()
        });
        let mut client = server.client();
        let used = info_number(&mut client, "used_memory");
        assert!(used < LIMIT + (2 << 20), "{policy}: {used} bytes used of {LIMIT}");
        let size = client.run("DBSIZE").integer().unwrap();
        assert!(size > 8_000, "{policy}: only {size} keys are left");
        if policy == "noeviction" {
            assert!(refused > 0);
            client.check(
                "SET a 1; GET a; MULTI; GET a; EXEC; DEL 0:0:0",
                "-OOM command not allowed when used memory > 'maxmemory'.; nil; +OK; -OOM command not allowed when used memory > 'maxmemory'.; -EXECABORT Transaction discarded because of previous errors.; :1",
            );
            assert_eq!(info_number(&mut client, "evicted_keys"), 0);
        } else {
            assert_eq!(refused, 0, "{policy}");
            assert!(info_number(&mut client, "evicted_keys") > 10_000, "{policy}");
        }
    }
}

#[test]
fn hot_keys_outlive_cold_ones() {
    let server = Server::oxidis(&[
        "--io-threads",
        "2",
        "--maxmemory",
        "24mb",
        "--maxmemory-policy",
        "allkeys-lru",
        "--maxmemory-samples",
        "10",
    ]);
    let mut client = server.client();
    let value = "v".repeat(1_000);
    fill(&mut client, "cold", 8_000, &value);
    fill(&mut client, "hot", 2_000, &value);
    thread::sleep(Duration::from_millis(1_500));
    for index in 0..2_000 {
        client.run(&format!("GET hot:{index}"));
    }
    fill(&mut client, "new", 16_000, &value);
    let mut left = |prefix: &str, count: usize| {
        (0..count).filter(|index| client.run(&format!("EXISTS {prefix}:{index}")).integer() == Some(1)).count()
    };
    let (hot, cold) = (left("hot", 2_000), left("cold", 8_000));
    assert!(hot * 100 / 2_000 > cold * 100 / 8_000, "{hot} of 2000 hot keys and {cold} of 8000 cold ones are left");
}

#[test]
fn flushes_and_swaps_while_others_write() {
    let server = server();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for writer in 0..6 {
            let (server, done) = (&server, &done);
            scope.spawn(move || {
                let mut client = server.client();
                client.run(&format!("SELECT {}", writer % 2));
                let mut slowest = Duration::ZERO;
                while !done.load(Ordering::Relaxed) {
                    let (replies, took) = timed(|| {
                        let commands: Vec<_> =
                            (0..50).map(|index| text::words(&format!("LPUSH l:{index} x"))).collect();
                        client.pipeline(&commands).unwrap()
                    });
                    assert!(replies.iter().all(|reply| reply.integer().is_some_and(|length| length >= 1)));
                    slowest = slowest.max(took);
                }
                assert!(slowest < Duration::from_secs(3), "a writer waited {slowest:?}");
            });
        }
        let mut admin = server.client();
        let end = Instant::now() + Duration::from_secs(3);
        let mut rounds = 0;
        while Instant::now() < end {
            rounds += 1;
            let command = ["FLUSHALL", "SWAPDB 0 1", "FLUSHDB ASYNC", "KEYS *", "MULTI"][rounds % 5];
            if command == "MULTI" {
                admin.check("MULTI; FLUSHALL; DBSIZE; EXEC", "+OK; +QUEUED; +QUEUED; [+OK :0]");
            } else {
                assert!(!admin.run(command).is_error(), "{command}");
            }
        }
        assert!(rounds > 50, "only {rounds} rounds");
        done.store(true, Ordering::Relaxed);
    });
    let mut client = server.client();
    client.check(
        "FLUSHALL; DBSIZE; SET a 0; SELECT 1; DBSIZE; SET a 1; SWAPDB 0 1; GET a; SELECT 0; GET a",
        "+OK; :0; +OK; +OK; :0; +OK; +OK; 0; +OK; 1",
    );
    let info = client.run("INFO keyspace").text();
    assert!(info.contains("db0:keys=1,expires=0") && info.contains("db1:keys=1,expires=0"), "{info}");
}

#[test]
fn a_pause_holds_writes_or_everything_back() {
    let server = server();
    let mut admin = server.client();
    let mut reader = server.client();
    let mut writer = server.client();
    admin.check("SET a 1; CLIENT PAUSE 60000 WRITE", "+OK; +OK");
    let (_, took) = timed(|| reader.check("GET a", "1"));
    assert!(took < Duration::from_secs(1));
    writer.send(&["INCR", "a"]).unwrap();
    thread::sleep(Duration::from_millis(100));
    reader.check("GET a", "1");
    admin.check("CLIENT UNPAUSE", "+OK");
    assert_eq!(writer.read().unwrap(), Reply::Integer(2));
    admin.check("CLIENT PAUSE 300", "+OK");
    let (_, took) = timed(|| reader.check("GET a", "2"));
    assert!(took >= Duration::from_millis(200), "GET waited only {took:?}");
    let mut blocked = server.client();
    blocked.send(&["BLPOP", "k", "0.2"]).unwrap();
    assert!(blocked.read().unwrap().is_null());
}
