//! Texts of doubles: Redis 7.2's replies, and C's `%.17g`.
//!
//! The two differ for many values (`3.1` against `3.1000000000000001`): Redis 7.0 wrote `%.17g`, 7.2 writes the shortest
//! digits of Grisu2. Which one a text follows is part of its protocol.

use std::io::Write;

use super::grisu2;

/// Bytes that hold the text of any double.
pub const DOUBLE_TEXT_MAX: usize = 32;

/// Appends the text of `value` as Redis 7.2 replies it. See [`format_double`].
#[inline]
pub fn write_double(out: &mut Vec<u8>, value: f64) {
    out.extend_from_slice(format_double(value, &mut [0; DOUBLE_TEXT_MAX]));
}

/// Puts the text of `value` into `scratch` as Redis 7.2 replies it, and gives it.
///
/// Redis: `d2string`. `nan`, `inf`, `-inf`, `0`, `-0`; integers of up to 2⁶² in full (`1e15` is
/// `1000000000000000`); else Grisu2's digits as a plain integer (up to seven zeros behind the digits), a plain decimal
/// (up to six places, or down to 10⁻³), or `d.ddde±x`.
#[inline]
pub fn format_double(value: f64, scratch: &mut [u8; DOUBLE_TEXT_MAX]) -> &[u8] {
    write_into(scratch, value, true)
}

/// Appends Grisu2's text of `value` whether or not it is an integer: `10000000000` is `1e+10`. Redis: `fpconv_dtoa`, where
/// it is called without a look at the value before, as for digests.
pub fn write_double_grisu(out: &mut Vec<u8>, value: f64) {
    out.extend_from_slice(write_into(&mut [0; DOUBLE_TEXT_MAX], value, false));
}

#[inline]
fn write_into(scratch: &mut [u8; DOUBLE_TEXT_MAX], value: f64, integers_in_full: bool) -> &[u8] {
    let mut text = Text { bytes: scratch, len: 0 };
    if value.is_nan() {
        text.push_all(b"nan");
    } else if value.is_infinite() {
        text.push_all(if value < 0.0 { b"-inf" } else { b"inf" });
    } else if value == 0.0 {
        text.push_all(if value.is_sign_negative() { b"-0" } else { b"0" });
    } else if let Some(integer) = exact_integer(value).filter(|_| integers_in_full) {
        text.push_all(itoa::Buffer::new().format(integer).as_bytes());
    } else {
        if value < 0.0 {
            text.push(b'-');
        }
        let digits = grisu2::shortest(value.abs());
        lay_out(&mut text, digits.as_bytes(), digits.exponent, value < 0.0);
    }
    let Text { bytes, len } = text;
    bytes.get(..len).unwrap_or(&[])
}

/// The integer that `value` is, if it is one of at most 2⁶² in size.
#[inline]
pub(super) fn exact_integer(value: f64) -> Option<i64> {
    const LIMIT: f64 = 4_611_686_018_427_387_904.0;
    if !(-LIMIT..=LIMIT).contains(&value) {
        return None;
    }
    // In range, so the cast cannot saturate; it only cuts the fraction.
    #[allow(clippy::cast_possible_truncation)]
    let integer = value as i64;
    #[allow(clippy::cast_precision_loss)]
    (integer as f64 == value).then_some(integer)
}

/// Output of known bound: writes past the scratch are dropped instead of panicking (none happen: see the bound's test).
struct Text<'a> {
    bytes: &'a mut [u8; DOUBLE_TEXT_MAX],
    len: usize,
}

impl Text<'_> {
    fn push(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.len) {
            *place = byte;
            self.len += 1;
        }
    }

    fn push_all(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.push(byte));
    }

    fn push_zeros(&mut self, count: i32) {
        (0..count).for_each(|_| self.push(b'0'));
    }
}

/// Writes `digits` × 10^`exponent` in the layout Redis 7.2 chooses.
fn lay_out(text: &mut Text<'_>, digits: &[u8], exponent: i32, negative: bool) {
    // There are at most 17 digits.
    let count = i32::try_from(digits.len()).unwrap_or(0);
    let scientific = exponent + count - 1;
    let size = scientific.abs();
    if exponent >= 0 && size < count + 7 {
        text.push_all(digits);
        text.push_zeros(exponent);
    } else if exponent < 0 && (exponent > -7 || size < 4) {
        let whole = count + exponent;
        if whole <= 0 {
            text.push_all(b"0.");
            text.push_zeros(-whole);
            text.push_all(digits);
        } else {
            let (integer, fraction) = digits.split_at_checked(whole.unsigned_abs() as usize).unwrap_or((digits, &[]));
            text.push_all(integer);
            text.push(b'.');
            text.push_all(fraction);
        }
    } else {
        // Redis: its buffer leaves one digit less behind a minus.
        let digits = digits.get(..18 - usize::from(negative)).unwrap_or(digits);
        let (first, rest) = digits.split_at_checked(1).unwrap_or((digits, &[]));
        text.push_all(first);
        if !rest.is_empty() {
            text.push(b'.');
            text.push_all(rest);
        }
        text.push(b'e');
        text.push(if scientific < 0 { b'-' } else { b'+' });
        text.push_all(itoa::Buffer::new().format(size).as_bytes());
    }
}

/// Appends the text of `value` as C's `printf("%.17g")` gives it: RDB's old scores, Lua's numbers, Redis 7.0's replies.
pub fn write_double_17g(out: &mut Vec<u8>, value: f64) {
    out.extend_from_slice(format_double_17g(value, &mut [0; DOUBLE_TEXT_MAX]));
}

/// Puts the text of `value` into `scratch` as C's `printf("%.17g")` gives it, and gives it.
pub fn format_double_17g(value: f64, scratch: &mut [u8; DOUBLE_TEXT_MAX]) -> &[u8] {
    let mut text = Text { bytes: scratch, len: 0 };
    if value.is_sign_negative() && !value.is_nan() {
        text.push(b'-');
    }
    let magnitude = value.abs();
    if value.is_nan() {
        text.push_all(if value.is_sign_negative() { b"-nan" } else { b"nan" });
    } else if value.is_infinite() {
        text.push_all(b"inf");
    } else if value == 0.0 {
        text.push(b'0');
    } else {
        lay_out_17g(&mut text, magnitude);
    }
    let Text { bytes, len } = text;
    bytes.get(..len).unwrap_or(&[])
}

fn lay_out_17g(text: &mut Text<'_>, magnitude: f64) {
    // Seventeen significant digits, correctly rounded: "d.dddddddddddddddde-308".
    let mut plain = [0_u8; DOUBLE_TEXT_MAX];
    let mut unwritten = plain.as_mut_slice();
    let written = write!(unwritten, "{magnitude:.16e}").is_ok();
    let left = unwritten.len();
    let plain = plain.get(..DOUBLE_TEXT_MAX - left).unwrap_or(&[]);
    let Some(at) = plain.iter().position(|&byte| byte == b'e').filter(|_| written) else { return };
    let exponent: i32 = std::str::from_utf8(plain.get(at + 1..).unwrap_or(&[])).unwrap_or("").parse().unwrap_or(0);
    let mut digits = [b'0'; 17];
    let mut count = 0;
    for &byte in plain.iter().take(at).filter(|&&byte| byte != b'.') {
        if let Some(place) = digits.get_mut(count) {
            *place = byte;
            count += 1;
        }
    }
    while count > 1 && digits.get(count - 1) == Some(&b'0') {
        count -= 1;
    }
    let digits = digits.get(..count).unwrap_or(&[]);
    let count = i32::try_from(count).unwrap_or(0);
    if !(-4..17).contains(&exponent) {
        let (first, rest) = digits.split_at_checked(1).unwrap_or((digits, &[]));
        text.push_all(first);
        if !rest.is_empty() {
            text.push(b'.');
            text.push_all(rest);
        }
        text.push(b'e');
        text.push(if exponent < 0 { b'-' } else { b'+' });
        if exponent.abs() < 10 {
            text.push(b'0');
        }
        text.push_all(itoa::Buffer::new().format(exponent.abs()).as_bytes());
    } else if exponent < 0 {
        text.push_all(b"0.");
        text.push_zeros(-exponent - 1);
        text.push_all(digits);
    } else if count <= exponent + 1 {
        text.push_all(digits);
        text.push_zeros(exponent + 1 - count);
    } else {
        let (integer, fraction) =
            digits.split_at_checked(exponent.unsigned_abs() as usize + 1).unwrap_or((digits, &[]));
        text.push_all(integer);
        text.push(b'.');
        text.push_all(fraction);
    }
}
