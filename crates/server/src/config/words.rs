//! The words that enum directives accept, as Rust enums.
//!
//! Each enum is declared once with the words of the configuration file. Where several words mean the
//! same, the first is the one printed.

use super::kind::{Field, Value, Words, word_name};

macro_rules! word_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $number:literal $(: $word:literal)+),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u32)]
        pub enum $name { $($(#[$variant_doc])* $variant = $number),+ }

        impl $name {
            /// The words of the configuration file.
            pub const WORDS: Words = &[$($(($word, $number)),+),+];

            /// The word as CONFIG GET prints it.
            #[must_use]
            pub fn word(self) -> &'static str {
                word_name(Self::WORDS, self as u32)
            }
        }

        impl Field for $name {
            fn to_value(&self) -> Value {
                Value::Word(*self as u32)
            }
            fn from_value(value: Value) -> Option<Self> {
                match value {
                    $(Value::Word($number) => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    };
}

word_enum! {
    /// `maxmemory-policy`: which keys may be evicted, and in what order.
    MaxmemoryPolicy {
        /// Keys with a time to live, longest unused first.
        VolatileLru = 0: "volatile-lru",
        /// Keys with a time to live, least often used first.
        VolatileLfu = 1: "volatile-lfu",
        /// Keys with a time to live, at random.
        VolatileRandom = 2: "volatile-random",
        /// Keys with a time to live, nearest to their end first.
        VolatileTtl = 3: "volatile-ttl",
        /// All keys, longest unused first.
        AllkeysLru = 4: "allkeys-lru",
        /// All keys, least often used first.
        AllkeysLfu = 5: "allkeys-lfu",
        /// All keys, at random.
        AllkeysRandom = 6: "allkeys-random",
        /// None: commands that need memory are refused.
        NoEviction = 7: "noeviction",
    }
}

word_enum! {
    /// `syslog-facility`: where syslog files our lines.
    SyslogFacility {
        /// LOG_USER.
        User = 100: "user",
        /// LOG_LOCAL0.
        Local0 = 0: "local0",
        /// LOG_LOCAL1.
        Local1 = 1: "local1",
        /// LOG_LOCAL2.
        Local2 = 2: "local2",
        /// LOG_LOCAL3.
        Local3 = 3: "local3",
        /// LOG_LOCAL4.
        Local4 = 4: "local4",
        /// LOG_LOCAL5.
        Local5 = 5: "local5",
        /// LOG_LOCAL6.
        Local6 = 6: "local6",
        /// LOG_LOCAL7.
        Local7 = 7: "local7",
    }
}

word_enum! {
    /// `loglevel`: the least important line that is still written.
    LogLevel {
        /// Everything.
        Debug = 0: "debug",
        /// Rarely useful detail.
        Verbose = 1: "verbose",
        /// What a production server should tell.
        Notice = 2: "notice",
        /// Only what is important or critical.
        Warning = 3: "warning",
        /// Nothing at all.
        Nothing = 4: "nothing",
    }
}

word_enum! {
    /// `supervised`: who watches the process.
    Supervised {
        /// Upstart: stop ourselves when ready.
        Upstart = 1: "upstart",
        /// systemd: send messages to its socket.
        Systemd = 2: "systemd",
        /// Found out by the environment.
        Auto = 3: "auto",
        /// Nobody.
        No = 0: "no",
    }
}

word_enum! {
    /// `appendfsync`: when the log of changes is forced to disk.
    AppendFsync {
        /// Once a second.
        Everysec = 0: "everysec",
        /// Before each reply.
        Always = 1: "always",
        /// When the kernel likes to.
        No = 2: "no",
    }
}

word_enum! {
    /// `repl-diskless-load`: whether a replica loads straight from the socket.
    ReplDisklessLoad {
        /// Never.
        Disabled = 0: "disabled",
        /// When it holds no keys.
        OnEmptyDb = 1: "on-empty-db",
        /// Beside the old data, which it swaps out afterwards.
        Swapdb = 2: "swapdb",
    }
}

word_enum! {
    /// `tls-auth-clients`: whether clients must show a certificate.
    TlsAuthClients {
        /// Not asked for.
        No = 0: "no",
        /// Required.
        Yes = 1: "yes",
        /// Checked when shown.
        Optional = 2: "optional",
    }
}

word_enum! {
    /// `oom-score-adj`: whether the kernel's out-of-memory score is managed.
    OomScoreAdj {
        /// Left alone.
        No = 0: "no",
        /// Added to the score at start.
        Relative = 1: "yes": "relative",
        /// Written as it is.
        Absolute = 2: "absolute",
    }
}

word_enum! {
    /// `acl-pubsub-default`: the channels a new user may use.
    AclPubsubDefault {
        /// All of them.
        Allchannels = 1: "allchannels",
        /// None of them.
        Resetchannels = 0: "resetchannels",
    }
}

impl AclPubsubDefault {
    /// Whether new users may use all channels.
    #[must_use]
    pub fn allows_all(self) -> bool {
        self == AclPubsubDefault::Allchannels
    }
}

word_enum! {
    /// `sanitize-dump-payload`: whose serialized values are checked in depth.
    SanitizeDumpPayload {
        /// Nobody's.
        No = 0: "no",
        /// Everybody's.
        Yes = 1: "yes",
        /// Those of clients, not of the primary or of files.
        Clients = 2: "clients",
    }
}

word_enum! {
    /// Who may use a protected feature.
    ProtectedAction {
        /// Nobody.
        No = 0: "no",
        /// Everybody.
        Yes = 1: "yes",
        /// Connections from this machine.
        Local = 2: "local",
    }
}

impl ProtectedAction {
    /// Whether a client may use the feature; `client_is_local` says if it connects from this
    /// machine (loopback or Unix socket).
    #[must_use]
    pub fn allows(self, client_is_local: bool) -> bool {
        match self {
            Self::No => false,
            Self::Yes => true,
            Self::Local => client_is_local,
        }
    }
}

word_enum! {
    /// `cluster-preferred-endpoint-type`: how nodes are named to clients.
    ClusterEndpointType {
        /// By address.
        Ip = 0: "ip",
        /// By the announced host name.
        Hostname = 1: "hostname",
        /// Not at all: the client keeps the address it used.
        UnknownEndpoint = 2: "unknown-endpoint",
    }
}

word_enum! {
    /// `propagation-error-behavior`: what follows when a replicated command fails.
    PropagationErrorBehavior {
        /// Log and go on.
        Ignore = 0: "ignore",
        /// Stop the process.
        Panic = 1: "panic",
        /// Stop the process if it is a replica.
        PanicOnReplicas = 2: "panic-on-replicas",
    }
}

word_enum! {
    /// `slot-space`: which hash and how many slots the keyspace is cut into.
    SlotSpace {
        /// 16,384 slots by CRC16, as Redis Cluster has.
        Redis = 0: "redis",
        /// 1,024 slots by CRC32, as Codis has.
        Codis = 1: "codis",
    }
}

/// `shutdown-on-sigint` and `shutdown-on-sigterm`: the options of the SHUTDOWN that a signal stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShutdownFlags(u32);

impl ShutdownFlags {
    const SAVE: u32 = 1;
    const NOSAVE: u32 = 2;
    const NOW: u32 = 4;
    const FORCE: u32 = 8;

    /// The words of the configuration file.
    pub const WORDS: Words =
        &[("default", 0), ("save", Self::SAVE), ("nosave", Self::NOSAVE), ("now", Self::NOW), ("force", Self::FORCE)];

    /// Save a snapshot first, even without save points.
    #[must_use]
    pub fn save(self) -> bool {
        self.0 & Self::SAVE != 0
    }

    /// Save no snapshot, even with save points.
    #[must_use]
    pub fn nosave(self) -> bool {
        self.0 & Self::NOSAVE != 0
    }

    /// Do not wait for replicas.
    #[must_use]
    pub fn now(self) -> bool {
        self.0 & Self::NOW != 0
    }

    /// Exit even if saving fails.
    #[must_use]
    pub fn force(self) -> bool {
        self.0 & Self::FORCE != 0
    }

    /// Refuses the combinations that contradict themselves.
    pub(super) fn check(union: u32) -> Result<(), &'static str> {
        if union & Self::SAVE != 0 && union & Self::NOSAVE != 0 {
            return Err("shutdown options SAVE and NOSAVE can't be used simultaneously");
        }
        Ok(())
    }
}

impl Field for ShutdownFlags {
    fn to_value(&self) -> Value {
        Value::Word(self.0)
    }
    fn from_value(value: Value) -> Option<Self> {
        if let Value::Word(union) = value { Some(Self(union)) } else { None }
    }
}
