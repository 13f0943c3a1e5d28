//! Snapshots: what the keyspace held at one instant, written while it goes on changing, without a second process.
//!
//! ```text
//!  gate closed: begin ──▶ parity flips: every entry's tag now differs, so every entry is "not saved yet"
//!     walkers   ─ take slot after slot, write entries with the old tag, give them the new one ─┐
//!     writers   ─ before an old-tagged entry changes or goes: write it, new tag (hand over)  ──┼─▶ queue ─▶ sink
//!     new keys  ─ born with the new tag: never written                                         ┘
//!  all slots walked: every entry has the new tag; the next snapshot flips again
//! ```
//!
//! Each entry that was there at the instant is written once, by whoever comes first, with what it held then. Nothing is
//! marked at the beginning and nothing cleaned at the end, so both take no time. A snapshot that fails is *aborted*: the
//! walkers go on without writing, since the tags must agree before the next one.
//!
//! - A hand-over is bounded: what is too large for a worker is left to the walkers ([`Snapshots::ask_for`]), while the
//!   client waits.
//! - The queue is bounded: walkers wait for room, and while it is full ([`Snapshots::is_full`]) writers are held back
//!   by the executor before they begin.
//! - Tables that FLUSHALL takes away are detached to the snapshot, which writes and then frees them. SWAPDB is undone by
//!   a map: records carry the number that their database had at the instant.
//!
//! Records are those of an RDB file ([`record`]); the order of keys is none.

mod hand;
mod queue;
pub mod record;
#[cfg(test)]
mod tests;
mod walk;

pub(crate) use hand::Hand;

use crate::entry::{Entry, TAG_PARITY};
use crate::keyspace::COUNTED_DBS;
use crate::lock::Wake;
use crate::lockset::LockSet;
use crate::slot::{Db, DbIndex, Slot};
use hand::Blocks;
use parking_lot::{Mutex, RwLock};
use queue::Queue;
use rdb::codec::{Writer, opcode};
use record::RecordForm;
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// A bit of [`Snapshots::state`]: a snapshot runs. The parity is [`TAG_PARITY`], the number of the snapshot lies above.
const ACTIVE: u64 = 1;
const EPOCH_SHIFT: u32 = 8;
/// How often a sink that gets nothing is asked whether it wants to go on.
const IDLE_EVERY: Duration = Duration::from_millis(100);

/// Takes the bytes of a snapshot: a file, replicas, the base of the append only file.
pub trait SnapshotSink {
    /// Takes some whole records. Records of the databases come in any order; SELECTDB stands where the database changes.
    ///
    /// # Errors
    /// What stands in the way; the snapshot is then aborted.
    fn block(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Called about ten times a second while no records come.
    ///
    /// # Errors
    /// As [`SnapshotSink::block`].
    fn idle(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl SnapshotSink for Vec<u8> {
    fn block(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.extend_from_slice(bytes);
        Ok(())
    }
}

/// How a snapshot is taken.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// How records are written.
    pub form: RecordForm,
    /// Only the entries of these slots; `None`: all.
    pub slots: Option<Vec<Slot>>,
    /// Microseconds that a walker waits after each key, for tests (`rdb-key-save-delay`); negative: one microsecond
    /// every so many keys.
    pub key_delay_us: i32,
    /// Called by each walker's thread when it begins, for example to lower its priority.
    pub prepare_thread: Option<fn()>,
}

/// What a snapshot wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Keys.
    pub keys: u64,
    /// Bytes of all blocks.
    pub bytes: u64,
    /// Bytes of records that writers handed over, which is what the snapshot copied because of them.
    pub handed_over_bytes: u64,
}

/// The keyspace's snapshots: at most one runs at a time.
#[derive(Default)]
pub struct Snapshots {
    /// Number of the latest snapshot, the parity of new entries, and whether one runs. Changed behind the gate, except
    /// that the end clears [`ACTIVE`] when no entry is left that it would matter for.
    state: AtomicU64,
    full: Arc<AtomicBool>,
    running: Mutex<Option<Arc<Snapshot>>>,
}

/// Another snapshot runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AlreadyRunning;

impl Snapshots {
    /// Whether one runs: then entries are handed over before they change.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.state.load(Ordering::Relaxed) & ACTIVE != 0
    }

    /// The generation of new entries.
    #[inline]
    pub(crate) fn parity(&self) -> u64 {
        self.state.load(Ordering::Relaxed) & TAG_PARITY
    }

    /// Whether writers should wait: the sink does not keep up with what they hand over.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// The one that runs.
    pub fn running(&self) -> Option<Arc<Snapshot>> {
        if self.is_active() { self.running.lock().clone() } else { None }
    }

    /// Whether the entry is not saved yet and too large for a worker: what can wait leaves it alone.
    pub(crate) fn wants_large(&self, entry: &Entry) -> bool {
        self.is_active() && entry.parity() != self.parity() && record::is_large(entry.value())
    }

    fn epoch(&self) -> u64 {
        self.state.load(Ordering::Relaxed) >> EPOCH_SHIFT
    }

    /// Begins one: it will show what the keyspace holds now. To be called with the gate closed by `locks`
    /// ([`LockSet::alone`]); then, with the gate open, [`Snapshot::run`] must follow, also to abort it.
    ///
    /// # Errors
    /// One runs already.
    ///
    /// # Panics
    /// When `locks` does not have the keyspace to itself: a bug of the caller.
    pub fn begin(&self, locks: &LockSet, options: Options) -> Result<Arc<Snapshot>, AlreadyRunning> {
        assert!(locks.is_alone(), "a snapshot begins behind the closed gate");
        let mut running = self.running.lock();
        if running.is_some() {
            return Err(AlreadyRunning);
        }
        let keyspace = locks.keyspace();
        let counts: Vec<(DbIndex, u64, u64)> = (0..keyspace.databases())
            .take(COUNTED_DBS)
            .filter_map(|db| keyspace.counted(DbIndex(db)).map(|(keys, expiring)| (DbIndex(db), keys, expiring)))
            .collect();
        let state = self.state.load(Ordering::Relaxed);
        let epoch = (state >> EPOCH_SHIFT) + 1;
        let parity = (state & TAG_PARITY) ^ TAG_PARITY;
        let snapshot = Arc::new(Snapshot {
            epoch,
            parity,
            keys_total: counts.iter().map(|(_, keys, _)| keys).sum(),
            counts,
            form: options.form,
            scope: options.slots.map(|slots| scope_of(&slots)),
            key_delay_us: AtomicI32::new(options.key_delay_us),
            prepare_thread: options.prepare_thread,
            swaps: RwLock::new(Vec::new()),
            next_slot: AtomicUsize::new(0),
            queue: Queue::new(self.full.clone()),
            detached: Mutex::new(Vec::new()),
            wanted: Mutex::new(Some(VecDeque::new())),
            wanted_len: AtomicUsize::new(0),
            hands: Mutex::new(Vec::new()),
            keys_done: AtomicU64::new(0),
            handed_over_bytes: AtomicU64::new(0),
            aborted: AtomicBool::new(false),
            broken: AtomicBool::new(false),
        });
        *running = Some(snapshot.clone());
        self.state.store(epoch << EPOCH_SHIFT | parity | ACTIVE, Ordering::SeqCst);
        Ok(snapshot)
    }

    /// Leaves the entry of `key` to the walkers, as [`LockSet::is_too_large_to_hand_over`] said; `wake` is called when it
    /// is saved. False: there is nothing to wait for any more.
    pub fn ask_for(&self, slot: Slot, db: DbIndex, key: &[u8], wake: Wake) -> bool {
        let Some(snapshot) = self.running() else { return false };
        let mut wanted = snapshot.wanted.lock();
        let Some(wanted) = wanted.as_mut() else { return false };
        wanted.push_back(Wanted { slot, db: snapshot.origin(db), key: key.into(), wake });
        snapshot.wanted_len.store(wanted.len(), Ordering::Relaxed);
        true
    }

    /// Two databases were swapped, behind the closed gate.
    pub fn note_swap(&self, first: DbIndex, second: DbIndex) {
        if let Some(snapshot) = self.running() {
            let mut swaps = snapshot.swaps.write();
            let (of_first, of_second) = (origin_in(&swaps, first), origin_in(&swaps, second));
            swaps.retain(|(current, _)| *current != first && *current != second);
            swaps.push((first, of_second));
            swaps.push((second, of_first));
        }
    }

    fn end(&self, snapshot: &Snapshot) {
        let mut running = self.running.lock();
        if running.as_ref().is_some_and(|other| other.epoch == snapshot.epoch) {
            // All entries are of the present generation: who still sees the bit finds nothing to hand over.
            self.state.fetch_and(!ACTIVE, Ordering::SeqCst);
            *running = None;
        }
        self.full.store(false, Ordering::SeqCst);
    }
}

/// One snapshot under way.
pub struct Snapshot {
    epoch: u64,
    /// The generation of entries that are saved or new.
    parity: u64,
    /// Keys and keys with expiry of the counted databases at the instant.
    counts: Vec<(DbIndex, u64, u64)>,
    /// Keys there were at the instant.
    pub keys_total: u64,
    form: RecordForm,
    scope: Option<Box<[u64; 256]>>,
    key_delay_us: AtomicI32,
    prepare_thread: Option<fn()>,
    /// Databases that are not what they were: (number now, number at the instant).
    swaps: RwLock<Vec<(DbIndex, DbIndex)>>,
    next_slot: AtomicUsize,
    queue: Queue,
    /// Tables taken away by FLUSHALL and the like, with the number of their database at the instant;
    /// `None`: only to be freed.
    detached: Mutex<Vec<(Option<DbIndex>, Db)>>,
    /// Entries too large for a worker; `None` when nobody serves them any more.
    wanted: Mutex<Option<VecDeque<Wanted>>>,
    wanted_len: AtomicUsize,
    hands: Mutex<Vec<Arc<Mutex<Blocks>>>>,
    keys_done: AtomicU64,
    handed_over_bytes: AtomicU64,
    aborted: AtomicBool,
    /// A walker came down: a slot may have been left half walked.
    broken: AtomicBool,
}

/// An entry that a client waits for.
struct Wanted {
    slot: Slot,
    /// Number of the database at the instant.
    db: DbIndex,
    key: Box<[u8]>,
    wake: Wake,
}

fn scope_of(slots: &[Slot]) -> Box<[u64; 256]> {
    let mut bits = Box::new([0_u64; 256]);
    for slot in slots {
        bits[slot.index() / 64] |= 1 << (slot.index() % 64);
    }
    bits
}

fn origin_in(swaps: &[(DbIndex, DbIndex)], current: DbIndex) -> DbIndex {
    swaps.iter().find(|(now, _)| *now == current).map_or(current, |(_, origin)| *origin)
}

impl Snapshot {
    /// Keys written so far.
    pub fn keys_done(&self) -> u64 {
        self.keys_done.load(Ordering::Relaxed)
    }

    /// Bytes that writers have handed over so far.
    pub fn handed_over_bytes(&self) -> u64 {
        self.handed_over_bytes.load(Ordering::Relaxed)
    }

    /// Gives the snapshot up: [`Snapshot::run`] ends with an error, after the walk without which no other can begin.
    pub fn abort(&self) {
        self.aborted.store(true, Ordering::SeqCst);
        self.queue.give_up();
    }

    /// Whether it was given up.
    pub fn is_aborted(&self) -> bool {
        self.aborted.load(Ordering::Relaxed)
    }

    /// Writes the snapshot into `sink` with one walker for each of `locks`, which must be outside and hold nothing.
    /// Returns when all is written, or aborted. The gate must be open.
    ///
    /// # Errors
    /// The sink's, or [`io::ErrorKind::Interrupted`] when it was aborted from elsewhere.
    pub fn run(&self, locks: &mut [LockSet], sink: &mut dyn SnapshotSink) -> io::Result<Totals> {
        let Some(keyspace) = locks.first().map(|locks| locks.keyspace().clone()) else {
            return Err(io::Error::other("a snapshot needs a walker"));
        };
        let mut emitter = Emitter { snapshot: self, sink, last: None, introduced: BTreeSet::new(), bytes: 0 };
        let result = std::thread::scope(|scope| {
            let mut first = None;
            for (index, locks) in locks.iter_mut().enumerate() {
                if index == 0 {
                    first = Some(locks);
                    continue;
                }
                self.queue.add_producer();
                let spawned = std::thread::Builder::new()
                    .name(format!("snapshot-{index}"))
                    .spawn_scoped(scope, move || self.walk(locks));
                if spawned.is_err() {
                    // The others do its part.
                    self.queue.end_producer();
                }
            }
            let Some(first) = first else { return Ok(()) };
            self.queue.add_producer();
            // This thread is the consumer, unless there is no other for the walk: then it must at least let the tags
            // agree again.
            let mut kept = Some(first);
            let spawned = std::thread::Builder::new().name("snapshot-0".into()).spawn_scoped(scope, {
                let locks = kept.take();
                move || locks.map(|locks| self.walk(locks))
            });
            if spawned.is_err() {
                self.queue.end_producer();
            }
            self.consume(&mut emitter)
        });
        // With no thread to walk in, slots are left over; with one that came down, a slot may be half walked.
        let is_broken = self.broken.load(Ordering::SeqCst);
        let complete = !is_broken && self.next_slot.load(Ordering::SeqCst) >= keyspace.space().count();
        let result = if complete { result } else { result.and(Err(io::Error::other("its threads failed"))) };
        if result.is_err() {
            self.abort();
        }
        if !complete && let Some(locks) = locks.first_mut() {
            if is_broken {
                self.next_slot.store(0, Ordering::SeqCst);
            }
            self.walk_slots(locks);
        }
        let result = result.and_then(|()| self.emit_hands(&mut emitter));
        keyspace.snapshots.end(self);
        if let Some(wanted) = self.wanted.lock().take() {
            wanted.into_iter().for_each(|wanted| keyspace.parking.rouse(wanted.wake));
        }
        result?;
        if self.is_aborted() {
            return Err(io::Error::new(io::ErrorKind::Interrupted, "the snapshot was aborted"));
        }
        Ok(Totals { keys: self.keys_done(), bytes: emitter.bytes, handed_over_bytes: self.handed_over_bytes() })
    }

    fn consume(&self, emitter: &mut Emitter<'_, '_>) -> io::Result<()> {
        let mut result = Ok(());
        loop {
            match self.queue.pop(IDLE_EVERY) {
                queue::Popped::Block(block) => {
                    if result.is_ok() {
                        result = emitter.emit(block.db, &block.bytes);
                    }
                }
                queue::Popped::Nothing => {
                    if result.is_ok() {
                        result = emitter.sink.idle();
                    }
                }
                queue::Popped::End => return result,
            }
            if result.is_err() && !self.is_aborted() {
                self.abort();
            }
        }
    }

    /// Writes what threads have handed over and not sent yet. No more comes: no entry of the old generation is left.
    fn emit_hands(&self, emitter: &mut Emitter<'_, '_>) -> io::Result<()> {
        let hands = std::mem::take(&mut *self.hands.lock());
        for hand in hands {
            let blocks = std::mem::take(&mut *hand.lock());
            for block in blocks.into_blocks() {
                if !self.is_aborted() {
                    emitter.emit(block.db, &block.bytes)?;
                }
            }
        }
        Ok(())
    }

    fn origin(&self, current: DbIndex) -> DbIndex {
        origin_in(&self.swaps.read(), current)
    }

    fn current(&self, origin: DbIndex) -> DbIndex {
        self.swaps.read().iter().find(|(_, at_begin)| *at_begin == origin).map_or(origin, |(now, _)| *now)
    }

    fn is_in_scope(&self, slot: Slot) -> bool {
        self.scope.as_ref().is_none_or(|bits| bits[slot.index() / 64] & (1 << (slot.index() % 64)) != 0)
    }

    /// Takes over tables that go away from `slot`, behind the closed gate.
    pub(crate) fn detach(&self, slot: Slot, tables: Vec<(DbIndex, Db)>) {
        if tables.is_empty() {
            return;
        }
        let is_wanted = self.is_in_scope(slot);
        let mut detached = self.detached.lock();
        detached.extend(tables.into_iter().map(|(current, db)| (is_wanted.then(|| self.origin(current)), db)));
    }
}

/// Puts SELECTDB and RESIZEDB between blocks.
struct Emitter<'s, 'k> {
    snapshot: &'s Snapshot,
    sink: &'k mut dyn SnapshotSink,
    last: Option<DbIndex>,
    introduced: BTreeSet<DbIndex>,
    bytes: u64,
}

impl Emitter<'_, '_> {
    fn emit(&mut self, db: DbIndex, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        if self.last != Some(db) {
            self.last = Some(db);
            let mut head = Vec::new();
            let mut writer = Writer::new(&mut head);
            writer.byte(opcode::SELECTDB);
            writer.length(u64::from(db.0));
            if self.introduced.insert(db)
                && let Some((_, keys, expiring)) = self.snapshot.counts.iter().find(|(of, ..)| *of == db)
            {
                writer.byte(opcode::RESIZEDB);
                writer.length(*keys);
                writer.length(*expiring);
            }
            self.bytes += head.len() as u64;
            self.sink.block(&head)?;
        }
        self.bytes += bytes.len() as u64;
        self.sink.block(bytes)
    }
}
