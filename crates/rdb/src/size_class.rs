//! The allocation sizes that packed containers round up to: jemalloc's size classes.
//!
//! Multiples of 16 up to 128, then four classes per doubling: 160, 192, 224, 256, 320, 384, 448, 512, 640 … .
//! A block whose size is a function of its content's length needs no capacity field, and growth inside a class needs
//! no call of the allocator.

/// The smallest class, in bytes.
pub const SMALLEST: usize = 16;

/// The size class that holds `len` bytes; never below [`SMALLEST`]. Saturates at `usize::MAX` instead of overflowing.
#[inline]
pub const fn round_up(len: usize) -> usize {
    if len <= SMALLEST {
        return SMALLEST;
    }
    let step = if len <= 128 { 16 } else { 1_usize << ((len - 1).ilog2() - 2) };
    match len.checked_next_multiple_of(step) {
        Some(rounded) => rounded,
        None => usize::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_those_of_jemalloc() {
        let mut classes = vec![];
        for len in 0..=1100 {
            let class = round_up(len);
            assert!(class >= len);
            if classes.last() != Some(&class) {
                classes.push(class);
            }
        }
        let expected =
            [16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 896, 1024, 1280];
        assert_eq!(classes, expected);
        assert_eq!(round_up(4097), 5120);
        assert_eq!(round_up(usize::MAX), usize::MAX);
    }
}
