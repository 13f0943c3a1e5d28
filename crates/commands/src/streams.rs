//! Streams: XADD, XREADGROUP, XCLAIM and the others.
//!
//! [`add`] adds and trims, [`range`] reads parts and deletes, [`read`] reads on from an id and blocks when there is
//! nothing yet, [`group`] manages consumer groups, [`pending`] tells of and ends deliveries, [`claim`] hands them to
//! another consumer, [`info`] is XINFO. [`id`] reads ids.
//!
//! What changes only a group (a delivery, an acknowledgement) counts as a change but does not touch WATCH, as in Redis.

use crate::collections::write_elem;
use crate::ctx::Ctx;
use crate::dispatch::{Cost, Handler};
use crate::error::CmdError;
use crate::table::{CommandId, errors};
use keyspace::stream::{Group, StreamEntry, StreamId};
use keyspace::{NotifyClass, Stream, ValueRef};
use resp::{Args, Reply};

mod add;
mod claim;
mod group;
mod id;
mod info;
mod pending;
mod range;
mod read;
mod record;
#[cfg(test)]
mod tests;

/// The function of a command of this family.
pub(crate) fn handler(id: CommandId) -> Option<Handler> {
    Some(match id {
        CommandId::Xadd => add::xadd,
        CommandId::Xtrim => add::xtrim,
        CommandId::Xlen => range::xlen,
        CommandId::Xrange => range::xrange,
        CommandId::Xrevrange => range::xrevrange,
        CommandId::Xdel => range::xdel,
        CommandId::Xsetid => range::xsetid,
        CommandId::Xread => read::xread,
        CommandId::Xreadgroup => read::xreadgroup,
        CommandId::XgroupCreate => group::create,
        CommandId::XgroupSetid => group::set_id,
        CommandId::XgroupDestroy => group::destroy,
        CommandId::XgroupCreateconsumer => group::create_consumer,
        CommandId::XgroupDelconsumer => group::delete_consumer,
        CommandId::XgroupHelp => group::help,
        CommandId::Xack => pending::xack,
        CommandId::Xpending => pending::xpending,
        CommandId::Xclaim => claim::xclaim,
        CommandId::Xautoclaim => claim::xautoclaim,
        CommandId::XinfoStream => info::stream,
        CommandId::XinfoGroups => info::groups,
        CommandId::XinfoConsumers => info::consumers,
        CommandId::XinfoHelp => info::help,
        _ => return None,
    })
}

/// The cost function of a command of this family.
pub(crate) fn cost(id: CommandId) -> Option<Cost> {
    Some(match id {
        CommandId::Xrange | CommandId::Xrevrange => range::cost,
        CommandId::Xread => read::xread_cost,
        CommandId::Xreadgroup => read::xreadgroup_cost,
        CommandId::Xtrim => |ctx, args| stream_at(ctx, args.at(1)).map_or(0, |stream| stream.log().blocks().len()),
        CommandId::XgroupDestroy | CommandId::XgroupDelconsumer => |ctx, args| pending_of(ctx, args.at(2), args.at(3)),
        CommandId::Xpending => pending::cost,
        CommandId::Xautoclaim => claim::xautoclaim_cost,
        CommandId::XinfoStream => info::cost,
        _ => return None,
    })
}

fn stream_at<'a>(ctx: &'a Ctx<'_>, key: &[u8]) -> Option<&'a Stream> {
    match ctx.db.get(key) {
        Some(ValueRef::Stream(stream)) => Some(stream),
        _ => None,
    }
}

fn group_at<'a>(ctx: &'a Ctx<'_>, key: &[u8], group: &[u8]) -> Option<&'a Group> {
    stream_at(ctx, key)?.groups().get(group)
}

/// Pending entries of a group; 0 when it is not there.
fn pending_of(ctx: &Ctx<'_>, key: &[u8], group: &[u8]) -> usize {
    group_at(ctx, key, group).map_or(0, |group| group.pending().len())
}

/// Counts changes that no watcher is told of.
fn count_changes(ctx: &mut Ctx<'_>, count: u64) {
    ctx.db.events.dirty += count;
}

/// A change of a group: counted and notified, but no watcher is told.
fn group_changed(ctx: &mut Ctx<'_>, event: &'static str, key: &[u8]) {
    count_changes(ctx, 1);
    ctx.db.notify(NotifyClass::STREAM, event, key);
}

/// Writes an id as a bulk.
fn write_id(out: &mut Reply, id: StreamId) {
    let mut text = [0_u8; 41];
    let (mut ms, mut seq) = (itoa::Buffer::new(), itoa::Buffer::new());
    let (ms, seq) = (ms.format(id.ms).as_bytes(), seq.format(id.seq).as_bytes());
    let len = ms.len() + 1 + seq.len();
    // Two numbers of at most 20 digits fit.
    if let Some(room) = text.get_mut(..len) {
        let (left, right) = room.split_at_mut(ms.len());
        left.copy_from_slice(ms);
        right[0] = b'-';
        right[1..].copy_from_slice(seq);
        out.bulk(&*room);
    }
}

/// Writes an entry: its id, and its fields with their values in turn.
fn write_entry(out: &mut Reply, entry: StreamEntry<'_>) {
    out.array(2);
    write_id(out, entry.id);
    out.array(entry.len() * 2);
    for (field, value) in entry.fields() {
        write_elem(out, field);
        write_elem(out, value);
    }
}

/// Writes an array of entries, at most `limit` (0: all). Gives how many.
fn write_entries<'a>(out: &mut Reply, entries: impl Iterator<Item = StreamEntry<'a>>, limit: usize) -> usize {
    let header = out.defer();
    let mut count = 0;
    for entry in entries {
        write_entry(out, entry);
        count += 1;
        if count == limit {
            break;
        }
    }
    out.finish_array(header, count);
    count
}

fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    // Redis: texts end at the first zero byte.
    String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next().unwrap_or_default())
}

/// There is no such group, or no such key.
fn no_group(key: &[u8], group: &[u8]) -> CmdError {
    CmdError::text(format!("NOGROUP No such key '{}' or consumer group '{}'", text(key), text(group)))
}

/// There is no such group.
fn no_group_of_key(key: &[u8], group: &[u8]) -> CmdError {
    CmdError::text(format!("NOGROUP No such consumer group '{}' for key name '{}'", text(group), text(key)))
}

/// Wrong arguments of a subcommand.
fn subcommand_syntax(args: Args<'_>) -> CmdError {
    CmdError::text(String::from_utf8_lossy(&errors::subcommand_syntax(&args)).into_owned())
}
