//! The parts of a stream's value.
//!
//! ```text
//! blocks:    count, then per block: string of 16 bytes (the block's id, big-endian), string (a listpack)
//! counters:  length, last id (two lengths); from form 2 on also first id, greatest deleted id, entries ever added
//! groups:    count, then per group: name, last delivered id (two lengths), from form 2 on entries read,
//!              pending entries:  count, then 16 bytes of id, delivery time (i64 LE ms), deliveries (length)
//!              consumers:        count, then name, seen time (i64 LE ms), from form 3 on active time,
//!                                count and 16 bytes of id each of its pending entries
//! ```
//!
//! The sequence is the caller's business: reader and writer offer the pieces. What lies inside a listpack is checked by
//! who knows streams.

use crate::codec::{DecodeError, Reader, StringValue, Writer};
use crate::listpack::Listpack;

/// An entry's id as stored raw: milliseconds and sequence number, each eight bytes, big-endian.
pub type RawStreamId = [u8; 16];

/// Which of the three forms of streams.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum StreamForm {
    /// Before 7.0.
    V1,
    /// 7.0: with first id, greatest deleted id and counts of entries added and read.
    V2,
    /// 7.2: with the consumers' active time.
    V3,
}

/// Reads the parts of a stream in their order.
#[derive(Debug)]
pub struct StreamReader<'r, 'a> {
    reader: &'r mut Reader<'a>,
    /// The form.
    pub form: StreamForm,
}

impl<'r, 'a> StreamReader<'r, 'a> {
    pub(super) fn new(reader: &'r mut Reader<'a>, form: StreamForm) -> Self {
        Self { reader, form }
    }

    /// A count, a counter, or half an id. Never size an allocation by it.
    ///
    /// # Errors
    /// As the reader's.
    pub fn number(&mut self) -> Result<u64, DecodeError> {
        self.reader.length()
    }

    /// A name.
    ///
    /// # Errors
    /// As the reader's.
    pub fn name(&mut self) -> Result<StringValue<'a>, DecodeError> {
        self.reader.string()
    }

    /// A time in ms.
    ///
    /// # Errors
    /// As the reader's.
    pub fn time_ms(&mut self) -> Result<i64, DecodeError> {
        self.reader.i64_le()
    }

    /// An id of a pending entry.
    ///
    /// # Errors
    /// As the reader's.
    pub fn raw_id(&mut self) -> Result<RawStreamId, DecodeError> {
        self.reader.bytes(16)?.try_into().map_err(|_| DecodeError::Truncated)
    }

    /// A block: its id and its listpack, which is well-formed as a listpack.
    ///
    /// # Errors
    /// As the reader's; an id of another length; a malformed listpack.
    pub fn block(&mut self) -> Result<(RawStreamId, Listpack), DecodeError> {
        let key = self.reader.string()?;
        let key = key.to_bytes(&mut [0; 24]).try_into().map_err(|_| DecodeError::Malformed("stream block id"))?;
        let blob = self.reader.string()?;
        let listpack =
            Listpack::from_bytes(blob.to_bytes(&mut [0; 24])).map_err(|_| DecodeError::Malformed("stream listpack"))?;
        Ok((key, listpack))
    }
}

/// The parts of a stream, besides lengths and strings.
impl Writer<'_> {
    /// A block of a stream.
    pub fn stream_block(&mut self, id: &RawStreamId, block: &Listpack) {
        self.string(id);
        self.string(block.as_bytes());
    }

    /// A time in ms.
    pub fn time_ms(&mut self, time_ms: i64) {
        self.raw(&time_ms.to_le_bytes());
    }
}
