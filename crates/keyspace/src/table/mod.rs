//! The hash table of the keyspace: keys of a slot, fields of a hash, members of a set or zset.
//!
//! Hot path: a look-up takes no allocation and, with few exceptions, two cache lines: the bucket
//! and what the found handle points at.
//!
//! - [`bucket`]: a cache line of seven 8-byte handles with fingerprints; all `unsafe`.
//! - [`segment`]: an array of buckets, in order of the hash, four sizes per doubling so that seven
//!   to nearly nine lanes of ten are full: 10.4 to 13.1 bytes per item.
//! - [`directory`]: beyond 1,372 items, segments by prefix of the hash. One splits at a time, so no
//!   step costs more than a fraction of a millisecond and no allocation passes 1 MiB.
//! - Growing and splitting use hash bits kept in the handles and rarely touch the items' memory.
//!
//! The order of everything is the order of the hashes, whatever the sizes: a [`Table::scan`] cursor
//! is a prefix of the hash and stays valid while the table grows, splits, merges and shrinks.
//!
//! The hash is the caller's: it was needed for prefetching already. Every `hash` given with a key
//! must be the item's [`Item::hash`].

mod blob;
mod bucket;
mod directory;
mod iter;
mod place;
mod scan;
mod segment;
#[cfg(test)]
mod tests;

use std::{convert::Infallible, fmt};

pub use self::{
    blob::{Field, Member},
    iter::{IntoIter, Iter},
    place::{Entry, Place, Vacant},
    scan::CURSOR_BITS,
};
use self::{
    bucket::BucketArray,
    directory::Directory,
    segment::{Depth, MAX_BUCKETS, Probe, Spot},
};
use crate::{
    hashing::hash_key,
    tagged::{Choice, Tagged},
};

/// An owner in eight bytes that a [`Table`] can hold.
///
/// # Safety
/// - The type is `repr(transparent)` over a `u64` (or `NonZeroU64`): a 16-aligned pointer of 48
///   bits with four tag bits at the bottom that the table keeps, and 16 zero bits on top.
/// - The table lends items with its own bits in those 16: every method that takes `&self` or
///   `&mut self`, and `Drop`, ignores them, and changes of the word through `&mut self` are made
///   only by what [`Place::update`] calls, or change nothing but a tag bit.
/// - `into_raw` gives up ownership, `from_raw` takes it back.
/// - `key` and `hash` answer the same all the time that the item is in a table.
pub unsafe trait Item: Sized {
    /// The word, with what it owns.
    fn into_raw(self) -> u64;

    /// The owner again.
    ///
    /// # Safety
    /// `word` came from `into_raw` of the same type, and nothing else owns it.
    unsafe fn from_raw(word: u64) -> Self;

    /// What the item is found by.
    fn key(&self) -> &[u8];

    /// Hash of the key.
    fn hash(&self) -> u64 {
        hash_key(self.key())
    }
}

/// Where an item of a table is, until the table changes.
#[derive(Clone, Copy, Debug)]
pub struct At {
    segment: usize,
    spot: Spot,
}

/// A hash table of 8-byte owners. Empty, it owns no memory.
///
/// Invariants, checked by [`check`](Self::check): `len` is the number of occupied lanes; each item
/// lies on the probe of its hash with every bucket before it counting it; the directory's own.
pub struct Table<T: Item> {
    root: Tagged<BucketArray<T>, Directory<T>>,
    len: usize,
}

impl<T: Item> Table<T> {
    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        Self { root: Tagged::thin(BucketArray::empty()), len: 0 }
    }

    /// Number of items.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes that the table itself has allocated, without the items' own and without `Self`.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        match self.root.get() {
            Choice::Thin(array) => array.allocated_bytes(),
            Choice::Boxed(directory) => directory.allocated_bytes(),
            Choice::Third(never) => match *never {},
        }
    }

    /// The item of `key`.
    #[inline]
    #[must_use]
    pub fn find(&self, hash: u64, key: &[u8]) -> Option<&T> {
        // Each arm has a look-up of its own: the root's is shorter.
        let found = match self.root.get() {
            Choice::Thin(array) => find_in(array, Depth::ROOT, hash, key),
            Choice::Boxed(directory) => {
                let segment = directory.segment(directory.index(hash));
                find_in(&segment.array, segment.depth, hash, key)
            }
            Choice::Third(never) => match *never {},
        };
        found.map(|(_, item)| item)
    }

    /// Where `key`'s item is, and the item.
    #[inline]
    #[must_use]
    pub fn position(&self, hash: u64, key: &[u8]) -> Option<(At, &T)> {
        match self.root.get() {
            Choice::Thin(array) => {
                let (spot, item) = find_in(array, Depth::ROOT, hash, key)?;
                Some((At { segment: 0, spot }, item))
            }
            Choice::Boxed(directory) => {
                let index = directory.index(hash);
                let segment = directory.segment(index);
                let (spot, item) = find_in(&segment.array, segment.depth, hash, key)?;
                Some((At { segment: index, spot }, item))
            }
            Choice::Third(never) => match *never {},
        }
    }

    /// The item that [`position`](Self::position) found.
    ///
    /// # Panics
    /// When the table has changed since and nothing is there now.
    #[inline]
    #[must_use]
    pub fn at(&self, at: At) -> &T {
        self.array(at.segment).buckets()[at.spot.bucket].item(at.spot.lane)
    }

    /// The place of the item that [`position`](Self::position) found.
    #[inline]
    #[must_use]
    pub fn place_at(&mut self, at: At) -> Place<'_, T> {
        Place::new(self, at.segment, at.spot)
    }

    /// Whether `key` has an item.
    #[inline]
    #[must_use]
    pub fn contains(&self, hash: u64, key: &[u8]) -> bool {
        self.find(hash, key).is_some()
    }

    /// The place of `key`'s item, to change, replace or remove it.
    #[inline]
    #[must_use]
    pub fn find_mut(&mut self, hash: u64, key: &[u8]) -> Option<Place<'_, T>> {
        let (at, _) = self.position(hash, key)?;
        Some(self.place_at(at))
    }

    /// The place of `key`, taken or free.
    #[inline]
    #[must_use]
    pub fn entry(&mut self, hash: u64, key: &[u8]) -> Entry<'_, T> {
        match self.position(hash, key).map(|(at, _)| at) {
            Some(at) => Entry::Occupied(self.place_at(at)),
            None => Entry::Vacant(Vacant::new(self, hash)),
        }
    }

    /// Puts in an item whose key is known to be absent.
    #[inline]
    pub fn insert_unique(&mut self, hash: u64, item: T) -> Place<'_, T> {
        debug_assert_eq!(hash, item.hash(), "the hash is the item's");
        self.make_room(hash);
        self.len += 1;
        let (segment, spot) = match self.root.get_mut() {
            Choice::Thin(array) => (0, put(array, Depth::ROOT, hash, item)),
            Choice::Boxed(directory) => {
                let index = directory.index(hash);
                directory.count_in(index);
                let segment = directory.segment_mut(index);
                (index, put(&mut segment.array, segment.depth, hash, item))
            }
            Choice::Third(never) => never.update(|never| match *never {}),
        };
        Place::new(self, segment, spot)
    }

    /// Takes `key`'s item out.
    pub fn remove(&mut self, hash: u64, key: &[u8]) -> Option<T> {
        Some(self.find_mut(hash, key)?.remove())
    }

    /// Drops all items and gives all memory back.
    pub fn clear(&mut self) {
        *self = Self::new();
    }

    /// Asks the processor to load the bucket of `hash`.
    #[inline]
    pub fn prefetch_bucket(&self, hash: u64) {
        let (array, depth) = self.locate(hash);
        let count = array.count();
        array.prefetch(Probe::new(hash, depth, count).home);
    }

    /// Asks the processor to load the memory of the items that look like those of `hash`.
    ///
    /// Reads the bucket: worth it some hundred nanoseconds after [`prefetch_bucket`](Self::prefetch_bucket).
    #[inline]
    pub fn prefetch_items(&self, hash: u64) {
        let (array, depth) = self.locate(hash);
        let buckets = array.buckets();
        let probe = Probe::new(hash, depth, buckets.len());
        if let Some(bucket) = buckets.get(probe.home) {
            bucket.prefetch_items(probe.fingerprint, probe.position);
        }
    }

    /// All items, in no order.
    #[must_use]
    pub fn iter(&self) -> Iter<'_, T> {
        match self.root.get() {
            Choice::Thin(array) => Iter::new(Some(array), &[], self.len),
            Choice::Boxed(directory) => Iter::new(None, directory.segments(), self.len),
            Choice::Third(never) => match *never {},
        }
    }

    /// Calls `change` with every item. What identifies it must stay, and so must its word: see
    /// [`Place::get_mut`].
    pub fn for_each_mut(&mut self, mut change: impl FnMut(&mut T)) {
        self.for_each_array(|array, _| {
            for bucket in array.buckets_mut() {
                bucket.items_mut().for_each(&mut change);
            }
        });
    }

    /// Drops the items that `keep` does not want.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.extract_if(|item| !keep(item), drop);
    }

    /// Takes out the items for which `wanted` is true and hands them to `taken`.
    pub fn extract_if(&mut self, mut wanted: impl FnMut(&T) -> bool, mut taken: impl FnMut(T)) {
        let mut out_of = Vec::new();
        let mut total = 0;
        self.for_each_array(|array, depth| {
            let mut count = 0;
            for bucket in 0..array.count() {
                for lane in array.buckets()[bucket].occupied() {
                    if wanted(array.buckets()[bucket].item(lane)) {
                        let loose = segment::take(array.buckets_mut(), depth, Spot { bucket, lane });
                        count += 1;
                        taken(loose.into_item());
                    }
                }
            }
            total += count;
            out_of.push(count);
        });
        self.len -= total;
        if let Choice::Boxed(directory) = self.root.get_mut() {
            for (index, &count) in out_of.iter().enumerate() {
                directory.count_out(index, count);
            }
            // A merge moves the last segment to the place of the one that goes: backwards, all are met.
            for index in (0..out_of.len()).rev() {
                if index < directory.segments().len() {
                    directory.shrink(index);
                }
            }
        }
        self.shrink();
    }

    /// Panics when an invariant does not hold. Walks everything: for tests and fuzzing.
    pub fn check(&self) {
        match self.root.get() {
            Choice::Thin(array) => check_array(array, Depth::ROOT, 0),
            Choice::Boxed(directory) => {
                directory.check();
                for segment in directory.segments() {
                    check_array(&segment.array, segment.depth, segment.prefix());
                }
            }
            Choice::Third(never) => match *never {},
        }
        assert_eq!(self.iter().count(), self.len);
    }

    /// The array of `hash` and its depth.
    #[inline]
    fn locate(&self, hash: u64) -> (&BucketArray<T>, Depth) {
        match self.root.get() {
            Choice::Thin(array) => (array, Depth::ROOT),
            Choice::Boxed(directory) => {
                let segment = directory.segment(directory.index(hash));
                (&segment.array, segment.depth)
            }
            Choice::Third(never) => match *never {},
        }
    }

    #[inline]
    fn array(&self, segment: usize) -> &BucketArray<T> {
        match self.root.get() {
            Choice::Thin(array) => array,
            Choice::Boxed(directory) => &directory.segment(segment).array,
            Choice::Third(never) => match *never {},
        }
    }

    #[inline]
    fn array_mut(&mut self, segment: usize) -> (&mut BucketArray<T>, Depth) {
        match self.root.get_mut() {
            Choice::Thin(array) => (array, Depth::ROOT),
            Choice::Boxed(directory) => {
                let segment = directory.segment_mut(segment);
                (&mut segment.array, segment.depth)
            }
            Choice::Third(never) => never.update(|never| match *never {}),
        }
    }

    fn for_each_array(&mut self, mut visit: impl FnMut(&mut BucketArray<T>, Depth)) {
        match self.root.get_mut() {
            Choice::Thin(array) => visit(array, Depth::ROOT),
            Choice::Boxed(directory) => {
                for segment in directory.segments_mut() {
                    visit(&mut segment.array, segment.depth);
                }
            }
            Choice::Third(never) => never.update(|never| match *never {}),
        }
    }

    #[inline]
    fn make_room(&mut self, hash: u64) {
        let len = self.len;
        match self.root.get_mut() {
            Choice::Thin(array) => {
                if len >= segment::capacity(array.count()) {
                    self.enlarge();
                    self.make_room_in_directory(hash);
                }
            }
            Choice::Boxed(directory) => directory.make_room(hash),
            Choice::Third(never) => never.update(|never| match *never {}),
        }
    }

    /// A full table of one segment gets more buckets, or a directory.
    #[cold]
    #[inline(never)]
    fn enlarge(&mut self) {
        let len = self.len;
        let Choice::Thin(array) = self.root.get_mut() else {
            return;
        };
        if array.count() < MAX_BUCKETS {
            let count = segment::larger(array.count());
            segment::rebuild(array, Depth::ROOT, count);
        } else {
            let array = std::mem::replace(array, BucketArray::empty());
            self.root = Tagged::boxed(Box::new(Directory::new(array, len)));
        }
    }

    fn make_room_in_directory(&mut self, hash: u64) {
        if let Choice::Boxed(directory) = self.root.get_mut() {
            directory.make_room(hash);
        }
    }

    fn remove_at(&mut self, index: usize, spot: Spot) -> T {
        let (array, depth) = self.array_mut(index);
        let item = segment::take(array.buckets_mut(), depth, spot).into_item();
        self.len -= 1;
        if let Choice::Boxed(directory) = self.root.get_mut() {
            directory.count_out(index, 1);
            directory.shrink(index);
        }
        self.shrink();
        item
    }

    /// Gives memory back, if worth it, while there is one segment.
    fn shrink(&mut self) {
        if let Choice::Boxed(directory) = self.root.get_mut()
            && let Some(array) = directory.take_single()
        {
            self.root = Tagged::thin(array);
        }
        let len = self.len;
        if let Choice::Thin(array) = self.root.get_mut()
            && let Some(count) = segment::smaller(len, array.count())
        {
            segment::rebuild(array, Depth::ROOT, count);
        }
    }

    fn take_arrays(&mut self) -> Vec<BucketArray<T>> {
        self.len = 0;
        let empty = Tagged::thin(BucketArray::empty());
        match std::mem::replace(&mut self.root, empty).into_inner() {
            Choice::Thin(array) => vec![array],
            Choice::Boxed(directory) => directory.into_arrays(),
            Choice::Third(never) => match never {},
        }
    }
}

impl<T: Item> Default for Table<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Item + Clone> Clone for Table<T> {
    fn clone(&self) -> Self {
        let mut copy = Self::new();
        for item in self {
            copy.insert_unique(item.hash(), item.clone());
        }
        copy
    }
}

impl<T: Item + fmt::Debug> fmt::Debug for Table<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self).finish()
    }
}

impl<T: Item> Drop for Table<T> {
    fn drop(&mut self) {
        if self.len != 0 {
            self.for_each_array(|array, _| {
                segment::move_all(array, |loose| drop(loose.into_item()));
            });
        }
    }
}

impl<T: Item> IntoIterator for Table<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    fn into_iter(mut self) -> IntoIter<T> {
        IntoIter::new(self.take_arrays())
    }
}

impl<'t, T: Item> IntoIterator for &'t Table<T> {
    type Item = &'t T;
    type IntoIter = Iter<'t, T>;

    fn into_iter(self) -> Iter<'t, T> {
        self.iter()
    }
}

#[inline]
fn find_in<'t, T: Item>(array: &'t BucketArray<T>, depth: Depth, hash: u64, key: &[u8]) -> Option<(Spot, &'t T)> {
    let buckets = array.buckets();
    segment::find(buckets, Probe::new(hash, depth, buckets.len()), key)
}

#[inline]
fn put<T: Item>(array: &mut BucketArray<T>, depth: Depth, hash: u64, item: T) -> Spot {
    let loose = bucket::Loose::new(item, segment::fingerprint(hash), depth.position(hash));
    segment::place(array.buckets_mut(), depth, loose)
}

fn check_array<T: Item>(array: &BucketArray<T>, depth: Depth, prefix: u16) {
    let buckets = array.buckets();
    let mut passed = vec![0_u64; buckets.len()];
    for (at, bucket) in buckets.iter().enumerate() {
        for lane in bucket.occupied() {
            let item = bucket.item(lane);
            let probe = Probe::new(item.hash(), depth, buckets.len());
            assert_eq!(bucket.position(lane), probe.position, "position bits are the hash's");
            assert_eq!(bucket.fingerprint(lane), probe.fingerprint, "the fingerprint is the hash's");
            let mask = !(u64::MAX >> depth.bits());
            assert_eq!(item.hash() & mask, u64::from(prefix) << 48, "the prefix is the segment's");
            let mut on_the_way = probe.home;
            while on_the_way != at {
                passed[on_the_way] += 1;
                on_the_way = (on_the_way + 1) % buckets.len();
            }
        }
    }
    for (bucket, &passed) in buckets.iter().zip(&passed) {
        assert!(bucket.passed() == passed.min(255) || bucket.passed() == 255, "passers are counted");
    }
}

const _: () = assert!(size_of::<Table<never::Nothing>>() == 16);

/// An item type without values, to state sizes.
mod never {
    use super::{Infallible, Item};

    #[repr(transparent)]
    pub(super) struct Nothing(u64, std::marker::PhantomData<Infallible>);

    // SAFETY: there is no way to make one.
    unsafe impl Item for Nothing {
        fn into_raw(self) -> u64 {
            self.0
        }

        unsafe fn from_raw(word: u64) -> Self {
            Self(word, std::marker::PhantomData)
        }

        fn key(&self) -> &[u8] {
            &[]
        }
    }
}
