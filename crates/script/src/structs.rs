//! `struct`: packs numbers and strings into bytes and back by a format string.
//!
//! Formats: `>` `<` endianness, `!n` alignment, `b B h H l L T` integers of 1, 2, 8, 8 bytes, `in In` integers of n ≤ 32
//! bytes, `f d` floats, `x` a zero byte, `cn` a string of n bytes, `s` a string with a zero at its end.

use crate::native::{Call, NO_MEMORY, Native, number_of};
use mlua::{MultiValue, Value};

pub(crate) const FUNCTIONS: &[(&str, Native)] = &[("pack", pack), ("unpack", unpack), ("size", size)];

/// Greatest size of an integer.
const INTEGER_BYTES_MAX: usize = 32;
/// Natural alignment that `!` alone asks for.
const ALIGNMENT: usize = 8;

/// Where a format string is being read.
struct Format<'a> {
    text: &'a [u8],
    at: usize,
    big_endian: bool,
    align: usize,
}

impl<'a> Format<'a> {
    fn new(text: &'a [u8]) -> Format<'a> {
        // Redis reads the format as a C string.
        let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
        Format { text: &text[..end], at: 0, big_endian: cfg!(target_endian = "big"), align: 1 }
    }

    fn next(&mut self) -> Option<u8> {
        let option = *self.text.get(self.at)?;
        self.at += 1;
        Some(option)
    }

    fn number(&mut self, call: &Call<'_>, default: usize) -> mlua::Result<usize> {
        let mut number: Option<i32> = None;
        while let Some(digit) = self.text.get(self.at).filter(|byte| byte.is_ascii_digit()) {
            let grown = number
                .unwrap_or(0)
                .checked_mul(10)
                .and_then(|number| number.checked_add(i32::from(*digit - b'0')))
                .ok_or_else(|| call.error("integral size overflow"))?;
            number = Some(grown);
            self.at += 1;
        }
        Ok(number.map_or(default, |number| number.unsigned_abs() as usize))
    }

    /// Bytes that an option stands for; 0 where that does not matter.
    fn option_size(&mut self, call: &Call<'_>, option: u8) -> mlua::Result<usize> {
        Ok(match option {
            b'B' | b'b' | b'x' => 1,
            b'H' | b'h' => 2,
            b'L' | b'l' | b'T' | b'd' => 8,
            b'f' => 4,
            b'c' => self.number(call, 1)?,
            b'i' | b'I' => {
                let bytes = self.number(call, 4)?;
                if bytes > INTEGER_BYTES_MAX {
                    let text = format!("integral size {bytes} is larger than limit of {INTEGER_BYTES_MAX}");
                    return Err(call.error(text));
                }
                bytes
            }
            _ => 0,
        })
    }

    fn padding(&self, position: usize, option: u8, size: usize) -> usize {
        if size == 0 || option == b'c' {
            return 0;
        }
        let size = size.min(self.align);
        // Sizes need not be powers of two here; the formula is Redis'.
        (size.wrapping_sub(position & (size - 1))) & (size - 1)
    }

    fn control(&mut self, call: &Call<'_>, option: u8) -> mlua::Result<()> {
        match option {
            b' ' => {}
            b'>' => self.big_endian = true,
            b'<' => self.big_endian = false,
            b'!' => {
                let align = self.number(call, ALIGNMENT)?;
                if !align.is_power_of_two() {
                    return Err(call.error(format!("alignment {align} is not a power of 2")));
                }
                self.align = align;
            }
            option => {
                let option = String::from_utf8_lossy(&[option]).into_owned();
                return Err(call.arg_error(0, &format!("invalid format option '{option}'")));
            }
        }
        Ok(())
    }

    fn put(&self, out: &mut Vec<u8>, little: &[u8]) {
        if self.big_endian {
            out.extend(little.iter().rev());
        } else {
            out.extend_from_slice(little);
        }
    }
}

/// A number as the 64 bits that C's casts give.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn to_bits(number: f64) -> u64 {
    if number < 0.0 {
        crate::native::cast_i64(number).cast_unsigned()
    } else if number < 18_446_744_073_709_551_616.0 {
        number as u64
    } else if number.is_nan() {
        1 << 63
    } else {
        0
    }
}

/// Redis has a nil behind the arguments while it packs.
fn given(call: &Call<'_>, arg: usize, wanted: &str) -> mlua::Result<()> {
    if arg == call.len() { Err(call.arg_error(arg, &format!("{wanted} expected, got nil"))) } else { Ok(()) }
}

fn pack(call: &Call<'_>) -> mlua::Result<MultiValue> {
    let format = call.string(0)?;
    let format = format.as_bytes();
    let mut format = Format::new(&format);
    let mut out = Vec::new();
    let mut arg = 1;
    while let Some(option) = format.next() {
        let size = format.option_size(call, option)?;
        out.resize(out.len() + format.padding(out.len(), option, size), 0);
        match option {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                given(call, arg, "number")?;
                let mut little = [0; INTEGER_BYTES_MAX];
                little[..8].copy_from_slice(&to_bits(call.number(arg)?).to_le_bytes());
                format.put(&mut out, &little[..size]);
                arg += 1;
            }
            b'x' => out.push(0),
            b'f' => {
                given(call, arg, "number")?;
                #[allow(clippy::cast_possible_truncation)]
                let float = call.number(arg)? as f32;
                format.put(&mut out, &float.to_le_bytes());
                arg += 1;
            }
            b'd' => {
                given(call, arg, "number")?;
                format.put(&mut out, &call.number(arg)?.to_le_bytes());
                arg += 1;
            }
            b'c' | b's' => {
                given(call, arg, "string")?;
                let string = call.string(arg)?;
                let string = string.as_bytes();
                arg += 1;
                let size = if size == 0 { string.len() } else { size };
                let Some(part) = string.get(..size) else { return Err(call.arg_error(arg, "string too short")) };
                call.state.reserve(call.lua, out.len() + part.len())?;
                out.extend_from_slice(part);
                if option == b's' {
                    out.push(0);
                }
            }
            option => format.control(call, option)?,
        }
        call.state.step()?;
    }
    call.bytes(out)
}

fn integer_of(bytes: &[u8], big_endian: bool, signed: bool) -> f64 {
    let mut value = 0_u64;
    let mut add = |byte: &u8| value = value << 8 | u64::from(*byte);
    if big_endian {
        bytes.iter().for_each(&mut add);
    } else {
        bytes.iter().rev().for_each(&mut add);
    }
    #[allow(clippy::cast_precision_loss)]
    if !signed {
        value as f64
    } else {
        // Sizes beyond 8 bytes keep their low 8: no sign to extend.
        let unused = 64_usize.saturating_sub(bytes.len() * 8).min(63);
        (if bytes.is_empty() { 0 } else { (value << unused).cast_signed() >> unused }) as f64
    }
}

fn unpack(call: &Call<'_>) -> mlua::Result<MultiValue> {
    let format = call.string(0)?;
    let format = format.as_bytes();
    let mut format = Format::new(&format);
    let input = call.string(1)?;
    let input = input.as_bytes();
    let position = call.integer_or(2, 1)?;
    // A negative offset is a huge one to Redis, past any string.
    if position == 0 {
        return Err(call.arg_error(2, "offset must be 1 or greater"));
    }
    let mut at = usize::try_from(position - 1).unwrap_or(usize::MAX);
    let too_short = || call.arg_error(1, "data string too short");
    let mut values: Vec<Value> = Vec::new();
    while let Some(option) = format.next() {
        let size = format.option_size(call, option)?;
        at = at.saturating_add(format.padding(at, option, size));
        let part = at.checked_add(size).and_then(|end| input.get(at..end)).ok_or_else(too_short)?;
        if values.len() >= 7_900 {
            return Err(call.error("stack overflow (too many results)"));
        }
        let mut used = size;
        let little = |width: usize| {
            let mut little = [0; 8];
            for (index, byte) in part.iter().take(width).enumerate() {
                little[if format.big_endian { width - 1 - index } else { index }] = *byte;
            }
            little
        };
        match option {
            b'b' | b'B' | b'h' | b'H' | b'l' | b'L' | b'T' | b'i' | b'I' => {
                values.push(Value::Number(integer_of(part, format.big_endian, option.is_ascii_lowercase())));
            }
            b'x' => {}
            b'f' => {
                let [a, b, c, d, ..] = little(4);
                values.push(Value::Number(f64::from(f32::from_le_bytes([a, b, c, d]))));
            }
            b'd' => values.push(Value::Number(f64::from_le_bytes(little(8)))),
            b'c' => {
                let mut part = part;
                if size == 0 {
                    let Some(len) = values.last().and_then(|value| number_of(call.lua, value)) else {
                        return Err(call.error("format 'c0' needs a previous size"));
                    };
                    values.pop();
                    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                    let len = if len < 0.0 { usize::MAX } else { len as usize };
                    part = at.checked_add(len).and_then(|end| input.get(at..end)).ok_or_else(too_short)?;
                    used = len;
                }
                call.state.reserve(call.lua, part.len())?;
                values.push(Value::String(call.lua.create_string(part)?));
            }
            b's' => {
                let rest = input.get(at..).unwrap_or_default();
                let Some(end) = rest.iter().position(|byte| *byte == 0) else {
                    return Err(call.error("unfinished string in data"));
                };
                call.state.reserve(call.lua, end)?;
                values.push(Value::String(call.lua.create_string(&rest[..end])?));
                used = end + 1;
            }
            option => format.control(call, option)?,
        }
        at += used;
        call.state.step()?;
    }
    values.push(Value::Integer(i64::try_from(at + 1).map_err(|_| call.error(NO_MEMORY))?));
    Ok(MultiValue::from_vec(values))
}

fn size(call: &Call<'_>) -> mlua::Result<MultiValue> {
    let format = call.string(0)?;
    let format = format.as_bytes();
    let mut format = Format::new(&format);
    let mut position = 0_usize;
    while let Some(option) = format.next() {
        let size = format.option_size(call, option)?;
        position += format.padding(position, option, size);
        if option == b's' {
            return Err(call.arg_error(0, "option 's' has no fixed size"));
        }
        if option == b'c' && size == 0 {
            return Err(call.arg_error(0, "option 'c0' has no fixed size"));
        }
        if !option.is_ascii_alphanumeric() {
            format.control(call, option)?;
        }
        position += size;
    }
    call.one(Value::Integer(i64::try_from(position).unwrap_or(i64::MAX)))
}
