//! What is recorded of random commands: replayed it gives the same data, and Redis records the same.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;
#[path = "common/log.rs"]
mod log;

use log::{Command, digest, drop_volatile, increments, parse, shown};
use testkit::differential::generator::{Episode, Generator};
use testkit::differential::rules::{Rule, rule_of};
use testkit::differential::vocabulary::VALUES;
use testkit::process::Signal;
use testkit::{Client, Launch, Reply};

/// Sends the commands of an episode; those of the second connection too, as long as they do not wait.
fn play(clients: &mut [Client], episode: &Episode, wanted: impl Fn(&[Vec<u8>]) -> bool) -> u64 {
    let mut sent = 0;
    for chunk in episode.steps.chunks(32) {
        for (connection, client) in clients.iter_mut().enumerate() {
            let mine = chunk.iter().filter(|step| step.connection == connection && !step.parks && wanted(&step.args));
            let commands: Vec<&Vec<Vec<u8>>> = mine.map(|step| &step.args).collect();
            sent += commands.len() as u64;
            for command in &commands {
                client.send(command).unwrap();
            }
            for command in &commands {
                client.read().unwrap_or_else(|error| panic!("{error} for {}", shown(command)));
            }
        }
    }
    sent
}

/// What would hang, end the server or change its configuration.
fn is_tame(args: &[Vec<u8>]) -> bool {
    let name = String::from_utf8_lossy(&args[0]).to_ascii_uppercase();
    let blocks = name.starts_with('B') && !name.starts_with("BIT");
    let waits = args.iter().any(|word| word.eq_ignore_ascii_case(b"block"));
    !blocks
        && !waits
        && !matches!(
            name.as_str(),
            "CONFIG"
                | "SHUTDOWN"
                | "QUIT"
                | "CLIENT"
                | "SUBSCRIBE"
                | "PSUBSCRIBE"
                | "SSUBSCRIBE"
                | "UNSUBSCRIBE"
                | "PUNSUBSCRIBE"
                | "SUNSUBSCRIBE"
                | "MONITOR"
                | "RESET"
                | "HELLO"
                | "AUTH"
                | "WAIT"
                | "WAITAOF"
                | "DEBUG"
                | "SCRIPT"
                | "EVAL"
        )
}

#[test]
fn replaying_the_log_gives_the_same_data() {
    let directory = tempfile::tempdir().unwrap();
    let launch = Launch::oxidis().directory(directory.path()).args(&[
        "--appendonly",
        "yes",
        "--appendfsync",
        "no",
        "--enable-debug-command",
        "yes",
        "--save",
        "",
        "--io-threads",
        "2",
    ]);
    let mut server = launch.start();
    let generator = Generator::new(&VALUES.map(String::from), Some(2)).unwrap();
    let seed = testkit::seed(1);
    let mut sent = 0;
    let mut episode = 0;
    while sent < 20_000 {
        let mut clients = [server.client(), server.client()];
        let steps = generator.episode(seed * 1_000 + episode);
        // A flush now and then; else one episode builds on the last.
        let flushes = episode % 8 == 7;
        sent +=
            play(&mut clients, &steps, |args| is_tame(args) && (flushes || !args[0].eq_ignore_ascii_case(b"FLUSHALL")));
        episode += 1;
        if episode % 20 == 10 {
            clients[0].run("BGREWRITEAOF");
        }
    }
    let mut client = server.client();
    drop_volatile(&mut client);
    let before = digest(&mut client);
    let keys = client.run("INFO keyspace").to_string();
    server.stop(Signal::Kill).unwrap();
    let server = launch.start();
    let mut client = server.client();
    let after = digest(&mut client);
    assert_eq!(client.run("INFO keyspace").to_string(), keys, "{}", server.log());
    assert_eq!(after, before, "{}", server.log());
    assert!(!server.log().contains("CRITICAL"), "{}", server.log());
}

/// Whether what a command comes to is the same on two servers.
fn is_determined(args: &[Vec<u8>]) -> bool {
    let name = String::from_utf8_lossy(&args[0]).to_ascii_uppercase();
    // Redis 7.2 records a SET with PXAT as it stands, 7.0 without its other options.
    let has_pxat = args.iter().any(|word| word.eq_ignore_ascii_case(b"pxat"));
    let star = args.iter().any(|word| word.starts_with(b"*"));
    // Redis makes the string as long as BITFIELD asks, and records nothing when each of its operations failed then.
    let may_fail = args.iter().any(|word| word.eq_ignore_ascii_case(b"fail"));
    let is_open = (has_pxat && name == "SET") || (star && name == "XADD") || (may_fail && name == "BITFIELD");
    is_tame(args)
        && !is_open
        && !matches!(rule_of(args), Rule::Random(_) | Rule::Pop | Rule::Scan | Rule::Dump)
        && !matches!(name.as_str(), "RESTORE" | "PFDEBUG" | "OBJECT")
}

/// Whether two arguments say the same: equal, or times that lie close together.
fn is_same(ours: &[u8], theirs: &[u8]) -> bool {
    let time = |word: &[u8]| -> Option<i64> {
        let text = std::str::from_utf8(word).ok()?;
        text.parse().ok().filter(|number| *number > 1_000_000_000_000)
    };
    ours == theirs || matches!((time(ours), time(theirs)), (Some(ours), Some(theirs)) if (ours - theirs).abs() < 20_000)
}

/// Puts the selected database before each command, in place of the SELECTs: where they stand in a transaction is up to the
/// version.
fn with_databases(all: Vec<Command>) -> Vec<Command> {
    let mut db = b"none".to_vec();
    let mut with = Vec::new();
    for mut command in all {
        match command[0].as_slice() {
            b"SELECT" => db.clone_from(&command[1]),
            b"MULTI" | b"EXEC" => with.push(command),
            _ => {
                command.insert(0, db.clone());
                with.push(command);
            }
        }
    }
    with
}

#[test]
fn redis_records_the_same() {
    let flags = ["--appendonly", "yes", "--appendfsync", "no", "--save", ""];
    let ours = Launch::oxidis().args(&flags).start();
    let theirs = Launch::redis().args(&flags).start();
    let generator = Generator::new(&VALUES.map(String::from), Some(2)).unwrap();
    let seed = testkit::seed(1);
    let mut done = [0, 0];
    let mut compared = 0;
    for episode in 0..40 {
        let steps = generator.episode(seed * 1_000 + episode);
        let mut logs: Vec<Vec<Command>> = Vec::new();
        for (side, server) in [&ours, &theirs].into_iter().enumerate() {
            let mut clients = [server.client(), server.client()];
            clients[0].run("FLUSHALL");
            play(&mut clients, &steps, is_determined);
            // What is recorded is in the file before the answer.
            assert_eq!(clients[0].run("PING"), Reply::Simple(b"PONG".to_vec()));
            let all = with_databases(parse(&increments(server.directory())));
            logs.push(all[done[side]..].to_vec());
            done[side] = all.len();
        }
        let (mine, other) = (&logs[0], &logs[1]);
        for (index, (a, b)) in mine.iter().zip(other).enumerate() {
            let same = a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b));
            let before: Vec<String> = mine[index.saturating_sub(3)..index].iter().map(shown).collect();
            assert!(same, "episode {episode}, after {before:?}:\n ours: {}\ntheirs: {}", shown(a), shown(b));
        }
        let rest = |all: &[Command]| all[mine.len().min(other.len())..].iter().map(shown).collect::<Vec<_>>();
        assert_eq!(rest(mine), rest(other), "episode {episode} {}", ours.log());
        compared += mine.len();
    }
    assert!(compared > 2_000, "{compared}");
}
