//! XLEN, XRANGE, XREVRANGE, XDEL and XSETID: what looks at entries by their ids.

use super::{id, stream_at, write_entries};
use crate::ctx::Ctx;
use crate::error::{CmdError, CmdResult, NO_SUCH_KEY, SYNTAX};
use crate::options::{int, is_word};
use keyspace::NotifyClass;
use keyspace::stream::StreamId;
use resp::Args;

/// XLEN key
pub(super) fn xlen(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let len = ctx.db.read_stream(args.at(1))?.map_or(0, |stream| stream.log().len());
    ctx.out.int(i64::try_from(len).unwrap_or(i64::MAX));
    Ok(())
}

/// XRANGE key start end [COUNT count]
pub(super) fn xrange(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    range(ctx, args, false)
}

/// XREVRANGE key end start [COUNT count]
pub(super) fn xrevrange(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    range(ctx, args, true)
}

/// The count of COUNT options; `None`: not given.
fn parse_count(args: Args<'_>) -> Result<Option<usize>, CmdError> {
    let mut count = None;
    let mut words = args.slice(4).iter();
    while let Some(word) = words.next() {
        match words.next() {
            Some(value) if is_word(word, "count") => count = Some(usize::try_from(int(value)?).unwrap_or(0)),
            _ => return Err(SYNTAX),
        }
    }
    Ok(count)
}

fn range(ctx: &mut Ctx<'_>, args: Args<'_>, back: bool) -> CmdResult {
    let (start, end) = if back { (3, 2) } else { (2, 3) };
    let start = id::start(args.at(start))?;
    let end = id::end(args.at(end))?;
    let count = parse_count(args)?;
    let Some(stream) = ctx.db.read_stream(args.at(1))? else {
        ctx.out.empty_array();
        return Ok(());
    };
    match count {
        Some(0) => ctx.out.null_array(),
        count => {
            let limit = count.unwrap_or(0);
            if back {
                write_entries(ctx.out, stream.log().range_back(start, end), limit);
            } else {
                write_entries(ctx.out, stream.log().range(start, end), limit);
            }
        }
    }
    Ok(())
}

/// As many entries as a range may give.
pub(super) fn cost(ctx: &mut Ctx<'_>, args: Args<'_>) -> usize {
    let len = stream_at(ctx, args.at(1)).map_or(0, |stream| usize::try_from(stream.log().len()).unwrap_or(usize::MAX));
    match parse_count(args) {
        Ok(Some(count)) => count.min(len),
        Ok(None) => len,
        Err(_) => 0,
    }
}

/// XDEL key id [id …]
pub(super) fn xdel(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let key = args.at(1);
    let Some(stream) = ctx.db.write_stream(key)? else {
        ctx.out.int(0);
        return Ok(());
    };
    let ids = id::all(args, 2)?;
    let log = stream.log_mut();
    let deleted = ids.iter().filter(|id| log.delete(**id)).count();
    if deleted > 0 {
        ctx.db.changed(NotifyClass::STREAM, "xdel", key);
        ctx.db.events.dirty += deleted as u64 - 1;
    }
    ctx.out.count(deleted);
    Ok(())
}

/// XSETID key last-id [ENTRIESADDED entries-added] [MAXDELETEDID max-deleted-id]
pub(super) fn xsetid(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let key = args.at(1);
    let last_id = id::strict(args.at(2), 0)?;
    let (mut entries_added, mut max_deleted_id) = (None, StreamId::MIN);
    let mut words = args.slice(3).iter();
    while let Some(word) = words.next() {
        let value = words.next().ok_or(SYNTAX)?;
        if is_word(word, "entriesadded") {
            let added = u64::try_from(int(value)?).map_err(|_| CmdError::new("ERR entries_added must be positive"))?;
            entries_added = Some(added);
        } else if is_word(word, "maxdeletedid") {
            max_deleted_id = id::strict(value, 0)?;
            if last_id < max_deleted_id {
                return Err(CmdError::new(
                    "ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id",
                ));
            }
        } else {
            return Err(SYNTAX);
        }
    }
    let log = ctx.db.write_stream(key)?.ok_or(NO_SUCH_KEY)?.log_mut();
    if last_id < log.max_deleted_id() {
        return Err(CmdError::new("ERR The ID specified in XSETID is smaller than current max_deleted_entry_id"));
    }
    if log.last_live_id().is_some_and(|top| last_id < top) {
        return Err(CmdError::new("ERR The ID specified in XSETID is smaller than the target stream top item"));
    }
    if !log.is_empty() && entries_added.is_some_and(|added| added < log.len()) {
        return Err(CmdError::new(
            "ERR The entries_added specified in XSETID is smaller than the target stream length",
        ));
    }
    log.set_last_id(last_id, entries_added, (!max_deleted_id.is_zero()).then_some(max_deleted_id));
    ctx.out.ok();
    super::group_changed(ctx, "xsetid", key);
    Ok(())
}
