//! A bar that tells on a terminal how far a long work is, and keeps silent elsewhere.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Time between two drawings, and before the first.
const EVERY: Duration = Duration::from_millis(200);
/// Cells of the bar.
const CELLS: u64 = 40;

/// See the module. It is drawn on the standard error.
pub struct Bar {
    title: &'static str,
    total: u64,
    is_on: bool,
    is_drawn: bool,
    started: Instant,
    next: Instant,
}

impl Bar {
    /// A bar for a work of `total` bytes.
    pub fn new(title: &'static str, total: u64) -> Bar {
        let now = Instant::now();
        let is_on = io::stderr().is_terminal() && total > 0;
        Bar { title, total, is_on, is_drawn: false, started: now, next: now + EVERY }
    }

    /// Shows that `done` bytes are done, if it is time to.
    pub fn show(&mut self, done: u64) {
        if !self.is_on || Instant::now() < self.next {
            return;
        }
        self.next = Instant::now() + EVERY;
        self.is_drawn = true;
        let line = line(self.title, done, self.total, self.started.elapsed());
        // Nobody may be looking.
        let _ = write!(io::stderr(), "\r{line}\x1b[K");
    }

    /// Takes the bar off the terminal.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.clear();
    }
}

fn line(title: &str, done: u64, total: u64, elapsed: Duration) -> String {
    let done = done.min(total);
    let filled = done * CELLS / total.max(1);
    let bar: String = (0..CELLS).map(|cell| if cell < filled { '#' } else { '.' }).collect();
    let percent = done * 100 / total.max(1);
    #[allow(clippy::cast_precision_loss)]
    let rate = done as f64 / elapsed.as_secs_f64().max(0.001) / (1024.0 * 1024.0);
    format!("{title} [{bar}] {percent} % {rate:.0} MiB/s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_fills() {
        let text = line("loading", 50 << 20, 100 << 20, Duration::from_secs(1));
        assert_eq!(text, format!("loading [{}{}] 50 % 50 MiB/s", "#".repeat(20), ".".repeat(20)));
        assert!(line("x", 9, 0, Duration::ZERO).contains("0 %"));
    }
}
