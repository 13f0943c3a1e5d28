#![allow(clippy::unwrap_used, clippy::expect_used)]

use crate::testing::{Bench, check_all, differential};

#[test]
fn conditions_on_the_present_expiry() {
    check_all(
        "
        SET k v => +OK
        EXPIRE k 100 XX => :0
        EXPIRE k 100 GT => :0
        EXPIRE k 100 LT => :1
        EXPIRE k 50 NX => :0
        EXPIRE k 50 GT => :0
        EXPIRE k 200 GT => :1
        EXPIRE k 100 LT XX => :1
        TTL k => :100
        PERSIST k => :1
        PERSIST k => :0
        TTL k => :-1
        TTL missing => :-2
        ",
    );
}

#[test]
fn a_key_ends_in_time() {
    let mut bench = Bench::new();
    bench.check("SET k v PX 1499", "+OK");
    bench.check("TTL k", ":1");
    bench.advance(1498);
    bench.check("PTTL k", ":1");
    bench.take_events();
    bench.advance(1);
    bench.check("GET k", "$-1");
    assert_eq!(bench.take_events(), ["expired k", "keymiss k"]);
}

#[test]
fn a_time_in_the_past_deletes() {
    let mut bench = Bench::new();
    bench.run("SET k v");
    bench.take_events();
    bench.check("EXPIRE k 0", ":1");
    assert_eq!(bench.take_events(), ["del k"]);
    bench.check("EXISTS k", ":0");
}

#[test]
fn expiry_as_a_real_server() {
    differential(
        "
        SET k v
        EXPIRE k 100
        TTL k
        EXPIRE k 100 NX
        EXPIRE k 200 XX
        EXPIRE k 100 GT
        EXPIRE k 300 GT
        EXPIRE k 400 LT
        EXPIRE k 50 LT
        EXPIRE k 50 LT XX
        EXPIRE k 60 GT XX
        EXPIRE k 100 NX XX
        EXPIRE k 100 NX GT
        EXPIRE k 100 GT LT
        EXPIRE k 100 nx nx
        EXPIRE k 100 nonsense
        EXPIRE k x
        EXPIRE k x nonsense
        EXPIRE k 9223372036854775807
        EXPIRE k 9223372036854775
        EXPIRE k -9223372036854775808
        EXPIREAT k 9223372036854775807
        PEXPIRE k 9223372036854775807
        PEXPIRE k 9223372036854770000
        PEXPIREAT k 9223372036854775807
        PEXPIRETIME k
        EXPIRETIME k
        PERSIST k
        PERSIST k
        EXPIREAT k 99999999999
        EXPIRETIME k
        PEXPIREAT k 99999999999999
        PEXPIRETIME k
        EXPIRETIME k
        PEXPIREAT k 99999999999499
        EXPIRETIME k
        PEXPIREAT k 99999999999500
        EXPIRETIME k
        PTTL missing
        TTL missing
        EXPIRETIME missing
        PEXPIRETIME missing
        PERSIST missing
        EXPIRE missing 10
        EXPIRE missing 10 nonsense
        EXPIRE missing x
        EXPIRE k 0
        EXISTS k
        SET k v
        EXPIRE k -1
        SET k v
        EXPIREAT k 1
        SET k v
        PEXPIREAT k 1 GT
        PEXPIREAT k 1 LT
        SET k v
        EXPIRE k 100
        SET k v
        TTL k
        !RPUSH list a
        PEXPIRE list 100000
        TTL list
        7.2 OBJECT ENCODING list
        ",
    );
}
