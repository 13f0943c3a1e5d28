//! Fields of hashes that end: in files, at replicas, by themselves.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::Duration;

use testkit::process::Signal;
use testkit::{Client, Launch, Server, replicas, wait_until};

fn holds(what: &str, mut is_so: impl FnMut() -> bool) {
    wait_until(what, Duration::from_secs(10), || if is_so() { Ok(()) } else { Err("not yet") });
}

const FAR: u64 = 40_000_000_000_000;

fn fill(client: &mut Client) {
    client.check("HSET hash a 1 b 2 c 3 d 4", ":4");
    client.check(&format!("HPEXPIREAT hash {FAR} FIELDS 2 a b"), "[:1 :1]");
    client.check("HPERSIST hash FIELDS 1 b", "[:1]");
    client.check(&format!("HSETEX other PXAT {FAR} FIELDS 1 f v"), ":1");
    client.check("HINCRBYFLOAT other f2 1.5; HEXPIRE other 0 FIELDS 1 f2", "1.5; [:2]");
    for number in 0..600 {
        client.run(&format!("HSETEX big PXAT {} FIELDS 1 field:{number} {number}", FAR + number));
    }
}

fn is_there(client: &mut Client) {
    client.check("HPEXPIRETIME hash FIELDS 4 a b c d", &format!("[:{FAR} :-1 :-1 :-1]"));
    client.check("HPEXPIRETIME other FIELDS 2 f f2", &format!("[:{FAR} :-2]"));
    client.check("HLEN big; HGET big field:599", ":600; 599");
    client.check("HPEXPIRETIME big FIELDS 1 field:599", &format!("[:{}]", FAR + 599));
}

#[test]
fn they_are_in_both_kinds_of_file() {
    for arguments in [&["--appendonly", "yes", "--save", ""][..], &["--save", "3600 1"][..]] {
        let directory = tempfile::tempdir().unwrap();
        let launch = Launch::oxidis().directory(directory.path()).args(arguments).args(&["--io-threads", "2"]);
        let mut server = launch.start();
        fill(&mut server.client());
        let is_log = arguments[0] == "--appendonly";
        if is_log {
            server.client().check("BGREWRITEAOF", "+Background append only file rewriting started");
            server.client().check("HPEXPIREAT hash 1 FIELDS 1 d; HSET hash d 4", "[:2]; :1");
        }
        server.stop(if is_log { Signal::Kill } else { Signal::Terminate }).unwrap();
        let server = launch.start();
        is_there(&mut server.client());
    }
}

#[test]
fn dumped_and_moved() {
    let (server, other) = (Server::oxidis(&[]), Server::oxidis(&[]));
    let mut client = server.client();
    fill(&mut client);
    for key in ["hash", "big", "other"] {
        let payload = client.call(&["DUMP", key]).unwrap();
        let copied =
            client.call(&[b"RESTORE", b"copy".as_slice(), b"0", payload.bytes().unwrap(), b"REPLACE"]).unwrap();
        assert_eq!(copied.text(), "OK", "{key}");
    }
    client.check("HPEXPIRETIME copy FIELDS 1 f", &format!("[:{FAR}]"));
    client.check(&format!("MIGRATE 127.0.0.1 {} \"\" 0 5000 KEYS hash big other", other.port()), "+OK");
    is_there(&mut other.client());
}

#[test]
fn they_end_by_themselves() {
    let server = Server::oxidis(&["--notify-keyspace-events", "KEA", "--io-threads", "2"]);
    let (mut client, mut listener) = (server.client(), server.client());
    listener.check("PSUBSCRIBE __keyevent@0__:h* __keyevent@0__:del", "[psubscribe \"__keyevent@0__:h*\" :1]");
    listener.read().unwrap();
    client.check("HSET hash a 1 b 2; HPEXPIRE hash 50 FIELDS 1 a; HPEXPIRE hash 100 FIELDS 1 b", ":2; [:1]; [:1]");
    let mut events = Vec::new();
    while events.last().is_none_or(|event| event != "del") {
        let message = listener.read().unwrap();
        let channel = message.items().unwrap()[2].text();
        events.push(channel.rsplit(':').next().unwrap().to_owned());
    }
    // Both fields may end in one visit.
    events.dedup();
    assert_eq!(events, ["hset", "hexpire", "hexpired", "del"]);
    client.check("DBSIZE", ":0");
    assert_eq!(client.info("expired_subkeys").as_deref(), Some("2"));
}

#[test]
fn replicas_show_none_and_remove_none() {
    let primary = replicas::ours(&[]);
    let replica = replicas::ours(&[]);
    replicas::follow(&replica, primary.port());
    let (mut writer, mut reader) = (primary.client(), replica.client());
    fill(&mut writer);
    holds("the replica follows", || reader.run("HLEN big").integer() == Some(600));
    is_there(&mut reader);
    // The primary stands still while a field ends: the replica hides it, and keeps it.
    writer.check("HSET brief a 1 b 2; HPEXPIRE brief 300 FIELDS 1 a", ":2; [:1]");
    holds("the hash arrives", || reader.run("HLEN brief").integer() == Some(2));
    primary.signal(Signal::Stop).unwrap();
    holds("the field ends", || reader.run("HGET brief a").is_null());
    reader.check("HLEN brief; HGETALL brief", ":1; [b 2]");
    assert_eq!(reader.info("expired_subkeys").as_deref(), Some("0"));
    primary.signal(Signal::Continue).unwrap();
    replicas::equal(&primary, &replica);
    reader.check("HLEN brief", ":1");
}
