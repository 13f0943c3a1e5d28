//! Lists.

use super::id::CommandId::{
    Blmove, Blmpop, Blpop, Brpop, Brpoplpush, Lindex, Linsert, Llen, Lmove, Lmpop, Lpop, Lpos,
    Lpush, Lpushx, Lrange, Lrem, Lset, Ltrim, Rpop, Rpoplpush, Rpush, Rpushx,
};
use super::row::category::LIST;
use super::row::flag::{BLOCKING, DENYOOM, FAST, READONLY, WRITE};
use super::row::usage::{ACCESS, DELETE, INSERT, RO, RW, UPDATE};
use super::row::{counted_keys, key, key_range, row};
use super::spec::{CommandSpec, GetKeys};

pub(super) static ROWS: [CommandSpec; 22] = [
    row(Blmove, "blmove", 6, WRITE | DENYOOM | BLOCKING, LIST)
        .keys(&[key(1, RW | ACCESS | DELETE), key(2, RW | INSERT)]),
    row(Blmpop, "blmpop", -5, WRITE | BLOCKING, LIST)
        .keys(&[counted_keys(2, RW | ACCESS | DELETE)])
        .get_keys(GetKeys::Counted {
            store_at: 0,
            count_at: 2,
            first: 3,
        }),
    row(Blpop, "blpop", -3, WRITE | BLOCKING, LIST).keys(&[key_range(1, -2, RW | ACCESS | DELETE)]),
    row(Brpop, "brpop", -3, WRITE | BLOCKING, LIST).keys(&[key_range(1, -2, RW | ACCESS | DELETE)]),
    row(
        Brpoplpush,
        "brpoplpush",
        4,
        WRITE | DENYOOM | BLOCKING,
        LIST,
    )
    .keys(&[key(1, RW | ACCESS | DELETE), key(2, RW | INSERT)]),
    row(Lindex, "lindex", 3, READONLY, LIST).keys(&[key(1, RO | ACCESS)]),
    row(Linsert, "linsert", 5, WRITE | DENYOOM, LIST).keys(&[key(1, RW | INSERT)]),
    row(Llen, "llen", 2, READONLY | FAST, LIST).keys(&[key(1, RO)]),
    row(Lmove, "lmove", 5, WRITE | DENYOOM, LIST)
        .keys(&[key(1, RW | ACCESS | DELETE), key(2, RW | INSERT)]),
    row(Lmpop, "lmpop", -4, WRITE, LIST)
        .keys(&[counted_keys(1, RW | ACCESS | DELETE)])
        .get_keys(GetKeys::Counted {
            store_at: 0,
            count_at: 1,
            first: 2,
        }),
    row(Lpop, "lpop", -2, WRITE | FAST, LIST).keys(&[key(1, RW | ACCESS | DELETE)]),
    row(Lpos, "lpos", -3, READONLY, LIST).keys(&[key(1, RO | ACCESS)]),
    row(Lpush, "lpush", -3, WRITE | DENYOOM | FAST, LIST).keys(&[key(1, RW | INSERT)]),
    row(Lpushx, "lpushx", -3, WRITE | DENYOOM | FAST, LIST).keys(&[key(1, RW | INSERT)]),
    row(Lrange, "lrange", 4, READONLY, LIST).keys(&[key(1, RO | ACCESS)]),
    row(Lrem, "lrem", 4, WRITE, LIST).keys(&[key(1, RW | DELETE)]),
    row(Lset, "lset", 4, WRITE | DENYOOM, LIST).keys(&[key(1, RW | UPDATE)]),
    row(Ltrim, "ltrim", 4, WRITE, LIST).keys(&[key(1, RW | DELETE)]),
    row(Rpop, "rpop", -2, WRITE | FAST, LIST).keys(&[key(1, RW | ACCESS | DELETE)]),
    row(Rpoplpush, "rpoplpush", 3, WRITE | DENYOOM, LIST)
        .keys(&[key(1, RW | ACCESS | DELETE), key(2, RW | INSERT)]),
    row(Rpush, "rpush", -3, WRITE | DENYOOM | FAST, LIST).keys(&[key(1, RW | INSERT)]),
    row(Rpushx, "rpushx", -3, WRITE | DENYOOM | FAST, LIST).keys(&[key(1, RW | INSERT)]),
];
