//! Hot path: where the numbers in the keys come from (`-r`, `--keys`, `--sequential`).
//!
//! Uniform numbers are redis-benchmark's. The others answer questions it cannot ask: `seq`
//! touches every key exactly once per round, `zipf` and `gauss` have hot keys as real traffic
//! does, `latest` reads what was written last, `hot` sends a share of the requests to a share
//! of the keys, `unique` is a random order without repeats.

use std::{
    f64::consts::TAU,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::random::AdditiveRandom;

/// A distribution over a key space, as written on the command line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Distribution {
    /// Each key equally likely.
    Uniform,
    /// 0, 1, 2 … shared by all threads, then from the start again.
    Sequential,
    /// As sequential, but each client has a range of its own and goes through it in order.
    PerClient,
    /// Every key once, in a shuffled order shared by all threads, then the same order again.
    Unique,
    /// Rank `k` with a weight of `1 / k^exponent`; ranks are scattered over the key space.
    Zipf {
        /// How steep: above 0; 1 is the classic law.
        exponent: f64,
    },
    /// Normal around the middle of the key space.
    Gauss {
        /// Standard deviation as a share of the key space.
        deviation: f64,
    },
    /// Zipf (exponent 1) counted back from the newest number that was handed out.
    Latest,
    /// A share of the requests on a share of the keys, the rest on the others.
    Hot {
        /// Share of the requests, 0 to 1.
        requests: f64,
        /// Share of the keys, 0 to 1.
        keys: f64,
    },
}

impl Distribution {
    /// Whether no key comes twice before all have come.
    pub(crate) fn is_without_repeats(self) -> bool {
        matches!(self, Distribution::Sequential | Distribution::Unique | Distribution::PerClient)
    }
}

impl fmt::Display for Distribution {
    /// As it is typed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Distribution::Uniform => f.write_str("uniform"),
            Distribution::Sequential => f.write_str("seq"),
            Distribution::PerClient => f.write_str("seq-per-client"),
            Distribution::Unique => f.write_str("unique"),
            Distribution::Zipf { exponent } => write!(f, "zipf:{exponent}"),
            Distribution::Gauss { deviation } => write!(f, "gauss:{deviation}"),
            Distribution::Latest => f.write_str("latest"),
            Distribution::Hot { requests, keys } => write!(f, "hot:{}%:{}%", requests * 100.0, keys * 100.0),
        }
    }
}

/// Reads `uniform`, `seq`, `seq-per-client`, `unique`, `zipf:S`, `gauss:SD`, `latest` or `hot:P%:K%`.
pub(crate) fn parse_distribution(text: &str) -> Option<Distribution> {
    let (name, argument) = text.split_once(':').unwrap_or((text, ""));
    let number = |text: &str, default: f64| -> Option<f64> {
        let value = if text.is_empty() { default } else { text.parse().ok()? };
        (value > 0.0 && f64::is_finite(value)).then_some(value)
    };
    match name {
        "uniform" => Some(Distribution::Uniform),
        "seq" | "sequential" => Some(Distribution::Sequential),
        "seq-per-client" => Some(Distribution::PerClient),
        "unique" | "shuffle" => Some(Distribution::Unique),
        "zipf" => Some(Distribution::Zipf { exponent: number(argument, 0.99)? }),
        "gauss" => Some(Distribution::Gauss { deviation: number(argument, 0.1)? }),
        "latest" => Some(Distribution::Latest),
        "hot" => {
            let (requests, keys) = argument.split_once(':').unwrap_or(("90%", "10%"));
            let share = |text: &str| -> Option<f64> {
                let value: f64 = text.strip_suffix('%').unwrap_or(text).parse().ok()?;
                (0.0..=100.0).contains(&value).then_some(value / 100.0)
            };
            Some(Distribution::Hot { requests: share(requests)?, keys: share(keys)? })
        }
        _ => None,
    }
}

/// Generator of key numbers; one per thread, clones share the counter of sequential kinds.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    low: u64,
    span: u64,
    random: AdditiveRandom,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Uniform,
    Shared { counter: Arc<AtomicU64>, part: Part, shuffle: Option<Shuffle> },
    PerClient { next: u64 },
    Zipf(Zipf),
    Gauss { deviation: f64 },
    Latest { zipf: Zipf, newest: u64 },
    Hot { requests: f64, hot_keys: u64 },
}

/// The part of a key space that one of several generators goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    /// Offset of its first number.
    pub(crate) first: u64,
    /// Its numbers.
    pub(crate) count: u64,
}

impl Keys {
    /// Numbers in `low..low + span` with the given distribution. A span of 0 always yields `low`.
    pub(crate) fn new(distribution: Distribution, low: u64, span: u64, seed: u32) -> Keys {
        let part = Part { first: 0, count: span.max(1) };
        let shared = |shuffle| Kind::Shared { counter: Arc::new(AtomicU64::new(0)), part, shuffle };
        let kind = match distribution {
            Distribution::Uniform => Kind::Uniform,
            Distribution::Sequential => shared(None),
            Distribution::Unique => shared(Some(Shuffle::new(span, seed))),
            Distribution::PerClient => Kind::PerClient { next: 0 },
            Distribution::Zipf { exponent } => Kind::Zipf(Zipf::new(span.max(1), exponent)),
            Distribution::Gauss { deviation } => Kind::Gauss { deviation },
            Distribution::Latest => Kind::Latest { zipf: Zipf::new(span.max(1), 1.0), newest: 0 },
            Distribution::Hot { requests, keys } => {
                Kind::Hot { requests, hot_keys: scaled(span, keys).clamp(1, span.max(1)) }
            }
        };
        Keys { low, span, random: AdditiveRandom::new(seed), kind }
    }

    /// The same distribution for another thread: shared counters stay shared, the random
    /// numbers differ.
    pub(crate) fn for_thread(&self, seed: u32) -> Keys {
        let mut keys = self.clone();
        keys.random = AdditiveRandom::new(seed);
        keys
    }

    /// Size of the key space.
    pub(crate) fn span(&self) -> u64 {
        self.span
    }

    /// Lets the kinds without repeats go through a part of the key space only; the others are as before.
    pub(crate) fn restrict(&mut self, to: Part) {
        if let Kind::Shared { part, .. } = &mut self.kind {
            *part = Part { count: to.count.max(1), ..to };
        }
    }

    /// The next numbers are those of a client that stands at `next`; [`Keys::place_of_client`] tells where it stands
    /// then. Only `seq-per-client` knows clients.
    #[inline]
    pub(crate) fn enter_client(&mut self, place: u64) {
        if let Kind::PerClient { next } = &mut self.kind {
            *next = place;
        }
    }

    /// Where the client stands whose numbers were taken last.
    #[inline]
    pub(crate) fn place_of_client(&self) -> u64 {
        match self.kind {
            Kind::PerClient { next } => next,
            _ => 0,
        }
    }

    /// The next key number.
    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        let span = self.span;
        if span == 0 {
            return self.low;
        }
        let offset = match &mut self.kind {
            Kind::Uniform => self.random.below(span),
            Kind::Shared { counter, part, shuffle } => {
                // Relaxed: only that no number comes twice matters, no data hangs on it.
                let turn = counter.fetch_add(1, Ordering::Relaxed) % part.count;
                let number = (part.first + turn) % span;
                match shuffle {
                    Some(shuffle) => shuffle.at(number),
                    None => number,
                }
            }
            Kind::PerClient { next } => {
                let number = *next % span;
                *next += 1;
                number
            }
            Kind::Zipf(zipf) => scatter(zipf.rank(&mut self.random), span),
            Kind::Gauss { deviation } => gauss(&mut self.random, span, *deviation),
            Kind::Latest { zipf, newest } => {
                *newest += 1;
                let back = zipf.rank(&mut self.random);
                (*newest + span - back) % span
            }
            Kind::Hot { requests, hot_keys } => {
                if self.random.unit() < *requests || *hot_keys >= span {
                    self.random.below(*hot_keys)
                } else {
                    *hot_keys + self.random.below(span - *hot_keys)
                }
            }
        };
        self.low + offset
    }
}

/// Zipf by rejection inversion (Hörmann and Derflinger 1996): constant time, no table.
#[derive(Debug, Clone, Copy)]
struct Zipf {
    exponent: f64,
    integral_low: f64,
    integral_high: f64,
    shortcut: f64,
    count: u64,
}

impl Zipf {
    fn new(count: u64, exponent: f64) -> Zipf {
        let mut zipf = Zipf { exponent, integral_low: 0.0, integral_high: 0.0, shortcut: 0.0, count };
        zipf.integral_low = zipf.integral(1.5) - 1.0;
        zipf.integral_high = zipf.integral(as_float(count) + 0.5);
        zipf.shortcut = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    /// A rank in `0..count`; 0 is the most frequent.
    fn rank(&self, random: &mut AdditiveRandom) -> u64 {
        loop {
            let u = self.integral_high + random.unit() * (self.integral_low - self.integral_high);
            let x = self.inverse(u);
            let rank = x.round().clamp(1.0, as_float(self.count));
            if rank - x <= self.shortcut || u >= self.integral(rank + 0.5) - self.density(rank) {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "clamped to 1..=count just above"
                )]
                return rank as u64 - 1;
            }
        }
    }

    fn density(&self, x: f64) -> f64 {
        (-self.exponent * x.ln()).exp()
    }

    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        let scaled = (1.0 - self.exponent) * log;
        log * if scaled.abs() > 1e-8 { scaled.exp_m1() / scaled } else { 1.0 + scaled / 2.0 }
    }

    fn inverse(&self, y: f64) -> f64 {
        let scaled = (y * (1.0 - self.exponent)).max(-1.0);
        let factor = if scaled.abs() > 1e-8 { scaled.ln_1p() / scaled } else { 1.0 - scaled / 2.0 };
        (y * factor).exp()
    }
}

/// A permutation of `0..span` computed, not stored: a four-round Feistel network over the next
/// power of four, walked until it lands inside (fewer than four steps on average).
#[derive(Debug, Clone, Copy)]
struct Shuffle {
    span: u64,
    half_bits: u32,
    seed: u64,
}

impl Shuffle {
    fn new(span: u64, seed: u32) -> Shuffle {
        let bits = u64::BITS - span.saturating_sub(1).leading_zeros();
        Shuffle { span, half_bits: bits.div_ceil(2).max(1), seed: u64::from(seed) }
    }

    fn at(&self, index: u64) -> u64 {
        let mask = (1_u64 << self.half_bits) - 1;
        let mut value = index;
        loop {
            let (mut left, mut right) = (value >> self.half_bits, value & mask);
            for round in 0..4 {
                let mixed = mix(right ^ (self.seed << 8 | round)) & mask;
                (left, right) = (right, left ^ mixed);
            }
            value = left << self.half_bits | right;
            if value < self.span {
                return value;
            }
        }
    }
}

/// Spreads neighbouring ranks over the key space, so that hot keys are not all in one range.
fn scatter(rank: u64, span: u64) -> u64 {
    mix(rank) % span
}

/// The finalizer of SplitMix64: every input bit reaches every output bit.
pub(crate) fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn gauss(random: &mut AdditiveRandom, span: u64, deviation: f64) -> u64 {
    loop {
        let radius = (-2.0 * (1.0 - random.unit()).ln()).sqrt();
        let normal = radius * (TAU * random.unit()).cos();
        let position = 0.5 + normal * deviation;
        if (0.0..1.0).contains(&position) {
            return scaled(span, position).min(span - 1);
        }
    }
}

fn scaled(span: u64, share: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "share is 0..=1")]
    let product = (as_float(span) * share) as u64;
    product
}

#[expect(clippy::cast_precision_loss, reason = "key spaces beyond 2^53 lose nothing that shows")]
fn as_float(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::cast_precision_loss)]
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn sequences_have_no_repeats() {
        for distribution in [Distribution::Sequential, Distribution::Unique] {
            let mut one = Keys::new(distribution, 5, 1_000, 3);
            let mut two = one.for_thread(4);
            let numbers: HashSet<u64> = (0..500).flat_map(|_| [one.next(), two.next()]).collect();
            assert_eq!(numbers.len(), 1_000);
            assert!(numbers.iter().all(|number| (5..1_005).contains(number)));
        }
    }

    #[test]
    fn parts_do_not_meet() {
        for distribution in [Distribution::Sequential, Distribution::Unique] {
            let whole = Keys::new(distribution, 0, 100, 3);
            let mut numbers = HashSet::new();
            for (first, count) in [(0, 30), (30, 50), (80, 20)] {
                let mut keys = Keys::new(distribution, 0, 100, 3);
                keys.restrict(Part { first, count });
                numbers.extend((0..count).map(|_| keys.next()));
            }
            assert_eq!(numbers.len(), 100, "{whole:?}");
        }
    }

    #[test]
    fn clients_have_places_of_their_own() {
        let mut keys = Keys::new(Distribution::PerClient, 5, 100, 3);
        keys.enter_client(10);
        assert_eq!([keys.next(), keys.next()], [15, 16]);
        let place = keys.place_of_client();
        keys.enter_client(99);
        assert_eq!([keys.next(), keys.next()], [104, 5]);
        keys.enter_client(place);
        assert_eq!(keys.next(), 17);
    }

    #[test]
    fn zipf_follows_its_law() {
        let zipf = Zipf::new(1_000, 1.0);
        let mut random = AdditiveRandom::new(11);
        let mut counts = vec![0_u32; 1_000];
        for _ in 0..200_000 {
            counts[usize::try_from(zipf.rank(&mut random)).unwrap()] += 1;
        }
        let harmonic: f64 = (1..=1_000).map(|k| 1.0 / f64::from(k)).sum();
        for rank in [0_usize, 1, 9, 99] {
            let expected = 200_000.0 / harmonic / (rank as f64 + 1.0);
            let seen = f64::from(counts[rank]);
            assert!((seen - expected).abs() < 5.0 * expected.sqrt(), "{rank}: {seen} {expected}");
        }
    }

    #[test]
    fn hot_share_is_kept() {
        let mut keys = Keys::new(Distribution::Hot { requests: 0.9, keys: 0.1 }, 0, 100, 2);
        let hot = (0..10_000).filter(|_| keys.next() < 10).count();
        assert!((8_800..9_200).contains(&hot), "{hot}");
    }

    #[test]
    fn all_stay_inside() {
        for text in ["uniform", "seq", "seq-per-client", "unique", "zipf:1.2", "gauss:0.3", "latest", "hot:80%:20%"] {
            let mut keys = Keys::new(parse_distribution(text).unwrap(), 10, 7, 9);
            assert!((0..500).all(|_| (10..17).contains(&keys.next())), "{text}");
        }
        for text in ["zipf:x", "zipf:-1", "hot:200%:1%", "pareto"] {
            assert_eq!(parse_distribution(text), None);
        }
    }
}
