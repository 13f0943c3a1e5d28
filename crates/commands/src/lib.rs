//! The command table, and one module per data type that runs commands on locked slots.
//!
//! [`table`] is data alone: names, arity, flags, keys. [`dispatch`] maps a command to the function that runs it. A
//! function gets a [`Ctx`], whose slots are already locked, and the arguments; it writes its reply and says what it
//! changed. It knows nothing of sockets, sessions or threads.
//!
//! Where to start reading: [`ctx`], then any family, say [`hashes`].
#![forbid(unsafe_code)]

pub(crate) mod collections;
pub mod ctx;
pub mod dispatch;
pub mod error;
pub mod options;
pub mod table;

pub mod bits;
pub mod expire;
pub mod geo;
pub mod hashes;
pub mod hyperloglog;
pub mod keys;
pub mod lists;
pub mod sets;
pub mod sort;
pub mod streams;
pub mod strings;
pub mod zsets;

#[cfg(test)]
pub(crate) mod testing;

pub use collections::cursor;
pub use ctx::{Block, Ctx, Settings};
pub use dispatch::{Cost, Handler, cost, handler};
pub use error::{CmdError, CmdResult};
pub use table::CommandId;
