//! Hot and big keys, always known: HOTKEYS and BIGKEYS.
//!
//! Nothing is scanned. Each worker looks at one of about [`SAMPLE_EVERY`] commands on keys, while their slots are held:
//! the key goes into the worker's sketch of hot keys, the size of its value into its list of big ones. Besides, a writing
//! command with a large request has the sizes of its keys looked at, so that a value that came in one piece is not
//! missed; one that grew piece by piece has had so many commands that the samples find it. A command that is not looked
//! at costs a subtraction for its whole group, and a comparison.
//!
//! The sketch is Space-Saving with counts that fade by an eighth a second: what counts is what was asked in the last ten
//! seconds or so. A key that took another one's place starts with that one's count, which is taken off again as its
//! possible error, so a rate that is shown is at least that high but for the sampling. Sizes are verified when BIGKEYS is
//! asked.

use crate::exec::batch::Batch;
use crate::session::Session;
use crate::shared::Shared;
use crate::worker::Worker;
use commands::table::{CommandSpec, keys};
use keyspace::{DbIndex, DbView, ValueRef};
use parking_lot::Mutex;
use resp::Args;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Of so many commands on keys one is looked at, in the mean.
pub const SAMPLE_EVERY: u32 = 128;
/// Bytes from which on a writing request has the sizes of its keys looked at.
pub const LARGE_REQUEST: usize = 1024;
/// The same in arguments.
const MANY_ARGUMENTS: usize = 32;
/// Keys in the sketch of a worker.
const HOT_KEYS: usize = 128;
/// Big keys that a worker knows of each type.
const BIG_KEYS: usize = 32;
/// What remains of a count after a second.
const FADE: f64 = 0.875;
/// Samples that a key must surely have had to be shown as hot: fewer may be chance.
const SURE_SAMPLES: f64 = 3.0;

/// The types of values, as TYPE names them.
pub const TYPES: [&str; 6] = ["string", "list", "set", "zset", "hash", "stream"];

/// A key of a database.
type DbKey = (DbIndex, Box<[u8]>);

struct Hot {
    db: DbIndex,
    /// See [`tail_of`].
    tail: u64,
    key: Box<[u8]>,
    count: f64,
    error: f64,
}

#[derive(Clone)]
struct Big {
    db: DbIndex,
    key: Box<[u8]>,
    size: u64,
}

/// What one worker has seen.
#[derive(Default)]
pub struct KeyStats {
    hot: Vec<Hot>,
    samples: f64,
    faded_at_ms: i64,
    big: [Vec<Big>; TYPES.len()],
}

/// A hot key as it is shown.
#[derive(Clone, PartialEq, Debug)]
pub struct HotKey {
    /// Database.
    pub db: DbIndex,
    /// The key.
    pub key: Vec<u8>,
    /// Commands a second.
    pub per_second: f64,
    /// Share of all commands on keys, in percent.
    pub percent: f64,
}

/// A big key as it is shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BigKey {
    /// Index in [`TYPES`].
    pub kind: usize,
    /// Database.
    pub db: DbIndex,
    /// The key.
    pub key: Vec<u8>,
    /// Bytes of a string, elements of anything else.
    pub size: u64,
}

/// The last eight bytes of a key: where most keys of one length differ.
fn tail_of(key: &[u8]) -> u64 {
    key.last_chunk::<8>().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

impl KeyStats {
    fn fade(&mut self, now_ms: i64) {
        let seconds = (now_ms - self.faded_at_ms) / 1000;
        if seconds <= 0 {
            return;
        }
        self.faded_at_ms += seconds * 1000;
        let factor = FADE.powi(i32::try_from(seconds).unwrap_or(i32::MAX));
        self.samples *= factor;
        for hot in &mut self.hot {
            hot.count *= factor;
            hot.error *= factor;
        }
        self.hot.retain(|hot| hot.count > 0.01);
    }

    /// Notes a sampled use of a key.
    pub fn note_use(&mut self, db: DbIndex, key: &[u8], now_ms: i64) {
        self.fade(now_ms);
        self.samples += 1.0;
        let tail = tail_of(key);
        if let Some(hot) = self.hot.iter_mut().find(|hot| hot.tail == tail && *hot.key == *key && hot.db == db) {
            hot.count += 1.0;
            return;
        }
        if self.hot.len() < HOT_KEYS {
            self.hot.push(Hot { db, tail, key: key.into(), count: 1.0, error: 0.0 });
            return;
        }
        // Counts are never NaN.
        let least = self.hot.iter_mut().reduce(|least, hot| if hot.count < least.count { hot } else { least });
        if let Some(least) = least {
            let error = least.count;
            *least = Hot { db, tail, key: key.into(), count: error + 1.0, error };
        }
    }

    /// Notes the size of a value. Returns the least size that is kept, if there is no room for smaller ones.
    pub fn note_size(&mut self, kind: usize, db: DbIndex, key: &[u8], size: u64) -> Option<u64> {
        let of_kind = self.big.get_mut(kind)?;
        if let Some(known) = of_kind.iter_mut().find(|known| *known.key == *key && known.db == db) {
            known.size = size;
            return None;
        }
        let big = Big { db, key: key.into(), size };
        if of_kind.len() < BIG_KEYS {
            of_kind.push(big);
        } else if let Some(least) = of_kind.iter_mut().min_by_key(|known| known.size)
            && least.size < size
        {
            *least = big;
        }
        if of_kind.len() < BIG_KEYS { None } else { of_kind.iter().map(|known| known.size).min() }
    }

    /// Forgets what was big: all keys are gone, or others come in their place.
    pub fn forget_sizes(&mut self) {
        self.big.iter_mut().for_each(Vec::clear);
    }

    /// Forgets what was hot (CONFIG RESETSTAT).
    pub fn forget_uses(&mut self) {
        self.hot.clear();
        self.samples = 0.0;
    }
}

/// The least sizes, by type, that are worth a look while a file is loaded: most keys are passed over without a lock.
#[derive(Default)]
pub struct LeastSizes([AtomicU64; TYPES.len()]);

impl Shared {
    /// Notes the size of a value that is loaded from a file. Any thread may.
    pub(crate) fn note_loaded(&self, db: DbIndex, key: &[u8], value: ValueRef<'_>) {
        let (kind, size) = size_of(value);
        let (Some(least), Some(stats)) = (self.least_sizes.0.get(kind), self.key_stats.first()) else { return };
        if size <= least.load(Ordering::Relaxed) {
            return;
        }
        if let Some(size) = stats.lock().note_size(kind, db, key, size) {
            least.store(size, Ordering::Relaxed);
        }
    }

    /// Before a file is loaded: what was big may be gone, so all sizes are worth a look again.
    pub(crate) fn forget_least_sizes(&self) {
        self.least_sizes.0.iter().for_each(|least| least.store(0, Ordering::Relaxed));
    }
}

/// When the next command is looked at.
pub(crate) struct Sampler {
    left: u32,
    rng: fastrand::Rng,
}

impl Default for Sampler {
    fn default() -> Self {
        Sampler { left: SAMPLE_EVERY, rng: fastrand::Rng::new() }
    }
}

impl Sampler {
    /// Whether one of the `count` commands that have just run is to be looked at.
    #[inline]
    pub(crate) fn is_due(&mut self, count: usize) -> bool {
        #[allow(clippy::cast_possible_truncation)]
        let count = count as u32;
        self.left = self.left.saturating_sub(count);
        self.left == 0
    }

    /// Draws the next distance, so that a client with a rhythm of its own is seen as any other.
    fn restart(&mut self) {
        self.left = self.rng.u32(1..2 * SAMPLE_EVERY);
    }
}

/// The index of a value's type, and its size.
fn size_of(value: ValueRef<'_>) -> (usize, u64) {
    let (kind, size) = match value {
        ValueRef::Str(string) => (0, string.len()),
        ValueRef::List(list) => (1, list.len()),
        ValueRef::Set(set) => (2, set.len()),
        ValueRef::ZSet(zset) => (3, zset.len()),
        ValueRef::Hash(hash) => (4, hash.len()),
        ValueRef::Stream(stream) => return (5, stream.log().len()),
    };
    (kind, size as u64)
}

/// Whether a writing request is large enough for the sizes of its keys to be looked at.
fn is_large(args: Args<'_>) -> bool {
    args.len() > MANY_ARGUMENTS || args.iter().map(<[u8]>::len).sum::<usize>() > LARGE_REQUEST
}

/// Notes the sizes of a command's keys, their slots being held: for what runs away from the workers.
pub(crate) fn note_sizes(stats: &Mutex<KeyStats>, db: &DbView<'_>, spec: &CommandSpec, args: Args<'_>) {
    if !spec.is_write() {
        return;
    }
    for key in keys::touched_keys(spec, &args).unwrap_or_default().iter().take(MANY_ARGUMENTS) {
        let Some(key) = args.get(key.position as usize) else { continue };
        if let Some((kind, size)) = db.get(key).map(size_of) {
            let _ = stats.lock().note_size(kind, db.index(), key, size);
        }
    }
}

impl Worker {
    /// Looks at a command that has just run by itself, if it is its turn or it is large. Its slots are held.
    #[inline]
    pub(crate) fn note_keys(&mut self, session: &Session, spec: &'static CommandSpec, args: Args<'_>) {
        let is_due = self.sampler.is_due(1);
        if is_due || spec.is_write() && (spec.single_key().is_none() || is_large(args)) {
            self.note_keys_of(session, spec, args, is_due);
        }
    }

    #[cold]
    fn note_keys_of(&mut self, session: &Session, spec: &'static CommandSpec, args: Args<'_>, is_sample: bool) {
        if is_sample {
            self.sampler.restart();
        }
        let found = keys::touched_keys(spec, &args).unwrap_or_default();
        for key in found.iter().take(MANY_ARGUMENTS) {
            if let Some(key) = args.get(key.position as usize) {
                self.note_key(session.db, key, is_sample);
            }
        }
    }

    /// As [`Worker::note_keys`] for a group: one of its commands, and those with large requests.
    #[cold]
    pub(crate) fn note_group(&mut self, batch: &Batch, session: &Session, input: &[u8], count: usize, is_due: bool) {
        let sampled = is_due.then(|| {
            self.sampler.restart();
            self.sampler.rng.usize(..count.max(1))
        });
        for index in 0..count {
            let is_sample = sampled == Some(index);
            if let Some(key) = batch.key_to_note(self.routes, input, index, is_sample) {
                self.note_key(session.db, key, is_sample);
            }
        }
    }

    fn note_key(&mut self, db: DbIndex, key: &[u8], is_sample: bool) {
        let slot = self.locks.keyspace().slot(key);
        if !self.locks.holds(slot) {
            return;
        }
        let view = DbView::new(&mut self.locks, &mut self.events, db, self.now_ms, self.clock);
        let size = view.get(key).map(size_of);
        // Threads that run scripts count beyond the workers.
        let of_worker = self.index as usize % self.shared.key_stats.len().max(1);
        let Some(stats) = self.shared.key_stats.get(of_worker) else { return };
        let mut stats = stats.lock();
        if is_sample {
            self.shared.cluster.note_use(slot);
            stats.note_use(db, key, self.now_ms);
        }
        if let Some((kind, size)) = size {
            let _ = stats.note_size(kind, db, key, size);
        }
    }

    /// The hottest keys over all workers, the hottest first.
    pub(crate) fn hot_keys(&self, count: usize) -> Vec<HotKey> {
        let mut samples = 0.0;
        let mut joined: HashMap<DbKey, (f64, f64)> = HashMap::new();
        for stats in &self.shared.key_stats {
            let mut stats = stats.lock();
            stats.fade(self.now_ms);
            samples += stats.samples;
            for hot in &stats.hot {
                let sums = joined.entry((hot.db, hot.key.clone())).or_default();
                sums.0 += hot.count;
                sums.1 += hot.error;
            }
        }
        let mut found: Vec<HotKey> = joined
            .into_iter()
            .map(|((db, key), (count, error))| (db, key, count - error))
            .filter(|(_, _, sure)| *sure >= SURE_SAMPLES)
            .map(|(db, key, sure)| HotKey {
                db,
                key: key.into_vec(),
                per_second: sure * (1.0 - FADE) * f64::from(SAMPLE_EVERY),
                percent: 100.0 * sure / samples.max(1.0),
            })
            .collect();
        found.sort_by(|a, b| b.per_second.total_cmp(&a.per_second).then_with(|| a.key.cmp(&b.key)));
        found.truncate(count);
        found
    }

    /// The biggest keys of each type over all workers, by their present sizes, the biggest first. `only`: of this type.
    pub(crate) fn big_keys(&mut self, count: usize, only: Option<usize>) -> Vec<BigKey> {
        let mut known: HashMap<DbKey, (usize, u64)> = HashMap::new();
        for stats in &self.shared.key_stats {
            for (kind, of_kind) in stats.lock().big.iter().enumerate() {
                for big in of_kind {
                    known.insert((big.db, big.key.clone()), (kind, big.size));
                }
            }
        }
        let entered = self.locks.enter_if_outside();
        let mut found: Vec<BigKey> = known
            .into_iter()
            .filter_map(|((db, key), noted)| {
                // A slot that is busy at this moment is believed.
                let (kind, size) = self.present_size(db, &key, noted)?;
                Some(BigKey { kind, db, key: key.into_vec(), size })
            })
            .filter(|big| only.is_none_or(|only| only == big.kind))
            .collect();
        if entered {
            self.locks.leave();
        }
        found.sort_by(|a, b| (a.kind, b.size, &a.key).cmp(&(b.kind, a.size, &b.key)));
        let mut taken = [0; TYPES.len()];
        found.retain(|big| {
            taken[big.kind] += 1;
            taken[big.kind] <= count
        });
        found
    }

    fn present_size(&mut self, db: DbIndex, key: &[u8], noted: (usize, u64)) -> Option<(usize, u64)> {
        let slot = self.locks.keyspace().slot(key);
        let held_before = self.locks.held();
        if !self.locks.try_lock(slot) {
            return Some(noted);
        }
        let view = DbView::new(&mut self.locks, &mut self.events, db, self.now_ms, self.clock);
        let size = view.get(key).map(size_of);
        if self.locks.held() > held_before && held_before == 0 {
            self.locks.unlock_all();
        }
        size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DB: DbIndex = DbIndex(0);

    #[test]
    fn a_hot_key_stays_among_many_cold_ones() {
        let mut stats = KeyStats { faded_at_ms: 1000, ..KeyStats::default() };
        for round in 0..2000_u32 {
            stats.note_use(DB, format!("cold{round}").as_bytes(), 1000);
            if round % 10 == 0 {
                stats.note_use(DB, b"hot", 1000);
            }
        }
        assert_eq!(stats.hot.len(), HOT_KEYS);
        let best = stats.hot.iter().max_by(|a, b| (a.count - a.error).total_cmp(&(b.count - b.error)));
        assert_eq!(best.map(|hot| &*hot.key), Some(&b"hot"[..]));
        stats.fade(60_000);
        assert!(stats.hot.iter().all(|hot| hot.count < 1.0));
    }

    #[test]
    fn the_biggest_are_kept() {
        let mut stats = KeyStats::default();
        for size in 0..1000_u64 {
            stats.note_size(2, DB, format!("k{}", size * 7919 % 1000).as_bytes(), size * 7919 % 1000);
        }
        let mut sizes: Vec<u64> = stats.big[2].iter().map(|big| big.size).collect();
        sizes.sort_unstable();
        assert_eq!(sizes, (968..1000).collect::<Vec<_>>());
        stats.note_size(2, DB, b"k999", 5);
        assert!(stats.big[2].iter().any(|big| big.size == 5));
    }

    #[test]
    fn samples_come_about_every_so_often() {
        let mut sampler = Sampler::default();
        let mut samples = 0;
        for _ in 0..1000 * SAMPLE_EVERY {
            if sampler.is_due(1) {
                sampler.restart();
                samples += 1;
            }
        }
        assert!((800..1200).contains(&samples), "{samples}");
    }
}
