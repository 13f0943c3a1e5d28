//! Which slot a key belongs to, and what a slot holds.

use crate::crc16;
use crate::entry::Entry;
use crate::hashing::hash_key;
use crate::lock::SlotLock;
use crate::table::Table;
use crate::waiters::Extras;
use std::cell::UnsafeCell;
use std::sync::atomic::AtomicU8;

/// Index of a slot, below [`SlotSpace::count`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Slot(u16);

impl Slot {
    /// Slot 0.
    pub(crate) const FIRST: Slot = Slot(0);

    /// The slot with this number. Numbers at or above 16384 wrap.
    #[inline]
    #[allow(clippy::cast_possible_truncation)]
    pub fn new(number: usize) -> Slot {
        Slot((number & 0x3FFF) as u16)
    }

    /// The number as an index.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Number of a logical database.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct DbIndex(pub u32);

/// How keys are spread over slots; fixed at start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SlotSpace {
    /// 16384 slots by CRC16/XMODEM: Redis Cluster's.
    #[default]
    Redis,
    /// 1024 slots by CRC32/IEEE: Codis's.
    Codis,
}

impl SlotSpace {
    /// How many slots there are.
    pub fn count(self) -> usize {
        match self {
            SlotSpace::Redis => 16384,
            SlotSpace::Codis => 1024,
        }
    }

    /// The slot of a key, by its hash tag if it has one.
    #[inline]
    pub fn slot(self, key: &[u8]) -> Slot {
        let hashed = hash_tag(key);
        match self {
            SlotSpace::Redis => Slot(crc16::of(hashed) & 0x3FFF),
            #[allow(clippy::cast_possible_truncation)]
            SlotSpace::Codis => Slot((crc32(hashed) & 0x3FF) as u16),
        }
    }
}

/// The part of a key that decides its slot: what stands between the first `{` and the next `}`, if anything does.
#[inline]
pub fn hash_tag(key: &[u8]) -> &[u8] {
    if !has_brace(key) {
        return key;
    }
    tagged_part(key)
}

/// Whether there is a `{`; eight bytes at a time, since nearly all keys have none.
#[inline]
fn has_brace(key: &[u8]) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const BRACES: u64 = ONES * b'{' as u64;
    // Some byte is zero just when some high bit is left (a borrow can only add more behind the first zero).
    let braces_of = |bytes: [u8; 8]| {
        let differs = u64::from_le_bytes(bytes) ^ BRACES;
        differs.wrapping_sub(ONES) & !differs & (ONES << 7)
    };
    let Some(tail) = key.last_chunk::<8>() else {
        return match (key.first_chunk::<4>(), key.last_chunk::<4>()) {
            (Some(head), Some(tail)) => {
                let both = u64::from(u32::from_le_bytes(*head)) << 32 | u64::from(u32::from_le_bytes(*tail));
                braces_of(both.to_le_bytes()) != 0
            }
            _ => key.contains(&b'{'),
        };
    };
    let (words, _) = key.as_chunks::<8>();
    // Without an early end: a branch a word costs more than the rest of a key.
    words.iter().fold(braces_of(*tail), |found, word| found | braces_of(*word)) != 0
}

#[inline(never)]
fn tagged_part(key: &[u8]) -> &[u8] {
    let Some(open) = key.iter().position(|byte| *byte == b'{') else { return key };
    let inside = &key[open + 1..];
    match inside.iter().position(|byte| *byte == b'}') {
        None | Some(0) => key,
        Some(close) => &inside[..close],
    }
}

/// CRC32/IEEE, bit by bit over a 16-entry table: only Codis's slot space uses it.
fn crc32(bytes: &[u8]) -> u32 {
    #[allow(clippy::cast_possible_truncation, reason = "indexes below 16")]
    const NIBBLES: [u32; 16] = {
        let mut table = [0_u32; 16];
        let mut nibble = 0;
        while nibble < 16 {
            let mut crc = nibble as u32;
            let mut bit = 0;
            while bit < 4 {
                crc = if crc & 1 != 0 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 };
                bit += 1;
            }
            table[nibble] = crc;
            nibble += 1;
        }
        table
    };
    let mut crc = !0_u32;
    for byte in bytes {
        crc ^= u32::from(*byte);
        crc = (crc >> 4) ^ NIBBLES[(crc & 0xF) as usize];
        crc = (crc >> 4) ^ NIBBLES[(crc & 0xF) as usize];
    }
    !crc
}

/// Whose a slot is: a set of bits, none of which is ever set unless the server is part of a cluster. They change under the
/// slot's lock, so whoever holds it knows that what it sees stays true until it gives it back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tenure(u8);

impl Tenure {
    /// It is served here.
    pub const SERVED: Tenure = Tenure(0);
    /// It is another's: what it may hold is hidden.
    pub const FOREIGN: Tenure = Tenure(1);
    /// It is kept for another server, which takes the writes: served to those who want to read from a replica.
    pub const REPLICATED: Tenure = Tenure(1 << 1);
    /// It is held: nobody may look at it or change it until it is known whose it is.
    pub const HELD: Tenure = Tenure(1 << 2);
    /// It is being taken over from its owner, and foreign until then.
    pub const IMPORTED: Tenure = Tenure(1 << 3);

    pub(crate) const fn from_bits(bits: u8) -> Tenure {
        Tenure(bits)
    }

    pub(crate) const fn bits(self) -> u8 {
        self.0
    }

    /// The bits of both.
    #[must_use]
    pub const fn with(self, other: Tenure) -> Tenure {
        Tenure(self.0 | other.0)
    }

    /// The bits of this one that `other` has not.
    #[inline]
    #[must_use]
    pub const fn without(self, other: Tenure) -> Tenure {
        Tenure(self.0 & !other.0)
    }

    /// Whether all bits of `other` are set.
    #[inline]
    pub const fn has(self, other: Tenure) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether nothing is in the way of a command.
    #[inline]
    pub const fn is_served(self) -> bool {
        self.0 == 0
    }

    /// Whether walks over the keyspace show what the slot holds.
    #[inline]
    pub const fn is_visible(self) -> bool {
        self.0 & Tenure::FOREIGN.0 == 0
    }

    /// Whether this server by itself may remove keys: those whose time is over, or to make room.
    #[inline]
    pub const fn may_shrink(self) -> bool {
        self.0 & (Tenure::FOREIGN.0 | Tenure::HELD.0) == 0
    }
}

/// A slot's lock and what it guards, on cache lines of their own.
#[repr(C, align(64))]
#[derive(Default)]
pub(crate) struct SlotCell {
    pub(crate) lock: SlotLock,
    /// Bits of a [`Tenure`]: changed under the lock, on its cache line.
    pub(crate) tenure: AtomicU8,
    pub(crate) contents: UnsafeCell<SlotData>,
}

// SAFETY: `contents` is reached only through a `LockSet` that holds `lock` (or the closed gate).
unsafe impl Sync for SlotCell {}

/// What one slot holds.
#[derive(Default)]
pub struct SlotData {
    first: Db,
    /// The other databases; absent nearly always, and one word, so that a slot fits its cache line.
    others: Option<Box<OtherDbs>>,
    /// Blocked clients and WATCHes; absent nearly always.
    pub(crate) extras: Option<Box<Extras>>,
}

/// Databases other than the first that hold something in a slot.
#[derive(Default)]
struct OtherDbs {
    by_number: Vec<(DbIndex, Db)>,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<SlotCell>() == 64, "a slot is a cache line");

impl SlotData {
    fn others(&self) -> &[(DbIndex, Db)] {
        self.others.as_ref().map_or(&[], |others| &others.by_number)
    }

    /// The part of database `index` in this slot, if it was ever written.
    #[inline]
    pub fn db(&self, index: DbIndex) -> Option<&Db> {
        if index.0 == 0 {
            return Some(&self.first);
        }
        self.others().iter().find(|(number, _)| *number == index).map(|(_, db)| db)
    }

    /// As [`SlotData::db`], to change.
    #[inline]
    pub fn db_mut(&mut self, index: DbIndex) -> Option<&mut Db> {
        if index.0 == 0 {
            return Some(&mut self.first);
        }
        self.others.as_mut()?.by_number.iter_mut().find(|(number, _)| *number == index).map(|(_, db)| db)
    }

    /// The part of database `index`, made when missing.
    pub fn db_or_new(&mut self, index: DbIndex) -> &mut Db {
        if index.0 == 0 {
            return &mut self.first;
        }
        let others = &mut self.others.get_or_insert_default().by_number;
        let at = match others.iter().position(|(number, _)| *number == index) {
            Some(at) => at,
            None => {
                others.push((index, Db::default()));
                others.len() - 1
            }
        };
        &mut others[at].1
    }

    /// Takes database `index` out, leaving it empty.
    pub fn take_db(&mut self, index: DbIndex) -> Option<Db> {
        if index.0 == 0 {
            return Some(std::mem::take(&mut self.first));
        }
        let others = &mut self.others.as_mut()?.by_number;
        let at = others.iter().position(|(number, _)| *number == index)?;
        Some(others.swap_remove(at).1)
    }

    /// Puts a database in the place of `index`, returning what was there.
    pub fn put_db(&mut self, index: DbIndex, db: Db) -> Db {
        std::mem::replace(self.db_or_new(index), db)
    }

    /// Marks the watchers of keys that are there (FLUSHALL, SWAPDB).
    pub(crate) fn touch_watchers_in(&self, index: DbIndex, now_ms: i64) {
        let Some(extras) = &self.extras else { return };
        let Some(part) = self.db(index) else { return };
        for (db, key, flags) in extras.watched() {
            let is_there = db == index
                && part
                    .table
                    .find(hash_key(key), key)
                    .is_some_and(|entry| entry.expire_at_ms().is_none_or(|at_ms| at_ms > now_ms));
            if is_there {
                for flag in flags {
                    flag.store(true, std::sync::atomic::Ordering::Relaxed);
                }
            }
        }
    }

    /// How many keys somebody waits for.
    pub fn waited_keys(&self) -> usize {
        self.extras.as_ref().map_or(0, |extras| extras.waited_keys().count())
    }

    /// Marks all watchers: what they watch is elsewhere from now on.
    pub(crate) fn break_watches(&self) {
        let Some(extras) = &self.extras else { return };
        for flag in extras.watched().flat_map(|(_, _, flags)| flags) {
            flag.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    }

    /// Keys of all databases, those whose time is over included.
    pub fn key_count(&self) -> usize {
        self.dbs().map(|(_, db)| db.len()).sum()
    }

    /// All databases that were ever written here.
    pub fn dbs(&self) -> impl Iterator<Item = (DbIndex, &Db)> {
        std::iter::once((DbIndex(0), &self.first)).chain(self.others().iter().map(|(index, db)| (*index, db)))
    }
}

/// The keys of one slot in one database.
#[derive(Default)]
pub struct Db {
    pub(crate) table: Table<Entry>,
    /// Entries that have an expiry.
    pub(crate) expiring: u32,
    /// Hashes whose fields may end.
    pub(crate) timed: u32,
    /// No entry and no field of a hash here expires before this Unix time in ms (a lower bound; means nothing while
    /// nothing here expires).
    pub(crate) next_expiry_ms: i64,
    /// Where active expiry goes on in a table too big for one visit.
    pub(crate) expire_cursor: u64,
}

impl Db {
    /// Keys held, expired ones included.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.table.len() == 0
    }

    /// Keys with an expiry.
    pub fn expiring(&self) -> u32 {
        self.expiring
    }

    /// Hashes whose fields may end.
    pub fn timed(&self) -> u32 {
        self.timed
    }

    /// Whether something here may be over.
    pub(crate) fn is_due(&self, now_ms: i64) -> bool {
        (self.expiring > 0 || self.timed > 0) && self.next_expiry_ms <= now_ms
    }

    /// Notes that nothing here ends before `at_ms` but what ends before already.
    fn note_bound(&mut self, at_ms: i64) {
        if (self.expiring == 0 && self.timed == 0) || at_ms < self.next_expiry_ms {
            self.next_expiry_ms = at_ms;
        }
    }

    /// Notes that a hash came in whose fields may end, the first of them at `at_ms`.
    pub(crate) fn note_timed(&mut self, earliest_ms: Option<i64>) {
        self.note_bound(earliest_ms.unwrap_or(i64::MAX));
        self.timed += 1;
    }

    /// Notes that a field of such a hash has got an end.
    pub(crate) fn note_field_time(&mut self, at_ms: i64) {
        self.note_bound(at_ms);
    }

    /// Notes that a hash whose fields may end went.
    pub(crate) fn forget_timed(&mut self) {
        debug_assert!(self.timed > 0);
        self.timed = self.timed.saturating_sub(1);
    }

    /// The table, to read.
    pub fn table(&self) -> &Table<Entry> {
        &self.table
    }

    /// Notes that an entry that ends at `at_ms` came in.
    #[inline]
    pub(crate) fn note_expiry(&mut self, at_ms: i64) {
        self.note_bound(at_ms);
        self.expiring += 1;
    }

    /// Notes that an entry with an expiry went.
    #[inline]
    pub(crate) fn forget_expiry(&mut self) {
        debug_assert!(self.expiring > 0);
        self.expiring = self.expiring.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_redis_clusters() {
        assert_eq!(crc16::of(b"123456789"), 0x31C3);
        assert_eq!(SlotSpace::Redis.slot(b"foo").index(), 12182);
        assert_eq!(SlotSpace::Redis.slot(b"{foo}.bar").index(), 12182);
        assert_eq!(SlotSpace::Redis.slot(b"x{foo}{y}").index(), 12182);
        assert_eq!(SlotSpace::Redis.slot(b"{}foo"), SlotSpace::Redis.slot(b"{}foo"));
        assert_ne!(SlotSpace::Redis.slot(b"{}foo").index(), 12182);
        assert_eq!(hash_tag(b"a{b"), b"a{b");
    }

    #[test]
    fn a_brace_is_seen_wherever_it_stands() {
        for len in 0..40 {
            // The bytes beside it in the table of characters, and those with a high bit, must not be taken for it.
            let plain: Vec<u8> = (0..len).map(|at: usize| [b'z', b'|', 0xFB, 0x7A, 0][at % 5]).collect();
            assert!(!has_brace(&plain));
            for at in 0..len {
                let mut key = plain.clone();
                key[at] = b'{';
                assert!(has_brace(&key), "length {len}, byte {at}");
            }
        }
    }

    #[test]
    fn codis_slots_are_crc32() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        assert!(SlotSpace::Codis.slot(b"foo").index() < 1024);
    }
}
