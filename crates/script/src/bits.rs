//! `bit`: 32-bit operations on numbers (LuaJIT's BitOp, as Redis has it).

use crate::native::{Call, Native, number_of};
use mlua::{MultiValue, Value};

pub(crate) const FUNCTIONS: &[(&str, Native)] = &[
    ("tobit", |call| result(call, bits(call, 0)?)),
    ("bnot", |call| result(call, !bits(call, 0)?)),
    ("band", |call| fold(call, |left, right| left & right)),
    ("bor", |call| fold(call, |left, right| left | right)),
    ("bxor", |call| fold(call, |left, right| left ^ right)),
    ("lshift", |call| shift(call, |value, count| value << count)),
    ("rshift", |call| shift(call, |value, count| value >> count)),
    ("arshift", |call| shift(call, |value, count| (value.cast_signed() >> count).cast_unsigned())),
    ("rol", |call| shift(call, u32::rotate_left)),
    ("ror", |call| shift(call, u32::rotate_right)),
    ("bswap", |call| result(call, bits(call, 0)?.swap_bytes())),
    ("tohex", to_hex),
];

/// 2^52 + 2^51: adding it leaves the low 32 bits of the rounded number at the end of the mantissa.
const TO_BITS: f64 = 6_755_399_441_055_744.0;

fn bits(call: &Call<'_>, index: usize) -> mlua::Result<u32> {
    let number = number_of(call.lua, call.arg(index));
    #[allow(clippy::cast_possible_truncation)]
    let bits = (number.unwrap_or(0.0) + TO_BITS).to_bits() as u32;
    if bits == 0 && number.is_none() { Err(call.type_error(index, "number")) } else { Ok(bits) }
}

fn result(call: &Call<'_>, bits: u32) -> mlua::Result<MultiValue> {
    call.one(Value::Integer(i64::from(bits.cast_signed())))
}

fn fold(call: &Call<'_>, with: fn(u32, u32) -> u32) -> mlua::Result<MultiValue> {
    let mut all = bits(call, 0)?;
    // From the last to the second, so that the last bad argument is the one reported.
    for index in (1..call.len()).rev() {
        all = with(all, bits(call, index)?);
    }
    result(call, all)
}

fn shift(call: &Call<'_>, with: fn(u32, u32) -> u32) -> mlua::Result<MultiValue> {
    let value = bits(call, 0)?;
    let count = bits(call, 1)? & 31;
    result(call, with(value, count))
}

fn to_hex(call: &Call<'_>) -> mlua::Result<MultiValue> {
    let value = bits(call, 0)?;
    let digits = if call.len() < 2 { 8 } else { bits(call, 1)?.cast_signed() };
    let count = digits.unsigned_abs().min(8) as usize;
    let text = if digits < 0 { format!("{value:08X}") } else { format!("{value:08x}") };
    call.bytes(&text[8 - count..])
}
