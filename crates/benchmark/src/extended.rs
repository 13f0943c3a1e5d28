//! Options beyond redis-benchmark 7.2: one table, from which parsing and `--help` follow.
//!
//! All are long, so none can clash with an old option. `--name=value` is not accepted, as it is
//! not for the old ones, except for the value of `--legacy-output`.

mod apply;
mod check;
mod table;

use std::{path::PathBuf, time::Duration};

use crate::{agents::AgentAddress, agents::AllowedTarget, assertions::Assertion, keys::Distribution};

pub(crate) use self::{
    apply::apply,
    check::{check, is_loopback_name},
    table::{DEFINITIONS, is_ours},
};

/// Settings that redis-benchmark does not have; the defaults leave its behaviour as it is.
#[derive(Debug, Clone)]
pub(crate) struct Extended {
    /// Length of the measured part; takes the place of `-n`.
    pub(crate) duration: Option<Duration>,
    /// Time to run before anything is counted.
    pub(crate) warmup: Duration,
    /// Time to go on after the measured part.
    pub(crate) cooldown: Duration,
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
    /// How the clients are dealt out to the targets.
    pub(crate) target_policy: TargetPolicy,
    /// CPUs to pin the threads to, in turn.
    pub(crate) cpus: Vec<usize>,
    /// Numbers of clients to run with, one after the other, each for [`Extended::ramp_step`].
    pub(crate) ramp_clients: Vec<usize>,
    /// Length of a step of the ramp.
    pub(crate) ramp_step: Duration,
    /// Lives of keys to draw from.
    pub(crate) ttls: Vec<Ttl>,
    /// Values carry a checksum, which replies are compared with.
    pub(crate) verify: bool,
    /// Whether the suite's keys carry a hash tag.
    pub(crate) hash_tag: Option<HashTag>,
    /// Operations of a mix with settings of their own.
    pub(crate) operations: Vec<OperationSettings>,
    /// Recorded traffic to send instead of a test.
    pub(crate) replay: Option<PathBuf>,
    /// How much faster than recorded; `None` for as fast as the server answers.
    pub(crate) speed: Speed,
    /// File to record the server's traffic into.
    pub(crate) record: Option<PathBuf>,
    /// Delete the keys of the tests at the end.
    pub(crate) cleanup: bool,
    /// Writing to other machines and flushing are meant.
    pub(crate) yes: bool,
    /// Address on which this process waits for jobs.
    pub(crate) agent: Option<String>,
    /// Generators on other machines that share the load.
    pub(crate) agents: Vec<AgentAddress>,
    /// File with the token of the agents.
    pub(crate) token_file: Option<PathBuf>,
    /// Servers that an agent may load; empty: all.
    pub(crate) allowed_targets: Vec<AllowedTarget>,
    /// Agents that may be lost without ending the run.
    pub(crate) tolerated_agents: usize,
    /// Run although an agent is unfit.
    pub(crate) force: bool,
    /// Table whose rows fill `__field:name__`.
    pub(crate) dataset: Option<PathBuf>,
    /// Rows to take of the table.
    pub(crate) dataset_rows_max: usize,
    /// Functions that the tests of functions load.
    pub(crate) functions: u64,
    /// Keys of a function call.
    pub(crate) function_keys: u64,
    /// Connect by Multipath TCP.
    pub(crate) multipath: bool,
    /// Nodes of a cluster that are sent to.
    pub(crate) read_from: ReadFrom,
    /// Only measure the generator itself.
    pub(crate) self_check: bool,
    /// An option that neither Redis nor Valkey has was given.
    pub(crate) is_used: bool,
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
            target_policy: TargetPolicy::RoundRobin,
            cpus: Vec::new(),
            cooldown: Duration::ZERO,
            ramp_clients: Vec::new(),
            ramp_step: Duration::ZERO,
            ttls: Vec::new(),
            verify: false,
            hash_tag: None,
            operations: Vec::new(),
            replay: None,
            speed: Speed::Times(1.0),
            record: None,
            cleanup: false,
            yes: false,
            agent: None,
            agents: Vec::new(),
            token_file: None,
            allowed_targets: Vec::new(),
            tolerated_agents: 0,
            force: false,
            dataset: None,
            dataset_rows_max: usize::MAX,
            functions: 10,
            function_keys: 1,
            multipath: false,
            read_from: ReadFrom::Primaries,
            self_check: false,
            is_used: false,
        }
    }
}

/// How the clients are dealt out to several targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TargetPolicy {
    /// The first client to the first target, the second to the second, and round again.
    RoundRobin,
    /// The first part of the clients to the first target, the next part to the second; a thread serves as few targets as
    /// it can.
    Split,
}

/// Whether the suite's keys carry a hash tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HashTag {
    /// `{tag}`, filled so that every slot is hit alike.
    Spread,
    /// None.
    None,
}

/// Life of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ttl {
    /// Milliseconds.
    pub(crate) ms: u64,
}

impl Ttl {
    /// The words for SET: whole seconds as `EX`, which every server knows.
    pub(crate) fn words(self) -> [String; 2] {
        match self.ms % 1_000 {
            0 => ["EX".to_owned(), (self.ms / 1_000).to_string()],
            _ => ["PX".to_owned(), self.ms.to_string()],
        }
    }
}

/// Pace of a replay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Speed {
    /// This many times as fast as recorded.
    Times(f64),
    /// As fast as the server answers.
    Unlimited,
}

/// Nodes of a cluster that requests go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadFrom {
    /// Primaries.
    Primaries,
    /// Replicas.
    Replicas,
    /// Both.
    All,
}

/// An operation of a mix with settings of its own (`--op`, or a table below a phase of a workload file).
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OperationSettings {
    /// Name of its row; a test of the suite unless there is a command.
    pub(crate) name: String,
    /// Share of the requests.
    pub(crate) weight: u32,
    /// Words of a command of its own.
    pub(crate) command: Vec<String>,
    /// Distribution of its key numbers.
    pub(crate) keys: Option<Distribution>,
    /// First and last key number.
    pub(crate) key_min: Option<u64>,
    /// Last key number.
    pub(crate) key_max: Option<u64>,
    /// Value sizes in bytes to draw from.
    pub(crate) sizes: Vec<usize>,
    /// Lives of its keys to draw from.
    pub(crate) ttls: Vec<Ttl>,
}

/// A limit or a schedule of requests.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
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
    /// One HTML page with charts, without anything from elsewhere.
    Html,
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

#[cfg(test)]
mod tests;
