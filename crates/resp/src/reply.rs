//! Writing replies, as a server does, in the protocol version that the client asked for.
//!
//! Hot path: a short integer, bulk or array header is one append of a few bytes; nothing is formatted.
//!
//! RESP2 has no maps, sets, booleans, doubles and so on; each writer falls back to what Redis sends then:
//!
//! | writer       | RESP2            | RESP3          |
//! |--------------|------------------|----------------|
//! | `null`       | `$-1`            | `_`            |
//! | `null_array` | `*-1`            | `_`            |
//! | `map(n)`     | `*2n`            | `%n`           |
//! | `set(n)`     | `*n`             | `~n`           |
//! | `push(n)`    | `*n`             | `>n`           |
//! | `bool`       | `:1` or `:0`     | `#t` or `#f`   |
//! | `double`     | bulk             | `,text`        |
//! | `big_number` | bulk             | `(text`        |
//! | `verbatim`   | bulk             | `=len` `ext:…` |

use std::io::Write as _;

#[cfg(test)]
mod tests;

/// Version of the protocol that a connection speaks; HELLO changes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Proto {
    /// RESP2, which every connection starts with.
    #[default]
    Resp2,
    /// RESP3.
    Resp3,
}

/// Where the header of an array, map or set of unknown length will go. See [`Reply::defer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "without a finish_… the reply has a hole"]
pub struct Deferred(usize);

/// Room left by [`Reply::defer`]: a header of one digit, so that small replies need not be moved.
const DEFERRED_ROOM: [u8; 4] = *b"*0\r\n";
/// Capacity kept by [`Reply::clear`].
const KEPT_CAPACITY: usize = 64 * 1024;

/// A buffer of replies and the protocol version they are written in.
#[derive(Debug, Default)]
pub struct Reply {
    /// The bytes written so far.
    pub buf: Vec<u8>,
    proto: Proto,
}

impl Reply {
    /// An empty buffer that writes RESP2.
    pub fn new() -> Self {
        Self::default()
    }

    /// Goes on writing behind what `buf` holds. Take the bytes back from the public field.
    pub fn with_buffer(buf: Vec<u8>, proto: Proto) -> Self {
        Reply { buf, proto }
    }

    /// Takes what is written out, leaving an empty buffer.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.buf)
    }

    /// Writes into `buf` from here on, behind what it holds; gives back the buffer written so far.
    #[inline]
    pub fn swap_buffer(&mut self, buf: Vec<u8>) -> Vec<u8> {
        std::mem::replace(&mut self.buf, buf)
    }

    /// Sets the protocol version for what is written from now on.
    #[inline]
    pub fn set_proto(&mut self, proto: Proto) {
        self.proto = proto;
    }

    /// The protocol version.
    #[inline]
    pub fn proto(&self) -> Proto {
        self.proto
    }

    /// Whether the client speaks RESP3.
    #[inline]
    pub fn is_resp3(&self) -> bool {
        self.proto == Proto::Resp3
    }

    /// Bytes written so far.
    #[inline]
    pub fn len(&self) -> usize {
        self.buf.len()
    }

    /// Whether nothing has been written.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.buf.is_empty()
    }

    /// The bytes written so far.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        &self.buf
    }

    /// Takes back everything written after the first `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        self.buf.truncate(len);
    }

    /// Empties the buffer; keeps its memory unless it grew beyond 64 KiB.
    pub fn clear(&mut self) {
        self.buf.clear();
        self.buf.shrink_to(KEPT_CAPACITY);
    }

    /// Appends bytes that are in the protocol already.
    #[inline]
    pub fn raw(&mut self, bytes: &[u8]) {
        self.buf.extend_from_slice(bytes);
    }

    /// `+text`. The text must hold no CR or LF.
    pub fn simple(&mut self, text: impl AsRef<[u8]>) {
        let text = text.as_ref();
        self.buf.reserve(text.len() + 3);
        self.buf.push(b'+');
        self.buf.extend_from_slice(text);
        self.buf.extend_from_slice(b"\r\n");
    }

    /// `+OK`.
    #[inline]
    pub fn ok(&mut self) {
        self.buf.extend_from_slice(b"+OK\r\n");
    }

    /// `-text`, where the text starts with its code (`WRONGTYPE …`). CR and LF at its ends are dropped, others become
    /// spaces.
    pub fn error(&mut self, text: impl AsRef<[u8]>) {
        self.error_line(b"-", text.as_ref());
    }

    /// `-ERR text`, otherwise like [`Reply::error`].
    pub fn err(&mut self, text: impl AsRef<[u8]>) {
        self.error_line(b"-ERR ", text.as_ref());
    }

    fn error_line(&mut self, mark: &[u8], mut text: &[u8]) {
        while let [b'\r' | b'\n', rest @ ..] | [rest @ .., b'\r' | b'\n'] = text {
            text = rest;
        }
        self.buf.reserve(text.len() + 8);
        self.buf.extend_from_slice(mark);
        self.buf.extend(text.iter().map(|&byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte }));
        self.buf.extend_from_slice(b"\r\n");
    }

    /// `:value`.
    #[inline]
    pub fn int(&mut self, value: i64) {
        match usize::try_from(value) {
            Ok(value) => header(&mut self.buf, b':', value),
            Err(_) => self.int_line(value),
        }
    }

    #[cold]
    fn int_line(&mut self, value: i64) {
        self.buf.push(b':');
        self.buf.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
        self.buf.extend_from_slice(b"\r\n");
    }

    /// A length or count as `:value`.
    #[inline]
    pub fn count(&mut self, value: usize) {
        header(&mut self.buf, b':', value);
    }

    /// `$len` and the bytes.
    #[inline]
    pub fn bulk(&mut self, bytes: impl AsRef<[u8]>) {
        let bytes = bytes.as_ref();
        self.buf.reserve(bytes.len() + 24);
        header(&mut self.buf, b'$', bytes.len());
        self.buf.extend_from_slice(bytes);
        self.buf.extend_from_slice(b"\r\n");
    }

    /// A number as the bulk of its decimal text.
    pub fn bulk_int(&mut self, value: i64) {
        self.bulk(itoa::Buffer::new().format(value).as_bytes());
    }

    /// A formatted text as a bulk: `reply.bulk_fmt(format_args!("{a}-{b}"))`.
    pub fn bulk_fmt(&mut self, text: std::fmt::Arguments<'_>) {
        if let Some(text) = text.as_str() {
            return self.bulk(text);
        }
        let start = self.buf.len();
        // Writing to a Vec cannot fail.
        let _ = self.buf.write_fmt(text);
        let len = self.buf.len() - start;
        self.insert_header(start, 0, b'$', len);
        self.buf.extend_from_slice(b"\r\n");
    }

    /// The absent value: `$-1` or `_`.
    #[inline]
    pub fn null(&mut self) {
        let bytes: &[u8] = if self.is_resp3() { b"_\r\n" } else { b"$-1\r\n" };
        self.buf.extend_from_slice(bytes);
    }

    /// The absent array: `*-1` or `_`.
    pub fn null_array(&mut self) {
        let bytes: &[u8] = if self.is_resp3() { b"_\r\n" } else { b"*-1\r\n" };
        self.buf.extend_from_slice(bytes);
    }

    /// An array without elements.
    pub fn empty_array(&mut self) {
        self.buf.extend_from_slice(b"*0\r\n");
    }

    /// Header of an array; `len` elements follow.
    #[inline]
    pub fn array(&mut self, len: usize) {
        header(&mut self.buf, b'*', len);
    }

    /// Header of a map; `len` keys and values follow in turn.
    #[inline]
    pub fn map(&mut self, len: usize) {
        let (mark, len) = self.map_header(len);
        header(&mut self.buf, mark, len);
    }

    /// Header of a set; `len` elements follow.
    #[inline]
    pub fn set(&mut self, len: usize) {
        let mark = self.mark(b'~');
        header(&mut self.buf, mark, len);
    }

    /// Header of a message that answers no request; `len` elements follow.
    #[inline]
    pub fn push(&mut self, len: usize) {
        let mark = self.mark(b'>');
        header(&mut self.buf, mark, len);
    }

    /// Header of attributes; `len` keys and values follow in turn, then the reply they belong to. RESP2 has none: then
    /// this writes nothing and returns `false`, and the caller leaves the keys and values out.
    pub fn attribute(&mut self, len: usize) -> bool {
        if self.is_resp3() {
            header(&mut self.buf, b'|', len);
        }
        self.is_resp3()
    }

    /// A truth value.
    pub fn bool(&mut self, value: bool) {
        let bytes: &[u8] = match (self.proto, value) {
            (Proto::Resp2, false) => b":0\r\n",
            (Proto::Resp2, true) => b":1\r\n",
            (Proto::Resp3, false) => b"#f\r\n",
            (Proto::Resp3, true) => b"#t\r\n",
        };
        self.buf.extend_from_slice(bytes);
    }

    /// A double, by the text of [`crate::num::write_double`].
    pub fn double(&mut self, value: f64) {
        if self.is_resp3() {
            self.buf.push(b',');
            crate::num::write_double(&mut self.buf, value);
        } else {
            let start = self.buf.len();
            crate::num::write_double(&mut self.buf, value);
            let len = self.buf.len() - start;
            self.insert_header(start, 0, b'$', len);
        }
        self.buf.extend_from_slice(b"\r\n");
    }

    /// A double whose text the caller has made.
    pub fn double_text(&mut self, text: impl AsRef<[u8]>) {
        self.line_or_bulk(b',', text.as_ref());
    }

    /// An integer of any size, given as its text.
    pub fn big_number(&mut self, text: impl AsRef<[u8]>) {
        self.line_or_bulk(b'(', text.as_ref());
    }

    fn line_or_bulk(&mut self, mark: u8, text: &[u8]) {
        if !self.is_resp3() {
            return self.bulk(text);
        }
        self.buf.push(mark);
        self.buf.extend_from_slice(text);
        self.buf.extend_from_slice(b"\r\n");
    }

    /// A text with its format (`txt` or `mkd`); the format is cut or filled with spaces to three characters.
    pub fn verbatim(&mut self, text: impl AsRef<[u8]>, format: &str) {
        let text = text.as_ref();
        if !self.is_resp3() {
            return self.bulk(text);
        }
        header(&mut self.buf, b'=', text.len() + 4);
        let mut bytes = format.bytes();
        let prefix: [u8; 3] = std::array::from_fn(|_| bytes.next().unwrap_or(b' '));
        self.buf.extend_from_slice(&prefix);
        self.buf.push(b':');
        self.buf.extend_from_slice(text);
        self.buf.extend_from_slice(b"\r\n");
    }

    /// Leaves room for a header whose count is not known yet. Nested ones are finished from the inside out. To drop
    /// what was written since, use [`Reply::undo`].
    pub fn defer(&mut self) -> Deferred {
        let at = self.buf.len();
        self.buf.extend_from_slice(&DEFERRED_ROOM);
        Deferred(at)
    }

    /// Drops the header and what was written behind it.
    pub fn undo(&mut self, at: Deferred) {
        self.buf.truncate(at.0);
    }

    /// Writes the deferred header of an array of `len` elements.
    pub fn finish_array(&mut self, at: Deferred, len: usize) {
        self.insert_header(at.0, DEFERRED_ROOM.len(), b'*', len);
    }

    /// Writes the deferred header of a map of `len` pairs.
    pub fn finish_map(&mut self, at: Deferred, len: usize) {
        let (mark, len) = self.map_header(len);
        self.insert_header(at.0, DEFERRED_ROOM.len(), mark, len);
    }

    /// Writes the deferred header of a set of `len` elements.
    pub fn finish_set(&mut self, at: Deferred, len: usize) {
        let mark = self.mark(b'~');
        self.insert_header(at.0, DEFERRED_ROOM.len(), mark, len);
    }

    /// Writes the deferred header of a push message of `len` elements.
    pub fn finish_push(&mut self, at: Deferred, len: usize) {
        let mark = self.mark(b'>');
        self.insert_header(at.0, DEFERRED_ROOM.len(), mark, len);
    }

    /// Replaces the `room` bytes at `at` by a header.
    fn insert_header(&mut self, at: usize, room: usize, mark: u8, count: usize) {
        debug_assert!(at + room <= self.buf.len(), "the reply was cut below a deferred header");
        let mut text = [mark; 24];
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(count).as_bytes();
        let len = digits.len() + 3;
        if let Some(place) = text.get_mut(1..=digits.len()) {
            place.copy_from_slice(digits);
        }
        if let Some(place) = text.get_mut(len - 2..len) {
            place.copy_from_slice(b"\r\n");
        }
        let header = text.get(..len).unwrap_or(&[]);
        let end = self.buf.len();
        if len > room && end >= at + room {
            self.buf.resize(end + len - room, 0);
            self.buf.copy_within(at + room..end, at + len);
        }
        if let Some(place) = self.buf.get_mut(at..at + len) {
            place.copy_from_slice(header);
        }
    }

    fn map_header(&self, len: usize) -> (u8, usize) {
        if self.is_resp3() { (b'%', len) } else { (b'*', len * 2) }
    }

    fn mark(&self, resp3: u8) -> u8 {
        if self.is_resp3() { resp3 } else { b'*' }
    }
}

/// Appends `mark`, the number and CRLF.
#[inline]
pub(crate) fn header(buf: &mut Vec<u8>, mark: u8, number: usize) {
    if number < 10 {
        buf.extend_from_slice(&[mark, digit(number), b'\r', b'\n']);
    } else if number < 100 {
        buf.extend_from_slice(&[mark, digit(number / 10), digit(number % 10), b'\r', b'\n']);
    } else {
        long_header(buf, mark, number);
    }
}

#[inline(never)]
#[allow(clippy::indexing_slicing, reason = "at most twenty digits, a mark and the line's end fit the buffer")]
fn long_header(buf: &mut Vec<u8>, mark: u8, mut number: usize) {
    // The mark and at most twenty digits, from the back, so that the buffer is visited once.
    let mut text = [0; 23];
    let mut at = text.len() - 2;
    text[at..].copy_from_slice(b"\r\n");
    while number >= 100 {
        let pair = number % 100;
        number /= 100;
        at -= 2;
        text[at] = digit(pair / 10);
        text[at + 1] = digit(pair % 10);
    }
    at -= 1;
    text[at] = digit(number % 10);
    if number >= 10 {
        at -= 1;
        text[at] = digit(number / 10);
    }
    at -= 1;
    text[at] = mark;
    buf.extend_from_slice(&text[at..]);
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "called with one decimal digit")]
fn digit(number: usize) -> u8 {
    b'0' + number as u8
}
