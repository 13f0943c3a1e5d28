//! DUMP and RESTORE: a value as bytes of the RDB format.

use crate::ctx::Ctx;
use crate::error::{CmdError, CmdResult, SYNTAX};
use crate::options::{int, is_word};
use keyspace::codec::{ValueLimits, read_value, value_type, write_value};
use keyspace::journal::Deletion;
use keyspace::{NotifyClass, ValueRef};
use rdb::codec::Writer;
use rdb::dump;
use resp::Args;

/// Payload bytes read or written in the time that other commands take for one element.
pub(super) const BYTES_PER_ELEMENT: usize = 64;

const BAD_FORMAT: CmdError = CmdError::new("ERR Bad data format");
const BAD_PAYLOAD: CmdError = CmdError::new("ERR DUMP payload version or checksum are wrong");
const BUSY_KEY: CmdError = CmdError::new("BUSYKEY Target key name already exists.");

/// What writing or copying the value of a key costs, in elements.
pub(super) fn copied_elements(ctx: &Ctx<'_>, key: &[u8]) -> usize {
    match ctx.db.get(key) {
        None => 0,
        Some(ValueRef::Str(string)) => string.len() / BYTES_PER_ELEMENT,
        Some(ValueRef::List(list)) => list.len().max(list.memory_bytes() / BYTES_PER_ELEMENT),
        Some(ValueRef::Set(set)) => set.len(),
        Some(ValueRef::ZSet(zset)) => zset.len(),
        Some(ValueRef::Hash(hash)) => hash.len(),
        Some(ValueRef::Stream(stream)) => stream.free_effort().max(stream.memory_bytes() / BYTES_PER_ELEMENT),
    }
}

/// Appends the DUMP payload of a value.
fn write_payload(out: &mut Vec<u8>, value: ValueRef<'_>) {
    let start = out.len();
    let mut writer = Writer::compressing(out);
    writer.value_type(value_type(value));
    write_value(&mut writer, value);
    dump::append_footer(out, start);
}

/// What DUMP answers for a value.
pub fn payload(value: ValueRef<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    write_payload(&mut out, value);
    out
}

/// DUMP key
pub(super) fn dump(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    match ctx.db.read(args.at(1)) {
        Some(value) => ctx.out.bulk(payload(value)),
        None => ctx.out.null(),
    }
    Ok(())
}

#[derive(Default)]
struct Options {
    replace: bool,
    absolute: bool,
    idle_seconds: Option<i64>,
    frequency: Option<u8>,
}

impl Options {
    fn read(args: Args<'_>) -> Result<Options, CmdError> {
        let mut options = Options::default();
        let mut rest = args.iter();
        while let Some(word) = rest.next() {
            if is_word(word, "replace") {
                options.replace = true;
            } else if is_word(word, "absttl") {
                options.absolute = true;
            } else if is_word(word, "idletime") && options.frequency.is_none() {
                let seconds = int(rest.next().ok_or(SYNTAX)?)?;
                if seconds < 0 {
                    return Err(CmdError::new("ERR Invalid IDLETIME value, must be >= 0"));
                }
                options.idle_seconds = Some(seconds);
            } else if is_word(word, "freq") && options.idle_seconds.is_none() {
                let frequency = int(rest.next().ok_or(SYNTAX)?)?;
                let frequency = u8::try_from(frequency);
                options.frequency =
                    Some(frequency.map_err(|_| CmdError::new("ERR Invalid FREQ value, must be >= 0 and <= 255"))?);
            } else {
                return Err(SYNTAX);
            }
        }
        Ok(options)
    }

    /// The access bits that the options ask for, under the policy in force.
    fn access(&self, ctx: &Ctx<'_>) -> Option<u32> {
        let clock = ctx.db.access_clock();
        if ctx.settings.policy.is_lfu() {
            return self.frequency.map(|frequency| (clock.fresh() & !0xFF) | u32::from(frequency));
        }
        // An idle time beyond what 24 bits of seconds can tell is the longest that they can.
        let idle = u32::try_from(self.idle_seconds?.min(0xFF_FFFE)).ok()?;
        Some(clock.seconds.wrapping_sub(idle) & 0xFF_FFFF)
    }
}

/// RESTORE key ttl payload [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]
pub(super) fn restore(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let key = args.at(1);
    let options = Options::read(args.slice(4))?;
    if !options.replace && ctx.db.exists(key) {
        return Err(BUSY_KEY);
    }
    let ttl = int(args.at(2))?;
    if ttl < 0 {
        return Err(CmdError::new("ERR Invalid TTL value, must be >= 0"));
    }
    let mut payload = dump::verify(args.at(3)).map_err(|_| BAD_PAYLOAD)?;
    let settings = ctx.settings;
    let limits = ValueLimits { hash: &settings.hash, set: &settings.set, zset: &settings.zset, list: &settings.list };
    let decoded = payload.decode().map_err(|_| BAD_FORMAT)?;
    let value = read_value(decoded, limits).map_err(|_| BAD_FORMAT)?;

    let removed = options.replace && ctx.db.remove(key);
    let now_ms = ctx.db.now_ms();
    let expiry = match ttl {
        0 => None,
        ttl if options.absolute => Some(ttl),
        // Redis: a sum past the end of time wraps, and so is over already.
        ttl => Some(ttl.wrapping_add(now_ms)),
    };
    if expiry.is_some_and(|at_ms| at_ms <= now_ms) {
        if removed {
            ctx.db.changed(NotifyClass::GENERIC, "del", key);
            ctx.db.effect_deleted(key, Deletion::Implied);
        }
        ctx.db.reclaim(value);
        ctx.out.ok();
        return Ok(());
    }
    ctx.db.insert(key, value, expiry);
    if let Some(access) = options.access(ctx)
        && let Some(entry) = ctx.db.entry_mut(key)
    {
        entry.set_access(access);
    }
    ctx.db.changed(NotifyClass::GENERIC, "restore", key);
    if ctx.db.is_recording()
        && let Some(at_ms) = expiry.filter(|_| !options.absolute)
    {
        let at = at_ms.to_string();
        let mut all: Vec<&[u8]> = args.iter().collect();
        all[2] = at.as_bytes();
        all.push(b"ABSTTL");
        ctx.db.effect(&all);
    }
    ctx.out.ok();
    Ok(())
}
