//! Strings.

use super::docs::{Group, block, docs, double, integer, key_argument, one_of, string, token, unix_time};
use super::id::CommandId::{
    Append, Decr, Decrby, Get, Getdel, Getex, Getrange, Getset, Incr, Incrby, Incrbyfloat, Lcs, Mget, Mset, Msetnx,
    Psetex, Set, Setex, Setnx, Setrange, Strlen, Substr,
};
use super::row::category::STRING;
use super::row::flag::{DENYOOM, FAST, READONLY, WRITE};
use super::row::usage::{ACCESS, DELETE, INSERT, OW, RO, RW, UPDATE, VARIABLE_FLAGS};
use super::row::{key, key_range, key_value_pairs, row};
use super::spec::{CommandSpec, GetKeys};

pub(super) static ROWS: [CommandSpec; 22] = [
    row(Append, "append", 3, WRITE | DENYOOM | FAST, STRING).keys(&[key(1, RW | INSERT)]).docs(
        &docs(
            Group::String,
            "2.0.0",
            "O(1) on average, as a string that grows gets spare room; else O(N), \
                     N: length of the string.",
            "Adds bytes at the end of a string, which is made if need be.",
        )
        .arguments(&[key_argument("key", 0), string("value")]),
    ),
    row(Decr, "decr", 2, WRITE | DENYOOM | FAST, STRING).keys(&[key(1, RW | ACCESS | UPDATE)]).docs(
        &docs(Group::String, "1.0.0", "O(1)", "Subtracts one from an integer; a missing key counts as 0.")
            .arguments(&[key_argument("key", 0)]),
    ),
    row(Decrby, "decrby", 3, WRITE | DENYOOM | FAST, STRING).keys(&[key(1, RW | ACCESS | UPDATE)]).docs(
        &docs(Group::String, "1.0.0", "O(1)", "Subtracts a number from an integer; a missing key counts as 0.")
            .arguments(&[key_argument("key", 0), integer("decrement")]),
    ),
    row(Get, "get", 2, READONLY | FAST, STRING)
        .keys(&[key(1, RO | ACCESS)])
        .docs(&docs(Group::String, "1.0.0", "O(1)", "Returns a string.").arguments(&[key_argument("key", 0)])),
    row(Getdel, "getdel", 2, WRITE | FAST, STRING).keys(&[key(1, RW | ACCESS | DELETE)]).docs(
        &docs(Group::String, "6.2.0", "O(1)", "Returns a string and removes its key.")
            .arguments(&[key_argument("key", 0)]),
    ),
    row(Getex, "getex", -2, WRITE | FAST, STRING)
        .keys(&[key(1, RW | ACCESS | UPDATE).notes("A changed time to live counts as UPDATE")])
        .docs(
            &docs(Group::String, "6.2.0", "O(1)", "Returns a string and changes when its key dies.").arguments(&[
                key_argument("key", 0),
                one_of(
                    "expiration",
                    &[
                        integer("seconds").after("EX"),
                        integer("milliseconds").after("PX"),
                        unix_time("unix-time-seconds").after("EXAT"),
                        unix_time("unix-time-milliseconds").after("PXAT"),
                        token("persist", "PERSIST"),
                    ],
                )
                .optional(),
            ]),
        ),
    row(Getrange, "getrange", 4, READONLY, STRING).keys(&[key(1, RO | ACCESS)]).docs(
        &docs(
            Group::String,
            "2.4.0",
            "O(N), N: bytes returned; about O(1) for short parts.",
            "Returns a part of a string.",
        )
        .arguments(&[key_argument("key", 0), integer("start"), integer("end")]),
    ),
    row(Getset, "getset", 3, WRITE | DENYOOM | FAST, STRING).keys(&[key(1, RW | ACCESS | UPDATE)]).docs(
        &docs(Group::String, "1.0.0", "O(1)", "Sets a string and returns the one before.")
            .deprecated("6.2.0", "`SET` with the `!GET` argument")
            .arguments(&[key_argument("key", 0), string("value")]),
    ),
    row(Incr, "incr", 2, WRITE | DENYOOM | FAST, STRING).keys(&[key(1, RW | ACCESS | UPDATE)]).docs(
        &docs(Group::String, "1.0.0", "O(1)", "Adds one to an integer; a missing key counts as 0.")
            .arguments(&[key_argument("key", 0)]),
    ),
    row(Incrby, "incrby", 3, WRITE | DENYOOM | FAST, STRING).keys(&[key(1, RW | ACCESS | UPDATE)]).docs(
        &docs(Group::String, "1.0.0", "O(1)", "Adds a number to an integer; a missing key counts as 0.")
            .arguments(&[key_argument("key", 0), integer("increment")]),
    ),
    row(Incrbyfloat, "incrbyfloat", 3, WRITE | DENYOOM | FAST, STRING).keys(&[key(1, RW | ACCESS | UPDATE)]).docs(
        &docs(Group::String, "2.6.0", "O(1)", "Adds a number to a float; a missing key counts as 0.")
            .arguments(&[key_argument("key", 0), double("increment")]),
    ),
    row(Lcs, "lcs", -3, READONLY, STRING).keys(&[key_range(1, 1, RO | ACCESS)]).docs(
        &docs(
            Group::String,
            "7.0.0",
            "O(N*M), N, M: lengths of the strings.",
            "Finds the longest common subsequence of two strings.",
        )
        .arguments(&[
            key_argument("key1", 0),
            key_argument("key2", 0),
            token("len", "LEN").optional(),
            token("idx", "IDX").optional(),
            integer("min-match-len").after("MINMATCHLEN").optional(),
            token("withmatchlen", "WITHMATCHLEN").optional(),
        ]),
    ),
    row(Mget, "mget", -2, READONLY | FAST, STRING)
        .keys(&[key_range(1, -1, RO | ACCESS)])
        .tips(&["request_policy:multi_shard"])
        .docs(
            &docs(Group::String, "1.0.0", "O(N), N: keys.", "Returns several strings at once.")
                .arguments(&[key_argument("key", 0).multiple()]),
        ),
    row(Mset, "mset", -3, WRITE | DENYOOM, STRING)
        .keys(&[key_value_pairs(1, OW | UPDATE)])
        .tips(&["request_policy:multi_shard", "response_policy:all_succeeded"])
        .docs(
            &docs(Group::String, "1.0.1", "O(N), N: keys.", "Sets several strings at once.").arguments(&[block(
                "data",
                &[key_argument("key", 0), string("value")],
            )
            .multiple()]),
        ),
    row(Msetnx, "msetnx", -3, WRITE | DENYOOM, STRING).keys(&[key_value_pairs(1, OW | INSERT)]).docs(
        &docs(Group::String, "1.0.1", "O(N), N: keys.", "Sets several strings at once if none of the keys exists.")
            .arguments(&[block("data", &[key_argument("key", 0), string("value")]).multiple()]),
    ),
    row(Psetex, "psetex", 4, WRITE | DENYOOM, STRING).keys(&[key(1, OW | UPDATE)]).docs(
        &docs(Group::String, "2.6.0", "O(1)", "Sets a string that dies in so many milliseconds.")
            .deprecated("2.6.12", "`SET` with the `PX` argument")
            .arguments(&[key_argument("key", 0), integer("milliseconds"), string("value")]),
    ),
    row(Set, "set", -3, WRITE | DENYOOM, STRING)
        .keys(&[key(1, RW | ACCESS | UPDATE | VARIABLE_FLAGS).notes("`GET` makes it RW and ACCESS")])
        .get_keys(GetKeys::Set)
        .docs(
            &docs(Group::String, "1.0.0", "O(1)", "Sets a string, whatever the key held before.")
                .history(&[
                    ("2.6.12", "`EX`, `PX`, `NX` and `XX`."),
                    ("6.0.0", "`KEEPTTL`."),
                    ("6.2.0", "`GET`, `EXAT` and `PXAT`."),
                    ("7.0.0", "`NX` and `GET` may be combined."),
                ])
                .arguments(&[
                    key_argument("key", 0),
                    string("value"),
                    one_of("condition", &[token("nx", "NX"), token("xx", "XX")]).since("2.6.12").optional(),
                    token("get", "GET").since("6.2.0").optional(),
                    one_of(
                        "expiration",
                        &[
                            integer("seconds").after("EX").since("2.6.12"),
                            integer("milliseconds").after("PX").since("2.6.12"),
                            unix_time("unix-time-seconds").after("EXAT").since("6.2.0"),
                            unix_time("unix-time-milliseconds").after("PXAT").since("6.2.0"),
                            token("keepttl", "KEEPTTL").since("6.0.0"),
                        ],
                    )
                    .optional(),
                ]),
        ),
    row(Setex, "setex", 4, WRITE | DENYOOM, STRING).keys(&[key(1, OW | UPDATE)]).docs(
        &docs(Group::String, "2.0.0", "O(1)", "Sets a string that dies in so many seconds.")
            .deprecated("2.6.12", "`SET` with the `EX` argument")
            .arguments(&[key_argument("key", 0), integer("seconds"), string("value")]),
    ),
    row(Setnx, "setnx", 3, WRITE | DENYOOM | FAST, STRING).keys(&[key(1, OW | INSERT)]).docs(
        &docs(Group::String, "1.0.0", "O(1)", "Sets a string unless the key exists.")
            .deprecated("2.6.12", "`SET` with the `NX` argument")
            .arguments(&[key_argument("key", 0), string("value")]),
    ),
    row(Setrange, "setrange", 4, WRITE | DENYOOM, STRING).keys(&[key(1, RW | UPDATE)]).docs(
        &docs(
            Group::String,
            "2.2.0",
            "O(1) for short values; else O(M), M: bytes of the value.",
            "Overwrites a part of a string from an offset on.",
        )
        .arguments(&[key_argument("key", 0), integer("offset"), string("value")]),
    ),
    row(Strlen, "strlen", 2, READONLY | FAST, STRING).keys(&[key(1, RO)]).docs(
        &docs(Group::String, "2.2.0", "O(1)", "Returns the length of a string in bytes.")
            .arguments(&[key_argument("key", 0)]),
    ),
    row(Substr, "substr", 4, READONLY, STRING).keys(&[key(1, RO | ACCESS)]).docs(
        &docs(
            Group::String,
            "1.0.0",
            "O(N), N: bytes returned; about O(1) for short parts.",
            "Returns a part of a string.",
        )
        .deprecated("2.0.0", "`GETRANGE`")
        .arguments(&[key_argument("key", 0), integer("start"), integer("end")]),
    ),
];
