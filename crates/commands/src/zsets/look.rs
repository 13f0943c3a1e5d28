//! Asking for lengths, scores, ranks and counts.

use super::bounds;
use crate::ctx::Ctx;
use crate::error::{CmdError, CmdResult, SYNTAX};
use crate::options::is_word;
use resp::Args;

/// ZCARD key
pub(super) fn zcard(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let len = ctx.db.read_zset(args.at(1))?.map_or(0, |zset| zset.len());
    ctx.out.count(len);
    Ok(())
}

/// ZSCORE key member
pub(super) fn zscore(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    match ctx.db.read_zset(args.at(1))?.and_then(|zset| zset.score(args.at(2))) {
        Some(score) => ctx.out.double(score),
        None => ctx.out.null(),
    }
    Ok(())
}

/// ZMSCORE key member [member …]
pub(super) fn zmscore(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let zset = ctx.db.read_zset(args.at(1))?;
    ctx.out.array(args.len() - 2);
    for member in args.slice(2) {
        match zset.and_then(|zset| zset.score(member)) {
            Some(score) => ctx.out.double(score),
            None => ctx.out.null(),
        }
    }
    Ok(())
}

/// ZRANK key member [WITHSCORE]
pub(super) fn zrank(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    const ARITY: CmdError = CmdError::new("ERR wrong number of arguments for 'zrank' command");
    rank(ctx, args, false, ARITY)
}

/// ZREVRANK key member [WITHSCORE]
pub(super) fn zrevrank(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    const ARITY: CmdError = CmdError::new("ERR wrong number of arguments for 'zrevrank' command");
    rank(ctx, args, true, ARITY)
}

fn rank(ctx: &mut Ctx<'_>, args: Args<'_>, reverse: bool, arity: CmdError) -> CmdResult {
    if args.len() > 4 {
        return Err(arity);
    }
    let with_score = match args.get(3) {
        Some(option) if is_word(option, "withscore") => true,
        Some(_) => return Err(SYNTAX),
        None => false,
    };
    let member = args.at(2);
    let zset = ctx.db.read_zset(args.at(1))?;
    let found = zset.and_then(|zset| if reverse { zset.rank_back(member) } else { zset.rank(member) });
    match found {
        Some((rank, score)) if with_score => {
            ctx.out.array(2);
            ctx.out.count(rank);
            ctx.out.double(score);
        }
        Some((rank, _)) => ctx.out.count(rank),
        None if with_score => ctx.out.null_array(),
        None => ctx.out.null(),
    }
    Ok(())
}

/// ZCOUNT key min max
pub(super) fn zcount(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let range = bounds::scores(args.at(2), args.at(3))?;
    let count = ctx.db.read_zset(args.at(1))?.map_or(0, |zset| zset.score_ranks(&range).len());
    ctx.out.count(count);
    Ok(())
}

/// ZLEXCOUNT key min max
pub(super) fn zlexcount(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let (min, max) = bounds::members(args.at(2), args.at(3))?;
    let count = ctx.db.read_zset(args.at(1))?.map_or(0, |zset| zset.lex_ranks(&min, &max).len());
    ctx.out.count(count);
    Ok(())
}
