#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::testing::{Bench, check_all, differential};
use std::fmt::Write as _;

#[test]
fn bits_of_a_string() {
    check_all(
        "
        SETBIT k 7 1 => :0
        GET k => $1 \\x01
        SETBIT k 7 1 => :1
        GETBIT k 7 => :1
        GETBIT k 8 => :0
        BITCOUNT k => :1
        BITPOS k 1 => :7
        BITFIELD k GET u4 4 => *1 :1
        BITFIELD far OVERFLOW SAT SET i63 0 -7097459341238063187 GET i63 0 => *2 :0 :4611686018427387903
        BITFIELD near OVERFLOW SAT SET i63 0 -4611686018427387905 GET i63 0 => *2 :0 :4611686018427387903
        BITFIELD k SET u4 4 15 GET i4 4 => *2 :1 :-1
        ",
    );
}

#[test]
fn a_field_counts_each_change() {
    let mut bench = Bench::new();
    bench.take_dirty();
    bench.run("BITFIELD k SET u8 0 1 SET u8 8 2 GET u8 0");
    assert_eq!(bench.take_dirty(), 2);
    assert_eq!(bench.take_events(), ["new k", "setbit k"]);
    bench.run("BITFIELD k OVERFLOW FAIL INCRBY u8 0 300");
    assert_eq!(bench.take_dirty(), 0);
}

#[test]
fn bits_as_a_real_server() {
    differential(
        r#"
        SETBIT k 7 1
        SETBIT k 7 1
        SETBIT k 7 0
        SETBIT k 100 1
        SETBIT k 100 2
        SETBIT k 100 x
        SETBIT k -1 1
        SETBIT k 4294967296 1
        SETBIT k x 1
        GETBIT k 100
        GETBIT k 1000
        GETBIT k 4294967296
        GETBIT missing 0
        SET n 123
        GETBIT n 3
        SETBIT n 3 0
        GET n
        OBJECT ENCODING n
        SET n 123
        SETBIT n 3 1
        OBJECT ENCODING n
        !RPUSH list a
        SETBIT list 0 1
        GETBIT list 0
        BITCOUNT list
        BITPOS list 0
        BITOP AND dest list
        BITFIELD list GET u8 0
        BITFIELD list SET u8 0 1
        SET k foobar
        BITCOUNT k
        BITCOUNT k 0 0
        BITCOUNT k 1 1
        BITCOUNT k 1 -2
        BITCOUNT k -2 -1
        BITCOUNT k -1 -2
        BITCOUNT k -1 -2 nonsense
        BITCOUNT k 5 30 BIT
        BITCOUNT k 5 30 byte
        BITCOUNT k 5 30 nonsense
        BITCOUNT k 5
        BITCOUNT k x 5
        BITCOUNT k 0 x
        BITCOUNT k 0 -1 BIT
        BITCOUNT k -10 -3 BIT
        BITCOUNT k 3 3 bit
        BITCOUNT k 100 200 bit
        BITCOUNT k 7 8 bit
        BITCOUNT k 0 7 bit
        BITCOUNT k 8 15 bit
        BITCOUNT missing
        BITCOUNT missing x y
        BITCOUNT k 0 1 bit extra
        SET e ""
        BITCOUNT e
        BITCOUNT e 0 -1
        BITPOS e 0
        BITPOS e 1
        BITPOS e 0 0
        BITPOS e 0 0 -1
        SET n 1234567
        BITCOUNT n
        BITPOS k 1
        BITPOS k 0
        BITPOS k 2
        BITPOS k x
        BITPOS missing 0
        BITPOS missing 1
        BITPOS missing 1 x
        SET p "\xff\xf0\x00"
        BITPOS p 0
        BITPOS p 1 2
        BITPOS p 1 2 -1
        BITPOS p 0 2
        BITPOS p 0 0 0
        BITPOS p 1 -1
        BITPOS p 1 7 15 BIT
        BITPOS p 1 7 -3 BIT
        BITPOS p 0 7 11 bit
        BITPOS p 0 7 12 bit
        BITPOS p 0 12 12 bit
        BITPOS p 1 12 23 bit
        BITPOS p 1 5 6 bit
        BITPOS p 1 6 5 bit
        BITPOS p 1 100
        BITPOS p 1 0 x
        BITPOS p 1 x
        BITPOS p 1 0 -1 nonsense
        BITPOS p 0 0 -1 byte
        SET q "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
        BITPOS q 0
        BITPOS q 0 0
        BITPOS q 0 0 -1
        BITPOS q 0 3 5
        BITPOS q 0 17
        BITPOS q 1 3
        BITPOS q 1 33 bit
        BITPOS q 0 3 100 bit
        BITPOS q 0 3 100 byte
        SET a "\x0f\xf0\xaa"
        SET b "\xff\x0f"
        BITOP AND d a b
        GET d
        OBJECT ENCODING d
        BITOP OR d a b
        GET d
        BITOP xor d a b
        GET d
        BITOP NOT d a
        GET d
        BITOP NOT d a b
        BITOP AND d a missing
        GET d
        BITOP OR d missing a
        GET d
        BITOP AND d missing missing
        EXISTS d
        BITOP AND d missing
        BITOP nope d a
        BITOP OR d a
        BITOP OR a a b
        GET a
        SET i 123
        BITOP OR d i
        GET d
        OBJECT ENCODING d
        BITFIELD f
        BITFIELD f GET u8 0
        EXISTS f
        BITFIELD f SET u8 0 255 GET i8 0
        BITFIELD f INCRBY u8 0 10
        BITFIELD f OVERFLOW SAT INCRBY u8 0 300 INCRBY u8 0 -1000
        BITFIELD f OVERFLOW FAIL INCRBY u8 0 300 OVERFLOW WRAP INCRBY u8 0 -1
        BITFIELD f OVERFLOW sat SET i8 0 200 GET i8 0 SET i8 0 -200 GET i8 0
        BITFIELD f OVERFLOW WRAP SET i8 0 200 GET i8 0
        BITFIELD f OVERFLOW FAIL SET i8 0 200 GET i8 0 SET u8 0 -1 GET u8 0
        BITFIELD f OVERFLOW SAT SET u8 0 -1 GET u8 0
        BITFIELD f SET u63 100 -1 GET u63 100
        BITFIELD f SET i64 200 -9223372036854775808 INCRBY i64 200 -1 GET i64 200
        BITFIELD f OVERFLOW SAT INCRBY i64 200 9223372036854775807 INCRBY i64 200 1
        BITFIELD f OVERFLOW FAIL INCRBY i64 200 1
        BITFIELD f SET u4 #1 9 GET u4 #1 GET u4 4 GET u4 #0
        BITFIELD f SET i5 3 -16 INCRBY i5 3 -1
        BITFIELD f GET u1 10000
        BITFIELD f GET u64 0
        BITFIELD f GET i65 0
        BITFIELD f GET u0 0
        BITFIELD f GET x8 0
        BITFIELD f GET i 0
        BITFIELD f GET u8 -1
        BITFIELD f GET u8 #-1
        BITFIELD f GET u8 x
        BITFIELD f GET u8
        BITFIELD f SET u8 0
        BITFIELD f SET u8 0 x
        BITFIELD f OVERFLOW nope
        BITFIELD f OVERFLOW
        BITFIELD f nope
        BITFIELD f GET u8 4294967290
        BITFIELD f SET u8 4294967296 1
        BITFIELD fresh OVERFLOW FAIL INCRBY u2 0 10
        EXISTS fresh
        BITFIELD f GET u8 0 SET u8 0 0 SET u8 0 0 SET u8 8 7
        SET i 123
        BITFIELD i GET u8 0 GET i24 0 GET u9 16
        OBJECT ENCODING i
        BITFIELD i SET u8 0 50
        OBJECT ENCODING i
        BITFIELD_RO f GET u8 0 GET i8 8
        BITFIELD_RO missing GET u8 0
        BITFIELD_RO f SET u8 0 1
        BITFIELD_RO f OVERFLOW WRAP GET u8 0
        "#,
    );
}

#[test]
fn ranges_of_bits_at_every_edge() {
    let mut lines = String::from("SET k \"\\xf0\\x0f\\x00\\xff\\x3c\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\x7f\"\n");
    for start in [0, 1, 3, 4, 7, 8, 11, 12, 16, 20, 23, 24, 31, 33, 39, 40, 47, 63, 64, 100, 111] {
        for len in [0, 1, 2, 4, 7, 8, 9, 15, 16, 30, 64, 70, 111] {
            let end = start + len;
            writeln!(lines, "BITCOUNT k {start} {end} BIT\nBITPOS k 0 {start} {end} BIT\nBITPOS k 1 {start} {end} BIT")
                .unwrap();
        }
    }
    differential(&lines);
}
