//! Servers as members of a cluster, with a manager that does what a test says.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use testkit::process::Signal;
use testkit::{Client, Launch, Reply, Server, wait_until};

pub(crate) const LIMIT: Duration = Duration::from_secs(20);

/// What the manager says.
struct Said {
    term: u64,
    epoch: u64,
    view: String,
    lease_ms: u64,
    is_silent: bool,
    /// Who has asked, once for each request.
    asked: Vec<String>,
}

/// Answers requests for leases.
pub(crate) struct Manager {
    port: u16,
    said: Arc<(Mutex<Said>, Condvar)>,
}

impl Manager {
    pub(crate) fn start() -> Manager {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let said =
            Said { term: 1, epoch: 0, view: "null".to_owned(), lease_ms: 3000, is_silent: false, asked: Vec::new() };
        let said = Arc::new((Mutex::new(said), Condvar::new()));
        let of_thread = said.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let said = of_thread.clone();
                thread::spawn(move || serve(&stream, &said));
            }
        });
        Manager { port, said }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn set_view(&self, epoch: u64, view: String) {
        let mut said = self.said.0.lock().unwrap();
        said.epoch = epoch;
        said.view = view;
        self.said.1.notify_all();
    }

    /// How often a member has asked.
    pub(crate) fn asked_by(&self, member: &str) -> usize {
        self.said.0.lock().unwrap().asked.iter().filter(|asked| *asked == member).count()
    }

    pub(crate) fn set_lease_ms(&self, lease_ms: u64) {
        self.said.0.lock().unwrap().lease_ms = lease_ms;
    }

    /// Takes no requests, or does again.
    pub(crate) fn set_silent(&self, is_silent: bool) {
        self.said.0.lock().unwrap().is_silent = is_silent;
        self.said.1.notify_all();
    }
}

fn serve(stream: &TcpStream, said: &(Mutex<Said>, Condvar)) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut length = 0;
        let mut member = String::new();
        let mut line = String::new();
        loop {
            line.clear();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if let Some(rest) = line.split("/members/").nth(1) {
                member = rest.split('/').next().unwrap_or_default().to_owned();
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let body = String::from_utf8(body).unwrap();
        let number = |name: &str| -> u64 {
            let Some(at) = body.find(&format!("\"{name}\":")) else { return 0 };
            body[at + name.len() + 3..]
                .chars()
                .take_while(char::is_ascii_digit)
                .collect::<String>()
                .parse()
                .unwrap_or(0)
        };
        let (has, wait_ms) = ((number("term"), number("epoch")), number("wait_ms"));
        let until = Instant::now() + Duration::from_millis(wait_ms);
        let mut now = said.0.lock().unwrap();
        now.asked.push(member);
        while !now.is_silent && (now.term, now.epoch) <= has {
            let Some(left) = until.checked_duration_since(Instant::now()) else { break };
            now = said.1.wait_timeout(now, left).unwrap().0;
        }
        if now.is_silent {
            return;
        }
        let view = if (now.term, now.epoch) > has { now.view.as_str() } else { "null" };
        let text =
            format!("{{\"term\":{},\"epoch\":{},\"lease_ms\":{},\"view\":{view}}}", now.term, now.epoch, now.lease_ms);
        drop(now);
        let reply = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{text}",
            text.len()
        );
        let mut writer = stream;
        if writer.write_all(reply.as_bytes()).is_err() {
            return;
        }
    }
}

/// A move as the view shows it.
#[derive(Clone)]
pub(crate) struct Moving {
    pub(crate) id: u64,
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) slots: (u16, u16),
    pub(crate) stage: &'static str,
    pub(crate) source_run: String,
}

/// Groups of one server each; `None` while one is down.
pub(crate) struct Cluster {
    pub(crate) manager: Manager,
    pub(crate) servers: Vec<Option<Server>>,
    launches: Vec<(Launch, u16)>,
    directories: Vec<tempfile::TempDir>,
    /// The owner of each slot, by the number of its server.
    pub(crate) owners: Vec<usize>,
    pub(crate) moving: Vec<Moving>,
    pub(crate) epoch: u64,
}

impl Cluster {
    /// Starts servers that share the slots evenly.
    pub(crate) fn start(count: usize, args: &[&str]) -> Cluster {
        let mut cluster = Cluster {
            manager: Manager::start(),
            servers: Vec::new(),
            launches: Vec::new(),
            directories: Vec::new(),
            owners: (0..16384).map(|slot| slot * count / 16384).collect(),
            moving: Vec::new(),
            epoch: 0,
        };
        for _ in 0..count {
            let directory = tempfile::tempdir().unwrap();
            let port = testkit::server::free_port().unwrap();
            let launch = Launch::oxidis().args(args).directory(directory.path()).port(port);
            cluster.servers.push(Some(launch.try_start().unwrap()));
            cluster.launches.push((launch, port));
            cluster.directories.push(directory);
        }
        for index in 0..count {
            let url = cluster.manager.url();
            cluster.client(index).check(&format!("OXIDIS JOIN s{index} {url}"), "+OK");
        }
        cluster.publish();
        cluster
    }

    pub(crate) fn port(&self, index: usize) -> u16 {
        self.launches[index].1
    }

    pub(crate) fn client(&self, index: usize) -> Client {
        Client::connect(self.port(index)).unwrap()
    }

    /// Ends a server without warning.
    pub(crate) fn kill(&mut self, index: usize) {
        let mut server = self.servers[index].take().unwrap();
        server.stop(Signal::Kill).unwrap();
    }

    /// Starts a server anew, with what it has on disk.
    pub(crate) fn restart(&mut self, index: usize) {
        self.restart_soon(index);
        self.wait_known();
    }

    /// As [`Cluster::restart`], without waiting until it knows the view.
    pub(crate) fn restart_soon(&mut self, index: usize) {
        self.servers[index] = Some(self.launches[index].0.try_start().unwrap());
    }

    fn ranges(&self, owner: usize) -> String {
        let mut ranges: Vec<(usize, usize)> = Vec::new();
        for slot in (0..self.owners.len()).filter(|slot| self.owners[*slot] == owner) {
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == slot => *last = slot,
                _ => ranges.push((slot, slot)),
            }
        }
        let texts: Vec<String> = ranges.iter().map(|(first, last)| format!("[{first},{last}]")).collect();
        format!("[{}]", texts.join(","))
    }

    fn view(&self) -> String {
        let groups: Vec<String> = (0..self.launches.len())
            .map(|index| {
                format!(
                    "{{\"id\":{},\"epoch\":{},\"servers\":[{{\"id\":\"s{index}\",\"address\":\"127.0.0.1:{}\",\"role\":\"primary\"}}],\"slots\":{}}}",
                    index + 1,
                    self.epoch,
                    self.port(index),
                    self.ranges(index)
                )
            })
            .collect();
        let moves: Vec<String> = self
            .moving
            .iter()
            .map(|one| {
                format!(
                    "{{\"id\":{},\"from\":{},\"to\":{},\"slots\":[[{},{}]],\"stage\":\"{}\",\"source_run\":\"{}\"}}",
                    one.id,
                    one.from + 1,
                    one.to + 1,
                    one.slots.0,
                    one.slots.1,
                    one.stage,
                    one.source_run
                )
            })
            .collect();
        format!(
            "{{\"cluster\":\"test\",\"term\":1,\"epoch\":{},\"slot_space\":\"redis\",\"lease_ms\":3000,\"groups\":[{}],\"moves\":[{}],\"proxies\":[]}}",
            self.epoch,
            groups.join(","),
            moves.join(",")
        )
    }

    /// Tells the members what is the case, and waits until all that live know.
    pub(crate) fn publish(&mut self) {
        self.publish_soon();
        self.wait_known();
    }

    /// As [`Cluster::publish`], without waiting.
    pub(crate) fn publish_soon(&mut self) {
        self.epoch += 1;
        self.manager.set_view(self.epoch, self.view());
    }

    pub(crate) fn wait_known(&self) {
        for index in (0..self.servers.len()).filter(|index| self.servers[*index].is_some()) {
            let mut client = self.client(index);
            let wanted = format!("\"epoch\":{},\"lease", self.epoch);
            wait_until("the view to be known", LIMIT, || {
                let view = client.run("OXIDIS VIEW").text();
                if view.contains(&wanted) { Ok(()) } else { Err(view) }
            });
        }
    }

    pub(crate) fn run_of(&self, index: usize) -> String {
        field(&self.client(index).run("OXIDIS VIEW").text(), "run")
    }

    /// Has slots copied, as far as the source following.
    pub(crate) fn begin_move(&mut self, id: u64, from: usize, to: usize, slots: (u16, u16), options: &str) {
        let source_run = self.run_of(from);
        self.moving.retain(|one| one.id != id);
        self.moving.push(Moving { id, from, to, slots, stage: "copying", source_run });
        self.publish();
        let order = format!("OXIDIS MOVE START {id} 127.0.0.1:{} {}-{}{options}", self.port(to), slots.0, slots.1);
        self.client(from).check(&order, "+OK");
    }

    pub(crate) fn wait_state(&self, id: u64, from: usize, wanted: &str) {
        let mut client = self.client(from);
        wait_until(&format!("the move to be {wanted}"), LIMIT, || {
            let status = client.run(&format!("OXIDIS MOVE STATUS {id}")).text();
            if field(&status, "state") == wanted { Ok(()) } else { Err(status) }
        });
    }

    pub(crate) fn set_stage(&mut self, id: u64, stage: &'static str) {
        for one in self.moving.iter_mut().filter(|one| one.id == id) {
            one.stage = stage;
        }
        self.publish_soon();
    }

    /// Holds the slots. The answer is the source's.
    pub(crate) fn freeze(&mut self, id: u64, timeout_ms: u64) -> Reply {
        self.set_stage(id, "cutover");
        let from = self.moving.iter().find(|one| one.id == id).unwrap().from;
        self.client(from).run(&format!("OXIDIS MOVE FREEZE {id} {} {timeout_ms}", self.epoch))
    }

    /// Decides for the target. Nobody is told but by the view, if `tells` is not set.
    pub(crate) fn commit(&mut self, id: u64, tells: bool) {
        let one = self.moving.iter().find(|one| one.id == id).unwrap().clone();
        for slot in one.slots.0..=one.slots.1 {
            self.owners[usize::from(slot)] = one.to;
        }
        if !tells {
            self.set_stage(id, "committed");
            return;
        }
        let newness = format!("1 {}", self.epoch + 1);
        self.client(one.to).check(&format!("OXIDIS IMPORT COMMIT {id} {newness}"), "+OK");
        self.client(one.from).check(&format!("OXIDIS MOVE FINISH {id} {newness}"), "+OK");
        self.set_stage(id, "committed");
    }

    /// The move is over.
    pub(crate) fn forget(&mut self, id: u64) {
        self.moving.retain(|one| one.id != id);
        self.publish();
    }

    /// A whole move.
    pub(crate) fn move_slots(&mut self, id: u64, from: usize, to: usize, slots: (u16, u16)) {
        self.begin_move(id, from, to, slots, "");
        self.wait_state(id, from, "following");
        // A busy machine may need longer than is given: then they are served as before, and it is tried again.
        let mut frozen = self.freeze(id, 2000);
        for _ in 0..5 {
            if !frozen.is_error() {
                break;
            }
            frozen = self.freeze(id, 2000);
        }
        assert_eq!(frozen.text(), "OK", "{frozen}");
        self.commit(id, true);
        self.forget(id);
    }

    /// A client that finds its way.
    pub(crate) fn router(&self) -> Router {
        let ports: Vec<u16> = self.launches.iter().map(|(_, port)| *port).collect();
        Router { first: ports[0], clients: Vec::new() }
    }
}

/// Follows MOVED as a client that knows nothing of slots.
pub(crate) struct Router {
    first: u16,
    clients: Vec<(u16, Client)>,
}

impl Router {
    fn at(&mut self, port: u16) -> std::io::Result<&mut Client> {
        if !self.clients.iter().any(|(other, _)| *other == port) {
            self.clients.push((port, Client::connect(port)?));
        }
        Ok(self.clients.iter_mut().find(|(other, _)| *other == port).map(|(_, client)| client).unwrap())
    }

    /// Runs commands as one pipeline where the first of their keys is, starting at the server that was last right.
    pub(crate) fn run(&mut self, commands: &[Vec<String>]) -> std::io::Result<Vec<Reply>> {
        let mut port = self.first;
        for _ in 0..32 {
            let replies = match self.at(port)?.pipeline(commands) {
                Ok(replies) => replies,
                Err(error) => {
                    self.clients.retain(|(other, _)| *other != port);
                    return Err(error);
                }
            };
            let moved = replies.iter().find_map(|reply| {
                let text = reply.text();
                text.strip_prefix("MOVED ")?.rsplit(':').next()?.parse::<u16>().ok()
            });
            match moved {
                Some(to) => port = to,
                None => {
                    self.first = port;
                    return Ok(replies);
                }
            }
        }
        panic!("sent from one server to the other for ever")
    }
}

/// A text field of flat JSON.
pub(crate) fn field(json: &str, name: &str) -> String {
    let Some(at) = json.find(&format!("\"{name}\":")) else { return String::new() };
    let rest = &json[at + name.len() + 3..];
    match rest.strip_prefix('"') {
        Some(text) => text.split('"').next().unwrap_or_default().to_owned(),
        None => rest.chars().take_while(|one| !matches!(one, ',' | '}' | ']')).collect(),
    }
}

/// The slot of a key, as the servers tell it.
pub(crate) fn slot_of(client: &mut Client, key: &str) -> u16 {
    u16::try_from(client.run(&format!("CLUSTER KEYSLOT {key}")).integer().unwrap()).unwrap()
}
