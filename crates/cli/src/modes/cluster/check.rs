//! `--cluster check`: whether the nodes agree, no slot is between two nodes, and each slot has a node.

use resp::Value;

use super::node::Node;
use super::{Level, SLOTS, log};
use crate::output::{Outcome, print_line};

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Findings {
    /// Nothing is wrong.
    pub(super) is_good: bool,
    /// Complaints, as redis-cli counts them in a backup.
    pub(super) errors: usize,
}

/// Shows what is wrong.
pub(super) fn run(nodes: &mut [Node], search_multiple_owners: bool) -> Outcome<Findings> {
    let first = nodes.first().map(Node::place).unwrap_or_default();
    log(Level::Info, &format!(">>> Performing Cluster Check (using node {first})\n"))?;
    show(nodes)?;
    let agrees = agree(nodes)?;
    let open = open_slots(nodes)?;
    let is_covered = all_covered(nodes)?;
    let errors = usize::from(!agrees) + open + usize::from(!is_covered);
    // Redis: keys without a slot of their own are told, but not counted.
    let is_good = !search_multiple_owners || single_owners(nodes)?;
    Ok(Findings { is_good: is_good && errors == 0, errors })
}

fn show(nodes: &[Node]) -> Outcome<()> {
    for node in nodes {
        let role = if node.is_primary() { 'M' } else { 'S' };
        let replicas = nodes.iter().filter(|other| other.replicates.as_deref() == Some(&node.id)).count();
        let last = match &node.replicates {
            Some(primary) => format!("\n   replicates {primary}"),
            None if replicas > 0 => format!("\n   {replicas} additional replica(s)"),
            None => String::new(),
        };
        print_line(format_args!(
            "{role}: {} {}\n   slots:{} ({} slots) {}{last}",
            node.id,
            node.place(),
            node.slot_ranges(),
            node.slot_count(),
            node.flags.join(",")
        ))?;
    }
    Ok(())
}

fn agree(nodes: &mut [Node]) -> Outcome<bool> {
    let mut views = Vec::new();
    for node in nodes {
        views.push(node.view()?);
    }
    let agree = views.windows(2).all(|pair| pair.first() == pair.last());
    if agree {
        log(Level::Good, "[OK] All nodes agree about slots configuration.\n")?;
    } else {
        log(Level::Error, "[ERR] Nodes don't agree about configuration!\n")?;
    }
    Ok(agree)
}

/// The number of nodes that give slots away, and of those that take some.
fn open_slots(nodes: &[Node]) -> Outcome<usize> {
    log(Level::Info, ">>> Check for open slots...\n")?;
    let mut open: Vec<&str> = Vec::new();
    let mut complaints = 0;
    for node in nodes {
        for (slots, state) in [(&node.migrating, "migrating"), (&node.importing, "importing")] {
            if slots.is_empty() {
                continue;
            }
            complaints += 1;
            let place = node.place();
            let list = slots.iter().map(|(slot, _)| slot.as_str()).collect::<Vec<_>>().join(",");
            log(Level::Error, &format!("[WARNING] Node {place} has slots in {state} state {list}.\n"))?;
            for (slot, _) in slots {
                if !open.contains(&slot.as_str()) {
                    open.push(slot);
                }
            }
        }
    }
    if !open.is_empty() {
        log(Level::Error, &format!("[WARNING] The following slots are open: {}.\n", open.join(",")))?;
    }
    Ok(complaints)
}

fn all_covered(nodes: &[Node]) -> Outcome<bool> {
    log(Level::Info, ">>> Check slots coverage...\n")?;
    let covered = (0..SLOTS).all(|slot| nodes.iter().any(|node| node.slots.get(slot) == Some(&true)));
    if covered {
        log(Level::Good, &format!("[OK] All {SLOTS} slots covered.\n"))?;
    } else {
        // Redis: with an empty line behind it.
        log(Level::Error, &format!("[ERR] Not all {SLOTS} slots are covered by nodes.\n\n"))?;
    }
    Ok(covered)
}

/// A primary that has keys of a slot counts as an owner too.
fn single_owners(nodes: &mut [Node]) -> Outcome<bool> {
    log(Level::Info, ">>> Check for multiple slot owners...\n")?;
    let mut owners: Vec<Vec<String>> = vec![Vec::new(); SLOTS];
    for node in nodes.iter_mut().filter(|node| node.is_primary()) {
        let place = node.place();
        let calls: Vec<Vec<Vec<u8>>> = (0..SLOTS)
            .map(|slot| vec![b"CLUSTER".to_vec(), b"COUNTKEYSINSLOT".to_vec(), slot.to_string().into_bytes()])
            .collect();
        let counts = node.session.call_many(&calls)?;
        for ((owners, has), count) in owners.iter_mut().zip(&node.slots).zip(counts) {
            if *has || matches!(count, Value::Int(1..)) {
                owners.push(place.clone());
            }
        }
    }
    let mut good = true;
    for (slot, owners) in owners.iter().enumerate().filter(|(_, owners)| owners.len() > 1) {
        good = false;
        let list: String = owners.iter().map(|place| format!("    {place}\n")).collect();
        log(Level::Error, &format!("[WARNING] Slot {slot} has {} owners:\n{list}", owners.len()))?;
    }
    if good {
        log(Level::Good, "[OK] No multiple owners found.\n")?;
    }
    Ok(good)
}
