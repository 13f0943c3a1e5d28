//! Access bits of entries (LRU and LFU) and the choice of keys to evict.
//!
//! LRU: the 24 bits are seconds, as OBJECT IDLETIME tells them. LFU: 16 bits of minutes at the last decay and an
//! 8-bit logarithmic counter, by Redis' rules (`lfu-log-factor`, `lfu-decay-time`, new keys start at 5).

use crate::db::DbView;
use crate::entry::Entry;
use crate::events::NotifyClass;
use crate::slot::{DbIndex, Slot};

/// Counter of a new key under LFU.
pub const LFU_INIT: u32 = 5;

/// How accesses are noted; one copy a batch of commands.
#[derive(Clone, Copy, Debug, Default)]
pub struct AccessClock {
    /// Whether the policy is one of the LFU ones.
    pub lfu: bool,
    /// Unix seconds, low 24 bits.
    pub seconds: u32,
    /// `lfu-log-factor`.
    pub log_factor: u32,
    /// `lfu-decay-time`, minutes; 0 = never.
    pub decay_minutes: u32,
}

impl AccessClock {
    /// A clock at `now_ms`.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub fn at(now_ms: i64, lfu: bool, log_factor: u32, decay_minutes: u32) -> AccessClock {
        AccessClock { lfu, seconds: ((now_ms / 1000) & 0xFF_FFFF) as u32, log_factor, decay_minutes }
    }

    fn minutes(self) -> u32 {
        (self.seconds / 60) & 0xFFFF
    }

    /// Bits for a new entry.
    #[inline]
    pub fn fresh(self) -> u32 {
        if self.lfu { self.minutes() << 8 | LFU_INIT } else { self.seconds }
    }

    /// Bits for an entry that comes with its history: seconds since its last access, or its LFU counter. What the
    /// policy has no use for is not taken.
    pub fn restored(self, idle_s: Option<u64>, frequency: Option<u8>) -> u32 {
        match (self.lfu, idle_s, frequency) {
            (true, _, Some(frequency)) => self.minutes() << 8 | u32::from(frequency),
            #[allow(clippy::cast_possible_truncation, reason = "24 bits are kept")]
            (false, Some(idle_s), _) => (u64::from(self.seconds).wrapping_sub(idle_s) & 0xFF_FFFF) as u32,
            _ => self.fresh(),
        }
    }

    /// Notes an access.
    #[inline]
    pub fn touch(self, entry: &Entry) {
        if self.lfu {
            self.touch_lfu(entry);
        } else {
            let bits = entry.access();
            if bits != self.seconds {
                entry.set_access(self.seconds);
            }
        }
    }

    fn touch_lfu(self, entry: &Entry) {
        let mut counter = self.frequency(entry.access());
        if counter < 255 {
            let above = counter.saturating_sub(LFU_INIT);
            let odds = 1.0 / (f64::from(above) * f64::from(self.log_factor) + 1.0);
            if fastrand::f64() < odds {
                counter += 1;
            }
        }
        entry.set_access(self.minutes() << 8 | counter);
    }

    /// The LFU counter after decay.
    pub fn frequency(self, access: u32) -> u32 {
        let (last, counter) = (access >> 8, access & 0xFF);
        if self.decay_minutes == 0 {
            return counter;
        }
        let now = self.minutes();
        let elapsed = if now >= last { now - last } else { 0x1_0000 - last + now };
        counter.saturating_sub(elapsed / self.decay_minutes)
    }

    /// Seconds since the last access under LRU.
    pub fn idle_seconds(self, access: u32) -> u32 {
        if self.seconds >= access { self.seconds - access } else { 0x100_0000 - access + self.seconds }
    }
}

/// The eight policies of `maxmemory-policy`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Policy {
    /// Writes that need memory are refused.
    #[default]
    NoEviction,
    /// Least recently used of all keys.
    AllKeysLru,
    /// Least frequently used of all keys.
    AllKeysLfu,
    /// Any key.
    AllKeysRandom,
    /// Least recently used of keys with an expiry.
    VolatileLru,
    /// Least frequently used of keys with an expiry.
    VolatileLfu,
    /// Any key with an expiry.
    VolatileRandom,
    /// The key that ends soonest.
    VolatileTtl,
}

impl Policy {
    /// Whether accesses are noted the LFU way.
    pub fn is_lfu(self) -> bool {
        matches!(self, Policy::AllKeysLfu | Policy::VolatileLfu)
    }

    /// Whether only keys with an expiry may go.
    pub fn is_volatile(self) -> bool {
        matches!(self, Policy::VolatileLru | Policy::VolatileLfu | Policy::VolatileRandom | Policy::VolatileTtl)
    }

    /// How much an entry deserves to go: the highest of the sampled goes. `None`: it may not go.
    pub fn score(self, entry: &Entry, clock: AccessClock) -> Option<u64> {
        if self.is_volatile() && !entry.has_expiry() {
            return None;
        }
        match self {
            Policy::NoEviction => None,
            Policy::AllKeysLru | Policy::VolatileLru => Some(u64::from(clock.idle_seconds(entry.access()))),
            Policy::AllKeysLfu | Policy::VolatileLfu => Some(u64::from(255 - clock.frequency(entry.access()).min(255))),
            Policy::AllKeysRandom | Policy::VolatileRandom => Some(fastrand::u64(..)),
            Policy::VolatileTtl => entry.expire_at_ms().map(|at| u64::MAX - u64::try_from(at).unwrap_or(0)),
        }
    }
}

impl DbView<'_> {
    /// Offers the best candidate to go among a few random entries of the held slot, as (score, database, key).
    pub fn eviction_candidate(
        &self,
        slot: Slot,
        policy: Policy,
        rng: &mut fastrand::Rng,
        samples: usize,
    ) -> Option<(u64, DbIndex, Vec<u8>)> {
        let clock = self.access_clock();
        let mut best: Option<(u64, DbIndex, Vec<u8>)> = None;
        for (index, db) in self.locks.slot(slot).dbs() {
            if db.is_empty() || (policy.is_volatile() && db.expiring == 0) {
                continue;
            }
            db.table.sample(rng, samples, |entry| {
                if let Some(score) = policy.score(entry, clock)
                    && !self.locks.keyspace().snapshots.wants_large(entry)
                    && best.as_ref().is_none_or(|(best_score, ..)| score > *best_score)
                {
                    best = Some((score, index, entry.key().to_vec()));
                }
            });
        }
        best
    }

    /// Evicts a key of the view's database. True: it was there.
    pub fn evict(&mut self, key: &[u8]) -> bool {
        let gone = self.remove(key);
        if gone {
            self.events.evicted += 1;
            self.gone(key, crate::journal::Deletion::Evicted);
            self.signal_by_server(key);
            let db = self.index();
            self.events.notify(NotifyClass::EVICTED, "evicted", db, key);
        }
        gone
    }
}
