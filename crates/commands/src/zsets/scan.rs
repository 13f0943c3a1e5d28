//! ZSCAN.

use super::bulk_member;
use crate::ctx::Ctx;
use crate::error::{CmdError, CmdResult, SYNTAX};
use crate::options::{self, is_word};
use keyspace::glob;
use resp::Args;
use resp::num::{self, DOUBLE_TEXT_MAX};

/// ZSCAN key cursor [MATCH pattern] [COUNT count]
///
/// Scores are bulks in both protocol versions; those of the big form have the text of C's `%.17g`, as in Redis.
pub(super) fn zscan(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let cursor = cursor(args.at(2))?;
    let Some(zset) = ctx.db.read_zset(args.at(1))? else {
        ctx.out.array(2);
        ctx.out.bulk("0");
        ctx.out.empty_array();
        return Ok(());
    };
    let filter = Filter::parse(args.slice(3))?;
    let out = &mut *ctx.out;
    if let Some(pack) = zset.as_listpack() {
        out.array(2);
        out.bulk("0");
        let header = out.defer();
        let mut written = 0;
        let mut scratch = [0; 24];
        for (member, score) in pack.pairs() {
            if filter.passes(member.to_bytes(&mut scratch)) {
                bulk_member(out, member);
                bulk_member(out, score);
                written += 2;
            }
        }
        out.finish_array(header, written);
        return Ok(());
    }
    // The cursor comes before the members in the reply, so these are gathered first.
    let mut members = Vec::new();
    let next = zset.scan(cursor, filter.count, |member, score| {
        if filter.passes(member.to_bytes(&mut [0; 24])) {
            members.push((member.to_vec(), score));
        }
    });
    out.array(2);
    out.bulk_fmt(format_args!("{next}"));
    out.array(members.len() * 2);
    for (member, score) in members {
        out.bulk(member);
        out.bulk(num::format_double_17g(score, &mut [0; DOUBLE_TEXT_MAX]));
    }
    Ok(())
}

/// A cursor as C's `strtoul` reads it: no text at all is 0.
fn cursor(text: &[u8]) -> Result<u64, CmdError> {
    const INVALID: CmdError = CmdError::new("ERR invalid cursor");
    // A zero byte ends it.
    let text = text.split(|byte| *byte == 0).next().unwrap_or(text);
    if text.is_empty() {
        return Ok(0);
    }
    if text.first().is_some_and(|byte| byte.is_ascii_whitespace() || *byte == 0x0B) {
        return Err(INVALID);
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
        if !byte.is_ascii_digit() {
            return Err(INVALID);
        }
        value = value.checked_mul(10).and_then(|value| value.checked_add(u64::from(byte - b'0'))).ok_or(INVALID)?;
    }
    Ok(if negative { value.wrapping_neg() } else { value })
}

/// The options.
struct Filter<'a> {
    pattern: Option<&'a [u8]>,
    count: usize,
}

impl<'a> Filter<'a> {
    fn parse(options: Args<'a>) -> Result<Filter<'a>, CmdError> {
        let mut filter = Filter { pattern: None, count: 10 };
        let mut at = 0;
        while let Some(option) = options.get(at) {
            let Some(value) = options.get(at + 1) else { return Err(SYNTAX) };
            if is_word(option, "count") {
                let count = options::int(value)?;
                filter.count = usize::try_from(count).ok().filter(|count| *count > 0).ok_or(SYNTAX)?;
            } else if is_word(option, "match") {
                filter.pattern = Some(value).filter(|pattern| *pattern != b"*");
            } else {
                return Err(SYNTAX);
            }
            at += 2;
        }
        Ok(filter)
    }

    fn passes(&self, member: &[u8]) -> bool {
        self.pattern.is_none_or(|pattern| glob::matches(pattern, member, false))
    }
}
