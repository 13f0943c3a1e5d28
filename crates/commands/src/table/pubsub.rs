//! Publish and subscribe.

use super::id::CommandId::{
    Psubscribe, Publish, Pubsub, PubsubChannels, PubsubHelp, PubsubNumpat, PubsubNumsub,
    PubsubShardchannels, PubsubShardnumsub, Punsubscribe, Spublish, Ssubscribe, Subscribe,
    Sunsubscribe, Unsubscribe,
};
use super::row::category::IMPLIED;
use super::row::flag::{FAST, LOADING, MAY_REPLICATE, NONE, NOSCRIPT, PUBSUB, SENTINEL, STALE};
use super::row::usage::NOT_KEY;
use super::row::{key, key_range, row};
use super::spec::CommandSpec;

pub(super) static ROWS: [CommandSpec; 9] = [
    row(
        Psubscribe,
        "psubscribe",
        -2,
        PUBSUB | NOSCRIPT | LOADING | STALE | SENTINEL,
        IMPLIED,
    ),
    row(
        Publish,
        "publish",
        3,
        PUBSUB | LOADING | STALE | FAST | MAY_REPLICATE | SENTINEL,
        IMPLIED,
    ),
    row(Pubsub, "pubsub", -2, NONE, IMPLIED).subcommands(&[
        row(
            PubsubChannels,
            "pubsub|channels",
            -2,
            PUBSUB | LOADING | STALE,
            IMPLIED,
        ),
        row(PubsubHelp, "pubsub|help", 2, LOADING | STALE, IMPLIED),
        row(
            PubsubNumpat,
            "pubsub|numpat",
            2,
            PUBSUB | LOADING | STALE,
            IMPLIED,
        ),
        row(
            PubsubNumsub,
            "pubsub|numsub",
            -2,
            PUBSUB | LOADING | STALE,
            IMPLIED,
        ),
        row(
            PubsubShardchannels,
            "pubsub|shardchannels",
            -2,
            PUBSUB | LOADING | STALE,
            IMPLIED,
        ),
        row(
            PubsubShardnumsub,
            "pubsub|shardnumsub",
            -2,
            PUBSUB | LOADING | STALE,
            IMPLIED,
        ),
    ]),
    row(
        Punsubscribe,
        "punsubscribe",
        -1,
        PUBSUB | NOSCRIPT | LOADING | STALE | SENTINEL,
        IMPLIED,
    ),
    row(
        Spublish,
        "spublish",
        3,
        PUBSUB | LOADING | STALE | FAST | MAY_REPLICATE,
        IMPLIED,
    )
    .keys(&[key(1, NOT_KEY)]),
    row(
        Ssubscribe,
        "ssubscribe",
        -2,
        PUBSUB | NOSCRIPT | LOADING | STALE,
        IMPLIED,
    )
    .keys(&[key_range(1, -1, NOT_KEY)]),
    row(
        Subscribe,
        "subscribe",
        -2,
        PUBSUB | NOSCRIPT | LOADING | STALE | SENTINEL,
        IMPLIED,
    ),
    row(
        Sunsubscribe,
        "sunsubscribe",
        -1,
        PUBSUB | NOSCRIPT | LOADING | STALE,
        IMPLIED,
    )
    .keys(&[key_range(1, -1, NOT_KEY)]),
    row(
        Unsubscribe,
        "unsubscribe",
        -1,
        PUBSUB | NOSCRIPT | LOADING | STALE | SENTINEL,
        IMPLIED,
    ),
];
