//! Time per operation and bytes per member of a sorted set of a million members.
//!
//! `cargo run --release -p keyspace --example zset_bench`

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::cast_precision_loss)]

use std::hint::black_box;

use keyspace::zset::{ScoreRange, ZSet, ZSetLimits};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const MEMBERS: u64 = 1_000_000;

fn main() {
    for (order, stride) in [("ascending", 1), ("pseudo-random", 7919)] {
        println!("{order} insertion of {MEMBERS} members");
        let before = allocated();
        let mut set = ZSet::new();
        let limits = ZSetLimits::default();
        let member = |number: u64| format!("elem:{number:012}");
        per_op("  format alone", MEMBERS, |step| {
            black_box(member(step * stride % MEMBERS));
        });
        per_op("  add", MEMBERS, |step| {
            let number = step * stride % MEMBERS;
            set.add(member(number).as_bytes(), number as f64, &limits);
        });
        let bytes = (allocated() - before) as f64 / MEMBERS as f64;
        println!("  bytes per member: {bytes:.1} (own estimate {:.1})", set.memory_bytes() as f64 / MEMBERS as f64);
        let mut random = 1_u64;
        let mut draw = move || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % MEMBERS
        };
        per_op("  score", MEMBERS, |_| {
            black_box(set.score(member(draw()).as_bytes()));
        });
        per_op("  rank", MEMBERS, |_| {
            black_box(set.rank(member(draw()).as_bytes()));
        });
        per_op("  count of scores", MEMBERS, |_| {
            let min = draw() as f64;
            let range = ScoreRange { min, max: min + 1000.0, min_exclusive: false, max_exclusive: true };
            black_box(set.score_ranks(&range));
        });
        per_op("  walk", MEMBERS / 100, |_| {
            let start = usize::try_from(draw()).unwrap();
            black_box(set.range(start..start + 100).map(|(member, _)| member.len_as_text()).sum::<usize>());
        });
        per_op("  new score far away", MEMBERS, |_| {
            let number = draw();
            set.add(member(number).as_bytes(), draw() as f64, &limits);
        });
        let bytes = (allocated() - before) as f64 / MEMBERS as f64;
        println!("  bytes per member: {bytes:.1}");
        per_op("  remove and add", MEMBERS, |_| {
            let number = draw();
            set.remove(member(number).as_bytes());
            set.add(member(number).as_bytes(), draw() as f64, &limits);
        });
        per_op("  pop lowest", MEMBERS, |_| {
            set.pop_min(|_, score| black_box(score));
        });
        drop(set);
        println!("  bytes left: {}", allocated().saturating_sub(before));
    }
}

fn per_op(name: &str, count: u64, mut run: impl FnMut(u64)) {
    let start = on_cpu_ns();
    (0..count).for_each(&mut run);
    println!("{name}: {:.0} ns", (on_cpu_ns() - start) as f64 / count as f64);
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
