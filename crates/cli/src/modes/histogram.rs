//! Numbers counted by size: exactly below 128, in steps of a 64th above. A walk or a measurement may go on for days.

/// Values below are counted exactly, those above in steps of a 64th.
const EXACT: u64 = 128;
/// Steps between a power of two and the next.
const STEPS: u64 = EXACT / 2;

/// How many numbers of each size there were.
#[derive(Clone, Debug, Default)]
pub(super) struct Histogram {
    counts: Vec<u64>,
    count: u64,
    min: u64,
    max: u64,
    sum: u64,
    sum_of_squares: f64,
}

impl Histogram {
    /// Counts a number.
    #[allow(clippy::cast_precision_loss)] // The deviation is shown with two digits.
    pub(super) fn add(&mut self, value: u64) {
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
        self.sum_of_squares += (value as f64).powi(2);
        let bucket = bucket(value);
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        if let Some(count) = self.counts.get_mut(bucket) {
            *count += 1;
        }
    }

    /// How many numbers there were.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The smallest; 0 for none.
    pub(super) fn min(&self) -> u64 {
        self.min
    }

    /// The biggest; 0 for none.
    pub(super) fn max(&self) -> u64 {
        self.max
    }

    /// All added up.
    pub(super) fn sum(&self) -> u64 {
        self.sum
    }

    /// The mean; 0 for none.
    pub(super) fn mean(&self) -> f64 {
        super::mean(self.sum, self.count)
    }

    /// How far numbers are from the mean.
    #[allow(clippy::cast_precision_loss)] // Shown with two digits.
    pub(super) fn deviation(&self) -> f64 {
        if self.count == 0 {
            return 0.0;
        }
        (self.sum_of_squares / self.count as f64 - self.mean().powi(2)).max(0.0).sqrt()
    }

    /// The value that so many thousandths of the numbers do not exceed, to a 64th, and how many do not.
    pub(super) fn percentile(&self, per_mille: u64) -> (u64, u64) {
        let rank = (u128::from(self.count) * u128::from(per_mille)).div_ceil(1000).max(1);
        let mut passed = 0_u64;
        let place = self.counts.iter().position(|count| {
            passed += count;
            u128::from(passed) >= rank
        });
        (place.map_or(0, |place| bucket_end(place).clamp(self.min, self.max)), passed)
    }
}

/// The bucket of a value.
fn bucket(value: u64) -> usize {
    if value < EXACT {
        return usize::try_from(value).unwrap_or(0);
    }
    // In STEPS..2 * STEPS behind the shift.
    let shift = value.ilog2() - STEPS.ilog2();
    let place = u64::from(shift) * STEPS + (value >> shift);
    usize::try_from(place).unwrap_or(usize::MAX)
}

/// The biggest value of a bucket.
fn bucket_end(bucket: usize) -> u64 {
    let bucket = u64::try_from(bucket).unwrap_or(u64::MAX);
    if bucket < EXACT {
        return bucket;
    }
    let shift = bucket / STEPS - 1;
    let first = u128::from(bucket % STEPS + STEPS) << shift;
    u64::try_from(first + (1 << shift) - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_hold_their_values() {
        for value in (0..5000).chain([123_456, 9_999_999_999, u64::MAX]) {
            let end = bucket_end(bucket(value));
            assert!(end >= value && end - value <= value / 64, "{value}: {end}");
        }
    }

    #[test]
    fn percentiles() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.percentile(500), (0, 0));
        (1..=100).for_each(|value| histogram.add(value));
        assert_eq!(
            [0, 500, 990, 1000].map(|per_mille| histogram.percentile(per_mille)),
            [(1, 1), (50, 50), (99, 99), (100, 100)]
        );
        assert!((histogram.deviation() - 28.866).abs() < 0.001);
    }
}
