//! The hash object: fields to values, a listpack while small, a table of [`Field`]s after, which also
//! knows when which of them end.
//!
//! One pointer of eight bytes; its lowest bit says which (see [`tagged`](crate::tagged)). A listpack
//! holds name, value, name, value, … without duplicates, as in RDB and DUMP.
//!
//! Redis: a hash turns into a table when it has more entries, or meets a longer string, than the
//! limits allow, and never turns back.

#[cfg(test)]
mod tests;
mod timed;

use std::{fmt, ptr::NonNull};

use fastrand::Rng;
use rdb::listpack::{self, Elem, Listpack};

use crate::{
    hashing::hash_key,
    table::{self, Entry, Field, Item, Member, Table},
    tagged::{Choice, Tagged},
};

pub use timed::FieldTable;

/// Fields and their values.
#[repr(transparent)]
#[derive(Clone)]
pub struct Hash {
    body: Tagged<Listpack, FieldTable>,
}

/// Up to where a hash stays a listpack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `hash-max-listpack-entries`: fields.
    pub max_listpack_entries: usize,
    /// `hash-max-listpack-value`: bytes of a name or a value.
    pub max_listpack_value: usize,
}

/// How a hash is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// One block, searched from its start.
    Listpack,
    /// A table.
    Hashtable,
}

impl Encoding {
    /// What OBJECT ENCODING answers.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Listpack => "listpack",
            Self::Hashtable => "hashtable",
        }
    }
}

/// A listpack that is no hash: an odd number of elements, or a field twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotPairs;

impl fmt::Display for NotPairs {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a hash's listpack has an odd number of elements or a field twice")
    }
}

impl std::error::Error for NotPairs {}

/// What a hash is made of, owned.
#[derive(Debug)]
pub enum Parts {
    /// Names and values in turn.
    Listpack(Listpack),
    /// Fields.
    Table(Box<FieldTable>),
}

impl Hash {
    /// An empty hash, a listpack.
    #[must_use]
    pub fn new() -> Self {
        Self { body: Tagged::thin(Listpack::new()) }
    }

    /// A hash of a listpack from outside.
    ///
    /// # Errors
    /// When the elements are not pairs with different names. It may be empty or over the limits:
    /// see [`convert_if_over`](Self::convert_if_over).
    pub fn from_listpack(listpack: Listpack) -> Result<Self, NotPairs> {
        if !listpack.len().is_multiple_of(2) || has_duplicates(listpack.pairs().map(|(name, _)| name)) {
            return Err(NotPairs);
        }
        Ok(Self { body: Tagged::thin(listpack) })
    }

    /// Number of fields.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        match self.body.get() {
            Choice::Thin(listpack) => listpack.len() / 2,
            Choice::Boxed(table) => table.len(),
            Choice::Third(never) => match *never {},
        }
    }

    /// Whether there are no fields.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match self.body.get() {
            Choice::Thin(listpack) => listpack.is_empty(),
            Choice::Boxed(table) => table.is_empty(),
            Choice::Third(never) => match *never {},
        }
    }

    /// How the hash is kept.
    #[must_use]
    pub fn encoding(&self) -> Encoding {
        if self.as_listpack().is_some() { Encoding::Listpack } else { Encoding::Hashtable }
    }

    /// The listpack, if that is how it is kept.
    #[inline]
    #[must_use]
    pub fn as_listpack(&self) -> Option<&Listpack> {
        match self.body.get() {
            Choice::Thin(listpack) => Some(listpack),
            _ => None,
        }
    }

    /// The table, if that is how it is kept.
    #[inline]
    #[must_use]
    pub fn as_table(&self) -> Option<&Table<Field>> {
        match self.body.get() {
            Choice::Boxed(table) => Some(&**table),
            _ => None,
        }
    }

    /// What it is made of: the elements of a big one can be freed elsewhere or bit by bit.
    #[must_use]
    pub fn into_parts(self) -> Parts {
        match self.body.into_inner() {
            Choice::Thin(listpack) => Parts::Listpack(listpack),
            Choice::Boxed(table) => Parts::Table(table),
            Choice::Third(never) => match never {},
        }
    }

    /// The value of `field`.
    #[inline]
    #[must_use]
    pub fn get(&self, field: &[u8]) -> Option<Elem<'_>> {
        match self.body.get() {
            Choice::Thin(listpack) => {
                let name = listpack.find(field, 1)?;
                Some(listpack.get(listpack.next(name)?))
            }
            Choice::Boxed(table) => Some(Elem::Bytes(table.find(hash_key(field), field)?.value())),
            Choice::Third(never) => match *never {},
        }
    }

    /// Whether `field` exists.
    #[inline]
    #[must_use]
    pub fn contains(&self, field: &[u8]) -> bool {
        match self.body.get() {
            Choice::Thin(listpack) => listpack.find(field, 1).is_some(),
            Choice::Boxed(table) => table.contains(hash_key(field), field),
            Choice::Third(never) => match *never {},
        }
    }

    /// Length in bytes of the value of `field`.
    #[must_use]
    pub fn value_len(&self, field: &[u8]) -> Option<usize> {
        Some(self.get(field)?.len_as_text())
    }

    /// Gets the hash ready for a command that sets these strings (names and values in turn).
    ///
    /// Redis: the arguments of HSET, HMSET and HSETNX decide together, before any is set: more pairs
    /// than the limit, a string over the limit, or 1 GiB in all make it a table at once.
    pub fn prepare<'s>(&mut self, strings: impl ExactSizeIterator<Item = &'s [u8]>, limits: &Limits) {
        let Some(listpack) = self.as_listpack() else {
            return;
        };
        if strings.len() / 2 > limits.max_listpack_entries {
            return self.convert();
        }
        let mut total = 0_usize;
        for string in strings {
            if string.len() > limits.max_listpack_value {
                return self.convert();
            }
            total = total.saturating_add(string.len());
        }
        if !listpack.safe_to_add(total) {
            self.convert();
        }
    }

    /// Sets `field`; whether it is new.
    pub fn set(&mut self, field: &[u8], value: &[u8], limits: &Limits) -> bool {
        if let Some(listpack) = self.as_listpack() {
            let longest = field.len().max(value.len());
            let both = field.len().saturating_add(value.len()).saturating_add(ENTRY_OVERHEAD);
            if longest > limits.max_listpack_value || !listpack.safe_to_add(both) {
                self.convert();
            }
        }
        match self.body.get_mut() {
            Choice::Thin(listpack) => {
                let is_new = set_in_listpack(listpack, field, value);
                if is_new && listpack.len() / 2 > limits.max_listpack_entries {
                    self.convert();
                }
                is_new
            }
            Choice::Boxed(table) => match table.entry(hash_key(field), field) {
                Entry::Occupied(mut place) => {
                    place.update(|existing| existing.set_value(value));
                    table.forget_time(field);
                    false
                }
                Entry::Vacant(vacant) => {
                    vacant.insert(Field::new(field, value));
                    true
                }
            },
            Choice::Third(never) => never.update(|never| match *never {}),
        }
    }

    /// As [`set`](Self::set); a field that ends at some time still does.
    pub fn set_keeping_time(&mut self, field: &[u8], value: &[u8], limits: &Limits) -> bool {
        let time = self.time_of(field);
        let is_new = self.set(field, value, limits);
        if time.is_some() {
            self.set_time(field, time);
        }
        is_new
    }

    // ---- when fields end ---------------------------------------------------------------------------------------------

    fn table_mut(&mut self) -> Option<&mut FieldTable> {
        match self.body.get_mut() {
            Choice::Boxed(table) => Some(table),
            _ => None,
        }
    }

    fn boxed(&self) -> Option<&FieldTable> {
        match self.body.get() {
            Choice::Boxed(table) => Some(table),
            _ => None,
        }
    }

    /// Whether fields of it may end: once one did, always.
    #[inline]
    #[must_use]
    pub fn is_timed(&self) -> bool {
        self.boxed().is_some_and(FieldTable::is_timed)
    }

    /// How many fields end.
    #[must_use]
    pub fn times_len(&self) -> usize {
        self.boxed().map_or(0, FieldTable::times_len)
    }

    /// When the first of its fields ends, Unix ms.
    #[must_use]
    pub fn earliest_ms(&self) -> Option<i64> {
        self.boxed()?.earliest_ms()
    }

    /// Whether a field's time is over.
    #[must_use]
    pub fn is_due(&self, now_ms: i64) -> bool {
        self.earliest_ms().is_some_and(|at_ms| at_ms <= now_ms)
    }

    /// When `field` ends, Unix ms; `None` without such a field, too.
    #[must_use]
    pub fn time_of(&self, field: &[u8]) -> Option<i64> {
        self.boxed()?.time_of(field)
    }

    /// Sets or clears the time at which `field` ends. Whether there is such a field.
    pub fn set_time(&mut self, field: &[u8], at_ms: Option<i64>) -> bool {
        if !self.contains(field) {
            return false;
        }
        if at_ms.is_some() {
            self.convert();
        }
        if let Some(table) = self.table_mut() {
            table.set_time(field, at_ms);
        }
        true
    }

    /// Makes it one whose fields may end.
    pub fn make_timed(&mut self) {
        self.convert();
        if let Some(table) = self.table_mut() {
            table.make_timed();
        }
    }

    /// Removes fields whose time is over, the earliest first, at most so many: their names.
    pub fn remove_due(&mut self, now_ms: i64, count: usize) -> Vec<Box<[u8]>> {
        let due = self.boxed().map(|table| table.due(now_ms, count)).unwrap_or_default();
        for field in &due {
            self.delete(field);
        }
        due
    }

    /// Sets `field` unless it exists; whether it was set.
    pub fn set_nx(&mut self, field: &[u8], value: &[u8], limits: &Limits) -> bool {
        !self.contains(field) && self.set(field, value, limits)
    }

    /// Removes `field`; whether it was there.
    pub fn delete(&mut self, field: &[u8]) -> bool {
        match self.body.get_mut() {
            Choice::Thin(listpack) => match listpack.find(field, 1) {
                Some(name) => {
                    listpack.delete_at(name, 2);
                    true
                }
                None => false,
            },
            Choice::Boxed(table) => {
                table.forget_time(field);
                table.remove(hash_key(field), field).is_some()
            }
            Choice::Third(never) => never.update(|never| match *never {}),
        }
    }

    /// Makes it a table.
    pub fn convert(&mut self) {
        let Choice::Thin(listpack) = self.body.get() else {
            return;
        };
        let mut table = Table::new();
        for (name, value) in listpack.pairs() {
            let (mut name_text, mut value_text) = ([0; 24], [0; 24]);
            let field = Field::new(name.to_bytes(&mut name_text), value.to_bytes(&mut value_text));
            table.insert_unique(field.hash(), field);
        }
        self.body = Tagged::boxed(Box::new(FieldTable::new(table)));
    }

    /// Makes it a table if it has too many fields or too long strings for a listpack: after loading.
    pub fn convert_if_over(&mut self, limits: &Limits) {
        if let Some(listpack) = self.as_listpack()
            && (listpack.len() / 2 > limits.max_listpack_entries
                || listpack.iter().any(|elem| elem.len_as_text() > limits.max_listpack_value))
        {
            self.convert();
        }
    }

    /// All fields and values, in stored order.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        match self.body.get() {
            Choice::Thin(listpack) => Iter::Listpack(listpack.pairs()),
            Choice::Boxed(table) => Iter::Table(table.iter()),
            Choice::Third(never) => match *never {},
        }
    }

    /// Calls `visit` with fields from `cursor` on and answers the next cursor, 0 at the end.
    ///
    /// A listpack is visited whole. A table gives SCAN's guarantee: see [`Table::scan`].
    pub fn scan(&self, cursor: u64, count: usize, mut visit: impl FnMut(Elem<'_>, Elem<'_>)) -> u64 {
        match self.body.get() {
            Choice::Thin(listpack) => {
                listpack.pairs().for_each(|(name, value)| visit(name, value));
                0
            }
            Choice::Boxed(table) => table.scan(cursor, count, |field| {
                visit(Elem::Bytes(field.name()), Elem::Bytes(field.value()));
            }),
            Choice::Third(never) => match *never {},
        }
    }

    /// A field, each with the same chance.
    #[must_use]
    pub fn random(&self, rng: &mut Rng) -> Option<(Elem<'_>, Elem<'_>)> {
        match self.body.get() {
            Choice::Thin(listpack) if listpack.is_empty() => None,
            Choice::Thin(listpack) => listpack.pair(rng.usize(..listpack.len() / 2)),
            Choice::Boxed(table) => table.random(rng).map(pair),
            Choice::Third(never) => match *never {},
        }
    }

    /// Calls `visit` with `count` fields, each drawn from all.
    pub fn random_with_repeats<'h>(&'h self, rng: &mut Rng, count: usize, mut visit: impl FnMut(Elem<'h>, Elem<'h>)) {
        match self.body.get() {
            Choice::Thin(listpack) => {
                listpack.random_with_repeats(2, count, &mut |below| rng.usize(..below), &mut visit);
            }
            Choice::Boxed(table) => {
                for (name, value) in (0..count).map_while(|_| table.random(rng)).map(pair) {
                    visit(name, value);
                }
            }
            Choice::Third(never) => match *never {},
        }
    }

    /// Calls `visit` with `count` different fields, or all if there are fewer; every choice of them
    /// has the same chance. Answers how many.
    pub fn random_distinct<'h>(
        &'h self,
        rng: &mut Rng,
        count: usize,
        mut visit: impl FnMut(Elem<'h>, Elem<'h>),
    ) -> usize {
        match self.body.get() {
            Choice::Thin(listpack) => listpack.random_distinct(2, count, &mut |below| rng.usize(..below), &mut visit),
            Choice::Boxed(table) => table.random_distinct(rng, count, |field| {
                let (name, value) = pair(field);
                visit(name, value);
            }),
            Choice::Third(never) => match *never {},
        }
    }

    /// Bytes allocated for it, beyond its own eight: estimated from `samples` fields, 0 for all.
    #[must_use]
    pub fn memory_bytes(&self, samples: usize) -> usize {
        match self.body.get() {
            Choice::Thin(listpack) => listpack.allocated_bytes(),
            Choice::Boxed(table) => {
                let samples = if samples == 0 { table.len() } else { samples };
                size_of::<FieldTable>() + table.memory_bytes_with(samples, Field::allocated_bytes) + table.times_bytes()
            }
            Choice::Third(never) => match *never {},
        }
    }

    /// The word, for whoever keeps it elsewhere. Its bits 2 and 3 are free for tags.
    #[must_use]
    pub fn into_raw(self) -> NonNull<u8> {
        self.body.into_raw()
    }

    /// The hash again.
    ///
    /// # Safety
    /// `raw` came from [`into_raw`](Self::into_raw), and nothing else owns it.
    #[must_use]
    pub unsafe fn from_raw(raw: NonNull<u8>) -> Self {
        // SAFETY: the caller's.
        let body = unsafe { Tagged::from_raw(raw) };
        Self { body }
    }

    /// Panics when an invariant does not hold: for tests and fuzzing.
    pub fn check(&self) {
        match self.body.get() {
            Choice::Thin(listpack) => {
                listpack.check();
                assert!(listpack.len().is_multiple_of(2));
                assert!(!has_duplicates(listpack.pairs().map(|(name, _)| name)));
            }
            Choice::Boxed(table) => {
                table.check();
                table.check_times();
            }
            Choice::Third(never) => match *never {},
        }
    }
}

impl Default for Hash {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_map().entries(self).finish()
    }
}

impl<'h> IntoIterator for &'h Hash {
    type Item = (Elem<'h>, Elem<'h>);
    type IntoIter = Iter<'h>;

    fn into_iter(self) -> Iter<'h> {
        self.iter()
    }
}

/// All fields of a hash with their values. See [`Hash::iter`].
pub enum Iter<'h> {
    /// Of a listpack.
    Listpack(listpack::Pairs<'h>),
    /// Of a table.
    Table(table::Iter<'h, Field>),
}

impl<'h> Iterator for Iter<'h> {
    type Item = (Elem<'h>, Elem<'h>);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Listpack(pairs) => pairs.next(),
            Self::Table(fields) => fields.next().map(pair),
        }
    }
}

/// Whether two of the elements are the same string.
pub(crate) fn has_duplicates<'e>(elements: impl Iterator<Item = Elem<'e>>) -> bool {
    let mut seen = Table::new();
    for element in elements {
        let mut text = [0; 24];
        let text = element.to_bytes(&mut text);
        match seen.entry(hash_key(text), text) {
            Entry::Occupied(_) => return true,
            Entry::Vacant(vacant) => vacant.insert(Member::new(text)),
        };
    }
    false
}

fn set_in_listpack(listpack: &mut Listpack, field: &[u8], value: &[u8]) -> bool {
    match listpack.find(field, 1).and_then(|name| listpack.next(name)) {
        Some(existing) => {
            listpack.replace(existing, value);
            false
        }
        None => {
            listpack.append(field);
            listpack.append(value);
            true
        }
    }
}

fn pair(field: &Field) -> (Elem<'_>, Elem<'_>) {
    (Elem::Bytes(field.name()), Elem::Bytes(field.value()))
}

/// More than two entries add to their strings.
const ENTRY_OVERHEAD: usize = 32;

const _: () = assert!(size_of::<Hash>() == 8 && size_of::<Option<Hash>>() == 8);
