//! `OXIDIS`: how a manager (and a proxy, and the other end of a move) speaks to a server.
//!
//! What changes something is done by the control thread or a move's own; the client waits parked meanwhile.

use super::control::Control;
use super::incoming::{self, Incoming};
use super::outgoing;
use super::stats;
use super::store::Kept;
use crate::durability::save::Asker;
use crate::exec::Step;
use crate::session::{Session, State};
use crate::worker::Worker;
use ::commands::{CmdError, CommandId, options};
use keyspace::DbIndex;
use keyspace::journal::effects::Verbatim;
use net::ConnId;
use resp::Args;
use serde::Serialize;
use std::sync::Arc;
use topology::{Epoch, Newness, SlotSet, SlotSpace, Term, View};

/// The longest name of a member or proxy.
const NAME_MAX: usize = 128;

const NOT_A_MEMBER: CmdError = CmdError::new("ERR this server is no member of a cluster: use OXIDIS JOIN first");

/// Runs one.
pub(crate) fn run(
    worker: &mut Worker,
    id: ConnId,
    session: &mut Session,
    command: CommandId,
    args: Args<'_>,
) -> Result<Step, CmdError> {
    use CommandId as C;
    match command {
        C::OxidisJoin => join(worker, id, session, args),
        C::OxidisLeave => {
            ask(worker, id, session, args, Control::leave);
            Ok(Step::Parked)
        }
        C::OxidisView => {
            let text = view(worker)?;
            worker.reply.bulk(text);
            Ok(Step::Done)
        }
        C::OxidisProxy => {
            name_of(&args[2])?;
            session.state.insert(State::PROXY);
            session.extra_mut().name = args[2].to_vec();
            worker.reply.ok();
            Ok(Step::Done)
        }
        C::OxidisMove => outgoing_step(worker, id, session, args),
        C::OxidisImport => incoming_step(worker, id, session, args),
        C::OxidisSlots => slots(worker, id, session, args),
        _ => Err(::commands::error::SYNTAX),
    }
}

fn ask(
    worker: &mut Worker,
    id: ConnId,
    session: &mut Session,
    args: Args<'_>,
    task: impl FnOnce(&mut Control) -> Result<(), String> + Send + 'static,
) {
    let asker = Asker::new(worker, id, session, CommandId::Oxidis, args);
    worker.shared.control(move |control| {
        let shared = control.shared.clone();
        let answer = task(control);
        asker.answer(&shared, |reply| match answer {
            Ok(()) => reply.ok(),
            Err(text) => reply.error(format!("ERR {text}")),
        });
    });
}

fn text_of(argument: &[u8]) -> Result<&str, CmdError> {
    std::str::from_utf8(argument).map_err(|_| CmdError::new("ERR the argument is no UTF-8 text"))
}

fn name_of(argument: &[u8]) -> Result<String, CmdError> {
    let name = text_of(argument)?;
    let fine = !name.is_empty() && name.len() <= NAME_MAX && name.bytes().all(|byte| byte.is_ascii_graphic());
    if fine {
        Ok(name.to_owned())
    } else {
        Err(CmdError::new("ERR a name is 1 to 128 visible characters without spaces"))
    }
}

fn number(argument: &[u8]) -> Result<u64, CmdError> {
    resp::num::parse_i64(argument)
        .and_then(|number| u64::try_from(number).ok())
        .ok_or(CmdError::new("ERR value is not an integer or out of range"))
}

pub(crate) fn ranges(worker: &Worker, argument: &[u8]) -> Result<SlotSet, CmdError> {
    let refuse = |error: topology::slots::BadRanges| CmdError::text(format!("ERR {error}"));
    let set: SlotSet = text_of(argument)?.parse().map_err(refuse)?;
    let space = match worker.locks.keyspace().space() {
        keyspace::slot::SlotSpace::Redis => SlotSpace::Redis,
        keyspace::slot::SlotSpace::Codis => SlotSpace::Codis,
    };
    set.within(space).map_err(refuse)?;
    Ok(set)
}

fn argument<'a>(args: Args<'a>, at: usize) -> Result<&'a [u8], CmdError> {
    args.get(at).ok_or(CmdError::new("ERR wrong number of arguments, see OXIDIS in docs/cluster-server.md"))
}

fn join(worker: &mut Worker, id: ConnId, session: &mut Session, args: Args<'_>) -> Result<Step, CmdError> {
    let member = name_of(&args[2])?;
    let managers = args.slice(3).iter().map(|url| text_of(url).map(str::to_owned)).collect::<Result<Vec<_>, _>>()?;
    if let Some(wrong) = managers.iter().find(|url| !url.starts_with("http://")) {
        return Err(CmdError::text(format!("ERR '{wrong}' is no manager's URL: it begins with http://")));
    }
    ask(worker, id, session, args, move |control| {
        if !control.kept.member.is_empty() && control.kept.member != member {
            return Err(format!(
                "this server is a member already, by the name '{}': use OXIDIS LEAVE first",
                control.kept.member
            ));
        }
        let known = std::mem::take(&mut control.kept);
        control.join(Kept { member, managers, ..known })
    });
    Ok(Step::Parked)
}

/// The answer to OXIDIS VIEW.
#[derive(Serialize)]
struct Shown<'a> {
    member: &'a str,
    run: &'a str,
    term: u64,
    epoch: u64,
    lease_left_ms: u64,
    role: &'a str,
    group: Option<u32>,
    view: Option<&'a View>,
}

fn view(worker: &Worker) -> Result<String, CmdError> {
    let cluster = &worker.shared.cluster;
    let member = cluster.member().ok_or(NOT_A_MEMBER)?;
    let map = cluster.map();
    let role = if worker.shared.replication.is_replica() { "replica" } else { "primary" };
    let newness = cluster.in_force();
    let shown = Shown {
        member: &member,
        run: &worker.shared.run_id,
        term: newness.term.0,
        epoch: newness.epoch.0,
        lease_left_ms: cluster.lease().map_or(0, |lease| lease.lease_left_ms()),
        role,
        group: map.as_ref().and_then(|map| map.home.map(|(group, _)| group.0)),
        view: map.as_ref().map(|map| &map.view),
    };
    serde_json::to_string(&shown).map_err(|error| CmdError::text(format!("ERR the view cannot be shown: {error}")))
}

// ---- moves -------------------------------------------------------------------------------------------------------

fn newness(args: Args<'_>, at: usize) -> Result<Newness, CmdError> {
    Ok(Newness { term: Term(number(argument(args, at)?)?), epoch: Epoch(number(argument(args, at + 1)?)?) })
}

/// As [`newness`], where it may be left out.
fn newness_if_said(args: Args<'_>, at: usize) -> Result<Option<Newness>, CmdError> {
    if args.len() > at { newness(args, at).map(Some) } else { Ok(None) }
}

fn unknown(move_id: u64) -> CmdError {
    CmdError::text(format!("ERR this server knows no move {move_id}: start it anew with OXIDIS MOVE START"))
}

fn outgoing_step(worker: &mut Worker, id: ConnId, session: &mut Session, args: Args<'_>) -> Result<Step, CmdError> {
    let shared = worker.shared.clone();
    if !shared.cluster.is_managed() {
        return Err(NOT_A_MEMBER);
    }
    let step = args[2].to_ascii_lowercase();
    let move_id = number(&args[3])?;
    let known = shared.cluster.outgoing_of(move_id);
    let required = || known.clone().ok_or_else(|| unknown(move_id));
    match step.as_slice() {
        b"start" => {
            let target = text_of(argument(args, 4)?)?.to_owned();
            let slots = ranges(worker, argument(args, 5)?)?;
            let rate = match (args.get(6), args.get(7)) {
                (None, _) => 0,
                (Some(word), Some(rate)) if options::is_word(word, "rate") => number(rate)?,
                _ => return Err(::commands::error::SYNTAX),
            };
            ask(worker, id, session, args, move |control| outgoing::start(control, move_id, target, slots, rate));
            return Ok(Step::Parked);
        }
        b"status" => {
            let status = required()?.status();
            let text = serde_json::to_string(&status)
                .map_err(|error| CmdError::text(format!("ERR the status cannot be shown: {error}")))?;
            worker.reply.bulk(text);
            return Ok(Step::Done);
        }
        b"rate" => required()?.set_rate(number(argument(args, 4)?)?),
        b"pause" => required()?.pause(true),
        b"resume" => required()?.pause(false),
        b"freeze" => {
            let outgoing = required()?;
            let (epoch, timeout_ms) = (number(argument(args, 4)?)?, number(argument(args, 5)?)?);
            let asker = Asker::new(worker, id, session, CommandId::Oxidis, args);
            outgoing.freeze(&shared, epoch, timeout_ms, asker);
            return Ok(Step::Parked);
        }
        b"cancel" => {
            let newness = newness_if_said(args, 4)?;
            ask(worker, id, session, args, move |control| cancel(control, move_id, newness));
            return Ok(Step::Parked);
        }
        b"finish" => {
            let newness = newness(args, 4)?;
            ask(worker, id, session, args, move |control| finish(control, move_id, newness));
            return Ok(Step::Parked);
        }
        _ => {
            return Err(CmdError::new(
                "ERR OXIDIS MOVE takes START, STATUS, RATE, PAUSE, RESUME, CANCEL, FREEZE or FINISH",
            ));
        }
    }
    worker.reply.ok();
    Ok(Step::Done)
}

fn cancel(control: &mut Control, move_id: u64, newness: Option<Newness>) -> Result<(), String> {
    let known = control.shared.cluster.outgoing_of(move_id).filter(|outgoing| !outgoing.is_over());
    let is_kept = control.kept.leaving.iter().any(|one| one.id == move_id);
    if known.is_none() && !is_kept && control.holds.iter().all(|hold| hold.id != move_id) {
        return Ok(());
    }
    if let Some(newness) = newness {
        control.refuse_stale(newness.epoch.0)?;
    }
    if let Some(outgoing) = known {
        outgoing.cancel();
    }
    control.release(move_id);
    control.forget_leaving(move_id);
    Ok(())
}

fn finish(control: &mut Control, move_id: u64, newness: Newness) -> Result<(), String> {
    let known = control.shared.cluster.outgoing_of(move_id);
    let of_file = control.kept.leaving.iter().find(|one| one.id == move_id).cloned();
    // A move that has been seen to is in neither place: there is nothing left to do.
    let place = match (&known, of_file) {
        (Some(outgoing), _) if outgoing.is_over() => None,
        (Some(outgoing), _) => Some((outgoing.slots.clone(), outgoing.target.clone())),
        (None, Some(leaving)) => Some((leaving.slots, leaving.target)),
        (None, None) => None,
    };
    if let Some((slots, target)) = place {
        let map = control.shared.cluster.map();
        let is_shown = map.is_some_and(|map| super::slots_of(&slots).all(|slot| !map.is_ours(slot)));
        if !is_shown {
            control.refuse_stale(newness.epoch.0)?;
        }
        control.finish(move_id, &slots, &target, newness);
    }
    if let Some(outgoing) = known {
        outgoing.finish();
    }
    Ok(())
}

fn abort(control: &mut Control, move_id: u64, newness: Option<Newness>) -> Result<(), String> {
    let is_known = control.kept.coming.iter().any(|one| one.id == move_id);
    if let Some(newness) = newness.filter(|_| is_known) {
        control.refuse_stale(newness.epoch.0)?;
    }
    incoming::abort(control, move_id);
    Ok(())
}

fn incoming_step(worker: &mut Worker, id: ConnId, session: &mut Session, args: Args<'_>) -> Result<Step, CmdError> {
    let shared = worker.shared.clone();
    if !shared.cluster.is_managed() {
        return Err(NOT_A_MEMBER);
    }
    let step = args[2].to_ascii_lowercase();
    let move_id = number(&args[3])?;
    let known: Option<Arc<Incoming>> = shared.cluster.incoming_of(move_id);
    match step.as_slice() {
        b"begin" => {
            let slots = ranges(worker, argument(args, 4)?)?;
            session.extra_mut().importing = Some(move_id);
            let worker_index = worker.index;
            let asker = Asker::new(worker, id, session, CommandId::Oxidis, args);
            shared.control(move |control| incoming::begin(control, move_id, slots, id, worker_index, asker));
        }
        b"commit" => {
            let newness = newness(args, 4)?;
            ask(worker, id, session, args, move |control| incoming::commit(control, move_id, newness));
        }
        b"abort" => {
            let newness = newness_if_said(args, 4)?;
            // A source speaks for what it brings, not for what another has begun since.
            let brings = session.extra.as_ref().is_some_and(|extra| extra.importing.is_some());
            if brings && !known.is_some_and(|incoming| incoming.is_brought_by(worker.index, id)) {
                worker.reply.ok();
                return Ok(Step::Done);
            }
            ask(worker, id, session, args, move |control| abort(control, move_id, newness));
        }
        b"apply" | b"confirm" => {
            let incoming = known
                .filter(|incoming| incoming.is_brought_by(worker.index, id))
                .ok_or_else(|| CmdError::text(format!("ERR this connection does not bring move {move_id}")))?;
            let order = if step == b"apply" {
                incoming::Order::Apply(argument(args, 4)?.to_vec())
            } else {
                let claim = incoming::Claim::read(argument(args, 4)?).ok_or(::commands::error::SYNTAX)?;
                incoming::Order::Confirm(claim, number(argument(args, 5)?)?)
            };
            let asker = Asker::new(worker, id, session, CommandId::Oxidis, args);
            incoming.send(&shared, order, asker);
        }
        _ => return Err(CmdError::new("ERR OXIDIS IMPORT takes BEGIN, APPLY, CONFIRM, COMMIT or ABORT")),
    }
    Ok(Step::Parked)
}

// ---- slots -------------------------------------------------------------------------------------------------------

fn slots(worker: &mut Worker, id: ConnId, session: &mut Session, args: Args<'_>) -> Result<Step, CmdError> {
    match args[2].to_ascii_lowercase().as_slice() {
        b"stats" => {
            let wanted = args.get(3).map(|text| ranges(worker, text)).transpose()?;
            let asker = Asker::new(worker, id, session, CommandId::Oxidis, args);
            stats::start(&worker.shared, wanted, asker)?;
            Ok(Step::Parked)
        }
        // Of a log or a primary: what emptying slots is recorded as.
        b"drop" if worker.is_replaying => {
            let wanted = ranges(worker, argument(args, 3)?)?;
            let only = match args.get(4) {
                Some(db) => Some(DbIndex(u32::try_from(number(db)?).unwrap_or(u32::MAX))),
                None => None,
            };
            drop_slots(worker, session.db, args, &wanted, only)
        }
        _ => Err(CmdError::new("ERR OXIDIS SLOTS takes STATS")),
    }
}

fn drop_slots(
    worker: &mut Worker,
    db: DbIndex,
    args: Args<'_>,
    wanted: &SlotSet,
    only: Option<DbIndex>,
) -> Result<Step, CmdError> {
    let slots: Vec<keyspace::Slot> = super::slots_of(wanted).collect();
    if let Err(busy) = worker.locks.try_lock_all(&slots) {
        return Ok(Step::Busy(busy));
    }
    let mut garbage = Vec::new();
    let mut gone = 0;
    for slot in slots {
        worker.locks.invalidate_slot(slot, &mut worker.events);
        gone += worker.locks.empty_slot(slot, only, crate::process::now_ms(), &mut garbage);
    }
    worker.events.dirty += gone.max(1);
    // Recorded here, while the slots are held, and not once more when the command has ended.
    worker.locks.effects.command_ran(db, Verbatim::Args(args), true);
    worker.locks.append_effects();
    worker.locks.unlock_all();
    worker.locks.effects.suppress();
    worker.shared.keyspace.reclaimer.free(garbage);
    worker.reply.ok();
    Ok(Step::Done)
}
