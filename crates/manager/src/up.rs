//! `oxidis up`: a whole cluster on this machine as one tree of processes.
//!
//! ```text
//! up ── servers (groups × (1 + replicas))    DIR/servers/PORT
//!    ├─ manager                              DIR/manager
//!    └─ proxies                              DIR/proxies/PORT
//! ```
//!
//! The children run the same binary. `up` starts them, tells the manager of the servers on the first start, starts again
//! what crashes, and stops them in order: proxies, manager, primaries, replicas. Should `up` itself be killed, the
//! kernel ends its children ([`follow_parent`]).
//!
//! - `layout`: how many of what, on which ports; remembered in DIR/up.json.
//! - `child`: one process: started, watched, started again, stopped.
//! - `bootstrap`: what the manager is told on the first start.
//!
//! Start reading at [`run`].

mod bootstrap;
mod child;
mod command;
mod layout;

pub use child::follow_parent;
pub use command::{run, tool};

/// The command line of a proxy that follows the manager. It is known there as `proxy-PORT`.
fn proxy_arguments(port: &str, folder: &str, topology: &str) -> Vec<String> {
    let words = ["proxy", "--port", port, "--bind", "127.0.0.1", "--dir", folder, "--topology", topology];
    words.map(str::to_owned).to_vec()
}
