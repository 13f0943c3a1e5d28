//! COMMAND, MONITOR, DBSIZE, TIME, ROLE, SHUTDOWN and others of the server as a whole, and short answers for parts that
//! are not there yet.

use super::{client, debug, info};
use crate::acl::commands as acl;
use crate::aof::State as LogState;
use crate::aof::rewrite::Asked;
use crate::cluster::commands as cluster;
use crate::durability::{save, shutdown};
use crate::exec::Step;
use crate::replication;
use crate::session::{Session, State};
use crate::worker::Worker;
use commands::table::{self, CommandSpec};
use commands::{CmdError, CommandId, options};
use keyspace::Slot;
use net::ConnId;
use resp::Args;
use std::sync::atomic::Ordering;

/// Whether a command is served here.
pub(crate) fn is_served(id: CommandId) -> bool {
    use CommandId as C;
    match id {
        C::Command | C::CommandCount | C::CommandDocs | C::CommandGetkeys | C::CommandGetkeysandflags => true,
        C::CommandHelp | C::CommandInfo | C::CommandList => true,
        C::Info | C::Debug | C::Dbsize | C::Time | C::Lastsave | C::Lolwut | C::Monitor | C::Role | C::Shutdown => true,
        C::Psync | C::Sync | C::Replconf => true,
        C::Failover | C::Wait | C::Waitaof | C::Replicaof | C::Slaveof | C::Save | C::Bgsave | C::Bgrewriteaof => true,
        C::ModuleHelp | C::ModuleList | C::ModuleLoad | C::ModuleLoadex | C::ModuleUnload => true,
        C::Readonly | C::Readwrite | C::Asking | C::Hotkeys | C::Bigkeys => true,
        _ => {
            let name = table::spec(id).name;
            acl::is_served(id) || name.starts_with("cluster|") || name.starts_with("oxidis|")
        }
    }
}

/// Runs one.
pub(crate) fn run(
    worker: &mut Worker,
    id: ConnId,
    session: &mut Session,
    spec: &'static CommandSpec,
    args: Args<'_>,
) -> Result<Step, CmdError> {
    use CommandId as C;
    match spec.id {
        C::Command => table::command::all(&mut worker.reply),
        C::CommandCount => table::command::count(&mut worker.reply),
        C::CommandInfo => table::command::info(&args, &mut worker.reply),
        C::CommandDocs => table::command::docs(&args, &mut worker.reply),
        C::CommandList => table::command::list(&args, &mut worker.reply),
        C::CommandGetkeys => table::command::get_keys(&args, &mut worker.reply),
        C::CommandGetkeysandflags => table::command::get_keys_and_flags(&args, &mut worker.reply),
        C::Info => return Ok(info::run(worker, args)),
        C::Debug => return debug::run(worker, id, session, args),
        C::Hotkeys | C::Bigkeys => super::key_stats::run(worker, spec.id, args)?,
        C::Dbsize => return db_size(worker, session),
        C::Time => {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            worker.reply.array(2);
            worker.reply.bulk(now.as_secs().to_string());
            worker.reply.bulk(now.subsec_micros().to_string());
        }
        C::Lastsave => worker.reply.int(worker.shared.last_save_s.load(Ordering::Relaxed)),
        C::Lolwut => lolwut(worker, args)?,
        C::Monitor => monitor(worker, id, session)?,
        C::Role => replication::role::role(worker),
        C::Psync | C::Sync => return replication::primary::sync(worker, id, session, spec.id, args),
        C::Replconf => return replication::primary::replconf(worker, id, session, args),
        C::Shutdown => return shutdown(worker, id, session, args),
        C::Waitaof => return wait_for_log(worker, id, session, args),
        C::Wait => return replication::wait::wait(worker, id, session, args),
        C::Replicaof | C::Slaveof => return replication::role::replica_of(worker, session, args),
        C::Save => return save::save(worker, id, session, args),
        C::Bgsave => return save::background_save(worker, session, args),
        C::Bgrewriteaof => {
            let in_exec = worker.locks.is_alone() || worker.locks.held() > 0 || session.state.has(State::IN_MULTI);
            let text = match worker.shared.ask_rewrite(in_exec)? {
                Asked::Started => "Background append only file rewriting started",
                Asked::Scheduled => "Background append only file rewriting scheduled",
            };
            worker.reply.simple(text);
        }
        C::Failover => return replication::failover::failover(worker, args),
        C::ModuleList => worker.reply.empty_array(),
        C::ModuleLoad | C::ModuleLoadex | C::ModuleUnload => {
            return Err(debug::not_allowed("MODULE", "enable-module-command"));
        }
        _ if spec.name.starts_with("acl|") => return acl::run(worker, session, spec.id, args),
        _ => return cluster::run(worker, session, spec, args),
    }
    Ok(Step::Done)
}

fn db_size(worker: &mut Worker, session: &Session) -> Result<Step, CmdError> {
    if let Some((keys, _)) = worker.shared.keyspace.counted(session.db)
        && !worker.shared.cluster.hides_slots()
    {
        worker.reply.int(i64::try_from(keys).unwrap_or(i64::MAX));
        return Ok(Step::Done);
    }
    // Databases beyond the first sixteen are not counted as they change, and slots of others are left out.
    let mut keys = 0;
    for slot in 0..worker.locks.keyspace().space().count() {
        let slot = Slot::new(slot);
        let is_ours = worker.locks.holds(slot);
        if !worker.locks.try_lock(slot) {
            return Ok(Step::Busy(slot));
        }
        if worker.locks.tenure(slot).is_visible() {
            keys += worker.locks.slot(slot).db(session.db).map_or(0, keyspace::slot::Db::len);
        }
        if !is_ours && worker.locks.held() == 1 {
            worker.locks.unlock_all();
        }
    }
    worker.reply.count(keys);
    Ok(Step::Done)
}

fn monitor(worker: &mut Worker, id: ConnId, session: &mut Session) -> Result<(), CmdError> {
    if session.state.has(State::IN_MULTI) {
        return Err(CmdError::new("ERR MONITOR isn't allowed for DENY BLOCKING client"));
    }
    // Redis: a second MONITOR is answered with nothing.
    if !session.state.has(State::MONITOR) {
        session.state.insert(State::MONITOR);
        worker.monitors.push(id);
        worker.shared.monitors.fetch_add(1, Ordering::SeqCst);
        worker.reply.ok();
    }
    Ok(())
}

fn shutdown(worker: &mut Worker, id: ConnId, session: &mut Session, args: Args<'_>) -> Result<Step, CmdError> {
    let (mut options, mut aborts) = (shutdown::Options::default(), false);
    for word in args.slice(1).iter() {
        match word {
            _ if options::is_word(word, "nosave") => options.saves_not = true,
            _ if options::is_word(word, "save") => options.saves = true,
            _ if options::is_word(word, "now") => options.now = true,
            _ if options::is_word(word, "force") => options.force = true,
            _ if options::is_word(word, "abort") => aborts = true,
            _ => return Err(commands::error::SYNTAX),
        }
    }
    if (aborts && args.len() > 2) || (options.saves && options.saves_not) {
        return Err(commands::error::SYNTAX);
    }
    if aborts {
        if !worker.shared.abort_shutdown() {
            return Err(CmdError::new("ERR No shutdown in progress."));
        }
        worker.reply.ok();
        return Ok(Step::Done);
    }
    if !options.saves_not
        && let Some(is_eval) = worker.shared.scripts.board.busy_holder(None)
    {
        return Err(crate::scripting::functions::busy_error(is_eval));
    }
    let asker = save::Asker::new(worker, id, session, CommandId::Shutdown, args);
    worker.shared.shut_down(options, Some(asker));
    Ok(Step::Parked)
}

/// WAITAOF numlocal numreplicas timeout: until what this client has written is on disk, here and on replicas.
fn wait_for_log(worker: &mut Worker, id: ConnId, session: &mut Session, args: Args<'_>) -> Result<Step, CmdError> {
    let out_of_range = CmdError::new("ERR value is out of range, must be between 0 and 1");
    let local = options::int(&args[1])
        .and_then(|local| if (0..=1).contains(&local) { Ok(local) } else { Err(out_of_range) })?;
    let replicas = options::int(&args[2])?;
    if replicas < 0 {
        return Err(commands::error::MUST_BE_POSITIVE);
    }
    let deadline_ms = client::timeout_ms(&args[3], worker.now_ms)?;
    let shared = worker.shared.clone();
    if shared.replication.is_replica() {
        worker.end_waiting_for_replicas(id, session);
        return Err(replication::wait::LOG_ON_REPLICA);
    }
    let aof = &shared.aof;
    if local > 0 && aof.state() == LogState::Off {
        return Err(CmdError::new("ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled."));
    }
    let offset = worker.written_by(session);
    let here = || i64::from(aof.state() == LogState::On && aof.durable() >= offset);
    let there = || shared.replication.count_acked(offset, true);
    let may_wait = !session.state.has(State::IN_MULTI) && !worker.locks.is_alone();
    if may_wait && (here() < local || there() < replicas) {
        let now_ms = worker.now_ms;
        let is_first = session.extra.as_ref().is_none_or(|extra| extra.wait_until_ms.is_none());
        let until_ms = *session.extra_mut().wait_until_ms.get_or_insert(deadline_ms.unwrap_or(i64::MAX));
        if now_ms < until_ms {
            if replicas > 0 && is_first {
                shared.ask_acknowledgements();
            }
            worker.wait_for_replicas(id, until_ms);
            // It may have come before the client was on the list.
            if here() < local || there() < replicas {
                return Ok(Step::Again);
            }
        }
    }
    worker.end_waiting_for_replicas(id, session);
    worker.reply.array(2);
    worker.reply.int(here());
    worker.reply.int(there());
    Ok(Step::Done)
}

// ---- LOLWUT ------------------------------------------------------------------------------------------------------

/// Largest picture, in columns and rows.
const PICTURE_MAX: (i64, i64) = (132, 48);

/// LOLWUT [VERSION n] [columns rows]: the Julia set of a constant that the clock draws.
fn lolwut(worker: &mut Worker, args: Args<'_>) -> Result<(), CmdError> {
    let mut rest = args.slice(1);
    if rest.len() >= 2 && options::is_word(&rest[0], "version") {
        options::int(&rest[1])?;
        rest = rest.slice(2);
    }
    let size = |index: usize, default: i64, most: i64| match rest.get(index) {
        Some(number) => options::int(number).map(|number| number.clamp(1, most)),
        None => Ok(default),
    };
    let (columns, rows) = (size(0, 66, PICTURE_MAX.0)?, size(1, 22, PICTURE_MAX.1)?);
    let mut picture = julia(columns, rows, worker.now_ms);
    picture.push_str(&format!(
        "\nRust never sleeps. Oxidis {}, Redis ver. {}\n",
        env!("CARGO_PKG_VERSION"),
        crate::process::REDIS_VERSION
    ));
    worker.reply.verbatim(picture, "txt");
    Ok(())
}

#[allow(clippy::cast_precision_loss)]
fn julia(columns: i64, rows: i64, now_ms: i64) -> String {
    const SHADES: &[u8] = b" .:-=+*#%@";
    let angle = (now_ms % 62_832) as f64 / 10_000.0;
    let (constant_re, constant_im) = (0.7885 * angle.cos(), 0.7885 * angle.sin());
    let mut picture = String::new();
    for row in 0..rows {
        for column in 0..columns {
            let mut re = (column as f64 / columns as f64 - 0.5) * 3.4;
            let mut im = (row as f64 / rows as f64 - 0.5) * 2.4;
            let mut steps = 0;
            while re * re + im * im < 4.0 && steps < SHADES.len() * 3 - 1 {
                (re, im) = (re * re - im * im + constant_re, 2.0 * re * im + constant_im);
                steps += 1;
            }
            picture.push(char::from(SHADES[steps / 3]));
        }
        picture.push('\n');
    }
    picture
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_have_their_size() {
        let picture = julia(10, 4, 1);
        assert_eq!(picture.lines().count(), 4);
        assert!(picture.lines().all(|line| line.len() == 10));
    }
}
