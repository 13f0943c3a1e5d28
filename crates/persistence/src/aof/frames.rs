//! Reading a log command by command.
//!
//! The reader never takes a declared size at its word: its buffer grows with the bytes that are there.

use std::io::{self, Read};

/// Bytes asked of the file at a time.
const READ_BYTES: usize = 64 << 10;
/// Longest line of a number, and of an annotation, as in Redis.
const LINE_MAX: usize = 1024;

/// What stands next.
#[derive(Debug)]
pub enum Frame {
    /// A command; see [`Frames::arguments`].
    Command,
    /// A line that begins with `#`, without its end; see [`Frames::annotation`].
    Annotation,
    /// The file ends here.
    End,
}

/// Why reading ended before the end.
#[derive(Debug)]
pub enum FrameError {
    /// The file ends inside a command: the end was cut off. Also when it goes on with nothing but zeros, which is what
    /// some file systems leave of an end that was being written when the power went.
    Truncated,
    /// What stands there is no command.
    Malformed {
        /// Where it was noticed.
        offset: u64,
        /// What was expected.
        why: String,
    },
    /// The file cannot be read.
    Io(io::Error),
}

/// Reads frames from a file.
pub struct Frames {
    source: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    /// Where the unread part of the buffer begins.
    at: usize,
    /// Offset in the file of the buffer's first byte.
    base: u64,
    is_over: bool,
    ranges: Vec<(usize, usize)>,
    lines: u64,
}

/// How reading a piece went: `None`, there is not enough.
type Piece<T> = Result<Option<T>, FrameError>;

impl Frames {
    /// A reader of a file that has been read up to `offset`, where a frame begins.
    pub fn new(source: Box<dyn Read + Send>, offset: u64) -> Frames {
        Frames { source, buffer: Vec::new(), at: 0, base: offset, is_over: false, ranges: Vec::new(), lines: 1 }
    }

    /// As [`Frames::new`], for bytes that have been read from the file already.
    pub fn with_start(source: Box<dyn Read + Send>, start: Vec<u8>, offset: u64) -> Frames {
        Frames { buffer: start, ..Frames::new(source, offset) }
    }

    /// Offset in the file up to which frames were read.
    pub fn offset(&self) -> u64 {
        self.base + self.at as u64
    }

    /// Line of that offset, from 1.
    pub fn line(&self) -> u64 {
        self.lines
    }

    /// Arguments of the command that was read last.
    pub fn arguments(&self) -> Vec<&[u8]> {
        self.ranges.iter().map(|(start, end)| self.buffer.get(*start..*end).unwrap_or_default()).collect()
    }

    /// The annotation that was read last.
    pub fn annotation(&self) -> &[u8] {
        self.ranges.first().map_or(&[], |(start, end)| self.buffer.get(*start..*end).unwrap_or_default())
    }

    /// Reads more of the file behind what is in the buffer. False: there is no more.
    fn fill(&mut self) -> Result<bool, FrameError> {
        if self.is_over {
            return Ok(false);
        }
        let before = self.buffer.len();
        // What is there doubles at most, so a giant argument is not read in small steps.
        self.buffer.resize(before + READ_BYTES.max(before - self.at), 0);
        loop {
            match self.source.read(&mut self.buffer[before..]) {
                Ok(got) => {
                    self.buffer.truncate(before + got);
                    self.is_over = got == 0;
                    return Ok(got > 0);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.buffer.truncate(before);
                    return Err(FrameError::Io(error));
                }
            }
        }
    }

    /// Reads the next frame. After an error [`Frames::offset`] is where the frame at fault begins.
    ///
    /// # Errors
    /// See [`FrameError`].
    pub fn next_frame(&mut self) -> Result<Frame, FrameError> {
        if self.at >= READ_BYTES {
            self.buffer.drain(..self.at);
            self.base += self.at as u64;
            self.at = 0;
        }
        loop {
            self.ranges.clear();
            match self.parse() {
                Ok(Some((frame, end, lines))) => {
                    self.at = end;
                    self.lines += lines;
                    return Ok(frame);
                }
                Ok(None) => {
                    if !self.fill()? {
                        return if self.at == self.buffer.len() { Ok(Frame::End) } else { Err(FrameError::Truncated) };
                    }
                }
                Err(FrameError::Malformed { offset, why }) => {
                    let from = usize::try_from(offset - self.base).unwrap_or(usize::MAX);
                    return Err(if self.ends_in_zeros(from)? {
                        FrameError::Truncated
                    } else {
                        FrameError::Malformed { offset, why }
                    });
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether the file is a cut one with zeros behind the cut, which lies before or little behind `from`.
    fn ends_in_zeros(&mut self, from: usize) -> Result<bool, FrameError> {
        /// Longer than a line of a number.
        const NEAR: usize = 64;
        while self.buffer.len() < from + NEAR && self.fill()? {}
        let near = self.buffer.len().min(from + NEAR);
        let Some(last) = self.buffer[self.at..near].iter().rposition(|byte| *byte != 0) else { return Ok(true) };
        let cut = self.at + last + 1;
        let mut seen = cut;
        loop {
            if self.buffer.get(seen..).unwrap_or_default().iter().any(|byte| *byte != 0) {
                return Ok(false);
            }
            seen = self.buffer.len();
            if !self.fill()? {
                break;
            }
        }
        if cut == self.buffer.len() {
            return Ok(false);
        }
        let whole = std::mem::take(&mut self.buffer);
        self.buffer = whole[..cut].to_vec();
        let parsed = self.parse();
        self.ranges.clear();
        self.buffer = whole;
        Ok(matches!(parsed, Ok(None)))
    }

    fn malformed<T>(&self, at: usize, why: String) -> Piece<T> {
        Err(FrameError::Malformed { offset: self.base + at as u64, why })
    }

    /// Parses a frame out of the buffer: what, where it ends, and how many lines it has.
    fn parse(&mut self) -> Piece<(Frame, usize, u64)> {
        let at = self.at;
        match self.buffer.get(at) {
            None => return Ok(None),
            Some(b'#') => {
                let line = &self.buffer[at..];
                let Some(len) = line.iter().take(LINE_MAX).position(|byte| *byte == b'\n') else {
                    return if line.len() >= LINE_MAX {
                        self.malformed(at, "too long an annotation".into())
                    } else {
                        Ok(None)
                    };
                };
                let text = if line[..len].ends_with(b"\r") { len - 1 } else { len };
                self.ranges.push((at, at + text));
                return Ok(Some((Frame::Annotation, at + len + 1, 1)));
            }
            Some(_) => {}
        }
        let Some((count, mut at)) = self.number(at, b'*')? else { return Ok(None) };
        if count < 1 {
            return self.malformed(self.at, format!("Expected at least one argument, got {count}"));
        }
        for _ in 0..count {
            let start = at;
            let Some((len, begin)) = self.number(at, b'$')? else { return Ok(None) };
            let Some(end) = usize::try_from(len).ok().and_then(|len| begin.checked_add(len)) else {
                let why = format!("Expected to read string of {len} bytes, which is not in the suitable range");
                return self.malformed(start, why);
            };
            let Some(mark) = end.checked_add(2).and_then(|next| self.buffer.get(end..next)) else { return Ok(None) };
            if mark != b"\r\n" {
                return self.malformed(end, format!("Expected \\r\\n, got: {:02x}{:02x}", mark[0], mark[1]));
            }
            self.ranges.push((begin, end));
            at = end + 2;
        }
        Ok(Some((Frame::Command, at, 1 + 2 * self.ranges.len() as u64)))
    }

    /// A line of `prefix` and a number: the number, and where the next line begins.
    fn number(&self, at: usize, prefix: u8) -> Piece<(i64, usize)> {
        let Some(first) = self.buffer.get(at) else { return Ok(None) };
        if *first != prefix {
            let (expected, got) = (char::from(prefix), char::from(*first));
            return self.malformed(at, format!("Expected prefix '{expected}', got: '{got}'"));
        }
        let line = &self.buffer[at + 1..];
        let Some(len) = line.iter().take(32).position(|byte| *byte == b'\n') else {
            return if line.len() >= 32 { self.malformed(at + 1, "Expected a number".into()) } else { Ok(None) };
        };
        let digits = line[..len].strip_suffix(b"\r");
        match digits.and_then(resp::num::parse_i64) {
            Some(number) => Ok(Some((number, at + 1 + len + 1))),
            None => self.malformed(at + 1, format!("Expected a number, got: {}", line[..len].escape_ascii())),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    fn frames(bytes: &[u8]) -> Frames {
        Frames::new(Box::new(io::Cursor::new(bytes.to_vec())), 0)
    }

    #[test]
    fn commands_and_annotations_come_in_order() {
        let mut frames = frames(b"#TS:12\r\n*2\r\n$3\r\nDEL\r\n$0\r\n\r\n*1\r\n$4\r\nEXEC\r\n");
        assert!(matches!(frames.next_frame(), Ok(Frame::Annotation)));
        assert_eq!(frames.annotation(), b"#TS:12");
        assert!(matches!(frames.next_frame(), Ok(Frame::Command)));
        assert_eq!(frames.arguments(), vec![&b"DEL"[..], b""]);
        assert_eq!(frames.line(), 7);
        assert!(matches!(frames.next_frame(), Ok(Frame::Command)));
        assert!(matches!(frames.next_frame(), Ok(Frame::End)));
    }

    #[test]
    fn every_cut_is_noticed_as_one() {
        let whole = b"*2\r\n$3\r\nSET\r\n$5\r\nab\r\nc\r\n";
        for len in 1..whole.len() {
            let mut frames = frames(&whole[..len]);
            assert!(matches!(frames.next_frame(), Err(FrameError::Truncated)), "{len}");
            assert_eq!(frames.offset(), 0);
            let mut zeros = whole[..len].to_vec();
            zeros.resize(whole.len() + 70_000, 0);
            let mut frames = super::tests::frames(&zeros);
            assert!(matches!(frames.next_frame(), Err(FrameError::Truncated)), "{len} and zeros");
        }
    }

    #[test]
    fn garbage_is_told_with_its_place() {
        for (bytes, place) in [
            (&b"*1\r\n$4\r\nPING\r\nxyz"[..], 14),
            (b"*1\r\n$4\r\nPING\r\n*1\r\n+4\r\nPING\r\n", 18),
            (b"*1\r\n$4\r\nPING\r\n*1\r\n$3\r\nPING\r\n", 25),
            (b"*1\r\n$4\r\nPING\r\n*0\r\n", 14),
            (b"*1\r\n$4\r\nPING\r\n*1\r\n$-1\r\n\r\n", 18),
            (b"*1\r\n$4\r\nPING\r\n*1x\r\n$-1\r\n\r\n", 15),
        ] {
            let mut frames = frames(bytes);
            assert!(frames.next_frame().is_ok());
            match frames.next_frame() {
                Err(FrameError::Malformed { offset, .. }) => assert_eq!(offset, place, "{bytes:?}"),
                other => panic!("{other:?} for {bytes:?}"),
            }
            assert_eq!(frames.offset(), 14);
        }
    }

    #[test]
    fn a_declared_size_takes_no_memory() {
        let mut frames = frames(b"*2147483647\r\n$9000000000\r\nab");
        assert!(matches!(frames.next_frame(), Err(FrameError::Truncated)));
        assert!(frames.buffer.capacity() < 1 << 20);
    }

    #[test]
    fn large_files_are_read_in_portions() {
        let mut bytes = Vec::new();
        for number in 0..5_000 {
            let value = "v".repeat(number % 300);
            bytes.extend_from_slice(format!("*2\r\n$1\r\na\r\n${}\r\n{value}\r\n", value.len()).as_bytes());
        }
        bytes.extend_from_slice(format!("*1\r\n${}\r\n{}\r\n", 1_000_000, "x".repeat(1_000_000)).as_bytes());
        let mut frames = frames(&bytes);
        for number in 0..5_000 {
            frames.next_frame().unwrap();
            assert_eq!(frames.arguments()[1].len(), number % 300);
        }
        frames.next_frame().unwrap();
        assert_eq!(frames.arguments()[0].len(), 1_000_000);
        assert!(matches!(frames.next_frame(), Ok(Frame::End)));
        assert_eq!(frames.offset(), bytes.len() as u64);
    }
}
