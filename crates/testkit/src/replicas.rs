//! Servers that follow each other, and somebody who writes to them.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::differential::generator::Generator;
use crate::differential::vocabulary::VALUES;
use crate::{Client, Launch, Reply, Server};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(20);

/// One of ours, quick to synchronize.
pub fn launch_ours(args: &[&str]) -> Launch {
    let both = ["--repl-diskless-sync-delay", "0", "--io-threads", "2"];
    let has = |name: &str| args.contains(&name);
    let defaults = both.chunks(2).filter(|pair| !has(pair[0])).flatten();
    let all: Vec<&str> = args.iter().chain(defaults).copied().collect();
    Launch::oxidis().args(&all)
}

/// See [`launch_ours`].
///
/// # Panics
/// When it does not start.
pub fn ours(args: &[&str]) -> Server {
    launch_ours(args).start()
}

/// Debian's, quick to synchronize.
///
/// # Panics
/// When it does not start.
pub fn redis(args: &[&str]) -> Server {
    let mut all = args.to_vec();
    all.extend(["--repl-diskless-sync-delay", "0"]);
    Server::redis(&all)
}

/// Has a server follow another one.
///
/// # Panics
/// When it refuses.
pub fn link(replica: &Server, port: u16) {
    replica.client().check(&format!("REPLICAOF 127.0.0.1 {port}"), "+OK...");
}

/// Waits for the link to stand.
///
/// # Panics
/// When it does not stand within twenty seconds.
#[track_caller]
pub fn up(replica: &Server) {
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
///
/// # Panics
/// When the link does not stand within twenty seconds.
#[track_caller]
pub fn follow(replica: &Server, port: u16) {
    link(replica, port);
    up(replica);
}

/// Waits until both have the same data.
///
/// # Panics
/// When they differ after twenty seconds.
#[track_caller]
pub fn equal(primary: &Server, replica: &Server) {
    let (mut at_primary, mut at_replica) = (primary.client(), replica.client());
    let digest = |client: &mut Client| client.run("DEBUG DIGEST").to_string();
    let end = std::time::Instant::now() + LIMIT;
    loop {
        let (ours, theirs) = (digest(&mut at_primary), digest(&mut at_replica));
        if ours == theirs {
            return;
        }
        let is_late = std::time::Instant::now() > end;
        // Redis 7.0 and 7.2 write the scores of a digest differently.
        if is_late
            || (tells_version(&mut at_primary) != tells_version(&mut at_replica)
                && is_quiet(&mut at_primary, &mut at_replica))
        {
            let Some(difference) = first_difference(&mut at_primary, &mut at_replica) else { return };
            if !is_late {
                continue;
            }
            panic!("{ours} at the primary, {theirs} at the replica: {difference}\n{}", log_of(replica));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn tells_version(client: &mut Client) -> String {
    client.info("redis_version").unwrap_or_default()
}

/// Whether the replica has applied all there is.
fn is_quiet(primary: &mut Client, replica: &mut Client) -> bool {
    primary.info("master_repl_offset") == replica.info("slave_repl_offset")
}

/// What a key holds, in a form that both versions agree on.
fn content(client: &mut Client, key: &[u8]) -> String {
    let mut ask = |words: &[&str]| {
        let words: Vec<&[u8]> = words.iter().map(|word| if *word == "KEY" { key } else { word.as_bytes() }).collect();
        client.call(&words).unwrap()
    };
    let kind = ask(&["TYPE", "KEY"]).text();
    let ends = ask(&["PEXPIRETIME", "KEY"]);
    let sorted = |reply: Reply, by: usize| {
        let Reply::Array(all) = reply else { return reply.to_string() };
        let words: Vec<String> = all.iter().map(ToString::to_string).collect();
        let mut groups: Vec<String> = words.chunks(by).map(|group| group.join("=")).collect();
        groups.sort();
        groups.join(" ")
    };
    let held = match kind.as_str() {
        "string" => ask(&["GET", "KEY"]).to_string(),
        "list" => ask(&["LRANGE", "KEY", "0", "-1"]).to_string(),
        "set" => sorted(ask(&["SMEMBERS", "KEY"]), 1),
        "hash" => sorted(ask(&["HGETALL", "KEY"]), 2),
        "zset" => match ask(&["ZRANGE", "KEY", "0", "-1", "WITHSCORES"]) {
            Reply::Array(all) => {
                let pairs = all.chunks(2).map(|pair| {
                    let score: f64 = pair[1].text().parse().unwrap();
                    format!("{}={score:?}", pair[0])
                });
                pairs.collect::<Vec<_>>().join(" ")
            }
            other => other.to_string(),
        },
        _ => {
            let entries = ask(&["XRANGE", "KEY", "-", "+"]).to_string();
            let info = ask(&["XINFO", "STREAM", "KEY"]).to_string();
            let last =
                info.split("last-generated-id ").nth(1).and_then(|rest| rest.split(' ').next()).map(str::to_owned);
            format!("{entries} last {last:?}")
        }
    };
    format!("{kind} until {ends}: {held}")
}

fn first_difference(primary: &mut Client, replica: &mut Client) -> Option<String> {
    for db in 0..16 {
        let select = format!("SELECT {db}");
        primary.run(&select);
        replica.run(&select);
        let keys = |client: &mut Client| {
            let mut keys: Vec<Vec<u8>> = match client.run("KEYS *") {
                Reply::Array(keys) => keys
                    .into_iter()
                    .filter_map(|key| if let Reply::Bulk(key) = key { Some(key) } else { None })
                    .collect(),
                other => panic!("{other}"),
            };
            keys.sort();
            keys
        };
        let (here, there) = (keys(primary), keys(replica));
        for key in here.iter().chain(&there) {
            let (one, other) = (content(primary, key), content(replica, key));
            if one != other {
                return Some(format!("db {db}: {}: {one}\nand {other}", key.escape_ascii()));
            }
        }
    }
    None
}

/// The end of a server's log.
pub fn log_of(server: &Server) -> String {
    let log = server.log();
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(60)..].join("\n")
}

/// Writes at random: all types, transactions, expiries, several databases.
#[derive(Debug)]
pub struct Writer {
    clients: [Client; 2],
    generator: Generator,
    episode: u64,
}

impl Writer {
    /// A writer whose commands follow from `seed` (or `OXIDIS_SEED`).
    ///
    /// # Panics
    /// When the server does not take the connections.
    pub fn new(server: &Server, seed: u64) -> Writer {
        let generator = Generator::new(&VALUES.map(String::from), Some(2)).unwrap();
        let clients = [server.client(), server.client()];
        Writer { clients, generator, episode: crate::seed(seed) * 100_000 }
    }

    /// Sends about so many commands.
    ///
    /// # Panics
    /// When the server ends.
    pub fn write(&mut self, commands: usize) {
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
        "CONFIG",
        "SHUTDOWN",
        "QUIT",
        "CLIENT",
        "SUBSCRIBE",
        "PSUBSCRIBE",
        "SSUBSCRIBE",
        "MONITOR",
        "RESET",
        "HELLO",
        "AUTH",
        "WAIT",
        "WAITAOF",
        "DEBUG",
        "SCRIPT",
        "EVAL",
        "REPLICAOF",
        "SLAVEOF",
        "FLUSHALL",
        // Redis does not tell replicas of strings that a failed step has made longer.
        "BITFIELD",
    ];
    !blocks && !waits && !others.contains(&name.as_str())
}
