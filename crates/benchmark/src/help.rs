//! `--help`, manual page and completion: by task, with examples. redis-benchmark's options first, then ours from their
//! table.

use std::borrow::Cow;

use ::options::{Look, Operands, Row, Rules, Section, Tool, Topic, Values, unlisted};

use crate::extended::DEFINITIONS;

/// The version of redis-benchmark whose behaviour is kept.
pub(crate) const REDIS_VERSION: &str = "7.2.5";

/// The help text; `task` picks one section.
pub(crate) fn text(program: &str, task: Option<&str>) -> String {
    let (tool, look) = (tool(), Look::of_stdout());
    let part = task.and_then(|task| ::options::help(&tool, program, Some(task), look));
    part.or_else(|| ::options::help(&tool, program, None, look)).unwrap_or_default()
}

/// The load generator as a tool.
#[must_use]
pub fn tool() -> Tool {
    let rows = COMPATIBLE.iter().map(|(spec, help)| row(spec, help)).chain(SILENT.iter().map(|spec| unlisted(spec)));
    let mut sections =
        vec![Section { name: "redis", title: "Options of redis-benchmark", rows: rows.collect(), is_long: false }];
    for definition in DEFINITIONS {
        if sections.iter().all(|section| section.name != definition.task) {
            let task = DEFINITIONS.iter().filter(|other| other.task == definition.task);
            let rows = task.map(|definition| row(definition.spec, definition.help)).collect();
            let title = heading(definition.task);
            sections.push(Section { name: definition.task, title, rows, is_long: false });
        }
    }
    Tool {
        name: "benchmark",
        links: &["redis-benchmark"],
        summary: "load generator for servers that speak the Redis protocol",
        usage: &["PROGRAM [OPTIONS] [COMMAND [ARGUMENT ...]]"],
        about: ABOUT,
        sections: Cow::Owned(sections),
        operands: Operands::None,
        rules: Rules::COMMAND,
        topics: TOPICS,
        examples: EXAMPLES,
        exit_codes: EXIT_CODES,
        ..Tool::EMPTY
    }
}

/// A row; what is understood for old scripts only is not shown.
fn row(spec: &'static str, help: &'static str) -> Row {
    let is_listed = help != "Not supported." && help != "The same.";
    let mut row = Row { spec, help: Cow::Borrowed(help), values: Values::Free, is_listed };
    let words = row.placeholder();
    if words.contains('|') {
        row.values = Values::Words(words.split('|').collect());
    } else if words == "FILE" || words == "PATH" {
        row.values = Values::Files;
    }
    row
}

fn heading(task: &str) -> &'static str {
    match task {
        "load" => "How much load, and when",
        "keys" => "Keys and values",
        "replay" => "Recorded traffic",
        "agents" => "Several load machines",
        "errors" => "Errors",
        "reports" => "Reports and checks",
        _ => "Machines",
    }
}

const COMPATIBLE: &[(&str, &str)] = &[
    ("-h HOST", "Server host (default 127.0.0.1)."),
    ("-p PORT", "Server port (default 6379)."),
    ("-s PATH", "Unix socket; wins over host and port."),
    ("-a PASSWORD", "Password."),
    ("--user NAME", "User name; needs -a."),
    ("-u URI", "redis://[[user:]password@]host[:port][/db]."),
    ("-c N", "Parallel connections (default 50)."),
    ("-n N", "Requests of all connections together (default 100000)."),
    ("-d BYTES", "Size of values (default 3)."),
    ("--dbnum N", "Database to select (default 0)."),
    ("-3", "Speak RESP3."),
    ("--threads N", "Event-loop threads (default: one)."),
    ("--cluster", "Spread over the primaries of a Redis Cluster; keys need {tag}."),
    ("--enable-tracking", "Send CLIENT TRACKING on first."),
    ("-k 0|1", "1 keeps connections (default), 0 opens one per batch."),
    ("-r N", "Replace each __rand_int__ by 12 digits in 0..N-1."),
    ("-P N", "Requests per batch, sent without waiting (default 1)."),
    ("-q", "One line per test."),
    ("--csv", "Comma-separated report."),
    ("--precision N", "Digits of the latency histogram (default 3)."),
    ("-l", "Repeat for ever."),
    ("-t LIST", "Only these tests; see --help tests."),
    ("-I", "Only open idle connections and wait."),
    ("-x", "Last argument of COMMAND from standard input."),
    ("--tls", "Encrypt the connections; so does a rediss:// URI."),
    ("--sni HOST", "Host name that the server is told."),
    ("--cacert FILE", "Certificates of trusted authorities; without it and --cacertdir those of the system."),
    ("--cacertdir FOLDER", "The same, as files of a folder."),
    ("--insecure", "Trust any certificate."),
    ("--tls-verify-host NAME", "The server's certificate must be made for this host, too."),
    ("--cert FILE", "Certificate to show to the server."),
    ("--key FILE", "Its key."),
    ("--tls-ciphers LIST", "Ciphers of TLS 1.2, by OpenSSL's names."),
    ("--tls-ciphersuites LIST", "Ciphers of TLS 1.3."),
    ("--seed N", "Seed of the random numbers."),
    ("--help [SECTION]", "This text, or one section of it."),
    ("-v, --version", "Version."),
];

/// Understood, but of no effect, as in redis-benchmark.
const SILENT: &[&str] = &["-e"];

const ABOUT: &str = "Measures a server that speaks the Redis protocol. Without a COMMAND the default tests run.";

const TOPICS: &[Topic] = &[
    Topic { name: "tests", title: "Tests for -t, in the order in which they run", text: TESTS },
    Topic { name: "mix", title: "Mixes of commands", text: MIX },
];

const TESTS: &str = "\
  ping (ping_inline, ping_mbulk) set get incr lpush rpush lpop rpop sadd hset spop
  zadd zpopmin lrange (lrange_100, lrange_300, lrange_500, lrange_600) mset xadd
Only by name: mget function_load fcall
";

const EXIT_CODES: &[(&str, &str)] = &[
    ("0", "All is well."),
    ("1", "A mistake in the options, no connection, or the first error reply."),
    ("3", "An assertion or the baseline does not hold."),
    ("4", "More errors than allowed."),
    ("5", "An agent was lost; the report covers what is known."),
    ("130", "Interrupted; the report covers what was done."),
];

const EXAMPLES: &[(&str, &str)] = &[
    (
        "PROGRAM -t set,get -n 1000000 -c 100 -P 16 -r 1000000 -q",
        "Fast writes and reads of a million keys, two lines of output.",
    ),
    (
        "PROGRAM --duration 30s --warmup 5s --rate 20000 -t get -r 1000000",
        "What users see at a steady 20,000 requests per second.",
    ),
    (
        "PROGRAM --find-max 'p99<2ms,err<0.1%' --mix set=1,get=9 -r 100000",
        "The highest rate at which 99% of the answers come within 2 ms.",
    ),
    (
        "PROGRAM -t set --output json --output-file now.json --baseline old.json",
        "A report for machines; exit code 3 if it is worse than the last.",
    ),
    (
        "PROGRAM -t set,get -n 100000 -r 100000 -d 64 --verify --on-error count --cleanup",
        "Are all values what was written? Deletes them afterwards.",
    ),
    (
        "PROGRAM --agents a:7701,b:7701 --token-file F -h SERVER -c 80000 -t get --yes",
        "Two load machines, each with --agent 0.0.0.0:7701 --token-file F, and one report.",
    ),
    ("PROGRAM --replay traffic.log --speed 2", "What --record or MONITOR have written, at twice the pace."),
    ("PROGRAM -r 100000 -n 100000 hset 'user:__rand_int__' name Ada", "Any command of your own."),
];

const MIX: &str = "\
A mix draws each request by weight. --mix names tests of the suite; --op adds
operations with settings of their own:
  --op 'NAME [weight=N] [keys=KIND] [key-min=N] [key-max=N] [size=BYTES]
        [ttl=TIME] [command=WORDS]'
NAME is a test of the suite unless there is a command; what is not set is that
of the whole run. The same as tables of a workload file (--script), below the phase
they belong to:
  [run]
  duration = \"60s\"
  keyspace = 1_000_000
  [run.get]
  weight = 9
  keys = \"zipf:0.99\"
  [run.write]
  command = \"SET user:__rand_int__ __data__ EX __ttl__\"
  size = \"100-1000\"
  ttl = \"60s-120s\"
";

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::options::{Parsed, parse};

    /// Each row is read, and each name that code reads has a row.
    #[test]
    fn table_and_code_agree() {
        let tool = tool();
        for name in tool.rows().flat_map(Row::names) {
            let row = tool.find(name).unwrap();
            let words: Vec<_> = if row.needs_value() { vec![name, "1"] } else { vec![name] };
            let words: Vec<std::ffi::OsString> = words.into_iter().map(Into::into).collect();
            assert!(!matches!(parse(&words), Parsed::Invalid(_)), "{name} is in the table, but not read");
        }
        for code in [include_str!("options.rs"), include_str!("extended/apply.rs")] {
            let arms = code.lines().filter(|line| line.contains("=>") || line.trim_start().starts_with("| \""));
            let names = arms.flat_map(|line| line.split("=>").next().unwrap_or(line).split('"').skip(1).step_by(2));
            for name in names.filter(|name| name.len() > 1 && name.starts_with('-') && *name != "--") {
                assert!(tool.find(name).is_some(), "{name} is read, but not in the table");
            }
        }
    }
}
