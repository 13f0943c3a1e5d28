//! Running one test: threads, their connections, and the merging of what they measured.
//!
//! The calling thread reports progress; every load thread has an event loop of its own (`driver`)
//! around a [`load::Load`], which holds all behaviour and no socket. Threads share the quota of
//! requests, a word of state and one line of figures each; nothing of that is touched per request.
//!
//! The last thread whose connections all stand starts the clock for everyone, so that connecting
//! is never part of the measured time.

mod client;
mod driver;
mod load;
mod schedule;
mod source;

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use self::load::Tally;
pub(crate) use self::source::{Form, Source};
use crate::{
    cluster::{self, Cluster},
    extended::{ErrorBudget, OnError, Rate},
    fairness::Fairness,
    keys::Keys,
    latency::{self, Latency},
    live::News,
    options::Options,
    places::Places,
    preflight::Server,
    progress::Progress,
    results::{Errors, OperationOutcome, Outcome},
    template::encode,
};

/// What does not change during a test; shared by its threads.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) options: Options,
    pub(crate) threads: usize,
    pub(crate) places: Places,
    pub(crate) servers: Vec<Server>,
    pub(crate) cluster: Option<Arc<Cluster>>,
    pub(crate) keys: Keys,
    pub(crate) seed: u32,
    pub(crate) value_pool: Vec<u8>,
    pub(crate) operation_names: Vec<String>,
    pub(crate) rate: Option<Rate>,
    pub(crate) idle: bool,
    pub(crate) prefix: Vec<u8>,
    pub(crate) prefix_replies: u8,
    pub(crate) pipeline: u32,
    pub(crate) precision: u8,
    pub(crate) warmup: Duration,
    pub(crate) duration: Option<Duration>,
    pub(crate) timeline: Option<Duration>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) per_client: Option<u64>,
    pub(crate) legacy_latency: bool,
    pub(crate) reconnect_each_batch: bool,
    pub(crate) on_error: OnError,
    /// Errors of one thread after which the run is over.
    pub(crate) error_limit: Option<u64>,
}

/// The parts of [`Settings`] that differ from test to test.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) threads: usize,
    pub(crate) places: Places,
    pub(crate) servers: Vec<Server>,
    pub(crate) cluster: Option<Arc<Cluster>>,
    pub(crate) keys: Keys,
    pub(crate) seed: u32,
    pub(crate) value_pool: Vec<u8>,
    pub(crate) operation_names: Vec<String>,
    pub(crate) rate: Option<Rate>,
    pub(crate) idle: bool,
}

impl Settings {
    pub(crate) fn new(options: &Options, setup: Setup) -> Settings {
        let (prefix, prefix_replies) = if setup.idle { (Vec::new(), 0) } else { prefix_commands(options) };
        let extended = &options.extended;
        Settings {
            threads: setup.threads,
            places: setup.places,
            servers: setup.servers,
            cluster: setup.cluster,
            keys: setup.keys,
            seed: setup.seed,
            value_pool: setup.value_pool,
            operation_names: setup.operation_names,
            rate: setup.rate,
            idle: setup.idle,
            prefix,
            prefix_replies,
            pipeline: u32::try_from(options.pipeline).unwrap_or(u32::MAX),
            precision: options.precision,
            warmup: extended.warmup,
            duration: extended.duration,
            timeline: extended.timeline,
            timeout: extended.timeout,
            per_client: extended.per_client,
            legacy_latency: extended.legacy_latency,
            reconnect_each_batch: options.keep_alive == 0,
            on_error: extended.on_error,
            error_limit: match extended.max_errors {
                Some(ErrorBudget::Count(limit)) => Some(limit),
                _ => None,
            },
            options: options.clone(),
        }
    }

    /// How an error reply is shown when it ends the run.
    pub(crate) fn error_line(&self, server: u32, text: &str) -> String {
        match (&self.cluster, self.servers.get(server as usize)) {
            (Some(_), Some(server)) => format!("Error from server {}: {text}", server.name),
            _ => format!("Error from server: {text}"),
        }
    }

    /// The number of requests of the whole test, if it has one.
    fn request_limit(&self) -> Option<u64> {
        if self.duration.is_some() {
            return None;
        }
        if let Some(requests) = self.per_client {
            let clients = self.options.client_count() as u64;
            return Some(requests.saturating_mul(clients));
        }
        (self.options.requests > 0).then_some(self.options.requests)
    }
}

/// Commands sent before the first request of a connection, and the number of their replies.
fn prefix_commands(options: &Options) -> (Vec<u8>, u8) {
    let mut commands: Vec<Vec<u8>> = Vec::new();
    if let Some(password) = &options.password {
        let mut words: Vec<&[u8]> = vec![b"AUTH"];
        words.extend(options.user.as_deref());
        words.push(password);
        commands.push(encode(&words));
    }
    if options.tracking {
        commands.push(encode(&["CLIENT", "TRACKING", "on"]));
    }
    if options.database != 0 && !options.cluster {
        commands.push(encode(&["SELECT", &options.database.to_string()]));
    }
    if options.resp3 {
        commands.push(encode(&["HELLO", "3"]));
    }
    let replies = u8::try_from(commands.len()).unwrap_or(u8::MAX);
    (commands.concat(), replies)
}

/// What the threads of a test share.
#[derive(Debug)]
pub(crate) struct Shared {
    clock: Instant,
    state: AtomicU8,
    started_at: AtomicU64,
    ready_threads: AtomicUsize,
    threads: usize,
    issued: AtomicU64,
    /// Nanoseconds of CPU of `--server-pid` when the test began and when the last thread ended.
    server_cpu: [AtomicU64; 2],
    limit: Option<u64>,
    server_pid: Option<u32>,
    pub(crate) stats: Vec<ThreadStats>,
    failure: Mutex<Option<String>>,
    /// Latencies since the live view was last drawn; `None` when there is no live view.
    pub(crate) live: Option<Mutex<Latency>>,
}

/// Figures of one thread for the progress line. On a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct ThreadStats {
    pub(crate) finished: AtomicU64,
    pub(crate) latency_sum_us: AtomicU64,
    pub(crate) connected: AtomicU64,
    pub(crate) errors: AtomicU64,
}

/// What the threads are to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Make the connections and wait.
    Connect,
    /// Send.
    Run,
    /// End, keeping what was measured.
    Stop,
}

impl Shared {
    fn new(settings: &Settings, is_live: bool) -> Shared {
        Shared {
            live: is_live.then(|| Mutex::new(latency::recorder(settings.precision))),
            clock: Instant::now(),
            state: AtomicU8::new(State::Connect as u8),
            started_at: AtomicU64::new(0),
            ready_threads: AtomicUsize::new(0),
            threads: settings.threads,
            issued: AtomicU64::new(0),
            server_cpu: [AtomicU64::new(0), AtomicU64::new(0)],
            server_pid: settings.options.extended.server_pid,
            limit: settings.request_limit(),
            stats: (0..settings.threads).map(|_| ThreadStats::default()).collect(),
            failure: Mutex::new(None),
        }
    }

    /// Nanoseconds since the test was set up.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.clock.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    pub(crate) fn state(&self) -> State {
        // Acquire: `started_at` was stored before the state.
        match self.state.load(Ordering::Acquire) {
            0 => State::Connect,
            1 => State::Run,
            _ => State::Stop,
        }
    }

    /// When the test began.
    pub(crate) fn started_at(&self) -> u64 {
        self.started_at.load(Ordering::Relaxed)
    }

    /// A thread's connections all stand; the last thread to say so starts the test.
    pub(crate) fn thread_is_ready(&self) {
        if self.ready_threads.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.note_server_cpu(0);
            self.started_at.store(self.now(), Ordering::Relaxed);
            let _ = self.state.compare_exchange(
                State::Connect as u8,
                State::Run as u8,
                Ordering::Release,
                Ordering::Relaxed,
            );
        }
    }

    /// Reads the CPU time of `--server-pid`: 0 at the beginning, 1 at the end, of which the last counts.
    pub(crate) fn note_server_cpu(&self, moment: usize) {
        if let (Some(pid), Some(place)) = (self.server_pid, self.server_cpu.get(moment)) {
            place.fetch_max(process_cpu_ns(pid), Ordering::Relaxed);
        }
    }

    /// CPU time of `--server-pid` during the test.
    fn server_cpu(&self) -> Option<Duration> {
        self.server_pid?;
        let [start, end] = self.server_cpu.each_ref().map(|place| place.load(Ordering::Relaxed));
        Some(Duration::from_nanos(end.saturating_sub(start)))
    }

    /// Ends the test.
    pub(crate) fn stop(&self) {
        self.state.store(State::Stop as u8, Ordering::Release);
    }

    /// Ends the test with a text for stderr; the first one counts.
    pub(crate) fn fail(&self, text: &str) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert_with(|| text.to_owned());
        drop(failure);
        self.stop();
    }

    /// Takes a block of at least `wanted` requests (less when fewer are left) out of the total.
    pub(crate) fn take_quota(&self, wanted: u64) -> u64 {
        let Some(limit) = self.limit else {
            return UNLIMITED_BLOCK;
        };
        let left = limit.saturating_sub(self.issued.load(Ordering::Relaxed));
        if left == 0 {
            return 0;
        }
        // Blocks shrink towards the end, so that no thread is left with much while others idle.
        let block = match self.threads {
            0 | 1 => left,
            threads => wanted.max(left / (threads as u64 * 8)),
        };
        // Relaxed: only the sum matters; results are merged after the threads were joined.
        let before = self.issued.fetch_add(block, Ordering::Relaxed);
        block.min(limit.saturating_sub(before))
    }

    fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn sum(&self, figure: impl Fn(&ThreadStats) -> &AtomicU64) -> u64 {
        self.stats.iter().map(|stats| figure(stats).load(Ordering::Relaxed)).sum()
    }

    fn totals(&self) -> (u64, u64) {
        (self.sum(|stats| &stats.finished), self.sum(|stats| &stats.latency_sum_us))
    }
}

/// What a thread hands back.
#[derive(Debug)]
pub(crate) struct ThreadResult {
    pub(crate) tally: Tally,
    pub(crate) dropped: u64,
    pub(crate) backlog: u64,
    pub(crate) time: ThreadTime,
}

/// Where a thread's time went.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ThreadTime {
    /// On a CPU.
    pub(crate) cpu: Duration,
    /// Ready to run, and waiting for a CPU.
    pub(crate) queued: Duration,
    /// All of it.
    pub(crate) wall: Duration,
}

/// Why a test has no result.
#[derive(Debug)]
pub(crate) struct Aborted {
    /// Text for stderr, without its line end.
    pub(crate) text: String,
    /// Requests that had been finished.
    pub(crate) finished: u64,
}

/// Runs one test to its end, showing progress from this thread.
pub(crate) fn run_test(
    settings: Arc<Settings>,
    source: &Source,
    title: &str,
    payload_bytes: usize,
    progress: &mut Progress,
    interrupted: &AtomicBool,
) -> Result<Outcome, Aborted> {
    let shared = Arc::new(Shared::new(&settings, progress.is_live()));
    let mut handles = Vec::new();
    for thread in 0..settings.threads {
        let (thread_shared, settings) = (Arc::clone(&shared), Arc::clone(&settings));
        let source = source.clone();
        let name = format!("load-{thread}");
        let main_thread = thread::current();
        let body = move || {
            let result = driver::run(Arc::clone(&thread_shared), &settings, source, thread);
            if let Err(error) = &result {
                thread_shared.fail(error);
            }
            main_thread.unpark();
            result.ok()
        };
        match thread::Builder::new().name(name).spawn(body) {
            Ok(handle) => handles.push(handle),
            Err(_) => {
                shared.fail(&format!("FATAL: Failed to start thread {thread}."));
                break;
            }
        }
    }
    progress.begin(title);
    watch(&shared, &settings, &handles, progress, interrupted);
    let mut results = Vec::new();
    for handle in handles {
        match handle.join() {
            Ok(result) => results.extend(result),
            Err(_) => shared.fail("a load thread ended by a fault of the program"),
        }
    }
    if let Some(text) = shared.failure() {
        return Err(Aborted { text, finished: shared.totals().0 });
    }
    let mut outcome = merge(&settings, &shared, results, title, payload_bytes);
    outcome.interrupted = interrupted.load(Ordering::Relaxed);
    Ok(outcome)
}

/// Shows progress until all threads have ended.
fn watch(
    shared: &Shared,
    settings: &Settings,
    handles: &[thread::JoinHandle<Option<ThreadResult>>],
    progress: &mut Progress,
    interrupted: &AtomicBool,
) {
    let mut next_line = Duration::from_millis(1);
    while !handles.iter().all(thread::JoinHandle::is_finished) {
        if interrupted.load(Ordering::Relaxed) && shared.state() != State::Stop {
            shared.stop();
        }
        if settings.idle {
            progress.idle(shared.sum(|stats| &stats.connected));
            thread::park_timeout(Progress::INTERVAL);
            continue;
        }
        if shared.state() != State::Run {
            thread::park_timeout(Duration::from_millis(1));
            continue;
        }
        let elapsed = Duration::from_nanos(shared.now().saturating_sub(shared.started_at()));
        if elapsed >= next_line {
            let (finished, latency_us) = shared.totals();
            progress.publish(finished, latency_us, shared.sum(|stats| &stats.connected));
            match &shared.live {
                Some(live) => progress.show_live(&news(shared, settings, live, elapsed)),
                None => progress.show(elapsed, finished, latency_us),
            }
            next_line = elapsed + Progress::INTERVAL;
        }
        thread::park_timeout((next_line.saturating_sub(elapsed)).min(SIGNAL_DELAY));
    }
}

/// What the live view is to show next.
fn news(shared: &Shared, settings: &Settings, live: &Mutex<Latency>, elapsed: Duration) -> News {
    let empty = latency::recorder(settings.precision);
    let latencies = std::mem::replace(&mut *live.lock().unwrap_or_else(PoisonError::into_inner), empty);
    let (finished, _) = shared.totals();
    #[expect(clippy::cast_precision_loss, reason = "drawn as a bar")]
    let share = match (settings.duration, settings.request_limit()) {
        (Some(duration), _) => {
            let whole = settings.warmup + duration;
            Some(elapsed.as_secs_f64() / whole.as_secs_f64().max(1e-9))
        }
        (None, Some(limit)) => Some(finished as f64 / limit.max(1) as f64),
        (None, None) => None,
    };
    News {
        elapsed,
        share,
        finished,
        errors: shared.sum(|stats| &stats.errors),
        connections: shared.sum(|stats| &stats.connected),
        latencies,
    }
}

fn merge(
    settings: &Settings,
    shared: &Shared,
    results: Vec<ThreadResult>,
    title: &str,
    payload_bytes: usize,
) -> Outcome {
    let histogram = || latency::recorder(settings.precision);
    let finished_at = results.iter().map(|result| result.tally.finished_at).max().unwrap_or_default();
    let warmup = u64::try_from(settings.warmup.as_nanos()).unwrap_or(0);
    let measured_from = shared.started_at() + warmup;
    let mut outcome = Outcome {
        title: title.to_owned(),
        payload_bytes,
        finished: 0,
        elapsed: Duration::from_nanos(finished_at.saturating_sub(measured_from)),
        fairness: Fairness::default(),
        service: histogram(),
        response: None,
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
        server_cpu: shared.server_cpu(),
        operations: settings
            .operation_names
            .iter()
            .map(|name| OperationOutcome { name: name.clone(), service: histogram(), errors: 0 })
            .collect(),
        timeline: Vec::new(),
        interrupted: false,
    };
    for result in results {
        let tally = result.tally;
        outcome.finished += tally.finished;
        outcome.bytes_sent += tally.bytes_sent;
        outcome.bytes_received += tally.bytes_received;
        outcome.null_replies += tally.null_replies;
        outcome.dropped += result.dropped;
        outcome.backlog += result.backlog;
        let ThreadTime { cpu, queued, wall } = result.time;
        outcome.generator_cpu += cpu;
        let busy = (cpu + queued).as_secs_f64() / wall.as_secs_f64().max(1e-9);
        outcome.busiest_thread = outcome.busiest_thread.max(busy);
        outcome.errors.merge(&tally.errors);
        outcome.fairness.merge(&tally.fairness);
        add(&mut outcome.service, &tally.service);
        add(&mut outcome.connect, &tally.connect);
        add_option(&mut outcome.response, tally.response);
        add_option(&mut outcome.lateness, tally.lateness);
        for (row, (service, errors)) in outcome.operations.iter_mut().zip(&tally.operations) {
            add(&mut row.service, service);
            row.errors += errors;
        }
        for (index, interval) in tally.timeline.into_iter().enumerate() {
            match outcome.timeline.get_mut(index) {
                Some(row) => {
                    add(&mut row.service, &interval.service);
                    row.errors += interval.errors;
                }
                None => outcome.timeline.push(interval),
            }
        }
    }
    if outcome.operations.len() <= 1 {
        outcome.operations.clear();
    }
    outcome.connected = usize::try_from(shared.sum(|stats| &stats.connected)).unwrap_or(usize::MAX);
    outcome
}

fn add(sum: &mut latency::Latency, part: &latency::Latency) {
    let added = sum.add(part);
    debug_assert!(added.is_ok(), "all histograms of a test have the same bounds");
}

fn add_option(sum: &mut Option<latency::Latency>, part: Option<latency::Latency>) {
    match (sum.as_mut(), part) {
        (Some(sum), Some(part)) => add(sum, &part),
        (None, part) => *sum = part,
        (Some(_), None) => {}
    }
}

/// The clients of a thread: the server index of each.
fn clients_of(settings: &Settings, thread: usize) -> Vec<u32> {
    let servers = settings.servers.len();
    (0..settings.options.client_count())
        .filter_map(|client| {
            let (owner, server) = match &settings.cluster {
                Some(_) => cluster::placement(client, settings.threads, servers),
                None => (client % settings.threads, client % servers.max(1)),
            };
            (owner == thread).then_some(u32::try_from(server).unwrap_or(0))
        })
        .collect()
}

/// Nanoseconds that all threads of a process have been on a CPU.
fn process_cpu_ns(pid: u32) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task"));
    let threads = tasks.into_iter().flatten().flatten().filter_map(|task| {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    threads.sum()
}

/// Requests that a thread takes at once when there is no limit.
const UNLIMITED_BLOCK: u64 = 1 << 40;

/// Longest time until Ctrl-C is noticed.
const SIGNAL_DELAY: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests;
