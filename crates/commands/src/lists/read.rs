//! Looking at a list.

use crate::collections::write_elem;
use crate::ctx::Ctx;
use crate::error::{CmdError, CmdResult, SYNTAX};
use crate::options::{self, clip, is_word};
use keyspace::ValueRef;
use keyspace::list::End;
use resp::Args;

/// LLEN key
pub(super) fn llen(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let len = ctx.db.read_list(args.at(1))?.map_or(0, |list| list.len());
    ctx.out.count(len);
    Ok(())
}

/// LINDEX key index
pub(super) fn lindex(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let Some(list) = ctx.db.read_list(args.at(1))? else {
        ctx.out.null();
        return Ok(());
    };
    let index = options::int(args.at(2))?;
    match from_end(index, list.len()).and_then(|index| list.get(index)) {
        Some(elem) => write_elem(ctx.out, elem),
        None => ctx.out.null(),
    }
    Ok(())
}

/// An index that may count from the end (−1: the last) as one from the head. `None`: before the head.
pub(super) fn from_end(index: i64, len: usize) -> Option<usize> {
    if index >= 0 {
        return usize::try_from(index).ok();
    }
    len.checked_sub(usize::try_from(index.unsigned_abs()).ok()?)
}

/// LRANGE key start stop
pub(super) fn lrange(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let start = options::int(args.at(2))?;
    let stop = options::int(args.at(3))?;
    let Some(list) = ctx.db.read_list(args.at(1))? else {
        ctx.out.empty_array();
        return Ok(());
    };
    let Some((first, last)) = clip(start, stop, list.len()) else {
        ctx.out.empty_array();
        return Ok(());
    };
    let count = last - first + 1;
    ctx.out.array(count);
    let out = &mut *ctx.out;
    list.range(first, count).for_each(|elem| write_elem(out, elem));
    Ok(())
}

/// The number of elements asked for; looks at the list only when that may be many.
pub(super) fn lrange_cost(ctx: &mut Ctx<'_>, args: Args<'_>) -> usize {
    const FEW: i64 = 1000;
    let (Ok(start), Ok(stop)) = (options::int(args.at(2)), options::int(args.at(3))) else { return 0 };
    if start >= 0 && (0..FEW).contains(&stop) {
        return 0;
    }
    match ctx.db.get(args.at(1)) {
        Some(ValueRef::List(list)) => clip(start, stop, list.len()).map_or(0, |(first, last)| last - first + 1),
        _ => 0,
    }
}

/// LPOS key element [RANK rank] [COUNT count] [MAXLEN len]
pub(super) fn lpos(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let search = Search::parse(args)?;
    let Some(list) = ctx.db.read_list(args.at(1))? else {
        if search.count.is_some() {
            ctx.out.empty_array();
        } else {
            ctx.out.null();
        }
        return Ok(());
    };
    let mut found = list.positions(args.at(2), search.from, search.max_compared).skip(search.skipped);
    match search.count {
        None => match found.next() {
            Some(index) => ctx.out.count(index),
            None => ctx.out.null(),
        },
        Some(count) => {
            let header = ctx.out.defer();
            let mut written = 0;
            for index in found.take(count) {
                ctx.out.count(index);
                written += 1;
            }
            ctx.out.finish_array(header, written);
        }
    }
    Ok(())
}

/// The options of LPOS.
struct Search {
    from: End,
    /// Matches to pass over.
    skipped: usize,
    /// At most that many; `None`: the first one alone, not in an array.
    count: Option<usize>,
    max_compared: usize,
}

impl Search {
    fn parse(args: Args<'_>) -> Result<Search, CmdError> {
        const RANK_RANGE: CmdError =
            CmdError::new("ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807");
        const RANK_ZERO: CmdError = CmdError::new(
            "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list",
        );
        let mut search = Search { from: End::Front, skipped: 0, count: None, max_compared: usize::MAX };
        let mut at = 3;
        while let Some(option) = args.get(at) {
            let Some(value) = args.get(at + 1) else { return Err(SYNTAX) };
            if is_word(option, "rank") {
                let rank = options::int(value)?;
                if rank == i64::MIN {
                    return Err(RANK_RANGE);
                }
                let matches = usize::try_from(rank.unsigned_abs()).unwrap_or(usize::MAX);
                search.skipped = matches.checked_sub(1).ok_or(RANK_ZERO)?;
                search.from = if rank < 0 { End::Back } else { End::Front };
            } else if is_word(option, "count") {
                let count = non_negative(value, "ERR COUNT can't be negative")?;
                search.count = Some(if count == 0 { usize::MAX } else { count });
            } else if is_word(option, "maxlen") {
                let len = non_negative(value, "ERR MAXLEN can't be negative")?;
                search.max_compared = if len == 0 { usize::MAX } else { len };
            } else {
                return Err(SYNTAX);
            }
            at += 2;
        }
        Ok(search)
    }
}

fn non_negative(argument: &[u8], error: &'static str) -> Result<usize, CmdError> {
    options::non_negative(argument).map_err(|_| CmdError::new(error))
}
