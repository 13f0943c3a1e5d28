//! One cache line of a table, and arrays of them. All `unsafe` of the table is here.
//!
//! Hot path: no allocation in a look-up, no branch per lane.
//!
//! ```text
//! Bucket, 64 bytes, 64-aligned
//!   byte 0 … 6   fingerprint of lane 0 … 6: low byte of the hash, never 0; 0 = the lane is empty
//!   byte 7       how many items passed this bucket by: their home is here or before, they live
//!                after it; 0 ends a probe; 255 is sticky (until the array is rebuilt)
//!   word 1 … 7   the lane's handle:  | 16 position bits | 44 bits of pointer | 4 tag bits |
//! ```
//!
//! Invariant of [`Bucket`]: a lane whose fingerprint is not 0 holds the word of a live `T` that the
//! bucket owns, with the position bits on top. The seven fingerprints are compared at once, by
//! arithmetic on the whole first word.

use std::{
    alloc::{self, Layout},
    marker::PhantomData,
    mem,
    ptr::{self, NonNull},
    slice,
};

use super::Item;
use crate::tagged::Thin;

/// Handles per bucket.
pub(super) const LANES: usize = 7;

/// Seven owned handles with their fingerprints.
#[repr(C, align(64))]
pub(super) struct Bucket<T> {
    meta: u64,
    words: [u64; LANES],
    marker: PhantomData<T>,
}

impl<T: Item> Bucket<T> {
    /// The lane and the item of `key`, which hashed to `fingerprint` and `position`.
    #[inline]
    pub(super) fn find(&self, fingerprint: u8, position: u16, key: &[u8]) -> Option<(usize, &T)> {
        for lane in self.matches(fingerprint) {
            let word = &self.words[lane];
            if position_of(*word) == position {
                // SAFETY: a matching fingerprint is not 0, so the lane holds a live item.
                let item: &T = unsafe { view(word) };
                if item.key() == key {
                    return Some((lane, item));
                }
            }
        }
        None
    }

    /// Asks the processor to load what lanes with this fingerprint and position point at.
    #[inline]
    pub(super) fn prefetch_items(&self, fingerprint: u8, position: u16) {
        for lane in self.matches(fingerprint) {
            let word = self.words[lane];
            if position_of(word) == position {
                prefetch((word & POINTER_MASK) as usize);
            }
        }
    }

    /// Asks the processor to load what every lane points at.
    #[inline]
    pub(super) fn prefetch_all(&self) {
        for lane in self.occupied() {
            prefetch((self.words[lane] & POINTER_MASK) as usize);
        }
    }

    /// The item in `lane`.
    ///
    /// # Panics
    /// When the lane is empty: a bug of the table.
    #[inline]
    pub(super) fn item(&self, lane: usize) -> &T {
        assert!(self.is_occupied(lane), "the lane holds an item");
        // SAFETY: just checked.
        unsafe { view(&self.words[lane]) }
    }

    /// The item in `lane`, mutably. Its word's high bits belong to the table.
    ///
    /// # Panics
    /// When the lane is empty: a bug of the table.
    #[inline]
    pub(super) fn item_mut(&mut self, lane: usize) -> &mut T {
        assert!(self.is_occupied(lane), "the lane holds an item");
        // SAFETY: just checked.
        unsafe { view_mut(&mut self.words[lane]) }
    }

    /// Position bits of the item in `lane`; meaningless when the lane is empty.
    #[inline]
    pub(super) fn position(&self, lane: usize) -> u16 {
        position_of(self.words[lane])
    }

    /// Fingerprint of the item in `lane`, 0 when it is empty.
    #[inline]
    pub(super) fn fingerprint(&self, lane: usize) -> u8 {
        byte(self.meta, lane)
    }

    /// Whether `lane` holds an item.
    #[inline]
    pub(super) fn is_occupied(&self, lane: usize) -> bool {
        lane < LANES && self.fingerprint(lane) != 0
    }

    /// The lanes that hold items.
    #[inline]
    pub(super) fn occupied(&self) -> Lanes {
        Lanes(!zero_bytes(self.meta) & HIGHS)
    }

    /// The lanes whose fingerprint is `fingerprint`.
    #[inline]
    fn matches(&self, fingerprint: u8) -> Lanes {
        Lanes(zero_bytes(self.meta ^ (ONES * u64::from(fingerprint))))
    }

    /// Whether a probe must go on to the next bucket.
    #[inline]
    pub(super) fn is_passed(&self) -> bool {
        self.meta >> 56 != 0
    }

    /// Count of items that passed this bucket, 255 for that and more.
    #[inline]
    pub(super) fn passed(&self) -> u64 {
        self.meta >> 56
    }

    /// Counts one more item that found no room here.
    #[inline]
    pub(super) fn pass(&mut self) {
        if self.meta >> 56 != 255 {
            self.meta += 1 << 56;
        }
    }

    /// One item fewer lives beyond this bucket.
    #[inline]
    pub(super) fn unpass(&mut self) {
        let passed = self.meta >> 56;
        debug_assert_ne!(passed, 0, "what passed was counted");
        if passed != 255 && passed != 0 {
            self.meta -= 1 << 56;
        }
    }

    /// The first empty lane.
    #[inline]
    pub(super) fn vacant(&self) -> Option<usize> {
        Lanes(zero_bytes(self.meta)).next()
    }

    /// Puts an item into an empty lane, as `vacant` names it.
    #[inline]
    pub(super) fn fill(&mut self, lane: usize, loose: Loose<T>) {
        debug_assert!(!self.is_occupied(lane), "only an empty lane is filled");
        self.meta |= u64::from(loose.fingerprint) << (lane * 8);
        self.words[lane] = loose.word;
    }

    /// Takes the item out of `lane`.
    ///
    /// # Panics
    /// When the lane is empty: a bug of the table.
    #[inline]
    pub(super) fn take(&mut self, lane: usize) -> Loose<T> {
        assert!(self.is_occupied(lane), "the lane holds an item");
        let fingerprint = self.fingerprint(lane);
        self.meta &= !(0xff << (lane * 8));
        Loose { word: self.words[lane], fingerprint, marker: PhantomData }
    }

    /// Empties the bucket, its count of passers too, and hands out what it held.
    #[inline]
    pub(super) fn drain(&mut self) -> Drained<T> {
        let drained = Drained { lanes: self.occupied(), meta: self.meta, words: self.words, marker: PhantomData };
        self.meta = 0;
        drained
    }

    /// Empties the bucket, its count of passers too, and gives each item it held to `taker`.
    #[inline]
    pub(super) fn drain_into(&mut self, mut taker: impl FnMut(Loose<T>)) {
        let meta = self.meta;
        let lanes = self.occupied();
        // First, so that a panic of the taker loses items but never leaves one with two owners.
        self.meta = 0;
        for lane in lanes {
            taker(Loose { word: self.words[lane], fingerprint: byte(meta, lane), marker: PhantomData });
        }
    }

    /// Puts `item` in the place of the one in `lane`, which it returns. Both have the same key.
    ///
    /// # Panics
    /// When the lane is empty: a bug of the table.
    #[inline]
    pub(super) fn replace(&mut self, lane: usize, item: T) -> T {
        assert!(self.is_occupied(lane), "the lane holds an item");
        let old = self.words[lane];
        self.words[lane] = pack(item, position_of(old));
        // SAFETY: the lane held a live item, and no longer does: it is owned by the caller now.
        unsafe { T::from_raw(old & WORD_MASK) }
    }

    /// Lends the item in `lane` to `change` with its high bits clear, so that it may replace itself.
    ///
    /// # Panics
    /// When the lane is empty: a bug of the table.
    pub(super) fn update<R>(&mut self, lane: usize, change: impl FnOnce(&mut T) -> R) -> R {
        struct PutBack<'b, T: Item> {
            item: mem::ManuallyDrop<T>,
            word: &'b mut u64,
        }
        impl<T: Item> Drop for PutBack<'_, T> {
            fn drop(&mut self) {
                // SAFETY: the guard is gone after this; the lane owns the item again.
                let item = unsafe { mem::ManuallyDrop::take(&mut self.item) };
                *self.word = pack(item, position_of(*self.word));
            }
        }
        assert!(self.is_occupied(lane), "the lane holds an item");
        let word = &mut self.words[lane];
        // SAFETY: the lane holds a live item; until the guard puts it back nobody reads the lane.
        let item = mem::ManuallyDrop::new(unsafe { T::from_raw(*word & WORD_MASK) });
        let mut guard = PutBack { item, word };
        change(&mut guard.item)
    }

    /// The items of the bucket, mutably. The high bits of their words belong to the table.
    #[inline]
    pub(super) fn items_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let lanes = self.occupied();
        self.words.iter_mut().enumerate().filter(move |(lane, _)| lanes.contains(*lane)).map(|(_, word)| {
            // SAFETY: the lane is occupied, so its word is a live item.
            unsafe { view_mut(word) }
        })
    }
}

/// An owned item on its way between lanes: its word with position bits, and its fingerprint.
///
/// Dropping one leaks its item; the table never does.
pub(super) struct Loose<T> {
    word: u64,
    fingerprint: u8,
    marker: PhantomData<T>,
}

impl<T: Item> Loose<T> {
    /// `item`, which hashes to `fingerprint` (never 0) and `position`.
    #[inline]
    pub(super) fn new(item: T, fingerprint: u8, position: u16) -> Self {
        debug_assert_ne!(fingerprint, 0);
        Self { word: pack(item, position), fingerprint: fingerprint | u8::from(fingerprint == 0), marker: PhantomData }
    }

    /// Its position bits.
    #[inline]
    pub(super) fn position(&self) -> u16 {
        position_of(self.word)
    }

    /// The same item with other position bits.
    #[inline]
    pub(super) fn at_position(self, position: u16) -> Self {
        Self { word: self.word & WORD_MASK | u64::from(position) << POSITION_SHIFT, ..self }
    }

    /// The item itself, borrowed.
    #[inline]
    pub(super) fn item(&self) -> &T {
        // SAFETY: a loose item is a live item.
        unsafe { view(&self.word) }
    }

    /// The item itself.
    #[inline]
    pub(super) fn into_item(self) -> T {
        // SAFETY: a loose item is a live item, owned by `self`.
        unsafe { T::from_raw(self.word & WORD_MASK) }
    }
}

/// What [`Bucket::drain`] took out; drops what is not asked for.
pub(super) struct Drained<T: Item> {
    lanes: Lanes,
    meta: u64,
    words: [u64; LANES],
    marker: PhantomData<T>,
}

impl<T: Item> Iterator for Drained<T> {
    type Item = Loose<T>;

    #[inline]
    fn next(&mut self) -> Option<Loose<T>> {
        let lane = self.lanes.next()?;
        Some(Loose { word: self.words[lane], fingerprint: byte(self.meta, lane), marker: PhantomData })
    }
}

impl<T: Item> Drop for Drained<T> {
    #[inline]
    fn drop(&mut self) {
        for loose in self.by_ref() {
            drop(loose.into_item());
        }
    }
}

/// A set of lanes, lowest first: the high bit of each byte of a word.
#[derive(Clone, Copy)]
pub(super) struct Lanes(u64);

impl Lanes {
    /// No lane.
    pub(super) const NONE: Self = Self(0);

    /// How many.
    #[inline]
    pub(super) fn count(self) -> usize {
        self.0.count_ones() as usize
    }

    #[inline]
    fn contains(self, lane: usize) -> bool {
        self.0 >> (lane * 8) & 0x80 != 0
    }
}

impl Iterator for Lanes {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let lane = self.0.trailing_zeros() as usize / 8;
        self.0 &= self.0 - 1;
        Some(lane)
    }
}

/// Owned array of buckets, in one word: the pointer, and the count in its 16 high bits.
///
/// Does not drop the items: the table does, before.
#[repr(transparent)]
pub(super) struct BucketArray<T> {
    raw: NonNull<u8>,
    marker: PhantomData<Bucket<T>>,
}

impl<T> BucketArray<T> {
    /// No buckets, no allocation.
    pub(super) fn empty() -> Self {
        Self { raw: NonNull::<Bucket<T>>::dangling().cast(), marker: PhantomData }
    }

    /// `count` empty buckets.
    pub(super) fn new(count: usize) -> Self {
        if count == 0 {
            return Self::empty();
        }
        assert!(count <= MAX_COUNT, "a segment is split or bounded before this");
        let layout = Self::layout(count);
        // SAFETY: the layout's size is not 0.
        let fresh = unsafe { alloc::alloc_zeroed(layout) };
        let Some(fresh) = NonNull::new(fresh) else { alloc::handle_alloc_error(layout) };
        assert!(fresh.addr().get() >> POSITION_SHIFT == 0, "user space is 48 bits wide");
        Self { raw: fresh.map_addr(|addr| addr | count << POSITION_SHIFT), marker: PhantomData }
    }

    /// Number of buckets.
    #[inline]
    pub(super) fn count(&self) -> usize {
        self.raw.addr().get() >> POSITION_SHIFT
    }

    /// Bytes allocated.
    pub(super) fn allocated_bytes(&self) -> usize {
        self.count() * mem::size_of::<Bucket<T>>()
    }

    /// The buckets.
    #[inline]
    pub(super) fn buckets(&self) -> &[Bucket<T>] {
        // SAFETY: the array owns `count` buckets there, all initialised (zeroed is empty).
        unsafe { slice::from_raw_parts(self.start(), self.count()) }
    }

    /// The buckets, mutably.
    #[inline]
    pub(super) fn buckets_mut(&mut self) -> &mut [Bucket<T>] {
        // SAFETY: as in `buckets`, and `self` is borrowed mutably.
        unsafe { slice::from_raw_parts_mut(self.start(), self.count()) }
    }

    /// Asks the processor to load bucket `at`.
    #[inline]
    pub(super) fn prefetch(&self, at: usize) {
        prefetch(self.start().addr() + at * mem::size_of::<Bucket<T>>());
    }

    #[inline]
    fn start(&self) -> *mut Bucket<T> {
        self.raw.as_ptr().map_addr(|addr| addr & ADDRESS_MASK).cast()
    }

    fn layout(count: usize) -> Layout {
        // SAFETY: 64 is a power of two, and 65,535 × 64 does not overflow.
        unsafe { Layout::from_size_align_unchecked(count * mem::size_of::<Bucket<T>>(), mem::align_of::<Bucket<T>>()) }
    }
}

impl<T> Drop for BucketArray<T> {
    fn drop(&mut self) {
        let count = self.count();
        if count != 0 {
            // SAFETY: allocated in `new` with this layout, and owned.
            unsafe { alloc::dealloc(self.start().cast(), Self::layout(count)) };
        }
    }
}

// SAFETY: transparent over one pointer; buckets are 64-aligned, so its low bits are zero.
unsafe impl<T> Thin for BucketArray<T> {
    fn into_thin(self) -> NonNull<u8> {
        mem::ManuallyDrop::new(self).raw
    }

    unsafe fn from_thin(raw: NonNull<u8>) -> Self {
        Self { raw, marker: PhantomData }
    }
}

// SAFETY: it owns its buckets, as a boxed slice would.
unsafe impl<T: Send> Send for BucketArray<T> {}
// SAFETY: shared references give out shared references only.
unsafe impl<T: Sync> Sync for BucketArray<T> {}

/// The item a live word is.
///
/// # Safety
/// `word` is a live `T` with position bits on top.
#[inline]
unsafe fn view<T: Item>(word: &u64) -> &T {
    const { assert!(mem::size_of::<T>() == 8 && mem::align_of::<T>() == 8) };
    // SAFETY: `Item` promises a transparent 64-bit word whose methods ignore the 16 high bits.
    unsafe { &*ptr::from_ref(word).cast::<T>() }
}

/// The item a live word is, mutably.
///
/// # Safety
/// `word` is a live `T` with position bits on top.
#[inline]
unsafe fn view_mut<T: Item>(word: &mut u64) -> &mut T {
    const { assert!(mem::size_of::<T>() == 8 && mem::align_of::<T>() == 8) };
    // SAFETY: as in `view`.
    unsafe { &mut *ptr::from_mut(word).cast::<T>() }
}

#[inline]
fn pack<T: Item>(item: T, position: u16) -> u64 {
    item.into_raw() & WORD_MASK | u64::from(position) << POSITION_SHIFT
}

#[inline]
fn position_of(word: u64) -> u16 {
    (word >> POSITION_SHIFT) as u16
}

/// Byte `lane` of a word.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "one byte is wanted")]
fn byte(word: u64, lane: usize) -> u8 {
    (word >> (lane * 8)) as u8
}

/// The high bit of each of the seven low bytes that are zero in `word`. Exact: no borrow runs on.
#[inline]
fn zero_bytes(word: u64) -> u64 {
    !(((word & SEVENTY_F) + SEVENTY_F) | word) & HIGHS
}

/// Asks the processor to load a line; any address will do.
#[inline]
fn prefetch(addr: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(ptr::without_provenance(addr));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = addr;
}

const ONES: u64 = 0x0001_0101_0101_0101;
const SEVENTY_F: u64 = ONES * 0x7f;
const HIGHS: u64 = ONES * 0x80;
const POSITION_SHIFT: u32 = 48;
/// The handle without the table's position bits.
const WORD_MASK: u64 = (1 << POSITION_SHIFT) - 1;
/// The handle's pointer alone.
const POINTER_MASK: u64 = WORD_MASK & !0xf;
/// A pointer's bits of an address.
const ADDRESS_MASK: usize = (1 << POSITION_SHIFT) - 1;
/// As many buckets as the 16 bits can count.
const MAX_COUNT: usize = 0xffff;

const _: () = assert!(mem::size_of::<Bucket<u64>>() == 64 && mem::align_of::<Bucket<u64>>() == 64);
