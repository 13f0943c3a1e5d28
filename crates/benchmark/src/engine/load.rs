//! Hot path: what one thread sends and counts, without sockets. No allocation per request, one
//! clock reading per readable event, nothing shared with other threads but one store per turn.
//!
//! ```text
//!  greet ──► Greeting ──(prefix replies)──► Idle ──start──► Busy ──(last reply)──┐
//!                                             ▲                ▲──next batch─────┤
//!                                             └──── Finished ◄──quota used up────┘
//! ```
//!
//! Quotas: `-n` is one shared counter from which threads take blocks; a thread without a schedule
//! hands its block out batch by batch, the last batch being shorter, so the total is exact.
//!
//! Invariant: `in_flight` is the sum of [`Client::under_way`] over this thread's connections.

use std::sync::{Arc, PoisonError, atomic::Ordering};

use resp::skip_reply;

use super::{
    Settings, Shared,
    client::{Client, Flight, Phase},
    replies::{error_text, is_null, passed_over},
    schedule::Schedule,
    source::Source,
};
use crate::{
    cluster::Cluster,
    extended::{OnError, ReadFrom},
    fairness::Fairness,
    keys::Keys,
    latency::{self, Latency},
    random::AdditiveRandom,
    results::{Errors, Interval},
    run::tell,
    template::{Filler, NOT_CHECKED},
    values,
};

/// What a thread sends, and what it has measured.
#[derive(Debug)]
pub(crate) struct Load {
    pub(crate) shared: Arc<Shared>,
    settings: Arc<Settings>,
    source: Source,
    keys: Keys,
    random: AdditiveRandom,
    cluster: Option<ClusterView>,
    pub(crate) schedule: Option<Schedule>,
    /// Requests this thread may still issue without asking.
    quota: u64,
    next_position: u64,
    pub(crate) in_flight: u64,
    /// When counting begins and ends, when the load ends, and the next instant at which something changes.
    measure_at: u64,
    count_until: u64,
    stop_at: u64,
    next_mark: u64,
    next_interval: u64,
    interval_started: u64,
    interval_base: Option<(Latency, u64)>,
    live_base: Latency,
    next_live: u64,
    /// Time of all rests, nanoseconds.
    rested: u64,
    pub(crate) tally: Tally,
}

/// What one thread has measured.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) finished: u64,
    pub(crate) latency_sum_us: u64,
    pub(crate) fairness: Fairness,
    pub(crate) service: Latency,
    pub(crate) response: Option<Latency>,
    pub(crate) lateness: Option<Latency>,
    pub(crate) connect: Latency,
    pub(crate) operations: Vec<(Latency, u64)>,
    /// Latencies and errors of each server, when there are several.
    pub(crate) targets: Vec<(Latency, u64)>,
    pub(crate) errors: Errors,
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_received: u64,
    pub(crate) null_replies: u64,
    pub(crate) timeline: Vec<Interval>,
    pub(crate) finished_at: u64,
}

/// Tags of the slots of each server, as of a version of the cluster's slots.
#[derive(Debug)]
struct ClusterView {
    cluster: Arc<Cluster>,
    version: u64,
    tags: Vec<Arc<[[u8; 3]]>>,
}

/// What became of some input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// More bytes are awaited, or a new batch is in the output.
    Going,
    /// The connection is to be replaced: the batch is complete (`-k 0`), or what came makes no sense.
    Reconnect,
    /// The batch is complete, and the load rests: the next one waits for its end.
    Rest,
    /// The run must end: this text goes to stderr.
    Abort(String),
}

impl Load {
    pub(crate) fn new(shared: Arc<Shared>, settings: Arc<Settings>, source: Source, thread: usize) -> Load {
        let seed = settings.seed.wrapping_add(u32::try_from(thread).unwrap_or(0));
        let cluster = settings.cluster.clone().map(|cluster| {
            let mut view = ClusterView { cluster, version: 0, tags: Vec::new() };
            view.update();
            view
        });
        #[expect(clippy::cast_precision_loss, reason = "thread counts are small")]
        let (share, phase) = {
            let threads = settings.threads.max(1) as f64;
            (1.0 / threads, thread as f64 / threads)
        };
        let schedule = settings.rate.map(|rate| Schedule::new(rate, share, phase, seed ^ SCHEDULE_SEED));
        let open_loop = settings.is_open_loop();
        let histogram = || latency::recorder(settings.precision);
        let tally = Tally {
            finished: 0,
            latency_sum_us: 0,
            fairness: Fairness::default(),
            service: histogram(),
            response: open_loop.then(histogram),
            lateness: open_loop.then(histogram),
            connect: histogram(),
            operations: match settings.operation_names.len() {
                0 | 1 => Vec::new(),
                count => (0..count).map(|_| (histogram(), 0)).collect(),
            },
            targets: match settings.servers.len() {
                0 | 1 => Vec::new(),
                count => (0..count).map(|_| (histogram(), 0)).collect(),
            },
            errors: Errors::default(),
            bytes_sent: 0,
            bytes_received: 0,
            null_replies: 0,
            timeline: Vec::new(),
            finished_at: 0,
        };
        Load {
            source: if thread == 0 { source } else { source.for_thread(seed) },
            keys: if thread == 0 { settings.keys.clone() } else { settings.keys.for_thread(seed) },
            random: AdditiveRandom::new(seed ^ CHOICE_SEED),
            cluster,
            schedule,
            quota: 0,
            next_position: (thread as u64) << 48,
            in_flight: 0,
            measure_at: u64::MAX,
            count_until: u64::MAX,
            stop_at: u64::MAX,
            next_mark: u64::MAX,
            next_interval: u64::MAX,
            interval_started: 0,
            interval_base: None,
            live_base: histogram(),
            next_live: 0,
            rested: 0,
            tally,
            shared,
            settings,
        }
    }

    /// All connections stand and the test begins at `start`.
    pub(crate) fn begin(&mut self, start: u64) {
        let nanoseconds = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(0);
        self.measure_at = start + nanoseconds(self.settings.warmup);
        if let Some(duration) = self.settings.duration {
            self.count_until = self.measure_at + nanoseconds(duration);
            self.stop_at = self.count_until + nanoseconds(self.settings.cooldown);
        }
        if let Some(length) = self.settings.timeline {
            self.next_interval = self.measure_at + nanoseconds(length).max(1);
            self.interval_started = self.measure_at;
            self.interval_base = Some((latency::recorder(self.settings.precision), 0));
        }
        if let Some(schedule) = &mut self.schedule {
            schedule.start(start);
        }
        self.next_mark = self.stop_at.min(self.next_interval).min(self.measure_at);
    }

    /// The instant up to which nothing changes by itself.
    pub(crate) fn next_mark(&self) -> u64 {
        self.next_mark
    }

    /// Does what is due at `now`; true when the time of the test is over.
    pub(crate) fn mark(&mut self, now: u64) -> bool {
        if now < self.next_mark {
            return false;
        }
        if now >= self.measure_at
            && let Some(schedule) = &mut self.schedule
            && self.next_mark == self.measure_at
        {
            schedule.reset_dropped();
        }
        if now >= self.next_interval {
            self.close_interval(now);
        }
        let measure_at = if now >= self.measure_at { u64::MAX } else { self.measure_at };
        self.next_mark = self.stop_at.min(self.next_interval).min(measure_at);
        now >= self.stop_at
    }

    /// Shifts everything that is yet to come: the load has rested so long.
    pub(crate) fn rest(&mut self, nanoseconds: u64, now: u64) {
        let shift = |instant: &mut u64| {
            if *instant != u64::MAX {
                *instant = instant.saturating_add(nanoseconds);
            }
        };
        if self.measure_at > now.saturating_sub(nanoseconds) {
            shift(&mut self.measure_at);
        }
        shift(&mut self.count_until);
        shift(&mut self.stop_at);
        shift(&mut self.next_interval);
        shift(&mut self.next_mark);
        if let Some(schedule) = &mut self.schedule {
            schedule.rest(nanoseconds);
        }
        self.rested += nanoseconds;
    }

    /// Whether nothing is counted yet.
    pub(crate) fn is_warming_up(&self, now: u64) -> bool {
        now < self.measure_at
    }

    /// Whether the time of the test is over.
    pub(crate) fn is_over(&self, now: u64) -> bool {
        now >= self.stop_at
    }

    /// Whether the schedule has nothing left to send and no reply is awaited.
    pub(crate) fn is_exhausted(&mut self) -> bool {
        self.in_flight == 0
            && self.schedule.as_ref().is_none_or(|schedule| schedule.backlog() == 0)
            && self.available(1) == 0
    }

    /// The connection stands: writes the prefix commands. True when there are none to wait for.
    pub(crate) fn greet(&mut self, client: &mut Client, now: u64, out: &mut Vec<u8>) -> bool {
        self.tally.connect.saturating_record(now.saturating_sub(client.started) / 1_000);
        client.prefix_left = self.settings.prefix_replies;
        if client.prefix_left == 0 {
            client.phase = Phase::Idle;
            return true;
        }
        client.phase = Phase::Greeting;
        out.extend_from_slice(&self.settings.prefix);
        false
    }

    /// Starts the next batch of an idle connection; false when there is nothing to send.
    #[inline]
    pub(crate) fn start(&mut self, client: &mut Client, now: u64, out: &mut Vec<u8>) -> bool {
        let count = self.take(client, now);
        if count == 0 {
            client.phase = Phase::Finished;
            return false;
        }
        client.phase = Phase::Busy;
        if self.settings.is_replay {
            client.position = client.place;
            client.place += u64::from(count);
        } else {
            client.position = self.next_position;
            self.next_position += u64::from(count);
        }
        client.sent = count;
        client.expected = count;
        client.first_latency = None;
        self.in_flight += u64::from(count);
        self.render(client, client.position, count, out);
        client.started = now;
        true
    }

    /// Sends one scheduled request on a connection.
    pub(crate) fn start_scheduled(&mut self, client: &mut Client, due: u64, now: u64, out: &mut Vec<u8>) {
        client.phase = Phase::Busy;
        let position = self.next_position;
        self.next_position += 1;
        client.flights.push_back(Flight { due, sent: now, position });
        client.started = now;
        self.in_flight += 1;
        self.render(client, position, 1, out);
    }

    /// Sends a recorded command that was due at `due`, whatever else is under way on the connection.
    pub(crate) fn start_recorded(&mut self, client: &mut Client, position: u64, due: u64, now: u64, out: &mut Vec<u8>) {
        client.phase = Phase::Busy;
        client.flights.push_back(Flight { due, sent: now, position });
        client.started = now;
        self.in_flight += 1;
        self.render(client, position, 1, out);
    }

    /// A request that was due could not even be sent; it counts as finished with an error.
    pub(crate) fn not_sent(&mut self, why: &str) {
        self.tally.finished += 1;
        self.tally.errors.add("connect", why);
    }

    /// The recorded commands of a client.
    pub(crate) fn recorded_range(&self, client: u32) -> Option<std::ops::Range<u64>> {
        self.source.recorded_range(client as usize)
    }

    /// A request due at `due` was sent at `now` although a connection had been free.
    pub(crate) fn record_lateness(&mut self, due: u64, now: u64) {
        if let Some(lateness) = &mut self.tally.lateness
            && now >= self.measure_at
        {
            lateness.saturating_record(now.saturating_sub(due) / 1_000);
        }
    }

    /// Takes in what a connection sent. Returns the bytes used up and what follows.
    pub(crate) fn input(&mut self, client: &mut Client, now: u64, input: &[u8], out: &mut Vec<u8>) -> (usize, Step) {
        let mut consumed = 0;
        let latency = now.saturating_sub(client.started) / 1_000;
        let first_latency = *client.first_latency.get_or_insert(latency);
        let latency = if self.settings.legacy_latency { first_latency } else { latency };
        let counted = client.started >= self.measure_at && now < self.count_until;
        let mut replies = 0_u64;
        if client.prefix_left == 0
            && client.expected > 0
            && client.asked.is_none()
            && self.tally.operations.is_empty()
            && client.skip.is_new()
        {
            let passed = passed_over(input, client.expected);
            consumed = passed.bytes;
            client.expected -= passed.replies;
            self.in_flight -= u64::from(passed.replies);
            if counted {
                replies = u64::from(passed.replies);
                self.tally.null_replies += u64::from(passed.nulls);
            }
        }
        let step = loop {
            let rest = input.get(consumed..).unwrap_or_default();
            if rest.is_empty() {
                break None;
            }
            let skipped = match skip_reply(rest, &mut client.skip) {
                Ok(Some(skipped)) => skipped,
                Ok(None) => break None,
                Err(error) if self.settings.on_error == OnError::Reconnect => {
                    // Where the next reply begins cannot be known.
                    self.lost(client, "parse", &error.to_string());
                    return (input.len(), Step::Reconnect);
                }
                Err(error) => break Some(Step::Abort(format!("Error: {error}"))),
            };
            let reply = rest.get(..skipped.consumed).unwrap_or_default();
            consumed += skipped.consumed;
            if skipped.kind == b'>' {
                // A push message, such as an invalidation, answers no request.
                continue;
            }
            if client.prefix_left > 0 {
                if skipped.is_error {
                    break Some(Step::Abort(self.error_line(client, reply)));
                }
                client.prefix_left -= 1;
                if client.prefix_left == 0 {
                    client.phase = Phase::Idle;
                }
                continue;
            }
            if skipped.is_error
                && let Some(step) = self.error_reply(client, reply)
            {
                break Some(step);
            }
            if client.under_way() == 0 {
                // Nobody asked: a server says so that it has too many clients.
                continue;
            }
            if let Some(asked) = &mut client.asked {
                let number = asked.pop_front().unwrap_or(NOT_CHECKED);
                if number != NOT_CHECKED
                    && let Some(step) = self.check_value(client.server, number, reply)
                {
                    break Some(step);
                }
            }
            if let Some(flight) = client.flights.pop_front() {
                self.in_flight -= 1;
                if self.record_flight(flight, now, client.server, skipped.is_error) {
                    client.replies = client.replies.saturating_add(1);
                    self.tally.null_replies += u64::from(is_null(reply));
                }
                continue;
            }
            if counted {
                if is_null(reply) {
                    self.tally.null_replies += 1;
                }
                if !self.tally.operations.is_empty() {
                    let index = client.sent - client.expected;
                    let operation = self.source.operation(client.position, index);
                    if let Some((histogram, errors)) = self.tally.operations.get_mut(operation) {
                        histogram.saturating_record(latency);
                        *errors += u64::from(skipped.is_error);
                    }
                }
                replies += 1;
            }
            client.expected -= 1;
            self.in_flight -= 1;
        };
        self.tally.bytes_received += consumed as u64;
        if replies > 0 {
            self.tally.service.saturating_record_n(latency, replies);
            if let Some((histogram, _)) = self.tally.targets.get_mut(client.server as usize) {
                histogram.saturating_record_n(latency, replies);
            }
            self.tally.finished += replies;
            self.tally.latency_sum_us += latency * replies;
            client.replies = client.replies.saturating_add(u32::try_from(replies).unwrap_or(u32::MAX));
        }
        if let Some(step) = step {
            return (consumed, step);
        }
        if client.phase == Phase::Busy && client.under_way() == 0 {
            client.phase = Phase::Idle;
            if self.settings.reconnect_each_batch {
                return (consumed, Step::Reconnect);
            }
            if self.schedule.is_none() && !self.settings.is_timed_replay {
                if self.shared.is_resting() {
                    return (consumed, Step::Rest);
                }
                self.start(client, now, out);
            }
        }
        (consumed, Step::Going)
    }

    /// Requests under way on a broken connection count as finished with an error.
    pub(crate) fn lost(&mut self, client: &mut Client, class: &str, text: &str) {
        let lost = client.under_way();
        self.in_flight -= lost;
        self.tally.finished += lost;
        client.flights.clear();
        client.expected = 0;
        if let Some(asked) = &mut client.asked {
            asked.clear();
        }
        for _ in 0..lost.max(1) {
            self.tally.errors.add(class, text);
        }
        self.count_error_of(client.server, lost.max(1));
    }

    /// Takes up to `wanted` requests from the shared quota into the thread's; what is there then.
    pub(crate) fn available(&mut self, wanted: u64) -> u64 {
        if self.quota == 0 {
            self.quota = self.shared.take_quota(wanted);
        }
        self.quota
    }

    /// Uses up requests of the thread's quota.
    pub(crate) fn spend(&mut self, count: u64) {
        self.quota -= count.min(self.quota);
    }

    /// Shows this thread's progress to the reporting thread.
    pub(crate) fn publish(&mut self, thread: usize, now: u64) {
        if let Some(stats) = self.shared.stats.get(thread) {
            // Relaxed: figures for a progress line; nothing is ordered by them.
            stats.finished.store(self.tally.finished, Ordering::Relaxed);
            stats.latency_sum_us.store(self.tally.latency_sum_us, Ordering::Relaxed);
            if !self.tally.errors.is_empty() {
                stats.errors.store(self.tally.errors.total(), Ordering::Relaxed);
            }
            if self.shared.live.is_some() && now >= self.next_live {
                self.publish_live();
                self.next_live = now + LIVE_INTERVAL_NS;
            }
        }
    }

    /// The thread is done.
    pub(crate) fn finish(&mut self, now: u64) {
        self.tally.finished_at = now.min(self.count_until).saturating_sub(self.rested);
        if self.interval_base.is_some() && now.min(self.count_until) > self.interval_started {
            self.close_interval(now.min(self.count_until));
        }
    }

    fn take(&mut self, client: &mut Client, now: u64) -> u32 {
        if now >= self.stop_at {
            return 0;
        }
        let pipeline = u64::from(self.settings.pipeline);
        let has_own_quota = self.settings.per_client.is_some() && now >= self.measure_at;
        let count = if now < self.measure_at && !self.settings.is_replay {
            pipeline
        } else if has_own_quota || self.settings.is_replay {
            let count = pipeline.min(client.quota);
            client.quota -= count;
            count
        } else {
            let count = pipeline.min(self.available(pipeline));
            self.quota -= count;
            count
        };
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    #[inline]
    fn render(&mut self, client: &mut Client, position: u64, count: u32, out: &mut Vec<u8>) {
        let tags: &[[u8; 3]] = match &self.cluster {
            Some(view) => view.tags.get(client.server as usize).map_or(&[], |tags| tags),
            None => &self.settings.tags,
        };
        if self.settings.has_client_keys {
            self.keys.enter_client(client.place);
        }
        let mut filler = Filler {
            keys: &mut self.keys,
            random: &mut self.random,
            tags,
            value_pool: &self.settings.value_pool,
            asked: client.asked.as_mut(),
        };
        let before = out.len();
        self.source.render(position, 0, count, &mut filler, out);
        self.tally.bytes_sent += (out.len() - before) as u64;
        if self.settings.has_client_keys {
            client.place = self.keys.place_of_client();
        }
    }

    /// Whether it was counted.
    fn record_flight(&mut self, flight: Flight, now: u64, server: u32, is_error: bool) -> bool {
        if flight.sent < self.measure_at || now >= self.count_until {
            return false;
        }
        let service = now.saturating_sub(flight.sent) / 1_000;
        self.tally.service.saturating_record(service);
        if let Some(response) = &mut self.tally.response {
            response.saturating_record(now.saturating_sub(flight.due) / 1_000);
        }
        if !self.tally.operations.is_empty() {
            let operation = self.source.operation(flight.position, 0);
            if let Some((histogram, errors)) = self.tally.operations.get_mut(operation) {
                histogram.saturating_record(service);
                *errors += u64::from(is_error);
            }
        }
        if let Some((histogram, _)) = self.tally.targets.get_mut(server as usize) {
            histogram.saturating_record(service);
        }
        self.tally.finished += 1;
        self.tally.latency_sum_us += service;
        true
    }

    /// Compares a value with the checksum it was written with. A missing one is no error.
    fn check_value(&mut self, server: u32, number: u64, reply: &[u8]) -> Option<Step> {
        let body = reply.strip_prefix(b"$")?;
        let start = body.iter().position(|byte| *byte == b'\n').map(|at| at + 1)?;
        let value = body.get(start..)?.strip_suffix(b"\r\n")?;
        let Err(fault) = values::check(value, number) else { return None };
        let text = format!("the value of key number {number:012} is corrupt: {fault}");
        self.tally.errors.add("corrupt", &text);
        self.count_error_of(server, 1);
        (self.settings.on_error == OnError::Stop).then(|| Step::Abort(format!("Error: {text}")))
    }

    #[cold]
    fn count_error_of(&mut self, server: u32, count: u64) {
        if let Some((_, errors)) = self.tally.targets.get_mut(server as usize) {
            *errors += count;
        }
    }

    #[cold]
    fn error_reply(&mut self, client: &Client, reply: &[u8]) -> Option<Step> {
        let text = error_text(reply);
        self.tally.errors.add_reply(&text);
        self.count_error_of(client.server, 1);
        let moved = text.starts_with("MOVED") || text.starts_with("ASK");
        if let Some(view) = &mut self.cluster
            && self.source.has_tags()
            && self.settings.options.extended.read_from == ReadFrom::Primaries
            && (moved || text.starts_with("CLUSTERDOWN"))
        {
            if !moved {
                tell(format_args!("{}.", self.settings.error_line(client.server, &text)));
                std::thread::sleep(std::time::Duration::from_secs(1));
            }
            if let Err(error) = view.cluster.refresh(&self.settings.options, view.version) {
                return Some(Step::Abort(error.trim_end().to_owned()));
            }
            view.update();
            return None;
        }
        if self.settings.on_error == OnError::Stop {
            return Some(Step::Abort(self.settings.error_line(client.server, &text)));
        }
        if self.settings.error_limit.is_some_and(|limit| self.tally.errors.total() > limit) {
            // The verdict is known; the report judges it.
            self.shared.stop();
        }
        None
    }

    fn error_line(&self, client: &Client, reply: &[u8]) -> String {
        self.settings.error_line(client.server, &error_text(reply))
    }

    /// Hands the latencies since the last call to the live view.
    #[cold]
    fn publish_live(&mut self) {
        let current = self.tally.service.clone();
        let mut fresh = current.clone();
        // Counts never shrink, so the base is always contained.
        if fresh.subtract(&self.live_base).is_ok()
            && let Some(live) = &self.shared.live
        {
            let mut live = live.lock().unwrap_or_else(PoisonError::into_inner);
            let added = live.add(&fresh);
            debug_assert!(added.is_ok(), "all histograms of a test have the same bounds");
        }
        self.live_base = current;
    }

    #[cold]
    fn close_interval(&mut self, now: u64) {
        let Some((base, errors)) = self.interval_base.take() else {
            return;
        };
        let total_errors = self.tally.errors.total();
        let current = self.tally.service.clone();
        let mut service = current.clone();
        // Counts never shrink, so the base is always contained.
        if service.subtract(&base).is_ok() {
            self.tally.timeline.push(Interval {
                end: std::time::Duration::from_nanos(now - self.measure_at),
                length: std::time::Duration::from_nanos(now - self.interval_started),
                service,
                errors: total_errors - errors,
                active: self.in_flight,
            });
        }
        self.interval_base = Some((current, total_errors));
        self.interval_started = now;
        if let Some(length) = self.settings.timeline {
            let length = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX).max(1);
            while self.next_interval <= now {
                self.next_interval = self.next_interval.saturating_add(length);
            }
        }
    }
}

impl ClusterView {
    fn update(&mut self) {
        self.tags = (0..self.cluster.primaries.len())
            .map(|index| {
                let (version, tags) = self.cluster.tags(index);
                self.version = version;
                tags
            })
            .collect();
    }
}

/// Shorter than the time between two frames, so that each has something to show.
const LIVE_INTERVAL_NS: u64 = 200_000_000;

const SCHEDULE_SEED: u32 = 0x5c4e_d01e;
const CHOICE_SEED: u32 = 0x00c0_1ce5;
