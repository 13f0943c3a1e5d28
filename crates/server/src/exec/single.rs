//! One command with all checks: what is not fit for the fast path.
//!
//! Order of the checks as in Redis: known command and arity, authentication, rights, memory, subscribed mode, MULTI
//! queueing, pause. Commands of the table that have a function run here on locked slots; the rest are the session's or the
//! server's own, in `session_commands`.

use super::{Step, route, transaction, whole};
use crate::acl::log::Context;
use crate::offload::{Footing, INLINE_BUDGET, Job, Work};
use crate::process::log::Level;
use crate::session::{Session, State};
use crate::session_commands;
use crate::slowlog::{Kept, kept_arguments};
use crate::ticks;
use crate::worker::{Finished, Worker};
use commands::table::{self, CommandSpec, Flags, errors};
use commands::{Block, CmdError, CommandId, Ctx};
use keyspace::db::Hashed;
use keyspace::journal::effects::Verbatim;
use keyspace::{DbView, Slot};
use net::{ConnId, Conns};
use resp::Args;
use smallvec::SmallVec;
use std::sync::atomic::Ordering;

/// Slots of one command, ascending, each once.
pub type Slots = SmallVec<[Slot; 8]>;

/// Requests that are refused for one client before it is closed instead. A health check that does not know the
/// password and asks once a second is closed about every hour.
const UNAUTHENTICATED_REFUSALS: u16 = 4096;

/// Keys of one command, in the order of its arguments.
type Keys = SmallVec<[Hashed; 8]>;

/// Refused before authentication.
const NO_AUTH: CmdError = CmdError::new("NOAUTH Authentication required.");

/// Runs one request.
pub(crate) fn run(worker: &mut Worker, id: ConnId, session: &mut Session, args: Args<'_>) -> Step {
    if is_http(args) {
        crate::log!(
            Level::Warning,
            "Possible SECURITY ATTACK detected. It looks like somebody is sending POST or Host: commands to Redis. This is likely due to an attacker attempting to use Cross Protocol Scripting to compromise your Redis instance. Connection aborted."
        );
        return Step::CloseNow;
    }
    worker.renew_rights(session);
    if session.state.has(State::USER_GONE) {
        return Step::CloseNow;
    }
    worker.last_tick = ticks::now();
    let before = worker.reply.len();
    let step = match prepare(worker, id, session, args) {
        Ok(Prepared::Run(spec)) => execute(worker, id, session, spec, args),
        Ok(Prepared::Queued) => Step::Done,
        Ok(Prepared::Wait(step)) => step,
        Err(error) => {
            let error = transaction::refused(worker, session, args, error);
            worker.reply.error(error.0.as_bytes());
            worker.stats.errors.add(1);
            worker.shared.note_error(&error.0);
            refuse_for_ever(session)
        }
    };
    finish_reply_mode(worker, session, before, step);
    if matches!(step, Step::Done | Step::Close | Step::CloseNow) {
        worker.drop_client_lines(id);
    }
    if session.state.has(State::TRACKING) && !matches!(step, Step::Busy(_) | Step::Retry | Step::Again) {
        worker.end_caching(session, args);
        worker.bound_tracking();
    }
    step
}

/// Counts a refusal. A client that may do nothing and goes on asking is not heard for ever: what it does not read would
/// first fill the kernel's buffers, and answering costs the others time.
fn refuse_for_ever(session: &mut Session) -> Step {
    if !session.state.has(State::UNAUTHENTICATED) {
        return Step::Done;
    }
    session.refused = session.refused.saturating_add(1);
    if session.refused < UNAUTHENTICATED_REFUSALS { Step::Done } else { Step::Close }
}

/// Whether a request is a line of HTTP: somebody's browser was made to talk to us.
fn is_http(args: Args<'_>) -> bool {
    args.get(0).is_some_and(|name| name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:"))
}

/// CLIENT REPLY OFF and SKIP: takes the reply back.
fn finish_reply_mode(worker: &mut Worker, session: &mut Session, before: usize, step: Step) {
    if step != Step::Done && step != Step::Close {
        return;
    }
    if session.state.has(State::REPLY_OFF) || session.state.has(State::REPLY_SKIP) {
        worker.reply.truncate(before);
    }
    session.state.remove(State::REPLY_SKIP);
    if session.state.has(State::REPLY_SKIP_NEXT) {
        session.state.remove(State::REPLY_SKIP_NEXT);
        session.state.insert(State::REPLY_SKIP);
    }
}

enum Prepared {
    Run(&'static CommandSpec),
    Queued,
    Wait(Step),
}

/// All checks before a command may run.
fn prepare(worker: &mut Worker, id: ConnId, session: &mut Session, args: Args<'_>) -> Result<Prepared, CmdError> {
    let spec = resolve(worker, args)?;
    let flags = spec.flags;
    if session.state.has(State::UNAUTHENTICATED) && !flags.contains(Flags::NO_AUTH) {
        worker.stats.commands[spec.id.index()].rejected.add(1);
        return Err(NO_AUTH);
    }
    let is_queued = session.state.has(State::IN_MULTI) && !runs_inside_multi(spec.id);
    if is_queued && flags.contains(Flags::NO_MULTI) {
        return Err(reject(worker, spec, CmdError::new("ERR Command not allowed inside a transaction")));
    }
    if let Err(denied) = worker.check_rights(session, spec, &args) {
        let context = if session.state.has(State::IN_MULTI) { Context::Multi } else { Context::Toplevel };
        let sentence = worker.refuse(id, session, spec, &args, denied, context);
        return Err(reject(worker, spec, CmdError::text(format!("NOPERM {sentence}"))));
    }
    if let Err(error) = worker.check_cluster(session, spec, args, is_queued) {
        return Err(reject(worker, spec, error));
    }
    if needs_memory(session, spec) && !worker.has_memory() {
        return Err(reject(worker, spec, super::memory_limit::OUT_OF_MEMORY));
    }
    worker.check_files(session, spec)?;
    worker.check_replication(session, spec)?;
    if session.state.has(State::SUBSCRIBED) && session.proto == resp::Proto::Resp2 && !is_allowed_subscribed(spec.id) {
        let name = spec.name;
        return Err(reject(
            worker,
            spec,
            CmdError::text(format!(
                "ERR Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"
            )),
        ));
    }
    if is_queued {
        if let Some(multi) = session.multi_mut() {
            let owned = args.to_owned_args();
            multi.bytes = multi.bytes.saturating_add(owned.used_bytes());
            multi.queued.push((spec.id, owned));
        }
        worker.reply.simple("QUEUED");
        return Ok(Prepared::Queued);
    }
    if let Some(step) = worker.paused(session, spec) {
        return Ok(Prepared::Wait(step));
    }
    let holds_writes = worker.shared.keyspace.snapshots.is_full()
        || worker.shared.durability.shutdown.holds_writes.load(Ordering::Relaxed)
        || (worker.shared.replication.holds_writes() && !worker.is_replaying);
    if holds_writes && writes(session, spec) {
        // A snapshot runs and its sink is slow: what this command would have to hand over finds no room. Or the last
        // snapshot before the end is being written.
        return Ok(Prepared::Wait(Step::Retry));
    }
    Ok(Prepared::Run(spec))
}

/// Whether a command may change the data.
pub(crate) fn writes(session: &Session, spec: &CommandSpec) -> bool {
    spec.flags.intersects(Flags::WRITE.with(Flags::MAY_REPLICATE))
        || (spec.id == CommandId::Exec && transaction::writes(session))
}

/// Whether a command is refused when memory is out. Queued commands are, whatever they do, since the queue takes memory;
/// EXEC is when it is to run one that is.
fn needs_memory(session: &Session, spec: &CommandSpec) -> bool {
    let denies = |spec: &CommandSpec| spec.flags.contains(Flags::DENYOOM);
    if !session.state.has(State::IN_MULTI) {
        return denies(spec);
    }
    match spec.id {
        CommandId::Exec => transaction::queues(session, denies),
        id => !runs_inside_multi(id) || denies(spec),
    }
}

fn reject(worker: &Worker, spec: &CommandSpec, error: CmdError) -> CmdError {
    worker.stats.commands[spec.id.index()].rejected.add(1);
    error
}

/// The row of a request, by name and arity.
fn resolve(worker: &Worker, args: Args<'_>) -> Result<&'static CommandSpec, CmdError> {
    let text = |bytes: Vec<u8>| CmdError::text(String::from_utf8_lossy(&bytes).into_owned());
    let name = args.get(0).unwrap_or_default();
    let Some(mut spec) = worker.lookup(name) else { return Err(text(errors::unknown_command(&args))) };
    if spec.is_container() && args.len() > 1 {
        match table::lookup_sub(spec, &args[1]) {
            Some(sub) => spec = sub,
            None => return Err(text(errors::unknown_subcommand(&args))),
        }
    }
    if !table::arity_ok(spec, args.len()) {
        return Err(reject(worker, spec, CmdError::text(errors::wrong_arity(spec))));
    }
    if worker.routes[spec.id.index()].handler.is_none() && !session_commands::is_served(spec.id) {
        return Err(text(errors::unknown_command(&args)));
    }
    Ok(spec)
}

fn is_allowed_subscribed(id: CommandId) -> bool {
    use CommandId as C;
    matches!(
        id,
        C::Ping
            | C::Subscribe
            | C::Unsubscribe
            | C::Psubscribe
            | C::Punsubscribe
            | C::Ssubscribe
            | C::Sunsubscribe
            | C::Quit
            | C::Reset
    )
}

/// Commands that act at once though a MULTI is open.
fn runs_inside_multi(id: CommandId) -> bool {
    use CommandId as C;
    matches!(id, C::Exec | C::Discard | C::Multi | C::Watch | C::Quit | C::Reset)
}

/// Runs a command that passed all checks.
fn execute(worker: &mut Worker, id: ConnId, session: &mut Session, spec: &'static CommandSpec, args: Args<'_>) -> Step {
    session.last_command = Some(spec.id);
    worker.serving = Some(id);
    let before = worker.reply.len();
    let result = if let Some(error) = worker.sort_refusal(session, spec, args) {
        Err(error)
    } else if worker.routes[spec.id.index()].handler.is_some() {
        run_on_keys(worker, id, session, spec, args)
    } else {
        let (db, dirty) = (session.db, worker.events.dirty);
        let result = session_commands::run(worker, id, session, spec, args);
        // Those over the whole keyspace and EXEC have been recorded behind the gate or under their locks.
        if !whole::handles(spec.id) && spec.id != CommandId::Exec {
            worker.record(db, Verbatim::Args(args), dirty);
            worker.locks.flush_effects();
        }
        result
    };
    let result = match result {
        Ok(step @ (Step::Busy(_) | Step::Retry)) => told_of_busy_script(worker, session, args, step),
        other => other,
    };
    let step = result.unwrap_or_else(|error| {
        worker.answer_error(before, spec.id, &error);
        Step::Done
    });
    if !matches!(step, Step::Busy(_) | Step::Retry | Step::Again) {
        worker.feed_monitors(session, spec, args);
    }
    match step {
        Step::Done | Step::Close | Step::CloseNow => {
            worker.note_call(session, spec.id, args);
            worker.after_command();
        }
        Step::Busy(_) | Step::Retry | Step::Again => worker.reply.truncate(before),
        Step::Parked => {}
    }
    if worker.has_own_news() {
        worker.tell_own(id, session, matches!(step, Step::Done | Step::Close));
    }
    worker.end_serving();
    step
}

/// A command that has to wait for a slot, or for the gate, does so unless it is a busy script that it waits for: then its
/// client is told.
fn told_of_busy_script(
    worker: &mut Worker,
    session: &mut Session,
    args: Args<'_>,
    step: Step,
) -> Result<Step, CmdError> {
    let slot = if let Step::Busy(slot) = step { Some(slot) } else { None };
    match worker.shared.scripts.board.busy_holder(slot) {
        None => Ok(step),
        Some(is_eval) => {
            Err(transaction::refused(worker, session, args, crate::scripting::functions::busy_error(is_eval)))
        }
    }
}

/// The slots of a command's keys, ascending.
///
/// # Errors
/// The arguments name no keys where there must be some.
pub(crate) fn slots_of(worker: &Worker, spec: &CommandSpec, args: Args<'_>) -> Result<Slots, CmdError> {
    Ok(slots_of_keys(&keys_of(worker, spec, args)))
}

fn slots_of_keys(keys: &[Hashed]) -> Slots {
    let mut slots: Slots = keys.iter().map(|key| key.slot).collect();
    slots.sort_unstable();
    slots.dedup();
    slots
}

/// The keys that a command's arguments name, hashed, their slots' cache lines asked for. None where the arguments are
/// too broken to tell the keys: the function will say what is wrong without touching any.
fn keys_of(worker: &Worker, spec: &CommandSpec, args: Args<'_>) -> Keys {
    let mut hashed = Keys::new();
    if !spec.has_keys() {
        return hashed;
    }
    if let Ok(keys) = table::keys::touched_keys(spec, &args) {
        for key in keys {
            if let Some(bytes) = args.get(key.position as usize) {
                let key = Hashed::new(&worker.locks, bytes);
                worker.locks.keyspace().prefetch_slot(key.slot);
                hashed.push(key);
            }
        }
    }
    hashed
}

/// How often the keys that SORT's patterns name are asked for anew before the command is put off.
pub(crate) const EXTRA_KEY_ROUNDS: usize = 8;

/// Whether a command looks at keys that its arguments do not name: SORT with BY or GET patterns.
pub(crate) fn names_other_keys(id: CommandId, args: Args<'_>) -> bool {
    matches!(id, CommandId::Sort | CommandId::SortRo) && commands::sort::names_other_keys(args)
}

/// The slots such a command needs, if some of them are not held. To be asked again after locks were given back, as the
/// keys depend on the elements of the source.
pub(crate) fn missing_slots(ctx: &mut Ctx<'_>, args: Args<'_>, named: &[Slot]) -> Option<Slots> {
    let keyspace = ctx.db.locks.keyspace().clone();
    let mut all: Slots = named.iter().copied().collect();
    all.extend(commands::sort::extra_keys(ctx, args).iter().map(|key| keyspace.slot(key)));
    all.sort_unstable();
    all.dedup();
    (!all.iter().all(|slot| ctx.db.locks.holds(*slot))).then_some(all)
}

fn run_on_keys(
    worker: &mut Worker,
    id: ConnId,
    session: &mut Session,
    spec: &'static CommandSpec,
    args: Args<'_>,
) -> Result<Step, CmdError> {
    let keys = keys_of(worker, spec, args);
    let mut slots = slots_of_keys(&keys);
    if let Err(busy) = worker.locks.try_lock_all(&slots) {
        return Ok(Step::Busy(busy));
    }
    if let Some(step) = worker.admit(id, session, spec, &slots)? {
        return Ok(step);
    }
    if keys.len() > 1 {
        worker.prefetch(session, &keys);
    }
    if worker.locks.keyspace().snapshots.is_active()
        && !worker.is_replaying
        && worker.leaves_to_snapshot(id, session, spec, args)
    {
        worker.locks.unlock_all();
        return Ok(Step::Again);
    }
    // Without the slots of its keys the arguments are too broken to tell them, so none may be looked at.
    let may_go =
        !worker.is_replaying && (!slots.is_empty() || !spec.has_keys()) && !spec.flags.contains(Flags::BLOCKING);
    if may_go && worker.cost_of(session, spec.id, args) > INLINE_BUDGET {
        worker.locks.unlock_all();
        offload(worker, id, session, spec, args, &slots);
        return Ok(Step::Parked);
    }
    if names_other_keys(spec.id, args) {
        for _ in 0..EXTRA_KEY_ROUNDS {
            let Some(all) = worker.with_ctx(session, false, |ctx| missing_slots(ctx, args, &slots)) else { break };
            worker.locks.unlock_all();
            slots = all;
            if let Err(busy) = worker.locks.try_lock_all(&slots) {
                return Ok(Step::Busy(busy));
            }
        }
        if worker.with_ctx(session, false, |ctx| missing_slots(ctx, args, &slots)).is_some() {
            worker.locks.unlock_all();
            return Ok(Step::Retry);
        }
    }
    let dirty = worker.events.dirty;
    let (result, block) = worker.call_on(session, spec.id, args, &keys);
    worker.track_reads_of(id, session, spec, args);
    worker.note_keys(session, spec, args);
    worker.record(session.db, Verbatim::Args(args), dirty);
    if let (Ok(()), Some(block)) = (&result, block) {
        worker.block_client(id, session, spec.id, args, &block);
        worker.locks.unlock_all();
        worker.after_command();
        return Ok(Step::Parked);
    }
    if !worker.events.ready.is_empty() {
        worker.serve_held();
    }
    worker.locks.unlock_all();
    result.map(|()| Step::Done)
}

fn offload(
    worker: &mut Worker,
    id: ConnId,
    session: &mut Session,
    spec: &'static CommandSpec,
    args: Args<'_>,
    slots: &[Slot],
) {
    let job = Job {
        worker: worker.index,
        conn: id,
        id: spec.id,
        proto: session.proto,
        shown: kept_arguments(args),
        work: Work::Command {
            args: args.to_owned_args(),
            footing: worker.footing(id, session, slots, spec.flags.contains(Flags::WRITE)),
        },
    };
    session.state.insert(State::OFFLOADED);
    worker.shared.offload.submit(&worker.shared, job);
}

impl Worker {
    /// While a snapshot runs: whether a command would have to hand over a value too large for a worker. Then it is left
    /// to the snapshot's threads, and the connection is woken when they have it. The slots of the keys are held.
    pub(crate) fn leaves_to_snapshot(
        &mut self,
        id: ConnId,
        session: &Session,
        spec: &CommandSpec,
        args: Args<'_>,
    ) -> bool {
        let reads_at_ms = (!writes(session, spec)).then_some(self.now_ms);
        let Ok(keys) = table::keys::touched_keys(spec, &args) else { return false };
        for bytes in keys.into_iter().filter_map(|key| args.get(key.position as usize)) {
            let Hashed { slot, hash, .. } = Hashed::new(&self.locks, bytes);
            if self.locks.holds(slot)
                && self.locks.is_too_large_to_hand_over(slot, session.db, hash, bytes, reads_at_ms)
            {
                let wake = keyspace::lock::Wake::Worker { worker: self.index, token: id.as_u64() };
                return self.locks.keyspace().snapshots.ask_for(slot, session.db, bytes, wake);
            }
        }
        false
    }

    /// What commands of this session run with on another thread.
    pub(crate) fn footing(&self, id: ConnId, session: &Session, slots: &[Slot], writes: bool) -> Footing {
        Footing {
            allowed: crate::cluster::admit::allowed(session, writes),
            db: session.db,
            slots: slots.to_vec(),
            settings: self.settings.clone(),
            clock: self.clock,
            no_touch: session.state.has(State::NO_TOUCH),
            wanted: self.events.wanted,
            tracker: self.tracker_of(id, session),
        }
    }

    /// What a command would cost, in elements touched; the slots of its keys are held. Each argument counts as an
    /// element to add, remove or look up.
    pub(crate) fn cost_of(&mut self, session: &Session, id: CommandId, args: Args<'_>) -> usize {
        let cost =
            route::of(self.routes, id).cost.map_or(0, |cost| self.with_ctx(session, false, |ctx| cost(ctx, args)));
        cost.max(args.len())
    }

    /// A command context on the held slots.
    pub(crate) fn with_ctx<R>(
        &mut self,
        session: &Session,
        may_block: bool,
        work: impl FnOnce(&mut Ctx<'_>) -> R,
    ) -> R {
        let mut db = DbView::new(&mut self.locks, &mut self.events, session.db, self.now_ms, self.clock);
        db.no_touch = session.state.has(State::NO_TOUCH);
        let mut ctx = Ctx { db, out: &mut self.reply, settings: &self.settings, may_block, block: None };
        work(&mut ctx)
    }

    /// As [`Worker::call`], for a command that may block and whose keys are hashed.
    fn call_on(
        &mut self,
        session: &Session,
        id: CommandId,
        args: Args<'_>,
        keys: &[Hashed],
    ) -> (Result<(), CmdError>, Option<Block>) {
        let Some(handler) = route::of(self.routes, id).handler else { return (Ok(()), None) };
        let mut db = DbView::new(&mut self.locks, &mut self.events, session.db, self.now_ms, self.clock);
        db.no_touch = session.state.has(State::NO_TOUCH);
        db.set_hashed(keys);
        let may_block = !self.is_replaying;
        let mut ctx = Ctx { db, out: &mut self.reply, settings: &self.settings, may_block, block: None };
        let result = handler(&mut ctx, args);
        (result, ctx.block.take())
    }

    /// Runs the function of a command on the held slots. Its reply is written, or what it waits for is returned.
    pub(crate) fn call(
        &mut self,
        session: &Session,
        id: CommandId,
        args: Args<'_>,
        may_block: bool,
    ) -> (Result<(), CmdError>, Option<Block>) {
        let Some(handler) = route::of(self.routes, id).handler else { return (Ok(()), None) };
        self.with_ctx(session, may_block, |ctx| {
            let result = handler(ctx, args);
            (result, ctx.block.take())
        })
    }

    /// The row of a command name, by the names in force (`rename-command`).
    pub(crate) fn lookup(&self, name: &[u8]) -> Option<&'static CommandSpec> {
        self.shared.renamed(name).unwrap_or_else(|| table::lookup(name))
    }

    /// A long command has ended: its client gets the reply and goes on.
    pub(crate) fn long_command_ended(&mut self, conns: &mut Conns<Worker>, finished: Finished) {
        if finished.parts.first().is_none_or(|part| part.id != finished.id) {
            self.stats.processed.add(1);
            self.stats.note_call(finished.id, finished.ticks, self.ticks_rate);
        }
        for part in &finished.parts {
            self.stats.processed.add(1);
            self.stats.note_call(part.id, part.ticks, self.ticks_rate);
            if let Some(error) = &part.failed {
                self.stats.errors.add(1);
                self.stats.commands[part.id.index()].failed.add(1);
                self.shared.note_error(&error.0);
            }
        }
        let events = finished.events;
        self.events.notifications.extend(events.notifications);
        self.events.ready.extend(events.ready);
        self.events.invalidations.extend(events.invalidations);
        self.events.changes.extend(events.changes);
        self.events.flushed |= events.flushed;
        if self.events.has_invalidations() {
            self.tell_invalidations(Some(self.tracker(finished.conn)));
        }
        self.events.dirty += events.dirty;
        self.events.hits += events.hits;
        self.events.misses += events.misses;
        self.events.expired += events.expired;
        self.events.expired_fields += events.expired_fields;
        self.after_command();
        if let Some(session) = conns.state_mut(finished.conn) {
            let silent = session.state.has(State::REPLY_OFF) || session.state.has(State::REPLY_SKIP);
            session.state.remove(State::OFFLOADED);
            session.state.remove(State::REPLY_SKIP);
            if finished.ticks >= self.slow_ticks {
                let spec = table::spec(finished.id);
                let microseconds = ticks::to_microseconds(finished.ticks);
                self.shared.note_slow_command(
                    &self.config,
                    self.now_ms,
                    session,
                    spec,
                    Kept::Cut(finished.shown),
                    microseconds,
                );
            }
            if !silent {
                conns.write_owned(finished.conn, finished.reply);
            }
            self.tell_deferred(conns, finished.conn);
            conns.resume(finished.conn);
            self.hold_connection(conns, finished.conn, finished.upto);
        }
    }

    /// Whether something about the whole server keeps commands from the fast path.
    #[inline]
    pub(crate) fn is_limited(&self) -> bool {
        self.config.maxmemory > 0
            || self.shared.pause_until_ms.load(Ordering::Relaxed) > self.now_ms
            || self.shared.has_renames()
            || self.shared.durability.restricts.load(Ordering::Relaxed)
            || self.shared.keyspace.snapshots.is_full()
            || self.shared.aof.is_full()
            || self.shared.cluster.is_limited()
    }

    /// Refuses what the state of the files does not allow.
    fn check_files(&mut self, session: &Session, spec: &'static CommandSpec) -> Result<(), CmdError> {
        let durability = &self.shared.durability;
        if !durability.restricts.load(Ordering::Relaxed) || self.is_replaying {
            return Ok(());
        }
        let is_kept_out = |spec: &CommandSpec| !spec.flags.contains(Flags::LOADING);
        if durability.loading.is_on()
            && (is_kept_out(spec) || (spec.id == CommandId::Exec && transaction::queues(session, is_kept_out)))
        {
            return Err(reject(self, spec, crate::durability::load::LOADING));
        }
        let writes = spec.flags.contains(Flags::WRITE)
            || (spec.id == CommandId::Exec && transaction::queues(session, |spec| spec.flags.contains(Flags::WRITE)));
        // Redis: PING is refused too, so that who watches the server sees that it is not well.
        if (writes || spec.id == CommandId::Ping)
            && let Some(error) = self.write_refusal()
        {
            return Err(reject(self, spec, error));
        }
        Ok(())
    }

    /// The answer to a write while data cannot be brought to disk, if writes are refused then; for scripts, too.
    pub(crate) fn write_refusal(&self) -> Option<CmdError> {
        let is_refused = self.shared.durability.has_failed.load(Ordering::Relaxed)
            && self.config.stop_writes_on_bgsave_error
            && !self.config.save.is_empty();
        is_refused.then_some(crate::durability::SNAPSHOT_FAILED).or_else(|| self.shared.aof.refusal())
    }

    /// CLIENT PAUSE: what a command must wait for, if it must.
    fn paused(&mut self, session: &Session, spec: &CommandSpec) -> Option<Step> {
        if self.shared.aof.is_full() && writes(session, spec) {
            return Some(Step::Retry);
        }
        let until_ms = self.shared.pause_until_ms.load(Ordering::Relaxed);
        if until_ms <= self.now_ms || self.is_replaying {
            return None;
        }
        let writes_only = self.shared.pause_writes_only.load(Ordering::Relaxed);
        let is_pausable = !matches!(spec.id, CommandId::ClientUnpause | CommandId::ClientPause)
            && (!writes_only || writes(session, spec));
        is_pausable.then_some(Step::Retry)
    }
}
