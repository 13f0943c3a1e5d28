//! CLIENT: this connection and the others.

use super::id::CommandId::{
    Client, ClientCaching, ClientGetname, ClientGetredir, ClientHelp, ClientId, ClientInfo,
    ClientKill, ClientList, ClientNoEvict, ClientNoTouch, ClientPause, ClientReply, ClientSetinfo,
    ClientSetname, ClientTracking, ClientTrackinginfo, ClientUnblock, ClientUnpause,
};
use super::row::category::{CONNECTION, IMPLIED};
use super::row::flag::{ADMIN, LOADING, NOSCRIPT, SENTINEL, STALE};
use super::row::row;
use super::spec::CommandSpec;

pub(super) static ROWS: [CommandSpec; 1] = [row(Client, "client", -2, SENTINEL, IMPLIED)
    .subcommands(&[
        row(
            ClientCaching,
            "client|caching",
            3,
            NOSCRIPT | LOADING | STALE | SENTINEL,
            CONNECTION,
        ),
        row(
            ClientGetname,
            "client|getname",
            2,
            NOSCRIPT | LOADING | STALE | SENTINEL,
            CONNECTION,
        ),
        row(
            ClientGetredir,
            "client|getredir",
            2,
            NOSCRIPT | LOADING | STALE | SENTINEL,
            CONNECTION,
        ),
        row(
            ClientHelp,
            "client|help",
            2,
            LOADING | STALE | SENTINEL,
            CONNECTION,
        ),
        row(
            ClientId,
            "client|id",
            2,
            NOSCRIPT | LOADING | STALE | SENTINEL,
            CONNECTION,
        ),
        row(
            ClientInfo,
            "client|info",
            2,
            NOSCRIPT | LOADING | STALE | SENTINEL,
            CONNECTION,
        )
        .tips(&["nondeterministic_output"]),
        row(
            ClientKill,
            "client|kill",
            -3,
            ADMIN | NOSCRIPT | LOADING | STALE | SENTINEL,
            CONNECTION,
        ),
        row(
            ClientList,
            "client|list",
            -2,
            ADMIN | NOSCRIPT | LOADING | STALE | SENTINEL,
            CONNECTION,
        )
        .tips(&["nondeterministic_output"]),
        row(
            ClientNoEvict,
            "client|no-evict",
            3,
            ADMIN | NOSCRIPT | LOADING | STALE | SENTINEL,
            CONNECTION,
        ),
        row(
            ClientNoTouch,
            "client|no-touch",
            3,
            NOSCRIPT | LOADING | STALE,
            CONNECTION,
        ),
        row(
            ClientPause,
            "client|pause",
            -3,
            ADMIN | NOSCRIPT | LOADING | STALE | SENTINEL,
            CONNECTION,
        ),
        row(
            ClientReply,
            "client|reply",
            3,
            NOSCRIPT | LOADING | STALE | SENTINEL,
            CONNECTION,
        ),
        row(
            ClientSetinfo,
            "client|setinfo",
            4,
            NOSCRIPT | LOADING | STALE | SENTINEL,
            CONNECTION,
        )
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]),
        row(
            ClientSetname,
            "client|setname",
            3,
            NOSCRIPT | LOADING | STALE | SENTINEL,
            CONNECTION,
        )
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"]),
        row(
            ClientTracking,
            "client|tracking",
            -3,
            NOSCRIPT | LOADING | STALE | SENTINEL,
            CONNECTION,
        ),
        row(
            ClientTrackinginfo,
            "client|trackinginfo",
            2,
            NOSCRIPT | LOADING | STALE | SENTINEL,
            CONNECTION,
        ),
        row(
            ClientUnblock,
            "client|unblock",
            -3,
            ADMIN | NOSCRIPT | LOADING | STALE | SENTINEL,
            CONNECTION,
        ),
        row(
            ClientUnpause,
            "client|unpause",
            2,
            ADMIN | NOSCRIPT | LOADING | STALE | SENTINEL,
            CONNECTION,
        ),
    ])];
