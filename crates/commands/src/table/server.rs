//! The server: persistence, replication, configuration, modules.

use super::id::CommandId::{
    Bgrewriteaof, Bgsave, Config, ConfigGet, ConfigHelp, ConfigResetstat, ConfigRewrite, ConfigSet,
    Failover, Flushall, Flushdb, Module, ModuleHelp, ModuleList, ModuleLoad, ModuleLoadex,
    ModuleUnload, Psync, Replconf, Replicaof, RestoreAsking, Save, Shutdown, Slaveof, Swapdb, Sync,
};
use super::row::category::{DANGEROUS, IMPLIED, KEYSPACE};
use super::row::flag::{
    ADMIN, ALLOW_BUSY, ASKING, DENYOOM, FAST, LOADING, NO_ASYNC_LOADING, NO_MULTI, NONE, NOSCRIPT,
    PROTECTED, SENTINEL, STALE, WRITE,
};
use super::row::usage::{OW, UPDATE};
use super::row::{key, row};
use super::spec::CommandSpec;

pub(super) static ROWS: [CommandSpec; 16] = [
    row(
        Bgrewriteaof,
        "bgrewriteaof",
        1,
        NO_ASYNC_LOADING | ADMIN | NOSCRIPT,
        IMPLIED,
    ),
    row(
        Bgsave,
        "bgsave",
        -1,
        NO_ASYNC_LOADING | ADMIN | NOSCRIPT,
        IMPLIED,
    ),
    row(Config, "config", -2, NONE, IMPLIED).subcommands(&[
        row(
            ConfigGet,
            "config|get",
            -3,
            ADMIN | NOSCRIPT | LOADING | STALE,
            IMPLIED,
        ),
        row(ConfigHelp, "config|help", 2, LOADING | STALE, IMPLIED),
        row(
            ConfigResetstat,
            "config|resetstat",
            2,
            ADMIN | NOSCRIPT | LOADING | STALE,
            IMPLIED,
        )
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]),
        row(
            ConfigRewrite,
            "config|rewrite",
            2,
            ADMIN | NOSCRIPT | LOADING | STALE,
            IMPLIED,
        )
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]),
        row(
            ConfigSet,
            "config|set",
            -4,
            ADMIN | NOSCRIPT | LOADING | STALE,
            IMPLIED,
        )
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]),
    ]),
    row(Failover, "failover", -1, ADMIN | NOSCRIPT | STALE, IMPLIED),
    row(Flushall, "flushall", -1, WRITE, KEYSPACE | DANGEROUS)
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"]),
    row(Flushdb, "flushdb", -1, WRITE, KEYSPACE | DANGEROUS)
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"]),
    row(Module, "module", -2, NONE, IMPLIED).subcommands(&[
        row(ModuleHelp, "module|help", 2, LOADING | STALE, IMPLIED),
        row(ModuleList, "module|list", 2, ADMIN | NOSCRIPT, IMPLIED)
            .tips(&["nondeterministic_output_order"]),
        row(
            ModuleLoad,
            "module|load",
            -3,
            NO_ASYNC_LOADING | ADMIN | NOSCRIPT | PROTECTED,
            IMPLIED,
        ),
        row(
            ModuleLoadex,
            "module|loadex",
            -3,
            NO_ASYNC_LOADING | ADMIN | NOSCRIPT | PROTECTED,
            IMPLIED,
        ),
        row(
            ModuleUnload,
            "module|unload",
            3,
            NO_ASYNC_LOADING | ADMIN | NOSCRIPT | PROTECTED,
            IMPLIED,
        ),
    ]),
    row(
        Psync,
        "psync",
        -3,
        NO_ASYNC_LOADING | ADMIN | NO_MULTI | NOSCRIPT,
        IMPLIED,
    ),
    row(
        Replconf,
        "replconf",
        -1,
        ADMIN | NOSCRIPT | LOADING | STALE | ALLOW_BUSY,
        IMPLIED,
    ),
    row(
        Replicaof,
        "replicaof",
        3,
        NO_ASYNC_LOADING | ADMIN | NOSCRIPT | STALE,
        IMPLIED,
    ),
    row(
        RestoreAsking,
        "restore-asking",
        -4,
        WRITE | DENYOOM | ASKING,
        KEYSPACE | DANGEROUS,
    )
    .keys(&[key(1, OW | UPDATE)]),
    row(
        Save,
        "save",
        1,
        NO_ASYNC_LOADING | ADMIN | NOSCRIPT | NO_MULTI,
        IMPLIED,
    ),
    row(
        Shutdown,
        "shutdown",
        -1,
        ADMIN | NOSCRIPT | LOADING | STALE | NO_MULTI | SENTINEL | ALLOW_BUSY,
        IMPLIED,
    ),
    row(
        Slaveof,
        "slaveof",
        3,
        NO_ASYNC_LOADING | ADMIN | NOSCRIPT | STALE,
        IMPLIED,
    ),
    row(Swapdb, "swapdb", 3, WRITE | FAST, KEYSPACE | DANGEROUS),
    row(
        Sync,
        "sync",
        1,
        NO_ASYNC_LOADING | ADMIN | NO_MULTI | NOSCRIPT,
        IMPLIED,
    ),
];
