//! Views of a request's arguments.
//!
//! An argument list is either ranges of one buffer (a parsed request, or an [`OwnedArgs`]) or a slice of slices (a call
//! made by our own code). [`Args`] hides which, is `Copy`, and costs one predictable branch per access.

use std::ops::Index;

/// Where one argument lies in its buffer. Both are `usize`: requests beyond 4 GiB are legal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) start: usize,
    pub(crate) len: usize,
}

/// The arguments of a request; `args[0]` is the command name.
#[derive(Clone, Copy)]
pub struct Args<'a>(Source<'a>);

#[derive(Clone, Copy)]
enum Source<'a> {
    Ranges { base: &'a [u8], ranges: &'a [Range] },
    Slices(&'a [&'a [u8]]),
}

impl<'a> Args<'a> {
    /// Arguments given as separate slices.
    pub fn from_slices(slices: &'a [&'a [u8]]) -> Self {
        Args(Source::Slices(slices))
    }

    #[inline]
    pub(crate) fn from_ranges(base: &'a [u8], ranges: &'a [Range]) -> Self {
        Args(Source::Ranges { base, ranges })
    }

    /// Number of arguments, the command name included.
    #[inline]
    pub fn len(&self) -> usize {
        match self.0 {
            Source::Ranges { ranges, .. } => ranges.len(),
            Source::Slices(slices) => slices.len(),
        }
    }

    /// Whether there is no argument at all.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The argument at `index`, or `None` past the end.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&'a [u8]> {
        match self.0 {
            Source::Ranges { base, ranges } => {
                let range = ranges.get(index)?;
                base.get(range.start..range.start + range.len)
            }
            Source::Slices(slices) => slices.get(index).copied(),
        }
    }

    /// The argument at `index`, as indexing gives it, but living as long as the request.
    ///
    /// # Panics
    /// When there is no such argument: for callers that have checked the count.
    #[inline]
    #[track_caller]
    pub fn at(&self, index: usize) -> &'a [u8] {
        match self.get(index) {
            Some(argument) => argument,
            None => panic!("argument {index} of {}", self.len()),
        }
    }

    /// The arguments in order.
    #[inline]
    pub fn iter(&self) -> ArgsIter<'a> {
        ArgsIter { args: *self, front: 0, back: self.len() }
    }

    /// The arguments from index `from` on; empty when there are fewer.
    pub fn slice(&self, from: usize) -> Args<'a> {
        let from = from.min(self.len());
        Args(match self.0 {
            Source::Ranges { base, ranges } => Source::Ranges { base, ranges: ranges.get(from..).unwrap_or(&[]) },
            Source::Slices(slices) => Source::Slices(slices.get(from..).unwrap_or(&[])),
        })
    }

    /// Bytes of all arguments together, without protocol overhead. Walks the list.
    pub fn count_bytes(&self) -> usize {
        self.iter().map(<[u8]>::len).sum()
    }

    /// A copy that owns its bytes, for a request that outlives its buffer (MULTI, a parked command).
    pub fn to_owned_args(&self) -> OwnedArgs {
        let mut owned =
            OwnedArgs { bytes: Vec::with_capacity(self.count_bytes()), ranges: Vec::with_capacity(self.len()) };
        for argument in self.iter() {
            owned.push(argument);
        }
        owned
    }
}

impl Index<usize> for Args<'_> {
    type Output = [u8];

    #[inline]
    #[track_caller]
    fn index(&self, index: usize) -> &[u8] {
        self.at(index)
    }
}

impl<'a> IntoIterator for Args<'a> {
    type Item = &'a [u8];
    type IntoIter = ArgsIter<'a>;

    fn into_iter(self) -> ArgsIter<'a> {
        self.iter()
    }
}

impl<'a> IntoIterator for &Args<'a> {
    type Item = &'a [u8];
    type IntoIter = ArgsIter<'a>;

    fn into_iter(self) -> ArgsIter<'a> {
        self.iter()
    }
}

impl std::fmt::Debug for Args<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter().map(|argument| argument.escape_ascii().to_string())).finish()
    }
}

/// Iterator over the arguments of an [`Args`].
#[derive(Clone)]
pub struct ArgsIter<'a> {
    args: Args<'a>,
    front: usize,
    back: usize,
}

impl<'a> Iterator for ArgsIter<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        if self.front >= self.back {
            return None;
        }
        let argument = self.args.get(self.front);
        self.front += 1;
        argument
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.back - self.front;
        (left, Some(left))
    }
}

impl DoubleEndedIterator for ArgsIter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.front >= self.back {
            return None;
        }
        self.back -= 1;
        self.args.get(self.back)
    }
}

impl ExactSizeIterator for ArgsIter<'_> {}

/// An argument list that owns its bytes: two allocations, however many arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnedArgs {
    bytes: Vec<u8>,
    ranges: Vec<Range>,
}

impl OwnedArgs {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a copy of `argument`.
    pub fn push(&mut self, argument: &[u8]) {
        self.ranges.push(Range { start: self.bytes.len(), len: argument.len() });
        self.bytes.extend_from_slice(argument);
    }

    /// The view that commands take.
    pub fn as_args(&self) -> Args<'_> {
        Args::from_ranges(&self.bytes, &self.ranges)
    }

    /// Number of arguments.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Whether there is no argument.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Bytes of memory held by the list, for accounting.
    pub fn used_bytes(&self) -> usize {
        self.bytes.capacity() + self.ranges.capacity() * size_of::<Range>()
    }
}

impl<T: AsRef<[u8]>> FromIterator<T> for OwnedArgs {
    fn from_iter<I: IntoIterator<Item = T>>(arguments: I) -> Self {
        let mut owned = OwnedArgs::new();
        for argument in arguments {
            owned.push(argument.as_ref());
        }
        owned
    }
}

impl From<Vec<Vec<u8>>> for OwnedArgs {
    fn from(arguments: Vec<Vec<u8>>) -> Self {
        arguments.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]
    use super::*;

    #[test]
    fn both_sources_look_the_same() {
        let slices: [&[u8]; 3] = [b"SET", b"", b"value"];
        let owned = OwnedArgs::from(slices.iter().map(|s| s.to_vec()).collect::<Vec<_>>());
        for args in [Args::from_slices(&slices), owned.as_args()] {
            assert_eq!(args.len(), 3);
            assert_eq!(&args[2], b"value");
            assert_eq!(args.get(1), Some(&b""[..]));
            assert_eq!(args.get(3), None);
            assert_eq!(args.iter().collect::<Vec<_>>(), slices);
            assert_eq!(args.iter().next_back(), Some(&b"value"[..]));
            assert_eq!(args.slice(1).len(), 2);
            assert_eq!(args.slice(1).slice(1).at(0), b"value");
            assert!(args.slice(9).is_empty());
            assert_eq!(args.to_owned_args(), owned);
            assert_eq!(args.count_bytes(), 8);
        }
    }
}
