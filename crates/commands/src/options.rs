//! Reading arguments: numbers, ranges and option words, with the errors Redis gives.

use crate::error::{
    CmdError, DB_OUT_OF_RANGE, MUST_BE_POSITIVE, NOT_A_FLOAT, NOT_AN_INTEGER, TIMEOUT_NEGATIVE, TIMEOUT_NOT_A_FLOAT,
    TIMEOUT_OUT_OF_RANGE,
};

/// Whether an argument is this word, in any case. `word` is lower case.
#[inline]
pub fn is_word(argument: &[u8], word: &str) -> bool {
    argument.eq_ignore_ascii_case(word.as_bytes())
}

/// A 64-bit integer.
///
/// # Errors
/// Redis' text for anything else.
pub fn int(argument: &[u8]) -> Result<i64, CmdError> {
    resp::num::parse_i64(argument).ok_or(NOT_AN_INTEGER)
}

/// A 64-bit integer within bounds; `error` otherwise.
///
/// # Errors
/// `error`.
pub fn int_in(argument: &[u8], from: i64, to: i64, error: CmdError) -> Result<i64, CmdError> {
    match resp::num::parse_i64(argument) {
        Some(number) if (from..=to).contains(&number) => Ok(number),
        _ => Err(error),
    }
}

/// An integer of at least 0, as COUNT-like arguments take it.
///
/// # Errors
/// Not an integer, or negative, as Redis' getPositiveLongFromObject says.
pub fn non_negative(argument: &[u8]) -> Result<usize, CmdError> {
    match resp::num::parse_i64(argument) {
        Some(number) => usize::try_from(number).map_err(|_| MUST_BE_POSITIVE),
        None => Err(MUST_BE_POSITIVE),
    }
}

/// A float.
///
/// # Errors
/// Redis' text for anything else.
pub fn float(argument: &[u8]) -> Result<f64, CmdError> {
    resp::num::parse_f64(argument).ok_or(NOT_A_FLOAT)
}

/// A database number.
///
/// # Errors
/// Not a number, or not below `databases`.
pub fn db(argument: &[u8], databases: u32) -> Result<u32, CmdError> {
    let number = int(argument)?;
    u32::try_from(number).ok().filter(|number| *number < databases).ok_or(DB_OUT_OF_RANGE)
}

/// The timeout of a blocking command in seconds (fractions allowed), as the Unix time in ms at which it ends; `None`:
/// never.
///
/// # Errors
/// Not a float, negative, or too far away.
pub fn deadline(argument: &[u8], now_ms: i64) -> Result<Option<i64>, CmdError> {
    let seconds = resp::num::parse_f64(argument).ok_or(TIMEOUT_NOT_A_FLOAT)?;
    let millis = (seconds * 1000.0).ceil();
    if millis > 9_223_372_036_854_775_000.0 {
        return Err(TIMEOUT_OUT_OF_RANGE);
    }
    if millis < 0.0 {
        return Err(TIMEOUT_NEGATIVE);
    }
    #[allow(clippy::cast_possible_truncation)]
    let millis = millis as i64;
    if millis == 0 {
        return Ok(None);
    }
    now_ms.checked_add(millis).map(Some).ok_or(TIMEOUT_OUT_OF_RANGE)
}

/// Clips a start and a stop index (negative: from the end) to a sequence of `len` as the range commands do. `None`:
/// nothing is left.
pub fn clip(start: i64, stop: i64, len: usize) -> Option<(usize, usize)> {
    let count = i64::try_from(len).unwrap_or(i64::MAX);
    let start = if start < 0 { (start + count).max(0) } else { start };
    let stop = if stop < 0 { stop + count } else { stop };
    if start > stop || start >= count || stop < 0 {
        return None;
    }
    Some((usize::try_from(start).ok()?, usize::try_from(stop.min(count - 1)).ok()?))
}

/// A number of 32 bits with a sign.
///
/// # Errors
/// Not a number, or one that does not fit.
pub fn int32(argument: &[u8]) -> Result<i32, CmdError> {
    const NOT_32_BITS: CmdError =
        CmdError::new("ERR value is out of range, value must between -2147483648 and 2147483647");
    i32::try_from(int(argument)?).map_err(|_| NOT_32_BITS)
}
