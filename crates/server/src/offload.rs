//! Long commands, run away from the workers.
//!
//! A command whose cost passes the budget runs here, with its connection parked: the thread takes the command's slots
//! (sleeping for them if need be), runs the same function a worker would, and sends the reply back by mailbox. Commands
//! that wait for other servers run the same way on a pool of their own.

use crate::cluster::admit::Verdict;
use crate::exec::{route, single};
use crate::key_stats::note_sizes;
use crate::migrate;
use crate::process::log::Level;
use crate::session::Watch;
use crate::shared::Shared;
use crate::ticks;
use crate::tracking::track_reads;
use crate::worker::{Finished, Message, Part};
use commands::{CmdError, CommandId, Ctx, Settings};
use keyspace::eviction::AccessClock;
use keyspace::gate::{Gate, LongRun};
use keyspace::journal::effects::Verbatim;
use keyspace::slot::Tenure;
use keyspace::tracking::Tracker;
use keyspace::{DbIndex, DbView, Events, LockSet, NotifyClass, Slot};
use net::ConnId;
use parking_lot::Mutex;
use resp::{Args, OwnedArgs, Proto, Reply};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
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
        /// Where and how it runs.
        footing: Footing,
    },
    /// The commands of a MULTI, all of them on keys.
    Transaction {
        /// In order.
        queue: Vec<(CommandId, OwnedArgs)>,
        /// The keys that must not have changed.
        watch: Option<Watch>,
        /// Where and how they run.
        footing: Footing,
    },
    /// A walk over the keyspace that takes slots by itself.
    Walk(Walk),
}

/// Where and how commands run away from their worker.
pub struct Footing {
    /// What the client's commands pass over: see [`crate::cluster::admit::allowed`].
    pub(crate) allowed: Tenure,
    /// Database.
    pub db: DbIndex,
    /// Slots of the keys, ascending.
    pub slots: Vec<Slot>,
    /// The settings they follow.
    pub settings: Settings,
    /// How accesses are noted.
    pub clock: AccessClock,
    /// The client wants no access noted.
    pub no_touch: bool,
    /// Notifications that are wanted.
    pub wanted: NotifyClass,
    /// Who remembers the keys that are read.
    pub tracker: Option<Tracker>,
}

/// The pool; its threads start with the first job.
pub struct Offload {
    name: &'static str,
    sender: OnceLock<Sender<Job>>,
}

impl Offload {
    /// A pool whose threads bear this name.
    pub fn named(name: &'static str) -> Offload {
        Offload { name, sender: OnceLock::new() }
    }

    /// Hands a job over.
    pub fn submit(&self, shared: &Arc<Shared>, job: Job) {
        let sender = self.sender.get_or_init(|| start(shared, self.name));
        // The threads live as long as the process; a send fails only while it ends.
        let _ = sender.send(job);
    }
}

fn start(shared: &Arc<Shared>, name: &str) -> Sender<Job> {
    let (sender, receiver) = channel::<Job>();
    let receiver = Arc::new(Mutex::new(receiver));
    for index in 0..THREADS {
        let (shared, receiver) = (shared.clone(), receiver.clone());
        let started =
            std::thread::Builder::new().name(format!("{name}-{index}")).spawn(move || run(&shared, &receiver));
        if started.is_err() {
            crate::log!(Level::Warning, "Cannot start thread {name}-{index}: long commands share fewer threads");
        }
    }
    sender
}

fn run(shared: &Arc<Shared>, receiver: &Mutex<Receiver<Job>>) {
    crate::durability::claim::give_way();
    let mut locks = LockSet::new(shared.keyspace.clone());
    loop {
        let job = receiver.lock().recv();
        let Ok(job) = job else { return };
        if let Some((worker, finished)) = run_job(shared, &mut locks, job) {
            shared.post(worker, Message::Finished(finished));
        }
    }
}

/// What a job's commands run with.
struct Runner<'a> {
    locks: &'a mut LockSet,
    events: Events,
    reply: Reply,
    footing: Footing,
    parts: Vec<Part>,
}

impl Runner<'_> {
    fn with_ctx<R>(&mut self, work: impl FnOnce(&mut Ctx<'_>) -> R) -> R {
        let footing = &self.footing;
        let mut db = DbView::new(self.locks, &mut self.events, footing.db, crate::process::now_ms(), footing.clock);
        db.no_touch = footing.no_touch;
        let settings = &footing.settings;
        work(&mut Ctx { db, out: &mut self.reply, settings, may_block: false, block: None })
    }

    /// Takes the slots; for SORT with patterns also those of the keys it names. A thread may sleep for its locks, so it
    /// asks until the source has held still.
    fn lock(&mut self, id: CommandId, args: Args<'_>) {
        self.locks.lock_all(&self.footing.slots);
        if !single::names_other_keys(id, args) {
            return;
        }
        let mut slots = self.footing.slots.clone();
        while let Some(all) = self.with_ctx(|ctx| single::missing_slots(ctx, args, &slots)) {
            self.locks.unlock_all();
            slots = all.to_vec();
            self.locks.lock_all(&slots);
        }
    }

    fn run(&mut self, shared: &Shared, id: CommandId, args: Args<'_>) {
        let started = ticks::now();
        let before = self.reply.len();
        let handler = route::of(route::routes(), id).handler;
        let dirty = self.events.dirty;
        let result = match handler {
            Some(handler) => self.with_ctx(|ctx| handler(ctx, args)),
            None if id == CommandId::Migrate => self.with_ctx(|ctx| migrate::run(shared, ctx, args)),
            None => Ok(()),
        };
        if let Some(tracker) = self.footing.tracker {
            self.with_ctx(|ctx| track_reads(&mut ctx.db, tracker, route::of(route::routes(), id).spec, args));
        }
        let changed = self.events.dirty != dirty;
        self.locks.effects.command_ran(self.footing.db, Verbatim::Args(args), changed);
        let failed = result.err();
        if let Some(error) = &failed {
            self.reply.truncate(before);
            self.reply.error(error.0.as_bytes());
        }
        self.parts.push(Part { id, ticks: ticks::now().wrapping_sub(started), failed });
    }

    /// Runs a MULTI's commands unless a watched key changed. Its slots are held, those of the watched keys too.
    fn run_transaction(&mut self, shared: &Shared, queue: &[(CommandId, OwnedArgs)], watch: Option<&Watch>) {
        let now_ms = crate::process::now_ms();
        let clock = self.footing.clock;
        let mut broken = false;
        if let Some(watch) = watch {
            broken = watch.flag.load(Ordering::Relaxed);
            for (db, key, was_over) in &watch.keys {
                let mut view = DbView::new(self.locks, &mut self.events, *db, now_ms, clock);
                broken |= !was_over && view.is_expired_now(key);
                view.unwatch(key, &watch.flag);
            }
        }
        if broken {
            self.reply.null_array();
            return;
        }
        self.reply.array(queue.len());
        self.locks.effects.begin();
        for (id, args) in queue {
            self.run(shared, *id, args.as_args());
        }
        self.locks.effects.end();
    }
}

/// Runs a job. `None`: a slot that it needs is held, so it was put off until that is over.
fn run_job(shared: &Arc<Shared>, locks: &mut LockSet, job: Job) -> Option<(u16, Finished)> {
    let keyspace = shared.keyspace.clone();
    let long_run = begin(&keyspace.gate);
    locks.ask_recording();
    let mut reply = Reply::with_buffer(Vec::new(), job.proto);
    let started = ticks::now();
    let before = locks.effects.appended_to();
    let (reply, events, parts) = match job.work {
        Work::Walk(walk) => {
            walk(locks, &mut reply);
            (reply, Events::default(), Vec::new())
        }
        Work::Command { args, footing } => {
            let mut runner = Runner::new(locks, reply, footing);
            runner.lock(job.id, args.as_args());
            match runner.verdict(shared) {
                Verdict::Runs => runner.run(shared, job.id, args.as_args()),
                Verdict::Refused(error) => runner.refuse(job.id, error),
                Verdict::Waits | Verdict::Again => {
                    let kept = Job { work: Work::Command { args, footing: runner.footing }, ..job };
                    put_off(shared, runner.locks, kept);
                    return None;
                }
            }
            if let Some(stats) = shared.key_stats.get(job.worker as usize) {
                let spec = route::of(route::routes(), job.id).spec;
                runner.with_ctx(|ctx| note_sizes(stats, &ctx.db, spec, args.as_args()));
            }
            runner.end()
        }
        Work::Transaction { queue, watch, footing } => {
            let mut runner = Runner::new(locks, reply, footing);
            runner.locks.lock_all(&runner.footing.slots);
            match runner.verdict(shared) {
                Verdict::Runs => runner.run_transaction(shared, &queue, watch.as_ref()),
                Verdict::Refused(error) => runner.refuse(job.id, error),
                Verdict::Waits | Verdict::Again => {
                    let kept = Job { work: Work::Transaction { queue, watch, footing: runner.footing }, ..job };
                    put_off(shared, runner.locks, kept);
                    return None;
                }
            }
            runner.end()
        }
    };
    drop(long_run);
    let upto = locks.effects.appended_to();
    let upto = if upto == before { 0 } else { upto };
    let ticks = ticks::now().wrapping_sub(started);
    let mut reply = reply;
    let reply = reply.take();
    Some((job.worker, Finished { conn: job.conn, id: job.id, shown: job.shown, reply, events, ticks, parts, upto }))
}

/// Keeps a job whose slot is held, and then gives its locks back.
fn put_off(shared: &Shared, locks: &mut LockSet, job: Job) {
    shared.cluster.keep_job(job);
    locks.unlock_all();
}

impl<'a> Runner<'a> {
    fn new(locks: &'a mut LockSet, reply: Reply, footing: Footing) -> Runner<'a> {
        let events = Events { wanted: footing.wanted, ..Events::default() };
        Runner { locks, events, reply, footing, parts: Vec::new() }
    }

    /// What a cluster says of the slots, which are locked.
    fn verdict(&self, shared: &Shared) -> Verdict {
        if !shared.cluster.is_managed() {
            return Verdict::Runs;
        }
        shared.judge(self.locks, &self.footing.slots, self.footing.allowed)
    }

    fn refuse(&mut self, id: CommandId, error: CmdError) {
        self.reply.error(error.0.as_bytes());
        self.parts.push(Part { id, ticks: 0, failed: Some(error) });
    }

    fn end(self) -> (Reply, Events, Vec<Part>) {
        self.locks.unlock_all();
        (self.reply, self.events, self.parts)
    }
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
