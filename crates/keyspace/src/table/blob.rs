//! Fields and members: the items of big hashes and sets, one allocation each.
//!
//! ```text
//! Member   | length | text |
//! Field    | length | name | length | value |
//! length   1 byte below 254;  254 and a u32;  255 and a u64 (little-endian)
//! ```
//!
//! The block is 16-aligned and of the size class of what it holds, so its size is known from its
//! content and no length of an allocation is kept. An 18-byte field with a 3-byte value takes 23 of
//! 32 bytes. Unsafe code reads and writes these blocks; the face is safe.

use std::{
    alloc::{self, Layout},
    fmt, mem, ptr, slice,
};

use rdb::size_class;

use super::Item;

/// A string in a block of its own: member of a set.
#[repr(transparent)]
pub struct Member(u64);

/// A name and a value in one block: field of a hash.
#[repr(transparent)]
pub struct Field(u64);

impl Member {
    /// Copies `text`.
    #[must_use]
    pub fn new(text: &[u8]) -> Self {
        let (head, head_len) = head(text.len());
        Self(allocate(&[&head[..head_len], text]))
    }

    /// The string.
    #[inline]
    #[must_use]
    pub fn text(&self) -> &[u8] {
        // SAFETY: a member's block begins with a text, and lives as long as `self`.
        unsafe { text_at(start(self.0)) }.0
    }

    /// Bytes of the block.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        size_class::round_up(text_size(self.text().len()))
    }
}

impl Field {
    /// Copies `name` and `value`.
    #[must_use]
    pub fn new(name: &[u8], value: &[u8]) -> Self {
        let (name_head, name_head_len) = head(name.len());
        let (value_head, value_head_len) = head(value.len());
        Self(allocate(&[&name_head[..name_head_len], name, &value_head[..value_head_len], value]))
    }

    /// The field's name.
    #[inline]
    #[must_use]
    pub fn name(&self) -> &[u8] {
        // SAFETY: a field's block begins with a text, and lives as long as `self`.
        unsafe { text_at(start(self.0)) }.0
    }

    /// The field's value.
    #[inline]
    #[must_use]
    pub fn value(&self) -> &[u8] {
        let at = start(self.0);
        // SAFETY: a field's block is two texts, one after the other, and lives as long as `self`.
        unsafe { text_at(at.add(text_at(at).1)) }.0
    }

    /// Puts in another value: in place if the block's size stays, else in a new block, with another
    /// word: inside a table, call it through [`Place::update`](super::Place::update).
    pub fn set_value(&mut self, value: &[u8]) {
        let name_size = text_size(self.name().len());
        let fits = size_class::round_up(name_size + text_size(value.len())) == self.allocated_bytes();
        if !fits {
            *self = Self::new(self.name(), value);
            return;
        }
        let (head, head_len) = head(value.len());
        let at: *mut u8 = ptr::with_exposed_provenance_mut(address(self.0));
        // SAFETY: the block is as large as name and new value need, and `value` is not part of it,
        // because it is borrowed mutably.
        unsafe {
            let at = at.add(name_size);
            ptr::copy_nonoverlapping(head.as_ptr(), at, head_len);
            ptr::copy_nonoverlapping(value.as_ptr(), at.add(head_len), value.len());
        }
    }

    /// Bytes of the block.
    #[must_use]
    pub fn allocated_bytes(&self) -> usize {
        size_class::round_up(text_size(self.name().len()) + text_size(self.value().len()))
    }
}

// SAFETY: a transparent word, the exposed address of a 16-aligned block; methods mask the rest.
unsafe impl Item for Member {
    fn into_raw(self) -> u64 {
        mem::ManuallyDrop::new(self).0
    }

    unsafe fn from_raw(word: u64) -> Self {
        Self(word)
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.text()
    }
}

// SAFETY: as for members.
unsafe impl Item for Field {
    fn into_raw(self) -> u64 {
        mem::ManuallyDrop::new(self).0
    }

    unsafe fn from_raw(word: u64) -> Self {
        Self(word)
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.name()
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // SAFETY: the block is owned, and of the size class of its content.
        unsafe { free(self.0, self.allocated_bytes()) };
    }
}

impl Drop for Field {
    fn drop(&mut self) {
        // SAFETY: the block is owned, and of the size class of its content.
        unsafe { free(self.0, self.allocated_bytes()) };
    }
}

impl Clone for Member {
    fn clone(&self) -> Self {
        Self::new(self.text())
    }
}

impl Clone for Field {
    fn clone(&self) -> Self {
        Self::new(self.name(), self.value())
    }
}

impl fmt::Debug for Member {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Member({})", self.text().escape_ascii())
    }
}

impl fmt::Debug for Field {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Field({}: {})", self.name().escape_ascii(), self.value().escape_ascii())
    }
}

/// A new block with these parts in a row.
fn allocate(parts: &[&[u8]]) -> u64 {
    let total = parts.iter().map(|part| part.len()).sum();
    let layout = layout(size_class::round_up(total));
    // SAFETY: a size class is never 0.
    let block = unsafe { alloc::alloc(layout) };
    if block.is_null() {
        alloc::handle_alloc_error(layout);
    }
    let mut filled = 0;
    for part in parts {
        // SAFETY: the parts together are no longer than the new block.
        unsafe { ptr::copy_nonoverlapping(part.as_ptr(), block.add(filled), part.len()) };
        filled += part.len();
    }
    block.expose_provenance() as u64
}

/// # Safety
/// `word` is the owned block of `allocate`, whose size was `size`.
unsafe fn free(word: u64, size: usize) {
    // SAFETY: the caller's.
    unsafe {
        alloc::dealloc(ptr::with_exposed_provenance_mut(address(word)), layout(size));
    };
}

fn layout(size: usize) -> Layout {
    match Layout::from_size_align(size, ALIGN) {
        Ok(layout) => layout,
        Err(_) => panic!("a string longer than the address space"),
    }
}

/// The text that begins at `at`, and its size with its length in front.
///
/// # Safety
/// A text was written there, and nobody changes or frees it during `'b`.
#[inline]
unsafe fn text_at<'b>(at: *const u8) -> (&'b [u8], usize) {
    // SAFETY: a text is at least one byte; what its length says is there.
    unsafe {
        let first = *at;
        let (len, head_len) = if first < FOUR_BYTES { (usize::from(first), 1) } else { long_at(at) };
        (slice::from_raw_parts(at.add(head_len), len), head_len + len)
    }
}

/// # Safety
/// As for `text_at`, and the first byte is 254 or 255.
#[inline]
unsafe fn long_at(at: *const u8) -> (usize, usize) {
    // SAFETY: four or eight bytes of length follow the first byte.
    unsafe {
        if *at == FOUR_BYTES {
            (at.add(1).cast::<u32>().read_unaligned().to_le() as usize, 5)
        } else {
            (at.add(1).cast::<usize>().read_unaligned().to_le(), 9)
        }
    }
}

/// A length as it is written, and how many bytes of that count.
#[inline]
fn head(len: usize) -> ([u8; 9], usize) {
    let mut head = [0; 9];
    if let Ok(short) = u8::try_from(len)
        && short < FOUR_BYTES
    {
        head[0] = short;
        return (head, 1);
    }
    let written = if let Ok(long) = u32::try_from(len) {
        head[0] = FOUR_BYTES;
        head[1..5].copy_from_slice(&long.to_le_bytes());
        5
    } else {
        head[0] = EIGHT_BYTES;
        head[1..9].copy_from_slice(&len.to_le_bytes());
        9
    };
    (head, written)
}

/// Bytes of a text of `len` bytes with its length.
#[inline]
fn text_size(len: usize) -> usize {
    len + head(len).1
}

#[inline]
fn start(word: u64) -> *const u8 {
    ptr::with_exposed_provenance(address(word))
}

#[inline]
fn address(word: u64) -> usize {
    (word & POINTER_MASK) as usize
}

const ALIGN: usize = 16;
/// Without the table's bits on top and the tag bits at the bottom.
const POINTER_MASK: u64 = 0xffff_ffff_fff0;
const FOUR_BYTES: u8 = 254;
const EIGHT_BYTES: u8 = 255;

const _: () = assert!(size_of::<usize>() == 8, "handles and lengths are 64 bits wide");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_all_length_classes_come_back() {
        for len in [0, 1, 13, 253, 254, 255, 256, 65_535, 65_536, 1 << 20] {
            let text: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
            let member = Member::new(&text);
            assert_eq!(member.text(), text);
            assert_eq!(member.clone().text(), text);
            let mut field = Field::new(&text, b"value");
            assert_eq!((field.name(), field.value()), (&text[..], &b"value"[..]));
            field.set_value(b"other");
            assert_eq!((field.name(), field.value()), (&text[..], &b"other"[..]));
            field.set_value(&text);
            assert_eq!((field.name(), field.value()), (&text[..], &text[..]));
            field.set_value(b"");
            assert_eq!((field.name(), field.value()), (&text[..], &b""[..]));
        }
    }

    #[test]
    fn a_usual_field_takes_thirty_two_bytes() {
        assert_eq!(Field::new(b"field:000000000001", b"xxx").allocated_bytes(), 32);
        assert_eq!(Member::new(b"elem:000000001").allocated_bytes(), 16);
    }
}
