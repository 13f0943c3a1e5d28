//! Runs of equal registers.
//!
//! | byte(s)             | name  | stands for |
//! |---------------------|-------|------------|
//! | `00llllll`          | ZERO  | l + 1 zeros (1 to 64) |
//! | `01llllll llllllll` | XZERO | l + 1 zeros (1 to 16,384), high bits first |
//! | `1vvvvvll`          | VAL   | l + 1 times the value v + 1 (1 to 4 times 1 to 32) |
//!
//! A register is raised by splitting its run into up to three, then neighbours of equal value are joined. Which ones are
//! decides the bytes, so both are done as Redis does them.

use super::sketch::{Corrupt, HEADER, REGISTERS};
use smallvec::SmallVec;
use std::fmt::Write;

const ZERO_MAX: usize = 64;
const VAL_LEN_MAX: usize = 4;
const VAL_MAX: u8 = 32;
/// Runs looked at for joining after a change.
const JOIN_RUNS: usize = 5;

/// Equal registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Run {
    /// 0 to 32.
    pub(super) value: u8,
    /// At least 1.
    pub(super) len: usize,
}

/// What raising a register came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Set {
    /// It has that value or more.
    Unchanged,
    /// It has the value now.
    Changed,
    /// Only a dense one can hold that. Nothing was done.
    NoRoom,
}

fn is_val(byte: u8) -> bool {
    byte & 0x80 != 0
}

fn is_xzero(byte: u8) -> bool {
    byte & 0xC0 == 0x40
}

/// The run at a place and how many bytes it takes; `None`: the bytes end. An XZERO without its second byte is corrupt.
fn run_at(body: &[u8], at: usize) -> Option<Result<(Run, usize), Corrupt>> {
    let first = *body.get(at)?;
    let low = usize::from(first & 0x3F);
    Some(Ok(match first {
        _ if is_val(first) => (Run { value: (first >> 2 & 0x1F) + 1, len: usize::from(first & 3) + 1 }, 1),
        _ if is_xzero(first) => match body.get(at + 1) {
            Some(second) => (Run { value: 0, len: (low << 8 | usize::from(*second)) + 1 }, 2),
            None => return Some(Err(Corrupt)),
        },
        _ => (Run { value: 0, len: low + 1 }, 1),
    }))
}

/// All runs; the first corrupt one is the last.
pub(super) fn runs(body: &[u8]) -> impl Iterator<Item = Result<Run, Corrupt>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let run = run_at(body, at)?;
        Some(
            run.map(|(run, size)| {
                at += size;
                run
            })
            .inspect_err(|_| at = body.len()),
        )
    })
}

/// The runs as PFDEBUG DECODE shows them.
pub(super) fn decode(body: &[u8]) -> Result<String, Corrupt> {
    let mut text = String::new();
    let mut at = 0;
    while let Some(run) = run_at(body, at) {
        let (Run { value, len }, size) = run?;
        let gap = if at == 0 { "" } else { " " };
        // Writing to a string cannot fail.
        let _ = match (value, size) {
            (0, 1) => write!(text, "{gap}z:{len}"),
            (0, _) => write!(text, "{gap}Z:{len}"),
            _ => write!(text, "{gap}v:{value},{len}"),
        };
        at += size;
    }
    Ok(text)
}

/// A VAL run.
fn val(value: u8, len: usize) -> u8 {
    let len = u8::try_from(len.clamp(1, VAL_LEN_MAX) - 1).unwrap_or(0);
    0x80 | (value.clamp(1, VAL_MAX) - 1) << 2 | len
}

/// Appends a ZERO or XZERO run of up to 16,384.
pub(super) fn push_zeros(out: &mut impl Extend<u8>, len: usize) {
    let low = len.clamp(1, REGISTERS) - 1;
    if len > ZERO_MAX {
        out.extend([0x40 | (low >> 8).to_le_bytes()[0], low.to_le_bytes()[0]]);
    } else {
        out.extend([low.to_le_bytes()[0]]);
    }
}

/// Sets a register unless it has that value or more. `sparse_max` is of the whole string with its header.
pub(super) fn raise(bytes: &mut Vec<u8>, index: usize, value: u8, sparse_max: usize) -> Result<Set, Corrupt> {
    if value > VAL_MAX {
        return Ok(Set::NoRoom);
    }
    // The run of the register, where it starts (as a place and as a register), and where the one before it does.
    let (mut at, mut first, mut previous) = (HEADER, 0, HEADER);
    let (run, size) = loop {
        let (run, size) = run_at(bytes, at).ok_or(Corrupt)??;
        if index < first + run.len {
            break (run, size);
        }
        previous = at;
        at += size;
        first += run.len;
    };
    if run.value >= value {
        return Ok(Set::Unchanged);
    }
    let mut parts: SmallVec<[u8; 8]> = SmallVec::new();
    let (before, after) = (index - first, first + run.len - 1 - index);
    let push_rest = |parts: &mut SmallVec<[u8; 8]>, len: usize| match (len, run.value) {
        (0, _) => {}
        (_, 0) => push_zeros(parts, len),
        (_, old) => parts.push(val(old, len)),
    };
    push_rest(&mut parts, before);
    parts.push(val(value, 1));
    push_rest(&mut parts, after);
    if parts.len() > size && bytes.len() + (parts.len() - size) > sparse_max {
        return Ok(Set::NoRoom);
    }
    bytes.splice(at..at + size, parts);
    join(bytes, previous);
    Ok(Set::Changed)
}

/// Joins neighbours of equal value from a run on.
fn join(bytes: &mut Vec<u8>, from: usize) {
    let mut at = from;
    for _ in 0..JOIN_RUNS {
        let Some(&byte) = bytes.get(at) else { return };
        if !is_val(byte) {
            at += if is_xzero(byte) { 2 } else { 1 };
            continue;
        }
        if let Some(&next) = bytes.get(at + 1)
            && is_val(next)
            && byte >> 2 == next >> 2
        {
            let len = usize::from(byte & 3) + usize::from(next & 3) + 2;
            if len <= VAL_LEN_MAX {
                bytes.remove(at);
                if let Some(place) = bytes.get_mut(at) {
                    *place = val((byte >> 2 & 0x1F) + 1, len);
                }
                continue;
            }
        }
        at += 1;
    }
}
