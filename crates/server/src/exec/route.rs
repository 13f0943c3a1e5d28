//! How each command is run, looked up by its number.

use commands::table::{CommandSpec, Flags};
use commands::{CommandId, Cost, Handler};
use std::sync::OnceLock;

/// How one command is run.
#[derive(Clone, Copy)]
pub struct Route {
    /// Its row.
    pub spec: &'static CommandSpec,
    /// Its function, if it works on keys.
    pub handler: Option<Handler>,
    /// What it would cost; `None`: little.
    pub cost: Option<Cost>,
    /// Index of its one key if it has exactly one at a fixed place, else 0.
    pub single_key: u8,
    /// Index of the argument that names an element of the object at its key, if it looks one up by name, else 0.
    pub element: u8,
    /// It may run in a group of commands whose slots are locked together.
    pub groups: bool,
    /// It may need memory.
    pub denies_oom: bool,
}

/// Routes of all commands, by [`CommandId::index`].
pub fn routes() -> &'static [Route] {
    static ROUTES: OnceLock<Box<[Route]>> = OnceLock::new();
    ROUTES.get_or_init(|| commands::table::all().map(route).collect::<Vec<_>>().into_boxed_slice())
}

fn route(spec: &'static CommandSpec) -> Route {
    let handler = commands::handler(spec.id);
    let cost = commands::cost(spec.id);
    let single_key = spec.single_key().and_then(|index| u8::try_from(index).ok()).unwrap_or(0);
    let groups = handler.is_some() && cost.is_none() && single_key > 0 && !spec.flags.contains(Flags::BLOCKING);
    Route {
        spec,
        handler,
        cost,
        single_key,
        element: element(spec.id),
        groups,
        denies_oom: spec.flags.contains(Flags::DENYOOM),
    }
}

/// Where a command names the (first) element it looks up in its object.
fn element(id: CommandId) -> u8 {
    use CommandId::{Hdel, Hexists, Hget, Hincrby, Hset, Hsetnx, Sadd, Sismember, Srem, Zadd, Zincrby, Zrem, Zscore};
    match id {
        Hset | Hget | Hdel | Hexists | Hincrby | Hsetnx | Sadd | Srem | Sismember | Zrem | Zscore => 2,
        Zadd | Zincrby => 3,
        _ => 0,
    }
}

/// The route of one command.
#[inline]
pub fn of(routes: &'static [Route], id: CommandId) -> &'static Route {
    &routes[id.index()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_stand_at_their_numbers() {
        for (index, route) in routes().iter().enumerate() {
            assert_eq!(route.spec.id.index(), index, "{}", route.spec.name);
        }
    }
}
