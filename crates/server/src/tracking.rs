//! Client-side caching: who is told that keys have changed.
//!
//! The keyspace notes what changed keys clients remember ([`keyspace::tracking`]), under the lock of the key's slot. The
//! executor drains that after each command and posts it to the workers of the clients, so an invalidation travels in a
//! mailbox, and a worker writes to its own connections only. A reply is always written before the invalidation that
//! follows it: a worker looks at its mailbox after it has answered; what comes for a client whose command runs on another
//! thread waits for that command's reply. The client whose own command changed the key gets it right behind its reply.
//!
//! Broadcasting clients (BCAST) are told of all keys with their prefixes; the keys that one worker changes in a turn of
//! its loop are one message, as in Redis.

use crate::session::{Session, State};
use crate::shared::Shared;
use crate::worker::{Message, Worker};
use commands::table::{CommandSpec, Flags, keys};
use keyspace::DbView;
use keyspace::tracking::{Tracker, TrackingCounts};
use net::{ConnId, Conns};
use parking_lot::RwLock;
use resp::{Args, Proto, Reply};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Where RESP2 clients read invalidations.
const CHANNEL: &str = "__redis__:invalidate";
/// Keys forgotten in one go while the table is above its limit.
const FORGOTTEN_AT_ONCE: usize = 100;

/// What is tracked, over all workers.
#[derive(Default)]
pub struct Tracking {
    /// Clients with tracking on.
    pub clients: AtomicUsize,
    prefixes: RwLock<BTreeMap<Vec<u8>, Vec<Tracker>>>,
}

/// Tracking of one client.
#[derive(Clone, Default)]
pub struct ClientTracking {
    /// Told of all changes under its prefixes.
    pub bcast: bool,
    /// Keys are remembered only after CLIENT CACHING YES.
    pub optin: bool,
    /// Keys are remembered but after CLIENT CACHING NO.
    pub optout: bool,
    /// Its own changes are no news to it.
    pub noloop: bool,
    /// CLIENT CACHING was given for the next command.
    pub caching: bool,
    /// The client that it redirects to is gone.
    pub is_redirect_broken: bool,
    /// Who gets the messages in its place.
    pub redirect: Option<Redirect>,
    /// Prefixes it listens to (BCAST).
    pub prefixes: Vec<Vec<u8>>,
}

impl ClientTracking {
    /// Whether keys that a command reads now are to be remembered.
    pub fn remembers(&self) -> bool {
        !(self.bcast || self.optin && !self.caching || self.optout && self.caching)
    }
}

/// The client that gets another one's messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Redirect {
    /// Its number.
    pub id: u64,
    /// Its worker.
    pub worker: u16,
    /// Its connection there.
    pub conn: ConnId,
}

/// The keys of one message.
#[derive(Clone)]
pub enum Keys {
    /// All of them (FLUSHALL).
    All,
    /// One, and who changed it.
    One(Arc<[u8]>, Option<Tracker>),
    /// Those changed in one turn, each with the client that changed it last.
    Changed(Arc<Vec<(Vec<u8>, Option<Tracker>)>>),
}

/// Keys for some clients of one worker.
#[derive(Clone)]
pub struct Invalidate {
    /// The clients; none: all that track.
    pub conns: Vec<ConnId>,
    /// What they are to forget.
    pub keys: Keys,
}

/// A message for a client that gets those of another one.
pub struct Redirected {
    /// The client whose keys they are.
    from: Tracker,
    /// Who gets it.
    to: Redirect,
    keys: Keys,
}

/// What a worker keeps about tracking.
#[derive(Default)]
pub(crate) struct WorkerTracking {
    /// Its clients that track.
    conns: Vec<ConnId>,
    /// Keys changed in this turn, with their last writer.
    changed: BTreeMap<Vec<u8>, Option<Tracker>>,
    /// What the client being served is to get behind its reply.
    own: Vec<Keys>,
    /// What came for clients whose command runs elsewhere.
    deferred: Vec<(ConnId, Keys)>,
    /// Where the bounding of the table goes on.
    next_slot: usize,
}

impl Tracking {
    /// Prefixes that somebody listens to.
    pub fn prefix_count(&self) -> usize {
        self.prefixes.read().len()
    }

    /// The flag is set under the list's lock, so that it is true while there is a prefix.
    fn add_prefix(&self, prefix: &[u8], tracker: Tracker, counts: &TrackingCounts) {
        let mut prefixes = self.prefixes.write();
        let trackers = prefixes.entry(prefix.to_vec()).or_default();
        if !trackers.contains(&tracker) {
            trackers.push(tracker);
        }
        counts.set_broadcasts(true);
    }

    fn remove_prefix(&self, prefix: &[u8], tracker: Tracker, counts: &TrackingCounts) {
        let mut prefixes = self.prefixes.write();
        if let Some(trackers) = prefixes.get_mut(prefix) {
            trackers.retain(|other| *other != tracker);
            if trackers.is_empty() {
                prefixes.remove(prefix);
            }
        }
        counts.set_broadcasts(!prefixes.is_empty());
    }
}

/// Notes the keys that a reading command has read, their slots being held.
pub(crate) fn track_reads(db: &mut DbView<'_>, tracker: Tracker, spec: &CommandSpec, args: Args<'_>) {
    if !spec.flags.contains(Flags::READONLY) || spec.flags.contains(Flags::PUBSUB) {
        return;
    }
    for key in keys::keys(spec, &args).unwrap_or_default() {
        if let Some(key) = args.get(key.position as usize) {
            db.track(key, tracker);
        }
    }
}

impl Worker {
    /// How a connection of this worker is known to the keyspace.
    pub(crate) fn tracker(&self, conn: ConnId) -> Tracker {
        let here = Tracker { worker: self.index, token: conn.as_u64() };
        self.stands_for.filter(|client| client.token == here.token).unwrap_or(here)
    }

    /// The session's place in the table, if the keys it reads now are to be remembered.
    pub(crate) fn tracker_of(&self, conn: ConnId, session: &Session) -> Option<Tracker> {
        if !session.state.has(State::TRACKING) {
            return None;
        }
        session.tracking().is_some_and(ClientTracking::remembers).then(|| self.tracker(conn))
    }

    /// Notes the keys that a session's command has just read, their slots being held.
    #[inline]
    pub(crate) fn track_reads_of(&mut self, conn: ConnId, session: &Session, spec: &CommandSpec, args: Args<'_>) {
        if session.state.has(State::TRACKING)
            && let Some(tracker) = self.tracker_of(conn, session)
        {
            self.with_ctx(session, false, |ctx| track_reads(&mut ctx.db, tracker, spec, args));
        }
    }

    // ---- turning it on and off -----------------------------------------------------------------------------------

    /// Turns tracking on, or changes it.
    pub(crate) fn start_tracking(&mut self, conn: ConnId, session: &mut Session, wanted: ClientTracking) {
        let tracker = self.tracker(conn);
        let shared = self.shared.clone();
        if !session.state.has(State::TRACKING) {
            session.state.insert(State::TRACKING);
            shared.tracking.clients.fetch_add(1, Ordering::SeqCst);
            self.tracking.conns.push(conn);
        }
        if wanted.bcast {
            let counts = &shared.keyspace.tracking;
            wanted.prefixes.iter().for_each(|prefix| shared.tracking.add_prefix(prefix, tracker, counts));
        }
        session.extra_mut().tracking = Some(Box::new(wanted));
    }

    /// Turns tracking off. What the table holds of the client goes when its keys change.
    pub(crate) fn stop_tracking(&mut self, conn: ConnId, session: &mut Session) {
        if !session.state.has(State::TRACKING) {
            return;
        }
        session.state.remove(State::TRACKING);
        self.shared.tracking.clients.fetch_sub(1, Ordering::SeqCst);
        self.tracking.conns.retain(|other| *other != conn);
        self.tracking.deferred.retain(|(other, _)| *other != conn);
        let Some(tracking) = session.extra.as_mut().and_then(|extra| extra.tracking.take()) else { return };
        let tracker = self.tracker(conn);
        for prefix in &tracking.prefixes {
            self.shared.tracking.remove_prefix(prefix, tracker, &self.shared.keyspace.tracking);
        }
    }

    /// CLIENT CACHING holds for one command, or for one transaction.
    pub(crate) fn end_caching(&self, session: &mut Session, args: Args<'_>) {
        if session.state.has(State::IN_MULTI) || args.get(0).is_some_and(|name| name.eq_ignore_ascii_case(b"client")) {
            return;
        }
        if let Some(tracking) = session.tracking_mut() {
            tracking.caching = false;
        }
    }

    // ---- telling -------------------------------------------------------------------------------------------------

    /// Sends what commands have noted, which `by` has run.
    #[cold]
    pub(crate) fn tell_invalidations(&mut self, by: Option<Tracker>) {
        let serving = self.serving.map(|conn| self.tracker(conn));
        for invalidation in std::mem::take(&mut self.events.invalidations) {
            let keys = Keys::One(invalidation.key.into(), by);
            for tracker in invalidation.trackers {
                if Some(tracker) == serving {
                    self.tracking.own.push(keys.clone());
                } else {
                    let conns = vec![ConnId::from_u64(tracker.token)];
                    self.shared.post(tracker.worker, Message::Invalidate(Invalidate { conns, keys: keys.clone() }));
                }
            }
        }
        if std::mem::take(&mut self.events.flushed) {
            self.tell_all();
        }
        for change in std::mem::take(&mut self.events.changes) {
            self.tracking.changed.insert(change.key, by.filter(|_| change.by_command));
        }
    }

    /// Sends the keys changed in this turn to the clients that listen to their prefixes.
    #[inline]
    pub(crate) fn broadcast_changes(&mut self) {
        if !self.tracking.changed.is_empty() {
            self.broadcast_all();
        }
    }

    #[cold]
    fn broadcast_all(&mut self) {
        let changed = std::mem::take(&mut self.tracking.changed);
        let shared = self.shared.clone();
        for (prefix, trackers) in &*shared.tracking.prefixes.read() {
            let keys: Vec<_> = changed
                .range(prefix.clone()..)
                .take_while(|(key, _)| key.starts_with(prefix))
                .map(|(key, by)| (key.clone(), *by))
                .collect();
            if keys.is_empty() {
                continue;
            }
            let keys = Keys::Changed(Arc::new(keys));
            let mut by_worker: HashMap<u16, Vec<ConnId>> = HashMap::new();
            for tracker in trackers {
                by_worker.entry(tracker.worker).or_default().push(ConnId::from_u64(tracker.token));
            }
            for (worker, conns) in by_worker {
                shared.post(worker, Message::Invalidate(Invalidate { conns, keys: keys.clone() }));
            }
        }
    }

    /// Everything is gone (FLUSHALL, FLUSHDB): all that track are told, and nothing is remembered any more. The gate is
    /// closed.
    pub(crate) fn invalidate_all(&mut self) {
        if self.shared.keyspace.tracking.keys() > 0 {
            for slot in self.shared.keyspace.slots() {
                self.locks.untrack_slot(slot);
            }
        }
        self.tell_all();
    }

    fn tell_all(&self) {
        if self.shared.tracking.clients.load(Ordering::SeqCst) == 0 {
            return;
        }
        for worker in 0..self.shared.workers() {
            #[allow(clippy::cast_possible_truncation)]
            self.shared.post(worker as u16, Message::Invalidate(Invalidate { conns: Vec::new(), keys: Keys::All }));
        }
    }

    /// Writes to the client being served what its own command has changed, behind the reply.
    pub(crate) fn tell_own(&mut self, conn: ConnId, session: &mut Session, is_answered: bool) {
        let own = std::mem::take(&mut self.tracking.own);
        let is_direct = is_answered
            && !session.state.has(State::REPLY_OFF)
            && !session.state.has(State::REPLY_SKIP)
            && session.tracking().is_some_and(|tracking| tracking.redirect.is_none());
        for keys in own {
            if !is_direct {
                self.shared.post(self.index, Message::Invalidate(Invalidate { conns: vec![conn], keys }));
            } else if session.proto == Proto::Resp3
                && let Some(keys) = wanted_keys(session, self.tracker(conn), &keys)
            {
                write_keys(&mut self.reply, &keys);
            }
        }
    }

    /// Whether there is something for [`Worker::tell_own`].
    #[inline]
    pub(crate) fn has_own_news(&self) -> bool {
        !self.tracking.own.is_empty()
    }

    /// Keys have changed that clients of this worker remember.
    pub(crate) fn take_invalidation(&mut self, conns: &mut Conns<Worker>, message: &Invalidate) {
        let all;
        let targets = if message.conns.is_empty() {
            all = self.tracking.conns.clone();
            &all
        } else {
            &message.conns
        };
        for conn in targets {
            self.tell_client(conns, *conn, &message.keys);
        }
    }

    fn tell_client(&mut self, conns: &mut Conns<Worker>, conn: ConnId, keys: &Keys) {
        let Some(session) = conns.state(conn) else { return };
        let Some(wanted) = wanted_keys(session, self.tracker(conn), keys) else { return };
        if session.state.has(State::OFFLOADED) {
            // Its reply may hold the old value and is still to come.
            self.tracking.deferred.push((conn, wanted));
            return;
        }
        match session.tracking().and_then(|tracking| tracking.redirect) {
            Some(to) => {
                let message = Redirected { from: self.tracker(conn), to, keys: wanted };
                self.shared.post(to.worker, Message::Redirected(message));
            }
            None if session.proto == Proto::Resp3 => {
                let mut reply = Reply::with_buffer(Vec::new(), Proto::Resp3);
                write_keys(&mut reply, &wanted);
                conns.write(conn, &reply.take());
            }
            // Redis: in RESP2 there is no way to tell a client but by another connection.
            None => {}
        }
    }

    /// A client's command that ran elsewhere is answered: what has waited for that goes out.
    pub(crate) fn tell_deferred(&mut self, conns: &mut Conns<Worker>, conn: ConnId) {
        if self.tracking.deferred.is_empty() {
            return;
        }
        let (its, others) =
            std::mem::take(&mut self.tracking.deferred).into_iter().partition(|(other, _)| *other == conn);
        self.tracking.deferred = others;
        let its: Vec<(ConnId, Keys)> = its;
        for (_, keys) in its {
            self.tell_client(conns, conn, &keys);
        }
    }

    /// A client of this worker gets the keys of another one.
    pub(crate) fn take_redirected(&mut self, conns: &mut Conns<Worker>, message: &Redirected) {
        let Some(session) = conns.state(message.to.conn) else {
            let (from, to) = (message.from, message.to);
            let tell = move |worker: &mut Worker, conns: &mut Conns<Worker>| worker.redirect_broke(conns, from, to);
            self.shared.post(from.worker, Message::Call(Box::new(tell)));
            return;
        };
        let mut reply = Reply::with_buffer(Vec::new(), session.proto);
        if session.proto == Proto::Resp3 {
            write_keys(&mut reply, &message.keys);
        } else if session.state.has(State::SUBSCRIBED) {
            reply.push(3);
            reply.bulk("message");
            reply.bulk(CHANNEL);
            write_key_list(&mut reply, &message.keys);
        } else {
            return;
        }
        conns.write(message.to.conn, &reply.take());
    }

    fn redirect_broke(&self, conns: &mut Conns<Worker>, from: Tracker, to: Redirect) {
        let conn = ConnId::from_u64(from.token);
        let Some(session) = conns.state_mut(conn) else { return };
        let is_resp3 = session.proto == Proto::Resp3;
        let Some(tracking) = session.tracking_mut().filter(|tracking| tracking.redirect == Some(to)) else { return };
        tracking.is_redirect_broken = true;
        if is_resp3 {
            let mut reply = Reply::with_buffer(Vec::new(), Proto::Resp3);
            reply.push(2);
            reply.bulk("tracking-redir-broken");
            reply.int(i64::try_from(to.id).unwrap_or(i64::MAX));
            conns.write(conn, &reply.take());
        }
    }

    // ---- bounding the table --------------------------------------------------------------------------------------

    /// Has clients forget keys while more are remembered than `tracking-table-max-keys` allows. Holds no lock before and
    /// after.
    pub(crate) fn bound_tracking(&mut self) {
        let most = self.config.tracking_table_max_keys as u64;
        if most == 0 || self.shared.keyspace.tracking.keys() <= most || self.locks.held() > 0 {
            return;
        }
        let entered = self.locks.enter_if_outside();
        let slots = self.locks.keyspace().space().count();
        let mut forgotten = 0;
        for _ in 0..slots {
            let slot = keyspace::Slot::new(self.tracking.next_slot % slots);
            self.tracking.next_slot = (self.tracking.next_slot + 1) % slots;
            if !self.locks.try_lock(slot) {
                continue;
            }
            let (now_ms, clock) = (self.now_ms, self.clock);
            let mut view = DbView::new(&mut self.locks, &mut self.events, keyspace::DbIndex(0), now_ms, clock);
            while forgotten < FORGOTTEN_AT_ONCE && self.shared.keyspace.tracking.keys() > most && view.untrack_any(slot)
            {
                forgotten += 1;
            }
            self.locks.unlock_all();
            if forgotten == FORGOTTEN_AT_ONCE || self.shared.keyspace.tracking.keys() <= most {
                break;
            }
        }
        if entered {
            self.locks.leave();
        }
        self.tell_invalidations(None);
    }
}

/// The keys of a message that a client wants to hear of; `None`: it wants nothing of it.
fn wanted_keys(session: &Session, own: Tracker, keys: &Keys) -> Option<Keys> {
    let tracking = session.tracking().filter(|_| session.state.has(State::TRACKING))?;
    let is_own = |by: &Option<Tracker>| tracking.noloop && *by == Some(own);
    match keys {
        Keys::All => Some(Keys::All),
        // What was noted before the client went over to broadcasting is of no interest.
        Keys::One(_, by) if tracking.bcast || is_own(by) => None,
        Keys::Changed(_) if !tracking.bcast => None,
        Keys::Changed(all) if tracking.noloop => {
            let others: Vec<_> = all.iter().filter(|(_, by)| !is_own(by)).cloned().collect();
            (!others.is_empty()).then(|| Keys::Changed(Arc::new(others)))
        }
        keys => Some(keys.clone()),
    }
}

fn write_keys(reply: &mut Reply, keys: &Keys) {
    reply.push(2);
    reply.bulk("invalidate");
    write_key_list(reply, keys);
}

fn write_key_list(reply: &mut Reply, keys: &Keys) {
    match keys {
        Keys::All => reply.null(),
        Keys::One(key, _) => {
            reply.array(1);
            reply.bulk(key);
        }
        Keys::Changed(keys) => {
            reply.array(keys.len());
            keys.iter().for_each(|(key, _)| reply.bulk(key));
        }
    }
}

impl Session {
    /// Its tracking, if it is on.
    pub fn tracking(&self) -> Option<&ClientTracking> {
        self.extra.as_ref()?.tracking.as_deref()
    }

    /// As [`Session::tracking`], to change.
    pub fn tracking_mut(&mut self) -> Option<&mut ClientTracking> {
        self.extra.as_mut()?.tracking.as_deref_mut()
    }
}

impl Shared {
    /// Clients that track keys.
    pub fn tracking_clients(&self) -> u64 {
        self.tracking.clients.load(Ordering::Relaxed) as u64
    }
}
