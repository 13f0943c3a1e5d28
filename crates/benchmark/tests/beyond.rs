//! What redis-benchmark cannot do, against Debian's redis-server.
#![allow(clippy::unwrap_used)]

mod support;

use std::{thread, time::Duration};

use serde_json::Value;
use support::{Redis, ours, ours_with, shape, spawn_ours, theirs, words};

fn json(redis: &Redis, options: &str) -> Value {
    let output = ours(redis.port, &format!("--output json {options}"));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[test]
fn a_frozen_server_shows_in_the_response_time() {
    let redis = Redis::start(&["--enable-debug-command", "yes"]);
    let child = spawn_ours(redis.port, "--output json --rate 1000 --duration 3s -c 20 get x");
    thread::sleep(Duration::from_millis(1_000));
    redis.ask(&["DEBUG", "SLEEP", "1.2"]);
    let output = child.wait_with_output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let test = &report["tests"][0];
    // A third of the schedule waited up to 1.2 s, but only the 20 requests under way when the
    // server froze took long once they were sent.
    let response = test["response"]["p90"].as_f64().unwrap();
    let service = test["service"]["p90"].as_f64().unwrap();
    assert!(response > 500.0, "{test:#}");
    assert!(service < 300.0, "{test:#}");
    assert!(test["requests"].as_u64().unwrap() > 2_500, "{test:#}");
}

#[test]
fn errors_are_counted_by_class() {
    let redis = Redis::start(&[]);
    redis.ask(&["SET", "text", "x"]);
    let output = ours(redis.port, "--on-error count --output json -n 50 incr text");
    assert_eq!(output.status.code(), Some(4));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["tests"][0]["errors"]["ERR"]["count"], 50);
    assert_eq!(report["tests"][0]["requests"], 50);
    let within = ours(redis.port, "--on-error count --max-errors 50 -q -n 50 incr text");
    assert!(within.status.success());
    redis.ask(&["LPUSH", "list", "x"]);
    let report = json(&redis, "--on-error count -n 5 get list");
    assert_eq!(report["tests"][0]["errors"]["WRONGTYPE"]["count"], 5);
}

#[test]
fn a_restart_of_the_server_is_survived() {
    let mut redis = Redis::start(&[]);
    let child = spawn_ours(redis.port, "--output json --on-error reconnect --duration 3s -c 10 set a b");
    thread::sleep(Duration::from_millis(800));
    redis.restart();
    let output = child.wait_with_output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e} {output:?}"));
    let test = &report["tests"][0];
    assert!(test["errors"]["reset"]["count"].as_u64().unwrap() >= 1, "{test:#}");
    assert!(redis.calls("set") > 100, "it went on after the restart");
}

#[test]
fn a_server_that_goes_away_ends_the_run() {
    let mut redis = Redis::start(&[]);
    let child = spawn_ours(redis.port, "-q --duration 20s set a b");
    thread::sleep(Duration::from_millis(500));
    redis.stop();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.starts_with("Error: "), "{text}");
}

#[test]
fn time_bounds_and_intervals() {
    let redis = Redis::start(&[]);
    let report = json(&redis, "--duration 600ms --warmup 200ms --timeline 100ms -c 4 get x");
    let test = &report["tests"][0];
    let seconds = test["seconds"].as_f64().unwrap();
    assert!((0.59..0.75).contains(&seconds), "{seconds}");
    let timeline = test["timeline"].as_array().unwrap();
    assert!((2..=7).contains(&timeline.len()), "{timeline:?}");
    let sum: f64 = timeline.iter().map(|row| row["tps"].as_f64().unwrap()).sum();
    assert!(sum > 0.0);
}

#[test]
fn a_mix_has_a_row_for_each_command() {
    let redis = Redis::start(&[]);
    let report = json(&redis, "--mix set=1,get=3 -n 4000 -P 4 -r 100");
    let rows = report["tests"][0]["per_op"].as_array().unwrap();
    let requests = |at: usize| rows[at]["requests"].as_u64().unwrap();
    assert_eq!(requests(0) + requests(1), 4_000);
    assert!((800..1_200).contains(&requests(0)), "{}", requests(0));
    assert_eq!(redis.calls("set"), requests(0));
}

#[test]
fn several_commands_in_a_row() {
    let redis = Redis::start(&[]);
    let options = words("-n 40 -c 1 -q set a 1 ; 3 incr a");
    assert!(ours_with(redis.port, &options, "").status.success());
    assert_eq!((redis.calls("set"), redis.calls("incr")), (10, 30));
}

#[test]
fn value_sizes_and_kinds() {
    let redis = Redis::start(&[]);
    ours(redis.port, "-q -n 300 -r 300 --keys seq --size 5,50 --value random -t set");
    let lengths: Vec<String> = (0..300).map(|key| redis.ask(&["STRLEN", &format!("key:{key:012}")])).collect();
    assert!(lengths.iter().all(|length| length == ":5" || length == ":50"));
    assert!(lengths.iter().any(|length| length == ":5"));
    assert!(lengths.iter().any(|length| length == ":50"));
    let (one, two) = (redis.ask(&["GET", "key:000000000000"]), redis.ask(&["GET", "key:000000000001"]));
    assert_ne!(one.as_bytes()[..5], two.as_bytes()[..5]);
}

#[test]
fn assertions_set_the_exit_code() {
    let redis = Redis::start(&[]);
    assert!(ours(redis.port, "-q -n 100 --assert p99<10s,errors==0 get x").status.success());
    let failed = ours(redis.port, "-q -n 100 --assert tps>1000000000 get x");
    assert_eq!(failed.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&failed.stderr).contains("FAILED: get x: tps>1000000000"));
}

#[test]
fn a_baseline_is_compared_with() {
    let redis = Redis::start(&[]);
    let file = redis.directory.path().join("base.json");
    let path = file.display();
    ours(redis.port, &format!("-n 500 --output json --output-file {path} get x"));
    let text = std::fs::read_to_string(&file).unwrap();
    let mut base: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(base["schema"], "oxidis-benchmark-1");
    base["tests"][0]["tps"] = 1e12.into();
    std::fs::write(&file, base.to_string()).unwrap();
    let worse = ours(redis.port, &format!("-q -n 500 --baseline {path} get x"));
    assert_eq!(worse.status.code(), Some(3));
    // A test that the baseline does not know is told; a baseline that is not there, or a report that could not be
    // written, ends the run before the load.
    let other = ours(redis.port, &format!("-q -n 5 --baseline {path} get y"));
    assert!(String::from_utf8_lossy(&other.stderr).contains("no test called 'get y'"), "{other:?}");
    redis.ask(&["CONFIG", "RESETSTAT"]);
    for options in ["--baseline /nowhere.json", "--output json -o /nowhere/report.json"] {
        let refused = ours(redis.port, &format!("-q -n 5 {options} get x"));
        assert_eq!((refused.status.code(), redis.calls("get")), (Some(1), 0), "{refused:?}");
        assert!(String::from_utf8_lossy(&refused.stderr).contains("No such file or directory"), "{refused:?}");
    }
}

#[test]
fn unknown_tests_are_told() {
    let redis = Redis::start(&[]);
    let output = ours(redis.port, "-n 1 -t gett,set -q");
    assert!(output.status.success(), "Redis: they are no mistake");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "NOTE: no test is called 'gett'. Did you mean 'get'?\n");
}

#[test]
fn passwords_stay_out_of_reports() {
    let redis = Redis::start(&["--requirepass", "hunter2"]);
    let output = ours(redis.port, "-a hunter2 -n 10 --output json get x");
    assert!(output.status.success());
    assert!(!String::from_utf8_lossy(&output.stdout).contains("hunter2"));
}

#[test]
fn twelve_thousand_clients_all_send() {
    // redis-benchmark drives 10,230 of them and says nothing.
    let clients = 12_000_u64;
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum;
    let clients = if limit.is_none_or(|limit| limit > clients + 200) { clients } else { 3_000 };
    let redis = Redis::start(&["--maxclients", "12100"]);
    let report = json(&redis, &format!("-c {clients} --per-client 2 --threads 2 set a b"));
    let test = &report["tests"][0];
    assert_eq!(test["connected"], clients);
    assert_eq!(test["requests"], clients * 2);
    assert_eq!(test["fairness"]["served"], clients);
    assert_eq!((&test["fairness"]["min"], &test["fairness"]["max"]), (&2.into(), &2.into()));
    assert_eq!(redis.calls("set"), clients * 2);
}

#[test]
fn idle_clients_beyond_the_limit_are_an_error() {
    let redis = Redis::start(&["--maxclients", "5"]);
    let output = ours(redis.port, "-c 10 -I");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("Error"), "{output:?}");
}

#[test]
fn impossible_numbers_of_clients_are_refused() {
    let redis = Redis::start(&[]);
    let output = ours(redis.port, "-c 120000 --source 127.0.0.1 -n 1 ping");
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("120000 clients need a local port each") && text.contains("--source"), "{text}");
}

/// In a network of its own, with twenty ports: an idle run holds twelve of them, so fifteen connections cannot all be
/// made from 127.0.0.1.
#[test]
fn connections_beyond_the_ports_come_from_the_next_address() {
    const SCRIPT: &str = r#"
        ip link set lo up && echo '40000 40019' > /proc/sys/net/ipv4/ip_local_port_range || exit 77
        /usr/bin/redis-server --port 7777 --unixsocket s --save '' --protected-mode no > log 2>&1 &
        server=$!
        ask() { /usr/bin/redis-cli -s s "$@" 2> /dev/null; }
        until [ "$(ask ping)" = PONG ]; do sleep 0.05; done
        "$1" -p 7777 -c 12 -I > /dev/null 2>&1 &
        idle=$!
        until ask info clients | grep -q 'connected_clients:13'; do sleep 0.05; done
        "$1" -p 7777 -c 15 -n 150 --output json --hold 100ms set a b
        code=$?
        "$1" -p 7777 -c 5 -n 300 -k 0 -q set a b > /dev/null 2>&1 || code=$?
        kill $idle $server
        exit $code"#;
    let folder = tempfile::tempdir().unwrap();
    let program = support::our_program();
    let isolated = std::process::Command::new("unshare")
        .args(["--map-root-user", "--net", "timeout", "30", "sh", "-c", SCRIPT, "sh"])
        .arg(program)
        .current_dir(folder.path())
        .output();
    let Ok(output) = isolated else { return };
    if output.status.code() == Some(77) || String::from_utf8_lossy(&output.stderr).contains("unshare failed") {
        // Not everywhere may one have a network of one's own.
        return;
    }
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    assert_eq!((&report["tests"][0]["connected"], &report["tests"][0]["requests"]), (&15.into(), &150.into()));
}

#[test]
fn a_cluster_is_spread_over_its_slots() {
    let nodes: Vec<Redis> = (0..3).map(|_| Redis::start(&["--cluster-enabled", "yes"])).collect();
    let bounds = ["0", "5461", "10922", "16384"];
    for (index, node) in nodes.iter().enumerate() {
        let last = (bounds[index + 1].parse::<u32>().unwrap() - 1).to_string();
        assert_eq!(node.ask(&["CLUSTER", "ADDSLOTSRANGE", bounds[index], &last]), "+OK");
        assert_eq!(node.ask(&["CLUSTER", "SET-CONFIG-EPOCH", &(index + 1).to_string()]), "+OK");
    }
    for node in &nodes[1..] {
        nodes[0].ask(&["CLUSTER", "MEET", "127.0.0.1", &node.port.to_string()]);
    }
    let deadline = std::time::Instant::now() + Duration::from_secs(30);
    while !nodes.iter().all(|node| node.ask(&["CLUSTER", "INFO"]).contains("cluster_state:ok")) {
        assert!(std::time::Instant::now() < deadline, "the cluster does not form");
        thread::sleep(Duration::from_millis(100));
    }
    let port = nodes[0].port;
    let (mut mine, mut theirs) =
        (shape(&ours(port, "--cluster -t set -n 600")), shape(&theirs(port, "--cluster -t set -n 600")));
    mine.dedup();
    theirs.dedup();
    assert_eq!(mine, theirs);
    for node in &nodes {
        node.ask(&["FLUSHALL"]);
        node.ask(&["CONFIG", "RESETSTAT"]);
    }
    let output = ours(port, "--cluster -t set,mset -n 600 -P 3 -r 1000 -q");
    assert!(output.status.success(), "{output:?}");
    let sets: Vec<u64> = nodes.iter().map(|node| node.calls("set")).collect();
    assert_eq!(sets.iter().sum::<u64>(), 600);
    assert!(sets.iter().all(|calls| *calls > 0), "{sets:?}");
    assert_eq!(nodes.iter().map(|node| node.calls("mset")).sum::<u64>(), 600);
    let lonely = Redis::start(&["--cluster-enabled", "yes"]);
    lonely.ask(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
    let single = ours(lonely.port, "--cluster -q");
    assert_eq!(single.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&single.stderr).ends_with("Invalid cluster: 1 node(s).\n"));
}

#[test]
fn a_workload_file_runs_its_phases() {
    let redis = Redis::start(&[]);
    let file = redis.directory.path().join("load.toml");
    let text = "clients = 5\n[load]\ntests = \"set\"\nrequests = 200\nkeys = \"seq\"\n\
                key-max = 199\n[run]\nmix = \"set=1,get=1\"\nrequests = 300\nkeyspace = 200\n";
    std::fs::write(&file, text).unwrap();
    let report = json(&redis, &format!("--script {}", file.display()));
    let tests = report["tests"].as_array().unwrap();
    let names: Vec<&str> = tests.iter().map(|test| test["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["load: SET", "run: MIX set=1,get=1"]);
    assert_eq!(tests[1]["null_replies"], 0);
    assert_eq!(redis.ask(&["DBSIZE"]), ":200");
}

#[test]
fn the_live_view_is_drawn_and_taken_away() {
    let redis = Redis::start(&[]);
    let output = ours(redis.port, "--tui yes --duration 600ms -q get x");
    let drawn = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(drawn.contains(" TPS ") && drawn.contains(" p99 ms "), "{drawn}");
    assert!(drawn.contains("\u{1b}[J"), "{drawn}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.starts_with("get x: ") && !text.contains('\r'), "{text}");
}

#[test]
fn metrics_are_served_while_a_test_runs() {
    use std::io::{Read, Write};
    let redis = Redis::start(&[]);
    let port = support::free_port();
    let child = spawn_ours(redis.port, &format!("--prometheus {port} --duration 2s -q get x"));
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    let reply = loop {
        thread::sleep(Duration::from_millis(400));
        assert!(std::time::Instant::now() < deadline, "no metrics");
        let Ok(mut stream) = std::net::TcpStream::connect(("127.0.0.1", port)) else {
            continue;
        };
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        if reply.contains("oxidis_benchmark_connections 50") {
            break reply;
        }
    };
    assert!(reply.contains("requests_total{test=\"get x\"} "), "{reply}");
    assert!(!reply.contains("requests_total{test=\"get x\"} 0\n"), "{reply}");
    assert!(child.wait_with_output().unwrap().status.success());
}

#[test]
fn an_interrupt_ends_with_a_report() {
    let redis = Redis::start(&[]);
    let child = spawn_ours(redis.port, "--duration 30s -q get x");
    thread::sleep(Duration::from_millis(800));
    let interrupt = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(interrupt.unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("requests per second"), "{text}");
}

#[test]
fn the_highest_rate_is_found() {
    let redis = Redis::start(&[]);
    let output = ours(redis.port, "-q --find-max p50<1s --duration 150ms -c 4 get x");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("closed loop reaches"), "{text}");
    assert!(text.contains("highest rate with p50<1s: ") || output.status.code() == Some(3), "{text}");
}

#[test]
fn rates_are_kept() {
    let redis = Redis::start(&[]);
    for options in ["--rate 2000", "--rate 2000 --arrival poisson", "--rps 2000"] {
        // Never more than asked for. Less only where the machine did not let the generator run, so one run of a few
        // keeps the rate.
        let mut seen = Vec::new();
        let kept = (0..4).any(|_| {
            let report = json(&redis, &format!("{options} --duration 1s -c 20 get x"));
            let tps = report["tests"][0]["tps"].as_f64().unwrap();
            assert!(tps < 2_300.0, "{options}: {tps}");
            seen.push(tps);
            tps >= 1_700.0
        });
        assert!(kept, "{options}: {seen:?}");
    }
}
