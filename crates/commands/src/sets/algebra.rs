//! Intersections, unions and differences, answered or stored.
//!
//! The keys are first looked up one by one as every reading command does (statistics, accesses, keys whose time is
//! over), which also tells a wrong type; then all sets are borrowed at once.

use super::len_of;
use crate::collections::write_elem;
use crate::ctx::Ctx;
use crate::error::{CmdError, CmdResult, SYNTAX};
use crate::options;
use keyspace::set::Limits;
use keyspace::{DbView, NotifyClass, Set, SetTtl, Value, ValueRef};
use rdb::listpack::Elem;
use resp::Args;

// ---- costs -----------------------------------------------------------------------------------------------------------

fn sum_of_lens(ctx: &Ctx<'_>, keys: Args<'_>) -> usize {
    keys.iter().map(|key| len_of(ctx, key)).fold(0, usize::saturating_add)
}

/// The smallest set is held against all others.
fn inter_steps(ctx: &Ctx<'_>, keys: impl ExactSizeIterator<Item: AsRef<[u8]>>) -> usize {
    let count = keys.len();
    keys.map(|key| len_of(ctx, key.as_ref())).min().unwrap_or(0).saturating_mul(count)
}

/// Of SUNION and SDIFF.
pub(super) fn cost_of_sum(ctx: &mut Ctx<'_>, args: Args<'_>) -> usize {
    sum_of_lens(ctx, args.slice(1))
}

/// Of SUNIONSTORE and SDIFFSTORE.
pub(super) fn cost_of_stored_sum(ctx: &mut Ctx<'_>, args: Args<'_>) -> usize {
    sum_of_lens(ctx, args.slice(2))
}

/// Of SINTER.
pub(super) fn cost_of_inter(ctx: &mut Ctx<'_>, args: Args<'_>) -> usize {
    inter_steps(ctx, args.slice(1).iter())
}

/// Of SINTERSTORE.
pub(super) fn cost_of_stored_inter(ctx: &mut Ctx<'_>, args: Args<'_>) -> usize {
    inter_steps(ctx, args.slice(2).iter())
}

/// Of SINTERCARD.
pub(super) fn cost_of_card(ctx: &mut Ctx<'_>, args: Args<'_>) -> usize {
    match CardOptions::parse(args) {
        Ok(options) => inter_steps(ctx, args.slice(2).iter().take(options.keys)),
        Err(_) => 1,
    }
}

// ---- the sets --------------------------------------------------------------------------------------------------------

/// Looks the keys up, in order.
fn look_up(ctx: &mut Ctx<'_>, keys: impl Iterator<Item: AsRef<[u8]>>) -> CmdResult {
    for key in keys {
        ctx.db.read_set(key.as_ref())?;
    }
    Ok(())
}

/// The sets at the keys, which have been looked up.
fn borrow<'c, 'k>(db: &'c DbView<'_>, keys: impl Iterator<Item = &'k [u8]>) -> Vec<Option<&'c Set>> {
    keys.map(|key| match db.get(key) {
        Some(ValueRef::Set(set)) => Some(set),
        _ => None,
    })
    .collect()
}

/// Sets the destination to a result, or removes it when that is empty, and answers the size.
fn store(ctx: &mut Ctx<'_>, destination: &[u8], event: &'static str, result: Set) -> CmdResult {
    let len = result.len();
    if len > 0 {
        ctx.db.set(destination, Value::Set(result), SetTtl::Clear);
        ctx.db.changed(NotifyClass::SET, event, destination);
    } else if ctx.db.remove(destination) {
        ctx.db.changed(NotifyClass::GENERIC, "del", destination);
    }
    ctx.out.count(len);
    Ok(())
}

/// Answers a result that was built for it.
fn answer(ctx: &mut Ctx<'_>, result: Set) -> CmdResult {
    ctx.out.set(result.len());
    result.iter().for_each(|member| write_elem(ctx.out, member));
    ctx.db.reclaim(Value::Set(result));
    Ok(())
}

// ---- intersection ----------------------------------------------------------------------------------------------------

/// Calls `visit` with the members that all sets have, in the order of the smallest set, until it answers false.
fn intersect<'s>(sets: &[&'s Set], mut visit: impl FnMut(Elem<'s>) -> bool) {
    let Some((smallest, others)) = sets.split_first() else { return };
    for member in *smallest {
        let is_common = others.iter().all(|other| std::ptr::eq(*other, *smallest) || other.contains_elem(member));
        if is_common && !visit(member) {
            return;
        }
    }
}

/// The sets from the smallest to the largest; `None` when one of them is empty.
fn by_size<'s>(sets: Vec<Option<&'s Set>>) -> Option<Vec<&'s Set>> {
    let mut sets = sets.into_iter().collect::<Option<Vec<&'s Set>>>()?;
    sets.sort_by_key(|set| set.len());
    Some(sets)
}

/// `SINTER key [key …]`
pub(super) fn sinter(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let keys = args.slice(1);
    look_up(ctx, keys.iter())?;
    let Some(sets) = by_size(borrow(&ctx.db, keys.iter())) else {
        ctx.out.set(0);
        return Ok(());
    };
    let header = ctx.out.defer();
    let mut count = 0;
    intersect(&sets, |member| {
        write_elem(ctx.out, member);
        count += 1;
        true
    });
    ctx.out.finish_set(header, count);
    Ok(())
}

/// `SINTERSTORE destination key [key …]`
pub(super) fn sinterstore(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let keys = args.slice(2);
    look_up(ctx, keys.iter())?;
    let limits = &ctx.settings.set;
    let sets = by_size(borrow(&ctx.db, keys.iter())).unwrap_or_default();
    let is_intset = sets.first().is_some_and(|smallest| smallest.as_intset().is_some());
    let mut result = if is_intset { Set::intset() } else { Set::listpack() };
    intersect(&sets, |member| {
        result.add_elem(member, limits);
        true
    });
    result.convert_to_intset(limits);
    store(ctx, args.at(1), "sinterstore", result)
}

/// The arguments of SINTERCARD.
struct CardOptions {
    keys: usize,
    /// Where counting stops; 0: never.
    limit: usize,
}

impl CardOptions {
    fn parse(args: Args<'_>) -> Result<CardOptions, CmdError> {
        const NO_KEYS: CmdError = CmdError::new("ERR numkeys should be greater than 0");
        const TOO_MANY_KEYS: CmdError = CmdError::new("ERR Number of keys can't be greater than number of args");
        const NEGATIVE_LIMIT: CmdError = CmdError::new("ERR LIMIT can't be negative");
        let keys = options::int_in(args.at(1), 1, i64::MAX, NO_KEYS)?;
        let keys = usize::try_from(keys).ok().filter(|keys| *keys <= args.len() - 2).ok_or(TOO_MANY_KEYS)?;
        let mut limit = 0;
        let mut rest = args.slice(2 + keys).iter();
        while let Some(word) = rest.next() {
            let Some(number) = rest.next().filter(|_| options::is_word(word, "limit")) else { return Err(SYNTAX) };
            limit = options::int_in(number, 0, i64::MAX, NEGATIVE_LIMIT)?;
        }
        Ok(CardOptions { keys, limit: usize::try_from(limit).unwrap_or(usize::MAX) })
    }
}

/// `SINTERCARD numkeys key [key …] [LIMIT limit]`
pub(super) fn sintercard(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let options = CardOptions::parse(args)?;
    let keys = args.slice(2);
    look_up(ctx, keys.iter().take(options.keys))?;
    let mut count = 0;
    if let Some(sets) = by_size(borrow(&ctx.db, keys.iter().take(options.keys))) {
        intersect(&sets, |_| {
            count += 1;
            count != options.limit
        });
    }
    ctx.out.count(count);
    Ok(())
}

// ---- union and difference --------------------------------------------------------------------------------------------

/// All members of the sets, in the encoding Redis' steps give.
pub(super) fn union(sets: &[Option<&Set>], limits: &Limits) -> Set {
    let mut result = Set::intset();
    for member in sets.iter().copied().flatten().flatten() {
        result.add_elem(member, limits);
    }
    result
}

/// The members of the first set that no other has, in the encoding Redis' steps give.
///
/// Redis has two ways, and the encoding of the result depends on which is taken: the first set's members are held
/// against the other sets, or the other sets' members are removed from a copy of the first.
fn difference(sets: &[Option<&Set>], limits: &Limits) -> Set {
    let mut result = Set::intset();
    let Some((Some(first), others)) = sets.split_first() else { return result };
    let mut others: Vec<&Set> = others.iter().copied().flatten().collect();
    if others.iter().any(|other| std::ptr::eq(*other, *first)) {
        return result;
    }
    let look_ups = first.len().saturating_mul(others.len() + 1) / 2;
    let visits = others.iter().map(|other| other.len()).fold(first.len(), usize::saturating_add);
    if look_ups <= visits {
        // The largest is the likeliest to have a member.
        others.sort_by_key(|other| std::cmp::Reverse(other.len()));
        for member in *first {
            if !others.iter().any(|other| other.contains_elem(member)) {
                result.add_elem(member, limits);
            }
        }
        return result;
    }
    for member in *first {
        result.add_elem(member, limits);
    }
    for other in others {
        for member in other {
            result.remove(member.to_bytes(&mut [0; 24]));
        }
        if result.is_empty() {
            break;
        }
    }
    result
}

/// `SUNION key [key …]`
pub(super) fn sunion(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let keys = args.slice(1);
    look_up(ctx, keys.iter())?;
    let result = union(&borrow(&ctx.db, keys.iter()), &ctx.settings.set);
    answer(ctx, result)
}

/// `SUNIONSTORE destination key [key …]`
pub(super) fn sunionstore(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let keys = args.slice(2);
    look_up(ctx, keys.iter())?;
    let result = union(&borrow(&ctx.db, keys.iter()), &ctx.settings.set);
    store(ctx, args.at(1), "sunionstore", result)
}

/// `SDIFF key [key …]`
pub(super) fn sdiff(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let keys = args.slice(1);
    look_up(ctx, keys.iter())?;
    let result = difference(&borrow(&ctx.db, keys.iter()), &ctx.settings.set);
    answer(ctx, result)
}

/// `SDIFFSTORE destination key [key …]`
pub(super) fn sdiffstore(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let keys = args.slice(2);
    look_up(ctx, keys.iter())?;
    let result = difference(&borrow(&ctx.db, keys.iter()), &ctx.settings.set);
    store(ctx, args.at(1), "sdiffstore", result)
}
