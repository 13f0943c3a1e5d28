//! The server: sessions, configuration, INFO, pub/sub, transactions; joins keyspace, commands and net.
//!
//! Where to start reading: [`boot`] (how it starts and ends), [`worker`] (what one event loop does), [`exec`] (from
//! bytes to commands run).
//!
//! Invariants:
//! - A worker touches its own connections only; everything else goes by mailbox.
//! - A worker never sleeps on a slot: a connection that cannot go on is parked.
//! - No slot lock is held when a worker goes back to its event loop.

pub mod acl;
pub mod aof;
pub mod boot;
pub mod client_list;
pub mod clients;
pub mod cluster;
pub mod command_line;
pub mod config;
pub mod cron;
pub mod durability;
pub mod exec;
pub mod key_stats;
pub mod latency;
pub mod memory_report;
mod migrate;
pub mod offload;
pub mod process;
pub mod pubsub;
pub mod redact;
pub mod replication;
pub mod scripting;
mod secure;
pub mod session;
mod session_commands;
pub mod settings;
pub mod shared;
pub mod slowlog;
pub mod stats;
pub mod ticks;
pub mod tracking;
pub mod worker;

pub use boot::run;
pub use command_line::tool;
