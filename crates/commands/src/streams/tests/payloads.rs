//! DUMP and RESTORE of streams: Redis' own bytes, older ones, damaged ones.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
use crate::keys::digest::Digest;
use crate::testing::{Bench, Oracle};

/// A stream with several blocks, gaps, groups, consumers and pending entries.
fn rich_stream(bench: &mut Bench, key: &str) {
    bench.settings.stream.node_max_entries = 5;
    for i in 1..=23 {
        bench.run(&format!("XADD {key} {i}-{} f{} {i} g h", i % 4, i / 7));
    }
    bench.run(&format!("XDEL {key} 5-1 6-2 12-0"));
    bench.run(&format!("XGROUP CREATE {key} g 0"));
    bench.run(&format!("XGROUP CREATE {key} 12345 7"));
    bench.run(&format!("XREADGROUP GROUP g alice COUNT 6 STREAMS {key} >"));
    bench.advance(5);
    bench.run(&format!("XREADGROUP GROUP g 77 COUNT 4 STREAMS {key} >"));
    bench.run(&format!("XGROUP CREATECONSUMER {key} g carol"));
    bench.run(&format!("XACK {key} g 2-2"));
}

/// The bytes of a bulk.
fn bulk(reply: &[u8]) -> &[u8] {
    let at = reply.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    &reply[at..reply.len() - 2]
}

#[test]
fn payloads_are_redis_own() {
    // Compressors choose differently, so that is off.
    let Some(mut oracle) = Oracle::start(&["--rdbcompression", "no", "--stream-node-max-entries", "5"]) else { return };
    if oracle.version < (7, 2) {
        return;
    }
    let mut bench = Bench::new();
    rich_stream(&mut bench, "s");
    let ours = payload(&mut bench, "s");
    assert_eq!(oracle.ask(&[b"RESTORE", b"s", b"0", &ours]), b"+OK\r\n");
    assert_eq!(bulk(&oracle.ask(&[b"DUMP", b"s"])), ours);
    let dumped = bench.run_args(&[b"DUMP", b"s"]);
    assert_eq!(oracle.ask(&[b"RESTORE", b"s", b"0", bulk(&dumped), b"REPLACE"]), b"+OK\r\n");
    for line in [
        &[&b"XINFO"[..], b"STREAM", b"s", b"FULL", b"COUNT", b"0"][..],
        &[b"XINFO", b"GROUPS", b"s"],
        &[b"XRANGE", b"s", b"-", b"+"],
    ] {
        assert_eq!(bench.run_args(line).escape_ascii().to_string(), oracle.ask(line).escape_ascii().to_string());
    }
    let mut digest = Digest::default();
    let mut out = resp::Reply::new();
    bench.with_ctx(&mut out, |ctx| digest.add_value(ctx.db.entry(b"s").unwrap()));
    let theirs = oracle.ask(&[b"DEBUG", b"DIGEST-VALUE", b"s"]);
    assert!(theirs.escape_ascii().to_string().contains(&digest.to_hex()), "digest");
    // The same commands make the same bytes.
    let mut random = fastrand::Rng::with_seed(11);
    let mut ms = 0;
    for round in 0..600 {
        ms += random.u64(1..500);
        let line = match random.u8(0..10) {
            0 => format!("XDEL r {}-1 {}-1 {}-1", ms - 1, ms / 2, ms - 3),
            1 => format!("XTRIM r MAXLEN {} {}", ["~", "="][random.usize(0..2)], random.u8(20..60)),
            2 => format!("XTRIM r MINID {} {}", ["~", "="][random.usize(0..2)], ms.saturating_sub(9000)),
            3 => format!("XADD r {ms}-1 other {round} names -{round}"),
            4 => format!("XADD r {ms}-1 f {} g {}", "x".repeat(random.usize(0..200)), random.i64(..)),
            _ => format!("XADD r {ms}-1 f {round} g {}", random.i16(..)),
        };
        let args: Vec<Vec<u8>> = crate::testing::split(&line);
        let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
        assert_eq!(bench.run_args(&args), oracle.ask(&args), "{line}");
    }
    assert_eq!(payload(&mut bench, "r"), bulk(&oracle.ask(&[b"DUMP", b"r"])));
}

/// The payload of a key, not compressed.
fn payload(bench: &mut Bench, key: &str) -> Vec<u8> {
    let mut payload = Vec::new();
    bench.with_ctx(&mut resp::Reply::new(), |ctx| {
        let value = ctx.db.get(key.as_bytes()).unwrap();
        let mut writer = rdb::codec::Writer::new(&mut payload);
        writer.value_type(keyspace::codec::value_type(value));
        keyspace::codec::write_value(&mut writer, value);
    });
    rdb::dump::append_footer(&mut payload, 0);
    payload
}

#[test]
fn older_payloads_are_read() {
    // A stream of form 1, as 5.0 and 6.2 write it, and of form 2: made from ours by leaving out what they do not have.
    let mut bench = Bench::new();
    bench.check_all("XADD s 1-1 a b => $3 1-1\nXADD s 2-0 a c => $3 2-0\nXGROUP CREATE s g 1-1 => +OK");
    let dumped = bench.run_args(&[b"DUMP", b"s"]);
    let payload = bulk(&dumped).to_vec();
    let body = &payload[..payload.len() - 10];
    // Behind the block: length, last id, first id, greatest deleted id, entries added, groups.
    let tail = body.len() - b"\x02\x02\x00\x01\x01\x00\x00\x02\x01\x01g\x01\x01".len() - 11;
    let mut first = body[..tail].to_vec();
    first[0] = 15;
    first.extend_from_slice(b"\x02\x02\x00\x01\x01g\x01\x01\x01");
    first.extend_from_slice(&[[0; 8], [1; 8]].concat());
    first.extend_from_slice(&[5; 8]);
    first.extend_from_slice(b"\x03\x01\x01c");
    first.extend_from_slice(&[6; 8]);
    first.extend_from_slice(b"\x01");
    first.extend_from_slice(&[[0; 8], [1; 8]].concat());
    rdb::dump::append_footer(&mut first, 0);
    assert_eq!(bench.run_args(&[b"RESTORE", b"old", b"0", &first]), b"+OK\r\n");
    bench.check(
        "XINFO GROUPS old",
        "*1 *12 $4 name $1 g $9 consumers :1 $7 pending :1 $17 last-delivered-id $3 1-1 $12 entries-read :1 $3 lag :1",
    );
    bench.check("XRANGE old - +", "*2 *2 $3 1-1 *2 $1 a $1 b *2 $3 2-0 *2 $1 a $1 c");
}

#[test]
fn damaged_payloads_do_no_harm() {
    let mut bench = Bench::new();
    rich_stream(&mut bench, "s");
    let dumped = bench.run_args(&[b"DUMP", b"s"]);
    let compressed = bulk(&dumped).to_vec();
    // Also one without compression, which hides the blocks' bytes.
    let plain = payload(&mut bench, "s");
    let mut random = fastrand::Rng::with_seed(7);
    let rounds = std::env::var("OXIDIS_STREAM_FUZZ").ok().and_then(|text| text.parse().ok()).unwrap_or(20_000);
    let mut accepted = 0;
    for round in 0..rounds {
        let source = if round % 4 == 0 { &compressed } else { &plain };
        let mut bytes = source[..source.len() - 10].to_vec();
        for _ in 0..random.usize(1..4) {
            if bytes.len() < 3 {
                break;
            }
            let at = random.usize(1..bytes.len());
            match random.u8(0..6) {
                0 => bytes[at] = random.u8(..),
                1 => bytes[at] ^= 1 << random.u8(0..8),
                2 => bytes.truncate(at.max(2)),
                3 => bytes.insert(at, random.u8(..)),
                4 => drop(bytes.remove(at)),
                _ => bytes[at] = [0, 1, 0x7f, 0x80, 0x81, 0xc3, 0xff][random.usize(0..7)],
            }
        }
        rdb::dump::append_footer(&mut bytes, 0);
        if bench.run_args(&[b"RESTORE", b"x", b"0", &bytes, b"REPLACE"]) != b"+OK\r\n" {
            continue;
        }
        accepted += 1;
        check(&mut bench, "x");
        for line in [
            "XINFO STREAM x FULL COUNT 0",
            "XRANGE x - +",
            "XREVRANGE x + - COUNT 30",
            "XREADGROUP GROUP g alice STREAMS x >",
            "XREADGROUP GROUP g alice STREAMS x 0",
            "XAUTOCLAIM x g bob 0 0",
            "XPENDING x g - + 100",
            "XSETID x 30-0",
            "XADD x * a b",
            "XDEL x 3-3 4-0 1-1",
            "XTRIM x MAXLEN 7",
            "XSETID x 18446744073709551615-1",
            "XADD x MAXLEN ~ 3 * a b",
            "XTRIM x MINID 12",
            "XGROUP DELCONSUMER x g alice",
            "XGROUP DESTROY x g",
            "DUMP x",
        ] {
            bench.run(line);
        }
        check(&mut bench, "x");
        bench.take_events();
    }
    assert!(accepted > rounds / 1000, "some damage is none: {accepted} of {rounds}");
}

/// Checks the invariants of the stream at a key, if it is one.
fn check(bench: &mut Bench, key: &str) {
    bench.with_ctx(&mut resp::Reply::new(), |ctx| {
        if let Some(keyspace::ValueRef::Stream(stream)) = ctx.db.get(key.as_bytes()) {
            stream.check();
        }
    });
}
