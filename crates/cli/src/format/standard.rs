//! The format for eyes.

use std::io::Write;

use resp::Value;

use super::Decoder;

/// Appends a value that starts at the cursor; its further lines start with `indent` spaces.
pub(super) fn write(out: &mut Vec<u8>, value: &Value, indent: usize, decoder: Decoder) {
    match value {
        Value::Simple(text) => out.extend_from_slice(text),
        Value::Error(text) => {
            out.extend_from_slice(b"(error) ");
            out.extend_from_slice(text);
        }
        Value::Int(number) => print(out, format_args!("(integer) {number}")),
        Value::Bulk(bytes) => out.extend(decoder.text(bytes, indent)),
        Value::Verbatim { text, .. } => out.extend_from_slice(text),
        Value::Null | Value::NullArray => out.extend_from_slice(b"(nil)"),
        Value::Double(text) => print(out, format_args!("(double) {text}")),
        Value::BigNumber(text) => out.extend_from_slice(text.as_bytes()),
        Value::Bool(value) => print(out, format_args!("({value})")),
        Value::Array(elements) => return list(out, elements, ')', "(empty array)", indent, decoder),
        Value::Set(elements) => return list(out, elements, '~', "(empty set)", indent, decoder),
        Value::Push(elements) => return list(out, elements, ')', "(empty push)", indent, decoder),
        Value::Map(pairs) => return map(out, pairs, indent, decoder),
        Value::Attribute { value, .. } => return write(out, value, indent, decoder),
    }
    out.push(b'\n');
}

fn list(out: &mut Vec<u8>, elements: &[Value], mark: char, empty: &str, indent: usize, decoder: Decoder) {
    if elements.is_empty() {
        return print(out, format_args!("{empty}\n"));
    }
    let width = digits(elements.len());
    for (index, element) in elements.iter().enumerate() {
        number(out, index, width, mark, indent);
        write(out, element, indent + width + 2, decoder);
    }
}

fn map(out: &mut Vec<u8>, pairs: &[(Value, Value)], indent: usize, decoder: Decoder) {
    if pairs.is_empty() {
        return print(out, format_args!("(empty hash)\n"));
    }
    let width = digits(pairs.len());
    for (index, (key, value)) in pairs.iter().enumerate() {
        number(out, index, width, '#', indent);
        write(out, key, indent + width + 2, decoder);
        out.pop();
        out.extend_from_slice(b" => ");
        if has_lines(value) {
            // A list starts on a line of its own, or its numbers would not stand below each other.
            print(out, format_args!("\n{:1$}", "", indent + width + 2));
        }
        write(out, value, indent + width + 2, decoder);
    }
}

/// `N) `. The first element stands where its list began, which has its indent already.
fn number(out: &mut Vec<u8>, index: usize, width: usize, mark: char, indent: usize) {
    let indent = if index == 0 { 0 } else { indent };
    print(out, format_args!("{:indent$}{:width$}{mark} ", "", index + 1));
}

fn has_lines(value: &Value) -> bool {
    match value {
        Value::Array(elements) | Value::Set(elements) | Value::Push(elements) => match elements.as_slice() {
            [] => false,
            [element] => has_lines(element),
            _ => true,
        },
        Value::Map(pairs) => match pairs.as_slice() {
            [] => false,
            [(_, value)] => has_lines(value),
            _ => true,
        },
        Value::Attribute { value, .. } => has_lines(value),
        _ => false,
    }
}

fn digits(count: usize) -> usize {
    count.checked_ilog10().map_or(1, |log| log as usize + 1)
}

/// Writing to memory cannot fail.
fn print(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    let _ = out.write_fmt(text);
}
