//! Answers of the manager for people and for pipes.

use crate::clock::instant;
use crate::shapes::{Event, Group, Move, Plan, Proxy, Server, Settings, SlotRange, Status, Topology, ranges_text};

use super::command::Out;
use super::table::Table;

/// A number of bytes, short.
pub(super) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (bytes as f64, 0);
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let name = UNITS.get(unit).copied().unwrap_or_default();
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.1} {name}") }
}

/// A span, short.
pub(super) fn span(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..10 => format!("{:.1}s", ms as f64 / 1000.0),
        10..120 => format!("{seconds}s"),
        120..7200 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        7200..172_800 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d", seconds / 86_400),
    }
}

fn or_dash<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "-".into(), |value| value.to_string())
}

fn seen(status: &Status) -> String {
    match status.last_seen_ms {
        Some(ms) if status.state == "up" && ms < 5_000 => "up".into(),
        Some(ms) => format!("{} {}", status.state, span(ms)),
        None => status.state.clone(),
    }
}

/// Ranges, cut where a table would get too wide.
fn short_ranges(ranges: &[[u16; 2]]) -> String {
    let text = ranges_text(ranges);
    if text.len() <= 40 {
        return text;
    }
    let shown: usize = ranges.iter().take(3).count();
    format!("{},… ({} ranges)", ranges_text(ranges.get(..shown).unwrap_or_default()), ranges.len())
}

fn ranges_cell(ranges: &[[u16; 2]], out: &Out) -> String {
    if out.is_terminal { short_ranges(ranges) } else { ranges_text(ranges) }
}

pub(super) fn topology(topology: &Topology, out: &mut Out) {
    if out.is_terminal {
        let leader = topology.leader.as_deref().unwrap_or("none");
        out.text.push_str(&format!(
            "cluster {}   epoch {}   term {}   leader {leader}   {} {} slots",
            topology.cluster, topology.epoch, topology.term, topology.slot_count, topology.slot_space
        ));
        let free = crate::shapes::count_slots(&topology.unassigned);
        if free > 0 {
            out.text.push_str(&format!(", {free} of no group (oxidis admin slots assign all)"));
        }
        out.text.push_str("\n\n");
    }
    let mut table = Table::new(&["GROUP", "SLOTS", "SERVER", "ROLE", "STATE", "KEYS", "MEMORY", "OPS/S", "CLIENTS"]);
    for group in &topology.groups {
        for (index, server) in group.servers.iter().enumerate() {
            let id = if index == 0 || !out.is_terminal { group.id.to_string() } else { " ".into() };
            let slots = if index == 0 || !out.is_terminal { group.slot_count.to_string() } else { " ".into() };
            table.row(
                [id, slots, server.address.clone(), server.role.clone(), seen(&server.status)]
                    .into_iter()
                    .chain(facts(&server.status)),
            );
        }
        if group.servers.is_empty() {
            let none = || String::new();
            table.row([
                group.id.to_string(),
                group.slot_count.to_string(),
                "no server".into(),
                none(),
                none(),
                none(),
                none(),
                none(),
                none(),
            ]);
        }
    }
    if table.is_empty() && out.is_terminal {
        out.text.push_str("no groups yet (oxidis admin group add)\n");
    } else {
        table.print(out);
    }
    if !topology.proxies.is_empty() {
        if out.is_terminal {
            out.text.push('\n');
        }
        proxies(&topology.proxies, out);
    }
    if !topology.moves.is_empty() {
        if out.is_terminal {
            out.text.push('\n');
        }
        moves(&topology.moves, out);
    }
}

fn facts(status: &Status) -> [String; 4] {
    [
        or_dash(status.number("keys")),
        or_dash(status.number("used_memory").map(size)),
        or_dash(status.number("ops")),
        or_dash(status.number("clients")),
    ]
}

pub(super) fn members(topology: &Topology, out: &mut Out) {
    let mut table = Table::new(&["MEMBER", "KIND", "ADDRESS", "STATE", "EPOCH", "OFFSET", "LINK", "RUN"]);
    let mut line = |id: &str, kind: &str, address: &str, status: &Status| {
        table.row([
            id.to_owned(),
            kind.to_owned(),
            address.to_owned(),
            seen(status),
            status.epoch.to_string(),
            or_dash(status.number("offset")),
            or_dash(status.text("master_link")),
            status.run.chars().take(8).collect(),
        ]);
    };
    for server in topology.groups.iter().flat_map(|group| &group.servers) {
        line(&server.id, &server.role, &server.address, &server.status);
    }
    for proxy in &topology.proxies {
        line(&proxy.id, "proxy", &proxy.address, &proxy.status);
    }
    table.print(out);
}

pub(super) fn groups(groups: &[Group], out: &mut Out) {
    let mut table = Table::new(&["GROUP", "SLOTS", "RANGES", "PRIMARY", "REPLICAS"]);
    for group in groups {
        let primary = group.servers.iter().find(|server| server.role == "primary");
        let replicas: Vec<&str> = group
            .servers
            .iter()
            .filter(|server| server.role != "primary")
            .map(|server| server.address.as_str())
            .collect();
        table.row([
            group.id.to_string(),
            group.slot_count.to_string(),
            ranges_cell(&group.slots, out),
            or_dash(primary.map(|server| server.address.clone())),
            replicas.join(" "),
        ]);
    }
    table.print(out);
}

pub(super) fn servers(servers: &[Server], out: &mut Out) {
    let heads = ["GROUP", "SERVER", "ROLE", "ZONE", "STATE", "KEYS", "MEMORY", "OPS/S", "CLIENTS"];
    let mut table = Table::new(&heads);
    for server in servers {
        let head = [
            server.group.to_string(),
            server.address.clone(),
            server.role.clone(),
            server.zone.clone(),
            seen(&server.status),
        ];
        table.row(head.into_iter().chain(facts(&server.status)));
    }
    table.print(out);
}

pub(super) fn proxies(proxies: &[Proxy], out: &mut Out) {
    let mut table = Table::new(&["PROXY", "ADDRESS", "ZONE", "STATE", "OPS/S", "CLIENTS"]);
    for proxy in proxies {
        table.row([
            proxy.id.clone(),
            proxy.address.clone(),
            proxy.zone.clone(),
            seen(&proxy.status),
            or_dash(proxy.status.number("ops")),
            or_dash(proxy.status.number("clients")),
        ]);
    }
    table.print(out);
}

pub(super) fn slots(ranges: &[SlotRange], out: &mut Out) {
    let mut table = Table::new(&["SLOTS", "COUNT", "GROUP", "MOVING TO"]);
    for range in ranges {
        let moving = range.moving_to.map(|to| format!("{to} (move {})", or_dash(range.move_id)));
        table.row([
            ranges_text(&[[range.from, range.to]]),
            (u32::from(range.to) + 1).saturating_sub(u32::from(range.from)).to_string(),
            or_dash(range.group),
            or_dash(moving),
        ]);
    }
    table.print(out);
}

/// How far a move is, in per cent.
pub(super) fn percent(one: &Move) -> u64 {
    match one.stage.as_str() {
        "committed" | "done" => 100,
        _ if one.total_keys == 0 => 0,
        // The rest is done when the target owns the slots.
        _ => (one.keys.saturating_mul(100) / one.total_keys).min(99),
    }
}

/// The stage, and what the source says.
pub(super) fn stage(one: &Move) -> String {
    let state = if one.is_paused { "paused" } else { one.state.as_str() };
    let says_more = !state.is_empty() && state != one.stage && !one.is_over();
    if says_more { format!("{} ({state})", one.stage) } else { one.stage.clone() }
}

pub(super) fn moves(moves: &[Move], out: &mut Out) {
    let mut table =
        Table::new(&["MOVE", "FROM", "TO", "SLOTS", "COUNT", "STAGE", "DONE", "SENT", "RATE", "ETA", "ERROR"]);
    for one in moves {
        table.row([
            one.id.to_string(),
            one.from.to_string(),
            one.to.to_string(),
            ranges_cell(&one.slots, out),
            one.slot_count.to_string(),
            stage(one),
            format!("{} %", percent(one)),
            size(one.bytes),
            format!("{}/s", size(one.rate)),
            or_dash(one.eta_ms.map(span)),
            one.error.clone(),
        ]);
    }
    if table.is_empty() && out.is_terminal {
        out.text.push_str("no moves\n");
        return;
    }
    table.print(out);
}

pub(super) fn begun(moves: &[Move], out: &mut Out) {
    for one in moves {
        out.text.push_str(&format!(
            "move {}: {} slots from group {} to group {}\n",
            one.id, one.slot_count, one.from, one.to
        ));
    }
}

pub(super) fn one_move(one: &Move, out: &mut Out) {
    let lines = [
        ("move", one.id.to_string()),
        ("from group", one.from.to_string()),
        ("to group", one.to.to_string()),
        ("slots", format!("{} ({})", ranges_text(&one.slots), one.slot_count)),
        ("stage", stage(one)),
        ("keys", format!("{} of {}", one.keys, one.total_keys)),
        ("sent", size(one.bytes)),
        ("lag", size(one.lag_bytes)),
        ("rate", format!("{}/s", size(one.rate))),
        ("limit", one.rate_limit.map_or_else(|| "none".into(), |limit| format!("{}/s", size(limit)))),
        ("left", or_dash(one.eta_ms.map(span))),
        ("begun", or_dash((one.created_ms > 0).then(|| instant(one.created_ms)))),
        ("ended", or_dash(one.ended_ms.map(instant))),
        ("attempts", one.attempts.to_string()),
        ("by", one.by.clone()),
        ("error", one.error.clone()),
    ];
    for (name, value) in lines {
        let value: String = value.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect();
        if out.is_terminal {
            out.text.push_str(&format!("{name:<12}{value}\n"));
        } else {
            out.text.push_str(&format!("{name}\t{value}\n"));
        }
    }
}

pub(super) fn plan(plan: &Plan, out: &mut Out) {
    if plan.moves.is_empty() {
        out.text.push_str("nothing to move: it is even already\n");
    }
    let mut table = Table::new(&["FROM", "TO", "SLOTS", "COUNT", "KEYS", "BYTES"]);
    for line in &plan.moves {
        table.row([
            line.from.to_string(),
            line.to.to_string(),
            ranges_cell(&line.slots, out),
            line.slot_count.to_string(),
            line.keys.to_string(),
            size(line.bytes),
        ]);
    }
    if !table.is_empty() {
        table.print(out);
    }
    if out.is_terminal {
        let mut table = Table::new(&["GROUP", "SLOTS NOW", "THEN", "MEMORY NOW", "THEN", "OPS/S NOW", "THEN"]);
        for group in &plan.groups {
            let (before, after) = (group.before, group.after);
            table.row([
                group.id.to_string(),
                before.slots.to_string(),
                after.slots.to_string(),
                size(before.bytes),
                size(after.bytes),
                before.ops.to_string(),
                after.ops.to_string(),
            ]);
        }
        out.text.push('\n');
        table.print(out);
        match (plan.dry_run, plan.begun.len()) {
            (true, _) if !plan.moves.is_empty() => {
                out.text.push_str("\nNothing was begun; the same without --dry-run does it.\n");
            }
            (false, count) if count > 0 => {
                out.text.push_str(&format!("\n{count} moves were begun; oxidis admin moves --watch shows them.\n"));
            }
            _ => {}
        }
    }
    for note in &plan.notes {
        eprintln!("note: {note}");
    }
}

pub(super) fn events(events: &[Event], out: &mut Out) {
    let mut table = Table::new(&["TIME", "WHO", "WHAT", "OBJECT", "RESULT", "DETAIL"]);
    for event in events {
        table.row([
            instant(event.at_ms),
            event.who.clone(),
            event.action.clone(),
            event.object.clone(),
            event.result.clone(),
            event.detail.clone(),
        ]);
    }
    table.print(out);
}

pub(super) fn settings(settings: &Settings, out: &mut Out) {
    let mut table = Table::new(&["SETTING", "VALUE"]);
    table.row(["moves-per-group".into(), or_dash(settings.moves_per_group)]);
    let rate = settings.move_rate.map(|rate| if rate == 0 { "none".into() } else { format!("{}/s", size(rate)) });
    table.row(["move-rate".into(), or_dash(rate)]);
    table.row(["freeze-ms".into(), or_dash(settings.freeze_ms)]);
    table.print(out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(size(512), "512 B");
        assert_eq!(size(1536), "1.5 KiB");
        assert_eq!(size(3 << 30), "3.0 GiB");
        assert_eq!(span(1_500), "1.5s");
        assert_eq!(span(90_000), "90s");
        assert_eq!(span(125_000), "2m05s");
        assert_eq!(span(7_260_000), "2h01m");
    }

    #[test]
    fn a_topology_fits_pipes() {
        let mut topology_now = Topology::default();
        let server = Server { address: "h:1".into(), role: "primary".into(), ..Server::default() };
        topology_now.groups.push(Group { id: 1, slot_count: 16384, servers: vec![server], ..Group::default() });
        topology_now.groups.push(Group { id: 2, ..Group::default() });
        let mut out = Out { text: String::new(), is_terminal: false };
        topology(&topology_now, &mut out);
        assert_eq!(out.text, "1\t16384\th:1\tprimary\t-\t-\t-\t-\t-\n2\t0\tno server\t-\t-\t-\t-\t-\t-\n");
    }

    #[test]
    fn a_move_is_never_quite_done_before_it_is() {
        let mut one = Move { stage: "copying".into(), keys: 10, total_keys: 10, ..Move::default() };
        assert_eq!(percent(&one), 99);
        one.stage = "done".into();
        assert_eq!(percent(&one), 100);
        one = Move { stage: "copying".into(), state: "following".into(), ..Move::default() };
        assert_eq!((percent(&one), stage(&one)), (0, "copying (following)".into()));
    }
}
