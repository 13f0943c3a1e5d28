//! Removing members by name, rank, score or order.

use super::{bounds, removed};
use crate::ctx::Ctx;
use crate::error::CmdResult;
use crate::options::{self, clip};
use keyspace::ZSet;
use resp::Args;
use std::ops::Range;

/// ZREM key member [member …]
pub(super) fn zrem(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let key = args.at(1);
    let Some(zset) = ctx.db.write_zset(key)? else {
        ctx.out.count(0);
        return Ok(());
    };
    let mut count = 0;
    for member in args.slice(2) {
        if zset.remove(member).is_some() {
            count += 1;
            if zset.is_empty() {
                break;
            }
        }
    }
    let is_empty = zset.is_empty();
    if count > 0 {
        removed(ctx, key, "zrem", count, is_empty);
    }
    ctx.out.count(count);
    Ok(())
}

/// ZREMRANGEBYRANK key start stop
pub(super) fn zremrangebyrank(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let (start, stop) = (options::int(args.at(2))?, options::int(args.at(3))?);
    remove_ranks(ctx, args.at(1), "zremrangebyrank", |zset| {
        clip(start, stop, zset.len()).map_or(0..0, |(first, last)| first..last + 1)
    })
}

/// ZREMRANGEBYSCORE key min max
pub(super) fn zremrangebyscore(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let range = bounds::scores(args.at(2), args.at(3))?;
    remove_ranks(ctx, args.at(1), "zremrangebyscore", |zset| zset.score_ranks(&range))
}

/// ZREMRANGEBYLEX key min max
pub(super) fn zremrangebylex(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let (min, max) = bounds::members(args.at(2), args.at(3))?;
    remove_ranks(ctx, args.at(1), "zremrangebylex", |zset| zset.lex_ranks(&min, &max))
}

fn remove_ranks(
    ctx: &mut Ctx<'_>,
    key: &[u8],
    event: &'static str,
    ranks: impl FnOnce(&ZSet) -> Range<usize>,
) -> CmdResult {
    let Some(zset) = ctx.db.write_zset(key)? else {
        ctx.out.count(0);
        return Ok(());
    };
    let ranks = ranks(zset);
    let count = ranks.len();
    let is_empty = count == zset.len();
    // A set that loses all its members is freed as a whole.
    if !is_empty {
        zset.remove_ranks(ranks);
    }
    if count > 0 {
        removed(ctx, key, event, count, is_empty);
    }
    ctx.out.count(count);
    Ok(())
}
