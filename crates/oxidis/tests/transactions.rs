//! MULTI, EXEC, DISCARD, WATCH over sockets, on four workers.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::thread;
use std::time::Duration;

use testkit::Server;

fn server() -> Server {
    Server::oxidis(&["--io-threads", "4"])
}

#[test]
fn queues_run_whole_or_not_at_all() {
    let server = server();
    let mut client = server.client();
    client.check("MULTI; SET a 1; INCR a; GET a; EXEC", "+OK; +QUEUED; +QUEUED; +QUEUED; [+OK :2 2]");
    client.check("MULTI; SET b 1; DISCARD; GET b", "+OK; +QUEUED; +OK; nil");
    client.check("EXEC; DISCARD", "-ERR EXEC without MULTI; -ERR DISCARD without MULTI");
    client.check("MULTI; MULTI; EXEC", "+OK; -ERR MULTI calls can not be nested; []");
    client.check(
        "MULTI; SET c 1; NOSUCH; EXEC; GET c",
        "+OK; +QUEUED; -ERR unknown command 'NOSUCH', with args beginning with:...; -EXECABORT Transaction discarded because of previous errors.; nil",
    );
    client.check(
        "MULTI; SET c 1; GET; EXEC; GET c",
        "+OK; +QUEUED; -ERR wrong number of arguments for 'get' command; -EXECABORT Transaction discarded because of previous errors.; nil",
    );
    client.check(
        "MULTI; SET t x; LPUSH t 1; SET u 1; EXEC; GET u",
        "+OK; +QUEUED; +QUEUED; +QUEUED; [+OK -WRONGTYPE Operation against a key holding the wrong kind of value +OK]; 1",
    );
    client.check(
        "MULTI; EXEC more; EXEC",
        "+OK; -EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command; -ERR EXEC without MULTI",
    );
    client.check("MULTI; WATCH a; EXEC", "+OK; -ERR WATCH inside MULTI is not allowed; []");
    client.check(
        "MULTI; SELECT 5; SET in5 1; EXEC; GET in5; SELECT 0; GET in5",
        "+OK; +QUEUED; +QUEUED; [+OK +OK]; 1; +OK; nil",
    );
    client.check(
        "MULTI; FLUSHALL; SET k v; DBSIZE; KEYS *; EXEC",
        "+OK; +QUEUED; +QUEUED; +QUEUED; +QUEUED; [+OK +OK :1 [k]]",
    );
    client.check(
        "MULTI; SORT none BY w_* GET o_*; SCAN 0; RANDOMKEY; EXEC",
        "+OK; +QUEUED; +QUEUED; +QUEUED; [[] [0 [k]] k]",
    );
    client.check("MULTI; CONFIG SET maxmemory 0; CLIENT ID; EXEC", "+OK; +QUEUED; +QUEUED; [+OK :...");
}

#[test]
fn a_watched_key_that_changes_ends_it() {
    let server = server();
    let mut client = server.client();
    let mut other = server.client();
    for (prepare, change, breaks) in [
        ("SET k 1", "SET k 2", true),
        ("SET k 1", "SET k 1", true),
        ("SET k 1", "GET k", false),
        ("SET k 1", "DEL k", true),
        ("DEL k", "DEL k", false),
        ("DEL k", "SET k 1", true),
        ("SET k 1", "EXPIRE k 100", true),
        ("SET k 1", "PERSIST k", false),
        ("SET k 1", "FLUSHALL", true),
        ("DEL k", "FLUSHALL", false),
        ("SET k 1", "FLUSHDB ASYNC", true),
        ("SET k 1", "SWAPDB 0 1", true),
        ("SET k 1", "RENAME k k2", true),
        ("SET k 1; SET j 1", "RENAME j k", true),
        ("RPUSH k a; LPOP k", "LPOP k", false),
        ("DEL k; SADD k a", "SADD k a", false),
        ("DEL k; SADD k a", "SADD k b", true),
        ("SET k 1", "SETNX k 2", false),
        ("SET k 1", "TOUCH k", false),
        ("SET k 1", "MSET x 1 k 2", true),
        ("SET k 1", "COPY k other REPLACE", false),
        ("SET other 1; SET k 2", "COPY other k REPLACE", true),
        ("SET k 1 PX 20", "PING", true),
    ] {
        client.run("FLUSHALL");
        for command in testkit::text::split(prepare) {
            client.run(command);
        }
        client.check("WATCH k", "+OK");
        other.run(change);
        if prepare.contains("PX") {
            thread::sleep(Duration::from_millis(40));
        }
        client.check("MULTI; PING; EXEC", if breaks { "+OK; +QUEUED; *nil" } else { "+OK; +QUEUED; [+PONG]" });
    }
    client.check("SET k 1; WATCH k; UNWATCH", "+OK; +OK; +OK");
    other.run("SET k 2");
    client.check("MULTI; PING; EXEC", "+OK; +QUEUED; [+PONG]");
    client.check("WATCH k; MULTI; DISCARD", "+OK; +OK; +OK");
    other.run("SET k 3");
    client.check("MULTI; PING; EXEC", "+OK; +QUEUED; [+PONG]");
    client.check("WATCH k; SET k own; MULTI; PING; EXEC", "+OK; +OK; +OK; +QUEUED; *nil");
    client
        .check("SELECT 1; WATCH k; SELECT 0; SET k x; MULTI; PING; EXEC", "+OK; +OK; +OK; +OK; +OK; +QUEUED; [+PONG]");
}

#[test]
fn transactions_over_many_slots_are_one_step() {
    let server = server();
    let sums: Vec<i64> = thread::scope(|scope| {
        for writer in 0..6 {
            let server = &server;
            scope.spawn(move || {
                let mut client = server.client();
                for round in 0..300_i64 {
                    // Some with the whole keyspace held, some with the slots alone.
                    let more = if round % 50 == 7 { "; DBSIZE" } else { "" };
                    let amount = round % 7 + writer;
                    let text =
                        format!("MULTI; INCRBY x {amount}; DECRBY y {amount}; INCRBY z 1; DECRBY w 1{more}; EXEC");
                    for command in testkit::text::split(&text) {
                        assert!(!client.run(command).is_error());
                    }
                }
            });
        }
        let readers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut client = server.client();
                    let mut worst = 0;
                    for _ in 0..600 {
                        let reply = client.run("MGET x y z w");
                        let sum: i64 = reply.items().unwrap().iter().map(|item| item.text().parse().unwrap_or(0)).sum();
                        worst = worst.max(sum.abs());
                    }
                    worst
                })
            })
            .collect();
        readers.into_iter().map(|reader| reader.join().unwrap()).collect()
    });
    assert_eq!(sums, [0, 0, 0, 0], "MGET saw a transaction half done");
}
