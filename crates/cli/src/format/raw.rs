//! The bytes alone, for pipes.

use resp::Value;

/// Appends a value; elements are separated by `delimiter`, a map's key from its value by a space.
pub(super) fn write(out: &mut Vec<u8>, value: &Value, delimiter: &[u8]) {
    match value {
        Value::Null | Value::NullArray => {}
        Value::Error(text) => {
            out.extend_from_slice(text);
            out.push(b'\n');
        }
        Value::Simple(bytes) | Value::Bulk(bytes) | Value::Verbatim { text: bytes, .. } => out.extend_from_slice(bytes),
        Value::Int(number) => out.extend_from_slice(number.to_string().as_bytes()),
        Value::Double(text) | Value::BigNumber(text) => out.extend_from_slice(text.as_bytes()),
        Value::Bool(true) => out.extend_from_slice(b"(true)"),
        Value::Bool(false) => out.extend_from_slice(b"(false)"),
        Value::Array(elements) | Value::Set(elements) | Value::Push(elements) => {
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    out.extend_from_slice(delimiter);
                }
                write(out, element, delimiter);
            }
        }
        Value::Map(pairs) => {
            for (index, (key, value)) in pairs.iter().enumerate() {
                if index > 0 {
                    out.extend_from_slice(delimiter);
                }
                write(out, key, delimiter);
                out.push(b' ');
                write(out, value, delimiter);
            }
        }
        Value::Attribute { value, .. } => write(out, value, delimiter),
    }
}
