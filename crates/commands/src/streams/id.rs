//! Ids as clients write them.

use crate::error::CmdError;
use keyspace::stream::StreamId;

const INVALID: CmdError = CmdError::new("ERR Invalid stream ID specified as stream command argument");
/// The longest text looked at.
const LEN_MAX: usize = 127;

/// An argument up to its first zero byte: all that Redis sees of an id.
pub(super) fn c_string(argument: &[u8]) -> &[u8] {
    argument.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// A number of 64 bits without sign as C's `strtoull` reads it: white space and one sign may come first.
fn unsigned(text: &[u8]) -> Option<u64> {
    // Redis: what is a canonical number below zero is refused, other texts wrap.
    if resp::num::parse_i64(text).is_some_and(|number| number < 0) {
        return None;
    }
    let text = text.trim_ascii_start();
    let text = if let [0x0B, rest @ ..] = text { rest } else { text };
    resp::num::parse_wrapping_u64(text)
}

/// The two halves; the second is `None` when it is not given. `star`: `ms-*` is allowed and counts as not given.
fn halves(text: &[u8], missing_seq: u64, star: bool) -> Result<(StreamId, bool), CmdError> {
    let (ms, seq) = match text.iter().position(|byte| *byte == b'-') {
        Some(at) => (text.get(..at).unwrap_or_default(), text.get(at + 1..)),
        None => (text, None),
    };
    let ms = unsigned(ms).ok_or(INVALID)?;
    Ok(match seq {
        None => (StreamId { ms, seq: missing_seq }, true),
        Some(b"*") if star => (StreamId { ms, seq: 0 }, false),
        Some(seq) => (StreamId { ms, seq: unsigned(seq).ok_or(INVALID)? }, true),
    })
}

/// An id; without its second half that is `missing_seq`.
///
/// # Errors
/// No id; `-` and `+` are none.
pub(super) fn strict(argument: &[u8], missing_seq: u64) -> Result<StreamId, CmdError> {
    let text = c_string(argument);
    if argument.len() > LEN_MAX || matches!(text, b"-" | b"+") {
        return Err(INVALID);
    }
    halves(text, missing_seq, false).map(|(id, _)| id)
}

/// An id for XADD: `ms-*` leaves the second half to the server. Gives the id and whether it is whole.
///
/// # Errors
/// No id.
pub(super) fn to_add(argument: &[u8]) -> Result<(StreamId, bool), CmdError> {
    let text = c_string(argument);
    if argument.len() > LEN_MAX || matches!(text, b"-" | b"+") {
        return Err(INVALID);
    }
    halves(text, 0, true)
}

/// An id, or `-` or `+` for the smallest and the greatest.
///
/// # Errors
/// No id.
pub(super) fn loose(argument: &[u8], missing_seq: u64) -> Result<StreamId, CmdError> {
    match c_string(argument) {
        _ if argument.len() > LEN_MAX => Err(INVALID),
        b"-" => Ok(StreamId::MIN),
        b"+" => Ok(StreamId::MAX),
        _ => strict(argument, missing_seq),
    }
}

/// The start of a range; `(` excludes it.
///
/// # Errors
/// No id, or nothing lies behind it.
pub(super) fn start(argument: &[u8]) -> Result<StreamId, CmdError> {
    match argument {
        [b'(', rest @ ..] if !rest.is_empty() => {
            strict(rest, 0)?.next().ok_or(CmdError::new("ERR invalid start ID for the interval"))
        }
        _ => loose(argument, 0),
    }
}

/// The end of a range; `(` excludes it.
///
/// # Errors
/// No id, or nothing lies before it.
pub(super) fn end(argument: &[u8]) -> Result<StreamId, CmdError> {
    match argument {
        [b'(', rest @ ..] if !rest.is_empty() => {
            strict(rest, u64::MAX)?.previous().ok_or(CmdError::new("ERR invalid end ID for the interval"))
        }
        _ => loose(argument, u64::MAX),
    }
}

/// Ids from argument `from` on.
///
/// # Errors
/// One that is no id.
pub(super) fn all(args: resp::Args<'_>, from: usize) -> Result<Vec<StreamId>, CmdError> {
    args.slice(from).iter().map(|argument| strict(argument, 0)).collect()
}
