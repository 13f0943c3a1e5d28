//! One heap block behind one pointer, whose length is written in its own first bytes.
//!
//! ```text
//! pointer (8 bytes) ──► ┌──────── header ────────┬──────── body ────────┬── slack ──┐
//!                       │ from which LEN follows │                      │           │
//!                       └────────────────────────┴──────────────────────┴───────────┘
//!                       ◄──────────────────── LEN ──────────────────────►
//!                       ◄──────────── allocated: size_class::round_up(LEN) ─────────►
//! ```
//!
//! All unsafe code of the packed containers is here. The safe face keeps the one invariant: the header's bytes always
//! tell the length the block was sized for, and the first LEN bytes are initialised.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error, realloc};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

use crate::size_class;

/// How the fixed bytes at a block's start tell its total length.
pub(crate) trait Header {
    /// The header as an array of bytes.
    type Bytes: AsRef<[u8]> + Copy;
    /// Its length; at most [`size_class::SMALLEST`], so that any block can hold it.
    const SIZE: usize;
    /// The total length, header included, that these first `SIZE` bytes tell. Must not depend on anything else.
    fn total_len(header: &[u8]) -> usize;
}

/// An owned block. `repr(transparent)`: exactly one non-null pointer, aligned to 16 bytes.
#[repr(transparent)]
pub(crate) struct Block<H: Header> {
    start: NonNull<u8>,
    header: PhantomData<H>,
}

// SAFETY: a block owns its heap memory exclusively and has no interior mutability, as a boxed slice.
unsafe impl<H: Header> Send for Block<H> {}
// SAFETY: as above; shared access only reads.
unsafe impl<H: Header> Sync for Block<H> {}

/// The alignment of every block: leaves four low pointer bits for tags.
const ALIGNMENT: usize = 16;

fn layout(len: usize) -> Layout {
    match Layout::from_size_align(size_class::round_up(len), ALIGNMENT) {
        Ok(layout) => layout,
        Err(_) => panic!("a packed block of {len} bytes passes the address space"),
    }
}

impl<H: Header> Block<H> {
    /// A block that holds a copy of `content`. Panics if its header tells another length: a bug of the caller.
    #[allow(clippy::indexing_slicing, reason = "the length was just compared")]
    pub(crate) fn new(content: &[u8]) -> Self {
        assert!(content.len() >= H::SIZE, "a packed block without its header");
        assert_eq!(H::total_len(&content[..H::SIZE]), content.len(), "a packed block's header lies");
        let layout = layout(content.len());
        // SAFETY: the layout's size is never zero (size classes start at 16).
        let start = unsafe { alloc(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        // SAFETY: the new allocation holds at least `content.len()` bytes and overlaps nothing.
        unsafe { ptr::copy_nonoverlapping(content.as_ptr(), start.as_ptr(), content.len()) };
        Self { start, header: PhantomData }
    }

    #[inline]
    fn len(&self) -> usize {
        // SAFETY: every block holds an initialised header (invariant of the type).
        H::total_len(unsafe { std::slice::from_raw_parts(self.start.as_ptr(), H::SIZE) })
    }

    /// All bytes, header first.
    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        // SAFETY: the first `len()` bytes are initialised and owned; the borrow of self keeps them so.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len()) }
    }

    /// Replaces `removed` bytes at `at` by the concatenation of `pieces`, and the header by `header`.
    ///
    /// Panics if the range is outside the body or `header` does not tell the new length: bugs of the caller, caught
    /// before anything has changed.
    pub(crate) fn splice(&mut self, at: usize, removed: usize, pieces: [&[u8]; 3], header: H::Bytes) {
        let old_len = self.len();
        let added = pieces[0].len() + pieces[1].len() + pieces[2].len();
        assert!(at >= H::SIZE && at <= old_len && removed <= old_len - at, "a splice outside its packed block");
        let new_len = old_len - removed + added;
        let header = header.as_ref();
        assert!(header.len() == H::SIZE && H::total_len(header) == new_len, "a packed block's header lies");
        let tail = at + removed;
        if new_len > old_len {
            self.reallocate(old_len, new_len);
        }
        let start = self.start.as_ptr();
        if added != removed {
            // SAFETY: both ranges end at or before max(old_len, new_len), which the block holds now.
            unsafe { ptr::copy(start.add(tail), start.add(at + added), old_len - tail) };
        }
        let mut to = at;
        for piece in pieces {
            // SAFETY: the gap at..at+added lies inside the block; a borrowed piece cannot alias memory that self
            // owns exclusively.
            unsafe { ptr::copy_nonoverlapping(piece.as_ptr(), start.add(to), piece.len()) };
            to += piece.len();
        }
        // SAFETY: every block holds H::SIZE bytes of header.
        unsafe { ptr::copy_nonoverlapping(header.as_ptr(), start, H::SIZE) };
        if new_len < old_len {
            self.reallocate(old_len, new_len);
        }
    }

    /// Gives the block the size for `new_len`, if that is another class.
    #[inline]
    fn reallocate(&mut self, old_len: usize, new_len: usize) {
        let old_layout = layout(old_len);
        let new_layout = layout(new_len);
        if old_layout.size() == new_layout.size() {
            return;
        }
        // SAFETY: the block was allocated with `old_layout`; the new size is not zero and passed Layout's limits.
        let moved = unsafe { realloc(self.start.as_ptr(), old_layout, new_layout.size()) };
        let Some(moved) = NonNull::new(moved) else { handle_alloc_error(new_layout) };
        self.start = moved;
    }

    /// The size of the heap block in bytes.
    pub(crate) fn allocated_bytes(&self) -> usize {
        size_class::round_up(self.len())
    }

    /// Gives up ownership; [`Self::from_raw`] takes it back.
    pub(crate) fn into_raw(self) -> NonNull<u8> {
        let start = self.start;
        std::mem::forget(self);
        start
    }

    /// Takes back what [`Self::into_raw`] gave.
    ///
    /// # Safety
    /// `start` must come from `into_raw` of the same type, and no other owner may exist.
    pub(crate) unsafe fn from_raw(start: NonNull<u8>) -> Self {
        Self { start, header: PhantomData }
    }
}

impl<H: Header> Drop for Block<H> {
    fn drop(&mut self) {
        let layout = layout(self.len());
        // SAFETY: the block was allocated with the layout of its length (invariant of the type).
        unsafe { dealloc(self.start.as_ptr(), layout) };
    }
}

impl<H: Header> Clone for Block<H> {
    fn clone(&self) -> Self {
        Self::new(self.as_bytes())
    }
}
