//! `oxidis admin`: the manager's API from a shell.
//!
//! - `command`: the command line.
//! - `commands`: the words that may stand there and what each asks the manager.
//! - `show`: answers as tables on a terminal, as lines of tab-separated fields in a pipe.
//! - `watch`: moves as they go on.
//!
//! Start reading at [`run`].

mod command;
mod commands;
mod show;
mod table;
mod watch;

pub(crate) use command::bytes;
pub use command::{run, tool};
