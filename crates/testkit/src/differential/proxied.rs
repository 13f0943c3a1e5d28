//! Episodes for a server under test that is a proxy.
//!
//! Left out is what a proxy answers for itself (CLIENT, CONFIG, …) or does not pass (SWAPDB, WAIT, DEBUG), and, within
//! transactions, what is not of one server.

use super::generator::Step;

/// Commands that are not compared.
const OWN: [&str; 12] =
    ["CLIENT", "CONFIG", "DEBUG", "INFO", "LATENCY", "MEMORY", "SLOWLOG", "SWAPDB", "WAIT", "ACL", "AUTH", "SHUTDOWN"];
/// Commands that a proxy does not take within MULTI.
const NOT_QUEUED: [&str; 14] = [
    "COMMAND",
    "DBSIZE",
    "FLUSHALL",
    "FLUSHDB",
    "FUNCTION",
    "HELLO",
    "KEYS",
    "LOLWUT",
    "PUBSUB",
    "RANDOMKEY",
    "ROLE",
    "SCAN",
    "SCRIPT",
    "SELECT",
];

/// The steps that make sense.
pub(super) fn fit(steps: Vec<Step>) -> Vec<Step> {
    let mut in_multi = [false; 8];
    let mut fitted = Vec::new();
    for step in steps {
        let name = step.args.first().map(|name| String::from_utf8_lossy(name).to_ascii_uppercase()).unwrap_or_default();
        let subcommand = step.args.get(1).map(|name| name.to_ascii_uppercase()).unwrap_or_default();
        let is_own = OWN.contains(&name.as_str()) && !(name == "MEMORY" && subcommand == b"USAGE");
        let queues = in_multi.get(step.connection).copied().unwrap_or(false);
        // Messages come by another connection of the proxy's, so not at a known place among the replies.
        let listens = super::rules::subscribes(&step.args);
        if is_own || listens || queues && (NOT_QUEUED.contains(&name.as_str()) || subcommand == b"HELP") {
            continue;
        }
        if let Some(queues) = in_multi.get_mut(step.connection) {
            *queues = match name.as_str() {
                "MULTI" => true,
                "EXEC" | "DISCARD" | "RESET" => false,
                _ => *queues,
            };
        }
        fitted.push(step);
    }
    fitted
}
