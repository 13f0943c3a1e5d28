//! What members are told of the cluster, and the table they look slots up in.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::{Epoch, Group, GroupId, Move, MoveId, Newness, Proxy, Role, Server, Stage, Term, Topology};
use crate::slots::{SlotSet, SlotSpace};

/// The cluster as a member sees it. A member keeps the newest it got, by term, then by epoch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct View {
    /// The cluster's name.
    pub cluster: String,
    /// The leader's term.
    pub term: Term,
    /// The epoch of the record it was made of.
    pub epoch: Epoch,
    /// How keys are hashed.
    #[serde(default)]
    pub slot_space: SlotSpace,
    /// How long a member's lease is, in milliseconds.
    pub lease_ms: u64,
    /// Ascending by number.
    #[serde(default)]
    pub groups: Vec<Group>,
    /// The moves that go on, ascending by number. One that is not here (any more) is decided: its slots are those of the
    /// group they are listed under.
    #[serde(default)]
    pub moves: Vec<ViewMove>,
    /// Ascending by name.
    #[serde(default)]
    pub proxies: Vec<Proxy>,
}

/// A move as members see it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ViewMove {
    /// Its number.
    pub id: MoveId,
    /// The group that owns the slots until stage `committed`.
    pub from: GroupId,
    /// The group that owns them from then on.
    pub to: GroupId,
    /// What moves.
    pub slots: SlotSet,
    /// How far it is.
    pub stage: Stage,
    /// The incarnation of the source that copies. In stage `cutover` a source of another incarnation must not serve the
    /// slots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_run: Option<String>,
    /// The incarnation of the target that receives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_run: Option<String>,
}

impl View {
    /// The view that a record gives to members.
    pub fn of(topology: &Topology) -> View {
        let moves = topology.moves.iter().filter(|one| one.stage.is_running()).map(ViewMove::of).collect();
        View {
            cluster: topology.cluster.clone(),
            term: topology.term,
            epoch: topology.epoch,
            slot_space: topology.slot_space,
            lease_ms: topology.lease_ms,
            groups: topology.groups.clone(),
            moves,
            proxies: topology.proxies.clone(),
        }
    }

    /// How new it is.
    pub const fn newness(&self) -> Newness {
        Newness { term: self.term, epoch: self.epoch }
    }

    /// Whether it is to take the place of `kept`.
    pub fn replaces(&self, kept: Option<&View>) -> bool {
        kept.is_none_or(|kept| self.newness() > kept.newness())
    }

    /// The group of that number.
    pub fn group(&self, id: GroupId) -> Option<&Group> {
        self.groups.iter().find(|group| group.id == id)
    }

    /// The server of that name, and its group.
    pub fn server(&self, id: &str) -> Option<(&Group, &Server)> {
        let servers = self.groups.iter().flat_map(|group| group.servers.iter().map(move |server| (group, server)));
        servers.into_iter().find(|(_, server)| server.id == id)
    }

    /// The group and role of a member that is a server; none when it is not (any more) one.
    pub fn role_of(&self, member: &str) -> Option<(GroupId, Role)> {
        self.server(member).map(|(group, server)| (group.id, server.role))
    }

    /// The move that goes on with a slot.
    pub fn moving(&self, slot: u16) -> Option<&ViewMove> {
        self.moves.iter().find(|one| one.slots.contains(slot))
    }

    /// The table of who owns which slot.
    pub fn slot_table(&self) -> SlotTable {
        SlotTable::of(self.slot_space, &self.groups)
    }
}

impl ViewMove {
    fn of(one: &Move) -> ViewMove {
        ViewMove {
            id: one.id,
            from: one.from,
            to: one.to,
            slots: one.slots.clone(),
            stage: one.stage,
            source_run: one.source_run.clone(),
            target_run: one.target_run.clone(),
        }
    }
}

/// Who owns which slot: two bytes a slot, shared by all who hold a clone. Hot path: a look-up is one indexed read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlotTable {
    /// For each slot 0, or one more than the owner's place in `groups`.
    places: Arc<[u16]>,
    groups: Arc<[GroupId]>,
}

impl SlotTable {
    /// The table of these groups' slots. Slots beyond the space are left out.
    pub fn of(space: SlotSpace, groups: &[Group]) -> SlotTable {
        let mut places = vec![0u16; usize::from(space.slots())];
        for (group, place) in groups.iter().zip(1u16..) {
            for slot in group.slots.iter() {
                if let Some(entry) = places.get_mut(usize::from(slot)) {
                    *entry = place;
                }
            }
        }
        SlotTable { places: places.into(), groups: groups.iter().map(|group| group.id).collect() }
    }

    /// How many slots there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there is no slot in the table: never, for a space has slots.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The owner's place in the list of groups that the table was made of.
    #[inline]
    pub fn place(&self, slot: u16) -> Option<usize> {
        self.places.get(usize::from(slot)).and_then(|&place| usize::from(place).checked_sub(1))
    }

    /// The owner of a slot.
    #[inline]
    pub fn group(&self, slot: u16) -> Option<GroupId> {
        self.place(slot).and_then(|place| self.groups.get(place)).copied()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;

    const TEXT: &str = r#"{"cluster":"c","term":2,"epoch":9,"slot_space":"redis","lease_ms":3000,"groups":[{"id":1,"epoch":3,
        "servers":[{"id":"a","address":"h:1","role":"primary","zone":"z"},{"id":"b","address":"h:2","role":"replica"}],
        "slots":[[0,5460]]},{"id":7,"epoch":8,"slots":[[16383,16383]]}],
        "moves":[{"id":7,"from":1,"to":7,"slots":[[5,9]],"stage":"cutover","source_run":"ab"}],
        "proxies":[{"id":"p","address":"h:3"}]}"#;

    #[test]
    fn a_view_is_read_as_agreed() {
        let view: View = serde_json::from_str(TEXT).unwrap();
        assert_eq!(view.role_of("a"), Some((GroupId(1), Role::Primary)));
        assert_eq!(view.role_of("b"), Some((GroupId(1), Role::Replica)));
        assert_eq!(view.role_of("p"), None);
        assert_eq!(view.moving(9).map(|one| one.stage), Some(Stage::Cutover));
        assert_eq!(view.moving(10), None);
        assert_eq!(serde_json::from_str::<View>(&serde_json::to_string(&view).unwrap()).unwrap(), view);
        let compact: String = TEXT.split_whitespace().collect();
        let ours = serde_json::to_value(&view).unwrap();
        let given: serde_json::Value = serde_json::from_str(&compact).unwrap();
        assert_eq!(ours["groups"][0], given["groups"][0]);
        assert_eq!(ours["moves"], given["moves"]);
        assert_eq!(ours["proxies"], given["proxies"]);
    }

    #[test]
    fn slots_are_looked_up() {
        let view: View = serde_json::from_str(TEXT).unwrap();
        let table = view.slot_table();
        assert_eq!(table.len(), 16384);
        assert_eq!(table.group(0), Some(GroupId(1)));
        assert_eq!(table.group(5461), None);
        assert_eq!(table.group(16383), Some(GroupId(7)));
        assert_eq!(table.place(16383), Some(1));
        assert_eq!(table.group(16384), None);
    }

    #[test]
    fn newer_is_by_term_then_epoch() {
        let view: View = serde_json::from_str(TEXT).unwrap();
        let with = |term, epoch| View { term: Term(term), epoch: Epoch(epoch), ..view.clone() };
        assert!(view.replaces(None));
        assert!(!view.replaces(Some(&view)));
        assert!(with(2, 10).replaces(Some(&view)));
        assert!(with(3, 1).replaces(Some(&view)));
        assert!(!with(1, 99).replaces(Some(&view)));
    }
}
