//! SUBSCRIBE and its kin, PUBLISH, PUBSUB.

use crate::exec::Step;
use crate::pubsub::Kind;
use crate::session::{Session, State};
use crate::worker::Worker;
use commands::{CmdError, CommandId};
use net::ConnId;
use resp::Args;
use std::sync::Arc;

fn words(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Channel => ("subscribe", "unsubscribe"),
        Kind::Pattern => ("psubscribe", "punsubscribe"),
        Kind::Shard => ("ssubscribe", "sunsubscribe"),
    }
}

/// The kind a command works on.
pub(crate) fn kind_of(id: CommandId) -> Kind {
    match id {
        CommandId::Psubscribe | CommandId::Punsubscribe => Kind::Pattern,
        CommandId::Ssubscribe | CommandId::Sunsubscribe => Kind::Shard,
        _ => Kind::Channel,
    }
}

fn names_mut(session: &mut Session, kind: Kind) -> &mut Vec<Arc<[u8]>> {
    let extra = session.extra_mut();
    match kind {
        Kind::Channel => &mut extra.channels,
        Kind::Pattern => &mut extra.patterns,
        Kind::Shard => &mut extra.shard_channels,
    }
}

/// The number that (un)subscribe replies end with: channels and patterns together, shard channels apart.
fn counted(session: &Session, kind: Kind) -> i64 {
    let (channels, patterns, shards) = session.subscriptions();
    let count = if kind == Kind::Shard { shards } else { channels + patterns };
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn note_state(session: &mut Session) {
    let (channels, patterns, shards) = session.subscriptions();
    if channels + patterns + shards > 0 {
        session.state.insert(State::SUBSCRIBED);
    } else {
        session.state.remove(State::SUBSCRIBED);
    }
}

/// SUBSCRIBE, PSUBSCRIBE, SSUBSCRIBE.
pub(crate) fn subscribe(
    worker: &mut Worker,
    id: ConnId,
    session: &mut Session,
    kind: Kind,
    args: Args<'_>,
) -> Result<Step, CmdError> {
    let subscriber = worker.subscriber(id);
    for name in args.slice(1).iter() {
        let names = names_mut(session, kind);
        if !names.iter().any(|other| **other == *name) {
            let name: Arc<[u8]> = name.into();
            names.push(name.clone());
            worker.shared.pubsub.subscribe(kind, &name, subscriber);
        }
        note_state(session);
        worker.reply.push(3);
        worker.reply.bulk(words(kind).0);
        worker.reply.bulk(name);
        worker.reply.int(counted(session, kind));
    }
    Ok(Step::Done)
}

/// UNSUBSCRIBE, PUNSUBSCRIBE, SUNSUBSCRIBE.
pub(crate) fn unsubscribe(
    worker: &mut Worker,
    id: ConnId,
    session: &mut Session,
    kind: Kind,
    args: Args<'_>,
) -> Result<Step, CmdError> {
    let subscriber = worker.subscriber(id);
    let mut named: Vec<Arc<[u8]>> = args.slice(1).iter().map(Arc::from).collect();
    if named.is_empty() {
        named = session.extra.as_mut().map(|_| ()).map_or_else(Vec::new, |()| names_mut(session, kind).clone());
        if named.is_empty() {
            worker.reply.push(3);
            worker.reply.bulk(words(kind).1);
            worker.reply.null();
            worker.reply.int(counted(session, kind));
            return Ok(Step::Done);
        }
    }
    for name in named {
        let names = names_mut(session, kind);
        if let Some(at) = names.iter().position(|other| *other == name) {
            names.remove(at);
            worker.shared.pubsub.unsubscribe(kind, &name, subscriber);
        }
        note_state(session);
        worker.reply.push(3);
        worker.reply.bulk(words(kind).1);
        worker.reply.bulk(&name);
        worker.reply.int(counted(session, kind));
    }
    Ok(Step::Done)
}

/// Ends all subscriptions without a word (RESET).
pub(crate) fn drop_all(worker: &mut Worker, id: ConnId, session: &mut Session) {
    let subscriber = worker.subscriber(id);
    if session.extra.is_none() {
        return;
    }
    for kind in [Kind::Channel, Kind::Pattern, Kind::Shard] {
        for name in std::mem::take(names_mut(session, kind)) {
            worker.shared.pubsub.unsubscribe(kind, &name, subscriber);
        }
    }
    note_state(session);
}

/// PUBLISH, SPUBLISH.
pub(crate) fn publish(
    worker: &mut Worker,
    db: keyspace::DbIndex,
    shard: bool,
    args: Args<'_>,
) -> Result<Step, CmdError> {
    let count = worker.publish(shard, &args[1], &args[2]);
    // Subscribers of replicas hear it too; an AOF need not.
    worker.locks.effects.for_replicas(db, args);
    worker.reply.count(count);
    Ok(Step::Done)
}

/// PUBSUB CHANNELS, NUMSUB, NUMPAT, SHARDCHANNELS, SHARDNUMSUB.
pub(crate) fn introspect(worker: &mut Worker, id: CommandId, args: Args<'_>) -> Result<Step, CmdError> {
    let pubsub = &worker.shared.pubsub;
    match id {
        CommandId::PubsubChannels | CommandId::PubsubShardchannels if args.len() > 3 => {
            let text = commands::table::errors::subcommand_syntax(&args);
            return Err(CmdError::text(String::from_utf8_lossy(&text).into_owned()));
        }
        CommandId::PubsubChannels | CommandId::PubsubShardchannels => {
            let kind = if id == CommandId::PubsubChannels { Kind::Channel } else { Kind::Shard };
            let names = pubsub.active(kind, args.get(2));
            worker.reply.array(names.len());
            for name in &names {
                worker.reply.bulk(name);
            }
        }
        CommandId::PubsubNumpat => worker.reply.count(pubsub.names(Kind::Pattern)),
        _ => {
            let kind = if id == CommandId::PubsubNumsub { Kind::Channel } else { Kind::Shard };
            let counts: Vec<(&[u8], usize)> =
                args.slice(2).iter().map(|name| (name, pubsub.count(kind, name))).collect();
            // Redis: a flat array in RESP3 too.
            worker.reply.array(2 * counts.len());
            for (name, count) in counts {
                worker.reply.bulk(name);
                worker.reply.count(count);
            }
        }
    }
    Ok(Step::Done)
}
