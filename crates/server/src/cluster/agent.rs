//! The agent of this server: holds its lease at the manager and brings views.

use super::store::Kept;
use crate::config::Config;
use crate::replication::Phase;
use crate::shared::Shared;
use ::member::Membership;
use keyspace::DbIndex;
use keyspace::keyspace::COUNTED_DBS;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

/// An agent at work.
pub(crate) struct Running {
    /// What it keeps up to date.
    pub(crate) membership: Arc<Membership>,
}

impl Running {
    /// Ends it.
    pub(crate) fn stop(self) {
    }
}

/// Starts the agent of a member.
///
/// # Errors
/// There is no thread for it.
pub(crate) fn start(_shared: &Arc<Shared>, _kept: &Kept) -> Result<Running, String> {
    Ok(Running { membership: Arc::default() })
}

/// Where this server is reached: what it announces, or else the first address that it listens on.
pub(crate) fn address(config: &Config) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_start_matches('-').to_owned();
    let is_any = |host: &String| host.is_empty() || host == "*" || host == "0.0.0.0" || host.contains("::");
    let host = if config.cluster_announce_ip.is_empty() {
        config.bind.iter().map(|host| text(host)).find(|host| !is_any(host)).unwrap_or_else(|| "127.0.0.1".to_owned())
    } else {
        text(&config.cluster_announce_ip)
    };
    let port = if config.cluster_announce_port == 0 { config.port } else { config.cluster_announce_port };
    format!("{host}:{port}")
}

/// What this server tells of itself with each request for its lease.
pub(crate) fn status(shared: &Weak<Shared>) -> Value {
    let Some(shared) = shared.upgrade() else { return Value::Null };
    let replication = &shared.replication;
    let keyspace = &shared.keyspace;
    let databases = u32::try_from(COUNTED_DBS).unwrap_or(0).min(keyspace.databases());
    let keys: u64 = (0..databases).filter_map(|db| keyspace.counted(DbIndex(db))).map(|(keys, _)| keys).sum();
    let is_replica = replication.is_replica();
    json!({
        "role": if is_replica { "replica" } else { "primary" },
        "offset": keyspace.journal.end(),
        "master_link": if !is_replica { "none" } else if replication.phase() == Phase::Connected { "up" } else { "down" },
        "keys": keys,
        "used_memory": keyspace::memory::used_bytes(),
        "ops": shared.rates.lock().ops,
        "clients": shared.clients.load(Ordering::Relaxed),
        "cutovers": shared.cluster.held.cutovers.load(Ordering::Relaxed),
        "held_us_max": shared.cluster.held.longest_us.load(Ordering::Relaxed),
    })
}
