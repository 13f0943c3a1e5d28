//! The list object: one listpack, or a quicklist of listpacks.
//!
//! ```text
//! List (8 bytes, tagged) ─► listpack                               up to list-max-listpack-size
//!                        └► Quicklist ─► Sequence (counted tree) ─► nodes: listpack | one large element
//! ```
//!
//! Redis: a list starts as a listpack, becomes a quicklist before an addition that would pass the limit of one node,
//! and turns back once one node is left with at most half of that limit (the whole limit right after loading).
//! The same rules decide everything that OBJECT ENCODING and DUMP show.
//!
//! Start at [`List`]; [`quicklist`] has the rules of nodes, [`sequence`] finds them.

use std::fmt;
use std::ops;

use rdb::listpack::{Elem, Listpack};

use crate::tagged::{Choice, Tagged};

mod needle;
mod node;
mod quicklist;
mod range;
mod sequence;
#[cfg(test)]
mod tests;

pub use range::Range;

use needle::Needle;
use node::{Node, delete_range};
use quicklist::{Quicklist, exceeds_limit, node_limit};
use range::Form;

/// What the configuration says about lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ListLimits {
    /// `list-max-listpack-size`: elements per node, or −1 … −5 for 4 … 64 KiB.
    pub max_listpack_size: i32,
    /// Bytes from which an element gets a node of its own (`DEBUG QUICKLIST-PACKED-THRESHOLD`).
    pub packed_threshold: usize,
}

impl Default for ListLimits {
    fn default() -> Self {
        ListLimits { max_listpack_size: -2, packed_threshold: 1 << 30 }
    }
}

/// An end of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The head: index 0.
    Front,
    /// The tail.
    Back,
}

/// A side of an element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Towards the head.
    Before,
    /// Towards the tail.
    After,
}

/// How a node is saved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeBytes<'a> {
    /// The bytes of a listpack.
    Packed(&'a [u8]),
    /// One large element.
    Plain(&'a [u8]),
}

/// A list: 8 bytes, whatever it holds.
///
/// An operation that leaves the list empty leaves an empty object; the caller deletes the key.
#[repr(transparent)]
pub struct List {
    form: Tagged<Listpack, Quicklist>,
}

const _: () = assert!(size_of::<List>() == 8);

impl List {
    /// An empty list.
    pub fn new() -> List {
        List::from_listpack(Listpack::new())
    }

    /// A list of a listpack's elements.
    pub fn from_listpack(pack: Listpack) -> List {
        List { form: Tagged::thin(pack) }
    }

    /// Number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        match self.form() {
            Form::Pack(pack) => pack.len(),
            Form::Quick(quick) => quick.len(),
        }
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What OBJECT ENCODING answers: `listpack` or `quicklist`.
    pub fn encoding(&self) -> &'static str {
        match self.form() {
            Form::Pack(_) => "listpack",
            Form::Quick(_) => "quicklist",
        }
    }

    /// The listpack, if the list is one.
    pub fn as_listpack(&self) -> Option<&Listpack> {
        match self.form() {
            Form::Pack(pack) => Some(pack),
            Form::Quick(_) => None,
        }
    }

    /// Pushes one element.
    pub fn push(&mut self, end: End, value: &[u8], limits: &ListLimits) {
        self.make_room(value.len(), 1, limits);
        self.push_unchecked(end, value, limits);
    }

    /// Pushes elements in order.
    ///
    /// Redis: the lengths of all of them together decide beforehand whether the list becomes a quicklist.
    pub fn push_all<'v>(&mut self, end: End, values: impl Iterator<Item = &'v [u8]> + Clone, limits: &ListLimits) {
        let (bytes, count) = values.clone().fold((0, 0), |(bytes, count), value| (bytes + value.len(), count + 1));
        self.make_room(bytes, count, limits);
        for value in values {
            self.push_unchecked(end, value, limits);
        }
    }

    /// Removes the element at that end and gives it to `with`.
    pub fn pop<R>(&mut self, end: End, limits: &ListLimits, with: impl FnOnce(Elem<'_>) -> R) -> Option<R> {
        let result = self.pop_unsettled(end, with);
        self.settle(limits);
        result
    }

    /// Moves the element at `from` to `to` (LMOVE onto the same key) and gives its bytes.
    ///
    /// Redis: the conversion back to a listpack waits until the element is in again.
    pub fn rotate(&mut self, from: End, to: End, limits: &ListLimits) -> Option<Vec<u8>> {
        let value = self.pop_unsettled(from, |elem| elem.to_vec())?;
        self.push(to, &value, limits);
        self.settle(limits);
        Some(value)
    }

    /// The element at `index` from the head.
    pub fn get(&self, index: usize) -> Option<Elem<'_>> {
        match self.form() {
            Form::Pack(pack) => pack.get_index(i64::try_from(index).ok()?),
            Form::Quick(quick) => {
                let (node, start) = quick.nodes().node_at(index)?;
                node.get(index - start)
            }
        }
    }

    /// Replaces the element at `index`; false if there is none.
    ///
    /// Redis: a listpack that `value` would overfill becomes a quicklist even when the index is out of range.
    pub fn set(&mut self, index: usize, value: &[u8], limits: &ListLimits) -> bool {
        self.make_room(value.len(), 1, limits);
        if index >= self.len() {
            return false;
        }
        match self.form.get_mut() {
            Choice::Thin(pack) => {
                if let Some(pos) = i64::try_from(index).ok().and_then(|index| pack.seek(index)) {
                    pack.replace(pos, value);
                }
            }
            Choice::Boxed(quick) => quick.replace(index, value, limits),
            Choice::Third(_) => {}
        }
        self.settle(limits);
        true
    }

    /// Inserts `value` beside the first element equal to `pivot`; false if there is none.
    ///
    /// Redis: a listpack that `value` would overfill becomes a quicklist even when the pivot is missing.
    pub fn insert(&mut self, pivot: &[u8], side: Side, value: &[u8], limits: &ListLimits) -> bool {
        self.make_room(value.len(), 1, limits);
        let Some(index) = self.positions(pivot, End::Front, usize::MAX).next() else { return false };
        match self.form.get_mut() {
            Choice::Thin(pack) => {
                if let Some(pos) = i64::try_from(index).ok().and_then(|index| pack.seek(index)) {
                    match side {
                        Side::Before => pack.insert_before(pos, value),
                        Side::After => pack.insert_after(pos, value),
                    };
                }
            }
            Choice::Boxed(quick) => quick.insert(index, side, value, limits),
            Choice::Third(_) => {}
        }
        true
    }

    /// Removes up to `max` elements equal to `value`, from that end on; returns how many.
    pub fn remove(&mut self, value: &[u8], from: End, max: usize, limits: &ListLimits) -> usize {
        let needle = Needle::new(value);
        let removed = match self.form.get_mut() {
            Choice::Thin(pack) => remove_packed(pack, &needle, from, max),
            Choice::Boxed(quick) => quick.remove(from, max, &needle),
            Choice::Third(_) => 0,
        };
        if removed > 0 {
            self.settle(limits);
        }
        removed
    }

    /// Keeps only the elements with an index in `kept`.
    pub fn trim(&mut self, kept: ops::Range<usize>, limits: &ListLimits) {
        let len = self.len();
        let end = kept.end.min(len);
        let (front, back) = if kept.start >= end { (len, 0) } else { (kept.start, len - end) };
        match self.form.get_mut() {
            Choice::Thin(pack) => {
                delete_range(pack, 0, front);
                delete_range(pack, len - front - back, back);
            }
            Choice::Boxed(quick) => {
                quick.delete_range(0, front);
                quick.delete_range(len - front - back, back);
            }
            Choice::Third(_) => {}
        }
        self.settle(limits);
    }

    /// Up to `count` elements from `start` on towards the tail.
    pub fn range(&self, start: usize, count: usize) -> Range<'_> {
        Range::forward(self.form(), start, count)
    }

    /// Up to `count` elements from `start` on towards the head.
    pub fn range_back(&self, start: usize, count: usize) -> Range<'_> {
        Range::backward(self.form(), start, count)
    }

    /// All elements from the head.
    pub fn iter(&self) -> Range<'_> {
        self.range(0, self.len())
    }

    /// Indices of the elements equal to `value`, in the order met from that end, among the first `max_compared`.
    ///
    /// LPOS: RANK skips, COUNT takes, MAXLEN is `max_compared`.
    pub fn positions(&self, value: &[u8], from: End, max_compared: usize) -> impl Iterator<Item = usize> {
        let needle = Needle::new(value);
        let len = self.len();
        let (elements, first) = match from {
            End::Front => (self.range(0, len.min(max_compared)), 0),
            End::Back => (self.range_back(len.saturating_sub(1), len.min(max_compared)), len.saturating_sub(1)),
        };
        elements.enumerate().filter_map(move |(step, elem)| {
            needle.equals(elem).then_some(match from {
                End::Front => step,
                End::Back => first - step,
            })
        })
    }

    /// Number of nodes (1 for a listpack): `ql_nodes` of DEBUG OBJECT.
    pub fn nodes_len(&self) -> usize {
        match self.form() {
            Form::Pack(_) => 1,
            Form::Quick(quick) => quick.nodes().nodes(),
        }
    }

    /// The bytes of each node from the head: what RDB and DUMP hold.
    pub fn nodes(&self) -> impl Iterator<Item = NodeBytes<'_>> {
        let (single, nodes) = match self.form() {
            Form::Pack(pack) => (Some(NodeBytes::Packed(pack.as_bytes())), None),
            Form::Quick(quick) => (None, Some(quick.nodes().iter())),
        };
        single.into_iter().chain(nodes.into_iter().flatten().map(|node| match node {
            Node::Packed { pack, .. } => NodeBytes::Packed(pack.as_bytes()),
            Node::Plain(plain) => NodeBytes::Plain(&plain.bytes),
        }))
    }

    /// Heap bytes behind the pointer.
    pub fn memory_bytes(&self) -> usize {
        match self.form() {
            Form::Pack(pack) => pack.allocated_bytes(),
            Form::Quick(quick) => size_of::<Quicklist>() + quick.nodes().memory_bytes(),
        }
    }

    /// Asserts the invariants of every level.
    pub fn check(&self) {
        match self.form() {
            Form::Pack(pack) => pack.check(),
            Form::Quick(quick) => quick.nodes().check(),
        }
    }

    fn form(&self) -> Form<'_> {
        match self.form.get() {
            Choice::Thin(pack) => Form::Pack(pack),
            Choice::Boxed(quick) => Form::Quick(quick),
            Choice::Third(third) => match *third {},
        }
    }

    /// Makes a listpack a quicklist if what is to come would pass a node's limit.
    fn make_room(&mut self, added_bytes: usize, added_count: usize, limits: &ListLimits) {
        let Form::Pack(pack) = self.form() else { return };
        let (bytes, count) = (pack.bytes_len() + added_bytes, pack.len() + added_count);
        if !exceeds_limit(limits.max_listpack_size, bytes, count) {
            return;
        }
        let mut quick = Box::new(Quicklist::new(limits.max_listpack_size));
        let old = std::mem::replace(&mut self.form, Tagged::thin(Listpack::new()));
        if let Choice::Thin(pack) = old.into_inner() {
            quick.append_listpack(pack);
        }
        self.form = Tagged::boxed(quick);
    }

    #[inline]
    fn push_unchecked(&mut self, end: End, value: &[u8], limits: &ListLimits) {
        match self.form.get_mut() {
            Choice::Thin(pack) => match end {
                End::Front => pack.prepend(value),
                End::Back => pack.append(value),
            },
            Choice::Boxed(quick) => quick.push(end, value, limits),
            Choice::Third(_) => {}
        }
    }

    fn pop_unsettled<R>(&mut self, end: End, with: impl FnOnce(Elem<'_>) -> R) -> Option<R> {
        match self.form.get_mut() {
            Choice::Thin(pack) => {
                let pos = match end {
                    End::Front => pack.first(),
                    End::Back => pack.last(),
                }?;
                let result = with(pack.get(pos));
                pack.delete(pos);
                Some(result)
            }
            Choice::Boxed(quick) => quick.pop(end, with),
            Choice::Third(_) => None,
        }
    }

    /// After a removal: one node within half the limit becomes the listpack.
    #[inline]
    fn settle(&mut self, limits: &ListLimits) {
        self.settle_within(limits, 2);
    }

    fn settle_within(&mut self, limits: &ListLimits, divisor: usize) {
        let Choice::Boxed(quick) = self.form.get_mut() else { return };
        let (max_bytes, max_count) = node_limit(limits.max_listpack_size);
        // Redis divides its "unlimited" too, where it changes nothing.
        let fits = |bytes, count| bytes <= max_bytes / divisor && count <= max_count / divisor;
        if let Some(pack) = quick.take_single(fits) {
            self.form = Tagged::thin(pack);
        }
    }
}

impl Default for List {
    fn default() -> Self {
        List::new()
    }
}

impl Clone for List {
    fn clone(&self) -> Self {
        let form = match self.form() {
            Form::Pack(pack) => Tagged::thin(pack.clone()),
            Form::Quick(quick) => Tagged::boxed(Box::new(quick.clone())),
        };
        List { form }
    }
}

impl fmt::Debug for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Builds a list from saved nodes or single elements.
#[derive(Debug)]
pub struct ListBuilder {
    list: List,
    limits: ListLimits,
}

impl ListBuilder {
    /// An empty quicklist.
    pub fn new(limits: ListLimits) -> ListBuilder {
        let form = Tagged::boxed(Box::new(Quicklist::new(limits.max_listpack_size)));
        ListBuilder { list: List { form }, limits }
    }

    /// Adds a node of elements at the tail; an empty listpack adds nothing.
    pub fn append_listpack(&mut self, pack: Listpack) {
        if let Choice::Boxed(quick) = self.list.form.get_mut() {
            quick.append_listpack(pack);
        }
    }

    /// Adds a node of one large element at the tail.
    pub fn append_plain(&mut self, bytes: &[u8]) {
        if let Choice::Boxed(quick) = self.list.form.get_mut() {
            quick.append_plain(bytes);
        }
    }

    /// Adds an element at the tail.
    pub fn push_back(&mut self, value: &[u8]) {
        self.list.push_unchecked(End::Back, value, &self.limits);
    }

    /// The list: a listpack if one node within the limit came of it.
    pub fn finish(mut self) -> List {
        self.list.settle_within(&self.limits, 1);
        if self.list.is_empty() {
            return List::new();
        }
        self.list
    }
}

fn remove_packed(pack: &mut Listpack, needle: &Needle<'_>, from: End, max: usize) -> usize {
    let taken = std::mem::take(pack);
    let mut node = Node::packed(taken);
    let mut found = Vec::new();
    match from {
        End::Front => node.matches(needle, max, &mut found),
        End::Back => {
            node.matches(needle, usize::MAX, &mut found);
            let surplus = found.len().saturating_sub(max);
            found.drain(..surplus);
        }
    }
    quicklist::delete_offsets(&mut node, &found);
    if let Node::Packed { pack: left, .. } = node {
        *pack = left;
    }
    found.len()
}
