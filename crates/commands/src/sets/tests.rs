#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::testing::{Bench, check_all, differential, differential_with};

/// Every command on a missing key, on another type, and on sets of all encodings, with the encodings of the results.
const LINES: &str = include_str!("tests/lines.txt");

/// Commands of other families that the lines use to look at results; left out while this crate lacks them.
fn lines() -> String {
    let runs = |line: &&str| {
        let command = line.trim_start_matches(['~', '!']).split(' ').next().unwrap_or_default();
        line.starts_with('#') || {
            let mut spec = crate::table::lookup(command.as_bytes()).unwrap();
            if spec.is_container() {
                spec = crate::table::lookup_sub(spec, b"encoding").unwrap();
            }
            crate::handler(spec.id).is_some()
        }
    };
    LINES.lines().filter(runs).collect::<Vec<_>>().join("\n")
}

#[test]
fn members_come_and_go() {
    check_all(
        r#"
        SADD s 3 1 2 1 => :3
        SMEMBERS s => *3 $1 1 $1 2 $1 3
        SADD s x => :1
        SISMEMBER s x => :1
        SMISMEMBER s x y 2 => *3 :1 :0 :1
        SREM s 1 2 3 nope => :3
        SMOVE s t x => :1
        SCARD s => :0
        SMEMBERS t => *1 $1 x
        SPOP t => $1 x
        SPOP t => $-1
        SPOP t 3 => *0
        SPOP t -1 => -ERR value is out of range, must be positive
        "#,
    );
}

#[test]
fn events_and_counts() {
    let mut bench = Bench::new();
    bench.check("SADD s a b", ":2");
    assert_eq!(bench.take_events(), ["new s", "sadd s"]);
    assert_eq!(bench.take_dirty(), 2);
    bench.check("SADD s a", ":0");
    assert_eq!(bench.take_dirty(), 0);
    bench.check("SMOVE s t a", ":1");
    assert_eq!(bench.take_events(), ["srem s", "new t", "sadd t"]);
    assert_eq!(bench.take_dirty(), 2);
    bench.check("SMOVE s t b", ":1");
    assert_eq!(bench.take_events(), ["srem s", "del s", "sadd t"]);
    bench.take_dirty();
    bench.check("SPOP t 2", "*2 $1 a $1 b");
    assert_eq!(bench.take_events(), ["spop t", "del t"]);
    assert_eq!(bench.take_dirty(), 2);
    bench.run("SADD d 1");
    bench.take_events();
    bench.check("SINTERSTORE d none d", ":0");
    assert_eq!(bench.take_events(), ["keymiss none", "del d"]);
}

#[test]
fn scan_meets_every_member_of_a_table() {
    let mut bench = Bench::new();
    for number in 0..2000 {
        bench.run(&format!("SADD s member:{number}"));
    }
    let mut cursor = "0".to_string();
    let mut seen = std::collections::HashSet::new();
    loop {
        let reply = bench.run(&format!("SSCAN s {cursor} COUNT 50"));
        let words: Vec<&str> = reply.split(' ').filter(|word| !word.starts_with(['$', '*'])).collect();
        cursor = words.first().unwrap().to_string();
        seen.extend(words.iter().skip(1).map(|word| word.to_string()));
        if cursor == "0" {
            break;
        }
    }
    assert_eq!(seen.len(), 2000);
}

#[test]
fn popped_members_are_gone() {
    for (members, count) in [(10, 3), (10, 9), (300, 10), (300, 290), (300, 300)] {
        for prefix in ["", "m"] {
            let mut bench = Bench::new();
            for number in 0..members {
                bench.run(&format!("SADD s {prefix}{number}"));
            }
            let popped = bench.run(&format!("SPOP s {count}"));
            let popped: Vec<&str> = popped.split(' ').filter(|word| !word.starts_with(['$', '*'])).collect();
            assert_eq!(popped.len(), count);
            bench.check("SCARD s", &format!(":{}", members - count));
            for member in popped {
                bench.check(&format!("SISMEMBER s {member}"), ":0");
            }
        }
    }
}

#[test]
fn as_redis() {
    differential(&lines());
    differential(&format!("HELLO 3\n{}", lines()));
}

#[test]
fn as_redis_with_tables_alone() {
    let mut bench = Bench::new();
    bench.settings.set = keyspace::set::Limits { max_intset_entries: 0, max_listpack_entries: 0, max_listpack_value: 64 };
    let lines: Vec<String> = lines().lines().filter(|line| !line.starts_with('#')).map(|line| format!("~{}", line.trim_start_matches('~'))).collect();
    let extra = ["--set-max-intset-entries", "0", "--set-max-listpack-entries", "0"];
    differential_with(&mut bench, &extra, &lines.join("\n"));
}
