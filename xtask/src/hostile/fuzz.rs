//! B2 and B10: bytes and patterns made to hurt.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use testkit::{Client, process, text};

use super::bystander::Bystander;
use super::{Context, ensure_alive, mebibytes};

/// Commands whose frames are mutated: some of each kind, none that ends or freezes a server.
const COMMANDS: &[&str] = &[
    "GET a",
    "SET a 1",
    "SET b x EX 1000",
    "APPEND a xyz",
    "INCR n",
    "INCRBYFLOAT n 1.5",
    "GETRANGE a 0 -1",
    "SETRANGE a 5 x",
    "SETBIT bits 77 1",
    "BITCOUNT bits 0 -1",
    "BITPOS bits 1",
    "BITFIELD bits INCRBY u8 3 9",
    "BITOP AND c bits a",
    "LPUSH l 1 2 3",
    "RPOP l 2",
    "LRANGE l 0 -1",
    "LINSERT l BEFORE 1 0",
    "LREM l 0 1",
    "LMOVE l l LEFT RIGHT",
    "LPOS l 1 RANK -1",
    "HSET h f v g w",
    "HGETALL h",
    "HINCRBY h n 1",
    "HDEL h f",
    "HRANDFIELD h 3 WITHVALUES",
    "HSCAN h 0 COUNT 5",
    "SADD s 1 2 a",
    "SPOP s",
    "SMEMBERS s",
    "SINTERSTORE s s s",
    "SRANDMEMBER s -5",
    "SSCAN s 0",
    "ZADD z 1 a 2 b",
    "ZRANGE z 0 -1 WITHSCORES",
    "ZRANGEBYSCORE z -inf +inf LIMIT 0 5",
    "ZUNIONSTORE z 2 z s WEIGHTS 1 2",
    "ZPOPMIN z 2",
    "ZRANK z a",
    "ZINCRBY z 1 a",
    "ZRANGE z [a (z BYLEX",
    "DEL a b c",
    "EXISTS a b",
    "TYPE a",
    "EXPIRE a 1000",
    "TTL a",
    "PERSIST a",
    "RENAME a b",
    "COPY a b REPLACE",
    "OBJECT ENCODING a",
    "DUMP a",
    "RESTORE r 0 abc",
    "SORT l ALPHA DESC",
    "SCAN 0 MATCH a* COUNT 10",
    "KEYS a*",
    "RANDOMKEY",
    "DBSIZE",
    "MULTI",
    "EXEC",
    "DISCARD",
    "WATCH a",
    "PING hello",
    "ECHO x",
    "SELECT 1",
    "CLIENT SETNAME x",
    "COMMAND GETKEYS GET a",
    "HELLO 3",
    "HELLO 2",
    "RESET",
    "SUBSCRIBE c",
    "UNSUBSCRIBE",
    "PUBLISH c m",
    "LCS a b IDX",
    "MSET a 1 b 2",
    "MGET a b c",
];

/// B2: mutated pipelines in random pieces from several threads, with half-closed connections.
pub(crate) fn frames(context: &Context<'_>) -> Result<String> {
    let frames: u64 = context.pick(60_000, 5_000_000);
    let mut server = context.server(&["--maxmemory", "200mb", "--maxmemory-policy", "allkeys-random"])?;
    let before = process::resident_bytes(server.pid())?;
    let seed = testkit::seed(fastrand::u64(..1 << 40));
    let bystander = Bystander::start(&server, "")?;
    let (sent, replies) = (AtomicU64::new(0), AtomicU64::new(0));
    let started = Instant::now();
    thread::scope(|scope| {
        for index in 0..4 {
            let (sent, replies, port) = (&sent, &replies, server.port());
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed + index);
                while sent.load(Ordering::Relaxed) < frames {
                    let Ok(mut client) = Client::connect(port) else {
                        return;
                    };
                    let (count, bytes) = pipeline(&mut random);
                    let mut rest = bytes.as_slice();
                    while !rest.is_empty() {
                        let (piece, after) = rest.split_at(random.usize(1..=rest.len()));
                        if client.send_raw(piece).is_err() {
                            break;
                        }
                        rest = after;
                    }
                    if random.u8(0..4) > 0 {
                        let _ = client.finish_sending();
                        let (got, _) = client.read_to_end(Duration::from_millis(300));
                        replies.fetch_add(got.iter().filter(|byte| **byte == b'\n').count() as u64, Ordering::Relaxed);
                    }
                    sent.fetch_add(count, Ordering::Relaxed);
                }
            });
        }
    });
    let felt = bystander.finish()?;
    ensure_alive(&mut server)?;
    let grown = process::peak_resident_bytes(server.pid())?.saturating_sub(before);
    if context.is_timed {
        felt.ensure_quick()?;
    }
    let limit = if context.is_timed { 264.0 } else { 2_048.0 };
    ensure!(
        mebibytes(grown) <= limit,
        "the server grew by {:.0} MiB: over {limit} MiB with its data",
        mebibytes(grown)
    );
    let rate = sent.load(Ordering::Relaxed) as f64 / started.elapsed().as_secs_f64();
    Ok(format!(
        "{} frames ({rate:.0}/s), {} reply lines, +{:.0} MiB, {felt}, seed {seed}",
        sent.into_inner(),
        replies.into_inner(),
        mebibytes(grown)
    ))
}

fn pipeline(random: &mut fastrand::Rng) -> (u64, Vec<u8>) {
    let count = random.u64(1..40);
    let mut bytes = Vec::new();
    for _ in 0..count {
        let mut args = text::words(COMMANDS[random.usize(0..COMMANDS.len())]);
        if random.u8(0..3) == 0 {
            let index = random.usize(0..args.len());
            args[index] = match random.u8(0..6) {
                0 => Vec::new(),
                1 => (0..random.usize(0..300)).map(|_| random.u8(..)).collect(),
                2 => b"9223372036854775807".to_vec(),
                3 => b"-1".to_vec(),
                4 => b"\r\n$3\r\n".to_vec(),
                _ => vec![b'*'; random.usize(0..2_000)],
            };
        }
        text::encode(&args, &mut bytes);
    }
    // Blocking, memory and process commands are not in the list, so a changed byte can hardly
    // spell one; what is left is the parser's and the commands' own affair.
    if random.bool() {
        for _ in 0..random.usize(1..6) {
            let at = random.usize(0..bytes.len());
            match random.u8(0..4) {
                0 => bytes[at] = random.u8(..),
                1 => bytes[at] ^= 1 << random.u8(0..8),
                2 => {
                    bytes.remove(at);
                }
                _ => bytes.insert(at, b"*$\r\n-+:09"[random.usize(0..9)]),
            }
            if bytes.is_empty() {
                break;
            }
        }
    }
    (count, bytes)
}

/// B10: patterns of many stars against texts that almost match.
pub(super) fn patterns(context: &Context<'_>) -> Result<String> {
    let stars = context.pick(20_000, 100_000);
    let mut server = context.server(&[])?;
    let mut client = server.client();
    client.set_timeout(Duration::from_secs(30))?;
    client.call(&["SET", &"a".repeat(2_000)])?;
    client.call(&["SET", &"a".repeat(2_000), "x"])?;
    client.call(&["SADD", "set", &"a".repeat(2_000)])?;
    let pattern = format!("{}b", "a*".repeat(stars));
    let classes = format!("{}b", "[a-z]*".repeat(stars / 2));
    let bystander = Bystander::start(&server, "")?;
    let mut slowest = Duration::ZERO;
    for pattern in [&pattern, &classes] {
        let commands: [&[&str]; 6] = [
            &["KEYS", pattern],
            &["SCAN", "0", "MATCH", pattern, "COUNT", "1000"],
            &["SSCAN", "set", "0", "MATCH", pattern],
            &["CONFIG", "GET", pattern],
            &["PUBSUB", "CHANNELS", pattern],
            &["COMMAND", "LIST", "FILTERBY", "PATTERN", pattern],
        ];
        for command in commands {
            let started = Instant::now();
            client.call(command)?;
            slowest = slowest.max(started.elapsed());
        }
    }
    let mut listener = server.client();
    listener.call(&["PSUBSCRIBE", &pattern])?;
    let started = Instant::now();
    client.call(&["PUBLISH", &"a".repeat(2_000), "m"])?;
    slowest = slowest.max(started.elapsed());
    let felt = bystander.finish()?;
    ensure_alive(&mut server)?;
    felt.ensure_quick()?;
    Ok(format!("{stars} stars: slowest {:.1} ms, {felt}", slowest.as_secs_f64() * 1e3))
}
