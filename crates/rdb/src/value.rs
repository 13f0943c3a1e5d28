//! Whole values in RDB's bytes, without keys and expiry.
//!
//! Writing borrows: packed containers are written as the blobs they are, big containers element by element
//! (`begin_set(len)`, then `len` × `string`), so that nothing is copied on the way. Reading gives a [`Decoded`]: the
//! validated packed container, or an iterator that the keyspace builds its own container from. Old encodings (ziplist,
//! zipmap) come out as listpacks, as Redis 7 loads them.
//!
//! | written by 7.2 | value |
//! |---|---|
//! | 0  | string |
//! | 18 | list: count, then per node 1 and a plain string, or 2 and a listpack |
//! | 11, 20, 2 | set: intset; listpack; count and members |
//! | 17, 5 | sorted set: listpack of members and scores, ascending; count, then member and double, descending |
//! | 16, 4 | hash: listpack of fields and values; count, then field and value |
//! | 24 | hash with fields that end (7.4's): earliest time, count, then time, field and value |
//! | 21 | stream: blocks of entries, counters, consumer groups (see [`StreamReader`]) |

mod decode;
mod packed;
mod skip;
mod stream;
#[cfg(test)]
mod tests;

pub use decode::{Decoded, Fields, ListNode, ListNodes, Members, ScoredMembers, Scrutiny, TimedFields, decode};
pub use skip::{module_name, skip, skip_module_parts};
pub use stream::{RawStreamId, StreamForm, StreamReader};

use crate::codec::{DecodeError, Writer};
use crate::intset::Intset;
use crate::listpack::{Elem, Listpack};

/// The type byte of a value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum ValueType {
    /// A string.
    String = 0,
    /// A list as its elements; before 3.2, for long lists.
    List = 1,
    /// A set as its members.
    Set = 2,
    /// A sorted set with scores as text; before 4.0.
    Zset = 3,
    /// A hash as its fields and values.
    Hash = 4,
    /// A sorted set with binary scores.
    Zset2 = 5,
    /// A module's value of 4.0's release candidates.
    ModulePreGa = 6,
    /// A module's value.
    Module2 = 7,
    /// A hash as a zipmap; before 2.6.
    HashZipmap = 9,
    /// A list as a ziplist; before 3.2.
    ListZiplist = 10,
    /// A set as an intset.
    SetIntset = 11,
    /// A sorted set as a ziplist; before 7.0.
    ZsetZiplist = 12,
    /// A hash as a ziplist; before 7.0.
    HashZiplist = 13,
    /// A list as ziplists; before 7.0.
    ListQuicklist = 14,
    /// A stream; before 7.0.
    StreamListpacks = 15,
    /// A hash as a listpack.
    HashListpack = 16,
    /// A sorted set as a listpack.
    ZsetListpack = 17,
    /// A list as listpacks and plain strings.
    ListQuicklist2 = 18,
    /// A stream of 7.0.
    StreamListpacks2 = 19,
    /// A set as a listpack; since 7.2.
    SetListpack = 20,
    /// A stream of 7.2.
    StreamListpacks3 = 21,
    /// A hash with times at which fields end; since 7.4.
    HashTimed = 24,
    /// The same as a listpack; since 7.4.
    HashTimedListpack = 25,
}

impl ValueType {
    /// The type that a byte stands for.
    pub fn from_byte(byte: u8) -> Result<Self, DecodeError> {
        Ok(match byte {
            0 => Self::String,
            1 => Self::List,
            2 => Self::Set,
            3 => Self::Zset,
            4 => Self::Hash,
            5 => Self::Zset2,
            6 => Self::ModulePreGa,
            7 => Self::Module2,
            9 => Self::HashZipmap,
            10 => Self::ListZiplist,
            11 => Self::SetIntset,
            12 => Self::ZsetZiplist,
            13 => Self::HashZiplist,
            14 => Self::ListQuicklist,
            15 => Self::StreamListpacks,
            16 => Self::HashListpack,
            17 => Self::ZsetListpack,
            18 => Self::ListQuicklist2,
            19 => Self::StreamListpacks2,
            20 => Self::SetListpack,
            21 => Self::StreamListpacks3,
            24 => Self::HashTimed,
            25 => Self::HashTimedListpack,
            _ => return Err(DecodeError::UnknownType(byte)),
        })
    }

    /// The byte.
    pub fn byte(self) -> u8 {
        self as u8
    }
}

/// How a list node's content is stored, in type 18.
pub(crate) const NODE_PLAIN: u64 = 1;
/// See [`NODE_PLAIN`].
pub(crate) const NODE_PACKED: u64 = 2;

/// Whole values. Each begins after its type byte ([`Writer::value_type`]), which RDB files put before the key.
impl Writer<'_> {
    /// The type byte.
    pub fn value_type(&mut self, value_type: ValueType) {
        self.byte(value_type.byte());
    }

    /// Begins a list of `nodes` nodes ([`ValueType::ListQuicklist2`]): as many [`Self::list_packed`] and
    /// [`Self::list_plain`] must follow.
    pub fn begin_list(&mut self, nodes: usize) {
        self.length_of(nodes);
    }

    /// A list node that holds several elements.
    pub fn list_packed(&mut self, node: &Listpack) {
        self.length(NODE_PACKED);
        self.string(node.as_bytes());
    }

    /// A list node that is one big element.
    pub fn list_plain(&mut self, element: &[u8]) {
        self.length(NODE_PLAIN);
        self.string(element);
    }

    /// Begins a set of `members` members ([`ValueType::Set`]): as many [`Self::string`], [`Self::int`] or
    /// [`Self::elem`] must follow.
    pub fn begin_set(&mut self, members: usize) {
        self.length_of(members);
    }

    /// Begins a sorted set of `members` members ([`ValueType::Zset2`]): as many [`Self::scored_member`] must follow.
    /// Redis writes them from the highest score down, which makes loading insert at the head.
    pub fn begin_zset(&mut self, members: usize) {
        self.length_of(members);
    }

    /// A member with its score.
    pub fn scored_member(&mut self, member: &[u8], score: f64) {
        self.string(member);
        self.double(score);
    }

    /// Begins a hash of `fields` fields ([`ValueType::Hash`]): as many [`Self::field`] must follow.
    pub fn begin_hash(&mut self, fields: usize) {
        self.length_of(fields);
    }

    /// Begins a hash of `fields` fields some of which end ([`ValueType::HashTimed`]), the first of them at
    /// `earliest_ms`: as many [`Self::timed_field`] must follow.
    pub fn begin_timed_hash(&mut self, fields: usize, earliest_ms: i64) {
        self.raw(&earliest_ms.to_le_bytes());
        self.length_of(fields);
    }

    /// A field with its value and when it ends: one more than the time after the earliest, 0 for never.
    pub fn timed_field(&mut self, at_ms: Option<i64>, earliest_ms: i64, field: Elem<'_>, value: Elem<'_>) {
        self.length(at_ms.map_or(0, |at_ms| at_ms.abs_diff(earliest_ms) + 1));
        self.field(field, value);
    }

    /// A field with its value.
    pub fn field(&mut self, field: Elem<'_>, value: Elem<'_>) {
        self.elem(field);
        self.elem(value);
    }

    /// A container that is one listpack: [`ValueType::SetListpack`], [`ValueType::ZsetListpack`],
    /// [`ValueType::HashListpack`].
    pub fn listpack(&mut self, listpack: &Listpack) {
        self.string(listpack.as_bytes());
    }

    /// A set of integers: [`ValueType::SetIntset`].
    pub fn intset(&mut self, intset: &Intset) {
        self.string(intset.as_bytes());
    }
}
