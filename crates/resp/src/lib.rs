//! RESP2 and RESP3 bytes to requests and replies and back; Redis number texts.
//!
//! The crate does no I/O and keeps no clock: bytes come in as slices and leave in `Vec<u8>`s. It knows nothing about
//! commands or keys.
//!
//! - Server side: [`parse_request`] finds one request in a buffer and leaves its arguments as ranges of that buffer
//!   ([`Request`], [`Args`]); [`Reply`] writes replies in the protocol version of the client.
//! - Client side: [`write_command`] writes a request, [`skip_reply`] finds the end of a reply without building it,
//!   [`parse_reply`] builds it as a [`Value`], [`Passing`] passes a stream of replies on in pieces.
//! - Texts: [`split_args`] and [`quote_repr`] are the quoting rules of inline requests and config files; [`num`] holds
//!   the number texts.
//!
//! Invariants: no input makes a parser panic, and no allocation is sized by a count that a peer only declared.
// Bytes here come from clients, files and peers: no index may panic, and where one cannot, its reason stands there.
#![warn(clippy::indexing_slicing)]
#![cfg_attr(test, allow(clippy::indexing_slicing))]
#![forbid(unsafe_code)]

mod args;
mod client;
pub mod num;
mod passing;
mod quote;
mod reply;
mod request;
mod skip;
mod value;

pub use args::{Args, ArgsIter, OwnedArgs};
pub use client::write_command;
pub use passing::{Passed, Passing, Stop};
pub use quote::{quote_repr, split_args, write_repr};
pub use reply::{Deferred, Proto, Reply};
pub use request::{Limits, Parse, ParseState, ProtocolError, Request, parse_request};
pub use skip::{SkipState, Skipped, skip_reply};
pub use value::{MAX_DEPTH, ReplyError, Value, parse_reply};
