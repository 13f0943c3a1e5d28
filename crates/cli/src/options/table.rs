//! The options of the client, by task: what is read, shown, documented and completed.

use std::borrow::Cow;

use ::options::{Operands, Row, Rules, Section, Tool, Word, choice, file, row, section, unlisted};
use commands::table;

/// The release of redis-cli that scripts may look for, then ours.
pub(crate) const VERSION: &str = concat!("redis-cli 7.2.5 (oxidis ", env!("CARGO_PKG_VERSION"), ")");

/// The client as a tool, without the words that may follow the options.
pub(crate) const CLIENT: Tool = Tool {
    name: "cli",
    links: &["redis-cli"],
    summary: "client for servers that speak the Redis protocol",
    usage: &["PROGRAM [OPTIONS] [COMMAND [ARGUMENT ...]]"],
    about: "With a command: runs it and prints the reply. Without: asks for commands, or reads them from standard \
            input, one a line.",
    sections: Cow::Borrowed(SECTIONS),
    operands: Operands::None,
    rules: Rules::COMMAND,
    topics: &[],
    examples: &[
        ("PROGRAM set greeting hello", "Runs a command."),
        ("cat picture | PROGRAM -x set picture", "Its last argument comes from standard input."),
        ("PROGRAM -r 100 -i 1 info stats | grep ops_per_sec", "The same command each second."),
        ("PROGRAM --scan --pattern 'user:*' --count 1000", "Lists keys without stopping the server."),
        ("PROGRAM -c --bigkeys --top 5 --json", "The five biggest keys of each type of a whole cluster."),
        ("PROGRAM --eval script.lua key1 key2 , argument1", "Runs the script of a file."),
        ("PROGRAM --json-strict hgetall user:1 | jq .", "A reply for programs."),
        ("PROGRAM --profile prod", "The prompt, with the options of a line of ~/.oxidis_profiles."),
    ],
    environment: &[
        ("REDISCLI_AUTH", "Password, if no option gives one."),
        ("REDISCLI_HISTFILE", "History of the prompt instead of ~/.rediscli_history; /dev/null: none."),
        ("REDISCLI_RCFILE", "Preferences of the prompt instead of ~/.redisclirc; /dev/null: none."),
        ("REDISCLI_CLUSTER_YES", "1 is the same as --cluster-yes."),
        ("OXIDIS_PROFILES", "Profiles instead of ~/.oxidis_profiles."),
        ("PAGER", "Program for long replies after ':set pager' (less -R)."),
        ("NO_COLOR", "No colours at the prompt."),
        ("FAKETTY", "Replies as on a terminal, wherever they go."),
        ("VALKEYCLI_...", "The same as REDISCLI_..., which wins."),
    ],
    files: &[
        ("~/.rediscli_history", "The last 100 lines of the prompt, without passwords."),
        ("~/.redisclirc", "Lines such as ':set nohints', run when the prompt starts."),
        ("~/.oxidis_profiles", "A line per profile: its name, then options."),
    ],
    exit_codes: &[
        ("0", "The command ran, also if the reply is an error."),
        ("1", "No connection, a mistake in the command line, an error reply with -e, errors with --pipe."),
    ],
};

/// The client with all commands of the server, for completion.
#[must_use]
pub fn tool() -> Tool {
    let words = table::top_level().map(|command| {
        let subcommand = |other: &&'static table::CommandSpec| {
            other.name.strip_prefix(command.name).is_some_and(|rest| rest.starts_with('|'))
        };
        Word {
            name: command.name.to_owned(),
            summary: command.docs.summary.to_owned(),
            next: table::all().filter(subcommand).map(|command| command.short_name().to_owned()).collect(),
        }
    });
    let mut words: Vec<Word> = words.collect();
    words.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    Tool { operands: Operands::Words(words), ..CLIENT }
}

const SECTIONS: &[Section] = &[
    section("connect", "Connect", CONNECT),
    section("run", "Run a command", RUN),
    section("show", "Show replies", SHOW),
    section("look", "Look at a server", LOOK),
    section("write", "Write much", WRITE),
    section("cluster", "Look at a cluster", CLUSTER),
    section("help", "Help", HELP),
];

const CONNECT: &[Row] = &[
    row("-h <host>", "Host (127.0.0.1). As the last word: this help."),
    row("-p <port>", "Port (6379)."),
    file("-s <path>", "Unix socket instead of host and port."),
    row("-u <uri>", "redis://[[user:]password@]host[:port][/database], or rediss:// for TLS."),
    row(
        "-a, --pass <word>",
        "Password. Better: REDISCLI_AUTH in the environment, --pass-file or --askpass, which no list of processes shows.",
    ),
    file("--pass-file <file>", "Password from the first line of a file."),
    row("--askpass", "Asks for the password."),
    row("--user <name>", "User of the password."),
    row("--no-auth-warning", "No warning about -a and -u."),
    row("-n <database>", "Database number (0)."),
    row("--name <name>", "CLIENT SETNAME after connecting."),
    row("-2", "Speak RESP2."),
    row("-3", "Speak RESP3."),
    row("-4", "Use IPv4 only."),
    row("-6", "Use IPv6 only."),
    row("-t <seconds>", "Give up connecting after that time."),
    row("-c", "Follow MOVED and ASK of a cluster; walks through keys visit all primaries."),
    row("--legacy-connect", "Run the command even if AUTH or SELECT failed."),
    row("--tls", "Encrypt the connection; so does a rediss:// URI."),
    row("--sni <host>", "Host name that the server is told."),
    file("--cacert <file>", "Certificates of trusted authorities; without it and --cacertdir those of the system."),
    file("--cacertdir <folder>", "The same, as files of a folder."),
    row("--insecure", "Trust any certificate."),
    row("--tls-verify-host <name>", "The server's certificate must be made for this host, too."),
    file("--cert <file>", "Certificate to show to the server."),
    file("--key <file>", "Its key."),
    row("--tls-ciphers <list>", "Ciphers of TLS 1.2, by OpenSSL's names."),
    row("--tls-ciphersuites <list>", "Ciphers of TLS 1.3."),
];

const RUN: &[Row] = &[
    row("-r <count>", "Run it that often; -1 for ever."),
    row("-i <seconds>", "Wait between runs, SCANs, samples; may be a fraction."),
    row("-x", "Standard input is one more argument."),
    row("-X <tag>", "Standard input replaces the argument that equals <tag>."),
    row("--quoted-input", "Arguments are quoted strings: '\"a\\x00b\"'."),
    row("-e", "An error reply goes to standard error; exit code 1."),
    file(
        "--eval <file> [key ...] [, argument ...]",
        "EVAL the script of a file. Mind the spaces at the comma between keys and arguments.",
    ),
    row("--readonly", "Refuse commands that write."),
    row("--profile <name>", "Options of that line of ~/.oxidis_profiles. Options behind it win."),
    row("--red-prompt", "A red prompt, for servers where mistakes hurt."),
    row("--yes", "No questions before dangerous commands."),
    unlisted("--ldb"),
    unlisted("--ldb-sync-mode"),
];

const SHOW: &[Row] = &[
    row("--no-raw", "For eyes: types, quotes, numbered elements. The default on a terminal."),
    row("--raw", "Bytes alone. The default in a pipe."),
    row("-d <text>", "In raw replies: between elements (a line end)."),
    row("-D <text>", "In raw replies: behind each (a line end)."),
    row("--csv", "Comma-separated values as redis-cli writes them."),
    row("--csv-strict", "Comma-separated values of RFC 4180."),
    row("--json", "JSON in RESP3's types; an error stands as error:\"...\"."),
    row("--quoted-json", "The same, with everything but printable ASCII as \\xHH."),
    row("--json-strict", "JSON for every parser; an error is {\"error\":\"...\"}."),
    row("--ndjson", "The same, one line per element."),
    choice(
        "--decode <name>",
        crate::format::Decoder::NAMES,
        "How strings are shown to eyes: utf8, json, msgpack, hex or none.",
    ),
    choice("--show-pushes <y|n>", &["yes", "no"], "Show messages that answer no command."),
    row("--verbose", "Say more: reply attributes, connection steps."),
];

const LOOK: &[Row] = &[
    row("--stat", "Keys, memory, clients, requests, every -i seconds (1)."),
    row("--latency", "Round trips of PING: for ever on a terminal, else for -i seconds (1)."),
    row("--latency-history", "The same, a new line every -i seconds (15)."),
    row("--latency-dist", "As a coloured spectrum."),
    row("--mono", "The spectrum in shades of grey."),
    row("--latency-percentiles", "Adds percentiles, and fractions of milliseconds."),
    row("--intrinsic-latency <seconds>", "How long this machine stops a busy process."),
    row("--bigkeys", "Biggest key of each type by number of elements."),
    row("--memkeys", "Biggest key of each type by memory."),
    row("--memkeys-samples <n>", "The same, looking at n elements of each key (5)."),
    row("--keystats", "Both at once, and how sizes are distributed."),
    row("--keystats-samples <n>", "The same, looking at n elements of each key (5)."),
    row("--hotkeys", "Most used keys; needs an LFU policy."),
    row("--hotkeys-count <n>", "That many (16)."),
    row("--top <n>", "Lists n keys at the end: per type, or of all with --keystats (10)."),
    row("--scan", "Lists keys."),
    row("--pattern <glob>", "Only keys that match."),
    row("--quoted-pattern <glob>", "The same in quotes: '\"a\\x00*\"'."),
    row("--count <n>", "COUNT of SCAN (10)."),
    row("--cursor <n>", "Start SCAN there (0)."),
    row("--replica", "Shows what a primary sends its replicas."),
    unlisted("--slave"),
    row("--rdb <file>", "Fetches a snapshot; '-' is standard output."),
    row("--functions-rdb <file>", "The same, functions only."),
    unlisted("--vset-recall <key>"),
    unlisted("--vset-recall-count <n>"),
    unlisted("--vset-recall-ef <n>"),
    unlisted("--vset-recall-ele <n>"),
];

const WRITE: &[Row] = &[
    row("--pipe", "Sends the protocol read from standard input."),
    row("--pipe-timeout <seconds>", "Wait that long without a reply at the end (30); 0: for ever."),
    row("--lru-test <keys>", "Cache workload with an 80-20 distribution, for ever."),
];

const CLUSTER: &[Row] = &[
    choice(
        "--cluster <subcommand> [argument ...]",
        &["check", "info", "call", "backup", "help"],
        "check <host:port>: do the nodes agree, has every slot a node? info <host:port>: keys, slots and replicas of \
         the primaries. call <host:port> command ...: the reply of each node. backup <host:port> <folder>: a snapshot of \
         each primary. help: more about these. What changes a cluster is not available yet.",
    ),
    row("--cluster-only-masters, --cluster-only-primaries", "call: only primaries."),
    row("--cluster-only-replicas", "call: only replicas."),
    row("--cluster-search-multiple-owners", "check: also look for slots whose keys are on several nodes."),
    unlisted("--cluster-yes"),
    unlisted("--cluster-replicas <n>"),
    unlisted("--cluster-master-id, --cluster-primary-id <id>"),
    unlisted("--cluster-from <ids>"),
    unlisted("--cluster-to <id>"),
    unlisted("--cluster-slots <n>"),
    unlisted("--cluster-timeout <ms>"),
    unlisted("--cluster-pipeline <n>"),
    unlisted("--cluster-threshold <percent>"),
    unlisted("--cluster-weight <weights>"),
    unlisted("--cluster-from-user <user>"),
    unlisted("--cluster-from-pass <word>"),
    unlisted("--cluster-from-askpass"),
    unlisted("--cluster-simulate"),
    unlisted("--cluster-replace"),
    unlisted("--cluster-copy"),
    unlisted("--cluster-slave, --cluster-replica"),
    unlisted("--cluster-use-empty-masters, --cluster-use-empty-primaries"),
    unlisted("--cluster-fix-with-unreachable-masters, --cluster-fix-with-unreachable-primaries"),
];

const HELP: &[Row] = &[row("--help", "This help."), row("-v, --version", "The version.")];
