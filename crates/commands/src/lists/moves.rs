//! Taking an element from an end of one list to an end of another, or of the same one.

use super::{end_of, pop_event, push_event, remove_empty};
use crate::collections::write_elem;
use crate::ctx::{Block, Ctx, TimeoutReply};
use crate::error::{CmdResult, WRONG_TYPE};
use crate::options;
use keyspace::list::{End, List};
use keyspace::{NotifyClass, Value, ValueRef};
use rdb::listpack::Elem;
use resp::Args;

/// LMOVE source destination LEFT|RIGHT LEFT|RIGHT
pub(super) fn lmove(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let (from, to) = (end_of(args.at(3))?, end_of(args.at(4))?);
    if !shift(ctx, args, from, to)? {
        ctx.out.null();
    }
    Ok(())
}

/// RPOPLPUSH source destination
pub(super) fn rpoplpush(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    if !shift(ctx, args, End::Back, End::Front)? {
        ctx.out.null();
    }
    Ok(())
}

/// BLMOVE source destination LEFT|RIGHT LEFT|RIGHT timeout
pub(super) fn blmove(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let (from, to) = (end_of(args.at(3))?, end_of(args.at(4))?);
    let deadline_ms = options::deadline(args.at(5), ctx.db.now_ms())?;
    shift_or_wait(ctx, args, from, to, deadline_ms, &[b"LMOVE", args.at(1), args.at(2), args.at(3), args.at(4)])
}

/// BRPOPLPUSH source destination timeout
pub(super) fn brpoplpush(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let deadline_ms = options::deadline(args.at(3), ctx.db.now_ms())?;
    shift_or_wait(ctx, args, End::Back, End::Front, deadline_ms, &[b"RPOPLPUSH", args.at(1), args.at(2)])
}

/// `recorded`: the command that does the same without waiting.
fn shift_or_wait(
    ctx: &mut Ctx<'_>,
    args: Args<'_>,
    from: End,
    to: End,
    deadline_ms: Option<i64>,
    recorded: &[&[u8]],
) -> CmdResult {
    if shift(ctx, args, from, to)? {
        ctx.db.effect(recorded);
        return Ok(());
    }
    if ctx.may_block {
        ctx.wait_for(Block { keys: 1..2, deadline_ms, timeout_reply: TimeoutReply::NullArray, replaced: Vec::new() });
    } else {
        ctx.out.null();
    }
    Ok(())
}

/// Moves an element and answers it. False: there is no source.
fn shift(ctx: &mut Ctx<'_>, args: Args<'_>, from: End, to: End) -> Result<bool, crate::CmdError> {
    let (source, destination) = (args.at(1), args.at(2));
    let limits = &ctx.settings.list;
    if ctx.db.write_list(source)?.is_none() {
        return Ok(false);
    }
    // Both are looked at before either changes.
    let exists = ctx.db.exists(destination);
    if exists && !matches!(ctx.db.get(destination), Some(ValueRef::List(_))) {
        return Err(WRONG_TYPE);
    }
    let mut is_empty = false;
    let value = if source == destination {
        let Some(list) = ctx.db.write_list(source)? else { return Ok(false) };
        list.rotate(from, to, limits)
    } else {
        let Some(list) = ctx.db.write_list(source)? else { return Ok(false) };
        let value = list.pop(from, limits, |elem| elem.to_vec());
        is_empty = list.is_empty();
        value
    };
    let Some(value) = value else { return Ok(false) };
    if source != destination {
        match ctx.db.write_list(destination)? {
            Some(list) => list.push(to, &value, limits),
            None => {
                let mut list = List::new();
                list.push(to, &value, limits);
                ctx.db.insert(destination, Value::List(list), None);
            }
        }
        ctx.db.signal(destination);
    }
    ctx.db.notify(NotifyClass::LIST, push_event(to), destination);
    write_elem(ctx.out, Elem::Bytes(&value));
    ctx.db.changed(NotifyClass::LIST, pop_event(from), source);
    if is_empty {
        remove_empty(ctx, source);
    }
    Ok(true)
}
