#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::testing::{Bench, Oracle, check_all, differential, show, split};
use keyspace::eviction::{AccessClock, Policy};
use resp::{Args, Reply};

#[test]
fn keys_of_any_type() {
    check_all(
        "
        SET k v EX 100 => +OK
        RENAME k l => +OK
        TTL l => :100
        COPY l m => :1
        TTL m => :100
        COPY l m => :0
        COPY l l => -ERR source and destination objects are the same
        MOVE l 1 => :1
        EXISTS l m m => :2
        TYPE m => +string
        DEL l m m => :1
        RENAME k l => -ERR no such key
        MOVE m 16 => -ERR DB index is out of range
        ",
    );
}

#[test]
fn a_rename_tells_of_both_keys() {
    let mut bench = Bench::new();
    bench.check_all("SET k v => +OK\nSET l w => +OK");
    bench.take_events();
    bench.take_dirty();
    bench.run("RENAME k l");
    assert_eq!(bench.take_events(), ["new l", "rename_from k", "rename_to l"]);
    assert_eq!(bench.take_dirty(), 1);
}

#[test]
fn times_of_access() {
    let mut bench = Bench::new();
    bench.run("SET k v");
    bench.advance(30_000);
    bench.check("OBJECT IDLETIME k", ":30");
    bench.check("EXISTS k", ":1");
    bench.check("TTL k", ":-1");
    bench.check("TYPE k", "+string");
    bench.check("OBJECT IDLETIME k", ":30");
    bench.check("TOUCH k", ":1");
    bench.check("OBJECT IDLETIME k", ":0");
    assert!(bench.run("OBJECT FREQ k").starts_with("-ERR An LFU maxmemory policy is not selected"));
    bench.settings.policy = Policy::AllKeysLfu;
    bench.clock = AccessClock::at(bench.now_ms, true, 0, 1);
    bench.run("SET l v");
    bench.check("OBJECT FREQ l", ":5");
    bench.run("GET l");
    bench.check("OBJECT FREQ l", ":6");
    assert!(bench.run("OBJECT IDLETIME l").starts_with("-ERR An LFU maxmemory policy is selected"));
}

#[test]
fn restore_sets_times_of_access() {
    let mut bench = Bench::new();
    bench.run("SET k v");
    let payload = payload_of(&bench.run_args(&[b"DUMP", b"k"]));
    bench.run_args(&[b"RESTORE", b"idle", b"0", &payload, b"IDLETIME", b"1000"]);
    bench.check("OBJECT IDLETIME idle", ":1000");
    bench.settings.policy = Policy::AllKeysLfu;
    bench.clock = AccessClock::at(bench.now_ms, true, 0, 1);
    bench.run_args(&[b"RESTORE", b"freq", b"0", &payload, b"FREQ", b"77"]);
    bench.check("OBJECT FREQ freq", ":77");
}

#[test]
fn memory_usage_grows_with_the_value() {
    let mut bench = Bench::new();
    bench.run("SET k v");
    let small: usize = bench.run("MEMORY USAGE k").trim_start_matches(':').parse().unwrap();
    bench.run("SETRANGE k 100000 x");
    let big: usize = bench.run("MEMORY USAGE k SAMPLES 0").trim_start_matches(':').parse().unwrap();
    assert!(small < 100 && big > 100_000, "{small} {big}");
    bench.check("MEMORY USAGE missing", "$-1");
    bench.check("MEMORY USAGE k SAMPLES -1", "-ERR syntax error");
    bench.check("MEMORY USAGE k SAMPLES", "-ERR syntax error");
}

#[test]
fn keys_as_a_real_server() {
    differential(
        r#"
        SET k v
        EXISTS k
        EXISTS k k missing
        TOUCH k missing
        TYPE k
        TYPE missing
        !RPUSH list a b c
        !SADD set a b
        !SADD ints 1 2 3
        !HSET hash f v g w
        TYPE list
        TYPE set
        TYPE hash
        RENAME k l
        RENAME k l
        RENAME l l
        RENAME missing missing
        RENAMENX l l
        RENAMENX missing missing
        RENAMENX l list
        RENAMENX l m
        EXPIRE m 1000
        RENAME m list
        TTL list
        TYPE list
        !RPUSH l2 a b c
        COPY l2 l3
        LRANGE l3 0 -1
        COPY l2 l3
        COPY l2 l3 REPLACE
        COPY l2 l2
        COPY l2 l2 DB 0
        COPY l2 l2 DB 1
        COPY l2 l2 DB 1
        COPY l2 l2 DB 1 REPLACE
        COPY l2 x DB 16
        COPY l2 x DB -1
        COPY l2 x DB abc
        COPY l2 x DB 99999999999
        COPY l2 x DB
        COPY l2 x nonsense
        COPY missing x
        COPY missing x DB 1 REPLACE
        COPY hash hash2
        ~HGETALL hash2
        COPY set set2
        7.2 OBJECT ENCODING set2
        COPY ints ints2
        OBJECT ENCODING ints2
        SET s 12345
        COPY s s2
        OBJECT ENCODING s2
        APPEND s 6
        COPY s s3
        OBJECT ENCODING s3
        COPY list k9
        TTL k9
        MOVE l3 2
        MOVE l3 2
        !COPY l2 l3
        MOVE l3 2
        MOVE l3 0
        MOVE l3 16
        MOVE l3 abc
        MOVE l3 99999999999
        MOVE missing 2
        SELECT 2
        TYPE l3
        EXPIRE l3 1000
        MOVE l3 3
        SELECT 3
        TTL l3
        SELECT 0
        DEL missing
        DEL set2 missing set2 ints2
        UNLINK hash2 s2
        OBJECT ENCODING missing
        OBJECT REFCOUNT missing
        OBJECT IDLETIME missing
        OBJECT FREQ missing
        OBJECT FREQ l2
        7.2 OBJECT ENCODING l2
        OBJECT ENCODING hash
        7.2 OBJECT ENCODING set
        OBJECT ENCODING ints
        OBJECT REFCOUNT l2
        OBJECT IDLETIME l2
        OBJECT nope l2
        OBJECT ENCODING
        OBJECT ENCODING a b
        DUMP missing
        RESTORE r 0 nonsense
        RESTORE r -1 nonsense
        RESTORE r x nonsense
        RESTORE r 0 nonsense nonsense
        RESTORE l2 x nonsense
        RESTORE l2 0 nonsense REPLACE IDLETIME
        RESTORE l2 0 nonsense REPLACE IDLETIME -1
        RESTORE l2 0 nonsense REPLACE IDLETIME x
        RESTORE l2 0 nonsense REPLACE FREQ 256
        RESTORE l2 0 nonsense REPLACE FREQ -1
        RESTORE l2 0 nonsense REPLACE FREQ 1 IDLETIME 1
        RESTORE l2 0 nonsense REPLACE IDLETIME 1 FREQ 1
        RESTORE r 0 "\x00\xc0\n\t\x00\xbem\x06\x89Z(\x00\n"
        GET r
        OBJECT ENCODING r
        RESTORE r 0 "\x00\xc0\n\t\x00\xbem\x06\x89Z(\x00\n"
        RESTORE r 1000 "\x00\xc0\n\t\x00\xbem\x06\x89Z(\x00\n" REPLACE
        TTL r
        RESTORE r 1 "\x00\xc0\n\t\x00\xbem\x06\x89Z(\x00\n" REPLACE ABSTTL
        EXISTS r
        RESTORE r 1 "\x00\xc0\n\t\x00\xbem\x06\x89Z(\x00\n" ABSTTL
        RESTORE r 99999999999999 "\x00\xc0\n\t\x00\xbem\x06\x89Z(\x00\n" ABSTTL
        PEXPIRETIME r
        RESTORE r 0 "\x00\xc0\n\t\x00\xbem\x06\x89Z(\x00\x0b" REPLACE
        "#,
    );
}

/// The bulk string in a reply.
fn payload_of(reply: &[u8]) -> Vec<u8> {
    let start = reply.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    reply[start..reply.len() - 2].to_vec()
}

/// Lines that make values of all types and encodings, each on the key `k`.
fn values() -> Vec<String> {
    let many = |count: usize, item: fn(usize) -> String| (0..count).map(item).collect::<Vec<_>>().join(" ");
    let long = "x".repeat(100);
    vec![
        "SET k v".into(),
        "SET k 12345".into(),
        "SET k -9223372036854775808".into(),
        "SET k \"\"".into(),
        format!("SET k {}", "abc".repeat(2000)),
        "SETRANGE k 3 abc".into(),
        "RPUSH k a b 1 2 -3 100000 \"\"".into(),
        format!("RPUSH k {}", many(3000, |n| format!("element:{n}"))),
        "SADD k 1 2 3 100000 -5 9223372036854775807".into(),
        "SADD k a b 1 2".into(),
        format!("SADD k {}", many(600, |n| n.to_string())),
        format!("SADD k {}", many(300, |n| format!("member:{n}"))),
        format!("SADD k {long} y"),
        "HSET k f v 1 2 g 3".into(),
        format!("HSET k {long} y"),
        format!("HSET k {}", many(600, |n| format!("field:{n} {n}"))),
        "ZADD k 1 a 2.5 b -inf c inf d 100000 e 12 12".into(),
        format!("ZADD k {}", many(200, |n| format!("{n}.25 member:{n}"))),
        format!("ZADD k 1 {long}"),
    ]
}

#[test]
fn digests_and_payloads_as_a_real_server() {
    let Some(mut oracle) = Oracle::start(&[]) else { return };
    for line in values() {
        let mut bench = Bench::new();
        oracle.ask(&[b"FLUSHALL"]);
        let args = split(&line);
        let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
        if crate::table::lookup(args[0]).is_none_or(|spec| crate::handler(spec.id).is_none()) {
            continue;
        }
        let name: String = line.chars().take(40).collect();
        let ours = bench.run_args(&args);
        assert_eq!(show(&ours), show(&oracle.ask(&args)), "{name}");
        let digest = |bench: &mut Bench| {
            let mut reply = Reply::new();
            let keys: [&[u8]; 2] = [b"k", b"missing"];
            bench.with_ctx(&mut reply, |ctx| super::debug::digest_value(ctx, Args::from_slices(&keys)));
            show(&reply.buf)
        };
        let theirs = show(&oracle.ask(&[b"DEBUG", b"DIGEST-VALUE", b"k", b"missing"]));
        assert_eq!(digest(&mut bench), theirs, "{name}");
        let encoding = bench.run("OBJECT ENCODING k");

        // Their payload here, ours there: the same value in the same encoding.
        let payload = payload_of(&oracle.ask(&[b"DUMP", b"k"]));
        assert_eq!(show(&bench.run_args(&[b"RESTORE", b"k", b"0", &payload, b"REPLACE"])), "+OK", "{name}");
        assert_eq!(digest(&mut bench), theirs, "{name}");
        assert_eq!(bench.run("COPY k l"), ":1");
        assert_eq!(bench.run("RENAME l k"), "+OK");
        assert_eq!(digest(&mut bench), theirs, "{name}");
        if !line.starts_with("SETRANGE") {
            assert_eq!(bench.run("OBJECT ENCODING k"), encoding, "{name}");
        }
        if oracle.version >= (7, 2) {
            let payload = payload_of(&bench.run_args(&[b"DUMP", b"k"]));
            let reply = oracle.ask(&[b"RESTORE", b"k", b"0", &payload, b"REPLACE"]);
            assert_eq!(show(&reply), "+OK", "{name}");
            assert_eq!(show(&oracle.ask(&[b"DEBUG", b"DIGEST-VALUE", b"k", b"missing"])), theirs, "{name}");
            assert_eq!(show(&oracle.ask(&[b"OBJECT", b"ENCODING", b"k"])), bench.run("OBJECT ENCODING k"), "{name}");
        }
        bench.run("EXPIRE k 1000");
        oracle.ask(&[b"EXPIRE", b"k", b"1000"]);
        assert_eq!(digest(&mut bench), show(&oracle.ask(&[b"DEBUG", b"DIGEST-VALUE", b"k", b"missing"])), "{name}");
    }
}

#[test]
fn the_digest_of_all_is_a_real_servers() {
    let Some(mut oracle) = Oracle::start(&[]) else { return };
    let mut bench = Bench::new();
    let mut total = super::digest::Digest::default();
    for db in ["0", "3"] {
        let line: [&[u8]; 2] = [b"SELECT", db.as_bytes()];
        bench.run_args(&line);
        oracle.ask(&line);
        total.mix_db(db.parse().unwrap());
        for key in ["a", "b", "c"] {
            let line: [&[u8]; 3] = [b"SET", key.as_bytes(), b"value"];
            bench.run_args(&line);
            oracle.ask(&line);
            bench.with_ctx(&mut Reply::new(), |ctx| total.xor_key(ctx.db.entry(key.as_bytes()).unwrap()));
        }
    }
    assert_eq!(format!("+{}", total.to_hex()), show(&oracle.ask(&[b"DEBUG", b"DIGEST"])));
}

#[test]
fn payloads_cut_or_changed_never_panic() {
    for line in values() {
        let mut bench = Bench::new();
        let args = split(&line);
        let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
        if crate::table::lookup(args[0]).is_none_or(|spec| crate::handler(spec.id).is_none()) {
            continue;
        }
        bench.run_args(&args);
        let payload = payload_of(&bench.run_args(&[b"DUMP", b"k"]));
        let body = &payload[..payload.len() - 10];
        let step = (body.len() / 200).max(1);
        for at in (0..body.len()).step_by(step) {
            for mut broken in [body[..at].to_vec(), body.to_vec()] {
                if let Some(byte) = broken.get_mut(at) {
                    *byte = byte.wrapping_add(fastrand::u8(1..));
                }
                rdb::dump::append_footer(&mut broken, 0);
                let reply = show(&bench.run_args(&[b"RESTORE", b"r", b"0", &broken, b"REPLACE"]));
                assert!(reply == "+OK" || reply == "-ERR Bad data format", "{reply}");
            }
        }
    }
}

#[test]
fn debug_tells_of_a_key() {
    let mut bench = Bench::new();
    bench.run("SET k 123");
    let mut reply = Reply::new();
    bench.with_ctx(&mut reply, |ctx| super::debug::object(ctx, b"k")).unwrap();
    let line = show(&reply.buf);
    assert!(line.contains(" refcount:2147483647 encoding:int serializedlength:2 lru:"), "{line}");
    for call in [super::debug::object, super::debug::table_stats] {
        let error = bench.with_ctx(&mut Reply::new(), |ctx| call(ctx, b"missing")).unwrap_err();
        assert_eq!(error.0, "ERR no such key");
    }
    let error = bench.with_ctx(&mut Reply::new(), |ctx| super::debug::listpack(ctx, b"k")).unwrap_err();
    assert_eq!(error.0, "ERR Not a listpack encoded object.");
}
