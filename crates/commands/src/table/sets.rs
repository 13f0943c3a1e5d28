//! Sets.

use super::docs::{Group, docs, integer, key_argument, pattern, string};
use super::id::CommandId::{
    Sadd, Scard, Sdiff, Sdiffstore, Sinter, Sintercard, Sinterstore, Sismember, Smembers, Smismember, Smove, Spop,
    Srandmember, Srem, Sscan, Sunion, Sunionstore,
};
use super::row::category::SET;
use super::row::flag::{DENYOOM, FAST, READONLY, WRITE};
use super::row::usage::{ACCESS, DELETE, INSERT, OW, RO, RW, UPDATE};
use super::row::{counted_keys, key, key_range, row};
use super::spec::{CommandSpec, GetKeys};

pub(super) static ROWS: [CommandSpec; 17] = [
    row(Sadd, "sadd", -3, WRITE | DENYOOM | FAST, SET).keys(&[key(1, RW | INSERT)]).docs(
        &docs(Group::Set, "1.0.0", "O(1) for each element, O(N) for N elements.", "Adds members to a set.")
            .history(&[("2.4.0", "Takes several members.")])
            .arguments(&[key_argument("key", 0), string("member").multiple()]),
    ),
    row(Scard, "scard", 2, READONLY | FAST, SET)
        .keys(&[key(1, RO)])
        .docs(&docs(Group::Set, "1.0.0", "O(1)", "Counts the members of a set.").arguments(&[key_argument("key", 0)])),
    row(Sdiff, "sdiff", -2, READONLY, SET)
        .keys(&[key_range(1, -1, RO | ACCESS)])
        .tips(&["nondeterministic_output_order"])
        .docs(
            &docs(
                Group::Set,
                "1.0.0",
                "O(N), N: members of all sets together.",
                "Returns the members of the first set that no other has.",
            )
            .arguments(&[key_argument("key", 0).multiple()]),
        ),
    row(Sdiffstore, "sdiffstore", -3, WRITE | DENYOOM, SET)
        .keys(&[key(1, OW | UPDATE), key_range(2, -1, RO | ACCESS)])
        .docs(
            &docs(
                Group::Set,
                "1.0.0",
                "O(N), N: members of all sets together.",
                "Stores the members of the first set that no other has.",
            )
            .arguments(&[key_argument("destination", 0), key_argument("key", 1).multiple()]),
        ),
    row(Sinter, "sinter", -2, READONLY, SET)
        .keys(&[key_range(1, -1, RO | ACCESS)])
        .tips(&["nondeterministic_output_order"])
        .docs(
            &docs(
                Group::Set,
                "1.0.0",
                "O(N*M) at worst, N: members of the smallest set, M: sets.",
                "Returns the members that all sets have.",
            )
            .arguments(&[key_argument("key", 0).multiple()]),
        ),
    row(Sintercard, "sintercard", -3, READONLY, SET)
        .keys(&[counted_keys(1, RO | ACCESS)])
        .get_keys(GetKeys::Counted { store_at: 0, count_at: 1, first: 2 })
        .docs(
            &docs(
                Group::Set,
                "7.0.0",
                "O(N*M) at worst, N: members of the smallest set, M: sets.",
                "Counts the members that all sets have.",
            )
            .arguments(&[
                integer("numkeys"),
                key_argument("key", 0).multiple(),
                integer("limit").after("LIMIT").optional(),
            ]),
        ),
    row(Sinterstore, "sinterstore", -3, WRITE | DENYOOM, SET)
        .keys(&[key(1, RW | UPDATE), key_range(2, -1, RO | ACCESS)])
        .docs(
            &docs(
                Group::Set,
                "1.0.0",
                "O(N*M) at worst, N: members of the smallest set, M: sets.",
                "Stores the members that all sets have.",
            )
            .arguments(&[key_argument("destination", 0), key_argument("key", 1).multiple()]),
        ),
    row(Sismember, "sismember", 3, READONLY | FAST, SET).keys(&[key(1, RO)]).docs(
        &docs(Group::Set, "1.0.0", "O(1)", "Tells whether a set has a member.")
            .arguments(&[key_argument("key", 0), string("member")]),
    ),
    row(Smembers, "smembers", 2, READONLY, SET)
        .keys(&[key(1, RO | ACCESS)])
        .tips(&["nondeterministic_output_order"])
        .docs(
            &docs(Group::Set, "1.0.0", "O(N), N: members of the set.", "Returns all members of a set.")
                .arguments(&[key_argument("key", 0)]),
        ),
    row(Smismember, "smismember", -3, READONLY | FAST, SET).keys(&[key(1, RO | ACCESS)]).docs(
        &docs(Group::Set, "6.2.0", "O(N), N: members asked for.", "Tells which of several members a set has.")
            .arguments(&[key_argument("key", 0), string("member").multiple()]),
    ),
    row(Smove, "smove", 4, WRITE | FAST, SET).keys(&[key(1, RW | ACCESS | DELETE), key(2, RW | INSERT)]).docs(
        &docs(Group::Set, "1.0.0", "O(1)", "Moves a member from one set to another.").arguments(&[
            key_argument("source", 0),
            key_argument("destination", 1),
            string("member"),
        ]),
    ),
    row(Spop, "spop", -2, WRITE | FAST, SET)
        .keys(&[key(1, RW | ACCESS | DELETE)])
        .tips(&["nondeterministic_output"])
        .docs(
            &docs(Group::Set, "1.0.0", "O(1); with a count O(N), N: the count.", "Takes members picked at random.")
                .history(&[("3.2.0", "The count.")])
                .arguments(&[key_argument("key", 0), integer("count").since("3.2.0").optional()]),
        ),
    row(Srandmember, "srandmember", -2, READONLY, SET)
        .keys(&[key(1, RO | ACCESS)])
        .tips(&["nondeterministic_output"])
        .docs(
            &docs(
                Group::Set,
                "1.0.0",
                "O(1); with a count O(N), N: the count without its sign.",
                "Returns members picked at random.",
            )
            .history(&[("2.6.0", "The count.")])
            .arguments(&[key_argument("key", 0), integer("count").since("2.6.0").optional()]),
        ),
    row(Srem, "srem", -3, WRITE | FAST, SET).keys(&[key(1, RW | DELETE)]).docs(
        &docs(Group::Set, "1.0.0", "O(N), N: members removed.", "Removes members of a set.")
            .history(&[("2.4.0", "Takes several members.")])
            .arguments(&[key_argument("key", 0), string("member").multiple()]),
    ),
    row(Sscan, "sscan", -3, READONLY, SET).keys(&[key(1, RO | ACCESS)]).tips(&["nondeterministic_output"]).docs(
        &docs(
            Group::Set,
            "2.8.0",
            "O(1) for a step, O(N) for a whole walk, N: elements.",
            "Walks over a set in small steps.",
        )
        .arguments(&[
            key_argument("key", 0),
            integer("cursor"),
            pattern("pattern").after("MATCH").optional(),
            integer("count").after("COUNT").optional(),
        ]),
    ),
    row(Sunion, "sunion", -2, READONLY, SET)
        .keys(&[key_range(1, -1, RO | ACCESS)])
        .tips(&["nondeterministic_output_order"])
        .docs(
            &docs(
                Group::Set,
                "1.0.0",
                "O(N), N: members of all sets together.",
                "Returns the members that any of the sets has.",
            )
            .arguments(&[key_argument("key", 0).multiple()]),
        ),
    row(Sunionstore, "sunionstore", -3, WRITE | DENYOOM, SET)
        .keys(&[key(1, OW | UPDATE), key_range(2, -1, RO | ACCESS)])
        .docs(
            &docs(
                Group::Set,
                "1.0.0",
                "O(N), N: members of all sets together.",
                "Stores the members that any of the sets has.",
            )
            .arguments(&[key_argument("destination", 0), key_argument("key", 1).multiple()]),
        ),
];
