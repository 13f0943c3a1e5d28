//! `--find-max`: the highest rate at which an objective such as `p99<2ms,err<0.1%` holds.
//!
//! A closed loop first shows what the server can do at all. Then the interval between nothing and
//! that is halved; a rate passes if the objective holds *and* the server kept up with it, since a
//! growing backlog means that the latency of a longer test would fail.

use std::time::Duration;

use crate::{
    assertions::Assertion,
    engine::Aborted,
    extended::{Arrival, Rate},
    formats::Report,
    options::Options,
    results::Outcome,
    run::put,
    session::Session,
    suite::Test,
};

/// An open-loop rate with the other settings of the options.
pub(crate) fn rate_of(options: &Options, per_second: f64) -> Rate {
    let base = options.extended.rate;
    Rate {
        per_second,
        arrival: base.map_or(Arrival::Fixed, |rate| rate.arrival),
        max_backlog: base.map_or(DEFAULT_MAX_BACKLOG, |rate| rate.max_backlog),
        open_loop: true,
    }
}

/// Searches and reports the test at the rate found. Returns the exit code: 3 when no rate holds.
pub(crate) fn find_max(
    session: &mut Session,
    (index, test): (usize, &Test),
    objective: &[Assertion],
    report: &mut Report,
) -> Result<u8, Aborted> {
    let step = session.options.extended.duration.unwrap_or(STEP);
    session.options.extended.duration = Some(step);
    let closed = session.measure(index, test, None)?;
    let title = closed.title.clone();
    let terms: Vec<String> = objective.iter().map(ToString::to_string).collect();
    let terms = terms.join(",");
    put(&format!("{title}: closed loop reaches {:.0} requests per second; searching for {terms}\n", closed.rate()));
    let (mut low, mut high) = (0.0, closed.rate());
    let mut best: Option<Outcome> = None;
    let mut rate = high;
    for _ in 0..STEPS_MAX {
        let outcome = session.measure(index, test, Some(rate_of(&session.options, rate)))?;
        if outcome.interrupted {
            return Ok(0);
        }
        let broken: Vec<String> = objective
            .iter()
            .filter_map(|term| {
                let (value, holds) = term.check(&outcome);
                (!holds).then(|| format!("{term} is {value:.3}"))
            })
            .collect();
        let kept_up = outcome.rate() >= rate * KEEPS_UP;
        let verdict = match (broken.is_empty(), kept_up) {
            (true, true) => "holds".to_owned(),
            (true, false) => format!("does not keep up ({:.0}/s)", outcome.rate()),
            (false, _) => broken.join(", "),
        };
        put(&format!("{title}: {rate:.0}/s: {verdict}\n"));
        if broken.is_empty() && kept_up {
            low = rate;
            best = Some(outcome);
        } else {
            high = rate;
        }
        if high - low <= high * RESOLUTION {
            break;
        }
        rate = f64::midpoint(low, high);
    }
    match best {
        Some(mut outcome) => {
            put(&format!("{title}: highest rate with {terms}: {low:.0} requests per second\n"));
            outcome.title = format!("{title} @ {low:.0}/s");
            Ok(session.conclude(test, &outcome, report))
        }
        None => {
            put(&format!("{title}: no rate down to {high:.0}/s meets {terms}\n"));
            Ok(3)
        }
    }
}

const STEP: Duration = Duration::from_secs(3);
const STEPS_MAX: u32 = 12;
const RESOLUTION: f64 = 0.02;
/// Share of the asked rate from which the server counts as keeping up.
const KEEPS_UP: f64 = 0.98;
const DEFAULT_MAX_BACKLOG: u64 = 1_000_000;
