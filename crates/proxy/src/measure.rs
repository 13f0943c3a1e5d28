//! How long requests take at backends, by command and by backend; and those that took long, with their arguments.
//!
//! Times are those of the loop's turns: from the turn in which a request was put into its lane to the one in which its reply
//! came. So measuring reads no clock; what it cannot see is shorter than a turn. A run of different commands in one pipeline
//! counts for its backend only.

use commands::CommandId;
use commands::table;
use resp::{Limits, Parse, ParseState, Request, parse_request};
use server::slowlog::kept_arguments;

use crate::shared::Counter;

/// Buckets within a power of two.
const SUB_BUCKETS: u32 = 4;
/// Buckets in all: up to 2^26 microseconds, about a minute.
const BUCKETS: usize = 26 * SUB_BUCKETS as usize;

/// Counts of durations, to a quarter of their size.
pub struct Histogram {
    buckets: [Counter; BUCKETS],
    /// Sum of all, in microseconds.
    pub sum_us: Counter,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { buckets: std::array::from_fn(|_| Counter::default()), sum_us: Counter::default() }
    }
}

impl Histogram {
    /// Adds `count` durations.
    #[inline]
    pub fn add(&self, us: u32, count: u32) {
        if let Some(bucket) = self.buckets.get(Histogram::bucket_of(us)) {
            bucket.add(u64::from(count));
        }
        self.sum_us.add(u64::from(us) * u64::from(count));
    }

    #[inline]
    fn bucket_of(us: u32) -> usize {
        if us < SUB_BUCKETS {
            return us as usize;
        }
        // The two bits behind the highest one choose among the four of its power.
        let power = us.ilog2();
        let part = (us >> (power - 2)) & (SUB_BUCKETS - 1);
        (((power - 1) * SUB_BUCKETS + part) as usize).min(BUCKETS - 1)
    }

    /// The highest duration of a bucket, in microseconds.
    fn top_of(bucket: usize) -> u64 {
        let (power, part) = ((bucket as u64) / u64::from(SUB_BUCKETS) + 1, (bucket as u64) % u64::from(SUB_BUCKETS));
        if power == 1 { part } else { ((u64::from(SUB_BUCKETS) + part + 1) << (power - 2)) - 1 }
    }

    /// The buckets with something in them: highest duration in microseconds, and how many.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let counts = self.buckets.iter().map(Counter::get).enumerate();
        counts.filter(|(_, count)| *count > 0).map(|(bucket, count)| (Histogram::top_of(bucket), count))
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(Counter::get).sum()
    }

    /// Forgets all; only the owning thread may.
    pub fn clear(&self) {
        self.buckets.iter().for_each(|bucket| bucket.set(0));
        self.sum_us.set(0);
    }
}

/// A request that took long.
#[derive(Clone, Debug)]
pub struct SlowEntry {
    /// Its number.
    pub id: u64,
    /// Unix seconds when its reply came.
    pub time_s: u64,
    /// From its arrival at the proxy to its reply.
    pub total_us: u64,
    /// Its arguments, cut.
    pub args: Vec<Vec<u8>>,
    /// The client's address.
    pub address: String,
    /// The client's name.
    pub name: Vec<u8>,
    /// The backend.
    pub backend: String,
}

/// The last requests that took long (`slowlog-log-slower-than`, `slowlog-max-len`).
pub type SlowLog = server::slowlog::SlowLog<SlowEntry>;

/// The arguments of a request as the log keeps them: cut, secrets hidden.
pub fn arguments(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut request = Request::new();
    let parsed = parse_request(bytes, &mut ParseState::new(), &Limits::new(usize::MAX), &mut request);
    if parsed != Parse::Request {
        return Vec::new();
    }
    let args = request.args(bytes);
    match table::resolve(&args) {
        Ok(spec) => server::redact::arguments(spec, kept_arguments(args)),
        Err(_) => kept_arguments(args),
    }
}

/// The number of a command in records; [`MIXED`] for a run of several.
#[inline]
pub fn number_of(id: CommandId) -> u16 {
    u16::try_from(id.index()).unwrap_or(MIXED)
}

/// A run of different commands.
pub const MIXED: u16 = u16::MAX;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    #[test]
    fn a_bucket_holds_what_lies_below_its_top_and_above_the_one_before() {
        for us in (0..5_000).chain([10_000, 65_535, 65_536, 1_000_000, 60_000_000]) {
            let bucket = Histogram::bucket_of(us);
            assert!(u64::from(us) <= Histogram::top_of(bucket), "{us}");
            assert!(bucket == 0 || u64::from(us) > Histogram::top_of(bucket - 1), "{us}");
        }
        assert_eq!(Histogram::bucket_of(u32::MAX), BUCKETS - 1);
    }

    #[test]
    fn counts_are_kept() {
        let histogram = Histogram::default();
        histogram.add(5, 3);
        histogram.add(1_000, 1);
        assert_eq!(histogram.count(), 4);
        assert_eq!(histogram.sum_us.get(), 1_015);
        assert_eq!(histogram.buckets().collect::<Vec<_>>(), [(5, 3), (1_023, 1)]);
    }

    #[test]
    fn the_log_shows_no_secrets() {
        assert_eq!(arguments(b"*2\r\n$4\r\nAUTH\r\n$1\r\nx\r\n"), [b"AUTH".to_vec(), b"(redacted)".to_vec()]);
        let log = SlowLog::default();
        for number in 0..3_u64 {
            log.add(2, |id| SlowEntry {
                id,
                time_s: number,
                total_us: 1,
                args: Vec::new(),
                address: String::new(),
                name: Vec::new(),
                backend: String::new(),
            });
        }
        assert_eq!(log.newest(9).iter().map(|entry| entry.id).collect::<Vec<_>>(), [2, 1]);
    }
}
