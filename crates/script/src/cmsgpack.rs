//! `cmsgpack`: MessagePack. Strings are written as raw, tables with the keys 1 to N as arrays, others as maps.

use crate::native::{Call, Native};
use mlua::{MultiValue, Table, Value};

pub(crate) const FUNCTIONS: &[(&str, Native)] =
    &[("pack", pack), ("unpack", unpack), ("unpack_one", unpack_one), ("unpack_limit", unpack_limit)];

/// Fields of the module beside its functions.
pub(crate) const TEXTS: &[(&str, &str)] = &[
    ("_NAME", "cmsgpack"),
    ("_VERSION", "lua-cmsgpack 0.4.0"),
    ("_COPYRIGHT", "Copyright (C) 2012, Salvatore Sanfilippo"),
    ("_DESCRIPTION", "MessagePack C implementation for Lua"),
];

/// Tables nested deeper are written as nil.
const NESTING_MAX: usize = 16;
/// Arrays and maps nested deeper are not read.
const DEPTH_MAX: usize = 1_000;
/// Values of one call; Lua's stack holds no more.
const VALUES_MAX: usize = 7_900;

fn pack(call: &Call<'_>) -> mlua::Result<MultiValue> {
    if call.len() == 0 {
        return Err(argument_zero(call, "MessagePack pack needs input."));
    }
    let mut out = Vec::new();
    for value in &call.args {
        encode(call, &mut out, value, 0)?;
    }
    call.bytes(out)
}

/// Redis blames argument 0, which is none.
fn argument_zero(call: &Call<'_>, why: &str) -> mlua::Error {
    let name = call.lua.inspect_stack(0, |debug| debug.names().name.map(|name| name.into_owned())).flatten();
    call.error(format!("bad argument #0 to '{}' ({why})", name.as_deref().unwrap_or("?")))
}

fn encode(call: &Call<'_>, out: &mut Vec<u8>, value: &Value, level: usize) -> mlua::Result<()> {
    call.state.step()?;
    match value {
        Value::String(string) => {
            let bytes = string.as_bytes();
            if out.len() + bytes.len() > out.capacity() {
                call.state.reserve(call.lua, 2 * out.len() + bytes.len())?;
            }
            header(out, bytes.len(), [(0xa0, 31), (0xd9, 0xff), (0xda, 0xffff), (0xdb, u32::MAX as usize)]);
            out.extend_from_slice(&bytes);
        }
        Value::Boolean(yes) => out.push(if *yes { 0xc3 } else { 0xc2 }),
        Value::Integer(integer) => encode_int(out, *integer),
        Value::Number(number) => encode_number(out, *number),
        Value::Table(table) if level < NESTING_MAX => encode_table(call, out, table, level)?,
        _ => out.push(0xc0),
    }
    Ok(())
}

/// Writes a length in the shortest form: in the first byte, or in 1, 2 or 4 bytes behind it.
fn header(out: &mut Vec<u8>, len: usize, forms: [(u8, usize); 4]) {
    let [fixed, one, two, four] = forms;
    #[allow(clippy::cast_possible_truncation)]
    if len <= fixed.1 {
        out.push(fixed.0 | len as u8);
    } else if len <= one.1 {
        out.extend_from_slice(&[one.0, len as u8]);
    } else if len <= two.1 {
        out.push(two.0);
        out.extend_from_slice(&(len as u16).to_be_bytes());
    } else {
        out.push(four.0);
        out.extend_from_slice(&(len as u32).to_be_bytes());
    }
}

/// Arrays and maps have no form with one byte of length.
fn array_header(out: &mut Vec<u8>, len: usize) {
    header(out, len, [(0x90, 15), (0, 0), (0xdc, 0xffff), (0xdd, u32::MAX as usize)]);
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn encode_int(out: &mut Vec<u8>, n: i64) {
    match n {
        -32..=127 => out.push(n as u8),
        128..=0xff => out.extend_from_slice(&[0xcc, n as u8]),
        -128..=-33 => out.extend_from_slice(&[0xd0, n as u8]),
        0x100..=0xffff => {
            out.push(0xcd);
            out.extend_from_slice(&(n as u16).to_be_bytes());
        }
        -0x8000..=-129 => {
            out.push(0xd1);
            out.extend_from_slice(&(n as i16).to_be_bytes());
        }
        0x1_0000..=0xffff_ffff => {
            out.push(0xce);
            out.extend_from_slice(&(n as u32).to_be_bytes());
        }
        -0x8000_0000..=-0x8001 => {
            out.push(0xd2);
            out.extend_from_slice(&(n as i32).to_be_bytes());
        }
        0x1_0000_0000.. => {
            out.push(0xcf);
            out.extend_from_slice(&n.to_be_bytes());
        }
        _ => {
            out.push(0xd3);
            out.extend_from_slice(&n.to_be_bytes());
        }
    }
}

fn encode_number(out: &mut Vec<u8>, number: f64) {
    #[allow(clippy::cast_possible_truncation)]
    let single = number as f32;
    #[allow(clippy::float_cmp)]
    if f64::from(single) == number {
        out.push(0xca);
        out.extend_from_slice(&single.to_be_bytes());
    } else {
        out.push(0xcb);
        out.extend_from_slice(&number.to_be_bytes());
    }
}

fn encode_table(call: &Call<'_>, out: &mut Vec<u8>, table: &Table, level: usize) -> mlua::Result<()> {
    let (mut count, mut max, mut is_array) = (0_usize, 0_i64, true);
    call.each(table, |key, _| {
        count += 1;
        match key {
            Value::Integer(index) if index > 0 && i32::try_from(index).is_ok() => max = max.max(index),
            _ => is_array = false,
        }
        call.state.step()
    })?;
    if is_array && usize::try_from(max) == Ok(count) {
        array_header(out, count);
        for index in 1..=max {
            encode(call, out, &table.raw_get::<Value>(index)?, level + 1)?;
        }
        return Ok(());
    }
    header(out, count, [(0x80, 15), (0, 0), (0xde, 0xffff), (0xdf, u32::MAX as usize)]);
    call.each(table, |key, value| {
        encode(call, out, &key, level + 1)?;
        encode(call, out, &value, level + 1)
    })
}

/// Why input cannot be read.
enum Bad {
    Missing,
    Format,
    Raised(mlua::Error),
}

impl From<mlua::Error> for Bad {
    fn from(error: mlua::Error) -> Bad {
        Bad::Raised(error)
    }
}

struct Cursor<'a, 'c> {
    call: &'a Call<'c>,
    rest: &'a [u8],
}

impl<'a> Cursor<'a, '_> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], Bad> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(Bad::Missing)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Bad> {
        self.take(N)?.try_into().map_err(|_| Bad::Missing)
    }

    fn len(&mut self, bytes: usize) -> Result<usize, Bad> {
        Ok(self.take(bytes)?.iter().fold(0, |len, byte| len << 8 | usize::from(*byte)))
    }

    fn string(&mut self, len: usize) -> Result<Value, Bad> {
        let bytes = self.take(len)?;
        self.call.state.reserve(self.call.lua, len)?;
        Ok(Value::String(self.call.lua.create_string(bytes)?))
    }

    #[allow(clippy::cast_precision_loss)]
    fn value(&mut self, depth: usize) -> Result<Value, Bad> {
        self.call.state.step()?;
        let [first] = self.array()?;
        Ok(match first {
            0x00..=0x7f => Value::Integer(i64::from(first)),
            0x80..=0x8f => self.map(usize::from(first & 15), depth)?,
            0x90..=0x9f => self.list(usize::from(first & 15), depth)?,
            0xa0..=0xbf => self.string(usize::from(first & 31))?,
            0xc0 => Value::Nil,
            0xc2 => Value::Boolean(false),
            0xc3 => Value::Boolean(true),
            0xca => Value::Number(f64::from(f32::from_be_bytes(self.array()?))),
            0xcb => Value::Number(f64::from_be_bytes(self.array()?)),
            0xcc => Value::Integer(i64::from(u8::from_be_bytes(self.array()?))),
            0xcd => Value::Integer(i64::from(u16::from_be_bytes(self.array()?))),
            0xce => Value::Integer(i64::from(u32::from_be_bytes(self.array()?))),
            0xcf => Value::Number(u64::from_be_bytes(self.array()?) as f64),
            0xd0 => Value::Integer(i64::from(i8::from_be_bytes(self.array()?))),
            0xd1 => Value::Integer(i64::from(i16::from_be_bytes(self.array()?))),
            0xd2 => Value::Integer(i64::from(i32::from_be_bytes(self.array()?))),
            0xd3 => Value::Number(i64::from_be_bytes(self.array()?) as f64),
            0xd9..=0xdb => {
                let len = self.len(1 << (first - 0xd9))?;
                self.string(len)?
            }
            0xdc | 0xdd => {
                let len = self.len(2 << (first - 0xdc))?;
                self.list(len, depth)?
            }
            0xde | 0xdf => {
                let len = self.len(2 << (first - 0xde))?;
                self.map(len, depth)?
            }
            0xe0..=0xff => Value::Integer(i64::from(first.cast_signed())),
            _ => return Err(Bad::Format),
        })
    }

    fn list(&mut self, len: usize, depth: usize) -> Result<Value, Bad> {
        let table = self.table(depth)?;
        for index in 1..=len {
            let value = self.value(depth + 1)?;
            table.raw_set(index, value)?;
            self.reserve(index)?;
        }
        Ok(Value::Table(table))
    }

    fn map(&mut self, len: usize, depth: usize) -> Result<Value, Bad> {
        let table = self.table(depth)?;
        for index in 1..=len {
            let key = self.value(depth + 1)?;
            let value = self.value(depth + 1)?;
            match key {
                Value::Nil => return Err(self.call.error("table index is nil").into()),
                Value::Number(number) if number.is_nan() => return Err(self.call.error("table index is NaN").into()),
                key => table.raw_set(key, value)?,
            }
            self.reserve(index)?;
        }
        Ok(Value::Table(table))
    }

    fn table(&self, depth: usize) -> Result<Table, Bad> {
        if depth > DEPTH_MAX {
            let why = "stack overflow (too many return values at once; use unpack_one or unpack_limit instead.)";
            return Err(self.call.error(why).into());
        }
        self.call.state.reserve(self.call.lua, 64)?;
        Ok(self.call.lua.create_table()?)
    }

    /// A table grows by doubling: asks at each power of two.
    fn reserve(&self, elements: usize) -> Result<(), Bad> {
        if elements > 1024 && elements.is_power_of_two() {
            self.call.state.reserve(self.call.lua, elements * 32)?;
        }
        Ok(())
    }
}

fn unpack_from(call: &Call<'_>, limit: i64, offset: i64) -> mlua::Result<MultiValue> {
    let input = call.string(0)?;
    let input = input.as_bytes();
    let all = limit == 0 && offset == 0;
    if offset < 0 || limit < 0 {
        let text = format!("Invalid request to unpack with offset of {offset} and limit of {}.", input.len());
        return Err(call.error(text));
    }
    let rest = usize::try_from(offset).ok().and_then(|offset| input.get(offset..));
    let Some(rest) = rest else {
        return Err(call.error(format!("Start offset {offset} greater than input length {}.", input.len())));
    };
    let limit = if all { usize::MAX } else { usize::try_from(limit).unwrap_or(usize::MAX) };
    let mut cursor = Cursor { call, rest };
    let mut values = Vec::new();
    while !cursor.rest.is_empty() && values.len() < limit {
        if values.len() >= VALUES_MAX {
            let why = "stack overflow (too many return values at once; use unpack_one or unpack_limit instead.)";
            return Err(call.error(why));
        }
        match cursor.value(0) {
            Ok(value) => values.push(value),
            Err(Bad::Missing) => return Err(call.error("Missing bytes in input.")),
            Err(Bad::Format) => return Err(call.error("Bad data format in input.")),
            Err(Bad::Raised(error)) => return Err(error),
        }
    }
    if !all {
        let used = i64::try_from(input.len() - cursor.rest.len()).unwrap_or(-1);
        values.insert(0, Value::Integer(if cursor.rest.is_empty() { -1 } else { used }));
    }
    Ok(MultiValue::from_vec(values))
}

fn unpack(call: &Call<'_>) -> mlua::Result<MultiValue> {
    unpack_from(call, 0, 0)
}

fn unpack_one(call: &Call<'_>) -> mlua::Result<MultiValue> {
    unpack_from(call, 1, call.integer_or(1, 0)?)
}

fn unpack_limit(call: &Call<'_>) -> mlua::Result<MultiValue> {
    unpack_from(call, call.integer(1)?, call.integer_or(2, 0)?)
}
