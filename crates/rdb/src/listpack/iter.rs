//! Walking a listpack: elements, positions with elements, pairs.

use super::decode::{backlen_size, decode, entry_size, step_back};
use super::{Elem, HEADER_BYTES, Listpack, Pos};

impl Listpack {
    /// All elements, from either end.
    pub fn iter(&self) -> Iter<'_> {
        let bytes = self.as_bytes();
        Iter { bytes, front: HEADER_BYTES, back: bytes.len() - 1 }
    }

    /// The elements from `pos` on.
    pub fn iter_from(&self, pos: Pos) -> Iter<'_> {
        let bytes = self.as_bytes();
        Iter { bytes, front: pos.offset(), back: bytes.len() - 1 }
    }

    /// All elements with their positions, from either end.
    pub fn positions(&self) -> Positions<'_> {
        Positions { iter: self.iter() }
    }

    /// Elements two by two: fields with values, members with scores. A last odd element is left out.
    pub fn pairs(&self) -> Pairs<'_> {
        Pairs { iter: self.iter() }
    }
}

impl<'a> IntoIterator for &'a Listpack {
    type Item = Elem<'a>;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// See [`Listpack::iter`].
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    bytes: &'a [u8],
    front: usize,
    back: usize,
}

impl<'a> Iter<'a> {
    #[inline]
    fn step(&mut self) -> Option<(usize, Elem<'a>)> {
        if self.front >= self.back {
            return None;
        }
        let at = self.front;
        let (elem, encoded) = decode(self.bytes, at)?;
        self.front = at + encoded + backlen_size(encoded);
        Some((at, elem))
    }

    #[inline]
    fn step_back(&mut self) -> Option<(usize, Elem<'a>)> {
        if self.front >= self.back {
            return None;
        }
        let at = step_back(self.bytes, self.back)?;
        let (elem, _) = decode(self.bytes, at)?;
        self.back = at;
        Some((at, elem))
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = Elem<'a>;

    #[inline]
    fn next(&mut self) -> Option<Elem<'a>> {
        self.step().map(|(_, elem)| elem)
    }

    /// Passes over elements without decoding them.
    #[inline]
    fn nth(&mut self, count: usize) -> Option<Elem<'a>> {
        for _ in 0..count {
            if self.front >= self.back {
                return None;
            }
            self.front += entry_size(self.bytes, self.front)?;
        }
        self.next()
    }
}

impl DoubleEndedIterator for Iter<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step_back().map(|(_, elem)| elem)
    }
}

/// See [`Listpack::positions`].
#[derive(Clone, Debug)]
pub struct Positions<'a> {
    iter: Iter<'a>,
}

impl<'a> Iterator for Positions<'a> {
    type Item = (Pos, Elem<'a>);

    #[inline]
    fn next(&mut self) -> Option<(Pos, Elem<'a>)> {
        let (at, elem) = self.iter.step()?;
        Some((Pos(u32::try_from(at).ok()?), elem))
    }
}

impl DoubleEndedIterator for Positions<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        let (at, elem) = self.iter.step_back()?;
        Some((Pos(u32::try_from(at).ok()?), elem))
    }
}

/// See [`Listpack::pairs`].
#[derive(Clone, Debug)]
pub struct Pairs<'a> {
    iter: Iter<'a>,
}

impl<'a> Iterator for Pairs<'a> {
    type Item = (Elem<'a>, Elem<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        Some((self.iter.next()?, self.iter.next()?))
    }
}

impl DoubleEndedIterator for Pairs<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        let second = self.iter.next_back()?;
        Some((self.iter.next_back()?, second))
    }
}
