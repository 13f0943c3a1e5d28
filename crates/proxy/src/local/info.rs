//! INFO of the proxy: its process, clients, figures and backends. What is the servers' alone is not there.

use std::fmt::{Display, Write as _};
use std::sync::atomic::Ordering;

use commands::table;
use resp::{Args, Reply};
use server::process::usage::{self, Whose};

use super::figures::percentile;
use crate::backend::LaneState;
use crate::pubsub::hub::Kind;
use crate::service::Worker;
use crate::slots::Kind as Backends;

/// A section: its name in requests, whether it is among those given without a request, and what writes it.
type Section = (&'static str, bool, fn(&Worker, &mut Report));

const SECTIONS: [Section; 9] = [
    ("server", true, server),
    ("clients", true, clients),
    ("memory", true, memory),
    ("stats", true, stats),
    ("cpu", true, cpu),
    ("commandstats", false, command_stats),
    ("latencystats", false, latency_stats),
    ("cluster", true, cluster),
    ("backends", true, backends),
];

/// The text in the making.
struct Report(String);

impl Report {
    fn field(&mut self, name: &str, value: impl Display) {
        // Writing to a String cannot fail.
        let _ = write!(self.0, "{name}:{value}\r\n");
    }

    fn fields(&mut self, fields: &[(&str, u64)]) {
        for (name, value) in fields {
            self.field(name, value);
        }
    }
}

impl Worker {
    /// INFO [section …].
    pub(super) fn info(&mut self, place: u32, args: Args<'_>) -> Reply {
        let wanted: Vec<String> =
            args.iter().skip(1).map(|word| String::from_utf8_lossy(word).to_ascii_lowercase()).collect();
        let is_named = |name: &str| wanted.iter().any(|word| word == name);
        let all = is_named("all") || is_named("everything");
        let default = wanted.is_empty() || is_named("default");
        let mut report = Report(String::new());
        for (name, is_default, write) in SECTIONS {
            if !(all || (default && is_default) || is_named(name)) {
                continue;
            }
            if !report.0.is_empty() {
                report.0.push_str("\r\n");
            }
            let title = match name {
                "cpu" => "CPU".to_owned(),
                name => name.get(..1).unwrap_or_default().to_ascii_uppercase() + name.get(1..).unwrap_or_default(),
            };
            let _ = write!(report.0, "# {title}\r\n");
            write(self, &mut report);
        }
        self.written(place, |_, reply| reply.verbatim(report.0, "txt"))
    }
}

fn server(worker: &Worker, report: &mut Report) {
    let shared = &worker.shared;
    let base = &worker.config.base;
    let uptime_s = shared.started.elapsed().as_secs();
    report.field("redis_version", server::process::REDIS_VERSION);
    report.field("redis_mode", "standalone");
    report.field("arch_bits", usize::BITS);
    report.field("multiplexing_api", "epoll");
    report.field("process_id", std::process::id());
    report.field("run_id", &shared.run_id);
    report.field("tcp_port", base.port);
    report.field("server_time_usec", worker.now_ms.saturating_mul(1000));
    report.field("uptime_in_seconds", uptime_s);
    report.field("uptime_in_days", uptime_s / 86_400);
    report.field("config_file", shared.config.file().map(|file| file.display().to_string()).unwrap_or_default());
    report.field("oxidis_version", env!("CARGO_PKG_VERSION"));
    report.field("oxidis_role", "proxy");
    report.field("oxidis_workers", shared.workers());
}

fn clients(worker: &Worker, report: &mut Report) {
    let shared = &worker.shared;
    report.fields(&[
        ("connected_clients", shared.clients.load(Ordering::Relaxed) as u64),
        ("maxclients", u64::from(worker.config.base.maxclients)),
        ("blocked_clients", shared.sum(|stats| stats.blocked.get())),
    ]);
}

fn memory(_: &Worker, report: &mut Report) {
    let used = keyspace::memory::used_bytes();
    report.field("used_memory", used);
    report.field("used_memory_human", server::memory_report::human(used as u64));
    let resident = usage::resident_bytes();
    report.field("used_memory_rss", resident);
    report.field("used_memory_rss_human", server::memory_report::human(resident as u64));
    report.field("mem_allocator", server::process::allocator::name());
}

fn stats(worker: &Worker, report: &mut Report) {
    let shared = &worker.shared;
    report.fields(&[
        ("total_connections_received", shared.sum(|stats| stats.connections.get())),
        ("total_commands_processed", shared.sum(|stats| stats.requests.get())),
        ("total_net_input_bytes", shared.sum(|stats| stats.bytes_in.get())),
        ("total_net_output_bytes", shared.sum(|stats| stats.bytes_out.get())),
        ("rejected_connections", shared.sum(|stats| stats.rejected.get())),
        ("pubsub_channels", shared.board.names(Kind::Channel) as u64),
        ("pubsub_patterns", shared.board.names(Kind::Pattern) as u64),
        ("pubsubshard_channels", shared.board.names(Kind::Shard) as u64),
        ("total_error_replies", shared.sum(|stats| stats.errors.get())),
        ("client_query_buffer_limit_disconnections", shared.sum(|stats| stats.query_limit_disconnections.get())),
        ("client_output_buffer_limit_disconnections", shared.sum(|stats| stats.output_limit_disconnections.get())),
        ("proxy_redirects", shared.sum(|stats| stats.redirects.get())),
        ("proxy_retries", shared.sum(|stats| stats.retries.get())),
        ("proxy_backend_failures", shared.sum(|stats| stats.backend_failures.get())),
    ]);
}

fn cpu(_: &Worker, report: &mut Report) {
    let time = usage::processor_time(Whose::Process);
    let seconds = |us: u64| format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
    report.field("used_cpu_sys", seconds(time.system_us));
    report.field("used_cpu_user", seconds(time.user_us));
}

fn command_stats(worker: &Worker, report: &mut Report) {
    for spec in table::all() {
        let calls = worker.shared.sum(|stats| stats.calls.get(spec.id.index()).map_or(0, crate::shared::Counter::get));
        if calls == 0 {
            continue;
        }
        let (timed, us) = (worker.durations(spec.id).values().sum::<u64>(), worker.sum_us(spec.id));
        #[allow(clippy::cast_precision_loss)]
        let mean = if timed == 0 { 0.0 } else { us as f64 / timed as f64 };
        report.field(
            &format!("cmdstat_{}", spec.name),
            format_args!("calls={calls},usec={us},usec_per_call={mean:.2},rejected_calls=0,failed_calls=0"),
        );
    }
}

fn latency_stats(worker: &Worker, report: &mut Report) {
    for spec in table::all() {
        let durations = worker.durations(spec.id);
        if !durations.is_empty() {
            let at = |percent| percentile(&durations, percent);
            report.field(
                &format!("latency_percentiles_usec_{}", spec.name),
                format_args!("p50={}.000,p99={}.000,p99.9={}.000", at(50.0), at(99.0), at(99.9)),
            );
        }
    }
}

fn cluster(worker: &Worker, report: &mut Report) {
    let map = &worker.map;
    // To its clients the proxy is one server.
    report.field("cluster_enabled", 0);
    let kind = match map.kind {
        Backends::Plain => "plain",
        Backends::Native => "native",
        Backends::Cluster => "cluster",
    };
    report.field("proxy_topology", kind);
    report.field("proxy_topology_version", worker.map_version);
    report.field("proxy_slots", map.owners.len());
    report.field("proxy_slots_owned", map.owners.iter().filter(|owner| **owner != crate::slots::NO_OWNER).count());
}

/// One line a backend, as the worker that is asked sees it.
fn backends(worker: &Worker, report: &mut Report) {
    for (number, backend) in worker.map.backends.iter().enumerate() {
        let slots = worker.map.owners.iter().filter(|owner| usize::from(**owner) == number).count();
        let lanes = || {
            let is_its = |lane: &crate::backend::Lane| {
                worker.backends.get(lane.backend as usize).is_some_and(|other| other.address == backend.address)
            };
            worker.lanes.iter().map(|(_, lane)| lane).filter(move |lane| is_its(lane))
        };
        let shared = lanes().filter(|lane| lane.owner.is_none());
        let state = match shared.clone().next().map(|lane| lane.state) {
            Some(LaneState::Open) => "open",
            Some(LaneState::Opening(_)) => "opening",
            Some(LaneState::Down(_) | LaneState::Probing(_)) => "down",
            Some(LaneState::Idle) | None => "idle",
        };
        let in_flight: u64 = shared.clone().map(crate::backend::Lane::in_flight).sum();
        let durations = worker.backend_durations(&backend.name);
        report.field(
            &format!("backend{number}"),
            format_args!(
                "address={},slots={slots},state={state},calls={},p50_usec={},p99_usec={},lanes={},private={},in_flight={in_flight}",
                backend.name,
                durations.values().sum::<u64>(),
                percentile(&durations, 50.0),
                percentile(&durations, 99.0),
                shared.count(),
                lanes().filter(|lane| lane.owner.is_some()).count(),
            ),
        );
    }
}
