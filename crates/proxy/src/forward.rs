//! Hot path: from a client's bytes to its backends.
//!
//! No allocation, no lock, no system call, no clock reading; a request is parsed, its command looked up, its key hashed, and
//! that is all. Requests to the same lane that follow each other are a *run*: they lie side by side in the input, so a whole
//! run is one copy, one record in the lane's queue and one addition to the client's order.
//!
//! ```text
//! input   [GET a][GET b][SET c x] [GET d] [MGET …] …
//!         └──── run to lane 0 ──┘ └─run─┘ └ dispatch
//! ```
//!
//! A request goes as the bytes it came in only if these are exactly those that we would write ourselves: what we take for one
//! request must be one for any backend. Others are written anew.

use std::sync::OnceLock;

use commands::CommandId;
use commands::table;
use net::{Flow, Then};
use resp::{Limits, Parse, Reply, Request, parse_request};
use server::acl::check;
use server::acl::rules::Rules;

use crate::backend::{LaneKind, LaneState, Record, To};
use crate::client::{Pause, State};
use crate::dispatch::Step;
use crate::measure;
use crate::routing::Route;
use crate::service::{Worker, flow};
use crate::slots::NO_OWNER;

/// Requests of one client before others get their turn.
const TURN_REQUESTS: u32 = 4096;
/// The same before it has logged in.
const TURN_UNAUTHENTICATED: u32 = 32;

/// By command: where its only key stands if nothing but that decides where it goes; else 0.
pub(crate) type KeyPositions = [u8; CommandId::COUNT];

/// The table for all workers.
pub(crate) fn key_positions() -> &'static KeyPositions {
    static POSITIONS: OnceLock<KeyPositions> = OnceLock::new();
    POSITIONS.get_or_init(|| {
        let mut positions = [0; CommandId::COUNT];
        for spec in table::all() {
            let is_plain =
                Route::of(spec.id) == Route::Slot && spec.id != CommandId::SortRo && !spec.name.contains('|');
            if let (true, Some(position), Some(place)) =
                (is_plain, spec.single_key(), positions.get_mut(spec.id.index()))
            {
                *place = u8::try_from(position).unwrap_or(0);
            }
        }
        positions
    })
}

/// Requests to one lane that lie side by side in the input.
#[derive(Clone, Copy)]
struct Run {
    lane: u32,
    from: usize,
    to: usize,
    count: u32,
    /// See [`measure::number_of`].
    command: u16,
}

const NO_RUN: Run = Run { lane: u32::MAX, from: 0, to: 0, count: 0, command: 0 };

impl Worker {
    /// A client has sent something.
    #[inline]
    pub(crate) fn client_data(&mut self, place: u32, input: &[u8]) -> Flow {
        let mut request = std::mem::take(&mut self.request);
        let flow = self.run_input(place, input, &mut request);
        self.request = request;
        flow
    }

    fn limits_of(&self, state: State) -> Limits {
        let max_bulk = usize::try_from(self.config.base.proto_max_bulk_len).unwrap_or(usize::MAX);
        if state.has(State::UNAUTHENTICATED) { Limits::unauthenticated(max_bulk) } else { Limits::new(max_bulk) }
    }

    fn run_input(&mut self, place: u32, input: &[u8], request: &mut Request) -> Flow {
        self.renew_rights(place);
        let Some(client) = self.clients.get_mut(place as usize) else { return flow(input.len(), Then::CloseNow) };
        if client.state.has(State::CLOSING) {
            return flow(input.len(), Then::Pause);
        }
        client.last_active_s = self.now_s;
        if client.map_version != self.map_version {
            // What is under way went by the old map: what follows must not overtake it on another way.
            if client.order.in_flight() > 0 {
                self.pause(place, Pause::Drain);
                return flow(0, Then::Pause);
            }
            client.map_version = self.map_version;
        }
        let (mut state, mut kind) = (client.state, client.kind);
        let mut parse = client.parse;
        let mut rules = self.rules_of(place);
        let mut limits = self.limits_of(state);
        let stripe = self.stripe_of(place);
        let (mut at, mut count, mut run) = (0, 0, NO_RUN);
        let mut last_command = None;
        let then = loop {
            let Some(rest) = input.get(at..).filter(|rest| !rest.is_empty()) else { break Then::Continue };
            match parse_request(rest, &mut parse, &limits, request) {
                Parse::Request => {}
                Parse::Empty => {
                    self.send_run(place, input, &mut run);
                    at += request.consumed();
                    break Then::Continue;
                }
                Parse::Incomplete { need } => break Then::NeedMore(need),
                Parse::Error(error) => {
                    self.send_run(place, input, &mut run);
                    self.reply_now(place, |reply| reply.error(format!("ERR {error}")));
                    self.stats.errors.add(1);
                    self.close_after_replies(place);
                    at = input.len();
                    break Then::Pause;
                }
            }
            let end = at + request.consumed();
            count += 1;
            let plain = if state.is_plain() { self.plain(request, rest, kind, stripe, rules.as_deref()) } else { None };
            if let Some((id, lane)) = plain {
                if lane != run.lane {
                    self.send_run(place, input, &mut run);
                    if self.must_wait(place) {
                        break Then::Pause;
                    }
                    run = Run { lane, from: at, to: at, count: 0, command: measure::number_of(id) };
                } else if run.command != measure::number_of(id) {
                    run.command = measure::MIXED;
                }
                run.to = end;
                run.count += 1;
                last_command = Some(id);
            } else {
                self.send_run(place, input, &mut run);
                match self.dispatch(place, request, rest) {
                    Step::Done => {}
                    Step::Again => break Then::Pause,
                    Step::CloseNow => return flow(input.len(), Then::CloseNow),
                }
                let Some(client) = self.clients.get(place as usize) else { return flow(input.len(), Then::CloseNow) };
                // It may have been AUTH, SELECT or HELLO.
                (state, kind) = (client.state, client.kind);
                limits = self.limits_of(state);
                rules = self.rules_of(place);
                if state.has(State::CLOSING) {
                    at = input.len();
                    break Then::Pause;
                }
                if self.must_wait(place) {
                    at = end;
                    break Then::Pause;
                }
            }
            at = end;
            let most = if state.has(State::UNAUTHENTICATED) { TURN_UNAUTHENTICATED } else { TURN_REQUESTS };
            if count >= most {
                break Then::Yield;
            }
        };
        self.send_run(place, input, &mut run);
        self.stats.requests.add(u64::from(count));
        let Some(client) = self.clients.get_mut(place as usize) else { return flow(input.len(), Then::CloseNow) };
        if last_command.is_some() {
            client.last_command = last_command;
        }
        if client.pauses.any() || then == Then::Pause {
            client.parse = resp::ParseState::new();
            return flow(at, Then::Pause);
        }
        client.parse = parse;
        flow(at, if then == Then::Yield && at == input.len() { Then::Continue } else { then })
    }

    /// Whether a client must not go on before something has happened.
    #[inline]
    fn must_wait(&self, place: u32) -> bool {
        self.clients.get(place as usize).is_none_or(|client| client.pauses.any())
    }

    /// The rules of a client that may not do everything.
    #[inline]
    fn rules_of(&self, place: u32) -> Option<std::sync::Arc<Rules>> {
        let client = self.clients.get(place as usize).filter(|client| client.state.has(State::RESTRICTED))?;
        Some(client.user.as_ref().unwrap_or(self.shared.acl.default_user()).rules())
    }

    /// Which of several equal lanes a client uses.
    #[inline]
    fn stripe_of(&self, place: u32) -> u16 {
        match self.config.backend_connections {
            0 | 1 => 0,
            stripes => u16::try_from(place % stripes).unwrap_or(0),
        }
    }

    /// The lane for a request that is a plain one on one key, has a lane already, and may go there as it is.
    #[inline]
    fn plain(
        &self,
        request: &Request,
        bytes: &[u8],
        kind: LaneKind,
        stripe: u16,
        rules: Option<&Rules>,
    ) -> Option<(CommandId, u32)> {
        let args = request.args(bytes);
        let spec = table::lookup(args.get(0)?)?;
        let position = self.key_positions.get(spec.id.index()).copied().unwrap_or(0);
        if position == 0 || !table::arity_ok(spec, args.len()) || !request.is_canonical(bytes) {
            return None;
        }
        let backend = match self.only_owner {
            Some(owner) => owner,
            None => {
                let slot = self.map.space.slot(args.get(usize::from(position))?).index();
                let reads_elsewhere = !self.readers.is_empty() && spec.flags.contains(table::Flags::READONLY);
                *(if reads_elsewhere { &self.readers } else { &self.owners }).get(slot)?
            }
        };
        if backend == NO_OWNER || rules.is_some_and(|rules| !check::allows_single(rules, spec, &args)) {
            return None;
        }
        let lane = self.backends.get(usize::from(backend))?.lane(kind, stripe)?;
        if let Some(calls) = self.stats.calls.get(spec.id.index()) {
            calls.add(1);
        }
        Some((spec.id, lane))
    }

    /// Puts a run into its lane.
    #[inline]
    fn send_run(&mut self, place: u32, input: &[u8], run: &mut Run) {
        if run.count > 0 {
            let Run { lane, from, to, count, command } = *run;
            self.send_to(place, lane, input.get(from..to).unwrap_or(&[]), count, command);
        }
        *run = NO_RUN;
    }

    /// Puts `count` requests of a client into a lane, in one piece. `command` is their [`measure::number_of`].
    pub(crate) fn send_to(&mut self, place: u32, lane_place: u32, bytes: &[u8], count: u32, command: u16) {
        if !self.may_send(lane_place) {
            return self.refuse(place, lane_place, count);
        }
        let Worker { clients, lanes, dirty_lanes, config, now_us, .. } = self;
        let Some(client) = clients.get_mut(place as usize) else { return };
        let Some(lane) = lanes.get_mut(lane_place as usize) else { return };
        let segment = client.order.push_run(lane_place, count);
        let serial = client.serial;
        let record = Record {
            start: 0,
            client: place,
            serial,
            segment,
            to: To::Run,
            left: count,
            done: 0,
            hops: 0,
            command,
            came_us: *now_us,
        };
        lane.push(bytes, record);
        if !lane.is_dirty {
            lane.is_dirty = true;
            dirty_lanes.push(lane_place);
        }
        if client.order.in_flight() >= config.client_pipeline_limit {
            self.pause(place, Pause::InFlight);
        } else if lane.held_bytes() > config.backend_queue_limit && lane.owner.is_none() {
            lane.waiting.push((place, serial));
            self.pause(place, Pause::Lane);
        }
    }

    /// Whether a lane takes requests; one without a connection gets one.
    #[inline]
    pub(crate) fn may_send(&mut self, lane_place: u32) -> bool {
        let Some(lane) = self.lanes.get(lane_place as usize) else { return false };
        if lane.state == LaneState::Idle {
            self.wake_lane(lane_place);
            return true;
        }
        lane.accepts()
    }

    /// Requests for a lane that is shut are answered at once by what is wrong with it.
    #[cold]
    fn refuse(&mut self, place: u32, lane_place: u32, count: u32) {
        let failure = self.lanes.get(lane_place as usize).map(|lane| lane.failure.clone()).unwrap_or_default();
        self.stats.errors.add(u64::from(count));
        for _ in 0..count {
            self.reply_now(place, |reply| reply.err(&failure));
        }
    }

    /// A reply that is known at once takes its place among the client's replies.
    pub fn reply_now(&mut self, place: u32, write: impl FnOnce(&mut Reply)) {
        let Worker { clients, turn, scratch, .. } = self;
        let Some(client) = clients.get_mut(place as usize) else { return };
        scratch.set_proto(client.proto());
        scratch.clear();
        write(scratch);
        let start = turn.bytes.len();
        client.order.push_reply(scratch.as_slice(), &mut turn.bytes);
        turn.give(place, client, start);
    }

    /// A client is closed when all that it has asked is answered; nothing more is read from it.
    pub fn close_after_replies(&mut self, place: u32) {
        let Some(client) = self.clients.get_mut(place as usize) else { return };
        client.state.insert(State::CLOSING);
        if client.order.is_empty() {
            self.closing.push((client.conn, true));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fast_path_takes_plain_commands_on_one_key_only() {
        let positions = key_positions();
        let of = |id: CommandId| positions.get(id.index()).copied();
        for id in [CommandId::Get, CommandId::Set, CommandId::Incr, CommandId::Zadd, CommandId::Expire] {
            assert_eq!(of(id), Some(1), "{id:?}");
        }
        for id in [CommandId::Mget, CommandId::Del, CommandId::Blpop, CommandId::Ping, CommandId::Eval, CommandId::Sort]
        {
            assert_eq!(of(id), Some(0), "{id:?}");
        }
        for spec in table::all() {
            let position = of(spec.id).map(usize::from).filter(|position| *position > 0);
            assert!(position.is_none() || position == spec.single_key(), "{}", spec.name);
        }
    }
}
