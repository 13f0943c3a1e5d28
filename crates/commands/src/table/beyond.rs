//! Commands that Redis 7.2 does not have: our own, and those of later releases of Redis and Valkey.

use super::docs::{Argument, Group, block, docs, integer, key_argument, one_of, string, token, unix_time};
use super::id::CommandId::{
    Bigkeys, Delifeq, Hexpire, Hexpireat, Hexpiretime, Hgetdel, Hgetex, Hotkeys, Hpersist, Hpexpire, Hpexpireat,
    Hpexpiretime, Hpttl, Hsetex, Httl, Oxidis, OxidisHelp, OxidisImport, OxidisJoin, OxidisLeave, OxidisMove,
    OxidisProxy, OxidisSlots, OxidisView,
};
use super::row::category::{DANGEROUS, HASH, IMPLIED, KEYSPACE, STRING};
use super::row::flag::{ADMIN, DENYOOM, FAST, LOADING, NO_MULTI, NONE, NOSCRIPT, READONLY, STALE, WRITE};
use super::row::usage::{ACCESS, DELETE, RO, RW, UPDATE};
use super::row::{key, row};
use super::spec::CommandSpec;

/// FIELDS, a count, and so many fields.
const FIELDS: Argument = block("fields", &[integer("numfields"), string("field").multiple()]).after("FIELDS");
/// The same with their values.
const PAIRS: Argument =
    block("fields", &[integer("numfields"), block("data", &[string("field"), string("value")]).multiple()])
        .after("FIELDS");
const CONDITION: Argument =
    one_of("condition", &[token("nx", "NX"), token("xx", "XX"), token("gt", "GT"), token("lt", "LT")]).optional();
const SECONDS: Argument = integer("seconds").after("EX");
const MILLISECONDS: Argument = integer("milliseconds").after("PX");
const AT_SECONDS: Argument = unix_time("unix-time-seconds").after("EXAT");
const AT_MILLISECONDS: Argument = unix_time("unix-time-milliseconds").after("PXAT");
const KEEP: Argument = token("keepttl", "KEEPTTL");

pub(super) static ROWS: [CommandSpec; 16] = [
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
    row(Delifeq, "delifeq", 3, WRITE | FAST, STRING).keys(&[key(1, RW | DELETE)]).docs(
        &docs(Group::String, "7.2.0", "O(1)", "Removes a key if its string is this one.")
            .arguments(&[key_argument("key", 0), string("value")]),
    ),
    row(Hexpire, "hexpire", -6, WRITE | DENYOOM | FAST, HASH).keys(&[key(1, RW | UPDATE)]).docs(
        &docs(Group::Hash, "7.2.0", "O(N), N: fields named.", "Sets when fields of a hash end.").arguments(&[
            key_argument("key", 0),
            integer("seconds"),
            CONDITION,
            FIELDS,
        ]),
    ),
    row(Hexpireat, "hexpireat", -6, WRITE | DENYOOM | FAST, HASH).keys(&[key(1, RW | UPDATE)]).docs(
        &docs(Group::Hash, "7.2.0", "O(N), N: fields named.", "Sets when fields of a hash end.").arguments(&[
            key_argument("key", 0),
            unix_time("unix-time-seconds"),
            CONDITION,
            FIELDS,
        ]),
    ),
    row(Hpexpire, "hpexpire", -6, WRITE | DENYOOM | FAST, HASH).keys(&[key(1, RW | UPDATE)]).docs(
        &docs(Group::Hash, "7.2.0", "O(N), N: fields named.", "Sets when fields of a hash end.").arguments(&[
            key_argument("key", 0),
            integer("milliseconds"),
            CONDITION,
            FIELDS,
        ]),
    ),
    row(Hpexpireat, "hpexpireat", -6, WRITE | DENYOOM | FAST, HASH).keys(&[key(1, RW | UPDATE)]).docs(
        &docs(Group::Hash, "7.2.0", "O(N), N: fields named.", "Sets when fields of a hash end.").arguments(&[
            key_argument("key", 0),
            unix_time("unix-time-milliseconds"),
            CONDITION,
            FIELDS,
        ]),
    ),
    row(Httl, "httl", -5, READONLY | FAST, HASH).keys(&[key(1, RO | ACCESS)]).docs(
        &docs(Group::Hash, "7.2.0", "O(N), N: fields named.", "Tells when fields of a hash end.")
            .arguments(&[key_argument("key", 0), FIELDS]),
    ),
    row(Hpttl, "hpttl", -5, READONLY | FAST, HASH).keys(&[key(1, RO | ACCESS)]).docs(
        &docs(Group::Hash, "7.2.0", "O(N), N: fields named.", "Tells when fields of a hash end.")
            .arguments(&[key_argument("key", 0), FIELDS]),
    ),
    row(Hexpiretime, "hexpiretime", -5, READONLY | FAST, HASH).keys(&[key(1, RO | ACCESS)]).docs(
        &docs(Group::Hash, "7.2.0", "O(N), N: fields named.", "Tells when fields of a hash end.")
            .arguments(&[key_argument("key", 0), FIELDS]),
    ),
    row(Hpexpiretime, "hpexpiretime", -5, READONLY | FAST, HASH).keys(&[key(1, RO | ACCESS)]).docs(
        &docs(Group::Hash, "7.2.0", "O(N), N: fields named.", "Tells when fields of a hash end.")
            .arguments(&[key_argument("key", 0), FIELDS]),
    ),
    row(Hpersist, "hpersist", -5, WRITE | FAST, HASH).keys(&[key(1, RW | UPDATE)]).docs(
        &docs(Group::Hash, "7.2.0", "O(N), N: fields named.", "Has fields of a hash stay for ever.")
            .arguments(&[key_argument("key", 0), FIELDS]),
    ),
    row(Hgetdel, "hgetdel", -5, WRITE | FAST, HASH).keys(&[key(1, RW | ACCESS | DELETE)]).docs(
        &docs(Group::Hash, "7.2.0", "O(N), N: fields named.", "Returns the values of fields and removes them.")
            .arguments(&[key_argument("key", 0), FIELDS]),
    ),
    row(Hgetex, "hgetex", -5, WRITE | FAST, HASH).keys(&[key(1, RW | ACCESS | UPDATE)]).docs(
        &docs(Group::Hash, "7.2.0", "O(N), N: fields named.", "Returns the values of fields and sets when they end.")
            .arguments(&[
                key_argument("key", 0),
                one_of(
                    "expiration",
                    &[SECONDS, MILLISECONDS, AT_SECONDS, AT_MILLISECONDS, token("persist", "PERSIST")],
                )
                .optional(),
                FIELDS,
            ]),
    ),
    row(Hsetex, "hsetex", -6, WRITE | DENYOOM | FAST, HASH).keys(&[key(1, RW | UPDATE)]).docs(
        &docs(Group::Hash, "7.2.0", "O(N), N: fields named.", "Sets fields and when they end.").arguments(&[
            key_argument("key", 0),
            one_of("condition", &[token("fnx", "FNX"), token("fxx", "FXX")]).optional(),
            one_of("expiration", &[SECONDS, MILLISECONDS, AT_SECONDS, AT_MILLISECONDS, KEEP]).optional(),
            PAIRS,
        ]),
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
            row(OxidisHelp, "oxidis|help", 2, LOADING | STALE, IMPLIED).docs(&docs(
                Group::Cluster,
                "7.2.0",
                "O(1)",
                "Explains the subcommands.",
            )),
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
