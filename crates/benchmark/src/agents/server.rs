//! The agent: waits for a coordinator, runs its part of the tests, tells how they go.

use std::{
    ffi::OsString,
    io,
    net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs},
    os::unix::ffi::OsStringExt,
    sync::{
        Arc, Mutex, OnceLock, TryLockError,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError, channel},
    },
    thread,
    time::{Duration, Instant},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::{AgentNews, Machine, Notice, Order, Portion, TestOrder, VERSION, is_allowed, is_proof, wire};
use crate::{
    latency::Latency,
    options::{self, Options, Parsed},
    places,
    preflight::{Address, Connection, reason},
    progress::Progress,
    run::{put, tell},
    session::{Opening, Session, Share},
};

/// Serves coordinators until the process is ended. The error is a sentence for stderr.
pub(crate) fn serve(options: &Options, address: &str) -> Result<(), String> {
    let token = super::read_token(options.extended.token_file.as_deref())?;
    let address = if address.contains(':') { address.to_owned() } else { format!("127.0.0.1:{address}") };
    let failed = |error: io::Error| format!("Error: cannot listen on {address}: {}", reason(&error));
    let listener = TcpListener::bind(&address).map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    if token.is_none() && !bound.ip().is_loopback() {
        return Err(format!(
            "Error: whoever reaches {bound} could use this machine for load: give agents and coordinator a common secret \
             with --token-file FILE, or listen on 127.0.0.1"
        ));
    }
    put(&format!("Agent waits for jobs on {bound}\n"));
    let agent = Arc::new(Agent { token, options: options.clone(), job: Mutex::new(()) });
    for stream in listener.incoming().flatten() {
        let agent = Arc::clone(&agent);
        let spawned = thread::Builder::new().name("coordinator".to_owned()).spawn(move || {
            let peer = stream.peer_addr().map_or_else(|_| "?".to_owned(), |peer| peer.to_string());
            if let Err(error) = agent.attend(stream) {
                tell(format_args!("{peer}: {}", reason(&error)));
            }
        });
        if let Err(error) = spawned {
            tell(format_args!("WARNING: a coordinator is turned away: {error}"));
        }
    }
    Ok(())
}

struct Agent {
    token: Option<Vec<u8>>,
    options: Options,
    /// Held by the coordinator whose job is run.
    job: Mutex<()>,
}

impl Agent {
    /// Everything with one coordinator.
    fn attend(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(STRANGER_PATIENCE))?;
        let nonce = nonce()?;
        let needs_token = self.token.is_some();
        let hello = Notice::Hello { version: VERSION.to_owned(), nonce: nonce.clone(), needs_token };
        wire::send(&mut stream, &hello)?;
        if let Some(token) = &self.token {
            let order: Order = wire::receive(&mut stream, wire::STRANGER_BYTES_MAX)?;
            let is_known = matches!(&order, Order::Auth { proof } if is_proof(token, &nonce, proof));
            if !is_known {
                refuse(&mut stream, "the token is wrong")?;
                return Err(io::Error::other("turned away: the token is wrong"));
            }
        }
        let _job = match self.job.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return refuse(&mut stream, "the agent has another job"),
        };
        stream.set_read_timeout(None)?;
        wire::send(&mut stream, &Notice::Welcome(machine()))?;
        let link = Link::new(stream)?;
        let served = self.work(&link);
        link.close();
        served
    }

    /// Takes orders until the coordinator goes.
    fn work(&self, link: &Link) -> io::Result<()> {
        let mut job: Option<(Session, Vec<crate::suite::Test>)> = None;
        while let Ok(order) = link.orders.recv() {
            match order {
                Order::Ping => link.send(&Notice::Pong { now_ns: now_ns() })?,
                Order::Job { arguments, portion } => match self.open(&arguments, portion, link) {
                    Ok((session, tests, round_trip_us)) => {
                        link.send(&Notice::Opened { round_trip_us })?;
                        job = Some((session, tests));
                    }
                    Err(why) => link.send(&Notice::Refused { why })?,
                },
                Order::Test(order) => {
                    let Some((session, tests)) = &mut job else {
                        link.send(&Notice::Refused { why: "there is no job".to_owned() })?;
                        continue;
                    };
                    link.interrupted.store(link.is_gone.load(Ordering::Relaxed), Ordering::Relaxed);
                    link.send(&run_test(session, tests, &order, link))?;
                }
                // Came too late for its test.
                Order::Auth { .. } | Order::Start { .. } | Order::Stop => {}
            }
        }
        Ok(())
    }

    /// Prepares a job. The error is a sentence for the coordinator.
    fn open(
        &self,
        arguments: &[String],
        portion: Portion,
        link: &Link,
    ) -> Result<(Session, Vec<crate::suite::Test>, u64), String> {
        let words: Result<Vec<OsString>, _> =
            arguments.iter().map(|word| STANDARD.decode(word).map(OsString::from_vec)).collect();
        let words = words.map_err(|error| error.to_string())?;
        let mut options = match options::parse(&words) {
            Parsed::Run(options, _) => *options,
            other => return Err(format!("the arguments are not those of a run: {other:?}")),
        };
        if options.socket.is_some() {
            return Err("an agent loads no sockets of its own machine".to_owned());
        }
        let allowed = &self.options.extended.allowed_targets;
        let hosts = match options.extended.targets.as_slice() {
            targets if targets.is_empty() || options.cluster => vec![(options.host.clone(), options.port)],
            targets => targets.to_vec(),
        };
        for (host, port) in &hosts {
            let addresses = (host.as_str(), *port).to_socket_addrs();
            let addresses: Vec<SocketAddr> =
                addresses.map_err(|error| format!("{host}: {}", reason(&error)))?.collect();
            if let Some(address) = addresses.iter().find(|address| !is_allowed(allowed, **address)) {
                return Err(format!("the agent may not load {address} (--allow-target)"));
            }
        }
        options.extended.agents.clear();
        let opening = Opening {
            phase: None,
            metrics: None,
            interrupted: Arc::clone(&link.interrupted),
            share: Some(Share { portion, clients: options.client_count(), requests: options.request_total() }),
        };
        let session = Session::open(options, opening).map_err(|failure| failure.0.trim_end().to_owned())?;
        for server in session.servers() {
            if let Address::Tcp(address) = &server.address
                && !is_allowed(allowed, *address)
            {
                return Err(format!("the agent may not load {address} (--allow-target)"));
            }
        }
        let began = Instant::now();
        let endpoint = hosts.first().map(|(host, port)| (host.as_str(), *port));
        let (mut connection, _) =
            Connection::open(&session.options, endpoint).map_err(|failure| failure.0.trim_end().to_owned())?;
        let connected = Instant::now();
        connection.ask(&["PING"]).map_err(|error| reason(&error))?;
        let round_trip = connected.elapsed().min(began.elapsed());
        let tests = session.tests()?;
        Ok((session, tests, u64::try_from(round_trip.as_micros()).unwrap_or(u64::MAX)))
    }
}

fn run_test(session: &mut Session, tests: &[crate::suite::Test], order: &TestOrder, link: &Link) -> Notice {
    let Some(test) = tests.get(order.index) else {
        return Notice::Failed { text: format!("there is no test {}", order.index), partial: None };
    };
    let mut progress = Progress::of_agent(Reporter { link });
    match session.measure_share(test, order, &mut progress) {
        Ok(outcome) => Notice::Done(Box::new(outcome)),
        Err(aborted) => Notice::Failed { text: aborted.text, partial: aborted.partial },
    }
}

/// The way to the coordinator.
#[derive(Debug)]
pub(crate) struct Link {
    stream: Mutex<TcpStream>,
    orders: Receiver<Order>,
    /// The test under way is to end.
    interrupted: Arc<AtomicBool>,
    is_gone: Arc<AtomicBool>,
}

impl Link {
    fn new(stream: TcpStream) -> io::Result<Link> {
        let (sender, orders) = channel();
        let (interrupted, is_gone) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let mut reading = stream.try_clone()?;
        let (stop, gone) = (Arc::clone(&interrupted), Arc::clone(&is_gone));
        thread::Builder::new().name("orders".to_owned()).spawn(move || {
            while let Ok(order) = wire::receive::<Order>(&mut reading, wire::MESSAGE_BYTES_MAX) {
                if matches!(order, Order::Stop) {
                    stop.store(true, Ordering::Relaxed);
                }
                if sender.send(order).is_err() {
                    break;
                }
            }
            // Nobody is left to send the load for.
            gone.store(true, Ordering::Relaxed);
            stop.store(true, Ordering::Relaxed);
        })?;
        Ok(Link { stream: Mutex::new(stream), orders, interrupted, is_gone })
    }

    fn send(&self, notice: &Notice) -> io::Result<()> {
        let mut stream = self.stream.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        wire::send(&mut *stream, notice)
    }

    fn close(&self) {
        let stream = self.stream.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // Ends the thread that reads orders.
        let _ = stream.shutdown(std::net::Shutdown::Both);
    }
}

/// Tells the coordinator of a running test, in place of a progress line.
#[derive(Debug)]
pub(crate) struct Reporter<'a> {
    link: &'a Link,
}

impl Reporter<'_> {
    /// All connections stand: waits for the instant to start at. False when there will be none.
    pub(crate) fn wait_for_start(&self, connected: u64, interrupted: &AtomicBool) -> bool {
        if self.link.send(&Notice::Ready { connected }).is_err() {
            return false;
        }
        loop {
            match self.link.orders.recv_timeout(POLL) {
                Ok(Order::Start { at_ns }) => {
                    wait_until(at_ns, interrupted);
                    return !interrupted.load(Ordering::Relaxed);
                }
                Ok(Order::Stop) | Err(RecvTimeoutError::Disconnected) => return false,
                Ok(_) | Err(RecvTimeoutError::Timeout) if interrupted.load(Ordering::Relaxed) => return false,
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Passes the latest figures on.
    pub(crate) fn report(&self, news: &crate::live::News, latency_sum_us: u64) {
        let latencies: Latency = news.latencies.clone();
        let news = AgentNews {
            elapsed: news.elapsed,
            finished: news.finished,
            latency_sum_us,
            errors: news.errors,
            connections: news.connections,
            latencies,
        };
        if self.link.send(&Notice::News(news)).is_err() {
            self.link.interrupted.store(true, Ordering::Relaxed);
        }
    }
}

/// Waits for an instant of the agent's clock.
fn wait_until(at_ns: u64, interrupted: &AtomicBool) {
    while !interrupted.load(Ordering::Relaxed) {
        let left = Duration::from_nanos(at_ns.saturating_sub(now_ns()));
        if left.is_zero() {
            return;
        }
        // Sleeping is a little late, so the last stretch is not slept.
        if left > SPIN {
            thread::sleep((left - SPIN).min(POLL));
        }
    }
}

/// The agent's clock: nanoseconds since the first question for it.
fn now_ns() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    u64::try_from(START.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// What this machine has.
pub(crate) fn machine() -> Machine {
    let (low, high) = places::port_range();
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available = memory.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib: Option<u64> = available.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    Machine {
        version: VERSION.to_owned(),
        cpus: thread::available_parallelism().map_or(1, usize::from),
        descriptors: rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum,
        ports: usize::from(high.saturating_sub(low)) + 1,
        memory_mib: kib.unwrap_or(0) / 1_024,
    }
}

fn refuse(stream: &mut TcpStream, why: &str) -> io::Result<()> {
    wire::send(stream, &Notice::Refused { why: why.to_owned() })
}

/// Never the same twice, so that a proof that was overheard is of no use.
fn nonce() -> io::Result<String> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(super::hexadecimal(&bytes))
}

const STRANGER_PATIENCE: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(50);
const SPIN: Duration = Duration::from_millis(1);
