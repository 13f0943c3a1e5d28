//! Scripts and functions.

use super::id::CommandId::{
    Eval, EvalRo, Evalsha, EvalshaRo, Fcall, FcallRo, Function, FunctionDelete, FunctionDump,
    FunctionFlush, FunctionHelp, FunctionKill, FunctionList, FunctionLoad, FunctionRestore,
    FunctionStats, Script, ScriptDebug, ScriptExists, ScriptFlush, ScriptHelp, ScriptKill,
    ScriptLoad,
};
use super::row::category::{IMPLIED, SCRIPTING};
use super::row::flag::{
    ALLOW_BUSY, DENYOOM, LOADING, MAY_REPLICATE, NO_MANDATORY_KEYS, NONE, NOSCRIPT, READONLY,
    SKIP_MONITOR, STALE, WRITE,
};
use super::row::usage::{ACCESS, RO, RW, UPDATE};
use super::row::{counted_keys, row};
use super::spec::{CommandSpec, GetKeys};

pub(super) static ROWS: [CommandSpec; 8] = [
    row(
        Eval,
        "eval",
        -3,
        NOSCRIPT | SKIP_MONITOR | MAY_REPLICATE | NO_MANDATORY_KEYS | STALE,
        SCRIPTING,
    )
    .keys(&[counted_keys(2, RW | ACCESS | UPDATE).notes("?")])
    .get_keys(GetKeys::Counted {
        store_at: 0,
        count_at: 2,
        first: 3,
    }),
    row(
        EvalRo,
        "eval_ro",
        -3,
        NOSCRIPT | SKIP_MONITOR | NO_MANDATORY_KEYS | STALE | READONLY,
        SCRIPTING,
    )
    .keys(&[counted_keys(2, RO | ACCESS).notes("?")])
    .get_keys(GetKeys::Counted {
        store_at: 0,
        count_at: 2,
        first: 3,
    }),
    row(
        Evalsha,
        "evalsha",
        -3,
        NOSCRIPT | SKIP_MONITOR | MAY_REPLICATE | NO_MANDATORY_KEYS | STALE,
        SCRIPTING,
    )
    .keys(&[counted_keys(2, RW | ACCESS | UPDATE)])
    .get_keys(GetKeys::Counted {
        store_at: 0,
        count_at: 2,
        first: 3,
    }),
    row(
        EvalshaRo,
        "evalsha_ro",
        -3,
        NOSCRIPT | SKIP_MONITOR | NO_MANDATORY_KEYS | STALE | READONLY,
        SCRIPTING,
    )
    .keys(&[counted_keys(2, RO | ACCESS)])
    .get_keys(GetKeys::Counted {
        store_at: 0,
        count_at: 2,
        first: 3,
    }),
    row(
        Fcall,
        "fcall",
        -3,
        NOSCRIPT | SKIP_MONITOR | MAY_REPLICATE | NO_MANDATORY_KEYS | STALE,
        SCRIPTING,
    )
    .keys(&[counted_keys(2, RW | ACCESS | UPDATE).notes("?")])
    .get_keys(GetKeys::Counted {
        store_at: 0,
        count_at: 2,
        first: 3,
    }),
    row(
        FcallRo,
        "fcall_ro",
        -3,
        NOSCRIPT | SKIP_MONITOR | NO_MANDATORY_KEYS | STALE | READONLY,
        SCRIPTING,
    )
    .keys(&[counted_keys(2, RO | ACCESS).notes("?")])
    .get_keys(GetKeys::Counted {
        store_at: 0,
        count_at: 2,
        first: 3,
    }),
    row(Function, "function", -2, NONE, IMPLIED).subcommands(&[
        row(
            FunctionDelete,
            "function|delete",
            3,
            NOSCRIPT | WRITE,
            SCRIPTING,
        )
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"]),
        row(FunctionDump, "function|dump", 2, NOSCRIPT, SCRIPTING),
        row(
            FunctionFlush,
            "function|flush",
            -2,
            NOSCRIPT | WRITE,
            SCRIPTING,
        )
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"]),
        row(FunctionHelp, "function|help", 2, LOADING | STALE, SCRIPTING),
        row(
            FunctionKill,
            "function|kill",
            2,
            NOSCRIPT | ALLOW_BUSY,
            SCRIPTING,
        )
        .tips(&["request_policy:all_shards", "response_policy:one_succeeded"]),
        row(FunctionList, "function|list", -2, NOSCRIPT, SCRIPTING)
            .tips(&["nondeterministic_output_order"]),
        row(
            FunctionLoad,
            "function|load",
            -3,
            NOSCRIPT | WRITE | DENYOOM,
            SCRIPTING,
        )
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"]),
        row(
            FunctionRestore,
            "function|restore",
            -3,
            NOSCRIPT | WRITE | DENYOOM,
            SCRIPTING,
        )
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"]),
        row(
            FunctionStats,
            "function|stats",
            2,
            NOSCRIPT | ALLOW_BUSY,
            SCRIPTING,
        )
        .tips(&[
            "nondeterministic_output",
            "request_policy:all_shards",
            "response_policy:special",
        ]),
    ]),
    row(Script, "script", -2, NONE, IMPLIED).subcommands(&[
        row(ScriptDebug, "script|debug", 3, NOSCRIPT, SCRIPTING),
        row(ScriptExists, "script|exists", -3, NOSCRIPT, SCRIPTING).tips(&[
            "request_policy:all_shards",
            "response_policy:agg_logical_and",
        ]),
        row(ScriptFlush, "script|flush", -2, NOSCRIPT, SCRIPTING)
            .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]),
        row(ScriptHelp, "script|help", 2, LOADING | STALE, SCRIPTING),
        row(
            ScriptKill,
            "script|kill",
            2,
            NOSCRIPT | ALLOW_BUSY,
            SCRIPTING,
        )
        .tips(&["request_policy:all_shards", "response_policy:one_succeeded"]),
        row(ScriptLoad, "script|load", 3, NOSCRIPT | STALE, SCRIPTING)
            .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]),
    ]),
];
