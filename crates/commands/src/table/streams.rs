//! Streams.

use super::docs::{Group, block, docs, integer, key_argument, one_of, string, token, unix_time};
use super::id::CommandId::{
    Xack, Xadd, Xautoclaim, Xclaim, Xdel, Xgroup, XgroupCreate, XgroupCreateconsumer, XgroupDelconsumer, XgroupDestroy,
    XgroupHelp, XgroupSetid, Xinfo, XinfoConsumers, XinfoGroups, XinfoHelp, XinfoStream, Xlen, Xpending, Xrange, Xread,
    Xreadgroup, Xrevrange, Xsetid, Xtrim,
};
use super::row::category::{IMPLIED, STREAM};
use super::row::flag::{BLOCKING, DENYOOM, FAST, LOADING, NONE, READONLY, STALE, WRITE};
use super::row::usage::{ACCESS, DELETE, INSERT, RO, RW, UPDATE};
use super::row::{key, keys_after, row};
use super::spec::{CommandSpec, GetKeys};

pub(super) static ROWS: [CommandSpec; 15] = [
    row(Xack, "xack", -4, WRITE | FAST, STREAM).keys(&[key(1, RW | UPDATE)]).docs(
        &docs(Group::Stream, "5.0.0", "O(1) for each ID.", "Marks entries as done by a consumer group.").arguments(&[
            key_argument("key", 0),
            string("group"),
            string("id").multiple(),
        ]),
    ),
    row(Xadd, "xadd", -5, WRITE | DENYOOM | FAST, STREAM)
        .keys(&[key(1, RW | UPDATE).notes("Trimming removes entries, so more than INSERT")])
        .tips(&["nondeterministic_output"])
        .docs(
            &docs(
                Group::Stream,
                "5.0.0",
                "O(1); O(N) to trim in addition, N: entries removed.",
                "Adds an entry to a stream.",
            )
            .history(&[("6.2.0", "`NOMKSTREAM`, `MINID` and `LIMIT`."), ("7.0.0", "IDs of the form `<ms>-*`.")])
            .arguments(&[
                key_argument("key", 0),
                token("nomkstream", "NOMKSTREAM").since("6.2.0").optional(),
                block(
                    "trim",
                    &[
                        one_of("strategy", &[token("maxlen", "MAXLEN"), token("minid", "MINID").since("6.2.0")]),
                        one_of("operator", &[token("equal", "="), token("approximately", "~")]).optional(),
                        string("threshold"),
                        integer("count").after("LIMIT").since("6.2.0").optional(),
                    ],
                )
                .optional(),
                one_of("id-selector", &[token("auto-id", "*"), string("id")]),
                block("data", &[string("field"), string("value")]).multiple(),
            ]),
        ),
    row(Xautoclaim, "xautoclaim", -6, WRITE | FAST, STREAM)
        .keys(&[key(1, RW | DELETE)])
        .tips(&["nondeterministic_output"])
        .docs(
            &docs(
                Group::Stream,
                "6.2.0",
                "O(1) if COUNT is small.",
                "Takes over entries that others have left pending for too long.",
            )
            .history(&[("7.0.0", "The reply also names entries that were deleted and are pending no more.")])
            .arguments(&[
                key_argument("key", 0),
                string("group"),
                string("consumer"),
                string("min-idle-time"),
                string("start"),
                integer("count").after("COUNT").optional(),
                token("justid", "JUSTID").optional(),
            ]),
        ),
    row(Xclaim, "xclaim", -6, WRITE | FAST, STREAM)
        .keys(&[key(1, RW | UPDATE)])
        .tips(&["nondeterministic_output"])
        .docs(
            &docs(
                Group::Stream,
                "5.0.0",
                "O(log N), N: pending entries of the group.",
                "Takes over named pending entries.",
            )
            .arguments(&[
                key_argument("key", 0),
                string("group"),
                string("consumer"),
                string("min-idle-time"),
                string("id").multiple(),
                integer("ms").after("IDLE").optional(),
                unix_time("unix-time-milliseconds").after("TIME").optional(),
                integer("count").after("RETRYCOUNT").optional(),
                token("force", "FORCE").optional(),
                token("justid", "JUSTID").optional(),
                string("lastid").after("LASTID").optional(),
            ]),
        ),
    row(Xdel, "xdel", -3, WRITE | FAST, STREAM).keys(&[key(1, RW | DELETE)]).docs(
        &docs(Group::Stream, "5.0.0", "O(1) for each entry.", "Removes entries of a stream.")
            .arguments(&[key_argument("key", 0), string("id").multiple()]),
    ),
    row(Xgroup, "xgroup", -2, NONE, IMPLIED)
        .docs(&docs(Group::Stream, "5.0.0", "That of the subcommand.", "Manages consumer groups."))
        .subcommands(&[
            row(XgroupCreate, "xgroup|create", -5, WRITE | DENYOOM, STREAM).keys(&[key(2, RW | INSERT)]).docs(
                &docs(Group::Stream, "5.0.0", "O(1)", "Makes a consumer group.")
                    .history(&[("7.0.0", "`ENTRIESREAD`.")])
                    .arguments(&[
                        key_argument("key", 0),
                        string("group"),
                        one_of("id-selector", &[string("id"), token("new-id", "$")]),
                        token("mkstream", "MKSTREAM").optional(),
                        integer("entries-read").after("ENTRIESREAD").optional(),
                    ]),
            ),
            row(XgroupCreateconsumer, "xgroup|createconsumer", 5, WRITE | DENYOOM, STREAM)
                .keys(&[key(2, RW | INSERT)])
                .docs(&docs(Group::Stream, "6.2.0", "O(1)", "Makes a consumer in a group.").arguments(&[
                    key_argument("key", 0),
                    string("group"),
                    string("consumer"),
                ])),
            row(XgroupDelconsumer, "xgroup|delconsumer", 5, WRITE, STREAM).keys(&[key(2, RW | DELETE)]).docs(
                &docs(Group::Stream, "5.0.0", "O(1)", "Removes a consumer from a group.").arguments(&[
                    key_argument("key", 0),
                    string("group"),
                    string("consumer"),
                ]),
            ),
            row(XgroupDestroy, "xgroup|destroy", 4, WRITE, STREAM).keys(&[key(2, RW | DELETE)]).docs(
                &docs(Group::Stream, "5.0.0", "O(N), N: pending entries of the group.", "Removes a consumer group.")
                    .arguments(&[key_argument("key", 0), string("group")]),
            ),
            row(XgroupHelp, "xgroup|help", 2, LOADING | STALE, STREAM).docs(&docs(
                Group::Stream,
                "5.0.0",
                "O(1)",
                "Explains the subcommands.",
            )),
            row(XgroupSetid, "xgroup|setid", -5, WRITE, STREAM).keys(&[key(2, RW | UPDATE)]).docs(
                &docs(Group::Stream, "5.0.0", "O(1)", "Sets up to which entry a group has read.")
                    .history(&[("7.0.0", "`ENTRIESREAD`.")])
                    .arguments(&[
                        key_argument("key", 0),
                        string("group"),
                        one_of("id-selector", &[string("id"), token("new-id", "$")]),
                        integer("entriesread").after("ENTRIESREAD").display("entries-read").optional(),
                    ]),
            ),
        ]),
    row(Xinfo, "xinfo", -2, NONE, IMPLIED)
        .docs(&docs(Group::Stream, "5.0.0", "That of the subcommand.", "Looks at streams and consumer groups."))
        .subcommands(&[
            row(XinfoConsumers, "xinfo|consumers", 4, READONLY, STREAM)
                .keys(&[key(2, RO | ACCESS)])
                .tips(&["nondeterministic_output"])
                .docs(
                    &docs(Group::Stream, "5.0.0", "O(1)", "Describes the consumers of a group.")
                        .history(&[("7.2.0", "Field `inactive`.")])
                        .arguments(&[key_argument("key", 0), string("group")]),
                ),
            row(XinfoGroups, "xinfo|groups", 3, READONLY, STREAM).keys(&[key(2, RO | ACCESS)]).docs(
                &docs(Group::Stream, "5.0.0", "O(1)", "Describes the consumer groups of a stream.")
                    .history(&[("7.0.0", "Fields `entries-read` and `lag`.")])
                    .arguments(&[key_argument("key", 0)]),
            ),
            row(XinfoHelp, "xinfo|help", 2, LOADING | STALE, STREAM).docs(&docs(
                Group::Stream,
                "5.0.0",
                "O(1)",
                "Explains the subcommands.",
            )),
            row(XinfoStream, "xinfo|stream", -3, READONLY, STREAM).keys(&[key(2, RO | ACCESS)]).docs(
                &docs(Group::Stream, "5.0.0", "O(1)", "Describes a stream.")
                    .history(&[
                        ("6.0.0", "`FULL`."),
                        (
                            "7.0.0",
                            "Fields `max-deleted-entry-id`, `entries-added`, \
                     `recorded-first-entry-id`, `entries-read` and `lag`.",
                        ),
                        ("7.2.0", "Field `active-time`; `seen-time` means something else now."),
                    ])
                    .arguments(&[
                        key_argument("key", 0),
                        block("full-block", &[token("full", "FULL"), integer("count").after("COUNT").optional()])
                            .optional(),
                    ]),
            ),
        ]),
    row(Xlen, "xlen", 2, READONLY | FAST, STREAM).keys(&[key(1, RO)]).docs(
        &docs(Group::Stream, "5.0.0", "O(1)", "Counts the entries of a stream.").arguments(&[key_argument("key", 0)]),
    ),
    row(Xpending, "xpending", -3, READONLY, STREAM)
        .keys(&[key(1, RO | ACCESS)])
        .tips(&["nondeterministic_output"])
        .docs(
            &docs(
                Group::Stream,
                "5.0.0",
                "O(N), N: entries returned; with IDLE O(M), M: entries looked at; the \
                     summary is O(1) for a few consumers, else O(N), N: consumers.",
                "Shows which entries a group has not yet marked as done.",
            )
            .history(&[("6.2.0", "`IDLE`, and ranges without their ends.")])
            .arguments(&[
                key_argument("key", 0),
                string("group"),
                block(
                    "filters",
                    &[
                        integer("min-idle-time").after("IDLE").since("6.2.0").optional(),
                        string("start"),
                        string("end"),
                        integer("count"),
                        string("consumer").optional(),
                    ],
                )
                .optional(),
            ]),
        ),
    row(Xrange, "xrange", -4, READONLY, STREAM).keys(&[key(1, RO | ACCESS)]).docs(
        &docs(
            Group::Stream,
            "5.0.0",
            "O(N), N: entries returned; O(1) if COUNT is fixed.",
            "Returns the entries of a range of IDs.",
        )
        .history(&[("6.2.0", "Ranges without their ends.")])
        .arguments(&[
            key_argument("key", 0),
            string("start"),
            string("end"),
            integer("count").after("COUNT").optional(),
        ]),
    ),
    row(Xread, "xread", -4, BLOCKING | READONLY | BLOCKING, STREAM)
        .keys(&[keys_after("STREAMS", 1, 2, RO | ACCESS)])
        .get_keys(GetKeys::XRead)
        .docs(
            &docs(Group::Stream, "5.0.0", "", "Returns entries behind given IDs, and waits for new ones if asked.")
                .arguments(&[
                    integer("count").after("COUNT").optional(),
                    integer("milliseconds").after("BLOCK").optional(),
                    block("streams", &[key_argument("key", 0).multiple(), string("id").multiple()]).after("STREAMS"),
                ]),
        ),
    row(Xreadgroup, "xreadgroup", -7, BLOCKING | WRITE, STREAM)
        .keys(&[keys_after("STREAMS", 4, 2, RO | ACCESS)])
        .get_keys(GetKeys::XRead)
        .docs(
            &docs(
                Group::Stream,
                "5.0.0",
                "O(M) for each stream, M: entries returned, O(1) if COUNT is fixed; \
                     while N clients wait, XADD needs O(N) to serve them.",
                "Returns entries to a consumer of a group, and waits for new ones if \
                     asked.",
            )
            .arguments(&[
                block("group-block", &[string("group"), string("consumer")]).after("GROUP"),
                integer("count").after("COUNT").optional(),
                integer("milliseconds").after("BLOCK").optional(),
                token("noack", "NOACK").optional(),
                block("streams", &[key_argument("key", 0).multiple(), string("id").multiple()]).after("STREAMS"),
            ]),
        ),
    row(Xrevrange, "xrevrange", -4, READONLY, STREAM).keys(&[key(1, RO | ACCESS)]).docs(
        &docs(
            Group::Stream,
            "5.0.0",
            "O(N), N: entries returned; O(1) if COUNT is fixed.",
            "Returns the entries of a range of IDs, newest first.",
        )
        .history(&[("6.2.0", "Ranges without their ends.")])
        .arguments(&[
            key_argument("key", 0),
            string("end"),
            string("start"),
            integer("count").after("COUNT").optional(),
        ]),
    ),
    row(Xsetid, "xsetid", -3, WRITE | DENYOOM | FAST, STREAM).keys(&[key(1, RW | UPDATE)]).docs(
        &docs(Group::Stream, "5.0.0", "O(1)", "Sets the last ID of a stream; replication uses it.")
            .history(&[("7.0.0", "`ENTRIESADDED` and `MAXDELETEDID`.")])
            .arguments(&[
                key_argument("key", 0),
                string("last-id"),
                integer("entries-added").after("ENTRIESADDED").since("7.0.0").optional(),
                string("max-deleted-id").after("MAXDELETEDID").since("7.0.0").optional(),
            ]),
    ),
    row(Xtrim, "xtrim", -4, WRITE, STREAM).keys(&[key(1, RW | DELETE)]).tips(&["nondeterministic_output"]).docs(
        &docs(
            Group::Stream,
            "5.0.0",
            "O(N), N: entries removed, and fast, as many entries share one \
                     allocation.",
            "Removes the oldest entries of a stream.",
        )
        .history(&[("6.2.0", "`MINID` and `LIMIT`.")])
        .arguments(&[
            key_argument("key", 0),
            block(
                "trim",
                &[
                    one_of("strategy", &[token("maxlen", "MAXLEN"), token("minid", "MINID").since("6.2.0")]),
                    one_of("operator", &[token("equal", "="), token("approximately", "~")]).optional(),
                    string("threshold"),
                    integer("count").after("LIMIT").since("6.2.0").optional(),
                ],
            ),
        ]),
    ),
];
