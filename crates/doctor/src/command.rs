//! The command line of `oxidis doctor`.

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::Path;

use lexopt::prelude::*;

use crate::checks::examine;
use crate::machine::Machine;
use crate::{server, show};

const USAGE: &str = "\
Looks whether this machine can hold so many clients, and says what to change.

Usage: PROGRAM [--clients N] [--server ADDRESS] [--json]

  --clients N        how many clients (default 10000)
  --server ADDRESS   also ask this server: host:port or redis://[user:password@]host:port
                     (the password may also be in REDISCLI_AUTH)
  --json             one JSON document
  --help             this text

Each setting is shown with its value and what it should be; what is not so, with what it would break, the command that
sets it now and the file that keeps it. In a pipe: one line per setting, fields separated by tabs.

Exit code 0: N clients can be held; 1: something would stop them; 2: a mistake in the command line.
";

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
            print(&USAGE.replace("PROGRAM", program));
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

fn parse(arguments: &[OsString]) -> Result<Option<Options>, lexopt::Error> {
    let mut options = Options { clients: 10_000, server: None, is_json: false };
    let mut parser = lexopt::Parser::from_args(arguments);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("clients") | Short('c') => options.clients = parser.value()?.parse()?,
            Long("server") => options.server = Some(parser.value()?.string()?),
            Long("json") => options.is_json = true,
            Long("help") | Short('h') => return Ok(None),
            other => return Err(other.unexpected()),
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
    }
}
