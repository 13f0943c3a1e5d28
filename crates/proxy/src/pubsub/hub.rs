//! Who listens to what on one worker, and what the worker itself has subscribed to at the servers.
//!
//! A channel is subscribed to once at a server, however many clients of the worker listen; its messages are given to each
//! of them. The hub does no I/O: it says what is to be sent to whom ([`Upstream`]) and is told what came.
//!
//! A client is told that it listens only when the servers have said so for every server that matters and can be reached:
//! what is published after that reply reaches it. Confirmations come in the order of the requests on a connection, so a
//! queue for each connection tells which request one belongs to; a channel that was left and joined again within a moment
//! is not taken for confirmed by the older request.
//!
//! Invariant: a name has an entry as long as a client listens to it, and no longer.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// The three things one can listen to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// SUBSCRIBE.
    Channel,
    /// PSUBSCRIBE.
    Pattern,
    /// SSUBSCRIBE.
    Shard,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 3] = [Kind::Channel, Kind::Pattern, Kind::Shard];

    /// The commands that begin and end it, as replies name them.
    pub const fn words(self) -> (&'static str, &'static str) {
        match self {
            Kind::Channel => ("subscribe", "unsubscribe"),
            Kind::Pattern => ("psubscribe", "punsubscribe"),
            Kind::Shard => ("ssubscribe", "sunsubscribe"),
        }
    }
}

/// A channel or a pattern.
pub type Name = Arc<[u8]>;

/// What is to be sent to a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Upstream {
    /// The server.
    pub server: u32,
    /// The kind.
    pub kind: Kind,
    /// Whether to begin or to end it.
    pub begins: bool,
    /// What.
    pub name: Name,
}

/// Where a subscription at a server stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Standing {
    /// The server cannot be reached; it will be asked when it can.
    Down,
    /// Asked by the request of this number.
    Asked(u64),
    /// It stands.
    Confirmed,
}

struct Home {
    server: u32,
    standing: Standing,
}

struct Entry<C> {
    clients: Vec<C>,
    homes: Vec<Home>,
}

/// A request that a server has not answered yet.
struct Sent {
    number: u64,
    kind: Kind,
    begins: bool,
    name: Name,
}

/// See the module.
pub struct Hub<C> {
    entries: [HashMap<Name, Entry<C>>; 3],
    sent: HashMap<u32, VecDeque<Sent>>,
    next_number: u64,
}

/// What a message on a subscription connection was.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// Nothing to do.
    None,
    /// A subscription stands: somebody may have waited for it.
    Confirmed,
    /// The server ended a shard channel by itself, as its slot has gone: it is to be asked for elsewhere.
    Gone(Name),
}

impl<C: Copy + PartialEq> Default for Hub<C> {
    fn default() -> Self {
        Hub { entries: Default::default(), sent: HashMap::new(), next_number: 1 }
    }
}

impl<C: Copy + PartialEq> Hub<C> {
    fn of(&self, kind: Kind) -> &HashMap<Name, Entry<C>> {
        &self.entries[kind as usize]
    }

    fn of_mut(&mut self, kind: Kind) -> &mut HashMap<Name, Entry<C>> {
        &mut self.entries[kind as usize]
    }

    /// A client begins to listen. It must not do so already. Gives whether it is the first.
    pub fn join(&mut self, kind: Kind, name: &Name, client: C) -> bool {
        let entries = self.of_mut(kind);
        let is_first = !entries.contains_key(name);
        let entry = entries.entry(name.clone()).or_insert_with(|| Entry { clients: Vec::new(), homes: Vec::new() });
        entry.clients.push(client);
        is_first
    }

    /// A client listens no longer; `send` gets what is to be sent if it was the last.
    pub fn leave(&mut self, kind: Kind, name: &Name, client: C, mut send: impl FnMut(Upstream)) {
        let entries = self.of_mut(kind);
        let Some(entry) = entries.get_mut(name) else { return };
        entry.clients.retain(|other| *other != client);
        if !entry.clients.is_empty() {
            return;
        }
        let homes = entries.remove(name).map(|entry| entry.homes).unwrap_or_default();
        for home in homes.into_iter().filter(|home| home.standing != Standing::Down) {
            self.note_sent(home.server, kind, false, name.clone());
            send(Upstream { server: home.server, kind, begins: false, name: name.clone() });
        }
    }

    /// A name must be subscribed to at these servers, and no others. `is_up` says which can be reached.
    pub fn settle(
        &mut self,
        kind: Kind,
        name: &Name,
        servers: &[u32],
        is_up: impl Fn(u32) -> bool,
        mut send: impl FnMut(Upstream),
    ) {
        let Some(entry) = self.of_mut(kind).get_mut(name) else { return };
        let mut homes = std::mem::take(&mut entry.homes);
        let mut asked = Vec::new();
        homes.retain(|home| {
            let stays = servers.contains(&home.server);
            if !stays && home.standing != Standing::Down {
                asked.push((home.server, false));
            }
            stays
        });
        for server in servers {
            if !homes.iter().any(|home| home.server == *server) {
                homes.push(Home { server: *server, standing: Standing::Down });
            }
        }
        for home in homes.iter_mut().filter(|home| home.standing == Standing::Down && is_up(home.server)) {
            home.standing = Standing::Asked(self.next_number + asked.len() as u64);
            asked.push((home.server, true));
        }
        if let Some(entry) = self.of_mut(kind).get_mut(name) {
            entry.homes = homes;
        }
        for (server, begins) in asked {
            self.note_sent(server, kind, begins, name.clone());
            send(Upstream { server, kind, begins, name: name.clone() });
        }
    }

    fn note_sent(&mut self, server: u32, kind: Kind, begins: bool, name: Name) {
        let number = self.next_number;
        self.next_number += 1;
        self.sent.entry(server).or_default().push_back(Sent { number, kind, begins, name });
    }

    /// Whether all reachable servers that matter have confirmed a name.
    pub fn is_settled(&self, kind: Kind, name: &Name) -> bool {
        let homes = self.of(kind).get(name).map(|entry| entry.homes.as_slice()).unwrap_or_default();
        homes.iter().all(|home| !matches!(home.standing, Standing::Asked(_)))
    }

    /// A server confirmed that something begins or ends.
    pub fn confirmed(&mut self, server: u32, kind: Kind, begins: bool, name: &[u8]) -> Event {
        let queue = self.sent.entry(server).or_default();
        let is_answer =
            queue.front().is_some_and(|sent| sent.kind == kind && sent.begins == begins && *sent.name == *name);
        if !is_answer {
            // Redis: when a slot goes, its subscribers are told by what looks like the answer to SUNSUBSCRIBE.
            return match self.of(kind).get_key_value(name) {
                Some((name, _)) if kind == Kind::Shard && !begins => Event::Gone(name.clone()),
                _ => Event::None,
            };
        }
        let Some(sent) = queue.pop_front() else { return Event::None };
        if !begins {
            return Event::None;
        }
        let home = self.of_mut(kind).get_mut(name).and_then(|entry| {
            entry.homes.iter_mut().find(|home| home.server == server && home.standing == Standing::Asked(sent.number))
        });
        match home {
            Some(home) => {
                home.standing = Standing::Confirmed;
                Event::Confirmed
            }
            None => Event::None,
        }
    }

    /// A server refused the oldest request (by an error reply): its name is given, and counts as not subscribed there.
    pub fn refused(&mut self, server: u32) -> Option<(Kind, Name)> {
        let sent = self.sent.get_mut(&server)?.pop_front()?;
        self.lost_home(server, sent.kind, &sent.name);
        Some((sent.kind, sent.name))
    }

    /// A server ended a subscription by itself.
    pub fn lost_home(&mut self, server: u32, kind: Kind, name: &Name) {
        if let Some(entry) = self.of_mut(kind).get_mut(name) {
            entry.homes.retain(|home| home.server != server);
        }
    }

    /// The connection to a server is gone, and all that was subscribed to there. Gives what must be settled anew.
    pub fn server_lost(&mut self, server: u32) -> Vec<(Kind, Name)> {
        self.sent.remove(&server);
        let mut affected = Vec::new();
        for kind in Kind::ALL {
            for (name, entry) in self.of_mut(kind) {
                for home in entry.homes.iter_mut().filter(|home| home.server == server) {
                    home.standing = Standing::Down;
                    affected.push((kind, name.clone()));
                }
            }
        }
        affected
    }

    /// Everything that somebody listens to: after the map of the servers has changed it is settled anew.
    pub fn names(&self) -> Vec<(Kind, Name)> {
        Kind::ALL.iter().flat_map(|kind| self.of(*kind).keys().map(|name| (*kind, name.clone()))).collect()
    }

    /// The clients that listen to a name.
    pub fn clients(&self, kind: Kind, name: &[u8]) -> &[C] {
        self.of(kind).get(name).map(|entry| entry.clients.as_slice()).unwrap_or_default()
    }

    /// Whether nobody listens to anything.
    pub fn is_empty(&self) -> bool {
        self.entries.iter().all(HashMap::is_empty)
    }

    /// The servers at which a name is asked for or subscribed to.
    pub fn servers(&self, kind: Kind, name: &Name) -> impl Iterator<Item = u32> {
        let homes = self.of(kind).get(name).map(|entry| entry.homes.as_slice()).unwrap_or_default();
        homes.iter().filter(|home| home.standing != Standing::Down).map(|home| home.server)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        text.as_bytes().into()
    }

    fn settle(hub: &mut Hub<u8>, text: &str, servers: &[u32]) -> Vec<(u32, bool)> {
        let mut sent = Vec::new();
        hub.settle(Kind::Channel, &name(text), servers, |server| server < 10, |up| sent.push((up.server, up.begins)));
        sent
    }

    fn leave(hub: &mut Hub<u8>, text: &str, client: u8) -> Vec<(u32, bool)> {
        let mut sent = Vec::new();
        hub.leave(Kind::Channel, &name(text), client, |up| sent.push((up.server, up.begins)));
        sent
    }

    #[test]
    fn a_channel_is_subscribed_to_once() {
        let mut hub = Hub::default();
        assert!(hub.join(Kind::Channel, &name("a"), 1));
        assert_eq!(settle(&mut hub, "a", &[0, 1]), [(0, true), (1, true)]);
        assert!(!hub.join(Kind::Channel, &name("a"), 2));
        assert_eq!(settle(&mut hub, "a", &[0, 1]), []);
        assert!(!hub.is_settled(Kind::Channel, &name("a")));
        assert_eq!(hub.confirmed(0, Kind::Channel, true, b"a"), Event::Confirmed);
        assert!(!hub.is_settled(Kind::Channel, &name("a")));
        assert_eq!(hub.confirmed(1, Kind::Channel, true, b"a"), Event::Confirmed);
        assert!(hub.is_settled(Kind::Channel, &name("a")));
        assert_eq!(hub.clients(Kind::Channel, b"a"), [1, 2]);
        assert_eq!(leave(&mut hub, "a", 1), []);
        assert_eq!(leave(&mut hub, "a", 2), [(0, false), (1, false)]);
        assert!(hub.is_empty());
    }

    #[test]
    fn an_older_request_confirms_nothing() {
        let mut hub = Hub::default();
        hub.join(Kind::Channel, &name("a"), 1);
        settle(&mut hub, "a", &[0]);
        leave(&mut hub, "a", 1);
        hub.join(Kind::Channel, &name("a"), 1);
        settle(&mut hub, "a", &[0]);
        assert_eq!(hub.confirmed(0, Kind::Channel, true, b"a"), Event::None);
        assert_eq!(hub.confirmed(0, Kind::Channel, false, b"a"), Event::None);
        assert!(!hub.is_settled(Kind::Channel, &name("a")));
        assert_eq!(hub.confirmed(0, Kind::Channel, true, b"a"), Event::Confirmed);
        assert!(hub.is_settled(Kind::Channel, &name("a")));
    }

    #[test]
    fn what_cannot_be_reached_is_asked_later() {
        let mut hub = Hub::default();
        hub.join(Kind::Channel, &name("a"), 1);
        assert_eq!(settle(&mut hub, "a", &[0, 77]), [(0, true)]);
        hub.confirmed(0, Kind::Channel, true, b"a");
        assert!(hub.is_settled(Kind::Channel, &name("a")), "nobody waits for a dead server");
        assert_eq!(hub.server_lost(0), [(Kind::Channel, name("a"))]);
        assert_eq!(settle(&mut hub, "a", &[0, 77]), [(0, true)]);
    }

    #[test]
    fn a_channel_follows_the_map() {
        let mut hub = Hub::default();
        hub.join(Kind::Channel, &name("a"), 1);
        settle(&mut hub, "a", &[0]);
        hub.confirmed(0, Kind::Channel, true, b"a");
        assert_eq!(settle(&mut hub, "a", &[1]), [(0, false), (1, true)]);
        assert_eq!(hub.confirmed(1, Kind::Channel, true, b"a"), Event::Confirmed);
        assert_eq!(hub.confirmed(0, Kind::Channel, false, b"a"), Event::None);
    }

    #[test]
    fn a_slot_that_goes_takes_its_channels_along() {
        let mut hub: Hub<u8> = Hub::default();
        hub.join(Kind::Shard, &name("s"), 1);
        hub.settle(Kind::Shard, &name("s"), &[0], |_| true, |_| {});
        assert_eq!(hub.confirmed(0, Kind::Shard, true, b"s"), Event::Confirmed);
        assert_eq!(hub.confirmed(0, Kind::Shard, false, b"s"), Event::Gone(name("s")));
        hub.lost_home(0, Kind::Shard, &name("s"));
        let mut sent = Vec::new();
        hub.settle(Kind::Shard, &name("s"), &[0], |_| true, |up| sent.push(up.server));
        assert_eq!(sent, [0], "the owner may be the same again");
    }
}
