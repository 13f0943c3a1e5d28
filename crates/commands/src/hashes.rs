//! Commands on hashes.
//!
//! A hash is met in its own encoding only through [`keyspace::Hash`]; the thresholds come with the settings. Commands
//! that make a hash fill it before it gets a key, so no empty hash is ever seen.
//!
//! Hot path: HGET, HSET, HEXISTS and HDEL allocate nothing but what they store.

#[cfg(test)]
mod tests;
mod times;

use crate::collections::{self, RandomCount, ScanOptions, draw_in_batches, write_elem};
use crate::ctx::Ctx;
use crate::dispatch::{Cost, Handler};
use crate::error::{CmdError, CmdResult, NOT_A_FLOAT, SYNTAX};
use crate::options;
use crate::table::CommandId;
use keyspace::{Hash, NotifyClass, Value, ValueRef};
use rdb::listpack::Elem;
use resp::num::LongDouble;
use resp::{Args, Reply};

/// The function of a command of this family.
pub(crate) fn handler(id: CommandId) -> Option<Handler> {
    Some(match id {
        CommandId::Hget => hget,
        CommandId::Hset => hset,
        CommandId::Hmget => hmget,
        CommandId::Hmset => hmset,
        CommandId::Hgetall => hgetall,
        CommandId::Hdel => hdel,
        CommandId::Hexists => hexists,
        CommandId::Hincrby => hincrby,
        CommandId::Hincrbyfloat => hincrbyfloat,
        CommandId::Hkeys => hkeys,
        CommandId::Hlen => hlen,
        CommandId::Hrandfield => hrandfield,
        CommandId::Hscan => hscan,
        CommandId::Hsetnx => hsetnx,
        CommandId::Hstrlen => hstrlen,
        CommandId::Hvals => hvals,
        CommandId::Hexpire => |ctx, args| times::expire(ctx, args, time(true, false), "hexpire"),
        CommandId::Hexpireat => |ctx, args| times::expire(ctx, args, time(true, true), "hexpireat"),
        CommandId::Hpexpire => |ctx, args| times::expire(ctx, args, time(false, false), "hpexpire"),
        CommandId::Hpexpireat => |ctx, args| times::expire(ctx, args, time(false, true), "hpexpireat"),
        CommandId::Httl => |ctx, args| times::ttl(ctx, args, time(true, false)),
        CommandId::Hpttl => |ctx, args| times::ttl(ctx, args, time(false, false)),
        CommandId::Hexpiretime => |ctx, args| times::ttl(ctx, args, time(true, true)),
        CommandId::Hpexpiretime => |ctx, args| times::ttl(ctx, args, time(false, true)),
        CommandId::Hpersist => times::persist,
        CommandId::Hgetdel => times::get_del,
        CommandId::Hgetex => times::get_ex,
        CommandId::Hsetex => times::set_ex,
        _ => return None,
    })
}

fn time(seconds: bool, absolute: bool) -> times::Time {
    times::Time { seconds, absolute }
}

/// The cost function of a command of this family.
pub(crate) fn cost(id: CommandId) -> Option<Cost> {
    match id {
        CommandId::Hgetall | CommandId::Hkeys | CommandId::Hvals => Some(cost_of_all),
        CommandId::Hrandfield => Some(cost_of_random),
        CommandId::Hscan => Some(cost_of_scan),
        _ => None,
    }
}

/// Number of fields, 0 when there is no hash.
fn len_of(ctx: &Ctx<'_>, key: &[u8]) -> usize {
    match ctx.db.get(key) {
        Some(ValueRef::Hash(hash)) => hash.len(),
        _ => 0,
    }
}

fn cost_of_all(ctx: &mut Ctx<'_>, args: Args<'_>) -> usize {
    len_of(ctx, args.at(1))
}

fn cost_of_random(ctx: &mut Ctx<'_>, args: Args<'_>) -> usize {
    match args.get(2).and_then(|count| RandomCount::parse(count).ok()) {
        Some(count) => count.of(len_of(ctx, args.at(1))),
        None => 1,
    }
}

fn cost_of_scan(ctx: &mut Ctx<'_>, args: Args<'_>) -> usize {
    match ScanOptions::parse_hash(args.slice(3)) {
        Ok((options, _)) => options.count.min(len_of(ctx, args.at(1))),
        Err(_) => 1,
    }
}

// ---- one field -------------------------------------------------------------------------------------------------------

fn write_value(out: &mut Reply, value: Option<Elem<'_>>) {
    match value {
        Some(value) => write_elem(out, value),
        None => out.null(),
    }
}

/// `HGET key field`
fn hget(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let value = match ctx.db.read_hash(args.at(1))? {
        Some(hash) => hash.get(args.at(2)),
        None => None,
    };
    write_value(ctx.out, value);
    Ok(())
}

/// `HMGET key field [field …]`
fn hmget(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let hash = ctx.db.read_hash(args.at(1))?;
    let fields = args.slice(2);
    ctx.out.array(fields.len());
    for field in fields {
        write_value(ctx.out, hash.and_then(|hash| hash.get(field)));
    }
    Ok(())
}

/// `HEXISTS key field`
fn hexists(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let exists = ctx.db.read_hash(args.at(1))?.is_some_and(|hash| hash.contains(args.at(2)));
    ctx.out.int(i64::from(exists));
    Ok(())
}

/// `HSTRLEN key field`
fn hstrlen(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let len = ctx.db.read_hash(args.at(1))?.and_then(|hash| hash.value_len(args.at(2)));
    ctx.out.count(len.unwrap_or(0));
    Ok(())
}

/// `HLEN key`
fn hlen(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let len = ctx.db.read_hash(args.at(1))?.map_or(0, Hash::len);
    ctx.out.count(len);
    Ok(())
}

/// Lends the hash at a key, or a new one that gets the key afterwards.
fn change<R>(ctx: &mut Ctx<'_>, key: &[u8], work: impl FnOnce(&mut Hash) -> R) -> Result<R, CmdError> {
    if let Some(hash) = ctx.db.write_hash(key)? {
        return Ok(work(hash));
    }
    let mut hash = Hash::new();
    let result = work(&mut hash);
    if !hash.is_empty() {
        ctx.db.insert(key, Value::Hash(hash), None);
    }
    Ok(result)
}

/// Sets the pairs behind the key; how many fields are new.
fn set_pairs(ctx: &mut Ctx<'_>, args: Args<'_>, command: &str) -> Result<usize, CmdError> {
    if args.len() % 2 == 1 {
        return Err(CmdError::text(format!("ERR wrong number of arguments for '{command}' command")));
    }
    let key = args.at(1);
    let pairs = args.slice(2);
    let limits = &ctx.settings.hash;
    let created = change(ctx, key, |hash| {
        hash.prepare(pairs.iter(), limits);
        let mut created = 0;
        let mut pairs = pairs.iter();
        while let (Some(field), Some(value)) = (pairs.next(), pairs.next()) {
            created += usize::from(hash.set(field, value, limits));
        }
        created
    })?;
    ctx.db.changed(NotifyClass::HASH, "hset", key);
    ctx.db.events.dirty += pairs.len() as u64 / 2 - 1;
    Ok(created)
}

/// `HSET key field value [field value …]`
fn hset(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let created = set_pairs(ctx, args, "hset")?;
    ctx.out.count(created);
    Ok(())
}

/// `HMSET key field value [field value …]`
fn hmset(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    set_pairs(ctx, args, "hmset")?;
    ctx.out.ok();
    Ok(())
}

/// `HSETNX key field value`
fn hsetnx(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let (key, field, value) = (args.at(1), args.at(2), args.at(3));
    let limits = &ctx.settings.hash;
    let is_set = change(ctx, key, |hash| {
        if hash.contains(field) {
            return false;
        }
        hash.prepare(args.slice(2).iter(), limits);
        hash.set(field, value, limits)
    })?;
    if is_set {
        ctx.db.changed(NotifyClass::HASH, "hset", key);
    }
    ctx.out.int(i64::from(is_set));
    Ok(())
}

/// `HDEL key field [field …]`
fn hdel(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let key = args.at(1);
    let mut deleted = 0_usize;
    let mut is_emptied = false;
    if let Some(hash) = ctx.db.write_hash(key)? {
        for field in args.slice(2) {
            deleted += usize::from(hash.delete(field));
            if hash.is_empty() {
                is_emptied = true;
                break;
            }
        }
    }
    if deleted > 0 {
        ctx.db.changed(NotifyClass::HASH, "hdel", key);
        ctx.db.events.dirty += deleted as u64 - 1;
        if is_emptied {
            ctx.db.remove(key);
            ctx.db.notify(NotifyClass::GENERIC, "del", key);
        }
    }
    ctx.out.count(deleted);
    Ok(())
}

// ---- numbers ---------------------------------------------------------------------------------------------------------

/// `HINCRBY key field increment`
fn hincrby(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    const NOT_INTEGER: CmdError = CmdError::new("ERR hash value is not an integer");
    const OVERFLOW: CmdError = CmdError::new("ERR increment or decrement would overflow");
    let (key, field) = (args.at(1), args.at(2));
    let increment = options::int(args.at(3))?;
    let limits = &ctx.settings.hash;
    let sum = change(ctx, key, |hash| {
        let old = match hash.get(field) {
            Some(value) => value.as_int().ok_or(NOT_INTEGER)?,
            None => 0,
        };
        let sum = old.checked_add(increment).ok_or(OVERFLOW)?;
        hash.set_keeping_time(field, resp::num::format_int(sum, &mut [0; 24]), limits);
        Ok::<i64, CmdError>(sum)
    })??;
    ctx.db.changed(NotifyClass::HASH, "hincrby", key);
    ctx.out.int(sum);
    Ok(())
}

/// `HINCRBYFLOAT key field increment`: calculates with x87 long doubles, as Redis does.
fn hincrbyfloat(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    const INFINITE: CmdError = CmdError::new("ERR value is NaN or Infinity");
    const NOT_FLOAT: CmdError = CmdError::new("ERR hash value is not a float");
    const OVERFLOW: CmdError = CmdError::new("ERR increment would produce NaN or Infinity");
    let (key, field) = (args.at(1), args.at(2));
    let increment = LongDouble::parse(args.at(3)).ok_or(NOT_A_FLOAT)?;
    if increment.is_nan() || increment.is_inf() {
        return Err(INFINITE);
    }
    let limits = &ctx.settings.hash;
    let text = change(ctx, key, |hash| {
        let old = match hash.get(field) {
            Some(Elem::Int(value)) => LongDouble::from_i64(value),
            Some(Elem::Bytes(text)) => LongDouble::parse(text).ok_or(NOT_FLOAT)?,
            None => LongDouble::from_i64(0),
        };
        let sum = old.add(increment);
        if sum.is_nan() || sum.is_inf() {
            return Err(OVERFLOW);
        }
        let text = sum.to_human();
        hash.set_keeping_time(field, &text, limits);
        Ok((text, hash.time_of(field).is_some()))
    })??;
    let (text, keeps_time) = text;
    ctx.db.changed(NotifyClass::HASH, "hincrbyfloat", key);
    if keeps_time {
        ctx.db.effect(&[b"HSETEX", key, b"KEEPTTL", b"FIELDS", b"1", field, &text]);
    } else {
        ctx.db.effect(&[b"HSET", key, field, &text]);
    }
    ctx.out.bulk(&text);
    Ok(())
}

// ---- all fields ------------------------------------------------------------------------------------------------------

/// `HGETALL key`
fn hgetall(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    match ctx.db.read_hash(args.at(1))? {
        Some(hash) => {
            ctx.out.map(hash.len());
            for (field, value) in hash {
                write_elem(ctx.out, field);
                write_elem(ctx.out, value);
            }
        }
        None => ctx.out.map(0),
    }
    Ok(())
}

/// `HKEYS key`
fn hkeys(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    match ctx.db.read_hash(args.at(1))? {
        Some(hash) => {
            ctx.out.array(hash.len());
            hash.iter().for_each(|(field, _)| write_elem(ctx.out, field));
        }
        None => ctx.out.empty_array(),
    }
    Ok(())
}

/// `HVALS key`
fn hvals(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    match ctx.db.read_hash(args.at(1))? {
        Some(hash) => {
            ctx.out.array(hash.len());
            hash.iter().for_each(|(_, value)| write_elem(ctx.out, value));
        }
        None => ctx.out.empty_array(),
    }
    Ok(())
}

/// `HSCAN key cursor [MATCH pattern] [COUNT count] [NOVALUES]`
fn hscan(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let cursor = collections::cursor(args.at(2))?;
    let Some(hash) = ctx.db.read_hash(args.at(1))? else { return collections::empty_scan(ctx.out) };
    let (options, with_values) = ScanOptions::parse_hash(args.slice(3))?;
    collections::reply_scan(ctx.out, |out| {
        let mut written = 0;
        let next = hash.scan(cursor, options.count, |field, value| {
            if options.wants(field) {
                write_elem(out, field);
                written += 1;
                if with_values {
                    write_elem(out, value);
                    written += 1;
                }
            }
        });
        (next, written)
    });
    Ok(())
}

/// `HRANDFIELD key [count [WITHVALUES]]`
fn hrandfield(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let Some(count) = args.get(2) else {
        let field = ctx.db.read_hash(args.at(1))?.and_then(|hash| hash.random(&mut fastrand::Rng::new()));
        write_value(ctx.out, field.map(|(field, _)| field));
        return Ok(());
    };
    let count = RandomCount::parse(count)?;
    let with_values = match args.get(3) {
        None => false,
        Some(word) if args.len() == 4 && options::is_word(word, "withvalues") => {
            count.check_pairs()?;
            true
        }
        Some(_) => return Err(SYNTAX),
    };
    let Some(hash) = ctx.db.read_hash(args.at(1))? else {
        ctx.out.empty_array();
        return Ok(());
    };
    let replies = count.of(hash.len());
    let is_flat = with_values && !ctx.out.is_resp3();
    ctx.out.array(if is_flat { replies * 2 } else { replies });
    let write = |out: &mut Reply, field: Elem<'_>, value: Elem<'_>| {
        if with_values && !is_flat {
            out.array(2);
        }
        write_elem(out, field);
        if with_values {
            write_elem(out, value);
        }
    };
    let mut rng = fastrand::Rng::new();
    match count {
        RandomCount::Distinct(count) => {
            hash.random_distinct(&mut rng, count, |field, value| write(ctx.out, field, value));
            Ok(())
        }
        RandomCount::Repeats(count) => draw_in_batches(ctx.out, count, |out, batch| {
            hash.random_with_repeats(&mut rng, batch, |field, value| write(out, field, value));
        }),
    }
}
