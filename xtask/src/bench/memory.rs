//! Bytes per key, field and member, by the growth of used_memory over a load.

use anyhow::{Context, Result};
use testkit::{Server, process};

use super::race::fill;
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
        let mut share = 0.0;
        for launch in [options.oxidis().args(&["--io-threads", "1"]), options.peer()] {
            let server = launch.try_start()?;
            let before = used_memory(&server)?;
            fill(server.port(), (0..count).map(case.directive))?;
            let plain = used_memory(&server)? - before;
            let mut each = vec![plain / count as f64];
            if bytes.is_empty() {
                share = process::resident_bytes(server.pid())? as f64 / used_memory(&server)?;
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
            rows.push(show(Row {
                name: format!("RSS / used_memory, {}", case.name),
                unit: "×",
                ours: share,
                other: None,
                target: Some(1.08),
            }));
        }
    }
    Ok(rows)
}

fn used_memory(server: &Server) -> Result<f64> {
    let text = server.client().info("used_memory").context("no used_memory in INFO")?;
    Ok(text.parse()?)
}
