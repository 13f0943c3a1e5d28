//! The bytes of one listpack entry: encode, decode, step forward and back. See the drawing in the parent.

use resp::num;

use super::{Elem, HEADER_BYTES};

/// A value as an entry will store it, without its backlen: up to nine bytes of head, then a borrowed payload.
pub(super) struct Encoded<'a> {
    head: [u8; 9],
    head_len: u8,
    payload: &'a [u8],
}

impl<'a> Encoded<'a> {
    /// Canonical integers become integers; everything else a string.
    #[inline]
    pub(super) fn of(value: &'a [u8]) -> Self {
        if let Some(number) = num::parse_i64(value) {
            return Self::of_int(number);
        }
        let mut head = [0; 9];
        let len = value.len();
        let [a, b, c, d, ..] = len.to_le_bytes();
        let head_len = if len < 64 {
            head[0] = 0x80 | a;
            1
        } else if len < 4096 {
            head[0] = 0xe0 | b;
            head[1] = a;
            2
        } else {
            assert!(u32::try_from(len).is_ok(), "a listpack entry passes its format: ask safe_to_add before adding");
            head[..5].copy_from_slice(&[0xf0, a, b, c, d]);
            5
        };
        Self { head, head_len, payload: value }
    }

    /// The narrowest encoding of an integer.
    #[inline]
    #[allow(clippy::indexing_slicing, reason = "a width is at most eight, the head has room for nine")]
    pub(super) fn of_int(value: i64) -> Self {
        let mut head = [0; 9];
        let bytes = value.to_le_bytes();
        let (tag, width) = match value {
            0..=127 => {
                head[0] = bytes[0];
                return Self { head, head_len: 1, payload: &[] };
            }
            -4096..=4095 => {
                head[0] = 0xc0 | (bytes[1] & 0x1f);
                head[1] = bytes[0];
                return Self { head, head_len: 2, payload: &[] };
            }
            -0x8000..=0x7fff => (0xf1, 2),
            -0x80_0000..=0x7f_ffff => (0xf2, 3),
            -0x8000_0000..=0x7fff_ffff => (0xf3, 4),
            _ => (0xf4, 8_u8),
        };
        head[0] = tag;
        let width_bytes = usize::from(width);
        head[1..=width_bytes].copy_from_slice(&bytes[..width_bytes]);
        Self { head, head_len: width + 1, payload: &[] }
    }

    pub(super) fn len(&self) -> usize {
        usize::from(self.head_len) + self.payload.len()
    }

    #[allow(clippy::indexing_slicing, reason = "the length of what was put in")]
    pub(super) fn head(&self) -> &[u8] {
        &self.head[..usize::from(self.head_len)]
    }

    pub(super) fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

/// Bytes that the backlen of an entry of `encoded` bytes takes. The odd borders (16383 already takes three) are the
/// format's.
#[inline]
pub(super) fn backlen_size(encoded: usize) -> usize {
    match encoded {
        0..=127 => 1,
        128..=16_382 => 2,
        16_383..=2_097_150 => 3,
        2_097_151..=268_435_454 => 4,
        _ => 5,
    }
}

/// The backlen of an entry of `encoded` bytes, and how many of the five bytes it takes.
#[inline]
#[allow(clippy::indexing_slicing, reason = "a size is at most five")]
pub(super) fn encode_backlen(encoded: usize) -> ([u8; 5], usize) {
    if encoded < 128 {
        let [low, ..] = encoded.to_le_bytes();
        return ([low, 0, 0, 0, 0], 1);
    }
    let size = backlen_size(encoded);
    let mut bytes = [0; 5];
    let mut rest = encoded;
    for index in (0..size).rev() {
        let more = if index == 0 { 0 } else { 0x80 };
        let [low, ..] = rest.to_le_bytes();
        bytes[index] = (low & 0x7f) | more;
        rest >>= 7;
    }
    (bytes, size)
}

/// The start of the entry that ends right before byte offset `at`.
#[inline]
pub(super) fn step_back(bytes: &[u8], at: usize) -> Option<usize> {
    let mut encoded = 0_usize;
    let mut shift = 0;
    let mut cursor = at;
    loop {
        cursor = cursor.checked_sub(1)?;
        let byte = *bytes.get(cursor)?;
        encoded |= usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
        shift += 7;
        if shift > 28 {
            return None;
        }
    }
    let start = at.checked_sub(encoded + backlen_size(encoded))?;
    (start >= HEADER_BYTES).then_some(start)
}

/// The element at byte offset `at`, and the bytes of its encoding and payload. None at the end byte, at an unknown
/// encoding, and where the entry would leave `bytes`.
#[inline]
pub(super) fn decode(bytes: &[u8], at: usize) -> Option<(Elem<'_>, usize)> {
    let rest = bytes.get(at..)?;
    let first = *rest.first()?;
    if first < 0x80 {
        return Some((Elem::Int(i64::from(first)), 1));
    }
    if first < 0xc0 {
        let len = usize::from(first & 0x3f);
        return Some((Elem::Bytes(rest.get(1..1 + len)?), 1 + len));
    }
    decode_wide(rest, first)
}

#[allow(clippy::indexing_slicing, reason = "callers pass a width of one to eight")]
fn decode_wide(rest: &[u8], first: u8) -> Option<(Elem<'_>, usize)> {
    let integer = |width: usize| -> Option<(Elem<'_>, usize)> {
        let stored = rest.get(1..=width)?;
        // Put the bytes at the top, then shift down with the sign.
        let mut wide = [0; 8];
        wide[8 - width..].copy_from_slice(stored);
        let value = i64::from_le_bytes(wide) >> (64 - 8 * width);
        Some((Elem::Int(value), width + 1))
    };
    match first {
        0xc0..=0xdf => {
            let second = *rest.get(1)?;
            let raw = i64::from(first & 0x1f) << 8 | i64::from(second);
            // Thirteen bits with sign.
            Some((Elem::Int(if raw >= 4096 { raw - 8192 } else { raw }), 2))
        }
        0xe0..=0xef => {
            let len = usize::from(first & 0x0f) << 8 | usize::from(*rest.get(1)?);
            Some((Elem::Bytes(rest.get(2..2 + len)?), 2 + len))
        }
        0xf0 => {
            let len = u32::from_le_bytes(*rest.get(1..)?.first_chunk()?) as usize;
            Some((Elem::Bytes(rest.get(5..5 + len)?), 5 + len))
        }
        0xf1 => integer(2),
        0xf2 => integer(3),
        0xf3 => integer(4),
        0xf4 => integer(8),
        _ => None,
    }
}

/// The whole size of the entry at byte offset `at`, backlen included; None at the end byte and outside.
#[inline]
pub(super) fn entry_size(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = bytes.get(at..)?;
    let encoded = match *rest.first()? {
        0..=0x7f => return Some(2),
        first @ 0x80..=0xbf => return Some(usize::from(first & 0x3f) + 2),
        0xc0..=0xdf => return Some(3),
        first @ 0xe0..=0xef => 2 + (usize::from(first & 0x0f) << 8 | usize::from(*rest.get(1)?)),
        0xf0 => 5 + u32::from_le_bytes(*rest.get(1..)?.first_chunk()?) as usize,
        0xf1 => 3,
        0xf2 => 4,
        0xf3 => 5,
        0xf4 => 9,
        _ => return None,
    };
    Some(encoded + backlen_size(encoded))
}
