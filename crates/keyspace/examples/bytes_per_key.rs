//! Growth of `used_memory` per key, field and member: what the server's own counters say.
//!
//! `cargo run --release -p keyspace --example bytes_per_key`

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::cast_precision_loss)]

use keyspace::eviction::AccessClock;
use keyspace::slot::SlotSpace;
use keyspace::{DbIndex, DbView, Events, Hash, Keyspace, LockSet, SetTtl, Value, ZSet, memory};

#[global_allocator]
static ALLOCATOR: memory::Counting<tikv_jemallocator::Jemalloc> = memory::Counting(tikv_jemallocator::Jemalloc);

const MANY: usize = 1_000_000;
const HASHES: usize = 100_000;
const LIMITS: keyspace::hash::Limits = keyspace::hash::Limits { max_listpack_entries: 512, max_listpack_value: 64 };

fn main() {
    let mut locks = LockSet::new(Keyspace::new(SlotSpace::Redis, 16));
    locks.enter();
    let mut events = Events::default();
    measure("key of 16 bytes with a value of 3", MANY, |number| {
        let key = format!("key:{number:012}");
        with_key(&mut locks, &mut events, &key, |db| db.set_str(key.as_bytes(), b"VXK", SetTtl::Clear));
    });
    measure("its time to live", MANY, |number| {
        let key = format!("key:{number:012}");
        with_key(&mut locks, &mut events, &key, |db| db.set_expiry(key.as_bytes(), Some(i64::MAX / 2)));
    });
    measure("key of 16 bytes with a value of 64", MANY, |number| {
        let key = format!("kez:{number:012}");
        with_key(&mut locks, &mut events, &key, |db| db.set_str(key.as_bytes(), &[b'x'; 64], SetTtl::Clear));
    });
    measure("hash of 10 fields", HASHES, |number| {
        let key = format!("hash:{number:012}");
        let mut hash = Hash::new();
        for field in 0..10 {
            hash.set(format!("field{field}").as_bytes(), b"value", &LIMITS);
        }
        with_key(&mut locks, &mut events, &key, |db| db.insert(key.as_bytes(), Value::Hash(hash), None));
    });
    let mut hash = Hash::new();
    measure("field of a hash of a million", MANY, |number| {
        hash.set(format!("field:{number:012}").as_bytes(), b"VXK", &LIMITS);
    });
    let mut zset = ZSet::new();
    measure("member of a sorted set of a million", MANY, |number| {
        zset.add(format!("elem:{number:012}").as_bytes(), number as f64, &keyspace::zset::ZSetLimits::default());
    });
    locks.leave();
}

fn measure(what: &str, count: usize, mut add: impl FnMut(usize)) {
    let before = memory::used_bytes();
    for number in 0..count {
        add(number);
    }
    println!("{what:<40} {:7.1} bytes", (memory::used_bytes() as f64 - before as f64) / count as f64);
}

fn with_key<R>(locks: &mut LockSet, events: &mut Events, key: &str, work: impl FnOnce(&mut DbView<'_>) -> R) {
    let slot = locks.keyspace().slot(key.as_bytes());
    assert!(locks.try_lock(slot));
    work(&mut DbView::new(locks, events, DbIndex(0), 0, AccessClock::default()));
    locks.unlock_all();
}
