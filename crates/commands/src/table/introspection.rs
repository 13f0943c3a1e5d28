//! What the server tells of itself: COMMAND, INFO, LATENCY, MEMORY, MONITOR, SLOWLOG and others.

use super::id::CommandId::{
    Command, CommandCount, CommandDocs, CommandGetkeys, CommandGetkeysandflags, CommandHelp,
    CommandInfo, CommandList, Dbsize, Debug, Info, Lastsave, Latency, LatencyDoctor, LatencyGraph,
    LatencyHelp, LatencyHistogram, LatencyHistory, LatencyLatest, LatencyReset, Lolwut, Memory,
    MemoryDoctor, MemoryHelp, MemoryMallocStats, MemoryPurge, MemoryStats, MemoryUsage, Monitor,
    Role, Slowlog, SlowlogGet, SlowlogHelp, SlowlogLen, SlowlogReset, Time,
};
use super::row::category::{CONNECTION, DANGEROUS, IMPLIED, KEYSPACE};
use super::row::flag::{
    ADMIN, FAST, LOADING, NONE, NOSCRIPT, PROTECTED, READONLY, SENTINEL, STALE,
};
use super::row::usage::RO;
use super::row::{category, key, row};
use super::spec::CommandSpec;

pub(super) static ROWS: [CommandSpec; 12] = [
    row(
        Command,
        "command",
        -1,
        LOADING | STALE | SENTINEL,
        CONNECTION,
    )
    .tips(&["nondeterministic_output_order"])
    .subcommands(&[
        row(
            CommandCount,
            "command|count",
            2,
            LOADING | STALE | SENTINEL,
            CONNECTION,
        ),
        row(
            CommandDocs,
            "command|docs",
            -2,
            LOADING | STALE | SENTINEL,
            CONNECTION,
        )
        .tips(&["nondeterministic_output_order"]),
        row(
            CommandGetkeys,
            "command|getkeys",
            -3,
            LOADING | STALE | SENTINEL,
            CONNECTION,
        ),
        row(
            CommandGetkeysandflags,
            "command|getkeysandflags",
            -3,
            LOADING | STALE | SENTINEL,
            CONNECTION,
        ),
        row(
            CommandHelp,
            "command|help",
            2,
            LOADING | STALE | SENTINEL,
            CONNECTION,
        ),
        row(
            CommandInfo,
            "command|info",
            -2,
            LOADING | STALE | SENTINEL,
            CONNECTION,
        )
        .tips(&["nondeterministic_output_order"]),
        row(
            CommandList,
            "command|list",
            -2,
            LOADING | STALE | SENTINEL,
            CONNECTION,
        )
        .tips(&["nondeterministic_output_order"]),
    ]),
    row(Dbsize, "dbsize", 1, READONLY | FAST, KEYSPACE)
        .tips(&["request_policy:all_shards", "response_policy:agg_sum"]),
    row(
        Debug,
        "debug",
        -2,
        ADMIN | NOSCRIPT | LOADING | STALE | PROTECTED,
        IMPLIED,
    ),
    row(Info, "info", -1, LOADING | STALE | SENTINEL, DANGEROUS).tips(&[
        "nondeterministic_output",
        "request_policy:all_shards",
        "response_policy:special",
    ]),
    row(
        Lastsave,
        "lastsave",
        1,
        LOADING | STALE | FAST,
        category::ADMIN | DANGEROUS,
    )
    .tips(&["nondeterministic_output"]),
    row(Latency, "latency", -2, NONE, IMPLIED).subcommands(&[
        row(
            LatencyDoctor,
            "latency|doctor",
            2,
            ADMIN | NOSCRIPT | LOADING | STALE,
            IMPLIED,
        )
        .tips(&[
            "nondeterministic_output",
            "request_policy:all_nodes",
            "response_policy:special",
        ]),
        row(
            LatencyGraph,
            "latency|graph",
            3,
            ADMIN | NOSCRIPT | LOADING | STALE,
            IMPLIED,
        )
        .tips(&[
            "nondeterministic_output",
            "request_policy:all_nodes",
            "response_policy:special",
        ]),
        row(LatencyHelp, "latency|help", 2, LOADING | STALE, IMPLIED),
        row(
            LatencyHistogram,
            "latency|histogram",
            -2,
            ADMIN | NOSCRIPT | LOADING | STALE,
            IMPLIED,
        )
        .tips(&[
            "nondeterministic_output",
            "request_policy:all_nodes",
            "response_policy:special",
        ]),
        row(
            LatencyHistory,
            "latency|history",
            3,
            ADMIN | NOSCRIPT | LOADING | STALE,
            IMPLIED,
        )
        .tips(&[
            "nondeterministic_output",
            "request_policy:all_nodes",
            "response_policy:special",
        ]),
        row(
            LatencyLatest,
            "latency|latest",
            2,
            ADMIN | NOSCRIPT | LOADING | STALE,
            IMPLIED,
        )
        .tips(&[
            "nondeterministic_output",
            "request_policy:all_nodes",
            "response_policy:special",
        ]),
        row(
            LatencyReset,
            "latency|reset",
            -2,
            ADMIN | NOSCRIPT | LOADING | STALE,
            IMPLIED,
        )
        .tips(&["request_policy:all_nodes", "response_policy:agg_sum"]),
    ]),
    row(Lolwut, "lolwut", -1, READONLY | FAST, IMPLIED),
    row(Memory, "memory", -2, NONE, IMPLIED).subcommands(&[
        row(MemoryDoctor, "memory|doctor", 2, NONE, IMPLIED).tips(&[
            "nondeterministic_output",
            "request_policy:all_shards",
            "response_policy:special",
        ]),
        row(MemoryHelp, "memory|help", 2, LOADING | STALE, IMPLIED),
        row(MemoryMallocStats, "memory|malloc-stats", 2, NONE, IMPLIED).tips(&[
            "nondeterministic_output",
            "request_policy:all_shards",
            "response_policy:special",
        ]),
        row(MemoryPurge, "memory|purge", 2, NONE, IMPLIED)
            .tips(&["request_policy:all_shards", "response_policy:all_succeeded"]),
        row(MemoryStats, "memory|stats", 2, NONE, IMPLIED).tips(&[
            "nondeterministic_output",
            "request_policy:all_shards",
            "response_policy:special",
        ]),
        row(MemoryUsage, "memory|usage", -3, READONLY, IMPLIED).keys(&[key(2, RO)]),
    ]),
    row(
        Monitor,
        "monitor",
        1,
        ADMIN | NOSCRIPT | LOADING | STALE,
        IMPLIED,
    ),
    row(
        Role,
        "role",
        1,
        NOSCRIPT | LOADING | STALE | FAST | SENTINEL,
        category::ADMIN | DANGEROUS,
    ),
    row(Slowlog, "slowlog", -2, NONE, IMPLIED).subcommands(&[
        row(
            SlowlogGet,
            "slowlog|get",
            -2,
            ADMIN | LOADING | STALE,
            IMPLIED,
        )
        .tips(&["request_policy:all_nodes", "nondeterministic_output"]),
        row(SlowlogHelp, "slowlog|help", 2, LOADING | STALE, IMPLIED),
        row(
            SlowlogLen,
            "slowlog|len",
            2,
            ADMIN | LOADING | STALE,
            IMPLIED,
        )
        .tips(&[
            "request_policy:all_nodes",
            "response_policy:agg_sum",
            "nondeterministic_output",
        ]),
        row(
            SlowlogReset,
            "slowlog|reset",
            2,
            ADMIN | LOADING | STALE,
            IMPLIED,
        )
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]),
    ]),
    row(Time, "time", 1, LOADING | STALE | FAST, IMPLIED).tips(&["nondeterministic_output"]),
];
