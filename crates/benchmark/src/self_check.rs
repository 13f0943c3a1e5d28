//! `--self-check`: what the generator itself costs on this machine, without a server: the smallest times that a latency
//! can be told from.

use std::{hint::black_box, time::Instant};

use crate::{
    keys::{Distribution, Keys},
    latency,
    random::AdditiveRandom,
    template::{Filler, Substitution, Template, encode},
};

/// The figures as lines of text, nanoseconds each: the least of some rounds, since others may disturb one.
pub(crate) fn text() -> String {
    let mut out = String::new();
    for (name, cost) in [
        ("recording a latency", least(recording)),
        ("reading the clock", least(clock)),
        ("building a request", least(building)),
        ("passing over a reply", least(skipping)),
    ] {
        out.push_str(&format!("{name}: {cost:.1} ns\n"));
    }
    out
}

fn least(round: impl Fn() -> f64) -> f64 {
    (0..ROUNDS).map(|_| round()).fold(f64::MAX, f64::min)
}

fn per_step(began: Instant) -> f64 {
    began.elapsed().as_secs_f64() * 1e9 / f64::from(STEPS)
}

/// Latencies as they come: most of a few hundred microseconds, some of many milliseconds.
fn recording() -> f64 {
    let mut random = fastrand::Rng::with_seed(1);
    let mut latency = || {
        let top = 1_u64 << random.u32(4..24);
        random.u64(top / 2..top)
    };
    let latencies: Vec<u64> = (0..4_096).map(|_| latency()).collect();
    let mut histogram = latency::recorder(3);
    let began = Instant::now();
    for latency in latencies.iter().cycle().take(STEPS as usize) {
        histogram.saturating_record(black_box(*latency));
    }
    let cost = per_step(began);
    black_box(&histogram);
    cost
}

fn clock() -> f64 {
    let began = Instant::now();
    for _ in 0..STEPS {
        black_box(Instant::now());
    }
    per_step(began)
}

fn building() -> f64 {
    let command = encode(&["GET", "key:__rand_int__"]);
    let substitution = Substitution { numbers: true, ..Substitution::default() };
    let mut template = Template::new(&[command], 16, substitution, b"");
    let mut keys = Keys::new(Distribution::Uniform, 0, 1_000_000, 1);
    let mut random = AdditiveRandom::new(1);
    let mut out = Vec::new();
    let began = Instant::now();
    for _ in 0..STEPS / 16 {
        out.clear();
        let mut filler = Filler { keys: &mut keys, random: &mut random, tags: &[], value_pool: &[], asked: None };
        template.render(0, 16, &mut filler, &mut out);
        black_box(&out);
    }
    per_step(began)
}

fn skipping() -> f64 {
    let replies = b"$3\r\nVXK\r\n".repeat(16);
    let began = Instant::now();
    for _ in 0..STEPS / 16 {
        let (mut rest, mut state) = (black_box(replies.as_slice()), resp::SkipState::new());
        while let Ok(Some(skipped)) = resp::skip_reply(rest, &mut state) {
            rest = rest.get(skipped.consumed..).unwrap_or_default();
        }
        black_box(rest);
    }
    per_step(began)
}

const STEPS: u32 = 1 << 20;
const ROUNDS: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_a_cost() {
        let text = text();
        assert_eq!(text.lines().count(), 4);
        for line in text.lines() {
            let cost = line.rsplit_once(": ").and_then(|(_, rest)| rest.strip_suffix(" ns")?.parse::<f64>().ok());
            assert!(cost.is_some_and(|cost| cost > 0.0), "{line}");
        }
    }
}
