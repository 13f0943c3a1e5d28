//! One node of a quicklist: a listpack of elements, or one large element by itself.

use rdb::listpack::{Elem, Listpack};

use super::needle::Needle;

/// A node. Invariant: `count` is the listpack's length.
#[derive(Clone)]
pub(super) enum Node {
    /// Elements in a listpack, with their count beside it so that a seek reads no listpack.
    Packed { pack: Listpack, count: u32 },
    /// One element that is too large for a listpack.
    Plain(Box<Plain>),
}

const _: () = assert!(size_of::<Node>() == 16);

/// A large element.
#[derive(Clone)]
pub(super) struct Plain {
    pub(super) bytes: Box<[u8]>,
}

impl Node {
    pub(super) fn packed(pack: Listpack) -> Node {
        let count = u32::try_from(pack.len()).unwrap_or(u32::MAX);
        Node::Packed { pack, count }
    }

    pub(super) fn plain(bytes: &[u8]) -> Node {
        Node::Plain(Box::new(Plain { bytes: bytes.into() }))
    }

    /// A listpack of one element.
    pub(super) fn single(value: &[u8]) -> Node {
        let mut pack = Listpack::new();
        pack.append(value);
        Node::Packed { pack, count: 1 }
    }

    #[inline]
    pub(super) fn count(&self) -> usize {
        match self {
            Node::Packed { count, .. } => *count as usize,
            Node::Plain(_) => 1,
        }
    }

    pub(super) fn is_plain(&self) -> bool {
        matches!(self, Node::Plain(_))
    }

    /// Bytes as Redis counts a node's size: the listpack's, or the element's.
    #[inline]
    pub(super) fn size(&self) -> usize {
        match self {
            Node::Packed { pack, .. } => pack.bytes_len(),
            Node::Plain(plain) => plain.bytes.len(),
        }
    }

    pub(super) fn get(&self, offset: usize) -> Option<Elem<'_>> {
        match self {
            Node::Packed { pack, .. } => pack.get_index(i64::try_from(offset).ok()?),
            Node::Plain(plain) => (offset == 0).then_some(Elem::Bytes(&plain.bytes)),
        }
    }

    /// Adds the ascending offsets of the first `max` elements equal to `needle`.
    pub(super) fn matches(&self, needle: &Needle<'_>, max: usize, found: &mut Vec<usize>) {
        match self {
            Node::Packed { pack, .. } => {
                let equal = pack.iter().enumerate().filter(|(_, elem)| needle.equals(*elem));
                found.extend(equal.map(|(offset, _)| offset).take(max));
            }
            Node::Plain(plain) => {
                if max > 0 && needle.equals(Elem::Bytes(&plain.bytes)) {
                    found.push(0);
                }
            }
        }
    }

    /// Deletes `count` elements from `offset` on; a plain node's only element leaves an empty listpack, which the
    /// sequence drops.
    pub(super) fn delete_range(&mut self, offset: usize, count: usize) {
        match self {
            Node::Packed { pack, count: total } => {
                delete_range(pack, offset, count);
                *total = u32::try_from(pack.len()).unwrap_or(u32::MAX);
            }
            Node::Plain(_) => *self = Node::Packed { pack: Listpack::new(), count: 0 },
        }
    }

    /// Gives back the room that the head of a list keeps for pushes to the front.
    pub(super) fn close_gap(&mut self) {
        if let Node::Packed { pack, .. } = self {
            pack.close_gap();
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Node::Packed { pack, .. } => pack.allocated_bytes(),
            Node::Plain(plain) => size_of::<Plain>() + plain.bytes.len(),
        }
    }

    pub(super) fn check(&self) {
        assert!(self.count() > 0, "no node is empty");
        if let Node::Packed { pack, count } = self {
            assert_eq!(pack.len(), *count as usize, "the count beside a listpack");
        }
    }
}

/// Deletes `count` elements from `offset` on.
pub(super) fn delete_range(pack: &mut Listpack, offset: usize, count: usize) {
    if let Ok(offset) = i64::try_from(offset) {
        pack.delete_range(offset, count);
    }
}
