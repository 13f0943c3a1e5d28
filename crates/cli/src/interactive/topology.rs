//! `:topology` and `:slot KEY`: which server has which slots, from CLUSTER SLOTS. A proxy answers it as a cluster does.

use resp::Value;

use crate::modes::cluster::key_slot;
use crate::output::{Outcome, print, print_line, text};
use crate::session::Session;

/// Slots from first to last, the primary's place and the number of replicas.
struct Range {
    first: i64,
    last: i64,
    server: String,
    replicas: usize,
}

/// Shows all ranges; of a server alone, its role.
pub(super) fn show(session: &mut Session) -> Outcome<()> {
    let Some(mut ranges) = ranges(session)? else {
        return single(session);
    };
    ranges.sort_unstable_by_key(|range| range.first);
    for range in ranges {
        let Range { first, last, server, replicas } = range;
        print_line(format_args!("{first:>5} - {last:<5} {server} ({replicas} replicas)"))?;
    }
    Ok(())
}

/// Shows the slot of a key and its server.
pub(super) fn slot(session: &mut Session, key: &[u8]) -> Outcome<()> {
    let slot = key_slot(key);
    let ranges = if session.is_connected() { ranges(session)?.unwrap_or_default() } else { Vec::new() };
    match ranges.iter().find(|range| (range.first..=range.last).contains(&i64::from(slot))) {
        Some(range) => print_line(format_args!("{slot} {}", range.server)),
        None => print_line(format_args!("{slot}")),
    }
}

/// `None` if the server is not part of a cluster.
fn ranges(session: &mut Session) -> Outcome<Option<Vec<Range>>> {
    if !session.is_connected() || session.in_multi || session.subscribed {
        return Ok(None);
    }
    let Value::Array(rows) = session.call(&["CLUSTER", "SLOTS"])? else {
        return Ok(None);
    };
    let range = |row: &Value| match row.as_elements()? {
        [Value::Int(first), Value::Int(last), primary, replicas @ ..] => {
            let primary = primary.as_elements()?;
            let host = text(primary.first()?.as_bytes().unwrap_or(b"?")).into_owned();
            let Value::Int(port) = primary.get(1)? else {
                return None;
            };
            Some(Range { first: *first, last: *last, server: format!("{host}:{port}"), replicas: replicas.len() })
        }
        _ => None,
    };
    Ok(Some(rows.iter().filter_map(range).collect()))
}

fn single(session: &mut Session) -> Outcome<()> {
    if !session.is_connected() || session.in_multi || session.subscribed {
        return print("not available here\n");
    }
    let reply = session.call(&["INFO", "replication"])?;
    let info = text(reply.as_bytes().unwrap_or_default()).into_owned();
    for line in info.lines() {
        if ["role:", "connected_slaves:", "slave", "master_host:", "master_port:"]
            .iter()
            .any(|name| line.starts_with(name))
        {
            print_line(format_args!("{line}"))?;
        }
    }
    Ok(())
}
