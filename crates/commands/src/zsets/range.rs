//! Parts of a sorted set by rank, score or member: answered, or stored under another key.

use super::{bounds, members_header, store, write_member};
use crate::ctx::Ctx;
use crate::error::{CmdError, CmdResult, SYNTAX};
use crate::options::{self, clip, is_word};
use keyspace::zset::{LexBound, ScoreRange};
use keyspace::{ValueRef, ZSet};
use resp::Args;
use std::ops::Range;

/// ZRANGE key start stop [BYSCORE|BYLEX] [REV] [LIMIT offset count] [WITHSCORES]
pub(super) fn zrange(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    answer(ctx, args, None, None)
}

/// ZREVRANGE key start stop [WITHSCORES]
pub(super) fn zrevrange(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    answer(ctx, args, Some(By::Rank), Some(true))
}

/// ZRANGEBYSCORE key min max [WITHSCORES] [LIMIT offset count]
pub(super) fn zrangebyscore(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    answer(ctx, args, Some(By::Score), Some(false))
}

/// ZREVRANGEBYSCORE key max min [WITHSCORES] [LIMIT offset count]
pub(super) fn zrevrangebyscore(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    answer(ctx, args, Some(By::Score), Some(true))
}

/// ZRANGEBYLEX key min max [LIMIT offset count]
pub(super) fn zrangebylex(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    answer(ctx, args, Some(By::Member), Some(false))
}

/// ZREVRANGEBYLEX key max min [LIMIT offset count]
pub(super) fn zrevrangebylex(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    answer(ctx, args, Some(By::Member), Some(true))
}

/// ZRANGESTORE destination source min max [BYSCORE|BYLEX] [REV] [LIMIT offset count]
pub(super) fn zrangestore(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let request = Request::parse(args.slice(1), None, None, true)?;
    let mut result = ZSet::new();
    if let Some(source) = ctx.db.read_zset(args.at(2))? {
        let limits = &ctx.settings.zset;
        let ranks = request.ranks(source);
        if matches!(request.part, Part::Ranks(..)) {
            // Redis knows the length beforehand only here, and picks the first form by it.
            result = ZSet::with_hint(ranks.len(), 0, limits);
        }
        let mut scratch = [0; 24];
        for (member, score) in source.range(ranks) {
            result.add(member.to_bytes(&mut scratch), score, limits);
        }
    }
    store(ctx, args.at(1), result, "zrangestore");
    Ok(())
}

fn answer(ctx: &mut Ctx<'_>, args: Args<'_>, by: Option<By>, reverse: Option<bool>) -> CmdResult {
    let request = Request::parse(args, by, reverse, false)?;
    let Some(zset) = ctx.db.read_zset(args.at(1))? else {
        ctx.out.empty_array();
        return Ok(());
    };
    let ranks = request.ranks(zset);
    let out = &mut *ctx.out;
    members_header(out, ranks.len(), request.with_scores);
    let members = if request.reverse { zset.range_back(ranks) } else { zset.range(ranks) };
    for (member, score) in members {
        write_member(out, member, score, request.with_scores);
    }
    Ok(())
}

/// The members asked for by rank; the whole set for other ranges of ZRANGE.
pub(super) fn by_rank_cost(ctx: &mut Ctx<'_>, args: Args<'_>) -> usize {
    const FEW: i64 = 1000;
    let numbers = (options::int(args.at(2)), options::int(args.at(3)));
    let plain = args.len() == 4 || args.len() == 5 && is_word(args.at(4), "withscores");
    if let (Ok(start), Ok(stop)) = numbers
        && plain
        && start >= 0
        && (0..FEW).contains(&stop)
    {
        return 0;
    }
    let Some(ValueRef::ZSet(zset)) = ctx.db.get(args.at(1)) else { return 0 };
    match numbers {
        (Ok(start), Ok(stop)) if plain => clip(start, stop, zset.len()).map_or(0, |(first, last)| last - first + 1),
        _ => zset.len(),
    }
}

/// What a range is given by.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Rank,
    Score,
    Member,
}

/// A part of a sorted set.
enum Part<'a> {
    /// First and last rank in the direction asked for, negative ones from the end.
    Ranks(i64, i64),
    Scores(ScoreRange),
    Members(LexBound<'a>, LexBound<'a>),
}

/// The arguments of one of these commands.
struct Request<'a> {
    part: Part<'a>,
    reverse: bool,
    with_scores: bool,
    offset: i64,
    /// Negative: no limit.
    limit: i64,
}

impl<'a> Request<'a> {
    /// Reads what follows the key at index 1. `by` and `reverse` are given by the command's name, or else by options.
    fn parse(args: Args<'a>, by: Option<By>, reverse: Option<bool>, storing: bool) -> Result<Request<'a>, CmdError> {
        let (mut by, mut reverse) = (by, reverse);
        let (mut with_scores, mut offset, mut limit) = (false, 0, -1);
        let mut at = 4;
        while let Some(option) = args.get(at) {
            if !storing && is_word(option, "withscores") {
                with_scores = true;
            } else if let (true, Some(from), Some(count)) =
                (is_word(option, "limit"), args.get(at + 1), args.get(at + 2))
            {
                offset = options::int(from)?;
                limit = options::int(count)?;
                at += 2;
            } else if reverse.is_none() && is_word(option, "rev") {
                reverse = Some(true);
            } else if by.is_none() && is_word(option, "bylex") {
                by = Some(By::Member);
            } else if by.is_none() && is_word(option, "byscore") {
                by = Some(By::Score);
            } else {
                return Err(SYNTAX);
            }
            at += 1;
        }
        let (by, reverse) = (by.unwrap_or(By::Rank), reverse.unwrap_or(false));
        if limit != -1 && by == By::Rank {
            return Err(CmdError::new(
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
            ));
        }
        if with_scores && by == By::Member {
            return Err(CmdError::new("ERR syntax error, WITHSCORES not supported in combination with BYLEX"));
        }
        let (first, second) = (args.at(2), args.at(3));
        let (min, max) = if reverse { (second, first) } else { (first, second) };
        let part = match by {
            By::Rank => Part::Ranks(options::int(first)?, options::int(second)?),
            By::Score => Part::Scores(bounds::scores(min, max)?),
            By::Member => {
                let (min, max) = bounds::members(min, max)?;
                Part::Members(min, max)
            }
        };
        Ok(Request { part, reverse, with_scores, offset, limit })
    }

    /// The ranks asked for, counted from the lowest.
    fn ranks(&self, zset: &ZSet) -> Range<usize> {
        let len = zset.len();
        match &self.part {
            Part::Ranks(start, stop) => match clip(*start, *stop, len) {
                Some((first, last)) if self.reverse => len - 1 - last..len - first,
                Some((first, last)) => first..last + 1,
                None => 0..0,
            },
            Part::Scores(range) => self.limited(zset.score_ranks(range)),
            Part::Members(min, max) => self.limited(zset.lex_ranks(min, max)),
        }
    }

    /// Applies LIMIT. A negative offset leaves nothing.
    fn limited(&self, ranks: Range<usize>) -> Range<usize> {
        let Ok(offset) = usize::try_from(self.offset) else { return 0..0 };
        let offset = offset.min(ranks.len());
        let count = usize::try_from(self.limit).unwrap_or(usize::MAX).min(ranks.len() - offset);
        if self.reverse {
            let end = ranks.end - offset;
            end - count..end
        } else {
            let start = ranks.start + offset;
            start..start + count
        }
    }
}
