//! The flat tail: what a probe that asks 200 times a second feels while other clients loop over
//! one heavy command after another, with two workers on two cores.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use testkit::{Client, Server, text};

use super::race::fill;
use super::{Options, Row, show};

const PERIOD: Duration = Duration::from_millis(5);
const TARGET_MS: f64 = 5.0;

/// What others do while the probe asks, after what was loaded.
struct Case {
    name: &'static str,
    load: fn(usize) -> Box<dyn Iterator<Item = String>>,
    /// Elements at full size.
    count: usize,
    commands: &'static [&'static str],
}

const CASES: [Case; 10] = [
    Case {
        name: "KEYS * of 2M",
        load: |n| Box::new((0..n).map(|i| format!("SET key:{i} x"))),
        count: 2_000_000,
        commands: &["KEYS *"],
    },
    Case { name: "LRANGE of 1M", load: |n| list(n), count: 1_000_000, commands: &["LRANGE list 0 -1"] },
    Case { name: "SORT of 1M", load: |n| list(n), count: 1_000_000, commands: &["SORT list LIMIT 0 10"] },
    Case {
        name: "SUNIONSTORE of two 1M",
        load: |n| Box::new((0..n).flat_map(|i| [format!("SADD s1 a:{i}"), format!("SADD s2 b:{i}")])),
        count: 1_000_000,
        commands: &["SUNIONSTORE union s1 s2"],
    },
    Case { name: "DEL of a zset of 5M", load: |n| zset(n), count: 5_000_000, commands: &["DEL zset"] },
    Case { name: "UNLINK of a zset of 5M", load: |n| zset(n), count: 5_000_000, commands: &["UNLINK zset"] },
    Case {
        name: "FLUSHALL of 2M",
        load: |n| Box::new((0..n).map(|i| format!("SET key:{i} x"))),
        count: 2_000_000,
        commands: &["FLUSHALL"],
    },
    Case {
        name: "a script of 100 ms on its own key",
        load: |_| Box::new(std::iter::empty()),
        count: 1,
        commands: &[
            "EVAL \"local s = 0 for i = 1, 8000000 do s = s + i % 7 end redis.call('set', KEYS[1], s) return s\" 1 script",
        ],
    },
    Case {
        name: "a script that writes and then takes 100 ms",
        load: |_| Box::new(std::iter::empty()),
        count: 1,
        commands: &[
            "EVAL \"redis.call('set', KEYS[1], 1) local s = 0 for i = 1, 8000000 do s = s + i % 7 end return s\" 1 script",
        ],
    },
    Case {
        name: "growth from 1M to 10M keys",
        load: |n| Box::new((0..n).map(|i| format!("SET key:{i} x"))),
        count: 1_000_000,
        commands: &[],
    },
];

fn list(count: usize) -> Box<dyn Iterator<Item = String>> {
    Box::new((0..count).map(move |i| format!("RPUSH list {}", i * 7919 % count)))
}

fn zset(count: usize) -> Box<dyn Iterator<Item = String>> {
    Box::new((0..count).map(|i| format!("ZADD zset {i} m:{i}")))
}

/// Each case on fresh servers.
pub(super) fn run(options: &Options) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for case in &CASES {
        let count = if options.quick { case.count / 20 } else { case.count };
        let mut p99 = Vec::new();
        for launch in [options.oxidis().args(&["--io-threads", "2"]), options.peer()] {
            let server = launch.try_start()?;
            p99.push(feel(&server, case, count)?);
        }
        let name = format!("probe p99: {}", case.name);
        rows.push(show(Row { name: name.clone(), unit: "ms", ours: p99[0], other: None, target: Some(TARGET_MS) }));
        let other = Some((String::from("redis-server"), p99[1]));
        rows.push(show(Row { name, unit: "ms", ours: p99[0], other, target: None }));
    }
    Ok(rows)
}

/// The probe's 99th percentile in milliseconds.
fn feel(server: &Server, case: &Case, count: usize) -> Result<f64> {
    fill(server.port(), (case.load)(count))?;
    let done = AtomicBool::new(false);
    let mut probe = server.client();
    probe.set_timeout(Duration::from_secs(120))?;
    probe.run("SET probe x");
    let mut heavy = server.client();
    heavy.set_timeout(Duration::from_secs(120))?;
    std::thread::scope(|scope| {
        let probing = scope.spawn(|| ask(&mut probe, &done));
        let worked = work(&mut heavy, server.port(), case, count);
        done.store(true, Ordering::Relaxed);
        let waited = probing.join().map_err(|_| anyhow::anyhow!("the probe panicked"))??;
        worked?;
        let mut sorted = waited;
        sorted.sort_unstable();
        let rank = sorted.len() * 99 / 100;
        Ok(sorted.get(rank.min(sorted.len().saturating_sub(1))).map_or(0.0, |wait| wait.as_secs_f64() * 1e3))
    })
}

/// Runs the heavy commands for some seconds, or the growth to ten times the keys.
fn work(heavy: &mut Client, port: u16, case: &Case, count: usize) -> Result<()> {
    if case.commands.is_empty() {
        return fill(port, (count..count * 10).map(|i| format!("SET key:{i} x")));
    }
    let end = Instant::now() + Duration::from_secs(3);
    while Instant::now() < end {
        for command in case.commands {
            heavy.send(&text::words(command))?;
            // Counted bytes, not a parsed reply: parsing would take the core from the server.
            let (_, closed) = heavy.read_to_end(Duration::from_millis(50));
            ensure!(!closed, "{command} closed the connection");
        }
        if ["DEL", "UNLINK", "FLUSHALL"].iter().any(|word| case.commands[0].starts_with(word)) {
            // It is gone after the first time; a second load would only measure the load.
            std::thread::sleep(Duration::from_millis(500));
            break;
        }
    }
    Ok(())
}

/// Asks at a fixed rate, counting from when each request was due.
fn ask(client: &mut Client, done: &AtomicBool) -> std::io::Result<Vec<Duration>> {
    let mut waited = Vec::new();
    let started = Instant::now();
    let mut due = Duration::ZERO;
    while !done.load(Ordering::Relaxed) {
        client.call(&["GET", "probe"])?;
        waited.push(started.elapsed().saturating_sub(due));
        due += PERIOD;
        std::thread::sleep(due.saturating_sub(started.elapsed()));
    }
    Ok(waited)
}
