//! When scheduled requests are due (`--rate`, `--rps`): arrival times that do not depend on the
//! server, and the requests that wait for a free connection.
//!
//! A thread's schedule is its share of the rate. Arrival `k` of a fixed schedule lies at
//! `k / rate` exactly: rounding does not add up.

use std::collections::VecDeque;

use crate::{
    extended::{Arrival, Rate},
    random::AdditiveRandom,
};

/// Arrivals of one thread. Times are nanoseconds on the thread's clock.
#[derive(Debug)]
pub(crate) struct Schedule {
    rate: f64,
    arrival: Arrival,
    max_backlog: usize,
    /// Whether the latency counts from the scheduled time.
    pub(crate) open_loop: bool,
    started: u64,
    /// Arrivals so far.
    issued: u64,
    /// Offset of the first arrival, and of the next, in nanoseconds from the start.
    first: f64,
    next: f64,
    random: AdditiveRandom,
    backlog: VecDeque<u64>,
    dropped: u64,
}

impl Schedule {
    /// The schedule of a thread that carries `share` of the whole rate. `phase` in `0.0..1.0`
    /// shifts the threads against each other.
    pub(crate) fn new(rate: Rate, share: f64, phase: f64, seed: u32) -> Schedule {
        let per_second = rate.per_second * share;
        // `--rps` may catch up for a second, no more; what is beyond was never promised.
        let burst = if rate.open_loop { rate.max_backlog } else { ceiling(per_second) };
        Schedule {
            rate: per_second / 1e9,
            arrival: rate.arrival,
            max_backlog: usize::try_from(burst).unwrap_or(usize::MAX).max(1),
            open_loop: rate.open_loop,
            started: 0,
            issued: 0,
            first: phase / (per_second / 1e9),
            next: phase / (per_second / 1e9),
            random: AdditiveRandom::new(seed),
            backlog: VecDeque::new(),
            dropped: 0,
        }
    }

    /// The schedule begins now.
    pub(crate) fn start(&mut self, now: u64) {
        self.started = now;
    }

    /// The load has rested so long: everything yet to come is due as much later.
    pub(crate) fn rest(&mut self, nanoseconds: u64) {
        self.started = self.started.saturating_add(nanoseconds);
        for due in &mut self.backlog {
            *due = due.saturating_add(nanoseconds);
        }
    }

    /// Moves everything due into the backlog, at most `quota` requests; how many it took.
    pub(crate) fn advance(&mut self, now: u64, quota: u64) -> u64 {
        let mut taken = 0;
        while taken < quota && self.next_due() <= now {
            let due = self.next_due();
            self.step();
            if self.backlog.len() >= self.max_backlog {
                self.dropped += 1;
                // A dropped request of an open loop is one that was asked for.
                taken += u64::from(self.open_loop);
                continue;
            }
            self.backlog.push_back(due);
            taken += 1;
        }
        taken
    }

    /// The scheduled time of the request that has waited longest.
    pub(crate) fn pop(&mut self) -> Option<u64> {
        self.backlog.pop_front()
    }

    /// Requests that wait for a connection.
    pub(crate) fn backlog(&self) -> usize {
        self.backlog.len()
    }

    /// Requests refused because too many waited; only an open loop has any.
    pub(crate) fn dropped(&self) -> u64 {
        if self.open_loop { self.dropped } else { 0 }
    }

    /// Forgets the drops before the measured part.
    pub(crate) fn reset_dropped(&mut self) {
        self.dropped = 0;
    }

    /// When the next request is due.
    pub(crate) fn next_due(&self) -> u64 {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive")]
        let offset = self.next as u64;
        self.started + offset
    }

    fn step(&mut self) {
        self.issued += 1;
        match self.arrival {
            #[expect(clippy::cast_precision_loss, reason = "exact up to 2^53 arrivals")]
            Arrival::Fixed => self.next = self.first + self.issued as f64 / self.rate,
            Arrival::Poisson => self.next += -(1.0 - self.random.unit()).ln() / self.rate,
        }
    }
}

fn ceiling(value: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive")]
    let value = value.ceil() as u64;
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(per_second: f64, arrival: Arrival, max_backlog: u64, open_loop: bool) -> Rate {
        Rate { per_second, arrival, max_backlog, open_loop }
    }

    #[test]
    fn fixed_gaps_are_exact() {
        let mut schedule = Schedule::new(rate(1_000.0, Arrival::Fixed, 10_000, true), 1.0, 0.0, 1);
        schedule.start(5);
        assert_eq!(schedule.advance(5 + 2_000_000, u64::MAX), 3);
        assert_eq!(
            [schedule.pop(), schedule.pop(), schedule.pop(), schedule.pop()],
            [Some(5), Some(1_000_005), Some(2_000_005), None]
        );
        assert_eq!(schedule.advance(5 + 1_000_000_000, 4), 4);
    }

    #[test]
    fn poisson_gaps_have_the_rate() {
        let mut schedule = Schedule::new(rate(10_000.0, Arrival::Poisson, 1_000_000, true), 1.0, 0.0, 3);
        schedule.start(0);
        let taken = schedule.advance(10_000_000_000, u64::MAX);
        assert!((98_500..101_500).contains(&taken), "{taken}");
    }

    #[test]
    fn a_full_backlog_drops() {
        let mut schedule = Schedule::new(rate(1_000.0, Arrival::Fixed, 10, true), 1.0, 0.0, 1);
        schedule.start(0);
        assert_eq!(schedule.advance(99_500_000, u64::MAX), 100);
        assert_eq!((schedule.backlog(), schedule.dropped()), (10, 90));
        let mut limit = Schedule::new(rate(10.0, Arrival::Fixed, 0, false), 1.0, 0.0, 1);
        limit.start(0);
        assert_eq!(limit.advance(60_000_000_000, u64::MAX), 10);
        assert_eq!((limit.backlog(), limit.dropped()), (10, 0));
    }
}
