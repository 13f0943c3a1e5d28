//! Commands over the whole keyspace: SCAN, KEYS, DBSIZE, RANDOMKEY, FLUSHALL, FLUSHDB, SWAPDB.
//!
//! Those that change everything at one instant run behind the closed gate. Those that read walk slot by slot, one lock
//! at a time: KEYS on an offload thread when there is much to walk. Inside MULTI the gate is closed for all of them.

use super::Step;
use crate::cluster::admit::{Verdict, allowed};
use crate::offload::{Job, Work};
use crate::session::{Session, State};
use crate::worker::Worker;
use commands::table::CommandId;
use commands::{CmdError, options};
use keyspace::eviction::AccessClock;
use keyspace::journal::effects::Verbatim;
use keyspace::slot::Db;
use keyspace::{DbIndex, DbView, Events, LockSet, Slot};
use net::ConnId;
use resp::{Args, Reply};
use std::time::{Duration, Instant};
use topology::SlotSet;

/// Keys that KEYS walks on the worker; more go to an offload thread.
const INLINE_KEYS: u64 = 512;
/// Time for KEYS on the worker, and for one SCAN call, after which it goes elsewhere or returns with a cursor: whatever
/// the pattern, others wait no longer than this and one slot's part.
const INLINE_TIME: Duration = Duration::from_millis(2);
/// Entries that SCAN looks at between two looks at the time.
const SCAN_ENTRIES: usize = 256;
/// Slots that one SCAN call looks at before it returns, however few keys it found.
const SCAN_SLOTS: usize = 2048;
/// A database of so few keys is walked in one call as far as COUNT allows, however its keys are spread over the slots.
const SCAN_SMALL: u64 = 4096;
/// What a script is told that would empty slots while some are held.
const SLOTS_HELD: CmdError = CmdError::new("TRYAGAIN Slots are just moving to another server, try again");
/// Bits of a cursor that hold the slot.
const SLOT_BITS: u32 = 14;
/// Bits of a proxy's cursor that say which process gave it, and hexadecimal digits.
const TAG_BITS: u32 = 16;
const TAG_DIGITS: usize = 4;

/// Whether a command works on the whole keyspace.
pub(crate) fn handles(id: CommandId) -> bool {
    use CommandId as C;
    matches!(id, C::Scan | C::Keys | C::Randomkey | C::Flushall | C::Flushdb | C::Swapdb)
}

/// Whether a command changes the whole keyspace.
pub(crate) fn changes_all(id: CommandId) -> bool {
    matches!(id, CommandId::Flushall | CommandId::Flushdb | CommandId::Swapdb)
}

/// Runs one of them.
pub(crate) fn run(
    worker: &mut Worker,
    id: ConnId,
    session: &mut Session,
    command: CommandId,
    args: Args<'_>,
) -> Result<Step, CmdError> {
    match command {
        CommandId::Scan => scan(worker, id, session, args),
        CommandId::Keys => keys(worker, id, session, args),
        CommandId::Randomkey => random_key(worker, session),
        CommandId::Flushall => flush(worker, session.db, None, args),
        CommandId::Flushdb => flush(worker, session.db, Some(session.db), args),
        CommandId::Swapdb => swap(worker, session.db, args),
        _ => Ok(Step::Done),
    }
}

// ---- SCAN --------------------------------------------------------------------------------------------------------

/// Options of SCAN.
struct ScanOptions<'a> {
    pattern: Option<&'a [u8]>,
    count: usize,
    kind: Option<Vec<u8>>,
}

fn scan_options<'a>(args: Args<'a>) -> Result<ScanOptions<'a>, CmdError> {
    let mut options = ScanOptions { pattern: None, count: 10, kind: None };
    let mut index = 2;
    while let Some(word) = args.get(index) {
        let value = args.get(index + 1);
        match value {
            Some(value) if options::is_word(word, "count") => {
                let count = options::int(value)?;
                options.count =
                    usize::try_from(count).ok().filter(|count| *count > 0).ok_or(commands::error::SYNTAX)?;
            }
            // Redis: a lone star matches everything, the empty key too, which the matcher would not say.
            Some(value) if options::is_word(word, "match") => options.pattern = (value != b"*").then_some(value),
            Some(value) if options::is_word(word, "type") => options.kind = Some(value.to_ascii_lowercase()),
            _ => return Err(commands::error::SYNTAX),
        }
        index += 2;
    }
    Ok(options)
}

/// The number of this process in cursors: a place in a slot means something only to the process that gave it.
fn tag_of(run_id: &str) -> u64 {
    u64::from_str_radix(run_id.get(..TAG_DIGITS).unwrap_or_default(), 16).unwrap_or(0)
}

/// A cursor for a proxy. The place's last bits are mostly 0, so it is turned round: the number stays small.
fn proxy_cursor(tag: u64, slot: u64, inner: u64) -> u64 {
    if inner == 0 {
        return slot;
    }
    #[allow(clippy::cast_possible_truncation, reason = "places are below 2^32: keyspace::table")]
    let turned = u64::from((inner as u32).reverse_bits());
    turned << (SLOT_BITS + TAG_BITS) | tag << SLOT_BITS | slot
}

/// The place of such a cursor in its slot; 0, its begin, for one of another process.
fn place_of(tag: u64, cursor: u64) -> u64 {
    let is_own = cursor >> SLOT_BITS & ((1 << TAG_BITS) - 1) == tag;
    let turned = u32::try_from(cursor >> (SLOT_BITS + TAG_BITS)).unwrap_or(0);
    if is_own { u64::from(turned.reverse_bits()) } else { 0 }
}

fn scan(worker: &mut Worker, id: ConnId, session: &Session, args: Args<'_>) -> Result<Step, CmdError> {
    let cursor = commands::cursor(&args[1])?;
    let options = scan_options(args)?;
    let slots = worker.locks.keyspace().space().count();
    #[allow(clippy::cast_possible_truncation)]
    let mut slot = (cursor & ((1 << SLOT_BITS) - 1)) as usize;
    // A proxy goes on with the owner of the slot at which this server ends. Transactions and scripts walk what is here.
    let for_proxy = session.state.has(State::PROXY)
        && worker.shared.cluster.is_managed()
        && worker.locks.held() == 0
        && !worker.locks.is_alone();
    let tag = tag_of(&worker.shared.run_id);
    let mut inner = if for_proxy { place_of(tag, cursor) } else { cursor >> SLOT_BITS };
    let mut found: Vec<Vec<u8>> = Vec::new();
    let mut seen = 0;
    let mut visited = 0;
    let until = Instant::now() + INLINE_TIME;
    let small = worker.shared.keyspace.counted(session.db).is_some_and(|(keys, _)| keys <= SCAN_SMALL);
    let visits = if small { slots } else { SCAN_SLOTS.max(options.count.min(slots)) };
    while slot < slots && seen < options.count && visited < visits {
        let held_before = worker.locks.held();
        if !worker.locks.try_lock(Slot::new(slot)) {
            if visited == 0 {
                return Ok(Step::Busy(Slot::new(slot)));
            }
            break;
        }
        if for_proxy {
            let (slot, allowed) = ([Slot::new(slot)], allowed(session, false));
            if !matches!(worker.shared.judge(&worker.locks, &slot, allowed), Verdict::Runs) {
                // At the first the answer is that to a command on a key of it.
                let judged = if visited == 0 { worker.judge_slots(id, &slot, allowed) } else { Ok(None) };
                worker.locks.unlock_all();
                match judged? {
                    Some(step) => return Ok(step),
                    None => break,
                }
            }
        }
        let mut view = DbView::new(&mut worker.locks, &mut worker.events, session.db, worker.now_ms, worker.clock);
        let (next, looked) = scan_slot(
            &mut view,
            Slot::new(slot),
            inner,
            (options.count - seen).min(SCAN_ENTRIES),
            &options,
            &mut found,
        );
        if worker.locks.held() > held_before {
            worker.locks.unlock_all();
        }
        seen += looked;
        visited += 1;
        inner = next;
        if inner == 0 {
            slot += 1;
        }
        if looked > 0 && Instant::now() >= until {
            break;
        }
    }
    let next = match slot as u64 {
        _ if slot >= slots => 0,
        slot if for_proxy => proxy_cursor(tag, slot, inner),
        slot => inner << SLOT_BITS | slot,
    };
    worker.reply.array(2);
    worker.reply.bulk(next.to_string());
    worker.reply.array(found.len());
    for key in &found {
        worker.reply.bulk(key);
    }
    Ok(Step::Done)
}

fn scan_slot(
    view: &mut DbView<'_>,
    slot: Slot,
    cursor: u64,
    count: usize,
    options: &ScanOptions<'_>,
    found: &mut Vec<Vec<u8>>,
) -> (u64, usize) {
    let now_ms = view.now_ms();
    let mut looked = 0;
    let mut over: Vec<Vec<u8>> = Vec::new();
    let tenure = view.locks.tenure(slot);
    let next = match view.locks.slot(slot).db(view.index()) {
        Some(db) if !db.is_empty() && tenure.is_visible() => db.table().scan(cursor, count, |entry| {
            looked += 1;
            if options.pattern.is_some_and(|pattern| !keyspace::glob::matches(pattern, entry.key(), false)) {
                return;
            }
            if entry.expire_at_ms().is_some_and(|at_ms| at_ms <= now_ms) {
                over.push(entry.key().to_vec());
                return;
            }
            if options.kind.as_ref().is_some_and(|kind| kind != entry.value().type_name().as_bytes()) {
                return;
            }
            found.push(entry.key().to_vec());
        }),
        _ => 0,
    };
    for key in over.iter().filter(|_| tenure.may_shrink()) {
        // Met and over: removed, as any other look at it would.
        view.exists(key);
    }
    (next, looked)
}

// ---- KEYS --------------------------------------------------------------------------------------------------------

fn keys(worker: &mut Worker, id: ConnId, session: &mut Session, args: Args<'_>) -> Result<Step, CmdError> {
    let pattern = args.get(1).unwrap_or_default().to_vec();
    let db = session.db;
    let (clock, now_ms) = (worker.clock, worker.now_ms);
    let few = worker.shared.keyspace.counted(db).is_some_and(|(keys, _)| keys <= INLINE_KEYS);
    if few || worker.locks.is_alone() {
        let mut events = std::mem::take(&mut worker.events);
        let walked = walk_keys(&mut worker.locks, &mut worker.reply, &mut events, &pattern, db, clock, now_ms, false);
        worker.events = events;
        if walked {
            return Ok(Step::Done);
        }
    }
    let work = Work::Walk(Box::new(move |locks, reply| {
        let mut events = Events::default();
        walk_keys(locks, reply, &mut events, &pattern, db, clock, now_ms, true);
    }));
    session.state.insert(State::OFFLOADED);
    let job = Job {
        worker: worker.index,
        conn: id,
        id: CommandId::Keys,
        proto: session.proto,
        shown: crate::slowlog::kept_arguments(args),
        work,
    };
    worker.shared.offload.submit(&worker.shared, job);
    Ok(Step::Parked)
}

/// Writes all keys that match. False: a slot was busy or the time was over and the thread may not sleep; nothing is written.
#[allow(clippy::too_many_arguments)]
fn walk_keys(
    locks: &mut LockSet,
    reply: &mut Reply,
    events: &mut Events,
    pattern: &[u8],
    db: DbIndex,
    clock: AccessClock,
    now_ms: i64,
    may_sleep: bool,
) -> bool {
    let before = reply.len();
    let header = reply.defer();
    let mut count = 0;
    // Inside EXEC the whole server waits anyway, and nobody could take the work over.
    let is_alone = locks.is_alone();
    let until = Instant::now() + INLINE_TIME;
    let all = pattern == b"*";
    for slot in locks.keyspace().clone().slots() {
        let held_before = locks.held();
        if may_sleep {
            locks.lock_all(&[slot]);
        } else if !locks.try_lock(slot) {
            reply.truncate(before);
            return false;
        }
        let view = DbView::new(locks, events, db, now_ms, clock);
        let mut is_late = false;
        let is_visible = view.locks.tenure(slot).is_visible();
        if let Some(part) = view.locks.slot(slot).db(db).filter(|part| is_visible && !part.is_empty()) {
            for entry in part.table().iter() {
                let alive = entry.expire_at_ms().is_none_or(|at_ms| at_ms > now_ms);
                if alive && (all || keyspace::glob::matches(pattern, entry.key(), false)) {
                    reply.bulk(entry.key());
                    count += 1;
                }
            }
            is_late = !may_sleep && !is_alone && Instant::now() >= until;
        }
        if locks.held() > held_before {
            locks.unlock_all();
        }
        if is_late {
            reply.truncate(before);
            return false;
        }
    }
    reply.finish_array(header, count);
    true
}

// ---- RANDOMKEY ---------------------------------------------------------------------------------------------------

/// Random slots that are tried before all are walked.
const RANDOM_TRIES: usize = 256;

fn random_key(worker: &mut Worker, session: &Session) -> Result<Step, CmdError> {
    let slots = worker.locks.keyspace().space().count();
    let mut rng = fastrand::Rng::new();
    let start = rng.usize(..slots);
    for step in 0..RANDOM_TRIES + slots {
        let slot = if step < RANDOM_TRIES { Slot::new(rng.usize(..slots)) } else { Slot::new((start + step) % slots) };
        let held_before = worker.locks.held();
        if !worker.locks.try_lock(slot) {
            continue;
        }
        let view = DbView::new(&mut worker.locks, &mut worker.events, session.db, worker.now_ms, worker.clock);
        let part = view.locks.slot(slot).db(session.db).filter(|_| view.locks.tenure(slot).is_visible());
        let key = part.and_then(|db| {
            let live = |entry: &&keyspace::Entry| entry.expire_at_ms().is_none_or(|at_ms| at_ms > worker.now_ms);
            let drawn = db.table().random(&mut rng).filter(live);
            drawn.or_else(|| db.table().iter().find(live)).map(|entry| entry.key().to_vec())
        });
        if worker.locks.held() > held_before {
            worker.locks.unlock_all();
        }
        if let Some(key) = key {
            worker.reply.bulk(&key);
            return Ok(Step::Done);
        }
    }
    worker.reply.null();
    Ok(Step::Done)
}

// ---- FLUSHALL, FLUSHDB, SWAPDB -----------------------------------------------------------------------------------

fn flush(worker: &mut Worker, db: DbIndex, only: Option<DbIndex>, args: Args<'_>) -> Result<Step, CmdError> {
    // SYNC and ASYNC are the same here: the keys are gone at once, their memory goes in the background.
    let fine = match args.len() {
        1 => true,
        2 => options::is_word(&args[1], "sync") || options::is_word(&args[1], "async"),
        _ => false,
    };
    if !fine {
        return Err(commands::error::SYNTAX);
    }
    if worker.holds_any() {
        // It may be another server that is to empty the slots that are held. A script cannot wait for that.
        return if worker.locks.is_alone() { Err(SLOTS_HELD) } else { Ok(Step::Retry) };
    }
    let mut is_held = false;
    let emptied = do_alone(worker, db, args, |worker| {
        is_held = worker.holds_any();
        if is_held {
            worker.locks.effects.suppress();
        } else {
            empty(worker, only);
        }
    });
    if !emptied || is_held {
        return Ok(Step::Retry);
    }
    worker.reply.ok();
    Ok(Step::Done)
}

/// Runs `work` behind the closed gate and has it recorded there as the command's arguments, which say it all; inside a
/// transaction, which is behind the gate already, that is the transaction's part. False: the gate is busy.
fn do_alone(worker: &mut Worker, db: DbIndex, args: Args<'_>, work: impl FnOnce(&mut Worker)) -> bool {
    if worker.locks.is_alone() {
        work(worker);
        return true;
    }
    let ran = worker.alone(|worker| {
        work(worker);
        worker.locks.effects.command_ran(db, Verbatim::Args(args), true);
    });
    ran.is_some()
}

/// Takes all keys out, behind the closed gate; their memory is freed in the background.
fn empty(worker: &mut Worker, only: Option<DbIndex>) {
    let mut garbage: Vec<Db> = Vec::new();
    let mut gone = 0_u64;
    let mut spared: Vec<u16> = Vec::new();
    for slot in worker.shared.keyspace.slots() {
        if !worker.is_replaying && !worker.locks.tenure(slot).is_visible() {
            // Another server's: what is being taken over stays, and what has left goes by itself.
            if worker.locks.slot(slot).key_count() > 0 {
                spared.extend(u16::try_from(slot.index()));
            }
            continue;
        }
        worker.locks.note_streams_gone(slot, only, &mut worker.events);
        gone += worker.locks.empty_slot(slot, only, worker.now_ms, &mut garbage);
    }
    if !spared.is_empty() {
        // Recorded as what it came to, so that the log and replicas spare the same slots.
        let all: SlotSet =
            worker.locks.keyspace().slots().filter_map(|slot| u16::try_from(slot.index()).ok()).collect();
        let emptied = all.difference(&spared.into_iter().collect());
        worker.locks.effects.suppress();
        crate::cluster::discard::record_drop(&mut worker.locks, &emptied.to_string(), only);
    }
    worker.invalidate_all();
    worker.events.dirty += gone.max(1);
    if only.is_none() {
        worker.after_flush();
    }
    worker.shared.keyspace.reclaimer.free(garbage);
}

fn swap(worker: &mut Worker, db: DbIndex, args: Args<'_>) -> Result<Step, CmdError> {
    let databases = worker.shared.keyspace.databases();
    let number = |index: usize, error: &'static str| {
        let argument = args.get(index).unwrap_or_default();
        options::int32(argument).map_err(|_| CmdError::new(error))
    };
    let first = number(1, "ERR invalid first DB index")?;
    let second = number(2, "ERR invalid second DB index")?;
    let within = |number: i32| {
        u32::try_from(number)
            .ok()
            .filter(|number| *number < databases)
            .map(DbIndex)
            .ok_or(commands::error::DB_OUT_OF_RANGE)
    };
    let (first, second) = (within(first)?, within(second)?);
    // Redis records it even if it changes nothing.
    let swapped = do_alone(worker, db, args, |worker| {
        if first != second {
            swap_all(worker, first, second);
        }
    });
    if !swapped {
        return Ok(Step::Retry);
    }
    worker.events.dirty += 1;
    worker.reply.ok();
    Ok(Step::Done)
}

fn swap_all(worker: &mut Worker, first: DbIndex, second: DbIndex) {
    for slot in worker.shared.keyspace.slots() {
        worker.locks.swap_slot_dbs(slot, first, second, worker.now_ms, &mut worker.events);
    }
    worker.shared.keyspace.snapshots.note_swap(first, second);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxys_cursor_is_read_back_by_its_own_process() {
        assert_eq!(proxy_cursor(0xABCD, 77, 0), 77);
        for inner in [1 << 31, 3 << 16, 1, 0xFFFF_FFFF] {
            let cursor = proxy_cursor(0xABCD, 16383, inner);
            assert_eq!(cursor & 0x3FFF, 16383);
            assert_eq!(place_of(0xABCD, cursor), inner);
            assert_eq!(place_of(0xABCE, cursor), 0);
        }
        // Places of a table of a million keys.
        assert!(proxy_cursor(0xFFFF, 16383, 0xFFFF_F000) < 1 << 53);
        for odd in [u64::MAX, 1 << 63, 0] {
            place_of(0, odd);
        }
        assert_eq!((tag_of("0a1bffff"), tag_of("")), (0x0A1B, 0));
    }
}
