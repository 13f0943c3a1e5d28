//! Sessions, config, INFO, pub/sub, transactions: joins keyspace, commands and net into a server.

pub mod config;
pub mod process;
