//! One worker: its event loop's service. It owns its clients and its lanes; nothing on the way of a request is shared.
//!
//! ```text
//! client input ──forward──▶ lane.out ──turn──▶ backend
//! backend input ──replies──▶ turn.bytes ──turn──▶ client
//! ```
//!
//! Within a turn of the loop everything is only appended to buffers; [`Worker::turn`](net::Service::turn) sends, once a
//! connection. Where to start reading: `forward.rs`, then `replies.rs`.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use net::{CloseReason, ConnId, Conns, Context, Flow, Peer, Service, Then};
use resp::{Reply, Request};
use server::log;
use server::process::log::Level;
use slab::Slab;

use crate::backend::{Backend, Lane, LaneState};
use crate::client::{Client, NO_CHUNK, Pause, State};
use crate::config::{Config, ReplicaReads};
use crate::forward::KeyPositions;
use crate::pubsub::hub::{Hub, Kind as Listened, Name};
use crate::pubsub::{Listening, Waiting};
use crate::redirect::Retry;
use crate::replies::Answered;
use crate::session::Spare;
use crate::shared::{Shared, WorkerStats};
use crate::slots::{NO_OWNER, SlotMap};
use crate::tasks::Tasks;
use crate::turn::Turn;

/// What a connection is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Conn {
    /// A client, by its place.
    Client(u32),
    /// A connection to a backend, by its lane's place.
    Lane(u32),
}

/// What another thread has a worker do.
pub type Call = Box<dyn FnOnce(&mut Worker, &mut Conns<Worker>) + Send>;

/// Work handed to a worker from elsewhere.
pub enum Message {
    /// Something to do on this worker.
    Call(Call),
    /// Finish what is under way, then end.
    Drain,
}

/// Something to be done with connections once the loop lends them.
pub(crate) enum Later {
    /// A client goes on, if nothing is against it.
    Resume(ConnId),
    /// A client is not read from.
    Pause(ConnId),
    /// A lane gets a connection.
    Open(u32),
}

/// See the module.
pub struct Worker {
    /// Its number.
    pub index: usize,
    /// What it shares with the others.
    pub shared: Arc<Shared>,
    /// Its counters.
    pub stats: Arc<WorkerStats>,
    /// The configuration it follows.
    pub config: Arc<Config>,
    /// Its clients.
    pub clients: Slab<Client>,
    /// Its connections to backends, and those it might have.
    pub lanes: Slab<Lane>,
    /// Backends it has heard of. They stay.
    pub backends: Vec<Backend>,
    by_address: HashMap<SocketAddr, u32>,
    /// The map it follows.
    pub map: Arc<SlotMap>,
    /// Its version.
    pub map_version: u64,
    /// By slot: a place in `backends`, or [`NO_OWNER`].
    pub(crate) owners: Vec<u16>,
    /// The same for reads; empty: as for writes.
    pub(crate) readers: Vec<u16>,
    /// The backend that owns all slots, if one does.
    pub(crate) only_owner: Option<u16>,
    pub(crate) key_positions: &'static KeyPositions,
    /// Away while it is in use.
    pub(crate) request: Request,
    pub(crate) turn: Turn,
    /// Where single replies are written.
    pub(crate) scratch: Reply,
    /// Lanes with something to send.
    pub(crate) dirty_lanes: Vec<u32>,
    pub(crate) later: Vec<Later>,
    /// Connections to be closed behind what they get in this turn; those with `true` when all of it is sent.
    pub(crate) closing: Vec<(ConnId, bool)>,
    pub(crate) retries: Vec<Retry>,
    pub(crate) tasks: Tasks,
    /// Connections that were some client's own and are nobody's now.
    pub(crate) spares: Vec<Spare>,
    /// Who listens to what.
    pub(crate) hub: Hub<(u32, u32)>,
    pub(crate) listening: Listening,
    /// Clients that wait until they listen.
    pub(crate) waiting: Vec<Waiting>,
    /// What is to be subscribed to again at an instant.
    pub(crate) unsettled: Vec<(Instant, Listened, Name)>,
    pub(crate) answered: Answered,
    /// Clients that do not take their output.
    slow: Vec<(u32, u32)>,
    next_serial: u32,
    /// When the turn began.
    pub now: Instant,
    /// Unix seconds then.
    pub now_s: u32,
    /// Unix milliseconds then.
    pub now_ms: u64,
    /// Microseconds since the worker began, which wrap, then.
    pub(crate) now_us: u32,
    began: Instant,
    /// Requests that take so many microseconds are kept in the slow log.
    pub(crate) slow_us: u32,
    next_cron: Instant,
    sweep: usize,
    drain_until: Option<Instant>,
    net_before: net::Stats,
}

/// Time between two looks at deadlines.
const CRON_EVERY: Duration = Duration::from_millis(50);
/// The same while nothing is under way.
const IDLE_CRON_EVERY: Duration = Duration::from_millis(500);
/// Clients looked at in one sweep.
const CLIENTS_PER_SWEEP: usize = 2_000;
/// A lane for another database than 0 is closed after so long without a request.
const LANE_IDLE_LIMIT: Duration = Duration::from_secs(60);
/// Output that a client may have waiting before it has authenticated.
const UNAUTHENTICATED_OUTPUT_BYTES: usize = 1024;
/// Refused for their number.
const TOO_MANY: &[u8] = b"-ERR max number of clients reached\r\n";

impl Worker {
    /// A worker of a proxy.
    pub fn new(index: usize, shared: Arc<Shared>) -> Worker {
        let now = Instant::now();
        let mut worker = Worker {
            index,
            stats: shared.stats.get(index).cloned().unwrap_or_default(),
            config: shared.config.snapshot(),
            clients: Slab::new(),
            lanes: Slab::new(),
            backends: Vec::new(),
            by_address: HashMap::new(),
            map: shared.map.load(),
            map_version: 0,
            owners: Vec::new(),
            readers: Vec::new(),
            only_owner: None,
            key_positions: crate::forward::key_positions(),
            request: Request::new(),
            turn: Turn::default(),
            scratch: Reply::new(),
            dirty_lanes: Vec::new(),
            later: Vec::new(),
            closing: Vec::new(),
            retries: Vec::new(),
            tasks: Tasks::default(),
            spares: Vec::new(),
            hub: Hub::default(),
            listening: Listening::default(),
            waiting: Vec::new(),
            unsettled: Vec::new(),
            answered: Answered::default(),
            slow: Vec::new(),
            next_serial: 0,
            now,
            now_s: 0,
            now_ms: 0,
            now_us: 0,
            began: now,
            slow_us: u32::MAX,
            next_cron: now,
            sweep: 0,
            drain_until: None,
            net_before: net::Stats::default(),
            shared,
        };
        worker.adopt_map();
        worker.adopt_config();
        worker
    }

    fn adopt_config(&mut self) {
        let before = (self.config.replica_reads, self.config.zone.clone());
        self.config = self.shared.config.snapshot();
        if before != (self.config.replica_reads, self.config.zone.clone()) {
            // The map is looked at anew.
            self.map_version = 0;
        }
        // Negative: none is slow enough.
        self.slow_us = u32::try_from(self.config.base.slowlog_log_slower_than).unwrap_or(u32::MAX);
    }

    /// Takes the loop's time, and a changed configuration or map, over.
    #[inline]
    fn begin(&mut self, cx: &Context<Message>) {
        if self.now != cx.now() {
            self.now = cx.now();
            self.now_ms = cx.now_ms();
            self.now_us = micros(self.now.saturating_duration_since(self.began));
        }
        if self.shared.config.version() != self.config.version {
            self.adopt_config();
        }
        if self.shared.map.version() != self.map_version {
            self.adopt_map();
        }
    }

    #[cold]
    fn adopt_map(&mut self) {
        // The version first: a map that comes in between is taken once more.
        self.map_version = self.shared.map.version();
        self.map = self.shared.map.load();
        let map = self.map.clone();
        let places: Vec<u16> = map
            .backends
            .iter()
            .map(|backend| u16::try_from(self.backend_at(&backend.name, backend.address)).unwrap_or(NO_OWNER))
            .collect();
        let place_of = |owner: &u16| places.get(usize::from(*owner)).copied().unwrap_or(NO_OWNER);
        self.owners = map.owners.iter().map(place_of).collect();
        self.only_owner = map.only_owner().map(|owner| place_of(&owner)).filter(|place| *place != NO_OWNER);
        self.choose_readers();
        self.settle_all();
    }

    /// Chooses for each group where this worker's reads go.
    pub(crate) fn choose_readers(&mut self) {
        let map = self.map.clone();
        let policy = self.config.replica_reads;
        if policy == ReplicaReads::Never || map.replicas.iter().all(Vec::is_empty) {
            self.readers = Vec::new();
            return;
        }
        let own_zone = self.config.zone.clone();
        let mut chosen = Vec::new();
        for (number, backend) in map.backends.iter().enumerate() {
            let primary = self.backend_at(&backend.name, backend.address);
            let replicas = map.replicas.get(number).map(Vec::as_slice).unwrap_or_default();
            let wanted = replicas.iter().filter(|replica| {
                policy == ReplicaReads::Prefer || replica.zone.as_ref().is_some_and(|zone| zone.as_bytes() == own_zone)
            });
            let places: Vec<u32> =
                wanted.map(|replica| self.backend_at(&replica.backend.name, replica.backend.address)).collect();
            let usable: Vec<u32> = places.into_iter().filter(|place| !self.is_shut(*place)).collect();
            // Workers begin at different ones.
            let place = usable.get(self.index % usable.len().max(1)).copied().unwrap_or(primary);
            chosen.push(u16::try_from(place).unwrap_or(NO_OWNER));
        }
        self.readers =
            map.owners.iter().map(|owner| chosen.get(usize::from(*owner)).copied().unwrap_or(NO_OWNER)).collect();
        // Every request looks up where it goes.
        self.only_owner = None;
    }

    /// Whether a backend's lanes have failed.
    fn is_shut(&self, backend: u32) -> bool {
        let is_down = |lane: &Lane| matches!(lane.state, LaneState::Down(_) | LaneState::Probing(_));
        self.lanes.iter().any(|(_, lane)| lane.backend == backend && lane.owner.is_none() && is_down(lane))
    }

    /// The place of a backend, which is added when it is new.
    pub fn backend_at(&mut self, name: &str, address: SocketAddr) -> u32 {
        if let Some(place) = self.by_address.get(&address) {
            return *place;
        }
        let place = u32::try_from(self.backends.len()).unwrap_or(u32::MAX);
        let backend = Backend::new(name.to_owned(), address);
        self.stats.backends.lock().push((name.to_owned(), backend.histogram.clone()));
        self.backends.push(backend);
        self.by_address.insert(address, place);
        place
    }

    /// The worker looks at what is delayed at this instant at the latest.
    pub(crate) fn wake_at(&mut self, due: Instant) {
        self.next_cron = self.next_cron.min(due);
    }

    /// Keeps a client from being read, for a reason.
    pub fn pause(&mut self, place: u32, reason: Pause) {
        let Some(client) = self.clients.get_mut(place as usize) else { return };
        if !client.pauses.any() {
            self.later.push(Later::Pause(client.conn));
        }
        client.pauses.add(reason);
    }

    /// A reason is over; the client goes on if it was the last.
    pub fn unpause(&mut self, place: u32, reason: Pause) {
        let Some(client) = self.clients.get_mut(place as usize) else { return };
        if client.pauses.has(reason) {
            client.pauses.remove(reason);
            if !client.pauses.any() {
                self.later.push(Later::Resume(client.conn));
            }
        }
    }

    /// The client with this place and serial, if it is still there.
    #[inline]
    pub fn client(&mut self, place: u32, serial: u32) -> Option<&mut Client> {
        self.clients.get_mut(place as usize).filter(|client| client.serial == serial)
    }

    /// Something was answered to a client that waits for that.
    #[cold]
    pub(crate) fn after_answers(&mut self, place: u32) {
        let limit = self.config.client_pipeline_limit;
        let Some(client) = self.clients.get_mut(place as usize) else { return };
        let in_flight = client.order.in_flight();
        if in_flight == 0 && client.order.is_empty() {
            if client.state.has(State::CLOSING) {
                self.closing.push((client.conn, true));
                return;
            }
            self.unpause(place, Pause::Drain);
        }
        if in_flight <= limit / 2 {
            self.unpause(place, Pause::InFlight);
        }
    }

    /// Whether something has to be looked at when a client was answered.
    #[inline]
    pub(crate) fn waits_for_answers(client: &Client) -> bool {
        client.pauses.any() || client.state.has(State::CLOSING)
    }

    fn send_lanes(&mut self, conns: &mut Conns<Worker>) {
        let mut dirty = std::mem::take(&mut self.dirty_lanes);
        for place in dirty.drain(..) {
            let Some(lane) = self.lanes.get_mut(place as usize) else { continue };
            lane.is_dirty = false;
            match (lane.state, lane.conn) {
                (LaneState::Open, Some(conn)) if lane.has_output() => {
                    lane.send(self.now, |bytes| {
                        conns.send(conn, bytes);
                    });
                    self.next_cron = self.next_cron.min(self.now + CRON_EVERY);
                }
                _ => {}
            }
        }
        self.dirty_lanes = dirty;
    }

    fn send_turn(&mut self, conns: &mut Conns<Worker>) {
        if self.turn.is_empty() {
            return;
        }
        let pause_at = usize::try_from(self.config.client_output_pause).unwrap_or(usize::MAX);
        let mut turn = std::mem::take(&mut self.turn);
        turn.flush(conns, |conns, place, conn| {
            let Some(client) = self.clients.get_mut(place as usize).filter(|client| client.conn == conn) else {
                return;
            };
            client.first_chunk = NO_CHUNK;
            client.last_chunk = NO_CHUNK;
            if conns.pending_output(conn) > pause_at && !client.pauses.has(Pause::Output) {
                self.slow.push((place, client.serial));
                if !client.pauses.any() {
                    conns.pause(conn);
                }
                client.pauses.add(Pause::Output);
            }
        });
        self.turn = turn;
    }

    /// Lets those go on who have taken their output.
    fn look_at_slow(&mut self, conns: &mut Conns<Worker>) {
        let resume_at = usize::try_from(self.config.client_output_pause / 2).unwrap_or(usize::MAX);
        let mut slow = std::mem::take(&mut self.slow);
        slow.retain(|(place, serial)| {
            let Some(client) = self.client(*place, *serial) else { return false };
            let conn = client.conn;
            if conns.pending_output(conn) > resume_at {
                return true;
            }
            self.unpause(*place, Pause::Output);
            false
        });
        slow.append(&mut self.slow);
        self.slow = slow;
    }

    fn run_later(&mut self, conns: &mut Conns<Worker>) {
        while !self.later.is_empty() {
            for item in std::mem::take(&mut self.later) {
                match item {
                    Later::Resume(conn) => {
                        let is_free = match conns.state(conn) {
                            Some(Conn::Client(place)) => {
                                self.clients.get(*place as usize).is_some_and(|client| !client.pauses.any())
                            }
                            _ => false,
                        };
                        if is_free {
                            conns.resume(conn);
                        }
                    }
                    Later::Pause(conn) => conns.pause(conn),
                    Later::Open(lane) => self.connect(conns, lane),
                }
            }
        }
    }

    /// Deadlines, limits and what else is looked at now and then.
    fn run_cron(&mut self, conns: &mut Conns<Worker>) {
        self.check_lanes();
        self.run_retries();
        self.resettle();
        self.sweep_spares();
        self.sweep_clients(conns);
        let is_busy =
            !self.retries.is_empty() || !self.slow.is_empty() || self.lanes.iter().any(|(_, lane)| !lane.is_quiet());
        self.next_cron = self.now + if is_busy || self.drain_until.is_some() { CRON_EVERY } else { IDLE_CRON_EVERY };
        let unsettled = self.unsettled.iter().map(|(due, _, _)| *due);
        self.next_cron = self.tasks.next_due().into_iter().chain(unsettled).fold(self.next_cron, Instant::min);
        if let Some(until) = self.drain_until {
            let is_waiting = |place: usize| self.is_blocked(u32::try_from(place).unwrap_or(u32::MAX));
            let is_done = self.clients.iter().all(|(place, client)| client.order.is_empty() || is_waiting(place));
            if is_done || until <= self.now {
                self.drain_until = Some(self.now);
            }
        }
    }

    /// Closes lanes of other databases that nobody uses.
    pub(crate) fn is_stale(&self, lane: &Lane) -> bool {
        lane.owner.is_none()
            && lane.kind.db() != 0
            && lane.in_flight() == 0
            && lane.state == LaneState::Open
            && self.now.saturating_duration_since(lane.used) > LANE_IDLE_LIMIT
    }

    /// Closes clients that are idle for `timeout` seconds, over a limit, or whose user is gone; a part of them at a time.
    fn sweep_clients(&mut self, conns: &mut Conns<Worker>) {
        let base = &self.config.base;
        let timeout = u32::try_from(base.timeout).unwrap_or(0);
        let query_limit = base.client_query_buffer_limit;
        let now_s = self.now_s;
        let mut close = Vec::new();
        let Worker { clients, config, stats, .. } = self;
        let next = conns.visit(self.sweep, CLIENTS_PER_SWEEP, |conn, state, kept| {
            let Conn::Client(place) = *state else { return };
            let Some(client) = clients.get_mut(place as usize) else { return };
            if kept.input_bytes > query_limit {
                stats.query_limit_disconnections.add(1);
                close.push(conn);
            } else if kept.output_bytes > 0 && is_over_output(config, client, kept.output_bytes, now_s) {
                stats.output_limit_disconnections.add(1);
                close.push(conn);
            } else {
                let is_idle = timeout > 0
                    && client.order.is_empty()
                    && !client.state.has(State::SUBSCRIBED)
                    && now_s.saturating_sub(client.last_active_s) > timeout;
                if is_idle || client.user.as_ref().is_some_and(|user| user.is_deleted()) {
                    close.push(conn);
                }
            }
        });
        self.sweep = next.unwrap_or(0);
        for conn in close {
            conns.close(conn, false);
        }
    }

    fn drain(&mut self, conns: &mut Conns<Worker>) {
        conns.close_listeners();
        let seconds = u64::try_from(self.config.base.shutdown_timeout).unwrap_or(0);
        self.drain_until = Some(self.now + Duration::from_secs(seconds));
        self.next_cron = self.now;
    }

    fn note_net(&mut self, cx: &Context<Message>) {
        let (now, before) = (*cx.stats(), self.net_before);
        self.net_before = now;
        self.stats.bytes_in.add(now.read_bytes - before.read_bytes);
        self.stats.bytes_out.add(now.written_bytes - before.written_bytes);
    }
}

/// Whether a client's unsent output is above `client-output-buffer-limit`.
fn is_over_output(config: &Config, client: &mut Client, pending: usize, now_s: u32) -> bool {
    use server::config::ClientClass;
    let class = if client.state.has(State::SUBSCRIBED) { ClientClass::Pubsub } else { ClientClass::Normal };
    let limit = config.base.client_output_buffer_limit.of(class);
    let pending = pending as u64;
    if limit.hard_bytes > 0 && pending >= limit.hard_bytes {
        return true;
    }
    if limit.soft_bytes == 0 || pending < limit.soft_bytes {
        client.soft_limit_since_s = 0;
        return false;
    }
    if client.soft_limit_since_s == 0 {
        client.soft_limit_since_s = now_s;
        return false;
    }
    u64::from(now_s.saturating_sub(client.soft_limit_since_s)) > limit.soft_seconds
}

impl Service for Worker {
    type State = Conn;
    type Message = Message;

    fn accepted(&mut self, cx: &mut Context<Message>, id: ConnId, peer: &Peer) -> Result<Conn, Vec<u8>> {
        self.begin(cx);
        let clients = self.shared.clients.fetch_add(1, Ordering::SeqCst) + 1;
        let base = &self.config.base;
        let refusal = if clients > base.maxclients as usize {
            Some(TOO_MANY)
        } else if base.protected_mode
            && self.shared.acl.default_has_no_password()
            && peer.tcp().is_some_and(|address| !address.ip().to_canonical().is_loopback())
        {
            Some(server::clients::PROTECTED.as_bytes())
        } else {
            None
        };
        if let Some(refusal) = refusal {
            self.shared.clients.fetch_sub(1, Ordering::SeqCst);
            self.stats.rejected.add(1);
            return Err(refusal.to_vec());
        }
        self.stats.connections.add(1);
        self.stats.clients.add(1);
        self.next_serial = self.next_serial.wrapping_add(1);
        let number = self.shared.client_ids.fetch_add(1, Ordering::Relaxed) + 1;
        let mut client = Client::new(id, number, self.next_serial, peer.tcp(), self.now_s);
        if self.shared.acl.default_needs_password() {
            client.state.insert(State::UNAUTHENTICATED);
        }
        let place = self.clients.insert(client);
        Ok(Conn::Client(u32::try_from(place).unwrap_or(u32::MAX)))
    }

    fn connected(&mut self, cx: &mut Context<Message>, _id: ConnId, state: &mut Conn, result: io::Result<()>) {
        self.begin(cx);
        if let (Conn::Lane(place), Err(error)) = (*state, result) {
            self.fail_lane(place, &format!("is not reachable: {}", server::process::error_text(&error)));
        }
    }

    fn data(
        &mut self,
        cx: &mut Context<Message>,
        _id: ConnId,
        state: &mut Conn,
        input: &[u8],
        _out: &mut Vec<u8>,
    ) -> Flow {
        self.begin(cx);
        match *state {
            Conn::Client(place) => self.client_data(place, input),
            Conn::Lane(place) => self.lane_data(place, input),
        }
    }

    fn half_closed(&mut self, _cx: &mut Context<Message>, _id: ConnId, state: &mut Conn) -> bool {
        // What it has sent before is still served, but nobody waits for a key on behalf of a client that is gone.
        let Conn::Client(place) = *state else { return false };
        self.is_blocked(place)
    }

    fn awaits_answers(&mut self, _cx: &mut Context<Message>, _id: ConnId, state: &mut Conn) -> bool {
        let Conn::Client(place) = *state else { return false };
        let Some(client) = self.clients.get_mut(place as usize) else { return false };
        if client.order.is_empty() && client.first_chunk == NO_CHUNK {
            return false;
        }
        client.state.insert(State::CLOSING);
        if client.order.is_empty() {
            self.closing.push((client.conn, true));
        }
        true
    }

    fn closed(&mut self, _cx: &mut Context<Message>, id: ConnId, state: Conn, why: CloseReason) {
        match state {
            Conn::Client(place) => {
                if self.clients.get(place as usize).is_some_and(|client| client.conn == id) {
                    let mut client = self.clients.remove(place as usize);
                    self.end_session(place, &mut client);
                    self.shared.clients.fetch_sub(1, Ordering::SeqCst);
                    self.stats.clients.set(self.stats.clients.get().saturating_sub(1));
                }
            }
            Conn::Lane(place) => self.lane_closed(place, id, why),
        }
    }

    fn message(&mut self, cx: &mut Context<Message>, conns: &mut Conns<Worker>, message: Message) {
        self.begin(cx);
        match message {
            Message::Call(call) => call(self, conns),
            Message::Drain => self.drain(conns),
        }
    }

    fn turn(&mut self, cx: &mut Context<Message>, conns: &mut Conns<Worker>) -> Option<Duration> {
        self.begin(cx);
        if self.now >= self.next_cron {
            self.now_s = u32::try_from(self.now_ms / 1000).unwrap_or(u32::MAX);
            self.run_cron(conns);
        }
        if !self.slow.is_empty() {
            self.look_at_slow(conns);
        }
        self.run_tasks();
        self.run_later(conns);
        self.send_lanes(conns);
        self.send_turn(conns);
        if !self.later.is_empty() || self.tasks.is_ready() {
            self.run_tasks();
            self.run_later(conns);
            self.send_lanes(conns);
            self.send_turn(conns);
        }
        for (conn, after_flush) in self.closing.drain(..) {
            conns.close(conn, after_flush);
        }
        self.note_net(cx);
        if self.drain_until.is_some_and(|until| until <= self.now) {
            log!(Level::Debug, "worker {} has nothing left to do", self.index);
            cx.stop();
        }
        let is_hurried = self.tasks.is_ready() || !self.later.is_empty();
        Some(if is_hurried { Duration::ZERO } else { self.next_cron.saturating_duration_since(self.now) })
    }

    fn output_pending(
        &mut self,
        _cx: &mut Context<Message>,
        _id: ConnId,
        state: &mut Conn,
        pending_bytes: usize,
    ) -> bool {
        let Conn::Client(place) = *state else { return true };
        let Worker { clients, config, stats, now_s, .. } = self;
        let Some(client) = clients.get_mut(place as usize) else { return true };
        let is_over = (client.state.has(State::UNAUTHENTICATED) && pending_bytes > UNAUTHENTICATED_OUTPUT_BYTES)
            || is_over_output(config, client, pending_bytes, *now_s);
        if is_over {
            stats.output_limit_disconnections.add(1);
            log!(
                Level::Warning,
                "Client id={} omem={pending_bytes} scheduled to be closed ASAP for overcoming of output buffer limits.",
                client.id
            );
        }
        !is_over
    }

    fn accept_failed(&mut self, _cx: &mut Context<Message>, error: io::Error) {
        log!(Level::Warning, "Error accepting a client: {}", server::process::error_text(&error));
    }
}

/// A duration in microseconds, cut to 32 bits: differences of less than an hour are right.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "cut on purpose")]
fn micros(duration: Duration) -> u32 {
    (duration.as_secs() as u32).wrapping_mul(1_000_000).wrapping_add(duration.subsec_micros())
}

/// What a client's or lane's data tells the loop.
#[inline]
pub(crate) fn flow(consumed: usize, then: Then) -> Flow {
    Flow { consumed, then }
}
