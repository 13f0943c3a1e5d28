//! The CRC64 of RDB files and DUMP payloads: Jones' polynomial, reflected, start 0, no final xor.

use std::sync::LazyLock;

use crc_fast::{CrcParams, checksum_with_params};

/// Folding keys for SIMD, calculated once.
static JONES: LazyLock<CrcParams> =
    LazyLock::new(|| CrcParams::new("CRC-64/REDIS", 64, 0xad93_d235_94c9_35a9, 0, true, 0, 0xe9c6_d914_c4b8_d9ca));

/// The checksum of `bytes`.
pub fn crc64(bytes: &[u8]) -> u64 {
    crc64_update(0, bytes)
}

/// The checksum of what `crc` is the checksum of, followed by `bytes`; start with 0.
pub fn crc64_update(crc: u64, bytes: &[u8]) -> u64 {
    let mut params = *JONES;
    // Without a final xor the checksum so far is the state to go on from.
    params.init_algorithm = crc;
    checksum_with_params(params, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bit by bit, as the polynomial says.
    fn plain(mut crc: u64, bytes: &[u8]) -> u64 {
        for byte in bytes {
            crc ^= u64::from(*byte);
            for _ in 0..8 {
                crc = if crc & 1 == 1 { crc >> 1 ^ 0xad93_d235_94c9_35a9_u64.reverse_bits() } else { crc >> 1 };
            }
        }
        crc
    }

    #[test]
    fn checksums_are_those_of_redis() {
        assert_eq!(crc64(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
        assert_eq!(crc64(b""), 0);
        let bytes: Vec<u8> =
            (0..3000_u32).map(|index| (index * 31).to_le_bytes()[0] ^ (index >> 8).to_le_bytes()[0]).collect();
        for len in (0..300).chain([511, 1024, 2999]) {
            assert_eq!(crc64(&bytes[..len]), plain(0, &bytes[..len]), "{len}");
            let (head, tail) = bytes[..len].split_at(len / 3);
            assert_eq!(crc64_update(crc64(head), tail), crc64(&bytes[..len]), "{len}");
        }
    }
}
