//! Storing whole strings: SET and its relatives, with their options for the expiry.

use super::reply_string;
use crate::ctx::Ctx;
use crate::error::{CmdError, CmdResult, SYNTAX};
use crate::options::{int, is_word};
use keyspace::journal::Deletion;
use keyspace::{NotifyClass, SetTtl};
use resp::Args;

/// The condition of a SET.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Condition<'a> {
    Always,
    /// NX: only a key that is not there.
    Absent,
    /// XX: only a key that is there.
    Present,
    /// IFEQ: only a key whose string is this one.
    Equal(&'a [u8]),
    /// IFNE: only a key whose string is not this one, or that is not there.
    Differs(&'a [u8]),
}

/// What an option says about the expiry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expiry<'a> {
    /// No option.
    Unsaid,
    /// KEEPTTL.
    Keep,
    /// PERSIST.
    Remove,
    /// EX, PX, EXAT, PXAT with its argument, not yet read: Redis complains of it later than of the syntax.
    Given(Unit, &'a [u8]),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Seconds,
    Milliseconds,
    UnixSeconds,
    UnixMilliseconds,
}

impl Unit {
    fn of(word: &[u8]) -> Option<Unit> {
        Some(match word.to_ascii_lowercase().as_slice() {
            b"ex" => Unit::Seconds,
            b"px" => Unit::Milliseconds,
            b"exat" => Unit::UnixSeconds,
            b"pxat" => Unit::UnixMilliseconds,
            _ => return None,
        })
    }

    fn is_absolute(self) -> bool {
        matches!(self, Unit::UnixSeconds | Unit::UnixMilliseconds)
    }
}

/// Options of SET or GETEX.
struct Options<'a> {
    condition: Condition<'a>,
    get: bool,
    expiry: Expiry<'a>,
}

/// Which command's options are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Set,
    Getex,
}

/// Reads the options behind the fixed arguments.
///
/// Redis: an option may be repeated, EX 1 EX 2 takes the last; different ones for the expiry exclude each other.
fn options<'a>(args: Args<'a>, of: Of) -> Result<Options<'a>, CmdError> {
    let mut options = Options { condition: Condition::Always, get: false, expiry: Expiry::Unsaid };
    let mut rest = args.iter();
    while let Some(word) = rest.next() {
        let is_set = of == Of::Set;
        if is_set && is_word(word, "nx") && options.condition != Condition::Present {
            options.condition = Condition::Absent;
        } else if is_set && is_word(word, "xx") && options.condition != Condition::Absent {
            options.condition = Condition::Present;
        } else if is_set && (is_word(word, "ifeq") || is_word(word, "ifne")) && options.condition == Condition::Always {
            let compared = rest.next().ok_or(SYNTAX)?;
            options.condition =
                if is_word(word, "ifeq") { Condition::Equal(compared) } else { Condition::Differs(compared) };
        } else if is_set && is_word(word, "get") {
            options.get = true;
        } else if is_set && is_word(word, "keepttl") && matches!(options.expiry, Expiry::Unsaid | Expiry::Keep) {
            options.expiry = Expiry::Keep;
        } else if !is_set && is_word(word, "persist") && matches!(options.expiry, Expiry::Unsaid | Expiry::Remove) {
            options.expiry = Expiry::Remove;
        } else {
            let unit = Unit::of(word).ok_or(SYNTAX)?;
            let fits = match options.expiry {
                Expiry::Unsaid => true,
                Expiry::Given(before, _) => before == unit,
                Expiry::Keep | Expiry::Remove => false,
            };
            if !fits {
                return Err(SYNTAX);
            }
            options.expiry = Expiry::Given(unit, rest.next().ok_or(SYNTAX)?);
        }
    }
    Ok(options)
}

/// The Unix time in ms that an expiry argument means.
fn expire_at(argument: &[u8], unit: Unit, now_ms: i64, command: &str) -> Result<i64, CmdError> {
    let invalid = || CmdError::text(format!("ERR invalid expire time in '{command}' command"));
    let number = int(argument)?;
    if number <= 0 {
        return Err(invalid());
    }
    let ms = match unit {
        Unit::Seconds | Unit::UnixSeconds => number.checked_mul(1000).ok_or_else(invalid)?,
        Unit::Milliseconds | Unit::UnixMilliseconds => number,
    };
    if unit.is_absolute() { Ok(ms) } else { ms.checked_add(now_ms).ok_or_else(invalid) }
}

/// SET key value [NX | XX] [GET] [EX s | PX ms | EXAT s | PXAT ms | KEEPTTL]
#[inline]
pub(super) fn set(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    if args.len() > 3 {
        return set_with_options(ctx, args);
    }
    let key = args.at(1);
    ctx.db.set_str(key, args.at(2), SetTtl::Clear);
    ctx.db.changed(NotifyClass::STRING, "set", key);
    ctx.out.ok();
    Ok(())
}

#[inline(never)]
fn set_with_options(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let (key, value) = (args.at(1), args.at(2));
    let options = options(args.slice(3), Of::Set)?;
    let ttl = match options.expiry {
        Expiry::Given(unit, argument) => SetTtl::At(expire_at(argument, unit, ctx.db.now_ms(), "set")?),
        Expiry::Keep => SetTtl::Keep,
        Expiry::Unsaid | Expiry::Remove => SetTtl::Clear,
    };
    if options.get {
        reply_string(ctx, key)?;
    }
    let allowed = match options.condition {
        Condition::Always => true,
        Condition::Absent => !ctx.db.exists(key),
        Condition::Present => ctx.db.exists(key),
        Condition::Equal(compared) => holds(ctx, key, compared)?,
        Condition::Differs(compared) => !holds(ctx, key, compared)?,
    };
    let compares = matches!(options.condition, Condition::Equal(_) | Condition::Differs(_));
    if allowed {
        store(ctx, key, value, ttl);
        match (options.expiry, ttl) {
            (Expiry::Given(Unit::UnixMilliseconds, _), _) if !compares => {}
            (_, SetTtl::At(at_ms)) => record_at(ctx, key, value, at_ms),
            // What it was compared with is the business of this server alone.
            (Expiry::Keep, _) if compares => ctx.db.effect(&[b"SET", key, value, b"KEEPTTL"]),
            _ if compares => ctx.db.effect(&[b"SET", key, value]),
            _ if options.get && ctx.db.is_recording() => {
                // Replicas need not answer.
                let rest = args.iter().enumerate().filter(|(at, word)| *at < 3 || !is_word(word, "get"));
                let all: Vec<&[u8]> = rest.map(|(_, word)| word).collect();
                ctx.db.effect(&all);
            }
            _ => {}
        }
    }
    match (options.get, allowed) {
        (true, _) => {}
        (false, true) => ctx.out.ok(),
        (false, false) => ctx.out.null(),
    }
    Ok(())
}

/// Whether a key holds exactly this string.
fn holds(ctx: &mut Ctx<'_>, key: &[u8], compared: &[u8]) -> Result<bool, CmdError> {
    let string = ctx.db.read_str(key)?;
    Ok(string.is_some_and(|string| string.as_bytes(&mut itoa::Buffer::new()) == compared))
}

/// DELIFEQ key value
pub(super) fn delifeq(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let key = args.at(1);
    let is_equal = holds(ctx, key, args.at(2))?;
    if is_equal {
        ctx.db.remove(key);
        ctx.db.changed(NotifyClass::GENERIC, "del", key);
        ctx.db.effect_deleted(key, Deletion::Implied);
    }
    ctx.out.int(i64::from(is_equal));
    Ok(())
}

/// Stores a string with the notifications of SET.
fn store(ctx: &mut Ctx<'_>, key: &[u8], value: &[u8], ttl: SetTtl) {
    ctx.db.set_str(key, value, ttl);
    ctx.db.changed(NotifyClass::STRING, "set", key);
    if matches!(ttl, SetTtl::At(_)) {
        ctx.db.notify(NotifyClass::GENERIC, "expire", key);
    }
}

/// Records a SET with an expiry by its absolute time.
fn record_at(ctx: &mut Ctx<'_>, key: &[u8], value: &[u8], at_ms: i64) {
    if ctx.db.is_recording() {
        ctx.db.effect(&[b"SET", key, value, b"PXAT", at_ms.to_string().as_bytes()]);
    }
}

/// SETEX key seconds value
pub(super) fn setex(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let at = expire_at(args.at(2), Unit::Seconds, ctx.db.now_ms(), "setex")?;
    store(ctx, args.at(1), args.at(3), SetTtl::At(at));
    record_at(ctx, args.at(1), args.at(3), at);
    ctx.out.ok();
    Ok(())
}

/// PSETEX key milliseconds value
pub(super) fn psetex(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let at = expire_at(args.at(2), Unit::Milliseconds, ctx.db.now_ms(), "psetex")?;
    store(ctx, args.at(1), args.at(3), SetTtl::At(at));
    record_at(ctx, args.at(1), args.at(3), at);
    ctx.out.ok();
    Ok(())
}

/// SETNX key value
pub(super) fn setnx(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let key = args.at(1);
    let is_new = !ctx.db.exists(key);
    if is_new {
        store(ctx, key, args.at(2), SetTtl::Clear);
    }
    ctx.out.int(i64::from(is_new));
    Ok(())
}

/// GETSET key value
pub(super) fn getset(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let key = args.at(1);
    reply_string(ctx, key)?;
    store(ctx, key, args.at(2), SetTtl::Clear);
    ctx.db.effect_replaced(args, &[(0, b"SET")]);
    Ok(())
}

/// Stores the pairs of MSET and MSETNX.
fn store_pairs(ctx: &mut Ctx<'_>, args: Args<'_>) {
    let mut rest = args.slice(1).iter();
    while let (Some(key), Some(value)) = (rest.next(), rest.next()) {
        store(ctx, key, value, SetTtl::Clear);
    }
}

/// MSET key value …
pub(super) fn mset(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    if args.len().is_multiple_of(2) {
        return Err(CmdError::new("ERR wrong number of arguments for 'mset' command"));
    }
    store_pairs(ctx, args);
    ctx.out.ok();
    Ok(())
}

/// MSETNX key value …: all or none.
pub(super) fn msetnx(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    if args.len().is_multiple_of(2) {
        return Err(CmdError::new("ERR wrong number of arguments for 'msetnx' command"));
    }
    let free = args.slice(1).iter().step_by(2).all(|key| !ctx.db.exists(key));
    if free {
        store_pairs(ctx, args);
    }
    ctx.out.int(i64::from(free));
    Ok(())
}

/// GETEX key [EX s | PX ms | EXAT s | PXAT ms | PERSIST]
pub(super) fn getex(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let key = args.at(1);
    let options = options(args.slice(2), Of::Getex)?;
    let before = ctx.out.len();
    reply_string(ctx, key)?;
    let Some(expiry) = ctx.db.expiry(key) else { return Ok(()) };
    match options.expiry {
        Expiry::Given(unit, argument) => {
            let now_ms = ctx.db.now_ms();
            let at = match expire_at(argument, unit, now_ms, "getex") {
                Ok(at) => at,
                Err(error) => {
                    ctx.out.truncate(before);
                    return Err(error);
                }
            };
            if unit.is_absolute() && at <= now_ms {
                ctx.db.remove(key);
                ctx.db.changed(NotifyClass::GENERIC, "del", key);
                ctx.db.effect_deleted(key, Deletion::Expired);
            } else {
                ctx.db.set_expiry(key, Some(at));
                ctx.db.changed(NotifyClass::GENERIC, "expire", key);
                if ctx.db.is_recording() {
                    ctx.db.effect(&[b"PEXPIREAT", key, at.to_string().as_bytes()]);
                }
            }
        }
        Expiry::Remove if expiry.is_some() => {
            ctx.db.set_expiry(key, None);
            ctx.db.changed(NotifyClass::GENERIC, "persist", key);
            ctx.db.effect(&[b"PERSIST", key]);
        }
        Expiry::Remove | Expiry::Keep | Expiry::Unsaid => {}
    }
    Ok(())
}
