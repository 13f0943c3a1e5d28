//! What hashes, sets and sorted sets have in common: elements in replies, the arguments of the SCAN family, and the
//! counts of the random commands.

use crate::error::{CmdError, CmdResult, NOT_AN_INTEGER, SYNTAX};
use crate::options;
use keyspace::glob;
use rdb::listpack::Elem;
use resp::{Args, Reply};

/// Writes an element of a container as a bulk.
#[inline]
pub(crate) fn write_elem(out: &mut Reply, element: Elem<'_>) {
    match element {
        Elem::Bytes(text) => out.bulk(text),
        Elem::Int(value) => out.bulk_int(value),
    }
}

/// The cursor of a SCAN command.
///
/// Redis reads it with C's `strtoul`: one sign is allowed (a minus negates modulo 2⁶⁴), an empty text is 0, and the
/// text ends at its first zero byte.
///
/// # Errors
/// Anything else.
pub fn cursor(argument: &[u8]) -> Result<u64, CmdError> {
    const INVALID: CmdError = CmdError::new("ERR invalid cursor");
    let text = argument.split(|byte| *byte == 0).next().unwrap_or_default();
    if text.is_empty() {
        return Ok(0);
    }
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() {
        return Err(INVALID);
    }
    let mut value = 0_u64;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return Err(INVALID);
        }
        value = value.checked_mul(10).and_then(|value| value.checked_add(u64::from(digit))).ok_or(INVALID)?;
    }
    Ok(if negative { value.wrapping_neg() } else { value })
}

/// COUNT and MATCH of a command that scans one container.
pub(crate) struct ScanOptions<'a> {
    /// About how many elements to visit.
    pub(crate) count: usize,
    /// Which of them to give; `None`: all.
    pattern: Option<&'a [u8]>,
}

impl<'a> ScanOptions<'a> {
    /// COUNT when it is not given.
    const COUNT: usize = 10;

    /// Reads the arguments behind the cursor.
    ///
    /// # Errors
    /// An unknown word, or a COUNT that is no positive integer.
    pub(crate) fn parse(args: Args<'a>) -> Result<Self, CmdError> {
        Self::parse_words(args, |_| false)
    }

    /// The same for HSCAN, which takes NOVALUES, too (Redis 7.4): also whether values are wanted.
    ///
    /// # Errors
    /// As [`ScanOptions::parse`].
    pub(crate) fn parse_hash(args: Args<'a>) -> Result<(Self, bool), CmdError> {
        let mut with_values = true;
        let options = Self::parse_words(args, |word| {
            let is_other = options::is_word(word, "novalues");
            with_values &= !is_other;
            is_other
        })?;
        Ok((options, with_values))
    }

    fn parse_words(args: Args<'a>, mut is_other: impl FnMut(&[u8]) -> bool) -> Result<Self, CmdError> {
        let mut options = ScanOptions { count: Self::COUNT, pattern: None };
        let mut args = args.iter();
        while let Some(word) = args.next() {
            if is_other(word) {
                continue;
            }
            let value = args.next().ok_or(SYNTAX)?;
            if options::is_word(word, "count") {
                let count = options::int(value)?;
                options.count = usize::try_from(count).ok().filter(|count| *count > 0).ok_or(SYNTAX)?;
            } else if options::is_word(word, "match") {
                options.pattern = Some(value).filter(|pattern| *pattern != b"*");
            } else {
                return Err(SYNTAX);
            }
        }
        Ok(options)
    }

    /// Whether an element is asked for, by its name.
    pub(crate) fn wants(&self, element: Elem<'_>) -> bool {
        self.pattern.is_none_or(|pattern| glob::matches(pattern, element.to_bytes(&mut [0; 24]), false))
    }
}

/// Writes the reply of a SCAN command: the next cursor, then what `visit` writes. `visit` answers the next cursor and
/// how many replies it wrote; as the cursor comes first, the elements are moved behind it.
pub(crate) fn reply_scan(out: &mut Reply, visit: impl FnOnce(&mut Reply) -> (u64, usize)) {
    let mut elements = Reply::with_buffer(Vec::new(), out.proto());
    let (next, count) = visit(&mut elements);
    out.array(2);
    out.bulk_fmt(format_args!("{next}"));
    out.array(count);
    out.raw(elements.as_slice());
}

/// The reply of a SCAN command on a key that is not there.
pub(crate) fn empty_scan(out: &mut Reply) -> CmdResult {
    out.array(2);
    out.bulk(b"0");
    out.empty_array();
    Ok(())
}

/// How many random elements a command wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RandomCount {
    /// Different ones, at most as many as there are.
    Distinct(usize),
    /// Each drawn from all.
    Repeats(usize),
}

impl RandomCount {
    /// Reads the count of HRANDFIELD and its like: negative means with repeats.
    ///
    /// # Errors
    /// Not an integer, or −2⁶³, which has no absolute value.
    pub(crate) fn parse(argument: &[u8]) -> Result<Self, CmdError> {
        const OUT_OF_RANGE: CmdError =
            CmdError::new("ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807");
        let number = options::int(argument)?;
        if number == i64::MIN {
            return Err(OUT_OF_RANGE);
        }
        let count = usize::try_from(number.unsigned_abs()).map_err(|_| NOT_AN_INTEGER)?;
        Ok(if number >= 0 { RandomCount::Distinct(count) } else { RandomCount::Repeats(count) })
    }

    /// Refuses a count whose double would overflow: each element comes with a value or score.
    ///
    /// # Errors
    /// Such a count.
    pub(crate) fn check_pairs(self) -> Result<(), CmdError> {
        let (RandomCount::Distinct(count) | RandomCount::Repeats(count)) = self;
        let is_small = i64::try_from(count).is_ok_and(|count| count <= i64::MAX / 2);
        if is_small { Ok(()) } else { Err(CmdError::new("ERR value is out of range")) }
    }

    /// How many elements that gives from a container of `len`.
    pub(crate) fn of(self, len: usize) -> usize {
        match self {
            RandomCount::Distinct(count) => count.min(len),
            RandomCount::Repeats(count) if len > 0 => count,
            RandomCount::Repeats(_) => 0,
        }
    }
}

/// Writes `count` random elements, drawn with repeats, in batches: `draw` writes as many as it is asked for.
///
/// The count is the client's and may be anything, so nothing is sized by it, and a reply that memory cannot hold is
/// refused. Redis draws as many at once.
///
/// # Errors
/// No memory for the reply.
pub(crate) fn draw_in_batches(out: &mut Reply, count: usize, mut draw: impl FnMut(&mut Reply, usize)) -> CmdResult {
    const BATCH: usize = 1000;
    const NO_MEMORY: CmdError = CmdError::new("ERR not enough memory for the reply");
    let mut left = count;
    while left > 0 {
        let batch = left.min(BATCH);
        out.buf.try_reserve(batch * 16).map_err(|_| NO_MEMORY)?;
        draw(out, batch);
        left -= batch;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    #[test]
    fn cursors_are_read_as_strtoul_does() {
        for (text, expected) in [
            ("0", Some(0)),
            ("", Some(0)),
            ("00012", Some(12)),
            ("+5", Some(5)),
            ("-1", Some(u64::MAX)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("7\0junk", Some(7)),
            ("\0", Some(0)),
            (" 1", None),
            ("1 ", None),
            ("-", None),
            ("+-1", None),
            ("0x10", None),
        ] {
            assert_eq!(cursor(text.as_bytes()).ok(), expected, "{text:?}");
        }
    }

    #[test]
    fn random_counts_know_their_sign() {
        assert_eq!(RandomCount::parse(b"3").unwrap(), RandomCount::Distinct(3));
        assert_eq!(RandomCount::parse(b"-3").unwrap(), RandomCount::Repeats(3));
        assert_eq!(RandomCount::parse(b"3").unwrap().of(2), 2);
        assert_eq!(RandomCount::parse(b"-3").unwrap().of(2), 3);
        assert_eq!(RandomCount::parse(b"-3").unwrap().of(0), 0);
        assert!(RandomCount::parse(b"-9223372036854775808").is_err());
        assert!(RandomCount::parse(b"4611686018427387904").unwrap().check_pairs().is_err());
        assert!(RandomCount::parse(b"-4611686018427387903").unwrap().check_pairs().is_ok());
    }
}
