//! The connection itself; CLIENT has its own file.

use super::docs::{Group, block, docs, integer, string};
use super::id::CommandId::{Auth, Echo, Hello, Ping, Quit, Reset, Select};
use super::row::category::CONNECTION;
use super::row::flag::{ALLOW_BUSY, FAST, LOADING, NO_AUTH, NOSCRIPT, SENTINEL, STALE};
use super::row::row;
use super::spec::CommandSpec;

pub(super) static ROWS: [CommandSpec; 7] = [
    row(Auth, "auth", -2, NOSCRIPT | LOADING | STALE | FAST | NO_AUTH | SENTINEL | ALLOW_BUSY, CONNECTION).docs(
        &docs(Group::Connection, "1.0.0", "O(N), N: passwords of the user.", "Logs this connection in.")
            .history(&[("6.0.0", "Takes a user name in front of the password.")])
            .arguments(&[string("username").since("6.0.0").optional(), string("password")]),
    ),
    row(Echo, "echo", 2, LOADING | STALE | FAST, CONNECTION)
        .docs(&docs(Group::Connection, "1.0.0", "O(1)", "Returns its argument.").arguments(&[string("message")])),
    row(Hello, "hello", -1, NOSCRIPT | LOADING | STALE | FAST | NO_AUTH | SENTINEL | ALLOW_BUSY, CONNECTION).docs(
        &docs(Group::Connection, "6.0.0", "O(1)", "Chooses the protocol version, logs in and names the connection.")
            .history(&[("6.2.0", "The version may be left out; then it only describes the connection.")])
            .arguments(&[block(
                "arguments",
                &[
                    integer("protover"),
                    block("auth", &[string("username"), string("password")]).after("AUTH").optional(),
                    string("clientname").after("SETNAME").optional(),
                ],
            )
            .optional()]),
    ),
    row(Ping, "ping", -1, FAST | SENTINEL, CONNECTION)
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
        .docs(
            &docs(Group::Connection, "1.0.0", "O(1)", "Answers, to show that the connection lives.")
                .arguments(&[string("message").optional()]),
        ),
    row(Quit, "quit", -1, ALLOW_BUSY | NOSCRIPT | LOADING | STALE | FAST | NO_AUTH, CONNECTION).docs(
        &docs(Group::Connection, "1.0.0", "O(1)", "Closes this connection.")
            .deprecated("7.2.0", "just closing the connection"),
    ),
    row(Reset, "reset", 1, NOSCRIPT | LOADING | STALE | FAST | NO_AUTH | ALLOW_BUSY, CONNECTION).docs(&docs(
        Group::Connection,
        "6.2.0",
        "O(1)",
        "Brings this connection back to its first state.",
    )),
    row(Select, "select", 2, LOADING | STALE | FAST, CONNECTION).docs(
        &docs(Group::Connection, "1.0.0", "O(1)", "Changes the database of this connection.")
            .arguments(&[integer("index")]),
    ),
];
