//! Files of the data: RDB written, read and checked; the disk as a seam for fault injection.
//!
//! This crate joins the bytes of [`rdb`](::rdb) with the keys of `keyspace` and with files. It knows nothing of clients,
//! configuration or logs: what there is to tell comes back as values, and who calls decides what is said of it.
//!
//! Where to start reading: [`rdb::save`] (a file is written beside the old one and takes its place only when it is on
//! disk), [`rdb::load`] (one thread splits the file, several insert), then [`disk`] (what a test may let go wrong).
//!
//! Invariants:
//! - A file that was complete is never touched: it is replaced by renaming, after the new one and before the directory
//!   is forced to disk.
//! - Whatever a file says, no more memory is taken for it than a small multiple of the bytes that are there.
#![forbid(unsafe_code)]

pub mod aof;
pub mod bar;
pub mod disk;
pub mod rdb;
