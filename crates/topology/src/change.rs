//! Every way a cluster changes, as checked pure functions: [`Topology::apply`] gives the next record or says why not.
//!
//! What holds after each change, and is looked at by [`Topology::check`]:
//! - a slot has at most one owner, and lies within the slot space;
//! - a slot is in at most one open move; such a move's slots belong to its source until it is committed, then to its target;
//! - a group with servers has exactly one primary; names and addresses are those of one member;
//! - the epoch grew by one; the term did not fall.

use serde::{Deserialize, Serialize};

use crate::model::{Epoch, Group, GroupId, KEPT_MOVES, Move, MoveId, Proxy, Role, Server, Stage, Term, Topology};
use crate::slots::SlotSet;

mod check;
mod moves;
#[cfg(test)]
mod tests;

pub use moves::MAX_OPEN_MOVES;

/// A change that is not made: why, and what to do instead.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, thiserror::Error)]
#[error("{error} ({hint})")]
pub struct Refused {
    /// What is wrong.
    pub error: String,
    /// What to do.
    pub hint: String,
    /// What kind of mistake it is.
    pub kind: RefusedKind,
}

/// What kind of mistake a refused change is; an interface picks its status by it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RefusedKind {
    /// It names something that is not there (404).
    Missing,
    /// It cannot be while things are as they are (409).
    Conflict,
    /// It never makes sense (400).
    Invalid,
}

impl Refused {
    fn missing(error: String, hint: &str) -> Refused {
        Refused { error, hint: hint.to_string(), kind: RefusedKind::Missing }
    }

    fn conflict(error: String, hint: &str) -> Refused {
        Refused { error, hint: hint.to_string(), kind: RefusedKind::Conflict }
    }

    fn invalid(error: String, hint: &str) -> Refused {
        Refused { error, hint: hint.to_string(), kind: RefusedKind::Invalid }
    }
}

/// A move that is wanted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NewMove {
    /// Who has the slots.
    pub from: GroupId,
    /// Who gets them.
    pub to: GroupId,
    /// Which.
    pub slots: SlotSet,
    /// Bytes a second; 0 for no limit.
    #[serde(default)]
    pub rate: u64,
}

/// A change of a cluster. In JSON: `{"add_group":{…}}`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// A manager became leader: the record takes its term.
    BeginTerm {
        /// Greater than the record's.
        term: Term,
    },
    /// The length of members' leases, in milliseconds.
    SetLease {
        /// 300 to 600,000.
        lease_ms: u64,
    },
    /// A new group without servers and slots.
    AddGroup {
        /// Its number; the next free one when not given.
        id: Option<GroupId>,
    },
    /// A group that owns nothing goes, with its servers.
    RemoveGroup {
        /// Which.
        id: GroupId,
    },
    /// A server joins a group: as primary when it is the first, else as a replica.
    AddServer {
        /// The group.
        group: GroupId,
        /// Its name.
        id: String,
        /// Its `host:port`.
        address: String,
        /// Where it stands; may be empty.
        zone: String,
    },
    /// A server leaves its group. A primary can only leave as the last, from a group that owns nothing.
    RemoveServer {
        /// Which.
        id: String,
    },
    /// A server has moved to another address or zone.
    SetServer {
        /// Which.
        id: String,
        /// Its `host:port`.
        address: String,
        /// Where it stands; may be empty.
        zone: String,
    },
    /// A replica becomes its group's primary, and the primary its replica. Whoever asks must know that the replica has what
    /// was acknowledged and that the old primary takes no more writes. The group's copies begin anew.
    Promote {
        /// The replica.
        id: String,
    },
    /// A proxy joins, or tells its new address.
    SetProxy {
        /// Its name.
        id: String,
        /// Its `host:port`.
        address: String,
        /// Where it stands; may be empty.
        zone: String,
    },
    /// A proxy leaves.
    RemoveProxy {
        /// Which.
        id: String,
    },
    /// Slots that nobody owns get an owner.
    AssignSlots {
        /// The new owner.
        group: GroupId,
        /// Which.
        slots: SlotSet,
    },
    /// Slots lose their owner. Nobody serves them then; what keys there were, their servers drop.
    ReleaseSlots {
        /// Which.
        slots: SlotSet,
    },
    /// Moves are planned, all or none.
    PlanMoves {
        /// Which.
        moves: Vec<NewMove>,
    },
    /// `planned → copying`.
    StartCopy {
        /// Which move.
        id: MoveId,
        /// The incarnation of the source's primary.
        source_run: String,
        /// The incarnation of the target's primary.
        target_run: String,
    },
    /// `copying → cutover`.
    BeginCutover {
        /// Which move.
        id: MoveId,
    },
    /// `cutover → copying`: the source serves the slots again, the copy goes on.
    Thaw {
        /// Which move.
        id: MoveId,
        /// Why.
        reason: String,
    },
    /// `copying` or `cutover → planned`: the copy is begun anew.
    Restart {
        /// Which move.
        id: MoveId,
        /// Why.
        reason: String,
    },
    /// `cutover → committed`: the target owns the slots from here on.
    Commit {
        /// Which move.
        id: MoveId,
        /// The incarnation of the source that holds the slots: the one the move began with.
        source_run: String,
        /// The incarnation of the target that has all of them: the one the move began with.
        target_run: String,
        /// The move's attempts when the slots were held.
        attempts: u32,
        /// The move's thaws when the slots were held. With the attempts it names the one cut-over that this is for: a commit
        /// that was decided for an earlier one is refused, even when it is made on the newest record.
        thaws: u32,
    },
    /// `committed → done`: both ends know.
    Finish {
        /// Which move.
        id: MoveId,
    },
    /// Any stage before `committed` `→ cancelled`.
    Cancel {
        /// Which move.
        id: MoveId,
    },
    /// Any stage before `committed` `→ failed`.
    Fail {
        /// Which move.
        id: MoveId,
        /// Why.
        reason: String,
    },
    /// Both ends know that the move was cancelled or failed.
    Settle {
        /// Which move.
        id: MoveId,
    },
    /// A move rests, or goes on.
    SetPaused {
        /// Which move.
        id: MoveId,
        /// Whether it is to rest.
        paused: bool,
    },
    /// How fast a move may be.
    SetRate {
        /// Which move.
        id: MoveId,
        /// Bytes a second; 0 for no limit.
        rate: u64,
    },
}

impl Topology {
    /// The record after `change`, or why there is none. The epoch is greater by one; groups that changed carry it.
    pub fn apply(&self, change: &Change) -> Result<Topology, Refused> {
        let mut next = self.clone();
        next.epoch = Epoch(self.epoch.0.checked_add(1).ok_or_else(|| exhausted("epochs"))?);
        next.change(change)?;
        debug_assert_eq!(next.check(), Ok(()), "after {change:?}");
        Ok(next)
    }

    /// The record after all of the changes, or why the first that fails cannot be made.
    pub fn apply_all(&self, changes: &[Change]) -> Result<Topology, Refused> {
        changes.iter().try_fold(self.clone(), |topology, change| topology.apply(change))
    }

    fn change(&mut self, change: &Change) -> Result<(), Refused> {
        match change {
            Change::BeginTerm { term } => self.begin_term(*term),
            Change::SetLease { lease_ms } => self.set_lease(*lease_ms),
            Change::AddGroup { id } => self.add_group(*id),
            Change::RemoveGroup { id } => self.remove_group(*id),
            Change::AddServer { group, id, address, zone } => self.add_server(*group, id, address, zone),
            Change::RemoveServer { id } => self.remove_server(id),
            Change::SetServer { id, address, zone } => self.set_server(id, address, zone),
            Change::Promote { id } => self.promote(id),
            Change::SetProxy { id, address, zone } => self.set_proxy(id, address, zone),
            Change::RemoveProxy { id } => self.remove_proxy(id),
            Change::AssignSlots { group, slots } => self.assign_slots(*group, slots),
            Change::ReleaseSlots { slots } => self.release_slots(slots),
            Change::PlanMoves { moves } => self.plan_moves(moves),
            Change::StartCopy { id, source_run, target_run } => self.start_copy(*id, source_run, target_run),
            Change::BeginCutover { id } => self.begin_cutover(*id),
            Change::Thaw { id, reason } => self.thaw(*id, reason),
            Change::Restart { id, reason } => self.restart(*id, reason),
            Change::Commit { id, source_run, target_run, attempts, thaws } => {
                self.commit(*id, (source_run, target_run), (*attempts, *thaws))
            }
            Change::Finish { id } => self.finish(*id),
            Change::Cancel { id } => self.give_up(*id, Stage::Cancelled, ""),
            Change::Fail { id, reason } => self.give_up(*id, Stage::Failed, reason),
            Change::Settle { id } => self.settle(*id),
            Change::SetPaused { id, paused } => self.set_paused(*id, *paused),
            Change::SetRate { id, rate } => self.set_rate(*id, *rate),
        }
    }

    fn begin_term(&mut self, term: Term) -> Result<(), Refused> {
        if term <= self.term {
            return Err(Refused::conflict(
                format!("term {term} is not newer than {}", self.term),
                "another manager has led since: stand for election again",
            ));
        }
        self.term = term;
        Ok(())
    }

    fn set_lease(&mut self, lease_ms: u64) -> Result<(), Refused> {
        if !(300..=600_000).contains(&lease_ms) {
            return Err(Refused::invalid(
                format!("a lease of {lease_ms} ms is out of bounds"),
                "give 300 to 600000 milliseconds",
            ));
        }
        self.lease_ms = lease_ms;
        Ok(())
    }

    fn add_group(&mut self, id: Option<GroupId>) -> Result<(), Refused> {
        if self.groups.len() >= MAX_GROUPS {
            return Err(Refused::conflict(format!("there are {MAX_GROUPS} groups, the most there can be"), "use one"));
        }
        let id = id.unwrap_or(self.next_group);
        if id.0 == 0 || id.0 > LAST_GROUP {
            return Err(Refused::invalid(format!("{id} is no group's number"), "give 1 to 999999, or none"));
        }
        if self.group(id).is_some() {
            return Err(Refused::conflict(format!("group {id} is there already"), "give another number, or none"));
        }
        let at = self.groups.partition_point(|group| group.id < id);
        self.groups.insert(at, Group { id, epoch: self.epoch, servers: Vec::new(), slots: SlotSet::new() });
        while self.group(self.next_group).is_some() {
            self.next_group.0 += 1;
        }
        Ok(())
    }

    fn remove_group(&mut self, id: GroupId) -> Result<(), Refused> {
        let group = self.group(id).ok_or_else(|| no_group(id))?;
        if !group.slots.is_empty() {
            return Err(Refused::conflict(
                format!("group {id} owns {} slots", group.slots.count()),
                "move them to other groups first (plan: drain)",
            ));
        }
        self.refuse_while_moving(id)?;
        self.groups.retain(|group| group.id != id);
        Ok(())
    }

    fn add_server(&mut self, group: GroupId, id: &str, address: &str, zone: &str) -> Result<(), Refused> {
        self.new_member(id, address)?;
        if self.servers().count() >= MAX_MEMBERS {
            return Err(Refused::conflict(
                format!("there are {MAX_MEMBERS} servers, the most there can be"),
                "use one",
            ));
        }
        let epoch = self.epoch;
        let group = self.group_mut(group)?;
        let role = if group.servers.is_empty() { Role::Primary } else { Role::Replica };
        group.servers.push(Server { id: id.to_string(), address: address.to_string(), role, zone: zone.to_string() });
        group.epoch = epoch;
        Ok(())
    }

    fn remove_server(&mut self, id: &str) -> Result<(), Refused> {
        let (group, server) = self.server(id).ok_or_else(|| no_server(id))?;
        let number = group.id;
        if server.role == Role::Primary {
            if group.servers.len() > 1 {
                return Err(Refused::conflict(
                    format!("server '{id}' is the primary of group {number}"),
                    "promote a replica first",
                ));
            }
            if !group.slots.is_empty() {
                return Err(Refused::conflict(
                    format!(
                        "server '{id}' is the only one of group {number}, which owns {} slots",
                        group.slots.count()
                    ),
                    "move the slots to other groups first (plan: drain), or add a replica and promote it",
                ));
            }
            self.refuse_while_moving(number)?;
        }
        let epoch = self.epoch;
        let group = self.group_mut(number)?;
        group.servers.retain(|server| server.id != id);
        group.epoch = epoch;
        Ok(())
    }

    fn set_server(&mut self, id: &str, address: &str, zone: &str) -> Result<(), Refused> {
        let (group, server) = self.server(id).ok_or_else(|| no_server(id))?;
        let number = group.id;
        if server.address != address {
            self.new_address(address)?;
        }
        let epoch = self.epoch;
        let group = self.group_mut(number)?;
        for server in group.servers.iter_mut().filter(|server| server.id == id) {
            server.address = address.to_string();
            server.zone = zone.to_string();
        }
        group.epoch = epoch;
        Ok(())
    }

    fn promote(&mut self, id: &str) -> Result<(), Refused> {
        let (group, server) = self.server(id).ok_or_else(|| no_server(id))?;
        let number = group.id;
        if server.role == Role::Primary {
            return Err(Refused::conflict(
                format!("server '{id}' is the primary of group {number} already"),
                "name one of its replicas",
            ));
        }
        self.restart_copies_of(number, "another server was promoted");
        let epoch = self.epoch;
        let group = self.group_mut(number)?;
        for server in &mut group.servers {
            server.role = if server.id == id { Role::Primary } else { Role::Replica };
        }
        group.epoch = epoch;
        Ok(())
    }

    fn set_proxy(&mut self, id: &str, address: &str, zone: &str) -> Result<(), Refused> {
        let proxy = Proxy { id: id.to_string(), address: address.to_string(), zone: zone.to_string() };
        if let Some(at) = self.proxies.iter().position(|proxy| proxy.id == id) {
            if self.proxies.get(at).is_some_and(|known| known.address != address) {
                self.new_address(address)?;
            }
            if let Some(known) = self.proxies.get_mut(at) {
                *known = proxy;
            }
            return Ok(());
        }
        self.new_member(id, address)?;
        if self.proxies.len() >= MAX_MEMBERS {
            return Err(Refused::conflict(
                format!("there are {MAX_MEMBERS} proxies, the most there can be"),
                "use one",
            ));
        }
        let at = self.proxies.partition_point(|proxy| proxy.id.as_str() < id);
        self.proxies.insert(at, proxy);
        Ok(())
    }

    fn remove_proxy(&mut self, id: &str) -> Result<(), Refused> {
        if self.proxy(id).is_none() {
            return Err(Refused::missing(format!("there is no proxy '{id}'"), "list them with /proxies"));
        }
        self.proxies.retain(|proxy| proxy.id != id);
        Ok(())
    }

    fn assign_slots(&mut self, group: GroupId, slots: &SlotSet) -> Result<(), Refused> {
        self.fits(slots)?;
        let owned = slots.difference(&self.unowned());
        if let Some(slot) = owned.first() {
            let owner = self.owner(slot).map_or_else(String::new, |owner| format!(", slot {slot} by group {owner}"));
            return Err(Refused::conflict(
                format!("{} of these slots are owned already{owner}", owned.count()),
                "move owned slots instead of assigning them",
            ));
        }
        let epoch = self.epoch;
        let group = self.group_mut(group)?;
        if group.servers.is_empty() {
            return Err(Refused::conflict(format!("group {} has no server", group.id), "add a server to it first"));
        }
        group.slots = group.slots.union(slots);
        group.epoch = epoch;
        Ok(())
    }

    fn release_slots(&mut self, slots: &SlotSet) -> Result<(), Refused> {
        self.fits(slots)?;
        let unowned = slots.intersection(&self.unowned());
        if let Some(slot) = unowned.first() {
            return Err(Refused::conflict(format!("slot {slot} has no owner"), "name owned slots only"));
        }
        self.refuse_moving_slots(slots)?;
        let epoch = self.epoch;
        for group in self.groups.iter_mut().filter(|group| !group.slots.is_disjoint(slots)) {
            group.slots = group.slots.difference(slots);
            group.epoch = epoch;
        }
        Ok(())
    }

    fn fits(&self, slots: &SlotSet) -> Result<(), Refused> {
        if slots.is_empty() {
            return Err(Refused::invalid("no slots are named".to_string(), "give ranges like 0-99,200"));
        }
        slots.within(self.slot_space).map_err(|bad| Refused::invalid(bad.0, "give ranges like 0-99,200"))
    }

    fn group_mut(&mut self, id: GroupId) -> Result<&mut Group, Refused> {
        self.groups.iter_mut().find(|group| group.id == id).ok_or_else(|| no_group(id))
    }

    /// A name and an address that no member has yet.
    fn new_member(&self, id: &str, address: &str) -> Result<(), Refused> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':' | b'@');
        if id.is_empty() || id.len() > 128 || !id.bytes().all(plain) {
            return Err(Refused::invalid(
                format!("'{}' is no member's name", id.escape_debug()),
                "use 1 to 128 letters, digits and -_.:@",
            ));
        }
        if self.server(id).is_some() || self.proxy(id).is_some() {
            return Err(Refused::conflict(format!("there is a member '{id}' already"), "give another name"));
        }
        self.new_address(address)
    }

    fn new_address(&self, address: &str) -> Result<(), Refused> {
        if !is_address(address) {
            return Err(Refused::invalid(
                format!("'{}' is no address", address.escape_debug()),
                "give host:port, or [address]:port for IPv6",
            ));
        }
        let server = self.servers().find(|(_, server)| server.address == address).map(|(_, server)| &server.id);
        let taken = server.or(self.proxies.iter().find(|proxy| proxy.address == address).map(|proxy| &proxy.id));
        match taken {
            Some(id) => Err(Refused::conflict(format!("{address} is the address of '{id}'"), "give another address")),
            None => Ok(()),
        }
    }
}

/// The most groups of a cluster: each of Redis' slots can have one of its own.
pub const MAX_GROUPS: usize = 16_384;
/// The most servers, and the most proxies.
pub const MAX_MEMBERS: usize = 65_536;
/// The highest number a group can have.
const LAST_GROUP: u32 = 999_999;

fn no_group(id: GroupId) -> Refused {
    Refused::missing(format!("there is no group {id}"), "list them with /groups")
}

fn no_server(id: &str) -> Refused {
    Refused::missing(format!("there is no server '{id}'"), "list them with /groups")
}

fn exhausted(what: &str) -> Refused {
    Refused::conflict(format!("all {what} are used up"), "make a new cluster")
}

/// Whether a text is `host:port`.
fn is_address(address: &str) -> bool {
    let Some((host, port)) = address.rsplit_once(':') else { return false };
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let host = inner.map_or(!host.contains(':') && is_host(host), |host| host.parse::<std::net::Ipv6Addr>().is_ok());
    let digits = port.bytes().all(|byte| byte.is_ascii_digit());
    host && digits && port.parse::<u16>().is_ok_and(|port| port > 0)
}

fn is_host(host: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !host.is_empty() && host.len() <= 253 && host.bytes().all(plain)
}
