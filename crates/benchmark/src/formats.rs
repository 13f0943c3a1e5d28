//! Reports that redis-benchmark does not have: JSON, extended CSV, Markdown, HTML, the histogram log,
//! and the notes on stderr. The JSON is described by `schema/benchmark-report.json` of this crate.

mod hdr_log;
mod html;
mod json;

use std::{
    ffi::OsString,
    fmt::Write as _,
    fs,
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::Value as Json;

use crate::{
    extended::Output,
    latency::{self, Latency},
    options::Options,
    preflight::{Connection, reason},
    results::{GroupOutcome, Outcome},
    run::{put, tell},
    session::Session,
    suite::Test,
};

/// What the server says about itself, for the record in the JSON report.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServerInfo {
    fields: Vec<(String, String)>,
}

impl ServerInfo {
    /// Asks for INFO; a server that refuses is described by nothing. Only machine-readable
    /// reports ask, so that redis-benchmark's own commands are all that others see.
    pub(crate) fn ask(connection: &mut Connection, options: &Options) -> ServerInfo {
        if options.extended.output != Output::Json {
            return ServerInfo::default();
        }
        let reply = connection.ask(&["INFO"]);
        let text = match &reply {
            Ok(value) if !value.is_error() => value.as_bytes().unwrap_or_default(),
            _ => &[],
        };
        let text = String::from_utf8_lossy(text).into_owned();
        let fields = text
            .lines()
            .filter_map(|line| line.split_once(':'))
            .filter(|(name, _)| INFO_FIELDS.contains(name))
            .map(|(name, value)| (name.to_owned(), value.trim_end().to_owned()))
            .collect();
        ServerInfo { fields }
    }
}

/// Collects what the chosen format needs, and writes it when the run ends.
#[derive(Debug)]
pub(crate) struct Report {
    arguments: Vec<String>,
    started: SystemTime,
    redis_file: String,
    rows: Vec<Json>,
    csv: String,
    markdown: String,
    html: Vec<html::Section>,
    hdr_log: Vec<hdr_log::Line>,
    baseline: Option<Json>,
}

impl Report {
    /// An empty report. What would make it useless after the load is found before: the error is a sentence for stderr.
    pub(crate) fn new(arguments: &[OsString], session: &Session) -> Result<Report, String> {
        let extended = &session.options.extended;
        let baseline = extended.baseline.as_deref().map(read_baseline).transpose()?;
        for path in extended.output_file.iter().chain(&extended.hdr_log) {
            // What is in it stays until the new report is there. A pipe would take the trial for the end.
            if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
                continue;
            }
            fs::OpenOptions::new()
                .append(true)
                .create(true)
                .open(path)
                .map_err(|error| format!("Error: cannot write {}: {}", path.display(), reason(&error)))?;
        }
        Ok(Report {
            arguments: hide_passwords(arguments),
            started: SystemTime::now(),
            redis_file: String::new(),
            rows: Vec::new(),
            csv: String::new(),
            markdown: String::new(),
            html: Vec::new(),
            hdr_log: Vec::new(),
            baseline,
        })
    }

    /// Takes text in redis-benchmark's format: to stdout at once, or to the file at the end.
    pub(crate) fn redis_text(&mut self, text: &str) {
        put(text);
        self.redis_file.push_str(text);
    }

    /// Takes a finished test.
    pub(crate) fn add(&mut self, session: &Session, test: &Test, outcome: &Outcome) {
        let options = &session.options;
        match options.extended.output {
            Output::Redis => {}
            Output::Json => self.rows.push(json::test(session, test, outcome)),
            Output::CsvExtended => {
                if self.csv.is_empty() {
                    self.csv = csv_header(options);
                }
                self.csv.push_str(&csv_row(session, outcome));
            }
            Output::Markdown => {
                if self.markdown.is_empty() {
                    self.markdown = markdown_header(options);
                }
                self.markdown.push_str(&markdown_row(session, outcome));
            }
            Output::Html => self.html.push(html::Section::new(session, outcome)),
        }
        if options.extended.hdr_log.is_some() {
            self.hdr_log.extend(hdr_log::lines(self.started, outcome));
        }
    }

    /// Writes what was collected. The error is a sentence for stderr.
    pub(crate) fn finish(&self, session: &Session) -> Result<(), String> {
        let extended = &session.options.extended;
        let text = match extended.output {
            Output::Redis => self.redis_file.clone(),
            Output::Json => json::document(session, &self.arguments, self.started, &self.rows),
            Output::CsvExtended => self.csv.clone(),
            Output::Markdown => self.markdown.clone(),
            Output::Html => html::page(session, &self.arguments, self.started, &self.html),
        };
        match &extended.output_file {
            Some(path) => {
                fs::write(path, &text).map_err(|error| format!("Error: cannot write {}: {error}", path.display()))?;
            }
            None if extended.output != Output::Redis => put(&text),
            None => {}
        }
        if let Some(path) = &extended.hdr_log {
            let text = hdr_log::text(self.started, &self.hdr_log)?;
            fs::write(path, text).map_err(|error| format!("Error: cannot write {}: {error}", path.display()))?;
        }
        Ok(())
    }

    /// What is worse than in the baseline by more than is allowed.
    pub(crate) fn worse_than_baseline(&self, session: &Session, outcome: &Outcome) -> Option<String> {
        let tests = self.baseline.as_ref()?.get("tests")?.as_array()?;
        let Some(before) = tests.iter().find(|test| test.get("name").and_then(Json::as_str) == Some(&outcome.title))
        else {
            tell(format_args!("NOTE: the baseline has no test called '{}' to compare with", outcome.title));
            return None;
        };
        let allowed = session.options.extended.max_regress_percent / 100.0;
        let tps = before.get("tps")?.as_f64()?;
        if outcome.rate() < tps * (1.0 - allowed) {
            return Some(format!("{:.0} requests per second, {tps:.0} before", outcome.rate()));
        }
        let p99 = before.get("service")?.get("p99")?.as_f64()?;
        let now = milliseconds(latency::value_at_percent(&outcome.service, 99.0));
        (now > p99 * (1.0 + allowed)).then(|| format!("p99 is {now:.3} ms, {p99:.3} ms before"))
    }
}

/// `2026-03-01 12:00:00 UTC`.
fn date_and_time(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Years that begin with March put the leap day at their end; 719,468 days are from such a year 0 to 1970.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02} UTC", rest / 3_600, rest / 60 % 60, rest % 60)
}

/// Reads an earlier report of our own.
fn read_baseline(path: &Path) -> Result<Json, String> {
    let text = fs::read_to_string(path).map_err(|error| reason(&error));
    let parsed =
        text.and_then(|text| serde_json::from_str(&text).map_err(|error: serde_json::Error| error.to_string()));
    parsed
        .and_then(|json: Json| match json.get("tests").is_some_and(Json::is_array) {
            true => Ok(json),
            false => Err("it has no tests".to_owned()),
        })
        .map_err(|error| {
            format!(
                "Error: cannot read the baseline {}: {error}. A run with --output json --output-file {} makes one",
                path.display(),
                path.display()
            )
        })
}

/// Lines after the text report: what redis-benchmark has no words for.
pub(crate) fn further_lines(options: &Options, outcome: &Outcome) -> String {
    let mut out = open_loop_lines(outcome);
    if let Some(microseconds) = outcome.server_cpu_us() {
        let _ = writeln!(out, "  server CPU: {microseconds:.3} µs per request");
    }
    if options.reports_fairness() && options.keep_alive != 0 {
        out.push_str(&outcome.fairness.line());
    }
    if options.extended.is_used {
        out.push_str(&group_lines("operations", &outcome.operations, outcome));
        out.push_str(&group_lines("targets", &outcome.targets, outcome));
    }
    if !outcome.agents.is_empty() {
        let rows: Vec<GroupOutcome> = outcome
            .agents
            .iter()
            .map(|agent| GroupOutcome {
                name: if agent.is_lost { format!("{} (LOST)", agent.name) } else { agent.name.clone() },
                clients: agent.outcome.connected as u64,
                service: agent.outcome.service.clone(),
                errors: agent.outcome.errors.total(),
            })
            .collect();
        out.push_str(&group_lines("agents", &rows, outcome));
    }
    out
}

/// A table of rows of one kind.
fn group_lines(kind: &str, rows: &[GroupOutcome], outcome: &Outcome) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let width = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0).max(16);
    let mut out = format!(
        "  {:<width$} {:>8} {:>10} {:>11} {:>9} {:>9} {:>9} {:>7}\n",
        format!("{kind}:"),
        "clients",
        "requests",
        "TPS",
        "avg ms",
        "p50",
        "p99",
        "errors"
    );
    for row in rows {
        let clients = if row.clients == 0 { "-".to_owned() } else { row.clients.to_string() };
        let at = |percent| milliseconds(latency::value_at_percent(&row.service, percent));
        #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
        let rate = row.service.len() as f64 / outcome.elapsed.as_secs_f64().max(1e-9);
        let _ = writeln!(
            out,
            "    {:<width$} {clients:>6} {:>10} {rate:>11.2} {:>9.3} {:>9.3} {:>9.3} {:>7}",
            row.name,
            row.service.len(),
            latency::mean_us(&row.service) / 1000.0,
            at(50.0),
            at(99.0),
            row.errors
        );
    }
    out
}

/// Both views of the latency of an open-loop test.
fn open_loop_lines(outcome: &Outcome) -> String {
    let Some(response) = &outcome.response else {
        return String::new();
    };
    let mut out = String::from("  open loop (msec):       avg       p50       p90       p99     p99.9       max\n");
    for (name, histogram) in [("response", response), ("service", &outcome.service)] {
        let _ = write!(out, "    {name:<14}{:>9.3}", latency::mean_us(histogram) / 1000.0);
        for percent in [50.0, 90.0, 99.0, 99.9, 100.0] {
            let value = milliseconds(latency::value_at_percent(histogram, percent));
            let _ = write!(out, " {value:>9.3}");
        }
        out.push('\n');
    }
    if outcome.dropped + outcome.backlog > 0 {
        let _ = writeln!(out, "    {} requests dropped, {} still waiting at the end", outcome.dropped, outcome.backlog);
    }
    out
}

/// What a reader must know before trusting the figures; for stderr, empty when all is well.
pub(crate) fn notes(outcome: &Outcome) -> String {
    let mut out = String::new();
    if outcome.errors.total() > 0 {
        let _ = writeln!(
            out,
            "ERRORS: {} of {} requests of {} failed:",
            outcome.errors.total(),
            outcome.finished,
            outcome.title
        );
        for (class, entry) in outcome.errors.iter() {
            let _ = writeln!(out, "  {class}: {} (first: {})", entry.count, entry.first);
        }
    }
    if outcome.is_inconsistent {
        let _ = writeln!(out, "WARNING: what an agent told during {} is not what it told at its end", outcome.title);
    }
    if outcome.generator_limited() {
        let why = match &outcome.lateness {
            Some(lateness) => {
                let late = milliseconds(latency::value_at_percent(lateness, 99.0));
                format!("requests left {late:.1} ms late (p99) though connections were free")
            }
            None => format!(
                "its busiest thread had little time left (busy {:.0}% of the test)",
                (outcome.busiest_thread * 100.0).min(100.0)
            ),
        };
        let _ = writeln!(
            out,
            "NOTE: the load generator was the limit in {}: {why}; use more --threads or another \
             machine.",
            outcome.title
        );
    }
    out
}

fn csv_header(options: &Options) -> String {
    let mut out = format!(
        "{},\"clients\",\"threads\",\"pipeline\",\"size\",\"requests\",\"seconds\",\"errors\",\
         \"p90_ms\",\"p999_ms\",\"stddev_ms\",\"bytes_rx\",\"bytes_tx\",\"response_p99_ms\"",
        crate::report::CSV_HEADER
    );
    for percent in further_percentiles(options) {
        let _ = write!(out, ",\"p{percent}_ms\"");
    }
    out.push('\n');
    out
}

fn csv_row(session: &Session, outcome: &Outcome) -> String {
    let options = &session.options;
    let service = &outcome.service;
    let at = |percent| milliseconds(latency::value_at_percent(service, percent));
    let mut fields = vec![
        outcome.title.clone(),
        format!("{:.2}", outcome.rate()),
        format!("{:.3}", latency::mean_us(service) / 1000.0),
        format!("{:.3}", milliseconds(service.min())),
        format!("{:.3}", at(50.0)),
        format!("{:.3}", at(95.0)),
        format!("{:.3}", at(99.0)),
        format!("{:.3}", milliseconds(service.max())),
        options.client_count().to_string(),
        session.threads_shown.max(1).to_string(),
        options.pipeline.to_string(),
        outcome.payload_bytes.to_string(),
        outcome.finished.to_string(),
        format!("{:.6}", outcome.elapsed.as_secs_f64()),
        outcome.errors.total().to_string(),
        format!("{:.3}", at(90.0)),
        format!("{:.3}", at(99.9)),
        format!("{:.3}", service.stdev() / 1000.0),
        outcome.bytes_received.to_string(),
        outcome.bytes_sent.to_string(),
        outcome.response.as_ref().map_or_else(String::new, |response| {
            format!("{:.3}", milliseconds(latency::value_at_percent(response, 99.0)))
        }),
    ];
    fields.extend(further_percentiles(options).map(|percent| format!("{:.3}", at(percent))));
    let fields: Vec<String> = fields.iter().map(|field| format!("\"{}\"", field.replace('"', "\"\""))).collect();
    format!("{}\n", fields.join(","))
}

/// Percentiles that have no column of their own in the extended CSV.
fn further_percentiles(options: &Options) -> impl Iterator<Item = f64> {
    let has_column = |percent: &f64| [50.0, 90.0, 95.0, 99.0, 99.9].contains(percent);
    options.extended.percentiles.iter().copied().filter(move |percent| !has_column(percent))
}

fn markdown_header(options: &Options) -> String {
    let mut heads = vec!["test".to_owned(), "requests".to_owned(), "time (s)".to_owned(), "TPS".to_owned()];
    heads.push("avg (ms)".to_owned());
    heads.extend(options.extended.percentiles.iter().map(|percent| format!("p{percent}")));
    heads.extend(["max".to_owned(), "errors".to_owned(), "generator CPU".to_owned()]);
    let rule: Vec<&str> = heads.iter().enumerate().map(|(at, _)| if at == 0 { "---" } else { "---:" }).collect();
    format!("| {} |\n|{}|\n", heads.join(" | "), rule.join("|"))
}

fn markdown_row(session: &Session, outcome: &Outcome) -> String {
    let latency: &Latency = outcome.response.as_ref().unwrap_or(&outcome.service);
    let mut cells = vec![
        outcome.title.replace('|', "\\|"),
        outcome.finished.to_string(),
        format!("{:.2}", outcome.elapsed.as_secs_f64()),
        format!("{:.0}", outcome.rate()),
        format!("{:.3}", latency::mean_us(latency) / 1000.0),
    ];
    cells.extend(
        session
            .options
            .extended
            .percentiles
            .iter()
            .map(|p| format!("{:.3}", milliseconds(latency::value_at_percent(latency, *p)))),
    );
    cells.push(format!("{:.3}", milliseconds(latency.max())));
    cells.push(outcome.errors.total().to_string());
    cells.push(format!("{:.0}%", outcome.busiest_thread * 100.0));
    format!("| {} |\n", cells.join(" | "))
}

/// The arguments for the record, without what nobody else is to read.
fn hide_passwords(arguments: &[OsString]) -> Vec<String> {
    let mut hidden = Vec::with_capacity(arguments.len());
    let mut previous = String::new();
    for argument in arguments {
        let text = argument.to_string_lossy().into_owned();
        let is_secret = previous == "-a" || (previous == "-u" && text.contains('@'));
        hidden.push(if is_secret { "…".to_owned() } else { text.clone() });
        previous = text;
    }
    hidden
}

fn unix_seconds(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn milliseconds(microseconds: u64) -> f64 {
    microseconds as f64 / 1000.0
}

const INFO_FIELDS: &[&str] = &[
    "redis_version",
    "valkey_version",
    "oxidis_version",
    "redis_mode",
    "os",
    "arch_bits",
    "io_threads_active",
    "uptime_in_seconds",
    "connected_clients",
    "used_memory",
    "maxmemory_policy",
    "role",
];

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399, "2000-02-28 23:59:59 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_709_251_200, "2024-03-01 00:00:00 UTC"),
            (1_767_225_599, "2025-12-31 23:59:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(date_and_time(UNIX_EPOCH + Duration::from_secs(seconds)), text);
        }
    }
}
