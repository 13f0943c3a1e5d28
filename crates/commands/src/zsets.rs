//! zsets.

use crate::dispatch::{Cost, Handler};
use crate::table::CommandId;

/// The function of a command of this family.
pub(crate) fn handler(_id: CommandId) -> Option<Handler> {
    None
}

/// The cost function of a command of this family.
pub(crate) fn cost(_id: CommandId) -> Option<Cost> {
    None
}
