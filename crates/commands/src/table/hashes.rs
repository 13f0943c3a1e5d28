//! Hashes.

use super::id::CommandId::{
    Hdel, Hexists, Hget, Hgetall, Hincrby, Hincrbyfloat, Hkeys, Hlen, Hmget, Hmset, Hrandfield,
    Hscan, Hset, Hsetnx, Hstrlen, Hvals,
};
use super::row::category::HASH;
use super::row::flag::{DENYOOM, FAST, READONLY, WRITE};
use super::row::usage::{ACCESS, DELETE, INSERT, RO, RW, UPDATE};
use super::row::{key, row};
use super::spec::CommandSpec;

pub(super) static ROWS: [CommandSpec; 16] = [
    row(Hdel, "hdel", -3, WRITE | FAST, HASH).keys(&[key(1, RW | DELETE)]),
    row(Hexists, "hexists", 3, READONLY | FAST, HASH).keys(&[key(1, RO)]),
    row(Hget, "hget", 3, READONLY | FAST, HASH).keys(&[key(1, RO | ACCESS)]),
    row(Hgetall, "hgetall", 2, READONLY, HASH)
        .keys(&[key(1, RO | ACCESS)])
        .tips(&["nondeterministic_output_order"]),
    row(Hincrby, "hincrby", 4, WRITE | DENYOOM | FAST, HASH).keys(&[key(1, RW | ACCESS | UPDATE)]),
    row(
        Hincrbyfloat,
        "hincrbyfloat",
        4,
        WRITE | DENYOOM | FAST,
        HASH,
    )
    .keys(&[key(1, RW | ACCESS | UPDATE)]),
    row(Hkeys, "hkeys", 2, READONLY, HASH)
        .keys(&[key(1, RO | ACCESS)])
        .tips(&["nondeterministic_output_order"]),
    row(Hlen, "hlen", 2, READONLY | FAST, HASH).keys(&[key(1, RO)]),
    row(Hmget, "hmget", -3, READONLY | FAST, HASH).keys(&[key(1, RO | ACCESS)]),
    row(Hmset, "hmset", -4, WRITE | DENYOOM | FAST, HASH).keys(&[key(1, RW | UPDATE)]),
    row(Hrandfield, "hrandfield", -2, READONLY, HASH)
        .keys(&[key(1, RO | ACCESS)])
        .tips(&["nondeterministic_output"]),
    row(Hscan, "hscan", -3, READONLY, HASH)
        .keys(&[key(1, RO | ACCESS)])
        .tips(&["nondeterministic_output"]),
    row(Hset, "hset", -4, WRITE | DENYOOM | FAST, HASH).keys(&[key(1, RW | UPDATE)]),
    row(Hsetnx, "hsetnx", 4, WRITE | DENYOOM | FAST, HASH).keys(&[key(1, RW | INSERT)]),
    row(Hstrlen, "hstrlen", 3, READONLY | FAST, HASH).keys(&[key(1, RO)]),
    row(Hvals, "hvals", 2, READONLY, HASH)
        .keys(&[key(1, RO | ACCESS)])
        .tips(&["nondeterministic_output_order"]),
];
