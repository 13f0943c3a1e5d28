//! The proxy: plain clients on one side, the servers that own the slots of their keys on the other.
//!
//! Where to start reading: [`service`] (one worker), `forward` (from a client's bytes to its backends), `replies` (back
//! again), [`order`] (replies in the order of requests), [`backend::lane`] (one shared connection), [`routing`] (where each
//! command goes).
//!
//! Invariants:
//! - Replies reach a client in the order of its requests, each once, and no other client's.
//! - No client changes what another one's requests mean: shared connections have one protocol and one database for good.
//! - A request of one client to one key never overtakes an earlier one of it, whatever the topology does meanwhile.
//! - What may have been run is never sent again.
//! - Everything that waits is bounded: who is ahead is not read from.
#![forbid(unsafe_code)]

pub mod backend;
mod basics;
pub mod boot;
pub mod client;
pub mod command_line;
pub mod config;
pub mod cursor;
mod dispatch;
mod forward;
pub mod join;
mod lanes;
mod local;
pub mod manager;
pub mod map;
pub mod measure;
pub mod merge;
pub mod order;
pub mod pubsub;
mod redirect;
mod replies;
pub mod routing;
pub mod service;
pub mod session;
pub mod shared;
pub mod slots;
mod tasks;
pub mod topology;
pub mod turn;
mod whole;

pub use boot::run;
pub use command_line::tool;
