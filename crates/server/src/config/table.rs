//! The table of directives: one row says everything about one of them.
//!
//! From the rows the macro makes the typed [`Config`], its defaults, and [`DIRECTIVES`], through
//! which the rest of the module parses, prints, sets and documents without knowing any field. Names,
//! bounds and defaults are those of Redis 7.2.5, except where a row says otherwise; `slot-space` and
//! `rdb-version` are our own, and `io-threads` starts with the number of processors because workers execute commands.

use std::os::unix::ffi::OsStringExt as _;

use super::checks;
use super::directive::Applies::{self, Acts, Later, Never};
use super::directive::{DENIED_WHILE_LOADING, Directive, FIXED, HIDDEN, MUTABLE, PROTECTED, RELOADS, SECRET, Work};
use super::kind::{Field, Kind, TextCheck, Unit};
use super::special::{BufferLimits, EventClasses, PrimaryAddress, SavePoint};
use super::words::{
    AclPubsubDefault, AppendFsync, ClusterEndpointType, LogLevel, MaxmemoryPolicy, OomScoreAdj,
    PropagationErrorBehavior, ProtectedAction, ReplDisklessLoad, SanitizeDumpPayload, ShutdownFlags, SlotSpace,
    Supervised, SyslogFacility, TlsAuthClients,
};

const INT_MIN: i128 = i32::MIN as i128;
const INT_MAX: i128 = i32::MAX as i128;
const UINT_MAX: i128 = u32::MAX as i128;
const LONG_MAX: i128 = i64::MAX as i128;
const LLONG_MAX: i128 = i64::MAX as i128;
const ULLONG_MAX: i128 = u64::MAX as i128;
const MIB: i128 = 1 << 20;

const BOOL: Kind = Kind::Bool;
const TEXT: Kind = Kind::Text { empty_is_unset: false, check: None };
const UNSET_TEXT: Kind = Kind::Text { empty_is_unset: true, check: None };
const CHECKED_HOST_NAME: Kind = Kind::Text { empty_is_unset: true, check: Some(checks::announced_host_name) };
const CHECKED_NODE_NAME: Kind = Kind::Text { empty_is_unset: true, check: Some(checks::announced_node_name) };

const fn number(min: i128, max: i128, unit: Unit) -> Kind {
    Kind::Number { min, max, unit }
}

const fn int(min: i128, max: i128) -> Kind {
    number(min, max, Unit::Plain)
}

const fn memory(min: i128, max: i128) -> Kind {
    number(min, max, Unit::Memory)
}

const fn checked(check: TextCheck) -> Kind {
    Kind::Text { empty_is_unset: false, check: Some(check) }
}

fn text(value: &str) -> Vec<u8> {
    value.as_bytes().to_vec()
}

/// The processors this process may use, within the bounds of `io-threads`.
fn default_workers() -> u32 {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    u32::try_from(processors).unwrap_or(128).clamp(1, 128)
}

fn default_save_points() -> Vec<SavePoint> {
    [(3600, 1), (300, 100), (60, 10_000)].map(|(seconds, changes)| SavePoint { seconds, changes }).to_vec()
}

fn working_directory() -> Vec<u8> {
    std::env::current_dir().map(|path| path.into_os_string().into_vec()).unwrap_or_default()
}

macro_rules! directives {
    ($($name:literal $(/ $alias:literal)? => $field:ident: $type:ty = $default:expr,
        $kind:expr, $traits:expr, $applies:expr, $doc:literal;)*) => {
        /// All values of the configuration at one moment, as typed fields.
        ///
        /// A snapshot never changes; [`ConfigStore`](super::ConfigStore) hands out new ones.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Config {
            /// Grows by one with each change, so that a worker can tell whether it has seen it.
            pub version: u64,
            $(
                #[doc = concat!("`", $name, "`: ", $doc)]
                pub $field: $type,
            )*
        }

        impl Default for Config {
            fn default() -> Self {
                Self { version: 0, $($field: $default,)* }
            }
        }

        /// Every directive that CONFIG GET knows, grouped by subject.
        pub static DIRECTIVES: &[Directive] = &[$(
            Directive {
                name: $name,
                option: concat!("--", $name, " <value>"),
                alias: directives!(@alias $($alias)?),
                kind: $kind,
                doc: $doc,
                applies: $applies,
                traits: $traits,
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
    (@alias) => { None };
    (@alias $alias:literal) => { Some($alias) };
}

directives! {
    // Process and logging.
    "daemonize" => daemonize: bool = false,
        BOOL, FIXED, Acts, "Run in the background, detached from the terminal.";
    "pidfile" => pidfile: Vec<u8> = text(""),
        UNSET_TEXT, FIXED, Acts, "The file that receives the number of the process; written when set or when in the background.";
    "supervised" => supervised: Supervised = Supervised::No,
        Kind::Enum(Supervised::WORDS), FIXED, Acts, "Who supervises the process and is told when it is ready.";
    "loglevel" => loglevel: LogLevel = LogLevel::Notice,
        Kind::Enum(LogLevel::WORDS), MUTABLE, Acts, "The least important log line that is written.";
    "logfile" => logfile: Vec<u8> = text(""),
        TEXT, FIXED, Acts, "The log file; empty is the standard output.";
    "syslog-enabled" => syslog_enabled: bool = false,
        BOOL, FIXED, Acts, "Also send log lines to syslog.";
    "syslog-ident" => syslog_ident: Vec<u8> = text("redis"),
        TEXT, FIXED, Acts, "The name of the process in syslog.";
    "syslog-facility" => syslog_facility: SyslogFacility = SyslogFacility::Local0,
        Kind::Enum(SyslogFacility::WORDS), FIXED, Acts, "The facility of the lines in syslog.";
    "always-show-logo" => always_show_logo: bool = false,
        BOOL, FIXED, Acts, "Show the picture at start even when the log is not a terminal.";
    "set-proc-title" => set_proc_title: bool = true,
        BOOL, FIXED, Acts, "Show the address and mode of the server in the process list.";
    "proc-title-template" => proc_title_template: Vec<u8> = text("{title} {listen-addr} {server-mode}"),
        checked(checks::process_title), MUTABLE, Acts, "The title in the process list; cut to the room that the original arguments take.";
    "crash-log-enabled" => crash_log_enabled: bool = true,
        BOOL, MUTABLE, Acts, "Write a report into the log when the process comes down by a fault of its own.";
    "crash-memcheck-enabled" => crash_memcheck_enabled: bool = true,
        BOOL, MUTABLE, Never("a crash report here has no memory test"), "Test the memory of the machine after a crash.";
    "use-exit-on-panic" => use_exit_on_panic: bool = false,
        BOOL, HIDDEN, Never("a fault ends the worker by unwinding, never by an abort that leaves a core"), "Leave by exit instead of abort after a fault.";
    "watchdog-period" => watchdog_period: i32 = 0,
        int(0, INT_MAX), HIDDEN, Never("there is no software watchdog; LATENCY and SLOWLOG tell of stalls"), "Milliseconds after which the software watchdog reports a stall.";
    "disable-thp" => disable_thp: bool = true,
        BOOL, FIXED, Acts, "Turn transparent huge pages off for this process.";
    "oom-score-adj" => oom_score_adj: OomScoreAdj = OomScoreAdj::No,
        Kind::Enum(OomScoreAdj::WORDS), MUTABLE, Acts, "Manage the score by which the kernel picks a process to kill when memory runs out.";
    "oom-score-adj-values" => oom_score_adj_values: [i32; 3] = [0, 200, 800],
        Kind::OomScores, MUTABLE, Acts, "The scores of a primary, of a replica and of a background child.";
    "jemalloc-bg-thread" => jemalloc_bg_thread: bool = true,
        BOOL, MUTABLE, Acts, "Let the allocator return memory to the system from a thread of its own.";
    "server_cpulist" => server_cpulist: Vec<u8> = text(""),
        UNSET_TEXT, FIXED, Acts, "The processors that the workers may run on.";
    "bio_cpulist" => bio_cpulist: Vec<u8> = text(""),
        UNSET_TEXT, FIXED, Acts, "The processors that background threads may run on.";
    "aof_rewrite_cpulist" => aof_rewrite_cpulist: Vec<u8> = text(""),
        UNSET_TEXT, FIXED, Never("the log of changes is rewritten without a child process"), "The processors of the child that rewrites the log of changes.";
    "bgsave_cpulist" => bgsave_cpulist: Vec<u8> = text(""),
        UNSET_TEXT, FIXED, Never("snapshots are written without a child process"), "The processors of the child that writes a snapshot.";
    "ignore-warnings" => ignore_warnings: Vec<u8> = text(""),
        TEXT, MUTABLE, Never("the only warning it names is about processes that fork, which this one does not"), "Checks of the machine whose failure does not stop the start.";
    "locale-collate" => locale_collate: Vec<u8> = text(""),
        TEXT, MUTABLE, Never("SORT ALPHA compares bytes whatever the locale"), "The locale by which strings are compared.";
    "shutdown-on-sigint" => shutdown_on_sigint: ShutdownFlags = ShutdownFlags::default(),
        Kind::Flags(ShutdownFlags::WORDS, ShutdownFlags::check), MUTABLE, Acts, "The options of the SHUTDOWN that SIGINT stands for.";
    "shutdown-on-sigterm" => shutdown_on_sigterm: ShutdownFlags = ShutdownFlags::default(),
        Kind::Flags(ShutdownFlags::WORDS, ShutdownFlags::check), MUTABLE, Acts, "The options of the SHUTDOWN that SIGTERM stands for.";
    "shutdown-timeout" => shutdown_timeout: i32 = 10,
        int(0, INT_MAX), MUTABLE, Acts, "Seconds that a shutdown waits for replicas to catch up.";
    // Network.
    "bind" => bind: Vec<Vec<u8>> = vec![text("*"), text("-::*")],
        Kind::Addresses, MUTABLE, Acts, "The addresses to listen on; one that starts with `-` may be missing.";
    "bind-source-addr" => bind_source_addr: Vec<u8> = text(""),
        UNSET_TEXT, MUTABLE, Acts, "The address that connections to other servers start from.";
    "port" => port: u16 = 6379,
        int(0, 65535), MUTABLE, Acts, "The TCP port; 0 is none.";
    "tcp-backlog" => tcp_backlog: i32 = 511,
        int(0, INT_MAX), FIXED, Acts, "How many connections may wait to be accepted.";
    "unixsocket" => unixsocket: Vec<u8> = text(""),
        UNSET_TEXT, FIXED, Acts, "The path of the Unix socket; empty is none.";
    "unixsocketperm" => unixsocketperm: u32 = 0,
        number(0, 0o777, Unit::Octal), FIXED, Acts, "The mode of the Unix socket; 0 leaves it to the umask.";
    "socket-mark-id" => socket_mark_id: u32 = 0,
        int(0, UINT_MAX), FIXED, Acts, "The mark that the kernel gives to packets of the listening sockets; 0 is none.";
    "timeout" => timeout: i32 = 0,
        int(0, INT_MAX), MUTABLE, Acts, "Seconds after which an idle client is closed; 0 is never.";
    "tcp-keepalive" => tcp_keepalive: i32 = 300,
        int(0, INT_MAX), MUTABLE, Acts, "Seconds between probes of a silent connection; 0 is none.";
    "protected-mode" => protected_mode: bool = true,
        BOOL, MUTABLE, Acts, "Refuse other machines while there is no password.";
    "maxclients" => maxclients: u32 = 10_000,
        int(1, UINT_MAX), MUTABLE, Acts, "How many clients may be connected at once.";
    "client-query-buffer-limit" => client_query_buffer_limit: usize = 1 << 30,
        memory(MIB, LONG_MAX), MUTABLE, Acts, "The most bytes of one client that may wait to be executed.";
    "client-output-buffer-limit" => client_output_buffer_limit: BufferLimits = BufferLimits::default(),
        Kind::BufferLimits, MUTABLE, Acts, "When a client that does not read its replies is cut, by class.";
    "proto-max-bulk-len" => proto_max_bulk_len: i64 = 512 << 20,
        memory(MIB, LONG_MAX), MUTABLE, Acts, "The longest single argument, in bytes.";
    "io-threads" => io_threads: u32 = default_workers(),
        int(1, 128), FIXED, Acts, "The number of workers, each of which reads, executes and writes; by default the number of processors.";
    "io-threads-do-reads" => io_threads_do_reads: bool = false,
        BOOL, FIXED, Never("every worker reads and executes what it reads"), "Read and parse in the workers, too.";
    // Security.
    "requirepass" => requirepass: Vec<u8> = text(""),
        UNSET_TEXT, SECRET, Acts, "The password of the default user.";
    "aclfile" => aclfile: Vec<u8> = text(""),
        TEXT, FIXED, Acts, "The file of users.";
    "acl-pubsub-default" => acl_pubsub_default: AclPubsubDefault = AclPubsubDefault::Resetchannels,
        Kind::Enum(AclPubsubDefault::WORDS), MUTABLE, Acts, "The channels that a new user may use.";
    "acllog-max-len" => acllog_max_len: i64 = 128,
        int(0, LONG_MAX), MUTABLE, Acts, "How many refusals ACL LOG remembers.";
    "enable-protected-configs" => enable_protected_configs: ProtectedAction = ProtectedAction::No,
        Kind::Enum(ProtectedAction::WORDS), FIXED, Acts, "Who may change directives that reach into the file system.";
    "enable-debug-command" => enable_debug_command: ProtectedAction = ProtectedAction::No,
        Kind::Enum(ProtectedAction::WORDS), FIXED, Acts, "Who may use DEBUG.";
    "enable-module-command" => enable_module_command: ProtectedAction = ProtectedAction::No,
        Kind::Enum(ProtectedAction::WORDS), FIXED, Never("there are no loadable modules"), "Who may use MODULE.";
    // Memory.
    "databases" => databases: i32 = 16,
        int(1, INT_MAX), FIXED, Acts, "The number of databases.";
    "slot-space" => slot_space: SlotSpace = SlotSpace::Redis,
        Kind::Enum(SlotSpace::WORDS), FIXED, Acts, "How keys are cut into slots: as Redis Cluster or as Codis does.";
    "maxmemory" => maxmemory: u64 = 0,
        memory(0, ULLONG_MAX), MUTABLE, Acts, "The most memory that data may take, in bytes; 0 is no limit.";
    "maxmemory-policy" => maxmemory_policy: MaxmemoryPolicy = MaxmemoryPolicy::NoEviction,
        Kind::Enum(MaxmemoryPolicy::WORDS), MUTABLE, Acts, "What gives way when the limit is reached.";
    "maxmemory-samples" => maxmemory_samples: i32 = 5,
        int(1, INT_MAX), MUTABLE, Acts, "How many keys are compared to find one to evict.";
    "maxmemory-eviction-tenacity" => maxmemory_eviction_tenacity: i32 = 10,
        int(0, 100), MUTABLE, Acts, "How long eviction may hold up a command, from 0 to 100.";
    "maxmemory-clients" => maxmemory_clients: i64 = 0,
        number(-100, LONG_MAX, Unit::MemoryOrPercent), MUTABLE, Acts, "The most memory that all clients may take, in bytes or as a share of maxmemory.";
    "active-expire-effort" => active_expire_effort: i32 = 1,
        int(1, 10), MUTABLE, Acts, "How much time goes into finding expired keys, from 1 to 10.";
    "lfu-log-factor" => lfu_log_factor: i32 = 10,
        int(0, INT_MAX), MUTABLE, Acts, "How slowly the counter of uses grows.";
    "lfu-decay-time" => lfu_decay_time: i32 = 1,
        int(0, INT_MAX), MUTABLE, Acts, "Minutes after which the counter of uses falls by one.";
    "lazyfree-lazy-eviction" => lazyfree_lazy_eviction: bool = false,
        BOOL, MUTABLE, Never("large values are always freed in steps that hold nobody up"), "Free evicted values in the background.";
    "lazyfree-lazy-expire" => lazyfree_lazy_expire: bool = false,
        BOOL, MUTABLE, Never("large values are always freed in steps that hold nobody up"), "Free expired values in the background.";
    "lazyfree-lazy-server-del" => lazyfree_lazy_server_del: bool = false,
        BOOL, MUTABLE, Never("large values are always freed in steps that hold nobody up"), "Free overwritten values in the background.";
    "lazyfree-lazy-user-del" => lazyfree_lazy_user_del: bool = false,
        BOOL, MUTABLE, Never("large values are always freed in steps that hold nobody up"), "Let DEL behave as UNLINK.";
    "lazyfree-lazy-user-flush" => lazyfree_lazy_user_flush: bool = false,
        BOOL, MUTABLE, Never("a flush always frees in steps that hold nobody up"), "Let FLUSHALL and FLUSHDB behave as with ASYNC.";
    "activerehashing" => activerehashing: bool = true,
        BOOL, MUTABLE, Never("tables grow and shrink in small steps as they are used"), "Move table entries in idle time.";
    "hz" => hz: i32 = 10,
        int(0, INT_MAX), MUTABLE, Acts, "How often in a second periodic work runs, kept between 1 and 500.";
    "dynamic-hz" => dynamic_hz: bool = true,
        BOOL, MUTABLE, Never("periodic work is divided among the workers and does not need to run faster with many clients"), "Run periodic work more often when there are many clients.";
    "activedefrag" => activedefrag: bool = false,
        BOOL, MUTABLE, Never("values do not move in memory once stored"), "Move values to reduce fragmentation.";
    "active-defrag-cycle-min" => active_defrag_cycle_min: i32 = 1,
        int(1, 99), MUTABLE, Never("there is no active defragmentation"), "The least share of a processor that defragmentation takes, in percent.";
    "active-defrag-cycle-max" => active_defrag_cycle_max: i32 = 25,
        int(1, 99), MUTABLE, Never("there is no active defragmentation"), "The greatest share of a processor that defragmentation takes, in percent.";
    "active-defrag-threshold-lower" => active_defrag_threshold_lower: i32 = 10,
        int(0, 1000), MUTABLE, Never("there is no active defragmentation"), "The fragmentation at which it starts, in percent.";
    "active-defrag-threshold-upper" => active_defrag_threshold_upper: i32 = 100,
        int(0, 1000), MUTABLE, Never("there is no active defragmentation"), "The fragmentation at which it works hardest, in percent.";
    "active-defrag-ignore-bytes" => active_defrag_ignore_bytes: usize = 100 << 20,
        memory(1, LONG_MAX), MUTABLE, Never("there is no active defragmentation"), "Waste that is not worth the work, in bytes.";
    "active-defrag-max-scan-fields" => active_defrag_max_scan_fields: i64 = 1000,
        int(1, LONG_MAX), MUTABLE, Never("there is no active defragmentation"), "Fields above which a value is defragmented in parts.";
    "tracking-table-max-keys" => tracking_table_max_keys: usize = 1_000_000,
        int(0, LONG_MAX), MUTABLE, Acts, "How many keys the table of client-side caches holds.";
    // Encodings.
    "hash-max-listpack-entries" / "hash-max-ziplist-entries" => hash_max_listpack_entries: usize = 512,
        int(0, LONG_MAX), MUTABLE, Acts, "The most fields of a hash kept as a listpack.";
    "hash-max-listpack-value" / "hash-max-ziplist-value" => hash_max_listpack_value: usize = 64,
        memory(0, LONG_MAX), MUTABLE, Acts, "The longest field or value of a hash kept as a listpack, in bytes.";
    "list-max-listpack-size" / "list-max-ziplist-size" => list_max_listpack_size: i32 = -2,
        int(INT_MIN, INT_MAX), MUTABLE, Acts, "The size of a list node: elements when positive, a class of bytes (-1 is 4 KiB to -5 is 64 KiB) when negative.";
    "list-compress-depth" => list_compress_depth: i32 = 0,
        int(0, INT_MAX), MUTABLE, Never("list nodes are not compressed"), "How many nodes at each end of a list stay uncompressed; 0 compresses none.";
    "set-max-intset-entries" => set_max_intset_entries: usize = 512,
        int(0, LONG_MAX), MUTABLE, Acts, "The most members of an all-integer set kept as an intset.";
    "set-max-listpack-entries" => set_max_listpack_entries: usize = 128,
        int(0, LONG_MAX), MUTABLE, Acts, "The most members of a set kept as a listpack.";
    "set-max-listpack-value" => set_max_listpack_value: usize = 64,
        int(0, LONG_MAX), MUTABLE, Acts, "The longest member of a set kept as a listpack, in bytes.";
    "zset-max-listpack-entries" / "zset-max-ziplist-entries" => zset_max_listpack_entries: usize = 128,
        int(0, LONG_MAX), MUTABLE, Acts, "The most members of a sorted set kept as a listpack.";
    "zset-max-listpack-value" / "zset-max-ziplist-value" => zset_max_listpack_value: usize = 64,
        memory(0, LONG_MAX), MUTABLE, Acts, "The longest member of a sorted set kept as a listpack, in bytes.";
    "hll-sparse-max-bytes" => hll_sparse_max_bytes: usize = 3000,
        memory(0, LONG_MAX), MUTABLE, Acts, "The largest sparse HyperLogLog, in bytes.";
    "stream-node-max-bytes" => stream_node_max_bytes: usize = 4096,
        memory(0, LONG_MAX), MUTABLE, Acts, "The largest node of a stream, in bytes.";
    "stream-node-max-entries" => stream_node_max_entries: i64 = 100,
        int(0, LLONG_MAX), MUTABLE, Acts, "The most entries in a node of a stream.";
    // Observation.
    "slowlog-log-slower-than" => slowlog_log_slower_than: i64 = 10_000,
        int(-1, LLONG_MAX), MUTABLE, Acts, "Microseconds from which a command is remembered as slow; -1 is never.";
    "slowlog-max-len" => slowlog_max_len: i64 = 128,
        int(0, LONG_MAX), MUTABLE, Acts, "How many slow commands are remembered.";
    "latency-monitor-threshold" => latency_monitor_threshold: i64 = 0,
        int(0, LLONG_MAX), MUTABLE, Acts, "Milliseconds from which an event is remembered; 0 is off.";
    "latency-tracking" => latency_tracking: bool = true,
        BOOL, MUTABLE, Acts, "Keep a histogram of times for each command.";
    "latency-tracking-info-percentiles" => latency_tracking_info_percentiles: Vec<f64> = vec![50.0, 99.0, 99.9],
        Kind::Percentiles, MUTABLE, Acts, "The percentiles that INFO latencystats shows.";
    "notify-keyspace-events" => notify_keyspace_events: EventClasses = EventClasses::default(),
        Kind::Events, MUTABLE, Acts, "The classes of key events that are published.";
    "busy-reply-threshold" / "lua-time-limit" => busy_reply_threshold: i64 = 5000,
        int(0, LONG_MAX), MUTABLE, Acts, "Milliseconds after which other clients are told that a script is running.";
    "script-memory-limit" => script_memory_limit: u64 = 128 << 20,
        memory(0, ULLONG_MAX), MUTABLE, Acts, "The most memory that a script's interpreter may use; each worker has one. 0 is no limit.";
    "script-undeclared-keys" => script_undeclared_keys: bool = true,
        BOOL, MUTABLE, Acts, "Let scripts use keys that they did not declare, which makes them run one at a time; no: an error.";
    // Durability.
    "dir" => dir: Vec<u8> = working_directory(),
        Kind::Directory, PROTECTED.and(DENIED_WHILE_LOADING), Acts, "The working directory.";
    "dbfilename" => dbfilename: Vec<u8> = text("dump.rdb"),
        checked(checks::snapshot_file_name), PROTECTED, Acts, "The file of the snapshot.";
    "save" => save: Vec<SavePoint> = default_save_points(),
        Kind::SavePoints, MUTABLE, Acts, "When snapshots are written.";
    "stop-writes-on-bgsave-error" => stop_writes_on_bgsave_error: bool = true,
        BOOL, MUTABLE, Acts, "Refuse writes after a snapshot failed.";
    "rdbcompression" => rdbcompression: bool = true,
        BOOL, MUTABLE, Acts, "Compress strings in snapshots.";
    "rdbchecksum" => rdbchecksum: bool = true,
        BOOL, FIXED, Acts, "Put a checksum at the end of snapshots.";
    "rdb-version" => rdb_version: i32 = 11,
        int(10, 11), MUTABLE, Acts, "The version of the format of snapshots: 11 is for Redis 7.2, 10 for 7.0 too.";
    "rdb-del-sync-files" => rdb_del_sync_files: bool = false,
        BOOL, MUTABLE, Acts, "Remove snapshots that only served replication.";
    "rdb-save-incremental-fsync" => rdb_save_incremental_fsync: bool = true,
        BOOL, MUTABLE, Acts, "Force a snapshot to disk in pieces while it is written.";
    "rdb-key-save-delay" => rdb_key_save_delay: i32 = 0,
        int(INT_MIN, INT_MAX), HIDDEN, Acts, "Microseconds to wait after each saved key, for tests.";
    "key-load-delay" => key_load_delay: i32 = 0,
        int(INT_MIN, INT_MAX), HIDDEN, Acts, "Microseconds to wait after each loaded key, for tests.";
    "loading-process-events-interval-bytes" => loading_process_events_interval_bytes: i64 = 2 << 20,
        int(1024, INT_MAX), HIDDEN, Never("loading has threads of its own, and the network is always looked at"), "Bytes between two looks at the network while loading.";
    "sanitize-dump-payload" => sanitize_dump_payload: SanitizeDumpPayload = SanitizeDumpPayload::No,
        Kind::Enum(SanitizeDumpPayload::WORDS), MUTABLE, Acts, "Whose serialized values are checked in depth; those from clients always are.";
    "appendonly" => appendonly: bool = false,
        BOOL, DENIED_WHILE_LOADING, Acts, "Keep a log of changes.";
    "appendfilename" => appendfilename: Vec<u8> = text("appendonly.aof"),
        checked(checks::append_file_name), FIXED, Acts, "The base name of the log of changes.";
    "appenddirname" => appenddirname: Vec<u8> = text("appendonlydir"),
        checked(checks::append_directory_name), FIXED, Acts, "The directory of the log of changes.";
    "appendfsync" => appendfsync: AppendFsync = AppendFsync::Everysec,
        Kind::Enum(AppendFsync::WORDS), MUTABLE, Acts, "When the log of changes is forced to disk.";
    "no-appendfsync-on-rewrite" => no_appendfsync_on_rewrite: bool = false,
        BOOL, MUTABLE, Acts, "Do not force the log to disk while it is rewritten.";
    "auto-aof-rewrite-percentage" => auto_aof_rewrite_percentage: i32 = 100,
        int(0, INT_MAX), MUTABLE, Acts, "Growth of the log after which it is rewritten, in percent.";
    "auto-aof-rewrite-min-size" => auto_aof_rewrite_min_size: i64 = 64 << 20,
        memory(0, LLONG_MAX), MUTABLE, Acts, "The size below which the log is not rewritten, in bytes.";
    "aof-load-truncated" => aof_load_truncated: bool = true,
        BOOL, MUTABLE, Acts, "Load a log whose end is cut off.";
    "aof-use-rdb-preamble" => aof_use_rdb_preamble: bool = true,
        BOOL, MUTABLE, Acts, "Let a rewritten log begin with a snapshot.";
    "aof-timestamp-enabled" => aof_timestamp_enabled: bool = false,
        BOOL, MUTABLE, Acts, "Put times into the log, to go back to one.";
    "aof-rewrite-incremental-fsync" => aof_rewrite_incremental_fsync: bool = true,
        BOOL, MUTABLE, Acts, "Force a rewritten log to disk in pieces.";
    "aof-disable-auto-gc" => aof_disable_auto_gc: bool = false,
        BOOL, HIDDEN, Acts, "Keep files of the log that are no longer needed.";
    "aof-stalled-buffer-limit" => aof_stalled_buffer_limit: u64 = 256 << 20,
        memory(0, ULLONG_MAX), MUTABLE, Acts, "Bytes of changes that may wait for a disk that has stalled before writes wait, too.";
    // Replication.
    "replicaof" / "slaveof" => replicaof: Option<PrimaryAddress> = None,
        Kind::Primary, FIXED, Acts, "The server to follow.";
    "masterauth" => masterauth: Vec<u8> = text(""),
        UNSET_TEXT, SECRET, Acts, "The password at the server that is followed.";
    "masteruser" => masteruser: Vec<u8> = text(""),
        UNSET_TEXT, SECRET, Acts, "The user at the server that is followed.";
    "replica-serve-stale-data" / "slave-serve-stale-data" => replica_serve_stale_data: bool = true,
        BOOL, MUTABLE, Acts, "Answer from old data while the primary is out of reach.";
    "replica-read-only" / "slave-read-only" => replica_read_only: bool = true,
        BOOL, MUTABLE, Acts, "Refuse writes on a replica.";
    "replica-lazy-flush" / "slave-lazy-flush" => replica_lazy_flush: bool = false,
        BOOL, MUTABLE, Never("a flush always frees in steps that hold nobody up"), "Empty a replica in the background before it loads.";
    "replica-ignore-maxmemory" / "slave-ignore-maxmemory" => replica_ignore_maxmemory: bool = true,
        BOOL, MUTABLE, Acts, "Leave eviction to the primary.";
    "replica-ignore-disk-write-errors" => replica_ignore_disk_write_errors: bool = false,
        BOOL, MUTABLE, Acts, "Let a replica go on when it cannot write to disk.";
    "replica-priority" / "slave-priority" => replica_priority: i32 = 100,
        int(0, INT_MAX), MUTABLE, Acts, "The rank of a replica when a new primary is chosen; 0 is never.";
    "replica-announced" => replica_announced: bool = true,
        BOOL, MUTABLE, Acts, "List this replica to those who ask the primary's watchers.";
    "replica-announce-ip" / "slave-announce-ip" => replica_announce_ip: Vec<u8> = text(""),
        UNSET_TEXT, MUTABLE, Acts, "The address that a replica tells its primary.";
    "replica-announce-port" / "slave-announce-port" => replica_announce_port: u16 = 0,
        int(0, 65535), MUTABLE, Acts, "The port that a replica tells its primary.";
    "repl-diskless-sync" => repl_diskless_sync: bool = true,
        BOOL, MUTABLE, Acts, "Send a snapshot to replicas without a file.";
    "repl-diskless-sync-delay" => repl_diskless_sync_delay: i32 = 5,
        int(0, INT_MAX), MUTABLE, Acts, "Seconds to wait for more replicas before a snapshot is sent.";
    "repl-diskless-sync-max-replicas" => repl_diskless_sync_max_replicas: i32 = 0,
        int(0, INT_MAX), MUTABLE, Acts, "The number of replicas that ends the wait; 0 is none.";
    "repl-diskless-load" => repl_diskless_load: ReplDisklessLoad = ReplDisklessLoad::Disabled,
        Kind::Enum(ReplDisklessLoad::WORDS), DENIED_WHILE_LOADING, Acts, "Whether a replica loads straight from the connection.";
    "repl-ping-replica-period" / "repl-ping-slave-period" => repl_ping_replica_period: i32 = 10,
        int(1, INT_MAX), MUTABLE, Acts, "Seconds between PINGs to replicas.";
    "repl-timeout" => repl_timeout: i32 = 60,
        int(1, INT_MAX), MUTABLE, Acts, "Seconds of silence after which the other side counts as gone.";
    "repl-disable-tcp-nodelay" => repl_disable_tcp_nodelay: bool = false,
        BOOL, MUTABLE, Acts, "Prefer fewer packets to replicas over less delay.";
    "repl-backlog-size" => repl_backlog_size: i64 = 1 << 20,
        memory(1, LLONG_MAX), MUTABLE, Acts, "The bytes of recent changes kept for replicas that come back.";
    "repl-backlog-ttl" => repl_backlog_ttl: i64 = 3600,
        int(0, LONG_MAX), MUTABLE, Acts, "Seconds that recent changes are kept without any replica; 0 is for ever.";
    "min-replicas-to-write" / "min-slaves-to-write" => min_replicas_to_write: i32 = 0,
        int(0, INT_MAX), MUTABLE, Acts, "Replicas that must be there for writes to be accepted.";
    "min-replicas-max-lag" / "min-slaves-max-lag" => min_replicas_max_lag: i32 = 10,
        int(0, INT_MAX), MUTABLE, Acts, "Seconds within which such a replica must have been heard.";
    "propagation-error-behavior" => propagation_error_behavior: PropagationErrorBehavior = PropagationErrorBehavior::Ignore,
        Kind::Enum(PropagationErrorBehavior::WORDS), MUTABLE, Acts, "What follows when a replicated command fails.";
    // Cluster.
    "cluster-enabled" => cluster_enabled: bool = false,
        BOOL, FIXED, Later(Work::Cluster), "Be a node of a Redis Cluster.";
    "cluster-config-file" => cluster_config_file: Vec<u8> = text("nodes.conf"),
        TEXT, FIXED, Acts, "The file in which a member of a cluster keeps that it is one.";
    "cluster-node-timeout" => cluster_node_timeout: i64 = 15_000,
        int(0, LLONG_MAX), MUTABLE, Later(Work::Cluster), "Milliseconds of silence after which a node counts as failed.";
    "cluster-ping-interval" => cluster_ping_interval: i64 = 0,
        int(0, LLONG_MAX), HIDDEN, Later(Work::Cluster), "Milliseconds between pings of nodes, for tests.";
    "cluster-port" => cluster_port: u16 = 0,
        int(0, 65535), FIXED, Later(Work::Cluster), "The port of the bus between nodes; 0 is the port plus 10000.";
    "cluster-announce-ip" => cluster_announce_ip: Vec<u8> = text(""),
        UNSET_TEXT, MUTABLE, Acts, "The address that a node tells others.";
    "cluster-announce-hostname" => cluster_announce_hostname: Vec<u8> = text(""),
        CHECKED_HOST_NAME, MUTABLE, Later(Work::Cluster), "The host name that a node tells others.";
    "cluster-announce-human-nodename" => cluster_announce_human_nodename: Vec<u8> = text(""),
        CHECKED_NODE_NAME, MUTABLE, Later(Work::Cluster), "The name of a node in logs.";
    "cluster-announce-port" => cluster_announce_port: u16 = 0,
        int(0, 65535), MUTABLE, Acts, "The port for clients that a node tells others.";
    "cluster-announce-tls-port" => cluster_announce_tls_port: u16 = 0,
        int(0, 65535), MUTABLE, Later(Work::Cluster), "The TLS port for clients that a node tells others.";
    "cluster-announce-bus-port" => cluster_announce_bus_port: u16 = 0,
        int(0, 65535), MUTABLE, Later(Work::Cluster), "The bus port that a node tells others.";
    "cluster-preferred-endpoint-type" => cluster_preferred_endpoint_type: ClusterEndpointType = ClusterEndpointType::Ip,
        Kind::Enum(ClusterEndpointType::WORDS), MUTABLE, Later(Work::Cluster), "How nodes are named to clients.";
    "cluster-replica-validity-factor" / "cluster-slave-validity-factor" => cluster_replica_validity_factor: i32 = 10,
        int(0, INT_MAX), MUTABLE, Later(Work::Cluster), "How old a replica's data may be for it to take over, in node timeouts.";
    "cluster-replica-no-failover" / "cluster-slave-no-failover" => cluster_replica_no_failover: bool = false,
        BOOL, MUTABLE, Later(Work::Cluster), "Never take over by itself.";
    "cluster-migration-barrier" => cluster_migration_barrier: i32 = 1,
        int(0, INT_MAX), MUTABLE, Later(Work::Cluster), "Replicas a primary keeps when one moves to another primary.";
    "cluster-allow-replica-migration" => cluster_allow_replica_migration: bool = true,
        BOOL, MUTABLE, Later(Work::Cluster), "Let replicas move to primaries without any.";
    "cluster-require-full-coverage" => cluster_require_full_coverage: bool = true,
        BOOL, MUTABLE, Acts, "Refuse queries while any slot is uncovered.";
    "cluster-allow-reads-when-down" => cluster_allow_reads_when_down: bool = false,
        BOOL, MUTABLE, Acts, "Answer reads while the cluster is down.";
    "cluster-allow-pubsubshard-when-down" => cluster_allow_pubsubshard_when_down: bool = true,
        BOOL, MUTABLE, Acts, "Pass on shard messages while the cluster is down.";
    "cluster-link-sendbuf-limit" => cluster_link_sendbuf_limit: u64 = 0,
        memory(0, ULLONG_MAX), MUTABLE, Later(Work::Cluster), "The most bytes that may wait for one node, 0 is no limit.";
    // TLS.
    "tls-port" => tls_port: u16 = 0,
        int(0, 65535), MUTABLE, Acts, "The TCP port of encrypted connections; 0 is none.";
    "tls-cert-file" => tls_cert_file: Vec<u8> = text(""),
        UNSET_TEXT, RELOADS, Acts, "The certificate.";
    "tls-key-file" => tls_key_file: Vec<u8> = text(""),
        UNSET_TEXT, RELOADS, Acts, "The key of the certificate.";
    "tls-key-file-pass" => tls_key_file_pass: Vec<u8> = text(""),
        UNSET_TEXT, SECRET, Acts, "The password of the key.";
    "tls-client-cert-file" => tls_client_cert_file: Vec<u8> = text(""),
        UNSET_TEXT, RELOADS, Acts, "The certificate for connections to other servers.";
    "tls-client-key-file" => tls_client_key_file: Vec<u8> = text(""),
        UNSET_TEXT, RELOADS, Acts, "The key for connections to other servers.";
    "tls-client-key-file-pass" => tls_client_key_file_pass: Vec<u8> = text(""),
        UNSET_TEXT, SECRET, Acts, "The password of that key.";
    "tls-dh-params-file" => tls_dh_params_file: Vec<u8> = text(""),
        UNSET_TEXT, RELOADS, Acts, "Parameters of the Diffie-Hellman exchange; refused, the exchange is by elliptic curves.";
    "tls-ca-cert-file" => tls_ca_cert_file: Vec<u8> = text(""),
        UNSET_TEXT, RELOADS, Acts, "The certificates of trusted authorities, in one file.";
    "tls-ca-cert-dir" => tls_ca_cert_dir: Vec<u8> = text(""),
        UNSET_TEXT, RELOADS, Acts, "The certificates of trusted authorities, in a directory.";
    "tls-auth-clients" => tls_auth_clients: TlsAuthClients = TlsAuthClients::Yes,
        Kind::Enum(TlsAuthClients::WORDS), MUTABLE, Acts, "Whether clients must show a certificate.";
    "tls-replication" => tls_replication: bool = false,
        BOOL, MUTABLE, Acts, "Encrypt replication.";
    "tls-cluster" => tls_cluster: bool = false,
        BOOL, MUTABLE, Acts, "Encrypt the connections between members of a cluster.";
    "tls-protocols" => tls_protocols: Vec<u8> = text(""),
        UNSET_TEXT, MUTABLE, Acts, "The versions of TLS that are allowed, of TLSv1.2 and TLSv1.3.";
    "tls-ciphers" => tls_ciphers: Vec<u8> = text(""),
        UNSET_TEXT, MUTABLE, Acts, "The ciphers of TLS 1.2, by OpenSSL's names; what is not supported is refused.";
    "tls-ciphersuites" => tls_ciphersuites: Vec<u8> = text(""),
        UNSET_TEXT, MUTABLE, Acts, "The ciphers of TLS 1.3.";
    "tls-prefer-server-ciphers" => tls_prefer_server_ciphers: bool = false,
        BOOL, MUTABLE, Acts, "Prefer our order of ciphers to the client's.";
    "tls-session-caching" => tls_session_caching: bool = true,
        BOOL, MUTABLE, Acts, "Remember sessions so that clients reconnect faster.";
    "tls-session-cache-size" => tls_session_cache_size: i32 = 20 * 1024,
        int(0, INT_MAX), MUTABLE, Acts, "How many sessions are remembered; 0 is no limit.";
    "tls-session-cache-timeout" => tls_session_cache_timeout: i32 = 300,
        int(0, INT_MAX), MUTABLE, Acts, "Seconds that a session is remembered.";
}

/// Directives that only a file or the command line may hold, with what they do. They are not values
/// but statements, so CONFIG GET and SET do not know them.
pub static STATEMENTS: &[(&str, Applies, &str)] = &[
    ("include", Acts, "Read another file, or all files that match a pattern, at this place."),
    ("rename-command", Acts, "Give a command another name, or take it away with an empty one."),
    ("user", Acts, "Declare a user with a password and rights."),
    ("loadmodule", Never("there are no loadable modules; the server refuses to start"), "Load a module."),
];

/// Directives of older versions that Redis 7.2 still accepts and ignores, each with one argument.
pub(super) const RETIRED: [&str; 3] = ["list-max-ziplist-entries", "list-max-ziplist-value", "lua-replicate-commands"];
