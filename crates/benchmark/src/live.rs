//! The live view on a terminal (`--tui`): a few lines redrawn in place, four times a second.
//!
//! ```text
//!  SET   12.3 s  ██████████████░░░░░░░░░░  58%  8.9 s left
//!  TPS       123456  ▃▅▆▇▇█▇▇▆▇▇
//!  p50 ms     0.231  ▁▁▂▁▁▁▁▂▁▁▁
//!  p99 ms     1.207  ▁▂▁▁▇▁▁▁▂▁▁
//!  p99.9 ms   2.047  ▁▂▁▁▇▁▁▁▂▁▁
//!  errors         0   connections 50   q ends and reports, p pauses, h helps
//!  agent a:7701       61728/s   p99    1.199 ms   errors 0   connections 25
//!  ≤ 0.1 ms  ██████            12.0%
//!  ≤ 0.2 ms  ████████████████  61.3%
//! ```
//!
//! Pure text in, text out: what is drawn is a function of [`View`]. Colour carries no meaning of
//! its own and is left out when `NO_COLOR` is set.

use std::{collections::VecDeque, fmt::Write as _, time::Duration};

use crate::latency::{self, Latency};

/// What the view knows.
#[derive(Debug)]
pub(crate) struct View {
    title: String,
    elapsed: Duration,
    /// Share of the test that is done, when that can be known.
    share: Option<f64>,
    finished: u64,
    errors: u64,
    connections: u64,
    rates: VecDeque<f64>,
    medians: VecDeque<f64>,
    tails: VecDeque<f64>,
    far_tails: VecDeque<f64>,
    is_paused: bool,
    is_helping: bool,
    agents: Vec<AgentRow>,
    all: Latency,
    lines_drawn: usize,
    has_colour: bool,
}

/// News since the last frame.
#[derive(Debug)]
pub(crate) struct News {
    /// Time since the test began.
    pub(crate) elapsed: Duration,
    /// Share of the test that is done, when that can be known.
    pub(crate) share: Option<f64>,
    /// Replies so far.
    pub(crate) finished: u64,
    /// Errors so far.
    pub(crate) errors: u64,
    /// Connections.
    pub(crate) connections: u64,
    /// Latencies since the last frame.
    pub(crate) latencies: Latency,
    /// No request is sent for now.
    pub(crate) is_paused: bool,
    /// The generators of a joined run.
    pub(crate) agents: Vec<AgentRow>,
}

/// One generator of a joined run.
#[derive(Debug, Clone)]
pub(crate) struct AgentRow {
    /// Its address.
    pub(crate) name: String,
    /// Replies per second since the last frame.
    pub(crate) rate: f64,
    /// 99th percentile since the last frame, ms.
    pub(crate) tail_ms: f64,
    /// Errors so far.
    pub(crate) errors: u64,
    /// Connections.
    pub(crate) connections: u64,
    /// It answers no more.
    pub(crate) is_lost: bool,
}

/// What a key of the live view asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    /// End the test and report.
    Quit,
    /// Send nothing, or go on.
    Pause,
    /// Show or hide what the keys and lines mean.
    Help,
}

impl Key {
    /// The meaning of a byte from the terminal.
    pub(crate) fn of(byte: u8) -> Option<Key> {
        match byte {
            b'q' | b'Q' => Some(Key::Quit),
            b'p' | b'P' | b' ' => Some(Key::Pause),
            b'h' | b'H' | b'?' => Some(Key::Help),
            _ => None,
        }
    }
}

impl View {
    /// An empty view of a test.
    pub(crate) fn new(title: &str) -> View {
        View {
            title: title.chars().filter(|c| !c.is_control()).take(TITLE_MAX).collect(),
            elapsed: Duration::ZERO,
            share: None,
            finished: 0,
            errors: 0,
            connections: 0,
            rates: VecDeque::new(),
            medians: VecDeque::new(),
            tails: VecDeque::new(),
            far_tails: VecDeque::new(),
            is_paused: false,
            is_helping: false,
            agents: Vec::new(),
            all: latency::recorder(3),
            lines_drawn: 0,
            has_colour: std::env::var_os("NO_COLOR").is_none(),
        }
    }

    /// Takes in what has happened.
    pub(crate) fn update(&mut self, news: &News) {
        let interval = news.elapsed.saturating_sub(self.elapsed).as_secs_f64().max(1e-3);
        push(&mut self.rates, float(news.finished.saturating_sub(self.finished)) / interval);
        let at = |percent| float(latency::value_at_percent(&news.latencies, percent)) / 1000.0;
        push(&mut self.medians, at(50.0));
        push(&mut self.tails, at(99.0));
        push(&mut self.far_tails, at(99.9));
        self.is_paused = news.is_paused;
        self.agents.clone_from(&news.agents);
        for bucket in news.latencies.iter_recorded() {
            self.all.saturating_record_n(bucket.value_iterated_to(), bucket.count_at_value());
        }
        self.elapsed = news.elapsed;
        self.share = news.share;
        self.finished = news.finished;
        self.errors = news.errors;
        self.connections = news.connections;
    }

    /// Shows the help, or hides it.
    pub(crate) fn toggle_help(&mut self) {
        self.is_helping = !self.is_helping;
    }

    /// The bytes that draw the view over its last frame.
    pub(crate) fn draw(&mut self) -> String {
        let mut out = self.erase();
        let (columns, rows) = screen();
        let mut lines = self.lines();
        // A line that wraps, or one that scrolls out, would be left behind by the next frame.
        lines.truncate(rows.saturating_sub(1).max(1));
        self.lines_drawn = lines.len();
        for line in lines {
            out.push_str(&fit(&line, columns));
            out.push('\n');
        }
        out
    }

    /// The bytes that take the last frame away.
    pub(crate) fn erase(&mut self) -> String {
        match std::mem::take(&mut self.lines_drawn) {
            0 => String::new(),
            // Cursor up to the first line, then clear to the end of the screen.
            lines => format!("\r\x1b[{lines}A\x1b[J"),
        }
    }

    fn lines(&self) -> Vec<String> {
        let seconds = self.elapsed.as_secs_f64();
        let mut head = format!(" {}   {seconds:.1} s", self.bold(&self.title));
        if let Some(share) = self.share {
            let share = share.clamp(0.0, 1.0);
            let left = if share > 0.01 { seconds / share - seconds } else { 0.0 };
            let bar = bar(share, BAR_WIDTH, '░');
            let _ = write!(head, "  {bar}  {:.0}%  {left:.1} s left", share * 100.0);
        }
        let mut lines = vec![head];
        if self.is_paused {
            lines[0].push_str("  PAUSED");
        }
        for (name, series, decimals) in [
            ("TPS", &self.rates, 0),
            ("p50 ms", &self.medians, 3),
            ("p99 ms", &self.tails, 3),
            ("p99.9 ms", &self.far_tails, 3),
        ] {
            let last = series.back().copied().unwrap_or_default();
            lines.push(format!(" {name:<8} {last:>12.decimals$}  {}", sparks(series)));
        }
        lines.push(format!(
            " errors   {:>12}   connections {}   q ends and reports, p pauses, h helps",
            self.errors, self.connections
        ));
        let width = self.agents.iter().map(|agent| agent.name.chars().count()).max().unwrap_or(0);
        for AgentRow { name, rate, tail_ms, errors, connections, is_lost } in &self.agents {
            let lost = if *is_lost { "   LOST" } else { "" };
            lines.push(format!(
                " agent {name:<width$} {rate:>10.0}/s   p99 {tail_ms:>8.3} ms   errors {errors}   connections {connections}{lost}"
            ));
        }
        if self.is_helping {
            lines.extend(HELP.lines().map(str::to_owned));
        }
        lines.extend(self.histogram());
        lines
    }

    /// Shares of all latencies by powers of two around where they lie.
    fn histogram(&self) -> Vec<String> {
        if self.all.is_empty() {
            return Vec::new();
        }
        let low = latency::value_at_percent(&self.all, 1.0).max(1).ilog2();
        let high = latency::value_at_percent(&self.all, 99.9).max(1).ilog2() + 1;
        let high = high.min(low + HISTOGRAM_LINES);
        let mut before = 0;
        (low + 1..=high)
            .map(|power| {
                let bound = 1_u64 << power;
                let until = self.all.count_between(0, bound);
                let share = float(until - before) / float(self.all.len());
                before = until;
                let bar = bar(share, BAR_WIDTH, ' ');
                format!(" ≤ {:>9.3} ms  {bar}  {:.1}%", float(bound) / 1000.0, share * 100.0)
            })
            .collect()
    }

    fn bold(&self, text: &str) -> String {
        if self.has_colour { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Columns and rows of the terminal that the view is drawn on; without bounds elsewhere.
fn screen() -> (usize, usize) {
    match rustix::termios::tcgetwinsize(std::io::stderr()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (usize::from(size.ws_col), usize::from(size.ws_row)),
        _ => (usize::MAX, usize::MAX),
    }
}

/// As much of a line as there are columns; switches of bold take none.
fn fit(line: &str, columns: usize) -> String {
    let (mut out, mut used, mut is_switch) = (String::with_capacity(line.len()), 0, false);
    for letter in line.chars() {
        is_switch |= letter == '\x1b';
        if !is_switch {
            used += 1;
        }
        if is_switch || used <= columns {
            out.push(letter);
        }
        is_switch &= letter != 'm';
    }
    out
}

fn push(series: &mut VecDeque<f64>, value: f64) {
    if series.len() == SPARKS {
        series.pop_front();
    }
    series.push_back(value);
}

/// A line chart of one character per value, from zero to the greatest.
fn sparks(series: &VecDeque<f64>) -> String {
    let top = series.iter().copied().fold(0.0, f64::max);
    series.iter().map(|value| SPARK_CHARS[step(*value, top, SPARK_CHARS.len() - 1)]).collect()
}

fn bar(share: f64, width: usize, empty: char) -> String {
    let full = step(share, 1.0, width);
    (0..width).map(|at| if at < full { '█' } else { empty }).collect()
}

fn step(value: f64, top: f64, steps: usize) -> usize {
    if top <= 0.0 {
        return 0;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and the number of steps")]
    let step = (value / top * float(steps as u64)).round() as usize;
    step.min(steps)
}

#[expect(clippy::cast_precision_loss, reason = "drawn with a few digits")]
fn float(value: u64) -> f64 {
    value as f64
}

const HELP: &str = "\
 q  end the test now and report       p  send nothing until p is pressed again
 h  this help                         Ctrl-C  as q
 Each line shows the last value and the course of the last ten seconds;
 the bars below are all latencies so far.";
const TITLE_MAX: usize = 40;
const BAR_WIDTH: usize = 24;
const SPARKS: usize = 40;
const HISTOGRAM_LINES: u32 = 8;
const SPARK_CHARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_replaces_the_last() {
        let mut view = View::new("SET \x1b[31m");
        view.has_colour = false;
        let mut latencies = latency::recorder(3);
        latencies.saturating_record_n(100, 90);
        latencies.saturating_record_n(900, 10);
        view.update(&News {
            elapsed: Duration::from_secs(2),
            share: Some(0.25),
            finished: 100,
            errors: 3,
            connections: 50,
            latencies,
            is_paused: true,
            agents: vec![AgentRow {
                name: "a:1".to_owned(),
                rate: 25.0,
                tail_ms: 1.5,
                errors: 0,
                connections: 5,
                is_lost: true,
            }],
        });
        view.toggle_help();
        let first = view.draw();
        assert!(first.starts_with(" SET [31m   2.0 s  ██████░"), "{first}");
        assert!(first.contains("25%  6.0 s left"), "{first}");
        assert!(first.contains(" TPS                50  █"), "{first}");
        assert!(first.contains(" p99 ms          0.900"), "{first}");
        assert!(first.contains("≤     0.128 ms") && first.contains("90.0%"), "{first}");
        assert!(first.contains(" p99.9 ms        0.900") && first.contains("left  PAUSED\n"), "{first}");
        assert!(
            first.contains(" agent a:1         25/s   p99    1.500 ms   errors 0   connections 5   LOST\n"),
            "{first}"
        );
        assert!(first.contains("until p is pressed again"), "{first}");
        assert_eq!([b'q', b'p', b'h', b'x'].map(Key::of), [Some(Key::Quit), Some(Key::Pause), Some(Key::Help), None]);
        let lines = first.matches('\n').count();
        assert!(view.draw().starts_with(&format!("\r\x1b[{lines}A\x1b[J")));
        view.erase();
        assert_eq!(view.erase(), "");
    }

    #[test]
    fn lines_are_cut_to_the_screen() {
        assert_eq!(fit("\x1b[1mtitle\x1b[0m rest", 7), "\x1b[1mtitle\x1b[0m r");
        assert_eq!(fit("≤ 1 ms", usize::MAX), "≤ 1 ms");
        assert!(HELP.lines().all(|line| line.chars().count() < 80));
    }
}
