//! Latency histograms: a fine one that is recorded into, and redis-benchmark's view of it.
//!
//! Recording uses 1 µs to 10 minutes at three digits (four with `--precision 4`). The report of
//! redis-benchmark has its own, coarser layout: 10 µs to 3 s, hence buckets of 8 µs and more.
//! Both layouts double their bucket width at powers of two, so every fine bucket lies inside
//! exactly one coarse bucket and [`redis_view`] loses nothing: it equals recording twice.
//!
//! The rows follow the bucket iterators of the HDR histogram library as Redis prints them:
//! [`percentile_rows`] halves the distance to 100 % at each step, [`linear_rows`] takes steps of
//! 100 µs up to 2 ms and of 1 ms from there.

use hdrhistogram::Histogram;

/// A histogram of microseconds.
pub(crate) type Latency = Histogram<u64>;

/// Longest latency told apart from longer ones, in µs: ten minutes.
pub(crate) const LATENCY_MAX_US: u64 = 600_000_000;

/// An empty fine histogram with at least `digits` significant digits (clamped to 3 … 4).
pub(crate) fn recorder(digits: u8) -> Latency {
    with_bounds(1, LATENCY_MAX_US, digits.clamp(3, 4))
}

/// Takes in another histogram of a test; all of a test have the same bounds.
pub(crate) fn add(sum: &mut Latency, part: &Latency) {
    let added = sum.add(part);
    debug_assert!(added.is_ok(), "all histograms of a test have the same bounds");
}

/// Takes in another histogram where there may be none yet.
pub(crate) fn add_option(sum: &mut Option<Latency>, part: Option<&Latency>) {
    match (sum.as_mut(), part) {
        (Some(sum), Some(part)) => add(sum, part),
        (None, part) => *sum = part.cloned(),
        (Some(_), None) => {}
    }
}

/// What redis-benchmark would hold for the same samples, at `digits` (clamped to 1 … 4).
pub(crate) fn redis_view(fine: &Latency, digits: u8) -> Latency {
    let mut view = with_bounds(REDIS_LOW_US, REDIS_HIGH_US, digits.clamp(1, 4));
    for bucket in fine.iter_recorded() {
        // The library names a bucket by its highest value; the lowest is as good and stays
        // inside when it is clamped.
        let value = fine.lowest_equivalent(bucket.value_iterated_to()).min(REDIS_HIGH_US);
        view.saturating_record_n(value, bucket.count_at_value());
    }
    view
}

/// A line of a distribution table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Row {
    /// Share of all samples, in percent.
    pub(crate) percent: f64,
    /// Highest value of the bucket, in µs.
    pub(crate) value_us: u64,
    /// Samples up to here.
    pub(crate) cumulative: u64,
}

/// Rows of "Latency by percentile distribution".
pub(crate) fn percentile_rows(view: &Latency) -> Vec<Row> {
    let total = view.len();
    let mut rows = Vec::new();
    let mut cursor = Cursor::new(view);
    let mut target = 0.0_f64;
    if total > 0 {
        cursor.step();
    }
    while cursor.cumulative < total || (total > 0 && cursor.pending(target)) {
        if cursor.pending(target) {
            rows.push(cursor.row(target));
            // Natural logarithms, as the library divides them: log2() rounds otherwise.
            let halvings = ((100.0 / (100.0 - target)).ln() / 2.0_f64.ln()).floor() + 1.0;
            target += 100.0 / halvings.exp2();
            if cursor.cumulative >= total {
                break;
            }
        } else {
            cursor.step();
        }
    }
    rows.push(cursor.row(100.0));
    keep_changes(rows, total)
}

/// Rows of "Cumulative distribution of latencies".
pub(crate) fn linear_rows(view: &Latency) -> Vec<Row> {
    let total = view.len();
    let mut rows = Vec::new();
    let mut cursor = Cursor::new(view);
    let mut step = LINEAR_STEP_US;
    let mut level = step;
    while cursor.cumulative < total || cursor.next_lowest > view.lowest_equivalent(level) {
        while cursor.lowest < view.lowest_equivalent(level) {
            cursor.step();
        }
        // Redis: divides before it multiplies here, and the other way round above.
        let percent = float(u128::from(cursor.cumulative)) / float(u128::from(total)) * 100.0;
        rows.push(cursor.row(percent));
        level += step;
        if cursor.highest() > LINEAR_FINE_US {
            step = LINEAR_COARSE_STEP_US;
        }
    }
    keep_changes(rows, total)
}

/// The value (highest of its bucket, µs) that `percent` of the samples do not exceed, by Redis's
/// rounding: the rank is rounded to the nearest, at least the first.
pub(crate) fn value_at_percent(histogram: &Latency, percent: f64) -> u64 {
    let wanted = rank(percent, histogram.len());
    let mut seen = 0;
    for bucket in histogram.iter_recorded() {
        seen += bucket.count_at_value();
        if seen >= wanted {
            return histogram.highest_equivalent(bucket.value_iterated_to());
        }
    }
    0
}

/// Mean in µs over the middles of the buckets, 0 when empty.
pub(crate) fn mean_us(histogram: &Latency) -> f64 {
    if histogram.is_empty() {
        return 0.0;
    }
    let sum: u128 = histogram
        .iter_recorded()
        .map(|bucket| {
            let middle = histogram.median_equivalent(bucket.value_iterated_to());
            u128::from(middle) * u128::from(bucket.count_at_value())
        })
        .sum();
    float(sum) / float(u128::from(histogram.len()))
}

fn with_bounds(low: u64, high: u64, digits: u8) -> Latency {
    match Histogram::new_with_bounds(low, high, digits) {
        Ok(histogram) => histogram,
        Err(error) => unreachable!("bounds are constants and digits are clamped: {error}"),
    }
}

/// Walks all buckets in order, empty ones too.
struct Cursor<'a> {
    view: &'a Latency,
    /// Lowest value of the bucket stood on; meaningless before the first step.
    lowest: u64,
    next_lowest: u64,
    count: u64,
    cumulative: u64,
}

impl<'a> Cursor<'a> {
    fn new(view: &'a Latency) -> Self {
        Cursor { view, lowest: 0, next_lowest: 0, count: 0, cumulative: 0 }
    }

    fn step(&mut self) {
        self.lowest = self.next_lowest;
        self.next_lowest = self.view.next_non_equivalent(self.lowest);
        self.count = self.view.count_at(self.lowest);
        self.cumulative += self.count;
    }

    fn pending(&self, target: f64) -> bool {
        self.count != 0 && target <= share(self.cumulative, self.view.len())
    }

    fn highest(&self) -> u64 {
        self.next_lowest.saturating_sub(1)
    }

    fn row(&self, percent: f64) -> Row {
        Row { percent, value_us: self.highest(), cumulative: self.cumulative }
    }
}

/// Redis: a row is shown when its count differs from the row before, or is the total.
fn keep_changes(rows: Vec<Row>, total: u64) -> Vec<Row> {
    let mut previous = None;
    rows.into_iter()
        .filter(|row| {
            let changed = previous != Some(row.cumulative) || row.cumulative == total;
            previous = Some(row.cumulative);
            changed
        })
        .collect()
}

fn share(part: u64, total: u64) -> f64 {
    if total == 0 {
        return 100.0;
    }
    100.0 * float(u128::from(part)) / float(u128::from(total))
}

fn rank(percent: f64, total: u64) -> u64 {
    let rank = percent.min(100.0) / 100.0 * float(u128::from(total)) + 0.5;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 ..= total")]
    let rank = rank as u64;
    rank.max(1)
}

#[expect(clippy::cast_precision_loss, reason = "figures for people")]
fn float(value: u128) -> f64 {
    value as f64
}

const REDIS_LOW_US: u64 = 10;
const REDIS_HIGH_US: u64 = 3_000_000;
const LINEAR_STEP_US: u64 = 100;
const LINEAR_COARSE_STEP_US: u64 = 1_000;
const LINEAR_FINE_US: u64 = 2_000;

#[cfg(test)]
mod tests;
