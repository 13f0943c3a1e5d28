//! The agent of this server: holds its lease at the manager and brings views.

use super::store::Kept;
use crate::config::Config;
use crate::replication::Phase;
use crate::shared::Shared;
use ::member::{Agent, Membership, Settings};
use keyspace::DbIndex;
use keyspace::keyspace::COUNTED_DBS;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Instant;
use topology::wire::MemberKind;
use topology::{Epoch, View};

/// An agent at work; dropping it ends it.
pub(crate) struct Running {
    /// What it keeps up to date.
    pub(crate) membership: Arc<Membership>,
    /// Not waited for: it may wait for the control thread itself.
    _agent: Agent,
}

/// Starts the agent of a member.
///
/// # Errors
/// No manager is named, or there is no thread for it.
pub(crate) fn start(shared: &Arc<Shared>, kept: &Kept) -> Result<Running, String> {
    let membership = Arc::new(Membership::new(Instant::now()));
    membership.refuse_before(Epoch(kept.epoch));
    let settings = Settings {
        id: kept.member.clone(),
        kind: MemberKind::Server,
        run: shared.run_id.clone(),
        address: address(&shared.config.snapshot()),
        managers: kept.managers.clone(),
        token: None,
    };
    let (of_status, of_views) = (Arc::downgrade(shared), Arc::downgrade(shared));
    let on_view = move |view: &Arc<View>| {
        let Some(shared) = of_views.upgrade() else { return };
        let view = view.clone();
        // Waited for, so that the lease which comes with a view is valid only when the view is in force.
        shared.control_waiting(move |control| control.take_view(&view));
    };
    let agent = Agent::start(settings, membership.clone(), move || status(&of_status), on_view)?;
    Ok(Running { membership, _agent: agent })
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
