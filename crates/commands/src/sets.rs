//! Commands on sets: single members here, random members in [`random`], unions and the like in [`algebra`].
//!
//! Which encoding a set has is visible to clients (OBJECT ENCODING, DUMP), so results are built in the steps of Redis:
//! the order of insertions and the kind of the first container decide.
//!
//! Hot path: SADD, SREM and SISMEMBER allocate nothing but what they store.

mod algebra;
mod random;
#[cfg(test)]
mod tests;

use crate::collections::{self, RandomCount, ScanOptions, write_elem};
use crate::ctx::Ctx;
use crate::dispatch::{Cost, Handler};
use crate::error::CmdResult;
use crate::options;
use crate::table::CommandId;
use keyspace::{NotifyClass, Set, Value, ValueRef};
use resp::Args;

/// The function of a command of this family.
pub(crate) fn handler(id: CommandId) -> Option<Handler> {
    Some(match id {
        CommandId::Sadd => sadd,
        CommandId::Sismember => sismember,
        CommandId::Srem => srem,
        CommandId::Smembers => smembers,
        CommandId::Scard => scard,
        CommandId::Smismember => smismember,
        CommandId::Smove => smove,
        CommandId::Sscan => sscan,
        CommandId::Spop => random::spop,
        CommandId::Srandmember => random::srandmember,
        CommandId::Sdiff => algebra::sdiff,
        CommandId::Sdiffstore => algebra::sdiffstore,
        CommandId::Sinter => algebra::sinter,
        CommandId::Sintercard => algebra::sintercard,
        CommandId::Sinterstore => algebra::sinterstore,
        CommandId::Sunion => algebra::sunion,
        CommandId::Sunionstore => algebra::sunionstore,
        _ => return None,
    })
}

/// The cost function of a command of this family.
pub(crate) fn cost(id: CommandId) -> Option<Cost> {
    match id {
        CommandId::Smembers => Some(cost_of_all),
        CommandId::Sscan => Some(cost_of_scan),
        CommandId::Spop => Some(cost_of_pop),
        CommandId::Srandmember => Some(cost_of_random),
        CommandId::Sdiff | CommandId::Sunion => Some(algebra::cost_of_sum),
        CommandId::Sdiffstore | CommandId::Sunionstore => Some(algebra::cost_of_stored_sum),
        CommandId::Sinter => Some(algebra::cost_of_inter),
        CommandId::Sinterstore => Some(algebra::cost_of_stored_inter),
        CommandId::Sintercard => Some(algebra::cost_of_card),
        _ => None,
    }
}

/// Number of members, 0 when there is no set. Changes nothing.
fn len_of(ctx: &Ctx<'_>, key: &[u8]) -> usize {
    match ctx.db.get(key) {
        Some(ValueRef::Set(set)) => set.len(),
        _ => 0,
    }
}

fn cost_of_all(ctx: &mut Ctx<'_>, args: Args<'_>) -> usize {
    len_of(ctx, args.at(1))
}

fn cost_of_scan(ctx: &mut Ctx<'_>, args: Args<'_>) -> usize {
    match ScanOptions::parse(args.slice(3)) {
        Ok(options) => options.count.min(len_of(ctx, args.at(1))),
        Err(_) => 1,
    }
}

fn cost_of_pop(ctx: &mut Ctx<'_>, args: Args<'_>) -> usize {
    match args.get(2).and_then(|count| options::non_negative(count).ok()) {
        Some(count) => count.min(len_of(ctx, args.at(1))),
        None => 1,
    }
}

fn cost_of_random(ctx: &mut Ctx<'_>, args: Args<'_>) -> usize {
    match args.get(2).and_then(|count| RandomCount::parse(count).ok()) {
        Some(count) => count.of(len_of(ctx, args.at(1))),
        None => 1,
    }
}

/// `SADD key member [member …]`
fn sadd(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let key = args.at(1);
    let members = args.slice(2);
    let limits = &ctx.settings.set;
    let add_all = |set: &mut Set| members.iter().filter(|member| set.add(member, limits)).count();
    let added = match ctx.db.write_set(key)? {
        Some(set) => {
            set.prepare(members.len(), limits);
            add_all(set)
        }
        None => {
            let mut set = Set::for_member(args.at(2), members.len(), limits);
            let added = add_all(&mut set);
            ctx.db.insert(key, Value::Set(set), None);
            added
        }
    };
    if added > 0 {
        ctx.db.changed(NotifyClass::SET, "sadd", key);
        ctx.db.events.dirty += added as u64 - 1;
    }
    ctx.out.count(added);
    Ok(())
}

/// `SREM key member [member …]`
fn srem(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let key = args.at(1);
    let mut removed = 0_usize;
    let mut is_emptied = false;
    if let Some(set) = ctx.db.write_set(key)? {
        for member in args.slice(2) {
            removed += usize::from(set.remove(member));
            if set.is_empty() {
                is_emptied = true;
                break;
            }
        }
    }
    if removed > 0 {
        ctx.db.changed(NotifyClass::SET, "srem", key);
        ctx.db.events.dirty += removed as u64 - 1;
        if is_emptied {
            ctx.db.remove(key);
            ctx.db.notify(NotifyClass::GENERIC, "del", key);
        }
    }
    ctx.out.count(removed);
    Ok(())
}

/// `SISMEMBER key member`
fn sismember(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let is_member = ctx.db.read_set(args.at(1))?.is_some_and(|set| set.contains(args.at(2)));
    ctx.out.int(i64::from(is_member));
    Ok(())
}

/// `SMISMEMBER key member [member …]`
fn smismember(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let set = ctx.db.read_set(args.at(1))?;
    let members = args.slice(2);
    ctx.out.array(members.len());
    for member in members {
        ctx.out.int(i64::from(set.is_some_and(|set| set.contains(member))));
    }
    Ok(())
}

/// `SCARD key`
fn scard(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let len = ctx.db.read_set(args.at(1))?.map_or(0, Set::len);
    ctx.out.count(len);
    Ok(())
}

/// `SMEMBERS key`
fn smembers(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    match ctx.db.read_set(args.at(1))? {
        Some(set) => {
            ctx.out.set(set.len());
            set.iter().for_each(|member| write_elem(ctx.out, member));
        }
        None => ctx.out.set(0),
    }
    Ok(())
}

/// `SMOVE source destination member`
fn smove(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let (source, destination, member) = (args.at(1), args.at(2), args.at(3));
    // A missing source is answered before the destination's type is looked at; yet both are looked up, so that one
    // whose time is over goes.
    let source_exists = ctx.db.exists(source);
    let destination_exists = ctx.db.exists(destination);
    if !source_exists {
        ctx.out.int(0);
        return Ok(());
    }
    let is_member = ctx.db.write_set(source)?.is_some_and(|set| set.contains(member));
    ctx.db.write_set(destination)?;
    if source == destination || !is_member {
        ctx.out.int(i64::from(is_member));
        return Ok(());
    }
    let is_emptied = ctx.db.write_set(source)?.is_some_and(|set| {
        set.remove(member);
        set.is_empty()
    });
    ctx.db.changed(NotifyClass::SET, "srem", source);
    if is_emptied {
        ctx.db.remove(source);
        ctx.db.notify(NotifyClass::GENERIC, "del", source);
    }
    let limits = &ctx.settings.set;
    let is_added = if destination_exists {
        ctx.db.write_set(destination)?.is_some_and(|set| set.add(member, limits))
    } else {
        let mut set = Set::for_member(member, 1, limits);
        set.add(member, limits);
        ctx.db.insert(destination, Value::Set(set), None);
        true
    };
    if is_added {
        ctx.db.changed(NotifyClass::SET, "sadd", destination);
    }
    ctx.out.int(1);
    Ok(())
}

/// `SSCAN key cursor [MATCH pattern] [COUNT count]`
fn sscan(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let cursor = collections::cursor(args.at(2))?;
    let Some(set) = ctx.db.read_set(args.at(1))? else { return collections::empty_scan(ctx.out) };
    let options = ScanOptions::parse(args.slice(3))?;
    collections::reply_scan(ctx.out, |out| {
        let mut written = 0;
        let next = set.scan(cursor, options.count, |member| {
            if options.wants(member) {
                write_elem(out, member);
                written += 1;
            }
        });
        (next, written)
    });
    Ok(())
}
