//! The snapshot within a full synchronization.
//!
//! ```text
//!  \n \n …            the primary is still at work
//!  $<length>\r\n      so many bytes follow                   or
//!  $EOF:<mark>\r\n    bytes follow up to the mark, 40 bytes that nobody can guess
//! ```

/// Bytes of a mark.
pub const MARK_LEN: usize = 40;
/// Longest first line.
const LINE_MAX: usize = 1024;

/// Why a payload is none. The texts are those of Redis' log.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PayloadError {
    /// The primary sent an error instead.
    #[error("MASTER aborted replication with an error: {0}")]
    Refused(String),
    /// The first line is none that Redis sends.
    #[error(
        "Bad protocol from MASTER, the first byte is not '$' (we received '{0}'), are you sure the host and port are right?"
    )]
    BadLine(String),
}

/// How the end is found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Form {
    /// By the number of bytes.
    Length(u64),
    /// By a mark behind them.
    Mark([u8; MARK_LEN]),
}

#[derive(Clone, Debug)]
enum State {
    Line(Vec<u8>),
    Counted(u64),
    /// The mark and the bytes held back because they may belong to it.
    Marked([u8; MARK_LEN], Vec<u8>),
    Done,
}

/// Finds the snapshot in the bytes that come from a primary.
#[derive(Clone, Debug)]
pub struct Payload {
    state: State,
    form: Option<Form>,
}

impl Default for Payload {
    fn default() -> Payload {
        Payload { state: State::Line(Vec::new()), form: None }
    }
}

impl Payload {
    /// How the end will be found, once the first line is there.
    pub fn form(&self) -> Option<&Form> {
        self.form.as_ref()
    }

    /// Whether all of it has come.
    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// Takes bytes and appends those of the snapshot to `out`. Returns how many were used: all, unless the payload ended
    /// before.
    ///
    /// # Errors
    /// The bytes are no payload.
    pub fn feed(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<usize, PayloadError> {
        let mut used = 0;
        while used < input.len() && !self.is_done() {
            let rest = input.get(used..).unwrap_or_default();
            used += match &mut self.state {
                State::Line(line) => {
                    let end = memchr::memchr(b'\n', rest);
                    let taken = end.map_or(rest.len(), |end| end + 1);
                    line.extend_from_slice(&rest[..taken]);
                    if end.is_some() {
                        self.take_line()?;
                    } else if line.len() > LINE_MAX {
                        return Err(bad_line(line));
                    }
                    taken
                }
                State::Counted(left) => {
                    let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(rest.len());
                    out.extend_from_slice(&rest[..taken]);
                    *left -= taken as u64;
                    if *left == 0 {
                        self.state = State::Done;
                    }
                    taken
                }
                State::Marked(mark, held) => {
                    let before = held.len();
                    held.extend_from_slice(rest);
                    match memchr::memmem::find(held, mark) {
                        Some(at) => {
                            out.extend_from_slice(&held[..at]);
                            self.state = State::Done;
                            // The mark ends in the new bytes: it was not found in the held ones.
                            (at + MARK_LEN).saturating_sub(before)
                        }
                        None => {
                            let sure = held.len().saturating_sub(MARK_LEN - 1);
                            out.extend(held.drain(..sure));
                            rest.len()
                        }
                    }
                }
                State::Done => 0,
            };
        }
        Ok(used)
    }

    fn take_line(&mut self) -> Result<(), PayloadError> {
        let State::Line(line) = &mut self.state else { return Ok(()) };
        let line = std::mem::take(line);
        let text = line.trim_ascii_end();
        self.state = match text {
            [] => State::Line(Vec::new()),
            [b'-', error @ ..] => return Err(PayloadError::Refused(String::from_utf8_lossy(error).into_owned())),
            [b'$', b'E', b'O', b'F', b':', mark @ ..] if mark.len() >= MARK_LEN => {
                let mut bytes = [0; MARK_LEN];
                bytes.copy_from_slice(&mark[..MARK_LEN]);
                self.form = Some(Form::Mark(bytes));
                State::Marked(bytes, Vec::new())
            }
            [b'$', number @ ..] => {
                let length = std::str::from_utf8(number).ok().and_then(|number| number.parse::<u64>().ok());
                let length = length.ok_or_else(|| bad_line(text))?;
                self.form = Some(Form::Length(length));
                if length == 0 { State::Done } else { State::Counted(length) }
            }
            _ => return Err(bad_line(text)),
        };
        Ok(())
    }
}

fn bad_line(line: &[u8]) -> PayloadError {
    let shown = line.get(..line.len().min(128)).unwrap_or_default();
    PayloadError::BadLine(String::from_utf8_lossy(shown).trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;
    use proptest::prelude::*;

    /// Feeds in pieces of `size`; gives the snapshot and what was left over.
    fn feed(bytes: &[u8], size: usize) -> Result<(Vec<u8>, Vec<u8>, bool), PayloadError> {
        let (mut payload, mut out, mut rest) = (Payload::default(), Vec::new(), Vec::new());
        for piece in bytes.chunks(size) {
            let used = payload.feed(piece, &mut out)?;
            rest.extend_from_slice(&piece[used..]);
        }
        Ok((out, rest, payload.is_done()))
    }

    #[test]
    fn counted_and_marked_forms_end_where_they_should() {
        let mark = "0123456789".repeat(4);
        for size in 1..100 {
            let counted = feed(b"\n\n$5\r\nREDISrest", size).unwrap();
            assert_eq!(counted, (b"REDIS".to_vec(), b"rest".to_vec(), true));
            let text = format!("\n$EOF:{mark}\r\nREDIS0123{mark}rest");
            assert_eq!(feed(text.as_bytes(), size).unwrap(), (b"REDIS0123".to_vec(), b"rest".to_vec(), true));
        }
        assert_eq!(feed(b"$0\r\nrest", 3).unwrap(), (Vec::new(), b"rest".to_vec(), true));
    }

    #[test]
    fn other_first_lines_are_errors() {
        assert_eq!(feed(b"-ERR no\r\n", 4), Err(PayloadError::Refused("ERR no".into())));
        for text in ["+OK\r\n", "$-1\r\n", "$x\r\n", "$EOF:short\r\n", "$99999999999999999999\r\n"] {
            assert!(matches!(feed(text.as_bytes(), 4), Err(PayloadError::BadLine(_))), "{text}");
        }
        assert!(feed(&vec![b'a'; 5000], 512).is_err());
    }

    proptest! {
        #[test]
        fn marked_payloads_survive_any_cut(bytes in prop::collection::vec(any::<u8>(), 0..300), size in 1_usize..80) {
            let mark = [b'm'; MARK_LEN];
            prop_assume!(memchr::memmem::find(&bytes, &mark).is_none() && bytes.last() != Some(&b'm'));
            let mut text = b"$EOF:".to_vec();
            text.extend_from_slice(&mark);
            text.extend_from_slice(b"\r\n");
            text.extend_from_slice(&bytes);
            text.extend_from_slice(&mark);
            text.extend_from_slice(b"*1");
            let (out, rest, done) = feed(&text, size).unwrap();
            prop_assert!(done);
            prop_assert_eq!(out, bytes);
            prop_assert_eq!(rest, b"*1".to_vec());
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), size in 1_usize..50) {
            let _ = feed(&bytes, size);
        }
    }
}
