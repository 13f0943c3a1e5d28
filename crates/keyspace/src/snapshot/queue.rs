//! The bounded queue between those who write records and the sink.

use crate::slot::DbIndex;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Bytes at which the queue is full.
const FULL_BYTES: usize = 16 << 20;
/// Bytes at which writers that were held back may go on.
const ROOM_BYTES: usize = 12 << 20;

/// Records of one database.
pub(super) struct Block {
    /// Its number at the instant of the snapshot.
    pub(super) db: DbIndex,
    pub(super) bytes: Vec<u8>,
}

/// See the module.
pub(super) struct Queue {
    inner: Mutex<Inner>,
    filled: Condvar,
    drained: Condvar,
    /// Shared with the keyspace, so that a look costs one load.
    full: Arc<AtomicBool>,
}

#[derive(Default)]
struct Inner {
    blocks: VecDeque<Block>,
    bytes: usize,
    producers: usize,
    given_up: bool,
}

/// What a look at the queue gave.
pub(super) enum Popped {
    Block(Block),
    /// Nothing came in time.
    Nothing,
    /// Nothing more comes.
    End,
}

impl Queue {
    pub(super) fn new(full: Arc<AtomicBool>) -> Queue {
        Queue { inner: Mutex::default(), filled: Condvar::new(), drained: Condvar::new(), full }
    }

    /// One more thread will push.
    pub(super) fn add_producer(&self) {
        self.inner.lock().producers += 1;
    }

    /// One of them has ended.
    pub(super) fn end_producer(&self) {
        let mut inner = self.inner.lock();
        inner.producers = inner.producers.saturating_sub(1);
        self.filled.notify_all();
    }

    /// Adds a block, whether there is room or not: for those who hold locks.
    pub(super) fn push(&self, block: Block) {
        let mut inner = self.inner.lock();
        if inner.given_up {
            return;
        }
        inner.bytes += block.bytes.len();
        inner.blocks.push_back(block);
        if inner.bytes >= FULL_BYTES {
            self.full.store(true, Ordering::Relaxed);
        }
        self.filled.notify_one();
    }

    /// Adds a block as soon as there is room. The caller must hold no lock.
    pub(super) fn push_waiting(&self, block: Block) {
        let mut inner = self.inner.lock();
        while inner.bytes >= ROOM_BYTES && !inner.given_up {
            self.drained.wait(&mut inner);
        }
        drop(inner);
        self.push(block);
    }

    /// Sleeps for a time unless the snapshot is given up.
    pub(super) fn pause(&self, time: Duration) {
        let mut inner = self.inner.lock();
        let until = std::time::Instant::now() + time;
        while !inner.given_up && !self.drained.wait_until(&mut inner, until).timed_out() {}
    }

    /// The next block, waiting for it at most `time`.
    pub(super) fn pop(&self, time: Duration) -> Popped {
        let mut inner = self.inner.lock();
        if inner.blocks.is_empty() && inner.producers > 0 {
            self.filled.wait_for(&mut inner, time);
        }
        let Some(block) = inner.blocks.pop_front() else {
            return if inner.producers == 0 { Popped::End } else { Popped::Nothing };
        };
        let before = inner.bytes;
        inner.bytes -= block.bytes.len();
        if before >= ROOM_BYTES && inner.bytes < ROOM_BYTES {
            self.full.store(false, Ordering::Relaxed);
            self.drained.notify_all();
        }
        Popped::Block(block)
    }

    /// Drops what is there and what will come.
    pub(super) fn give_up(&self) {
        let mut inner = self.inner.lock();
        inner.given_up = true;
        inner.blocks.clear();
        inner.bytes = 0;
        self.full.store(false, Ordering::Relaxed);
        self.drained.notify_all();
        self.filled.notify_all();
    }
}
