//! Listpack, intset and older packed encodings, LZF, CRC64, RDB and DUMP bytes. No I/O.
//!
//! This crate turns bytes into values and back; it knows nothing of keys, slots, files or sockets. Everything it
//! reads may be hostile: no input panics, loops for ever, or makes it allocate by a declared count.
//!
//! Start reading at [`listpack`] and [`intset`] (the packed containers that also live in memory with exactly these
//! bytes), then [`codec`] (lengths, strings, numbers of the RDB format), [`value`] (whole values, both ways) and
//! [`dump`] (DUMP's footer).
//!
//! Invariants: a [`listpack::Listpack`] or [`intset::Intset`] always holds a well-formed blob, because it is built by
//! this crate or validated when it comes from outside; its heap block is [`size_class::round_up`] of its length.
// Bytes here come from clients, files and peers: no index may panic, and where one cannot, its reason stands there.
#![warn(clippy::indexing_slicing)]
#![cfg_attr(test, allow(clippy::indexing_slicing))]

mod block;
pub mod codec;
pub mod crc64;
pub mod dump;
pub mod intset;
pub mod listpack;
pub mod lzf;
pub mod size_class;
pub mod value;
pub mod ziplist;
pub mod zipmap;
