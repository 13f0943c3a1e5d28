//! One worker: its event loop's service. Owns its connections from accept to close.
//!
//! Where to start reading: [`Worker::data`](net::Service::data), then [`crate::exec`].

use crate::config::Config;
use crate::exec::batch::Batch;
use crate::pubsub::{Delivery, Kind, Subscriber};
use crate::session::{ClientId, Session, State};
use crate::shared::Shared;
use crate::stats::WorkerStats;
use crate::tracking::{Invalidate, Redirected, WorkerTracking};
use crate::{exec, ticks};
use commands::{CmdError, CommandId, Settings};
use keyspace::eviction::AccessClock;
use keyspace::journal::Deletion;
use keyspace::{DbIndex, Events, LockSet};
use net::{CloseReason, ConnId, Conns, Context, Flow, Peer, Service, Then, Timers};
use resp::{Proto, Reply};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// What another thread has a worker do.
pub type Call = Box<dyn FnOnce(&mut Worker, &mut Conns<Worker>) + Send>;

/// Work handed to a worker from elsewhere.
pub enum Message {
    /// A slot that a connection waited for became free (or it is worth another look).
    Wake(u64),
    /// A long command has ended.
    Finished(Finished),
    /// A blocked client was served by somebody else's command, or ended by it.
    Served {
        /// The connection.
        conn: ConnId,
        /// Its waiter's number: an old one is of no interest.
        waiter: u64,
        /// Its reply.
        reply: Vec<u8>,
        /// How long the command took.
        ticks: u64,
        /// Where what it did ends in the journal.
        upto: u64,
    },
    /// A published message for some of this worker's clients.
    Deliver(Delivery),
    /// Bytes for one client (MONITOR).
    Write(ConnId, Arc<[u8]>),
    /// Keys have changed that clients of this worker remember.
    Invalidate(Invalidate),
    /// The same for a client that gets another one's messages.
    Redirected(Redirected),
    /// Something to do on this worker.
    Call(Call),
    /// End.
    Stop,
}

/// What became of a long command.
pub struct Finished {
    /// The connection that waits.
    pub conn: ConnId,
    /// The command.
    pub id: CommandId,
    /// Its arguments as SLOWLOG shows them.
    pub shown: Vec<Vec<u8>>,
    /// Its reply.
    pub reply: Vec<u8>,
    /// What it left behind.
    pub events: Events,
    /// How long it took.
    pub ticks: u64,
    /// The commands of the table that ran: one, or those of a transaction.
    pub parts: Vec<Part>,
    /// Where what they did ends in the journal; 0: they did nothing that is recorded.
    pub upto: u64,
}

/// One command that ran away from its worker, for the counts.
pub struct Part {
    /// The command.
    pub id: CommandId,
    /// How long it took.
    pub ticks: u64,
    /// Its error, if it answered one.
    pub failed: Option<CmdError>,
}

/// The token by which a worker is woken to serve ready keys that it could not lock.
pub const READY_TOKEN: u64 = u64::MAX;

/// Something to be done with connections once the loop lends them.
pub enum Later {
    /// Write to a connection and let it go on.
    Resume(ConnId, Vec<u8>),
    /// Look at a connection's input again soon (the gate was busy).
    Retry(ConnId),
    /// Close a connection, its output flushed first if asked.
    Close(ConnId, bool),
    /// Write bytes.
    Write(ConnId, Vec<u8>),
}

/// See the module.
pub struct Worker {
    /// Its number.
    pub index: u16,
    /// What it shares with the others.
    pub shared: Arc<Shared>,
    /// Its counters.
    pub stats: Arc<WorkerStats>,
    /// The locks it holds.
    pub locks: LockSet,
    /// The reply being written.
    pub reply: Reply,
    /// What commands leave behind.
    pub events: Events,
    /// The configuration it follows.
    pub config: Arc<Config>,
    /// The part of it that commands follow.
    pub settings: Settings,
    pub(crate) routes: &'static [exec::route::Route],
    /// Away while it is in use.
    pub(crate) batch: Option<Box<Batch>>,
    pub(crate) later: Vec<Later>,
    /// The client whose command runs, if it may be a subscriber.
    pub(crate) serving: Option<ConnId>,
    /// What that client has published to itself.
    to_itself: Vec<Delivery>,
    pub(crate) ready: VecDeque<(DbIndex, Vec<u8>)>,
    pub(crate) timers: Timers<ConnId>,
    pub(crate) monitors: Vec<ConnId>,
    pub(crate) tracking: WorkerTracking,
    /// The client whose script runs here, on a thread that is no event loop.
    pub(crate) stands_for: Option<keyspace::tracking::Tracker>,
    pub(crate) sampler: crate::key_stats::Sampler,
    pub(crate) cron: crate::cron::Cron,
    pub(crate) ticks_rate: ticks::Rate,
    pub(crate) last_tick: u64,
    /// When the turn's first work began, in ticks; none has yet while 0.
    turn_began: u64,
    pub(crate) slow_ticks: u64,
    pub(crate) now_ms: i64,
    pub(crate) now_s: u32,
    pub(crate) clock: AccessClock,
    pub(crate) gathered: crate::client_list::Gathered,
    /// Work cut into portions: one is done a turn, not before its instant.
    pub(crate) chores: VecDeque<(Instant, crate::client_list::Chore)>,
    /// This thread's interpreters.
    pub(crate) scripting: crate::scripting::Interpreters,
    net_before: net::Stats,
    /// Replies that wait for the log.
    pub(crate) held: crate::aof::hold::Held,
    /// It replays a log: nothing is left to other threads.
    pub(crate) is_replaying: bool,
    /// Its connections to replicas.
    pub(crate) replicas: Vec<(ConnId, Arc<crate::replication::Replica>)>,
    /// Where its last recorded command ended in the journal when the present input came.
    pub(crate) appended_before: u64,
}

impl Worker {
    /// A worker of a server.
    pub fn new(index: u16, shared: Arc<Shared>) -> Worker {
        let stats = shared.stats[index as usize].clone();
        let config = shared.config.snapshot();
        let mut worker = Worker {
            index,
            scripting: crate::scripting::Interpreters::new(&shared.scripts),
            stats,
            locks: LockSet::new(shared.keyspace.clone()),
            reply: Reply::new(),
            events: Events::default(),
            settings: crate::settings::of(&config, &shared),
            config,
            routes: exec::route::routes(),
            batch: None,
            later: Vec::new(),
            serving: None,
            to_itself: Vec::new(),
            ready: VecDeque::new(),
            timers: Timers::new(),
            monitors: Vec::new(),
            tracking: WorkerTracking::default(),
            stands_for: None,
            sampler: crate::key_stats::Sampler::default(),
            cron: crate::cron::Cron::new(index),
            ticks_rate: ticks::Rate::get(),
            last_tick: 0,
            turn_began: 0,
            slow_ticks: u64::MAX,
            now_ms: crate::process::now_ms(),
            now_s: 0,
            clock: AccessClock::default(),
            gathered: crate::client_list::Gathered::default(),
            chores: VecDeque::new(),
            net_before: net::Stats::default(),
            held: crate::aof::hold::Held::default(),
            is_replaying: false,
            replicas: Vec::new(),
            appended_before: 0,
            shared,
        };
        worker.adopt_config();
        worker.set_time(worker.now_ms);
        worker
    }

    /// Takes over a changed configuration.
    pub fn adopt_config(&mut self) {
        self.config = self.shared.config.snapshot();
        self.settings = crate::settings::of(&self.config, &self.shared);
        self.events.wanted = crate::settings::wanted_notifications(&self.config);
        let journal = &self.shared.keyspace.journal;
        journal.set_lazy(Deletion::Expired, self.config.lazyfree_lazy_expire);
        journal.set_lazy(Deletion::Evicted, self.config.lazyfree_lazy_eviction);
        journal.set_lazy(Deletion::Implied, self.config.lazyfree_lazy_server_del);
        self.slow_ticks = match u64::try_from(self.config.slowlog_log_slower_than) {
            Ok(microseconds) => microseconds.saturating_mul(ticks::per_microsecond()),
            Err(_) => u64::MAX,
        };
        let threshold_ms = u64::try_from(self.config.latency_monitor_threshold).unwrap_or(0);
        if threshold_ms > 0 {
            self.slow_ticks = self.slow_ticks.min(threshold_ms.saturating_mul(1000 * ticks::per_microsecond()));
        }
    }

    /// Takes the loop's time and a changed configuration over; once a turn or batch.
    #[inline]
    pub(crate) fn begin(&mut self, now_ms: i64) {
        if self.shared.config.version() != self.config.version {
            self.adopt_config();
            self.set_time(now_ms);
        } else if now_ms != self.now_ms {
            self.set_time(now_ms);
        }
    }

    fn set_time(&mut self, now_ms: i64) {
        self.now_ms = now_ms;
        let lfu = self.settings.policy.is_lfu();
        #[allow(clippy::cast_sign_loss)]
        let (log_factor, decay) = (self.config.lfu_log_factor as u32, self.config.lfu_decay_time as u32);
        self.clock = AccessClock::at(now_ms, lfu, log_factor, decay);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        {
            self.now_s = (now_ms / 1000) as u32;
        }
    }

    /// The place of a connection of this worker.
    pub(crate) fn subscriber(&self, conn: ConnId) -> Subscriber {
        Subscriber { worker: self.index, conn }
    }

    /// Adds this thread's counts to the shared counters.
    #[inline]
    pub(crate) fn flush_counts(&mut self) {
        // Most of them are zero most of the time, which is cheaper to see than to add.
        for (counter, count) in [
            (&self.stats.hits, &mut self.events.hits),
            (&self.stats.misses, &mut self.events.misses),
            (&self.stats.expired, &mut self.events.expired),
            (&self.stats.expired_fields, &mut self.events.expired_fields),
            (&self.stats.evicted, &mut self.events.evicted),
            (&self.stats.dirty, &mut self.events.dirty),
        ] {
            if *count != 0 {
                counter.add(std::mem::take(count));
            }
        }
    }

    /// Publishes a message. Every worker gets its clients' part by mailbox, this one too, so that messages reach a client
    /// in the order of their PUBLISH commands, wherever these run. The client being served gets its own after the reply.
    pub(crate) fn publish(&mut self, shard: bool, channel: &[u8], payload: &[u8]) -> usize {
        let shared = self.shared.clone();
        let (me, serving) = (self.index, self.serving);
        let to_itself = &mut self.to_itself;
        shared.pubsub.publish(shard, channel, payload, |worker, mut delivery| {
            if worker == me
                && let Some(id) = serving
                && let Some(at) = delivery.conns.iter().position(|conn| *conn == id)
            {
                delivery.conns.remove(at);
                to_itself.push(delivery.clone());
            }
            if !delivery.conns.is_empty() {
                shared.post(worker, Message::Deliver(delivery));
            }
        })
    }

    /// Ends serving a client: what it published to itself goes behind its reply, as in Redis.
    pub(crate) fn end_serving(&mut self) {
        self.serving = None;
        for delivery in std::mem::take(&mut self.to_itself) {
            write_delivery(&mut self.reply, &delivery);
        }
    }

    fn deliver(&mut self, conns: &mut Conns<Worker>, delivery: &Delivery) {
        let mut resp2: Option<Vec<u8>> = None;
        let mut resp3: Option<Vec<u8>> = None;
        for conn in &delivery.conns {
            let Some(session) = conns.state_mut(*conn) else { continue };
            let (proto, text) = match session.proto {
                Proto::Resp2 => (Proto::Resp2, &mut resp2),
                Proto::Resp3 => (Proto::Resp3, &mut resp3),
            };
            let bytes = text.get_or_insert_with(|| {
                let mut reply = Reply::with_buffer(Vec::new(), proto);
                write_delivery(&mut reply, delivery);
                reply.take()
            });
            conns.write(*conn, bytes);
        }
    }

    /// Does what waited for the connections.
    fn run_later(&mut self, conns: &mut Conns<Worker>) -> bool {
        let mut retry = false;
        let mut round = 0;
        while !self.later.is_empty() && round < 64 {
            round += 1;
            for item in std::mem::take(&mut self.later) {
                match item {
                    Later::Resume(conn, reply) => {
                        conns.write_owned(conn, reply);
                        conns.resume(conn);
                    }
                    Later::Retry(conn) => {
                        retry = true;
                        conns.resume(conn);
                    }
                    Later::Close(conn, flush) => conns.close(conn, flush),
                    Later::Write(conn, bytes) => {
                        conns.write_owned(conn, bytes);
                    }
                }
            }
        }
        retry
    }

    /// A connection whose client was disconnected: its registrations go.
    fn forget(&mut self, id: ConnId, session: &mut Session) {
        let subscriber = self.subscriber(id);
        if session.state.has(State::MONITOR) {
            self.monitors.retain(|other| *other != id);
            self.shared.monitors.fetch_sub(1, Ordering::SeqCst);
        }
        self.drop_client_lines(id);
        if session.state.has(State::REPLICA) {
            self.replica_gone(id);
        }
        self.stop_tracking(id, session);
        if let Some(move_id) = session.extra.as_ref().and_then(|extra| extra.importing) {
            let worker = self.index;
            self.shared.control(move |control| crate::cluster::incoming::connection_lost(control, move_id, worker, id));
        }
        if session.extra.is_some() {
            self.unwatch_all(session);
            self.abandon_block(session);
        }
        if let Some(extra) = &mut session.extra {
            for (kind, names) in [
                (Kind::Channel, &mut extra.channels),
                (Kind::Pattern, &mut extra.patterns),
                (Kind::Shard, &mut extra.shard_channels),
            ] {
                for name in names.drain(..) {
                    self.shared.pubsub.unsubscribe(kind, &name, subscriber);
                }
            }
        }
    }
}

impl Worker {
    /// Notes when a turn's first work begins, for the time it takes in all.
    #[inline]
    pub(crate) fn begin_turn(&mut self, tick: u64) {
        if self.turn_began == 0 {
            self.turn_began = tick;
        }
    }

    /// Takes the loop's counters over and measures the turn's work: what lies between its first command or message and
    /// now. By ticks, since a reading of the clock in every turn is a per cent of a request that comes alone.
    fn note_turn(&mut self, cx: &Context<Message>) {
        let (now, before) = (*cx.stats(), self.net_before);
        self.net_before = now;
        self.stats.reads.add(now.reads - before.reads);
        self.stats.writes.add(now.writes - before.writes);
        self.stats.bytes_in.add(now.read_bytes - before.read_bytes);
        self.stats.bytes_out.add(now.written_bytes - before.written_bytes);
        self.stats.timers.set(self.timers.len() as u64);
        let began = std::mem::take(&mut self.turn_began);
        if began != 0 {
            self.stats.turn_us.add(self.ticks_rate.microseconds(ticks::now().wrapping_sub(began)));
        }
    }
}

impl Service for Worker {
    type State = Session;
    type Message = Message;

    fn accepted(&mut self, cx: &mut Context<Message>, _id: ConnId, peer: &Peer) -> Result<Session, Vec<u8>> {
        self.begin(i64::try_from(cx.now_ms()).unwrap_or(i64::MAX));
        self.stats.connections.add(1);
        let clients = self.shared.clients.fetch_add(1, Ordering::SeqCst) + 1;
        if let Err(refusal) = crate::clients::admit(self, peer, clients) {
            self.shared.clients.fetch_sub(1, Ordering::SeqCst);
            self.stats.rejected.add(1);
            return Err(refusal);
        }
        self.stats.clients.add(1);
        let id = ClientId(self.shared.client_ids.fetch_add(1, Ordering::Relaxed) + 1);
        let authenticated = !self.shared.acl.default_needs_password();
        Ok(Session::new(id, self.now_s, authenticated, peer.tcp()))
    }

    fn handshake_failed(&mut self, _cx: &mut Context<Message>, peer: Option<Peer>, local: Option<Peer>, why: &str) {
        let name = |end: Option<Peer>| match end {
            Some(Peer::Tcp(address)) => {
                std::net::SocketAddr::new(address.ip().to_canonical(), address.port()).to_string()
            }
            _ => "?:0".to_owned(),
        };
        crate::log!(
            crate::process::log::Level::Warning,
            "Error accepting a client connection: {why} (addr={} laddr={})",
            name(peer),
            name(local)
        );
    }

    fn data(
        &mut self,
        cx: &mut Context<Message>,
        id: ConnId,
        session: &mut Session,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Flow {
        self.begin(i64::try_from(cx.now_ms()).unwrap_or(i64::MAX));
        let empty = self.reply.swap_buffer(std::mem::take(out));
        self.reply.set_proto(session.proto);
        let before = self.locks.effects.appended_to();
        self.appended_before = before;
        let flow = exec::run_input(self, id, session, input);
        self.broadcast_changes();
        let upto = self.locks.effects.appended_to();
        if upto != before {
            session.written_to = upto;
            if self.shared.aof.is_fed() {
                self.hold_replies(cx, id, upto);
            }
        }
        *out = self.reply.swap_buffer(empty);
        self.flush_counts();
        flow
    }

    fn half_closed(&mut self, _cx: &mut Context<Message>, _id: ConnId, session: &mut Session) -> bool {
        // As in Redis: who waits for a key is gone with its side of the connection, but what else a client has sent before
        // is still run, though it may have to wait for a slot, the gate, or the end of a long command.
        session.state.has(State::BLOCKED)
    }

    fn closed(&mut self, _cx: &mut Context<Message>, id: ConnId, mut session: Session, _why: CloseReason) {
        self.forget(id, &mut session);
        self.shared.clients.fetch_sub(1, Ordering::SeqCst);
        self.stats.clients.set(self.stats.clients.get().saturating_sub(1));
    }

    fn message(&mut self, cx: &mut Context<Message>, conns: &mut Conns<Worker>, message: Message) {
        self.begin(i64::try_from(cx.now_ms()).unwrap_or(i64::MAX));
        if self.turn_began == 0 {
            self.begin_turn(ticks::now());
        }
        match message {
            Message::Wake(READY_TOKEN) => self.serve_ready(),
            Message::Wake(token) => conns.resume(ConnId::from_u64(token)),
            Message::Finished(finished) => self.long_command_ended(conns, finished),
            Message::Served { conn, waiter, reply, ticks, upto } => {
                self.client_served(conns, conn, waiter, reply, ticks);
                self.hold_connection(conns, conn, upto);
            }
            Message::Deliver(delivery) => self.deliver(conns, &delivery),
            Message::Write(conn, bytes) => {
                conns.write(conn, &bytes);
            }
            Message::Invalidate(message) => self.take_invalidation(conns, &message),
            Message::Redirected(message) => self.take_redirected(conns, &message),
            Message::Call(call) => call(self, conns),
            Message::Stop => cx.stop(),
        }
        self.broadcast_changes();
        self.flush_counts();
    }

    fn turn(&mut self, cx: &mut Context<Message>, conns: &mut Conns<Worker>) -> Option<Duration> {
        self.begin(i64::try_from(cx.now_ms()).unwrap_or(i64::MAX));
        self.stats.turns.add(1);
        let next_cron = self.run_cron(conns, cx.now(), cx.stats().read_bytes);
        let next_timer = self.fire_timers(conns, cx.now());
        if self.chores.front().is_some_and(|(due, _)| *due <= cx.now())
            && let Some((_, chore)) = self.chores.pop_front()
        {
            chore(self, conns);
        }
        let next_log = if self.shared.aof.is_fed() { self.settle_log(conns, cx.now()) } else { None };
        if !self.replicas.is_empty() {
            self.feed_replicas(conns);
        }
        let mut retry = self.run_later(conns);
        if !self.ready.is_empty() {
            // A slot was busy. Its holder wakes us; that it might not be lost costs one look a turn.
            self.serve_ready();
            retry |= !self.ready.is_empty();
        }
        self.broadcast_changes();
        self.flush_counts();
        self.note_turn(cx);
        let next_cron = match self.chores.front() {
            Some((due, _)) => due.saturating_duration_since(cx.now()).min(next_cron),
            None => next_cron,
        };
        let wait = match next_timer {
            Some(timer) => timer.min(next_cron),
            None => next_cron,
        };
        let wait = next_log.map_or(wait, |next| next.min(wait));
        Some(if retry { Duration::from_millis(1).min(wait) } else { wait })
    }

    fn output_pending(
        &mut self,
        _cx: &mut Context<Message>,
        id: ConnId,
        session: &mut Session,
        pending_bytes: usize,
    ) -> bool {
        crate::clients::keep_with_output(self, id, session, pending_bytes)
    }
}

/// Writes a published message as its subscribers read it.
fn write_delivery(reply: &mut Reply, delivery: &Delivery) {
    match (delivery.kind, &delivery.pattern) {
        (Kind::Pattern, Some(pattern)) => {
            reply.push(4);
            reply.bulk("pmessage");
            reply.bulk(pattern);
        }
        (Kind::Shard, _) => {
            reply.push(3);
            reply.bulk("smessage");
        }
        _ => {
            reply.push(3);
            reply.bulk("message");
        }
    }
    reply.bulk(&delivery.channel);
    reply.bulk(&delivery.payload);
}

/// What a batch tells the loop.
pub(crate) fn flow(consumed: usize, then: Then) -> Flow {
    Flow { consumed, then }
}
