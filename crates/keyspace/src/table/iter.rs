//! Walking a table: all items, borrowed, mutably or owned, in no order.

use std::slice;

use super::{
    Item,
    bucket::{Bucket, BucketArray, Drained, Lanes},
    directory::Segment,
};

/// All items of a table. See [`Table::iter`](super::Table::iter).
pub struct Iter<'t, T> {
    segments: slice::Iter<'t, Segment<T>>,
    buckets: slice::Iter<'t, Bucket<T>>,
    bucket: Option<&'t Bucket<T>>,
    lanes: Lanes,
    left: usize,
}

impl<'t, T: Item> Iter<'t, T> {
    pub(super) fn new(array: Option<&'t BucketArray<T>>, segments: &'t [Segment<T>], len: usize) -> Self {
        let buckets = array.map_or(&[][..], BucketArray::buckets).iter();
        Self { segments: segments.iter(), buckets, bucket: None, lanes: Lanes::NONE, left: len }
    }
}

impl<'t, T: Item> Iterator for Iter<'t, T> {
    type Item = &'t T;

    fn next(&mut self) -> Option<&'t T> {
        loop {
            if let Some(bucket) = self.bucket
                && let Some(lane) = self.lanes.next()
            {
                self.left = self.left.saturating_sub(1);
                return Some(bucket.item(lane));
            }
            if let Some(bucket) = self.buckets.next() {
                self.lanes = bucket.occupied();
                self.bucket = Some(bucket);
            } else {
                self.buckets = self.segments.next()?.array.buckets().iter();
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<T: Item> ExactSizeIterator for Iter<'_, T> {}

/// All items of a table, owned. See [`Table::into_iter`](super::Table).
pub struct IntoIter<T: Item> {
    /// Arrays not begun yet.
    arrays: Vec<BucketArray<T>>,
    /// The array in hand and the index of its next bucket.
    current: BucketArray<T>,
    next_bucket: usize,
    drained: Option<Drained<T>>,
}

impl<T: Item> IntoIter<T> {
    pub(super) fn new(arrays: Vec<BucketArray<T>>) -> Self {
        Self { arrays, current: BucketArray::empty(), next_bucket: 0, drained: None }
    }
}

impl<T: Item> Iterator for IntoIter<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        loop {
            if let Some(loose) = self.drained.as_mut().and_then(Iterator::next) {
                return Some(loose.into_item());
            }
            if let Some(bucket) = self.current.buckets_mut().get_mut(self.next_bucket) {
                self.next_bucket += 1;
                self.drained = Some(bucket.drain());
            } else {
                self.current = self.arrays.pop()?;
                self.next_bucket = 0;
            }
        }
    }
}

impl<T: Item> Drop for IntoIter<T> {
    fn drop(&mut self) {
        for item in self.by_ref() {
            drop(item);
        }
    }
}
