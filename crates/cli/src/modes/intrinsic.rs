//! `--intrinsic-latency`: how long the system keeps a busy process from running. Needs no server.

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::output::{Outcome, print, print_line};
use crate::signals;

/// Steps of one run: some microseconds, so that a pause stands out.
const STEPS: u32 = 1000;

/// Runs for that time, or until Ctrl-C.
#[allow(clippy::cast_precision_loss)] // Shown with few digits.
pub(super) fn run(duration: Duration) -> Outcome<()> {
    let stop = signals::stop_flag();
    let begin = Instant::now();
    let mut runs: u64 = 0;
    let mut worst_us = 0;
    loop {
        let start = Instant::now();
        black_box(work());
        let end = Instant::now();
        runs += 1;
        let us = (end - start).as_micros();
        if us > worst_us {
            worst_us = us;
            print_line(format_args!("Max latency so far: {worst_us} microseconds."))?;
        }
        if signals::stopped(&stop) || end - begin > duration {
            let mean_us = begin.elapsed().as_secs_f64() * 1e6 / runs as f64;
            return print(format!(
                "\n{runs} total runs (avg latency: {mean_us:.4} microseconds / {:.2} nanoseconds per run).\n\
                 Worst run took {:.0}x longer than the average latency.\n",
                mean_us * 1e3,
                worst_us as f64 / mean_us
            ));
        }
    }
}

/// Arithmetic that each step needs the one before for.
fn work() -> u64 {
    (0..STEPS).fold(black_box(1), |state: u64, step| {
        let mixed = state ^ (state << 13) ^ u64::from(step);
        mixed ^ (mixed >> 7)
    })
}
