//! The proxy: transactions, blocking commands, subscriptions and whole-cluster commands of plain clients over three servers.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use testkit::{Client, Launch, Reply, Server, wait_until};

/// Three servers that share the slots, and a proxy before them.
struct Three {
    servers: [Server; 3],
    proxy: Server,
}

impl Three {
    fn start(directives: &[&str]) -> Three {
        let servers = [Server::oxidis(&[]), Server::redis(&[]), Server::oxidis(&[])];
        let [a, b, c] = servers.each_ref().map(Server::port);
        let topology = format!("static 0-5460@127.0.0.1:{a} 5461-10922@127.0.0.1:{b} 10923-16383@127.0.0.1:{c}");
        let proxy = Launch::proxy().args(&["--topology", &topology, "--io-threads", "2"]).args(directives).start();
        Three { servers, proxy }
    }

    fn client(&self) -> Client {
        self.proxy.client()
    }
}

fn read(client: &mut Client) -> String {
    client.read().unwrap().to_string()
}

#[test]
fn transactions_of_one_slot() {
    let three = Three::start(&[]);
    let mut client = three.client();
    client.check(
        "MULTI; SET {t}a 1; INCR {t}a; MGET {t}a {t}b; PING; EXEC",
        "+OK; +QUEUED; +QUEUED; +QUEUED; +QUEUED; [+OK :2 [2 nil] +PONG]",
    );
    client.check("MULTI; EXEC; EXEC; DISCARD", "+OK; []; -ERR EXEC without MULTI; -ERR DISCARD without MULTI");
    client.check(
        "MULTI; MULTI; WATCH a; SET {t}a 9; DISCARD; GET {t}a",
        "+OK; -ERR MULTI calls can not be nested; -ERR WATCH inside MULTI is not allowed; +QUEUED; +OK; 2",
    );
    // A second slot, a command that is not of one server, one that does not exist: EXEC says so.
    let aborted = "-EXECABORT Transaction discarded because of previous errors.";
    client.check(
        "MULTI; SET a 1; SET b 1; EXEC; EXISTS a b",
        &format!("+OK; +QUEUED; -CROSSSLOT Keys in request don't hash to the same slot; {aborted}; :0"),
    );
    client.check("MULTI; FLUSHALL; EXEC", &format!("+OK; -ERR command 'flushall' is not allowed...; {aborted}"));
    client.check("MULTI; NOSUCH x; EXEC", &format!("+OK; -ERR unknown command...; {aborted}"));
    client.check("MULTI; GET; EXEC", &format!("+OK; -ERR wrong number...; {aborted}"));
    // An error at run time is an element, and the rest is done.
    client.check("MULTI; LPUSH {t}a x; SET {t}c 5; EXEC; GET {t}c", "+OK; +QUEUED; +QUEUED; [-WRONGTYPE...; 5");
    // In a pipeline, with what comes behind.
    let replies = client
        .pipeline(&[vec!["MULTI"], vec!["INCR", "n"], vec!["INCR", "n"], vec!["EXEC"], vec!["GET", "n"]])
        .unwrap();
    let texts: Vec<String> = replies.iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["+OK", "+QUEUED", "+QUEUED", "[:1 :2]", "2"]);
}

#[test]
fn watched_keys_and_other_clients() {
    let three = Three::start(&["--io-threads", "1"]);
    let (mut client, mut other) = (three.client(), three.client());
    client.check("SET a 1; WATCH a; MULTI; INCR a; EXEC", "+OK; +OK; +OK; +QUEUED; [:2]");
    client.check("WATCH a; MULTI; INCR a", "+OK; +OK; +QUEUED");
    other.check("SET a 7", "+OK");
    client.check("EXEC; GET a", "*nil; 7");
    // UNWATCH and DISCARD forget.
    client.check("WATCH a; UNWATCH; MULTI; INCR a", "+OK; +OK; +OK; +QUEUED");
    other.check("SET a 8", "+OK");
    client.check("EXEC; WATCH a; MULTI; DISCARD", "[:9]; +OK; +OK; +OK");
    other.check("SET a 10", "+OK");
    client.check("MULTI; GET a; EXEC", "+OK; +QUEUED; [10]");
    client.check("WATCH a; WATCH b", "+OK; -CROSSSLOT Keys in request don't hash to the same slot");
    // Its own writes count too, as they do in Redis.
    client.check("UNWATCH; WATCH a; SET a 11; MULTI; GET a; EXEC", "+OK; +OK; +OK; +OK; +QUEUED; *nil");
    // A server that goes takes what it watched along.
    client.check("WATCH {x}a; MULTI; SET {x}a 1", "+OK; +OK; +QUEUED");
    for server in &three.servers {
        server.client().run("CLIENT KILL TYPE normal");
    }
    wait_until("the proxy to notice", Duration::from_secs(5), || {
        let info = other.run("INFO backends").text();
        if info.matches("private=0").count() == 3 { Ok(()) } else { Err(info) }
    });
    assert_eq!(client.run("EXEC").to_string(), "*nil", "nobody can tell whether it was changed");
    wait_until("lanes", Duration::from_secs(5), || {
        let reply = client.run("SET {x}a 1").to_string();
        if reply == "+OK" { Ok(()) } else { Err(reply) }
    });
}

#[test]
fn blocking_commands_hold_up_nobody() {
    let three = Three::start(&[]);
    let (mut blocked, mut other) = (three.client(), three.client());
    blocked.send(&["BLPOP", "list", "0"]).unwrap();
    wait_until("the client to block", Duration::from_secs(5), || match other.info("blocked_clients") {
        Some(count) if count == "1" => Ok(()),
        count => Err(count),
    });
    other.check("SET list2 1; GET list2; RPUSH list a b", "+OK; 1; :2");
    assert_eq!(read(&mut blocked), "[list a]");
    blocked.check("BRPOP {l}1 {l}2 0.05; BLPOP a b 0; LPOP list", "*nil; -CROSSSLOT...; b");
    // What comes behind in a pipeline waits, and finds its answer.
    blocked.send(&["BLPOP", "q", "0"]).unwrap();
    blocked.send(&["PING"]).unwrap();
    other.check("XADD s 1-1 f v; RPUSH q z", "1-1; :1");
    assert_eq!([read(&mut blocked), read(&mut blocked)], ["[q z]", "+PONG"]);
    blocked.check("XREAD BLOCK 50 STREAMS s 1-1; XREAD STREAMS s 0", "*nil; [[s [[1-1 [f v]]]]]");
    // CLIENT UNBLOCK.
    let id = blocked.run("CLIENT ID").integer().unwrap();
    blocked.send(&["BLPOP", "never", "0"]).unwrap();
    wait_until("the client to be unblocked", Duration::from_secs(5), || {
        let reply = other.run(&format!("CLIENT UNBLOCK {id} ERROR")).to_string();
        if reply == ":1" { Ok(()) } else { Err(reply) }
    });
    assert_eq!(read(&mut blocked), "-UNBLOCKED client unblocked via CLIENT UNBLOCK");
    other.check(&format!("CLIENT UNBLOCK {id}"), ":0");
    // A client that goes does not take an element with it.
    blocked.send(&["BLPOP", "gone", "0"]).unwrap();
    wait_until("the client to block", Duration::from_secs(5), || match other.info("blocked_clients") {
        Some(count) if count == "1" => Ok(()),
        count => Err(count),
    });
    drop(blocked);
    wait_until("the servers to know", Duration::from_secs(5), || {
        let waiting: Vec<_> = three.servers.iter().map(|server| server.client().info("blocked_clients")).collect();
        if waiting.iter().all(|count| count.as_deref() == Some("0")) { Ok(()) } else { Err(waiting) }
    });
    other.check("RPUSH gone x; LLEN gone", ":1; :1");
}

#[test]
fn subscriptions_of_many_clients() {
    let three = Three::start(&[]);
    let mut subscribers: Vec<Client> = (0..6).map(|_| three.client()).collect();
    for (index, client) in subscribers.iter_mut().enumerate() {
        if index % 2 == 1 {
            client.hello(3);
        }
        client.send(&["SUBSCRIBE", "news", "weather"]).unwrap();
        assert!(read(client).ends_with("[subscribe news :1]"));
        assert!(read(client).ends_with("[subscribe weather :2]"));
    }
    let mut pattern = three.client();
    pattern.check("PSUBSCRIBE n*; PING; GET a", "[psubscribe \"n*\" :1]; [pong \"\"]; -ERR Can't execute 'get'...");
    let mut publisher = three.client();
    publisher.check("PUBLISH news 1; PUBLISH weather w; PUBLISH nobody x", ":7; :6; :1");
    publisher.check("PUBSUB NUMSUB news other; PUBSUB NUMPAT; PUBSUB CHANNELS w*", "[news :6 other :0]; :1; [weather]");
    for client in &mut subscribers {
        let got = [read(client), read(client)];
        assert!(got[0].ends_with("[message news 1]") && got[1].ends_with("[message weather w]"), "{got:?}");
    }
    assert_eq!([read(&mut pattern), read(&mut pattern)], ["[pmessage \"n*\" news 1]", "[pmessage \"n*\" nobody x]"]);
    // A script publishes on the server where it runs, wherever its keys are.
    for key in ["a", "b", "c"] {
        publisher.run(&format!("EVAL \"return redis.call('publish', 'news', KEYS[1])\" 1 {key}"));
        for client in &mut subscribers {
            assert!(read(client).ends_with(&format!("[message news {key}]")));
        }
        assert_eq!(read(&mut pattern), format!("[pmessage \"n*\" news {key}]"));
    }
    // RESP3 clients go on with other commands.
    subscribers[1].check("SET k v; GET k", "+OK; v");
    // Shard channels.
    let mut shard = three.client();
    shard.check("SSUBSCRIBE {s}1; SSUBSCRIBE {s}2", "[ssubscribe \"{s}1\" :1]; [ssubscribe \"{s}2\" :2]");
    publisher.check("SPUBLISH {s}2 hello", ":1");
    assert_eq!(read(&mut shard), "[smessage \"{s}2\" hello]");
    shard.check("SUNSUBSCRIBE {s}1; SUNSUBSCRIBE", "[sunsubscribe \"{s}1\" :1]; [sunsubscribe \"{s}2\" :0]");
    pattern.check("PUNSUBSCRIBE; GET k", "[punsubscribe \"n*\" :0]; v");
    // The last one takes the proxy's own subscription along.
    drop(subscribers);
    wait_until("the servers to be left alone", Duration::from_secs(5), || {
        let left: Vec<_> =
            three.servers.iter().map(|server| server.client().run("PUBSUB CHANNELS").to_string()).collect();
        if left.iter().all(|channels| channels == "[]") { Ok(()) } else { Err(left) }
    });
}

#[test]
fn a_subscription_survives_its_server() {
    let three = Three::start(&[]);
    let mut client = three.client();
    client.check("SUBSCRIBE news", "[subscribe news :1]");
    for server in &three.servers {
        server.client().run("CLIENT KILL TYPE pubsub");
    }
    let mut publisher = three.client();
    // What is published while the link is down is lost, as it is for a client of the server itself.
    client.set_timeout(Duration::from_millis(50)).unwrap();
    wait_until("the proxy to listen again", Duration::from_secs(10), || {
        publisher.run("PUBLISH news again");
        match client.read() {
            Ok(message) if message.to_string() == "[message news again]" => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
}

fn scan_all(client: &mut Client, options: &str) -> BTreeSet<String> {
    let (mut cursor, mut keys, mut calls) = ("0".to_owned(), BTreeSet::new(), 0);
    loop {
        let reply = client.run(&format!("SCAN {cursor} {options}"));
        let items = reply.items().unwrap_or_else(|| panic!("SCAN answered {reply}"));
        cursor = items[0].text();
        assert!(cursor.parse::<u64>().unwrap() < 1 << 53, "a double holds it");
        keys.extend(items[1].items().unwrap().iter().map(Reply::text));
        calls += 1;
        if cursor == "0" {
            return keys;
        }
        assert!(calls < 100_000);
    }
}

#[test]
fn commands_about_all_keys() {
    let three = Three::start(&[]);
    let mut client = three.client();
    let names: BTreeSet<String> = (0..1000).map(|number| format!("key:{number}")).collect();
    for name in &names {
        client.send(&["SET", name, "v"]).unwrap();
    }
    names.iter().for_each(|_| assert_eq!(read(&mut client), "+OK"));
    client.check("SADD set a; DBSIZE; EXISTS key:1 key:2 key:3 none", ":1; :1001; :3");
    assert_eq!(client.run("KEYS key:*").items().unwrap().len(), 1000);
    let mut with_set = names.clone();
    with_set.insert("set".to_owned());
    assert_eq!(scan_all(&mut client, ""), with_set);
    assert_eq!(
        scan_all(&mut client, "COUNT 500 MATCH key:1*"),
        names.iter().filter(|name| name.starts_with("key:1")).cloned().collect()
    );
    assert_eq!(scan_all(&mut client, "TYPE set"), BTreeSet::from(["set".to_owned()]));
    client.check("SCAN x; SCAN 0 COUNT 0", "-ERR invalid cursor; -ERR syntax error");
    let mut found = BTreeSet::new();
    for _ in 0..60 {
        found.insert(client.run("RANDOMKEY").text());
    }
    assert!(found.len() > 40, "{}", found.len());
    client.check(
        "SELECT 3; DBSIZE; SET only.here 1; RANDOMKEY; DBSIZE; SELECT 0; DBSIZE",
        "+OK; :0; +OK; only.here; :1; +OK; :1001",
    );
    client.check("FLUSHDB; DBSIZE; RANDOMKEY; SELECT 3; DBSIZE; FLUSHALL; DBSIZE", "+OK; :0; nil; +OK; :1; +OK; :0");
    assert_eq!(scan_all(&mut client, ""), BTreeSet::new());
}

#[test]
fn scripts_and_functions_are_everywhere() {
    let three = Three::start(&[]);
    let mut client = three.client();
    let sha = client.run("SCRIPT LOAD \"return KEYS[1]\"").text();
    client.check(&format!("SCRIPT EXISTS {sha} {}", "0".repeat(40)), "[:1 :0]");
    for key in ["a", "b", "c", "d"] {
        client.check(&format!("EVALSHA {sha} 1 {key}"), key);
    }
    client.check("EVAL \"return #KEYS\" 0; EVAL \"return 1\" 2 a b", ":0; -CROSSSLOT...");
    let library = "\"#!lua name=l\\nredis.register_function('f', function(keys) return keys[1] end)\"";
    client.check(&format!("FUNCTION LOAD {library}"), "l");
    for key in ["a", "b", "c", "d"] {
        client.check(&format!("FCALL f 1 {key}"), key);
    }
    client.check(
        &format!("FUNCTION LOAD {library}; FUNCTION DELETE l; FCALL f 1 a"),
        "-ERR Library 'l' already exists; +OK; -ERR Function not found",
    );
    client.check(
        "SCRIPT KILL; FUNCTION KILL",
        "-NOTBUSY No scripts in execution right now.; -NOTBUSY No scripts in execution right now.",
    );
    // One that runs for ever is ended, though the shared connection is behind it.
    let mut runner = three.client();
    runner.send(&["EVAL", "while true do end", "1", "a"]).unwrap();
    let started = Instant::now();
    wait_until("the script to be ended", Duration::from_secs(9), || {
        let reply = client.run("SCRIPT KILL").to_string();
        if reply == "+OK" { Ok(()) } else { Err(reply) }
    });
    assert!(read(&mut runner).contains("killed by user"), "after {:?}", started.elapsed());
}

#[test]
fn the_proxy_tells_of_itself() {
    let three = Three::start(&[]);
    let mut client = three.client();
    client.check("CONFIG SET slowlog-log-slower-than 100000000", "+OK");
    client.check("CLIENT SETNAME me; CLIENT GETNAME; CLIENT NO-EVICT on", "+OK; me; +OK");
    let list = client.run("CLIENT LIST").text();
    assert!(list.contains("name=me ") && list.contains("cmd=client|list user=default"), "{list}");
    let mut victim = three.client();
    let id = victim.run("CLIENT ID").integer().unwrap();
    client.check(&format!("CLIENT KILL ID {id}"), ":1");
    assert!(victim.closes_within(Duration::from_secs(5)));
    client.check(
        "CONFIG GET backend-timeout; CONFIG SET backend-timeout 700; CONFIG GET backend-timeout",
        "[backend-timeout 5000]; +OK; [backend-timeout 700]",
    );
    client.check(
        "SET a 1; ECHO hi; TIME; ROLE; COMMAND COUNT; CLUSTER INFO",
        "+OK; hi; [...; [master :0 []]; :...; -ERR This instance has cluster support disabled",
    );
    let info = client.run("INFO everything").text();
    for part in [
        "oxidis_role:proxy",
        "connected_clients:",
        "backend2:address=127.0.0.1:",
        "cmdstat_set:calls=1",
        "proxy_slots_owned:16384",
    ] {
        assert!(info.contains(part), "{part} is not in\n{info}");
    }
    client.check("SLOWLOG LEN; SLOWLOG GET; LATENCY LATEST", ":0; []; []");
    assert!(client.run("LATENCY HISTOGRAM set").to_string().contains("calls"));
}

#[test]
fn replies_that_are_not_wanted() {
    let three = Three::start(&[]);
    let mut client = three.client();
    client.send(&["CLIENT", "REPLY", "OFF"]).unwrap();
    client.send(&["SET", "a", "1"]).unwrap();
    client.send(&["PING"]).unwrap();
    client.send(&["MGET", "a", "b", "c"]).unwrap();
    client.check("CLIENT REPLY ON; GET a", "+OK; 1");
    client.send(&["CLIENT", "REPLY", "SKIP"]).unwrap();
    client.send(&["SET", "a", "2"]).unwrap();
    client.check("GET a", "2");
}
