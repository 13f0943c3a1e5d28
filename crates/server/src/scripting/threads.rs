//! Threads for scripts that would hold a worker too long.
//!
//! Each owns a [`Worker`] without an event loop: the same code runs scripts there. The connection is parked meanwhile
//! and gets its reply by mailbox, as with any long command.

use super::THREADS_MAX;
use super::run::{self, Target};
use crate::acl::User;
use crate::cluster::admit::{self, Verdict};
use crate::process::log::Level;
use crate::session::{ClientId, Session, State};
use crate::shared::Shared;
use crate::ticks;
use crate::tracking::ClientTracking;
use crate::worker::{Finished, Message, Worker};
use commands::table::{CommandSpec, Flags};
use keyspace::tracking::Tracker;
use keyspace::{DbIndex, Slot};
use net::ConnId;
use parking_lot::{Condvar, Mutex};
use resp::{OwnedArgs, Proto, Reply};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Stack of a thread that runs scripts: coroutines within coroutines, each with its own nesting of calls, use the
/// thread's. Only what is touched costs memory.
pub(crate) const STACK_BYTES: usize = 64 << 20;

/// How long a thread waits before it tries for the gate again.
const PAUSE: Duration = Duration::from_micros(200);
/// A closer of the gate that has not tried for so long has given up.
const CLOSER_GONE: Duration = Duration::from_millis(100);

/// A script to be run.
pub(crate) struct Job {
    /// The worker that waits, and its connection.
    pub(crate) worker: u16,
    pub(crate) conn: ConnId,
    pub(crate) spec: &'static CommandSpec,
    pub(crate) args: OwnedArgs,
    pub(crate) target: Target,
    pub(crate) slots: Vec<Slot>,
    pub(crate) client: Client,
    /// Arguments as SLOWLOG shows them.
    pub(crate) shown: Vec<Vec<u8>>,
}

/// What a script's commands see of the client.
pub(crate) struct Client {
    pub(crate) id: ClientId,
    pub(crate) db: DbIndex,
    pub(crate) proto: Proto,
    pub(crate) no_touch: bool,
    pub(crate) address: Option<SocketAddr>,
    /// What it is to a cluster.
    cluster: State,
    user: Option<Arc<User>>,
    rights_version: u32,
    is_restricted: bool,
    tracking: Option<ClientTracking>,
}

impl Client {
    pub(crate) fn of(session: &Session) -> Client {
        Client {
            id: session.id,
            db: session.db,
            proto: session.proto,
            no_touch: session.state.has(State::NO_TOUCH),
            address: session.address,
            cluster: session.state.only(State::READS_REPLICA),
            user: session.user.clone(),
            rights_version: session.rights_version,
            is_restricted: session.state.has(State::RESTRICTED),
            tracking: session.tracking().cloned(),
        }
    }

    /// A session that stands for the client on this thread.
    pub(crate) fn stand_in(&self, now_s: u32) -> Session {
        let mut session = Session::new(self.id, now_s, true, self.address);
        session.db = self.db;
        session.proto = self.proto;
        if self.no_touch {
            session.state.insert(State::NO_TOUCH);
        }
        session.user = self.user.clone();
        session.rights_version = self.rights_version;
        if self.is_restricted {
            session.state.insert(State::RESTRICTED);
        }
        session.state.insert(self.cluster);
        if let Some(tracking) = &self.tracking {
            session.state.insert(State::TRACKING);
            session.extra_mut().tracking = Some(Box::new(tracking.clone()));
        }
        session
    }
}

/// The pool.
#[derive(Default)]
pub(crate) struct Pool {
    queue: Mutex<Queue>,
    more: Condvar,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    idle: usize,
    started: usize,
}

impl Pool {
    /// Hands a script over. A thread is started if none is free.
    pub(crate) fn submit(&self, shared: &Arc<Shared>, job: Job) {
        let mut queue = self.queue.lock();
        queue.jobs.push_back(job);
        if queue.jobs.len() > queue.idle && queue.started < THREADS_MAX {
            let index = queue.started;
            let owned = shared.clone();
            let started = std::thread::Builder::new()
                .name(format!("script-{index}"))
                .stack_size(STACK_BYTES)
                .spawn(move || run_jobs(&owned, index));
            match started {
                Ok(_) => queue.started += 1,
                Err(error) => crate::log!(Level::Warning, "Cannot start a thread for scripts: {error}"),
            }
        }
        drop(queue);
        self.more.notify_one();
    }

    fn next(&self) -> Job {
        let mut queue = self.queue.lock();
        loop {
            if let Some(job) = queue.jobs.pop_front() {
                return job;
            }
            queue.idle += 1;
            self.more.wait(&mut queue);
            queue.idle -= 1;
        }
    }
}

fn run_jobs(shared: &Arc<Shared>, index: usize) {
    let place = shared.workers() + index;
    let mut worker = Worker::new(u16::try_from(place).unwrap_or(u16::MAX), shared.clone());
    loop {
        let job = shared.scripts.pool.next();
        let (to, conn, id, shown) = (job.worker, job.conn, job.spec.id, job.shown.clone());
        let started = ticks::now();
        let before = worker.locks.effects.appended_to();
        let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run_job(&mut worker, job)));
        if matches!(ran, Ok(None)) {
            continue;
        }
        let reply = ran.map(Option::unwrap_or_default).unwrap_or_else(|_| {
            worker.stats.panics.add(1);
            worker.locks.recover();
            worker = Worker::new(u16::try_from(place).unwrap_or(u16::MAX), shared.clone());
            b"-ERR internal error, see the server's log\r\n".to_vec()
        });
        let ticks = ticks::now().wrapping_sub(started);
        let left: Vec<_> = worker.ready.drain(..).collect();
        if !left.is_empty() {
            // Keys that somebody waits for, whose slots were busy: a worker can wait for them.
            let serve = move |worker: &mut Worker, _: &mut net::Conns<Worker>| {
                worker.ready.extend(left);
                worker.serve_ready();
            };
            shared.post(to, Message::Call(Box::new(serve)));
        }
        let events = keyspace::Events::default();
        let upto = worker.locks.effects.appended_to();
        let upto = if upto == before { 0 } else { upto };
        let finished = Finished { conn, id, shown, reply, events, ticks, parts: Vec::new(), upto };
        shared.post(to, Message::Finished(finished));
    }
}

/// Runs a script and gives its reply. `None`: a slot that it needs is held, so it was put off until that is over.
fn run_job(worker: &mut Worker, job: Job) -> Option<Vec<u8>> {
    worker.begin(crate::process::now_ms());
    worker.stands_for = Some(Tracker { worker: job.worker, token: job.conn.as_u64() });
    let mut session = job.client.stand_in(worker.now_s);
    worker.reply = Reply::with_buffer(Vec::new(), job.client.proto);
    let mut wide = job.target.traits().is_wide();
    loop {
        worker.locks.enter();
        worker.last_tick = ticks::now();
        let oom = run::is_out_of_memory(worker);
        let ended = if wide {
            let token = close_gate(worker);
            let verdict = verdict(worker, &session, &job);
            if !matches!(verdict, Verdict::Runs) {
                let kept = put_off(worker, job, verdict);
                worker.locks.end_alone(token);
                worker.locks.leave();
                return kept;
            }
            let args = job.args.as_args();
            let ended =
                run::run(worker, job.conn, &mut session, job.spec, args, &job.target, run::Place::Thread { oom });
            worker.serve_held();
            if matches!(ended, run::Outcome::Elsewhere(run::Why::Held)) {
                // Before the slot can be let go.
                worker.shared.cluster.keep_script(job);
                worker.locks.end_alone(token);
                worker.locks.leave();
                return None;
            }
            worker.locks.end_alone(token);
            ended
        } else {
            go_long(worker);
            worker.locks.lock_all(&job.slots);
            let verdict = verdict(worker, &session, &job);
            if !matches!(verdict, Verdict::Runs) {
                let kept = put_off(worker, job, verdict);
                worker.locks.end_long();
                worker.locks.leave();
                return kept;
            }
            let args = job.args.as_args();
            let ended =
                run::run(worker, job.conn, &mut session, job.spec, args, &job.target, run::Place::Thread { oom });
            if !worker.events.ready.is_empty() {
                worker.serve_held();
            }
            if matches!(ended, run::Outcome::Elsewhere(run::Why::Held)) {
                worker.shared.cluster.keep_script(job);
                worker.locks.unlock_all();
                worker.locks.end_long();
                worker.locks.leave();
                return None;
            }
            worker.locks.end_long();
            ended
        };
        worker.after_command();
        worker.broadcast_changes();
        worker.locks.leave();
        worker.flush_counts();
        match ended {
            run::Outcome::Done => return Some(worker.reply.take()),
            run::Outcome::Elsewhere(_) => wide = true,
        }
    }
}

/// What a cluster says of a script whose slots are locked.
fn verdict(worker: &Worker, session: &Session, job: &Job) -> Verdict {
    if !worker.shared.cluster.is_managed() {
        return Verdict::Runs;
    }
    if job.slots.len() > 1 {
        return Verdict::Refused(admit::CROSS_SLOT);
    }
    worker.shared.judge(&worker.locks, &job.slots, admit::allowed(session, job.spec.flags.contains(Flags::WRITE)))
}

/// A script that does not run now: its error, or `None` when it is kept until its slot is no longer held. The slot is
/// still locked.
fn put_off(worker: &mut Worker, job: Job, verdict: Verdict) -> Option<Vec<u8>> {
    match verdict {
        Verdict::Refused(error) => {
            worker.answer_error(0, job.spec.id, &error);
            Some(worker.reply.take())
        }
        _ => {
            worker.shared.cluster.keep_script(job);
            None
        }
    }
}

/// Closes the gate, however long that takes.
fn close_gate(worker: &mut Worker) -> keyspace::lockset::Alone {
    loop {
        if let Some(token) = worker.locks.begin_alone() {
            return token;
        }
        worker.locks.leave();
        std::thread::sleep(PAUSE);
        worker.locks.enter();
    }
}

/// Becomes a long runner; waits while somebody wants the gate closed.
fn go_long(worker: &mut Worker) {
    let keyspace = worker.shared.keyspace.clone();
    let mut tries = keyspace.gate.tries();
    let mut quiet = Duration::ZERO;
    while !worker.locks.go_long() {
        worker.locks.leave();
        std::thread::sleep(PAUSE);
        worker.locks.enter();
        quiet += PAUSE;
        if keyspace.gate.tries() != tries {
            tries = keyspace.gate.tries();
            quiet = Duration::ZERO;
        } else if quiet >= CLOSER_GONE {
            keyspace.gate.forget_closer();
        }
    }
}
