//! MIGRATE: moves keys to another server, as RESTORE there and DEL here.
//!
//! The slots of the keys are held from the first look at them until the last answer, so that nobody sees a key in two
//! places or changes one that is on its way: what Redis gets by standing still. Here it is the slots alone that stand
//! still; the waiting is done by threads of its own ([`Shared::movers`]), no worker and no thread for long commands.
//! In a transaction with commands that only a worker runs, and in a script, it runs where these run.
//!
//! Redis: the connection to a target is kept for ten seconds after its last use and tried again once when it fails
//! without a timeout; the replies are read as lines, so what a target says beyond `+` and `-` is not looked into.

use crate::exec::{Step, single};
use crate::offload::{Job, Work};
use crate::session::{Session, State};
use crate::shared::Shared;
use crate::slowlog::kept_arguments;
use crate::worker::Worker;
use commands::error::SYNTAX;
use commands::options::{int, is_word};
use commands::table::{CommandId, CommandSpec};
use commands::{CmdError, CmdResult, Ctx};
use keyspace::NotifyClass;
use net::ConnId;
use parking_lot::Mutex;
use resp::Args;
use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::ops::Range;
use std::time::{Duration, Instant};

/// Idle connections to targets that are kept.
const KEPT_MAX: usize = 64;
/// How long one is kept.
const KEPT_TIME: Duration = Duration::from_secs(10);
/// Wait for each step when the command names none.
const TIMEOUT_MS: i64 = 1000;
/// Longest answer of a target that is looked at.
const LINE_MAX: u64 = 1024;

const KEYS_WITH_KEY: CmdError =
    CmdError::new("ERR When using MIGRATE KEYS option, the key argument must be set to the empty string");
const CONNECTING: CmdError = CmdError::new("IOERR error or timeout connecting to the client");
const WRITING: CmdError = CmdError::new("IOERR error or timeout writing to target instance");
const READING: CmdError = CmdError::new("IOERR error or timeout reading to target instance");

/// Host and port as they were given.
type Name = (Vec<u8>, Vec<u8>);

/// The connections to targets that may be used again.
#[derive(Default)]
pub(crate) struct Targets {
    idle: Mutex<HashMap<Name, Target>>,
}

struct Target {
    stream: BufReader<TcpStream>,
    /// Database that is selected there.
    db: Option<i64>,
    used: Instant,
}

impl Targets {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.idle.lock().len()
    }

    /// Closes those that nobody has used for a while.
    pub(crate) fn prune(&self) {
        if let Some(mut idle) = self.idle.try_lock() {
            idle.retain(|_, target| target.used.elapsed() < KEPT_TIME);
        }
    }

    fn take(&self, request: &Request<'_>) -> Option<Target> {
        let target = self.idle.lock().remove(&request.name())?;
        let fresh = target.used.elapsed() < KEPT_TIME;
        let ready = request.limit(target.stream.get_ref()).is_ok();
        (fresh && ready).then_some(target)
    }

    fn keep(&self, request: &Request<'_>, mut target: Target) {
        target.used = Instant::now();
        let mut idle = self.idle.lock();
        if idle.len() < KEPT_MAX {
            idle.insert(request.name(), target);
        }
    }
}

/// What the arguments ask for.
struct Request<'a> {
    host: &'a [u8],
    port: &'a [u8],
    keys: Range<usize>,
    db: i64,
    timeout: Duration,
    copy: bool,
    replace: bool,
    user: Option<&'a [u8]>,
    password: Option<&'a [u8]>,
}

impl<'a> Request<'a> {
    fn read(args: Args<'a>) -> Result<Request<'a>, CmdError> {
        let (mut copy, mut replace, mut user, mut password, mut keys) = (false, false, None, None, 3..4);
        let mut at = 6;
        while let Some(word) = args.get(at) {
            if is_word(word, "copy") {
                copy = true;
            } else if is_word(word, "replace") {
                replace = true;
            } else if is_word(word, "auth") {
                at += 1;
                password = Some(args.get(at).ok_or(SYNTAX)?);
            } else if is_word(word, "auth2") {
                at += 2;
                user = args.get(at - 1);
                password = Some(args.get(at).ok_or(SYNTAX)?);
            } else if is_word(word, "keys") {
                if !args.at(3).is_empty() {
                    return Err(KEYS_WITH_KEY);
                }
                keys = at + 1..args.len();
                break;
            } else {
                return Err(SYNTAX);
            }
            at += 1;
        }
        let timeout_ms = int(args.at(5))?;
        let db = int(args.at(4))?;
        let timeout_ms = if timeout_ms <= 0 { TIMEOUT_MS } else { timeout_ms };
        let timeout = Duration::from_millis(u64::try_from(timeout_ms).unwrap_or(u64::MAX));
        Ok(Request { host: args.at(1), port: args.at(2), keys, db, timeout, copy, replace, user, password })
    }

    fn name(&self) -> Name {
        (self.host.to_vec(), self.port.to_vec())
    }

    fn limit(&self, stream: &TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(self.timeout))?;
        stream.set_write_timeout(Some(self.timeout))
    }

    fn connect(&self) -> io::Result<Target> {
        let text = |bytes: &'a [u8]| std::str::from_utf8(bytes).map_err(io::Error::other);
        let port: u16 = text(self.port)?.parse().map_err(io::Error::other)?;
        let mut last = io::Error::other("the host name has no address");
        for address in (text(self.host)?, port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, self.timeout) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    self.limit(&stream)?;
                    return Ok(Target { stream: BufReader::new(stream), db: None, used: Instant::now() });
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

/// What came of one try.
#[derive(Default)]
struct Outcome {
    /// Places of the keys whose arrival was confirmed.
    arrived: Vec<usize>,
    /// Keys that were answered for.
    answers: usize,
    /// AUTH or SELECT was refused, so that what followed went somewhere else.
    is_lost: bool,
    /// The first refusal.
    refusal: Option<String>,
    /// How the connection failed.
    failure: Option<Failure>,
}

enum Failure {
    Writing(io::Error),
    Reading(io::Error),
}

impl Outcome {
    /// Redis: once more where nothing can have happened and there was no timeout.
    fn may_try_again(&self) -> bool {
        let is_timeout =
            |error: &io::Error| matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
        self.answers == 0
            && matches!(&self.failure, Some(Failure::Writing(error) | Failure::Reading(error)) if !is_timeout(error))
    }
}

/// MIGRATE of a client: answered at once where the arguments are wrong or no key is there, else left to a thread.
pub(crate) fn command(
    worker: &mut Worker,
    id: ConnId,
    session: &mut Session,
    spec: &'static CommandSpec,
    args: Args<'_>,
) -> Result<Step, CmdError> {
    let request = Request::read(args)?;
    if worker.locks.held() > 0 || worker.locks.is_alone() || worker.is_replaying {
        let shared = worker.shared.clone();
        return worker.with_ctx(session, false, |ctx| run(&shared, ctx, args)).map(|()| Step::Done);
    }
    let slots = single::slots_of(worker, spec, args)?;
    if let Err(busy) = worker.locks.try_lock_all(&slots) {
        return Ok(Step::Busy(busy));
    }
    let any = worker.with_ctx(session, false, |ctx| request.keys.clone().any(|key| ctx.db.get(args.at(key)).is_some()));
    worker.locks.unlock_all();
    if !any {
        worker.reply.simple("NOKEY");
        return Ok(Step::Done);
    }
    let job = Job {
        worker: worker.index,
        conn: id,
        id: CommandId::Migrate,
        proto: session.proto,
        shown: kept_arguments(args),
        work: Work::Command { args: args.to_owned_args(), footing: worker.footing(id, session, &slots, true) },
    };
    session.state.insert(State::OFFLOADED);
    worker.shared.movers.submit(&worker.shared, job);
    Ok(Step::Parked)
}

/// Moves the keys; their slots are held.
///
/// # Errors
/// Redis' texts. Keys whose arrival the target confirmed before are gone all the same.
pub(crate) fn run(shared: &Shared, ctx: &mut Ctx<'_>, args: Args<'_>) -> CmdResult {
    let request = Request::read(args)?;
    let now_ms = ctx.db.now_ms();
    let mut restores = Vec::new();
    let mut keys: Vec<&[u8]> = Vec::new();
    for key in request.keys.clone().map(|index| args.at(index)) {
        let Some(value) = ctx.db.read(key) else { continue };
        let payload = commands::keys::payload(value);
        let expiry = ctx.db.expiry(key).flatten();
        let ttl = expiry.map_or(0, |at_ms| at_ms.saturating_sub(now_ms).max(1)).to_string();
        let mut words: Vec<&[u8]> = vec![b"RESTORE".as_slice(), key, ttl.as_bytes(), &payload];
        if request.replace {
            words.push(b"REPLACE");
        }
        push(&mut restores, &words);
        keys.push(key);
    }
    if keys.is_empty() {
        ctx.out.simple("NOKEY");
        return Ok(());
    }
    let mut outcome = Outcome::default();
    for _ in 0..2 {
        let kept = shared.targets.take(&request);
        let mut target = match kept.map_or_else(|| request.connect(), Ok) {
            Ok(target) => target,
            Err(error) => return Err(connection_error(&error)),
        };
        outcome = send(&mut target, &request, &restores, keys.len());
        if outcome.failure.is_none() {
            target.db = outcome.refusal.is_none().then_some(request.db);
            shared.targets.keep(&request, target);
        }
        if !outcome.may_try_again() {
            break;
        }
    }
    if !request.copy && !outcome.arrived.is_empty() {
        let moved: Vec<&[u8]> = outcome.arrived.iter().filter_map(|at| keys.get(*at).copied()).collect();
        forget(ctx, &moved);
    }
    if let Some(text) = outcome.refusal {
        return Err(CmdError::text(format!("ERR Target instance replied with error: {text}")));
    }
    match outcome.failure {
        Some(Failure::Writing(_)) => Err(WRITING),
        Some(Failure::Reading(_)) => Err(READING),
        None => {
            ctx.out.ok();
            Ok(())
        }
    }
}

/// Redis: it waits for the socket to take something, which one that was refused does, and fails when it writes.
fn connection_error(error: &io::Error) -> CmdError {
    use io::ErrorKind as Kind;
    match error.kind() {
        Kind::ConnectionRefused | Kind::ConnectionReset | Kind::HostUnreachable => WRITING,
        _ => CONNECTING,
    }
}

/// Removes keys that are elsewhere now; recorded as one DEL.
fn forget(ctx: &mut Ctx<'_>, keys: &[&[u8]]) {
    let mut words: Vec<&[u8]> = vec![b"DEL".as_slice()];
    for key in keys {
        if ctx.db.remove(key) {
            ctx.db.changed(NotifyClass::GENERIC, "del", key);
            words.push(key);
        }
    }
    if words.len() > 1 {
        ctx.db.effect(&words);
    }
}

/// Sends the commands and reads what the target says of each key.
fn send(target: &mut Target, request: &Request<'_>, restores: &[u8], keys: usize) -> Outcome {
    let mut outcome = Outcome::default();
    let mut head = Vec::new();
    let mut answers_before = 0;
    if let Some(password) = request.password {
        let mut words: Vec<&[u8]> = vec![b"AUTH".as_slice()];
        words.extend(request.user);
        words.push(password);
        push(&mut head, &words);
        answers_before += 1;
    }
    if target.db != Some(request.db) {
        push(&mut head, &[b"SELECT", request.db.to_string().as_bytes()]);
        answers_before += 1;
    }
    let socket = target.stream.get_mut();
    if let Err(error) = socket.write_all(&head).and_then(|()| socket.write_all(restores)) {
        outcome.failure = Some(Failure::Writing(error));
        return outcome;
    }
    for answer in 0..answers_before + keys {
        match line(&mut target.stream) {
            Ok(text) => match text.strip_prefix('-') {
                Some(refusal) => drop(outcome.refusal.get_or_insert_with(|| refusal.to_owned())),
                None if answer >= answers_before && !outcome.is_lost => {
                    outcome.arrived.push(answer - answers_before);
                }
                None => {}
            },
            Err(error) => {
                outcome.failure = Some(Failure::Reading(error));
                break;
            }
        }
        if answer + 1 == answers_before {
            outcome.is_lost = outcome.refusal.is_some();
        }
        outcome.answers = (answer + 1).saturating_sub(answers_before);
    }
    outcome
}

fn line(stream: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut bytes = Vec::new();
    stream.take(LINE_MAX).read_until(b'\n', &mut bytes)?;
    if bytes.pop() != Some(b'\n') {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(String::from_utf8_lossy(&bytes).trim_end_matches('\r').to_owned())
}

/// Appends a command as a RESP array.
fn push(bytes: &mut Vec<u8>, words: &[&[u8]]) {
    bytes.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
}
