//! Grisu2: short digits of a double with 64-bit arithmetic (Florian Loitsch, "Printing floating-point numbers quickly
//! and accurately with integers", PLDI 2010, section 5).
//!
//! A double has two neighbours; every number between the two midpoints reads back as it. Scaled by a cached power of
//! ten so that the binary exponent lies in −60..=−32, upper border, lower border and the double itself are 64-bit
//! fractions; digits of the upper border are generated until what is left fits the interval, then the last digit is
//! moved towards the double. The result always reads back, but is not always the shortest (0.06 % of doubles). Redis 7.2
//! prints exactly these digits, which is why no cleverer algorithm may stand here.

use super::grisu2_powers::POWERS;

/// Digits of a positive double: value ≈ digits × 10^exponent.
pub(super) struct Digits {
    digits: [u8; 20],
    count: usize,
    /// The power of ten that the digits, read as an integer, are multiplied by.
    pub(super) exponent: i32,
}

impl Digits {
    pub(super) fn as_bytes(&self) -> &[u8] {
        self.digits.get(..self.count).unwrap_or(&[])
    }

    fn push(&mut self, digit: u64) {
        // Leading zeros are no digits.
        if digit == 0 && self.count == 0 {
            return;
        }
        if let Some(place) = self.digits.get_mut(self.count) {
            // One decimal digit.
            *place = b'0' + (digit % 10) as u8;
            self.count += 1;
        }
    }
}

/// fraction × 2^exponent.
#[derive(Clone, Copy)]
struct Scaled {
    fraction: u64,
    exponent: i32,
}

impl Scaled {
    fn normalised(self) -> Self {
        let shift = self.fraction.leading_zeros();
        Self { fraction: self.fraction << shift, exponent: self.exponent - shift.cast_signed() }
    }

    /// The upper half of the product, rounded half up.
    fn times(self, power: Scaled) -> Self {
        let product = u128::from(self.fraction) * u128::from(power.fraction);
        // The carry of the lower halves is rounded at bit 63.
        let rounded = (product + (1 << 63)) >> 64;
        Self { fraction: rounded as u64, exponent: self.exponent + power.exponent + 64 }
    }
}

const MANTISSA_BITS: u32 = 52;
const HIDDEN_BIT: u64 = 1 << MANTISSA_BITS;

/// The digits of a positive, finite double.
pub(super) fn shortest(value: f64) -> Digits {
    let bits = value.to_bits();
    let biased = i32::try_from(bits >> MANTISSA_BITS & 0x7ff).unwrap_or(0);
    let mantissa = bits & (HIDDEN_BIT - 1);
    let value = if biased == 0 {
        Scaled { fraction: mantissa, exponent: -1074 }
    } else {
        Scaled { fraction: mantissa | HIDDEN_BIT, exponent: biased - 1075 }
    };
    let upper = Scaled { fraction: (value.fraction << 1) + 1, exponent: value.exponent - 1 }.normalised();
    // Below a power of two the lower neighbour is half as far.
    let shift = if value.fraction == HIDDEN_BIT { 2 } else { 1 };
    let lower = Scaled { fraction: (value.fraction << shift) - 1, exponent: value.exponent - shift };
    let lower = lower.fraction << (lower.exponent - upper.exponent);
    let lower = Scaled { fraction: lower, exponent: upper.exponent };

    let (power, decimal) = cached_power(upper.exponent);
    let value = value.normalised().times(power);
    // One unit inwards makes up for the error of the products.
    let upper = upper.times(power);
    let upper = Scaled { fraction: upper.fraction - 1, ..upper };
    let lower = lower.times(power).fraction + 1;
    generate(value.fraction, upper, lower, -decimal)
}

/// The power of ten that brings `exponent` into −60..=−32 (of the product), and its decimal exponent.
#[allow(
    clippy::indexing_slicing,
    reason = "clamped to the table, and the search ends within it for every exponent of a double"
)]
fn cached_power(exponent: i32) -> (Scaled, i32) {
    // log10(2) and the start of the search decide which of two fitting powers is taken: as Redis' does.
    #[allow(clippy::cast_possible_truncation)]
    let decimal = (f64::from(-(exponent + 87)) * 0.301_029_995_663_981_14) as i32;
    let mut index = usize::try_from((decimal + 348) / 8).unwrap_or(0).min(POWERS.len() - 1);
    loop {
        let (fraction, power) = POWERS[index];
        let product = exponent + i32::from(power) + 64;
        if product < -60 && index + 1 < POWERS.len() {
            index += 1;
        } else if product > -32 && index > 0 {
            index -= 1;
        } else {
            let decimal = i32::try_from(index).unwrap_or(0) * 8 - 348;
            return (Scaled { fraction, exponent: i32::from(power) }, decimal);
        }
    }
}

fn generate(value: u64, upper: Scaled, lower: u64, exponent: i32) -> Digits {
    let mut digits = Digits { digits: [0; 20], count: 0, exponent };
    // 32..=60 by the choice of the power.
    let shift = upper.exponent.unsigned_abs();
    let one = 1_u64 << shift;
    let mut delta = upper.fraction - lower;
    let mut distance = upper.fraction - value;
    let mut whole = upper.fraction >> shift;
    let mut part = upper.fraction & (one - 1);
    let mut kappa = 10;
    let mut divisor = 1_000_000_000_u64;
    while kappa > 0 {
        digits.push(whole / divisor);
        whole %= divisor;
        kappa -= 1;
        let rest = (whole << shift) + part;
        if rest <= delta {
            digits.exponent += kappa;
            approach(&mut digits, delta, rest, divisor << shift, distance);
            return digits;
        }
        divisor /= 10;
    }
    loop {
        part = part.wrapping_mul(10);
        delta = delta.wrapping_mul(10);
        distance = distance.wrapping_mul(10);
        kappa -= 1;
        digits.push(part >> shift);
        part &= one - 1;
        if part < delta {
            digits.exponent += kappa;
            approach(&mut digits, delta, part, one, distance);
            return digits;
        }
    }
}

/// Lowers the last digit while that comes nearer to the double and stays inside the interval.
fn approach(digits: &mut Digits, delta: u64, mut rest: u64, unit: u64, distance: u64) {
    let Some(last) = digits.count.checked_sub(1).and_then(|at| digits.digits.get_mut(at)) else { return };
    while rest < distance
        && delta - rest >= unit
        && (rest.wrapping_add(unit) < distance || distance - rest > rest.wrapping_add(unit) - distance)
    {
        *last -= 1;
        rest += unit;
    }
}
