//! State of one connection of the generator: small, because there may be a hundred thousand.

use std::collections::VecDeque;

use resp::SkipState;

/// What a connection is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The connection is being made.
    Connecting,
    /// AUTH, SELECT and the like are under way.
    Greeting,
    /// Nothing is under way.
    Idle,
    /// Requests are under way.
    Busy,
    /// It has sent all it is to send; the driver has yet to count it.
    Finished,
    /// Finished and counted, or replaced by another connection: whatever still comes is ignored.
    Retired,
}

/// A connection. Times are nanoseconds on the engine's clock.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) phase: Phase,
    /// Replies of prefix commands still to come.
    pub(crate) prefix_left: u8,
    /// Index of the server it talks to.
    pub(crate) server: u32,
    /// Its number among the clients of all threads.
    pub(crate) index: u32,
    /// Requests of the batch under way, and how many of them await their reply.
    pub(crate) sent: u32,
    pub(crate) expected: u32,
    /// Identifies the batch to the [`Source`](super::source::Source).
    pub(crate) position: u64,
    /// When the batch (or the connection attempt) began.
    pub(crate) started: u64,
    /// Latency of the batch's first bytes, for `--legacy-latency`.
    pub(crate) first_latency: Option<u64>,
    /// Requests left to it by `--per-client`, or recorded commands left to replay.
    pub(crate) quota: u64,
    /// Where it stands in its own range of keys, or of recorded commands.
    pub(crate) place: u64,
    /// Key numbers whose values are awaited; only with `--verify`.
    pub(crate) asked: Option<VecDeque<u64>>,
    /// Replies that were counted.
    pub(crate) replies: u32,
    pub(crate) skip: SkipState,
    /// Scheduled and real send times of requests under way; only with a schedule.
    pub(crate) flights: VecDeque<Flight>,
}

/// What a connection takes over from one before it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seat {
    /// Index of the server to talk to.
    pub(crate) server: u32,
    /// Number among the clients of all threads.
    pub(crate) index: u32,
    /// See [`Client::quota`].
    pub(crate) quota: u64,
    /// See [`Client::place`].
    pub(crate) place: u64,
    /// Whether values are checked.
    pub(crate) checks: bool,
}

/// A scheduled request under way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flight {
    /// When it was due.
    pub(crate) due: u64,
    /// When it was sent.
    pub(crate) sent: u64,
    /// Its draw from the source.
    pub(crate) position: u64,
}

impl Client {
    /// A connection yet to be made.
    pub(crate) fn new(seat: Seat, now: u64) -> Client {
        let Seat { server, index, quota, place, checks } = seat;
        Client {
            phase: Phase::Connecting,
            prefix_left: 0,
            server,
            index,
            sent: 0,
            expected: 0,
            position: 0,
            started: now,
            first_latency: None,
            quota,
            place,
            asked: checks.then(VecDeque::new),
            replies: 0,
            skip: SkipState::new(),
            flights: VecDeque::new(),
        }
    }

    /// What the connection that follows this one takes over.
    pub(crate) fn seat(&self) -> Seat {
        Seat {
            server: self.server,
            index: self.index,
            quota: self.quota,
            place: self.place,
            checks: self.asked.is_some(),
        }
    }

    /// Requests that await their reply.
    pub(crate) fn under_way(&self) -> u64 {
        if self.flights.is_empty() { u64::from(self.expected) } else { self.flights.len() as u64 }
    }
}
