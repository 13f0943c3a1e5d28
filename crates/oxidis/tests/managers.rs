//! Several managers on etcd, and one alone: who leads, who answers what, who may.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{Ran, run};
use testkit::etcd::Etcd;
use testkit::process::{Signal, send_signal};
use testkit::server::free_port;
use testkit::{binary, wait_until};

const PATIENCE: Duration = Duration::from_secs(30);

struct Manager {
    process: Child,
    port: u16,
}

impl Manager {
    fn start(folder: &Path, options: &[&str]) -> Manager {
        let port = free_port().unwrap();
        std::fs::create_dir_all(folder).unwrap();
        let log = File::create(folder.join("log")).unwrap();
        let process = Command::new(binary::oxidis())
            .args(["manager", "--listen", &format!("127.0.0.1:{port}"), "--dir", folder.to_str().unwrap()])
            .args(options)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        Manager { process, port }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn admin(&self, command: &str) -> Ran {
        let url = self.url();
        let mut words = vec!["admin", "-m", &url];
        words.extend(command.split(' '));
        run(binary::oxidis(), &words, "")
    }

    /// The leader that it knows of.
    fn leader(&self) -> Option<String> {
        let ran = self.admin("--json topology");
        let line = ran.out.lines().find_map(|line| line.trim().strip_prefix("\"leader\": ").map(str::to_owned))?;
        let leader = line.trim_matches([',', '"']).to_owned();
        (leader != "null").then_some(leader)
    }

    fn end(&mut self, signal: Signal) {
        send_signal(self.process.id(), signal).unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn wait_leader(managers: &[&Manager], not: Option<&str>) -> String {
    wait_until("one leader that all know", PATIENCE, || {
        let leaders: Vec<Option<String>> = managers.iter().map(|manager| manager.leader()).collect();
        let first = leaders[0].clone();
        match first {
            Some(leader)
                if leaders.iter().all(|known| *known == Some(leader.clone())) && not != Some(leader.as_str()) =>
            {
                Ok(leader)
            }
            _ => Err(leaders),
        }
    })
}

#[test]
fn managers_on_etcd_take_over_from_each_other() {
    let etcd = Etcd::start();
    let folder = tempfile::tempdir().unwrap();
    let url = etcd.url();
    let options = ["--etcd", url.as_str(), "--cluster", "several"];
    let mut managers: Vec<Manager> =
        (0..3).map(|index| Manager::start(&folder.path().join(index.to_string()), &options)).collect();
    let leader = wait_leader(&managers.iter().collect::<Vec<_>>(), None);
    let leads = managers.iter().position(|manager| manager.url() == leader).unwrap();
    let follower = (leads + 1) % 3;
    // A change by way of any manager is the leader's; all answer reads.
    assert!(managers[follower].admin("group add").out.starts_with("group 1 added"));
    wait_until("the follower's view", PATIENCE, || {
        let groups = managers[follower].admin("group list").out;
        if groups.starts_with("1\t0") { Ok(()) } else { Err(groups) }
    });
    // Killed: another one leads after its lease.
    let began = Instant::now();
    managers[leads].end(Signal::Kill);
    let rest: Vec<&Manager> =
        managers.iter().enumerate().filter(|(index, _)| *index != leads).map(|(_, one)| one).collect();
    let second = wait_leader(&rest, Some(&leader));
    let took = began.elapsed();
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert!(rest[0].admin("group add").out.starts_with("group 2 added"));
    // What was done is known to all, whoever wrote it.
    wait_until("the log of all", PATIENCE, || {
        let events = rest[0].admin("events").out;
        if events.matches("group.add").count() == 2 { Ok(()) } else { Err(events) }
    });
    // Stopped as asked: the last one leads at once.
    let leads = managers.iter().position(|manager| manager.url() == second).unwrap();
    managers[leads].end(Signal::Terminate);
    let last = managers.iter().find(|manager| manager.url() != leader && manager.url() != second).unwrap();
    wait_leader(&[last], Some(&second));
    assert_eq!(last.admin("group list").out.lines().count(), 2);
}

/// Defect 6 of the model, from outside: tokens with roles, and nothing of the inside in errors.
#[test]
fn a_manager_with_tokens_answers_whom_it_knows() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    let tokens = tokens.to_str().unwrap();
    let made = run(binary::oxidis(), &["manager", "--new-token-file", tokens], "");
    assert_eq!(made.code, Some(0), "{made:?}");
    let manager = Manager::start(&folder.path().join("manager"), &["--token-file", tokens]);
    let with = |file: &str, command: &str| manager.admin(&format!("--token-file {file} {command}"));
    wait_until("a leader", PATIENCE, || {
        let ran = with(tokens, "group add");
        if ran.code == Some(0) { Ok(()) } else { Err(ran) }
    });
    let without = manager.admin("topology");
    assert!(without.code == Some(1) && without.err.contains("a token is needed"), "{without:?}");
    assert!(without.err.contains("--token-file FILE"), "{without:?}");
    let text = std::fs::read_to_string(tokens).unwrap();
    let viewer = text.lines().find(|line| line.starts_with("viewer")).unwrap();
    let path = folder.path().join("viewer");
    std::fs::write(&path, viewer).unwrap();
    let viewer = path.to_str().unwrap();
    assert_eq!(with(viewer, "topology").code, Some(0));
    let refused = with(viewer, "group add");
    assert!(refused.err.contains("viewer may not do that"), "{refused:?}");
    let missing = with(tokens, "group remove 77");
    assert!(missing.code == Some(1) && missing.err.contains("there is no group 77"), "{missing:?}");
    for ran in [without, refused, missing] {
        assert!(!ran.err.contains(".rs") && !ran.err.contains("panicked"), "{ran:?}");
    }
    let outside = run(binary::oxidis(), &["manager", "--listen", "0.0.0.0:0"], "");
    assert!(outside.code == Some(2) && outside.err.contains("a --token-file is needed"), "{outside:?}");
}

#[test]
fn a_store_has_one_manager_and_survives_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut manager = Manager::start(folder.path(), &[]);
    wait_until("a leader", PATIENCE, || {
        let ran = manager.admin("group add 7");
        if ran.code == Some(0) { Ok(()) } else { Err(ran) }
    });
    let dir = folder.path().to_str().unwrap();
    let second = run(
        binary::oxidis(),
        &["manager", "--listen", "127.0.0.1:0", "--advertise", "http://127.0.0.1:1", "--dir", dir],
        "",
    );
    assert_eq!(second.code, Some(1), "{second:?}");
    manager.end(Signal::Kill);
    let manager = Manager::start(folder.path(), &[]);
    wait_until("the record", PATIENCE, || {
        let groups = manager.admin("group list").out;
        if groups.starts_with("7\t") { Ok(()) } else { Err(groups) }
    });
}

#[test]
fn the_client_says_what_to_do() {
    let nobody = run(binary::oxidis(), &["admin", "-m", "http://127.0.0.1:1", "topology"], "");
    assert!(nobody.code == Some(1) && nobody.err.contains("'oxidis up' starts a whole cluster"), "{nobody:?}");
    let mistyped = run(binary::oxidis(), &["admin", "grup", "add"], "");
    assert!(mistyped.code == Some(2) && mistyped.err.contains("Did you mean 'group'?"), "{mistyped:?}");
    let help = run(binary::oxidis(), &["help", "admin", "commands"], "");
    assert!(help.out.contains("move start RANGES GROUP"), "{help:?}");
}
