//! Hashes.

use super::docs::{Group, block, docs, double, integer, key_argument, pattern, string, token};
use super::id::CommandId::{
    Hdel, Hexists, Hget, Hgetall, Hincrby, Hincrbyfloat, Hkeys, Hlen, Hmget, Hmset, Hrandfield, Hscan, Hset, Hsetnx,
    Hstrlen, Hvals,
};
use super::row::category::HASH;
use super::row::flag::{DENYOOM, FAST, READONLY, WRITE};
use super::row::usage::{ACCESS, DELETE, INSERT, RO, RW, UPDATE};
use super::row::{key, row};
use super::spec::CommandSpec;

pub(super) static ROWS: [CommandSpec; 16] = [
    row(Hdel, "hdel", -3, WRITE | FAST, HASH).keys(&[key(1, RW | DELETE)]).docs(
        &docs(Group::Hash, "2.0.0", "O(N), N: fields removed.", "Removes fields of a hash.")
            .history(&[("2.4.0", "Takes several fields.")])
            .arguments(&[key_argument("key", 0), string("field").multiple()]),
    ),
    row(Hexists, "hexists", 3, READONLY | FAST, HASH).keys(&[key(1, RO)]).docs(
        &docs(Group::Hash, "2.0.0", "O(1)", "Tells whether a hash has a field.")
            .arguments(&[key_argument("key", 0), string("field")]),
    ),
    row(Hget, "hget", 3, READONLY | FAST, HASH).keys(&[key(1, RO | ACCESS)]).docs(
        &docs(Group::Hash, "2.0.0", "O(1)", "Returns the value of a field.")
            .arguments(&[key_argument("key", 0), string("field")]),
    ),
    row(Hgetall, "hgetall", 2, READONLY, HASH)
        .keys(&[key(1, RO | ACCESS)])
        .tips(&["nondeterministic_output_order"])
        .docs(
            &docs(
                Group::Hash,
                "2.0.0",
                "O(N), N: fields of the hash.",
                "Returns all fields of a hash with their values.",
            )
            .arguments(&[key_argument("key", 0)]),
        ),
    row(Hincrby, "hincrby", 4, WRITE | DENYOOM | FAST, HASH).keys(&[key(1, RW | ACCESS | UPDATE)]).docs(
        &docs(Group::Hash, "2.0.0", "O(1)", "Adds a number to the integer in a field; a missing field counts as 0.")
            .arguments(&[key_argument("key", 0), string("field"), integer("increment")]),
    ),
    row(Hincrbyfloat, "hincrbyfloat", 4, WRITE | DENYOOM | FAST, HASH).keys(&[key(1, RW | ACCESS | UPDATE)]).docs(
        &docs(Group::Hash, "2.6.0", "O(1)", "Adds a number to the float in a field; a missing field counts as 0.")
            .arguments(&[key_argument("key", 0), string("field"), double("increment")]),
    ),
    row(Hkeys, "hkeys", 2, READONLY, HASH).keys(&[key(1, RO | ACCESS)]).tips(&["nondeterministic_output_order"]).docs(
        &docs(Group::Hash, "2.0.0", "O(N), N: fields of the hash.", "Returns all fields of a hash.")
            .arguments(&[key_argument("key", 0)]),
    ),
    row(Hlen, "hlen", 2, READONLY | FAST, HASH)
        .keys(&[key(1, RO)])
        .docs(&docs(Group::Hash, "2.0.0", "O(1)", "Counts the fields of a hash.").arguments(&[key_argument("key", 0)])),
    row(Hmget, "hmget", -3, READONLY | FAST, HASH).keys(&[key(1, RO | ACCESS)]).docs(
        &docs(Group::Hash, "2.0.0", "O(N), N: fields asked for.", "Returns the values of several fields.")
            .arguments(&[key_argument("key", 0), string("field").multiple()]),
    ),
    row(Hmset, "hmset", -4, WRITE | DENYOOM | FAST, HASH).keys(&[key(1, RW | UPDATE)]).docs(
        &docs(Group::Hash, "2.0.0", "O(N), N: fields set.", "Sets several fields.")
            .deprecated("4.0.0", "`HSET` with multiple field-value pairs")
            .arguments(&[key_argument("key", 0), block("data", &[string("field"), string("value")]).multiple()]),
    ),
    row(Hrandfield, "hrandfield", -2, READONLY, HASH)
        .keys(&[key(1, RO | ACCESS)])
        .tips(&["nondeterministic_output"])
        .docs(&docs(Group::Hash, "6.2.0", "O(N), N: fields returned.", "Returns fields picked at random.").arguments(
            &[
                key_argument("key", 0),
                block("options", &[integer("count"), token("withvalues", "WITHVALUES").optional()]).optional(),
            ],
        )),
    row(Hscan, "hscan", -3, READONLY, HASH).keys(&[key(1, RO | ACCESS)]).tips(&["nondeterministic_output"]).docs(
        &docs(
            Group::Hash,
            "2.8.0",
            "O(1) for a step, O(N) for a whole walk, N: elements.",
            "Walks over a hash in small steps.",
        )
        .arguments(&[
            key_argument("key", 0),
            integer("cursor"),
            pattern("pattern").after("MATCH").optional(),
            integer("count").after("COUNT").optional(),
        ]),
    ),
    row(Hset, "hset", -4, WRITE | DENYOOM | FAST, HASH).keys(&[key(1, RW | UPDATE)]).docs(
        &docs(Group::Hash, "2.0.0", "O(1) for each field, O(N) for N fields.", "Sets fields of a hash.")
            .history(&[("4.0.0", "Takes several fields with their values.")])
            .arguments(&[key_argument("key", 0), block("data", &[string("field"), string("value")]).multiple()]),
    ),
    row(Hsetnx, "hsetnx", 4, WRITE | DENYOOM | FAST, HASH).keys(&[key(1, RW | INSERT)]).docs(
        &docs(Group::Hash, "2.0.0", "O(1)", "Sets a field unless it exists.").arguments(&[
            key_argument("key", 0),
            string("field"),
            string("value"),
        ]),
    ),
    row(Hstrlen, "hstrlen", 3, READONLY | FAST, HASH).keys(&[key(1, RO)]).docs(
        &docs(Group::Hash, "3.2.0", "O(1)", "Returns the length of a field's value.")
            .arguments(&[key_argument("key", 0), string("field")]),
    ),
    row(Hvals, "hvals", 2, READONLY, HASH).keys(&[key(1, RO | ACCESS)]).tips(&["nondeterministic_output_order"]).docs(
        &docs(Group::Hash, "2.0.0", "O(N), N: fields of the hash.", "Returns all values of a hash.")
            .arguments(&[key_argument("key", 0)]),
    ),
];
