//! What a command sees: one database under the locks that the executor took.
//!
//! Hot path: look-ups do no allocation and no system call.
//!
//! Each method finds the key's slot (which must be held) and table entry itself. An entry whose time is over is removed
//! when it is met and reported as absent, so commands never see it. Commands that change a value in place say so with
//! [`DbView::changed`], which marks watchers and notes the keyspace notification.

use crate::entry::{Entry, Kind};
use crate::events::{Events, NotifyClass};
use crate::eviction::AccessClock;
use crate::hashing::hash_key;
use crate::journal::Deletion;
use crate::list::List;
use crate::lockset::LockSet;
use crate::slot::{Db, DbIndex, Slot};
use crate::string::StrRef;
use crate::table::{At, Place};
use crate::value::{Value, ValueMut, ValueRef};
use crate::waiters::{Waiter, WatchFlag};
use crate::{Hash, Set, Stream, ZSet};
use std::cell::Cell;
use std::sync::Arc;

/// The key holds a value of another type than the command works on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WrongType;

/// What becomes of the expiry when a value is set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SetTtl {
    /// The key has none afterwards.
    Clear,
    /// As before.
    Keep,
    /// Ends at this Unix time in ms.
    At(i64),
}

/// A key that the executor has already hashed: its address, so that the same argument is not hashed twice.
#[derive(Clone, Copy)]
pub struct Hashed {
    /// Address and length of the argument.
    pub at: (*const u8, usize),
    /// Its slot.
    pub slot: Slot,
    /// Its hash.
    pub hash: u64,
}

impl Hashed {
    /// Of no key.
    pub const NONE: Hashed = Hashed { at: (std::ptr::null(), 0), slot: Slot::FIRST, hash: 0 };

    /// Hashes `key`, an argument that outlives the command.
    #[inline]
    pub fn new(locks: &LockSet, key: &[u8]) -> Hashed {
        Hashed { at: (key.as_ptr(), key.len()), slot: locks.keyspace().slot(key), hash: hash_key(key) }
    }

    /// The same for `key`, whose bytes are those of this one's.
    #[inline]
    #[must_use]
    pub fn again(&self, key: &[u8]) -> Hashed {
        Hashed { at: (key.as_ptr(), key.len()), ..*self }
    }

    #[inline]
    fn is_of(&self, key: &[u8]) -> bool {
        self.at == (key.as_ptr(), key.len())
    }
}

/// One database, under locks. See the module.
pub struct DbView<'a> {
    /// The held slots.
    pub locks: &'a mut LockSet,
    /// What the command leaves for the executor.
    pub events: &'a mut Events,
    db: DbIndex,
    now_ms: i64,
    clock: AccessClock,
    /// Look-ups leave the access bits alone (CLIENT NO-TOUCH, OBJECT, TYPE and the like).
    pub no_touch: bool,
    /// Hashes of the command's keys, in their order.
    known: &'a [Hashed],
    /// Which of them was asked for last.
    current: Cell<usize>,
}

impl<'a> DbView<'a> {
    /// A view of database `db` at the time `now_ms` (Unix ms).
    #[inline]
    pub fn new(
        locks: &'a mut LockSet,
        events: &'a mut Events,
        db: DbIndex,
        now_ms: i64,
        clock: AccessClock,
    ) -> DbView<'a> {
        DbView { locks, events, db, now_ms, clock, no_touch: false, known: &[], current: Cell::new(0) }
    }

    /// Gives the view the hashes of the command's keys, in the order in which it will ask for them.
    #[inline]
    pub fn set_hashed(&mut self, known: &'a [Hashed]) {
        self.known = known;
    }

    /// The command's time, Unix ms: one command sees one instant.
    #[inline]
    pub fn now_ms(&self) -> i64 {
        self.now_ms
    }

    /// The database.
    #[inline]
    pub fn index(&self) -> DbIndex {
        self.db
    }

    /// How accesses are noted.
    pub fn access_clock(&self) -> AccessClock {
        self.clock
    }

    /// How many databases there are.
    pub fn databases(&self) -> u32 {
        self.locks.keyspace().databases()
    }

    /// Looks at another database from here on.
    pub fn select(&mut self, db: DbIndex) {
        self.db = db;
    }

    /// Runs `work` on another database.
    pub fn in_db<R>(&mut self, db: DbIndex, work: impl FnOnce(&mut DbView<'a>) -> R) -> R {
        let mine = std::mem::replace(&mut self.db, db);
        let result = work(self);
        self.db = mine;
        result
    }

    #[inline]
    fn locate(&self, key: &[u8]) -> (Slot, u64) {
        match self.known.get(self.current.get()) {
            Some(hashed) if hashed.is_of(key) => (hashed.slot, hashed.hash),
            _ => self.locate_other(key),
        }
    }

    /// Commands ask for their keys in order, some of them twice.
    #[inline(never)]
    fn locate_other(&self, key: &[u8]) -> (Slot, u64) {
        for candidate in [self.current.get() + 1, 0] {
            if let Some(hashed) = self.known.get(candidate)
                && hashed.is_of(key)
            {
                self.current.set(candidate);
                return (hashed.slot, hashed.hash);
            }
        }
        (self.locks.keyspace().slot(key), hash_key(key))
    }

    #[inline]
    fn db_ref(&self, slot: Slot) -> Option<&Db> {
        self.locks.slot(slot).db(self.db)
    }

    /// Where the key's entry is, if it is there and alive. Removes one whose time is over.
    #[inline]
    fn position(&mut self, key: &[u8]) -> Option<(Slot, At)> {
        let (slot, hash) = self.locate(key);
        let (at, entry) = self.db_ref(slot)?.table.position(hash, key)?;
        if entry.expire_at_ms().is_some_and(|at_ms| at_ms <= self.now_ms) {
            self.expire(slot, hash, key);
            return None;
        }
        Some((slot, at))
    }

    #[inline(never)]
    fn is_over_and_hidden(&mut self, slot: Slot, hash: u64, key: &[u8]) -> bool {
        let entry = self.db_ref(slot).and_then(|db| db.table.find(hash, key));
        let is_over = entry.and_then(Entry::expire_at_ms).is_some_and(|at_ms| at_ms <= self.now_ms);
        if is_over {
            self.expire(slot, hash, key);
        }
        is_over && self.hides_expired()
    }

    pub(crate) fn hides_expired(&self) -> bool {
        self.locks.keyspace().hides_expired() && !self.locks.is_primary
    }

    /// The place of an entry that is about to change: a snapshot gets what it held first.
    #[inline]
    fn place_at(&mut self, slot: Slot, at: At) -> Option<Place<'_, Entry>> {
        let db_index = self.db;
        if self.locks.keyspace().snapshots.is_active() {
            self.locks.hand_over(slot, db_index, at);
        }
        Some(self.locks.slot_mut(slot).db_mut(db_index)?.table.place_at(at))
    }

    #[inline]
    fn place(&mut self, key: &[u8]) -> Option<Place<'_, Entry>> {
        let (slot, at) = self.position(key)?;
        self.place_at(slot, at)
    }

    /// The entry, if it is there and alive. Removes one whose time is over.
    #[inline]
    fn live(&mut self, key: &[u8]) -> Option<&mut Entry> {
        self.place(key).map(Place::into_mut)
    }

    /// Lends the entry of a key to a change that may give it another handle (expiry, growing strings).
    pub fn update<R>(&mut self, key: &[u8], change: impl FnOnce(&mut Entry) -> R) -> Option<R> {
        self.place(key).map(|mut place| place.update(change))
    }

    #[cold]
    fn expire(&mut self, slot: Slot, hash: u64, key: &[u8]) {
        if self.hides_expired() {
            // The primary says when it goes; until then it is as if it were not there.
            return;
        }
        if let Some(entry) = self.unlink(slot, hash, key) {
            self.discard(entry);
            self.events.expired += 1;
            self.gone(key, Deletion::Expired);
            self.signal_by_server(key);
            self.events.notify(NotifyClass::EXPIRED, "expired", self.db, key);
        }
    }

    /// Takes the entry out of its table and keeps the counts.
    fn unlink(&mut self, slot: Slot, hash: u64, key: &[u8]) -> Option<Entry> {
        let db_index = self.db;
        if self.locks.keyspace().snapshots.is_active() {
            let (at, _) = self.db_ref(slot)?.table.position(hash, key)?;
            self.locks.hand_over(slot, db_index, at);
        }
        let db = self.locks.slot_mut(slot).db_mut(db_index)?;
        let entry = db.table.remove(hash, key)?;
        if entry.is_timed() {
            db.forget_timed();
        }
        if entry.has_expiry() {
            db.forget_expiry();
            self.locks.counters.add_expiring(db_index, -1);
        }
        self.locks.counters.add_keys(db_index, -1);
        if entry.kind() == Kind::Stream {
            // XREADGROUP is told that its group is gone.
            self.signal_ready(key);
        }
        Some(entry)
    }

    /// Frees a removed entry, here or in the background.
    fn discard(&mut self, entry: Entry) {
        match entry.kind() {
            Kind::Int | Kind::Embstr | Kind::Raw => drop(entry),
            _ => self.reclaim(entry.into_value()),
        }
    }

    /// Frees a value, in the background when that is costly.
    pub fn reclaim(&mut self, value: Value) {
        if value.is_costly_to_free() {
            self.locks.keyspace().reclaimer.free(value);
        }
    }

    fn link(&mut self, slot: Slot, hash: u64, mut entry: Entry) {
        entry.set_access(self.clock.fresh());
        entry.set_parity(self.locks.keyspace().snapshots.parity());
        let db_index = self.db;
        let expiry = entry.expire_at_ms();
        if entry.is_timed() {
            self.locks.keyspace().note_timed();
        }
        let db = self.locks.slot_mut(slot).db_or_new(db_index);
        if let Some(at_ms) = expiry {
            db.note_expiry(at_ms);
        }
        if entry.is_timed() {
            db.note_timed(entry.earliest_field_ms());
        }
        db.table.insert_unique(hash, entry);
        if expiry.is_some() {
            self.locks.counters.add_expiring(db_index, 1);
        }
        self.locks.counters.add_keys(db_index, 1);
    }

    // ---- reading -------------------------------------------------------------------------------------------------

    /// The value of a key, for a reading command: counts a hit or a miss and notes the access.
    #[inline]
    pub fn read(&mut self, key: &[u8]) -> Option<ValueRef<'_>> {
        self.read_entry(key).map(Entry::value)
    }

    /// As [`DbView::read`], the entry: for commands that tell of more than the value.
    #[inline]
    pub fn read_entry(&mut self, key: &[u8]) -> Option<&Entry> {
        let (slot, hash) = self.locate(key);
        let is_hidden = self.db_ref(slot).is_some_and(|db| db.expiring > 0) && self.is_over_and_hidden(slot, hash, key);
        let DbView { locks, events, db, clock, no_touch, .. } = self;
        let found = locks.slot(slot).db(*db).and_then(|part| part.table.find(hash, key));
        match found.filter(|_| !is_hidden) {
            Some(entry) => {
                events.hits += 1;
                if !*no_touch {
                    clock.touch(entry);
                }
                Some(entry)
            }
            None => {
                events.misses += 1;
                events.notify(NotifyClass::KEY_MISS, "keymiss", *db, key);
                None
            }
        }
    }

    /// Runs `work` with look-ups that leave the access bits alone.
    pub fn without_touch<R>(&mut self, work: impl FnOnce(&mut DbView<'a>) -> R) -> R {
        let before = std::mem::replace(&mut self.no_touch, true);
        let result = work(self);
        self.no_touch = before;
        result
    }

    /// The value of a key, if alive: no statistics, no access note, nothing removed. May be held for several keys.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Option<ValueRef<'_>> {
        self.entry(key).map(Entry::value)
    }

    /// The entry of a key, if alive; as [`DbView::get`].
    #[inline]
    pub fn entry(&self, key: &[u8]) -> Option<&Entry> {
        let (slot, hash) = self.locate(key);
        let entry = self.db_ref(slot)?.table.find(hash, key)?;
        if entry.expire_at_ms().is_some_and(|at| at <= self.now_ms) { None } else { Some(entry) }
    }

    /// The entry of a key, to change in place; what may give it another handle goes through [`DbView::update`].
    #[inline]
    pub fn entry_mut(&mut self, key: &[u8]) -> Option<&mut Entry> {
        self.live(key)
    }

    /// Whether the key is there. Removes it when its time is over; no statistics.
    pub fn exists(&mut self, key: &[u8]) -> bool {
        self.position(key).is_some()
    }

    /// The string at a key, for a reading command.
    ///
    /// # Errors
    /// Another type.
    #[inline]
    pub fn read_str(&mut self, key: &[u8]) -> Result<Option<StrRef<'_>>, WrongType> {
        match self.read(key) {
            None => Ok(None),
            Some(ValueRef::Str(string)) => Ok(Some(string)),
            Some(_) => Err(WrongType),
        }
    }

    /// The list at a key, for a reading command.
    ///
    /// # Errors
    /// Another type.
    pub fn read_list(&mut self, key: &[u8]) -> Result<Option<&List>, WrongType> {
        match self.read(key) {
            None => Ok(None),
            Some(ValueRef::List(list)) => Ok(Some(list)),
            Some(_) => Err(WrongType),
        }
    }

    /// The set at a key, for a reading command.
    ///
    /// # Errors
    /// Another type.
    pub fn read_set(&mut self, key: &[u8]) -> Result<Option<&Set>, WrongType> {
        match self.read(key) {
            None => Ok(None),
            Some(ValueRef::Set(set)) => Ok(Some(set)),
            Some(_) => Err(WrongType),
        }
    }

    /// The sorted set at a key, for a reading command.
    ///
    /// # Errors
    /// Another type.
    pub fn read_zset(&mut self, key: &[u8]) -> Result<Option<&ZSet>, WrongType> {
        match self.read(key) {
            None => Ok(None),
            Some(ValueRef::ZSet(zset)) => Ok(Some(zset)),
            Some(_) => Err(WrongType),
        }
    }

    /// The hash at a key, for a reading command.
    ///
    /// # Errors
    /// Another type.
    pub fn read_hash(&mut self, key: &[u8]) -> Result<Option<&Hash>, WrongType> {
        if self.has_due_fields(key) {
            if self.hides_expired() {
                return Ok(self.read_hash_without_due(key));
            }
            self.expire_fields(key, usize::MAX);
        }
        match self.read(key) {
            None => Ok(None),
            Some(ValueRef::Hash(hash)) => Ok(Some(hash)),
            Some(_) => Err(WrongType),
        }
    }

    /// The stream at a key, for a reading command.
    ///
    /// # Errors
    /// Another type.
    pub fn read_stream(&mut self, key: &[u8]) -> Result<Option<&Stream>, WrongType> {
        match self.read(key) {
            None => Ok(None),
            Some(ValueRef::Stream(stream)) => Ok(Some(stream)),
            Some(_) => Err(WrongType),
        }
    }

    // ---- changing in place ---------------------------------------------------------------------------------------

    /// The value of a key, to change in place; notes the access, counts nothing.
    #[inline]
    pub fn write(&mut self, key: &[u8]) -> Option<ValueMut<'_>> {
        let (clock, no_touch) = (self.clock, self.no_touch);
        self.live(key).map(|entry| {
            if !no_touch {
                clock.touch(entry);
            }
            entry.value_mut()
        })
    }

    /// The list at a key, to change.
    ///
    /// # Errors
    /// Another type.
    pub fn write_list(&mut self, key: &[u8]) -> Result<Option<&mut List>, WrongType> {
        match self.write(key) {
            None => Ok(None),
            Some(ValueMut::List(list)) => Ok(Some(list)),
            Some(_) => Err(WrongType),
        }
    }

    /// The set at a key, to change.
    ///
    /// # Errors
    /// Another type.
    pub fn write_set(&mut self, key: &[u8]) -> Result<Option<&mut Set>, WrongType> {
        match self.write(key) {
            None => Ok(None),
            Some(ValueMut::Set(set)) => Ok(Some(set)),
            Some(_) => Err(WrongType),
        }
    }

    /// The sorted set at a key, to change.
    ///
    /// # Errors
    /// Another type.
    pub fn write_zset(&mut self, key: &[u8]) -> Result<Option<&mut ZSet>, WrongType> {
        match self.write(key) {
            None => Ok(None),
            Some(ValueMut::ZSet(zset)) => Ok(Some(zset)),
            Some(_) => Err(WrongType),
        }
    }

    /// The hash at a key, to change.
    ///
    /// # Errors
    /// Another type.
    pub fn write_hash(&mut self, key: &[u8]) -> Result<Option<&mut Hash>, WrongType> {
        if self.has_due_fields(key) {
            self.expire_fields(key, usize::MAX);
        }
        match self.write(key) {
            None => Ok(None),
            Some(ValueMut::Hash(hash)) => Ok(Some(hash)),
            Some(_) => Err(WrongType),
        }
    }

    /// Whether there are hashes beside the key whose fields may end.
    #[inline]
    pub(crate) fn may_have_timed(&self, key: &[u8]) -> bool {
        let (slot, _) = self.locate(key);
        self.db_ref(slot).is_some_and(|db| db.timed > 0)
    }

    /// The key's part of its slot.
    pub(crate) fn part_of(&mut self, key: &[u8]) -> Option<&mut Db> {
        let (slot, _) = self.locate(key);
        let db_index = self.db;
        self.locks.slot_mut(slot).db_mut(db_index)
    }

    /// The value at a key, which `make` gives when missing.
    #[inline]
    fn upsert(&mut self, key: &[u8], make: impl FnOnce() -> Value) -> Option<ValueMut<'_>> {
        let clock = self.clock;
        let (slot, at) = match self.position(key) {
            Some(found) => found,
            None => {
                self.insert(key, make(), None);
                self.position(key)?
            }
        };
        let entry = self.place_at(slot, at)?.into_mut();
        clock.touch(entry);
        Some(entry.value_mut())
    }

    /// The stream at a key, to change.
    ///
    /// # Errors
    /// Another type.
    pub fn write_stream(&mut self, key: &[u8]) -> Result<Option<&mut Stream>, WrongType> {
        match self.write(key) {
            None => Ok(None),
            Some(ValueMut::Stream(stream)) => Ok(Some(stream)),
            Some(_) => Err(WrongType),
        }
    }

    /// The stream at a key, made empty when missing.
    ///
    /// # Errors
    /// Another type.
    pub fn upsert_stream(&mut self, key: &[u8]) -> Result<&mut Stream, WrongType> {
        if !self.exists(key) {
            self.insert(key, Value::Stream(Stream::new()), None);
        }
        self.write_stream(key)?.ok_or(WrongType)
    }

    /// The list at a key, made empty when missing. An empty one must be filled or removed before the command ends.
    ///
    /// # Errors
    /// Another type.
    pub fn upsert_list(&mut self, key: &[u8]) -> Result<&mut List, WrongType> {
        match self.upsert(key, || Value::List(List::new())) {
            Some(ValueMut::List(list)) => Ok(list),
            _ => Err(WrongType),
        }
    }

    /// The set at a key, made by `make` when missing (its first encoding depends on what comes in); see
    /// [`DbView::upsert_list`].
    ///
    /// # Errors
    /// Another type.
    pub fn upsert_set(&mut self, key: &[u8], make: impl FnOnce() -> Set) -> Result<&mut Set, WrongType> {
        match self.upsert(key, || Value::Set(make())) {
            Some(ValueMut::Set(set)) => Ok(set),
            _ => Err(WrongType),
        }
    }

    /// The sorted set at a key, made empty when missing; see [`DbView::upsert_list`].
    ///
    /// # Errors
    /// Another type.
    pub fn upsert_zset(&mut self, key: &[u8]) -> Result<&mut ZSet, WrongType> {
        match self.upsert(key, || Value::ZSet(ZSet::new())) {
            Some(ValueMut::ZSet(zset)) => Ok(zset),
            _ => Err(WrongType),
        }
    }

    /// The hash at a key, made empty when missing; see [`DbView::upsert_list`].
    ///
    /// # Errors
    /// Another type.
    pub fn upsert_hash(&mut self, key: &[u8]) -> Result<&mut Hash, WrongType> {
        match self.upsert(key, || Value::Hash(Hash::new())) {
            Some(ValueMut::Hash(hash)) => Ok(hash),
            _ => Err(WrongType),
        }
    }

    // ---- setting and removing ------------------------------------------------------------------------------------

    /// Adds a key that is not there. Keys of types that clients block on become ready.
    pub fn insert(&mut self, key: &[u8], value: Value, expire_at_ms: Option<i64>) {
        self.insert_value(key, value, expire_at_ms, true);
    }

    fn insert_value(&mut self, key: &[u8], value: Value, expire_at_ms: Option<i64>, is_new: bool) {
        let may_wake = matches!(value, Value::List(_) | Value::ZSet(_) | Value::Stream(_));
        self.insert_entry(key, Entry::new(key, value, expire_at_ms), is_new);
        if may_wake {
            self.signal_ready(key);
        }
    }

    /// As [`DbView::insert`], for an entry built by the caller. No waiter is told. `is_new`: the key held nothing
    /// before the command.
    fn insert_entry(&mut self, key: &[u8], entry: Entry, is_new: bool) {
        let (slot, hash) = self.locate(key);
        debug_assert!(
            self.db_ref(slot).is_none_or(|db| db.table.find(hash, key).is_none()),
            "the key is there already"
        );
        self.link(slot, hash, entry);
        if is_new {
            self.events.notify(NotifyClass::NEW, "new", self.db, key);
        }
    }

    /// Sets a key to a value, whatever it held. True: it held something.
    pub fn set(&mut self, key: &[u8], value: Value, ttl: SetTtl) -> bool {
        let (existed, expiry) = self.displace(key, ttl);
        self.insert_value(key, value, expiry, !existed);
        existed
    }

    /// Sets a key to a string, whatever it held. True: it held something. The hot path of SET.
    #[inline]
    pub fn set_str(&mut self, key: &[u8], value: &[u8], ttl: SetTtl) -> bool {
        let clock = self.clock;
        let Some(entry) = self.live(key) else {
            let expiry = match ttl {
                SetTtl::At(at_ms) => Some(at_ms),
                SetTtl::Clear | SetTtl::Keep => None,
            };
            self.insert_entry(key, Entry::new_str(key, value, expiry), true);
            return false;
        };
        let keeps_expiry = ttl == SetTtl::Keep || (ttl == SetTtl::Clear && !entry.has_expiry());
        if keeps_expiry && (value.len() > 20 || resp::num::parse_i64(value).is_none()) && entry.overwrite_inline(value)
        {
            entry.set_access(clock.fresh());
        } else {
            self.replace_by_str(key, value, ttl);
        }
        true
    }

    /// Puts a string's entry in the place of the key's, which is there.
    #[inline(never)]
    fn replace_by_str(&mut self, key: &[u8], value: &[u8], ttl: SetTtl) {
        let access = self.clock.fresh();
        let Some(mut place) = self.place(key) else { return };
        let old_expiry = place.get().expire_at_ms();
        let expiry = match ttl {
            SetTtl::At(at_ms) => Some(at_ms),
            SetTtl::Clear => None,
            SetTtl::Keep => old_expiry,
        };
        let mut entry = Entry::new_str(key, value, expiry);
        entry.set_access(access);
        // The old one has been handed over if it had to be, so it is of the present generation.
        entry.set_parity(place.get().parity());
        let old = place.replace(entry);
        self.count_expiry(key, old_expiry.is_some(), expiry);
        if old.is_timed() {
            let (slot, _) = self.locate(key);
            let db_index = self.db;
            if let Some(db) = self.locks.slot_mut(slot).db_mut(db_index) {
                db.forget_timed();
            }
        }
        if old.kind() == Kind::Stream {
            self.signal_ready(key);
        }
        self.discard(old);
    }

    /// Removes what a key held before it is set anew. Gives whether it held something, and the new expiry.
    fn displace(&mut self, key: &[u8], ttl: SetTtl) -> (bool, Option<i64>) {
        let (slot, hash) = self.locate(key);
        let mut expiry = match ttl {
            SetTtl::At(at_ms) => Some(at_ms),
            SetTtl::Clear | SetTtl::Keep => None,
        };
        let old = if self.position(key).is_some() { self.unlink(slot, hash, key) } else { None };
        let existed = old.is_some();
        if let Some(old) = old {
            if ttl == SetTtl::Keep {
                expiry = old.expire_at_ms();
            }
            self.discard(old);
        }
        (existed, expiry)
    }

    /// Removes a key. True: it was there.
    pub fn remove(&mut self, key: &[u8]) -> bool {
        let (slot, hash) = self.locate(key);
        if self.position(key).is_none() {
            return false;
        }
        match self.unlink(slot, hash, key) {
            Some(entry) => {
                self.discard(entry);
                true
            }
            None => false,
        }
    }

    /// Takes a key's value and expiry out.
    pub fn take(&mut self, key: &[u8]) -> Option<(Value, Option<i64>)> {
        let (slot, hash) = self.locate(key);
        self.position(key)?;
        let entry = self.unlink(slot, hash, key)?;
        let expiry = entry.expire_at_ms();
        Some((entry.into_value(), expiry))
    }

    /// When the key ends: `None` no such key, `Some(None)` never.
    pub fn expiry(&mut self, key: &[u8]) -> Option<Option<i64>> {
        let (slot, at) = self.position(key)?;
        Some(self.db_ref(slot)?.table.at(at).expire_at_ms())
    }

    /// Sets or clears a key's expiry. False: no such key.
    pub fn set_expiry(&mut self, key: &[u8], expire_at_ms: Option<i64>) -> bool {
        let changed = self.update(key, |entry| {
            let had = entry.has_expiry();
            entry.set_expiry(expire_at_ms);
            had
        });
        let Some(had) = changed else { return false };
        self.count_expiry(key, had, expire_at_ms);
        true
    }

    /// Keeps the counts of expiries after an entry that had one or not has got another or none.
    #[inline]
    fn count_expiry(&mut self, key: &[u8], had: bool, expire_at_ms: Option<i64>) {
        if !had && expire_at_ms.is_none() {
            return;
        }
        let (slot, _) = self.locate(key);
        let db_index = self.db;
        if let Some(db) = self.locks.slot_mut(slot).db_mut(db_index) {
            if had {
                db.forget_expiry();
            }
            if let Some(at_ms) = expire_at_ms {
                db.note_expiry(at_ms);
            }
        }
        self.locks.counters.add_expiring(db_index, i64::from(expire_at_ms.is_some()) - i64::from(had));
    }

    // ---- what others should know ---------------------------------------------------------------------------------

    /// The key was changed by the command: marks watchers, counts the change, notes the notification.
    #[inline]
    pub fn changed(&mut self, class: NotifyClass, event: &'static str, key: &[u8]) {
        self.signal(key);
        self.events.dirty += 1;
        self.events.notify(class, event, self.db, key);
    }

    /// Notes a notification alone.
    pub fn notify(&mut self, class: NotifyClass, event: &'static str, key: &[u8]) {
        self.events.notify(class, event, self.db, key);
    }

    /// Marks the key's watchers, and notes who has to forget its value.
    #[inline]
    pub fn signal(&mut self, key: &[u8]) {
        self.signal_change(key, true);
    }

    /// As [`DbView::signal`] where no command asked for the change: the key's time was over, or memory was needed.
    pub(crate) fn signal_by_server(&mut self, key: &[u8]) {
        self.signal_change(key, false);
    }

    #[inline]
    fn signal_change(&mut self, key: &[u8], by_command: bool) {
        let (slot, _) = self.locate(key);
        let db = self.db;
        if let Some(extras) = &mut self.locks.slot_mut(slot).extras {
            extras.touch(db, key);
            if extras.is_tracking() {
                self.invalidate(slot, key);
            }
        }
        if self.locks.keyspace().tracking.broadcasts() {
            self.note_change(key, by_command);
        }
    }

    /// If somebody waits for the key, the executor is to serve them after the command.
    pub fn signal_ready(&mut self, key: &[u8]) {
        let (slot, _) = self.locate(key);
        let db = self.db;
        if self.locks.slot(slot).extras.as_ref().is_some_and(|extras| extras.has_waiters(db, key)) {
            self.events.ready.push((db, key.to_vec()));
        }
    }

    /// Whether the key is there though its time is over. Removes nothing.
    pub fn is_expired_now(&self, key: &[u8]) -> bool {
        let (slot, hash) = self.locate(key);
        let entry = self.db_ref(slot).and_then(|db| db.table.find(hash, key));
        entry.and_then(Entry::expire_at_ms).is_some_and(|at_ms| at_ms <= self.now_ms)
    }

    // ---- what the journal is to know -------------------------------------------------------------------------------

    /// Whether effects are recorded: else none need to be put together.
    #[inline]
    pub fn is_recording(&self) -> bool {
        self.locks.effects.is_recording()
    }

    /// The command came to this one, which is recorded in its place. More than one may be said.
    pub fn effect(&mut self, arguments: &[&[u8]]) {
        self.effect_of(arguments.iter().copied());
    }

    /// As [`DbView::effect`], for arguments that are not a list yet.
    pub fn effect_of<'b>(&mut self, arguments: impl ExactSizeIterator<Item = &'b [u8]>) {
        self.locks.effects.suppress();
        let db = self.db;
        self.locks.effects.note(db, arguments, false);
    }

    /// The command is not to be recorded as it stands, whatever it changed.
    pub fn no_effect(&mut self) {
        self.locks.effects.suppress();
    }

    /// The command is to be recorded though it may have changed nothing.
    pub fn always_effect(&mut self) {
        self.locks.effects.force();
    }

    /// The command is recorded as this one, which replicas alone are to see.
    pub fn effect_for_replicas(&mut self, arguments: &[&[u8]]) {
        self.locks.effects.suppress();
        let db = self.db;
        self.locks.effects.note(db, arguments.iter().copied(), true);
    }

    /// A key went without a command: by its expiry or by eviction.
    pub(crate) fn gone(&mut self, key: &[u8], why: Deletion) {
        if self.is_recording() {
            let name = self.locks.keyspace().journal.deletion_name(why);
            let db = self.db;
            self.locks.effects.note(db, [name, key].into_iter(), false);
        }
    }

    /// The command came to the deletion of a key.
    pub fn effect_deleted(&mut self, key: &[u8], why: Deletion) {
        self.locks.effects.suppress();
        self.gone(key, why);
    }

    /// The command is recorded with some of its arguments replaced, given by index.
    pub fn effect_replaced(&mut self, arguments: resp::Args<'_>, replaced: &[(usize, &[u8])]) {
        if self.is_recording() {
            let mut all: Vec<&[u8]> = arguments.iter().collect();
            for (index, argument) in replaced {
                if let Some(place) = all.get_mut(*index) {
                    *place = argument;
                }
            }
            self.effect(&all);
        }
    }

    // ---- waiting and watching ------------------------------------------------------------------------------------

    /// Puts a waiter at the end of the key's queue.
    pub fn add_waiter(&mut self, key: &[u8], waiter: Arc<Waiter>) {
        let (slot, _) = self.locate(key);
        let db = self.db;
        self.locks.slot_mut(slot).extras.get_or_insert_default().add_waiter(db, key, waiter);
    }

    /// Waiters of a key, first come first.
    pub fn waiters_of(&mut self, key: &[u8]) -> Vec<Arc<Waiter>> {
        let (slot, _) = self.locate(key);
        let db = self.db;
        self.locks.slot_mut(slot).extras.as_mut().map(|extras| extras.waiters_of(db, key)).unwrap_or_default()
    }

    /// Whether somebody waits for the key.
    pub fn has_waiters(&mut self, key: &[u8]) -> bool {
        let (slot, _) = self.locate(key);
        let db = self.db;
        self.locks.slot_mut(slot).extras.as_mut().is_some_and(|extras| extras.first_waiter(db, key).is_some())
    }

    /// Takes a waiter off a key.
    pub fn remove_waiter(&mut self, key: &[u8], id: u64) {
        let (slot, _) = self.locate(key);
        let db = self.db;
        let data = self.locks.slot_mut(slot);
        if let Some(extras) = &mut data.extras {
            extras.remove_waiter(db, key, id);
            if extras.is_empty() {
                data.extras = None;
            }
        }
    }

    /// Watches a key: `flag` is set when it changes.
    pub fn watch(&mut self, key: &[u8], flag: WatchFlag) {
        let (slot, _) = self.locate(key);
        let db = self.db;
        self.locks.slot_mut(slot).extras.get_or_insert_default().watch(db, key, flag);
    }

    /// Ends a watch.
    pub fn unwatch(&mut self, key: &[u8], flag: &WatchFlag) {
        let (slot, _) = self.locate(key);
        let db = self.db;
        let data = self.locks.slot_mut(slot);
        if let Some(extras) = &mut data.extras {
            extras.unwatch(db, key, flag);
            if extras.is_empty() {
                data.extras = None;
            }
        }
    }
}
