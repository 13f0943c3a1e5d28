//! A move's source: copies slots, follows their changes, holds them for the cut-over.
//!
//! One thread a move. While it copies it goes on reading the journal, so that what is kept for it stays small however long
//! the copy takes; the changes of slots that are copied go along with the copies of the others. The target acknowledges
//! each portion before the next is sent.
//!
//! ```text
//!  copying ──all slots sent──▶ following ──FREEZE: hold, drain, confirm──▶ frozen ──FINISH──▶ finished
//!     │                            ▲  └──────── could not: let go ─────┘      └─CANCEL─▶ cancelled
//!     └── anything in the way ─▶ failed (the manager starts it anew)
//! ```

use super::control::Control;
use super::copy::Stream;
use super::filter::Filter;
use super::store::Leaving;
use super::wire::{Fault, Wire, text_of};
use super::{discard, slots_of};
use crate::durability::claim::record_form;
use crate::durability::save::Asker;
use crate::log;
use crate::process::log::Level;
use crate::process::now_ms;
use crate::shared::Shared;
use keyspace::journal::Reader;
use keyspace::slot::Tenure;
use keyspace::snapshot::record::AccessForm;
use keyspace::{LockSet, Slot};
use parking_lot::{Condvar, Mutex};
use rdb::crc64::crc64_update;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use topology::wire::{CopyState, CopyStatus};
use topology::{Role, SlotSet};

/// Bytes of changes that may wait before the move fails.
const LAG_MAX: u64 = 256 << 20;
/// Bytes sent at once.
const PORTION_BYTES: usize = 512 << 10;
/// Bytes read from the journal at once.
const READ_BYTES: usize = 1 << 20;
/// How long the target may take to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// How long a quiet thread sleeps, and how often it says that it is there.
const QUIET: Duration = Duration::from_millis(500);
/// Bytes of changes at which slots are held: what is sent while they are.
const LAG_AT_HOLD: u64 = 16 << 10;
/// Rounds of catching up before slots are held all the same.
const ROUNDS_BEFORE_HOLD: u32 = 50;
/// Keys from which on a slot is copied as a long command is run.
const LARGE_SLOT: usize = 512;
/// How much longer than usual, in microseconds, a turn of the workers may take before the copy gives way.
const TURN_GROWTH_US: f64 = 1_000.0;
/// How seldom the workers' turns are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Moves that are remembered after their end.
const REMEMBERED: usize = 64;

/// A move of slots away from here.
pub(crate) struct Outgoing {
    pub(crate) id: u64,
    pub(crate) slots: SlotSet,
    /// `host:port`.
    pub(crate) target: String,
    steering: Mutex<Steering>,
    wake: Condvar,
    /// Bytes a second; 0: no limit.
    rate: AtomicU64,
    keys: AtomicU64,
    bytes: AtomicU64,
    total_keys: AtomicU64,
    lag_bytes: AtomicU64,
    started_ms: i64,
}

struct Steering {
    state: CopyState,
    is_paused: bool,
    error: String,
    freeze: Option<Freeze>,
    /// Something has happened that the thread is to look at.
    is_called: bool,
    held_since: Option<Instant>,
}

struct Freeze {
    epoch: u64,
    until: Instant,
    timeout_ms: u64,
    asker: Asker,
}

/// Begins a move, in place of one of the same number.
///
/// # Errors
/// Why it cannot be.
pub(crate) fn start(control: &mut Control, id: u64, target: String, slots: SlotSet, rate: u64) -> Result<(), String> {
    let shared = control.shared.clone();
    let map = shared.cluster.map().ok_or("this server has no view of the cluster yet: try again when it has")?;
    if !matches!(map.home, Some((_, Role::Primary))) || shared.replication.is_replica() {
        return Err("slots move from the primary of a group: begin the move with it".to_owned());
    }
    if control.holds.iter().any(|hold| hold.id == id) {
        return Err(format!(
            "the slots of move {id} are held for its cut-over: wait for what is decided, or cancel it"
        ));
    }
    if let Some(other) = shared.cluster.outgoing_of(id) {
        other.give_up("it was started anew");
    }
    let is_served = |slot: &u16| control.tenure_of(Slot::new(usize::from(*slot))) == Tenure::SERVED;
    if let Some(slot) = slots.iter().find(|slot| !is_served(slot)) {
        return Err(format!("slot {slot} is not served by this server"));
    }
    control.begin_leaving(Leaving { id, slots: slots.clone(), target: target.clone() })?;
    let outgoing = Arc::new(Outgoing {
        id,
        slots,
        target,
        steering: Mutex::new(Steering {
            state: CopyState::Copying,
            is_paused: false,
            error: String::new(),
            freeze: None,
            is_called: false,
            held_since: None,
        }),
        wake: Condvar::new(),
        rate: AtomicU64::new(rate),
        keys: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
        total_keys: AtomicU64::new(0),
        lag_bytes: AtomicU64::new(0),
        started_ms: now_ms(),
    });
    {
        let mut all = shared.cluster.outgoing.lock();
        all.retain(|other| other.id != id);
        if all.len() >= REMEMBERED
            && let Some(at) = all.iter().position(|other| other.is_over())
        {
            all.remove(at);
        }
        all.push(outgoing.clone());
    }
    let of_thread = outgoing.clone();
    let spawned = std::thread::Builder::new().name(format!("move-{id}")).spawn(move || {
        log!(Level::Notice, "Move {id}: copying slots {} to {}", of_thread.slots, of_thread.target);
        let ended = Mover::begin(&shared, &of_thread).and_then(|mut mover| mover.run().map_err(Failed::text));
        if let Err(error) = ended {
            of_thread.fail(&error);
            let of_control = of_thread.clone();
            shared.control(move |control| control.release_of(&of_control));
        }
        // Who asked in the last moment is not to wait for ever.
        let freeze = of_thread.steering.lock().freeze.take();
        if let Some(freeze) = freeze {
            freeze.asker.answer(&shared, |reply| reply.error(format!("ERR move {id} has ended: start it anew")));
        }
    });
    spawned.map(drop).map_err(|error| {
        outgoing.fail("there is no thread for it");
        format!("there is no thread to copy on: {error}")
    })
}

impl Outgoing {
    /// How far it is.
    pub(crate) fn status(&self) -> CopyStatus {
        let steering = self.steering.lock();
        let rests = steering.is_paused && matches!(steering.state, CopyState::Copying | CopyState::Following);
        CopyStatus {
            id: self.id,
            state: if rests { CopyState::Paused } else { steering.state },
            keys: self.keys.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            total_keys: self.total_keys.load(Ordering::Relaxed),
            lag_bytes: self.lag_bytes.load(Ordering::Relaxed),
            rate: self.rate.load(Ordering::Relaxed),
            started_ms: u64::try_from(self.started_ms).unwrap_or(0),
            error: steering.error.clone(),
        }
    }

    /// Whether it has ended, one way or another.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.steering.lock().state, CopyState::Finished | CopyState::Cancelled | CopyState::Failed)
    }

    /// Limits it to so many bytes a second; 0: no limit.
    pub(crate) fn set_rate(&self, rate: u64) {
        self.rate.store(rate, Ordering::Relaxed);
        self.call(|_| {});
    }

    /// Has it rest, or go on.
    pub(crate) fn pause(&self, pauses: bool) {
        self.call(|steering| steering.is_paused = pauses);
    }

    /// Holds the slots and has the target confirm; the asker is told.
    pub(crate) fn freeze(&self, shared: &Arc<Shared>, epoch: u64, timeout_ms: u64, asker: Asker) {
        let until = Instant::now() + Duration::from_millis(timeout_ms);
        let freeze = Freeze { epoch, until, timeout_ms, asker };
        let refused = {
            let mut steering = self.steering.lock();
            match steering.state {
                // Also said before: the manager may not have heard the answer.
                CopyState::Following | CopyState::Frozen if steering.freeze.is_none() && !steering.is_paused => {
                    steering.freeze = Some(freeze);
                    steering.is_called = true;
                    None
                }
                state => Some((freeze, state)),
            }
        };
        self.wake.notify_all();
        let Some((freeze, state)) = refused else { return };
        freeze.asker.answer(shared, |reply| {
            reply.error(format!(
                "ERR move {} is {state:?}, not following: see OXIDIS MOVE STATUS, then start it anew or wait",
                self.id
            ));
        });
    }

    /// Its slots are held until something is decided. For the control thread.
    pub(crate) fn promised(&self) {
        self.call(|steering| steering.state = CopyState::Frozen);
    }

    /// The slots are served as before, and their changes followed. For the control thread.
    pub(crate) fn thaw(&self) {
        self.call(|steering| {
            if steering.state == CopyState::Frozen {
                steering.state = CopyState::Following;
            }
        });
    }

    /// Ends it for good: the target owns the slots.
    pub(crate) fn finish(&self) {
        self.end(CopyState::Finished, "");
    }

    /// Ends it: the slots stay here.
    pub(crate) fn cancel(&self) {
        self.end(CopyState::Cancelled, "");
    }

    /// Ends it: it cannot go on.
    pub(crate) fn give_up(&self, why: &str) {
        self.end(CopyState::Failed, why);
    }

    fn fail(&self, why: &str) {
        if !self.is_over() {
            log!(Level::Warning, "Move {} failed: {why}", self.id);
        }
        self.give_up(why);
    }

    fn end(&self, state: CopyState, why: &str) {
        self.call(|steering| {
            if !matches!(steering.state, CopyState::Finished | CopyState::Cancelled | CopyState::Failed) {
                steering.state = state;
                why.clone_into(&mut steering.error);
            }
        });
    }

    fn call(&self, change: impl FnOnce(&mut Steering)) {
        let mut steering = self.steering.lock();
        change(&mut steering);
        steering.is_called = true;
        drop(steering);
        self.wake.notify_all();
    }

    /// Sleeps until something happens, or for a time.
    fn rest(&self, time: Duration) {
        let mut steering = self.steering.lock();
        if !steering.is_called {
            self.wake.wait_for(&mut steering, time);
        }
        steering.is_called = false;
    }

    /// Ends the time for which commands were held.
    pub(crate) fn note_held(&self, shared: &Shared) {
        let Some(since) = self.steering.lock().held_since.take() else { return };
        let microseconds = u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX);
        let figures = &shared.cluster.held;
        figures.cutovers.fetch_add(1, Ordering::Relaxed);
        figures.total_us.fetch_add(microseconds, Ordering::Relaxed);
        figures.longest_us.fetch_max(microseconds, Ordering::Relaxed);
        log!(Level::Notice, "Move {}: slots were held for {} microseconds", self.id, microseconds);
    }
}

/// The thread's part.
struct Mover<'m> {
    shared: &'m Arc<Shared>,
    outgoing: &'m Arc<Outgoing>,
    wire: Wire,
    locks: LockSet,
    reader: Reader,
    filter: Filter,
    out: Stream,
    /// Bytes and checksum of all that was sent.
    sent: u64,
    checksum: u64,
    /// The epoch for which slots are held and the target has confirmed that it has all.
    confirmed: u64,
    said: Instant,
    pace: Pace,
}

impl<'m> Mover<'m> {
    fn begin(shared: &'m Arc<Shared>, outgoing: &'m Arc<Outgoing>) -> Result<Mover<'m>, String> {
        let config = shared.config.snapshot();
        let mut wire = Wire::connect(shared, &config, &outgoing.target)?;
        let (number, ranges) = (outgoing.id.to_string(), outgoing.slots.to_string());
        let words: [&[u8]; 5] = [b"OXIDIS", b"IMPORT", b"BEGIN", number.as_bytes(), ranges.as_bytes()];
        let reply = wire.ask(&words, Instant::now() + ANSWER_WITHIN, || !outgoing.is_over()).map_err(Fault::text)?;
        if reply.is_error() {
            return Err(format!("the target refuses: {}", text_of(&reply)));
        }
        let mut locks = LockSet::new(shared.keyspace.clone());
        let reader = locks.alone(|locks| shared.keyspace.journal.read_from_here(locks, LAG_MAX));
        let of_waker = Arc::downgrade(outgoing);
        reader.set_waker(Arc::new(move || {
            if let Some(outgoing) = of_waker.upgrade() {
                outgoing.call(|_| {});
            }
        }));
        let space = shared.keyspace.space();
        let filter = Filter::new(Some(shared.clone()), space, outgoing.slots.clone(), reader.position());
        Ok(Mover {
            shared,
            outgoing,
            wire,
            locks,
            reader,
            filter,
            out: Stream::default(),
            sent: 0,
            checksum: 0,
            confirmed: 0,
            said: Instant::now(),
            pace: Pace::new(shared),
        })
    }

    fn run(&mut self) -> Result<(), Failed> {
        self.count_keys();
        let access = record_form(&self.shared.config.snapshot()).access;
        for slot in slots_of(&self.outgoing.slots.clone()) {
            while self.outgoing.steering.lock().is_paused {
                if self.outgoing.is_over() {
                    return self.end();
                }
                self.follow_once()?;
                self.outgoing.rest(QUIET);
            }
            if self.outgoing.is_over() {
                return self.end();
            }
            self.copy(slot, &access);
            self.pump()?;
            if self.out.bytes.len() >= PORTION_BYTES {
                let before = self.sent;
                self.send(Instant::now() + ANSWER_WITHIN)?;
                self.pace.give_way(self.shared, self.outgoing, self.sent - before);
            }
        }
        self.pump()?;
        self.send(Instant::now() + ANSWER_WITHIN)?;
        {
            let mut steering = self.outgoing.steering.lock();
            if steering.state == CopyState::Copying {
                steering.state = CopyState::Following;
            }
        }
        log!(
            Level::Notice,
            "Move {}: copied {} keys, following",
            self.outgoing.id,
            self.outgoing.keys.load(Ordering::Relaxed)
        );
        self.follow()
    }

    fn count_keys(&mut self) {
        let mut total = 0;
        for slot in slots_of(&self.outgoing.slots) {
            discard::lock(&mut self.locks, slot);
            total += self.locks.slot(slot).key_count() as u64;
            self.locks.unlock_all();
            self.locks.leave();
        }
        self.outgoing.total_keys.store(total, Ordering::Relaxed);
    }

    fn copy(&mut self, slot: Slot, access: &AccessForm) {
        discard::lock(&mut self.locks, slot);
        if self.locks.slot(slot).key_count() > LARGE_SLOT {
            // Others may want the gate meanwhile; if somebody does just now, the copy goes first.
            self.locks.go_long();
        }
        let keys = self.out.copy(&self.locks, slot, access);
        self.filter.copied(slot, self.shared.keyspace.journal.end());
        self.locks.end_long();
        self.locks.unlock_all();
        self.locks.leave();
        self.outgoing.keys.fetch_add(keys, Ordering::Relaxed);
    }

    /// Takes over what the journal has.
    fn pump(&mut self) -> Result<(), Failed> {
        loop {
            let read = self.reader.read(self.filter.room(), READ_BYTES);
            let lost = |_| Failed::Over("the changes came faster than the target took them".to_owned());
            let read = read.map_err(lost)?;
            self.filter.pass(&mut self.out).map_err(|untold| Failed::Over(untold.to_string()))?;
            if read < READ_BYTES {
                return Ok(());
            }
            if self.out.bytes.len() >= PORTION_BYTES {
                self.send(Instant::now() + ANSWER_WITHIN)?;
            }
        }
    }

    /// Sends what is there and has it acknowledged.
    fn send(&mut self, until: Instant) -> Result<(), Failed> {
        let bytes = std::mem::take(&mut self.out.bytes);
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let (portion, later) = rest.split_at(rest.len().min(PORTION_BYTES));
            rest = later;
            if let Err(failed) = self.apply(portion, until) {
                // What is late has been sent; the rest has not.
                self.out.bytes = rest.to_vec();
                return Err(failed);
            }
        }
        self.outgoing.lag_bytes.store(self.reader.behind(), Ordering::Relaxed);
        Ok(())
    }

    fn apply(&mut self, portion: &[u8], until: Instant) -> Result<(), Failed> {
        let number = self.outgoing.id.to_string();
        let words: [&[u8]; 5] = [b"OXIDIS", b"IMPORT", b"APPLY", number.as_bytes(), portion];
        let reply = self.wire.ask(&words, until, || !self.outgoing.is_over());
        self.sent += portion.len() as u64;
        self.checksum = crc64_update(self.checksum, portion);
        self.outgoing.bytes.store(self.sent, Ordering::Relaxed);
        self.said = Instant::now();
        let reply = reply.map_err(Failed::of)?;
        if reply.is_error() {
            return Err(Failed::Over(format!("the target could not follow: {}", text_of(&reply))));
        }
        Ok(())
    }

    fn follow_once(&mut self) -> Result<(), Failed> {
        self.pump()?;
        self.send(Instant::now() + ANSWER_WITHIN)?;
        if self.said.elapsed() >= QUIET {
            // So that either end notices when the other is gone.
            self.apply(&[], Instant::now() + ANSWER_WITHIN)?;
        }
        Ok(())
    }

    fn follow(&mut self) -> Result<(), Failed> {
        loop {
            if self.outgoing.is_over() {
                return self.end();
            }
            self.follow_once()?;
            let freeze = self.outgoing.steering.lock().freeze.take();
            if let Some(freeze) = freeze {
                if self.cut_over(freeze)? {
                    self.await_decision();
                }
                continue;
            }
            if self.reader.arm() {
                self.outgoing.rest(QUIET);
            }
        }
    }

    /// Holds the slots and has the target confirm that it has all. False: that could not be done in time, and the slots are
    /// served as before.
    fn cut_over(&mut self, freeze: Freeze) -> Result<bool, Failed> {
        let Freeze { epoch, until, timeout_ms, asker } = freeze;
        let id = self.outgoing.id;
        let held = self.hold_and_confirm(epoch, until).and_then(|()| self.promise(epoch));
        let Err(failed) = held else {
            asker.answer(self.shared, |reply| reply.ok());
            return Ok(true);
        };
        let outgoing = self.outgoing.clone();
        self.shared.control_waiting(move |control| control.release_of(&outgoing));
        let (Failed::Retry(text) | Failed::Over(text)) = &failed;
        let told = format!("ERR the slots of move {id} could not be held within {timeout_ms} ms: {text}");
        asker.answer(self.shared, |reply| reply.error(&told));
        match failed {
            Failed::Retry(_) => Ok(false),
            over @ Failed::Over(_) => Err(over),
        }
    }

    /// From here on only a decision ends the hold.
    fn promise(&mut self, epoch: u64) -> Result<(), Failed> {
        let outgoing = self.outgoing.clone();
        let is_kept = self.shared.control_waiting(move |control| control.promise(&outgoing, epoch)).unwrap_or(false);
        if !is_kept {
            return Err(Failed::Retry("the hold was ended".to_owned()));
        }
        self.confirmed = epoch;
        Ok(())
    }

    /// No view of before the epoch is taken from here on, not even after a restart.
    fn keep_floor(&self, epoch: u64) -> Result<(), Failed> {
        let keep = move |control: &mut Control| control.refuse_stale(epoch).and_then(|()| control.keep_floor(epoch));
        let kept = self.shared.control_waiting(keep).unwrap_or_else(|| Err("the server is ending".to_owned()));
        kept.map_err(Failed::Retry)
    }

    fn hold_and_confirm(&mut self, epoch: u64, until: Instant) -> Result<(), Failed> {
        self.keep_floor(epoch)?;
        for _ in 0..ROUNDS_BEFORE_HOLD {
            self.pump()?;
            if self.out.bytes.len() as u64 + self.reader.behind() <= LAG_AT_HOLD {
                break;
            }
            self.send(until)?;
        }
        if Instant::now() >= until {
            return Err(Failed::Retry("the target does not catch up".to_owned()));
        }
        self.outgoing.steering.lock().held_since = Some(Instant::now());
        let outgoing = self.outgoing.clone();
        let held = self.shared.control_waiting(move |control| control.hold(&outgoing, epoch, until));
        held.unwrap_or_else(|| Err("the server is ending".to_owned())).map_err(Failed::Retry)?;
        // Nothing changes the slots any more: all that did is in the journal.
        let end = self.shared.keyspace.journal.end();
        while self.reader.position() < end {
            self.pump()?;
        }
        self.send(until)?;
        self.confirm(epoch, until)
    }

    /// Has the target compare what it has, and keep the epoch.
    fn confirm(&mut self, epoch: u64, until: Instant) -> Result<(), Failed> {
        let claim = self.claim(until)?;
        let (number, epoch) = (self.outgoing.id.to_string(), epoch.to_string());
        let words: [&[u8]; 6] =
            [b"OXIDIS", b"IMPORT", b"CONFIRM", number.as_bytes(), claim.as_bytes(), epoch.as_bytes()];
        let reply = self.wire.ask(&words, until, || !self.outgoing.is_over()).map_err(Failed::of)?;
        if reply.is_error() {
            return Err(Failed::Over(format!("the target has other data: {}", text_of(&reply))));
        }
        if Instant::now() >= until {
            return Err(Failed::Retry("the target confirmed too late".to_owned()));
        }
        Ok(())
    }

    /// What the target is to compare: how much it got, the checksum of it, and how many keys each slot has.
    fn claim(&mut self, until: Instant) -> Result<String, Failed> {
        let mut text = format!("{} {:x} ", self.sent, self.checksum);
        for slot in slots_of(&self.outgoing.slots.clone()) {
            if Instant::now() >= until {
                return Err(Failed::Retry("counting the keys took too long".to_owned()));
            }
            discard::lock(&mut self.locks, slot);
            let keys = self.locks.slot(slot).key_count();
            self.locks.unlock_all();
            self.locks.leave();
            if keys > 0 {
                let _ = write!(text, "{}:{keys},", slot.index());
            }
        }
        Ok(text)
    }

    /// The target has all; the manager decides. Returns when it has.
    fn await_decision(&mut self) {
        loop {
            let (state, freeze) = {
                let mut steering = self.outgoing.steering.lock();
                let state = steering.state;
                (state, steering.freeze.take_if(|_| state == CopyState::Frozen))
            };
            if state != CopyState::Frozen {
                return;
            }
            match freeze {
                Some(freeze) => self.hold_on(freeze),
                None => self.outgoing.rest(QUIET),
            }
        }
    }

    /// FREEZE was said again. Whatever comes of it, the slots stay held: the manager may act by the first answer.
    fn hold_on(&mut self, freeze: Freeze) {
        let Freeze { epoch, until, asker, .. } = freeze;
        let again = if epoch <= self.confirmed {
            Ok(())
        } else {
            self.keep_floor(epoch).and_then(|()| self.confirm(epoch, until)).and_then(|()| self.promise(epoch))
        };
        let id = self.outgoing.id;
        asker.answer(self.shared, |reply| match again {
            Ok(()) => reply.ok(),
            Err(Failed::Retry(text) | Failed::Over(text)) => {
                reply
                    .error(format!("ERR the slots of move {id} are held, but not confirmed for epoch {epoch}: {text}"));
            }
        });
    }

    fn end(&mut self) -> Result<(), Failed> {
        let state = self.outgoing.steering.lock().state;
        if state == CopyState::Cancelled {
            let number = self.outgoing.id.to_string();
            let words: [&[u8]; 4] = [b"OXIDIS", b"IMPORT", b"ABORT", number.as_bytes()];
            // If the target is gone, the manager tells it.
            let _ = self.wire.ask(&words, Instant::now() + Duration::from_secs(1), || true);
        }
        Ok(())
    }
}

/// Why slots could not be held.
enum Failed {
    /// They can be tried again.
    Retry(String),
    /// The move cannot go on.
    Over(String),
}

impl Failed {
    fn of(fault: Fault) -> Failed {
        match fault {
            Fault::Late => Failed::Retry(Fault::Late.text()),
            Fault::Broken(text) => Failed::Over(text),
        }
    }

    fn text(self) -> String {
        let (Failed::Retry(text) | Failed::Over(text)) = self;
        text
    }
}

/// How fast a copy may be.
struct Pace {
    since: Instant,
    looked: Instant,
    /// Microseconds of a turn of the workers, when it was least.
    usual_us: f64,
    /// The share of the time in which the copy works.
    share: f64,
}

impl Pace {
    fn new(shared: &Shared) -> Pace {
        let now = Instant::now();
        Pace { since: now, looked: now, usual_us: shared.rates.lock().turn_us, share: 1.0 }
    }

    /// After `bytes` were sent: waits as long as the limit, and the workers, want.
    fn give_way(&mut self, shared: &Shared, outgoing: &Outgoing, bytes: u64) {
        let took = self.since.elapsed();
        if self.looked.elapsed() >= LOOK_EVERY {
            self.looked = Instant::now();
            let turn_us = shared.rates.lock().turn_us;
            self.usual_us = self.usual_us.min(turn_us);
            let is_slow = turn_us > self.usual_us * 2.0 + TURN_GROWTH_US;
            self.share = if is_slow { (self.share / 2.0).max(0.05) } else { (self.share * 1.1 + 0.01).min(1.0) };
        }
        let mut wanted = took.mul_f64(1.0 / self.share);
        let rate = outgoing.rate.load(Ordering::Relaxed);
        if rate > 0 {
            #[allow(clippy::cast_precision_loss)]
            let by_rate = Duration::try_from_secs_f64(bytes as f64 / rate as f64).unwrap_or(Duration::MAX);
            wanted = wanted.max(by_rate);
        }
        let until = self.since + wanted;
        while let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            if outgoing.is_over() || rate != outgoing.rate.load(Ordering::Relaxed) {
                break;
            }
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
        self.since = Instant::now();
    }
}
