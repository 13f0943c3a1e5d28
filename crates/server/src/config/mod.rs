//! The configuration: every directive of Redis 7.2, from text to typed values and back.
//!
//! Start at [`table`]: one row there declares a directive, and everything else follows from it. [`load()`]
//! turns a command line into a [`Config`]; a running server keeps it in a [`ConfigStore`], which answers
//! CONFIG GET, SET and REWRITE. [`document()`] makes `docs/config.md` from the same table.
//!
//! This module parses and keeps; it does not act. Whoever calls [`ConfigStore::set`] passes the hook
//! that acts on changes. Its only effect on the process is the working directory, which `dir` changes
//! as it is read, because paths that follow it are relative to it.

mod checks;
mod directive;
mod document;
mod expand;
mod kind;
mod load;
mod rewrite;
mod special;
mod split;
mod store;
pub mod table;
mod words;

#[cfg(test)]
mod tests;

pub use directive::{Applies, Directive, Named, Work, all_names, find};
pub use document::document;
pub use kind::{Kind, Unit, Value, Words, parse_bool, parse_memory};
pub use load::{Invocation, LoadFailure, Startup, load};
pub use special::{BufferLimit, BufferLimits, ClientClass, EventClasses, PrimaryAddress, SavePoint};
pub use split::{push_quoted, split_arguments};
pub use store::{Apply, ApplyError, ConfigStore, HELP, SetContext, is_secret};
pub use table::{Config, DIRECTIVES};
pub use words::{
    AclPubsubDefault, AppendFsync, ClusterEndpointType, LogLevel, MaxmemoryPolicy, OomScoreAdj,
    PropagationErrorBehavior, ProtectedAction, ReplDisklessLoad, SanitizeDumpPayload, ShutdownFlags, SlotSpace,
    Supervised, SyslogFacility, TlsAuthClients,
};
