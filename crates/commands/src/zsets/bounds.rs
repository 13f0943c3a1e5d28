//! The ends of ranges of scores and of members.

use crate::error::CmdError;
use keyspace::zset::{LexBound, ScoreRange};

const NOT_SCORES: CmdError = CmdError::new("ERR min or max is not a float");
const NOT_MEMBERS: CmdError = CmdError::new("ERR min or max not valid string range item");

/// A range of scores: `1.5`, `(1.5`, `-inf`, `+inf`.
pub(super) fn scores(min: &[u8], max: &[u8]) -> Result<ScoreRange, CmdError> {
    let min = resp::num::parse_score_bound(min).ok_or(NOT_SCORES)?;
    let max = resp::num::parse_score_bound(max).ok_or(NOT_SCORES)?;
    Ok(ScoreRange { min: min.value, max: max.value, min_exclusive: min.exclusive, max_exclusive: max.exclusive })
}

/// A range of members: `[member`, `(member`, `-`, `+`.
pub(super) fn members<'a>(min: &'a [u8], max: &'a [u8]) -> Result<(LexBound<'a>, LexBound<'a>), CmdError> {
    Ok((member(min)?, member(max)?))
}

fn member(text: &[u8]) -> Result<LexBound<'_>, CmdError> {
    match text {
        // Redis takes it for a C string: a zero byte ends it.
        [b'+'] | [b'+', 0, ..] => Ok(LexBound::Highest),
        [b'-'] | [b'-', 0, ..] => Ok(LexBound::Lowest),
        [b'(', rest @ ..] => Ok(LexBound::Exclusive(rest)),
        [b'[', rest @ ..] => Ok(LexBound::Inclusive(rest)),
        _ => Err(NOT_MEMBERS),
    }
}
