//! Splitting a configuration line into arguments, and quoting one so that it splits back.

/// Splits a line into arguments.
///
/// Blanks separate. `"…"` may hold `\n \r \t \b \a \xHH` and escaped characters, `'…'` only `\'`; a
/// closing quote must be followed by a blank or by the end. `None`: the quotes do not balance.
#[must_use]
pub fn split_arguments(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut arguments = Vec::new();
    let mut rest = line;
    loop {
        while let [blank, tail @ ..] = rest
            && is_blank(*blank)
        {
            rest = tail;
        }
        if rest.is_empty() || rest.first() == Some(&0) {
            return Some(arguments);
        }
        let (argument, tail) = one_argument(rest)?;
        arguments.push(argument);
        rest = tail;
    }
}

fn one_argument(mut rest: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut argument = Vec::new();
    loop {
        match rest {
            [] | [0 | b' ' | b'\n' | b'\r' | b'\t', ..] => return Some((argument, rest)),
            [b'"', tail @ ..] => {
                let tail = double_quoted(tail, &mut argument)?;
                return closed(tail).map(|tail| (argument, tail));
            }
            [b'\'', tail @ ..] => {
                let tail = single_quoted(tail, &mut argument)?;
                return closed(tail).map(|tail| (argument, tail));
            }
            [byte, tail @ ..] => {
                argument.push(*byte);
                rest = tail;
            }
        }
    }
}

/// What follows a closing quote, if that is allowed to follow it.
fn closed(tail: &[u8]) -> Option<&[u8]> {
    match tail.first() {
        Some(byte) if *byte != 0 && !is_blank(*byte) => None,
        _ => Some(tail),
    }
}

fn double_quoted<'a>(mut rest: &'a [u8], argument: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        match rest {
            [b'\\', b'x', high, low, tail @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                argument.push(hex_digit(*high) << 4 | hex_digit(*low));
                rest = tail;
            }
            [b'\\', escaped, tail @ ..] => {
                argument.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => *other,
                });
                rest = tail;
            }
            [b'"', tail @ ..] => return Some(tail),
            [byte, tail @ ..] => {
                argument.push(*byte);
                rest = tail;
            }
            [] => return None,
        }
    }
}

fn single_quoted<'a>(mut rest: &'a [u8], argument: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        match rest {
            [b'\\', b'\'', tail @ ..] => {
                argument.push(b'\'');
                rest = tail;
            }
            [b'\'', tail @ ..] => return Some(tail),
            [byte, tail @ ..] => {
                argument.push(*byte);
                rest = tail;
            }
            [] => return None,
        }
    }
}

/// Appends `text` in double quotes, with escapes for everything that is not printable ASCII.
pub fn push_quoted(line: &mut Vec<u8>, text: &[u8]) {
    line.push(b'"');
    for byte in text {
        match byte {
            b'\\' | b'"' => line.extend_from_slice(&[b'\\', *byte]),
            b'\n' => line.extend_from_slice(b"\\n"),
            b'\r' => line.extend_from_slice(b"\\r"),
            b'\t' => line.extend_from_slice(b"\\t"),
            7 => line.extend_from_slice(b"\\a"),
            8 => line.extend_from_slice(b"\\b"),
            b' '..=b'~' => line.push(*byte),
            other => line.extend_from_slice(format!("\\x{other:02x}").as_bytes()),
        }
    }
    line.push(b'"');
}

/// The line without blanks at its ends.
#[must_use]
pub(super) fn trim(line: &[u8]) -> &[u8] {
    let is_trimmed = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    let start = line.iter().take_while(|byte| is_trimmed(byte)).count();
    let tail = line.get(start..).unwrap_or_default();
    let end = tail.iter().rev().take_while(|byte| is_trimmed(byte)).count();
    tail.get(..tail.len() - end).unwrap_or_default()
}

/// C's `isspace`.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

fn hex_digit(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        b'A'..=b'F' => digit - b'A' + 10,
        _ => 0,
    }
}
