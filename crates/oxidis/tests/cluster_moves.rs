//! Servers as members of a cluster: what they answer, and slots that move between them under load, with crashes of either
//! end at every stage. The manager is the test.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "common/cluster.rs"]
mod cluster;
#[path = "cluster_moves/epochs.rs"]
mod epochs;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use cluster::{Cluster, LIMIT, Router, field, slot_of};
use testkit::{Client, Server, wait_until};

const AOF: &[&str] = &["--appendonly", "yes", "--appendfsync", "always", "--save", ""];
const PLAIN: &[&str] = &["--save", ""];

fn keys_in(client: &mut Client, count: usize, slots: (u16, u16)) -> Vec<String> {
    let mut found = Vec::new();
    for index in 0.. {
        let key = format!("k{index}");
        let slot = slot_of(client, &key);
        if (slots.0..=slots.1).contains(&slot) {
            found.push(key);
            if found.len() == count {
                break;
            }
        }
    }
    found
}

// ---- what a member answers ---------------------------------------------------------------------------------------

#[test]
fn a_plain_server_has_no_cluster() {
    let server = Server::oxidis(PLAIN);
    let mut client = server.client();
    let disabled = "ERR This instance has cluster support disabled";
    for command in ["CLUSTER INFO", "CLUSTER SLOTS", "READONLY", "READWRITE", "ASKING", "CLUSTER KEYSLOT a"] {
        assert_eq!(client.run(command).text().trim_start_matches('-'), disabled, "{command}");
    }
    assert_eq!(client.info("cluster_enabled").unwrap(), "0");
    assert!(client.run("OXIDIS VIEW").is_error());
    assert!(client.run("OXIDIS MOVE START 1 127.0.0.1:1 0-5").is_error());
    client.check("MSET a 1 b 2; SWAPDB 0 1", "+OK; +OK");
}

#[test]
fn a_member_without_a_view_serves_nothing() {
    let manager = cluster::Manager::start();
    manager.set_silent(true);
    let server = Server::oxidis(PLAIN);
    let mut client = server.client();
    client.check("SET a 1", "+OK");
    client.check(&format!("OXIDIS JOIN me {}", manager.url()), "+OK");
    for command in ["GET a", "SET a 2", "MGET a b"] {
        assert_eq!(client.run(command).text().trim_start_matches('-'), "CLUSTERDOWN The cluster is down", "{command}");
    }
    client.check("PING; DBSIZE; KEYS *; RANDOMKEY; SCAN 0", "+PONG; :0; []; nil; [0 []]");
    assert!(client.run(&format!("OXIDIS JOIN other {}", manager.url())).is_error());
    client.check("OXIDIS LEAVE; GET a; DBSIZE", "+OK; 1; :1");
}

#[test]
fn commands_are_judged_by_their_slots() {
    let cluster = Cluster::start(2, PLAIN);
    let (mut first, mut second) = (cluster.client(0), cluster.client(1));
    let own = keys_in(&mut first, 2, (0, 8191));
    let other = keys_in(&mut first, 1, (8192, 16383)).remove(0);
    let (a, b) = (&own[0], &own[1]);
    let moved = format!("MOVED {} 127.0.0.1:{}", slot_of(&mut first, &other), cluster.port(1));
    let cross = "CROSSSLOT Keys in request don't hash to the same slot";
    let mut says = |command: &str, wanted: &str| {
        assert_eq!(first.run(command).text().trim_start_matches('-'), wanted, "{command}");
    };
    says(&format!("SET {a} 1"), "OK");
    says(&format!("SET {other} 1"), &moved);
    says(&format!("GET {other}"), &moved);
    says(&format!("BLPOP {other} 0"), &moved);
    says(&format!("WATCH {other}"), &moved);
    says(&format!("EVAL return(1) 1 {other}"), &moved);
    says(&format!("SSUBSCRIBE {other}"), &moved);
    says(&format!("MGET {a} {b}"), cross);
    says(&format!("MSET {a} 1 {b} 2"), cross);
    says(&format!("RENAME {a} {b}"), cross);
    says(&format!("EVAL return(1) 2 {a} {b}"), cross);
    says(&format!("SORT {a} BY w_*"), "ERR BY option of SORT denied in Cluster mode.");
    says(&format!("SORT {a} GET #"), "ERR GET option of SORT denied in Cluster mode.");
    says("SWAPDB 0 1", "ERR SWAPDB is not allowed in cluster mode");
    // Transactions.
    says("MULTI", "OK");
    says(&format!("SET {a} 2"), "QUEUED");
    says(&format!("SET {other} 2"), &moved);
    says("EXEC", "EXECABORT Transaction discarded because of previous errors.");
    says("MULTI", "OK");
    says(&format!("SET {a} 2"), "QUEUED");
    says(&format!("SET {b} 2"), "QUEUED");
    says("EXEC", cross);
    says(&format!("GET {a}"), "1");
    first.check(&format!("MULTI; SET {a} 3; GET {a}; EXEC"), "+OK; +QUEUED; +QUEUED; [+OK 3]");
    // Scripts that touch what they did not declare.
    let call = |key: &str| vec!["EVAL".to_owned(), format!("return redis.call('GET', '{key}')"), "0".to_owned()];
    assert_eq!(first.call(&call(a)).unwrap().text(), "3");
    let refused = first.call(&call(&other)).unwrap().text();
    assert!(refused.contains("Script attempted to access a non local key in a cluster node"), "{refused}");
    let strict = format!("#!lua\nredis.call('GET', '{a}') return redis.call('GET', '{b}')");
    let refused = first.call(&["EVAL", &strict, "0"]).unwrap().text();
    assert!(refused.contains("Script attempted to access keys that do not hash to the same slot"), "{refused}");
    // A pipeline of both.
    let mixed: Vec<Vec<String>> = [a, &other, a].iter().map(|key| vec!["GET".to_owned(), (*key).clone()]).collect();
    let texts: Vec<String> =
        first.pipeline(&mixed).unwrap().iter().map(|reply| reply.text().trim_start_matches('-').to_owned()).collect();
    assert_eq!(texts, ["3", moved.as_str(), "3"]);
    // A proxy's connection.
    first.check("OXIDIS PROXY p", "+OK");
    first.check(&format!("MSET {a} 1 {b} 2; MGET {a} {b}; EXISTS {a} {b}; TOUCH {a} {b}"), "+OK; [1 2]; :2; :2");
    assert_eq!(first.run(&format!("MGET {a} {other} {b}")).text().trim_start_matches('-'), moved);
    assert_eq!(first.run(&format!("SUNION {a} {b}")).text().trim_start_matches('-'), cross);
    first.check(&format!("DEL {a} {b}; DBSIZE"), ":2; :0");
    second.check(&format!("SET {other} x; DBSIZE"), "+OK; :1");
}

#[test]
fn cluster_commands_answer_from_the_view() {
    let cluster = Cluster::start(2, PLAIN);
    let mut client = cluster.client(0);
    client.check("CLUSTER KEYSLOT foo; CLUSTER LINKS; READONLY; READWRITE; ASKING", ":12182; []; +OK; +OK; +OK");
    assert_eq!(client.info("cluster_enabled").unwrap(), "1");
    assert_eq!(client.info("redis_mode").unwrap(), "cluster");
    let info = client.run("CLUSTER INFO").text();
    for line in ["cluster_state:ok", "cluster_slots_assigned:16384", "cluster_known_nodes:2", "cluster_size:2"] {
        assert!(info.contains(line), "{info}");
    }
    let me = client.run("CLUSTER MYID").text();
    let nodes = client.run("CLUSTER NODES").text();
    assert_eq!(nodes.lines().count(), 2, "{nodes}");
    let line = nodes.lines().find(|line| line.starts_with(&me)).unwrap();
    let port = cluster.port(0);
    assert!(line.contains(&format!(" 127.0.0.1:{port}@{} myself,master - 0 0 ", port + 10000)), "{line}");
    assert!(line.ends_with(" connected 0-8191"), "{line}");
    let slots = client.run("CLUSTER SLOTS");
    let items = slots.items().unwrap();
    assert_eq!(items.len(), 2);
    assert_eq!(items[1].items().unwrap()[0].integer(), Some(8192));
    assert_eq!(items[1].items().unwrap()[2].items().unwrap()[1].integer(), Some(i64::from(cluster.port(1))));
    assert_eq!(client.run("CLUSTER SHARDS").items().unwrap().len(), 2);
    let key = keys_in(&mut client, 1, (0, 8191)).remove(0);
    let slot = slot_of(&mut client, &key);
    client.check(
        &format!("SET {key} 1; CLUSTER COUNTKEYSINSLOT {slot}; CLUSTER GETKEYSINSLOT {slot} 9"),
        &format!("+OK; :1; [{key}]"),
    );
    assert_eq!(client.run("CLUSTER COUNTKEYSINSLOT 16384").text().trim_start_matches('-'), "ERR Invalid slot");
    for command in ["CLUSTER RESET", "CLUSTER MEET 127.0.0.1 1", "CLUSTER ADDSLOTS 1", "CLUSTER FAILOVER"] {
        assert!(client.run(command).is_error(), "{command}");
    }
    let stats = client.run("OXIDIS SLOTS STATS").text();
    assert!(stats.starts_with(&format!("[{{\"slot\":{slot},\"keys\":1,\"bytes\":")), "{stats}");
}

/// One call of SCAN for a proxy: the cursor and the keys, or what was answered instead.
fn scan_once(client: &mut Client, cursor: u64, count: usize) -> Result<(u64, Vec<String>), String> {
    let reply = client.run(&format!("SCAN {cursor} COUNT {count}"));
    let Some([next, keys]) = reply.items().filter(|_| !reply.is_error()) else { return Err(reply.text()) };
    Ok((next.text().parse().unwrap(), keys.items().unwrap().iter().map(testkit::Reply::text).collect()))
}

#[test]
fn a_proxy_scans_from_owner_to_owner() {
    let mut cluster = Cluster::start(2, PLAIN);
    cluster.owners = (0..16384).map(|slot| usize::from(slot / 3000 % 2 == 1)).collect();
    cluster.publish();
    let mut clients = [cluster.client(0), cluster.client(1)];
    let mut all = BTreeSet::new();
    let mut router = cluster.router();
    for index in 0..300 {
        let key = if index % 3 == 0 { format!("{{big}}{index}") } else { format!("key{index}") };
        router.run(&[vec!["SET".to_owned(), key.clone(), "1".to_owned()]]).unwrap();
        all.insert(key);
    }
    for client in &mut clients {
        client.check("OXIDIS PROXY p", "+OK");
    }
    let (mut found, mut cursor, mut visited) = (Vec::new(), 0, Vec::new());
    loop {
        let slot = usize::try_from(cursor & 0x3fff).unwrap();
        let owner = cluster.owners[slot];
        visited.push(owner);
        let (next, keys) = scan_once(&mut clients[owner], cursor, 7).unwrap();
        for key in &keys {
            let of_key = usize::from(slot_of(&mut clients[owner], key));
            assert!(of_key >= slot && cluster.owners[of_key] == owner, "{key}");
        }
        found.extend(keys);
        assert!(next < 1 << 53);
        cursor = next;
        if cursor == 0 {
            break;
        }
    }
    visited.dedup();
    assert_eq!(visited, [0, 1, 0, 1, 0, 1], "each part has its turn");
    assert_eq!(found.len(), all.len());
    assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), all);
    // A slot of another is answered as a command on it.
    let moved = scan_once(&mut clients[0], 3000, 7).unwrap_err();
    assert_eq!(moved.trim_start_matches('-'), format!("MOVED 3000 127.0.0.1:{}", cluster.port(1)));
    // A slot that moves in the middle is begun anew.
    let slot = slot_of(&mut clients[0], "{big}");
    let from = cluster.owners[usize::from(slot)];
    let (middle, keys) = scan_once(&mut clients[from], u64::from(slot), 7).unwrap();
    assert!(middle >> 14 != 0 && keys.len() < 100, "{middle} {keys:?}");
    cluster.begin_move(1, from, 1 - from, (slot, slot), "");
    cluster.wait_state(1, from, "following");
    assert_eq!(cluster.freeze(1, 2000).text(), "OK");
    let held = &mut clients[from];
    held.send(&["SCAN", middle.to_string().as_str(), "COUNT", "7"]).unwrap();
    held.set_timeout(Duration::from_millis(100)).unwrap();
    assert!(held.read().is_err(), "it waits as a command on the slot would");
    held.set_timeout(LIMIT).unwrap();
    cluster.commit(1, true);
    cluster.forget(1);
    let moved = clients[from].read().unwrap().text();
    assert_eq!(moved.trim_start_matches('-'), format!("MOVED {slot} 127.0.0.1:{}", cluster.port(1 - from)));
    let (_, keys) = scan_once(&mut clients[1 - from], middle, 1000).unwrap();
    assert_eq!(keys.iter().filter(|key| key.starts_with("{big}")).count(), 100);
    // Who is no proxy is shown what is here.
    let mut plain = cluster.client(from);
    let (end, keys) = scan_once(&mut plain, 0, 100_000).unwrap();
    assert_eq!(end, 0);
    assert_eq!(plain.run("DBSIZE").integer().unwrap(), i64::try_from(keys.len()).unwrap());
}

#[test]
fn membership_outlives_a_restart() {
    let mut cluster = Cluster::start(2, AOF);
    let mut client = cluster.client(0);
    let key = keys_in(&mut client, 1, (0, 8191)).remove(0);
    client.check(&format!("SET {key} 1"), "+OK");
    cluster.kill(0);
    cluster.restart(0);
    cluster.client(0).check(&format!("GET {key}"), "1");
    assert_eq!(field(&cluster.client(0).run("OXIDIS VIEW").text(), "member"), "s0");
}

// ---- moves -------------------------------------------------------------------------------------------------------

/// Values of every type, in two databases, in slots of one server.
fn fill(client: &mut Client, tag: &str) {
    for db in [0, 3] {
        client.check(&format!("SELECT {db}"), "+OK");
        let commands = [
            format!("SET {tag}s text"),
            format!("SET {tag}n 42"),
            format!("SET {tag}t 1 PXAT 4000000000000"),
            format!("HSET {tag}h a 1 b 2"),
            format!("RPUSH {tag}l a b 3"),
            format!("SADD {tag}e a b 3"),
            format!("SADD {tag}i 1 2 3"),
            format!("ZADD {tag}z 1.5 a -inf b inf c 0.1 d"),
            format!("XADD {tag}x 5-1 f v"),
            format!("XADD {tag}x 5-2 g w"),
            format!("XGROUP CREATE {tag}x group 0"),
            format!("XREADGROUP GROUP group reader COUNT 1 STREAMS {tag}x >"),
            format!("PFADD {tag}p a b c"),
            format!("SETBIT {tag}b 100 1"),
            format!("GEOADD {tag}g 13.361389 38.115556 Palermo"),
            format!("PEXPIREAT {tag}z 4000000000000"),
        ];
        for command in commands {
            assert!(!client.run(&command).is_error(), "{command}");
        }
        for index in 0..6000 {
            let words = [
                format!("RPUSH {tag}L element:{index}"),
                format!("HSET {tag}H field:{index} {index}"),
                format!("ZADD {tag}Z {index}.25 member:{index}"),
                format!("SADD {tag}S member:{index}"),
            ];
            let batch: Vec<Vec<&str>> = words.iter().map(|command| command.split(' ').collect()).collect();
            client.pipeline(&batch).unwrap();
        }
    }
    client.check("SELECT 0", "+OK");
    client.call(&["SET", &format!("{tag}B"), &"x".repeat(1_000_000)]).unwrap();
}

#[test]
fn a_move_carries_everything() {
    let mut cluster = Cluster::start(2, PLAIN);
    let mut first = cluster.client(0);
    let tag = format!("{{{}}}", keys_in(&mut first, 1, (0, 8191)).remove(0));
    fill(&mut first, &tag);
    first.check("FUNCTION LOAD \"#!lua name=l\\nredis.register_function('f', function() return 1 end)\"", "l");
    let before = first.run("DEBUG DIGEST").text();
    let size = first.run("DBSIZE");
    cluster.move_slots(1, 0, 1, (0, 8191));
    let mut second = cluster.client(1);
    assert_eq!(second.run("DEBUG DIGEST").text(), before);
    assert_eq!(second.run("DBSIZE"), size);
    assert_eq!(second.run(&format!("OBJECT ENCODING {tag}Z")).text(), "skiplist");
    second.check(&format!("XPENDING {tag}x group"), "[:1 5-1 5-1 [[reader 1]]]");
    first.check("DBSIZE; FCALL f 0", ":0; :1");
    assert!(second.run("FCALL f 0").is_error(), "functions stay where they are");
    wait_until("the source to be empty", LIMIT, || {
        let used = first.run("INFO keyspace").text();
        if used.contains("db0") { Err(used) } else { Ok(()) }
    });
    // And back.
    cluster.move_slots(2, 1, 0, (0, 8191));
    assert_eq!(first.run("DEBUG DIGEST").text(), before);
    second.check("DBSIZE", ":0");
}

/// What one writer knows of its keys.
struct Written {
    counter: i64,
    list: Vec<String>,
    register: String,
}

/// Writes to keys of one slot until told to end, following it wherever it goes. Lost connections are not expected.
fn write_on(mut router: Router, id: usize, tag: &str, ends: &AtomicBool, slowest_us: &AtomicU64) -> Written {
    let mut written = Written { counter: 0, list: Vec::new(), register: String::new() };
    let words = |command: String| command.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let mut turn = 0;
    while !ends.load(Ordering::Relaxed) {
        turn += 1;
        let value = format!("v{id}-{turn}");
        let since = Instant::now();
        let batch = match turn % 3 {
            0 => vec![words(format!("INCR {tag}c{id}"))],
            1 => vec![words(format!("RPUSH {tag}l{id} {value}"))],
            _ => vec![
                words("MULTI".to_owned()),
                words(format!("SET {tag}r{id} {value}")),
                words(format!("INCR {tag}c{id}")),
                words("EXEC".to_owned()),
            ],
        };
        let replies = router.run(&batch).unwrap();
        slowest_us.fetch_max(u64::try_from(since.elapsed().as_micros()).unwrap(), Ordering::Relaxed);
        for reply in &replies {
            assert!(!reply.is_error(), "{reply}");
        }
        match turn % 3 {
            0 => written.counter += 1,
            1 => written.list.push(value),
            _ => {
                written.counter += 1;
                written.register = value;
            }
        }
    }
    written
}

/// Has writers end, also when the test fails: it would wait for them.
struct EndsWriters<'a>(&'a AtomicBool);

impl Drop for EndsWriters<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn nothing_is_lost_under_load() {
    let mut cluster = Cluster::start(2, PLAIN);
    let mut first = cluster.client(0);
    let tags: Vec<String> = keys_in(&mut first, 4, (0, 99)).into_iter().map(|key| format!("{{{key}}}")).collect();
    let (ends, slowest_us) = (AtomicBool::new(false), AtomicU64::new(0));
    let written: Vec<Written> = thread::scope(|scope| {
        let writers: Vec<_> = tags
            .iter()
            .enumerate()
            .map(|(id, tag)| {
                let (router, ends, slowest_us) = (cluster.router(), &ends, &slowest_us);
                scope.spawn(move || write_on(router, id, tag, ends, slowest_us))
            })
            .collect();
        let _ends_writers = EndsWriters(&ends);
        let rounds = std::env::var("OXIDIS_MOVES").ok().and_then(|text| text.parse().ok()).unwrap_or(6);
        for round in 0..rounds {
            let (from, to) = if round % 2 == 0 { (0, 1) } else { (1, 0) };
            cluster.move_slots(round + 1, from, to, (0, 99));
        }
        ends.store(true, Ordering::Relaxed);
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    let mut total = 0;
    for (id, (tag, written)) in tags.iter().zip(&written).enumerate() {
        first.check(&format!("GET {tag}c{id}; GET {tag}r{id}"), &format!("{}; {}", written.counter, written.register));
        let list = first.run(&format!("LRANGE {tag}l{id} 0 -1"));
        let list: Vec<String> = list.items().unwrap().iter().map(testkit::Reply::text).collect();
        assert_eq!(list, written.list);
        assert_eq!(list.iter().collect::<BTreeSet<_>>().len(), list.len());
        total += written.counter;
    }
    let mut held_us: Vec<u64> = Vec::new();
    for server in cluster.servers.iter().flatten() {
        let log = server.log();
        let figures = log.lines().filter_map(|line| line.split("slots were held for ").nth(1));
        held_us.extend(figures.filter_map(|text| text.split(' ').next()?.parse::<u64>().ok()));
    }
    held_us.sort_unstable();
    println!("slots were held for {held_us:?} us");
    println!("{total} counted, slowest command {} us", slowest_us.load(Ordering::Relaxed));
    assert!(total > 100);
}

#[test]
fn a_big_value_moves_while_others_are_served() {
    let mut cluster = Cluster::start(2, PLAIN);
    let mut first = cluster.client(0);
    let keys = keys_in(&mut first, 2, (0, 8191));
    let (big, small) = (&keys[0], &keys[1]);
    let members = std::env::var("OXIDIS_BIG_MEMBERS").ok().and_then(|text| text.parse().ok()).unwrap_or(200_000);
    for from in (0..members).step_by(1000) {
        let mut words = vec!["ZADD".to_owned(), big.clone()];
        for index in from..from + 1000 {
            words.extend([index.to_string(), format!("member:{index:08}")]);
        }
        let reply = first.call(&words).unwrap();
        assert!(!reply.is_error(), "{reply}");
    }
    let slot = slot_of(&mut first, big);
    let ends = AtomicBool::new(false);
    let mut probe = cluster.client(0);
    let mut probes = thread::scope(|scope| {
        let ends = &ends;
        let prober = scope.spawn(move || {
            let mut probes = Vec::new();
            while !ends.load(Ordering::Relaxed) {
                let since = Instant::now();
                probe.check(&format!("SET {small} 1"), "+OK");
                probes.push(since.elapsed());
            }
            probes
        });
        cluster.move_slots(1, 0, 1, (slot, slot));
        ends.store(true, Ordering::Relaxed);
        prober.join().unwrap()
    });
    probes.sort_unstable();
    // The machine may be busy with other tests: what counts is that nobody waits for the big value.
    let (usual, rare, slowest) = (probes[probes.len() / 2], probes[probes.len() * 99 / 100], probes[probes.len() - 1]);
    println!("{members} members, probes: median {usual:?}, p99 {rare:?}, slowest {slowest:?}");
    assert!(rare < Duration::from_millis(100), "{rare:?}");
    let mut second = cluster.client(1);
    second.check(&format!("ZCARD {big}; ZSCORE {big} member:00000777"), &format!(":{members}; 777"));
}

#[test]
fn changes_of_many_slots_are_cut_to_those_that_move() {
    let mut cluster = Cluster::start(2, PLAIN);
    let mut first = cluster.client(0);
    let moving = keys_in(&mut first, 3, (0, 99));
    let staying = keys_in(&mut first, 2, (200, 8191));
    first.check("OXIDIS PROXY p", "+OK");
    for key in moving.iter().chain(&staying) {
        first.check(&format!("SET {key} old"), "+OK");
    }
    cluster.begin_move(1, 0, 1, (0, 99), "");
    cluster.wait_state(1, 0, "following");
    first.check(&format!("MSET {} 1 {} 2 {} 3", moving[0], staying[0], moving[1]), "+OK");
    first.check(&format!("DEL {} {}", moving[2], staying[1]), ":2");
    first.check(&format!("SET {} x PX 30", moving[2]), "+OK");
    wait_until("the key to expire", LIMIT, || match first.run(&format!("EXISTS {}", moving[2])).integer() {
        Some(0) => Ok(()),
        other => Err(other),
    });
    assert_eq!(cluster.freeze(1, 2000).text(), "OK");
    cluster.commit(1, true);
    cluster.forget(1);
    let mut second = cluster.client(1);
    second.check(&format!("GET {}; GET {}; DBSIZE", moving[0], moving[1]), "1; 3; :2");
    first.check(&format!("GET {}; DBSIZE", staying[0]), "2; :1");
    // All at once.
    second.check("FLUSHALL", "+OK");
    second.check(&format!("SET {} before", moving[0]), "+OK");
    cluster.begin_move(2, 1, 0, (0, 99), "");
    cluster.wait_state(2, 1, "following");
    second.check("FLUSHALL", "+OK");
    second.check(&format!("SET {} after", moving[1]), "+OK");
    // The target's own FLUSHALL spares what is on its way.
    first.check("FLUSHALL; DBSIZE", "+OK; :0");
    assert_eq!(cluster.freeze(2, 2000).text(), "OK");
    cluster.commit(2, true);
    cluster.forget(2);
    first.check(&format!("GET {}; DBSIZE", moving[1]), "after; :1");
}

#[test]
fn who_waits_is_sent_along() {
    let mut cluster = Cluster::start(2, PLAIN);
    let mut first = cluster.client(0);
    let keys = keys_in(&mut first, 2, (0, 99));
    let (a, b) = (&keys[0], &keys[1]);
    let slot = slot_of(&mut first, a);
    let mut blocked = cluster.client(0);
    blocked.send(&["BLPOP", a.as_str(), "0"]).unwrap();
    let mut watching = cluster.client(0);
    watching.check(&format!("SET {b} 1; WATCH {b}; MULTI; GET {b}"), "+OK; +OK; +OK; +QUEUED");
    let mut watching_only = cluster.client(0);
    watching_only.check(&format!("WATCH {b}; MULTI; PING"), "+OK; +OK; +QUEUED");
    cluster.begin_move(1, 0, 1, (0, 99), "");
    cluster.wait_state(1, 0, "following");
    assert_eq!(cluster.freeze(1, 2000).text(), "OK");
    // Held: reads and writes wait, others do not.
    let mut held = cluster.client(0);
    held.send(&["GET", b.as_str()]).unwrap();
    let mut held_script = cluster.client(0);
    held_script.send(&["EVAL", "return redis.call('INCR', KEYS[1])", "1", b.as_str()]).unwrap();
    held.set_timeout(Duration::from_millis(100)).unwrap();
    assert!(held.read().is_err(), "nobody is answered while it is not known whose the slots are");
    held.set_timeout(LIMIT).unwrap();
    first.check("PING", "+PONG");
    cluster.commit(1, true);
    let moved = |slot: u16| format!("MOVED {slot} 127.0.0.1:{}", cluster.port(1));
    let of_b = slot_of(&mut first, b);
    assert_eq!(blocked.read().unwrap().text().trim_start_matches('-'), moved(slot));
    assert_eq!(held.read().unwrap().text().trim_start_matches('-'), moved(of_b));
    assert_eq!(held_script.read().unwrap().text().trim_start_matches('-'), moved(of_b));
    assert_eq!(watching.run("EXEC").text().trim_start_matches('-'), moved(of_b));
    watching_only.check("EXEC", "*nil");
    cluster.forget(1);
    cluster.client(1).check(&format!("GET {b}"), "1");
}

#[test]
fn a_script_waits_for_a_held_slot_that_it_did_not_declare() {
    let mut cluster = Cluster::start(2, PLAIN);
    let mut first = cluster.client(0);
    let key = keys_in(&mut first, 1, (0, 99)).remove(0);
    first.check(&format!("SET {key} 1"), "+OK");
    let quick = format!("return redis.call('INCR', '{key}')");
    let long = format!("local n = 0 for i = 1, 3000000 do n = n + i end {quick}");
    for id in [1, 2] {
        cluster.begin_move(id, 0, 1, (0, 99), "");
        cluster.wait_state(id, 0, "following");
        assert_eq!(cluster.freeze(id, 2000).text(), "OK");
        let mut waiting = [cluster.client(0), cluster.client(0)];
        for (client, script) in waiting.iter_mut().zip([&quick, &long]) {
            client.send(&["EVAL", script.as_str(), "0"]).unwrap();
            client.set_timeout(Duration::from_millis(200)).unwrap();
            assert!(client.read().is_err(), "it is not known whose the slot is");
            client.set_timeout(LIMIT).unwrap();
        }
        if id == 1 {
            cluster.moving.clear();
            cluster.publish();
            let mut counts = waiting.map(|mut client| client.read().unwrap().integer());
            counts.sort_unstable();
            assert_eq!(counts, [Some(2), Some(3)]);
        } else {
            cluster.commit(id, true);
            for client in &mut waiting {
                let refused = client.read().unwrap().text();
                assert!(refused.contains("non local key"), "{refused}");
            }
        }
    }
    cluster.client(1).check(&format!("GET {key}"), "3");
}

#[test]
fn a_move_can_be_paused_cancelled_and_tried_again() {
    let mut cluster = Cluster::start(2, PLAIN);
    let mut first = cluster.client(0);
    for index in 0..2000 {
        first.run(&format!("SET k{index} {}", "v".repeat(2000)));
    }
    let size = first.run("DBSIZE");
    cluster.begin_move(1, 0, 1, (0, 8191), " RATE 1000000");
    first.check("OXIDIS MOVE PAUSE 1", "+OK");
    cluster.wait_state(1, 0, "paused");
    let mut second = cluster.client(1);
    second.check("DBSIZE; KEYS *; SCAN 0 COUNT 100000", ":0; []; [0 []]");
    first.check("OXIDIS MOVE RESUME 1; OXIDIS MOVE RATE 1 0", "+OK; +OK");
    cluster.wait_state(1, 0, "following");
    // Not in time: a script holds a slot.
    let key = keys_in(&mut first, 1, (0, 8191)).remove(0);
    let mut busy = cluster.client(0);
    let script = "local n = 0 for i = 1, 60000000 do n = n + i end return redis.call('SET', KEYS[1], n)";
    busy.send(&["EVAL", script, "1", key.as_str()]).unwrap();
    wait_until("the slot to be held by a script", LIMIT, || {
        let mut probe = cluster.client(0);
        probe.set_timeout(Duration::from_millis(50)).unwrap();
        probe.send(&["GET", key.as_str()]).unwrap();
        if probe.read().is_err() { Ok(()) } else { Err("not held") }
    });
    let frozen = cluster.freeze(1, 30);
    assert!(frozen.is_error(), "{frozen}");
    assert!(!busy.read().unwrap().is_error());
    first.check(&format!("SET {key} again"), "+OK");
    cluster.wait_state(1, 0, "following");
    assert_eq!(cluster.freeze(1, 2000).text(), "OK");
    assert_eq!(cluster.freeze(1, 2000).text(), "OK", "it may be asked again");
    // The manager changes its mind.
    cluster.moving.clear();
    first.check("OXIDIS MOVE CANCEL 1", "+OK");
    second.check("OXIDIS IMPORT ABORT 1", "+OK");
    cluster.publish();
    first.check(&format!("GET {key}"), "again");
    second.check("DBSIZE", ":0");
    assert_eq!(first.run("DBSIZE"), size);
    cluster.move_slots(2, 0, 1, (0, 8191));
    assert_eq!(cluster.client(1).run("DBSIZE"), size);
}

// ---- crashes -----------------------------------------------------------------------------------------------------

fn fill_slots(client: &mut Client, count: usize) -> Vec<String> {
    let keys = keys_in(client, count, (0, 99));
    for key in &keys {
        client.check(&format!("SET {key} {key}"), "+OK");
    }
    keys
}

fn check_all(client: &mut Client, keys: &[String]) {
    for key in keys {
        client.check(&format!("GET {key}"), key);
    }
    client.check("DBSIZE", &format!(":{}", keys.len()));
}

#[test]
fn a_source_that_dies_before_the_cut_over_keeps_its_slots() {
    let mut cluster = Cluster::start(2, AOF);
    let keys = fill_slots(&mut cluster.client(0), 50);
    cluster.begin_move(1, 0, 1, (0, 99), "");
    cluster.wait_state(1, 0, "following");
    cluster.kill(0);
    let mut second = cluster.client(1);
    wait_until("the target to drop what it has", LIMIT, || {
        let text = second.run("INFO keyspace").text();
        if text.contains("db0") { Err(text) } else { Ok(()) }
    });
    cluster.restart(0);
    check_all(&mut cluster.client(0), &keys);
    cluster.begin_move(1, 0, 1, (0, 99), "");
    cluster.wait_state(1, 0, "following");
    assert_eq!(cluster.freeze(1, 2000).text(), "OK");
    cluster.commit(1, true);
    cluster.forget(1);
    check_all(&mut cluster.client(1), &keys);
}

#[test]
fn a_source_that_dies_frozen_does_not_serve_before_the_decision() {
    let mut cluster = Cluster::start(2, AOF);
    let keys = fill_slots(&mut cluster.client(0), 50);
    cluster.begin_move(1, 0, 1, (0, 99), "");
    cluster.wait_state(1, 0, "following");
    assert_eq!(cluster.freeze(1, 2000).text(), "OK");
    cluster.wait_known();
    cluster.kill(0);
    cluster.restart(0);
    let mut held = cluster.client(0);
    held.set_timeout(Duration::from_millis(200)).unwrap();
    held.send(&["GET", keys[0].as_str()]).unwrap();
    assert!(held.read().is_err(), "another incarnation has promised to hold the slot");
    held.set_timeout(LIMIT).unwrap();
    // Only the views tell.
    cluster.commit(1, false);
    let moved = held.read().unwrap().text();
    assert!(moved.contains("MOVED"), "{moved}");
    cluster.wait_known();
    check_all(&mut cluster.client(1), &keys);
    cluster.client(0).check("OXIDIS MOVE FINISH 1 1 1; DBSIZE", "+OK; :0");
    cluster.forget(1);
    let mut first = cluster.client(0);
    wait_until("the source to be empty", LIMIT, || {
        let text = first.run("INFO keyspace").text();
        if text.contains("db0") { Err(text) } else { Ok(()) }
    });
}

#[test]
fn a_source_that_dies_frozen_serves_again_if_the_move_is_given_up() {
    let mut cluster = Cluster::start(2, AOF);
    let keys = fill_slots(&mut cluster.client(0), 50);
    cluster.begin_move(1, 0, 1, (0, 99), "");
    cluster.wait_state(1, 0, "following");
    assert_eq!(cluster.freeze(1, 2000).text(), "OK");
    cluster.kill(0);
    cluster.restart(0);
    cluster.moving.clear();
    cluster.client(1).check("OXIDIS IMPORT ABORT 1", "+OK");
    cluster.publish();
    check_all(&mut cluster.client(0), &keys);
    cluster.client(1).check("DBSIZE", ":0");
}

#[test]
fn a_target_that_dies_begins_anew() {
    let mut cluster = Cluster::start(2, AOF);
    let keys = fill_slots(&mut cluster.client(0), 50);
    cluster.begin_move(1, 0, 1, (0, 99), "");
    cluster.wait_state(1, 0, "following");
    cluster.kill(1);
    cluster.client(0).check(&format!("SET {} {}", keys[0], keys[0]), "+OK");
    cluster.wait_state(1, 0, "failed");
    cluster.restart(1);
    cluster.client(1).check("DBSIZE", ":0");
    cluster.begin_move(1, 0, 1, (0, 99), "");
    cluster.wait_state(1, 0, "following");
    assert_eq!(cluster.freeze(1, 2000).text(), "OK");
    cluster.commit(1, true);
    cluster.forget(1);
    check_all(&mut cluster.client(1), &keys);
    // It is all in its log.
    cluster.kill(1);
    cluster.restart(1);
    check_all(&mut cluster.client(1), &keys);
    cluster.kill(0);
    cluster.restart(0);
    cluster.client(0).check("DBSIZE", ":0");
}

#[test]
fn a_target_that_dies_after_the_commit_has_all() {
    let mut cluster = Cluster::start(2, AOF);
    let keys = fill_slots(&mut cluster.client(0), 50);
    cluster.begin_move(1, 0, 1, (0, 99), "");
    cluster.wait_state(1, 0, "following");
    assert_eq!(cluster.freeze(1, 2000).text(), "OK");
    cluster.kill(1);
    cluster.commit(1, false);
    cluster.restart(1);
    check_all(&mut cluster.client(1), &keys);
    cluster.client(1).check("OXIDIS IMPORT COMMIT 1 1 1", "+OK");
    check_all(&mut cluster.client(1), &keys);
}

// ---- authority ---------------------------------------------------------------------------------------------------

#[test]
fn a_primary_that_could_have_been_replaced_needs_its_lease() {
    let manager = cluster::Manager::start();
    manager.set_lease_ms(300);
    let (primary, replica) = (Server::oxidis(PLAIN), Server::oxidis(PLAIN));
    replica.client().check(&format!("REPLICAOF 127.0.0.1 {}", primary.port()), "+OK");
    let (mut first, mut second) = (primary.client(), replica.client());
    let view = format!(
        "{{\"cluster\":\"test\",\"term\":1,\"epoch\":1,\"lease_ms\":300,\"groups\":[{{\"id\":1,\"epoch\":1,\"servers\":[{{\"id\":\"p\",\"address\":\"127.0.0.1:{}\",\"role\":\"primary\"}},{{\"id\":\"r\",\"address\":\"127.0.0.1:{}\",\"role\":\"replica\"}}],\"slots\":[[0,16383]]}}],\"moves\":[],\"proxies\":[]}}",
        primary.port(),
        replica.port()
    );
    manager.set_view(1, view);
    first.check(&format!("OXIDIS JOIN p {}", manager.url()), "+OK");
    second.check(&format!("OXIDIS JOIN r {}", manager.url()), "+OK");
    let is_served = |client: &mut Client, command: &str| {
        let reply = client.run(command);
        if reply.is_error() { Err(reply.to_string()) } else { Ok(()) }
    };
    wait_until("writes to be taken", LIMIT, || is_served(&mut first, "SET a 1"));
    // The replica sends who has not asked for its data to the primary.
    wait_until("the view to be known", LIMIT, || {
        let text = second.run("GET a").text();
        let wanted = format!("MOVED 15495 127.0.0.1:{}", primary.port());
        if text.trim_start_matches('-') == wanted { Ok(()) } else { Err(text) }
    });
    second.check("READONLY", "+OK");
    wait_until("the replica to follow", LIMIT, || match second.run("GET a").text() {
        text if text == "1" => Ok(()),
        other => Err(other),
    });
    assert!(second.run("SET a 2").text().contains("MOVED"));
    second.check("DBSIZE; READWRITE", ":1; +OK");
    assert!(second.run("GET a").text().contains("MOVED"));
    manager.set_silent(true);
    wait_until("writes to be refused", LIMIT, || match first.run("SET a 2").text() {
        text if text.contains("CLUSTERDOWN The cluster is down") => Ok(()),
        other => Err(other),
    });
    assert!(first.run("GET a").text().contains("CLUSTERDOWN"));
    first.check("CONFIG SET cluster-allow-reads-when-down yes; GET a", "+OK; 2");
    manager.set_silent(false);
    wait_until("writes to be taken again", LIMIT, || is_served(&mut first, "SET a 2"));
}
