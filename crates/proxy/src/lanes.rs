//! Lanes are opened when they are needed, given up when they do not answer, and tried again.
//!
//! ```text
//!            first request            greeting answered
//!  Idle ───────────────────▶ Opening ───────────────────▶ Open
//!   ▲ closed by the backend,    │ failed                    │ failed, late
//!   │ nothing under way         ▼                           │
//!   └──────────────────────── Down ◀────────────────────────┘
//!                              ▲ │ back-off over
//!                       failed │ ▼           greeting answered
//!                            Probing ─────────────────────────▶ Open
//! ```
//!
//! Requests wait for a lane that is opened for the first time. Once it has failed they fail at once, with the reason, until a
//! probe has got through: so a backend that hangs holds up nobody for longer than once `backend-timeout`.

use std::time::{Duration, Instant};

use net::{CloseReason, ConnId, Conns};
use server::log;
use server::process::log::Level;

use crate::backend::greeting::{self, Credentials};
use crate::backend::lane::MARK_EVERY;
use crate::backend::{Lane, LaneKind, LaneState, Record, To};
use crate::client::Pause;
use crate::config::ReplicaReads;
use crate::join;
use crate::service::{Conn, Later, Worker};
use crate::slots::Kind;

/// How long the first failure keeps a lane shut; each further one doubles it.
const BACK_OFF_FIRST: Duration = Duration::from_millis(50);
/// The longest that it is kept shut.
const BACK_OFF_MAX: Duration = Duration::from_secs(1);

/// A backend that the map does not name any more is tried again for so long after its last use.
const FORGET_AFTER: Duration = Duration::from_secs(60);

impl Worker {
    /// The lane to a backend for sessions of a kind, made when missing. Its connection follows.
    pub fn lane_to(&mut self, backend: u32, kind: LaneKind, client: u32) -> Option<u32> {
        let stripes = u16::try_from(self.config.backend_connections).unwrap_or(1).max(1);
        let stripe = u16::try_from(client % u32::from(stripes)).unwrap_or(0);
        let known = self.backends.get(backend as usize)?;
        let place = match known.lane(kind, stripe) {
            Some(place) => place,
            None => {
                let mut lane = Lane::new(backend, kind, stripe, self.now);
                lane.histogram = known.histogram.clone();
                let place = u32::try_from(self.lanes.insert(lane)).ok()?;
                self.backends.get_mut(backend as usize)?.add(kind, stripe, place);
                place
            }
        };
        self.wake_lane(place);
        Some(place)
    }

    /// A lane of a client's own to a backend, for what must not meet other clients' requests. It is never shared, never
    /// tried again, and has no deadline once it is open.
    pub fn own_lane(&mut self, backend: u32, kind: LaneKind, owner: (u32, u32)) -> Option<u32> {
        let mut lane = Lane::new(backend, kind, 0, self.now);
        lane.owner = Some(owner);
        let place = u32::try_from(self.lanes.insert(lane)).ok()?;
        self.wake_lane(place);
        Some(place)
    }

    /// Ends a client's own lane; replies that are still to come are of no interest.
    pub fn drop_lane(&mut self, place: u32) {
        let Some(lane) = self.lanes.try_remove(place as usize) else { return };
        if let Some(backend) = self.backends.get_mut(lane.backend as usize) {
            backend.remove(place);
        }
        if let Some(conn) = lane.conn {
            self.closing.push((conn, false));
        }
    }

    /// Has a lane without a connection get one.
    pub(crate) fn wake_lane(&mut self, place: u32) {
        let timeout = Duration::from_millis(u64::from(self.config.backend_connect_timeout));
        if let Some(lane) = self.lanes.get_mut(place as usize)
            && lane.state == LaneState::Idle
        {
            lane.state = LaneState::Opening(self.now + timeout);
            self.later.push(Later::Open(place));
        }
    }

    /// Marks a lane as one with something to send.
    #[inline]
    pub(crate) fn mark_dirty(&mut self, place: u32) {
        if let Some(lane) = self.lanes.get_mut(place as usize)
            && !lane.is_dirty
        {
            lane.is_dirty = true;
            self.dirty_lanes.push(place);
        }
    }

    /// Begins a lane's connection and says the greeting.
    pub(crate) fn connect(&mut self, conns: &mut Conns<Worker>, place: u32) {
        let Some(lane) = self.lanes.get_mut(place as usize) else { return };
        let Some(backend) = self.backends.get(lane.backend as usize) else { return };
        match conns.connect(backend.address, Conn::Lane(place)) {
            Ok(conn) => {
                let credentials = Credentials {
                    user: self.config.backend_user.clone(),
                    password: self.config.backend_password.clone(),
                };
                let name = (self.map.kind == Kind::Native).then_some(&*self.shared.run_id);
                let mut words = Vec::new();
                let reads = self.config.replica_reads != ReplicaReads::Never && self.map.kind != Kind::Plain;
                lane.greeting_left = greeting::write(&mut words, lane.kind, &credentials, name, reads);
                lane.conn = Some(conn);
                conns.write(conn, &words);
            }
            Err(error) => {
                let why = format!("is not reachable: {}", server::process::error_text(&error));
                self.fail_lane(place, &why);
            }
        }
    }

    /// The greeting was answered to the end.
    pub(crate) fn lane_is_open(&mut self, place: u32) {
        let Some(lane) = self.lanes.get_mut(place as usize) else { return };
        if let Some(backend) = self.backends.get(lane.backend as usize)
            && matches!(lane.state, LaneState::Probing(_))
        {
            log!(Level::Notice, "Backend {} answers again", backend.name);
        }
        lane.state = LaneState::Open;
        lane.back_off = Duration::ZERO;
        lane.used = self.now;
        let is_listening = Worker::is_listening_lane(lane);
        self.mark_dirty(place);
        if is_listening {
            self.listening_open();
        }
        if self.config.replica_reads != ReplicaReads::Never {
            self.choose_readers();
        }
    }

    /// A lane's connection ended by itself.
    pub(crate) fn lane_closed(&mut self, place: u32, id: ConnId, why: CloseReason) {
        let Some(lane) = self.lanes.get_mut(place as usize).filter(|lane| lane.conn == Some(id)) else { return };
        if lane.state == LaneState::Open && lane.in_flight() == 0 && lane.owner.is_none() {
            // A restart, or its idle limit: the next request makes a new one.
            lane.reset();
            lane.state = LaneState::Idle;
            return;
        }
        if let Some(owner) = lane.owner.filter(|_| lane.state == LaneState::Open && lane.in_flight() == 0)
            && !Worker::is_listening_lane(lane)
        {
            return self.own_lane_lost(place, owner);
        }
        let text = match why {
            CloseReason::ConnectFailed(kind) => format!("is not reachable: {kind}"),
            CloseReason::Failed(kind) => format!("ended the connection before it answered: {kind}"),
            _ => "ended the connection before it answered".to_owned(),
        };
        self.fail_lane(place, &text);
    }

    /// A lane does not work: who waits for it gets an error, and it is shut for a while. `why` goes on after the backend's
    /// name.
    pub(crate) fn fail_lane(&mut self, place: u32, why: &str) {
        let Some(lane) = self.lanes.get_mut(place as usize) else { return };
        let Some(backend) = self.backends.get(lane.backend as usize) else { return };
        self.stats.backend_failures.add(1);
        let is_news = !matches!(lane.state, LaneState::Probing(_) | LaneState::Down(_));
        lane.failure = format!("backend {} {why}", backend.name);
        if is_news {
            log!(Level::Warning, "{}", lane.failure);
        }
        let error = format!("-ERR {}\r\n", lane.failure).into_bytes();
        if let Some(conn) = lane.conn {
            self.closing.push((conn, false));
        }
        lane.back_off = (lane.back_off * 2).clamp(BACK_OFF_FIRST, BACK_OFF_MAX);
        lane.state = LaneState::Down(self.now + lane.back_off);
        let records = lane.reset();
        let waiting = std::mem::take(&mut lane.waiting);
        let (owner, backend) = (lane.owner, lane.backend);
        let is_listening = Worker::is_listening_lane(lane);
        for record in records {
            self.fail_record(&record, &error);
        }
        for (client, serial) in waiting {
            if self.client(client, serial).is_some() {
                self.unpause(client, Pause::Lane);
            }
        }
        if is_listening {
            self.listening_lost(backend);
        } else if let Some(owner) = owner {
            self.own_lane_lost(place, owner);
        }
        // The topology may have changed without anybody's telling us.
        self.shared.map.request_refresh();
        if !self.readers.is_empty() {
            self.choose_readers();
        }
    }

    /// Who waits for a record's replies gets an error for each.
    pub(crate) fn fail_record(&mut self, record: &Record, error: &[u8]) {
        let Worker { clients, turn, closing, stats, tasks, .. } = self;
        if let To::Task(part) = record.to {
            return tasks.fail(record.segment, part, error);
        }
        let Some(client) = clients.get_mut(record.client as usize).filter(|client| client.serial == record.serial)
        else {
            return;
        };
        stats.errors.add(u64::from(record.left));
        let start = turn.bytes.len();
        match record.to {
            To::Nobody | To::Task(_) => {}
            To::Run => {
                let failed = client.order.fail(record.segment, record.left, error, &mut turn.bytes, join::write);
                if failed.is_err() {
                    closing.push((client.conn, false));
                }
            }
            To::Part(part) => client.order.fail_part(record.segment, part, error, &mut turn.bytes, join::write),
        }
        turn.give(record.client, client, start);
        if Worker::waits_for_answers(client) {
            self.after_answers(record.client);
        }
    }

    /// Gives up lanes that are late, and tries those again that were shut long enough.
    pub(crate) fn check_lanes(&mut self) {
        let timeout = Duration::from_millis(u64::from(self.config.backend_timeout));
        let connect_timeout = Duration::from_millis(u64::from(self.config.backend_connect_timeout));
        let now = self.now;
        let is_over = |until: Instant| until <= now;
        for index in 0..self.lanes.capacity() {
            let Some(lane) = self.lanes.get_mut(index) else { continue };
            let place = u32::try_from(index).unwrap_or(u32::MAX);
            match lane.state {
                LaneState::Idle => {}
                LaneState::Opening(until) | LaneState::Probing(until) if is_over(until) => {
                    self.fail_lane(place, &format!("did not answer in {} ms", connect_timeout.as_millis()));
                }
                LaneState::Opening(_) | LaneState::Probing(_) => {}
                LaneState::Down(until)
                    if is_over(until) && (lane.owner.is_none() || Worker::is_listening_lane(lane)) =>
                {
                    let address = self.backends.get(lane.backend as usize).map(|backend| backend.address);
                    let is_known = self.map.backends.iter().any(|backend| Some(backend.address) == address);
                    if is_known || now.saturating_duration_since(lane.used) < FORGET_AFTER {
                        lane.state = LaneState::Probing(now + connect_timeout);
                        self.later.push(Later::Open(place));
                    } else {
                        lane.state = LaneState::Idle;
                    }
                }
                LaneState::Down(_) => {}
                LaneState::Open => {
                    let is_late = lane.owner.is_none()
                        && lane
                            .silent_since()
                            .is_some_and(|since| now.saturating_duration_since(since) >= timeout + MARK_EVERY);
                    if is_late {
                        self.fail_lane(place, &format!("did not answer in {} ms", timeout.as_millis()));
                    } else if self.lanes.get(index).is_some_and(|lane| self.is_stale(lane)) {
                        self.drop_lane(place);
                    }
                }
            }
        }
    }
}
