//! Makes the list of commands that shows a failure short: everything after the failing command
//! goes first, then ever smaller pieces, as long as the same kind of failure still comes.

use std::io;
use std::time::{Duration, Instant};

use super::driver::{Failure, Pair};
use super::generator::{Episode, Step};
use super::{Finding, same_kind};

/// Time that one failure may take.
const LIMIT: Duration = Duration::from_secs(20);

/// Shrinks the steps of a failed episode.
///
/// # Errors
/// When a server that ended does not start again.
pub fn shrink(pair: &mut Pair, mut episode: Episode, failure: Failure, log: Option<String>) -> io::Result<Finding> {
    let end = Instant::now() + LIMIT;
    let mut finding = Finding { episode: episode.clone(), failure, log, repeatable: false };
    episode.steps.truncate(finding.failure.step + 1);
    if !attempt(pair, &episode, &mut finding)? {
        return Ok(finding);
    }
    finding.repeatable = true;
    let mut size = episode.steps.len() / 2;
    while size >= 1 && Instant::now() < end {
        let mut removed_any = false;
        let mut from = 0;
        while from < finding.episode.steps.len() && Instant::now() < end {
            let mut candidate = finding.episode.clone();
            let to = (from + size).min(candidate.steps.len());
            candidate.steps.drain(from..to);
            if !candidate.steps.is_empty() && attempt(pair, &candidate, &mut finding)? {
                removed_any = true;
            } else {
                from += size;
            }
        }
        if !removed_any || size > 1 {
            size = if size == 1 { 0 } else { size / 2 };
        }
    }
    shorten_arguments(pair, &mut finding, end)?;
    Ok(finding)
}

/// Drops arguments from the ends of long commands.
fn shorten_arguments(pair: &mut Pair, finding: &mut Finding, end: Instant) -> io::Result<()> {
    for index in 0..finding.episode.steps.len() {
        let mut cut = finding.episode.steps.get(index).map_or(0, |step: &Step| step.args.len() / 2);
        while cut >= 1 && Instant::now() < end {
            let mut candidate = finding.episode.clone();
            let Some(step) = candidate.steps.get_mut(index) else {
                return Ok(());
            };
            if step.args.len() < cut + 4 {
                cut /= 2;
                continue;
            }
            let keep = step.args.len() - cut;
            step.args.truncate(keep);
            if !attempt(pair, &candidate, finding)? {
                cut /= 2;
            }
        }
    }
    Ok(())
}

/// Runs a candidate; when it fails in the same way it becomes the finding.
fn attempt(pair: &mut Pair, candidate: &Episode, finding: &mut Finding) -> io::Result<bool> {
    let outcome = pair.run(candidate);
    let Some(failure) = outcome.failure else {
        return Ok(false);
    };
    let log = pair.revive()?.into_iter().next();
    if !same_kind(&failure, &finding.failure) {
        return Ok(false);
    }
    finding.episode = candidate.clone();
    finding.failure = failure;
    finding.log = log.or(finding.log.take());
    Ok(true)
}
