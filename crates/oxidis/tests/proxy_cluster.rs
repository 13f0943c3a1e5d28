//! The proxy before a stock Redis Cluster: plain clients, while redis-cli moves slots and a primary dies.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use testkit::process::Signal;
use testkit::{Client, Launch, Reply, Server, StockCluster, wait_until};

fn proxy_of(cluster: &StockCluster) -> Server {
    let topology = format!("cluster {}", cluster.seeds());
    let proxy =
        Launch::proxy().args(&["--topology", &topology, "--io-threads", "2", "--backend-retry-time", "8000"]).start();
    let mut client = proxy.client();
    wait_until("the proxy to know the cluster", Duration::from_secs(10), || {
        let info = client.info("proxy_slots_owned");
        if info.as_deref() == Some("16384") { Ok(()) } else { Err(info) }
    });
    proxy
}

fn scan_all(client: &mut Client) -> Vec<String> {
    let (mut cursor, mut keys) = ("0".to_owned(), Vec::new());
    loop {
        let reply = client.run(&format!("SCAN {cursor} COUNT 50"));
        let items = reply.items().unwrap_or_else(|| panic!("SCAN answered {reply}"));
        cursor = items[0].text();
        keys.extend(items[1].items().unwrap().iter().map(Reply::text));
        if cursor == "0" {
            return keys;
        }
    }
}

/// Ends threads that go on until a flag says so, when the test itself has failed.
struct StopAtEnd<'a>(&'a AtomicBool, bool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(self.1, Ordering::SeqCst);
    }
}

/// One writer and its registers: each value is written once, and read back.
struct Register {
    key: String,
    acknowledged: u64,
    /// What was sent since without an answer that tells.
    unsure: Vec<u64>,
}

impl Register {
    fn write(&mut self, client: &mut Client, value: u64) -> bool {
        match client.call(&["SET", &self.key, &value.to_string()]).unwrap() {
            Reply::Simple(_) => {
                self.acknowledged = value;
                self.unsure.clear();
                true
            }
            _ => {
                self.unsure.push(value);
                false
            }
        }
    }

    fn read(&mut self, client: &mut Client) {
        let reply = client.call(&["GET", &self.key]).unwrap();
        let Reply::Bulk(bytes) = &reply else {
            assert!(reply.is_error(), "{} is gone: {reply}, acknowledged {}", self.key, self.acknowledged);
            return;
        };
        let value: u64 = String::from_utf8_lossy(bytes).parse().unwrap();
        assert!(
            value == self.acknowledged || self.unsure.contains(&value),
            "{} is {value}, acknowledged {}, unsure {:?}",
            self.key,
            self.acknowledged,
            self.unsure
        );
        self.acknowledged = value;
    }
}

#[test]
fn a_stock_cluster_is_resharded_and_fails_over_behind_plain_clients() {
    let cluster = StockCluster::start(3, 1);
    let proxy = proxy_of(&cluster);
    let mut client = proxy.client();
    client.check("MSET a 1 b 2 c 3 d 4; MGET a b c d none; DEL a b none; EXISTS a b c d", "+OK; [1 2 3 4 nil]; :2; :2");
    client.check(
        "SELECT 1; SELECT 0; SUNION a b; MULTI; SET {t}a 1; GET {t}a; EXEC",
        "-ERR SELECT is not allowed in cluster mode; +OK; -CROSSSLOT...; +OK; +QUEUED; +QUEUED; [+OK 1]",
    );
    let (stop, writes, errors) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let quiet = AtomicBool::new(false);
    let quiet_writers = AtomicU64::new(0);
    const WRITERS: u64 = 3;
    std::thread::scope(|scope| {
        let _stop = StopAtEnd(&stop, true);
        for writer in 0..WRITERS {
            let (proxy, stop, writes, errors, quiet, quiet_writers) =
                (&proxy, &stop, &writes, &errors, &quiet, &quiet_writers);
            scope.spawn(move || {
                let mut client = proxy.client();
                let mut registers: Vec<Register> = (0..40)
                    .map(|number| Register {
                        key: format!("reg:{writer}:{number}"),
                        acknowledged: 0,
                        unsure: Vec::new(),
                    })
                    .collect();
                for register in &mut registers {
                    assert!(register.write(&mut client, 0));
                }
                let mut value = 0;
                while !stop.load(Ordering::SeqCst) {
                    let is_quiet = quiet.load(Ordering::SeqCst);
                    if is_quiet {
                        quiet_writers.fetch_add(1, Ordering::SeqCst);
                        while quiet.load(Ordering::SeqCst) && !stop.load(Ordering::SeqCst) {
                            std::thread::sleep(Duration::from_millis(2));
                        }
                    }
                    value += 1;
                    let at = fastrand::usize(..registers.len());
                    let done = registers[at].write(&mut client, value);
                    writes.fetch_add(1, Ordering::SeqCst);
                    if !done {
                        errors.fetch_add(1, Ordering::SeqCst);
                    }
                    registers[at].read(&mut client);
                    let other = fastrand::usize(..registers.len());
                    registers[other].read(&mut client);
                }
                registers.iter_mut().for_each(|register| register.read(&mut client));
            });
        }
        // While slots move, nothing may fail and nothing may be wrong.
        cluster.reshard(0, 1, 600);
        cluster.reshard(1, 2, 600);
        assert_eq!(errors.load(Ordering::SeqCst), 0, "of {} writes", writes.load(Ordering::SeqCst));
        // A primary dies. The engine copies to its replica later than it answers, so nothing is written at that moment.
        quiet.store(true, Ordering::SeqCst);
        wait_until("quiet writers", Duration::from_secs(20), || {
            let count = quiet_writers.load(Ordering::SeqCst);
            if count >= WRITERS { Ok(()) } else { Err(count) }
        });
        std::thread::sleep(Duration::from_millis(300));
        let victim = cluster.owner(16000);
        cluster.servers[victim].signal(Signal::Kill).unwrap();
        let killed = Instant::now();
        quiet.store(false, Ordering::SeqCst);
        cluster.wait_whole(&[victim]);
        let mut client = proxy.client();
        wait_until("writes to go on", Duration::from_secs(20), || {
            let reply = client.run("MSET x1 1 x2 2 x3 3 x4 4 x5 5 x6 6 x7 7 x8 8");
            if reply.is_error() { Err(reply) } else { Ok(()) }
        });
        eprintln!(
            "{} writes, {} not acknowledged, writes everywhere {:?} after the kill",
            writes.load(Ordering::SeqCst),
            errors.load(Ordering::SeqCst),
            killed.elapsed()
        );
        let before = writes.load(Ordering::SeqCst);
        wait_until("writers to go on", Duration::from_secs(20), || {
            let count = writes.load(Ordering::SeqCst) - before;
            if count > 300 { Ok(()) } else { Err(count) }
        });
        stop.store(true, Ordering::SeqCst);
    });
    // What is there is found, by all ways of asking.
    let keys: BTreeSet<String> = scan_all(&mut client).into_iter().collect();
    assert!((0..WRITERS).all(|writer| (0..40).all(|number| keys.contains(&format!("reg:{writer}:{number}")))));
    let counted = client.run("DBSIZE").integer().unwrap();
    assert_eq!(counted, keys.len() as i64);
}

#[test]
fn a_scan_misses_nothing_while_slots_move() {
    let cluster = StockCluster::start(3, 0);
    let proxy = proxy_of(&cluster);
    let mut client = proxy.client();
    let names: BTreeSet<String> = (0..1500).map(|number| format!("k:{number}")).collect();
    for name in &names {
        client.send(&["SET", name, "v"]).unwrap();
    }
    for _ in &names {
        assert_eq!(client.read().unwrap().to_string(), "+OK");
    }
    let moving = AtomicBool::new(true);
    std::thread::scope(|scope| {
        let _stop = StopAtEnd(&moving, false);
        let (proxy, names) = (&proxy, &names);
        let moving_too = &moving;
        let scanner = scope.spawn(move || {
            let mut client = proxy.client();
            let mut scans = 0;
            while moving_too.load(Ordering::SeqCst) || scans == 0 {
                let found: BTreeSet<String> = scan_all(&mut client).into_iter().collect();
                assert!(names.is_subset(&found), "missed {:?}", names.difference(&found).take(5).collect::<Vec<_>>());
                scans += 1;
            }
            scans
        });
        cluster.reshard(0, 2, 300);
        cluster.reshard(2, 1, 500);
        moving.store(false, Ordering::SeqCst);
        eprintln!("{} whole scans", scanner.join().unwrap());
    });
}

/// Codis: with a slot on its way, a command whose first key is absent went to the target as a whole, where its other keys were
/// missing: SUNIONSTORE stored nothing, SUNION and EVAL answered from half of the keys.
#[test]
fn defect_1_a_multi_key_command_whose_first_key_is_absent_is_right_while_its_slot_moves() {
    let cluster = StockCluster::start(3, 0);
    let proxy = proxy_of(&cluster);
    let mut client = proxy.client();
    client.check("SADD {t}b 1 2; SADD {t}c 3 4", ":2; :2");
    let slot = u16::try_from(cluster.servers[0].client().run("CLUSTER KEYSLOT t").integer().unwrap()).unwrap();
    let source = cluster.owner(slot);
    let target = (source + 1) % 3;
    let (mut at_source, mut at_target) = (cluster.servers[source].client(), cluster.servers[target].client());
    at_target.check(&format!("CLUSTER SETSLOT {slot} IMPORTING {}", cluster.id(source)), "+OK");
    at_source.check(&format!("CLUSTER SETSLOT {slot} MIGRATING {}", cluster.id(target)), "+OK");
    let port = cluster.servers[target].port();
    let mut moved: Vec<&str> = Vec::new();
    for next in ["", "{t}c", "{t}b"] {
        if !next.is_empty() {
            at_source.check(&format!("MIGRATE 127.0.0.1 {port} {next} 0 5000"), "+OK");
            moved.push(next);
        }
        // Right, or an error that says to try again: never an answer from half of the keys.
        let mut answers = Vec::new();
        proxy.client().check("CONFIG SET backend-retry-time 30", "+OK");
        for (command, right) in [
            ("SUNION {t}absent {t}b {t}c", 4),
            ("SUNIONSTORE {t}d {t}absent {t}b {t}c", 4),
            ("EVAL \"return #redis.call('sunion', KEYS[1], KEYS[2], KEYS[3])\" 3 {t}absent {t}b {t}c", 4),
            ("EXISTS {t}absent {t}b {t}c", 2),
        ] {
            let reply = client.run(command);
            let count = reply.items().map_or(reply.integer(), |items| i64::try_from(items.len()).ok());
            let is_right = count == Some(right);
            assert!(is_right || reply.text().starts_with("TRYAGAIN"), "{command} with {moved:?} moved: {reply}");
            answers.push(is_right);
        }
        // Keys that are all on one side are answered.
        client.check("SCARD {t}b; SCARD {t}c", ":2; :2");
        eprintln!("{moved:?} moved: answered {answers:?}");
    }
    at_source.run("DEL {t}d");
    at_target.check(&format!("CLUSTER SETSLOT {slot} NODE {}", cluster.id(target)), "+OK");
    at_source.run(&format!("CLUSTER SETSLOT {slot} NODE {}", cluster.id(target)));
    client.check(
        "SUNIONSTORE {t}d {t}absent {t}b {t}c; MULTI; SCARD {t}d; SUNION {t}b {t}c; EXEC",
        ":4; +OK; +QUEUED; +QUEUED; [:4 [1 2 3 4]]",
    );
}

#[test]
fn blocked_watching_and_listening_clients_follow_their_slot() {
    let cluster = StockCluster::start(3, 0);
    let proxy = proxy_of(&cluster);
    let slot = u16::try_from(cluster.servers[0].client().run("CLUSTER KEYSLOT list").integer().unwrap()).unwrap();
    let source = cluster.owner(slot);
    let target = (source + 1) % 3;
    let (mut blocked, mut watching, mut listening, mut client) =
        (proxy.client(), proxy.client(), proxy.client(), proxy.client());
    blocked.send(&["BLPOP", "list", "30"]).unwrap();
    watching.check("WATCH list; MULTI; SET list x", "+OK; +OK; +QUEUED");
    listening.check("SSUBSCRIBE list", "[ssubscribe list :1]");
    let mut channel = proxy.client();
    channel.check("SUBSCRIBE news", "[subscribe news :1]");
    wait_until("the client to block", Duration::from_secs(5), || match client.info("blocked_clients") {
        Some(count) if count == "1" => Ok(()),
        count => Err(count),
    });
    let id = cluster.id(target);
    for server in [target, source, 3 - source - target] {
        cluster.servers[server].client().run(&format!("CLUSTER SETSLOT {slot} NODE {id}"));
    }
    wait_until("the shard channel to follow", Duration::from_secs(10), || {
        let reply = client.run("SPUBLISH list hello").to_string();
        if reply == ":1" { Ok(()) } else { Err(reply) }
    });
    assert_eq!(listening.read().unwrap().to_string(), "[smessage list hello]");
    client.check("PUBLISH news n", ":1");
    assert_eq!(channel.read().unwrap().to_string(), "[message news n]");
    watching.check("EXEC", "*nil");
    client.check("RPUSH list a", ":1");
    assert_eq!(blocked.read().unwrap().to_string(), "[list a]");
}

#[test]
fn reads_go_to_replicas_where_that_is_wanted() {
    let cluster = StockCluster::start(3, 1);
    let proxy = proxy_of(&cluster);
    let mut client = proxy.client();
    let reads = || -> u64 {
        let is_replica = |server: &&Server| server.client().info("role").as_deref() == Some("slave");
        let calls = |server: &Server| {
            let stats = server.client().info("cmdstat_get").unwrap_or_default();
            stats.strip_prefix("calls=").and_then(|rest| rest.split(',').next()?.parse().ok()).unwrap_or(0)
        };
        cluster.servers.iter().filter(is_replica).map(calls).sum()
    };
    for number in 0..30 {
        client.check(&format!("SET k{number} {number}; GET k{number}"), &format!("+OK; {number}"));
    }
    assert_eq!(reads(), 0, "never, unless somebody wants it");
    client.check("CONFIG SET replica-reads prefer", "+OK");
    wait_until("reads at replicas", Duration::from_secs(10), || {
        for number in 0..30 {
            let reply = client.run(&format!("GET k{number}")).to_string();
            assert_eq!(reply, number.to_string());
        }
        let count = reads();
        if count >= 30 { Ok(()) } else { Err(count) }
    });
    // A replica that dies is not missed.
    for server in &cluster.servers[3..] {
        server.signal(Signal::Stop).unwrap();
    }
    client.check("CONFIG SET backend-timeout 300", "+OK");
    wait_until("reads at primaries", Duration::from_secs(10), || {
        let replies: Vec<Reply> = (0..30).map(|number| client.run(&format!("GET k{number}"))).collect();
        if replies.iter().any(Reply::is_error) { Err(replies.into_iter().find(Reply::is_error)) } else { Ok(()) }
    });
    for server in &cluster.servers[3..] {
        server.signal(Signal::Continue).unwrap();
    }
}
