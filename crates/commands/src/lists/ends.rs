//! Pushing to and popping from the ends of one list. Hot path: nothing is allocated but what the list stores.

use super::{count_more, pop_many, popped, push_event};
use crate::collections::write_elem;
use crate::ctx::Ctx;
use crate::error::{CmdError, CmdResult};
use crate::options;
use keyspace::list::{End, List, ListLimits};
use keyspace::{NotifyClass, Value};
use resp::Args;

/// LPUSH key element [element …]
pub(super) fn lpush(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    push(ctx, args, End::Front, true)
}

/// RPUSH key element [element …]
pub(super) fn rpush(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    push(ctx, args, End::Back, true)
}

/// LPUSHX key element [element …]
pub(super) fn lpushx(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    push(ctx, args, End::Front, false)
}

/// RPUSHX key element [element …]
pub(super) fn rpushx(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    push(ctx, args, End::Back, false)
}

fn push(ctx: &mut Ctx<'_>, args: Args<'_>, end: End, may_create: bool) -> CmdResult {
    let key = args.at(1);
    let limits = &ctx.settings.list;
    let len = match ctx.db.write_list(key)? {
        Some(list) => extend(list, args, end, limits),
        None if may_create => {
            let mut list = List::new();
            let len = extend(&mut list, args, end, limits);
            ctx.db.insert(key, Value::List(list), None);
            len
        }
        None => {
            ctx.out.count(0);
            return Ok(());
        }
    };
    ctx.db.changed(NotifyClass::LIST, push_event(end), key);
    count_more(ctx, args.len() - 2);
    ctx.out.count(len);
    Ok(())
}

/// Pushes the arguments from the third on; gives the new length.
#[inline]
fn extend(list: &mut List, args: Args<'_>, end: End, limits: &ListLimits) -> usize {
    if args.len() == 3 {
        list.push(end, args.at(2), limits);
    } else {
        list.push_all(end, args.slice(2).iter(), limits);
    }
    list.len()
}

/// LPOP key [count]
pub(super) fn lpop(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    pop(ctx, args, End::Front)
}

/// RPOP key [count]
pub(super) fn rpop(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    pop(ctx, args, End::Back)
}

fn pop(ctx: &mut Ctx<'_>, args: Args<'_>, end: End) -> CmdResult {
    let key = args.at(1);
    if args.len() > 2 {
        return pop_counted(ctx, args, end);
    }
    let limits = &ctx.settings.list;
    let Some(list) = ctx.db.write_list(key)? else {
        ctx.out.null();
        return Ok(());
    };
    let out = &mut *ctx.out;
    list.pop(end, limits, |elem| write_elem(out, elem));
    let is_empty = list.is_empty();
    popped(ctx, key, end, 1, is_empty);
    Ok(())
}

fn pop_counted(ctx: &mut Ctx<'_>, args: Args<'_>, end: End) -> CmdResult {
    let key = args.at(1);
    if args.len() > 3 {
        return Err(CmdError::new(match end {
            End::Front => "ERR wrong number of arguments for 'lpop' command",
            End::Back => "ERR wrong number of arguments for 'rpop' command",
        }));
    }
    let count = options::non_negative(args.at(2))?;
    let limits = &ctx.settings.list;
    let Some(list) = ctx.db.write_list(key)? else {
        ctx.out.null_array();
        return Ok(());
    };
    if count == 0 {
        ctx.out.empty_array();
        return Ok(());
    }
    let (taken, is_empty) = pop_many(list, ctx.out, end, count, limits);
    popped(ctx, key, end, taken, is_empty);
    Ok(())
}
