//! `oxidis doctor`: looks whether this machine can hold N clients, and says of each setting what it is, what it would
//! break, what it should be, the command that sets it now and the file that keeps it.
//!
//! It changes nothing, and knows nothing of how the server works beside what a client costs.
//!
//! - `machine`: the facts, read from `/proc` and `/sys`.
//! - `checks`: facts and a number of clients to findings, without any I/O.
//! - `server`: what a running server adds.
//! - `show`: a table on a terminal, lines of tab-separated fields in a pipe, JSON on request.
//!
//! Start reading at [`run`]; the server uses [`brief`].
#![forbid(unsafe_code)]

mod checks;
mod command;
mod machine;
mod server;
mod show;

pub use checks::{Finding, Verdict, examine};
pub use command::{run, tool};
pub use machine::Machine;

use std::path::Path;

/// What is not as it should be for `clients` clients on this machine, a line each: for a log.
#[must_use]
pub fn brief(clients: u64) -> Vec<(Verdict, String)> {
    examine(&Machine::read(Path::new("/")), clients)
        .into_iter()
        .filter(|finding| finding.verdict != Verdict::Fine)
        .map(|finding| (finding.verdict, finding.sentence()))
        .collect()
}
