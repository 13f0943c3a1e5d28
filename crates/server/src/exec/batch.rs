//! The fast path: pipelined commands on one key each.
//!
//! Hot path: no allocation, no log line, no system call; one clock reading a command.
//!
//! Up to [`GROUP`] commands are parsed ahead. While they are parsed, their keys are hashed and their slots' cache lines
//! asked for. Then the slots are *tried* for, in the order of the commands (trying needs no order); the group ends
//! before the first that is busy. With the locks held, buckets and then entries are asked for, so that the memory's
//! latency is paid once a group and not once a command. Then the commands run in order, and the locks go back.
//! Everything else ends the group and goes through [`super::single`].

use super::route;
use super::{Step, single};
use crate::acl::check;
use crate::acl::rules::Rules;
use crate::key_stats::LARGE_REQUEST;
use crate::session::{Session, State};
use crate::ticks;
use crate::worker::{Worker, flow};
use commands::Ctx;
use commands::table::{self, CommandId, Flags};
use keyspace::ahead::Elements;
use keyspace::db::Hashed;
use keyspace::hashing::hash_key;
use keyspace::journal::effects::Verbatim;
use keyspace::{DbView, LockSet};
use net::{ConnId, Flow, Then};
use resp::{Args, Limits, Parse, Request, parse_request};
use std::sync::atomic::Ordering;

/// Commands parsed ahead and locked together.
pub const GROUP: usize = 16;

/// Arguments of a command that may be in a group: one with more is weighed first.
const GROUP_ARGUMENTS: usize = 256;
/// Commands run for one connection before others get their turn.
const TURN_COMMANDS: usize = 512;
/// The same before authentication: such a client can do nothing but be refused, and is not to cost others their time.
const TURN_UNAUTHENTICATED: usize = 32;
/// Reply bytes written for one connection before others get their turn.
const TURN_REPLY_BYTES: usize = 256 * 1024;

/// Parsed commands of a group; kept by the worker so that nothing is allocated.
pub struct Batch {
    requests: [Request; GROUP],
    planned: [Planned; GROUP],
    /// Their keys.
    keys: [Hashed; GROUP],
    /// One of them is large.
    has_large: bool,
}

#[derive(Clone, Copy)]
struct Planned {
    id: CommandId,
    start: usize,
    end: usize,
}

impl Default for Batch {
    fn default() -> Self {
        let nothing = Planned { id: CommandId::Get, start: 0, end: 0 };
        Batch {
            requests: std::array::from_fn(|_| Request::new()),
            planned: [nothing; GROUP],
            keys: [Hashed::NONE; GROUP],
            has_large: false,
        }
    }
}

impl Batch {
    /// The key of a planned command, if it is sampled or large.
    pub(crate) fn key_to_note<'a>(
        &'a self,
        routes: &'static [route::Route],
        input: &'a [u8],
        index: usize,
        is_sample: bool,
    ) -> Option<&'a [u8]> {
        let planned = self.planned.get(index)?;
        if !is_sample && planned.end - planned.start <= LARGE_REQUEST {
            return None;
        }
        let args = self.requests.get(index)?.args(input.get(planned.start..planned.end)?);
        args.get(route::of(routes, planned.id).single_key as usize)
    }
}

/// Why a group ended.
enum End {
    /// The group is full.
    Full,
    /// No complete request is left; this many bytes must be there first (0: more than there are).
    NeedMore(usize),
    /// The request at this index is not for the fast path; it begins at the offset.
    Other { index: usize, start: usize },
    /// The bytes are no request.
    Error(resp::ProtocolError),
}

/// Runs the input of a connection.
pub(crate) fn run(worker: &mut Worker, id: ConnId, session: &mut Session, input: &[u8]) -> Flow {
    // Lent out by its pointer, so that the batch and the worker can be borrowed side by side.
    let mut batch = worker.batch.take().unwrap_or_default();
    worker.last_tick = ticks::now();
    worker.begin_turn(worker.last_tick);
    worker.locks.enter();
    let flow = run_batches(worker, &mut batch, id, session, input);
    worker.locks.leave();
    session.last_active_s = worker.now_s;
    worker.batch = Some(batch);
    flow
}

fn limits_of(worker: &Worker, session: &Session) -> Limits {
    let max_bulk = usize::try_from(worker.config.proto_max_bulk_len).unwrap_or(usize::MAX);
    if session.state.has(State::UNAUTHENTICATED) { Limits::unauthenticated(max_bulk) } else { Limits::new(max_bulk) }
}

fn run_batches(worker: &mut Worker, batch: &mut Batch, id: ConnId, session: &mut Session, input: &[u8]) -> Flow {
    let mut at = 0;
    let mut done = 0;
    let mut limits = limits_of(worker, session);
    loop {
        let (planned, mut next, mut end) = gather(worker, batch, session, input, at, &limits);
        if planned > 0 {
            let ran = run_group(worker, batch, session, input, planned);
            done += ran;
            if ran < planned {
                // The next command's slot is busy, or the group was cut to serve waiting clients.
                at = batch.planned[ran].start;
                session.parse = resp::ParseState::default();
                if ran > 0 {
                    continue;
                }
                if worker.shared.scripts.board.any_busy() {
                    // Its client may have to be told so instead of waiting.
                    let planned = batch.planned[0];
                    let args = batch.requests[0].args(&input[planned.start..planned.end]);
                    if single::run(worker, id, session, args) == Step::Done {
                        at = planned.end;
                        continue;
                    }
                }
                // A snapshot may want the first command's entry before it can run, or its slot is not served here.
                if !worker.shared.cluster.is_managed() {
                    if worker.park_on(batch.keys[0].slot, id) {
                        return flow(at, Then::Pause);
                    }
                    if !worker.locks.keyspace().snapshots.is_active() {
                        continue;
                    }
                }
                (next, end) = (at, End::Other { index: 0, start: at });
            }
        }
        at = next;
        match end {
            End::Full => {}
            End::NeedMore(need) => return flow(at, if need == 0 { Then::Continue } else { Then::NeedMore(need) }),
            End::Error(error) => {
                worker.reply.error(format!("ERR {error}"));
                worker.note_protocol_error(session, &error);
                return flow(input.len(), Then::Close);
            }
            End::Other { index, start } => {
                let request = &batch.requests[index];
                let args = request.args(&input[start..]);
                let after = start + request.consumed();
                done += 1;
                match single::run(worker, id, session, args) {
                    Step::Done => at = after,
                    Step::Busy(slot) => {
                        session.parse = resp::ParseState::default();
                        if worker.park_on(slot, id) {
                            return flow(start, Then::Pause);
                        }
                        at = start;
                    }
                    Step::Retry => {
                        worker.retry_soon(id);
                        return flow(start, Then::Pause);
                    }
                    Step::Again => return flow(start, Then::Pause),
                    Step::Parked => return flow(after, Then::Pause),
                    Step::Close => return flow(input.len(), Then::Close),
                    Step::CloseNow => return flow(input.len(), Then::CloseNow),
                }
                // It may have been AUTH or CONFIG SET.
                limits = limits_of(worker, session);
            }
        }
        let turn = if session.state.has(State::UNAUTHENTICATED) { TURN_UNAUTHENTICATED } else { TURN_COMMANDS };
        if done >= turn || worker.reply.len() >= TURN_REPLY_BYTES || worker.locks.keyspace().gate.is_closing() {
            if at < input.len() {
                return flow(at, Then::Yield);
            }
            return flow(at, Then::Continue);
        }
    }
}

/// Parses requests from `at` on into the batch while they are fit for a group. Returns how many are planned, where the
/// first unparsed byte is, and why it ended.
#[inline(never)]
fn gather(
    worker: &Worker,
    batch: &mut Batch,
    session: &mut Session,
    input: &[u8],
    mut at: usize,
    limits: &Limits,
) -> (usize, usize, End) {
    batch.has_large = false;
    worker.renew_rights(session);
    let rules = session.state.has(State::RESTRICTED).then(|| worker.user_of(session).rules());
    let plain = session.state.is_plain() && worker.shared.monitors.load(Ordering::Relaxed) == 0 && !worker.is_limited();
    let keeps_writes = worker.shared.replication.keeps_writes();
    // The key before: a pipeline that works on one key hashes it once.
    let mut last: &[u8] = &[];
    for index in 0..GROUP {
        let start = at;
        let rest = match input.get(start..) {
            Some(rest) if !rest.is_empty() => rest,
            _ => return (index, at, End::NeedMore(0)),
        };
        let request = &mut batch.requests[index];
        match parse_request(rest, &mut session.parse, limits, request) {
            Parse::Request => {}
            Parse::Empty => return (index, start + request.consumed(), End::NeedMore(0)),
            Parse::Incomplete { need } => return (index, start, End::NeedMore(need)),
            Parse::Error(error) => return (index, start, End::Error(error)),
        }
        at = start + request.consumed();
        if !plain {
            return (index, start, End::Other { index, start });
        }
        let args = request.args(rest);
        match plan(worker, rules.as_deref(), args, keeps_writes) {
            Some((id, key)) => {
                let hashed = if index > 0 && is_same(last, key) {
                    batch.keys[index - 1].again(key)
                } else {
                    let hashed = Hashed::new(&worker.locks, key);
                    worker.locks.keyspace().prefetch_slot(hashed.slot);
                    hashed
                };
                last = part_of(input, key);
                batch.planned[index] = Planned { id, start, end: at };
                batch.keys[index] = hashed;
                batch.has_large |= at - start > LARGE_REQUEST;
            }
            None => return (index, start, End::Other { index, start }),
        }
    }
    (GROUP, at, End::Full)
}

/// `part`, a piece of `whole`, borrowed from it and not from what found it.
#[inline]
fn part_of<'a>(whole: &'a [u8], part: &[u8]) -> &'a [u8] {
    let start = part.as_ptr().addr().wrapping_sub(whole.as_ptr().addr());
    whole.get(start..start.wrapping_add(part.len())).unwrap_or_default()
}

/// Whether two keys are equal. Others of the same length mostly differ at their end, which costs no call to see.
#[inline]
fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.last() == other.last() && one == other
}

/// Whether a command may run in a group, and its key.
#[inline]
fn plan<'a>(
    worker: &Worker,
    rules: Option<&Rules>,
    args: Args<'a>,
    keeps_writes: bool,
) -> Option<(CommandId, &'a [u8])> {
    let spec = table::lookup(args.get(0)?)?;
    let route = route::of(worker.routes, spec.id);
    if !route.groups || !table::arity_ok(spec, args.len()) || args.len() > GROUP_ARGUMENTS {
        return None;
    }
    if keeps_writes && spec.flags.contains(Flags::WRITE) {
        // A replica, or one that lacks replicas: the write may have to be refused.
        return None;
    }
    if rules.is_some_and(|rules| !check::allows_single(rules, spec, &args)) {
        return None;
    }
    Some((spec.id, args.get(route.single_key as usize)?))
}

/// Locks, prefetches and runs the first `count` planned commands; returns how many ran.
#[inline(never)]
fn run_group(worker: &mut Worker, batch: &Batch, session: &mut Session, input: &[u8], count: usize) -> usize {
    let mut locked = lock_group(worker, batch, session, input, count);
    if worker.locks.keyspace().snapshots.is_active() {
        locked = before_large(worker, batch, session, input, locked);
    }
    let mut ran = 0;
    for index in 0..locked {
        let planned = batch.planned[index];
        let args = batch.requests[index].args(&input[planned.start..planned.end]);
        let dirty = worker.events.dirty;
        run_planned(worker, session, planned.id, &batch.keys[index], args);
        if worker.locks.effects.is_recording() {
            worker.record(session.db, verbatim(&input[planned.start..planned.end], args), dirty);
        }
        ran += 1;
        // Who waits for a key is served before the next command; notifications can wait for the end of the group.
        if !worker.events.ready.is_empty() {
            worker.serve_held();
            break;
        }
    }
    let is_due = worker.sampler.is_due(ran);
    if is_due | batch.has_large {
        worker.note_group(batch, session, input, ran, is_due);
    }
    worker.locks.unlock_all();
    worker.stats.processed.add(ran as u64);
    worker.after_command();
    ran
}

/// A request as the journal takes it: its bytes, unless it was an inline one.
fn verbatim<'a>(bytes: &'a [u8], args: Args<'a>) -> Verbatim<'a> {
    if bytes.first() == Some(&b'*') { Verbatim::Frame(bytes) } else { Verbatim::Args(args) }
}

/// Takes the slots of the group one after the other until one is busy or not served here, and asks for the memory the
/// commands will visit.
fn lock_group(worker: &mut Worker, batch: &Batch, session: &Session, input: &[u8], count: usize) -> usize {
    let keys = &batch.keys[..count];
    let allowed = crate::cluster::admit::allowed(session, false);
    let is_ours = |locks: &mut LockSet, slot| locks.try_lock(slot) && locks.tenure(slot).without(allowed).is_served();
    let locked = keys.iter().position(|key| !is_ours(&mut worker.locks, key.slot)).unwrap_or(count);
    if locked > 1
        && worker.prefetch(session, &keys[..locked])
        && route::of(worker.routes, batch.planned[0].id).element > 0
    {
        prefetch_elements(worker, batch, session, input, locked);
    }
    locked
}

/// Asks for the elements that a group of commands on one object name: all buckets, then all elements.
#[inline(never)]
fn prefetch_elements(worker: &Worker, batch: &Batch, session: &Session, input: &[u8], count: usize) {
    let argument = |index: usize, argument: u8| {
        let planned = batch.planned[index];
        batch.requests[index].args(&input[planned.start..planned.end]).get(argument as usize)
    };
    let key = batch.keys[0];
    let table = worker.locks.slot(key.slot).db(session.db).map(keyspace::slot::Db::table);
    let name = argument(0, route::of(worker.routes, batch.planned[0].id).single_key);
    let Some(entry) = table.zip(name).and_then(|(table, name)| table.find(key.hash, name)) else { return };
    let Some(elements) = Elements::of(entry) else { return };
    let mut hashes = [0; GROUP];
    for (index, hash) in hashes.iter_mut().enumerate().take(count) {
        // A command that names none asks for that of an empty one, which does no harm.
        let element = route::of(worker.routes, batch.planned[index].id).element;
        *hash = hash_key(argument(index, element).unwrap_or_default());
        elements.prefetch_bucket(*hash);
    }
    for hash in hashes.iter().take(count) {
        elements.prefetch_items(*hash);
    }
}

/// While a snapshot runs: how many of the first `count` commands come before one that would have to hand over a value too
/// large for a worker.
#[cold]
fn before_large(worker: &Worker, batch: &Batch, session: &Session, input: &[u8], count: usize) -> usize {
    let is_large = |index: &usize| {
        let (planned, hashed) = (batch.planned[*index], batch.keys[*index]);
        let route = route::of(worker.routes, planned.id);
        let args = batch.requests[*index].args(&input[planned.start..planned.end]);
        let reads_at_ms = (!route.spec.flags.contains(Flags::WRITE)).then_some(worker.now_ms);
        args.get(route.single_key as usize).is_some_and(|key| {
            worker.locks.is_too_large_to_hand_over(hashed.slot, session.db, hashed.hash, key, reads_at_ms)
        })
    };
    (0..count).find(is_large).unwrap_or(count)
}

#[inline]
fn run_planned(worker: &mut Worker, session: &mut Session, id: CommandId, key: &Hashed, args: Args<'_>) {
    let route = route::of(worker.routes, id);
    let Some(handler) = route.handler else { return };
    let before = worker.reply.len();
    let result = {
        let mut db = DbView::new(&mut worker.locks, &mut worker.events, session.db, worker.now_ms, worker.clock);
        db.set_hashed(std::slice::from_ref(key));
        let mut ctx = Ctx { db, out: &mut worker.reply, settings: &worker.settings, may_block: false, block: None };
        handler(&mut ctx, args)
    };
    if let Err(error) = result {
        worker.answer_error(before, id, &error);
    }
    session.last_command = Some(id);
    worker.time_call(session, id, args);
}

impl Worker {
    /// Replaces a half-written reply by an error and counts it.
    #[cold]
    pub(crate) fn answer_error(&mut self, before: usize, id: CommandId, error: &commands::CmdError) {
        self.reply.truncate(before);
        self.reply.error(error.0.as_bytes());
        self.stats.errors.add(1);
        self.stats.commands[id.index()].failed.add(1);
        self.shared.note_error(&error.0);
    }

    /// Asks for the memory in which keys of held slots are: all buckets, then all entries. Whether they are all the same key.
    #[inline]
    pub(crate) fn prefetch(&self, session: &Session, keys: &[Hashed]) -> bool {
        // Most keys differ, and asking twice for a line does no harm; but a pipeline on one key asks once.
        let hot = keys.iter().all(|key| key.hash == keys[0].hash);
        let keys = if hot { keys.get(..1).unwrap_or_default() } else { keys };
        for key in keys {
            if let Some(db) = self.locks.slot(key.slot).db(session.db) {
                db.table().prefetch_bucket(key.hash);
            }
        }
        for key in keys {
            if let Some(db) = self.locks.slot(key.slot).db(session.db) {
                db.table().prefetch_items(key.hash);
            }
        }
        hot
    }

    /// Counts a call and its time; notes slow ones.
    #[inline]
    pub(crate) fn note_call(&mut self, session: &Session, id: CommandId, args: Args<'_>) {
        self.stats.processed.add(1);
        self.time_call(session, id, args);
    }

    /// As [`Worker::note_call`], for commands whose total is counted elsewhere.
    #[inline]
    fn time_call(&mut self, session: &Session, id: CommandId, args: Args<'_>) {
        let now = ticks::now();
        let took = now.wrapping_sub(self.last_tick);
        self.last_tick = now;
        self.stats.note_call(id, took, self.ticks_rate);
        if took >= self.slow_ticks {
            self.note_slow(session, id, args, took);
        }
    }

    #[cold]
    pub(crate) fn note_slow(&mut self, session: &Session, id: CommandId, args: Args<'_>, took: u64) {
        let microseconds = ticks::to_microseconds(took);
        let spec = table::spec(id);
        self.shared.note_slow_command(
            &self.config,
            self.now_ms,
            session,
            spec,
            crate::slowlog::Kept::Whole(args),
            microseconds,
        );
    }
}
