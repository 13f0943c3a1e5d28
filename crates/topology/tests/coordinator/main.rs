//! One suite for all stores, and what only one of them can do.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod embedded;
mod etcd;
mod suite;
