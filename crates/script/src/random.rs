//! The 48-bit linear congruential generator behind `math.random`: the same sequence for the same seed on every machine,
//! and the same as Redis'.

/// State of the generator.
#[derive(Clone, Copy)]
pub(crate) struct Lrand48(u64);

const MULTIPLIER: u64 = 0x5_DEEC_E66D;
const INCREMENT: u64 = 0xB;
const MASK: u64 = (1 << 48) - 1;

impl Default for Lrand48 {
    fn default() -> Lrand48 {
        Lrand48(0x1234_ABCD_330E)
    }
}

impl Lrand48 {
    pub(crate) fn seed(&mut self, seed: i32) {
        self.0 = u64::from(seed.cast_unsigned()) << 16 | 0x330E;
    }

    /// 31 random bits.
    pub(crate) fn draw(&mut self) -> i32 {
        self.0 = self.0.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT) & MASK;
        #[allow(clippy::cast_possible_truncation)]
        let high = (self.0 >> 17) as i32;
        high
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_of_the_c_library() {
        let mut random = Lrand48::default();
        random.seed(0);
        assert_eq!([random.draw(), random.draw(), random.draw()], [366_850_414, 1_610_402_240, 206_956_554]);
    }
}
