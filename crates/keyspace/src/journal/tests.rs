#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::effects::Verbatim;
use super::*;
use crate::slot::SlotSpace;
use crate::{DbView, Events, Keyspace, SetTtl, Slot};
use resp::Args;
use std::sync::atomic::AtomicUsize;

fn new() -> (Arc<Keyspace>, LockSet) {
    let keyspace = Keyspace::new(SlotSpace::Redis, 16);
    let locks = LockSet::new(keyspace.clone());
    (keyspace, locks)
}

fn alone<R>(locks: &mut LockSet, work: impl FnOnce(&mut LockSet) -> R) -> R {
    locks.enter();
    let token = locks.begin_alone().unwrap();
    let result = work(locks);
    locks.end_alone(token);
    locks.leave();
    result
}

fn reader(keyspace: &Arc<Keyspace>, locks: &mut LockSet) -> Reader {
    alone(locks, |locks| keyspace.journal.read_from_here(locks, u64::MAX))
}

fn text(reader: &mut Reader) -> String {
    let mut bytes = Vec::new();
    reader.read(&mut bytes, usize::MAX).unwrap();
    // `*2 $3 DEL $1 k` is enough to read.
    let all = String::from_utf8(bytes).unwrap();
    all.split("\r\n").filter(|part| !part.starts_with(['*', '$'])).collect::<Vec<_>>().join(" ").trim().to_owned()
}

/// Runs `work` as a command on every slot.
fn command(locks: &mut LockSet, db: u32, words: &[&str], changed: bool, work: impl FnOnce(&mut DbView<'_>)) {
    locks.enter();
    let slots: Vec<Slot> = locks.keyspace().slots().collect();
    locks.try_lock_all(&slots[..1]).unwrap();
    let mut events = Events::default();
    let mut view = DbView::new(locks, &mut events, DbIndex(db), 1_000, crate::eviction::AccessClock::default());
    work(&mut view);
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    locks.effects.command_ran(DbIndex(db), Verbatim::Args(Args::from_slices(&words)), changed);
    locks.unlock_all();
    locks.leave();
}

#[test]
fn nothing_is_recorded_without_a_reader() {
    let (keyspace, mut locks) = new();
    command(&mut locks, 0, &["SET", "a", "1"], true, |_| {});
    assert_eq!(keyspace.journal.end(), 0);
    let mut reader = reader(&keyspace, &mut locks);
    command(&mut locks, 0, &["SET", "a", "2"], true, |_| {});
    command(&mut locks, 0, &["GET", "a"], false, |_| {});
    command(&mut locks, 3, &["SET", "b", "3"], true, |_| {});
    command(&mut locks, 3, &["SET", "c", "3"], true, |_| {});
    assert_eq!(text(&mut reader), "SELECT 0 SET a 2 SELECT 3 SET b 3 SET c 3");
    let end = keyspace.journal.end();
    drop(reader);
    command(&mut locks, 0, &["SET", "a", "4"], true, |_| {});
    assert_eq!(keyspace.journal.end(), end);
    assert_eq!(keyspace.journal.kept_bytes(), 0);
}

#[test]
fn effects_stand_for_the_command() {
    let (keyspace, mut locks) = new();
    let mut reader = reader(&keyspace, &mut locks);
    command(&mut locks, 0, &["SPOP", "s"], true, |view| view.effect(&[b"SREM", b"s", b"x"]));
    assert_eq!(text(&mut reader), "SELECT 0 SREM s x");
    command(&mut locks, 0, &["SPOP", "s", "2"], true, |view| {
        view.effect(&[b"SREM", b"s", b"x"]);
        view.effect(&[b"SREM", b"s", b"y"]);
    });
    assert_eq!(text(&mut reader), "MULTI SREM s x SREM s y EXEC");
    command(&mut locks, 0, &["PFCOUNT", "h"], true, |view| view.no_effect());
    command(&mut locks, 0, &["FLUSHDB"], false, |view| view.always_effect());
    command(&mut locks, 0, &["GET", "h"], false, |_| {});
    assert_eq!(text(&mut reader), "FLUSHDB");
}

#[test]
fn transactions_are_wrapped_when_they_have_several_effects() {
    let (keyspace, mut locks) = new();
    let mut reader = reader(&keyspace, &mut locks);
    for writes in [0, 1, 2] {
        locks.effects.begin();
        for _ in 0..writes {
            locks.effects.command_ran(DbIndex(2), Verbatim::Frame(b"*1\r\n$1\r\nw\r\n"), true);
        }
        locks.effects.end();
        locks.enter();
        assert!(locks.try_lock(Slot::new(0)));
        locks.unlock_all();
        locks.leave();
    }
    // As Redis: MULTI itself selects nothing.
    assert_eq!(text(&mut reader), "SELECT 2 w MULTI w w EXEC");
}

#[test]
fn keys_that_end_are_deleted_first() {
    let (keyspace, mut locks) = new();
    let mut reader = reader(&keyspace, &mut locks);
    let key = (0..).map(|number| format!("k{number}")).find(|key| keyspace.slot(key.as_bytes()).index() == 0).unwrap();
    let key = key.as_bytes();
    command(&mut locks, 0, &["SET"], true, |view| {
        view.set_str(key, b"v", SetTtl::At(500));
    });
    text(&mut reader);
    command(&mut locks, 0, &["SET", "again"], true, |view| {
        view.set_str(key, b"v", SetTtl::At(500));
    });
    let name = String::from_utf8_lossy(key).into_owned();
    assert_eq!(text(&mut reader), format!("MULTI DEL {name} SET again EXEC"));
    keyspace.journal.set_lazy(Deletion::Expired, true);
    command(&mut locks, 0, &["GET"], false, |view| assert!(!view.exists(key)));
    assert_eq!(text(&mut reader), format!("UNLINK {name}"));
}

#[test]
fn files_do_not_see_what_is_for_replicas() {
    let (keyspace, mut locks) = new();
    let mut all = reader(&keyspace, &mut locks);
    let mut file = reader(&keyspace, &mut locks);
    command(&mut locks, 0, &["A"], true, |_| {});
    keyspace.journal.append_for_replicas(b"*1\r\n$4\r\nPING\r\n");
    command(&mut locks, 0, &["PUBLISH"], false, |view| view.effect_for_replicas(&[b"PUBLISH", b"c", b"m"]));
    command(&mut locks, 0, &["B"], true, |_| {});
    keyspace.journal.append_for_replicas(b"*1\r\n$4\r\nPING\r\n");
    assert_eq!(text(&mut all), "SELECT 0 A PING PUBLISH c m B PING");
    let mut bytes = Vec::new();
    file.read_for_file(&mut bytes, usize::MAX, u64::MAX).unwrap();
    assert_eq!(bytes, b"*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*1\r\n$1\r\nA\r\n*1\r\n$1\r\nB\r\n");
    assert_eq!(file.position(), all.position());
}

#[test]
fn readers_read_every_byte_in_any_portions() {
    let (keyspace, mut locks) = new();
    let mut readers: Vec<Reader> = (0..3).map(|_| reader(&keyspace, &mut locks)).collect();
    let mut expected = Vec::new();
    let mut got: Vec<Vec<u8>> = vec![Vec::new(); 3];
    let mut rng = fastrand::Rng::with_seed(7);
    for round in 0..3_000_u32 {
        let len = if round % 500 == 7 { 200_000 } else { rng.usize(1..400) };
        let bytes: Vec<u8> = (0..len).map(|_| rng.u8(..)).collect();
        keyspace.journal.append_stream(&bytes, false);
        expected.extend_from_slice(&bytes);
        let which = rng.usize(..3);
        if rng.bool() {
            readers[which].read(&mut got[which], rng.usize(1..100_000)).unwrap();
        }
    }
    for (reader, got) in readers.iter_mut().zip(&mut got) {
        while reader.behind() > 0 {
            reader.read(got, 50_000).unwrap();
        }
        assert!(*got == expected);
    }
    assert!(keyspace.journal.kept_bytes() <= 2 * BLOCK as u64);
}

#[test]
fn a_backlog_serves_readers_that_come_late() {
    let (keyspace, mut locks) = new();
    alone(&mut locks, |locks| keyspace.journal.set_backlog(locks, Some(200_000)));
    assert!(keyspace.journal.is_read());
    for number in 0..50_000_u32 {
        keyspace.journal.append_stream(&number.to_be_bytes().repeat(4), false);
    }
    let end = keyspace.journal.end();
    assert_eq!(end, 800_000);
    let kept = keyspace.journal.kept_bytes();
    assert!((200_000..200_000 + 2 * BLOCK as u64).contains(&kept), "{kept}");
    assert!(keyspace.journal.read_from(&keyspace, keyspace.journal.start() - 1, u64::MAX).is_none());
    assert!(keyspace.journal.read_from(&keyspace, end + 1, u64::MAX).is_none());
    let mut reader = keyspace.journal.read_from(&keyspace, 700_000, u64::MAX).unwrap();
    let mut bytes = Vec::new();
    reader.read(&mut bytes, usize::MAX).unwrap();
    assert_eq!(bytes.len(), 100_000);
    assert_eq!(bytes[..4], (700_000_u32 / 16).to_be_bytes());
}

#[test]
fn a_reader_that_lags_loses_its_place() {
    let (keyspace, mut locks) = new();
    let mut slow = alone(&mut locks, |locks| keyspace.journal.read_from_here(locks, 100_000));
    let mut patient = reader(&keyspace, &mut locks);
    for _ in 0..300 {
        keyspace.journal.append_stream(&[b'x'; 1000], false);
    }
    let mut bytes = Vec::new();
    assert_eq!(slow.read(&mut bytes, usize::MAX), Err(Lost));
    assert_eq!(patient.read(&mut bytes, usize::MAX), Ok(300_000));
}

#[test]
fn a_reader_is_woken_once() {
    let (keyspace, mut locks) = new();
    let mut reader = reader(&keyspace, &mut locks);
    let woken = Arc::new(AtomicUsize::new(0));
    let count = woken.clone();
    reader.set_waker(Arc::new(move || {
        count.fetch_add(1, Ordering::SeqCst);
    }));
    command(&mut locks, 0, &["A"], true, |_| {});
    assert_eq!(woken.load(Ordering::SeqCst), 0, "it did not ask");
    assert!(!reader.arm(), "there are bytes");
    text(&mut reader);
    assert!(reader.arm());
    command(&mut locks, 0, &["A"], true, |_| {});
    command(&mut locks, 0, &["A"], true, |_| {});
    assert_eq!(woken.load(Ordering::SeqCst), 1);
}

#[test]
fn a_follower_records_its_primary_alone() {
    let (keyspace, mut locks) = new();
    let mut reader = reader(&keyspace, &mut locks);
    command(&mut locks, 0, &["A"], true, |_| {});
    text(&mut reader);
    alone(&mut locks, |locks| keyspace.journal.set_following(locks, true));
    command(&mut locks, 0, &["B"], true, |_| {});
    keyspace.journal.append_stream(b"*1\r\n$1\r\nC\r\n", false);
    assert_eq!(text(&mut reader), "C");
    keyspace.journal.restart_at(5_000);
    assert_eq!(keyspace.journal.end(), 5_000);
    assert_eq!(reader.read(&mut Vec::new(), usize::MAX), Err(Lost));
}

#[test]
fn a_reader_can_be_stopped_at_an_instant() {
    let (keyspace, mut locks) = new();
    let mut reader = reader(&keyspace, &mut locks);
    let stopper = reader.stopper();
    command(&mut locks, 0, &["A"], true, |_| {});
    let at = alone(&mut locks, |_| stopper.stop_here());
    command(&mut locks, 0, &["B"], true, |_| {});
    assert_eq!(text(&mut reader), "SELECT 0 A");
    assert_eq!(reader.position(), at);
    assert_eq!(text(&mut reader), "");
    stopper.let_go();
    assert_eq!(text(&mut reader), "SELECT 0 B");
}
