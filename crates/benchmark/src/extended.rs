//! Options beyond redis-benchmark 7.2: one table, from which parsing and `--help` follow.
//!
//! All are long, so none can clash with an old option. `--name=value` is not accepted, as it is
//! not for the old ones, except for the value of `--legacy-output`.

use std::{path::PathBuf, time::Duration};

use crate::{
    assertions::{self, Assertion},
    keys::{self, Distribution},
    options::{self, Options},
    places,
};

/// Settings that redis-benchmark does not have; the defaults leave its behaviour as it is.
#[derive(Debug, Clone)]
pub(crate) struct Extended {
    /// Length of the measured part; takes the place of `-n`.
    pub(crate) duration: Option<Duration>,
    /// Time to run before anything is counted.
    pub(crate) warmup: Duration,
    /// Requests per second over all clients.
    pub(crate) rate: Option<Rate>,
    /// Requests of each client; the total is then this times the clients.
    pub(crate) per_client: Option<u64>,
    /// Distribution of key numbers.
    pub(crate) keys: Option<Distribution>,
    /// First key number.
    pub(crate) key_min: u64,
    /// Last key number; takes the place of `-r`.
    pub(crate) key_max: Option<u64>,
    /// Put before every key of the suite.
    pub(crate) key_prefix: String,
    /// Give lists, sets, hashes, sorted sets and streams many keys.
    pub(crate) spread: bool,
    /// Weighted mix of suite tests.
    pub(crate) mix: Option<String>,
    /// Value sizes in bytes to draw from.
    pub(crate) sizes: Vec<usize>,
    /// What values are made of.
    pub(crate) value: ValueKind,
    /// Reaction to an error reply.
    pub(crate) on_error: OnError,
    /// Errors after which the run ends with exit code 4.
    pub(crate) max_errors: Option<ErrorBudget>,
    /// Longest wait for a reply.
    pub(crate) timeout: Option<Duration>,
    /// Report format.
    pub(crate) output: Output,
    /// File for the report.
    pub(crate) output_file: Option<PathBuf>,
    /// Percentiles in the extended formats.
    pub(crate) percentiles: Vec<f64>,
    /// Interval of the timeline.
    pub(crate) timeline: Option<Duration>,
    /// File for the histogram log.
    pub(crate) hdr_log: Option<PathBuf>,
    /// Conditions that the results must meet.
    pub(crate) assertions: Vec<Assertion>,
    /// Earlier JSON report to compare with.
    pub(crate) baseline: Option<PathBuf>,
    /// Allowed loss against the baseline, in percent.
    pub(crate) max_regress_percent: f64,
    /// Service-level objective to find the highest rate for.
    pub(crate) find_max: Option<Vec<Assertion>>,
    /// Rates to run one after the other.
    pub(crate) rate_steps: Vec<f64>,
    /// Record one latency per batch, as redis-benchmark does.
    pub(crate) legacy_latency: bool,
    /// Report as Redis 4 did.
    pub(crate) legacy_output: bool,
    /// Whether progress is shown.
    pub(crate) progress: Progress,
    /// Whether the live view is drawn.
    pub(crate) live: Live,
    /// Address on which metrics are served.
    pub(crate) prometheus: Option<String>,
    /// Workload file.
    pub(crate) script: Option<PathBuf>,
    /// Local addresses to connect from, in turn.
    pub(crate) source_addresses: Vec<std::net::IpAddr>,
    /// Connections to open per second.
    pub(crate) connect_rate: Option<f64>,
    /// How long connections stay open after the test.
    pub(crate) hold: Duration,
    /// Process of this machine whose CPU time is reported.
    pub(crate) server_pid: Option<u32>,
    /// Report requests per connection.
    pub(crate) fairness: bool,
    /// Further servers, `host:port`, used in turn.
    pub(crate) targets: Vec<(String, u16)>,
    /// CPUs to pin the threads to, in turn.
    pub(crate) cpus: Vec<usize>,
}

impl Default for Extended {
    fn default() -> Self {
        Extended {
            duration: None,
            warmup: Duration::ZERO,
            rate: None,
            per_client: None,
            keys: None,
            key_min: 0,
            key_max: None,
            key_prefix: String::new(),
            spread: false,
            mix: None,
            sizes: Vec::new(),
            value: ValueKind::Fixed,
            on_error: OnError::Stop,
            max_errors: None,
            timeout: None,
            output: Output::Redis,
            output_file: None,
            percentiles: vec![50.0, 90.0, 95.0, 99.0, 99.9, 99.99],
            timeline: None,
            hdr_log: None,
            assertions: Vec::new(),
            baseline: None,
            max_regress_percent: 5.0,
            find_max: None,
            rate_steps: Vec::new(),
            legacy_latency: false,
            legacy_output: false,
            progress: Progress::Compatible,
            live: Live::Never,
            prometheus: None,
            script: None,
            source_addresses: Vec::new(),
            connect_rate: None,
            hold: Duration::ZERO,
            server_pid: None,
            fairness: false,
            targets: Vec::new(),
            cpus: Vec::new(),
        }
    }
}

/// A limit or a schedule of requests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rate {
    /// Requests per second, all clients together.
    pub(crate) per_second: f64,
    /// How the requests are spaced.
    pub(crate) arrival: Arrival,
    /// Waiting requests beyond which the schedule's requests are dropped.
    pub(crate) max_backlog: u64,
    /// Count the wait for a free connection into the latency (`--rate`), or only slow the
    /// closed loop down (`--rps`).
    pub(crate) open_loop: bool,
}

/// Spacing of scheduled requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// Equal gaps.
    Fixed,
    /// Exponential gaps, as from many independent users.
    Poisson,
}

/// What values are made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ValueKind {
    /// The same bytes each time, as redis-benchmark.
    Fixed,
    /// Random bytes, new each time.
    Random,
    /// New each time, and about this share of them is one repeated byte.
    Compressible(f64),
}

/// Reaction to error replies and broken connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnError {
    /// The first ends the run, as redis-benchmark 7.2.
    Stop,
    /// Count error replies and go on; a broken connection ends the run.
    Count,
    /// Count, and connect again when a connection breaks.
    Reconnect,
}

/// How many errors are too many.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ErrorBudget {
    /// More than this number.
    Count(u64),
    /// More than this share of the requests, in percent.
    Percent(f64),
}

/// Report format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    /// redis-benchmark's (text, `-q`, `--csv`).
    Redis,
    /// One JSON document.
    Json,
    /// More columns than `--csv`, quoted by RFC 4180.
    CsvExtended,
    /// A Markdown table.
    Markdown,
}

/// Whether a progress line is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// On stdout as redis-benchmark, even into a pipe.
    Compatible,
    /// On stderr, if that is a terminal.
    Terminal,
    /// None.
    Never,
}

/// Whether the live view is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Live {
    /// If stderr is a terminal.
    Auto,
    /// Always.
    Always,
    /// No.
    Never,
}

/// Whether an option takes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// No value.
    Flag,
    /// One value.
    Value,
}

/// A line of the option table.
#[derive(Debug)]
pub(crate) struct Definition {
    /// `--name`.
    pub(crate) name: &'static str,
    /// The name and its value, as the help shows them.
    pub(crate) spec: &'static str,
    /// Placeholder of the value, empty for a flag.
    pub(crate) value: &'static str,
    /// Help task under which it is shown.
    pub(crate) task: &'static str,
    /// One sentence of help.
    pub(crate) help: &'static str,
}

/// Kind of the option called `name`, if it is one of ours.
pub(crate) fn kind(name: &str) -> Option<Kind> {
    let definition = DEFINITIONS.iter().find(|definition| definition.name == name)?;
    Some(if definition.value.is_empty() { Kind::Flag } else { Kind::Value })
}

/// Takes over one option. The error is a sentence for stderr.
pub(crate) fn apply(extended: &mut Extended, name: &str, value: &str) -> Result<(), String> {
    let wrong = |expected: &str| format!("Invalid value '{value}' for {name}: expected {expected}");
    let time = || options::duration(value).ok_or_else(|| wrong("a time such as 500ms, 10s or 2m"));
    let count = || value.parse::<u64>().map_err(|_| wrong("a number"));
    match name {
        "--duration" => extended.duration = Some(time()?),
        "--warmup" => extended.warmup = time()?,
        "--timeout" => extended.timeout = Some(time()?),
        "--timeline" => extended.timeline = Some(time()?),
        "--rate" | "--rps" => {
            let text = value.strip_suffix("/s").unwrap_or(value);
            let per_second = rate_number(text).ok_or_else(|| wrong("requests per second"))?;
            let rate = extended.rate.get_or_insert(DEFAULT_RATE);
            rate.per_second = per_second;
            rate.open_loop = name == "--rate";
        }
        "--arrival" => {
            extended.rate.get_or_insert(DEFAULT_RATE).arrival = match value {
                "fixed" | "constant" => Arrival::Fixed,
                "poisson" => Arrival::Poisson,
                _ => return Err(wrong("fixed or poisson")),
            };
        }
        "--max-backlog" => extended.rate.get_or_insert(DEFAULT_RATE).max_backlog = count()?,
        "--per-client" => extended.per_client = Some(count()?),
        "--keys" => {
            let expected = "uniform, seq, unique, zipf:S, gauss:SD, latest or hot:P%:K%";
            let keys = keys::parse_distribution(value).ok_or_else(|| wrong(expected))?;
            extended.keys = Some(keys);
        }
        "--sequential" => extended.keys = Some(Distribution::Sequential),
        "--key-min" => extended.key_min = count()?,
        "--key-max" => extended.key_max = Some(count()?),
        "--key-prefix" => value.clone_into(&mut extended.key_prefix),
        "--spread" => extended.spread = true,
        "--mix" => extended.mix = Some(value.to_owned()),
        "--size" => extended.sizes = sizes(value).ok_or_else(|| wrong("N, A-B or A,B,…"))?,
        "--value" => {
            let expected = "fixed, random or compressible:SHARE";
            extended.value = value_kind(value).ok_or_else(|| wrong(expected))?;
        }
        "--on-error" => {
            extended.on_error = match value {
                "stop" => OnError::Stop,
                "count" | "continue" => OnError::Count,
                "reconnect" => OnError::Reconnect,
                _ => return Err(wrong("stop, count or reconnect")),
            };
        }
        "--max-errors" => {
            let budget = match value.strip_suffix('%') {
                Some(percent) => percent.parse().ok().map(ErrorBudget::Percent),
                None => value.parse().ok().map(ErrorBudget::Count),
            };
            extended.max_errors = Some(budget.ok_or_else(|| wrong("a number or a percentage"))?);
        }
        "--output" => {
            extended.output = match value {
                "text" | "csv" | "redis" => Output::Redis,
                "json" => Output::Json,
                "csv-ext" => Output::CsvExtended,
                "md" | "markdown" => Output::Markdown,
                _ => return Err(wrong("text, json, csv-ext or md")),
            };
        }
        "--output-file" => extended.output_file = Some(PathBuf::from(value)),
        "--hdr-log" => extended.hdr_log = Some(PathBuf::from(value)),
        "--percentiles" => {
            let list: Option<Vec<f64>> = value.split(',').map(|part| part.trim().parse().ok()).collect();
            let list = list.filter(|list| list.iter().all(|p| (0.0..=100.0).contains(p)));
            extended.percentiles = list.ok_or_else(|| wrong("numbers from 0 to 100"))?;
        }
        "--assert" => extended.assertions.extend(assertions::parse_list(value)?),
        "--find-max" => extended.find_max = Some(assertions::parse_list(value)?),
        "--rate-steps" => {
            let list: Option<Vec<f64>> = value.split(',').map(rate_number).collect();
            extended.rate_steps = list.ok_or_else(|| wrong("rates such as 1000,2000,5k"))?;
        }
        "--baseline" => extended.baseline = Some(PathBuf::from(value)),
        "--max-regress" => {
            let text = value.strip_suffix('%').unwrap_or(value);
            extended.max_regress_percent = text.parse().map_err(|_| wrong("a percentage"))?;
        }
        "--legacy-latency" => extended.legacy_latency = true,
        "--legacy-output" | "--legacy-output=4" => {
            if name == "--legacy-output" && value != "4" {
                return Err(wrong("4"));
            }
            extended.legacy_output = true;
        }
        "--progress" => {
            extended.progress = match value {
                "always" => Progress::Compatible,
                "tty" => Progress::Terminal,
                "never" => Progress::Never,
                _ => return Err(wrong("always, tty or never")),
            };
        }
        "--tui" => {
            extended.live = match value {
                "auto" => Live::Auto,
                "yes" => Live::Always,
                "no" => Live::Never,
                _ => return Err(wrong("auto, yes or no")),
            };
        }
        "--prometheus" => extended.prometheus = Some(value.to_owned()),
        "--script" => extended.script = Some(PathBuf::from(value)),
        "--source" | "--source-ip" => {
            let expected = "addresses of this machine such as 10.0.0.1,10.0.0.5-10.0.0.9";
            extended.source_addresses = places::parse_sources(value).ok_or_else(|| wrong(expected))?;
        }
        "--connect-rate" => {
            let text = value.strip_suffix("/s").unwrap_or(value);
            extended.connect_rate = Some(rate_number(text).ok_or_else(|| wrong("connections per second"))?);
        }
        "--hold" => extended.hold = time()?,
        "--server-pid" => extended.server_pid = Some(value.parse().map_err(|_| wrong("a process id"))?),
        "--fairness" => extended.fairness = true,
        "--target" => {
            for part in value.split(',') {
                let target = part.rsplit_once(':').and_then(|(host, port)| {
                    let host = host.trim_matches(['[', ']']).to_owned();
                    port.parse().ok().map(|port| (host, port))
                });
                extended.targets.push(target.ok_or_else(|| wrong("host:port,host:port"))?);
            }
        }
        "--pin" => extended.cpus = cpus(value).ok_or_else(|| wrong("CPUs such as 0-3,6"))?,
        "--rfr" if value == "no" => {}
        "--rfr" => return Err("--rfr: only 'no' can be served".to_owned()),
        _ => return Err(format!("{name} is not supported")),
    }
    Ok(())
}

/// Rejects combinations that contradict each other. The error is a sentence for stderr.
pub(crate) fn check(options: &Options) -> Result<(), String> {
    let extended = &options.extended;
    if options.tls {
        return Err("TLS is not supported yet: connect without --tls and rediss://".to_owned());
    }
    if extended.duration.is_some() && extended.per_client.is_some() {
        return Err("--duration and --per-client exclude each other".to_owned());
    }
    if extended.rate.is_some_and(|rate| rate.per_second <= 0.0)
        && extended.rate_steps.is_empty()
        && extended.find_max.is_none()
    {
        return Err("--arrival and --max-backlog need a --rate".to_owned());
    }
    if extended.mix.is_some() && !options.command.is_empty() {
        return Err("--mix and a command exclude each other".to_owned());
    }
    let has_keys = options.keyspace.is_some() || extended.key_max.is_some();
    if extended.keys.is_some() && !has_keys {
        return Err("--keys and --sequential need -r or --key-max".to_owned());
    }
    if let Some(max) = extended.key_max
        && max < extended.key_min
    {
        return Err("--key-max is below --key-min".to_owned());
    }
    Ok(())
}

/// Reads `1000`, `2.5k` or `1M`.
pub(crate) fn rate_number(text: &str) -> Option<f64> {
    let text = text.trim();
    let (number, factor) = match text.chars().last()? {
        'k' | 'K' => (&text[..text.len() - 1], 1e3),
        'm' | 'M' => (&text[..text.len() - 1], 1e6),
        _ => (text, 1.0),
    };
    let value: f64 = number.parse().ok()?;
    (value > 0.0 && value.is_finite()).then_some(value * factor)
}

fn sizes(text: &str) -> Option<Vec<usize>> {
    let text = text.strip_prefix("list:").unwrap_or(text);
    if let Some((low, high)) = text.split_once('-') {
        let (low, high): (usize, usize) = (low.parse().ok()?, high.parse().ok()?);
        if low > high || high > SIZE_MAX {
            return None;
        }
        // Requests are prebuilt: a range is served by sizes spread evenly over it.
        let steps = (high - low).clamp(1, SIZE_STEPS - 1);
        return Some((0..=steps).map(|step| low + (high - low) * step / steps).collect());
    }
    let list: Option<Vec<usize>> = text.split(',').map(|part| part.trim().parse().ok()).collect();
    list.filter(|list| !list.is_empty() && list.iter().all(|size| (1..=SIZE_MAX).contains(size)))
}

fn value_kind(text: &str) -> Option<ValueKind> {
    match text.split_once(':') {
        None if text == "fixed" => Some(ValueKind::Fixed),
        None if text == "random" => Some(ValueKind::Random),
        Some(("compressible", share)) => {
            let share: f64 = share.strip_suffix('%').map_or_else(
                || share.parse().ok(),
                |percent| percent.parse::<f64>().ok().map(|percent| percent / 100.0),
            )?;
            (0.0..=1.0).contains(&share).then_some(ValueKind::Compressible(share))
        }
        _ => None,
    }
}

fn cpus(text: &str) -> Option<Vec<usize>> {
    let mut list = Vec::new();
    for part in text.split(',') {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let (low, high): (usize, usize) = (low.trim().parse().ok()?, high.trim().parse().ok()?);
        if low > high || high >= 1_024 {
            return None;
        }
        list.extend(low..=high);
    }
    Some(list)
}

const DEFAULT_RATE: Rate = Rate { per_second: 0.0, arrival: Arrival::Fixed, max_backlog: 1_000_000, open_loop: true };
const SIZE_MAX: usize = 1 << 30;
const SIZE_STEPS: usize = 64;

macro_rules! definitions {
    ($($task:literal { $($name:literal $value:literal $help:literal)* })*) => {
        /// All options of this table, in the order of the help.
        pub(crate) const DEFINITIONS: &[Definition] = &[
            $($(Definition {
                name: $name,
                spec: concat!($name, " ", $value),
                value: $value,
                task: $task,
                help: $help,
            },)*)*
        ];
    };
}

definitions! {
    "load" {
        "--duration" "TIME" "Run for a time instead of a number of requests."
        "--warmup" "TIME" "Run this long before anything is counted."
        "--rate" "N" "Open loop: N requests per second whatever the server does."
        "--arrival" "KIND" "Gaps of --rate: fixed or poisson."
        "--max-backlog" "N" "Drop scheduled requests when N wait (default 1000000)."
        "--rps" "N" "Closed loop of at most N requests per second."
        "--rate-steps" "LIST" "Run at each of these rates, e.g. 10k,20k,50k."
        "--find-max" "SLO" "Search the highest rate that meets e.g. 'p99<2ms,err<0.1%'."
        "--per-client" "N" "Each client sends N requests; the total is -c times N."
        "--script" "FILE" "Workload file: phases with options of their own (TOML)."
        "--timeout" "TIME" "Count a request as failed after this time and reconnect."
    }
    "keys" {
        "--keys" "KIND" "uniform, seq, unique, zipf:S, gauss:SD, latest or hot:P%:K%."
        "--sequential" "" "The same as --keys seq."
        "--key-min" "N" "First key number (default 0)."
        "--key-max" "N" "Last key number; instead of -r."
        "--key-prefix" "TEXT" "Put before every key of the suite."
        "--spread" "" "Also give lists, sets, hashes, zsets and streams many keys."
        "--mix" "LIST" "Weighted mix of suite tests, e.g. set=1,get=9."
        "--size" "BYTES" "Value sizes: N, A-B or a list A,B,C."
        "--value" "KIND" "fixed, random or compressible:SHARE."
    }
    "errors" {
        "--on-error" "WHAT" "stop (default), count or reconnect."
        "--max-errors" "N" "Exit 4 after more errors than N, or N% of the requests."
    }
    "reports" {
        "--output" "FORMAT" "text (default), json, csv-ext or md."
        "--output-file" "FILE" "Write the report there."
        "--percentiles" "LIST" "Percentiles of the json, csv-ext and md reports."
        "--timeline" "TIME" "Add a row per interval to the json report."
        "--hdr-log" "FILE" "Write an HdrHistogram log, one tagged line per test."
        "--tui" "WHEN" "Live view on the terminal: auto, yes or no (default)."
        "--prometheus" "ADDRESS" "Serve metrics there (a bare port: on loopback)."
        "--progress" "WHEN" "always (default, on stdout), tty (on stderr) or never."
        "--assert" "COND" "Exit 3 unless e.g. 'p99<2ms', 'tps>50000', 'errors==0'."
        "--baseline" "FILE" "Compare with an earlier json report; exit 3 if worse."
        "--max-regress" "PERCENT" "Loss that --baseline allows (default 5)."
        "--fairness" "" "Requests per client: min, median, max, Jain index (always past -c 10230)."
        "--legacy-latency" "" "With -P: one latency for the whole batch, as Redis 7.2."
        "--legacy-output" "4" "Report as redis-benchmark of Redis 4."
        "--legacy-output=4" "" "The same."
    }
    "machine" {
        "--source" "LIST" "Local addresses to connect from, in turn: A,B or A-B."
        "--source-ip" "LIST" "The same."
        "--connect-rate" "N" "Open at most N connections per second."
        "--hold" "TIME" "Keep the connections open so long after each test."
        "--server-pid" "PID" "Report the CPU time per request of this process on this machine."
        "--target" "LIST" "Several servers host:port, clients spread in turn."
        "--pin" "CPUS" "Pin the threads to these CPUs, e.g. 0-3,6."
        "--rfr" "no" "Accepted for Valkey's scripts; only 'no'."
        "--rdma" "" "Not supported."
        "--mptcp" "" "Not supported."
        "--fuzz" "" "Not supported."
        "--dataset" "FILE" "Not supported."
        "--maxdocs" "N" "Not supported."
        "--num-functions" "N" "Not supported."
        "--num-keys-in-fcall" "N" "Not supported."
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn values_are_read() {
        let mut extended = Extended::default();
        apply(&mut extended, "--rate", "2.5k/s").unwrap();
        apply(&mut extended, "--arrival", "poisson").unwrap();
        let rate = extended.rate.unwrap();
        assert!((rate.per_second - 2_500.0).abs() < 1e-9 && rate.open_loop);
        assert_eq!(rate.arrival, Arrival::Poisson);
        apply(&mut extended, "--size", "10-12").unwrap();
        assert_eq!(extended.sizes, [10, 11, 12]);
        apply(&mut extended, "--size", "1,2,300").unwrap();
        assert_eq!(extended.sizes, [1, 2, 300]);
        apply(&mut extended, "--value", "compressible:25%").unwrap();
        assert_eq!(extended.value, ValueKind::Compressible(0.25));
        apply(&mut extended, "--max-errors", "0.5%").unwrap();
        assert_eq!(extended.max_errors, Some(ErrorBudget::Percent(0.5)));
        apply(&mut extended, "--pin", "0-2,5").unwrap();
        assert_eq!(extended.cpus, [0, 1, 2, 5]);
        apply(&mut extended, "--target", "a:1,[::1]:2").unwrap();
        assert_eq!(extended.targets, [("a".to_owned(), 1), ("::1".to_owned(), 2)]);
    }

    #[test]
    fn mistakes_name_option_and_value() {
        let mut extended = Extended::default();
        for (name, value) in [("--rate", "x"), ("--keys", "y"), ("--size", "9-1"), ("--warmup", "")] {
            let error = apply(&mut extended, name, value).unwrap_err();
            assert!(error.contains(name) && error.contains(value), "{error}");
        }
        assert_eq!(apply(&mut extended, "--rdma", ""), Err("--rdma is not supported".to_owned()));
    }

    #[test]
    fn every_definition_is_applied() {
        for definition in DEFINITIONS.iter().filter(|d| !d.help.starts_with("Not supported")) {
            let result = apply(&mut Extended::default(), definition.name, "\u{0}");
            if let Err(error) = result {
                assert!(!error.ends_with("is not supported"), "{error}");
            }
        }
    }
}
