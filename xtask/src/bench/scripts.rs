//! CPU per EVAL and FCALL beside redis-server, and what workers add.

use anyhow::{Result, ensure};

use super::commands::compared;
use super::race::{KEYS, Load, Runner, fill_keys, pair, race};
use super::{Options, Row, show};

const GET: &str = "return redis.call('get', KEYS[1])";
const COUNTER: &str =
    "local n = redis.call('incr', KEYS[1]) if n == 1 then redis.call('expire', KEYS[1], ARGV[1]) end return n";
const LOOP: &str = "local s = 0 for i = 1, 100 do s = s + i * i end return s";
const LIBRARY: &str =
    "#!lua name=bench\nredis.register_function('get', function(keys) return redis.call('get', keys[1]) end)";

/// Scripts of one, two and no commands, on one worker; then on two.
pub(super) fn run(options: &Options) -> Result<Vec<Row>> {
    let key = "key:__rand_int__";
    let eval_get = ["EVAL", GET, "1", key];
    let counter = ["EVAL", COUNTER, "1", "counter:__rand_int__", "100"];
    let looping = ["EVAL", LOOP, "0"];
    let function = ["FCALL", "get", "1", key];
    let cases: [(&str, &[&str], usize); 5] = [
        ("EVAL of one GET -P 16", &eval_get, 16),
        ("EVAL of one GET -P 1", &eval_get, 1),
        ("EVAL of INCR and EXPIRE -P 16", &counter, 16),
        ("EVAL of a loop -P 16", &looping, 16),
        ("FCALL of one GET -P 16", &function, 16),
    ];
    let servers = pair(options)?;
    for server in &servers {
        fill_keys(server.port(), KEYS / 10, 3)?;
        let loaded = server.client().call(&["FUNCTION", "LOAD", LIBRARY])?;
        ensure!(!loaded.is_error(), "FUNCTION LOAD: {loaded}");
    }
    let mut rows = Vec::new();
    for (name, work, pipeline) in cases {
        let load = Load { keys: KEYS / 10, ..Load::new(work, pipeline) };
        let costs = race(options, &servers.each_ref().map(Runner::from), &load)?;
        rows.push(compared(name, costs[0], "redis-server", costs[1], 1.0));
    }
    let two = options.oxidis().args(&["--io-threads", "2"]).try_start()?;
    let one = options.oxidis().args(&["--io-threads", "1"]).try_start()?;
    let load = Load { threads: 2, keys: KEYS / 10, ..Load::new(&eval_get, 16) };
    let costs = race(options, &[Runner::from(&two), Runner::from(&one)], &load)?;
    rows.push(show(Row {
        name: String::from("EVAL of one GET -P 16, two workers: CPU per request"),
        unit: "µs",
        ours: costs[0],
        other: Some((String::from("with one worker"), costs[1])),
        target: Some(1.2),
    }));
    Ok(rows)
}
