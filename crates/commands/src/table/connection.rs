//! The connection itself; CLIENT has its own file.

use super::id::CommandId::{Auth, Echo, Hello, Ping, Quit, Reset, Select};
use super::row::category::CONNECTION;
use super::row::flag::{ALLOW_BUSY, FAST, LOADING, NO_AUTH, NOSCRIPT, SENTINEL, STALE};
use super::row::row;
use super::spec::CommandSpec;

pub(super) static ROWS: [CommandSpec; 7] = [
    row(
        Auth,
        "auth",
        -2,
        NOSCRIPT | LOADING | STALE | FAST | NO_AUTH | SENTINEL | ALLOW_BUSY,
        CONNECTION,
    ),
    row(Echo, "echo", 2, LOADING | STALE | FAST, CONNECTION),
    row(
        Hello,
        "hello",
        -1,
        NOSCRIPT | LOADING | STALE | FAST | NO_AUTH | SENTINEL | ALLOW_BUSY,
        CONNECTION,
    ),
    row(Ping, "ping", -1, FAST | SENTINEL, CONNECTION)
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"]),
    row(
        Quit,
        "quit",
        -1,
        ALLOW_BUSY | NOSCRIPT | LOADING | STALE | FAST | NO_AUTH,
        CONNECTION,
    ),
    row(
        Reset,
        "reset",
        1,
        NOSCRIPT | LOADING | STALE | FAST | NO_AUTH | ALLOW_BUSY,
        CONNECTION,
    ),
    row(Select, "select", 2, LOADING | STALE | FAST, CONNECTION),
];
