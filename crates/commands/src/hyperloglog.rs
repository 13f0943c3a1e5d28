//! HyperLogLog commands: counting different elements in strings of at most 12 KiB.
//!
//! A HyperLogLog is a string; GET, SET and DUMP take it anywhere, byte for byte as Redis makes it. So any string may come
//! along here: [`sketch`] believes nothing but what it has checked. [`sparse`] is the form that small ones have,
//! [`estimate`] turns registers into a count, [`selftest`] is PFSELFTEST.

mod estimate;
mod selftest;
mod sketch;
mod sparse;
#[cfg(test)]
mod tests;

use crate::ctx::Ctx;
use crate::dispatch::{Cost, Handler};
use crate::error::{CmdError, CmdResult, WRONG_TYPE};
use crate::options::is_word;
use crate::table::CommandId;
use keyspace::{DbView, NotifyClass, StrRef, Value, ValueRef};
use resp::Args;
use sketch::{Corrupt, Encoding, REGISTERS, Sketch};

const NOT_A_SKETCH: CmdError = CmdError::new("WRONGTYPE Key is not a valid HyperLogLog string value.");
const CORRUPT: CmdError = CmdError::new("INVALIDOBJ Corrupted HLL object detected");

impl From<Corrupt> for CmdError {
    fn from(_: Corrupt) -> CmdError {
        CORRUPT
    }
}

/// The function of a command of this family.
pub(crate) fn handler(id: CommandId) -> Option<Handler> {
    Some(match id {
        CommandId::Pfadd => pfadd,
        CommandId::Pfcount => pfcount,
        CommandId::Pfmerge => pfmerge,
        CommandId::Pfdebug => pfdebug,
        CommandId::Pfselftest => selftest::pfselftest,
        _ => return None,
    })
}

/// The cost function of a command of this family.
pub(crate) fn cost(id: CommandId) -> Option<Cost> {
    /// What merging one key costs at most, in elements of other types.
    const MERGED_KEY: usize = 512;
    Some(match id {
        CommandId::Pfcount => |_, args| if args.len() > 2 { args.len() * MERGED_KEY } else { 0 },
        CommandId::Pfmerge => |_, args| args.len() * MERGED_KEY,
        CommandId::Pfselftest => |_, _| usize::MAX,
        _ => return None,
    })
}

/// The bytes of a value, if it may be a HyperLogLog.
fn checked(value: ValueRef<'_>) -> Result<&[u8], CmdError> {
    match value {
        ValueRef::Str(StrRef::Bytes(bytes)) if sketch::encoding_of(bytes).is_some() => Ok(bytes),
        ValueRef::Str(_) => Err(NOT_A_SKETCH),
        _ => Err(WRONG_TYPE),
    }
}

/// Looks whether a key holds what may be a HyperLogLog, for a changing command. False: no key.
fn is_there(db: &mut DbView<'_>, key: &[u8]) -> Result<bool, CmdError> {
    let clock = db.access_clock();
    let Some(entry) = db.entry_mut(key) else { return Ok(false) };
    checked(entry.value())?;
    clock.touch(entry);
    Ok(true)
}

/// Lends the HyperLogLog at a key that has been looked at, to change.
fn with_sketch<R>(
    db: &mut DbView<'_>,
    key: &[u8],
    work: impl FnOnce(Sketch<'_>) -> Result<R, Corrupt>,
) -> Result<R, CmdError> {
    let result = db.update(key, |entry| Some(work(Sketch::of(entry.make_buffer()?)?)));
    Ok(result.flatten().ok_or(NOT_A_SKETCH)??)
}

/// PFADD key [element …]
fn pfadd(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let key = args.at(1);
    let elements = args.slice(2);
    let sparse_max = ctx.settings.hll_sparse_max_bytes;
    let add_all = |mut sketch: Sketch<'_>, changes: u64| {
        // Nothing may have changed when a later element finds the value corrupt. One alone has changed nothing then.
        let before = if elements.len() > 1 { sketch.snapshot() } else { None };
        let mut changes = changes;
        for element in elements {
            match sketch.add(element, sparse_max) {
                Ok(changed) => changes += u64::from(changed),
                Err(corrupt) => {
                    sketch.restore(before);
                    return Err(corrupt);
                }
            }
        }
        if changes > 0 {
            sketch.forget_count();
        }
        Ok(changes)
    };
    let changes = if is_there(&mut ctx.db, key)? {
        with_sketch(&mut ctx.db, key, |sketch| add_all(sketch, 0))?
    } else {
        let mut bytes = sketch::empty();
        // Making the key counts as a change.
        let changes = add_all(Sketch::of(&mut bytes).ok_or(NOT_A_SKETCH)?, 1)?;
        ctx.db.insert(key, Value::RawStr(bytes), None);
        changes
    };
    if changes > 0 {
        ctx.db.changed(NotifyClass::STRING, "pfadd", key);
        ctx.db.events.dirty += changes - 1;
    }
    ctx.out.int(i64::from(changes > 0));
    Ok(())
}

/// PFCOUNT key [key …]
fn pfcount(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let key = args.at(1);
    if args.len() > 2 {
        let registers = merged(&mut ctx.db, args.slice(1))?.registers;
        ctx.out.int(estimate::count(&estimate::histogram_of(&registers)));
        return Ok(());
    }
    match ctx.db.read(key) {
        None => {
            ctx.out.int(0);
            return Ok(());
        }
        Some(value) => checked(value)?,
    };
    let (count, renewed) = with_sketch(&mut ctx.db, key, |mut sketch| match sketch.cached_count() {
        Some(count) => Ok((count, false)),
        None => {
            let count = estimate::count(&sketch.histogram()?);
            sketch.cache_count(count);
            Ok((count, true))
        }
    })?;
    if renewed {
        // Redis: the value's bytes have changed, so watchers and replicas are told, though no client sees a difference.
        ctx.db.signal(key);
        ctx.db.events.dirty += 1;
    }
    ctx.out.int(count);
    Ok(())
}

/// Several HyperLogLogs as one.
struct Merged {
    /// The maximum of each register.
    registers: Box<[u8; REGISTERS]>,
    /// Whether one of them was dense.
    any_dense: bool,
}

fn merged(db: &mut DbView<'_>, keys: Args<'_>) -> Result<Merged, CmdError> {
    let mut merged = Merged { registers: Box::new([0; REGISTERS]), any_dense: false };
    for key in keys {
        let Some(value) = db.read(key) else { continue };
        let bytes = checked(value)?;
        merged.any_dense |= sketch::encoding_of(bytes) == Some(Encoding::Dense);
        sketch::merge_into(&mut merged.registers, bytes)?;
    }
    Ok(merged)
}

/// PFMERGE destination [source …]
fn pfmerge(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let key = args.at(1);
    let sparse_max = ctx.settings.hll_sparse_max_bytes;
    let Merged { registers, any_dense } = merged(&mut ctx.db, args.slice(1))?;
    let fill = |mut sketch: Sketch<'_>| {
        if any_dense {
            sketch.make_dense()?;
        }
        for (index, value) in registers.iter().enumerate().filter(|(_, value)| **value > 0) {
            sketch.raise(index, *value, sparse_max)?;
        }
        sketch.forget_count();
        Ok(())
    };
    if is_there(&mut ctx.db, key)? {
        with_sketch(&mut ctx.db, key, fill)?;
    } else {
        let mut bytes = sketch::empty();
        fill(Sketch::of(&mut bytes).ok_or(NOT_A_SKETCH)?)?;
        ctx.db.insert(key, Value::RawStr(bytes), None);
    }
    ctx.db.changed(NotifyClass::STRING, "pfadd", key);
    ctx.out.ok();
    Ok(())
}

/// PFDEBUG GETREG|DECODE|ENCODING|TODENSE key
fn pfdebug(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let (what, key) = (args.at(1), args.at(2));
    if !is_there(&mut ctx.db, key)? {
        return Err(CmdError::new("ERR The specified key does not exist"));
    }
    match what {
        _ if is_word(what, "getreg") => {
            let (converted, registers) =
                with_sketch(&mut ctx.db, key, |mut sketch| Ok((sketch.make_dense()?, sketch.registers()?)))?;
            ctx.db.events.dirty += u64::from(converted);
            ctx.out.array(registers.len());
            for register in registers.iter() {
                ctx.out.int(i64::from(*register));
            }
        }
        _ if is_word(what, "decode") => {
            let text = with_sketch(&mut ctx.db, key, |sketch| sketch.decode())?;
            ctx.out.bulk(text.ok_or(CmdError::new("ERR HLL encoding is not sparse"))?);
        }
        _ if is_word(what, "encoding") => {
            let encoding = with_sketch(&mut ctx.db, key, |sketch| Ok(sketch.encoding()))?;
            ctx.out.simple(match encoding {
                Encoding::Dense => "dense",
                Encoding::Sparse => "sparse",
            });
        }
        _ if is_word(what, "todense") => {
            let converted = with_sketch(&mut ctx.db, key, |mut sketch| sketch.make_dense())?;
            ctx.db.events.dirty += u64::from(converted);
            ctx.out.int(i64::from(converted));
        }
        _ => {
            let what = String::from_utf8_lossy(what);
            return Err(CmdError::text(format!("ERR Unknown PFDEBUG subcommand '{what}'")));
        }
    }
    Ok(())
}
