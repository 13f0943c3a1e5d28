//! LZF: the compression of long strings in RDB.
//!
//! ```text
//! 000lllll  bytes               literal run of l + 1 bytes
//! lllooooo  oooooooo            copy of l + 2 bytes (l < 7) from o + 1 bytes back
//! 111ooooo  llllllll  oooooooo  copy of l + 9 bytes from o + 1 bytes back
//! ```
//!
//! Written from the format (liblzf's), which leaves the choice of matches to the compressor: our bytes may differ from
//! Redis' for the same text, and each reads the other's.

use std::fmt;

/// Farthest a copy reaches back, in bytes.
const DISTANCE_MAX: usize = 1 << 13;
/// Longest copy, in bytes.
const MATCH_MAX: usize = 264;
/// Longest literal run, in bytes.
const LITERAL_MAX: usize = 32;
/// One three-byte copy gives at most [`MATCH_MAX`] bytes: no text grows more.
const EXPANSION_MAX: usize = MATCH_MAX / 3;

/// Compressed bytes that reach outside, end early or give another length than declared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InvalidLzf;

impl fmt::Display for InvalidLzf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("malformed LZF string")
    }
}

impl std::error::Error for InvalidLzf {}

/// Decompresses `input`, which must give exactly `declared` bytes.
///
/// Memory is bounded by what the input really gives: a declared length that the input cannot reach is refused first,
/// and the output grows as it is decoded.
pub fn decompress(input: &[u8], declared: usize) -> Result<Vec<u8>, InvalidLzf> {
    if declared / EXPANSION_MAX > input.len() {
        return Err(InvalidLzf);
    }
    let mut out = Vec::with_capacity(declared.min(input.len().saturating_mul(4)));
    let mut rest = input;
    while let Some((&control, tail)) = rest.split_first() {
        rest = tail;
        let control = usize::from(control);
        if control < LITERAL_MAX {
            let (literal, tail) = rest.split_at_checked(control + 1).ok_or(InvalidLzf)?;
            rest = tail;
            if out.len() + literal.len() > declared {
                return Err(InvalidLzf);
            }
            out.extend_from_slice(literal);
            continue;
        }
        let mut len = control >> 5;
        if len == 7 {
            let (&more, tail) = rest.split_first().ok_or(InvalidLzf)?;
            rest = tail;
            len += usize::from(more);
        }
        let (&low, tail) = rest.split_first().ok_or(InvalidLzf)?;
        rest = tail;
        let distance = ((control & 0x1f) << 8 | usize::from(low)) + 1;
        copy_back(&mut out, distance, len + 2, declared)?;
    }
    if out.len() == declared { Ok(out) } else { Err(InvalidLzf) }
}

/// Appends `len` bytes that begin `distance` bytes back; they may overlap what is appended.
fn copy_back(out: &mut Vec<u8>, distance: usize, len: usize, limit: usize) -> Result<(), InvalidLzf> {
    let start = out.len().checked_sub(distance).ok_or(InvalidLzf)?;
    if out.len() + len > limit {
        return Err(InvalidLzf);
    }
    let mut left = len;
    // Each round copies what is there already, so that a short distance repeats.
    while left > 0 {
        let chunk = left.min(out.len() - start);
        out.extend_from_within(start..start + chunk);
        left -= chunk;
    }
    Ok(())
}

/// Appends the compressed form of `input` to `out` if it takes at most `limit` bytes. Else leaves `out` as it was and
/// gives false.
pub fn compress(input: &[u8], out: &mut Vec<u8>, limit: usize) -> bool {
    let start = out.len();
    let fits = compress_within(input, out, start.saturating_add(limit));
    if !fits {
        out.truncate(start);
    }
    fits
}

fn compress_within(input: &[u8], out: &mut Vec<u8>, end: usize) -> bool {
    // A table entry holds a position plus one; 0 is empty. Positions past 32 bits are not remembered.
    let table_bits = input.len().max(256).ilog2().min(14);
    let mut table = vec![0_u32; 1 << table_bits];
    let mut at = 0;
    let mut literal_start = 0;
    while let Some(next) = input.get(at..at + 3) {
        let [a, b, c] = *next else { break };
        let key = u32::from_le_bytes([a, b, c, 0]).wrapping_mul(0x9e37_79b1) >> (32 - table_bits);
        let Some(entry) = table.get_mut(key as usize) else { break };
        let earlier = std::mem::replace(entry, u32::try_from(at + 1).unwrap_or(0)) as usize;
        let found =
            earlier > 0 && at + 1 - earlier <= DISTANCE_MAX && input.get(earlier - 1..earlier + 2) == Some(next);
        if !found {
            at += 1;
            continue;
        }
        let len = match_len(input, earlier - 1, at);
        if !write_literals(input.get(literal_start..at).unwrap_or(&[]), out, end) {
            return false;
        }
        write_match(out, at - earlier, len);
        at += len;
        literal_start = at;
        if out.len() > end {
            return false;
        }
    }
    write_literals(input.get(literal_start..).unwrap_or(&[]), out, end)
}

/// How many bytes from `earlier` and from `at` on are the same, up to the longest copy.
fn match_len(input: &[u8], earlier: usize, at: usize) -> usize {
    let (Some(before), Some(after)) = (input.get(earlier..), input.get(at..)) else { return 0 };
    before.iter().zip(after).take(MATCH_MAX).take_while(|(a, b)| a == b).count()
}

fn write_literals(literals: &[u8], out: &mut Vec<u8>, end: usize) -> bool {
    for run in literals.chunks(LITERAL_MAX) {
        if out.len() + 1 + run.len() > end {
            return false;
        }
        // A run has 1..=32 bytes.
        out.push(u8::try_from(run.len() - 1).unwrap_or(0));
        out.extend_from_slice(run);
    }
    true
}

/// Writes a copy of `len` (3..=264) bytes from `offset` + 1 bytes back.
fn write_match(out: &mut Vec<u8>, offset: usize, len: usize) {
    let [low, high, ..] = offset.to_le_bytes();
    let [len, long, ..] = (len - 2).to_le_bytes();
    if len < 7 && long == 0 {
        out.extend_from_slice(&[len << 5 | high, low]);
    } else {
        // 264 − 2 − 7 fits a byte, so the borrow from `long` cancels out.
        out.extend_from_slice(&[7 << 5 | high, len.wrapping_sub(7), low]);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use proptest::prelude::*;

    use super::*;

    fn compressible() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec((proptest::collection::vec(0..6_u8, 1..20), 1..60_usize), 0..60)
            .prop_map(|parts| parts.into_iter().flat_map(|(part, times)| part.repeat(times)).collect())
    }

    proptest! {
        #[test]
        fn round_trips(text in prop_oneof![compressible(), proptest::collection::vec(any::<u8>(), 0..3000)]) {
            let mut out = b"kept".to_vec();
            prop_assert!(compress(&text, &mut out, usize::MAX));
            prop_assert_eq!(&out[..4], b"kept");
            prop_assert_eq!(decompress(&out[4..], text.len()).unwrap(), &text[..]);
            prop_assert!(decompress(&out[4..], text.len() + 1).is_err());
            let len = out.len() - 4;
            let mut limited = vec![1];
            prop_assert!(compress(&text, &mut limited, len));
            if len > 0 {
                limited.truncate(1);
                prop_assert!(!compress(&text, &mut limited, len - 1));
                prop_assert_eq!(&limited, &[1]);
            }
        }

        #[test]
        fn hostile_bytes_end(input in proptest::collection::vec(any::<u8>(), 0..200), declared in prop_oneof![0..3000_usize, any::<usize>()]) {
            if let Ok(out) = decompress(&input, declared) {
                prop_assert_eq!(out.len(), declared);
            }
        }
    }

    #[test]
    fn repeats_shrink() {
        let mut out = vec![];
        assert!(compress(&[b'a'; 1000], &mut out, 30));
        assert!(decompress(&[0xff; 10], usize::MAX).is_err());
        assert_eq!(decompress(&[0, b'x', 0xe0, 0xff, 0], 265).unwrap(), [b'x'; 265]);
    }
}
