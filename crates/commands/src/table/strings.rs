//! Strings.

use super::id::CommandId::{
    Append, Decr, Decrby, Get, Getdel, Getex, Getrange, Getset, Incr, Incrby, Incrbyfloat, Lcs,
    Mget, Mset, Msetnx, Psetex, Set, Setex, Setnx, Setrange, Strlen, Substr,
};
use super::row::category::STRING;
use super::row::flag::{DENYOOM, FAST, READONLY, WRITE};
use super::row::usage::{ACCESS, DELETE, INSERT, OW, RO, RW, UPDATE, VARIABLE_FLAGS};
use super::row::{key, key_range, key_value_pairs, row};
use super::spec::{CommandSpec, GetKeys};

pub(super) static ROWS: [CommandSpec; 22] = [
    row(Append, "append", 3, WRITE | DENYOOM | FAST, STRING).keys(&[key(1, RW | INSERT)]),
    row(Decr, "decr", 2, WRITE | DENYOOM | FAST, STRING).keys(&[key(1, RW | ACCESS | UPDATE)]),
    row(Decrby, "decrby", 3, WRITE | DENYOOM | FAST, STRING).keys(&[key(1, RW | ACCESS | UPDATE)]),
    row(Get, "get", 2, READONLY | FAST, STRING).keys(&[key(1, RO | ACCESS)]),
    row(Getdel, "getdel", 2, WRITE | FAST, STRING).keys(&[key(1, RW | ACCESS | DELETE)]),
    row(Getex, "getex", -2, WRITE | FAST, STRING).keys(&[key(1, RW | ACCESS | UPDATE).notes("?")]),
    row(Getrange, "getrange", 4, READONLY, STRING).keys(&[key(1, RO | ACCESS)]),
    row(Getset, "getset", 3, WRITE | DENYOOM | FAST, STRING).keys(&[key(1, RW | ACCESS | UPDATE)]),
    row(Incr, "incr", 2, WRITE | DENYOOM | FAST, STRING).keys(&[key(1, RW | ACCESS | UPDATE)]),
    row(Incrby, "incrby", 3, WRITE | DENYOOM | FAST, STRING).keys(&[key(1, RW | ACCESS | UPDATE)]),
    row(
        Incrbyfloat,
        "incrbyfloat",
        3,
        WRITE | DENYOOM | FAST,
        STRING,
    )
    .keys(&[key(1, RW | ACCESS | UPDATE)]),
    row(Lcs, "lcs", -3, READONLY, STRING).keys(&[key_range(1, 1, RO | ACCESS)]),
    row(Mget, "mget", -2, READONLY | FAST, STRING)
        .keys(&[key_range(1, -1, RO | ACCESS)])
        .tips(&["request_policy:multi_shard"]),
    row(Mset, "mset", -3, WRITE | DENYOOM, STRING)
        .keys(&[key_value_pairs(1, OW | UPDATE)])
        .tips(&[
            "request_policy:multi_shard",
            "response_policy:all_succeeded",
        ]),
    row(Msetnx, "msetnx", -3, WRITE | DENYOOM, STRING).keys(&[key_value_pairs(1, OW | INSERT)]),
    row(Psetex, "psetex", 4, WRITE | DENYOOM, STRING).keys(&[key(1, OW | UPDATE)]),
    row(Set, "set", -3, WRITE | DENYOOM, STRING)
        .keys(&[key(1, RW | ACCESS | UPDATE | VARIABLE_FLAGS).notes("?")])
        .get_keys(GetKeys::Set),
    row(Setex, "setex", 4, WRITE | DENYOOM, STRING).keys(&[key(1, OW | UPDATE)]),
    row(Setnx, "setnx", 3, WRITE | DENYOOM | FAST, STRING).keys(&[key(1, OW | INSERT)]),
    row(Setrange, "setrange", 4, WRITE | DENYOOM, STRING).keys(&[key(1, RW | UPDATE)]),
    row(Strlen, "strlen", 2, READONLY | FAST, STRING).keys(&[key(1, RO)]),
    row(Substr, "substr", 4, READONLY, STRING).keys(&[key(1, RO | ACCESS)]),
];
