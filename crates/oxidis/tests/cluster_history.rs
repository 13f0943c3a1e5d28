//! What clients of the proxies see while slots move back and forth and processes are killed: each key is a register whose
//! history must be linearizable, so that no acknowledged write is lost and no read is stale.
//!
//! `OXIDIS_HISTORY_SECONDS` makes it longer, `OXIDIS_HISTORY_SEED` begins it from another seed.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;
#[path = "common/up.rs"]
mod up;

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use testkit::history::{Action, Operation, check_unique_writes};
use testkit::process::{Signal, send_signal};
use testkit::{Client, Reply, wait_until};
use up::{PATIENCE, Up, base_port};

const SECONDS: u64 = 5;
const SEED: u64 = 7;
const CLIENTS: u64 = 6;
/// Registers at a time, in as many slots.
const REGISTERS: usize = 12;
/// How long a set of registers is used: the checker likes short histories.
const ROUND: Duration = Duration::from_millis(500);
/// What moves.
const MOVED: std::ops::RangeInclusive<i64> = 0..=99;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// What all threads share.
struct Run {
    began: Instant,
    port: u16,
    tags: Vec<String>,
    values: AtomicU64,
    is_over: AtomicBool,
}

impl Run {
    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap()
    }

    fn key(&self, random: &mut fastrand::Rng) -> String {
        let round = self.began.elapsed().as_millis() / ROUND.as_millis();
        format!("{{{}}}:{round}", self.tags[random.usize(0..self.tags.len())])
    }

    fn value(&self) -> u64 {
        self.values.fetch_add(1, Ordering::Relaxed) + 1
    }
}

#[derive(Default)]
struct Seen {
    histories: BTreeMap<String, Vec<Operation>>,
    refused: BTreeMap<String, u64>,
    breaks: u64,
}

impl Seen {
    fn note(&mut self, key: &str, action: Action, called: u64, returned: Option<u64>) {
        self.histories.entry(key.to_owned()).or_default().push(Operation { action, called, returned });
    }

    fn add(&mut self, other: Seen) {
        for (key, operations) in other.histories {
            self.histories.entry(key).or_default().extend(operations);
        }
        for (text, count) in other.refused {
            *self.refused.entry(text).or_default() += count;
        }
        self.breaks += other.breaks;
    }
}

/// What a read gave.
fn value_of(reply: &Reply) -> Option<u64> {
    match reply {
        Reply::Bulk(bytes) => Some(std::str::from_utf8(bytes).unwrap().parse().unwrap()),
        _ => None,
    }
}

/// Reads and writes one or two registers at a time until the run is over.
fn work(run: &Run, seed: u64) -> Seen {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut seen = Seen::default();
    let mut client: Option<Client> = None;
    while !run.is_over.load(Ordering::Relaxed) {
        let mut keys = vec![run.key(&mut random)];
        if random.u8(0..8) == 0 {
            keys.push(run.key(&mut random));
            keys.dedup();
        }
        let writes: Option<Vec<u64>> = random.bool().then(|| keys.iter().map(|_| run.value()).collect());
        let words: Vec<String> = match &writes {
            None => [vec!["MGET".to_owned()], keys.clone()].concat(),
            Some(values) => {
                let pairs = keys.iter().zip(values).flat_map(|(key, value)| [key.clone(), value.to_string()]);
                ["MSET".to_owned()].into_iter().chain(pairs).collect()
            }
        };
        let called = run.now();
        let mut ask = || -> io::Result<Reply> {
            if client.is_none() {
                let fresh = Client::connect(run.port + random.u16(0..2))?;
                fresh.set_timeout(PATIENCE)?;
                client = Some(fresh);
            }
            client.as_mut().unwrap().call(&words)
        };
        let reply = ask();
        let returned = run.now();
        let is_known = matches!(&reply, Ok(reply) if !reply.is_error());
        match &reply {
            Err(_) => {
                // Its proxy is gone: whether a write was done is not known.
                client = None;
                seen.breaks += 1;
            }
            Ok(reply) if reply.is_error() => *seen.refused.entry(reply.text()).or_default() += 1,
            Ok(_) => {}
        }
        match (&writes, &reply) {
            (Some(values), _) => {
                for (key, value) in keys.iter().zip(values) {
                    seen.note(key, Action::Write(*value), called, is_known.then_some(returned));
                }
            }
            (None, Ok(reply)) if is_known => {
                for (key, item) in keys.iter().zip(reply.items().unwrap()) {
                    seen.note(key, Action::Read(value_of(item)), called, Some(returned));
                }
            }
            (None, _) => {}
        }
        if !is_known {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    seen
}

/// Moves the slots back and forth until the run is over; how often they went.
fn keep_moving(up: &Up, run: &Run) -> usize {
    let mut to = 2;
    while !run.is_over.load(Ordering::Relaxed) {
        let range = format!("{}-{}", MOVED.start(), MOVED.end());
        // Refused while the manager is away.
        if up.admin(&format!("move start {range} {to}")).code != Some(0) {
            std::thread::sleep(Duration::from_millis(20));
            continue;
        }
        up.wait_moved();
        to = 3 - to;
    }
    up.stages().unwrap().len()
}

#[test]
fn histories_through_the_proxies_are_linearizable_while_slots_move_and_processes_die() {
    let seconds = setting("OXIDIS_HISTORY_SECONDS", SECONDS);
    let seed = setting("OXIDIS_HISTORY_SEED", SEED);
    let folder = tempfile::tempdir().unwrap();
    let port = base_port(8);
    let up = Up::start(folder.path(), port, &["--groups", "2", "--replicas", "1", "--proxies", "2"]);
    // Most registers are in slots that move, some stay.
    let mut server = Client::connect(port + 101).unwrap();
    let mut moved: Vec<String> = Vec::new();
    for index in 0.. {
        let slot = server.call(&["CLUSTER", "KEYSLOT", &format!("t{index}")]).unwrap().integer().unwrap();
        if MOVED.contains(&slot) {
            moved.push(format!("t{index}"));
            if moved.len() == REGISTERS - 2 {
                break;
            }
        }
    }
    moved.extend(["a".to_owned(), "b".to_owned()]);
    let run =
        Run { began: Instant::now(), port, tags: moved, values: AtomicU64::new(0), is_over: AtomicBool::new(false) };
    let run = &run;
    let up_ref = &up;
    let (mut seen, moves) = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..CLIENTS).map(|index| scope.spawn(move || work(run, seed * 1_000 + index))).collect();
        let mover = scope.spawn(move || keep_moving(up_ref, run));
        let mut random = fastrand::Rng::with_seed(seed);
        // A proxy, then the manager, then another proxy, …
        let victims = [(port + 1).to_string(), "manager".to_owned(), port.to_string()];
        let mut victims = victims.iter().cycle();
        let end = Duration::from_secs(seconds);
        let mut next = Duration::from_millis(random.u64(800..1_200));
        while run.began.elapsed() < end {
            if run.began.elapsed() >= next {
                let killed = up.pid_of(victims.next().unwrap());
                send_signal(killed, Signal::Kill).unwrap();
                next = run.began.elapsed() + Duration::from_millis(random.u64(1_300..2_000));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        run.is_over.store(true, Ordering::Relaxed);
        let mut seen = Seen::default();
        for worker in workers {
            seen.add(worker.join().unwrap());
        }
        (seen, mover.join().unwrap())
    });
    // What is there at the end, read last.
    wait_until("the proxy", PATIENCE, || {
        let reply = Client::connect(port).and_then(|mut client| client.call(&["PING"]));
        if reply.as_ref().is_ok_and(|reply| !reply.is_error()) { Ok(()) } else { Err(format!("{reply:?}")) }
    });
    let mut client = up.client();
    let keys: Vec<String> = seen.histories.keys().cloned().collect();
    for key in keys {
        let called = run.now();
        let reply = client.call(&["GET", &key]).unwrap();
        assert!(!reply.is_error(), "{key}: {reply:?}");
        seen.note(&key, Action::Read(value_of(&reply)), called, Some(run.now()));
    }
    let operations: usize = seen.histories.values().map(Vec::len).sum();
    for (key, history) in &seen.histories {
        if let Err(wrong) = check_unique_writes(history) {
            panic!("seed {seed}, register {key}: {wrong}; {history:?}");
        }
    }
    println!("{operations} operations, {moves} moves, {} broken links, refused: {:?}", seen.breaks, seen.refused);
    // Slots that move are nothing that clients see. A manager that ends in the middle of a cut-over and is not back within
    // `backend-timeout` is: the slots are held until then, and whoever waits for them is told.
    let odd: Vec<&String> = seen.refused.keys().filter(|text| !text.contains("did not answer in")).collect();
    assert!(odd.is_empty(), "{:?}", seen.refused);
    assert!(moves >= 2 && operations > 500, "{moves} moves, {operations} operations");
    up.stop();
}
