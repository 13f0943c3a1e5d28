//! The line that moves while a test runs, as redis-benchmark prints it.

use std::{
    io::{self, IsTerminal, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use crate::{
    agents::server::Reporter,
    extended,
    keyboard::Keyboard,
    live::{Key, News, View},
    options::Options,
    prometheus::Metrics,
};

/// Printer of progress lines; remembers how much it has to blank.
#[derive(Debug)]
pub(crate) struct Progress<'a> {
    sink: Sink,
    title: String,
    printed_bytes: usize,
    previous: (Duration, u64, u64),
    live: Option<View>,
    keyboard: Option<Keyboard>,
    metrics: Option<Arc<Metrics>>,
    /// The coordinator to tell, when this is an agent.
    reporter: Option<Reporter<'a>>,
    latency_sum_us: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sink {
    Stdout,
    Stderr,
    /// The live view, on stderr.
    Live,
    /// The coordinator.
    Agent,
    Nowhere,
}

impl<'a> Progress<'a> {
    /// Time between two lines.
    pub(crate) const INTERVAL: Duration = Duration::from_millis(250);

    /// A printer as the options want it.
    pub(crate) fn new(options: &Options, metrics: Option<Arc<Metrics>>) -> Progress<'a> {
        let redis_output = options.extended.output == extended::Output::Redis;
        let is_live = match options.extended.live {
            extended::Live::Auto => io::stderr().is_terminal(),
            extended::Live::Always => true,
            extended::Live::Never => false,
        };
        let sink = match options.extended.progress {
            _ if is_live => Sink::Live,
            extended::Progress::Never => Sink::Nowhere,
            _ if options.csv => Sink::Nowhere,
            // Machine-readable reports own stdout.
            extended::Progress::Compatible if redis_output => Sink::Stdout,
            _ if io::stderr().is_terminal() => Sink::Stderr,
            _ => Sink::Nowhere,
        };
        Progress::with_sink(sink, metrics)
    }

    /// One that tells a coordinator.
    pub(crate) fn of_agent(reporter: Reporter<'a>) -> Progress<'a> {
        Progress { reporter: Some(reporter), ..Progress::with_sink(Sink::Agent, None) }
    }

    fn with_sink(sink: Sink, metrics: Option<Arc<Metrics>>) -> Progress<'a> {
        Progress {
            sink,
            title: String::new(),
            printed_bytes: 0,
            previous: (Duration::ZERO, 0, 0),
            live: None,
            keyboard: None,
            metrics,
            reporter: None,
            latency_sum_us: 0,
        }
    }

    /// Whether the test is to begin at an instant that comes from elsewhere.
    pub(crate) fn waits_for_start(&self) -> bool {
        self.reporter.is_some()
    }

    /// All connections stand: waits for the instant at which the test is to begin. False when it is not to.
    pub(crate) fn wait_for_start(&self, connected: u64, interrupted: &AtomicBool) -> bool {
        self.reporter.as_ref().is_none_or(|reporter| reporter.wait_for_start(connected, interrupted))
    }

    /// What the user has asked for by a key since the last call.
    pub(crate) fn key(&mut self) -> Option<Key> {
        let key = Key::of(self.keyboard.as_ref()?.key()?);
        if key == Some(Key::Help)
            && let Some(view) = &mut self.live
        {
            view.toggle_help();
        }
        key
    }

    /// Gives the terminal back.
    pub(crate) fn release_keys(&mut self) {
        self.keyboard = None;
    }

    /// Time between two lines, frames or reports.
    pub(crate) fn interval(&self) -> Duration {
        Self::INTERVAL
    }

    /// Whether [`Progress::show_live`] is to be called instead of [`Progress::show`].
    pub(crate) fn is_live(&self) -> bool {
        matches!(self.sink, Sink::Live | Sink::Agent)
    }

    /// Draws the live view.
    pub(crate) fn show_live(&mut self, news: &News) {
        if let Some(reporter) = &self.reporter {
            reporter.report(news, self.latency_sum_us);
        }
        if let Some(view) = &mut self.live {
            view.update(news);
            let frame = view.draw();
            self.write(&frame);
        }
    }

    /// Passes figures on to the scrapers of metrics.
    pub(crate) fn publish(&mut self, finished: u64, latency_us: u64, connected: u64, errors: u64) {
        self.latency_sum_us = latency_us;
        if let Some(metrics) = &self.metrics {
            metrics.finished.store(finished, Ordering::Relaxed);
            metrics.latency_sum_us.store(latency_us, Ordering::Relaxed);
            metrics.connected.store(connected, Ordering::Relaxed);
            metrics.errors.store(errors, Ordering::Relaxed);
        }
    }

    /// A test begins.
    pub(crate) fn begin(&mut self, title: &str) {
        title.clone_into(&mut self.title);
        self.printed_bytes = 0;
        self.previous = (Duration::ZERO, 0, 0);
        if self.sink == Sink::Live {
            self.live = Some(View::new(title));
            self.keyboard = Keyboard::open();
        }
        if let Some(metrics) = &self.metrics {
            metrics.begin(title);
        }
    }

    /// Prints the line for `finished` requests in `elapsed`, whose latencies add up to
    /// `latency_us`.
    pub(crate) fn show(&mut self, elapsed: Duration, finished: u64, latency_us: u64) {
        let (last_elapsed, last_finished, last_latency_us) = self.previous;
        self.previous = (elapsed, finished, latency_us);
        let now = finished.saturating_sub(last_finished);
        let line = format!(
            "{}: rps={:.1} (overall: {:.1}) avg_msec={:.3} (overall: {:.3})\r",
            self.title,
            ratio(now, elapsed.saturating_sub(last_elapsed).as_secs_f64()),
            ratio(finished, elapsed.as_secs_f64()),
            average_ms(latency_us.saturating_sub(last_latency_us), now),
            average_ms(latency_us, finished),
        );
        let blank = self.blank();
        self.printed_bytes = line.len();
        self.write(&format!("{blank}{line}"));
    }

    /// Prints the number of idle connections (`-I`).
    pub(crate) fn idle(&mut self, connections: u64) {
        self.write(&format!("clients: {connections}\r"));
    }

    /// The bytes that wipe the line before a report; empty where no line is shown.
    pub(crate) fn blank(&self) -> String {
        let width = self.printed_bytes;
        if matches!(self.sink, Sink::Nowhere | Sink::Live | Sink::Agent) {
            String::new()
        } else {
            format!("{:>width$}\r", " ")
        }
    }

    /// Wipes the line if it is not on stdout, where the report does so itself.
    pub(crate) fn end(&mut self) -> String {
        self.keyboard = None;
        match self.sink {
            Sink::Stdout => self.blank(),
            Sink::Stderr => {
                self.write(&self.blank());
                String::new()
            }
            Sink::Live => {
                let erase = self.live.as_mut().map_or_else(String::new, View::erase);
                self.write(&erase);
                String::new()
            }
            Sink::Nowhere | Sink::Agent => String::new(),
        }
    }

    fn write(&self, text: &str) {
        // A reader that went away must not end the measurement.
        let _ = match self.sink {
            Sink::Stdout => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush())
            }
            Sink::Stderr | Sink::Live => io::stderr().lock().write_all(text.as_bytes()),
            Sink::Nowhere | Sink::Agent => Ok(()),
        };
    }
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn ratio(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
}

/// Redis: prints `-nan` before the first reply; a number is more use.
fn average_ms(sum_us: u64, count: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let average = if count == 0 { 0.0 } else { sum_us as f64 / count as f64 / 1000.0 };
    average
}
