//! The manager of a cluster, its client, and a whole cluster on one machine: `oxidis manager`, `oxidis admin` and
//! `oxidis up`.
//!
//! ```text
//!  people, pages ──REST──▶ api ──changes──▶ store ──compare-and-set──▶ coordinator (own file | etcd)
//!  members ──leases──────▶  │                 │ what is stored is published
//!                           ▼                 ▼
//!                        members ──────▶ driver (moves), registrar (servers) ──RESP──▶ servers
//! ```
//!
//! What a cluster is, how it may change, what to do next with a move, and where records are kept: all that is in the
//! crate `topology`, without sockets to members. Here it is carried out. The record is changed first, and then members
//! are told; so a manager that ends anywhere is followed by one that reads what is to be done from the record.
//!
//! - `store`: the record as this manager knows it, leadership, changes.
//! - `api`: the REST API; `auth`: tokens; `events`: the log; `metrics`.
//! - `members`: who is there; `registrar`: servers join and are kept what they are to be; `driver`: moves; `progress`.
//! - `wire`: the servers' protocol; `serve`: the process; `command`: its options.
//! - `shapes`: what travels by the API; `http`: its client; `admin`, `up`: the other two tools.
//!
//! Invariants: only the leader grants leases, changes the record and commands servers; no call waits without a
//! deadline; a token is never written anywhere but in the URL that members are told.
#![forbid(unsafe_code)]

pub mod admin;
mod api;
mod app;
mod auth;
mod clock;
mod command;
mod driver;
mod events;
mod http;
mod members;
mod metrics;
mod progress;
mod registrar;
mod serve;
pub mod shapes;
mod store;
pub mod up;
mod wire;

pub use command::{run, tool};
