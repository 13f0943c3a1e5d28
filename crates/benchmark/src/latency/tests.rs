use super::*;

fn view(samples: &[(u64, u64)]) -> Latency {
    let mut fine = recorder(3);
    for (value, count) in samples {
        fine.saturating_record_n(*value, *count);
    }
    redis_view(&fine, 3)
}

#[test]
fn the_view_equals_recording_twice() {
    for digits in 1..=4 {
        let mut fine = recorder(digits);
        let mut direct = with_bounds(REDIS_LOW_US, REDIS_HIGH_US, digits);
        let mut value = 1_u64;
        for step in 0..20_000_u64 {
            value = (value * 48_271 + step) % 7_000_000;
            fine.saturating_record(value);
            direct.saturating_record(value.min(REDIS_HIGH_US));
        }
        let view = redis_view(&fine, digits);
        let counts = |h: &Latency| -> Vec<(u64, u64)> {
            h.iter_recorded().map(|b| (b.value_iterated_to(), b.count_at_value())).collect()
        };
        assert_eq!(counts(&view), counts(&direct), "{digits} digits");
    }
}

#[test]
fn buckets_are_eight_microseconds_wide() {
    let rows = percentile_rows(&view(&[(100, 1)]));
    assert_eq!(rows.len(), 2);
    assert_eq!((rows[0].percent, rows[0].value_us, rows[0].cumulative), (0.0, 103, 1));
    assert_eq!((rows[1].percent, rows[1].value_us, rows[1].cumulative), (100.0, 103, 1));
}

#[test]
fn what_is_too_slow_shows_as_the_bound() {
    let slow = view(&[(8_000_000, 1)]);
    assert_eq!(slow.max(), 3_000_319);
}

#[test]
fn percentile_rows_halve_the_distance() {
    let rows = percentile_rows(&view(&[(100, 50), (200, 25), (300, 25)]));
    let seen: Vec<_> = rows.iter().map(|row| (row.percent, row.value_us, row.cumulative)).collect();
    assert_eq!(seen, [(0.0, 103, 50), (75.0, 207, 75), (87.5, 303, 100), (100.0, 303, 100)]);
}

#[test]
fn linear_rows_begin_even_when_empty() {
    let rows = linear_rows(&view(&[(250, 1), (2_500, 1)]));
    let seen: Vec<_> = rows.iter().map(|row| (row.value_us, row.cumulative)).collect();
    assert_eq!(seen[0], (103, 0));
    assert_eq!(seen[1], (303, 1));
    assert_eq!(seen.last(), Some(&(3_103, 2)));
}

#[test]
fn empty_histograms_have_rows_of_nothing() {
    let empty = view(&[]);
    let rows = percentile_rows(&empty);
    assert_eq!(rows, [Row { percent: 100.0, value_us: 0, cumulative: 0 }]);
    assert!(linear_rows(&empty).is_empty());
    assert!(mean_us(&empty).abs() < f64::EPSILON);
    assert_eq!(value_at_percent(&empty, 99.0), 0);
}

#[test]
fn ranks_are_rounded_to_the_nearest() {
    let mut histogram = recorder(3);
    for value in 1..=10 {
        histogram.saturating_record(value);
    }
    assert_eq!(value_at_percent(&histogram, 50.0), 5);
    assert_eq!(value_at_percent(&histogram, 54.0), 5);
    assert_eq!(value_at_percent(&histogram, 55.0), 6);
    assert_eq!(value_at_percent(&histogram, 0.0), 1);
    assert_eq!(value_at_percent(&histogram, 100.0), 10);
}

#[test]
fn recording_is_cheap() {
    let mut histogram = recorder(3);
    let start = std::time::Instant::now();
    for value in 0..1_000_000_u64 {
        histogram.saturating_record(value % 5_000);
    }
    // The goal is 25 ns in a release build; a debug build on a busy machine gets room.
    let each = start.elapsed().as_nanos() / 1_000_000;
    assert!(each < 1_000, "{each} ns");
}
