//! CLIENT: this connection and the others.

use super::docs::{Group, docs, integer, one_of, string, token};
use super::id::CommandId::{
    Client, ClientCaching, ClientGetname, ClientGetredir, ClientHelp, ClientId, ClientInfo, ClientKill, ClientList,
    ClientNoEvict, ClientNoTouch, ClientPause, ClientReply, ClientSetinfo, ClientSetname, ClientTracking,
    ClientTrackinginfo, ClientUnblock, ClientUnpause,
};
use super::row::category::{CONNECTION, IMPLIED};
use super::row::flag::{ADMIN, LOADING, NOSCRIPT, SENTINEL, STALE};
use super::row::row;
use super::spec::CommandSpec;

pub(super) static ROWS: [CommandSpec; 1] = [row(Client, "client", -2, SENTINEL, IMPLIED)
    .docs(&docs(Group::Connection, "2.4.0", "That of the subcommand.", "Looks at and changes client connections."))
    .subcommands(&[
        row(ClientCaching, "client|caching", 3, NOSCRIPT | LOADING | STALE | SENTINEL, CONNECTION).docs(
            &docs(Group::Connection, "6.0.0", "O(1)", "Says whether the keys of the next command are tracked.")
                .arguments(&[one_of("mode", &[token("yes", "YES"), token("no", "NO")])]),
        ),
        row(ClientGetname, "client|getname", 2, NOSCRIPT | LOADING | STALE | SENTINEL, CONNECTION).docs(&docs(
            Group::Connection,
            "2.6.9",
            "O(1)",
            "Shows this connection's name.",
        )),
        row(ClientGetredir, "client|getredir", 2, NOSCRIPT | LOADING | STALE | SENTINEL, CONNECTION).docs(&docs(
            Group::Connection,
            "6.0.0",
            "O(1)",
            "Shows which connection gets the invalidations of this one's tracking.",
        )),
        row(ClientHelp, "client|help", 2, LOADING | STALE | SENTINEL, CONNECTION).docs(&docs(
            Group::Connection,
            "5.0.0",
            "O(1)",
            "Explains the subcommands.",
        )),
        row(ClientId, "client|id", 2, NOSCRIPT | LOADING | STALE | SENTINEL, CONNECTION).docs(&docs(
            Group::Connection,
            "5.0.0",
            "O(1)",
            "Shows this connection's number.",
        )),
        row(ClientInfo, "client|info", 2, NOSCRIPT | LOADING | STALE | SENTINEL, CONNECTION)
            .tips(&["nondeterministic_output"])
            .docs(&docs(Group::Connection, "6.2.0", "O(1)", "Describes this connection.")),
        row(ClientKill, "client|kill", -3, ADMIN | NOSCRIPT | LOADING | STALE | SENTINEL, CONNECTION).docs(
            &docs(Group::Connection, "2.4.0", "O(N), N: connections.", "Closes connections.")
                .history(&[
                    ("2.8.12", "Filters of the form option and value."),
                    ("2.8.12", "`ID`."),
                    ("3.2.0", "`TYPE master`."),
                    ("5.0.0", "`TYPE replica`; `slave` is still understood."),
                    ("6.2.0", "`LADDR`."),
                ])
                .arguments(&[one_of(
                    "filter",
                    &[
                        string("old-format").display("ip:port").deprecated_since("2.8.12"),
                        one_of(
                            "new-format",
                            &[
                                integer("client-id").after("ID").since("2.8.12").optional(),
                                one_of(
                                    "client-type",
                                    &[
                                        token("normal", "NORMAL"),
                                        token("master", "MASTER").since("3.2.0"),
                                        token("slave", "SLAVE"),
                                        token("replica", "REPLICA").since("5.0.0"),
                                        token("pubsub", "PUBSUB"),
                                    ],
                                )
                                .after("TYPE")
                                .since("2.8.12")
                                .optional(),
                                string("username").after("USER").optional(),
                                string("addr").after("ADDR").display("ip:port").optional(),
                                string("laddr").after("LADDR").display("ip:port").since("6.2.0").optional(),
                                one_of("skipme", &[token("yes", "YES"), token("no", "NO")]).after("SKIPME").optional(),
                            ],
                        )
                        .multiple(),
                    ],
                )]),
        ),
        row(ClientList, "client|list", -2, ADMIN | NOSCRIPT | LOADING | STALE | SENTINEL, CONNECTION)
            .tips(&["nondeterministic_output"])
            .docs(
                &docs(Group::Connection, "2.4.0", "O(N), N: connections.", "Describes the connections.")
                    .history(&[
                        ("2.8.12", "Field `id`."),
                        ("5.0.0", "`TYPE`."),
                        ("6.0.0", "Field `user`."),
                        ("6.2.0", "Fields `argv-mem`, `tot-mem`, `laddr` and `redir`; `ID`."),
                        ("7.0.0", "Fields `resp`, `multi-mem`, `rbs` and `rbp`."),
                        ("7.0.3", "Field `ssub`."),
                    ])
                    .arguments(&[
                        one_of(
                            "client-type",
                            &[
                                token("normal", "NORMAL"),
                                token("master", "MASTER"),
                                token("replica", "REPLICA"),
                                token("pubsub", "PUBSUB"),
                            ],
                        )
                        .after("TYPE")
                        .since("5.0.0")
                        .optional(),
                        integer("client-id").after("ID").since("6.2.0").optional().multiple(),
                    ]),
            ),
        row(ClientNoEvict, "client|no-evict", 3, ADMIN | NOSCRIPT | LOADING | STALE | SENTINEL, CONNECTION).docs(
            &docs(
                Group::Connection,
                "7.0.0",
                "O(1)",
                "Keeps this connection from being closed to free memory, or no longer.",
            )
            .arguments(&[one_of("enabled", &[token("on", "ON"), token("off", "OFF")])]),
        ),
        row(ClientNoTouch, "client|no-touch", 3, NOSCRIPT | LOADING | STALE, CONNECTION).docs(
            &docs(
                Group::Connection,
                "7.2.0",
                "O(1)",
                "Keeps this connection's commands from counting as use of keys, or no \
                     longer.",
            )
            .arguments(&[one_of("enabled", &[token("on", "ON"), token("off", "OFF")])]),
        ),
        row(ClientPause, "client|pause", -3, ADMIN | NOSCRIPT | LOADING | STALE | SENTINEL, CONNECTION).docs(
            &docs(Group::Connection, "3.0.0", "O(1)", "Holds commands back for a while.")
                .history(&[("6.2.0", "The mode: `WRITE` or `ALL`.")])
                .arguments(&[
                    integer("timeout"),
                    one_of("mode", &[token("write", "WRITE"), token("all", "ALL")]).since("6.2.0").optional(),
                ]),
        ),
        row(ClientReply, "client|reply", 3, NOSCRIPT | LOADING | STALE | SENTINEL, CONNECTION).docs(
            &docs(Group::Connection, "3.2.0", "O(1)", "Says whether this connection gets replies.")
                .arguments(&[one_of("action", &[token("on", "ON"), token("off", "OFF"), token("skip", "SKIP")])]),
        ),
        row(ClientSetinfo, "client|setinfo", 4, NOSCRIPT | LOADING | STALE | SENTINEL, CONNECTION)
            .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
            .docs(
                &docs(
                    Group::Connection,
                    "7.2.0",
                    "O(1)",
                    "Stores a fact about the client, such as the name of its library.",
                )
                .arguments(&[one_of(
                    "attr",
                    &[string("libname").after("LIB-NAME"), string("libver").after("LIB-VER")],
                )]),
            ),
        row(ClientSetname, "client|setname", 3, NOSCRIPT | LOADING | STALE | SENTINEL, CONNECTION)
            .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
            .docs(
                &docs(Group::Connection, "2.6.9", "O(1)", "Names this connection.")
                    .arguments(&[string("connection-name")]),
            ),
        row(ClientTracking, "client|tracking", -3, NOSCRIPT | LOADING | STALE | SENTINEL, CONNECTION).docs(
            &docs(
                Group::Connection,
                "6.0.0",
                "O(1); O(N) for N prefixes.",
                "Switches on or off that this connection hears of changes to keys it \
                     has read.",
            )
            .arguments(&[
                one_of("status", &[token("on", "ON"), token("off", "OFF")]),
                integer("client-id").after("REDIRECT").optional(),
                string("prefix").after("PREFIX").optional().multiple_token(),
                token("bcast", "BCAST").optional(),
                token("optin", "OPTIN").optional(),
                token("optout", "OPTOUT").optional(),
                token("noloop", "NOLOOP").optional(),
            ]),
        ),
        row(ClientTrackinginfo, "client|trackinginfo", 2, NOSCRIPT | LOADING | STALE | SENTINEL, CONNECTION)
            .docs(&docs(Group::Connection, "6.2.0", "O(1)", "Shows how tracking is set for this connection.")),
        row(ClientUnblock, "client|unblock", -3, ADMIN | NOSCRIPT | LOADING | STALE | SENTINEL, CONNECTION).docs(
            &docs(Group::Connection, "5.0.0", "O(log N), N: connections.", "Ends the wait of another connection.")
                .arguments(&[
                    integer("client-id"),
                    one_of("unblock-type", &[token("timeout", "TIMEOUT"), token("error", "ERROR")]).optional(),
                ]),
        ),
        row(ClientUnpause, "client|unpause", 2, ADMIN | NOSCRIPT | LOADING | STALE | SENTINEL, CONNECTION).docs(&docs(
            Group::Connection,
            "6.2.0",
            "O(N), N: connections held back.",
            "Lets commands go on that were held back.",
        )),
    ])];
