//! Values as RDB's bytes, and back: DUMP, RESTORE, snapshots, migration.
//!
//! [`rdb::value`] knows the bytes; here they meet the containers. A value is written in its own encoding, and read into
//! the encoding that a server with these limits would give it.

use crate::list::{ListBuilder, ListLimits, NodeBytes};
use crate::value::{Value, ValueRef};
use crate::zset::{ZSetBuilder, ZSetLimits};
use crate::{Hash, List, Set, StrRef, ZSet, hash, set};
use rdb::codec::{DecodeError, RDB_VERSION, Writer};
use rdb::listpack::{Elem, Listpack};
use rdb::value::{Decoded, Fields, ListNode, ListNodes, Members, ScoredMembers, StreamForm, TimedFields, ValueType};

mod stream;

/// A list node that is one big element, in lists of type 18.
const PLAIN_NODE: u64 = 1;
/// A list node that is a listpack.
const PACKED_NODE: u64 = 2;

/// Up to where containers stay packed when they are read.
#[derive(Clone, Copy, Debug)]
pub struct ValueLimits<'a> {
    /// Hashes.
    pub hash: &'a hash::Limits,
    /// Sets.
    pub set: &'a set::Limits,
    /// Sorted sets.
    pub zset: &'a ZSetLimits,
    /// Lists.
    pub list: &'a ListLimits,
}

/// The newest version of the RDB format that Redis 7.0 reads: sets are not packed as listpacks, and consumers of streams
/// have no active time.
pub const VERSION_7_0: u16 = 10;

/// The type byte under which [`write_value`] writes a value.
pub fn value_type(value: ValueRef<'_>) -> ValueType {
    value_type_of_version(value, RDB_VERSION)
}

/// The type byte under which [`write_value_of_version`] writes a value.
pub fn value_type_of_version(value: ValueRef<'_>, version: u16) -> ValueType {
    match value {
        ValueRef::Set(set) if set.as_listpack().is_some() && version <= VERSION_7_0 => ValueType::Set,
        ValueRef::Stream(_) if version <= VERSION_7_0 => ValueType::StreamListpacks2,
        ValueRef::Str(_) => ValueType::String,
        ValueRef::List(_) => ValueType::ListQuicklist2,
        ValueRef::Set(set) if set.as_intset().is_some() => ValueType::SetIntset,
        ValueRef::Set(set) if set.as_listpack().is_some() => ValueType::SetListpack,
        ValueRef::Set(_) => ValueType::Set,
        ValueRef::ZSet(zset) if zset.as_listpack().is_some() => ValueType::ZsetListpack,
        ValueRef::ZSet(_) => ValueType::Zset2,
        ValueRef::Hash(hash) if hash.as_listpack().is_some() => ValueType::HashListpack,
        // Who reads an older version cannot be told of times; their fields go when the primary says so.
        ValueRef::Hash(hash) if hash.times_len() > 0 && version > VERSION_7_0 => ValueType::HashTimed,
        ValueRef::Hash(_) => ValueType::Hash,
        ValueRef::Stream(_) => ValueType::StreamListpacks3,
    }
}

/// Writes a value without its type byte.
pub fn write_value(writer: &mut Writer<'_>, value: ValueRef<'_>) {
    write_value_of_version(writer, value, RDB_VERSION);
}

/// As [`write_value`], for readers of an older version of the format: [`VERSION_7_0`] at least.
pub fn write_value_of_version(writer: &mut Writer<'_>, value: ValueRef<'_>, version: u16) {
    match value {
        ValueRef::Str(StrRef::Int(number)) => writer.int(number),
        ValueRef::Str(StrRef::Bytes(bytes)) => writer.string(bytes),
        ValueRef::List(list) => write_list(writer, list),
        ValueRef::Set(set) => write_set(writer, set, version),
        ValueRef::ZSet(zset) => write_zset(writer, zset),
        ValueRef::Hash(hash) if hash.times_len() > 0 && version > VERSION_7_0 => write_timed_hash(writer, hash),
        ValueRef::Hash(hash) => write_hash(writer, hash),
        ValueRef::Stream(value) => {
            let form = if version <= VERSION_7_0 { StreamForm::V2 } else { StreamForm::V3 };
            stream::write(writer, value, form);
        }
    }
}

fn write_list(writer: &mut Writer<'_>, list: &List) {
    writer.begin_list(list.nodes_len());
    for node in list.nodes() {
        let (kind, bytes) = match node {
            NodeBytes::Plain(bytes) => (PLAIN_NODE, bytes),
            NodeBytes::Packed(bytes) => (PACKED_NODE, bytes),
        };
        writer.length(kind);
        writer.string(bytes);
    }
}

fn write_set(writer: &mut Writer<'_>, set: &Set, version: u16) {
    if let Some(intset) = set.as_intset() {
        writer.intset(&intset);
    } else if let Some(listpack) = set.as_listpack()
        && version > VERSION_7_0
    {
        writer.listpack(listpack);
    } else {
        writer.begin_set(set.len());
        set.iter().for_each(|member| writer.elem(member));
    }
}

fn write_zset(writer: &mut Writer<'_>, zset: &ZSet) {
    if let Some(listpack) = zset.as_listpack() {
        return writer.listpack(listpack);
    }
    writer.begin_zset(zset.len());
    for (member, score) in zset.range_back(0..zset.len()) {
        writer.scored_member(member.to_bytes(&mut [0; 24]), score);
    }
}

fn write_hash(writer: &mut Writer<'_>, hash: &Hash) {
    if let Some(listpack) = hash.as_listpack() {
        return writer.listpack(listpack);
    }
    writer.begin_hash(hash.len());
    for (field, value) in hash.iter() {
        writer.field(field, value);
    }
}

fn write_timed_hash(writer: &mut Writer<'_>, hash: &Hash) {
    let earliest_ms = hash.earliest_ms().unwrap_or_default();
    writer.begin_timed_hash(hash.len(), earliest_ms);
    for (field, value) in hash.iter() {
        let at_ms = hash.time_of(field.to_bytes(&mut [0; 24]));
        writer.timed_field(at_ms, earliest_ms, field, value);
    }
}

/// Builds a value from what was decoded.
///
/// # Errors
/// The bytes break their format, or a member or field comes twice.
pub fn read_value(decoded: Decoded<'_, '_>, limits: ValueLimits<'_>) -> Result<Value, DecodeError> {
    Ok(match decoded {
        Decoded::String(string) => match string.as_elem() {
            Elem::Int(number) => Value::Int(number),
            Elem::Bytes(bytes) => Value::from_bytes(bytes),
        },
        Decoded::ListElements(elements) => Value::List(read_elements(elements, limits.list)?),
        Decoded::ListNodes(nodes) => Value::List(read_nodes(nodes, limits.list)?),
        Decoded::SetIntset(intset) if intset.is_empty() => return Err(DecodeError::Empty),
        Decoded::SetIntset(intset) => read_packed_set(Set::from_intset(intset), limits.set),
        Decoded::SetListpack(listpack) => {
            let set = Set::from_listpack(listpack).map_err(|_| DecodeError::Duplicate("set"))?;
            read_packed_set(set, limits.set)
        }
        Decoded::SetMembers(members) => Value::Set(read_members(members, limits.set)?),
        Decoded::ZsetListpack(listpack) => Value::ZSet(
            ZSet::from_listpack(listpack, limits.zset).map_err(|_| DecodeError::Malformed("sorted set listpack"))?,
        ),
        Decoded::ZsetMembers(members) => Value::ZSet(read_scored(members, limits.zset)?),
        Decoded::HashListpack(listpack) => {
            let mut hash = Hash::from_listpack(listpack).map_err(|_| DecodeError::Duplicate("hash"))?;
            hash.convert_if_over(limits.hash);
            Value::Hash(hash)
        }
        Decoded::HashFields(fields) => Value::Hash(read_fields(fields, limits.hash)?),
        Decoded::HashTimedFields(fields) => Value::Hash(read_timed(fields, limits.hash)?),
        Decoded::HashTimedListpack(listpack) => Value::Hash(read_timed_listpack(&listpack, limits.hash)?),
        Decoded::Stream(reader) => Value::Stream(stream::read(reader)?),
    })
}

fn read_packed_set(mut set: Set, limits: &set::Limits) -> Value {
    set.convert_if_over(limits);
    Value::Set(set)
}

fn read_elements(elements: Members<'_, '_>, limits: &ListLimits) -> Result<List, DecodeError> {
    let mut builder = ListBuilder::new(*limits);
    for element in elements {
        builder.push_back(element?.to_bytes(&mut [0; 24]));
    }
    Ok(builder.finish())
}

fn read_nodes(nodes: ListNodes<'_, '_>, limits: &ListLimits) -> Result<List, DecodeError> {
    let mut builder = ListBuilder::new(*limits);
    for node in nodes {
        match node? {
            ListNode::Plain(element) => builder.append_plain(element.to_bytes(&mut [0; 24])),
            ListNode::Packed(listpack) => builder.append_listpack(listpack),
        }
    }
    Ok(builder.finish())
}

fn read_members(members: Members<'_, '_>, limits: &set::Limits) -> Result<Set, DecodeError> {
    // Redis: more than an intset may hold is a table from the start.
    let is_big = members.declared_len() > limits.max_intset_entries as u64;
    let mut set = if is_big { Set::table() } else { Set::intset() };
    for member in members {
        if !set.add(member?.to_bytes(&mut [0; 24]), limits) {
            return Err(DecodeError::Duplicate("set"));
        }
    }
    Ok(set)
}

fn read_scored(members: ScoredMembers<'_, '_>, limits: &ZSetLimits) -> Result<ZSet, DecodeError> {
    let mut builder = ZSetBuilder::new();
    for member in members {
        let (member, score) = member?;
        if !builder.push(member.to_bytes(&mut [0; 24]), score) {
            return Err(DecodeError::Duplicate("sorted set"));
        }
    }
    Ok(builder.finish(limits))
}

fn read_fields(fields: Fields<'_, '_>, limits: &hash::Limits) -> Result<Hash, DecodeError> {
    let mut hash = Hash::new();
    if fields.declared_len() > limits.max_listpack_entries as u64 {
        hash.convert();
    }
    for field in fields {
        let (field, value) = field?;
        if !hash.set(field.to_bytes(&mut [0; 24]), value.to_bytes(&mut [0; 24]), limits) {
            return Err(DecodeError::Duplicate("hash"));
        }
    }
    Ok(hash)
}

fn read_timed(fields: TimedFields<'_, '_>, limits: &hash::Limits) -> Result<Hash, DecodeError> {
    let mut hash = Hash::new();
    if fields.declared_len() > limits.max_listpack_entries as u64 {
        hash.convert();
    }
    for field in fields {
        let (at_ms, field, value) = field?;
        let (field, value) = (field.to_bytes(&mut [0; 24]).to_vec(), value.to_bytes(&mut [0; 24]).to_vec());
        add_timed(&mut hash, &field, &value, at_ms, limits)?;
    }
    Ok(hash)
}

/// Field, value and time by turns; 0: no time.
fn read_timed_listpack(listpack: &Listpack, limits: &hash::Limits) -> Result<Hash, DecodeError> {
    let mut hash = Hash::new();
    let mut elements = listpack.iter();
    while let (Some(field), Some(value), Some(time)) = (elements.next(), elements.next(), elements.next()) {
        let at_ms = time.as_int().filter(|at_ms| *at_ms >= 0).ok_or(DecodeError::Malformed("time of a field"))?;
        let (field, value) = (field.to_bytes(&mut [0; 24]).to_vec(), value.to_bytes(&mut [0; 24]).to_vec());
        add_timed(&mut hash, &field, &value, (at_ms > 0).then_some(at_ms), limits)?;
    }
    Ok(hash)
}

fn add_timed(
    hash: &mut Hash,
    field: &[u8],
    value: &[u8],
    at_ms: Option<i64>,
    limits: &hash::Limits,
) -> Result<(), DecodeError> {
    if !hash.set(field, value, limits) {
        return Err(DecodeError::Duplicate("hash"));
    }
    if at_ms.is_some() {
        hash.set_time(field, at_ms);
    }
    Ok(())
}
