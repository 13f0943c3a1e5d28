//! The link to a primary: one thread that connects, introduces itself, takes a snapshot if it must, and follows.
//!
//! The thread belongs to one generation of the role. Whoever changes the role does so behind the gate, where no command
//! of the primary is half run, and shuts the socket; the thread sees the new generation before its next command and ends.

use super::apply::Applier;
use super::{Phase, Target, full_sync, receive, write_log};
use crate::config::Config;
use crate::log;
use crate::process::log::Level;
use crate::process::{error_text, now_ms};
use crate::scripting::threads::STACK_BYTES;
use crate::session::{ClientId, Session};
use crate::shared::Shared;
use ::replication::handshake::{Answer, Handshake, Introduction, LINE_MAX, Next, command};
use keyspace::LockSet;
use net::tls::Stream;
use rustix::net::{AddressFamily, SocketType};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How often a thread that waits for the primary looks whether it is to go on.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Between two attempts.
const RETRY_EVERY: Duration = Duration::from_secs(1);
/// Between two acknowledgements.
const ACK_EVERY: Duration = Duration::from_secs(1);
/// Bytes read at once.
const READ_BYTES: usize = 256 << 10;

/// Why the link ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// The role has changed, or the server ends.
    Stopped,
    /// The connection is gone or was silent for too long; the log has been told.
    Lost,
    /// The primary sent what it must not; nothing of the stream is to be gone on with.
    Corrupt(String),
}

/// Begins to follow the present target on a thread of its own.
pub(crate) fn start(shared: &Arc<Shared>) {
    let generation = shared.replication.generation();
    let of_thread = shared.clone();
    let spawned = std::thread::Builder::new().name("replica-link".into()).stack_size(STACK_BYTES).spawn(move || {
        let shared = of_thread;
        let _turn = shared.replication.link.turn.lock();
        run(&shared, generation);
    });
    if let Err(error) = spawned {
        log!(Level::Warning, "There is no thread to follow the primary on: {}", error_text(&error));
    }
}

fn run(shared: &Arc<Shared>, generation: u64) {
    let replication = &shared.replication;
    let is_current = || replication.generation() == generation && !shared.stopping.load(Ordering::Relaxed);
    if !is_current() {
        return;
    }
    let mut applier = Applier::new(shared, generation);
    while is_current() {
        let Some(target) = replication.target() else { return };
        log!(Level::Notice, "Connecting to MASTER {}:{}", target.host, target.port);
        replication.set_phase(Phase::Connecting);
        let ended = attempt(shared, generation, &target, &mut applier);
        replication.link.socket.lock().take();
        if !is_current() {
            return;
        }
        if let Err(Ended::Corrupt(why)) = &ended {
            log!(Level::Warning, "{why}");
            replication.state.lock().is_resumable = false;
        }
        if replication.phase() == Phase::Connected {
            log!(Level::Notice, "Connection with master lost.");
            log!(Level::Notice, "Caching the disconnected master state.");
            replication.link.down_since_s.store(now_ms() / 1000, Ordering::SeqCst);
        }
        replication.set_phase(Phase::Connect);
        shared.renew_replicas(&shared.config.snapshot());
        let until = Instant::now() + RETRY_EVERY;
        while is_current() && Instant::now() < until {
            std::thread::sleep(LOOK_EVERY / 4);
        }
    }
}

fn connect(target: &Target, config: &Config) -> io::Result<TcpStream> {
    let timeout = Duration::from_secs(u64::try_from(config.repl_timeout).unwrap_or(60));
    let source = std::str::from_utf8(&config.bind_source_addr).ok().and_then(|text| text.parse::<IpAddr>().ok());
    let mut last = io::Error::other("the host name has no address");
    for address in (target.host.as_str(), target.port).to_socket_addrs()? {
        let connected = match source {
            Some(source) if source.is_ipv4() == address.is_ipv4() => connect_from(source, address),
            _ => TcpStream::connect_timeout(&address, timeout),
        };
        match connected {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(LOOK_EVERY))?;
                stream.set_write_timeout(Some(timeout))?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn connect_from(source: IpAddr, address: SocketAddr) -> io::Result<TcpStream> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = rustix::net::socket(family, SocketType::STREAM, None)?;
    rustix::net::bind(&socket, &SocketAddr::new(source, 0))?;
    rustix::net::connect(&socket, &address)?;
    Ok(TcpStream::from(socket))
}

/// The connection to the primary, encrypted with `tls-replication`.
pub(super) enum Line {
    /// As it is.
    Plain(TcpStream),
    /// Encrypted.
    Secure(Box<Stream>),
}

impl Line {
    /// Shakes hands if need be.
    fn open(shared: &Shared, config: &Config, socket: TcpStream) -> io::Result<Line> {
        if !config.tls_replication {
            return Ok(Line::Plain(socket));
        }
        let connector = shared.secure.connector().ok_or_else(|| io::Error::other("TLS is not configured"))?;
        let patience = Duration::from_secs(u64::try_from(config.repl_timeout).unwrap_or(60));
        socket.set_read_timeout(Some(patience))?;
        let stream = Stream::connect(socket, &connector)?;
        stream.socket().set_read_timeout(Some(LOOK_EVERY))?;
        Ok(Line::Secure(Box::new(stream)))
    }
}

impl Read for Line {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Line::Plain(socket) => socket.read(buffer),
            Line::Secure(stream) => stream.read(buffer),
        }
    }
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Line::Plain(socket) => socket.write(bytes),
            Line::Secure(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Line::Plain(socket) => socket.flush(),
            Line::Secure(stream) => stream.flush(),
        }
    }
}

/// The error of a read that ends because the role has changed. Not `Interrupted`: readers of the standard library try
/// again after that, for ever.
pub(super) const STOPPED: io::ErrorKind = io::ErrorKind::ConnectionAborted;

/// The connection and what has been read and not used of it.
pub(super) struct Wire {
    pub(super) shared: Arc<Shared>,
    pub(super) generation: u64,
    pub(super) stream: Line,
    buffer: Vec<u8>,
    start: usize,
    last_io: Instant,
}

impl Wire {
    pub(super) fn is_current(&self) -> bool {
        self.shared.replication.generation() == self.generation && !self.shared.stopping.load(Ordering::Relaxed)
    }

    /// What has been read and not used.
    pub(super) fn unused(&self) -> &[u8] {
        self.buffer.get(self.start..).unwrap_or_default()
    }

    pub(super) fn consume(&mut self, bytes: usize) {
        self.start += bytes;
        if self.start >= self.buffer.len() {
            self.buffer.clear();
            self.start = 0;
            if self.buffer.capacity() > 4 * READ_BYTES {
                self.buffer = Vec::new();
            }
        } else if self.start > READ_BYTES {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
    }

    /// Reads once; 0: nothing came for a moment.
    pub(super) fn read_some(&mut self) -> io::Result<usize> {
        let before = self.buffer.len();
        self.buffer.resize(before + READ_BYTES, 0);
        let read = self.stream.read(self.buffer.get_mut(before..).unwrap_or_default());
        self.buffer.truncate(before + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(got) => {
                self.last_io = Instant::now();
                let now_s = now_ms() / 1000;
                if self.shared.replication.link.last_io_s.swap(now_s, Ordering::Relaxed) != now_s
                    && let Some((session, ..)) = &mut *self.shared.replication.link.client.lock()
                {
                    session.last_active_s = u32::try_from(now_s).unwrap_or(0);
                }
                self.shared.replication.figures.input_bytes.fetch_add(got as u64, Ordering::Relaxed);
                Ok(got)
            }
            Err(error) if is_pause(&error) => Ok(0),
            Err(error) => Err(error),
        }
    }

    pub(super) fn is_silent(&self) -> bool {
        let limit_s = u64::try_from(self.shared.config.snapshot().repl_timeout).unwrap_or(60);
        self.last_io.elapsed() > Duration::from_secs(limit_s)
    }

    /// Reads until something comes.
    pub(super) fn read_more(&mut self) -> io::Result<()> {
        loop {
            if !self.is_current() {
                return Err(STOPPED.into());
            }
            if self.read_some()? > 0 {
                return Ok(());
            }
            if self.is_silent() {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }

    /// The next line, without its end.
    fn line(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some(end) = self.unused().iter().position(|byte| *byte == b'\n') {
                let line = self.unused().get(..end).unwrap_or_default().trim_ascii_end().to_vec();
                self.consume(end + 1);
                return Ok(line);
            }
            if self.unused().len() > LINE_MAX {
                return Err(io::Error::other("the primary's line does not end"));
            }
            self.read_more()?;
        }
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }
}

fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

fn attempt(shared: &Arc<Shared>, generation: u64, target: &Target, applier: &mut Applier) -> Result<(), Ended> {
    let config = shared.config.snapshot();
    let replication = &shared.replication;
    log!(Level::Notice, "MASTER <-> REPLICA sync started");
    let failed = |error: io::Error| {
        log!(Level::Warning, "Error condition on socket for SYNC: {}", error_text(&error));
        Ended::Lost
    };
    let socket = connect(target, &config).map_err(failed)?;
    *replication.link.socket.lock() = socket.try_clone().ok();
    let id = ClientId(shared.client_ids.fetch_add(1, Ordering::Relaxed) + 1);
    let now_s = u32::try_from(now_ms() / 1000).unwrap_or(0);
    let session = Session::new(id, now_s, true, socket.peer_addr().ok());
    *replication.link.client.lock() = Some((session, socket.local_addr().ok(), socket.as_raw_fd()));
    let stream = Line::open(shared, &config, socket).map_err(failed)?;
    log!(Level::Notice, "Non blocking connect for SYNC fired the event.");
    let mut wire =
        Wire { shared: shared.clone(), generation, stream, buffer: Vec::new(), start: 0, last_io: Instant::now() };
    replication.set_phase(Phase::Handshake);
    let introduction = introduction(shared, &config);
    let hands_over = introduction.hands_over;
    let answer = match shake_hands(&mut wire, introduction) {
        Ok(Some(answer)) => answer,
        Ok(None) => {
            if hands_over && wire.is_current() {
                shared.fail_failover("Failover target rejected psync request");
            }
            return Err(Ended::Lost);
        }
        Err(error) if !wire.is_current() => {
            drop(error);
            return Err(Ended::Stopped);
        }
        Err(error) => {
            log!(Level::Warning, "Master did not respond to command during SYNC handshake: {}", error_text(&error));
            return Err(Ended::Lost);
        }
    };
    if hands_over {
        match &answer {
            Answer::Continue(_) => shared.end_failover(None),
            _ => {
                shared.fail_failover("Failover target rejected psync request");
                return Err(Ended::Stopped);
            }
        }
    }
    match answer {
        Answer::Continue(id) => go_on(shared, id, applier, generation)?,
        Answer::Full { history } => receive::take(&mut wire, applier, history)?,
        Answer::Old => {
            wire.write(&command(&[b"SYNC"])).map_err(|error| {
                log!(Level::Warning, "I/O error writing to MASTER: {}", error_text(&error));
                Ended::Lost
            })?;
            receive::take(&mut wire, applier, None)?;
        }
    }
    replication.set_phase(Phase::Connected);
    shared.renew_replicas(&config);
    follow(&mut wire, applier)
}

fn introduction(shared: &Shared, config: &Config) -> Introduction {
    let state = shared.replication.state.lock();
    let user = (!config.masteruser.is_empty()).then(|| config.masteruser.clone());
    Introduction {
        auth: (!config.masterauth.is_empty()).then(|| (user, config.masterauth.clone())),
        port: match config.replica_announce_port {
            0 if config.tls_replication && config.tls_port != 0 => config.tls_port,
            0 => config.port,
            announced => announced,
        },
        address: (!config.replica_announce_ip.is_empty()).then(|| config.replica_announce_ip.clone()),
        has: state.is_resumable.then(|| (state.history.id.clone(), shared.keyspace.journal.end())),
        hands_over: state.failover == super::failover::Failover::InProgress,
    }
}

/// The handshake. `None`: it came to nothing, the log says why.
fn shake_hands(wire: &mut Wire, introduction: Introduction) -> io::Result<Option<Answer>> {
    let (mut handshake, first) = Handshake::begin(introduction);
    wire.write(&first)?;
    loop {
        let line = wire.line()?;
        let next = handshake.line(&line);
        write_log(handshake.take_log());
        match next {
            Next::Wait => {}
            Next::Send(bytes) => wire.write(&bytes)?,
            Next::Done(answer) => return Ok(Some(answer)),
            Next::Fail => return Ok(None),
        }
    }
}

/// The stream goes on where it was left.
fn go_on(shared: &Arc<Shared>, id: Option<String>, applier: &mut Applier, generation: u64) -> Result<(), Ended> {
    let config = shared.config.snapshot();
    let replication = &shared.replication;
    let mut locks = LockSet::new(shared.keyspace.clone());
    let is_renamed = locks.alone(|locks| {
        if replication.generation() != generation {
            return None;
        }
        full_sync::keep_backlog(shared, locks, &config);
        let mut state = replication.state.lock();
        let Some(id) = id.filter(|id| *id != state.history.id) else { return Some(false) };
        log!(Level::Notice, "Master replication ID changed to {id}");
        let next = i64::try_from(shared.keyspace.journal.end()).unwrap_or(i64::MAX).saturating_add(1);
        state.history.promote(id, next);
        Some(true)
    });
    if is_renamed.ok_or(Ended::Stopped)? {
        // Our replicas are to learn the new name.
        shared.cut_replicas();
    }
    applier.begin(replication.link.stream_db.load(Ordering::SeqCst));
    log!(Level::Notice, "MASTER <-> REPLICA sync: Master accepted a Partial Resynchronization.");
    Ok(())
}

/// Runs the primary's commands until the link ends.
fn follow(wire: &mut Wire, applier: &mut Applier) -> Result<(), Ended> {
    let shared = wire.shared.clone();
    let link = &shared.replication.link;
    let mut acked: Option<Instant> = None;
    let mut acked_log = 0;
    loop {
        if !wire.unused().is_empty() {
            let used = applier.apply(wire.unused())?;
            wire.consume(used);
            shared.log_followed();
            link.read_offset.store(shared.keyspace.journal.end() + wire.unused().len() as u64, Ordering::Relaxed);
            if wire.unused().len() > shared.config.snapshot().client_query_buffer_limit {
                return Err(Ended::Corrupt(
                    "The master's command is larger than 'client-query-buffer-limit'".to_owned(),
                ));
            }
        }
        if !wire.is_current() {
            return Err(Ended::Stopped);
        }
        let has_log = shared.aof.state() == crate::aof::State::On;
        let durable = shared.aof.durable();
        // WAITAOF at the primary may wait for nothing but this.
        let is_newly_durable = has_log
            && durable > acked_log
            && durable == shared.keyspace.journal.end()
            && acked.is_some_and(|at| at.elapsed() >= LOOK_EVERY);
        let is_due = is_newly_durable || acked.is_none_or(|at| at.elapsed() >= ACK_EVERY);
        if std::mem::take(&mut applier.is_asked) || is_due {
            acked = Some(Instant::now());
            acked_log = durable;
            let offset = shared.keyspace.journal.end().to_string();
            let in_log = durable.to_string();
            let mut words: Vec<&[u8]> = vec![b"REPLCONF", b"ACK", offset.as_bytes()];
            if has_log {
                words.extend([b"FACK".as_slice(), in_log.as_bytes()]);
            }
            wire.write(&command(&words)).map_err(|_| Ended::Lost)?;
        }
        match wire.read_some() {
            Ok(0) if wire.is_silent() => {
                log!(Level::Warning, "MASTER timeout: no data nor PING received...");
                return Err(Ended::Lost);
            }
            Ok(_) => {}
            Err(_) if !wire.is_current() => return Err(Ended::Stopped),
            Err(_) => return Err(Ended::Lost),
        }
    }
}
