#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use super::*;
use crate::codec::{ValueLimits, read_value};
use crate::db::{DbView, SetTtl};
use crate::events::Events;
use crate::eviction::AccessClock;
use crate::keyspace::Keyspace;
use crate::slot::SlotSpace;
use crate::{Value, ValueRef, hash, list, set, zset};
use rdb::codec::Reader;
use rdb::value::{Scrutiny, ValueType, decode};
use std::collections::BTreeMap;

const NOW_MS: i64 = 1_700_000_000_000;

type Found = BTreeMap<(u32, Vec<u8>), (Option<i64>, Vec<u8>)>;

fn keyspace() -> Arc<Keyspace> {
    Keyspace::new(SlotSpace::Redis, 16)
}

/// Runs `work` on a database with the slots of `keys` held.
fn with_keys<R>(locks: &mut LockSet, db: u32, keys: &[&[u8]], work: impl FnOnce(&mut DbView<'_>) -> R) -> R {
    let mut slots: Vec<Slot> = keys.iter().map(|key| locks.keyspace().slot(key)).collect();
    slots.sort_unstable();
    slots.dedup();
    loop {
        locks.enter();
        if locks.try_lock_all(&slots).is_ok() {
            break;
        }
        locks.leave();
        std::thread::yield_now();
    }
    let mut events = Events::default();
    let result = work(&mut DbView::new(locks, &mut events, DbIndex(db), NOW_MS, AccessClock::default()));
    locks.unlock_all();
    locks.leave();
    result
}

fn put(locks: &mut LockSet, db: u32, key: &str, value: &str) {
    with_keys(locks, db, &[key.as_bytes()], |view| {
        view.set_str(key.as_bytes(), value.as_bytes(), SetTtl::Clear);
    });
}

fn text(value: ValueRef<'_>) -> Vec<u8> {
    match value {
        ValueRef::Str(string) => string.to_vec(),
        ValueRef::Hash(hash) => format!("hash of {}", hash.len()).into_bytes(),
        other => other.type_name().as_bytes().to_vec(),
    }
}

/// Everything in blocks of records; panics when a key comes twice.
fn read(bytes: &[u8]) -> Found {
    let limits = ValueLimits {
        hash: &hash::Limits { max_listpack_entries: 128, max_listpack_value: 64 },
        set: &set::Limits { max_intset_entries: 512, max_listpack_entries: 128, max_listpack_value: 64 },
        zset: &zset::ZSetLimits { max_listpack_entries: 128, max_listpack_value: 64 },
        list: &list::ListLimits::default(),
    };
    let mut found = Found::new();
    let mut reader = Reader::new(bytes);
    let (mut db, mut expiry) = (0, None);
    while !reader.rest().is_empty() {
        match reader.byte().unwrap() {
            opcode::SELECTDB => db = u32::try_from(reader.length().unwrap()).unwrap(),
            opcode::RESIZEDB => {
                reader.length().unwrap();
                reader.length().unwrap();
            }
            opcode::EXPIRETIME_MS => expiry = Some(reader.i64_le().unwrap()),
            opcode::IDLE => {
                reader.length().unwrap();
            }
            opcode::FREQ => {
                reader.byte().unwrap();
            }
            value_type => {
                let key = reader.string().unwrap().into_vec();
                let value_type = ValueType::from_byte(value_type).unwrap();
                let value = read_value(decode(value_type, &mut reader, Scrutiny::Full).unwrap(), limits).unwrap();
                let entry = Entry::new(&key, value, None);
                let before = found.insert((db, key.clone()), (expiry.take(), text(entry.value())));
                assert!(before.is_none(), "{} comes twice", String::from_utf8_lossy(&key));
            }
        }
    }
    found
}

/// All entries are of one generation when no snapshot runs.
fn check_parity(locks: &mut LockSet) {
    locks.alone(|locks| {
        let parity = locks.keyspace().snapshots.parity();
        for slot in locks.keyspace().clone().slots() {
            for (_, db) in locks.slot(slot).dbs() {
                db.table.check();
                assert!(db.table.iter().all(|entry| entry.parity() == parity), "slot {slot:?}");
            }
        }
    });
}

fn begin(locks: &mut LockSet, options: Options) -> Arc<Snapshot> {
    locks.alone(|locks| locks.keyspace().snapshots.begin(locks, options)).unwrap()
}

fn walkers(keyspace: &Arc<Keyspace>, count: usize) -> Vec<LockSet> {
    (0..count).map(|_| LockSet::new(keyspace.clone())).collect()
}

#[test]
fn what_was_there_at_the_instant_is_written_once() {
    let keyspace = keyspace();
    let mut locks = LockSet::new(keyspace.clone());
    for number in 0..3_000 {
        put(&mut locks, number % 3, &format!("key:{number}"), &format!("value {number}"));
    }
    with_keys(&mut locks, 0, &[b"key:0"], |view| view.set_expiry(b"key:0", Some(NOW_MS + 5)));
    let mut walkers = walkers(&keyspace, 2);
    for _ in 0..3 {
        let snapshot = begin(&mut locks, Options::default());
        let mut expected = Found::new();
        for number in 0..3_000_u32 {
            let expiry = (number == 0).then_some(NOW_MS + 5);
            let key = format!("key:{number}").into_bytes();
            expected.insert((number % 3, key), (expiry, format!("value {number}").into_bytes()));
        }
        // All kinds of change before any walker has come by.
        put(&mut locks, 0, "key:3", "changed");
        put(&mut locks, 0, "new", "never seen");
        with_keys(&mut locks, 0, &[b"key:6"], |view| assert!(view.remove(b"key:6")));
        with_keys(&mut locks, 0, &[b"key:0"], |view| view.set_expiry(b"key:0", None));
        with_keys(&mut locks, 0, &[b"key:9"], |view| {
            view.update(b"key:9", |entry| entry.make_buffer().unwrap().extend_from_slice(b" and more"))
        });
        let taken = with_keys(&mut locks, 0, &[b"key:12"], |view| view.take(b"key:12")).unwrap();
        with_keys(&mut locks, 1, &[b"key:12"], |view| view.insert(b"key:12", taken.0, taken.1));
        let mut out = Vec::new();
        let totals = snapshot.run(&mut walkers, &mut out).unwrap();
        assert_eq!(read(&out), expected);
        assert_eq!((totals.keys, totals.bytes), (3_000, out.len() as u64));
        assert!(totals.handed_over_bytes > 0);
        check_parity(&mut locks);
        // As it was.
        with_keys(&mut locks, 1, &[b"key:12"], |view| view.remove(b"key:12"));
        with_keys(&mut locks, 0, &[b"new"], |view| view.remove(b"new"));
        for number in [3, 6, 9, 12] {
            put(&mut locks, 0, &format!("key:{number}"), &format!("value {number}"));
        }
        with_keys(&mut locks, 0, &[b"key:0"], |view| view.set_expiry(b"key:0", Some(NOW_MS + 5)));
    }
}

#[test]
fn flushed_and_swapped_databases_are_written_as_they_were() {
    let keyspace = keyspace();
    let mut locks = LockSet::new(keyspace.clone());
    for number in 0..500 {
        put(&mut locks, 0, &format!("a:{number}"), "of 0");
        put(&mut locks, 1, &format!("b:{number}"), "of 1");
        put(&mut locks, 2, &format!("c:{number}"), "of 2");
    }
    let before = {
        let mut out = Vec::new();
        begin(&mut locks, Options::default()).run(&mut walkers(&keyspace, 1), &mut out).unwrap();
        read(&out)
    };
    assert_eq!(before.len(), 1_500);
    let snapshot = begin(&mut locks, Options::default());
    let swap = |locks: &mut LockSet, first, second| {
        locks.alone(|locks| {
            let mut events = Events::default();
            for slot in locks.keyspace().clone().slots() {
                locks.swap_slot_dbs(slot, DbIndex(first), DbIndex(second), NOW_MS, &mut events);
            }
            locks.keyspace().snapshots.note_swap(DbIndex(first), DbIndex(second));
        });
    };
    swap(&mut locks, 0, 1);
    put(&mut locks, 0, "b:7", "changed, was in 1");
    put(&mut locks, 0, "a:7", "new");
    swap(&mut locks, 1, 2);
    put(&mut locks, 2, "a:9", "changed, was in 0");
    locks.alone(|locks| {
        let mut garbage = Vec::new();
        for slot in locks.keyspace().clone().slots() {
            locks.empty_slot(slot, Some(DbIndex(2)), NOW_MS, &mut garbage);
        }
        assert!(garbage.is_empty(), "the snapshot has them");
    });
    put(&mut locks, 2, "a:11", "new after the flush");
    let mut out = Vec::new();
    snapshot.run(&mut walkers(&keyspace, 2), &mut out).unwrap();
    assert_eq!(read(&out), before);
    check_parity(&mut locks);
}

#[test]
fn transfers_between_accounts_never_change_the_total() {
    const ACCOUNTS: usize = 400;
    let keyspace = keyspace();
    let mut locks = LockSet::new(keyspace.clone());
    for number in 0..ACCOUNTS {
        put(&mut locks, 0, &format!("account:{number}"), "100");
        // Something between them, so that a walk takes a while.
        for filler in 0..20 {
            put(&mut locks, 0, &format!("filler:{number}:{filler}"), "x");
        }
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let mut locks = LockSet::new(keyspace.clone());
            let stop = &stop;
            scope.spawn(move || {
                let mut rng = fastrand::Rng::with_seed(seed);
                while !stop.load(Ordering::Relaxed) {
                    let keys: Vec<String> = (0..3).map(|_| format!("account:{}", rng.usize(..ACCOUNTS))).collect();
                    let bytes: Vec<&[u8]> = keys.iter().map(|key| key.as_bytes()).collect();
                    with_keys(&mut locks, 0, &bytes, |view| {
                        for (key, change) in bytes.iter().zip([-7_i64, 4, 3]) {
                            let old = text(view.get(key).unwrap());
                            let new = std::str::from_utf8(&old).unwrap().parse::<i64>().unwrap() + change;
                            // Both ways of changing a string: in place, and by another entry.
                            match view.entry_mut(key).and_then(|entry| entry.int_mut()) {
                                Some(number) if new % 2 == 0 => *number = new,
                                _ => {
                                    view.set_str(key, new.to_string().as_bytes(), SetTtl::Keep);
                                }
                            }
                        }
                    });
                }
            });
        }
        let mut walkers = walkers(&keyspace, 2);
        for round in 0..12 {
            let snapshot = begin(&mut locks, Options::default());
            let mut out = Vec::new();
            snapshot.run(&mut walkers, &mut out).unwrap();
            let found = read(&out);
            assert_eq!(found.len(), ACCOUNTS * 21, "round {round}");
            let total: i64 = found
                .iter()
                .filter(|((_, key), _)| key.starts_with(b"account"))
                .map(|(_, (_, value))| std::str::from_utf8(value).unwrap().parse::<i64>().unwrap())
                .sum();
            assert_eq!(total, 100 * i64::try_from(ACCOUNTS).unwrap(), "round {round}");
        }
        stop.store(true, Ordering::Relaxed);
    });
    check_parity(&mut locks);
}

/// A sink that fails after some blocks.
struct Failing(usize);

impl SnapshotSink for Failing {
    fn block(&mut self, _bytes: &[u8]) -> io::Result<()> {
        self.0 = self.0.checked_sub(1).ok_or(io::Error::from_raw_os_error(28))?;
        Ok(())
    }
}

#[test]
fn an_aborted_snapshot_leaves_nothing_behind() {
    let keyspace = keyspace();
    let mut locks = LockSet::new(keyspace.clone());
    for number in 0..5_000 {
        put(&mut locks, 0, &format!("key:{number}"), &"v".repeat(200));
    }
    let mut walkers = walkers(&keyspace, 2);
    let snapshot = begin(&mut locks, Options::default());
    let second = locks.alone(|locks| locks.keyspace().snapshots.begin(locks, Options::default())).err();
    assert_eq!(second, Some(AlreadyRunning));
    put(&mut locks, 0, "key:1", "changed");
    let error = snapshot.run(&mut walkers, &mut Failing(2)).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(28));
    assert!(!keyspace.snapshots.is_active() && !keyspace.snapshots.is_full());
    check_parity(&mut locks);
    let mut out = Vec::new();
    begin(&mut locks, Options::default()).run(&mut walkers, &mut out).unwrap();
    assert_eq!(read(&out).len(), 5_000);
    // One that is aborted before it runs.
    let snapshot = begin(&mut locks, Options::default());
    snapshot.abort();
    let mut out = Vec::new();
    assert_eq!(snapshot.run(&mut walkers, &mut out).unwrap_err().kind(), io::ErrorKind::Interrupted);
    check_parity(&mut locks);
}

#[test]
fn a_part_of_the_slots_is_enough() {
    let keyspace = keyspace();
    let mut locks = LockSet::new(keyspace.clone());
    for number in 0..2_000 {
        put(&mut locks, 0, &format!("key:{number}"), "value");
    }
    let slots: Vec<Slot> = keyspace.slots().take(4_000).collect();
    let is_in = |key: &[u8]| keyspace.slot(key).index() < 4_000;
    let snapshot = begin(&mut locks, Options { slots: Some(slots), ..Options::default() });
    for number in 0..200 {
        put(&mut locks, 0, &format!("key:{number}"), "changed");
    }
    let mut out = Vec::new();
    snapshot.run(&mut walkers(&keyspace, 1), &mut out).unwrap();
    let found = read(&out);
    assert!(found.iter().all(|((_, key), (_, value))| is_in(key) && value == b"value"));
    assert_eq!(found.len(), (0..2_000).filter(|number| is_in(format!("key:{number}").as_bytes())).count());
    check_parity(&mut locks);
}

#[test]
fn large_values_are_left_to_the_walkers() {
    let keyspace = keyspace();
    let mut locks = LockSet::new(keyspace.clone());
    let limits = hash::Limits { max_listpack_entries: 128, max_listpack_value: 64 };
    with_keys(&mut locks, 0, &[b"big"], |view| {
        let hash = view.upsert_hash(b"big").unwrap();
        for field in 0..5_000 {
            hash.set(format!("field {field}").as_bytes(), b"value", &limits);
        }
        view.insert(b"{big}small", Value::from_bytes(b"little"), None);
    });
    let asks = |locks: &mut LockSet, key: &[u8]| {
        with_keys(locks, 0, &[key], |view| {
            let hash = crate::hashing::hash_key(key);
            view.locks.is_too_large_to_hand_over(view.locks.keyspace().slot(key), DbIndex(0), hash, key, None)
        })
    };
    assert!(!asks(&mut locks, b"big"), "no snapshot runs");
    let snapshot = begin(&mut locks, Options::default());
    assert!(asks(&mut locks, b"big"));
    assert!(!asks(&mut locks, b"{big}small") && !asks(&mut locks, b"{big}absent"));
    let slot = keyspace.slot(b"big");
    // Who waits is a thread of its own: the one that runs the snapshot parks for its walkers and may take a wake-up that
    // came meanwhile for one of theirs.
    let waiter = std::thread::spawn(|| {
        let started = std::time::Instant::now();
        std::thread::park_timeout(Duration::from_secs(60));
        started.elapsed()
    });
    assert!(keyspace.snapshots.ask_for(slot, DbIndex(0), b"big", Wake::Thread(waiter.thread().clone())));
    let mut out = Vec::new();
    snapshot.run(&mut walkers(&keyspace, 1), &mut out).unwrap();
    assert!(waiter.join().unwrap() < Duration::from_secs(30), "woken, and not by the time limit");
    assert_eq!(read(&out)[&(0, b"big".to_vec())].1, b"hash of 5000");
    assert!(!asks(&mut locks, b"big"));
    assert!(!keyspace.snapshots.ask_for(slot, DbIndex(0), b"big", Wake::Thread(std::thread::current())));
}

#[test]
fn walkers_wait_for_a_slow_sink_and_writers_are_told() {
    struct Slow<'k> {
        keyspace: &'k Keyspace,
        saw_full: bool,
        bytes: usize,
    }
    impl SnapshotSink for Slow<'_> {
        fn block(&mut self, bytes: &[u8]) -> io::Result<()> {
            self.bytes += bytes.len();
            if self.keyspace.snapshots.is_full() {
                self.saw_full = true;
            }
            Ok(())
        }
    }
    let keyspace = keyspace();
    let mut locks = LockSet::new(keyspace.clone());
    for number in 0..600 {
        put(&mut locks, 0, &format!("key:{number}"), &"v".repeat(40_000));
    }
    let snapshot = begin(&mut locks, Options::default());
    // Nobody drains yet: 24 MB of hand-overs make the queue full.
    for number in 0..600 {
        put(&mut locks, 0, &format!("key:{number}"), "small");
    }
    assert!(keyspace.snapshots.is_full());
    let mut sink = Slow { keyspace: &keyspace, saw_full: false, bytes: 0 };
    snapshot.run(&mut walkers(&keyspace, 2), &mut sink).unwrap();
    assert!(sink.saw_full && !keyspace.snapshots.is_full());
    assert!(sink.bytes > 600 * 40_000);
}
