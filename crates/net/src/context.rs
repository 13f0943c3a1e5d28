//! What every call into a service carries: the time of this turn, the loop's mailbox and counters.

use std::time::{Duration, Instant};

use crate::clock::Clock;
use crate::mailbox::Mailbox;

/// Between two readings, the wall clock is taken to run as the monotonic one.
const WALL_READ_EVERY: Duration = Duration::from_millis(1);

/// The loop as seen from inside a call to a service.
pub struct Context<M> {
    clock: Box<dyn Clock>,
    now: Instant,
    wall_us: u64,
    /// When the wall clock was read last, and what it showed.
    wall_read: (Instant, u64),
    mailbox: Mailbox<M>,
    stopping: bool,
    /// See [`Context::hold_output`].
    pub(crate) holds: bool,
    pub(crate) stats: Stats,
}

/// What a loop has done since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Turns, each with one `epoll_wait`.
    pub turns: u64,
    /// Calls of `recv`.
    pub reads: u64,
    /// Calls of `send`.
    pub writes: u64,
    /// Bytes received.
    pub read_bytes: u64,
    /// Bytes that the kernel took for sending.
    pub written_bytes: u64,
    /// Connections accepted, refused ones included.
    pub accepted: u64,
    /// Messages taken from the mailbox.
    pub messages: u64,
}

impl<M> Context<M> {
    pub(crate) fn new(clock: Box<dyn Clock>, mailbox: Mailbox<M>) -> Self {
        let (now, wall_us) = (clock.now(), clock.wall_us());
        Context {
            clock,
            now,
            wall_us,
            wall_read: (now, wall_us),
            mailbox,
            stopping: false,
            holds: false,
            stats: Stats::default(),
        }
    }

    /// Monotonic time, read once when the turn began.
    #[inline]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Wall-clock time in milliseconds since 1970 when the turn began.
    #[inline]
    pub fn now_ms(&self) -> u64 {
        self.wall_us / 1000
    }

    /// Wall-clock time in microseconds since 1970 when the turn began.
    #[inline]
    pub fn now_us(&self) -> u64 {
        self.wall_us
    }

    /// Monotonic time at this very moment, for measuring how long something takes.
    pub fn fresh_now(&self) -> Instant {
        self.clock.now()
    }

    /// Reads the clock again, after something that took long.
    pub fn refresh(&mut self) {
        self.now = self.clock.now();
        let (read_at, shown_us) = self.wall_read;
        let since = self.now.saturating_duration_since(read_at);
        if since < WALL_READ_EVERY {
            self.wall_us = shown_us + u64::from(since.subsec_micros());
        } else {
            self.wall_us = self.clock.wall_us();
            self.wall_read = (self.now, self.wall_us);
        }
    }

    /// From inside [`crate::Service::data`]: what it answers now, and all later output of the connection, is kept until
    /// [`crate::Conns::uncork`].
    #[inline]
    pub fn hold_output(&mut self) {
        self.holds = true;
    }

    /// The mailbox of this loop.
    pub fn mailbox(&self) -> &Mailbox<M> {
        &self.mailbox
    }

    /// Ends the loop after this turn.
    pub fn stop(&mut self) {
        self.stopping = true;
    }

    /// Whether the loop ends after this turn.
    pub fn is_stopping(&self) -> bool {
        self.stopping
    }

    /// The loop's counters.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }
}
