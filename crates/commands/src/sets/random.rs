//! Random members: SPOP and SRANDMEMBER.

use super::algebra;
use crate::collections::{RandomCount, draw_in_batches, write_elem};
use crate::ctx::Ctx;
use crate::error::{CmdResult, SYNTAX};
use crate::options;
use fastrand::Rng;
use keyspace::NotifyClass;
use keyspace::journal::Deletion;
use resp::Args;

/// Members that one SREM of an SPOP's record names at most.
const RECORDED_MEMBERS: usize = 1024;

/// `SPOP key [count]`
pub(super) fn spop(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    match args.len() {
        2 => pop_one(ctx, args.at(1)),
        3 => {
            let count = options::non_negative(args.at(2))?;
            pop_many(ctx, args.at(1), count)
        }
        _ => Err(SYNTAX),
    }
}

fn pop_one(ctx: &mut Ctx<'_>, key: &[u8]) -> CmdResult {
    let is_recording = ctx.db.is_recording();
    let Some(set) = ctx.db.write_set(key)? else {
        ctx.out.null();
        return Ok(());
    };
    let mut taken = Vec::new();
    set.pop(&mut Rng::new(), |member| {
        if is_recording {
            taken = member.to_vec();
        }
        write_elem(ctx.out, member);
    });
    let is_emptied = set.is_empty();
    ctx.db.effect(&[b"SREM", key, &taken]);
    ctx.db.changed(NotifyClass::SET, "spop", key);
    if is_emptied {
        ctx.db.remove(key);
        ctx.db.notify(NotifyClass::GENERIC, "del", key);
    }
    Ok(())
}

fn pop_many(ctx: &mut Ctx<'_>, key: &[u8], count: usize) -> CmdResult {
    let len = ctx.db.write_set(key)?.map_or(0, |set| set.len());
    if len == 0 || count == 0 {
        ctx.out.set(0);
        return Ok(());
    }
    if count >= len {
        return pop_all(ctx, key);
    }
    let is_recording = ctx.db.is_recording();
    let mut taken: Vec<Vec<u8>> = Vec::new();
    if let Some(set) = ctx.db.write_set(key)? {
        ctx.out.set(count);
        set.pop_many(&mut Rng::new(), count, &ctx.settings.set, |member| {
            if is_recording {
                taken.push(member.to_vec());
            }
            write_elem(ctx.out, member);
        });
    }
    for portion in taken.chunks(RECORDED_MEMBERS) {
        let removal: [&[u8]; 2] = [b"SREM", key];
        let all: Vec<&[u8]> = removal.into_iter().chain(portion.iter().map(Vec::as_slice)).collect();
        ctx.db.effect(&all);
    }
    ctx.db.changed(NotifyClass::SET, "spop", key);
    ctx.db.events.dirty += count as u64 - 1;
    Ok(())
}

/// Redis answers as SUNION of the key would, which also counts a hit.
fn pop_all(ctx: &mut Ctx<'_>, key: &[u8]) -> CmdResult {
    let limits = &ctx.settings.set;
    let mut len = 0;
    if let Some(set) = ctx.db.read_set(key)? {
        len = set.len();
        ctx.out.set(len);
        if set.as_listpack().is_some() {
            let union = algebra::union(&[Some(set)], limits);
            union.iter().for_each(|member| write_elem(ctx.out, member));
        } else {
            set.iter().for_each(|member| write_elem(ctx.out, member));
        }
    }
    ctx.db.changed(NotifyClass::SET, "spop", key);
    ctx.db.events.dirty += (len as u64).saturating_sub(1);
    ctx.db.remove(key);
    ctx.db.notify(NotifyClass::GENERIC, "del", key);
    ctx.db.effect_deleted(key, Deletion::Implied);
    Ok(())
}

/// `SRANDMEMBER key [count]`
pub(super) fn srandmember(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    if args.len() > 3 {
        return Err(SYNTAX);
    }
    let Some(count) = args.get(2) else {
        match ctx.db.read_set(args.at(1))?.and_then(|set| set.random(&mut Rng::new())) {
            Some(member) => write_elem(ctx.out, member),
            None => ctx.out.null(),
        }
        return Ok(());
    };
    let count = RandomCount::parse(count)?;
    let Some(set) = ctx.db.read_set(args.at(1))? else {
        ctx.out.empty_array();
        return Ok(());
    };
    ctx.out.array(count.of(set.len()));
    let mut rng = Rng::new();
    match count {
        RandomCount::Distinct(count) => {
            set.random_distinct(&mut rng, count, |member| write_elem(ctx.out, member));
            Ok(())
        }
        RandomCount::Repeats(count) => draw_in_batches(ctx.out, count, |out, batch| {
            set.random_with_repeats(&mut rng, batch, |member| write_elem(out, member));
        }),
    }
}
