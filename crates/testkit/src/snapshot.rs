//! Checksums of snapshots, computed by code of the tests' own.

/// CRC64 as RDB has it (Jones, reflected, from zero).
pub fn crc64(bytes: &[u8]) -> u64 {
    const POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;
    bytes.iter().fold(0, |crc: u64, byte| {
        (0..8).fold(crc ^ u64::from(*byte), |crc, _| if crc & 1 == 1 { (crc >> 1) ^ POLYNOMIAL } else { crc >> 1 })
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_known_value() {
        assert_eq!(super::crc64(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
    }
}
