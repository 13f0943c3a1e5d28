//! CLIENT.

use super::client_filter::Filter;
use crate::client_list::{ClientKind, ClientLine, ClientLines, INLINE_LINES, Scope};
use crate::exec::Step;
use crate::offload::{Job, Work};
use crate::session::{Session, State};
use crate::slowlog::kept_arguments;
use crate::worker::{Message, Worker};
use commands::{CmdError, CommandId, options};
use net::ConnId;
use resp::Args;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Whether a command is served here.
pub(crate) fn is_served(id: CommandId) -> bool {
    use CommandId as C;
    let of_session = matches!(
        id,
        C::ClientId | C::ClientInfo | C::ClientGetname | C::ClientSetname | C::ClientSetinfo | C::ClientReply
    );
    let of_memory = matches!(id, C::ClientNoEvict | C::ClientNoTouch);
    let of_tracking = matches!(id, C::ClientCaching | C::ClientGetredir | C::ClientTracking | C::ClientTrackinginfo);
    let of_others = matches!(id, C::ClientKill | C::ClientList | C::ClientPause | C::ClientUnblock | C::ClientUnpause);
    of_session || of_memory || of_tracking || of_others || id == C::ClientHelp
}

/// Which clients a command works on. `None`: it needs no list.
pub(crate) fn scope_of(id: CommandId, args: Args<'_>) -> Option<Scope> {
    let numbers = |from: usize| Scope::Ids(args.slice(from).iter().filter_map(resp::num::parse_u64).collect());
    match id {
        CommandId::ClientInfo => Some(Scope::Own),
        CommandId::ClientUnblock => Some(numbers(2)),
        CommandId::ClientTracking => super::tracking::redirect_of(args).map(|id| Scope::Ids(vec![id])),
        CommandId::ClientList if args.get(2).is_some_and(|word| options::is_word(word, "id")) => Some(numbers(3)),
        CommandId::ClientKill if args.len() == 4 && options::is_word(&args[2], "id") => Some(numbers(3)),
        CommandId::ClientList | CommandId::ClientKill => Some(Scope::All),
        _ => None,
    }
}

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
        C::ClientId => worker.reply.int(i64::try_from(session.id.0).unwrap_or(i64::MAX)),
        C::ClientGetname => match session.extra.as_ref().map(|extra| &extra.name).filter(|name| !name.is_empty()) {
            Some(name) => worker.reply.bulk(name),
            None => worker.reply.null(),
        },
        C::ClientSetname => {
            check_name(&args[2])?;
            session.extra_mut().name = args[2].to_vec();
            worker.reply.ok();
        }
        C::ClientSetinfo => {
            set_info(session, &args[2], &args[3])?;
            worker.reply.ok();
        }
        C::ClientReply => set_reply_mode(worker, session, &args[2])?,
        C::ClientNoEvict => set_flag(worker, session, State::NO_EVICT, &args[2])?,
        C::ClientNoTouch => set_flag(worker, session, State::NO_TOUCH, &args[2])?,
        C::ClientPause => pause(worker, args)?,
        C::ClientUnpause => {
            worker.shared.pause_until_ms.store(0, Ordering::SeqCst);
            worker.shared.pause_writes_only.store(false, Ordering::SeqCst);
            worker.reply.ok();
        }
        C::ClientTracking | C::ClientCaching | C::ClientGetredir | C::ClientTrackinginfo => {
            super::tracking::run(worker, id, session, command, args)?;
        }
        C::ClientInfo => {
            let lines = worker.client_lines(id).unwrap_or_default();
            let mut text = lines.of(session.id.0).map(|line| lines.text(line).to_vec()).unwrap_or_default();
            text.push(b'\n');
            worker.reply.verbatim(&text, "txt");
        }
        C::ClientList => return list(worker, id, session, args),
        C::ClientKill => return kill(worker, id, session, args),
        C::ClientUnblock => unblock(worker, id, args)?,
        _ => return Err(subcommand_syntax(args)),
    }
    Ok(Step::Done)
}

fn subcommand_syntax(args: Args<'_>) -> CmdError {
    CmdError::text(String::from_utf8_lossy(&commands::table::errors::subcommand_syntax(&args)).into_owned())
}

/// Checks a client name: what CLIENT LIST prints must stay one word.
pub(crate) fn check_name(name: &[u8]) -> Result<(), CmdError> {
    if is_printable(name) {
        Ok(())
    } else {
        Err(CmdError::new("ERR Client names cannot contain spaces, newlines or special characters."))
    }
}

fn is_printable(text: &[u8]) -> bool {
    text.iter().all(|byte| (b'!'..=b'~').contains(byte))
}

fn set_info(session: &mut Session, option: &[u8], value: &[u8]) -> Result<(), CmdError> {
    let is_name = options::is_word(option, "lib-name");
    if !is_name && !options::is_word(option, "lib-ver") {
        return Err(CmdError::text(format!("ERR Unrecognized option '{}'", String::from_utf8_lossy(option))));
    }
    if !is_printable(value) {
        let option = String::from_utf8_lossy(option);
        return Err(CmdError::text(format!("ERR {option} cannot contain spaces, newlines or special characters.")));
    }
    let extra = session.extra_mut();
    let place = if is_name { &mut extra.lib_name } else { &mut extra.lib_version };
    *place = value.to_vec();
    Ok(())
}

fn set_reply_mode(worker: &mut Worker, session: &mut Session, mode: &[u8]) -> Result<(), CmdError> {
    if options::is_word(mode, "on") {
        session.state.remove(State::REPLY_OFF);
        session.state.remove(State::REPLY_SKIP);
        worker.reply.ok();
    } else if options::is_word(mode, "off") {
        session.state.insert(State::REPLY_OFF);
    } else if options::is_word(mode, "skip") {
        if !session.state.has(State::REPLY_OFF) {
            session.state.insert(State::REPLY_SKIP_NEXT);
        }
    } else {
        return Err(commands::error::SYNTAX);
    }
    Ok(())
}

fn set_flag(worker: &mut Worker, session: &mut Session, flag: State, mode: &[u8]) -> Result<(), CmdError> {
    if options::is_word(mode, "on") {
        session.state.insert(flag);
    } else if options::is_word(mode, "off") {
        session.state.remove(flag);
    } else {
        return Err(commands::error::SYNTAX);
    }
    worker.reply.ok();
    Ok(())
}

fn pause(worker: &mut Worker, args: Args<'_>) -> Result<(), CmdError> {
    let writes_only = match args.get(3) {
        None => false,
        Some(mode) if args.len() == 4 && options::is_word(mode, "write") => true,
        Some(mode) if args.len() == 4 && options::is_word(mode, "all") => false,
        Some(_) if args.len() == 4 => return Err(CmdError::new("ERR CLIENT PAUSE mode must be WRITE or ALL")),
        Some(_) => return Err(subcommand_syntax(args)),
    };
    let until_ms = timeout_ms(&args[2], worker.now_ms)?.unwrap_or(0);
    let shared = &worker.shared;
    let is_paused = shared.pause_until_ms.load(Ordering::SeqCst) > worker.now_ms;
    // Redis: the more restrictive mode and the later end win over a pause that is in force.
    let was_all = is_paused && !shared.pause_writes_only.load(Ordering::SeqCst);
    shared.pause_writes_only.store(writes_only && !was_all, Ordering::SeqCst);
    shared.pause_until_ms.fetch_max(until_ms, Ordering::SeqCst);
    worker.reply.ok();
    Ok(())
}

/// A timeout in milliseconds as the Unix time in ms of its end; `None`: 0, without end.
pub(crate) fn timeout_ms(argument: &[u8], now_ms: i64) -> Result<Option<i64>, CmdError> {
    let timeout =
        resp::num::parse_i64(argument).ok_or(CmdError::new("ERR timeout is not an integer or out of range"))?;
    match timeout {
        ..0 => Err(commands::error::TIMEOUT_NEGATIVE),
        0 => Ok(None),
        _ => now_ms.checked_add(timeout).map(Some).ok_or(commands::error::TIMEOUT_OUT_OF_RANGE),
    }
}

// ---- LIST --------------------------------------------------------------------------------------------------------

fn list(worker: &mut Worker, id: ConnId, session: &mut Session, args: Args<'_>) -> Result<Step, CmdError> {
    let filter = Filter::read(worker, args, 2, true)?;
    let spared = filter.skips_own.unwrap_or(false).then_some(session.id.0);
    let lines = worker.client_lines(id).unwrap_or_default();
    if lines.lines.len() > INLINE_LINES && filter.only_ids().is_none() && !session.state.has(State::IN_MULTI) {
        let work = Work::Walk(Box::new(move |_, reply| reply.verbatim(list_text(&lines, &filter, spared), "txt")));
        session.state.insert(State::OFFLOADED);
        let job = Job {
            worker: worker.index,
            conn: id,
            id: CommandId::ClientList,
            proto: session.proto,
            shown: kept_arguments(args),
            work,
        };
        worker.shared.offload.submit(&worker.shared, job);
        worker.drop_client_lines(id);
        return Ok(Step::Parked);
    }
    worker.reply.verbatim(list_text(&lines, &filter, spared), "txt");
    Ok(Step::Done)
}

/// The lines of the clients that pass, but that of `spared`.
fn list_text(lines: &ClientLines, filter: &Filter, spared: Option<u64>) -> Vec<u8> {
    // Growing would copy tens of megabytes several times.
    let mut text = Vec::with_capacity(if filter.is_empty() { lines.text_bytes() } else { 0 });
    let mut add = |line: &ClientLine| {
        if spared != Some(line.id) {
            text.extend_from_slice(lines.text(line));
            text.push(b'\n');
        }
    };
    // Redis: in the order in which they were asked for.
    if let Some(ids) = filter.only_ids() {
        ids.iter().filter_map(|id| lines.of(*id)).for_each(&mut add);
        return text;
    }
    let mut wanted: Vec<&ClientLine> = lines.lines.iter().filter(|line| filter.passes(lines, line)).collect();
    wanted.sort_unstable_by_key(|line| line.id);
    wanted.into_iter().for_each(&mut add);
    text
}

// ---- KILL, UNBLOCK -----------------------------------------------------------------------------------------------

fn kill(worker: &mut Worker, id: ConnId, session: &Session, args: Args<'_>) -> Result<Step, CmdError> {
    let victims = if args.len() == 3 { Filter::of_address(&args[2]) } else { Filter::read(worker, args, 2, false)? };
    let spares_own = victims.skips_own.unwrap_or(true);
    let lines = worker.client_lines(id).unwrap_or_default();
    let is_victim = |line: &&ClientLine| victims.passes(&lines, line) && !(spares_own && line.id == session.id.0);
    let mut killed = 0;
    let mut own = false;
    let mut by_worker: Vec<Vec<ConnId>> = vec![Vec::new(); worker.shared.workers()];
    for line in lines.lines.iter().filter(is_victim) {
        killed += 1;
        if line.id == session.id.0 {
            own = true;
        } else if line.kind == ClientKind::Master {
            worker.shared.replication.cut_link();
        } else if let Some(conns) = by_worker.get_mut(line.worker as usize) {
            conns.push(line.conn);
        }
    }
    for (index, conns) in by_worker.into_iter().enumerate().filter(|(_, conns)| !conns.is_empty()) {
        if index == worker.index as usize {
            worker
                .chores
                .push_back((std::time::Instant::now(), Box::new(move |worker, all| worker.close_clients(all, conns))));
            continue;
        }
        #[allow(clippy::cast_possible_truncation)]
        worker.shared.post(index as u16, Message::Call(Box::new(move |worker, all| worker.close_clients(all, conns))));
    }
    match (args.len(), killed) {
        (3, 0) => return Err(CmdError::new("ERR No such client")),
        (3, _) => worker.reply.ok(),
        _ => worker.reply.count(killed),
    }
    Ok(if own { Step::Close } else { Step::Done })
}

fn unblock(worker: &mut Worker, id: ConnId, args: Args<'_>) -> Result<(), CmdError> {
    let error = match args.get(3) {
        None => None,
        Some(word) if args.len() == 4 && options::is_word(word, "timeout") => None,
        Some(word) if args.len() == 4 && options::is_word(word, "error") => {
            Some("UNBLOCKED client unblocked via CLIENT UNBLOCK")
        }
        Some(_) if args.len() == 4 => {
            return Err(CmdError::new("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR"));
        }
        Some(_) => return Err(subcommand_syntax(args)),
    };
    let number = options::int(&args[2])?;
    let lines: Arc<ClientLines> = worker.client_lines(id).unwrap_or_default();
    let line = u64::try_from(number).ok().and_then(|number| lines.of(number));
    // The claim decides against a push or a timeout at the same moment, so the answer is true.
    let claimed =
        line.and_then(|line| line.waiter.as_ref().filter(|waiter| waiter.claim()).map(|waiter| (line, waiter.clone())));
    match claimed {
        None => worker.reply.int(0),
        Some((line, waiter)) => {
            let conn = line.conn;
            worker.shared.post(
                line.worker,
                Message::Call(Box::new(move |worker, conns| worker.end_claimed_wait(conns, conn, &waiter, error))),
            );
            worker.reply.int(1);
        }
    }
    Ok(())
}
