//! Bytes per key, field and member, by the growth of used_memory over a load; what a growing keyspace asks of the
//! allocator and of those who wait.

use anyhow::{Context, Result};
use testkit::{Server, process};

use super::race::{fill, start_pinned};
use super::{Options, Row, show};

/// A load, what it counts, and the most that one of them may take.
struct Case {
    name: &'static str,
    directive: fn(usize) -> String,
    count: usize,
    target: f64,
}

const CASES: [Case; 5] = [
    Case {
        name: "16-byte key, 3-byte value",
        directive: |i| format!("SET key:{i:012} VXK"),
        count: 1_000_000,
        target: 48.0,
    },
    Case {
        name: "16-byte key, 64-byte value",
        directive: |i| format!("SET key:{i:012} {:064}", i),
        count: 1_000_000,
        target: 112.0,
    },
    Case {
        name: "field of a hash of 1M",
        directive: |i| format!("HSET hash field:{i:012} VXK"),
        count: 1_000_000,
        target: 46.0,
    },
    Case {
        name: "member of a sorted set of 1M",
        directive: |i| format!("ZADD zset {i} elem:{i:012}"),
        count: 1_000_000,
        target: 66.0,
    },
    Case {
        name: "hash of 10 fields",
        directive: |i| {
            let fields: Vec<String> = (0..10).map(|field| format!("field{field} value")).collect();
            format!("HSET hash:{i:012} {}", fields.join(" "))
        },
        count: 100_000,
        target: 210.0,
    },
];

/// Runs the loads on fresh servers.
pub(super) fn run(options: &Options) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (index, case) in CASES.iter().enumerate() {
        let count = if options.quick { case.count / 10 } else { case.count };
        let mut bytes = Vec::new();
        let (mut share, mut grown) = (0.0, 0.0);
        for launch in [options.oxidis().args(&["--io-threads", "1"]), options.peer()] {
            let server = launch.try_start()?;
            let before = used_memory(&server)?;
            let resident_before = process::resident_bytes(server.pid())? as f64;
            fill(server.port(), (0..count).map(case.directive))?;
            let plain = used_memory(&server)? - before;
            let mut each = vec![plain / count as f64];
            if bytes.is_empty() {
                let resident = process::resident_bytes(server.pid())? as f64;
                share = resident / used_memory(&server)?;
                grown = (resident - resident_before) / plain;
            }
            if index == 0 {
                fill(server.port(), (0..count).map(|i| format!("EXPIRE key:{i:012} 100000")))?;
                each.push((used_memory(&server)? - before - plain) / count as f64);
            }
            bytes.push(each);
        }
        let mut add = |name: &str, place: usize, target: f64| {
            rows.push(show(Row {
                name: name.to_owned(),
                unit: "bytes",
                ours: bytes[0][place],
                other: None,
                target: Some(target),
            }));
            rows.push(show(Row {
                name: name.to_owned(),
                unit: "bytes",
                ours: bytes[0][place],
                other: Some((String::from("redis-server"), bytes[1][place])),
                target: None,
            }));
        };
        add(case.name, 0, case.target);
        if index == 0 {
            add("time to live of a key", 1, 20.0);
        }
        if index < 2 {
            rows.push(ratio(format!("RSS / used_memory, {}", case.name), share, None));
            // Not judged: at this size the program's own pages, and those of the slots that the first keys touch, are
            // some per cent. The growth to ten million keys below is.
            rows.push(ratio(format!("RSS / used_memory, growth, {}", case.name), grown, None));
        }
    }
    rows.extend(growth(options)?);
    Ok(rows)
}

fn ratio(name: String, ours: f64, target: Option<f64>) -> Row {
    show(Row { name, unit: "×", ours, other: None, target })
}

/// The growth to ten million keys: what the process holds beyond what it uses, program and all; whether anything over
/// 1 MiB was allocated at once; whether any command took over 1 ms. What the machine takes from the server in the middle
/// of a command counts as its time, so the same commands run once more when nothing grows: beside the count stands how many
/// of those took over 1 ms, which is the machine's part.
fn growth(options: &Options) -> Result<Vec<Row>> {
    let count = if options.quick { 1_000_000 } else { 10_000_000 };
    let directives = ["--io-threads", "1", "--slowlog-log-slower-than", "1000", "--slowlog-max-len", "100000"];
    let server = start_pinned(options.oxidis(), &directives)?;
    let before = large_allocations(&server)?;
    let slow_of_sets = || -> Result<f64> {
        server.client().run("SLOWLOG RESET");
        // Whoever fills is not to take the server's core from it.
        std::thread::scope(|scope| {
            let filling = scope.spawn(|| {
                process::pin_this_thread(1)?;
                fill(server.port(), (0..count).map(|i| format!("SET key:{i:012} VXK")))
            });
            filling.join().map_err(|_| anyhow::anyhow!("the filling thread panicked"))?
        })?;
        Ok(server.client().call(&["SLOWLOG", "LEN"])?.integer().context("SLOWLOG LEN")? as f64)
    };
    let slow = slow_of_sets()?;
    let share = process::resident_bytes(server.pid())? as f64 / used_memory(&server)?;
    let large = large_allocations(&server)? - before;
    let slow_anyway = slow_of_sets()?;
    let name = |what: &str| format!("{what}, growth to {}M keys", count / 1_000_000);
    let at_most_none =
        |what: &str, unit, ours| show(Row { name: name(what), unit, ours, other: None, target: Some(0.0) });
    let slow = Row {
        name: name("commands over 1 ms, beyond the machine's"),
        unit: "commands",
        ours: (slow - slow_anyway).max(0.0),
        other: None,
        target: Some(0.0),
    };
    let anyway = Row {
        name: format!("… on {} keys that are there", count / 1_000_000),
        unit: "commands",
        ours: slow_anyway,
        other: None,
        target: None,
    };
    Ok(vec![
        ratio(name("RSS / used_memory"), share, Some(1.08)),
        at_most_none("allocations over 1 MiB", "blocks", large),
        show(slow),
        show(anyway),
    ])
}

/// How many blocks over 1 MiB were ever allocated, by the allocator's own report.
fn large_allocations(server: &Server) -> Result<f64> {
    let report = server.client().call(&["MEMORY", "MALLOC-STATS"])?;
    let report = report.bytes().context("MEMORY MALLOC-STATS answered no text")?;
    let report = String::from_utf8_lossy(report);
    // While there is one arena, its tables are the only ones.
    let merged = report.split("Merged arenas stats").nth(1).unwrap_or(&report);
    let is_table = |part: &&str| part.trim_start().starts_with("size");
    let large = merged.split("\nlarge:").find(is_table).context("no stats of large blocks")?;
    let rows = large.lines().skip(1).map_while(|line| {
        // size, index, bytes allocated, allocations ever, …
        let mut words = line.split_whitespace();
        if words.clone().next() == Some("---") {
            return Some(0.0);
        }
        let size: u64 = words.next()?.parse().ok()?;
        let count: f64 = words.nth(2)?.parse().ok()?;
        Some(if size > 1 << 20 { count } else { 0.0 })
    });
    Ok(rows.sum())
}

fn used_memory(server: &Server) -> Result<f64> {
    let text = server.client().info("used_memory").context("no used_memory in INFO")?;
    Ok(text.parse()?)
}
