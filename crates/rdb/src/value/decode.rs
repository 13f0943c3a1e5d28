//! From RDB's bytes to a packed container or an iterator of elements.

use super::packed::{check_groups, check_scores};
use super::{NODE_PACKED, NODE_PLAIN, StreamForm, StreamReader, ValueType};
use crate::codec::{DecodeError, Reader, StringValue};
use crate::intset::Intset;
use crate::listpack::Listpack;
use crate::ziplist::Ziplist;
use crate::zipmap::Zipmap;

/// How much of a packed container is checked beyond being well-formed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scrutiny {
    /// Duplicates, order and scores too: for payloads from clients.
    Full,
    /// Only the blob: for files that this server wrote, whose checksum holds.
    Structure,
}

/// A decoded value: `'a` is the life of the bytes, `'r` that of the reader's borrow.
///
/// Iterators give an error at most once and then end; a value is whole only if its iterator ended without one. Their
/// elements are unchecked against duplicates: who inserts them sees those.
#[derive(Debug)]
pub enum Decoded<'r, 'a> {
    /// A string.
    String(StringValue<'a>),
    /// A list as its elements.
    ListElements(Members<'r, 'a>),
    /// A list as packed nodes and big elements.
    ListNodes(ListNodes<'r, 'a>),
    /// A set of integers.
    SetIntset(Intset),
    /// A set as a listpack of its members; not empty.
    SetListpack(Listpack),
    /// A set as its members.
    SetMembers(Members<'r, 'a>),
    /// A sorted set as a listpack of members and scores; not empty.
    ZsetListpack(Listpack),
    /// A sorted set as its members and scores.
    ZsetMembers(ScoredMembers<'r, 'a>),
    /// A hash as a listpack of fields and values; not empty.
    HashListpack(Listpack),
    /// A hash as its fields and values.
    HashFields(Fields<'r, 'a>),
    /// A hash as its fields with values and times.
    HashTimedFields(TimedFields<'r, 'a>),
    /// A hash as a listpack of fields, values and times (0: none); not empty.
    HashTimedListpack(Listpack),
    /// A stream: its parts are read one after the other.
    Stream(StreamReader<'r, 'a>),
}

/// Decodes one value of type `value_type`. Containers that are not packed are read while their iterator runs: `reader`
/// stands behind the value once it has ended.
pub fn decode<'r, 'a>(
    value_type: ValueType,
    reader: &'r mut Reader<'a>,
    scrutiny: Scrutiny,
) -> Result<Decoded<'r, 'a>, DecodeError> {
    let full = scrutiny == Scrutiny::Full;
    Ok(match value_type {
        ValueType::String => Decoded::String(reader.string()?),
        ValueType::List => Decoded::ListElements(Members::new(reader)?),
        ValueType::Set => Decoded::SetMembers(Members::new(reader)?),
        ValueType::Zset => Decoded::ZsetMembers(ScoredMembers { strings: Members::new(reader)?, text: true }),
        ValueType::Zset2 => Decoded::ZsetMembers(ScoredMembers { strings: Members::new(reader)?, text: false }),
        ValueType::Hash => Decoded::HashFields(Fields { strings: Members::new(reader)? }),
        ValueType::HashTimed => {
            let earliest_ms = reader.u64_le()?;
            Decoded::HashTimedFields(TimedFields { strings: Members::new(reader)?, earliest_ms })
        }
        ValueType::HashTimedListpack => {
            reader.u64_le()?;
            let listpack = read_listpack(reader)?;
            check_groups(&listpack, 3, "hash listpack")?;
            Decoded::HashTimedListpack(listpack)
        }
        ValueType::ListQuicklist2 => Decoded::ListNodes(ListNodes::new(reader, NodeForm::Quicklist2)?),
        ValueType::ListQuicklist => Decoded::ListNodes(ListNodes::new(reader, NodeForm::Quicklist)?),
        ValueType::ListZiplist => {
            Decoded::ListNodes(ListNodes { reader, left: 1, form: NodeForm::Quicklist, empty: true })
        }
        ValueType::SetIntset => {
            let blob = reader.string()?;
            let intset =
                Intset::from_bytes(blob.to_bytes(&mut [0; 24])).map_err(|_| DecodeError::Malformed("intset"))?;
            Decoded::SetIntset(intset)
        }
        ValueType::SetListpack => {
            let listpack = read_listpack(reader)?;
            if full {
                check_groups(&listpack, 1, "set listpack")?;
            }
            Decoded::SetListpack(listpack)
        }
        ValueType::ZsetListpack => Decoded::ZsetListpack(checked_zset(read_listpack(reader)?, full)?),
        ValueType::ZsetZiplist => Decoded::ZsetListpack(checked_zset(read_ziplist(reader)?, true)?),
        ValueType::HashListpack => Decoded::HashListpack(checked_hash(read_listpack(reader)?, full)?),
        ValueType::HashZiplist => Decoded::HashListpack(checked_hash(read_ziplist(reader)?, true)?),
        ValueType::HashZipmap => Decoded::HashListpack(checked_hash(read_zipmap(reader)?, true)?),
        ValueType::StreamListpacks => Decoded::Stream(StreamReader::new(reader, StreamForm::V1)),
        ValueType::StreamListpacks2 => Decoded::Stream(StreamReader::new(reader, StreamForm::V2)),
        ValueType::StreamListpacks3 => Decoded::Stream(StreamReader::new(reader, StreamForm::V3)),
        ValueType::ModulePreGa | ValueType::Module2 => return Err(DecodeError::Unsupported(value_type)),
    })
}

fn checked_zset(listpack: Listpack, full: bool) -> Result<Listpack, DecodeError> {
    if full {
        check_groups(&listpack, 2, "sorted set listpack")?;
        check_scores(&listpack)?;
    } else {
        check_even(&listpack)?;
    }
    Ok(listpack)
}

fn checked_hash(listpack: Listpack, full: bool) -> Result<Listpack, DecodeError> {
    if full {
        check_groups(&listpack, 2, "hash listpack")?;
    } else {
        check_even(&listpack)?;
    }
    Ok(listpack)
}

fn check_even(listpack: &Listpack) -> Result<(), DecodeError> {
    if listpack.len().is_multiple_of(2) { Ok(()) } else { Err(DecodeError::Malformed("listpack of pairs")) }
}

fn not_empty(listpack: Listpack) -> Result<Listpack, DecodeError> {
    if listpack.is_empty() { Err(DecodeError::Empty) } else { Ok(listpack) }
}

fn to_listpack(blob: &StringValue<'_>) -> Result<Listpack, DecodeError> {
    Listpack::from_bytes(blob.to_bytes(&mut [0; 24])).map_err(|_| DecodeError::Malformed("listpack"))
}

fn ziplist_to_listpack(blob: &StringValue<'_>) -> Result<Listpack, DecodeError> {
    Ziplist::parse(blob.to_bytes(&mut [0; 24]))
        .and_then(|ziplist| ziplist.to_listpack())
        .map_err(|_| DecodeError::Malformed("ziplist"))
}

fn read_listpack(reader: &mut Reader<'_>) -> Result<Listpack, DecodeError> {
    not_empty(to_listpack(&reader.string()?)?)
}

fn read_ziplist(reader: &mut Reader<'_>) -> Result<Listpack, DecodeError> {
    not_empty(ziplist_to_listpack(&reader.string()?)?)
}

fn read_zipmap(reader: &mut Reader<'_>) -> Result<Listpack, DecodeError> {
    let blob = reader.string()?;
    Zipmap::parse(blob.to_bytes(&mut [0; 24]))
        .and_then(|zipmap| zipmap.to_listpack())
        .map_err(|_| DecodeError::Malformed("zipmap"))
}

/// Strings behind a count.
#[derive(Debug)]
pub struct Members<'r, 'a> {
    reader: &'r mut Reader<'a>,
    left: u64,
}

impl<'r, 'a> Members<'r, 'a> {
    fn new(reader: &'r mut Reader<'a>) -> Result<Self, DecodeError> {
        match reader.length()? {
            0 => Err(DecodeError::Empty),
            left => Ok(Self { reader, left }),
        }
    }

    /// How many elements the bytes claim to hold still. Choose an encoding by it, never size an allocation by it.
    pub fn declared_len(&self) -> u64 {
        self.left
    }

    /// Reads one element with `read`; ends the iteration at an error.
    fn step<T>(
        &mut self,
        read: impl FnOnce(&mut Reader<'a>) -> Result<T, DecodeError>,
    ) -> Option<Result<T, DecodeError>> {
        self.left = self.left.checked_sub(1)?;
        let result = read(self.reader);
        if result.is_err() {
            self.left = 0;
        }
        Some(result)
    }
}

impl<'a> Iterator for Members<'_, 'a> {
    type Item = Result<StringValue<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(Reader::string)
    }
}

/// Members of a sorted set with their scores, in stored order.
#[derive(Debug)]
pub struct ScoredMembers<'r, 'a> {
    strings: Members<'r, 'a>,
    /// Scores are text (before RDB 8).
    text: bool,
}

impl ScoredMembers<'_, '_> {
    /// See [`Members::declared_len`].
    pub fn declared_len(&self) -> u64 {
        self.strings.declared_len()
    }
}

impl<'a> Iterator for ScoredMembers<'_, 'a> {
    type Item = Result<(StringValue<'a>, f64), DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let text = self.text;
        self.strings.step(|reader| {
            let member = reader.string()?;
            let score = if text { reader.text_double()? } else { reader.double()? };
            if score.is_nan() { Err(DecodeError::ScoreNotANumber) } else { Ok((member, score)) }
        })
    }
}

/// Fields of a hash with their values.
#[derive(Debug)]
pub struct Fields<'r, 'a> {
    strings: Members<'r, 'a>,
}

impl Fields<'_, '_> {
    /// See [`Members::declared_len`].
    pub fn declared_len(&self) -> u64 {
        self.strings.declared_len()
    }
}

impl<'a> Iterator for Fields<'_, 'a> {
    type Item = Result<(StringValue<'a>, StringValue<'a>), DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.strings.step(|reader| Ok((reader.string()?, reader.string()?)))
    }
}

/// Fields of a hash with their values and, in Unix ms, when they end.
#[derive(Debug)]
pub struct TimedFields<'r, 'a> {
    strings: Members<'r, 'a>,
    earliest_ms: u64,
}

impl TimedFields<'_, '_> {
    /// See [`Members::declared_len`].
    pub fn declared_len(&self) -> u64 {
        self.strings.declared_len()
    }
}

impl<'a> Iterator for TimedFields<'_, 'a> {
    type Item = Result<(Option<i64>, StringValue<'a>, StringValue<'a>), DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        let earliest_ms = self.earliest_ms;
        self.strings.step(|reader| {
            let at_ms = match reader.length()? {
                0 => None,
                after => {
                    let at_ms = earliest_ms.checked_add(after - 1).and_then(|at_ms| i64::try_from(at_ms).ok());
                    Some(at_ms.ok_or(DecodeError::Malformed("time of a field"))?)
                }
            };
            Ok((at_ms, reader.string()?, reader.string()?))
        })
    }
}

/// A node of a list.
#[derive(Debug)]
pub enum ListNode<'a> {
    /// One big element; not empty.
    Plain(StringValue<'a>),
    /// Several elements; not empty.
    Packed(Listpack),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum NodeForm {
    /// Ziplists.
    Quicklist,
    /// A container number, then a listpack or a plain string.
    Quicklist2,
}

/// Nodes of a list. Empty packed nodes are passed over; a list without any other ends in [`DecodeError::Empty`].
#[derive(Debug)]
pub struct ListNodes<'r, 'a> {
    reader: &'r mut Reader<'a>,
    left: u64,
    form: NodeForm,
    empty: bool,
}

impl<'r, 'a> ListNodes<'r, 'a> {
    fn new(reader: &'r mut Reader<'a>, form: NodeForm) -> Result<Self, DecodeError> {
        match reader.length()? {
            0 => Err(DecodeError::Empty),
            left => Ok(Self { reader, left, form, empty: true }),
        }
    }

    /// See [`Members::declared_len`]; in nodes.
    pub fn declared_len(&self) -> u64 {
        self.left
    }

    /// The next node, or None for an empty one.
    fn read(&mut self) -> Result<Option<ListNode<'a>>, DecodeError> {
        let container = match self.form {
            NodeForm::Quicklist => NODE_PACKED,
            NodeForm::Quicklist2 => self.reader.length()?,
        };
        let content = self.reader.string()?;
        let listpack = match (container, self.form) {
            (NODE_PLAIN, _) if content.is_empty() => return Err(DecodeError::Malformed("list node")),
            (NODE_PLAIN, _) => return Ok(Some(ListNode::Plain(content))),
            (NODE_PACKED, NodeForm::Quicklist) => ziplist_to_listpack(&content)?,
            (NODE_PACKED, NodeForm::Quicklist2) => to_listpack(&content)?,
            _ => return Err(DecodeError::Malformed("list node")),
        };
        Ok((!listpack.is_empty()).then_some(ListNode::Packed(listpack)))
    }
}

impl<'a> Iterator for ListNodes<'_, 'a> {
    type Item = Result<ListNode<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.left > 0 {
            self.left -= 1;
            match self.read() {
                Ok(None) => {}
                Ok(Some(node)) => {
                    self.empty = false;
                    return Some(Ok(node));
                }
                Err(error) => {
                    self.left = 0;
                    self.empty = false;
                    return Some(Err(error));
                }
            }
        }
        if self.empty {
            self.empty = false;
            return Some(Err(DecodeError::Empty));
        }
        None
    }
}
