//! x87 long doubles: 64 bits of mantissa, as INCRBYFLOAT and HINCRBYFLOAT calculate on the machines Redis runs on.
//!
//! Arithmetic in doubles gives other digits for four of five random increments, so the format is emulated.

use num_bigint::BigUint;
use rustc_apfloat::Float;
use rustc_apfloat::ieee::X87DoubleExtended;

use super::float_parse::{Kind, exponent_value, is_space, scan};

/// A number of the x87 extended format.
#[derive(Clone, Copy, Debug)]
pub struct LongDouble {
    value: X87DoubleExtended,
}

/// Redis: texts of this many bytes or more are no numbers (its buffer's size).
const TEXT_LIMIT: usize = 5 * 1024;

impl LongDouble {
    /// The number that `text` is.
    ///
    /// Redis: `string2ld`, that is C's `strtold` over the whole text. Refused: an empty text or one of 5120 bytes and
    /// more, white space, NaN, and finite texts that overflow or become zero.
    pub fn parse(text: &[u8]) -> Option<Self> {
        if text.len() >= TEXT_LIMIT || text.first().is_none_or(|&byte| is_space(byte)) {
            return None;
        }
        let scan = scan(text)?;
        if scan.end != text.len() {
            return None;
        }
        let unsigned = text.get(scan.unsigned..scan.end)?;
        let magnitude = match scan.kind {
            Kind::Infinity => X87DoubleExtended::INFINITY,
            _ if !scan.nonzero => X87DoubleExtended::ZERO,
            Kind::Decimal => parse_magnitude(unsigned, b'e')?,
            Kind::Hexadecimal => parse_magnitude(unsigned, b'p')?,
        };
        Some(Self { value: if scan.negative { -magnitude } else { magnitude } })
    }

    /// The number `value`: exact.
    pub fn from_i64(value: i64) -> Self {
        Self { value: X87DoubleExtended::from_i128(i128::from(value)).value }
    }

    /// The sum, rounded half to even.
    #[must_use]
    #[allow(clippy::should_implement_trait)]
    pub fn add(self, other: Self) -> Self {
        Self { value: (self.value + other.value).value }
    }

    /// Whether this is not a number.
    pub fn is_nan(self) -> bool {
        self.value.is_nan()
    }

    /// Whether this is infinite.
    pub fn is_inf(self) -> bool {
        self.value.is_infinite()
    }

    /// The text that INCRBYFLOAT stores and replies: `%.17Lf` without trailing zeros (and without a trailing point).
    ///
    /// Redis: `ld2string` in its human mode; `-0` becomes `0`; `inf`, `-inf`, `nan`.
    pub fn to_human(self) -> Vec<u8> {
        if self.is_nan() {
            return b"nan".to_vec();
        }
        let negative = self.value.is_negative();
        if self.is_inf() {
            return if negative { b"-inf".to_vec() } else { b"inf".to_vec() };
        }
        let bits = self.value.to_bits();
        // 64 bits of mantissa with an explicit leading one, then 15 bits of exponent, then the sign.
        let mantissa = u64::try_from(bits & u128::from(u64::MAX)).unwrap_or(0);
        let biased = i32::try_from(bits >> 64 & 0x7fff).unwrap_or(0);
        let magnitude = fixed_17(mantissa, biased.max(1) - 16_383 - 63);
        let mut text = Vec::with_capacity(magnitude.len() + 1);
        if negative && magnitude != b"0" {
            text.push(b'-');
        }
        text.extend_from_slice(&magnitude);
        text
    }
}

/// Reads a positive, non-zero number whose text [`scan`] accepted.
fn parse_magnitude(text: &[u8], exponent_letter: u8) -> Option<X87DoubleExtended> {
    let at = text.iter().position(|byte| byte.to_ascii_lowercase() == exponent_letter);
    let (mantissa, exponent) = match at {
        Some(at) => (text.get(..at)?, exponent_value(text.get(at + 1..)?)),
        None => (text, 0),
    };
    // The mantissa has less than 5120 digits: past this exponent nothing but overflow or underflow is left, and the
    // parser need not cope with more.
    let exponent = exponent.clamp(-60_000, 60_000);
    let letter = char::from(exponent_letter);
    let cleaned = format!("{}{letter}{exponent}", std::str::from_utf8(mantissa).ok()?.to_ascii_lowercase());
    let parsed = cleaned.parse::<X87DoubleExtended>().ok()?;
    (parsed.is_finite() && !parsed.is_zero()).then_some(parsed)
}

/// mantissa × 2^exponent with 17 decimal places rounded half to even, trailing zeros cut.
fn fixed_17(mantissa: u64, exponent: i32) -> Vec<u8> {
    const ONE: u128 = 100_000_000_000_000_000;
    if exponent >= 0 {
        return (BigUint::from(mantissa) << exponent.unsigned_abs()).to_string().into_bytes();
    }
    let shift = exponent.unsigned_abs();
    // At most 64 + 57 bits.
    let scaled = u128::from(mantissa) * ONE;
    let rounded = if shift > 122 {
        0
    } else {
        let floor = scaled >> shift;
        let rest = scaled & ((1 << shift) - 1);
        let half = 1_u128 << (shift - 1);
        floor + u128::from(rest > half || (rest == half && floor & 1 == 1))
    };
    let (whole, fraction) = (rounded / ONE, rounded % ONE);
    let mut text = format!("{whole}.{fraction:017}").into_bytes();
    while text.last() == Some(&b'0') {
        text.pop();
    }
    if text.last() == Some(&b'.') {
        text.pop();
    }
    text
}
