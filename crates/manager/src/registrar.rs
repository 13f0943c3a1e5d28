//! Servers become members, and what they are is kept true.
//!
//! A server is looked at first: is it one of ours, of the same slot space, free, and empty? Then the record gets it, and
//! only then it is told (`OXIDIS JOIN`, and `REPLICAOF` for a replica). Should the manager end in between, [`tend`] finds
//! a server in the record that does not renew its lease, and tells it again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Deserialize;
use topology::change::Change;
use topology::{GroupId, Role, Server, Topology};

use crate::api::problem::Problem;
use crate::api::shown;
use crate::app::App;
use crate::events::Note;
use crate::members::State;
use crate::shapes::NewServer;
use crate::wire::WireError;

/// Longest wait for a server's answer.
const PATIENCE: Duration = Duration::from_secs(3);
/// Between two looks at all servers.
const PERIOD: Duration = Duration::from_secs(1);
/// Between two attempts to tell a server something that it did not take.
const NAG_PERIOD: Duration = Duration::from_secs(5);

/// What a look at a server found.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Found {
    /// Its member id, if it is a member already.
    member: Option<String>,
    /// Whether it follows another server.
    is_replica: bool,
    keys: u64,
    slot_space: String,
}

/// The part of `OXIDIS VIEW` that matters here.
#[derive(Debug, Deserialize)]
struct Seen {
    #[serde(default)]
    member: Option<String>,
}

/// Takes a server into a group.
pub(crate) async fn register(app: &Arc<App>, group: GroupId, wish: &NewServer) -> Result<Server, Problem> {
    let topology = app.store.topology();
    let known = topology.group(group);
    let known = known.ok_or_else(|| Problem::missing(format!("there is no group {group}"), "add it first"))?;
    let is_primary = known.servers.is_empty();
    let found = look(app, &wish.address).await?;
    judge(&topology, &found, wish, is_primary)?;
    let id = new_id()?;
    let change = Change::AddServer { group, id: id.clone(), address: wish.address.clone(), zone: wish.zone.clone() };
    let (_, after) = app.store.change(|_| Ok(vec![change.clone()])).await?;
    let server = after.server(&id).map(|(_, server)| server.clone());
    let server = server.ok_or_else(|| Problem::conflict("it was removed meanwhile", "try again"))?;
    if let Err(error) = tell(app, &after, &server).await {
        // What it could not be told it is not to be.
        let undo = Change::RemoveServer { id: id.clone() };
        let undone = app.store.change(|_| Ok(vec![undo.clone()])).await;
        dismiss(app, &server);
        let hint =
            if undone.is_ok() { "it was not added" } else { "it is in the record: remove it, or wait until it joins" };
        return Err(Problem::upstream(format!("{} did not join: {error}", wish.address), hint));
    }
    Ok(server)
}

/// A server leaves: told in the background, for it may be dead.
pub(crate) fn dismiss(app: &Arc<App>, server: &Server) {
    let (app, server) = (app.clone(), server.clone());
    app.members.forget(&server.id);
    tokio::spawn(async move {
        let left = app.wire.command(&server.address, &["OXIDIS", "LEAVE"], PATIENCE).await;
        if left.is_ok() && server.role == Role::Replica {
            // What it has stays, as that of a server of its own.
            let _ = app.wire.command(&server.address, &["REPLICAOF", "NO", "ONE"], PATIENCE).await;
        }
        app.wire.forget(&server.address);
    });
}

/// Looks at a server that is to be added.
async fn look(app: &App, address: &str) -> Result<Found, Problem> {
    let ask = async |words: &[&str]| app.wire.text(address, words, PATIENCE).await;
    let unreachable = |error: WireError| match &error {
        WireError::Refused(text) if text.starts_with("NOAUTH") || text.starts_with("WRONGPASS") => Problem::upstream(
            format!("{address} wants another password"),
            "start the manager with --server-pass-file FILE (and --server-user NAME)",
        ),
        WireError::Refused(text) if text.starts_with("LOADING") => {
            Problem::conflict(format!("{address} still loads its data"), "try again when it is done")
        }
        WireError::Connect(_) | WireError::Late(_) => Problem::upstream(
            format!("no server answers at {address}: {error}"),
            "is it running, and is the address right as seen from the manager?",
        ),
        _ => Problem::upstream(format!("{address}: {error}"), "is it an oxidis server?"),
    };
    let member = match app.wire.json::<Seen, _>(address, &["OXIDIS", "VIEW"], PATIENCE).await {
        Ok(seen) => seen.member.filter(|member| !member.is_empty()),
        Err(WireError::Refused(text)) if text.contains("no member of a cluster") => None,
        Err(WireError::Refused(text)) if text.contains("unknown command") => {
            return Err(Problem::conflict(
                format!("{address} is no oxidis server"),
                "start 'oxidis server' there; 'oxidis proxy' with 'topology cluster' fronts a stock Redis Cluster as it is",
            ));
        }
        Err(error) => return Err(unreachable(error)),
    };
    let replication = ask(&["INFO", "replication"]).await.map_err(unreachable)?;
    let keyspace = ask(&["INFO", "keyspace"]).await.map_err(unreachable)?;
    let space = app.wire.call(address, &["CONFIG", "GET", "slot-space"], PATIENCE).await.map_err(unreachable)?;
    Ok(Found {
        member,
        is_replica: replication.contains("role:slave"),
        keys: count_keys(&keyspace),
        slot_space: last_text(&space),
    })
}

/// The keys of all databases, as INFO tells them: `db0:keys=3,expires=0,…`.
fn count_keys(keyspace: &str) -> u64 {
    let counts =
        keyspace.lines().filter_map(|line| line.trim().split_once(":keys=")?.1.split(',').next()?.parse::<u64>().ok());
    counts.fold(0, u64::saturating_add)
}

/// The value in an answer of CONFIG GET; empty if there is none.
fn last_text(value: &resp::Value) -> String {
    let last = match value {
        resp::Value::Array(items) => items.last(),
        resp::Value::Map(pairs) => pairs.last().map(|(_, value)| value),
        _ => None,
    };
    match last {
        Some(resp::Value::Bulk(text) | resp::Value::Simple(text)) => String::from_utf8_lossy(text).into_owned(),
        _ => String::new(),
    }
}

/// Whether a server may be taken.
fn judge(topology: &Topology, found: &Found, wish: &NewServer, is_primary: bool) -> Result<(), Problem> {
    let address = &wish.address;
    if let Some(member) = &found.member {
        return Err(Problem::conflict(
            format!("{address} is a member of a cluster already, as {member}"),
            "'OXIDIS LEAVE' makes it a plain server again, if that is meant",
        ));
    }
    let space = topology.slot_space.to_string();
    if !found.slot_space.is_empty() && found.slot_space != space {
        return Err(Problem::conflict(
            format!("{address} has the slot space {}, the cluster {space}", found.slot_space),
            format!("start it with 'slot-space {space}'"),
        ));
    }
    if wish.force {
        return Ok(());
    }
    if found.keys > 0 {
        let what = if is_primary {
            "its keys would be served as far as their slots become the group's, and be dropped otherwise"
        } else {
            "a replica loses what it has"
        };
        return Err(Problem::conflict(
            format!("{address} holds {} keys: {what}", found.keys),
            "empty it (FLUSHALL), or take it as it is with force",
        ));
    }
    if found.is_replica {
        return Err(Problem::conflict(
            format!("{address} follows another server"),
            "'REPLICAOF NO ONE' ends that, or take it as it is with force",
        ));
    }
    Ok(())
}

/// 40 hex digits, as a node's id in CLUSTER NODES.
fn new_id() -> Result<String, Problem> {
    let mut bytes = [0; 20];
    getrandom::fill(&mut bytes)
        .map_err(|_| Problem::unavailable("this machine gives no random numbers", "try again"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Tells a server that it is a member, and what it is.
async fn tell(app: &App, topology: &Topology, server: &Server) -> Result<(), WireError> {
    let urls = app.join_urls();
    let mut words = vec!["OXIDIS", "JOIN", server.id.as_str()];
    words.extend(urls.iter().map(String::as_str));
    app.wire.command(&server.address, &words, PATIENCE).await?;
    tell_role(app, topology, server).await
}

/// Tells a server whom it follows.
async fn tell_role(app: &App, topology: &Topology, server: &Server) -> Result<(), WireError> {
    let primary = topology.server(&server.id).and_then(|(group, _)| group.primary());
    match (server.role, primary.and_then(|primary| primary.address.rsplit_once(':'))) {
        (Role::Replica, Some((host, port))) => {
            let host = host.trim_matches(['[', ']']);
            app.wire.command(&server.address, &["REPLICAOF", host, port], PATIENCE).await
        }
        (Role::Primary, _) => app.wire.command(&server.address, &["REPLICAOF", "NO", "ONE"], PATIENCE).await,
        (Role::Replica, None) => Ok(()),
    }
}

/// Keeps servers what the record says that they are, while this manager leads.
///
/// Each server is looked at by a task of its own, so that one that hangs delays no other.
pub(crate) async fn tend(app: Arc<App>) {
    let mut stop = app.stop.subscribe();
    let mut nagged: std::collections::HashMap<String, Instant> = std::collections::HashMap::new();
    loop {
        tokio::select! {
            () = tokio::time::sleep(PERIOD) => {}
            _ = stop.changed() => return,
        }
        tell_of_members(&app);
        if app.store.must_lead().is_err() {
            continue;
        }
        let topology = app.store.topology();
        let lease = shown::lease(&topology);
        let now = Instant::now();
        nagged.retain(|_, at| now.saturating_duration_since(*at) < NAG_PERIOD);
        for (_, server) in topology.servers() {
            if nagged.contains_key(&server.id) {
                continue;
            }
            let state = app.members.state(&server.id, now, lease);
            let is_new_here = state == State::Unknown && app.store.leads_for() < lease;
            if is_new_here {
                continue;
            }
            nagged.insert(server.id.clone(), now);
            let (app, topology, server) = (app.clone(), topology.clone(), server.clone());
            tokio::spawn(async move { tend_one(&app, &topology, &server, state).await });
        }
    }
}

/// Looks at one server, and tells it what it does not know.
async fn tend_one(app: &App, topology: &Topology, server: &Server, state: State) {
    if state != State::Up {
        // It lost its membership, or was never told of it. One that is a member of something else is left alone.
        let seen = app.wire.json::<Seen, _>(&server.address, &["OXIDIS", "VIEW"], PATIENCE).await;
        let is_free = match &seen {
            Ok(seen) => seen.member.as_ref().is_none_or(|member| member.is_empty()),
            Err(WireError::Refused(text)) => text.contains("no member of a cluster"),
            Err(_) => return,
        };
        let is_ours = seen.is_ok_and(|seen| seen.member.as_deref() == Some(server.id.as_str()));
        if (is_free || is_ours) && is_current(app, server) && tell(app, topology, server).await.is_ok() && is_free {
            let object = format!("server {}", server.address);
            app.events.write(Note { term: topology.term.0, ..Note::event("member.joined", object, "told again") });
        }
        return;
    }
    let Ok(role) = app.wire.call(&server.address, &["ROLE"], PATIENCE).await else {
        return;
    };
    if !is_as_told(topology, server, &role) && is_current(app, server) {
        let told = tell_role(app, topology, server).await;
        let result = told.map_or_else(|error| error.to_string(), |()| "ok".into());
        let object = format!("server {}", server.address);
        let detail = format!("it is to be a {}", shown::role(server.role));
        app.events.write(Note { result, term: topology.term.0, ..Note::event("server.role", object, detail) });
    }
}

/// Whether the record still says the same of a server, and this manager leads.
fn is_current(app: &App, server: &Server) -> bool {
    app.store.must_lead().is_ok() && app.store.topology().server(&server.id).is_some_and(|(_, now)| now == server)
}

/// Whether what ROLE answers is what the record says.
fn is_as_told(topology: &Topology, server: &Server, role: &resp::Value) -> bool {
    let resp::Value::Array(items) = role else {
        return true;
    };
    let text = |index: usize| match items.get(index) {
        Some(resp::Value::Bulk(text) | resp::Value::Simple(text)) => String::from_utf8_lossy(text).into_owned(),
        Some(resp::Value::Int(number)) => number.to_string(),
        _ => String::new(),
    };
    match (server.role, text(0).as_str()) {
        (Role::Primary, name) => name == "master",
        (Role::Replica, "slave") => {
            let primary = topology.server(&server.id).and_then(|(group, _)| group.primary());
            primary.is_none_or(|primary| {
                primary
                    .address
                    .rsplit_once(':')
                    .is_none_or(|(host, port)| host.trim_matches(['[', ']']) == text(1) && port == text(2))
            })
        }
        (Role::Replica, _) => false,
    }
}

/// Tells of members that came or went.
fn tell_of_members(app: &App) {
    let topology = app.store.topology();
    for (id, _, state) in app.members.changed(Instant::now(), shown::lease(&topology)) {
        let address = topology.server(&id).map(|(_, server)| &server.address);
        let address = address.or_else(|| topology.proxy(&id).map(|proxy| &proxy.address));
        let Some(address) = address.cloned() else {
            continue;
        };
        let action = if state == State::Up { "member.up" } else { "member.down" };
        app.events.write(Note { term: topology.term.0, ..Note::event(action, id, address) });
        app.news.send_modify(|count| *count += 1);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use resp::Value;
    use topology::SlotSpace;

    use super::*;

    fn found() -> Found {
        Found { member: None, is_replica: false, keys: 0, slot_space: "redis".into() }
    }

    #[test]
    fn only_free_and_empty_servers_are_taken_unasked() {
        let topology = Topology::new("c", SlotSpace::Redis);
        let wish = NewServer { address: "h:1".into(), ..NewServer::default() };
        let forced = NewServer { force: true, ..wish.clone() };
        assert!(judge(&topology, &found(), &wish, true).is_ok());
        let member = Found { member: Some("x".into()), ..found() };
        assert!(judge(&topology, &member, &forced, true).unwrap_err().hint.contains("OXIDIS LEAVE"));
        let full = Found { keys: 3, ..found() };
        assert!(judge(&topology, &full, &wish, false).unwrap_err().error.contains("a replica loses what it has"));
        assert!(judge(&topology, &full, &forced, false).is_ok());
        let replica = Found { is_replica: true, ..found() };
        assert!(judge(&topology, &replica, &wish, true).is_err());
        let codis = Found { slot_space: "codis".into(), ..found() };
        assert!(judge(&topology, &codis, &forced, true).unwrap_err().hint.contains("slot-space redis"));
    }

    #[test]
    fn keys_are_counted_over_databases() {
        assert_eq!(count_keys("# Keyspace\r\ndb0:keys=3,expires=0,avg_ttl=0\r\ndb9:keys=4,expires=1\r\n"), 7);
        assert_eq!(count_keys("# Keyspace\r\n"), 0);
    }

    #[test]
    fn roles_are_compared() {
        let add = |id: &str, address: &str| Change::AddServer {
            group: GroupId(1),
            id: id.into(),
            address: address.into(),
            zone: String::new(),
        };
        let changes = [Change::AddGroup { id: None }, add("a", "127.0.0.1:1"), add("b", "127.0.0.1:2")];
        let topology = Topology::new("c", SlotSpace::Redis).apply_all(&changes).unwrap();
        let [a, b] = &topology.groups[0].servers[..] else { panic!() };
        let bulk = |text: &str| Value::Bulk(text.as_bytes().to_vec());
        let master = Value::Array(vec![bulk("master"), Value::Int(0), Value::Array(Vec::new())]);
        let slave = |port| Value::Array(vec![bulk("slave"), bulk("127.0.0.1"), Value::Int(port), bulk("connected")]);
        assert!(is_as_told(&topology, a, &master) && !is_as_told(&topology, b, &master));
        assert!(is_as_told(&topology, b, &slave(1)) && !is_as_told(&topology, b, &slave(3)));
        assert!(!is_as_told(&topology, a, &slave(1)));
    }
}
