//! Which arguments of a call are keys, and what the command does with them.
//!
//! Key specs are asked first, one after the other. Where they cannot tell (a spec is unknown or
//! incomplete, the flags depend on other arguments, a count is no number), a function written for
//! the command decides ([`GetKeys`]). Redis: a call whose arguments make no sense may still show
//! keys, or none; the command's function then gives the error.
//!
//! Up to sixteen keys are kept without allocation; more never than there are arguments.

use smallvec::SmallVec;

use super::bits::KeyFlags;
use super::id::CommandId;
use super::row::usage::{ACCESS, DELETE, OW, RO, RW, UPDATE};
use super::spec::{BeginSearch, CommandSpec, FindKeys, GetKeys, KeySpec};

/// The arguments of a request, its name included.
pub trait ArgView {
    /// Number of arguments.
    fn arg_count(&self) -> usize;
    /// The argument at a position; position 0 is the command's name.
    fn arg(&self, position: usize) -> Option<&[u8]>;
}

impl ArgView for [&[u8]] {
    #[inline]
    fn arg_count(&self) -> usize {
        self.len()
    }
    #[inline]
    fn arg(&self, position: usize) -> Option<&[u8]> {
        self.get(position).copied()
    }
}

impl ArgView for resp::Args<'_> {
    #[inline]
    fn arg_count(&self) -> usize {
        self.len()
    }
    #[inline]
    fn arg(&self, position: usize) -> Option<&[u8]> {
        self.get(position)
    }
}

impl<A: ArgView + ?Sized> ArgView for &A {
    #[inline]
    fn arg_count(&self) -> usize {
        (**self).arg_count()
    }
    #[inline]
    fn arg(&self, position: usize) -> Option<&[u8]> {
        (**self).arg(position)
    }
}

impl ArgView for [Vec<u8>] {
    #[inline]
    fn arg_count(&self) -> usize {
        self.len()
    }
    #[inline]
    fn arg(&self, position: usize) -> Option<&[u8]> {
        self.get(position).map(Vec::as_slice)
    }
}

/// A request inside another: its arguments from `start` on, as in COMMAND GETKEYS.
#[derive(Clone, Copy, Debug)]
pub struct TailView<'a, A: ?Sized> {
    args: &'a A,
    start: usize,
}

impl<'a, A: ArgView + ?Sized> TailView<'a, A> {
    /// The arguments of `args` from `start` on.
    pub fn new(args: &'a A, start: usize) -> Self {
        Self { args, start }
    }
}

impl<A: ArgView + ?Sized> ArgView for TailView<'_, A> {
    #[inline]
    fn arg_count(&self) -> usize {
        self.args.arg_count().saturating_sub(self.start)
    }
    #[inline]
    fn arg(&self, position: usize) -> Option<&[u8]> {
        self.args.arg(position.checked_add(self.start)?)
    }
}

/// One key of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyRef {
    /// Position of the argument.
    pub position: u32,
    /// What happens to the key; empty where Redis does not tell either.
    pub flags: KeyFlags,
}

/// The keys of a call in the order in which the specs name them.
pub type KeyRefs = SmallVec<[KeyRef; 16]>;

/// The arguments do not show where the keys are: the call has a syntax error, which its function
/// reports. It can be run without any key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyError;

/// The keys of a call, which must satisfy the command's arity.
pub fn keys<A: ArgView + ?Sized>(spec: &CommandSpec, args: &A) -> Result<KeyRefs, KeyError> {
    find(spec, args, Scope::Keys)
}

/// The keys that the command's function may touch, which must satisfy the command's arity.
///
/// They are those of [`keys`] but for two commands of which Redis tells something else than it does: PFMERGE without
/// sources (which has a key nevertheless), and GEORADIUS with STORE more than once (where the last one counts).
pub fn touched_keys<A: ArgView + ?Sized>(spec: &CommandSpec, args: &A) -> Result<KeyRefs, KeyError> {
    match spec.id {
        CommandId::Pfmerge if args.arg_count() == 2 => Ok(one_key(1, RW)),
        CommandId::Georadius | CommandId::Georadiusbymember => Ok(geo_radius(args)),
        _ => keys(spec, args),
    }
}

/// The keys of a call, and the shard channels that are routed like keys.
pub fn routing_keys<A: ArgView + ?Sized>(spec: &CommandSpec, args: &A) -> Result<KeyRefs, KeyError> {
    find(spec, args, Scope::KeysAndShardChannels)
}

/// Which positions are wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Keys,
    KeysAndShardChannels,
}

fn find<A: ArgView + ?Sized>(spec: &CommandSpec, args: &A, scope: Scope) -> Result<KeyRefs, KeyError> {
    if let Some(position) = spec.single_key()
        && let [key_spec] = spec.key_specs
        && !key_spec.flags.contains(KeyFlags::VARIABLE_FLAGS)
    {
        let mut found = KeyRefs::new();
        push(&mut found, position, key_spec.flags);
        return Ok(found);
    }
    let flags_vary = spec.key_specs.iter().any(|key_spec| key_spec.flags.contains(KeyFlags::VARIABLE_FLAGS));
    if !flags_vary && let Some(found) = by_specs(spec.key_specs, args, scope) {
        return Ok(found);
    }
    by_function(spec.get_keys, args)
}

/// The keys by the specs, or `None` if one of the specs cannot tell.
fn by_specs<A: ArgView + ?Sized>(key_specs: &[KeySpec], args: &A, scope: Scope) -> Option<KeyRefs> {
    let mut found = KeyRefs::new();
    for key_spec in key_specs {
        if key_spec.flags.contains(KeyFlags::NOT_KEY) && scope == Scope::Keys {
            continue;
        }
        let begin = match key_spec.begin_search {
            BeginSearch::Unknown => return None,
            BeginSearch::Index(position) => i64::from(position),
            BeginSearch::Keyword { keyword, start_from } => match keyword_end(args, keyword, i64::from(start_from)) {
                Some(begin) => begin,
                None => continue,
            },
        };
        let range = key_range(key_spec.find_keys, args, begin)?;
        let count = i64::try_from(args.arg_count()).ok()?;
        if range.last >= count || range.last < range.first || range.first < 0 {
            return None;
        }
        let mut position = range.first;
        while position <= range.last {
            push(&mut found, usize::try_from(position).ok()?, key_spec.flags);
            position += range.step;
        }
        if key_spec.flags.contains(KeyFlags::INCOMPLETE) {
            return None;
        }
    }
    Some(found)
}

/// Position behind the first argument that is the keyword.
fn keyword_end<A: ArgView + ?Sized>(args: &A, keyword: &str, start_from: i64) -> Option<i64> {
    let count = i64::try_from(args.arg_count()).ok()?;
    let is_keyword = |position: &i64| usize::try_from(*position).is_ok_and(|position| is_word(args, position, keyword));
    let found = if start_from > 0 {
        (start_from..count - 1).find(is_keyword)
    } else {
        (2..=count + start_from).rev().find(is_keyword)
    };
    found.map(|position| position + 1)
}

/// Positions of the first and the last key of a spec.
struct PositionRange {
    first: i64,
    last: i64,
    step: i64,
}

fn key_range<A: ArgView + ?Sized>(find_keys: FindKeys, args: &A, begin: i64) -> Option<PositionRange> {
    let count = i64::try_from(args.arg_count()).ok()?;
    match find_keys {
        FindKeys::Unknown => None,
        FindKeys::Range { last, step, limit } => {
            let last = i64::from(last);
            let last = match (last >= 0, limit) {
                (true, _) => begin + last,
                (false, 0) => count + last,
                (false, limit) => begin + (count - begin) / i64::from(limit) + last,
            };
            Some(PositionRange { first: begin, last, step: i64::from(step.max(1)) })
        }
        FindKeys::Counted { count_at, first, step } => {
            let count_at = usize::try_from(begin + i64::from(count_at)).ok()?;
            let key_count = parse_count(args.arg(count_at)?)?;
            let first = begin + i64::from(first);
            let last = first.checked_add(key_count)?.checked_sub(1)?;
            Some(PositionRange { first, last, step: i64::from(step.max(1)) })
        }
    }
}

/// A number of keys, written as Redis writes numbers: no sign, no leading zero.
fn parse_count(text: &[u8]) -> Option<i64> {
    if text == b"0" {
        return Some(0);
    }
    if !matches!(text.first(), Some(b'1'..=b'9')) || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn by_function<A: ArgView + ?Sized>(get_keys: GetKeys, args: &A) -> Result<KeyRefs, KeyError> {
    match get_keys {
        GetKeys::BySpecs => Err(KeyError),
        GetKeys::Counted { store_at, count_at, first } => counted(args, store_at, count_at, first),
        GetKeys::Set => Ok(one_key(1, set_usage(args))),
        GetKeys::Bitfield => Ok(one_key(1, bitfield_usage(args))),
        GetKeys::Sort => Ok(sort(args)),
        GetKeys::SortRo => Ok(one_key(1, RO | ACCESS)),
        GetKeys::Migrate => Ok(migrate(args)),
        GetKeys::GeoRadius => Ok(geo_radius(args)),
        GetKeys::XRead => xread(args),
    }
}

fn one_key(position: usize, usage: u16) -> KeyRefs {
    let mut found = KeyRefs::new();
    push(&mut found, position, KeyFlags::from_bits(usage));
    found
}

/// A counted group of keys. Redis: none if the count is zero or promises more than there is, and
/// the destination comes last, although specs name it first.
fn counted<A: ArgView + ?Sized>(args: &A, store_at: usize, count_at: usize, first: usize) -> Result<KeyRefs, KeyError> {
    let key_count = leading_number(args.arg(count_at).unwrap_or_default());
    if key_count == 0 {
        return Ok(KeyRefs::new());
    }
    let key_count = usize::try_from(key_count).map_err(|_| KeyError)?;
    if key_count > args.arg_count().saturating_sub(first) {
        return Err(KeyError);
    }
    let mut found = KeyRefs::new();
    for position in first..first + key_count {
        push(&mut found, position, KeyFlags::EMPTY);
    }
    if store_at > 0 {
        push(&mut found, store_at, KeyFlags::EMPTY);
    }
    Ok(found)
}

/// The number at the start of a text, 0 if there is none; too large ones stay at the limit.
fn leading_number(text: &[u8]) -> i64 {
    let text = text.trim_ascii_start();
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    let value = digits
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .fold(0i64, |value, byte| value.saturating_mul(10).saturating_add(i64::from(byte - b'0')));
    if negative { -value } else { value }
}

fn set_usage<A: ArgView + ?Sized>(args: &A) -> u16 {
    let reads = (3..args.arg_count()).any(|position| is_word(args, position, "get"));
    if reads { RW | ACCESS | UPDATE } else { OW | UPDATE }
}

fn bitfield_usage<A: ArgView + ?Sized>(args: &A) -> u16 {
    let mut position = 2;
    while position < args.arg_count() {
        let behind = args.arg_count() - position - 1;
        if is_word(args, position, "get") && behind >= 2 {
            position += 3;
        } else if is_word(args, position, "overflow") && behind >= 1 {
            position += 2;
        } else {
            // A writing operation, or a syntax error, where the worst is assumed.
            return RW | ACCESS | UPDATE;
        }
    }
    RO | ACCESS
}

/// Redis: STORE may be given more than once and the last one wins; a word that is the value of
/// LIMIT, GET or BY is no option.
fn sort<A: ArgView + ?Sized>(args: &A) -> KeyRefs {
    let mut found = one_key(1, RO | ACCESS);
    let mut store_at = None;
    let mut position = 2;
    while position < args.arg_count() {
        if is_word(args, position, "limit") {
            position += 2;
        } else if is_word(args, position, "store") && position + 1 < args.arg_count() {
            store_at = Some(position + 1);
        } else if is_word(args, position, "get") || is_word(args, position, "by") {
            position += 1;
        }
        position += 1;
    }
    if let Some(store_at) = store_at {
        push(&mut found, store_at, KeyFlags::from_bits(OW | UPDATE));
    }
    found
}

/// Redis: KEYS with a key in its usual place is a syntax error and shows no keys.
fn migrate<A: ArgView + ?Sized>(args: &A) -> KeyRefs {
    let mut range = 3..4;
    let mut position = 6;
    while position < args.arg_count() {
        if is_word(args, position, "keys") {
            let usual = args.arg(3).unwrap_or_default();
            range = if usual.is_empty() { position + 1..args.arg_count() } else { 0..0 };
            break;
        }
        if is_word(args, position, "auth") {
            position += 1;
        } else if is_word(args, position, "auth2") {
            position += 2;
        }
        position += 1;
    }
    let mut found = KeyRefs::new();
    for position in range {
        push(&mut found, position, KeyFlags::from_bits(RW | ACCESS | DELETE));
    }
    found
}

/// Redis: of STORE and STOREDIST, the last one wins.
fn geo_radius<A: ArgView + ?Sized>(args: &A) -> KeyRefs {
    let mut found = one_key(1, 0);
    let mut store_at = None;
    let mut position = 5;
    while position < args.arg_count() {
        let stores = is_word(args, position, "store") || is_word(args, position, "storedist");
        if stores && position + 1 < args.arg_count() {
            position += 1;
            store_at = Some(position);
        }
        position += 1;
    }
    if let Some(store_at) = store_at {
        push(&mut found, store_at, KeyFlags::EMPTY);
    }
    found
}

fn xread<A: ArgView + ?Sized>(args: &A) -> Result<KeyRefs, KeyError> {
    let mut position = 1;
    loop {
        if is_word(args, position, "streams") {
            break;
        } else if is_word(args, position, "block") || is_word(args, position, "count") {
            position += 2;
        } else if is_word(args, position, "group") {
            position += 3;
        } else if is_word(args, position, "noack") {
            position += 1;
        } else {
            return Err(KeyError);
        }
    }
    let first = position + 1;
    let behind = args.arg_count().saturating_sub(first);
    if behind == 0 || !behind.is_multiple_of(2) {
        return Err(KeyError);
    }
    let mut found = KeyRefs::new();
    for position in first..first + behind / 2 {
        push(&mut found, position, KeyFlags::EMPTY);
    }
    Ok(found)
}

fn is_word<A: ArgView + ?Sized>(args: &A, position: usize, word: &str) -> bool {
    args.arg(position).is_some_and(|argument| argument.eq_ignore_ascii_case(word.as_bytes()))
}

fn push(found: &mut KeyRefs, position: usize, flags: KeyFlags) {
    // A request has far fewer than 2^32 arguments; a position beyond could not be reached.
    if let Ok(position) = u32::try_from(position) {
        found.push(KeyRef { position, flags });
    }
}

/// How a command uses Pub/Sub channels among its arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChannelUse {
    /// Publishes to them.
    Publish,
    /// Subscribes to them.
    Subscribe,
    /// Unsubscribes from them.
    Unsubscribe,
    /// Subscribes to all that match them.
    SubscribePattern,
    /// Unsubscribes from patterns.
    UnsubscribePattern,
}

/// Which arguments of a call are channels; `None` if the command names none.
pub fn channels(spec: &CommandSpec, argument_count: usize) -> Option<(ChannelUse, std::ops::Range<usize>)> {
    use super::CommandId::{
        Psubscribe, Publish, Punsubscribe, Spublish, Ssubscribe, Subscribe, Sunsubscribe, Unsubscribe,
    };
    let channel_use = match spec.id {
        Publish | Spublish => return Some((ChannelUse::Publish, 1..argument_count.min(2))),
        Subscribe | Ssubscribe => ChannelUse::Subscribe,
        Unsubscribe | Sunsubscribe => ChannelUse::Unsubscribe,
        Psubscribe => ChannelUse::SubscribePattern,
        Punsubscribe => ChannelUse::UnsubscribePattern,
        _ => return None,
    };
    Some((channel_use, 1..argument_count))
}
