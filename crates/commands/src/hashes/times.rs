//! Fields of hashes that end, of Redis 7.4 and 8: HEXPIRE, HTTL and their relatives, HPERSIST, HGETDEL, HGETEX, HSETEX.
//!
//! They are recorded in absolute times, and as what they came to: HPEXPIREAT, HPERSIST, HSET, HDEL. A field whose new time
//! is over already is deleted at once.
//!
//! Redis: a time is below 2^46 milliseconds.

use super::{change, write_value};
use crate::ctx::Ctx;
use crate::error::{CmdError, CmdResult, SYNTAX};
use crate::options::{int, is_word};
use keyspace::{Hash, NotifyClass};
use resp::Args;

const NO_FIELDS: CmdError = CmdError::new("ERR Mandatory argument FIELDS is missing or not at the right position");
const NOT_POSITIVE: CmdError = CmdError::new("ERR Number of fields must be a positive integer");
const NOT_ABOVE_ZERO: CmdError = CmdError::new("ERR Parameter `numFields` should be greater than 0");
const COUNT_DIFFERS: CmdError = CmdError::new("ERR The `numfields` parameter must match the number of arguments");
const NEGATIVE: CmdError = CmdError::new("ERR invalid expire time, must be >= 0");
/// Beyond the last time that a field may have.
const TIME_MAX_MS: i64 = 0xFFFF_FFFF_FFFF >> 2;

/// How a command tells time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Time {
    /// In seconds, else in milliseconds.
    pub(super) seconds: bool,
    /// As Unix time, else from now on.
    pub(super) absolute: bool,
}

impl Time {
    /// The Unix time in ms that an argument of this kind means.
    fn at_ms(self, argument: &[u8], now_ms: i64, command: &str) -> Result<i64, CmdError> {
        let invalid = || CmdError::text(format!("ERR invalid expire time in '{command}' command"));
        let number = int(argument)?;
        if number < 0 {
            return Err(NEGATIVE);
        }
        let ms = if self.seconds { number.checked_mul(1000).ok_or_else(invalid)? } else { number };
        let from_ms = if self.absolute { 0 } else { now_ms };
        ms.checked_add(from_ms).filter(|at_ms| *at_ms <= TIME_MAX_MS).ok_or_else(invalid)
    }
}

/// When the time of a field may be set.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Condition {
    Always,
    /// NX: it has none.
    None,
    /// XX: it has one.
    Some,
    /// GT: it has an earlier one.
    Earlier,
    /// LT: it has a later one, or none.
    Later,
}

impl Condition {
    fn read(word: &[u8]) -> Option<Condition> {
        Some(match word.to_ascii_lowercase().as_slice() {
            b"nx" => Condition::None,
            b"xx" => Condition::Some,
            b"gt" => Condition::Earlier,
            b"lt" => Condition::Later,
            _ => return None,
        })
    }

    fn allows(self, present: Option<i64>, at_ms: i64) -> bool {
        match (self, present) {
            (Condition::Always, _) | (Condition::None | Condition::Later, None) => true,
            (Condition::Some | Condition::Earlier, None) | (Condition::None, Some(_)) => false,
            (Condition::Some, Some(_)) => true,
            (Condition::Earlier, Some(present)) => present < at_ms,
            (Condition::Later, Some(present)) => present > at_ms,
        }
    }
}

/// The arguments behind FIELDS and a count of them, each field with `width - 1` more.
fn fields_at<'a>(args: Args<'a>, at: usize, width: usize, bad_count: CmdError) -> Result<Args<'a>, CmdError> {
    if !args.get(at).is_some_and(|word| is_word(word, "fields")) {
        return Err(NO_FIELDS);
    }
    let count = args.get(at + 1).map(int).and_then(Result::ok);
    let count = count.and_then(|count| usize::try_from(count).ok()).filter(|count| *count > 0).ok_or(bad_count)?;
    let fields = args.slice(at + 2);
    if count.checked_mul(width) == Some(fields.len()) { Ok(fields) } else { Err(COUNT_DIFFERS) }
}

/// Records a command on some fields: `HPEXPIREAT key at FIELDS n …`, `HPERSIST key FIELDS n …`.
fn record(ctx: &mut Ctx<'_>, head: &[&[u8]], fields: &[&[u8]]) {
    if fields.is_empty() || !ctx.db.is_recording() {
        return;
    }
    let count = fields.len().to_string();
    let mut words = head.to_vec();
    words.extend([b"FIELDS".as_slice(), count.as_bytes()]);
    words.extend(fields);
    ctx.db.effect(&words);
}

fn record_deleted(ctx: &mut Ctx<'_>, key: &[u8], fields: &[&[u8]]) {
    if !fields.is_empty() && ctx.db.is_recording() {
        let mut words: Vec<&[u8]> = vec![b"HDEL".as_slice(), key];
        words.extend(fields);
        ctx.db.effect(&words);
    }
}

/// What has been done to the fields of a hash.
#[derive(Default)]
struct Done<'a> {
    timed: Vec<&'a [u8]>,
    deleted: Vec<&'a [u8]>,
    was_timed: bool,
    is_empty: bool,
}

impl<'a> Done<'a> {
    /// Gives a field its time, or deletes it when that is over. It is there.
    fn set_time(&mut self, hash: &mut Hash, field: &'a [u8], at_ms: i64, now_ms: i64) -> i64 {
        // While a log is replayed, and for the commands of a primary, it is no time at all.
        if at_ms <= now_ms {
            hash.delete(field);
            self.deleted.push(field);
            return 2;
        }
        hash.set_time(field, Some(at_ms));
        self.timed.push(field);
        1
    }

    /// Tells, counts and records it all.
    fn finish(self, ctx: &mut Ctx<'_>, key: &[u8], at_ms: i64) {
        ctx.db.field_times_set(key, self.was_timed);
        let changes = self.timed.len() + self.deleted.len();
        if changes == 0 {
            return;
        }
        let event = if self.deleted.is_empty() { "hexpire" } else { "hdel" };
        ctx.db.changed(NotifyClass::HASH, event, key);
        ctx.db.events.dirty += changes as u64 - 1;
        if self.is_empty {
            ctx.db.remove(key);
            ctx.db.notify(NotifyClass::GENERIC, "del", key);
        }
        record_deleted(ctx, key, &self.deleted);
        record(ctx, &[b"HPEXPIREAT", key, at_ms.to_string().as_bytes()], &self.timed);
    }
}

/// `HEXPIRE key seconds [NX | XX | GT | LT] FIELDS count field …`, HPEXPIRE, HEXPIREAT, HPEXPIREAT
pub(super) fn expire(ctx: &mut Ctx<'_>, args: Args<'_>, time: Time, command: &str) -> CmdResult {
    let (key, now_ms) = (args.at(1), ctx.db.now_ms());
    ctx.db.write_hash(key)?;
    let at_ms = time.at_ms(args.at(2), now_ms, command)?;
    let condition = Condition::read(args.at(3));
    let fields = fields_at(args, if condition.is_some() { 4 } else { 3 }, 1, NOT_ABOVE_ZERO)?;
    let condition = condition.unwrap_or(Condition::Always);
    let mut done = Done::default();
    ctx.out.array(fields.len());
    let Some(hash) = ctx.db.write_hash(key)? else {
        fields.iter().for_each(|_| ctx.out.int(-2));
        return Ok(());
    };
    done.was_timed = hash.is_timed();
    for field in fields {
        let reply = if !hash.contains(field) {
            -2
        } else if condition.allows(hash.time_of(field), at_ms) {
            done.set_time(hash, field, at_ms, now_ms)
        } else {
            0
        };
        ctx.out.int(reply);
    }
    done.is_empty = hash.is_empty();
    if done.timed.is_empty() && done.deleted.is_empty() {
        ctx.db.no_effect();
    }
    done.finish(ctx, key, at_ms);
    Ok(())
}

/// `HTTL key FIELDS count field …`, HPTTL, HEXPIRETIME, HPEXPIRETIME: −2 without the field, −1 without a time.
pub(super) fn ttl(ctx: &mut Ctx<'_>, args: Args<'_>, time: Time) -> CmdResult {
    let now_ms = ctx.db.now_ms();
    let hash = ctx.db.read_hash(args.at(1))?;
    let fields = fields_at(args, 2, 1, NOT_POSITIVE)?;
    ctx.out.array(fields.len());
    for field in fields {
        let reply = match hash.filter(|hash| hash.contains(field)).map(|hash| hash.time_of(field)) {
            None => -2,
            Some(None) => -1,
            Some(Some(at_ms)) => {
                let ms = if time.absolute { at_ms } else { at_ms.saturating_sub(now_ms) };
                if time.seconds { ms.saturating_add(999) / 1000 } else { ms }
            }
        };
        ctx.out.int(reply);
    }
    Ok(())
}

/// `HPERSIST key FIELDS count field …`
pub(super) fn persist(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let key = args.at(1);
    ctx.db.write_hash(key)?;
    let fields = fields_at(args, 2, 1, NOT_POSITIVE)?;
    ctx.out.array(fields.len());
    let Some(hash) = ctx.db.write_hash(key)? else {
        fields.iter().for_each(|_| ctx.out.int(-2));
        return Ok(());
    };
    let mut changed = false;
    for field in fields {
        let reply = match hash.time_of(field) {
            Some(_) => {
                hash.set_time(field, None);
                changed = true;
                1
            }
            None if hash.contains(field) => -1,
            None => -2,
        };
        ctx.out.int(reply);
    }
    if changed {
        ctx.db.changed(NotifyClass::HASH, "hpersist", key);
    }
    Ok(())
}

/// `HGETDEL key FIELDS count field …`
pub(super) fn get_del(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let key = args.at(1);
    ctx.db.write_hash(key)?;
    let fields = fields_at(args, 2, 1, NOT_POSITIVE)?;
    ctx.out.array(fields.len());
    let Some(hash) = ctx.db.write_hash(key)? else {
        fields.iter().for_each(|_| ctx.out.null());
        return Ok(());
    };
    let mut deleted: Vec<&[u8]> = Vec::new();
    for field in fields {
        write_value(ctx.out, hash.get(field));
        if hash.delete(field) {
            deleted.push(field);
        }
    }
    let is_empty = hash.is_empty();
    if !deleted.is_empty() {
        ctx.db.changed(NotifyClass::HASH, "hdel", key);
        ctx.db.events.dirty += deleted.len() as u64 - 1;
        if is_empty {
            ctx.db.remove(key);
            ctx.db.notify(NotifyClass::GENERIC, "del", key);
        }
        record_deleted(ctx, key, &deleted);
    }
    Ok(())
}

/// What HGETEX and HSETEX do about times.
#[derive(Clone, Copy)]
enum Wish<'a> {
    /// HGETEX: nothing; HSETEX: fields have no time afterwards.
    Unsaid,
    Persist,
    Keep,
    At(Time, &'a [u8]),
}

impl<'a> Wish<'a> {
    /// Reads the option at `at`; how many arguments it took.
    fn read(args: Args<'a>, at: usize, is_set: bool) -> Result<Option<(Wish<'a>, usize)>, CmdError> {
        let Some(word) = args.get(at) else { return Ok(None) };
        let (seconds, absolute) = match word.to_ascii_lowercase().as_slice() {
            b"ex" => (true, false),
            b"px" => (false, false),
            b"exat" => (true, true),
            b"pxat" => (false, true),
            b"persist" if !is_set => return Ok(Some((Wish::Persist, 1))),
            b"keepttl" if is_set => return Ok(Some((Wish::Keep, 1))),
            _ => return Ok(None),
        };
        let argument = args.get(at + 1).ok_or(SYNTAX)?;
        Ok(Some((Wish::At(Time { seconds, absolute }, argument), 2)))
    }
}

/// `HGETEX key [EX s | PX ms | EXAT s | PXAT ms | PERSIST] FIELDS count field …`
pub(super) fn get_ex(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let (key, now_ms) = (args.at(1), ctx.db.now_ms());
    ctx.db.write_hash(key)?;
    let (wish, width) = Wish::read(args, 2, false)?.unwrap_or((Wish::Unsaid, 0));
    let at_ms = match wish {
        Wish::At(time, argument) => Some(time.at_ms(argument, now_ms, "hgetex")?),
        _ => None,
    };
    let fields = fields_at(args, 2 + width, 1, NOT_POSITIVE)?;
    ctx.out.array(fields.len());
    let Some(hash) = ctx.db.write_hash(key)? else {
        fields.iter().for_each(|_| ctx.out.null());
        return Ok(());
    };
    let mut done = Done { was_timed: hash.is_timed(), ..Done::default() };
    let mut persisted: Vec<&[u8]> = Vec::new();
    for field in fields {
        write_value(ctx.out, hash.get(field));
        if !hash.contains(field) {
            continue;
        }
        if let Some(at_ms) = at_ms {
            done.set_time(hash, field, at_ms, now_ms);
        } else if matches!(wish, Wish::Persist) && hash.time_of(field).is_some() {
            hash.set_time(field, None);
            persisted.push(field);
        }
    }
    done.is_empty = hash.is_empty();
    if !persisted.is_empty() {
        ctx.db.changed(NotifyClass::HASH, "hpersist", key);
        record(ctx, &[b"HPERSIST", key], &persisted);
    }
    done.finish(ctx, key, at_ms.unwrap_or_default());
    Ok(())
}

/// `HSETEX key [FNX | FXX] [EX s | PX ms | EXAT s | PXAT ms | KEEPTTL] FIELDS count field value …`
pub(super) fn set_ex(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let (key, now_ms) = (args.at(1), ctx.db.now_ms());
    ctx.db.write_hash(key)?;
    let (mut only_if, mut wish, mut at) = (None, Wish::Unsaid, 2);
    while let Some(word) = args.get(at).filter(|word| !is_word(word, "fields")) {
        if only_if.is_none() && (is_word(word, "fnx") || is_word(word, "fxx")) {
            only_if = Some(is_word(word, "fxx"));
            at += 1;
        } else if let (Wish::Unsaid, Some((read, width))) = (wish, Wish::read(args, at, true)?) {
            wish = read;
            at += width;
        } else {
            return Err(SYNTAX);
        }
    }
    let at_ms = match wish {
        Wish::At(time, argument) => Some(time.at_ms(argument, now_ms, "hsetex")?),
        _ => None,
    };
    let pairs = fields_at(args, at, 2, NOT_POSITIVE)?;
    let names = || pairs.iter().step_by(2);
    if let Some(wanted) = only_if {
        let hash = ctx.db.write_hash(key)?;
        if !names().all(|field| hash.as_ref().is_some_and(|hash| hash.contains(field)) == wanted) {
            ctx.out.int(0);
            return Ok(());
        }
    }
    let limits = ctx.settings.hash;
    let was_timed = ctx.db.write_hash(key)?.is_some_and(|hash| hash.is_timed());
    let existed = ctx.db.exists(key);
    let mut done = Done { was_timed, ..Done::default() };
    change(ctx, key, |hash| {
        hash.prepare(pairs.iter(), &limits);
        let mut rest = pairs.iter();
        while let (Some(field), Some(value)) = (rest.next(), rest.next()) {
            match wish {
                Wish::Keep => hash.set_keeping_time(field, value, &limits),
                _ => hash.set(field, value, &limits),
            };
        }
        if let Some(at_ms) = at_ms {
            for field in names() {
                if hash.contains(field) {
                    done.set_time(hash, field, at_ms, now_ms);
                }
            }
        }
        done.is_empty = hash.is_empty();
    })?;
    if !existed && done.is_empty {
        // All of it was over before it began.
        ctx.db.no_effect();
        ctx.out.int(1);
        return Ok(());
    }
    // A new hash has been counted with its times when it got its key.
    done.was_timed |= !existed;
    ctx.db.changed(NotifyClass::HASH, "hset", key);
    ctx.db.events.dirty += pairs.len() as u64 / 2 - 1;
    if ctx.db.is_recording() {
        record_set(ctx, key, pairs, matches!(wish, Wish::Keep));
    }
    done.finish(ctx, key, at_ms.unwrap_or_default());
    ctx.out.int(1);
    Ok(())
}

/// As HSET, or where times are kept, as HSETEX.
fn record_set(ctx: &mut Ctx<'_>, key: &[u8], pairs: Args<'_>, keeps: bool) {
    let count = (pairs.len() / 2).to_string();
    let mut words: Vec<&[u8]> = if keeps {
        vec![b"HSETEX".as_slice(), key, b"KEEPTTL", b"FIELDS", count.as_bytes()]
    } else {
        vec![b"HSET".as_slice(), key]
    };
    words.extend(pairs.iter());
    ctx.db.effect(&words);
}
