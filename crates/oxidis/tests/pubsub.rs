//! Messages between clients on different workers, and keyspace notifications.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::time::Duration;

use testkit::{Client, Server, wait_until};

fn wait_subscribers(server: &Server, channel: &str, count: usize) {
    let mut client = server.client();
    wait_until("subscribers", Duration::from_secs(10), || {
        let reply = client.run(&format!("PUBSUB NUMSUB {channel}")).to_string();
        if reply == format!("[{channel} :{count}]") { Ok(()) } else { Err(reply) }
    });
}

#[test]
fn every_subscriber_gets_every_message_in_order() {
    let server = Server::oxidis(&["--io-threads", "4"]);
    let mut subscribers: Vec<Client> = (0..32).map(|_| server.client()).collect();
    for (index, client) in subscribers.iter_mut().enumerate() {
        if index % 4 == 3 {
            client.hello(3);
        }
        client.send(&["SUBSCRIBE", "c"]).unwrap();
        assert!(client.read().unwrap().to_string().ends_with("[subscribe c :1]"));
    }
    wait_subscribers(&server, "c", 32);
    let mut publishers: Vec<Client> = (0..4).map(|_| server.client()).collect();
    for number in 0..500 {
        let publisher = &mut publishers[number % 4];
        assert_eq!(publisher.run(&format!("PUBLISH c {number}")).integer(), Some(32));
    }
    for client in &mut subscribers {
        for number in 0..500 {
            assert_eq!(client.read().unwrap().items().unwrap()[2].text(), number.to_string());
        }
    }
    drop(subscribers);
    wait_subscribers(&server, "c", 0);
}

#[test]
fn patterns_shards_and_leaving() {
    let server = Server::oxidis(&["--io-threads", "4"]);
    let mut client = server.client();
    client.check("PSUBSCRIBE h?llo h[ae]llo *", "[psubscribe \"h?llo\" :1]");
    assert_eq!(client.read().unwrap().to_string(), "[psubscribe \"h[ae]llo\" :2]");
    assert_eq!(client.read().unwrap().to_string(), "[psubscribe \"*\" :3]");
    client.check(
        "SSUBSCRIBE shard; PING; PING hi; GET a",
        "[ssubscribe shard :1]; [pong \"\"]; [pong hi]; -ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context",
    );
    let mut publisher = server.client();
    publisher.check(
        "PUBLISH hello m; SPUBLISH shard s; PUBLISH x y; PUBSUB NUMPAT; PUBSUB CHANNELS; PUBSUB SHARDCHANNELS",
        ":3; :1; :1; :3; []; [shard]",
    );
    let mut patterns: Vec<String> = (0..3).map(|_| client.read().unwrap().to_string()).collect();
    patterns.sort();
    assert_eq!(
        patterns,
        ["[pmessage \"*\" hello m]", "[pmessage \"h?llo\" hello m]", "[pmessage \"h[ae]llo\" hello m]"]
    );
    assert_eq!(client.read().unwrap().to_string(), "[smessage shard s]");
    assert_eq!(client.read().unwrap().to_string(), "[pmessage \"*\" x y]");
    client.check("PUNSUBSCRIBE h?llo", "[punsubscribe \"h?llo\" :2]");
    client.check("RESET; GET a; UNSUBSCRIBE", "+RESET; nil; [unsubscribe nil :0]");
    publisher.check("PUBSUB NUMPAT; PUBSUB SHARDNUMSUB shard", ":0; [shard :0]");
}

#[test]
fn resp3_subscribers_go_on_with_commands() {
    let server = Server::oxidis(&["--io-threads", "4"]);
    let mut client = server.client();
    client.hello(3);
    client.check("SUBSCRIBE c; SET a 1; GET a", ">[subscribe c :1]; +OK; 1");
    client.send(&["PUBLISH", "c", "to-myself"]).unwrap();
    assert_eq!(client.read().unwrap().to_string(), ":1");
    assert_eq!(client.read().unwrap().to_string(), ">[message c to-myself]");
    client.check("MULTI; PUBLISH c in-multi; GET a", "+OK; +QUEUED; +QUEUED");
    client.send(&["EXEC"]).unwrap();
    assert_eq!(client.read().unwrap().to_string(), "[:1 1]");
    assert_eq!(client.read().unwrap().to_string(), ">[message c in-multi]");
}

#[test]
fn changes_of_keys_are_told() {
    let server = Server::oxidis(&["--io-threads", "4", "--notify-keyspace-events", "KEA"]);
    let mut listener = server.client();
    listener.check("PSUBSCRIBE __key*__:*", "[psubscribe \"__key*__:*\" :1]");
    let mut client = server.client();
    let mut told = |command: &str, events: &[(&str, &str)]| {
        client.run(command);
        for (event, key) in events {
            for expected in [format!("__keyspace@0__:{key} {event}"), format!("__keyevent@0__:{event} {key}")] {
                let got = listener.read().unwrap();
                let got: Vec<String> = got.items().unwrap()[2..].iter().map(testkit::Reply::text).collect();
                assert_eq!(got.join(" "), expected, "after {command}");
            }
        }
    };
    told("SET a 1", &[("set", "a")]);
    told("GET a", &[]);
    told("INCR a", &[("incrby", "a")]);
    told("EXPIRE a 100", &[("expire", "a")]);
    told("RENAME a b", &[("rename_from", "a"), ("rename_to", "b")]);
    told("RPUSH l x y", &[("rpush", "l")]);
    told("LMOVE l m LEFT RIGHT", &[("rpush", "m"), ("lpop", "l")]);
    told("LPOP l", &[("lpop", "l"), ("del", "l")]);
    told("MSET p 1 q 2", &[("set", "p"), ("set", "q")]);
    told("SADD s x", &[("sadd", "s")]);
    told("SPOP s", &[("spop", "s"), ("del", "s")]);
    told("ZADD z 1 m", &[("zadd", "z")]);
    told("HSET h f v", &[("hset", "h")]);
    told("DEL z h nothing", &[("del", "z"), ("del", "h")]);
    told("SET short x PX 30", &[("set", "short"), ("expire", "short"), ("expired", "short")]);
    client.check("CONFIG SET notify-keyspace-events \"\"", "+OK");
    client.run("SET a 2");
    assert!(listener.read_to_end(Duration::from_millis(100)).0.is_empty());
}
