//! XCLAIM and XAUTOCLAIM: another consumer takes over what was delivered.

use super::read::see_consumer;
use super::record::{Assigned, record_claims, record_group_id};
use super::{count_changes, group_changed, id, no_group, pending_of, text, write_entry, write_id};
use crate::ctx::Ctx;
use crate::error::{CmdError, CmdResult, SYNTAX};
use crate::options::{int_in, is_word};
use keyspace::ValueMut;
use keyspace::stream::{ConsumerId, Group, Log, Pending, StreamId};
use resp::{Args, Reply};
use std::ops::Bound;

/// Pending entries that XAUTOCLAIM looks at for each one it is to claim.
const ATTEMPTS_FACTOR: usize = 10;

/// How entries are claimed.
struct Claim {
    min_idle_ms: i64,
    /// Only ids are answered, and deliveries are not counted.
    just_id: bool,
    /// When the entries are to count as delivered.
    delivered_ms: i64,
    /// Sets the count of deliveries.
    deliveries: Option<u64>,
    /// Entries that are not pending are made so.
    force: bool,
    now_ms: i64,
    /// What is to be recorded; `None`: nothing.
    record: Option<Vec<Assigned>>,
}

/// What became of an entry.
#[derive(PartialEq, Eq)]
enum Outcome {
    Claimed,
    /// It is no longer in the stream, and no longer pending.
    Gone,
    /// Left as it was.
    Left,
}

impl Claim {
    /// Hands one entry to the consumer and writes it.
    fn take(&mut self, out: &mut Reply, log: &Log, group: &mut Group, consumer: ConsumerId, id: StreamId) -> Outcome {
        let pending = group.pending().get(&id).copied();
        let Some(entry) = log.get(id) else {
            if let (Some(record), Some(pending)) = (&mut self.record, pending) {
                // Redis records it as a claim by its present owner; whoever replays that finds the entry gone, too.
                record.push(Assigned::new(group, id, pending));
            }
            return if group.acknowledge(id) { Outcome::Gone } else { Outcome::Left };
        };
        let deliveries = match pending {
            Some(pending) => {
                if self.min_idle_ms > 0 && self.now_ms.saturating_sub(pending.delivered_ms) < self.min_idle_ms {
                    return Outcome::Left;
                }
                pending.deliveries
            }
            None if self.force => 1,
            None => return Outcome::Left,
        };
        let deliveries = match self.deliveries {
            Some(deliveries) => deliveries,
            None => deliveries.wrapping_add(u64::from(!self.just_id)),
        };
        let pending = Pending { consumer, delivered_ms: self.delivered_ms, deliveries };
        group.assign(id, pending);
        if let Some(record) = &mut self.record {
            record.push(Assigned::new(group, id, pending));
        }
        if self.just_id {
            write_id(out, id);
        } else {
            write_entry(out, entry);
        }
        if let Some(consumer) = group.consumer_mut(consumer) {
            consumer.active_ms = self.now_ms;
        }
        Outcome::Claimed
    }
}

fn min_idle(argument: &[u8], error: CmdError) -> Result<i64, CmdError> {
    int_in(argument, i64::MIN, i64::MAX, error).map(|ms| ms.max(0))
}

/// Refuses a key or group that is not there; counts the look-up.
fn check_group(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let stream = ctx.db.read_stream(args.at(1))?;
    if stream.is_some_and(|stream| stream.groups().contains_key(args.at(2))) {
        return Ok(());
    }
    Err(no_group(args.at(1), args.at(2)))
}

/// The entries of a stream and one of its groups to change, after [`check_group`].
fn group_of<'a>(ctx: &'a mut Ctx<'_>, args: Args<'_>) -> Result<(&'a Log, &'a mut Group, &'a mut Reply), CmdError> {
    let Ctx { db, out, .. } = ctx;
    if let Some(ValueMut::Stream(stream)) = db.entry_mut(args.at(1)).map(keyspace::Entry::value_mut) {
        let (log, groups) = stream.parts_mut();
        if let Some(group) = groups.get_mut(args.at(2)) {
            return Ok((log, group, out));
        }
    }
    Err(no_group(args.at(1), args.at(2)))
}

/// XCLAIM key group consumer min-idle-time id [id …] [IDLE ms] [TIME unix-time-ms] [RETRYCOUNT count] [FORCE] [JUSTID]
/// [LASTID last-id]
pub(super) fn xclaim(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    check_group(ctx, args)?;
    let now_ms = ctx.db.now_ms();
    let min_idle_ms = min_idle(args.at(4), CmdError::new("ERR Invalid min-idle-time argument for XCLAIM"))?;
    let record = ctx.db.is_recording().then(Vec::new);
    // Ids end at the first argument that is none.
    let ids: Vec<StreamId> = args.slice(5).iter().map_while(|argument| id::strict(argument, 0).ok()).collect();
    let mut claim =
        Claim { min_idle_ms, just_id: false, delivered_ms: -1, deliveries: None, force: false, now_ms, record };
    let last_id = parse_options(&mut claim, args.slice(5 + ids.len()))?;
    // Redis: a time that cannot be right is taken as now.
    if !(0..=now_ms).contains(&claim.delivered_ms) {
        claim.delivered_ms = now_ms;
    }
    let (log, group, out) = group_of(ctx, args)?;
    let mut moves_last_id = last_id > group.last_id;
    if moves_last_id {
        group.last_id = last_id;
    }
    let (consumer, is_new) = see_consumer(group, args.at(3), now_ms)?;
    let header = out.defer();
    let (mut claimed, mut changes) = (0, 0);
    for id in ids {
        let outcome = claim.take(out, log, group, consumer, id);
        claimed += usize::from(outcome == Outcome::Claimed);
        if outcome != Outcome::Left {
            changes += 1;
            moves_last_id = false;
        }
    }
    out.finish_array(header, claimed);
    if is_new {
        group_changed(ctx, "xgroup-createconsumer", args.at(1));
    }
    count_changes(ctx, changes + u64::from(moves_last_id));
    record_claims(ctx, args.at(1), args.at(2), claim.record.unwrap_or_default());
    if moves_last_id {
        record_group_id(ctx, args.at(1), args.at(2));
    }
    Ok(())
}

/// Reads the options; gives LASTID's id, or 0-0.
fn parse_options(claim: &mut Claim, args: Args<'_>) -> Result<StreamId, CmdError> {
    let any = |value, error| int_in(value, i64::MIN, i64::MAX, CmdError::new(error));
    let mut last_id = StreamId::MIN;
    let mut at = 0;
    while let Some(word) = args.get(at) {
        let value = args.get(at + 1);
        at += 2;
        match value {
            _ if is_word(word, "force") => {
                claim.force = true;
                at -= 1;
            }
            _ if is_word(word, "justid") => {
                claim.just_id = true;
                at -= 1;
            }
            Some(value) if is_word(word, "idle") => {
                claim.delivered_ms =
                    claim.now_ms.wrapping_sub(any(value, "ERR Invalid IDLE option argument for XCLAIM")?);
            }
            Some(value) if is_word(word, "time") => {
                claim.delivered_ms = any(value, "ERR Invalid TIME option argument for XCLAIM")?;
            }
            Some(value) if is_word(word, "retrycount") => {
                // Redis: a negative one counts as not given.
                claim.deliveries = u64::try_from(any(value, "ERR Invalid RETRYCOUNT option argument for XCLAIM")?).ok();
            }
            Some(value) if is_word(word, "lastid") => last_id = id::strict(value, 0)?,
            _ => return Err(CmdError::text(format!("ERR Unrecognized XCLAIM option '{}'", text(word)))),
        }
    }
    Ok(last_id)
}

/// XAUTOCLAIM key group consumer min-idle-time start [COUNT count] [JUSTID]
pub(super) fn xautoclaim(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let now_ms = ctx.db.now_ms();
    let record = ctx.db.is_recording().then(Vec::new);
    let parsed = parse_auto(args, now_ms);
    // Redis: the look-up comes first.
    let group_is_there = check_group(ctx, args);
    let (mut claim, start, count) = match (parsed, group_is_there) {
        (Ok(parsed), Ok(())) => parsed,
        (Err(error), _) | (Ok(_), Err(error)) => return Err(error),
    };
    claim.record = record;
    let (log, group, out) = group_of(ctx, args)?;
    let (consumer, is_new) = see_consumer(group, args.at(3), now_ms)?;
    let mut claimed = Reply::with_buffer(Vec::new(), out.proto());
    let (mut claimed_len, mut gone) = (0, Vec::new());
    let mut attempts = count.saturating_mul(ATTEMPTS_FACTOR);
    let mut cursor = Bound::Included(start);
    let mut left = count;
    while attempts > 0
        && left > 0
        && let Some((&id, _)) = group.pending().range((cursor, Bound::Unbounded)).next()
    {
        attempts -= 1;
        cursor = Bound::Excluded(id);
        match claim.take(&mut claimed, log, group, consumer, id) {
            Outcome::Claimed => claimed_len += 1,
            Outcome::Gone => gone.push(id),
            Outcome::Left => continue,
        }
        left -= 1;
    }
    let next = group.pending().range((cursor, Bound::Unbounded)).next().map_or(StreamId::MIN, |(id, _)| *id);
    out.array(3);
    write_id(out, next);
    out.array(claimed_len);
    out.raw(claimed.as_slice());
    out.array(gone.len());
    for id in &gone {
        write_id(out, *id);
    }
    if is_new {
        group_changed(ctx, "xgroup-createconsumer", args.at(1));
    }
    count_changes(ctx, (claimed_len + gone.len()) as u64);
    record_claims(ctx, args.at(1), args.at(2), claim.record.unwrap_or_default());
    Ok(())
}

fn parse_auto(args: Args<'_>, now_ms: i64) -> Result<(Claim, StreamId, usize), CmdError> {
    // What Redis can still multiply by the size of an id.
    const COUNT_MAX: i64 = i64::MAX / 16;
    let min_idle_ms = min_idle(args.at(4), CmdError::new("ERR Invalid min-idle-time argument for XAUTOCLAIM"))?;
    let start = id::start(args.at(5))?;
    let mut claim = Claim {
        min_idle_ms,
        just_id: false,
        delivered_ms: now_ms,
        deliveries: None,
        force: false,
        now_ms,
        record: None,
    };
    let mut count = 100;
    let mut words = args.slice(6).iter();
    while let Some(word) = words.next() {
        if is_word(word, "justid") {
            claim.just_id = true;
        } else if is_word(word, "count") {
            let value = words.next().ok_or(SYNTAX)?;
            count = int_in(value, 1, COUNT_MAX, CmdError::new("ERR COUNT must be > 0"))?;
        } else {
            return Err(SYNTAX);
        }
    }
    Ok((claim, start, usize::try_from(count).unwrap_or(usize::MAX)))
}

/// As many pending entries as may be looked at.
pub(super) fn xautoclaim_cost(ctx: &mut Ctx<'_>, args: Args<'_>) -> usize {
    match parse_auto(args, 0) {
        Ok((_, _, count)) => count.saturating_mul(ATTEMPTS_FACTOR).min(pending_of(ctx, args.at(1), args.at(2))),
        Err(_) => 0,
    }
}
