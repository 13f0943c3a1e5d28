//! `--cluster`: the parts that only read. Those that change a cluster are refused with a plain message.

use crate::format::{Format, Style, render_verbatim};
use crate::interactive::has_colour;
use crate::options::{ClusterScope, stdout_is_terminal};
use crate::output::{Exit, Outcome, fail, print, print_line, text};
use crate::session::Session;

mod backup;
mod check;
mod node;
pub(crate) mod ranges;

use node::{Node, load};

/// Slots of a cluster.
pub(super) const SLOTS: usize = 16384;

/// Runs a subcommand of `--cluster`.
pub(super) fn run(session: &mut Session, words: &[Vec<u8>]) -> Outcome<()> {
    let name = words.first().map(|word| text(word).into_owned()).unwrap_or_default();
    let rest = words.get(1..).unwrap_or_default();
    let least = match name.as_str() {
        "help" => 0,
        "check" | "info" => 1,
        "call" | "backup" => 2,
        "create" | "fix" | "reshard" | "rebalance" | "add-node" | "del-node" | "set-timeout" | "import" => {
            return fail(format_args!(
                "--cluster {name} is not available in this version yet: it changes the cluster. Nothing was done. What \
                 only reads is there: check, info, call and backup."
            ));
        }
        _ => return fail(format_args!("Unknown --cluster subcommand")),
    };
    if rest.len() < least || (matches!(name.as_str(), "help" | "backup") && rest.len() > least) {
        return fail(format_args!("[ERR] Wrong number of arguments for specified --cluster sub command"));
    }
    match name.as_str() {
        "help" => print(HELP),
        "call" => call(session, rest),
        "backup" => {
            let (place, folder) = rest.split_at(1);
            let mut nodes = load_from(session, place)?;
            backup::run(&mut nodes, folder.first().map_or(b"", Vec::as_slice))
        }
        _ => {
            let mut nodes = load_from(session, rest)?;
            show_info(&mut nodes)?;
            if name == "info" || check::run(&mut nodes, session.options.search_multiple_owners)?.is_good {
                Ok(())
            } else {
                Err(Exit(1))
            }
        }
    }
}

/// The nodes of the cluster that `host:port`, or `host port`, belongs to.
fn load_from(session: &Session, words: &[Vec<u8>]) -> Outcome<Vec<Node>> {
    let place = match words {
        [place] => text(place).rsplit_once(':').map(|(host, port)| (host.to_string(), port.to_string())),
        [host, port, ..] => Some((text(host).into_owned(), text(port).into_owned())),
        [] => None,
    };
    match place.and_then(|(host, port)| Some((host, port.parse().ok().filter(|port| *port != 0)?))) {
        Some((host, port)) => load(&session.options, &host, port),
        None => fail(format_args!(
            "[ERR] Invalid arguments: you need to pass either a valid address (ie. 120.0.0.1:7000) or space separated \
             IP and port (ie. 120.0.0.1 7000)"
        )),
    }
}

/// Keys, slots and replicas of each primary, then the sums.
fn show_info(nodes: &mut [Node]) -> Outcome<()> {
    let replicas_of: Vec<_> = nodes.iter().filter_map(|node| node.replicates.clone()).collect();
    let (mut primaries, mut all_keys) = (0_u32, 0_i64);
    for node in nodes.iter_mut().filter(|node| node.is_primary()) {
        let keys = match node.session.call(&["DBSIZE"])? {
            resp::Value::Int(keys) => keys,
            other => {
                let reason = text(other.as_bytes().unwrap_or_default()).into_owned();
                return log(Level::Error, &format!("Node {} replied with error:\n{reason}\n", node.place()));
            }
        };
        let replicas = replicas_of.iter().filter(|id| **id == node.id).count();
        print_line(format_args!(
            "{} ({}...) -> {keys} keys | {} slots | {replicas} slaves.",
            node.place(),
            node.id.get(..8).unwrap_or(&node.id),
            node.slot_count()
        ))?;
        primaries += 1;
        all_keys = all_keys.saturating_add(keys);
    }
    log(Level::Good, &format!("[OK] {all_keys} keys in {primaries} masters.\n"))?;
    #[allow(clippy::cast_precision_loss)] // Shown with two digits.
    let mean = all_keys as f64 / SLOTS as f64;
    print_line(format_args!("{mean:.2} keys per slot on average."))
}

/// Runs a command on all nodes and shows the replies raw.
fn call(session: &Session, words: &[Vec<u8>]) -> Outcome<()> {
    let (place, command) = words.split_at(1);
    let mut nodes = load_from(session, place)?;
    log(Level::Info, ">>> Calling")?;
    let shown: String = command.iter().map(|word| format!(" {}", text(word))).collect();
    print(format!("{shown}\n"))?;
    let style = Style {
        format: Format::Raw,
        element_delimiter: session.options.style.element_delimiter.clone(),
        reply_delimiter: Vec::new(),
        decoder: Default::default(),
    };
    for node in &mut nodes {
        let wanted = match session.options.cluster_scope {
            ClusterScope::All => true,
            ClusterScope::Primaries => node.replicates.is_none(),
            ClusterScope::Replicas => node.replicates.is_some(),
        };
        if !wanted {
            continue;
        }
        let place = node.place();
        match node.session.connection().and_then(|connection| connection.call(command)) {
            Ok(reply) => {
                let mut line = format!("{place}: ").into_bytes();
                line.extend(render_verbatim(&reply, &style));
                line.push(b'\n');
                print(line)?;
            }
            Err(_) => print_line(format_args!("{place}: Failed!"))?,
        }
    }
    Ok(())
}

/// How a line of a report is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Info,
    Warning,
    Error,
    Good,
}

/// Prints a part of a report, in colour on a terminal.
fn log(level: Level, line: &str) -> Outcome<()> {
    if !(stdout_is_terminal() && has_colour()) {
        return print(line);
    }
    let colour = match level {
        Level::Info => "29;1m",
        Level::Warning => "33;1m",
        Level::Error => "31;1m",
        Level::Good => "32;1m",
    };
    print(format!("\x1b[{colour}{line}\x1b[0m"))
}

/// The hash slot of a key: CRC16 of the part between the first `{` and the next `}`, or of the whole key.
pub(crate) fn key_slot(key: &[u8]) -> u16 {
    let tag = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let rest = key.get(open + 1..)?;
        let length = rest.iter().position(|byte| *byte == b'}')?;
        rest.get(..length).filter(|tag| !tag.is_empty())
    });
    crc16(tag.unwrap_or(key)) & 0x3fff
}

/// CRC16 of the XMODEM protocol.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(
            crc ^ (u16::from(*byte) << 8),
            |crc, _| {
                if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 }
            },
        )
    })
}

const HELP: &str = "Cluster Manager Commands:
  check          <host:port> or <host> <port> - separated by either colon or space
                 --cluster-search-multiple-owners
  info           <host:port> or <host> <port> - separated by either colon or space
  call           host:port command arg arg .. arg
                 --cluster-only-masters
                 --cluster-only-replicas
  backup         host:port backup_directory
  help           

For check, info, call and backup you can specify the host and port of any working node in the cluster.
The commands that change a cluster (create, fix, reshard, rebalance, add-node, del-node, set-timeout, import) are not
available in this version yet.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_of_keys() {
        // Values of CLUSTER KEYSLOT.
        for (key, slot) in [("foo", 12182), ("{foo}bar", 12182), ("foo{}bar", 14292), ("", 0), ("123456789", 12739)] {
            assert_eq!(key_slot(key.as_bytes()), slot, "{key}");
        }
    }
}
