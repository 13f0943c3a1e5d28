//! DUMP payloads: a value and a footer.
//!
//! ```text
//! ┌──────┬───────┬─────────────┬────────────────────────────┐
//! │ type │ value │ RDB version │ CRC64 of all bytes before  │
//! │ u8   │       │ u16 LE      │ u64 LE                     │
//! └──────┴───────┴─────────────┴────────────────────────────┘
//! ```
//!
//! The value's bytes are [`crate::value`]'s.

use std::fmt;

use crate::codec::{DecodeError, RDB_VERSION, Reader};
use crate::crc64::crc64;
use crate::value::{Decoded, Scrutiny, ValueType, decode};

const FOOTER_BYTES: usize = 10;

/// A payload that is too short, newer than [`RDB_VERSION`], or whose checksum is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PayloadRefused;

impl fmt::Display for PayloadRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("wrong version or checksum of a DUMP payload")
    }
}

impl std::error::Error for PayloadRefused {}

/// Ends the payload that starts at `start` in `out`: appends version and checksum.
pub fn append_footer(out: &mut Vec<u8>, start: usize) {
    append_footer_of_version(out, start, RDB_VERSION);
}

/// As [`append_footer`], for a reader of an older RDB version. The value's type must be one that it knows.
pub fn append_footer_of_version(out: &mut Vec<u8>, start: usize, version: u16) {
    out.extend_from_slice(&version.to_le_bytes());
    let checksum = crc64(out.get(start..).unwrap_or(&[]));
    out.extend_from_slice(&checksum.to_le_bytes());
}

/// A payload whose footer has been verified.
#[derive(Clone, Debug)]
pub struct Payload<'a> {
    body: Reader<'a>,
    /// The RDB version it was written with.
    pub version: u16,
}

/// Verifies a payload's version and checksum.
pub fn verify(payload: &[u8]) -> Result<Payload<'_>, PayloadRefused> {
    let (body, footer) = split_footer(payload).ok_or(PayloadRefused)?;
    let [low, high, checksum @ ..] = footer;
    let version = u16::from_le_bytes([low, high]);
    let covered = payload.get(..body.len() + 2).ok_or(PayloadRefused)?;
    if version > RDB_VERSION || crc64(covered) != u64::from_le_bytes(checksum) {
        return Err(PayloadRefused);
    }
    Ok(Payload { body: Reader::new(body), version })
}

/// As [`verify`], but takes any checksum (`DEBUG SET-SKIP-CHECKSUM-VALIDATION`).
pub fn verify_version_only(payload: &[u8]) -> Result<Payload<'_>, PayloadRefused> {
    let (body, [low, high, ..]) = split_footer(payload).ok_or(PayloadRefused)?;
    let version = u16::from_le_bytes([low, high]);
    if version > RDB_VERSION {
        return Err(PayloadRefused);
    }
    Ok(Payload { body: Reader::new(body), version })
}

fn split_footer(payload: &[u8]) -> Option<(&[u8], [u8; FOOTER_BYTES])> {
    payload.split_last_chunk().map(|(body, footer)| (body, *footer))
}

impl<'a> Payload<'a> {
    /// Decodes the value: see [`decode`]. Redis: bytes behind the value are ignored.
    pub fn decode(&mut self) -> Result<Decoded<'_, 'a>, DecodeError> {
        let value_type = ValueType::from_byte(self.body.byte()?)?;
        // A payload comes from a client: nothing about it is trusted.
        decode(value_type, &mut self.body, Scrutiny::Full)
    }
}
