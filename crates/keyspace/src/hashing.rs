//! The seeded 64-bit hash of keys, fields and members.
//!
//! Hot path: no allocation, no lock; one load and one predicted branch find the seed.
//!
//! A folded multiply (64 × 64 → 128 bits, halves xored) per 16 bytes, as wyhash, rapidhash and
//! foldhash do. Every multiplicand is mixed with a secret word that is random per process, so a
//! stranger can neither make one zero nor prepare colliding keys. The bits are good at both ends:
//! [`Table`](crate::table::Table) takes positions from the top and fingerprints from the bottom.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    sync::atomic::{AtomicU64, Ordering},
};

/// Hash of `key`, the same for equal bytes during the life of the process.
#[inline]
#[must_use]
pub fn hash_key(key: &[u8]) -> u64 {
    let [first, second, third] = seeds();
    let length = key.len();
    let start = first ^ (length as u64).wrapping_mul(SPREAD);
    let mixed = if length > 16 {
        hash_long(key, start, second, third)
    } else {
        let (low, high) = ends(key);
        fold(low ^ second, high ^ start)
    };
    fold(mixed ^ third, SPREAD)
}

/// Fixes the seed of the process, for tests and reproducible benchmarks.
///
/// Must run before anything was hashed that is still looked up: hashes of before and after differ.
pub fn fix_seed(seed: u64) {
    store(seed);
}

/// Sixteen bytes or fewer as two words that overlap where the key is short.
#[inline]
fn ends(key: &[u8]) -> (u64, u64) {
    if let (Some(head), Some(tail)) = (key.first_chunk::<8>(), key.last_chunk::<8>()) {
        (u64::from_le_bytes(*head), u64::from_le_bytes(*tail))
    } else if let (Some(head), Some(tail)) = (key.first_chunk::<4>(), key.last_chunk::<4>()) {
        (u64::from(u32::from_le_bytes(*head)), u64::from(u32::from_le_bytes(*tail)))
    } else if let [head, .., tail] = key {
        let middle = key.get(key.len() / 2).copied().unwrap_or(0);
        (u64::from(*head), u64::from(middle) << 8 | u64::from(*tail))
    } else {
        (key.first().copied().map_or(0, u64::from), 0)
    }
}

/// Keys over sixteen bytes: two independent lanes of sixteen, then the last sixteen once more.
#[inline(never)]
fn hash_long(key: &[u8], start: u64, second: u64, third: u64) -> u64 {
    let mut even = start;
    let mut odd = start ^ third;
    let (pairs, rest) = key.as_chunks::<32>();
    for pair in pairs {
        let (front, back) = pair.split_at(16);
        let (low, high) = ends(front);
        even = fold(low ^ second, high ^ even);
        let (low, high) = ends(back);
        odd = fold(low ^ third, high ^ odd);
    }
    if rest.len() > 16
        && let Some(front) = rest.get(..16)
    {
        let (low, high) = ends(front);
        even = fold(low ^ second, high ^ even);
    }
    // At least 16 bytes long, so the tail is whole; it may overlap what was taken already.
    let (low, high) = key.last_chunk::<16>().map_or((0, 0), |tail| ends(tail));
    fold(low ^ second ^ odd, high ^ even)
}

#[inline]
fn fold(left: u64, right: u64) -> u64 {
    let product = u128::from(left) * u128::from(right);
    #[expect(clippy::cast_possible_truncation, reason = "the two halves are what is wanted")]
    let folded = product as u64 ^ (product >> 64) as u64;
    folded
}

#[inline]
fn seeds() -> [u64; 3] {
    // Acquire pairs with the release in `store`: whoever sees the first word sees the others.
    let first = SEEDS[0].load(Ordering::Acquire);
    if first == 0 {
        return draw();
    }
    [first, SEEDS[1].load(Ordering::Relaxed), SEEDS[2].load(Ordering::Relaxed)]
}

/// First use: takes the operating system's randomness through the standard library.
#[cold]
#[inline(never)]
fn draw() -> [u64; 3] {
    static FIRST_USE: std::sync::Once = std::sync::Once::new();
    FIRST_USE.call_once(|| {
        if SEEDS[0].load(Ordering::Acquire) == 0 {
            store(RandomState::new().build_hasher().finish());
        }
    });
    seeds()
}

fn store(seed: u64) {
    let second = fold(seed ^ SPREAD, 0xd6e8_feb8_6659_fd93);
    let third = fold(seed ^ 0xa076_1d64_78bd_642f, 0xe703_7ed1_a0b4_28db);
    SEEDS[1].store(second, Ordering::Relaxed);
    SEEDS[2].store(third, Ordering::Relaxed);
    // Zero means "not drawn yet".
    SEEDS[0].store(if seed == 0 { SPREAD } else { seed }, Ordering::Release);
}

static SEEDS: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

/// An odd number without structure (the golden ratio's fraction).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn equal_bytes_hash_equal_and_lengths_differ() {
        for length in 0..200 {
            let key = vec![0_u8; length];
            assert_eq!(hash_key(&key), hash_key(&key.clone()));
            assert_ne!(hash_key(&key), hash_key(&vec![0; length + 1]));
        }
    }

    #[test]
    fn every_byte_counts() {
        for length in 1..150 {
            let plain = vec![7_u8; length];
            for at in 0..length {
                let mut changed = plain.clone();
                changed[at] ^= 0x20;
                assert_ne!(hash_key(&plain), hash_key(&changed), "length {length}, byte {at}");
            }
        }
    }

    #[test]
    fn numbered_keys_spread_over_the_top_and_the_bottom() {
        let mut top = vec![0_u32; 256];
        let mut bottom = vec![0_u32; 256];
        let mut all = HashSet::new();
        for number in 0..100_000 {
            let hash = hash_key(format!("key:{number:012}").as_bytes());
            top[(hash >> 56) as usize] += 1;
            bottom[(hash & 255) as usize] += 1;
            all.insert(hash);
        }
        assert_eq!(all.len(), 100_000);
        for counts in [top, bottom] {
            let worst = counts.iter().map(|&count| count.abs_diff(391)).max();
            assert!(worst < Some(140), "390.6 expected per value, off by {worst:?}");
        }
    }
}
