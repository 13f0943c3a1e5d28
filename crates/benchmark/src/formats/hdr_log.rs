//! The histogram log (`--hdr-log`): HdrHistogram's interval log, a line a second and test, tagged with its title.

use std::time::{Duration, SystemTime};

use hdrhistogram::serialization::{
    V2DeflateSerializer,
    interval_log::{IntervalLogWriterBuilder, Tag},
};

use crate::{latency::Latency, results::Outcome};

/// A line of the log.
#[derive(Debug)]
pub(super) struct Line {
    tag: String,
    /// From the start of the log.
    begin: Duration,
    length: Duration,
    service: Latency,
}

/// The lines of a test that has just ended, in a log that was begun at `started`.
pub(super) fn lines(started: SystemTime, outcome: &Outcome) -> Vec<Line> {
    let tag: String =
        outcome.title.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).collect();
    let now = SystemTime::now().duration_since(started).unwrap_or_default();
    let begin = now.saturating_sub(outcome.elapsed);
    if outcome.timeline.is_empty() {
        return vec![Line { tag, begin, length: outcome.elapsed, service: outcome.service.clone() }];
    }
    let line = |(end, length, service): (Duration, Duration, &Latency)| Line {
        tag: tag.clone(),
        begin: begin + end.saturating_sub(length),
        length,
        service: service.clone(),
    };
    outcome.timeline.iter().map(|interval| line((interval.end, interval.length, &interval.service))).collect()
}

/// The text of the log. The error is a sentence.
pub(super) fn text(started: SystemTime, lines: &[Line]) -> Result<String, String> {
    let mut bytes = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment(concat!("oxidis benchmark ", env!("CARGO_PKG_VERSION")))
        .with_start_time(started)
        .with_max_value_divisor(MICROSECONDS_PER_MILLISECOND)
        .begin_log_with(&mut bytes, &mut serializer)
        .map_err(|error| error.to_string())?;
    for line in lines {
        log.write_histogram(&line.service, line.begin, line.length, Tag::new(&line.tag))
            .map_err(|error| format!("{error:?}"))?;
    }
    String::from_utf8(bytes).map_err(|error| error.to_string())
}

const MICROSECONDS_PER_MILLISECOND: f64 = 1_000.0;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use hdrhistogram::serialization::{
        Deserializer,
        interval_log::{IntervalLogIterator, LogEntry},
    };

    use super::*;
    use crate::results::Interval;

    #[test]
    fn the_log_can_be_read_again() {
        let mut outcome = Outcome::empty("SET, ä", 3, 3);
        for end in [1, 2] {
            let mut service = crate::latency::recorder(3);
            service.saturating_record_n(500 * end, 5);
            crate::latency::add(&mut outcome.service, &service);
            let second = Duration::from_secs(1);
            outcome.timeline.push(Interval {
                end: second * u32::try_from(end).unwrap(),
                length: second,
                service,
                errors: 0,
                active: 0,
            });
        }
        let started = SystemTime::now() - Duration::from_secs(9);
        let text = text(started, &lines(started, &outcome)).unwrap();
        let mut sum = crate::latency::recorder(3);
        let mut seen = 0;
        for entry in IntervalLogIterator::new(text.as_bytes()) {
            let LogEntry::Interval(interval) = entry.unwrap() else { continue };
            assert_eq!(interval.tag().unwrap().as_str(), "SET---");
            assert_eq!(interval.duration(), Duration::from_secs(1));
            let bytes =
                base64::Engine::decode(&base64::engine::general_purpose::STANDARD, interval.encoded_histogram())
                    .unwrap();
            sum.add(Deserializer::new().deserialize::<u64, _>(&mut bytes.as_slice()).unwrap()).unwrap();
            seen += 1;
        }
        assert_eq!((seen, sum), (2, outcome.service));
    }
}
