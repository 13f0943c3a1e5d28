//! What sharing costs: CPU per request with four workers against one.

use anyhow::Result;

use super::floor::Floor;
use super::race::{KEYS, Load, Runner, fill_keys, race};
use super::{Options, Row, show};

/// Uniform keys, then one hot key. Nobody is pinned: the workers use what cores there are.
pub(super) fn run(options: &Options) -> Result<Vec<Row>> {
    let four = options.oxidis().args(&["--io-threads", "4"]).try_start()?;
    let one = options.oxidis().args(&["--io-threads", "1"]).try_start()?;
    let mut rows = Vec::new();
    for server in [&four, &one] {
        fill_keys(server.port(), if options.quick { KEYS / 10 } else { KEYS }, 3)?;
    }
    let hot_get = ["GET", "key:000000000000"];
    let hot_set = ["SET", "key:000000000000", "VXK"];
    let cases: [(&str, &[&str], f64); 4] = [
        ("GET -P 16, uniform keys", &["-t", "get"], 1.20),
        ("SET -P 16, uniform keys", &["-t", "set"], 1.20),
        ("GET -P 16, one hot key", &hot_get, 1.8),
        ("SET -P 16, one hot key", &hot_set, 1.8),
    ];
    for (name, work, target) in cases {
        let load = Load { threads: 2, ..Load::new(work, 16) };
        let costs = race(options, &[Runner::from(&four), Runner::from(&one)], &load)?;
        rows.push(show(Row {
            name: name.to_owned(),
            unit: "µs",
            ours: costs[0],
            other: Some((String::from("with one worker"), costs[1])),
            target: Some(target),
        }));
    }
    rows.push(of_the_floor(options)?);
    Ok(rows)
}

/// The same of a bare epoll loop that shares nothing: more threads than cores have fewer requests at a time each, so sleep
/// and wake more often. No server's row can be lower than this by much.
fn of_the_floor(options: &Options) -> Result<Row> {
    let answer = "$3\r\nxxx\r\n".repeat(16);
    let (four, one) = (Floor::start_threads(&answer, 4)?, Floor::start_threads(&answer, 1)?);
    let load = Load { threads: 2, ..Load::new(&["-t", "get"], 16) };
    let costs = race(options, &[four.runner(), one.runner()], &load)?;
    Ok(show(Row {
        name: String::from("GET -P 16, the floor (bare epoll)"),
        unit: "µs",
        ours: costs[0],
        other: Some((String::from("with one thread"), costs[1])),
        target: None,
    }))
}
