//! Commands on keys of any type.
//!
//! `object` tells of entries, `dump` copies them as bytes, [`debug`] and [`digest`] are the parts of DEBUG that look
//! at keys, for the server to call.

pub mod debug;
pub mod digest;
mod dump;
mod object;
#[cfg(test)]
mod tests;

pub use dump::payload;

use crate::ctx::Ctx;
use crate::dispatch::{Cost, Handler};
use crate::error::{CmdError, CmdResult, DB_OUT_OF_RANGE, NO_SUCH_KEY, SYNTAX};
use crate::options::is_word;
use crate::table::CommandId;
use keyspace::{DbIndex, Entry, NotifyClass};
use resp::Args;

const SAME_OBJECT: CmdError = CmdError::new("ERR source and destination objects are the same");

/// The function of a key command.
pub(crate) fn handler(id: CommandId) -> Option<Handler> {
    Some(match id {
        CommandId::Copy => copy,
        CommandId::Del | CommandId::Unlink => del,
        CommandId::Dump => dump::dump,
        CommandId::Exists => exists,
        CommandId::MemoryUsage => object::memory_usage,
        CommandId::Move => move_key,
        CommandId::ObjectEncoding => object::encoding,
        CommandId::ObjectFreq => object::freq,
        CommandId::ObjectHelp => object::help,
        CommandId::ObjectIdletime => object::idletime,
        CommandId::ObjectRefcount => object::refcount,
        CommandId::Rename => |ctx, args| rename(ctx, args, false),
        CommandId::Renamenx => |ctx, args| rename(ctx, args, true),
        CommandId::Restore | CommandId::RestoreAsking => dump::restore,
        CommandId::Touch => touch,
        CommandId::Type => type_of,
        _ => return None,
    })
}

/// What a key command costs, where it may be much.
pub(crate) fn cost(id: CommandId) -> Option<Cost> {
    Some(match id {
        CommandId::Copy => |ctx, args| dump::copied_elements(ctx, args.at(1)),
        CommandId::Dump => |ctx, args| dump::copied_elements(ctx, args.at(1)),
        CommandId::Restore | CommandId::RestoreAsking => {
            |_, args| args.get(3).map_or(0, <[u8]>::len) / dump::BYTES_PER_ELEMENT
        }
        _ => return None,
    })
}

/// DEL key …, and UNLINK: big values are freed in the background either way.
fn del(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let mut count = 0;
    for key in args.slice(1) {
        if ctx.db.remove(key) {
            ctx.db.changed(NotifyClass::GENERIC, "del", key);
            count += 1;
        }
    }
    ctx.out.int(count);
    Ok(())
}

/// EXISTS key …: a key named twice counts twice.
fn exists(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let count = ctx.db.without_touch(|db| args.slice(1).iter().filter(|key| db.read_entry(key).is_some()).count());
    ctx.out.count(count);
    Ok(())
}

/// TOUCH key …: notes an access even for clients that asked for CLIENT NO-TOUCH.
fn touch(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let no_touch = std::mem::take(&mut ctx.db.no_touch);
    let count = args.slice(1).iter().filter(|key| ctx.db.read_entry(key).is_some()).count();
    ctx.db.no_touch = no_touch;
    ctx.out.count(count);
    Ok(())
}

/// TYPE key
fn type_of(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let name = ctx.db.without_touch(|db| db.read(args.at(1)).map_or("none", |value| value.type_name()));
    ctx.out.simple(name);
    Ok(())
}

/// RENAME key newkey, RENAMENX key newkey
fn rename(ctx: &mut Ctx<'_>, args: Args<'_>, only_if_free: bool) -> CmdResult {
    let (source, target) = (args.at(1), args.at(2));
    let access = ctx.db.entry_mut(source).map(|entry| entry.access()).ok_or(NO_SUCH_KEY)?;
    let refused = only_if_free && (source == target || ctx.db.exists(target));
    if !refused && source != target {
        ctx.db.remove(target);
        if let Some((value, expiry)) = ctx.db.take(source) {
            ctx.db.insert(target, value, expiry);
            if let Some(entry) = ctx.db.entry_mut(target) {
                entry.set_access(access);
            }
        }
        ctx.db.changed(NotifyClass::GENERIC, "rename_from", source);
        ctx.db.signal(target);
        ctx.db.notify(NotifyClass::GENERIC, "rename_to", target);
    }
    if only_if_free {
        ctx.out.int(i64::from(!refused));
    } else {
        ctx.out.ok();
    }
    Ok(())
}

/// The number of a database that the client names.
fn db_index(ctx: &Ctx<'_>, argument: &[u8]) -> Result<DbIndex, CmdError> {
    let number = crate::options::int32(argument)?;
    let number = u32::try_from(number).ok().filter(|number| *number < ctx.db.databases());
    number.map(DbIndex).ok_or(DB_OUT_OF_RANGE)
}

/// MOVE key db
fn move_key(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let key = args.at(1);
    let source = ctx.db.index();
    let target = db_index(ctx, args.at(2))?;
    if source == target {
        return Err(SAME_OBJECT);
    }
    let may_move = ctx.db.exists(key) && !ctx.db.in_db(target, |db| db.exists(key));
    if may_move && let Some((value, expiry)) = ctx.db.take(key) {
        ctx.db.in_db(target, |db| {
            db.insert(key, value, expiry);
            db.signal(key);
        });
        ctx.db.changed(NotifyClass::GENERIC, "move_from", key);
        ctx.db.in_db(target, |db| db.notify(NotifyClass::GENERIC, "move_to", key));
    }
    ctx.out.int(i64::from(may_move));
    Ok(())
}

/// COPY source destination [DB n] [REPLACE]
fn copy(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let (source, target) = (args.at(1), args.at(2));
    let mut db = ctx.db.index();
    let mut replace = false;
    let mut rest = args.slice(3).iter();
    while let Some(word) = rest.next() {
        if is_word(word, "replace") {
            replace = true;
        } else if is_word(word, "db") {
            db = db_index(ctx, rest.next().ok_or(SYNTAX)?)?;
        } else {
            return Err(SYNTAX);
        }
    }
    if db == ctx.db.index() && source == target {
        return Err(SAME_OBJECT);
    }
    let found = ctx.db.read_entry(source).is_some();
    let is_free = found && (!ctx.db.in_db(db, |db| db.exists(target)) || replace);
    let copy = if is_free {
        ctx.db.entry(source).map(|entry| (entry.clone_value(), Entry::expire_at_ms(entry)))
    } else {
        None
    };
    let copied = copy.is_some();
    if let Some((value, expiry)) = copy {
        ctx.db.in_db(db, |db| {
            db.remove(target);
            db.insert(target, value, expiry);
            db.changed(NotifyClass::GENERIC, "copy_to", target);
        });
    }
    ctx.out.int(i64::from(copied));
    Ok(())
}
