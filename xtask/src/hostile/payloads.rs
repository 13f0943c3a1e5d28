//! B4: damaged DUMP payloads with a right checksum, and then every command of the type on what was taken.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use testkit::process;
use testkit::snapshot::crc64;
use testkit::{Client, Reply, text};

use super::old_values;
use super::{Context, ensure_alive, mebibytes};

/// Payloads sent at once.
const BATCH: usize = 16;
/// Longest time a batch of restores, or the commands on one value, may take.
const HANG: Duration = Duration::from_secs(1);
/// Memory that all of it may cost.
const GROWTH_MIB: f64 = 256.0;

/// Commands on the key `K` by the type of what it holds.
const COMMANDS: &[(&str, &str)] = &[
    (
        "string",
        "GET K; STRLEN K; GETRANGE K 0 -1; BITCOUNT K; BITPOS K 1; LCS K K LEN; PFCOUNT K; PFADD K a b; APPEND K x; \
         SETRANGE K 3 yz; SETBIT K 77 1; BITFIELD K GET u8 3 INCRBY i5 2 1; INCR K; INCRBYFLOAT K 1.5; GETEX K PERSIST",
    ),
    (
        "list",
        "LLEN K; LRANGE K 0 -1; LINDEX K -1; LPOS K a RANK -1; LINSERT K BEFORE a b; LSET K 0 x; LREM K 0 a; \
         LPUSH K p q; RPUSH K r; SORT K ALPHA; LMOVE K K LEFT RIGHT; LTRIM K 0 50; LPOP K 2; RPOP K; LMPOP 1 K LEFT COUNT 3",
    ),
    (
        "set",
        "SCARD K; SMEMBERS K; SISMEMBER K a; SMISMEMBER K a 1 2; SRANDMEMBER K -5; SRANDMEMBER K 3; SSCAN K 0 COUNT 100; \
         SINTER K K; SUNIONSTORE O K K; SDIFFSTORE O K O; SINTERCARD 2 K K; SORT K ALPHA; SADD K a 1 100000; SREM K a 5; \
         SMOVE K O 1; SPOP K; SPOP K 3",
    ),
    (
        "zset",
        "ZCARD K; ZRANGE K 0 -1 WITHSCORES; ZRANGE K 0 -1 REV; ZCOUNT K -inf +inf; ZRANK K a; ZSCORE K a; ZMSCORE K a m; \
         ZRANGEBYSCORE K 0 5 LIMIT 0 3; ZRANGEBYLEX K - +; ZLEXCOUNT K - +; ZRANDMEMBER K -5 WITHSCORES; ZSCAN K 0; \
         ZUNIONSTORE O 2 K K; ZINTER 2 K K WITHSCORES; ZDIFF 2 K O; ZADD K 1 a 2 b; ZADD K GT CH 3 a; ZINCRBY K 1.5 a; \
         ZREM K b; ZREMRANGEBYSCORE K 100 200; ZREMRANGEBYRANK K 0 0; ZRANGESTORE O K 0 -1; ZPOPMIN K; ZPOPMAX K 2; \
         ZMPOP 1 K MIN COUNT 2",
    ),
    (
        "hash",
        "HLEN K; HGETALL K; HKEYS K; HVALS K; HGET K f; HMGET K f g; HSTRLEN K f; HEXISTS K f; HRANDFIELD K -5 WITHVALUES; \
         HSCAN K 0; HSET K f v n 1; HINCRBY K n 1; HINCRBYFLOAT K n 1.5; HSETNX K f w; HDEL K f g",
    ),
    (
        "stream",
        "XLEN K; XRANGE K - +; XREVRANGE K + - COUNT 3; XINFO STREAM K; XINFO STREAM K FULL; XINFO GROUPS K; \
         XINFO CONSUMERS K g; XPENDING K g; XPENDING K g - + 10; XREAD COUNT 5 STREAMS K 0; \
         XREADGROUP GROUP g c COUNT 5 STREAMS K >; XREADGROUP GROUP g c STREAMS K 0; XAUTOCLAIM K g d 0 0; \
         XCLAIM K g d 0 5-1; XACK K g 5-1; XADD K * a b; XADD K 99999999999999-1 f v; XDEL K 5-1; XTRIM K MAXLEN 3; \
         XSETID K 99999999999999-9; XGROUP CREATE K h $; XGROUP SETID K g 0; XGROUP CREATECONSUMER K g e; \
         XGROUP DELCONSUMER K g c; XGROUP DESTROY K h; XTRIM K MINID ~ 7",
    ),
];
/// Commands that fit every type, last of all.
const ANY: &str = "OBJECT ENCODING K; OBJECT FREQ K; MEMORY USAGE K; DEBUG DIGEST-VALUE K; DUMP K; COPY K O REPLACE; \
                   RENAME O P; PEXPIRE K 100000; PERSIST K; TYPE K";

/// Payloads without their footer that are well formed: old forms, and what the server itself dumps.
fn seeds(client: &mut Client) -> Result<Vec<Vec<u8>>> {
    let mut all: Vec<Vec<u8>> =
        old_values::all().iter().map(|value| [&[value.kind][..], &value.body].concat()).collect();
    let long = "long-text-".repeat(12);
    let mut make = vec![
        "SET K 12345".to_owned(),
        format!("SET K {long}"),
        "SETRANGE K 100 end".to_owned(),
        "PFADD K a b c d e".to_owned(),
        "HSET K f v g w n 5".to_owned(),
        format!("HSET K f {long}"),
        "RPUSH K a b 1 2 3".to_owned(),
        format!("RPUSH K {long} 1 {long}"),
        "SADD K 1 2 3".to_owned(),
        "SADD K a b c 1".to_owned(),
        format!("SADD K {long}"),
        "ZADD K 1 a 2.5 b -inf c".to_owned(),
        format!("ZADD K 1 {long} 2 b"),
        "XADD K 5-1 f v; XADD K 6-1 f v; XADD K 7-1 g w h x; XDEL K 6-1; XGROUP CREATE K g 0; \
         XREADGROUP GROUP g c COUNT 1 STREAMS K >"
            .to_owned(),
    ];
    let many = |name: &str, item: &dyn Fn(usize) -> String| {
        (0..300).fold(format!("{name} K"), |command, index| command + " " + &item(index))
    };
    make.push(many("SADD", &|index| (index * 1_000).to_string()));
    make.push(many("SADD", &|index| format!("m{index}")));
    make.push(many("HSET", &|index| format!("f{index} {index}")));
    make.push(many("ZADD", &|index| format!("{index}.5 m{index}")));
    make.push(many("RPUSH", &|index| format!("element-{index}")));
    for commands in make {
        client.run("DEL seed");
        for command in text::split(&commands.replace(" K", " seed")) {
            let reply = client.run(command);
            ensure!(!reply.is_error(), "{command}: {reply}");
        }
        let dumped = client.run("DUMP seed").bytes().context("DUMP gives nothing")?.to_vec();
        all.push(dumped.get(..dumped.len().saturating_sub(10)).unwrap_or_default().to_vec());
    }
    client.run("DEL seed");
    Ok(all)
}

/// Damages bytes in one to four places.
pub(super) fn damage(random: &mut fastrand::Rng, bytes: &mut Vec<u8>, others: &[Vec<u8>]) {
    const TELLING: [u8; 16] = [0, 1, 2, 0x3f, 0x40, 0x7f, 0x80, 0x81, 0xc0, 0xc3, 0xe0, 0xf0, 0xf4, 0xfa, 0xfe, 0xff];
    for _ in 0..random.usize(1..5) {
        if bytes.is_empty() {
            bytes.push(random.u8(..));
        }
        let at = random.usize(0..bytes.len());
        match random.u8(0..9) {
            0 | 1 => bytes[at] ^= 1 << random.u8(0..8),
            2 => bytes[at] = TELLING[random.usize(0..TELLING.len())],
            3 => bytes[at] = bytes[at].wrapping_add(random.u8(0..5)).wrapping_sub(2),
            4 => drop(bytes.drain(at..(at + random.usize(1..9)).min(bytes.len()))),
            5 => {
                let piece: Vec<u8> = (0..random.usize(1..9)).map(|_| TELLING[random.usize(0..TELLING.len())]).collect();
                drop(bytes.splice(at..at, piece));
            }
            6 => {
                // A number over its neighbours: sizes are four bytes in packed forms, big ones up to nine here.
                let number = [0, 1, 0x7f, 0xff, 0xffff, 0x7fff_ffff, 0xffff_ffff, u64::MAX >> 1, u64::MAX];
                let number = number[random.usize(0..number.len())];
                let wide = if random.bool() { number.to_le_bytes() } else { number.to_be_bytes() };
                let count = [2, 4, 8][random.usize(0..3)].min(bytes.len() - at);
                bytes[at..at + count].copy_from_slice(&wide[..count]);
            }
            7 => bytes.truncate(at),
            _ => {
                let other = &others[random.usize(0..others.len())];
                let from = random.usize(0..=other.len());
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
        }
    }
}

/// Ends a payload with version and checksum.
fn close(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.extend_from_slice(&10_u16.to_le_bytes());
    let sum = crc64(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}

fn within(client: &mut Client, commands: &[Vec<Vec<u8>>], what: &dyn Fn() -> String) -> Result<Vec<Reply>> {
    let began = Instant::now();
    let replies = client.pipeline(commands).with_context(|| format!("the server ended or hangs: {}", what()))?;
    ensure!(began.elapsed() < HANG, "{:?} for {}", began.elapsed(), what());
    Ok(replies)
}

/// B4: see the module.
pub(super) fn run(context: &Context<'_>) -> Result<String> {
    let payloads: u64 = context.pick(20_000, 1_000_000);
    let mut server = context.server(&["--sanitize-dump-payload", "yes"])?;
    let mut client = server.client();
    client.set_timeout(Duration::from_secs(10))?;
    let seeds = seeds(&mut client)?;
    let before = process::resident_bytes(server.pid())?;
    process::reset_peak(server.pid())?;
    let seed = testkit::seed(fastrand::u64(..1 << 40));
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut sent, mut taken, mut commands) = (0_u64, 0_u64, 0_u64);
    let began = Instant::now();
    while sent < payloads {
        let batch: Vec<Vec<u8>> = (0..BATCH)
            .map(|_| {
                let mut bytes = seeds[random.usize(0..seeds.len())].clone();
                damage(&mut random, &mut bytes, &seeds);
                close(bytes)
            })
            .collect();
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let shown =
            || format!("seed {seed}, one of {}", batch.iter().map(|one| hex(one)).collect::<Vec<_>>().join(" "));
        let restores: Vec<Vec<Vec<u8>>> = batch
            .iter()
            .enumerate()
            .map(|(index, payload)| {
                let key = format!("k{index}").into_bytes();
                vec![b"RESTORE".to_vec(), key, b"0".to_vec(), payload.clone(), b"REPLACE".to_vec()]
            })
            .collect();
        sent += BATCH as u64;
        let replies = within(&mut client, &restores, &shown)?;
        for (index, reply) in replies.iter().enumerate() {
            if reply.is_error() {
                continue;
            }
            taken += 1;
            let kind = client.run(&format!("TYPE k{index}")).text();
            let own = COMMANDS.iter().find(|(name, _)| *name == kind).map_or("", |(_, commands)| *commands);
            if own.is_empty() && kind != "none" {
                bail!("TYPE is {kind} for {}", hex(&batch[index]));
            }
            let of_key = |commands: &str| -> Vec<Vec<Vec<u8>>> {
                let words = commands.replace(" K", &format!(" k{index}")).replace(" O", " o").replace(" P", " p");
                text::split(&words).iter().map(|command| text::words(command)).collect()
            };
            let all = [of_key(own), of_key(ANY)].concat();
            commands += all.len() as u64;
            within(&mut client, &all, &|| format!("seed {seed}, {kind} of {}", hex(&batch[index])))?;
        }
        if sent.is_multiple_of(4096) {
            client.run("FLUSHALL");
        }
    }
    ensure_alive(&mut server)?;
    ensure!(client.info("oxidis_panics").is_none_or(|panics| panics == "0"), "commands panicked:\n{}", server.log());
    let grown = mebibytes(process::peak_resident_bytes(server.pid())?.saturating_sub(before));
    ensure!(grown <= GROWTH_MIB, "the server grew by {grown:.0} MiB");
    let rate = sent as f64 / began.elapsed().as_secs_f64();
    Ok(format!(
        "{sent} payloads ({rate:.0}/s), {taken} taken, {commands} commands on them, +{grown:.0} MiB, seed {seed}"
    ))
}
