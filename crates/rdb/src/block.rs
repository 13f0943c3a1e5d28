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
//! A block whose front is pushed to (the head of a long list) may keep a gap before its header, so that a push or pop
//! there moves the header and not the body:
//!
//! ```text
//! pointer ──► ┌─ 0 (u32) ─┬─ GAP (u32) ─┬─ unused ─┬── header ──┬── body ──┬── slack ──┐
//!             ◄───────────────── GAP ──────────────►◄───────── LEN ────────►
//!             ◄────────────── allocated: size_class::round_up(GAP + LEN) ──────────────►
//! ```
//!
//! No header tells a length of 0, which is how a gap is known. What [`Block::as_bytes`] gives is the same either way.
//!
//! All unsafe code of the packed containers is here. The safe face keeps the one invariant: gap and header always
//! tell the length the block was sized for, and the LEN bytes behind the gap are initialised, as is the gap's mark.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error, realloc};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

use crate::size_class;

/// How the fixed bytes at a block's start tell its total length.
pub(crate) trait Header {
    /// The header as an array of bytes.
    type Bytes: AsRef<[u8]> + Copy;
    /// Its length; from 4 to [`size_class::SMALLEST`], so that any block can hold it.
    const SIZE: usize;
    /// Whether a block may keep a gap in front: only where four zero bytes begin no header.
    const HAS_GAPS: bool;
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
        self.as_bytes().len()
    }

    /// Bytes before the header.
    #[inline]
    fn gap(&self) -> usize {
        if !H::HAS_GAPS {
            return 0;
        }
        // SAFETY: every block is 16-aligned and begins with four initialised bytes, of its header or of a gap's mark.
        if unsafe { self.start.cast::<u32>().read() } != 0 {
            return 0;
        }
        // SAFETY: four zero bytes begin no header, so this is a gap's mark, whose second word tells its length.
        unsafe { self.start.cast::<u32>().add(1).read() as usize }
    }

    /// All bytes, header first.
    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        let gap = self.gap();
        // SAFETY: the header lies behind the gap, all of it initialised (invariant of the type).
        let len = H::total_len(unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(gap), H::SIZE) });
        // SAFETY: the `len` bytes behind the gap are initialised and owned; the borrow of self keeps them so.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(gap), len) }
    }

    /// Replaces `removed` bytes at `at` by the concatenation of `pieces`, and the header by `header`.
    ///
    /// Panics if the range is outside the body or `header` does not tell the new length: bugs of the caller, caught
    /// before anything has changed.
    pub(crate) fn splice(&mut self, at: usize, removed: usize, pieces: [&[u8]; 3], header: H::Bytes) {
        let gap = self.gap();
        let old_len = self.len();
        let added = pieces[0].len() + pieces[1].len() + pieces[2].len();
        assert!(at >= H::SIZE && at <= old_len && removed <= old_len - at, "a splice outside its packed block");
        let new_len = old_len - removed + added;
        assert_tells::<H>(header, new_len);
        let tail = at + removed;
        if new_len > old_len {
            self.reallocate(gap + old_len, gap + new_len);
        }
        // SAFETY: the gap is inside the block.
        let content = unsafe { self.start.as_ptr().add(gap) };
        if added != removed {
            // SAFETY: both ranges end at or before max(old_len, new_len), which the block holds now.
            unsafe { ptr::copy(content.add(tail), content.add(at + added), old_len - tail) };
        }
        // SAFETY: the room at..at+added lies inside the block.
        unsafe { write_pieces(content.add(at), pieces) };
        // SAFETY: every block holds H::SIZE bytes of header behind its gap.
        unsafe { ptr::copy_nonoverlapping(header.as_ref().as_ptr(), content, H::SIZE) };
        if new_len < old_len {
            self.reallocate(gap + old_len, gap + new_len);
        }
    }

    /// Puts `pieces` between header and body. Takes them from the gap; if that is too small, the block moves to one
    /// with a gap of at least `room` bytes.
    ///
    /// Panics if `header` does not tell the new length.
    #[inline]
    pub(crate) fn splice_front(&mut self, pieces: [&[u8]; 3], header: H::Bytes, room: usize) {
        let gap = self.gap();
        let added = pieces[0].len() + pieces[1].len() + pieces[2].len();
        if H::HAS_GAPS && gap >= added + MARK_BYTES {
            assert_tells::<H>(header, self.len() + added);
            self.put_front(gap - added, pieces, header);
        } else {
            self.widen_front(pieces, header, room);
        }
    }

    /// [`Self::splice_front`] past the gap.
    #[cold]
    #[inline(never)]
    fn widen_front(&mut self, pieces: [&[u8]; 3], header: H::Bytes, room: usize) {
        let added = pieces[0].len() + pieces[1].len() + pieces[2].len();
        if !H::HAS_GAPS || room < MARK_BYTES {
            self.set_gap(0);
            return self.splice(H::SIZE, 0, pieces, header);
        }
        let new_len = self.len() + added;
        assert_tells::<H>(header, new_len);
        // What the size class leaves over is better in front than behind.
        let gap = size_class::round_up(new_len + room) - new_len;
        self.set_gap(gap + added);
        self.put_front(gap, pieces, header);
    }

    /// Takes `removed` bytes from the front of the body, leaving a gap while it stays within `gap_max`.
    ///
    /// Panics if the body is shorter or `header` does not tell the new length.
    pub(crate) fn cut_front(&mut self, removed: usize, header: H::Bytes, gap_max: usize) {
        if H::HAS_GAPS && self.gap() + removed < MARK_BYTES && gap_max > removed + MARK_BYTES {
            // The content moves once, so that it need not for what is cut next.
            self.set_gap(MARK_BYTES);
        }
        let new_gap = self.gap() + removed;
        if H::HAS_GAPS && (MARK_BYTES..=gap_max).contains(&new_gap) {
            let new_len = self.len().checked_sub(removed).filter(|&len| len >= H::SIZE);
            assert_tells::<H>(header, new_len.unwrap_or(0));
            self.put_front(new_gap, [&[], &[], &[]], header);
        } else {
            self.set_gap(0);
            self.splice(H::SIZE, removed, [&[], &[], &[]], header);
        }
    }

    /// Writes the mark of a gap, and behind it the header and what follows it: in place of as many bytes, of gap or
    /// content, as come new. The caller has compared the lengths.
    #[inline]
    fn put_front(&mut self, gap: usize, pieces: [&[u8]; 3], header: H::Bytes) {
        let Ok(mark) = u32::try_from(gap) else { panic!("a gap of {gap} bytes") };
        debug_assert!(gap >= MARK_BYTES, "a gap holds its mark");
        // SAFETY: gap, header and pieces end where what they replace did, inside the block, whose start is 16-aligned.
        unsafe {
            let content = self.start.as_ptr().add(gap);
            write_pieces(content.add(H::SIZE), pieces);
            ptr::copy_nonoverlapping(header.as_ref().as_ptr(), content, H::SIZE);
            self.start.cast::<[u32; 2]>().write([0, mark]);
        }
    }

    /// Moves the content to another distance from the block's start: 0, or enough for a mark.
    pub(crate) fn set_gap(&mut self, new_gap: usize) {
        let (gap, len) = (self.gap(), self.len());
        if gap == new_gap {
            return;
        }
        if new_gap > gap {
            self.reallocate(gap + len, new_gap + len);
        }
        let start = self.start.as_ptr();
        // SAFETY: the block holds `len` bytes behind either gap now.
        unsafe { ptr::copy(start.add(gap), start.add(new_gap), len) };
        if new_gap > 0 {
            let Ok(mark) = u32::try_from(new_gap) else { panic!("a gap of {new_gap} bytes") };
            debug_assert!(new_gap >= MARK_BYTES, "a gap holds its mark");
            // SAFETY: the gap is at least as long as the mark, and the block's start is 16-aligned.
            unsafe { self.start.cast::<[u32; 2]>().write([0, mark]) };
        }
        if new_gap < gap {
            self.reallocate(gap + len, new_gap + len);
        }
    }

    /// Gives the block the size for `new_len` bytes of gap and content, if that is another class.
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
        size_class::round_up(self.gap() + self.len())
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
        let layout = layout(self.gap() + self.len());
        // SAFETY: the block was allocated with the layout of its gap and length (invariant of the type).
        unsafe { dealloc(self.start.as_ptr(), layout) };
    }
}

impl<H: Header> Clone for Block<H> {
    fn clone(&self) -> Self {
        Self::new(self.as_bytes())
    }
}

/// Panics unless `header` is one that tells `len`.
#[inline]
fn assert_tells<H: Header>(header: H::Bytes, len: usize) {
    let header = header.as_ref();
    assert!(header.len() == H::SIZE && H::total_len(header) == len, "a packed block's header lies");
}

/// Writes the pieces one behind the other.
///
/// # Safety
/// There are as many bytes to write to from `to` on, none of them borrowed by a piece.
#[inline]
unsafe fn write_pieces(mut to: *mut u8, pieces: [&[u8]; 3]) {
    for piece in pieces {
        // SAFETY: the caller's promise.
        unsafe {
            // Many are one byte: the head and the tail of a short entry. A call for each would cost more than they do.
            match piece {
                [byte] => to.write(*byte),
                _ => ptr::copy_nonoverlapping(piece.as_ptr(), to, piece.len()),
            }
            to = to.add(piece.len());
        }
    }
}

/// Bytes of a gap's mark: the least gap there is.
const MARK_BYTES: usize = 8;
