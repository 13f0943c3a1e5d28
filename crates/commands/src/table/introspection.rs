//! What the server tells of itself: COMMAND, INFO, LATENCY, MEMORY, MONITOR, SLOWLOG and others.

use super::docs::{Group, docs, integer, key_argument, one_of, pattern, string};
use super::id::CommandId::{
    Command, CommandCount, CommandDocs, CommandGetkeys, CommandGetkeysandflags, CommandHelp, CommandInfo, CommandList,
    Dbsize, Debug, Info, Lastsave, Latency, LatencyDoctor, LatencyGraph, LatencyHelp, LatencyHistogram, LatencyHistory,
    LatencyLatest, LatencyReset, Lolwut, Memory, MemoryDoctor, MemoryHelp, MemoryMallocStats, MemoryPurge, MemoryStats,
    MemoryUsage, Monitor, Role, Slowlog, SlowlogGet, SlowlogHelp, SlowlogLen, SlowlogReset, Time,
};
use super::row::category::{CONNECTION, DANGEROUS, IMPLIED, KEYSPACE};
use super::row::flag::{ADMIN, FAST, LOADING, NONE, NOSCRIPT, PROTECTED, READONLY, SENTINEL, STALE};
use super::row::usage::RO;
use super::row::{category, key, row};
use super::spec::CommandSpec;

pub(super) static ROWS: [CommandSpec; 12] = [
    row(Command, "command", -1, LOADING | STALE | SENTINEL, CONNECTION)
        .tips(&["nondeterministic_output_order"])
        .docs(&docs(Group::Server, "2.8.13", "O(N), N: commands of the server.", "Describes all commands."))
        .subcommands(&[
            row(CommandCount, "command|count", 2, LOADING | STALE | SENTINEL, CONNECTION).docs(&docs(
                Group::Server,
                "2.8.13",
                "O(1)",
                "Counts the commands.",
            )),
            row(CommandDocs, "command|docs", -2, LOADING | STALE | SENTINEL, CONNECTION)
                .tips(&["nondeterministic_output_order"])
                .docs(
                    &docs(Group::Server, "7.0.0", "O(N), N: commands asked for.", "Documents commands.")
                        .arguments(&[string("command-name").optional().multiple()]),
                ),
            row(CommandGetkeys, "command|getkeys", -3, LOADING | STALE | SENTINEL, CONNECTION).docs(
                &docs(
                    Group::Server,
                    "2.8.13",
                    "O(N), N: arguments of the command.",
                    "Shows which arguments of a command are keys.",
                )
                .arguments(&[string("command"), string("arg").optional().multiple()]),
            ),
            row(CommandGetkeysandflags, "command|getkeysandflags", -3, LOADING | STALE | SENTINEL, CONNECTION).docs(
                &docs(
                    Group::Server,
                    "7.0.0",
                    "O(N), N: arguments of the command.",
                    "Shows which arguments of a command are keys, and how it uses them.",
                )
                .arguments(&[string("command"), string("arg").optional().multiple()]),
            ),
            row(CommandHelp, "command|help", 2, LOADING | STALE | SENTINEL, CONNECTION).docs(&docs(
                Group::Server,
                "5.0.0",
                "O(1)",
                "Explains the subcommands.",
            )),
            row(CommandInfo, "command|info", -2, LOADING | STALE | SENTINEL, CONNECTION)
                .tips(&["nondeterministic_output_order"])
                .docs(
                    &docs(Group::Server, "2.8.13", "O(N), N: commands asked for.", "Describes some commands, or all.")
                        .history(&[("7.0.0", "Without names it describes all commands.")])
                        .arguments(&[string("command-name").optional().multiple()]),
                ),
            row(CommandList, "command|list", -2, LOADING | STALE | SENTINEL, CONNECTION)
                .tips(&["nondeterministic_output_order"])
                .docs(
                    &docs(Group::Server, "7.0.0", "O(N), N: commands of the server.", "Names commands.").arguments(&[
                        one_of(
                            "filterby",
                            &[
                                string("module-name").after("MODULE"),
                                string("category").after("ACLCAT"),
                                pattern("pattern").after("PATTERN"),
                            ],
                        )
                        .after("FILTERBY")
                        .optional(),
                    ]),
                ),
        ]),
    row(Dbsize, "dbsize", 1, READONLY | FAST, KEYSPACE)
        .tips(&["request_policy:all_shards", "response_policy:agg_sum"])
        .docs(&docs(Group::Server, "1.0.0", "O(1)", "Counts the keys of this database.")),
    row(Debug, "debug", -2, ADMIN | NOSCRIPT | LOADING | STALE | PROTECTED, IMPLIED).docs(
        &docs(Group::Server, "1.0.0", "That of the subcommand.", "Helps those who test and debug the server.").system(),
    ),
    row(Info, "info", -1, LOADING | STALE | SENTINEL, DANGEROUS)
        .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"])
        .docs(
            &docs(Group::Server, "1.0.0", "O(1)", "Reports state and statistics of the server.")
                .history(&[("7.0.0", "Takes several sections.")])
                .arguments(&[string("section").optional().multiple()]),
        ),
    row(Lastsave, "lastsave", 1, LOADING | STALE | FAST, category::ADMIN | DANGEROUS)
        .tips(&["nondeterministic_output"])
        .docs(&docs(Group::Server, "1.0.0", "O(1)", "Shows when the data set was last saved, in Unix time.")),
    row(Latency, "latency", -2, NONE, IMPLIED)
        .docs(&docs(Group::Server, "2.8.13", "That of the subcommand.", "Looks into slow events."))
        .subcommands(&[
            row(LatencyDoctor, "latency|doctor", 2, ADMIN | NOSCRIPT | LOADING | STALE, IMPLIED)
                .tips(&["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"])
                .docs(&docs(Group::Server, "2.8.13", "O(1)", "Explains in plain words what was slow and why.")),
            row(LatencyGraph, "latency|graph", 3, ADMIN | NOSCRIPT | LOADING | STALE, IMPLIED)
                .tips(&["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"])
                .docs(
                    &docs(Group::Server, "2.8.13", "O(1)", "Draws the latency of an event as text.")
                        .arguments(&[string("event")]),
                ),
            row(LatencyHelp, "latency|help", 2, LOADING | STALE, IMPLIED).docs(&docs(
                Group::Server,
                "2.8.13",
                "O(1)",
                "Explains the subcommands.",
            )),
            row(LatencyHistogram, "latency|histogram", -2, ADMIN | NOSCRIPT | LOADING | STALE, IMPLIED)
                .tips(&["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"])
                .docs(
                    &docs(
                        Group::Server,
                        "7.0.0",
                        "O(N), N: commands shown.",
                        "Shows how the latencies of commands are distributed.",
                    )
                    .arguments(&[string("command").optional().multiple()]),
                ),
            row(LatencyHistory, "latency|history", 3, ADMIN | NOSCRIPT | LOADING | STALE, IMPLIED)
                .tips(&["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"])
                .docs(
                    &docs(Group::Server, "2.8.13", "O(1)", "Shows the samples of an event.")
                        .arguments(&[string("event")]),
                ),
            row(LatencyLatest, "latency|latest", 2, ADMIN | NOSCRIPT | LOADING | STALE, IMPLIED)
                .tips(&["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"])
                .docs(&docs(Group::Server, "2.8.13", "O(1)", "Shows the latest sample of each event.")),
            row(LatencyReset, "latency|reset", -2, ADMIN | NOSCRIPT | LOADING | STALE, IMPLIED)
                .tips(&["request_policy:all_nodes", "response_policy:agg_sum"])
                .docs(
                    &docs(Group::Server, "2.8.13", "O(1)", "Throws the samples of events away.").arguments(&[string(
                        "event",
                    )
                    .optional()
                    .multiple()]),
                ),
        ]),
    row(Lolwut, "lolwut", -1, READONLY | FAST, IMPLIED).docs(
        &docs(Group::Server, "5.0.0", "", "Draws a picture and shows the version.")
            .arguments(&[integer("version").after("VERSION").optional()]),
    ),
    row(Memory, "memory", -2, NONE, IMPLIED)
        .docs(&docs(Group::Server, "4.0.0", "That of the subcommand.", "Looks into memory use."))
        .subcommands(&[
            row(MemoryDoctor, "memory|doctor", 2, NONE, IMPLIED)
                .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"])
                .docs(&docs(Group::Server, "4.0.0", "O(1)", "Explains in plain words what is wrong with memory use.")),
            row(MemoryHelp, "memory|help", 2, LOADING | STALE, IMPLIED).docs(&docs(
                Group::Server,
                "4.0.0",
                "O(1)",
                "Explains the subcommands.",
            )),
            row(MemoryMallocStats, "memory|malloc-stats", 2, NONE, IMPLIED)
                .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"])
                .docs(&docs(
                    Group::Server,
                    "4.0.0",
                    "Grows with allocated memory and may be slow.",
                    "Returns the allocator's own statistics.",
                )),
            row(MemoryPurge, "memory|purge", 2, NONE, IMPLIED)
                .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
                .docs(&docs(
                    Group::Server,
                    "4.0.0",
                    "Grows with allocated memory and may be slow.",
                    "Asks the allocator to give unused memory back.",
                )),
            row(MemoryStats, "memory|stats", 2, NONE, IMPLIED)
                .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"])
                .docs(&docs(Group::Server, "4.0.0", "O(1)", "Shows where memory goes.")),
            row(MemoryUsage, "memory|usage", -3, READONLY, IMPLIED).keys(&[key(2, RO)]).docs(
                &docs(
                    Group::Server,
                    "4.0.0",
                    "O(N), N: samples.",
                    "Estimates the bytes that a key and its value take.",
                )
                .arguments(&[key_argument("key", 0), integer("count").after("SAMPLES").optional()]),
            ),
        ]),
    row(Monitor, "monitor", 1, ADMIN | NOSCRIPT | LOADING | STALE, IMPLIED).docs(&docs(
        Group::Server,
        "1.0.0",
        "",
        "Streams every command that the server runs.",
    )),
    row(Role, "role", 1, NOSCRIPT | LOADING | STALE | FAST | SENTINEL, category::ADMIN | DANGEROUS).docs(&docs(
        Group::Server,
        "2.8.12",
        "O(1)",
        "Tells this server's part in replication.",
    )),
    row(Slowlog, "slowlog", -2, NONE, IMPLIED)
        .docs(&docs(Group::Server, "2.2.12", "That of the subcommand.", "Looks at the log of slow commands."))
        .subcommands(&[
            row(SlowlogGet, "slowlog|get", -2, ADMIN | LOADING | STALE, IMPLIED)
                .tips(&["request_policy:all_nodes", "nondeterministic_output"])
                .docs(
                    &docs(Group::Server, "2.2.12", "O(N), N: entries returned.", "Shows the latest entries.")
                        .history(&[("4.0.0", "Entries show the address and the name of the client.")])
                        .arguments(&[integer("count").optional()]),
                ),
            row(SlowlogHelp, "slowlog|help", 2, LOADING | STALE, IMPLIED).docs(&docs(
                Group::Server,
                "6.2.0",
                "O(1)",
                "Explains the subcommands.",
            )),
            row(SlowlogLen, "slowlog|len", 2, ADMIN | LOADING | STALE, IMPLIED)
                .tips(&["request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"])
                .docs(&docs(Group::Server, "2.2.12", "O(1)", "Counts the entries.")),
            row(SlowlogReset, "slowlog|reset", 2, ADMIN | LOADING | STALE, IMPLIED)
                .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
                .docs(&docs(Group::Server, "2.2.12", "O(N), N: entries of the log.", "Removes all entries.")),
        ]),
    row(Time, "time", 1, LOADING | STALE | FAST, IMPLIED).tips(&["nondeterministic_output"]).docs(&docs(
        Group::Server,
        "2.6.0",
        "O(1)",
        "Shows the server's clock.",
    )),
];
