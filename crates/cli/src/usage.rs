//! `--help` and `--version`.

/// The answer to `--version`: the release of redis-cli that scripts may look for, then ours.
pub(crate) const VERSION: &str = concat!("redis-cli 7.2.5 (oxidis ", env!("CARGO_PKG_VERSION"), ")");

/// The answer to `--help`.
pub(crate) const HELP: &str = r#"Usage: oxidis cli [OPTIONS] [command [argument ...]]
       redis-cli [OPTIONS] [command [argument ...]]

With a command: runs it and prints the reply. Without: asks for commands, or
reads them from standard input, one a line.

Connect
  -h <host>            Host (127.0.0.1). As the last word: this help.
  -p <port>            Port (6379).
  -s <path>            Unix socket instead of host and port.
  -u <uri>             redis://[[user:]password@]host[:port][/database]
  -a, --pass <word>    Password. Better: REDISCLI_AUTH in the environment,
                       --pass-file or --askpass.
  --pass-file <file>   Password from the first line of a file.
  --askpass            Asks for the password.
  --user <name>        User of the password.
  --no-auth-warning    No warning about -a and -u.
  -n <database>        Database number (0).
  --name <name>        CLIENT SETNAME after connecting.
  -2, -3               Speak RESP2 or RESP3.
  -4, -6               Use IPv4 or IPv6 only.
  -t <seconds>         Give up connecting after that time.
  -c                   Follow MOVED and ASK of a cluster.
  --legacy-connect     Run the command even if AUTH or SELECT failed.

Run a command
  -r <count>           Run it that often; -1 for ever.
  -i <seconds>         Wait between runs, SCANs, samples; may be a fraction.
  -x                   Standard input is one more argument.
  -X <tag>             Standard input replaces the argument that equals <tag>.
  --quoted-input       Arguments are quoted strings: '"a\x00b"'.
  -e                   An error reply goes to standard error; exit code 1.
  --eval <file> [key ...] [, argument ...]
                       EVAL the script of a file. Mind the spaces at the comma.
  --readonly           Refuse commands that write.
  --profile <name>     Options of that line of ~/.oxidis_profiles.
  --red-prompt         A red prompt, for servers where mistakes hurt.
  --yes                No questions before dangerous commands.

Show replies
  --no-raw, --raw      For eyes (default on a terminal), or bytes alone.
  -d, -D <text>        In raw replies: between elements, behind replies.
  --csv, --csv-strict  Redis's comma-separated values, or RFC 4180.
  --json, --quoted-json
                       JSON; errors stand as error:"...".
  --json-strict, --ndjson
                       JSON for every parser; one line per element.
  --decode <name>      Show strings as utf8, json, msgpack or hex (for eyes).
  --show-pushes <y|n>  Show messages that answer no command.
  --verbose            Say more: reply attributes, connection steps.

Look at a server
  --stat               Keys, memory, clients, requests, every -i seconds (1).
  --latency            Round trips of PING, for ever on a terminal, else for
                       -i seconds (1).
  --latency-history    The same, a new line every -i seconds (15).
  --latency-dist       As a coloured spectrum; --mono for shades of grey.
  --latency-percentiles
                       Adds percentiles, and fractions of milliseconds.
  --intrinsic-latency <seconds>
                       How long this machine stops a busy process.
  --bigkeys            Biggest key of each type by number of elements.
  --memkeys            Biggest key of each type by memory.
  --memkeys-samples <n>
                       The same, looking at n elements of each key.
  --hotkeys            Most used keys; needs an LFU policy.
  --hotkeys-count <n>  That many (16).
  --top <n>            Lists n keys per type at the end.
  --scan               Lists keys.
  --pattern, --quoted-pattern <glob>
                       Keys that match only.
  --count <n>          COUNT of SCAN (10).
  --cursor <n>         Start SCAN there (0).

Write much
  --pipe               Sends the protocol read from standard input.
  --pipe-timeout <s>   Seconds without replies at the end (30); 0 for ever.
  --lru-test <keys>    Cache workload with an 80-20 distribution, for ever.

Look at a cluster
  --cluster check|info <host:port>
  --cluster call <host:port> command [argument ...]
  --cluster help       All about --cluster.

  --help               This help.
  --version            The version.

Examples
  redis-cli set greeting hello
  cat picture | redis-cli -x set picture
  redis-cli -r 100 -i 1 info stats | grep ops_per_sec
  redis-cli --scan --pattern 'user:*' --count 1000
  redis-cli --eval script.lua key1 key2 , argument1
  redis-cli --json hgetall user:1 | jq .
"#;
