//! CPU per request of single commands.

use anyhow::Result;

use super::floor::Floor;
use super::race::{KEYS, Load, Runner, fill, fill_keys, pair, race};
use super::{Options, Row, show};

/// GET, SET, INCR, HSET, SADD and LPUSH at three depths of pipelining.
pub(super) fn core(options: &Options) -> Result<Vec<Row>> {
    let servers = pair(options)?;
    for server in &servers {
        fill_keys(server.port(), if options.quick { KEYS / 10 } else { KEYS }, 3)?;
    }
    let mut rows = Vec::new();
    for (test, answer) in [("get", "$3\r\nxxx\r\n"), ("set", "+OK\r\n")] {
        let floor = Floor::start(answer)?;
        let runners = [Runner::from(&servers[0]), Runner::from(&servers[1]), floor.runner()];
        let costs = race(options, &runners, &Load::new(&["-t", test], 1))?;
        let name = format!("{} -P 1", test.to_uppercase());
        rows.push(compared(&name, costs[0], "redis-server", costs[1], 0.85));
        rows.push(compared(&name, costs[0], "floor (bare epoll)", costs[2], 1.10));
    }
    for (pipeline, target, tests) in
        [(16, 0.60, &["get", "set", "incr", "hset", "sadd", "lpush"][..]), (64, 0.45, &["get", "set"][..])]
    {
        for test in tests {
            let answer = match *test {
                "get" => "$3\r\nxxx\r\n",
                "set" => "+OK\r\n",
                _ => ":1\r\n",
            };
            // As many answers to each read as requests come in it: what the kernel's share of the row is.
            let floor = Floor::start(&answer.repeat(pipeline))?;
            let runners = [Runner::from(&servers[0]), Runner::from(&servers[1]), floor.runner()];
            let costs = race(options, &runners, &Load::new(&["-t", test], pipeline))?;
            let name = format!("{} -P {pipeline}", test.to_uppercase());
            rows.push(compared(&name, costs[0], "redis-server", costs[1], target));
            rows.push(beside(&name, costs[0], "floor (bare epoll)", costs[2]));
            for server in servers.iter().filter(|_| *test == "lpush") {
                server.client().run("DEL mylist");
            }
        }
    }
    Ok(rows)
}

/// ZADD, MSET of ten, LRANGE_100, and values of 2 KiB.
pub(super) fn others(options: &Options) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let lrange = ["LRANGE", "mylist", "0", "99"];
    let cases: [(&str, &[&str], usize, f64); 5] = [
        ("ZADD -P 16", &["-t", "zadd"], 3, 0.50),
        ("MSET (10 keys) -P 16", &["-t", "mset"], 3, 0.50),
        ("LRANGE_100 -P 16", &lrange, 3, 0.60),
        ("SET -d 2048 -P 16", &["-t", "set"], 2048, 0.75),
        ("GET -d 2048 -P 16", &["-t", "get"], 2048, 0.75),
    ];
    let mut servers = pair(options)?;
    for server in &servers {
        fill(server.port(), (0..2_000).map(|i| format!("RPUSH mylist element:{i}")))?;
    }
    for (name, work, value_bytes, target) in cases {
        let keys = if value_bytes > 100 { KEYS / 10 } else { KEYS };
        if name.starts_with("SET") {
            // Fresh servers: the large values have the memory to themselves.
            servers = pair(options)?;
            for server in &servers {
                fill_keys(server.port(), keys, value_bytes)?;
            }
        }
        let load = Load { value_bytes, keys, ..Load::new(work, 16) };
        let costs = race(options, &servers.each_ref().map(Runner::from), &load)?;
        rows.push(compared(name, costs[0], "redis-server", costs[1], target));
    }
    Ok(rows)
}

pub(super) fn compared(name: &str, ours: f64, other: &str, theirs: f64, target: f64) -> Row {
    show(Row {
        name: name.to_owned(), unit: "µs", ours, other: Some((other.to_owned(), theirs)), target: Some(target)
    })
}

/// A comparison that nothing is asked of.
fn beside(name: &str, ours: f64, other: &str, theirs: f64) -> Row {
    show(Row { name: name.to_owned(), unit: "µs", ours, other: Some((other.to_owned(), theirs)), target: None })
}
