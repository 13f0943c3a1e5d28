//! A growing and shrinking table never allocates more than 1 MiB at once and stays within its bytes
//! per item. In a process of its own, because it counts what the allocator is asked for.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

use keyspace::{
    hashing::hash_key,
    table::{Item, Member, Table},
};

struct Counting;

// Per thread: the test harness allocates on its own.
thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(0) };
    static ALLOCATED: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.set(LARGEST.get().max(layout.size()));
        ALLOCATED.set(ALLOCATED.get().wrapping_add(layout.size()));
        // SAFETY: the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        ALLOCATED.set(ALLOCATED.get().wrapping_sub(layout.size()));
        // SAFETY: the caller's.
        unsafe { System.dealloc(block, layout) };
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn growth_is_in_small_steps() {
    let total = 1_200_000_usize;
    let before = ALLOCATED.get();
    let mut table = Table::<Member>::new();
    LARGEST.set(0);
    let mut next_check = 60;
    for number in 0..total {
        let member = Member::new(format!("m:{number:010}").as_bytes());
        table.insert_unique(member.hash(), member);
        if number == next_check {
            next_check = next_check * 103 / 100;
            // A member of 12 bytes takes a block of 16.
            let allocated = ALLOCATED.get().wrapping_sub(before) - 16 * table.len();
            assert_eq!(allocated, table.memory_bytes(), "at {number}");
            let allowed = table.len() * 27 / 2;
            assert!(allocated <= allowed, "{allocated} bytes for {} items", table.len());
        }
    }
    assert_eq!(table.len(), total);
    for number in 0..total {
        let key = format!("m:{number:010}");
        assert!(table.remove(hash_key(key.as_bytes()), key.as_bytes()).is_some());
    }
    assert_eq!(ALLOCATED.get(), before, "all memory came back");
    let largest = LARGEST.get();
    assert!(largest <= 1 << 20, "an allocation of {largest} bytes");
}
