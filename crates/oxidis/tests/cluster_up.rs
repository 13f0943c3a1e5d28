//! `oxidis up`, `oxidis manager` and `oxidis admin` from outside: a whole cluster as processes.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;
#[path = "common/up.rs"]
mod up;

use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use common::{peer, run};
use testkit::process::{Signal, send_signal};
use testkit::{Client, Reply, binary, wait_until};
use up::{PATIENCE, Up, base_port, children_of};

/// Writers and readers that check what they wrote, until they are stopped.
struct Load {
    stop: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
    threads: Vec<std::thread::JoinHandle<Vec<(String, u64)>>>,
}

impl Load {
    fn start(port: u16, threads: usize) -> Load {
        let stop = Arc::new(AtomicBool::new(false));
        let done = Arc::new(AtomicU64::new(0));
        let threads = (0..threads)
            .map(|thread| {
                let (stop, done) = (stop.clone(), done.clone());
                std::thread::spawn(move || work(port, thread, &stop, &done))
            })
            .collect();
        Load { stop, done, threads }
    }

    fn wait_for(&self, more: u64) {
        let wanted = self.done.load(Ordering::Relaxed) + more;
        wait_until("the load", PATIENCE, || {
            let done = self.done.load(Ordering::Relaxed);
            if done >= wanted { Ok(()) } else { Err(done) }
        });
    }

    /// Stops, and checks that every acknowledged write is there.
    fn end(self, port: u16) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        let mut client = Client::connect(port).unwrap();
        let mut count = 0;
        for thread in self.threads {
            for (key, value) in thread.join().unwrap() {
                let reply = client.call(&["GET", &key]).unwrap();
                assert_eq!(reply, Reply::Bulk(value.to_string().into_bytes()), "{key}");
                count += 1;
            }
        }
        count
    }
}

/// Counts keys up, each answer being one more than the one before: nothing is lost, nothing is done twice.
fn work(port: u16, thread: usize, stop: &AtomicBool, done: &AtomicU64) -> Vec<(String, u64)> {
    let mut client = Client::connect(port).unwrap();
    client.set_timeout(PATIENCE).unwrap();
    let mut keys: Vec<(String, u64)> = (0..200).map(|index| (format!("load:{thread}:{index}"), 0)).collect();
    let mut place = 0;
    while !stop.load(Ordering::Relaxed) {
        let count = keys.len();
        let (key, value) = &mut keys[place % count];
        let reply = client.call(&["INCR", key]).unwrap();
        assert_eq!(reply, Reply::Integer(i64::try_from(*value).unwrap() + 1), "{key}");
        *value += 1;
        place += 1;
        done.fetch_add(1, Ordering::Relaxed);
    }
    keys.retain(|(_, value)| *value > 0);
    keys
}

#[test]
fn a_cluster_is_up_serves_plain_clients_and_is_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let port = base_port(0);
    let up = Up::start(folder.path(), port, &["--groups", "2", "--replicas", "1", "--proxies", "2"]);
    let redis_cli = peer("redis-cli");
    let ask = |port: u16, words: &[&str]| {
        let port = port.to_string();
        let mut all = vec!["-p", &port];
        all.extend(words);
        run(&redis_cli, &all, "").out.trim().to_owned()
    };
    assert_eq!(ask(port, &["set", "greeting", "hello"]), "OK");
    assert_eq!(ask(port + 1, &["get", "greeting"]), "hello", "by the other proxy");
    assert_eq!(ask(port, &["mset", "a", "1", "b", "2", "c", "3"]), "OK");
    assert_eq!(ask(port, &["dbsize"]), "4");
    // Every group has a replica that follows.
    wait_until("replicas", PATIENCE, || {
        let members = up.admin_ok("members");
        let linked = members.lines().filter(|line| line.contains("\treplica\t") && line.contains("\tup\t")).count();
        if linked == 2 { Ok(()) } else { Err(members) }
    });
    let topology = up.admin_ok("topology");
    assert!(topology.contains(&format!("1\t8192\t127.0.0.1:{}\tprimary\tup", port + 101)), "{topology}");
    // A child that crashes comes back.
    let replica = up.pid_of(&(port + 102).to_string());
    send_signal(replica, Signal::Kill).unwrap();
    wait_until("the crash to be told and mended", PATIENCE, || {
        let said = up.said();
        let name = format!("server-{}", port + 102);
        let is_mended = said.contains(&format!("{name}: it was ended by signal 9"))
            && said.contains(&format!("{name} was started again"));
        if is_mended { Ok(()) } else { Err(said) }
    });
    // One up at a time in a folder, and what is taken is told before anything is begun.
    let second = run(binary::oxidis(), &["up", "--dir", folder.path().join("data").to_str().unwrap()], "");
    assert!(second.code == Some(1) && second.err.contains("is taken on 127.0.0.1"), "{second:?}");
    up.stop();
    let up = Up::start(folder.path(), port, &[]);
    assert!(up.said().contains("(found as it was left)"), "{}", up.said());
    assert_eq!(ask(port, &["get", "greeting"]), "hello");
    assert_eq!(ask(port, &["dbsize"]), "4");
    up.stop();
}

#[test]
fn a_taken_port_is_told_and_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let port = base_port(1);
    let listener = TcpListener::bind(("127.0.0.1", port + 111)).unwrap();
    let data = folder.path().join("data");
    let words = ["up", "--dir", data.to_str().unwrap(), "--port", &port.to_string()];
    let ran = run(binary::oxidis(), &words, "");
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains(&format!("port {} is taken on 127.0.0.1", port + 111)), "{ran:?}");
    assert!(!data.exists(), "nothing is written either");
    drop(listener);
}

#[test]
fn when_up_is_killed_its_children_end() {
    let folder = tempfile::tempdir().unwrap();
    let mut up = Up::start(folder.path(), base_port(2), &["--groups", "1", "--replicas", "0", "--proxies", "1"]);
    let children = children_of(up.process.id());
    assert_eq!(children.len(), 3);
    up.process.kill().unwrap();
    up.process.wait().unwrap();
    wait_until("the children to end", PATIENCE, || {
        let left: Vec<_> = children.iter().filter(|pid| Path::new(&format!("/proc/{pid}/exe")).exists()).collect();
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    });
}

#[test]
fn slots_move_under_load_to_a_new_group_and_back() {
    let folder = tempfile::tempdir().unwrap();
    let port = base_port(3);
    let up = Up::start(folder.path(), port, &["--groups", "2", "--replicas", "0", "--proxies", "1"]);
    let mut server = testkit::Launch::oxidis().args(&["--io-threads", "1"]).start();
    let load = Load::start(port, 4);
    load.wait_for(500);
    assert!(up.admin_ok("group add").starts_with("group 3 added"));
    up.admin_ok(&format!("server add 3 127.0.0.1:{}", server.port()));
    let plan = up.admin_ok("rebalance --dry-run");
    assert!(plan.lines().all(|line| line.split('\t').nth(1) == Some("3")), "{plan}");
    up.admin_ok("scale-out 3 --watch");
    up.wait_moved();
    let groups = up.admin_ok("group list");
    let counts: Vec<u32> = groups.lines().map(|line| line.split('\t').nth(1).unwrap().parse().unwrap()).collect();
    assert!(counts.iter().all(|count| (5461..=5462).contains(count)), "{groups}");
    load.wait_for(500);
    let ran = up.admin("group remove 3");
    assert!(ran.code == Some(1) && ran.err.contains("owns"), "{ran:?}");
    up.admin_ok("scale-in 3 --watch");
    up.wait_moved();
    load.wait_for(500);
    assert!(up.admin_ok("group remove 3").contains("group 3 removed"));
    assert!(load.end(port) > 100);
    server.stop(Signal::Terminate).unwrap();
    up.stop();
}

#[test]
fn a_manager_killed_in_the_middle_of_a_move_finishes_it_after_its_restart() {
    let folder = tempfile::tempdir().unwrap();
    let port = base_port(4);
    let up = Up::start(folder.path(), port, &["--groups", "2", "--replicas", "0", "--proxies", "1"]);
    let mut client = up.client();
    let value = "x".repeat(1_000);
    for index in 0..2_000 {
        client.call(&["SET", &format!("key:{index}"), &value]).unwrap();
    }
    let load = Load::start(port, 2);
    // Slow enough to be in the middle.
    let begun = up.admin_ok("move start 0-255 2 --rate 100kb");
    assert!(begun.starts_with("move 1: 256 slots from group 1 to group 2"), "{begun}");
    wait_until("the copy", PATIENCE, || {
        let shown = up.admin_ok("move show 1");
        if shown.contains("stage\tcopying") { Ok(()) } else { Err(shown) }
    });
    let killed = up.manager_pid();
    send_signal(killed, Signal::Kill).unwrap();
    wait_until("another manager", PATIENCE, || {
        let ran = up.admin("move rate 1 none");
        if ran.code == Some(0) { Ok(()) } else { Err(ran) }
    });
    assert_ne!(up.manager_pid(), killed);
    up.wait_moved();
    // Who asked for it is still known.
    assert!(up.admin_ok("move show 1").contains("by\tlocal (admin)"));
    load.end(port);
    up.stop();
}

/// Defect 3 of the model: a proxy that was killed stopped every change of slots until somebody removed it by force.
#[test]
fn a_killed_proxy_blocks_no_move() {
    let folder = tempfile::tempdir().unwrap();
    let port = base_port(5);
    let up = Up::start(folder.path(), port, &["--groups", "2", "--replicas", "0", "--proxies", "2"]);
    // Stopped rather than killed first: it is there, has its lease, and answers nobody.
    let proxy = up.pid_of(&(port + 1).to_string());
    send_signal(proxy, Signal::Stop).unwrap();
    let began = Instant::now();
    up.admin_ok("move start 0-9 2");
    up.wait_moved();
    let stopped = began.elapsed();
    send_signal(proxy, Signal::Kill).unwrap();
    let began = Instant::now();
    up.admin_ok("move start 10-19 2");
    up.wait_moved();
    // Well within its lease of three seconds, were it asked at all, on a machine that is not all too busy.
    assert!(stopped < Duration::from_secs(20) && began.elapsed() < Duration::from_secs(20));
    up.stop();
}

/// Defect 2 of the model: one primary that hangs held up the change of slots, and the manager's API, for 30 seconds.
#[test]
fn a_primary_that_hangs_holds_up_neither_moves_of_others_nor_the_api() {
    let folder = tempfile::tempdir().unwrap();
    let port = base_port(6);
    let up = Up::start(folder.path(), port, &["--groups", "3", "--replicas", "0", "--proxies", "1"]);
    let hung = up.pid_of(&(port + 101).to_string());
    send_signal(hung, Signal::Stop).unwrap();
    up.admin_ok("move start 6000-6009 3");
    let mut slowest = Duration::ZERO;
    wait_until("the move of others", PATIENCE, || {
        let began = Instant::now();
        up.admin_ok("topology");
        slowest = slowest.max(began.elapsed());
        let stages = up.stages()?;
        if stages.iter().all(|(_, stage)| stage == "done") { Ok(()) } else { Err(format!("{stages:?}")) }
    });
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
    // Its lease ends, and that is told.
    wait_until("the silence to be told", PATIENCE, || {
        let events = up.admin_ok("events");
        if events.contains("member.down") { Ok(()) } else { Err(events) }
    });
    send_signal(hung, Signal::Continue).unwrap();
    wait_until("its return", PATIENCE, || {
        let members = up.admin_ok("topology");
        if members.lines().any(|line| line.contains(&format!(":{}\tprimary\tup", port + 101))) {
            Ok(())
        } else {
            Err(members)
        }
    });
    up.stop();
}
