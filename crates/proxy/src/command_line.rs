//! What `oxidis proxy` takes, as a table for help, manual page and completion. Its options are its directives.

use std::borrow::Cow;

use options::{Operands, Row, Rules, Section, Tool, Values, row, section};
use server::config::{Config as ServerConfig, Directive, Kind};

use crate::config::{Config, OWN, Own, SHARED};

/// The proxy as a tool.
#[must_use]
pub fn tool() -> Tool {
    let own = OWN.iter().map(own_row).collect();
    let shared = SHARED.iter().filter_map(|name| server::config::find(name.as_bytes()));
    let shared = shared.map(|named| shared_row(named.directive)).collect();
    Tool {
        name: "proxy",
        summary: "lets plain clients use many servers as one",
        usage: &["PROGRAM [CONFIG-FILE] [--DIRECTIVE VALUE ...]"],
        about: "Takes connections of ordinary Redis clients and sends each command to the server that owns its keys: \
                one server, several with given slots, or a Redis or Valkey Cluster.\n\nAny directive of the \
                configuration file is an option. Options win over the file.",
        sections: Cow::Owned(vec![
            Section { name: "backends", title: "Servers behind the proxy", rows: Cow::Owned(own), is_long: false },
            Section {
                name: "clients",
                title: "Clients and process, as of the server",
                rows: Cow::Owned(shared),
                is_long: false,
            },
            section("start", "Instead of a proxy", START),
        ]),
        operands: Operands::Files,
        rules: Rules { operand_ends_options: false, has_equal_signs: false },
        examples: &[
            ("PROGRAM --port 7000 --topology server 127.0.0.1:6379", "In front of one server."),
            (
                "PROGRAM --port 7000 --topology 'static 0-8191@10.0.0.1:6379 8192-16383@10.0.0.2:6379'",
                "In front of two servers that share the slots.",
            ),
            ("PROGRAM --port 7000 --topology cluster 10.0.0.1:6379,10.0.0.2:6379", "In front of a Redis Cluster."),
        ],
        exit_codes: &[("0", "It was ended."), ("1", "It could not start.")],
        ..Tool::EMPTY
    }
}

const START: &[Row] = &[row("-h, --help", "This help."), row("-v, --version", "The version.")];

fn own_row(own: &'static Own) -> Row {
    let default = String::from_utf8_lossy(&own.print(&Config::default())).into_owned();
    let help = if default.is_empty() { own.doc.to_owned() } else { format!("{} Default: {default}.", own.doc) };
    Row { spec: own.option, help: Cow::Owned(help), values: Values::Free, is_listed: true }
}

fn shared_row(directive: &'static Directive) -> Row {
    let values = match directive.kind {
        Kind::Bool => Values::Words(Cow::Borrowed(&["yes", "no"])),
        Kind::Directory => Values::Folders,
        Kind::Text { .. } if directive.name.ends_with("file") || directive.name == "unixsocket" => Values::Files,
        _ => Values::Free,
    };
    let default = String::from_utf8_lossy(&directive.print(&ServerConfig::default())).into_owned();
    // These two depend on the machine.
    let is_told = !default.is_empty() && !matches!(directive.name, "io-threads" | "dir");
    let help = if is_told { format!("{} Default: {default}.", directive.doc) } else { directive.doc.to_owned() };
    Row { spec: directive.option, help: Cow::Owned(help), values, is_listed: true }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    #[test]
    fn every_directive_is_an_option_once() {
        let tool = tool();
        for name in OWN.iter().map(|own| own.name).chain(SHARED.iter().copied()) {
            let option = format!("--{name}");
            assert_eq!(tool.rows().filter(|row| row.names().any(|name| name == option)).count(), 1, "{option}");
        }
    }
}
