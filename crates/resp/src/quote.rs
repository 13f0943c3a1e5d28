//! The quoting rules of inline requests, config files and the shell of the command-line client.
//!
//! Redis: arguments are separated by white space; `"…"` understands `\xHH`, `\n`, `\r`, `\t`, `\b`, `\a` and `\` before
//! any other character; `'…'` understands only `\'`. A closing quote must be followed by white space or the end. A NUL
//! byte ends the line.

use crate::args::Range;

/// Splits a line into arguments; `None` when a quote is left open or followed by something other than white space.
pub fn split_args(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut bytes = Vec::new();
    let mut ranges = Vec::new();
    split_into(line, &mut bytes, &mut ranges)?;
    let argument = |range: &Range| bytes.get(range.start..range.start + range.len).map(<[u8]>::to_vec);
    ranges.iter().map(argument).collect()
}

/// The core of [`split_args`]: argument bytes go to `bytes`, their places to `ranges`.
pub(crate) fn split_into(line: &[u8], bytes: &mut Vec<u8>, ranges: &mut Vec<Range>) -> Option<()> {
    // A byte past the end reads as NUL, which ends the line as it does in a C string.
    let at = |index: usize| line.get(index).copied().unwrap_or(0);
    let mut pos = 0;
    loop {
        while is_space(at(pos)) {
            pos += 1;
        }
        if at(pos) == 0 {
            return Some(());
        }
        let start = bytes.len();
        loop {
            match at(pos) {
                b' ' | b'\n' | b'\r' | b'\t' | 0 => break,
                b'"' => {
                    pos = double_quoted(line, pos + 1, bytes)?;
                    break;
                }
                b'\'' => {
                    pos = single_quoted(line, pos + 1, bytes)?;
                    break;
                }
                byte => {
                    bytes.push(byte);
                    pos += 1;
                }
            }
        }
        ranges.push(Range { start, len: bytes.len() - start });
    }
}

/// Reads from behind an opening `"` to behind the closing one.
fn double_quoted(line: &[u8], mut pos: usize, bytes: &mut Vec<u8>) -> Option<usize> {
    let at = |index: usize| line.get(index).copied().unwrap_or(0);
    loop {
        match (at(pos), at(pos + 1)) {
            (0, _) => return None,
            (b'"', next) => return (next == 0 || is_space(next)).then_some(pos + 1),
            (b'\\', b'x') if hex(at(pos + 2)).is_some() && hex(at(pos + 3)).is_some() => {
                bytes.push(hex(at(pos + 2))? * 16 + hex(at(pos + 3))?);
                pos += 4;
            }
            (b'\\', escaped) if escaped != 0 => {
                bytes.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 0x08,
                    b'a' => 0x07,
                    other => other,
                });
                pos += 2;
            }
            (byte, _) => {
                bytes.push(byte);
                pos += 1;
            }
        }
    }
}

/// Reads from behind an opening `'` to behind the closing one.
fn single_quoted(line: &[u8], mut pos: usize, bytes: &mut Vec<u8>) -> Option<usize> {
    let at = |index: usize| line.get(index).copied().unwrap_or(0);
    loop {
        match (at(pos), at(pos + 1)) {
            (0, _) => return None,
            (b'\\', b'\'') => {
                bytes.push(b'\'');
                pos += 2;
            }
            (b'\'', next) => return (next == 0 || is_space(next)).then_some(pos + 1),
            (byte, _) => {
                bytes.push(byte);
                pos += 1;
            }
        }
    }
}

/// The bytes in `"…"` with everything unprintable escaped, as [`split_args`] reads it back.
pub fn quote_repr(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + 2);
    write_repr(&mut out, bytes);
    out
}

/// [`quote_repr`], appended to `out`.
#[allow(clippy::indexing_slicing, reason = "half a byte is below sixteen")]
pub fn write_repr(out: &mut Vec<u8>, bytes: &[u8]) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    for &byte in bytes {
        match byte {
            b'\\' | b'"' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x07 => out.extend_from_slice(b"\\a"),
            0x08 => out.extend_from_slice(b"\\b"),
            b' '..=b'~' => out.push(byte),
            _ => out.extend_from_slice(&[b'\\', b'x', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]),
        }
    }
    out.push(b'"');
}

/// White space as C's `isspace` has it: with vertical tab and form feed.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

fn hex(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use proptest::prelude::*;

    use super::*;

    fn split(line: &str) -> Option<Vec<String>> {
        let owned = split_args(line.as_bytes())?;
        Some(owned.into_iter().map(|a| a.escape_ascii().to_string()).collect())
    }

    #[test]
    fn table() {
        let cases: [(&str, Option<&[&str]>); 16] = [
            ("", Some(&[])),
            ("   ", Some(&[])),
            ("set a b", Some(&["set", "a", "b"])),
            ("  set\ta  b\r", Some(&["set", "a", "b"])),
            (r#"set "a b" 'c d'"#, Some(&["set", "a b", "c d"])),
            (r#""\x00\xfF\xzz\n\r\t\b\a\q""#, Some(&[r"\x00\xffxzz\n\r\t\x08\x07q"])),
            (r#"'\'\n'"#, Some(&[r"\'\\n"])),
            (r#""" ''"#, Some(&["", ""])),
            (r#"foo"bar""#, Some(&["foobar"])),
            (r#""foo"bar"#, None),
            (r#"'foo'bar"#, None),
            (r#""foo"#, None),
            (r#"'foo"#, None),
            (r#""foo\"#, None),
            ("a\u{b}b \u{b}c", Some(&[r"a\x0bb", "c"])),
            ("a\0b", Some(&["a"])),
        ];
        for (line, want) in cases {
            let want = want.map(|w| w.iter().map(|s| (*s).to_string()).collect::<Vec<_>>());
            assert_eq!(split(line), want, "{line:?}");
        }
    }

    #[test]
    fn repr_table() {
        assert_eq!(quote_repr(b"a\"\\\n\r\t\x07\x08\x00\xff ~\x7f"), br#""a\"\\\n\r\t\a\b\x00\xff ~\x7f""#);
    }

    proptest! {
        #[test]
        fn quoted_text_reads_back(args in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..20), 0..5)) {
            let line = args.iter().map(|a| quote_repr(a)).collect::<Vec<_>>().join(&b' ');
            prop_assert_eq!(split_args(&line), Some(args));
        }

        #[test]
        fn garbage_never_panics(line in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = split_args(&line);
        }
    }
}
