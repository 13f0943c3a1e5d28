//! Reports in redis-benchmark's own formats, byte for byte: the text of 7.2, `-q`, `--csv`, and
//! the text of Redis 4 (`--legacy-output=4`).
//!
//! Redis: figures go through single precision before they are printed; so do ours, or the last
//! digit would differ now and then.

use std::fmt::Write as _;

use crate::{
    latency::{self, Latency, Row},
    options::Options,
    results::Outcome,
};

/// Persistence settings of a server, as `CONFIG GET` gave them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerConfig {
    /// Value of `save`.
    pub(crate) save: String,
    /// Value of `appendonly`.
    pub(crate) appendonly: String,
}

/// What the report says about the server besides the figures.
#[derive(Debug, Clone)]
pub(crate) enum Configuration {
    /// One server; nothing is printed when CONFIG GET failed.
    Standalone(Option<ServerConfig>),
    /// The primaries of a cluster.
    Cluster(Vec<Option<ServerConfig>>),
}

/// Header of the `--csv` report.
pub(crate) const CSV_HEADER: &str = concat!(
    r#""test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","#,
    r#""p95_latency_ms","p99_latency_ms","max_latency_ms""#
);

/// The six figures of a summary, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Summary {
    /// Mean.
    pub(crate) average: f32,
    /// Least.
    pub(crate) min: f32,
    /// Median.
    pub(crate) p50: f32,
    /// 95th percentile.
    pub(crate) p95: f32,
    /// 99th percentile.
    pub(crate) p99: f32,
    /// Greatest.
    pub(crate) max: f32,
}

impl Summary {
    /// Figures of a histogram in Redis's layout.
    pub(crate) fn new(view: &Latency) -> Summary {
        let at = |percent| milliseconds(latency::value_at_percent(view, percent));
        #[expect(clippy::cast_possible_truncation, reason = "Redis: single precision")]
        let average = (latency::mean_us(view) / 1000.0) as f32;
        Summary {
            average,
            min: milliseconds(view.min()),
            p50: at(50.0),
            p95: at(95.0),
            p99: at(99.0),
            max: milliseconds(view.max()),
        }
    }
}

/// The full text report of 7.2.
pub(crate) fn text(options: &Options, threads: usize, server: &Configuration, outcome: &Outcome) -> String {
    let view = latency::redis_view(&outcome.service, options.precision);
    let mut out = heading(options, outcome);
    match server {
        Configuration::Cluster(nodes) => {
            let _ = writeln!(out, "  cluster mode: yes ({} masters)", nodes.len());
            for (index, config) in nodes.iter().enumerate() {
                let Some(config) = config else { continue };
                let save = if config.save.is_empty() { "NONE" } else { &config.save };
                let _ = writeln!(out, "  node [{index}] configuration:");
                let _ = writeln!(out, "    save: {save}");
                let _ = writeln!(out, "    appendonly: {}", config.appendonly);
            }
        }
        Configuration::Standalone(Some(config)) => {
            let _ = writeln!(out, "  host configuration \"save\": {}", config.save);
            let _ = writeln!(out, "  host configuration \"appendonly\": {}", config.appendonly);
        }
        Configuration::Standalone(None) => {}
    }
    if threads == 0 {
        out.push_str("  multi-thread: no\n");
    } else {
        let _ = writeln!(out, "  multi-thread: yes\n  threads: {threads}");
    }
    out.push_str("\nLatency by percentile distribution:\n");
    rows(&mut out, &latency::percentile_rows(&view));
    out.push_str("\nCumulative distribution of latencies:\n");
    rows(&mut out, &latency::linear_rows(&view));
    let figures = Summary::new(&view);
    let _ = write!(
        out,
        "\nSummary:\n  throughput summary: {:.2} requests per second\n  latency summary (msec):\n",
        outcome.redis_rate()
    );
    let heads = ["avg", "min", "p50", "p95", "p99", "max"];
    let values = [figures.average, figures.min, figures.p50, figures.p95, figures.p99, figures.max];
    let heads: Vec<String> = heads.iter().map(|head| format!("{head:>9}")).collect();
    let values: Vec<String> = values.iter().map(|value| format!("{value:9.3}")).collect();
    let _ = write!(out, "    {}\n    {}\n", heads.join(" "), values.join(" "));
    out
}

/// The line of `-q`.
pub(crate) fn quiet(options: &Options, outcome: &Outcome) -> String {
    let view = latency::redis_view(&outcome.service, options.precision);
    format!(
        "{}: {:.2} requests per second, p50={:.3} msec\n",
        outcome.title,
        outcome.redis_rate(),
        milliseconds(latency::value_at_percent(&view, 50.0))
    )
}

/// The row of `--csv`. Redis: quotes in the title are not escaped.
pub(crate) fn csv(options: &Options, outcome: &Outcome) -> String {
    let figures = Summary::new(&latency::redis_view(&outcome.service, options.precision));
    format!(
        "\"{}\",\"{:.2}\",\"{:.3}\",\"{:.3}\",\"{:.3}\",\"{:.3}\",\"{:.3}\",\"{:.3}\"\n",
        outcome.title,
        outcome.redis_rate(),
        figures.average,
        figures.min,
        figures.p50,
        figures.p95,
        figures.p99,
        figures.max
    )
}

/// The report of Redis 4: whole milliseconds, a row per latency, then the rate.
pub(crate) fn text_of_redis_4(options: &Options, outcome: &Outcome) -> String {
    if options.csv {
        return format!("\"{}\",\"{:.2}\"\n", outcome.title, outcome.redis_rate());
    }
    if options.quiet {
        return format!("{}: {:.2} requests per second\n", outcome.title, outcome.redis_rate());
    }
    let mut out = heading(options, outcome);
    out.push('\n');
    let total = outcome.service.len();
    let mut cumulative = 0;
    let mut pending: Option<(u64, u64)> = None;
    let mut lines = Vec::new();
    for bucket in outcome.service.iter_recorded() {
        let whole_ms = outcome.service.lowest_equivalent(bucket.value_iterated_to()) / 1000;
        if let Some((ms, count)) = pending
            && ms != whole_ms
        {
            lines.push((ms, count));
        }
        cumulative += bucket.count_at_value();
        pending = Some((whole_ms, cumulative));
    }
    // Redis 4 printed the last row twice.
    lines.extend(pending);
    lines.extend(pending);
    for (ms, count) in lines {
        #[expect(clippy::cast_precision_loss, reason = "Redis: single precision")]
        let percent = count as f32 * 100.0 / total as f32;
        let _ = writeln!(out, "{percent:.2}% <= {ms} milliseconds");
    }
    let _ = write!(out, "{:.2} requests per second\n\n", outcome.redis_rate());
    out
}

fn heading(options: &Options, outcome: &Outcome) -> String {
    #[expect(clippy::cast_precision_loss, reason = "Redis: single precision")]
    let seconds = outcome.elapsed.as_millis() as f32 / 1000.0;
    format!(
        "====== {} ======\n  {} requests completed in {seconds:.2} seconds\n  {} parallel clients\n  \
         {} bytes payload\n  keep alive: {}\n",
        outcome.title, outcome.finished, options.clients, outcome.payload_bytes, options.keep_alive
    )
}

fn rows(out: &mut String, rows: &[Row]) {
    for row in rows {
        let _ = writeln!(
            out,
            "{:.3}% <= {:.3} milliseconds (cumulative count {})",
            row.percent,
            milliseconds(row.value_us),
            row.cumulative
        );
    }
}

#[expect(clippy::cast_precision_loss, reason = "Redis: single precision")]
fn milliseconds(microseconds: u64) -> f32 {
    microseconds as f32 / 1000.0
}

#[cfg(test)]
mod tests;
