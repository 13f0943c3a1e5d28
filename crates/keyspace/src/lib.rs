//! Slots, locks, gate, hash table, objects and encodings, expiry, eviction, memory accounting.

pub mod hashing;
pub mod list;
pub mod table;
mod tagged;
pub mod zset;
