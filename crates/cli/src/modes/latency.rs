//! `--latency` and `--latency-history`: round trips of PING, a hundred a second at most.
//!
//! Redis measures whole milliseconds and shows them in pipes; scripts read that, so pipes get it too. People on a
//! terminal, JSON and `--latency-percentiles` get what was measured: microseconds.

use std::thread::sleep;
use std::time::{Duration, Instant};

use super::call_patiently;
use super::histogram::Histogram;
use crate::format::Format;
use crate::output::{Outcome, print};
use crate::session::Session;

/// Pause between samples.
pub(super) const SAMPLE_PAUSE: Duration = Duration::from_millis(10);
const HISTORY_INTERVAL: Duration = Duration::from_secs(15);
const SINGLE_INTERVAL: Duration = Duration::from_secs(1);

/// How results follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lines {
    /// One line, written again and again; in a pipe one result, then the end.
    Rewritten,
    /// A new line per interval.
    History,
}

/// Round trips in microseconds.
#[derive(Default)]
struct Samples {
    us: Histogram,
    /// Sum of what is left when each sample is cut to whole milliseconds.
    sum_ms: u64,
}

/// Measures until it is stopped, or once in a pipe.
pub(super) fn run(session: &mut Session, lines: Lines) -> Outcome<()> {
    session.connect_or_exit()?;
    let format = session.options.style.format;
    let percentiles = session.options.percentiles;
    let history_interval = session.options.interval.unwrap_or(HISTORY_INTERVAL);
    let single_interval = session.options.interval.unwrap_or(SINGLE_INTERVAL);
    let mut samples = Samples::default();
    let mut start = Instant::now();
    loop {
        let sent = Instant::now();
        call_patiently(session, &["PING"])?;
        samples.add(sent.elapsed());
        if format == Format::Standard {
            print(format!("\x1b[0G\x1b[2K{}", samples.line(format, percentiles)))?;
        } else if lines == Lines::History {
            print(samples.line(format, percentiles))?;
        } else if start.elapsed() > single_interval {
            return print(samples.line(format, percentiles));
        }
        if lines == Lines::History && start.elapsed() > history_interval {
            print(format!(" -- {:.2} seconds range\n", start.elapsed().as_secs_f32()))?;
            start = Instant::now();
            samples = Samples::default();
        }
        sleep(SAMPLE_PAUSE);
    }
}

impl Samples {
    fn add(&mut self, elapsed: Duration) {
        let us = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
        self.us.add(us);
        self.sum_ms = self.sum_ms.saturating_add(us / 1000);
    }

    fn line(&self, format: Format, percentiles: bool) -> String {
        let (min, max, count) = (self.us.min(), self.us.max(), self.us.count());
        let [p50, p99, p999] = [500, 990, 999].map(|per_mille| self.us.percentile(per_mille).0);
        let (mean, mean_ms) = (self.us.mean() / 1000.0, super::mean(self.sum_ms, count));
        let tail = [p50, p99, p999].map(ms);
        match format {
            Format::Standard => {
                let more = match percentiles {
                    true => format!(", p50: {}, p99: {}, p99.9: {}", tail[0], tail[1], tail[2]),
                    false => String::new(),
                };
                format!("min: {}, max: {}, avg: {mean:.3}{more} ({count} samples)", ms(min), ms(max))
            }
            Format::Json | Format::QuotedJson | Format::JsonStrict | Format::Ndjson => format!(
                "{{\"min\": {}, \"max\": {}, \"avg\": {mean_ms:.2}, \"count\": {count}, \"min_us\": {min}, \
                 \"max_us\": {max}, \"p50_us\": {p50}, \"p99_us\": {p99}, \"p999_us\": {p999}}}\n",
                min / 1000,
                max / 1000
            ),
            _ => {
                let separator = if matches!(format, Format::Csv | Format::CsvStrict) { "," } else { " " };
                let fields = match percentiles {
                    true => {
                        let [p50, p99, p999] = tail;
                        vec![ms(min), ms(max), format!("{mean:.3}"), count.to_string(), p50, p99, p999]
                    }
                    false => vec![
                        (min / 1000).to_string(),
                        (max / 1000).to_string(),
                        format!("{mean_ms:.2}"),
                        count.to_string(),
                    ],
                };
                format!("{}\n", fields.join(separator))
            }
        }
    }
}

/// Microseconds as milliseconds with three digits.
fn ms(us: u64) -> String {
    format!("{}.{:03}", us / 1000, us % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_all_formats() {
        let mut samples = Samples::default();
        for us in [500, 1500, 2500] {
            samples.add(Duration::from_micros(us));
        }
        assert_eq!(samples.line(Format::Raw, false), "0 2 1.00 3\n");
        assert_eq!(samples.line(Format::Csv, false), "0,2,1.00,3\n");
        assert_eq!(samples.line(Format::Csv, true), "0.500,2.500,1.500,3,1.503,2.500,2.500\n");
        assert_eq!(samples.line(Format::Standard, false), "min: 0.500, max: 2.500, avg: 1.500 (3 samples)");
        assert!(
            samples.line(Format::Json, false).starts_with("{\"min\": 0, \"max\": 2, \"avg\": 1.00, \"count\": 3, ")
        );
    }
}
