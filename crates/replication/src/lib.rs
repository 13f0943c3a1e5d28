//! The parts of replication that need no session, socket or clock, as pure functions and state machines over bytes.
//!
//! ```text
//!  replica                                   primary
//!  PING · AUTH · REPLCONF …  ──[handshake]─▶
//!  PSYNC id offset           ──────────────▶ [history::decide]: is the offset's byte kept, is the id ours?
//!          ◀── +CONTINUE id, the bytes from there on
//!          ◀── +FULLRESYNC id offset, $len or $EOF:mark and a snapshot [payload], the bytes from there on
//! ```
//!
//! - [`history`]: which stream of changes this server has, under which names, and whether a replica can go on with it.
//! - [`handshake`]: what a replica says and expects, up to the answer to PSYNC.
//! - [`payload`]: where the snapshot ends that follows a full synchronization's answer.
#![forbid(unsafe_code)]

pub mod handshake;
pub mod history;
pub mod payload;

/// How much a line for the log matters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Severity {
    /// The course of things.
    Notice,
    /// Something is wrong.
    Warning,
}
