//! The types of a row: a command, its key specs and its documentation.

use super::bits::{Categories, Flags, KeyFlags};
use super::docs::Docs;
use super::id::CommandId;

/// One command or subcommand: all that dispatcher, ACL, proxy, cluster and COMMAND know of it.
#[derive(Debug)]
pub struct CommandSpec {
    /// Dense number of the row.
    pub id: CommandId,
    /// Lower-case name; of a subcommand with its container's: `config|get`.
    pub name: &'static str,
    /// Exact number of arguments with the name, or minus the smallest number.
    pub arity: i32,
    /// What the dispatcher must know.
    pub flags: Flags,
    /// ACL categories, those that follow from the flags included.
    pub categories: Categories,
    /// Position of the first key in the plain range of keys; 0 if there is none.
    pub first_key: i32,
    /// Position of the last key of that range; negative counts from the end, -1 is the last argument.
    pub last_key: i32,
    /// Distance of the keys in that range; 0 if there is none.
    pub step: i32,
    /// Where the keys are and what happens to them.
    pub key_specs: &'static [KeySpec],
    /// Second way to find the keys, where key specs cannot say it all.
    pub get_keys: GetKeys,
    /// Hints for clients and proxies, such as `request_policy:all_shards`.
    pub tips: &'static [&'static str],
    /// Subcommands; empty unless the command is a container.
    pub subcommands: &'static [CommandSpec],
    /// Documentation, for COMMAND DOCS.
    pub docs: &'static Docs,
    /// Position of the only key, or 0. Computed from the key specs.
    pub(super) single_key: u8,
}

impl CommandSpec {
    /// Position of the key if each valid call has exactly one key and it is always there; a call
    /// that satisfies the arity has an argument at this position.
    #[inline]
    pub const fn single_key(&self) -> Option<usize> {
        match self.single_key {
            0 => None,
            position => Some(position as usize),
        }
    }

    /// Whether calls may name keys.
    pub fn has_keys(&self) -> bool {
        self.get_keys != GetKeys::BySpecs || self.key_specs.iter().any(|spec| !spec.flags.contains(KeyFlags::NOT_KEY))
    }

    /// Whether the command has subcommands.
    #[inline]
    pub const fn is_container(&self) -> bool {
        !self.subcommands.is_empty()
    }

    /// Whether the command may change the data set.
    #[inline]
    pub const fn is_write(&self) -> bool {
        self.flags.contains(Flags::WRITE)
    }

    /// The last part of the name: `get` of `config|get`.
    pub fn short_name(&self) -> &'static str {
        self.name.split_once('|').map_or(self.name, |(_, subcommand)| subcommand)
    }
}

/// One place of keys among the arguments.
#[derive(Clone, Copy, Debug)]
pub struct KeySpec {
    /// What happens to the keys.
    pub flags: KeyFlags,
    /// Where the search begins.
    pub begin_search: BeginSearch,
    /// Which arguments from there on are keys.
    pub find_keys: FindKeys,
    /// Remark for readers of COMMAND INFO.
    pub notes: Option<&'static str>,
}

/// Where the search for keys begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BeginSearch {
    /// Cannot be told.
    Unknown,
    /// At this position.
    Index(i32),
    /// Behind this word, which is looked for from `start_from` on: a negative number counts from
    /// the end and searches backwards.
    Keyword {
        /// The word, upper case.
        keyword: &'static str,
        /// Where to start looking.
        start_from: i32,
    },
}

/// Which arguments are keys, counted from the begin of the search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FindKeys {
    /// Cannot be told.
    Unknown,
    /// A range.
    Range {
        /// Last key, relative to the begin; negative counts from the end of the arguments.
        last: i32,
        /// Distance of keys.
        step: i32,
        /// Above 1 only the first 1/limit of the remaining arguments count; then `last` is -1.
        limit: i32,
    },
    /// As many keys as an argument says.
    Counted {
        /// The argument with the number, relative to the begin.
        count_at: i32,
        /// First key, relative to the begin.
        first: i32,
        /// Distance of keys.
        step: i32,
    },
}

/// How to find the keys of a call where its key specs cannot tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GetKeys {
    /// Key specs tell all.
    BySpecs,
    /// A number of keys, the keys, and perhaps a destination.
    Counted {
        /// Position of the destination; 0 for none.
        store_at: usize,
        /// Position of the number.
        count_at: usize,
        /// Position of the first key.
        first: usize,
    },
    /// SET: GET makes it an access.
    Set,
    /// BITFIELD: reads only if all operations do.
    Bitfield,
    /// SORT: STORE may stand anywhere.
    Sort,
    /// SORT_RO: the patterns of BY and GET name further keys.
    SortRo,
    /// MIGRATE: one key, or those behind KEYS.
    Migrate,
    /// GEORADIUS and GEORADIUSBYMEMBER: STORE or STOREDIST.
    GeoRadius,
    /// XREAD and XREADGROUP: the first half of what follows STREAMS.
    XRead,
}
