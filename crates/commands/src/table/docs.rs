//! The types of a command's documentation, as COMMAND DOCS tells it, and the short words in which
//! the rows write it.

/// Documentation of a command.
#[derive(Clone, Copy, Debug)]
pub struct Docs {
    /// What it does, in a sentence.
    pub summary: &'static str,
    /// Redis version that brought it.
    pub since: &'static str,
    /// Chapter it belongs to.
    pub group: Group,
    /// Cost, if it can be told.
    pub complexity: Option<&'static str>,
    /// Replaced by something better.
    pub deprecated: bool,
    /// Meant for servers and tools rather than for users.
    pub system: bool,
    /// Redis version that deprecated it.
    pub deprecated_since: Option<&'static str>,
    /// What to use now.
    pub replaced_by: Option<&'static str>,
    /// Version and change, oldest first.
    pub history: &'static [(&'static str, &'static str)],
    /// Grammar of the arguments.
    pub arguments: &'static [Argument],
}

/// Chapter of the command reference.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Group {
    /// Keys of any type.
    Generic,
    /// Strings.
    String,
    /// Lists.
    List,
    /// Sets.
    Set,
    /// Sorted sets.
    SortedSet,
    /// Hashes.
    Hash,
    /// Publish and subscribe.
    Pubsub,
    /// MULTI.
    Transactions,
    /// Connections.
    Connection,
    /// Server.
    Server,
    /// Scripts and functions.
    Scripting,
    /// HyperLogLog.
    Hyperloglog,
    /// Redis Cluster.
    Cluster,
    /// Geospatial indexes.
    Geo,
    /// Streams.
    Stream,
    /// Bitmaps.
    Bitmap,
}

impl Group {
    /// The name in replies.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Generic => "generic",
            Self::String => "string",
            Self::List => "list",
            Self::Set => "set",
            Self::SortedSet => "sorted-set",
            Self::Hash => "hash",
            Self::Pubsub => "pubsub",
            Self::Transactions => "transactions",
            Self::Connection => "connection",
            Self::Server => "server",
            Self::Scripting => "scripting",
            Self::Hyperloglog => "hyperloglog",
            Self::Cluster => "cluster",
            Self::Geo => "geo",
            Self::Stream => "stream",
            Self::Bitmap => "bitmap",
        }
    }
}

/// One argument, or a group of arguments, in the grammar of a command.
#[derive(Clone, Copy, Debug)]
pub struct Argument {
    /// Name, unique among its siblings.
    pub name: &'static str,
    /// What may stand there.
    pub kind: ArgumentKind,
    /// Shown instead of the name.
    pub display: Option<&'static str>,
    /// Key spec that finds it, if it is a key.
    pub key_spec: Option<u8>,
    /// Fixed word in front of it, or the word itself.
    pub token: Option<&'static str>,
    /// Redis version that brought it, if later than the command.
    pub since: Option<&'static str>,
    /// Redis version that deprecated it.
    pub deprecated_since: Option<&'static str>,
    /// May be left out.
    pub optional: bool,
    /// May be repeated.
    pub multiple: bool,
    /// Each repetition has the token.
    pub multiple_token: bool,
    /// Alternatives of a `OneOf`, parts of a `Block`.
    pub arguments: &'static [Argument],
}

/// What may stand for an argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArgumentKind {
    /// Any bytes.
    String,
    /// A whole number.
    Integer,
    /// A floating-point number.
    Double,
    /// A key.
    Key,
    /// A pattern of keys or channels.
    Pattern,
    /// Seconds or milliseconds since 1970.
    UnixTime,
    /// Just the token.
    PureToken,
    /// One of several arguments.
    OneOf,
    /// Several arguments together.
    Block,
}

impl ArgumentKind {
    /// The name in replies.
    pub const fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Double => "double",
            Self::Key => "key",
            Self::Pattern => "pattern",
            Self::UnixTime => "unix-time",
            Self::PureToken => "pure-token",
            Self::OneOf => "oneof",
            Self::Block => "block",
        }
    }
}

/// Documentation; an empty `complexity` means that none is given.
pub(super) const fn docs(group: Group, since: &'static str, complexity: &'static str, summary: &'static str) -> Docs {
    Docs {
        summary,
        since,
        group,
        complexity: if complexity.is_empty() { None } else { Some(complexity) },
        deprecated: false,
        system: false,
        deprecated_since: None,
        replaced_by: None,
        history: &[],
        arguments: &[],
    }
}

impl Docs {
    /// Deprecated since that version, in favour of something else.
    pub(super) const fn deprecated(mut self, since: &'static str, by: &'static str) -> Self {
        self.deprecated = true;
        self.deprecated_since = Some(since);
        self.replaced_by = Some(by);
        self
    }

    /// Meant for servers and tools.
    pub(super) const fn system(mut self) -> Self {
        self.system = true;
        self
    }

    /// What changed in which version.
    pub(super) const fn history(mut self, history: &'static [(&'static str, &'static str)]) -> Self {
        self.history = history;
        self
    }

    /// The grammar of the arguments.
    pub(super) const fn arguments(mut self, arguments: &'static [Argument]) -> Self {
        self.arguments = arguments;
        self
    }
}

const fn argument(kind: ArgumentKind, name: &'static str) -> Argument {
    Argument {
        name,
        kind,
        display: None,
        key_spec: None,
        token: None,
        since: None,
        deprecated_since: None,
        optional: false,
        multiple: false,
        multiple_token: false,
        arguments: &[],
    }
}

/// Any bytes.
pub(super) const fn string(name: &'static str) -> Argument {
    argument(ArgumentKind::String, name)
}

/// A whole number.
pub(super) const fn integer(name: &'static str) -> Argument {
    argument(ArgumentKind::Integer, name)
}

/// A floating-point number.
pub(super) const fn double(name: &'static str) -> Argument {
    argument(ArgumentKind::Double, name)
}

/// A key that the key spec of this index finds.
pub(super) const fn key_argument(name: &'static str, key_spec: u8) -> Argument {
    argument(ArgumentKind::Key, name).key_spec(key_spec)
}

/// A pattern.
pub(super) const fn pattern(name: &'static str) -> Argument {
    argument(ArgumentKind::Pattern, name)
}

/// A point in time.
pub(super) const fn unix_time(name: &'static str) -> Argument {
    argument(ArgumentKind::UnixTime, name)
}

/// A fixed word.
pub(super) const fn token(name: &'static str, word: &'static str) -> Argument {
    argument(ArgumentKind::PureToken, name).after(word)
}

/// One of several arguments.
pub(super) const fn one_of(name: &'static str, arguments: &'static [Argument]) -> Argument {
    let mut all = argument(ArgumentKind::OneOf, name);
    all.arguments = arguments;
    all
}

/// Several arguments together.
pub(super) const fn block(name: &'static str, arguments: &'static [Argument]) -> Argument {
    let mut all = argument(ArgumentKind::Block, name);
    all.arguments = arguments;
    all
}

impl Argument {
    /// Stands behind this word.
    pub(super) const fn after(mut self, word: &'static str) -> Self {
        self.token = Some(word);
        self
    }

    /// Shown under another name.
    pub(super) const fn display(mut self, name: &'static str) -> Self {
        self.display = Some(name);
        self
    }

    /// Found by the key spec of this index.
    pub(super) const fn key_spec(mut self, index: u8) -> Self {
        self.key_spec = Some(index);
        self
    }

    /// New in that version.
    pub(super) const fn since(mut self, version: &'static str) -> Self {
        self.since = Some(version);
        self
    }

    /// Deprecated in that version.
    pub(super) const fn deprecated_since(mut self, version: &'static str) -> Self {
        self.deprecated_since = Some(version);
        self
    }

    /// May be left out.
    pub(super) const fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    /// May be repeated.
    pub(super) const fn multiple(mut self) -> Self {
        self.multiple = true;
        self
    }

    /// May be repeated, each time with its token.
    pub(super) const fn multiple_token(mut self) -> Self {
        self.multiple = true;
        self.multiple_token = true;
        self
    }
}
