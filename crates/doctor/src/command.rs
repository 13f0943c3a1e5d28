//! The command line of `oxidis doctor`.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::Path;

use options::{Look, Operands, Reader, Row, Rules, Section, Tool, help, row, section};

use crate::checks::examine;
use crate::machine::Machine;
use crate::{server, show};

/// The doctor as a tool.
#[must_use]
pub fn tool() -> Tool {
    Tool {
        name: "doctor",
        links: &[],
        summary: "looks whether this machine can hold so many clients",
        usage: &["PROGRAM [--clients N] [--server ADDRESS] [--json]"],
        about: "Looks whether this machine can hold so many clients, and says what to change.\n\nEach setting is shown \
                with its value and what it should be; what is not so, with what it would break, the command that sets \
                it now and the file that keeps it. In a pipe: one line per setting, fields separated by tabs.",
        sections: Cow::Borrowed(SECTIONS),
        operands: Operands::None,
        rules: Rules::FREE,
        topics: &[],
        examples: &[
            ("PROGRAM --clients 120000", "Before a big test."),
            ("PROGRAM --clients 120000 --server 10.0.0.1:6379", "Also asks the server for its limits."),
            ("PROGRAM --json | jq '.findings[]'", "For programs."),
        ],
        environment: &[
            ("REDISCLI_AUTH", "Password for --server, if its address has none."),
            ("NO_COLOR", "No colours on a terminal."),
        ],
        files: &[],
        exit_codes: &[
            ("0", "So many clients can be held."),
            ("1", "Something would stop them."),
            ("2", "A mistake in the command line."),
        ],
    }
}

const SECTIONS: &[Section] = &[section("options", "Options", OPTIONS)];

const OPTIONS: &[Row] = &[
    row("-c, --clients <n>", "How many clients (10000)."),
    row("--server <address>", "Also ask this server: host:port or redis://[user:password@]host:port"),
    row("--json", "One JSON document."),
    row("-h, --help", "This help."),
];

struct Options {
    clients: u64,
    server: Option<String>,
    is_json: bool,
}

/// Runs `oxidis doctor` with the arguments after the subcommand; returns the exit code.
pub fn run(program: &str, arguments: &[OsString]) -> i32 {
    let options = match parse(arguments) {
        Ok(Some(options)) => options,
        Ok(None) => {
            print(&help(&tool(), program, None, Look::of_stdout()).unwrap_or_default());
            return 0;
        }
        Err(error) => {
            eprintln!("{program}: {error}; see {program} --help");
            return 2;
        }
    };
    let mut findings = examine(&Machine::read(Path::new("/")), options.clients);
    if let Some(address) = &options.server {
        match server::examine(address, options.clients) {
            Ok(more) => findings.extend(more),
            Err(error) => {
                eprintln!("{program}: cannot ask the server at {}: {error}", server::without_password(address));
                return 1;
            }
        }
    }
    let stdout = std::io::stdout();
    print(&if options.is_json {
        show::json(&findings, options.clients)
    } else if stdout.is_terminal() {
        let has_colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        show::table(&findings, options.clients, has_colour)
    } else {
        show::plain(&findings)
    });
    i32::from(show::stops(&findings) > 0)
}

fn parse(arguments: &[OsString]) -> Result<Option<Options>, String> {
    let mut options = Options { clients: 10_000, server: None, is_json: false };
    let tool = tool();
    let mut reader = Reader::new(&tool, arguments);
    while let Some((row, value)) = reader.option()? {
        match row.key() {
            "-c" => {
                let wrong = |_| format!("'{value}' is no number of clients");
                options.clients = value.parse().map_err(wrong)?;
            }
            "--server" => options.server = Some(value),
            "--json" => options.is_json = true,
            "-h" => return Ok(None),
            key => return Err(format!("{key} is not read")),
        }
    }
    Ok(Some(options))
}

fn print(text: &str) {
    // Nobody is left to tell if the pipe is closed.
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn options_are_read() {
        let words = ["--clients", "120000", "--json", "--server", "h:1"].map(OsString::from);
        let options = parse(&words).unwrap().unwrap();
        assert_eq!((options.clients, options.is_json, options.server.as_deref()), (120_000, true, Some("h:1")));
        assert!(parse(&["--help"].map(OsString::from)).unwrap().is_none());
        assert!(parse(&["--clients", "x"].map(OsString::from)).is_err());
        assert!(parse(&["y"].map(OsString::from)).is_err());
        assert_eq!(parse(&["--clients=7"].map(OsString::from)).unwrap().unwrap().clients, 7);
        let error = parse(&["--client".into()]).err().unwrap();
        assert_eq!(error, "unknown option '--client'. Did you mean '--clients'?");
    }

    #[test]
    fn every_row_is_read() {
        for row in tool().rows() {
            let words = [row.key(), "1"].map(OsString::from);
            let words = if row.needs_value() { &words[..] } else { &words[..1] };
            assert!(parse(words).is_ok(), "{}", row.key());
        }
    }
}
