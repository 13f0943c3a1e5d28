//! Clients that wait for keys, on four workers: order, timeouts, clients that die, chains, transactions.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::thread;
use std::time::{Duration, Instant};

use common::{timed, wait_blocked};
use testkit::{Client, Server, text};

fn server() -> Server {
    Server::oxidis(&["--io-threads", "4"])
}

fn blocked(server: &Server, command: &str) -> Client {
    let mut client = server.client();
    client.send(&text::words(command)).unwrap();
    client
}

#[test]
fn first_come_first_served_whatever_they_run() {
    let server = server();
    let mut admin = server.client();
    let mut waiters = Vec::new();
    for (index, command) in
        ["BLPOP k 0", "BRPOP none k 0", "BLMOVE k d1 LEFT LEFT 0", "BLMPOP 0 1 k LEFT", "BRPOPLPUSH k d2 0"]
            .iter()
            .enumerate()
    {
        waiters.push(blocked(&server, command));
        wait_blocked(&mut admin, index + 1);
    }
    admin.check("RPUSH k a b c d e", ":5");
    let replies: Vec<String> = waiters.iter_mut().map(|client| client.read().unwrap().to_string()).collect();
    assert_eq!(replies, ["[k a]", "[k e]", "b", "[k [c]]", "d"]);
    admin.check("EXISTS k; LRANGE d1 0 -1; LRANGE d2 0 -1", ":0; [b]; [d]");
    let mut sorted = ["BZPOPMIN z 0", "BZPOPMAX z 0", "BZMPOP 0 1 z MIN"].map(|command| {
        let client = blocked(&server, command);
        thread::sleep(Duration::from_millis(30));
        client
    });
    admin.check("ZADD z 1 a 2 b 3 c", ":3");
    let replies: Vec<String> = sorted.iter_mut().map(|client| client.read().unwrap().to_string()).collect();
    assert_eq!(replies, ["[z a 1]", "[z c 3]", "[z [[b 2]]]"]);
}

#[test]
fn timeouts_end_waits_with_the_right_null() {
    let server = server();
    let wait = |protocol: u8, command: &str, reply: &str| {
        let mut client = server.client();
        client.hello(protocol);
        let (got, took) = timed(|| client.run(command).to_string());
        assert_eq!(got, reply, "{command}");
        assert!(took >= Duration::from_millis(190) && took < Duration::from_secs(2), "{command} took {took:?}");
        client.check("PING", "+PONG");
    };
    wait(2, "BLPOP a 0.2", "*nil");
    wait(3, "BLPOP a 0.2", "_");
    wait(2, "BLMOVE a b LEFT LEFT 0.2", "*nil");
    wait(2, "BZPOPMIN a 0.2", "*nil");
    wait(2, "BLMPOP 0.2 2 a b LEFT", "*nil");
    let mut client = server.client();
    client.check(
        "BLPOP a -1; BLPOP a x; SET s 1; BLPOP s 1; BLPOP a 1e300",
        "-ERR timeout is negative; -ERR timeout is not a float or out of range; +OK; -WRONGTYPE Operation against a key holding the wrong kind of value; -ERR timeout is out of range",
    );
    client.check(
        "MULTI; BLPOP a 0; BZPOPMAX a 0; BLMOVE a b LEFT LEFT 0; EXEC",
        "+OK; +QUEUED; +QUEUED; +QUEUED; [*nil *nil nil]",
    );
}

#[test]
fn a_client_that_dies_takes_nothing_with_it() {
    let server = server();
    let mut admin = server.client();
    let first = blocked(&server, "BLPOP k 0");
    wait_blocked(&mut admin, 1);
    let mut second = blocked(&server, "BLPOP k 0");
    wait_blocked(&mut admin, 2);
    drop(first);
    wait_blocked(&mut admin, 1);
    admin.check("RPUSH k v", ":1");
    assert_eq!(second.read().unwrap().to_string(), "[k v]");
    // Killed and unblocked ones leave no trace either.
    let mut killed = blocked(&server, "BLPOP k 0");
    wait_blocked(&mut admin, 1);
    let id = admin
        .run("CLIENT LIST")
        .text()
        .lines()
        .find(|line| line.contains("flags=b"))
        .unwrap()
        .split(['=', ' '])
        .nth(1)
        .unwrap()
        .to_owned();
    admin.check(&format!("CLIENT KILL ID {id}"), ":1");
    assert!(killed.closes_within(Duration::from_secs(2)));
    wait_blocked(&mut admin, 0);
    let mut client = server.client();
    let id = client.run("CLIENT ID").integer().unwrap();
    client.send(&["BLPOP", "k", "0"]).unwrap();
    wait_blocked(&mut admin, 1);
    admin.check(&format!("CLIENT UNBLOCK {id} ERROR; CLIENT UNBLOCK {id}"), ":1; :0");
    assert_eq!(client.read().unwrap().to_string(), "-UNBLOCKED client unblocked via CLIENT UNBLOCK");
    admin.check("RPUSH k left; LLEN k", ":1; :1");
    client.check("LPOP k", "left");
}

#[test]
fn chains_of_moves() {
    let server = server();
    let mut admin = server.client();
    const LINKS: usize = 12;
    let mut waiters: Vec<Client> =
        (0..LINKS).map(|link| blocked(&server, &format!("BLMOVE c{link} c{} LEFT RIGHT 0", link + 1))).collect();
    wait_blocked(&mut admin, LINKS);
    admin.check("RPUSH c0 token", ":1");
    for client in &mut waiters {
        assert_eq!(client.read().unwrap().to_string(), "token");
    }
    admin.check(&format!("LRANGE c{LINKS} 0 -1; EXISTS c0 c1 c5"), "[token]; :0");
    // A target of another type: the client is told, the element stays.
    let mut client = blocked(&server, "BLMOVE src dst LEFT RIGHT 0");
    wait_blocked(&mut admin, 1);
    admin.check("SET dst text; RPUSH src x", "+OK; :1");
    assert!(client.read().unwrap().to_string().starts_with("-WRONGTYPE"));
    admin.check("LRANGE src 0 -1", "[x]");
}

#[test]
fn waits_end_after_the_transaction_and_only_for_the_right_type() {
    let server = server();
    let mut admin = server.client();
    let mut client = blocked(&server, "BLPOP k 0");
    wait_blocked(&mut admin, 1);
    admin.check("MULTI; RPUSH k a; DEL k; EXEC", "+OK; +QUEUED; +QUEUED; [:1 :1]");
    admin.check("MULTI; RPUSH k a b; LPOP k; EXEC", "+OK; +QUEUED; +QUEUED; [:2 a]");
    assert_eq!(client.read().unwrap().to_string(), "[k b]");
    let mut client = blocked(&server, "BLPOP k 0");
    wait_blocked(&mut admin, 1);
    admin.check(
        "ZADD k 1 m; DEL k; SADD other x; RENAME other k; DEL k; SET k v; DEL k",
        ":1; :1; :1; +OK; :1; +OK; :1",
    );
    wait_blocked(&mut admin, 1);
    admin.check("RPUSH elsewhere v; RENAME elsewhere k", ":1; +OK");
    assert_eq!(client.read().unwrap().to_string(), "[k v]");
    // Keys that appear by other ways serve too.
    for (prepare, make) in [
        ("RPUSH from v", "COPY from k"),
        ("RPUSH from v", "SORT from ALPHA STORE k"),
        ("RPUSH from v", "RESTORE k 0 DUMP"),
        ("SELECT 1; RPUSH k v; SELECT 0", "SWAPDB 0 1"),
        ("SELECT 1; RPUSH k v", "MOVE k 0"),
    ] {
        admin.run("FLUSHALL");
        let mut client = blocked(&server, "BLPOP k 0");
        wait_blocked(&mut admin, 1);
        for command in text::split(prepare) {
            admin.run(command);
        }
        if make.starts_with("RESTORE") {
            let dump = admin.run("DUMP from").bytes().unwrap().to_vec();
            admin.call(&[b"RESTORE".to_vec(), b"k".to_vec(), b"0".to_vec(), dump]).unwrap();
        } else {
            admin.run(make);
        }
        assert_eq!(client.read().unwrap().to_string(), "[k v]", "{make}");
        admin.run("SELECT 0");
    }
}

#[test]
fn nobody_is_forgotten_under_load() {
    let server = server();
    const PAIRS: usize = 24;
    const ROUNDS: usize = 300;
    let end = Instant::now() + Duration::from_secs(60);
    // Consumers wait for two keys each, in both orders; a producer feeds one of them at a time, and time-outs race with it.
    thread::scope(|scope| {
        for pair in 0..PAIRS {
            let keys = if pair % 2 == 0 { "q1 q2" } else { "q2 q1" };
            let server = &server;
            scope.spawn(move || {
                let mut client = server.client();
                for _ in 0..ROUNDS {
                    let timeout = if pair % 3 == 0 { "0.001" } else { "30" };
                    loop {
                        assert!(Instant::now() < end, "a consumer starved");
                        if client.run(&format!("BLPOP {keys} {timeout}")).items().is_some() {
                            break;
                        }
                    }
                }
            });
            scope.spawn(move || {
                let mut client = server.client();
                for round in 0..ROUNDS {
                    client.run(&format!("RPUSH q{} {pair}", 1 + (round + pair) % 2));
                }
            });
        }
    });
    let mut admin = server.client();
    admin.check("LLEN q1; LLEN q2", ":0; :0");
    wait_blocked(&mut admin, 0);
}

#[test]
fn a_pipeline_behind_a_wait_goes_on_after_it() {
    let server = server();
    let mut admin = server.client();
    let mut client = server.client();
    client.send_raw(b"SET a 1\r\nBLPOP k 0\r\nINCR a\r\nBLPOP k 0\r\nGET a\r\n").unwrap();
    assert_eq!(client.read().unwrap().to_string(), "+OK");
    wait_blocked(&mut admin, 1);
    admin.check("GET a; RPUSH k x y z", "1; :3");
    for expected in ["[k x]", ":2", "[k y]", "2"] {
        assert_eq!(client.read().unwrap().to_string(), expected);
    }
    admin.check("LRANGE k 0 -1", "[z]");
}
