//! Starts servers and peers, speaks RESP, compares replies. For tests and tasks only.
//!
//! It knows nothing of the crates it tests: the RESP parser here is its own, so that a mistake
//! in `resp` cannot hide from the tests that would show it.
//!
//! Start reading at [`Server`] (a process with a port and a directory of its own) and [`Client`]
//! (a blocking connection), then [`Client::check`], the one-line form of a test:
//!
//! ```no_run
//! let server = testkit::Server::oxidis(&["--io-threads", "2"]);
//! let mut client = server.client();
//! client.check("SET a 1; INCR a; LRANGE l 0 -1; GET none", "+OK; :2; []; nil");
//! ```
//!
//! [`differential`] compares two servers on random commands; [`history`] decides whether what
//! concurrent clients saw can be explained by one order of their operations.

mod authority;
pub mod binary;
pub mod client;
pub mod cluster;
pub mod differential;
pub mod etcd;
pub mod history;
pub mod process;
pub mod proxy;
pub mod replicas;
pub mod reply;
pub mod responder;
pub mod sentinel;
pub mod server;
pub mod snapshot;
pub mod text;

pub use authority::{Authority, Certificate};
pub use client::Client;
pub use cluster::StockCluster;
pub use etcd::Etcd;
pub use proxy::Proxy;
pub use reply::Reply;
pub use responder::{Answer, Responder};
pub use server::{Launch, Server};

use std::fmt::Debug;
use std::time::{Duration, Instant};

/// Polls `probe` every few milliseconds until it returns `Ok`, and returns that value.
///
/// # Panics
/// When `limit` passes first: the message holds `what` and the last state that `probe` gave.
pub fn wait_until<T, S: Debug>(what: &str, limit: Duration, mut probe: impl FnMut() -> Result<T, S>) -> T {
    let end = Instant::now() + limit;
    loop {
        match probe() {
            Ok(value) => return value,
            Err(state) if Instant::now() >= end => {
                panic!("waited {limit:?} for {what}; last state: {state:?}")
            }
            Err(_) => std::thread::sleep(Duration::from_millis(3)),
        }
    }
}

/// The seed of a randomised test: `OXIDIS_SEED` when set, else `default`. Prints it, so that a
/// failure in a log can be repeated.
pub fn seed(default: u64) -> u64 {
    let seed = std::env::var("OXIDIS_SEED").ok().and_then(|text| text.parse().ok());
    let seed = seed.unwrap_or(default);
    eprintln!("seed {seed} (set OXIDIS_SEED to change it)");
    seed
}
