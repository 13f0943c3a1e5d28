//! The configuration of a proxy: its own directives, and those of a server that make sense for it.
//!
//! The latter (`bind`, `maxclients`, `requirepass`, …) are rows of the server's table, named in [`SHARED`]; they keep their
//! names, kinds, defaults and error texts. The proxy's own are in [`OWN`]. Both are set by file, command line and CONFIG SET.

mod load;
mod store;
mod table;

pub use load::{Invocation, Startup, load};
pub use store::ConfigStore;
pub use table::{Config, OWN, Own, ReplicaReads, SHARED};

#[cfg(test)]
mod tests;
