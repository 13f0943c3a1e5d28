//! `--help`: by task, with examples. redis-benchmark's options first, then ours from their table.

use std::fmt::Write as _;

use crate::extended::DEFINITIONS;

/// The version of redis-benchmark whose behaviour is kept.
pub(crate) const REDIS_VERSION: &str = "7.2.5";

/// The help text; `task` picks one section.
pub(crate) fn text(program: &str, task: Option<&str>) -> String {
    match task {
        Some("tests") => return TESTS.to_owned(),
        Some("mix") => return MIX.to_owned(),
        Some("examples") => return EXAMPLES.replace("PROGRAM", program),
        Some(task) if DEFINITIONS.iter().any(|definition| definition.task == task) => {
            return section(task);
        }
        _ => {}
    }
    let mut out = format!(
        "Usage: {program} [OPTIONS] [COMMAND ARGS...]\n\n\
         Measures a server that speaks the Redis protocol. Without a COMMAND the default tests run.\n\n\
         Options of redis-benchmark {REDIS_VERSION}:\n"
    );
    for (option, help) in COMPATIBLE {
        let _ = writeln!(out, "  {option:<24} {help}");
    }
    let mut shown: Vec<&str> = Vec::new();
    for definition in DEFINITIONS {
        if !shown.contains(&definition.task) {
            shown.push(definition.task);
            out.push('\n');
            out.push_str(&section(definition.task));
        }
    }
    out.push('\n');
    out.push_str(&EXAMPLES.replace("PROGRAM", program));
    let _ = write!(
        out,
        "\nOne section only: --help load, keys, replay, agents, errors, reports, machine, tests, mix or examples.\n"
    );
    out
}

fn section(task: &str) -> String {
    let mut out = format!("{}:\n", heading(task));
    for definition in DEFINITIONS.iter().filter(|definition| {
        definition.task == task && definition.help != "Not supported." && definition.help != "The same."
    }) {
        let option = format!("{} {}", definition.name, definition.value);
        let _ = writeln!(out, "  {:<24} {}", option.trim_end(), definition.help);
    }
    out
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
    ("--seed N", "Seed of the random numbers."),
    ("--help [SECTION]", "This text, or one section of it."),
    ("-v, --version", "Version."),
];

const TESTS: &str = "\
Tests for -t, in the order in which they run:
  ping (ping_inline, ping_mbulk) set get incr lpush rpush lpop rpop sadd hset spop
  zadd zpopmin lrange (lrange_100, lrange_300, lrange_500, lrange_600) mset xadd
Only by name: mget function_load fcall
";

const MIX: &str = "\
A mix draws each request by weight. --mix names tests of the suite; --op adds operations with settings of their own:
  --op 'NAME [weight=N] [keys=KIND] [key-min=N] [key-max=N] [size=BYTES] [ttl=TIME] [command=WORDS]'
NAME is a test of the suite unless there is a command; what is not set is that of the whole run. The same as tables of a
workload file (--script), below the phase they belong to:
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

const EXAMPLES: &str = "\
Examples:
  PROGRAM -t set,get -n 1000000 -c 100 -P 16 -r 1000000 -q
      Fast writes and reads of a million keys, two lines of output.
  PROGRAM --duration 30s --warmup 5s --rate 20000 -t get -r 1000000
      What users see at a steady 20,000 requests per second.
  PROGRAM --find-max 'p99<2ms,err<0.1%' --mix set=1,get=9 -r 100000 --keys zipf:0.99
      The highest rate at which 99% of the answers come within 2 ms.
  PROGRAM --output json --output-file now.json --baseline before.json -t set
      A report for machines; exit code 3 if it is worse than the last.
  PROGRAM -t set,get -n 100000 -r 100000 -d 64 --verify --on-error count --cleanup
      Are all values what was written? Deletes them afterwards.
  PROGRAM --agents 10.0.0.1:7701,10.0.0.2:7701 --token-file secret -h 10.0.0.9 -c 80000 --duration 60s -t get --yes
      Two load machines, each with PROGRAM --agent 0.0.0.0:7701 --token-file secret, and one report.
  PROGRAM --record traffic.log --duration 60s ; PROGRAM --replay traffic.log --speed 2 -p 7000
      What was sent to one server, at twice the pace to another.
  PROGRAM -r 100000 -n 100000 hset 'user:__rand_int__' name Ada
      Any command of your own.
";
