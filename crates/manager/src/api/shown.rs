//! The record of the cluster and what is known of it right now, as the API shows it.

use std::time::{Duration, Instant};

use topology::{Group, GroupId, Move, Role, SlotSet, Topology};

use crate::app::App;
use crate::shapes;

/// A set of slots as ranges.
pub(crate) fn ranges(slots: &SlotSet) -> shapes::Ranges {
    slots.ranges().iter().map(|&(first, last)| [first, last]).collect()
}

/// How many slots a set has.
pub(crate) fn count(slots: &SlotSet) -> u32 {
    u32::try_from(slots.count()).unwrap_or(u32::MAX)
}

/// How long a member's lease is.
pub(crate) fn lease(topology: &Topology) -> Duration {
    Duration::from_millis(topology.lease_ms)
}

pub(crate) fn topology(app: &App) -> shapes::Topology {
    let now = app.store.now();
    let topology = &now.topology;
    shapes::Topology {
        cluster: topology.cluster.clone(),
        term: topology.term.0,
        epoch: topology.epoch.0,
        leader: now.leader_url(&app.url),
        is_leader: now.leads(),
        slot_space: topology.slot_space.to_string(),
        slot_count: u32::from(topology.slot_space.slots()),
        unassigned: ranges(&topology.unowned()),
        lease_ms: topology.lease_ms,
        groups: groups(app, topology),
        proxies: proxies(app, topology),
        moves: topology.open_moves().map(|one| one_move(app, one)).collect(),
    }
}

pub(crate) fn groups(app: &App, topology: &Topology) -> Vec<shapes::Group> {
    topology.groups.iter().map(|one| group(app, topology, one)).collect()
}

pub(crate) fn group(app: &App, topology: &Topology, group: &Group) -> shapes::Group {
    let mut servers: Vec<shapes::Server> =
        group.servers.iter().map(|one| server(app, topology, group.id, one)).collect();
    servers.sort_by_key(|server| server.role != "primary");
    shapes::Group {
        id: group.id.0,
        epoch: group.epoch.0,
        slots: ranges(&group.slots),
        slot_count: count(&group.slots),
        servers,
    }
}

pub(crate) fn server(app: &App, topology: &Topology, group: GroupId, server: &topology::Server) -> shapes::Server {
    shapes::Server {
        id: server.id.clone(),
        address: server.address.clone(),
        role: role(server.role).into(),
        zone: server.zone.clone(),
        group: group.0,
        status: app.members.status(&server.id, Instant::now(), lease(topology)),
    }
}

pub(crate) fn role(role: Role) -> &'static str {
    match role {
        Role::Primary => "primary",
        Role::Replica => "replica",
    }
}

pub(crate) fn proxies(app: &App, topology: &Topology) -> Vec<shapes::Proxy> {
    topology.proxies.iter().map(|one| proxy(app, topology, one)).collect()
}

pub(crate) fn proxy(app: &App, topology: &Topology, proxy: &topology::Proxy) -> shapes::Proxy {
    shapes::Proxy {
        id: proxy.id.clone(),
        address: proxy.address.clone(),
        zone: proxy.zone.clone(),
        status: app.members.status(&proxy.id, Instant::now(), lease(topology)),
    }
}

pub(crate) fn one_move(app: &App, one: &Move) -> shapes::Move {
    let mut shown = shapes::Move {
        id: one.id.0,
        from: one.from.0,
        to: one.to.0,
        slots: ranges(&one.slots),
        slot_count: count(&one.slots),
        stage: one.stage.name().into(),
        is_paused: one.paused,
        rate_limit: (one.rate > 0).then_some(one.rate),
        attempts: one.attempts,
        error: one.reason.clone(),
        ..shapes::Move::default()
    };
    app.progress.fill(&mut shown);
    shown
}

/// Runs of slots in the same state, ascending.
pub(crate) fn slot_ranges(topology: &Topology) -> Vec<shapes::SlotRange> {
    let mut ranges: Vec<shapes::SlotRange> = Vec::new();
    let moving: Vec<&Move> = topology.moves.iter().filter(|one| one.stage.is_running()).collect();
    let mut add = |slots: &SlotSet, group: Option<GroupId>| {
        let mut rest = slots.clone();
        for one in moving.iter().filter(|one| Some(one.from) == group && one.stage != topology::Stage::Committed) {
            let part = rest.intersection(&one.slots);
            rest = rest.difference(&one.slots);
            ranges.extend(part.ranges().iter().map(|&(from, to)| shapes::SlotRange {
                from,
                to,
                group: group.map(|group| group.0),
                moving_to: Some(one.to.0),
                move_id: Some(one.id.0),
            }));
        }
        ranges.extend(rest.ranges().iter().map(|&(from, to)| shapes::SlotRange {
            from,
            to,
            group: group.map(|group| group.0),
            moving_to: None,
            move_id: None,
        }));
    };
    for group in &topology.groups {
        add(&group.slots, Some(group.id));
    }
    add(&topology.unowned(), None);
    ranges.sort_by_key(|range| range.from);
    ranges
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use topology::change::{Change, NewMove};
    use topology::{MoveId, SlotSpace};

    use super::*;

    #[test]
    fn slots_are_shown_by_state() {
        let server = |group, id: &str, address: &str| Change::AddServer {
            group: GroupId(group),
            id: id.into(),
            address: address.into(),
            zone: String::new(),
        };
        let changes = [
            Change::AddGroup { id: None },
            Change::AddGroup { id: None },
            server(1, "a", "h:1"),
            server(2, "b", "h:2"),
            Change::AssignSlots { group: GroupId(1), slots: SlotSet::range(0, 9999) },
            Change::PlanMoves {
                moves: vec![NewMove { from: GroupId(1), to: GroupId(2), slots: SlotSet::range(5, 9), rate: 0 }],
            },
        ];
        let topology = Topology::new("c", SlotSpace::Redis).apply_all(&changes).unwrap();
        assert_eq!(topology.moves[0].id, MoveId(1));
        let shown: Vec<_> = slot_ranges(&topology)
            .into_iter()
            .map(|range| (range.from, range.to, range.group, range.moving_to))
            .collect();
        let expected =
            [(0, 4, Some(1), None), (5, 9, Some(1), Some(2)), (10, 9999, Some(1), None), (10_000, 16_383, None, None)];
        assert_eq!(shown, expected);
    }
}
