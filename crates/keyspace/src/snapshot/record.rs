//! An entry as a record of an RDB file: what stands before the type, the type, the key, the value.
//!
//! ```text
//! [EXPIRETIME_MS i64 LE]  [IDLE length | FREQ u8]  type u8  key string  value
//! ```

use crate::codec::{value_type_of_version, write_value_of_version};
use crate::entry::Entry;
use crate::eviction::AccessClock;
use crate::list::NodeBytes;
use crate::value::ValueRef;
use rdb::codec::{RDB_VERSION, Writer, opcode};

/// Which of the access bits a record carries.
#[derive(Clone, Copy, Debug, Default)]
pub enum AccessForm {
    /// None: the eviction policy is neither LRU nor LFU.
    #[default]
    None,
    /// Seconds since the last access.
    Idle(AccessClock),
    /// The LFU counter.
    Frequency(AccessClock),
}

/// How records are written.
#[derive(Clone, Copy, Debug)]
pub struct RecordForm {
    /// The version of the format: [`RDB_VERSION`] or [`crate::codec::VERSION_7_0`].
    pub version: u16,
    /// Compress strings (`rdbcompression`).
    pub compress: bool,
    /// The access bits.
    pub access: AccessForm,
}

impl Default for RecordForm {
    fn default() -> Self {
        RecordForm { version: RDB_VERSION, compress: false, access: AccessForm::None }
    }
}

/// Appends the record of an entry.
pub fn write(out: &mut Vec<u8>, entry: &Entry, form: &RecordForm) {
    let mut writer = if form.compress { Writer::compressing(out) } else { Writer::new(out) };
    if let Some(at_ms) = entry.expire_at_ms() {
        writer.byte(opcode::EXPIRETIME_MS);
        writer.raw(&at_ms.to_le_bytes());
    }
    match form.access {
        AccessForm::None => {}
        AccessForm::Idle(clock) => {
            writer.byte(opcode::IDLE);
            writer.length(u64::from(clock.idle_seconds(entry.access())));
        }
        AccessForm::Frequency(clock) => {
            writer.byte(opcode::FREQ);
            writer.byte(u8::try_from(clock.frequency(entry.access())).unwrap_or(u8::MAX));
        }
    }
    let value = entry.value();
    writer.value_type(value_type_of_version(value, form.version));
    writer.string(entry.key());
    write_value_of_version(&mut writer, value, form.version);
}

/// Bytes above which an entry is not written by a worker.
const LARGE_BYTES: usize = 64 << 10;
/// Elements above which it is not.
const LARGE_ELEMENTS: usize = 1024;

/// Whether writing the value takes longer than a worker should spend on it.
pub fn is_large(value: ValueRef<'_>) -> bool {
    match value {
        ValueRef::Str(string) => string.len() > LARGE_BYTES,
        ValueRef::List(list) => {
            let bytes = |node: NodeBytes<'_>| match node {
                NodeBytes::Packed(bytes) | NodeBytes::Plain(bytes) => bytes.len(),
            };
            is_over(LARGE_BYTES, list.nodes().map(bytes))
        }
        ValueRef::Set(set) => match (set.as_intset(), set.as_listpack()) {
            (Some(intset), _) => intset.as_bytes().len() > LARGE_BYTES,
            (_, Some(listpack)) => listpack.as_bytes().len() > LARGE_BYTES,
            _ => set.len() > LARGE_ELEMENTS || is_over(LARGE_BYTES, set.iter().map(|member| member.len_as_text())),
        },
        ValueRef::ZSet(zset) => match zset.as_listpack() {
            Some(listpack) => listpack.as_bytes().len() > LARGE_BYTES,
            None => {
                zset.len() > LARGE_ELEMENTS
                    || is_over(LARGE_BYTES, zset.range_back(0..zset.len()).map(|(member, _)| member.len_as_text()))
            }
        },
        ValueRef::Hash(hash) => match hash.as_listpack() {
            Some(listpack) => listpack.as_bytes().len() > LARGE_BYTES,
            None => {
                hash.len() > LARGE_ELEMENTS
                    || is_over(LARGE_BYTES, hash.iter().map(|(field, value)| field.len_as_text() + value.len_as_text()))
            }
        },
        ValueRef::Stream(stream) => stream.free_effort() > LARGE_ELEMENTS / 32,
    }
}

/// Whether lengths add up to more than `limit`; looks no further than needed.
fn is_over(limit: usize, lengths: impl Iterator<Item = usize>) -> bool {
    let mut left = limit;
    for length in lengths {
        // Each element costs something, whatever its length.
        match left.checked_sub(length + 8) {
            Some(rest) => left = rest,
            None => return true,
        }
    }
    false
}
