//! ZRANDMEMBER.

use super::{len_of, members_header, write_member};
use crate::collections::{RandomCount, draw_in_batches, write_elem};
use crate::ctx::Ctx;
use crate::error::{CmdError, CmdResult, SYNTAX};
use crate::options::is_word;
use keyspace::ZSet;
use rdb::listpack::Elem;
use resp::{Args, Reply};
use std::collections::HashSet;

/// ZRANDMEMBER key [count [WITHSCORES]]
pub(super) fn zrandmember(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    if args.len() > 2 {
        return draw_many(ctx, args);
    }
    match ctx.db.read_zset(args.at(1))?.and_then(|zset| zset.random(&mut fastrand::Rng::new())) {
        Some((member, _)) => write_elem(ctx.out, member),
        None => ctx.out.null(),
    }
    Ok(())
}

/// As many members as are asked for.
pub(super) fn cost(ctx: &mut Ctx<'_>, args: Args<'_>) -> usize {
    let len = len_of(ctx, args.at(1));
    args.get(2).and_then(|count| RandomCount::parse(count).ok()).map_or(0, |count| count.of(len))
}

fn draw_many(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let count = RandomCount::parse(args.at(2))?;
    let with_scores = match args.get(3) {
        None => false,
        Some(option) if args.len() == 4 && is_word(option, "withscores") => true,
        Some(_) => return Err(SYNTAX),
    };
    if with_scores {
        count.check_pairs()?;
    }
    let Some(zset) = ctx.db.read_zset(args.at(1))? else {
        ctx.out.empty_array();
        return Ok(());
    };
    let drawn = count.of(zset.len());
    let mut random = fastrand::Rng::new();
    match count {
        RandomCount::Repeats(_) => draw_with_repeats(zset, drawn, &mut random, ctx.out, with_scores),
        RandomCount::Distinct(_) => {
            members_header(ctx.out, drawn, with_scores);
            draw_distinct(zset, drawn, &mut random, |(member, score)| {
                write_member(ctx.out, member, score, with_scores);
            });
            Ok(())
        }
    }
}

/// Members drawn each from all, in random order. A listpack is walked once a batch.
fn draw_with_repeats(
    zset: &ZSet,
    count: usize,
    random: &mut fastrand::Rng,
    out: &mut Reply,
    with_scores: bool,
) -> CmdResult {
    /// A longer reply would only exhaust the memory.
    const REPEATS_MAX: usize = 1 << 28;
    if count > REPEATS_MAX {
        return Err(CmdError::new("ERR value is out of range"));
    }
    members_header(out, count, with_scores);
    draw_in_batches(out, count, |out, batch| match zset.as_listpack() {
        Some(pack) => {
            let mut visit = |member: Elem<'_>, score: Elem<'_>| write_member(out, member, score_of(score), with_scores);
            pack.random_with_repeats(2, batch, &mut |below| random.usize(..below), &mut visit);
        }
        None => {
            for (member, score) in (0..batch).filter_map(|_| zset.random(random)) {
                write_member(out, member, score, with_scores);
            }
        }
    })
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
