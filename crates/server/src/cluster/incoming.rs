//! A move's target: takes the stream over, and serves the slots once the manager says so.
//!
//! One thread a move runs the commands of the stream, as the link to a primary runs that one's: time stands still at 1970,
//! so no key ends by itself. What they do is recorded in this server's own journal, so its log and its replicas follow. A
//! portion is acknowledged as a write is to a client: when the append only file's policy is satisfied.
//!
//! Until the commit the slots are hidden: no command sees them, walks pass over them, nothing expires or is evicted. If
//! the source is lost before it was confirmed that all is there, what came is dropped; after that the manager decides.

use super::control::Control;
use super::filter::BULK_MAX;
use super::store::Arrival;
use super::{discard, slots_of};
use crate::durability::save::Asker;
use crate::exec::{Step, single};
use crate::log;
use crate::process::log::Level;
use crate::scripting::threads::STACK_BYTES;
use crate::session::{ClientId, Session};
use crate::shared::Shared;
use crate::worker::Worker;
use ::commands::CommandId;
use ::commands::table::keys;
use keyspace::eviction::AccessClock;
use keyspace::lock::Wake;
use keyspace::{NotifyClass, Slot};
use net::ConnId;
use parking_lot::Mutex;
use rdb::crc64::crc64_update;
use resp::{Args, Limits, Parse, ParseState, Request, parse_request};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use topology::{Newness, SlotSet};

/// How long a command that must wait for a slot waits at most before it tries again.
const SLOT_WAIT: Duration = Duration::from_millis(100);
/// Between two tries of a command that must wait for the gate or for room.
const RETRY_EVERY: Duration = Duration::from_micros(200);

/// What the connection of the source brings.
pub(crate) enum Order {
    /// Bytes of the stream.
    Apply(Vec<u8>),
    /// What the source has sent, to be compared, and the epoch of the cut-over, to be kept.
    Confirm(Claim, u64),
}

/// What the source says that it has sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Claim {
    bytes: u64,
    checksum: u64,
    /// Keys of the slots that have some.
    keys: Vec<(u16, u64)>,
}

impl Claim {
    /// Reads `bytes checksum slot:keys,slot:keys,…`.
    pub(crate) fn read(text: &[u8]) -> Option<Claim> {
        let text = std::str::from_utf8(text).ok()?;
        let mut words = text.split(' ');
        let bytes = words.next()?.parse().ok()?;
        let checksum = u64::from_str_radix(words.next()?, 16).ok()?;
        let mut keys = Vec::new();
        for pair in words.next()?.split(',').filter(|pair| !pair.is_empty()) {
            let (slot, count) = pair.split_once(':')?;
            keys.push((slot.parse().ok()?, count.parse().ok()?));
        }
        Some(Claim { bytes, checksum, keys })
    }
}

/// A move of slots to here.
pub(crate) struct Incoming {
    pub(crate) id: u64,
    slots: SlotSet,
    /// The connection of the source.
    connection: ConnId,
    worker: u16,
    orders: Mutex<Option<Sender<(Order, Asker)>>>,
    /// The source was told that all is there.
    is_confirmed: AtomicBool,
    has_ended: AtomicBool,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

impl Incoming {
    /// Hands an order to the thread, which answers.
    pub(crate) fn send(&self, shared: &Arc<Shared>, order: Order, asker: Asker) {
        let orders = self.orders.lock();
        let left = match orders.as_ref() {
            Some(sender) => sender.send((order, asker)).err().map(|unsent| unsent.0.1),
            None => Some(asker),
        };
        if let Some(asker) = left {
            asker.answer(shared, |reply| reply.error(format!("ERR move {} has ended here: start it anew", self.id)));
        }
    }

    /// Whether a connection brings it.
    pub(crate) fn is_brought_by(&self, worker: u16, connection: ConnId) -> bool {
        self.worker == worker && self.connection == connection
    }

    /// Takes no more orders.
    pub(crate) fn end(&self) {
        self.has_ended.store(true, Ordering::SeqCst);
        self.orders.lock().take();
    }

    /// As [`Incoming::end`], and waits until nothing of it runs.
    pub(crate) fn stop(&self) {
        self.end();
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            // A thread that came down has logged it.
            let _ = thread.join();
        }
    }
}

/// A move begins: what the slots may still hold is dropped.
pub(crate) fn begin(control: &mut Control, id: u64, slots: SlotSet, connection: ConnId, worker: u16, asker: Asker) {
    let shared = control.shared.clone();
    if let Some(old) = shared.cluster.incoming_of(id) {
        old.stop();
        shared.cluster.incoming.lock().retain(|other| other.id != id);
    }
    if let Err(error) = control.begin_arrival(Arrival { id, slots: slots.clone() }) {
        asker.answer(&shared, |reply| reply.error(format!("ERR {error}")));
        return;
    }
    let (sender, receiver) = channel();
    let incoming = Arc::new(Incoming {
        id,
        slots,
        connection,
        worker,
        orders: Mutex::new(Some(sender)),
        is_confirmed: AtomicBool::new(false),
        has_ended: AtomicBool::new(false),
        thread: Mutex::new(None),
    });
    shared.cluster.incoming.lock().push(incoming.clone());
    let (of_thread, with) = (shared.clone(), incoming.clone());
    let spawned = std::thread::Builder::new()
        .name(format!("import-{id}"))
        .stack_size(STACK_BYTES)
        .spawn(move || run(&of_thread, &with, &receiver, asker));
    match spawned {
        Ok(thread) => *incoming.thread.lock() = Some(thread),
        Err(error) => {
            log!(Level::Warning, "There is no thread to take slots over on: {error}");
            let slots = incoming.slots.clone();
            control.abort_arrival(id, &slots);
        }
    }
}

/// The manager has decided that the slots are ours.
///
/// # Errors
/// It was not confirmed that all is there.
pub(crate) fn commit(control: &mut Control, id: u64, newness: Newness) -> Result<(), String> {
    let running = control.shared.cluster.incoming_of(id);
    let slots = match (&running, control.kept.coming.iter().find(|arrival| arrival.id == id)) {
        (Some(incoming), _) if !incoming.is_confirmed.load(Ordering::SeqCst) => {
            return Err(format!("move {id} has not brought all yet: hold its slots with OXIDIS MOVE FREEZE first"));
        }
        (Some(incoming), _) => incoming.slots.clone(),
        (None, Some(arrival)) => arrival.slots.clone(),
        // Committed before, or seen in a view.
        (None, None) => return Ok(()),
    };
    let is_shown = control.shared.cluster.map().is_some_and(|map| slots_of(&slots).all(|slot| map.is_ours(slot)));
    if !is_shown {
        control.refuse_stale(newness.epoch.0)?;
    }
    if let Some(incoming) = running {
        incoming.stop();
    }
    control.commit_arrival(id, &slots, newness);
    log!(Level::Notice, "Move {id}: slots {slots} are served here");
    Ok(())
}

/// The move is given up.
pub(crate) fn abort(control: &mut Control, id: u64) {
    let slots = match (control.shared.cluster.incoming_of(id), control.kept.coming.iter().find(|one| one.id == id)) {
        (Some(incoming), _) => {
            incoming.stop();
            incoming.slots.clone()
        }
        (None, Some(arrival)) => arrival.slots.clone(),
        (None, None) => return,
    };
    control.abort_arrival(id, &slots);
}

/// The connection of the source is gone.
pub(crate) fn connection_lost(control: &mut Control, id: u64, worker: u16, connection: ConnId) {
    let lost =
        control.shared.cluster.incoming_of(id).filter(|incoming| {
            incoming.is_brought_by(worker, connection) && !incoming.is_confirmed.load(Ordering::SeqCst)
        });
    if lost.is_some() {
        log!(Level::Warning, "Move {id}: the source is gone before all was there, what came is dropped");
        abort(control, id);
    }
}

/// All is there: the epoch of the cut-over is kept, and the source is told.
fn confirm(control: &mut Control, incoming: &Incoming, epoch: u64, upto: u64, asker: Asker) {
    let kept = if incoming.has_ended.load(Ordering::SeqCst) {
        Err(format!("move {} has ended here", incoming.id))
    } else {
        control.keep_floor(epoch)
    };
    let shared = control.shared.clone();
    match kept {
        Ok(()) => {
            incoming.is_confirmed.store(true, Ordering::SeqCst);
            asker.answer_when_safe(&shared, upto, |reply| reply.ok());
        }
        Err(error) => asker.answer(&shared, |reply| reply.error(format!("ERR {error}"))),
    }
}

fn run(shared: &Arc<Shared>, incoming: &Arc<Incoming>, orders: &Receiver<(Order, Asker)>, asker: Asker) {
    let mut player = Player::new(shared, &incoming.slots);
    player.empty();
    asker.answer_when_safe(shared, player.upto(), |reply| reply.ok());
    while let Ok((order, asker)) = orders.recv() {
        if incoming.has_ended.load(Ordering::SeqCst) {
            asker.answer(shared, |reply| reply.error(format!("ERR move {} has ended here", incoming.id)));
            continue;
        }
        // What is confirmed may be all there is of the slots: only a decision drops it.
        let (was_confirmed, confirms) = match &order {
            Order::Confirm(_, epoch) => (incoming.is_confirmed.load(Ordering::SeqCst), Some(*epoch)),
            Order::Apply(_) => (false, None),
        };
        let did = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| match order {
            Order::Apply(bytes) => {
                incoming.is_confirmed.store(false, Ordering::SeqCst);
                player.apply(&bytes)
            }
            Order::Confirm(claim, _) => player.compare(&claim),
        }));
        let did = did.unwrap_or_else(|_| {
            player.worker.locks.recover();
            Err("internal error, see the server's log".to_owned())
        });
        if let Err(error) = did {
            log!(Level::Warning, "Move {}: cannot go on: {error}", incoming.id);
            asker.answer(shared, |reply| reply.error(format!("ERR {error}")));
            if was_confirmed {
                continue;
            }
            let id = incoming.id;
            incoming.end();
            shared.control(move |control| abort(control, id));
            return;
        }
        if let Some(epoch) = confirms {
            // There, since only the control thread writes the file; not waited for, since it may be waiting for this one.
            let (incoming, upto) = (incoming.clone(), player.upto());
            shared.control(move |control| confirm(control, &incoming, epoch, upto, asker));
            continue;
        }
        asker.answer_when_safe(shared, player.upto(), |reply| reply.ok());
    }
}

/// Runs the commands of a stream.
struct Player {
    shared: Arc<Shared>,
    slots: SlotSet,
    worker: Worker,
    session: Session,
    parse: ParseState,
    request: Request,
    /// Received and not run.
    buffer: Vec<u8>,
    bytes: u64,
    checksum: u64,
    config_version: u64,
}

impl Player {
    fn new(shared: &Arc<Shared>, slots: &SlotSet) -> Player {
        let worker = Worker::for_stream(shared);
        let mut player = Player {
            shared: shared.clone(),
            slots: slots.clone(),
            worker,
            session: Session::new(ClientId(0), 0, true, None),
            parse: ParseState::default(),
            request: Request::new(),
            buffer: Vec::new(),
            bytes: 0,
            checksum: 0,
            config_version: 0,
        };
        player.adopt();
        player
    }

    fn adopt(&mut self) {
        self.config_version = self.worker.adopt_config_for_stream();
        self.worker.events.wanted = NotifyClass::default();
    }

    /// Where what was done ends in the journal.
    fn upto(&self) -> u64 {
        self.worker.locks.effects.appended_to()
    }

    /// Drops what the slots hold.
    fn empty(&mut self) {
        for slot in slots_of(&self.slots) {
            discard::lock(&mut self.worker.locks, slot);
            discard::take_out(&self.shared, &mut self.worker.locks, slot, None);
            self.worker.locks.unlock_all();
            self.worker.locks.leave();
        }
    }

    fn apply(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.bytes += bytes.len() as u64;
        self.checksum = crc64_update(self.checksum, bytes);
        self.buffer.extend_from_slice(bytes);
        if self.config_version != self.shared.config.version() {
            self.adopt();
        }
        let policy = self.worker.settings.policy;
        let positive = |number: i32| u32::try_from(number).unwrap_or(0);
        let (factor, decay) = (self.worker.config.lfu_log_factor, self.worker.config.lfu_decay_time);
        let now_ms = crate::process::now_ms();
        self.worker.clock = AccessClock::at(now_ms, policy.is_lfu(), positive(factor), positive(decay));
        let buffer = std::mem::take(&mut self.buffer);
        let mut request = std::mem::take(&mut self.request);
        self.worker.locks.enter();
        let ran = self.run_all(&buffer, &mut request);
        self.worker.locks.leave();
        self.request = request;
        self.buffer = buffer;
        let used = ran?;
        self.buffer.drain(..used);
        self.buffer.shrink_to(1 << 20);
        self.worker.ready.clear();
        self.worker.broadcast_changes();
        self.worker.flush_counts();
        Ok(())
    }

    fn run_all(&mut self, input: &[u8], request: &mut Request) -> Result<usize, String> {
        let limits = Limits::new(BULK_MAX);
        let mut at = 0;
        loop {
            let rest = input.get(at..).unwrap_or_default();
            if rest.is_empty() {
                return Ok(at);
            }
            match parse_request(rest, &mut self.parse, &limits, request) {
                Parse::Request => {
                    self.run(request.args(rest))?;
                    at += request.consumed();
                }
                Parse::Empty => at += request.consumed(),
                Parse::Incomplete { .. } => return Ok(at),
                Parse::Error(error) => return Err(format!("the stream is broken: {error}")),
            }
            if self.worker.locks.keyspace().gate.is_closing() {
                self.worker.locks.leave();
                self.worker.locks.enter();
            }
        }
    }

    fn run(&mut self, args: Args<'_>) -> Result<(), String> {
        self.check(args)?;
        self.run_to_its_end(args);
        if self.worker.reply.as_slice().first() == Some(&b'-') {
            let text = String::from_utf8_lossy(&self.worker.reply.as_slice()[1..]).trim_end().to_owned();
            let name = String::from_utf8_lossy(args.get(0).unwrap_or_default()).into_owned();
            self.worker.reply.clear();
            return Err(format!("'{name}' of the stream was answered with '{text}'"));
        }
        self.worker.reply.clear();
        Ok(())
    }

    /// A stream may touch the slots of its move only.
    fn check(&self, args: Args<'_>) -> Result<(), String> {
        let name = args.get(0).unwrap_or_default();
        let shown = || String::from_utf8_lossy(name).into_owned();
        let Some(spec) = self.worker.lookup(name) else {
            return Err(format!("'{}' of the stream is no command here", shown()));
        };
        let is_ours = |slot: Slot| u16::try_from(slot.index()).is_ok_and(|slot| self.slots.contains(slot));
        let fine = match spec.id {
            CommandId::Select => true,
            CommandId::Oxidis => {
                let text = args.get(3).and_then(|text| std::str::from_utf8(text).ok()).unwrap_or_default();
                args.get(1).is_some_and(|word| word.eq_ignore_ascii_case(b"slots"))
                    && text.parse::<SlotSet>().is_ok_and(|slots| slots.is_subset(&self.slots))
            }
            _ => keys::touched_keys(spec, &args).is_ok_and(|keys| {
                let space = self.worker.locks.keyspace().space();
                let is_own = |position: usize| args.get(position).is_some_and(|key| is_ours(space.slot(key)));
                !keys.is_empty() && keys.iter().all(|key| is_own(key.position as usize))
            }),
        };
        if fine { Ok(()) } else { Err(format!("'{}' of the stream is not for the slots of the move", shown())) }
    }

    fn run_to_its_end(&mut self, args: Args<'_>) {
        loop {
            let step = single::run(&mut self.worker, ConnId::from_u64(0), &mut self.session, args);
            match step {
                Step::Done | Step::Close | Step::CloseNow | Step::Parked => return,
                Step::Busy(slot) => {
                    self.worker.locks.leave();
                    if self.worker.locks.park(slot, Wake::Thread(std::thread::current())) {
                        std::thread::park_timeout(SLOT_WAIT);
                    }
                    self.worker.locks.enter();
                }
                Step::Retry | Step::Again => {
                    self.worker.locks.leave();
                    std::thread::sleep(RETRY_EVERY);
                    self.worker.locks.enter();
                }
            }
            if self.shared.stopping.load(Ordering::Relaxed) {
                return;
            }
        }
    }

    /// Compares what has come with what was sent.
    fn compare(&mut self, claim: &Claim) -> Result<(), String> {
        if !self.buffer.is_empty() {
            return Err("the stream ends within a command".to_owned());
        }
        if (self.bytes, self.checksum) != (claim.bytes, claim.checksum) {
            return Err(format!("{} bytes came, {} were sent, or their checksums differ", self.bytes, claim.bytes));
        }
        let mut claimed = claim.keys.iter().copied().peekable();
        for number in self.slots.iter() {
            let slot = Slot::new(usize::from(number));
            discard::lock(&mut self.worker.locks, slot);
            let keys = self.worker.locks.slot(slot).key_count() as u64;
            self.worker.locks.unlock_all();
            self.worker.locks.leave();
            let expected = claimed.next_if(|(slot, _)| *slot == number).map_or(0, |(_, keys)| keys);
            if keys != expected {
                return Err(format!("slot {number} has {keys} keys here and {expected} at the source"));
            }
        }
        if claimed.next().is_some() {
            return Err("the source tells of keys in slots that do not move".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;

    #[test]
    fn claims_are_read() {
        let claim = Claim { bytes: 12, checksum: 0xFF, keys: vec![(3, 4), (16383, 1)] };
        assert_eq!(Claim::read(b"12 ff 3:4,16383:1,"), Some(claim));
        assert_eq!(Claim::read(b"0 0 "), Some(Claim { bytes: 0, checksum: 0, keys: Vec::new() }));
        for wrong in [&b""[..], b"1", b"1 2", b"x 1 ", b"1 1 3:", b"1 1 70000:1", b"\xff 1 "] {
            assert_eq!(Claim::read(wrong), None);
        }
    }
}
