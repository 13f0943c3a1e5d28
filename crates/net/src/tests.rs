#![allow(clippy::unwrap_used, clippy::expect_used)]

mod clients;
mod connecting;
mod parts;
mod secure;
mod service;
