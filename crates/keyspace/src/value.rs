//! Values apart from their keys.

use crate::string::StrRef;
use crate::{Hash, List, Set, Stream, ZSet};

/// An owned value.
pub enum Value {
    /// An integer string.
    Int(i64),
    /// A string; `embstr` when short.
    Str(Vec<u8>),
    /// A string whose encoding is `raw` whatever its length.
    RawStr(Vec<u8>),
    /// List.
    List(List),
    /// Set.
    Set(Set),
    /// Sorted set.
    ZSet(ZSet),
    /// Hash.
    Hash(Hash),
    /// Stream.
    Stream(Stream),
}

/// A borrowed value.
#[derive(Clone, Copy)]
pub enum ValueRef<'a> {
    /// String.
    Str(StrRef<'a>),
    /// List.
    List(&'a List),
    /// Set.
    Set(&'a Set),
    /// Sorted set.
    ZSet(&'a ZSet),
    /// Hash.
    Hash(&'a Hash),
    /// Stream.
    Stream(&'a Stream),
}

/// A value to change in place.
pub enum ValueMut<'a> {
    /// A string: change it through [`crate::Entry::make_buffer`] or [`crate::Entry::int_mut`].
    Str,
    /// List.
    List(&'a mut List),
    /// Set.
    Set(&'a mut Set),
    /// Sorted set.
    ZSet(&'a mut ZSet),
    /// Hash.
    Hash(&'a mut Hash),
    /// Stream.
    Stream(&'a mut Stream),
}

impl ValueRef<'_> {
    /// The name TYPE answers.
    pub fn type_name(&self) -> &'static str {
        match self {
            ValueRef::Str(_) => "string",
            ValueRef::List(_) => "list",
            ValueRef::Set(_) => "set",
            ValueRef::ZSet(_) => "zset",
            ValueRef::Hash(_) => "hash",
            ValueRef::Stream(_) => "stream",
        }
    }

    /// How many allocations freeing the value costs, roughly: what decides whether a background thread does it.
    pub fn free_effort(&self) -> usize {
        match self {
            ValueRef::Str(_) => 1,
            ValueRef::List(list) => list.nodes_len(),
            ValueRef::Set(set) => {
                if set.as_table().is_some() {
                    set.len()
                } else {
                    1
                }
            }
            ValueRef::ZSet(zset) => {
                if zset.as_listpack().is_some() {
                    1
                } else {
                    zset.len()
                }
            }
            ValueRef::Hash(hash) => {
                if hash.as_listpack().is_some() {
                    1
                } else {
                    hash.len()
                }
            }
            ValueRef::Stream(stream) => stream.free_effort(),
        }
    }
}

impl Value {
    /// Whether freeing it may take long enough to leave it to the background thread.
    pub fn is_costly_to_free(&self) -> bool {
        const LAZYFREE_THRESHOLD: usize = 64;
        match self {
            Value::Int(_) => false,
            // Unmapping megabytes takes a while in the kernel.
            Value::Str(bytes) | Value::RawStr(bytes) => bytes.len() > 1 << 20,
            Value::List(list) => ValueRef::List(list).free_effort() > LAZYFREE_THRESHOLD,
            Value::Set(set) => ValueRef::Set(set).free_effort() > LAZYFREE_THRESHOLD,
            Value::ZSet(zset) => ValueRef::ZSet(zset).free_effort() > LAZYFREE_THRESHOLD,
            Value::Hash(hash) => ValueRef::Hash(hash).free_effort() > LAZYFREE_THRESHOLD,
            Value::Stream(stream) => stream.free_effort() > LAZYFREE_THRESHOLD,
        }
    }

    /// A string value as SET stores it: an integer when canonical.
    pub fn from_bytes(bytes: &[u8]) -> Value {
        if bytes.len() <= 20
            && let Some(number) = resp::num::parse_i64(bytes)
        {
            return Value::Int(number);
        }
        Value::Str(bytes.to_vec())
    }
}

impl From<List> for Value {
    fn from(list: List) -> Value {
        Value::List(list)
    }
}

impl From<Set> for Value {
    fn from(set: Set) -> Value {
        Value::Set(set)
    }
}

impl From<ZSet> for Value {
    fn from(zset: ZSet) -> Value {
        Value::ZSet(zset)
    }
}

impl From<Hash> for Value {
    fn from(hash: Hash) -> Value {
        Value::Hash(hash)
    }
}

impl From<Stream> for Value {
    fn from(stream: Stream) -> Value {
        Value::Stream(stream)
    }
}
