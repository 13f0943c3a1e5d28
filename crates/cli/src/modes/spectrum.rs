//! `--latency-dist`: the distribution of round trips as a line of colours per interval.

use std::thread::sleep;
use std::time::{Duration, Instant};

use super::call_patiently;
use super::latency::SAMPLE_PAUSE;
use crate::output::{Outcome, print};
use crate::session::Session;

const INTERVAL: Duration = Duration::from_secs(1);
/// Lines between two legends.
const LEGEND_EVERY: u64 = 20;

/// Redis: upper ends of the buckets in microseconds and their signs; what is above all is `?`.
const BUCKETS: [(u64, char); 30] = [
    (10, '.'),
    (125, '-'),
    (250, '*'),
    (500, '#'),
    (1_000, '1'),
    (2_000, '2'),
    (3_000, '3'),
    (4_000, '4'),
    (5_000, '5'),
    (6_000, '6'),
    (7_000, '7'),
    (8_000, '8'),
    (9_000, '9'),
    (10_000, 'A'),
    (20_000, 'B'),
    (30_000, 'C'),
    (40_000, 'D'),
    (50_000, 'E'),
    (100_000, 'F'),
    (200_000, 'G'),
    (300_000, 'H'),
    (400_000, 'I'),
    (500_000, 'J'),
    (1_000_000, 'K'),
    (2_000_000, 'L'),
    (4_000_000, 'M'),
    (8_000_000, 'N'),
    (16_000_000, 'O'),
    (30_000_000, 'P'),
    (60_000_000, 'Q'),
];
/// Colours of a 256-colour terminal from no samples to all of them.
const COLOURS: &[u8] = &[0, 233, 234, 235, 237, 239, 241, 243, 245, 247, 144, 143, 142, 184, 226, 214, 208, 202, 196];
const GREYS: &[u8] = &[0, 233, 234, 235, 237, 239, 241, 243, 245, 247, 249, 251, 253];

/// Shows lines until it is stopped.
pub(super) fn run(session: &mut Session) -> Outcome<()> {
    session.connect_or_exit()?;
    let palette = if session.options.monochrome { GREYS } else { COLOURS };
    let interval = session.options.interval.unwrap_or(INTERVAL);
    let mut counts = [0_u64; BUCKETS.len() + 1];
    let mut start = Instant::now();
    let mut lines: u64 = 0;
    loop {
        let sent = Instant::now();
        call_patiently(session, &["PING"])?;
        let us = sent.elapsed().as_micros();
        let bucket = BUCKETS.iter().position(|(end, _)| us <= u128::from(*end)).unwrap_or(BUCKETS.len());
        if let Some(count) = counts.get_mut(bucket) {
            *count += 1;
        }
        if start.elapsed() > interval {
            if lines.is_multiple_of(LEGEND_EVERY) {
                print(legend(palette))?;
            }
            lines += 1;
            print(line(&counts, palette))?;
            counts = [0; BUCKETS.len() + 1];
            start = Instant::now();
        }
        sleep(SAMPLE_PAUSE);
    }
}

fn line(counts: &[u64], palette: &[u8]) -> String {
    let all: u64 = counts.iter().sum();
    let steps = u64::try_from(palette.len().saturating_sub(1)).unwrap_or(0);
    let mut line = String::from("\x1b[38;5;0m");
    let signs = BUCKETS.iter().map(|(_, sign)| *sign).chain(['?']);
    for (count, sign) in counts.iter().zip(signs) {
        let step = (count * steps).div_ceil(all.max(1));
        let colour = usize::try_from(step).ok().and_then(|step| palette.get(step)).copied().unwrap_or(0);
        line.push_str(&format!("\x1b[48;5;{colour}m{sign}"));
    }
    line.push_str("\x1b[0m\n");
    line
}

fn legend(palette: &[u8]) -> String {
    let rule = "-".repeat(45);
    let colours: String = palette.iter().map(|colour| format!("\x1b[48;5;{colour}m ")).collect();
    format!(
        "{rule}\n\
         . - * #          .01 .125 .25 .5 milliseconds\n\
         1,2,3,...,9      from 1 to 9     milliseconds\n\
         A,B,C,D,E        10,20,30,40,50  milliseconds\n\
         F,G,H,I,J        .1,.2,.3,.4,.5       seconds\n\
         K,L,M,N,O,P,Q,?  1,2,4,8,16,30,60,>60 seconds\n\
         From 0 to 100%: {colours}\x1b[0m\n{rule}\n"
    )
}
