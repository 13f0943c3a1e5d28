//! Replies as trees, as a client reads them.

use std::fmt;

use memchr::memchr;

use crate::reply::{Proto, Reply};
use crate::request::parse_length;

#[cfg(test)]
mod tests;

/// Deepest nesting that [`parse_reply`] follows.
pub const MAX_DEPTH: usize = 128;

/// A reply of any RESP2 or RESP3 type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// `+` a status such as OK.
    Simple(Vec<u8>),
    /// `-` or `!` an error, with its code.
    Error(Vec<u8>),
    /// `:` an integer.
    Int(i64),
    /// `$` a byte string.
    Bulk(Vec<u8>),
    /// `$-1` or `_`.
    Null,
    /// `*-1`.
    NullArray,
    /// `*` an array.
    Array(Vec<Value>),
    /// `%` a map, in the order it came.
    Map(Vec<(Value, Value)>),
    /// `~` a set, in the order it came.
    Set(Vec<Value>),
    /// `>` a message that answers no request.
    Push(Vec<Value>),
    /// `,` a double, as the text that came.
    Double(String),
    /// `#` a truth value.
    Bool(bool),
    /// `(` an integer of any size, as the text that came.
    BigNumber(String),
    /// `=` a text with its format.
    Verbatim {
        /// The format, three characters: `txt` or `mkd`.
        format: String,
        /// The text.
        text: Vec<u8>,
    },
    /// `|` attributes and the reply they belong to.
    Attribute {
        /// The attributes.
        attributes: Vec<(Value, Value)>,
        /// The reply.
        value: Box<Value>,
    },
}

/// Bytes that are no reply. The connection is of no use any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyError {
    /// No type starts with this byte.
    Type(u8),
    /// A length or count is no number, or out of range.
    Length,
    /// A line or bulk does not end with CRLF, or its text does not fit its type.
    Line,
    /// Nested deeper than [`MAX_DEPTH`].
    Depth,
}

impl fmt::Display for ReplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReplyError::Type(byte) => write!(f, "protocol error: reply type byte '{}' is unknown", byte.escape_ascii()),
            ReplyError::Length => f.write_str("protocol error: bad length in reply"),
            ReplyError::Line => f.write_str("protocol error: bad line in reply"),
            ReplyError::Depth => write!(f, "protocol error: reply nested deeper than {MAX_DEPTH}"),
        }
    }
}

impl std::error::Error for ReplyError {}

/// Reads the reply that `buf` starts with: the reply and the bytes it took, or `None` when it is incomplete.
///
/// It starts over with each call: for replies that may be big, find the end with [`crate::skip_reply`] first.
///
/// # Errors
/// When the bytes are no RESP2 or RESP3.
pub fn parse_reply(buf: &[u8]) -> Result<Option<(Value, usize)>, ReplyError> {
    let mut reader = Reader { buf, pos: 0 };
    Ok(reader.value(0)?.map(|value| (value, reader.pos)))
}

struct Reader<'a> {
    buf: &'a [u8],
    pos: usize,
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: usize) -> Result<Option<Value>, ReplyError> {
        if depth > MAX_DEPTH {
            return Err(ReplyError::Depth);
        }
        let Some(&mark) = self.buf.get(self.pos) else {
            return Ok(None);
        };
        if !b"+-:,#_($=!*~>%|".contains(&mark) {
            return Err(ReplyError::Type(mark));
        }
        let Some(line) = self.line()? else {
            return Ok(None);
        };
        match mark {
            b'+' => Ok(Some(Value::Simple(line.to_vec()))),
            b'-' => Ok(Some(Value::Error(line.to_vec()))),
            b':' => integer(line).map(|number| Some(Value::Int(number))),
            b',' => text(line).map(|text| Some(Value::Double(text))),
            b'(' => text(line).map(|text| Some(Value::BigNumber(text))),
            b'_' => {
                if line.is_empty() {
                    Ok(Some(Value::Null))
                } else {
                    Err(ReplyError::Line)
                }
            }
            b'#' => match line {
                b"t" => Ok(Some(Value::Bool(true))),
                b"f" => Ok(Some(Value::Bool(false))),
                _ => Err(ReplyError::Line),
            },
            _ => self.sized(mark, line, depth),
        }
    }

    /// A type whose line is a length.
    fn sized(&mut self, mark: u8, line: &[u8], depth: usize) -> Result<Option<Value>, ReplyError> {
        let length = parse_length(line).ok_or(ReplyError::Length)?;
        let Ok(length) = usize::try_from(length) else {
            return match (mark, length) {
                (b'$', -1) => Ok(Some(Value::Null)),
                (b'*', -1) => Ok(Some(Value::NullArray)),
                _ => Err(ReplyError::Length),
            };
        };
        match mark {
            b'$' => Ok(self.payload(length)?.map(|bytes| Value::Bulk(bytes.to_vec()))),
            b'!' => Ok(self.payload(length)?.map(|bytes| Value::Error(bytes.to_vec()))),
            b'=' => self.payload(length)?.map(verbatim).transpose(),
            b'*' => Ok(self.elements(length, depth)?.map(Value::Array)),
            b'~' => Ok(self.elements(length, depth)?.map(Value::Set)),
            b'>' => Ok(self.elements(length, depth)?.map(Value::Push)),
            b'%' => Ok(self.pairs(length, depth)?.map(Value::Map)),
            _ => {
                let Some(attributes) = self.pairs(length, depth)? else {
                    return Ok(None);
                };
                let value = self.value(depth + 1)?;
                Ok(value.map(|value| Value::Attribute { attributes, value: Box::new(value) }))
            }
        }
    }

    /// The text between the type byte and CRLF.
    fn line(&mut self) -> Result<Option<&'a [u8]>, ReplyError> {
        let rest = self.buf.get(self.pos + 1..).unwrap_or(&[]);
        let Some(end) = memchr(b'\r', rest) else {
            return Ok(None);
        };
        match rest.get(end + 1) {
            None => Ok(None),
            Some(b'\n') => {
                self.pos += end + 3;
                Ok(rest.get(..end))
            }
            Some(_) => Err(ReplyError::Line),
        }
    }

    fn payload(&mut self, length: usize) -> Result<Option<&'a [u8]>, ReplyError> {
        let end = self.pos.checked_add(length).ok_or(ReplyError::Length)?;
        let Some(bytes) = self.buf.get(self.pos..end) else {
            return Ok(None);
        };
        match self.buf.get(end..).unwrap_or(&[]) {
            [b'\r', b'\n', ..] => {
                self.pos = end + 2;
                Ok(Some(bytes))
            }
            [] | [b'\r'] => Ok(None),
            _ => Err(ReplyError::Line),
        }
    }

    fn elements(&mut self, length: usize, depth: usize) -> Result<Option<Vec<Value>>, ReplyError> {
        // The count is only the peer's word: the Vec grows with what is there.
        let mut elements = Vec::new();
        for _ in 0..length {
            let Some(element) = self.value(depth + 1)? else {
                return Ok(None);
            };
            elements.push(element);
        }
        Ok(Some(elements))
    }

    fn pairs(&mut self, length: usize, depth: usize) -> Result<Option<Vec<(Value, Value)>>, ReplyError> {
        let mut pairs = Vec::new();
        for _ in 0..length {
            let Some(key) = self.value(depth + 1)? else {
                return Ok(None);
            };
            let Some(value) = self.value(depth + 1)? else {
                return Ok(None);
            };
            pairs.push((key, value));
        }
        Ok(Some(pairs))
    }
}

/// An integer reply; unlike a length it may have a `+`.
fn integer(line: &[u8]) -> Result<i64, ReplyError> {
    std::str::from_utf8(line).ok().and_then(|text| text.parse().ok()).ok_or(ReplyError::Line)
}

fn text(line: &[u8]) -> Result<String, ReplyError> {
    match std::str::from_utf8(line) {
        Ok(text) if !text.is_empty() => Ok(text.to_string()),
        _ => Err(ReplyError::Line),
    }
}

fn verbatim(bytes: &[u8]) -> Result<Value, ReplyError> {
    let Some(([first, second, third, b':'], text)) = bytes.split_first_chunk::<4>() else {
        return Err(ReplyError::Line);
    };
    let format = String::from_utf8(vec![*first, *second, *third]).map_err(|_| ReplyError::Line)?;
    Ok(Value::Verbatim { format, text: text.to_vec() })
}

impl Value {
    /// Whether this is an error.
    pub fn is_error(&self) -> bool {
        matches!(self, Value::Error(_))
    }

    /// The bytes of a bulk, status, error, verbatim text, double or big number.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Value::Simple(bytes) | Value::Error(bytes) | Value::Bulk(bytes) => Some(bytes),
            Value::Verbatim { text, .. } => Some(text),
            Value::Double(text) | Value::BigNumber(text) => Some(text.as_bytes()),
            _ => None,
        }
    }

    /// The elements of an array, set or push message.
    pub fn as_elements(&self) -> Option<&[Value]> {
        match self {
            Value::Array(elements) | Value::Set(elements) | Value::Push(elements) => Some(elements),
            _ => None,
        }
    }

    /// Writes the value as a server would, in the protocol version of `reply`.
    pub fn write(&self, reply: &mut Reply) {
        match self {
            Value::Simple(text) => reply.simple(text),
            Value::Error(text) => write_error(reply, text),
            Value::Int(number) => reply.int(*number),
            Value::Bulk(bytes) => reply.bulk(bytes),
            Value::Null => reply.null(),
            Value::NullArray => reply.null_array(),
            Value::Double(text) => reply.double_text(text),
            Value::Bool(value) => reply.bool(*value),
            Value::BigNumber(text) => reply.big_number(text),
            Value::Verbatim { format, text } => reply.verbatim(text, format),
            Value::Array(elements) => {
                reply.array(elements.len());
                elements.iter().for_each(|element| element.write(reply));
            }
            Value::Set(elements) => {
                reply.set(elements.len());
                elements.iter().for_each(|element| element.write(reply));
            }
            Value::Push(elements) => {
                reply.push(elements.len());
                elements.iter().for_each(|element| element.write(reply));
            }
            Value::Map(pairs) => {
                reply.map(pairs.len());
                write_pairs(reply, pairs);
            }
            Value::Attribute { attributes, value } => {
                if reply.attribute(attributes.len()) {
                    write_pairs(reply, attributes);
                }
                value.write(reply);
            }
        }
    }
}

fn write_pairs(reply: &mut Reply, pairs: &[(Value, Value)]) {
    for (key, value) in pairs {
        key.write(reply);
        value.write(reply);
    }
}

/// An error with line ends in its text can only be told in RESP3's `!` form.
fn write_error(reply: &mut Reply, text: &[u8]) {
    if reply.proto() == Proto::Resp3 && memchr::memchr2(b'\r', b'\n', text).is_some() {
        let start = reply.len();
        reply.bulk(text);
        if let Some(mark) = reply.buf.get_mut(start) {
            *mark = b'!';
        }
    } else {
        reply.error(text);
    }
}
