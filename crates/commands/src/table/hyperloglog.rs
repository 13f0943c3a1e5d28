//! HyperLogLogs.

use super::id::CommandId::{Pfadd, Pfcount, Pfdebug, Pfmerge, Pfselftest};
use super::row::category::HYPERLOGLOG;
use super::row::flag::{ADMIN, DENYOOM, FAST, MAY_REPLICATE, READONLY, WRITE};
use super::row::usage::{ACCESS, INSERT, RO, RW};
use super::row::{key, key_range, row};
use super::spec::CommandSpec;

pub(super) static ROWS: [CommandSpec; 5] = [
    row(Pfadd, "pfadd", -2, WRITE | DENYOOM | FAST, HYPERLOGLOG).keys(&[key(1, RW | INSERT)]),
    row(
        Pfcount,
        "pfcount",
        -2,
        READONLY | MAY_REPLICATE,
        HYPERLOGLOG,
    )
    .keys(&[key_range(1, -1, RW | ACCESS).notes("?")]),
    row(Pfdebug, "pfdebug", 3, WRITE | DENYOOM | ADMIN, HYPERLOGLOG).keys(&[key(2, RW | ACCESS)]),
    row(Pfmerge, "pfmerge", -2, WRITE | DENYOOM, HYPERLOGLOG)
        .keys(&[key(1, RW | ACCESS | INSERT), key_range(2, -1, RO | ACCESS)]),
    row(Pfselftest, "pfselftest", 1, ADMIN, HYPERLOGLOG),
];
