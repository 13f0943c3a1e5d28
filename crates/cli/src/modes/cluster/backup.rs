//! `--cluster backup`: a snapshot of each primary, and who had which slots. The cluster is only read.
//!
//! ```text
//! FOLDER/redis-node-HOST-PORT-ID.rdb   a snapshot of each primary
//! FOLDER/nodes.json                    all nodes, as redis-cli writes them
//! ```

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::node::Node;
use super::{Level, check, log};
use crate::modes::replica;
use crate::output::{Exit, Outcome, fail, os_text, text};

/// Saves the primaries into a folder that is there.
pub(super) fn run(nodes: &mut [Node], folder: &[u8]) -> Outcome<()> {
    let found = check::run(nodes, false)?;
    let shown = text(folder);
    let path = Path::new(OsStr::from_bytes(folder));
    let mut table = Vec::new();
    for node in nodes.iter_mut() {
        table.push(json(node, found.errors));
        if node.replicates.is_some() {
            continue;
        }
        log(Level::Info, &format!(">>> Node {} -> Saving RDB...\n", node.place()))?;
        if !node.id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return fail(format_args!("Node {} says an id that is none: '{}'", node.place(), node.id));
        }
        let name = format!("redis-node-{}-{}-{}.rdb", node.host, node.port, node.id);
        replica::fetch(&mut node.session, &path.join(name))?;
    }
    let slash = if folder.ends_with(b"/") { "" } else { "/" };
    log(Level::Info, &format!("Saving cluster configuration to: {shown}{slash}nodes.json\n"))?;
    if let Err(error) = std::fs::write(path.join("nodes.json"), format!("[\n{}\n]", table.join(",\n"))) {
        log(Level::Error, &format!("Could not save nodes to: {shown}{slash}nodes.json: {}\n", os_text(&error)))?;
        log(Level::Good, "[ERR] Failed to back cluster!\n")?;
        return Err(Exit(1));
    }
    if !found.is_good {
        log(
            Level::Warning,
            "*** Cluster seems to have some problems, please be aware of it if you're going to restore this backup.\n",
        )?;
    }
    log(Level::Good, &format!("[OK] Backup created into: {shown}\n"))
}

/// A node in the table. What nodes say about themselves needs no escapes: ids, numbers and addresses.
fn json(node: &Node, errors: usize) -> String {
    let replicates = node.replicates.as_ref().map_or("null".to_string(), |id| format!("\"{id}\""));
    let mut out = format!(
        "  {{\n    \"name\": \"{}\",\n    \"host\": \"{}\",\n    \"port\": {},\n    \"replicate\": {replicates},\n    \
         \"slots\": [{}],\n    \"slots_count\": {},\n    \"flags\": \"{}\",\n    \"current_epoch\": {}",
        node.id,
        node.host,
        node.port,
        node.slot_ranges().replace('-', ","),
        node.slot_count(),
        node.flags.join(","),
        node.epoch
    );
    if errors > 0 {
        out.push_str(&format!(",\n    \"cluster_errors\": {errors}"));
    }
    for (name, slots) in [("migrating", &node.migrating), ("importing", &node.importing)] {
        if !slots.is_empty() {
            let slots: Vec<String> = slots.iter().map(|(slot, other)| format!("\"{slot}\": \"{other}\"")).collect();
            out.push_str(&format!(",\n    \"{name}\": {{{}}}", slots.join(",")));
        }
    }
    out.push_str("\n  }");
    out
}
