//! The string that a HyperLogLog is.
//!
//! ```text
//! 0    4          5         8                16
//! ├────┼──────────┼─────────┼────────────────┼──────────────────────────────
//! │HYLL│ encoding │ 0, 0, 0 │ count, cached  │ registers
//! └────┴──────────┴─────────┴────────────────┴──────────────────────────────
//!        0 dense              little endian;   dense: 16,384 of 6 bits, lowest bits first
//!        1 sparse             highest bit:     sparse: runs of equal registers, see [`super::sparse`]
//!                             out of date
//! ```
//!
//! An element's hash names a register by its lowest 14 bits; the register keeps the longest run of zeros, plus one, that
//! was seen at the start of the other 50.
//!
//! [`encoding_of`] checks as much as Redis does when a command meets a string. Wrong runs are met later: every function
//! that reads them says [`Corrupt`] instead of going out of bounds.

use super::estimate::Histogram;
use super::sparse::{self, Run, Set};

/// How many registers there are.
pub(super) const REGISTERS: usize = 1 << INDEX_BITS;
const INDEX_BITS: u32 = 14;
/// Bits of the hash of which the leading zeros are counted.
pub(super) const TAIL_BITS: u32 = 64 - INDEX_BITS;
const REGISTER_BITS: usize = 6;
const REGISTER_MAX: u16 = (1 << REGISTER_BITS) - 1;

const MAGIC: &[u8; 4] = b"HYLL";
const ENCODING_AT: usize = 4;
const COUNT_AT: usize = 8;
/// Bytes before the registers.
pub(super) const HEADER: usize = 16;
const DENSE_LEN: usize = HEADER + REGISTERS * REGISTER_BITS / 8;
/// In the last byte of the count.
const OUT_OF_DATE: u8 = 0x80;

/// A sparse HyperLogLog whose runs are not those of all registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Corrupt;

/// How the registers are stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Encoding {
    /// All of them.
    Dense,
    /// Runs.
    Sparse,
}

/// The encoding of a string that may be a HyperLogLog; `None`: it cannot be one.
pub(super) fn encoding_of(bytes: &[u8]) -> Option<Encoding> {
    if bytes.len() < HEADER || !bytes.starts_with(MAGIC) {
        return None;
    }
    match bytes.get(ENCODING_AT) {
        Some(0) if bytes.len() == DENSE_LEN => Some(Encoding::Dense),
        Some(1) => Some(Encoding::Sparse),
        _ => None,
    }
}

/// A sparse one that has seen nothing.
pub(super) fn empty() -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + 2);
    bytes.extend_from_slice(MAGIC);
    bytes.push(1);
    bytes.resize(HEADER, 0);
    sparse::push_zeros(&mut bytes, REGISTERS);
    bytes
}

/// MurmurHash64A with the seed that makes HyperLogLogs comparable.
pub(super) fn hash(element: &[u8]) -> u64 {
    const SEED: u64 = 0xADC8_3B19;
    const FACTOR: u64 = 0xC6A4_A793_5BD1_E995;
    const SHIFT: u32 = 47;
    let mut hash = SEED ^ (element.len() as u64).wrapping_mul(FACTOR);
    let (words, rest) = element.as_chunks::<8>();
    for word in words {
        let word = u64::from_le_bytes(*word).wrapping_mul(FACTOR);
        hash = (hash ^ (word ^ word >> SHIFT).wrapping_mul(FACTOR)).wrapping_mul(FACTOR);
    }
    if !rest.is_empty() {
        let last = rest.iter().rev().fold(0, |last, byte| last << 8 | u64::from(*byte));
        hash = (hash ^ last).wrapping_mul(FACTOR);
    }
    hash = (hash ^ hash >> SHIFT).wrapping_mul(FACTOR);
    hash ^ hash >> SHIFT
}

/// The register of an element, and what it asks of it: 1 to 51.
pub(super) fn place_of(element: &[u8]) -> (usize, u8) {
    let hash = hash(element);
    #[allow(clippy::cast_possible_truncation)]
    let index = hash as usize & (REGISTERS - 1);
    let zeros = (hash >> INDEX_BITS | 1 << TAIL_BITS).trailing_zeros();
    (index, u8::try_from(zeros + 1).unwrap_or(u8::MAX))
}

/// The registers of a dense one.
pub(super) struct Dense<'a>(pub(super) &'a mut [u8]);

impl Dense<'_> {
    /// Where a register's bits are: a byte, and the shift in it and the next one.
    fn locate(index: usize) -> (usize, usize) {
        (index * REGISTER_BITS / 8, index * REGISTER_BITS % 8)
    }

    /// The two bytes in which register `index` is; the last one has only one.
    fn pair(bytes: &[u8], at: usize) -> u16 {
        let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
        u16::from_le_bytes([byte(at), byte(at + 1)])
    }

    fn get(bytes: &[u8], index: usize) -> u8 {
        let (at, shift) = Dense::locate(index);
        (Dense::pair(bytes, at) >> shift & REGISTER_MAX).to_le_bytes()[0]
    }

    /// Sets a register to a value of at most 6 bits.
    pub(super) fn set(&mut self, index: usize, value: u8) {
        let (at, shift) = Dense::locate(index);
        let pair = Dense::pair(self.0, at) & !(REGISTER_MAX << shift) | (u16::from(value) & REGISTER_MAX) << shift;
        for (byte, new) in self.0.iter_mut().skip(at).zip(pair.to_le_bytes()) {
            *byte = new;
        }
    }

    /// Sets a register unless it has that value or more. True: it changed.
    pub(super) fn raise(&mut self, index: usize, value: u8) -> bool {
        let raises = value > Dense::get(self.0, index);
        if raises {
            self.set(index, value);
        }
        raises
    }

    /// Visits all registers in order.
    pub(super) fn each(bytes: &[u8], mut visit: impl FnMut(usize, u8)) {
        // Three bytes hold four registers.
        let (triples, _) = bytes.as_chunks::<3>();
        for (group, [low, middle, high]) in triples.iter().enumerate() {
            let bits = u32::from_le_bytes([*low, *middle, *high, 0]);
            for at in 0..4 {
                visit(group * 4 + at, (bits >> (at * REGISTER_BITS)).to_le_bytes()[0] & 0x3F);
            }
        }
    }
}

/// The registers' bytes of a string with a header.
fn body(bytes: &[u8]) -> &[u8] {
    bytes.get(HEADER..).unwrap_or_default()
}

/// Raises registers to those of a string that [`encoding_of`] took for a HyperLogLog.
pub(super) fn merge_into(registers: &mut [u8; REGISTERS], bytes: &[u8]) -> Result<(), Corrupt> {
    match encoding_of(bytes).ok_or(Corrupt)? {
        Encoding::Dense => {
            let mut all = registers.iter_mut();
            Dense::each(body(bytes), |_, value| {
                if let Some(register) = all.next() {
                    *register = value.max(*register);
                }
            });
        }
        Encoding::Sparse => {
            let mut at = 0_usize;
            for run in sparse::runs(body(bytes)) {
                let Run { value, len } = run?;
                let end = at + len;
                for register in registers.get_mut(at..end).ok_or(Corrupt)? {
                    *register = value.max(*register);
                }
                at = end;
            }
            if at != REGISTERS {
                return Err(Corrupt);
            }
        }
    }
    Ok(())
}

/// A HyperLogLog to change.
pub(super) struct Sketch<'a> {
    bytes: &'a mut Vec<u8>,
    encoding: Encoding,
}

impl Sketch<'_> {
    /// A string as one; `None`: it cannot be.
    pub(super) fn of(bytes: &mut Vec<u8>) -> Option<Sketch<'_>> {
        let encoding = encoding_of(bytes)?;
        Some(Sketch { bytes, encoding })
    }

    /// How the registers are stored.
    pub(super) fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Adds an element; whether a register changed. `sparse_max`: the bytes up to which it stays sparse.
    pub(super) fn add(&mut self, element: &[u8], sparse_max: usize) -> Result<bool, Corrupt> {
        let (index, value) = place_of(element);
        self.raise(index, value, sparse_max)
    }

    /// Sets a register unless it has that value or more. True: it changed.
    pub(super) fn raise(&mut self, index: usize, value: u8, sparse_max: usize) -> Result<bool, Corrupt> {
        if self.encoding == Encoding::Sparse {
            match sparse::raise(self.bytes, index, value, sparse_max)? {
                Set::Unchanged => return Ok(false),
                Set::Changed => {
                    self.forget_count();
                    return Ok(true);
                }
                Set::NoRoom => self.make_dense()?,
            };
        }
        Ok(self.dense().raise(index, value))
    }

    /// The registers, of a dense one.
    pub(super) fn dense(&mut self) -> Dense<'_> {
        Dense(self.bytes.get_mut(HEADER..).unwrap_or_default())
    }

    /// Turns a sparse one into a dense one; false: it was dense. A corrupt one stays as it is.
    pub(super) fn make_dense(&mut self) -> Result<bool, Corrupt> {
        if self.encoding == Encoding::Dense {
            return Ok(false);
        }
        let mut dense = vec![0; DENSE_LEN];
        for (new, old) in dense.iter_mut().zip(self.bytes.iter().take(HEADER)) {
            *new = *old;
        }
        if let Some(encoding) = dense.get_mut(ENCODING_AT) {
            *encoding = 0;
        }
        let mut registers = Dense(dense.get_mut(HEADER..).unwrap_or_default());
        let mut at = 0;
        for run in sparse::runs(body(self.bytes)) {
            let Run { value, len } = run?;
            let end = at + len;
            if end > REGISTERS {
                return Err(Corrupt);
            }
            if value > 0 {
                (at..end).for_each(|index| registers.set(index, value));
            }
            at = end;
        }
        if at != REGISTERS {
            return Err(Corrupt);
        }
        *self.bytes = dense;
        self.encoding = Encoding::Dense;
        Ok(true)
    }

    /// How often each value occurs.
    pub(super) fn histogram(&self) -> Result<Histogram, Corrupt> {
        let mut histogram = [0; 64];
        let mut note = |value: u8, len: usize| {
            if let Some(count) = histogram.get_mut(usize::from(value)) {
                *count += len;
            }
        };
        match self.encoding {
            Encoding::Dense => Dense::each(body(self.bytes), |_, value| note(value, 1)),
            Encoding::Sparse => {
                let mut total = 0;
                for run in sparse::runs(body(self.bytes)) {
                    let Run { value, len } = run?;
                    note(value, len);
                    total += len;
                }
                if total != REGISTERS {
                    return Err(Corrupt);
                }
            }
        }
        Ok(histogram)
    }

    /// All registers.
    pub(super) fn registers(&self) -> Result<Box<[u8; REGISTERS]>, Corrupt> {
        let mut registers = Box::new([0; REGISTERS]);
        merge_into(&mut registers, self.bytes)?;
        Ok(registers)
    }

    /// The runs of a sparse one as a text: `z` and `Z` are zeros, `v:3,2` is twice the value 3.
    pub(super) fn decode(&self) -> Result<Option<String>, Corrupt> {
        match self.encoding {
            Encoding::Dense => Ok(None),
            Encoding::Sparse => sparse::decode(body(self.bytes)).map(Some),
        }
    }

    /// The count of the last time, if nothing has changed since.
    pub(super) fn cached_count(&self) -> Option<i64> {
        let count = i64::from_le_bytes(*self.bytes.get(COUNT_AT..HEADER)?.first_chunk()?);
        (count >= 0).then_some(count)
    }

    /// Keeps a count.
    pub(super) fn cache_count(&mut self, count: i64) {
        if let Some(place) = self.bytes.get_mut(COUNT_AT..HEADER) {
            place.copy_from_slice(&count.to_le_bytes());
        }
    }

    /// Marks the kept count as out of date.
    pub(super) fn forget_count(&mut self) {
        if let Some(byte) = self.bytes.get_mut(HEADER - 1) {
            *byte |= OUT_OF_DATE;
        }
    }

    /// The bytes, where a change may fail half way.
    pub(super) fn snapshot(&self) -> Option<Vec<u8>> {
        (self.encoding == Encoding::Sparse).then(|| self.bytes.clone())
    }

    /// Goes back to a snapshot.
    pub(super) fn restore(&mut self, snapshot: Option<Vec<u8>>) {
        if let Some(bytes) = snapshot {
            *self.bytes = bytes;
            self.encoding = Encoding::Sparse;
        }
    }
}
