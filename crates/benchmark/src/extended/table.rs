//! The table of options beyond redis-benchmark 7.2, from which reading and `--help` follow.

/// A line of the option table.
#[derive(Debug)]
pub(crate) struct Definition {
    /// `--name`.
    pub(crate) name: &'static str,
    /// The name and its value, as the help shows them.
    pub(crate) spec: &'static str,
    /// Help task under which it is shown.
    pub(crate) task: &'static str,
    /// One sentence of help.
    pub(crate) help: &'static str,
}

/// Whether the option called `name` is one of this table.
pub(crate) fn is_ours(name: &str) -> bool {
    DEFINITIONS.iter().any(|definition| definition.name == name)
}

macro_rules! definitions {
    ($($task:literal { $($name:literal $value:literal $help:literal)* })*) => {
        /// All options of this table, in the order of the help.
        pub(crate) const DEFINITIONS: &[Definition] = &[
            $($(Definition {
                name: $name,
                spec: concat!($name, " ", $value),
                task: $task,
                help: $help,
            },)*)*
        ];
    };
}

definitions! {
    "load" {
        "--duration" "TIME" "Run for a time instead of a number of requests."
        "--warmup" "TIME" "Run this long before anything is counted."
        "--cooldown" "TIME" "Go on this long after the measured part; needs --duration."
        "--rate" "N" "Open loop: N requests per second whatever the server does."
        "--arrival" "KIND" "Gaps of --rate: fixed or poisson."
        "--max-backlog" "N" "Drop scheduled requests when N wait (default 1000000)."
        "--rps" "N" "Closed loop of at most N requests per second."
        "--rate-steps" "LIST" "Run at each of these rates, e.g. 10k,20k,50k."
        "--ramp-clients" "A:B:STEP:T" "Run with A clients, A+STEP, … B, each for the time T."
        "--find-max" "SLO" "Search the highest rate that meets e.g. 'p99<2ms,err<0.1%'."
        "--per-client" "N" "Each client sends N requests; the total is -c times N."
        "--script" "FILE" "Workload file: phases with options of their own (TOML)."
        "--timeout" "TIME" "Count a request as failed after this time and reconnect."
    }
    "keys" {
        "--keys" "KIND" "uniform, seq, seq-per-client, unique, zipf:S, gauss:SD, latest or hot:P%:K%."
        "--sequential" "" "The same as --keys seq."
        "--key-min" "N" "First key number (default 0)."
        "--key-max" "N" "Last key number; instead of -r."
        "--key-prefix" "TEXT" "Put before every key of the suite."
        "--hash-tag" "HOW" "spread: {tag} in the suite's keys, over all slots; none (default without --cluster)."
        "--spread" "" "Also give lists, sets, hashes, zsets and streams many keys."
        "--mix" "LIST" "Weighted mix of suite tests, e.g. set=1,get=9."
        "--op" "TEXT" "An operation of the mix with settings of its own; see --help mix."
        "--size" "BYTES" "Value sizes: N, A-B or a list A,B,C."
        "--value" "KIND" "fixed, random or compressible:SHARE."
        "--ttl" "TIME" "SET keys that live so long: 60s, or 1m-5m; __ttl__ in a command: its seconds."
        "--verify" "" "Write values with a checksum, and check those that GET brings back."
        "--dataset" "FILE" "CSV or TSV whose rows fill __field:NAME__ in a command."
        "--maxdocs" "N" "Take at most N rows of the dataset."
        "--num-functions" "N" "Functions of the tests function_load and fcall (default 10)."
        "--num-keys-in-fcall" "N" "Keys of a function call (default 1)."
    }
    "replay" {
        "--record" "FILE" "Record what other clients send to the server (MONITOR), for --duration."
        "--replay" "FILE" "Send recorded commands: a MONITOR log, an AOF, or a file of --record."
        "--speed" "X" "Replay X times as fast as recorded (default 1), or max: as the server answers."
    }
    "agents" {
        "--agent" "ADDRESS" "Wait for jobs of a coordinator: a port (on loopback) or address:port."
        "--agents" "LIST" "Share the load among these agents: host:port,host:port=WEIGHT,…"
        "--token-file" "FILE" "Secret that agents and coordinator share; needed off loopback."
        "--allow-target" "LIST" "Agent: load only these servers: address, address:port or network/bits:port."
        "--tolerate-agents" "N" "Go on when up to N agents are lost (default 0: stop); exit code 5 anyway."
        "--force" "" "Run although an agent is found unfit."
    }
    "errors" {
        "--on-error" "WHAT" "stop (default), count or reconnect."
        "--max-errors" "N" "Exit 4 after more errors than N, or N% of the requests."
    }
    "reports" {
        "--output" "FORMAT" "text (default), json, csv, csv-ext, md or html."
        "--output-file" "FILE" "Write the report there."
        "-o" "FILE" "The same."
        "--percentiles" "LIST" "Percentiles of the json, csv-ext, md and html reports."
        "--timeline" "TIME" "Add a row per interval to the json and html report."
        "--hdr-log" "FILE" "Write an HdrHistogram log, one tagged line per test and second."
        "--tui" "WHEN" "Live view on the terminal: auto, yes or no (default). Keys: q ends, p pauses, h helps."
        "--prometheus" "ADDRESS" "Serve metrics there (a bare port: on loopback)."
        "--progress" "WHEN" "always (default, on stdout), tty (on stderr) or never."
        "--assert" "COND" "Exit 3 unless e.g. 'p99<2ms', 'tps>50000', 'errors==0'."
        "--baseline" "FILE" "Compare with an earlier json report; exit 3 if worse."
        "--max-regress" "PERCENT" "Loss that --baseline allows (default 5)."
        "--fairness" "" "Requests per client: min, median, max, Jain index (always past -c 10230)."
        "--legacy-latency" "" "With -P: one latency for the whole batch, as Redis 7.2."
        "--legacy-output" "4" "Report as redis-benchmark of Redis 4."
        "--legacy-output=4" "" "The same."
    }
    "machine" {
        "--source" "LIST" "Local addresses to connect from, in turn: A,B or A-B."
        "--source-ip" "LIST" "The same."
        "--connect-rate" "N" "Open at most N connections per second."
        "--hold" "TIME" "Keep the connections open so long after each test."
        "--server-pid" "PID" "Report the CPU time per request of this process on this machine."
        "--target" "LIST" "Several servers host:port."
        "--target-policy" "HOW" "Clients go to the targets in turn (rr, default) or in blocks (split)."
        "--pin" "CPUS" "Pin the threads to these CPUs, e.g. 0-3,6."
        "--mptcp" "" "Connect by Multipath TCP."
        "--rfr" "WHICH" "Cluster: send to replicas (yes), to all nodes (all) or to primaries (no, default)."
        "--cleanup" "" "Delete the keys of the tests at the end."
        "--yes" "" "Writing to another machine, or flushing, is meant."
        "--self-check" "" "Measure what the generator itself costs on this machine, and end."
        "--rdma" "" "Not supported."
        "--fuzz" "" "Not supported."
        "--fuzz-loglevel" "LEVEL" "Not supported."
        "--fuzz-mode" "MODE" "Not supported."
    }
}

/// Options that Valkey's generator has too: with them alone a run is none of our own kinds.
pub(super) const VALKEY: &[&str] = &[
    "--duration",
    "--warmup",
    "--rps",
    "--rfr",
    "--sequential",
    "--dataset",
    "--maxdocs",
    "--num-functions",
    "--num-keys-in-fcall",
    "--mptcp",
];
