//! Walking a list from any index, in either direction.

use rdb::listpack::{self, Elem, Listpack, Pos};

use super::node::Node;
use super::quicklist::Quicklist;

/// A view of a list's form.
#[derive(Clone, Copy)]
pub(super) enum Form<'a> {
    Pack(&'a Listpack),
    Quick(&'a Quicklist),
}

/// Elements of a list in order; see [`List::range`](super::List::range).
///
/// Walks a node's listpack entry by entry and seeks the next node by index, once per node.
pub struct Range<'a> {
    form: Form<'a>,
    cursor: Cursor<'a>,
    /// Index of the next element.
    index: usize,
    left: usize,
    backward: bool,
}

enum Cursor<'a> {
    /// At the border of a node.
    Between,
    Forward(listpack::Iter<'a>),
    Backward(&'a Listpack, Pos),
    Plain(&'a [u8]),
}

impl<'a> Range<'a> {
    pub(super) fn forward(form: Form<'a>, start: usize, count: usize) -> Range<'a> {
        let left = count.min(form.len().saturating_sub(start));
        Range { form, cursor: Cursor::Between, index: start, left, backward: false }
    }

    pub(super) fn backward(form: Form<'a>, start: usize, count: usize) -> Range<'a> {
        let left = if start < form.len() { count.min(start + 1) } else { 0 };
        Range { form, cursor: Cursor::Between, index: start, left, backward: true }
    }

    fn seek(&self) -> Option<Cursor<'a>> {
        let (pack, offset) = match self.form {
            Form::Pack(pack) => (pack, self.index),
            Form::Quick(quick) => {
                let (node, start) = quick.nodes().node_at(self.index)?;
                match node {
                    Node::Packed { pack, .. } => (pack, self.index - start),
                    Node::Plain(plain) => return Some(Cursor::Plain(&plain.bytes)),
                }
            }
        };
        let pos = if offset == 0 { pack.first() } else { pack.seek(i64::try_from(offset).ok()?) }?;
        Some(if self.backward { Cursor::Backward(pack, pos) } else { Cursor::Forward(pack.iter_from(pos)) })
    }
}

impl<'a> Iterator for Range<'a> {
    type Item = Elem<'a>;

    #[inline]
    fn next(&mut self) -> Option<Elem<'a>> {
        if self.left == 0 {
            return None;
        }
        loop {
            let elem = match &mut self.cursor {
                Cursor::Forward(elements) => elements.next(),
                Cursor::Backward(pack, pos) => {
                    let elem = pack.get(*pos);
                    self.cursor = match pack.prev(*pos) {
                        Some(before) => Cursor::Backward(pack, before),
                        None => Cursor::Between,
                    };
                    Some(elem)
                }
                Cursor::Plain(bytes) => {
                    let elem = Elem::Bytes(bytes);
                    self.cursor = Cursor::Between;
                    Some(elem)
                }
                Cursor::Between => None,
            };
            if let Some(elem) = elem {
                self.left -= 1;
                self.index = if self.backward { self.index.wrapping_sub(1) } else { self.index + 1 };
                return Some(elem);
            }
            self.cursor = self.seek()?;
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Range<'_> {}

impl Form<'_> {
    fn len(&self) -> usize {
        match self {
            Form::Pack(pack) => pack.len(),
            Form::Quick(quick) => quick.len(),
        }
    }
}
