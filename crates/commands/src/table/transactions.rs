//! Transactions.

use super::docs::{Group, docs, key_argument};
use super::id::CommandId::{Discard, Exec, Multi, Unwatch, Watch};
use super::row::category::TRANSACTION;
use super::row::flag::{ALLOW_BUSY, FAST, LOADING, NOSCRIPT, SKIP_SLOWLOG, STALE};
use super::row::usage::RO;
use super::row::{key_range, row};
use super::spec::CommandSpec;

pub(super) static ROWS: [CommandSpec; 5] = [
    row(Discard, "discard", 1, NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY, TRANSACTION).docs(&docs(
        Group::Transactions,
        "2.0.0",
        "O(N), N: commands queued.",
        "Throws away the queued commands of a transaction.",
    )),
    row(Exec, "exec", 1, NOSCRIPT | LOADING | STALE | SKIP_SLOWLOG, TRANSACTION).docs(&docs(
        Group::Transactions,
        "1.2.0",
        "That of the commands queued.",
        "Runs the queued commands of a transaction.",
    )),
    row(Multi, "multi", 1, NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY, TRANSACTION).docs(&docs(
        Group::Transactions,
        "1.2.0",
        "O(1)",
        "Begins a transaction.",
    )),
    row(Unwatch, "unwatch", 1, NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY, TRANSACTION).docs(&docs(
        Group::Transactions,
        "2.2.0",
        "O(1)",
        "Forgets all watched keys.",
    )),
    row(Watch, "watch", -2, NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY, TRANSACTION)
        .keys(&[key_range(1, -1, RO)])
        .docs(
            &docs(
                Group::Transactions,
                "2.2.0",
                "O(1) for each key.",
                "Makes the next transaction fail if one of the keys changes.",
            )
            .arguments(&[key_argument("key", 0).multiple()]),
        ),
];
