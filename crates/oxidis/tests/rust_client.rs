//! The `redis` crate as a client that nobody here wrote.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::thread;
use std::time::Duration;

use redis::{Client, Commands, Connection, Direction, RedisResult, Value, pipe};
use testkit::Server;

fn server() -> Server {
    Server::oxidis(&["--io-threads", "4"])
}

fn connect(server: &Server, options: &str) -> Connection {
    let client = Client::open(format!("redis://127.0.0.1:{}/{options}", server.port())).unwrap();
    let connection = client.get_connection().unwrap();
    connection.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    connection
}

fn values(connection: &mut Connection) -> RedisResult<()> {
    let _: () = connection.set("text", "value")?;
    assert_eq!(connection.get::<_, String>("text")?, "value");
    assert_eq!(connection.get::<_, Option<String>>("none")?, None);
    let binary = vec![0_u8, 255, 13, 10, 36];
    let _: () = connection.set("binary", &binary)?;
    assert_eq!(connection.get::<_, Vec<u8>>("binary")?, binary);
    assert_eq!(connection.incr::<_, _, i64>("number", 41)?, 41);
    let _: () = connection.set_ex("brief", 1, 100)?;
    assert!((99..=100).contains(&connection.ttl::<_, i64>("brief")?));
    let _: () = connection.hset_multiple("hash", &[("a", 1), ("b", 2)])?;
    let map: std::collections::BTreeMap<String, i64> = connection.hgetall("hash")?;
    assert_eq!(map.into_iter().collect::<Vec<_>>(), [("a".to_owned(), 1), ("b".to_owned(), 2)]);
    let _: () = connection.sadd("set", &["x", "y", "x"])?;
    let set: std::collections::BTreeSet<String> = connection.smembers("set")?;
    assert_eq!(set.len(), 2);
    let _: () = connection.zadd_multiple("zset", &[(1.5, "low"), (2.25, "high")])?;
    let ranked: Vec<(String, f64)> = connection.zrange_withscores("zset", 0, -1)?;
    assert_eq!(ranked, [("low".to_owned(), 1.5), ("high".to_owned(), 2.25)]);
    assert_eq!(connection.zscore::<_, _, Option<f64>>("zset", "none")?, None);
    let _: () = connection.rpush("list", &[1, 2, 3])?;
    assert_eq!(connection.lrange::<_, Vec<i64>>("list", 0, -1)?, [1, 2, 3]);
    assert_eq!(connection.lmove::<_, _, i64>("list", "other", Direction::Left, Direction::Right)?, 1);
    let mut keys: Vec<String> = connection.scan_match::<_, String>("*e*")?.collect::<RedisResult<_>>()?;
    keys.sort();
    assert_eq!(keys, ["brief", "number", "other", "set", "text", "zset"]);
    let error = connection.incr::<_, _, i64>("text", 1).unwrap_err();
    assert!(error.to_string().contains("not an integer"), "{error}");
    let wrong = connection.lpush::<_, _, i64>("text", 1).unwrap_err();
    assert_eq!(wrong.code(), Some("WRONGTYPE"));
    Ok(())
}

#[test]
fn values_of_all_types_in_both_protocols() {
    let server = server();
    values(&mut connect(&server, "")).unwrap();
    server.client().run("FLUSHALL");
    values(&mut connect(&server, "?protocol=resp3")).unwrap();
    values(&mut connect(&server, "5")).unwrap();
}

#[test]
fn pipelines_and_transactions() {
    let server = server();
    let mut connection = connect(&server, "?protocol=resp3");
    let mut pipeline = pipe();
    for index in 0..2_000 {
        pipeline.set(format!("key:{index}"), index).ignore();
        pipeline.incr(format!("key:{index}"), 1);
    }
    let numbers: Vec<i64> = pipeline.query(&mut connection).unwrap();
    assert_eq!(numbers, (1..=2_000).collect::<Vec<_>>());
    let (sum, list): (i64, Vec<String>) =
        pipe().atomic().incr("sum", 5).rpush("l", "x").ignore().lrange("l", 0, -1).query(&mut connection).unwrap();
    assert_eq!((sum, list), (5, vec!["x".to_owned()]));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut connection = connect(&server, "");
                for _ in 0..50 {
                    let _: (i64,) = redis::transaction(&mut connection, &["watched"], |connection, pipe| {
                        let value: i64 = connection.get("watched").unwrap_or(0);
                        pipe.set("watched", value + 1).ignore().get("watched").query(connection)
                    })
                    .unwrap();
                }
            });
        }
    });
    assert_eq!(connection.get::<_, i64>("watched").unwrap(), 400);
}

#[test]
fn messages_and_blocking_pops() {
    let server = server();
    let mut connection = connect(&server, "");
    thread::scope(|scope| {
        let mut subscriber = connect(&server, "");
        let mut pubsub = subscriber.as_pubsub();
        pubsub.subscribe("news").unwrap();
        pubsub.psubscribe("ne?s").unwrap();
        assert_eq!(connection.publish::<_, _, i64>("news", "first").unwrap(), 2);
        let mut got: Vec<(String, bool)> = (0..2)
            .map(|_| pubsub.get_message().unwrap())
            .map(|message| (message.get_payload().unwrap(), message.from_pattern()))
            .collect();
        got.sort();
        assert_eq!(got, [("first".to_owned(), false), ("first".to_owned(), true)]);

        let waiting = scope.spawn(|| {
            let mut connection = connect(&server, "?protocol=resp3");
            connection.blpop::<_, (String, String)>(&["q1", "q2"], 10.0).unwrap()
        });
        testkit::wait_until("a blocked client", Duration::from_secs(10), || {
            let blocked = server.client().info("blocked_clients").unwrap_or_default();
            if blocked == "1" { Ok(()) } else { Err(blocked) }
        });
        let _: i64 = connection.rpush("q2", "served").unwrap();
        assert_eq!(waiting.join().unwrap(), ("q2".to_owned(), "served".to_owned()));
    });
    let nothing: Option<(String, String)> = connection.brpop("q1", 0.05).unwrap();
    assert_eq!(nothing, None);
    let reply: Value = redis::cmd("BZPOPMIN").arg("z").arg(0.05).query(&mut connection).unwrap();
    assert_eq!(reply, Value::Nil);
}

#[test]
fn passwords_and_names() {
    let server = Server::oxidis(&["--requirepass", "secret"]);
    let url = |credentials: &str| format!("redis://{credentials}127.0.0.1:{}/", server.port());
    let open = |credentials: &str| Client::open(url(credentials)).unwrap().get_connection();
    let mut right = open(":secret@").unwrap();
    let _: () = right.set("a", 1).unwrap();
    let mut named = open("default:secret@").unwrap();
    assert_eq!(named.get::<_, i64>("a").unwrap(), 1);
    assert!(open(":wrong@").is_err());
    let refused = open("").and_then(|mut connection| connection.get::<_, i64>("a")).unwrap_err();
    assert!(refused.to_string().contains("Authentication"), "{refused}");
}
