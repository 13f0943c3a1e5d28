//! Load generator: redis-benchmark 7.2's options and output byte for byte, and an engine that
//! spends far less CPU per request, counts exactly, and can do what redis-benchmark cannot (open
//! loop, mixes, key distributions, error budgets, machine-readable reports).
//!
//! It knows nothing of the server beside its protocol. Start reading at [`run()`].
//!
//! - `options`, `extended`, `uri`, `help`, `workload`: the command line and workload files.
//! - `preflight`, `cluster`: what is asked from the server before the load.
//! - `suite`, `template`, `keys`, `random`: what is sent.
//! - `engine`: threads, connections, schedules.
//! - `places`, `sys`: descriptors and ports for very many connections.
//! - `latency`, `fairness`, `results`, `report`, `formats`, `assertions`, `search`: what comes out.
//! - `progress`, `live`, `prometheus`: what is seen while it runs.
//!
//! Invariants: one reply is counted for every request issued, never more; an error reply is never
//! a success; nothing is allocated, formatted or shared between threads per request.
#![forbid(unsafe_code)]

mod assertions;
mod cluster;
mod engine;
mod extended;
mod fairness;
mod formats;
mod help;
mod keys;
mod latency;
mod live;
mod options;
mod places;
mod preflight;
mod progress;
mod prometheus;
mod random;
mod report;
mod results;
mod run;
mod search;
mod suite;
mod sys;
mod template;
mod uri;
mod workload;

pub use help::tool;
pub use run::run;
