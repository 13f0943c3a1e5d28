//! Who listens to what, over all workers.
//!
//! The registry is shared; delivery is by mailbox, one message for each worker that has listeners, with the payload
//! shared. A worker writes to its own connections only.

use hashbrown::HashMap;
use net::ConnId;
use parking_lot::RwLock;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A subscriber: where its connection lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Subscriber {
    /// Its worker.
    pub worker: u16,
    /// Its connection there.
    pub conn: ConnId,
}

type Listeners = HashMap<Arc<[u8]>, Vec<Subscriber>, foldhash::fast::RandomState>;

/// See the module.
#[derive(Default)]
pub struct PubSub {
    channels: RwLock<Listeners>,
    patterns: RwLock<Listeners>,
    shard_channels: RwLock<Listeners>,
    channel_count: AtomicUsize,
    pattern_count: AtomicUsize,
}

/// The three kinds of subscription.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// SUBSCRIBE.
    Channel,
    /// PSUBSCRIBE.
    Pattern,
    /// SSUBSCRIBE.
    Shard,
}

/// A message for the listeners of one worker.
#[derive(Clone)]
pub struct Delivery {
    /// Its connections that listen.
    pub conns: Vec<ConnId>,
    /// How they subscribed.
    pub kind: Kind,
    /// The pattern, for `Kind::Pattern`.
    pub pattern: Option<Arc<[u8]>>,
    /// The channel.
    pub channel: Arc<[u8]>,
    /// The message.
    pub payload: Arc<[u8]>,
}

impl PubSub {
    fn listeners(&self, kind: Kind) -> &RwLock<Listeners> {
        match kind {
            Kind::Channel => &self.channels,
            Kind::Pattern => &self.patterns,
            Kind::Shard => &self.shard_channels,
        }
    }

    /// Adds a subscriber; the caller has made sure that it is new.
    pub fn subscribe(&self, kind: Kind, name: &Arc<[u8]>, subscriber: Subscriber) {
        let mut listeners = self.listeners(kind).write();
        listeners.entry(name.clone()).or_default().push(subscriber);
        self.note_counts(kind, listeners.len());
    }

    /// Takes a subscriber off.
    pub fn unsubscribe(&self, kind: Kind, name: &[u8], subscriber: Subscriber) {
        let mut listeners = self.listeners(kind).write();
        if let Some(subscribers) = listeners.get_mut(name) {
            subscribers.retain(|other| *other != subscriber);
            if subscribers.is_empty() {
                listeners.remove(name);
            }
        }
        self.note_counts(kind, listeners.len());
    }

    fn note_counts(&self, kind: Kind, len: usize) {
        match kind {
            Kind::Channel => self.channel_count.store(len, Ordering::Relaxed),
            Kind::Pattern => self.pattern_count.store(len, Ordering::Relaxed),
            Kind::Shard => {}
        }
    }

    /// Finds the listeners of a message and hands one [`Delivery`] a worker to `deliver`. Returns how many get it.
    pub fn publish(
        &self,
        shard: bool,
        channel: &[u8],
        payload: &[u8],
        mut deliver: impl FnMut(u16, Delivery),
    ) -> usize {
        let shared_channel = std::cell::OnceCell::<Arc<[u8]>>::new();
        let shared_payload = std::cell::OnceCell::<Arc<[u8]>>::new();
        let mut count = 0;
        let mut send = |kind: Kind, pattern: Option<&Arc<[u8]>>, subscribers: &[Subscriber]| {
            count += subscribers.len();
            let mut by_worker: HashMap<u16, Vec<ConnId>, foldhash::fast::RandomState> = HashMap::default();
            for subscriber in subscribers {
                by_worker.entry(subscriber.worker).or_default().push(subscriber.conn);
            }
            for (worker, conns) in by_worker {
                deliver(
                    worker,
                    Delivery {
                        conns,
                        kind,
                        pattern: pattern.cloned(),
                        channel: shared_channel.get_or_init(|| channel.into()).clone(),
                        payload: shared_payload.get_or_init(|| payload.into()).clone(),
                    },
                );
            }
        };
        if shard {
            if let Some(subscribers) = self.shard_channels.read().get(channel) {
                send(Kind::Shard, None, subscribers);
            }
            return count;
        }
        if self.channel_count.load(Ordering::Relaxed) > 0
            && let Some(subscribers) = self.channels.read().get(channel)
        {
            send(Kind::Channel, None, subscribers);
        }
        if self.pattern_count.load(Ordering::Relaxed) > 0 {
            for (pattern, subscribers) in self.patterns.read().iter() {
                if keyspace::glob::matches(pattern, channel, false) {
                    send(Kind::Pattern, Some(pattern), subscribers);
                }
            }
        }
        count
    }

    /// Whether anybody listens to anything: without listeners notifications are not even formatted.
    pub fn is_idle(&self) -> bool {
        self.channel_count.load(Ordering::Relaxed) == 0 && self.pattern_count.load(Ordering::Relaxed) == 0
    }

    /// Whether nobody is subscribed to anything, shard channels included.
    pub fn has_no_names(&self) -> bool {
        [Kind::Channel, Kind::Pattern, Kind::Shard].iter().all(|kind| self.names(*kind) == 0)
    }

    /// Names with listeners, those that match a pattern if one is given.
    pub fn active(&self, kind: Kind, pattern: Option<&[u8]>) -> Vec<Arc<[u8]>> {
        let listeners = self.listeners(kind).read();
        listeners
            .keys()
            .filter(|name| pattern.is_none_or(|pattern| keyspace::glob::matches(pattern, name, false)))
            .cloned()
            .collect()
    }

    /// Listeners of one name.
    pub fn count(&self, kind: Kind, name: &[u8]) -> usize {
        self.listeners(kind).read().get(name).map_or(0, Vec::len)
    }

    /// How many different names have listeners.
    pub fn names(&self, kind: Kind) -> usize {
        self.listeners(kind).read().len()
    }
}
