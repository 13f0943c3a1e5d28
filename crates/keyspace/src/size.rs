//! How much memory a key takes: MEMORY USAGE, and what eviction and statistics ask.

use crate::entry::{Entry, Kind};
use crate::value::ValueRef;

/// Bytes of a table's cell for one entry.
const CELL_BYTES: usize = 8;

impl Entry {
    /// Bytes that the key and its value take, with the entry's cell in its table. Of big hashes and sets `samples`
    /// elements are looked at (0: all) and the rest is taken to be alike.
    pub fn memory_bytes(&self, samples: usize) -> usize {
        let value = match self.value() {
            ValueRef::Str(string) if self.kind() == Kind::Buffer => {
                size_of::<Vec<u8>>() + rdb::size_class::round_up(string.len())
            }
            ValueRef::Str(_) => 0,
            ValueRef::List(list) => list.memory_bytes(),
            ValueRef::Set(set) => set.memory_bytes(samples),
            ValueRef::ZSet(zset) => zset.memory_bytes(),
            ValueRef::Hash(hash) => hash.memory_bytes(samples),
            ValueRef::Stream(stream) => stream.memory_bytes(),
        };
        CELL_BYTES + self.block_bytes() + value
    }

    /// The name of the value's encoding, as OBJECT ENCODING tells it.
    pub fn encoding(&self) -> &'static str {
        match (self.kind(), self.value()) {
            (Kind::Int, _) => "int",
            (Kind::Embstr, _) => "embstr",
            (_, ValueRef::Str(_)) => "raw",
            (_, ValueRef::List(list)) => list.encoding(),
            (_, ValueRef::Set(set)) => set.encoding().name(),
            (_, ValueRef::ZSet(zset)) => zset.encoding(),
            (_, ValueRef::Hash(hash)) => hash.encoding().name(),
            (_, ValueRef::Stream(_)) => "stream",
        }
    }

    /// A copy of the value, in the same encoding.
    pub fn clone_value(&self) -> crate::Value {
        use crate::{StrRef, Value};
        match self.value() {
            ValueRef::Str(StrRef::Int(number)) => Value::Int(number),
            ValueRef::Str(StrRef::Bytes(bytes)) if self.kind() == Kind::Embstr => Value::Str(bytes.to_vec()),
            ValueRef::Str(StrRef::Bytes(bytes)) => Value::RawStr(bytes.to_vec()),
            ValueRef::List(list) => Value::List(list.clone()),
            ValueRef::Set(set) => Value::Set(set.clone()),
            ValueRef::ZSet(zset) => Value::ZSet(zset.clone()),
            ValueRef::Hash(hash) => Value::Hash(hash.clone()),
            ValueRef::Stream(stream) => Value::Stream(stream.clone()),
        }
    }
}
