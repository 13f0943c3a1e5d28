//! latency commands of the server.

use crate::exec::Step;
use crate::worker::Worker;
use commands::{CmdError, CommandId};
use resp::Args;

/// Whether a command is served here.
pub(crate) fn is_served(_id: CommandId) -> bool {
    false
}

/// Runs one.
pub(crate) fn run(_worker: &mut Worker, _command: CommandId, _args: Args<'_>) -> Result<Step, CmdError> {
    Ok(Step::Done)
}
