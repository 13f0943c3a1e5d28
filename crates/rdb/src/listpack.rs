//! Listpack: a list of short strings and integers in one block of memory, in Redis' bytes.
//!
//! ```text
//! ┌─────────────┬───────────┬─────────┬─────────┬───┬──────┐      one entry
//! │ total bytes │ count     │ entry 0 │ entry 1 │ … │ 0xFF │      ┌────────────────┬─────────┬─────────┐
//! │ u32 LE      │ u16 LE    │         │         │   │      │      │ encoding byte… │ payload │ backlen │
//! └─────────────┴───────────┴─────────┴─────────┴───┴──────┘      └────────────────┴─────────┴─────────┘
//!
//! 0xxxxxxx                     integer 0..=127
//! 10llllll  bytes              string of up to 63 bytes
//! 110xxxxx  xxxxxxxx           13-bit signed integer
//! 1110llll  llllllll  bytes    string of up to 4095 bytes
//! 11110000  u32 LE    bytes    longer string
//! 11110001 … 11110100          integer of 2, 3, 4, 8 bytes, little-endian
//! 11111111                     end
//! ```
//!
//! Backlen is the length of encoding and payload in 1–5 groups of seven bits, most significant first, where every
//! byte but the first carries the high bit: read backwards from its last byte it tells how far to step back.
//! A count of 65535 means "unknown: walk". The format is Redis' own (7.2, listpack.c); values whose bytes are a
//! canonical integer are stored as integers, so the same value has the same bytes here and there.
//!
//! Hot path: no allocation except by growth past a size class.

use std::fmt;
use std::ptr::NonNull;

use resp::num;

use crate::block::{Block, Header};

mod batch;
mod decode;
mod elem;
mod iter;
mod random;
#[cfg(test)]
mod tests;

pub use batch::Batch;
pub use elem::Elem;
pub use iter::{Iter, Pairs, Positions};

use decode::{Encoded, backlen_size, decode, entry_size, step_back};

/// Bytes of the header: total bytes and count.
pub const HEADER_BYTES: usize = 6;
/// The byte behind the last entry.
const END: u8 = 0xff;
/// The count that means "more than the header can say".
const COUNT_UNKNOWN: u16 = u16::MAX;
/// No listpack should pass this size, in bytes: Redis' safety limit (1 GiB).
pub const SAFE_BYTES_MAX: usize = 1 << 30;

/// The header of a listpack, for [`Block`].
pub(crate) enum ListpackHeader {}

impl Header for ListpackHeader {
    type Bytes = [u8; HEADER_BYTES];
    const SIZE: usize = HEADER_BYTES;
    // The least listpack has seven bytes.
    const HAS_GAPS: bool = true;

    #[inline]
    fn total_len(header: &[u8]) -> usize {
        match header {
            [a, b, c, d, ..] => u32::from_le_bytes([*a, *b, *c, *d]) as usize,
            _ => 0,
        }
    }
}

/// An owned listpack: one thin pointer (8 bytes, also as `Option`) to a 16-byte aligned block of
/// `size_class::round_up(bytes_len())` bytes, or more while it keeps a gap ([`Listpack::push_front`]).
///
/// Invariant: the bytes always pass [`validate`].
#[repr(transparent)]
#[derive(Clone)]
pub struct Listpack {
    block: Block<ListpackHeader>,
}

/// Where an entry starts inside its listpack. Any insertion, replacement or deletion makes older positions behind it
/// meaningless: reading there gives some bytes of the listpack or an empty string, never anything else; editing there
/// is a bug that may panic or tear entries, but never touches memory outside.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Pos(u32);

impl Pos {
    /// The entry's byte offset from the start of the listpack.
    pub fn offset(self) -> usize {
        self.0 as usize
    }
}

/// Bytes that are no listpack: a wrong header, an entry that leaves the blob, a wrong backlen or count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InvalidListpack;

impl fmt::Display for InvalidListpack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("malformed listpack")
    }
}

impl std::error::Error for InvalidListpack {}

/// Checks a whole blob, entry by entry: O(bytes). Gives the number of entries.
#[allow(clippy::indexing_slicing, reason = "a size is at most five")]
pub fn validate(bytes: &[u8]) -> Result<usize, InvalidListpack> {
    if bytes.len() <= HEADER_BYTES
        || ListpackHeader::total_len(bytes) != bytes.len()
        || bytes.last() != Some(&END)
        || u32::try_from(bytes.len()).is_err()
    {
        return Err(InvalidListpack);
    }
    let end = bytes.len() - 1;
    let mut at = HEADER_BYTES;
    let mut count = 0_usize;
    while at < end {
        let (_, encoded) = decode(bytes, at).ok_or(InvalidListpack)?;
        let (backlen, size) = decode::encode_backlen(encoded);
        let tail = bytes.get(at + encoded..at + encoded + size).ok_or(InvalidListpack)?;
        if at + encoded + size > end || tail != &backlen[..size] {
            return Err(InvalidListpack);
        }
        at += encoded + size;
        count += 1;
    }
    let declared = count_field(bytes);
    if at != end || (declared != COUNT_UNKNOWN && usize::from(declared) != count) {
        return Err(InvalidListpack);
    }
    Ok(count)
}

#[inline]
fn count_field(bytes: &[u8]) -> u16 {
    match bytes {
        [_, _, _, _, low, high, ..] => u16::from_le_bytes([*low, *high]),
        _ => 0,
    }
}

fn header(total: usize, count: u16) -> [u8; HEADER_BYTES] {
    let Ok(total) = u32::try_from(total) else {
        panic!("a listpack of {total} bytes passes its format: ask safe_to_add before adding");
    };
    let [a, b, c, d] = total.to_le_bytes();
    let [e, f] = count.to_le_bytes();
    [a, b, c, d, e, f]
}

impl Default for Listpack {
    fn default() -> Self {
        Self::new()
    }
}

impl Listpack {
    /// An empty listpack: 7 bytes.
    pub fn new() -> Self {
        let [a, b, c, d, e, f] = header(HEADER_BYTES + 1, 0);
        Self { block: Block::new(&[a, b, c, d, e, f, END]) }
    }

    /// A copy of a blob from outside, after [`validate`]. May be empty (no entries): callers that refuse that check
    /// [`Self::is_empty`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, InvalidListpack> {
        validate(bytes)?;
        Ok(Self { block: Block::new(bytes) })
    }

    /// The blob, as RDB and DUMP store it.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        self.block.as_bytes()
    }

    /// Length of the blob in bytes.
    #[inline]
    pub fn bytes_len(&self) -> usize {
        self.as_bytes().len()
    }

    /// Bytes of heap memory behind the pointer.
    pub fn allocated_bytes(&self) -> usize {
        self.block.allocated_bytes()
    }

    /// Number of entries. O(1) below 65535, else a walk.
    #[inline]
    pub fn len(&self) -> usize {
        let bytes = self.as_bytes();
        match count_field(bytes) {
            COUNT_UNKNOWN => walk_count(bytes),
            count => usize::from(count),
        }
    }

    /// Whether there is no entry. O(1).
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes_len() <= HEADER_BYTES + 1
    }

    /// Whether the listpack may grow by `bytes` without passing [`SAFE_BYTES_MAX`].
    pub fn safe_to_add(&self, bytes: usize) -> bool {
        self.bytes_len().saturating_add(bytes) <= SAFE_BYTES_MAX
    }

    /// Position of the first entry.
    #[inline]
    pub fn first(&self) -> Option<Pos> {
        self.entry_at(HEADER_BYTES)
    }

    /// Position of the last entry.
    #[inline]
    pub fn last(&self) -> Option<Pos> {
        let bytes = self.as_bytes();
        self.before(bytes.len() - 1)
    }

    /// Position of the entry behind `pos`.
    #[inline]
    pub fn next(&self, pos: Pos) -> Option<Pos> {
        let at = pos.offset();
        let size = entry_size(self.as_bytes(), at)?;
        self.entry_at(at + size)
    }

    /// Position of the entry before `pos`.
    #[inline]
    pub fn prev(&self, pos: Pos) -> Option<Pos> {
        self.before(pos.offset())
    }

    /// Position of the entry at `index`: from the head for 0, 1, …, from the tail for −1, −2, …. Walks from the
    /// nearer end when the count is known.
    pub fn seek(&self, index: i64) -> Option<Pos> {
        let bytes = self.as_bytes();
        let known = count_field(bytes);
        let (mut steps, forward) = if known == COUNT_UNKNOWN {
            (if index < 0 { index.checked_add(1)?.unsigned_abs() } else { index.unsigned_abs() }, index >= 0)
        } else {
            let count = i64::from(known);
            let index = if index < 0 { count.checked_add(index)? } else { index };
            if index < 0 || index >= count {
                return None;
            }
            if index > count / 2 { (count.abs_diff(index + 1), false) } else { (index.unsigned_abs(), true) }
        };
        let mut pos = if forward { self.first()? } else { self.last()? };
        while steps > 0 {
            pos = if forward { self.next(pos)? } else { self.prev(pos)? };
            steps -= 1;
        }
        Some(pos)
    }

    /// The element at `pos`.
    #[inline]
    pub fn get(&self, pos: Pos) -> Elem<'_> {
        match decode(self.as_bytes(), pos.offset()) {
            Some((elem, _)) => elem,
            None => Elem::Bytes(&[]),
        }
    }

    /// The element at `index` (see [`Self::seek`]).
    pub fn get_index(&self, index: i64) -> Option<Elem<'_>> {
        Some(self.get(self.seek(index)?))
    }

    /// Finds an element equal to `needle`, from the first entry on, passing over `skip` entries after each entry
    /// compared (1 for the fields of field-value pairs).
    #[inline]
    pub fn find(&self, needle: &[u8], skip: usize) -> Option<Pos> {
        self.find_from(self.first()?, needle, skip)
    }

    /// As [`Self::find`], beginning at `from`.
    pub fn find_from(&self, from: Pos, needle: &[u8], skip: usize) -> Option<Pos> {
        let bytes = self.as_bytes();
        let needle_int = num::parse_i64(needle);
        let mut at = from.offset();
        loop {
            let (elem, encoded) = decode(bytes, at)?;
            let equal = match elem {
                Elem::Bytes(text) => text == needle,
                Elem::Int(value) => needle_int == Some(value),
            };
            if equal {
                return self.pos(at);
            }
            at += encoded + backlen_size(encoded);
            for _ in 0..skip {
                at += entry_size(bytes, at)?;
            }
        }
    }

    /// Inserts `value` before the entry at `pos`; gives the new entry's position.
    pub fn insert_before(&mut self, pos: Pos, value: &[u8]) -> Pos {
        self.replace_range(pos.offset(), 0, 0, &Encoded::of(value))
    }

    /// Inserts `value` behind the entry at `pos`; gives the new entry's position.
    pub fn insert_after(&mut self, pos: Pos, value: &[u8]) -> Pos {
        let at = pos.offset();
        let size = entry_size(self.as_bytes(), at).unwrap_or(0);
        self.replace_range(at + size, 0, 0, &Encoded::of(value))
    }

    /// Adds `value` at the tail. Panics past 4 GiB: callers ask [`Self::safe_to_add`] where that is in reach.
    pub fn append(&mut self, value: &[u8]) {
        let end = self.bytes_len() - 1;
        self.replace_range(end, 0, 0, &Encoded::of(value));
    }

    /// Adds an integer at the tail.
    pub fn append_int(&mut self, value: i64) {
        let end = self.bytes_len() - 1;
        self.replace_range(end, 0, 0, &Encoded::of_int(value));
    }

    /// Adds an element, of this or another listpack's kind, at the tail.
    pub fn append_elem(&mut self, elem: Elem<'_>) {
        match elem {
            Elem::Bytes(text) => self.append(text),
            Elem::Int(value) => self.append_int(value),
        }
    }

    /// Adds `value` at the head.
    pub fn prepend(&mut self, value: &[u8]) {
        self.replace_range(HEADER_BYTES, 0, 0, &Encoded::of(value));
    }

    /// Adds an integer at the head.
    pub fn prepend_int(&mut self, value: i64) {
        self.replace_range(HEADER_BYTES, 0, 0, &Encoded::of_int(value));
    }

    /// As [`Self::prepend`], for one that is pushed to again and again: what is there moves seldom, because the block
    /// keeps a gap before it, of `room` bytes when it is made. [`Self::close_gap`] gives that back.
    #[inline]
    #[allow(clippy::indexing_slicing, reason = "a size is at most five")]
    pub fn push_front(&mut self, value: &[u8], room: usize) {
        let value = Encoded::of(value);
        let bytes = self.as_bytes();
        let count = count_field(bytes).saturating_add(1);
        let (backlen, backlen_size) = decode::encode_backlen(value.len());
        let header = header(bytes.len() + value.len() + backlen_size, count);
        self.block.splice_front([value.head(), value.payload(), &backlen[..backlen_size]], header, room);
    }

    /// Removes the first entry, if there is one, leaving its bytes as a gap unless that passes `gap_max`.
    pub fn delete_first(&mut self, gap_max: usize) {
        let bytes = self.as_bytes();
        let Some(size) = entry_size(bytes, HEADER_BYTES) else { return };
        let header = self.header_without(size, 1);
        self.block.cut_front(size, header, gap_max);
    }

    /// Gives back the room that was kept for pushes to the front.
    pub fn close_gap(&mut self) {
        self.block.set_gap(0);
    }

    /// Puts `value` in place of the entry at `pos`; gives its position (the same offset).
    pub fn replace(&mut self, pos: Pos, value: &[u8]) -> Pos {
        self.replace_encoded(pos, &Encoded::of(value))
    }

    /// Puts an integer in place of the entry at `pos`.
    pub fn replace_int(&mut self, pos: Pos, value: i64) -> Pos {
        self.replace_encoded(pos, &Encoded::of_int(value))
    }

    fn replace_encoded(&mut self, pos: Pos, value: &Encoded<'_>) -> Pos {
        let at = pos.offset();
        match entry_size(self.as_bytes(), at) {
            Some(size) => self.replace_range(at, size, 1, value),
            None => pos,
        }
    }

    /// Removes the entry at `pos`; gives the position of the entry that followed it.
    pub fn delete(&mut self, pos: Pos) -> Option<Pos> {
        self.delete_at(pos, 1)
    }

    /// Removes up to `count` entries from `pos` on; gives the position of the entry behind them.
    pub fn delete_at(&mut self, pos: Pos, count: usize) -> Option<Pos> {
        let bytes = self.as_bytes();
        let mut end = pos.offset();
        let mut deleted = 0;
        while deleted < count {
            let Some(size) = entry_size(bytes, end) else { break };
            end += size;
            deleted += 1;
        }
        if deleted > 0 {
            self.remove_bytes(pos.offset(), end - pos.offset(), deleted);
        }
        self.entry_at(pos.offset())
    }

    /// Removes up to `count` entries from `index` on (negative: from the tail). Nothing happens out of range.
    pub fn delete_range(&mut self, index: i64, count: usize) {
        if let (Some(pos), true) = (self.seek(index), count > 0) {
            self.delete_at(pos, count);
        }
    }

    /// Appends all entries of `other`: a copy of its bytes.
    #[allow(clippy::indexing_slicing, reason = "a block has its header and its end mark")]
    pub fn append_all(&mut self, other: &Listpack) {
        let bytes = other.as_bytes();
        let entries = &bytes[HEADER_BYTES..bytes.len() - 1];
        let end = self.bytes_len() - 1;
        let count = u16::try_from(self.len() + other.len()).unwrap_or(COUNT_UNKNOWN);
        let header = header(end + 1 + entries.len(), count);
        self.block.splice(end, 0, [entries, &[], &[]], header);
    }

    /// Cuts the listpack at `pos`: it keeps what is before, and gives what starts there.
    #[allow(clippy::indexing_slicing, reason = "the place of an entry, before the end mark")]
    pub fn split_off(&mut self, pos: Pos) -> Listpack {
        let at = pos.offset();
        let bytes = self.as_bytes();
        let end = bytes.len() - 1;
        let mut tail = Listpack::new();
        if entry_size(bytes, at).is_none() {
            return tail;
        }
        let count = self.len();
        let kept = count_until(bytes, at);
        let moved = u16::try_from(count - kept).unwrap_or(COUNT_UNKNOWN);
        let entries = &bytes[at..end];
        tail.block.splice(HEADER_BYTES, 0, [entries, &[], &[]], header(HEADER_BYTES + 1 + entries.len(), moved));
        self.remove_bytes(at, end - at, count - kept);
        tail
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
        let count = validate(self.as_bytes());
        assert_eq!(count, Ok(self.len()), "listpack bytes are well-formed");
    }

    #[inline]
    fn pos(&self, at: usize) -> Option<Pos> {
        u32::try_from(at).ok().map(Pos)
    }

    /// The position at byte offset `at`, unless the end is there.
    #[inline]
    fn entry_at(&self, at: usize) -> Option<Pos> {
        match self.as_bytes().get(at) {
            None | Some(&END) => None,
            Some(_) => self.pos(at),
        }
    }

    #[inline]
    fn before(&self, at: usize) -> Option<Pos> {
        if at <= HEADER_BYTES {
            return None;
        }
        self.pos(step_back(self.as_bytes(), at)?)
    }

    /// Puts one encoded value in place of `removed` bytes holding `entries` entries at byte offset `at`.
    #[allow(clippy::indexing_slicing, reason = "a size is at most five")]
    fn replace_range(&mut self, at: usize, removed: usize, entries: u16, value: &Encoded<'_>) -> Pos {
        let bytes = self.as_bytes();
        debug_assert!(at >= HEADER_BYTES && at + removed < bytes.len(), "a position of another listpack");
        let count = match count_field(bytes) {
            COUNT_UNKNOWN => COUNT_UNKNOWN,
            count => count - entries + 1,
        };
        let (backlen, backlen_size) = decode::encode_backlen(value.len());
        let header = header(bytes.len() - removed + value.len() + backlen_size, count);
        self.block.splice(at, removed, [value.head(), value.payload(), &backlen[..backlen_size]], header);
        // The header's check above proved that offsets fit 32 bits.
        #[allow(clippy::cast_possible_truncation)]
        Pos(at as u32)
    }

    fn remove_bytes(&mut self, at: usize, removed: usize, entries: usize) {
        let header = self.header_without(removed, entries);
        self.block.splice(at, removed, [&[], &[], &[]], header);
    }

    /// The header when `entries` entries of `removed` bytes are gone.
    fn header_without(&self, removed: usize, entries: usize) -> [u8; HEADER_BYTES] {
        let bytes = self.as_bytes();
        let total = bytes.len() - removed;
        let count = match count_field(bytes) {
            // So few bytes cannot hold 65535 entries (two bytes is the least), so the count can be known again.
            COUNT_UNKNOWN if total < 2 * usize::from(COUNT_UNKNOWN) => {
                u16::try_from(walk_count(bytes) - entries).unwrap_or(COUNT_UNKNOWN)
            }
            COUNT_UNKNOWN => COUNT_UNKNOWN,
            count => count - u16::try_from(entries).unwrap_or(count),
        };
        header(total, count)
    }
}

impl fmt::Debug for Listpack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl PartialEq for Listpack {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Listpack {}

fn walk_count(bytes: &[u8]) -> usize {
    count_until(bytes, bytes.len() - 1)
}

/// Number of entries that start before byte offset `until`.
fn count_until(bytes: &[u8], until: usize) -> usize {
    let mut at = HEADER_BYTES;
    let mut count = 0;
    while at < until {
        match entry_size(bytes, at) {
            Some(size) => at += size,
            None => break,
        }
        count += 1;
    }
    count
}

/// Bytes that appending `value` would add: what Redis' size estimates count.
pub fn entry_bytes(value: &[u8]) -> usize {
    let encoded = Encoded::of(value).len();
    encoded + backlen_size(encoded)
}

const _: () = assert!(size_of::<Listpack>() == 8 && size_of::<Option<Listpack>>() == 8);
