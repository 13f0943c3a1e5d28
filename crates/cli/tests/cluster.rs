//! The client at a Redis Cluster: three primaries and a replica of Debian's redis-server, with redis-cli beside it.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use support::{REDIS_CLI, our_cli};

const PATIENCE: Duration = Duration::from_secs(30);
const PRIMARIES: usize = 3;

/// Nodes that know each other; the last one is a replica of the first.
struct Cluster {
    children: Vec<Child>,
    ports: Vec<u16>,
    _folder: tempfile::TempDir,
}

impl Cluster {
    fn start() -> Cluster {
        let folder = tempfile::tempdir().unwrap();
        let listeners: Vec<TcpListener> =
            (0..2 * (PRIMARIES + 1)).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let free: Vec<u16> = listeners.iter().map(|listener| listener.local_addr().unwrap().port()).collect();
        drop(listeners);
        let (ports, buses) = free.split_at(PRIMARIES + 1);
        let start = |(port, bus): (&u16, &u16)| {
            let own = folder.path().join(port.to_string());
            std::fs::create_dir(&own).unwrap();
            Command::new("/usr/bin/redis-server")
                .args(["--port", &port.to_string(), "--cluster-port", &bus.to_string(), "--cluster-enabled", "yes"])
                .args(["--cluster-node-timeout", "2000"])
                .args(["--save", "", "--bind", "127.0.0.1", "--repl-diskless-sync-delay", "0"])
                .current_dir(own)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .spawn()
                .expect("redis-server is installed")
        };
        let children = ports.iter().zip(buses).map(start).collect();
        let cluster = Cluster { children, ports: ports.to_vec(), _folder: folder };
        for node in 0..=PRIMARIES {
            cluster.wait(node, "ping", |reply| reply == "PONG");
        }
        for node in 0..PRIMARIES {
            let (first, last) = (node * 16384 / PRIMARIES, (node + 1) * 16384 / PRIMARIES - 1);
            cluster.ask(node, &format!("cluster addslotsrange {first} {last}"));
        }
        // Each meets each: waiting for gossip takes longer.
        for node in 0..=PRIMARIES {
            for (port, bus) in cluster.ports.iter().zip(buses).skip(node + 1) {
                cluster.ask(node, &format!("cluster meet 127.0.0.1 {port} {bus}"));
            }
        }
        for node in 0..=PRIMARIES {
            cluster.wait(node, "cluster info", |reply| {
                reply.contains("cluster_state:ok") && reply.contains("cluster_known_nodes:4")
            });
        }
        let first = cluster.ask(0, "cluster myid");
        cluster.wait(PRIMARIES, &format!("cluster replicate {first}"), |reply| reply == "OK");
        for node in 0..=PRIMARIES {
            cluster.wait(node, "cluster nodes", |reply| reply.contains(" slave ") || reply.contains(",slave "));
        }
        cluster.wait(PRIMARIES, "info replication", |reply| reply.contains("master_link_status:up"));
        cluster
    }

    fn ask(&self, node: usize, line: &str) -> String {
        let port = self.ports[node].to_string();
        let output = Command::new(REDIS_CLI).args(["-p", &port]).args(line.split(' ')).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_string()
    }

    fn wait(&self, node: usize, line: &str, is_right: impl Fn(&str) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let reply = self.ask(node, line);
            if is_right(&reply) {
                return;
            }
            assert!(Instant::now() < deadline, "node {node}: {line}: {reply}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn place(&self, node: usize) -> String {
        format!("127.0.0.1:{}", self.ports[node])
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Output without colours, messages and exit code.
fn run(program: &str, arguments: &[&str]) -> (String, String, Option<i32>) {
    let output = Command::new(program)
        .args(arguments)
        .env_remove("FAKETTY")
        .env("TERM", "dumb")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let mut text = String::new();
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut parts = shown.split("\x1b[");
    text.push_str(parts.next().unwrap_or_default());
    for part in parts {
        text.push_str(part.split_once('m').map_or(part, |(_, rest)| rest));
    }
    (text, String::from_utf8_lossy(&output.stderr).into_owned(), output.status.code())
}

#[test]
fn a_cluster_is_looked_at_as_by_redis_cli() {
    let cluster = Cluster::start();
    let ours = our_cli().display().to_string();
    let first = cluster.place(0);
    for number in 0..60 {
        let (out, _, code) =
            run(&ours, &["-c", "-p", &cluster.ports[1].to_string(), "set", &format!("key:{number}"), "x"]);
        assert_eq!((out.as_str(), code), ("OK\n", Some(0)), "redirections are followed");
    }
    let same = |arguments: &[&str]| {
        assert_eq!(run(&ours, arguments), run(REDIS_CLI, arguments), "{arguments:?}");
    };
    same(&["--cluster", "info", &first]);
    same(&["--cluster", "check", &first]);
    same(&["--cluster", "check", &cluster.place(PRIMARIES)]);
    same(&["--cluster", "check", "127.0.0.1", &cluster.ports[2].to_string()]);
    same(&["--cluster", "check", &first, "--cluster-search-multiple-owners"]);
    same(&["--cluster", "call", &first, "dbsize"]);
    same(&["--cluster", "call", &first, "config", "get", "maxmemory", "--cluster-only-masters"]);
    same(&["--cluster", "call", &first, "ping", "--cluster-only-replicas"]);
    same(&["--cluster", "check", "127.0.0.1:1"]);
    same(&["--cluster", "check"]);
    same(&["--cluster", "check", "nonsense"]);
    same(&["--cluster", "nothing"]);
    same(&["-c", "-p", &cluster.ports[0].to_string(), "get", "key:7"]);

    // A backup: the same words and the same table of nodes; the snapshots hold all keys.
    let folder = tempfile::tempdir().unwrap();
    let backup = folder.path().join("backup");
    let mut made = Vec::new();
    for program in [ours.as_str(), REDIS_CLI] {
        std::fs::create_dir(&backup).unwrap();
        let (out, err, code) = run(program, &["--cluster", "backup", &first, backup.to_str().unwrap()]);
        assert_eq!(err.matches("Transfer finished with success").count(), PRIMARIES, "{program}: {err}");
        let mut names: Vec<String> = Vec::new();
        for entry in std::fs::read_dir(&backup).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            if name.ends_with(".rdb") {
                assert!(std::fs::read(entry.path()).unwrap().starts_with(b"REDIS00"), "{program}: {name}");
            }
            names.push(name);
        }
        names.sort_unstable();
        let table = std::fs::read_to_string(backup.join("nodes.json")).unwrap();
        made.push((out, code, names, table));
        std::fs::remove_dir_all(&backup).unwrap();
    }
    assert_eq!(made[0], made[1]);
    assert_eq!(made[0].2.len(), PRIMARIES + 1);
    let missing = run(&ours, &["--cluster", "backup", &first, "/nowhere/at/all"]);
    assert!(missing.1.contains("Error opening '/nowhere/at/all/redis-node-"), "{missing:?}");
    let changes = run(&ours, &["--cluster", "fix", &first]);
    assert!(changes.2 == Some(1) && changes.1.contains("not available in this version yet"), "{changes:?}");
    assert!(changes.1.contains("Nothing was done"), "{changes:?}");

    // Walks: redis-cli sees one node only.
    let port = cluster.ports[0].to_string();
    let (names, _, code) = run(&ours, &["-c", "-p", &port, "--scan", "--pattern", "key:*"]);
    assert_eq!((names.lines().count(), code), (60, Some(0)));
    let (big, _, _) = run(&ours, &["-c", "-p", &port, "--bigkeys"]);
    assert!(big.contains("Sampled 60 keys in the keyspace!") && big.contains("60 strings with 60 bytes"), "{big}");
    let (memory, _, _) = run(&ours, &["-c", "-p", &port, "--memkeys", "--json"]);
    assert!(memory.starts_with("{\"sampled\":60,"), "{memory}");
    let (alone, _, _) = run(&ours, &["-p", &port, "--bigkeys"]);
    assert!(!alone.contains("Sampled 60 keys"), "{alone}");

    // An open slot and one without a node are found.
    let id = cluster.ask(1, "cluster myid");
    cluster.ask(0, &format!("cluster setslot 5 migrating {id}"));
    same(&["--cluster", "check", &first]);
    cluster.ask(0, "cluster setslot 5 stable");
    cluster.ask(0, "cluster delslots 7");
    same(&["--cluster", "check", &first]);
}
