//! The store in one file.

use std::process::{Command, Stdio};
use std::sync::Arc;

use topology::coordinator::embedded::Embedded;
use topology::coordinator::{Coordinator, EventsFrom, StoreError, Version};

use crate::suite::{self, event, lead};

#[test]
fn it_does_what_a_store_does() {
    let directory = tempfile::tempdir().unwrap();
    let store: Arc<dyn Coordinator> = Arc::new(Embedded::open_keeping(&directory.path().join("store"), 20).unwrap());
    suite::run(&|| Arc::clone(&store));
}

#[test]
fn what_was_written_is_there_when_it_is_opened_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = Embedded::open(&path).unwrap();
    let leadership = lead(&store, "one");
    let version = store.replace(&leadership, "a", Version(0), "kept", &[event("e")]).unwrap();
    // The process does not say goodbye.
    drop(leadership);
    drop(store);
    let store = Embedded::open(&path).unwrap();
    let document = store.load("a").unwrap().unwrap();
    assert_eq!((document.text.as_str(), document.version), ("kept", version));
    assert_eq!(store.events(EventsFrom::After(0), 9).unwrap()[0].event, event("e"));
    let leadership = lead(&store, "one");
    assert_eq!(leadership.term().0, 2);
    assert!(store.replace(&leadership, "a", version, "more", &[]).unwrap() > version);
}

#[test]
fn a_leadership_that_was_given_back_writes_no_more() {
    let directory = tempfile::tempdir().unwrap();
    let store = Embedded::open(&directory.path().join("store")).unwrap();
    let first = lead(&store, "one");
    let term = first.term();
    store.resign(first);
    let second = lead(&store, "two");
    assert!(second.term() > term);
    // A leadership of another store of the same name counts nothing here.
    let elsewhere = Embedded::open(&directory.path().join("elsewhere")).unwrap();
    let foreign = lead(&elsewhere, "one");
    assert_eq!(store.replace(&foreign, "a", Version(0), "x", &[]), Err(StoreError::NotLeader));
}

#[test]
fn what_is_no_store_is_refused_with_its_path() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    std::fs::write(&path, "some other file, long enough to be looked at".repeat(100)).unwrap();
    let Err(StoreError::Broken(text)) = Embedded::open(&path) else { panic!("it was opened") };
    assert!(text.contains(&path.display().to_string()), "{text}");
    let Err(StoreError::Broken(text)) = Embedded::open(&directory.path().join("no/such/folder")) else { panic!() };
    assert!(text.contains("no/such/folder"), "{text}");
}

const CHILD: &str = "TOPOLOGY_TEST_STORE";

/// Not a test of its own: the other process of the tests below. Writes without end, or holds the file.
#[test]
fn child_process() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let store = Embedded::open(path.as_ref()).unwrap();
    let leadership = lead(&store, "child");
    let mut version = store.load("count").unwrap().map_or(Version(0), |document| document.version);
    let mut count = store.load("count").unwrap().map_or(0, |document| document.text.parse::<u64>().unwrap());
    loop {
        count += 1;
        version =
            store.replace(&leadership, "count", version, &count.to_string(), &[event(&count.to_string())]).unwrap();
        // What was told to somebody must be there later.
        println!("wrote {count}");
    }
}

fn spawn(path: &std::path::Path) -> std::process::Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "embedded::child_process", "--nocapture"])
        .env(CHILD, path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Reads what the child says until it has written that often; gives the last.
fn wait_written(child: &mut std::process::Child, times: usize) -> (u64, impl Iterator<Item = u64> + use<>) {
    use std::io::{BufRead, BufReader};
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut written = lines.map_while(Result::ok).filter_map(|line| line.strip_prefix("wrote ")?.parse::<u64>().ok());
    let last = written.by_ref().take(times).last().expect("the child wrote nothing");
    (last, written)
}

#[test]
fn a_second_process_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let mut child = spawn(&path);
    let _ = wait_written(&mut child, 1);
    let Err(StoreError::Occupied(text)) = Embedded::open(&path) else { panic!("it was opened twice") };
    assert!(text.contains("in use by another manager") && text.contains("etcd"), "{text}");
    child.kill().unwrap();
    child.wait().unwrap();
    // The dead hold nothing.
    Embedded::open(&path).unwrap();
}

#[test]
fn a_kill_at_any_moment_loses_nothing_that_was_told() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    for round in 1..=6u64 {
        let mut child = spawn(&path);
        let (mut last, rest) = wait_written(&mut child, usize::try_from(round).unwrap() * 3);
        child.kill().unwrap();
        child.wait().unwrap();
        last = rest.last().unwrap_or(last);
        let store = Embedded::open(&path).unwrap();
        let count: u64 = store.load("count").unwrap().unwrap().text.parse().unwrap();
        // The one that was under way may have been done.
        assert!(count == last || count == last + 1, "{count} after {last}");
        let events = store.events(EventsFrom::Before(u64::MAX), 1).unwrap();
        assert_eq!(events[0].event.text, count.to_string());
    }
}
