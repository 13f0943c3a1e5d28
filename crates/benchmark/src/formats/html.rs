//! The HTML report: one page with its charts as inline SVG and every figure as a table beside them. It takes nothing from
//! elsewhere, prints well, and follows the reader's choice of light or dark.

use std::{fmt::Write as _, time::SystemTime};

use plotters::prelude::*;

use super::{date_and_time, milliseconds};
use crate::{
    latency::{self, Latency},
    results::{GroupOutcome, Outcome},
    session::Session,
};

/// One test of the page, ready to be put in.
#[derive(Debug)]
pub(super) struct Section {
    title: String,
    rate: f64,
    summary: String,
    body: String,
}

/// A line of a chart.
struct Series {
    name: &'static str,
    colour: RGBColor,
    points: Vec<(f64, f64)>,
}

impl Section {
    /// Draws a test.
    pub(super) fn new(session: &Session, outcome: &Outcome) -> Section {
        let latency = outcome.response.as_ref().unwrap_or(&outcome.service);
        let at = |percent| milliseconds(latency::value_at_percent(latency, percent));
        let mut body = String::new();
        if let Some(response) = &outcome.response {
            let _ = write!(
                body,
                "<p>Open loop: <b>response</b> counts from when a request was due, <b>service</b> from when it was sent. \
                 {} requests were dropped, {} still waited at the end.</p>",
                outcome.dropped, outcome.backlog
            );
            body.push_str(&percentiles(session, &[("response", response), ("service", &outcome.service)]));
        } else {
            body.push_str(&percentiles(session, &[("service", &outcome.service)]));
        }
        if outcome.timeline.len() > 1 {
            body.push_str(&timeline(outcome));
        }
        body.push_str(&groups("Operations", &outcome.operations, outcome));
        body.push_str(&groups("Targets", &outcome.targets, outcome));
        body.push_str(&agents(outcome));
        body.push_str(&errors(outcome));
        let (least, median, most) = outcome.fairness.spread();
        let _ = write!(
            body,
            "<p>{} connections, {} served; requests per connection: least {least}, median {median}, most {most}; Jain index \
             {:.4}. Generator: {:.1} s of CPU, busiest thread {:.0}%{}.</p>",
            outcome.fairness.connections(),
            outcome.fairness.served(),
            outcome.fairness.jain_index(),
            outcome.generator_cpu.as_secs_f64(),
            (outcome.busiest_thread * 100.0).min(100.0),
            if outcome.generator_limited() { " – <b>the generator was the limit</b>" } else { "" },
        );
        let summary = format!(
            "<td>{}</td><td>{}</td><td>{:.2}</td><td>{:.0}</td><td>{:.3}</td><td>{:.3}</td><td>{:.3}</td><td>{:.3}</td>\
             <td>{:.3}</td><td>{}</td>",
            escape(&outcome.title),
            outcome.finished,
            outcome.elapsed.as_secs_f64(),
            outcome.rate(),
            latency::mean_us(latency) / 1000.0,
            at(50.0),
            at(99.0),
            at(99.9),
            milliseconds(latency.max()),
            outcome.errors.total(),
        );
        Section { title: outcome.title.clone(), rate: outcome.rate(), summary, body }
    }
}

/// The whole page.
pub(super) fn page(session: &Session, arguments: &[String], started: SystemTime, sections: &[Section]) -> String {
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>oxidis benchmark</title><style>{STYLE}</style></head><body>\n<h1>oxidis benchmark</h1>\n\
         <p>Servers: {}. Begun {}, version {}.</p>\n<pre>{}</pre>\n",
        escape(&session.servers().iter().map(|server| server.name.as_str()).collect::<Vec<_>>().join(", ")),
        date_and_time(started),
        env!("CARGO_PKG_VERSION"),
        escape(&arguments.join(" ")),
    );
    out.push_str(
        "<h2>Summary</h2>\n<table><tr><th>test</th><th>requests</th><th>time s</th><th>TPS</th><th>avg ms</th>\
         <th>p50 ms</th><th>p99 ms</th><th>p99.9 ms</th><th>max ms</th><th>errors</th></tr>\n",
    );
    for section in sections {
        let _ = writeln!(out, "<tr>{}</tr>", section.summary);
    }
    out.push_str("</table>\n");
    if sections.len() > 1 {
        out.push_str(&figure("Requests per second of each test", &bars(sections)));
    }
    for section in sections {
        let _ = write!(out, "<h2>{}</h2>\n{}\n", escape(&section.title), section.body);
    }
    out.push_str("</body></html>\n");
    out
}

/// The percentile curves, and their values in a table.
fn percentiles(session: &Session, kinds: &[(&'static str, &Latency)]) -> String {
    let colours = [BLUE_LINE, ORANGE_LINE];
    let series: Vec<Series> = kinds
        .iter()
        .zip(colours)
        .map(|((name, latency), colour)| Series {
            name,
            colour,
            points: nines(latency)
                .map(|(nines, percent)| (nines, milliseconds(latency::value_at_percent(latency, percent))))
                .collect(),
        })
        .collect();
    // 90%, 97%, 99%, 99.7%, 99.9% …
    let label = |nines: &f64| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few digits")]
        let decimals = (nines.ceil() - 2.0).max(0.0) as usize;
        format!("{:.decimals$}%", 100.0 - 100.0 / 10_f64.powf(*nines))
    };
    let mut out = figure("Latency by percentile (ms)", &lines(&series, "percentile", "ms", Some(&label)));
    out.push_str("<table><tr><th></th>");
    let percents = &session.options.extended.percentiles;
    for percent in percents {
        let _ = write!(out, "<th>p{percent} ms</th>");
    }
    out.push_str("<th>max ms</th></tr>");
    for (name, latency) in kinds {
        let _ = write!(out, "<tr><td>{name}</td>");
        for percent in percents {
            let _ = write!(out, "<td>{:.3}</td>", milliseconds(latency::value_at_percent(latency, *percent)));
        }
        let _ = write!(out, "<td>{:.3}</td></tr>", milliseconds(latency.max()));
    }
    out.push_str("</table>\n");
    out
}

/// Places on an axis on which 90 %, 99 % and 99.9 % are equally far apart, as far as there are samples.
fn nines(latency: &Latency) -> impl Iterator<Item = (f64, f64)> {
    #[expect(clippy::cast_precision_loss, reason = "a place on an axis")]
    let end = (latency.len().max(10) as f64).log10();
    (0..=CURVE_POINTS).map(move |point| {
        let nines = end * f64::from(point) / f64::from(CURVE_POINTS);
        (nines, 100.0 - 100.0 / 10_f64.powf(nines))
    })
}

fn timeline(outcome: &Outcome) -> String {
    let of = |figure: &dyn Fn(&crate::results::Interval) -> f64| -> Vec<(f64, f64)> {
        outcome.timeline.iter().map(|interval| (interval.end.as_secs_f64(), figure(interval))).collect()
    };
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let rate = of(&|interval| interval.service.len() as f64 / interval.length.as_secs_f64().max(1e-9));
    let tail = of(&|interval| milliseconds(latency::value_at_percent(&interval.service, 99.0)));
    let middle = of(&|interval| milliseconds(latency::value_at_percent(&interval.service, 50.0)));
    let mut out = figure(
        "Requests per second over time",
        &lines(&[Series { name: "TPS", colour: BLUE_LINE, points: rate.clone() }], "s", "TPS", None),
    );
    let both = [
        Series { name: "p99", colour: ORANGE_LINE, points: tail.clone() },
        Series { name: "p50", colour: BLUE_LINE, points: middle.clone() },
    ];
    out.push_str(&figure("Latency over time (ms)", &lines(&both, "s", "ms", None)));
    out.push_str(
        "<details><summary>Timeline as a table</summary><table><tr><th>s</th><th>TPS</th><th>p50 ms</th><th>p99 ms</th>\
         <th>errors</th></tr>",
    );
    for (((interval, rate), middle), tail) in outcome.timeline.iter().zip(&rate).zip(&middle).zip(&tail) {
        let _ = write!(
            out,
            "<tr><td>{:.1}</td><td>{:.0}</td><td>{:.3}</td><td>{:.3}</td><td>{}</td></tr>",
            rate.0, rate.1, middle.1, tail.1, interval.errors
        );
    }
    out.push_str("</table></details>\n");
    out
}

fn groups(heading: &str, rows: &[GroupOutcome], outcome: &Outcome) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut out = format!(
        "<h3>{heading}</h3><table><tr><th>name</th><th>requests</th><th>TPS</th><th>avg ms</th><th>p50 ms</th><th>p99 ms</th>\
         <th>errors</th></tr>"
    );
    for row in rows {
        let _ = write!(
            out,
            "<tr><td>{}</td>{}<td>{}</td></tr>",
            escape(&row.name),
            cells(&row.service, outcome),
            row.errors
        );
    }
    out.push_str("</table>\n");
    out
}

fn agents(outcome: &Outcome) -> String {
    if outcome.agents.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "<h3>Agents</h3><table><tr><th>name</th><th>connections</th><th>requests</th><th>TPS</th><th>avg ms</th>\
         <th>p50 ms</th><th>p99 ms</th><th>errors</th><th></th></tr>",
    );
    for agent in &outcome.agents {
        let _ = write!(
            out,
            "<tr><td>{}</td><td>{}</td>{}<td>{}</td><td>{}</td></tr>",
            escape(&agent.name),
            agent.outcome.connected,
            cells(&agent.outcome.service, outcome),
            agent.outcome.errors.total(),
            if agent.is_lost { "LOST" } else { "" }
        );
    }
    out.push_str("</table>\n");
    out
}

fn cells(service: &Latency, outcome: &Outcome) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let rate = service.len() as f64 / outcome.elapsed.as_secs_f64().max(1e-9);
    format!(
        "<td>{}</td><td>{rate:.0}</td><td>{:.3}</td><td>{:.3}</td><td>{:.3}</td>",
        service.len(),
        latency::mean_us(service) / 1000.0,
        milliseconds(latency::value_at_percent(service, 50.0)),
        milliseconds(latency::value_at_percent(service, 99.0)),
    )
}

fn errors(outcome: &Outcome) -> String {
    if outcome.errors.is_empty() {
        return String::new();
    }
    let mut out = String::from("<h3>Errors</h3><table><tr><th>class</th><th>count</th><th>first</th></tr>");
    for (class, entry) in outcome.errors.iter() {
        let (class, first) = (escape(class), escape(&entry.first));
        let _ = write!(out, "<tr><td>{class}</td><td>{}</td><td>{first}</td></tr>", entry.count);
    }
    out.push_str("</table>\n");
    out
}

fn figure(caption: &str, svg: &str) -> String {
    let caption = escape(caption);
    format!("<figure role=\"img\" aria-label=\"{caption}\"><figcaption>{caption}</figcaption>{svg}</figure>\n")
}

/// A chart of lines whose ordinate begins at zero. A chart that cannot be drawn is left out: the tables have its figures.
fn lines(series: &[Series], x_name: &str, y_name: &str, x_label: Option<&dyn Fn(&f64) -> String>) -> String {
    let all = || series.iter().flat_map(|series| &series.points);
    let x_end = all().map(|point| point.0).fold(0.0, f64::max).max(1e-9);
    let y_end = all().map(|point| point.1).fold(0.0, f64::max).max(1e-9) * HEADROOM;
    let mut svg = String::new();
    let drawn = (|| -> Result<(), DrawingAreaErrorKind<std::io::Error>> {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        let text = ("sans-serif", 13).into_font().color(&GREY);
        let builder = &mut ChartBuilder::on(&area);
        builder.margin(8).x_label_area_size(34).y_label_area_size(64);
        let drawing = |error: DrawingAreaErrorKind<_>| match error {
            DrawingAreaErrorKind::BackendError(_) => DrawingAreaErrorKind::LayoutError,
            DrawingAreaErrorKind::SharingError => DrawingAreaErrorKind::SharingError,
            DrawingAreaErrorKind::LayoutError => DrawingAreaErrorKind::LayoutError,
        };
        let mut chart = builder.build_cartesian_2d(0.0..x_end, 0.0..y_end).map_err(drawing)?;
        let mut mesh = chart.configure_mesh();
        mesh.axis_style(GREY).bold_line_style(GREY.mix(0.3)).light_line_style(TRANSPARENT).label_style(text.clone());
        mesh.x_desc(x_name).y_desc(y_name);
        if let Some(label) = x_label {
            mesh.x_label_formatter(label).x_labels(8);
        }
        mesh.draw().map_err(drawing)?;
        for series in series {
            let style = series.colour.stroke_width(2);
            chart
                .draw_series(LineSeries::new(series.points.iter().copied(), style))
                .map_err(drawing)?
                .label(series.name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
        }
        if series.len() > 1 {
            let mut labels = chart.configure_series_labels();
            labels.position(SeriesLabelPosition::UpperLeft).label_font(text).border_style(GREY);
            labels.draw().map_err(drawing)?;
        }
        area.present().map_err(drawing)
    })();
    match drawn {
        Ok(()) => svg,
        Err(_) => String::new(),
    }
}

/// Bars of the rates of all tests, the first at the top.
fn bars(sections: &[Section]) -> String {
    let count = i32::try_from(sections.len()).unwrap_or(i32::MAX);
    let end = sections.iter().map(|section| section.rate).fold(0.0, f64::max).max(1e-9) * HEADROOM;
    let height = u32::try_from(count).unwrap_or(1).saturating_mul(26).saturating_add(60).min(4_000);
    let mut svg = String::new();
    let drawn = (|| -> Option<()> {
        let area = SVGBackend::with_string(&mut svg, (SIZE.0, height)).into_drawing_area();
        let text = ("sans-serif", 13).into_font().color(&GREY);
        let mut chart = ChartBuilder::on(&area)
            .margin(8)
            .x_label_area_size(34)
            .y_label_area_size(220)
            .build_cartesian_2d(0.0..end, (0..count - 1).into_segmented())
            .ok()?;
        let name = |place: &SegmentValue<i32>| match place {
            SegmentValue::CenterOf(at) => usize::try_from(count - 1 - *at)
                .ok()
                .and_then(|at| sections.get(at))
                .map_or_else(String::new, |section| section.title.chars().take(30).collect()),
            _ => String::new(),
        };
        chart
            .configure_mesh()
            .axis_style(GREY)
            .bold_line_style(GREY.mix(0.3))
            .light_line_style(TRANSPARENT)
            .label_style(text)
            .y_labels(sections.len())
            .y_label_formatter(&name)
            .x_desc("TPS")
            .draw()
            .ok()?;
        let bars = sections.iter().rev().zip(0..).map(|(section, at)| {
            let mut bar = Rectangle::new(
                [(0.0, SegmentValue::Exact(at)), (section.rate, SegmentValue::Exact(at + 1))],
                BLUE_LINE.filled(),
            );
            bar.set_margin(4, 4, 0, 0);
            bar
        });
        chart.draw_series(bars).ok()?;
        area.present().ok()
    })();
    drawn.map_or_else(String::new, |()| svg)
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:15px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem}\
table{border-collapse:collapse;margin:.5rem 0 1.5rem;font-variant-numeric:tabular-nums}\
th,td{padding:.2rem .7rem;text-align:right;border-bottom:1px solid #8885}\
th:first-child,td:first-child{text-align:left}\
figure{margin:1rem 0}figcaption{font-weight:600}svg{max-width:100%;height:auto}\
pre{white-space:pre-wrap;background:#8881;padding:.6rem}\
@media print{body{max-width:none}figure,table{break-inside:avoid}}";
const SIZE: (u32, u32) = (920, 320);
const HEADROOM: f64 = 1.05;
const CURVE_POINTS: u32 = 240;
/// Blue and orange differ for every kind of colour vision; grey is read on light and dark.
const BLUE_LINE: RGBColor = RGBColor(0, 114, 178);
const ORANGE_LINE: RGBColor = RGBColor(213, 94, 0);
const GREY: RGBColor = RGBColor(128, 128, 128);
