//! A value looked for among elements, parsed once: listpacks hold integer texts as integers.

use rdb::listpack::Elem;
use resp::num;

/// What LREM, LPOS and LINSERT compare elements with.
pub(super) struct Needle<'a> {
    bytes: &'a [u8],
    integer: Option<i64>,
}

impl<'a> Needle<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Needle<'a> {
        Needle { bytes, integer: num::parse_i64(bytes) }
    }

    #[inline]
    pub(super) fn equals(&self, elem: Elem<'_>) -> bool {
        match elem {
            Elem::Bytes(bytes) => bytes == self.bytes,
            Elem::Int(value) => self.integer == Some(value),
        }
    }
}
