//! Reading RDB primitives from a slice.

use std::fmt;

use super::{INT8, INT16, INT32, LENGTH_32, LENGTH_64, LZF};
use crate::listpack::Elem;
use crate::lzf;
use crate::value::ValueType;

/// Why bytes could not be read as RDB.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecodeError {
    /// The bytes end inside a value.
    Truncated,
    /// A first byte that starts no length or string.
    UnknownEncoding(u8),
    /// A type byte that names no type of value.
    UnknownType(u8),
    /// A type of value that this crate does not read: module values.
    Unsupported(ValueType),
    /// A blob or string that breaks the rules of its format, which is named.
    Malformed(&'static str),
    /// A container without elements, which no key may hold.
    Empty,
    /// The same member or field twice, in a container of this kind.
    Duplicate(&'static str),
    /// A score that is not a number.
    ScoreNotANumber,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("RDB bytes end inside a value"),
            Self::UnknownEncoding(byte) => write!(f, "unknown RDB length or string encoding 0x{byte:02x}"),
            Self::UnknownType(byte) => write!(f, "unknown RDB value type {byte}"),
            Self::Unsupported(value_type) => write!(f, "RDB values of type {value_type:?} are not supported"),
            Self::Malformed(what) => write!(f, "malformed {what}"),
            Self::Empty => f.write_str("empty container"),
            Self::Duplicate(what) => write!(f, "duplicate element in a {what}"),
            Self::ScoreNotANumber => f.write_str("sorted set score is not a number"),
        }
    }
}

impl std::error::Error for DecodeError {}

/// What a length's bytes tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Length {
    /// A length.
    Plain(u64),
    /// The first byte (0xC0 and more) of a string in another encoding.
    Encoded(u8),
}

/// A string as read: borrowed where it is stored plainly.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StringValue<'a> {
    /// Bytes of the input.
    Borrowed(&'a [u8]),
    /// Decompressed bytes.
    Owned(Vec<u8>),
    /// The decimal text of an integer.
    Int(i64),
}

impl<'a> StringValue<'a> {
    /// The string as an element: for its conversions, and to add it to packed containers.
    pub fn as_elem(&self) -> Elem<'_> {
        match self {
            Self::Borrowed(text) => Elem::Bytes(text),
            Self::Owned(text) => Elem::Bytes(text),
            Self::Int(value) => Elem::Int(*value),
        }
    }

    /// The string; an integer's text is put into `scratch`.
    pub fn to_bytes<'b>(&'b self, scratch: &'b mut [u8; 24]) -> &'b [u8] {
        self.as_elem().to_bytes(scratch)
    }

    /// The string as a vector; moves where it can.
    pub fn into_vec(self) -> Vec<u8> {
        match self {
            Self::Owned(text) => text,
            other => other.as_elem().to_vec(),
        }
    }

    /// Length of the string in bytes.
    pub fn len(&self) -> usize {
        self.as_elem().len_as_text()
    }

    /// Whether the string has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A cursor over RDB bytes. After an error its place is unspecified.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads `bytes` from their start.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// What has not been read yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next `len` bytes.
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let (bytes, rest) = self.rest.split_at_checked(len).ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(*bytes)
    }

    /// One byte.
    pub fn byte(&mut self) -> Result<u8, DecodeError> {
        self.array().map(|[byte]| byte)
    }

    /// A signed 32-bit integer, little-endian: old expiry times.
    pub fn i32_le(&mut self) -> Result<i32, DecodeError> {
        self.array().map(i32::from_le_bytes)
    }

    /// A signed 64-bit integer, little-endian: expiry times in milliseconds.
    pub fn i64_le(&mut self) -> Result<i64, DecodeError> {
        self.array().map(i64::from_le_bytes)
    }

    /// An unsigned 64-bit integer, little-endian: checksums.
    pub fn u64_le(&mut self) -> Result<u64, DecodeError> {
        self.array().map(u64::from_le_bytes)
    }

    /// A double in its eight bytes.
    pub fn double(&mut self) -> Result<f64, DecodeError> {
        self.array().map(f64::from_le_bytes)
    }

    /// A double as text behind a length byte; 253, 254 and 255 mean NaN and the infinities. Written before RDB 8.
    pub fn text_double(&mut self) -> Result<f64, DecodeError> {
        match self.byte()? {
            253 => Ok(f64::NAN),
            254 => Ok(f64::INFINITY),
            255 => Ok(f64::NEG_INFINITY),
            len => {
                let text = self.bytes(usize::from(len))?;
                resp::num::parse_f64(text).ok_or(DecodeError::Malformed("double"))
            }
        }
    }

    /// A length, or the first byte of an encoded string.
    #[inline]
    pub fn length_or_encoding(&mut self) -> Result<Length, DecodeError> {
        let first = self.byte()?;
        let length = match first {
            0x00..=0x3f => u64::from(first),
            0x40..=0x7f => u64::from(first & 0x3f) << 8 | u64::from(self.byte()?),
            LENGTH_32 => self.array().map(u32::from_be_bytes)?.into(),
            LENGTH_64 => self.array().map(u64::from_be_bytes)?,
            0x82..=0xbf => return Err(DecodeError::UnknownEncoding(first)),
            0xc0.. => return Ok(Length::Encoded(first)),
        };
        Ok(Length::Plain(length))
    }

    /// A length that must be plain.
    pub fn length(&mut self) -> Result<u64, DecodeError> {
        match self.length_or_encoding()? {
            Length::Plain(length) => Ok(length),
            Length::Encoded(byte) => Err(DecodeError::UnknownEncoding(byte)),
        }
    }

    /// A length of bytes that must still be there.
    fn length_in_bytes(&mut self) -> Result<usize, DecodeError> {
        usize::try_from(self.length()?).map_err(|_| DecodeError::Truncated)
    }

    /// Moves behind a string without reading it.
    #[inline]
    pub fn skip_string(&mut self) -> Result<(), DecodeError> {
        let len = match self.length_or_encoding()? {
            Length::Plain(length) => usize::try_from(length).map_err(|_| DecodeError::Truncated)?,
            Length::Encoded(INT8) => 1,
            Length::Encoded(INT16) => 2,
            Length::Encoded(INT32) => 4,
            Length::Encoded(LZF) => {
                let compressed_len = self.length_in_bytes()?;
                self.length_in_bytes()?;
                compressed_len
            }
            Length::Encoded(byte) => return Err(DecodeError::UnknownEncoding(byte)),
        };
        self.bytes(len).map(drop)
    }

    /// A string.
    #[inline]
    pub fn string(&mut self) -> Result<StringValue<'a>, DecodeError> {
        let first = match self.length_or_encoding()? {
            Length::Plain(length) => {
                let length = usize::try_from(length).map_err(|_| DecodeError::Truncated)?;
                return self.bytes(length).map(StringValue::Borrowed);
            }
            Length::Encoded(first) => first,
        };
        match first {
            INT8 => self.array().map(|bytes| StringValue::Int(i8::from_le_bytes(bytes).into())),
            INT16 => self.array().map(|bytes| StringValue::Int(i16::from_le_bytes(bytes).into())),
            INT32 => self.array().map(|bytes| StringValue::Int(i32::from_le_bytes(bytes).into())),
            LZF => {
                let compressed_len = self.length_in_bytes()?;
                let len = self.length_in_bytes()?;
                let compressed = self.bytes(compressed_len)?;
                let text = lzf::decompress(compressed, len).map_err(|_| DecodeError::Malformed("LZF string"))?;
                Ok(StringValue::Owned(text))
            }
            _ => Err(DecodeError::UnknownEncoding(first)),
        }
    }
}
