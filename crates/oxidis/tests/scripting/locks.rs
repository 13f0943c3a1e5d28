//! Scripts run as one step for everyone else, with declared keys and without.

use std::thread;
use testkit::Server;

/// Moves between two accounts; the sum stays.
const TRANSFER: &str =
    "local n = tonumber(ARGV[1]) redis.call('decrby', KEYS[1], n) redis.call('incrby', KEYS[2], n) return 1";
const TRANSFER_UNDECLARED: &str =
    "local n = tonumber(ARGV[3]) redis.call('decrby', ARGV[1], n) redis.call('incrby', ARGV[2], n) return 1";
const SUM: &str =
    "local sum = 0 for i = 1, #KEYS do sum = sum + tonumber(redis.call('get', KEYS[i]) or 0) end return sum";
const SUM_UNDECLARED: &str =
    "local sum = 0 for i = 1, #ARGV do sum = sum + tonumber(redis.call('get', ARGV[i]) or 0) end return sum";

fn transfers(declared: &[bool]) {
    let server = Server::oxidis(&["--io-threads", "4"]);
    let accounts: Vec<String> = (0..8).map(|index| format!("account{index}")).collect();
    let mut client = server.client();
    for account in &accounts {
        client.check(&format!("SET {account} 100"), "+OK");
    }
    thread::scope(|scope| {
        for mover in 0..4_usize {
            let (server, accounts) = (&server, &accounts);
            scope.spawn(move || {
                let mut client = server.client();
                for round in 0..400 {
                    let (from, to) = (&accounts[(mover + round) % 8], &accounts[(mover * 3 + round * 5 + 1) % 8]);
                    let reply = if declared[(mover + round) % declared.len()] {
                        client.call(&["EVAL", TRANSFER, "2", from, to, "1"])
                    } else {
                        client.call(&["EVAL", TRANSFER_UNDECLARED, "0", from, to, "1"])
                    };
                    assert_eq!(reply.unwrap().text(), ":1");
                }
            });
        }
        let (server, accounts) = (&server, &accounts);
        scope.spawn(move || {
            let mut client = server.client();
            for round in 0..300 {
                let mut args: Vec<&str> = if declared[round % declared.len()] {
                    vec!["EVAL", SUM, "8"]
                } else {
                    vec!["EVAL", SUM_UNDECLARED, "0"]
                };
                args.extend(accounts.iter().map(String::as_str));
                assert_eq!(client.call(&args).unwrap().text(), ":800");
            }
        });
    });
}

#[test]
fn declared_keys() {
    transfers(&[true]);
}

#[test]
fn undeclared_keys() {
    transfers(&[false]);
}

#[test]
fn both() {
    transfers(&[true, false]);
}

#[test]
fn undeclared_keys_can_be_refused() {
    let server = Server::oxidis(&["--script-undeclared-keys", "no"]);
    let mut client = server.client();
    client.check(
        "EVAL \"return redis.call('set', KEYS[1], 1)\" 1 k; EVAL \"return redis.call('get', 'k')\" 1 k",
        "+OK; 1",
    );
    client.check(
        "EVAL \"return redis.call('get', 'other')\" 1 k",
        "-ERR Script attempted to access a key that it did not declare, and script-undeclared-keys is no script: ...",
    );
    client.check(
        "EVAL \"return redis.call('keys', '*')\" 0",
        "-ERR Script attempted to access a key that it did not declare...",
    );
    client.check("EVAL \"return redis.call('get', '{k}other')\" 1 k", "nil");
}

#[test]
fn scripts_and_long_commands_and_the_gate() {
    let server = Server::oxidis(&["--io-threads", "4"]);
    thread::scope(|scope| {
        for index in 0..3 {
            let server = &server;
            scope.spawn(move || {
                let mut client = server.client();
                let key = format!("key{index}");
                for round in 0..40 {
                    // Long enough to leave the worker, each its own text.
                    let body = format!("local n = 0 for i = 1, 300000 do n = n + i end redis.call('set', KEYS[1], {round}) return {round}");
                    assert_eq!(client.call(&["EVAL", &body, "1", &key]).unwrap().text(), format!(":{round}"));
                }
            });
        }
        let server = &server;
        scope.spawn(move || {
            let mut client = server.client();
            for _ in 0..40 {
                client.check("FLUSHALL; SWAPDB 0 1", "+OK; +OK");
            }
        });
    });
}
