//! Commands on strings.
//!
//! Reading is here; `set` stores whole values, `change` alters them in place, `lcs` compares two.
//!
//! A string's encoding (OBJECT ENCODING) follows Redis: what is stored whole is `int` when canonical, else `embstr` up to
//! 44 bytes, else `raw`; what was changed in place is `raw`; INCR leaves `int`, INCRBYFLOAT never does.

mod change;
mod lcs;
mod set;
#[cfg(test)]
mod tests;

use crate::ctx::Ctx;
use crate::dispatch::{Cost, Handler};
use crate::error::{CmdError, CmdResult, WRONG_TYPE};
use crate::options::int;
use crate::table::CommandId;
use keyspace::{NotifyClass, StrRef, ValueRef};
use resp::{Args, Reply};

/// The result would be longer than `proto-max-bulk-len`.
pub(crate) const TOO_LONG: CmdError = CmdError::new("ERR string exceeds maximum allowed size (proto-max-bulk-len)");

/// The function of a string command.
pub(crate) fn handler(id: CommandId) -> Option<Handler> {
    Some(match id {
        CommandId::Append => change::append,
        CommandId::Decr => change::decr,
        CommandId::Decrby => change::decrby,
        CommandId::Get => get,
        CommandId::Getdel => getdel,
        CommandId::Getex => set::getex,
        CommandId::Getrange | CommandId::Substr => getrange,
        CommandId::Getset => set::getset,
        CommandId::Incr => change::incr,
        CommandId::Incrby => change::incrby,
        CommandId::Incrbyfloat => change::incrbyfloat,
        CommandId::Lcs => lcs::lcs,
        CommandId::Mget => mget,
        CommandId::Mset => set::mset,
        CommandId::Msetnx => set::msetnx,
        CommandId::Psetex => set::psetex,
        CommandId::Set => set::set,
        CommandId::Setex => set::setex,
        CommandId::Setnx => set::setnx,
        CommandId::Delifeq => set::delifeq,
        CommandId::Setrange => change::setrange,
        CommandId::Strlen => strlen,
        _ => return None,
    })
}

/// What a string command costs, where it may be much.
pub(crate) fn cost(id: CommandId) -> Option<Cost> {
    match id {
        CommandId::Lcs => Some(lcs::cost),
        _ => None,
    }
}

#[inline]
fn write_string(out: &mut Reply, string: StrRef<'_>) {
    match string {
        StrRef::Bytes(bytes) => out.bulk(bytes),
        StrRef::Int(number) => out.bulk_int(number),
    }
}

/// Replies the string at a key, or null.
///
/// # Errors
/// Another type.
#[inline]
fn reply_string(ctx: &mut Ctx<'_>, key: &[u8]) -> CmdResult {
    match ctx.db.read(key) {
        Some(ValueRef::Str(string)) => write_string(ctx.out, string),
        Some(_) => return Err(WRONG_TYPE),
        None => ctx.out.null(),
    }
    Ok(())
}

/// GET key
#[inline]
fn get(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    reply_string(ctx, args.at(1))
}

/// MGET key …: what is no string is null.
fn mget(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    ctx.out.array(args.len() - 1);
    for key in args.slice(1) {
        match ctx.db.read(key) {
            Some(ValueRef::Str(string)) => write_string(ctx.out, string),
            _ => ctx.out.null(),
        }
    }
    Ok(())
}

/// STRLEN key
fn strlen(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let len = ctx.db.read_str(args.at(1))?.map_or(0, StrRef::len);
    ctx.out.count(len);
    Ok(())
}

/// GETRANGE key start end, and its old name SUBSTR
fn getrange(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let start = int(args.at(2))?;
    let end = int(args.at(3))?;
    let mut digits = itoa::Buffer::new();
    let bytes = match ctx.db.read_str(args.at(1))? {
        Some(string) => string.as_bytes(&mut digits),
        None => &[],
    };
    ctx.out.bulk(cut(bytes, start, end));
    Ok(())
}

/// The bytes from `start` to `end`, both included and both counted from the end when negative.
///
/// Redis: an end before the first byte means the first byte.
fn cut(bytes: &[u8], start: i64, end: i64) -> &[u8] {
    if start < 0 && end < 0 && start > end {
        return &[];
    }
    let len = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
    let from_start = |index: i64| if index < 0 { index.saturating_add(len).max(0) } else { index };
    let (start, end) = (from_start(start), from_start(end).min(len - 1));
    match (usize::try_from(start), usize::try_from(end)) {
        (Ok(start), Ok(end)) => bytes.get(start..=end).unwrap_or(&[]),
        _ => &[],
    }
}

/// GETDEL key
fn getdel(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let key = args.at(1);
    reply_string(ctx, key)?;
    if ctx.db.remove(key) {
        ctx.db.changed(NotifyClass::GENERIC, "del", key);
        ctx.db.effect(&[b"DEL", key]);
    }
    Ok(())
}
