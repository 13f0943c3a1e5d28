//! Hot path: what replies say, as far as a generator cares. No allocation but for errors.

/// Replies at the beginning of some input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Passed {
    pub(super) bytes: usize,
    pub(super) replies: u32,
    /// Those of them that say that there is nothing.
    pub(super) nulls: u32,
}

/// Passes over the replies that most batches are made of, `most` at most, a few comparisons each: short texts and numbers,
/// values below a hundred bytes, and nothing. What is of another kind, an error or incomplete ends it, and is left to
/// [`resp::skip_reply`].
#[inline]
pub(super) fn passed_over(input: &[u8], most: u32) -> Passed {
    let mut passed = Passed::default();
    while passed.replies < most {
        let rest = input.get(passed.bytes..).unwrap_or_default();
        let length = match *rest {
            [b'$', b'-', b'1', b'\r', b'\n', ..] => {
                passed.bytes += 5;
                passed.replies += 1;
                passed.nulls += 1;
                continue;
            }
            [b'_', b'\r', b'\n', ..] => {
                passed.bytes += 3;
                passed.replies += 1;
                passed.nulls += 1;
                continue;
            }
            [b'$', one @ b'0'..=b'9', b'\r', b'\n', ..] => 6 + usize::from(one - b'0'),
            [b'$', ten @ b'0'..=b'9', one @ b'0'..=b'9', b'\r', b'\n', ..] => {
                7 + usize::from(ten - b'0') * 10 + usize::from(one - b'0')
            }
            [b'+', b'O', b'K', b'\r', b'\n', ..] => 5,
            [b'+' | b':', ref text @ ..] => match text.iter().take(SHORT_TEXT).position(|byte| *byte == b'\r') {
                Some(end) => end + 3,
                None => break,
            },
            _ => break,
        };
        // Each ends with the end of a line, wherever its length comes from.
        if rest.get(length - 2..length) != Some(b"\r\n") {
            break;
        }
        passed.bytes += length;
        passed.replies += 1;
    }
    passed
}

/// Whether a reply says that there is nothing.
#[inline]
pub(super) fn is_null(reply: &[u8]) -> bool {
    matches!(reply, b"$-1\r\n" | b"_\r\n" | b"*-1\r\n")
}

/// Text of an error reply: `-TEXT` or `!length TEXT`.
pub(super) fn error_text(reply: &[u8]) -> String {
    let body = match reply.split_first() {
        Some((b'!', rest)) => {
            let start = rest.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            rest.get(start..).unwrap_or_default()
        }
        Some((_, rest)) => rest,
        None => reply,
    };
    let body = body.strip_suffix(b"\r\n").unwrap_or(body);
    String::from_utf8_lossy(body).into_owned()
}

/// Longest text or number that is looked through byte by byte.
const SHORT_TEXT: usize = 24;

#[cfg(test)]
mod tests {
    use super::{Passed, passed_over};

    #[test]
    fn common_replies_are_passed_over_and_others_left() {
        for (input, most, bytes, replies, nulls) in [
            (&b"+OK\r\n+OK\r\n"[..], 9, 10, 2, 0),
            (b"+OK\r\n+OK\r\n", 1, 5, 1, 0),
            (b"$-1\r\n$3\r\nVXK\r\n_\r\n$-1\r\n", 9, 22, 4, 3),
            (b"$0\r\n\r\n:12\r\n+PONG\r\n", 9, 18, 3, 0),
            (b"$12\r\n123456789012\r\n+", 9, 19, 1, 0),
            // Incomplete, wrong or of another kind.
            (b"+OK\r", 9, 0, 0, 0),
            (b":1\r", 9, 0, 0, 0),
            (b"$3\r\nVX", 9, 0, 0, 0),
            (b"$3\r\nVXKY\r\n", 9, 0, 0, 0),
            (b"$-2\r\n", 9, 0, 0, 0),
            (b"+OK\r\n-ERR no\r\n+OK\r\n", 9, 5, 1, 0),
            (b"*1\r\n:1\r\n", 9, 0, 0, 0),
            (b"$-1\r\n$-1", 9, 5, 1, 1),
        ] {
            let text = String::from_utf8_lossy(input);
            assert_eq!(passed_over(input, most), Passed { bytes, replies, nulls }, "{text:?}");
        }
    }
}
