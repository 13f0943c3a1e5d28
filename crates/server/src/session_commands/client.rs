//! client commands of the server.

use crate::exec::Step;
use crate::session::Session;
use crate::worker::Worker;
use commands::{CmdError, CommandId};
use net::ConnId;
use resp::Args;

/// Whether a command is served here.
pub(crate) fn is_served(_id: CommandId) -> bool {
    false
}

/// Runs one.
pub(crate) fn run(_worker: &mut Worker, _id: ConnId, _session: &mut Session, _command: CommandId, _args: Args<'_>) -> Result<Step, CmdError> {
    Ok(Step::Done)
}

/// Checks a client name.
pub(crate) fn check_name(_name: &[u8]) -> Result<(), CmdError> {
    Ok(())
}

/// Gathers the lines of all clients.
pub(crate) fn gather(_worker: &mut Worker, _id: ConnId) {}
