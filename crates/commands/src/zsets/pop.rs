//! Taking the lowest or highest members; the blocking commands wait when there is none.

use super::{len_of, removed};
use crate::collections::write_elem;
use crate::ctx::{Block, Ctx, TimeoutReply};
use crate::error::{CmdError, CmdResult, SYNTAX};
use crate::lists::{key_range, pop_count};
use crate::options::{self, is_word};
use keyspace::ZSet;
use resp::{Args, Reply};
use std::ops::Range;

/// ZPOPMIN key [count]
pub(super) fn zpopmin(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    pop(ctx, args, Extreme::Min)
}

/// ZPOPMAX key [count]
pub(super) fn zpopmax(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    pop(ctx, args, Extreme::Max)
}

/// BZPOPMIN key [key …] timeout
pub(super) fn bzpopmin(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    pop_or_wait(ctx, args, Extreme::Min)
}

/// BZPOPMAX key [key …] timeout
pub(super) fn bzpopmax(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    pop_or_wait(ctx, args, Extreme::Max)
}

/// ZMPOP numkeys key [key …] MIN|MAX [COUNT count]
pub(super) fn zmpop(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let request = Request::parse(args, 1)?;
    if !request.pop(ctx, args)? {
        ctx.out.null_array();
    }
    Ok(())
}

/// BZMPOP timeout numkeys key [key …] MIN|MAX [COUNT count]
pub(super) fn bzmpop(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let request = Request::parse(args, 2)?;
    let deadline_ms = options::deadline(args.at(1), ctx.db.now_ms())?;
    if request.pop(ctx, args)? {
        return Ok(());
    }
    wait(ctx, request.keys, deadline_ms)
}

/// As many members as ZPOPMIN or ZPOPMAX is to take.
pub(super) fn cost(ctx: &mut Ctx<'_>, args: Args<'_>) -> usize {
    match args.get(2).map(options::non_negative) {
        Some(Ok(count)) => count.min(len_of(ctx, args.at(1))),
        _ => 0,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Extreme {
    Min,
    Max,
}

impl Extreme {
    /// Records a blocking or searching pop as the pop of one key that it came to.
    fn record(self, ctx: &mut Ctx<'_>, key: &[u8], count: Option<usize>) {
        let name: &[u8] = match self {
            Extreme::Min => b"ZPOPMIN",
            Extreme::Max => b"ZPOPMAX",
        };
        match count {
            None => ctx.db.effect(&[name, key]),
            Some(count) if ctx.db.is_recording() => ctx.db.effect(&[name, key, count.to_string().as_bytes()]),
            Some(_) => {}
        }
    }

    fn event(self) -> &'static str {
        match self {
            Extreme::Min => "zpopmin",
            Extreme::Max => "zpopmax",
        }
    }

    /// Writes the outermost `count` members without a header and removes them, unless they are all: then the caller
    /// removes the key. `nested`: each in an array with its score. Gives whether they are all.
    fn take(self, zset: &mut ZSet, out: &mut Reply, count: usize, nested: bool) -> bool {
        let len = zset.len();
        let ranks = match self {
            Extreme::Min => 0..count,
            Extreme::Max => len - count..len,
        };
        let members = match self {
            Extreme::Min => zset.range(ranks.clone()),
            Extreme::Max => zset.range_back(ranks.clone()),
        };
        for (member, score) in members {
            if nested {
                out.array(2);
            }
            write_elem(out, member);
            out.double(score);
        }
        if count < len {
            zset.remove_ranks(ranks);
        }
        count == len
    }
}

fn pop(ctx: &mut Ctx<'_>, args: Args<'_>, extreme: Extreme) -> CmdResult {
    if args.len() > 3 {
        return Err(SYNTAX);
    }
    let key = args.at(1);
    let count = args.get(2).map(options::non_negative).transpose()?;
    let Some(zset) = ctx.db.write_zset(key)? else {
        ctx.out.empty_array();
        return Ok(());
    };
    let taken = count.unwrap_or(1).min(zset.len());
    if taken == 0 {
        ctx.out.empty_array();
        return Ok(());
    }
    // RESP3 nests the pairs only when a count is given.
    let nested = ctx.out.is_resp3() && count.is_some();
    ctx.out.array(if nested { taken } else { taken * 2 });
    let is_empty = extreme.take(zset, ctx.out, taken, nested);
    removed(ctx, key, extreme.event(), taken, is_empty);
    Ok(())
}

fn pop_or_wait(ctx: &mut Ctx<'_>, args: Args<'_>, extreme: Extreme) -> CmdResult {
    let last = args.len() - 1;
    let deadline_ms = options::deadline(args.at(last), ctx.db.now_ms())?;
    for index in 1..last {
        let key = args.at(index);
        let Some(zset) = ctx.db.write_zset(key)? else { continue };
        ctx.out.array(3);
        ctx.out.bulk(key);
        let is_empty = extreme.take(zset, ctx.out, 1, false);
        removed(ctx, key, extreme.event(), 1, is_empty);
        extreme.record(ctx, key, None);
        return Ok(());
    }
    wait(ctx, 1..last, deadline_ms)
}

fn wait(ctx: &mut Ctx<'_>, keys: Range<usize>, deadline_ms: Option<i64>) -> CmdResult {
    if ctx.may_block {
        ctx.wait_for(Block { keys, deadline_ms, timeout_reply: TimeoutReply::NullArray, replaced: Vec::new() });
    } else {
        ctx.out.null_array();
    }
    Ok(())
}

/// What ZMPOP and BZMPOP ask for.
struct Request {
    keys: Range<usize>,
    extreme: Extreme,
    count: usize,
}

impl Request {
    /// Reads the arguments from the number of keys on.
    fn parse(args: Args<'_>, numkeys_at: usize) -> Result<Request, CmdError> {
        let (keys, where_at) = key_range(args, numkeys_at)?;
        let extreme = if is_word(args.at(where_at), "min") {
            Extreme::Min
        } else if is_word(args.at(where_at), "max") {
            Extreme::Max
        } else {
            return Err(SYNTAX);
        };
        Ok(Request { keys, extreme, count: pop_count(args, where_at + 1)? })
    }

    /// Pops from the first key that is there. False: none is.
    fn pop(&self, ctx: &mut Ctx<'_>, args: Args<'_>) -> Result<bool, CmdError> {
        for index in self.keys.clone() {
            let key = args.at(index);
            let Some(zset) = ctx.db.write_zset(key)? else { continue };
            let taken = self.count.min(zset.len());
            ctx.out.array(2);
            ctx.out.bulk(key);
            ctx.out.array(taken);
            let is_empty = self.extreme.take(zset, ctx.out, taken, true);
            removed(ctx, key, self.extreme.event(), taken, is_empty);
            self.extreme.record(ctx, key, Some(taken));
            return Ok(true);
        }
        Ok(false)
    }
}
