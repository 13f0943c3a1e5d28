//! The bit sets of a row: command flags, ACL categories, and what a command does with a key.
//!
//! In each set the bits stand in the order in which Redis lists their names, so a reply walks the
//! set from the lowest bit upwards.

use std::ops::BitOr;

/// Declares a bit set with named bits; each bit has the name that clients see, or none if hidden.
macro_rules! bit_set {
    (
        $(#[$set_doc:meta])* $set:ident($int:ty);
        $( $(#[$bit_doc:meta])* $bit:ident = $shift:literal $(=> $text:literal)?; )*
    ) => {
        $(#[$set_doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Default, Hash, Debug)]
        pub struct $set($int);

        impl $set {
            /// The set without members.
            pub const EMPTY: Self = Self(0);
            $( $(#[$bit_doc])* pub const $bit: Self = Self(1 << $shift); )*

            /// Each bit that clients can see, with its name, in the order of replies.
            pub const NAMES: &'static [(Self, &'static str)] = &[
                $( $( (Self(1 << $shift), $text), )? )*
            ];

            /// The set with exactly these bits.
            pub const fn from_bits(bits: $int) -> Self {
                Self(bits)
            }

            /// The members as a number.
            pub const fn bits(self) -> $int {
                self.0
            }

            /// Whether every member of `other` is a member.
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// Whether at least one member of `other` is a member.
            pub const fn intersects(self, other: Self) -> bool {
                self.0 & other.0 != 0
            }

            /// Whether there are no members.
            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }

            /// The members of both sets.
            pub const fn with(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }

            /// The names that clients see, in the order of replies.
            pub fn names(self) -> impl Iterator<Item = &'static str> + Clone {
                Self::NAMES
                    .iter()
                    .filter(move |(bit, _)| self.contains(*bit))
                    .map(|(_, name)| *name)
            }
        }

        impl BitOr for $set {
            type Output = Self;
            fn bitor(self, other: Self) -> Self {
                self.with(other)
            }
        }
    };
}

bit_set! {
    /// What the dispatcher must know of a command before it runs it.
    Flags(u64);
    /// May change the data set.
    WRITE = 0 => "write";
    /// Reads keys and never changes them.
    READONLY = 1 => "readonly";
    /// May need more memory; refused when memory is over the limit.
    DENYOOM = 2 => "denyoom";
    /// Comes from a module.
    MODULE = 3 => "module";
    /// Administration of the server.
    ADMIN = 4 => "admin";
    /// Publishes or subscribes.
    PUBSUB = 5 => "pubsub";
    /// Refused inside scripts and functions.
    NOSCRIPT = 6 => "noscript";
    /// May block the client until something happens.
    BLOCKING = 8 => "blocking";
    /// Allowed while the data set is being loaded.
    LOADING = 9 => "loading";
    /// Allowed on a replica that lost its primary and must not serve old data.
    STALE = 10 => "stale";
    /// Never shown to MONITOR clients.
    SKIP_MONITOR = 11 => "skip_monitor";
    /// Never written to the slow log.
    SKIP_SLOWLOG = 12 => "skip_slowlog";
    /// Acts as if ASKING had been sent before it.
    ASKING = 13 => "asking";
    /// Constant or logarithmic time.
    FAST = 14 => "fast";
    /// Needs no authentication.
    NO_AUTH = 15 => "no_auth";
    /// Not a write, yet may send something to replicas.
    MAY_REPLICATE = 16;
    /// Exists in sentinel mode too.
    SENTINEL = 17;
    /// Exists in sentinel mode only.
    ONLY_SENTINEL = 18;
    /// Valid without any key, although it can name keys.
    NO_MANDATORY_KEYS = 19 => "no_mandatory_keys";
    /// Needs a directive such as `enable-debug-command` to be allowed.
    PROTECTED = 20;
    /// Refused while a replica loads its data set beside the old one.
    NO_ASYNC_LOADING = 23 => "no_async_loading";
    /// Refused inside MULTI.
    NO_MULTI = 24 => "no_multi";
    /// First key, last key and step do not name all keys; ask the key specs. Set by the table itself.
    MOVABLE_KEYS = 25 => "movablekeys";
    /// Allowed while a script or function runs for too long.
    ALLOW_BUSY = 26 => "allow_busy";
    /// May touch keys that its arguments do not name (RANDOMKEY, SCAN).
    TOUCHES_ARBITRARY_KEYS = 28;
}

bit_set! {
    /// ACL categories.
    Categories(u32);
    /// Keys and their life, whatever the type.
    KEYSPACE = 0 => "keyspace";
    /// Reads values or metadata of keys.
    READ = 1 => "read";
    /// Writes values or metadata of keys.
    WRITE = 2 => "write";
    /// Sets.
    SET = 3 => "set";
    /// Sorted sets.
    SORTEDSET = 4 => "sortedset";
    /// Lists.
    LIST = 5 => "list";
    /// Hashes.
    HASH = 6 => "hash";
    /// Strings.
    STRING = 7 => "string";
    /// Bitmaps.
    BITMAP = 8 => "bitmap";
    /// HyperLogLogs.
    HYPERLOGLOG = 9 => "hyperloglog";
    /// Geospatial indexes.
    GEO = 10 => "geo";
    /// Streams.
    STREAM = 11 => "stream";
    /// Publish and subscribe.
    PUBSUB = 12 => "pubsub";
    /// Administration.
    ADMIN = 13 => "admin";
    /// Fast commands.
    FAST = 14 => "fast";
    /// All that are not fast.
    SLOW = 15 => "slow";
    /// May block the client.
    BLOCKING = 16 => "blocking";
    /// Can harm, reveal or stall a server.
    DANGEROUS = 17 => "dangerous";
    /// State of the connection or of other connections.
    CONNECTION = 18 => "connection";
    /// MULTI and its relatives.
    TRANSACTION = 19 => "transaction";
    /// Scripts and functions.
    SCRIPTING = 20 => "scripting";
}

impl Categories {
    /// The category of that name (without `@`), in any case; `None` if there is none.
    pub fn by_name(name: &[u8]) -> Option<Self> {
        Self::NAMES.iter().find(|(_, known)| known.as_bytes().eq_ignore_ascii_case(name)).map(|(category, _)| *category)
    }
}

bit_set! {
    /// What a command does with one key: one of RO, RW, OW and RM, and how it treats the value.
    KeyFlags(u16);
    /// Reads the value.
    RO = 0 => "RO";
    /// Changes the value that is there.
    RW = 1 => "RW";
    /// Replaces the value, whatever it was.
    OW = 2 => "OW";
    /// Removes the key.
    RM = 3 => "RM";
    /// User data of the value is returned, copied or decides what happens.
    ACCESS = 4 => "access";
    /// Sets user data, which may depend on the old.
    UPDATE = 5 => "update";
    /// Adds user data and touches none of the old.
    INSERT = 6 => "insert";
    /// Removes user data on purpose.
    DELETE = 7 => "delete";
    /// Not a key, but routed like one (a shard channel).
    NOT_KEY = 8 => "not_key";
    /// The key spec may miss keys of the command.
    INCOMPLETE = 9 => "incomplete";
    /// Other arguments decide which of the flags hold.
    VARIABLE_FLAGS = 10 => "variable_flags";
}
