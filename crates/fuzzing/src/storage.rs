//! Files: snapshots, logs, manifests.

use std::cell::RefCell;
use std::io::Cursor;
use std::sync::Arc;

use ::rdb::crc64::crc64;
use ::rdb::value::Scrutiny;
use keyspace::eviction::AccessClock;
use keyspace::slot::SlotSpace;
use keyspace::{Keyspace, LockSet, list};
use persistence::aof::{Frame, Frames, Manifest};
use persistence::rdb::{self, LoadOptions, Progress, Silent, Splitter};

use crate::values;

const DATABASES: u32 = 16;
const NOW_MS: i64 = 1_700_000_000_000;
/// After so many files the data of all before are dropped.
const FILES: u32 = 256;

thread_local! {
    /// What files are loaded into, with how many were.
    static DATA: RefCell<(Option<Arc<Keyspace>>, u32)> = const { RefCell::new((None, 0)) };
}

fn keyspace() -> Arc<Keyspace> {
    DATA.with_borrow_mut(|(keyspace, files)| {
        *files += 1;
        if *files % FILES == 0 {
            *keyspace = None;
        }
        keyspace.get_or_insert_with(|| Keyspace::new(SlotSpace::Codis, DATABASES)).clone()
    })
}

/// A snapshot, loaded over what is there.
pub(crate) fn rdb_file(data: &[u8]) {
    let Some((first, file)) = data.split_first() else { return };
    let list = list::ListLimits::default();
    let options = LoadOptions {
        limits: values::limits(&list),
        clock: AccessClock::at(NOW_MS, first & 1 != 0, 10, 1),
        expires_before_ms: (first & 2 != 0).then_some(NOW_MS),
        replaces: first & 4 == 0,
        checks: false,
        scrutiny: if first & 8 == 0 { Scrutiny::Structure } else { Scrutiny::Full },
        key_delay_us: 0,
        viewer: None,
    };
    let mut locks = [LockSet::new(keyspace())];
    let Ok(mut splitter) = Splitter::new(file, options.checks, DATABASES) else { return };
    let _ = rdb::load(&mut splitter, &mut locks, &options, &Progress::default(), &mut Silent);
}

/// The same through the checker, which reads by other code.
pub(crate) fn rdb_check(data: &[u8]) {
    let Some((_, file)) = data.split_first() else { return };
    let mut out = Vec::new();
    let Ok(_) = rdb::check::check(file, "file", NOW_MS, &mut out, |_| {}) else { panic!("a vector takes all") };
    assert!(out.len() < data.len() * 8 + 16_384);
}

pub(crate) fn rdb_seeds() -> Vec<Vec<u8>> {
    type Seeds = fn() -> Vec<Vec<u8>>;
    let mut body = b"REDIS0011\xfa\x09redis-ver\x057.2.5\xfe\x00\xfb\x20\x01".to_vec();
    let kinds: [(&[u8], Seeds); 6] = [
        (&[0], values::string_seeds),
        (&[1, 10, 14, 18], values::list_seeds),
        (&[2, 11, 20], values::set_seeds),
        (&[3, 5, 12, 17], values::zset_seeds),
        (&[4, 9, 13, 16], values::hash_seeds),
        (&[15, 19, 21], values::stream_seeds),
    ];
    let mut number = 0;
    for (bytes, seeds) in kinds {
        for seed in seeds() {
            let Some((kind, value)) = seed.split_first() else { continue };
            body.push(bytes[usize::from(*kind) % bytes.len()]);
            body.extend_from_slice(format!("\x02{number:02}").as_bytes());
            body.extend_from_slice(value);
            number += 1;
        }
    }
    let close = |mut bytes: Vec<u8>| {
        bytes.push(0xff);
        let sum = crc64(&bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        [vec![0], bytes].concat()
    };
    let timed = b"REDIS0009\xfe\x03\xfc\x00\x00\x00\x00\xff\x00\x00\x00\x00\x01k\x01v\xf8\x05\x00\x01l\x01v\xf9\x05\x00\x01m\x01v".to_vec();
    vec![close(body), close(timed), b"\0REDIS0001\xfe\x00\x00\x01k\x01v\xff".to_vec()]
}

/// A log, frame by frame: offsets ascend, and arguments lie within what was read.
pub(crate) fn aof(data: &[u8]) {
    let mut frames = Frames::new(Box::new(Cursor::new(data.to_vec())), 0);
    let mut last = 0;
    loop {
        let frame = frames.next_frame();
        let offset = frames.offset();
        assert!(offset >= last && offset <= data.len() as u64, "offset {offset} after {last}");
        match frame {
            Ok(Frame::Command) => {
                let bytes: usize = frames.arguments().iter().map(|argument| argument.len()).sum();
                assert!(bytes <= data.len() && offset > last);
            }
            Ok(Frame::Annotation) => assert!(frames.annotation().len() <= data.len() && offset > last),
            Ok(Frame::End) | Err(_) => return,
        }
        last = offset;
    }
}

pub(crate) fn aof_seeds() -> Vec<Vec<u8>> {
    [
        b"*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n".as_slice(),
        b"#TS:1700000000\r\n*1\r\n$5\r\nMULTI\r\n*2\r\n$4\r\nINCR\r\n$1\r\na\r\n*1\r\n$4\r\nEXEC\r\n",
        b"*1\r\n$4\r\nPING\r\n\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
    ]
    .map(<[u8]>::to_vec)
    .to_vec()
}

pub(crate) const MANIFEST_WORDS: &[&[u8]] = &[
    b"file ",
    b"seq ",
    b"type ",
    b" b",
    b" i",
    b" h",
    b"\n",
    b"\"",
    b"\\x",
    b"#",
    b"appendonly.aof.1.incr.aof",
    b"/",
    b"..",
];

/// A manifest; what is taken is written and read again.
pub(crate) fn manifest(data: &[u8]) {
    let Ok(manifest) = Manifest::parse(data) else { return };
    let Ok(again) = Manifest::parse(&manifest.to_text()) else {
        assert!(manifest.is_empty() && manifest.parts() == 0, "what was written is refused");
        return;
    };
    assert_eq!(again.to_text(), manifest.to_text());
}

pub(crate) fn manifest_seeds() -> Vec<Vec<u8>> {
    [
        "file appendonly.aof.1.base.rdb seq 1 type b\nfile appendonly.aof.1.incr.aof seq 1 type i\n",
        "# comment\nfile \"with space.incr\" seq 2 type h\nfile x.2.incr.aof seq 2 type i\nfile x.3.incr.aof seq 3 type i\n",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}
