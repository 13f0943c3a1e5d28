//! Publish and subscribe.

use super::docs::{Group, docs, pattern, string};
use super::id::CommandId::{
    Psubscribe, Publish, Pubsub, PubsubChannels, PubsubHelp, PubsubNumpat, PubsubNumsub, PubsubShardchannels,
    PubsubShardnumsub, Punsubscribe, Spublish, Ssubscribe, Subscribe, Sunsubscribe, Unsubscribe,
};
use super::row::category::IMPLIED;
use super::row::flag::{FAST, LOADING, MAY_REPLICATE, NONE, NOSCRIPT, PUBSUB, SENTINEL, STALE};
use super::row::usage::NOT_KEY;
use super::row::{key, key_range, row};
use super::spec::CommandSpec;

pub(super) static ROWS: [CommandSpec; 9] = [
    row(Psubscribe, "psubscribe", -2, PUBSUB | NOSCRIPT | LOADING | STALE | SENTINEL, IMPLIED).docs(
        &docs(Group::Pubsub, "2.0.0", "O(N), N: patterns.", "Listens to all channels that match patterns.")
            .arguments(&[pattern("pattern").multiple()]),
    ),
    row(Publish, "publish", 3, PUBSUB | LOADING | STALE | FAST | MAY_REPLICATE | SENTINEL, IMPLIED).docs(
        &docs(
            Group::Pubsub,
            "2.0.0",
            "O(N+M), N: subscribers of the channel, M: patterns of all connections.",
            "Sends a message to a channel.",
        )
        .arguments(&[string("channel"), string("message")]),
    ),
    row(Pubsub, "pubsub", -2, NONE, IMPLIED)
        .docs(&docs(Group::Pubsub, "2.8.0", "That of the subcommand.", "Looks at channels and subscriptions."))
        .subcommands(&[
            row(PubsubChannels, "pubsub|channels", -2, PUBSUB | LOADING | STALE, IMPLIED).docs(
                &docs(
                    Group::Pubsub,
                    "2.8.0",
                    "O(N), N: channels with subscribers; names and pattern are taken as \
                     short.",
                    "Names the channels that have subscribers.",
                )
                .arguments(&[pattern("pattern").optional()]),
            ),
            row(PubsubHelp, "pubsub|help", 2, LOADING | STALE, IMPLIED).docs(&docs(
                Group::Pubsub,
                "6.2.0",
                "O(1)",
                "Explains the subcommands.",
            )),
            row(PubsubNumpat, "pubsub|numpat", 2, PUBSUB | LOADING | STALE, IMPLIED).docs(&docs(
                Group::Pubsub,
                "2.8.0",
                "O(1)",
                "Counts the different patterns that have subscribers.",
            )),
            row(PubsubNumsub, "pubsub|numsub", -2, PUBSUB | LOADING | STALE, IMPLIED).docs(
                &docs(Group::Pubsub, "2.8.0", "O(N), N: channels asked for.", "Counts the subscribers of channels.")
                    .arguments(&[string("channel").optional().multiple()]),
            ),
            row(PubsubShardchannels, "pubsub|shardchannels", -2, PUBSUB | LOADING | STALE, IMPLIED).docs(
                &docs(
                    Group::Pubsub,
                    "7.0.0",
                    "O(N), N: shard channels with subscribers; names and pattern are \
                     taken as short.",
                    "Names the shard channels that have subscribers.",
                )
                .arguments(&[pattern("pattern").optional()]),
            ),
            row(PubsubShardnumsub, "pubsub|shardnumsub", -2, PUBSUB | LOADING | STALE, IMPLIED).docs(
                &docs(
                    Group::Pubsub,
                    "7.0.0",
                    "O(N), N: shard channels asked for.",
                    "Counts the subscribers of shard channels.",
                )
                .arguments(&[string("shardchannel").optional().multiple()]),
            ),
        ]),
    row(Punsubscribe, "punsubscribe", -1, PUBSUB | NOSCRIPT | LOADING | STALE | SENTINEL, IMPLIED).docs(
        &docs(Group::Pubsub, "2.0.0", "O(N), N: patterns.", "Stops listening to patterns.").arguments(&[pattern(
            "pattern",
        )
        .optional()
        .multiple()]),
    ),
    row(Spublish, "spublish", 3, PUBSUB | LOADING | STALE | FAST | MAY_REPLICATE, IMPLIED)
        .keys(&[key(1, NOT_KEY)])
        .docs(
            &docs(
                Group::Pubsub,
                "7.0.0",
                "O(N), N: subscribers of the shard channel.",
                "Sends a message to a shard channel.",
            )
            .arguments(&[string("shardchannel"), string("message")]),
        ),
    row(Ssubscribe, "ssubscribe", -2, PUBSUB | NOSCRIPT | LOADING | STALE, IMPLIED)
        .keys(&[key_range(1, -1, NOT_KEY)])
        .docs(
            &docs(Group::Pubsub, "7.0.0", "O(N), N: shard channels.", "Listens to shard channels.")
                .arguments(&[string("shardchannel").multiple()]),
        ),
    row(Subscribe, "subscribe", -2, PUBSUB | NOSCRIPT | LOADING | STALE | SENTINEL, IMPLIED).docs(
        &docs(Group::Pubsub, "2.0.0", "O(N), N: channels.", "Listens to channels.")
            .arguments(&[string("channel").multiple()]),
    ),
    row(Sunsubscribe, "sunsubscribe", -1, PUBSUB | NOSCRIPT | LOADING | STALE, IMPLIED)
        .keys(&[key_range(1, -1, NOT_KEY)])
        .docs(
            &docs(Group::Pubsub, "7.0.0", "O(N), N: shard channels.", "Stops listening to shard channels.")
                .arguments(&[string("shardchannel").optional().multiple()]),
        ),
    row(Unsubscribe, "unsubscribe", -1, PUBSUB | NOSCRIPT | LOADING | STALE | SENTINEL, IMPLIED).docs(
        &docs(Group::Pubsub, "2.0.0", "O(N), N: channels.", "Stops listening to channels.").arguments(&[string(
            "channel",
        )
        .optional()
        .multiple()]),
    ),
];
