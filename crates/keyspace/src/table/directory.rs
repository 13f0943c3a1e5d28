//! Segments by prefix of the hash, once a table is too large for one array.
//!
//! ```text
//! slots     65,536 at most; hash >> (64 - depth) -> index of a segment (u16)
//! segments  array (8 bytes) | len (4) | prefix (2) | depth (1), in no order
//! ```
//!
//! Extendible hashing: a segment of depth `d` is named by `2^(depth - d)` neighbouring slots. Full
//! segments split one at a time (some 1,372 items), sparse neighbours merge. Neither list passes
//! 1 MiB: at depth 16 segments grow instead.
//!
//! Invariants: every slot names a segment whose prefix is the slot's; the lens are the items in the
//! arrays; `at_depth[d]` counts the segments of depth `d`, none of which is deeper than `depth`.

use super::{
    Item,
    bucket::BucketArray,
    segment::{self, Depth, MAX_BUCKETS},
};

/// An array of buckets for the hashes with one prefix.
pub(super) struct Segment<T> {
    /// Its buckets.
    pub(super) array: BucketArray<T>,
    /// Items in them.
    len: u32,
    /// The shared top bits, left-aligned.
    prefix: u16,
    /// How many bits are shared.
    pub(super) depth: Depth,
}

/// All segments of a large table.
pub(super) struct Directory<T> {
    slots: Vec<u16>,
    segments: Vec<Segment<T>>,
    depth: Depth,
    at_depth: [u32; DEPTHS],
    /// The most buckets that any segment has or had.
    widest: usize,
}

impl<T> Segment<T> {
    /// The top bits that its hashes share, left-aligned.
    pub(super) fn prefix(&self) -> u16 {
        self.prefix
    }
}

impl<T: Item> Directory<T> {
    /// A directory of the one array that was the table, with `len` items.
    pub(super) fn new(array: BucketArray<T>, len: usize) -> Self {
        let mut at_depth = [0; DEPTHS];
        at_depth[0] = 1;
        let widest = array.count().max(MAX_BUCKETS);
        Self {
            slots: vec![0],
            segments: vec![Segment { array, len: narrow(len), prefix: 0, depth: Depth::ROOT }],
            depth: Depth::ROOT,
            at_depth,
            widest,
        }
    }

    /// Index of the segment of `hash`.
    #[inline]
    pub(super) fn index(&self, hash: u64) -> usize {
        usize::from(self.slots[(hash >> 1 >> (63 - self.depth.bits())) as usize])
    }

    /// The segment of that index.
    #[inline]
    pub(super) fn segment(&self, index: usize) -> &Segment<T> {
        &self.segments[index]
    }

    /// The segment of that index, mutably.
    #[inline]
    pub(super) fn segment_mut(&mut self, index: usize) -> &mut Segment<T> {
        &mut self.segments[index]
    }

    /// All segments, in no order.
    pub(super) fn segments(&self) -> &[Segment<T>] {
        &self.segments
    }

    /// All segments, mutably. Items may be changed, not taken.
    pub(super) fn segments_mut(&mut self) -> &mut [Segment<T>] {
        &mut self.segments
    }

    /// The most buckets that any segment has (an upper bound).
    pub(super) fn widest(&self) -> usize {
        self.widest
    }

    /// Bytes of the two lists and the arrays.
    pub(super) fn allocated_bytes(&self) -> usize {
        size_of::<Self>()
            + self.slots.capacity() * size_of::<u16>()
            + self.segments.capacity() * size_of::<Segment<T>>()
            + self.segments.iter().map(|segment| segment.array.allocated_bytes()).sum::<usize>()
    }

    /// Counts an item put into segment `index`.
    #[inline]
    pub(super) fn count_in(&mut self, index: usize) {
        self.segments[index].len += 1;
    }

    /// Counts `taken` items out of segment `index`.
    #[inline]
    pub(super) fn count_out(&mut self, index: usize, taken: usize) {
        self.segments[index].len -= narrow(taken);
    }

    /// Sees to it that the segment of `hash` has room for one more.
    #[inline]
    pub(super) fn make_room(&mut self, hash: u64) {
        loop {
            let index = self.index(hash);
            let segment = &self.segments[index];
            if (segment.len as usize) < segment::capacity(segment.array.count()) {
                return;
            }
            self.enlarge(index);
        }
    }

    #[cold]
    #[inline(never)]
    fn enlarge(&mut self, index: usize) {
        let segment = &mut self.segments[index];
        if segment.array.count() < MAX_BUCKETS || segment.depth == Depth::MAX {
            let count = segment::larger(segment.array.count());
            self.widest = self.widest.max(count);
            segment::rebuild(&mut segment.array, segment.depth, count);
        } else {
            self.split(index);
        }
    }

    fn split(&mut self, index: usize) {
        if self.segments[index].depth == self.depth {
            self.slots = self.slots.iter().flat_map(|&slot| [slot, slot]).collect();
            self.depth = self.depth.deeper();
        }
        let segment = &mut self.segments[index];
        let depth = segment.depth;
        let below = depth.deeper();
        let upper_len = count_upper(segment);
        let lower_len = segment.len as usize - upper_len;
        let mut lower = BucketArray::new(segment::roomy(lower_len).min(MAX_BUCKETS));
        let mut upper = BucketArray::new(segment::roomy(upper_len).min(MAX_BUCKETS));
        for at in 0..segment.array.count() {
            if below.opens_window()
                && let Some(ahead) = segment.array.buckets().get(at + PREFETCH_AHEAD)
            {
                ahead.prefetch_all();
            }
            segment.array.buckets_mut()[at].drain_into(|loose| {
                let side = if depth.is_upper(loose.position()) { &mut upper } else { &mut lower };
                let loose = if below.opens_window() {
                    let position = below.position(loose.item().hash());
                    loose.at_position(position)
                } else {
                    loose
                };
                segment::place(side.buckets_mut(), below, loose);
            });
        }
        let prefix = segment.prefix | 1 << (15 - depth.bits());
        *segment = Segment { array: lower, len: narrow(lower_len), prefix: segment.prefix, depth: below };
        let added = self.segments.len();
        self.segments.push(Segment { array: upper, len: narrow(upper_len), prefix, depth: below });
        self.name(added);
        self.at_depth[depth.bits() as usize] -= 1;
        self.at_depth[below.bits() as usize] += 2;
    }

    /// After a removal: merges segment `index` with its neighbour or makes it smaller, if worth it.
    pub(super) fn shrink(&mut self, index: usize) {
        let segment = &self.segments[index];
        if let Some(neighbour) = self.neighbour(index)
            && segment.len + self.segments[neighbour].len <= MERGE_AT
        {
            self.merge(index, neighbour);
        } else if let Some(count) = segment::smaller(segment.len as usize, segment.array.count()) {
            let segment = &mut self.segments[index];
            segment::rebuild(&mut segment.array, segment.depth, count);
        }
    }

    /// The array of the only segment, if there is only one; the directory is to be dropped then.
    pub(super) fn take_single(&mut self) -> Option<BucketArray<T>> {
        if self.segments.len() == 1 { self.segments.pop().map(|segment| segment.array) } else { None }
    }

    /// All arrays.
    pub(super) fn into_arrays(self) -> Vec<BucketArray<T>> {
        self.segments.into_iter().map(|segment| segment.array).collect()
    }

    /// The segment that shares all but the last bit of the prefix, if it is as deep.
    fn neighbour(&self, index: usize) -> Option<usize> {
        let segment = &self.segments[index];
        if segment.depth == Depth::ROOT {
            return None;
        }
        let prefix = segment.prefix ^ 1 << (16 - segment.depth.bits());
        let neighbour = self.index(u64::from(prefix) << 48);
        (self.segments[neighbour].depth == segment.depth).then_some(neighbour)
    }

    fn merge(&mut self, one: usize, other: usize) {
        let depth = self.segments[one].depth;
        let above = depth.shallower();
        let len = self.segments[one].len + self.segments[other].len;
        let mut array = BucketArray::new(segment::roomy(len as usize));
        for index in [one, other] {
            let segment = &mut self.segments[index];
            // The four bits that the window above has in front are the last four of the prefix.
            let front = (segment.prefix >> (16 - depth.bits())) << 12;
            segment::move_all(&mut segment.array, |loose| {
                let loose = if depth.opens_window() {
                    let position = front | loose.position() >> 4;
                    loose.at_position(position)
                } else {
                    loose
                };
                segment::place(array.buckets_mut(), above, loose);
            });
        }
        let prefix = self.segments[one].prefix & self.segments[other].prefix;
        self.segments[one] = Segment { array, len, prefix, depth: above };
        self.name(one);
        self.segments.swap_remove(other);
        if other < self.segments.len() {
            self.name(other);
        }
        self.at_depth[depth.bits() as usize] -= 2;
        self.at_depth[above.bits() as usize] += 1;
        while self.depth != Depth::ROOT && self.at_depth[self.depth.bits() as usize] == 0 {
            self.slots = self.slots.iter().copied().step_by(2).collect();
            self.depth = self.depth.shallower();
        }
        if self.segments.capacity() > 4 * self.segments.len() {
            self.segments.shrink_to(2 * self.segments.len());
        }
    }

    /// Writes `index` into the slots of that segment.
    fn name(&mut self, index: usize) {
        let segment = &self.segments[index];
        let first = usize::from(segment.prefix) >> (16 - self.depth.bits());
        let count = 1 << (self.depth.bits() - segment.depth.bits());
        let name = u16::try_from(index).unwrap_or(u16::MAX);
        debug_assert_eq!(usize::from(name), index, "65,536 segments of depth 16 at most");
        self.slots[first..first + count].fill(name);
    }

    /// Checks the invariants of the directory; those of the buckets are the table's to check.
    pub(super) fn check(&self) {
        assert_eq!(self.slots.len(), 1 << self.depth.bits());
        for (slot, &index) in self.slots.iter().enumerate() {
            let segment = &self.segments[usize::from(index)];
            assert!(segment.depth.bits() <= self.depth.bits());
            let of_slot = (slot as u64) << 1 << (63 - self.depth.bits());
            let mask = !(u64::MAX >> segment.depth.bits());
            assert_eq!(of_slot & mask, u64::from(segment.prefix) << 48, "slot {slot}");
        }
        let mut at_depth = [0; DEPTHS];
        for segment in &self.segments {
            at_depth[segment.depth.bits() as usize] += 1;
            let held: usize = segment.array.buckets().iter().map(|bucket| bucket.occupied().count()).sum();
            assert_eq!(held, segment.len as usize);
            assert!(segment.array.count() <= self.widest);
        }
        assert_eq!(at_depth, self.at_depth);
    }
}

fn count_upper<T: Item>(segment: &Segment<T>) -> usize {
    let buckets = segment.array.buckets().iter();
    buckets.map(|bucket| bucket.occupied().filter(|&lane| segment.depth.is_upper(bucket.position(lane))).count()).sum()
}

/// A segment's count as it is kept.
fn narrow(len: usize) -> u32 {
    debug_assert!(u32::try_from(len).is_ok(), "a segment has at most 65,535 buckets");
    u32::try_from(len).unwrap_or(u32::MAX)
}

/// Two neighbours with no more items than this together become one: well below the 1,372 at which
/// it would split again.
const MERGE_AT: u32 = 500;
/// Depth 0 to 16.
const DEPTHS: usize = 17;
/// Buckets whose items are being loaded while those of the present one are read.
const PREFETCH_AHEAD: usize = 4;

const _: () = assert!(size_of::<Segment<u64>>() == 16);
