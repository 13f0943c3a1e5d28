//! Clients that wait for keys: BLPOP and its kin.
//!
//! A blocked client hangs in the queue of each of its keys. Whoever makes such a key runs the waiting commands, in
//! order of arrival, right after its own command and before its next one, as Redis does; the replies travel to the
//! clients' workers by mailbox. A waiter is *claimed* before it is served, timed out or killed, so only one of them
//! happens.

use crate::acl::User;
use crate::acl::check::{self, Denied};
use crate::acl::log::{Context, Reason, Refusal};
use crate::session::{Blocked, Session, State};
use crate::ticks;
use crate::tracking::track_reads;
use crate::worker::{Later, Message, READY_TOKEN, Worker};
use commands::ctx::TimeoutReply;
use commands::table::{CommandId, CommandSpec};
use commands::{Block, CmdError, Ctx};
use keyspace::journal::effects::Verbatim;
use keyspace::lock::Wake;
use keyspace::tracking::Tracker;
use keyspace::waiters::Waiter;
use keyspace::{DbIndex, DbView, ValueRef};
use net::{ConnId, Conns};
use resp::{Args, Proto, Reply};
use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

impl Worker {
    /// Hangs a client in the queues of the keys it waits for; their slots are held.
    pub(crate) fn block_client(
        &mut self,
        conn: ConnId,
        session: &mut Session,
        id: CommandId,
        args: Args<'_>,
        block: &Block,
    ) {
        let waiter_id = self.locks.keyspace().next_waiter_id();
        #[allow(clippy::cast_possible_truncation)]
        let command = id.index() as u16;
        let resp3 = session.proto == Proto::Resp3;
        let mut kept = args.to_owned_args();
        if !block.replaced.is_empty() {
            let replaced = |index: usize| {
                block.replaced.iter().find(|(other, _)| *other == index).map(|(_, argument)| argument.as_slice())
            };
            kept = args.iter().enumerate().map(|(index, argument)| replaced(index).unwrap_or(argument)).collect();
        }
        let mut waiter = Waiter::new(waiter_id, self.index, conn.as_u64(), command, kept, session.db, resp3);
        if let Some(waiter) = Arc::get_mut(&mut waiter) {
            let owner = Owner { user: session.user.clone(), tracker: self.tracker_of(conn, session) };
            let is_plain = owner.user.is_none() && owner.tracker.is_none();
            waiter.owner = (!is_plain).then(|| Arc::new(owner) as Arc<dyn Any + Send + Sync>);
        }
        let keys: Vec<Vec<u8>> = block.keys.clone().filter_map(|index| args.get(index)).map(<[u8]>::to_vec).collect();
        self.with_ctx(session, false, |ctx| {
            for (index, key) in keys.iter().enumerate() {
                // A key named twice is waited for once.
                if !keys[..index].contains(key) {
                    ctx.db.add_waiter(key, waiter.clone());
                }
            }
        });
        if let Some(deadline_ms) = block.deadline_ms {
            let wait = u64::try_from(deadline_ms.saturating_sub(self.now_ms)).unwrap_or(0);
            self.timers.set(conn, Instant::now() + Duration::from_millis(wait));
        }
        session.state.insert(State::BLOCKED);
        self.stats.blocked.add(1);
        session.extra_mut().blocked =
            Some(Blocked { waiter, keys, timeout_reply: block.timeout_reply, deadline_ms: block.deadline_ms });
    }

    /// Serves those who wait for keys that a command has just made, as far as the command's own locks and those that are
    /// free now allow: nobody can take the elements in between. What is left over goes to [`Worker::serve_ready`].
    #[cold]
    pub(crate) fn serve_held(&mut self) {
        // Serving may make further keys (BLMOVE): those come after the ones that the command made, as in Redis.
        let mut queue: VecDeque<_> = self.events.ready.drain(..).collect();
        while let Some((db, key)) = queue.pop_front() {
            let slot = self.locks.keyspace().slot(&key);
            if !self.ready.is_empty() || !self.locks.holds(slot) || self.serve_waiters(db, &key).is_err() {
                self.ready.push_back((db, key));
            }
            queue.extend(self.events.ready.drain(..));
        }
    }

    /// Serves those who wait for keys that appeared. Holds no lock before and after.
    pub(crate) fn serve_ready(&mut self) {
        let entered = self.locks.enter_if_outside();
        while let Some((db, key)) = self.ready.pop_front() {
            if let Err(busy) = self.serve_key(db, &key) {
                self.ready.push_front((db, key));
                if self.locks.park(busy, Wake::Worker { worker: self.index, token: READY_TOKEN }) {
                    break;
                }
                continue;
            }
            self.publish_notifications();
            self.ready.extend(self.events.ready.drain(..));
        }
        if entered {
            self.locks.leave();
        }
    }

    /// Serves the waiters of one key, taking its lock. Err: this slot is busy.
    fn serve_key(&mut self, db: DbIndex, key: &[u8]) -> Result<(), keyspace::Slot> {
        let slot = self.locks.keyspace().slot(key);
        if !self.locks.try_lock(slot) {
            return Err(slot);
        }
        let served = self.serve_waiters(db, key);
        self.locks.unlock_all();
        served
    }

    /// Serves the waiters of one key whose slot is held. Further slots that they need are tried for, and kept.
    /// Err: this slot is busy, so the waiter that needs it and those behind it were left to wait.
    fn serve_waiters(&mut self, db: DbIndex, key: &[u8]) -> Result<(), keyspace::Slot> {
        let (now_ms, clock) = (self.now_ms, self.clock);
        let waiters = DbView::new(&mut self.locks, &mut self.events, db, now_ms, clock).waiters_of(key);
        for waiter in waiters {
            let spec = self.routes[waiter.command as usize].spec;
            let mut view = DbView::new(&mut self.locks, &mut self.events, db, now_ms, clock);
            // Redis: a key that is gone again, or of another type than the one waited for, wakes nobody but those who are
            // to be told that their group is gone.
            let wakes = spec.id == CommandId::Xreadgroup
                || (view.exists(key) && view.get(key).is_some_and(|value| is_waited_for(spec.id, value)));
            if !wakes {
                continue;
            }
            if let Ok(slots) = super::single::slots_of(self, spec, waiter.args.as_args()) {
                self.locks.try_lock_all(&slots)?;
            }
            // Whoever serves a waiter holds all its slots, so a claim that fails means that it is being ended for good.
            if !waiter.claim() {
                continue;
            }
            if self.serve_waiter(&waiter) { waiter.finish() } else { waiter.release() }
        }
        Ok(())
    }

    /// Runs a waiting command for its client, its slots being held. False: it found nothing it could take.
    fn serve_waiter(&mut self, waiter: &Arc<Waiter>) -> bool {
        let route = self.routes[waiter.command as usize];
        let args = waiter.args.as_args();
        let Some(handler) = route.handler else { return false };
        if self.events.has_invalidations() {
            // What the command that woke it has changed is that client's.
            self.tell_invalidations(self.serving.map(|conn| self.tracker(conn)));
        }
        let by = Tracker { worker: waiter.worker, token: waiter.token };
        let started = ticks::now();
        let mut reply = Reply::with_buffer(Vec::new(), if waiter.resp3 { Proto::Resp3 } else { Proto::Resp2 });
        let dirty = self.events.dirty;
        let (result, block) = if let Some(error) = self.waiter_refusal(waiter, route.spec) {
            (Err(error), None)
        } else {
            let db = DbView::new(&mut self.locks, &mut self.events, waiter.db, self.now_ms, self.clock);
            let mut ctx = Ctx { db, out: &mut reply, settings: &self.settings, may_block: true, block: None };
            let result = handler(&mut ctx, args);
            if let Some(tracker) = owner_of(waiter).and_then(|owner| owner.tracker) {
                track_reads(&mut ctx.db, tracker, route.spec, args);
            }
            (result, ctx.block.take())
        };
        if self.events.has_invalidations() {
            self.tell_invalidations(Some(by));
        }
        self.record(waiter.db, Verbatim::Args(args), dirty);
        match result {
            Ok(()) if block.is_some() => return false,
            Ok(()) => {}
            Err(error) => {
                reply.clear();
                reply.error(error.0.as_bytes());
                self.shared.note_error(&error.0);
            }
        }
        let ticks = ticks::now().wrapping_sub(started);
        let conn = ConnId::from_u64(waiter.token);
        // Its slots are still held: what it did goes to the journal before its client can hear of it.
        self.locks.append_effects();
        let upto = self.locks.effects.appended_to();
        let message = Message::Served { conn, waiter: waiter.id, reply: reply.take(), ticks, upto };
        self.shared.post(waiter.worker, message);
        true
    }

    /// The rights of a waiting client may have changed since it began to wait. The error, if it may no longer.
    fn waiter_refusal(&self, waiter: &Waiter, spec: &'static CommandSpec) -> Option<CmdError> {
        let user = owner_of(waiter).and_then(|owner| owner.user.clone());
        let user = user.unwrap_or_else(|| self.shared.acl.default_user().clone());
        let rules = user.rules();
        if rules.allows_everything() {
            return None;
        }
        let args = waiter.args.as_args();
        let denied = check::check(&rules, spec, &args).err()?;
        let (reason, object) = match denied {
            Denied::Command => (Reason::Command, spec.name.as_bytes()),
            Denied::Key(at) => (Reason::Key, args.get(at).unwrap_or_default()),
            Denied::Channel(at) => (Reason::Channel, args.get(at).unwrap_or_default()),
        };
        let (object, name) = (object.to_vec(), user.name.to_vec());
        let refusal = Refusal { reason, context: Context::Toplevel, object, user: name, client: Vec::new() };
        self.log_refusal(waiter.worker, ConnId::from_u64(waiter.token), refusal);
        Some(CmdError::text(format!("NOPERM {}", denied.sentence(&user.name, spec))))
    }

    /// A client of this worker was served: it gets its reply and goes on.
    pub(crate) fn client_served(
        &mut self,
        conns: &mut Conns<Worker>,
        conn: ConnId,
        waiter: u64,
        reply: Vec<u8>,
        ticks: u64,
    ) {
        let Some(session) = conns.state_mut(conn) else { return };
        let is_its = session
            .extra
            .as_ref()
            .and_then(|extra| extra.blocked.as_ref())
            .is_some_and(|blocked| blocked.waiter.id == waiter);
        if !is_its {
            return;
        }
        if let Some(blocked) = self.unblock(conn, session) {
            let id = table_id(blocked.waiter.command);
            self.stats.processed.add(1);
            self.stats.note_call(id, ticks, self.ticks_rate);
            self.forget_waiter(&blocked);
        }
        let silent = session_is_silent(session);
        if !silent {
            conns.write_owned(conn, reply);
        }
        conns.resume(conn);
    }

    /// Takes the blocked state off a session. The waiter must have been claimed.
    fn unblock(&mut self, conn: ConnId, session: &mut Session) -> Option<Blocked> {
        let blocked = session.extra.as_mut()?.blocked.take()?;
        session.state.remove(State::BLOCKED);
        self.stats.blocked.set(self.stats.blocked.get().saturating_sub(1));
        self.timers.cancel(conn);
        Some(blocked)
    }

    /// Takes an ended waiter off its keys' queues where that costs nothing; elsewhere it is dropped when met.
    fn forget_waiter(&mut self, blocked: &Blocked) {
        blocked.waiter.finish();
        let entered = self.locks.enter_if_outside();
        for key in &blocked.keys {
            let slot = self.locks.keyspace().slot(key);
            if self.locks.try_lock(slot) {
                let mut view =
                    DbView::new(&mut self.locks, &mut self.events, blocked.waiter.db, self.now_ms, self.clock);
                view.remove_waiter(key, blocked.waiter.id);
                self.locks.unlock_all();
            }
        }
        if entered {
            self.locks.leave();
        }
    }

    /// The client goes away: nobody is to serve it.
    pub(crate) fn abandon_block(&mut self, session: &mut Session) {
        let Some(blocked) = session.extra.as_mut().and_then(|extra| extra.blocked.take()) else { return };
        self.stats.blocked.set(self.stats.blocked.get().saturating_sub(1));
        blocked.waiter.finish();
        self.forget_waiter(&blocked);
    }

    /// Ends a client's wait with its timeout reply (`None`) or an error text. False: it is being served.
    pub(crate) fn end_wait(&mut self, conns: &mut Conns<Worker>, conn: ConnId, error: Option<&str>) -> bool {
        let Some(session) = conns.state_mut(conn) else { return false };
        let Some(blocked) = session.extra.as_ref().and_then(|extra| extra.blocked.as_ref()) else { return false };
        let waiter = blocked.waiter.clone();
        if !waiter.claim() {
            return false;
        }
        self.end_claimed_wait(conns, conn, &waiter, error);
        true
    }

    /// As [`Worker::end_wait`] for a waiter that the caller has claimed.
    pub(crate) fn end_claimed_wait(
        &mut self,
        conns: &mut Conns<Worker>,
        conn: ConnId,
        waiter: &Arc<Waiter>,
        error: Option<&str>,
    ) {
        let Some(session) = conns.state_mut(conn) else { return };
        let is_its = session
            .extra
            .as_ref()
            .and_then(|extra| extra.blocked.as_ref())
            .is_some_and(|blocked| blocked.waiter.id == waiter.id);
        if !is_its {
            return;
        }
        let Some(blocked) = self.unblock(conn, session) else { return };
        let mut reply = Reply::with_buffer(Vec::new(), session.proto);
        match error {
            Some(text) => {
                reply.error(text);
                self.shared.note_error(text);
            }
            None if blocked.timeout_reply == TimeoutReply::NullArray => reply.null_array(),
            None => reply.null(),
        }
        let silent = session_is_silent(session);
        self.forget_waiter(&blocked);
        self.later.push(Later::Resume(conn, if silent { Vec::new() } else { reply.take() }));
    }

    /// Ends the waits whose time is over. Returns when the next one is due.
    pub(crate) fn fire_timers(&mut self, conns: &mut Conns<Worker>, now: Instant) -> Option<Duration> {
        while let Some(conn) = self.timers.pop_due(now) {
            let is_over = self.end_wait(conns, conn, None);
            let waits_on = conns.state(conn).is_some_and(|session| session.state.has(State::BLOCKED));
            if conns
                .state(conn)
                .and_then(|session| session.extra.as_ref())
                .is_some_and(|extra| extra.wait_until_ms.is_some())
            {
                // WAIT: it looks at the time itself.
                conns.resume(conn);
            }
            if !is_over && waits_on {
                // It is just being served, which may come to nothing: then its time is over all the same.
                self.timers.set(conn, now + Duration::from_millis(1));
            }
        }
        self.timers.next_in(now)
    }
}

/// What a waiting command keeps of its client.
struct Owner {
    /// Its user; `None`: the default one.
    user: Option<Arc<User>>,
    /// Its place in the table of those who remember keys.
    tracker: Option<Tracker>,
}

fn owner_of(waiter: &Waiter) -> Option<&Owner> {
    waiter.owner.as_ref()?.downcast_ref()
}

/// Whether a blocked command waits for values of this type.
fn is_waited_for(id: CommandId, value: ValueRef<'_>) -> bool {
    use CommandId as C;
    match id {
        C::Blpop | C::Brpop | C::Blmove | C::Brpoplpush | C::Blmpop => matches!(value, ValueRef::List(_)),
        C::Bzpopmin | C::Bzpopmax | C::Bzmpop => matches!(value, ValueRef::ZSet(_)),
        C::Xread | C::Xreadgroup => matches!(value, ValueRef::Stream(_)),
        _ => true,
    }
}

fn session_is_silent(session: &mut Session) -> bool {
    let silent = session.state.has(State::REPLY_OFF) || session.state.has(State::REPLY_SKIP);
    session.state.remove(State::REPLY_SKIP);
    silent
}

fn table_id(index: u16) -> CommandId {
    super::route::routes()[index as usize].spec.id
}
