//! The rules of one array of buckets: where a hash lives, how items move, when to grow.
//!
//! Hot path: a look-up and an insertion with room left do not allocate.
//!
//! ```text
//! hash        | depth bits: which segment | 16 position bits … |            … | fingerprint byte |
//! stored      window = depth rounded down to 4: the handle keeps hash bits window … window + 15
//! local       position << (depth - window): the part of it below the segment's prefix, left-aligned
//! home bucket local × buckets >> 16: the order of the buckets is the order of the hashes
//! ```
//!
//! The window moves in steps of four bits, so three splits of four need no look at the keys, and
//! at least 13 of the 16 stored bits are below the prefix. An item lives in its home bucket or, if
//! that was full, in the first later one (round the end) that was not; each full bucket on the way
//! counts it in its *passed* byte, and a removal takes the count back, so probes end early again.

use super::{
    Item,
    bucket::{Bucket, BucketArray, LANES, Loose},
};

/// A segment's buckets grow up to this (14 KiB, the largest small size class of jemalloc), then the
/// segment splits in two.
pub(super) const MAX_BUCKETS: usize = 224;

/// How many top bits of the hash all items of a segment share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Depth(u8);

impl Depth {
    /// The whole table is one segment.
    pub(super) const ROOT: Self = Self(0);
    /// Segments this deep grow instead of splitting: 65,536 of them hold 90 million entries first.
    pub(super) const MAX: Self = Self(16);

    /// The number of shared bits.
    #[inline]
    pub(super) fn bits(self) -> u32 {
        u32::from(self.0)
    }

    /// One bit more.
    pub(super) fn deeper(self) -> Self {
        Self(self.0 + 1)
    }

    /// One bit fewer.
    pub(super) fn shallower(self) -> Self {
        Self(self.0 - 1)
    }

    /// The bits of `hash` that a handle keeps at this depth.
    #[inline]
    pub(super) fn position(self, hash: u64) -> u16 {
        ((hash << self.window()) >> 48) as u16
    }

    /// The stored position as a fraction (of 65,536) of the segment.
    #[inline]
    pub(super) fn local(self, position: u16) -> u16 {
        position << (self.0 & WINDOW_STEP_MASK)
    }

    /// The home of `position` among `count` buckets.
    #[inline]
    pub(super) fn home(self, position: u16, count: usize) -> usize {
        (usize::from(self.local(position)) * count) >> 16
    }

    /// The first local value, at or after the end of bucket `home` of `count`, that a stored
    /// position can have; 65,536 is the segment's end.
    pub(super) fn local_after(self, home: usize, count: usize) -> u64 {
        let grain = 1_u64 << (self.0 & WINDOW_STEP_MASK);
        let boundary = ((home as u64 + 1) << 16).div_ceil(count as u64);
        boundary.next_multiple_of(grain)
    }

    /// Whether an item at `position` goes to the upper half when the segment splits.
    #[inline]
    pub(super) fn is_upper(self, position: u16) -> bool {
        self.local(position) >> 15 != 0
    }

    /// Whether stored positions of this depth begin at another bit than those one level above.
    pub(super) fn opens_window(self) -> bool {
        self.0 & WINDOW_STEP_MASK == 0
    }

    #[inline]
    fn window(self) -> u8 {
        self.0 & !WINDOW_STEP_MASK
    }
}

/// Where to look for a hash in a segment.
#[derive(Clone, Copy)]
pub(super) struct Probe {
    /// Position bits as a handle keeps them.
    pub(super) position: u16,
    /// Never 0.
    pub(super) fingerprint: u8,
    /// First bucket to look into.
    pub(super) home: usize,
}

impl Probe {
    /// The way of `hash` into a segment of `count` buckets.
    #[inline]
    pub(super) fn new(hash: u64, depth: Depth, count: usize) -> Self {
        let position = depth.position(hash);
        Self { position, fingerprint: fingerprint(hash), home: depth.home(position, count) }
    }
}

/// A lane of a segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    /// Index of the bucket.
    pub(super) bucket: usize,
    /// Index of the lane in it.
    pub(super) lane: usize,
}

/// Seven bits of the hash, far from the position bits, and a one: never 0.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "one byte is wanted")]
pub(super) fn fingerprint(hash: u64) -> u8 {
    hash as u8 | 1
}

/// Finds `key`: where it is and its item.
#[inline]
pub(super) fn find<'b, T: Item>(buckets: &'b [Bucket<T>], probe: Probe, key: &[u8]) -> Option<(Spot, &'b T)> {
    let mut at = probe.home;
    loop {
        let bucket = buckets.get(at)?;
        if let Some((lane, item)) = bucket.find(probe.fingerprint, probe.position, key) {
            return Some((Spot { bucket: at, lane }, item));
        }
        if !bucket.is_passed() {
            return None;
        }
        at = next(at, buckets.len());
        if at == probe.home {
            return None;
        }
    }
}

/// Puts an item into the first free lane from its home on. There must be one.
#[inline]
pub(super) fn place<T: Item>(buckets: &mut [Bucket<T>], depth: Depth, loose: Loose<T>) -> Spot {
    let mut at = depth.home(loose.position(), buckets.len());
    loop {
        let bucket = &mut buckets[at];
        if let Some(lane) = bucket.vacant() {
            bucket.fill(lane, loose);
            return Spot { bucket: at, lane };
        }
        bucket.pass();
        at = next(at, buckets.len());
    }
}

/// Takes the item at `spot` out and un-counts it where it passed.
pub(super) fn take<T: Item>(buckets: &mut [Bucket<T>], depth: Depth, spot: Spot) -> Loose<T> {
    let loose = buckets[spot.bucket].take(spot.lane);
    let mut at = depth.home(loose.position(), buckets.len());
    while at != spot.bucket {
        buckets[at].unpass();
        at = next(at, buckets.len());
    }
    loose
}

/// Calls `visit` with every item whose home is that of `probe` and whose position is not before
/// its; answers how many buckets were looked at.
pub(super) fn visit_home<T: Item>(
    buckets: &[Bucket<T>],
    depth: Depth,
    probe: Probe,
    mut visit: impl FnMut(&T),
) -> usize {
    let mut at = probe.home;
    let mut looked_at = 0;
    while let Some(bucket) = buckets.get(at) {
        looked_at += 1;
        for lane in bucket.occupied() {
            let position = bucket.position(lane);
            if position >= probe.position && depth.home(position, buckets.len()) == probe.home {
                visit(bucket.item(lane));
            }
        }
        at = next(at, buckets.len());
        if !bucket.is_passed() || at == probe.home {
            break;
        }
    }
    looked_at
}

/// As [`visit_home`], lending the items mutably.
pub(super) fn visit_home_mut<T: Item>(
    buckets: &mut [Bucket<T>],
    depth: Depth,
    probe: Probe,
    mut visit: impl FnMut(&mut T),
) -> usize {
    let count = buckets.len();
    let mut at = probe.home;
    let mut looked_at = 0;
    while let Some(bucket) = buckets.get_mut(at) {
        looked_at += 1;
        for lane in bucket.occupied() {
            let position = bucket.position(lane);
            if position >= probe.position && depth.home(position, count) == probe.home {
                visit(bucket.item_mut(lane));
            }
        }
        at = next(at, count);
        if !bucket.is_passed() || at == probe.home {
            break;
        }
    }
    looked_at
}

/// Moves all items to a new array of `count` buckets. Does not look at what they point at.
pub(super) fn rebuild<T: Item>(array: &mut BucketArray<T>, depth: Depth, count: usize) {
    let mut fresh = BucketArray::new(count);
    let buckets = fresh.buckets_mut();
    move_all(array, |loose| {
        place(buckets, depth, loose);
    });
    *array = fresh;
}

/// Hands out all items of `array`, which is empty afterwards.
pub(super) fn move_all<T: Item>(array: &mut BucketArray<T>, mut to: impl FnMut(Loose<T>)) {
    for bucket in array.buckets_mut() {
        bucket.drain_into(&mut to);
    }
}

/// Whether `len` items of `count` buckets should move to fewer, and to how many.
pub(super) fn smaller(len: usize, count: usize) -> Option<usize> {
    (len * 2 < capacity(count) && (len == 0 || count > 1)).then(|| roomy(len)).filter(|&fewer| fewer < count)
}

/// The most items that `count` buckets take before they grow: seven eighths of the lanes.
#[inline]
pub(super) fn capacity(count: usize) -> usize {
    if count == 1 { LANES } else { count * LANES * 7 / 8 }
}

/// The fewest buckets, of the sizes there are, that hold `len` items and an eighth more.
pub(super) fn roomy(len: usize) -> usize {
    if len == 0 {
        return 0;
    }
    let wanted = len + len / 8;
    let mut count = 1;
    while capacity(count) < wanted {
        count = larger(count);
    }
    count
}

/// The next of the sizes there are, four per doubling (jemalloc's classes, times 64 bytes).
#[inline]
pub(super) fn larger(count: usize) -> usize {
    if count < 8 { count + 1 } else { count + (1 << (count.ilog2() - 2)) }
}

#[inline]
fn next(at: usize, count: usize) -> usize {
    if at + 1 == count { 0 } else { at + 1 }
}

/// The window of stored bits moves by four.
const WINDOW_STEP_MASK: u8 = 3;
