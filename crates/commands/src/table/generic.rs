//! Keys of any type.

use super::id::CommandId::{
    Copy, Del, Dump, Exists, Expire, Expireat, Expiretime, Keys, Migrate, Move, Object,
    ObjectEncoding, ObjectFreq, ObjectHelp, ObjectIdletime, ObjectRefcount, Persist, Pexpire,
    Pexpireat, Pexpiretime, Pttl, Randomkey, Rename, Renamenx, Restore, Scan, Sort, SortRo, Touch,
    Ttl, Type, Unlink, Wait, Waitaof,
};
use super::row::category::{CONNECTION, DANGEROUS, IMPLIED, KEYSPACE, LIST, SET, SORTEDSET};
use super::row::flag::{
    DENYOOM, FAST, LOADING, NONE, NOSCRIPT, READONLY, STALE, TOUCHES_ARBITRARY_KEYS, WRITE,
};
use super::row::usage::{ACCESS, DELETE, INCOMPLETE, INSERT, OW, RM, RO, RW, UPDATE};
use super::row::{key, key_range, keys_after, row, unknown_keys};
use super::spec::{CommandSpec, GetKeys};

pub(super) static ROWS: [CommandSpec; 29] = [
    row(Copy, "copy", -3, WRITE | DENYOOM, KEYSPACE)
        .keys(&[key(1, RO | ACCESS), key(2, OW | UPDATE)]),
    row(Del, "del", -2, WRITE, KEYSPACE)
        .keys(&[key_range(1, -1, RM | DELETE)])
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"]),
    row(Dump, "dump", 2, READONLY, KEYSPACE)
        .keys(&[key(1, RO | ACCESS)])
        .tips(&["nondeterministic_output"]),
    row(Exists, "exists", -2, READONLY | FAST, KEYSPACE)
        .keys(&[key_range(1, -1, RO)])
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"]),
    row(Expire, "expire", -3, WRITE | FAST, KEYSPACE).keys(&[key(1, RW | UPDATE)]),
    row(Expireat, "expireat", -3, WRITE | FAST, KEYSPACE).keys(&[key(1, RW | UPDATE)]),
    row(Expiretime, "expiretime", 2, READONLY | FAST, KEYSPACE).keys(&[key(1, RO | ACCESS)]),
    row(Keys, "keys", 2, READONLY, KEYSPACE | DANGEROUS)
        .tips(&["request_policy:all_shards", "nondeterministic_output_order"]),
    row(Migrate, "migrate", -6, WRITE, KEYSPACE | DANGEROUS)
        .keys(&[
            key(3, RW | ACCESS | DELETE),
            keys_after("KEYS", -2, 0, RW | ACCESS | DELETE | INCOMPLETE),
        ])
        .get_keys(GetKeys::Migrate)
        .tips(&["nondeterministic_output"]),
    row(Move, "move", 3, WRITE | FAST, KEYSPACE).keys(&[key(1, RW | ACCESS | UPDATE)]),
    row(Object, "object", -2, NONE, IMPLIED).subcommands(&[
        row(ObjectEncoding, "object|encoding", 3, READONLY, KEYSPACE)
            .keys(&[key(2, RO)])
            .tips(&["nondeterministic_output"]),
        row(ObjectFreq, "object|freq", 3, READONLY, KEYSPACE)
            .keys(&[key(2, RO)])
            .tips(&["nondeterministic_output"]),
        row(ObjectHelp, "object|help", 2, LOADING | STALE, KEYSPACE),
        row(ObjectIdletime, "object|idletime", 3, READONLY, KEYSPACE)
            .keys(&[key(2, RO)])
            .tips(&["nondeterministic_output"]),
        row(ObjectRefcount, "object|refcount", 3, READONLY, KEYSPACE)
            .keys(&[key(2, RO)])
            .tips(&["nondeterministic_output"]),
    ]),
    row(Persist, "persist", 2, WRITE | FAST, KEYSPACE).keys(&[key(1, RW | UPDATE)]),
    row(Pexpire, "pexpire", -3, WRITE | FAST, KEYSPACE).keys(&[key(1, RW | UPDATE)]),
    row(Pexpireat, "pexpireat", -3, WRITE | FAST, KEYSPACE).keys(&[key(1, RW | UPDATE)]),
    row(Pexpiretime, "pexpiretime", 2, READONLY | FAST, KEYSPACE).keys(&[key(1, RO | ACCESS)]),
    row(Pttl, "pttl", 2, READONLY | FAST, KEYSPACE)
        .keys(&[key(1, RO | ACCESS)])
        .tips(&["nondeterministic_output"]),
    row(
        Randomkey,
        "randomkey",
        1,
        READONLY | TOUCHES_ARBITRARY_KEYS,
        KEYSPACE,
    )
    .tips(&[
        "request_policy:all_shards",
        "response_policy:special",
        "nondeterministic_output",
    ]),
    row(Rename, "rename", 3, WRITE, KEYSPACE)
        .keys(&[key(1, RW | ACCESS | DELETE), key(2, OW | UPDATE)]),
    row(Renamenx, "renamenx", 3, WRITE | FAST, KEYSPACE)
        .keys(&[key(1, RW | ACCESS | DELETE), key(2, OW | INSERT)]),
    row(
        Restore,
        "restore",
        -4,
        WRITE | DENYOOM,
        KEYSPACE | DANGEROUS,
    )
    .keys(&[key(1, OW | UPDATE)]),
    row(
        Scan,
        "scan",
        -2,
        READONLY | TOUCHES_ARBITRARY_KEYS,
        KEYSPACE,
    )
    .tips(&[
        "nondeterministic_output",
        "request_policy:special",
        "response_policy:special",
    ]),
    row(
        Sort,
        "sort",
        -2,
        WRITE | DENYOOM,
        SET | SORTEDSET | LIST | DANGEROUS,
    )
    .keys(&[
        key(1, RO | ACCESS),
        unknown_keys(RO | ACCESS).notes("?"),
        unknown_keys(OW | UPDATE).notes("?"),
    ])
    .get_keys(GetKeys::Sort),
    row(
        SortRo,
        "sort_ro",
        -2,
        READONLY,
        SET | SORTEDSET | LIST | DANGEROUS,
    )
    .keys(&[key(1, RO | ACCESS), unknown_keys(RO | ACCESS).notes("?")])
    .get_keys(GetKeys::SortRo),
    row(Touch, "touch", -2, READONLY | FAST, KEYSPACE)
        .keys(&[key_range(1, -1, RO)])
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"]),
    row(Ttl, "ttl", 2, READONLY | FAST, KEYSPACE)
        .keys(&[key(1, RO | ACCESS)])
        .tips(&["nondeterministic_output"]),
    row(Type, "type", 2, READONLY | FAST, KEYSPACE).keys(&[key(1, RO)]),
    row(Unlink, "unlink", -2, WRITE | FAST, KEYSPACE)
        .keys(&[key_range(1, -1, RM | DELETE)])
        .tips(&["request_policy:multi_shard", "response_policy:agg_sum"]),
    row(Wait, "wait", 3, NONE, CONNECTION)
        .tips(&["request_policy:all_shards", "response_policy:agg_min"]),
    row(Waitaof, "waitaof", 4, NOSCRIPT, CONNECTION)
        .tips(&["request_policy:all_shards", "response_policy:agg_min"]),
];
