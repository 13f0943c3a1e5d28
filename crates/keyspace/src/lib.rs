//! Slots, locks, gate, hash table, objects and encodings, expiry, eviction, memory accounting.
//!
//! The keyspace is an array of slots. A slot owns the keys that hash to it, in every database, and the one
//! lock that guards them. Nothing here knows of sockets, clients or replies.
//!
//! Where to start reading: [`Keyspace`], then [`LockSet`] (who may touch which slot, and the order of locks),
//! then [`DbView`] (what a command sees), then [`entry`] (how a key and its value lie in memory).
//!
//! Invariants:
//! - Slot locks are waited for in ascending slot order only. Whoever holds a lock and wants a lower one may
//!   *try* for it, never wait.
//! - A slot's contents are reached only through a [`LockSet`] that holds the slot or the closed gate.
//! - A lock is never held across a system call or a callback into a service.

pub mod ahead;
pub mod codec;
pub mod crc16;
pub mod db;
pub mod entry;
pub mod events;
pub mod eviction;
pub mod expiry;
pub mod gate;
pub mod glob;
pub mod hash;
pub mod hashing;
pub mod journal;
pub mod keyspace;
pub mod list;
pub mod load;
pub mod lock;
pub mod lockset;
pub mod memory;
pub mod reclaim;
pub mod set;
pub mod size;
pub mod slot;
pub mod snapshot;
pub mod stream;
pub mod string;
mod sync;
pub mod table;
pub mod tagged;
mod timed_fields;
pub mod tracking;
pub mod value;
pub mod waiters;
pub mod zset;

pub use db::{DbView, SetTtl, WrongType};
pub use entry::Entry;
pub use events::{Events, NotifyClass};
pub use hash::Hash;
pub use keyspace::Keyspace;
pub use list::List;
pub use lockset::LockSet;
pub use set::Set;
pub use slot::{DbIndex, Slot};
pub use stream::Stream;
pub use string::StrRef;
pub use value::{Value, ValueMut, ValueRef};
pub use zset::ZSet;
