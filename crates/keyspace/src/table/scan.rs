//! Partial walks: SCAN's cursor, random items, samples.

use std::{collections::HashSet, ptr};

use fastrand::Rng;

use super::{
    Item, Table,
    bucket::{BucketArray, LANES},
    segment::{self, Depth, Probe},
};
use crate::tagged::Choice;

/// Cursors of [`Table::scan`] are below 2 to this.
pub const CURSOR_BITS: u32 = 32;

impl<T: Item> Table<T> {
    /// Calls `visit` with items from `cursor` on, at least `budget` of them if there are so many,
    /// and answers the cursor to go on with, 0 when all were visited. Begin with 0.
    ///
    /// The cursor is the first 32 bits of a hash, and each call covers a range of hashes, so an item
    /// that is there from the first call to the last is visited at least once, however the table
    /// changes between calls. It may be visited twice. The buckets looked at in one call are bounded
    /// by some ten times `budget`.
    pub fn scan(&self, cursor: u64, budget: usize, mut visit: impl FnMut(&T)) -> u64 {
        let mut at = cursor;
        let mut visited = 0;
        let mut looked_at = 0;
        while at < END {
            let hash = at << CURSOR_BITS;
            let (array, depth) = self.locate(hash);
            let count = array.count();
            let mut local_after = 1 << 16;
            if count == 0 {
                looked_at += 1;
            } else {
                let probe = Probe::new(hash, depth, count);
                looked_at += segment::visit_home(array.buckets(), depth, probe, |item| {
                    visited += 1;
                    visit(item);
                });
                local_after = depth.local_after(probe.home, count);
            }
            // Bits depth … depth + 15 of the hash are bits 16 - depth … of the cursor.
            let below_prefix = CURSOR_BITS - depth.bits();
            at = (at >> below_prefix << below_prefix) + (local_after << (below_prefix - 16));
            if visited >= budget.max(1) || looked_at / 10 >= budget.max(1) {
                break;
            }
        }
        if at < END { at } else { 0 }
    }

    /// As [`scan`](Self::scan), lending the items to change in place: neither what identifies them nor their address
    /// may change. Ends early, with the bucket, when `visit` answers false. Asks for the memory of the items ahead.
    pub fn scan_mut(&mut self, cursor: u64, budget: usize, mut visit: impl FnMut(&mut T) -> bool) -> u64 {
        let mut at = cursor;
        let mut visited = 0;
        let mut looked_at = 0;
        let mut is_enough = false;
        while at < END {
            let hash = at << CURSOR_BITS;
            let (array, depth) = match self.root.get_mut() {
                Choice::Thin(array) => (array, Depth::ROOT),
                Choice::Boxed(directory) => {
                    let index = directory.index(hash);
                    let segment = directory.segment_mut(index);
                    (&mut segment.array, segment.depth)
                }
                Choice::Third(never) => never.update(|never| match *never {}),
            };
            let count = array.count();
            let mut local_after = 1 << 16;
            if count == 0 {
                looked_at += 1;
            } else {
                let probe = Probe::new(hash, depth, count);
                if let Some(ahead) = array.buckets().get(probe.home + SCAN_AHEAD) {
                    ahead.prefetch_all();
                }
                looked_at += segment::visit_home_mut(array.buckets_mut(), depth, probe, |item| {
                    visited += 1;
                    is_enough |= !visit(item);
                });
                local_after = depth.local_after(probe.home, count);
            }
            let below_prefix = CURSOR_BITS - depth.bits();
            at = (at >> below_prefix << below_prefix) + (local_after << (below_prefix - 16));
            if is_enough || visited >= budget.max(1) || looked_at / 10 >= budget.max(1) {
                break;
            }
        }
        if at < END { at } else { 0 }
    }

    /// An item, each with the same chance.
    #[must_use]
    pub fn random(&self, rng: &mut Rng) -> Option<&T> {
        if self.is_empty() {
            return None;
        }
        for _ in 0..RANDOM_TRIES {
            let (array, bucket) = self.random_bucket(rng);
            let lane = rng.usize(..LANES);
            if let Some(bucket) = array.buckets().get(bucket)
                && bucket.is_occupied(lane)
            {
                return Some(bucket.item(lane));
            }
        }
        // A table so sparse shrinks, so this is as good as never; still, the answer must be right.
        self.iter().nth(rng.usize(..self.len()))
    }

    /// Takes out a random item, each with the same chance.
    pub fn pop_random(&mut self, rng: &mut Rng) -> Option<T> {
        let item = self.random(rng)?;
        let hash = item.hash();
        let (at, _) = self.position(hash, item.key())?;
        Some(self.remove_at(at.segment, at.spot))
    }

    /// Calls `visit` with `count` different items, or all if there are fewer; every choice of them
    /// has the same chance. Answers how many.
    pub fn random_distinct<'t>(&'t self, rng: &mut Rng, count: usize, mut visit: impl FnMut(&'t T)) -> usize {
        let wanted = count.min(self.len());
        if wanted.saturating_mul(3) > self.len() {
            // Each in turn is taken with the chance that the wanted have among those left.
            let mut missing = wanted;
            for (left, item) in (1..=self.len()).rev().zip(self.iter()) {
                if rng.usize(..left) < missing {
                    missing -= 1;
                    visit(item);
                }
            }
            return wanted;
        }
        let mut seen = HashSet::with_capacity(wanted);
        while seen.len() < wanted {
            match self.random(rng) {
                Some(item) if seen.insert(ptr::from_ref(item).addr()) => visit(item),
                Some(_) => {}
                None => break,
            }
        }
        seen.len()
    }

    /// [`memory_bytes`](Table::memory_bytes) and the items' own, as `item_bytes` says of `samples`
    /// items (of all, if there are no more).
    pub fn memory_bytes_with(&self, samples: usize, item_bytes: impl FnMut(&T) -> usize) -> usize {
        let samples = samples.min(self.len());
        let sampled: usize = self.iter().take(samples).map(item_bytes).sum();
        let items = sampled.checked_div(samples).unwrap_or(0).saturating_mul(self.len());
        self.memory_bytes() + if samples == self.len() { sampled } else { items }
    }

    /// Calls `visit` with up to `count` items that lie together at a random place: cheap, and fair
    /// only over many calls. For eviction and expiry. Answers how many were visited.
    pub fn sample(&self, rng: &mut Rng, count: usize, mut visit: impl FnMut(&T)) -> usize {
        let wanted = count.min(self.len());
        let mut visited = 0;
        let mut buckets_left = wanted.saturating_mul(10);
        while visited < wanted && buckets_left > 0 {
            let (array, start) = self.random_bucket(rng);
            let (before, from) = array.buckets().split_at(start.min(array.count()));
            let here = visited;
            for bucket in from.iter().chain(before) {
                buckets_left = buckets_left.saturating_sub(1);
                for lane in bucket.occupied().take(wanted - visited) {
                    visited += 1;
                    visit(bucket.item(lane));
                }
                if visited == wanted || buckets_left == 0 {
                    break;
                }
            }
            if here == visited {
                buckets_left = buckets_left.saturating_sub(1);
            }
        }
        visited
    }

    /// An array and the index of one of its buckets, which may be past its end: every bucket of the
    /// table has the same chance.
    fn random_bucket(&self, rng: &mut Rng) -> (&BucketArray<T>, usize) {
        match self.root.get() {
            Choice::Thin(array) => (array, rng.usize(..array.count().max(1))),
            Choice::Boxed(directory) => {
                let segment = &directory.segments()[rng.usize(..directory.segments().len())];
                (&segment.array, rng.usize(..directory.widest()))
            }
            Choice::Third(never) => match *never {},
        }
    }
}

/// Buckets between the one whose items are visited and the one whose items are asked for.
const SCAN_AHEAD: usize = 2;
/// One past the last cursor.
const END: u64 = 1 << CURSOR_BITS;
/// After so many empty lanes, an item is chosen by walking.
const RANDOM_TRIES: usize = 1_000;
