//! Publish and subscribe through the proxy.
//!
//! Each worker has one subscription connection to each backend at which its clients listen to something ([`upstream`]); what
//! comes there is given to the clients ([`hub`]). Where a name is subscribed to depends on what the backends are:
//!
//! | backends | channels and patterns | shard channels |
//! |---|---|---|
//! | ours, or plain servers | everywhere: a message stays on the server where it was published, by whomever | owner of the slot |
//! | a stock cluster | one server, the owner of the name's slot: the cluster spreads messages by itself | owner of the slot |
//! | a stock cluster, names that begin with `__key` | everywhere: notifications are not spread | |
//!
//! PUBLISH goes to the owner of the channel's slot, whose count of receivers is put right by [`board`]. A connection that is
//! lost is made again and what was subscribed to there is subscribed to again; messages published meanwhile are lost, as
//! they are for a client of a server itself.

pub(crate) mod ask;
pub mod board;
pub mod hub;
mod upstream;

pub(crate) use upstream::Listening;

use commands::CommandId;
use resp::{Args, Proto, Reply};

use crate::dispatch::Step;
use crate::routing;
use crate::service::Worker;
use crate::slots::Kind as Backends;
use crate::tasks::{Answer, Work};
use hub::{Kind, Name};

/// What a client listens to, in order.
#[derive(Default)]
pub struct Subscriptions {
    names: [Vec<Name>; 3],
}

impl Subscriptions {
    /// Whether it listens to nothing.
    pub fn is_empty(&self) -> bool {
        self.names.iter().all(Vec::is_empty)
    }

    /// How many of a kind.
    pub fn count(&self, kind: Kind) -> usize {
        self.names[kind as usize].len()
    }

    /// Whether a user with these rules may listen to all of it.
    pub(crate) fn are_allowed(&self, rules: &server::acl::rules::Rules) -> bool {
        let [channels, patterns, shards] = &self.names;
        let channels = channels.iter().chain(shards).map(|name| &**name);
        server::acl::check::allows_subscriptions(rules, channels, patterns.iter().map(|name| &**name))
    }

    /// The number that replies end with: channels and patterns together, shard channels apart.
    fn counted(&self, kind: Kind) -> usize {
        match kind {
            Kind::Shard => self.count(Kind::Shard),
            _ => self.count(Kind::Channel) + self.count(Kind::Pattern),
        }
    }
}

/// A client that is told that it listens when the servers have confirmed.
pub(crate) struct Waiting {
    task: u32,
    kind: Kind,
    names: Vec<Name>,
    reply: Vec<u8>,
}

/// The kind that a command works on, and whether it begins.
fn kind_of(id: CommandId) -> (Kind, bool) {
    match id {
        CommandId::Psubscribe => (Kind::Pattern, true),
        CommandId::Punsubscribe => (Kind::Pattern, false),
        CommandId::Ssubscribe => (Kind::Shard, true),
        CommandId::Sunsubscribe => (Kind::Shard, false),
        CommandId::Unsubscribe => (Kind::Channel, false),
        _ => (Kind::Channel, true),
    }
}

impl Worker {
    /// SUBSCRIBE and its kin.
    pub(crate) fn subscription(&mut self, place: u32, id: CommandId, args: Args<'_>) -> Step {
        let (kind, begins) = kind_of(id);
        if begins { self.subscribe(place, kind, args) } else { self.unsubscribe(place, kind, args) }
    }

    fn subscribe(&mut self, place: u32, kind: Kind, args: Args<'_>) -> Step {
        if kind == Kind::Shard && !self.is_one_slot(args) && !self.is_one_server() {
            return self.refuse_request(place, routing::plan::CROSS_SLOT.as_bytes());
        }
        let Some(client) = self.clients.get_mut(place as usize) else { return Step::CloseNow };
        let (listener, proto) = ((place, client.serial), client.proto());
        let mut reply = Reply::with_buffer(Vec::new(), proto);
        let mut names = Vec::new();
        for word in args.iter().skip(1) {
            let Some(client) = self.clients.get_mut(place as usize) else { return Step::CloseNow };
            let own = &mut client.pinned_mut().subscriptions;
            let known = own.names[kind as usize].iter().find(|name| ***name == *word).cloned();
            let name = known.clone().unwrap_or_else(|| word.into());
            if known.is_none() {
                own.names[kind as usize].push(name.clone());
            }
            let counted = own.counted(kind);
            write_change(&mut reply, kind, true, Some(word), counted);
            if known.is_none() {
                self.hub.join(kind, &name, listener);
                self.shared.board.client(kind, &name, true);
                self.settle(kind, &name);
            }
            names.push(name);
        }
        if let Some(client) = self.clients.get_mut(place as usize) {
            client.note_pinned();
        }
        if names.iter().all(|name| self.hub.is_settled(kind, name)) {
            self.give_now(place, &reply.buf);
            return Step::Done;
        }
        let Some(task) = self.begin_task(place, Work::Promise) else { return Step::CloseNow };
        self.wait_for(place, task);
        self.waiting.push(Waiting { task, kind, names, reply: reply.buf });
        Step::Done
    }

    fn is_one_slot(&self, args: Args<'_>) -> bool {
        let mut slots = args.iter().skip(1).map(|name| routing::slot_of(self.map.space, name));
        let first = slots.next();
        slots.all(|slot| Some(slot) == first)
    }

    fn unsubscribe(&mut self, place: u32, kind: Kind, args: Args<'_>) -> Step {
        let Some(client) = self.clients.get_mut(place as usize) else { return Step::CloseNow };
        let (listener, proto) = ((place, client.serial), client.proto());
        let own = &client.pinned_mut().subscriptions;
        let mut named: Vec<Name> = args.iter().skip(1).map(Name::from).collect();
        if named.is_empty() {
            named.clone_from(&own.names[kind as usize]);
        }
        let mut reply = Reply::with_buffer(Vec::new(), proto);
        if named.is_empty() {
            write_change(&mut reply, kind, false, None, own.counted(kind));
        }
        for name in named {
            let Some(client) = self.clients.get_mut(place as usize) else { return Step::CloseNow };
            let own = &mut client.pinned_mut().subscriptions;
            let at = own.names[kind as usize].iter().position(|other| *other == name);
            if let Some(at) = at {
                own.names[kind as usize].remove(at);
            }
            let counted = own.counted(kind);
            write_change(&mut reply, kind, false, Some(&name), counted);
            if at.is_some() {
                self.leave(kind, &name, listener);
            }
        }
        if let Some(client) = self.clients.get_mut(place as usize) {
            client.note_pinned();
        }
        self.give_now(place, &reply.buf);
        Step::Done
    }

    /// Ends all subscriptions without a word: the client is gone, or as new.
    pub(crate) fn end_subscriptions(&mut self, listener: (u32, u32), own: &mut Subscriptions) {
        for kind in Kind::ALL {
            for name in std::mem::take(&mut own.names[kind as usize]) {
                self.leave(kind, &name, listener);
            }
        }
    }

    /// Several replies that belong together, written already.
    fn give_now(&mut self, place: u32, bytes: &[u8]) {
        self.reply_now(place, |reply| reply.raw(bytes));
    }

    /// Lets those go on who waited for confirmations, as far as these are there.
    pub(crate) fn look_at_waiting(&mut self) {
        let mut index = 0;
        while let Some(waiting) = self.waiting.get(index) {
            let is_wanted = self.is_wanted(waiting.task);
            if is_wanted && !waiting.names.iter().all(|name| self.hub.is_settled(waiting.kind, name)) {
                index += 1;
                continue;
            }
            let waiting = self.waiting.swap_remove(index);
            self.wait_is_over(waiting.task);
            self.fulfil(waiting.task, &waiting.reply);
        }
    }

    /// PUBLISH.
    pub(crate) fn publish(&mut self, place: u32, args: Args<'_>) -> Step {
        let channel = args.get(1).unwrap_or_default();
        let Some(backend) = self.owner_of(routing::slot_of(self.map.space, channel)) else {
            self.shared.map.request_refresh();
            return self.refuse_request(place, b"CLUSTERDOWN Hash slot not served");
        };
        let mut bytes = Vec::new();
        resp::write_command(&mut bytes, args);
        let Some(id) = self.begin_task(place, Work::Publish(channel.to_vec())) else { return Step::CloseNow };
        self.task_request(id, backend, &bytes, 1);
        Step::Done
    }

    pub(crate) fn publish_answered(&mut self, id: u32, channel: &[u8], answers: Vec<Answer>) {
        let Some(answer) = answers.into_iter().next() else { return };
        let address = self.backends.get(answer.backend as usize).map(|backend| backend.address);
        match (crate::merge::integer(&answer.bytes), address) {
            (Some(said), Some(address)) => {
                let count = self.shared.board.receivers(channel, said, address);
                self.fulfil_with(id, |reply| reply.int(count));
            }
            _ => self.fulfil(id, &answer.bytes),
        }
    }

    /// The backends at which a name is to be subscribed to.
    fn homes(&mut self, kind: Kind, name: &[u8]) -> Vec<u32> {
        let is_everywhere = kind != Kind::Shard && (self.map.kind != Backends::Cluster || name.starts_with(b"__key"));
        if is_everywhere {
            return self.owner_places();
        }
        self.owner_of(routing::slot_of(self.map.space, name)).into_iter().collect()
    }
}

/// The reply to one name of SUBSCRIBE and its kin.
fn write_change(reply: &mut Reply, kind: Kind, begins: bool, name: Option<&[u8]>, counted: usize) {
    let (begin, end) = kind.words();
    reply.push(3);
    reply.bulk(if begins { begin } else { end });
    match name {
        Some(name) => reply.bulk(name),
        None => reply.null(),
    }
    reply.count(counted);
}

/// Whether messages for a client are pushes of their own type.
pub(crate) fn has_pushes(proto: Proto) -> bool {
    proto == Proto::Resp3
}
