//! The journal: what changed, in the order in which it changed, as a stream of commands.
//!
//! Its bytes are RESP arrays, what Redis' replication stream and AOF consist of. Threads append while they hold the
//! locks of the slots that changed, so the journal's order is an order in which the commands could have run one by one.
//! Nobody reading: nothing is recorded, and the offset stands still. Recording begins behind the closed gate, so no
//! command is recorded by half.
//!
//! ```text
//!        start                                   end = offset of the next byte
//!          │ sealed blocks (Arc)   │ open block │
//!          ▼───────────┬───────────┼────────────▼
//!          │  64 KiB   │  64 KiB   │ growing    │
//!          └───────────┴───────────┴────────────┘
//!    kept: what the slowest reader needs, and the backlog
//! ```
//!
//! Appending is a short lock and a copy. A reader takes sealed blocks by their `Arc` and copies outside the lock; only
//! the open block is copied under it. [`effects`] is the part of each thread: it collects what its commands did.

pub mod effects;
mod reader;
#[cfg(test)]
mod tests;

pub use reader::{Lost, Reader, Stopper, Waker};

use crate::lockset::LockSet;
use crate::slot::DbIndex;
use parking_lot::Mutex;
use reader::Place;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Size at which the open block is sealed.
const BLOCK: usize = 64 * 1024;

/// See the module. One a keyspace.
#[derive(Default)]
pub struct Journal {
    /// Commands are to be recorded.
    recording: AtomicBool,
    /// As `Tail::end`, to be asked without the lock.
    end: AtomicU64,
    tail: Mutex<Tail>,
    lazy: [AtomicBool; 3],
}

/// Why a key was deleted, for the name under which that is recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deletion {
    /// Its time was over; UNLINK with `lazyfree-lazy-expire`.
    Expired,
    /// It was evicted; UNLINK with `lazyfree-lazy-eviction`.
    Evicted,
    /// A command came to it; UNLINK with `lazyfree-lazy-server-del`.
    Implied,
}

/// Some sealed bytes and the offset of the first.
struct Block {
    at: u64,
    bytes: Arc<Vec<u8>>,
}

/// A stretch of a thread's bytes and the database it works on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Run {
    /// `None`: whatever is selected (MULTI, EXEC).
    pub(crate) db: Option<DbIndex>,
    /// Where it ends in the thread's bytes.
    pub(crate) end: usize,
    /// Replicas alone are to see it.
    pub(crate) replicas_only: bool,
}

#[derive(Default)]
pub(crate) struct Tail {
    /// Sealed, oldest first.
    blocks: VecDeque<Block>,
    /// Begins where the last sealed one ends.
    open: Vec<u8>,
    /// Offset of the first byte kept.
    start: u64,
    end: u64,
    /// The database that the stream has selected.
    db: Option<DbIndex>,
    /// Stretches that replicas alone see, ascending.
    replicas_only: VecDeque<(u64, u64)>,
    places: Vec<Place>,
    next_id: u64,
    /// Readers to be told of the next bytes.
    armed: usize,
    /// Bytes kept for partial resyncs; `None`: no backlog, and no reason to record.
    backlog: Option<u64>,
    /// The stream comes from a primary: commands of this server are no part of it.
    following: bool,
}

impl Journal {
    /// Whether commands are to be recorded. Changes to true behind the closed gate alone.
    #[inline]
    pub fn is_read(&self) -> bool {
        self.recording.load(Ordering::Relaxed)
    }

    /// Sets whether deletions of a kind are recorded as UNLINK.
    pub fn set_lazy(&self, deletion: Deletion, lazy: bool) {
        self.lazy[deletion as usize].store(lazy, Ordering::Relaxed);
    }

    /// The command as which a deletion is recorded.
    pub fn deletion_name(&self, deletion: Deletion) -> &'static [u8] {
        if self.lazy[deletion as usize].load(Ordering::Relaxed) { b"UNLINK" } else { b"DEL" }
    }

    /// Offset of the next byte: the number of bytes ever recorded. What Redis calls `master_repl_offset`.
    pub fn end(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    /// Offset of the first byte that is still there.
    pub fn start(&self) -> u64 {
        self.tail.lock().start
    }

    /// Bytes kept in memory.
    pub fn kept_bytes(&self) -> u64 {
        let tail = self.tail.lock();
        tail.end - tail.start
    }

    /// Forgets which database the stream has selected, so that whoever begins to read here is told.
    pub fn forget_db(&self) {
        self.tail.lock().db = None;
    }

    /// A reader of what is recorded from now on. `locks` must have the gate closed: recording may begin with it. A
    /// reader that lags more than `limit` bytes loses its place; `u64::MAX`: never.
    ///
    /// # Panics
    /// When the gate is open: a bug in the caller.
    pub fn read_from_here(&self, locks: &mut LockSet, limit: u64) -> Reader {
        assert!(locks.is_alone(), "a reader begins behind the closed gate");
        locks.append_effects();
        let mut tail = self.tail.lock();
        tail.db = None;
        let at = tail.end;
        let id = tail.add_place(at, limit);
        self.settle(&mut tail);
        drop(tail);
        locks.effects.set_recording(self.is_read());
        Reader::new(locks.keyspace().clone(), id, at)
    }

    /// A reader from an offset whose byte is still there (or is the next one), of a journal that is being recorded.
    pub fn read_from(&self, keyspace: &Arc<crate::Keyspace>, offset: u64, limit: u64) -> Option<Reader> {
        let mut tail = self.tail.lock();
        if !self.is_read() && !tail.following || offset < tail.start || offset > tail.end {
            return None;
        }
        let id = tail.add_place(offset, limit);
        Some(Reader::new(keyspace.clone(), id, offset))
    }

    /// Keeps this many bytes for readers to come, or none. Recording begins with it, so `locks` must have the gate closed.
    ///
    /// # Panics
    /// When recording would begin while the gate is open: a bug in the caller.
    pub fn set_backlog(&self, locks: &mut LockSet, bytes: Option<u64>) {
        locks.append_effects();
        let mut tail = self.tail.lock();
        tail.backlog = bytes;
        tail.trim();
        let before = self.is_read();
        self.settle(&mut tail);
        assert!(before || !self.is_read() || locks.is_alone(), "recording begins behind the closed gate");
        drop(tail);
        locks.effects.set_recording(self.is_read());
    }

    /// Bytes kept for partial resyncs.
    pub fn backlog(&self) -> Option<u64> {
        self.tail.lock().backlog
    }

    /// Begins (`true`) or ends to take the stream from a primary: the commands of this server are not recorded then, what
    /// comes from the primary is, by [`Journal::append_stream`]. `locks` must have the gate closed.
    ///
    /// # Panics
    /// When the gate is open: a bug in the caller.
    pub fn set_following(&self, locks: &mut LockSet, following: bool) {
        assert!(locks.is_alone(), "the stream changes its source behind the closed gate");
        locks.append_effects();
        let mut tail = self.tail.lock();
        tail.following = following;
        tail.db = None;
        self.settle(&mut tail);
        drop(tail);
        locks.effects.set_recording(self.is_read());
    }

    /// Drops all bytes and goes on at `offset`: the offset of a primary that this server has become the replica of. All
    /// readers lose their places.
    pub fn restart_at(&self, offset: u64) {
        let mut tail = self.tail.lock();
        tail.blocks.clear();
        tail.open = Vec::new();
        tail.replicas_only.clear();
        tail.start = offset;
        tail.end = offset;
        tail.db = None;
        for place in &mut tail.places {
            place.lost = true;
        }
        let wakers = tail.disarm();
        self.end.store(offset, Ordering::Release);
        drop(tail);
        wake(wakers);
    }

    /// Appends bytes of a primary's stream as they are. `replicas_only`: PING and the like, no part of an AOF.
    pub fn append_stream(&self, bytes: &[u8], replicas_only: bool) {
        wake(self.append_followed(bytes, replicas_only));
    }

    /// As [`Journal::append_stream`]; gives whom to wake when no lock is held any more.
    pub(crate) fn append_followed(&self, bytes: &[u8], replicas_only: bool) -> Vec<Waker> {
        let mut tail = self.tail.lock();
        let from = tail.end;
        tail.push(bytes);
        if replicas_only {
            tail.mark_replicas_only(from);
        }
        self.finish(&mut tail)
    }

    /// Appends a command that replicas alone see (PING, REPLCONF GETACK), if the stream is ours and somebody reads it.
    pub fn append_for_replicas(&self, command: &[u8]) {
        if self.is_read() {
            self.append_stream(command, true);
        }
    }

    /// Appends a thread's bytes. Returns where they end, and whom to wake when no lock is held any more.
    pub(crate) fn append(&self, bytes: &[u8], runs: &[Run]) -> (u64, Vec<Waker>) {
        let mut tail = self.tail.lock();
        let mut from = 0;
        for run in runs {
            if run.db.is_some() && run.db != tail.db {
                tail.select(run.db);
            }
            let at = tail.end;
            tail.push(bytes.get(from..run.end).unwrap_or_default());
            if run.replicas_only {
                tail.mark_replicas_only(at);
            }
            from = run.end;
        }
        let wakers = self.finish(&mut tail);
        (tail.end, wakers)
    }

    fn finish(&self, tail: &mut Tail) -> Vec<Waker> {
        self.end.store(tail.end, Ordering::Release);
        if tail.armed > 0 { tail.disarm() } else { Vec::new() }
    }

    /// Recording goes on while somebody reads or may want to read later.
    fn settle(&self, tail: &mut Tail) {
        let wanted = !tail.following && (!tail.places.is_empty() || tail.backlog.is_some());
        self.recording.store(wanted, Ordering::Release);
        if tail.places.is_empty() && tail.backlog.is_none() {
            tail.trim();
        }
    }
}

/// Calls wakers; no slot may be held.
pub(crate) fn wake(wakers: Vec<Waker>) {
    for waker in wakers {
        waker();
    }
}

impl Tail {
    fn push(&mut self, bytes: &[u8]) {
        if self.open.len() + bytes.len() > BLOCK && !self.open.is_empty() {
            self.seal();
        }
        if self.open.capacity() == 0 {
            self.open.reserve_exact(BLOCK);
        }
        self.open.extend_from_slice(bytes);
        self.end += bytes.len() as u64;
    }

    fn seal(&mut self) {
        let bytes = std::mem::take(&mut self.open);
        let at = self.end - bytes.len() as u64;
        self.blocks.push_back(Block { at, bytes: Arc::new(bytes) });
        self.trim();
    }

    fn select(&mut self, db: Option<DbIndex>) {
        self.db = db;
        let Some(DbIndex(number)) = db else { return };
        let number = number.to_string();
        self.push(format!("*2\r\n$6\r\nSELECT\r\n${}\r\n{number}\r\n", number.len()).as_bytes());
    }

    fn mark_replicas_only(&mut self, from: u64) {
        match self.replicas_only.back_mut() {
            Some(last) if last.1 == from => last.1 = self.end,
            _ => self.replicas_only.push_back((from, self.end)),
        }
    }

    fn add_place(&mut self, at: u64, limit: u64) -> u64 {
        self.next_id += 1;
        self.places.push(Place {
            id: self.next_id,
            at,
            limit,
            until: u64::MAX,
            lost: false,
            armed: false,
            waker: None,
        });
        self.next_id
    }

    /// Whom to tell of new bytes.
    fn disarm(&mut self) -> Vec<Waker> {
        self.armed = 0;
        let wanting = self.places.iter_mut().map(|place| (std::mem::take(&mut place.armed), &place.waker));
        wanting.filter_map(|(armed, waker)| if armed { waker.clone() } else { None }).collect()
    }

    /// Drops sealed blocks that nobody needs.
    fn trim(&mut self) {
        let end = self.end;
        for place in &mut self.places {
            place.lost |= end - place.at > place.limit;
        }
        let backlog_from = end - self.backlog.unwrap_or(0).min(end);
        let needed = self.places.iter().filter(|place| !place.lost).map(|place| place.at);
        let keep_from = needed.chain([backlog_from]).min().unwrap_or(end);
        while let Some(first) = self.blocks.front()
            && first.at + first.bytes.len() as u64 <= keep_from
        {
            self.start = first.at + first.bytes.len() as u64;
            self.blocks.pop_front();
        }
        if self.blocks.is_empty() && keep_from == end {
            // All is read: the open block begins anew in its old memory.
            self.start = end;
            self.open.clear();
        }
        while self.replicas_only.front().is_some_and(|range| range.1 <= self.start) {
            self.replicas_only.pop_front();
        }
    }
}
