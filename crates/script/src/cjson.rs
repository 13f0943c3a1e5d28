//! `cjson`: JSON as lua-cjson 2.1 reads and writes it, with its texts.
//!
//! Numbers are written with `%.14g`; a table is an array if all its keys are whole numbers from 1 on; an empty one is an
//! object. NULs end the input.

use crate::native::{Call, Native};
use mlua::{MultiValue, Table, Value};

pub(crate) const FUNCTIONS: &[(&str, Native)] = &[
    ("encode", encode),
    ("decode", decode),
    ("encode_sparse_array", encode_sparse_array),
    ("encode_max_depth", |call| depth_option(call, |config| &mut config.encode_max_depth)),
    ("decode_max_depth", |call| depth_option(call, |config| &mut config.decode_max_depth)),
    ("encode_number_precision", |call| {
        too_many(call, 1)?;
        let mut config = call.state.cjson.borrow_mut();
        let precision = integer_option(call, 0, &mut config.precision, 1, 14)?;
        call.one(precision)
    }),
    ("encode_keep_buffer", |call| {
        too_many(call, 1)?;
        let mut config = call.state.cjson.borrow_mut();
        let mut keep = u8::from(config.keep_buffer);
        enum_option(call, 0, &mut keep, &["off", "on"])?;
        config.keep_buffer = keep == 1;
        call.one(Value::Boolean(config.keep_buffer))
    }),
    ("encode_invalid_numbers", |call| {
        too_many(call, 1)?;
        let mut config = call.state.cjson.borrow_mut();
        let value = enum_option(call, 0, &mut config.encode_invalid, &["off", "on", "null"])?;
        call.one(value)
    }),
    ("decode_invalid_numbers", |call| {
        too_many(call, 1)?;
        let mut config = call.state.cjson.borrow_mut();
        let value = enum_option(call, 0, &mut config.decode_invalid, &["off", "on"])?;
        call.one(value)
    }),
];

/// Nesting beyond which the interpreter's stack is full, whatever the setting.
const STACK_DEPTH_MAX: i64 = 2_600;

/// The module's settings, which outlive a script.
pub(crate) struct Config {
    sparse_convert: bool,
    sparse_ratio: i64,
    sparse_safe: i64,
    encode_max_depth: i64,
    decode_max_depth: i64,
    precision: i64,
    keep_buffer: bool,
    /// 0: an error, 1: written as they are, 2: null.
    encode_invalid: u8,
    decode_invalid: u8,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            sparse_convert: false,
            sparse_ratio: 2,
            sparse_safe: 10,
            encode_max_depth: 1_000,
            decode_max_depth: 1_000,
            precision: 14,
            keep_buffer: true,
            encode_invalid: 0,
            decode_invalid: 1,
        }
    }
}

// ---- settings ----------------------------------------------------------------------------------------------------

fn too_many(call: &Call<'_>, most: usize) -> mlua::Result<()> {
    if call.len() > most { Err(call.arg_error(most, "found too many arguments")) } else { Ok(()) }
}

fn integer_option(call: &Call<'_>, index: usize, setting: &mut i64, min: i64, max: i64) -> mlua::Result<Value> {
    if !call.arg(index).is_nil() {
        let value = call.integer(index)?;
        if !(min..=max).contains(&value) {
            return Err(call.arg_error(0, &format!("expected integer between {min} and {max}")));
        }
        *setting = value;
    }
    Ok(Value::Integer(*setting))
}

fn enum_option(call: &Call<'_>, index: usize, setting: &mut u8, options: &[&str]) -> mlua::Result<Value> {
    match call.arg(index) {
        Value::Nil => {}
        Value::Boolean(yes) => *setting = u8::from(*yes),
        _ => {
            let word = call.string(index)?;
            let word = word.as_bytes();
            let known = options.iter().position(|option| option.as_bytes() == &*word);
            let Some(known) = known.and_then(|known| u8::try_from(known).ok()) else {
                let word = String::from_utf8_lossy(&word).into_owned();
                return Err(call.arg_error(index, &format!("invalid option '{word}'")));
            };
            *setting = known;
        }
    }
    Ok(match *setting {
        0 => Value::Boolean(false),
        1 => Value::Boolean(true),
        other => Value::String(call.lua.create_string(options.get(usize::from(other)).copied().unwrap_or_default())?),
    })
}

fn depth_option(call: &Call<'_>, of: fn(&mut Config) -> &mut i64) -> mlua::Result<MultiValue> {
    too_many(call, 1)?;
    let mut config = call.state.cjson.borrow_mut();
    let value = integer_option(call, 0, of(&mut config), 1, i64::from(i32::MAX))?;
    call.one(value)
}

fn encode_sparse_array(call: &Call<'_>) -> mlua::Result<MultiValue> {
    too_many(call, 3)?;
    let mut config = call.state.cjson.borrow_mut();
    let mut convert = u8::from(config.sparse_convert);
    let first = enum_option(call, 0, &mut convert, &["off", "on"])?;
    config.sparse_convert = convert == 1;
    let second = integer_option(call, 1, &mut config.sparse_ratio, 0, i64::from(i32::MAX))?;
    let third = integer_option(call, 2, &mut config.sparse_safe, 0, i64::from(i32::MAX))?;
    Ok(MultiValue::from_vec(vec![first, second, third]))
}

// ---- encode ------------------------------------------------------------------------------------------------------

struct Encoder<'a, 'c> {
    call: &'a Call<'c>,
    config: &'a Config,
    out: Vec<u8>,
}

fn encode(call: &Call<'_>) -> mlua::Result<MultiValue> {
    if call.len() != 1 {
        return Err(call.arg_error(0, "expected 1 argument"));
    }
    let config = call.state.cjson.borrow();
    let mut encoder = Encoder { call, config: &config, out: Vec::new() };
    encoder.value(call.arg(0), 0)?;
    let out = encoder.out;
    call.state.reserve(call.lua, out.len())?;
    call.bytes(out)
}

impl Encoder<'_, '_> {
    fn refuse(&self, value: &Value, why: &str) -> mlua::Error {
        self.call.error(format!("Cannot serialise {}: {why}", crate::native::type_name(value)))
    }

    fn value(&mut self, value: &Value, depth: i64) -> mlua::Result<()> {
        self.call.state.step()?;
        match value {
            Value::String(string) => self.string(&string.as_bytes())?,
            Value::Integer(_) | Value::Number(_) => self.number(value)?,
            Value::Boolean(true) => self.out.extend_from_slice(b"true"),
            Value::Boolean(false) => self.out.extend_from_slice(b"false"),
            Value::Nil => self.out.extend_from_slice(b"null"),
            Value::LightUserData(data) if data.0.is_null() => self.out.extend_from_slice(b"null"),
            Value::Table(table) => {
                let depth = depth + 1;
                if depth > self.config.encode_max_depth.min(STACK_DEPTH_MAX) {
                    return Err(self.call.error(format!("Cannot serialise, excessive nesting ({depth})")));
                }
                match self.array_len(table)? {
                    Some(len) if len > 0 => self.array(table, len, depth)?,
                    _ => self.object(table, depth)?,
                }
            }
            other => return Err(self.refuse(other, "type not supported")),
        }
        Ok(())
    }

    /// The highest index if the table is an array.
    fn array_len(&self, table: &Table) -> mlua::Result<Option<i64>> {
        let (mut max, mut items, mut is_array) = (0_i64, 0_i64, true);
        self.call.each(table, |key, _| {
            match key {
                Value::Integer(index) if index >= 1 => {
                    max = max.max(index);
                    items += 1;
                }
                _ => is_array = false,
            }
            self.call.state.step()
        })?;
        if !is_array {
            return Ok(None);
        }
        let ratio = self.config.sparse_ratio;
        if ratio > 0 && max > items.saturating_mul(ratio) && max > self.config.sparse_safe {
            if !self.config.sparse_convert {
                return Err(self.refuse(&Value::Table(table.clone()), "excessively sparse array"));
            }
            return Ok(None);
        }
        Ok(Some(max))
    }

    fn array(&mut self, table: &Table, len: i64, depth: i64) -> mlua::Result<()> {
        self.out.push(b'[');
        for index in 1..=len {
            if index > 1 {
                self.out.push(b',');
            }
            self.value(&table.raw_get::<Value>(index)?, depth)?;
        }
        self.out.push(b']');
        Ok(())
    }

    fn object(&mut self, table: &Table, depth: i64) -> mlua::Result<()> {
        self.out.push(b'{');
        let mut first = true;
        let call = self.call;
        call.each(table, |key, value| {
            if !std::mem::take(&mut first) {
                self.out.push(b',');
            }
            match &key {
                Value::Integer(_) | Value::Number(_) => {
                    self.out.push(b'"');
                    self.number(&key)?;
                    self.out.extend_from_slice(b"\":");
                }
                Value::String(string) => {
                    self.string(&string.as_bytes())?;
                    self.out.push(b':');
                }
                other => return Err(self.refuse(other, "table key must be a number or string")),
            }
            self.value(&value, depth)
        })?;
        self.out.push(b'}');
        Ok(())
    }

    fn number(&mut self, value: &Value) -> mlua::Result<()> {
        let number = crate::native::number_of(self.call.lua, value).unwrap_or(0.0);
        if !number.is_finite() {
            match self.config.encode_invalid {
                0 => return Err(self.refuse(value, "must not be NaN or Inf")),
                1 if number.is_nan() => {
                    self.out.extend_from_slice(b"nan");
                    return Ok(());
                }
                1 => {}
                _ => {
                    self.out.extend_from_slice(b"null");
                    return Ok(());
                }
            }
        }
        write_g(&mut self.out, number, usize::try_from(self.config.precision).unwrap_or(14));
        Ok(())
    }

    fn string(&mut self, bytes: &[u8]) -> mlua::Result<()> {
        if self.out.len() + bytes.len() > self.out.capacity() {
            self.call.state.reserve(self.call.lua, 2 * self.out.len() + 2 * bytes.len())?;
        }
        self.out.push(b'"');
        for byte in bytes {
            match byte {
                b'"' => self.out.extend_from_slice(b"\\\""),
                b'\\' => self.out.extend_from_slice(b"\\\\"),
                b'/' => self.out.extend_from_slice(b"\\/"),
                8 => self.out.extend_from_slice(b"\\b"),
                9 => self.out.extend_from_slice(b"\\t"),
                10 => self.out.extend_from_slice(b"\\n"),
                12 => self.out.extend_from_slice(b"\\f"),
                13 => self.out.extend_from_slice(b"\\r"),
                0..=31 | 127 => self.out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
                byte => self.out.push(*byte),
            }
        }
        self.out.push(b'"');
        Ok(())
    }
}

/// `%.{precision}g`.
pub(crate) fn write_g(out: &mut Vec<u8>, number: f64, precision: usize) {
    if !number.is_finite() {
        let text = if number.is_nan() {
            "nan"
        } else if number > 0.0 {
            "inf"
        } else {
            "-inf"
        };
        out.extend_from_slice(text.as_bytes());
        return;
    }
    let precision = precision.max(1);
    let scientific = format!("{number:.*e}", precision - 1);
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let limit = i32::try_from(precision).unwrap_or(i32::MAX);
    let trimmed = |text: &str| -> usize {
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').len() } else { text.len() }
    };
    if exponent < -4 || exponent >= limit {
        out.extend_from_slice(&digits.as_bytes()[..trimmed(digits)]);
        let sign = if exponent < 0 { '-' } else { '+' };
        out.extend_from_slice(format!("e{sign}{:02}", exponent.unsigned_abs()).as_bytes());
    } else {
        let decimals = usize::try_from(limit - 1 - exponent).unwrap_or(0);
        let plain = format!("{number:.decimals$}");
        out.extend_from_slice(&plain.as_bytes()[..trimmed(&plain)]);
    }
}

// ---- decode ------------------------------------------------------------------------------------------------------

enum Token {
    ObjectBegin,
    ObjectEnd,
    ArrayBegin,
    ArrayEnd,
    String,
    Number(f64),
    Boolean(bool),
    Null,
    Colon,
    Comma,
    End,
    Error(&'static str),
}

struct Decoder<'a, 'c> {
    call: &'a Call<'c>,
    config: &'a Config,
    input: &'a [u8],
    at: usize,
    /// Where the token at hand begins.
    token_at: usize,
    /// The string token at hand.
    string: Vec<u8>,
    depth: i64,
}

fn decode(call: &Call<'_>) -> mlua::Result<MultiValue> {
    if call.len() != 1 {
        return Err(call.arg_error(0, "expected 1 argument"));
    }
    let input = call.string(0)?;
    let input = input.as_bytes();
    if input.len() >= 2 && (input[0] == 0 || input[1] == 0) {
        return Err(call.error("JSON parser does not support UTF-16 or UTF-32"));
    }
    let config = call.state.cjson.borrow();
    let mut decoder =
        Decoder { call, config: &config, input: &input, at: 0, token_at: 0, string: Vec::new(), depth: 0 };
    let token = decoder.next();
    let value = decoder.value(&token)?;
    match decoder.next() {
        Token::End => call.one(value),
        token => Err(decoder.unexpected("the end", &token)),
    }
}

impl Decoder<'_, '_> {
    /// The byte at an offset from here; a NUL past the end, as a C string has it.
    fn byte(&self, offset: usize) -> u8 {
        self.input.get(self.at + offset).copied().unwrap_or(0)
    }

    fn unexpected(&self, wanted: &str, token: &Token) -> mlua::Error {
        let found = match token {
            Token::ObjectBegin => "T_OBJ_BEGIN",
            Token::ObjectEnd => "T_OBJ_END",
            Token::ArrayBegin => "T_ARR_BEGIN",
            Token::ArrayEnd => "T_ARR_END",
            Token::String => "T_STRING",
            Token::Number(_) => "T_NUMBER",
            Token::Boolean(_) => "T_BOOLEAN",
            Token::Null => "T_NULL",
            Token::Colon => "T_COLON",
            Token::Comma => "T_COMMA",
            Token::End => "T_END",
            Token::Error(why) => why,
        };
        self.call.error(format!("Expected {wanted} but found {found} at character {}", self.token_at + 1))
    }

    fn fail(&mut self, why: &'static str) -> Token {
        self.token_at = self.at;
        Token::Error(why)
    }

    fn single(&mut self, token: Token) -> Token {
        self.at += 1;
        token
    }

    fn next(&mut self) -> Token {
        while matches!(self.byte(0), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
        self.token_at = self.at;
        match self.byte(0) {
            0 => Token::End,
            b'{' => self.single(Token::ObjectBegin),
            b'}' => self.single(Token::ObjectEnd),
            b'[' => self.single(Token::ArrayBegin),
            b']' => self.single(Token::ArrayEnd),
            b',' => self.single(Token::Comma),
            b':' => self.single(Token::Colon),
            b'"' => self.string_token(),
            b'-' | b'0'..=b'9' => {
                if self.config.decode_invalid == 0 && self.is_invalid_number() {
                    return self.fail("invalid number");
                }
                self.number_token()
            }
            b'f' | b'i' | b'I' | b'n' | b'N' | b't' | b'+' => self.word(),
            _ => self.fail("invalid token"),
        }
    }

    fn word(&mut self) -> Token {
        let rest = &self.input[self.at..];
        for (word, token) in [("true", Token::Boolean(true)), ("false", Token::Boolean(false)), ("null", Token::Null)] {
            if rest.starts_with(word.as_bytes()) {
                self.at += word.len();
                return token;
            }
        }
        if self.config.decode_invalid != 0 && self.is_invalid_number() {
            return self.number_token();
        }
        self.fail("invalid token")
    }

    /// Numbers that the C library reads but JSON does not know.
    fn is_invalid_number(&self) -> bool {
        let mut offset = 0;
        if self.byte(0) == b'+' {
            return true;
        }
        if self.byte(0) == b'-' {
            offset = 1;
        }
        match self.byte(offset) {
            b'0' => {
                let second = self.byte(offset + 1);
                second | 0x20 == b'x' || second.is_ascii_digit()
            }
            byte if byte <= b'9' => false,
            _ => {
                let word = self.input.get(self.at + offset..self.at + offset + 3).unwrap_or_default();
                word.eq_ignore_ascii_case(b"inf") || word.eq_ignore_ascii_case(b"nan")
            }
        }
    }

    fn number_token(&mut self) -> Token {
        let (number, used) = read_number(&self.input[self.at..]);
        if used == 0 {
            return self.fail("invalid number");
        }
        self.at += used;
        Token::Number(number)
    }

    fn string_token(&mut self) -> Token {
        self.at += 1;
        self.string.clear();
        loop {
            let byte = match self.byte(0) {
                b'"' => break,
                0 => return self.fail("unexpected end of string"),
                b'\\' => match self.byte(1) {
                    b'u' => {
                        if self.unicode_escape().is_none() {
                            return self.fail("invalid unicode escape code");
                        }
                        continue;
                    }
                    byte @ (b'"' | b'\\' | b'/') => self.escaped(byte),
                    b'b' => self.escaped(8),
                    b't' => self.escaped(b'\t'),
                    b'n' => self.escaped(b'\n'),
                    b'f' => self.escaped(12),
                    b'r' => self.escaped(b'\r'),
                    _ => return self.fail("invalid escape code"),
                },
                byte => byte,
            };
            self.string.push(byte);
            self.at += 1;
        }
        self.at += 1;
        Token::String
    }

    fn escaped(&mut self, byte: u8) -> u8 {
        self.at += 1;
        byte
    }

    fn hex4(&self, offset: usize) -> Option<u32> {
        (0..4).try_fold(0, |code, index| {
            let digit = char::from(self.byte(offset + index)).to_digit(16)?;
            Some(code << 4 | digit)
        })
    }

    fn unicode_escape(&mut self) -> Option<()> {
        let mut code = self.hex4(2)?;
        let mut len = 6;
        if code & 0xf800 == 0xd800 {
            if code & 0x400 != 0 || self.byte(6) != b'\\' || self.byte(7) != b'u' {
                return None;
            }
            let low = self.hex4(8)?;
            if low & 0xfc00 != 0xdc00 {
                return None;
            }
            code = ((code & 0x3ff) << 10 | (low & 0x3ff)) + 0x1_0000;
            len = 12;
        }
        let mut utf8 = [0; 4];
        self.string.extend_from_slice(char::from_u32(code)?.encode_utf8(&mut utf8).as_bytes());
        self.at += len;
        Some(())
    }

    fn value(&mut self, token: &Token) -> mlua::Result<Value> {
        self.call.state.step()?;
        Ok(match token {
            Token::String => Value::String(self.lua_string()?),
            Token::Number(number) => Value::Number(*number),
            Token::Boolean(yes) => Value::Boolean(*yes),
            Token::Null => Value::NULL,
            Token::ObjectBegin => Value::Table(self.object()?),
            Token::ArrayBegin => Value::Table(self.array()?),
            other => return Err(self.unexpected("value", other)),
        })
    }

    fn lua_string(&self) -> mlua::Result<mlua::LuaString> {
        if self.string.len() > 4096 {
            self.call.state.reserve(self.call.lua, self.string.len())?;
        }
        self.call.lua.create_string(&self.string)
    }

    fn descend(&mut self) -> mlua::Result<Table> {
        self.depth += 1;
        if self.depth > self.config.decode_max_depth.min(STACK_DEPTH_MAX) {
            let text = format!("Found too many nested data structures ({}) at character {}", self.depth, self.at);
            return Err(self.call.error(text));
        }
        self.call.state.reserve(self.call.lua, 64)?;
        self.call.lua.create_table()
    }

    /// A table doubles as it grows: asks for the next step before it is taken.
    fn grow(&self, elements: usize) -> mlua::Result<()> {
        if elements > 1024 && elements.is_power_of_two() {
            self.call.state.reserve(self.call.lua, elements * 40)?;
        }
        Ok(())
    }

    fn object(&mut self) -> mlua::Result<Table> {
        let table = self.descend()?;
        let mut token = self.next();
        if matches!(token, Token::ObjectEnd) {
            self.depth -= 1;
            return Ok(table);
        }
        for elements in 1.. {
            if !matches!(token, Token::String) {
                return Err(self.unexpected("object key string", &token));
            }
            let key = self.lua_string()?;
            token = self.next();
            if !matches!(token, Token::Colon) {
                return Err(self.unexpected("colon", &token));
            }
            token = self.next();
            let value = self.value(&token)?;
            table.raw_set(key, value)?;
            self.grow(elements)?;
            token = self.next();
            match token {
                Token::ObjectEnd => break,
                Token::Comma => token = self.next(),
                other => return Err(self.unexpected("comma or object end", &other)),
            }
        }
        self.depth -= 1;
        Ok(table)
    }

    fn array(&mut self) -> mlua::Result<Table> {
        let table = self.descend()?;
        let mut token = self.next();
        if matches!(token, Token::ArrayEnd) {
            self.depth -= 1;
            return Ok(table);
        }
        for index in 1.. {
            let value = self.value(&token)?;
            table.raw_set(index, value)?;
            self.grow(index)?;
            token = self.next();
            match token {
                Token::ArrayEnd => break,
                Token::Comma => token = self.next(),
                other => return Err(self.unexpected("comma or array end", &other)),
            }
        }
        self.depth -= 1;
        Ok(table)
    }
}

/// Reads the longest number at the start of a text, as the C library's `strtod`: with its length, 0 if there is none.
fn read_number(text: &[u8]) -> (f64, usize) {
    let sign_len = usize::from(matches!(text.first(), Some(b'+' | b'-')));
    let sign = if text.first() == Some(&b'-') { -1.0 } else { 1.0 };
    let rest = &text[sign_len..];
    for (word, value) in [("infinity", f64::INFINITY), ("inf", f64::INFINITY), ("nan", f64::NAN)] {
        if rest.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word.as_bytes())) {
            return (sign * value, sign_len + word.len());
        }
    }
    if let [b'0', b'x' | b'X', digits @ ..] = rest
        && let (value, used @ 1..) = read_hex(digits)
    {
        return (sign * value, sign_len + 2 + used);
    }
    let digits = |from: usize| rest[from.min(rest.len())..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = digits(0);
    let mut len = whole;
    let mut fraction = 0;
    if rest.get(len) == Some(&b'.') {
        fraction = digits(len + 1);
        if whole + fraction > 0 {
            len += 1 + fraction;
        }
    }
    if whole + fraction == 0 {
        return (0.0, 0);
    }
    if matches!(rest.get(len), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(rest.get(len + 1), Some(b'+' | b'-')));
        let exponent = digits(len + 1 + sign);
        if exponent > 0 {
            len += 1 + sign + exponent;
        }
    }
    let parsed = std::str::from_utf8(&text[..sign_len + len]).ok().and_then(|text| text.parse().ok());
    (parsed.unwrap_or(0.0), sign_len + len)
}

/// Hex digits with a fraction and a binary exponent.
fn read_hex(text: &[u8]) -> (f64, usize) {
    let (mut value, mut at, mut any, mut scale) = (0.0_f64, 0, false, 0_i32);
    let mut seen_point = false;
    while let Some(byte) = text.get(at) {
        if *byte == b'.' && !seen_point {
            seen_point = true;
        } else if let Some(digit) = char::from(*byte).to_digit(16) {
            value = value * 16.0 + f64::from(digit);
            any = true;
            scale -= if seen_point { 4 } else { 0 };
        } else {
            break;
        }
        at += 1;
    }
    if !any {
        return (0.0, 0);
    }
    if matches!(text.get(at), Some(b'p' | b'P')) {
        let sign = usize::from(matches!(text.get(at + 1), Some(b'+' | b'-')));
        let digits = text[(at + 1 + sign).min(text.len())..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits > 0 {
            let exponent: &str = std::str::from_utf8(&text[at + 1..at + 1 + sign + digits]).unwrap_or("0");
            scale = scale.saturating_add(exponent.trim_start_matches('+').parse().unwrap_or(0));
            at += 1 + sign + digits;
        }
    }
    (value * 2_f64.powi(scale), at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g_format() {
        let text = |number: f64, precision| {
            let mut out = Vec::new();
            write_g(&mut out, number, precision);
            String::from_utf8_lossy(&out).into_owned()
        };
        for (number, wanted) in [
            (0.0, "0"),
            (1.5, "1.5"),
            (100.0, "100"),
            (0.1, "0.1"),
            (1e14, "1e+14"),
            (123_456_789_012_345.0, "1.2345678901234e+14"),
            (0.0001, "0.0001"),
            (0.000_01, "1e-05"),
            (-3.25, "-3.25"),
            (1.0 / 3.0, "0.33333333333333"),
        ] {
            assert_eq!(text(number, 14), wanted);
        }
        assert_eq!(text(2.5, 1), "2");
    }

    #[test]
    fn numbers_as_c_reads_them() {
        assert_eq!(read_number(b"1.5e3,"), (1500.0, 5));
        assert_eq!(read_number(b"-0x10]"), (-16.0, 5));
        assert_eq!(read_number(b"1.e"), (1.0, 2));
        assert_eq!(read_number(b"-"), (0.0, 0));
        assert_eq!(read_number(b"01"), (1.0, 2));
        assert_eq!(read_number(b"Infinity").1, 8);
    }
}
