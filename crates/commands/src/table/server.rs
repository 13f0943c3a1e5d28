//! The server: persistence, replication, configuration, modules.

use super::docs::{Group, block, docs, integer, key_argument, one_of, string, token};
use super::id::CommandId::{
    Bgrewriteaof, Bgsave, Config, ConfigGet, ConfigHelp, ConfigResetstat, ConfigRewrite, ConfigSet, Failover, Flushall,
    Flushdb, Module, ModuleHelp, ModuleList, ModuleLoad, ModuleLoadex, ModuleUnload, Psync, Replconf, Replicaof,
    RestoreAsking, Save, Shutdown, Slaveof, Swapdb, Sync,
};
use super::row::category::{DANGEROUS, IMPLIED, KEYSPACE};
use super::row::flag::{
    ADMIN, ALLOW_BUSY, ASKING, DENYOOM, FAST, LOADING, NO_ASYNC_LOADING, NO_MULTI, NONE, NOSCRIPT, PROTECTED, SENTINEL,
    STALE, WRITE,
};
use super::row::usage::{OW, UPDATE};
use super::row::{key, row};
use super::spec::CommandSpec;

pub(super) static ROWS: [CommandSpec; 16] = [
    row(Bgrewriteaof, "bgrewriteaof", 1, NO_ASYNC_LOADING | ADMIN | NOSCRIPT, IMPLIED).docs(&docs(
        Group::Server,
        "1.0.0",
        "O(1)",
        "Rewrites the append-only file in the background.",
    )),
    row(Bgsave, "bgsave", -1, NO_ASYNC_LOADING | ADMIN | NOSCRIPT, IMPLIED).docs(
        &docs(Group::Server, "1.0.0", "O(1)", "Writes an RDB file in the background.")
            .history(&[("3.2.2", "`SCHEDULE`.")])
            .arguments(&[token("schedule", "SCHEDULE").since("3.2.2").optional()]),
    ),
    row(Config, "config", -2, NONE, IMPLIED)
        .docs(&docs(Group::Server, "2.0.0", "That of the subcommand.", "Looks at and changes the configuration."))
        .subcommands(&[
            row(ConfigGet, "config|get", -3, ADMIN | NOSCRIPT | LOADING | STALE, IMPLIED).docs(
                &docs(
                    Group::Server,
                    "2.0.0",
                    "O(N), N: parameters.",
                    "Shows configuration parameters that match patterns.",
                )
                .history(&[("7.0.0", "Takes several patterns.")])
                .arguments(&[string("parameter").multiple()]),
            ),
            row(ConfigHelp, "config|help", 2, LOADING | STALE, IMPLIED).docs(&docs(
                Group::Server,
                "5.0.0",
                "O(1)",
                "Explains the subcommands.",
            )),
            row(ConfigResetstat, "config|resetstat", 2, ADMIN | NOSCRIPT | LOADING | STALE, IMPLIED)
                .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
                .docs(&docs(Group::Server, "2.0.0", "O(1)", "Sets the statistics of INFO back to zero.")),
            row(ConfigRewrite, "config|rewrite", 2, ADMIN | NOSCRIPT | LOADING | STALE, IMPLIED)
                .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
                .docs(&docs(
                    Group::Server,
                    "2.8.0",
                    "O(1)",
                    "Brings the configuration file in line with the running configuration.",
                )),
            row(ConfigSet, "config|set", -4, ADMIN | NOSCRIPT | LOADING | STALE, IMPLIED)
                .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
                .docs(
                    &docs(
                        Group::Server,
                        "2.0.0",
                        "O(N), N: parameters.",
                        "Changes configuration parameters of the running server.",
                    )
                    .history(&[("7.0.0", "Takes several parameters.")])
                    .arguments(&[block("data", &[string("parameter"), string("value")]).multiple()]),
                ),
        ]),
    row(Failover, "failover", -1, ADMIN | NOSCRIPT | STALE, IMPLIED).docs(
        &docs(Group::Server, "6.2.0", "O(1)", "Hands the role of primary over to a replica.").arguments(&[
            block("target", &[string("host"), integer("port"), token("force", "FORCE").optional()])
                .after("TO")
                .optional(),
            token("abort", "ABORT").optional(),
            integer("milliseconds").after("TIMEOUT").optional(),
        ]),
    ),
    row(Flushall, "flushall", -1, WRITE, KEYSPACE | DANGEROUS)
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
        .docs(
            &docs(Group::Server, "1.0.0", "O(N), N: keys of all databases.", "Removes all keys of all databases.")
                .history(&[("4.0.0", "`ASYNC`."), ("6.2.0", "`SYNC`.")])
                .arguments(&[one_of(
                    "flush-type",
                    &[token("async", "ASYNC").since("4.0.0"), token("sync", "SYNC").since("6.2.0")],
                )
                .optional()]),
        ),
    row(Flushdb, "flushdb", -1, WRITE, KEYSPACE | DANGEROUS)
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
        .docs(
            &docs(Group::Server, "1.0.0", "O(N), N: keys of the database.", "Removes all keys of this database.")
                .history(&[("4.0.0", "`ASYNC`."), ("6.2.0", "`SYNC`.")])
                .arguments(&[one_of(
                    "flush-type",
                    &[token("async", "ASYNC").since("4.0.0"), token("sync", "SYNC").since("6.2.0")],
                )
                .optional()]),
        ),
    row(Module, "module", -2, NONE, IMPLIED)
        .docs(&docs(Group::Server, "4.0.0", "That of the subcommand.", "Manages modules."))
        .subcommands(&[
            row(ModuleHelp, "module|help", 2, LOADING | STALE, IMPLIED).docs(&docs(
                Group::Server,
                "5.0.0",
                "O(1)",
                "Explains the subcommands.",
            )),
            row(ModuleList, "module|list", 2, ADMIN | NOSCRIPT, IMPLIED)
                .tips(&["nondeterministic_output_order"])
                .docs(&docs(Group::Server, "4.0.0", "O(N), N: modules.", "Lists the modules.")),
            row(ModuleLoad, "module|load", -3, NO_ASYNC_LOADING | ADMIN | NOSCRIPT | PROTECTED, IMPLIED).docs(
                &docs(Group::Server, "4.0.0", "O(1)", "Loads a module.")
                    .arguments(&[string("path"), string("arg").optional().multiple()]),
            ),
            row(ModuleLoadex, "module|loadex", -3, NO_ASYNC_LOADING | ADMIN | NOSCRIPT | PROTECTED, IMPLIED).docs(
                &docs(Group::Server, "7.0.0", "O(1)", "Loads a module with configuration parameters.").arguments(&[
                    string("path"),
                    block("configs", &[string("name"), string("value")]).after("CONFIG").optional().multiple_token(),
                    string("args").after("ARGS").optional().multiple(),
                ]),
            ),
            row(ModuleUnload, "module|unload", 3, NO_ASYNC_LOADING | ADMIN | NOSCRIPT | PROTECTED, IMPLIED)
                .docs(&docs(Group::Server, "4.0.0", "O(1)", "Unloads a module.").arguments(&[string("name")])),
        ]),
    row(Psync, "psync", -3, NO_ASYNC_LOADING | ADMIN | NO_MULTI | NOSCRIPT, IMPLIED).docs(
        &docs(Group::Server, "2.8.0", "", "Begins or resumes replication; replicas send it.")
            .arguments(&[string("replicationid"), integer("offset")]),
    ),
    row(Replconf, "replconf", -1, ADMIN | NOSCRIPT | LOADING | STALE | ALLOW_BUSY, IMPLIED)
        .docs(&docs(Group::Server, "3.0.0", "O(1)", "Carries replication's own messages; replicas send it.").system()),
    row(Replicaof, "replicaof", 3, NO_ASYNC_LOADING | ADMIN | NOSCRIPT | STALE, IMPLIED).docs(
        &docs(Group::Server, "5.0.0", "O(1)", "Makes this server a replica of another, or a primary.").arguments(&[
            one_of(
                "args",
                &[
                    block("host-port", &[string("host"), integer("port")]),
                    block("no-one", &[token("no", "NO"), token("one", "ONE")]),
                ],
            ),
        ]),
    ),
    row(RestoreAsking, "restore-asking", -4, WRITE | DENYOOM | ASKING, KEYSPACE | DANGEROUS)
        .keys(&[key(1, OW | UPDATE)])
        .docs(
            &docs(
                Group::Server,
                "3.0.0",
                "O(1) to make the key, O(N*M) to read the value, N: elements, M: \
                     their average size; O(1) for small strings, O(N*M*log(N)) for sorted \
                     sets.",
                "Makes a key from the bytes of DUMP in a slot that is being imported.",
            )
            .system()
            .history(&[("3.0.0", "`REPLACE`."), ("5.0.0", "`ABSTTL`."), ("5.0.0", "`IDLETIME` and `FREQ`.")])
            .arguments(&[
                key_argument("key", 0),
                integer("ttl"),
                string("serialized-value"),
                token("replace", "REPLACE").since("3.0.0").optional(),
                token("absttl", "ABSTTL").since("5.0.0").optional(),
                integer("seconds").after("IDLETIME").since("5.0.0").optional(),
                integer("frequency").after("FREQ").since("5.0.0").optional(),
            ]),
        ),
    row(Save, "save", 1, NO_ASYNC_LOADING | ADMIN | NOSCRIPT | NO_MULTI, IMPLIED).docs(&docs(
        Group::Server,
        "1.0.0",
        "O(N), N: keys of all databases.",
        "Writes an RDB file while all else waits.",
    )),
    row(Shutdown, "shutdown", -1, ADMIN | NOSCRIPT | LOADING | STALE | NO_MULTI | SENTINEL | ALLOW_BUSY, IMPLIED).docs(
        &docs(
            Group::Server,
            "1.0.0",
            "O(N) if it saves, N: keys of all databases; else O(1).",
            "Saves if need be and ends the server.",
        )
        .history(&[("7.0.0", "`NOW`, `FORCE` and `ABORT`.")])
        .arguments(&[
            one_of("save-selector", &[token("nosave", "NOSAVE"), token("save", "SAVE")]).optional(),
            token("now", "NOW").since("7.0.0").optional(),
            token("force", "FORCE").since("7.0.0").optional(),
            token("abort", "ABORT").since("7.0.0").optional(),
        ]),
    ),
    row(Slaveof, "slaveof", 3, NO_ASYNC_LOADING | ADMIN | NOSCRIPT | STALE, IMPLIED).docs(
        &docs(Group::Server, "1.0.0", "O(1)", "Makes this server a replica of another, or a primary.")
            .deprecated("5.0.0", "`REPLICAOF`")
            .arguments(&[one_of(
                "args",
                &[
                    block("host-port", &[string("host"), integer("port")]),
                    block("no-one", &[token("no", "NO"), token("one", "ONE")]),
                ],
            )]),
    ),
    row(Swapdb, "swapdb", 3, WRITE | FAST, KEYSPACE | DANGEROUS).docs(
        &docs(
            Group::Server,
            "4.0.0",
            "O(N), N: connections that watch or wait for keys of either database.",
            "Exchanges two databases.",
        )
        .arguments(&[integer("index1"), integer("index2")]),
    ),
    row(Sync, "sync", 1, NO_ASYNC_LOADING | ADMIN | NO_MULTI | NOSCRIPT, IMPLIED).docs(&docs(
        Group::Server,
        "1.0.0",
        "",
        "Begins replication the old way; replicas send it.",
    )),
];
