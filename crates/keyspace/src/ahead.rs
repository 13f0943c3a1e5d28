//! Asking for the memory of an object's elements before commands look them up.
//!
//! A pipeline that fills one large set, hash or sorted set misses the cache once for a bucket and once for an element, in
//! each command anew. Asked for together, a group of commands waits about once.

use crate::{
    entry::Entry,
    table::{Field, Member, Table},
    value::ValueRef,
    zset::ZSet,
};

/// The elements of an object that keeps them in a table.
pub enum Elements<'a> {
    /// Members of a set.
    Set(&'a Table<Member>),
    /// Fields of a hash.
    Hash(&'a Table<Field>),
    /// Members of a sorted set.
    ZSet(&'a ZSet),
}

impl<'a> Elements<'a> {
    /// The elements of `entry`'s value, if it is an object with a table.
    #[must_use]
    pub fn of(entry: &'a Entry) -> Option<Self> {
        match entry.value() {
            ValueRef::Set(set) => set.as_table().map(Self::Set),
            ValueRef::Hash(hash) => hash.as_table().map(Self::Hash),
            ValueRef::ZSet(zset) => zset.is_big().then_some(Self::ZSet(zset)),
            _ => None,
        }
    }

    /// Asks for the bucket of the element with this hash ([`crate::hashing::hash_key`]).
    #[inline]
    pub fn prefetch_bucket(&self, hash: u64) {
        match self {
            Self::Set(table) => table.prefetch_bucket(hash),
            Self::Hash(table) => table.prefetch_bucket(hash),
            Self::ZSet(zset) => zset.prefetch_bucket(hash),
        }
    }

    /// Asks for the element itself; worth it a while after [`Elements::prefetch_bucket`], which brings what this reads.
    #[inline]
    pub fn prefetch_items(&self, hash: u64) {
        match self {
            Self::Set(table) => table.prefetch_items(hash),
            Self::Hash(table) => table.prefetch_items(hash),
            Self::ZSet(zset) => zset.prefetch_items(hash),
        }
    }
}
