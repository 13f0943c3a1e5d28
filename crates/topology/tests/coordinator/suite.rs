//! What every store does, as seen by managers that open it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use topology::coordinator::{
    Candidate, Coordinator, EventsFrom, Leadership, NewEvent, Standing, StoreError, TOPOLOGY, Version,
};
use topology::{Change, SlotSpace, Topology};

/// Opens the store as another manager would.
pub(crate) type Open<'a> = &'a dyn Fn() -> Arc<dyn Coordinator>;

/// How long a leadership may outlast its holder in these tests.
pub(crate) const HAND_OVER: Duration = Duration::from_secs(8);

pub(crate) fn candidate(id: &str) -> Candidate {
    Candidate { id: id.to_string(), url: format!("http://{id}") }
}

/// Leads, waiting until whoever led before is gone.
pub(crate) fn lead(store: &dyn Coordinator, id: &str) -> Leadership {
    testkit::wait_until(&format!("{id} to lead"), HAND_OVER, || match store.campaign(&candidate(id)) {
        Ok(Standing::Leads(leadership)) => Ok(leadership),
        other => Err(other),
    })
}

pub(crate) fn event(text: &str) -> NewEvent {
    NewEvent {
        time_ms: 7,
        who: "test".to_string(),
        kind: "test.happened".to_string(),
        text: text.to_string(),
        detail: serde_json::Value::Null,
    }
}

/// Everything, in one store.
pub(crate) fn run(open: Open<'_>) {
    documents_are_replaced_by_comparison(open);
    a_term_grows_with_each_leadership(open);
    records_are_read_and_checked(open);
    waiters_see_what_is_new(open);
    events_are_kept_in_order_and_bounded(open);
    of_two_that_write_one_wins(open);
}

fn documents_are_replaced_by_comparison(open: Open<'_>) {
    let store = open();
    let leadership = lead(&*store, "one");
    let (none, text) = (Version(0), "first \u{1f980} \"quoted\"\n");
    assert_eq!(store.load("a/b"), Ok(None));
    let first = store.replace(&leadership, "a/b", none, text, &[]).unwrap();
    assert_eq!(store.replace(&leadership, "a/b", none, "again", &[]), Err(StoreError::Conflict));
    let loaded = open().load("a/b").unwrap().unwrap();
    assert_eq!((loaded.text.as_str(), loaded.version), (text, first));
    let second = store.replace(&leadership, "a/b", first, "second", &[]).unwrap();
    assert!(second > first);
    assert_eq!(store.replace(&leadership, "a/b", first, "third", &[event("never")]), Err(StoreError::Conflict));
    assert_eq!(store.load("a/b").unwrap().unwrap().text, "second");
    assert_eq!(store.load("a"), Ok(None));
    assert!(!store.events(EventsFrom::After(0), 100).unwrap().iter().any(|event| event.event.text == "never"));
    let long = "x".repeat(900_000);
    let third = store.replace(&leadership, "long", none, &long, &[]).unwrap();
    assert_eq!(store.load("long").unwrap().map(|document| document.text), Some(long));
    store.replace(&leadership, "long", third, "", &[]).unwrap();
    assert_eq!(store.load("long").unwrap().map(|document| document.text).as_deref(), Some(""));
    store.resign(leadership);
}

fn a_term_grows_with_each_leadership(open: Open<'_>) {
    let (one, two) = (open(), open());
    let first = lead(&*one, "one");
    assert!(first.is_valid() && first.left_ms() > 500);
    let leader = two.leader().unwrap().unwrap();
    assert_eq!((leader.candidate, leader.term), (candidate("one"), first.term()));
    match two.campaign(&candidate("two")).unwrap() {
        Standing::Follows(leader) => assert_eq!(leader.candidate.url, "http://one"),
        Standing::Leads(_) => panic!("two lead"),
    }
    let term = first.term();
    one.resign(first);
    assert_eq!(one.leader(), Ok(None));
    // It is given back: the next follows at once.
    let second = match two.campaign(&candidate("two")).unwrap() {
        Standing::Leads(leadership) => leadership,
        Standing::Follows(leader) => panic!("{leader:?} leads"),
    };
    assert!(second.term() > term);
    two.replace(&second, "who", Version(0), "two", &[]).unwrap();
    two.resign(second);
}

fn records_are_read_and_checked(open: Open<'_>) {
    let store = open();
    let leadership = lead(&*store, "one");
    assert_eq!(store.load_topology(), Ok(None));
    let topology = Topology::new("c", SlotSpace::Codis);
    let topology = topology.apply(&Change::BeginTerm { term: leadership.term() }).unwrap();
    let version = store.replace_topology(&leadership, Version(0), &topology, &[event("made")]).unwrap();
    let stored = open().load_topology().unwrap().unwrap();
    assert_eq!((stored.topology.clone(), stored.version), (topology.clone(), version));
    let broken = serde_json::to_string(&topology).unwrap().replace("\"next_move\":1", "\"next_move\":\"one\"");
    let version = store.replace(&leadership, TOPOLOGY, version, &broken, &[]).unwrap();
    assert!(matches!(store.load_topology(), Err(StoreError::Broken(_))));
    store.replace_topology(&leadership, version, &topology, &[]).unwrap();
    store.resign(leadership);
}

fn waiters_see_what_is_new(open: Open<'_>) {
    let store = open();
    let leadership = lead(&*store, "one");
    let known = store.load_topology().unwrap().unwrap();
    let began = Instant::now();
    assert_eq!(store.wait_newer_topology(known.version, Duration::from_millis(150)), Ok(None));
    assert!(began.elapsed() >= Duration::from_millis(150));
    // What came before it began to wait is seen at once.
    assert_eq!(store.wait_newer_topology(Version(0), Duration::ZERO), Ok(Some(known.clone())));
    let next = known.topology.apply(&Change::AddGroup { id: None }).unwrap();
    let waiter = open();
    let version = known.version;
    let thread = std::thread::spawn(move || waiter.wait_newer_topology(version, Duration::from_secs(20)));
    // Another document does not wake it for good.
    store.replace(&leadership, "other", Version(0), "x", &[]).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    assert!(!thread.is_finished());
    let began = Instant::now();
    let version = store.replace_topology(&leadership, version, &next, &[]).unwrap();
    let seen = thread.join().unwrap().unwrap().unwrap();
    assert_eq!((seen.topology, seen.version), (next, version));
    assert!(began.elapsed() < Duration::from_secs(3), "seen after {:?}", began.elapsed());
    store.resign(leadership);
}

/// The stores of the suite keep twenty.
fn events_are_kept_in_order_and_bounded(open: Open<'_>) {
    let store = open();
    store.append(&[]).unwrap();
    for number in 0..15 {
        store.append(&[event(&format!("a{number}")), event(&format!("b{number}"))]).unwrap();
    }
    let all = store.events(EventsFrom::After(0), 1_000).unwrap();
    assert_eq!(all.len(), 20);
    assert!(all.windows(2).all(|pair| pair[0].id < pair[1].id));
    assert_eq!(all.last().unwrap().event, event("b14"));
    let last = store.events(EventsFrom::Before(u64::MAX), 3).unwrap();
    assert_eq!(last.iter().map(|event| event.event.text.as_str()).collect::<Vec<_>>(), ["b14", "a14", "b13"]);
    let more = store.events(EventsFrom::Before(last[2].id), 1).unwrap();
    assert_eq!(more[0].event.text, "a13");
    let after = store.events(EventsFrom::After(last[1].id), 10).unwrap();
    assert_eq!(after, last[..1]);
}

fn of_two_that_write_one_wins(open: Open<'_>) {
    let store = open();
    let leadership = lead(&*store, "one");
    let won = std::thread::scope(|scope| {
        let write = |name: &'static str| {
            let (store, leadership) = (open(), &leadership);
            scope.spawn(move || store.replace(leadership, "race", Version(0), name, &[event(name)]))
        };
        let threads: Vec<_> = ["r0", "r1", "r2", "r3"].into_iter().map(write).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).filter(Result::is_ok).count()
    });
    assert_eq!(won, 1);
    let winner = store.load("race").unwrap().unwrap().text;
    let noted = store.events(EventsFrom::Before(u64::MAX), 20).unwrap();
    let noted: Vec<&str> =
        noted.iter().map(|event| event.event.text.as_str()).filter(|text| text.starts_with('r')).collect();
    assert_eq!(noted, [winner.as_str()]);
    // Many write events at once: none is lost, none overwritten.
    std::thread::scope(|scope| {
        for name in ["e0", "e1", "e2"] {
            let store = open();
            scope.spawn(move || {
                for _ in 0..3 {
                    store.append(&[event(name)]).unwrap();
                }
            });
        }
    });
    let last = store.events(EventsFrom::Before(u64::MAX), 9).unwrap();
    for name in ["e0", "e1", "e2"] {
        assert_eq!(last.iter().filter(|event| event.event.text == name).count(), 3, "{last:?}");
    }
    store.resign(leadership);
}
