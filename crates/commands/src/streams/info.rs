//! XINFO.

use super::{no_group_of_key, stream_at, subcommand_syntax, write_entries, write_entry, write_id};
use crate::ctx::Ctx;
use crate::error::{CmdError, CmdResult, NO_SUCH_KEY};
use crate::options::{int, is_word};
use crate::table::{CommandId, help as table_help};
use keyspace::Stream;
use keyspace::stream::{Consumer, Group, Pending, StreamId};
use resp::{Args, Reply};

/// Entries and pending entries that FULL shows when it is not told how many.
const FULL_COUNT: usize = 10;

/// What FULL is to show of each list; 0: all. Outer `None`: not FULL.
fn parse_full(args: Args<'_>) -> Result<Option<usize>, CmdError> {
    let options = args.slice(3);
    match options.len() {
        0 => return Ok(None),
        1 | 3 if is_word(options.at(0), "full") => {}
        _ => return Err(subcommand_syntax(args)),
    }
    let Some(count) = options.get(2) else { return Ok(Some(FULL_COUNT)) };
    if !is_word(options.at(1), "count") {
        return Err(subcommand_syntax(args));
    }
    Ok(Some(usize::try_from(int(count)?).unwrap_or(FULL_COUNT)))
}

fn write_number(out: &mut Reply, number: u64) {
    #[allow(clippy::cast_possible_wrap)]
    out.int(number as i64);
}

fn write_optional(out: &mut Reply, number: Option<i64>) {
    match number {
        Some(number) => out.int(number),
        None => out.null(),
    }
}

/// XINFO STREAM key [FULL [COUNT count]]
pub(super) fn stream(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let stream = ctx.db.read_stream(args.at(2))?.ok_or(NO_SUCH_KEY)?;
    let full = parse_full(args)?;
    let out = &mut *ctx.out;
    let log = stream.log();
    out.map(if full.is_some() { 9 } else { 10 });
    out.bulk("length");
    write_number(out, log.len());
    out.bulk("radix-tree-keys");
    out.count(log.blocks().len());
    out.bulk("radix-tree-nodes");
    out.count(log.tree_nodes());
    out.bulk("last-generated-id");
    write_id(out, log.last_id());
    out.bulk("max-deleted-entry-id");
    write_id(out, log.max_deleted_id());
    out.bulk("entries-added");
    write_number(out, log.entries_added());
    out.bulk("recorded-first-entry-id");
    write_id(out, log.first_id());
    match full {
        Some(count) => write_full(out, stream, count),
        None => write_ends(out, stream),
    }
    Ok(())
}

fn write_ends(out: &mut Reply, stream: &Stream) {
    let log = stream.log();
    out.bulk("groups");
    out.count(stream.groups().len());
    let first = log.range(StreamId::MIN, StreamId::MAX).next();
    let last = log.range_back(StreamId::MIN, StreamId::MAX).next();
    for (name, entry) in [("first-entry", first), ("last-entry", last)] {
        out.bulk(name);
        match entry {
            Some(entry) => write_entry(out, entry),
            None => out.null(),
        }
    }
}

fn write_full(out: &mut Reply, stream: &Stream, count: usize) {
    out.bulk("entries");
    write_entries(out, stream.log().range(StreamId::MIN, StreamId::MAX), count);
    out.bulk("groups");
    out.array(stream.groups().len());
    let limit = if count == 0 { usize::MAX } else { count };
    for (name, group) in stream.groups() {
        out.map(7);
        write_group_head(out, name, group, stream.lag(group));
        out.bulk("pel-count");
        out.count(group.pending().len());
        out.bulk("pending");
        out.array(group.pending().len().min(limit));
        for (id, pending) in group.pending().iter().take(limit) {
            out.array(4);
            write_id(out, *id);
            out.bulk(group.consumer_name(pending.consumer));
            write_delivery(out, *pending);
        }
        out.bulk("consumers");
        out.array(group.consumers_len());
        for consumer in group.consumers() {
            write_full_consumer(out, group, consumer, limit);
        }
    }
}

/// Name, last id, entries read and lag, which two replies tell alike.
fn write_group_head(out: &mut Reply, name: &[u8], group: &Group, lag: Option<i64>) {
    out.bulk("name");
    out.bulk(name);
    out.bulk("last-delivered-id");
    write_id(out, group.last_id);
    out.bulk("entries-read");
    write_optional(out, group.entries_read);
    out.bulk("lag");
    write_optional(out, lag);
}

fn write_delivery(out: &mut Reply, pending: Pending) {
    out.int(pending.delivered_ms);
    write_number(out, pending.deliveries);
}

fn write_full_consumer(out: &mut Reply, group: &Group, consumer: &Consumer, limit: usize) {
    out.map(5);
    out.bulk("name");
    out.bulk(consumer.name());
    out.bulk("seen-time");
    out.int(consumer.seen_ms);
    out.bulk("active-time");
    out.int(consumer.active_ms);
    out.bulk("pel-count");
    out.count(consumer.pending().len());
    out.bulk("pending");
    let header = out.defer();
    let mut count = 0;
    for id in consumer.pending().iter().take(limit) {
        if let Some(pending) = group.pending().get(id) {
            out.array(3);
            write_id(out, *id);
            write_delivery(out, *pending);
            count += 1;
        }
    }
    out.finish_array(header, count);
}

/// XINFO GROUPS key
pub(super) fn groups(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let stream = ctx.db.read_stream(args.at(2))?.ok_or(NO_SUCH_KEY)?;
    let out = &mut *ctx.out;
    out.array(stream.groups().len());
    for (name, group) in stream.groups() {
        out.map(6);
        out.bulk("name");
        out.bulk(name);
        out.bulk("consumers");
        out.count(group.consumers_len());
        out.bulk("pending");
        out.count(group.pending().len());
        out.bulk("last-delivered-id");
        write_id(out, group.last_id);
        out.bulk("entries-read");
        write_optional(out, group.entries_read);
        out.bulk("lag");
        write_optional(out, stream.lag(group));
    }
    Ok(())
}

/// XINFO CONSUMERS key group
pub(super) fn consumers(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let (key, now_ms) = (args.at(2), ctx.db.now_ms());
    let stream = ctx.db.read_stream(key)?.ok_or(NO_SUCH_KEY)?;
    let group = stream.groups().get(args.at(3)).ok_or_else(|| no_group_of_key(key, args.at(3)))?;
    let out = &mut *ctx.out;
    out.array(group.consumers_len());
    for consumer in group.consumers() {
        out.map(4);
        out.bulk("name");
        out.bulk(consumer.name());
        out.bulk("pending");
        out.count(consumer.pending().len());
        out.bulk("idle");
        out.int(now_ms.saturating_sub(consumer.seen_ms).max(0));
        out.bulk("inactive");
        out.int(if consumer.active_ms == -1 { -1 } else { now_ms.saturating_sub(consumer.active_ms) });
    }
    Ok(())
}

/// XINFO HELP
pub(super) fn help(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    table_help::write(CommandId::Xinfo, &args, ctx.out);
    Ok(())
}

/// Blocks, whose ids are walked for the count of nodes; with FULL also what it shows.
pub(super) fn cost(ctx: &mut Ctx<'_>, args: Args<'_>) -> usize {
    let Some(stream) = stream_at(ctx, args.at(2)) else { return 0 };
    let blocks = stream.log().blocks().len() / 16;
    let Ok(Some(count)) = parse_full(args) else { return blocks };
    let limit = if count == 0 { usize::MAX } else { count };
    let entries = usize::try_from(stream.log().len()).unwrap_or(usize::MAX).min(limit);
    let groups: usize = stream
        .groups()
        .values()
        .map(|group| {
            group.consumers_len() + 2 * group.pending().len().min(limit.saturating_mul(1 + group.consumers_len()))
        })
        .sum();
    blocks.saturating_add(entries).saturating_add(groups)
}
