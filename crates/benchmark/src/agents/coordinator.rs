//! The coordinator: shares a run among agents and makes one result of theirs.

use std::{
    ffi::OsString,
    fmt::Write as _,
    io,
    net::{Shutdown, TcpStream, ToSocketAddrs},
    os::unix::ffi::OsStrExt,
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::{AgentNews, Machine, Notice, Order, Portion, TestOrder, VERSION, hexadecimal, proof, wire};
use crate::{
    engine::Aborted,
    latency::{self, Latency},
    live::{AgentRow, Key, News},
    options::Options,
    preflight::reason,
    progress::Progress,
    results::{AgentOutcome, Outcome},
    run::tell,
};

/// The agents of a run.
#[derive(Debug)]
pub(crate) struct Fleet {
    agents: Vec<Agent>,
    notices: Receiver<(usize, io::Result<Notice>)>,
    tolerated: usize,
    /// All clocks are compared with time since then.
    clock: Instant,
}

#[derive(Debug)]
struct Agent {
    name: String,
    stream: TcpStream,
    /// The agent's clock minus ours, nanoseconds.
    offset_ns: i128,
    round_trip: Duration,
    machine: Machine,
    weight: u64,
    is_lost: bool,
}

/// What an agent has told of the test under way.
#[derive(Debug)]
struct Part {
    is_ready: bool,
    heard: Instant,
    elapsed: Duration,
    finished: u64,
    latency_sum_us: u64,
    errors: u64,
    connections: u64,
    /// Replies per second and 99th percentile (ms) of the last news.
    rate: f64,
    tail_ms: f64,
    /// All latencies told.
    told: Latency,
    /// Latencies since the last frame of the view.
    fresh: Latency,
    outcome: Option<Outcome>,
    failure: Option<String>,
    is_stopped: bool,
}

impl Fleet {
    /// Connects to the agents, shows their tokens, and gives them the job. Prints what they are on stderr. The error is a
    /// sentence for stderr.
    pub(crate) fn join(options: &Options, arguments: &[OsString]) -> Result<Fleet, String> {
        let extended = &options.extended;
        let token = super::read_token(extended.token_file.as_deref())?;
        let clock = Instant::now();
        let mut agents = Vec::new();
        for address in &extended.agents {
            let name = &address.name;
            let mut stream = connect(name).map_err(|error| format!("Error: agent {name}: {}", reason(&error)))?;
            let machine = greet(&mut stream, token.as_deref())
                .map_err(|error| format!("Error: agent {name}: {}", reason(&error)))?;
            let (offset_ns, round_trip) = compare_clocks(&mut stream, clock)
                .map_err(|error| format!("Error: agent {name}: {}", reason(&error)))?;
            agents.push(Agent {
                name: name.clone(),
                stream,
                offset_ns,
                round_trip,
                machine,
                weight: address.weight,
                is_lost: false,
            });
        }
        let weights: Vec<u64> = agents.iter().map(|agent| agent.weight).collect();
        let portions: Vec<Portion> =
            (0..agents.len()).map(|index| Portion { index, weights: weights.clone() }).collect();
        let clients: Vec<u64> =
            portions.iter().map(|portion| portion.of(options.client_count() as u64).count).collect();
        let mut servers_us = Vec::new();
        for ((agent, portion), share) in agents.iter_mut().zip(&portions).zip(&clients) {
            let requests = options.request_total().map_or(1, |total| portion.of(total).count);
            if *share == 0 || requests == 0 {
                return Err(format!("Error: agent {} would have nothing to do: raise -c and -n", agent.name));
            }
            servers_us.push(
                give_job(agent, arguments, portion).map_err(|why| format!("Error: agent {}: {why}", agent.name))?,
            );
        }
        let (table, faults) = machines(&agents, &clients, &servers_us);
        tell(format_args!("{}", table.trim_end_matches('\n')));
        if !faults.is_empty() && !extended.force {
            return Err(format!("Error: {}: run with --force if that is meant", faults.join("; ")));
        }
        let (sender, notices) = channel();
        for (index, agent) in agents.iter().enumerate() {
            let failed = |error: io::Error| format!("Error: agent {}: {}", agent.name, reason(&error));
            listen(index, agent.stream.try_clone().map_err(failed)?, sender.clone()).map_err(failed)?;
        }
        Ok(Fleet { agents, notices, tolerated: extended.tolerated_agents, clock })
    }

    /// Runs one test on all agents.
    pub(crate) fn run_test(
        &mut self,
        order: &TestOrder,
        settings: &TestSettings<'_>,
        progress: &mut Progress<'_>,
        interrupted: &AtomicBool,
    ) -> Result<Outcome, Aborted> {
        let mut parts: Vec<Part> = self.agents.iter().map(|_| Part::new(settings.precision)).collect();
        for agent in self.agents.iter_mut().filter(|agent| !agent.is_lost) {
            agent.send(&Order::Test(order.clone()));
        }
        progress.begin(settings.title);
        let mut began: Option<Instant> = None;
        let mut next_frame = Instant::now();
        while (0..parts.len()).any(|index| self.is_awaited(index, &parts)) {
            if interrupted.load(Ordering::Relaxed) {
                self.stop_all(&mut parts);
            }
            if progress.key() == Some(Key::Quit) {
                interrupted.store(true, Ordering::Relaxed);
            }
            match self.notices.recv_timeout(POLL) {
                Ok((index, notice)) => self.take(index, notice, &mut parts),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            let running = |index: usize, agents: &[Agent]| !agents[index].is_lost;
            let all_ready =
                (0..parts.len()).filter(|index| running(*index, &self.agents)).all(|index| parts[index].is_ready);
            if began.is_none() && all_ready && self.agents.iter().any(|agent| !agent.is_lost) {
                self.start_all(&mut parts);
                began = Some(Instant::now());
            }
            self.find_silent(&mut parts, began);
            let lost = self.agents.iter().filter(|agent| agent.is_lost).count();
            let has_failed = parts.iter().any(|part| part.failure.is_some());
            if lost > self.tolerated || has_failed {
                self.stop_all(&mut parts);
            }
            if let Some(began) = began
                && Instant::now() >= next_frame
            {
                next_frame = Instant::now() + Progress::INTERVAL;
                self.show(&mut parts, settings, began, progress);
            }
        }
        self.conclude(parts, settings, interrupted)
    }

    /// Whether something is still to come from an agent.
    fn is_awaited(&self, index: usize, parts: &[Part]) -> bool {
        !self.agents[index].is_lost && parts[index].outcome.is_none() && parts[index].failure.is_none()
    }

    fn take(&mut self, index: usize, notice: io::Result<Notice>, parts: &mut [Part]) {
        let (Some(agent), Some(part)) = (self.agents.get_mut(index), parts.get_mut(index)) else { return };
        part.heard = Instant::now();
        match notice {
            Ok(Notice::Ready { connected }) => {
                part.is_ready = true;
                part.connections = connected;
            }
            Ok(Notice::News(news)) => part.take_news(news),
            Ok(Notice::Done(outcome)) => {
                part.is_ready = true;
                part.outcome = Some(*outcome);
            }
            Ok(Notice::Failed { text, partial }) => {
                part.is_ready = true;
                part.outcome = partial.map(|outcome| *outcome);
                part.failure = Some(text);
            }
            Ok(_) => {}
            Err(error) => {
                if !agent.is_lost {
                    tell(format_args!("WARNING: agent {} is lost: {}", agent.name, reason(&error)));
                }
                agent.is_lost = true;
                part.is_ready = true;
            }
        }
    }

    /// All begin at one instant, far enough away for the order to arrive everywhere.
    fn start_all(&mut self, parts: &mut [Part]) {
        let slowest = self.agents.iter().map(|agent| agent.round_trip).max().unwrap_or_default();
        let start = self.clock.elapsed() + START_DELAY + slowest * 4;
        let start_ns = i128::try_from(start.as_nanos()).unwrap_or(i128::MAX);
        for (agent, part) in self.agents.iter_mut().zip(parts).filter(|(agent, _)| !agent.is_lost) {
            part.heard = Instant::now();
            let at_ns = u64::try_from(start_ns + agent.offset_ns).unwrap_or(0);
            agent.send(&Order::Start { at_ns });
        }
    }

    fn stop_all(&mut self, parts: &mut [Part]) {
        for (agent, part) in self.agents.iter_mut().zip(parts) {
            if !agent.is_lost && !part.is_stopped {
                part.is_stopped = true;
                part.heard = Instant::now();
                agent.send(&Order::Stop);
            }
        }
    }

    /// Takes agents for lost that have said nothing for long although they should.
    fn find_silent(&mut self, parts: &mut [Part], began: Option<Instant>) {
        for (agent, part) in self.agents.iter_mut().zip(parts) {
            let is_due = (began.is_some() || part.is_stopped) && part.outcome.is_none() && part.failure.is_none();
            if is_due && !agent.is_lost && part.heard.elapsed() > SILENCE_MAX {
                tell(format_args!("WARNING: agent {} is lost: it says nothing", agent.name));
                agent.is_lost = true;
                let _ = agent.stream.shutdown(Shutdown::Both);
            }
        }
    }

    fn show(&self, parts: &mut [Part], settings: &TestSettings<'_>, began: Instant, progress: &mut Progress<'_>) {
        let elapsed = parts.iter().map(|part| part.elapsed).max().unwrap_or_default();
        let sum = |figure: fn(&Part) -> u64| parts.iter().map(figure).sum::<u64>();
        let (finished, latency_us) = (sum(|part| part.finished), sum(|part| part.latency_sum_us));
        let connections = sum(|part| part.connections);
        progress.publish(finished, latency_us, connections, sum(|part| part.errors));
        if !progress.is_live() {
            return progress.show(elapsed, finished, latency_us);
        }
        #[expect(clippy::cast_precision_loss, reason = "drawn as a bar")]
        let share = match (settings.duration, settings.requests) {
            (Some(duration), _) => Some(began.elapsed().as_secs_f64() / duration.as_secs_f64().max(1e-9)),
            (None, Some(requests)) => Some(finished as f64 / requests.max(1) as f64),
            (None, None) => None,
        };
        let errors = sum(|part| part.errors);
        let mut latencies = latency::recorder(settings.precision);
        let empty = latencies.clone();
        for part in parts.iter_mut() {
            latency::add(&mut latencies, &std::mem::replace(&mut part.fresh, empty.clone()));
        }
        let agents = self.agents.iter().zip(parts.iter()).map(|(agent, part)| AgentRow {
            name: agent.name.clone(),
            rate: part.rate,
            tail_ms: part.tail_ms,
            errors: part.errors,
            connections: part.connections,
            is_lost: agent.is_lost,
        });
        let agents = agents.collect();
        progress.show_live(&News {
            elapsed,
            share,
            finished,
            errors,
            connections,
            latencies,
            is_paused: false,
            agents,
        });
    }

    /// One outcome of all parts.
    fn conclude(
        &self,
        parts: Vec<Part>,
        settings: &TestSettings<'_>,
        interrupted: &AtomicBool,
    ) -> Result<Outcome, Aborted> {
        let mut whole = Outcome::empty(settings.title, settings.payload_bytes, settings.precision);
        let mut failure: Option<String> = None;
        for (agent, part) in self.agents.iter().zip(parts) {
            if let Some(text) = &part.failure {
                failure.get_or_insert_with(|| format!("{text} (agent {})", agent.name));
            }
            let outcome = match part.outcome {
                Some(outcome) => {
                    // What was told while it ran must be contained in what was told at the end.
                    let is_contained = outcome.service.clone().subtract(&part.told).is_ok();
                    whole.is_inconsistent |= !is_contained;
                    outcome
                }
                None => {
                    let mut told = Outcome::empty(settings.title, settings.payload_bytes, settings.precision);
                    told.finished = part.told.len();
                    told.elapsed = part.elapsed;
                    told.service = part.told;
                    told.connected = usize::try_from(part.connections).unwrap_or(usize::MAX);
                    told
                }
            };
            whole.merge(&outcome);
            whole.agents.push(AgentOutcome { name: agent.name.clone(), outcome, is_lost: agent.is_lost });
        }
        whole.interrupted = interrupted.load(Ordering::Relaxed);
        if let Some(text) = failure {
            whole.aborted = true;
            let partial = (whole.finished > 0).then(|| Box::new(whole));
            return Err(Aborted { text, partial });
        }
        if self.agents.iter().all(|agent| agent.is_lost) && whole.finished == 0 {
            return Err(Aborted::before_start("Error: all agents are lost".to_owned()));
        }
        Ok(whole)
    }

    /// Whether so many agents are lost that the run is over.
    pub(crate) fn is_broken(&self) -> bool {
        let lost = self.agents.iter().filter(|agent| agent.is_lost).count();
        lost > self.tolerated || lost == self.agents.len()
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for agent in &self.agents {
            // The threads that listen end with it.
            let _ = agent.stream.shutdown(Shutdown::Both);
        }
    }
}

/// What is known of a test beside what the agents are told.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TestSettings<'a> {
    /// Title in reports.
    pub(crate) title: &'a str,
    /// Number printed as `bytes payload`.
    pub(crate) payload_bytes: usize,
    /// Digits of the histograms.
    pub(crate) precision: u8,
    /// Whole length, if it is bound by a time.
    pub(crate) duration: Option<Duration>,
    /// Requests of all, if it is bound by them.
    pub(crate) requests: Option<u64>,
}

impl Agent {
    /// A failure shows itself where the agent is listened to.
    fn send(&mut self, order: &Order) {
        let _ = wire::send(&mut self.stream, order);
    }
}

impl Part {
    fn new(precision: u8) -> Part {
        Part {
            is_ready: false,
            heard: Instant::now(),
            elapsed: Duration::ZERO,
            finished: 0,
            latency_sum_us: 0,
            errors: 0,
            connections: 0,
            rate: 0.0,
            tail_ms: 0.0,
            told: latency::recorder(precision),
            fresh: latency::recorder(precision),
            outcome: None,
            failure: None,
            is_stopped: false,
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "figures for people")]
    fn take_news(&mut self, news: AgentNews) {
        let interval = news.elapsed.saturating_sub(self.elapsed).as_secs_f64().max(1e-3);
        self.rate = news.finished.saturating_sub(self.finished) as f64 / interval;
        self.tail_ms = latency::value_at_percent(&news.latencies, 99.0) as f64 / 1_000.0;
        latency::add(&mut self.told, &news.latencies);
        latency::add(&mut self.fresh, &news.latencies);
        self.elapsed = news.elapsed;
        self.finished = news.finished;
        self.latency_sum_us = news.latency_sum_us;
        self.errors = news.errors;
        self.connections = news.connections;
    }
}

fn connect(name: &str) -> io::Result<TcpStream> {
    let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in name.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                return Ok(stream);
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// The first words of both sides.
fn greet(stream: &mut TcpStream, token: Option<&[u8]>) -> io::Result<Machine> {
    let hello: Notice = wire::receive(stream, wire::STRANGER_BYTES_MAX)?;
    let Notice::Hello { version, nonce, needs_token } = hello else {
        return Err(io::Error::other("no agent of ours answers there"));
    };
    if version != VERSION {
        return Err(io::Error::other(format!("it is of version {version}, this is {VERSION}")));
    }
    if needs_token {
        let token = token.ok_or_else(|| io::Error::other("it asks for a token: give its --token-file"))?;
        wire::send(stream, &Order::Auth { proof: hexadecimal(&proof(token, &nonce)) })?;
    }
    match wire::receive(stream, wire::STRANGER_BYTES_MAX)? {
        Notice::Welcome(machine) => Ok(machine),
        Notice::Refused { why } => Err(io::Error::other(why)),
        _ => Err(io::Error::other("no agent of ours answers there")),
    }
}

/// The agent's clock minus ours by the fastest of some questions, and how long that one took.
fn compare_clocks(stream: &mut TcpStream, clock: Instant) -> io::Result<(i128, Duration)> {
    let mut best: Option<(i128, Duration)> = None;
    for _ in 0..CLOCK_QUESTIONS {
        let asked = clock.elapsed();
        wire::send(stream, &Order::Ping)?;
        let Notice::Pong { now_ns } = wire::receive(stream, wire::STRANGER_BYTES_MAX)? else {
            return Err(io::Error::other("it does not tell its time"));
        };
        let round_trip = clock.elapsed().saturating_sub(asked);
        let middle = i128::try_from((asked + round_trip / 2).as_nanos()).unwrap_or(i128::MAX);
        if best.is_none_or(|(_, least)| round_trip < least) {
            best = Some((i128::from(now_ns) - middle, round_trip));
        }
    }
    best.ok_or_else(|| io::Error::other("its clock was not asked"))
}

/// Gives an agent its job. How long its server takes for a PING, µs; the error is a sentence.
fn give_job(agent: &mut Agent, arguments: &[OsString], portion: &Portion) -> Result<u64, String> {
    let arguments = arguments.iter().map(|word| STANDARD.encode(word.as_bytes())).collect();
    let patience = agent.stream.set_read_timeout(Some(JOB_PATIENCE));
    let asked =
        patience.and_then(|()| wire::send(&mut agent.stream, &Order::Job { arguments, portion: portion.clone() }));
    let notice = asked.and_then(|()| wire::receive(&mut agent.stream, wire::MESSAGE_BYTES_MAX));
    match notice {
        Ok(Notice::Opened { round_trip_us }) => {
            agent.stream.set_read_timeout(None).map_err(|error| reason(&error))?;
            Ok(round_trip_us)
        }
        Ok(Notice::Refused { why }) => Err(why),
        Ok(_) => Err("it does not take the job".to_owned()),
        Err(error) => Err(reason(&error)),
    }
}

/// The agents in a table, and what makes them unfit.
fn machines(agents: &[Agent], clients: &[u64], servers_us: &[u64]) -> (String, Vec<String>) {
    let mut faults = Vec::new();
    let width = agents.iter().map(|agent| agent.name.len()).max().unwrap_or(0).max(5);
    let mut table = format!(
        "{:<width$} {:>8} {:>5} {:>11} {:>6} {:>10} {:>9} {:>10} {:>9}\n",
        "agent", "clients", "cores", "descriptors", "ports", "memory MiB", "rtt ms", "server ms", "clock ±ms"
    );
    for ((agent, clients), server_us) in agents.iter().zip(clients).zip(servers_us) {
        let Machine { cpus, descriptors, ports, memory_mib, .. } = &agent.machine;
        let limit = descriptors.map_or_else(|| "no limit".to_owned(), |limit| limit.to_string());
        #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
        let server_ms = *server_us as f64 / 1_000.0;
        let rtt_ms = agent.round_trip.as_secs_f64() * 1_000.0;
        let _ = writeln!(
            table,
            "{:<width$} {clients:>8} {cpus:>5} {limit:>11} {ports:>6} {memory_mib:>10} {rtt_ms:>9.3} {server_ms:>10.3} {:>9.3}",
            agent.name,
            rtt_ms / 2.0,
        );
        let needed_mib = clients * CLIENT_KIB / 1_024;
        if *memory_mib > 0 && *memory_mib < needed_mib {
            faults.push(format!(
                "agent {} has {memory_mib} MiB for {clients} clients, which take {needed_mib}",
                agent.name
            ));
        }
        if agent.round_trip > ROUND_TRIP_MAX {
            faults.push(format!("agent {} is {rtt_ms:.0} ms away: its start cannot be exact", agent.name));
        }
    }
    (table, faults)
}

fn listen(index: usize, mut stream: TcpStream, sender: Sender<(usize, io::Result<Notice>)>) -> io::Result<()> {
    thread::Builder::new().name(format!("agent-{index}")).spawn(move || {
        loop {
            let notice = wire::receive(&mut stream, wire::MESSAGE_BYTES_MAX);
            let is_over = notice.is_err();
            if sender.send((index, notice)).is_err() || is_over {
                return;
            }
        }
    })?;
    Ok(())
}

const PATIENCE: Duration = Duration::from_secs(5);
const JOB_PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);
const START_DELAY: Duration = Duration::from_millis(50);
/// An agent tells news four times a second.
const SILENCE_MAX: Duration = Duration::from_secs(10);
const CLOCK_QUESTIONS: usize = 16;
/// Kernel and process memory of a connection on the side of the generator.
const CLIENT_KIB: u64 = 8;
const ROUND_TRIP_MAX: Duration = Duration::from_millis(200);
