//! Runs an episode on both servers and compares as it goes.
//!
//! Both servers see the same bytes in the same batches. What cannot be compared by looking at
//! two replies (random choices, iterations, serialized values) is settled by further commands,
//! sent only to the connection that is free to take them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::{Duration, Instant};

use super::differences;
use super::generator::{Episode, Step};
use super::keyspace;
use super::rules::{Rule, authenticates, compare, rule_of, subscribes, within};
use super::scripts;
use super::vocabulary::DUMP_MARK;
use crate::{Client, Launch, Reply, Server, text};

/// Connections on which an episode's commands are sent; one more is for the driver itself.
const CONNECTIONS: usize = 2;
const CONTROL: usize = CONNECTIONS;
/// How long a reply may take: more than any timeout in the shapes.
const REPLY_LIMIT: Duration = Duration::from_secs(5);
/// Batches end here at the latest, so that neither side's socket buffers fill up.
const BATCH_MAX: usize = 32;

/// Where and how two servers differed.
#[derive(Debug, Clone)]
pub struct Failure {
    /// Index of the step in the episode; the number of steps when only the final state differs.
    pub step: usize,
    /// The command.
    pub args: Vec<Vec<u8>>,
    /// What the server under test answered.
    pub subject: String,
    /// What the peer answered.
    pub peer: String,
    /// What is wrong.
    pub problem: String,
}

/// What came of an episode.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Commands sent to each server, follow-ups not counted.
    pub commands: u64,
    /// How often each listed difference was met.
    pub differences: BTreeMap<&'static str, u64>,
    /// The first place where the servers differed.
    pub failure: Option<Failure>,
}

/// Two running servers.
#[derive(Debug)]
pub struct Pair {
    launches: [Launch; 2],
    servers: [Server; 2],
    /// Whether both follow the same version, so that the table of differences does not apply.
    pub same_version: bool,
    /// Versions, as the servers say them.
    pub versions: [String; 2],
    /// Ports of the servers behind the subject, if it is a proxy.
    pub behind: Vec<u16>,
}

pub(super) const SUBJECT: usize = 0;
pub(super) const PEER: usize = 1;

impl Pair {
    /// Starts the server under test and its peer.
    ///
    /// # Errors
    /// When one does not start.
    pub fn start(subject: Launch, peer: Launch) -> io::Result<Pair> {
        let launches = [subject, peer];
        let servers = [launches[SUBJECT].try_start()?, launches[PEER].try_start()?];
        let mut versions = [String::new(), String::new()];
        for (server, version) in servers.iter().zip(&mut versions) {
            *version = Client::connect(server.port())?.info("redis_version").unwrap_or_default();
        }
        let minor = |version: &str| version.rsplit_once('.').map(|(start, _)| start.to_owned());
        let same_version = minor(&versions[SUBJECT]) == minor(&versions[PEER]);
        Ok(Pair { launches, servers, same_version, versions, behind: Vec::new() })
    }

    /// Replaces servers that ended. Returns the ends of their logs.
    ///
    /// # Errors
    /// When one does not start again.
    pub fn revive(&mut self) -> io::Result<Vec<String>> {
        let mut logs = Vec::new();
        for (server, launch) in self.servers.iter_mut().zip(&self.launches) {
            if let Some(status) = server.exit_status() {
                logs.push(format!("ended with {status}\n{}", server.log()));
                *server = launch.try_start()?;
            }
        }
        Ok(logs)
    }

    /// Runs an episode from an empty keyspace.
    pub fn run(&mut self, episode: &Episode) -> Outcome {
        let mut outcome = Outcome::default();
        let started = Run::start(self, episode);
        let mut run = match started {
            Ok(run) => run,
            Err(problem) => {
                outcome.failure = Some(trouble(0, &[], &problem));
                return outcome;
            }
        };
        outcome.failure = run.steps(&episode.steps).err().map(|failure| *failure);
        outcome.commands = run.commands;
        outcome.differences = run.differences;
        outcome
    }
}

pub(super) fn trouble(step: usize, args: &[Vec<u8>], problem: &str) -> Failure {
    Failure { step, args: args.to_vec(), subject: String::new(), peer: String::new(), problem: problem.to_owned() }
}

/// What the driver knows of a connection.
#[derive(Debug, Default)]
struct Session {
    in_multi: bool,
    queued: Vec<Vec<Vec<u8>>>,
    channels: BTreeMap<&'static str, BTreeSet<Vec<u8>>>,
    messages: [Vec<Reply>; 2],
    has_listened: bool,
}

pub(super) struct Run<'a> {
    pub(super) pair: &'a Pair,
    pub(super) clients: [Vec<Client>; 2],
    sessions: Vec<Session>,
    commands: u64,
    differences: BTreeMap<&'static str, u64>,
}

pub(super) type Checked<T = ()> = Result<T, Box<Failure>>;

impl<'a> Run<'a> {
    fn start(pair: &'a Pair, episode: &Episode) -> Result<Run<'a>, String> {
        let mut clients = [Vec::new(), Vec::new()];
        for (side, server) in pair.servers.iter().enumerate() {
            for connection in 0..=CONNECTIONS {
                let name = ["subject", "peer"][side];
                let connect = || {
                    let mut client = Client::connect(server.port())?;
                    client.set_timeout(REPLY_LIMIT)?;
                    if connection == CONTROL {
                        client.call(&["FLUSHALL"])?;
                        client.call(&["SCRIPT", "FLUSH"])?;
                        // Damaged commands make users of other names, too.
                        let users = client.call(&["ACL", "USERS"])?;
                        for user in users.items().unwrap_or(&[]).iter().filter_map(Reply::bytes) {
                            client.call(&[b"ACL".as_slice(), b"DELUSER", user])?;
                        }
                        client.call(&["FUNCTION", "LOAD", "REPLACE", scripts::LIBRARY])?;
                        for (setting, value) in &episode.settings {
                            // A server that does not know one answers with an error.
                            client.call(&["CONFIG", "SET", setting, value])?;
                            for port in pair.behind.iter().filter(|_| side == SUBJECT) {
                                Client::connect(*port)?.call(&["CONFIG", "SET", setting, value])?;
                            }
                        }
                    } else if episode.protocol == 3 {
                        client.call(&["HELLO", "3"])?;
                    }
                    Ok::<Client, io::Error>(client)
                };
                clients[side].push(connect().map_err(|e| format!("{name}: cannot begin: {e}"))?);
            }
        }
        let sessions = (0..CONNECTIONS).map(|_| Session::default()).collect();
        Ok(Run { pair, clients, sessions, commands: 0, differences: BTreeMap::new() })
    }

    fn steps(&mut self, steps: &[Step]) -> Checked {
        let mut batch: Vec<(usize, Vec<Vec<u8>>)> = Vec::new();
        let mut parked: Option<(usize, usize, Vec<Vec<u8>>)> = None;
        for (index, step) in steps.iter().enumerate() {
            let in_multi = self.sessions[step.connection].in_multi;
            // Replies would come in unknowable numbers, or members be lost that nobody notes.
            let unclear = subscribes(&step.args) || authenticates(&step.args);
            if in_multi && (unclear || matches!(rule_of(&step.args), Rule::Pop | Rule::Claim)) {
                continue;
            }
            let args = self.resolve(index, &step.args)?;
            if step.parks && parked.is_none() && !in_multi {
                self.park(index, step.connection, &args)?;
                parked = Some((index, step.connection, args));
                continue;
            }
            if let Some((at, connection, args)) = parked.take_if(|(_, connection, _)| *connection == step.connection) {
                self.settle(at, connection, &args)?;
            }
            let opens = step.args[0].eq_ignore_ascii_case(b"MULTI") || step.args[0].eq_ignore_ascii_case(b"EXEC");
            let rule = rule_of(&args);
            batch.push((index, args));
            let needs_answer = opens
                || matches!(rule, Rule::Pop | Rule::Claim | Rule::Scan | Rule::Dump | Rule::Random(_))
                || subscribes(&step.args)
                || closes(&step.args);
            let changes = steps.get(index + 1).is_none_or(|next| {
                next.connection != step.connection
                    || next.parks
                    || next.args.iter().any(|arg| arg.starts_with(DUMP_MARK))
                    || subscribes(&next.args)
                    || authenticates(&next.args)
            });
            if step.ends_batch || needs_answer || changes || batch.len() >= BATCH_MAX {
                self.batch(step.connection, &batch)?;
                batch.clear();
                if let Some((at, connection, args)) = parked.take() {
                    self.settle(at, connection, &args)?;
                }
            }
        }
        if let Some((at, connection, args)) = parked {
            self.settle(at, connection, &args)?;
        }
        self.final_state(steps.len())
    }

    /// Replaces a mark by the peer's DUMP of that key in database 0: both servers get the same.
    fn resolve(&mut self, index: usize, args: &[Vec<u8>]) -> Checked<Vec<Vec<u8>>> {
        let mut resolved = args.to_vec();
        for arg in &mut resolved {
            if let Some(key) = arg.strip_prefix(DUMP_MARK) {
                let reply = self.ask(PEER, CONTROL, index, &[b"DUMP".to_vec(), key.to_vec()])?;
                *arg = reply.bytes().unwrap_or(b"\x00\x01a\x0a\x00garbage!").to_vec();
            }
        }
        Ok(resolved)
    }

    /// Sends a command whose reply is to come later, and waits until both servers hold it back
    /// (or have answered).
    fn park(&mut self, index: usize, connection: usize, args: &[Vec<u8>]) -> Checked {
        for side in [SUBJECT, PEER] {
            let sent = self.clients[side][connection].send(args);
            sent.map_err(|e| Box::new(io_failure(side, index, args, &e)))?;
            let end = Instant::now() + Duration::from_millis(60);
            while Instant::now() < end {
                let info = self.ask(side, CONTROL, index, &[b"INFO".to_vec(), b"clients".to_vec()])?;
                let blocked = crate::client::info_field(&info.text(), "blocked_clients");
                if blocked.is_some_and(|count| count != "0") {
                    break;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        self.commands += 1;
        Ok(())
    }

    fn settle(&mut self, index: usize, connection: usize, args: &[Vec<u8>]) -> Checked {
        let subject = self.next(SUBJECT, connection, index, args)?;
        let peer = self.next(PEER, connection, index, args)?;
        self.judge(connection, index, args, &subject, &peer)
    }

    fn batch(&mut self, connection: usize, batch: &[(usize, Vec<Vec<u8>>)]) -> Checked {
        let mut bytes = Vec::new();
        for (_, args) in batch {
            text::encode(args, &mut bytes);
        }
        for side in [SUBJECT, PEER] {
            if let Err(error) = self.clients[side][connection].send_raw(&bytes) {
                let (index, args) = &batch[0];
                return Err(Box::new(io_failure(side, *index, args, &error)));
            }
        }
        for (index, args) in batch {
            self.commands += 1;
            for _ in 0..self.reply_count(connection, args) {
                let subject = self.next(SUBJECT, connection, *index, args)?;
                let peer = self.next(PEER, connection, *index, args)?;
                self.judge(connection, *index, args, &subject, &peer)?;
            }
            if closes(args) {
                self.reconnect(connection, *index, args)?;
                break;
            }
        }
        Ok(())
    }

    /// SUBSCRIBE and its kin answer once for each channel.
    fn reply_count(&self, connection: usize, args: &[Vec<u8>]) -> usize {
        let session = &self.sessions[connection];
        if !subscribes(args) || session.in_multi {
            return 1;
        }
        if args.len() > 1 {
            return args.len() - 1;
        }
        if !args[0].to_ascii_uppercase().windows(5).any(|part| part == b"UNSUB") {
            return 1;
        }
        session.channels.get(channel_kind(&args[0])).map_or(1, |names| names.len().max(1))
    }

    /// The next reply on a connection; published messages are put aside.
    fn next(&mut self, side: usize, connection: usize, index: usize, args: &[Vec<u8>]) -> Checked<Reply> {
        loop {
            match self.clients[side][connection].read() {
                Ok(reply) if is_message(&reply) => {
                    self.sessions[connection].messages[side].push(reply);
                }
                Ok(reply) => return Ok(reply),
                Err(error) => return Err(Box::new(io_failure(side, index, args, &error))),
            }
        }
    }

    pub(super) fn ask(&mut self, side: usize, connection: usize, index: usize, args: &[Vec<u8>]) -> Checked<Reply> {
        let sent = self.clients[side][connection].send(args);
        sent.map_err(|error| Box::new(io_failure(side, index, args, &error)))?;
        if connection == CONTROL {
            let reply = self.clients[side][connection].read();
            return reply.map_err(|error| Box::new(io_failure(side, index, args, &error)));
        }
        self.next(side, connection, index, args)
    }

    /// Compares two replies, and follows the state that they reveal.
    fn judge(&mut self, connection: usize, index: usize, args: &[Vec<u8>], subject: &Reply, peer: &Reply) -> Checked {
        let name = args[0].to_ascii_uppercase();
        let ends_multi =
            self.sessions[connection].in_multi && matches!(name.as_slice(), b"EXEC" | b"DISCARD" | b"RESET");
        if ends_multi && !is_queued(peer) {
            self.sessions[connection].in_multi = false;
            let queued = std::mem::take(&mut self.sessions[connection].queued);
            if let (b"EXEC", Reply::Array(ours), Reply::Array(theirs)) = (name.as_slice(), subject, peer)
                && ours.len() == theirs.len()
                && queued.len() == ours.len()
            {
                for (args, (ours, theirs)) in queued.iter().zip(ours.iter().zip(theirs)) {
                    self.follow(connection, args, theirs);
                    if let Err(problem) = compare(within(rule_of(args)), ours, theirs) {
                        self.excuse(index, args, ours, theirs, &format!("{problem}, within EXEC"))?;
                    }
                }
                return Ok(());
            }
        } else if self.sessions[connection].in_multi && is_queued(peer) {
            self.sessions[connection].queued.push(args.to_vec());
        } else if name == b"MULTI" && !peer.is_error() {
            self.sessions[connection].in_multi = true;
        }
        let in_multi = self.sessions[connection].in_multi;
        let rule = if in_multi { Rule::Exact } else { rule_of(args) };
        if !in_multi {
            self.follow(connection, args, peer);
        }
        if let Err(problem) = compare(rule, subject, peer) {
            return self.excuse(index, args, subject, peer, &problem);
        }
        if subject.is_error() || in_multi {
            return Ok(());
        }
        match rule {
            Rule::Random(probe) => self.probe(connection, index, args, probe, subject),
            Rule::Pop => self.repair_pop(connection, index, args, subject, peer),
            Rule::Scan => self.scan(connection, index, args, subject, peer),
            Rule::Claim => self.repair_consumer(connection, index, args),
            Rule::Dump if !self.is_listening(connection) => self.cross_restore(connection, index, args, subject, peer),
            _ => Ok(()),
        }
    }

    fn is_listening(&self, connection: usize) -> bool {
        self.sessions[connection].channels.values().any(|names| !names.is_empty())
    }

    /// Accepts a listed difference; anything else is a failure.
    pub(super) fn excuse(
        &mut self,
        index: usize,
        args: &[Vec<u8>],
        subject: &Reply,
        peer: &Reply,
        problem: &str,
    ) -> Checked {
        if let Some(difference) = differences::explains(args, subject, peer, self.pair.same_version) {
            *self.differences.entry(difference.name).or_default() += 1;
            return Ok(());
        }
        Err(Box::new(Failure {
            step: index,
            args: args.to_vec(),
            subject: subject.to_string(),
            peer: peer.to_string(),
            problem: problem.to_owned(),
        }))
    }

    /// Keeps track of the channels of a connection.
    fn follow(&mut self, connection: usize, args: &[Vec<u8>], peer: &Reply) {
        let name = args[0].to_ascii_uppercase();
        let session = &mut self.sessions[connection];
        if name == b"RESET" {
            session.channels.clear();
        }
        if subscribes(args)
            && let Some([kind, channel, ..]) = peer.items()
            && let Some(channel) = channel.bytes()
        {
            session.has_listened = true;
            let names = session.channels.entry(channel_kind(&args[0])).or_default();
            if kind.text().contains("unsub") {
                names.remove(channel);
            } else {
                names.insert(channel.to_vec());
            }
        }
    }

    fn reconnect(&mut self, connection: usize, index: usize, args: &[Vec<u8>]) -> Checked {
        for side in [SUBJECT, PEER] {
            let (rest, closed) = self.clients[side][connection].read_to_end(Duration::from_secs(2));
            if !closed || !rest.is_empty() {
                return Err(Box::new(trouble(
                    index,
                    args,
                    &format!("{} stays open after QUIT", ["subject", "peer"][side]),
                )));
            }
            let client = Client::connect(self.pair.servers[side].port());
            let client = client.map_err(|error| Box::new(io_failure(side, index, args, &error)))?;
            let _ = client.set_timeout(REPLY_LIMIT);
            self.clients[side][connection] = client;
        }
        self.sessions[connection] = Session::default();
        Ok(())
    }

    /// Compares the messages that were published to each connection, and all databases.
    fn final_state(&mut self, index: usize) -> Checked {
        for connection in 0..CONNECTIONS {
            if !self.sessions[connection].has_listened {
                continue;
            }
            for side in [PEER, SUBJECT] {
                let expected = self.sessions[connection].messages[PEER].len();
                // The peer has written them all before it answered the last command. Between
                // workers messages go their own way, so some may still be coming.
                let patience = if side == PEER { 2 } else { 300 };
                let _ = self.clients[side][connection].set_timeout(Duration::from_millis(patience));
                while side == PEER || self.sessions[connection].messages[side].len() < expected {
                    let Ok(reply) = self.clients[side][connection].read() else {
                        break;
                    };
                    if is_message(&reply) {
                        self.sessions[connection].messages[side].push(reply);
                    }
                }
            }
            // A message that matches several patterns comes in an open order; within one
            // pattern or channel the order of publishing holds.
            let [ours, theirs] = &mut self.sessions[connection].messages;
            for messages in [&mut *ours, &mut *theirs] {
                messages.sort_by_key(|message| message.items().and_then(|items| items.get(..2)).map(<[Reply]>::to_vec));
            }
            if ours != theirs {
                let mut failure = trouble(index, &[b"(published messages)".to_vec()], "the messages differ");
                failure.subject = Reply::Array(ours.clone()).to_string();
                failure.peer = Reply::Array(theirs.clone()).to_string();
                return Err(Box::new(failure));
            }
        }
        let [subject, peer] = &mut self.clients;
        let found = keyspace::compare_all(&mut subject[CONTROL], &mut peer[CONTROL]);
        let differing = found.map_err(|e| Box::new(trouble(index, &[], &format!("reading the keyspace: {e}"))))?;
        for entry in differing {
            self.excuse(index, &entry.args, &entry.subject, &entry.peer, "the final state differs")?;
        }
        Ok(())
    }
}

fn closes(args: &[Vec<u8>]) -> bool {
    args[0].eq_ignore_ascii_case(b"QUIT")
}

fn is_queued(reply: &Reply) -> bool {
    matches!(reply, Reply::Simple(text) if text == b"QUEUED")
}

fn is_message(reply: &Reply) -> bool {
    let (Reply::Array(items) | Reply::Push(items)) = reply else {
        return false;
    };
    let kind = items.first().and_then(Reply::bytes).unwrap_or_default();
    matches!((kind, items.len()), (b"message" | b"smessage", 3) | (b"pmessage", 4))
}

fn channel_kind(command: &[u8]) -> &'static str {
    match command.first().map(u8::to_ascii_uppercase) {
        Some(b'P') => "pattern",
        Some(b'S') if command.len() > 9 && command[1].eq_ignore_ascii_case(&b's') => "shard",
        Some(b'S') if command[1].eq_ignore_ascii_case(&b'u') && command.len() == 12 => "shard",
        _ => "channel",
    }
}

pub(super) fn io_failure(side: usize, index: usize, args: &[Vec<u8>], error: &io::Error) -> Failure {
    let name = ["the server under test", "the peer"][side];
    let what = match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => String::from("does not answer"),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => String::from("closed the connection"),
        _ => error.to_string(),
    };
    trouble(index, args, &format!("{name} {what}"))
}
