//! XGROUP.

use super::{group_changed, id, no_group_of_key, subcommand_syntax};
use crate::ctx::Ctx;
use crate::error::{CmdError, CmdResult};
use crate::options::{int, is_word};
use crate::table::{CommandId, help as table_help};
use keyspace::stream::{Group, StreamId};
use resp::Args;

const NO_KEY: CmdError = CmdError::new(
    "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option \
     to create an empty stream automatically.",
);

/// Options of CREATE and SETID.
#[derive(Default)]
struct Options {
    make_stream: bool,
    entries_read: Option<i64>,
}

impl Options {
    fn parse(args: Args<'_>, creates: bool) -> Result<Options, CmdError> {
        let mut options = Options::default();
        let mut words = args.slice(5).iter();
        while let Some(word) = words.next() {
            if creates && is_word(word, "mkstream") {
                options.make_stream = true;
            } else if is_word(word, "entriesread")
                && let Some(value) = words.next()
            {
                let read = int(value)?;
                if read < -1 {
                    return Err(CmdError::new("ERR value for ENTRIESREAD must be positive or -1"));
                }
                options.entries_read = Some(read).filter(|read| *read != -1);
            } else {
                return Err(subcommand_syntax(args));
            }
        }
        Ok(options)
    }
}

/// XGROUP CREATE key group id|$ [MKSTREAM] [ENTRIESREAD entries-read]
pub(super) fn create(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let (key, name) = (args.at(2), args.at(3));
    let options = Options::parse(args, true)?;
    let stream = ctx.db.write_stream(key)?;
    if stream.is_none() && !options.make_stream {
        return Err(NO_KEY);
    }
    if args.len() > 8 {
        return Err(subcommand_syntax(args));
    }
    let id = match id::c_string(args.at(4)) {
        b"$" => stream.as_ref().map_or(StreamId::MIN, |stream| stream.log().last_id()),
        _ => id::strict(args.at(4), 0)?,
    };
    if stream.is_some_and(|stream| stream.groups().contains_key(name)) {
        return Err(CmdError::new("BUSYGROUP Consumer Group name already exists"));
    }
    if !ctx.db.exists(key) {
        ctx.db.upsert_stream(key)?;
        ctx.db.signal(key);
    }
    let (_, groups) = ctx.db.upsert_stream(key)?.parts_mut();
    groups.insert(name.into(), Group::new(id, options.entries_read));
    ctx.out.ok();
    group_changed(ctx, "xgroup-create", key);
    Ok(())
}

/// XGROUP SETID key group id|$ [ENTRIESREAD entries-read]
pub(super) fn set_id(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let key = args.at(2);
    let options = Options::parse(args, false)?;
    let stream = ctx.db.write_stream(key)?.ok_or(NO_KEY)?;
    let last_id = stream.log().last_id();
    let (_, groups) = stream.parts_mut();
    let group = groups.get_mut(args.at(3)).ok_or_else(|| no_group_of_key(key, args.at(3)))?;
    if args.len() != 5 && args.len() != 7 {
        return Err(subcommand_syntax(args));
    }
    group.last_id = match id::c_string(args.at(4)) {
        b"$" => last_id,
        _ => id::loose(args.at(4), 0)?,
    };
    group.entries_read = options.entries_read;
    ctx.out.ok();
    group_changed(ctx, "xgroup-setid", key);
    Ok(())
}

/// XGROUP DESTROY key group
pub(super) fn destroy(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let key = args.at(2);
    let (_, groups) = ctx.db.write_stream(key)?.ok_or(NO_KEY)?.parts_mut();
    if groups.remove(args.at(3)).is_none() {
        ctx.out.int(0);
        return Ok(());
    }
    ctx.out.int(1);
    group_changed(ctx, "xgroup-destroy", key);
    // Those who wait for the group are told that it is gone.
    ctx.db.signal_ready(key);
    Ok(())
}

/// XGROUP CREATECONSUMER key group consumer
pub(super) fn create_consumer(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let key = args.at(2);
    let now_ms = ctx.db.now_ms();
    let (_, groups) = ctx.db.write_stream(key)?.ok_or(NO_KEY)?.parts_mut();
    let group = groups.get_mut(args.at(3)).ok_or_else(|| no_group_of_key(key, args.at(3)))?;
    let is_new = group.add_consumer(args.at(4), now_ms).is_some();
    ctx.out.int(i64::from(is_new));
    if is_new {
        group_changed(ctx, "xgroup-createconsumer", key);
    }
    Ok(())
}

/// XGROUP DELCONSUMER key group consumer
pub(super) fn delete_consumer(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let key = args.at(2);
    let (_, groups) = ctx.db.write_stream(key)?.ok_or(NO_KEY)?.parts_mut();
    let group = groups.get_mut(args.at(3)).ok_or_else(|| no_group_of_key(key, args.at(3)))?;
    let pending = group.remove_consumer(args.at(4));
    ctx.out.count(pending.unwrap_or(0));
    if pending.is_some() {
        group_changed(ctx, "xgroup-delconsumer", key);
    }
    Ok(())
}

/// XGROUP HELP
pub(super) fn help(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    table_help::write(CommandId::Xgroup, &args, ctx.out);
    Ok(())
}
