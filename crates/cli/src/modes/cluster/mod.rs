//! `--cluster`.

/// The hash slot of a key: CRC16 of the part between the first `{` and the next `}`, or of the whole key.
pub(crate) fn key_slot(key: &[u8]) -> u16 {
    let tag = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let rest = key.get(open + 1..)?;
        let length = rest.iter().position(|byte| *byte == b'}')?;
        rest.get(..length).filter(|tag| !tag.is_empty())
    });
    crc16(tag.unwrap_or(key)) & 0x3fff
}

/// CRC16 of the XMODEM protocol.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 }
        })
    })
}
