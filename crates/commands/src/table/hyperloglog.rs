//! HyperLogLogs.

use super::docs::{Group, docs, key_argument, string};
use super::id::CommandId::{Pfadd, Pfcount, Pfdebug, Pfmerge, Pfselftest};
use super::row::category::HYPERLOGLOG;
use super::row::flag::{ADMIN, DENYOOM, FAST, MAY_REPLICATE, READONLY, WRITE};
use super::row::usage::{ACCESS, INSERT, RO, RW};
use super::row::{key, key_range, row};
use super::spec::CommandSpec;

pub(super) static ROWS: [CommandSpec; 5] = [
    row(Pfadd, "pfadd", -2, WRITE | DENYOOM | FAST, HYPERLOGLOG).keys(&[key(1, RW | INSERT)]).docs(
        &docs(Group::Hyperloglog, "2.8.9", "O(1) for each element.", "Adds elements to a HyperLogLog.")
            .arguments(&[key_argument("key", 0), string("element").optional().multiple()]),
    ),
    row(Pfcount, "pfcount", -2, READONLY | MAY_REPLICATE, HYPERLOGLOG)
        .keys(&[
            key_range(1, -1, RW | ACCESS).notes("RW, as it may cache the count in the value and send that to replicas")
        ])
        .docs(
            &docs(
                Group::Hyperloglog,
                "2.8.9",
                "O(1), and fast, for one key; O(N) for N keys, and much slower for each.",
                "Estimates how many different elements HyperLogLogs have seen.",
            )
            .arguments(&[key_argument("key", 0).multiple()]),
        ),
    row(Pfdebug, "pfdebug", 3, WRITE | DENYOOM | ADMIN, HYPERLOGLOG).keys(&[key(2, RW | ACCESS)]).docs(
        &docs(Group::Hyperloglog, "2.8.9", "N/A", "Shows the inside of a HyperLogLog.")
            .system()
            .arguments(&[string("subcommand"), key_argument("key", 0)]),
    ),
    row(Pfmerge, "pfmerge", -2, WRITE | DENYOOM, HYPERLOGLOG)
        .keys(&[key(1, RW | ACCESS | INSERT), key_range(2, -1, RO | ACCESS)])
        .docs(
            &docs(
                Group::Hyperloglog,
                "2.8.9",
                "O(N) for N HyperLogLogs, and slow for each.",
                "Merges HyperLogLogs into one.",
            )
            .arguments(&[key_argument("destkey", 0), key_argument("sourcekey", 1).optional().multiple()]),
        ),
    row(Pfselftest, "pfselftest", 1, ADMIN, HYPERLOGLOG)
        .docs(&docs(Group::Hyperloglog, "2.8.9", "N/A", "Tests the HyperLogLog code of the server.").system()),
];
