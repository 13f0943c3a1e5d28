//! A client that asks 250 times a second and notes how long it waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use testkit::{Client, Server};

/// How a row's error begins when only the bystander's rule was broken.
pub(super) const WAITED: &str = "a bystander waited";

const PERIOD: Duration = Duration::from_millis(4);

/// A running bystander, with a second thread that only sleeps: what that one oversleeps is the
/// scheduler's doing, not the server's.
pub(super) struct Bystander {
    stop: Arc<AtomicBool>,
    asking: JoinHandle<std::io::Result<Vec<Duration>>>,
    sleeping: JoinHandle<std::io::Result<Vec<Duration>>>,
}

/// What a bystander felt, the noise of the machine taken off.
pub(super) struct Felt {
    pub(super) p99_ms: f64,
    pub(super) p995_ms: f64,
    pub(super) max_ms: f64,
    noise_ms: f64,
}

impl Bystander {
    /// Starts asking; `password` authenticates first when it is not empty.
    pub(super) fn start(server: &Server, password: &str) -> Result<Bystander> {
        let mut client = server.client();
        client.set_timeout(Duration::from_secs(60))?;
        if !password.is_empty() {
            client.run(&format!("AUTH {password}"));
        }
        client.run("SET bystander here");
        let stop = Arc::new(AtomicBool::new(false));
        let (stop_asking, stop_sleeping) = (Arc::clone(&stop), Arc::clone(&stop));
        let asking = thread::spawn(move || ask(&mut client, &stop_asking));
        let sleeping = thread::spawn(move || {
            // Counted as the requests are: one long sleep makes all that were due meanwhile late.
            let mut late = Vec::new();
            at_each_period(&stop_sleeping, |since_due| {
                late.push(since_due);
                Ok(())
            })?;
            Ok(late)
        });
        Ok(Bystander { stop, asking, sleeping })
    }

    /// Stops and says what was felt.
    pub(super) fn finish(self) -> Result<Felt> {
        self.stop.store(true, Ordering::Relaxed);
        let waited = self.asking.join().map_err(|_| anyhow::anyhow!("the bystander panicked"))??;
        let late = self.sleeping.join().map_err(|_| anyhow::anyhow!("the sleeper panicked"))??;
        let noise_ms = percentile(&late, 1.0);
        let corrected = |share| (percentile(&waited, share) - percentile(&late, share)).max(0.0);
        Ok(Felt { p99_ms: corrected(0.99), p995_ms: corrected(0.995), max_ms: corrected(1.0), noise_ms })
    }
}

impl Felt {
    /// The rule that every row has to keep: p99.5 under 50 ms, nothing over 250 ms.
    pub(super) fn ensure_quick(&self) -> Result<()> {
        ensure!(self.p995_ms < 50.0 && self.max_ms < 250.0, "{WAITED}: {self}");
        Ok(())
    }
}

impl std::fmt::Display for Felt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "bystander p99 {:.1} ms, p99.5 {:.1} ms, max {:.1} ms (machine's noise up to {:.1} ms)",
            self.p99_ms, self.p995_ms, self.max_ms, self.noise_ms
        )
    }
}

fn ask(client: &mut Client, stop: &AtomicBool) -> std::io::Result<Vec<Duration>> {
    let mut waited = Vec::new();
    at_each_period(stop, |since_due| {
        let started = Instant::now();
        client.call(&["GET", "bystander"])?;
        waited.push(since_due + started.elapsed());
        Ok(())
    })?;
    Ok(waited)
}

/// Runs `work` once for each period until it is told to stop, with how long ago it was due: after a long wait it is
/// run for all that were missed, so that the wait is felt by each of them.
fn at_each_period(stop: &AtomicBool, mut work: impl FnMut(Duration) -> std::io::Result<()>) -> std::io::Result<()> {
    let started = Instant::now();
    let mut due = Duration::ZERO;
    while !stop.load(Ordering::Relaxed) {
        let now = started.elapsed();
        if due > now {
            thread::sleep(due - now);
        }
        work(started.elapsed().saturating_sub(due))?;
        due = (due + PERIOD).max(started.elapsed().saturating_sub(Duration::from_secs(1)));
    }
    Ok(())
}

/// A percentile in milliseconds.
#[allow(clippy::cast_possible_truncation, reason = "an index within the list")]
pub(super) fn percentile(samples: &[Duration], share: f64) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    let last = sorted.len().saturating_sub(1);
    let index = (last as f64 * share).round() as usize;
    sorted.get(index).map_or(0.0, |sample| sample.as_secs_f64() * 1e3)
}
