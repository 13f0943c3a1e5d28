//! XACK and XPENDING: what was delivered and not acknowledged.

use super::{count_changes, id, no_group, pending_of, write_id};
use crate::ctx::Ctx;
use crate::error::{CmdError, CmdResult, SYNTAX};
use crate::options::{int, is_word};
use keyspace::ValueMut;
use keyspace::stream::{Group, StreamId};
use resp::{Args, Reply};

/// XACK key group id [id …]
pub(super) fn xack(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let key = args.at(1);
    if !ctx.db.read_stream(key)?.is_some_and(|stream| stream.groups().contains_key(args.at(2))) {
        ctx.out.int(0);
        return Ok(());
    }
    let ids = id::all(args, 3)?;
    let mut count = 0;
    if let Some(ValueMut::Stream(stream)) = ctx.db.entry_mut(key).map(keyspace::Entry::value_mut)
        && let Some(group) = stream.parts_mut().1.get_mut(args.at(2))
    {
        count = ids.iter().filter(|id| group.acknowledge(**id)).count();
    }
    ctx.out.count(count);
    count_changes(ctx, count as u64);
    Ok(())
}

/// The part of XPENDING's reply that is asked for.
struct Part<'a> {
    start: StreamId,
    end: StreamId,
    count: usize,
    min_idle_ms: i64,
    consumer: Option<&'a [u8]>,
}

impl<'a> Part<'a> {
    /// `None`: the summary.
    fn parse(args: Args<'a>) -> Result<Option<Part<'a>>, CmdError> {
        if args.len() == 3 {
            return Ok(None);
        }
        if !(6..=9).contains(&args.len()) {
            return Err(SYNTAX);
        }
        let mut at = 3;
        let mut min_idle_ms = 0;
        if is_word(args.at(3), "idle") {
            min_idle_ms = int(args.at(4))?;
            if args.len() < 8 {
                return Err(SYNTAX);
            }
            at = 5;
        }
        let count = usize::try_from(int(args.at(at + 2))?).unwrap_or(0);
        let start = id::start(args.at(at))?;
        let end = id::end(args.at(at + 1))?;
        Ok(Some(Part { start, end, count, min_idle_ms, consumer: args.get(at + 3) }))
    }
}

/// XPENDING key group [[IDLE min-idle-time] start end count [consumer]]
pub(super) fn xpending(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let part = Part::parse(args)?;
    let (key, now_ms) = (args.at(1), ctx.db.now_ms());
    let group = ctx.db.read_stream(key)?.and_then(|stream| stream.groups().get(args.at(2)));
    let group = group.ok_or_else(|| no_group(key, args.at(2)))?;
    match part {
        None => write_summary(ctx.out, group),
        Some(part) => write_part(ctx.out, group, &part, now_ms),
    }
    Ok(())
}

fn write_summary(out: &mut Reply, group: &Group) {
    out.array(4);
    out.count(group.pending().len());
    let (Some((first, _)), Some((last, _))) = (group.pending().first_key_value(), group.pending().last_key_value())
    else {
        out.null();
        out.null();
        out.null_array();
        return;
    };
    write_id(out, *first);
    write_id(out, *last);
    let header = out.defer();
    let mut count = 0;
    for consumer in group.consumers().filter(|consumer| !consumer.pending().is_empty()) {
        out.array(2);
        out.bulk(consumer.name());
        out.bulk_fmt(format_args!("{}", consumer.pending().len()));
        count += 1;
    }
    out.finish_array(header, count);
}

fn write_part(out: &mut Reply, group: &Group, part: &Part<'_>, now_ms: i64) {
    let header = out.defer();
    let mut count = 0;
    let mut write = |id: StreamId| {
        let Some(pending) = group.pending().get(&id) else { return true };
        let idle_ms = now_ms.saturating_sub(pending.delivered_ms);
        if part.min_idle_ms != 0 && idle_ms < part.min_idle_ms {
            return true;
        }
        out.array(4);
        write_id(out, id);
        out.bulk(group.consumer_name(pending.consumer));
        out.int(idle_ms.max(0));
        #[allow(clippy::cast_possible_wrap)]
        out.int(pending.deliveries as i64);
        count += 1;
        count < part.count
    };
    if part.count > 0 && part.start <= part.end {
        let range = part.start..=part.end;
        match part.consumer {
            None => {
                group.pending().range(range).all(|(id, _)| write(*id));
            }
            Some(name) => {
                let consumer = group.find_consumer(name).and_then(|id| group.consumer(id));
                if let Some(consumer) = consumer {
                    consumer.pending().range(range).all(|id| write(*id));
                }
            }
        }
    }
    out.finish_array(header, count);
}

/// As many pending entries as may be looked at.
pub(super) fn cost(ctx: &mut Ctx<'_>, args: Args<'_>) -> usize {
    match Part::parse(args) {
        Ok(Some(part)) if part.min_idle_ms == 0 => part.count.min(pending_of(ctx, args.at(1), args.at(2))),
        Ok(Some(_)) => pending_of(ctx, args.at(1), args.at(2)),
        _ => 0,
    }
}
