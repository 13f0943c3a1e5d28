//! What `oxidis` says about itself and its tools: help, manual pages, completion scripts, the version.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use options::shells::{Shell, script};
use options::{
    Item, Look, Operands, Reader, Row, Rules, Section, Tool, Word, folder, help, manual, nearest, row, section,
};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Runs a tool that tells something, or says that there is none of that name.
pub(crate) fn run(tool: &str, arguments: &[OsString]) -> i32 {
    match tool {
        "completions" => completions(arguments),
        "man" => man(arguments),
        "help" | "--help" | "-h" => show_help(arguments),
        "--version" | "-v" | "version" => print(&format!("oxidis {VERSION}\n")),
        "" => {
            // Nobody is left to tell if the pipe is closed.
            let _ = std::io::stderr().write_all(overview(Look::PLAIN).as_bytes());
            1
        }
        other => {
            let tools = tools();
            let meant = nearest(other, tools.iter().map(|tool| tool.name).chain(["help", "version"]));
            let hint = meant.map(|meant| format!(" Did you mean '{meant}'?")).unwrap_or_default();
            complain(&format!("there is no tool named '{other}'.{hint} 'oxidis help' lists them"))
        }
    }
}

/// Every tool, in the order of the overview.
fn tools() -> Vec<Tool> {
    vec![
        server::tool(),
        proxy::tool(),
        cli::tool(),
        benchmark::tool(),
        manager::up::tool(),
        manager::tool(),
        manager::admin::tool(),
        doctor::tool(),
        check_rdb_tool(),
        check_aof_tool(),
        completions_tool(),
        man_tool(),
    ]
}

/// `oxidis` itself, whose options are its tools.
fn oxidis() -> Tool {
    let words = tools().into_iter().map(|tool| Word {
        name: tool.name.to_owned(),
        summary: tool.summary.to_owned(),
        next: Vec::new(),
    });
    Tool {
        summary: "Redis-compatible data layer in one binary",
        usage: &["PROGRAM TOOL [ARGUMENTS]", "PROGRAM help [TOOL [SECTION]]"],
        about: "The tools are a server, a proxy, a client, a load generator, a cluster's manager and what belongs to them; \
                each has a page of its own.",
        sections: Cow::Borrowed(SECTIONS),
        operands: Operands::Words(words.collect()),
        examples: &[
            ("oxidis server --port 7000", "Runs a server."),
            ("oxidis cli -p 7000 set greeting hello", "Asks it."),
            ("oxidis benchmark -p 7000 -t set,get -n 100000 -P 16", "Measures it."),
            ("oxidis up", "A whole cluster on this machine."),
            ("oxidis doctor --clients 120000", "Can this machine hold so many clients?"),
        ],
        ..Tool::EMPTY
    }
}

const OPTIONS: &[Row] = &[row("-h, --help", "An overview of the tools."), row("-v, --version", "The version.")];
const SECTIONS: &[Section] = &[section("options", "Options", OPTIONS)];

const CHECK_OPTIONS: &[Row] = &[row("-h, --help", "This help."), row("-v, --version", "The version.")];
const CHECK_SECTIONS: &[Section] = &[section("options", "Options", CHECK_OPTIONS)];

fn check_rdb_tool() -> Tool {
    Tool {
        name: "check-rdb",
        links: &["redis-check-rdb"],
        summary: "looks whether a snapshot file is whole",
        usage: &["PROGRAM FILE"],
        about: "Reads an RDB file as the server does when it loads it, and tells what is in it, or where and how it \
                breaks, in the words of redis-check-rdb. Nothing is changed.",
        sections: Cow::Borrowed(CHECK_SECTIONS),
        operands: Operands::Files,
        rules: Rules::FREE,
        exit_codes: &[("0", "The file is whole."), ("1", "It is not, or cannot be read.")],
        examples: &[("PROGRAM /var/lib/redis/dump.rdb", "Before a server is started with it.")],
        ..Tool::EMPTY
    }
}

const CHECK_AOF_OPTIONS: &[Row] = &[
    row("--fix", "Cuts the file off where it breaks, after asking."),
    row(
        "--truncate-to-timestamp <time>",
        "Cuts off what was written after that Unix time; needs aof-timestamp-enabled.",
    ),
    row("-h, --help", "This help."),
];
const CHECK_AOF_SECTIONS: &[Section] = &[section("options", "Options", CHECK_AOF_OPTIONS)];

fn check_aof_tool() -> Tool {
    Tool {
        name: "check-aof",
        links: &["redis-check-aof"],
        summary: "looks whether an append-only file is whole, and cuts it",
        usage: &["PROGRAM [--fix|--truncate-to-timestamp TIME] FILE"],
        about: "Reads an append-only file as the server does when it loads it, and tells where it breaks, in the words of \
                redis-check-aof. With a manifest all files that it names are read. Nothing is changed without an option.",
        sections: Cow::Borrowed(CHECK_AOF_SECTIONS),
        operands: Operands::Files,
        rules: Rules { has_equal_signs: false, ..Rules::FREE },
        exit_codes: &[("0", "The file is whole, or was cut."), ("1", "It is not, or cannot be read.")],
        examples: &[
            ("PROGRAM appendonlydir/appendonly.aof.manifest", "Is the log whole?"),
            ("PROGRAM --fix appendonlydir/appendonly.aof.1.incr.aof", "Takes away a command that was written by half."),
        ],
        ..Tool::EMPTY
    }
}

fn completions_tool() -> Tool {
    Tool {
        name: "completions",
        summary: "completion scripts for bash, zsh and fish",
        usage: &["PROGRAM bash|zsh|fish"],
        about: "Prints a script that completes tools, options and values of oxidis and of the links to it \
                (redis-server, redis-cli, redis-benchmark).",
        operands: Operands::Words(
            Shell::NAMES
                .iter()
                .map(|name| Word { name: (*name).to_owned(), summary: String::new(), next: Vec::new() })
                .collect(),
        ),
        examples: &[
            ("source <(PROGRAM bash)", "bash: for this session, or in ~/.bashrc."),
            ("PROGRAM zsh > ~/.zfunc/_oxidis", "zsh: with ~/.zfunc in $fpath before compinit."),
            ("PROGRAM fish > ~/.config/fish/completions/oxidis.fish", "fish."),
        ],
        ..Tool::EMPTY
    }
}

const MAN_OPTIONS: &[Row] = &[folder("--dir <folder>", "Writes the pages of all tools there, as files.")];
const MAN_SECTIONS: &[Section] = &[section("options", "Options", MAN_OPTIONS)];

fn man_tool() -> Tool {
    Tool {
        name: "man",
        summary: "manual pages",
        usage: &["PROGRAM [TOOL]", "PROGRAM --dir FOLDER"],
        about: "Shows the manual page of a tool, or of oxidis: through man on a terminal, else as it is.",
        sections: Cow::Borrowed(MAN_SECTIONS),
        operands: Operands::Words(
            [
                "server",
                "proxy",
                "cli",
                "benchmark",
                "up",
                "manager",
                "admin",
                "doctor",
                "check-rdb",
                "check-aof",
                "completions",
                "man",
            ]
            .iter()
            .map(|name| Word { name: (*name).to_owned(), summary: String::new(), next: Vec::new() })
            .collect(),
        ),
        rules: Rules::FREE,
        examples: &[
            ("PROGRAM cli", "Shows the page of the client."),
            ("PROGRAM --dir /usr/local/share/man/man1", "Installs all pages."),
        ],
        ..Tool::EMPTY
    }
}

/// The help of a tool that does not show it itself, if the arguments ask for it: the exit code.
pub(crate) fn help_of(name: &str, program: &str, arguments: &[OsString]) -> Option<i32> {
    let [argument] = arguments else {
        return None;
    };
    if argument != "--help" && argument != "-h" {
        return None;
    }
    let tool = tools().into_iter().find(|tool| tool.name == name)?;
    Some(print(&help(&tool, program, None, Look::of_stdout())?))
}

/// `oxidis help [TOOL [SECTION]]`.
fn show_help(arguments: &[OsString]) -> i32 {
    let words: Vec<String> = arguments.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let Some(name) = words.first() else {
        return print(&overview(Look::of_stdout()));
    };
    let tools = tools();
    let Some(tool) = tools.iter().find(|tool| tool.name == name) else {
        return run(name, &[]);
    };
    let part = words.get(1).map(String::as_str);
    match help(tool, &format!("oxidis {name}"), part, Look::of_stdout()) {
        Some(text) => print(&text),
        None => {
            let names = tool.sections.iter().map(|section| section.name);
            let names: Vec<&str> = names.chain(tool.topics.iter().map(|topic| topic.name)).collect();
            complain(&format!("the help of {name} has no such section; it has {}, examples", names.join(", ")))
        }
    }
}

/// The tools, each with an example.
fn overview(look: Look) -> String {
    let mut text =
        String::from("oxidis: a Redis-compatible data layer in one binary\n\nUsage: oxidis TOOL [ARGUMENTS]\n\n");
    for tool in tools() {
        text.push_str(&format!("  {:<12} {}\n", tool.name, tool.summary));
    }
    text.push('\n');
    text.push_str(&help(&oxidis(), "oxidis", Some("examples"), look).unwrap_or_default());
    text.push_str(
        "\n  oxidis help TOOL       what a tool can do\n  oxidis --version       the version\n\n\
         A link to this binary named redis-server, redis-benchmark or redis-cli (or\noxidis-...) runs that tool.\n",
    );
    text
}

fn completions(arguments: &[OsString]) -> i32 {
    let tools = tools();
    let all: Vec<&Tool> = tools.iter().collect();
    match read(&completions_tool(), arguments) {
        Err(code) => code,
        Ok((_, words)) => match words.as_slice() {
            [name] => match Shell::named(name) {
                Some(shell) => print(&script(shell, "oxidis", &all)),
                None => complain(&format!("no completions for '{name}': only for bash, zsh and fish")),
            },
            _ => complain("completions: which shell? bash, zsh or fish"),
        },
    }
}

fn man(arguments: &[OsString]) -> i32 {
    let (folder, words) = match read(&man_tool(), arguments) {
        Ok(read) => read,
        Err(code) => return code,
    };
    let mut tools = tools();
    tools.insert(0, oxidis());
    let all: Vec<&Tool> = tools.iter().collect();
    if let Some(folder) = folder {
        return write_pages(Path::new(&folder), &all);
    }
    let name = words.first().map_or("", String::as_str);
    let Some(tool) =
        tools.iter().find(|tool| tool.name == name.trim_start_matches("oxidis-").trim_start_matches("redis-"))
    else {
        return run(name, &[]);
    };
    let page = manual(tool, &all, VERSION);
    if std::io::stdout().is_terminal() && through_man(&page) { 0 } else { print(&page) }
}

/// Whether `man` could show the page.
fn through_man(page: &str) -> bool {
    let child = Command::new("man").args(["-l", "-"]).stdin(Stdio::piped()).stderr(Stdio::null()).spawn();
    let Ok(mut child) = child else {
        return false;
    };
    if let Some(mut input) = child.stdin.take() {
        // The reader may leave before the end.
        let _ = input.write_all(page.as_bytes());
    }
    child.wait().is_ok_and(|status| status.success())
}

fn write_pages(folder: &Path, tools: &[&Tool]) -> i32 {
    if let Err(error) = std::fs::create_dir_all(folder) {
        return complain(&format!("cannot make the folder {}: {error}", folder.display()));
    }
    for tool in tools {
        let path = folder.join(format!("{}.1", tool.page_name()));
        if let Err(error) = std::fs::write(&path, manual(tool, tools, VERSION)) {
            return complain(&format!("cannot write {}: {error}", path.display()));
        }
    }
    0
}

/// The value of `--dir` and the operands of a small tool; help is shown here. The error is the exit code.
fn read(tool: &Tool, arguments: &[OsString]) -> Result<(Option<String>, Vec<String>), i32> {
    let program = format!("oxidis {}", tool.name);
    let mut reader = Reader::new(tool, arguments);
    let (mut folder, mut words) = (None, Vec::new());
    while let Some(item) = reader.read() {
        match item {
            Item::Option { value, .. } => folder = value.map(|value| String::from_utf8_lossy(&value).into_owned()),
            Item::Unknown(name) if matches!(name.as_str(), "-h" | "--help") => {
                return Err(print(&help(tool, &program, None, Look::of_stdout()).unwrap_or_default()));
            }
            Item::Word(word) => words.push(String::from_utf8_lossy(&word).into_owned()),
            wrong => return Err(complain(&format!("{}: {}", tool.name, wrong.complaint(tool)))),
        }
    }
    Ok((folder, words))
}

fn print(text: &str) -> i32 {
    // Nobody is left to tell if the pipe is closed.
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
    0
}

fn complain(text: &str) -> i32 {
    let _ = writeln!(std::io::stderr(), "oxidis: {text}");
    1
}
