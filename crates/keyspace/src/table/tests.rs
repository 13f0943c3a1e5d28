#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::{
    cell::Cell,
    collections::{HashMap, HashSet},
};

use fastrand::Rng;
use proptest::prelude::*;

use super::*;

/// A key with a hash of our choice; counts how many are alive.
#[repr(transparent)]
struct Numbered(u64);

#[repr(align(16))]
struct Body {
    hash: u64,
    key: [u8; 4],
    version: u32,
}

thread_local! {
    static ALIVE: Cell<isize> = const { Cell::new(0) };
}

impl Numbered {
    fn new(shape: Shape, number: u32, version: u32) -> Self {
        ALIVE.set(ALIVE.get() + 1);
        let body = Body { hash: shape.hash(number), key: number.to_le_bytes(), version };
        // Two tag bits, to see that they are kept.
        Self(Box::into_raw(Box::new(body)).expose_provenance() as u64 | 6)
    }

    fn body(&self) -> &Body {
        assert_eq!(self.0 & 0xf, 6, "tag bits are kept");
        // SAFETY: the word came from a box, plus tags below and the table's bits above.
        unsafe { &*std::ptr::with_exposed_provenance(self.address()) }
    }

    fn number(&self) -> u32 {
        u32::from_le_bytes(self.body().key)
    }

    fn address(&self) -> usize {
        (self.0 & 0xffff_ffff_fff0) as usize
    }
}

impl Drop for Numbered {
    fn drop(&mut self) {
        ALIVE.set(ALIVE.get() - 1);
        // SAFETY: the word came from a box, owned by this.
        drop(unsafe { Box::from_raw(std::ptr::with_exposed_provenance_mut::<Body>(self.address())) });
    }
}

// SAFETY: a transparent word whose methods mask what is not the pointer.
unsafe impl Item for Numbered {
    fn into_raw(self) -> u64 {
        std::mem::ManuallyDrop::new(self).0
    }

    unsafe fn from_raw(word: u64) -> Self {
        Self(word)
    }

    fn key(&self) -> &[u8] {
        &self.body().key
    }

    fn hash(&self) -> u64 {
        self.body().hash
    }
}

/// Kinds of hash functions: a good one, and bad ones that push the table to its corners.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Good,
    /// The first so many bits are the same for all: deep segments with few items.
    SharedPrefix(u32),
    /// Few different hashes: long runs.
    Few(u64),
    /// Full positions and no fingerprints.
    NoLowBits,
}

impl Shape {
    fn hash(self, number: u32) -> u64 {
        let good = (u64::from(number) + 1)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29)
            .wrapping_mul(0xd6e8_feb8_6659_fd93);
        let good = good ^ good >> 32;
        match self {
            Self::Good => good,
            Self::SharedPrefix(bits) => good >> bits | 0xa5a5_a5a5_a5a5_a5a5 << (64 - bits),
            Self::Few(count) => (good % count).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            Self::NoLowBits => good & !0xffff_ffff,
        }
    }
}

struct Pair {
    shape: Shape,
    table: Table<Numbered>,
    model: HashMap<u32, u32>,
}

impl Pair {
    fn new(shape: Shape) -> Self {
        Self { shape, table: Table::new(), model: HashMap::new() }
    }

    fn set(&mut self, number: u32, version: u32) {
        let was = self.model.insert(number, version);
        let fresh = Numbered::new(self.shape, number, version);
        match self.table.entry(self.shape.hash(number), &number.to_le_bytes()) {
            Entry::Occupied(mut place) => {
                assert_eq!(Some(place.get().body().version), was);
                if version.is_multiple_of(2) {
                    assert_eq!(place.replace(fresh).number(), number);
                } else {
                    place.update(|item| *item = fresh);
                }
            }
            Entry::Vacant(vacant) => {
                assert_eq!(was, None);
                assert_eq!(vacant.insert(fresh).into_ref().number(), number);
            }
        }
    }

    fn remove(&mut self, number: u32) {
        let removed = self.table.remove(self.shape.hash(number), &number.to_le_bytes());
        assert_eq!(removed.map(|item| item.body().version), self.model.remove(&number));
    }

    fn find(&self, number: u32) {
        self.table.prefetch_bucket(self.shape.hash(number));
        self.table.prefetch_items(self.shape.hash(number));
        let found = self.table.find(self.shape.hash(number), &number.to_le_bytes());
        assert_eq!(found.map(|item| item.body().version), self.model.get(&number).copied());
    }

    fn check(&self) {
        self.table.check();
        assert_eq!(self.table.len(), self.model.len());
        let seen: HashMap<u32, u32> = self.table.iter().map(|item| (item.number(), item.body().version)).collect();
        assert_eq!(seen, self.model);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Set(u32),
    SetRange(u32, u32),
    Remove(u32),
    RemoveRange(u32, u32),
    Find(u32),
    KeepMultiples(u32),
    Clear,
}

fn step(numbers: u32) -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..numbers).prop_map(Step::Set),
        3 => (0..numbers, 0..numbers / 2).prop_map(|(from, count)| Step::SetRange(from, count)),
        8 => (0..numbers).prop_map(Step::Remove),
        3 => (0..numbers, 0..numbers / 2).prop_map(|(from, count)| Step::RemoveRange(from, count)),
        4 => (0..numbers).prop_map(Step::Find),
        1 => (2_u32..5).prop_map(Step::KeepMultiples),
        1 => Just(Step::Clear),
    ]
}

fn shape() -> impl Strategy<Value = Shape> {
    prop_oneof![
        4 => Just(Shape::Good),
        2 => (1_u32..20).prop_map(Shape::SharedPrefix),
        1 => (1_u64..50).prop_map(Shape::Few),
        1 => Just(Shape::NoLowBits),
    ]
}

fn run(shape: Shape, steps: &[Step]) {
    let alive = ALIVE.get();
    let mut pair = Pair::new(shape);
    for (version, step) in (0_u32..).zip(steps) {
        match *step {
            Step::Set(number) => pair.set(number, version),
            Step::SetRange(from, count) => {
                (from..from + count).for_each(|number| pair.set(number, version));
            }
            Step::Remove(number) => pair.remove(number),
            Step::RemoveRange(from, count) => {
                (from..from + count).for_each(|number| pair.remove(number));
            }
            Step::Find(number) => pair.find(number),
            Step::KeepMultiples(of) => {
                pair.table.retain(|item| item.number().is_multiple_of(of));
                pair.model.retain(|number, _| number.is_multiple_of(of));
            }
            Step::Clear => {
                pair.table.clear();
                pair.model.clear();
            }
        }
        pair.check();
        assert_eq!(ALIVE.get() - alive, pair.model.len().cast_signed(), "nothing leaks, nothing dies twice");
    }
    let owned: HashSet<u32> = pair.table.into_iter().map(|item| item.number()).collect();
    assert_eq!(owned, pair.model.into_keys().collect());
    assert_eq!(ALIVE.get(), alive);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn small_tables_are_like_the_model(shape in shape(), steps in prop::collection::vec(step(40), 1..120)) {
        run(shape, &steps);
    }

    #[test]
    fn large_tables_are_like_the_model(shape in shape(), steps in prop::collection::vec(step(9_000), 1..25)) {
        run(shape, &steps);
    }

    #[test]
    fn scan_returns_what_stays(
        shape in shape(),
        budget in 1_usize..300,
        seed in any::<u64>(),
        churn in 0_u32..1_500,
    ) {
        scan_under_change(shape, budget, seed, churn);
    }
}

/// Scans while items come and go in waves; items below 700 stay all the time.
fn scan_under_change(shape: Shape, budget: usize, seed: u64, churn: u32) {
    let mut rng = Rng::with_seed(seed);
    let mut pair = Pair::new(shape);
    let total = 700 + rng.u32(..6_000);
    (0..total).for_each(|number| pair.set(number, 0));
    let mut seen = HashSet::new();
    let mut cursor = 0;
    let mut growing = rng.bool();
    for call in 0.. {
        assert!(call < 100_000, "a scan ends");
        cursor = pair.table.scan(cursor, budget, |item| {
            seen.insert(item.number());
        });
        assert!(cursor < 1 << CURSOR_BITS);
        if cursor == 0 {
            break;
        }
        if rng.u8(..10) == 0 {
            growing = !growing;
        }
        for _ in 0..churn {
            let number = 700 + rng.u32(..8_000);
            if growing {
                pair.set(number, 1);
            } else {
                pair.remove(number);
            }
        }
    }
    pair.check();
    for number in 0..700 {
        assert!(seen.contains(&number), "{number} was there all the time");
    }
}

#[test]
fn a_quiet_scan_returns_everything_once() {
    for total in [0, 1, 7, 8, 100, 1_372, 1_373, 20_000] {
        let mut pair = Pair::new(Shape::Good);
        (0..total).for_each(|number| pair.set(number, 0));
        let mut seen = Vec::new();
        let mut cursor = 0;
        loop {
            let before = seen.len();
            cursor = pair.table.scan(cursor, 10, |item| seen.push(item.number()));
            assert!(seen.len() - before < 60, "a step is bounded");
            if cursor == 0 {
                break;
            }
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..total).collect::<Vec<_>>());
    }
}

#[test]
fn any_cursor_ends() {
    let mut pair = Pair::new(Shape::Good);
    (0..5_000).for_each(|number| pair.set(number, 0));
    for cursor in [1, 77, 1 << 31, (1 << 32) - 1, 1 << 32, u64::MAX] {
        let mut cursor = cursor;
        for _ in 0..10_000 {
            cursor = pair.table.scan(cursor, 1, |_| {});
            if cursor == 0 {
                break;
            }
        }
        assert_eq!(cursor, 0);
    }
}

#[test]
fn random_items_are_equally_likely() {
    for total in [1_u32, 5, 60, 2_500] {
        let mut pair = Pair::new(Shape::Good);
        (0..total * 3).for_each(|number| pair.set(number, 0));
        // Leave holes, and segments of unequal widths.
        (total..total * 3).for_each(|number| pair.remove(number));
        let mut rng = Rng::with_seed(7);
        let mut counts = vec![0_f64; total as usize];
        let rounds = f64::from(total) * 200.0;
        for _ in 0..total * 200 {
            counts[pair.table.random(&mut rng).unwrap().number() as usize] += 1.0;
        }
        let expected = rounds / f64::from(total);
        let chi_squared: f64 = counts.iter().map(|count| (count - expected).powi(2) / expected).sum();
        let freedom = f64::from(total - 1);
        assert!(chi_squared < freedom + 6.0 * (2.0 * freedom).sqrt() + 1.0, "{total}: {chi_squared}");
    }
    assert!(Table::<Numbered>::new().random(&mut Rng::with_seed(1)).is_none());
}

#[test]
fn samples_are_distinct_enough_and_as_many_as_asked() {
    let mut pair = Pair::new(Shape::Good);
    (0..3_000).for_each(|number| pair.set(number, 0));
    let mut rng = Rng::with_seed(3);
    for count in [0, 1, 5, 64] {
        let mut seen = HashSet::new();
        assert_eq!(
            pair.table.sample(&mut rng, count, |item| {
                seen.insert(item.number());
            }),
            count
        );
        assert_eq!(seen.len(), count);
    }
}

#[test]
fn the_table_costs_less_than_thirteen_and_a_half_bytes_per_item() {
    let mut pair = Pair::new(Shape::Good);
    for number in 0..60_000_u32 {
        pair.set(number, 0);
        let len = f64::from(number + 1);
        if number >= 60 {
            #[expect(clippy::cast_precision_loss, reason = "small numbers")]
            let per_item = (pair.table.memory_bytes() + size_of::<Table<Numbered>>()) as f64 / len;
            assert!(per_item <= 13.5, "{per_item:.2} bytes per item at {len}");
        }
    }
}

#[test]
fn a_table_emptied_item_by_item_gives_its_memory_back() {
    let mut pair = Pair::new(Shape::Good);
    (0..30_000).for_each(|number| pair.set(number, 0));
    for number in 0..30_000 {
        pair.remove(number);
        if number % 1_000 == 0 {
            pair.check();
            let most = pair.table.len() * 40 + 128;
            assert!(pair.table.memory_bytes() <= most, "{} for {}", pair.table.memory_bytes(), pair.table.len());
        }
    }
    assert_eq!(pair.table.memory_bytes(), 0);
}

#[test]
fn mutable_walk_meets_everything() {
    let mut pair = Pair::new(Shape::Good);
    (0..4_000).for_each(|number| pair.set(number, 0));
    let mut met = HashSet::new();
    pair.table.for_each_mut(|item| {
        met.insert(item.number());
    });
    assert_eq!(met.len(), 4_000);
}
