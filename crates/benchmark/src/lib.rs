//! Load generator: redis-benchmark 7.2's options and output byte for byte, and an engine that
//! spends far less CPU per request, counts exactly, and can do what redis-benchmark cannot (open
//! loop, mixes, key distributions, error budgets, machine-readable reports).
//!
//! It knows nothing of the server beside its protocol. Start reading at [`run()`].
//!
//! - `options`, `extended`, `uri`, `help`, `workload`: the command line and workload files.
//! - `session`: one command line or phase; `run` goes through them.
//! - `preflight`, `cluster`, `safety`, `cleanup`: what is asked from the server before and after the load.
//! - `suite`, `template`, `keys`, `random`, `values`, `dataset`, `replay`: what is sent.
//! - `engine`: threads, connections, schedules.
//! - `agents`: generators on several machines that make one run.
//! - `places`, `sys`: descriptors and ports for very many connections.
//! - `latency`, `fairness`, `results`, `report`, `formats`, `assertions`, `search`: what comes out.
//! - `progress`, `live`, `keyboard`, `prometheus`: what is seen while it runs.
//! - `self_check`: what the generator itself costs.
//!
//! Invariants: one reply is counted for every request issued, never more; an error reply is never
//! a success; nothing is allocated, formatted or shared between threads per request.
#![forbid(unsafe_code)]

mod agents;
mod assertions;
mod cleanup;
mod cluster;
mod dataset;
mod engine;
mod extended;
mod fairness;
mod formats;
mod help;
mod keyboard;
mod keys;
mod latency;
mod live;
mod options;
mod places;
mod preflight;
mod progress;
mod prometheus;
mod random;
mod replay;
mod report;
mod results;
mod run;
mod safety;
mod search;
mod self_check;
mod session;
mod suite;
mod sys;
mod template;
mod uri;
mod values;
mod workload;

pub use help::tool;
pub use run::run;
