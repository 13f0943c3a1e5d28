#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::ctx::{Block, TimeoutReply};
use crate::testing::{Bench, check_all, differential, differential_with};
use std::fmt::Write;

#[test]
fn pushes_and_pops() {
    check_all(
        "RPUSH l a b c => :3
         LPUSH l z => :4
         LRANGE l 0 -1 => *4 $1 z $1 a $1 b $1 c
         LPOP l => $1 z
         RPOP l 2 => *2 $1 c $1 b
         LPOP l 9 => *1 $1 a
         LLEN l => :0
         LPUSHX l a => :0",
    );
}

#[test]
fn all_commands_as_redis() {
    differential(
        r#"
        RPUSH l 1 2 3 four five "" 12345678901234567890 -5
        LPUSH l a b 3
        LRANGE l 0 -1
        LRANGE l 1 3
        LRANGE l -3 -2
        LRANGE l 5 2
        LRANGE l 100 200
        LRANGE l -100 100
        LRANGE l a 1
        LRANGE l 1 b
        LRANGE nokey 0 -1
        LRANGE l -9223372036854775808 9223372036854775807
        LLEN l
        LLEN nokey
        LINDEX l 0
        LINDEX l -1
        LINDEX l 3
        LINDEX l 100
        LINDEX l -100
        LINDEX l -9223372036854775808
        LINDEX l x
        LINDEX nokey x
        LSET l 0 zero
        LSET l -1 last
        LSET l 100 x
        LSET l -100 x
        LSET l x x
        7.2 RPUSH low a b c
        7.2 LSET low 4294967296 zero
        7.2 LSET low 9223372036854775807 last
        7.2 LSET low 2147483648 nowhere
        7.2 LRANGE low 0 -1
        LSET nokey 0 x
        LSET nokey x x
        LINSERT l BEFORE 2 before2
        LINSERT l after 2 after2
        LINSERT l after nothere x
        LINSERT l beside 2 x
        LINSERT nokey before a b
        LRANGE l 0 -1
        LREM l 0 3
        LREM l 0 nothere
        LREM l x 3
        LREM nokey 0 a
        RPUSH m a b a c a d a
        LREM m 2 a
        LREM m -1 a
        LRANGE m 0 -1
        LREM m -9223372036854775808 a
        LREM m 5 b
        LREM m 5 c
        LREM m 5 d
        LLEN m
        RPUSH t 1 2 3 4 5 6 7 8 9
        LTRIM t 1 -2
        LTRIM t 0 -1
        LTRIM t -100 100
        LTRIM t a 1
        LTRIM t 1 a
        LTRIM nokey 0 1
        LRANGE t 0 -1
        LTRIM t 5 2
        LLEN t
        LPUSHX nokey a
        RPUSHX nokey a b
        RPUSHX l a b
        LPUSHX l x y
        LRANGE l 0 -1
        LPOP l
        RPOP l
        LPOP l 2
        RPOP l 2
        LPOP l 0
        LPOP nokey 0
        LPOP nokey
        RPOP nokey 2
        LPOP l -1
        LPOP l x
        LPOP l 1 2
        RPOP l 1 2
        LPOP nokey -1
        LPOP l 9223372036854775807
        LLEN l
        RPUSH p a b c a b c a 5 05 5
        LPOS p a
        LPOS p a RANK 2
        LPOS p a rank -1
        LPOS p a rank -2 count 0
        LPOS p a count 0
        LPOS p a count 2
        LPOS p a count 2 rank 2
        LPOS p a maxlen 3 count 0
        LPOS p a maxlen 4 count 0
        LPOS p a maxlen 4 count 0 rank -1
        LPOS p a rank 0
        7.2 LPOS p a rank -9223372036854775808
        LPOS p a rank x
        LPOS p a count -1
        LPOS p a count x
        LPOS p a maxlen -1
        LPOS p a maxlen x
        LPOS p a maxlen
        LPOS p a foo 1
        LPOS p a rank 1 foo
        LPOS p 5
        LPOS p 05
        LPOS p 5 count 0
        LPOS p nothere
        LPOS p nothere count 1
        LPOS nokey a
        LPOS nokey a count 1
        LPOS nokey a rank 0
        RPUSH s a b c
        LMOVE s d LEFT RIGHT
        LMOVE s d right left
        LMOVE s s left right
        LMOVE s d left right
        LMOVE s d left right
        LRANGE d 0 -1
        LMOVE d d LEFT RIGHT
        LMOVE d d RIGHT LEFT
        LMOVE d d left left
        LRANGE d 0 -1
        LMOVE s d up down
        LMOVE s d left down
        RPOPLPUSH d e
        RPOPLPUSH d d
        RPOPLPUSH nokey d
        LRANGE d 0 -1
        LRANGE e 0 -1
        RPUSH one x
        LMOVE one one left right
        RPOPLPUSH one one
        LMPOP 1 d LEFT
        LMPOP 2 nokey d RIGHT COUNT 5
        LMPOP 2 nokey d RIGHT COUNT 5
        LMPOP 0 d LEFT
        LMPOP -1 d LEFT
        LMPOP x d LEFT
        LMPOP 1 d
        LMPOP 2 d LEFT
        LMPOP 1 d LEFT COUNT
        LMPOP 1 d LEFT COUNT 0
        LMPOP 1 d LEFT COUNT -1
        LMPOP 1 d LEFT COUNT x
        LMPOP 1 d LEFT COUNT 1 COUNT 2
        LMPOP 1 d UP
        LMPOP 9223372036854775807 d LEFT
        BLMPOP 1 0 d LEFT
        BLMPOP x 1 d LEFT
        BLMPOP x 0 d LEFT
        BLMPOP -1 1 d LEFT
        RPUSH q 1 2 3 4
        BLPOP nokey q 0
        BRPOP q 0
        BLMPOP 0 2 nokey q LEFT COUNT 1
        BLPOP q x
        BLPOP q -1
        7.2 BLPOP q 1e30
        BRPOP q
        BLMOVE q r left right 0
        BLMOVE r q left right x
        BLMOVE r q left up x
        BRPOPLPUSH r q 0
        BRPOPLPUSH r q -1
        LRANGE q 0 -1
        "#,
    );
}

#[test]
fn wrong_types_as_redis() {
    let mut lines = String::from("!ZADD z 1 a\n!RPUSH l a\n");
    for key in ["z"] {
        for line in [
            "LPUSH @ a",
            "RPUSHX @ a",
            "LPOP @",
            "RPOP @ 1",
            "LLEN @",
            "LINDEX @ 0",
            "LINDEX @ x",
            "LRANGE @ 0 -1",
            "LRANGE @ x 1",
            "LPOS @ a",
            "LPOS @ a rank 0",
            "LSET @ 0 a",
            "LSET @ x a",
            "LINSERT @ before a b",
            "LREM @ 0 a",
            "LTRIM @ 0 0",
            "LMOVE @ l left left",
            "LMOVE l @ left left",
            "LMOVE nokey @ left left",
            "RPOPLPUSH l @",
            "LMPOP 1 @ LEFT",
            "LMPOP 2 nokey @ LEFT",
            "LMPOP 2 l @ LEFT",
            "BLPOP nokey @ 0",
            "BLMOVE @ l left left 0",
            "BRPOPLPUSH @ l 0",
            "BLMPOP 0 1 @ LEFT",
        ] {
            writeln!(lines, "{}", line.replace('@', key)).unwrap();
        }
    }
    differential(&lines);
}

#[test]
fn resp3_as_redis() {
    differential(
        "HELLO 3
         LPOP nokey
         LPOP nokey 1
         LINDEX nokey 0
         LMOVE nokey b left right
         LMPOP 1 nokey LEFT
         RPUSH l a b
         LPOS l c
         LPOS l c count 1
         LMPOP 1 l LEFT
         BLPOP l 0",
    );
}

/// Lists beyond one node, and the conversions between the forms.
#[test]
fn long_lists_as_redis() {
    let mut lines = String::new();
    let mut random = fastrand::Rng::with_seed(7);
    for round in 0..1500 {
        let value = match random.u8(..4) {
            0 => random.u32(..20).to_string(),
            1 => random.i64(..).to_string(),
            2 => "x".repeat(random.usize(1..40)),
            _ => format!("v{}", random.u32(..20)),
        };
        let index = random.i32(-300..300);
        let side = if random.bool() { "before" } else { "after" };
        let line = match random.u8(..18) {
            0..=3 => format!("RPUSH l {value} {value} {round}"),
            4..=6 => format!("LPUSH l {value} {round} {round}"),
            7 => "LPOP l".into(),
            8 => format!("RPOP l {}", random.u8(..6)),
            9 => format!("LSET l {index} {value}"),
            10 => format!("LINSERT l {side} {value} {round}"),
            11 => format!("LREM l {} {value}", random.i8(-2..3)),
            12 => format!("LPOS l {value} RANK {} COUNT 3", if random.bool() { 2 } else { -2 }),
            13 => format!("LRANGE l {index} {}", index + 60),
            14 => format!("LINDEX l {index}"),
            15 => "RPOPLPUSH l m".into(),
            16 => "LMOVE l l LEFT RIGHT".into(),
            _ => {
                if round % 200 == 0 {
                    "LTRIM l 30 -30".into()
                } else {
                    "LLEN l".into()
                }
            }
        };
        lines.push_str(&line);
        lines.push('\n');
        if round % 25 == 0 {
            lines.push_str("7.2 OBJECT ENCODING l\n7.2 OBJECT ENCODING m\n");
        }
    }
    lines.push_str("LRANGE l 0 -1\nLRANGE m 0 -1\n");
    let mut bench = Bench::new();
    bench.settings.list.max_listpack_size = 16;
    differential_with(&mut bench, &["--list-max-listpack-size", "16"], &lines);
    differential(&lines);
}

#[test]
fn waits_only_where_it_may() {
    let mut bench = Bench::new();
    bench.check("BLPOP a b 0", "*-1");
    bench.check("BLMOVE a b LEFT LEFT 0", "$-1");
    bench.check("BLMPOP 0 1 a LEFT", "*-1");
    bench.may_block = true;
    bench.check("BLPOP a b 1.5", "(blocked)");
    let deadline_ms = Some(bench.now_ms + 1500);
    assert_eq!(
        bench.block,
        Some(Block { keys: 1..3, deadline_ms, timeout_reply: TimeoutReply::NullArray, replaced: Vec::new() })
    );
    bench.check("BLMPOP 0 2 a b RIGHT", "(blocked)");
    assert_eq!(
        bench.block,
        Some(Block { keys: 3..5, deadline_ms: None, timeout_reply: TimeoutReply::NullArray, replaced: Vec::new() })
    );
    bench.check("BRPOPLPUSH a b 0", "(blocked)");
    assert_eq!(
        bench.block,
        Some(Block { keys: 1..2, deadline_ms: None, timeout_reply: TimeoutReply::NullArray, replaced: Vec::new() })
    );
    bench.check("RPUSH b x y", ":2");
    bench.check("BLPOP a b 0", "*2 $1 b $1 x");
    bench.check("BLMOVE b a LEFT RIGHT 0", "$1 y");
    bench.check("LLEN b", ":0");
}
