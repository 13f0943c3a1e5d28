//! Number texts exactly as Redis reads and writes them.
//!
//! * 64-bit integers: only the canonical text is a number ([`parse_i64`]), so that number → text gives back the bytes.
//! * Doubles: what C's `strtod` takes, minus what Redis refuses ([`parse_f64`], [`parse_score_bound`]); written as
//!   Redis 7.2 does ([`write_double`], Grisu2) or as C's `%.17g` does ([`write_double_17g`]).
//! * x87 long doubles ([`LongDouble`]): INCRBYFLOAT and HINCRBYFLOAT calculate and print with them.
//!
//! Hot path: the integer functions and [`write_double`] allocate nothing beyond growth of the output.

mod float_parse;
mod float_write;
mod grisu2;
mod grisu2_powers;
mod long_double;
#[cfg(test)]
mod tests;

pub use float_parse::{ScoreBound, parse_f64, parse_score_bound};
pub use float_write::{
    DOUBLE_TEXT_MAX, format_double, format_double_17g, write_double, write_double_17g, write_double_grisu,
};
pub use long_double::LongDouble;

/// Bytes of the longest 64-bit integer text, `-9223372036854775808`.
pub const INT_TEXT_MAX: usize = 20;

/// The number that `text` is the canonical text of: `0`, or an optional minus and digits that begin with 1–9.
///
/// Redis: `string2ll`. `+1`, ` 1`, `01`, `-0`, an empty text and anything out of range are no integers.
#[inline]
pub fn parse_i64(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    let (&first, rest) = digits.split_first()?;
    match first {
        b'1'..=b'9' => {}
        b'0' if rest.is_empty() && !negative => return Some(0),
        _ => return None,
    }
    // Nineteen digits always fit 64 bits unsigned, and no i64 has more.
    if rest.len() > 18 {
        return None;
    }
    let mut magnitude = u64::from(first - b'0');
    for &byte in rest {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        magnitude = magnitude * 10 + u64::from(digit);
    }
    if negative { 0_i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

/// An unsigned 64-bit integer as Redis reads stream ids.
///
/// Redis: `string2ull`. A canonical integer must not be negative; any other text is given to C's `strtoull`, which
/// allows leading white space, one sign (a minus negates modulo 2⁶⁴) and leading zeros, but no number past 2⁶⁴ − 1.
pub fn parse_u64(text: &[u8]) -> Option<u64> {
    if let Some(value) = parse_i64(text) {
        return u64::try_from(value).ok();
    }
    parse_wrapping_u64(text.trim_ascii_start())
}

/// What C's `strtoull` reads behind white space: one sign at most (a minus negates modulo 2⁶⁴) and digits to the end.
pub fn parse_wrapping_u64(text: &[u8]) -> Option<u64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() {
        return None;
    }
    let mut value = 0_u64;
    for &byte in digits {
        if !byte.is_ascii_digit() {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(byte - b'0'))?;
    }
    Some(if negative { value.wrapping_neg() } else { value })
}

/// Appends the decimal text of `value`.
#[inline]
pub fn write_int(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Puts the decimal text of `value` into `scratch` and gives it.
#[inline]
pub fn format_int(value: i64, scratch: &mut [u8; 24]) -> &[u8] {
    let mut buffer = itoa::Buffer::new();
    let text = buffer.format(value).as_bytes();
    // A 64-bit integer's text has at most INT_TEXT_MAX bytes.
    match scratch.get_mut(..text.len()) {
        Some(place) => {
            place.copy_from_slice(text);
            place
        }
        None => &[],
    }
}

/// Decimal digits of `value`: 1 for 0.
#[inline]
pub fn digit_count(value: u64) -> usize {
    value.checked_ilog10().map_or(1, |log| log as usize + 1)
}

/// Bytes of the decimal text of `value`, sign included.
#[inline]
pub fn int_text_len(value: i64) -> usize {
    digit_count(value.unsigned_abs()) + usize::from(value < 0)
}

const _: () = assert!(INT_TEXT_MAX <= 24);
