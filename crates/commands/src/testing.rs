//! What tests of command functions run on: a keyspace of their own, and a real server to compare with.
//!
//! [`Bench`] runs command lines on an empty keyspace with the gate closed, so that any key may be touched, and shows
//! replies as one readable line: `$5 hello`, `*2 :1 $-1`, `-ERR syntax error`. SELECT, HELLO and FLUSHALL are the
//! harness' own: enough of them to choose a database and a protocol version.
//!
//! [`differential`] runs the same lines here and on a `redis-server` (the one that the variable `REDIS_SERVER` names, else
//! the one on the path; without any the test passes vacuously) and compares replies byte for byte. From 7.2 on it also
//! compares keyspace notifications, `dirty`, and the counts of hits and misses. Marks at the start of a line:
//!
//! | mark | meaning |
//! |------|---------|
//! | `~`  | the order of the reply's elements is free |
//! | `!`  | only run, compare nothing |
//! | `7.2 `| run only when the server is at least that |

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    missing_docs
)]

use crate::ctx::{Block, Ctx, Settings};
use crate::table::{self, Flags, errors};
use keyspace::eviction::{AccessClock, Policy};
use keyspace::slot::SlotSpace;
use keyspace::{DbIndex, DbView, Events, Keyspace, LockSet, NotifyClass};
use resp::{Args, Proto, Reply};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Settings as a fresh server has them.
pub(crate) fn settings() -> Settings {
    Settings {
        hash: keyspace::hash::Limits { max_listpack_entries: 512, max_listpack_value: 64 },
        set: keyspace::set::Limits { max_intset_entries: 512, max_listpack_entries: 128, max_listpack_value: 64 },
        zset: keyspace::zset::ZSetLimits::default(),
        list: keyspace::list::ListLimits::default(),
        hll_sparse_max_bytes: 3000,
        stream: keyspace::stream::StreamLimits::default(),
        max_bulk: 512 << 20,
        policy: Policy::NoEviction,
    }
}

/// A keyspace and one client.
pub(crate) struct Bench {
    pub(crate) locks: LockSet,
    pub(crate) events: Events,
    pub(crate) settings: Settings,
    pub(crate) now_ms: i64,
    pub(crate) db: DbIndex,
    pub(crate) proto: Proto,
    pub(crate) may_block: bool,
    /// What the last command waits for.
    pub(crate) block: Option<Block>,
    /// The log factor is 0 so that LFU counters are predictable.
    pub(crate) clock: AccessClock,
    alone: Option<keyspace::lockset::Alone>,
}

impl Bench {
    /// An empty keyspace of 16 databases.
    pub(crate) fn new() -> Bench {
        let mut locks = LockSet::new(Keyspace::new(SlotSpace::Redis, 16));
        locks.enter();
        let alone = locks.begin_alone();
        assert!(alone.is_some(), "nobody else uses the keyspace");
        let events = Events { wanted: NotifyClass(u32::MAX), ..Events::default() };
        let now_ms = 1_700_000_000_000;
        let clock = AccessClock::at(now_ms, false, 0, 1);
        Bench {
            locks,
            events,
            settings: settings(),
            now_ms,
            db: DbIndex(0),
            proto: Proto::Resp2,
            may_block: false,
            block: None,
            clock,
            alone,
        }
    }

    /// Lets time pass.
    pub(crate) fn advance(&mut self, ms: i64) {
        self.now_ms += ms;
        self.clock = AccessClock::at(self.now_ms, self.clock.lfu, self.clock.log_factor, self.clock.decay_minutes);
    }

    /// Lends a context over the keyspace.
    pub(crate) fn with_ctx<R>(&mut self, reply: &mut Reply, work: impl FnOnce(&mut Ctx<'_>) -> R) -> R {
        let db = DbView::new(&mut self.locks, &mut self.events, self.db, self.now_ms, self.clock);
        let mut ctx = Ctx { db, out: reply, settings: &self.settings, may_block: self.may_block, block: None };
        let result = work(&mut ctx);
        let block = ctx.block.take();
        self.block = block;
        result
    }

    /// Runs one command and gives the reply's bytes; nothing when the command asked to be blocked.
    pub(crate) fn run_args(&mut self, args: &[&[u8]]) -> Vec<u8> {
        let args = Args::from_slices(args);
        let mut reply = Reply::with_buffer(Vec::new(), self.proto);
        if let Err(error) = self.dispatch(args, &mut reply) {
            reply.truncate(0);
            reply.error(error);
        }
        reply.buf
    }

    fn dispatch(&mut self, args: Args<'_>, reply: &mut Reply) -> Result<(), String> {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        match args[0].to_ascii_lowercase().as_slice() {
            b"select" => {
                self.db = DbIndex(std::str::from_utf8(&args[1]).unwrap().parse().unwrap());
                reply.ok();
                return Ok(());
            }
            b"hello" => {
                self.proto = if &args[1] == b"3" { Proto::Resp3 } else { Proto::Resp2 };
                reply.ok();
                return Ok(());
            }
            b"flushall" => {
                for slot in self.locks.keyspace().clone().slots() {
                    self.locks.empty_slot(slot, None, self.now_ms, &mut Vec::new());
                }
                reply.ok();
                return Ok(());
            }
            _ => {}
        }
        let mut spec = table::lookup(&args[0]).ok_or_else(|| text(errors::unknown_command(&args)))?;
        if spec.is_container() && args.len() > 1 {
            spec = table::lookup_sub(spec, &args[1]).ok_or_else(|| text(errors::unknown_subcommand(&args)))?;
        }
        if !table::arity_ok(spec, args.len()) {
            return Err(errors::wrong_arity(spec));
        }
        let handler = crate::handler(spec.id).unwrap_or_else(|| panic!("{} has no function", spec.name));
        let (notified, dirty) = (self.events.notifications.len(), self.events.dirty);
        if let Some(cost) = crate::cost(spec.id) {
            self.with_ctx(reply, |ctx| cost(ctx, args));
            assert_eq!(
                (notified, dirty),
                (self.events.notifications.len(), self.events.dirty),
                "a cost function changes nothing"
            );
            assert!(reply.is_empty(), "a cost function writes nothing");
        }
        let result = self.with_ctx(reply, |ctx| handler(ctx, args));
        // PFCOUNT reads, but may renew the count that the value caches.
        let is_write = spec.flags.intersects(Flags::WRITE.with(Flags::MAY_REPLICATE));
        assert!(is_write || self.events.dirty == dirty, "{} is no writer, but counts a change", spec.name);
        match result {
            Ok(()) if self.block.is_some() => assert!(reply.is_empty(), "a blocking command has answered"),
            Ok(()) => assert!(!reply.is_empty(), "{} has not answered", spec.name),
            Err(error) => {
                assert_eq!(self.events.dirty, dirty, "{} has changed something and then failed", spec.name);
                return Err(error.0.into_owned());
            }
        }
        Ok(())
    }

    /// Runs a command line (quoted as redis-cli reads it); the reply as one readable line.
    pub(crate) fn run(&mut self, line: &str) -> String {
        let args = split(line);
        let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
        let reply = self.run_args(&args);
        if self.block.is_some() { "(blocked)".into() } else { show(&reply) }
    }

    /// Asserts the reply of a line.
    #[track_caller]
    pub(crate) fn check(&mut self, line: &str, expected: &str) {
        let reply = self.run(line);
        assert_eq!(reply, expected, "reply of {line}");
    }

    /// Asserts the replies of many lines, each `command => reply`; empty lines and those with `#` are passed over.
    #[track_caller]
    pub(crate) fn check_all(&mut self, lines: &str) {
        for line in lines.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (command, expected) = line.rsplit_once("=>").expect("command => reply");
            self.check(command.trim(), expected.trim());
        }
    }

    /// Takes the notifications since the last call, each as `event key` (`event key@db` outside of database 0).
    pub(crate) fn take_events(&mut self) -> Vec<String> {
        let notifications = std::mem::take(&mut self.events.notifications);
        notifications
            .into_iter()
            .map(|noted| {
                let key = noted.key.escape_ascii().to_string();
                if noted.db.0 == 0 {
                    format!("{} {key}", noted.event)
                } else {
                    format!("{} {key}@{}", noted.event, noted.db.0)
                }
            })
            .collect()
    }

    /// Takes the count of changes since the last call.
    pub(crate) fn take_dirty(&mut self) -> u64 {
        std::mem::take(&mut self.events.dirty)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if let Some(alone) = self.alone.take() {
            self.locks.end_alone(alone);
        }
    }
}

/// Asserts the replies of lines on a fresh keyspace; see [`Bench::check_all`].
#[track_caller]
pub(crate) fn check_all(lines: &str) {
    Bench::new().check_all(lines);
}

/// A line as arguments.
pub(crate) fn split(line: &str) -> Vec<Vec<u8>> {
    resp::split_args(line.as_bytes()).unwrap_or_else(|| panic!("unbalanced quotes: {line}"))
}

/// A reply as one readable line.
pub(crate) fn show(reply: &[u8]) -> String {
    let text = reply.escape_ascii().to_string();
    text.strip_suffix("\\r\\n").unwrap_or(&text).replace("\\r\\n", " ").replace("\\\"", "\"").replace("\\'", "'")
}

/// A real server on a port of its own, killed in the end.
pub(crate) struct Oracle {
    child: Child,
    stream: TcpStream,
    events: TcpStream,
    buffer: Vec<u8>,
    event_buffer: Vec<u8>,
    /// Major and minor.
    pub(crate) version: (u32, u32),
    last: [i64; 3],
}

impl Oracle {
    /// Starts a server; `None` where there is none.
    pub(crate) fn start(extra: &[&str]) -> Option<Oracle> {
        let program = std::env::var("REDIS_SERVER").unwrap_or_else(|_| "redis-server".into());
        let port = free_port();
        let child = Command::new(program)
            .args(["--port", &port.to_string(), "--save", "", "--notify-keyspace-events", "AmnE", "--daemonize", "no"])
            .args(["--enable-debug-command", "yes", "--appendonly", "no", "--dir", "/tmp", "--loglevel", "warning"])
            .args(extra)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let connect = || {
            let stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
            stream.set_nodelay(true).ok()?;
            stream.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
            Some(stream)
        };
        let stream = (0..200).find_map(|_| {
            std::thread::sleep(Duration::from_millis(25));
            connect()
        })?;
        let events = connect()?;
        let mut oracle = Oracle {
            child,
            stream,
            events,
            buffer: Vec::new(),
            event_buffer: Vec::new(),
            version: (0, 0),
            last: [0; 3],
        };
        let info = String::from_utf8_lossy(&oracle.ask(&[b"INFO", b"server"])).into_owned();
        let version = info.split_once("redis_version:").map(|(_, rest)| rest).unwrap_or("0.0.0");
        let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
        oracle.version = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
        send(&mut oracle.events, &[b"PSUBSCRIBE", b"__keyevent@*", b"sync"]);
        for _ in 0..2 {
            receive(&mut oracle.events, &mut oracle.event_buffer);
        }
        oracle.deltas();
        Some(oracle)
    }

    /// Sends one command and gives the reply's bytes.
    pub(crate) fn ask(&mut self, args: &[&[u8]]) -> Vec<u8> {
        send(&mut self.stream, args);
        receive(&mut self.stream, &mut self.buffer)
    }

    /// Notifications since the last call, as [`Bench::take_events`] shows them.
    pub(crate) fn take_events(&mut self) -> Vec<String> {
        self.ask(&[b"PUBLISH", b"sync", b"1"]);
        let mut events = Vec::new();
        loop {
            let message = receive(&mut self.events, &mut self.event_buffer);
            let parts = parts_of(&message);
            if parts[2] == b"sync" {
                return events;
            }
            let channel = String::from_utf8_lossy(&parts[2]).into_owned();
            let (place, event) = channel.split_once("__:").unwrap();
            let db = place.trim_start_matches("__keyevent@");
            let key = parts[3].escape_ascii().to_string();
            events.push(if db == "0" { format!("{event} {key}") } else { format!("{event} {key}@{db}") });
        }
    }

    /// Changes, hits and misses since the last call.
    pub(crate) fn deltas(&mut self) -> [i64; 3] {
        let mut info = String::from_utf8_lossy(&self.ask(&[b"INFO", b"persistence"])).into_owned();
        info.push_str(&String::from_utf8_lossy(&self.ask(&[b"INFO", b"stats"])));
        let field = |name: &str| -> i64 {
            let text = info.split_once(name).unwrap().1;
            text[..text.find('\r').unwrap()].parse().unwrap()
        };
        let now = [field("rdb_changes_since_last_save:"), field("keyspace_hits:"), field("keyspace_misses:")];
        let last = std::mem::replace(&mut self.last, now);
        [now[0] - last[0], now[1] - last[1], now[2] - last[2]]
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port below 15000 that nobody listens on.
fn free_port() -> u16 {
    loop {
        let port = fastrand::u16(10_001..15_000);
        if std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

fn send(stream: &mut TcpStream, args: &[&[u8]]) {
    let mut request = Reply::new();
    request.array(args.len());
    for arg in args {
        request.bulk(arg);
    }
    stream.write_all(&request.buf).unwrap();
}

fn receive(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Vec<u8> {
    let mut state = resp::SkipState::new();
    loop {
        if let Some(skipped) = resp::skip_reply(buffer, &mut state).unwrap() {
            let rest = buffer.split_off(skipped.consumed);
            return std::mem::replace(buffer, rest);
        }
        let mut chunk = [0; 65536];
        let count = stream.read(&mut chunk).expect("the server answers");
        assert!(count > 0, "the server has gone");
        buffer.extend_from_slice(&chunk[..count]);
    }
}

/// The bulk strings of a flat array.
fn parts_of(message: &[u8]) -> Vec<Vec<u8>> {
    let mut parts = Vec::new();
    let mut at = message.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    while at < message.len() {
        let end = at + message[at..].iter().position(|byte| *byte == b'\n').unwrap();
        let len: Option<usize> =
            (message[at] == b'$').then(|| std::str::from_utf8(&message[at + 1..end - 1]).unwrap().parse().unwrap());
        let Some(len) = len else {
            at = end + 1;
            continue;
        };
        parts.push(message[end + 1..end + 1 + len].to_vec());
        at = end + 1 + len + 2;
    }
    parts
}

/// Runs lines here and on a real server, in order, and compares. See the module for the marks.
#[track_caller]
pub(crate) fn differential(lines: &str) {
    differential_with(&mut Bench::new(), &[], lines);
}

/// As [`differential`], on a prepared bench and with arguments for the server.
#[track_caller]
pub(crate) fn differential_with(bench: &mut Bench, extra: &[&str], lines: &str) {
    let Some(mut oracle) = Oracle::start(extra) else {
        eprintln!("no redis-server here: nothing compared");
        return;
    };
    let strict = oracle.version >= (7, 2);
    let mut failures = Vec::new();
    let mut compared = 0;
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let line = match line.strip_prefix("7.2 ") {
            Some(_) if !strict => continue,
            Some(rest) => rest,
            None => line,
        };
        let (free_order, line) = line.strip_prefix('~').map_or((false, line), |rest| (true, rest));
        let (only_run, line) = line.strip_prefix('!').map_or((false, line), |rest| (true, rest));
        let args = split(line);
        let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
        let before = (bench.events.dirty, bench.events.hits, bench.events.misses);
        let mut ours = vec![show(&bench.run_args(&args))];
        let mut theirs = vec![show(&oracle.ask(&args))];
        if free_order {
            for reply in [&mut ours[0], &mut theirs[0]] {
                let mut words: Vec<&str> = reply.split(' ').collect();
                words.sort_unstable();
                *reply = words.join(" ");
            }
        }
        ours.extend(bench.take_events());
        theirs.extend(oracle.take_events());
        let counts = |now: u64, before: u64| i64::try_from(now - before).unwrap();
        let our_counts = [
            counts(bench.events.dirty, before.0),
            counts(bench.events.hits, before.1),
            counts(bench.events.misses, before.2),
        ];
        let their_counts = oracle.deltas();
        let ours_harness =
            ["hello", "select", "flushall"].contains(&args[0].to_ascii_lowercase().escape_ascii().to_string().as_str());
        if only_run || ours_harness {
            continue;
        }
        if strict {
            ours.push(format!("dirty, hits, misses {our_counts:?}"));
            theirs.push(format!("dirty, hits, misses {their_counts:?}"));
        } else {
            ours.truncate(1);
            theirs.truncate(1);
        }
        compared += 1;
        if ours != theirs {
            failures.push(format!("{line}\n   ours: {ours:?}\n  redis: {theirs:?}"));
        }
    }
    assert!(failures.is_empty(), "{} of {compared} lines differ:\n{}", failures.len(), failures.join("\n"));
}
