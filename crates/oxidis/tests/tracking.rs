//! Client-side caching over sockets, on four workers.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::HashMap;
use std::time::Duration;

use testkit::{Client, Reply, Server, wait_until};

fn server() -> Server {
    Server::oxidis(&["--io-threads", "4", "--enable-debug-command", "yes"])
}

fn resp3(server: &Server) -> Client {
    let mut client = server.client();
    client.hello(3);
    client
}

/// The next reply, which is to be this push.
#[track_caller]
fn pushed(client: &mut Client, text: &str) {
    assert_eq!(client.read().unwrap().to_string(), text);
}

/// Nothing more has come: the next reply is PING's.
#[track_caller]
fn silent(client: &mut Client) {
    client.check("PING", "+PONG");
}

#[test]
fn what_was_read_is_told_once() {
    let server = server();
    let (mut cache, mut writer) = (resp3(&server), server.client());
    cache.check("CLIENT TRACKING on; GET k; MGET l m", "+OK; _; [_ _]");
    writer.check("SET k 1; SET k 2; SET other 1; MSET l 1 m 2", "+OK; +OK; +OK; +OK");
    for key in ["k", "l", "m"] {
        pushed(&mut cache, &format!(">[invalidate [{key}]]"));
    }
    silent(&mut cache);
    // Its own change comes behind the reply, that of a transaction behind the transaction.
    cache.check("GET k; SET k 5", "2; +OK");
    pushed(&mut cache, ">[invalidate [k]]");
    cache.check("MULTI; GET k; SET k 6; INCR k; EXEC", "+OK; +QUEUED; +QUEUED; +QUEUED; [5 +OK :7]");
    pushed(&mut cache, ">[invalidate [k]]");
    cache.check("CLIENT TRACKING off; GET k", "+OK; 7");
    writer.check("SET k 1", "+OK");
    silent(&mut cache);
}

#[test]
fn every_way_a_key_can_go_is_told() {
    let server = server();
    let (mut cache, mut writer) = (resp3(&server), server.client());
    cache.check("CLIENT TRACKING on", "+OK");
    for (prepare, read, change) in [
        ("SET k 1", "GET k", "DEL k"),
        ("SET k 1", "TYPE k", "RENAME k k2"),
        ("SET k 1", "STRLEN k", "APPEND k x"),
        ("RPUSH l 1 2", "LRANGE l 0 -1", "LPOP l"),
        ("RPUSH l 1 2", "SORT_RO l", "LTRIM l 0 0"),
        ("SADD s 1", "SCARD s", "SPOP s"),
        ("HSET h f v", "HGETALL h", "HDEL h f"),
        ("ZADD z 1 a", "ZSCORE z a", "ZADD z 2 a"),
        ("XADD x 1-1 f v", "XREAD STREAMS x 0", "XDEL x 1-1"),
        ("SET k 1", "TTL k", "EXPIRE k 100"),
        ("SET k 1", "EXISTS k", "SETBIT k 1 1"),
        ("SET k 1", "DUMP k", "GETDEL k"),
    ] {
        writer.run("FLUSHALL");
        pushed(&mut cache, ">[invalidate _]");
        assert!(!writer.run(prepare).is_error());
        assert!(!cache.run(read).is_error(), "{read}");
        assert!(!writer.run(change).is_error(), "{change}");
        let key = read.split(' ').find(|word| word.len() == 1).unwrap();
        assert_eq!(cache.read().unwrap().to_string(), format!(">[invalidate [{key}]]"), "{change}");
        silent(&mut cache);
    }
    // By its time, found by a reader or by the server itself.
    writer.check("SET k 1 PX 30", "+OK");
    cache.check("GET k", "1");
    pushed(&mut cache, ">[invalidate [k]]");
    // With all keys, by another file.
    writer.check("SET k 1", "+OK");
    cache.check("GET k", "1");
    writer.check("DEBUG RELOAD", "+OK");
    pushed(&mut cache, ">[invalidate _]");
    // By eviction.
    writer.check("SET old 1", "+OK");
    cache.check("GET old", "1");
    writer.check("CONFIG SET maxmemory-policy allkeys-lru maxmemory 1", "+OK");
    writer.run("SET new 1");
    pushed(&mut cache, ">[invalidate [old]]");
}

#[test]
fn resp2_clients_are_told_by_another_connection() {
    let server = server();
    let (mut cache, mut listener, mut writer) = (server.client(), server.client(), server.client());
    let id = listener.run("CLIENT ID").integer().unwrap();
    listener.check("SUBSCRIBE __redis__:invalidate", "[subscribe \"__redis__:invalidate\" :1]");
    assert_eq!(cache.run(&format!("CLIENT TRACKING on REDIRECT {id}")).text(), "OK");
    assert_eq!(cache.run("CLIENT GETREDIR").integer(), Some(id));
    cache.check("GET k; GET l", "nil; nil");
    writer.check("SET k 1", "+OK");
    pushed(&mut listener, "[message \"__redis__:invalidate\" [k]]");
    writer.check("FLUSHALL", "+OK");
    pushed(&mut listener, "[message \"__redis__:invalidate\" nil]");
    cache.check("GET k", "nil");
    drop(listener);
    wait_until("the listener's end", Duration::from_secs(5), || match writer.info("connected_clients").as_deref() {
        Some("2") => Ok(()),
        other => Err(format!("{other:?}")),
    });
    writer.check("SET k 1", "+OK");
    wait_until("the broken redirection", Duration::from_secs(5), || {
        let info = cache.run("CLIENT TRACKINGINFO").to_string();
        if info.contains("broken_redirect") { Ok(()) } else { Err(info) }
    });
    assert!(writer.run("CLIENT LIST").text().contains("flags=tR"));
    assert_eq!(
        cache.run("CLIENT TRACKING on REDIRECT 99999").text(),
        "ERR The client ID you want redirect to does not exist"
    );
}

#[test]
fn broadcasting_clients_hear_of_their_prefixes() {
    let server = server();
    let (mut some, mut all, mut writer) = (resp3(&server), resp3(&server), server.client());
    some.check("CLIENT TRACKING on BCAST PREFIX a PREFIX b", "+OK");
    all.check("CLIENT TRACKING on BCAST NOLOOP", "+OK");
    writer.check("SET a1 1", "+OK");
    pushed(&mut some, ">[invalidate [a1]]");
    pushed(&mut all, ">[invalidate [a1]]");
    // What one transaction changes is one message, each key once.
    writer.check(
        "MULTI; SET a2 1; SET c 1; SET a1 1; SET a2 2; EXEC",
        "+OK; +QUEUED; +QUEUED; +QUEUED; +QUEUED; [+OK +OK +OK +OK]",
    );
    pushed(&mut some, ">[invalidate [a1 a2]]");
    pushed(&mut all, ">[invalidate [a1 a2 c]]");
    all.check("SET a3 1; SET z 1", "+OK; +OK");
    pushed(&mut some, ">[invalidate [a3]]");
    silent(&mut all);
    assert_eq!(writer.info("tracking_total_prefixes").as_deref(), Some("3"));
    assert_eq!(writer.info("tracking_clients").as_deref(), Some("2"));
    assert_eq!(
        some.run("CLIENT TRACKING on BCAST PREFIX ab").text(),
        "ERR Prefix 'ab' overlaps with an existing prefix 'a'. Prefixes for a single client must not overlap."
    );
    some.check("CLIENT TRACKING off", "+OK");
    drop(all);
    wait_until("no prefixes", Duration::from_secs(5), || match writer.info("tracking_total_prefixes").as_deref() {
        Some("0") => Ok(()),
        other => Err(format!("{other:?}")),
    });
}

#[test]
fn what_scripts_read_and_change_counts() {
    let server = server();
    let (mut cache, mut all, mut writer) = (resp3(&server), resp3(&server), server.client());
    let get = "EVAL \"return redis.call('get', KEYS[1])\" 1 k";
    let slow_get =
        "EVAL \"local value = redis.call('get', KEYS[1]) for i = 1, 300000 do local x = i * i end return value\" 1 k";
    let set = "EVAL \"return redis.call('set', KEYS[1], ARGV[1])\" 1 k v";
    cache.check("CLIENT TRACKING on", "+OK");
    all.check("CLIENT TRACKING on BCAST", "+OK");
    for read in [get, slow_get] {
        assert!(!cache.run(read).is_error());
        assert_eq!(writer.run(set).text(), "OK");
        pushed(&mut cache, ">[invalidate [k]]");
        pushed(&mut all, ">[invalidate [k]]");
    }
    // Its own script's change comes behind the script's reply.
    cache.check("GET k", "v");
    assert_eq!(cache.run(set).text(), "OK");
    pushed(&mut cache, ">[invalidate [k]]");
}

#[test]
fn optin_and_optout_choose_what_is_remembered() {
    let server = server();
    let (mut cache, mut writer) = (resp3(&server), server.client());
    cache.check("CLIENT TRACKING on OPTIN; GET k; CLIENT CACHING yes; GET l; GET m", "+OK; _; +OK; _; _");
    writer.check("MSET k 1 l 1 m 1", "+OK");
    pushed(&mut cache, ">[invalidate [l]]");
    cache.check("CLIENT CACHING yes; MULTI; GET k; GET l; EXEC", "+OK; +OK; +QUEUED; +QUEUED; [1 1]");
    writer.check("MSET k 1 l 1", "+OK");
    pushed(&mut cache, ">[invalidate [k]]");
    pushed(&mut cache, ">[invalidate [l]]");
    silent(&mut cache);
    cache.check(
        "CLIENT TRACKING off; CLIENT TRACKING on OPTOUT; CLIENT CACHING no; GET k; GET l",
        "+OK; +OK; +OK; 1; 1",
    );
    writer.check("MSET k 1 l 1", "+OK");
    pushed(&mut cache, ">[invalidate [l]]");
    silent(&mut cache);
}

#[test]
fn the_table_has_a_limit() {
    let server = server();
    let (mut cache, mut writer) = (resp3(&server), server.client());
    writer.check("CONFIG SET tracking-table-max-keys 10", "+OK");
    cache.check("CLIENT TRACKING on", "+OK");
    let reads: Vec<Vec<String>> = (0..100).map(|key| vec!["GET".to_owned(), format!("key{key}")]).collect();
    let (mut values, mut told) = (0, 0);
    for read in &reads {
        cache.send(read).unwrap();
    }
    while values < 100 || told < 90 {
        if matches!(cache.read().unwrap(), Reply::Push(_)) { told += 1 } else { values += 1 }
    }
    assert_eq!((values, told), (100, 90));
    assert_eq!(writer.info("tracking_total_keys").as_deref(), Some("10"));
    assert_eq!(writer.info("tracking_total_items").as_deref(), Some("10"));
}

/// A client that keeps what it reads and drops what it is told to drop never holds an old value once all is quiet,
/// however many workers change keys meanwhile.
#[test]
fn caches_never_stay_wrong() {
    const KEYS: usize = 40;
    let server = server();
    let port = server.port();
    let writers: Vec<_> = (0..3_u64)
        .map(|seed| {
            std::thread::spawn(move || {
                let mut client = Client::connect(port).unwrap();
                let mut rng = fastrand::Rng::with_seed(seed);
                for round in 0..3000 {
                    let key = format!("key{}", rng.usize(..KEYS));
                    let value = format!("{seed}-{round}");
                    match rng.u8(..10) {
                        0 => client.call(&["DEL", &key]),
                        1 => client.call(&["SET", &key, &value, "PX", "1"]),
                        2 => client.call(&["APPEND", &key, "x"]),
                        3 if round % 500 == 0 => client.call(&["FLUSHALL"]),
                        _ => client.call(&["SET", &key, &value]),
                    }
                    .unwrap();
                }
            })
        })
        .collect();
    let mut caches: Vec<(Client, HashMap<String, Reply>)> = (0..3).map(|_| (resp3(&server), HashMap::new())).collect();
    for (client, _) in &mut caches {
        client.check("CLIENT TRACKING on", "+OK");
    }
    let mut rng = fastrand::Rng::with_seed(7);
    let read = |client: &mut Client, cache: &mut HashMap<String, Reply>, key: &str| {
        client.send(&["GET", key]).unwrap();
        loop {
            match client.read().unwrap() {
                Reply::Push(push) => match push[1].items() {
                    Some(keys) => keys.iter().for_each(|key| drop(cache.remove(&key.text()))),
                    None => cache.clear(),
                },
                value => {
                    cache.insert(key.to_owned(), value);
                    return;
                }
            }
        }
    };
    while writers.iter().any(|writer| !writer.is_finished()) {
        for (client, cache) in &mut caches {
            read(client, cache, &format!("key{}", rng.usize(..KEYS)));
        }
    }
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    // What expires now is told within a cron's turn; then a last read takes in what is on its way.
    let mut truth = server.client();
    for (client, cache) in &mut caches {
        wait_until("a cache that is right", Duration::from_secs(10), || {
            read(client, cache, "none");
            for (key, value) in cache.iter() {
                let now = truth.call(&["GET", key]).unwrap();
                if now.bytes() != value.bytes() {
                    return Err(format!("{key}: {value}, now {now}"));
                }
            }
            Ok(())
        });
    }
}
