//! From a request to where it goes.

use std::borrow::Cow;
use std::fmt;

use commands::CommandId;
use commands::table::{ArgView, CommandSpec, errors, keys};
use keyspace::slot::SlotSpace;

use super::{Merge, Route, Split};

/// Redis: the text for keys that are not in one slot.
pub const CROSS_SLOT: &str = "CROSSSLOT Keys in request don't hash to the same slot";
/// Redis: the texts for patterns of SORT that may lead anywhere.
const SORT_BY: &str = "ERR BY option of SORT denied in Cluster mode.";
const SORT_GET: &str = "ERR GET option of SORT denied in Cluster mode.";

/// Where a request goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// To the owner of a slot.
    Slot(u16),
    /// To the owner of a slot, on a connection of its own: it may block.
    Blocking(u16),
    /// To the owner of the fixed slot: it names no keys.
    Fixed,
    /// In parts: see [`super::split::split`].
    Split(Split),
    /// To every group.
    Broadcast(Merge),
    /// To every group on connections of their own.
    Kill,
    /// Handled by the module for it.
    Other(Route),
}

/// Why a request goes nowhere: an error for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteError(pub Cow<'static, str>);

impl RouteError {
    pub(crate) const fn new(text: &'static str) -> Self {
        RouteError(Cow::Borrowed(text))
    }

    /// Whether it says no more than that keys are, or may be, in several slots: no error where one server has them all.
    pub fn is_about_slots(&self) -> bool {
        [CROSS_SLOT, SORT_BY, SORT_GET].contains(&&*self.0)
    }
}

impl fmt::Display for RouteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The error for a command that does not pass.
pub fn refusal(spec: &CommandSpec, why: &str) -> RouteError {
    RouteError(format!("ERR command '{}' is not allowed through the proxy: {why}", spec.name.replace('|', " ")).into())
}

/// Where a call goes, which must satisfy the command's arity.
///
/// # Errors
/// The error for the client.
pub fn plan<A: ArgView + ?Sized>(spec: &'static CommandSpec, args: &A, space: SlotSpace) -> Result<Plan, RouteError> {
    match Route::of(spec.id) {
        Route::Slot | Route::Script => Ok(slot_of_call(spec, args, space)?.map_or(Plan::Fixed, Plan::Slot)),
        Route::Blocking => match slot_of_call(spec, args, space)? {
            None => Ok(Plan::Fixed),
            Some(slot) if may_block(spec.id, args) => Ok(Plan::Blocking(slot)),
            Some(slot) => Ok(Plan::Slot(slot)),
        },
        Route::Split(kind) => {
            if !args.arg_count().saturating_sub(1).is_multiple_of(kind.stride()) {
                return Err(RouteError(errors::wrong_arity(spec).into()));
            }
            Ok(Plan::Split(kind))
        }
        Route::Broadcast(merge) => Ok(Plan::Broadcast(merge)),
        Route::Kill => Ok(Plan::Kill),
        Route::Fixed => Ok(Plan::Fixed),
        Route::Refused(why) => Err(refusal(spec, why)),
        other => Ok(Plan::Other(other)),
    }
}

/// The one slot that all keys of a call are in; `None` when it names no key, or when its arguments make no sense, which
/// whatever server gets it will say.
///
/// # Errors
/// CROSSSLOT, or that a pattern of SORT may lead to other slots.
pub fn slot_of_call<A: ArgView + ?Sized>(
    spec: &'static CommandSpec,
    args: &A,
    space: SlotSpace,
) -> Result<Option<u16>, RouteError> {
    if let Some(position) = spec.single_key()
        && spec.id != CommandId::SortRo
    {
        return Ok(args.arg(position).map(|key| slot_of(space, key)));
    }
    let found = match spec.id {
        // Redis tells other keys of these than they touch.
        CommandId::Pfmerge | CommandId::Georadius | CommandId::Georadiusbymember => keys::touched_keys(spec, args),
        _ => keys::routing_keys(spec, args),
    };
    let mut slot = None;
    for key in found.unwrap_or_default() {
        let of_key = slot_of(space, args.arg(key.position as usize).unwrap_or_default());
        if *slot.get_or_insert(of_key) != of_key {
            return Err(RouteError::new(CROSS_SLOT));
        }
    }
    if matches!(spec.id, CommandId::Sort | CommandId::SortRo)
        && let Some(slot) = slot
    {
        check_patterns(args, slot, space)?;
    }
    Ok(slot)
}

/// Whether a call of a blocking command may block at all.
fn may_block<A: ArgView + ?Sized>(id: CommandId, args: &A) -> bool {
    if !matches!(id, CommandId::Xread | CommandId::Xreadgroup) {
        return true;
    }
    // A group, a consumer or a stream may have that name too, which then costs a connection and is right all the same.
    (1..args.arg_count()).any(|position| is_word(args, position, "block"))
}

/// The patterns of BY and GET name further keys: they must be in the slot of the list itself whatever is put in.
fn check_patterns<A: ArgView + ?Sized>(args: &A, slot: u16, space: SlotSpace) -> Result<(), RouteError> {
    let stays = |pattern: &[u8]| {
        // Without a star nothing is looked up.
        let Some(star) = pattern.iter().position(|byte| *byte == b'*') else { return true };
        // What is put in for the star may have a tag itself, which would count if it came first.
        tag_end(pattern).is_some_and(|end| end < star) && slot_of(space, pattern) == slot
    };
    let mut position = 2;
    while position + 1 < args.arg_count() {
        let value = args.arg(position + 1).unwrap_or_default();
        if is_word(args, position, "by") {
            if !stays(value) {
                return Err(RouteError::new(SORT_BY));
            }
            position += 2;
        } else if is_word(args, position, "get") {
            // What stands behind an arrow is a field, not a part of the key.
            let key = value.windows(2).position(|two| two == b"->").map_or(value, |arrow| &value[..arrow]);
            if value != b"#" && !stays(key) {
                return Err(RouteError::new(SORT_GET));
            }
            position += 2;
        } else if is_word(args, position, "limit") {
            position += 3;
        } else if is_word(args, position, "store") {
            position += 2;
        } else {
            position += 1;
        }
    }
    Ok(())
}

/// Where the brace is that ends the hash tag of a key, if it has one.
fn tag_end(key: &[u8]) -> Option<usize> {
    let open = key.iter().position(|byte| *byte == b'{')?;
    let length = key.get(open + 1..)?.iter().position(|byte| *byte == b'}')?;
    (length > 0).then_some(open + 1 + length)
}

fn is_word<A: ArgView + ?Sized>(args: &A, position: usize, word: &str) -> bool {
    args.arg(position).is_some_and(|argument| argument.eq_ignore_ascii_case(word.as_bytes()))
}

/// The slot of a key.
#[inline]
pub fn slot_of(space: SlotSpace, key: &[u8]) -> u16 {
    // There are at most 16384.
    u16::try_from(space.slot(key).index()).unwrap_or(u16::MAX)
}
