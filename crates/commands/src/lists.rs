//! Lists: LPUSH, LRANGE, LMOVE, BLPOP and the others.
//!
//! [`ends`] pushes and pops, [`read`] looks, [`change`] edits in place, [`moves`] takes an element from one list to
//! another, [`mpop`] pops from the first of several keys and blocks when there is none. Elements go from the listpack
//! straight to the reply.

use crate::collections::write_elem;
use crate::ctx::Ctx;
use crate::dispatch::{Cost, Handler};
use crate::error::{CmdError, SYNTAX};
use crate::options::is_word;
use crate::table::CommandId;
use keyspace::list::{End, List};
use keyspace::{NotifyClass, ValueRef};
use resp::{Args, Reply};

mod change;
mod ends;
mod moves;
mod mpop;
mod read;
#[cfg(test)]
mod tests;

pub(crate) use mpop::{key_range, pop_count};

/// The function of a command of this family.
pub(crate) fn handler(id: CommandId) -> Option<Handler> {
    Some(match id {
        CommandId::Lpush => ends::lpush,
        CommandId::Rpush => ends::rpush,
        CommandId::Lpushx => ends::lpushx,
        CommandId::Rpushx => ends::rpushx,
        CommandId::Lpop => ends::lpop,
        CommandId::Rpop => ends::rpop,
        CommandId::Llen => read::llen,
        CommandId::Lindex => read::lindex,
        CommandId::Lrange => read::lrange,
        CommandId::Lpos => read::lpos,
        CommandId::Lset => change::lset,
        CommandId::Linsert => change::linsert,
        CommandId::Lrem => change::lrem,
        CommandId::Ltrim => change::ltrim,
        CommandId::Lmove => moves::lmove,
        CommandId::Rpoplpush => moves::rpoplpush,
        CommandId::Blmove => moves::blmove,
        CommandId::Brpoplpush => moves::brpoplpush,
        CommandId::Lmpop => mpop::lmpop,
        CommandId::Blmpop => mpop::blmpop,
        CommandId::Blpop => mpop::blpop,
        CommandId::Brpop => mpop::brpop,
        _ => return None,
    })
}

/// The cost function of a command of this family.
pub(crate) fn cost(id: CommandId) -> Option<Cost> {
    Some(match id {
        CommandId::Lrange => read::lrange_cost,
        CommandId::Lpos | CommandId::Lrem | CommandId::Linsert | CommandId::Ltrim => whole_list_cost,
        _ => return None,
    })
}

/// As many elements as the list at the first key has.
fn whole_list_cost(ctx: &mut Ctx<'_>, args: Args<'_>) -> usize {
    match ctx.db.get(args.at(1)) {
        Some(ValueRef::List(list)) => list.len(),
        _ => 0,
    }
}

/// `LEFT` or `RIGHT`.
fn end_of(argument: &[u8]) -> Result<End, CmdError> {
    if is_word(argument, "left") {
        Ok(End::Front)
    } else if is_word(argument, "right") {
        Ok(End::Back)
    } else {
        Err(SYNTAX)
    }
}

/// The event of a pop from that end.
fn pop_event(end: End) -> &'static str {
    match end {
        End::Front => "lpop",
        End::Back => "rpop",
    }
}

/// The event of a push at that end.
fn push_event(end: End) -> &'static str {
    match end {
        End::Front => "lpush",
        End::Back => "rpush",
    }
}

/// Says that `count` elements were popped, and removes the key when none is left.
fn popped(ctx: &mut Ctx<'_>, key: &[u8], end: End, count: usize, is_empty: bool) {
    ctx.db.changed(NotifyClass::LIST, pop_event(end), key);
    count_more(ctx, count);
    if is_empty {
        remove_empty(ctx, key);
    }
}

/// Records a blocking or searching pop as the pop of one key that it came to; `count`: as LPOP with a count.
fn record_pop(ctx: &mut Ctx<'_>, key: &[u8], end: End, count: Option<usize>) {
    let name: &[u8] = match end {
        End::Front => b"LPOP",
        End::Back => b"RPOP",
    };
    match count {
        None => ctx.db.effect(&[name, key]),
        Some(count) if ctx.db.is_recording() => ctx.db.effect(&[name, key, count.to_string().as_bytes()]),
        Some(_) => {}
    }
}

/// Counts the changes of a command that made `count` of them, the first of which is counted.
fn count_more(ctx: &mut Ctx<'_>, count: usize) {
    ctx.db.events.dirty += (count as u64).saturating_sub(1);
}

/// Removes the key of a list without elements.
#[cold]
fn remove_empty(ctx: &mut Ctx<'_>, key: &[u8]) {
    ctx.db.remove(key);
    ctx.db.notify(NotifyClass::GENERIC, "del", key);
}

/// Pops up to `count` elements into an array, in the order that single pops would give. Gives how many, and whether
/// none is left.
fn pop_many(
    list: &mut List,
    out: &mut Reply,
    end: End,
    count: usize,
    limits: &keyspace::list::ListLimits,
) -> (usize, bool) {
    let len = list.len();
    let taken = count.min(len);
    out.array(taken);
    match end {
        End::Front => list.range(0, taken).for_each(|elem| write_elem(out, elem)),
        End::Back => list.range_back(len.saturating_sub(1), taken).for_each(|elem| write_elem(out, elem)),
    }
    // A list that loses all its elements is freed as a whole.
    if taken < len {
        match end {
            End::Front => list.trim(taken..len, limits),
            End::Back => list.trim(0..len - taken, limits),
        }
    }
    (taken, taken == len)
}
