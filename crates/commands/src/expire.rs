//! When keys end: EXPIRE and its relatives, TTL and its relatives, PERSIST.

#[cfg(test)]
mod tests;

use crate::ctx::Ctx;
use crate::dispatch::Handler;
use crate::error::{CmdError, CmdResult};
use crate::options::{int, is_word};
use crate::table::CommandId;
use keyspace::journal::Deletion;
use keyspace::{Entry, NotifyClass};
use resp::Args;

/// The function of an expiry command.
pub(crate) fn handler(id: CommandId) -> Option<Handler> {
    Some(match id {
        CommandId::Expire => |ctx, args| expire(ctx, args, Time { seconds: true, absolute: false }, "expire"),
        CommandId::Expireat => |ctx, args| expire(ctx, args, Time { seconds: true, absolute: true }, "expireat"),
        CommandId::Pexpire => |ctx, args| expire(ctx, args, Time { seconds: false, absolute: false }, "pexpire"),
        CommandId::Pexpireat => |ctx, args| expire(ctx, args, Time { seconds: false, absolute: true }, "pexpireat"),
        CommandId::Ttl => |ctx, args| ttl(ctx, args, Time { seconds: true, absolute: false }),
        CommandId::Pttl => |ctx, args| ttl(ctx, args, Time { seconds: false, absolute: false }),
        CommandId::Expiretime => |ctx, args| ttl(ctx, args, Time { seconds: true, absolute: true }),
        CommandId::Pexpiretime => |ctx, args| ttl(ctx, args, Time { seconds: false, absolute: true }),
        CommandId::Persist => persist,
        _ => return None,
    })
}

/// How a command tells time.
#[derive(Clone, Copy)]
struct Time {
    /// In seconds, else in milliseconds.
    seconds: bool,
    /// As Unix time, else from now on.
    absolute: bool,
}

/// Conditions on the expiry that the key has.
#[derive(Clone, Copy, Default)]
struct Conditions {
    /// NX: none.
    none: bool,
    /// XX: some.
    some: bool,
    /// GT: an earlier one.
    earlier: bool,
    /// LT: a later one, or none.
    later: bool,
}

impl Conditions {
    fn read(args: Args<'_>) -> Result<Conditions, CmdError> {
        let mut conditions = Conditions::default();
        for word in args {
            if is_word(word, "nx") {
                conditions.none = true;
            } else if is_word(word, "xx") {
                conditions.some = true;
            } else if is_word(word, "gt") {
                conditions.earlier = true;
            } else if is_word(word, "lt") {
                conditions.later = true;
            } else {
                return Err(CmdError::text(format!("ERR Unsupported option {}", String::from_utf8_lossy(word))));
            }
        }
        if conditions.none && (conditions.some || conditions.earlier || conditions.later) {
            return Err(CmdError::new("ERR NX and XX, GT or LT options at the same time are not compatible"));
        }
        if conditions.earlier && conditions.later {
            return Err(CmdError::new("ERR GT and LT options at the same time are not compatible"));
        }
        Ok(conditions)
    }

    /// Whether an expiry at `at_ms` may replace the `present` one. A key without expiry lasts for ever.
    fn allow(self, present: Option<i64>, at_ms: i64) -> bool {
        match present {
            None => !self.some && !self.earlier,
            Some(present) => !self.none && (!self.earlier || at_ms > present) && (!self.later || at_ms < present),
        }
    }
}

/// EXPIRE key seconds [NX | XX | GT | LT], EXPIREAT, PEXPIRE, PEXPIREAT
#[inline]
fn expire(ctx: &mut Ctx<'_>, args: Args<'_>, time: Time, command: &str) -> CmdResult {
    let key = args.at(1);
    let conditions = if args.len() > 3 { Conditions::read(args.slice(3))? } else { Conditions::default() };
    let now_ms = ctx.db.now_ms();
    let number = int(args.at(2))?;
    let ms = if time.seconds { number.checked_mul(1000) } else { Some(number) };
    let at_ms = if time.absolute { ms } else { ms.and_then(|ms| ms.checked_add(now_ms)) };
    let at_ms = at_ms.ok_or_else(|| CmdError::text(format!("ERR invalid expire time in '{command}' command")))?;
    let clock = ctx.db.access_clock();
    let present = ctx.db.entry_mut(key).map(|entry| {
        clock.touch(entry);
        entry.expire_at_ms()
    });
    let allowed = present.is_some_and(|present| conditions.allow(present, at_ms));
    if allowed && at_ms <= now_ms {
        ctx.db.remove(key);
        ctx.db.changed(NotifyClass::GENERIC, "del", key);
        ctx.db.effect_deleted(key, Deletion::Expired);
    } else if allowed {
        ctx.db.set_expiry(key, Some(at_ms));
        ctx.db.changed(NotifyClass::GENERIC, "expire", key);
        if ctx.db.is_recording() && (time.seconds || !time.absolute) {
            let at = at_ms.to_string();
            ctx.db.effect_replaced(args, &[(0, b"PEXPIREAT"), (2, at.as_bytes())]);
        }
    }
    ctx.out.int(i64::from(allowed));
    Ok(())
}

/// TTL key, PTTL, EXPIRETIME, PEXPIRETIME: −2 without the key, −1 without an expiry.
#[inline]
fn ttl(ctx: &mut Ctx<'_>, args: Args<'_>, time: Time) -> CmdResult {
    let now_ms = ctx.db.now_ms();
    let expiry = ctx.db.without_touch(|db| db.read_entry(args.at(1)).map(Entry::expire_at_ms));
    let reply = match expiry {
        None => -2,
        Some(None) => -1,
        Some(Some(at_ms)) => {
            let ms = if time.absolute { at_ms } else { (at_ms - now_ms).max(0) };
            // Unsigned, as the last milliseconds of time round up too.
            if time.seconds { i64::try_from((ms.unsigned_abs() + 500) / 1000).unwrap_or(i64::MAX) } else { ms }
        }
    };
    ctx.out.int(reply);
    Ok(())
}

/// PERSIST key
fn persist(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let key = args.at(1);
    let has_expiry = ctx.db.expiry(key).flatten().is_some();
    if has_expiry {
        ctx.db.set_expiry(key, None);
        ctx.db.changed(NotifyClass::GENERIC, "persist", key);
    }
    ctx.out.int(i64::from(has_expiry));
    Ok(())
}
