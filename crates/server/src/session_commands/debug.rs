//! DEBUG, as test suites need it.

use crate::durability::load;
use crate::exec::Step;
use crate::offload::{Job, Work};
use crate::process::log::Level;
use crate::session::{Session, State};
use crate::shared::Shared;
use crate::slowlog::kept_arguments;
use crate::worker::{Finished, Message, Worker};
use commands::keys::debug;
use commands::keys::digest::Digest;
use commands::{CmdError, CmdResult, CommandId, Ctx, options};
use keyspace::{DbIndex, Events, Slot};
use net::ConnId;
use resp::{Args, Reply};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Highest DEBUG QUICKLIST-PACKED-THRESHOLD.
const PACKED_THRESHOLD_MAX: u64 = (1 << 32) - (1 << 20);
/// Longest DEBUG SLEEP.
const SLEEP_MAX: Duration = Duration::from_secs(3600);

/// The answer to a command that the configuration does not allow.
pub(crate) fn not_allowed(command: &str, directive: &str) -> CmdError {
    CmdError::text(format!(
        "ERR {command} command not allowed. If the {directive} option is set to \"local\", you can run it from a local connection, otherwise you need to set this option in the configuration file, and then restart the server."
    ))
}

/// Runs DEBUG.
pub(crate) fn run(worker: &mut Worker, id: ConnId, session: &mut Session, args: Args<'_>) -> Result<Step, CmdError> {
    if !worker.config.enable_debug_command.allows(session.is_local()) {
        return Err(not_allowed("DEBUG", "enable-debug-command"));
    }
    let word = args[1].to_ascii_lowercase();
    let last = args.get(2).unwrap_or_default();
    match (word.as_slice(), args.len()) {
        (b"help", 2) => {
            commands::table::help::write(CommandId::Debug, &args, &mut worker.reply);
        }
        (b"sleep", 3) => return sleep(worker, id, session, args),
        (b"set-active-expire", 3) => {
            worker.shared.active_expire.store(number_at_start(last) != 0, Ordering::Relaxed);
            worker.reply.ok();
        }
        (b"quicklist-packed-threshold", 3) => set_packed_threshold(worker, last)?,
        (b"protocol", 3) => protocol(&mut worker.reply, last)?,
        (b"error", 3) => worker.reply.error(last),
        (b"log", 3) => {
            crate::log!(Level::Warning, "DEBUG LOG: {}", String::from_utf8_lossy(last));
            worker.reply.ok();
        }
        (b"change-repl-id", 2) => {
            crate::log!(Level::Notice, "Changing replication IDs after receiving DEBUG change-repl-id");
            worker.shared.replication.change_id();
            worker.reply.ok();
        }
        (b"stringmatch-test", 2) => worker.reply.simple("Apparently Redis did not crash: test passed"),
        (b"jmap", 2) => return Err(CmdError::new("ERR there is no Java heap in this server")),
        (b"htstats", 3 | 4) => table_stats(worker, last)?,
        (b"structsize", 2) => {
            let sizes = format!(
                "bits:{} entry:{} session:{} slot:{} ",
                usize::BITS,
                size_of::<keyspace::Entry>(),
                size_of::<Session>(),
                size_of::<keyspace::slot::SlotData>()
            );
            worker.reply.bulk(sizes);
        }
        (b"populate", 3..=5) => return populate(worker, session, args),
        (b"object", 3) => return on_keys(worker, session, args.slice(2), |ctx| debug::object(ctx, last)),
        (b"digest-value", _) => {
            return on_keys(worker, session, args.slice(2), |ctx| {
                debug::digest_value(ctx, args.slice(2));
                Ok(())
            });
        }
        (b"listpack", 3) => {
            return on_keys(worker, session, args.slice(2), |ctx| debug::listpack(ctx, last).map(|text| print(&text)));
        }
        (b"htstats-key", 3 | 4) => {
            return on_keys(worker, session, Args::from_slices(&[last]), |ctx| debug::table_stats(ctx, last));
        }
        (b"digest", 2) => return digest(worker, id, session, args),
        // What these turn on or off is not there, so either state is the one asked for.
        (
            b"set-disable-deny-scripts"
            | b"set-skip-checksum-validation"
            | b"pause-cron"
            | b"drop-cluster-packet-filter",
            3,
        )
        | (b"replicate", 3..)
        | (b"replybuffer", 4)
        | (b"leak", 3) => worker.reply.ok(),
        (b"client-eviction", 2) => return Err(CmdError::new("ERR maxmemory-clients is disabled.")),
        (b"reload", _) => return load::reload(worker, id, session, args),
        (b"loadaof", _) => return load::reload_log(worker, id, session, args),
        (b"aof-flush-sleep", 3) => {
            let microseconds = u64::try_from(number_at_start(last)).unwrap_or(0);
            worker.shared.aof.flush_sleep_us.store(microseconds, Ordering::Relaxed);
            worker.reply.ok();
        }
        (b"segfault" | b"panic" | b"assert" | b"oom" | b"restart" | b"crash-and-recover", _) => {
            return Err(CmdError::new("ERR this server does not come down on request: use SHUTDOWN, or a signal"));
        }
        _ => {
            let text = commands::table::errors::subcommand_syntax(&args);
            return Err(CmdError::text(String::from_utf8_lossy(&text).into_owned()));
        }
    }
    Ok(Step::Done)
}

/// The number that a text starts with, 0 if there is none, as C's `atoi` has it.
fn number_at_start(text: &[u8]) -> i64 {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    text.get(..digits).and_then(resp::num::parse_i64).unwrap_or(0)
}

// ---- SLEEP -------------------------------------------------------------------------------------------------------

/// Redis: the whole server stands still. Here a thread of its own closes the gate for the time, so that no worker runs
/// a command meanwhile, and the worker of the client that asked is not the one that sleeps.
fn sleep(worker: &mut Worker, id: ConnId, session: &mut Session, args: Args<'_>) -> Result<Step, CmdError> {
    let seconds = resp::num::parse_f64(&args[2]).unwrap_or(0.0).clamp(0.0, SLEEP_MAX.as_secs_f64());
    let time = Duration::from_secs_f64(seconds);
    if session.state.has(State::IN_MULTI) {
        std::thread::sleep(time);
        worker.reply.ok();
        return Ok(Step::Done);
    }
    let shared = worker.shared.clone();
    let (index, proto, shown) = (worker.index, session.proto, kept_arguments(args));
    let spawned = std::thread::Builder::new().name("debug-sleep".to_owned()).spawn(move || {
        let started = crate::ticks::now();
        freeze(&shared, time);
        let mut reply = Reply::with_buffer(Vec::new(), proto);
        reply.ok();
        let ticks = crate::ticks::now().wrapping_sub(started);
        let finished = Finished {
            conn: id,
            id: CommandId::Debug,
            shown,
            reply: reply.take(),
            events: Events::default(),
            ticks,
            parts: Vec::new(),
            upto: 0,
        };
        shared.post(index, Message::Finished(finished));
    });
    if spawned.is_err() {
        return Err(CmdError::new("ERR there is no thread to sleep on"));
    }
    session.state.insert(State::OFFLOADED);
    Ok(Step::Parked)
}

fn freeze(shared: &Arc<Shared>, time: Duration) {
    let gate = &shared.keyspace.gate;
    while !gate.try_close() {
        std::thread::sleep(Duration::from_micros(100));
    }
    std::thread::sleep(time);
    gate.open();
}

// ---- keys --------------------------------------------------------------------------------------------------------

/// Runs `work` with the slots of `keys` held.
fn on_keys(
    worker: &mut Worker,
    session: &Session,
    keys: Args<'_>,
    work: impl FnOnce(&mut Ctx<'_>) -> CmdResult,
) -> Result<Step, CmdError> {
    let mut slots: Vec<Slot> = keys.iter().map(|key| worker.locks.keyspace().slot(key)).collect();
    slots.sort_unstable();
    slots.dedup();
    let is_first = worker.locks.held() == 0;
    if let Err(busy) = worker.locks.try_lock_all(&slots) {
        return Ok(Step::Busy(busy));
    }
    let done = worker.with_ctx(session, false, work);
    // Within a transaction its end gives all slots back.
    if is_first {
        worker.locks.unlock_all();
    }
    done.map(|()| Step::Done)
}

fn print(text: &str) {
    use std::io::Write as _;
    // Nobody may be reading.
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}

/// DEBUG DIGEST, on an offload thread, slot by slot: it is the digest of one moment if nobody writes meanwhile.
fn digest(worker: &mut Worker, id: ConnId, session: &mut Session, args: Args<'_>) -> Result<Step, CmdError> {
    if session.state.has(State::IN_MULTI) {
        return Err(CmdError::new("ERR DEBUG DIGEST is not for transactions"));
    }
    let work = Work::Walk(Box::new(|locks, reply| {
        let mut digest = Digest::default();
        let keyspace = locks.keyspace().clone();
        for db in 0..keyspace.databases() {
            let mut is_begun = false;
            for slot in keyspace.slots() {
                locks.lock_all(&[slot]);
                let part = locks.slot(slot).db(DbIndex(db)).filter(|_| locks.tenure(slot).is_visible());
                for entry in part.iter().flat_map(|db| db.table().iter()) {
                    if !std::mem::replace(&mut is_begun, true) {
                        digest.mix_db(db);
                    }
                    digest.xor_key(entry);
                }
                locks.unlock_all();
            }
        }
        reply.simple(digest.to_hex());
    }));
    session.state.insert(State::OFFLOADED);
    let job = Job {
        worker: worker.index,
        conn: id,
        id: CommandId::Debug,
        proto: session.proto,
        shown: kept_arguments(args),
        work,
    };
    worker.shared.offload.submit(&worker.shared, job);
    Ok(Step::Parked)
}

// ---- the others --------------------------------------------------------------------------------------------------

fn set_packed_threshold(worker: &mut Worker, size: &[u8]) -> Result<(), CmdError> {
    let refusal = CmdError::new("ERR argument must be a memory value bigger than 1 and smaller than 4gb");
    let size = crate::config::parse_memory(size).filter(|size| *size <= PACKED_THRESHOLD_MAX).ok_or(refusal)?;
    // Redis: 0 stands for its default, 1 GiB.
    let size = if size == 0 { 1 << 30 } else { usize::try_from(size).unwrap_or(usize::MAX) };
    worker.shared.quicklist_packed_threshold.store(size, Ordering::Relaxed);
    // A new version of the configuration makes every worker read the threshold.
    worker.shared.config.update(|_| {});
    worker.adopt_config();
    worker.reply.ok();
    Ok(())
}

fn protocol(reply: &mut Reply, kind: &[u8]) -> Result<(), CmdError> {
    match kind.to_ascii_lowercase().as_slice() {
        b"string" => reply.bulk("Hello World"),
        b"integer" => reply.int(12345),
        b"double" => reply.double_text("3.141"),
        b"bignum" => reply.big_number("1234567999999999999999999999999999999"),
        b"null" => reply.null(),
        b"array" => {
            reply.array(3);
            (0..3).for_each(|number| reply.int(number));
        }
        b"set" => {
            reply.set(3);
            (0..3).for_each(|number| reply.int(number));
        }
        b"map" => {
            reply.map(3);
            for number in 0..3 {
                reply.int(number);
                reply.bool(number == 1);
            }
        }
        b"attrib" => {
            if reply.attribute(1) {
                reply.bulk("key-popularity");
                reply.array(2);
                reply.bulk("key:123");
                reply.int(90);
            }
            reply.bulk("Some real reply following the attribute");
        }
        b"push" => {
            if !reply.is_resp3() {
                return Err(CmdError::new("ERR RESP2 is not supported by this command"));
            }
            reply.push(2);
            reply.bulk("server-cpu-usage");
            reply.int(42);
            reply.bulk("Some real reply following the push reply");
        }
        b"true" => reply.bool(true),
        b"false" => reply.bool(false),
        b"verbatim" => reply.verbatim("This is a verbatim\nstring", "txt"),
        _ => {
            return Err(CmdError::new(
                "ERR Wrong protocol type name. Please use one of the following: string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false",
            ));
        }
    }
    Ok(())
}

/// Figures of the tables of one database, from the workers' rounds.
fn table_stats(worker: &mut Worker, db: &[u8]) -> Result<(), CmdError> {
    let db = options::int(db)?;
    let db = u32::try_from(db)
        .ok()
        .filter(|db| *db < worker.shared.keyspace.databases())
        .ok_or(CmdError::new("ERR Out of range database"))?;
    let survey = worker.shared.survey();
    let (keys, expiring) = worker.shared.key_counts(db, &survey);
    let bytes = survey.get(db as usize).map_or(0, |found| found.table_bytes);
    let text = format!(
        "[Dictionary HT]\nHash table 0 stats (main hash table):\n number of elements: {keys}\n bytes: {bytes}\n[Expires HT]\nHash table 0 stats (main hash table):\n number of elements: {expiring}\n"
    );
    worker.reply.verbatim(text, "txt");
    Ok(())
}

/// DEBUG POPULATE count [prefix] [size]: makes keys that are not there yet.
fn populate(worker: &mut Worker, session: &Session, args: Args<'_>) -> Result<Step, CmdError> {
    let count = options::non_negative(&args[2])? as u64;
    let prefix = args.get(3).unwrap_or(b"key");
    let size = args.get(4).map_or(Ok(0), options::non_negative)?;
    if size > worker.settings.max_bulk {
        return Err(CmdError::new("ERR string exceeds maximum allowed size (proto-max-bulk-len)"));
    }
    if worker.locks.is_alone() || session.state.has(State::IN_MULTI) {
        return Err(CmdError::new("ERR DEBUG POPULATE is not for transactions"));
    }
    if worker.alone(|worker| make_keys(worker, session, prefix, count, size)).is_none() {
        return Ok(Step::Retry);
    }
    worker.reply.ok();
    Ok(Step::Done)
}

fn make_keys(worker: &mut Worker, session: &Session, prefix: &[u8], count: u64, size: usize) {
    let mut key = Vec::new();
    for number in 0..count {
        key.clear();
        key.extend_from_slice(prefix);
        key.extend_from_slice(format!(":{number}").as_bytes());
        let mut value = format!("value:{number}").into_bytes();
        if size > 0 {
            value.resize(size, 0);
        }
        let mut view =
            keyspace::DbView::new(&mut worker.locks, &mut worker.events, session.db, worker.now_ms, worker.clock);
        if !view.exists(&key) {
            view.insert(&key, keyspace::Value::from_bytes(&value), None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_at_the_start_are_read_as_c_does() {
        assert_eq!(number_at_start(b"1"), 1);
        assert_eq!(number_at_start(b"0x"), 0);
        assert_eq!(number_at_start(b"yes"), 0);
    }

    #[test]
    fn protocol_samples_have_their_types() {
        let sample = |kind: &str, proto| {
            let mut reply = Reply::with_buffer(Vec::new(), proto);
            protocol(&mut reply, kind.as_bytes()).map(|()| String::from_utf8_lossy(reply.as_slice()).into_owned())
        };
        assert_eq!(sample("map", resp::Proto::Resp2).as_deref(), Ok("*6\r\n:0\r\n:0\r\n:1\r\n:1\r\n:2\r\n:0\r\n"));
        assert_eq!(sample("Map", resp::Proto::Resp3).as_deref(), Ok("%3\r\n:0\r\n#f\r\n:1\r\n#t\r\n:2\r\n#f\r\n"));
        assert!(sample("push", resp::Proto::Resp2).is_err());
        assert!(sample("what", resp::Proto::Resp3).is_err());
    }
}
