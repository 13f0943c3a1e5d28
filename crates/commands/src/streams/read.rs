//! XREAD and XREADGROUP: reading on from an id, and waiting for what is to come.
//!
//! Redis: both look each key up twice, so each counts as two hits or misses.

use super::record::{Assigned, record_claims, record_group_id};
use super::{count_changes, group_changed, id, stream_at, text, write_entries, write_entry, write_id};
use crate::ctx::{Block, Ctx, TimeoutReply};
use crate::error::{CmdError, CmdResult, SYNTAX};
use crate::options::{int, is_word};
use keyspace::ValueMut;
use keyspace::stream::{ConsumerId, Group, Log, Pending, StreamId};
use resp::{Args, Reply};

/// XREAD [COUNT count] [BLOCK milliseconds] STREAMS key [key …] id [id …]
pub(super) fn xread(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    read(ctx, args, false)
}

/// XREADGROUP GROUP group consumer [COUNT count] [BLOCK milliseconds] [NOACK] STREAMS key [key …] id [id …]
pub(super) fn xreadgroup(ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    read(ctx, args, true)
}

/// What both commands are asked for.
struct Request<'a> {
    /// Group and consumer.
    group: Option<(&'a [u8], &'a [u8])>,
    /// Entries of each stream; 0: all.
    count: usize,
    /// When to give up waiting; outer `None`: does not wait.
    block: Option<Option<i64>>,
    no_ack: bool,
    /// Argument of the first key.
    keys_at: usize,
    /// How many keys; as many ids follow.
    keys: usize,
}

impl<'a> Request<'a> {
    fn parse(args: Args<'a>, grouped: bool, now_ms: i64) -> Result<Request<'a>, CmdError> {
        let mut request = Request { group: None, count: 0, block: None, no_ack: false, keys_at: 0, keys: 0 };
        let mut at = 1;
        while let Some(word) = args.get(at) {
            let more = args.len() - at - 1;
            if is_word(word, "block") && more > 0 {
                at += 1;
                request.block = Some(deadline(args.at(at), now_ms)?);
            } else if is_word(word, "count") && more > 0 {
                at += 1;
                request.count = usize::try_from(int(args.at(at))?).unwrap_or(0);
            } else if is_word(word, "streams") && more > 0 {
                request.keys_at = at + 1;
                if !more.is_multiple_of(2) {
                    return Err(unbalanced(grouped));
                }
                request.keys = more / 2;
                break;
            } else if is_word(word, "group") && more >= 2 {
                if !grouped {
                    return Err(CmdError::new(
                        "ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.",
                    ));
                }
                request.group = Some((args.at(at + 1), args.at(at + 2)));
                at += 2;
            } else if is_word(word, "noack") {
                if !grouped {
                    return Err(CmdError::new(
                        "ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.",
                    ));
                }
                request.no_ack = true;
            } else {
                return Err(SYNTAX);
            }
            at += 1;
        }
        if request.keys_at == 0 {
            return Err(SYNTAX);
        }
        if grouped && request.group.is_none() {
            return Err(CmdError::new("ERR Missing GROUP option for XREADGROUP"));
        }
        Ok(request)
    }

    fn key(&self, args: Args<'a>, index: usize) -> &'a [u8] {
        args.at(self.keys_at + index)
    }

    fn id(&self, args: Args<'a>, index: usize) -> &'a [u8] {
        id::c_string(args.at(self.keys_at + self.keys + index))
    }
}

fn unbalanced(grouped: bool) -> CmdError {
    CmdError::new(if grouped {
        "ERR Unbalanced 'xreadgroup' list of streams: for each stream key an ID or '>' must be specified."
    } else {
        "ERR Unbalanced 'xread' list of streams: for each stream key an ID or '$' must be specified."
    })
}

/// The timeout of BLOCK, in ms, as the time at which it ends; `None`: never.
fn deadline(argument: &[u8], now_ms: i64) -> Result<Option<i64>, CmdError> {
    const NOT_AN_INTEGER: CmdError = CmdError::new("ERR timeout is not an integer or out of range");
    use crate::error::{TIMEOUT_NEGATIVE, TIMEOUT_OUT_OF_RANGE};
    match resp::num::parse_i64(argument).ok_or(NOT_AN_INTEGER)? {
        ..0 => Err(TIMEOUT_NEGATIVE),
        0 => Ok(None),
        ms => now_ms.checked_add(ms).map(Some).ok_or(TIMEOUT_OUT_OF_RANGE),
    }
}

/// From where a stream is read on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum From {
    /// What lies behind this id; under XREADGROUP, of what is pending.
    Id(StreamId),
    /// What the group has not read yet.
    New,
}

fn read(ctx: &mut Ctx<'_>, args: Args<'_>, grouped: bool) -> CmdResult {
    let request = Request::parse(args, grouped, ctx.db.now_ms())?;
    if grouped {
        // Only what it came to is recorded.
        ctx.db.no_effect();
    }
    let mut from = Vec::with_capacity(request.keys);
    for index in 0..request.keys {
        from.push(starting_point(ctx, args, &request, index)?);
    }
    let mut header = None;
    let mut served = 0;
    for (index, from) in from.iter().enumerate() {
        let key = request.key(args, index);
        let start = ctx.out.len();
        let had_header = header.is_some();
        let opened = *header.get_or_insert_with(|| ctx.out.defer());
        let is_served = match request.group {
            None => read_plain(ctx, key, *from, request.count)?,
            Some((group, consumer)) => read_group(ctx, key, *from, group, consumer, &request)?,
        };
        if is_served {
            served += 1;
        } else if !had_header {
            ctx.out.undo(opened);
            debug_assert_eq!(ctx.out.len(), start);
            header = None;
        }
    }
    if let Some(header) = header {
        if ctx.out.is_resp3() {
            ctx.out.finish_map(header, served);
        } else {
            ctx.out.finish_array(header, served);
        }
        return Ok(());
    }
    match request.block {
        Some(deadline_ms) if ctx.may_block => {
            // Woken later, `$` is to mean what it means now.
            let mut replaced = Vec::new();
            for (index, from) in from.iter().enumerate() {
                if let (From::Id(id), b"$") = (from, request.id(args, index)) {
                    replaced.push((request.keys_at + request.keys + index, id.to_string().into_bytes()));
                }
            }
            let keys = request.keys_at..request.keys_at + request.keys;
            ctx.wait_for(Block { keys, deadline_ms, timeout_reply: TimeoutReply::NullArray, replaced });
        }
        _ => ctx.out.null_array(),
    }
    Ok(())
}

/// Reads an id, and sees that key and group are there.
fn starting_point(ctx: &mut Ctx<'_>, args: Args<'_>, request: &Request<'_>, index: usize) -> Result<From, CmdError> {
    let key = request.key(args, index);
    let stream = ctx.db.read_stream(key)?;
    if let Some((group, _)) = request.group
        && !stream.is_some_and(|stream| stream.groups().contains_key(group))
    {
        return Err(CmdError::text(format!(
            "NOGROUP No such key '{}' or consumer group '{}' in XREADGROUP with GROUP option",
            text(key),
            text(group)
        )));
    }
    let grouped = request.group.is_some();
    match request.id(args, index) {
        b"$" if grouped => Err(CmdError::new(
            "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by \
             specifying a proper ID, or use the > ID to get new messages. The $ ID would just return an empty result set.",
        )),
        b"$" => Ok(From::Id(stream.map_or(StreamId::MIN, |stream| stream.log().last_id()))),
        b">" if grouped => Ok(From::New),
        b">" => Err(CmdError::new(
            "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.",
        )),
        _ => {
            let id = id::strict(args.at(request.keys_at + request.keys + index), 0)?;
            // Redis: the greatest id stands for `>`.
            Ok(if grouped && id == StreamId::MAX { From::New } else { From::Id(id) })
        }
    }
}

/// Begins the part of one stream in the reply.
fn begin_stream(out: &mut Reply, key: &[u8]) {
    if !out.is_resp3() {
        out.array(2);
    }
    out.bulk(key);
}

/// Reads without a group. False: there is nothing.
fn read_plain(ctx: &mut Ctx<'_>, key: &[u8], from: From, count: usize) -> Result<bool, CmdError> {
    let Some(stream) = ctx.db.read_stream(key)? else { return Ok(false) };
    let log = stream.log();
    let From::Id(from) = from else { return Ok(false) };
    if log.last_live_id().is_none_or(|last| last <= from) {
        return Ok(false);
    }
    // Something lies behind the id, so it is not the greatest.
    let start = from.next().unwrap_or(StreamId::MAX);
    begin_stream(ctx.out, key);
    write_entries(ctx.out, log.range(start, StreamId::MAX), count);
    Ok(true)
}

/// Reads for a consumer of a group. False: there is nothing.
fn read_group(
    ctx: &mut Ctx<'_>,
    key: &[u8],
    from: From,
    group_name: &[u8],
    consumer_name: &[u8],
    request: &Request<'_>,
) -> Result<bool, CmdError> {
    let now_ms = ctx.db.now_ms();
    let is_recording = ctx.db.is_recording();
    // Counts the second look-up; the next line gets the stream to change.
    ctx.db.read_stream(key)?;
    let Some(ValueMut::Stream(stream)) = ctx.db.entry_mut(key).map(keyspace::Entry::value_mut) else {
        return Ok(false);
    };
    let (log, groups) = stream.parts_mut();
    let Some(group) = groups.get_mut(group_name) else { return Ok(false) };
    let (consumer, is_new) = see_consumer(group, consumer_name, now_ms)?;
    let has_new = log.last_live_id().is_some_and(|last| last > group.last_id);
    let is_served = match from {
        From::Id(_) => true,
        From::New => has_new,
    };
    let mut record = is_recording.then(Vec::new);
    if is_served {
        begin_stream(ctx.out, key);
    }
    match from {
        From::Id(from) => {
            // Redis: behind the greatest id comes the smallest; but the greatest means `>` here.
            let start = from.next().unwrap_or(StreamId::MIN);
            write_history(ctx.out, log, group, consumer, start, request.count, now_ms);
        }
        From::New if has_new => {
            deliver(ctx.out, log, group, consumer, request, now_ms, &mut record);
        }
        From::New => {}
    }
    if is_new {
        group_changed(ctx, "xgroup-createconsumer", key);
    }
    if is_served {
        count_changes(ctx, 1);
    }
    if is_recording {
        if is_new && request.no_ack {
            ctx.db.effect(&[b"XGROUP", b"CREATECONSUMER", key, group_name, consumer_name]);
        }
        record_claims(ctx, key, group_name, record.unwrap_or_default());
        if request.no_ack && has_new && from == From::New {
            record_group_id(ctx, key, group_name);
        }
    }
    Ok(is_served)
}

/// The consumer of that name, made if it is missing, seen now. Also whether it was made.
///
/// # Errors
/// There are 2³² consumers.
pub(super) fn see_consumer(group: &mut Group, name: &[u8], now_ms: i64) -> Result<(ConsumerId, bool), CmdError> {
    if let Some(id) = group.find_consumer(name) {
        if let Some(consumer) = group.consumer_mut(id) {
            consumer.seen_ms = now_ms;
        }
        return Ok((id, false));
    }
    let id = group.add_consumer(name, now_ms).ok_or(CmdError::new("ERR too many consumers"))?;
    Ok((id, true))
}

/// Writes what is new to the group, and makes it pending.
fn deliver(
    out: &mut Reply,
    log: &Log,
    group: &mut Group,
    consumer: ConsumerId,
    request: &Request<'_>,
    now_ms: i64,
    record: &mut Option<Vec<Assigned>>,
) {
    let header = out.defer();
    let mut count = 0;
    let Some(start) = group.last_id.next() else { return };
    for entry in log.range(start, StreamId::MAX) {
        let id = entry.id;
        match &mut group.entries_read {
            Some(read) if !log.has_gaps_from(id) => *read = read.wrapping_add(1),
            read => {
                if log.entries_added() > 0 {
                    *read = log.entries_until(id);
                }
            }
        }
        group.last_id = id;
        write_entry(out, entry);
        if !request.no_ack {
            let pending = Pending { consumer, delivered_ms: now_ms, deliveries: 1 };
            group.assign(id, pending);
            if let Some(record) = record {
                record.push(Assigned::new(group, id, pending));
            }
        }
        count += 1;
        if count == request.count {
            break;
        }
    }
    if !request.no_ack
        && count > 0
        && let Some(consumer) = group.consumer_mut(consumer)
    {
        consumer.active_ms = now_ms;
    }
    out.finish_array(header, count);
}

/// Writes what is pending under a consumer; entries that are gone by their id alone.
fn write_history(
    out: &mut Reply,
    log: &Log,
    group: &mut Group,
    consumer: ConsumerId,
    start: StreamId,
    limit: usize,
    now_ms: i64,
) {
    let ids: Vec<StreamId> = match group.consumer(consumer) {
        Some(consumer) => {
            let limit = if limit == 0 { usize::MAX } else { limit };
            consumer.pending().range(start..).take(limit).copied().collect()
        }
        None => Vec::new(),
    };
    out.array(ids.len());
    for id in ids {
        match log.get(id) {
            Some(entry) => {
                write_entry(out, entry);
                if let Some(pending) = group.pending().get(&id) {
                    let pending =
                        Pending { delivered_ms: now_ms, deliveries: pending.deliveries.wrapping_add(1), ..*pending };
                    group.assign(id, pending);
                }
            }
            None => {
                out.array(2);
                write_id(out, id);
                out.null_array();
            }
        }
    }
}

/// As many entries as XREAD may give.
pub(super) fn xread_cost(ctx: &mut Ctx<'_>, args: Args<'_>) -> usize {
    cost(ctx, args, false)
}

/// As many entries as XREADGROUP may give.
pub(super) fn xreadgroup_cost(ctx: &mut Ctx<'_>, args: Args<'_>) -> usize {
    cost(ctx, args, true)
}

/// Nothing where there is nothing to read: a command that is to wait must not become a long one.
fn cost(ctx: &Ctx<'_>, args: Args<'_>, grouped: bool) -> usize {
    let Ok(request) = Request::parse(args, grouped, ctx.db.now_ms()) else { return 0 };
    let mut total = 0_usize;
    for index in 0..request.keys {
        let Some(stream) = stream_at(ctx, request.key(args, index)) else { continue };
        let log = stream.log();
        let group = request.group.and_then(|(name, _)| stream.groups().get(name));
        let entries = usize::try_from(log.len()).unwrap_or(usize::MAX);
        let has_more = |id: StreamId| log.last_live_id().is_some_and(|last| last > id);
        let may_give = match (request.id(args, index), group) {
            (b"$", _) => 0,
            (b">", Some(group)) if has_more(group.last_id) => entries,
            (b">", _) => 0,
            (_, Some(group)) => group.pending().len(),
            (given, None) => match id::strict(given, 0) {
                Ok(id) if has_more(id) => entries,
                _ => 0,
            },
        };
        total = total.saturating_add(if request.count == 0 { may_give } else { may_give.min(request.count) });
    }
    total
}
