//! The list of all clients, for CLIENT LIST, INFO, KILL and UNBLOCK.
//!
//! A worker may look at its own connections only, so the one that is asked sends a call to all, parks the connection
//! that asked, and runs its command again when the last worker has answered. Workers write their lines a few hundred at
//! a time, one portion a turn, so that a list of 120,000 clients holds nobody up.

use crate::process::now_ms;
use crate::replication::Phase;
use crate::session::{Session, State};
use crate::worker::{Message, Worker};
use keyspace::waiters::Waiter;
use net::{ConnId, Conns, Peer};
use parking_lot::Mutex;
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Lines written by a worker in one turn: about half a millisecond's work.
const LINES_PER_TURN: usize = 256;
/// Clients from which on a list is not hurried: one worker after the other writes its lines, with pauses. If all wrote at
/// once there would be no core left for those who have requests.
const PACED_FROM: usize = 16_384;
/// The pause between two portions of such a list.
const PAUSE: Duration = Duration::from_millis(1);

/// What is done in a later turn of the same worker.
pub(crate) type Chore = Box<dyn FnOnce(&mut Worker, &mut Conns<Worker>)>;

/// Which clients a command wants to see.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Scope {
    /// The one that asks.
    Own,
    /// Those with these numbers.
    Ids(Vec<u64>),
    /// All.
    All,
}

/// The kinds of client that TYPE tells apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClientKind {
    /// An ordinary client, MONITOR included.
    Normal,
    /// One that follows us.
    Replica,
    /// One that we follow.
    Master,
    /// One with subscriptions.
    Pubsub,
}

impl ClientKind {
    /// The kind of a name in any case.
    pub fn by_name(name: &[u8]) -> Option<ClientKind> {
        let names: [(&[u8], ClientKind); 5] = [
            (b"normal", ClientKind::Normal),
            (b"slave", ClientKind::Replica),
            (b"replica", ClientKind::Replica),
            (b"pubsub", ClientKind::Pubsub),
            (b"master", ClientKind::Master),
        ];
        names.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, kind)| *kind)
    }
}

/// One client as its worker described it.
pub struct ClientLine {
    /// Its number.
    pub id: u64,
    /// Its worker.
    pub worker: u16,
    /// Its connection there.
    pub conn: ConnId,
    /// What it is.
    pub kind: ClientKind,
    /// What it waits for, if it is blocked on keys.
    pub waiter: Option<Arc<Waiter>>,
    portion: usize,
    start: usize,
    end: usize,
}

/// Lines from which on a list is put in order by an offload thread: the rest of the work with it is theirs too.
pub(crate) const INLINE_LINES: usize = 2048;

/// The gathered lines.
#[derive(Default)]
pub struct ClientLines {
    /// One for each client; by client number, unless they are more than [`INLINE_LINES`] and of all clients.
    pub lines: Vec<ClientLine>,
    portions: Vec<Vec<u8>>,
}

impl ClientLines {
    /// The text of a line, without its end.
    pub fn text(&self, line: &ClientLine) -> &[u8] {
        self.portions.get(line.portion).and_then(|portion| portion.get(line.start..line.end)).unwrap_or_default()
    }

    /// Bytes of all lines with their ends.
    pub(crate) fn text_bytes(&self) -> usize {
        self.portions.iter().map(Vec::len).sum::<usize>() + self.lines.len()
    }

    /// The value of a field (`addr`, `laddr`, …) of a line.
    pub fn field(&self, line: &ClientLine, name: &str) -> &[u8] {
        let is_it = |word: &&[u8]| word.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&b'='));
        self.text(line)
            .split(|byte| *byte == b' ')
            .find(is_it)
            .and_then(|word| word.get(name.len() + 1..))
            .unwrap_or_default()
    }

    /// The line of a client, among lines that are in order.
    pub fn of(&self, id: u64) -> Option<&ClientLine> {
        self.lines.binary_search_by_key(&id, |line| line.id).ok().and_then(|at| self.lines.get(at))
    }

    fn add(&mut self, mut lines: Vec<ClientLine>, text: Vec<u8>) {
        for line in &mut lines {
            line.portion = self.portions.len();
        }
        self.lines.append(&mut lines);
        self.portions.push(text);
    }
}

/// A gathering under way.
struct Gathering {
    asker: u16,
    conn: ConnId,
    scope: Scope,
    is_paced: bool,
    workers_left: AtomicUsize,
    gathered: Mutex<ClientLines>,
}

/// What a worker has asked for and got.
#[derive(Default)]
pub(crate) struct Gathered {
    pending: Vec<ConnId>,
    ready: Vec<(ConnId, Arc<ClientLines>)>,
}

impl Worker {
    /// The lines that were gathered for a connection.
    pub(crate) fn client_lines(&self, conn: ConnId) -> Option<Arc<ClientLines>> {
        self.gathered.ready.iter().find(|(other, _)| *other == conn).map(|(_, lines)| lines.clone())
    }

    /// Drops what was gathered for a connection: its command has run, or it is gone.
    pub(crate) fn drop_client_lines(&mut self, conn: ConnId) {
        if !self.gathered.ready.is_empty() {
            self.gathered.ready.retain(|(other, _)| *other != conn);
        }
    }

    /// Asks the workers for their clients; the connection is resumed when all have answered.
    pub(crate) fn gather_clients(&mut self, conn: ConnId, scope: Scope) {
        // Woken by something else meanwhile: the answer is still to come.
        if self.gathered.pending.contains(&conn) {
            return;
        }
        self.gathered.pending.push(conn);
        let own = scope == Scope::Own;
        let workers = if own { 1 } else { self.shared.workers() };
        let clients = self.shared.clients.load(Ordering::Relaxed);
        let is_paced = scope == Scope::All && clients >= PACED_FROM;
        let gathering = Arc::new(Gathering {
            asker: self.index,
            conn,
            scope,
            is_paced,
            workers_left: AtomicUsize::new(workers),
            gathered: Mutex::default(),
        });
        if gathering.scope == Scope::All {
            // Room at once: growing would copy megabytes while the others wait for the lock.
            gathering.gathered.lock().lines.reserve(clients + 64);
        }
        let first = if own { self.index as usize } else { 0 };
        // A paced gathering goes from worker to worker.
        let started = if is_paced { 1 } else { workers };
        for worker in first..first + started {
            self.ask_worker(worker, gathering.clone());
        }
    }

    fn ask_worker(&self, worker: usize, gathering: Arc<Gathering>) {
        #[allow(clippy::cast_possible_truncation)]
        self.shared
            .post(worker as u16, Message::Call(Box::new(move |worker, conns| worker.begin_portions(conns, gathering))));
    }

    fn begin_portions(&mut self, conns: &mut Conns<Worker>, gathering: Arc<Gathering>) {
        let wanted: Vec<ConnId> = match &gathering.scope {
            Scope::Own => vec![gathering.conn],
            Scope::Ids(ids) => {
                conns.iter().filter(|(_, session)| ids.contains(&session.id.0)).map(|(conn, _)| conn).collect()
            }
            Scope::All => conns.iter().map(|(conn, _)| conn).collect(),
        };
        self.write_portion(conns, gathering, wanted);
    }

    fn write_portion(&mut self, conns: &mut Conns<Worker>, gathering: Arc<Gathering>, mut wanted: Vec<ConnId>) {
        let rest = wanted.len().saturating_sub(LINES_PER_TURN);
        let mut text = Vec::new();
        let mut lines = Vec::new();
        for conn in wanted.split_off(rest) {
            let start = text.len();
            if let Some(line) = self.describe(conns, conn, &mut text) {
                lines.push(ClientLine { start, end: text.len(), ..line });
            }
        }
        gathering.gathered.lock().add(lines, text);
        if !wanted.is_empty() {
            let due = Instant::now() + if gathering.is_paced { PAUSE } else { Duration::ZERO };
            self.chores.push_back((due, Box::new(move |worker, conns| worker.write_portion(conns, gathering, wanted))));
            return;
        }
        let is_last = gathering.workers_left.fetch_sub(1, Ordering::AcqRel) == 1;
        if !is_last && gathering.is_paced {
            self.ask_worker(self.index as usize + 1, gathering);
        } else if is_last {
            let mut gathered = std::mem::take(&mut *gathering.gathered.lock());
            if let Some((line, text)) = describe_link(self)
                && match &gathering.scope {
                    Scope::Own => false,
                    Scope::Ids(ids) => ids.contains(&line.id),
                    Scope::All => true,
                }
            {
                gathered.add(vec![line], text);
            }
            if gathering.scope != Scope::All || gathered.lines.len() <= INLINE_LINES {
                gathered.lines.sort_unstable_by_key(|line| line.id);
            }
            let conn = gathering.conn;
            self.shared.post(
                gathering.asker,
                Message::Call(Box::new(move |worker, conns| worker.take_client_lines(conns, conn, gathered))),
            );
        }
    }

    fn take_client_lines(&mut self, conns: &mut Conns<Worker>, conn: ConnId, lines: ClientLines) {
        self.gathered.pending.retain(|other| *other != conn);
        if conns.contains(conn) {
            self.gathered.ready.push((conn, Arc::new(lines)));
            conns.resume(conn);
        }
    }

    /// Closes connections, as many a turn as lines are written in one.
    pub(crate) fn close_clients(&mut self, conns: &mut Conns<Worker>, mut victims: Vec<ConnId>) {
        let rest = victims.len().saturating_sub(LINES_PER_TURN);
        for conn in victims.split_off(rest) {
            conns.close(conn, false);
        }
        if !victims.is_empty() {
            self.chores
                .push_back((Instant::now(), Box::new(move |worker, conns| worker.close_clients(conns, victims))));
        }
    }

    /// Writes the line of one of our clients.
    pub(crate) fn describe(&self, conns: &Conns<Worker>, conn: ConnId, text: &mut Vec<u8>) -> Option<ClientLine> {
        let session = conns.state(conn)?;
        let local = match conns.local_addr(conn) {
            Some(Peer::Tcp(address)) => Some(address),
            _ => None,
        };
        let about = Buffers {
            fd: conns.fd(conn).unwrap_or(-1),
            input: conns.pending_input(conn),
            output: conns.pending_output(conn),
            held: conns.held_bytes(conn),
        };
        write_line(text, session, local, &about, now_ms() / 1000, &self.config.unixsocket);
        let waiter =
            session.extra.as_ref().and_then(|extra| extra.blocked.as_ref()).map(|blocked| blocked.waiter.clone());
        Some(ClientLine {
            id: session.id.0,
            worker: self.index,
            conn,
            kind: kind_of(session),
            waiter,
            portion: 0,
            start: 0,
            end: 0,
        })
    }
}

/// The line of the link to the primary, if it stands: it is no connection of a worker's.
fn describe_link(worker: &Worker) -> Option<(ClientLine, Vec<u8>)> {
    let replication = &worker.shared.replication;
    if replication.phase() != Phase::Connected {
        return None;
    }
    let client = replication.link.client.lock();
    let (session, local, fd) = client.as_ref()?;
    let mut text = Vec::new();
    let about = Buffers { fd: *fd, input: 0, output: 0, held: 0 };
    write_line(&mut text, session, *local, &about, now_ms() / 1000, &worker.config.unixsocket);
    // It has the rights of nobody in the list of users.
    let text = String::from_utf8_lossy(&text).replacen(" flags=N ", " flags=M ", 1).replacen(
        " user=default ",
        " user=(superuser) ",
        1,
    );
    let line = ClientLine {
        id: session.id.0,
        worker: u16::MAX,
        conn: ConnId::from_u64(0),
        kind: ClientKind::Master,
        waiter: None,
        portion: 0,
        start: 0,
        end: text.len(),
    };
    Some((line, text.into_bytes()))
}

fn kind_of(session: &Session) -> ClientKind {
    if session.state.has(State::REPLICA) {
        ClientKind::Replica
    } else if session.state.has(State::SUBSCRIBED) {
        ClientKind::Pubsub
    } else {
        ClientKind::Normal
    }
}

/// What the loop keeps for a connection.
struct Buffers {
    fd: i32,
    input: usize,
    output: usize,
    held: usize,
}

/// The line of a session as far as it is known without the loop.
pub(crate) fn line_of_session(session: &Session, unix_path: &[u8]) -> Vec<u8> {
    let mut line = Vec::new();
    let nothing = Buffers { fd: -1, input: 0, output: 0, held: 0 };
    write_line(&mut line, session, None, &nothing, now_ms() / 1000, unix_path);
    line
}

/// Writes an address as Redis does.
fn write_address(text: &mut Vec<u8>, address: Option<SocketAddr>, unix_path: &[u8]) {
    // Writing to a Vec cannot fail.
    let _ = match address {
        Some(SocketAddr::V4(v4)) => write!(text, "{}:{}", v4.ip(), v4.port()),
        Some(SocketAddr::V6(v6)) => match v6.ip().to_ipv4_mapped() {
            Some(v4) => write!(text, "{v4}:{}", v6.port()),
            None => write!(text, "[{}]:{}", v6.ip(), v6.port()),
        },
        None => text.write_all(unix_path).and_then(|()| text.write_all(b":0")),
    };
}

fn write_line(
    text: &mut Vec<u8>,
    session: &Session,
    local: Option<SocketAddr>,
    buffers: &Buffers,
    now_s: i64,
    unix_path: &[u8],
) {
    let extra = session.extra.as_deref();
    let (channels, patterns, shard_channels) = session.subscriptions();
    let multi = extra.and_then(|extra| extra.multi.as_ref());
    let queued = multi.map_or(-1, |multi| i64::try_from(multi.queued.len()).unwrap_or(i64::MAX));
    let resp = if session.proto == resp::Proto::Resp3 { 3 } else { 2 };
    let multi_bytes = multi.map_or(0, |multi| multi.bytes);
    let own_bytes = session.used_bytes() + buffers.held;
    let command = session.last_command.map_or("NULL", |id| commands::table::spec(id).name);
    let since = |then: u32| (now_s - i64::from(then)).max(0);
    // Writing to a Vec cannot fail.
    let _ = write!(text, "id={} addr=", session.id.0);
    write_address(text, session.address, unix_path);
    text.extend_from_slice(b" laddr=");
    write_address(text, local, unix_path);
    let _ = write!(text, " fd={} name=", buffers.fd);
    text.extend_from_slice(extra.map_or(&[][..], |extra| &extra.name));
    let _ = write!(text, " age={} idle={} flags=", since(session.connected_s), since(session.last_active_s));
    write_flags(text, session);
    let _ = write!(text, " db={} sub={channels} psub={patterns} ssub={shard_channels} multi={queued}", session.db.0);
    let _ = write!(
        text,
        " qbuf={} qbuf-free={} argv-mem=0 multi-mem={multi_bytes} rbs=0 rbp=0 obl=0 oll={} omem={} tot-mem={own_bytes}",
        buffers.input,
        if buffers.output == 0 { buffers.held.saturating_sub(buffers.input) } else { 0 },
        usize::from(buffers.output > 0),
        buffers.output,
    );
    let events = if buffers.output > 0 { "rw" } else { "r" };
    let _ = write!(text, " events={events} cmd={command} user=");
    text.extend_from_slice(session.user_name());
    let redirect = crate::session_commands::tracking::redirect_number(session);
    let _ = write!(text, " redir={redirect} resp={resp} lib-name=");
    text.extend_from_slice(extra.map_or(&[][..], |extra| &extra.lib_name));
    text.extend_from_slice(b" lib-ver=");
    text.extend_from_slice(extra.map_or(&[][..], |extra| &extra.lib_version));
}

/// The letters of a session's state, in Redis' order.
fn write_flags(text: &mut Vec<u8>, session: &Session) {
    let before = text.len();
    let is_dirty = session
        .extra
        .as_ref()
        .and_then(|extra| extra.watch.as_ref())
        .is_some_and(|watch| watch.flag.load(Ordering::Relaxed));
    let tracking = session.tracking();
    let letters = [
        (session.state.has(State::REPLICA), b'S'),
        (session.state.has(State::MONITOR), b'O'),
        (session.state.has(State::SUBSCRIBED), b'P'),
        (session.state.has(State::IN_MULTI), b'x'),
        (session.state.has(State::BLOCKED), b'b'),
        (tracking.is_some(), b't'),
        (tracking.is_some_and(|tracking| tracking.is_redirect_broken), b'R'),
        (tracking.is_some_and(|tracking| tracking.bcast), b'B'),
        (is_dirty, b'd'),
        (session.state.has(State::CLOSE_AFTER), b'c'),
        (session.address.is_none(), b'U'),
        (session.state.has(State::NO_EVICT), b'e'),
        (session.state.has(State::NO_TOUCH), b'T'),
    ];
    text.extend(letters.iter().filter(|(set, _)| *set).map(|(_, letter)| *letter));
    if text.len() == before {
        text.push(b'N');
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    #[test]
    fn fields_are_found_by_name() {
        let mut lines = ClientLines::default();
        let text = b"id=7 addr=127.0.0.1:9 laddr=127.0.0.1:1 fd=8 name=".to_vec();
        let line = ClientLine {
            id: 7,
            worker: 0,
            conn: ConnId::from_u64(1),
            kind: ClientKind::Normal,
            waiter: None,
            portion: 0,
            start: 0,
            end: text.len(),
        };
        lines.add(vec![line], text);
        let line = lines.of(7).expect("the line is there");
        assert_eq!(lines.field(line, "addr"), b"127.0.0.1:9");
        assert_eq!(lines.field(line, "laddr"), b"127.0.0.1:1");
        assert_eq!(lines.field(line, "name"), b"");
        assert!(lines.of(8).is_none());
    }

    #[test]
    fn addresses_are_written_as_redis_writes_them() {
        let write = |address: Option<&str>| {
            let mut text = Vec::new();
            write_address(&mut text, address.map(|address| address.parse().unwrap()), b"/tmp/s");
            String::from_utf8(text).unwrap()
        };
        assert_eq!(write(Some("10.0.0.1:6379")), "10.0.0.1:6379");
        assert_eq!(write(Some("[::1]:6379")), "[::1]:6379");
        assert_eq!(write(None), "/tmp/s:0");
    }

    #[test]
    fn kinds_have_their_names() {
        assert_eq!(ClientKind::by_name(b"PubSub"), Some(ClientKind::Pubsub));
        assert_eq!(ClientKind::by_name(b"slave"), ClientKind::by_name(b"replica"));
        assert_eq!(ClientKind::by_name(b"other"), None);
    }
}
