//! Follows a manager: `topology manager http://host:port,…`.
//!
//! The member's agent holds the proxy's lease and gets views; each becomes a map. Servers check by themselves who owns a
//! slot, so an old map does no harm: requests are redirected. The lease tells the manager that this proxy is there.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use ::topology::wire::MemberKind;
use ::topology::{Role, View};
use keyspace::slot::SlotSpace;
use member::{Agent, Membership, Settings};
use server::log;
use server::process::log::Level;

use crate::config::Config;
use crate::cursor::Fingerprint;
use crate::shared::Shared;
use crate::slots::{BackendAddress, Kind, Replica, SlotMap};
use crate::topology::resolve;

/// Starts the agent of this proxy.
///
/// # Errors
/// When no manager can be asked; the text says why.
pub fn follow(shared: &Arc<Shared>, managers: &[String]) -> Result<Agent, String> {
    let config = shared.config.snapshot();
    let settings = Settings {
        id: name_of(&config),
        kind: MemberKind::Proxy,
        run: shared.run_id.clone(),
        address: address_of(&config),
        managers: managers.to_vec(),
        token: None,
    };
    let (of_status, of_view) = (shared.clone(), shared.clone());
    let status = move || {
        serde_json::json!({
            "clients": of_status.clients.load(std::sync::atomic::Ordering::Relaxed),
            "requests": of_status.sum(|stats| stats.requests.get()),
            "errors": of_status.sum(|stats| stats.errors.get()),
        })
    };
    let on_view = move |view: &Arc<View>| {
        if of_view.map.publish(slot_map(view)) {
            log!(
                Level::Notice,
                "The manager's view {}.{} has other owners of slots, or moves",
                view.term.0,
                view.epoch.0
            );
        }
    };
    Agent::start(settings, Arc::new(Membership::new(Instant::now())), status, on_view)
}

/// `proxy-name`, or one by the port.
fn name_of(config: &Config) -> String {
    if config.proxy_name.is_empty() {
        return format!("proxy-{}", config.base.port);
    }
    String::from_utf8_lossy(&config.proxy_name).into_owned()
}

/// Where others reach this proxy, as far as it can tell: `proxy-address`, or the first address it is bound to.
fn address_of(config: &Config) -> String {
    if !config.proxy_address.is_empty() {
        return String::from_utf8_lossy(&config.proxy_address).into_owned();
    }
    let bound = config.base.bind.iter().map(|address| String::from_utf8_lossy(address).into_owned());
    let usable = |address: &String| address.parse::<std::net::IpAddr>().is_ok_and(|address| !address.is_unspecified());
    let host = bound.map(|address| address.trim_start_matches('-').to_owned()).find(usable);
    format!("{}:{}", host.unwrap_or_else(|| "127.0.0.1".to_owned()), config.base.port)
}

/// What workers need of a view.
fn slot_map(view: &View) -> SlotMap {
    let space = match view.slot_space {
        ::topology::SlotSpace::Redis => SlotSpace::Redis,
        ::topology::SlotSpace::Codis => SlotSpace::Codis,
    };
    let mut map = SlotMap::empty(space, Kind::Native);
    for group in &view.groups {
        let Some(primary) = group.primary() else { continue };
        let Some(address) = address_at(&primary.address) else { continue };
        if group.slots.is_empty() {
            continue;
        }
        let Some(place) = map.backend(BackendAddress { name: primary.address.clone(), address }) else { continue };
        for (first, last) in group.slots.ranges() {
            map.assign(usize::from(*first)..=usize::from(*last), place);
        }
        let replicas = group.servers.iter().filter(|server| server.role == Role::Replica).filter_map(|server| {
            let backend = BackendAddress { name: server.address.clone(), address: address_at(&server.address)? };
            Some(Replica { backend, zone: (!server.zone.is_empty()).then(|| server.zone.clone()) })
        });
        map.replicas.resize(map.backends.len(), Vec::new());
        if let Some(of_backend) = map.replicas.get_mut(usize::from(place)) {
            *of_backend = replicas.collect();
        }
    }
    for one in &view.moves {
        map.moving = map.moving.union(&one.slots);
    }
    // SCAN goes by slots there and needs none.
    map.fingerprint = Fingerprint::FIXED;
    map
}

fn address_at(name: &str) -> Option<SocketAddr> {
    match name.parse() {
        Ok(address) => Some(address),
        Err(_) => resolve(name).ok(),
    }
}
