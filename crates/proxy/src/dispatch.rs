//! Requests that are not plain ones on one key: checked in Redis' order, then sent where their route says.

use commands::table::{self, CommandSpec, Flags, errors};
use resp::{Args, Request, write_command};
use server::acl::check;
use server::log;
use server::process::log::Level;

use crate::backend::{Record, To};
use crate::client::State;
use crate::join::Join;
use crate::measure;
use crate::routing::{self, FIXED_SLOT, Merge, Part, Plan, Route, Split, split};
use crate::service::Worker;
use crate::slots::NO_OWNER;

/// Redis' text for a slot without an owner.
const NOT_SERVED: &str = "CLUSTERDOWN Hash slot not served";
/// After so many refusals a client that has not logged in is closed.
const UNAUTHENTICATED_REFUSALS: u16 = 4096;
/// Redis' text for commands before AUTH.
const NO_AUTH: &str = "NOAUTH Authentication required.";

/// Whether a request is a line of HTTP.
fn is_http(args: Args<'_>) -> bool {
    args.get(0).is_some_and(|name| name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:"))
}

/// What became of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    /// It is on its way, or answered.
    Done,
    /// Not begun: it is to be looked at again when the client, which is paused, goes on.
    Again,
    /// The client is to be closed at once.
    CloseNow,
}

impl Worker {
    /// Deals with one request, which `bytes` begin with.
    pub(crate) fn dispatch(&mut self, place: u32, request: &Request, bytes: &[u8]) -> Step {
        let is_muted = self.clients.get(place as usize).is_some_and(|client| client.state.has(State::MUTED));
        if !is_muted || !self.begin_skipped(place) {
            return self.dispatch_request(place, request, bytes);
        }
        let step = self.dispatch_request(place, request, bytes);
        self.end_skipped(place, step != Step::Again);
        step
    }

    fn dispatch_request(&mut self, place: u32, request: &Request, bytes: &[u8]) -> Step {
        let args = request.args(bytes);
        let spec = match table::resolve(&args) {
            Ok(spec) => spec,
            Err(_) if is_http(args) => {
                log!(
                    Level::Warning,
                    "A client sent a line of HTTP: somebody's browser may have been made to talk to the proxy. Connection aborted."
                );
                return Step::CloseNow;
            }
            Err(unknown) => {
                let text = match unknown {
                    table::LookupError::UnknownCommand => errors::unknown_command(&args),
                    table::LookupError::UnknownSubcommand => errors::unknown_subcommand(&args),
                };
                self.abort_queue(place);
                return self.refuse_request(place, &text);
            }
        };
        if !table::arity_ok(spec, args.len()) {
            self.abort_queue(place);
            return self.refuse_request(place, errors::wrong_arity(spec).as_bytes());
        }
        let Some(client) = self.clients.get_mut(place as usize) else { return Step::CloseNow };
        client.last_command = Some(spec.id);
        let state = client.state;
        if state.has(State::UNAUTHENTICATED) && !spec.flags.contains(Flags::NO_AUTH) {
            return self.refuse_request(place, NO_AUTH.as_bytes());
        }
        if state.has(State::RESTRICTED)
            && let Some(refusal) = self.refusal_by_rights(place, spec, args)
        {
            self.abort_queue(place);
            return self.refuse_request(place, refusal.as_bytes());
        }
        if let Some(calls) = self.stats.calls.get(spec.id.index()) {
            calls.add(1);
        }
        if (state.has(State::PINNED) || state.has(State::SUBSCRIBED))
            && let Some(step) = self.pinned_request(place, spec, args)
        {
            return step;
        }
        let canonical = if request.is_canonical(bytes) { bytes.get(..request.consumed()) } else { None };
        self.run_plan(place, spec, args, canonical)
    }

    fn run_plan(&mut self, place: u32, spec: &'static CommandSpec, args: Args<'_>, canonical: Option<&[u8]>) -> Step {
        let plan =
            match routing::plan(spec, &args, self.map.space) {
                // One server that has everything is right about any keys.
                Err(error) if error.is_about_slots() && self.is_one_server() => {
                    if Route::of(spec.id) == Route::Blocking { Plan::Blocking(FIXED_SLOT) } else { Plan::Fixed }
                }
                Err(error) => return self.refuse_request(place, error.0.as_bytes()),
                Ok(plan) => plan,
            };
        match plan {
            Plan::Slot(slot) if !self.readers.is_empty() && spec.flags.contains(Flags::READONLY) => {
                let reader = self.readers.get(usize::from(slot)).copied().filter(|reader| *reader != NO_OWNER);
                self.send_to_backend(place, reader.map(u32::from), args, canonical)
            }
            Plan::Slot(slot) => self.send_to_slot(place, slot, args, canonical),
            Plan::Fixed => self.send_to_slot(place, FIXED_SLOT, args, canonical),
            Plan::Split(split) => self.send_to_owners(place, split, args, canonical),
            Plan::Broadcast(merge) => self.send_to_all(place, merge, args, canonical),
            Plan::Blocking(slot) => self.block(place, spec, args, slot),
            Plan::Kill => self.kill_scripts(place, args),
            Plan::Other(route) => match route {
                Route::Scan => self.scan(place, args),
                Route::RandomKey => self.random_key(place),
                Route::Transaction => self.transaction(place, spec, args),
                Route::Subscribe => self.subscription(place, spec.id, args),
                Route::Publish => self.publish(place, args),
                Route::PubSub => self.pubsub(place, spec.id, args),
                _ => self.run_here(place, spec, args),
            },
        }
    }

    /// An error of our own for a request. A client that has not logged in and goes on asking is not heard for ever.
    pub(crate) fn refuse_request(&mut self, place: u32, text: &[u8]) -> Step {
        self.stats.errors.add(1);
        self.reply_now(place, |reply| reply.error(text));
        if let Some(client) = self.clients.get_mut(place as usize)
            && client.state.has(State::UNAUTHENTICATED)
        {
            client.refused = client.refused.saturating_add(1);
            if client.refused >= UNAUTHENTICATED_REFUSALS {
                self.close_after_replies(place);
            }
        }
        Step::Done
    }

    fn refusal_by_rights(&self, place: u32, spec: &'static CommandSpec, args: Args<'_>) -> Option<String> {
        let client = self.clients.get(place as usize)?;
        let user = client.user.as_ref().unwrap_or(self.shared.acl.default_user());
        let rules = user.rules();
        if let Err(denied) = check::check(&rules, spec, &args) {
            return Some(format!("NOPERM {}", denied.sentence(client.user_name(), spec)));
        }
        check::sort_refusal(&rules, spec, &args).map(|error| error.0.into_owned())
    }

    /// The place of the backend that owns a slot.
    pub(crate) fn owner_of(&self, slot: u16) -> Option<u32> {
        let owner = self.owners.get(usize::from(slot)).copied().filter(|owner| *owner != NO_OWNER)?;
        Some(u32::from(owner))
    }

    /// Sends a request to the owner of a slot, as it came if that is as we would write it.
    pub(crate) fn send_to_slot(&mut self, place: u32, slot: u16, args: Args<'_>, canonical: Option<&[u8]>) -> Step {
        self.send_to_backend(place, self.owner_of(slot), args, canonical)
    }

    fn send_to_backend(&mut self, place: u32, backend: Option<u32>, args: Args<'_>, canonical: Option<&[u8]>) -> Step {
        let Some(backend) = backend else {
            self.shared.map.request_refresh();
            return self.refuse_request(place, NOT_SERVED.as_bytes());
        };
        let Some(client) = self.clients.get(place as usize) else { return Step::CloseNow };
        let (kind, command) = (client.kind, client.last_command.map_or(measure::MIXED, measure::number_of));
        let Some(lane) = self.lane_to(backend, kind, place) else { return Step::CloseNow };
        match canonical {
            Some(bytes) => self.send_to(place, lane, bytes, 1, command),
            None => {
                let mut bytes = Vec::new();
                write_command(&mut bytes, args);
                self.send_to(place, lane, &bytes, 1, command);
            }
        }
        Step::Done
    }

    /// Sends the keys of a request to their owners: one request for each backend, or for each slot where the backends take
    /// no more. Slots that are moving have a request of their own, too: of one that holds others as well neither the old nor
    /// the new owner would own all.
    fn send_to_owners(&mut self, place: u32, split: Split, args: Args<'_>, canonical: Option<&[u8]>) -> Step {
        /// A target that is a slot, not a backend.
        const ONE_SLOT: u32 = 1 << 31;
        let (space, by_slot) = (self.map.space, !self.map.takes_batches());
        let target = |key: &[u8]| {
            let slot = routing::slot_of(space, key);
            let owner = self.owner_of(slot).ok_or(())?;
            let is_alone = by_slot || self.map.moving.contains(slot);
            Ok::<u32, ()>(if is_alone { ONE_SLOT | u32::from(slot) } else { owner })
        };
        let Ok(parts) = split::split(split, &args, target) else {
            self.shared.map.request_refresh();
            return self.refuse_request(place, NOT_SERVED.as_bytes());
        };
        if let [only] = parts.as_slice()
            && let Some(slot) = args.get(1).map(|key| routing::slot_of(space, key))
        {
            debug_assert!(!only.keys.is_empty());
            return self.send_to_slot(place, slot, args, canonical);
        }
        let requests: Vec<(u32, Vec<u8>)> = parts
            .iter()
            .map(|Part { target, keys }| {
                let mut bytes = Vec::new();
                split::write_part(&mut bytes, split, &args, keys);
                let backend = match target & !ONE_SLOT {
                    slot if slot != *target => self.owners.get(slot as usize).map_or(0, |owner| u32::from(*owner)),
                    backend => backend,
                };
                (backend, bytes)
            })
            .collect();
        let Some(client) = self.clients.get(place as usize) else { return Step::CloseNow };
        let join = Join::Split(split, parts, client.proto());
        self.send_parts(place, join, &requests);
        Step::Done
    }

    /// Sends a request to every backend that owns slots.
    fn send_to_all(&mut self, place: u32, merge: Merge, args: Args<'_>, canonical: Option<&[u8]>) -> Step {
        let mut written = Vec::new();
        let bytes = canonical.unwrap_or_else(|| {
            write_command(&mut written, args);
            &written
        });
        let addresses = self.map.clone();
        let requests: Vec<(u32, Vec<u8>)> = addresses
            .backends
            .iter()
            .map(|backend| (self.backend_at(&backend.name, backend.address), bytes.to_vec()))
            .collect();
        if requests.is_empty() {
            self.shared.map.request_refresh();
            return self.refuse_request(place, NOT_SERVED.as_bytes());
        }
        let Some(client) = self.clients.get(place as usize) else { return Step::CloseNow };
        let join = Join::Broadcast(merge, client.proto());
        self.send_parts(place, join, &requests);
        Step::Done
    }

    /// Sends the parts of a request, each to its backend; their replies are joined when all are there. Also for parts that
    /// one module makes of a request.
    pub(crate) fn send_parts(&mut self, place: u32, join: Join, requests: &[(u32, Vec<u8>)]) {
        let Some(client) = self.clients.get_mut(place as usize) else { return };
        let kind = client.kind;
        let count = u32::try_from(requests.len()).unwrap_or(u32::MAX);
        let segment = client.order.push_gather(join, count);
        for (part, (backend, bytes)) in (0_u32..).zip(requests) {
            self.send_part(place, segment, part, *backend, kind, bytes, 0);
        }
        let limit = self.config.client_pipeline_limit;
        if self.clients.get(place as usize).is_some_and(|client| client.order.in_flight() >= limit) {
            self.pause(place, crate::client::Pause::InFlight);
        }
    }

    /// Sends one part to a backend's lane, or answers it by what is wrong with that.
    #[allow(clippy::too_many_arguments, reason = "all of them say where the reply belongs")]
    pub(crate) fn send_part(
        &mut self,
        place: u32,
        segment: u32,
        part: u32,
        backend: u32,
        kind: crate::backend::LaneKind,
        bytes: &[u8],
        hops: u8,
    ) {
        let Some(client) = self.clients.get(place as usize) else { return };
        let record = Record {
            start: 0,
            client: place,
            serial: client.serial,
            segment,
            to: To::Part(part),
            left: 1,
            done: 0,
            hops,
            command: client.last_command.map_or(measure::MIXED, measure::number_of),
            came_us: self.now_us,
        };
        self.send_record(backend, kind, bytes, record);
    }

    /// Puts a request with a record of its own into a backend's lane; if that is shut, its error is the reply.
    pub(crate) fn send_record(&mut self, backend: u32, kind: crate::backend::LaneKind, bytes: &[u8], record: Record) {
        let lane_place = self.lane_to(backend, kind, record.client);
        let Some(lane_place) = lane_place.filter(|lane| self.may_send(*lane)) else {
            let failure = lane_place.and_then(|lane| self.lanes.get(lane as usize)).map(|lane| lane.failure.clone());
            let error = format!("-ERR {}\r\n", failure.unwrap_or_else(|| "the backend is not known".to_owned()));
            return self.fail_record(&record, error.as_bytes());
        };
        if let Some(lane) = self.lanes.get_mut(lane_place as usize) {
            lane.push(bytes, record);
        }
        self.mark_dirty(lane_place);
    }
}
