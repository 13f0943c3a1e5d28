//! What a finished test is known by, before any output format.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

use crate::{
    agents::wire,
    fairness::Fairness,
    latency::{self, Latency},
};

/// Error replies and failures by class: the count and the first text seen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Errors {
    classes: BTreeMap<String, ErrorClass>,
}

/// Errors that start with the same word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ErrorClass {
    /// How many.
    pub(crate) count: u64,
    /// Text of the first, without the leading dash.
    pub(crate) first: String,
}

impl Errors {
    /// Counts an error reply, whose text begins with its class (`ERR …`, `MOVED …`).
    pub(crate) fn add_reply(&mut self, text: &str) {
        let class = text.split(' ').next().unwrap_or_default();
        let is_word = !class.is_empty()
            && class.len() <= 32
            && class.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
        self.add(if is_word { class } else { "ERR" }, text);
    }

    /// Counts a failure of the given class (`timeout`, `reset`, `connect`, `parse`, `corrupt`).
    pub(crate) fn add(&mut self, class: &str, text: &str) {
        match self.classes.get_mut(class) {
            Some(known) => known.count += 1,
            None => {
                let entry = ErrorClass { count: 1, first: text.to_owned() };
                self.classes.insert(class.to_owned(), entry);
            }
        }
    }

    /// Adds another thread's errors.
    pub(crate) fn merge(&mut self, other: &Errors) {
        for (class, entry) in &other.classes {
            match self.classes.get_mut(class) {
                Some(known) => known.count += entry.count,
                None => {
                    self.classes.insert(class.clone(), entry.clone());
                }
            }
        }
    }

    /// Whether there was none.
    pub(crate) fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }

    /// All errors together.
    pub(crate) fn total(&self) -> u64 {
        self.classes.values().map(|class| class.count).sum()
    }

    /// Errors that a cluster client expects while slots move; they do not fail a run.
    pub(crate) fn redirects(&self) -> u64 {
        ["MOVED", "ASK"].iter().filter_map(|class| self.classes.get(*class)).map(|c| c.count).sum()
    }

    /// Classes in alphabetical order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &ErrorClass)> {
        self.classes.iter().map(|(class, entry)| (class.as_str(), entry))
    }
}

/// A row of a test's results: the requests of one kind, or those to one server.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct GroupOutcome {
    /// Name of the operation or the server.
    pub(crate) name: String,
    /// Connections that belong to it alone; 0 for operations.
    pub(crate) clients: u64,
    /// Its latencies, µs, error replies included.
    #[serde(with = "wire")]
    pub(crate) service: Latency,
    /// Its error replies.
    pub(crate) errors: u64,
}

impl GroupOutcome {
    /// Nothing yet.
    pub(crate) fn empty(name: &str, precision: u8) -> GroupOutcome {
        GroupOutcome { name: name.to_owned(), clients: 0, service: latency::recorder(precision), errors: 0 }
    }

    fn merge(&mut self, other: &GroupOutcome) {
        self.clients += other.clients;
        latency::add(&mut self.service, &other.service);
        self.errors += other.errors;
    }
}

/// What one of several generators has done.
#[derive(Debug, Clone)]
pub(crate) struct AgentOutcome {
    /// Its address.
    pub(crate) name: String,
    /// Its part of the results; nothing when it was lost before any came.
    pub(crate) outcome: Outcome,
    /// It was lost before the end; the results are what it had told until then.
    pub(crate) is_lost: bool,
}

/// One interval of the timeline.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Interval {
    /// End of the interval, from the start of the test.
    pub(crate) end: Duration,
    /// Length of the interval.
    pub(crate) length: Duration,
    /// Latencies recorded in it.
    #[serde(with = "wire")]
    pub(crate) service: Latency,
    /// Error replies in it.
    pub(crate) errors: u64,
    /// Requests under way at its end.
    pub(crate) active: u64,
}

/// Everything measured in one test.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// Title of the test.
    pub(crate) title: String,
    /// Number printed as `bytes payload`.
    pub(crate) payload_bytes: usize,
    /// Replies received in the measured time, error replies included.
    pub(crate) finished: u64,
    /// Wall time of the measured part.
    pub(crate) elapsed: Duration,
    /// Time from send to reply, µs.
    #[serde(with = "wire")]
    pub(crate) service: Latency,
    /// Time from the scheduled send to the reply, µs; only with `--rate`.
    #[serde(with = "wire::optional")]
    pub(crate) response: Option<Latency>,
    /// Requests per connection.
    pub(crate) fairness: Fairness,
    /// Errors by class.
    pub(crate) errors: Errors,
    /// Requests that the schedule asked for and the backlog limit refused.
    pub(crate) dropped: u64,
    /// Requests still waiting for a connection when the test ended.
    pub(crate) backlog: u64,
    /// Bytes written.
    pub(crate) bytes_sent: u64,
    /// Bytes read.
    pub(crate) bytes_received: u64,
    /// Null replies to reads (`misses`), and the other replies to the same.
    pub(crate) null_replies: u64,
    /// Connections that stood at the start.
    pub(crate) connected: usize,
    /// Time to establish a connection, µs.
    #[serde(with = "wire")]
    pub(crate) connect: Latency,
    /// How late requests were sent that did not have to wait for a connection, µs; only with
    /// `--rate`.
    #[serde(with = "wire::optional")]
    pub(crate) lateness: Option<Latency>,
    /// Share of the test in which the busiest generator thread ran or waited for a CPU, 0 … 1.
    pub(crate) busiest_thread: f64,
    /// CPU time of all generator threads.
    pub(crate) generator_cpu: Duration,
    /// CPU time of the process of `--server-pid`.
    pub(crate) server_cpu: Option<Duration>,
    /// Per-operation rows, when there is more than one operation.
    pub(crate) operations: Vec<GroupOutcome>,
    /// Per-server rows, when there is more than one server.
    pub(crate) targets: Vec<GroupOutcome>,
    /// The parts of the generators, when there are several.
    #[serde(skip)]
    pub(crate) agents: Vec<AgentOutcome>,
    /// Per-interval rows, when asked for.
    pub(crate) timeline: Vec<Interval>,
    /// Ended by Ctrl-C.
    pub(crate) interrupted: bool,
    /// Ended by an error.
    pub(crate) aborted: bool,
    /// What an agent told while it ran is not what it told at its end.
    pub(crate) is_inconsistent: bool,
}

impl Outcome {
    /// Nothing yet.
    pub(crate) fn empty(title: &str, payload_bytes: usize, precision: u8) -> Outcome {
        let histogram = || latency::recorder(precision);
        Outcome {
            title: title.to_owned(),
            payload_bytes,
            finished: 0,
            elapsed: Duration::ZERO,
            service: histogram(),
            response: None,
            fairness: Fairness::default(),
            errors: Errors::default(),
            dropped: 0,
            backlog: 0,
            bytes_sent: 0,
            bytes_received: 0,
            null_replies: 0,
            connected: 0,
            connect: histogram(),
            lateness: None,
            busiest_thread: 0.0,
            generator_cpu: Duration::ZERO,
            server_cpu: None,
            operations: Vec::new(),
            targets: Vec::new(),
            agents: Vec::new(),
            timeline: Vec::new(),
            interrupted: false,
            aborted: false,
            is_inconsistent: false,
        }
    }

    /// Takes in the part of another generator that began at the same instant.
    pub(crate) fn merge(&mut self, other: &Outcome) {
        self.finished += other.finished;
        self.elapsed = self.elapsed.max(other.elapsed);
        latency::add(&mut self.service, &other.service);
        latency::add_option(&mut self.response, other.response.as_ref());
        latency::add(&mut self.connect, &other.connect);
        latency::add_option(&mut self.lateness, other.lateness.as_ref());
        self.fairness.merge(&other.fairness);
        self.errors.merge(&other.errors);
        self.dropped += other.dropped;
        self.backlog += other.backlog;
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.null_replies += other.null_replies;
        self.connected += other.connected;
        self.busiest_thread = self.busiest_thread.max(other.busiest_thread);
        self.generator_cpu += other.generator_cpu;
        for (rows, parts) in [(&mut self.operations, &other.operations), (&mut self.targets, &other.targets)] {
            for part in parts {
                match rows.iter_mut().find(|row| row.name == part.name) {
                    Some(row) => row.merge(part),
                    None => rows.push(part.clone()),
                }
            }
        }
        self.add_timeline(other.timeline.clone());
        self.interrupted |= other.interrupted;
        self.aborted |= other.aborted;
    }

    /// Takes in the intervals of another thread or generator.
    pub(crate) fn add_timeline(&mut self, intervals: Vec<Interval>) {
        for (index, interval) in intervals.into_iter().enumerate() {
            match self.timeline.get_mut(index) {
                Some(row) => {
                    latency::add(&mut row.service, &interval.service);
                    row.errors += interval.errors;
                    row.active += interval.active;
                }
                None => self.timeline.push(interval),
            }
        }
    }

    /// Replies that were neither errors nor empty: what a read has found.
    pub(crate) fn hits(&self) -> u64 {
        self.finished.saturating_sub(self.errors.total()).saturating_sub(self.null_replies)
    }

    /// Requests per second as redis-benchmark computes it: single precision, whole milliseconds.
    #[expect(clippy::cast_precision_loss, reason = "Redis: single precision, to the last digit")]
    pub(crate) fn redis_rate(&self) -> f32 {
        let seconds = match self.elapsed.as_millis() {
            // Too short for Redis's clock, which would show an infinite rate.
            0 => self.elapsed.as_secs_f32().max(1e-6),
            milliseconds => milliseconds as f32 / 1000.0,
        };
        self.finished as f32 / seconds
    }

    /// Requests per second.
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    pub(crate) fn rate(&self) -> f64 {
        self.finished as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// Replies that were not errors, per second.
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    pub(crate) fn success_rate(&self) -> f64 {
        let successes = self.finished.saturating_sub(self.errors.total());
        successes as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// Errors as a share of all finished requests, 0 … 1.
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    pub(crate) fn error_share(&self) -> f64 {
        match self.finished.max(self.errors.total()) {
            0 => 0.0,
            finished => self.errors.total() as f64 / finished as f64,
        }
    }

    /// CPU time per request of the process of `--server-pid`, µs.
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    pub(crate) fn server_cpu_us(&self) -> Option<f64> {
        self.server_cpu.map(|cpu| cpu.as_secs_f64() * 1e6 / self.finished.max(1) as f64)
    }

    /// Whether the generator set the limit and not the server: in a closed loop when a thread had
    /// no time left, in an open loop when requests left late although a connection was free. A moment's load tells nothing.
    pub(crate) fn generator_limited(&self) -> bool {
        if self.elapsed < JUDGED_FROM {
            return false;
        }
        match &self.lateness {
            None => self.busiest_thread >= BUSY_LIMIT,
            Some(lateness) => latency::value_at_percent(lateness, 99.0) > LATENESS_LIMIT_US,
        }
    }
}

/// CPU share of a thread from which the generator is called the limit.
const BUSY_LIMIT: f64 = 0.80;

/// Shorter loads are not judged: filling caches and growing buffers is most of them.
const JUDGED_FROM: Duration = Duration::from_millis(200);

/// Lateness (99th percentile) from which the generator is called the limit of an open loop.
const LATENESS_LIMIT_US: u64 = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_fall_into_classes() {
        let mut errors = Errors::default();
        errors.add_reply("ERR unknown command");
        errors.add_reply("ERR wrong number");
        errors.add_reply("MOVED 1 a:1");
        errors.add_reply("strange text");
        errors.add("timeout", "no reply within 1 s");
        let seen: Vec<_> = errors.iter().map(|(class, entry)| (class, entry.count)).collect();
        assert_eq!(seen, [("ERR", 3), ("MOVED", 1), ("timeout", 1)]);
        assert_eq!((errors.total(), errors.redirects()), (5, 1));
    }
}
