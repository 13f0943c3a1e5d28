//! The primary's side: REPLCONF, SYNC and PSYNC, and feeding replicas from the journal.
//!
//! A replica is an ordinary connection of a worker. What it is to get lies in its [`Feed`]: first pieces of a snapshot,
//! which a thread of [`super::full_sync`] puts in, then the journal from a place on. Once a turn its worker moves as much
//! as the connection takes; so what a slow replica has not got yet stays in the journal, once for all of them, and the
//! limits of `client-output-buffer-limit replica` bound how far one may lag.

use super::{Phase, kept, write_log};
use crate::config::{ClientClass, Config};
use crate::exec::Step;
use crate::log;
use crate::process::log::Level;
use crate::process::steady_ms;
use crate::session::{Session, State};
use crate::shared::Shared;
use crate::worker::{Message, Worker};
use ::replication::history::{Decision, Reason};
use commands::{CmdError, CommandId, options};
use keyspace::journal::Reader;
use net::{ConnId, Conns};
use parking_lot::{Condvar, Mutex};
use resp::Args;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

/// Unsent output of a connection up to which more is given to it.
const ROOM_BYTES: usize = 256 << 10;
/// Bytes of the journal taken at once.
const READ_BYTES: usize = 256 << 10;
/// Bytes of a snapshot that may wait for one replica's connection.
const QUEUE_BYTES: usize = 4 << 20;
/// Longest address that a replica may announce.
const ADDRESS_MAX: usize = 255;

/// How far a replica is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Stage {
    /// It waits for a snapshot to begin.
    WaitStart,
    /// A snapshot for it is being written to a file.
    WaitEnd,
    /// It gets a snapshot.
    Sending,
    /// It wanted a snapshot only, and has it.
    Sent,
    /// It gets the stream.
    Online,
}

impl Stage {
    /// As INFO tells it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Stage::WaitStart | Stage::WaitEnd => "wait_bgsave",
            Stage::Sending => "send_bulk",
            Stage::Sent => "rdb_transmitted",
            Stage::Online => "online",
        }
    }
}

/// What a client says of itself by REPLCONF.
#[derive(Clone, Debug, Default)]
pub struct Claimed {
    port: u16,
    address: Option<String>,
    knows_marks: bool,
    knows_psync2: bool,
    pub(crate) wants_file_only: bool,
    /// Functions only, and of these none unless asked for.
    pub(crate) filter: Option<Filter>,
}

/// What a snapshot is to leave out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Filter {
    pub(crate) functions: bool,
}

/// What a replica is to get.
#[derive(Default)]
pub(crate) struct Feed {
    queue: VecDeque<Arc<[u8]>>,
    queued: usize,
    pub(crate) reader: Option<Reader>,
    /// The snapshot is in the queue, or has gone, to its end.
    pub(crate) is_whole: bool,
    /// The stream begins with the replica's first acknowledgement: a mark ends its snapshot.
    pub(crate) starts_on_ack: bool,
    /// It is to be closed, or is.
    is_over: bool,
    /// Since when it lags more than the soft limit, Unix seconds.
    soft_since_s: i64,
}

/// A client that follows us.
pub(crate) struct Replica {
    pub(crate) worker: u16,
    pub(crate) conn: ConnId,
    pub(crate) client: u64,
    pub(crate) claimed: Claimed,
    /// The address it is shown with.
    pub(crate) host: String,
    /// It knows PSYNC.
    pub(crate) is_modern: bool,
    stage: AtomicU8,
    pub(crate) acked: AtomicU64,
    pub(crate) acked_log: AtomicU64,
    /// When, on the steady clock.
    pub(crate) acked_at_ms: AtomicI64,
    /// Unix ms at which it asked.
    pub(crate) since_ms: i64,
    pub(crate) feed: Mutex<Feed>,
    room: Condvar,
    is_over: AtomicBool,
}

impl Replica {
    pub(crate) fn stage(&self) -> Stage {
        match self.stage.load(Ordering::SeqCst) {
            0 => Stage::WaitStart,
            1 => Stage::WaitEnd,
            2 => Stage::Sending,
            3 => Stage::Sent,
            _ => Stage::Online,
        }
    }

    pub(crate) fn set_stage(&self, stage: Stage) {
        self.stage.store(stage as u8, Ordering::SeqCst);
    }

    /// As the log names it.
    pub(crate) fn name(&self) -> String {
        match self.claimed.port {
            0 => format!("client id #{}", self.client),
            port => format!("{}:{port}", self.host),
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.claimed.port
    }

    /// Whether a snapshot to it may end with a mark.
    pub(crate) fn knows_marks(&self) -> bool {
        self.claimed.knows_marks
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    /// Seconds since it was last heard.
    pub(crate) fn lag_s(&self) -> i64 {
        (steady_ms() - self.acked_at_ms.load(Ordering::Relaxed)).max(0) / 1000
    }

    /// Has its connection closed.
    pub(crate) fn cut(&self, shared: &Shared) {
        if self.end() {
            let conn = self.conn;
            shared.post(self.worker, Message::Call(Box::new(move |_, conns| conns.close(conn, false))));
        }
    }

    /// Nothing more is to be given to it. True: that is new.
    fn end(&self) -> bool {
        let mut feed = self.feed.lock();
        let is_new = !feed.is_over;
        feed.is_over = true;
        feed.queue.clear();
        feed.queued = 0;
        let reader = feed.reader.take();
        drop(feed);
        self.is_over.store(true, Ordering::SeqCst);
        self.room.notify_all();
        // Outside the lock: the journal's lock is taken by it.
        drop(reader);
        is_new
    }

    /// Adds bytes of a snapshot, waiting for room up to `patience` while nothing moves. False: it is gone or stalled.
    pub(crate) fn push(&self, shared: &Shared, bytes: &Arc<[u8]>, patience: Duration) -> bool {
        let mut feed = self.feed.lock();
        while feed.queued >= QUEUE_BYTES && !feed.is_over {
            let before = feed.queued;
            if self.room.wait_for(&mut feed, patience).timed_out() && feed.queued == before {
                return false;
            }
        }
        if feed.is_over {
            return false;
        }
        let was_empty = feed.queue.is_empty();
        feed.queue.push_back(bytes.clone());
        feed.queued += bytes.len();
        drop(feed);
        if was_empty {
            self.ring(shared);
        }
        true
    }

    /// Has its worker take a turn, in which it is fed.
    pub(crate) fn ring(&self, shared: &Shared) {
        shared.post(self.worker, Message::Call(Box::new(|_, _| {})));
    }
}

/// The limit of lagging behind, in bytes.
pub(crate) fn hard_limit(config: &Config) -> u64 {
    match config.client_output_buffer_limit.of(ClientClass::Replica).hard_bytes {
        0 => u64::MAX,
        // Redis: a limit below the backlog would cut replicas that only use it.
        bytes => bytes.max(u64::try_from(config.repl_backlog_size).unwrap_or(0)),
    }
}

/// What came of giving a replica something.
enum Fed {
    Nothing,
    Bytes(Vec<u8>),
    Piece(Arc<[u8]>),
    Lost,
}

impl Worker {
    /// Gives replicas what their connections take; once a turn.
    pub(crate) fn feed_replicas(&mut self, conns: &mut Conns<Worker>) {
        for (conn, replica) in self.replicas.clone() {
            while conns.pending_output(conn) < ROOM_BYTES {
                match self.next_piece(&replica) {
                    Fed::Nothing => break,
                    Fed::Bytes(bytes) => {
                        self.shared.replication.figures.output_bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                        conns.write_owned(conn, bytes);
                    }
                    Fed::Piece(piece) => {
                        self.shared.replication.figures.output_bytes.fetch_add(piece.len() as u64, Ordering::Relaxed);
                        conns.write(conn, &piece);
                    }
                    Fed::Lost => {
                        self.stats.output_limit_disconnections.add(1);
                        log!(
                            Level::Warning,
                            "Client id={} scheduled to be closed ASAP for overcoming of output buffer limits.",
                            replica.client
                        );
                        replica.cut(&self.shared);
                        break;
                    }
                }
            }
        }
    }

    fn next_piece(&self, replica: &Replica) -> Fed {
        let limit = self.config.client_output_buffer_limit.of(ClientClass::Replica);
        let mut feed = replica.feed.lock();
        if feed.is_over {
            return Fed::Nothing;
        }
        if let Some(piece) = feed.queue.pop_front() {
            feed.queued -= piece.len();
            drop(feed);
            replica.room.notify_all();
            return Fed::Piece(piece);
        }
        if !feed.is_whole || feed.starts_on_ack || replica.claimed.wants_file_only {
            return Fed::Nothing;
        }
        let now_s = steady_ms() / 1000;
        let Feed { reader, soft_since_s, .. } = &mut *feed;
        let Some(reader) = reader else { return Fed::Nothing };
        loop {
            let mut bytes = Vec::new();
            match reader.read(&mut bytes, READ_BYTES) {
                Err(_) => return Fed::Lost,
                Ok(0) => {
                    *soft_since_s = 0;
                    if reader.arm() {
                        return Fed::Nothing;
                    }
                }
                Ok(_) => {
                    let is_soft = limit.soft_bytes > 0 && reader.behind() > limit.soft_bytes;
                    if !is_soft {
                        *soft_since_s = 0;
                    } else if *soft_since_s == 0 {
                        *soft_since_s = now_s;
                    } else if u64::try_from(now_s - *soft_since_s).unwrap_or(0) > limit.soft_seconds {
                        return Fed::Lost;
                    }
                    return Fed::Bytes(bytes);
                }
            }
        }
    }

    /// A replica's connection is gone.
    pub(crate) fn replica_gone(&mut self, conn: ConnId) {
        let Some(at) = self.replicas.iter().position(|(other, _)| *other == conn) else { return };
        let (_, replica) = self.replicas.remove(at);
        replica.end();
        let replication = &self.shared.replication;
        replication.replicas.lock().retain(|other| !Arc::ptr_eq(other, &replica));
        log!(Level::Notice, "Connection with replica {} lost.", replica.name());
        self.shared.renew_replicas(&self.config);
        replication.wake_waiters(&self.shared);
    }

    fn enlist(&mut self, id: ConnId, session: &mut Session, stage: Stage, is_modern: bool) -> Arc<Replica> {
        let claimed = session.extra_mut().replica.as_deref().cloned().unwrap_or_default();
        let host = match (&claimed.address, session.address) {
            (Some(address), _) => address.clone(),
            (None, Some(address)) => address.ip().to_canonical().to_string(),
            (None, None) => "127.0.0.1".to_owned(),
        };
        let replica = Arc::new(Replica {
            worker: self.index,
            conn: id,
            client: session.id.0,
            claimed,
            host,
            is_modern,
            stage: AtomicU8::new(stage as u8),
            acked: AtomicU64::new(0),
            acked_log: AtomicU64::new(0),
            acked_at_ms: AtomicI64::new(steady_ms()),
            since_ms: steady_ms(),
            feed: Mutex::default(),
            room: Condvar::new(),
            is_over: AtomicBool::new(false),
        });
        session.state.insert(State::REPLICA);
        if self.config.repl_disable_tcp_nodelay {
            let call = move |_: &mut Worker, conns: &mut Conns<Worker>| conns.set_nodelay(id, false);
            self.shared.post(self.index, Message::Call(Box::new(call)));
        }
        self.replicas.push((id, replica.clone()));
        self.shared.replication.replicas.lock().push(replica.clone());
        replica
    }
}

/// SYNC and PSYNC.
pub(crate) fn sync(
    worker: &mut Worker,
    id: ConnId,
    session: &mut Session,
    command: CommandId,
    args: Args<'_>,
) -> Result<Step, CmdError> {
    if session.state.has(State::REPLICA) {
        return Ok(Step::Done);
    }
    let is_modern = command == CommandId::Psync;
    if is_modern && args.get(3).is_some_and(|word| options::is_word(word, "failover")) {
        match super::failover::take_over(worker, session, &args[1])? {
            Step::Done => {}
            step => return Ok(step),
        }
    }
    let shared = worker.shared.clone();
    let replication = &shared.replication;
    if replication.state.lock().failover.is_under_way() {
        return Err(CmdError::new("NOMASTERLINK Can't SYNC while failing over"));
    }
    if replication.is_replica() && replication.phase() != Phase::Connected {
        return Err(CmdError::new("NOMASTERLINK Can't SYNC while not connected with my master"));
    }
    if !worker.reply.as_slice().is_empty() {
        return Err(CmdError::new("ERR SYNC and PSYNC are invalid with pending output"));
    }
    let claimed = session.extra_mut().replica.get_or_insert_default().clone();
    if claimed.filter.is_some() && !claimed.knows_marks {
        return Err(CmdError::new("ERR Filtered replica requires EOF capability"));
    }
    let name = match claimed.port {
        0 => format!("client id #{}", session.id.0),
        port => {
            let host =
                session.address.map_or_else(|| "127.0.0.1".to_owned(), |from| from.ip().to_canonical().to_string());
            format!("{}:{port}", claimed.address.unwrap_or(host))
        }
    };
    log!(Level::Notice, "Replica {name} asks for synchronization");
    if is_modern {
        let Some(offset) = resp::num::parse_i64(&args[2]) else {
            log!(Level::Warning, "Replica {name} asks for synchronization but with a wrong offset");
            return Err(commands::error::NOT_AN_INTEGER);
        };
        if go_on(worker, id, session, &name, &args[1], offset) {
            replication.figures.partial_ok.fetch_add(1, Ordering::Relaxed);
            return Ok(Step::Done);
        }
        if &args[1] != b"?" {
            replication.figures.partial_err.fetch_add(1, Ordering::Relaxed);
        }
    }
    replication.figures.full.fetch_add(1, Ordering::Relaxed);
    worker.enlist(id, session, Stage::WaitStart, is_modern);
    shared.begin_full_sync_if_due(&worker.config);
    Ok(Step::Done)
}

/// Lets a replica go on where it was, if that is possible.
fn go_on(worker: &mut Worker, id: ConnId, session: &mut Session, name: &str, history: &[u8], offset: i64) -> bool {
    let shared = worker.shared.clone();
    let (names, kept) = (shared.replication.history(), kept(&shared));
    let from = match names.decide(history, offset, kept) {
        Decision::Continue { from } => from,
        Decision::Full(reason) => {
            let next = kept.map_or(i64::MAX, |kept| kept.next);
            write_log(names.explain(reason, name, history, offset, next));
            return false;
        }
    };
    let position = u64::try_from(from).unwrap_or(0).saturating_sub(1);
    let Some(reader) = shared.keyspace.journal.read_from(&shared.keyspace, position, hard_limit(&worker.config)) else {
        write_log(names.explain(Reason::NotKept, name, history, offset, i64::MAX));
        return false;
    };
    let bytes = reader.behind();
    let replica = worker.enlist(id, session, Stage::Online, true);
    {
        let mut feed = replica.feed.lock();
        set_waker(&shared, &replica, &reader);
        feed.reader = Some(reader);
        feed.is_whole = true;
    }
    let answer = if replica.claimed.knows_psync2 { format!("CONTINUE {}", names.id) } else { "CONTINUE".to_owned() };
    worker.reply.simple(answer.as_str());
    log!(
        Level::Notice,
        "Partial resynchronization request from {name} accepted. Sending {bytes} bytes of backlog starting from offset {offset}."
    );
    shared.renew_replicas(&worker.config);
    true
}

/// Has the replica's worker take a turn when bytes come for it.
pub(crate) fn set_waker(shared: &Arc<Shared>, replica: &Replica, reader: &Reader) {
    let (shared, worker) = (Arc::downgrade(shared), replica.worker);
    reader.set_waker(Arc::new(move || {
        if let Some(shared) = shared.upgrade() {
            shared.post(worker, Message::Call(Box::new(|_, _| {})));
        }
    }));
}

/// REPLCONF.
pub(crate) fn replconf(
    worker: &mut Worker,
    id: ConnId,
    session: &mut Session,
    args: Args<'_>,
) -> Result<Step, CmdError> {
    if args.len().is_multiple_of(2) {
        return Err(commands::error::SYNTAX);
    }
    let mut index = 1;
    while let (Some(option), Some(value)) = (args.get(index), args.get(index + 1)) {
        index += 2;
        if options::is_word(option, "ack") {
            acknowledged(worker, id, args.slice(index - 1));
            return Ok(Step::Done);
        }
        if options::is_word(option, "getack") {
            return Ok(Step::Done);
        }
        let claimed = session.extra_mut().replica.get_or_insert_default();
        if options::is_word(option, "listening-port") {
            claimed.port = u16::try_from(options::int(value)?).unwrap_or(0);
        } else if options::is_word(option, "ip-address") {
            if value.len() >= ADDRESS_MAX {
                return Err(CmdError::text(format!(
                    "ERR REPLCONF ip-address provided by replica instance is too long: {} bytes",
                    value.len()
                )));
            }
            claimed.address = Some(String::from_utf8_lossy(value).into_owned());
        } else if options::is_word(option, "capa") {
            claimed.knows_marks |= options::is_word(value, "eof");
            claimed.knows_psync2 |= options::is_word(value, "psync2");
        } else if options::is_word(option, "rdb-only") {
            claimed.wants_file_only = match options::int(value)? {
                number @ (0 | 1) => number == 1,
                _ => return Err(CmdError::new("ERR value is out of range, must be between 0 and 1")),
            };
        } else if options::is_word(option, "rdb-filter-only") {
            let words = resp::split_args(value).ok_or(CmdError::new("ERR Missing rdb-filter-only values"))?;
            let mut filter = Filter::default();
            for word in &words {
                if !options::is_word(word, "functions") {
                    let word = String::from_utf8_lossy(word);
                    return Err(CmdError::text(format!("ERR Unsupported rdb-filter-only option: {word}")));
                }
                filter.functions = true;
            }
            claimed.filter = Some(filter);
        } else {
            let option = String::from_utf8_lossy(option);
            return Err(CmdError::text(format!("ERR Unrecognized REPLCONF option: {option}")));
        }
    }
    worker.reply.ok();
    Ok(Step::Done)
}

/// REPLCONF ACK offset [FACK offset], from the offset on.
fn acknowledged(worker: &mut Worker, id: ConnId, args: Args<'_>) {
    let Some((_, replica)) = worker.replicas.iter().find(|(conn, _)| *conn == id) else { return };
    let number = |index: usize| args.get(index).and_then(resp::num::parse_i64).and_then(|at| u64::try_from(at).ok());
    let Some(offset) = number(0) else { return };
    // A replica cannot have more than there is.
    let end = worker.shared.keyspace.journal.end();
    replica.acked.fetch_max(offset.min(end), Ordering::SeqCst);
    if args.get(1).is_some_and(|word| options::is_word(word, "fack"))
        && let Some(offset) = number(2)
    {
        replica.acked_log.fetch_max(offset.min(end), Ordering::SeqCst);
    }
    replica.acked_at_ms.store(steady_ms(), Ordering::Relaxed);
    let mut feed = replica.feed.lock();
    if feed.is_whole && std::mem::take(&mut feed.starts_on_ack) {
        log!(Level::Notice, "Synchronization with replica {} succeeded", replica.name());
    }
    drop(feed);
    worker.shared.renew_replicas(&worker.config);
    worker.shared.replication.wake_waiters(&worker.shared);
}
