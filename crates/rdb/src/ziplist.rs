//! Ziplist: the packed list that Redis wrote before 7.0. Read only; loading turns it into a listpack.
//!
//! ```text
//! ┌─────────────┬─────────────────────┬──────────┬─────────┬───┬──────┐
//! │ total bytes │ offset of last entry│ count    │ entry 0 │ … │ 0xFF │   entry: previous entry's size,
//! │ u32 LE      │ u32 LE              │ u16 LE   │         │   │      │          encoding, payload
//! └─────────────┴─────────────────────┴──────────┴─────────┴───┴──────┘
//!
//! previous size: one byte below 254, or 254 and u32 LE
//! 00llllll           string of up to 63 bytes      11000000  i16 LE
//! 01llllll llllllll  string, 14-bit length (BE)    11010000  i32 LE
//! 10______ u32 BE    string                        11100000  i64 LE
//! 11110000 i24 LE    11111110 i8                   1111xxxx  integer x − 1, for x of 1..=13
//! ```

use std::fmt;

use crate::listpack::{Elem, Listpack};

const HEADER_BYTES: usize = 10;
const END: u8 = 0xff;

/// Bytes that are no ziplist, or one that no listpack can hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InvalidZiplist;

impl fmt::Display for InvalidZiplist {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("malformed ziplist")
    }
}

impl std::error::Error for InvalidZiplist {}

/// A validated ziplist blob.
#[derive(Clone, Copy, Debug)]
pub struct Ziplist<'a> {
    bytes: &'a [u8],
    len: usize,
}

impl<'a> Ziplist<'a> {
    /// Checks the header and every entry.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, InvalidZiplist> {
        let (header, _) = bytes.split_first_chunk::<HEADER_BYTES>().ok_or(InvalidZiplist)?;
        let [a, b, c, d, e, f, g, h, i, j] = *header;
        let total = u32::from_le_bytes([a, b, c, d]) as usize;
        let tail = u32::from_le_bytes([e, f, g, h]) as usize;
        let declared = u16::from_le_bytes([i, j]);
        if total != bytes.len() || total <= HEADER_BYTES || bytes.last() != Some(&END) || tail > total - 1 {
            return Err(InvalidZiplist);
        }
        let end = total - 1;
        let (mut at, mut last, mut last_size, mut len) = (HEADER_BYTES, None, 0, 0_usize);
        while at < end {
            let entry = decode(bytes, at).ok_or(InvalidZiplist)?;
            if entry.previous_size != last_size || at + entry.size > end {
                return Err(InvalidZiplist);
            }
            last = Some(at);
            last_size = entry.size;
            at += entry.size;
            len += 1;
        }
        let counted = declared == u16::MAX || usize::from(declared) == len;
        if at != end || last.is_some_and(|last| last != tail) || !counted {
            return Err(InvalidZiplist);
        }
        Ok(Self { bytes, len })
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All elements in order.
    pub fn iter(&self) -> Iter<'a> {
        Iter { bytes: self.bytes, at: HEADER_BYTES }
    }

    /// The same elements as a listpack. Fails only where that would pass the safe size of a listpack.
    pub fn to_listpack(&self) -> Result<Listpack, InvalidZiplist> {
        let mut listpack = Listpack::new();
        for elem in self.iter() {
            if !listpack.safe_to_add(elem.len_as_text() + 16) {
                return Err(InvalidZiplist);
            }
            listpack.append_elem(elem);
        }
        Ok(listpack)
    }
}

/// See [`Ziplist::iter`].
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Iter<'a> {
    type Item = Elem<'a>;

    fn next(&mut self) -> Option<Elem<'a>> {
        let entry = decode(self.bytes, self.at)?;
        self.at += entry.size;
        Some(entry.elem)
    }
}

struct Entry<'a> {
    previous_size: usize,
    size: usize,
    elem: Elem<'a>,
}

/// The entry at byte offset `at`; None at the end byte, at an unknown encoding, or where it leaves `bytes`.
fn decode(bytes: &[u8], at: usize) -> Option<Entry<'_>> {
    let entry = bytes.get(at..)?;
    let (previous_size, head) = match *entry.first()? {
        END => return None,
        254 => (u32::from_le_bytes(*entry.get(1..)?.first_chunk()?) as usize, 5),
        size => (usize::from(size), 1),
    };
    let rest = entry.get(head..)?;
    let (elem, size) = decode_body(rest)?;
    Some(Entry { previous_size, size: head + size, elem })
}

fn decode_body(rest: &[u8]) -> Option<(Elem<'_>, usize)> {
    let first = *rest.first()?;
    let string = |head: usize, len: usize| Some((Elem::Bytes(rest.get(head..)?.get(..len)?), head + len));
    let integer = |width: usize| -> Option<(Elem<'_>, usize)> {
        let stored = rest.get(1..=width)?;
        // The bytes at the top, then shifted down with the sign.
        let mut wide = [0; 8];
        wide.get_mut(8 - width..)?.copy_from_slice(stored);
        Some((Elem::Int(i64::from_le_bytes(wide) >> (64 - 8 * width)), width + 1))
    };
    match first {
        0x00..=0x3f => string(1, usize::from(first)),
        0x40..=0x7f => string(2, usize::from(first & 0x3f) << 8 | usize::from(*rest.get(1)?)),
        0x80..=0xbf => string(5, u32::from_be_bytes(*rest.get(1..)?.first_chunk()?) as usize),
        0xc0 => integer(2),
        0xd0 => integer(4),
        0xe0 => integer(8),
        0xf0 => integer(3),
        0xfe => integer(1),
        0xf1..=0xfd => Some((Elem::Int(i64::from(first & 0x0f) - 1), 1)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use proptest::prelude::*;

    use super::*;

    /// Entries already encoded (without the previous size) as a ziplist.
    pub(crate) fn build(entries: &[Vec<u8>]) -> Vec<u8> {
        let mut body = vec![];
        let (mut last_size, mut tail) = (0_usize, HEADER_BYTES);
        for entry in entries {
            tail = HEADER_BYTES + body.len();
            let before = body.len();
            match u8::try_from(last_size) {
                Ok(size) if size < 254 => body.push(size),
                _ => {
                    body.push(254);
                    body.extend_from_slice(&u32::try_from(last_size).unwrap().to_le_bytes());
                }
            }
            body.extend_from_slice(entry);
            last_size = body.len() - before;
        }
        let mut bytes = u32::try_from(HEADER_BYTES + body.len() + 1).unwrap().to_le_bytes().to_vec();
        bytes.extend_from_slice(&u32::try_from(tail).unwrap().to_le_bytes());
        bytes.extend_from_slice(&u16::try_from(entries.len()).unwrap().to_le_bytes());
        bytes.extend_from_slice(&body);
        bytes.push(END);
        bytes
    }

    fn sample() -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
        let long = vec![b'q'; 300];
        let mut medium = vec![0x41, 0x2c];
        medium.extend_from_slice(&long);
        let mut large = vec![0x80, 0, 0, 1, 0x2c];
        large.extend_from_slice(&long);
        let entries = vec![
            b"\x05hello".to_vec(),
            medium,
            large,
            vec![0xc0, 0xfe, 0xff],
            vec![0xd0, 0, 0, 1, 0],
            vec![0xe0, 0, 0, 0, 0, 0, 0, 0, 0x80],
            vec![0xf0, 0, 0, 0x80],
            vec![0xfe, 0x80],
            vec![0xf1],
            vec![0xfd],
            vec![0x00],
        ];
        let values = [
            "hello",
            std::str::from_utf8(&long).unwrap(),
            std::str::from_utf8(&long).unwrap(),
            "-2",
            "65536",
            "-9223372036854775808",
            "-8388608",
            "-128",
            "0",
            "12",
            "",
        ];
        (entries, values.iter().map(|value| value.as_bytes().to_vec()).collect())
    }

    #[test]
    fn every_encoding_is_read() {
        let (entries, values) = sample();
        let bytes = build(&entries);
        let ziplist = Ziplist::parse(&bytes).unwrap();
        assert_eq!(ziplist.len(), values.len());
        assert!(ziplist.iter().map(|elem| elem.to_vec()).eq(values.iter().cloned()));
        let listpack = ziplist.to_listpack().unwrap();
        assert!(listpack.iter().map(|elem| elem.to_vec()).eq(values));
        assert!(Ziplist::parse(&build(&[])).unwrap().is_empty());
    }

    proptest! {
        #[test]
        fn damage_is_refused_or_sound(at in any::<usize>(), byte in any::<u8>(), cut in 0..3_usize) {
            let mut bytes = build(&sample().0);
            let at = at % bytes.len();
            bytes[at] = byte;
            bytes.truncate(bytes.len() - cut);
            if let Ok(ziplist) = Ziplist::parse(&bytes) {
                prop_assert_eq!(ziplist.iter().count(), ziplist.len());
            }
        }
    }
}
