//! Episodes for a server under test that is a proxy before several servers.
//!
//! All keys get one hash tag, so that any command may name several. Left out is what a proxy answers for itself (CLIENT,
//! CONFIG, …) or does not pass (SWAPDB, WAIT, DEBUG), and, within transactions, what is not of one server.

use super::generator::Step;

/// The tag that all keys get.
const TAG: &[u8] = b"{t}";
/// Beginnings of the names that the vocabulary gives keys, each followed by a number or a pattern.
const NAMES: [&str; 10] = ["keys", "strings", "lists", "hashes", "sets", "zsets", "geos", "hlls", "lex", "w_"];
/// Commands that are not compared.
const OWN: [&str; 12] = [
    "CLIENT", "CONFIG", "DEBUG", "INFO", "LATENCY", "MEMORY", "SLOWLOG", "SWAPDB", "WAIT", "ACL", "AUTH", "SHUTDOWN",
];
/// Commands that a proxy does not take within MULTI.
const NOT_QUEUED: [&str; 14] = [
    "COMMAND", "DBSIZE", "FLUSHALL", "FLUSHDB", "FUNCTION", "HELLO", "KEYS", "LOLWUT", "PUBSUB", "RANDOMKEY", "ROLE", "SCAN",
    "SCRIPT", "SELECT",
];

/// The steps that make sense, with their keys in one slot.
pub(super) fn fit(steps: Vec<Step>) -> Vec<Step> {
    let mut in_multi = [false; 8];
    let mut fitted = Vec::new();
    for mut step in steps {
        let name = step.args.first().map(|name| String::from_utf8_lossy(name).to_ascii_uppercase()).unwrap_or_default();
        let subcommand = step.args.get(1).map(|name| name.to_ascii_uppercase()).unwrap_or_default();
        let is_own = OWN.contains(&name.as_str()) && !(name == "MEMORY" && subcommand == b"USAGE");
        let queues = in_multi.get(step.connection).copied().unwrap_or(false);
        if is_own || queues && (NOT_QUEUED.contains(&name.as_str()) || subcommand == b"HELP") {
            continue;
        }
        if let Some(queues) = in_multi.get_mut(step.connection) {
            *queues = match name.as_str() {
                "MULTI" => true,
                "EXEC" | "DISCARD" | "RESET" => false,
                _ => *queues,
            };
        }
        step.args.iter_mut().skip(1).for_each(tag);
        fitted.push(step);
    }
    fitted
}

fn tag(arg: &mut Vec<u8>) {
    let mark = if arg.starts_with(super::vocabulary::DUMP_MARK) { super::vocabulary::DUMP_MARK.len() } else { 0 };
    let Some(name) = arg.get(mark..) else { return };
    let is_numbered = NAMES.iter().any(|known| {
        let rest = name.strip_prefix(known.as_bytes());
        rest.is_some_and(|rest| rest.first().is_some_and(|first| first.is_ascii_digit() || *first == b'*'))
    });
    if is_numbered || matches!(name, b"none" | b"{tag}a" | b"\x00k\r\n\xff") {
        arg.splice(mark..mark, TAG.iter().copied());
    }
}
