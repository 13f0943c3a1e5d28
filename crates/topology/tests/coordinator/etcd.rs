//! The store in etcd, with Debian's etcd: killed, stopped, compacted; managers that elect, and one that sleeps.

use std::sync::Arc;
use std::time::{Duration, Instant};

use testkit::process::Signal;
use topology::coordinator::etcd::{Etcd, EtcdOptions};
use topology::coordinator::{Coordinator, EventsFrom, Leadership, Standing, StoreError, Version};

use crate::suite::{self, HAND_OVER, candidate, event, lead};

/// Leadership is given back in these tests, and a busy machine may take its time.
fn options(servers: &[testkit::Etcd]) -> EtcdOptions {
    let urls: Vec<String> = servers.iter().map(testkit::Etcd::url).collect();
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    EtcdOptions {
        lease_seconds: 20,
        request_limit: Duration::from_secs(5),
        kept_events: 20,
        ..EtcdOptions::new(&urls, "oxidis/test")
    }
}

fn open(servers: &[testkit::Etcd]) -> Etcd {
    Etcd::new(options(servers)).unwrap()
}

/// Where leases run out and endpoints hang.
fn open_quick(servers: &[testkit::Etcd]) -> Etcd {
    let request_limit = Duration::from_millis(700);
    Etcd::new(EtcdOptions { lease_seconds: LEASE.as_secs(), request_limit, ..options(servers) }).unwrap()
}

const LEASE: Duration = Duration::from_secs(3);

/// Waits until the store answers a writing.
fn write(store: &Etcd, leadership: &Leadership, name: &str, text: &str) -> Version {
    testkit::wait_until("etcd to take a document", HAND_OVER, || {
        let version = store.load(name).map_err(|error| error.to_string())?.map_or(Version(0), |found| found.version);
        store.replace(leadership, name, version, text, &[]).map_err(|error| error.to_string())
    })
}

#[test]
fn it_does_what_a_store_does() {
    let servers = [testkit::Etcd::start()];
    suite::run(&|| Arc::new(open(&servers)) as Arc<dyn Coordinator>);
    // Two clusters in one etcd see nothing of each other.
    let other = Etcd::new(EtcdOptions { prefix: "/oxidis/test2".to_string(), ..options(&servers) }).unwrap();
    assert_eq!(other.load("race"), Ok(None));
    assert_eq!(other.events(EventsFrom::Before(u64::MAX), 9), Ok(Vec::new()));
    assert_eq!(lead(&other, "one").term().0, 1);
}

#[test]
fn what_is_no_etcd_is_said_so() {
    let wrong = |endpoints: &[&str], prefix: &str| match Etcd::new(EtcdOptions::new(endpoints, prefix)) {
        Err(StoreError::Broken(text)) => text,
        _ => panic!("{endpoints:?} was taken"),
    };
    assert!(wrong(&[], "p").contains("no endpoint"));
    assert!(wrong(&["https://h:1"], "p").contains("only http://"));
    assert!(wrong(&["h:1"], "/").contains("prefix"));
    let port = testkit::server::free_port().unwrap();
    let nobody = Etcd::new(EtcdOptions::new(&[&format!("127.0.0.1:{port}")], "p")).unwrap();
    let Err(StoreError::Unreachable(text)) = nobody.load("a") else { panic!("somebody answers") };
    assert!(text.contains(&port.to_string()), "{text}");
    let began = Instant::now();
    assert!(nobody.wait_newer("a", Version(0), Duration::from_millis(300)).is_err());
    assert!(began.elapsed() < Duration::from_secs(3));
}

#[test]
fn a_leadership_is_renewed_and_outlives_no_lease() {
    let servers = [testkit::Etcd::start()];
    let (one, two) = (open_quick(&servers), open_quick(&servers));
    let first = lead(&one, "one");
    let term = first.term();
    // Longer than its lease: it is renewed.
    let until = Instant::now() + LEASE.mul_f32(1.2);
    while Instant::now() < until {
        if let Ok(standing) = two.campaign(&candidate("two")) {
            assert!(matches!(&standing, Standing::Follows(leader) if leader.term == term), "{standing:?}");
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(first.is_valid());
    // A manager that goes without a word: the next one leads soon after its lease.
    drop(first);
    let began = Instant::now();
    let second = lead(&two, "two");
    assert!(second.term() > term);
    assert!(began.elapsed() < LEASE * 2, "after {:?}", began.elapsed());
}

/// A process of its own that leads, and writes each time it is told to. Not a test of its own.
#[test]
fn child_process() {
    let Some(url) = std::env::var_os("TOPOLOGY_TEST_ETCD") else { return };
    let options =
        EtcdOptions { lease_seconds: LEASE.as_secs(), ..EtcdOptions::new(&[url.to_str().unwrap()], "oxidis/test") };
    let store = Etcd::new(options).unwrap();
    let leadership = lead(&store, "child");
    println!("leads {}", leadership.term());
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let valid = leadership.is_valid();
        let outcome = match store.replace(&leadership, &line, Version(0), "child", &[event("child")]) {
            Ok(_) => "done".to_string(),
            Err(error) => format!("{error:?}"),
        };
        println!("wrote {line} valid={valid} {outcome}");
    }
}

#[test]
fn a_manager_that_slept_through_its_lease_changes_nothing() {
    use std::io::{BufRead, BufReader, Write};
    let servers = [testkit::Etcd::start()];
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "etcd::child_process", "--nocapture"])
        .env("TOPOLOGY_TEST_ETCD", servers[0].url())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut says = |start: &str| lines.by_ref().find_map(|line| line.find(start).map(|at| line[at..].to_string()));
    assert_eq!(says("leads"), Some("leads 1".to_string()));
    writeln!(input, "before").unwrap();
    assert_eq!(says("wrote"), Some("wrote before valid=true done".to_string()));
    testkit::process::send_signal(child.id(), Signal::Stop).unwrap();
    let store = open(&servers);
    let leadership = lead(&store, "two");
    assert_eq!(leadership.term().0, 2);
    write(&store, &leadership, "mine", "two");
    // What it sends when it wakes is refused by etcd.
    writeln!(input, "after").unwrap();
    testkit::process::send_signal(child.id(), Signal::Continue).unwrap();
    assert_eq!(says("wrote"), Some("wrote after valid=false NotLeader".to_string()));
    assert_eq!(store.load("after"), Ok(None));
    assert!(leadership.is_valid());
    drop(input);
    child.wait().unwrap();
}

#[test]
fn etcd_killed_and_back_has_everything() {
    let mut servers = vec![testkit::Etcd::start()];
    let store = open_quick(&servers);
    let first = lead(&store, "one");
    let version = write(&store, &first, "a", "kept");
    store.append(&[event("kept")]).unwrap();
    servers[0].kill();
    assert!(matches!(store.load("a"), Err(StoreError::Unreachable(_))));
    assert!(matches!(store.append(&[event("lost")]), Err(StoreError::Unreachable(_))));
    // A leadership that cannot be renewed ends by the holder's own clock.
    testkit::wait_until("the lease to end", HAND_OVER, || if first.is_valid() { Err(first.left_ms()) } else { Ok(()) });
    servers[0].restart();
    let kept = store.load("a").unwrap().unwrap();
    assert_eq!((kept.text.as_str(), kept.version), ("kept", version));
    assert_eq!(store.events(EventsFrom::After(0), 9).unwrap().len(), 1);
    // Whether the old lease is taken up again or a new term begins, someone leads soon.
    testkit::wait_until("somebody to lead", HAND_OVER, || {
        if first.is_valid() {
            return Ok(());
        }
        match store.campaign(&candidate("two")) {
            Ok(Standing::Leads(second)) => {
                assert!(second.term() > first.term());
                Ok(())
            }
            other => Err(format!("{other:?}")),
        }
    });
}

#[test]
fn one_of_three_may_hang_or_die() {
    let mut servers = testkit::Etcd::start_cluster(3);
    // Long enough that an election among the servers does not end it, on a busy machine either.
    let lease = Duration::from_secs(5);
    let quick = EtcdOptions { request_limit: Duration::from_millis(700), ..options(&servers) };
    let store = Etcd::new(EtcdOptions { lease_seconds: lease.as_secs(), ..quick }).unwrap();
    let leadership = lead(&store, "one");
    let mut known = write(&store, &leadership, "a", "0");
    for signal in [Signal::Kill, Signal::Stop] {
        if signal == Signal::Stop {
            servers[0].signal(signal);
        } else {
            servers[0].kill();
        }
        let waiter = open_quick(&servers);
        let thread = std::thread::spawn(move || waiter.wait_newer("a", known, Duration::from_secs(20)));
        let text = format!("{signal:?}");
        known = write(&store, &leadership, "a", &text);
        assert_eq!(thread.join().unwrap().unwrap().unwrap().text, text);
        // The leadership is renewed through the others: it outlasts its lease. While they elect among themselves it rests.
        if signal == Signal::Stop {
            std::thread::sleep(lease);
            testkit::wait_until("the leadership to be renewed", HAND_OVER, || match leadership.is_lost() {
                false if leadership.is_valid() => Ok(()),
                lost => Err(lost),
            });
        }
        if signal == Signal::Stop { servers[0].signal(Signal::Continue) } else { servers[0].restart() }
    }
    // Without a majority nothing is taken, and nothing read that may be old.
    servers[1].kill();
    servers[2].kill();
    assert!(matches!(store.load("a"), Err(StoreError::Unreachable(_))));
    let refused = store.replace(&leadership, "a", known, "alone", &[]);
    assert!(matches!(refused, Err(StoreError::Unreachable(_))), "{refused:?}");
}

#[test]
fn a_compacted_past_does_not_stop_a_waiter() {
    let servers = [testkit::Etcd::start()];
    let store = open(&servers);
    let leadership = lead(&store, "one");
    let first = write(&store, &leadership, "a", "0");
    let mut last = first;
    for number in 1..20 {
        last = write(&store, &leadership, "a", &number.to_string());
    }
    let compact =
        |revision: u64| servers[0].post("kv/compaction", &format!("{{\"revision\":\"{revision}\",\"physical\":true}}"));
    assert!(compact(last.0).unwrap().contains("200"));
    // One that knows only what is forgotten gets what is there.
    let found = store.wait_newer("a", first, Duration::from_secs(5)).unwrap().unwrap();
    assert_eq!((found.text.as_str(), found.version), ("19", last));
    // One that waits while everything is compacted under it still sees the next.
    let waiter = open(&servers);
    let thread = std::thread::spawn(move || waiter.wait_newer("a", last, Duration::from_secs(20)));
    std::thread::sleep(Duration::from_millis(200));
    let other = write(&store, &leadership, "b", "x");
    assert!(compact(other.0).unwrap().contains("200"));
    let text = "after";
    write(&store, &leadership, "a", text);
    assert_eq!(thread.join().unwrap().unwrap().unwrap().text, text);
}
