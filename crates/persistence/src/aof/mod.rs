//! The append only file: a log of changes, in several files.
//!
//! ```text
//! appenddirname/
//!   NAME.manifest          which files count, in which order      → [`manifest`]
//!   NAME.2.base.rdb        the data at one instant (or .aof: as commands)
//!   NAME.3.incr.aof        what changed since, a file each rewrite → [`Log`]
//! ```
//! [`frames`] reads such files, [`check`] tells what is wrong with them, [`base`] writes a snapshot as commands.
//!
//! Rules that make it safe against a power cut: bytes of a file are forced to disk before a later file is begun, so only
//! the last one can have lost its end; a file is named in the manifest before anything depends on it; what the manifest
//! no longer names is removed only when the new manifest is on disk.

pub mod base;
pub mod check;
pub mod frames;
mod log;
pub mod manifest;
#[cfg(test)]
mod tests;

pub use frames::{Frame, FrameError, Frames};
pub use log::{Log, Sync, WriteError};
pub use manifest::{Manifest, ManifestError, Part};
