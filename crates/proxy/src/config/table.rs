//! The directives.

use server::config::{self as of_server, Kind, Unit, Value};

/// Where reads may go (`replica-reads`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ReplicaReads {
    /// To primaries, as writes.
    #[default]
    Never,
    /// To replicas where there are some that are close enough.
    Prefer,
    /// To replicas in the proxy's own zone.
    Zone,
}

impl ReplicaReads {
    const WORDS: of_server::Words = &[("never", 0), ("prefer", 1), ("zone", 2)];
}

impl Field for ReplicaReads {
    fn to_value(&self) -> Value {
        Value::Word(*self as u32)
    }
    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Word(0) => Some(ReplicaReads::Never),
            Value::Word(1) => Some(ReplicaReads::Prefer),
            Value::Word(2) => Some(ReplicaReads::Zone),
            _ => None,
        }
    }
}

/// A directive of the proxy's own.
#[derive(Debug)]
pub struct Own {
    /// Its name.
    pub name: &'static str,
    /// It as an option of the command line.
    pub option: &'static str,
    /// How its value is parsed and printed.
    pub kind: Kind,
    /// Whether it can only be set at start.
    pub is_fixed: bool,
    /// Whether its value must not be shown in logs.
    pub is_secret: bool,
    /// What it does, in one sentence.
    pub doc: &'static str,
    read: fn(&Config) -> Value,
    write: fn(&mut Config, Value) -> bool,
}

impl Own {
    /// The directive of a name in any case.
    pub fn find(name: &[u8]) -> Option<&'static Own> {
        OWN.iter().find(|own| own.name.as_bytes().eq_ignore_ascii_case(name))
    }

    /// The present value as CONFIG GET prints it.
    pub fn print(&self, config: &Config) -> Vec<u8> {
        self.kind.print(&(self.read)(config))
    }

    /// Parses a value and keeps it. Returns whether that changed anything.
    ///
    /// # Errors
    /// The text for the user.
    pub fn set(&self, config: &mut Config, arguments: &[Vec<u8>]) -> Result<bool, String> {
        let current = (self.read)(config);
        let value = self.kind.parse(arguments, &current)?;
        let is_changed = value != current;
        if is_changed && !(self.write)(config, value) {
            return Err("argument is out of range".into());
        }
        Ok(is_changed)
    }
}

trait Field: Sized {
    fn to_value(&self) -> Value;
    fn from_value(value: Value) -> Option<Self>;
}

impl Field for u32 {
    fn to_value(&self) -> Value {
        Value::Number(i128::from(*self))
    }
    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Number(number) => number.try_into().ok(),
            _ => None,
        }
    }
}

impl Field for u64 {
    fn to_value(&self) -> Value {
        Value::Number(i128::from(*self))
    }
    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Number(number) => number.try_into().ok(),
            _ => None,
        }
    }
}

impl Field for Vec<u8> {
    fn to_value(&self) -> Value {
        Value::Text(self.clone())
    }
    fn from_value(value: Value) -> Option<Self> {
        match value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

const fn number(min: i128, max: i128) -> Kind {
    Kind::Number { min, max, unit: Unit::Plain }
}

const fn memory(min: i128, max: i128) -> Kind {
    Kind::Number { min, max, unit: Unit::Memory }
}

const TEXT: Kind = Kind::Text { empty_is_unset: true, check: None };
const GIBIBYTE: i128 = 1 << 30;

macro_rules! directives {
    ($($name:literal => $field:ident: $type:ty = $default:expr, $kind:expr, $fixed:literal, $secret:literal, $doc:literal;)*) => {
        /// All values at one moment. A snapshot never changes.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Config {
            /// Grows by one with each change.
            pub version: u64,
            /// The directives of [`SHARED`]; its other fields mean nothing here.
            pub base: of_server::Config,
            $(
                #[doc = concat!("`", $name, "`: ", $doc)]
                pub $field: $type,
            )*
        }

        impl Default for Config {
            fn default() -> Self {
                Self { version: 0, base: of_server::Config::default(), $($field: $default,)* }
            }
        }

        /// The proxy's own directives.
        pub static OWN: &[Own] = &[$(
            Own {
                name: $name,
                option: concat!("--", $name, " <value>"),
                kind: $kind,
                is_fixed: $fixed,
                is_secret: $secret,
                doc: $doc,
                read: |config| config.$field.to_value(),
                write: |config, value| match Field::from_value(value) {
                    Some(value) => {
                        config.$field = value;
                        true
                    }
                    None => false,
                },
            },
        )*];
    };
}

directives! {
    "topology" => topology: Vec<u8> = Vec::new(), TEXT, true, false,
        "Where keys live: 'server host:port', 'static 0-8191@host:port 8192-16383@host:port', 'cluster host:port,host:port', 'manager http://host:port'.";
    "proxy-name" => proxy_name: Vec<u8> = Vec::new(), TEXT, true, false,
        "The name under which a manager knows the proxy; empty is 'proxy-' and the port.";
    "proxy-address" => proxy_address: Vec<u8> = Vec::new(), TEXT, true, false,
        "The host:port at which clients reach the proxy, as it tells a manager; empty is the first address it is bound to.";
    "backend-connections" => backend_connections: u32 = 1, number(1, 64), true, false,
        "Connections of each worker to each backend, among which clients are spread.";
    "backend-timeout" => backend_timeout: u32 = 5000, number(1, 3_600_000), false, false,
        "Milliseconds after which a backend that does not answer is given up, and its requests fail.";
    "backend-connect-timeout" => backend_connect_timeout: u32 = 1000, number(1, 3_600_000), false, false,
        "Milliseconds that a connection to a backend may take to stand and to answer.";
    "backend-retry-time" => backend_retry_time: u32 = 1000, number(0, 60_000), false, false,
        "Milliseconds for which a request that a backend refused for the moment (TRYAGAIN, LOADING, CLUSTERDOWN) is tried again.";
    "backend-queue-limit" => backend_queue_limit: u64 = 16 << 20, memory(1 << 16, GIBIBYTE * 64), false, false,
        "Bytes of unanswered requests of one connection to a backend, above which clients are not read from.";
    "backend-user" => backend_user: Vec<u8> = Vec::new(), TEXT, false, false,
        "The user as which the proxy logs in at backends; empty is the default user.";
    "backend-password" => backend_password: Vec<u8> = Vec::new(), TEXT, false, true,
        "The password with which the proxy logs in at backends; empty is none.";
    "replica-reads" => replica_reads: ReplicaReads = ReplicaReads::Never, Kind::Enum(ReplicaReads::WORDS), false, false,
        "Where reads go: 'never' to replicas, 'prefer' replicas, or 'zone': replicas in the proxy's own zone; others then as writes. Replicas may answer with older data.";
    "replica-max-lag" => replica_max_lag: u32 = 10, number(1, 86_400), false, false,
        "Seconds that a replica may be behind to be read from.";
    "zone" => zone: Vec<u8> = Vec::new(), TEXT, false, false,
        "The zone in which the proxy stands, for 'replica-reads zone'.";
    "private-connections" => private_connections: u32 = 1024, number(1, 1_000_000), false, false,
        "Connections to backends of one worker for single clients: those that block, watch keys or end scripts.";
    "client-pipeline-limit" => client_pipeline_limit: u32 = 4096, number(1, 1_000_000), false, false,
        "Unanswered requests of one client, above which it is not read from.";
    "client-output-pause" => client_output_pause: u64 = 1 << 20, memory(1 << 12, GIBIBYTE * 64), false, false,
        "Bytes of replies that a client has not taken, above which it is not read from.";
}

/// Directives of the server that the proxy has too.
pub static SHARED: &[&str] = &[
    "daemonize",
    "pidfile",
    "supervised",
    "loglevel",
    "logfile",
    "syslog-enabled",
    "syslog-ident",
    "syslog-facility",
    "set-proc-title",
    "proc-title-template",
    "crash-log-enabled",
    "dir",
    "bind",
    "port",
    "unixsocket",
    "unixsocketperm",
    "tcp-backlog",
    "tcp-keepalive",
    "timeout",
    "maxclients",
    "io-threads",
    "protected-mode",
    "requirepass",
    "aclfile",
    "acl-pubsub-default",
    "acllog-max-len",
    "databases",
    "slot-space",
    "proto-max-bulk-len",
    "client-query-buffer-limit",
    "client-output-buffer-limit",
    "shutdown-timeout",
    "slowlog-log-slower-than",
    "slowlog-max-len",
];
