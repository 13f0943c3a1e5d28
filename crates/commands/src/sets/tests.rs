#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::table;
use crate::testing::{self, Bench, Oracle, check_all, differential, differential_with};
use keyspace::ValueRef;
use resp::Reply;

/// Every command on a missing key, on another type, and on sets of all encodings, with the encodings of the results.
const LINES: &str = include_str!("tests/lines.txt");

/// A line's command, behind the marks.
fn unmarked(line: &str) -> &str {
    line.trim_start_matches("7.2 ").trim_start_matches(['~', '!'])
}

/// Whether the crate has the command: lines use some of other families to look at results.
fn is_runnable(line: &str) -> bool {
    let command = unmarked(line).split(' ').next().unwrap_or_default();
    let mut spec = table::lookup(command.as_bytes()).unwrap();
    if spec.is_container() {
        spec = table::lookup_sub(spec, b"encoding").unwrap();
    }
    crate::handler(spec.id).is_some()
}

/// The lines to compare; `free_order`: no order of members is compared.
fn lines(free_order: bool) -> String {
    let lines = LINES.lines().filter(|line| !line.starts_with('#') && is_runnable(line));
    let mark =
        |line: &str| if free_order && !line.starts_with(['7', '~']) { format!("~{line}") } else { line.to_string() };
    lines.map(mark).collect::<Vec<_>>().join("\n")
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

/// Whether the server to compare with has listpacks for sets, and so the same order in small ones.
fn is_order_known() -> bool {
    Oracle::start(&[]).is_some_and(|oracle| oracle.version >= (7, 2))
}

#[test]
fn as_redis() {
    let lines = lines(!is_order_known());
    differential(&lines);
    differential(&format!("HELLO 3\n{lines}"));
}

#[test]
fn encodings_as_redis() {
    let Some(mut oracle) = Oracle::start(&[]) else { return };
    if oracle.version < (7, 2) {
        return;
    }
    let mut bench = Bench::new();
    let mut last = "";
    for line in LINES.lines().filter(|line| !line.starts_with('#')) {
        let args = testing::split(unmarked(line));
        let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
        if line.contains("OBJECT ENCODING") {
            let theirs = testing::show(&oracle.ask(&args));
            let ours = bench.with_ctx(&mut Reply::new(), |ctx| match ctx.db.get(args.last().unwrap()) {
                Some(ValueRef::Set(set)) => set.encoding().name(),
                _ => "$-1",
            });
            assert_eq!(theirs.rsplit(' ').next(), Some(ours), "after {last}");
        } else if is_runnable(line) {
            oracle.ask(&args);
            bench.run_args(&args);
            last = line;
        }
    }
}

#[test]
fn as_redis_with_tables_alone() {
    let mut bench = Bench::new();
    bench.settings.set =
        keyspace::set::Limits { max_intset_entries: 0, max_listpack_entries: 0, max_listpack_value: 64 };
    // How many members one SSCAN visits depends on the table.
    let lines = lines(true);
    let lines: Vec<&str> = lines.lines().filter(|line| !line.contains("SCAN")).collect();
    let extra: &[&str] = if is_order_known() {
        &["--set-max-intset-entries", "0", "--set-max-listpack-entries", "0"]
    } else {
        &["--set-max-intset-entries", "0"]
    };
    differential_with(&mut bench, extra, &lines.join("\n"));
}
