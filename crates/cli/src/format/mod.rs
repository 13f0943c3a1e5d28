//! Replies as text.
//!
//! One module per family of formats, each a function from a reply to bytes; none of them knows a terminal or a socket.
//! Source of behaviour: redis-cli 7.2, checked against the program by the golden tests.

mod csv;
mod decode;
mod json;
mod raw;
mod standard;

use resp::Value;

pub(crate) use decode::Decoder;

#[cfg(test)]
mod tests;

/// How replies are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// For eyes: types are named, lists are numbered.
    Standard,
    /// The bytes alone.
    Raw,
    /// Redis's comma-separated form: strings escaped as in C, all levels in one line.
    Csv,
    /// RFC 4180: quotes doubled, bytes kept.
    CsvStrict,
    /// Redis's JSON; an error is `error:"…"`, which is none.
    Json,
    /// [`Format::Json`], with strings escaped to ASCII.
    QuotedJson,
    /// JSON that every parser takes.
    JsonStrict,
    /// [`Format::JsonStrict`], one line per element of an array.
    Ndjson,
}

/// A format and the separators of [`Format::Raw`].
#[derive(Clone, Debug)]
pub(crate) struct Style {
    /// The format.
    pub(crate) format: Format,
    /// `-d`: between the elements of a reply.
    pub(crate) element_delimiter: Vec<u8>,
    /// `-D`: behind each reply.
    pub(crate) reply_delimiter: Vec<u8>,
    /// `--decode`: how byte strings are shown in [`Format::Standard`].
    pub(crate) decoder: Decoder,
}

/// A reply with its line end.
pub(crate) fn render(value: &Value, style: &Style) -> Vec<u8> {
    let mut out = Vec::new();
    match style.format {
        Format::Standard => standard::write(&mut out, value, 0, style.decoder),
        Format::Raw => {
            raw::write(&mut out, value, &style.element_delimiter);
            out.extend_from_slice(&style.reply_delimiter);
        }
        Format::Csv => csv::write(&mut out, value),
        Format::CsvStrict => csv::write_strict(&mut out, value),
        Format::Json => json::write(&mut out, value, json::Strings::Plain),
        Format::QuotedJson => json::write(&mut out, value, json::Strings::Quoted),
        Format::JsonStrict => json::write_strict(&mut out, value),
        Format::Ndjson => match value.as_elements() {
            Some(elements) => {
                for element in elements {
                    json::write_strict(&mut out, element);
                    out.push(b'\n');
                }
            }
            None => json::write_strict(&mut out, value),
        },
    }
    let ends_itself = match style.format {
        Format::Standard | Format::Raw => true,
        Format::Ndjson => value.as_elements().is_some(),
        _ => false,
    };
    if !ends_itself {
        out.push(b'\n');
    }
    out
}

/// A reply whose text speaks for itself (INFO and the like), in any format: nothing is added.
pub(crate) fn render_verbatim(value: &Value, style: &Style) -> Vec<u8> {
    let mut out = Vec::new();
    raw::write(&mut out, value, &style.element_delimiter);
    out
}

/// A message that keys of the client-side cache have changed, as the standard format shows it.
pub(crate) fn invalidation(value: &Value) -> Option<Vec<u8>> {
    let Value::Push(elements) = value else {
        return None;
    };
    let [Value::Bulk(kind), Value::Array(keys)] = elements.as_slice() else {
        return None;
    };
    if !kind.starts_with(b"invalidate") {
        return None;
    }
    let mut out = b"-> invalidate: ".to_vec();
    for (index, key) in keys.iter().enumerate() {
        if index > 0 {
            out.extend_from_slice(b", ");
        }
        out.push(b'\'');
        out.extend_from_slice(key.as_bytes().unwrap_or_default());
        out.push(b'\'');
    }
    out.push(b'\n');
    Some(out)
}

/// Whether a call's reply is always shown as it is.
pub(crate) fn is_verbatim(arguments: &[Vec<u8>]) -> bool {
    let word = |index: usize| arguments.get(index).map(|word| word.to_ascii_lowercase()).unwrap_or_default();
    let count = arguments.len();
    match (word(0).as_slice(), word(1).as_slice()) {
        (b"info" | b"lolwut", _) => true,
        (b"debug", b"htstats" | b"htstats-key" | b"client-eviction") => true,
        (b"memory", b"malloc-stats" | b"doctor") => true,
        (b"cluster", b"nodes" | b"info") | (b"latency", b"doctor") => count == 2,
        (b"latency", b"graph") => count == 3,
        (b"client", b"list" | b"info") | (b"proxy", b"info") => true,
        _ => false,
    }
}
