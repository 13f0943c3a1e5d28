//! Values that hold another format, made readable: UTF-8, JSON, MessagePack, hexadecimal.
//!
//! A value that is not of the format is shown as before. Depth is limited, and nothing is sized by a declared count.

use std::fmt::Write;

use resp::quote_repr;

/// Deepest nesting followed.
const DEPTH_MAX: usize = 64;

/// How byte strings are shown in the standard format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Decoder {
    /// Quoted, with everything but ASCII escaped.
    #[default]
    None,
    /// Quoted, with UTF-8 kept.
    Utf8,
    /// JSON over several lines.
    Json,
    /// MessagePack as JSON in one line.
    MessagePack,
    /// Two digits per byte.
    Hex,
}

impl Decoder {
    /// The names that [`Decoder::named`] knows.
    pub(crate) const NAMES: &'static [&'static str] = &["none", "utf8", "json", "msgpack", "hex"];

    /// The decoder of a name.
    pub(crate) fn named(name: &str) -> Option<Decoder> {
        Some(match name.to_ascii_lowercase().as_str() {
            "none" => Decoder::None,
            "utf8" => Decoder::Utf8,
            "json" => Decoder::Json,
            "msgpack" => Decoder::MessagePack,
            "hex" => Decoder::Hex,
            _ => return None,
        })
    }

    /// The text of a byte string; further lines start with `indent` spaces.
    pub(super) fn text(self, bytes: &[u8], indent: usize) -> Vec<u8> {
        let decoded = match self {
            Decoder::None => None,
            Decoder::Utf8 => utf8(bytes),
            Decoder::Json => json(bytes, indent),
            Decoder::MessagePack => message_pack(bytes),
            Decoder::Hex => {
                let pairs: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                Some(pairs.join(" "))
            }
        };
        decoded.map_or_else(|| quote_repr(bytes), String::into_bytes)
    }
}

/// In quotes, with control characters escaped: they could change the terminal.
fn utf8(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut out = String::from("\"");
    for sign in text.chars() {
        match sign {
            '"' | '\\' => out.extend(['\\', sign]),
            sign if sign.is_control() => out.extend(sign.escape_default()),
            sign => out.push(sign),
        }
    }
    out.push('"');
    Some(out)
}

/// The same JSON with a line per member; only objects and arrays gain from it.
fn json(bytes: &[u8], indent: usize) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?.trim();
    if !text.starts_with(['{', '[']) {
        return None;
    }
    let mut out = String::new();
    let rest = json_value(text, &mut out, indent, 0)?;
    rest.trim().is_empty().then_some(out)
}

/// Copies the value that `text` starts with; what is behind it.
fn json_value<'a>(text: &'a str, out: &mut String, indent: usize, depth: usize) -> Option<&'a str> {
    if depth > DEPTH_MAX {
        return None;
    }
    let text = text.trim_start();
    match text.chars().next()? {
        open @ ('{' | '[') => json_members(text, open, out, indent, depth),
        '"' => {
            let (string, rest) = text.split_at(json_string_length(text)?);
            // Raw control characters are no JSON, so nothing here can change the terminal.
            if string.chars().any(char::is_control) {
                return None;
            }
            out.push_str(string);
            Some(rest)
        }
        _ => {
            let end = text.find(|sign: char| !sign.is_ascii_alphanumeric() && !"+-.".contains(sign));
            let (atom, rest) = text.split_at(end.unwrap_or(text.len()));
            let is_atom = matches!(atom, "true" | "false" | "null") || atom.parse::<f64>().is_ok();
            is_atom.then(|| out.push_str(atom))?;
            Some(rest)
        }
    }
}

fn json_members<'a>(text: &'a str, open: char, out: &mut String, indent: usize, depth: usize) -> Option<&'a str> {
    let close = if open == '{' { '}' } else { ']' };
    let inner = indent + 2;
    out.push(open);
    let mut rest = text.get(1..)?.trim_start();
    if let Some(rest) = rest.strip_prefix(close) {
        out.push(close);
        return Some(rest);
    }
    loop {
        let _ = write!(out, "\n{:inner$}", "");
        if open == '{' {
            rest = rest.trim_start();
            if !rest.starts_with('"') {
                return None;
            }
            rest = json_value(rest, out, inner, depth + 1)?.trim_start().strip_prefix(':')?;
            out.push_str(": ");
        }
        rest = json_value(rest, out, inner, depth + 1)?.trim_start();
        match rest.strip_prefix(',') {
            Some(behind) => {
                out.push(',');
                rest = behind;
            }
            None => break,
        }
    }
    let _ = write!(out, "\n{:indent$}{close}", "");
    rest.strip_prefix(close)
}

/// Bytes of the string in quotes that `text` starts with.
fn json_string_length(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (place, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(place + 1),
            _ => {}
        }
    }
    None
}

fn message_pack(bytes: &[u8]) -> Option<String> {
    let mut out = String::new();
    let rest = pack_value(bytes, &mut out, 0)?;
    rest.is_empty().then_some(out)
}

/// Writes the value that `bytes` start with; what is behind it.
fn pack_value<'a>(bytes: &'a [u8], out: &mut String, depth: usize) -> Option<&'a [u8]> {
    if depth > DEPTH_MAX {
        return None;
    }
    let (&mark, rest) = bytes.split_first()?;
    match mark {
        0x00..=0x7f => print(out, mark, rest),
        0xe0..=0xff => print(out, mark.cast_signed(), rest),
        0x80..=0x8f => pack_list(rest, u64::from(mark & 15), Shape::Map, out, depth),
        0x90..=0x9f => pack_list(rest, u64::from(mark & 15), Shape::Array, out, depth),
        0xa0..=0xbf => pack_text(rest, u64::from(mark & 31), out),
        0xc0 => print(out, "null", rest),
        0xc2 => print(out, "false", rest),
        0xc3 => print(out, "true", rest),
        0xc4..=0xc6 => unsigned(rest, 1 << (mark - 0xc4)).and_then(|(length, rest)| pack_text(rest, length, out)),
        0xca => rest.split_first_chunk().and_then(|(raw, rest)| print(out, f32::from_be_bytes(*raw), rest)),
        0xcb => rest.split_first_chunk().and_then(|(raw, rest)| print(out, f64::from_be_bytes(*raw), rest)),
        0xcc..=0xcf => unsigned(rest, 1 << (mark - 0xcc)).and_then(|(number, rest)| print(out, number, rest)),
        0xd0..=0xd3 => {
            let size = 1 << (mark - 0xd0);
            let (number, rest) = unsigned(rest, size)?;
            let unused = 64 - 8 * size;
            print(out, (number << unused).cast_signed() >> unused, rest)
        }
        0xd9..=0xdb => unsigned(rest, 1 << (mark - 0xd9)).and_then(|(length, rest)| pack_text(rest, length, out)),
        0xdc | 0xdd => {
            let (count, rest) = unsigned(rest, if mark == 0xdc { 2 } else { 4 })?;
            pack_list(rest, count, Shape::Array, out, depth)
        }
        0xde | 0xdf => {
            let (count, rest) = unsigned(rest, if mark == 0xde { 2 } else { 4 })?;
            pack_list(rest, count, Shape::Map, out, depth)
        }
        // Extensions mean something to their writer only.
        _ => None,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Array,
    Map,
}

fn print<'a>(out: &mut String, value: impl std::fmt::Display, rest: &'a [u8]) -> Option<&'a [u8]> {
    write!(out, "{value}").ok()?;
    Some(rest)
}

fn pack_list<'a>(mut rest: &'a [u8], count: u64, shape: Shape, out: &mut String, depth: usize) -> Option<&'a [u8]> {
    let (open, close) = if shape == Shape::Map { ('{', '}') } else { ('[', ']') };
    out.push(open);
    for index in 0..count {
        if index > 0 {
            out.push(',');
        }
        rest = pack_value(rest, out, depth + 1)?;
        if shape == Shape::Map {
            out.push(':');
            rest = pack_value(rest, out, depth + 1)?;
        }
    }
    out.push(close);
    Some(rest)
}

fn pack_text<'a>(rest: &'a [u8], length: u64, out: &mut String) -> Option<&'a [u8]> {
    let (bytes, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    match utf8(bytes) {
        Some(text) => out.push_str(&text),
        None => out.push_str(&String::from_utf8_lossy(&quote_repr(bytes))),
    }
    Some(rest)
}

/// A big-endian number of `size` bytes.
fn unsigned(bytes: &[u8], size: usize) -> Option<(u64, &[u8])> {
    let (number, rest) = bytes.split_at_checked(size)?;
    Some((number.iter().fold(0, |sum, byte| (sum << 8) | u64::from(*byte)), rest))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    fn shown(decoder: Decoder, bytes: &[u8]) -> String {
        String::from_utf8(decoder.text(bytes, 3)).unwrap()
    }

    #[test]
    fn table() {
        assert_eq!(shown(Decoder::Utf8, "é\x1b\"".as_bytes()), "\"é\\u{1b}\\\"\"");
        assert_eq!(shown(Decoder::Hex, b"a\xff"), "61 ff");
        assert_eq!(
            shown(Decoder::Json, b"{\"a\":[1,{}], \"b\":\"x,y\"}"),
            "{\n     \"a\": [\n       1,\n       {}\n     ],\n     \"b\": \"x,y\"\n   }"
        );
        assert_eq!(
            shown(Decoder::MessagePack, b"\x82\xa1a\x93\x01\xff\xd1\xff\x00\xa1b\xc0"),
            "{\"a\":[1,-1,-256],\"b\":null}"
        );
    }

    #[test]
    fn what_is_not_of_the_format_stays() {
        for bytes in [&b"{\"a\":}"[..], b"[1,", b"{a:1}", b"[1] x", b"plain"] {
            assert_eq!(shown(Decoder::Json, bytes).into_bytes(), quote_repr(bytes));
        }
        let deep = "[".repeat(100_000);
        assert_eq!(shown(Decoder::Json, deep.as_bytes()).len(), deep.len() + 2);
        for bytes in [&b"\xdd\xff\xff\xff\xff"[..], b"\xdb\xff\xff\xff\xff", b"\x92\x01", b"\xc1", b"\x01\x02"] {
            assert_eq!(shown(Decoder::MessagePack, bytes).into_bytes(), quote_repr(bytes));
        }
    }
}
