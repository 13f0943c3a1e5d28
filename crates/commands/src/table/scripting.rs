//! Scripts and functions.

use super::docs::{Group, docs, integer, key_argument, one_of, string, token};
use super::id::CommandId::{
    Eval, EvalRo, Evalsha, EvalshaRo, Fcall, FcallRo, Function, FunctionDelete, FunctionDump, FunctionFlush,
    FunctionHelp, FunctionKill, FunctionList, FunctionLoad, FunctionRestore, FunctionStats, Script, ScriptDebug,
    ScriptExists, ScriptFlush, ScriptHelp, ScriptKill, ScriptLoad,
};
use super::row::category::{IMPLIED, SCRIPTING};
use super::row::flag::{
    ALLOW_BUSY, DENYOOM, LOADING, MAY_REPLICATE, NO_MANDATORY_KEYS, NONE, NOSCRIPT, READONLY, SKIP_MONITOR, STALE,
    WRITE,
};
use super::row::usage::{ACCESS, RO, RW, UPDATE};
use super::row::{counted_keys, row};
use super::spec::{CommandSpec, GetKeys};

pub(super) static ROWS: [CommandSpec; 8] = [
    row(Eval, "eval", -3, NOSCRIPT | SKIP_MONITOR | MAY_REPLICATE | NO_MANDATORY_KEYS | STALE, SCRIPTING)
        .keys(&[counted_keys(2, RW | ACCESS | UPDATE).notes(
            "What happens to the keys is not known: RW and UPDATE are the most \
                     there can be",
        )])
        .get_keys(GetKeys::Counted { store_at: 0, count_at: 2, first: 3 })
        .docs(&docs(Group::Scripting, "2.6.0", "That of the script.", "Runs a Lua script.").arguments(&[
            string("script"),
            integer("numkeys"),
            key_argument("key", 0).optional().multiple(),
            string("arg").optional().multiple(),
        ])),
    row(EvalRo, "eval_ro", -3, NOSCRIPT | SKIP_MONITOR | NO_MANDATORY_KEYS | STALE | READONLY, SCRIPTING)
        .keys(&[counted_keys(2, RO | ACCESS).notes(
            "What happens to the keys is not known: RO and ACCESS are the most \
                     there can be",
        )])
        .get_keys(GetKeys::Counted { store_at: 0, count_at: 2, first: 3 })
        .docs(
            &docs(Group::Scripting, "7.0.0", "That of the script.", "Runs a Lua script that must not write.")
                .arguments(&[
                    string("script"),
                    integer("numkeys"),
                    key_argument("key", 0).optional().multiple(),
                    string("arg").optional().multiple(),
                ]),
        ),
    row(Evalsha, "evalsha", -3, NOSCRIPT | SKIP_MONITOR | MAY_REPLICATE | NO_MANDATORY_KEYS | STALE, SCRIPTING)
        .keys(&[counted_keys(2, RW | ACCESS | UPDATE)])
        .get_keys(GetKeys::Counted { store_at: 0, count_at: 2, first: 3 })
        .docs(
            &docs(Group::Scripting, "2.6.0", "That of the script.", "Runs a cached Lua script by its SHA-1.")
                .arguments(&[
                    string("sha1"),
                    integer("numkeys"),
                    key_argument("key", 0).optional().multiple(),
                    string("arg").optional().multiple(),
                ]),
        ),
    row(EvalshaRo, "evalsha_ro", -3, NOSCRIPT | SKIP_MONITOR | NO_MANDATORY_KEYS | STALE | READONLY, SCRIPTING)
        .keys(&[counted_keys(2, RO | ACCESS)])
        .get_keys(GetKeys::Counted { store_at: 0, count_at: 2, first: 3 })
        .docs(
            &docs(
                Group::Scripting,
                "7.0.0",
                "That of the script.",
                "Runs a cached Lua script by its SHA-1; it must not write.",
            )
            .arguments(&[
                string("sha1"),
                integer("numkeys"),
                key_argument("key", 0).optional().multiple(),
                string("arg").optional().multiple(),
            ]),
        ),
    row(Fcall, "fcall", -3, NOSCRIPT | SKIP_MONITOR | MAY_REPLICATE | NO_MANDATORY_KEYS | STALE, SCRIPTING)
        .keys(&[counted_keys(2, RW | ACCESS | UPDATE).notes(
            "What happens to the keys is not known: RW and UPDATE are the most \
                     there can be",
        )])
        .get_keys(GetKeys::Counted { store_at: 0, count_at: 2, first: 3 })
        .docs(&docs(Group::Scripting, "7.0.0", "That of the function.", "Runs a function.").arguments(&[
            string("function"),
            integer("numkeys"),
            key_argument("key", 0).optional().multiple(),
            string("arg").optional().multiple(),
        ])),
    row(FcallRo, "fcall_ro", -3, NOSCRIPT | SKIP_MONITOR | NO_MANDATORY_KEYS | STALE | READONLY, SCRIPTING)
        .keys(&[counted_keys(2, RO | ACCESS).notes(
            "What happens to the keys is not known: RO and ACCESS are the most \
                     there can be",
        )])
        .get_keys(GetKeys::Counted { store_at: 0, count_at: 2, first: 3 })
        .docs(
            &docs(Group::Scripting, "7.0.0", "That of the function.", "Runs a function that must not write.")
                .arguments(&[
                    string("function"),
                    integer("numkeys"),
                    key_argument("key", 0).optional().multiple(),
                    string("arg").optional().multiple(),
                ]),
        ),
    row(Function, "function", -2, NONE, IMPLIED)
        .docs(&docs(Group::Scripting, "7.0.0", "That of the subcommand.", "Manages libraries of functions."))
        .subcommands(&[
            row(FunctionDelete, "function|delete", 3, NOSCRIPT | WRITE, SCRIPTING)
                .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
                .docs(
                    &docs(Group::Scripting, "7.0.0", "O(1)", "Removes a library.").arguments(&[string("library-name")]),
                ),
            row(FunctionDump, "function|dump", 2, NOSCRIPT, SCRIPTING).docs(&docs(
                Group::Scripting,
                "7.0.0",
                "O(N), N: functions.",
                "Returns all libraries as bytes that FUNCTION RESTORE takes.",
            )),
            row(FunctionFlush, "function|flush", -2, NOSCRIPT | WRITE, SCRIPTING)
                .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
                .docs(
                    &docs(Group::Scripting, "7.0.0", "O(N), N: functions removed.", "Removes all libraries.")
                        .arguments(&[
                            one_of("flush-type", &[token("async", "ASYNC"), token("sync", "SYNC")]).optional()
                        ]),
                ),
            row(FunctionHelp, "function|help", 2, LOADING | STALE, SCRIPTING).docs(&docs(
                Group::Scripting,
                "7.0.0",
                "O(1)",
                "Explains the subcommands.",
            )),
            row(FunctionKill, "function|kill", 2, NOSCRIPT | ALLOW_BUSY, SCRIPTING)
                .tips(&["request_policy:all_shards", "response_policy:one_succeeded"])
                .docs(&docs(Group::Scripting, "7.0.0", "O(1)", "Stops the function that runs.")),
            row(FunctionList, "function|list", -2, NOSCRIPT, SCRIPTING).tips(&["nondeterministic_output_order"]).docs(
                &docs(Group::Scripting, "7.0.0", "O(N), N: functions.", "Lists libraries and their functions.")
                    .arguments(&[
                        string("library-name-pattern").after("LIBRARYNAME").optional(),
                        token("withcode", "WITHCODE").optional(),
                    ]),
            ),
            row(FunctionLoad, "function|load", -3, NOSCRIPT | WRITE | DENYOOM, SCRIPTING)
                .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
                .docs(
                    &docs(Group::Scripting, "7.0.0", "O(1), the time to compile left aside.", "Adds a library.")
                        .arguments(&[token("replace", "REPLACE").optional(), string("function-code")]),
                ),
            row(FunctionRestore, "function|restore", -3, NOSCRIPT | WRITE | DENYOOM, SCRIPTING)
                .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
                .docs(
                    &docs(
                        Group::Scripting,
                        "7.0.0",
                        "O(N), N: functions in the dump.",
                        "Adds libraries from the bytes of a dump.",
                    )
                    .arguments(&[
                        string("serialized-value"),
                        one_of(
                            "policy",
                            &[token("flush", "FLUSH"), token("append", "APPEND"), token("replace", "REPLACE")],
                        )
                        .optional(),
                    ]),
                ),
            row(FunctionStats, "function|stats", 2, NOSCRIPT | ALLOW_BUSY, SCRIPTING)
                .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"])
                .docs(&docs(Group::Scripting, "7.0.0", "O(1)", "Describes the function that runs, and the engines.")),
        ]),
    row(Script, "script", -2, NONE, IMPLIED)
        .docs(&docs(Group::Scripting, "2.6.0", "That of the subcommand.", "Manages the cache of Lua scripts."))
        .subcommands(&[
            row(ScriptDebug, "script|debug", 3, NOSCRIPT, SCRIPTING).docs(
                &docs(Group::Scripting, "3.2.0", "O(1)", "Sets how scripts of this connection are debugged.")
                    .arguments(&[one_of("mode", &[token("yes", "YES"), token("sync", "SYNC"), token("no", "NO")])]),
            ),
            row(ScriptExists, "script|exists", -3, NOSCRIPT, SCRIPTING)
                .tips(&["request_policy:all_shards", "response_policy:agg_logical_and"])
                .docs(
                    &docs(Group::Scripting, "2.6.0", "O(N), N: scripts asked for.", "Tells which scripts are cached.")
                        .arguments(&[string("sha1").multiple()]),
                ),
            row(ScriptFlush, "script|flush", -2, NOSCRIPT, SCRIPTING)
                .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
                .docs(
                    &docs(Group::Scripting, "2.6.0", "O(N), N: scripts cached.", "Empties the cache of scripts.")
                        .history(&[("6.2.0", "`ASYNC` and `SYNC`.")])
                        .arguments(&[one_of("flush-type", &[token("async", "ASYNC"), token("sync", "SYNC")])
                            .since("6.2.0")
                            .optional()]),
                ),
            row(ScriptHelp, "script|help", 2, LOADING | STALE, SCRIPTING).docs(&docs(
                Group::Scripting,
                "5.0.0",
                "O(1)",
                "Explains the subcommands.",
            )),
            row(ScriptKill, "script|kill", 2, NOSCRIPT | ALLOW_BUSY, SCRIPTING)
                .tips(&["request_policy:all_shards", "response_policy:one_succeeded"])
                .docs(&docs(Group::Scripting, "2.6.0", "O(1)", "Stops the script that runs.")),
            row(ScriptLoad, "script|load", 3, NOSCRIPT | STALE, SCRIPTING)
                .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
                .docs(
                    &docs(Group::Scripting, "2.6.0", "O(N), N: bytes of the script.", "Caches a script.")
                        .arguments(&[string("script")]),
                ),
        ]),
];
