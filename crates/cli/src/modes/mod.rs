//! What an option starts instead of a command: measurements, walks through the key space, pipes, scripts, clusters.

use crate::options::Mode;
use crate::output::{Outcome, fail};
use crate::session::Session;

pub(crate) mod cluster;
mod eval;

/// Runs a mode to its end.
pub(crate) fn run(session: &mut Session, mode: Mode) -> Outcome<()> {
    match mode {
        Mode::Commands => Ok(()),
        Mode::Eval(path) => eval::run(session, &path),
        Mode::Missing(option) => fail(format_args!(
            "{option} is not available in this version yet: it follows with persistence and replication."
        )),
        _ => Ok(()),
    }
}
