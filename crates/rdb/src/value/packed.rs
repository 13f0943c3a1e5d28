//! Checks of packed containers from outside, beyond the blob's own rules.

use std::cmp::Ordering;

use resp::num;

use crate::codec::DecodeError;
use crate::listpack::{Elem, Listpack, Pos};

/// Refuses a set, sorted set or hash whose groups of `width` entries do not come out even or begin with the same
/// string twice. Takes four bytes of memory per group.
pub(super) fn check_groups(listpack: &Listpack, width: usize, what: &'static str) -> Result<(), DecodeError> {
    let mut keys: Vec<Pos> = Vec::new();
    let mut count = 0_usize;
    for (index, (pos, _)) in listpack.positions().enumerate() {
        if index.is_multiple_of(width) {
            keys.push(pos);
        }
        count = index + 1;
    }
    if !count.is_multiple_of(width) {
        return Err(DecodeError::Malformed(what));
    }
    let canonical = |pos: &Pos| match listpack.get(*pos) {
        // A hostile blob may store an integer's text as a string.
        Elem::Bytes(text) => num::parse_i64(text).map_or(Elem::Bytes(text), Elem::Int),
        elem => elem,
    };
    keys.sort_unstable_by(|a, b| compare(canonical(a), canonical(b)));
    let duplicate = keys.windows(2).any(|pair| match pair {
        [a, b] => canonical(a) == canonical(b),
        _ => false,
    });
    if duplicate { Err(DecodeError::Duplicate(what)) } else { Ok(()) }
}

fn compare(a: Elem<'_>, b: Elem<'_>) -> Ordering {
    match (a, b) {
        (Elem::Int(a), Elem::Int(b)) => a.cmp(&b),
        (Elem::Int(_), Elem::Bytes(_)) => Ordering::Less,
        (Elem::Bytes(_), Elem::Int(_)) => Ordering::Greater,
        (Elem::Bytes(a), Elem::Bytes(b)) => a.cmp(b),
    }
}

/// Refuses a sorted set whose scores are no numbers or whose pairs do not ascend by score, then by member: ranges and
/// ranks rely on both. Redis would take it and answer nonsense.
pub(super) fn check_scores(listpack: &Listpack) -> Result<(), DecodeError> {
    let mut last: Option<(f64, Elem<'_>)> = None;
    for (member, score) in listpack.pairs() {
        let score = score_of(score)?;
        if let Some((last_score, last_member)) = last {
            let (mut scratch, mut last_scratch) = ([0; 24], [0; 24]);
            let ascends = last_score < score
                || (last_score == score && last_member.to_bytes(&mut last_scratch) < member.to_bytes(&mut scratch));
            if !ascends {
                return Err(DecodeError::Malformed("sorted set listpack"));
            }
        }
        last = Some((score, member));
    }
    Ok(())
}

fn score_of(elem: Elem<'_>) -> Result<f64, DecodeError> {
    match elem {
        // Redis: the integer is converted, with the rounding that it may take.
        #[allow(clippy::cast_precision_loss)]
        Elem::Int(value) => Ok(value as f64),
        Elem::Bytes(text) => num::parse_f64(text).ok_or(DecodeError::ScoreNotANumber),
    }
}
