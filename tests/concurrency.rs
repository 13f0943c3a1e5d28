//! Many clients at once on four workers: nothing is lost, nothing is torn, waiters are served in
//! order, and what each client saw fits one order of all operations.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use testkit::history::{Action, Operation, is_linearizable};
use testkit::{Client, Reply, Server, text, wait_until};

const CLIENTS: usize = 64;

fn server() -> Server {
    Server::oxidis(&["--io-threads", "4", "--maxclients", "500"])
}

/// Runs `work` on so many clients at once, each with its index and a seed of its own.
fn crowd(server: &Server, clients: usize, work: impl Fn(usize, &mut Client, &mut fastrand::Rng) + Sync) {
    let seed = testkit::seed(7);
    let barrier = Barrier::new(clients);
    thread::scope(|scope| {
        for index in 0..clients {
            let (work, barrier) = (&work, &barrier);
            let mut client = server.client();
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed + index as u64);
                barrier.wait();
                work(index, &mut client, &mut random);
            });
        }
    });
}

fn number(reply: &Reply) -> i64 {
    reply.integer().or_else(|| reply.text().parse().ok()).unwrap_or(0)
}

#[test]
fn counters_lose_nothing() {
    let server = server();
    const EACH: usize = 500;
    crowd(&server, CLIENTS, |_, client, random| {
        let mut commands = Vec::new();
        for _ in 0..EACH {
            commands.push(text::words(&format!("INCR c:{}", random.u8(0..5))));
            commands.push(text::words("HINCRBY h f 1"));
            commands.push(text::words("ZINCRBY z 1 m"));
            commands.push(text::words("APPEND s x"));
        }
        for batch in commands.chunks(32) {
            for reply in client.pipeline(batch).unwrap() {
                assert!(!reply.is_error(), "{reply}");
            }
        }
    });
    let mut client = server.client();
    let all = (CLIENTS * EACH) as i64;
    let sum: i64 = (0..5).map(|i| number(&client.run(&format!("GET c:{i}")))).sum();
    assert_eq!(sum, all);
    assert_eq!(number(&client.run("HGET h f")), all);
    assert_eq!(number(&client.run("ZSCORE z m")), all);
    assert_eq!(number(&client.run("STRLEN s")), all);
}

#[test]
fn transfers_by_watch_and_multi_keep_the_sum() {
    let server = server();
    const ACCOUNTS: usize = 20;
    let mut admin = server.client();
    for account in 0..ACCOUNTS {
        admin.check(&format!("SET account:{account} 100"), "+OK");
    }
    let committed = AtomicU64::new(0);
    let torn = AtomicU64::new(0);
    crowd(&server, CLIENTS, |index, client, random| {
        for _ in 0..60 {
            if index % 8 == 0 {
                let names: Vec<String> = (0..ACCOUNTS).map(|i| format!("account:{i}")).collect();
                let reply = client.run(&format!("MGET {}", names.join(" ")));
                let sum: i64 = reply.items().unwrap().iter().map(number).sum();
                torn.fetch_add(u64::from(sum != 100 * ACCOUNTS as i64), Ordering::Relaxed);
                continue;
            }
            let (from, to) = (random.usize(0..ACCOUNTS), random.usize(0..ACCOUNTS));
            if from == to {
                continue;
            }
            client.check(&format!("WATCH account:{from} account:{to}"), "+OK");
            let have = number(&client.run(&format!("GET account:{from}")));
            let there = number(&client.run(&format!("GET account:{to}")));
            let amount = random.i64(1..10).min(have);
            let transaction = [
                text::words("MULTI"),
                text::words(&format!("SET account:{from} {}", have - amount)),
                text::words(&format!("SET account:{to} {}", there + amount)),
                text::words("EXEC"),
            ];
            let replies = client.pipeline(&transaction).unwrap();
            committed.fetch_add(u64::from(!replies[3].is_null()), Ordering::Relaxed);
            assert!(!replies[3].is_error(), "{}", replies[3]);
        }
    });
    let sum: i64 = (0..ACCOUNTS).map(|i| number(&admin.run(&format!("GET account:{i}")))).sum();
    assert_eq!(sum, 100 * ACCOUNTS as i64);
    assert_eq!(torn.into_inner(), 0, "MGET saw a transfer half done");
    assert!(committed.into_inner() > 0, "no transaction ever committed");
}

#[test]
fn mset_is_never_seen_half_done() {
    let server = server();
    let torn = AtomicU64::new(0);
    crowd(&server, CLIENTS, |index, client, random| {
        for round in 0..150 {
            if index % 2 == 0 {
                let value = format!("{index}.{round}");
                // Any order of the keys must do: the server sorts the slots that it locks.
                let mut keys = ["a", "b", "c", "d"];
                random.shuffle(&mut keys);
                let words: Vec<String> = keys.iter().map(|key| format!("{key} {value}")).collect();
                client.check(&format!("MSET {}", words.join(" ")), "+OK");
            } else {
                let reply = client.run("MGET d b a c");
                let items = reply.items().unwrap();
                torn.fetch_add(u64::from(items.iter().any(|item| *item != items[0])), Ordering::Relaxed);
            }
        }
    });
    assert_eq!(torn.into_inner(), 0);
}

#[test]
fn moves_between_slots_keep_what_there_is() {
    let server = server();
    let mut admin = server.client();
    const THINGS: usize = 200;
    for thing in 0..THINGS {
        admin.run(&format!("SADD set:0 {thing}"));
        admin.run(&format!("RPUSH list:0 {thing}"));
    }
    admin.run("SET name:0 token");
    crowd(&server, CLIENTS, |_, client, random| {
        for _ in 0..200 {
            let (from, to) = (random.u8(0..6), random.u8(0..6));
            let command = match random.u8(0..4) {
                0 => format!("SMOVE set:{from} set:{to} {}", random.usize(0..THINGS)),
                1 => format!("LMOVE list:{from} list:{to} LEFT RIGHT"),
                2 => format!("RPOPLPUSH list:{from} list:{to}"),
                _ => format!("RENAMENX name:{from} name:{to}"),
            };
            let reply = client.run(&command);
            assert!(!reply.is_error() || reply.text() == "ERR no such key", "{command}: {reply}");
        }
    });
    let mut total =
        |command: &str, key: &str| -> i64 { (0..6).map(|i| number(&admin.run(&format!("{command} {key}:{i}")))).sum() };
    assert_eq!(total("SCARD", "set"), THINGS as i64);
    assert_eq!(total("LLEN", "list"), THINGS as i64);
    assert_eq!(total("EXISTS", "name"), 1);
    let mut seen: Vec<i64> = Vec::new();
    for list in 0..6 {
        seen.extend(admin.run(&format!("LRANGE list:{list} 0 -1")).items().unwrap().iter().map(number));
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..THINGS as i64).collect::<Vec<_>>());
}

#[test]
fn blocked_clients_are_served_in_order_of_arrival() {
    let server = server();
    let mut admin = server.client();
    let served = Arc::new(Mutex::new(Vec::new()));
    let mut waiters = Vec::new();
    for index in 0..24_usize {
        let mut client = server.client();
        let served = Arc::clone(&served);
        client.send(&["BLPOP", "nothing", "queue", "20"]).unwrap();
        wait_until("one more blocked client", Duration::from_secs(10), || {
            let blocked = admin.info("blocked_clients").unwrap_or_default();
            if blocked == (index + 1).to_string() { Ok(()) } else { Err(blocked) }
        });
        waiters.push(thread::spawn(move || {
            let reply = client.read().unwrap();
            let value = number(&reply.items().unwrap()[1]);
            served.lock().unwrap().push((value, index));
        }));
    }
    for value in 0..24 {
        assert_eq!(admin.run(&format!("RPUSH queue {value}")), Reply::Integer(1));
    }
    for waiter in waiters {
        waiter.join().unwrap();
    }
    let mut served = served.lock().unwrap().clone();
    served.sort_unstable();
    for (value, index) in served {
        assert_eq!(value, index as i64, "the waiter that came as number {index} got element {value}");
    }
    assert_eq!(number(&admin.run("LLEN queue")), 0);
}

#[test]
fn blocking_queues_deliver_each_element_once() {
    let server = server();
    const ELEMENTS: usize = 2_000;
    let taken = Mutex::new(Vec::new());
    let left = AtomicU64::new(16);
    crowd(&server, 32, |index, client, random| {
        if index % 2 == 0 {
            for element in (index / 2 * ELEMENTS / 16)..((index / 2 + 1) * ELEMENTS / 16) {
                client.run(&format!("LPUSH q:{} {element}", random.u8(0..4)));
            }
            left.fetch_sub(1, Ordering::SeqCst);
            return;
        }
        loop {
            let is_last = left.load(Ordering::SeqCst) == 0;
            let reply = client.run("BRPOP q:0 q:1 q:2 q:3 0.1");
            match reply.items() {
                Some(items) => taken.lock().unwrap().push(number(&items[1])),
                None if is_last => return,
                None => {}
            }
        }
    });
    let mut taken = taken.into_inner().unwrap();
    taken.sort_unstable();
    assert_eq!(taken, (0..ELEMENTS as i64).collect::<Vec<_>>());
}

#[test]
fn histories_of_single_keys_are_linearizable() {
    let server = server();
    const ROUNDS: usize = 40;
    const WRITERS: usize = 16;
    let clock = Instant::now();
    let now = move || u64::try_from(clock.elapsed().as_nanos()).unwrap();
    let histories: Vec<Mutex<Vec<Operation>>> = (0..ROUNDS).map(|_| Mutex::new(Vec::new())).collect();
    let next_value = AtomicU64::new(1);
    let stop = AtomicBool::new(false);
    crowd(&server, WRITERS, |_, client, random| {
        // Clients are often on the same key, and each key's history stays short enough to check.
        for (round, history) in histories.iter().enumerate() {
            for _ in 0..8 {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let value = next_value.fetch_add(1, Ordering::Relaxed);
                let writes = random.bool();
                let command = if writes { format!("SET r:{round} {value}") } else { format!("GET r:{round}") };
                let called = now();
                let reply = client.run(&command);
                let returned = Some(now());
                let action = match (&reply, writes) {
                    (_, true) => Action::Write(value),
                    (Reply::NullBulk, _) => Action::Read(None),
                    _ => Action::Read(reply.text().parse().ok()),
                };
                history.lock().unwrap().push(Operation { action, called, returned });
            }
        }
    });
    for (round, history) in histories.into_iter().enumerate() {
        let history = history.into_inner().unwrap();
        assert!(is_linearizable(&history), "key r:{round} is not linearizable: {history:#?}");
    }
}
