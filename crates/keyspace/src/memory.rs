//! Memory: who holds how much, and prefetching.
//!
//! [`Counting`] wraps the allocator of the binary. Each thread adds what it takes and gives back to a counter of its
//! own, on a cache line of its own; the sum of all is `used_memory`. Sizes are rounded up to the allocator's size
//! classes by arithmetic, so that no call into the allocator is needed to know them.

use crossbeam_utils::CachePadded;
use rdb::size_class;
use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

const COUNTERS: usize = 256;

static COUNTS: [CachePadded<AtomicI64>; COUNTERS] = [const { CachePadded::new(AtomicI64::new(0)) }; COUNTERS];
static NEXT: AtomicUsize = AtomicUsize::new(1);

thread_local! {
    /// The thread's counter; 0 = none chosen yet. Const-initialised and without destructor: usable at any time of a
    /// thread's life, also by its last frees.
    static MINE: Cell<usize> = const { Cell::new(0) };
}

#[cold]
fn choose_counter() -> usize {
    // Threads beyond the table share: then two may lose an update of each other, so the last ones use real atomic adds.
    let index = NEXT.fetch_add(1, Ordering::Relaxed).min(COUNTERS - 1);
    MINE.with(|mine| mine.set(index));
    index
}

#[inline]
fn count(delta: i64) {
    let mut index = MINE.with(Cell::get);
    if index == 0 {
        index = choose_counter();
    }
    let counter = &COUNTS[index];
    if index == COUNTERS - 1 {
        counter.fetch_add(delta, Ordering::Relaxed);
    } else {
        // Only this thread writes here.
        counter.store(counter.load(Ordering::Relaxed) + delta, Ordering::Relaxed);
    }
}

/// Bytes in use by the process, by the counters of all threads.
pub fn used_bytes() -> usize {
    let threads = NEXT.load(Ordering::Relaxed).min(COUNTERS - 1);
    let sum: i64 = COUNTS[..=threads].iter().map(|counter| counter.load(Ordering::Relaxed)).sum();
    usize::try_from(sum).unwrap_or(0)
}

/// An allocator that counts what passes through it. The binary installs it.
pub struct Counting<A>(pub A);

#[inline]
#[allow(clippy::cast_possible_wrap)]
fn class(size: usize) -> i64 {
    size_class::round_up(size) as i64
}

// SAFETY: every call is handed on unchanged; counting touches no memory of the caller.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counting<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(class(layout.size()));
        // SAFETY: the caller's promise, handed on.
        unsafe { self.0.alloc(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(-class(layout.size()));
        // SAFETY: the caller's promise, handed on.
        unsafe { self.0.dealloc(block, layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(class(layout.size()));
        // SAFETY: the caller's promise, handed on.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(class(new_size) - class(layout.size()));
        // SAFETY: the caller's promise, handed on.
        unsafe { self.0.realloc(block, layout, new_size) }
    }
}

/// Asks the processor to bring a cache line near.
#[inline]
pub fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing into the program and never faults, whatever the address.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
