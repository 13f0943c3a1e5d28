//! `help`, `help @group` and `help command`, from the command table.

use std::sync::OnceLock;

use commands::table::{self, CommandSpec};

use super::hints;
use crate::options::VERSION;
use crate::output::{Outcome, print};

/// Whether a call asks for help, which needs no server.
pub(crate) fn is_help(words: &[Vec<u8>]) -> bool {
    words.first().is_some_and(|word| word.eq_ignore_ascii_case(b"help") || word == b"?")
}

/// Shows help on the words behind `help`.
pub(crate) fn show(words: &[Vec<u8>]) -> Outcome<()> {
    let Some(first) = words.first() else {
        return print(format!("{VERSION}\n{GENERAL}"));
    };
    let mut out = String::new();
    match first.strip_prefix(b"@") {
        Some(group) => {
            for command in commands() {
                if command.docs.group.name().as_bytes().eq_ignore_ascii_case(group) {
                    describe(&mut out, command, false);
                }
            }
        }
        None => {
            for command in commands() {
                let mut parts = command.name.split('|');
                let same = |word: &Vec<u8>| parts.next().is_some_and(|part| word.eq_ignore_ascii_case(part.as_bytes()));
                if words.iter().all(same) {
                    describe(&mut out, command, true);
                }
            }
        }
    }
    out.push_str("\r\n");
    print(out)
}

fn describe(out: &mut String, command: &CommandSpec, with_group: bool) {
    let docs = command.docs;
    let (name, arguments) = (shown_name(command), hints::syntax(command));
    out.push_str(&format!("\r\n  \x1b[1m{name}\x1b[0m \x1b[90m{arguments}\x1b[0m\r\n"));
    out.push_str(&format!("  \x1b[33msummary:\x1b[0m {}\r\n", docs.summary));
    out.push_str(&format!("  \x1b[33msince:\x1b[0m {}\r\n", docs.since));
    if with_group {
        out.push_str(&format!("  \x1b[33mgroup:\x1b[0m {}\r\n", docs.group.name()));
    }
}

/// All commands and subcommands by name.
pub(super) fn commands() -> &'static [&'static CommandSpec] {
    static COMMANDS: OnceLock<Vec<&'static CommandSpec>> = OnceLock::new();
    COMMANDS.get_or_init(|| {
        let mut all: Vec<_> = table::all().collect();
        all.sort_unstable_by_key(|command| command.name);
        all
    })
}

/// `CONFIG GET` for `config|get`.
pub(super) fn shown_name(command: &CommandSpec) -> String {
    command.name.replace('|', " ").to_uppercase()
}

const GENERAL: &str = r#"To get help about Redis commands type:
      "help @<group>" to get a list of commands in <group>
      "help <command>" for help on <command>
      "help <tab>" to get a list of possible help topics
      "quit" to exit
      "<n> <command>" to run a command n times
      "peek <key>" for type, size, time to live and first elements
      "<command> | <program>" to send the reply to a program
      "connect <host> <port>", "clear"
      ":slot <key>", ":topology" for slots and servers

To set redis-cli preferences:
      ":set hints" enable online hints
      ":set nohints" disable online hints
      ":set keyhints", ":set nokeyhints" offer keys of this session by tab
      ":set timing" shows the time and cost of each command
      ":set pager" shows long replies with $PAGER
      ":decode utf8|json|msgpack|hex|none" how strings are shown
Set your preferences in ~/.redisclirc
"#;
