//! What each worker does from time to time: active expiry of its share of slots, client timeouts, rates.

use crate::shared::Survey;
use crate::worker::Worker;
use keyspace::slot::SlotData;
use keyspace::{DbIndex, DbView, Slot};
use net::Conns;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Entries looked at in one hold of a slot's lock.
const EXPIRE_ENTRIES: usize = 256;
/// Between two looks at expiry by one worker.
const EXPIRE_EVERY: Duration = Duration::from_millis(25);
/// Time for one look at expiry with `active-expire-effort 1`.
const EXPIRE_TIME: Duration = Duration::from_micros(1000);
/// Milliseconds between two sweeps over the clients while their memory has a limit: what they may grow by unseen.
const EVICT_EVERY_MS: u64 = 10;
/// The next sweep comes sooner when this share of the limit was read.
const EVICT_PARTS: u64 = 8;
/// Time in which a sweep sees all clients of a worker when there is a `timeout`, so that it is at most so late.
const SWEEP_TIME_MS: usize = 1000;
/// The same without a timeout: 100,000 clients then cost next to nothing, and only soft limits of output wait for it.
const SLOW_SWEEP_TIME_MS: usize = 4000;
/// A worker that nobody talks to looks so many times less often after things.
const QUIET_FACTOR: u64 = 4;
/// Time in which a survey sees all slots.
const SURVEY_TIME_MS: usize = 1000;
/// The same while nothing is written.
const UNCHANGED_SURVEY_TIME_MS: usize = 10_000;
/// Clients looked at in one portion at least.
const SWEEP_SHARE_MIN: usize = 64;

/// Where a worker's periodic work stands.
pub struct Cron {
    next_expiry: Instant,
    next_tenth: Instant,
    next_sweep: Instant,
    read_at_sweep: u64,
    slot: usize,
    /// Milliseconds between two portions of the sweep.
    sweep_every_ms: usize,
    pub(crate) sweep: Sweep,
    /// Reads when the last portion was done.
    reads: u64,
    /// Writes of all workers when the present and the last survey began.
    written: [u64; 2],
    surveyed: usize,
    survey: Survey,
}

/// What a sweep over the clients has found so far.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sweep {
    /// Where it goes on.
    pub(crate) place: usize,
    pub(crate) max_input: usize,
    pub(crate) max_output: usize,
    pub(crate) memory: usize,
}

impl Cron {
    /// Worker `index` starts with its share of slots.
    pub fn new(index: u16) -> Cron {
        let now = Instant::now();
        Cron {
            next_expiry: now,
            next_tenth: now,
            next_sweep: now,
            read_at_sweep: 0,
            slot: index as usize,
            sweep_every_ms: 100,
            sweep: Sweep::default(),
            reads: 0,
            written: [0; 2],
            surveyed: 0,
            survey: Survey::default(),
        }
    }

    /// How many places of clients are looked at in one portion.
    pub(crate) fn sweep_share(&self, clients: usize, has_timeout: bool) -> usize {
        let time_ms = if has_timeout { SWEEP_TIME_MS } else { SLOW_SWEEP_TIME_MS };
        // Up to half of the places are empty, hence twice the share.
        (clients * self.sweep_every_ms / time_ms).max(SWEEP_SHARE_MIN) * 2
    }
}

impl Worker {
    /// Does what is due, after so many bytes were read in all. Returns how long until the next thing is.
    pub(crate) fn run_cron(&mut self, conns: &mut Conns<Worker>, now: Instant, read_bytes: u64) -> Duration {
        let hz = u64::try_from(self.config.hz).unwrap_or(10).clamp(1, 500);
        let may_expire = self.shared.active_expire.load(Ordering::Relaxed)
            && !self.shared.replication.is_replica()
            && self.locks.keyspace().may_expire();
        if now >= self.cron.next_expiry {
            let busy = may_expire && self.expire_some();
            self.cron.next_expiry = now + if busy { EXPIRE_EVERY / 5 } else { EXPIRE_EVERY * 4 };
        }
        let limit = self.clients_limit();
        let read = read_bytes.saturating_sub(self.cron.read_at_sweep);
        if now >= self.cron.next_sweep || limit.is_some_and(|limit| read > limit / EVICT_PARTS) {
            let reads = self.stats.reads.get();
            let is_quiet = reads == self.cron.reads && !may_expire && self.config.maxmemory == 0 && limit.is_none();
            self.cron.reads = reads;
            let every_ms = match limit {
                Some(_) => EVICT_EVERY_MS,
                None if is_quiet => QUIET_FACTOR * 1000 / hz,
                None => 1000 / hz,
            };
            self.cron.read_at_sweep = read_bytes;
            self.cron.next_sweep = now + Duration::from_millis(every_ms);
            self.sweep_clients(conns);
            self.survey_slots(self.cron.sweep_every_ms);
            self.bound_tracking();
            self.cron.sweep_every_ms = usize::try_from(every_ms).unwrap_or(100);
            if is_quiet {
                self.cron.next_expiry = self.cron.next_sweep;
            }
            if self.config.maxmemory > 0 {
                self.locks.enter();
                self.has_memory();
                self.locks.leave();
            }
        }
        if self.index == 0 && now >= self.cron.next_tenth {
            self.shared.targets.prune();
            self.cron.next_tenth = now + Duration::from_millis(100);
            self.measure_rates(now);
            self.save_if_due();
            self.shared.rewrite_if_due(&self.config);
            self.tend_replication();
        }
        let mut next = self.cron.next_expiry.min(self.cron.next_sweep);
        if self.index == 0 {
            next = next.min(self.cron.next_tenth);
        }
        next.saturating_duration_since(now).max(Duration::from_millis(1))
    }

    /// Visits slots for expired keys within a time budget. True: there was much to do, come back soon.
    fn expire_some(&mut self) -> bool {
        let effort = u32::try_from(self.config.active_expire_effort).unwrap_or(1).clamp(1, 10);
        let slots = self.locks.keyspace().space().count();
        let stride = self.shared.workers();
        let mut visited = 0;
        let mut expired = 0;
        self.locks.enter();
        // Waiting for a closed gate is not this work's time.
        let started = Instant::now();
        let until = started + EXPIRE_TIME * effort;
        while visited * stride < slots {
            let slot = Slot::new(self.cron.slot % slots);
            let mut stay = false;
            if self.locks.try_lock(slot) {
                let mut view = DbView::new(&mut self.locks, &mut self.events, DbIndex(0), self.now_ms, self.clock);
                if view.locks.tenure(slot).may_shrink() && view.is_expiry_due(slot) {
                    let visit = view.expire_slot(slot, EXPIRE_ENTRIES);
                    expired += visit.expired;
                    stay = visit.more;
                }
                self.locks.unlock_all();
            }
            if !stay {
                self.cron.slot = (self.cron.slot + stride) % slots;
                visited += 1;
            }
            if (stay || visited % 64 == 0) && Instant::now() >= until {
                break;
            }
        }
        self.locks.leave();
        self.after_command();
        let took = started.elapsed();
        self.stats.expire_us.add(u64::try_from(took.as_micros()).unwrap_or(0));
        if visited * stride < slots {
            self.stats.expire_capped.add(1);
        }
        let milliseconds = u64::try_from(took.as_millis()).unwrap_or(0);
        let threshold = u64::try_from(self.config.latency_monitor_threshold).unwrap_or(0);
        if threshold > 0 && milliseconds >= threshold {
            self.shared.latency.note("expire-cycle", self.now_ms / 1000, milliseconds);
        }
        expired > 0 && visited * stride < slots
    }

    /// Looks at the next of this worker's share of slots, so that all are seen about once a second, and publishes what
    /// it found when it has been round.
    fn survey_slots(&mut self, since_last_ms: usize) {
        let slots = self.locks.keyspace().space().count();
        let stride = self.shared.workers();
        let share = slots.div_ceil(stride);
        let written = self.shared.sum(|stats| stats.dirty.get() + stats.expired.get() + stats.evicted.get());
        if self.cron.surveyed == 0 {
            self.cron.written = [written, self.cron.written[0]];
        }
        // A write hurries the survey that is under way, too.
        let is_unchanged = written == self.cron.written[1];
        let time_ms = if is_unchanged { UNCHANGED_SURVEY_TIME_MS } else { SURVEY_TIME_MS };
        let portion = (share * since_last_ms / time_ms).clamp(1, share);
        self.locks.enter();
        for _ in 0..portion {
            let slot = self.cron.surveyed * stride + self.index as usize;
            if slot >= slots {
                let survey = std::mem::take(&mut self.cron.survey);
                *self.shared.surveys[self.index as usize].lock() = survey;
                self.cron.surveyed = 0;
                break;
            }
            if self.locks.try_lock(Slot::new(slot)) {
                survey_slot(&mut self.cron.survey, self.locks.slot(Slot::new(slot)), self.now_ms);
                self.locks.unlock_all();
            }
            self.cron.surveyed += 1;
        }
        self.locks.leave();
    }

    fn measure_rates(&mut self, now: Instant) {
        let used = keyspace::memory::used_bytes();
        self.shared.peak_memory.fetch_max(used, Ordering::Relaxed);
        let shared = &self.shared;
        let figures = (
            shared.sum(|stats| stats.processed.get()),
            shared.sum(|stats| stats.bytes_in.get()),
            shared.sum(|stats| stats.bytes_out.get()),
            shared.sum(|stats| stats.turns.get()),
            shared.sum(|stats| stats.turn_us.get()),
        );
        let mut rates = shared.rates.lock();
        if let Some((then, ops, input, output, turns, turn_us)) = rates.last {
            let seconds = now.saturating_duration_since(then).as_secs_f64().max(0.001);
            #[allow(clippy::cast_precision_loss)]
            let per_second = |new: u64, old: u64| new.saturating_sub(old) as f64 / seconds;
            // A mean over about 16 samples, as Redis keeps.
            let smooth = |old: f64, new: f64| old + (new - old) / 4.0;
            rates.ops = smooth(rates.ops, per_second(figures.0, ops));
            rates.in_kbps = smooth(rates.in_kbps, per_second(figures.1, input) / 1024.0);
            rates.out_kbps = smooth(rates.out_kbps, per_second(figures.2, output) / 1024.0);
            rates.turns = smooth(rates.turns, per_second(figures.3, turns));
            #[allow(clippy::cast_precision_loss)]
            let spent = figures.4.saturating_sub(turn_us) as f64;
            #[allow(clippy::cast_precision_loss)]
            let count = figures.3.saturating_sub(turns).max(1) as f64;
            rates.turn_us = smooth(rates.turn_us, spent / count);
        }
        rates.last = Some((now, figures.0, figures.1, figures.2, figures.3, figures.4));
    }
}

/// Entries with an expiry that are sampled in one slot.
const TTL_SAMPLES: usize = 4;

/// Adds a slot to a survey.
fn survey_slot(survey: &mut Survey, slot: &SlotData, now_ms: i64) {
    for (index, db) in slot.dbs() {
        if db.is_empty() {
            continue;
        }
        let index = index.0 as usize;
        if survey.databases.len() <= index {
            survey.databases.resize(index + 1, crate::shared::DatabaseSurvey::default());
        }
        let of_db = &mut survey.databases[index];
        of_db.keys += db.len() as u64;
        of_db.expiring += u64::from(db.expiring());
        of_db.table_bytes += db.table().memory_bytes() as u64;
        if db.expiring() > 0 {
            // The first entries of a table by hash are as good a sample as any.
            let ends =
                db.table().iter().take(TTL_SAMPLES * 4).filter_map(keyspace::Entry::expire_at_ms).take(TTL_SAMPLES);
            for left in ends.filter_map(|at_ms| u64::try_from(at_ms - now_ms).ok()) {
                of_db.ttl_ms = of_db.ttl_ms.saturating_add(left);
                of_db.ttl_samples += 1;
            }
        }
    }
}
