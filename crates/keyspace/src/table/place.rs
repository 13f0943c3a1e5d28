//! Places: an item found once, then changed, replaced or removed without looking for it again.

use super::{Item, Table, segment::Spot};

/// The place of an item in a table.
pub struct Place<'t, T: Item> {
    table: &'t mut Table<T>,
    segment: usize,
    spot: Spot,
}

impl<'t, T: Item> Place<'t, T> {
    #[inline]
    pub(super) fn new(table: &'t mut Table<T>, segment: usize, spot: Spot) -> Self {
        Self { table, segment, spot }
    }

    /// The item.
    #[inline]
    #[must_use]
    pub fn get(&self) -> &T {
        self.table.array(self.segment).buckets()[self.spot.bucket].item(self.spot.lane)
    }

    /// The item, for as long as the table was borrowed.
    #[inline]
    #[must_use]
    pub fn into_ref(self) -> &'t T {
        self.table.array(self.segment).buckets()[self.spot.bucket].item(self.spot.lane)
    }

    /// The item, to change what it owns. Its word's 16 high bits belong to the table: an item that
    /// becomes another word goes through [`update`](Self::update) or [`replace`](Self::replace),
    /// never through an assignment, or it will not be found again.
    #[inline]
    #[must_use]
    pub fn get_mut(&mut self) -> &mut T {
        self.table.array_mut(self.segment).0.buckets_mut()[self.spot.bucket].item_mut(self.spot.lane)
    }

    /// As [`get_mut`](Self::get_mut), for as long as the table was borrowed.
    #[inline]
    #[must_use]
    pub fn into_mut(self) -> &'t mut T {
        self.table.array_mut(self.segment).0.buckets_mut()[self.spot.bucket].item_mut(self.spot.lane)
    }

    /// Lends the item to `change`, which may make it another word (say, after a reallocation). The
    /// key stays the same.
    #[inline]
    pub fn update<R>(&mut self, change: impl FnOnce(&mut T) -> R) -> R {
        self.table.array_mut(self.segment).0.buckets_mut()[self.spot.bucket].update(self.spot.lane, change)
    }

    /// Puts in `item`, of the same key, and gives back the one that was there.
    #[inline]
    pub fn replace(&mut self, item: T) -> T {
        debug_assert!(self.get().key() == item.key(), "a place belongs to a key");
        self.table.array_mut(self.segment).0.buckets_mut()[self.spot.bucket].replace(self.spot.lane, item)
    }

    /// Takes the item out.
    #[inline]
    pub fn remove(self) -> T {
        self.table.remove_at(self.segment, self.spot)
    }
}

/// What [`Table::entry`] found.
pub enum Entry<'t, T: Item> {
    /// The key's item is here.
    Occupied(Place<'t, T>),
    /// The key has no item.
    Vacant(Vacant<'t, T>),
}

/// A key's place without an item.
pub struct Vacant<'t, T: Item> {
    table: &'t mut Table<T>,
    hash: u64,
}

impl<'t, T: Item> Vacant<'t, T> {
    #[inline]
    pub(super) fn new(table: &'t mut Table<T>, hash: u64) -> Self {
        Self { table, hash }
    }

    /// Puts in the key's item. No second look-up: the first free lane is taken.
    #[inline]
    pub fn insert(self, item: T) -> Place<'t, T> {
        self.table.insert_unique(self.hash, item)
    }
}
