//! MULTI, EXEC, DISCARD, WATCH.
//!
//! EXEC locks the slots of all its commands and of all watched keys together, so what it does is one step for everyone
//! else. With a command over the whole keyspace in it, it runs behind the closed gate.

use super::{Step, single, whole};
use crate::acl::log::Context;
use crate::client_list::Scope;
use crate::offload::{INLINE_BUDGET, Job, Work};
use crate::scripting::run as scripting;
use crate::session::{Multi, Session, State, Watch};
use crate::session_commands;
use crate::ticks;
use crate::worker::Worker;
use commands::table::{self, CommandId, CommandSpec, Flags};
use commands::{CmdError, CmdResult};
use keyspace::DbView;
use keyspace::journal::effects::Verbatim;
use net::ConnId;
use resp::{Args, OwnedArgs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a session has queued commands that write (CLIENT PAUSE WRITE holds its EXEC back).
pub(crate) fn writes(session: &Session) -> bool {
    queues(session, |spec| spec.flags.intersects(Flags::WRITE.with(Flags::MAY_REPLICATE)))
}

/// Whether a session has queued a command of a kind.
pub(crate) fn queues(session: &Session, is_such: impl Fn(&CommandSpec) -> bool) -> bool {
    session
        .extra
        .as_ref()
        .and_then(|extra| extra.multi.as_ref())
        .is_some_and(|multi| multi.queued.iter().any(|(id, _)| is_such(table::spec(*id))))
}

/// A command was refused before it could run or be queued. Inside MULTI that spoils the transaction; EXEC itself ends it.
/// Returns the error to answer.
pub(crate) fn refused(worker: &mut Worker, session: &mut Session, args: Args<'_>, error: CmdError) -> CmdError {
    if let Some(multi) = session.multi_mut() {
        multi.aborted = true;
    }
    let is_exec = args.get(0).and_then(|name| worker.lookup(name)).is_some_and(|spec| spec.id == CommandId::Exec);
    if !is_exec {
        return error;
    }
    if end_multi(session).is_some() {
        worker.unwatch_all(session);
    }
    if crate::cluster::admit::is_redirection(&error) {
        return error;
    }
    let why = error.0.strip_prefix("ERR ").unwrap_or(&error.0);
    CmdError::text(format!("EXECABORT Transaction discarded because of: {why}"))
}

/// MULTI.
pub(crate) fn multi(worker: &mut Worker, session: &mut Session) -> CmdResult {
    if session.state.has(State::IN_MULTI) {
        return Err(CmdError::new("ERR MULTI calls can not be nested"));
    }
    session.state.insert(State::IN_MULTI);
    session.extra_mut().multi = Some(Multi::default());
    worker.reply.ok();
    Ok(())
}

/// DISCARD.
pub(crate) fn discard(worker: &mut Worker, session: &mut Session) -> CmdResult {
    if !session.state.has(State::IN_MULTI) {
        return Err(CmdError::new("ERR DISCARD without MULTI"));
    }
    end_multi(session);
    worker.unwatch_all(session);
    worker.reply.ok();
    Ok(())
}

fn end_multi(session: &mut Session) -> Option<Multi> {
    session.state.remove(State::IN_MULTI);
    session.extra.as_mut().and_then(|extra| extra.multi.take())
}

/// WATCH.
pub(crate) fn watch(worker: &mut Worker, id: ConnId, session: &mut Session, args: Args<'_>) -> Result<Step, CmdError> {
    if session.state.has(State::IN_MULTI) {
        return Err(CmdError::new("ERR WATCH inside MULTI is not allowed"));
    }
    let slots = single::slots_of(worker, table::spec(CommandId::Watch), args)?;
    if let Err(busy) = worker.locks.try_lock_all(&slots) {
        return Ok(Step::Busy(busy));
    }
    if let Some(step) = worker.admit(id, session, table::spec(CommandId::Watch), &slots)? {
        return Ok(step);
    }
    let db = session.db;
    let extra = session.extra_mut();
    let watch = extra.watch.get_or_insert_with(|| Watch { flag: Arc::new(AtomicBool::new(false)), keys: Vec::new() });
    for key in args.slice(1).iter() {
        if watch.keys.iter().any(|(other_db, other, _)| *other_db == db && other == key) {
            continue;
        }
        let mut view = DbView::new(&mut worker.locks, &mut worker.events, db, worker.now_ms, worker.clock);
        let was_over = view.is_expired_now(key);
        view.watch(key, watch.flag.clone());
        watch.keys.push((db, key.to_vec(), was_over));
    }
    worker.locks.unlock_all();
    session.state.insert(State::WATCHING);
    worker.reply.ok();
    Ok(Step::Done)
}

/// EXEC.
pub(crate) fn exec(worker: &mut Worker, id: ConnId, session: &mut Session) -> Result<Step, CmdError> {
    if !session.state.has(State::IN_MULTI) {
        return Err(CmdError::new("ERR EXEC without MULTI"));
    }
    let Some(multi) = session.multi_mut() else { return Err(CmdError::new("ERR EXEC without MULTI")) };
    if multi.aborted {
        end_multi(session);
        worker.unwatch_all(session);
        return Err(CmdError::new("EXECABORT Transaction discarded because of previous errors."));
    }
    let scopes = multi.queued.iter().filter_map(|(id, args)| session_commands::client::scope_of(*id, args.as_args()));
    // Several commands with different wants: all clients serve each of them.
    if let Some(scope) = scopes.reduce(|first, second| if first == second { first } else { Scope::All })
        && worker.client_lines(id).is_none()
    {
        worker.gather_clients(id, scope);
        return Ok(Step::Again);
    }
    let queued = std::mem::take(&mut multi.queued);
    let needs_all = queued.iter().any(|(id, args)| {
        matches!(id, CommandId::Replicaof | CommandId::Slaveof)
            || whole::handles(*id)
            || single::names_other_keys(*id, args.as_args())
            || scripting::needs_gate(worker, *id, args.as_args())
    });
    let ran =
        if needs_all { exec_alone(worker, id, session, &queued) } else { exec_locked(worker, id, session, &queued) };
    let ran = match ran {
        Ok(ran) => ran,
        Err(error) => {
            end_multi(session);
            worker.unwatch_all(session);
            return Err(error);
        }
    };
    if ran == Step::Parked {
        offload(worker, id, session, queued);
        return Ok(ran);
    }
    if ran != Step::Done {
        if let Some(multi) = session.multi_mut() {
            multi.queued = queued;
        }
        return Ok(ran);
    }
    end_multi(session);
    worker.unwatch_all(session);
    Ok(if session.state.has(State::CLOSE_AFTER) { Step::Close } else { Step::Done })
}

fn exec_locked(
    worker: &mut Worker,
    id: ConnId,
    session: &mut Session,
    queued: &[(CommandId, OwnedArgs)],
) -> Result<Step, CmdError> {
    let slots = slots_of_queue(worker, session, queued);
    if let Err(busy) = worker.locks.try_lock_all(&slots) {
        return Ok(Step::Busy(busy));
    }
    let admitted = worker.admit_transaction(id, session, queued);
    if !matches!(admitted, Ok(None)) {
        worker.locks.unlock_all();
        return admitted.map(|step| step.unwrap_or(Step::Retry));
    }
    if worker.locks.keyspace().snapshots.is_active()
        && !worker.is_replaying
        && queued
            .iter()
            .any(|(command, args)| worker.leaves_to_snapshot(id, session, table::spec(*command), args.as_args()))
    {
        worker.locks.unlock_all();
        return Ok(Step::Again);
    }
    if is_long(worker, session, queued) {
        worker.locks.unlock_all();
        return Ok(Step::Parked);
    }
    run_queue(worker, id, session, queued);
    if !worker.events.ready.is_empty() {
        worker.serve_held();
    }
    worker.locks.unlock_all();
    worker.locks.end_long();
    Ok(Step::Done)
}

/// Whether the commands would hold the worker too long and can run elsewhere: all of them work on keys alone. Their
/// slots are held.
fn is_long(worker: &mut Worker, session: &mut Session, queued: &[(CommandId, OwnedArgs)]) -> bool {
    if worker.is_replaying {
        return false;
    }
    let mut cost = 0_usize;
    for (command, args) in queued {
        let args = args.as_args();
        let spec = table::spec(*command);
        let is_refused =
            worker.check_rights(session, spec, &args).is_err() || worker.sort_refusal(session, spec, args).is_some();
        let waits = *command == CommandId::Migrate;
        if is_refused || (!waits && worker.routes[command.index()].handler.is_none()) {
            return false;
        }
        cost = if waits { usize::MAX } else { cost };
        // Without the slots of its keys the arguments are too broken to tell them, so none may be looked at.
        let may_ask = !spec.has_keys() || single::slots_of(worker, spec, args).is_ok_and(|slots| !slots.is_empty());
        cost = cost.saturating_add(if may_ask { worker.cost_of(session, *command, args) } else { 1 });
    }
    cost > INLINE_BUDGET
}

/// Hands a long transaction to another thread. The session is out of MULTI from here on.
fn offload(worker: &mut Worker, id: ConnId, session: &mut Session, queue: Vec<(CommandId, OwnedArgs)>) {
    for (command, args) in &queue {
        worker.feed_monitors(session, table::spec(*command), args.as_args());
    }
    let slots = slots_of_queue(worker, session, &queue);
    let waits = queue.iter().any(|(command, _)| *command == CommandId::Migrate);
    end_multi(session);
    session.state.remove(State::WATCHING);
    let watch = session.extra.as_mut().and_then(|extra| extra.watch.take());
    let writes = writes_any(&queue);
    let work = Work::Transaction { queue, watch, footing: worker.footing(id, session, &slots, writes) };
    let name = vec![b"EXEC".to_vec()];
    let job = Job { worker: worker.index, conn: id, id: CommandId::Exec, proto: session.proto, shown: name, work };
    session.state.insert(State::OFFLOADED);
    let pool = if waits { &worker.shared.movers } else { &worker.shared.offload };
    pool.submit(&worker.shared, job);
}

/// The slots of all keys that queued commands and watches name, ascending.
fn slots_of_queue(worker: &Worker, session: &Session, queued: &[(CommandId, OwnedArgs)]) -> single::Slots {
    let mut slots = slots_of_commands(worker, queued);
    slots.extend(watched_slots(worker, session));
    slots.sort_unstable();
    slots.dedup();
    slots
}

/// The slots of all keys that queued commands name, ascending.
pub(crate) fn slots_of_commands(worker: &Worker, queued: &[(CommandId, OwnedArgs)]) -> single::Slots {
    let mut slots = single::Slots::new();
    for (command, args) in queued {
        if let Ok(of_command) = single::slots_of(worker, table::spec(*command), args.as_args()) {
            slots.extend(of_command);
        }
    }
    slots.sort_unstable();
    slots.dedup();
    slots
}

/// The slots of the keys that a session watches.
pub(crate) fn watched_slots(worker: &Worker, session: &Session) -> single::Slots {
    let watch = session.extra.as_ref().and_then(|extra| extra.watch.as_ref());
    let keys = watch.into_iter().flat_map(|watch| &watch.keys);
    keys.map(|(_, key, _)| worker.locks.keyspace().slot(key)).collect()
}

/// Whether one of the commands writes.
pub(crate) fn writes_any(queued: &[(CommandId, OwnedArgs)]) -> bool {
    queued.iter().any(|(id, _)| table::spec(*id).flags.contains(Flags::WRITE))
}

fn exec_alone(
    worker: &mut Worker,
    id: ConnId,
    session: &mut Session,
    queued: &[(CommandId, OwnedArgs)],
) -> Result<Step, CmdError> {
    let ran = worker.alone(|worker| -> Result<Step, CmdError> {
        if let Some(step) = worker.admit_transaction(id, session, queued)? {
            return Ok(step);
        }
        if queued.iter().any(|(command, _)| whole::changes_all(*command)) && worker.holds_any() {
            return Ok(Step::Retry);
        }
        run_queue(worker, id, session, queued);
        worker.serve_held();
        Ok(Step::Done)
    });
    ran.unwrap_or(Ok(Step::Retry))
}

/// Runs the queued commands, all slots they need being ours.
fn run_queue(worker: &mut Worker, id: ConnId, session: &mut Session, queued: &[(CommandId, OwnedArgs)]) {
    if is_watch_broken(worker, session) {
        worker.reply.null_array();
        return;
    }
    worker.reply.array(queued.len());
    worker.locks.effects.begin();
    for (command, args) in queued {
        let (db, dirty) = (session.db, worker.events.dirty);
        let spec = table::spec(*command);
        let args = args.as_args();
        let before = worker.reply.len();
        worker.feed_monitors(session, spec, args);
        session.last_command = Some(*command);
        let result = if let Err(denied) = worker.check_rights(session, spec, &args) {
            worker.refuse(id, session, spec, &args, denied, Context::Multi);
            Err(denied.exec_error())
        } else if let Some(error) = worker.sort_refusal(session, spec, args) {
            Err(error)
        } else if worker.routes[command.index()].handler.is_some() {
            let result = worker.call(session, *command, args, false).0;
            worker.track_reads_of(id, session, spec, args);
            worker.note_keys(session, spec, args);
            result
        } else {
            session_commands::run(worker, id, session, spec, args).map(|step| {
                if matches!(step, Step::Close | Step::CloseNow) {
                    session.state.insert(State::CLOSE_AFTER);
                }
            })
        };
        if let Err(error) = result {
            worker.answer_error(before, *command, &error);
        }
        worker.record(db, Verbatim::Args(args), dirty);
        worker.note_call(session, *command, args);
    }
    worker.locks.effects.end();
    // EXEC's own time is counted from here: its commands have had theirs.
    worker.last_tick = ticks::now();
}

/// Whether a watched key changed or ended since WATCH. Its slots are held.
fn is_watch_broken(worker: &mut Worker, session: &Session) -> bool {
    let Some(watch) = session.extra.as_ref().and_then(|extra| extra.watch.as_ref()) else { return false };
    if watch.flag.load(Ordering::Relaxed) || worker.watches_foreign(session) {
        return true;
    }
    watch.keys.iter().any(|(db, key, was_over)| {
        // Redis: a key that ends by its expiry after WATCH counts as changed, one that was over already does not.
        !was_over
            && DbView::new(&mut worker.locks, &mut worker.events, *db, worker.now_ms, worker.clock).is_expired_now(key)
    })
}

impl Worker {
    /// Ends all watches of a session. Takes the slots one by one, none may be held beyond those of the command.
    pub(crate) fn unwatch_all(&mut self, session: &mut Session) {
        let Some(watch) = session.extra.as_mut().and_then(|extra| extra.watch.take()) else { return };
        session.state.remove(State::WATCHING);
        let entered = self.locks.enter_if_outside();
        let (now_ms, clock) = (self.now_ms, self.clock);
        for (db, key, _) in &watch.keys {
            let slot = self.locks.keyspace().slot(key);
            let mut looks = 0_u32;
            while !self.locks.try_lock(slot) {
                // A long command may hold the slot. The flag of a dead watch harms nobody: it is dropped when the slot is
                // next cleaned, so after a while we leave it.
                looks += 1;
                if looks > 1000 {
                    break;
                }
            }
            if self.locks.holds(slot) {
                DbView::new(&mut self.locks, &mut self.events, *db, now_ms, clock).unwatch(key, &watch.flag);
            }
            self.locks.unlock_all();
        }
        if entered {
            self.locks.leave();
        }
    }

    /// Runs `work` with the whole keyspace to itself. `None`: the gate is busy, try again soon.
    pub(crate) fn alone<R>(&mut self, work: impl FnOnce(&mut Worker) -> R) -> Option<R> {
        let closed = self.locks.begin_alone()?;
        let result = work(self);
        self.locks.end_alone(closed);
        Some(result)
    }
}
