//! Time per operation and bytes per element of lists.
//!
//! `cargo run --release -p keyspace --example list_bench`

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::cast_precision_loss)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use keyspace::list::{End, List, ListLimits};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() {
    for (len, max_listpack_size) in [(100, -2), (1_000_000, -2), (10_000_000, -2), (1_000_000, 8)] {
        let limits = ListLimits { max_listpack_size, ..ListLimits::default() };
        println!("{len} elements of 10 bytes, list-max-listpack-size {max_listpack_size}");
        let before = allocated();
        let mut list = List::new();
        for (name, end) in [("  push back", End::Back), ("  push front", End::Front)] {
            let mut slowest = Duration::ZERO;
            per_op(name, len / 2, |step| {
                let start = (step % 64 == 0).then(Instant::now);
                list.push(end, b"xxxxxxxxxx", &limits);
                if let Some(start) = start {
                    slowest = slowest.max(start.elapsed());
                }
            });
        }
        let bytes = (allocated() - before) as f64 / len as f64;
        println!("  bytes per element: {bytes:.2} (own estimate {:.2})", list.memory_bytes() as f64 / len as f64);
        let mut random = 1_u64;
        let mut draw = move || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from((random >> 33) % len).unwrap()
        };
        per_op("  element by index", 100_000, |_| {
            black_box(list.get(draw()));
        });
        per_op("  walk of 100", 100_000, |_| {
            black_box(list.range(draw(), 100).map(|elem| elem.len_as_text()).sum::<usize>());
        });
        per_op("  push front, pop back", 1_000_000, |_| {
            list.push(End::Front, b"xxxxxxxxxx", &limits);
            list.pop(End::Back, &limits, |elem| black_box(elem.len_as_text()));
        });
        per_op("  push back, pop front", 1_000_000, |_| {
            list.push(End::Back, b"xxxxxxxxxx", &limits);
            list.pop(End::Front, &limits, |elem| black_box(elem.len_as_text()));
        });
        let middle = list.len() / 4..list.len() / 2;
        per_op("  trim to a quarter", 1, |_| list.trim(middle.clone(), &limits));
        per_op("  pop front", len / 8, |_| {
            list.pop(End::Front, &limits, |elem| black_box(elem.len_as_text()));
        });
        per_op("  pop back", len / 8, |_| {
            list.pop(End::Back, &limits, |elem| black_box(elem.len_as_text()));
        });
        drop(list);
        println!("  bytes left: {}", allocated().saturating_sub(before));
    }
}

fn per_op(name: &str, count: u64, mut run: impl FnMut(u64)) {
    let start = on_cpu_ns();
    (0..count).for_each(&mut run);
    println!("{name}: {:.1} ns", (on_cpu_ns() - start) as f64 / count.max(1) as f64);
}

/// Nanoseconds that the process ran: other programs of the machine do not count.
fn on_cpu_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap();
    stat.split(' ').next().unwrap().parse().unwrap()
}

fn allocated() -> usize {
    tikv_jemalloc_ctl::epoch::advance().unwrap();
    tikv_jemalloc_ctl::stats::allocated::read().unwrap()
}
