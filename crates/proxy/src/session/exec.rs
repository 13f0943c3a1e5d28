//! MULTI, EXEC, DISCARD, WATCH, UNWATCH.
//!
//! Without WATCH a transaction is a block on the shared lane. With it, the keys are watched on a connection of the client's
//! own, and the block goes there too: the server itself notices what changed. If that connection is lost, or the slot moves
//! away, nobody can tell any more whether a key was changed, so EXEC answers as if one was: null, and the client tries again.
//!
//! A block of which nothing was run, because the slot has moved or is moving, is sent to where it belongs, whole.

use std::time::{Duration, Instant};

use commands::CommandId;
use commands::table::CommandSpec;
use resp::{Args, write_command};

use super::queue::{self, Outcome, Queue};
use super::{NO_CONNECTION, Pinned};
use crate::client::Pause;
use crate::dispatch::Step;
use crate::map::{Redirect, parse_redirect};
use crate::merge;
use crate::routing::{self, FIXED_SLOT};
use crate::service::Worker;
use crate::tasks::{Answer, Work};

/// How often one block is sent at most.
const HOPS_MAX: u32 = 16;
/// Before it is sent again to a server that cannot for the moment.
const RETRY_AFTER: Duration = Duration::from_millis(20);

/// What a client watches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watching {
    /// The slot of the keys.
    pub(crate) slot: u16,
    /// The connection on which they are watched.
    pub(crate) lane: u32,
    /// Nobody can tell any more whether they have changed.
    pub(crate) is_lost: bool,
}

/// EXEC under way.
#[derive(Debug)]
pub(crate) struct Exec {
    queue: Queue,
    watch: Option<Watching>,
    hops: u32,
    until: Instant,
    /// To ask there next.
    next: (u32, bool),
}

/// WATCH under way.
#[derive(Debug)]
pub(crate) struct Watch {
    watching: Watching,
    is_first: bool,
    bytes: Vec<u8>,
    hops: u32,
    until: Instant,
}

impl Worker {
    /// MULTI, EXEC, DISCARD, WATCH or UNWATCH.
    pub(crate) fn transaction(&mut self, place: u32, spec: &'static CommandSpec, args: Args<'_>) -> Step {
        let Some(client) = self.clients.get_mut(place as usize) else { return Step::CloseNow };
        let is_open = client.pinned().is_some_and(|pinned| pinned.queue.is_some());
        let error = match (spec.id, is_open) {
            (CommandId::Multi, true) => "ERR MULTI calls can not be nested",
            (CommandId::Watch, true) => "ERR WATCH inside MULTI is not allowed",
            (CommandId::Exec, false) => "ERR EXEC without MULTI",
            (CommandId::Discard, false) => "ERR DISCARD without MULTI",
            (CommandId::Multi, false) => {
                let pinned = client.pinned_mut();
                pinned.queue = Some(Queue::within(pinned.watch.map(|watch| watch.slot)));
                client.note_pinned();
                self.reply_now(place, resp::Reply::ok);
                return Step::Done;
            }
            (CommandId::Exec, true) => return self.exec(place),
            (CommandId::Watch, false) => return self.watch(place, spec, args),
            _ => {
                self.leave_transaction(place);
                self.reply_now(place, resp::Reply::ok);
                return Step::Done;
            }
        };
        // Redis: these do not spoil the transaction.
        self.reply_now(place, |reply| reply.error(error));
        Step::Done
    }

    /// Forgets the queue and what is watched.
    fn leave_transaction(&mut self, place: u32) {
        let Some(client) = self.clients.get_mut(place as usize) else { return };
        let owner = (place, client.serial);
        let Pinned { queue, watch, .. } = client.pinned_mut();
        *queue = None;
        let watch = watch.take();
        client.note_pinned();
        if let Some(watch) = watch {
            self.unwatch_lane(watch.lane, owner);
        }
    }

    fn exec(&mut self, place: u32) -> Step {
        let Some(client) = self.clients.get_mut(place as usize) else { return Step::CloseNow };
        let owner = (place, client.serial);
        let pinned = client.pinned_mut();
        let Some(queue) = pinned.queue.take() else { return Step::Done };
        if queue.is_aborted() {
            self.leave_transaction(place);
            return self.refuse_request(place, queue::ABORTED.as_bytes());
        }
        let watch = pinned.watch.take();
        client.note_pinned();
        if let Some(watch) = watch.filter(|watch| watch.is_lost) {
            self.drop_own_lane(watch.lane, owner);
            self.reply_now(place, resp::Reply::null_array);
            return Step::Done;
        }
        if queue.is_empty() && watch.is_none() {
            self.reply_now(place, resp::Reply::empty_array);
            return Step::Done;
        }
        let Some(backend) = self.owner_of(queue.slot().unwrap_or(FIXED_SLOT)) else {
            if let Some(watch) = watch {
                self.unwatch_lane(watch.lane, owner);
            }
            self.shared.map.request_refresh();
            return self.refuse_request(place, b"CLUSTERDOWN Hash slot not served");
        };
        let until = self.now + Duration::from_millis(u64::from(self.config.backend_retry_time));
        let exec = Exec { queue, watch, hops: 0, until, next: (backend, false) };
        let Some(id) = self.begin_task(place, Work::Promise) else { return Step::CloseNow };
        self.wait_for(place, id);
        self.send_block(id, exec);
        Step::Done
    }

    /// The client's next request waits until a task has ended.
    pub(crate) fn wait_for(&mut self, place: u32, id: u32) {
        if let Some(client) = self.clients.get_mut(place as usize) {
            client.pinned_mut().waits_for = Some(id);
        }
        self.pause(place, Pause::Own);
    }

    /// The client's next request need not wait any longer.
    pub(crate) fn wait_is_over(&mut self, id: u32) {
        let Some((place, serial)) = self.tasks.get(id).map(|task| (task.client, task.serial)) else { return };
        if let Some(client) = self.client(place, serial) {
            client.pinned_mut().waits_for = None;
            self.unpause(place, Pause::Own);
        }
    }

    fn send_block(&mut self, id: u32, exec: Exec) {
        let (backend, asking) = exec.next;
        let (block, replies, watch) = (exec.queue.block(asking), exec.queue.replies(asking), exec.watch);
        self.tasks_put_back(id, Work::Exec(exec));
        match watch {
            Some(watch) => self.task_request_own(id, watch.lane, &block, replies),
            None => self.task_request(id, backend, &block, replies),
        }
    }

    pub(crate) fn exec_answered(&mut self, id: u32, mut exec: Exec, answers: Vec<Answer>) {
        let Some(answer) = answers.into_iter().next() else {
            // It has waited to be sent again.
            return self.send_block(id, exec);
        };
        if answer.is_lost {
            // What was sent may have been run: only a watched transaction is sure to be tried again in a safe way, and even
            // that only by the client, who must know.
            return self.end_exec(id, &exec, &answer.bytes);
        }
        let refused = match queue::outcome(&answer.bytes) {
            Some(Outcome::Done(reply)) => return self.end_exec(id, &exec, reply),
            Some(Outcome::Refused(error)) => error.to_vec(),
            None => merge::UNEXPECTED.as_bytes().to_vec(),
        };
        let redirect = parse_redirect(&refused);
        exec.hops += 1;
        if redirect.is_none() && !refused.starts_with(b"LOADING") || exec.hops > HOPS_MAX {
            return self.end_exec(id, &exec, &[b"-", queue::aborted_because(&refused).as_slice(), b"\r\n"].concat());
        }
        self.shared.map.request_refresh();
        if exec.watch.is_some() {
            // Whoever has the keys now did not watch them.
            return self.end_exec_null(id, &exec);
        }
        let slot = exec.queue.slot().unwrap_or(FIXED_SLOT);
        match redirect {
            Some(Redirect::Moved { host, port, .. }) => {
                exec.next = (self.named_backend(answer.backend, &host, port).unwrap_or(exec.next.0), false);
                self.send_block(id, exec);
            }
            Some(Redirect::Ask { host, port, .. }) => {
                exec.next = (self.named_backend(answer.backend, &host, port).unwrap_or(exec.next.0), true);
                self.send_block(id, exec);
            }
            _ if self.now < exec.until => {
                exec.next = (self.owner_of(slot).unwrap_or(exec.next.0), false);
                self.delay_task(id, Work::Exec(exec), RETRY_AFTER);
            }
            _ => self.end_exec(id, &exec, &[b"-", queue::aborted_because(&refused).as_slice(), b"\r\n"].concat()),
        }
    }

    fn end_exec_null(&mut self, id: u32, exec: &Exec) {
        let proto = self.tasks.get(id).map_or(resp::Proto::Resp2, |task| task.kind.proto());
        let mut reply = resp::Reply::with_buffer(Vec::new(), proto);
        reply.null_array();
        self.end_exec(id, exec, &reply.buf);
    }

    fn end_exec(&mut self, id: u32, exec: &Exec, reply: &[u8]) {
        if let (Some(watch), Some(owner)) = (exec.watch, self.owner_of_task(id)) {
            // EXEC has ended the watching, whether it ran or not.
            self.release_lane(watch.lane, owner);
        }
        self.wait_is_over(id);
        self.fulfil(id, reply);
    }

    // ---- WATCH ---------------------------------------------------------------------------------------------------

    fn watch(&mut self, place: u32, spec: &'static CommandSpec, args: Args<'_>) -> Step {
        let Some(client) = self.clients.get_mut(place as usize) else { return Step::CloseNow };
        let (owner, kind) = ((place, client.serial), client.kind);
        let watched = client.pinned().and_then(|pinned| pinned.watch);
        if !client.order.is_empty() {
            // On the connection of its own it would overtake what was sent before.
            self.pause(place, Pause::Drain);
            return Step::Again;
        }
        let slot = match routing::slot_of_call(spec, &args, self.map.space) {
            Ok(slot) => slot.unwrap_or(FIXED_SLOT),
            Err(error) if error.is_about_slots() && self.is_one_server() => FIXED_SLOT,
            Err(error) => return self.refuse_request(place, error.0.as_bytes()),
        };
        let watching = match watched {
            Some(watching) if watching.slot != slot && !self.is_one_server() => {
                return self.refuse_request(place, routing::plan::CROSS_SLOT.as_bytes());
            }
            Some(watching) if watching.is_lost => {
                self.reply_now(place, resp::Reply::ok);
                return Step::Done;
            }
            Some(watching) => watching,
            None => {
                let Some(backend) = self.owner_of(slot) else {
                    self.shared.map.request_refresh();
                    return self.refuse_request(place, b"CLUSTERDOWN Hash slot not served");
                };
                let Some(lane) = self.take_own_lane(backend, kind, owner) else {
                    return self.refuse_request(place, NO_CONNECTION.as_bytes());
                };
                Watching { slot, lane, is_lost: false }
            }
        };
        let mut bytes = Vec::new();
        write_command(&mut bytes, args);
        let until = self.now + Duration::from_millis(u64::from(self.config.backend_retry_time));
        let watch = Watch { watching, is_first: watched.is_none(), bytes, hops: 0, until };
        let Some(id) = self.begin_task(place, Work::Promise) else { return Step::CloseNow };
        self.wait_for(place, id);
        self.send_watch(id, watch);
        Step::Done
    }

    fn send_watch(&mut self, id: u32, watch: Watch) {
        let (lane, bytes) = (watch.watching.lane, watch.bytes.clone());
        self.tasks_put_back(id, Work::Watch(watch));
        self.task_request_own(id, lane, &bytes, 1);
    }

    pub(crate) fn watch_answered(&mut self, id: u32, mut watch: Watch, answers: Vec<Answer>) {
        let Some(answer) = answers.into_iter().next() else { return self.send_watch(id, watch) };
        let error = merge::error_text(&answer.bytes);
        let redirect = error.and_then(parse_redirect);
        if error.is_none() {
            return self.end_watch(id, watch.watching, &answer.bytes);
        }
        watch.hops += 1;
        if !watch.is_first {
            // Something is watched there already, and cannot be elsewhere: EXEC will say null.
            let watching = Watching { is_lost: true, ..watch.watching };
            return self.end_watch(id, watching, b"+OK\r\n");
        }
        let backend = match redirect {
            _ if watch.hops > HOPS_MAX || answer.is_lost => None,
            Some(Redirect::Moved { host, port, .. }) => self.named_backend(answer.backend, &host, port),
            Some(Redirect::TryAgain | Redirect::ClusterDown) if self.now < watch.until => {
                self.shared.map.request_refresh();
                return self.delay_task(id, Work::Watch(watch), RETRY_AFTER);
            }
            // While its slot moves, a key has no one place where it could be watched.
            Some(Redirect::Ask { .. }) if self.now < watch.until => {
                return self.delay_task(id, Work::Watch(watch), RETRY_AFTER);
            }
            _ => None,
        };
        let Some((kind, owner)) = self.tasks.get(id).map(|task| (task.kind, (task.client, task.serial))) else {
            return;
        };
        self.unwatch_lane(watch.watching.lane, owner);
        let taken = backend.and_then(|backend| self.take_own_lane(backend, kind, owner));
        match taken {
            Some(lane) => {
                self.shared.map.request_refresh();
                watch.watching.lane = lane;
                self.send_watch(id, watch);
            }
            None => {
                self.wait_is_over(id);
                self.fulfil(id, &answer.bytes);
            }
        }
    }

    fn end_watch(&mut self, id: u32, watching: Watching, reply: &[u8]) {
        self.wait_is_over(id);
        let Some((place, serial)) = self.tasks.get(id).map(|task| (task.client, task.serial)) else { return };
        match self.client(place, serial) {
            Some(client) => {
                client.pinned_mut().watch = Some(watching);
                client.note_pinned();
            }
            None => self.drop_own_lane(watching.lane, (place, serial)),
        }
        self.fulfil(id, reply);
    }

    /// The client of a task, as the owner of its connections.
    pub(crate) fn owner_of_task(&self, id: u32) -> Option<(u32, u32)> {
        self.tasks.get(id).map(|task| (task.client, task.serial))
    }

    /// The connection of the client's own that a task waits on.
    pub(crate) fn lane_of_task(&self, id: u32) -> Option<u32> {
        match self.tasks.work(id)? {
            Work::Exec(exec) => exec.watch.map(|watch| watch.lane),
            Work::Watch(watch) => Some(watch.watching.lane),
            Work::Blocking(blocking) => Some(blocking.lane),
            _ => None,
        }
    }
}
