//! CPU per command on streams beside redis-server.

use anyhow::{Result, ensure};

use super::commands::compared;
use super::race::{Load, Runner, fill, pair, race};
use super::{Options, Row};

/// Entries of the stream that is read.
const ENTRIES: usize = 10_000;

/// Adding, reading and reading for a group, on one worker.
pub(super) fn run(options: &Options) -> Result<Vec<Row>> {
    let add = ["XADD", "added:__rand_int__", "*", "field", "value"];
    let capped = ["XADD", "capped", "MAXLEN", "~", "1000", "*", "field", "value"];
    let range = ["XRANGE", "read", "5000-0", "+", "COUNT", "10"];
    let back = ["XREVRANGE", "read", "+", "-", "COUNT", "10"];
    let read = ["XREAD", "COUNT", "10", "STREAMS", "read", "5000-0"];
    let pending = ["XREADGROUP", "GROUP", "g", "c", "COUNT", "10", "STREAMS", "read", "0"];
    let nothing = ["XREADGROUP", "GROUP", "g", "c", "COUNT", "10", "STREAMS", "quiet", ">"];
    let ack = ["XACK", "read", "g", "1-1"];
    let cases: [(&str, &[&str], usize); 10] = [
        ("XADD -P 16", &add, 16),
        ("XADD -P 1", &add, 1),
        ("XADD MAXLEN ~ 1000 -P 16", &capped, 16),
        ("XRANGE of 10 -P 16", &range, 16),
        ("XREVRANGE of 10 -P 16", &back, 16),
        ("XREAD of 10 -P 16", &read, 16),
        ("XREADGROUP of 10 pending -P 16", &pending, 16),
        ("XREADGROUP of 10 pending -P 1", &pending, 1),
        ("XREADGROUP that finds nothing -P 16", &nothing, 16),
        ("XACK -P 16", &ack, 16),
    ];
    let servers = pair(options)?;
    for server in &servers {
        fill(server.port(), (1..=ENTRIES).map(|id| format!("XADD read {id}-0 field value:{id}")))?;
        let mut client = server.client();
        for command in [
            "XGROUP CREATE read g 0",
            "XGROUP CREATE quiet g 0 MKSTREAM",
            "XREADGROUP GROUP g c COUNT 100 STREAMS read >",
        ] {
            let reply = client.run(command);
            ensure!(!reply.is_error(), "{command}: {reply}");
        }
    }
    let mut rows = Vec::new();
    for (name, work, pipeline) in cases {
        let load = Load { keys: 100, ..Load::new(work, pipeline) };
        let costs = race(options, &servers.each_ref().map(Runner::from), &load)?;
        rows.push(compared(name, costs[0], "redis-server", costs[1], 1.0));
    }
    Ok(rows)
}
