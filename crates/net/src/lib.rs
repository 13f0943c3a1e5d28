//! Event loop, connections, timers and mailboxes.
//!
//! One loop runs on one thread and owns its connections from accept (or connect) to close. What the bytes mean is the
//! business of a [`Service`]; this crate knows nothing about protocols.
//!
//! Start reading at [`Service`] (what the loop asks of an application), then [`Conns`] (what an application may do to
//! its connections), then `worker.rs` (the loop itself).
//!
//! Sketch of the cost: one `recv`, one `send` and a share of one `epoll_wait` per request that comes alone; a short read
//! ends the reading, because under edge-triggered epoll later bytes raise a new event. An idle connection holds no buffer,
//! only its slab entry of 24 bytes plus the application's state: reads go to a buffer of the loop, replies leave from a
//! buffer of the loop, and only a partial request or what the kernel did not take is kept.
//!
//! An encrypted connection ([`tls`]) differs in what it holds, not in what a service sees of it.
//!
//! Invariants:
//! - A connection's output leaves in the order it was given, whoever gave it.
//! - Within one turn a connection gets at most one read and one more round with input it already has.
//! - A [`ConnId`] of a closed connection never reaches another one.
//! - Nothing here assumes that a descriptor of one loop is valid on another loop's thread, but for the mailboxes' wake-up
//!   descriptors: build all loops before a thread takes a descriptor table of its own.
#![forbid(unsafe_code)]

mod clock;
mod conns;
mod context;
mod listener;
mod mailbox;
mod service;
mod timers;
pub mod tls;
mod worker;

pub use clock::{Clock, ManualClock, SystemClock};
pub use conns::{ConnId, Conns, Kept};
pub use context::{Context, Stats};
pub use listener::{Address, Listener, Peer, SocketOptions};
pub use mailbox::Mailbox;
pub use service::{CloseReason, Flow, Service, Then};
pub use timers::Timers;
pub use worker::{Builder, LoopHandle};

#[cfg(test)]
mod tests;
