//! The command line of `oxidis admin`.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

use options::{Item, Look, Operands, Reader, Row, Rules, Section, Tool, Word, choice, file, help, row, section};

use crate::auth;
use crate::http::Client;

use super::commands::{self, COMMANDS};

/// Where `oxidis up` has its manager.
const DEFAULT_MANAGER: &str = "http://127.0.0.1:7080";

/// The admin client as a tool.
#[must_use]
pub fn tool() -> Tool {
    let mut words: Vec<Word> = Vec::new();
    for command in COMMANDS {
        let (first, second) = command.words.split_once(' ').unwrap_or((command.words, ""));
        match words.iter_mut().find(|word| word.name == first) {
            Some(word) => word.next.push(second.to_owned()),
            None => {
                let next = if second.is_empty() { Vec::new() } else { vec![second.to_owned()] };
                words.push(Word { name: first.to_owned(), summary: command.summary.to_owned(), next });
            }
        }
    }
    Tool {
        name: "admin",
        links: &[],
        summary: "looks after a cluster: the manager's API from a shell",
        usage: &["PROGRAM [OPTIONS] COMMAND [ARGUMENTS]"],
        about: "Asks the manager of a cluster and shows the answer: a table on a terminal, lines of tab-separated \
                fields in a pipe, JSON on request. A manager that does not lead names the leader, which is then asked.",
        sections: Cow::Borrowed(SECTIONS),
        operands: Operands::Words(words),
        rules: Rules::FREE,
        topics: &[options::Topic { name: "commands", title: "Commands", text: commands::TOPIC }],
        examples: &[
            ("PROGRAM topology", "The whole cluster on a screen."),
            ("PROGRAM group add", "A new group; then 'server add' gives it its primary and replicas."),
            ("PROGRAM server add 4 127.0.0.1:7131", "An empty server for group 4."),
            ("PROGRAM move start 0-99 4 --rate 20mb --watch", "Slots to group 4, with progress."),
            ("PROGRAM rebalance --by memory --dry-run", "What would be moved to make memory even."),
            ("PROGRAM scale-in 4 --watch", "Empties group 4, so that it can be removed."),
            ("PROGRAM --json slots | jq .", "For programs."),
        ],
        environment: &[
            ("OXIDIS_MANAGER", "The manager, where --manager says nothing."),
            ("OXIDIS_TOKEN_FILE", "The file of the token, where --token-file says nothing."),
            ("NO_COLOR", "No colours on a terminal."),
        ],
        exit_codes: &[
            ("0", "Done."),
            ("1", "The manager refused, could not be asked, or a watched move failed."),
            ("2", "A mistake in the command line."),
        ],
        ..Tool::EMPTY
    }
}

const SECTIONS: &[Section] =
    &[section("ask", "Whom to ask, and how to show it", ASK), section("say", "What to ask for", SAY)];

const ASK: &[Row] = &[
    row("-m, --manager <url>", "The manager (http://127.0.0.1:7080), or any of several."),
    file(
        "--token-file <file>",
        "A file with the token, or with lines of ROLE NAME TOKEN, of which the strongest is taken.",
    ),
    row("--json", "The answer as the manager gave it."),
    row("--timeout <seconds>", "Longest wait for an answer (10)."),
    row("-h, --help", "This help."),
];

const SAY: &[Row] = &[
    choice("--by <what>", &["slots", "memory", "load"], "What a plan makes even (slots)."),
    row("-n, --dry-run", "Show the plan, and begin nothing."),
    row("--rate <bytes>", "Most bytes per second of a move, such as 20mb (no limit)."),
    row("-w, --watch", "Show moves until they are over."),
    row("--follow", "Show events as they come."),
    row("--limit <n>", "How many events (50)."),
    row("--zone <name>", "Where a server stands."),
    row("--force", "Take a server although it holds keys; as a replica it loses them."),
];

/// What the command line says.
#[derive(Debug, Default)]
pub(super) struct Options {
    manager: Option<String>,
    token_file: Option<String>,
    timeout_s: Option<u64>,
    pub(super) is_json: bool,
    pub(super) by: Option<String>,
    pub(super) is_dry: bool,
    pub(super) rate: Option<u64>,
    pub(super) has_watch: bool,
    pub(super) has_follow: bool,
    pub(super) limit: Option<usize>,
    pub(super) zone: String,
    pub(super) is_forced: bool,
    wants_help: bool,
}

/// Runs `oxidis admin` with the arguments after the subcommand; returns the exit code.
pub fn run(program: &str, arguments: &[OsString]) -> i32 {
    let complain = |text: &str, code: i32| {
        eprintln!("{program}: {text}");
        code
    };
    let (options, words) = match parse(arguments) {
        Ok(read) => read,
        Err(error) => return complain(&format!("{error}; see {program} --help"), 2),
    };
    if options.wants_help {
        print(&help(&tool(), program, None, Look::of_stdout()).unwrap_or_default());
        return 0;
    }
    let (command, arguments) = match commands::find(&words) {
        Ok(found) => found,
        Err(error) => return complain(&error, 2),
    };
    let token = match token(&options) {
        Ok(token) => token,
        Err(error) => return complain(&error, 2),
    };
    let manager =
        options.manager.clone().or_else(|| std::env::var("OXIDIS_MANAGER").ok().filter(|url| !url.is_empty()));
    let manager = manager.unwrap_or_else(|| DEFAULT_MANAGER.into());
    let patience = Duration::from_secs(options.timeout_s.unwrap_or(10).max(1));
    let client = Client::new(&manager, token, patience);
    let mut out = Out { text: String::new(), is_terminal: std::io::stdout().is_terminal() };
    let asked = commands::Asked { client: &client, options: &options, arguments: &arguments };
    let outcome = (command.run)(&asked, &mut out);
    print(&out.text);
    match outcome {
        Ok(code) => code,
        Err(commands::Trouble::Usage(error)) => {
            complain(&format!("{error}\n  usage: {program} {} {}", command.words, command.operands), 2)
        }
        Err(commands::Trouble::Failed(failure)) => complain(&failure.to_string(), 1),
    }
}

/// What is to be printed, and whether it is for eyes.
#[derive(Debug)]
pub(super) struct Out {
    pub(super) text: String,
    pub(super) is_terminal: bool,
}

fn token(options: &Options) -> Result<Option<String>, String> {
    let file = options.token_file.clone().or_else(|| std::env::var("OXIDIS_TOKEN_FILE").ok());
    file.filter(|file| !file.is_empty()).map(|file| auth::client_token(Path::new(&file))).transpose()
}

fn parse(arguments: &[OsString]) -> Result<(Options, Vec<String>), String> {
    let (mut options, mut words) = (Options::default(), Vec::new());
    let tool = tool();
    let mut reader = Reader::new(&tool, arguments);
    while let Some(item) = reader.read() {
        let (row, value) = match item {
            Item::Option { row, value, .. } => (row, String::from_utf8_lossy(&value.unwrap_or_default()).into_owned()),
            Item::Word(word) => {
                words.push(String::from_utf8_lossy(&word).into_owned());
                continue;
            }
            wrong => return Err(wrong.complaint(&tool)),
        };
        match row.key() {
            "-m" => options.manager = Some(value),
            "--token-file" => options.token_file = Some(value),
            "--json" => options.is_json = true,
            "--timeout" => options.timeout_s = Some(number(&value, "a number of seconds")?),
            "--by" => match value.as_str() {
                "slots" | "memory" | "load" => options.by = Some(value),
                _ => return Err(format!("--by takes slots, memory or load, not '{value}'")),
            },
            "-n" => options.is_dry = true,
            "--rate" => options.rate = Some(bytes(&value)?),
            "-w" => options.has_watch = true,
            "--follow" => options.has_follow = true,
            "--limit" => options.limit = Some(number(&value, "a number of events")?),
            "--zone" => options.zone = value,
            "--force" => options.is_forced = true,
            "-h" => options.wants_help = true,
            key => return Err(format!("{key} is not read")),
        }
    }
    Ok((options, words))
}

fn number<N: std::str::FromStr>(text: &str, what: &str) -> Result<N, String> {
    text.parse().map_err(|_| format!("'{text}' is not {what}"))
}

/// A number of bytes as in redis.conf: `k`, `m`, `g` are thousands, `kb`, `mb`, `gb` are 1024s; `none` is 0.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let lower = text.to_ascii_lowercase();
    if lower == "none" || lower == "unlimited" {
        return Ok(0);
    }
    let digits = lower.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(lower.len());
    let (number, unit) = lower.split_at(digits);
    let factor: u64 = match unit.trim_end_matches("/s") {
        "" | "b" => 1,
        "k" => 1_000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return Err(format!("'{text}' is no number of bytes, such as 20mb")),
    };
    let number: u64 = number.parse().map_err(|_| format!("'{text}' is no number of bytes, such as 20mb"))?;
    number.checked_mul(factor).ok_or_else(|| format!("'{text}' is too much"))
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
    fn options_stand_anywhere() {
        let words = ["move", "start", "--rate=20mb", "0-9", "4", "-w"].map(OsString::from);
        let (options, words) = parse(&words).unwrap();
        assert_eq!((options.rate, options.has_watch), (Some(20 << 20), true));
        assert_eq!(words, ["move", "start", "0-9", "4"]);
        assert!(parse(&["--by", "colour"].map(OsString::from)).is_err());
        let error = parse(&["--dry-rum".into()]).err().unwrap();
        assert_eq!(error, "unknown option '--dry-rum'. Did you mean '--dry-run'?");
    }

    #[test]
    fn every_row_is_read() {
        for row in tool().rows() {
            let value = if row.key() == "--by" { "memory" } else { "1" };
            let words = [row.key(), value].map(OsString::from);
            let words = if row.needs_value() { &words[..] } else { &words[..1] };
            assert!(parse(words).is_ok(), "{}", row.key());
        }
    }

    #[test]
    fn bytes_have_units() {
        assert_eq!(bytes("100"), Ok(100));
        assert_eq!(bytes("2k"), Ok(2_000));
        assert_eq!(bytes("2KB"), Ok(2_048));
        assert_eq!(bytes("1gb/s"), Ok(1 << 30));
        assert_eq!(bytes("none"), Ok(0));
        for wrong in ["", "mb", "2tb", "-1", "99999999999gb"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }
}
