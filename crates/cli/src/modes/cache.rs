//! `--lru-test`: half writes, half reads of keys of which a fifth gets four fifths of the traffic.

use std::time::{Duration, Instant};

use resp::Value;

use super::percent;
use crate::output::{Outcome, complain, print_line, text};
use crate::session::Session;

const CYCLE: Duration = Duration::from_secs(1);
/// Commands sent at once.
const PIPELINE: usize = 250;
/// Redis: exponent of the power law that gives the 80-20 rule.
const ALPHA: f64 = 6.2;

/// Runs until it is stopped.
pub(super) fn run(session: &mut Session, keys: u64) -> Outcome<()> {
    session.connect_or_exit()?;
    loop {
        let start = Instant::now();
        let (mut hits, mut misses) = (0_u64, 0_u64);
        while start.elapsed() < CYCLE {
            let writes: Vec<_> = (0..PIPELINE).map(|_| vec![b"SET".to_vec(), key(keys), value()]).collect();
            complain_of_errors(&session.call_many(&writes)?);
            let reads: Vec<_> = (0..PIPELINE).map(|_| vec![b"GET".to_vec(), key(keys)]).collect();
            let replies = session.call_many(&reads)?;
            complain_of_errors(&replies);
            for reply in &replies {
                match reply {
                    Value::Error(_) => {}
                    Value::Null => misses += 1,
                    _ => hits += 1,
                }
            }
        }
        let gets = hits + misses;
        print_line(format_args!(
            "{gets} Gets/sec | Hits: {hits} ({:.2}%) | Misses: {misses} ({:.2}%)",
            percent(hits, gets),
            percent(misses, gets)
        ))?;
    }
}

/// The first error of a batch; they are likely to be all the same.
fn complain_of_errors(replies: &[Value]) {
    if let Some(Value::Error(reason)) = replies.iter().find(|reply| reply.is_error()) {
        complain(format_args!("{}", text(reason)));
    }
}

#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // A rank in 1..=keys.
fn key(keys: u64) -> Vec<u8> {
    let end = keys as f64 + 1.0;
    let power = ALPHA + 1.0;
    let drawn = ((end.powf(power) - 1.0) * fastrand::f64() + 1.0).powf(1.0 / power);
    let rank = (end - drawn.floor()).clamp(1.0, end) as u64;
    format!("lru:{rank}").into_bytes()
}

fn value() -> Vec<u8> {
    (0..5).map(|_| fastrand::u8(b'A'..b'z')).collect()
}
