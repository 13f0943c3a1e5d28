//! CRC16/XMODEM, which decides a key's slot: polynomial x¹⁶ + x¹² + x⁵ + 1, nothing inverted or reflected.
//!
//! By carry-less multiplication where the processor has it, else by tables. Either way eight bytes at a time, the odd ones
//! first: as the CRC begins with zero, zero bytes before a text change nothing.

/// The CRC of `bytes`.
#[inline]
pub fn of(bytes: &[u8]) -> u16 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("pclmulqdq") {
        // SAFETY: the processor has the one feature that the function needs.
        return unsafe { by_multiplication(bytes) };
    }
    by_tables(bytes)
}

/// Barrett's reduction in polynomials over two elements. With the 64 bits V to be reduced as V·x¹⁶ mod P, the quotient is
/// the upper half of V·⌊x⁸⁰ / P⌋ (whose bit 64 is one, hence the extra V), and the remainder the lowest 16 bits of
/// quotient · P.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "pclmulqdq")]
fn by_multiplication(bytes: &[u8]) -> u16 {
    use std::arch::x86_64::{
        _mm_clmulepi64_si128, _mm_cvtsi64_si128, _mm_cvtsi128_si64, _mm_unpackhi_epi64, _mm_xor_si128,
    };
    let factors = (_mm_cvtsi64_si128(INVERSE.cast_signed()), _mm_cvtsi64_si128(POLYNOMIAL));
    let reduce = |word: u64| {
        let word = _mm_cvtsi64_si128(word.cast_signed());
        let product = _mm_clmulepi64_si128::<0>(word, factors.0);
        let quotient = _mm_xor_si128(_mm_unpackhi_epi64(product, product), word);
        _mm_cvtsi128_si64(_mm_clmulepi64_si128::<0>(quotient, factors.1)).cast_unsigned() & 0xFFFF
    };
    let (odd, words) = bytes.as_rchunks::<8>();
    let mut crc = match odd.len() {
        0 => 0,
        length => reduce(match bytes.first_chunk::<8>() {
            Some(first) => u64::from_be_bytes(*first) >> (64 - 8 * length),
            None => odd.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)),
        }),
    };
    for word in words {
        crc = reduce(u64::from_be_bytes(*word) ^ (crc << 48));
    }
    #[allow(clippy::cast_possible_truncation, reason = "masked to 16 bits")]
    return crc as u16;
}

/// P without x¹⁶, which lies above what is looked at.
#[cfg(target_arch = "x86_64")]
const POLYNOMIAL: i64 = 0x1021;

/// ⌊x⁸⁰ / P⌋ without its bit 64, by long division.
#[cfg(target_arch = "x86_64")]
const INVERSE: u64 = {
    let divisor: u128 = 0x1_1021;
    let mut rest: u128 = 1 << 80;
    let mut quotient: u128 = 0;
    let mut power = 64;
    loop {
        if rest >> (power + 16) & 1 == 1 {
            rest ^= divisor << power;
            quotient |= 1 << power;
        }
        if power == 0 {
            break;
        }
        power -= 1;
    }
    #[allow(clippy::cast_possible_truncation, reason = "bit 64 is known")]
    let low = quotient as u64;
    low
};

/// `TABLES[k][x]`: the CRC of byte `x` followed by `k` zero bytes, so that eight bytes need no chain of look-ups.
static TABLES: [[u16; 256]; 8] = tables();

#[allow(clippy::cast_possible_truncation, reason = "indexes below 256")]
const fn tables() -> [[u16; 256]; 8] {
    let mut tables = [[0_u16; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 != 0 { (crc << 1) ^ 0x1021 } else { crc << 1 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut zeros = 1;
    while zeros < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[zeros - 1][byte];
            tables[zeros][byte] = (before << 8) ^ tables[0][(before >> 8) as usize];
            byte += 1;
        }
        zeros += 1;
    }
    tables
}

fn by_tables(bytes: &[u8]) -> u16 {
    let mut crc = 0_u16;
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        crc = TABLES[7][(chunk[0] ^ (crc >> 8) as u8) as usize]
            ^ TABLES[6][(chunk[1] ^ (crc & 0xFF) as u8) as usize]
            ^ TABLES[5][chunk[2] as usize]
            ^ TABLES[4][chunk[3] as usize]
            ^ TABLES[3][chunk[4] as usize]
            ^ TABLES[2][chunk[5] as usize]
            ^ TABLES[1][chunk[6] as usize]
            ^ TABLES[0][chunk[7] as usize];
    }
    for byte in chunks.remainder() {
        crc = (crc << 8) ^ TABLES[0][((crc >> 8) as u8 ^ byte) as usize];
    }
    crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_and_both_ways() {
        assert_eq!(of(b"123456789"), 0x31C3);
        assert_eq!(by_tables(b"123456789"), 0x31C3);
        let mut rng = fastrand::Rng::with_seed(7);
        for length in 0..200 {
            let text: Vec<u8> = (0..length).map(|_| rng.u8(..)).collect();
            let mut bitwise = 0_u16;
            for byte in &text {
                bitwise ^= u16::from(*byte) << 8;
                for _ in 0..8 {
                    bitwise = if bitwise & 0x8000 != 0 { (bitwise << 1) ^ 0x1021 } else { bitwise << 1 };
                }
            }
            assert_eq!(by_tables(&text), bitwise);
            assert_eq!(of(&text), bitwise, "{length} bytes");
        }
    }
}
