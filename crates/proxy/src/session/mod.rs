//! Sessions that are more than their requests: transactions, commands that block, subscriptions.
//!
//! | module | what |
//! |---|---|
//! | [`queue`] | the commands between MULTI and EXEC |
//! | [`exec`] | EXEC, WATCH and their kin |
//! | [`blocking`] | commands that may wait, on connections of their own |
//!
//! A connection of a session's own is taken from a small pool and goes back there when it has no state any more; while the
//! client has it, nobody else's requests are on it. When the client goes, it is closed, so that no server keeps waiting for
//! a client that is not there.

pub(crate) mod blocking;
pub(crate) mod exec;
pub mod queue;

use std::time::{Duration, Instant};

use commands::CommandId;
use commands::table::CommandSpec;
use resp::{Args, Proto};

use crate::backend::{LaneKind, LaneState, Record, To};
use crate::client::{Client, State};
use crate::dispatch::Step;
use crate::pubsub::Subscriptions;
use crate::service::Worker;
use crate::tasks::Work;
use queue::Queue;

/// What is said when there is no connection for a session.
pub(crate) const NO_CONNECTION: &str =
    "ERR the proxy has no connection left for a client of its own (see private-connections)";
/// The owner of a lane in the pool.
const POOL: (u32, u32) = (u32::MAX, 0);
/// Idle connections kept by a worker.
const SPARE_MAX: usize = 32;
/// How long one is kept.
const SPARE_TIME: Duration = Duration::from_secs(30);

/// Which replies are not sent (CLIENT REPLY).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Mute {
    /// All are sent.
    #[default]
    No,
    /// None is.
    Off,
    /// That to the next request is not.
    Next,
}

/// What a client has that most have not.
#[derive(Default)]
pub struct Pinned {
    /// MULTI was said.
    pub(crate) queue: Option<Queue>,
    /// Keys are watched.
    pub(crate) watch: Option<exec::Watching>,
    /// The task that the client waits for.
    pub(crate) waits_for: Option<u32>,
    /// What it listens to.
    pub(crate) subscriptions: Subscriptions,
    /// CLIENT REPLY.
    pub(crate) mute: Mute,
}

/// A connection that nobody has.
pub(crate) struct Spare {
    lane: u32,
    since: Instant,
}

impl Client {
    /// What it has of the kind, made when missing.
    pub(crate) fn pinned_mut(&mut self) -> &mut Pinned {
        self.extra_mut().pinned.get_or_insert_default()
    }

    /// What it has of the kind.
    pub(crate) fn pinned(&self) -> Option<&Pinned> {
        self.extra.as_ref()?.pinned.as_deref()
    }

    /// CLIENT REPLY.
    pub(crate) fn set_mute(&mut self, mute: Mute) {
        self.pinned_mut().mute = mute;
        self.order.set_muted(mute == Mute::Off);
        if mute == Mute::No {
            self.state.remove(State::MUTED);
        } else {
            self.state.insert(State::MUTED);
        }
    }

    /// Sets the bits that keep its requests off the fast path.
    pub(crate) fn note_pinned(&mut self) {
        let (is_pinned, is_subscribed) = self.pinned().map_or((false, false), |pinned| {
            (pinned.queue.is_some() || pinned.watch.is_some(), !pinned.subscriptions.is_empty())
        });
        for (bit, is_set) in [(State::PINNED, is_pinned), (State::SUBSCRIBED, is_subscribed)] {
            if is_set {
                self.state.insert(bit);
            } else {
                self.state.remove(bit);
            }
        }
    }
}

impl Worker {
    /// A request of a client that has a transaction or subscriptions. `None`: it is treated as any other.
    pub(crate) fn pinned_request(&mut self, place: u32, spec: &'static CommandSpec, args: Args<'_>) -> Option<Step> {
        let (space, is_one) = (self.map.space, self.is_one_server());
        let client = self.clients.get_mut(place as usize)?;
        if client.state.has(State::SUBSCRIBED) && client.proto() == Proto::Resp2 {
            if !is_allowed_subscribed(spec.id) {
                let name = spec.name;
                let text = format!(
                    "ERR Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"
                );
                return Some(self.refuse_request(place, text.as_bytes()));
            }
            if spec.id == CommandId::Ping && args.len() <= 2 {
                self.reply_now(place, |reply| {
                    reply.array(2);
                    reply.bulk("pong");
                    reply.bulk(args.get(1).unwrap_or_default());
                });
                return Some(Step::Done);
            }
        }
        if !client.state.has(State::PINNED) || runs_inside_multi(spec.id) {
            return None;
        }
        let queue = client.pinned_mut().queue.as_mut()?;
        match queue.push(spec, &args, space, is_one) {
            Ok(()) => {
                self.reply_now(place, |reply| reply.simple("QUEUED"));
                Some(Step::Done)
            }
            Err(error) => Some(self.refuse_request(place, error.0.as_bytes())),
        }
    }

    /// Whether one plain server has everything, and is right about any keys.
    pub(crate) fn is_one_server(&self) -> bool {
        self.map.kind == crate::slots::Kind::Plain && self.only_owner.is_some()
    }

    /// Keeps the reply to the present request back, if CLIENT REPLY SKIP said so. Gives whether.
    pub(crate) fn begin_skipped(&mut self, place: u32) -> bool {
        let Some(client) = self.clients.get_mut(place as usize) else { return false };
        let is_skipped = client.pinned().is_some_and(|pinned| pinned.mute == Mute::Next);
        if is_skipped {
            client.order.set_muted(true);
        }
        is_skipped
    }

    /// What follows is answered again, unless the request itself has said otherwise.
    pub(crate) fn end_skipped(&mut self, place: u32, is_done: bool) {
        let Some(client) = self.clients.get_mut(place as usize) else { return };
        match client.pinned().map(|pinned| pinned.mute) {
            Some(Mute::Next) if is_done => client.set_mute(Mute::No),
            Some(Mute::Next) => client.order.set_muted(false),
            _ => {}
        }
    }

    /// A request of a client within MULTI was refused before it could be queued.
    pub(crate) fn abort_queue(&mut self, place: u32) {
        let Some(client) = self.clients.get_mut(place as usize) else { return };
        if client.state.has(State::PINNED)
            && let Some(queue) = &mut client.pinned_mut().queue
        {
            queue.abort();
        }
    }

    /// The client is gone: so are its connections.
    pub(crate) fn end_session(&mut self, place: u32, client: &mut Client) {
        let Some(mut pinned) = client.extra.as_mut().and_then(|extra| extra.pinned.take()) else { return };
        if let Some(id) = pinned.waits_for
            && let Some(lane) = self.lane_of_task(id)
        {
            if matches!(self.tasks.work(id), Some(Work::Blocking(_))) {
                self.stats.blocked.subtract(1);
            }
            self.forget_task(id);
            self.drop_own_lane(lane, (place, client.serial));
        }
        if let Some(watch) = pinned.watch.take() {
            self.drop_own_lane(watch.lane, (place, client.serial));
        }
        self.end_subscriptions((place, client.serial), &mut pinned.subscriptions);
    }

    /// Whether a client waits for a blocking command.
    pub(crate) fn is_blocked(&self, place: u32) -> bool {
        let task = self.clients.get(place as usize).and_then(|client| client.pinned()?.waits_for);
        task.is_some_and(|task| matches!(self.tasks.work(task), Some(Work::Blocking(_))))
    }

    /// RESET: the session is as new.
    pub(crate) fn reset_session(&mut self, place: u32) {
        let Some(client) = self.clients.get_mut(place as usize) else { return };
        let owner = (place, client.serial);
        let Some(mut pinned) = client.extra.as_mut().and_then(|extra| extra.pinned.take()) else { return };
        client.note_pinned();
        client.state.remove(State::MUTED);
        client.order.set_muted(false);
        if let Some(watch) = pinned.watch.take() {
            self.unwatch_lane(watch.lane, owner);
        }
        self.end_subscriptions(owner, &mut pinned.subscriptions);
    }

    // ---- CONNECTIONS ---------------------------------------------------------------------------------------------

    /// A connection to a backend for one client: from the pool, or a new one. `None`: there are too many.
    pub(crate) fn take_own_lane(&mut self, backend: u32, kind: LaneKind, owner: (u32, u32)) -> Option<u32> {
        let is_it = |worker: &Worker, lane: u32| {
            let lane = worker.lanes.get(lane as usize);
            lane.is_some_and(|lane| lane.backend == backend && lane.kind == kind && lane.state == LaneState::Open)
        };
        if let Some(at) = self.spares.iter().position(|spare| is_it(self, spare.lane)) {
            let place = self.spares.swap_remove(at).lane;
            self.lanes.get_mut(place as usize)?.owner = Some(owner);
            return Some(place);
        }
        let taken = self.lanes.iter().filter(|(_, lane)| lane.owner.is_some()).count();
        if taken >= self.config.private_connections as usize {
            let spare = self.spares.pop()?;
            self.drop_lane(spare.lane);
        }
        self.own_lane(backend, kind, owner)
    }

    /// Whether a connection is still this client's: a lost one's place may be another's by now.
    fn has_lane(&self, place: u32, owner: (u32, u32)) -> bool {
        self.lanes.get(place as usize).is_some_and(|lane| lane.owner == Some(owner))
    }

    /// Closes a client's connection.
    pub(crate) fn drop_own_lane(&mut self, place: u32, owner: (u32, u32)) {
        if self.has_lane(place, owner) {
            self.drop_lane(place);
        }
    }

    /// A client has no more use for its connection, which has no state.
    pub(crate) fn release_lane(&mut self, place: u32, owner: (u32, u32)) {
        if !self.has_lane(place, owner) {
            return;
        }
        let since = self.now;
        match self.lanes.get_mut(place as usize) {
            Some(lane) if lane.state == LaneState::Open && self.spares.len() < SPARE_MAX => {
                lane.owner = Some(POOL);
                self.spares.push(Spare { lane: place, since });
            }
            _ => self.drop_lane(place),
        }
    }

    /// Ends the watching on a connection, which then may be another's: what follows comes behind it.
    pub(crate) fn unwatch_lane(&mut self, place: u32, owner: (u32, u32)) {
        if !self.has_lane(place, owner) {
            return;
        }
        let record = Record {
            start: 0,
            client: POOL.0,
            serial: 0,
            segment: 0,
            to: To::Nobody,
            left: 1,
            done: 0,
            hops: 0,
            came_us: 0,
            command: crate::measure::MIXED,
        };
        if let Some(lane) = self.lanes.get_mut(place as usize).filter(|lane| lane.state == LaneState::Open) {
            lane.push(b"*1\r\n$7\r\nUNWATCH\r\n", record);
            self.mark_dirty(place);
        }
        self.release_lane(place, owner);
    }

    /// A connection that one client had alone, or the pool, is lost.
    pub(crate) fn own_lane_lost(&mut self, place: u32, owner: (u32, u32)) {
        self.spares.retain(|spare| spare.lane != place);
        if let Some(client) = self.client(owner.0, owner.1)
            && let Some(watch) = &mut client.pinned_mut().watch
            && watch.lane == place
        {
            watch.is_lost = true;
        }
        self.drop_lane(place);
    }

    /// Closes connections that were not used for a while.
    pub(crate) fn sweep_spares(&mut self) {
        let now = self.now;
        let mut over = Vec::new();
        self.spares.retain(|spare| {
            let stays = now.saturating_duration_since(spare.since) < SPARE_TIME;
            if !stays {
                over.push(spare.lane);
            }
            stays
        });
        over.into_iter().for_each(|lane| self.drop_lane(lane));
    }
}

/// Redis: what is run at once within MULTI.
fn runs_inside_multi(id: CommandId) -> bool {
    use CommandId as C;
    matches!(id, C::Exec | C::Discard | C::Multi | C::Watch | C::Quit | C::Reset)
}

/// Redis: what a RESP2 client may say while it listens.
fn is_allowed_subscribed(id: CommandId) -> bool {
    use CommandId as C;
    matches!(
        id,
        C::Ping
            | C::Quit
            | C::Reset
            | C::Subscribe
            | C::Psubscribe
            | C::Ssubscribe
            | C::Unsubscribe
            | C::Punsubscribe
            | C::Sunsubscribe
    )
}
