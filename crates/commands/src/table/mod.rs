//! The command table: each command and subcommand once, as a row of static data.
//!
//! A row says everything about a command but how it runs: arity, flags, ACL categories, where its
//! keys are, hints for clients, documentation. Dispatcher, ACL, cluster redirects, the proxy's
//! routing, tracking and the COMMAND family all read it; the server maps [`CommandId`] to the
//! function that runs the command. The table knows nothing of keys' values, of sockets or of
//! configuration.
//!
//! Start reading at [`CommandSpec`]. Rows stand in one file per family (`strings`, `lists`, …) in
//! the short words of `row` and `docs`. To add a command: a variant of [`CommandId`], a row in its
//! family; the build fails if either is missing.
//!
//! Invariant: each [`CommandId`] has exactly one row, and `spec(id).id == id`.

pub mod bits;
pub mod command;
pub mod docs;
pub mod errors;
pub mod help;
pub mod id;
pub mod keys;
pub mod spec;

mod help_debug;
mod lookup;
mod row;

mod acl;
mod beyond;
mod bitmaps;
mod client;
mod cluster;
mod connection;
mod generic;
mod geo;
mod hashes;
mod hyperloglog;
mod introspection;
mod lists;
mod pubsub;
mod scripting;
mod server;
mod sets;
mod sorted_sets;
mod streams;
mod strings;
mod transactions;

pub use bits::{Categories, Flags, KeyFlags};
pub use id::CommandId;
pub use keys::ArgView;
pub use lookup::{lookup, lookup_sub};
pub use spec::{CommandSpec, KeySpec};

/// All top-level rows. The first families get the best cells of the name table.
static FAMILIES: [&[CommandSpec]; 20] = [
    &strings::ROWS,
    &hashes::ROWS,
    &lists::ROWS,
    &sets::ROWS,
    &sorted_sets::ROWS,
    &generic::ROWS,
    &connection::ROWS,
    &transactions::ROWS,
    &streams::ROWS,
    &pubsub::ROWS,
    &scripting::ROWS,
    &bitmaps::ROWS,
    &hyperloglog::ROWS,
    &geo::ROWS,
    &client::ROWS,
    &server::ROWS,
    &introspection::ROWS,
    &acl::ROWS,
    &cluster::ROWS,
    &beyond::ROWS,
];

/// Rows by [`CommandId`].
static SPECS: [&CommandSpec; CommandId::COUNT] = index_by_id();

/// The row of an id.
#[inline]
pub fn spec(id: CommandId) -> &'static CommandSpec {
    SPECS[id.index()]
}

/// All rows, subcommands included, in the order of [`CommandId`].
pub fn all() -> impl ExactSizeIterator<Item = &'static CommandSpec> + Clone {
    SPECS.iter().copied()
}

/// The rows that are not subcommands, in the order of their families.
pub fn top_level() -> impl Iterator<Item = &'static CommandSpec> + Clone {
    FAMILIES.iter().flat_map(|rows| rows.iter())
}

/// The rows of commands that Redis 7.2 does not have.
pub fn beyond_redis() -> impl Iterator<Item = &'static CommandSpec> + Clone {
    beyond::ROWS.iter()
}

/// Number of rows that are not subcommands.
pub fn top_level_count() -> usize {
    FAMILIES.iter().map(|rows| rows.len()).sum()
}

/// Whether a call with `argument_count` arguments, the name included, fits the arity.
#[inline]
pub fn arity_ok(spec: &CommandSpec, argument_count: usize) -> bool {
    let needed = spec.arity.unsigned_abs() as usize;
    if spec.arity >= 0 { argument_count == needed } else { argument_count >= needed }
}

/// Why a request names no row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LookupError {
    /// There is no such command.
    UnknownCommand,
    /// The command has subcommands, but not this one.
    UnknownSubcommand,
}

/// The row that a request calls: of the subcommand if the command has some. A container's name
/// alone is the container, whose arity or function then decides.
#[inline]
pub fn resolve<A: ArgView + ?Sized>(args: &A) -> Result<&'static CommandSpec, LookupError> {
    let command = args.arg(0).and_then(lookup).ok_or(LookupError::UnknownCommand)?;
    if !command.is_container() {
        return Ok(command);
    }
    match args.arg(1) {
        None => Ok(command),
        Some(name) => lookup_sub(command, name).ok_or(LookupError::UnknownSubcommand),
    }
}

/// The row of a full name as COMMAND INFO takes it: `get`, `config|get`.
pub fn lookup_full_name(name: &[u8]) -> Option<&'static CommandSpec> {
    let Some(bar) = name.iter().position(|byte| *byte == b'|') else {
        return lookup(name);
    };
    let (container, subcommand) = (name.get(..bar)?, name.get(bar + 1..)?);
    lookup_sub(lookup(container)?, subcommand)
}

const fn index_by_id() -> [&'static CommandSpec; CommandId::COUNT] {
    let mut specs = [&FAMILIES[0][0]; CommandId::COUNT];
    let mut present = [false; CommandId::COUNT];
    let mut family = 0;
    while family < FAMILIES.len() {
        place(FAMILIES[family], &mut specs, &mut present);
        family += 1;
    }
    let mut id = 0;
    while id < present.len() {
        assert!(present[id], "a command id without a row");
        id += 1;
    }
    specs
}

const fn place(
    rows: &'static [CommandSpec],
    specs: &mut [&'static CommandSpec; CommandId::COUNT],
    present: &mut [bool; CommandId::COUNT],
) {
    let mut index = 0;
    while index < rows.len() {
        let id = rows[index].id.index();
        assert!(!present[id], "two rows with one command id");
        present[id] = true;
        specs[id] = &rows[index];
        place(rows[index].subcommands, specs, present);
        index += 1;
    }
}

#[cfg(test)]
mod tests;
