//! A stream of replies passed on in pieces: a proxy's path.
//!
//! Hot path: no allocation, no copy; a short reply costs one comparison of its header. Unlike [`crate::skip_reply`] this
//! needs no whole reply in one buffer: whatever is not an incomplete header line can be passed on at once, and
//! [`Passing`] knows what of the present reply is still to come. So a reply of megabytes is never gathered.

use memchr::memchr;

use crate::request::parse_length;
use crate::value::ReplyError;

/// Longest header or line that is waited for.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// What of the present reply is still to come. New between two replies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passing {
    /// Values of it that are not passed yet, the one being passed included; 0 between two replies.
    values: u64,
    /// Bytes of the bulk being passed that are not there yet, its line's end included.
    body: u64,
}

/// How far [`Passing::pass`] came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed {
    /// Bytes that may be passed on.
    pub bytes: usize,
    /// Replies that end within them.
    pub replies: u32,
    /// Bytes up to the end of the last of these; what follows is a part of the next one.
    pub whole: usize,
    /// Why it stopped there.
    pub stop: Stop,
}

/// Why [`Passing::pass`] stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// As many replies as were asked for have ended.
    Enough,
    /// All of the buffer is used, but for an incomplete line.
    Used,
    /// What follows is a whole error line of this many bytes, its end included: a reply that is not counted yet. Tell with
    /// [`Passing::pass_error`] that it was passed on, or leave it out.
    Error(usize),
    /// What follows begins a push message, which answers no request. Pass it by [`Passing::pass_push`].
    Push,
}

enum Line {
    /// Ends here and has no elements.
    Value(usize),
    /// The line of a bulk ends here; so many bytes follow, the line's end included.
    Bulk(usize, u64),
    /// The line of an aggregate ends here; so many values follow.
    Aggregate(usize, u64),
    /// The line of attributes ends here; so many values follow, and then what they belong to.
    Attributes(usize, u64),
    Incomplete,
}

impl Passing {
    /// The state between two replies.
    pub const fn new() -> Passing {
        Passing { values: 0, body: 0 }
    }

    /// Whether a part of a reply was passed on and a part is to come.
    #[inline]
    pub fn is_within(&self) -> bool {
        self.values != 0
    }

    /// Passes up to `most` replies (at least one).
    ///
    /// # Errors
    /// When the bytes are no RESP2 or RESP3.
    pub fn pass(&mut self, buf: &[u8], most: u32) -> Result<Passed, ReplyError> {
        let (mut at, mut replies, mut whole) = (0, 0, 0);
        while replies < most {
            if self.values == 0 {
                while let Some(len) = short_reply(buf.get(at..).unwrap_or(&[])) {
                    at += len;
                    replies += 1;
                    if replies == most {
                        return Ok(Passed { bytes: at, replies, whole: at, stop: Stop::Enough });
                    }
                    whole = at;
                }
                match buf.get(at) {
                    None => break,
                    Some(b'-') => {
                        let stop = error_line(buf.get(at..).unwrap_or(&[]))?.map_or(Stop::Used, Stop::Error);
                        return Ok(Passed { bytes: at, replies, whole, stop });
                    }
                    Some(b'>') => return Ok(Passed { bytes: at, replies, whole, stop: Stop::Push }),
                    Some(_) => {}
                }
            }
            let Some(end) = self.value(buf, at)? else { break };
            at = end;
            if self.values == 0 {
                replies += 1;
                whole = at;
            }
        }
        let stop = if replies == most { Stop::Enough } else { Stop::Used };
        Ok(Passed { bytes: at, replies, whole, stop })
    }

    /// The error line that [`Stop::Error`] told of was passed on: nothing to remember, a line is never passed in parts.
    #[inline]
    pub fn pass_error(&mut self) {
        debug_assert_eq!(self.values, 0, "errors end a run between two replies");
    }

    /// Passes a push message: the bytes used of `buf`, and whether it has ended.
    ///
    /// # Errors
    /// When the bytes are no RESP3.
    pub fn pass_push(&mut self, buf: &[u8]) -> Result<(usize, bool), ReplyError> {
        let mut at = 0;
        while let Some(end) = self.value(buf, at)? {
            at = end;
            if self.values == 0 {
                return Ok((at, true));
            }
        }
        Ok((at, false))
    }

    /// Passes what there is of one value, or of the body of a bulk; gives where it ends. `None`: nothing can be passed.
    fn value(&mut self, buf: &[u8], at: usize) -> Result<Option<usize>, ReplyError> {
        let rest = buf.get(at..).unwrap_or(&[]);
        if rest.is_empty() {
            return Ok(None);
        }
        if self.body > 0 {
            let there = usize::try_from(self.body).unwrap_or(usize::MAX).min(rest.len());
            self.body -= there as u64;
            if self.body == 0 {
                self.values -= 1;
            }
            return Ok(Some(at + there));
        }
        if self.values > 0
            && let Some(len) = short_reply(rest)
        {
            self.values -= 1;
            return Ok(Some(at + len));
        }
        let line = line(rest)?;
        if matches!(line, Line::Incomplete) {
            return if rest.len() > LINE_BYTES_MAX { Err(ReplyError::Line) } else { Ok(None) };
        }
        self.values = self.values.max(1);
        Ok(Some(
            at + match line {
                Line::Incomplete => 0,
                Line::Value(end) => {
                    self.values -= 1;
                    end
                }
                Line::Bulk(end, body) => {
                    self.body = body;
                    end
                }
                Line::Aggregate(end, count) => {
                    self.values = (self.values - 1).checked_add(count).ok_or(ReplyError::Length)?;
                    end
                }
                Line::Attributes(end, count) => {
                    self.values = self.values.checked_add(count).ok_or(ReplyError::Length)?;
                    end
                }
            },
        ))
    }
}

/// The length of the reply at the start of `rest` if it is a short one and all there: a bulk of up to 99 bytes, a null, a
/// small number, a status.
#[inline]
fn short_reply(rest: &[u8]) -> Option<usize> {
    let word = *rest.first_chunk::<4>()?;
    let len = match word {
        [b'$', one @ b'0'..=b'9', b'\r', b'\n'] => 4 + usize::from(one - b'0') + 2,
        [b'$', ten @ b'1'..=b'9', one @ b'0'..=b'9', b'\r'] => {
            5 + usize::from(ten - b'0') * 10 + usize::from(one - b'0') + 2
        }
        [b':', b'0'..=b'9', b'\r', b'\n'] => return Some(4),
        [b'+', b'O', b'K', b'\r'] | [b'$', b'-', b'1', b'\r'] | [b'*', b'-', b'1', b'\r'] => 5,
        [b'_', b'\r', b'\n', _] => return Some(3),
        _ => return None,
    };
    (rest.len() >= len).then_some(len)
}

/// The length of the error line that `rest` begins with; `None` when its end is not there yet.
fn error_line(rest: &[u8]) -> Result<Option<usize>, ReplyError> {
    match line(rest)? {
        Line::Value(end) => Ok(Some(end)),
        _ if rest.len() > LINE_BYTES_MAX => Err(ReplyError::Line),
        _ => Ok(None),
    }
}

fn line(rest: &[u8]) -> Result<Line, ReplyError> {
    let Some(&mark) = rest.first() else {
        return Ok(Line::Incomplete);
    };
    if !matches!(
        mark,
        b'+' | b'-' | b':' | b',' | b'#' | b'_' | b'(' | b'$' | b'=' | b'!' | b'*' | b'~' | b'>' | b'%' | b'|'
    ) {
        return Err(ReplyError::Type(mark));
    }
    let Some(at) = memchr(b'\r', rest) else {
        return Ok(Line::Incomplete);
    };
    match rest.get(at + 1) {
        None => return Ok(Line::Incomplete),
        Some(b'\n') => {}
        Some(_) => return Err(ReplyError::Line),
    }
    let end = at + 2;
    if matches!(mark, b'+' | b'-' | b':' | b',' | b'#' | b'_' | b'(') {
        return Ok(Line::Value(end));
    }
    let length = rest.get(1..at).and_then(parse_length).ok_or(ReplyError::Length)?;
    let Ok(length) = u64::try_from(length) else {
        let is_null = length == -1 && matches!(mark, b'$' | b'*');
        return if is_null { Ok(Line::Value(end)) } else { Err(ReplyError::Length) };
    };
    match mark {
        b'$' | b'=' | b'!' => Ok(Line::Bulk(end, length.checked_add(2).ok_or(ReplyError::Length)?)),
        b'%' => Ok(Line::Aggregate(end, length.checked_mul(2).ok_or(ReplyError::Length)?)),
        b'|' => Ok(Line::Attributes(end, length.checked_mul(2).ok_or(ReplyError::Length)?)),
        _ => Ok(Line::Aggregate(end, length)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;
    use crate::{SkipState, skip_reply};
    use proptest::prelude::*;

    const STREAM: &[u8] = b"+OK\r\n$3\r\nfoo\r\n:1\r\n:-12345\r\n$-1\r\n_\r\n*-1\r\n*0\r\n$0\r\n\r\n*3\r\n:1\r\n*2\r\n$2\r\nab\r\n+x\r\n$-1\r\n\
        %1\r\n+k\r\n#t\r\n|1\r\n+a\r\n:1\r\n,1.5\r\n~2\r\n(1234567890123456789\r\n=7\r\ntxt:abc\r\n!5\r\nERR x\r\n$12\r\nhello, world\r\n+PONG\r\n";

    /// Passes a stream that comes in pieces; gives what was passed on and where each reply ended.
    fn pass_all(stream: &[u8], pieces: impl Iterator<Item = usize>, most: u32) -> (Vec<u8>, Vec<usize>) {
        let (mut passing, mut passed_on, mut ends) = (Passing::new(), Vec::new(), Vec::new());
        let (mut kept, mut given) = (Vec::new(), 0);
        let mut pieces = pieces;
        while given < stream.len() || !kept.is_empty() {
            let piece = pieces.next().unwrap_or(usize::MAX).max(1).min(stream.len() - given);
            kept.extend_from_slice(&stream[given..given + piece]);
            given += piece;
            loop {
                let passed = passing.pass(&kept, most).unwrap();
                let mut bytes = passed.bytes;
                // The first bytes of one more may have been passed on behind the whole ones.
                ends.extend((0..passed.replies).map(|_| passed_on.len() + passed.whole));
                if let Stop::Error(len) = passed.stop {
                    bytes += len;
                    ends.push(passed_on.len() + bytes);
                }
                passed_on.extend_from_slice(&kept[..bytes]);
                kept.drain(..bytes);
                if passed.stop == Stop::Used {
                    break;
                }
            }
            if given == stream.len() {
                break;
            }
        }
        assert!(kept.is_empty(), "left: {:?}", kept.escape_ascii().to_string());
        assert!(!passing.is_within());
        (passed_on, ends)
    }

    fn ends_by_skipping(stream: &[u8]) -> Vec<usize> {
        let (mut at, mut ends) = (0, Vec::new());
        while at < stream.len() {
            at += skip_reply(&stream[at..], &mut SkipState::new()).unwrap().unwrap().consumed;
            ends.push(at);
        }
        ends
    }

    #[test]
    fn replies_end_where_the_other_reader_ends_them() {
        let mut stream = STREAM.to_vec();
        stream.extend_from_slice(b"-ERR no\r\n+OK\r\n");
        let (bytes, ends) = pass_all(&stream, std::iter::empty(), 1);
        assert_eq!(bytes, stream);
        assert_eq!(ends, ends_by_skipping(&stream));
    }

    #[test]
    fn a_body_is_passed_on_before_it_has_ended() {
        let mut passing = Passing::new();
        let passed = passing.pass(b"$1000\r\nabc", 5).unwrap();
        assert_eq!(passed, Passed { bytes: 10, replies: 0, whole: 0, stop: Stop::Used });
        assert!(passing.is_within());
        let passed = passing.pass(&[b'x'; 990], 5).unwrap();
        assert_eq!((passed.bytes, passed.replies), (990, 0));
        let passed = passing.pass(b"xxxxxxx\r\n+OK\r\n", 5).unwrap();
        assert_eq!((passed.bytes, passed.replies), (14, 2));
    }

    #[test]
    fn errors_and_pushes_stop_a_run() {
        let mut passing = Passing::new();
        let passed = passing.pass(b"+OK\r\n-MOVED 1 a:1\r\n+OK\r\n", 9).unwrap();
        assert_eq!(passed, Passed { bytes: 5, replies: 1, whole: 5, stop: Stop::Error(14) });
        let passed = passing.pass(b":1\r\n>2\r\n+a\r\n+b\r\n:2\r\n", 9).unwrap();
        assert_eq!(passed, Passed { bytes: 4, replies: 1, whole: 4, stop: Stop::Push });
        assert_eq!(passing.pass_push(b">2\r\n+a\r\n+b\r\n:2\r\n").unwrap(), (12, true));
        assert_eq!(passing.pass(b"-ERR half", 9).unwrap(), Passed { bytes: 0, replies: 0, whole: 0, stop: Stop::Used });
    }

    #[test]
    fn nonsense_is_an_error() {
        for bytes in [&b"hello\r\n"[..], b"$x\r\n", b"+a\rb", b"*-2\r\n", b"$-5\r\n", b"%9223372036854775808\r\n"] {
            assert!(Passing::new().pass(bytes, 1).is_err(), "{}", bytes.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn pieces_do_not_matter(pieces in proptest::collection::vec(1_usize..9, 0..300), most in 1_u32..5) {
            let (bytes, ends) = pass_all(STREAM, pieces.into_iter(), most);
            prop_assert_eq!(bytes, STREAM);
            // Replies that were passed on together are known by the end of their last.
            let each = ends_by_skipping(STREAM);
            prop_assert_eq!(ends.len(), each.len());
            prop_assert!(ends.iter().zip(&each).all(|(end, own)| end >= own && each.contains(end)), "{:?}", ends);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut passing = Passing::new();
            if let Ok(passed) = passing.pass(&bytes, 3) {
                prop_assert!(passed.bytes <= bytes.len());
            }
        }
    }
}
