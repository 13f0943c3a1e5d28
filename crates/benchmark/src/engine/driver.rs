//! One load thread: a [`Load`] on the event loop of `net`.
//!
//! Connections are opened a limited number at a time, because a listen backlog is short and a
//! dropped SYN costs a second; the next is opened as soon as one stands. After all stand, the
//! thread reports ready and waits for the others.
//!
//! The loop sends a reply's successor directly from the call that delivered the reply; only first
//! requests and scheduled ones go the longer way through [`Conns::write`].

use std::{
    collections::{HashMap, VecDeque},
    io,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use net::{Builder, CloseReason, ConnId, Conns, Context, Flow, Peer, Service, SocketOptions, Then};
use nix::time::{ClockId, clock_gettime};

use super::{
    Settings, Shared, State, ThreadResult, ThreadTime,
    client::{Client, Phase, Seat},
    clients_of,
    load::{Load, Step},
    source::Source,
};
use crate::{
    extended::OnError,
    places::SpareSources,
    preflight::{Address, reason},
    run::tell,
    sys,
};

mod opening;

/// Runs the load of one thread to its end. The error is a text for stderr.
pub(super) fn run(
    shared: Arc<Shared>,
    settings: &Arc<Settings>,
    source: Source,
    thread: usize,
) -> Result<ThreadResult, String> {
    pin(settings, thread);
    if settings.places.private_tables {
        sys::use_private_table()
            .map_err(|error| format!("Error: a descriptor table for each thread: {}", reason(&error)))?;
    }
    let loop_failed = |error: io::Error| format!("Error: event loop: {}", reason(&error));
    let load = Load::new(Arc::clone(&shared), Arc::clone(settings), source, thread);
    let seats: VecDeque<Opening> = clients_of(settings, thread)
        .into_iter()
        .map(|(index, server)| Opening { due: 0, seat: seat_of(settings, &load, index, server) })
        .collect();
    let driver = Driver {
        load,
        thread,
        clients: seats.len(),
        to_open: seats,
        resting: Vec::new(),
        recorded: Vec::new(),
        conn_of: HashMap::new(),
        rested_since: None,
        opening: 0,
        spare_sources: opening::spare_sources(settings),
        spare_source: None,
        opened: 0,
        connected: Vec::new(),
        ready: Vec::new(),
        ready_count: 0,
        announced: false,
        started: false,
        finished_clients: 0,
        free: VecDeque::new(),
        scratch: Vec::new(),
        connect_error: None,
        next_timeout_check: 0,
        time_at_start: ThreadTime::default(),
        started_at: 0,
        done: None,
        hold_until: 0,
        settings: Arc::clone(settings),
        shared,
    };
    let builder: Builder<Driver> = Builder::new().map_err(loop_failed)?;
    let driver = builder.options(socket_options(settings)).run(driver).map_err(loop_failed)?;
    Ok(driver.into_result())
}

/// No keep-alive: a test is short and busy. On loopback nothing is ever lost or congested, so the plainest congestion
/// control is taken: the elaborate ones cost the generator some percent of its CPU and pace what it sends.
fn socket_options(settings: &Settings) -> SocketOptions {
    let is_loopback = settings
        .servers
        .iter()
        .all(|server| matches!(&server.address, Address::Tcp(address) if address.ip().is_loopback()));
    SocketOptions { nodelay: true, keepalive: None, congestion: is_loopback.then_some("reno") }
}

#[derive(Debug)]
struct Driver {
    load: Load,
    shared: Arc<Shared>,
    settings: Arc<Settings>,
    thread: usize,
    /// Connections this thread is to keep.
    clients: usize,
    to_open: VecDeque<Opening>,
    opening: usize,
    /// Local addresses for when the ports of the others are all in use, and the one that was taken of them.
    spare_sources: SpareSources,
    spare_source: Option<std::net::IpAddr>,
    /// Connections begun, for their rate and for the choice of their local addresses.
    opened: u64,
    /// Connections whose next batch waits for the end of a rest.
    resting: Vec<ConnId>,
    /// Recorded commands that are still to be sent, the one due first at the end (`--replay` with its own pace).
    recorded: Vec<Due>,
    /// The connections of the clients that recorded commands belong to.
    conn_of: HashMap<u32, ConnId>,
    /// When the rest under way began.
    rested_since: Option<u64>,
    /// Connections that have just come to stand.
    connected: Vec<ConnId>,
    /// Connections that have just become able to send.
    ready: Vec<ConnId>,
    ready_count: usize,
    announced: bool,
    started: bool,
    finished_clients: usize,
    /// Connections with room for a scheduled request, an entry for each place.
    free: VecDeque<ConnId>,
    scratch: Vec<u8>,
    connect_error: Option<String>,
    next_timeout_check: u64,
    time_at_start: ThreadTime,
    started_at: u64,
    done: Option<ThreadTime>,
    /// When the connections may go, after the thread is done.
    hold_until: u64,
}

/// A connection to be made.
#[derive(Debug, Clone, Copy)]
struct Opening {
    /// Not before this instant.
    due: u64,
    seat: Seat,
}

/// A recorded command: when it is due, its client and its place in the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    due: u64,
    entry: u64,
    client: u32,
}

/// What the client with this number begins with.
fn seat_of(settings: &Settings, load: &Load, index: usize, server: u32) -> Seat {
    let index = u32::try_from(index).unwrap_or(u32::MAX);
    let (mut quota, mut place) = (settings.per_client.unwrap_or(0), 0);
    if let Some(range) = load.recorded_range(index) {
        (quota, place) = (range.end - range.start, range.start);
    } else if settings.has_client_keys {
        place = settings.first_key_of_client(index);
    }
    Seat { server, index, quota, place, checks: settings.options.extended.verify }
}

impl Service for Driver {
    type State = Client;
    type Message = ();

    fn accepted(&mut self, _cx: &mut Context<()>, _id: ConnId, _peer: &Peer) -> Result<Client, Vec<u8>> {
        Err(Vec::new())
    }

    fn connected(&mut self, _cx: &mut Context<()>, id: ConnId, _client: &mut Client, result: io::Result<()>) {
        self.opening = self.opening.saturating_sub(1);
        match result {
            Ok(()) => self.connected.push(id),
            Err(error) => self.connect_error = Some(reason(&error)),
        }
    }

    fn data(&mut self, cx: &mut Context<()>, id: ConnId, client: &mut Client, input: &[u8], out: &mut Vec<u8>) -> Flow {
        let now = self.shared.now();
        let was_greeting = client.phase == Phase::Greeting;
        let flights = client.flights.len();
        let (consumed, step) = self.load.input(client, now, input, out);
        match step {
            Step::Going => {}
            Step::Rest => self.resting.push(id),
            Step::Reconnect => {
                self.replace(client, now);
                return Flow { consumed, then: Then::CloseNow };
            }
            Step::Abort(text) => {
                self.shared.fail(&text);
                cx.stop();
                return Flow { consumed, then: Then::CloseNow };
            }
        }
        if client.phase == Phase::Finished {
            self.finished_clients += 1;
            client.phase = Phase::Retired;
        } else if was_greeting && client.phase == Phase::Idle {
            self.ready.push(id);
        }
        if flights > client.flights.len() {
            self.refill(id, client, flights - client.flights.len(), now, out);
        }
        let then = match input.len() - consumed {
            0 => Then::Continue,
            _ => Then::NeedMore(client.skip.need()),
        };
        Flow { consumed, then }
    }

    fn closed(&mut self, cx: &mut Context<()>, _id: ConnId, mut client: Client, why: CloseReason) {
        if self.done.is_some() || cx.is_stopping() || client.phase == Phase::Retired {
            return;
        }
        let text = match why {
            CloseReason::Service | CloseReason::Stopped => return,
            CloseReason::Peer => "Server closed the connection".to_owned(),
            CloseReason::ConnectFailed(kind) => self.connect_error.take().unwrap_or_else(|| kind_text(kind)),
            CloseReason::Failed(kind) => kind_text(kind),
            CloseReason::OutputLimit => "output limit".to_owned(),
        };
        let is_connecting = matches!(why, CloseReason::ConnectFailed(_));
        if client.replies > 0 {
            self.load.tally.fairness.add(client.replies);
        }
        if self.started && self.settings.on_error == OnError::Reconnect {
            let now = self.shared.now();
            self.load.lost(&mut client, if is_connecting { "connect" } else { "reset" }, &text);
            self.to_open.push_back(Opening { due: now + RECONNECT_DELAY_NS, seat: client.seat() });
            return;
        }
        let name =
            self.settings.servers.get(client.server as usize).map_or_else(String::new, |server| server.name.clone());
        self.shared.fail(&if is_connecting {
            format!("Could not connect to Redis at {name}: {text}")
        } else {
            format!("Error: {text}")
        });
        cx.stop();
    }

    fn message(&mut self, _cx: &mut Context<()>, _conns: &mut Conns<Self>, (): ()) {}

    fn turn(&mut self, cx: &mut Context<()>, conns: &mut Conns<Self>) -> Option<Duration> {
        let state = self.shared.state();
        let now = self.shared.now();
        if self.done.is_some() {
            if now >= self.hold_until {
                cx.stop();
            }
            return Some(STATE_POLL);
        }
        self.open(conns, now);
        self.greet(conns, now);
        if !self.started {
            if !self.wait_for_start(conns, state) {
                if state == State::Stop {
                    cx.stop();
                }
                let is_slowed = self.settings.options.extended.connect_rate.is_some() && !self.to_open.is_empty();
                return Some(if self.announced || is_slowed { START_POLL } else { STATE_POLL });
            }
        } else if !self.rest(now) {
            self.start_ready(conns, now);
        }
        let now = self.shared.now();
        let is_over = self.load.mark(now) || self.shared.state() == State::Stop;
        if self.rested_since.is_none() && !is_over {
            if self.load.schedule.is_some() {
                self.send_scheduled(conns, now);
            }
            self.send_recorded(conns, now);
        }
        self.check_timeouts(cx, conns, now);
        self.load.publish(self.thread, now);
        if is_over || self.is_done() {
            self.finish(now);
            self.collect(conns);
            self.shared.note_server_cpu(1);
            let hold = u64::try_from(self.settings.options.extended.hold.as_nanos()).unwrap_or(u64::MAX);
            self.hold_until = now.saturating_add(hold);
            if hold == 0 {
                cx.stop();
                return None;
            }
            return Some(STATE_POLL);
        }
        Some(self.time_to_next(now))
    }
}

impl Driver {
    /// Notes what each connection got.
    fn collect(&mut self, conns: &Conns<Self>) {
        for (_, client) in conns.iter() {
            self.load.tally.fairness.add(client.replies);
        }
    }

    /// Begins and ends rests (`p` of the live view); whether one is under way.
    fn rest(&mut self, now: u64) -> bool {
        match (self.rested_since, self.shared.is_resting()) {
            (None, true) => self.rested_since = Some(now),
            (Some(since), false) => {
                self.rested_since = None;
                let rested = now.saturating_sub(since);
                self.load.rest(rested, now);
                for recorded in &mut self.recorded {
                    recorded.due = recorded.due.saturating_add(rested);
                }
                self.ready.append(&mut self.resting);
            }
            _ => {}
        }
        self.rested_since.is_some()
    }

    /// Plans the recorded commands of connections that have become ready.
    fn plan_recorded(&mut self, conns: &mut Conns<Self>) {
        let Some((log, speed)) = &self.settings.replay else { return };
        for id in std::mem::take(&mut self.ready) {
            let Some(client) = conns.state_mut(id) else { continue };
            let entries = client.place..client.place + client.quota;
            let start = self.shared.started_at();
            #[expect(
                clippy::cast_precision_loss,
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "times"
            )]
            let due = |entry| start + (log.due(entry) as f64 / speed) as u64;
            let client_index = client.index;
            self.recorded.extend(entries.map(|entry| Due { due: due(entry), entry, client: client_index }));
            self.conn_of.insert(client_index, id);
            client.quota = 0;
        }
        self.recorded.sort_unstable_by(|a, b| b.cmp(a));
    }

    /// Sends the recorded commands that are due.
    fn send_recorded(&mut self, conns: &mut Conns<Self>, now: u64) {
        while let Some(&Due { due, entry, client }) = self.recorded.last() {
            if due > now {
                return;
            }
            self.recorded.pop();
            let id = self.conn_of.get(&client).copied();
            let state = id.and_then(|id| conns.state_mut(id));
            let usable = state.filter(|client| matches!(client.phase, Phase::Idle | Phase::Busy));
            let (Some(client), Some(id)) = (usable, id) else {
                self.load.not_sent("its connection is lost");
                continue;
            };
            self.scratch.clear();
            let now = self.shared.now();
            self.load.start_recorded(client, entry, due, now, &mut self.scratch);
            self.load.record_lateness(due, now);
            conns.write(id, &self.scratch);
        }
    }

    fn greet(&mut self, conns: &mut Conns<Self>, now: u64) {
        for id in std::mem::take(&mut self.connected) {
            let Some(client) = conns.state_mut(id) else {
                continue;
            };
            self.scratch.clear();
            if self.load.greet(client, now, &mut self.scratch) {
                self.ready.push(id);
            }
            conns.write(id, &self.scratch);
            if !self.started
                && let Some(stats) = self.shared.stats.get(self.thread)
            {
                stats.connected.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// True in the turn in which the test has begun.
    fn wait_for_start(&mut self, conns: &mut Conns<Self>, state: State) -> bool {
        if self.settings.idle {
            self.ready.clear();
            return false;
        }
        self.ready_count += self.ready.len();
        self.ready.clear();
        if self.ready_count < self.clients || state == State::Stop {
            return false;
        }
        if !self.announced {
            self.announced = true;
            self.shared.thread_is_ready();
        }
        if self.shared.state() != State::Run {
            return false;
        }
        self.started = true;
        self.started_at = self.shared.now();
        self.time_at_start = thread_time();
        self.load.begin(self.shared.started_at());
        self.ready = conns.iter().map(|(id, _)| id).collect();
        self.start_ready(conns, self.started_at);
        true
    }

    /// Lets connections that have become ready send.
    fn start_ready(&mut self, conns: &mut Conns<Self>, _now: u64) {
        if self.settings.is_timed_replay && !self.ready.is_empty() {
            return self.plan_recorded(conns);
        }
        for id in std::mem::take(&mut self.ready) {
            let Some(client) = conns.state_mut(id) else {
                continue;
            };
            if self.load.schedule.is_some() {
                let places = self.settings.pipeline as usize;
                self.free.extend(std::iter::repeat_n(id, places));
                continue;
            }
            self.scratch.clear();
            let now = self.shared.now();
            if !self.load.start(client, now, &mut self.scratch) {
                client.phase = Phase::Retired;
                self.finished_clients += 1;
                continue;
            }
            conns.write(id, &self.scratch);
        }
    }

    fn send_scheduled(&mut self, conns: &mut Conns<Self>, now: u64) {
        let quota = if self.load.is_warming_up(now) { u64::MAX } else { self.load.available(1) };
        let Some(schedule) = &mut self.load.schedule else {
            return;
        };
        // What waited for a connection is the server's doing; what did not is ours.
        let nothing_waited = schedule.backlog() == 0;
        let taken = schedule.advance(now, quota);
        if quota != u64::MAX {
            self.load.spend(taken);
        }
        while let Some(&id) = self.free.front() {
            let Some(schedule) = &mut self.load.schedule else {
                return;
            };
            let usable = conns.state_mut(id).is_some_and(|client| matches!(client.phase, Phase::Idle | Phase::Busy));
            if !usable {
                self.free.pop_front();
                continue;
            }
            let Some(due) = schedule.pop() else { return };
            self.free.pop_front();
            let Some(client) = conns.state_mut(id) else {
                continue;
            };
            self.scratch.clear();
            let now = self.shared.now();
            self.load.start_scheduled(client, due, now, &mut self.scratch);
            if nothing_waited {
                self.load.record_lateness(due, now);
            }
            conns.write(id, &self.scratch);
        }
    }

    /// Gives places that replies have freed to waiting requests.
    fn refill(&mut self, id: ConnId, client: &mut Client, places: usize, now: u64, out: &mut Vec<u8>) {
        for _ in 0..places {
            match self.load.schedule.as_mut().and_then(|schedule| schedule.pop()) {
                Some(due) if !self.load.is_over(now) => {
                    self.load.start_scheduled(client, due, now, out);
                }
                _ => self.free.push_back(id),
            }
        }
    }

    /// A connection is closed by us; opens its successor if there is more to send.
    fn replace(&mut self, client: &Client, now: u64) {
        let has_more = match self.settings.per_client {
            Some(_) => client.quota > 0,
            None if self.settings.is_replay => client.quota > 0,
            None => self.load.is_warming_up(now) || self.load.available(1) > 0,
        };
        if has_more {
            self.to_open.push_back(Opening { due: 0, seat: client.seat() });
        } else {
            self.finished_clients += 1;
        }
    }

    fn check_timeouts(&mut self, cx: &mut Context<()>, conns: &mut Conns<Self>, now: u64) {
        let Some(timeout) = self.settings.timeout else {
            return;
        };
        if now < self.next_timeout_check {
            return;
        }
        let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        self.next_timeout_check = now + (timeout_ns / 8).clamp(1_000_000, 100_000_000);
        let late: Vec<ConnId> = conns
            .iter()
            .filter(|(_, client)| {
                let since = client.flights.front().map_or(client.started, |flight| flight.sent);
                client.phase == Phase::Busy && now.saturating_sub(since) > timeout_ns
            })
            .map(|(id, _)| id)
            .collect();
        for id in late {
            let text = format!("no reply within {timeout:?}");
            if self.settings.on_error == OnError::Stop {
                self.shared.fail(&format!("Error: {text}"));
                cx.stop();
                return;
            }
            let Some(client) = conns.state_mut(id) else {
                continue;
            };
            self.load.lost(client, "timeout", &text);
            client.phase = Phase::Retired;
            let seat = client.seat();
            self.to_open.push_back(Opening { due: now, seat });
            conns.close(id, false);
        }
    }

    fn is_done(&mut self) -> bool {
        if self.rested_since.is_some() {
            return false;
        }
        if self.settings.is_timed_replay {
            return self.recorded.is_empty() && self.load.in_flight == 0;
        }
        if self.load.schedule.is_some() {
            return self.load.is_exhausted();
        }
        self.finished_clients >= self.clients
    }

    fn finish(&mut self, now: u64) {
        self.load.finish(now);
        let used = thread_time();
        let time = ThreadTime {
            cpu: used.cpu.saturating_sub(self.time_at_start.cpu),
            queued: used.queued.saturating_sub(self.time_at_start.queued),
            wall: Duration::from_nanos(now.saturating_sub(self.started_at)),
        };
        self.done = Some(time);
    }

    fn time_to_next(&self, now: u64) -> Duration {
        let mut next = self.load.next_mark();
        if let Some(schedule) = &self.load.schedule {
            next = next.min(schedule.next_due());
        }
        if let Some(recorded) = self.recorded.last() {
            next = next.min(recorded.due);
        }
        if self.rested_since.is_some() {
            return REST_POLL;
        }
        if let Some(opening) = self.to_open.front() {
            next = next.min(opening.due);
        }
        let wait = Duration::from_nanos(next.saturating_sub(now));
        // The kernel's timer is a millisecond coarse: near a deadline the loop spins.
        if wait < SPIN { Duration::ZERO } else { (wait - SPIN).min(STATE_POLL) }
    }

    fn into_result(mut self) -> ThreadResult {
        if self.done.is_none() {
            let now = self.shared.now();
            self.finish(now);
        }
        let time = self.done.unwrap_or_default();
        let (dropped, backlog) =
            self.load.schedule.as_ref().map_or((0, 0), |schedule| (schedule.dropped(), schedule.backlog() as u64));
        ThreadResult { tally: self.load.tally, dropped, backlog, time }
    }
}

/// The text the system has for an error of this kind.
fn kind_text(kind: io::ErrorKind) -> String {
    match kind {
        io::ErrorKind::ConnectionReset => "Connection reset by peer".to_owned(),
        io::ErrorKind::ConnectionRefused => "Connection refused".to_owned(),
        io::ErrorKind::BrokenPipe => "Broken pipe".to_owned(),
        io::ErrorKind::TimedOut => "Connection timed out".to_owned(),
        other => other.to_string(),
    }
}

/// Pins the thread to its CPU of `--pin`. Failing to is no reason not to measure.
fn pin(settings: &Settings, thread: usize) {
    let cpus = &settings.options.extended.cpus;
    if cpus.is_empty() {
        return;
    }
    let cpu = cpus[thread % cpus.len()];
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu);
    if let Err(error) = rustix::thread::sched_setaffinity(None, &set) {
        tell(format_args!("WARNING: cannot pin thread {thread} to CPU {cpu}: {error}"));
    }
}

/// CPU time of this thread, and the time it waited for a CPU (where the kernel tells).
fn thread_time() -> ThreadTime {
    let cpu = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from);
    let queued = std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split_whitespace().nth(1)?.parse().ok())
        .map_or(Duration::ZERO, Duration::from_nanos);
    ThreadTime { cpu, queued, wall: Duration::ZERO }
}

/// Time before a broken connection is made anew.
const RECONNECT_DELAY_NS: u64 = 100_000_000;

/// How often a thread looks whether it is to stop.
const STATE_POLL: Duration = Duration::from_millis(100);

/// How often a thread looks whether a rest is over.
const REST_POLL: Duration = Duration::from_millis(20);

/// How often a thread that is ready looks whether the others are.
const START_POLL: Duration = Duration::from_millis(1);

/// Time before a deadline from which a thread no longer sleeps.
const SPIN: Duration = Duration::from_micros(1_200);
