//! A guide to testing Redis with redis-benchmark, followed line by line: a config file edited as it says, the server in
//! the background, its two benchmark runs, and INFO read in the client.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::path::Path;

use common::{Daemon, Ran, connect, info_number, link_tools, run_in};
use testkit::server::free_port;

/// The directives that the guide leaves as they come in redis.conf, and what it changes in them.
fn edited_config(port: u16, directory: &Path) -> String {
    let original = "\
# Redis configuration file example.
bind 127.0.0.1 -::1
protected-mode yes
port 6379
tcp-backlog 511
timeout 0
tcp-keepalive 300
daemonize no
pidfile /var/run/redis_6379.pid
loglevel notice
logfile \"\"
databases 16
always-show-logo no
set-proc-title yes
proc-title-template \"{title} {listen-addr} {server-mode}\"
stop-writes-on-bgsave-error yes
rdbcompression yes
rdbchecksum yes
dbfilename dump.rdb
rdb-del-sync-files no
dir ./
replica-serve-stale-data yes
replica-read-only yes
repl-diskless-sync yes
lazyfree-lazy-eviction no
oom-score-adj no
oom-score-adj-values 0 200 800
appendonly no
appendfilename \"appendonly.aof\"
appenddirname \"appendonlydir\"
appendfsync everysec
no-appendfsync-on-rewrite no
auto-aof-rewrite-percentage 100
auto-aof-rewrite-min-size 64mb
slowlog-log-slower-than 10000
slowlog-max-len 128
latency-monitor-threshold 0
notify-keyspace-events \"\"
hash-max-listpack-entries 512
hash-max-listpack-value 64
list-max-listpack-size -2
set-max-intset-entries 512
zset-max-listpack-entries 128
activerehashing yes
client-output-buffer-limit normal 0 0 0
client-output-buffer-limit replica 256mb 64mb 60
client-output-buffer-limit pubsub 32mb 8mb 60
hz 10
dynamic-hz yes
";
    // Where the test differs from the guide: a port that is free, and files of its own.
    original
        .replace("daemonize no", "daemonize yes")
        .replace("bind 127.0.0.1 -::1", "bind 0.0.0.0")
        .replace("appendonly no", "appendonly yes")
        .replace("port 6379", &format!("port {port}"))
        .replace("/var/run/redis_6379.pid", &directory.join("redis.pid").display().to_string())
        .replace("logfile \"\"", &format!("logfile {}", directory.join("redis.log").display()))
        .replace("dir ./", &format!("dir {}", directory.display()))
}

fn check_report(ran: &Ran, title: &str, clients: usize, payload: usize) {
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let out = &ran.out;
    for line in [
        format!("====== {title} ======"),
        "  100000 requests completed in ".to_owned(),
        format!("  {clients} parallel clients"),
        format!("  {payload} bytes payload"),
        "  keep alive: 1".to_owned(),
        "100.000% <= ".to_owned(),
        "  throughput summary: ".to_owned(),
        " requests per second".to_owned(),
    ] {
        assert!(out.contains(&line), "no {line:?} in:\n{out}");
    }
    let rate = out.rsplit("throughput summary: ").next().unwrap().split(' ').next().unwrap();
    assert!(rate.parse::<f64>().unwrap() > 100.0, "{rate} requests per second");
}

#[test]
fn the_guide_line_by_line() {
    let home = tempfile::tempdir().unwrap();
    let bin = home.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    link_tools(&bin);
    let port = free_port().unwrap();
    std::fs::write(home.path().join("redis.conf"), edited_config(port, home.path())).unwrap();

    // ./redis-server ../redis.conf
    let started = run_in(&bin, &bin.join("redis-server"), &["../redis.conf"], "");
    assert_eq!(started.code, Some(0), "the starter goes home: {started:?}");
    let daemon = Daemon::from_pid_file(&home.path().join("redis.pid"));
    let mut client = connect(port);
    let log = testkit::wait_until("the log's last line", std::time::Duration::from_secs(5), || {
        let log = std::fs::read_to_string(home.path().join("redis.log")).unwrap();
        if log.contains("Ready to accept connections") { Ok(log) } else { Err(log) }
    });
    assert!(log.to_lowercase().contains("appendonly"), "what appendonly means here is said in the log: {log}");
    assert_eq!(client.info("process_id"), Some(daemon.0.to_string()));

    // ./redis-benchmark -t set,get -n 100000
    let port_text = port.to_string();
    let benchmark = bin.join("redis-benchmark");
    let ran = run_in(&bin, &benchmark, &["-p", &port_text, "-t", "set,get", "-n", "100000"], "");
    for title in ["SET", "GET"] {
        check_report(&ran, title, 50, 3);
    }
    client.check("STRLEN key:__rand_int__; DBSIZE", ":3; :1");

    // ./redis-benchmark -t get -n 100000 -c 100 -d 2048
    let ran = run_in(&bin, &benchmark, &["-p", &port_text, "-t", "get", "-n", "100000", "-c", "100", "-d", "2048"], "");
    check_report(&ran, "GET", 100, 2048);
    assert!(info_number(&mut client, "total_commands_processed") >= 300_000);

    // ./redis-cli, and in it: info
    let ran = run_in(&bin, &bin.join("redis-cli"), &["-p", &port_text], "info\n");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let memory = ran.out;
    let field = |name: &str| {
        testkit::client::info_field(&memory, name).unwrap_or_else(|| panic!("INFO has no {name}:\n{memory}"))
    };
    let number = |name: &str| field(name).parse::<u64>().unwrap_or_else(|_| panic!("{name} is no number"));
    assert!(memory.contains("# Memory"), "{memory}");
    assert!((1..=200).contains(&number("connected_clients")));
    let (used, rss, peak) = (number("used_memory"), number("used_memory_rss"), number("used_memory_peak"));
    assert!(used > 100_000 && used < 200_000_000, "used_memory:{used}");
    assert!(rss > 1_000_000 && rss < 1_000_000_000, "used_memory_rss:{rss}");
    assert!(peak >= used, "used_memory_peak:{peak} used_memory:{used}");
    for name in ["used_memory_human", "used_memory_rss_human", "used_memory_peak_human"] {
        let text = field(name);
        assert!(text.ends_with(['B', 'K', 'M', 'G']), "{name}:{text}");
    }
    let share = field("used_memory_peak_perc");
    let share: f64 = share.strip_suffix('%').expect("a percentage").parse().unwrap();
    assert!(share > 0.0 && share <= 100.0, "used_memory_peak_perc:{share}");

    daemon.stop();
    assert!(!home.path().join("redis.pid").exists(), "the pid file goes with the server");
}
