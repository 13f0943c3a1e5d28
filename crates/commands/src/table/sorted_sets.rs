//! Sorted sets.

use super::docs::{Group, block, docs, double, integer, key_argument, one_of, pattern, string, token};
use super::id::CommandId::{
    Bzmpop, Bzpopmax, Bzpopmin, Zadd, Zcard, Zcount, Zdiff, Zdiffstore, Zincrby, Zinter, Zintercard, Zinterstore,
    Zlexcount, Zmpop, Zmscore, Zpopmax, Zpopmin, Zrandmember, Zrange, Zrangebylex, Zrangebyscore, Zrangestore, Zrank,
    Zrem, Zremrangebylex, Zremrangebyrank, Zremrangebyscore, Zrevrange, Zrevrangebylex, Zrevrangebyscore, Zrevrank,
    Zscan, Zscore, Zunion, Zunionstore,
};
use super::row::category::SORTEDSET;
use super::row::flag::{BLOCKING, DENYOOM, FAST, READONLY, WRITE};
use super::row::usage::{ACCESS, DELETE, OW, RO, RW, UPDATE};
use super::row::{counted_keys, key, key_range, row};
use super::spec::{CommandSpec, GetKeys};

pub(super) static ROWS: [CommandSpec; 35] = [
    row(Bzmpop, "bzmpop", -5, WRITE | BLOCKING, SORTEDSET)
        .keys(&[counted_keys(2, RW | ACCESS | DELETE)])
        .get_keys(GetKeys::Counted { store_at: 0, count_at: 2, first: 3 })
        .docs(
            &docs(
                Group::SortedSet,
                "7.0.0",
                "O(K)+O(M*log(N)), K: keys, N: members of the sorted set, M: members \
                     taken.",
                "Takes members from the first sorted set that has some, and waits if \
                     none has.",
            )
            .arguments(&[
                double("timeout"),
                integer("numkeys"),
                key_argument("key", 0).multiple(),
                one_of("where", &[token("min", "MIN"), token("max", "MAX")]),
                integer("count").after("COUNT").optional(),
            ]),
        ),
    row(Bzpopmax, "bzpopmax", -3, WRITE | FAST | BLOCKING, SORTEDSET)
        .keys(&[key_range(1, -2, RW | ACCESS | DELETE)])
        .docs(
            &docs(
                Group::SortedSet,
                "5.0.0",
                "O(log(N)), N: members of the sorted set.",
                "Takes the member of highest score from the first sorted set that has \
                     one, and waits if none has.",
            )
            .history(&[("6.0.0", "The timeout may have a fraction.")])
            .arguments(&[key_argument("key", 0).multiple(), double("timeout")]),
        ),
    row(Bzpopmin, "bzpopmin", -3, WRITE | FAST | BLOCKING, SORTEDSET)
        .keys(&[key_range(1, -2, RW | ACCESS | DELETE)])
        .docs(
            &docs(
                Group::SortedSet,
                "5.0.0",
                "O(log(N)), N: members of the sorted set.",
                "Takes the member of lowest score from the first sorted set that has \
                     one, and waits if none has.",
            )
            .history(&[("6.0.0", "The timeout may have a fraction.")])
            .arguments(&[key_argument("key", 0).multiple(), double("timeout")]),
        ),
    row(Zadd, "zadd", -4, WRITE | DENYOOM | FAST, SORTEDSET).keys(&[key(1, RW | UPDATE)]).docs(
        &docs(
            Group::SortedSet,
            "1.2.0",
            "O(log(N)) for each member, N: members of the sorted set.",
            "Adds members with scores, or changes scores.",
        )
        .history(&[
            ("2.4.0", "Takes several members."),
            ("3.0.2", "`XX`, `NX`, `CH` and `INCR`."),
            ("6.2.0", "`GT` and `LT`."),
        ])
        .arguments(&[
            key_argument("key", 0),
            one_of("condition", &[token("nx", "NX"), token("xx", "XX")]).since("3.0.2").optional(),
            one_of("comparison", &[token("gt", "GT"), token("lt", "LT")]).since("6.2.0").optional(),
            token("change", "CH").since("3.0.2").optional(),
            token("increment", "INCR").since("3.0.2").optional(),
            block("data", &[double("score"), string("member")]).multiple(),
        ]),
    ),
    row(Zcard, "zcard", 2, READONLY | FAST, SORTEDSET).keys(&[key(1, RO)]).docs(
        &docs(Group::SortedSet, "1.2.0", "O(1)", "Counts the members of a sorted set.")
            .arguments(&[key_argument("key", 0)]),
    ),
    row(Zcount, "zcount", 4, READONLY | FAST, SORTEDSET).keys(&[key(1, RO | ACCESS)]).docs(
        &docs(
            Group::SortedSet,
            "2.0.0",
            "O(log(N)), N: members of the sorted set.",
            "Counts the members in a range of scores.",
        )
        .arguments(&[key_argument("key", 0), double("min"), double("max")]),
    ),
    row(Zdiff, "zdiff", -3, READONLY, SORTEDSET)
        .keys(&[counted_keys(1, RO | ACCESS)])
        .get_keys(GetKeys::Counted { store_at: 0, count_at: 1, first: 2 })
        .docs(
            &docs(
                Group::SortedSet,
                "6.2.0",
                "O(L+(N-K)log(N)) at worst, L: members of all sorted sets, N: members \
                     of the first, K: members of the outcome.",
                "Returns the members of the first sorted set that no other has.",
            )
            .arguments(&[
                integer("numkeys"),
                key_argument("key", 0).multiple(),
                token("withscores", "WITHSCORES").optional(),
            ]),
        ),
    row(Zdiffstore, "zdiffstore", -4, WRITE | DENYOOM, SORTEDSET)
        .keys(&[key(1, OW | UPDATE), counted_keys(2, RO | ACCESS)])
        .get_keys(GetKeys::Counted { store_at: 1, count_at: 2, first: 3 })
        .docs(
            &docs(
                Group::SortedSet,
                "6.2.0",
                "O(L+(N-K)log(N)) at worst, L: members of all sorted sets, N: members \
                     of the first, K: members of the outcome.",
                "Stores the members of the first sorted set that no other has.",
            )
            .arguments(&[
                key_argument("destination", 0),
                integer("numkeys"),
                key_argument("key", 1).multiple(),
            ]),
        ),
    row(Zincrby, "zincrby", 4, WRITE | DENYOOM | FAST, SORTEDSET).keys(&[key(1, RW | ACCESS | UPDATE)]).docs(
        &docs(
            Group::SortedSet,
            "1.2.0",
            "O(log(N)), N: members of the sorted set.",
            "Adds a number to the score of a member.",
        )
        .arguments(&[key_argument("key", 0), integer("increment"), string("member")]),
    ),
    row(Zinter, "zinter", -3, READONLY, SORTEDSET)
        .keys(&[counted_keys(1, RO | ACCESS)])
        .get_keys(GetKeys::Counted { store_at: 0, count_at: 1, first: 2 })
        .docs(
            &docs(
                Group::SortedSet,
                "6.2.0",
                "O(N*K)+O(M*log(M)) at worst, N: members of the smallest sorted set, \
                     K: sorted sets, M: members of the outcome.",
                "Returns the members that all sorted sets have.",
            )
            .arguments(&[
                integer("numkeys"),
                key_argument("key", 0).multiple(),
                integer("weight").after("WEIGHTS").optional().multiple(),
                one_of("aggregate", &[token("sum", "SUM"), token("min", "MIN"), token("max", "MAX")])
                    .after("AGGREGATE")
                    .optional(),
                token("withscores", "WITHSCORES").optional(),
            ]),
        ),
    row(Zintercard, "zintercard", -3, READONLY, SORTEDSET)
        .keys(&[counted_keys(1, RO | ACCESS)])
        .get_keys(GetKeys::Counted { store_at: 0, count_at: 1, first: 2 })
        .docs(
            &docs(
                Group::SortedSet,
                "7.0.0",
                "O(N*K) at worst, N: members of the smallest sorted set, K: sorted sets.",
                "Counts the members that all sorted sets have.",
            )
            .arguments(&[
                integer("numkeys"),
                key_argument("key", 0).multiple(),
                integer("limit").after("LIMIT").optional(),
            ]),
        ),
    row(Zinterstore, "zinterstore", -4, WRITE | DENYOOM, SORTEDSET)
        .keys(&[key(1, OW | UPDATE), counted_keys(2, RO | ACCESS)])
        .get_keys(GetKeys::Counted { store_at: 1, count_at: 2, first: 3 })
        .docs(
            &docs(
                Group::SortedSet,
                "2.0.0",
                "O(N*K)+O(M*log(M)) at worst, N: members of the smallest sorted set, \
                     K: sorted sets, M: members of the outcome.",
                "Stores the members that all sorted sets have.",
            )
            .arguments(&[
                key_argument("destination", 0),
                integer("numkeys"),
                key_argument("key", 1).multiple(),
                integer("weight").after("WEIGHTS").optional().multiple(),
                one_of("aggregate", &[token("sum", "SUM"), token("min", "MIN"), token("max", "MAX")])
                    .after("AGGREGATE")
                    .optional(),
            ]),
        ),
    row(Zlexcount, "zlexcount", 4, READONLY | FAST, SORTEDSET).keys(&[key(1, RO | ACCESS)]).docs(
        &docs(
            Group::SortedSet,
            "2.8.9",
            "O(log(N)), N: members of the sorted set.",
            "Counts the members between two texts.",
        )
        .arguments(&[key_argument("key", 0), string("min"), string("max")]),
    ),
    row(Zmpop, "zmpop", -4, WRITE, SORTEDSET)
        .keys(&[counted_keys(1, RW | ACCESS | DELETE)])
        .get_keys(GetKeys::Counted { store_at: 0, count_at: 1, first: 2 })
        .docs(
            &docs(
                Group::SortedSet,
                "7.0.0",
                "O(K)+O(M*log(N)), K: keys, N: members of the sorted set, M: members \
                     taken.",
                "Takes members of lowest or highest score from the first sorted set \
                     that has some.",
            )
            .arguments(&[
                integer("numkeys"),
                key_argument("key", 0).multiple(),
                one_of("where", &[token("min", "MIN"), token("max", "MAX")]),
                integer("count").after("COUNT").optional(),
            ]),
        ),
    row(Zmscore, "zmscore", -3, READONLY | FAST, SORTEDSET).keys(&[key(1, RO | ACCESS)]).docs(
        &docs(Group::SortedSet, "6.2.0", "O(N), N: members asked for.", "Returns the scores of several members.")
            .arguments(&[key_argument("key", 0), string("member").multiple()]),
    ),
    row(Zpopmax, "zpopmax", -2, WRITE | FAST, SORTEDSET).keys(&[key(1, RW | ACCESS | DELETE)]).docs(
        &docs(
            Group::SortedSet,
            "5.0.0",
            "O(log(N)*M), N: members of the sorted set, M: members taken.",
            "Takes the members of highest score.",
        )
        .arguments(&[key_argument("key", 0), integer("count").optional()]),
    ),
    row(Zpopmin, "zpopmin", -2, WRITE | FAST, SORTEDSET).keys(&[key(1, RW | ACCESS | DELETE)]).docs(
        &docs(
            Group::SortedSet,
            "5.0.0",
            "O(log(N)*M), N: members of the sorted set, M: members taken.",
            "Takes the members of lowest score.",
        )
        .arguments(&[key_argument("key", 0), integer("count").optional()]),
    ),
    row(Zrandmember, "zrandmember", -2, READONLY, SORTEDSET)
        .keys(&[key(1, RO | ACCESS)])
        .tips(&["nondeterministic_output"])
        .docs(
            &docs(Group::SortedSet, "6.2.0", "O(N), N: members returned.", "Returns members picked at random.")
                .arguments(&[
                    key_argument("key", 0),
                    block("options", &[integer("count"), token("withscores", "WITHSCORES").optional()]).optional(),
                ]),
        ),
    row(Zrange, "zrange", -4, READONLY, SORTEDSET).keys(&[key(1, RO | ACCESS)]).docs(
        &docs(
            Group::SortedSet,
            "1.2.0",
            "O(log(N)+M), N: members of the sorted set, M: members returned.",
            "Returns members by rank, score or text.",
        )
        .history(&[("6.2.0", "`REV`, `BYSCORE`, `BYLEX` and `LIMIT`.")])
        .arguments(&[
            key_argument("key", 0),
            string("start"),
            string("stop"),
            one_of("sortby", &[token("byscore", "BYSCORE"), token("bylex", "BYLEX")]).since("6.2.0").optional(),
            token("rev", "REV").since("6.2.0").optional(),
            block("limit", &[integer("offset"), integer("count")]).after("LIMIT").since("6.2.0").optional(),
            token("withscores", "WITHSCORES").optional(),
        ]),
    ),
    row(Zrangebylex, "zrangebylex", -4, READONLY, SORTEDSET).keys(&[key(1, RO | ACCESS)]).docs(
        &docs(
            Group::SortedSet,
            "2.8.9",
            "O(log(N)+M), N: members of the sorted set, M: members returned; \
                     O(log(N)) if LIMIT is fixed.",
            "Returns the members between two texts.",
        )
        .deprecated("6.2.0", "`ZRANGE` with the `BYLEX` argument")
        .arguments(&[
            key_argument("key", 0),
            string("min"),
            string("max"),
            block("limit", &[integer("offset"), integer("count")]).after("LIMIT").optional(),
        ]),
    ),
    row(Zrangebyscore, "zrangebyscore", -4, READONLY, SORTEDSET).keys(&[key(1, RO | ACCESS)]).docs(
        &docs(
            Group::SortedSet,
            "1.0.5",
            "O(log(N)+M), N: members of the sorted set, M: members returned; \
                     O(log(N)) if LIMIT is fixed.",
            "Returns the members in a range of scores.",
        )
        .deprecated("6.2.0", "`ZRANGE` with the `BYSCORE` argument")
        .history(&[("2.0.0", "`WITHSCORES`.")])
        .arguments(&[
            key_argument("key", 0),
            double("min"),
            double("max"),
            token("withscores", "WITHSCORES").since("2.0.0").optional(),
            block("limit", &[integer("offset"), integer("count")]).after("LIMIT").optional(),
        ]),
    ),
    row(Zrangestore, "zrangestore", -5, WRITE | DENYOOM, SORTEDSET)
        .keys(&[key(1, OW | UPDATE), key(2, RO | ACCESS)])
        .docs(
            &docs(
                Group::SortedSet,
                "6.2.0",
                "O(log(N)+M), N: members of the sorted set, M: members stored.",
                "Stores members by rank, score or text.",
            )
            .arguments(&[
                key_argument("dst", 0),
                key_argument("src", 1),
                string("min"),
                string("max"),
                one_of("sortby", &[token("byscore", "BYSCORE"), token("bylex", "BYLEX")]).optional(),
                token("rev", "REV").optional(),
                block("limit", &[integer("offset"), integer("count")]).after("LIMIT").optional(),
            ]),
        ),
    row(Zrank, "zrank", -3, READONLY | FAST, SORTEDSET).keys(&[key(1, RO | ACCESS)]).docs(
        &docs(Group::SortedSet, "2.0.0", "O(log(N))", "Returns the rank of a member, lowest score first.")
            .history(&[("7.2.0", "`WITHSCORE`.")])
            .arguments(&[key_argument("key", 0), string("member"), token("withscore", "WITHSCORE").optional()]),
    ),
    row(Zrem, "zrem", -3, WRITE | FAST, SORTEDSET).keys(&[key(1, RW | DELETE)]).docs(
        &docs(
            Group::SortedSet,
            "1.2.0",
            "O(M*log(N)), N: members of the sorted set, M: members removed.",
            "Removes members of a sorted set.",
        )
        .history(&[("2.4.0", "Takes several members.")])
        .arguments(&[key_argument("key", 0), string("member").multiple()]),
    ),
    row(Zremrangebylex, "zremrangebylex", 4, WRITE, SORTEDSET).keys(&[key(1, RW | DELETE)]).docs(
        &docs(
            Group::SortedSet,
            "2.8.9",
            "O(log(N)+M), N: members of the sorted set, M: members removed.",
            "Removes the members between two texts.",
        )
        .arguments(&[key_argument("key", 0), string("min"), string("max")]),
    ),
    row(Zremrangebyrank, "zremrangebyrank", 4, WRITE, SORTEDSET).keys(&[key(1, RW | DELETE)]).docs(
        &docs(
            Group::SortedSet,
            "2.0.0",
            "O(log(N)+M), N: members of the sorted set, M: members removed.",
            "Removes the members in a range of ranks.",
        )
        .arguments(&[key_argument("key", 0), integer("start"), integer("stop")]),
    ),
    row(Zremrangebyscore, "zremrangebyscore", 4, WRITE, SORTEDSET).keys(&[key(1, RW | DELETE)]).docs(
        &docs(
            Group::SortedSet,
            "1.2.0",
            "O(log(N)+M), N: members of the sorted set, M: members removed.",
            "Removes the members in a range of scores.",
        )
        .arguments(&[key_argument("key", 0), double("min"), double("max")]),
    ),
    row(Zrevrange, "zrevrange", -4, READONLY, SORTEDSET).keys(&[key(1, RO | ACCESS)]).docs(
        &docs(
            Group::SortedSet,
            "1.2.0",
            "O(log(N)+M), N: members of the sorted set, M: members returned.",
            "Returns members by rank, highest score first.",
        )
        .deprecated("6.2.0", "`ZRANGE` with the `REV` argument")
        .arguments(&[
            key_argument("key", 0),
            integer("start"),
            integer("stop"),
            token("withscores", "WITHSCORES").optional(),
        ]),
    ),
    row(Zrevrangebylex, "zrevrangebylex", -4, READONLY, SORTEDSET).keys(&[key(1, RO | ACCESS)]).docs(
        &docs(
            Group::SortedSet,
            "2.8.9",
            "O(log(N)+M), N: members of the sorted set, M: members returned; \
                     O(log(N)) if LIMIT is fixed.",
            "Returns the members between two texts, in reverse order.",
        )
        .deprecated("6.2.0", "`ZRANGE` with the `REV` and `BYLEX` arguments")
        .arguments(&[
            key_argument("key", 0),
            string("max"),
            string("min"),
            block("limit", &[integer("offset"), integer("count")]).after("LIMIT").optional(),
        ]),
    ),
    row(Zrevrangebyscore, "zrevrangebyscore", -4, READONLY, SORTEDSET).keys(&[key(1, RO | ACCESS)]).docs(
        &docs(
            Group::SortedSet,
            "2.2.0",
            "O(log(N)+M), N: members of the sorted set, M: members returned; \
                     O(log(N)) if LIMIT is fixed.",
            "Returns the members in a range of scores, highest first.",
        )
        .deprecated("6.2.0", "`ZRANGE` with the `REV` and `BYSCORE` arguments")
        .history(&[("2.1.6", "Ranges without their ends.")])
        .arguments(&[
            key_argument("key", 0),
            double("max"),
            double("min"),
            token("withscores", "WITHSCORES").optional(),
            block("limit", &[integer("offset"), integer("count")]).after("LIMIT").optional(),
        ]),
    ),
    row(Zrevrank, "zrevrank", -3, READONLY | FAST, SORTEDSET).keys(&[key(1, RO | ACCESS)]).docs(
        &docs(Group::SortedSet, "2.0.0", "O(log(N))", "Returns the rank of a member, highest score first.")
            .history(&[("7.2.0", "`WITHSCORE`.")])
            .arguments(&[key_argument("key", 0), string("member"), token("withscore", "WITHSCORE").optional()]),
    ),
    row(Zscan, "zscan", -3, READONLY, SORTEDSET).keys(&[key(1, RO | ACCESS)]).tips(&["nondeterministic_output"]).docs(
        &docs(
            Group::SortedSet,
            "2.8.0",
            "O(1) for a step, O(N) for a whole walk, N: elements.",
            "Walks over a sorted set in small steps.",
        )
        .arguments(&[
            key_argument("key", 0),
            integer("cursor"),
            pattern("pattern").after("MATCH").optional(),
            integer("count").after("COUNT").optional(),
        ]),
    ),
    row(Zscore, "zscore", 3, READONLY | FAST, SORTEDSET).keys(&[key(1, RO | ACCESS)]).docs(
        &docs(Group::SortedSet, "1.2.0", "O(1)", "Returns the score of a member.")
            .arguments(&[key_argument("key", 0), string("member")]),
    ),
    row(Zunion, "zunion", -3, READONLY, SORTEDSET)
        .keys(&[counted_keys(1, RO | ACCESS)])
        .get_keys(GetKeys::Counted { store_at: 0, count_at: 1, first: 2 })
        .docs(
            &docs(
                Group::SortedSet,
                "6.2.0",
                "O(N)+O(M*log(M)), N: members of all sorted sets together, M: members \
                     of the outcome.",
                "Returns the members that any of the sorted sets has.",
            )
            .arguments(&[
                integer("numkeys"),
                key_argument("key", 0).multiple(),
                integer("weight").after("WEIGHTS").optional().multiple(),
                one_of("aggregate", &[token("sum", "SUM"), token("min", "MIN"), token("max", "MAX")])
                    .after("AGGREGATE")
                    .optional(),
                token("withscores", "WITHSCORES").optional(),
            ]),
        ),
    row(Zunionstore, "zunionstore", -4, WRITE | DENYOOM, SORTEDSET)
        .keys(&[key(1, OW | UPDATE), counted_keys(2, RO | ACCESS)])
        .get_keys(GetKeys::Counted { store_at: 1, count_at: 2, first: 3 })
        .docs(
            &docs(
                Group::SortedSet,
                "2.0.0",
                "O(N)+O(M*log(M)), N: members of all sorted sets together, M: members \
                     of the outcome.",
                "Stores the members that any of the sorted sets has.",
            )
            .arguments(&[
                key_argument("destination", 0),
                integer("numkeys"),
                key_argument("key", 1).multiple(),
                integer("weight").after("WEIGHTS").optional().multiple(),
                one_of("aggregate", &[token("sum", "SUM"), token("min", "MIN"), token("max", "MAX")])
                    .after("AGGREGATE")
                    .optional(),
            ]),
        ),
];
