//! Costs of the table: `cargo run --release -p keyspace --example table [items]`.
//!
//! Prints bytes per item, nanoseconds per operation, and the slowest single insertions.
#![allow(clippy::print_stdout, clippy::cast_precision_loss, missing_docs)]

use std::{hint::black_box, time::Instant};

use keyspace::{
    hashing::hash_key,
    table::{Item, Member, Table},
};

fn main() {
    let total: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(10_000_000);
    let key = |number: u64| -> [u8; 16] {
        let mut key = *b"key:000000000000";
        let mut rest = number;
        for digit in key[4..].iter_mut().rev() {
            *digit = b'0' + u8::try_from(rest % 10).unwrap_or(0);
            rest /= 10;
        }
        key
    };

    let begin = Instant::now();
    let mut sum = 0;
    for number in 0..total {
        sum ^= hash_key(black_box(&key(number)));
    }
    black_box(sum);
    println!("make key and hash      {:8.1} ns", begin.elapsed().as_nanos() as f64 / total as f64);

    let mut table = Table::new();
    let mut slowest = [0_u128; 5];
    let begin = Instant::now();
    for number in 0..total {
        let member = Member::new(&key(number));
        let hash = member.hash();
        let step = Instant::now();
        table.insert_unique(hash, member);
        let nanoseconds = step.elapsed().as_nanos();
        if nanoseconds > slowest[0] {
            slowest[0] = nanoseconds;
            slowest.sort_unstable();
        }
    }
    println!("insert, timed          {:8.1} ns", begin.elapsed().as_nanos() as f64 / total as f64);
    println!("slowest insertions     {:?} µs", slowest.map(|nanoseconds| nanoseconds / 1_000));
    println!("bytes per item         {:8.2}", table.memory_bytes() as f64 / table.len() as f64);

    let mut state = 1_u64;
    let begin = Instant::now();
    for _ in 0..total {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let key = key((state >> 20) % total);
        assert!(table.find(hash_key(&key), &key).is_some());
    }
    println!("find at random         {:8.1} ns", begin.elapsed().as_nanos() as f64 / total as f64);

    let begin = Instant::now();
    for number in 0..total {
        let key = key(number + total);
        assert!(table.find(hash_key(&key), &key).is_none());
    }
    println!("find what is not there {:8.1} ns", begin.elapsed().as_nanos() as f64 / total as f64);

    let begin = Instant::now();
    let mut cursor = 0;
    let mut seen = 0_u64;
    loop {
        cursor = table.scan(cursor, 10, |_| seen += 1);
        if cursor == 0 {
            break;
        }
    }
    assert_eq!(seen, total);
    println!("scan                   {:8.1} ns", begin.elapsed().as_nanos() as f64 / total as f64);

    let begin = Instant::now();
    for number in 0..total {
        let key = key(number);
        assert!(table.remove(hash_key(&key), &key).is_some());
    }
    println!("remove                 {:8.1} ns", begin.elapsed().as_nanos() as f64 / total as f64);
}
