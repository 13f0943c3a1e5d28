//! `maxmemory`: makes room before a command that may need memory.
//!
//! Candidates are sampled from random slots, a few at a time, with only that slot locked; the best of the samples goes.
//! Work per command is bounded: what is left over the limit after it is left to the next command and to the cron.

use crate::worker::Worker;
use commands::CmdError;
use keyspace::eviction::Policy;
use keyspace::{DbIndex, DbView, Slot};

/// The answer when no room can be made.
pub const OUT_OF_MEMORY: CmdError = CmdError::new("OOM command not allowed when used memory > 'maxmemory'.");

/// Keys evicted before one command at most.
const EVICTIONS_PER_COMMAND: usize = 64;
/// Slots looked at for one eviction at most.
const SLOTS_PER_EVICTION: usize = 4096;
/// Slots with candidates that are compared for one eviction.
const SLOTS_COMPARED: usize = 4;

impl Worker {
    /// Whether a command that needs memory may run: true at once below the limit, else after evicting.
    pub(crate) fn has_memory(&mut self) -> bool {
        let limit = self.config.maxmemory;
        if limit == 0 || (self.shared.replication.is_replica() && self.config.replica_ignore_maxmemory) {
            return true;
        }
        for _ in 0..EVICTIONS_PER_COMMAND {
            // As in Redis: what waits to be written to the log is not the data's.
            let waiting = self.shared.aof_report().buffer_bytes;
            if (keyspace::memory::used_bytes() as u64).saturating_sub(waiting) <= limit {
                return true;
            }
            if !self.evict_one() {
                return self.shared.keyspace.reclaimer.pending() > 0 && self.settings.policy != Policy::NoEviction;
            }
        }
        // The values are going; a giant one is freed in the background.
        true
    }

    /// Evicts the best of a few sampled keys. False: there is none to evict.
    pub(crate) fn evict_one(&mut self) -> bool {
        let policy = self.settings.policy;
        if policy == Policy::NoEviction {
            return false;
        }
        let samples = usize::try_from(self.config.maxmemory_samples).unwrap_or(5).clamp(1, 64);
        let Some((slot, db, key)) = self.best_candidate(policy, samples) else { return false };
        if !self.locks.try_lock(slot) {
            return true;
        }
        if !self.locks.tenure(slot).may_shrink() {
            self.locks.unlock_all();
            return true;
        }
        let mut view = DbView::new(&mut self.locks, &mut self.events, db, self.now_ms, self.clock);
        view.evict(&key);
        self.locks.unlock_all();
        self.publish_notifications();
        if self.events.has_invalidations() {
            self.tell_invalidations(None);
        }
        true
    }

    fn best_candidate(&mut self, policy: Policy, samples: usize) -> Option<(Slot, DbIndex, Vec<u8>)> {
        let slots = self.locks.keyspace().space().count();
        let mut best: Option<(u64, Slot, DbIndex, Vec<u8>)> = None;
        let mut compared = 0;
        let mut rng = fastrand::Rng::new();
        let start = rng.usize(..slots);
        for step in 0..slots.min(SLOTS_PER_EVICTION) {
            // A stride prime to the number of slots visits them in a scattered order.
            let slot = Slot::new((start + step * 5_741) % slots);
            if !self.locks.try_lock(slot) {
                continue;
            }
            let view = DbView::new(&mut self.locks, &mut self.events, DbIndex(0), self.now_ms, self.clock);
            let may_go = view.locks.tenure(slot).may_shrink();
            let candidate = if may_go { view.eviction_candidate(slot, policy, &mut rng, samples) } else { None };
            self.locks.unlock_all();
            if let Some((score, db, key)) = candidate {
                compared += 1;
                if best.as_ref().is_none_or(|(best_score, ..)| score > *best_score) {
                    best = Some((score, slot, db, key));
                }
                if compared >= SLOTS_COMPARED {
                    break;
                }
            }
        }
        best.map(|(_, slot, db, key)| (slot, db, key))
    }
}
