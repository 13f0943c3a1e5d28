//! Decoding hostile bytes takes memory in proportion to the bytes, whatever they declare.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::cast_possible_truncation)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use rdb::codec::{Reader, Writer};
use rdb::listpack::Listpack;
use rdb::value::{Decoded, Scrutiny, ValueType, decode};

/// Counts live bytes and their peak. One test per process, so the counters are that test's.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: passes every call on to the system's allocator and only counts.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(live, Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn run(decoded: Decoded<'_, '_>) {
    match decoded {
        Decoded::ListElements(members) | Decoded::SetMembers(members) => members.for_each(drop),
        Decoded::ListNodes(nodes) => drop(nodes.collect::<Vec<_>>()),
        Decoded::ZsetMembers(members) => members.for_each(drop),
        Decoded::HashFields(fields) => fields.for_each(drop),
        Decoded::HashTimedFields(fields) => fields.for_each(drop),
        _ => {}
    }
}

/// A valid value of each packed kind, to damage.
fn sample(kind: u8, random: &mut fastrand::Rng) -> Vec<u8> {
    let mut listpack = Listpack::new();
    for index in 0..random.i64(1..300) {
        listpack.append_int(index);
    }
    let mut out = vec![];
    let mut writer = Writer::new(&mut out);
    match ValueType::from_byte(kind) {
        Ok(ValueType::ListQuicklist2) => {
            writer.begin_list(2);
            writer.list_packed(&listpack);
            writer.list_packed(&listpack);
        }
        Ok(ValueType::SetListpack | ValueType::HashListpack | ValueType::ZsetListpack) => writer.listpack(&listpack),
        _ => {
            writer.begin_set(listpack.len());
            listpack.iter().for_each(|elem| writer.elem(elem));
        }
    }
    out
}

#[test]
fn hostile_values_take_memory_in_proportion() {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(|| fastrand::u64(..));
    println!("SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut worst = 0.0_f64;
    for case in 0..60_000 {
        let kind = random.u8(0..22);
        let Ok(value_type) = ValueType::from_byte(kind) else { continue };
        let mut bytes = if case % 3 == 0 {
            (0..random.usize(0..200)).map(|_| random.u8(..)).collect()
        } else {
            sample(kind, &mut random)
        };
        for _ in 0..random.usize(0..4) {
            if !bytes.is_empty() {
                let at = random.usize(..bytes.len());
                bytes[at] = random.choice([0, 1, 0x7f, 0x80, 0x81, 0xf0, 0xfe, 0xff]).unwrap();
            }
        }
        // Huge declared lengths in front.
        if case % 5 == 0 {
            bytes.splice(0..0, [0x81, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]);
        }
        // Compressed strings may grow by the format's factor; they are bounded in lzf's own tests.
        if bytes.contains(&0xc3) {
            continue;
        }
        let before = LIVE.load(Ordering::Relaxed);
        PEAK.store(before, Ordering::Relaxed);
        if let Ok(decoded) = decode(value_type, &mut Reader::new(&bytes), Scrutiny::Full) {
            run(decoded);
        }
        let taken = PEAK.load(Ordering::Relaxed) - before;
        assert!(taken <= 8 * bytes.len() + 512, "seed {seed} case {case}: {taken} bytes for {} bytes", bytes.len());
        worst = worst.max(taken as f64 / (bytes.len() + 64) as f64);
    }
    println!("worst factor {worst:.2}");
}
