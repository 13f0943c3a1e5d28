//! From registers to a count: the improved estimator of Otmar Ertl, "New cardinality estimation algorithms for
//! HyperLogLog sketches", arXiv:1702.01284, algorithm 6.

use super::sketch::{REGISTERS, TAIL_BITS};

/// How often each register value occurs.
pub(super) type Histogram = [usize; 64];

/// The histogram of plain registers.
pub(super) fn histogram_of(registers: &[u8; REGISTERS]) -> Histogram {
    let mut histogram = [0; 64];
    for register in registers {
        if let Some(count) = histogram.get_mut(usize::from(*register)) {
            *count += 1;
        }
    }
    histogram
}

/// How many different elements the registers have seen, about.
///
/// Redis: registers that no elements make give the lowest integer, as C's conversion of infinity does on x86-64.
#[allow(clippy::cast_precision_loss)]
pub(super) fn count(histogram: &Histogram) -> i64 {
    /// 1 / (2 ln 2).
    const ALPHA: f64 = 0.721_347_520_444_481_7;
    let registers = REGISTERS as f64;
    let of = |value: usize| histogram.get(value).copied().unwrap_or(0) as f64;
    let longest = TAIL_BITS as usize;
    let mut sum = registers * tau((registers - of(longest + 1)) / registers);
    for value in (1..=longest).rev() {
        sum += of(value);
        sum *= 0.5;
    }
    sum += registers * sigma(of(0) / registers);
    rounded(ALPHA * registers * registers / sum)
}

/// Half away from zero.
fn rounded(estimate: f64) -> i64 {
    const END: f64 = 9_223_372_036_854_775_808.0;
    let estimate = estimate.round();
    #[allow(clippy::cast_possible_truncation)]
    if estimate.abs() < END { estimate as i64 } else { i64::MIN }
}

/// x + Σ x^(2^k) 2^(k−1): the part of registers that are still zero.
fn sigma(share: f64) -> f64 {
    if share >= 1.0 {
        return f64::INFINITY;
    }
    let (mut power, mut weight, mut sum) = (share, 1.0, share);
    loop {
        power *= power;
        let before = sum;
        sum += power * weight;
        weight += weight;
        if before.to_bits() == sum.to_bits() {
            return sum;
        }
    }
}

/// (1 − x − Σ (1 − x^(2^−k))² 2^−k) / 3: the part of registers that cannot grow.
fn tau(share: f64) -> f64 {
    if share <= 0.0 || share >= 1.0 {
        return 0.0;
    }
    let (mut root, mut weight, mut sum) = (share, 1.0, 1.0 - share);
    loop {
        root = root.sqrt();
        let before = sum;
        weight *= 0.5;
        sum -= (1.0 - root) * (1.0 - root) * weight;
        if before.to_bits() == sum.to_bits() {
            return sum / 3.0;
        }
    }
}
