//! Whole strings of bits: BITCOUNT, BITPOS, BITOP.

use crate::ctx::Ctx;
use crate::error::{CmdError, CmdResult, SYNTAX};
use crate::options::{int, is_word};
use keyspace::{NotifyClass, SetTtl, Value};
use resp::Args;
use std::ops::Range;

/// Bytes counted or searched in the time that other commands take for one element.
pub(super) const COUNTED_BYTES_PER_ELEMENT: usize = 256;
/// Bytes combined in that time.
pub(super) const COMBINED_BYTES_PER_ELEMENT: usize = 64;

/// Whether indices count bits; the words BIT and BYTE.
fn is_bit_unit(word: Option<&[u8]>) -> Result<bool, CmdError> {
    match word {
        None => Ok(false),
        Some(word) if is_word(word, "bit") => Ok(true),
        Some(word) if is_word(word, "byte") => Ok(false),
        Some(_) => Err(SYNTAX),
    }
}

/// The bits that a start and an end (both included, negative from the end) name in a string of `len` bytes.
fn bit_range(start: i64, end: i64, in_bits: bool, len: usize) -> Range<usize> {
    let unit = if in_bits { 1 } else { 8 };
    let total = i64::try_from(len.saturating_mul(8 / unit)).unwrap_or(i64::MAX);
    let from_start = |index: i64| if index < 0 { index.saturating_add(total).max(0) } else { index };
    let (start, end) = (from_start(start), from_start(end).min(total - 1));
    match (usize::try_from(start), usize::try_from(end)) {
        (Ok(start), Ok(end)) if start <= end => start * unit..(end + 1) * unit,
        _ => 0..0,
    }
}

/// A byte of `bytes` with the bits outside of `bits` cleared.
fn masked(bytes: &[u8], index: usize, bits: &Range<usize>) -> u8 {
    let mut byte = bytes.get(index).copied().unwrap_or(0);
    if index == bits.start / 8 {
        byte &= 0xFF >> (bits.start % 8);
    }
    if index == bits.end / 8 {
        byte &= !(0xFF >> (bits.end % 8));
    }
    byte
}

/// Ones among the bits of a range within the string.
fn count_ones(bytes: &[u8], bits: &Range<usize>) -> usize {
    if bits.is_empty() {
        return 0;
    }
    let (first, last) = (bits.start / 8, (bits.end - 1) / 8);
    let mut count = masked(bytes, first, bits).count_ones() as usize;
    if last > first {
        count += masked(bytes, last, bits).count_ones() as usize;
        let middle = bytes.get(first + 1..last).unwrap_or(&[]);
        let (words, rest) = middle.as_chunks::<8>();
        count += words.iter().map(|word| u64::from_ne_bytes(*word).count_ones() as usize).sum::<usize>();
        count += rest.iter().map(|byte| byte.count_ones() as usize).sum::<usize>();
    }
    count
}

/// Index of the first bit that is `wanted` among those of a range within the string.
fn find_bit(bytes: &[u8], wanted: bool, bits: &Range<usize>) -> Option<usize> {
    let flip = if wanted { 0 } else { 0xFF };
    let mut index = bits.start;
    while index < bits.end {
        if index.is_multiple_of(8) {
            // Pass over whole words without the bit.
            let whole = bytes.get(index / 8..bits.end / 8).unwrap_or(&[]);
            let (words, _) = whole.as_chunks::<8>();
            let dull = u64::from_ne_bytes([flip; 8]);
            index += 64 * words.iter().take_while(|word| u64::from_ne_bytes(**word) == dull).count();
            if index >= bits.end {
                break;
            }
        }
        let byte = (bytes.get(index / 8).copied().unwrap_or(0) ^ flip) & (0xFF >> (index % 8));
        let start = index / 8 * 8;
        if byte != 0 {
            let found = start + byte.leading_zeros() as usize;
            return (found < bits.end).then_some(found);
        }
        index = start + 8;
    }
    None
}

/// BITCOUNT key [start end [BIT | BYTE]]
pub(super) fn bitcount(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    // Redis looks at the key first: without it nothing is wrong with the rest.
    let Some(string) = ctx.db.read_str(args.at(1))? else {
        ctx.out.int(0);
        return Ok(());
    };
    let mut digits = itoa::Buffer::new();
    let bytes = string.as_bytes(&mut digits);
    let bits = match args.len() {
        2 => 0..bytes.len().saturating_mul(8),
        4 | 5 => {
            let (start, end) = (int(args.at(2))?, int(args.at(3))?);
            // Redis: a backward range of two indices from the end is empty before the unit is read.
            if start < 0 && end < 0 && start > end {
                0..0
            } else {
                bit_range(start, end, is_bit_unit(args.get(4))?, bytes.len())
            }
        }
        _ => return Err(SYNTAX),
    };
    let count = count_ones(bytes, &bits);
    ctx.out.count(count);
    Ok(())
}

/// BITPOS key bit [start [end [BIT | BYTE]]]
pub(super) fn bitpos(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let wanted = match int(args.at(2))? {
        0 => false,
        1 => true,
        _ => return Err(CmdError::new("ERR The bit argument must be 1 or 0.")),
    };
    let Some(string) = ctx.db.read_str(args.at(1))? else {
        ctx.out.int(if wanted { -1 } else { 0 });
        return Ok(());
    };
    let mut digits = itoa::Buffer::new();
    let bytes = string.as_bytes(&mut digits);
    let bits = match args.len() {
        3 => 0..bytes.len().saturating_mul(8),
        4..=6 => {
            let start = int(args.at(3))?;
            let in_bits = is_bit_unit(args.get(5))?;
            let end = args.get(4).map_or(Ok(i64::MAX), int)?;
            bit_range(start, end, in_bits, bytes.len())
        }
        _ => return Err(SYNTAX),
    };
    let found = match find_bit(bytes, wanted, &bits) {
        Some(index) => i64::try_from(index).unwrap_or(i64::MAX),
        // Without an end the zero bits behind the string count.
        None if !wanted && args.len() < 5 && !bits.is_empty() => i64::try_from(bits.end).unwrap_or(i64::MAX),
        None => -1,
    };
    ctx.out.int(found);
    Ok(())
}

/// What BITOP does with the bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Op {
    And,
    Or,
    Xor,
    Not,
}

impl Op {
    fn read(word: &[u8]) -> Result<Op, CmdError> {
        [("and", Op::And), ("or", Op::Or), ("xor", Op::Xor), ("not", Op::Not)]
            .into_iter()
            .find_map(|(name, op)| is_word(word, name).then_some(op))
            .ok_or(SYNTAX)
    }

    /// Combines a further source into the result so far; the shorter goes on with zero bytes.
    fn combine(self, result: &mut Vec<u8>, source: &[u8]) {
        if result.len() < source.len() {
            result.resize(source.len(), 0);
        }
        let (common, beyond) = result.split_at_mut(source.len());
        let pairs = common.iter_mut().zip(source);
        match self {
            Op::And => {
                pairs.for_each(|(byte, other)| *byte &= other);
                beyond.fill(0);
            }
            Op::Or => pairs.for_each(|(byte, other)| *byte |= other),
            Op::Xor => pairs.for_each(|(byte, other)| *byte ^= other),
            Op::Not => {}
        }
    }
}

/// BITOP op destination key …
pub(super) fn bitop(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let op = Op::read(args.at(1))?;
    if op == Op::Not && args.len() != 4 {
        return Err(CmdError::new("ERR BITOP NOT must be called with a single source key."));
    }
    let destination = args.at(2);
    let mut result = Vec::new();
    for (index, key) in args.slice(3).iter().enumerate() {
        let string = ctx.db.read_str(key)?;
        let mut digits = itoa::Buffer::new();
        let bytes = string.map_or(&[][..], |string| string.as_bytes(&mut digits));
        if index == 0 {
            result.extend_from_slice(bytes);
        } else {
            op.combine(&mut result, bytes);
        }
    }
    if op == Op::Not {
        result.iter_mut().for_each(|byte| *byte = !*byte);
    }
    let len = result.len();
    if len > 0 {
        ctx.db.set(destination, Value::RawStr(result), SetTtl::Clear);
        ctx.db.changed(NotifyClass::STRING, "set", destination);
    } else if ctx.db.remove(destination) {
        ctx.db.changed(NotifyClass::GENERIC, "del", destination);
    }
    ctx.out.count(len);
    Ok(())
}
