//! Bitmaps and bit fields.

use super::docs::{Group, block, docs, integer, key_argument, one_of, string, token};
use super::id::CommandId::{Bitcount, Bitfield, BitfieldRo, Bitop, Bitpos, Getbit, Setbit};
use super::row::category::BITMAP;
use super::row::flag::{DENYOOM, FAST, READONLY, WRITE};
use super::row::usage::{ACCESS, OW, RO, RW, UPDATE, VARIABLE_FLAGS};
use super::row::{key, key_range, row};
use super::spec::{CommandSpec, GetKeys};

pub(super) static ROWS: [CommandSpec; 7] = [
    row(Bitcount, "bitcount", -2, READONLY, BITMAP).keys(&[key(1, RO | ACCESS)]).docs(
        &docs(Group::Bitmap, "2.6.0", "O(N)", "Counts the bits that are 1, in a string or in a part of it.")
            .history(&[("7.0.0", "`BYTE` and `BIT` say what the range counts.")])
            .arguments(&[
                key_argument("key", 0),
                block(
                    "range",
                    &[
                        integer("start"),
                        integer("end"),
                        one_of("unit", &[token("byte", "BYTE"), token("bit", "BIT")]).since("7.0.0").optional(),
                    ],
                )
                .optional(),
            ]),
    ),
    row(Bitfield, "bitfield", -2, WRITE | DENYOOM, BITMAP)
        .keys(&[key(1, RW | UPDATE | ACCESS | VARIABLE_FLAGS)
            .notes("The operations decide whether the key is read or changed")])
        .get_keys(GetKeys::Bitfield)
        .docs(
            &docs(
                Group::Bitmap,
                "3.2.0",
                "O(1) for each operation.",
                "Reads, sets and increments integers of any width inside a string.",
            )
            .arguments(&[
                key_argument("key", 0),
                one_of(
                    "operation",
                    &[
                        block("get-block", &[string("encoding"), integer("offset")]).after("GET"),
                        block(
                            "write",
                            &[
                                one_of(
                                    "overflow-block",
                                    &[token("wrap", "WRAP"), token("sat", "SAT"), token("fail", "FAIL")],
                                )
                                .after("OVERFLOW")
                                .optional(),
                                one_of(
                                    "write-operation",
                                    &[
                                        block("set-block", &[string("encoding"), integer("offset"), integer("value")])
                                            .after("SET"),
                                        block(
                                            "incrby-block",
                                            &[string("encoding"), integer("offset"), integer("increment")],
                                        )
                                        .after("INCRBY"),
                                    ],
                                ),
                            ],
                        ),
                    ],
                )
                .optional()
                .multiple(),
            ]),
        ),
    row(BitfieldRo, "bitfield_ro", -2, READONLY | FAST, BITMAP).keys(&[key(1, RO | ACCESS)]).docs(
        &docs(Group::Bitmap, "6.0.0", "O(1) for each operation.", "Reads integers of any width inside a string.")
            .arguments(&[
                key_argument("key", 0),
                block("get-block", &[string("encoding"), integer("offset")]).after("GET").optional().multiple_token(),
            ]),
    ),
    row(Bitop, "bitop", -4, WRITE | DENYOOM, BITMAP).keys(&[key(2, OW | UPDATE), key_range(3, -1, RO | ACCESS)]).docs(
        &docs(Group::Bitmap, "2.6.0", "O(N)", "Combines strings bit by bit and stores the outcome.").arguments(&[
            one_of("operation", &[token("and", "AND"), token("or", "OR"), token("xor", "XOR"), token("not", "NOT")]),
            key_argument("destkey", 0),
            key_argument("key", 1).multiple(),
        ]),
    ),
    row(Bitpos, "bitpos", -3, READONLY, BITMAP).keys(&[key(1, RO | ACCESS)]).docs(
        &docs(Group::Bitmap, "2.8.7", "O(N)", "Finds the first bit of a string that is 0, or 1.")
            .history(&[("7.0.0", "`BYTE` and `BIT` say what the range counts.")])
            .arguments(&[
                key_argument("key", 0),
                integer("bit"),
                block(
                    "range",
                    &[
                        integer("start"),
                        block(
                            "end-unit-block",
                            &[
                                integer("end"),
                                one_of("unit", &[token("byte", "BYTE"), token("bit", "BIT")]).since("7.0.0").optional(),
                            ],
                        )
                        .optional(),
                    ],
                )
                .optional(),
            ]),
    ),
    row(Getbit, "getbit", 3, READONLY | FAST, BITMAP).keys(&[key(1, RO | ACCESS)]).docs(
        &docs(Group::Bitmap, "2.2.0", "O(1)", "Returns one bit of a string.")
            .arguments(&[key_argument("key", 0), integer("offset")]),
    ),
    row(Setbit, "setbit", 4, WRITE | DENYOOM, BITMAP).keys(&[key(1, RW | ACCESS | UPDATE)]).docs(
        &docs(Group::Bitmap, "2.2.0", "O(1)", "Sets one bit of a string and returns what it was.").arguments(&[
            key_argument("key", 0),
            integer("offset"),
            integer("value"),
        ]),
    ),
];
