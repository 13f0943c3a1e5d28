//! Bitmaps and bit fields.

use super::id::CommandId::{Bitcount, Bitfield, BitfieldRo, Bitop, Bitpos, Getbit, Setbit};
use super::row::category::BITMAP;
use super::row::flag::{DENYOOM, FAST, READONLY, WRITE};
use super::row::usage::{ACCESS, OW, RO, RW, UPDATE, VARIABLE_FLAGS};
use super::row::{key, key_range, row};
use super::spec::{CommandSpec, GetKeys};

pub(super) static ROWS: [CommandSpec; 7] = [
    row(Bitcount, "bitcount", -2, READONLY, BITMAP).keys(&[key(1, RO | ACCESS)]),
    row(Bitfield, "bitfield", -2, WRITE | DENYOOM, BITMAP)
        .keys(&[key(1, RW | UPDATE | ACCESS | VARIABLE_FLAGS).notes("?")])
        .get_keys(GetKeys::Bitfield),
    row(BitfieldRo, "bitfield_ro", -2, READONLY | FAST, BITMAP).keys(&[key(1, RO | ACCESS)]),
    row(Bitop, "bitop", -4, WRITE | DENYOOM, BITMAP)
        .keys(&[key(2, OW | UPDATE), key_range(3, -1, RO | ACCESS)]),
    row(Bitpos, "bitpos", -3, READONLY, BITMAP).keys(&[key(1, RO | ACCESS)]),
    row(Getbit, "getbit", 3, READONLY | FAST, BITMAP).keys(&[key(1, RO | ACCESS)]),
    row(Setbit, "setbit", 4, WRITE | DENYOOM, BITMAP).keys(&[key(1, RW | ACCESS | UPDATE)]),
];
