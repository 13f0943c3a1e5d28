//! The set object: an intset, a listpack, or a table of [`Member`]s.
//!
//! One pointer of eight bytes; its two lowest bits say which (see [`tagged`](crate::tagged)).
//!
//! Redis (7.2): integers alone are an intset up to its limit, then a table. A first other string
//! makes an intset a listpack if both its limits allow, else a table. A listpack becomes a table at
//! its limits. Nothing turns back by itself.

mod random;
#[cfg(test)]
mod tests;

use std::{fmt, ptr::NonNull};

use rdb::{
    intset::Intset,
    listpack::{self, Elem, Listpack},
};
use resp::num;

use crate::{
    hash::has_duplicates,
    hashing::hash_key,
    table::{self, Entry, Item, Member, Table},
    tagged::{Choice, Guard, Tagged},
};

/// Different strings.
#[repr(transparent)]
#[derive(Clone)]
pub struct Set {
    body: Tagged<Listpack, Table<Member>, Intset>,
}

/// Up to where a set stays an intset or a listpack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `set-max-intset-entries`: members.
    pub max_intset_entries: usize,
    /// `set-max-listpack-entries`: members.
    pub max_listpack_entries: usize,
    /// `set-max-listpack-value`: bytes of a member.
    pub max_listpack_value: usize,
}

/// How a set is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Sorted integers.
    Intset,
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
            Self::Intset => "intset",
            Self::Listpack => "listpack",
            Self::Hashtable => "hashtable",
        }
    }
}

/// A listpack with a member twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DuplicateMember;

impl fmt::Display for DuplicateMember {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a set's listpack has a member twice")
    }
}

impl std::error::Error for DuplicateMember {}

/// What a set is made of, owned.
#[derive(Debug)]
pub enum Parts {
    /// Integers.
    Intset(Intset),
    /// Members in a row.
    Listpack(Listpack),
    /// Members.
    Table(Box<Table<Member>>),
}

impl Set {
    /// An empty set of the kind that suits `member`, the first to come, when `size_hint` are
    /// expected in all.
    #[must_use]
    pub fn for_member(member: &[u8], size_hint: usize, limits: &Limits) -> Self {
        if size_hint <= limits.max_intset_entries && num::parse_i64(member).is_some() {
            Self::intset()
        } else if size_hint <= limits.max_listpack_entries {
            Self::listpack()
        } else {
            Self::table()
        }
    }

    /// An empty intset.
    #[must_use]
    pub fn intset() -> Self {
        Self::from_intset(Intset::new())
    }

    /// An empty listpack.
    #[must_use]
    pub fn listpack() -> Self {
        Self { body: Tagged::thin(Listpack::new()) }
    }

    /// An empty table.
    #[must_use]
    pub fn table() -> Self {
        Self { body: Tagged::boxed(Box::new(Table::new())) }
    }

    /// A set of integers.
    #[must_use]
    pub fn from_intset(intset: Intset) -> Self {
        Self { body: Tagged::third(intset) }
    }

    /// A set of a listpack from outside.
    ///
    /// # Errors
    /// When a member is there twice. It may be empty or over the limits.
    pub fn from_listpack(listpack: Listpack) -> Result<Self, DuplicateMember> {
        if has_duplicates(listpack.iter()) {
            return Err(DuplicateMember);
        }
        Ok(Self { body: Tagged::thin(listpack) })
    }

    /// Number of members.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        match self.body.get() {
            Choice::Thin(listpack) => listpack.len(),
            Choice::Boxed(table) => table.len(),
            Choice::Third(intset) => intset.len(),
        }
    }

    /// Whether there are none.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match self.body.get() {
            Choice::Thin(listpack) => listpack.is_empty(),
            Choice::Boxed(table) => table.is_empty(),
            Choice::Third(intset) => intset.is_empty(),
        }
    }

    /// How the set is kept.
    #[must_use]
    pub fn encoding(&self) -> Encoding {
        match self.body.get() {
            Choice::Thin(_) => Encoding::Listpack,
            Choice::Boxed(_) => Encoding::Hashtable,
            Choice::Third(_) => Encoding::Intset,
        }
    }

    /// The listpack, if that is how it is kept.
    #[must_use]
    pub fn as_listpack(&self) -> Option<&Listpack> {
        match self.body.get() {
            Choice::Thin(listpack) => Some(listpack),
            _ => None,
        }
    }

    /// The intset, if that is how it is kept.
    #[must_use]
    pub fn as_intset(&self) -> Option<Guard<'_, Intset>> {
        match self.body.get() {
            Choice::Third(intset) => Some(intset),
            _ => None,
        }
    }

    /// The table, if that is how it is kept.
    #[must_use]
    pub fn as_table(&self) -> Option<&Table<Member>> {
        match self.body.get() {
            Choice::Boxed(table) => Some(table),
            _ => None,
        }
    }

    /// What it is made of: the members of a big one can be freed elsewhere or bit by bit.
    #[must_use]
    pub fn into_parts(self) -> Parts {
        match self.body.into_inner() {
            Choice::Thin(listpack) => Parts::Listpack(listpack),
            Choice::Boxed(table) => Parts::Table(table),
            Choice::Third(intset) => Parts::Intset(intset),
        }
    }

    /// Whether `member` is in the set.
    #[inline]
    #[must_use]
    pub fn contains(&self, member: &[u8]) -> bool {
        match self.body.get() {
            Choice::Thin(listpack) => listpack.find(member, 0).is_some(),
            Choice::Boxed(table) => table.contains(hash_key(member), member),
            Choice::Third(intset) => num::parse_i64(member).is_some_and(|value| intset.contains(value)),
        }
    }

    /// As [`contains`](Self::contains), for a member of another container.
    #[inline]
    #[must_use]
    pub fn contains_elem(&self, member: Elem<'_>) -> bool {
        match (self.body.get(), member) {
            (Choice::Third(intset), Elem::Int(value)) => intset.contains(value),
            _ => self.contains(member.to_bytes(&mut [0; 24])),
        }
    }

    /// Makes room, by the encoding, for a command that adds `size_hint` members: more than the limit
    /// of a listpack or intset make it a table. Redis: what SADD does with its number of arguments.
    pub fn prepare(&mut self, size_hint: usize, limits: &Limits) {
        let limit = match self.encoding() {
            Encoding::Intset => limits.max_intset_entries,
            Encoding::Listpack => limits.max_listpack_entries,
            Encoding::Hashtable => return,
        };
        if size_hint > limit {
            self.convert_to_table();
        }
    }

    /// Adds `member`; whether it is new.
    pub fn add(&mut self, member: &[u8], limits: &Limits) -> bool {
        match self.body.get_mut() {
            Choice::Boxed(table) => add_to_table(table, member),
            Choice::Thin(listpack) => {
                if listpack.find(member, 0).is_some() {
                    return false;
                }
                if listpack.len() < limits.max_listpack_entries
                    && member.len() <= limits.max_listpack_value
                    && listpack.safe_to_add(member.len())
                {
                    listpack.append(member);
                } else {
                    self.add_converted(member);
                }
                true
            }
            Choice::Third(_) => match num::parse_i64(member) {
                Some(value) => self.add_to_intset(value, limits),
                None => {
                    if self.intset_fits_listpack(member.len(), limits) {
                        self.convert_to_listpack();
                        if let Choice::Thin(listpack) = self.body.get_mut() {
                            listpack.append(member);
                        }
                    } else {
                        self.add_converted(member);
                    }
                    true
                }
            },
        }
    }

    /// Adds a member of another container; whether it is new.
    pub fn add_elem(&mut self, member: Elem<'_>, limits: &Limits) -> bool {
        match (self.body.get(), member) {
            (Choice::Third(_), Elem::Int(value)) => self.add_to_intset(value, limits),
            _ => self.add(member.to_bytes(&mut [0; 24]), limits),
        }
    }

    /// Removes `member`; whether it was there.
    pub fn remove(&mut self, member: &[u8]) -> bool {
        match self.body.get_mut() {
            Choice::Thin(listpack) => match listpack.find(member, 0) {
                Some(at) => {
                    listpack.delete(at);
                    true
                }
                None => false,
            },
            Choice::Boxed(table) => table.remove(hash_key(member), member).is_some(),
            Choice::Third(intset) => match num::parse_i64(member) {
                Some(value) => intset.update(|intset| intset.remove(value)),
                None => false,
            },
        }
    }

    /// Makes it an intset if every member is an integer and they are not too many.
    ///
    /// Redis: what SUNIONSTORE and its kind do with their result when they met only integers.
    pub fn convert_to_intset(&mut self, limits: &Limits) {
        if self.as_intset().is_some() || self.len() > max_intset_entries(limits) {
            return;
        }
        let mut intset = Intset::new();
        for member in self.iter() {
            let Some(value) = member.as_int() else { return };
            intset.insert(value);
        }
        *self = Self::from_intset(intset);
    }

    /// Makes it a listpack, whatever the limits.
    pub fn convert_to_listpack(&mut self) {
        let mut listpack = Listpack::new();
        self.iter().for_each(|member| listpack.append_elem(member));
        self.body = Tagged::thin(listpack);
    }

    /// Makes it a table.
    pub fn convert_to_table(&mut self) {
        if self.as_table().is_some() {
            return;
        }
        let mut table = Table::new();
        for member in self.iter() {
            let member = Member::new(member.to_bytes(&mut [0; 24]));
            table.insert_unique(member.hash(), member);
        }
        self.body = Tagged::boxed(Box::new(table));
    }

    /// Makes it a table if it is over the limits of its encoding: after loading.
    pub fn convert_if_over(&mut self, limits: &Limits) {
        let is_over = match self.body.get() {
            Choice::Thin(listpack) => {
                listpack.len() > limits.max_listpack_entries
                    || listpack.iter().any(|member| member.len_as_text() > limits.max_listpack_value)
            }
            Choice::Boxed(_) => false,
            Choice::Third(intset) => intset.len() > max_intset_entries(limits),
        };
        if is_over {
            self.convert_to_table();
        }
    }

    /// All members, in stored order.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        match self.body.get() {
            Choice::Thin(listpack) => Iter::Listpack(listpack.iter()),
            Choice::Boxed(table) => Iter::Table(table.iter()),
            Choice::Third(intset) => Iter::Intset { intset, next: 0 },
        }
    }

    /// Calls `visit` with members from `cursor` on and answers the next cursor, 0 at the end.
    ///
    /// Intset and listpack are visited whole. A table gives SCAN's guarantee: see [`Table::scan`].
    pub fn scan(&self, cursor: u64, count: usize, mut visit: impl FnMut(Elem<'_>)) -> u64 {
        match self.body.get() {
            Choice::Boxed(table) => table.scan(cursor, count, |member| visit(Elem::Bytes(member.text()))),
            _ => {
                self.iter().for_each(visit);
                0
            }
        }
    }

    /// Bytes allocated for it, beyond its own eight: estimated from `samples` members, 0 for all.
    #[must_use]
    pub fn memory_bytes(&self, samples: usize) -> usize {
        match self.body.get() {
            Choice::Thin(listpack) => listpack.allocated_bytes(),
            Choice::Boxed(table) => {
                let samples = if samples == 0 { table.len() } else { samples };
                size_of::<Table<Member>>() + table.memory_bytes_with(samples, Member::allocated_bytes)
            }
            Choice::Third(intset) => intset.allocated_bytes(),
        }
    }

    /// The word, for whoever keeps it elsewhere. Its bits 2 and 3 are free for tags.
    #[must_use]
    pub fn into_raw(self) -> NonNull<u8> {
        self.body.into_raw()
    }

    /// The set again.
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
                assert!(!has_duplicates(listpack.iter()));
            }
            Choice::Boxed(table) => table.check(),
            Choice::Third(intset) => intset.check(),
        }
    }

    fn add_to_intset(&mut self, value: i64, limits: &Limits) -> bool {
        let Choice::Third(intset) = self.body.get_mut() else {
            return false;
        };
        let (is_new, len) = intset.update(|intset| (intset.insert(value), intset.len()));
        if is_new && len > max_intset_entries(limits) {
            self.convert_to_table();
        }
        is_new
    }

    /// Adds a member, known to be new, that the present encoding cannot hold.
    fn add_converted(&mut self, member: &[u8]) {
        self.convert_to_table();
        if let Choice::Boxed(table) = self.body.get_mut() {
            add_to_table(table, member);
        }
    }

    /// Whether an intset and one more string of `added_len` bytes are within a listpack's limits.
    /// Redis: as if every integer were as long as the longest.
    fn intset_fits_listpack(&self, added_len: usize, limits: &Limits) -> bool {
        let Some(intset) = self.as_intset() else {
            return false;
        };
        let (mut longest, mut total) = (0, 0_usize);
        for value in [intset.min(), intset.max()].into_iter().flatten() {
            let mut text = [0; 24];
            let text = Elem::Int(value).to_bytes(&mut text);
            longest = longest.max(text.len());
            let entries = listpack::entry_bytes(text).saturating_mul(intset.len());
            total = total.max(entries.saturating_add(listpack::HEADER_BYTES + 1));
        }
        intset.len() < limits.max_listpack_entries
            && added_len <= limits.max_listpack_value
            && longest <= limits.max_listpack_value
            && total.saturating_add(added_len) <= listpack::SAFE_BYTES_MAX
    }
}

impl fmt::Debug for Set {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_set().entries(self).finish()
    }
}

impl<'s> IntoIterator for &'s Set {
    type Item = Elem<'s>;
    type IntoIter = Iter<'s>;

    fn into_iter(self) -> Iter<'s> {
        self.iter()
    }
}

/// All members of a set. See [`Set::iter`].
pub enum Iter<'s> {
    /// Of an intset.
    Intset {
        /// What is walked.
        intset: Guard<'s, Intset>,
        /// Index of the next integer.
        next: usize,
    },
    /// Of a listpack.
    Listpack(listpack::Iter<'s>),
    /// Of a table.
    Table(table::Iter<'s, Member>),
}

impl<'s> Iterator for Iter<'s> {
    type Item = Elem<'s>;

    fn next(&mut self) -> Option<Elem<'s>> {
        match self {
            Self::Intset { intset, next } => {
                let value = intset.get(*next)?;
                *next += 1;
                Some(Elem::Int(value))
            }
            Self::Listpack(elements) => elements.next(),
            Self::Table(members) => members.next().map(|member| Elem::Bytes(member.text())),
        }
    }
}

fn add_to_table(table: &mut Table<Member>, member: &[u8]) -> bool {
    match table.entry(hash_key(member), member) {
        Entry::Occupied(_) => false,
        Entry::Vacant(vacant) => {
            vacant.insert(Member::new(member));
            true
        }
    }
}

/// The limit, and the format's.
fn max_intset_entries(limits: &Limits) -> usize {
    limits.max_intset_entries.min(1 << 30)
}

const _: () = assert!(size_of::<Set>() == 8 && size_of::<Option<Set>>() == 8);
