//! Joined generators: agents of their own processes on this machine, against Debian's redis-server.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use support::{Redis, our_program, ours, spawn_ours, words};

/// An agent on a free port.
struct Agent {
    child: Child,
    port: u16,
}

impl Agent {
    fn start(options: &str) -> Agent {
        let mut child = Command::new(our_program())
            .args(["--agent", "0"])
            .args(words(options))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.trim_end().rsplit_once(':').unwrap().1.parse().unwrap();
        Agent { child, port }
    }

    fn name(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn names(agents: &[Agent]) -> String {
    agents.iter().map(Agent::name).collect::<Vec<_>>().join(",")
}

fn report(output: &std::process::Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

#[test]
fn four_agents_make_one_run() {
    let redis = Redis::start(&[]);
    let agents: Vec<Agent> = (0..4).map(|_| Agent::start("")).collect();
    let weighted = format!("{}=2", names(&agents));
    let options = format!("--agents {weighted} --output json -c 1000 -n 20001 -P 3 -t set --keys unique");
    let output = ours(redis.port, &options);
    assert!(output.status.success(), "{output:?}");
    let test = &report(&output)["tests"][0];
    assert_eq!(test["requests"], 20_001, "{test:#}");
    assert_eq!(test["connected"], 1_000);
    assert_eq!(redis.calls("set"), 20_001);
    // No number twice, although each agent draws its own.
    assert_eq!(redis.ask(&["DBSIZE"]), ":20001");
    let rows = test["per_agent"].as_array().unwrap();
    let connected: Vec<u64> = rows.iter().map(|row| number(&row["connected"])).collect();
    assert_eq!(connected, [200, 200, 200, 400]);
    assert_eq!(rows.iter().map(|row| number(&row["requests"])).sum::<u64>(), 20_001);
    assert!(rows.iter().all(|row| row["lost"] == false), "{rows:?}");
    // The merged histogram holds every reply, and its figures lie between those of the agents.
    assert_eq!(test["service"]["count"], 20_001);
    let tails: Vec<f64> = rows.iter().map(|row| row["service"]["p99"].as_f64().unwrap()).collect();
    let merged = test["service"]["p99"].as_f64().unwrap();
    let (low, high) = (tails.iter().copied().fold(f64::MAX, f64::min), tails.iter().copied().fold(0.0, f64::max));
    assert!((low..=high).contains(&merged), "{merged} {tails:?}");
    assert!(!test["flags"].as_array().unwrap().iter().any(|flag| flag == "agents-inconsistent"));
    // The same agents take the next job.
    let text = ours(redis.port, &format!("--agents {} -c 8 -n 4000 -q -t get,incr", names(&agents)));
    let shown = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(shown.contains("GET: ") && shown.contains("INCR: ") && shown.contains("agents:"), "{text:?}");
    assert_eq!((redis.calls("get"), redis.calls("incr")), (4_000, 4_000));
    let table = String::from_utf8_lossy(&text.stderr).into_owned();
    assert!(table.contains("descriptors") && table.contains(&agents[3].name()), "{table}");
}

#[test]
fn rates_and_ranges_are_divided() {
    let redis = Redis::start(&[]);
    let agents = [Agent::start(""), Agent::start("")];
    let options = format!(
        "--agents {} --output json -c 4 --rate 2000 --duration 1s --warmup 200ms --cooldown 100ms -t set -r 1000 --keys seq",
        names(&agents)
    );
    let test = report(&ours(redis.port, &options))["tests"][0].clone();
    let requests = number(&test["requests"]);
    assert!((1_700..=2_020).contains(&requests), "{test:#}");
    assert_eq!(test["response"]["count"], test["requests"]);
    assert_eq!(redis.ask(&["DBSIZE"]), ":1000");
    redis.ask(&["FLUSHALL"]);
    let options = format!("--agents {} -q -c 4 --per-client 50 --keys seq-per-client -t set", names(&agents));
    assert!(ours(redis.port, &options).status.success());
    assert_eq!(redis.ask(&["DBSIZE"]), ":200");
    assert_eq!(redis.ask(&["EXISTS", "key:000000000000", "key:000000000199"]), ":2");
}

#[test]
fn a_lost_agent_ends_the_run_or_is_tolerated() {
    let redis = Redis::start(&[]);
    for (tolerated, least_seconds) in [("", 0.0), ("--tolerate-agents 1", 2.0)] {
        let mut agents = vec![Agent::start(""), Agent::start("")];
        let options = format!("--agents {} {tolerated} --output json -c 4 --duration 3s -t get", names(&agents));
        let began = Instant::now();
        let child = spawn_ours(redis.port, &options);
        let before = redis.calls("get");
        while redis.calls("get") < before + 200 {
            assert!(began.elapsed() < Duration::from_secs(10), "the run does not begin");
            thread::sleep(Duration::from_millis(20));
        }
        thread::sleep(Duration::from_millis(600));
        drop(agents.pop());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(5), "{output:?}");
        let test = &report(&output)["tests"][0];
        assert!(test["flags"].as_array().unwrap().iter().any(|flag| flag == "agent-lost"), "{test:#}");
        assert_eq!(test["per_agent"][1]["lost"], true);
        assert!(number(&test["per_agent"][1]["requests"]) > 0, "what it had told is kept: {test:#}");
        assert!(test["seconds"].as_f64().unwrap() >= least_seconds, "{test:#}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("is lost"), "{output:?}");
    }
}

#[test]
fn agents_stop_when_their_coordinator_goes() {
    let redis = Redis::start(&[]);
    let agents = [Agent::start("")];
    let mut child = spawn_ours(redis.port, &format!("--agents {} -q -c 2 --duration 60s -t get", names(&agents)));
    let began = Instant::now();
    while redis.calls("get") < 100 {
        assert!(began.elapsed() < Duration::from_secs(10), "the run does not begin");
        thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let mut calls = redis.calls("get");
    loop {
        assert!(began.elapsed() < Duration::from_secs(15), "the agent goes on");
        thread::sleep(Duration::from_millis(200));
        let now = redis.calls("get");
        if now == calls {
            break;
        }
        calls = now;
    }
    // And takes another job.
    assert!(ours(redis.port, &format!("--agents {} -q -c 2 -n 100 -t get", names(&agents))).status.success());
}

#[test]
fn errors_of_agents_reach_the_user() {
    let redis = Redis::start(&[]);
    let agents = [Agent::start("")];
    redis.ask(&["SET", "text", "x"]);
    let output = ours(redis.port, &format!("--agents {} -q -c 2 -n 50 incr text", names(&agents)));
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("Error from server: ERR value is not an integer") && text.contains("(agent "), "{text}");
    let counted = format!("--agents {} --output json --on-error count -c 2 -n 50 incr text", names(&agents));
    assert_eq!(report(&ours(redis.port, &counted))["tests"][0]["errors"]["ERR"]["count"], 50);
    let nobody = ours(redis.port, &format!("--agents 127.0.0.1:{} -n 5 ping", support::free_port()));
    assert_eq!(nobody.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&nobody.stderr).contains("Connection refused"), "{nobody:?}");
}

#[test]
fn a_token_and_the_list_of_targets_are_kept_to() {
    let redis = Redis::start(&[]);
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (right, wrong) = (file("right", "0123456789abcdef\n"), file("wrong", "fedcba9876543210"));
    let agent = Agent::start(&format!("--token-file {right} --allow-target 127.0.0.1:{}", redis.port));
    let with = |token: &str, port: u16| {
        let token = if token.is_empty() { String::new() } else { format!("--token-file {token}") };
        ours(port, &format!("--agents {} {token} -q -c 2 -n 20 get x", agent.name()))
    };
    for (token, hint) in [("", "asks for a token"), (wrong.as_str(), "the token is wrong")] {
        let refused = with(token, redis.port);
        assert_eq!(refused.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&refused.stderr).contains(hint), "{refused:?}");
    }
    assert!(with(&right, redis.port).status.success());
    let other = Redis::start(&[]);
    let refused = with(&right, other.port);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("may not load"), "{refused:?}");
    let open = ours(1, "--agent 0.0.0.0:0");
    assert_eq!(open.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&open.stderr).contains("--token-file"), "{open:?}");
    let short = ours(1, &format!("--agent 0 --token-file {}", file("short", "abc")));
    assert!(String::from_utf8_lossy(&short.stderr).contains("openssl rand"), "{short:?}");
}

#[test]
fn nonsense_on_the_port_of_an_agent_does_no_harm() {
    let redis = Redis::start(&[]);
    let agent = Agent::start("");
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 64], &[0, 0, 0, 2, b'{', b'}'], &[]] {
        let mut stream = TcpStream::connect(("127.0.0.1", agent.port)).unwrap();
        stream.write_all(bytes).unwrap();
    }
    assert!(ours(redis.port, &format!("--agents {} -q -c 2 -n 100 get x", agent.name())).status.success());
}

#[test]
fn one_job_at_a_time() {
    let redis = Redis::start(&[]);
    let agents = [Agent::start("")];
    let mut child = spawn_ours(redis.port, &format!("--agents {} -q -c 2 --duration 20s -t get", names(&agents)));
    let began = Instant::now();
    while redis.calls("get") == 0 {
        assert!(began.elapsed() < Duration::from_secs(10), "the run does not begin");
        thread::sleep(Duration::from_millis(20));
    }
    let second = ours(redis.port, &format!("--agents {} -q -c 2 -n 5 get x", names(&agents)));
    assert!(String::from_utf8_lossy(&second.stderr).contains("another job"), "{second:?}");
    child.kill().unwrap();
    child.wait().unwrap();
}
