//! Editing one list in place.

use super::read::from_end;
use super::{count_more, remove_empty};
use crate::ctx::Ctx;
use crate::error::{CmdResult, INDEX_OUT_OF_RANGE, NO_SUCH_KEY, SYNTAX};
use crate::options::{self, clip, is_word};
use keyspace::NotifyClass;
use keyspace::list::{End, Side};
use resp::Args;

/// LSET key index element
///
/// Redis: the index loses all but its low 32 bits on the way, so that 2³² is the head.
pub(super) fn lset(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let key = args.at(1);
    let limits = &ctx.settings.list;
    let list = ctx.db.write_list(key)?.ok_or(NO_SUCH_KEY)?;
    #[expect(clippy::cast_possible_truncation, reason = "as Redis does")]
    let index = i64::from(options::int(args.at(2))? as i32);
    let index = from_end(index, list.len()).unwrap_or(usize::MAX);
    if !list.set(index, args.at(3), limits) {
        return Err(INDEX_OUT_OF_RANGE);
    }
    ctx.db.changed(NotifyClass::LIST, "lset", key);
    ctx.out.ok();
    Ok(())
}

/// LINSERT key BEFORE|AFTER pivot element
pub(super) fn linsert(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let key = args.at(1);
    let side = if is_word(args.at(2), "after") {
        Side::After
    } else if is_word(args.at(2), "before") {
        Side::Before
    } else {
        return Err(SYNTAX);
    };
    let limits = &ctx.settings.list;
    let Some(list) = ctx.db.write_list(key)? else {
        ctx.out.count(0);
        return Ok(());
    };
    if !list.insert(args.at(3), side, args.at(4), limits) {
        ctx.out.int(-1);
        return Ok(());
    }
    ctx.out.count(list.len());
    ctx.db.changed(NotifyClass::LIST, "linsert", key);
    Ok(())
}

/// LREM key count element
pub(super) fn lrem(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let key = args.at(1);
    let count = options::int(args.at(2))?;
    let from = if count < 0 { End::Back } else { End::Front };
    let max = match count {
        0 => usize::MAX,
        _ => usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX),
    };
    let limits = &ctx.settings.list;
    let Some(list) = ctx.db.write_list(key)? else {
        ctx.out.count(0);
        return Ok(());
    };
    let removed = list.remove(args.at(3), from, max, limits);
    let is_empty = list.is_empty();
    if removed > 0 {
        ctx.db.changed(NotifyClass::LIST, "lrem", key);
        count_more(ctx, removed);
    }
    if is_empty {
        remove_empty(ctx, key);
    }
    ctx.out.count(removed);
    Ok(())
}

/// LTRIM key start stop
///
/// Redis: the event comes even when nothing goes, but then nothing counts as changed.
pub(super) fn ltrim(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let key = args.at(1);
    let start = options::int(args.at(2))?;
    let stop = options::int(args.at(3))?;
    let limits = &ctx.settings.list;
    let Some(list) = ctx.db.write_list(key)? else {
        ctx.out.ok();
        return Ok(());
    };
    let len = list.len();
    let left = match clip(start, stop, len) {
        Some((first, last)) => {
            list.trim(first..last + 1, limits);
            last + 1 - first
        }
        None => 0,
    };
    ctx.db.signal(key);
    ctx.db.notify(NotifyClass::LIST, "ltrim", key);
    ctx.db.events.dirty += (len - left) as u64;
    if left == 0 {
        remove_empty(ctx, key);
    }
    ctx.out.ok();
    Ok(())
}
