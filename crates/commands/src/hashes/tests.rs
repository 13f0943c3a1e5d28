#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod times;

use crate::testing::{Bench, check_all, differential, differential_with};

/// Every command on a missing key, on another type, on a small hash and on a table.
const LINES: &str = include_str!("tests/lines.txt");

#[test]
fn fields_come_and_go() {
    check_all(
        r#"
        HSET h a 1 b 2 a 3 => :2
        HSET h a 4 c 5 => :1
        HGET h a => $1 4
        HMGET h a nope c => *3 $1 4 $-1 $1 5
        HLEN h => :3
        HDEL h a a nope => :1
        HDEL h b c => :2
        HLEN h => :0
        HGETALL h => *0
        HSET h a => -ERR wrong number of arguments for 'hset' command
        HSET h a 1 b => -ERR wrong number of arguments for 'hset' command
        HMSET h a 1 b => -ERR wrong number of arguments for 'hmset' command
        HMSET h a 1 => +OK
        "#,
    );
}

#[test]
fn events_and_counts() {
    let mut bench = Bench::new();
    bench.check("HSET h a 1 b 2", ":2");
    assert_eq!(bench.take_events(), ["new h", "hset h"]);
    assert_eq!(bench.take_dirty(), 2);
    bench.check("HSETNX h a 1", ":0");
    assert_eq!(bench.take_dirty(), 0);
    bench.check("HDEL h a b c", ":2");
    assert_eq!(bench.take_events(), ["hdel h", "del h"]);
    assert_eq!(bench.take_dirty(), 2);
    bench.check("HINCRBY h a x", "-ERR value is not an integer or out of range");
    bench.check("HINCRBYFLOAT h a inf", "-ERR value is NaN or Infinity");
    assert!(bench.take_events().is_empty());
}

#[test]
fn scan_meets_every_field_of_a_table() {
    let mut bench = Bench::new();
    for number in 0..2000 {
        bench.run(&format!("HSET h field:{number} {number}"));
    }
    let mut cursor = "0".to_string();
    let mut seen = std::collections::HashSet::new();
    loop {
        let reply = bench.run(&format!("HSCAN h {cursor} COUNT 50 MATCH field:*"));
        let words: Vec<&str> = reply.split(' ').filter(|word| !word.starts_with(['$', '*'])).collect();
        cursor = words.first().unwrap().to_string();
        seen.extend(words.iter().skip(1).filter(|word| word.starts_with("field:")).map(|word| word.to_string()));
        if cursor == "0" {
            break;
        }
    }
    assert_eq!(seen.len(), 2000);
}

#[test]
fn random_fields_are_different_or_not() {
    let mut bench = Bench::new();
    bench.run("HSET h a 1 b 2 c 3");
    assert!(bench.run("HRANDFIELD h -7").starts_with("*7 "));
    assert!(bench.run("HRANDFIELD h -2500").starts_with("*2500 "));
    assert!(bench.run("HRANDFIELD h 2 WITHVALUES").starts_with("*4 "));
    assert!(bench.run("HRANDFIELD h 9").starts_with("*3 "));
    bench.run("HELLO 3");
    assert!(bench.run("HRANDFIELD h -5 withvalues").starts_with("*5 *2 "));
    bench.check("HRANDFIELD h 0", "*0");
    bench.check("HRANDFIELD none", "_");
}

#[test]
fn as_redis() {
    differential(LINES);
    differential(&format!("HELLO 3\n{LINES}"));
}

#[test]
fn as_redis_with_tables_alone() {
    let mut bench = Bench::new();
    bench.settings.hash = keyspace::hash::Limits { max_listpack_entries: 0, max_listpack_value: 64 };
    // How many fields one HSCAN visits depends on the table.
    let is_comparable = |line: &&str| !line.starts_with('#') && !line.contains("SCAN h ");
    let lines: Vec<String> =
        LINES.lines().filter(is_comparable).map(|line| format!("~{}", line.trim_start_matches('~'))).collect();
    differential_with(&mut bench, &["--hash-max-listpack-entries", "0"], &lines.join("\n"));
}
