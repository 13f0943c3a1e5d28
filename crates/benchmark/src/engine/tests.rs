#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "small numbers of tests"
)]
use super::{
    client::{Client, Seat},
    load::{Load, Step},
    *,
};
use crate::{
    extended::Arrival,
    keys::Distribution,
    preflight,
    suite::{self, Payload},
    template::Substitution,
};

#[test]
fn prefix_commands_come_in_redis_order() {
    let options = Options {
        password: Some(b"pw".to_vec()),
        user: Some(b"bob".to_vec()),
        tracking: true,
        database: 5,
        resp3: true,
        ..Options::default()
    };
    let (bytes, replies) = prefix_commands(&options);
    assert_eq!(replies, 4);
    assert_eq!(
        String::from_utf8_lossy(&bytes),
        "*3\r\n$4\r\nAUTH\r\n$3\r\nbob\r\n$2\r\npw\r\n\
         *3\r\n$6\r\nCLIENT\r\n$8\r\nTRACKING\r\n$2\r\non\r\n\
         *2\r\n$6\r\nSELECT\r\n$1\r\n5\r\n*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n"
    );
    let cluster = Options { database: 5, cluster: true, ..Options::default() };
    assert_eq!(prefix_commands(&cluster).1, 0);
}

fn shared(threads: usize, limit: Option<u64>) -> Shared {
    Shared {
        clock: Instant::now(),
        state: AtomicU8::new(State::Connect as u8),
        started_at: AtomicU64::new(0),
        ready_threads: AtomicUsize::new(0),
        threads,
        issued: AtomicU64::new(0),
        server_cpu: [AtomicU64::new(0), AtomicU64::new(0)],
        server_pid: None,
        waits_for_start: false,
        is_resting: AtomicBool::new(false),
        limit,
        stats: Vec::new(),
        failure: Mutex::new(None),
        live: None,
    }
}

#[test]
fn quotas_add_up_exactly() {
    for threads in [1, 2, 7] {
        let shared = shared(threads, Some(10_010));
        let mut total = 0;
        loop {
            match shared.take_quota(16) {
                0 => break,
                block => total += block,
            }
        }
        assert_eq!(total, 10_010, "{threads} threads");
    }
    assert_eq!(shared(1, None).take_quota(1), UNLIMITED_BLOCK);
}

#[test]
fn the_last_ready_thread_starts_the_test() {
    let shared = shared(2, None);
    shared.thread_is_ready();
    assert_eq!(shared.state(), State::Connect);
    shared.thread_is_ready();
    assert_eq!(shared.state(), State::Run);
    shared.fail("first");
    shared.fail("second");
    assert_eq!((shared.state(), shared.failure().as_deref()), (State::Stop, Some("first")));
}

#[test]
fn clients_are_dealt_to_threads() {
    assert_eq!(std::mem::align_of::<ThreadStats>(), 128);
    assert!(std::mem::size_of::<client::Client>() <= 200);
}

/// A load without sockets and clocks: one client of a server whose answers come when the test says.
struct Simulation {
    load: Load,
    client: Client,
    out: Vec<u8>,
}

impl Simulation {
    fn new(options: &Options, rate: Option<Rate>) -> Simulation {
        let server = Server { name: "simulated".to_owned(), address: preflight::Address::Unix("none".into()) };
        let setup = Setup {
            threads: 1,
            places: Places::default(),
            servers: vec![server],
            cluster: None,
            keys: Keys::new(Distribution::Uniform, 0, 0, 1),
            seed: 1,
            value_pool: Vec::new(),
            operation_names: Vec::new(),
            rate,
            idle: false,
            tags: Arc::from([]),
            replay: None,
            client_keys: None,
        };
        let settings = Arc::new(Settings::new(options, setup));
        let shared = Arc::new(Shared::new(&settings, false, false));
        let test = suite::custom(&[b"ping".to_vec()], &Payload::default(), None).unwrap();
        let source = Source::new(&test, options.pipeline, Substitution::default(), 1);
        let mut load = Load::new(shared, settings, source, 0);
        let seat = Seat { server: 0, index: 0, quota: 0, place: 0, checks: false };
        let (mut client, mut out) = (Client::new(seat, 0), Vec::new());
        assert!(load.greet(&mut client, 0, &mut out));
        load.begin(0);
        Simulation { load, client, out }
    }

    fn reply(&mut self, now: u64, replies: usize) {
        let bytes = b"+PONG\r\n".repeat(replies);
        let (consumed, step) = self.load.input(&mut self.client, now, &bytes, &mut self.out);
        assert_eq!((consumed, step), (bytes.len(), Step::Going));
    }
}

const MILLISECOND: u64 = 1_000_000;

#[test]
fn percentiles_are_those_of_the_delays() {
    // Delays from 100 µs to over a second, drawn from a known law, replayed exactly.
    let options = Options { requests: 20_000, pipeline: 1, ..Options::default() };
    let mut simulation = Simulation::new(&options, None);
    let mut delays: Vec<u64> = Vec::new();
    let mut random = fastrand::Rng::with_seed(5);
    let mut now = 0;
    assert!(simulation.load.start(&mut simulation.client, now, &mut simulation.out));
    for _ in 0..20_000 {
        let delay_us = (100.0 / (1.0 - random.f64()).powf(0.9)) as u64;
        delays.push(delay_us);
        now += delay_us * 1_000;
        simulation.reply(now, 1);
    }
    delays.sort_unstable();
    let service = &simulation.load.tally.service;
    assert_eq!(service.len(), 20_000);
    for percent in [1.0, 25.0, 50.0, 90.0, 99.0, 99.9, 99.99, 100.0] {
        let rank = ((percent / 100.0 * 20_000.0_f64 + 0.5) as usize).clamp(1, 20_000);
        let (exact, seen) = (delays[rank - 1], latency::value_at_percent(service, percent));
        // Three digits: a bucket is a thousandth wide at most.
        assert!(seen >= exact && seen - exact <= exact / 1_000 + 1, "p{percent}: {seen} for {exact}");
    }
    let mean = delays.iter().sum::<u64>() as f64 / 20_000.0;
    assert!((latency::mean_us(service) - mean).abs() < mean / 1_000.0 + 1.0);
}

#[test]
fn response_times_under_a_stall_are_those_of_the_queue() {
    // 1,000 requests a second on one connection; each takes 0.4 ms, but the 501st takes 2 s. The schedule goes on, so
    // what waits is worked off in order: completion(k) = max(due(k), completion(k - 1)) + service(k).
    let rate = Rate { per_second: 1_000.0, arrival: Arrival::Fixed, max_backlog: 1 << 20, open_loop: true };
    let options = Options { requests: 6_000, pipeline: 1, ..Options::default() };
    let mut simulation = Simulation::new(&options, Some(rate));
    let service_of = |k: u64| if k == 500 { 2_000 * MILLISECOND } else { 400_000 };
    let (mut response, mut service) = (latency::recorder(3), latency::recorder(3));
    let mut free_at = 0;
    for k in 0..6_000 {
        let due = k * MILLISECOND;
        let sent = due.max(free_at);
        free_at = sent + service_of(k);
        response.saturating_record((free_at - due) / 1_000);
        service.saturating_record((free_at - sent) / 1_000);
    }
    let mut now = 0;
    for k in 0..6_000 {
        let schedule = simulation.load.schedule.as_mut().unwrap();
        schedule.advance(now, u64::MAX);
        if schedule.backlog() == 0 {
            now = schedule.next_due();
            schedule.advance(now, u64::MAX);
        }
        let due = schedule.pop().unwrap();
        let (load, client) = (&mut simulation.load, &mut simulation.client);
        load.start_scheduled(client, due, now, &mut simulation.out);
        now += service_of(k);
        simulation.reply(now, 1);
    }
    let tally = &simulation.load.tally;
    assert_eq!(tally.response.as_ref(), Some(&response));
    assert_eq!(tally.service, service);
    assert!(latency::value_at_percent(&response, 50.0) > 100_000, "half of the requests felt the stall");
    assert!(latency::value_at_percent(&service, 99.9) < 1_000, "one was slow");
}

#[test]
fn equal_replies_of_a_batch_are_counted_one_by_one() {
    let options = Options { requests: 100, pipeline: 16, ..Options::default() };
    let mut simulation = Simulation::new(&options, None);
    assert!(simulation.load.start(&mut simulation.client, 0, &mut simulation.out));
    for (now, replies) in [(10, 7), (20, 9), (30, 16), (40, 3), (50, 13)] {
        simulation.reply(now * 1_000, replies);
    }
    assert_eq!(simulation.load.tally.finished, 48);
    // A batch that breaks in the middle of a reply.
    let bytes = b"+PONG\r\n+PONG\r\n+PO";
    let (consumed, _) = simulation.load.input(&mut simulation.client, 60_000, bytes, &mut simulation.out);
    assert_eq!((consumed, simulation.client.expected), (14, 14));
    let rest = [b"+PONG\r\n".repeat(13), b"$-1\r\n".to_vec()].concat();
    let (consumed, step) = simulation.load.input(&mut simulation.client, 70_000, &rest, &mut simulation.out);
    assert_eq!((consumed, step), (rest.len(), Step::Going));
    let tally = &simulation.load.tally;
    assert_eq!((tally.finished, tally.null_replies, tally.service.len()), (64, 1, 64));
    assert_eq!(simulation.out.windows(4).filter(|window| *window == b"ping").count(), 80);
}

#[test]
fn a_rest_is_no_part_of_the_time() {
    let mut options = Options { pipeline: 1, ..Options::default() };
    options.extended.duration = Some(Duration::from_secs(1));
    let mut simulation = Simulation::new(&options, None);
    assert!(simulation.load.start(&mut simulation.client, 100, &mut simulation.out));
    simulation.load.rest(500 * MILLISECOND, 700 * MILLISECOND);
    assert!(!simulation.load.mark(1_400 * MILLISECOND));
    simulation.reply(1_400 * MILLISECOND, 1);
    assert!(simulation.load.mark(1_500 * MILLISECOND));
    simulation.load.finish(1_501 * MILLISECOND);
    assert_eq!((simulation.load.tally.finished, simulation.load.tally.finished_at), (1, 1_000 * MILLISECOND));
}
