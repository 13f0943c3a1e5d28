//! One element of a packed container: bytes, or an integer that stands for its decimal text.

use resp::num;

/// An element as stored. Both kinds are strings to a client: `Int(12)` is the string `12`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Elem<'a> {
    /// A string, borrowed from the container.
    Bytes(&'a [u8]),
    /// An integer stored in binary.
    Int(i64),
}

impl<'a> Elem<'a> {
    /// Whether the element is the string `other`.
    #[inline]
    pub fn eq_bytes(&self, other: &[u8]) -> bool {
        match *self {
            Elem::Bytes(text) => text == other,
            Elem::Int(value) => num::parse_i64(other) == Some(value),
        }
    }

    /// Appends the string.
    #[inline]
    pub fn write_to(&self, out: &mut Vec<u8>) {
        match *self {
            Elem::Bytes(text) => out.extend_from_slice(text),
            Elem::Int(value) => num::write_int(out, value),
        }
    }

    /// Length of the string in bytes.
    #[inline]
    pub fn len_as_text(&self) -> usize {
        match *self {
            Elem::Bytes(text) => text.len(),
            Elem::Int(value) => num::int_text_len(value),
        }
    }

    /// The string; an integer's text is put into `scratch`.
    #[inline]
    pub fn to_bytes<'b>(&self, scratch: &'b mut [u8; 24]) -> &'b [u8]
    where
        'a: 'b,
    {
        match *self {
            Elem::Bytes(text) => text,
            Elem::Int(value) => num::format_int(value, scratch),
        }
    }

    /// The string as a new vector.
    pub fn to_vec(&self) -> Vec<u8> {
        self.to_bytes(&mut [0; 24]).to_vec()
    }

    /// The number, if the string is a canonical 64-bit integer.
    pub fn as_int(&self) -> Option<i64> {
        match *self {
            Elem::Bytes(text) => num::parse_i64(text),
            Elem::Int(value) => Some(value),
        }
    }
}
