//! The JSON report and the histogram log.

use std::{
    fmt::Write as _,
    fs,
    time::{Duration, SystemTime},
};

use serde_json::{Map, Value as Json, json};

use super::{milliseconds, unix_seconds};
use crate::{
    latency::{self, Latency},
    results::Outcome,
    run::Session,
    suite::Test,
};

/// One test of the report.
pub(super) fn test(session: &Session, test: Option<&Test>, outcome: &Outcome) -> Json {
    let options = &session.options;
    let percentiles = &options.extended.percentiles;
    let errors: Map<String, Json> = outcome
        .errors
        .iter()
        .map(|(class, entry)| (class.to_owned(), json!({ "count": entry.count, "first": entry.first })))
        .collect();
    let mut flags = Vec::new();
    if outcome.generator_limited() {
        flags.push("generator-limited");
    }
    if outcome.interrupted {
        flags.push("interrupted");
    }
    let operations: Vec<Json> = outcome
        .operations
        .iter()
        .map(|operation| {
            json!({
                "name": operation.name,
                "requests": operation.service.len(),
                "errors": operation.errors,
                "service": summary(&operation.service, percentiles),
            })
        })
        .collect();
    let timeline: Vec<Json> = outcome
        .timeline
        .iter()
        .map(|interval| {
            json!({
                "t": interval.end.as_secs_f64(),
                "tps": rate(interval.service.len(), interval.length),
                "p50": milliseconds(latency::value_at_percent(&interval.service, 50.0)),
                "p99": milliseconds(latency::value_at_percent(&interval.service, 99.0)),
                "max": milliseconds(interval.service.max()),
                "errors": interval.errors,
            })
        })
        .collect();
    json!({
        "name": outcome.title,
        "command": test.map(command_text),
        "clients": options.client_count(),
        "connected": outcome.connected,
        "fairness": fairness(outcome),
        "server_cpu_us": outcome.server_cpu_us(),
        "threads": session.threads_shown.max(1),
        "pipeline": options.pipeline,
        "size": outcome.payload_bytes,
        "keyspace": options.keyspace,
        "requests": outcome.finished,
        "seconds": outcome.elapsed.as_secs_f64(),
        "tps": outcome.rate(),
        "success_tps": outcome.success_rate(),
        "bytes_rx": outcome.bytes_received,
        "bytes_tx": outcome.bytes_sent,
        "null_replies": outcome.null_replies,
        "errors": errors,
        "dropped": outcome.dropped,
        "backlog": outcome.backlog,
        "connect": summary(&outcome.connect, percentiles),
        "service": summary(&outcome.service, percentiles),
        "response": outcome.response.as_ref().map(|latency| summary(latency, percentiles)),
        "lateness": outcome.lateness.as_ref().map(|latency| summary(latency, percentiles)),
        "histogram_us": buckets(&outcome.service),
        "timeline": timeline,
        "per_op": operations,
        "client_cpu": {
            "seconds": outcome.generator_cpu.as_secs_f64(),
            "busiest_thread": outcome.busiest_thread,
        },
        "flags": flags,
    })
}

/// The whole report.
pub(super) fn document(session: &Session, arguments: &[String], started: SystemTime, tests: &[Json]) -> String {
    let server: Map<String, Json> =
        session.info.fields.iter().map(|(name, value)| (name.clone(), Json::from(value.as_str()))).collect();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let document = json!({
        "schema": SCHEMA,
        "tool": concat!("oxidis benchmark ", env!("CARGO_PKG_VERSION")),
        "argv": arguments,
        "host": {
            "cpus": std::thread::available_parallelism().map_or(1, usize::from),
            "kernel": kernel.trim_end(),
        },
        "server": server,
        "start": unix_seconds(started),
        "end": unix_seconds(SystemTime::now()),
        "tests": tests,
    });
    format!("{document:#}\n")
}

/// Appends one test as a line of an HdrHistogram log, preceded by the header at the start.
pub(super) fn append_hdr_log(log: &mut String, started: SystemTime, outcome: &Outcome) {
    if log.is_empty() {
        let start = unix_seconds(started);
        let _ = writeln!(log, "#[Histogram log format version 1.3]");
        let _ = writeln!(log, "#[StartTime: {start:.3} (seconds since epoch)]");
        let _ =
            writeln!(log, "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"");
    }
    let tag: String =
        outcome.title.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).collect();
    let now = SystemTime::now().duration_since(started).unwrap_or_default();
    let begin = now.saturating_sub(outcome.elapsed).as_secs_f64();
    let max_ms = milliseconds(outcome.service.max());
    let length = outcome.elapsed.as_secs_f64();
    let encoded = base64(&envelope(&encode_v2(&outcome.service)));
    let _ = writeln!(log, "Tag={tag},{begin:.3},{length:.3},{max_ms:.3},{encoded}");
}

fn fairness(outcome: &Outcome) -> Json {
    let (min, median, max) = outcome.fairness.spread();
    json!({
        "clients": outcome.fairness.connections(),
        "served": outcome.fairness.served(),
        "min": min,
        "median": median,
        "max": max,
        "jain": outcome.fairness.jain_index(),
    })
}

fn command_text(test: &Test) -> String {
    let commands: Vec<String> = test
        .operations
        .iter()
        .map(|operation| operation.command.escape_ascii().to_string())
        .map(|text| if text.len() > COMMAND_SHOWN { text[..COMMAND_SHOWN].to_owned() } else { text })
        .collect();
    commands.join(" ; ")
}

fn summary(latency: &Latency, percentiles: &[f64]) -> Json {
    let mut fields = Map::new();
    fields.insert("count".to_owned(), latency.len().into());
    fields.insert("avg".to_owned(), (latency::mean_us(latency) / 1000.0).into());
    fields.insert("stddev".to_owned(), (latency.stdev() / 1000.0).into());
    fields.insert("min".to_owned(), milliseconds(latency.min()).into());
    let always = [50.0, 90.0, 95.0, 99.0, 99.9, 99.99];
    for percent in always.iter().chain(percentiles) {
        let name = format!("p{}", percent.to_string().replace('.', ""));
        let value = milliseconds(latency::value_at_percent(latency, *percent));
        fields.insert(name, value.into());
    }
    fields.insert("max".to_owned(), milliseconds(latency.max()).into());
    Json::Object(fields)
}

/// Pairs of highest value in µs and count: enough to merge reports without loss.
fn buckets(latency: &Latency) -> Json {
    latency.iter_recorded().map(|bucket| json!([bucket.value_iterated_to(), bucket.count_at_value()])).collect()
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn rate(count: u64, length: Duration) -> f64 {
    count as f64 / length.as_secs_f64().max(1e-9)
}

/// HdrHistogram's V2 encoding (uncompressed): a header of 40 bytes, then the counts as ZigZag
/// LEB128 with a run of zeros as its negative length.
fn encode_v2(latency: &Latency) -> Vec<u8> {
    let mut counts = Vec::new();
    let mut zeros = 0_i64;
    let max = latency.max();
    let mut value = 0;
    while value <= max && !latency.is_empty() {
        match latency.count_at(value) {
            0 => zeros += 1,
            count => {
                if zeros > 0 {
                    zigzag(&mut counts, -zeros);
                    zeros = 0;
                }
                zigzag(&mut counts, i64::try_from(count).unwrap_or(i64::MAX));
            }
        }
        value = latency.next_non_equivalent(value);
    }
    let mut out = Vec::with_capacity(counts.len() + 40);
    out.extend_from_slice(&0x1c84_9303_u32.to_be_bytes());
    out.extend_from_slice(&u32::try_from(counts.len()).unwrap_or(0).to_be_bytes());
    out.extend_from_slice(&0_u32.to_be_bytes());
    out.extend_from_slice(&u32::from(latency.sigfig()).to_be_bytes());
    out.extend_from_slice(&latency.low().to_be_bytes());
    out.extend_from_slice(&latency.high().to_be_bytes());
    out.extend_from_slice(&1.0_f64.to_be_bytes());
    out.extend_from_slice(&counts);
    out
}

/// The envelope that log readers expect: a cookie, the length, and a zlib stream. The stream's
/// blocks are stored, not compressed: a histogram has a few KiB.
fn envelope(encoded: &[u8]) -> Vec<u8> {
    let mut zlib = vec![0x78, 0x01];
    let mut blocks = encoded.chunks(usize::from(u16::MAX)).peekable();
    while let Some(block) = blocks.next() {
        let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
        zlib.push(u8::from(blocks.peek().is_none()));
        zlib.extend_from_slice(&length.to_le_bytes());
        zlib.extend_from_slice(&(!length).to_le_bytes());
        zlib.extend_from_slice(block);
    }
    zlib.extend_from_slice(&adler32(encoded).to_be_bytes());
    let mut out = 0x1c84_9304_u32.to_be_bytes().to_vec();
    out.extend_from_slice(&u32::try_from(zlib.len()).unwrap_or(0).to_be_bytes());
    out.extend_from_slice(&zlib);
    out
}

fn adler32(bytes: &[u8]) -> u32 {
    let (low, high) = bytes.iter().fold((1_u32, 0_u32), |(low, high), byte| {
        let low = (low + u32::from(*byte)) % 65_521;
        (low, (high + low) % 65_521)
    });
    high << 16 | low
}

fn zigzag(out: &mut Vec<u8>, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)).cast_unsigned();
    // Nine bytes at most: the ninth takes eight bits.
    for _ in 0..8 {
        if rest < 0x80 {
            break;
        }
        out.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    out.push((rest & 0xff) as u8);
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let mut word = [0_u8; 3];
        word[..chunk.len()].copy_from_slice(chunk);
        let bits = u32::from(word[0]) << 16 | u32::from(word[1]) << 8 | u32::from(word[2]);
        for digit in 0..4 {
            let index = (bits >> (18 - 6 * digit)) & 63;
            let shown = digit <= chunk.len();
            out.push(if shown { char::from(DIGITS[index as usize]) } else { '=' });
        }
    }
    out
}

const SCHEMA: &str = "oxidis-benchmark-1";
const COMMAND_SHOWN: usize = 400;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_pads() {
        assert_eq!(base64(b""), "");
        assert_eq!(base64(b"f"), "Zg==");
        assert_eq!(base64(b"fo"), "Zm8=");
        assert_eq!(base64(b"foobar"), "Zm9vYmFy");
    }

    #[test]
    fn zigzag_is_leb128() {
        let mut out = Vec::new();
        for value in [0, -1, 1, 64, -64] {
            zigzag(&mut out, value);
        }
        assert_eq!(out, [0, 1, 2, 0x80, 1, 0x7f]);
    }

    #[test]
    fn the_envelope_is_a_zlib_stream() {
        assert_eq!(adler32(b"Wikipedia"), 0x11e6_0398);
        let out = envelope(b"ab");
        assert_eq!(&out[..8], &[0x1c, 0x84, 0x93, 0x04, 0, 0, 0, 13]);
        assert_eq!(&out[8..17], &[0x78, 0x01, 1, 2, 0, 0xfd, 0xff, b'a', b'b']);
    }

    #[test]
    fn v2_header_and_counts() {
        let mut latency = latency::recorder(3);
        latency.saturating_record_n(2, 5);
        let encoded = encode_v2(&latency);
        assert_eq!(&encoded[..4], &[0x1c, 0x84, 0x93, 0x03]);
        // Two zeros, then five.
        assert_eq!(&encoded[40..], &[3, 10]);
    }
}
