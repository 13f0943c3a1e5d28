//! Passing over replies without building them: the load generator's path.
//!
//! Hot path: no allocation. Nesting needs no stack: an aggregate adds its elements to the count of values still to be
//! passed. [`SkipState`] keeps that count and the place, so a big reply that arrives in pieces is read once.

use memchr::memchr;

use crate::request::parse_length;
use crate::value::ReplyError;

/// Where the search for the end of a reply stands. Start with [`SkipState::new`]; it is new again after each reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SkipState {
    pos: usize,
    /// Values still to be passed, the reply itself included; 0 before the first byte.
    remaining: u64,
    /// Bytes from `pos` on that hold no end of line.
    searched: usize,
    need: usize,
    kind: u8,
}

impl SkipState {
    /// The state between two replies.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the next byte begins a reply.
    #[inline]
    pub fn is_new(&self) -> bool {
        self.remaining == 0
    }

    /// After an incomplete reply: bytes that must be in the buffer before skipping again can get further.
    pub fn need(&self) -> usize {
        self.need
    }
}

/// A reply that was passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Bytes from the start of the buffer to the end of the reply.
    pub consumed: usize,
    /// Whether it is an error.
    pub is_error: bool,
    /// The type byte of the reply (`+`, `$`, …); attributes in front of it do not count.
    pub kind: u8,
}

/// Finds the end of the reply that `buf` starts with; `None` when it is incomplete. Then call again with the same
/// buffer plus new bytes and the same state.
///
/// # Errors
/// When the bytes are no RESP2 or RESP3.
pub fn skip_reply(buf: &[u8], state: &mut SkipState) -> Result<Option<Skipped>, ReplyError> {
    let SkipState { mut pos, mut remaining, mut searched, mut kind, .. } = *state;
    remaining = remaining.max(1);
    loop {
        let Some(&mark) = buf.get(pos) else {
            *state = SkipState { pos, remaining, searched: 0, need: pos + 1, kind };
            return Ok(None);
        };
        let is_top = kind == 0 && remaining == 1;
        let step = step(buf, pos, mark, searched)?;
        searched = 0;
        match step {
            Step::Passed { end } => pos = end,
            Step::Opened { end, children } => {
                remaining = remaining.checked_add(children).ok_or(ReplyError::Length)?;
                pos = end;
                if mark == b'|' {
                    // What the attributes belong to is still to come.
                    continue;
                }
            }
            Step::Incomplete { searched, need } => {
                *state = SkipState { pos, remaining, searched, need, kind };
                return Ok(None);
            }
        }
        if is_top {
            kind = mark;
        }
        remaining -= 1;
        if remaining == 0 {
            *state = SkipState::new();
            return Ok(Some(Skipped { consumed: pos, is_error: matches!(kind, b'-' | b'!'), kind }));
        }
    }
}

enum Step {
    /// A value without elements ends at `end`.
    Passed {
        end: usize,
    },
    /// The header of an aggregate ends at `end`.
    Opened {
        end: usize,
        children: u64,
    },
    Incomplete {
        searched: usize,
        need: usize,
    },
}

/// Passes one value, or the header of an aggregate.
#[inline]
fn step(buf: &[u8], pos: usize, mark: u8, searched: usize) -> Result<Step, ReplyError> {
    let rest = buf.get(pos..).unwrap_or(&[]);
    if mark == b'$'
        && let [_, digit @ b'0'..=b'9', b'\r', b'\n', ..] = *rest
    {
        return bulk(buf, pos + 4, usize::from(digit - b'0'));
    }
    if !matches!(
        mark,
        b'+' | b'-' | b':' | b',' | b'#' | b'_' | b'(' | b'$' | b'=' | b'!' | b'*' | b'~' | b'>' | b'%' | b'|'
    ) {
        return Err(ReplyError::Type(mark));
    }
    let from = searched.clamp(1, rest.len());
    let Some(at) = memchr(b'\r', rest.get(from..).unwrap_or(&[])) else {
        return Ok(Step::Incomplete { searched: rest.len(), need: buf.len() + 1 });
    };
    let at = from + at;
    match rest.get(at + 1) {
        None => {
            return Ok(Step::Incomplete { searched: at, need: buf.len() + 1 });
        }
        Some(b'\n') => {}
        Some(_) => return Err(ReplyError::Line),
    }
    let end = pos + at + 2;
    if !matches!(mark, b'$' | b'=' | b'!' | b'*' | b'~' | b'>' | b'%' | b'|') {
        return Ok(Step::Passed { end });
    }
    let length = rest.get(1..at).and_then(parse_length).ok_or(ReplyError::Length)?;
    let Ok(length) = usize::try_from(length) else {
        let is_null = length == -1 && matches!(mark, b'$' | b'*');
        return if is_null { Ok(Step::Passed { end }) } else { Err(ReplyError::Length) };
    };
    match mark {
        b'$' | b'=' | b'!' => bulk(buf, end, length),
        b'%' | b'|' => {
            let children = (length as u64).checked_mul(2).ok_or(ReplyError::Length)?;
            Ok(Step::Opened { end, children })
        }
        _ => Ok(Step::Opened { end, children: length as u64 }),
    }
}

/// Passes the payload of a bulk.
#[inline]
fn bulk(buf: &[u8], start: usize, length: usize) -> Result<Step, ReplyError> {
    let end = start.checked_add(length).and_then(|end| end.checked_add(2)).ok_or(ReplyError::Length)?;
    if buf.len() < end {
        return Ok(Step::Incomplete { searched: 0, need: end });
    }
    if buf.get(end - 2..end) == Some(b"\r\n") { Ok(Step::Passed { end }) } else { Err(ReplyError::Line) }
}
