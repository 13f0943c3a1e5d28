//! Streams.

use super::id::CommandId::{
    Xack, Xadd, Xautoclaim, Xclaim, Xdel, Xgroup, XgroupCreate, XgroupCreateconsumer,
    XgroupDelconsumer, XgroupDestroy, XgroupHelp, XgroupSetid, Xinfo, XinfoConsumers, XinfoGroups,
    XinfoHelp, XinfoStream, Xlen, Xpending, Xrange, Xread, Xreadgroup, Xrevrange, Xsetid, Xtrim,
};
use super::row::category::{IMPLIED, STREAM};
use super::row::flag::{BLOCKING, DENYOOM, FAST, LOADING, NONE, READONLY, STALE, WRITE};
use super::row::usage::{ACCESS, DELETE, INSERT, RO, RW, UPDATE};
use super::row::{key, keys_after, row};
use super::spec::{CommandSpec, GetKeys};

pub(super) static ROWS: [CommandSpec; 15] = [
    row(Xack, "xack", -4, WRITE | FAST, STREAM).keys(&[key(1, RW | UPDATE)]),
    row(Xadd, "xadd", -5, WRITE | DENYOOM | FAST, STREAM)
        .keys(&[key(1, RW | UPDATE).notes("?")])
        .tips(&["nondeterministic_output"]),
    row(Xautoclaim, "xautoclaim", -6, WRITE | FAST, STREAM)
        .keys(&[key(1, RW | DELETE)])
        .tips(&["nondeterministic_output"]),
    row(Xclaim, "xclaim", -6, WRITE | FAST, STREAM)
        .keys(&[key(1, RW | UPDATE)])
        .tips(&["nondeterministic_output"]),
    row(Xdel, "xdel", -3, WRITE | FAST, STREAM).keys(&[key(1, RW | DELETE)]),
    row(Xgroup, "xgroup", -2, NONE, IMPLIED).subcommands(&[
        row(XgroupCreate, "xgroup|create", -5, WRITE | DENYOOM, STREAM)
            .keys(&[key(2, RW | INSERT)]),
        row(
            XgroupCreateconsumer,
            "xgroup|createconsumer",
            5,
            WRITE | DENYOOM,
            STREAM,
        )
        .keys(&[key(2, RW | INSERT)]),
        row(XgroupDelconsumer, "xgroup|delconsumer", 5, WRITE, STREAM).keys(&[key(2, RW | DELETE)]),
        row(XgroupDestroy, "xgroup|destroy", 4, WRITE, STREAM).keys(&[key(2, RW | DELETE)]),
        row(XgroupHelp, "xgroup|help", 2, LOADING | STALE, STREAM),
        row(XgroupSetid, "xgroup|setid", -5, WRITE, STREAM).keys(&[key(2, RW | UPDATE)]),
    ]),
    row(Xinfo, "xinfo", -2, NONE, IMPLIED).subcommands(&[
        row(XinfoConsumers, "xinfo|consumers", 4, READONLY, STREAM)
            .keys(&[key(2, RO | ACCESS)])
            .tips(&["nondeterministic_output"]),
        row(XinfoGroups, "xinfo|groups", 3, READONLY, STREAM).keys(&[key(2, RO | ACCESS)]),
        row(XinfoHelp, "xinfo|help", 2, LOADING | STALE, STREAM),
        row(XinfoStream, "xinfo|stream", -3, READONLY, STREAM).keys(&[key(2, RO | ACCESS)]),
    ]),
    row(Xlen, "xlen", 2, READONLY | FAST, STREAM).keys(&[key(1, RO)]),
    row(Xpending, "xpending", -3, READONLY, STREAM)
        .keys(&[key(1, RO | ACCESS)])
        .tips(&["nondeterministic_output"]),
    row(Xrange, "xrange", -4, READONLY, STREAM).keys(&[key(1, RO | ACCESS)]),
    row(Xread, "xread", -4, BLOCKING | READONLY | BLOCKING, STREAM)
        .keys(&[keys_after("STREAMS", 1, 2, RO | ACCESS)])
        .get_keys(GetKeys::XRead),
    row(Xreadgroup, "xreadgroup", -7, BLOCKING | WRITE, STREAM)
        .keys(&[keys_after("STREAMS", 4, 2, RO | ACCESS)])
        .get_keys(GetKeys::XRead),
    row(Xrevrange, "xrevrange", -4, READONLY, STREAM).keys(&[key(1, RO | ACCESS)]),
    row(Xsetid, "xsetid", -3, WRITE | DENYOOM | FAST, STREAM).keys(&[key(1, RW | UPDATE)]),
    row(Xtrim, "xtrim", -4, WRITE, STREAM)
        .keys(&[key(1, RW | DELETE)])
        .tips(&["nondeterministic_output"]),
];
