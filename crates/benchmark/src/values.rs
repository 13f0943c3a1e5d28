//! What values are made of: the pool that varying ones are cut from, and checked ones (`--verify`).
//!
//! ```text
//! checked value   [crc32 of the rest, 8 hex digits][number of its key, 12 digits][filler …]
//! ```
//!
//! A reply is corrupt when its checksum does not fit, or when it is the value of another key than was asked for.

use crc_fast::CrcAlgorithm;

use crate::{extended::ValueKind, template::write_twelve_digits};

/// Least bytes of a checked value.
pub(crate) const CHECKED_BYTES_MIN: usize = HEAD_BYTES + KEY_BYTES;

/// Bytes that varying values are cut from; empty when values do not vary.
pub(crate) fn pool(kind: ValueKind, value_bytes: usize) -> Vec<u8> {
    let repeated = match kind {
        ValueKind::Fixed => return Vec::new(),
        ValueKind::Random => 0.0,
        ValueKind::Compressible(share) => share,
    };
    let mut random = fastrand::Rng::with_seed(POOL_SEED);
    let length = value_bytes * 2 + POOL_SPARE_BYTES;
    let mut pool = Vec::with_capacity(length);
    while pool.len() < length {
        let is_repeated = random.f64() < repeated;
        let block = BLOCK_BYTES.min(length - pool.len());
        pool.extend((0..block).map(|_| if is_repeated { b'x' } else { random.u8(b'0'..=b'o') }));
    }
    pool
}

/// Makes `value` the checked value of a key, keeping its filler. A shorter one than [`CHECKED_BYTES_MIN`] stays as it is.
pub(crate) fn seal(value: &mut [u8], key: u64) {
    let Some((head, rest)) = value.split_at_mut_checked(HEAD_BYTES) else { return };
    let Some(number) = rest.get_mut(..KEY_BYTES) else { return };
    write_twelve_digits(number, key);
    head.copy_from_slice(&checksum(rest));
}

/// Whether `value` is an untouched checked value of this key; otherwise what is wrong with it.
pub(crate) fn check(value: &[u8], key: u64) -> Result<(), String> {
    let Some((head, rest)) = value.split_at_checked(HEAD_BYTES).filter(|(_, rest)| rest.len() >= KEY_BYTES) else {
        return Err(format!("a value of {} bytes, too short for a checked one", value.len()));
    };
    if head != checksum(rest) {
        return Err("the checksum does not fit".to_owned());
    }
    let mut wanted = [0; KEY_BYTES];
    write_twelve_digits(&mut wanted, key);
    let found = rest.get(..KEY_BYTES).unwrap_or_default();
    if found == wanted {
        return Ok(());
    }
    Err(format!("it is the value of key number {}", String::from_utf8_lossy(found)))
}

fn checksum(bytes: &[u8]) -> [u8; HEAD_BYTES] {
    let sum = crc_fast::checksum(CrcAlgorithm::Crc32IsoHdlc, bytes);
    let mut digits = [0; HEAD_BYTES];
    for (at, digit) in digits.iter_mut().rev().enumerate() {
        let nibble = (sum >> (at * 4)) & 15;
        *digit = HEX[usize::try_from(nibble).unwrap_or(0)];
    }
    digits
}

const HEAD_BYTES: usize = 8;
const KEY_BYTES: usize = 12;
const HEX: &[u8; 16] = b"0123456789abcdef";
const POOL_SEED: u64 = 0x0b1d_15ea_5e00;
const POOL_SPARE_BYTES: usize = 64 * 1024;
const BLOCK_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_checked_value_is_known_again() {
        for length in [CHECKED_BYTES_MIN, 21, 500] {
            let mut value = vec![b'z'; length];
            seal(&mut value, 42);
            assert_eq!(check(&value, 42), Ok(()));
            assert!(check(&value, 43).unwrap_err().contains("key number 000000000042"));
            for at in 0..length {
                let mut damaged = value.clone();
                damaged[at] ^= 1;
                assert!(check(&damaged, 42).is_err(), "byte {at} of {length}");
            }
            assert!(check(&value[..length - 1], 42).is_err());
        }
        let mut short = *b"abc";
        seal(&mut short, 1);
        assert_eq!(&short, b"abc");
        assert!(check(b"", 1).unwrap_err().contains("too short"));
    }

    #[test]
    fn the_checksum_is_the_usual_one() {
        assert_eq!(&checksum(b"123456789"), b"cbf43926");
    }
}
