//! One reply, with everything that its bytes said, and its text form.
//!
//! Two replies are equal exactly when their canonical bytes are: RESP2's two nulls and RESP3's
//! one stay apart, and a double keeps the digits that the server wrote.
//!
//! The text form is what [`crate::Client::check`] compares:
//!
//! | bytes | text |
//! |---|---|
//! | `+OK` | `+OK` |
//! | `-ERR no` | `-ERR no` |
//! | `:1` | `:1` |
//! | a bulk string | a bare word, or `"two words\r\n"` |
//! | `$-1`, `*-1`, `_` | `nil`, `*nil`, `_` |
//! | array, set, push, map | `[a :1]`, `~[a]`, `>[a]`, `{a => :1}` |
//! | `,1.5`, `#t`, `(123`, `=txt:` | `,1.5`, `#t`, `(123`, `=txt:"…"` |

use std::fmt;
use std::io;

/// A reply in RESP2 or RESP3.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reply {
    /// `+`: a status line.
    Simple(Vec<u8>),
    /// `-`: an error line.
    Error(Vec<u8>),
    /// `:`: an integer.
    Integer(i64),
    /// `$`: a string of bytes.
    Bulk(Vec<u8>),
    /// `$-1`: RESP2's missing string.
    NullBulk,
    /// `*-1`: RESP2's missing array.
    NullArray,
    /// `_`: RESP3's null.
    Null,
    /// `*`: an array.
    Array(Vec<Reply>),
    /// `~`: a set.
    Set(Vec<Reply>),
    /// `>`: an out-of-band push.
    Push(Vec<Reply>),
    /// `%`: a map, in the order of arrival.
    Map(Vec<(Reply, Reply)>),
    /// `,`: a double, as written.
    Double(Vec<u8>),
    /// `#`: a boolean.
    Boolean(bool),
    /// `(`: a big number, as written.
    BigNumber(Vec<u8>),
    /// `=`: text with a three-letter format, both as written.
    Verbatim(Vec<u8>),
}

impl Reply {
    /// Parses one reply from the front of `bytes`: the reply and the bytes it took, or `None`
    /// when more are needed.
    ///
    /// # Errors
    /// When the bytes are not RESP.
    pub fn parse(bytes: &[u8]) -> io::Result<Option<(Reply, usize)>> {
        let mut reader = Reader { bytes, position: 0 };
        let reply = reader.reply()?;
        Ok(reply.map(|reply| (reply, reader.position)))
    }

    /// The string in a bulk, simple, double, verbatim or error reply.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Reply::Simple(text)
            | Reply::Error(text)
            | Reply::Bulk(text)
            | Reply::Double(text)
            | Reply::BigNumber(text) => Some(text),
            Reply::Verbatim(text) => text.get(4..),
            _ => None,
        }
    }

    /// [`Reply::bytes`] as text, with replacement characters where it is not UTF-8.
    pub fn text(&self) -> String {
        self.bytes().map_or_else(|| self.to_string(), |b| String::from_utf8_lossy(b).into_owned())
    }

    /// The number of an integer reply.
    pub fn integer(&self) -> Option<i64> {
        match self {
            Reply::Integer(number) => Some(*number),
            _ => None,
        }
    }

    /// The elements of an array, set or push.
    pub fn items(&self) -> Option<&[Reply]> {
        match self {
            Reply::Array(items) | Reply::Set(items) | Reply::Push(items) => Some(items),
            _ => None,
        }
    }

    /// Whether this is any of the three nulls.
    pub fn is_null(&self) -> bool {
        matches!(self, Reply::NullBulk | Reply::NullArray | Reply::Null)
    }

    /// Whether this is an error line.
    pub fn is_error(&self) -> bool {
        matches!(self, Reply::Error(_))
    }
}

/// Follows a reply as its bytes arrive, without looking at any byte twice: tells when it is whole.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Progress {
    position: usize,
    values_left: usize,
}

impl Default for Progress {
    fn default() -> Self {
        Progress { position: 0, values_left: 1 }
    }
}

impl Progress {
    /// Whether `bytes`, the same ones as before with perhaps more behind them, begin with a whole reply. Malformed ones
    /// count as whole: parsing them tells what is wrong.
    pub(crate) fn is_whole(&mut self, bytes: &[u8]) -> bool {
        while self.values_left > 0 {
            let mut reader = Reader { bytes, position: self.position };
            let Some(line) = reader.line() else { return false };
            let mut end = reader.position;
            let size = line.get(1..).and_then(|digits| length(digits).ok());
            match (line.first(), size) {
                (Some(b'$' | b'='), Some(size)) => end += size + 2,
                (Some(b'*' | b'~' | b'>'), Some(count)) => self.values_left += count,
                (Some(b'%'), Some(count)) => self.values_left += 2 * count,
                _ => {}
            }
            if end > bytes.len() {
                return false;
            }
            self.position = end;
            self.values_left -= 1;
        }
        true
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Reader<'a> {
    fn line(&mut self) -> Option<&'a [u8]> {
        let rest = self.bytes.get(self.position..)?;
        let length = rest.windows(2).position(|pair| pair == b"\r\n")?;
        self.position += length + 2;
        rest.get(..length)
    }

    fn reply(&mut self) -> io::Result<Option<Reply>> {
        let Some(line) = self.line() else {
            return Ok(None);
        };
        let Some((&kind, rest)) = line.split_first() else {
            return Err(malformed("an empty line", line));
        };
        let reply = match kind {
            b'+' => Reply::Simple(rest.to_vec()),
            b'-' => Reply::Error(rest.to_vec()),
            b':' => Reply::Integer(number(rest)?),
            b',' => Reply::Double(rest.to_vec()),
            b'(' => Reply::BigNumber(rest.to_vec()),
            b'#' if rest == b"t" => Reply::Boolean(true),
            b'#' if rest == b"f" => Reply::Boolean(false),
            b'_' if rest.is_empty() => Reply::Null,
            b'$' if rest == b"-1" => Reply::NullBulk,
            b'*' if rest == b"-1" => Reply::NullArray,
            b'$' | b'=' => {
                let length = length(rest)?;
                let from = self.position;
                let Some(body) = self.bytes.get(from..from + length + 2) else {
                    return Ok(None);
                };
                let Some(text) = body.strip_suffix(b"\r\n") else {
                    return Err(malformed("a string without its end", body));
                };
                self.position += length + 2;
                if kind == b'$' { Reply::Bulk(text.to_vec()) } else { Reply::Verbatim(text.to_vec()) }
            }
            b'*' | b'~' | b'>' => {
                let Some(items) = self.replies(length(rest)?)? else {
                    return Ok(None);
                };
                match kind {
                    b'*' => Reply::Array(items),
                    b'~' => Reply::Set(items),
                    _ => Reply::Push(items),
                }
            }
            b'%' => {
                let Some(items) = self.replies(length(rest)? * 2)? else {
                    return Ok(None);
                };
                let mut items = items.into_iter();
                let mut pairs = Vec::new();
                while let (Some(key), Some(value)) = (items.next(), items.next()) {
                    pairs.push((key, value));
                }
                Reply::Map(pairs)
            }
            _ => return Err(malformed("an unknown kind of reply", line)),
        };
        Ok(Some(reply))
    }

    fn replies(&mut self, count: usize) -> io::Result<Option<Vec<Reply>>> {
        let mut items = Vec::new();
        for _ in 0..count {
            let Some(item) = self.reply()? else {
                return Ok(None);
            };
            items.push(item);
        }
        Ok(Some(items))
    }
}

fn number(text: &[u8]) -> io::Result<i64> {
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).ok_or_else(|| malformed("not a number", text))
}

fn length(text: &[u8]) -> io::Result<usize> {
    usize::try_from(number(text)?).map_err(|_| malformed("a negative length", text))
}

fn malformed(what: &str, bytes: &[u8]) -> io::Error {
    let shown = bytes.get(..80).unwrap_or(bytes).escape_ascii();
    io::Error::new(io::ErrorKind::InvalidData, format!("malformed reply, {what}: {shown}"))
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reply::Simple(text) => write!(f, "+{}", text.escape_ascii()),
            Reply::Error(text) => write!(f, "-{}", String::from_utf8_lossy(text)),
            Reply::Integer(number) => write!(f, ":{number}"),
            Reply::Bulk(text) => write!(f, "{}", word(text)),
            Reply::NullBulk => f.write_str("nil"),
            Reply::NullArray => f.write_str("*nil"),
            Reply::Null => f.write_str("_"),
            Reply::Array(items) => list(f, "[", items),
            Reply::Set(items) => list(f, "~[", items),
            Reply::Push(items) => list(f, ">[", items),
            Reply::Map(pairs) => {
                f.write_str("{")?;
                for (index, (key, value)) in pairs.iter().enumerate() {
                    let gap = if index == 0 { "" } else { " " };
                    write!(f, "{gap}{key} => {value}")?;
                }
                f.write_str("}")
            }
            Reply::Double(text) => write!(f, ",{}", text.escape_ascii()),
            Reply::Boolean(true) => f.write_str("#t"),
            Reply::Boolean(false) => f.write_str("#f"),
            Reply::BigNumber(text) => write!(f, "({}", text.escape_ascii()),
            Reply::Verbatim(text) => {
                let (format, body) = text.split_at(text.len().min(4));
                write!(f, "={}\"{}\"", format.escape_ascii(), body.escape_ascii())
            }
        }
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn list(f: &mut fmt::Formatter<'_>, open: &str, items: &[Reply]) -> fmt::Result {
    f.write_str(open)?;
    for (index, item) in items.iter().enumerate() {
        let gap = if index == 0 { "" } else { " " };
        write!(f, "{gap}{item}")?;
    }
    f.write_str("]")
}

/// A string of bytes as one word of the text form: bare when that is unmistakable, else in
/// double quotes with `\xNN` escapes. redis-cli accepts it.
pub fn word(text: &[u8]) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.:-/!@".contains(byte);
    let safe_start = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
    let bare = text.first().is_some_and(safe_start)
        && text.iter().all(plain)
        && text != b"nil"
        && (text[0] != b'-' || text.get(1).is_some_and(u8::is_ascii_digit));
    if bare {
        return String::from_utf8_lossy(text).into_owned();
    }
    let mut out = String::from("\"");
    for &byte in text {
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            0x20..=0x7e => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    out.push('"');
    out
}
