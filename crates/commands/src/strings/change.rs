//! Changing a string in place: APPEND, SETRANGE and the counters.

use super::TOO_LONG;
use crate::ctx::Ctx;
use crate::error::{CmdError, CmdResult, NOT_A_FLOAT, NOT_AN_INTEGER, WRONG_TYPE};
use crate::options::int;
use keyspace::{DbView, Entry, NotifyClass, SetTtl, StrRef, Value};
use resp::Args;
use resp::num::LongDouble;

const WOULD_OVERFLOW: CmdError = CmdError::new("ERR increment or decrement would overflow");

/// The entry of a key that must hold a string, to change; notes the access.
///
/// # Errors
/// Another type.
#[inline]
fn string_entry<'d>(db: &'d mut DbView<'_>, key: &[u8]) -> Result<Option<&'d mut Entry>, CmdError> {
    let clock = db.access_clock();
    let Some(entry) = db.entry_mut(key) else { return Ok(None) };
    if entry.as_str().is_none() {
        return Err(WRONG_TYPE);
    }
    clock.touch(entry);
    Ok(Some(entry))
}

/// INCR key
pub(super) fn incr(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    add(ctx, args.at(1), 1)
}

/// DECR key
pub(super) fn decr(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    add(ctx, args.at(1), -1)
}

/// INCRBY key increment
pub(super) fn incrby(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    add(ctx, args.at(1), int(args.at(2))?)
}

/// DECRBY key decrement
pub(super) fn decrby(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let decrement = int(args.at(2))?;
    let increment = decrement.checked_neg().ok_or(CmdError::new("ERR decrement would overflow"))?;
    add(ctx, args.at(1), increment)
}

#[inline]
fn add(ctx: &mut Ctx<'_>, key: &[u8], increment: i64) -> CmdResult {
    let sum = match string_entry(&mut ctx.db, key)? {
        None => {
            ctx.db.insert(key, Value::Int(increment), None);
            increment
        }
        Some(entry) => match entry.int_mut() {
            Some(number) => {
                *number = number.checked_add(increment).ok_or(WOULD_OVERFLOW)?;
                *number
            }
            None => {
                let number = entry.as_str().and_then(StrRef::as_int).ok_or(NOT_AN_INTEGER)?;
                let sum = number.checked_add(increment).ok_or(WOULD_OVERFLOW)?;
                ctx.db.set(key, Value::Int(sum), SetTtl::Keep);
                sum
            }
        },
    };
    ctx.db.changed(NotifyClass::STRING, "incrby", key);
    ctx.out.int(sum);
    Ok(())
}

/// INCRBYFLOAT key increment
pub(super) fn incrbyfloat(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let key = args.at(1);
    let number = match string_entry(&mut ctx.db, key)?.and_then(|entry| entry.as_str()) {
        None => LongDouble::from_i64(0),
        Some(StrRef::Int(number)) => LongDouble::from_i64(number),
        Some(StrRef::Bytes(text)) => LongDouble::parse(text).ok_or(NOT_A_FLOAT)?,
    };
    let increment = LongDouble::parse(args.at(2)).ok_or(NOT_A_FLOAT)?;
    let sum = number.add(increment);
    if sum.is_nan() || sum.is_inf() {
        return Err(CmdError::new("ERR increment would produce NaN or Infinity"));
    }
    let text = sum.to_human();
    ctx.out.bulk(&text);
    // Redis does not look whether the text is an integer: its encoding is never `int`.
    ctx.db.effect(&[b"SET", key, &text, b"KEEPTTL"]);
    ctx.db.set(key, Value::Str(text), SetTtl::Keep);
    ctx.db.changed(NotifyClass::STRING, "incrbyfloat", key);
    Ok(())
}

/// Refuses a string of `len` bytes more than `more` when that is too long.
fn check_length(ctx: &Ctx<'_>, len: usize, more: usize) -> Result<usize, CmdError> {
    len.checked_add(more).filter(|total| *total <= ctx.settings.max_bulk).ok_or(TOO_LONG)
}

/// APPEND key value
pub(super) fn append(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let (key, value) = (args.at(1), args.at(2));
    let len = string_entry(&mut ctx.db, key)?.and_then(|entry| entry.as_str()).map(StrRef::len);
    let total = match len {
        None => {
            ctx.db.set_str(key, value, SetTtl::Clear);
            value.len()
        }
        Some(len) => {
            let total = check_length(ctx, len, value.len())?;
            ctx.db.update(key, |entry| {
                if let Some(buffer) = entry.make_buffer() {
                    buffer.extend_from_slice(value);
                }
            });
            total
        }
    };
    ctx.db.changed(NotifyClass::STRING, "append", key);
    ctx.out.count(total);
    Ok(())
}

/// SETRANGE key offset value: the gap before it becomes zero bytes.
pub(super) fn setrange(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let (key, value) = (args.at(1), args.at(3));
    let offset = int(args.at(2))?;
    let offset = usize::try_from(offset).map_err(|_| CmdError::new("ERR offset is out of range"))?;
    let len = string_entry(&mut ctx.db, key)?.and_then(|entry| entry.as_str()).map(StrRef::len);
    if value.is_empty() {
        ctx.out.count(len.unwrap_or(0));
        return Ok(());
    }
    let end = check_length(ctx, offset, value.len())?;
    let put = |buffer: &mut Vec<u8>| {
        if buffer.len() < end {
            buffer.resize(end, 0);
        }
        if let Some(place) = buffer.get_mut(offset..end) {
            place.copy_from_slice(value);
        }
    };
    if len.is_some() {
        ctx.db.update(key, |entry| entry.make_buffer().map(put));
    } else {
        let mut bytes = Vec::new();
        put(&mut bytes);
        ctx.db.insert(key, Value::RawStr(bytes), None);
    }
    ctx.db.changed(NotifyClass::STRING, "setrange", key);
    ctx.out.count(end.max(len.unwrap_or(0)));
    Ok(())
}
