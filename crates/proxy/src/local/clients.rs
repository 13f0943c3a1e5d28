//! CLIENT: the clients of this proxy.
//!
//! A worker may look at its own clients only. What is about all of them is asked of each worker by message; the one that
//! asked goes on when the last has answered, and the client's reply waits in its place meanwhile.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use commands::CommandId;
use net::{ConnId, Conns, Peer};
use parking_lot::Mutex;
use resp::{Args, Proto, Reply};

use super::{Answer, is_word, shown, syntax_of};
use crate::client::{Client, State};
use crate::pubsub::hub::Kind;
use crate::service::{Message, Worker};
use crate::session::Mute;
use crate::tasks::Work;

const NAME: &str = "ERR Client names cannot contain spaces, newlines or special characters.";

/// A client as its worker described it.
struct Line {
    id: u64,
    worker: usize,
    conn: ConnId,
    is_pubsub: bool,
    user: Vec<u8>,
    address: String,
    local: String,
    text: Vec<u8>,
}

type Then = Box<dyn FnOnce(&mut Worker, u32, Vec<Line>) + Send>;

/// A question to all workers.
struct Gathering {
    left: AtomicUsize,
    lines: Mutex<Vec<Line>>,
    asker: usize,
    task: u32,
    then: Mutex<Option<Then>>,
}

/// What CLIENT KILL looks for.
#[derive(Clone, Default)]
struct Victims {
    id: Option<u64>,
    is_pubsub: Option<bool>,
    /// A kind of which there are none here.
    nobody: bool,
    address: Option<Vec<u8>>,
    local: Option<Vec<u8>>,
    user: Option<Vec<u8>>,
    spares_own: bool,
}

impl Worker {
    /// One of CLIENT's subcommands. `None`: the reply comes later.
    pub(super) fn client_command(&mut self, place: u32, id: CommandId, args: Args<'_>) -> Answer<Option<Reply>> {
        use CommandId as C;
        let Some(client) = self.clients.get_mut(place as usize) else { return Ok(None) };
        match id {
            C::ClientId => {
                let number = i64::try_from(client.id).unwrap_or(i64::MAX);
                return Ok(Some(self.written(place, |_, reply| reply.int(number))));
            }
            C::ClientGetname => {
                let name = client.extra.as_ref().map(|extra| extra.name.clone()).filter(|name| !name.is_empty());
                return Ok(Some(self.written(place, |_, reply| match name {
                    Some(name) => reply.bulk(name),
                    None => reply.null(),
                })));
            }
            C::ClientGetredir => return Ok(Some(self.written(place, |_, reply| reply.int(-1)))),
            C::ClientTrackinginfo => return Ok(Some(self.written(place, |_, reply| no_tracking(reply)))),
            C::ClientSetname => {
                let name = args.get(2).unwrap_or_default();
                if !is_printable(name) {
                    return Err(NAME.to_owned());
                }
                client.extra_mut().name = name.to_vec();
            }
            C::ClientSetinfo => set_info(client, args)?,
            C::ClientNoEvict => {
                // The proxy evicts nobody.
                if !is_word(&args, 2, "on") && !is_word(&args, 2, "off") {
                    return Err("ERR syntax error".to_owned());
                }
            }
            C::ClientReply => return self.client_reply(place, args),
            C::ClientInfo => {
                let number = client.id;
                let then = move |worker: &mut Worker, task: u32, lines: Vec<Line>| {
                    let mut text =
                        lines.into_iter().find(|line| line.id == number).map(|line| line.text).unwrap_or_default();
                    text.push(b'\n');
                    worker.fulfil_with(task, |reply| reply.verbatim(&text, "txt"));
                };
                self.gather(place, Box::new(then));
                return Ok(None);
            }
            C::ClientList => return self.client_list(place, args).map(|()| None),
            C::ClientKill => return self.client_kill(place, args).map(|()| None),
            C::ClientUnblock => return self.client_unblock(place, args).map(|()| None),
            _ => return Err(syntax_of(&args)),
        }
        Ok(Some(self.written(place, |_, reply| reply.ok())))
    }

    fn client_reply(&mut self, place: u32, args: Args<'_>) -> Answer<Option<Reply>> {
        let Some(client) = self.clients.get_mut(place as usize) else { return Ok(None) };
        if is_word(&args, 2, "on") {
            client.set_mute(Mute::No);
            return Ok(Some(self.written(place, |_, reply| reply.ok())));
        }
        if is_word(&args, 2, "off") {
            client.set_mute(Mute::Off);
        } else if is_word(&args, 2, "skip") {
            if !client.state.has(State::MUTED) {
                client.set_mute(Mute::Next);
            }
        } else {
            return Err("ERR syntax error".to_owned());
        }
        Ok(None)
    }

    fn client_list(&mut self, place: u32, args: Args<'_>) -> Answer {
        let (mut wanted, mut only) = (None, None);
        match args.get(2) {
            None => {}
            Some(_) if args.len() == 4 && is_word(&args, 2, "type") => {
                only = Some(kind_by_name(args.get(3).unwrap_or_default())?);
            }
            Some(_) if args.len() > 3 && is_word(&args, 2, "id") => {
                let numbers: Option<Vec<i64>> = args.iter().skip(3).map(resp::num::parse_i64).collect();
                wanted = Some(numbers.ok_or("ERR Invalid client ID")?);
            }
            Some(_) => return Err("ERR syntax error".to_owned()),
        }
        let then = move |worker: &mut Worker, task: u32, mut lines: Vec<Line>| {
            lines.sort_unstable_by_key(|line| line.id);
            let mut text = Vec::new();
            for line in &lines {
                let is_wanted =
                    wanted.as_ref().is_none_or(|wanted| i64::try_from(line.id).is_ok_and(|id| wanted.contains(&id)));
                if is_wanted && only.as_ref().is_none_or(|only: &Kinds| only.contains(line.is_pubsub)) {
                    text.extend_from_slice(&line.text);
                    text.push(b'\n');
                }
            }
            worker.fulfil_with(task, |reply| reply.verbatim(&text, "txt"));
        };
        self.gather(place, Box::new(then));
        Ok(())
    }

    fn client_kill(&mut self, place: u32, args: Args<'_>) -> Answer {
        let victims = victims(self, args)?;
        let own = self.clients.get(place as usize).map_or(0, |client| client.id);
        let is_old_form = args.len() == 3;
        let then = move |worker: &mut Worker, task: u32, lines: Vec<Line>| {
            let killed: Vec<&Line> = lines.iter().filter(|line| victims.has(line, own)).collect();
            let count = killed.len();
            let mut is_own = false;
            for line in killed {
                if line.id == own {
                    is_own = true;
                    continue;
                }
                let conn = line.conn;
                worker.shared.post(line.worker, Message::Call(Box::new(move |_, conns| conns.close(conn, false))));
            }
            if is_own {
                worker.close_after_replies(place);
            }
            worker.fulfil_with(task, |reply| match (is_old_form, count) {
                (true, 0) => reply.error("ERR No such client"),
                (true, _) => reply.ok(),
                (false, count) => reply.count(count),
            });
        };
        self.gather(place, Box::new(then));
        Ok(())
    }

    fn client_unblock(&mut self, place: u32, args: Args<'_>) -> Answer {
        let reason: &'static [u8] = match args.len() {
            3 => b"TIMEOUT",
            4 if is_word(&args, 3, "timeout") => b"TIMEOUT",
            4 if is_word(&args, 3, "error") => b"ERROR",
            4 => return Err("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR".to_owned()),
            _ => return Err(syntax_of(&args)),
        };
        let number = resp::num::parse_i64(args.get(2).unwrap_or_default())
            .ok_or("ERR value is not an integer or out of range")?;
        let Ok(number) = u64::try_from(number) else {
            self.reply_now(place, |reply| reply.int(0));
            return Ok(());
        };
        let Some(task) = self.begin_task(place, Work::Unblock) else { return Ok(()) };
        // The worker that has the client knows where it blocks; the request is sent by the one that was asked.
        let asked = Arc::new((AtomicUsize::new(self.shared.workers()), Mutex::new(None)));
        let asker = self.index;
        for worker in 0..self.shared.workers() {
            let asked = asked.clone();
            let ask = move |worker: &mut Worker, _: &mut Conns<Worker>| {
                let (left, found) = &*asked;
                if let Some((backend, bytes)) = worker.unblock_request(number, reason)
                    && let Some(backend) = worker.backends.get(backend as usize)
                {
                    *found.lock() = Some((backend.name.clone(), backend.address, bytes));
                }
                if left.fetch_sub(1, Ordering::AcqRel) != 1 {
                    return;
                }
                let found = found.lock().take();
                let then = move |worker: &mut Worker, _: &mut Conns<Worker>| match found {
                    Some((name, address, bytes)) => {
                        let backend = worker.backend_at(&name, address);
                        worker.task_request(task, backend, &bytes, 1);
                    }
                    None => worker.fulfil(task, b":0\r\n"),
                };
                worker.shared.post(asker, Message::Call(Box::new(then)));
            };
            self.shared.post(worker, Message::Call(Box::new(ask)));
        }
        Ok(())
    }

    /// Asks all workers for their clients; `then` ends the task.
    fn gather(&mut self, place: u32, then: Then) {
        let Some(task) = self.begin_task(place, Work::Promise) else { return };
        let workers = self.shared.workers();
        let gathering = Arc::new(Gathering {
            left: AtomicUsize::new(workers),
            lines: Mutex::default(),
            asker: self.index,
            task,
            then: Mutex::new(Some(then)),
        });
        for worker in 0..workers {
            let gathering = gathering.clone();
            self.shared.post(worker, Message::Call(Box::new(move |worker, conns| worker.add_lines(conns, &gathering))));
        }
    }

    fn add_lines(&mut self, conns: &Conns<Worker>, gathering: &Arc<Gathering>) {
        let lines: Vec<Line> = self.clients.iter().map(|(_, client)| self.describe(conns, client)).collect();
        gathering.lines.lock().extend(lines);
        if gathering.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            let (lines, then) = (std::mem::take(&mut *gathering.lines.lock()), gathering.then.lock().take());
            let task = gathering.task;
            if let Some(then) = then {
                self.shared.post(gathering.asker, Message::Call(Box::new(move |worker, _| then(worker, task, lines))));
            }
        }
    }

    fn describe(&self, conns: &Conns<Worker>, client: &Client) -> Line {
        let unix_path = shown(&self.config.base.unixsocket);
        let local = match conns.local_addr(client.conn) {
            Some(Peer::Tcp(address)) => Some(address),
            _ => None,
        };
        let address = server::session::address_text(client.address, &unix_path);
        let local = server::session::address_text(local, &unix_path);
        let extra = client.extra.as_deref();
        let pinned = client.pinned();
        let count = |kind: Kind| pinned.map_or(0, |pinned| pinned.subscriptions.count(kind));
        let queued = pinned.and_then(|pinned| pinned.queue.as_ref());
        let (input, output) = (conns.pending_input(client.conn), conns.pending_output(client.conn));
        let total = size_of::<Client>() + conns.held_bytes(client.conn);
        let command = client.last_command.map_or("NULL", |id| commands::table::spec(id).name);
        let since = |then: u32| self.now_s.saturating_sub(then);
        let mut text = Vec::new();
        // Writing to a Vec cannot fail.
        let _ = write!(
            text,
            "id={} addr={address} laddr={local} fd={} name={} age={} idle={} flags={} db={} sub={} psub={} ssub={} multi={} \
             qbuf={input} qbuf-free=0 argv-mem=0 multi-mem={} rbs=0 rbp=0 obl=0 oll={} omem={output} tot-mem={total} \
             events={} cmd={command} user={} redir=-1 resp={} lib-name={} lib-ver={}",
            client.id,
            conns.fd(client.conn).unwrap_or(-1),
            extra.map_or_else(String::new, |extra| shown(&extra.name)),
            since(client.connected_s),
            since(client.last_active_s),
            self.flags_of(client),
            client.db(),
            count(Kind::Channel),
            count(Kind::Pattern),
            count(Kind::Shard),
            queued.map_or(-1, |queue| i64::from(queue.len())),
            queued.map_or(0, crate::session::queue::Queue::used_bytes),
            u8::from(output > 0),
            if output > 0 { "rw" } else { "r" },
            shown(client.user_name()),
            if client.proto() == Proto::Resp3 { 3 } else { 2 },
            extra.map_or_else(String::new, |extra| shown(&extra.lib_name)),
            extra.map_or_else(String::new, |extra| shown(&extra.lib_version)),
        );
        Line {
            id: client.id,
            worker: self.index,
            conn: client.conn,
            is_pubsub: client.state.has(State::SUBSCRIBED),
            user: client.user_name().to_vec(),
            address,
            local,
            text,
        }
    }

    fn flags_of(&self, client: &Client) -> String {
        let pinned = client.pinned();
        let is_blocked = pinned.and_then(|pinned| pinned.waits_for).and_then(|task| self.tasks.work(task));
        let letters = [
            (client.state.has(State::SUBSCRIBED), 'P'),
            (pinned.is_some_and(|pinned| pinned.queue.is_some()), 'x'),
            (matches!(is_blocked, Some(Work::Blocking(_))), 'b'),
            (client.state.has(State::CLOSING), 'c'),
            (client.address.is_none(), 'U'),
        ];
        let flags: String = letters.iter().filter(|(set, _)| *set).map(|(_, letter)| *letter).collect();
        if flags.is_empty() { "N".to_owned() } else { flags }
    }
}

fn no_tracking(reply: &mut Reply) {
    reply.map(3);
    reply.bulk("flags");
    reply.set(1);
    reply.bulk("off");
    reply.bulk("redirect");
    reply.int(-1);
    reply.bulk("prefixes");
    reply.empty_array();
}

fn is_printable(text: &[u8]) -> bool {
    text.iter().all(|byte| (b'!'..=b'~').contains(byte))
}

fn set_info(client: &mut Client, args: Args<'_>) -> Answer {
    let (option, value) = (args.get(2).unwrap_or_default(), args.get(3).unwrap_or_default());
    let is_name = is_word(&args, 2, "lib-name");
    if !is_name && !is_word(&args, 2, "lib-ver") {
        return Err(format!("ERR Unrecognized option '{}'", shown(option)));
    }
    if !is_printable(value) {
        return Err(format!("ERR {} cannot contain spaces, newlines or special characters.", shown(option)));
    }
    let extra = client.extra_mut();
    let place = if is_name { &mut extra.lib_name } else { &mut extra.lib_version };
    *place = value.to_vec();
    Ok(())
}

/// Which of the kinds there are here.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kinds {
    Normal,
    Pubsub,
    /// Replicas and primaries are no clients of a proxy.
    Nobody,
}

impl Kinds {
    fn contains(self, is_pubsub: bool) -> bool {
        match self {
            Kinds::Normal => !is_pubsub,
            Kinds::Pubsub => is_pubsub,
            Kinds::Nobody => false,
        }
    }
}

fn kind_by_name(name: &[u8]) -> Answer<Kinds> {
    match name.to_ascii_lowercase().as_slice() {
        b"normal" => Ok(Kinds::Normal),
        b"pubsub" => Ok(Kinds::Pubsub),
        b"slave" | b"replica" | b"master" => Ok(Kinds::Nobody),
        _ => Err(format!("ERR Unknown client type '{}'", shown(name))),
    }
}

impl Victims {
    fn has(&self, line: &Line, own: u64) -> bool {
        !self.nobody
            && self.id.is_none_or(|id| id == line.id)
            && self.is_pubsub.is_none_or(|is_pubsub| is_pubsub == line.is_pubsub)
            && self.address.as_ref().is_none_or(|address| *address == line.address.as_bytes())
            && self.local.as_ref().is_none_or(|local| *local == line.local.as_bytes())
            && self.user.as_ref().is_none_or(|user| *user == line.user)
            && !(self.spares_own && line.id == own)
    }
}

fn victims(worker: &Worker, args: Args<'_>) -> Answer<Victims> {
    let mut victims = Victims { spares_own: true, ..Victims::default() };
    if args.len() == 3 {
        victims.address = args.get(2).map(<[u8]>::to_vec);
        victims.spares_own = false;
        return Ok(victims);
    }
    let mut index = 2;
    while args.get(index).is_some() {
        let syntax = || "ERR syntax error".to_owned();
        let value = args.get(index + 1).ok_or_else(syntax)?;
        if is_word(&args, index, "id") {
            let id = resp::num::parse_i64(value).filter(|id| *id >= 1).and_then(|id| u64::try_from(id).ok());
            victims.id = Some(id.ok_or("ERR client-id should be greater than 0")?);
        } else if is_word(&args, index, "type") {
            match kind_by_name(value)? {
                Kinds::Nobody => victims.nobody = true,
                kind => victims.is_pubsub = Some(kind == Kinds::Pubsub),
            }
        } else if is_word(&args, index, "addr") {
            victims.address = Some(value.to_vec());
        } else if is_word(&args, index, "laddr") {
            victims.local = Some(value.to_vec());
        } else if is_word(&args, index, "user") {
            if worker.shared.acl.get(value).is_none() {
                return Err(format!("ERR No such user '{}'", shown(value)));
            }
            victims.user = Some(value.to_vec());
        } else if is_word(&args, index, "skipme") {
            victims.spares_own = match value.to_ascii_lowercase().as_slice() {
                b"yes" => true,
                b"no" => false,
                _ => return Err(syntax()),
            };
        } else {
            return Err(syntax());
        }
        index += 2;
    }
    Ok(victims)
}
