//! Member blobs of a big sorted set: the only unsafe code of `zset`.
//!
//! ```text
//! 16-aligned allocation: [score f64, 8 bytes][member length, LEB128][member bytes]
//! ```
//!
//! A 17-byte member takes 8 + 1 + 17 = 26 bytes, one 32-byte block. The score lies beside the member so that a
//! look-up by member needs one cache line and no walk of the tree.
//!
//! [`MemberRef`] is a plain copyable handle. Ownership is the big form's: each blob is owned by exactly one leaf
//! entry of its tree; the copies in separators and in the hash index are removed before the blob is freed. No
//! handle leaves the `zset` module, and everything handed out borrows from the sorted set.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::num::NonZeroU64;
use std::ptr::{self, NonNull};

use crate::table::Item;

/// Offset of the length behind the score.
const LENGTH_AT: usize = 8;
const ALIGN: usize = 16;

/// Handle of a member blob.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub(super) struct MemberRef(NonNull<u8>);

// SAFETY: a blob is plain memory with no thread affinity; its score is changed only through `&mut` of the owner.
unsafe impl Send for MemberRef {}
// SAFETY: shared access only reads.
unsafe impl Sync for MemberRef {}

impl MemberRef {
    /// A handle of nothing, for unused places of nodes; never looked into.
    pub(super) const VACANT: MemberRef = MemberRef(NonNull::dangling());

    /// A new blob.
    pub(super) fn new(score: f64, member: &[u8]) -> MemberRef {
        let header = LENGTH_AT + varint_len(member.len());
        let layout = layout(header + member.len());
        // SAFETY: the layout's size is at least 9.
        let pointer = unsafe { alloc(layout) };
        let Some(blob) = NonNull::new(pointer) else { handle_alloc_error(layout) };
        // SAFETY: the block is `header + member.len()` bytes, 16-aligned, and new, so nothing overlaps.
        unsafe {
            blob.cast::<f64>().write(score);
            let mut at = blob.as_ptr().add(LENGTH_AT);
            let mut rest = member.len();
            while rest >= 0x80 {
                at.write(rest.to_le_bytes()[0] | 0x80);
                at = at.add(1);
                rest >>= 7;
            }
            at.write(rest.to_le_bytes()[0]);
            at.add(1).copy_from_nonoverlapping(member.as_ptr(), member.len());
        }
        MemberRef(blob)
    }

    /// The member's bytes. The caller bounds `'a` by a borrow of the owning set.
    #[inline]
    pub(super) fn bytes<'a>(self) -> &'a [u8] {
        // SAFETY: handles exist only while their blob does (module invariant), and `new` wrote this layout.
        unsafe {
            let mut at = self.0.as_ptr().add(LENGTH_AT);
            let mut len = usize::from(*at);
            at = at.add(1);
            if len >= 0x80 {
                len &= 0x7f;
                let mut shift = 7;
                loop {
                    let byte = *at;
                    at = at.add(1);
                    len |= usize::from(byte & 0x7f) << shift;
                    shift += 7;
                    if byte < 0x80 {
                        break;
                    }
                }
            }
            std::slice::from_raw_parts(at, len)
        }
    }

    /// The member's score.
    #[inline]
    pub(super) fn score(self) -> f64 {
        // SAFETY: as in `bytes`; the block is 16-aligned.
        unsafe { self.0.cast::<f64>().read() }
    }

    /// Overwrites the score. Only the owner calls this, under `&mut`.
    #[inline]
    pub(super) fn set_score(self, score: f64) {
        // SAFETY: as in `bytes`; the owner's `&mut` excludes readers.
        unsafe { self.0.cast::<f64>().write(score) }
    }

    /// Frees the blob. The owner has dropped every other copy of the handle.
    pub(super) fn free(self) {
        let len = self.bytes().len();
        // SAFETY: same layout as in `new`; the module invariant makes this the last use.
        unsafe { dealloc(self.0.as_ptr(), layout(LENGTH_AT + varint_len(len) + len)) }
    }

    /// Bytes of the blob before the allocator rounds up.
    pub(super) fn blob_len(self) -> usize {
        let len = self.bytes().len();
        LENGTH_AT + varint_len(len) + len
    }

    /// Asks the processor to fetch the blob's first line.
    #[inline]
    pub(super) fn prefetch(self) {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            // SAFETY: a prefetch never faults, whatever the address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(self.0.as_ptr().cast::<i8>()) }
        }
    }
}

/// A handle as the hash index holds it: the pointer's word, whose 16 high bits the table uses for itself.
///
/// Owns nothing: dropping it frees nothing.
#[repr(transparent)]
pub(super) struct Indexed(NonZeroU64);

/// The pointer's bits of a word in the table.
const POINTER_BITS: u64 = 0x0000_ffff_ffff_fff0;

impl Indexed {
    pub(super) fn new(member: MemberRef) -> Indexed {
        let word = member.0.as_ptr().expose_provenance() as u64;
        match NonZeroU64::new(word) {
            Some(word) if word.get() & !POINTER_BITS == 0 => Indexed(word),
            _ => unreachable!("a blob's address is 16-aligned and has at most 48 bits"),
        }
    }

    /// The handle.
    #[inline]
    pub(super) fn member(&self) -> MemberRef {
        let address = (self.0.get() & POINTER_BITS) as usize;
        let pointer = ptr::with_exposed_provenance_mut(address);
        // SAFETY: `new` was given a non-null pointer, whose bits these are.
        MemberRef(unsafe { NonNull::new_unchecked(pointer) })
    }
}

// SAFETY: transparent over the word of a 16-aligned 48-bit pointer with zero bits above and below; every method masks
// the table's bits; there is no `Drop`; a member's bytes never change while it is indexed.
unsafe impl Item for Indexed {
    fn into_raw(self) -> u64 {
        self.0.get()
    }

    unsafe fn from_raw(word: u64) -> Self {
        // SAFETY: the word came from `into_raw`, which is never zero.
        Indexed(unsafe { NonZeroU64::new_unchecked(word) })
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.member().bytes()
    }
}

/// Bytes of `value` in LEB128.
fn varint_len(value: usize) -> usize {
    let bits = usize::BITS - (value | 1).leading_zeros();
    bits.div_ceil(7) as usize
}

fn layout(len: usize) -> Layout {
    match Layout::from_size_align(len, ALIGN) {
        Ok(layout) => layout,
        // Only past isize::MAX bytes, which no slice can have.
        Err(_) => unreachable!("a member is at most isize::MAX bytes"),
    }
}
