//! Texts of doubles, as C's `strtod` in the C locale reads them.
//!
//! ```text
//! white space*  [+-]  ( digits [. digits] [e [+-] digits] | 0x hex [. hex] [p [+-] digits] | inf | infinity | nan )
//! ```

use std::num::IntErrorKind;

/// The double that `text` is, as Redis reads scores, increments and other doubles.
///
/// Redis: `string2d`. Decimal and hexadecimal (`0x1.8p3`) numbers, `inf` and `infinity` in any case, with a sign.
/// Refused: an empty text, leading or trailing white space, NaN, and finite texts that overflow or become zero
/// (`1e999`, `1e-999`); subnormal results pass.
#[inline]
pub fn parse_f64(text: &[u8]) -> Option<f64> {
    if text.first().is_none_or(|&byte| is_space(byte)) {
        return None;
    }
    let number = strtod(text)?;
    (number.end == text.len() && !number.out_of_range).then_some(number.value)
}

/// One end of a score range: `1.5`, `(1.5`, `-inf`, `+inf`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ScoreBound {
    /// The score.
    pub value: f64,
    /// Whether the score itself is outside the range.
    pub exclusive: bool,
}

/// One end of a score range, as ZRANGEBYSCORE and ZCOUNT take it.
///
/// Redis: `zslParseRange` asks only that `strtod` stops at the end of the text. So leading white space, overflow
/// (`1e999` is infinite) and an empty number (`` and `(` are 0) pass; NaN does not.
pub fn parse_score_bound(text: &[u8]) -> Option<ScoreBound> {
    let (exclusive, number) = match text {
        [b'(', number @ ..] => (true, number),
        number => (false, number),
    };
    // The text is a C string there: a zero byte ends it.
    let number = number.split(|&byte| byte == 0).next().unwrap_or(number);
    if number.is_empty() {
        return Some(ScoreBound { value: 0.0, exclusive });
    }
    let parsed = strtod(number)?;
    (parsed.end == number.len()).then_some(ScoreBound { value: parsed.value, exclusive })
}

/// What `strtod` found.
pub(super) struct Number {
    pub(super) value: f64,
    /// Bytes taken.
    pub(super) end: usize,
    /// Overflowed to infinity, or a non-zero text became zero.
    pub(super) out_of_range: bool,
}

/// C's `isspace` in the C locale.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Where the parts of a number's text are.
pub(super) struct Scan {
    pub(super) kind: Kind,
    pub(super) negative: bool,
    /// Offset of the sign or first digit, behind white space.
    pub(super) start: usize,
    /// Offset of what follows the sign.
    pub(super) unsigned: usize,
    pub(super) end: usize,
    /// Some digit of the mantissa is not zero.
    pub(super) nonzero: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Decimal,
    Hexadecimal,
    Infinity,
}

/// Finds the longest number at the start of `text`. None: no number, or NaN (which Redis never takes).
pub(super) fn scan(text: &[u8]) -> Option<Scan> {
    let start = text.iter().take_while(|&&byte| is_space(byte)).count();
    let rest = text.get(start..)?;
    let (negative, sign) = match rest.first()? {
        b'-' => (true, 1),
        b'+' => (false, 1),
        _ => (false, 0),
    };
    let unsigned = start + sign;
    let body = text.get(unsigned..)?;
    let found = |kind, len, nonzero| Some(Scan { kind, negative, start, unsigned, end: unsigned + len, nonzero });
    if let [b'0', b'x' | b'X', hex @ ..] = body
        && let Some((len, nonzero)) = scan_mantissa(hex, u8::is_ascii_hexdigit)
    {
        let len = 2 + len;
        return found(Kind::Hexadecimal, len + scan_exponent(body.get(len..)?, b'p'), nonzero);
    }
    if let Some((len, nonzero)) = scan_mantissa(body, u8::is_ascii_digit) {
        return found(Kind::Decimal, len + scan_exponent(body.get(len..)?, b'e'), nonzero);
    }
    if body.get(..8).is_some_and(|word| word.eq_ignore_ascii_case(b"infinity")) {
        return found(Kind::Infinity, 8, true);
    }
    if body.get(..3).is_some_and(|word| word.eq_ignore_ascii_case(b"inf")) {
        return found(Kind::Infinity, 3, true);
    }
    None
}

/// Length of `digits [. digits]` with at least one digit, and whether one is not zero.
fn scan_mantissa(text: &[u8], is_digit: fn(&u8) -> bool) -> Option<(usize, bool)> {
    let (mut digits, mut point, mut nonzero, mut len) = (0_usize, false, false, 0);
    for byte in text {
        if is_digit(byte) {
            digits += 1;
            nonzero |= *byte != b'0';
        } else if *byte == b'.' && !point {
            point = true;
        } else {
            break;
        }
        len += 1;
    }
    (digits > 0).then_some((len, nonzero))
}

/// Length of `e [+-] digits`; 0 when it is not whole.
fn scan_exponent(text: &[u8], letter: u8) -> usize {
    let (Some(first), sign) = (text.first(), text.get(1)) else { return 0 };
    if first.to_ascii_lowercase() != letter {
        return 0;
    }
    let head = if matches!(sign, Some(b'+' | b'-')) { 2 } else { 1 };
    let digits = text.get(head..).unwrap_or(&[]).iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 { 0 } else { head + digits }
}

pub(super) fn strtod(text: &[u8]) -> Option<Number> {
    let scan = scan(text)?;
    let value = match scan.kind {
        Kind::Infinity => {
            let value = if scan.negative { f64::NEG_INFINITY } else { f64::INFINITY };
            return Some(Number { value, end: scan.end, out_of_range: false });
        }
        // The scanned bytes are ASCII and a number that Rust's parser takes too; it rounds correctly.
        Kind::Decimal => std::str::from_utf8(text.get(scan.start..scan.end)?).ok()?.parse().ok()?,
        Kind::Hexadecimal => {
            let magnitude = hexadecimal(text.get(scan.unsigned + 2..scan.end)?);
            if scan.negative { -magnitude } else { magnitude }
        }
    };
    let out_of_range = value.is_infinite() || (value == 0.0 && scan.nonzero);
    Some(Number { value, end: scan.end, out_of_range })
}

/// The value of `hex [. hex] [p [+-] digits]`, rounded half to even.
fn hexadecimal(text: &[u8]) -> f64 {
    // mantissa × 2^exponent; bits that do not fit are kept as one sticky bit at the bottom.
    let (mut mantissa, mut exponent, mut point) = (0_u64, 0_i64, false);
    let mut cursor = text.iter();
    for byte in cursor.by_ref() {
        let Some(digit) = char::from(*byte).to_digit(16) else {
            if *byte == b'.' {
                point = true;
                continue;
            }
            break;
        };
        if mantissa >> 59 == 0 {
            mantissa = mantissa << 4 | u64::from(digit);
            exponent -= if point { 4 } else { 0 };
        } else {
            mantissa |= u64::from(digit != 0);
            exponent += if point { 0 } else { 4 };
        }
    }
    exponent = exponent.saturating_add(exponent_value(cursor.as_slice()));
    scale(mantissa, exponent)
}

/// The value of an exponent's text, at its limits where it does not fit.
pub(super) fn exponent_value(text: &[u8]) -> i64 {
    let text = std::str::from_utf8(text).unwrap_or("");
    match text.parse::<i64>() {
        Ok(value) => value,
        // A million millions is far past any mantissa's length, and leaves room for sums.
        Err(error) => match error.kind() {
            IntErrorKind::PosOverflow => 1_000_000_000_000,
            IntErrorKind::NegOverflow => -1_000_000_000_000,
            _ => 0,
        },
    }
}

/// mantissa × 2^exponent, rounded half to even once, with gradual underflow.
fn scale(mantissa: u64, exponent: i64) -> f64 {
    if mantissa == 0 {
        return 0.0;
    }
    let length = i64::from(64 - mantissa.leading_zeros());
    // Exponent of the value's leading bit; the last kept bit is 52 below it, but never below 2^-1074.
    let leading = exponent.saturating_add(length - 1);
    if leading > 1023 {
        return f64::INFINITY;
    }
    let last = (leading - 52).max(-1074);
    let drop = last.saturating_sub(exponent);
    let kept = if drop <= 0 {
        mantissa << drop.unsigned_abs()
    } else if drop > 64 {
        0
    } else {
        let wide = u128::from(mantissa);
        let floor = wide >> drop;
        let rest = wide & ((1 << drop) - 1);
        let half = 1_u128 << (drop - 1);
        let up = rest > half || (rest == half && floor & 1 == 1);
        // At most 53 bits and one carry.
        u64::try_from(floor + u128::from(up)).unwrap_or(0)
    };
    if kept == 0 {
        return 0.0;
    }
    // `kept` has at most 2^53: exact. It lies at 2^last; two exact steps avoid an early underflow to zero.
    #[allow(clippy::cast_precision_loss)]
    let value = kept as f64;
    let power = |power: i64| f64::from_bits(u64::try_from(power + 1023).unwrap_or(0) << 52);
    if last < -1000 { value * power(-1000) * power(last + 1000) } else { value * power(last) }
}
