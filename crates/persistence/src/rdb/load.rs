//! Loading: one thread splits the file, several build values and insert them.
//!
//! The order of insertion is none, and no record depends on another, so the loaders take whole chunks as they come. Each
//! works on a few records at a time: their slots are locked together and their buckets asked for, so that the memory's
//! latency is paid once for all of them.

use super::split::{Chunk, LoadError, Part, Splitter};
use keyspace::codec::{ValueLimits, read_value};
use keyspace::eviction::AccessClock;
use keyspace::hashing::hash_key;
use keyspace::{DbIndex, Entry, LockSet, Slot, ValueRef};
use parking_lot::Mutex;
use rdb::codec::{DecodeError, Reader, opcode};
use rdb::value::{Decoded, Scrutiny, ValueType, decode, skip};
use std::fmt;
use std::io::Read;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

/// Records that are inserted together.
const GROUP: usize = 16;
/// Groups between two chances for others at the gate.
const GROUPS_INSIDE: usize = 32;
/// How many names of skipped empty keys are told.
const EMPTY_KEYS_TOLD: usize = 10;

/// How a file is loaded.
#[derive(Clone, Copy, Debug)]
pub struct LoadOptions<'a> {
    /// The encodings' limits.
    pub limits: ValueLimits<'a>,
    /// How accesses are noted.
    pub clock: AccessClock,
    /// Unix ms: what ended before it is not loaded. `None`: all is (on a replica, or for a log that follows).
    pub expires_before_ms: Option<i64>,
    /// A key that is there already is replaced; else that is an error.
    pub replaces: bool,
    /// Compare the checksum (`rdbchecksum`).
    pub checks: bool,
    /// How much packed values are checked (`sanitize-dump-payload`).
    pub scrutiny: Scrutiny,
    /// Microseconds to wait after each key, for tests (`key-load-delay`); negative: one every so many keys.
    pub key_delay_us: i32,
    /// Is shown each value that is loaded.
    pub viewer: Option<Viewer<'a>>,
}

/// Looks at values as they are loaded, on the threads that load them.
#[derive(Clone, Copy)]
pub struct Viewer<'a>(pub &'a (dyn Fn(DbIndex, &[u8], ValueRef<'_>) + Sync));

impl fmt::Debug for Viewer<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Viewer")
    }
}

/// What a load may be looked at by, and stopped.
#[derive(Debug, Default)]
pub struct Progress {
    /// Bytes parsed.
    pub bytes: AtomicU64,
    /// Keys loaded.
    pub keys: AtomicU64,
    /// Keys left out because their time was over.
    pub expired: AtomicU64,
    /// Set it to have the load end with [`LoadError::Stopped`].
    pub stop: AtomicBool,
}

/// What a loaded file was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Keys loaded.
    pub keys: u64,
    /// Keys left out because their time was over.
    pub expired: u64,
    /// Keys left out because their value was empty, and the names of some.
    pub empty: u64,
    /// Names of the first of them.
    pub empty_names: Vec<Vec<u8>>,
    /// There was no checksum though the version has one.
    pub has_no_checksum: bool,
}

/// Takes function libraries of a file.
pub trait Functions {
    /// Takes the source text of a library.
    ///
    /// # Errors
    /// Why it is refused, as the log is to tell it.
    fn library(&mut self, text: &[u8]) -> Result<(), String>;
}

/// Is told what a file says about itself.
pub trait Watcher: Functions {
    /// A field and its value.
    fn field(&mut self, name: &[u8], value: &[u8]);

    /// Data of a module was left out.
    fn module_data(&mut self, module: &str);
}

/// A watcher that takes libraries for granted and tells nobody anything.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Functions for Silent {
    fn library(&mut self, _text: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

impl Watcher for Silent {
    fn field(&mut self, _name: &[u8], _value: &[u8]) {}

    fn module_data(&mut self, _module: &str) {}
}

/// Loads a file with one thread for each of `locks`, which must be outside and hold nothing. What was read beyond its end
/// is left in the splitter ([`Splitter::into_rest`]).
///
/// # Errors
/// Why it cannot be loaded. What was loaded until then is in the keyspace.
pub fn load<R: Read>(
    splitter: &mut Splitter<R>,
    locks: &mut [LockSet],
    options: &LoadOptions<'_>,
    progress: &Progress,
    watcher: &mut dyn Watcher,
) -> Result<Loaded, LoadError> {
    let (sender, receiver) = sync_channel::<Chunk>(2 * locks.len().max(1));
    let receiver = Mutex::new(receiver);
    let outcome = Outcome::default();
    let job = Job { options, progress, outcome: &outcome, receiver: &receiver };
    let split = std::thread::scope(|scope| {
        let mut threads = 0;
        for (index, locks) in locks.iter_mut().enumerate() {
            let spawned =
                std::thread::Builder::new().name(format!("load-{index}")).spawn_scoped(scope, move || job.run(locks));
            threads += usize::from(spawned.is_ok());
        }
        if threads == 0 {
            return Err(LoadError::Io(std::io::Error::other("no thread could be started")));
        }
        let split = feed(splitter, &outcome, progress, watcher, |chunk| {
            // All loaders gone means that one has left its reason.
            sender.send(chunk).map_err(|_| LoadError::Stopped)
        });
        drop(sender);
        if split.is_err() {
            outcome.failed.store(true, Ordering::SeqCst);
        }
        split
    });
    let first = outcome.error.into_inner();
    let has_no_checksum = match (first, split) {
        (Some(error), _) => return Err(error),
        (None, split) => split?,
    };
    let (empty, empty_names) = outcome.empty.into_inner();
    Ok(Loaded {
        keys: progress.keys.load(Ordering::Relaxed),
        expired: progress.expired.load(Ordering::Relaxed),
        empty,
        empty_names,
        has_no_checksum,
    })
}

/// Hands the chunks of a file out. True: it has no checksum.
fn feed<R: Read>(
    splitter: &mut Splitter<R>,
    outcome: &Outcome,
    progress: &Progress,
    watcher: &mut dyn Watcher,
    mut hand_out: impl FnMut(Chunk) -> Result<(), LoadError>,
) -> Result<bool, LoadError> {
    loop {
        if outcome.failed.load(Ordering::Relaxed) || progress.stop.load(Ordering::Relaxed) {
            return Err(LoadError::Stopped);
        }
        match splitter.next_part()? {
            Part::Chunk(chunk) => hand_out(chunk)?,
            Part::Field(name, value) => watcher.field(&name, &value),
            Part::Function(text) => watcher.library(&text).map_err(LoadError::Function)?,
            Part::ModuleData(module) => watcher.module_data(&module),
            Part::End { has_no_checksum, .. } => return Ok(has_no_checksum),
        }
        progress.bytes.store(splitter.position(), Ordering::Relaxed);
    }
}

/// What the loaders leave behind.
#[derive(Default)]
struct Outcome {
    failed: AtomicBool,
    error: Mutex<Option<LoadError>>,
    empty: Mutex<(u64, Vec<Vec<u8>>)>,
}

impl Outcome {
    fn fail(&self, error: LoadError) {
        self.error.lock().get_or_insert(error);
        self.failed.store(true, Ordering::SeqCst);
    }
}

/// What stands before a key.
struct Head {
    value_type: ValueType,
    expiry: Option<i64>,
    idle_s: Option<u64>,
    frequency: Option<u8>,
}

impl Head {
    /// Reads up to the next key. `None`: there is none before the end.
    fn read(reader: &mut Reader<'_>, db: &mut DbIndex) -> Result<Option<Head>, LoadError> {
        let (mut expiry, mut idle_s, mut frequency) = (None, None, None);
        loop {
            if reader.rest().is_empty() {
                return Ok(None);
            }
            match reader.byte()? {
                opcode::EXPIRETIME => expiry = Some(i64::from(reader.i32_le()?).saturating_mul(1000)),
                opcode::EXPIRETIME_MS => expiry = Some(reader.i64_le()?),
                opcode::FREQ => frequency = Some(reader.byte()?),
                opcode::IDLE => idle_s = Some(reader.length()?),
                // The splitter has seen that there is such a database.
                opcode::SELECTDB => *db = DbIndex(u32::try_from(reader.length()?).unwrap_or(u32::MAX)),
                opcode::RESIZEDB => {
                    reader.length()?;
                    reader.length()?;
                }
                byte => {
                    let value_type = ValueType::from_byte(byte)?;
                    return Ok(Some(Head { value_type, expiry, idle_s, frequency }));
                }
            }
        }
    }
}

/// Reads the records of a chunk as loading would, and keeps none: whether it can be loaded at all, apart from keys that
/// come twice.
///
/// # Errors
/// What loading it would fail with.
pub fn check_chunk(chunk: &Chunk, limits: ValueLimits<'_>, scrutiny: Scrutiny) -> Result<(), LoadError> {
    let mut reader = Reader::new(&chunk.bytes);
    let mut db = chunk.db;
    while let Some(head) = Head::read(&mut reader, &mut db)? {
        reader.string()?;
        let start = reader.clone();
        let checked = match decode(head.value_type, &mut reader, scrutiny) {
            // Whatever bytes it has, it is a value.
            Ok(Decoded::String(_)) => continue,
            Ok(decoded) => read_value(decoded, limits).map(drop),
            Err(error) => Err(error),
        };
        match checked {
            Ok(()) => {}
            Err(DecodeError::Empty) => {
                reader = start;
                skip(head.value_type, &mut reader)?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[derive(Clone, Copy)]
struct Job<'j> {
    options: &'j LoadOptions<'j>,
    progress: &'j Progress,
    outcome: &'j Outcome,
    receiver: &'j Mutex<Receiver<Chunk>>,
}

/// An entry on its way.
struct Ready {
    slot: Slot,
    db: DbIndex,
    hash: u64,
    entry: Entry,
}

impl Job<'_> {
    fn run(self, locks: &mut LockSet) {
        loop {
            let next = self.receiver.lock().recv();
            let Ok(chunk) = next else { return };
            // After a failure the rest is only taken off the splitter's hands.
            if self.outcome.failed.load(Ordering::Relaxed) || self.progress.stop.load(Ordering::Relaxed) {
                continue;
            }
            let loaded = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.load_chunk(locks, &chunk)));
            match loaded {
                Ok(Ok(())) => {}
                Ok(Err(error)) => self.outcome.fail(error),
                Err(_) => {
                    locks.recover();
                    self.outcome.fail(LoadError::Io(std::io::Error::other("a loading thread came down")));
                }
            }
        }
    }

    fn load_chunk(self, locks: &mut LockSet, chunk: &Chunk) -> Result<(), LoadError> {
        let mut reader = Reader::new(&chunk.bytes);
        let mut db = chunk.db;
        let mut ready: Vec<Ready> = Vec::with_capacity(GROUP);
        let mut groups = 0;
        locks.enter();
        let result = loop {
            let is_over = reader.rest().is_empty();
            if ready.len() >= GROUP || is_over {
                if let Err(error) = self.insert(locks, &mut ready) {
                    break Err(error);
                }
                if is_over {
                    break Ok(());
                }
                groups += 1;
                if groups % GROUPS_INSIDE == 0 {
                    locks.leave();
                    locks.enter();
                }
            }
            match self.read_record(locks, &mut reader, &mut db) {
                Ok(Some(record)) => {
                    locks.keyspace().prefetch_slot(record.slot);
                    ready.push(record);
                }
                Ok(None) => {}
                Err(error) => break Err(error),
            }
        };
        locks.leave();
        result
    }

    /// Reads up to and with the next record. `None`: there is none before the end, or it is left out.
    fn read_record(
        self,
        locks: &LockSet,
        reader: &mut Reader<'_>,
        db: &mut DbIndex,
    ) -> Result<Option<Ready>, LoadError> {
        let Some(Head { value_type, expiry, idle_s, frequency }) = Head::read(reader, db)? else { return Ok(None) };
        let key = reader.string()?.into_vec();
        // Redis: -1 stands for none.
        let expiry = expiry.filter(|at_ms| *at_ms != -1);
        self.delay();
        if let (Some(before_ms), Some(at_ms)) = (self.options.expires_before_ms, expiry)
            && at_ms < before_ms
        {
            skip(value_type, reader)?;
            self.progress.expired.fetch_add(1, Ordering::Relaxed);
            return Ok(None);
        }
        let start = reader.clone();
        let decoded = decode(value_type, reader, self.options.scrutiny);
        let value = match decoded.and_then(|decoded| read_value(decoded, self.options.limits)) {
            Ok(value) => value,
            Err(DecodeError::Empty) => {
                *reader = start;
                skip(value_type, reader)?;
                self.note_empty(key);
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        let entry = Entry::new(&key, value, expiry);
        entry.set_access(self.options.clock.restored(idle_s, frequency));
        if let Some(Viewer(view)) = self.options.viewer {
            view(*db, &key, entry.value());
        }
        Ok(Some(Ready { slot: locks.keyspace().slot(&key), db: *db, hash: hash_key(&key), entry }))
    }

    fn insert(self, locks: &mut LockSet, ready: &mut Vec<Ready>) -> Result<(), LoadError> {
        let mut result = Ok(());
        let mut loaded = 0;
        let mut late = Vec::new();
        for record in ready.iter() {
            // Tried, as any order is allowed then; another loader may have it for a moment.
            if locks.try_lock(record.slot) {
                locks.prefetch_for_loading(record.slot, record.db, record.hash);
            }
        }
        let mut put = |locks: &mut LockSet, record: Ready| {
            let Ready { slot, db, hash, entry } = record;
            match locks.load_entry(slot, db, hash, entry, self.options.replaces) {
                Ok(()) => loaded += 1,
                Err(entry) => {
                    let key = String::from_utf8_lossy(entry.key()).into_owned();
                    result = Err(LoadError::Duplicate { key, db: db.0 });
                }
            }
        };
        for record in ready.drain(..) {
            if locks.holds(record.slot) {
                put(locks, record);
            } else {
                late.push(record);
            }
        }
        locks.unlock_all();
        for record in late {
            locks.lock_all(&[record.slot]);
            put(locks, record);
            locks.unlock_all();
        }
        self.progress.keys.fetch_add(loaded, Ordering::Relaxed);
        result
    }

    fn note_empty(self, key: Vec<u8>) {
        let mut empty = self.outcome.empty.lock();
        empty.0 += 1;
        if empty.1.len() < EMPTY_KEYS_TOLD {
            empty.1.push(key);
        }
    }

    fn delay(self) {
        let delay_us = self.options.key_delay_us;
        if delay_us == 0 {
            return;
        }
        let mut left = match u64::try_from(delay_us) {
            Ok(delay_us) => Duration::from_micros(delay_us),
            // As many keys as there are now, roughly: the loaders count together.
            Err(_) => match self.progress.keys.load(Ordering::Relaxed) % u64::from(delay_us.unsigned_abs()) {
                0 => Duration::from_micros(1),
                _ => return,
            },
        };
        // In pieces, so that a stop is heeded.
        while !left.is_zero() && !self.progress.stop.load(Ordering::Relaxed) {
            let piece = left.min(Duration::from_millis(10));
            std::thread::sleep(piece);
            left -= piece;
        }
    }
}
