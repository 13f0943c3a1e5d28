//! Sorted sets.

use super::id::CommandId::{
    Bzmpop, Bzpopmax, Bzpopmin, Zadd, Zcard, Zcount, Zdiff, Zdiffstore, Zincrby, Zinter,
    Zintercard, Zinterstore, Zlexcount, Zmpop, Zmscore, Zpopmax, Zpopmin, Zrandmember, Zrange,
    Zrangebylex, Zrangebyscore, Zrangestore, Zrank, Zrem, Zremrangebylex, Zremrangebyrank,
    Zremrangebyscore, Zrevrange, Zrevrangebylex, Zrevrangebyscore, Zrevrank, Zscan, Zscore, Zunion,
    Zunionstore,
};
use super::row::category::SORTEDSET;
use super::row::flag::{BLOCKING, DENYOOM, FAST, READONLY, WRITE};
use super::row::usage::{ACCESS, DELETE, OW, RO, RW, UPDATE};
use super::row::{counted_keys, key, key_range, row};
use super::spec::{CommandSpec, GetKeys};

pub(super) static ROWS: [CommandSpec; 35] = [
    row(Bzmpop, "bzmpop", -5, WRITE | BLOCKING, SORTEDSET)
        .keys(&[counted_keys(2, RW | ACCESS | DELETE)])
        .get_keys(GetKeys::Counted {
            store_at: 0,
            count_at: 2,
            first: 3,
        }),
    row(Bzpopmax, "bzpopmax", -3, WRITE | FAST | BLOCKING, SORTEDSET).keys(&[key_range(
        1,
        -2,
        RW | ACCESS | DELETE,
    )]),
    row(Bzpopmin, "bzpopmin", -3, WRITE | FAST | BLOCKING, SORTEDSET).keys(&[key_range(
        1,
        -2,
        RW | ACCESS | DELETE,
    )]),
    row(Zadd, "zadd", -4, WRITE | DENYOOM | FAST, SORTEDSET).keys(&[key(1, RW | UPDATE)]),
    row(Zcard, "zcard", 2, READONLY | FAST, SORTEDSET).keys(&[key(1, RO)]),
    row(Zcount, "zcount", 4, READONLY | FAST, SORTEDSET).keys(&[key(1, RO | ACCESS)]),
    row(Zdiff, "zdiff", -3, READONLY, SORTEDSET)
        .keys(&[counted_keys(1, RO | ACCESS)])
        .get_keys(GetKeys::Counted {
            store_at: 0,
            count_at: 1,
            first: 2,
        }),
    row(Zdiffstore, "zdiffstore", -4, WRITE | DENYOOM, SORTEDSET)
        .keys(&[key(1, OW | UPDATE), counted_keys(2, RO | ACCESS)])
        .get_keys(GetKeys::Counted {
            store_at: 1,
            count_at: 2,
            first: 3,
        }),
    row(Zincrby, "zincrby", 4, WRITE | DENYOOM | FAST, SORTEDSET)
        .keys(&[key(1, RW | ACCESS | UPDATE)]),
    row(Zinter, "zinter", -3, READONLY, SORTEDSET)
        .keys(&[counted_keys(1, RO | ACCESS)])
        .get_keys(GetKeys::Counted {
            store_at: 0,
            count_at: 1,
            first: 2,
        }),
    row(Zintercard, "zintercard", -3, READONLY, SORTEDSET)
        .keys(&[counted_keys(1, RO | ACCESS)])
        .get_keys(GetKeys::Counted {
            store_at: 0,
            count_at: 1,
            first: 2,
        }),
    row(Zinterstore, "zinterstore", -4, WRITE | DENYOOM, SORTEDSET)
        .keys(&[key(1, OW | UPDATE), counted_keys(2, RO | ACCESS)])
        .get_keys(GetKeys::Counted {
            store_at: 1,
            count_at: 2,
            first: 3,
        }),
    row(Zlexcount, "zlexcount", 4, READONLY | FAST, SORTEDSET).keys(&[key(1, RO | ACCESS)]),
    row(Zmpop, "zmpop", -4, WRITE, SORTEDSET)
        .keys(&[counted_keys(1, RW | ACCESS | DELETE)])
        .get_keys(GetKeys::Counted {
            store_at: 0,
            count_at: 1,
            first: 2,
        }),
    row(Zmscore, "zmscore", -3, READONLY | FAST, SORTEDSET).keys(&[key(1, RO | ACCESS)]),
    row(Zpopmax, "zpopmax", -2, WRITE | FAST, SORTEDSET).keys(&[key(1, RW | ACCESS | DELETE)]),
    row(Zpopmin, "zpopmin", -2, WRITE | FAST, SORTEDSET).keys(&[key(1, RW | ACCESS | DELETE)]),
    row(Zrandmember, "zrandmember", -2, READONLY, SORTEDSET)
        .keys(&[key(1, RO | ACCESS)])
        .tips(&["nondeterministic_output"]),
    row(Zrange, "zrange", -4, READONLY, SORTEDSET).keys(&[key(1, RO | ACCESS)]),
    row(Zrangebylex, "zrangebylex", -4, READONLY, SORTEDSET).keys(&[key(1, RO | ACCESS)]),
    row(Zrangebyscore, "zrangebyscore", -4, READONLY, SORTEDSET).keys(&[key(1, RO | ACCESS)]),
    row(Zrangestore, "zrangestore", -5, WRITE | DENYOOM, SORTEDSET)
        .keys(&[key(1, OW | UPDATE), key(2, RO | ACCESS)]),
    row(Zrank, "zrank", -3, READONLY | FAST, SORTEDSET).keys(&[key(1, RO | ACCESS)]),
    row(Zrem, "zrem", -3, WRITE | FAST, SORTEDSET).keys(&[key(1, RW | DELETE)]),
    row(Zremrangebylex, "zremrangebylex", 4, WRITE, SORTEDSET).keys(&[key(1, RW | DELETE)]),
    row(Zremrangebyrank, "zremrangebyrank", 4, WRITE, SORTEDSET).keys(&[key(1, RW | DELETE)]),
    row(Zremrangebyscore, "zremrangebyscore", 4, WRITE, SORTEDSET).keys(&[key(1, RW | DELETE)]),
    row(Zrevrange, "zrevrange", -4, READONLY, SORTEDSET).keys(&[key(1, RO | ACCESS)]),
    row(Zrevrangebylex, "zrevrangebylex", -4, READONLY, SORTEDSET).keys(&[key(1, RO | ACCESS)]),
    row(
        Zrevrangebyscore,
        "zrevrangebyscore",
        -4,
        READONLY,
        SORTEDSET,
    )
    .keys(&[key(1, RO | ACCESS)]),
    row(Zrevrank, "zrevrank", -3, READONLY | FAST, SORTEDSET).keys(&[key(1, RO | ACCESS)]),
    row(Zscan, "zscan", -3, READONLY, SORTEDSET)
        .keys(&[key(1, RO | ACCESS)])
        .tips(&["nondeterministic_output"]),
    row(Zscore, "zscore", 3, READONLY | FAST, SORTEDSET).keys(&[key(1, RO | ACCESS)]),
    row(Zunion, "zunion", -3, READONLY, SORTEDSET)
        .keys(&[counted_keys(1, RO | ACCESS)])
        .get_keys(GetKeys::Counted {
            store_at: 0,
            count_at: 1,
            first: 2,
        }),
    row(Zunionstore, "zunionstore", -4, WRITE | DENYOOM, SORTEDSET)
        .keys(&[key(1, OW | UPDATE), counted_keys(2, RO | ACCESS)])
        .get_keys(GetKeys::Counted {
            store_at: 1,
            count_at: 2,
            first: 3,
        }),
];
