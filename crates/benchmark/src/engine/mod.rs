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
mod replies;
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
pub(crate) use self::source::Source;
use crate::{
    cluster::{self, Cluster},
    extended::{ErrorBudget, OnError, Rate, ReadFrom, Speed, TargetPolicy},
    keys::Keys,
    latency::{self, Latency},
    live::{Key, News},
    options::Options,
    places::Places,
    preflight::Server,
    progress::Progress,
    replay::Log,
    results::{GroupOutcome, Outcome},
    template::encode,
};

/// What does not change during a test; shared by its threads.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) options: Options,
    pub(crate) threads: usize,
    /// Connections: those of the options, or as many as a record has clients.
    client_count: usize,
    pub(crate) places: Places,
    pub(crate) servers: Vec<Server>,
    pub(crate) cluster: Option<Arc<Cluster>>,
    pub(crate) keys: Keys,
    pub(crate) seed: u32,
    pub(crate) value_pool: Vec<u8>,
    pub(crate) operation_names: Vec<String>,
    pub(crate) rate: Option<Rate>,
    pub(crate) idle: bool,
    /// Tags of all slots, for `--hash-tag spread` without a cluster.
    pub(crate) tags: Arc<[[u8; 3]]>,
    /// Recorded commands with their own pace, and how many times as fast.
    pub(crate) replay: Option<(Arc<Log>, f64)>,
    /// Requests are those of a record …
    pub(crate) is_replay: bool,
    /// … so many of them …
    recorded_total: Option<u64>,
    /// … and are sent when they are due.
    pub(crate) is_timed_replay: bool,
    /// First key of the first client, and keys of each (`seq-per-client`).
    client_keys: (u64, u64),
    pub(crate) has_client_keys: bool,
    pub(crate) prefix: Vec<u8>,
    pub(crate) prefix_replies: u8,
    pub(crate) pipeline: u32,
    pub(crate) precision: u8,
    pub(crate) warmup: Duration,
    pub(crate) duration: Option<Duration>,
    pub(crate) cooldown: Duration,
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
    pub(crate) tags: Arc<[[u8; 3]]>,
    pub(crate) replay: Option<Arc<Log>>,
    pub(crate) client_keys: Option<(u64, u64)>,
}

impl Settings {
    pub(crate) fn new(options: &Options, setup: Setup) -> Settings {
        let (prefix, prefix_replies) = if setup.idle { (Vec::new(), 0) } else { prefix_commands(options) };
        let extended = &options.extended;
        let recorded_clients = setup.replay.as_ref().map_or(0, |log| log.connections());
        let recorded_total = setup.replay.as_ref().map(|log| log.len() as u64);
        let (is_replay, replay) = match (setup.replay, extended.speed) {
            (Some(log), Speed::Times(times)) if log.has_times => (true, Some((log, times))),
            (log, _) => (log.is_some(), None),
        };
        Settings {
            client_count: match (&replay, recorded_total) {
                (None, None) => options.client_count(),
                _ => recorded_clients,
            },
            recorded_total,
            tags: setup.tags,
            is_replay,
            is_timed_replay: replay.is_some(),
            replay,
            has_client_keys: setup.client_keys.is_some(),
            client_keys: setup.client_keys.unwrap_or_default(),
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
            cooldown: extended.cooldown,
            timeline: extended.timeline.or(extended.hdr_log.is_some().then_some(HDR_LOG_INTERVAL)),
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
        if self.is_replay {
            return self.recorded_total;
        }
        self.options.request_total()
    }

    /// Whether latencies count from when a request was due.
    pub(crate) fn is_open_loop(&self) -> bool {
        self.is_timed_replay || self.rate.is_some_and(|rate| rate.open_loop)
    }

    /// The first key number of a client's own range.
    pub(crate) fn first_key_of_client(&self, index: u32) -> u64 {
        let (first, each) = self.client_keys;
        first.saturating_add(each.saturating_mul(u64::from(index)))
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
    if options.extended.read_from != ReadFrom::Primaries {
        commands.push(encode(&["READONLY"]));
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
    /// The start is given from elsewhere ([`Shared::start`]).
    waits_for_start: bool,
    is_resting: AtomicBool,
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
    fn new(settings: &Settings, is_live: bool, waits_for_start: bool) -> Shared {
        Shared {
            waits_for_start,
            is_resting: AtomicBool::new(false),
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
        if self.ready_threads.fetch_add(1, Ordering::AcqRel) + 1 == self.threads && !self.waits_for_start {
            self.start();
        }
    }

    /// Whether all connections of all threads stand.
    fn is_ready(&self) -> bool {
        self.ready_threads.load(Ordering::Acquire) >= self.threads
    }

    /// The test begins now.
    fn start(&self) {
        self.note_server_cpu(0);
        self.started_at.store(self.now(), Ordering::Relaxed);
        let _ =
            self.state.compare_exchange(State::Connect as u8, State::Run as u8, Ordering::Release, Ordering::Relaxed);
    }

    /// Whether no further request is to be sent for now.
    #[inline]
    pub(crate) fn is_resting(&self) -> bool {
        // Relaxed: a batch more or less before the rest makes no difference.
        self.is_resting.load(Ordering::Relaxed)
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

/// Why a test has ended before its time.
#[derive(Debug)]
pub(crate) struct Aborted {
    /// Text for stderr, without its line end.
    pub(crate) text: String,
    /// What had been measured until then, if anything.
    pub(crate) partial: Option<Box<Outcome>>,
}

impl Aborted {
    /// Nothing was measured.
    pub(crate) fn before_start(text: String) -> Aborted {
        Aborted { text, partial: None }
    }
}

/// Runs one test to its end, showing progress from this thread.
pub(crate) fn run_test(
    settings: Arc<Settings>,
    source: &Source,
    title: &str,
    payload_bytes: usize,
    progress: &mut Progress<'_>,
    interrupted: &AtomicBool,
) -> Result<Outcome, Aborted> {
    let shared = Arc::new(Shared::new(&settings, progress.is_live(), progress.waits_for_start()));
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
    let mut outcome = merge(&settings, &shared, results, title, payload_bytes);
    outcome.interrupted = interrupted.load(Ordering::Relaxed);
    if let Some(text) = shared.failure() {
        outcome.aborted = true;
        let partial = (outcome.finished > 0 && !settings.idle).then(|| Box::new(outcome));
        return Err(Aborted { text, partial });
    }
    Ok(outcome)
}

/// Shows progress until all threads have ended.
fn watch(
    shared: &Shared,
    settings: &Settings,
    handles: &[thread::JoinHandle<Option<ThreadResult>>],
    progress: &mut Progress<'_>,
    interrupted: &AtomicBool,
) {
    let mut next_line = Duration::from_millis(1);
    while !handles.iter().all(thread::JoinHandle::is_finished) {
        if interrupted.load(Ordering::Relaxed) && shared.state() != State::Stop {
            progress.release_keys();
            shared.stop();
        }
        if settings.idle {
            progress.idle(shared.sum(|stats| &stats.connected));
            thread::park_timeout(Progress::INTERVAL);
            continue;
        }
        if shared.state() == State::Connect && shared.waits_for_start && shared.is_ready() {
            match progress.wait_for_start(shared.sum(|stats| &stats.connected), interrupted) {
                true => shared.start(),
                false => shared.stop(),
            }
            continue;
        }
        if shared.state() != State::Run {
            thread::park_timeout(Duration::from_millis(1));
            continue;
        }
        if let Some(key) = progress.key() {
            match key {
                Key::Quit => interrupted.store(true, Ordering::Relaxed),
                Key::Pause => {
                    shared.is_resting.fetch_xor(true, Ordering::Relaxed);
                }
                Key::Help => {}
            }
        }
        let elapsed = Duration::from_nanos(shared.now().saturating_sub(shared.started_at()));
        if elapsed >= next_line {
            let (finished, latency_us) = shared.totals();
            let (connected, errors) = (shared.sum(|stats| &stats.connected), shared.sum(|stats| &stats.errors));
            progress.publish(finished, latency_us, connected, errors);
            match &shared.live {
                Some(live) => progress.show_live(&news(shared, settings, live, elapsed)),
                None => progress.show(elapsed, finished, latency_us),
            }
            next_line = elapsed + progress.interval();
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
            let whole = settings.warmup + duration + settings.cooldown;
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
        is_paused: shared.is_resting(),
        agents: Vec::new(),
    }
}

fn merge(
    settings: &Settings,
    shared: &Shared,
    results: Vec<ThreadResult>,
    title: &str,
    payload_bytes: usize,
) -> Outcome {
    let finished_at = results.iter().map(|result| result.tally.finished_at).max().unwrap_or_default();
    let warmup = u64::try_from(settings.warmup.as_nanos()).unwrap_or(0);
    let measured_from = shared.started_at() + warmup;
    let mut outcome = Outcome::empty(title, payload_bytes, settings.precision);
    outcome.elapsed = Duration::from_nanos(finished_at.saturating_sub(measured_from));
    outcome.server_cpu = shared.server_cpu();
    outcome.operations =
        settings.operation_names.iter().map(|name| GroupOutcome::empty(name, settings.precision)).collect();
    if settings.servers.len() > 1 {
        outcome.targets =
            settings.servers.iter().map(|server| GroupOutcome::empty(&server.name, settings.precision)).collect();
        for (_, server) in (0..settings.threads).flat_map(|thread| clients_of(settings, thread)) {
            if let Some(target) = outcome.targets.get_mut(server as usize) {
                target.clients += 1;
            }
        }
    }
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
        latency::add(&mut outcome.service, &tally.service);
        latency::add(&mut outcome.connect, &tally.connect);
        latency::add_option(&mut outcome.response, tally.response.as_ref());
        latency::add_option(&mut outcome.lateness, tally.lateness.as_ref());
        for (rows, parts) in [(&mut outcome.operations, &tally.operations), (&mut outcome.targets, &tally.targets)] {
            for (row, (service, errors)) in rows.iter_mut().zip(parts) {
                latency::add(&mut row.service, service);
                row.errors += errors;
            }
        }
        outcome.add_timeline(tally.timeline);
    }
    if outcome.operations.len() <= 1 {
        outcome.operations.clear();
    }
    outcome.connected = usize::try_from(shared.sum(|stats| &stats.connected)).unwrap_or(usize::MAX);
    outcome
}

/// The clients of a thread: the number of each, and the index of its server.
fn clients_of(settings: &Settings, thread: usize) -> Vec<(usize, u32)> {
    let servers = settings.servers.len().max(1);
    let clients = settings.client_count;
    (0..clients)
        .filter_map(|client| {
            let (owner, server) = match (&settings.cluster, settings.options.extended.target_policy) {
                (Some(_), _) => cluster::placement(client, settings.threads, servers),
                (None, TargetPolicy::RoundRobin) => (client % settings.threads, client % servers),
                (None, TargetPolicy::Split) => (client * settings.threads / clients, client * servers / clients),
            };
            (owner == thread).then_some((client, u32::try_from(server).unwrap_or(0)))
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

/// Length of a line of the histogram log.
const HDR_LOG_INTERVAL: Duration = Duration::from_secs(1);

/// Longest time until Ctrl-C is noticed.
const SIGNAL_DELAY: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests;
