//! Replies to values of Lua, and back.
//!
//! | reply of a command    | value                                        |
//! |-----------------------|----------------------------------------------|
//! | `:n`                  | number                                       |
//! | `$`                   | string                                       |
//! | `+text`               | `{ok = text}`                                |
//! | `-text`               | `{err = text, ignore_error_stats_update = true}` |
//! | `*`                   | table                                        |
//! | `$-1`, `*-1`          | false                                        |
//! | `_`                   | nil                                          |
//! | `#`                   | boolean                                      |
//! | `,`                   | `{double = n}`                               |
//! | `(`                   | `{big_number = text}`                        |
//! | `=`                   | `{verbatim_string = {format, string}}`       |
//! | `%`                   | `{map = table}`                              |
//! | `~`                   | `{set = table of true}`                      |

use crate::native::{State, cast_i64, error_table, number_of, with_code};
use bstr::BStr;
use mlua::{Lua, Table, Value};
use resp::Reply;

/// Levels of tables beyond which Lua's stack is full.
const DEPTH_MAX: usize = 7_900;
/// Levels of a command's reply.
const REPLY_DEPTH_MAX: usize = 128;

/// One line of a reply and what lies behind it.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn line(&mut self) -> &'a [u8] {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let end = rest.windows(2).position(|pair| pair == b"\r\n").unwrap_or(rest.len());
        self.at += end + 2;
        &rest[..end]
    }

    fn payload(&mut self, len: usize) -> &'a [u8] {
        let bytes = self.bytes.get(self.at..self.at.saturating_add(len)).unwrap_or_default();
        self.at += len + 2;
        bytes
    }
}

/// The value of a command's reply. Errors are values here too.
pub(crate) fn to_lua(lua: &Lua, reply: &[u8]) -> mlua::Result<Value> {
    read(lua, &mut Reader { bytes: reply, at: 0 }, 0)
}

fn read(lua: &Lua, reader: &mut Reader<'_>, depth: usize) -> mlua::Result<Value> {
    let line = reader.line();
    let (kind, rest) = match line {
        [kind, rest @ ..] => (*kind, rest),
        [] => return Ok(Value::Nil),
    };
    let len = || resp::num::parse_i64(rest).and_then(|len| usize::try_from(len).ok());
    if depth > REPLY_DEPTH_MAX {
        return Ok(Value::Nil);
    }
    Ok(match kind {
        b':' => Value::Integer(resp::num::parse_i64(rest).unwrap_or(0)),
        b'$' => match len() {
            Some(len) => Value::String(lua.create_string(reader.payload(len))?),
            None => Value::Boolean(false),
        },
        b'+' => field(lua, "ok", Value::String(lua.create_string(rest)?))?,
        b'-' => Value::Table(error_table(lua, &with_code(line), true)?),
        b'*' | b'>' => match len() {
            Some(len) => Value::Table(list(lua, reader, len, depth)?),
            None => Value::Boolean(false),
        },
        b'_' => Value::Nil,
        b'#' => Value::Boolean(rest == b"t"),
        b',' => field(lua, "double", Value::Number(resp::num::parse_f64(rest).unwrap_or(f64::NAN)))?,
        b'(' => field(lua, "big_number", Value::String(lua.create_string(rest)?))?,
        b'=' => {
            let payload = reader.payload(len().unwrap_or(0));
            let (format, text) = payload.split_at_checked(4).unwrap_or((b"txt:", payload));
            let table = lua.create_table()?;
            table.raw_set("format", BStr::new(&format[..3]))?;
            table.raw_set("string", BStr::new(text))?;
            field(lua, "verbatim_string", Value::Table(table))?
        }
        b'%' => {
            let table = lua.create_table()?;
            for _ in 0..len().unwrap_or(0) {
                let key = read(lua, reader, depth + 1)?;
                let value = read(lua, reader, depth + 1)?;
                set(&table, key, value)?;
            }
            field(lua, "map", Value::Table(table))?
        }
        b'~' => {
            let table = lua.create_table()?;
            for _ in 0..len().unwrap_or(0) {
                let member = read(lua, reader, depth + 1)?;
                set(&table, member, Value::Boolean(true))?;
            }
            field(lua, "set", Value::Table(table))?
        }
        b'|' => {
            for _ in 0..len().unwrap_or(0).saturating_mul(2) {
                read(lua, reader, depth + 1)?;
            }
            read(lua, reader, depth)?
        }
        _ => Value::Nil,
    })
}

fn field(lua: &Lua, name: &str, value: Value) -> mlua::Result<Value> {
    let table = lua.create_table_with_capacity(0, 1)?;
    table.raw_set(name, value)?;
    Ok(Value::Table(table))
}

fn set(table: &Table, key: Value, value: Value) -> mlua::Result<()> {
    match key {
        Value::Nil => Ok(()),
        Value::Number(number) if number.is_nan() => Ok(()),
        key => table.raw_set(key, value),
    }
}

fn list(lua: &Lua, reader: &mut Reader<'_>, len: usize, depth: usize) -> mlua::Result<Table> {
    // What is declared is there: the reply was made by us. Yet no allocation goes by a count alone.
    let table = lua.create_table_with_capacity(len.min(reader.bytes.len() / 4), 0)?;
    for index in 1..=len {
        if reader.bytes.get(reader.at) == Some(&b'$') {
            let line = reader.line();
            match resp::num::parse_i64(&line[1..]).and_then(|len| usize::try_from(len).ok()) {
                Some(len) => table.raw_set(index, BStr::new(reader.payload(len)))?,
                None => table.raw_set(index, false)?,
            }
            continue;
        }
        let value = read(lua, reader, depth + 1)?;
        if !value.is_nil() {
            table.raw_set(index, value)?;
        }
    }
    Ok(table)
}

/// Errors that a script's result may hold are counted by the caller.
pub(crate) struct Returned {
    /// Error replies within that nobody has counted yet: their texts.
    pub(crate) errors: Vec<Vec<u8>>,
}

/// Writes the result of a script as a reply. `script_resp3`: the script has asked for RESP3, so its booleans are such.
pub(crate) fn to_reply(
    lua: &Lua,
    state: &State,
    value: &Value,
    script_resp3: bool,
    out: &mut Reply,
) -> mlua::Result<Returned> {
    let mut writer = Writer { lua, state, script_resp3, out, returned: Returned { errors: Vec::new() } };
    writer.value(value, 0)?;
    Ok(writer.returned)
}

struct Writer<'a> {
    lua: &'a Lua,
    state: &'a State,
    script_resp3: bool,
    out: &'a mut Reply,
    returned: Returned,
}

impl Writer<'_> {
    fn value(&mut self, value: &Value, depth: usize) -> mlua::Result<()> {
        if depth > DEPTH_MAX {
            self.out.err("reached lua stack limit");
            return Ok(());
        }
        match value {
            Value::String(string) => self.out.bulk(&*string.as_bytes()),
            Value::Integer(integer) => self.out.int(*integer),
            Value::Number(number) => self.out.int(cast_i64(*number)),
            Value::Boolean(yes) if self.script_resp3 => self.out.bool(*yes),
            Value::Boolean(true) => self.out.int(1),
            Value::Boolean(false) => self.out.null(),
            Value::Table(table) => {
                self.state.step()?;
                if !self.marked(table, depth)? {
                    self.array(table, depth)?;
                }
            }
            _ => self.out.null(),
        }
        Ok(())
    }

    /// A table whose fields say what reply it stands for. Metamethods are not asked.
    fn marked(&mut self, table: &Table, depth: usize) -> mlua::Result<bool> {
        if let Value::String(text) = table.raw_get::<Value>("err")? {
            let counted = matches!(table.raw_get::<Value>("ignore_error_stats_update")?, Value::Boolean(true));
            let text = c_string(&text.as_bytes()).to_vec();
            self.out.error(&text);
            if !counted {
                self.returned.errors.push(text);
            }
        } else if let Value::String(text) = table.raw_get::<Value>("ok")? {
            let text: Vec<u8> = c_string(&text.as_bytes()).iter().map(one_line).collect();
            self.out.simple(text);
        } else if let number @ (Value::Integer(_) | Value::Number(_)) = table.raw_get::<Value>("double")? {
            self.out.double(number_of(self.lua, &number).unwrap_or(0.0));
        } else if let Value::String(text) = table.raw_get::<Value>("big_number")? {
            self.out.big_number(text.as_bytes().iter().map(one_line).collect::<Vec<u8>>());
        } else if let Some((text, format)) = verbatim(table)? {
            self.out.verbatim(text, &format);
        } else if let Value::Table(map) = table.raw_get::<Value>("map")? {
            let header = self.out.defer();
            let mut len = 0;
            map.for_each(|key: Value, value: Value| {
                len += 1;
                self.value(&key, depth + 2)?;
                self.value(&value, depth + 2)
            })?;
            self.out.finish_map(header, len);
        } else if let Value::Table(set) = table.raw_get::<Value>("set")? {
            let header = self.out.defer();
            let mut len = 0;
            set.for_each(|member: Value, _: Value| {
                len += 1;
                self.value(&member, depth + 2)
            })?;
            self.out.finish_set(header, len);
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn array(&mut self, table: &Table, depth: usize) -> mlua::Result<()> {
        let header = self.out.defer();
        let mut len = 0;
        loop {
            let value: Value = table.raw_get(len + 1)?;
            if value.is_nil() {
                break;
            }
            self.value(&value, depth + 1)?;
            len += 1;
        }
        self.out.finish_array(header, len);
        Ok(())
    }
}

fn verbatim(table: &Table) -> mlua::Result<Option<(Vec<u8>, String)>> {
    let Value::Table(parts) = table.raw_get::<Value>("verbatim_string")? else { return Ok(None) };
    match (parts.raw_get::<Value>("string")?, parts.raw_get::<Value>("format")?) {
        (Value::String(text), Value::String(format)) => {
            Ok(Some((text.as_bytes().to_vec(), String::from_utf8_lossy(&format.as_bytes()).into_owned())))
        }
        _ => Ok(None),
    }
}

/// Redis reads these texts as C strings.
fn c_string(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    &bytes[..end]
}

fn one_line(byte: &u8) -> u8 {
    if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte }
}
