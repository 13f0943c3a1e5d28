//! Several entries encoded ahead, so that appending them is one change of the listpack.

use super::decode::{Encoded, encode_backlen};
use super::{COUNT_UNKNOWN, Listpack, header};

/// Entries in their stored bytes, in order. See [`Listpack::append_batch`].
#[derive(Clone, Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    count: usize,
}

impl Batch {
    /// No entries; room for `bytes` encoded bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes), count: 0 }
    }

    /// Adds a value: an integer when it is a canonical one.
    pub fn push(&mut self, value: &[u8]) {
        self.push_encoded(&Encoded::of(value));
    }

    /// Adds an integer.
    pub fn push_int(&mut self, value: i64) {
        self.push_encoded(&Encoded::of_int(value));
    }

    #[allow(clippy::indexing_slicing, reason = "a size is at most five")]
    fn push_encoded(&mut self, value: &Encoded<'_>) {
        let (backlen, backlen_size) = encode_backlen(value.len());
        self.bytes.extend_from_slice(value.head());
        self.bytes.extend_from_slice(value.payload());
        self.bytes.extend_from_slice(&backlen[..backlen_size]);
        self.count += 1;
    }
}

impl Listpack {
    /// Adds the entries at the tail. Panics past 4 GiB, as [`Listpack::append`].
    pub fn append_batch(&mut self, batch: &Batch) {
        let end = self.bytes_len() - 1;
        let count = u16::try_from(self.len() + batch.count).unwrap_or(COUNT_UNKNOWN);
        let header = header(end + 1 + batch.bytes.len(), count);
        self.block.splice(end, 0, [&batch.bytes, &[], &[]], header);
    }
}
