//! SLOWLOG and LATENCY of the proxy: how long its backends take, as the proxy sees it.

use std::collections::BTreeMap;

use commands::CommandId;
use commands::table;
use resp::{Args, Reply};

use super::{Answer, shown, syntax_of};
use crate::measure::Histogram;
use crate::service::Worker;

/// Entries of SLOWLOG GET without a count.
const DEFAULT_COUNT: usize = 10;

impl Worker {
    pub(super) fn slowlog_command(&mut self, place: u32, id: CommandId, args: Args<'_>) -> Answer<Reply> {
        let shared = self.shared.clone();
        match id {
            CommandId::SlowlogLen => Ok(self.written(place, |_, reply| reply.count(shared.slowlog.len()))),
            CommandId::SlowlogReset => {
                shared.slowlog.clear();
                Ok(self.written(place, |_, reply| reply.ok()))
            }
            _ => {
                let count = match args.get(2) {
                    None => DEFAULT_COUNT,
                    Some(_) if args.len() > 3 => return Err(syntax_of(&args)),
                    Some(count) => {
                        let count = resp::num::parse_i64(count).filter(|count| *count >= -1);
                        let count = count.ok_or("ERR count should be greater than or equal to -1")?;
                        usize::try_from(count).unwrap_or(usize::MAX)
                    }
                };
                let entries = shared.slowlog.newest(count);
                Ok(self.written(place, |_, reply| {
                    let int = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
                    reply.array(entries.len());
                    for entry in &entries {
                        // Clients know these six fields; what they cannot know would confuse them.
                        reply.array(6);
                        reply.int(int(entry.id));
                        reply.int(int(entry.time_s));
                        reply.int(int(entry.total_us));
                        reply.array(entry.args.len());
                        entry.args.iter().for_each(|argument| reply.bulk(argument));
                        reply.bulk(&entry.address);
                        reply.bulk(&entry.name);
                    }
                }))
            }
        }
    }

    pub(super) fn latency_command(&mut self, place: u32, id: CommandId, args: Args<'_>) -> Answer<Reply> {
        match id {
            CommandId::LatencyHistogram => Ok(self.latency_histogram(place, args)),
            // The proxy keeps times of commands, and no list of events.
            CommandId::LatencyLatest | CommandId::LatencyHistory => {
                Ok(self.written(place, |_, reply| reply.empty_array()))
            }
            CommandId::LatencyReset => Ok(self.written(place, |_, reply| reply.int(0))),
            CommandId::LatencyGraph => {
                Err(format!("ERR No samples available for event '{}'", shown(args.get(2).unwrap_or_default())))
            }
            _ => Ok(self.written(place, |_, reply| {
                reply.verbatim(
                    "The proxy watches how long its backends take: see LATENCY HISTOGRAM, SLOWLOG GET and INFO backends. \
                     Events within a server are told by that server's LATENCY DOCTOR.\n",
                    "txt",
                );
            })),
        }
    }

    fn latency_histogram(&mut self, place: u32, args: Args<'_>) -> Reply {
        let wanted: Vec<_> = if args.len() == 2 {
            table::all().collect()
        } else {
            let named = args.iter().skip(2).filter_map(table::lookup_full_name);
            named.flat_map(|spec| std::iter::once(spec).chain(spec.subcommands)).collect()
        };
        let known: Vec<_> = wanted
            .into_iter()
            .map(|spec| (spec.name, self.durations(spec.id)))
            .filter(|(_, of)| !of.is_empty())
            .collect();
        self.written(place, |_, reply| {
            let int = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
            reply.map(known.len());
            for (name, durations) in &known {
                reply.bulk(name);
                reply.map(2);
                reply.bulk("calls");
                reply.int(int(durations.values().sum()));
                reply.bulk("histogram_usec");
                let powers = by_power(durations);
                reply.map(powers.len());
                for (end_us, cumulative) in powers {
                    reply.int(int(end_us));
                    reply.int(int(cumulative));
                }
            }
        })
    }

    /// How often a command took how long, over all workers: by the highest duration of each bucket, in microseconds.
    pub(super) fn durations(&self, id: CommandId) -> BTreeMap<u64, u64> {
        let mut durations = BTreeMap::new();
        for stats in &self.shared.stats {
            if let Some(histogram) = stats.latencies.get(id.index()).and_then(std::sync::OnceLock::get) {
                add(&mut durations, histogram);
            }
        }
        durations
    }

    /// The same of a backend.
    pub(super) fn backend_durations(&self, name: &str) -> BTreeMap<u64, u64> {
        let mut durations = BTreeMap::new();
        for stats in &self.shared.stats {
            for (_, histogram) in stats.backends.lock().iter().filter(|(backend, _)| backend == name) {
                add(&mut durations, histogram);
            }
        }
        durations
    }

    /// Microseconds that a command took in sum.
    pub(super) fn sum_us(&self, id: CommandId) -> u64 {
        self.shared.sum(|stats| {
            stats.latencies.get(id.index()).and_then(std::sync::OnceLock::get).map_or(0, |of| of.sum_us.get())
        })
    }
}

fn add(durations: &mut BTreeMap<u64, u64>, histogram: &Histogram) {
    for (top_us, count) in histogram.buckets() {
        *durations.entry(top_us).or_default() += count;
    }
}

/// Counts up to and with each power of two that has any.
fn by_power(durations: &BTreeMap<u64, u64>) -> Vec<(u64, u64)> {
    let mut powers: Vec<(u64, u64)> = Vec::new();
    let mut cumulative = 0;
    for (top_us, count) in durations {
        cumulative += count;
        let end = top_us.max(&1).next_power_of_two();
        match powers.last_mut() {
            Some((last, sum)) if *last == end => *sum = cumulative,
            _ => powers.push((end, cumulative)),
        }
    }
    powers
}

/// The duration that so many percent do not exceed.
pub(super) fn percentile(durations: &BTreeMap<u64, u64>, percent: f64) -> u64 {
    let total: u64 = durations.values().sum();
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let wanted = ((total as f64 * percent / 100.0).ceil() as u64).clamp(1, total.max(1));
    let mut cumulative = 0;
    let found = durations.iter().find(|(_, count)| {
        cumulative += **count;
        cumulative >= wanted
    });
    found.map_or(0, |(top_us, _)| *top_us)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_and_powers() {
        let durations: BTreeMap<u64, u64> = [(3, 50), (5, 40), (7, 5), (1023, 5)].into_iter().collect();
        assert_eq!(
            (percentile(&durations, 50.0), percentile(&durations, 90.0), percentile(&durations, 99.0)),
            (3, 5, 1023)
        );
        assert_eq!(by_power(&durations), [(4, 50), (8, 95), (1024, 100)]);
        assert_eq!(percentile(&BTreeMap::new(), 50.0), 0);
    }
}
