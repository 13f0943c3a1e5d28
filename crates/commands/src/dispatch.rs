//! Which function runs a command.

use crate::ctx::Ctx;
use crate::error::CmdResult;
use crate::table::CommandId;
use resp::Args;

/// Runs a command on locked slots.
pub type Handler = fn(&mut Ctx<'_>, Args<'_>) -> CmdResult;

/// Tells what a command would cost before it runs, in elements touched: above the executor's budget it runs on an
/// offload thread with its connection parked.
pub type Cost = fn(&mut Ctx<'_>, Args<'_>) -> usize;

/// The function of a command; `None`: the command belongs to the session or the server, which run it themselves.
pub fn handler(id: CommandId) -> Option<Handler> {
    crate::bits::handler(id)
        .or_else(|| crate::expire::handler(id))
        .or_else(|| crate::geo::handler(id))
        .or_else(|| crate::hashes::handler(id))
        .or_else(|| crate::hyperloglog::handler(id))
        .or_else(|| crate::keys::handler(id))
        .or_else(|| crate::lists::handler(id))
        .or_else(|| crate::sets::handler(id))
        .or_else(|| crate::sort::handler(id))
        .or_else(|| crate::streams::handler(id))
        .or_else(|| crate::strings::handler(id))
        .or_else(|| crate::zsets::handler(id))
}

/// The cost function of a command; `None`: always cheap.
pub fn cost(id: CommandId) -> Option<Cost> {
    crate::bits::cost(id)
        .or_else(|| crate::geo::cost(id))
        .or_else(|| crate::hashes::cost(id))
        .or_else(|| crate::hyperloglog::cost(id))
        .or_else(|| crate::keys::cost(id))
        .or_else(|| crate::lists::cost(id))
        .or_else(|| crate::sets::cost(id))
        .or_else(|| crate::sort::cost(id))
        .or_else(|| crate::streams::cost(id))
        .or_else(|| crate::strings::cost(id))
        .or_else(|| crate::zsets::cost(id))
}
