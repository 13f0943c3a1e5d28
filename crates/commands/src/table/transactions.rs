//! Transactions.

use super::id::CommandId::{Discard, Exec, Multi, Unwatch, Watch};
use super::row::category::TRANSACTION;
use super::row::flag::{ALLOW_BUSY, FAST, LOADING, NOSCRIPT, SKIP_SLOWLOG, STALE};
use super::row::usage::RO;
use super::row::{key_range, row};
use super::spec::CommandSpec;

pub(super) static ROWS: [CommandSpec; 5] = [
    row(
        Discard,
        "discard",
        1,
        NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY,
        TRANSACTION,
    ),
    row(
        Exec,
        "exec",
        1,
        NOSCRIPT | LOADING | STALE | SKIP_SLOWLOG,
        TRANSACTION,
    ),
    row(
        Multi,
        "multi",
        1,
        NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY,
        TRANSACTION,
    ),
    row(
        Unwatch,
        "unwatch",
        1,
        NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY,
        TRANSACTION,
    ),
    row(
        Watch,
        "watch",
        -2,
        NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY,
        TRANSACTION,
    )
    .keys(&[key_range(1, -1, RO)]),
];
