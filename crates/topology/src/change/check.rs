//! What holds of every record.

use std::collections::BTreeSet;

use super::*;

impl Topology {
    /// Whether the record is one that changes can lead to; the error says what is wrong with it. Called after each change in
    /// debug builds, and on what the coordinator holds.
    pub fn check(&self) -> Result<(), String> {
        self.check_groups()?;
        self.check_members()?;
        self.check_moves()
    }

    fn check_groups(&self) -> Result<(), String> {
        if !self.groups.windows(2).all(|pair| matches!(pair, [one, two] if one.id < two.id)) {
            return Err("groups are out of order".to_string());
        }
        let mut owned = SlotSet::new();
        for group in &self.groups {
            group.slots.within(self.slot_space).map_err(|bad| format!("group {}: {bad}", group.id))?;
            if let Some(slot) = owned.intersection(&group.slots).first() {
                return Err(format!("slot {slot} has two owners, group {} is one", group.id));
            }
            owned = owned.union(&group.slots);
            let primaries = group.servers.iter().filter(|server| server.role == Role::Primary).count();
            if primaries != usize::from(!group.servers.is_empty()) {
                return Err(format!("group {} has {primaries} primaries", group.id));
            }
            if group.servers.is_empty() && !group.slots.is_empty() {
                return Err(format!("group {} owns slots without a server", group.id));
            }
            if group.epoch > self.epoch {
                return Err(format!("group {} is newer than the record", group.id));
            }
        }
        Ok(())
    }

    fn check_members(&self) -> Result<(), String> {
        let (mut ids, mut addresses) = (BTreeSet::new(), BTreeSet::new());
        let servers = self.servers().map(|(_, server)| (&server.id, &server.address));
        for (id, address) in servers.chain(self.proxies.iter().map(|proxy| (&proxy.id, &proxy.address))) {
            if !ids.insert(id) {
                return Err(format!("two members are called '{id}'"));
            }
            if !addresses.insert(address) {
                return Err(format!("two members are at {address}"));
            }
        }
        Ok(())
    }

    fn check_moves(&self) -> Result<(), String> {
        if !self.moves.windows(2).all(|pair| matches!(pair, [one, two] if one.id < two.id)) {
            return Err("moves are out of order".to_string());
        }
        if self.moves.last().is_some_and(|last| last.id >= self.next_move) {
            return Err("the next move's number is taken".to_string());
        }
        let mut moving = SlotSet::new();
        for one in &self.moves {
            if let Some(slot) = moving.intersection(&one.slots).first().filter(|_| one.is_open()) {
                return Err(format!("slot {slot} is in two open moves, {} is one", one.id));
            }
            if one.unsettled && one.stage.is_running() {
                return Err(format!("move {} goes on and has ended", one.id));
            }
            if one.is_open() {
                moving = moving.union(&one.slots);
                let owner = if one.stage == Stage::Committed { one.to } else { one.from };
                if !self.group(owner).is_some_and(|group| one.slots.is_subset(&group.slots)) {
                    return Err(format!("move {} ({}): its slots are not group {owner}'s", one.id, one.stage));
                }
                if self.group(one.from).is_none() || self.group(one.to).is_none() {
                    return Err(format!("move {} is of a group that is gone", one.id));
                }
            }
            let begun = matches!(one.stage, Stage::Copying | Stage::Cutover | Stage::Committed);
            if begun && (one.source_run.is_none() || one.target_run.is_none()) {
                return Err(format!("move {} does not say whose copy it is", one.id));
            }
            if (one.stage == Stage::Committed) && one.committed_epoch.is_none() {
                return Err(format!("move {} does not say when it was committed", one.id));
            }
        }
        Ok(())
    }
}
