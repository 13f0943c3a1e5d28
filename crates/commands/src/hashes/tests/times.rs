//! Fields that end.

use crate::testing::{Bench, check_all};

#[test]
fn times_are_set_and_told() {
    let mut bench = Bench::new();
    bench.now_ms = 1_000_000;
    for (line, reply) in [
        ("HSET h a 1 b 2 c 3", ":3"),
        ("HTTL h FIELDS 2 a nope", "*2 :-1 :-2"),
        ("HTTL nosuch FIELDS 1 a", "*1 :-2"),
        ("HEXPIRE h 10 FIELDS 2 a nope", "*2 :1 :-2"),
        ("HTTL h FIELDS 1 a", "*1 :10"),
        ("HPTTL h FIELDS 2 a b", "*2 :10000 :-1"),
        ("HEXPIRETIME h FIELDS 1 a", "*1 :1010"),
        ("HPEXPIRETIME h FIELDS 1 a", "*1 :1010000"),
        ("HPEXPIRE h 20000 GT FIELDS 2 a b", "*2 :1 :0"),
        ("HPEXPIRE h 20000 GT FIELDS 1 a", "*1 :0"),
        ("HPEXPIRE h 5000 LT FIELDS 2 a b", "*2 :1 :1"),
        ("HPEXPIRE h 1 NX FIELDS 2 a c", "*2 :0 :1"),
        ("HEXPIREAT h 2000 XX FIELDS 2 a nope", "*2 :1 :-2"),
        ("HPERSIST h FIELDS 3 a nope c", "*3 :1 :-2 :1"),
        ("HPERSIST h FIELDS 1 a", "*1 :-1"),
        ("HPEXPIREAT h 1000001 FIELDS 1 b", "*1 :1"),
        ("OBJECT ENCODING h", "$9 hashtable"),
        ("HLEN h", ":3"),
    ] {
        bench.check(line, reply);
    }
    bench.take_events();
    bench.now_ms = 1_000_001;
    bench.check("HLEN h", ":2");
    assert_eq!(bench.take_events(), ["hexpired h"]);
    bench.check("HGET h b", "$-1");
    bench.check("HEXPIRE h 0 FIELDS 2 a c", "*2 :2 :2");
    assert_eq!(bench.take_events(), ["hdel h", "del h"]);
    bench.check("EXISTS h", ":0");
}

#[test]
fn what_keeps_a_time_and_what_does_not() {
    let mut bench = Bench::new();
    bench.now_ms = 1_000_000;
    for (line, reply) in [
        ("HSET h a 1 b 2 c 3", ":3"),
        ("HEXPIRE h 10 FIELDS 3 a b c", "*3 :1 :1 :1"),
        ("HINCRBY h a 5", ":6"),
        ("HINCRBYFLOAT h b 0.5", "$3 2.5"),
        ("HSET h c 4", ":0"),
        ("HTTL h FIELDS 3 a b c", "*3 :10 :10 :-1"),
        ("COPY h copied", ":1"),
        ("HTTL copied FIELDS 2 a c", "*2 :10 :-1"),
        ("RENAME copied renamed", "+OK"),
        ("HTTL renamed FIELDS 2 a c", "*2 :10 :-1"),
        ("HDEL h a", ":1"),
        ("HSET h a 7", ":1"),
        ("HTTL h FIELDS 1 a", "*1 :-1"),
        ("SET renamed string", "+OK"),
        ("DEL renamed", ":1"),
        ("HSETEX h EX 100 FIELDS 2 a 8 new 9", ":1"),
        ("HTTL h FIELDS 3 a b new", "*3 :100 :10 :100"),
        ("HSETEX h KEEPTTL FIELDS 1 a 9", ":1"),
        ("HTTL h FIELDS 1 a", "*1 :100"),
        ("HSETEX h FIELDS 1 a 10", ":1"),
        ("HTTL h FIELDS 1 a", "*1 :-1"),
        ("HSETEX h FNX FIELDS 2 a 1 newer 1", ":0"),
        ("HSETEX h FXX PXAT 2000000 FIELDS 2 a 1 b 1", ":1"),
        ("HGETEX h FIELDS 2 a nope", "*2 $1 1 $-1"),
        ("HGETEX h EX 7 FIELDS 1 a", "*1 $1 1"),
        ("HTTL h FIELDS 1 a", "*1 :7"),
        ("HGETEX h PERSIST FIELDS 1 a", "*1 $1 1"),
        ("HTTL h FIELDS 1 a", "*1 :-1"),
        ("HGETDEL h FIELDS 3 a nope b", "*3 $1 1 $-1 $1 1"),
        ("HGETALL h", "*4 $1 c $1 4 $3 new $1 9"),
        ("HGETDEL h FIELDS 2 c new", "*2 $1 4 $1 9"),
        ("EXISTS h", ":0"),
        ("HSETEX fresh EX 5 FIELDS 1 f v", ":1"),
        ("HTTL fresh FIELDS 1 f", "*1 :5"),
        ("HSETEX gone PXAT 1 FIELDS 1 f v", ":1"),
        ("EXISTS gone", ":0"),
    ] {
        bench.check(line, reply);
    }
    bench.now_ms += 5_000;
    bench.check("HGETALL fresh", "*0");
    bench.check("EXISTS fresh", ":0");
}

#[test]
fn many_fields_end_in_their_order() {
    let mut bench = Bench::new();
    bench.now_ms = 1_000_000;
    for number in 0..300 {
        bench.run(&format!("HSET h f{number} {number}"));
        bench.run(&format!("HPEXPIRE h {} FIELDS 1 f{number}", 1_000 + number));
    }
    bench.check("HSET h stays 1", ":1");
    for ended in [0, 1, 2, 150, 299] {
        bench.now_ms = 1_001_000 + ended;
        bench.check("HLEN h", &format!(":{}", 300 - ended));
    }
    bench.now_ms += 1;
    bench.check("HGETALL h", "*2 $5 stays $1 1");
}

#[test]
fn wrong_arguments() {
    check_all(
        r#"
        SET s x => +OK
        HEXPIRE s 10 FIELDS 1 a => -WRONGTYPE Operation against a key holding the wrong kind of value
        HEXPIRE h abc FIELDS 1 a => -ERR value is not an integer or out of range
        HEXPIRE h -1 FIELDS 1 a => -ERR invalid expire time, must be >= 0
        HEXPIRE h 9223372036854775807 FIELDS 1 a => -ERR invalid expire time in 'hexpire' command
        HPEXPIREAT h 70368744177664 FIELDS 1 a => -ERR invalid expire time in 'hpexpireat' command
        HEXPIRE h 10 XY FIELDS 1 a => -ERR Mandatory argument FIELDS is missing or not at the right position
        HEXPIRE h 10 NX GT FIELDS 1 a => -ERR Mandatory argument FIELDS is missing or not at the right position
        HEXPIRE h 10 FIELDS 0 a => -ERR Parameter `numFields` should be greater than 0
        HEXPIRE h 10 FIELDS 9223372036854775807 a => -ERR The `numfields` parameter must match the number of arguments
        HEXPIRE h 10 FIELDS 2 a => -ERR The `numfields` parameter must match the number of arguments
        HEXPIRE h 10 FIELDS 1 a => *1 :-2
        HTTL h FIELDS x a => -ERR Number of fields must be a positive integer
        HTTL h FIELDZ 1 a => -ERR Mandatory argument FIELDS is missing or not at the right position
        HPERSIST h FIELDS 2 a => -ERR The `numfields` parameter must match the number of arguments
        HGETEX h EX FIELDS 1 a => -ERR value is not an integer or out of range
        HGETEX h KEEPTTL FIELDS 1 a => -ERR Mandatory argument FIELDS is missing or not at the right position
        HSETEX h FNX FXX FIELDS 1 a b => -ERR syntax error
        HSETEX h EX 1 PX 1 FIELDS 1 a b => -ERR syntax error
        HSETEX h FIELDS 1 a => -ERR wrong number of arguments for 'hsetex' command
        HSETEX h FIELDS 2 a b c => -ERR The `numfields` parameter must match the number of arguments
        EXISTS h => :0
        HSCAN h 0 NOVALUES => *2 $1 0 *0
        HSET h a 1 => :1
        HSCAN h 0 NOVALUES COUNT 10 => *2 $1 0 *1 $1 a
        HSCAN h 0 NOVALUE => -ERR syntax error
        "#,
    );
}
