//! Commands on strings as arrays of bits. Bit 0 is the highest bit of the first byte; a string goes on with zero bits
//! behind its end.

mod field;
mod ops;
#[cfg(test)]
mod tests;

use crate::ctx::Ctx;
use crate::dispatch::{Cost, Handler};
use crate::error::{CmdError, CmdResult, WRONG_TYPE};
use crate::table::CommandId;
use keyspace::{DbView, NotifyClass, StrRef, Value, ValueMut, ValueRef};
use resp::Args;

const BAD_OFFSET: CmdError = CmdError::new("ERR bit offset is not an integer or out of range");
const BAD_BIT: CmdError = CmdError::new("ERR bit is not an integer or out of range");

/// The function of a bit command.
pub(crate) fn handler(id: CommandId) -> Option<Handler> {
    Some(match id {
        CommandId::Bitcount => ops::bitcount,
        CommandId::Bitfield => field::bitfield,
        CommandId::BitfieldRo => field::bitfield_ro,
        CommandId::Bitop => ops::bitop,
        CommandId::Bitpos => ops::bitpos,
        CommandId::Getbit => getbit,
        CommandId::Setbit => setbit,
        _ => return None,
    })
}

/// What a bit command costs, where it may be much.
pub(crate) fn cost(id: CommandId) -> Option<Cost> {
    Some(match id {
        CommandId::Bitcount | CommandId::Bitpos => {
            |ctx, args| string_len(ctx, args.at(1)) / ops::COUNTED_BYTES_PER_ELEMENT
        }
        CommandId::Bitop => |ctx, args| {
            let bytes = args.slice(3).iter().map(|key| string_len(ctx, key)).fold(0, usize::saturating_add);
            bytes / ops::COMBINED_BYTES_PER_ELEMENT
        },
        _ => return None,
    })
}

fn string_len(ctx: &Ctx<'_>, key: &[u8]) -> usize {
    match ctx.db.get(key) {
        Some(ValueRef::Str(string)) => string.len(),
        _ => 0,
    }
}

/// A bit's index as SETBIT and GETBIT take it.
fn bit_index(argument: &[u8], max_bytes: usize) -> Result<usize, CmdError> {
    resp::num::parse_i64(argument)
        .and_then(|index| usize::try_from(index).ok())
        .filter(|index| index / 8 < max_bytes)
        .ok_or(BAD_OFFSET)
}

fn get_bit(bytes: &[u8], index: usize) -> bool {
    bytes.get(index / 8).is_some_and(|byte| byte & (0x80 >> (index % 8)) != 0)
}

/// Lends the string at a key as a buffer of at least `len` bytes, made or lengthened with zero bytes. Tells `work`
/// whether that changed anything.
///
/// # Errors
/// Another type.
fn with_buffer<R>(
    db: &mut DbView<'_>,
    key: &[u8],
    len: usize,
    work: impl FnOnce(&mut Vec<u8>, bool) -> R,
) -> Result<R, CmdError> {
    let exists = match db.write(key) {
        None => false,
        Some(ValueMut::Str) => true,
        Some(_) => return Err(WRONG_TYPE),
    };
    if !exists {
        let mut bytes = vec![0; len];
        let result = work(&mut bytes, true);
        db.insert(key, Value::RawStr(bytes), None);
        return Ok(result);
    }
    let result = db.update(key, |entry| {
        let buffer = entry.make_buffer()?;
        let grows = buffer.len() < len;
        if grows {
            buffer.resize(len, 0);
        }
        Some(work(buffer, grows))
    });
    result.flatten().ok_or(WRONG_TYPE)
}

/// SETBIT key offset value
fn setbit(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let key = args.at(1);
    let index = bit_index(args.at(2), ctx.settings.max_bulk)?;
    let on = match resp::num::parse_i64(args.at(3)) {
        Some(0) => false,
        Some(1) => true,
        _ => return Err(BAD_BIT),
    };
    let (was_on, changed) = with_buffer(&mut ctx.db, key, index / 8 + 1, |bytes, grown| {
        let was_on = get_bit(bytes, index);
        if let Some(byte) = bytes.get_mut(index / 8) {
            let mask = 0x80 >> (index % 8);
            *byte = if on { *byte | mask } else { *byte & !mask };
        }
        (was_on, grown || was_on != on)
    })?;
    if changed {
        ctx.db.changed(NotifyClass::STRING, "setbit", key);
    }
    ctx.out.int(i64::from(was_on));
    Ok(())
}

/// GETBIT key offset
fn getbit(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let index = bit_index(args.at(2), ctx.settings.max_bulk)?;
    let mut digits = itoa::Buffer::new();
    let bytes = ctx.db.read_str(args.at(1))?.unwrap_or(StrRef::Bytes(b"")).as_bytes(&mut digits);
    ctx.out.int(i64::from(get_bit(bytes, index)));
    Ok(())
}
