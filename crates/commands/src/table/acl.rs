//! ACL: users and their rights.

use super::id::CommandId::{
    Acl, AclCat, AclDeluser, AclDryrun, AclGenpass, AclGetuser, AclHelp, AclList, AclLoad, AclLog,
    AclSave, AclSetuser, AclUsers, AclWhoami,
};
use super::row::category::IMPLIED;
use super::row::flag::{ADMIN, LOADING, NOSCRIPT, SENTINEL, STALE};
use super::row::row;
use super::spec::CommandSpec;

pub(super) static ROWS: [CommandSpec; 1] = [row(Acl, "acl", -2, SENTINEL, IMPLIED).subcommands(&[
    row(
        AclCat,
        "acl|cat",
        -2,
        NOSCRIPT | LOADING | STALE | SENTINEL,
        IMPLIED,
    ),
    row(
        AclDeluser,
        "acl|deluser",
        -3,
        ADMIN | NOSCRIPT | LOADING | STALE | SENTINEL,
        IMPLIED,
    )
    .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]),
    row(
        AclDryrun,
        "acl|dryrun",
        -4,
        ADMIN | NOSCRIPT | LOADING | STALE | SENTINEL,
        IMPLIED,
    ),
    row(
        AclGenpass,
        "acl|genpass",
        -2,
        NOSCRIPT | LOADING | STALE | SENTINEL,
        IMPLIED,
    ),
    row(
        AclGetuser,
        "acl|getuser",
        3,
        ADMIN | NOSCRIPT | LOADING | STALE | SENTINEL,
        IMPLIED,
    ),
    row(AclHelp, "acl|help", 2, LOADING | STALE | SENTINEL, IMPLIED),
    row(
        AclList,
        "acl|list",
        2,
        ADMIN | NOSCRIPT | LOADING | STALE | SENTINEL,
        IMPLIED,
    ),
    row(
        AclLoad,
        "acl|load",
        2,
        ADMIN | NOSCRIPT | LOADING | STALE | SENTINEL,
        IMPLIED,
    ),
    row(
        AclLog,
        "acl|log",
        -2,
        ADMIN | NOSCRIPT | LOADING | STALE | SENTINEL,
        IMPLIED,
    ),
    row(
        AclSave,
        "acl|save",
        2,
        ADMIN | NOSCRIPT | LOADING | STALE | SENTINEL,
        IMPLIED,
    )
    .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]),
    row(
        AclSetuser,
        "acl|setuser",
        -3,
        ADMIN | NOSCRIPT | LOADING | STALE | SENTINEL,
        IMPLIED,
    )
    .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]),
    row(
        AclUsers,
        "acl|users",
        2,
        ADMIN | NOSCRIPT | LOADING | STALE | SENTINEL,
        IMPLIED,
    ),
    row(
        AclWhoami,
        "acl|whoami",
        2,
        NOSCRIPT | LOADING | STALE | SENTINEL,
        IMPLIED,
    ),
])];
