//! Replaying on several threads: commands whose keys lie in one slot, by that slot.
//!
//! ```text
//!  reader ─ frame by frame ─┬─ all keys in one slot ──▶ batch of the slot's lane ──▶ lane 0 … n
//!                           └─ anything else ────────▶ waits until all lanes are idle, runs here
//! ```
//!
//! Commands on different slots touch nothing in common, so their order among each other does not matter; those of one
//! slot stay in order, as they take the same lane. Waiting costs more than a command: after a command that needs all
//! lanes to be idle the reader goes on alone, until a stretch of plain ones has come.

use super::load::{replaying_worker, run_command};
use crate::config::Config;
use crate::exec::route;
use crate::session::{ClientId, Session};
use crate::shared::Shared;
use crate::worker::Worker;
use commands::CommandId;
use commands::table::{CommandSpec, Flags, arity_ok, keys};
use keyspace::{DbIndex, Events, Slot};
use parking_lot::{Condvar, Mutex};
use resp::Args;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// Commands of a batch, and bytes from which on it is handed over.
const BATCH_COMMANDS: usize = 128;
const BATCH_BYTES: usize = 32 << 10;
/// Batches that wait for a lane before the reader does.
const WAITING: usize = 8;
/// Plain commands in a row before lanes are used.
const CALM: usize = 256;

/// Some commands for one lane.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    /// Ends of arguments in `bytes`.
    ends: Vec<usize>,
    /// Database and number of arguments of each command.
    commands: Vec<(DbIndex, usize)>,
}

/// Batches that are not done.
#[derive(Default)]
struct Pending {
    count: Mutex<usize>,
    none: Condvar,
    /// A lane came down: what it had is lost.
    is_broken: AtomicBool,
}

/// See the module. Dropping it waits for what was handed over.
pub(super) struct Lanes {
    shared: Arc<Shared>,
    senders: Vec<SyncSender<Batch>>,
    threads: Vec<JoinHandle<()>>,
    open: Vec<Batch>,
    pending: Arc<Pending>,
    calm: usize,
    /// Something was taken since the last wait.
    is_busy: bool,
}

impl Lanes {
    /// One lane a worker; none where one worker is all there is. `file` is what errors are told of.
    pub(super) fn start(shared: &Arc<Shared>, config: &Config, file: &str) -> Lanes {
        let wanted = if shared.workers() > 1 { shared.workers() } else { 0 };
        let pending = Arc::<Pending>::default();
        let (mut senders, mut threads) = (Vec::new(), Vec::new());
        for index in 0..wanted {
            let (sender, receiver) = sync_channel(WAITING);
            let (shared, config, pending) = (shared.clone(), config.clone(), pending.clone());
            let file = file.to_owned();
            let spawned = std::thread::Builder::new()
                .name(format!("replay-{index}"))
                .spawn(move || run_lane(&shared, &config, &file, &receiver, &pending));
            // Fewer lanes do as well.
            if let Ok(thread) = spawned {
                senders.push(sender);
                threads.push(thread);
            }
        }
        let open = senders.iter().map(|_| Batch::default()).collect();
        Lanes { shared: shared.clone(), senders, threads, open, pending, calm: 0, is_busy: false }
    }

    /// Takes a command on database `db`, if it may run beside others. False: the caller runs it, after [`Lanes::wait`].
    pub(super) fn take(&mut self, spec: &'static CommandSpec, db: DbIndex, arguments: &[&[u8]]) -> bool {
        let lanes = self.senders.len();
        if lanes < 2 {
            return false;
        }
        let Some(slot) = self.slot_of(spec, arguments) else {
            self.calm = 0;
            return false;
        };
        self.calm += 1;
        if self.calm < CALM {
            return false;
        }
        let lane = slot.index() % lanes;
        let Some(batch) = self.open.get_mut(lane) else { return false };
        self.is_busy = true;
        for argument in arguments {
            batch.bytes.extend_from_slice(argument);
            batch.ends.push(batch.bytes.len());
        }
        batch.commands.push((db, arguments.len()));
        if batch.commands.len() >= BATCH_COMMANDS || batch.bytes.len() >= BATCH_BYTES {
            self.hand_over(lane);
        }
        true
    }

    /// The one slot that a command touches.
    fn slot_of(&self, spec: &'static CommandSpec, arguments: &[&[u8]]) -> Option<Slot> {
        let route = route::of(route::routes(), spec.id);
        // SORT reads keys that its patterns name.
        if route.handler.is_none()
            || !arity_ok(spec, arguments.len())
            || spec.flags.contains(Flags::BLOCKING)
            || matches!(spec.id, CommandId::Sort | CommandId::SortRo)
        {
            return None;
        }
        let keyspace = &self.shared.keyspace;
        if route.single_key > 0 {
            return arguments.get(usize::from(route.single_key)).map(|key| keyspace.slot(key));
        }
        let args = Args::from_slices(arguments);
        let found = keys::touched_keys(spec, &args).ok()?;
        let mut slots = found.iter().map(|key| arguments.get(key.position as usize).map(|key| keyspace.slot(key)));
        let first = slots.next()??;
        slots.all(|slot| slot == Some(first)).then_some(first)
    }

    fn hand_over(&mut self, lane: usize) {
        let (Some(batch), Some(sender)) = (self.open.get_mut(lane), self.senders.get(lane)) else { return };
        if batch.commands.is_empty() {
            return;
        }
        *self.pending.count.lock() += 1;
        if sender.send(std::mem::take(batch)).is_err() {
            self.pending.is_broken.store(true, Ordering::SeqCst);
            *self.pending.count.lock() -= 1;
        }
    }

    /// Waits until all that was taken has run; the caller is outside of the gate, at which lanes are. False: some of it
    /// has not, as a lane came down.
    pub(super) fn wait(&mut self) -> bool {
        if std::mem::take(&mut self.is_busy) {
            self.wait_busy();
        }
        !self.pending.is_broken.load(Ordering::SeqCst)
    }

    fn wait_busy(&mut self) {
        for lane in 0..self.senders.len() {
            self.hand_over(lane);
        }
        let mut count = self.pending.count.lock();
        while *count > 0 {
            self.pending.none.wait(&mut count);
        }
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        self.wait();
        self.senders.clear();
        for thread in self.threads.drain(..) {
            // One that came down has said why.
            let _ = thread.join();
        }
    }
}

fn run_lane(shared: &Arc<Shared>, config: &Config, file: &str, batches: &Receiver<Batch>, pending: &Pending) {
    /// Counts a batch as done however it ends.
    struct Done<'p>(&'p Pending);
    impl Drop for Done<'_> {
        fn drop(&mut self) {
            if std::thread::panicking() {
                self.0.is_broken.store(true, Ordering::SeqCst);
            }
            let mut count = self.0.count.lock();
            *count -= 1;
            if *count == 0 {
                self.0.none.notify_all();
            }
        }
    }
    let mut worker = replaying_worker(shared, config);
    // What it counts is nobody's doing.
    worker.stats = Arc::default();
    while let Ok(batch) = batches.recv() {
        let _done = Done(pending);
        run_batch(&mut worker, file, &batch);
    }
}

fn run_batch(worker: &mut Worker, file: &str, batch: &Batch) {
    let mut session = Session::new(ClientId(0), 0, true, None);
    let mut arguments: Vec<&[u8]> = Vec::new();
    let mut ends = batch.ends.iter();
    let mut start = 0;
    worker.locks.enter();
    for (db, count) in &batch.commands {
        arguments.clear();
        for end in ends.by_ref().take(*count) {
            arguments.push(batch.bytes.get(start..*end).unwrap_or_default());
            start = *end;
        }
        session.db = *db;
        run_command(worker, &mut session, &arguments, file);
    }
    worker.locks.leave();
    // What would be told to clients is told to nobody.
    worker.events = Events::default();
}
