//! `:topology` and `:slot KEY`: which server has which slots, from CLUSTER SLOTS. A proxy answers it as a cluster does.

use crate::modes::cluster::key_slot;
use crate::modes::cluster::ranges::{Range, ranges};
use crate::output::{Outcome, print, print_line, text};
use crate::session::Session;

/// Shows all ranges; of a server alone, its role.
pub(super) fn show(session: &mut Session) -> Outcome<()> {
    let Some(mut ranges) = known(session)? else {
        return single(session);
    };
    ranges.sort_unstable_by_key(|range| range.first);
    for range in ranges {
        let Range { first, last, primary, replicas } = range;
        print_line(format_args!("{first:>5} - {last:<5} {primary} ({replicas} replicas)"))?;
    }
    Ok(())
}

/// Shows the slot of a key and its server.
pub(super) fn slot(session: &mut Session, key: &[u8]) -> Outcome<()> {
    let slot = key_slot(key);
    let ranges = known(session)?.unwrap_or_default();
    match ranges.iter().find(|range| (range.first..=range.last).contains(&i64::from(slot))) {
        Some(range) => print_line(format_args!("{slot} {}", range.primary)),
        None => print_line(format_args!("{slot}")),
    }
}

/// The ranges, where they can be asked for.
fn known(session: &mut Session) -> Outcome<Option<Vec<Range>>> {
    if !session.is_connected() || session.in_multi || session.subscribed {
        return Ok(None);
    }
    ranges(session)
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
