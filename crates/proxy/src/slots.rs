//! Which backend owns which slot, and how workers learn that it has changed.
//!
//! A [`SlotMap`] never changes; whoever follows the topology makes a new one and publishes it in the [`MapHandle`]. A
//! worker compares one number before it looks at input, and takes the new map over when it has grown.

use ::topology::SlotSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use keyspace::slot::SlotSpace;
use parking_lot::{Condvar, Mutex};

use crate::cursor::Fingerprint;

/// In [`SlotMap::owners`]: nobody owns the slot.
pub const NO_OWNER: u16 = u16::MAX;

/// What kind of servers the backends are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Plain servers, each of which takes any command on its slots' keys, however many slots these are in.
    Plain,
    /// Servers of Oxidis under a manager: they check who owns a slot, and take batches over several slots from a proxy.
    Native,
    /// Nodes of a stock Redis or Valkey Cluster: they check, and take one slot a command.
    Cluster,
}

/// One backend.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BackendAddress {
    /// As it was given, `host:port`: for texts.
    pub name: String,
    /// Where to connect to.
    pub address: SocketAddr,
}

impl BackendAddress {
    /// A backend by its address alone.
    pub fn new(address: SocketAddr) -> BackendAddress {
        BackendAddress { name: address.to_string(), address }
    }
}

/// A replica that may be read from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Replica {
    /// Where it is.
    pub backend: BackendAddress,
    /// Where it stands, if that is known.
    pub zone: Option<String>,
}

/// Who owns which slot at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlotMap {
    /// How keys are spread over slots.
    pub space: SlotSpace,
    /// What the backends are.
    pub kind: Kind,
    /// By slot: an index of `backends`, or [`NO_OWNER`].
    pub owners: Vec<u16>,
    /// The primaries that own slots, each once.
    pub backends: Vec<BackendAddress>,
    /// By backend: its replicas, those that are too far behind left out.
    pub replicas: Vec<Vec<Replica>>,
    /// What a SCAN compares to see whether something moved.
    pub fingerprint: Fingerprint,
    /// Slots that may get another owner at any moment, as far as that is told.
    pub moving: SlotSet,
}

impl SlotMap {
    /// A map in which nobody owns anything.
    pub fn empty(space: SlotSpace, kind: Kind) -> SlotMap {
        SlotMap {
            space,
            kind,
            owners: vec![NO_OWNER; space.count()],
            backends: Vec::new(),
            replicas: Vec::new(),
            fingerprint: Fingerprint::FIXED,
            moving: SlotSet::default(),
        }
    }

    /// The index of a backend, which is added when it is new. `None`: there are too many.
    pub fn backend(&mut self, backend: BackendAddress) -> Option<u16> {
        let known = self.backends.iter().position(|other| other.address == backend.address);
        let index = known.unwrap_or(self.backends.len());
        let index = u16::try_from(index).ok().filter(|index| *index != NO_OWNER)?;
        if known.is_none() {
            self.backends.push(backend);
        }
        Some(index)
    }

    /// Gives slots to a backend; those beyond the space are left out.
    pub fn assign(&mut self, slots: std::ops::RangeInclusive<usize>, owner: u16) {
        let end = (*slots.end()).min(self.owners.len().saturating_sub(1));
        for owned in self.owners.get_mut(*slots.start()..=end).into_iter().flatten() {
            *owned = owner;
        }
    }

    /// Whether a command on keys in several slots of one backend may go there as it is.
    pub fn takes_batches(&self) -> bool {
        self.kind != Kind::Cluster
    }

    /// The backend that owns all slots, if one does.
    pub fn only_owner(&self) -> Option<u16> {
        let first = *self.owners.first()?;
        (first != NO_OWNER && self.owners.iter().all(|owner| *owner == first)).then_some(first)
    }
}

/// The present map, as workers and followers share it.
pub struct MapHandle {
    current: ArcSwap<SlotMap>,
    version: AtomicU64,
    wish: Mutex<Wish>,
    wished: Condvar,
}

#[derive(Default)]
struct Wish {
    is_wanted: bool,
    is_over: bool,
}

impl MapHandle {
    /// A handle that starts with this map.
    pub fn new(map: SlotMap) -> MapHandle {
        MapHandle {
            current: ArcSwap::from_pointee(map),
            version: AtomicU64::new(1),
            wish: Mutex::new(Wish::default()),
            wished: Condvar::new(),
        }
    }

    /// The present map.
    pub fn load(&self) -> Arc<SlotMap> {
        self.current.load_full()
    }

    /// Grows with each map that differs from the one before.
    #[inline]
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Puts a new map in the old one's place; `false` when they are equal. Workers see it before they look at input
    /// again; one that sleeps has nothing to look at.
    pub fn publish(&self, map: SlotMap) -> bool {
        if *self.current.load_full() == map {
            return false;
        }
        self.current.store(Arc::new(map));
        self.version.fetch_add(1, Ordering::AcqRel);
        true
    }

    /// Asks the follower to look at the topology soon, since a backend has said that the map is old.
    pub fn request_refresh(&self) {
        let mut wish = self.wish.lock();
        if !wish.is_wanted {
            wish.is_wanted = true;
            self.wished.notify_all();
        }
    }

    /// For followers: waits until somebody wants a look at the topology, or the time is over. `false`: the proxy ends.
    pub fn wait_for_wish(&self, at_most: Duration) -> bool {
        let until = Instant::now() + at_most;
        let mut wish = self.wish.lock();
        while !wish.is_wanted && !wish.is_over {
            if self.wished.wait_until(&mut wish, until).timed_out() {
                break;
            }
        }
        wish.is_wanted = false;
        !wish.is_over
    }

    /// Ends the followers.
    pub fn close(&self) {
        self.wish.lock().is_over = true;
        self.wished.notify_all();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    fn address(port: u16) -> BackendAddress {
        BackendAddress::new(SocketAddr::from(([127, 0, 0, 1], port)))
    }

    #[test]
    fn slots_are_assigned_and_the_only_owner_is_found() {
        let mut map = SlotMap::empty(SlotSpace::Redis, Kind::Plain);
        assert_eq!(map.only_owner(), None);
        let first = map.backend(address(1)).unwrap();
        map.assign(0..=16383, first);
        assert_eq!(map.only_owner(), Some(first));
        let second = map.backend(address(2)).unwrap();
        assert_eq!(map.backend(address(1)), Some(first), "an address is there once");
        map.assign(100..=usize::MAX, second);
        assert_eq!((map.owners[99], map.owners[100], map.owners[16383]), (first, second, second));
        assert_eq!(map.only_owner(), None);
    }

    #[test]
    fn only_a_different_map_is_a_new_version() {
        let handle = MapHandle::new(SlotMap::empty(SlotSpace::Redis, Kind::Plain));
        assert!(!handle.publish(SlotMap::empty(SlotSpace::Redis, Kind::Plain)));
        assert_eq!(handle.version(), 1);
        assert!(handle.publish(SlotMap::empty(SlotSpace::Redis, Kind::Cluster)));
        assert_eq!(handle.version(), 2);
    }

    #[test]
    fn a_wish_is_kept_until_somebody_waits_for_it() {
        let handle = MapHandle::new(SlotMap::empty(SlotSpace::Redis, Kind::Plain));
        handle.request_refresh();
        assert!(handle.wait_for_wish(Duration::from_secs(60)));
        assert!(handle.wait_for_wish(Duration::from_millis(1)), "nobody wished, and time is over");
        handle.close();
        assert!(!handle.wait_for_wish(Duration::from_secs(60)));
    }
}
