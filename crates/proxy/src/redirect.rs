//! What backends say when they are not the ones to ask: MOVED, ASK, and that they cannot for the moment.
//!
//! Such an error says that the command was not run, so it can be run elsewhere or later. Its bytes are still kept by the lane
//! ([`crate::backend::lane`]). The reply that then comes takes the place of this one in the client's order. Until all that the
//! client has under way is answered, nothing more is read from it: a later request could otherwise overtake the one that goes
//! round.
//!
//! After a lost connection nothing is sent again: what was under way may have been run.

use std::time::{Duration, Instant};

use commands::table;
use net::ConnId;
use resp::{Limits, Parse, ParseState, Request, parse_request};

use crate::backend::{LaneKind, Record, To};
use crate::client::Pause;
use crate::map::{Redirect, parse_redirect};
use crate::routing;
use crate::service::Worker;
use crate::slots::Kind;

/// How often one request is redirected; more is a circle.
const HOPS_MAX: u8 = 12;
/// Redirections that are followed at once. One more says that the servers do not agree yet whose the slot is: then they get
/// a little time, twice as much with each further one.
const PROMPT_HOPS: u8 = 2;
const DISAGREEMENT: Duration = Duration::from_millis(2);
/// Before a request that was refused for the moment is tried again.
const RETRY_AFTER: Duration = Duration::from_millis(20);
/// Backends there may be; a server that names more is not believed.
const BACKENDS_MAX: usize = 4096;

/// A request that is tried again.
pub(crate) struct Retry {
    due: Instant,
    conn: ConnId,
    record: Record,
    backend: u32,
    /// That backend was named as the owner.
    is_named: bool,
    kind: LaneKind,
    bytes: Vec<u8>,
}

impl Worker {
    /// Deals with an error line that is the reply to a record's next request. `false`: it is for the client.
    pub(crate) fn redirect(&mut self, lane_place: u32, record: &Record, line: &[u8]) -> bool {
        let text = line.get(1..).unwrap_or_default();
        let text = text.strip_suffix(b"\r\n").unwrap_or(text);
        let first = text.first().copied().unwrap_or(0);
        if !matches!(first, b'M' | b'A' | b'T' | b'C' | b'L') {
            return false;
        }
        let is_loading = text.starts_with(b"LOADING");
        let redirect = match parse_redirect(text) {
            None if !is_loading => return false,
            other => other,
        };
        let is_alive = self.client(record.client, record.serial).is_some();
        let is_own = self.lanes.get(lane_place as usize).is_none_or(|lane| lane.owner.is_some());
        if !is_alive || is_own || record.hops >= HOPS_MAX {
            return false;
        }
        match redirect {
            Some(Redirect::Moved { host, port, .. }) => self.go_elsewhere(lane_place, record, &host, port, false),
            Some(Redirect::Ask { host, port, .. }) => self.go_elsewhere(lane_place, record, &host, port, true),
            _ => self.try_later(lane_place, record),
        }
    }

    /// Sends a record's next request to the server that was named.
    fn go_elsewhere(&mut self, lane_place: u32, record: &Record, host: &str, port: u16, is_ask: bool) -> bool {
        if self.map.kind != Kind::Plain {
            self.shared.map.request_refresh();
        }
        let Some(lane) = self.lanes.get(lane_place as usize) else { return false };
        let (kind, Some(bytes)) = (lane.kind, lane.next_request()) else { return false };
        let said_by = lane.backend;
        let Some(backend) = self.named_backend(said_by, host, port) else { return false };
        if !is_ask && record.hops >= PROMPT_HOPS {
            let wait = DISAGREEMENT * 2_u32.saturating_pow(u32::from(record.hops - PROMPT_HOPS));
            if self.try_after(lane_place, record, wait, Some(backend)) {
                return true;
            }
        }
        let Some(record) = self.detached(record) else { return false };
        self.stats.redirects.add(1);
        self.pause(record.client, Pause::Drain);
        if is_ask {
            let asking = Record { to: To::Nobody, ..record };
            // It must be right before the request, so it goes only where that can follow.
            self.send_record(backend, kind, b"*1\r\n$6\r\nASKING\r\n", asking);
        }
        self.send_record(backend, kind, &bytes, record);
        true
    }

    /// The backend that another one named; `None` if it cannot be told or believed.
    pub(crate) fn named_backend(&mut self, said_by: u32, host: &str, port: u16) -> Option<u32> {
        let said_by = self.backends.get(said_by as usize).map(|backend| backend.address.ip())?;
        let ip = if host.is_empty() { Some(said_by) } else { host.parse().ok() };
        let address = match ip {
            Some(ip) => std::net::SocketAddr::new(ip, port),
            // A name: only one that the map knows, as looking it up would hold everybody up.
            None => {
                let name = format!("{host}:{port}");
                self.map.backends.iter().find(|backend| backend.name == name)?.address
            }
        };
        if self.backends.len() >= BACKENDS_MAX {
            return None;
        }
        Some(self.backend_at(&format_address(host, address), address))
    }

    /// A record for the next request of `record` alone.
    fn detached(&mut self, record: &Record) -> Option<Record> {
        let segment = match record.to {
            To::Run => {
                self.client(record.client, record.serial)?.order.detach_next(record.segment, crate::order::NO_LANE)?
            }
            _ => record.segment,
        };
        Some(Record { start: 0, segment, left: 1, done: 0, hops: record.hops + 1, ..*record })
    }

    /// Tries a record's next request again in a moment, if nothing of its client can overtake it meanwhile and it is not too
    /// late.
    fn try_later(&mut self, lane_place: u32, record: &Record) -> bool {
        // Each try waits longer than the one before.
        self.try_after(lane_place, record, RETRY_AFTER * 2_u32.saturating_pow(u32::from(record.hops)), None)
    }

    /// As [`Worker::try_later`], after `wait`, at the owner that was named, else at the one of the map then.
    fn try_after(&mut self, lane_place: u32, record: &Record, wait: Duration, named: Option<u32>) -> bool {
        let bound = Duration::from_millis(u64::from(self.config.backend_retry_time));
        let now = self.now;
        let Some(lane) = self.lanes.get(lane_place as usize) else { return false };
        let (backend, kind) = (named.unwrap_or(lane.backend), lane.kind);
        if wait > bound {
            return false;
        }
        let Some(bytes) = lane.next_request() else { return false };
        let Some(client) = self.client(record.client, record.serial) else { return false };
        let conn = client.conn;
        if !client.order.is_last(record.segment) {
            return false;
        }
        let Some(record) = self.detached(record) else { return false };
        self.stats.retries.add(1);
        self.shared.map.request_refresh();
        self.pause(record.client, Pause::Drain);
        self.retries.push(Retry { due: now + wait, conn, record, backend, is_named: named.is_some(), kind, bytes });
        true
    }

    /// Sends what is due again, to whoever owns its slot by now.
    pub(crate) fn run_retries(&mut self) {
        if self.retries.is_empty() {
            return;
        }
        let now = self.now;
        let (due, later): (Vec<Retry>, Vec<Retry>) =
            std::mem::take(&mut self.retries).into_iter().partition(|retry| retry.due <= now);
        self.retries = later;
        for Retry { conn, record, backend, is_named, kind, bytes, .. } in due {
            if self.client(record.client, record.serial).is_none_or(|client| client.conn != conn) {
                continue;
            }
            let of_map =
                if is_named { None } else { self.slot_of_request(&bytes).and_then(|slot| self.owner_of(slot)) };
            let owner = of_map.unwrap_or(backend);
            self.send_record(owner, kind, &bytes, record);
        }
    }

    /// The slot of a request that we have sent before.
    fn slot_of_request(&self, bytes: &[u8]) -> Option<u16> {
        let mut request = Request::new();
        let parsed = parse_request(bytes, &mut ParseState::new(), &Limits::new(usize::MAX), &mut request);
        if parsed != Parse::Request {
            return None;
        }
        let args = request.args(bytes);
        let spec = table::resolve(&args).ok()?;
        routing::plan::slot_of_call(spec, &args, self.map.space).ok()?
    }
}

fn format_address(host: &str, address: std::net::SocketAddr) -> String {
    if host.is_empty() { address.to_string() } else { format!("{host}:{}", address.port()) }
}
