//! Slots, locks, gate, hash table, objects and encodings, expiry, eviction, memory accounting.

pub mod hash;
pub mod hashing;
pub mod list;
pub mod set;
pub mod table;
mod tagged;
pub mod zset;
