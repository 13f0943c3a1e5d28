//! Commands that Redis 7.2 does not have.

use super::docs::{Group, docs, integer, string};
use super::id::CommandId::{Bigkeys, Hotkeys};
use super::row::category::{DANGEROUS, KEYSPACE};
use super::row::flag::READONLY;
use super::row::row;
use super::spec::CommandSpec;

pub(super) static ROWS: [CommandSpec; 2] = [
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
];
