//! HyperLogLogs against a real server, byte for byte, and strings that only look like them.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::selftest::{check_counts, check_registers};
use super::sketch::{self, Sketch};
use super::{estimate, sparse};
use crate::testing::{Bench, check_all, differential, differential_with};
use fastrand::Rng;
use std::fmt::Write;

#[test]
fn adding_counting_merging() {
    check_all(
        r#"PFADD h a b c d e f g => :1
           PFCOUNT h => :7
           PFADD h a => :0
           PFADD empty => :1
           PFADD empty => :0
           PFCOUNT empty nokey => :0
           GET empty => $18 HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x7f\xff
           PFADD other f g h => :1
           PFCOUNT h other => :8
           PFMERGE h other => +OK
           PFCOUNT h => :8
           PFDEBUG ENCODING h => +sparse
           PFDEBUG TODENSE h => :1
           PFDEBUG TODENSE h => :0
           PFDEBUG ENCODING h => +dense
           STRLEN h => :12304
           PFCOUNT h => :8
           SET string hello => +OK
           PFADD string a => -WRONGTYPE Key is not a valid HyperLogLog string value.
           RPUSH list a => :1
           PFCOUNT list => -WRONGTYPE Operation against a key holding the wrong kind of value"#,
    );
}

#[test]
fn what_is_told() {
    let mut bench = Bench::new();
    bench.check("PFADD h a b c", ":1");
    assert_eq!(bench.take_events(), ["new h", "pfadd h"]);
    assert_eq!(bench.take_dirty(), 4, "the key and three registers");
    bench.check("PFCOUNT h", ":3");
    assert_eq!(bench.take_dirty(), 1, "the value caches the count");
    bench.check("PFCOUNT h", ":3");
    assert_eq!(bench.take_dirty(), 0);
    bench.check("PFMERGE m h", "+OK");
    assert_eq!(bench.take_events(), ["keymiss m", "new m", "pfadd m"]);
    assert_eq!(bench.take_dirty(), 1);
}

#[test]
fn arguments_and_errors_as_the_server() {
    differential(
        r#"PFADD h a b c
           GET h
           PFCOUNT h
           GET h
           OBJECT ENCODING h
           PFDEBUG DECODE h
           PFDEBUG decode nokey
           PFDEBUG ABC nokey
           PFDEBUG ABC h
           PFDEBUG GETREG h
           PFDEBUG ENCODING h
           PFDEBUG DECODE h
           PFDEBUG TODENSE h
           GET h
           PFCOUNT nokey
           PFCOUNT nokey nokey2
           PFMERGE to
           GET to
           PFMERGE to nokey
           GET to
           PFMERGE to h nokey
           GET to
           TTL to
           EXPIRE to 1000
           PFADD to x y z
           TTL to
           PFMERGE to to to
           GET to
           SET int 12
           PFADD int a
           PFCOUNT int
           PFCOUNT h int
           PFMERGE h int
           PFMERGE int h
           RPUSH list a
           PFADD list a
           PFCOUNT list
           PFCOUNT h list
           PFMERGE list h
           PFMERGE h list
           PFDEBUG GETREG list
           PFDEBUG GETREG int
           SET short "HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
           PFADD short a
           SET bodyless "HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80"
           PFADD bodyless a
           PFADD bodyless
           PFCOUNT bodyless
           PFMERGE to2 bodyless
           EXISTS to2
           PFDEBUG GETREG bodyless
           PFDEBUG DECODE bodyless
           PFDEBUG TODENSE bodyless
           SET denselike "HYLL\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x7f\xff"
           PFCOUNT denselike
           SET unknown "HYLL\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x7f\xff"
           PFCOUNT unknown
           SET magic "HYLX\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x7f\xff"
           PFCOUNT magic
           SET small "HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x7f\xff"
           OBJECT ENCODING small
           PFCOUNT small
           OBJECT ENCODING small
           SET cached "HYLL\x01\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\x7f\x7f\xff"
           PFCOUNT cached
           PFADD cached a
           PFCOUNT cached
           GET cached
           SET tail "HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x7f\xff\x00"
           PFADD tail a
           PFCOUNT tail
           PFMERGE x tail
           PFDEBUG GETREG tail
           PFDEBUG DECODE tail
           SET head "HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x40\x00\x83\x83"
           PFADD head a
           PFCOUNT head
           PFCOUNT head h
           HELLO 3
           PFCOUNT h
           PFDEBUG ENCODING h"#,
    );
}

/// Elements that come again or not, in few keys, with every value read after each change.
fn random_lines(seed: u64, count: usize) -> String {
    let mut rng = Rng::with_seed(seed);
    let mut lines = String::new();
    for _ in 0..count {
        let key = format!("h{}", rng.u8(..5));
        match rng.u8(..12) {
            0 => writeln!(lines, "PFCOUNT {key}"),
            1 => writeln!(lines, "PFCOUNT {key} h{} h{}", rng.u8(..5), rng.u8(..6)),
            2 => writeln!(lines, "PFMERGE {key} h{} h{}\nOBJECT ENCODING {key}", rng.u8(..5), rng.u8(..6)),
            3 => writeln!(lines, "PFDEBUG DECODE {key}"),
            4 if rng.u8(..8) == 0 => writeln!(lines, "DEL {key}"),
            5 if rng.u8(..16) == 0 => writeln!(lines, "PFDEBUG TODENSE {key}"),
            6 if rng.u8(..6) == 0 => writeln!(lines, "PFDEBUG GETREG {key}"),
            _ => {
                write!(lines, "PFADD {key}").unwrap();
                for _ in 0..(if rng.u8(..3) == 0 { rng.usize(..120) } else { rng.usize(..4) }) {
                    write!(lines, " {}", "x".repeat(rng.usize(..12)) + &rng.u32(..6000).to_string()).unwrap();
                }
                writeln!(lines)
            }
        }
        .unwrap();
        writeln!(lines, "GET {key}").unwrap();
    }
    lines
}

#[test]
fn the_same_bytes_as_the_server() {
    differential(&random_lines(1, 1500));
    for max in [0_usize, 16, 18, 20, 40, 500, 15_000] {
        let mut bench = Bench::new();
        bench.settings.hll_sparse_max_bytes = max;
        differential_with(
            &mut bench,
            &["--hll-sparse-max-bytes", &max.to_string()],
            &random_lines(max as u64, if max == 15_000 { 400 } else { 150 }),
        );
    }
}

#[test]
fn large_counts_as_the_server() {
    let mut lines = String::new();
    for batch in 0..100 {
        lines.push_str("PFADD h");
        for element in 0..1000 {
            write!(lines, " {}", batch * 1000 + element).unwrap();
        }
        lines.push_str("\nPFCOUNT h\n");
    }
    lines.push_str("GET h\n");
    differential(&lines);
}

/// Valid ones with bytes changed, which is what anybody can do with SETRANGE: the same replies, and nothing else breaks.
#[test]
fn damaged_ones_as_the_server() {
    let mut rng = Rng::with_seed(5);
    let mut lines = String::new();
    for round in 0..150 {
        write!(lines, "DEL h to\nPFADD h").unwrap();
        for _ in 0..rng.usize(..60) {
            write!(lines, " {}", rng.u32(..)).unwrap();
        }
        lines.push('\n');
        if round % 5 == 0 {
            lines.push_str("PFDEBUG TODENSE h\n");
        }
        for _ in 0..rng.usize(1..4) {
            let at = if rng.bool() { rng.usize(..24) } else { rng.usize(16..90) };
            writeln!(lines, "SETRANGE h {at} \"\\x{:02x}\"", rng.u8(..)).unwrap();
        }
        // A run of which half is missing cannot be the last one.
        lines.push_str("APPEND h \"\\x00\"\n");
        if rng.bool() {
            lines.push_str("SETRANGE h 15 \"\\x80\"\n");
        }
        write!(lines, "PFCOUNT h\nPFCOUNT h h\nPFADD h {}\nPFMERGE to h\nPFCOUNT to\n", rng.u32(..)).unwrap();
        lines.push_str("PFDEBUG DECODE h\nPFDEBUG GETREG h\nPFDEBUG ENCODING h\nGET h\nPFADD h abc\nGET h\n");
    }
    differential(&lines);
}

#[test]
fn a_failed_command_changes_nothing() {
    let mut bench = Bench::new();
    // Registers up to 8191 alone: some elements find theirs, others do not.
    bench.check(r#"SET h "HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x5f\xff""#, "+OK");
    let elements: Vec<u32> = (0..20).collect();
    let line = elements.iter().fold(String::from("PFADD h"), |line, element| format!("{line} {element}"));
    bench.take_dirty();
    bench.check(&line, "-INVALIDOBJ Corrupted HLL object detected");
    assert_eq!(bench.take_dirty(), 0);
    bench.check("GET h", r"$18 HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00_\xff");
}

#[test]
fn any_bytes_are_taken() {
    let mut rng = Rng::with_seed(6);
    for _ in 0..5000 {
        let mut bytes = sketch::empty();
        bytes.truncate(sketch::HEADER);
        bytes.extend((0..rng.usize(..60)).map(|_| rng.u8(..)));
        let before = bytes.clone();
        let mut sketch = Sketch::of(&mut bytes).unwrap();
        let _ = sketch.histogram().map(|histogram| estimate::count(&histogram));
        let _ = (sketch.registers(), sketch.decode());
        let _ = sketch.make_dense();
        for element in 0..20_u32 {
            let _ = sketch.add(&element.to_le_bytes(), 3000);
        }
        let mut bytes = before;
        let _ = sparse::raise(&mut bytes, sketch::REGISTERS - 1, 32, 3000);
    }
    assert_eq!(estimate::count(&[0; 64]), i64::MIN, "no registers at all");
}

#[test]
fn the_self_test_passes() {
    let mut rng = Rng::with_seed(7);
    check_registers(&mut rng, 20).unwrap();
    check_counts(&mut rng, 200_000, 3000).unwrap();
}
