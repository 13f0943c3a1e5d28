//! Keys of any type.

use super::docs::{Group, block, docs, integer, key_argument, one_of, pattern, string, token, unix_time};
use super::id::CommandId::{
    Copy, Del, Dump, Exists, Expire, Expireat, Expiretime, Keys, Migrate, Move, Object, ObjectEncoding, ObjectFreq,
    ObjectHelp, ObjectIdletime, ObjectRefcount, Persist, Pexpire, Pexpireat, Pexpiretime, Pttl, Randomkey, Rename,
    Renamenx, Restore, Scan, Sort, SortRo, Touch, Ttl, Type, Unlink, Wait, Waitaof,
};
use super::row::category::{CONNECTION, DANGEROUS, IMPLIED, KEYSPACE, LIST, SET, SORTEDSET};
use super::row::flag::{DENYOOM, FAST, LOADING, NONE, NOSCRIPT, READONLY, STALE, TOUCHES_ARBITRARY_KEYS, WRITE};
use super::row::usage::{ACCESS, DELETE, INCOMPLETE, INSERT, OW, RM, RO, RW, UPDATE};
use super::row::{key, key_range, keys_after, row, unknown_keys};
use super::spec::{CommandSpec, GetKeys};

pub(super) static ROWS: [CommandSpec; 29] = [
    row(Copy, "copy", -3, WRITE | DENYOOM, KEYSPACE).keys(&[key(1, RO | ACCESS), key(2, OW | UPDATE)]).docs(
        &docs(
            Group::Generic,
            "6.2.0",
            "O(1) for a string; O(N) at worst for others, N: elements.",
            "Copies a value to another key.",
        )
        .arguments(&[
            key_argument("source", 0),
            key_argument("destination", 1),
            integer("destination-db").after("DB").optional(),
            token("replace", "REPLACE").optional(),
        ]),
    ),
    row(Del, "del", -2, WRITE, KEYSPACE)
        .keys(&[key_range(1, -1, RM | DELETE)])
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"])
        .docs(
            &docs(
                Group::Generic,
                "1.0.0",
                "O(N), N: keys; for a key that is no string O(M) in addition, M: its \
                     elements.",
                "Removes keys.",
            )
            .arguments(&[key_argument("key", 0).multiple()]),
        ),
    row(Dump, "dump", 2, READONLY, KEYSPACE).keys(&[key(1, RO | ACCESS)]).tips(&["nondeterministic_output"]).docs(
        &docs(
            Group::Generic,
            "2.6.0",
            "O(1) to find the key, O(N*M) to write it out, N: elements, M: their \
                     average size; O(1) for small strings.",
            "Returns a value as bytes that RESTORE takes.",
        )
        .arguments(&[key_argument("key", 0)]),
    ),
    row(Exists, "exists", -2, READONLY | FAST, KEYSPACE)
        .keys(&[key_range(1, -1, RO)])
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"])
        .docs(
            &docs(Group::Generic, "1.0.0", "O(N), N: keys.", "Counts how many of the named keys exist.")
                .history(&[("3.0.3", "Takes several keys.")])
                .arguments(&[key_argument("key", 0).multiple()]),
        ),
    row(Expire, "expire", -3, WRITE | FAST, KEYSPACE).keys(&[key(1, RW | UPDATE)]).docs(
        &docs(Group::Generic, "1.0.0", "O(1)", "Lets a key die in so many seconds.")
            .history(&[("7.0.0", "`NX`, `XX`, `GT` and `LT`.")])
            .arguments(&[
                key_argument("key", 0),
                integer("seconds"),
                one_of("condition", &[token("nx", "NX"), token("xx", "XX"), token("gt", "GT"), token("lt", "LT")])
                    .since("7.0.0")
                    .optional(),
            ]),
    ),
    row(Expireat, "expireat", -3, WRITE | FAST, KEYSPACE).keys(&[key(1, RW | UPDATE)]).docs(
        &docs(Group::Generic, "1.2.0", "O(1)", "Lets a key die at a second of Unix time.")
            .history(&[("7.0.0", "`NX`, `XX`, `GT` and `LT`.")])
            .arguments(&[
                key_argument("key", 0),
                unix_time("unix-time-seconds"),
                one_of("condition", &[token("nx", "NX"), token("xx", "XX"), token("gt", "GT"), token("lt", "LT")])
                    .since("7.0.0")
                    .optional(),
            ]),
    ),
    row(Expiretime, "expiretime", 2, READONLY | FAST, KEYSPACE).keys(&[key(1, RO | ACCESS)]).docs(
        &docs(Group::Generic, "7.0.0", "O(1)", "Shows the second of Unix time at which a key dies.")
            .arguments(&[key_argument("key", 0)]),
    ),
    row(Keys, "keys", 2, READONLY, KEYSPACE | DANGEROUS)
        .tips(&["request_policy:all_shards", "nondeterministic_output_order"])
        .docs(
            &docs(
                Group::Generic,
                "1.0.0",
                "O(N), N: keys of the database; names and pattern are taken as short.",
                "Names all keys that match a pattern.",
            )
            .arguments(&[pattern("pattern")]),
        ),
    row(Migrate, "migrate", -6, WRITE, KEYSPACE | DANGEROUS)
        .keys(&[key(3, RW | ACCESS | DELETE), keys_after("KEYS", -2, 0, RW | ACCESS | DELETE | INCOMPLETE)])
        .get_keys(GetKeys::Migrate)
        .tips(&["nondeterministic_output"])
        .docs(
            &docs(
                Group::Generic,
                "2.6.0",
                "That of DUMP and DEL here and of RESTORE there, and O(N) to send N \
                     bytes.",
                "Moves keys to another server in one step.",
            )
            .history(&[
                ("3.0.0", "`COPY` and `REPLACE`."),
                ("3.0.6", "`KEYS`."),
                ("4.0.7", "`AUTH`."),
                ("6.0.0", "`AUTH2`."),
            ])
            .arguments(&[
                string("host"),
                integer("port"),
                one_of("key-selector", &[key_argument("key", 0), token("empty-string", "\"\"")]),
                integer("destination-db"),
                integer("timeout"),
                token("copy", "COPY").since("3.0.0").optional(),
                token("replace", "REPLACE").since("3.0.0").optional(),
                one_of(
                    "authentication",
                    &[
                        string("auth").after("AUTH").display("password").since("4.0.7"),
                        block("auth2", &[string("username"), string("password")]).after("AUTH2").since("6.0.0"),
                    ],
                )
                .optional(),
                key_argument("keys", 1).after("KEYS").display("key").since("3.0.6").optional().multiple(),
            ]),
        ),
    row(Move, "move", 3, WRITE | FAST, KEYSPACE).keys(&[key(1, RW | ACCESS | UPDATE)]).docs(
        &docs(Group::Generic, "1.0.0", "O(1)", "Moves a key to another database.")
            .arguments(&[key_argument("key", 0), integer("db")]),
    ),
    row(Object, "object", -2, NONE, IMPLIED)
        .docs(&docs(Group::Generic, "2.2.3", "That of the subcommand.", "Looks at how a value is kept."))
        .subcommands(&[
            row(ObjectEncoding, "object|encoding", 3, READONLY, KEYSPACE)
                .keys(&[key(2, RO)])
                .tips(&["nondeterministic_output"])
                .docs(
                    &docs(Group::Generic, "2.2.3", "O(1)", "Names a value's internal encoding.")
                        .arguments(&[key_argument("key", 0)]),
                ),
            row(ObjectFreq, "object|freq", 3, READONLY, KEYSPACE)
                .keys(&[key(2, RO)])
                .tips(&["nondeterministic_output"])
                .docs(
                    &docs(Group::Generic, "4.0.0", "O(1)", "Shows how often a key is used, on a logarithmic scale.")
                        .arguments(&[key_argument("key", 0)]),
                ),
            row(ObjectHelp, "object|help", 2, LOADING | STALE, KEYSPACE).docs(&docs(
                Group::Generic,
                "6.2.0",
                "O(1)",
                "Explains the subcommands.",
            )),
            row(ObjectIdletime, "object|idletime", 3, READONLY, KEYSPACE)
                .keys(&[key(2, RO)])
                .tips(&["nondeterministic_output"])
                .docs(
                    &docs(Group::Generic, "2.2.3", "O(1)", "Shows for how many seconds a key has not been used.")
                        .arguments(&[key_argument("key", 0)]),
                ),
            row(ObjectRefcount, "object|refcount", 3, READONLY, KEYSPACE)
                .keys(&[key(2, RO)])
                .tips(&["nondeterministic_output"])
                .docs(
                    &docs(Group::Generic, "2.2.3", "O(1)", "Shows how many references a value has.")
                        .arguments(&[key_argument("key", 0)]),
                ),
        ]),
    row(Persist, "persist", 2, WRITE | FAST, KEYSPACE).keys(&[key(1, RW | UPDATE)]).docs(
        &docs(Group::Generic, "2.2.0", "O(1)", "Lets a key live for ever again.").arguments(&[key_argument("key", 0)]),
    ),
    row(Pexpire, "pexpire", -3, WRITE | FAST, KEYSPACE).keys(&[key(1, RW | UPDATE)]).docs(
        &docs(Group::Generic, "2.6.0", "O(1)", "Lets a key die in so many milliseconds.")
            .history(&[("7.0.0", "`NX`, `XX`, `GT` and `LT`.")])
            .arguments(&[
                key_argument("key", 0),
                integer("milliseconds"),
                one_of("condition", &[token("nx", "NX"), token("xx", "XX"), token("gt", "GT"), token("lt", "LT")])
                    .since("7.0.0")
                    .optional(),
            ]),
    ),
    row(Pexpireat, "pexpireat", -3, WRITE | FAST, KEYSPACE).keys(&[key(1, RW | UPDATE)]).docs(
        &docs(Group::Generic, "2.6.0", "O(1)", "Lets a key die at a millisecond of Unix time.")
            .history(&[("7.0.0", "`NX`, `XX`, `GT` and `LT`.")])
            .arguments(&[
                key_argument("key", 0),
                unix_time("unix-time-milliseconds"),
                one_of("condition", &[token("nx", "NX"), token("xx", "XX"), token("gt", "GT"), token("lt", "LT")])
                    .since("7.0.0")
                    .optional(),
            ]),
    ),
    row(Pexpiretime, "pexpiretime", 2, READONLY | FAST, KEYSPACE).keys(&[key(1, RO | ACCESS)]).docs(
        &docs(Group::Generic, "7.0.0", "O(1)", "Shows the millisecond of Unix time at which a key dies.")
            .arguments(&[key_argument("key", 0)]),
    ),
    row(Pttl, "pttl", 2, READONLY | FAST, KEYSPACE)
        .keys(&[key(1, RO | ACCESS)])
        .tips(&["nondeterministic_output"])
        .docs(
            &docs(Group::Generic, "2.6.0", "O(1)", "Shows in how many milliseconds a key dies.")
                .history(&[("2.8.0", "Answers -2 for a key that does not exist.")])
                .arguments(&[key_argument("key", 0)]),
        ),
    row(Randomkey, "randomkey", 1, READONLY | TOUCHES_ARBITRARY_KEYS, KEYSPACE)
        .tips(&["request_policy:all_shards", "response_policy:special", "nondeterministic_output"])
        .docs(&docs(Group::Generic, "1.0.0", "O(1)", "Names a key picked at random.")),
    row(Rename, "rename", 3, WRITE, KEYSPACE).keys(&[key(1, RW | ACCESS | DELETE), key(2, OW | UPDATE)]).docs(
        &docs(Group::Generic, "1.0.0", "O(1)", "Renames a key and replaces whatever has the new name.")
            .arguments(&[key_argument("key", 0), key_argument("newkey", 1)]),
    ),
    row(Renamenx, "renamenx", 3, WRITE | FAST, KEYSPACE)
        .keys(&[key(1, RW | ACCESS | DELETE), key(2, OW | INSERT)])
        .docs(
            &docs(Group::Generic, "1.0.0", "O(1)", "Renames a key unless the new name exists.")
                .history(&[("3.2.0", "Equal names are no error any more.")])
                .arguments(&[key_argument("key", 0), key_argument("newkey", 1)]),
        ),
    row(Restore, "restore", -4, WRITE | DENYOOM, KEYSPACE | DANGEROUS).keys(&[key(1, OW | UPDATE)]).docs(
        &docs(
            Group::Generic,
            "2.6.0",
            "O(1) to make the key, O(N*M) to read the value, N: elements, M: \
                     their average size; O(1) for small strings, O(N*M*log(N)) for sorted \
                     sets.",
            "Makes a key from the bytes of DUMP.",
        )
        .history(&[("3.0.0", "`REPLACE`."), ("5.0.0", "`ABSTTL`."), ("5.0.0", "`IDLETIME` and `FREQ`.")])
        .arguments(&[
            key_argument("key", 0),
            integer("ttl"),
            string("serialized-value"),
            token("replace", "REPLACE").since("3.0.0").optional(),
            token("absttl", "ABSTTL").since("5.0.0").optional(),
            integer("seconds").after("IDLETIME").since("5.0.0").optional(),
            integer("frequency").after("FREQ").since("5.0.0").optional(),
        ]),
    ),
    row(Scan, "scan", -2, READONLY | TOUCHES_ARBITRARY_KEYS, KEYSPACE)
        .tips(&["nondeterministic_output", "request_policy:special", "response_policy:special"])
        .docs(
            &docs(
                Group::Generic,
                "2.8.0",
                "O(1) for a step, O(N) for a whole walk, N: elements.",
                "Walks over the keys of a database in small steps.",
            )
            .history(&[("6.0.0", "`TYPE`.")])
            .arguments(&[
                integer("cursor"),
                pattern("pattern").after("MATCH").optional(),
                integer("count").after("COUNT").optional(),
                string("type").after("TYPE").since("6.0.0").optional(),
            ]),
        ),
    row(Sort, "sort", -2, WRITE | DENYOOM, SET | SORTEDSET | LIST | DANGEROUS)
        .keys(&[
            key(1, RO | ACCESS),
            unknown_keys(RO | ACCESS).notes("Keys of BY and GET: their names come from the sorted elements"),
            unknown_keys(OW | UPDATE).notes("Key of STORE, which may stand anywhere among the options"),
        ])
        .get_keys(GetKeys::Sort)
        .docs(
            &docs(
                Group::Generic,
                "1.0.0",
                "O(N+M*log(M)), N: elements to sort, M: elements returned; O(N) if \
                     nothing is sorted.",
                "Sorts a list, a set or a sorted set, and stores the outcome if asked.",
            )
            .arguments(&[
                key_argument("key", 0),
                pattern("by-pattern").after("BY").display("pattern").key_spec(1).optional(),
                block("limit", &[integer("offset"), integer("count")]).after("LIMIT").optional(),
                pattern("get-pattern").after("GET").display("pattern").key_spec(1).optional().multiple_token(),
                one_of("order", &[token("asc", "ASC"), token("desc", "DESC")]).optional(),
                token("sorting", "ALPHA").optional(),
                key_argument("destination", 2).after("STORE").optional(),
            ]),
        ),
    row(SortRo, "sort_ro", -2, READONLY, SET | SORTEDSET | LIST | DANGEROUS)
        .keys(&[
            key(1, RO | ACCESS),
            unknown_keys(RO | ACCESS).notes("Keys of BY and GET: their names come from the sorted elements"),
        ])
        .get_keys(GetKeys::SortRo)
        .docs(
            &docs(
                Group::Generic,
                "7.0.0",
                "O(N+M*log(M)), N: elements to sort, M: elements returned; O(N) if \
                     nothing is sorted.",
                "Sorts a list, a set or a sorted set.",
            )
            .arguments(&[
                key_argument("key", 0),
                pattern("by-pattern").after("BY").display("pattern").key_spec(1).optional(),
                block("limit", &[integer("offset"), integer("count")]).after("LIMIT").optional(),
                pattern("get-pattern").after("GET").display("pattern").key_spec(1).optional().multiple_token(),
                one_of("order", &[token("asc", "ASC"), token("desc", "DESC")]).optional(),
                token("sorting", "ALPHA").optional(),
            ]),
        ),
    row(Touch, "touch", -2, READONLY | FAST, KEYSPACE)
        .keys(&[key_range(1, -1, RO)])
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"])
        .docs(
            &docs(Group::Generic, "3.2.1", "O(N), N: keys.", "Counts as a use of keys, and tells how many exist.")
                .arguments(&[key_argument("key", 0).multiple()]),
        ),
    row(Ttl, "ttl", 2, READONLY | FAST, KEYSPACE).keys(&[key(1, RO | ACCESS)]).tips(&["nondeterministic_output"]).docs(
        &docs(Group::Generic, "1.0.0", "O(1)", "Shows in how many seconds a key dies.")
            .history(&[("2.8.0", "Answers -2 for a key that does not exist.")])
            .arguments(&[key_argument("key", 0)]),
    ),
    row(Type, "type", 2, READONLY | FAST, KEYSPACE).keys(&[key(1, RO)]).docs(
        &docs(Group::Generic, "1.0.0", "O(1)", "Names the type of a value.").arguments(&[key_argument("key", 0)]),
    ),
    row(Unlink, "unlink", -2, WRITE | FAST, KEYSPACE)
        .keys(&[key_range(1, -1, RM | DELETE)])
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"])
        .docs(
            &docs(
                Group::Generic,
                "4.0.0",
                "O(1) for each key; a background thread then needs O(N), N: \
                     allocations of the values.",
                "Removes keys; large values are freed in the background.",
            )
            .arguments(&[key_argument("key", 0).multiple()]),
        ),
    row(Wait, "wait", 3, NONE, CONNECTION).tips(&["request_policy:all_shards", "response_policy:agg_min"]).docs(
        &docs(Group::Generic, "3.0.0", "O(1)", "Waits until so many replicas have this connection's writes.")
            .arguments(&[integer("numreplicas"), integer("timeout")]),
    ),
    row(Waitaof, "waitaof", 4, NOSCRIPT, CONNECTION)
        .tips(&["request_policy:all_shards", "response_policy:agg_min"])
        .docs(
            &docs(
                Group::Generic,
                "7.2.0",
                "O(1)",
                "Waits until this connection's writes are in append-only files, here \
                     or at replicas.",
            )
            .arguments(&[integer("numlocal"), integer("numreplicas"), integer("timeout")]),
        ),
];
