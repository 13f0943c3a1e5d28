//! `help`, `help @group` and `help command`, from the command table.

use std::io::IsTerminal;
use std::sync::OnceLock;

use commands::table::{self, CommandSpec};

use super::hints;
use crate::options::VERSION;
use crate::output::{Outcome, print, text};

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
    if out.is_empty() {
        out = nothing_of(&text(first));
    }
    out.push('\n');
    print(out)
}

/// What is said of a topic that there is none of.
fn nothing_of(topic: &str) -> String {
    let groups = commands().iter().map(|command| command.docs.group.name());
    let near = match topic.strip_prefix('@') {
        Some(group) => ::options::nearest(group, groups).map(|group| format!("@{group}")),
        None => ::options::nearest(topic, table::top_level().map(|command| command.name)).map(str::to_uppercase),
    };
    let hint = near.map(|near| format!(" Did you mean '{near}'?")).unwrap_or_default();
    format!("There is no help on '{topic}'.{hint}\n")
}

/// Redis: in colours. Ours only where they are seen as such.
fn describe(out: &mut String, command: &CommandSpec, with_group: bool) {
    let docs = command.docs;
    let has_colour = std::io::stdout().is_terminal() && super::has_colour();
    let paint = |colour: &str, text: &str| match has_colour && !text.is_empty() {
        true => format!("\x1b[{colour}m{text}\x1b[0m"),
        false => text.to_string(),
    };
    let name = paint("1", &shown_name(command));
    let arguments = hints::syntax(command);
    let arguments = if arguments.is_empty() { arguments } else { format!(" {}", paint("90", &arguments)) };
    out.push_str(&format!("\n  {name}{arguments}\n"));
    let mut line = |label: &str, text: &str| out.push_str(&format!("  {} {text}\n", paint("33", label)));
    line("summary:", docs.summary);
    line("since:", docs.since);
    if with_group {
        line("group:", docs.group.name());
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
      ":set timing" shows the time and cost of each command behind its reply,
      ":set bottomline" in the last line of the screen
      ":set pager" shows long replies with $PAGER
      ":decode utf8|json|msgpack|hex|none" how strings are shown
Set your preferences in ~/.redisclirc
"#;
