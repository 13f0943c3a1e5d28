//! Clients that wait for streams: who is woken by what, and with which answer.
//!
//! Each scenario also runs on a real server of 7.2 where `REDIS_BIN_DIR` names one, to see that it answers the same.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::Duration;

use testkit::{Client, Server, wait_until};

/// What happens, in order: commands before, one waiting command per client, commands after.
struct Scenario {
    before: &'static str,
    waiting: &'static [&'static str],
    after: &'static str,
    /// What each waiting client is answered; "waits": nothing.
    expected: &'static [&'static str],
}

fn blocked(server: &Server, count: usize) {
    let mut client = server.client();
    wait_until("clients wait", Duration::from_secs(10), || {
        let blocked = client.info("blocked_clients").unwrap_or_default();
        if blocked == count.to_string() { Ok(()) } else { Err(blocked) }
    });
}

impl Scenario {
    fn play(&self, server: &Server) -> Vec<String> {
        let mut actor = server.client();
        actor.run("FLUSHALL");
        for command in self.before.split(';').filter(|command| !command.is_empty()) {
            let reply = actor.run(command);
            assert!(!reply.is_error(), "{command}: {reply}");
        }
        let mut waiting: Vec<Client> = Vec::new();
        for (index, command) in self.waiting.iter().enumerate() {
            let mut client = server.client();
            client.set_timeout(Duration::from_millis(400)).unwrap();
            let words: Vec<&str> = command.split(' ').collect();
            client.send(&words).unwrap();
            blocked(server, index + 1);
            waiting.push(client);
        }
        for command in self.after.split(';').filter(|command| !command.is_empty()) {
            let reply = actor.run(command);
            assert!(!reply.is_error(), "{command}: {reply}");
        }
        let replies = waiting
            .iter_mut()
            .map(|client| client.read().map_or_else(|_| "waits".into(), |reply| reply.to_string()))
            .collect();
        drop(waiting);
        blocked(server, 0);
        replies
    }
}

const SCENARIOS: &[Scenario] = &[
    Scenario {
        before: "XADD s 1 a b",
        waiting: &["XREAD BLOCK 0 STREAMS s $", "XREAD BLOCK 0 STREAMS s 5", "XREAD BLOCK 0 STREAMS t s $ $"],
        after: "XADD s 2 c d",
        expected: &["[[s [[2-0 [c d]]]]]", "waits", "[[s [[2-0 [c d]]]]]"],
    },
    Scenario {
        before: "",
        waiting: &["XREAD BLOCK 0 STREAMS s $", "XREAD COUNT 1 BLOCK 0 STREAMS s 0"],
        after: "MULTI;XADD s 2 c d;XADD s 3 e f;EXEC",
        expected: &["[[s [[2-0 [c d]] [3-0 [e f]]]]]", "[[s [[2-0 [c d]]]]]"],
    },
    Scenario {
        before: "XGROUP CREATE s g $ MKSTREAM",
        waiting: &["XREADGROUP GROUP g a BLOCK 0 STREAMS s >", "XREADGROUP GROUP g b BLOCK 0 STREAMS s >"],
        after: "XADD s 2 c d;XADD s 3 e f",
        expected: &["[[s [[2-0 [c d]]]]]", "[[s [[3-0 [e f]]]]]"],
    },
    Scenario {
        before: "XGROUP CREATE s g $ MKSTREAM;XGROUP CREATE s h $",
        waiting: &[
            "XREADGROUP GROUP g a BLOCK 0 STREAMS s >",
            "XREADGROUP GROUP h a BLOCK 0 STREAMS s >",
            "XREAD BLOCK 0 STREAMS s $",
        ],
        after: "XGROUP DESTROY s g",
        expected: &["-NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option", "waits", "waits"],
    },
    Scenario {
        before: "XGROUP CREATE s g $ MKSTREAM",
        waiting: &["XREADGROUP GROUP g a BLOCK 0 STREAMS s >", "XREAD BLOCK 0 STREAMS s 0"],
        after: "DEL s",
        expected: &["-NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option", "waits"],
    },
    Scenario {
        before: "XGROUP CREATE s g $ MKSTREAM",
        waiting: &["XREADGROUP GROUP g a BLOCK 0 STREAMS s >", "XREAD BLOCK 0 STREAMS s 0"],
        after: "SET s x",
        expected: &["-WRONGTYPE Operation against a key holding the wrong kind of value", "waits"],
    },
    Scenario {
        before: "XGROUP CREATE s g $ MKSTREAM",
        waiting: &["XREADGROUP GROUP g a BLOCK 0 STREAMS s >", "XREAD BLOCK 0 STREAMS s 0"],
        after: "FLUSHALL",
        expected: &["-NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option", "waits"],
    },
    Scenario {
        before: "XGROUP CREATE s g $ MKSTREAM",
        waiting: &["XREADGROUP GROUP g a BLOCK 0 STREAMS s >"],
        after: "SWAPDB 0 1;SWAPDB 0 1",
        expected: &["-NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option"],
    },
    Scenario {
        before: "XGROUP CREATE s g $ MKSTREAM",
        waiting: &["XREADGROUP GROUP g a BLOCK 0 STREAMS s >"],
        after: "PEXPIRE s 1",
        expected: &["-NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option"],
    },
    Scenario {
        before: "XGROUP CREATE s g $ MKSTREAM",
        waiting: &["XREADGROUP GROUP g a BLOCK 0 STREAMS s >", "XREAD BLOCK 0 STREAMS t 0"],
        after: "RENAME s t",
        expected: &["-NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option", "waits"],
    },
    Scenario {
        before: "XADD s 1 a b;XADD t 1 c d",
        waiting: &["XREAD BLOCK 0 STREAMS u 0", "XREAD BLOCK 0 STREAMS v 0"],
        after: "RENAME s u;COPY t v",
        expected: &["[[u [[1-0 [a b]]]]]", "[[v [[1-0 [c d]]]]]"],
    },
    Scenario {
        before: "XADD s 1 a b",
        waiting: &["XREAD BLOCK 0 STREAMS s $", "XREAD BLOCK 0 STREAMS s $"],
        after: "DEL s;XADD s 1 x y;XADD s 1-1 x z",
        expected: &["[[s [[1-1 [x z]]]]]", "[[s [[1-1 [x z]]]]]"],
    },
    Scenario {
        before: "",
        waiting: &["XREAD BLOCK 0 STREAMS s $", "XREAD BLOCK 0 STREAMS s $"],
        after: "LPUSH s x;DEL s;XADD s 7 x y",
        expected: &["[[s [[7-0 [x y]]]]]", "[[s [[7-0 [x y]]]]]"],
    },
    Scenario {
        before: "",
        waiting: &["XREAD BLOCK 50 STREAMS s $", "BLPOP s 0"],
        after: "XADD t 1 a b",
        expected: &["*nil", "waits"],
    },
    Scenario {
        before: "XGROUP CREATE s g 0 MKSTREAM;XADD s 1 a b;XREADGROUP GROUP g old STREAMS s >",
        waiting: &[
            "XREADGROUP GROUP g a NOACK BLOCK 0 COUNT 1 STREAMS s >",
            "XREADGROUP GROUP g b BLOCK 0 STREAMS s >",
        ],
        after: "XGROUP SETID s g 0;XADD s 2 c d",
        expected: &["[[s [[1-0 [a b]]]]]", "[[s [[2-0 [c d]]]]]"],
    },
];

#[test]
fn waiting_clients_are_woken_as_by_redis() {
    let ours = Server::oxidis(&["--io-threads", "4"]);
    let theirs = std::env::var_os("REDIS_BIN_DIR").map(|_| Server::redis(&["--save", ""]));
    let mut differences = Vec::new();
    for (index, scenario) in SCENARIOS.iter().enumerate() {
        let replies = scenario.play(&ours);
        if replies != scenario.expected {
            differences.push(format!("{index}: ours {replies:?}, expected {:?}", scenario.expected));
        }
        if let Some(theirs) = &theirs {
            let replies = scenario.play(theirs);
            if replies != scenario.expected {
                differences.push(format!("{index}: Redis {replies:?}, expected {:?}", scenario.expected));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Groups share a stream's entries out: each entry goes to one consumer, none is lost.
#[test]
fn a_group_gets_each_entry_once() {
    const ENTRIES: usize = 2000;
    let server = Server::oxidis(&["--io-threads", "4"]);
    server.client().check("XGROUP CREATE s g $ MKSTREAM", "+OK");
    let mut ids: Vec<String> = Vec::new();
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..8)
            .map(|index| {
                let mut client = server.client();
                scope.spawn(move || {
                    let mut got = Vec::new();
                    loop {
                        let reply = client.run(&format!("XREADGROUP GROUP g c{index} COUNT 7 BLOCK 1500 STREAMS s >"));
                        if reply.is_null() {
                            return got;
                        }
                        let stream = reply.items().unwrap()[0].items().unwrap();
                        for entry in stream[1].items().unwrap() {
                            let id = entry.items().unwrap()[0].text();
                            assert_eq!(client.run(&format!("XACK s g {id}")).integer(), Some(1));
                            got.push(id);
                        }
                    }
                })
            })
            .collect();
        for _ in 0..4 {
            let mut client = server.client();
            scope.spawn(move || {
                for number in 0..ENTRIES / 4 {
                    assert!(!client.run(&format!("XADD s * n {number}")).is_error());
                }
            });
        }
        for reader in readers {
            ids.extend(reader.join().unwrap());
        }
    });
    assert_eq!(ids.len(), ENTRIES);
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), ENTRIES);
    server.client().check("XPENDING s g; XLEN s", &format!("[:0 nil nil *nil]; :{ENTRIES}"));
}
