//! BITFIELD: integers of 1 to 64 bits at any bit offset of a string.

use super::{BAD_OFFSET, with_buffer};
use crate::ctx::Ctx;
use crate::error::{CmdError, CmdResult, SYNTAX, WRONG_TYPE};
use crate::options::{int, is_word};
use keyspace::{NotifyClass, ValueRef};
use resp::{Args, Reply};
use smallvec::SmallVec;

const BAD_TYPE: CmdError =
    CmdError::new("ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.");

/// An integer's place: signed or not, width and first bit.
#[derive(Clone, Copy)]
struct Field {
    signed: bool,
    bits: u32,
    offset: usize,
}

/// What becomes of a value that does not fit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Overflow {
    Wrap,
    Saturate,
    /// Nothing is written, and null replied.
    Fail,
}

#[derive(Clone, Copy)]
enum Action {
    Get,
    Set(i64),
    Add(i64),
}

#[derive(Clone, Copy)]
struct Step {
    field: Field,
    action: Action,
    overflow: Overflow,
}

impl Field {
    fn read(kind: &[u8], offset: &[u8], max_bytes: usize) -> Result<Field, CmdError> {
        let (signed, digits) = match kind {
            [b'i', digits @ ..] => (true, digits),
            [b'u', digits @ ..] => (false, digits),
            _ => return Err(BAD_TYPE),
        };
        let max = if signed { 64 } else { 63 };
        let bits = resp::num::parse_i64(digits).and_then(|bits| u32::try_from(bits).ok());
        let bits = bits.filter(|bits| (1..=max).contains(bits)).ok_or(BAD_TYPE)?;
        // `#n` is the n-th field of this width.
        let (digits, unit) = match offset {
            [b'#', digits @ ..] => (digits, i64::from(bits)),
            digits => (digits, 1),
        };
        let offset = resp::num::parse_i64(digits).and_then(|number| number.checked_mul(unit));
        let offset = offset.and_then(|offset| usize::try_from(offset).ok()).filter(|offset| offset / 8 < max_bytes);
        Ok(Field { signed, bits, offset: offset.ok_or(BAD_OFFSET)? })
    }

    /// Bytes that a string must have to hold the field.
    fn end(&self) -> usize {
        (self.offset + self.bits as usize).div_ceil(8)
    }

    fn load(&self, bytes: &[u8]) -> i64 {
        let mut value = 0_u64;
        for bit in self.offset..self.offset + self.bits as usize {
            value = value << 1 | u64::from(super::get_bit(bytes, bit));
        }
        self.extend(value)
    }

    /// The number that the lowest bits of `value` are.
    #[allow(clippy::cast_possible_wrap)]
    fn extend(&self, value: u64) -> i64 {
        let unused = 64 - self.bits;
        if self.signed { (value << unused) as i64 >> unused } else { (value << unused >> unused) as i64 }
    }

    #[allow(clippy::cast_sign_loss)]
    fn store(&self, bytes: &mut [u8], value: i64) {
        let value = value as u64;
        for step in 0..self.bits {
            let bit = self.offset + step as usize;
            let mask = 0x80_u8 >> (bit % 8);
            if let Some(byte) = bytes.get_mut(bit / 8) {
                *byte = if value >> (self.bits - 1 - step) & 1 == 1 { *byte | mask } else { *byte & !mask };
            }
        }
    }

    /// Redis: setting a number so far below the field's range that their distance leaves 64 bits saturates at the top.
    fn as_redis_saturates(&self, wanted: i128) -> i128 {
        let max = (1_i128 << (self.bits - 1)) - 1;
        if self.signed && self.bits < 64 && max - wanted > i128::from(i64::MAX) { max } else { wanted }
    }

    /// The number that is stored for `wanted`; `None` when it does not fit and that fails.
    #[allow(clippy::cast_sign_loss, clippy::cast_possible_truncation)]
    fn fit(&self, wanted: i128, overflow: Overflow) -> Option<i64> {
        let (min, max) = if self.signed {
            (-(1_i128 << (self.bits - 1)), (1_i128 << (self.bits - 1)) - 1)
        } else {
            (0, (1_i128 << self.bits) - 1)
        };
        if (min..=max).contains(&wanted) {
            return i64::try_from(wanted).ok();
        }
        match overflow {
            Overflow::Wrap => Some(self.extend(wanted as u64)),
            Overflow::Saturate => i64::try_from(wanted.clamp(min, max)).ok(),
            Overflow::Fail => None,
        }
    }
}

/// Reads the subcommands.
fn steps(args: Args<'_>, max_bytes: usize) -> Result<SmallVec<[Step; 4]>, CmdError> {
    let mut steps = SmallVec::new();
    let mut overflow = Overflow::Wrap;
    let mut index = 2;
    while let Some(word) = args.get(index) {
        let after = args.len() - index - 1;
        if is_word(word, "overflow") && after >= 1 {
            overflow = [("wrap", Overflow::Wrap), ("sat", Overflow::Saturate), ("fail", Overflow::Fail)]
                .into_iter()
                .find_map(|(name, overflow)| is_word(args.at(index + 1), name).then_some(overflow))
                .ok_or(CmdError::new("ERR Invalid OVERFLOW type specified"))?;
            index += 2;
            continue;
        }
        let is_get = is_word(word, "get") && after >= 2;
        let is_set = is_word(word, "set") && after >= 3;
        let is_add = is_word(word, "incrby") && after >= 3;
        if !(is_get || is_set || is_add) {
            return Err(SYNTAX);
        }
        let field = Field::read(args.at(index + 1), args.at(index + 2), max_bytes)?;
        let action = if is_get {
            Action::Get
        } else if is_set {
            Action::Set(int(args.at(index + 3))?)
        } else {
            Action::Add(int(args.at(index + 3))?)
        };
        steps.push(Step { field, action, overflow });
        index += if is_get { 3 } else { 4 };
    }
    Ok(steps)
}

/// BITFIELD key [GET type offset | [OVERFLOW WRAP | SAT | FAIL] SET type offset value | INCRBY type offset increment] …
pub(super) fn bitfield(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    run(ctx, args, false)
}

/// BITFIELD_RO key [GET type offset] …
pub(super) fn bitfield_ro(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    run(ctx, args, true)
}

fn run(ctx: &mut Ctx<'_>, args: Args<'_>, read_only: bool) -> CmdResult {
    let key = args.at(1);
    let steps = steps(args, ctx.settings.max_bulk)?;
    let end = steps.iter().filter(|step| !matches!(step.action, Action::Get)).map(|step| step.field.end()).max();
    let Some(end) = end else {
        let mut digits = itoa::Buffer::new();
        let bytes = match ctx.db.read(key) {
            None => &[][..],
            Some(ValueRef::Str(string)) => string.as_bytes(&mut digits),
            Some(_) => return Err(WRONG_TYPE),
        };
        ctx.out.array(steps.len());
        for step in &steps {
            ctx.out.int(step.field.load(bytes));
        }
        return Ok(());
    };
    if read_only {
        return Err(CmdError::new("ERR BITFIELD_RO only supports the GET subcommand"));
    }
    let out = &mut *ctx.out;
    let (changes, grows) = with_buffer(&mut ctx.db, key, end, |bytes, grown| {
        out.array(steps.len());
        let changes = steps.iter().filter(|step| perform(out, bytes, step, grown)).count();
        (changes, grown)
    })?;
    if changes > 0 {
        ctx.db.changed(NotifyClass::STRING, "setbit", key);
        // Redis counts each step that changed something.
        ctx.db.events.dirty += changes as u64 - 1;
    } else if grows {
        // All steps failed, but the string has grown: replicas must have it, though Redis does not tell them.
        ctx.db.always_effect();
    }
    Ok(())
}

/// Performs one step and replies. True: it counts as a change.
fn perform(out: &mut Reply, bytes: &mut [u8], step: &Step, grown: bool) -> bool {
    let Step { field, action, overflow } = *step;
    let before = field.load(bytes);
    let wanted = match action {
        Action::Get => {
            out.int(before);
            return false;
        }
        // An unsigned field takes the 64 bits of a negative number as a large one.
        #[allow(clippy::cast_sign_loss)]
        Action::Set(value) if !field.signed => i128::from(value as u64),
        Action::Set(value) => i128::from(value),
        Action::Add(increment) => i128::from(before) + i128::from(increment),
    };
    let sets = matches!(action, Action::Set(_));
    let wanted = if sets && overflow == Overflow::Saturate { field.as_redis_saturates(wanted) } else { wanted };
    let Some(after) = field.fit(wanted, overflow) else {
        out.null();
        return false;
    };
    out.int(if sets { before } else { after });
    field.store(bytes, after);
    grown || before != after
}
