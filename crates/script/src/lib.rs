//! Lua 5.1 as Redis embeds it: the sandbox, the `redis.*` API, `cjson`, `cmsgpack`, `bit`, `struct`, and what EVAL and
//! FCALL need around a script: shebang flags, cached bodies, function libraries, error texts.
//!
//! The crate knows nothing of keys, slots, sessions or threads. A script reaches the world through one trait, [`Host`]:
//! `redis.call` hands its arguments over and gets the bytes of a reply back, and every few thousand instructions the
//! host is asked whether the script may go on. So everything here can be tested without a server.
//!
//! Where to start reading: [`host`] (the interface), [`vm`] (one interpreter), `prelude.lua` (the sandbox as scripts see
//! it), [`libraries`] (FUNCTION LOAD).
//!
//! Invariants:
//! - A script cannot change what another script sees: every table it reaches and did not make itself is a read-only
//!   proxy, and the tables behind the proxies are reachable from the prelude alone.
//! - No loop of a script outlives [`Tick::Kill`]: the hook then fires at every instruction, error handlers run after the
//!   stack was unwound (a hook cannot fire within itself), there are no finalizers, and the long loops of the libraries
//!   (patterns, `string.rep`, JSON) count their steps and ask as well.
//! - Memory of an interpreter is capped; what a library builds outside of it is checked against the same cap first.
//! - Bytecode is never loaded.
#![forbid(unsafe_code)]

mod api;
mod bits;
mod cache;
mod cjson;
mod cmsgpack;
mod convert;
pub mod host;
pub mod libraries;
mod native;
mod pattern;
mod random;
pub mod shebang;
mod structs;
pub mod vm;

#[cfg(test)]
mod tests;

pub use cache::{Script, ScriptCache, Sha, Traits, sha1_hex};
pub use host::{Host, LogLevel, Refused, Tick};
pub use libraries::{Libraries, Library, LibraryFunction};
pub use shebang::ScriptFlags;
pub use vm::{Ended, Failure, Kind, Run, Vm, VmLimits};
