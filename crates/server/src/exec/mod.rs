//! From bytes to commands run: what a worker does with a client's input.
//!
//! - [`batch`]: the fast path. Pipelined commands on one key each are parsed together, their slots locked together and
//!   prefetched, then run one by one.
//! - [`single`]: everything else, one command at a time, with all checks.
//! - [`transaction`]: MULTI, EXEC, WATCH.
//! - [`blocking`]: clients that wait for keys.
//! - [`whole`]: commands over the whole keyspace.
//! - [`memory_limit`]: eviction before commands that need memory.
//! - [`route`]: how each command is run.
//!
//! A connection that cannot go on (its slot is busy, its command runs elsewhere, it waits for a key) is *parked*: its
//! input stays where it is, and a wake-up resumes it.

pub mod batch;
pub mod blocking;
pub mod memory_limit;
pub mod route;
pub mod single;
pub mod transaction;
pub mod whole;

use crate::session::Session;
use crate::worker::{Later, Worker, flow};
use keyspace::journal::effects::Verbatim;
use keyspace::{DbIndex, Slot};
use net::{ConnId, Flow, Then};

/// What came of one command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// It ran; the reply is written.
    Done,
    /// A slot is busy: run the command again when the slot is free.
    Busy(Slot),
    /// The gate is busy: run the command again soon.
    Retry,
    /// The client waits: its command was taken over (blocked, offloaded); go on when it has its reply.
    Parked,
    /// The command is to be run again when something it asked for has come; do not consume it.
    Again,
    /// Close the connection, replies first.
    Close,
    /// Close the connection at once.
    CloseNow,
}

/// Runs what is in `input`; the reply is in the worker's reply buffer afterwards.
pub fn run_input(worker: &mut Worker, id: ConnId, session: &mut Session, input: &[u8]) -> Flow {
    let guarded = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| batch::run(worker, id, session, input)));
    match guarded {
        Ok(flow) => flow,
        Err(_) => {
            // A bug. The panic hook has logged it; no other client is to suffer from it.
            worker.stats.panics.add(1);
            worker.locks.recover();
            worker.end_serving();
            worker.reply.error("ERR internal error, see the server's log");
            flow(input.len(), Then::Close)
        }
    }
}

impl Worker {
    /// Parks a connection on a busy slot. False: the slot has become free, try again at once.
    pub(crate) fn park_on(&self, slot: Slot, id: ConnId) -> bool {
        let wake = keyspace::lock::Wake::Worker { worker: self.index, token: id.as_u64() };
        self.locks.park(slot, wake)
    }

    /// Has a connection looked at again in a millisecond or so.
    pub(crate) fn retry_soon(&mut self, id: ConnId) {
        self.later.push(Later::Retry(id));
    }

    /// Records what a command did, before its locks go back. `dirty`: the changes counted before it.
    #[inline]
    pub(crate) fn record(&mut self, db: DbIndex, verbatim: Verbatim<'_>, dirty: u64) {
        let changed = self.events.dirty != dirty;
        self.locks.effects.command_ran(db, verbatim, changed);
    }

    /// After a command, with no lock held: tells subscribers and serves those who waited for its keys.
    #[inline]
    pub(crate) fn after_command(&mut self) {
        if self.events.has_work() {
            self.tell_and_serve();
        }
    }

    fn tell_and_serve(&mut self) {
        if self.events.has_invalidations() {
            self.tell_invalidations(self.serving.map(|conn| self.tracker(conn)).or(self.stands_for));
        }
        self.publish_notifications();
        self.ready.extend(self.events.ready.drain(..));
        self.serve_ready();
    }

    /// Publishes the keyspace notifications that commands left.
    pub(crate) fn publish_notifications(&mut self) {
        if self.events.notifications.is_empty() {
            return;
        }
        let notifications = std::mem::take(&mut self.events.notifications);
        if self.shared.pubsub.is_idle() {
            return;
        }
        let wanted = self.events.wanted;
        for notification in notifications {
            let db = notification.db.0;
            if wanted.intersects(keyspace::NotifyClass::KEYSPACE) {
                let mut channel = format!("__keyspace@{db}__:").into_bytes();
                channel.extend_from_slice(&notification.key);
                self.publish(false, &channel, notification.event.as_bytes());
            }
            if wanted.intersects(keyspace::NotifyClass::KEYEVENT) {
                let channel = format!("__keyevent@{db}__:{}", notification.event);
                self.publish(false, channel.as_bytes(), &notification.key);
            }
        }
    }
}
