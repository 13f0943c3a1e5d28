//! `peek KEY`: type, time to live, memory and the first elements of a key, without reading all of it.

use resp::Value;

use crate::format::{Format, Style, render};
use crate::output::{Outcome, print, print_line, text};
use crate::session::Session;

/// Elements shown.
const SAMPLE: &str = "10";

/// Shows what a key holds.
pub(super) fn show(session: &mut Session, key: &[u8]) -> Outcome<()> {
    if !session.is_connected() {
        return print("not connected\n");
    }
    let call = |words: &[&str]| -> Vec<Vec<u8>> {
        words.iter().map(|word| if *word == "KEY" { key.to_vec() } else { word.as_bytes().to_vec() }).collect()
    };
    let kind = match session.call(&call(&["TYPE", "KEY"]))? {
        Value::Simple(kind) => text(&kind).into_owned(),
        other => return print(render(&other, &style())),
    };
    if kind == "none" {
        return print("(nil)\n");
    }
    let (size, sample): (&[&str], &[&str]) = match kind.as_str() {
        "string" => (&["STRLEN", "KEY"], &["GETRANGE", "KEY", "0", "255"]),
        "list" => (&["LLEN", "KEY"], &["LRANGE", "KEY", "0", "9"]),
        "set" => (&["SCARD", "KEY"], &["SRANDMEMBER", "KEY", SAMPLE]),
        "zset" => (&["ZCARD", "KEY"], &["ZRANGE", "KEY", "0", "9", "WITHSCORES"]),
        "hash" => (&["HLEN", "KEY"], &["HRANDFIELD", "KEY", SAMPLE, "WITHVALUES"]),
        "stream" => (&["XLEN", "KEY"], &["XREVRANGE", "KEY", "+", "-", "COUNT", SAMPLE]),
        _ => (&["EXISTS", "KEY"], &["OBJECT", "ENCODING", "KEY"]),
    };
    let calls = [
        call(size),
        call(&["PTTL", "KEY"]),
        call(&["MEMORY", "USAGE", "KEY"]),
        call(&["OBJECT", "ENCODING", "KEY"]),
        call(sample),
    ];
    let replies = session.call_many(&calls)?;
    let [size, ttl, memory, encoding, sample] = replies.as_slice() else {
        return Ok(());
    };
    let number = |value: &Value| match value {
        Value::Int(number) => number.to_string(),
        _ => "?".to_string(),
    };
    let ttl = match ttl {
        Value::Int(-1) => "none".to_string(),
        other => format!("{} ms", number(other)),
    };
    print_line(format_args!("type: {kind} ({})", text(encoding.as_bytes().unwrap_or(b"?"))))?;
    print_line(format_args!("size: {}  memory: {} bytes  ttl: {ttl}", number(size), number(memory)))?;
    print(render(sample, &style()))
}

fn style() -> Style {
    Style {
        format: Format::Standard,
        element_delimiter: Vec::new(),
        reply_delimiter: Vec::new(),
        decoder: Default::default(),
    }
}
