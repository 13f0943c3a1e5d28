//! Redis Cluster.

use super::docs::{Group, block, docs, integer, one_of, string, token};
use super::id::CommandId::{
    Asking, Cluster, ClusterAddslots, ClusterAddslotsrange, ClusterBumpepoch, ClusterCountFailureReports,
    ClusterCountkeysinslot, ClusterDelslots, ClusterDelslotsrange, ClusterFailover, ClusterFlushslots, ClusterForget,
    ClusterGetkeysinslot, ClusterHelp, ClusterInfo, ClusterKeyslot, ClusterLinks, ClusterMeet, ClusterMyid,
    ClusterMyshardid, ClusterNodes, ClusterReplicas, ClusterReplicate, ClusterReset, ClusterSaveconfig,
    ClusterSetConfigEpoch, ClusterSetslot, ClusterShards, ClusterSlaves, ClusterSlots, Readonly, Readwrite,
};
use super::row::category::{CONNECTION, IMPLIED};
use super::row::flag::{ADMIN, FAST, LOADING, NO_ASYNC_LOADING, NONE, NOSCRIPT, STALE};
use super::row::row;
use super::spec::CommandSpec;

pub(super) static ROWS: [CommandSpec; 4] = [
    row(Asking, "asking", 1, FAST, CONNECTION).docs(&docs(
        Group::Cluster,
        "3.0.0",
        "O(1)",
        "Lets the next command use a slot that this node is importing.",
    )),
    row(Cluster, "cluster", -2, NONE, IMPLIED)
        .docs(&docs(Group::Cluster, "3.0.0", "That of the subcommand.", "Looks at and changes the cluster."))
        .subcommands(&[
            row(ClusterAddslots, "cluster|addslots", -3, NO_ASYNC_LOADING | ADMIN | STALE, IMPLIED).docs(
                &docs(Group::Cluster, "3.0.0", "O(N), N: slots named.", "Gives slots to this node.")
                    .arguments(&[integer("slot").multiple()]),
            ),
            row(ClusterAddslotsrange, "cluster|addslotsrange", -4, NO_ASYNC_LOADING | ADMIN | STALE, IMPLIED).docs(
                &docs(Group::Cluster, "7.0.0", "O(N), N: slots in the ranges.", "Gives ranges of slots to this node.")
                    .arguments(&[block("range", &[integer("start-slot"), integer("end-slot")]).multiple()]),
            ),
            row(ClusterBumpepoch, "cluster|bumpepoch", 2, NO_ASYNC_LOADING | ADMIN | STALE, IMPLIED)
                .tips(&["nondeterministic_output"])
                .docs(&docs(Group::Cluster, "3.0.0", "O(1)", "Raises this node's configuration epoch.")),
            row(ClusterCountFailureReports, "cluster|count-failure-reports", 3, ADMIN | STALE, IMPLIED)
                .tips(&["nondeterministic_output"])
                .docs(
                    &docs(
                        Group::Cluster,
                        "3.0.0",
                        "O(N), N: reports.",
                        "Counts the nodes that report a node as failing.",
                    )
                    .arguments(&[string("node-id")]),
                ),
            row(ClusterCountkeysinslot, "cluster|countkeysinslot", 3, STALE, IMPLIED).docs(
                &docs(Group::Cluster, "3.0.0", "O(1)", "Counts the keys of a slot.").arguments(&[integer("slot")]),
            ),
            row(ClusterDelslots, "cluster|delslots", -3, NO_ASYNC_LOADING | ADMIN | STALE, IMPLIED).docs(
                &docs(Group::Cluster, "3.0.0", "O(N), N: slots named.", "Takes slots from this node's map.")
                    .arguments(&[integer("slot").multiple()]),
            ),
            row(ClusterDelslotsrange, "cluster|delslotsrange", -4, NO_ASYNC_LOADING | ADMIN | STALE, IMPLIED).docs(
                &docs(
                    Group::Cluster,
                    "7.0.0",
                    "O(N), N: slots in the ranges.",
                    "Takes ranges of slots from this node's map.",
                )
                .arguments(&[block("range", &[integer("start-slot"), integer("end-slot")]).multiple()]),
            ),
            row(ClusterFailover, "cluster|failover", -2, NO_ASYNC_LOADING | ADMIN | STALE, IMPLIED).docs(
                &docs(Group::Cluster, "3.0.0", "O(1)", "Makes this replica take over from its primary.").arguments(&[
                    one_of("options", &[token("force", "FORCE"), token("takeover", "TAKEOVER")]).optional(),
                ]),
            ),
            row(ClusterFlushslots, "cluster|flushslots", 2, NO_ASYNC_LOADING | ADMIN | STALE, IMPLIED).docs(&docs(
                Group::Cluster,
                "3.0.0",
                "O(1)",
                "Takes all slots from this node.",
            )),
            row(ClusterForget, "cluster|forget", 3, NO_ASYNC_LOADING | ADMIN | STALE, IMPLIED).docs(
                &docs(Group::Cluster, "3.0.0", "O(1)", "Drops a node from this node's list.")
                    .arguments(&[string("node-id")]),
            ),
            row(ClusterGetkeysinslot, "cluster|getkeysinslot", 4, STALE, IMPLIED)
                .tips(&["nondeterministic_output"])
                .docs(
                    &docs(Group::Cluster, "3.0.0", "O(N), N: keys wanted.", "Names keys of a slot.")
                        .arguments(&[integer("slot"), integer("count")]),
                ),
            row(ClusterHelp, "cluster|help", 2, LOADING | STALE, IMPLIED).docs(&docs(
                Group::Cluster,
                "5.0.0",
                "O(1)",
                "Explains the subcommands.",
            )),
            row(ClusterInfo, "cluster|info", 2, STALE, IMPLIED).tips(&["nondeterministic_output"]).docs(&docs(
                Group::Cluster,
                "3.0.0",
                "O(1)",
                "Describes the cluster's state as this node sees it.",
            )),
            row(ClusterKeyslot, "cluster|keyslot", 3, STALE, IMPLIED).docs(
                &docs(Group::Cluster, "3.0.0", "O(N), N: bytes of the key.", "Computes the slot of a key.")
                    .arguments(&[string("key")]),
            ),
            row(ClusterLinks, "cluster|links", 2, STALE, IMPLIED).tips(&["nondeterministic_output"]).docs(&docs(
                Group::Cluster,
                "7.0.0",
                "O(N), N: nodes of the cluster.",
                "Describes the connections to and from other nodes.",
            )),
            row(ClusterMeet, "cluster|meet", -4, NO_ASYNC_LOADING | ADMIN | STALE, IMPLIED).docs(
                &docs(Group::Cluster, "3.0.0", "O(1)", "Makes this node known to another.")
                    .history(&[("4.0.0", "The port of the cluster bus.")])
                    .arguments(&[string("ip"), integer("port"), integer("cluster-bus-port").since("4.0.0").optional()]),
            ),
            row(ClusterMyid, "cluster|myid", 2, STALE, IMPLIED).docs(&docs(
                Group::Cluster,
                "3.0.0",
                "O(1)",
                "Shows this node's ID.",
            )),
            row(ClusterMyshardid, "cluster|myshardid", 2, STALE, IMPLIED)
                .tips(&["nondeterministic_output"])
                .docs(&docs(Group::Cluster, "7.2.0", "O(1)", "Shows the ID of this node's shard.")),
            row(ClusterNodes, "cluster|nodes", 2, STALE, IMPLIED).tips(&["nondeterministic_output"]).docs(&docs(
                Group::Cluster,
                "3.0.0",
                "O(N), N: nodes of the cluster.",
                "Lists all nodes as this node knows them.",
            )),
            row(ClusterReplicas, "cluster|replicas", 3, ADMIN | STALE, IMPLIED)
                .tips(&["nondeterministic_output"])
                .docs(
                    &docs(Group::Cluster, "5.0.0", "O(N), N: replicas.", "Lists the replicas of a primary.")
                        .arguments(&[string("node-id")]),
                ),
            row(ClusterReplicate, "cluster|replicate", 3, NO_ASYNC_LOADING | ADMIN | STALE, IMPLIED).docs(
                &docs(Group::Cluster, "3.0.0", "O(1)", "Makes this node a replica of another.")
                    .arguments(&[string("node-id")]),
            ),
            row(ClusterReset, "cluster|reset", -2, ADMIN | STALE | NOSCRIPT, IMPLIED).docs(
                &docs(
                    Group::Cluster,
                    "3.0.0",
                    "O(N), N: known nodes; all keys may be removed in addition.",
                    "Makes this node forget the cluster.",
                )
                .arguments(&[one_of("reset-type", &[token("hard", "HARD"), token("soft", "SOFT")]).optional()]),
            ),
            row(ClusterSaveconfig, "cluster|saveconfig", 2, NO_ASYNC_LOADING | ADMIN | STALE, IMPLIED).docs(&docs(
                Group::Cluster,
                "3.0.0",
                "O(1)",
                "Writes the cluster's state to disk.",
            )),
            row(ClusterSetConfigEpoch, "cluster|set-config-epoch", 3, NO_ASYNC_LOADING | ADMIN | STALE, IMPLIED).docs(
                &docs(Group::Cluster, "3.0.0", "O(1)", "Gives a new node its configuration epoch.")
                    .arguments(&[integer("config-epoch")]),
            ),
            row(ClusterSetslot, "cluster|setslot", -4, NO_ASYNC_LOADING | ADMIN | STALE, IMPLIED).docs(
                &docs(Group::Cluster, "3.0.0", "O(1)", "Sets the owner of a slot, or marks it as moving.").arguments(
                    &[
                        integer("slot"),
                        one_of(
                            "subcommand",
                            &[
                                string("importing").after("IMPORTING").display("node-id"),
                                string("migrating").after("MIGRATING").display("node-id"),
                                string("node").after("NODE").display("node-id"),
                                token("stable", "STABLE"),
                            ],
                        ),
                    ],
                ),
            ),
            row(ClusterShards, "cluster|shards", 2, LOADING | STALE, IMPLIED).tips(&["nondeterministic_output"]).docs(
                &docs(
                    Group::Cluster,
                    "7.0.0",
                    "O(N), N: nodes of the cluster.",
                    "Lists the shards with their slots and nodes.",
                ),
            ),
            row(ClusterSlaves, "cluster|slaves", 3, ADMIN | STALE, IMPLIED).tips(&["nondeterministic_output"]).docs(
                &docs(Group::Cluster, "3.0.0", "O(N), N: replicas.", "Lists the replicas of a primary.")
                    .deprecated("5.0.0", "`CLUSTER REPLICAS`")
                    .arguments(&[string("node-id")]),
            ),
            row(ClusterSlots, "cluster|slots", 2, LOADING | STALE, IMPLIED).tips(&["nondeterministic_output"]).docs(
                &docs(Group::Cluster, "3.0.0", "O(N), N: nodes of the cluster.", "Lists slot ranges with their nodes.")
                    .deprecated("7.0.0", "`CLUSTER SHARDS`")
                    .history(&[
                        ("4.0.0", "Shows the IDs of nodes."),
                        ("7.0.0", "Each node has a field for further network data."),
                    ]),
            ),
        ]),
    row(Readonly, "readonly", 1, FAST | LOADING | STALE, CONNECTION).docs(&docs(
        Group::Cluster,
        "3.0.0",
        "O(1)",
        "Lets this connection read from a replica in a cluster.",
    )),
    row(Readwrite, "readwrite", 1, FAST | LOADING | STALE, CONNECTION).docs(&docs(
        Group::Cluster,
        "3.0.0",
        "O(1)",
        "Ends the effect of READONLY.",
    )),
];
