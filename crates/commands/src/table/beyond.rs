//! Commands that Redis 7.2 does not have.

use super::docs::{Group, docs, integer, string};
use super::id::CommandId::{
    Bigkeys, Hotkeys, Oxidis, OxidisImport, OxidisJoin, OxidisLeave, OxidisMove, OxidisProxy, OxidisSlots, OxidisView,
};
use super::row::category::{DANGEROUS, IMPLIED, KEYSPACE};
use super::row::flag::{ADMIN, LOADING, NO_MULTI, NONE, NOSCRIPT, READONLY, STALE};
use super::row::row;
use super::spec::CommandSpec;

pub(super) static ROWS: [CommandSpec; 3] = [
    row(Bigkeys, "bigkeys", -1, READONLY, KEYSPACE | DANGEROUS)
        .tips(&["request_policy:all_shards", "response_policy:special", "nondeterministic_output"])
        .docs(
            &docs(
                Group::Generic,
                "7.2.0",
                "O(1); the biggest keys are always known.",
                "Names the biggest keys of each type.",
            )
            .arguments(&[integer("count").after("COUNT").optional(), string("type").after("TYPE").optional()]),
        ),
    row(Hotkeys, "hotkeys", -1, READONLY, KEYSPACE | DANGEROUS)
        .tips(&["request_policy:all_shards", "response_policy:special", "nondeterministic_output"])
        .docs(
            &docs(
                Group::Generic,
                "7.2.0",
                "O(1); the keys used most are always known.",
                "Names the keys that were used most in the last seconds.",
            )
            .arguments(&[integer("count").after("COUNT").optional()]),
        ),
    row(Oxidis, "oxidis", -2, NONE, IMPLIED)
        .docs(&docs(Group::Cluster, "7.2.0", "That of the subcommand.", "Manages a server as a member of a cluster."))
        .subcommands(&[
            row(OxidisImport, "oxidis|import", -4, OXIDIS, IMPLIED).docs(
                &docs(
                    Group::Cluster,
                    "7.2.0",
                    "O(1), the stream apart.",
                    "Takes slots over from another server: its stream, and what the manager decides.",
                )
                .arguments(&[
                    string("step"),
                    integer("move"),
                    string("argument").multiple().optional(),
                ]),
            ),
            row(OxidisJoin, "oxidis|join", -4, OXIDIS, IMPLIED).docs(
                &docs(Group::Cluster, "7.2.0", "O(N), N: slots.", "Makes this server a member of a cluster.")
                    .arguments(&[string("member"), string("manager").multiple()]),
            ),
            row(OxidisLeave, "oxidis|leave", 2, OXIDIS, IMPLIED).docs(&docs(
                Group::Cluster,
                "7.2.0",
                "O(N), N: slots.",
                "Makes this server a plain one again.",
            )),
            row(OxidisMove, "oxidis|move", -4, OXIDIS, IMPLIED).docs(
                &docs(
                    Group::Cluster,
                    "7.2.0",
                    "O(1), the copy apart.",
                    "Moves slots to another server, as the manager decides.",
                )
                .arguments(&[
                    string("step"),
                    integer("move"),
                    string("argument").multiple().optional(),
                ]),
            ),
            row(OxidisProxy, "oxidis|proxy", 3, OXIDIS, IMPLIED).docs(
                &docs(Group::Cluster, "7.2.0", "O(1)", "Says that this connection is a proxy's.")
                    .arguments(&[string("name")]),
            ),
            row(OxidisSlots, "oxidis|slots", -3, OXIDIS, IMPLIED).docs(
                &docs(
                    Group::Cluster,
                    "7.2.0",
                    "O(N), N: slots; a few keys of each are looked at.",
                    "Shows what slots hold and how much they are used.",
                )
                .arguments(&[string("what"), string("ranges").optional()]),
            ),
            row(OxidisView, "oxidis|view", 2, OXIDIS, IMPLIED).docs(&docs(
                Group::Cluster,
                "7.2.0",
                "O(1)",
                "Shows what this server knows of its cluster.",
            )),
        ]),
];

/// What all of `OXIDIS` has in common.
const OXIDIS: u64 = ADMIN | NOSCRIPT | NO_MULTI | LOADING | STALE;
