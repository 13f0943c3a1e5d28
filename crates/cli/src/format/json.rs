//! JSON: Redis's way and one that every parser takes.

use std::io::Write;

use resp::{Value, quote_repr};

/// How strings are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strings {
    /// Bytes kept, so UTF-8 stays and other bytes make the text no JSON.
    Plain,
    /// Everything but printable ASCII as `\\xHH`.
    Quoted,
}

/// Redis's way.
pub(super) fn write(out: &mut Vec<u8>, value: &Value, strings: Strings) {
    match value {
        Value::Error(text) => {
            out.extend_from_slice(b"error:");
            string(out, text, strings);
        }
        Value::Simple(bytes) | Value::Bulk(bytes) | Value::Verbatim { text: bytes, .. } => string(out, bytes, strings),
        Value::Int(number) => out.extend_from_slice(number.to_string().as_bytes()),
        Value::Double(text) | Value::BigNumber(text) => out.extend_from_slice(text.as_bytes()),
        Value::Null | Value::NullArray => out.extend_from_slice(b"null"),
        Value::Bool(value) => out.extend_from_slice(value.to_string().as_bytes()),
        Value::Array(elements) | Value::Set(elements) | Value::Push(elements) => {
            array(out, elements, |out, element| write(out, element, strings));
        }
        Value::Map(pairs) => object(
            out,
            pairs,
            |out, key| redis_key(out, key, strings),
            |out, value| {
                write(out, value, strings);
            },
        ),
        Value::Attribute { value, .. } => write(out, value, strings),
    }
}

/// JSON for every parser: an error is an object with the member `error`, bytes that are no UTF-8 become U+FFFD,
/// numbers that JSON does not know become strings, a key that is no string becomes its JSON text.
pub(super) fn write_strict(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Error(text) => {
            out.extend_from_slice(b"{\"error\":");
            strict_string(out, text);
            out.push(b'}');
        }
        Value::Simple(bytes) | Value::Bulk(bytes) | Value::Verbatim { text: bytes, .. } => strict_string(out, bytes),
        Value::Double(text) if is_number(text) => out.extend_from_slice(text.as_bytes()),
        Value::Double(text) => strict_string(out, text.as_bytes()),
        Value::BigNumber(text) => out.extend_from_slice(text.trim_start_matches('+').as_bytes()),
        Value::Array(elements) | Value::Set(elements) | Value::Push(elements) => array(out, elements, write_strict),
        Value::Map(pairs) => object(out, pairs, strict_key, write_strict),
        Value::Attribute { value, .. } => write_strict(out, value),
        Value::Int(_) | Value::Null | Value::NullArray | Value::Bool(_) => write(out, value, Strings::Plain),
    }
}

fn array(out: &mut Vec<u8>, elements: &[Value], element: impl Fn(&mut Vec<u8>, &Value)) {
    out.push(b'[');
    for (index, value) in elements.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        element(out, value);
    }
    out.push(b']');
}

fn object(
    out: &mut Vec<u8>,
    pairs: &[(Value, Value)],
    write_key: impl Fn(&mut Vec<u8>, &Value),
    write_value: impl Fn(&mut Vec<u8>, &Value),
) {
    out.push(b'{');
    for (index, (key, value)) in pairs.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_key(out, key);
        out.push(b':');
        write_value(out, value);
    }
    out.push(b'}');
}

/// Redis: a key that is no string is its JSON text in quotes, not escaped again.
fn redis_key(out: &mut Vec<u8>, key: &Value, strings: Strings) {
    let is_text = matches!(key, Value::Error(_) | Value::Simple(_) | Value::Bulk(_) | Value::Verbatim { .. });
    if is_text {
        return write(out, key, strings);
    }
    out.push(b'"');
    write(out, key, strings);
    out.push(b'"');
}

fn strict_key(out: &mut Vec<u8>, key: &Value) {
    match key {
        Value::Error(bytes) | Value::Simple(bytes) | Value::Bulk(bytes) => strict_string(out, bytes),
        other => {
            let mut text = Vec::new();
            write_strict(&mut text, other);
            match text.first() {
                Some(b'"') => out.extend_from_slice(&text),
                _ => strict_string(out, &text),
            }
        }
    }
}

fn string(out: &mut Vec<u8>, bytes: &[u8], strings: Strings) {
    if strings == Strings::Quoted {
        for byte in quote_repr(bytes) {
            if byte == b'\\' {
                out.push(b'\\');
            }
            out.push(byte);
        }
        return;
    }
    out.push(b'"');
    for &byte in bytes {
        match byte {
            b'\\' | b'"' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            0x0c => out.extend_from_slice(b"\\f"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            // Writing to memory cannot fail.
            0..=0x1f => drop(write!(out, "\\u{byte:04x}")),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

fn strict_string(out: &mut Vec<u8>, bytes: &[u8]) {
    string(out, String::from_utf8_lossy(bytes).as_bytes(), Strings::Plain);
}

/// Whether JSON knows the number; it has neither infinity nor NaN.
fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    digits.starts_with(|first: char| first.is_ascii_digit()) && digits.parse::<f64>().is_ok_and(f64::is_finite)
}
