//! Requests: one command with its arguments, found in a buffer of received bytes.
//!
//! Hot path: no allocation (the ranges of a [`Request`] are reused), no search where a short header can be matched.
//!
//! ```text
//! multibulk   *3\r\n $3\r\nSET\r\n $1\r\nk\r\n $1\r\nv\r\n
//! inline      SET k "a v"\r\n
//! ```
//!
//! Resuming: when a multibulk is incomplete, [`ParseState`] keeps how far its headers were checked and how many
//! arguments are left, not the ranges. The next call goes on from there; when the last argument has arrived, one more
//! pass over the headers collects the ranges. So each header is read at most three times however the bytes arrive.
//!
//! Redis: what a line ends with is only looked for, not checked: the byte after CR and the two bytes after a bulk may be
//! anything. A NUL byte hides the rest of the buffer from that search, so such a header is never complete and ends in a
//! "too big" error.

mod error;
#[cfg(test)]
mod tests;

pub use error::ProtocolError;

use memchr::memchr2;

use crate::args::{Args, Range};
use crate::quote::split_into;

/// Arguments a client may send before it has authenticated.
const UNAUTHENTICATED_MULTIBULK: usize = 10;
/// Bytes of one argument a client may send before it has authenticated.
const UNAUTHENTICATED_BULK: usize = 16384;
/// Ranges kept between requests; more are given back.
const KEPT_RANGES: usize = 1024;
/// Unquoted inline bytes kept between requests; more are given back.
const KEPT_INLINE: usize = 16 * 1024;

/// Limits for a request parser; strict ones before authentication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most arguments of one request.
    pub max_multibulk: usize,
    /// Most bytes of one argument (`proto-max-bulk-len`).
    pub max_bulk: usize,
    /// Most bytes of an inline request, or of a length line, whose end has not been seen.
    pub max_inline: usize,
    /// Whether the client has authenticated (or need not). Otherwise at most 10 arguments of at most 16384 bytes pass,
    /// if the other limits are not stricter yet.
    pub authenticated: bool,
}

impl Limits {
    /// Redis 7.2's limits for a client that has authenticated; `max_bulk` is `proto-max-bulk-len`.
    pub const fn new(max_bulk: usize) -> Self {
        // Redis: the count of arguments must fit an int.
        Limits { max_multibulk: i32::MAX as usize, max_bulk, max_inline: 64 * 1024, authenticated: true }
    }

    /// The limits for a client that still has to authenticate.
    pub const fn unauthenticated(max_bulk: usize) -> Self {
        Limits { authenticated: false, ..Limits::new(max_bulk) }
    }

    fn check_multibulk(&self, count: usize) -> Result<(), ProtocolError> {
        if self.authenticated {
            if count > self.max_multibulk {
                return Err(ProtocolError::InvalidMultibulkLength);
            }
        } else if count > i32::MAX as usize {
            return Err(ProtocolError::InvalidMultibulkLength);
        } else if count > self.max_multibulk.min(UNAUTHENTICATED_MULTIBULK) {
            return Err(ProtocolError::UnauthenticatedMultibulkLength);
        }
        Ok(())
    }

    fn check_bulk(&self, len: usize) -> Result<(), ProtocolError> {
        if len > self.max_bulk && (self.authenticated || self.max_bulk > UNAUTHENTICATED_BULK) {
            return Err(ProtocolError::InvalidBulkLength);
        }
        if !self.authenticated && len > self.max_bulk.min(UNAUTHENTICATED_BULK) {
            return Err(ProtocolError::UnauthenticatedBulkLength);
        }
        Ok(())
    }
}

impl Default for Limits {
    /// The limits of an authenticated client with the default `proto-max-bulk-len` of 512 MiB.
    fn default() -> Self {
        Limits::new(512 * 1024 * 1024)
    }
}

/// One request as ranges into the buffer it was parsed from. Reuse it: then parsing does not allocate.
#[derive(Debug, Default)]
pub struct Request {
    ranges: Vec<Range>,
    /// The arguments of an inline request with their quotes resolved; the ranges point in here if `is_inline`.
    inline: Vec<u8>,
    is_inline: bool,
    consumed: usize,
}

impl Request {
    /// An empty request.
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets the arguments, and gives back memory that an unusually big request took.
    #[inline]
    pub fn clear(&mut self) {
        self.ranges.clear();
        self.consumed = 0;
        self.is_inline = false;
        if self.ranges.capacity() > KEPT_RANGES || self.inline.capacity() > KEPT_INLINE {
            self.give_back();
        }
    }

    #[cold]
    fn give_back(&mut self) {
        self.ranges.shrink_to(16);
        self.inline = Vec::new();
    }

    /// Number of arguments, the command name included.
    #[inline]
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Whether no request has been parsed into this.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The arguments; `buf` is the buffer that [`parse_request`] was given.
    #[inline]
    pub fn args<'a>(&'a self, buf: &'a [u8]) -> Args<'a> {
        Args::from_ranges(if self.is_inline { &self.inline } else { buf }, &self.ranges)
    }

    /// Whether the request lies at the very start of `buf`, which [`parse_request`] was given, in the form in which
    /// [`crate::write_command`] writes it. Then a reader that is stricter than we are takes its bytes for the same request,
    /// and they can be sent on as they are.
    #[inline]
    pub fn is_canonical(&self, buf: &[u8]) -> bool {
        if self.is_inline || buf.first() != Some(&b'*') {
            return false;
        }
        // What stands before the first argument; between arguments, the end of one and the header of the next are looked at.
        let mut at = 1 + digits(self.ranges.len());
        let ends_line = |at: usize| buf.get(at..).and_then(|rest| rest.first_chunk()) == Some(b"\r\n");
        for range in &self.ranges {
            let header = at + 2;
            let end = header + 1 + digits(range.len);
            if !ends_line(at) || !ends_line(end) || end + 2 != range.start {
                return false;
            }
            at = range.start + range.len;
        }
        ends_line(at) && at + 2 == self.consumed
    }

    /// Bytes of the buffer that the request took, counted from its start; empty lines in front of it are included.
    #[inline]
    pub fn consumed(&self) -> usize {
        self.consumed
    }
}

/// Decimal digits of a number.
#[inline]
fn digits(number: usize) -> usize {
    match number {
        0..10 => 1,
        10..100 => 2,
        _ => number.checked_ilog10().map_or(1, |log| log as usize + 1),
    }
}

/// What [`parse_request`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Parse {
    /// A request was filled in; [`Request::consumed`] says how many bytes it took.
    Request,
    /// The buffer starts with [`Request::consumed`] bytes that hold no request (empty lines, `*0`, `*-1`): drop them.
    /// What follows is no complete request.
    Empty,
    /// The buffer starts with an incomplete request.
    Incomplete {
        /// Bytes that must be in the buffer before parsing again can get further.
        need: usize,
    },
    /// Not the protocol: reply with the error, then close the connection.
    Error(ProtocolError),
}

/// Where the parser stands in a request that is incomplete yet. Belongs to the start of the buffer: keep the buffer
/// from there on until the request is complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParseState {
    /// Start of the next header that has not been passed; 0 before the first.
    pos: usize,
    /// Arguments left from `pos` on.
    remaining: u32,
    /// Bytes from `pos` on that hold no end of line.
    searched: u32,
}

impl ParseState {
    /// The state between two requests.
    pub const fn new() -> Self {
        ParseState { pos: 0, remaining: 0, searched: 0 }
    }

    /// Whether an incomplete request has been seen.
    #[inline]
    pub fn is_partial(&self) -> bool {
        *self != ParseState::new()
    }
}

/// Why the scan of the buffer's front stopped without a request.
enum Stop {
    Incomplete { need: usize },
    Error(ProtocolError),
}

/// Looks for one request at the start of `buf`.
///
/// Call it again with the rest of the buffer after [`Parse::Request`], and with the same buffer plus new bytes (and the
/// same `state`) after [`Parse::Incomplete`].
// Into the loop that reads a pipeline, whoever else calls it.
#[inline(always)]
pub fn parse_request(buf: &[u8], state: &mut ParseState, limits: &Limits, out: &mut Request) -> Parse {
    out.clear();
    if state.is_partial() {
        return resume(buf, state, limits, out);
    }
    if limits.max_bulk >= SHORT_BULK && limits.max_multibulk >= SHORT_MULTIBULK && limits.authenticated {
        if let Some(end) = short_multibulk(buf, &mut out.ranges) {
            out.consumed = end;
            return Parse::Request;
        }
        out.ranges.clear();
    }
    parse_from(buf, 0, state, limits, out)
}

/// Most arguments that [`short_multibulk`] knows.
const SHORT_MULTIBULK: usize = 99;
/// Longest argument that it knows.
const SHORT_BULK: usize = 99;

/// What nearly all requests are: a multibulk of few and short arguments, all of it there. Gives its end; `None` when it
/// is anything else, and then `ranges` may hold some of it.
#[inline]
fn short_multibulk(buf: &[u8], ranges: &mut Vec<Range>) -> Option<usize> {
    let (count, mut pos) = match *buf {
        [b'*', one @ b'1'..=b'9', b'\r', b'\n', ..] => (one - b'0', 4),
        [b'*', ten @ b'1'..=b'9', one @ b'0'..=b'9', b'\r', b'\n', ..] => ((ten - b'0') * 10 + one - b'0', 5),
        _ => return None,
    };
    for _ in 0..count {
        let (header, len) = short_header(buf.get(pos..)?)?;
        let start = pos + header;
        pos = start + len + 2;
        if pos > buf.len() {
            return None;
        }
        ranges.push(Range { start, len });
    }
    Some(pos)
}

/// Parses at `base`, with only empty requests in front of it.
fn parse_from(buf: &[u8], mut base: usize, state: &mut ParseState, limits: &Limits, out: &mut Request) -> Parse {
    loop {
        let found = match buf.get(base) {
            None => Err(Stop::Incomplete { need: base + 1 }),
            Some(b'*') => multibulk(buf, base, state, limits, out),
            Some(_) => inline(buf, base, state, limits, out),
        };
        match found {
            Ok(end) => {
                *state = ParseState::new();
                out.consumed = end;
                if !out.ranges.is_empty() {
                    return Parse::Request;
                }
                base = end;
            }
            Err(Stop::Error(error)) => return Parse::Error(error),
            Err(Stop::Incomplete { need }) if base == 0 => return Parse::Incomplete { need },
            Err(Stop::Incomplete { .. }) => {
                // The state would count from `base`; it is cheaper to look again once the empty part is dropped.
                *state = ParseState::new();
                out.clear();
                out.consumed = base;
                return Parse::Empty;
            }
        }
    }
}

/// Goes on with a request that was incomplete.
#[cold]
fn resume(buf: &[u8], state: &mut ParseState, limits: &Limits, out: &mut Request) -> Parse {
    if state.remaining == 0 {
        return parse_from(buf, 0, state, limits, out);
    }
    match bulks(buf, state, limits, &mut |_| {}) {
        Err(Stop::Error(error)) => Parse::Error(error),
        Err(Stop::Incomplete { need }) => Parse::Incomplete { need },
        Ok(_) => {
            // All of it is here: collect the ranges.
            *state = ParseState::new();
            parse_from(buf, 0, state, limits, out)
        }
    }
}

/// Parses a multibulk at `base` into `out`; gives its end.
#[inline]
fn multibulk(
    buf: &[u8],
    base: usize,
    state: &mut ParseState,
    limits: &Limits,
    out: &mut Request,
) -> Result<usize, Stop> {
    let rest = buf.get(base..).unwrap_or(&[]);
    let (count, end) = match *rest {
        [_, digit @ b'1'..=b'9', b'\r', _, ..] => (i64::from(digit - b'0'), base + 4),
        _ => length_line(buf, base, state, limits, ProtocolError::TooBigMultibulkCount)?
            .ok_or(Stop::Error(ProtocolError::InvalidMultibulkLength))?,
    };
    let Ok(count) = usize::try_from(count) else {
        return Ok(end);
    };
    if count > UNAUTHENTICATED_MULTIBULK || count > limits.max_multibulk {
        limits.check_multibulk(count).map_err(Stop::Error)?;
    }
    let remaining = u32::try_from(count).map_err(|_| Stop::Error(ProtocolError::InvalidMultibulkLength))?;
    *state = ParseState { pos: end, remaining, searched: 0 };
    // An empty inline line may have gone before.
    out.is_inline = false;
    let ranges = &mut out.ranges;
    bulks(buf, state, limits, &mut |range| ranges.push(range))
}

/// Passes the bulks that `state` still expects, giving each to `visit`; gives the end of the last.
#[inline]
fn bulks(buf: &[u8], state: &mut ParseState, limits: &Limits, visit: &mut impl FnMut(Range)) -> Result<usize, Stop> {
    let mut pos = state.pos;
    let mut remaining = state.remaining;
    let mut rest = buf.get(pos..).unwrap_or(&[]);
    while remaining > 0 {
        let (header, len) = match short_header(rest) {
            Some(found) => found,
            None => {
                if state.pos != pos {
                    *state = ParseState { pos, remaining, searched: 0 };
                }
                bulk_header(buf, pos, state, limits)?
            }
        };
        if len > limits.max_bulk {
            limits.check_bulk(len).map_err(Stop::Error)?;
        }
        let size = header + len + 2;
        let Some(next) = rest.get(size..) else {
            *state = ParseState { pos, remaining, searched: 0 };
            return Err(Stop::Incomplete { need: pos + size });
        };
        visit(Range { start: pos + header, len });
        pos += size;
        rest = next;
        remaining -= 1;
    }
    Ok(pos)
}

/// The header of a bulk of up to 99 bytes, compared as one word: bytes of the header and of the bulk.
#[inline]
fn short_header(rest: &[u8]) -> Option<(usize, usize)> {
    const ONE_DIGIT: u32 = u32::from_le_bytes([b'$', 0, b'\r', 0]);
    const TWO_DIGITS: u32 = u32::from_le_bytes([b'$', 0, 0, b'\r']);
    let word = u32::from_le_bytes(*rest.first_chunk()?);
    let first = (word >> 8 & 0xff).wrapping_sub(u32::from(b'0'));
    if word & 0x00ff_00ff == ONE_DIGIT && first < 10 {
        return Some((4, first as usize));
    }
    let second = (word >> 16 & 0xff).wrapping_sub(u32::from(b'0'));
    if word & 0xff00_00ff == TWO_DIGITS && first.wrapping_sub(1) < 9 && second < 10 && rest.len() > 4 {
        return Some((5, (first * 10 + second) as usize));
    }
    None
}

/// The general form of a bulk header: gives the bytes of the header and of the bulk.
#[cold]
fn bulk_header(buf: &[u8], pos: usize, state: &mut ParseState, limits: &Limits) -> Result<(usize, usize), Stop> {
    let line = length_line(buf, pos, state, limits, ProtocolError::TooBigBulkCount)?;
    // Redis: the `$` is looked at only when the line is complete.
    match buf.get(pos) {
        Some(b'$') => {}
        other => {
            return Err(Stop::Error(ProtocolError::ExpectedDollar(other.copied().unwrap_or(0))));
        }
    }
    let invalid = Stop::Error(ProtocolError::InvalidBulkLength);
    let Some((len, start)) = line else {
        return Err(invalid);
    };
    let Ok(len) = usize::try_from(len) else {
        return Err(invalid);
    };
    limits.check_bulk(len).map_err(Stop::Error)?;
    // No buffer can ever hold more, and the sums below cannot overflow.
    if len > isize::MAX as usize - start - 2 {
        return Err(invalid);
    }
    Ok((start - pos, len))
}

/// Reads the number between the mark at `pos` and the end of its line: the number and where the line ends, or `None` if
/// it is no number.
fn length_line(
    buf: &[u8],
    pos: usize,
    state: &mut ParseState,
    limits: &Limits,
    too_big: ProtocolError,
) -> Result<Option<(i64, usize)>, Stop> {
    let rest = buf.get(pos..).unwrap_or(&[]);
    let at = line_end(rest, b'\r', pos, state, limits, too_big)?;
    let end = pos + at + 2;
    if buf.len() < end {
        state.searched = u32::try_from(at).unwrap_or(0);
        return Err(Stop::Incomplete { need: end });
    }
    state.searched = 0;
    Ok(rest.get(1..at).and_then(parse_length).map(|number| (number, end)))
}

/// Finds `mark` in `rest`, which starts at `pos`, going on from where `state` left off.
fn line_end(
    rest: &[u8],
    mark: u8,
    pos: usize,
    state: &mut ParseState,
    limits: &Limits,
    too_big: ProtocolError,
) -> Result<usize, Stop> {
    let from = (state.searched as usize).min(rest.len());
    let seen = match memchr2(mark, 0, rest.get(from..).unwrap_or(&[])) {
        Some(at) if rest.get(from + at) == Some(&mark) => return Ok(from + at),
        Some(at) => from + at,
        None => rest.len(),
    };
    if rest.len() > limits.max_inline {
        return Err(Stop::Error(too_big));
    }
    state.searched = u32::try_from(seen).unwrap_or(0);
    Err(Stop::Incomplete { need: pos + rest.len() + 1 })
}

/// A decimal number as Redis accepts it in a length: no sign but `-`, no leading zeros, no spaces.
pub(crate) fn parse_length(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [] => return None,
        [b'0', ..] if negative || digits.len() > 1 => return None,
        _ => {}
    }
    let mut number: i64 = 0;
    for &byte in digits {
        if !byte.is_ascii_digit() {
            return None;
        }
        let digit = i64::from(byte - b'0');
        number = number.checked_mul(10)?;
        number = if negative { number.checked_sub(digit)? } else { number.checked_add(digit)? };
    }
    Some(number)
}

/// Parses an inline request at `base` into `out`; gives its end. No arguments when the line is empty.
#[cold]
fn inline(buf: &[u8], base: usize, state: &mut ParseState, limits: &Limits, out: &mut Request) -> Result<usize, Stop> {
    let rest = buf.get(base..).unwrap_or(&[]);
    let newline = line_end(rest, b'\n', base, state, limits, ProtocolError::TooBigInline)?;
    let line = rest.get(..newline).unwrap_or(&[]);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    out.inline.clear();
    out.is_inline = true;
    match split_into(line, &mut out.inline, &mut out.ranges) {
        Some(()) => Ok(base + newline + 1),
        None => {
            out.ranges.clear();
            Err(Stop::Error(ProtocolError::UnbalancedQuotes))
        }
    }
}
