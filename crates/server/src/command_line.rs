//! What `oxidis server` takes, as a table for help, manual page and completion.
//!
//! Its options are the directives of [`config`](crate::config): each directive is one, so the rows are made from their
//! table. Only what acts in this version is listed.

use std::borrow::Cow;

use options::{Operands, Row, Rules, Section, Tool, Values, row, section};

use crate::config::{Applies, Config, DIRECTIVES, Directive, Kind};

/// The server as a tool.
#[must_use]
pub fn tool() -> Tool {
    let mut sections = Vec::new();
    for (name, title, wanted) in TASKS {
        let rows = wanted.iter().filter_map(|wanted| DIRECTIVES.iter().find(|directive| directive.name == *wanted));
        sections.push(Section { name, title, rows: Cow::Owned(rows.map(directive).collect()), is_long: false });
    }
    sections.push(section("start", "Instead of a server", START));
    let is_rare = |directive: &&Directive| !TASKS.iter().any(|(_, _, wanted)| wanted.contains(&directive.name));
    let rest = DIRECTIVES.iter().filter(is_rare).map(directive).collect();
    sections.push(Section { name: "directives", title: "All other directives", rows: Cow::Owned(rest), is_long: true });
    Tool {
        name: "server",
        links: &["redis-server"],
        summary: "in-memory store that speaks the Redis protocol",
        usage: &["PROGRAM [CONFIG-FILE] [--DIRECTIVE VALUE ...] [-]"],
        about: "Without anything: runs with the defaults. A dash at the end reads more lines of configuration from \
                standard input.\n\nAny directive of the configuration file is an option: 'maxmemory 1gb' becomes \
                '--maxmemory 1gb'. Options win over the file.",
        sections: Cow::Owned(sections),
        operands: Operands::Files,
        rules: Rules { operand_ends_options: false, has_equal_signs: false },
        examples: &[
            ("PROGRAM", "Runs with the defaults, on port 6379."),
            ("PROGRAM --maxmemory 2gb --maxmemory-policy allkeys-lru", "A cache of 2 GiB."),
            (
                "PROGRAM /etc/redis/6379.conf --loglevel verbose",
                "A file, and one directive that is not as in the file.",
            ),
            ("echo 'maxmemory 128mb' | PROGRAM -", "Configuration from standard input."),
            ("oxidis help server directives", "Shows every directive."),
        ],
        exit_codes: &[("0", "It was shut down."), ("1", "It could not start, or came down by a fault of its own.")],
        ..Tool::EMPTY
    }
}

const START: &[Row] = &[
    row("--check-system", "Looks for settings of the machine that make a server slow or unsafe."),
    row("--test-memory <megabytes>", "Tests so much memory for faults."),
    row("-h, --help", "This help."),
    row("-v, --version", "The version."),
];

/// Directives that most people look for, by task.
const TASKS: &[(&str, &str, &[&str])] = &[
    (
        "network",
        "Connections",
        &[
            "port",
            "bind",
            "unixsocket",
            "requirepass",
            "protected-mode",
            "maxclients",
            "timeout",
            "tcp-backlog",
            "io-threads",
        ],
    ),
    ("memory", "Memory", &["maxmemory", "maxmemory-policy", "maxmemory-clients", "databases", "slot-space"]),
    ("disk", "Files", &["dir", "dbfilename", "save", "appendonly", "appendfsync", "replicaof", "aclfile"]),
    (
        "process",
        "Process and log",
        &["daemonize", "pidfile", "supervised", "logfile", "loglevel", "slowlog-log-slower-than", "server_cpulist"],
    ),
];

fn directive(directive: &Directive) -> Row {
    let words = |words: Vec<&'static str>| Values::Words(Cow::Owned(words));
    let values = match directive.kind {
        Kind::Bool => words(vec!["yes", "no"]),
        Kind::Enum(list) | Kind::Flags(list, _) => words(list.iter().map(|(word, _)| *word).collect()),
        Kind::Directory => Values::Folders,
        Kind::Text { .. } if directive.name.ends_with("-dir") => Values::Folders,
        Kind::Text { .. } if directive.name.ends_with("file") || directive.name == "unixsocket" => Values::Files,
        _ => Values::Free,
    };
    let mut help = directive.doc.to_owned();
    if let (Kind::Enum(_) | Kind::Flags(..), Values::Words(words)) = (directive.kind, &values) {
        help.push_str(&format!(" One of {}.", words.join(", ")));
    }
    let default = String::from_utf8_lossy(&directive.print(&Config::default())).into_owned();
    // These two depend on the machine.
    if !default.is_empty() && !matches!(directive.name, "io-threads" | "dir") {
        help.push_str(&format!(" Default: {default}."));
    }
    Row { spec: directive.option, help: Cow::Owned(help), values, is_listed: directive.applies == Applies::Acts }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    #[test]
    fn every_directive_is_an_option_once() {
        let tool = tool();
        for directive in DIRECTIVES {
            let option = format!("--{}", directive.name);
            let rows = tool.rows().filter(|row| row.names().any(|name| name == option));
            assert_eq!(rows.count(), 1, "{option}");
        }
        for (_, _, wanted) in TASKS {
            for name in *wanted {
                assert!(DIRECTIVES.iter().any(|directive| directive.name == *name), "{name}");
            }
        }
    }
}
