//! Stock sentinels watch two of ours and fail over between them.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::time::{Duration, Instant};
use testkit::process::Signal;
use testkit::replicas::{equal, follow, launch_ours, log_of, up};
use testkit::sentinel::Sentinel;
use testkit::{Client, Reply, Server, wait_until};

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
