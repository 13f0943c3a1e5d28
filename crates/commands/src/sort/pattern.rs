//! Patterns of BY and GET: `weight_*`, `object_*->name`, `#`.

use keyspace::{DbView, StrRef, ValueRef};
use rdb::listpack::Elem;

/// A pattern, taken apart.
pub(super) enum Pattern<'a> {
    /// `#`: the element itself.
    Itself,
    /// No `*`: nothing is ever found.
    Constant,
    /// What stands before and behind the `*`, and the field of a hash.
    Key {
        /// Before the element.
        prefix: &'a [u8],
        /// Behind it.
        postfix: &'a [u8],
        /// Behind `->`, if something is.
        field: Option<&'a [u8]>,
    },
}

/// What a pattern found for an element.
pub(super) enum Found<'a> {
    /// Nothing.
    Nothing,
    /// The element itself, or a string's bytes.
    Bytes(&'a [u8]),
    /// An integer.
    Int(i64),
}

impl<'a> Pattern<'a> {
    /// Takes a pattern apart at its first `*` and the first `->` behind that.
    pub(super) fn new(text: &'a [u8]) -> Pattern<'a> {
        if text == b"#" {
            return Pattern::Itself;
        }
        let Some(star) = text.iter().position(|byte| *byte == b'*') else { return Pattern::Constant };
        let (prefix, behind) = (text.get(..star).unwrap_or(&[]), text.get(star + 1..).unwrap_or(&[]));
        let arrow = behind.windows(2).position(|pair| pair == b"->");
        match arrow.and_then(|arrow| Some((behind.get(..arrow)?, behind.get(arrow + 2..)?))) {
            Some((postfix, field)) if !field.is_empty() => Pattern::Key { prefix, postfix, field: Some(field) },
            // An arrow with nothing behind it belongs to the key.
            _ => Pattern::Key { prefix, postfix: behind, field: None },
        }
    }

    /// Whether there is a `*`, so that it names other keys.
    pub(super) fn has_star(&self) -> bool {
        matches!(self, Pattern::Key { .. })
    }

    /// The key that it names for an element; empty when it names none.
    pub(super) fn key(&self, element: &[u8]) -> Vec<u8> {
        match self {
            Pattern::Key { prefix, postfix, .. } => [prefix, element, postfix].concat(),
            Pattern::Itself | Pattern::Constant => Vec::new(),
        }
    }

    /// What it finds for an element: the look-up of a reading command.
    pub(super) fn look_up<'d>(&self, db: &'d mut DbView<'_>, element: &'d [u8]) -> Found<'d> {
        let field = match self {
            Pattern::Itself => return Found::Bytes(element),
            Pattern::Constant => return Found::Nothing,
            Pattern::Key { field, .. } => field,
        };
        match (db.read(&self.key(element)), field) {
            (Some(ValueRef::Str(StrRef::Bytes(bytes))), None) => Found::Bytes(bytes),
            (Some(ValueRef::Str(StrRef::Int(number))), None) => Found::Int(number),
            (Some(ValueRef::Hash(hash)), Some(field)) => match hash.get(field) {
                Some(Elem::Bytes(bytes)) => Found::Bytes(bytes),
                Some(Elem::Int(number)) => Found::Int(number),
                None => Found::Nothing,
            },
            _ => Found::Nothing,
        }
    }
}

impl Found<'_> {
    /// Lends the bytes.
    pub(super) fn with_bytes<R>(&self, work: impl FnOnce(Option<&[u8]>) -> R) -> R {
        match self {
            Found::Nothing => work(None),
            Found::Bytes(bytes) => work(Some(bytes)),
            Found::Int(number) => work(Some(itoa::Buffer::new().format(*number).as_bytes())),
        }
    }

    /// A copy of the bytes.
    pub(super) fn to_vec(&self) -> Option<Vec<u8>> {
        self.with_bytes(|bytes| bytes.map(<[u8]>::to_vec))
    }
}
