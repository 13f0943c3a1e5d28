//! RDB files.
//!
//! ```text
//! "REDIS0011"
//! AUX field value …                       who wrote it, when, and for which replication history
//! FUNCTION2 text …                        libraries of functions
//! SELECTDB n  RESIZEDB keys expires       then records, see keyspace's snapshot::record
//! …                                       databases in any order, each as often as it comes
//! EOF  CRC64 of all before (0: none)
//! ```
//! Source: the file format that Redis 7.2 writes and reads.

pub mod check;
mod encode;
mod load;
mod save;
mod split;
#[cfg(test)]
mod tests;

pub use encode::{Encoder, Header, Replication};
pub use load::{Functions, LoadOptions, Loaded, Progress, Silent, Viewer, Watcher, check_chunk, load};
pub use save::{SaveError, SaveStep, save};
pub use split::{LoadError, Part, Splitter};
