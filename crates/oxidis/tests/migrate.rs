//! MIGRATE between our own servers and Debian's.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::net::TcpListener;
use std::time::{Duration, Instant};

use testkit::{Client, Launch, Server};

fn ours(args: &[&str]) -> Server {
    let all = [&["--io-threads", "2", "--enable-debug-command", "yes"], args].concat();
    Server::oxidis(&all)
}

fn fill(client: &mut Client) {
    for command in [
        "SET text value",
        "SET number 42 EX 1000",
        "RPUSH list a b c",
        "HSET hash f v g w",
        "SADD set 1 2 3",
        "ZADD zset 1.5 a 2.5 b",
        "XADD stream 1-1 f v",
        "SETRANGE big 300000 x",
    ] {
        assert!(!client.run(command).is_error(), "{command}");
    }
}

const KEYS: &str = "text number list hash set zset stream big";

fn moves_all(from: &Server, to: &Server) {
    let (mut source, mut target) = (from.client(), to.client());
    fill(&mut source);
    let port = to.port();
    source.check(&format!("MIGRATE 127.0.0.1 {port} \"\" 0 5000 COPY KEYS {KEYS}"), "+OK");
    source.check(&format!("EXISTS {KEYS}"), ":8");
    target.check(&format!("EXISTS {KEYS}"), ":8");
    // They are there already.
    source.check(
        &format!("MIGRATE 127.0.0.1 {port} text 0 5000"),
        "-ERR Target instance replied with error: BUSYKEY Target key name already exists.",
    );
    source.check("EXISTS text", ":1");
    source.check(&format!("MIGRATE 127.0.0.1 {port} \"\" 0 5000 REPLACE KEYS {KEYS} nosuch"), "+OK");
    source.check(&format!("EXISTS {KEYS}"), ":0");
    target.check("GET text", "value");
    target.check("LRANGE list 0 -1", "[a b c]");
    target.check("XRANGE stream - +", "[[1-1 [f v]]]");
    target.check("STRLEN big", ":300001");
    let ttl = target.run("TTL number").integer().unwrap();
    assert!((990..=1000).contains(&ttl), "{ttl}");
    // Another database; some keys are there already and stay here.
    source.check("MSET a 1 b 2", "+OK");
    target.check("SELECT 3; SET a 0", "+OK; +OK");
    source.check(
        &format!("MIGRATE 127.0.0.1 {port} \"\" 3 5000 KEYS a b"),
        "-ERR Target instance replied with error: BUSYKEY Target key name already exists.",
    );
    source.check("EXISTS a; EXISTS b", ":1; :0");
    target.check("MGET a b", "[0 2]");
    assert_eq!(source.info("migrate_cached_sockets").as_deref(), Some("1"));
}

#[test]
fn all_types_between_our_own() {
    moves_all(&ours(&[]), &ours(&[]));
}

#[test]
fn from_and_to_redis() {
    // Redis 7.0 reads no value that 7.2 packs in a newer way, so some types go one way only.
    let (mine, other) = (ours(&["--set-max-listpack-entries", "0"]), Server::redis(&[]));
    moves_all(&other, &mine);
    let (mut source, mut target) = (mine.client(), other.client());
    source.check("FLUSHALL; SET text value; RPUSH list a b c; HSET hash f v; ZADD zset 1 a", "+OK; +OK; :3; :1; :1");
    let reply = source.run(&format!("MIGRATE 127.0.0.1 {} \"\" 0 5000 REPLACE KEYS text list hash zset", other.port()));
    if reply.is_error() {
        // The version in the payload's footer is newer than what 7.0 takes.
        assert_eq!(
            reply.text(),
            "ERR Target instance replied with error: ERR DUMP payload version or checksum are wrong"
        );
        source.check("EXISTS text list hash zset", ":4");
    } else {
        target.check("LRANGE list 0 -1", "[a b c]");
    }
}

#[test]
fn passwords_and_users() {
    let target = ours(&["--requirepass", "secret"]);
    target.client().check("AUTH secret; ACL SETUSER mover on >moved ~* +@all", "+OK; +OK");
    let source = ours(&[]);
    let mut client = source.client();
    let port = target.port();
    client.check("MSET a 1 b 2 c 3", "+OK");
    let refused = "-ERR Target instance replied with error: ";
    client.check(&format!("MIGRATE 127.0.0.1 {port} a 0 5000"), &format!("{refused}NOAUTH Authentication required."));
    client.check(
        &format!("MIGRATE 127.0.0.1 {port} a 0 5000 AUTH wrong"),
        &format!("{refused}WRONGPASS invalid username-password pair or user is disabled."),
    );
    client.check("EXISTS a", ":1");
    client.check(&format!("MIGRATE 127.0.0.1 {port} a 0 5000 AUTH secret"), "+OK");
    client.check(&format!("MIGRATE 127.0.0.1 {port} b 0 5000 COPY AUTH2 mover moved"), "+OK");
    client.check("EXISTS a b", ":1");
}

#[test]
fn what_goes_wrong() {
    let both = [ours(&[]), Server::redis(&[])];
    let closed = testkit::server::free_port().unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent_port = silent.local_addr().unwrap().port();
    let commands = [
        format!("MIGRATE 127.0.0.1 {closed} nosuch 0 100"),
        format!("MIGRATE 127.0.0.1 {closed} key 0 100"),
        format!("MIGRATE 127.0.0.1 {silent_port} key 0 100"),
        format!("MIGRATE 127.0.0.1 {closed} key abc 100"),
        format!("MIGRATE 127.0.0.1 {closed} key 0 abc"),
        format!("MIGRATE 127.0.0.1 {closed} key 0 100 KEYS a"),
        format!("MIGRATE 127.0.0.1 {closed} key 0 100 AUTH"),
        format!("MIGRATE 127.0.0.1 {closed} key 0 100 AUTH2 a"),
        format!("MIGRATE 127.0.0.1 {closed} key 0 100 XYZ"),
        format!("MIGRATE 127.0.0.1 {closed} \"\" 0 100 KEYS nosuch other"),
        String::from("MIGRATE 127.0.0.1 1"),
    ];
    for command in commands {
        let replies = both.each_ref().map(|server| {
            let mut client = server.client();
            client.check("SET key value", "+OK");
            let reply = client.run(&command).to_string();
            client.check("GET key", "value");
            reply
        });
        assert_eq!(replies[0], replies[1], "{command}");
    }
}

#[test]
fn a_silent_target_holds_only_the_keys_slots() {
    let server = ours(&["--io-threads", "1"]);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let (mut mover, mut other) = (server.client(), server.client());
    other.check("MSET key 1 elsewhere 2", "+OK");
    let started = Instant::now();
    mover.send(&["MIGRATE", "127.0.0.1", &port.to_string(), "key", "0", "1500"]).unwrap();
    let (_target, _) = silent.accept().unwrap();
    for _ in 0..100 {
        other.check("GET elsewhere", "2");
    }
    assert!(started.elapsed() < Duration::from_millis(1400), "others waited {:?}", started.elapsed());
    // The key itself is on its way.
    other.check("GET key", "1");
    assert!(started.elapsed() >= Duration::from_millis(1400), "{:?}", started.elapsed());
    assert_eq!(mover.read().unwrap().text(), "IOERR error or timeout reading to target instance");
}

#[test]
fn in_transactions_and_scripts_and_in_the_log() {
    let target = ours(&[]);
    let directory = tempfile::tempdir().unwrap();
    let launch = Launch::oxidis().directory(directory.path()).args(&["--appendonly", "yes", "--io-threads", "2"]);
    let mut server = launch.start();
    let mut client = server.client();
    let port = target.port();
    client.check("MSET a 1 b 2 c 3 d 4", "+OK");
    client.check("MULTI", "+OK");
    client.check(&format!("MIGRATE 127.0.0.1 {port} a 0 5000; GET a; SET a new"), "+QUEUED; +QUEUED; +QUEUED");
    client.check("EXEC", "[+OK nil +OK]");
    client.check("MULTI; PUBLISH x y", "+OK; +QUEUED");
    client.check(&format!("MIGRATE 127.0.0.1 {port} b 0 5000"), "+QUEUED");
    client.check("EXEC", "[:0 +OK]");
    let script = "return redis.call('migrate', '127.0.0.1', ARGV[1], KEYS[1], 0, 5000)";
    assert_eq!(client.call(&["EVAL", script, "1", "c", &port.to_string()]).unwrap().text(), "OK");
    target.client().check("MGET a b c", "[1 2 3]");
    drop(client);
    server.stop(testkit::process::Signal::Kill).unwrap();
    let server = launch.start();
    server.client().check("MGET a b c d", "[new nil nil 4]");
}
