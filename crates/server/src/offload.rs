//! Long commands, run away from the workers.
//!
//! A command whose cost passes the budget runs here, with its connection parked: the thread takes the command's slots
//! (sleeping for them if need be), runs the same function a worker would, and sends the reply back by mailbox.

use crate::exec::{route, single};
use crate::process::log::Level;
use crate::shared::Shared;
use crate::ticks;
use crate::worker::{Finished, Message};
use commands::{CommandId, Ctx, Settings};
use keyspace::eviction::AccessClock;
use keyspace::gate::{Gate, LongRun};
use keyspace::{DbIndex, DbView, Events, LockSet, NotifyClass, Slot};
use net::ConnId;
use resp::{OwnedArgs, Proto, Reply};
use std::sync::{Arc, OnceLock};
use parking_lot::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Threads for long commands. More than one, so that one giant does not hold up another.
const THREADS: usize = 3;

/// Elements that a command may touch on a worker. About a millisecond's work at most.
pub const INLINE_BUDGET: usize = 4096;

/// How long a long command waits before it tries to begin again.
const PAUSE: Duration = Duration::from_micros(200);
/// A closer of the gate that has not tried for so long has given up: it tries every millisecond.
const CLOSER_GONE: Duration = Duration::from_millis(100);

/// One long piece of work.
pub struct Job {
    /// The worker that waits.
    pub worker: u16,
    /// Its connection.
    pub conn: ConnId,
    /// The command, for statistics.
    pub id: CommandId,
    /// Protocol of the reply.
    pub proto: Proto,
    /// Its arguments as SLOWLOG shows them.
    pub shown: Vec<Vec<u8>>,
    /// What to do.
    pub work: Work,
}

/// A walk over the keyspace.
pub type Walk = Box<dyn FnOnce(&mut LockSet, &mut Reply) + Send>;

/// What a job does.
pub enum Work {
    /// A command of the table on its keys.
    Command {
        /// Arguments.
        args: OwnedArgs,
        /// Database.
        db: DbIndex,
        /// Slots of its keys, ascending.
        slots: Vec<Slot>,
        /// The settings it follows.
        settings: Settings,
        /// How accesses are noted.
        clock: AccessClock,
        /// The client wants no access noted.
        no_touch: bool,
        /// Notifications that are wanted.
        wanted: NotifyClass,
    },
    /// A walk over the keyspace that takes slots by itself.
    Walk(Walk),
}

/// The pool; its threads start with the first job.
#[derive(Default)]
pub struct Offload {
    sender: OnceLock<Sender<Job>>,
}

impl Offload {
    /// Hands a job over.
    pub fn submit(&self, shared: &Arc<Shared>, job: Job) {
        let sender = self.sender.get_or_init(|| start(shared));
        // The threads live as long as the process; a send fails only while it ends.
        let _ = sender.send(job);
    }
}

fn start(shared: &Arc<Shared>) -> Sender<Job> {
    let (sender, receiver) = channel::<Job>();
    let receiver = Arc::new(Mutex::new(receiver));
    for index in 0..THREADS {
        let (shared, receiver) = (shared.clone(), receiver.clone());
        let started = std::thread::Builder::new().name(format!("offload-{index}")).spawn(move || run(&shared, &receiver));
        if started.is_err() {
            crate::log!(Level::Warning, "Cannot start offload thread {index}: long commands share fewer threads");
        }
    }
    sender
}

fn run(shared: &Arc<Shared>, receiver: &Mutex<Receiver<Job>>) {
    let mut locks = LockSet::new(shared.keyspace.clone());
    loop {
        let job = receiver.lock().recv();
        let Ok(job) = job else { return };
        let finished = run_job(shared, &mut locks, job);
        shared.post(finished.0, Message::Finished(finished.1));
    }
}

#[allow(clippy::too_many_arguments)]
fn missing(
    locks: &mut LockSet,
    events: &mut Events,
    db: DbIndex,
    clock: AccessClock,
    reply: &mut Reply,
    settings: &Settings,
    args: resp::Args<'_>,
    slots: &[Slot],
) -> Option<Vec<Slot>> {
    let view = DbView::new(locks, events, db, crate::process::now_ms(), clock);
    let mut ctx = Ctx { db: view, out: reply, settings, may_block: false, block: None };
    single::missing_slots(&mut ctx, args, slots).map(|all| all.to_vec())
}

fn run_job(shared: &Arc<Shared>, locks: &mut LockSet, job: Job) -> (u16, Finished) {
    let keyspace = shared.keyspace.clone();
    let long_run = begin(&keyspace.gate);
    let mut reply = Reply::with_buffer(Vec::new(), job.proto);
    let mut events = Events::default();
    let started = ticks::now();
    let mut failed = None;
    match job.work {
        Work::Walk(walk) => walk(locks, &mut reply),
        Work::Command { args, db, slots, settings, clock, no_touch, wanted } => {
            events.wanted = wanted;
            let mut slots = slots;
            locks.lock_all(&slots);
            if single::names_other_keys(job.id, args.as_args()) {
                // A thread may sleep for its locks, so it asks until the source has held still.
                while let Some(all) = missing(locks, &mut events, db, clock, &mut reply, &settings, args.as_args(), &slots) {
                    locks.unlock_all();
                    slots = all;
                    locks.lock_all(&slots);
                }
            }
            let handler = route::of(route::routes(), job.id).handler;
            let result = match handler {
                Some(handler) => {
                    let now_ms = crate::process::now_ms();
                    let mut view = DbView::new(locks, &mut events, db, now_ms, clock);
                    view.no_touch = no_touch;
                    let mut ctx = Ctx { db: view, out: &mut reply, settings: &settings, may_block: false, block: None };
                    handler(&mut ctx, args.as_args())
                }
                None => Ok(()),
            };
            if let Err(error) = result {
                reply.clear();
                reply.error(error.0.as_bytes());
                failed = Some(error);
            }
            locks.unlock_all();
        }
    }
    drop(long_run);
    let ticks = ticks::now().wrapping_sub(started);
    (job.worker, Finished { conn: job.conn, id: job.id, shown: job.shown, reply: reply.take(), events, ticks, failed })
}

/// Announces a long command; waits while somebody wants the gate closed.
fn begin(gate: &Gate) -> LongRun<'_> {
    let mut tries = gate.tries();
    let mut quiet = Duration::ZERO;
    loop {
        if let Some(run) = gate.begin_long_run() {
            return run;
        }
        std::thread::sleep(PAUSE);
        quiet += PAUSE;
        if gate.tries() != tries {
            tries = gate.tries();
            quiet = Duration::ZERO;
        } else if quiet >= CLOSER_GONE {
            gate.forget_closer();
        }
    }
}
