//! OBJECT and MEMORY USAGE: how a key is kept.

use crate::ctx::Ctx;
use crate::error::{CmdError, CmdResult, SYNTAX};
use crate::options::{int, is_word};
use crate::table::{CommandId, help as table_help};
use keyspace::{Entry, NotifyClass, StrRef, ValueRef};
use resp::Args;

/// Elements of big containers that MEMORY USAGE looks at unless told otherwise.
const DEFAULT_SAMPLES: usize = 5;
/// Integers from 0 up to this one are shared objects in Redis, whose count of references is the largest possible.
const SHARED_INTEGERS: i64 = 10_000;

const NOT_LFU: CmdError = CmdError::new(
    "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between \
     policies at runtime LRU and LFU data will take some time to adjust.",
);
const IS_LFU: CmdError = CmdError::new(
    "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching between policies at \
     runtime LRU and LFU data will take some time to adjust.",
);

/// The entry that an OBJECT command asks for: counted as a look-up, but no access and no `keymiss`.
pub(super) fn look<'c>(ctx: &'c mut Ctx<'_>, key: &[u8]) -> Option<&'c Entry> {
    let wanted = ctx.db.events.wanted;
    let no_touch = std::mem::replace(&mut ctx.db.no_touch, true);
    ctx.db.events.wanted = NotifyClass(wanted.0 & !NotifyClass::KEY_MISS.0);
    // The look-up removes a key whose time is over, so it must be the one that counts.
    ctx.db.read_entry(key);
    ctx.db.events.wanted = wanted;
    ctx.db.no_touch = no_touch;
    ctx.db.entry(key)
}

/// OBJECT ENCODING key
pub(super) fn encoding(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    match look(ctx, args.at(2)).map(Entry::encoding) {
        Some(name) => ctx.out.bulk(name),
        None => ctx.out.null(),
    }
    Ok(())
}

/// OBJECT REFCOUNT key
pub(super) fn refcount(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let count = look(ctx, args.at(2)).map(|entry| reference_count(entry.value()));
    match count {
        Some(count) => ctx.out.int(count),
        None => ctx.out.null(),
    }
    Ok(())
}

/// What Redis would count.
pub(super) fn reference_count(value: ValueRef<'_>) -> i64 {
    match value {
        ValueRef::Str(StrRef::Int(number)) if (0..SHARED_INTEGERS).contains(&number) => i64::from(i32::MAX),
        _ => 1,
    }
}

/// OBJECT IDLETIME key
pub(super) fn idletime(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let Some(access) = look(ctx, args.at(2)).map(Entry::access) else {
        ctx.out.null();
        return Ok(());
    };
    if ctx.settings.policy.is_lfu() {
        return Err(IS_LFU);
    }
    ctx.out.int(i64::from(ctx.db.access_clock().idle_seconds(access)));
    Ok(())
}

/// OBJECT FREQ key
pub(super) fn freq(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let Some(access) = look(ctx, args.at(2)).map(Entry::access) else {
        ctx.out.null();
        return Ok(());
    };
    if !ctx.settings.policy.is_lfu() {
        return Err(NOT_LFU);
    }
    ctx.out.int(i64::from(ctx.db.access_clock().frequency(access)));
    Ok(())
}

/// OBJECT HELP
pub(super) fn help(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    table_help::write(CommandId::Object, &args, ctx.out);
    Ok(())
}

/// MEMORY USAGE key [SAMPLES n]
pub(super) fn memory_usage(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let mut samples = DEFAULT_SAMPLES;
    let mut rest = args.slice(3).iter();
    while let Some(word) = rest.next() {
        if !is_word(word, "samples") {
            return Err(SYNTAX);
        }
        let number = int(rest.next().ok_or(SYNTAX)?)?;
        samples = usize::try_from(number).map_err(|_| SYNTAX)?;
    }
    match ctx.db.entry(args.at(2)) {
        Some(entry) => ctx.out.count(entry.memory_bytes(samples)),
        None => ctx.out.null(),
    }
    Ok(())
}
