//! Requests that take more than passing bytes on: several steps, a reply that must be looked at, a connection of their own.
//!
//! A task holds the client's place in its order of replies, sends requests to backends, and is run again when all of them
//! are answered; then it sends more, or gives the client its reply. Its replies are not redirected by the lanes: what MOVED
//! means to a transaction, the transaction knows.
//!
//! Invariant: a task is removed only when none of its requests is in a lane any more, so a record never meets another task.

use std::time::{Duration, Instant};

use resp::{Proto, Reply};
use slab::Slab;

use crate::backend::{LaneKind, Record, To};
use crate::client::Pause;
use crate::join::{self, Join};
use crate::order::Piece;
use crate::service::Worker;
use crate::session::blocking::Blocking;
use crate::session::exec::{Exec, Watch};
use crate::whole::{Kill, RandomKey, Scan};

/// What a task is about.
#[derive(Debug)]
pub(crate) enum Work {
    /// EXEC.
    Exec(Exec),
    /// WATCH.
    Watch(Watch),
    /// A command that may block.
    Blocking(Blocking),
    /// SCAN over servers that know no order of slots.
    Scan(Scan),
    /// RANDOMKEY.
    RandomKey(RandomKey),
    /// SCRIPT KILL, FUNCTION KILL.
    Kill(Kill),
    /// PUBLISH: the channel.
    Publish(Vec<u8>),
    /// PUBSUB.
    PubSub(crate::pubsub::ask::Question),
    /// CLIENT UNBLOCK: the server's answer is the reply.
    Unblock,
    /// Nothing is sent: somebody else gives the reply.
    Promise,
}

/// One request of a task, or several in one piece, and what was answered.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// The backend.
    pub(crate) backend: u32,
    /// The replies, one behind the other.
    pub(crate) bytes: Vec<u8>,
    /// The connection is lost; `bytes` are the error that says so.
    pub(crate) is_lost: bool,
    left: u32,
}

/// See the module.
pub(crate) struct Task {
    /// The client's place.
    pub(crate) client: u32,
    /// Which of the clients that had it.
    pub(crate) serial: u32,
    /// Protocol and database of the client when it asked.
    pub(crate) kind: LaneKind,
    segment: u32,
    answers: Vec<Answer>,
    /// Answers that are not whole.
    left: u32,
    work: Option<Work>,
}

/// The tasks of a worker.
#[derive(Default)]
pub(crate) struct Tasks {
    slab: Slab<Task>,
    ready: Vec<u32>,
    delayed: Vec<(Instant, u32)>,
}

impl Tasks {
    /// The task with this number.
    pub(crate) fn get(&self, id: u32) -> Option<&Task> {
        self.slab.get(id as usize)
    }

    /// What a task is about, while it waits for answers.
    pub(crate) fn work(&self, id: u32) -> Option<&Work> {
        self.get(id)?.work.as_ref()
    }

    /// What has come of a task's first answer.
    pub(crate) fn so_far(&self, id: u32) -> Option<&[u8]> {
        Some(&self.get(id)?.answers.first()?.bytes)
    }

    /// Some of an answer has come.
    #[inline]
    pub(crate) fn take(&mut self, id: u32, part: u32, piece: Piece<'_>) {
        let Some(task) = self.slab.get_mut(id as usize) else { return };
        let Some(answer) = task.answers.get_mut(part as usize) else { return };
        answer.bytes.extend_from_slice(piece.bytes);
        answer.left = answer.left.saturating_sub(piece.replies);
        if answer.left == 0 && piece.replies > 0 {
            self.answered(id);
        }
    }

    /// An answer will not come: its connection is lost.
    pub(crate) fn fail(&mut self, id: u32, part: u32, error: &[u8]) {
        let Some(task) = self.slab.get_mut(id as usize) else { return };
        let Some(answer) = task.answers.get_mut(part as usize) else { return };
        if answer.left > 0 {
            answer.left = 0;
            answer.is_lost = true;
            answer.bytes = error.to_vec();
            self.answered(id);
        }
    }

    fn answered(&mut self, id: u32) {
        let Some(task) = self.slab.get_mut(id as usize) else { return };
        task.left = task.left.saturating_sub(1);
        if task.left == 0 {
            self.ready.push(id);
        }
    }

    /// Whether there is a task to be run.
    #[inline]
    pub(crate) fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// When the next delayed task is due.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.delayed.iter().map(|(due, _)| *due).min()
    }
}

impl Worker {
    /// Begins a task for a client: its reply has its place among the client's replies from now on.
    pub(crate) fn begin_task(&mut self, place: u32, work: Work) -> Option<u32> {
        let client = self.clients.get_mut(place as usize)?;
        let segment = client.order.push_gather(Join::Given, 1);
        let (serial, kind) = (client.serial, client.kind);
        let task = Task { client: place, serial, kind, segment, answers: Vec::new(), left: 0, work: Some(work) };
        if client.order.in_flight() >= self.config.client_pipeline_limit {
            self.pause(place, Pause::InFlight);
        }
        u32::try_from(self.tasks.slab.insert(task)).ok()
    }

    /// Sends a request of a task to a backend's shared lane. `bytes` are `replies` requests in one piece.
    pub(crate) fn task_request(&mut self, id: u32, backend: u32, bytes: &[u8], replies: u32) {
        let Some((record, kind)) = self.task_record(id, backend, replies) else { return };
        self.send_record(backend, kind, bytes, record);
    }

    /// The same to a lane of the session's own.
    pub(crate) fn task_request_own(&mut self, id: u32, lane_place: u32, bytes: &[u8], replies: u32) {
        let backend = self.lanes.get(lane_place as usize).map_or(0, |lane| lane.backend);
        let Some((record, _)) = self.task_record(id, backend, replies) else { return };
        match self.lanes.get_mut(lane_place as usize) {
            Some(lane) if lane.accepts() => {
                lane.push(bytes, record);
                self.mark_dirty(lane_place);
            }
            _ => self.fail_record(&record, b"-ERR the connection to the backend is lost\r\n"),
        }
    }

    fn task_record(&mut self, id: u32, backend: u32, replies: u32) -> Option<(Record, LaneKind)> {
        let task = self.tasks.slab.get_mut(id as usize)?;
        let part = u32::try_from(task.answers.len()).ok()?;
        task.answers.push(Answer { backend, left: replies, ..Answer::default() });
        task.left += 1;
        let (client, serial) = (task.client, task.serial);
        let to = To::Task(part);
        Some((
            Record {
                start: 0,
                client,
                serial,
                segment: id,
                to,
                left: replies,
                done: 0,
                hops: 0,
                came_us: self.now_us,
                command: crate::measure::MIXED,
            },
            task.kind,
        ))
    }

    /// Runs the tasks whose answers are all there, and those whose time has come.
    pub(crate) fn run_tasks(&mut self) {
        if !self.tasks.delayed.is_empty() {
            let now = self.now;
            let Tasks { delayed, ready, .. } = &mut self.tasks;
            delayed.retain(|(due, id)| {
                let is_due = *due <= now;
                if is_due {
                    ready.push(*id);
                }
                !is_due
            });
        }
        while let Some(id) = self.tasks.ready.pop() {
            let Some(task) = self.tasks.slab.get_mut(id as usize) else { continue };
            let answers = std::mem::take(&mut task.answers);
            if let Some(work) = task.work.take() {
                self.run_task(id, work, answers);
            }
        }
    }

    fn run_task(&mut self, id: u32, work: Work, answers: Vec<Answer>) {
        match work {
            Work::Exec(exec) => self.exec_answered(id, exec, answers),
            Work::Watch(watch) => self.watch_answered(id, watch, answers),
            Work::Blocking(blocking) => self.blocking_answered(id, blocking, answers),
            Work::Scan(scan) => self.scan_answered(id, scan, answers),
            Work::RandomKey(random) => self.random_key_answered(id, random, answers),
            Work::Kill(kill) => self.kill_answered(id, kill, answers),
            Work::Publish(channel) => self.publish_answered(id, &channel, answers),
            Work::PubSub(question) => self.pubsub_answered(id, &question, answers),
            Work::Unblock => {
                let reply = answers.into_iter().next().map(|answer| answer.bytes).unwrap_or_default();
                self.fulfil(id, &reply);
            }
            Work::Promise => self.tasks_put_back(id, Work::Promise),
        }
    }

    /// A task goes on waiting.
    pub(crate) fn tasks_put_back(&mut self, id: u32, work: Work) {
        if let Some(task) = self.tasks.slab.get_mut(id as usize) {
            task.work = Some(work);
        }
    }

    /// Runs a task again after a while, without answers.
    pub(crate) fn delay_task(&mut self, id: u32, work: Work, delay: Duration) {
        self.tasks_put_back(id, work);
        let due = self.now + delay;
        self.tasks.delayed.push((due, id));
        self.wake_at(due);
    }

    /// Ends a task: the client gets this, one whole reply or several that belong together.
    pub(crate) fn fulfil(&mut self, id: u32, reply: &[u8]) {
        let Some(task) = self.forget_task(id) else { return };
        let Worker { clients, turn, .. } = self;
        let Some(client) = clients.get_mut(task.client as usize).filter(|client| client.serial == task.serial) else {
            return;
        };
        let start = turn.bytes.len();
        client.order.take_part(task.segment, 0, Piece::one(reply), &mut turn.bytes, join::write);
        turn.give(task.client, client, start);
        if Worker::waits_for_answers(client) {
            self.after_answers(task.client);
        }
    }

    /// Ends a task with a reply that is written now.
    pub(crate) fn fulfil_with(&mut self, id: u32, write: impl FnOnce(&mut Reply)) {
        let proto = self.tasks.get(id).map_or(Proto::Resp2, |task| task.kind.proto());
        let mut reply = Reply::with_buffer(Vec::new(), proto);
        write(&mut reply);
        self.fulfil(id, &reply.buf);
    }

    /// Ends a task without a word. None of its requests may be in a lane.
    pub(crate) fn forget_task(&mut self, id: u32) -> Option<Task> {
        self.tasks.ready.retain(|ready| *ready != id);
        self.tasks.delayed.retain(|(_, delayed)| *delayed != id);
        self.tasks.slab.try_remove(id as usize)
    }

    /// Whether the client that a task is for is still there.
    pub(crate) fn is_wanted(&self, id: u32) -> bool {
        let Some(task) = self.tasks.get(id) else { return false };
        self.clients.get(task.client as usize).is_some_and(|client| client.serial == task.serial)
    }
}
