#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::testing::{Bench, check_all, differential};

#[test]
fn set_options_as_documented() {
    check_all(
        "
        SET k v => +OK
        SET k w NX => $-1
        SET k w XX => +OK
        SET new w XX => $-1
        SET k x GET => $1 w
        SET k y NX GET => $1 x
        SET fresh y NX GET => $-1
        GET fresh => $1 y
        SET k v NX XX => -ERR syntax error
        SET k v EX 10 PX 10 => -ERR syntax error
        SET k v EX 10 KEEPTTL => -ERR syntax error
        SET k v EX => -ERR syntax error
        SET k v EX 0 => -ERR invalid expire time in 'set' command
        SET k v EX 9223372036854775807 => -ERR invalid expire time in 'set' command
        SET k v PX 9223372036854775807 => -ERR invalid expire time in 'set' command
        SET k v EX x => -ERR value is not an integer or out of range
        SET k v EX 10 => +OK
        TTL k => :10
        SET k w KEEPTTL => +OK
        TTL k => :10
        SET k w => +OK
        TTL k => :-1
        SETEX k 0 v => -ERR invalid expire time in 'setex' command
        PSETEX k 0 v => -ERR invalid expire time in 'psetex' command
        ",
    );
}

#[test]
fn notifications_come_in_order() {
    let mut bench = Bench::new();
    bench.run("SET k v EX 5");
    assert_eq!(bench.take_events(), ["new k", "set k", "expire k"]);
    bench.run("SET k w");
    assert_eq!(bench.take_events(), ["set k"]);
    bench.run("MSET k 1 l 2");
    assert_eq!(bench.take_events(), ["set k", "new l", "set l"]);
    bench.take_dirty();
    bench.run("MSET k 1 l 2");
    assert_eq!(bench.take_dirty(), 2);
}

#[test]
fn an_integer_stays_in_its_place_and_keeps_its_expiry() {
    check_all(
        "
        SET n 10 EX 100 => +OK
        INCRBY n 5 => :15
        TTL n => :100
        OBJECT ENCODING n => $3 int
        APPEND n x => :3
        OBJECT ENCODING n => $3 raw
        TTL n => :100
        INCR n => -ERR value is not an integer or out of range
        SET n 9223372036854775807 => +OK
        INCR n => -ERR increment or decrement would overflow
        DECRBY n -9223372036854775808 => -ERR decrement would overflow
        ",
    );
}

#[test]
fn lengths_are_bounded_by_the_setting() {
    let mut bench = Bench::new();
    bench.settings.max_bulk = 10;
    bench.check_all(
        "
        SETRANGE k 9 x => :10
        SETRANGE k 10 x => -ERR string exceeds maximum allowed size (proto-max-bulk-len)
        SETRANGE k 9223372036854775807 x => -ERR string exceeds maximum allowed size (proto-max-bulk-len)
        APPEND k x => -ERR string exceeds maximum allowed size (proto-max-bulk-len)
        SETRANGE k -1 x => -ERR offset is out of range
        SETBIT b 80 1 => -ERR bit offset is not an integer or out of range
        SET a abc => +OK
        LCS a a => -ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len
        ",
    );
}

#[test]
fn strings_as_a_real_server() {
    differential(
        r#"
        SET k v
        GET k
        GET missing
        SET k v NX
        SET k v XX GET
        SET nokey v XX GET
        SET other v NX GET
        SET k w GET EX 100
        SET k w KEEPTTL GET
        TTL k
        SET k w ex 100 ex 50
        TTL k
        SET k w EXAT 99999999999
        EXPIRETIME k
        SET k w PXAT 99999999999999
        PEXPIRETIME k
        SET k w EXAT 1
        EXISTS k
        SET k w NX XX
        SET k w XX NX
        SET k w nx NX
        SET k w EX 1 PX 1
        SET k w KEEPTTL EX 1
        SET k w EX 1 KEEPTTL
        SET k w PERSIST
        SET k w EX
        SET k w EX 0
        SET k w EX -1
        SET k w EX 9223372036854775
        SET k w EX 9223372036854776
        SET k w PX 9223372036854775807
        SET k w PXAT 9223372036854775807
        SET k w EX 1.5
        SET k w nonsense
        !SADD set a
        SET set v GET
        SET set v
        GET set
        OBJECT ENCODING set
        SET k 12345678901234567890
        OBJECT ENCODING k
        SET k 1234567890123456789
        OBJECT ENCODING k
        SET k 01
        OBJECT ENCODING k
        SET k 12345678901234567890123456789012345678901234
        OBJECT ENCODING k
        SET k 123456789012345678901234567890123456789012345
        OBJECT ENCODING k
        OBJECT REFCOUNT k
        SET k 9999
        OBJECT REFCOUNT k
        SET k 10000
        OBJECT REFCOUNT k
        SETNX k v
        SETNX k2 v
        SETEX k 100 v
        SETEX k 0 v
        SETEX k abc v
        PSETEX k 100000 v
        PSETEX k -1 v
        GETSET k new
        GETSET missing1 new
        TTL k
        !DEL list
        !RPUSH list a b
        GETSET list x
        GET list
        GETDEL list
        STRLEN list
        APPEND list x
        SETRANGE list 0 x
        SETRANGE list 0 ""
        GETRANGE list 0 1
        INCR list
        INCRBYFLOAT list 1
        MGET k list missing k2
        GETEX list
        GETEX list EX 0
        GETDEL k
        GETDEL k
        SET k v
        GETEX k
        GETEX k EX 100
        TTL k
        GETEX k PERSIST
        GETEX k PERSIST
        GETEX k EX 100 PERSIST
        GETEX k PERSIST EX 100
        GETEX k PERSIST PERSIST
        GETEX k KEEPTTL
        GETEX k NX
        GETEX k EX 0
        GETEX missing EX 0
        GETEX missing EX x
        GETEX k PX 100000
        GETEX k EXAT 1
        EXISTS k
        SET k v
        GETEX k PXAT 99999999999999
        PEXPIRETIME k
        GETEX k PXAT 1
        SETRANGE k 5 ""
        SETRANGE k 5 abc
        GET k
        OBJECT ENCODING k
        SETRANGE k 1 Z
        SETRANGE k 536870910 abc
        SETRANGE k -1 abc
        SETRANGE k x abc
        SET n 10
        SETRANGE n 1 5
        GET n
        OBJECT ENCODING n
        GETRANGE n 0 -1
        SUBSTR n 0 0
        SET k "This is a string"
        GETRANGE k 0 3
        GETRANGE k -3 -1
        GETRANGE k 0 -1
        GETRANGE k 10 100
        GETRANGE k -1 -3
        GETRANGE k -100 -50
        GETRANGE k -100 2
        GETRANGE k 5 3
        GETRANGE k 100 200
        GETRANGE k 9223372036854775807 9223372036854775807
        GETRANGE k -9223372036854775808 9223372036854775807
        GETRANGE k x 3
        GETRANGE k 0 x
        GETRANGE missing 0 1
        SET e ""
        GETRANGE e 0 -1
        STRLEN k
        STRLEN missing
        SET n -12345
        STRLEN n
        MSET a 1 b 2 a 3
        MGET a b
        MSET a
        MSET a 1 b
        MSETNX a 1 zz 2
        EXISTS zz
        MSETNX zz 1 yy 2 zz 3
        MGET zz yy
        MSETNX zz
        MSETNX zz 1 y
        DEL n
        INCR n
        INCRBY n 10
        DECR n
        DECRBY n 100
        DECRBY n -9223372036854775808
        INCRBY n x
        INCRBY n 9223372036854775807
        INCRBY n 9223372036854775807
        OBJECT ENCODING n
        SET s abc
        INCR s
        SET s " 1"
        INCR s
        SET s "1 "
        INCR s
        DEL s
        APPEND s 12
        OBJECT ENCODING s
        APPEND s 3
        OBJECT ENCODING s
        GET s
        INCR s
        OBJECT ENCODING s
        APPEND s ""
        OBJECT ENCODING s
        DEL s
        APPEND s ""
        OBJECT ENCODING s
        EXISTS s
        SET f 10.50
        INCRBYFLOAT f 0.1
        OBJECT ENCODING f
        INCRBYFLOAT f -5
        INCRBYFLOAT f 1e3
        INCRBYFLOAT f 5.0e-3
        INCRBYFLOAT f abc
        INCRBYFLOAT f inf
        INCRBYFLOAT f nan
        INCRBYFLOAT f " 1"
        INCRBYFLOAT f ""
        SET f abc
        INCRBYFLOAT f 1
        SET f 3
        INCRBYFLOAT f 1
        OBJECT ENCODING f
        INCR f
        INCRBYFLOAT fresh 3.0
        SET f 1e400
        INCRBYFLOAT f 1
        SET f 1.7976931348623157e308
        INCRBYFLOAT f 1
        SET f 3 EX 100
        INCRBYFLOAT f 0.25
        TTL f
        LCS missing1x missing2x
        SET l1 ohmytext
        SET l2 mynewtext
        LCS l1 l2
        LCS l1 l2 LEN
        LCS l1 l2 IDX
        LCS l1 l2 IDX MINMATCHLEN 4
        LCS l1 l2 IDX MINMATCHLEN 4 WITHMATCHLEN
        LCS l1 l2 IDX WITHMATCHLEN
        LCS l1 l2 LEN IDX
        LCS l1 l2 MINMATCHLEN
        LCS l1 l2 MINMATCHLEN x
        LCS l1 l2 MINMATCHLEN -5 IDX
        LCS l1 l2 nonsense
        LCS l1 missing IDX
        SET l3 xxxxohmyyyyyohmy
        SET l4 ohmyohmxxohyyy
        LCS l3 l4 IDX WITHMATCHLEN
        LCS l4 l3 IDX WITHMATCHLEN
        LCS l4 l3
        LCS l3 l3 IDX WITHMATCHLEN
        SET l5 123456
        LCS l5 l5
        !DEL list
        !RPUSH list a b
        LCS l1 list
        LCS list l1 nonsense
        LCS missing list
        HELLO 3
        GET missing
        SET k v GET XX
        SET missing9 v XX
        LCS l1 l2 IDX WITHMATCHLEN
        MGET missing k
        "#,
    );
}
