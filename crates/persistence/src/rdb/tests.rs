#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use super::*;
use crate::disk::{Disk, Fault, Operation, SimulatedDisk};
use ::rdb::codec::{RDB_VERSION, Writer, opcode};
use ::rdb::crc64::crc64;
use ::rdb::value::{Scrutiny, ValueType};
use keyspace::codec::ValueLimits;
use keyspace::eviction::AccessClock;
use keyspace::slot::SlotSpace;
use keyspace::snapshot::{Options, SnapshotSink, Totals};
use keyspace::{DbIndex, DbView, Events, Keyspace, LockSet, Value, hash, list, set, zset};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

const NOW_MS: i64 = 1_700_000_000_000;
const HASH: hash::Limits = hash::Limits { max_listpack_entries: 128, max_listpack_value: 64 };
const SET: set::Limits = set::Limits { max_intset_entries: 512, max_listpack_entries: 128, max_listpack_value: 64 };
const ZSET: zset::ZSetLimits = zset::ZSetLimits { max_listpack_entries: 128, max_listpack_value: 64 };

fn options<'a>(list: &'a list::ListLimits) -> LoadOptions<'a> {
    LoadOptions {
        limits: ValueLimits { hash: &HASH, set: &SET, zset: &ZSET, list },
        clock: AccessClock::at(NOW_MS, false, 10, 1),
        expires_before_ms: Some(NOW_MS),
        replaces: false,
        checks: true,
        scrutiny: Scrutiny::Structure,
        key_delay_us: 0,
        viewer: None,
    }
}

fn header() -> Header {
    Header {
        version: RDB_VERSION,
        redis_version: "7.2.5".into(),
        created_s: NOW_MS / 1000,
        used_memory: 1_234_567,
        replication: Some(Replication { stream_db: 0, id: "a".repeat(40), offset: 77 }),
        functions: vec![b"#!lua name=lib\n".to_vec()],
        checksum: true,
        ..Header::default()
    }
}

struct Data {
    keyspace: Arc<Keyspace>,
    locks: LockSet,
}

impl Data {
    fn new() -> Data {
        let keyspace = Keyspace::new(SlotSpace::Redis, 16);
        Data { locks: LockSet::new(keyspace.clone()), keyspace }
    }

    fn put(&mut self, db: u32, key: &str, value: Value, expiry: Option<i64>) {
        let slot = self.keyspace.slot(key.as_bytes());
        self.locks.enter();
        self.locks.lock_all(&[slot]);
        let mut events = Events::default();
        let mut view =
            DbView::new(&mut self.locks, &mut events, DbIndex(db), NOW_MS, AccessClock::at(NOW_MS, false, 10, 1));
        view.remove(key.as_bytes());
        view.insert(key.as_bytes(), value, expiry);
        self.locks.unlock_all();
        self.locks.leave();
    }

    /// Strings, a large hash, keys in several databases, some with an expiry.
    fn filled(keys: usize) -> Data {
        let mut data = Data::new();
        for number in 0..keys {
            let expiry = (number % 10 == 0).then_some(NOW_MS + 1_000 + i64::try_from(number).unwrap());
            let db = u32::try_from(number % 3).unwrap();
            data.put(db, &format!("key:{number}"), Value::from_bytes(format!("value {number}").as_bytes()), expiry);
        }
        let mut hash = keyspace::Hash::new();
        for field in 0..300 {
            hash.set(format!("field {field}").as_bytes(), "value".repeat(10).as_bytes(), &HASH);
        }
        data.put(0, "hash", Value::Hash(hash), None);
        data
    }

    fn snapshot(&mut self, sink: &mut dyn SnapshotSink) -> io::Result<Totals> {
        let snapshot = self.locks.alone(|locks| locks.keyspace().snapshots.begin(locks, Options::default())).unwrap();
        snapshot.run(&mut [LockSet::new(self.keyspace.clone()), LockSet::new(self.keyspace.clone())], sink)
    }

    fn file(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut encoder = Encoder::begin(&mut out, &header()).unwrap();
        self.snapshot(&mut encoder).unwrap();
        assert_eq!(encoder.finish().unwrap(), out.len() as u64);
        out
    }

    fn load(&mut self, bytes: &[u8]) -> Result<Loaded, LoadError> {
        let list = list::ListLimits::default();
        self.load_with(bytes, &options(&list), &mut Silent)
    }

    fn load_with(
        &mut self,
        bytes: &[u8],
        options: &LoadOptions<'_>,
        watcher: &mut dyn Watcher,
    ) -> Result<Loaded, LoadError> {
        let mut locks = [LockSet::new(self.keyspace.clone()), LockSet::new(self.keyspace.clone())];
        let mut splitter = Splitter::new(bytes, options.checks, 16)?;
        load(&mut splitter, &mut locks, options, &Progress::default(), watcher)
    }

    /// Records of all entries, by database and key.
    fn contents(&mut self) -> BTreeMap<(u32, Vec<u8>), Vec<u8>> {
        let mut contents = BTreeMap::new();
        let form = keyspace::snapshot::record::RecordForm::default();
        self.locks.alone(|locks| {
            for slot in locks.keyspace().clone().slots() {
                for (db, part) in locks.slot(slot).dbs() {
                    for entry in part.table().iter() {
                        let mut record = Vec::new();
                        keyspace::snapshot::record::write(&mut record, entry, &form);
                        contents.insert((db.0, entry.key().to_vec()), record);
                    }
                }
            }
        });
        contents
    }
}

#[test]
fn what_is_saved_is_loaded() {
    let mut data = Data::filled(5_000);
    let file = data.file();
    let mut other = Data::new();
    let loaded = other.load(&file).unwrap();
    assert_eq!((loaded.keys, loaded.expired, loaded.empty), (5_001, 0, 0));
    let (mut before, mut after) = (data.contents(), other.contents());
    // Fields of a hash come in the order of its table, which depends on its history.
    assert_eq!(
        before.remove(&(0, b"hash".to_vec())).unwrap().len(),
        after.remove(&(0, b"hash".to_vec())).unwrap().len()
    );
    assert_eq!(before, after);
    for db in 0..3 {
        assert_eq!(data.keyspace.counted(DbIndex(db)), other.keyspace.counted(DbIndex(db)));
    }
}

#[test]
fn fields_and_functions_are_told() {
    #[derive(Default)]
    struct Notes(Vec<String>);
    impl Functions for Notes {
        fn library(&mut self, text: &[u8]) -> Result<(), String> {
            self.0.push(format!("library {:?}", String::from_utf8_lossy(text)));
            Ok(())
        }
    }
    impl Watcher for Notes {
        fn field(&mut self, name: &[u8], value: &[u8]) {
            self.0.push(format!("{}={}", String::from_utf8_lossy(name), String::from_utf8_lossy(value)));
        }
        fn module_data(&mut self, module: &str) {
            self.0.push(format!("module {module}"));
        }
    }
    let file = Data::new().file();
    let list = list::ListLimits::default();
    let mut notes = Notes::default();
    Data::new().load_with(&file, &options(&list), &mut notes).unwrap();
    let a40 = "a".repeat(40);
    assert_eq!(
        notes.0,
        [
            "redis-ver=7.2.5",
            "redis-bits=64",
            "ctime=1700000000",
            "used-mem=1234567",
            "repl-stream-db=0",
            &format!("repl-id={a40}"),
            "repl-offset=77",
            "aof-base=0",
            "library \"#!lua name=lib\\n\"",
        ]
    );
}

#[test]
fn keys_whose_time_is_over_are_left_out_on_a_primary() {
    let mut data = Data::new();
    data.put(0, "gone", Value::Int(1), Some(NOW_MS - 1));
    data.put(0, "stays", Value::Int(2), Some(NOW_MS + 1));
    let file = data.file();
    let mut primary = Data::new();
    assert_eq!(primary.load(&file).map(|loaded| (loaded.keys, loaded.expired)).unwrap(), (1, 1));
    let list = list::ListLimits::default();
    let mut replica = Data::new();
    let options = LoadOptions { expires_before_ms: None, ..options(&list) };
    assert_eq!(replica.load_with(&file, &options, &mut Silent).unwrap().keys, 2);
}

#[test]
fn a_key_that_is_there_is_an_error_unless_it_is_replaced() {
    let mut data = Data::filled(50);
    let file = data.file();
    let mut other = Data::new();
    other.put(1, "key:1", Value::Int(7), Some(NOW_MS + 99));
    let error = other.load(&file).unwrap_err();
    assert_eq!(error.to_string(), "RDB has duplicated key 'key:1' in DB 1");
    let list = list::ListLimits::default();
    let options = LoadOptions { replaces: true, ..options(&list) };
    other.load_with(&file, &options, &mut Silent).unwrap();
    assert_eq!(other.keyspace.counted(DbIndex(1)), data.keyspace.counted(DbIndex(1)));
}

/// A file of these bytes between header and end.
fn file_of(version: u32, body: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut out = format!("REDIS{version:04}").into_bytes();
    body(&mut Writer::new(&mut out));
    out.push(opcode::EOF);
    if version >= 5 {
        let checksum = crc64(&out);
        out.extend_from_slice(&checksum.to_le_bytes());
    }
    out
}

fn string_record(writer: &mut Writer<'_>, key: &str, value: &str) {
    writer.value_type(ValueType::String);
    writer.string(key.as_bytes());
    writer.string(value.as_bytes());
}

#[test]
fn broken_files_are_refused_by_name() {
    let load = |bytes: &[u8]| Data::new().load(bytes).unwrap_err().to_string();
    assert_eq!(load(b"RUBBISH11"), "Wrong signature trying to load DB from file");
    assert_eq!(load(b"REDIS0012"), "Can't handle RDB format version 12");
    assert_eq!(load(b"REDIS0000"), "Can't handle RDB format version 0");
    assert_eq!(load(b"REDIS"), "Unexpected EOF reading RDB file");
    let good = file_of(11, |writer| string_record(writer, "a", "some value"));
    assert_eq!(Data::new().load(&good).unwrap().keys, 1);
    for len in 5..good.len() {
        assert_eq!(load(&good[..len]), "Unexpected EOF reading RDB file", "{len}");
    }
    let mut bad = good.clone();
    *bad.last_mut().unwrap() ^= 1;
    assert_eq!(load(&bad), "RDB CRC error");
    let len = bad.len();
    bad[len - 8..].fill(0);
    assert!(Data::new().load(&bad).unwrap().has_no_checksum);
    let unknown = file_of(11, |writer| writer.byte(200));
    assert_eq!(load(&unknown), "Invalid object type: 200");
    let module = file_of(11, |writer| {
        writer.byte(opcode::EXPIRETIME_MS);
        writer.raw(&[0; 8]);
        writer.value_type(ValueType::Module2);
        writer.string(b"key");
        writer.length(0);
    });
    assert_eq!(load(&module), "The RDB file contains module data I can't load: no matching module type 'AAAAAAAAA'");
    assert_eq!(load(&file_of(11, |writer| writer.byte(246))), "Pre-release function format not supported.");
    let database = file_of(11, |writer| {
        writer.byte(opcode::SELECTDB);
        writer.length(16);
    });
    assert!(load(&database).contains("more than 16 databases"));
}

#[test]
fn old_versions_modules_data_and_empty_values_are_read() {
    let old = file_of(2, |writer| {
        writer.byte(opcode::SELECTDB);
        writer.length(3);
        writer.byte(opcode::EXPIRETIME);
        writer.raw(&i32::try_from(NOW_MS / 1000 + 10).unwrap().to_le_bytes());
        string_record(writer, "old", "value");
    });
    let mut data = Data::new();
    assert_eq!(data.load(&old).unwrap().keys, 1);
    assert_eq!(data.keyspace.counted(DbIndex(3)), Some((1, 1)));
    let modern = file_of(11, |writer| {
        writer.byte(opcode::MODULE_AUX);
        for number in [1 << 20, 2, 0, 2, 5] {
            writer.length(number);
        }
        writer.length(5);
        writer.string(b"text");
        writer.length(0);
        writer.value_type(ValueType::Set);
        writer.string(b"empty");
        writer.begin_set(0);
        string_record(writer, "after", "it");
    });
    let loaded = Data::new().load(&modern).unwrap();
    assert_eq!((loaded.keys, loaded.empty, loaded.empty_names), (1, 1, vec![b"empty".to_vec()]));
}

#[test]
fn a_record_larger_than_the_window_is_read_whole() {
    let file = file_of(11, |writer| {
        string_record(writer, "before", "x");
        string_record(writer, "large", &"y".repeat(5 << 20));
        string_record(writer, "after", "z");
    });
    assert_eq!(Data::new().load(&file).unwrap().keys, 3);
    // What follows a file is left.
    let mut tail = file.clone();
    tail.extend_from_slice(b"*1\r\n");
    let list = list::ListLimits::default();
    let options = options(&list);
    let data = Data::new();
    let mut splitter = Splitter::new(&tail[..], true, 16).unwrap();
    let mut locks = [LockSet::new(data.keyspace.clone())];
    load(&mut splitter, &mut locks, &options, &Progress::default(), &mut Silent).unwrap();
    assert_eq!(splitter.position(), file.len() as u64);
    let (mut rest, mut source) = splitter.into_rest();
    io::Read::read_to_end(&mut source, &mut rest).unwrap();
    assert_eq!(rest, b"*1\r\n");
}

fn save_to(disk: &SimulatedDisk, data: &mut Data) -> Result<Totals, SaveError> {
    save(disk, Path::new("dump.rdb"), Path::new("temp-1.rdb"), &header(), true, |sink| data.snapshot(sink))
}

#[test]
fn a_save_that_fails_leaves_the_old_file_and_no_other() {
    let disk = SimulatedDisk::new();
    let mut data = Data::filled(300);
    save_to(&disk, &mut data).unwrap();
    let old = disk.read("dump.rdb").unwrap();
    data.put(0, "more", Value::Int(1), None);
    disk.set_fault(None);
    save_to(&disk.crash(|most| most), &mut data).unwrap();
    let faults = [
        (Fault::Room(100), SaveStep::Write),
        (Fault::Every(Operation::Open, 13), SaveStep::Open),
        (Fault::Every(Operation::Write, 5), SaveStep::Write),
        (Fault::Every(Operation::Sync, 5), SaveStep::Sync),
        (Fault::Every(Operation::Rename, 5), SaveStep::Rename),
    ];
    for (fault, step) in faults {
        disk.set_fault(Some(fault));
        assert_eq!(save_to(&disk, &mut data).unwrap_err().step, step, "{fault:?}");
        disk.set_fault(None);
        assert_eq!(disk.names(), [Path::new("dump.rdb")], "{fault:?}");
        assert_eq!(disk.read("dump.rdb").unwrap(), old, "{fault:?}");
        assert!(!data.keyspace.snapshots.is_active());
    }
    disk.set_fault(Some(Fault::Every(Operation::SyncDirectory, 5)));
    assert_eq!(save_to(&disk, &mut data).unwrap_err().step, SaveStep::SyncDirectory);
    disk.set_fault(None);
    save_to(&disk, &mut data).unwrap();
    assert_ne!(disk.read("dump.rdb").unwrap(), old);
}

#[test]
fn whichever_call_fails_the_file_is_the_old_or_the_new_one() {
    let mut data = Data::filled(300);
    let disk = SimulatedDisk::new();
    save_to(&disk, &mut data).unwrap();
    let calls = disk.calls();
    let old = disk.read("dump.rdb").unwrap();
    data.put(0, "more", Value::Int(1), None);
    for call in 0..calls {
        disk.set_fault(Some(Fault::Call(call, 5)));
        let saved = save_to(&disk, &mut data);
        disk.set_fault(None);
        let now = disk.read("dump.rdb").unwrap();
        assert!(saved.is_err() && (now == old || Data::new().load(&now).unwrap().keys == 302), "call {call}");
        assert!(disk.names().len() == 1, "call {call}: {:?}", disk.names());
    }
}

#[test]
fn after_a_power_cut_the_file_is_the_old_or_the_new_one() {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(7);
    println!("SEED={seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut data = Data::filled(300);
    let disk = SimulatedDisk::new();
    save_to(&disk, &mut data).unwrap();
    data.put(0, "more", Value::Int(1), None);
    let whole = disk.calls();
    let (mut old, mut new) = (0, 0);
    for call in 0..=whole {
        for _ in 0..20 {
            let disk = disk.crash(|most| most);
            disk.sync_directory(Path::new(".")).unwrap();
            // The power goes at this call: nothing after it happens.
            disk.set_fault(Some(Fault::Call(call, 5)));
            let acknowledged = save_to(&disk, &mut data).is_ok();
            let after = disk.crash(|most| rng.usize(0..=most));
            let keys = Data::new().load(&after.read("dump.rdb").expect("some file is there")).unwrap().keys;
            assert!(keys == 301 || keys == 302, "call {call}: {keys} keys");
            assert!(!acknowledged || keys == 302, "call {call}: an acknowledged snapshot is gone");
            *(if keys == 301 { &mut old } else { &mut new }) += 1;
        }
    }
    assert!(old > 0 && new > 0);
}

#[test]
fn mutated_files_never_panic_hang_or_take_memory() {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(11);
    println!("SEED={seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    let good = Data::filled(40).file();
    let list = list::ListLimits::default();
    let options = LoadOptions { checks: false, ..options(&list) };
    for _ in 0..300 {
        let mut bad = good.clone();
        for _ in 0..rng.usize(1..6) {
            let at = rng.usize(9..bad.len());
            match rng.u8(..4) {
                0 => bad[at] = rng.u8(..),
                1 => bad[at] ^= 1 << rng.u8(..8),
                2 => bad.truncate(at.max(10)),
                _ => {
                    let piece =
                        bad[rng.usize(9..bad.len())..].iter().copied().take(rng.usize(1..40)).collect::<Vec<_>>();
                    bad.splice(at..at, piece);
                }
            }
        }
        let _ = Data::new().load_with(&bad, &options, &mut Silent);
    }
}

fn report(bytes: &[u8]) -> (bool, String) {
    let mut out = Vec::new();
    let is_fine = check::check(bytes, "dump.rdb", NOW_MS, &mut out, |_| {}).unwrap();
    (is_fine, String::from_utf8(out).unwrap())
}

#[test]
fn check_rdb_reports_as_redis_does() {
    let file = file_of(11, |writer| {
        writer.byte(opcode::AUX);
        writer.string(b"redis-ver");
        writer.string(b"7.2.5");
        writer.byte(opcode::SELECTDB);
        writer.length(5);
        string_record(writer, "a", "x");
        writer.byte(opcode::EXPIRETIME_MS);
        writer.raw(&5_i64.to_le_bytes());
        string_record(writer, "b", "y");
    });
    let (is_fine, text) = report(&file);
    assert!(is_fine);
    assert_eq!(
        text,
        "[offset 0] Checking RDB file dump.rdb\n\
         [offset 26] AUX FIELD redis-ver = '7.2.5'\n\
         [offset 28] Selecting DB ID 5\n\
         [offset 56] Checksum OK\n\
         [offset 56] \\o/ RDB looks OK! \\o/\n\
         [info] 2 keys read\n\
         [info] 1 expires\n\
         [info] 1 already expired\n"
    );
    let (is_fine, text) = report(&file[..46]);
    assert!(!is_fine);
    assert!(text.contains("--- RDB ERROR DETECTED ---\n"), "{text}");
    assert!(text.contains("] Unexpected EOF reading RDB file\n"), "{text}");
    assert!(text.contains("[additional info] While doing: read-object-value\n"), "{text}");
    assert!(text.contains("[additional info] Reading key 'b'\n"), "{text}");
    assert!(text.contains("[additional info] Reading type 0 (string)\n[info] 2 keys read\n"), "{text}");
    let mut bad = file.clone();
    *bad.last_mut().unwrap() ^= 1;
    assert!(report(&bad).1.contains("RDB CRC error\n[additional info] While doing: check-sum\n[info] 2 keys read\n"));
    assert!(report(&file_of(11, |writer| writer.byte(100))).1.contains("Invalid object type: 100\n"));
    assert_eq!(
        report(b"REDIS0099").1,
        "[offset 0] Checking RDB file dump.rdb\n--- RDB ERROR DETECTED ---\n\
         [offset 9] Can't handle RDB format version 99\n[additional info] While doing: start\n\
         [additional info] Reading type 0 (string)\n[info] 0 keys read\n[info] 0 expires\n[info] 0 already expired\n"
    );
}
