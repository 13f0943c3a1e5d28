//! What a string value looks like to its readers.

/// A string value: an integer or bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StrRef<'a> {
    /// A canonical 64-bit integer; its text is the value.
    Int(i64),
    /// Bytes.
    Bytes(&'a [u8]),
}

impl<'a> StrRef<'a> {
    /// The bytes; an integer's text is written into `room`.
    #[inline]
    pub fn as_bytes(self, room: &'a mut itoa::Buffer) -> &'a [u8] {
        match self {
            StrRef::Int(number) => room.format(number).as_bytes(),
            StrRef::Bytes(bytes) => bytes,
        }
    }

    /// A copy of the bytes.
    pub fn to_vec(self) -> Vec<u8> {
        match self {
            StrRef::Int(number) => itoa::Buffer::new().format(number).as_bytes().to_vec(),
            StrRef::Bytes(bytes) => bytes.to_vec(),
        }
    }

    /// Length in bytes.
    pub fn len(self) -> usize {
        match self {
            StrRef::Int(number) => itoa::Buffer::new().format(number).len(),
            StrRef::Bytes(bytes) => bytes.len(),
        }
    }

    /// Whether there are no bytes.
    pub fn is_empty(self) -> bool {
        matches!(self, StrRef::Bytes([]))
    }

    /// The value as an integer, by Redis' strict rules.
    #[inline]
    pub fn as_int(self) -> Option<i64> {
        match self {
            StrRef::Int(number) => Some(number),
            StrRef::Bytes(bytes) => resp::num::parse_i64(bytes),
        }
    }
}
