//! Servers that follow each other, and somebody who writes to them.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)]

use std::time::Duration;
use testkit::differential::generator::Generator;
use testkit::{Client, Launch, Server, wait_until};

const LIMIT: Duration = Duration::from_secs(20);

/// One of ours, quick to synchronize.
pub(crate) fn launch_ours(args: &[&str]) -> Launch {
    let both = ["--repl-diskless-sync-delay", "0", "--io-threads", "2"];
    let has = |name: &str| args.contains(&name);
    let defaults = both.chunks(2).filter(|pair| !has(pair[0])).flatten();
    let all: Vec<&str> = args.iter().chain(defaults).copied().collect();
    Launch::oxidis().args(&all)
}

/// See [`launch_ours`].
pub(crate) fn ours(args: &[&str]) -> Server {
    launch_ours(args).start()
}

/// Debian's, quick to synchronize.
pub(crate) fn redis(args: &[&str]) -> Server {
    let mut all = args.to_vec();
    all.extend(["--repl-diskless-sync-delay", "0"]);
    Server::redis(&all)
}

/// Has a server follow another one.
pub(crate) fn link(replica: &Server, port: u16) {
    replica.client().check(&format!("REPLICAOF 127.0.0.1 {port}"), "+OK...");
}

/// Waits for the link to stand.
#[track_caller]
pub(crate) fn up(replica: &Server) {
    let mut client = replica.client();
    let log = || log_of(replica);
    let end = std::time::Instant::now() + LIMIT;
    loop {
        let status = client.info("master_link_status").unwrap_or_default();
        if status == "up" {
            return;
        }
        assert!(std::time::Instant::now() < end, "the link is {status}\n{}", log());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Has a server follow another one, and waits for it to have begun.
#[track_caller]
pub(crate) fn follow(replica: &Server, port: u16) {
    link(replica, port);
    up(replica);
}

/// Waits until both have the same data.
#[track_caller]
pub(crate) fn equal(primary: &Server, replica: &Server) {
    let (mut at_primary, mut at_replica) = (primary.client(), replica.client());
    let digest = |client: &mut Client| client.run("DEBUG DIGEST").to_string();
    let end = std::time::Instant::now() + LIMIT;
    loop {
        let (ours, theirs) = (digest(&mut at_primary), digest(&mut at_replica));
        if ours == theirs {
            return;
        }
        if std::time::Instant::now() > end {
            let difference = first_difference(&mut at_primary, &mut at_replica);
            panic!("{ours} at the primary, {theirs} at the replica: {difference}\n{}", log_of(replica));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn first_difference(primary: &mut Client, replica: &mut Client) -> String {
    for db in 0..16 {
        let select = format!("SELECT {db}");
        primary.run(&select);
        replica.run(&select);
        let keys = |client: &mut Client| {
            let mut keys: Vec<Vec<u8>> = match client.run("KEYS *") {
                testkit::Reply::Array(keys) => keys.into_iter().map(|key| key.text().into_bytes()).collect(),
                other => panic!("{other}"),
            };
            keys.sort();
            keys
        };
        let (here, there) = (keys(primary), keys(replica));
        for key in here.iter().chain(&there) {
            for command in ["PEXPIRETIME", "OBJECT ENCODING", "DUMP"] {
                let mut words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
                words.push(key);
                let (one, other) = (primary.call(&words).unwrap(), replica.call(&words).unwrap());
                if one.to_string() != other.to_string() && command != "OBJECT ENCODING" {
                    return format!("db {db}: {command} {}: {one} and {other}", key.escape_ascii());
                }
            }
        }
    }
    "no difference is seen by DUMP".to_owned()
}

/// The end of a server's log.
pub(crate) fn log_of(server: &Server) -> String {
    let log = server.log();
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(60)..].join("\n")
}

/// Writes at random: all types, transactions, expiries, several databases.
pub(crate) struct Writer {
    clients: [Client; 2],
    generator: Generator,
    episode: u64,
}

impl Writer {
    pub(crate) fn new(server: &Server, seed: u64) -> Writer {
        let generator = Generator::new(&[], Some(2)).unwrap();
        let clients = [server.client(), server.client()];
        Writer { clients, generator, episode: testkit::seed(seed) * 100_000 }
    }

    /// Sends about so many commands.
    pub(crate) fn write(&mut self, commands: usize) {
        let mut sent = 0;
        while sent < commands {
            let episode = self.generator.episode(self.episode);
            self.episode += 1;
            for (connection, client) in self.clients.iter_mut().enumerate() {
                let mine = episode.steps.iter().filter(|step| step.connection == connection && !step.parks);
                let mine: Vec<_> = mine.filter(|step| is_tame(&step.args)).collect();
                for chunk in mine.chunks(64) {
                    chunk.iter().for_each(|step| client.send(&step.args).unwrap());
                    chunk.iter().for_each(|step| {
                        client.read().unwrap_or_else(|error| panic!("{error} for {:?}", step.args));
                    });
                    sent += chunk.len();
                }
                client.run("DISCARD");
            }
        }
    }
}

/// What would hang, end the server or change its configuration.
fn is_tame(args: &[Vec<u8>]) -> bool {
    let name = String::from_utf8_lossy(&args[0]).to_ascii_uppercase();
    let blocks = name.starts_with('B') && !name.starts_with("BIT");
    let waits = args.iter().any(|word| word.eq_ignore_ascii_case(b"block"));
    let others = [
        "CONFIG", "SHUTDOWN", "QUIT", "CLIENT", "SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "MONITOR", "RESET", "HELLO",
        "AUTH", "WAIT", "WAITAOF", "DEBUG", "SCRIPT", "EVAL", "REPLICAOF", "SLAVEOF", "FLUSHALL",
    ];
    !blocks && !waits && !others.contains(&name.as_str())
}
