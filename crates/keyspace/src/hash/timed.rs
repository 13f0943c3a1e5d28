//! The table of a hash, with the times at which some of its fields end.
//!
//! ```text
//! FieldTable ── table: fields and values
//!            └─ times: None, or the times twice ── by field (a table of name and 8 bytes)
//!                                               └─ in order of time, then of name
//! ```
//!
//! A hash with a field that ends is always a table, and *timed* from then on: it keeps its (perhaps empty) times until
//! it is replaced, so that its slot can count timed hashes. Who looks at a hash asks first whether something is due.

use std::collections::BTreeSet;
use std::ops::{Deref, DerefMut};

use crate::hashing::hash_key;
use crate::table::{Entry, Field, Table};

/// See the module.
#[derive(Clone, Debug)]
#[repr(align(16))]
pub struct FieldTable {
    table: Table<Field>,
    times: Option<Box<Times>>,
}

/// Invariant: both sides hold the same fields with the same times, each of which is a field of the hash.
#[derive(Clone, Debug, Default)]
struct Times {
    by_field: Table<Field>,
    by_time: BTreeSet<(i64, Box<[u8]>)>,
}

impl FieldTable {
    pub(super) fn new(table: Table<Field>) -> FieldTable {
        FieldTable { table, times: None }
    }

    /// Whether it may have, or has had, fields that end.
    pub(super) fn is_timed(&self) -> bool {
        self.times.is_some()
    }

    pub(super) fn make_timed(&mut self) {
        self.times.get_or_insert_default();
    }

    /// Fields that end.
    pub(super) fn times_len(&self) -> usize {
        self.times.as_ref().map_or(0, |times| times.by_time.len())
    }

    /// When the first field ends, Unix ms.
    pub(super) fn earliest_ms(&self) -> Option<i64> {
        self.times.as_ref()?.by_time.first().map(|(at_ms, _)| *at_ms)
    }

    /// When a field ends.
    pub(super) fn time_of(&self, field: &[u8]) -> Option<i64> {
        self.times.as_ref()?.time_of(field)
    }

    /// Sets or clears the time of a field, which is there.
    pub(super) fn set_time(&mut self, field: &[u8], at_ms: Option<i64>) {
        debug_assert!(self.table.contains(hash_key(field), field));
        match at_ms {
            Some(at_ms) => self.times.get_or_insert_default().set(field, at_ms),
            None => self.forget_time(field),
        }
    }

    /// A field is gone, or was set anew.
    #[inline]
    pub(super) fn forget_time(&mut self, field: &[u8]) {
        if let Some(times) = &mut self.times {
            times.forget(field);
        }
    }

    /// Names of fields that end at `now_ms` or before, the earliest first, at most so many.
    pub(super) fn due(&self, now_ms: i64, count: usize) -> Vec<Box<[u8]>> {
        let times = self.times.iter().flat_map(|times| &times.by_time);
        times.take_while(|(at_ms, _)| *at_ms <= now_ms).take(count).map(|(_, field)| field.clone()).collect()
    }

    /// Bytes allocated for the times, about.
    pub(super) fn times_bytes(&self) -> usize {
        let Some(times) = &self.times else { return 0 };
        let nodes: usize = times.by_time.iter().take(16).map(|(_, field)| field.len() + 16).sum();
        let count = times.by_time.len();
        let mean = nodes / count.clamp(1, 16);
        size_of::<Times>()
            + times.by_field.memory_bytes_with(16, Field::allocated_bytes)
            + count * (size_of::<(i64, Box<[u8]>)>() + mean)
    }

    pub(super) fn check_times(&self) {
        let Some(times) = &self.times else { return };
        assert_eq!(times.by_field.len(), times.by_time.len());
        for (at_ms, field) in &times.by_time {
            assert_eq!(times.time_of(field), Some(*at_ms));
            assert!(self.table.contains(hash_key(field), field));
        }
    }
}

impl Times {
    fn time_of(&self, field: &[u8]) -> Option<i64> {
        let found = self.by_field.find(hash_key(field), field)?;
        found.value().first_chunk().map(|bytes| i64::from_le_bytes(*bytes))
    }

    fn set(&mut self, field: &[u8], at_ms: i64) {
        if let Some(before) = self.time_of(field) {
            self.by_time.remove(&(before, field.into()));
        }
        self.by_time.insert((at_ms, field.into()));
        let bytes = at_ms.to_le_bytes();
        match self.by_field.entry(hash_key(field), field) {
            Entry::Occupied(mut place) => place.update(|existing| existing.set_value(&bytes)),
            Entry::Vacant(vacant) => {
                vacant.insert(Field::new(field, &bytes));
            }
        }
    }

    fn forget(&mut self, field: &[u8]) {
        if let Some(before) = self.time_of(field) {
            self.by_time.remove(&(before, field.into()));
            self.by_field.remove(hash_key(field), field);
        }
    }
}

impl Deref for FieldTable {
    type Target = Table<Field>;

    fn deref(&self) -> &Table<Field> {
        &self.table
    }
}

impl DerefMut for FieldTable {
    fn deref_mut(&mut self) -> &mut Table<Field> {
        &mut self.table
    }
}
