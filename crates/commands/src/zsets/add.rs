//! Adding members and changing scores. Hot path: one pair without options allocates only what the set stores.

use super::changed;
use crate::ctx::Ctx;
use crate::error::{CmdError, CmdResult, SYNTAX};
use crate::options::{self, is_word};
use keyspace::zset::{Added, ZSetLimits};
use keyspace::{Value, ZSet};
use resp::Args;
use smallvec::SmallVec;

/// ZADD key [NX|XX] [GT|LT] [CH] [INCR] score member [score member …]
pub(super) fn zadd(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    add(ctx, args, Flags::default())
}

/// ZINCRBY key increment member
pub(super) fn zincrby(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    add(ctx, args, Flags { incr: true, ..Flags::default() })
}

#[derive(Clone, Copy, Default)]
struct Flags {
    nx: bool,
    xx: bool,
    gt: bool,
    lt: bool,
    ch: bool,
    incr: bool,
}

/// What adding one member came to.
enum Outcome {
    Added(f64),
    Updated(f64),
    Same(f64),
    /// The options forbid it.
    Refused,
}

/// Counts over all pairs of one command.
#[derive(Default)]
struct Tally {
    added: usize,
    updated: usize,
    /// The last score given, unless the options forbade it.
    score: Option<f64>,
}

fn add(ctx: &mut Ctx<'_>, args: Args<'_>, mut flags: Flags) -> CmdResult {
    let key = args.at(1);
    let first = flags.parse(args);
    let pairs = args.slice(first);
    if pairs.is_empty() || !pairs.len().is_multiple_of(2) {
        return Err(SYNTAX);
    }
    flags.check(pairs.len() / 2)?;
    // All scores are read before anything changes.
    let mut scores: SmallVec<[f64; 8]> = SmallVec::new();
    for at in (0..pairs.len()).step_by(2) {
        scores.push(options::float(pairs.at(at))?);
    }
    let limits = &ctx.settings.zset;
    let tally = match ctx.db.write_zset(key)? {
        Some(zset) => {
            zset.expect_members(scores.len(), limits);
            flags.add_all(zset, pairs, &scores, limits)?
        }
        None if flags.xx => Tally::default(),
        None => {
            let mut zset = ZSet::with_hint(scores.len(), pairs.at(1).len(), limits);
            let tally = flags.add_all(&mut zset, pairs, &scores, limits)?;
            ctx.db.insert(key, Value::ZSet(zset), None);
            tally
        }
    };
    let changes = tally.added + tally.updated;
    if changes > 0 {
        changed(ctx, key, if flags.incr { "zincr" } else { "zadd" }, changes);
    }
    match tally.score {
        Some(score) if flags.incr => ctx.out.double(score),
        None if flags.incr => ctx.out.null(),
        _ => ctx.out.count(if flags.ch { changes } else { tally.added }),
    }
    Ok(())
}

impl Flags {
    /// Reads the options; gives the index of the first score.
    fn parse(&mut self, args: Args<'_>) -> usize {
        let mut at = 2;
        while let Some(option) = args.get(at) {
            // Most scores are told from options by their first byte.
            if option.first().is_none_or(|byte| !byte.is_ascii_alphabetic()) {
                break;
            }
            match option {
                _ if is_word(option, "nx") => self.nx = true,
                _ if is_word(option, "xx") => self.xx = true,
                _ if is_word(option, "ch") => self.ch = true,
                _ if is_word(option, "incr") => self.incr = true,
                _ if is_word(option, "gt") => self.gt = true,
                _ if is_word(option, "lt") => self.lt = true,
                _ => break,
            }
            at += 1;
        }
        at
    }

    fn check(self, pairs: usize) -> CmdResult {
        if self.nx && self.xx {
            return Err(CmdError::new("ERR XX and NX options at the same time are not compatible"));
        }
        if (self.nx && (self.gt || self.lt)) || (self.gt && self.lt) {
            return Err(CmdError::new("ERR GT, LT, and/or NX options at the same time are not compatible"));
        }
        if self.incr && pairs > 1 {
            return Err(CmdError::new("ERR INCR option supports a single increment-element pair"));
        }
        Ok(())
    }

    fn add_all(self, zset: &mut ZSet, pairs: Args<'_>, scores: &[f64], limits: &ZSetLimits) -> Result<Tally, CmdError> {
        let mut tally = Tally::default();
        for (pair, score) in scores.iter().enumerate() {
            let outcome = self.add_one(zset, pairs.at(pair * 2 + 1), *score, limits)?;
            tally.score = match outcome {
                Outcome::Added(score) | Outcome::Updated(score) | Outcome::Same(score) => Some(score),
                Outcome::Refused => None,
            };
            match outcome {
                Outcome::Added(_) => tally.added += 1,
                Outcome::Updated(_) => tally.updated += 1,
                Outcome::Same(_) | Outcome::Refused => {}
            }
        }
        Ok(tally)
    }

    #[inline]
    fn add_one(self, zset: &mut ZSet, member: &[u8], score: f64, limits: &ZSetLimits) -> Result<Outcome, CmdError> {
        let mut score = score;
        if self.nx || self.xx || self.gt || self.lt || self.incr {
            match zset.score(member) {
                Some(_) if self.nx => return Ok(Outcome::Refused),
                Some(current) => {
                    if self.incr {
                        score += current;
                        if score.is_nan() {
                            return Err(CmdError::new("ERR resulting score is not a number (NaN)"));
                        }
                    }
                    if (self.lt && score >= current) || (self.gt && score <= current) {
                        return Ok(Outcome::Refused);
                    }
                }
                None if self.xx => return Ok(Outcome::Refused),
                None => {}
            }
        }
        Ok(match zset.add(member, score, limits) {
            Added::Added => Outcome::Added(score),
            Added::Updated => Outcome::Updated(score),
            Added::Same => Outcome::Same(score),
        })
    }
}
