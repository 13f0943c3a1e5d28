//! Zipmap: the packed hash that Redis wrote before 2.6. Read only; loading turns it into a listpack.
//!
//! ```text
//! ┌────────┬───────────┬───────┬───────────┬──────┬───────┬────────────┬───┬──────┐
//! │ count  │ field len │ field │ value len │ free │ value │ free bytes │ … │ 0xFF │
//! │ u8     │           │       │           │ u8   │       │            │   │      │
//! └────────┴───────────┴───────┴───────────┴──────┴───────┴────────────┴───┴──────┘
//! length: one byte below 254, or 254 and u32 LE.  count: 254 means "walk".
//! ```

use std::fmt;

use crate::listpack::Listpack;

const BIG_LENGTH: u8 = 254;
const END: u8 = 0xff;

/// Bytes that are no zipmap, or one that no listpack can hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InvalidZipmap;

impl fmt::Display for InvalidZipmap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("malformed zipmap")
    }
}

impl std::error::Error for InvalidZipmap {}

/// A validated zipmap blob.
#[derive(Clone, Copy, Debug)]
pub struct Zipmap<'a> {
    pairs: &'a [u8],
    len: usize,
}

impl<'a> Zipmap<'a> {
    /// Checks every pair. Redis: a zipmap without pairs is refused.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, InvalidZipmap> {
        let (&declared, pairs) = bytes.split_first().ok_or(InvalidZipmap)?;
        let mut rest = pairs;
        let mut len = 0_usize;
        while rest.first() != Some(&END) {
            rest = decode(rest).ok_or(InvalidZipmap)?.rest;
            len += 1;
        }
        let counted = declared == BIG_LENGTH || usize::from(declared) == len;
        if rest.len() != 1 || len == 0 || !counted {
            return Err(InvalidZipmap);
        }
        Ok(Self { pairs, len })
    }

    /// Number of pairs.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no pair; never, after [`Self::parse`].
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All fields with their values.
    pub fn iter(&self) -> Iter<'a> {
        Iter { rest: self.pairs }
    }

    /// Fields and values, alternating, as a listpack. Fails only where that would pass the safe size of a listpack.
    pub fn to_listpack(&self) -> Result<Listpack, InvalidZipmap> {
        let mut listpack = Listpack::new();
        for (field, value) in self.iter() {
            if !listpack.safe_to_add(field.len() + value.len() + 32) {
                return Err(InvalidZipmap);
            }
            listpack.append(field);
            listpack.append(value);
        }
        Ok(listpack)
    }
}

/// See [`Zipmap::iter`].
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let pair = decode(self.rest)?;
        self.rest = pair.rest;
        Some((pair.field, pair.value))
    }
}

struct Pair<'a> {
    field: &'a [u8],
    value: &'a [u8],
    rest: &'a [u8],
}

/// The first pair; None at the end byte and where it leaves `bytes`.
fn decode(bytes: &[u8]) -> Option<Pair<'_>> {
    let (len, rest) = decode_length(bytes)?;
    let (field, rest) = rest.split_at_checked(len)?;
    let (len, rest) = decode_length(rest)?;
    let (&free, rest) = rest.split_first()?;
    let (value, rest) = rest.split_at_checked(len)?;
    let rest = rest.get(usize::from(free)..)?;
    Some(Pair { field, value, rest })
}

fn decode_length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    match *bytes.first()? {
        END => None,
        BIG_LENGTH => {
            let (len, rest) = bytes.get(1..)?.split_first_chunk()?;
            Some((u32::from_le_bytes(*len) as usize, rest))
        }
        len => Some((usize::from(len), bytes.get(1..)?)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;

    #[test]
    fn pairs_are_read() {
        let bytes = b"\x02\x03foo\x03\x00bar\x05hello\x05\x02world__\xff";
        let zipmap = Zipmap::parse(bytes).unwrap();
        let pairs: Vec<_> = zipmap.iter().collect();
        assert_eq!(pairs, [(&b"foo"[..], &b"bar"[..]), (b"hello", b"world")]);
        assert_eq!(zipmap.to_listpack().unwrap().len(), 4);
        assert!(Zipmap::parse(b"\x00\xff").is_err());
        for cut in 0..bytes.len() {
            assert!(Zipmap::parse(&bytes[..cut]).is_err());
        }
        for at in 0..bytes.len() {
            for byte in 0..=255 {
                let mut bytes = bytes.to_vec();
                bytes[at] = byte;
                if let Ok(zipmap) = Zipmap::parse(&bytes) {
                    assert_eq!(zipmap.iter().count(), zipmap.len());
                }
            }
        }
    }
}
