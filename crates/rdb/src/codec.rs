//! The primitives of the RDB format: lengths, strings, integers, doubles.
//!
//! ```text
//! length  00llllll                 6 bits        string  length, bytes
//!         01llllll llllllll        14 bits               11000000 i8
//!         10000000 u32 BE                                11000001 i16 LE
//!         10000001 u64 BE                                11000010 i32 LE
//!                                                        11000011 compressed length, length, LZF bytes
//! ```
//!
//! The same primitives build RDB files, DUMP payloads and replication's full sync; version 11 is what Redis 7.2 writes.

mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use reader::{DecodeError, Length, Reader, StringValue};
pub use writer::Writer;

/// The RDB version that Redis 7.2 writes, and the newest one that is read.
pub const RDB_VERSION: u16 = 11;

/// What a type byte in an RDB file can be besides the type of a value.
pub mod opcode {
    /// A function library.
    pub const FUNCTION2: u8 = 245;
    /// A function library of Redis 7.0's release candidates.
    pub const FUNCTION_PRE_GA: u8 = 246;
    /// A module's own data.
    pub const MODULE_AUX: u8 = 247;
    /// The next key's idle time in seconds, as a length.
    pub const IDLE: u8 = 248;
    /// The next key's access frequency, one byte.
    pub const FREQ: u8 = 249;
    /// A field and a value about the file.
    pub const AUX: u8 = 250;
    /// Sizes of the selected database: keys and keys with expiry.
    pub const RESIZEDB: u8 = 251;
    /// The next key's expiry in milliseconds.
    pub const EXPIRETIME_MS: u8 = 252;
    /// The next key's expiry in seconds (old).
    pub const EXPIRETIME: u8 = 253;
    /// The database of the keys that follow.
    pub const SELECTDB: u8 = 254;
    /// The end of the file; eight bytes of CRC64 follow.
    pub const EOF: u8 = 255;
}

/// First byte of a string that is an integer of one byte.
const INT8: u8 = 0xc0;
/// First byte of a string that is an integer of two bytes.
const INT16: u8 = 0xc1;
/// First byte of a string that is an integer of four bytes.
const INT32: u8 = 0xc2;
/// First byte of a compressed string.
const LZF: u8 = 0xc3;
/// First byte of a 32-bit length.
const LENGTH_32: u8 = 0x80;
/// First byte of a 64-bit length.
const LENGTH_64: u8 = 0x81;
