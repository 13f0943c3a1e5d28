//! Counters of one worker, read by all: only the owner writes.

use crate::ticks::Rate;
use commands::CommandId;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Rows of the command table.
pub const COMMANDS: usize = CommandId::COUNT;

/// Parts of each power of two of nanoseconds that the latency histograms tell apart: to 6 %.
const PARTS_BITS: u32 = 4;
/// The largest power of two with a bucket of its own: 18 minutes.
const LATENCY_POWERS: u32 = 40;
/// Buckets of a latency histogram.
pub const LATENCY_BUCKETS: usize = ((LATENCY_POWERS - PARTS_BITS + 2) as usize) << PARTS_BITS;

/// Calls of one command by the nanoseconds they took.
///
/// Buckets are linear up to 16 ns; from there on each power of two has sixteen of equal width, so that the bounds of
/// powers of two are bounds of buckets.
pub struct LatencyHistogram([Counter; LATENCY_BUCKETS]);

impl LatencyHistogram {
    /// The bucket of a duration.
    #[inline]
    pub fn bucket(ns: u64) -> usize {
        if ns >> PARTS_BITS == 0 {
            #[allow(clippy::cast_possible_truncation)]
            return ns as usize;
        }
        let power = 63 - ns.leading_zeros();
        #[allow(clippy::cast_possible_truncation)]
        let part = (ns >> (power - PARTS_BITS)) as usize & ((1 << PARTS_BITS) - 1);
        ((((power - PARTS_BITS + 1) as usize) << PARTS_BITS) + part).min(LATENCY_BUCKETS - 1)
    }

    /// The longest duration of a bucket.
    pub fn bucket_end_ns(bucket: usize) -> u64 {
        let (group, part) = (bucket >> PARTS_BITS, (bucket & ((1 << PARTS_BITS) - 1)) as u64);
        if group == 0 { part } else { (((1 << PARTS_BITS) + part + 1) << (group - 1)) - 1 }
    }

    /// Counts a call.
    #[inline]
    pub fn note(&self, ns: u64) {
        self.0[Self::bucket(ns)].add(1);
    }

    /// Adds the counts to `sums`, which has a place for each bucket.
    pub fn add_to(&self, sums: &mut [u64]) {
        for (sum, counter) in sums.iter_mut().zip(&self.0) {
            *sum += counter.get();
        }
    }
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        LatencyHistogram(std::array::from_fn(|_| Counter::default()))
    }
}

/// A counter with one writer.
#[derive(Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds; only the owner may.
    #[inline]
    pub fn add(&self, delta: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(delta), Ordering::Relaxed);
    }

    /// Sets; only the owner may.
    #[inline]
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// The value.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counts of one command.
#[derive(Default)]
pub struct CommandStats {
    /// Calls that ran.
    pub calls: Counter,
    /// Ticks they took.
    pub ticks: Counter,
    /// Calls refused before they ran.
    pub rejected: Counter,
    /// Calls that answered an error.
    pub failed: Counter,
    /// Calls by their time; made with the first call.
    pub latency: OnceLock<Box<LatencyHistogram>>,
}

/// All counters of one worker.
pub struct WorkerStats {
    /// By command.
    pub commands: Box<[CommandStats]>,
    /// Commands run.
    pub processed: Counter,
    /// Connections accepted.
    pub connections: Counter,
    /// Connections refused.
    pub rejected: Counter,
    /// Clients now.
    pub clients: Counter,
    /// Bytes read.
    pub bytes_in: Counter,
    /// Bytes written.
    pub bytes_out: Counter,
    /// Error replies.
    pub errors: Counter,
    /// Reader look-ups that hit.
    pub hits: Counter,
    /// Reader look-ups that missed.
    pub misses: Counter,
    /// Keys expired.
    pub expired: Counter,
    /// Fields of hashes expired.
    pub expired_fields: Counter,
    /// Keys evicted.
    pub evicted: Counter,
    /// Changes of keys.
    pub dirty: Counter,
    /// Blocked clients now.
    pub blocked: Counter,
    /// Read events processed.
    pub reads: Counter,
    /// Write calls done.
    pub writes: Counter,
    /// Turns of the event loop.
    pub turns: Counter,
    /// Microseconds of the turns' work.
    pub turn_us: Counter,
    /// Clients cut for their output buffer.
    pub output_limit_disconnections: Counter,
    /// Clients cut for their query buffer.
    pub query_limit_disconnections: Counter,
    /// Clients closed to keep all within `maxmemory-clients`.
    pub evicted_clients: Counter,
    /// Panics caught while running commands.
    pub panics: Counter,
    /// Bytes of sessions and of the buffers kept for them, by the last sweep.
    pub clients_memory: Counter,
    /// Clients that wait with a time limit.
    pub timers: Counter,
    /// Microseconds spent on active expiry.
    pub expire_us: Counter,
    /// Looks at active expiry that ended by their time limit.
    pub expire_capped: Counter,
    /// Largest input kept for one client lately.
    pub recent_max_input: Counter,
    /// Largest output kept for one client lately.
    pub recent_max_output: Counter,
}

impl Default for WorkerStats {
    fn default() -> Self {
        WorkerStats {
            commands: (0..COMMANDS).map(|_| CommandStats::default()).collect(),
            processed: Counter::default(),
            connections: Counter::default(),
            rejected: Counter::default(),
            clients: Counter::default(),
            bytes_in: Counter::default(),
            bytes_out: Counter::default(),
            errors: Counter::default(),
            hits: Counter::default(),
            misses: Counter::default(),
            expired: Counter::default(),
            expired_fields: Counter::default(),
            evicted: Counter::default(),
            dirty: Counter::default(),
            blocked: Counter::default(),
            reads: Counter::default(),
            writes: Counter::default(),
            turns: Counter::default(),
            turn_us: Counter::default(),
            output_limit_disconnections: Counter::default(),
            query_limit_disconnections: Counter::default(),
            evicted_clients: Counter::default(),
            panics: Counter::default(),
            clients_memory: Counter::default(),
            timers: Counter::default(),
            expire_us: Counter::default(),
            expire_capped: Counter::default(),
            recent_max_input: Counter::default(),
            recent_max_output: Counter::default(),
        }
    }
}

impl CommandStats {
    fn reset(&self) {
        for counter in [&self.calls, &self.ticks, &self.rejected, &self.failed] {
            counter.set(0);
        }
        if let Some(latency) = self.latency.get() {
            latency.0.iter().for_each(|bucket| bucket.set(0));
        }
    }
}

impl WorkerStats {
    /// Forgets what CONFIG RESETSTAT forgets: all but the figures of what there is now. Only the owner may, or who has
    /// the gate closed.
    pub fn reset(&self) {
        for command in &self.commands {
            command.reset();
        }
        let counters = [
            &self.processed,
            &self.connections,
            &self.rejected,
            &self.bytes_in,
            &self.bytes_out,
            &self.errors,
            &self.hits,
            &self.misses,
            &self.expired,
            &self.expired_fields,
            &self.evicted,
            &self.reads,
            &self.writes,
            &self.turns,
            &self.turn_us,
            &self.output_limit_disconnections,
            &self.query_limit_disconnections,
            &self.evicted_clients,
            &self.expire_us,
            &self.expire_capped,
        ];
        for counter in counters {
            counter.set(0);
        }
    }

    /// Notes a call of a command that took `ticks`.
    #[inline]
    pub fn note_call(&self, id: CommandId, ticks: u64, rate: Rate) {
        let stats = &self.commands[id.index()];
        stats.calls.add(1);
        stats.ticks.add(ticks);
        stats.latency.get_or_init(Box::default).note(rate.nanoseconds(ticks));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_one_another() {
        let mut end = None;
        for bucket in 0..LATENCY_BUCKETS {
            let start = end.map_or(0, |end| end + 1);
            assert_eq!(LatencyHistogram::bucket(start), bucket);
            end = Some(LatencyHistogram::bucket_end_ns(bucket));
            assert_eq!(LatencyHistogram::bucket(end.unwrap_or(0)), bucket);
        }
        assert_eq!(LatencyHistogram::bucket(u64::MAX), LATENCY_BUCKETS - 1);
        for power in 5..40 {
            assert_eq!(LatencyHistogram::bucket(1 << power), LatencyHistogram::bucket((1 << power) - 1) + 1);
        }
    }
}
