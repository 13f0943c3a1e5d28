//! Sets.

use super::id::CommandId::{
    Sadd, Scard, Sdiff, Sdiffstore, Sinter, Sintercard, Sinterstore, Sismember, Smembers,
    Smismember, Smove, Spop, Srandmember, Srem, Sscan, Sunion, Sunionstore,
};
use super::row::category::SET;
use super::row::flag::{DENYOOM, FAST, READONLY, WRITE};
use super::row::usage::{ACCESS, DELETE, INSERT, OW, RO, RW, UPDATE};
use super::row::{counted_keys, key, key_range, row};
use super::spec::{CommandSpec, GetKeys};

pub(super) static ROWS: [CommandSpec; 17] = [
    row(Sadd, "sadd", -3, WRITE | DENYOOM | FAST, SET).keys(&[key(1, RW | INSERT)]),
    row(Scard, "scard", 2, READONLY | FAST, SET).keys(&[key(1, RO)]),
    row(Sdiff, "sdiff", -2, READONLY, SET)
        .keys(&[key_range(1, -1, RO | ACCESS)])
        .tips(&["nondeterministic_output_order"]),
    row(Sdiffstore, "sdiffstore", -3, WRITE | DENYOOM, SET)
        .keys(&[key(1, OW | UPDATE), key_range(2, -1, RO | ACCESS)]),
    row(Sinter, "sinter", -2, READONLY, SET)
        .keys(&[key_range(1, -1, RO | ACCESS)])
        .tips(&["nondeterministic_output_order"]),
    row(Sintercard, "sintercard", -3, READONLY, SET)
        .keys(&[counted_keys(1, RO | ACCESS)])
        .get_keys(GetKeys::Counted {
            store_at: 0,
            count_at: 1,
            first: 2,
        }),
    row(Sinterstore, "sinterstore", -3, WRITE | DENYOOM, SET)
        .keys(&[key(1, RW | UPDATE), key_range(2, -1, RO | ACCESS)]),
    row(Sismember, "sismember", 3, READONLY | FAST, SET).keys(&[key(1, RO)]),
    row(Smembers, "smembers", 2, READONLY, SET)
        .keys(&[key(1, RO | ACCESS)])
        .tips(&["nondeterministic_output_order"]),
    row(Smismember, "smismember", -3, READONLY | FAST, SET).keys(&[key(1, RO | ACCESS)]),
    row(Smove, "smove", 4, WRITE | FAST, SET)
        .keys(&[key(1, RW | ACCESS | DELETE), key(2, RW | INSERT)]),
    row(Spop, "spop", -2, WRITE | FAST, SET)
        .keys(&[key(1, RW | ACCESS | DELETE)])
        .tips(&["nondeterministic_output"]),
    row(Srandmember, "srandmember", -2, READONLY, SET)
        .keys(&[key(1, RO | ACCESS)])
        .tips(&["nondeterministic_output"]),
    row(Srem, "srem", -3, WRITE | FAST, SET).keys(&[key(1, RW | DELETE)]),
    row(Sscan, "sscan", -3, READONLY, SET)
        .keys(&[key(1, RO | ACCESS)])
        .tips(&["nondeterministic_output"]),
    row(Sunion, "sunion", -2, READONLY, SET)
        .keys(&[key_range(1, -1, RO | ACCESS)])
        .tips(&["nondeterministic_output_order"]),
    row(Sunionstore, "sunionstore", -3, WRITE | DENYOOM, SET)
        .keys(&[key(1, OW | UPDATE), key_range(2, -1, RO | ACCESS)]),
];
