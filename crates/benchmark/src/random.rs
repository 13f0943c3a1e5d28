//! Hot path: random numbers for keys.
//!
//! [`AdditiveRandom`] is the additive feedback generator of the C library's `random()`
//! (x³¹ + x³ + 1, Knuth's TAOCP 3.2.2). With the same `--seed` and one client it therefore
//! yields the keys that redis-benchmark 7.2 yields, at one addition per number.

/// Additive feedback generator over 31 words; 31 random bits per step.
#[derive(Debug, Clone)]
pub(crate) struct AdditiveRandom {
    words: [u32; DEGREE],
    front: usize,
    rear: usize,
}

impl AdditiveRandom {
    /// A generator in the state that the C library's `srandom(seed)` gives.
    pub(crate) fn new(seed: u32) -> Self {
        let mut words = [0_u32; DEGREE];
        // The C library fills with the minimal standard generator, by Schrage's method.
        let mut word = i64::from(if seed == 0 { 1 } else { seed }.cast_signed());
        words[0] = word_of(word);
        for slot in words.iter_mut().skip(1) {
            word = 16_807 * (word % 127_773) - 2_836 * (word / 127_773);
            if word < 0 {
                word += 2_147_483_647;
            }
            *slot = word_of(word);
        }
        let mut random = AdditiveRandom { words, front: SEPARATION, rear: 0 };
        for _ in 0..DEGREE * 10 {
            random.next_bits();
        }
        random
    }

    /// The next 31 random bits.
    #[inline]
    pub(crate) fn next_bits(&mut self) -> u32 {
        let sum = self.words[self.front].wrapping_add(self.words[self.rear]);
        self.words[self.front] = sum;
        self.front = if self.front + 1 == DEGREE { 0 } else { self.front + 1 };
        self.rear = if self.rear + 1 == DEGREE { 0 } else { self.rear + 1 };
        sum >> 1
    }

    /// A number in `0..bound`, 0 when the bound is 0. Bounds above 2³¹ take two steps.
    #[inline]
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            return 0;
        }
        let low = self.next_bits();
        if let Ok(bound) = u32::try_from(bound)
            && bound <= 1 << 31
        {
            // A division of 32 bits takes a third of the time of one of 64.
            return u64::from(low % bound);
        }
        (u64::from(self.next_bits()) << 31 | u64::from(low)) % bound
    }

    /// A number in `0.0..1.0` with 62 random bits behind it.
    #[inline]
    pub(crate) fn unit(&mut self) -> f64 {
        let bits = u64::from(self.next_bits()) << 31 | u64::from(self.next_bits());
        #[expect(clippy::cast_precision_loss, reason = "a unit fraction needs 53 bits only")]
        let unit = bits as f64 / (1_u64 << 62) as f64;
        unit.min(1.0 - f64::EPSILON)
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the low 32 bits")]
fn word_of(value: i64) -> u32 {
    value as u32
}

const DEGREE: usize = 31;
const SEPARATION: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_numbers_as_the_c_library() {
        // First outputs of random() after srandom(1), and after srandom(42).
        let mut random = AdditiveRandom::new(1);
        assert_eq!(random.next_bits(), 1_804_289_383);
        assert_eq!(random.next_bits(), 846_930_886);
        assert_eq!(random.next_bits(), 1_681_692_777);
        let mut random = AdditiveRandom::new(42);
        assert_eq!(random.next_bits(), 71_876_166);
        assert_eq!(random.next_bits(), 708_592_740);
    }

    #[test]
    fn bounds_hold() {
        let mut random = AdditiveRandom::new(7);
        assert_eq!(random.below(0), 0);
        for _ in 0..1_000 {
            assert!(random.below(10) < 10);
            assert!(random.below(1 << 40) < 1 << 40);
            let unit = random.unit();
            assert!((0.0..1.0).contains(&unit));
        }
    }
}
