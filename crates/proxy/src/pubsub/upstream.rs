//! The subscription connections of a worker.
//!
//! A message comes as an array in the second version of the protocol, and is passed on as it came; for a client of the third
//! version its first byte becomes that of a push. So a message is parsed once, whoever gets it.

use std::collections::HashMap;

use net::{Flow, Then};
use resp::{SkipState, skip_reply};

use super::has_pushes;
use super::hub::{Event, Kind, Name, Upstream};
use crate::backend::{Lane, LaneKind};
use crate::merge;
use crate::service::{Worker, flow};

/// The owner of a subscription lane.
const SUBSCRIBER: (u32, u32) = (u32::MAX, 1);

/// The subscription lanes of a worker, by backend.
#[derive(Default)]
pub(crate) struct Listening {
    lanes: HashMap<u32, u32>,
}

impl Worker {
    /// Whether a lane is one of those on which messages come.
    pub(crate) fn is_listening_lane(lane: &Lane) -> bool {
        lane.owner == Some(SUBSCRIBER)
    }

    /// Subscribes to a name where it is to be, and nowhere else.
    pub(super) fn settle(&mut self, kind: Kind, name: &Name) {
        let homes = self.homes(kind, name);
        for backend in &homes {
            self.listening_lane(*backend);
        }
        let mut wanted = Vec::new();
        let mut hub = std::mem::take(&mut self.hub);
        let is_up = |backend: u32| {
            let lane = self.listening.lanes.get(&backend).and_then(|lane| self.lanes.get(*lane as usize));
            lane.is_some_and(Lane::accepts)
        };
        hub.settle(kind, name, &homes, is_up, |upstream| wanted.push(upstream));
        self.hub = hub;
        wanted.into_iter().for_each(|upstream| self.send_upstream(&upstream));
    }

    /// A client listens no longer.
    pub(super) fn leave(&mut self, kind: Kind, name: &Name, listener: (u32, u32)) {
        let mut wanted = Vec::new();
        self.hub.leave(kind, name, listener, |upstream| wanted.push(upstream));
        self.shared.board.client(kind, name, false);
        wanted.into_iter().for_each(|upstream| self.send_upstream(&upstream));
    }

    /// All names are to be where the present map says.
    pub(crate) fn settle_all(&mut self) {
        if self.hub.is_empty() {
            return;
        }
        for (kind, name) in self.hub.names() {
            self.settle(kind, &name);
        }
        self.look_at_waiting();
    }

    fn send_upstream(&mut self, upstream: &Upstream) {
        let Upstream { server, kind, begins, name } = upstream;
        if let Some(backend) = self.backends.get(*server as usize) {
            self.shared.board.upstream(*kind, name, backend.address, *begins);
        }
        let Some(place) = self.listening.lanes.get(server).copied() else { return };
        let Some(lane) = self.lanes.get_mut(place as usize) else { return };
        let (begin, end) = kind.words();
        let word = if *begins { begin } else { end };
        let mut bytes = Vec::new();
        resp::write_command(&mut bytes, [word.as_bytes(), &name[..]]);
        lane.push_unanswered(&bytes);
        self.mark_dirty(place);
    }

    /// The subscription lane to a backend, made when missing.
    fn listening_lane(&mut self, backend: u32) {
        let is_there = self.listening.lanes.get(&backend).is_some_and(|lane| self.lanes.contains(*lane as usize));
        if !is_there && let Some(lane) = self.own_lane(backend, LaneKind::PLAIN, SUBSCRIBER) {
            self.listening.lanes.insert(backend, lane);
        }
    }

    /// A subscription lane is lost: it is made again as long as somebody listens there.
    pub(crate) fn listening_lost(&mut self, backend: u32) {
        let address = self.backends.get(backend as usize).map(|backend| backend.address);
        let affected = self.hub.server_lost(backend);
        if let Some(address) = address {
            for (kind, name) in &affected {
                self.shared.board.upstream(*kind, name, address, false);
            }
        }
        if affected.is_empty()
            && let Some(lane) = self.listening.lanes.remove(&backend)
        {
            self.drop_lane(lane);
        }
        self.look_at_waiting();
    }

    /// A subscription lane is open: what is to be subscribed to there is.
    pub(crate) fn listening_open(&mut self) {
        self.settle_all();
    }

    /// What came on a subscription lane.
    pub(crate) fn listening_data(&mut self, place: u32, input: &[u8]) -> Flow {
        let mut at = 0;
        let mut state = SkipState::new();
        loop {
            let rest = input.get(at..).unwrap_or(&[]);
            if rest.is_empty() {
                break;
            }
            match skip_reply(rest, &mut state) {
                Ok(Some(skipped)) => {
                    let message = rest.get(..skipped.consumed).unwrap_or(rest);
                    self.listening_message(place, message);
                    at += skipped.consumed;
                }
                Ok(None) => {
                    let need = state.need();
                    self.after_listening(place);
                    return flow(at, Then::NeedMore(need));
                }
                Err(error) => {
                    self.fail_lane(place, &format!("does not speak the protocol: {error:?}"));
                    return flow(input.len(), Then::CloseNow);
                }
            }
        }
        self.after_listening(place);
        flow(at, Then::Continue)
    }

    fn after_listening(&mut self, place: u32) {
        if let Some(lane) = self.lanes.get_mut(place as usize) {
            lane.drop_answered();
        }
        self.look_at_waiting();
    }

    fn listening_message(&mut self, place: u32, message: &[u8]) {
        let Some(backend) = self.lanes.get(place as usize).map(|lane| lane.backend) else { return };
        if merge::is_error(message) {
            return self.listening_refused(backend, message);
        }
        let Some((_, mut rest)) = merge::elements(message) else { return };
        let mut word = || merge::take_reply(&mut rest).and_then(merge::bulk);
        let (Some(what), Some(name)) = (word(), word()) else { return };
        let kind = match what {
            b"message" => Kind::Channel,
            b"pmessage" => Kind::Pattern,
            b"smessage" => Kind::Shard,
            _ => return self.listening_confirmed(backend, what, name),
        };
        let listeners = self.hub.clients(kind, name).to_vec();
        for (client, serial) in listeners {
            if self.waiting.is_empty() || !self.waits_to_listen(client, serial, kind, name) {
                self.give_message(client, serial, message);
            }
        }
    }

    /// Whether a client was not told yet that it listens to a name: before that, nothing of it is to come.
    fn waits_to_listen(&self, client: u32, serial: u32, kind: Kind, name: &[u8]) -> bool {
        self.waiting.iter().any(|waiting| {
            let is_its =
                self.tasks.get(waiting.task).is_some_and(|task| (task.client, task.serial) == (client, serial));
            is_its && waiting.kind == kind && waiting.names.iter().any(|other| **other == *name)
        })
    }

    /// Gives a client a message, behind what it was answered before but not behind what it still waits for.
    fn give_message(&mut self, place: u32, serial: u32, message: &[u8]) {
        let Worker { clients, turn, .. } = self;
        let Some(client) = clients.get_mut(place as usize).filter(|client| client.serial == serial) else { return };
        let start = turn.bytes.len();
        let proto = client.proto();
        if client.order.is_within() {
            let mut own = message.to_vec();
            if let Some(mark) = own.first_mut().filter(|_| has_pushes(proto)) {
                *mark = b'>';
            }
            client.order.push_reply(&own, &mut turn.bytes);
        } else {
            turn.bytes.extend_from_slice(message);
            if let Some(mark) = turn.bytes.get_mut(start).filter(|_| has_pushes(proto)) {
                *mark = b'>';
            }
        }
        turn.give(place, client, start);
    }

    fn listening_confirmed(&mut self, backend: u32, what: &[u8], name: &[u8]) {
        for kind in Kind::ALL {
            let (begin, end) = kind.words();
            let begins = what == begin.as_bytes();
            if !begins && what != end.as_bytes() {
                continue;
            }
            if let Event::Gone(name) = self.hub.confirmed(backend, kind, begins, name) {
                self.forget_home(backend, kind, &name);
                self.shared.map.request_refresh();
                self.unsettled.push((self.now + RESUBSCRIBE_AFTER, kind, name));
                self.wake_at(self.now + RESUBSCRIBE_AFTER);
            }
            return;
        }
    }

    /// A server refused a subscription: its slot is elsewhere, or the proxy may not.
    fn listening_refused(&mut self, backend: u32, error: &[u8]) {
        let Some((kind, name)) = self.hub.refused(backend) else { return };
        if let Some(backend) = self.backends.get(backend as usize) {
            self.shared.board.upstream(kind, &name, backend.address, false);
            server::log!(
                server::process::log::Level::Verbose,
                "Backend {} refused a subscription: {}",
                backend.name,
                String::from_utf8_lossy(error).trim()
            );
        }
        self.shared.map.request_refresh();
        self.unsettled.push((self.now + RESUBSCRIBE_AFTER, kind, name));
        self.wake_at(self.now + RESUBSCRIBE_AFTER);
    }

    fn forget_home(&mut self, backend: u32, kind: Kind, name: &Name) {
        self.hub.lost_home(backend, kind, name);
        if let Some(backend) = self.backends.get(backend as usize) {
            self.shared.board.upstream(kind, name, backend.address, false);
        }
    }

    /// Subscribes again to what was refused or went away a moment ago.
    pub(crate) fn resettle(&mut self) {
        if self.unsettled.is_empty() {
            return;
        }
        let now = self.now;
        let (due, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.unsettled).into_iter().partition(|one| one.0 <= now);
        self.unsettled = later;
        for (_, kind, name) in due {
            self.settle(kind, &name);
        }
        self.look_at_waiting();
    }
}

/// Before a subscription that was refused is tried again.
const RESUBSCRIBE_AFTER: std::time::Duration = std::time::Duration::from_millis(50);
