//! Popping from the first of several keys that is there; the blocking ones wait when none is.

use super::{end_of, pop_many, popped, record_pop};
use crate::collections::write_elem;
use crate::ctx::{Block, Ctx, TimeoutReply};
use crate::error::{CmdError, CmdResult, SYNTAX};
use crate::options::{self, is_word};
use keyspace::list::End;
use resp::Args;
use std::ops::Range;

/// BLPOP key [key …] timeout
pub(super) fn blpop(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    pop_or_wait(ctx, args, End::Front)
}

/// BRPOP key [key …] timeout
pub(super) fn brpop(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    pop_or_wait(ctx, args, End::Back)
}

fn pop_or_wait(ctx: &mut Ctx<'_>, args: Args<'_>, end: End) -> CmdResult {
    let last = args.len() - 1;
    let deadline_ms = options::deadline(args.at(last), ctx.db.now_ms())?;
    let limits = &ctx.settings.list;
    for index in 1..last {
        let key = args.at(index);
        let Some(list) = ctx.db.write_list(key)? else { continue };
        ctx.out.array(2);
        ctx.out.bulk(key);
        let out = &mut *ctx.out;
        list.pop(end, limits, |elem| write_elem(out, elem));
        let is_empty = list.is_empty();
        popped(ctx, key, end, 1, is_empty);
        record_pop(ctx, key, end, None);
        return Ok(());
    }
    wait(ctx, 1..last, deadline_ms)
}

/// LMPOP numkeys key [key …] LEFT|RIGHT [COUNT count]
pub(super) fn lmpop(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let request = Request::parse(args, 1)?;
    if !request.pop(ctx, args)? {
        ctx.out.null_array();
    }
    Ok(())
}

/// BLMPOP timeout numkeys key [key …] LEFT|RIGHT [COUNT count]
pub(super) fn blmpop(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let request = Request::parse(args, 2)?;
    let deadline_ms = options::deadline(args.at(1), ctx.db.now_ms())?;
    if request.pop(ctx, args)? {
        return Ok(());
    }
    wait(ctx, request.keys, deadline_ms)
}

fn wait(ctx: &mut Ctx<'_>, keys: Range<usize>, deadline_ms: Option<i64>) -> CmdResult {
    if ctx.may_block {
        ctx.wait_for(Block { keys, deadline_ms, timeout_reply: TimeoutReply::NullArray, replaced: Vec::new() });
    } else {
        ctx.out.null_array();
    }
    Ok(())
}

/// What LMPOP and BLMPOP ask for.
struct Request {
    keys: Range<usize>,
    end: End,
    count: usize,
}

impl Request {
    /// Reads the arguments from the number of keys on.
    fn parse(args: Args<'_>, numkeys_at: usize) -> Result<Request, CmdError> {
        let (keys, where_at) = key_range(args, numkeys_at)?;
        let end = end_of(args.at(where_at))?;
        let count = pop_count(args, where_at + 1)?;
        Ok(Request { keys, end, count })
    }

    /// Pops from the first key that is there. False: none is.
    fn pop(&self, ctx: &mut Ctx<'_>, args: Args<'_>) -> Result<bool, CmdError> {
        let limits = &ctx.settings.list;
        for index in self.keys.clone() {
            let key = args.at(index);
            let Some(list) = ctx.db.write_list(key)? else { continue };
            ctx.out.array(2);
            ctx.out.bulk(key);
            let (taken, is_empty) = pop_many(list, ctx.out, self.end, self.count, limits);
            popped(ctx, key, self.end, taken, is_empty);
            record_pop(ctx, key, self.end, Some(taken));
            return Ok(true);
        }
        Ok(false)
    }
}

/// `numkeys key [key …] word`: the indices of the keys and of the word behind them, which is there.
pub(crate) fn key_range(args: Args<'_>, numkeys_at: usize) -> Result<(Range<usize>, usize), CmdError> {
    const NO_KEYS: CmdError = CmdError::new("ERR numkeys should be greater than 0");
    let numkeys = options::int_in(args.at(numkeys_at), 1, i64::MAX, NO_KEYS)?;
    let first = numkeys_at + 1;
    let end = usize::try_from(numkeys).ok().and_then(|count| first.checked_add(count)).filter(|end| *end < args.len());
    match end {
        Some(end) => Ok((first..end, end)),
        None => Err(SYNTAX),
    }
}

/// `[COUNT count]` up to the end of the arguments; 1 when it is not there.
pub(crate) fn pop_count(args: Args<'_>, from: usize) -> Result<usize, CmdError> {
    const NO_COUNT: CmdError = CmdError::new("ERR count should be greater than 0");
    let mut count = None;
    let mut at = from;
    while let Some(option) = args.get(at) {
        match args.get(at + 1) {
            Some(value) if count.is_none() && is_word(option, "count") => {
                let number = options::int_in(value, 1, i64::MAX, NO_COUNT)?;
                count = Some(usize::try_from(number).unwrap_or(usize::MAX));
            }
            _ => return Err(SYNTAX),
        }
        at += 2;
    }
    Ok(count.unwrap_or(1))
}
