//! Writing RDB primitives into a vector.

use resp::num;

use super::{INT8, INT16, INT32, LENGTH_32, LENGTH_64, LZF};
use crate::listpack::Elem;
use crate::lzf;

/// Strings up to this length are never compressed.
const COMPRESSION_LEN_MIN: usize = 21;
/// The longest text that an integer encoding of four bytes can stand for is `-2147483648`.
const INT_TEXT_MAX: usize = 11;

/// Appends RDB primitives to a borrowed vector.
#[derive(Debug)]
pub struct Writer<'o> {
    out: &'o mut Vec<u8>,
    compress: bool,
}

impl<'o> Writer<'o> {
    /// A writer that stores strings as they are.
    pub fn new(out: &'o mut Vec<u8>) -> Self {
        Self { out, compress: false }
    }

    /// A writer that compresses strings of more than 20 bytes where that saves at least four (`rdbcompression yes`).
    pub fn compressing(out: &'o mut Vec<u8>) -> Self {
        Self { out, compress: true }
    }

    /// Bytes in the vector, what was there before included: for callers that flush in pieces.
    pub fn position(&self) -> usize {
        self.out.len()
    }

    /// One byte: types, opcodes.
    pub fn byte(&mut self, byte: u8) {
        self.out.push(byte);
    }

    /// Bytes as they are, without a length.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// A length.
    #[inline]
    pub fn length(&mut self, length: u64) {
        let [.., a, b, c, d] = length.to_be_bytes();
        if length < 1 << 6 {
            self.out.push(d);
        } else if length < 1 << 14 {
            self.out.extend_from_slice(&[0x40 | c, d]);
        } else if length <= u64::from(u32::MAX) {
            self.out.extend_from_slice(&[LENGTH_32, a, b, c, d]);
        } else {
            self.out.push(LENGTH_64);
            self.out.extend_from_slice(&length.to_be_bytes());
        }
    }

    /// A length counted in memory.
    #[inline]
    pub fn length_of(&mut self, length: usize) {
        self.length(length as u64);
    }

    /// A string, in the shortest of its encodings: integer, compressed (if asked for), plain. Packed blobs are strings
    /// too.
    pub fn string(&mut self, text: &[u8]) {
        if text.len() <= INT_TEXT_MAX
            && let Some(value) = num::parse_i64(text).and_then(|value| i32::try_from(value).ok())
        {
            return self.small_int(value);
        }
        if self.compress && text.len() >= COMPRESSION_LEN_MIN && self.compressed(text) {
            return;
        }
        self.length_of(text.len());
        self.out.extend_from_slice(text);
    }

    /// An integer's text as a string.
    pub fn int(&mut self, value: i64) {
        match i32::try_from(value) {
            Ok(value) => self.small_int(value),
            Err(_) => {
                let mut scratch = [0; 24];
                let text = num::format_int(value, &mut scratch);
                self.length_of(text.len());
                self.out.extend_from_slice(text);
            }
        }
    }

    /// An element of a packed container as a string.
    pub fn elem(&mut self, elem: Elem<'_>) {
        match elem {
            Elem::Bytes(text) => self.string(text),
            Elem::Int(value) => self.int(value),
        }
    }

    /// A double in its eight bytes.
    pub fn double(&mut self, value: f64) {
        self.out.extend_from_slice(&value.to_le_bytes());
    }

    fn small_int(&mut self, value: i32) {
        let [a, b, c, d] = value.to_le_bytes();
        if i8::try_from(value).is_ok() {
            self.out.extend_from_slice(&[INT8, a]);
        } else if i16::try_from(value).is_ok() {
            self.out.extend_from_slice(&[INT16, a, b]);
        } else {
            self.out.extend_from_slice(&[INT32, a, b, c, d]);
        }
    }

    /// Writes `text` compressed, if that saves enough.
    fn compressed(&mut self, text: &[u8]) -> bool {
        // The lengths in front are known only afterwards: compress behind, then put them in between.
        let start = self.out.len();
        if !lzf::compress(text, self.out, text.len() - 4) {
            return false;
        }
        let compressed_len = self.out.len() - start;
        let lengths_at = self.out.len();
        self.out.push(LZF);
        self.length_of(compressed_len);
        self.length_of(text.len());
        let lengths_len = self.out.len() - lengths_at;
        if let Some(written) = self.out.get_mut(start..) {
            written.rotate_right(lengths_len);
        }
        true
    }
}
