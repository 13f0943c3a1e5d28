//! Sorted sets: ZADD, ZRANGE, ZUNIONSTORE, BZPOPMIN and the others.
//!
//! [`add`] adds and removes members, [`look`] asks for scores, ranks and counts, [`range`] reads and stores parts,
//! [`remove`] removes them, [`pop`] takes the ends and blocks when there is none, [`combine`] makes unions, intersections
//! and differences, [`random`] draws, [`scan`] walks. [`bounds`] reads the ends of ranges.
//!
//! A range of scores or members is turned into ranks first; everything after that is by rank.

use crate::collections::write_elem;
use crate::ctx::Ctx;
use crate::dispatch::{Cost, Handler};
use crate::table::CommandId;
use keyspace::{NotifyClass, ValueRef};
use rdb::listpack::Elem;
use resp::Reply;

mod add;
mod bounds;
mod combine;
mod look;
mod pop;
mod random;
mod range;
mod remove;
mod scan;
#[cfg(test)]
mod tests;

/// The function of a command of this family.
pub(crate) fn handler(id: CommandId) -> Option<Handler> {
    Some(match id {
        CommandId::Zadd => add::zadd,
        CommandId::Zincrby => add::zincrby,
        CommandId::Zcard => look::zcard,
        CommandId::Zscore => look::zscore,
        CommandId::Zmscore => look::zmscore,
        CommandId::Zrank => look::zrank,
        CommandId::Zrevrank => look::zrevrank,
        CommandId::Zcount => look::zcount,
        CommandId::Zlexcount => look::zlexcount,
        CommandId::Zrange => range::zrange,
        CommandId::Zrevrange => range::zrevrange,
        CommandId::Zrangebyscore => range::zrangebyscore,
        CommandId::Zrevrangebyscore => range::zrevrangebyscore,
        CommandId::Zrangebylex => range::zrangebylex,
        CommandId::Zrevrangebylex => range::zrevrangebylex,
        CommandId::Zrangestore => range::zrangestore,
        CommandId::Zrem => remove::zrem,
        CommandId::Zremrangebyrank => remove::zremrangebyrank,
        CommandId::Zremrangebyscore => remove::zremrangebyscore,
        CommandId::Zremrangebylex => remove::zremrangebylex,
        CommandId::Zpopmin => pop::zpopmin,
        CommandId::Zpopmax => pop::zpopmax,
        CommandId::Zmpop => pop::zmpop,
        CommandId::Bzpopmin => pop::bzpopmin,
        CommandId::Bzpopmax => pop::bzpopmax,
        CommandId::Bzmpop => pop::bzmpop,
        CommandId::Zunion => combine::zunion,
        CommandId::Zunionstore => combine::zunionstore,
        CommandId::Zinter => combine::zinter,
        CommandId::Zinterstore => combine::zinterstore,
        CommandId::Zintercard => combine::zintercard,
        CommandId::Zdiff => combine::zdiff,
        CommandId::Zdiffstore => combine::zdiffstore,
        CommandId::Zrandmember => random::zrandmember,
        CommandId::Zscan => scan::zscan,
        _ => return None,
    })
}

/// The cost function of a command of this family.
pub(crate) fn cost(id: CommandId) -> Option<Cost> {
    Some(match id {
        CommandId::Zrange | CommandId::Zrevrange => range::by_rank_cost,
        CommandId::Zrangebyscore | CommandId::Zrevrangebyscore | CommandId::Zrangebylex | CommandId::Zrevrangebylex => {
            |ctx, args| len_of(ctx, args.at(1))
        }
        CommandId::Zrangestore => |ctx, args| len_of(ctx, args.at(2)),
        CommandId::Zremrangebyrank | CommandId::Zremrangebyscore | CommandId::Zremrangebylex => {
            |ctx, args| len_of(ctx, args.at(1))
        }
        CommandId::Zpopmin | CommandId::Zpopmax => pop::cost,
        CommandId::Zunion | CommandId::Zinter | CommandId::Zintercard | CommandId::Zdiff => {
            |ctx, args| combine::cost(ctx, args, 1)
        }
        CommandId::Zunionstore | CommandId::Zinterstore | CommandId::Zdiffstore => {
            |ctx, args| combine::cost(ctx, args, 2)
        }
        CommandId::Zrandmember => random::cost,
        _ => return None,
    })
}

/// Members of the set or sorted set at a key; 0 for anything else.
fn len_of(ctx: &mut Ctx<'_>, key: &[u8]) -> usize {
    match ctx.db.get(key) {
        Some(ValueRef::ZSet(zset)) => zset.len(),
        Some(ValueRef::Set(set)) => set.len(),
        _ => 0,
    }
}

/// Header of an array of `count` members, with or without their scores: flat in RESP2, pairs in RESP3.
fn members_header(out: &mut Reply, count: usize, with_scores: bool) {
    out.array(if with_scores && !out.is_resp3() { count * 2 } else { count });
}

/// Writes one element of such an array.
#[inline]
fn write_member(out: &mut Reply, member: Elem<'_>, score: f64, with_scores: bool) {
    if with_scores {
        if out.is_resp3() {
            out.array(2);
        }
        write_elem(out, member);
        out.double(score);
    } else {
        write_elem(out, member);
    }
}

/// Says that `count` members were removed under that event, and removes the key when none is left.
fn removed(ctx: &mut Ctx<'_>, key: &[u8], event: &'static str, count: usize, is_empty: bool) {
    changed(ctx, key, event, count);
    if is_empty {
        ctx.db.remove(key);
        ctx.db.notify(NotifyClass::GENERIC, "del", key);
    }
}

/// Says that `count` members changed, at least one.
fn changed(ctx: &mut Ctx<'_>, key: &[u8], event: &'static str, count: usize) {
    ctx.db.changed(NotifyClass::ZSET, event, key);
    ctx.db.events.dirty += (count as u64).saturating_sub(1);
}

/// The end of a Z…STORE: the set becomes the value of `destination`, or an empty one removes it. Answers the length.
fn store(ctx: &mut Ctx<'_>, destination: &[u8], zset: keyspace::ZSet, event: &'static str) {
    let len = zset.len();
    if len > 0 {
        ctx.db.set(destination, keyspace::Value::ZSet(zset), keyspace::SetTtl::Clear);
        ctx.db.changed(NotifyClass::ZSET, event, destination);
    } else if ctx.db.remove(destination) {
        ctx.db.changed(NotifyClass::GENERIC, "del", destination);
    }
    ctx.out.count(len);
}
