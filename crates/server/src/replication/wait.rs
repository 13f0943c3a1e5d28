//! WAIT, and the replicas' part of WAITAOF.
//!
//! A client that waits is parked; its command is run again when a replica has acknowledged something or the log here was
//! forced to disk, and when its time is over.

use super::Replication;
use super::primary::Stage;
use crate::exec::Step;
use crate::session::{Session, State};
use crate::session_commands::client;
use crate::shared::Shared;
use crate::worker::{Message, Worker};
use ::replication::handshake::command;
use commands::{CmdError, options};
use net::ConnId;
use resp::Args;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// WAIT on a replica.
const ON_REPLICA: CmdError = CmdError::new(
    "ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a replica is configured to be writable (which is not the default) writes to replicas are just local and are not propagated.",
);
/// WAITAOF on a replica.
pub(crate) const LOG_ON_REPLICA: CmdError = CmdError::new(
    "ERR WAITAOF cannot be used with replica instances. Please also note that writes to replicas are just local and are not propagated.",
);

impl Replication {
    /// Has those who wait for acknowledgements look again.
    pub(crate) fn wake_waiters(&self, shared: &Shared) {
        let waiters = std::mem::take(&mut *self.waiters.lock());
        for (worker, conn) in waiters {
            shared.post(worker, Message::Wake(conn.as_u64()));
        }
    }

    /// How many replicas have acknowledged the offset; `in_log`: as being in their log on disk.
    pub(crate) fn count_acked(&self, offset: u64, in_log: bool) -> i64 {
        let has = |replica: &&std::sync::Arc<super::Replica>| {
            let acked = if in_log { &replica.acked_log } else { &replica.acked };
            replica.stage() == Stage::Online && acked.load(Ordering::SeqCst) >= offset
        };
        i64::try_from(self.replicas.lock().iter().filter(has).count()).unwrap_or(i64::MAX)
    }
}

impl Shared {
    /// Asks all replicas how far they are.
    pub(crate) fn ask_acknowledgements(&self) {
        self.keyspace.journal.append_for_replicas(&command(&[b"REPLCONF", b"GETACK", b"*"]));
    }
}

impl Worker {
    /// Where the last of this client's commands that was recorded ends in the journal.
    pub(crate) fn written_by(&self, session: &Session) -> u64 {
        let appended = self.locks.effects.appended_to();
        if appended == self.appended_before { session.written_to } else { appended }
    }

    /// Parks a client that waits for replicas until `until_ms`. The caller looks once more afterwards.
    pub(crate) fn wait_for_replicas(&mut self, id: ConnId, until_ms: i64) {
        let place = (self.index, id);
        let mut waiters = self.shared.replication.waiters.lock();
        if !waiters.contains(&place) {
            waiters.push(place);
        }
        drop(waiters);
        if until_ms != i64::MAX && self.timers.get(id).is_none() {
            let left_ms = u64::try_from(until_ms.saturating_sub(self.now_ms)).unwrap_or(0);
            self.timers.set(id, Instant::now() + Duration::from_millis(left_ms));
        }
    }

    /// A client waits no longer.
    pub(crate) fn end_waiting_for_replicas(&mut self, id: ConnId, session: &mut Session) {
        if let Some(extra) = &mut session.extra
            && extra.wait_until_ms.take().is_some()
        {
            self.timers.cancel(id);
            let place = (self.index, id);
            self.shared.replication.waiters.lock().retain(|other| *other != place);
        }
    }
}

/// WAIT numreplicas timeout.
pub(crate) fn wait(worker: &mut Worker, id: ConnId, session: &mut Session, args: Args<'_>) -> Result<Step, CmdError> {
    if worker.shared.replication.is_replica() {
        worker.end_waiting_for_replicas(id, session);
        return Err(ON_REPLICA);
    }
    let wanted = options::int(&args[1])?;
    let deadline_ms = client::timeout_ms(&args[2], worker.now_ms)?;
    let offset = worker.written_by(session);
    let shared = worker.shared.clone();
    let acked = || shared.replication.count_acked(offset, false);
    let may_wait = !session.state.has(State::IN_MULTI) && !worker.locks.is_alone() && worker.locks.held() == 0;
    if acked() < wanted && may_wait {
        let is_first = session.extra.as_ref().is_none_or(|extra| extra.wait_until_ms.is_none());
        let until_ms = *session.extra_mut().wait_until_ms.get_or_insert(deadline_ms.unwrap_or(i64::MAX));
        if worker.now_ms < until_ms {
            worker.wait_for_replicas(id, until_ms);
            if is_first {
                shared.ask_acknowledgements();
            }
            // One may have come before the client was on the list.
            if acked() < wanted {
                return Ok(Step::Again);
            }
        }
    }
    worker.end_waiting_for_replicas(id, session);
    worker.reply.int(acked());
    Ok(Step::Done)
}
