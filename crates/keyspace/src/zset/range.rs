//! Walking a sorted set by rank in either direction, and what names a part of it.

use std::ops;

use rdb::listpack::{Elem, Listpack, Pos};

use super::packed;
use super::tree::{Entry, Tree};

/// Scores from `min` to `max`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ScoreRange {
    /// The lowest score.
    pub min: f64,
    /// The highest score.
    pub max: f64,
    /// Whether `min` itself is outside.
    pub min_exclusive: bool,
    /// Whether `max` itself is outside.
    pub max_exclusive: bool,
}

impl ScoreRange {
    /// Whether a score lies below the range.
    #[inline]
    pub(super) fn is_below(&self, score: f64) -> bool {
        if self.min_exclusive { score <= self.min } else { score < self.min }
    }

    /// Whether a score does not lie above the range.
    #[inline]
    pub(super) fn is_up_to_max(&self, score: f64) -> bool {
        if self.max_exclusive { score < self.max } else { score <= self.max }
    }
}

/// One end of a range of members: `-`, `+`, `[member`, `(member`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LexBound<'a> {
    /// `-`: before every member.
    Lowest,
    /// `+`: behind every member.
    Highest,
    /// `[member`: the member itself is inside.
    Inclusive(&'a [u8]),
    /// `(member`: the member itself is outside.
    Exclusive(&'a [u8]),
}

impl LexBound<'_> {
    /// As the lower end: whether a member lies before the range.
    #[inline]
    pub(super) fn is_above(&self, member: &[u8]) -> bool {
        match *self {
            LexBound::Lowest => false,
            LexBound::Highest => true,
            LexBound::Inclusive(bound) => member < bound,
            LexBound::Exclusive(bound) => member <= bound,
        }
    }

    /// As the upper end: whether a member does not lie behind the range.
    #[inline]
    pub(super) fn reaches(&self, member: &[u8]) -> bool {
        match *self {
            LexBound::Lowest => false,
            LexBound::Highest => true,
            LexBound::Inclusive(bound) => member <= bound,
            LexBound::Exclusive(bound) => member < bound,
        }
    }
}

/// Members with their scores, by ascending or descending rank; see [`ZSet::range`](super::ZSet::range).
pub struct Range<'a> {
    cursor: Cursor<'a>,
    /// Ranks not yet given out.
    left: ops::Range<usize>,
    backward: bool,
}

enum Cursor<'a> {
    Packed(&'a Listpack, Option<Pos>),
    /// The leaf at hand and the next entry's place in it.
    Tree(&'a Tree, &'a [Entry], usize),
}

impl<'a> Range<'a> {
    pub(super) fn packed(pack: &'a Listpack, ranks: ops::Range<usize>, backward: bool) -> Range<'a> {
        let left = clamp(ranks, packed::len(pack));
        let first = if backward { left.end.checked_sub(1) } else { Some(left.start) };
        let pos = first.filter(|_| !left.is_empty()).and_then(|rank| packed::seek(pack, rank));
        Range { cursor: Cursor::Packed(pack, pos), left, backward }
    }

    pub(super) fn tree(tree: &'a Tree, ranks: ops::Range<usize>, backward: bool) -> Range<'a> {
        let left = clamp(ranks, tree.len());
        Range { cursor: Cursor::Tree(tree, &[], 0), left, backward }
    }
}

/// The part of `ranks` that exists.
pub(super) fn clamp(ranks: ops::Range<usize>, len: usize) -> ops::Range<usize> {
    let end = ranks.end.min(len);
    ranks.start.min(end)..end
}

impl<'a> Iterator for Range<'a> {
    type Item = (Elem<'a>, f64);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.left.is_empty() {
            return None;
        }
        let item = match &mut self.cursor {
            Cursor::Packed(pack, pos) => {
                let at = (*pos)?;
                let score = pack.next(at)?;
                *pos = if self.backward { pack.prev(at).and_then(|pos| pack.prev(pos)) } else { pack.next(score) };
                (pack.get(at), packed::score_of(pack.get(score)))
            }
            Cursor::Tree(tree, leaf, at) => {
                if *at >= leaf.len() {
                    let rank = if self.backward { self.left.end - 1 } else { self.left.start };
                    (*leaf, *at) = tree.leaf_at(rank)?;
                }
                let entry = leaf.get(*at)?;
                // Before the first entry the place wraps, and the next call finds the leaf before.
                *at = if self.backward { at.wrapping_sub(1) } else { *at + 1 };
                (Elem::Bytes(entry.member.bytes()), entry.score)
            }
        };
        if self.backward {
            self.left.end -= 1;
        } else {
            self.left.start += 1;
        }
        Some(item)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left.len(), Some(self.left.len()))
    }
}

impl ExactSizeIterator for Range<'_> {}
