//! LATENCY.

use crate::exec::Step;
use crate::latency::EventSeries;
use crate::shared::Shared;
use crate::stats::{LATENCY_BUCKETS, LatencyHistogram};
use crate::worker::Worker;
use commands::table::{self, CommandSpec};
use commands::{CmdError, CommandId};
use resp::{Args, Reply};
use std::fmt::Write as _;

/// Columns and rows of the graph.
const GRAPH_COLUMNS: usize = 80;
const GRAPH_ROWS: u64 = 4;

/// Whether a command is served here.
pub(crate) fn is_served(id: CommandId) -> bool {
    use CommandId as C;
    let of_events =
        matches!(id, C::LatencyDoctor | C::LatencyGraph | C::LatencyHistory | C::LatencyLatest | C::LatencyReset);
    of_events || matches!(id, C::LatencyHistogram | C::LatencyHelp)
}

/// Runs one.
pub(crate) fn run(worker: &mut Worker, command: CommandId, args: Args<'_>) -> Result<Step, CmdError> {
    let int = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    match command {
        CommandId::LatencyLatest => {
            let events = worker.shared.latency.all();
            worker.reply.array(events.len());
            for (name, series) in &events {
                let (time_s, latest_ms) = series.samples.back().copied().unwrap_or_default();
                worker.reply.array(4);
                worker.reply.bulk(name);
                worker.reply.int(time_s);
                worker.reply.int(int(latest_ms));
                worker.reply.int(int(series.max_ms));
            }
        }
        CommandId::LatencyHistory => {
            let samples = worker.shared.latency.of(&args[2]).unwrap_or_default().samples;
            worker.reply.array(samples.len());
            for (time_s, took_ms) in samples {
                worker.reply.array(2);
                worker.reply.int(time_s);
                worker.reply.int(int(took_ms));
            }
        }
        CommandId::LatencyReset => {
            let names: Vec<&[u8]> = args.slice(2).iter().collect();
            worker.reply.count(worker.shared.latency.reset(&names));
        }
        CommandId::LatencyGraph => {
            let no_samples = || {
                CmdError::text(format!("ERR No samples available for event '{}'", String::from_utf8_lossy(&args[2])))
            };
            let series = worker.shared.latency.of(&args[2]).ok_or_else(no_samples)?;
            let graph = graph(&String::from_utf8_lossy(&args[2]).to_lowercase(), &series, worker.now_ms / 1000);
            worker.reply.verbatim(graph, "txt");
        }
        CommandId::LatencyHistogram => histogram(&worker.shared, args, &mut worker.reply),
        _ => {
            let report = doctor(worker);
            worker.reply.verbatim(report, "txt");
        }
    }
    Ok(Step::Done)
}

// ---- HISTOGRAM ---------------------------------------------------------------------------------------------------

/// Powers of two that LATENCY HISTOGRAM shows.
const SHOWN_POWERS: usize = 32;

/// Calls of one command by the buckets of [`LatencyHistogram`], over all workers.
pub(crate) fn buckets(shared: &Shared, id: CommandId) -> Vec<u64> {
    let mut sums = vec![0; LATENCY_BUCKETS];
    for stats in &shared.stats {
        if let Some(latency) = stats.commands[id.index()].latency.get() {
            latency.add_to(&mut sums);
        }
    }
    sums
}

/// The same by powers of two from 1,024 ns on.
fn powers(buckets: &[u64]) -> [u64; SHOWN_POWERS] {
    let mut powers = [0; SHOWN_POWERS];
    for (bucket, count) in buckets.iter().enumerate() {
        let end_ns = LatencyHistogram::bucket_end_ns(bucket);
        let power = (64 - (end_ns >> 10).leading_zeros() as usize).min(SHOWN_POWERS - 1);
        powers[power] += count;
    }
    powers
}

/// The upper end of a power in nanoseconds.
///
/// Redis: its buckets are powers of two from 1,024 ns, each end rounded up to what a histogram of two digits can tell
/// apart, so clients know them as 1, 2, 4, 8, 16, 33, 66, … µs.
fn power_end_ns(power: usize) -> u64 {
    let end = 1024_u64 << power.min(40);
    end + end / 128 - 1
}

fn histogram(shared: &Shared, args: Args<'_>, reply: &mut Reply) {
    let mut rows: Vec<&'static CommandSpec> = Vec::new();
    let mut add = |spec: &'static CommandSpec| {
        rows.push(spec);
        rows.extend(spec.subcommands);
    };
    if args.len() == 2 {
        table::top_level().for_each(&mut add);
    } else {
        args.slice(2).iter().filter_map(table::lookup_full_name).for_each(&mut add);
    }
    let header = reply.defer();
    let mut called = 0;
    for spec in rows {
        let buckets = buckets(shared, spec.id);
        let calls: u64 = buckets.iter().sum();
        if calls == 0 {
            continue;
        }
        called += 1;
        write_histogram(reply, spec.name, calls, &powers(&buckets));
    }
    reply.finish_map(header, called);
}

fn write_histogram(reply: &mut Reply, name: &str, calls: u64, buckets: &[u64; SHOWN_POWERS]) {
    let int = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    reply.bulk(name);
    reply.map(2);
    reply.bulk("calls");
    reply.int(int(calls));
    reply.bulk("histogram_usec");
    let filled = || buckets.iter().enumerate().filter(|(_, count)| **count > 0);
    reply.map(filled().count());
    let mut cumulative = 0;
    for (bucket, count) in filled() {
        cumulative += count;
        reply.int(int(power_end_ns(bucket) / 1000));
        reply.int(int(cumulative));
    }
}

// ---- GRAPH -------------------------------------------------------------------------------------------------------

fn graph(event: &str, series: &EventSeries, now_s: i64) -> String {
    let samples: Vec<(i64, u64)> = series.samples.iter().copied().collect();
    let samples = &samples[samples.len().saturating_sub(GRAPH_COLUMNS)..];
    let high = samples.iter().map(|(_, took_ms)| *took_ms).max().unwrap_or(0);
    let low = samples.iter().map(|(_, took_ms)| *took_ms).min().unwrap_or(0);
    let mut text = format!("{event} - high {high} ms, low {low} ms (all time high {} ms)\n", series.max_ms);
    text.push_str(&"-".repeat(GRAPH_COLUMNS));
    text.push('\n');
    let range = (high - low).max(1);
    // The height of a bar in half rows, so that two signs tell twice as many heights apart.
    let height = |took_ms: u64| 1 + (took_ms - low) * (GRAPH_ROWS * 2 - 1) / range;
    for row in (0..GRAPH_ROWS).rev() {
        for (_, took_ms) in samples {
            text.push(match height(*took_ms).saturating_sub(row * 2) {
                0 => ' ',
                1 => '_',
                _ => '#',
            });
        }
        text.push('\n');
    }
    text.push('\n');
    let labels: Vec<String> = samples.iter().map(|(time_s, _)| age(now_s - time_s)).collect();
    for line in 0..labels.iter().map(String::len).max().unwrap_or(0) {
        text.extend(labels.iter().map(|label| label.chars().nth(line).unwrap_or(' ')));
        text.push('\n');
    }
    text
}

/// How long ago, in the largest unit that fits.
fn age(seconds: i64) -> String {
    match seconds.max(0) {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3600 => format!("{}m", seconds / 60),
        seconds @ 3600..86_400 => format!("{}h", seconds / 3600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

// ---- DOCTOR ------------------------------------------------------------------------------------------------------

fn doctor(worker: &Worker) -> String {
    let config = &worker.config;
    let events = worker.shared.latency.all();
    if events.is_empty() && config.latency_monitor_threshold == 0 {
        return "The latency monitor is off, so there is nothing to diagnose. Turn it on with CONFIG SET latency-monitor-threshold \
                <milliseconds>, wait for the trouble to come back, and ask again.\n"
            .to_owned();
    }
    if events.is_empty() {
        return "No event has taken longer than the threshold since the latency monitor was last reset.\n".to_owned();
    }
    let mut text = "Events that took longer than the threshold:\n\n".to_owned();
    for (number, (name, series)) in events.iter().enumerate() {
        let count = series.samples.len().max(1) as u64;
        let sum: u64 = series.samples.iter().map(|(_, took_ms)| *took_ms).sum();
        let mean = sum / count;
        let deviation = series.samples.iter().map(|(_, took_ms)| took_ms.abs_diff(mean)).sum::<u64>() / count;
        let first_s = series.samples.front().map_or(0, |(time_s, _)| *time_s);
        #[allow(clippy::cast_precision_loss)]
        let period = (worker.now_ms / 1000 - first_s).max(0) as f64 / count as f64;
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{}. {name}: {count} latency spikes (average {mean}ms, mean deviation {deviation}ms, period {period:.2} sec). Worst all time event {}ms.",
            number + 1,
            series.max_ms
        );
    }
    let advice = advice(worker, &events);
    text.push_str(if advice.is_empty() { "\nNone of these has a known remedy.\n" } else { "\nWhat can be done:\n\n" });
    for line in advice {
        let _ = writeln!(text, "- {line}");
    }
    text
}

fn advice(worker: &Worker, events: &[(&'static str, EventSeries)]) -> Vec<String> {
    let config = &worker.config;
    let has = |wanted: &str| events.iter().any(|(name, _)| *name == wanted);
    let mut advice = Vec::new();
    let threshold_us = config.latency_monitor_threshold.saturating_mul(1000);
    if has("command") {
        if config.slowlog_log_slower_than < 0 || config.slowlog_log_slower_than > threshold_us {
            advice.push(format!(
                "Let the slow log see these commands: CONFIG SET slowlog-log-slower-than {threshold_us}."
            ));
        }
        advice.push("Look at SLOWLOG GET for the commands and their arguments, and split work on large values into smaller pieces.".to_owned());
    }
    if has("fast-command") {
        advice.push(
            "Commands that take microseconds took milliseconds: the workers did not get a processor. Lower the load of the machine, give the \
             server processors of its own, or look for a noisy neighbour of the virtual machine."
                .to_owned(),
        );
    }
    if has("expire-cycle") {
        advice.push(
            "Many keys end at the same time: spread their times to live, or lower active-expire-effort.".to_owned(),
        );
    }
    if has("eviction-cycle") || has("eviction-del") {
        advice.push("Eviction works hard: raise maxmemory, or lower it in smaller steps.".to_owned());
    }
    if crate::process::usage::huge_page_bytes() > 0 {
        advice.push(
            "The process uses transparent huge pages: turn them off with echo never > /sys/kernel/mm/transparent_hugepage/enabled and restart."
                .to_owned(),
        );
    }
    advice
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_ends_are_those_that_redis_prints() {
        let ends: Vec<u64> = (0..12).map(|power| power_end_ns(power) / 1000).collect();
        assert_eq!(ends, [1, 2, 4, 8, 16, 33, 66, 132, 264, 528, 1056, 2113]);
    }

    #[test]
    fn histograms_are_cumulative() {
        let mut reply = Reply::new();
        let mut buckets = [0; SHOWN_POWERS];
        buckets[0] = 2;
        buckets[3] = 1;
        write_histogram(&mut reply, "get", 3, &buckets);
        assert_eq!(
            reply.as_slice(),
            b"$3\r\nget\r\n*4\r\n$5\r\ncalls\r\n:3\r\n$14\r\nhistogram_usec\r\n*4\r\n:1\r\n:2\r\n:8\r\n:3\r\n"
        );
    }

    #[test]
    fn graphs_have_a_head_and_a_bar_a_sample() {
        let series = EventSeries { samples: [(95, 10), (99, 80)].into_iter().collect(), max_ms: 90 };
        let text = graph("command", &series, 100);
        assert!(text.starts_with("command - high 80 ms, low 10 ms (all time high 90 ms)\n"), "{text}");
        assert!(text.contains("\n_#\n"), "{text}");
        assert!(text.contains("\n51\nss\n"), "{text}");
    }
}
