//! The command table, and one module per data type that runs commands on locked slots.

pub mod table;
