//! Stock sentinels watch two of ours and fail over between them.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "common/replicas.rs"]
mod replicas;

use replicas::{equal, follow, launch_ours, log_of, up};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use testkit::process::Signal;
use testkit::{Client, Reply, Server, binary, server::free_port, wait_until};

/// A sentinel; ended when dropped.
struct Sentinel {
    child: Child,
    port: u16,
    _directory: tempfile::TempDir,
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Sentinel {
    fn watch(primary: u16) -> Sentinel {
        let program = binary::peer("redis-server").expect("redis-server is missing: apt-get install redis-server");
        let directory = tempfile::tempdir().unwrap();
        let port = free_port().unwrap();
        let path = directory.path().join("sentinel.conf");
        let text = format!(
            "port {port}\nbind 127.0.0.1\ndir {}\nsentinel monitor ours 127.0.0.1 {primary} 2\n\
             sentinel down-after-milliseconds ours 1000\nsentinel failover-timeout ours 10000\n",
            directory.path().display()
        );
        std::fs::write(&path, text).unwrap();
        let log = std::fs::File::create(directory.path().join("log")).unwrap();
        let child = Command::new(program)
            .arg(&path)
            .arg("--sentinel")
            .stdout(log.try_clone().unwrap())
            .stderr(Stdio::from(log))
            .spawn()
            .unwrap();
        let sentinel = Sentinel { child, port, _directory: directory };
        wait_until("a sentinel answers", Duration::from_secs(20), || match Client::connect(port) {
            Ok(mut client) => client.call(&["PING"]).map(drop).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        });
        sentinel
    }

    fn client(&self) -> Client {
        Client::connect(self.port).unwrap()
    }

    /// A field of what it knows of the primary.
    fn field(&self, name: &str) -> String {
        let Reply::Array(words) = self.client().run("SENTINEL MASTER ours") else { return String::new() };
        let words: Vec<String> = words.iter().map(Reply::text).collect();
        words.chunks(2).find(|pair| pair[0] == name).map(|pair| pair[1].clone()).unwrap_or_default()
    }

    /// The port of the primary that clients are told.
    fn primary(&self) -> String {
        self.client().run("SENTINEL GET-MASTER-ADDR-BY-NAME ours").to_string()
    }
}

fn start(directory: &std::path::Path) -> Server {
    // CONFIG REWRITE, which sentinels ask for, needs a file.
    let path = directory.join("server.conf");
    std::fs::write(&path, "repl-diskless-sync-delay 0\n").unwrap();
    launch_ours(&[path.to_str().unwrap()]).directory(directory).start()
}

#[test]
fn sentinels_fail_over_between_two_of_ours() {
    let directories = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let mut primary = start(directories[0].path());
    let replica = start(directories[1].path());
    follow(&replica, primary.port());
    let sentinels: Vec<Sentinel> = (0..3).map(|_| Sentinel::watch(primary.port())).collect();
    for sentinel in &sentinels {
        wait_until("the sentinels know each other and the replica", Duration::from_secs(30), || {
            let known = (sentinel.field("num-other-sentinels"), sentinel.field("num-slaves"), sentinel.field("flags"));
            if known == ("2".into(), "1".into(), "master".into()) { Ok(()) } else { Err(known) }
        });
    }
    primary.client().check("SET a 1; WAIT 1 5000", "+OK; :1");
    let old_port = primary.port();
    primary.stop(Signal::Kill).unwrap();
    let killed = Instant::now();
    // Sentinels close the connections of clients when they change a role.
    wait_until("the replica takes writes", Duration::from_secs(30), || {
        match replica.client().call(&["SET", "b", "2"]) {
            Ok(Reply::Simple(_)) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
    eprintln!("first write after {:?}", killed.elapsed());
    let expected = format!("[127.0.0.1 {}]", replica.port());
    wait_until("the sentinels tell of it", Duration::from_secs(20), || {
        let told: Vec<String> = sentinels.iter().map(Sentinel::primary).collect();
        if told.iter().all(|one| *one == expected) { Ok(()) } else { Err(told) }
    });
    replica.client().check("GET a; GET b", "1; 2");
    // The old primary comes back and is made a replica.
    let back = launch_ours(&[]).port(old_port).directory(directories[0].path()).start();
    wait_until("the old primary follows", Duration::from_secs(40), || {
        let mut client = Client::connect(back.port()).map_err(|error| error.to_string())?;
        let port = client.info("master_port").unwrap_or_default();
        if port == replica.port().to_string() { Ok(()) } else { Err(log_of(&back)) }
    });
    up(&back);
    equal(&replica, &back);
    let rewritten = std::fs::read_to_string(directories[1].path().join("server.conf")).unwrap();
    assert!(!rewritten.contains("replicaof"), "{rewritten}");
}
