//! What reading and claiming entries of a group is recorded as: an XCLAIM for each entry, which says in whose hands it
//! is now, since when and how often it was delivered, and how far the group has read.

use crate::ctx::Ctx;
use keyspace::ValueRef;
use keyspace::stream::{Group, Pending, StreamId};

/// An entry that came into somebody's hands.
pub(super) struct Assigned {
    id: StreamId,
    pending: Pending,
    consumer: Vec<u8>,
    /// Of the group, at that moment.
    last_id: StreamId,
}

impl Assigned {
    pub(super) fn new(group: &Group, id: StreamId, pending: Pending) -> Assigned {
        let consumer = group.consumer(pending.consumer).map(|consumer| consumer.name().to_vec()).unwrap_or_default();
        Assigned { id, pending, consumer, last_id: group.last_id }
    }
}

/// Records entries that came into hands; the command itself is not recorded.
pub(super) fn record_claims(ctx: &mut Ctx<'_>, key: &[u8], group: &[u8], all: Vec<Assigned>) {
    ctx.db.no_effect();
    for assigned in all {
        let (id, last_id) = (assigned.id.to_string(), assigned.last_id.to_string());
        let delivered_ms = assigned.pending.delivered_ms.to_string();
        let deliveries = assigned.pending.deliveries.to_string();
        ctx.db.effect(&[
            b"XCLAIM",
            key,
            group,
            &assigned.consumer,
            b"0",
            id.as_bytes(),
            b"TIME",
            delivered_ms.as_bytes(),
            b"RETRYCOUNT",
            deliveries.as_bytes(),
            b"FORCE",
            b"JUSTID",
            b"LASTID",
            last_id.as_bytes(),
        ]);
    }
}

/// Records how far a group has read.
pub(super) fn record_group_id(ctx: &mut Ctx<'_>, key: &[u8], name: &[u8]) {
    if !ctx.db.is_recording() {
        return;
    }
    let Some(ValueRef::Stream(stream)) = ctx.db.get(key) else { return };
    let Some(group) = stream.groups().get(name) else { return };
    let last_id = group.last_id.to_string();
    let read = group.entries_read.map_or_else(|| "-1".to_owned(), |read| read.to_string());
    ctx.db.effect(&[b"XGROUP", b"SETID", key, name, last_id.as_bytes(), b"ENTRIESREAD", read.as_bytes()]);
}
