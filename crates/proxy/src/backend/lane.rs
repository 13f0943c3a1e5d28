//! One connection to a backend: what was sent, in order, and who waits for the replies.
//!
//! ```text
//! stream   ····answered····|== sent, kept until answered ==|-- this turn's requests --|
//!                          ^ kept_from                     ^ out_from
//! fifo     {client 4, 16 replies} {client 9, 1} {client 4, 3} …
//! ```
//!
//! Requests of one client that follow each other are one record, whatever their number. The bytes of requests are kept until
//! they are answered, which costs nothing but not throwing them away: when a backend says MOVED, the request is found there.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use net::ConnId;
use resp::{Limits, Parse, ParseState, Passing, Request, parse_request};

use super::LaneKind;
use crate::measure::Histogram;

/// Capacity of a buffer that is used again.
const KEPT_CAPACITY: usize = 256 * 1024;
/// Least time between two marks of progress.
pub const MARK_EVERY: Duration = Duration::from_millis(20);

/// Who gets a reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum To {
    /// Nobody: the proxy said something itself.
    Nobody,
    /// A run of requests.
    Run,
    /// A part of a request.
    Part(u32),
    /// An answer to a task, which the record's segment names.
    Task(u32),
}

/// Requests of one client that follow each other.
#[derive(Clone, Copy, Debug)]
pub struct Record {
    /// Where the first of them begins in the lane's stream.
    pub start: u64,
    /// The client's place.
    pub client: u32,
    /// Which of the clients that had this place.
    pub serial: u32,
    /// Its segment that waits.
    pub segment: u32,
    /// What for.
    pub to: To,
    /// Replies that are still to come.
    pub left: u32,
    /// Replies that have come.
    pub done: u32,
    /// How often it was redirected.
    pub hops: u8,
    /// The command's number, see [`crate::measure::number_of`].
    pub command: u16,
    /// When it came, in microseconds of the worker's time, which wrap.
    pub came_us: u32,
}

/// Where a connection stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LaneState {
    /// There is none, and nothing is known against making one.
    Idle,
    /// It is being made; requests wait for it. Given up at the instant.
    Opening(Instant),
    /// Requests are sent.
    Open,
    /// It failed: requests fail at once. Tried again at the instant.
    Down(Instant),
    /// It failed, and a new one is being made, given up at the instant; requests still fail at once.
    Probing(Instant),
}

/// See the module.
pub struct Lane {
    /// The backend's place.
    pub backend: u32,
    /// What its requests have in common.
    pub kind: LaneKind,
    /// Which of several equal ones.
    pub stripe: u16,
    /// The client, place and serial, whose own it is.
    pub owner: Option<(u32, u32)>,
    /// Its connection.
    pub conn: Option<ConnId>,
    /// Where that stands.
    pub state: LaneState,
    /// Replies to the greeting that are still to come.
    pub greeting_left: u32,
    /// Why it failed last: what clients are told.
    pub failure: String,
    /// How long the next failure keeps it shut.
    pub back_off: Duration,
    /// Where it stands in the stream of replies.
    pub passing: Passing,
    /// A push message has begun and not ended.
    pub is_in_push: bool,
    /// On the list of lanes with something to send.
    pub is_dirty: bool,
    /// Clients that wait until less is under way.
    pub waiting: Vec<(u32, u32)>,
    /// When it was used last.
    pub used: Instant,
    /// When something came last.
    pub heard: Instant,
    /// How long requests took.
    pub histogram: Arc<Histogram>,
    out: Vec<u8>,
    out_from: u64,
    kept: VecDeque<Vec<u8>>,
    kept_from: u64,
    spare: Option<Vec<u8>>,
    fifo: VecDeque<Record>,
    asked: u64,
    answered: u64,
    /// When so many requests had been asked.
    marks: VecDeque<(Instant, u64)>,
}

impl Lane {
    /// A lane without a connection.
    pub fn new(backend: u32, kind: LaneKind, stripe: u16, now: Instant) -> Lane {
        Lane {
            backend,
            kind,
            stripe,
            owner: None,
            conn: None,
            state: LaneState::Idle,
            greeting_left: 0,
            failure: String::new(),
            back_off: Duration::ZERO,
            passing: Passing::new(),
            is_in_push: false,
            is_dirty: false,
            waiting: Vec::new(),
            used: now,
            heard: now,
            histogram: Arc::default(),
            out: Vec::new(),
            out_from: 0,
            kept: VecDeque::new(),
            kept_from: 0,
            spare: None,
            fifo: VecDeque::new(),
            asked: 0,
            answered: 0,
            marks: VecDeque::new(),
        }
    }

    /// Whether requests may be put into it.
    #[inline]
    pub fn accepts(&self) -> bool {
        matches!(self.state, LaneState::Open | LaneState::Opening(_))
    }

    /// Adds requests of a client: their bytes and who waits for their replies. `record.start` is filled in.
    #[inline]
    pub fn push(&mut self, bytes: &[u8], mut record: Record) {
        record.start = self.out_from + self.out.len() as u64;
        self.out.extend_from_slice(bytes);
        self.asked += u64::from(record.left);
        if let Some(back) = self.fifo.back_mut()
            && back.client == record.client
            && back.segment == record.segment
            && back.serial == record.serial
            && (back.to, record.to) == (To::Run, To::Run)
            && (back.hops, record.hops) == (0, 0)
            // One that began in an earlier turn would keep all bytes since then.
            && back.start >= self.out_from
        {
            back.left += record.left;
            if back.command != record.command {
                back.command = crate::measure::MIXED;
            }
            return;
        }
        self.fifo.push_back(record);
    }

    /// Adds a request that is not answered in order, such as SUBSCRIBE.
    pub fn push_unanswered(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// What the next reply is for.
    #[inline]
    pub fn front(&self) -> Option<&Record> {
        self.fifo.front()
    }

    /// The first record has so many replies more.
    #[inline]
    pub fn answered(&mut self, replies: u32) {
        self.answered += u64::from(replies);
        let Some(front) = self.fifo.front_mut() else { return };
        front.left = front.left.saturating_sub(replies);
        front.done += replies;
        if front.left == 0 {
            self.fifo.pop_front();
        }
    }

    /// Requests that have no whole reply.
    pub fn in_flight(&self) -> u64 {
        self.asked - self.answered
    }

    /// Bytes of requests that are waiting or kept.
    #[inline]
    pub fn held_bytes(&self) -> u64 {
        self.out_from + self.out.len() as u64 - self.kept_from
    }

    /// Whether nothing of it has a deadline.
    pub fn is_quiet(&self) -> bool {
        self.in_flight() == 0 && matches!(self.state, LaneState::Idle | LaneState::Open)
    }

    /// Whether there is something to send.
    pub fn has_output(&self) -> bool {
        !self.out.is_empty()
    }

    /// Gives the bytes of this turn to `send`, and keeps them until they are answered.
    pub fn send(&mut self, now: Instant, send: impl FnOnce(&[u8])) {
        send(&self.out);
        self.out_from += self.out.len() as u64;
        let next = self.spare.take().unwrap_or_default();
        self.kept.push_back(std::mem::replace(&mut self.out, next));
        match self.marks.back_mut() {
            Some((at, asked)) if now.saturating_duration_since(*at) < MARK_EVERY => *asked = self.asked,
            _ => self.marks.push_back((now, self.asked)),
        }
        self.used = now;
    }

    /// Drops the bytes of requests that are answered.
    #[inline]
    pub fn drop_answered(&mut self) {
        let until = self.fifo.front().map_or(self.out_from, |front| front.start);
        while let Some(front) = self.kept.front() {
            let end = self.kept_from + front.len() as u64;
            if end > until {
                return;
            }
            self.kept_from = end;
            if let Some(mut buffer) = self.kept.pop_front()
                && buffer.capacity() <= KEPT_CAPACITY
            {
                buffer.clear();
                self.spare = Some(buffer);
            }
        }
    }

    /// Since when it is silent though it was asked: an instant, at most [`MARK_EVERY`] before the one when the oldest
    /// unanswered request was sent, or the one when something came last, be it a part of a reply.
    pub fn silent_since(&mut self) -> Option<Instant> {
        let heard = self.heard;
        self.waiting_since().map(|since| since.max(heard))
    }

    fn waiting_since(&mut self) -> Option<Instant> {
        while let Some((at, asked)) = self.marks.front() {
            if *asked > self.answered {
                return Some(*at);
            }
            self.marks.pop_front();
        }
        None
    }

    /// The bytes of the request whose reply is the next one.
    pub fn next_request(&self) -> Option<Vec<u8>> {
        let record = self.fifo.front()?;
        let mut at = record.start;
        let mut request = Request::new();
        let mut skipped = 0;
        loop {
            let bytes = self.bytes_at(at)?;
            match parse_request(bytes, &mut ParseState::new(), &Limits::new(usize::MAX), &mut request) {
                Parse::Request if skipped == record.done => return bytes.get(..request.consumed()).map(<[u8]>::to_vec),
                Parse::Request => {
                    skipped += 1;
                    at += request.consumed() as u64;
                }
                _ => return None,
            }
        }
    }

    /// What is kept from an offset of the stream on. No request lies in two buffers.
    fn bytes_at(&self, at: u64) -> Option<&[u8]> {
        if at >= self.out_from {
            return self.out.get(usize::try_from(at - self.out_from).ok()?..);
        }
        let mut from = self.kept_from;
        for buffer in &self.kept {
            let end = from + buffer.len() as u64;
            if at < end {
                return buffer.get(usize::try_from(at.checked_sub(from)?).ok()?..);
            }
            from = end;
        }
        None
    }

    /// The connection is gone: gives all who wait, in order, and begins anew.
    pub fn reset(&mut self) -> VecDeque<Record> {
        self.conn = None;
        self.greeting_left = 0;
        self.passing = Passing::new();
        self.is_in_push = false;
        self.out = Vec::new();
        self.out_from = 0;
        self.kept.clear();
        self.kept_from = 0;
        self.asked = 0;
        self.answered = 0;
        self.marks.clear();
        std::mem::take(&mut self.fifo)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    fn record(client: u32, left: u32) -> Record {
        Record { start: 0, client, serial: 1, segment: 1, to: To::Run, left, done: 0, hops: 0, command: 0, came_us: 0 }
    }

    const GET: &[u8] = b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n";
    const SET: &[u8] = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\nb\r\n";

    #[test]
    fn runs_of_one_client_are_one_record() {
        let mut lane = Lane::new(0, LaneKind::PLAIN, 0, Instant::now());
        lane.push(&[GET, SET].concat(), record(1, 2));
        lane.push(GET, record(1, 1));
        lane.push(GET, record(2, 1));
        lane.push(GET, record(1, 1));
        let records: Vec<_> = lane.fifo.iter().map(|record| (record.client, record.left)).collect();
        assert_eq!(records, [(1, 3), (2, 1), (1, 1)]);
        assert_eq!(lane.in_flight(), 5);
        lane.answered(3);
        assert_eq!(lane.front().unwrap().client, 2);
    }

    #[test]
    fn bytes_are_kept_until_they_are_answered() {
        let now = Instant::now();
        let mut lane = Lane::new(0, LaneKind::PLAIN, 0, now);
        lane.push(&[GET, SET].concat(), record(1, 2));
        let mut sent = Vec::new();
        lane.send(now, |bytes| sent.extend_from_slice(bytes));
        assert_eq!(sent, [GET, SET].concat());
        lane.push(GET, record(1, 1));
        assert_eq!(lane.next_request().unwrap(), GET);
        lane.answered(1);
        lane.drop_answered();
        assert_eq!(lane.next_request().unwrap(), SET);
        lane.answered(1);
        lane.drop_answered();
        assert_eq!(lane.held_bytes(), GET.len() as u64, "a record ends with its turn");
        lane.answered(1);
        lane.send(now, |_| {});
        lane.drop_answered();
        assert_eq!(lane.held_bytes(), 0);
    }

    #[test]
    fn a_mark_tells_how_long_the_oldest_waits() {
        let now = Instant::now();
        let mut lane = Lane::new(0, LaneKind::PLAIN, 0, now);
        assert_eq!(lane.waiting_since(), None);
        lane.push(GET, record(1, 1));
        lane.send(now, |_| {});
        let later = now + Duration::from_secs(1);
        lane.push(GET, record(1, 1));
        lane.send(later, |_| {});
        assert_eq!(lane.waiting_since(), Some(now));
        lane.answered(1);
        assert_eq!(lane.waiting_since(), Some(later));
        lane.answered(1);
        assert_eq!(lane.waiting_since(), None);
    }
}
