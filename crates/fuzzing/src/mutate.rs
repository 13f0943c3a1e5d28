//! Changes to inputs that decoders tend to mind: single bits, sizes, pieces of other inputs, words of the format.

use fastrand::Rng;

/// Longest input that mutation makes.
const LENGTH_MAX: usize = 1 << 16;

/// Bytes at which formats turn from one form to another.
const TELLING: [u8; 20] =
    [0, 1, 2, 9, 10, 13, 32, 0x3f, 0x40, 0x7f, 0x80, 0x81, 0xc0, 0xc3, 0xe0, 0xf0, 0xf4, 0xfa, 0xfe, 0xff];
/// Numbers at the ends of their widths.
const NUMBERS: [u64; 12] =
    [0, 1, 2, 0x7f, 0x80, 0xff, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, u64::MAX >> 1, u64::MAX];
/// The same as texts.
const TEXTS: [&[u8]; 10] = [
    b"0",
    b"-1",
    b"1",
    b"512",
    b"2147483647",
    b"2147483648",
    b"4294967295",
    b"9223372036854775807",
    b"-9223372036854775808",
    b"18446744073709551616",
];

fn any<T: Copy>(random: &mut Rng, all: &[T]) -> T {
    all[random.usize(0..all.len())]
}

/// Changes `bytes` in one to six places.
pub fn mutate(random: &mut Rng, bytes: &mut Vec<u8>, others: &[Vec<u8>], words: &[&[u8]]) {
    for _ in 0..random.usize(1..7) {
        if bytes.is_empty() {
            bytes.push(random.u8(..));
        }
        once(random, bytes, others, words);
    }
    bytes.truncate(LENGTH_MAX);
}

fn once(random: &mut Rng, bytes: &mut Vec<u8>, others: &[Vec<u8>], words: &[&[u8]]) {
    let at = random.usize(0..bytes.len());
    let upto = |random: &mut Rng, most: usize| (at + random.usize(1..=most)).min(bytes.len());
    match random.u8(0..12) {
        0 | 1 => bytes[at] ^= 1 << random.u8(0..8),
        2 => bytes[at] = any(random, &TELLING),
        3 => bytes[at] = bytes[at].wrapping_add(random.u8(0..5)).wrapping_sub(2),
        4 => {
            let end = upto(random, 16);
            bytes.drain(at..end);
        }
        5 => {
            let piece: Vec<u8> = (0..random.usize(1..9)).map(|_| any(random, &TELLING)).collect();
            bytes.splice(at..at, piece);
        }
        6 => {
            let number = any(random, &NUMBERS);
            let wide = if random.bool() { number.to_le_bytes() } else { number.rotate_right(32).to_be_bytes() };
            let count = any(random, &[1, 2, 4, 8]).min(bytes.len() - at);
            bytes[at..at + count].copy_from_slice(&wide[..count]);
        }
        7 => bytes.truncate(at),
        8 => {
            // A stretch once more: repeated members, deeper nesting.
            let end = upto(random, 64);
            let piece = bytes[at..end].to_vec();
            for _ in 0..random.usize(1..4) {
                bytes.splice(at..at, piece.iter().copied());
            }
        }
        9 if !words.is_empty() => {
            let word = any(random, words);
            bytes.splice(at..at, word.iter().copied());
        }
        10 => {
            let text = any(random, &TEXTS);
            let end = upto(random, text.len());
            bytes.splice(at..end, text.iter().copied());
        }
        _ => {
            if let Some(other) = others.get(random.usize(0..others.len().max(1))) {
                let from = random.usize(0..=other.len());
                bytes.truncate(at);
                bytes.extend_from_slice(other.get(from..).unwrap_or_default());
            }
        }
    }
}
