//! Intset: a sorted set of integers in one block of memory, in Redis' bytes.
//!
//! ```text
//! ┌──────────────┬──────────┬────────┬────────┬───┐   encoding: 2, 4 or 8 = bytes per integer,
//! │ encoding     │ length   │ int 0  │ int 1  │ … │   the least that held every integer ever inserted
//! │ u32 LE       │ u32 LE   │        │        │   │   (it grows on insertion and never shrinks);
//! └──────────────┴──────────┴────────┴────────┴───┘   integers little-endian, ascending, no two equal
//! ```
//!
//! The format is Redis' own (7.2, intset.c). Lookup is a binary search; insertion moves the tail.

use std::cmp::Ordering;
use std::fmt;
use std::ptr::NonNull;

use crate::block::{Block, Header};

#[cfg(test)]
mod tests;

/// Bytes of the header: encoding and length.
pub const HEADER_BYTES: usize = 8;

/// The header of an intset, for [`Block`].
pub(crate) enum IntsetHeader {}

impl Header for IntsetHeader {
    type Bytes = [u8; HEADER_BYTES];
    const SIZE: usize = HEADER_BYTES;
    const HAS_GAPS: bool = false;

    #[inline]
    fn total_len(header: &[u8]) -> usize {
        let (width, len) = fields(header);
        (width as usize).saturating_mul(len as usize).saturating_add(HEADER_BYTES)
    }
}

/// An owned intset: one thin pointer (8 bytes, also as `Option`) to a 16-byte aligned block of
/// `size_class::round_up(bytes_len())` bytes.
///
/// Invariant: the encoding is 2, 4 or 8 and the integers ascend strictly.
#[repr(transparent)]
#[derive(Clone)]
pub struct Intset {
    block: Block<IntsetHeader>,
}

/// Bytes that are no intset: a wrong encoding, a length that does not fit, integers that do not ascend, or no integer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InvalidIntset;

impl fmt::Display for InvalidIntset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("malformed intset")
    }
}

impl std::error::Error for InvalidIntset {}

#[inline]
fn fields(header: &[u8]) -> (u32, u32) {
    match header {
        [a, b, c, d, e, f, g, h, ..] => (u32::from_le_bytes([*a, *b, *c, *d]), u32::from_le_bytes([*e, *f, *g, *h])),
        _ => (0, 0),
    }
}

fn header(width: usize, len: usize) -> [u8; HEADER_BYTES] {
    let (Ok(width), Ok(len)) = (u32::try_from(width), u32::try_from(len)) else {
        panic!("an intset of {len} integers passes its format");
    };
    let mut bytes = [0; HEADER_BYTES];
    bytes[..4].copy_from_slice(&width.to_le_bytes());
    bytes[4..].copy_from_slice(&len.to_le_bytes());
    bytes
}

/// Bytes that `value` needs: 2, 4 or 8.
#[inline]
fn width_of(value: i64) -> usize {
    if i16::try_from(value).is_ok() {
        2
    } else if i32::try_from(value).is_ok() {
        4
    } else {
        8
    }
}

/// The integer with number `index` in the integers' bytes. Callers stay in range; outside it reads as zero.
#[inline]
fn read(integers: &[u8], width: usize, index: usize) -> i64 {
    let stored = integers.get(index * width..).unwrap_or(&[]);
    match width {
        2 => stored.first_chunk().map_or(0, |bytes| i64::from(i16::from_le_bytes(*bytes))),
        4 => stored.first_chunk().map_or(0, |bytes| i64::from(i32::from_le_bytes(*bytes))),
        _ => stored.first_chunk().map_or(0, |bytes| i64::from_le_bytes(*bytes)),
    }
}

impl Default for Intset {
    fn default() -> Self {
        Self::new()
    }
}

impl Intset {
    /// An empty intset of 16-bit integers.
    pub fn new() -> Self {
        Self { block: Block::new(&header(2, 0)) }
    }

    /// A copy of a blob from outside, after a check of every integer. Redis: an intset without integers is refused.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, InvalidIntset> {
        let (width, len) = fields(bytes);
        if !matches!(width, 2 | 4 | 8) || len == 0 || IntsetHeader::total_len(bytes) != bytes.len() {
            return Err(InvalidIntset);
        }
        let integers = bytes.get(HEADER_BYTES..).ok_or(InvalidIntset)?;
        let (width, len) = (width as usize, len as usize);
        let mut last = read(integers, width, 0);
        for index in 1..len {
            let value = read(integers, width, index);
            if value <= last {
                return Err(InvalidIntset);
            }
            last = value;
        }
        Ok(Self { block: Block::new(bytes) })
    }

    /// The blob, as RDB and DUMP store it.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        self.block.as_bytes()
    }

    /// Length of the blob in bytes.
    pub fn bytes_len(&self) -> usize {
        self.as_bytes().len()
    }

    /// Bytes of heap memory behind the pointer.
    pub fn allocated_bytes(&self) -> usize {
        self.block.allocated_bytes()
    }

    /// Number of integers. O(1).
    #[inline]
    pub fn len(&self) -> usize {
        fields(self.as_bytes()).1 as usize
    }

    /// Whether there is no integer.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    #[allow(clippy::indexing_slicing, reason = "a block has its header")]
    fn parts(&self) -> (usize, usize, &[u8]) {
        let bytes = self.as_bytes();
        let (width, len) = fields(bytes);
        (width as usize, len as usize, &bytes[HEADER_BYTES..])
    }

    /// The integer with number `index` in ascending order.
    #[inline]
    pub fn get(&self, index: usize) -> Option<i64> {
        let (width, len, integers) = self.parts();
        (index < len).then(|| read(integers, width, index))
    }

    /// The smallest integer.
    pub fn min(&self) -> Option<i64> {
        self.get(0)
    }

    /// The largest integer.
    pub fn max(&self) -> Option<i64> {
        self.get(self.len().checked_sub(1)?)
    }

    /// An integer drawn at random: `below(n)` gives a number in `0..n`.
    pub fn random(&self, below: &mut dyn FnMut(usize) -> usize) -> Option<i64> {
        match self.len() {
            0 => None,
            len => self.get(below(len)),
        }
    }

    /// Whether `value` is in the set. O(log n).
    #[inline]
    pub fn contains(&self, value: i64) -> bool {
        self.search(value).is_ok()
    }

    /// The number of `value` in ascending order, or where it would be inserted.
    #[inline]
    pub fn search(&self, value: i64) -> Result<usize, usize> {
        let (width, len, integers) = self.parts();
        let (mut low, mut high) = (0, len);
        // Sets grow mostly at their upper end: look there first.
        if len > 0 && value > read(integers, width, len - 1) {
            return Err(len);
        }
        while low < high {
            let middle = low + (high - low) / 2;
            match read(integers, width, middle).cmp(&value) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return Ok(middle),
            }
        }
        Err(low)
    }

    /// Inserts `value`; gives whether it was new. Widens the encoding if it must.
    #[allow(clippy::indexing_slicing, reason = "a width is at most eight")]
    pub fn insert(&mut self, value: i64) -> bool {
        let index = match self.search(value) {
            Ok(_) => return false,
            Err(index) => index,
        };
        let (width, len, _) = self.parts();
        let needed = width_of(value);
        if needed > width {
            self.widen(needed);
        }
        let width = width.max(needed);
        let bytes = value.to_le_bytes();
        let at = HEADER_BYTES + index * width;
        self.block.splice(at, 0, [&bytes[..width], &[], &[]], header(width, len + 1));
        true
    }

    /// Removes `value`; gives whether it was there. Redis: the encoding stays as wide as it is.
    pub fn remove(&mut self, value: i64) -> bool {
        let Ok(index) = self.search(value) else { return false };
        let (width, len, _) = self.parts();
        let at = HEADER_BYTES + index * width;
        self.block.splice(at, width, [&[], &[], &[]], header(width, len - 1));
        true
    }

    #[allow(clippy::indexing_slicing, reason = "a width is at most eight")]
    fn widen(&mut self, width: usize) {
        let mut wide = Vec::with_capacity(HEADER_BYTES + self.len() * width);
        wide.extend_from_slice(&header(width, self.len()));
        for value in self.iter() {
            wide.extend_from_slice(&value.to_le_bytes()[..width]);
        }
        self.block = Block::new(&wide);
    }

    /// All integers, ascending, from either end.
    pub fn iter(&self) -> Iter<'_> {
        let (width, len, integers) = self.parts();
        Iter { integers, width, front: 0, back: len }
    }

    /// Gives up ownership of the block; [`Self::from_raw`] takes it back. The pointer is aligned to 16 bytes.
    pub fn into_raw(self) -> NonNull<u8> {
        self.block.into_raw()
    }

    /// Takes back what [`Self::into_raw`] gave.
    ///
    /// # Safety
    /// `start` must come from [`Self::into_raw`], unchanged since, and no other owner of it may exist.
    pub unsafe fn from_raw(start: NonNull<u8>) -> Self {
        // SAFETY: passed on to the caller.
        Self { block: unsafe { Block::from_raw(start) } }
    }

    /// Checks every invariant: for tests and fuzzing. Panics where one is broken.
    pub fn check(&self) {
        let (width, len, integers) = self.parts();
        assert!(matches!(width, 2 | 4 | 8), "intset encoding is 2, 4 or 8");
        assert_eq!(integers.len(), width * len, "intset length fits its bytes");
        assert!(self.iter().is_sorted_by(|a, b| a < b), "intset ascends strictly");
    }
}

impl fmt::Debug for Intset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl<'a> IntoIterator for &'a Intset {
    type Item = i64;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// See [`Intset::iter`].
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    integers: &'a [u8],
    width: usize,
    front: usize,
    back: usize,
}

impl Iterator for Iter<'_> {
    type Item = i64;

    #[inline]
    fn next(&mut self) -> Option<i64> {
        if self.front >= self.back {
            return None;
        }
        let value = read(self.integers, self.width, self.front);
        self.front += 1;
        Some(value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.back - self.front;
        (left, Some(left))
    }
}

impl DoubleEndedIterator for Iter<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<i64> {
        if self.front >= self.back {
            return None;
        }
        self.back -= 1;
        Some(read(self.integers, self.width, self.back))
    }
}

impl ExactSizeIterator for Iter<'_> {}

const _: () = assert!(size_of::<Intset>() == 8 && size_of::<Option<Intset>>() == 8);
