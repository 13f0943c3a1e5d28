//! ACL: users and their rights.

use super::docs::{Group, docs, integer, one_of, string, token};
use super::id::CommandId::{
    Acl, AclCat, AclDeluser, AclDryrun, AclGenpass, AclGetuser, AclHelp, AclList, AclLoad, AclLog, AclSave, AclSetuser,
    AclUsers, AclWhoami,
};
use super::row::category::IMPLIED;
use super::row::flag::{ADMIN, LOADING, NOSCRIPT, SENTINEL, STALE};
use super::row::row;
use super::spec::CommandSpec;

pub(super) static ROWS: [CommandSpec; 1] = [row(Acl, "acl", -2, SENTINEL, IMPLIED)
    .docs(&docs(Group::Server, "6.0.0", "That of the subcommand.", "Manages users and what they may do."))
    .subcommands(&[
        row(AclCat, "acl|cat", -2, NOSCRIPT | LOADING | STALE | SENTINEL, IMPLIED).docs(
            &docs(
                Group::Server,
                "6.0.0",
                "O(1); categories and commands are fixed.",
                "Names the ACL categories, or the commands of one category.",
            )
            .arguments(&[string("category").optional()]),
        ),
        row(AclDeluser, "acl|deluser", -3, ADMIN | NOSCRIPT | LOADING | STALE | SENTINEL, IMPLIED)
            .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
            .docs(
                &docs(Group::Server, "6.0.0", "O(1) for a usual user.", "Removes users and closes their connections.")
                    .arguments(&[string("username").multiple()]),
            ),
        row(AclDryrun, "acl|dryrun", -4, ADMIN | NOSCRIPT | LOADING | STALE | SENTINEL, IMPLIED).docs(
            &docs(Group::Server, "7.0.0", "O(1)", "Tells whether a user could run a command, without running it.")
                .arguments(&[string("username"), string("command"), string("arg").optional().multiple()]),
        ),
        row(AclGenpass, "acl|genpass", -2, NOSCRIPT | LOADING | STALE | SENTINEL, IMPLIED).docs(
            &docs(Group::Server, "6.0.0", "O(1)", "Makes a random password from a secure source.")
                .arguments(&[integer("bits").optional()]),
        ),
        row(AclGetuser, "acl|getuser", 3, ADMIN | NOSCRIPT | LOADING | STALE | SENTINEL, IMPLIED).docs(
            &docs(Group::Server, "6.0.0", "O(N), N: passwords and rules of the user.", "Shows all rules of one user.")
                .history(&[
                    ("6.2.0", "Rules for Pub/Sub channels."),
                    (
                        "7.0.0",
                        "Shows selectors; patterns of keys and channels are shown as rules \
                     instead of lists.",
                    ),
                ])
                .arguments(&[string("username")]),
        ),
        row(AclHelp, "acl|help", 2, LOADING | STALE | SENTINEL, IMPLIED).docs(&docs(
            Group::Server,
            "6.0.0",
            "O(1)",
            "Explains the subcommands.",
        )),
        row(AclList, "acl|list", 2, ADMIN | NOSCRIPT | LOADING | STALE | SENTINEL, IMPLIED).docs(&docs(
            Group::Server,
            "6.0.0",
            "O(N), N: users.",
            "Shows each user as a line of the ACL file.",
        )),
        row(AclLoad, "acl|load", 2, ADMIN | NOSCRIPT | LOADING | STALE | SENTINEL, IMPLIED).docs(&docs(
            Group::Server,
            "6.0.0",
            "O(N), N: users.",
            "Replaces the users by those in the ACL file.",
        )),
        row(AclLog, "acl|log", -2, ADMIN | NOSCRIPT | LOADING | STALE | SENTINEL, IMPLIED).docs(
            &docs(
                Group::Server,
                "6.0.0",
                "O(N), N: entries shown.",
                "Shows, or clears, the latest refusals of commands, keys, channels \
                     and logins.",
            )
            .history(&[("7.2.0", "Entries have an ID and the times of creation and last update.")])
            .arguments(&[one_of("operation", &[integer("count"), token("reset", "RESET")]).optional()]),
        ),
        row(AclSave, "acl|save", 2, ADMIN | NOSCRIPT | LOADING | STALE | SENTINEL, IMPLIED)
            .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
            .docs(&docs(Group::Server, "6.0.0", "O(N), N: users.", "Writes the users to the ACL file.")),
        row(AclSetuser, "acl|setuser", -3, ADMIN | NOSCRIPT | LOADING | STALE | SENTINEL, IMPLIED)
            .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
            .docs(
                &docs(Group::Server, "6.0.0", "O(N), N: rules given.", "Makes a user, or changes the rules of one.")
                    .history(&[
                        ("6.2.0", "Rules for Pub/Sub channels."),
                        ("7.0.0", "Selectors, and rights on keys by kind of access."),
                    ])
                    .arguments(&[string("username"), string("rule").optional().multiple()]),
            ),
        row(AclUsers, "acl|users", 2, ADMIN | NOSCRIPT | LOADING | STALE | SENTINEL, IMPLIED).docs(&docs(
            Group::Server,
            "6.0.0",
            "O(N), N: users.",
            "Names all users.",
        )),
        row(AclWhoami, "acl|whoami", 2, NOSCRIPT | LOADING | STALE | SENTINEL, IMPLIED).docs(&docs(
            Group::Server,
            "6.0.0",
            "O(1)",
            "Names the user of this connection.",
        )),
    ])];
