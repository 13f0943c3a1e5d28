//! The JSON report.

use std::{
    fs,
    time::{Duration, SystemTime},
};

use serde_json::{Map, Value as Json, json};

use super::{milliseconds, unix_seconds};
use crate::{
    agents::{server::machine, wire},
    keys::Distribution,
    latency::{self, Latency},
    results::{AgentOutcome, Outcome},
    session::Session,
    suite::Test,
};

/// One test of the report.
pub(super) fn test(session: &Session, test: &Test, outcome: &Outcome) -> Json {
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
    if outcome.aborted {
        flags.push("aborted");
    }
    if outcome.agents.iter().any(|agent| agent.is_lost) {
        flags.push("agent-lost");
    }
    if outcome.is_inconsistent {
        flags.push("agents-inconsistent");
    }
    let agents: Vec<Json> = outcome.agents.iter().map(|agent| agent_row(agent, percentiles)).collect();
    let targets: Vec<Json> = outcome
        .targets
        .iter()
        .map(|target| {
            json!({
                "name": target.name,
                "clients": target.clients,
                "requests": target.service.len(),
                "tps": rate(target.service.len(), outcome.elapsed),
                "errors": target.errors,
                "service": summary(&target.service, percentiles),
            })
        })
        .collect();
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
                "active": interval.active,
            })
        })
        .collect();
    json!({
        "name": outcome.title,
        "command": command_text(test),
        "clients": options.client_count(),
        "connected": outcome.connected,
        "fairness": fairness(outcome),
        "server_cpu_us": outcome.server_cpu_us(),
        "threads": session.threads_shown.max(1),
        "pipeline": options.pipeline,
        "size": outcome.payload_bytes,
        "keyspace": options.keyspace,
        "keys": options.extended.keys.unwrap_or(Distribution::Uniform).to_string(),
        "requests": outcome.finished,
        "seconds": outcome.elapsed.as_secs_f64(),
        "tps": outcome.rate(),
        "success_tps": outcome.success_rate(),
        "bytes_rx": outcome.bytes_received,
        "bytes_tx": outcome.bytes_sent,
        "null_replies": outcome.null_replies,
        "hits": outcome.hits(),
        "misses": outcome.null_replies,
        "errors": errors,
        "dropped": outcome.dropped,
        "backlog": outcome.backlog,
        "connect": summary(&outcome.connect, percentiles),
        "service": summary(&outcome.service, percentiles),
        "response": outcome.response.as_ref().map(|latency| summary(latency, percentiles)),
        "lateness": outcome.lateness.as_ref().map(|latency| summary(latency, percentiles)),
        "histogram_us": buckets(&outcome.service),
        "hdr_b64": wire::to_text(&outcome.service).unwrap_or_default(),
        "timeline": timeline,
        "per_op": operations,
        "per_target": targets,
        "per_agent": agents,
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
    let machine = machine();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let document = json!({
        "schema": SCHEMA,
        "tool": concat!("oxidis benchmark ", env!("CARGO_PKG_VERSION")),
        "argv": arguments,
        "seed": session.seed(),
        "host": {
            "cpus": std::thread::available_parallelism().map_or(1, usize::from),
            "cpu": cpu_model(),
            "kernel": kernel.trim_end(),
            "limits": { "descriptors": machine.descriptors, "local_ports": machine.ports },
        },
        "server": server,
        "start": unix_seconds(started),
        "end": unix_seconds(SystemTime::now()),
        "tests": tests,
    });
    format!("{document:#}\n")
}

fn agent_row(agent: &AgentOutcome, percentiles: &[f64]) -> Json {
    let outcome = &agent.outcome;
    json!({
        "name": agent.name,
        "lost": agent.is_lost,
        "connected": outcome.connected,
        "requests": outcome.finished,
        "seconds": outcome.elapsed.as_secs_f64(),
        "tps": outcome.rate(),
        "errors": outcome.errors.total(),
        "dropped": outcome.dropped,
        "service": summary(&outcome.service, percentiles),
        "response": outcome.response.as_ref().map(|latency| summary(latency, percentiles)),
        "lateness": outcome.lateness.as_ref().map(|latency| summary(latency, percentiles)),
        "client_cpu": { "seconds": outcome.generator_cpu.as_secs_f64(), "busiest_thread": outcome.busiest_thread },
    })
}

/// The name that the kernel has for the first CPU.
fn cpu_model() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("model name"));
    line.and_then(|line| line.split_once(':')).map_or_else(String::new, |(_, name)| name.trim().to_owned())
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
        .filter_map(|operation| operation.forms.first())
        .map(|form| form.command.escape_ascii().to_string())
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

const SCHEMA: &str = "oxidis-benchmark-1";
const COMMAND_SHOWN: usize = 400;
