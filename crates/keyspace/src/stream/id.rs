//! Ids of stream entries.

use rdb::value::RawStreamId;
use std::fmt;

/// The id of a stream entry: a time in ms and a number among entries of the same ms. Written `ms-seq`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct StreamId {
    /// Milliseconds.
    pub ms: u64,
    /// Sequence number.
    pub seq: u64,
}

impl StreamId {
    /// `0-0`, which no entry has.
    pub const MIN: StreamId = StreamId { ms: 0, seq: 0 };
    /// The greatest id.
    pub const MAX: StreamId = StreamId { ms: u64::MAX, seq: u64::MAX };

    /// An id of its halves.
    pub fn new(ms: u64, seq: u64) -> StreamId {
        StreamId { ms, seq }
    }

    /// Whether it is `0-0`.
    pub fn is_zero(self) -> bool {
        self == StreamId::MIN
    }

    /// The next greater id; `None` behind the greatest.
    pub fn next(self) -> Option<StreamId> {
        match self.seq.checked_add(1) {
            Some(seq) => Some(StreamId { ms: self.ms, seq }),
            None => Some(StreamId { ms: self.ms.checked_add(1)?, seq: 0 }),
        }
    }

    /// The next smaller id; `None` before `0-0`.
    pub fn previous(self) -> Option<StreamId> {
        match self.seq.checked_sub(1) {
            Some(seq) => Some(StreamId { ms: self.ms, seq }),
            None => Some(StreamId { ms: self.ms.checked_sub(1)?, seq: u64::MAX }),
        }
    }

    /// The id as 16 bytes that sort as ids do.
    pub fn to_raw(self) -> RawStreamId {
        (u128::from(self.ms) << 64 | u128::from(self.seq)).to_be_bytes()
    }

    /// The id of such bytes.
    pub fn from_raw(raw: RawStreamId) -> StreamId {
        let [a, b, c, d, e, f, g, h, rest @ ..] = raw;
        StreamId { ms: u64::from_be_bytes([a, b, c, d, e, f, g, h]), seq: u64::from_be_bytes(rest) }
    }

    /// The id that is so far from this one, half by half, as blocks store it.
    #[allow(clippy::cast_sign_loss)]
    pub(super) fn plus(self, ms: i64, seq: i64) -> StreamId {
        StreamId { ms: self.ms.wrapping_add(ms as u64), seq: self.seq.wrapping_add(seq as u64) }
    }

    /// The reverse of [`StreamId::plus`].
    #[allow(clippy::cast_possible_wrap)]
    pub(super) fn minus(self, other: StreamId) -> (i64, i64) {
        (self.ms.wrapping_sub(other.ms) as i64, self.seq.wrapping_sub(other.seq) as i64)
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ms, self.seq)
    }
}
