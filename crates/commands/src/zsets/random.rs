//! ZRANDMEMBER.

use super::{bulk_member, len_of, members_header, write_member};
use crate::ctx::Ctx;
use crate::error::{CmdError, CmdResult, SYNTAX};
use crate::options::{self, is_word};

use keyspace::ZSet;
use rdb::listpack::Elem;
use resp::Args;
use std::collections::HashSet;

/// ZRANDMEMBER key [count [WITHSCORES]]
pub(super) fn zrandmember(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    if args.len() > 2 {
        return draw_many(ctx, args);
    }
    match ctx.db.read_zset(args.at(1))?.and_then(|zset| zset.random(&mut fastrand::Rng::new())) {
        Some((member, _)) => bulk_member(ctx.out, member),
        None => ctx.out.null(),
    }
    Ok(())
}

/// As many members as are asked for.
pub(super) fn cost(ctx: &mut Ctx<'_>, args: Args<'_>) -> usize {
    match args.get(2).and_then(resp::num::parse_i64) {
        Some(count @ 0..) => usize::try_from(count).unwrap_or(usize::MAX).min(len_of(ctx, args.at(1))),
        Some(count) => usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX),
        None => 0,
    }
}

fn draw_many(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    const COUNT_RANGE: CmdError =
        CmdError::new("ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807");
    const PAIRS_RANGE: CmdError = CmdError::new("ERR value is out of range");
    /// Repeats beyond that would only exhaust the memory.
    const REPEATS_MAX: usize = 1 << 28;
    let count = options::int(args.at(2))?;
    if count == i64::MIN {
        return Err(COUNT_RANGE);
    }
    let with_scores = match args.get(3) {
        None => false,
        Some(option) if args.len() == 4 && is_word(option, "withscores") => true,
        Some(_) => return Err(SYNTAX),
    };
    if with_scores && !(-i64::MAX / 2..=i64::MAX / 2).contains(&count) {
        return Err(PAIRS_RANGE);
    }
    let wanted = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    let Some(zset) = ctx.db.read_zset(args.at(1))? else {
        ctx.out.empty_array();
        return Ok(());
    };
    let repeats = count < 0 || count == 1;
    if repeats && wanted > REPEATS_MAX {
        return Err(PAIRS_RANGE);
    }
    let drawn = if repeats { wanted } else { wanted.min(zset.len()) };
    members_header(ctx.out, drawn, with_scores);
    let out = &mut *ctx.out;
    let visit = |(member, score): (Elem<'_>, f64)| write_member(out, member, score, with_scores);
    let mut random = fastrand::Rng::new();
    if repeats {
        draw_with_repeats(zset, drawn, &mut random, visit);
    } else {
        draw_distinct(zset, drawn, &mut random, visit);
    }
    Ok(())
}

/// Members drawn each from all, in random order. A listpack is walked once a thousand of them.
fn draw_with_repeats(zset: &ZSet, count: usize, random: &mut fastrand::Rng, mut visit: impl FnMut((Elem<'_>, f64))) {
    const BATCH: usize = 1000;
    let Some(pack) = zset.as_listpack().filter(|_| count > 1) else {
        (0..count).filter_map(|_| zset.random(random)).for_each(visit);
        return;
    };
    let mut left = count;
    while left > 0 {
        let batch = left.min(BATCH);
        pack.random_with_repeats(2, batch, &mut |below| random.usize(..below), &mut |member, score| {
            visit((member, score_of(score)));
        });
        left -= batch;
    }
}

/// The score that a listpack's element stands for.
fn score_of(elem: Elem<'_>) -> f64 {
    resp::num::parse_f64(elem.to_bytes(&mut [0; 24])).unwrap_or(0.0)
}

/// Different members, each choice with the same chance. `count` is at most the length.
fn draw_distinct(zset: &ZSet, count: usize, random: &mut fastrand::Rng, mut visit: impl FnMut((Elem<'_>, f64))) {
    /// How many times larger a set must be for single draws to beat a walk.
    const SPARSE: usize = 16;
    let len = zset.len();
    if count == len {
        zset.range_back(0..len).for_each(visit);
    } else if zset.as_listpack().is_some() || count.saturating_mul(SPARSE) > len {
        // A member is taken with the probability of those wanted among those left.
        let mut wanted = count;
        for (passed, member) in zset.iter().enumerate() {
            if random.usize(..len - passed) < wanted {
                visit(member);
                wanted -= 1;
            }
        }
    } else {
        let mut ranks = HashSet::new();
        while ranks.len() < count {
            let rank = random.usize(..len);
            if ranks.insert(rank)
                && let Some(member) = zset.by_rank(rank)
            {
                visit(member);
            }
        }
    }
}
