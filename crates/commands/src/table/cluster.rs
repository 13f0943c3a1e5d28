//! Redis Cluster.

use super::id::CommandId::{
    Asking, Cluster, ClusterAddslots, ClusterAddslotsrange, ClusterBumpepoch,
    ClusterCountFailureReports, ClusterCountkeysinslot, ClusterDelslots, ClusterDelslotsrange,
    ClusterFailover, ClusterFlushslots, ClusterForget, ClusterGetkeysinslot, ClusterHelp,
    ClusterInfo, ClusterKeyslot, ClusterLinks, ClusterMeet, ClusterMyid, ClusterMyshardid,
    ClusterNodes, ClusterReplicas, ClusterReplicate, ClusterReset, ClusterSaveconfig,
    ClusterSetConfigEpoch, ClusterSetslot, ClusterShards, ClusterSlaves, ClusterSlots, Readonly,
    Readwrite,
};
use super::row::category::{CONNECTION, IMPLIED};
use super::row::flag::{ADMIN, FAST, LOADING, NO_ASYNC_LOADING, NONE, NOSCRIPT, STALE};
use super::row::row;
use super::spec::CommandSpec;

pub(super) static ROWS: [CommandSpec; 4] = [
    row(Asking, "asking", 1, FAST, CONNECTION),
    row(Cluster, "cluster", -2, NONE, IMPLIED).subcommands(&[
        row(
            ClusterAddslots,
            "cluster|addslots",
            -3,
            NO_ASYNC_LOADING | ADMIN | STALE,
            IMPLIED,
        ),
        row(
            ClusterAddslotsrange,
            "cluster|addslotsrange",
            -4,
            NO_ASYNC_LOADING | ADMIN | STALE,
            IMPLIED,
        ),
        row(
            ClusterBumpepoch,
            "cluster|bumpepoch",
            2,
            NO_ASYNC_LOADING | ADMIN | STALE,
            IMPLIED,
        )
        .tips(&["nondeterministic_output"]),
        row(
            ClusterCountFailureReports,
            "cluster|count-failure-reports",
            3,
            ADMIN | STALE,
            IMPLIED,
        )
        .tips(&["nondeterministic_output"]),
        row(
            ClusterCountkeysinslot,
            "cluster|countkeysinslot",
            3,
            STALE,
            IMPLIED,
        ),
        row(
            ClusterDelslots,
            "cluster|delslots",
            -3,
            NO_ASYNC_LOADING | ADMIN | STALE,
            IMPLIED,
        ),
        row(
            ClusterDelslotsrange,
            "cluster|delslotsrange",
            -4,
            NO_ASYNC_LOADING | ADMIN | STALE,
            IMPLIED,
        ),
        row(
            ClusterFailover,
            "cluster|failover",
            -2,
            NO_ASYNC_LOADING | ADMIN | STALE,
            IMPLIED,
        ),
        row(
            ClusterFlushslots,
            "cluster|flushslots",
            2,
            NO_ASYNC_LOADING | ADMIN | STALE,
            IMPLIED,
        ),
        row(
            ClusterForget,
            "cluster|forget",
            3,
            NO_ASYNC_LOADING | ADMIN | STALE,
            IMPLIED,
        ),
        row(
            ClusterGetkeysinslot,
            "cluster|getkeysinslot",
            4,
            STALE,
            IMPLIED,
        )
        .tips(&["nondeterministic_output"]),
        row(ClusterHelp, "cluster|help", 2, LOADING | STALE, IMPLIED),
        row(ClusterInfo, "cluster|info", 2, STALE, IMPLIED).tips(&["nondeterministic_output"]),
        row(ClusterKeyslot, "cluster|keyslot", 3, STALE, IMPLIED),
        row(ClusterLinks, "cluster|links", 2, STALE, IMPLIED).tips(&["nondeterministic_output"]),
        row(
            ClusterMeet,
            "cluster|meet",
            -4,
            NO_ASYNC_LOADING | ADMIN | STALE,
            IMPLIED,
        ),
        row(ClusterMyid, "cluster|myid", 2, STALE, IMPLIED),
        row(ClusterMyshardid, "cluster|myshardid", 2, STALE, IMPLIED)
            .tips(&["nondeterministic_output"]),
        row(ClusterNodes, "cluster|nodes", 2, STALE, IMPLIED).tips(&["nondeterministic_output"]),
        row(
            ClusterReplicas,
            "cluster|replicas",
            3,
            ADMIN | STALE,
            IMPLIED,
        )
        .tips(&["nondeterministic_output"]),
        row(
            ClusterReplicate,
            "cluster|replicate",
            3,
            NO_ASYNC_LOADING | ADMIN | STALE,
            IMPLIED,
        ),
        row(
            ClusterReset,
            "cluster|reset",
            -2,
            ADMIN | STALE | NOSCRIPT,
            IMPLIED,
        ),
        row(
            ClusterSaveconfig,
            "cluster|saveconfig",
            2,
            NO_ASYNC_LOADING | ADMIN | STALE,
            IMPLIED,
        ),
        row(
            ClusterSetConfigEpoch,
            "cluster|set-config-epoch",
            3,
            NO_ASYNC_LOADING | ADMIN | STALE,
            IMPLIED,
        ),
        row(
            ClusterSetslot,
            "cluster|setslot",
            -4,
            NO_ASYNC_LOADING | ADMIN | STALE,
            IMPLIED,
        ),
        row(ClusterShards, "cluster|shards", 2, LOADING | STALE, IMPLIED)
            .tips(&["nondeterministic_output"]),
        row(ClusterSlaves, "cluster|slaves", 3, ADMIN | STALE, IMPLIED)
            .tips(&["nondeterministic_output"]),
        row(ClusterSlots, "cluster|slots", 2, LOADING | STALE, IMPLIED)
            .tips(&["nondeterministic_output"]),
    ]),
    row(Readonly, "readonly", 1, FAST | LOADING | STALE, CONNECTION),
    row(
        Readwrite,
        "readwrite",
        1,
        FAST | LOADING | STALE,
        CONNECTION,
    ),
];
