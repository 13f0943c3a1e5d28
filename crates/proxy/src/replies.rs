//! Hot path: from a backend's bytes to its clients.
//!
//! Replies come in the order of the lane's records. As many as the first record waits for are passed over at once, and the
//! bytes they lie in go to that client: straight into what it gets this turn if its segment is at the front, else aside until
//! it is. A reply that is not all there is passed on as far as it is, so that nothing is gathered. Only error lines are looked
//! at: they may be redirections.

use net::{Flow, Then};
use resp::{Passed, SkipState, Stop, skip_reply};

use crate::backend::{LaneState, Record, To, greeting};
use crate::join;
use crate::measure::{self, SlowEntry};
use crate::order::Piece;
use crate::service::{Worker, flow};

/// What ended a look at a lane's input.
enum End {
    /// All is used, but for what is incomplete.
    Used,
    /// An error line of so many bytes is next.
    Error(usize),
    /// Not the protocol, or a reply to nothing.
    Broken(String),
}

impl Worker {
    /// A backend has sent something.
    pub(crate) fn lane_data(&mut self, place: u32, input: &[u8]) -> Flow {
        let mut at = 0;
        let now = self.now;
        let Some(lane) = self.lanes.get_mut(place as usize) else { return flow(input.len(), Then::CloseNow) };
        lane.heard = now;
        if lane.greeting_left > 0 {
            match self.greeted(place, input) {
                Some(consumed) => at = consumed,
                None => return flow(input.len(), Then::CloseNow),
            }
            if self.lanes.get(place as usize).is_none_or(|lane| lane.greeting_left > 0) {
                return flow(at, Then::Continue);
            }
        }
        if self.lanes.get(place as usize).is_some_and(Worker::is_listening_lane) {
            let flow = self.listening_data(place, input.get(at..).unwrap_or(&[]));
            return net::Flow { consumed: flow.consumed + at, then: flow.then };
        }
        loop {
            let rest = input.get(at..).unwrap_or(&[]);
            let (used, end) = self.pass_on(place, rest);
            at += used;
            let rest = input.get(at..).unwrap_or(&[]);
            match end {
                End::Used => break,
                End::Error(len) => {
                    self.error_line(place, rest.get(..len).unwrap_or(rest));
                    at += len;
                }
                End::Broken(why) => {
                    self.fail_lane(place, &why);
                    return flow(input.len(), Then::CloseNow);
                }
            }
        }
        self.after_lane_data(place);
        flow(at, Then::Continue)
    }

    /// Passes replies on until something has to be looked at. Gives the bytes used.
    fn pass_on(&mut self, place: u32, input: &[u8]) -> (usize, End) {
        let Worker { lanes, clients, turn, answered, tasks, stats, now_us, slow_us, .. } = self;
        let Some(lane) = lanes.get_mut(place as usize) else { return (input.len(), End::Used) };
        let mut at = 0;
        loop {
            let rest = input.get(at..).unwrap_or(&[]);
            if rest.is_empty() {
                return (at, End::Used);
            }
            if lane.is_in_push {
                match lane.passing.pass_push(rest) {
                    Ok((used, is_over)) => {
                        if let Some((client, serial)) = lane.owner {
                            answered.pushed(client, serial, rest.get(..used).unwrap_or(&[]), is_over);
                        }
                        at += used;
                        lane.is_in_push = !is_over;
                        if !is_over {
                            return (at, End::Used);
                        }
                        continue;
                    }
                    Err(error) => return (at, End::Broken(format!("does not speak the protocol: {error:?}"))),
                }
            }
            let record = lane.front().copied();
            let passed = match lane.passing.pass(rest, record.map_or(1, |record| record.left)) {
                Ok(passed) => passed,
                Err(error) => return (at, End::Broken(format!("does not speak the protocol: {error:?}"))),
            };
            let Passed { bytes, replies, whole, stop } = passed;
            if let Some(record) = record {
                if let To::Task(part) = record.to {
                    tasks.take(record.segment, part, Piece { bytes: rest.get(..bytes).unwrap_or(&[]), replies, whole });
                } else if bytes > 0
                    && let Some(client) = clients.get_mut(record.client as usize)
                    && client.serial == record.serial
                {
                    let piece = Piece { bytes: rest.get(..bytes).unwrap_or(&[]), replies, whole };
                    let start = turn.bytes.len();
                    match record.to {
                        To::Run => client.order.take(record.segment, piece, &mut turn.bytes, join::write),
                        To::Part(part) => {
                            client.order.take_part(record.segment, part, piece, &mut turn.bytes, join::write);
                        }
                        To::Nobody | To::Task(_) => {}
                    }
                    turn.give(record.client, client, start);
                    if Worker::waits_for_answers(client) {
                        answered.clients.push(record.client);
                    }
                }
                if replies > 0 && record.to != To::Nobody && lane.owner.is_none() {
                    let took = now_us.wrapping_sub(record.came_us);
                    stats.took(record.command, took, replies);
                    lane.histogram.add(took, replies);
                    if took >= *slow_us
                        && let Some(request) = lane.next_request()
                    {
                        answered.slow.push((record, took, request));
                    }
                }
                lane.answered(replies);
            } else if bytes > 0 || matches!(stop, Stop::Error(_)) {
                return (at, End::Broken("sent a reply that nobody asked for".to_owned()));
            }
            at += bytes;
            match stop {
                Stop::Enough => {}
                Stop::Used => return (at, End::Used),
                Stop::Push => lane.is_in_push = true,
                Stop::Error(len) => return (at, End::Error(len)),
            }
        }
    }

    /// An error line is the next reply: a redirection, or what the client gets.
    fn error_line(&mut self, place: u32, line: &[u8]) {
        let Some(record) = self.lanes.get(place as usize).and_then(|lane| lane.front().copied()) else { return };
        let is_passed_on = matches!(record.to, To::Run | To::Part(_));
        let is_taken = is_passed_on && self.redirect(place, &record, line);
        if !is_taken {
            self.give_reply(&record, line);
        }
        if let Some(lane) = self.lanes.get_mut(place as usize) {
            lane.answered(1);
        }
    }

    /// One whole reply for a record.
    pub(crate) fn give_reply(&mut self, record: &Record, reply: &[u8]) {
        let Worker { clients, turn, answered, tasks, .. } = self;
        if let To::Task(part) = record.to {
            return tasks.take(record.segment, part, Piece::one(reply));
        }
        let Some(client) = clients.get_mut(record.client as usize).filter(|client| client.serial == record.serial)
        else {
            return;
        };
        let start = turn.bytes.len();
        match record.to {
            To::Run => client.order.take(record.segment, Piece::one(reply), &mut turn.bytes, join::write),
            To::Part(part) => {
                client.order.take_part(record.segment, part, Piece::one(reply), &mut turn.bytes, join::write);
            }
            To::Nobody | To::Task(_) => {}
        }
        turn.give(record.client, client, start);
        if Worker::waits_for_answers(client) {
            answered.clients.push(record.client);
        }
    }

    /// A push message of a client's own lane: it comes behind what was answered before.
    fn push_message(&mut self, place: u32, serial: u32, message: &[u8]) {
        let Worker { clients, turn, .. } = self;
        let Some(client) = clients.get_mut(place as usize).filter(|client| client.serial == serial) else { return };
        let start = turn.bytes.len();
        client.order.push_reply(message, &mut turn.bytes);
        turn.give(place, client, start);
    }

    #[cold]
    fn note_slow(&mut self, lane_place: u32, record: &Record, took_us: u32, request: &[u8]) {
        let max_len = usize::try_from(self.config.base.slowlog_max_len).unwrap_or(0);
        let backend = self.lanes.get(lane_place as usize).and_then(|lane| self.backends.get(lane.backend as usize));
        let Some(backend) = backend.map(|backend| backend.name.clone()).filter(|_| max_len > 0) else { return };
        let time_s = self.now_ms / 1000;
        let Some(client) = self.client(record.client, record.serial) else { return };
        let entry = SlowEntry {
            id: 0,
            time_s,
            total_us: u64::from(took_us),
            args: measure::arguments(request),
            address: server::session::address_text(client.address, ""),
            name: client.extra.as_ref().map(|extra| extra.name.clone()).unwrap_or_default(),
            backend,
        };
        self.shared.slowlog.add(max_len, |id| SlowEntry { id, ..entry });
    }

    fn after_lane_data(&mut self, place: u32) {
        while let Some(client) = self.answered.clients.pop() {
            self.after_answers(client);
        }
        for (record, took, request) in std::mem::take(&mut self.answered.slow) {
            self.note_slow(place, &record, took, &request);
        }
        for (client, serial, bytes) in std::mem::take(&mut self.answered.pushes) {
            self.push_message(client, serial, &bytes);
        }
        let resume_below = self.config.backend_queue_limit / 2;
        let Some(lane) = self.lanes.get_mut(place as usize) else { return };
        lane.drop_answered();
        if !lane.waiting.is_empty() && lane.held_bytes() <= resume_below {
            for (client, serial) in std::mem::take(&mut lane.waiting) {
                if self.client(client, serial).is_some() {
                    self.unpause(client, crate::client::Pause::Lane);
                }
            }
        }
    }

    /// Replies to the greeting: gives the bytes used. `None`: the lane has failed.
    #[cold]
    fn greeted(&mut self, place: u32, input: &[u8]) -> Option<usize> {
        let mut at = 0;
        loop {
            let lane = self.lanes.get_mut(place as usize)?;
            if lane.greeting_left == 0 {
                let is_new = matches!(lane.state, LaneState::Opening(_) | LaneState::Probing(_));
                if is_new {
                    self.lane_is_open(place);
                }
                return Some(at);
            }
            let rest = input.get(at..).unwrap_or(&[]);
            match skip_reply(rest, &mut SkipState::new()) {
                Ok(None) => return Some(at),
                Ok(Some(skipped)) => {
                    let reply = rest.get(..skipped.consumed).unwrap_or(rest);
                    if !greeting::is_fine(reply) {
                        let text = String::from_utf8_lossy(reply.get(1..).unwrap_or(&[])).trim().to_owned();
                        self.fail_lane(place, &format!("refused the proxy: {text}"));
                        return None;
                    }
                    lane.greeting_left -= 1;
                    at += skipped.consumed;
                }
                Err(error) => {
                    self.fail_lane(place, &format!("does not speak the protocol: {error:?}"));
                    return None;
                }
            }
        }
    }
}

/// What a look at a lane's input has left to be done.
#[derive(Default)]
pub(crate) struct Answered {
    /// Clients that wait for answers and got some.
    pub(crate) clients: Vec<u32>,
    /// Requests that took long, and for how many microseconds.
    pub(crate) slow: Vec<(Record, u32, Vec<u8>)>,
    /// Push messages of clients' own lanes, each whole.
    pub(crate) pushes: Vec<(u32, u32, Vec<u8>)>,
    /// The one that is not whole yet, by client.
    begun: Vec<(u32, u32, Vec<u8>)>,
}

impl Answered {
    /// A part of a push message on a client's own lane has come.
    fn pushed(&mut self, client: u32, serial: u32, bytes: &[u8], is_over: bool) {
        let known = self.begun.iter().position(|(place, of, _)| (*place, *of) == (client, serial));
        let mut message = match known {
            Some(at) => self.begun.swap_remove(at),
            None => (client, serial, Vec::new()),
        };
        message.2.extend_from_slice(bytes);
        if is_over { self.pushes.push(message) } else { self.begun.push(message) }
    }
}
