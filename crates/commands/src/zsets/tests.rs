#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::ctx::{Block, TimeoutReply};
use crate::testing::{Bench, check_all, differential, differential_with};
use std::fmt::Write;

/// Lines of every command, for both forms and both protocol versions.
const LINES: &str = r#"
    !FLUSHALL
    ZADD z 1 a 2 b 3 c
    ZADD z 1 a 2.5 b 4 d
    ZADD z ch 1.5 a 2.5 b 5 e
    ZADD z nx 9 a 9 f
    ZADD z xx 9 a 9 g
    ZADD z xx ch 8 a 9 g
    ZADD z gt 7 a 10 b
    ZADD z lt 7 a 11 b
    ZADD z gt ch 12 a 1 c
    ZADD z lt xx ch 1 a 1 c
    ZADD z xx gt ch incr 1 a
    ZADD z incr 1 a
    ZADD z nx incr 1 a
    ZADD z nx incr 1 new
    ZADD z xx incr 1 missing
    ZADD z gt incr -1 a
    ZADD z lt incr 1 a
    ZADD z lt incr -1 a
    ZADD z incr inf a
    ZADD z incr -inf a
    ZADD z -inf a
    ZADD z incr -5 a
    ZADD z incr +inf a
    ZADD z 1 a
    ZADD z NX xx 1 a
    ZADD z nx gt 1 a
    ZADD z nx lt 1 a
    ZADD z gt lt 1 a
    ZADD z incr 1 a 2 b
    ZADD z 1
    ZADD z 1 a 2
    ZADD z nx
    ZADD z nx 1
    ZADD z nan a
    ZADD z x a
    ZADD z 1 a x b
    ZADD z 0x10 hex 1e3 exp .5 half 1e500 huge
    ZADD z 0x10 hex 1e3 exp .5 half
    ZADD nokey xx 1 a
    ZADD nokey xx incr 1 a
    ZADD dup 1 a 2 a 3 a
    ZADD z -0 zero
    ZSCORE z zero
    ZADD z 0 zero
    ZADD odd 3.3 p 0.1 q 1e22 r 1.7976931348623157e308 s 123456789012345680 t 5e-324 u
    7.2 ZRANGE odd 0 -1 withscores
    7.2 ~ZSCAN odd 0
    ZADD z 3.25 p 0.125 q 1e22 r
    ZRANGE z 0 -1 withscores
    ZINCRBY z 1.5 a
    ZINCRBY z x a
    ZINCRBY z nx a
    ZINCRBY new 5 a
    ZINCRBY z 0 a
    ZINCRBY z -1e400 a
    ZSCORE z a
    ZSCORE z missing
    ZSCORE nokey a
    ZMSCORE z a missing b
    ZMSCORE nokey a b
    ZCARD z
    ZCARD nokey
    ZRANK z a
    7.2 ZRANK z a withscore
    7.2 ZRANK z a withscores
    ZRANK z a withscore x
    ZRANK z missing
    7.2 ZRANK z missing withscore
    ZRANK nokey a
    7.2 ZRANK nokey a withscore
    ZREVRANK z a
    7.2 ZREVRANK z a WITHSCORE
    ZREVRANK z a b c d
    ZCOUNT z -inf +inf
    ZCOUNT z 1 3
    ZCOUNT z (1 (3
    ZCOUNT z 3 1
    ZCOUNT z (3 3
    ZCOUNT z x 1
    ZCOUNT z 1 nan
    ZCOUNT nokey 1 2
    ZCOUNT z ( 5
    ZCOUNT z "" 5
    ZRANGE z 0 -1
    ZRANGE z 1 3
    ZRANGE z 1 3 REV
    ZRANGE z -3 -1 withscores rev
    ZRANGE z 5 1
    ZRANGE z 100 200
    ZRANGE z x 1
    ZRANGE z 1 x
    ZRANGE z 1 (3 byscore
    ZRANGE z (3 1 byscore rev
    ZRANGE z (3 1 byscore rev withscores limit 0 2
    ZRANGE z -inf inf byscore limit 1 2
    ZRANGE z -inf inf byscore limit 1 -1
    ZRANGE z -inf inf byscore limit 1 -5
    ZRANGE z -inf inf byscore limit -1 5
    ZRANGE z -inf inf byscore limit 100 5
    ZRANGE z -inf inf byscore limit 0 0
    ZRANGE z -inf inf byscore limit 2
    ZRANGE z -inf inf byscore limit x 1
    ZRANGE z -inf inf byscore limit 1 x
    ZRANGE z 0 -1 limit 0 1
    ZRANGE z 0 -1 limit 0 -1
    ZRANGE z - + bylex withscores
    ZRANGE z 0 -1 rev rev
    ZRANGE z 0 -1 bylex byscore
    ZRANGE z 0 -1 foo
    ZRANGE nokey 0 -1
    ZRANGE nokey x -1
    ZRANGE nokey a b bylex
    ZREVRANGE z 0 2
    ZREVRANGE z 0 2 withscores
    ZREVRANGE z 0 2 rev
    ZREVRANGE z 0 2 limit 0 1
    ZREVRANGE z 0 2 limit 0 -1
    ZRANGEBYSCORE z 1 5
    ZRANGEBYSCORE z (1 5 withscores
    ZRANGEBYSCORE z (1 5 withscores limit 1 2
    ZRANGEBYSCORE z 1 5 bylex
    ZRANGEBYSCORE z 1 x
    ZREVRANGEBYSCORE z 5 1
    ZREVRANGEBYSCORE z 5 (1 limit 1 1 withscores
    ZREVRANGEBYSCORE z +inf -inf limit 0 3
    ZADD lex 0 a 0 b 0 c 0 d 0 e 0 10 0 9 0 bb 0 ""
    ZRANGEBYLEX lex - +
    ZRANGEBYLEX lex [b (d
    ZRANGEBYLEX lex (b [d
    ZRANGEBYLEX lex [1 [99
    ZRANGEBYLEX lex + -
    ZRANGEBYLEX lex - + limit 2 3
    ZRANGEBYLEX lex b d
    ZRANGEBYLEX lex -x +
    ZRANGEBYLEX lex - 5
    ZREVRANGEBYLEX lex + -
    ZREVRANGEBYLEX lex (d [b
    ZREVRANGEBYLEX lex (d - limit 1 2
    ZREVRANGEBYLEX lex - +
    ZRANGE lex [b (d bylex
    ZRANGE lex (d [b bylex rev
    ZRANGE lex (d [b bylex rev limit 0 1
    ZLEXCOUNT lex - +
    ZLEXCOUNT lex [b (d
    ZLEXCOUNT lex [d (b
    ZLEXCOUNT lex a b
    ZLEXCOUNT nokey - +
    ZRANGESTORE dst z 0 2
    ZRANGE dst 0 -1 withscores
    ZRANGESTORE dst z 0 2 rev
    ZRANGE dst 0 -1 withscores
    ZRANGESTORE dst z (1 5 byscore limit 1 2
    ZRANGE dst 0 -1 withscores
    ZRANGESTORE dst lex [b [d bylex rev
    ZRANGESTORE dst lex [d [b bylex rev
    ZRANGE dst 0 -1 withscores
    ZRANGESTORE dst z 0 2 withscores
    ZRANGESTORE dst z 5 2
    ZRANGESTORE dst nokey 0 -1
    ZRANGESTORE dst z x 2
    ZRANGESTORE z z 0 -3
    ZREM z a missing
    ZREM z missing
    ZREM nokey a
    ZADD gone 1 a 2 b
    ZREM gone a b c
    ZADD rr 1 a 2 b 3 c 4 d 5 e 6 f 7 g 8 h
    ZREMRANGEBYRANK rr 0 0
    ZREMRANGEBYRANK rr -1 -1
    ZREMRANGEBYRANK rr 5 2
    ZREMRANGEBYRANK rr x 2
    ZREMRANGEBYRANK nokey 0 1
    ZREMRANGEBYSCORE rr (2 3
    ZREMRANGEBYSCORE rr 100 200
    ZREMRANGEBYSCORE rr x 200
    ZREMRANGEBYLEX rr - [d
    ZREMRANGEBYLEX rr d [d
    ZREMRANGEBYLEX rr [zz [zzz
    ZREMRANGEBYRANK rr 0 -1
    ZCARD rr
    ZADD pp 1 a 2 b 3 c 4 d 5 e
    ZPOPMIN pp
    ZPOPMAX pp
    ZPOPMIN pp 2
    ZPOPMAX pp 0
    ZPOPMAX pp -1
    ZPOPMAX pp x
    ZPOPMAX pp 1 2
    ZPOPMAX pp 10
    ZPOPMIN pp
    ZPOPMIN nokey 3
    ZPOPMIN nokey -3
    ZADD pp 1 a 2 b 3 c 4 d 5 e
    ZMPOP 1 pp MIN
    ZMPOP 2 nokey pp max count 2
    ZMPOP 1 nokey MIN
    ZMPOP 0 pp MIN
    ZMPOP x pp MIN
    ZMPOP 1 pp
    ZMPOP 2 pp MIN
    ZMPOP 1 pp up
    ZMPOP 1 pp MIN count 0
    ZMPOP 1 pp MIN count x
    ZMPOP 1 pp MIN count 1 count 1
    ZMPOP 1 pp MIN count
    BZPOPMIN nokey pp 0
    BZPOPMAX pp 0
    BZPOPMAX pp x
    BZPOPMAX pp -1
    ZADD pp 1 a 2 b 3 c 4 d 5 e
    BZMPOP 0 1 pp MIN
    BZMPOP 0 2 nokey pp MAX COUNT 20
    BZMPOP x 1 pp MAX
    BZMPOP 0 0 pp MAX
    ZADD a 1 x 2 y 3 z 4 5 -1 6
    ZADD b 10 x 20 y 40 w 7 6
    SADD s x 5 w
    SADD ints 5 6 7
    ZUNION 2 a b
    ZUNION 2 a b withscores
    ZUNION 4 a b s ints withscores
    ZUNION 2 a b weights 2 3 withscores
    ZUNION 2 a b aggregate min withscores
    ZUNION 2 a b aggregate max withscores
    ZUNION 2 a b weights 2 3 aggregate MAX withscores
    ZUNION 2 a b weights 2
    ZUNION 2 a b weights 2 x
    ZUNION 2 a b aggregate avg
    ZUNION 2 a b aggregate
    ZUNION 2 a b foo
    ZUNION 0 a
    ZUNION -1 a
    ZUNION x a
    ZUNION 3 a b
    ZUNION 2 a nokey withscores
    ZUNION 1 nokey
    ZUNION 2 a a withscores
    ZINTER 2 a b
    ZINTER 2 a b withscores
    ZINTER 3 a b s withscores
    ZINTER 3 a s ints withscores
    ZINTER 2 s ints withscores
    ZINTER 2 a b weights 2 3 aggregate min withscores
    ZINTER 2 a nokey
    ZINTER 2 a a withscores
    ZINTER 0 a
    ZDIFF 2 a b
    ZDIFF 2 a b withscores
    ZDIFF 3 a s ints withscores
    ZDIFF 2 s a withscores
    ZDIFF 2 a a
    ZDIFF 2 nokey a
    ZDIFF 2 a b weights 1 2
    ZDIFF 0 a
    ZINTERCARD 2 a b
    ZINTERCARD 2 a b limit 1
    ZINTERCARD 2 a b limit 0
    ZINTERCARD 2 a b limit -1
    ZINTERCARD 2 a b limit x
    ZINTERCARD 2 a b limit
    ZINTERCARD 2 a b withscores
    ZINTERCARD 0 a
    ZINTERCARD 2 a nokey
    ZUNIONSTORE u 2 a b
    ZRANGE u 0 -1 withscores
    ZUNIONSTORE u 2 a s weights 2 0.5 aggregate max
    ZRANGE u 0 -1 withscores
    ZUNIONSTORE u 2 a s withscores
    ZUNIONSTORE u 0 a
    ZUNIONSTORE u 1 nokey
    ZUNIONSTORE u 1 nokey
    ZINTERSTORE u 2 a b weights 1 -1
    ZRANGE u 0 -1 withscores
    ZINTERSTORE u 2 a nokey
    ZINTERSTORE u 0 a
    ZDIFFSTORE u 2 a b
    ZRANGE u 0 -1 withscores
    ZDIFFSTORE u 2 a a
    ZDIFFSTORE u 0 a
    ZDIFFSTORE u 1 a aggregate max
    ZUNIONSTORE a 2 a b
    ZRANGE a 0 -1 withscores
    ZADD i1 inf x 1 y -inf z
    ZADD i2 -inf x inf y -inf z
    ZUNION 2 i1 i2 withscores
    ZINTER 2 i1 i2 withscores
    ZUNION 2 i1 i2 weights 0 0 withscores
    ZINTER 2 i1 i2 weights 0 0 withscores
    ZINTER 2 i1 i2 weights 1 0 aggregate min withscores
    ZINTER 2 i1 i2 weights 0 1 aggregate max withscores
    ZUNION 1 i1 weights inf withscores
    ZUNION 1 i1 weights nan withscores
    ZADD f1 0.1 x 1e17 y
    ZADD f2 0.2 x 1 y 5 q
    ZADD f3 0.3 x -1e17 y 6 q 7 r
    7.2 ZUNION 3 f3 f2 f1 withscores
    7.2 ZINTER 3 f3 f1 f2 withscores
    ZADD one 5 only
    ZRANDMEMBER one
    ZRANDMEMBER one 1
    ZRANDMEMBER one 5
    ZRANDMEMBER one -3
    ZRANDMEMBER one -3 withscores
    ZRANDMEMBER one 2 withscores
    ZRANDMEMBER one 0
    ZRANDMEMBER one 0 withscores
    ZRANDMEMBER one x
    ZRANDMEMBER one 1 foo
    ZRANDMEMBER one 1 withscores foo
    ZRANDMEMBER one -9223372036854775808
    ZRANDMEMBER one 9223372036854775807 withscores
    ZRANDMEMBER one -9223372036854775807 withscores
    ZRANDMEMBER one 4611686018427387903 withscores
    ZRANDMEMBER nokey
    ZRANDMEMBER nokey 3
    ZRANDMEMBER nokey -3 withscores
    ZRANDMEMBER b 100 withscores
    ZSCAN one 0
    ~ZSCAN b 0
    7.2 ~ZSCAN f1 0
    ~ZSCAN i1 0
    ~ZSCAN b 0 match "[xy]"
    ZSCAN b 0 match nothing*
    ~ZSCAN b 0 match * count 100
    ZSCAN b 0 count 0
    ZSCAN b 0 count -1
    ZSCAN b 0 count x
    ZSCAN b 0 count
    ZSCAN b 0 foo 1
    ZSCAN b x
    ZSCAN b " 0"
    ZSCAN b -
    ~ZSCAN b ""
    ~ZSCAN b +0
    ZSCAN b 99999999999999999999
    ZSCAN nokey 0
    ZSCAN nokey 0 foo
    ZSCAN nokey x
"#;

#[test]
fn all_commands_as_redis() {
    differential(LINES);
}

#[test]
fn all_commands_in_resp3_as_redis() {
    differential(&format!("HELLO 3\n{LINES}"));
}

#[test]
fn all_commands_on_the_big_form_as_redis() {
    let extra = ["--zset-max-listpack-entries", "0"];
    for proto in ["2", "3"] {
        let mut bench = Bench::new();
        bench.settings.zset.max_listpack_entries = 0;
        differential_with(&mut bench, &extra, &format!("HELLO {proto}\n{LINES}"));
    }
}

#[test]
fn wrong_types_as_redis() {
    let mut lines = String::from("!RPUSH l a\n!ZADD z 1 a\n!SADD s a\n");
    for line in [
        "ZADD l 1 a",
        "ZADD l x a",
        "ZADD l xx 1 a",
        "ZINCRBY l 1 a",
        "ZCARD l",
        "ZSCORE l a",
        "ZMSCORE l a",
        "ZRANK l a",
        "ZREVRANK l a",
        "ZCOUNT l 1 2",
        "ZCOUNT l x 2",
        "ZLEXCOUNT l - +",
        "ZRANGE l 0 -1",
        "ZRANGE l x -1",
        "ZREVRANGE l 0 -1",
        "ZRANGEBYSCORE l 1 2",
        "ZRANGEBYLEX l - +",
        "ZRANGESTORE d l 0 -1",
        "ZREM l a",
        "ZREMRANGEBYRANK l 0 1",
        "ZREMRANGEBYSCORE l 0 1",
        "ZREMRANGEBYLEX l - +",
        "ZPOPMIN l",
        "ZPOPMAX l 0",
        "ZMPOP 1 l MIN",
        "ZMPOP 2 nokey l MIN",
        "BZPOPMIN nokey l 0",
        "BZMPOP 0 1 l MAX",
        "ZUNION 2 z l",
        "ZUNION 2 z l foo",
        "ZINTER 2 nokey l",
        "ZDIFF 2 z l",
        "ZINTERCARD 2 z l",
        "ZUNIONSTORE d 2 l z",
        "ZRANDMEMBER l",
        "ZRANDMEMBER l 2",
        "ZSCAN l 0",
        "ZSCAN l x",
        "ZADD s 1 a",
        "ZRANGE s 0 -1",
        "ZUNION 2 s z withscores",
        "ZUNIONSTORE l 1 z",
        "ZRANGE l 0 -1 withscores",
    ] {
        writeln!(lines, "{line}").unwrap();
    }
    differential(&lines);
}

/// Random changes around the limits of the small form.
#[test]
fn random_changes_as_redis() {
    let mut lines = String::new();
    let mut random = fastrand::Rng::with_seed(11);
    for round in 0..2500 {
        let key = ["z", "y"][random.usize(..2)];
        let member = if random.bool() { random.u32(..60).to_string() } else { format!("m{}", random.u32(..60)) };
        let score = match random.u8(..3) {
            0 => random.i32(-10..10).to_string(),
            1 => (f64::from(random.i16(..)) / 8.0).to_string(),
            _ => random.i64(-(1 << 30)..1 << 30).to_string(),
        };
        let rank = random.i32(-70..70);
        let line = match random.u8(..20) {
            0..=4 => format!("ZADD {key} {score} {member}"),
            5 => format!("ZADD {key} CH GT {score} {member} 3 {round}"),
            6 => format!("ZINCRBY {key} {score} {member}"),
            7 | 8 => format!("ZREM {key} {member} a b"),
            9 => format!("ZRANGE {key} {rank} {} WITHSCORES", rank + 20),
            10 => format!("ZREVRANGE {key} {rank} {}", rank + 20),
            11 => format!("ZRANGEBYSCORE {key} ({score} +inf WITHSCORES LIMIT 2 10"),
            12 => format!("ZREVRANGEBYSCORE {key} {score} -inf LIMIT 0 10"),
            13 => format!("ZCOUNT {key} {score} 1e19"),
            14 => format!("7.2 ZREVRANK {key} {member} WITHSCORE"),
            15 => format!("ZREMRANGEBYRANK {key} {rank} {rank}"),
            16 => "ZUNION 2 z y WITHSCORES WEIGHTS 2 0.25".into(),
            17 => "ZINTERSTORE w 2 z y AGGREGATE MAX".into(),
            18 => format!("ZDIFF 2 {key} w WITHSCORES"),
            _ => {
                if round % 50 == 0 {
                    format!("ZPOPMAX {key} 30")
                } else {
                    format!("ZSCORE {key} {member}")
                }
            }
        };
        lines.push_str(&line);
        lines.push('\n');
        if round % 25 == 0 {
            lines.push_str("OBJECT ENCODING z\nOBJECT ENCODING w\n");
        }
    }
    lines.push_str("ZRANGE z 0 -1 WITHSCORES\nZRANGE y 0 -1 WITHSCORES\nZRANGE w 0 -1 WITHSCORES\n");
    let mut bench = Bench::new();
    bench.settings.zset.max_listpack_entries = 30;
    differential_with(&mut bench, &["--zset-max-listpack-entries", "30"], &lines);
}

#[test]
fn draws_different_members() {
    let mut bench = Bench::new();
    for limit in [0, 128] {
        bench.settings.zset.max_listpack_entries = limit;
        bench.run("FLUSHALL");
        for member in 0..100 {
            bench.run(&format!("ZADD z {member} m{member}"));
        }
        for count in [1, 2, 50, 99, 100, 200] {
            let reply = bench.run(&format!("ZRANDMEMBER z {count}"));
            let members: Vec<&str> = reply.split(' ').filter(|word| word.starts_with('m')).collect();
            assert_eq!(members.len(), count.min(100), "{reply}");
            let distinct: std::collections::HashSet<&str> = members.iter().copied().collect();
            assert_eq!(distinct.len(), members.len(), "{reply}");
        }
        let reply = bench.run("ZRANDMEMBER z -2500 WITHSCORES");
        assert_eq!(reply.split(' ').filter(|word| word.starts_with('m')).count(), 2500);
        check_scores(&reply);
    }
}

/// Each member `m5` has the score 5.
fn check_scores(reply: &str) {
    let words: Vec<&str> = reply.split(' ').filter(|word| !word.starts_with(['$', '*'])).collect();
    for pair in words.chunks(2) {
        assert_eq!(pair[0], format!("m{}", pair[1]));
    }
}

#[test]
fn refuses_repeats_without_end() {
    check_all("ZADD z 1 a => :1\n ZRANDMEMBER z -4611686018427387903 => -ERR value is out of range");
}

#[test]
fn scans_a_big_one_whole() {
    let mut bench = Bench::new();
    for member in 0..1000 {
        bench.run(&format!("ZADD z {member}.5 m{member}"));
    }
    let mut seen = std::collections::HashSet::new();
    let mut cursor = "0".to_string();
    loop {
        let reply = bench.run(&format!("ZSCAN z {cursor} COUNT 50"));
        let words: Vec<&str> = reply.split(' ').filter(|word| !word.starts_with(['$', '*'])).collect();
        for pair in words[1..].chunks(2) {
            assert_eq!(format!("{}.5", pair[0].trim_start_matches('m')), pair[1]);
            seen.insert(pair[0].to_string());
        }
        cursor = words[0].to_string();
        if cursor == "0" {
            break;
        }
    }
    assert_eq!(seen.len(), 1000);
}

#[test]
fn waits_only_where_it_may() {
    let mut bench = Bench::new();
    bench.check("BZPOPMIN a b 0", "*-1");
    bench.check("BZMPOP 0 1 a MIN", "*-1");
    bench.may_block = true;
    bench.check("BZPOPMAX a b 2", "(blocked)");
    let deadline_ms = Some(bench.now_ms + 2000);
    assert_eq!(
        bench.block,
        Some(Block { keys: 1..3, deadline_ms, timeout_reply: TimeoutReply::NullArray, replaced: Vec::new() })
    );
    bench.check("BZMPOP 0 2 a b MAX COUNT 3", "(blocked)");
    assert_eq!(
        bench.block,
        Some(Block { keys: 3..5, deadline_ms: None, timeout_reply: TimeoutReply::NullArray, replaced: Vec::new() })
    );
    bench.check("ZADD b 1 x 2 y", ":2");
    bench.check("BZPOPMAX a b 2", "*3 $1 b $1 y $1 2");
}
