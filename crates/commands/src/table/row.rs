//! The short words in which the family files write their rows, and what follows from a row:
//! implied ACL categories, the plain range of keys, movable keys and the single key.
//!
//! Everything here runs at compile time; an impossible row stops the build.

use super::bits::{Categories, Flags, KeyFlags};
use super::docs::{Docs, Group, docs};
use super::id::CommandId;
use super::spec::{BeginSearch, CommandSpec, FindKeys, GetKeys, KeySpec};

/// Command flags as numbers, so that rows can join them by `|` in constants.
pub(super) mod flag {
    use super::Flags;
    pub(in super::super) const NONE: u64 = 0;
    pub(in super::super) const WRITE: u64 = Flags::WRITE.bits();
    pub(in super::super) const READONLY: u64 = Flags::READONLY.bits();
    pub(in super::super) const DENYOOM: u64 = Flags::DENYOOM.bits();
    pub(in super::super) const ADMIN: u64 = Flags::ADMIN.bits();
    pub(in super::super) const PUBSUB: u64 = Flags::PUBSUB.bits();
    pub(in super::super) const NOSCRIPT: u64 = Flags::NOSCRIPT.bits();
    pub(in super::super) const BLOCKING: u64 = Flags::BLOCKING.bits();
    pub(in super::super) const LOADING: u64 = Flags::LOADING.bits();
    pub(in super::super) const STALE: u64 = Flags::STALE.bits();
    pub(in super::super) const SKIP_MONITOR: u64 = Flags::SKIP_MONITOR.bits();
    pub(in super::super) const SKIP_SLOWLOG: u64 = Flags::SKIP_SLOWLOG.bits();
    pub(in super::super) const ASKING: u64 = Flags::ASKING.bits();
    pub(in super::super) const FAST: u64 = Flags::FAST.bits();
    pub(in super::super) const NO_AUTH: u64 = Flags::NO_AUTH.bits();
    pub(in super::super) const MAY_REPLICATE: u64 = Flags::MAY_REPLICATE.bits();
    pub(in super::super) const SENTINEL: u64 = Flags::SENTINEL.bits();
    pub(in super::super) const NO_MANDATORY_KEYS: u64 = Flags::NO_MANDATORY_KEYS.bits();
    pub(in super::super) const PROTECTED: u64 = Flags::PROTECTED.bits();
    pub(in super::super) const NO_ASYNC_LOADING: u64 = Flags::NO_ASYNC_LOADING.bits();
    pub(in super::super) const NO_MULTI: u64 = Flags::NO_MULTI.bits();
    pub(in super::super) const ALLOW_BUSY: u64 = Flags::ALLOW_BUSY.bits();
    pub(in super::super) const TOUCHES_ARBITRARY_KEYS: u64 = Flags::TOUCHES_ARBITRARY_KEYS.bits();
}

/// ACL categories as numbers; those that follow from flags are not written in rows.
pub(super) mod category {
    use super::Categories;
    /// Only those that follow from the flags.
    pub(in super::super) const IMPLIED: u32 = 0;
    pub(in super::super) const KEYSPACE: u32 = Categories::KEYSPACE.bits();
    pub(in super::super) const SET: u32 = Categories::SET.bits();
    pub(in super::super) const SORTEDSET: u32 = Categories::SORTEDSET.bits();
    pub(in super::super) const LIST: u32 = Categories::LIST.bits();
    pub(in super::super) const HASH: u32 = Categories::HASH.bits();
    pub(in super::super) const STRING: u32 = Categories::STRING.bits();
    pub(in super::super) const BITMAP: u32 = Categories::BITMAP.bits();
    pub(in super::super) const HYPERLOGLOG: u32 = Categories::HYPERLOGLOG.bits();
    pub(in super::super) const GEO: u32 = Categories::GEO.bits();
    pub(in super::super) const STREAM: u32 = Categories::STREAM.bits();
    pub(in super::super) const ADMIN: u32 = Categories::ADMIN.bits();
    pub(in super::super) const DANGEROUS: u32 = Categories::DANGEROUS.bits();
    pub(in super::super) const CONNECTION: u32 = Categories::CONNECTION.bits();
    pub(in super::super) const TRANSACTION: u32 = Categories::TRANSACTION.bits();
    pub(in super::super) const SCRIPTING: u32 = Categories::SCRIPTING.bits();
}

/// Key flags as numbers.
pub(super) mod usage {
    use super::KeyFlags;
    pub(in super::super) const RO: u16 = KeyFlags::RO.bits();
    pub(in super::super) const RW: u16 = KeyFlags::RW.bits();
    pub(in super::super) const OW: u16 = KeyFlags::OW.bits();
    pub(in super::super) const RM: u16 = KeyFlags::RM.bits();
    pub(in super::super) const ACCESS: u16 = KeyFlags::ACCESS.bits();
    pub(in super::super) const UPDATE: u16 = KeyFlags::UPDATE.bits();
    pub(in super::super) const INSERT: u16 = KeyFlags::INSERT.bits();
    pub(in super::super) const DELETE: u16 = KeyFlags::DELETE.bits();
    pub(in super::super) const NOT_KEY: u16 = KeyFlags::NOT_KEY.bits();
    pub(in super::super) const INCOMPLETE: u16 = KeyFlags::INCOMPLETE.bits();
    pub(in super::super) const VARIABLE_FLAGS: u16 = KeyFlags::VARIABLE_FLAGS.bits();
}

/// A row: id, name, arity, flags, and the categories that do not follow from the flags.
pub(super) const fn row(id: CommandId, name: &'static str, arity: i32, flags: u64, categories: u32) -> CommandSpec {
    let flags = Flags::from_bits(flags);
    CommandSpec {
        id,
        name,
        arity,
        flags,
        categories: implied_categories(Categories::from_bits(categories), flags),
        first_key: 0,
        last_key: 0,
        step: 0,
        key_specs: &[],
        get_keys: GetKeys::BySpecs,
        tips: &[],
        subcommands: &[],
        docs: const { &docs(Group::Server, "", "", "") },
        single_key: 0,
    }
}

impl CommandSpec {
    /// Where the keys are.
    pub(super) const fn keys(mut self, key_specs: &'static [KeySpec]) -> Self {
        self.key_specs = key_specs;
        let range = plain_range(key_specs);
        self.first_key = range.first;
        self.last_key = range.last;
        self.step = range.step;
        if range.movable {
            self.flags = self.flags.with(Flags::MOVABLE_KEYS);
        }
        self.single_key = single_key(key_specs, self.arity);
        self
    }

    /// Second way to find the keys.
    pub(super) const fn get_keys(mut self, get_keys: GetKeys) -> Self {
        self.get_keys = get_keys;
        self
    }

    /// Hints for clients.
    pub(super) const fn tips(mut self, tips: &'static [&'static str]) -> Self {
        self.tips = tips;
        self
    }

    /// Subcommands.
    pub(super) const fn subcommands(mut self, subcommands: &'static [CommandSpec]) -> Self {
        self.subcommands = subcommands;
        self
    }

    /// Documentation.
    pub(super) const fn docs(mut self, docs: &'static Docs) -> Self {
        self.docs = docs;
        self
    }
}

/// One key at a fixed position.
pub(super) const fn key(position: i32, usage: u16) -> KeySpec {
    spec(BeginSearch::Index(position), usage)
}

/// Keys from a position to `last`: relative to the position, or negative from the end.
pub(super) const fn key_range(position: i32, last: i32, usage: u16) -> KeySpec {
    let mut all = key(position, usage);
    all.find_keys = FindKeys::Range { last, step: 1, limit: 0 };
    all
}

/// Keys and values in turn, from a position to the end.
pub(super) const fn key_value_pairs(position: i32, usage: u16) -> KeySpec {
    let mut all = key(position, usage);
    all.find_keys = FindKeys::Range { last: -1, step: 2, limit: 0 };
    all
}

/// A number at this position and as many keys behind it.
pub(super) const fn counted_keys(position: i32, usage: u16) -> KeySpec {
    let mut all = key(position, usage);
    all.find_keys = FindKeys::Counted { count_at: 0, first: 1, step: 1 };
    all
}

/// One key behind a word.
pub(super) const fn key_after(keyword: &'static str, start_from: i32, usage: u16) -> KeySpec {
    spec(BeginSearch::Keyword { keyword, start_from }, usage)
}

/// Keys behind a word up to the end, or up to the end of the first 1/`limit` of what follows it.
pub(super) const fn keys_after(keyword: &'static str, start_from: i32, limit: i32, usage: u16) -> KeySpec {
    let mut all = key_after(keyword, start_from, usage);
    all.find_keys = FindKeys::Range { last: -1, step: 1, limit };
    all
}

/// Keys that no rule can find.
pub(super) const fn unknown_keys(usage: u16) -> KeySpec {
    let mut all = spec(BeginSearch::Unknown, usage);
    all.find_keys = FindKeys::Unknown;
    all
}

const fn spec(begin_search: BeginSearch, usage: u16) -> KeySpec {
    KeySpec {
        flags: KeyFlags::from_bits(usage),
        begin_search,
        find_keys: FindKeys::Range { last: 0, step: 1, limit: 0 },
        notes: None,
    }
}

impl KeySpec {
    /// Remark for readers of COMMAND INFO.
    pub(super) const fn notes(mut self, notes: &'static str) -> Self {
        self.notes = Some(notes);
        self
    }
}

/// Categories that follow from flags.
const fn implied_categories(given: Categories, flags: Flags) -> Categories {
    let mut all = given;
    if flags.contains(Flags::WRITE) {
        all = all.with(Categories::WRITE);
    }
    // Redis: scripting commands that only read are not in @read.
    if flags.contains(Flags::READONLY) && !given.contains(Categories::SCRIPTING) {
        all = all.with(Categories::READ);
    }
    if flags.contains(Flags::ADMIN) {
        all = all.with(Categories::ADMIN).with(Categories::DANGEROUS);
    }
    if flags.contains(Flags::PUBSUB) {
        all = all.with(Categories::PUBSUB);
    }
    if flags.contains(Flags::FAST) {
        all = all.with(Categories::FAST);
    }
    if flags.contains(Flags::BLOCKING) {
        all = all.with(Categories::BLOCKING);
    }
    if !all.contains(Categories::FAST) {
        all = all.with(Categories::SLOW);
    }
    all
}

/// First key, last key and step, as clients before Redis 7 know them.
struct PlainRange {
    first: i32,
    last: i32,
    step: i32,
    /// The range does not name all keys.
    movable: bool,
}

/// Joins the key specs that are plain ranges, each directly behind the one before it, into one.
const fn plain_range(key_specs: &[KeySpec]) -> PlainRange {
    let mut range = PlainRange { first: 0, last: 0, step: 0, movable: false };
    let mut index = 0;
    while index < key_specs.len() {
        let spec = &key_specs[index];
        index += 1;
        let (BeginSearch::Index(position), FindKeys::Range { last, step, .. }) = (spec.begin_search, spec.find_keys)
        else {
            range.movable = true;
            continue;
        };
        let alone = key_specs.len() == 1;
        if !alone && (step != 1 || (range.last != 0 && range.last != position - 1)) {
            range.movable = true;
            continue;
        }
        if spec.flags.contains(KeyFlags::INCOMPLETE) {
            range.movable = true;
        }
        if range.first == 0 || position < range.first {
            range.first = position;
        }
        let last = if last >= 0 { position + last } else { last };
        // A negative position counts from the end and so lies behind every positive one.
        if last < 0 || (range.last >= 0 && last > range.last) {
            range.last = last;
        }
        range.step = step;
    }
    range
}

/// Position of the only key, or 0 if calls may have another number of keys.
const fn single_key(key_specs: &[KeySpec], arity: i32) -> u8 {
    let [spec] = key_specs else { return 0 };
    let (BeginSearch::Index(position), FindKeys::Range { last: 0, .. }) = (spec.begin_search, spec.find_keys) else {
        return 0;
    };
    if spec.flags.contains(KeyFlags::NOT_KEY) || spec.flags.contains(KeyFlags::INCOMPLETE) {
        return 0;
    }
    if position < 1 || position > 8 || arity.abs() <= position {
        return 0;
    }
    // In 1..=8, checked above.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let position = position as u8;
    position
}
