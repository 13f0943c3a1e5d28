//! Comma-separated values: Redis's way and RFC 4180's. Nested replies become one flat line.

use resp::{Value, write_repr};

/// Redis's way: strings as `"…"` with C escapes.
pub(super) fn write(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Error(text) => {
            out.extend_from_slice(b"ERROR,");
            write_repr(out, text);
        }
        Value::Simple(bytes) | Value::Bulk(bytes) | Value::Verbatim { text: bytes, .. } => write_repr(out, bytes),
        Value::Null | Value::NullArray => out.extend_from_slice(b"NULL"),
        other => atom_or_list(out, other, write),
    }
}

/// RFC 4180: a field in quotes where it needs them, with quotes doubled; nil is an empty field, an empty string `""`.
pub(super) fn write_strict(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Error(text) => {
            out.extend_from_slice(b"ERROR,");
            field(out, text);
        }
        Value::Simple(bytes) | Value::Bulk(bytes) | Value::Verbatim { text: bytes, .. } => field(out, bytes),
        Value::Null | Value::NullArray => {}
        other => atom_or_list(out, other, write_strict),
    }
}

/// What both ways have in common.
fn atom_or_list(out: &mut Vec<u8>, value: &Value, element: fn(&mut Vec<u8>, &Value)) {
    let mut comma = false;
    let mut separated = |out: &mut Vec<u8>, value: &Value| {
        if std::mem::replace(&mut comma, true) {
            out.push(b',');
        }
        element(out, value);
    };
    match value {
        Value::Int(number) => out.extend_from_slice(number.to_string().as_bytes()),
        Value::Bool(value) => out.extend_from_slice(value.to_string().as_bytes()),
        Value::Array(elements) | Value::Set(elements) | Value::Push(elements) => {
            elements.iter().for_each(|value| separated(out, value));
        }
        Value::Map(pairs) => {
            for (key, value) in pairs {
                separated(out, key);
                separated(out, value);
            }
        }
        Value::Attribute { value, .. } => element(out, value),
        other => out.extend_from_slice(other.as_bytes().unwrap_or_default()),
    }
}

fn field(out: &mut Vec<u8>, bytes: &[u8]) {
    let plain = |byte: &u8| !matches!(byte, b',' | b'"' | b'\r' | b'\n');
    if !bytes.is_empty() && bytes.iter().all(plain) {
        out.extend_from_slice(bytes);
        return;
    }
    out.push(b'"');
    for &byte in bytes {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}
