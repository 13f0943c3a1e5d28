//! The big form of a list: nodes in a counted tree.
//!
//! Redis: the borders between nodes follow 7.2's rules exactly (which node takes an insertion, how a full one is
//! split, what is joined again), because OBJECT ENCODING, DEBUG OBJECT and DUMP show them: a quicklist turns back into
//! a listpack only when one node is left.

use rdb::listpack::{Elem, Listpack};

use super::needle::Needle;
use super::node::Node;
use super::sequence::Sequence;
use super::{End, ListLimits, Side};

/// Size in bytes of the fills -1 to -5.
const FILL_BYTES: [usize; 5] = [4096, 8192, 16384, 32768, 65536];
/// Bytes a node may have when the fill is a count.
const SIZE_SAFETY_BYTES: usize = 8192;
/// What an element is assumed to add to its own length.
const ELEMENT_OVERHEAD_BYTES: usize = 8;
/// Bounds of the room that the head node keeps for further pushes, in bytes.
const FRONT_ROOM_MIN: usize = 64;
const FRONT_ROOM_MAX: usize = 1024;
/// Header and end mark of a listpack.
const EMPTY_BYTES: usize = 7;

/// Node limits of `list-max-listpack-size`: bytes and elements, one of them unlimited.
pub(super) fn node_limit(fill: i32) -> (usize, usize) {
    match usize::try_from(fill) {
        Ok(count) => (usize::MAX, count.max(1)),
        Err(_) => {
            let level = usize::try_from(-(i64::from(fill)) - 1).unwrap_or(0).min(FILL_BYTES.len() - 1);
            (FILL_BYTES[level], usize::MAX)
        }
    }
}

/// Whether a node of that size and count is over the fill's limit.
pub(super) fn exceeds_limit(fill: i32, bytes: usize, count: usize) -> bool {
    let (max_bytes, max_count) = node_limit(fill);
    if max_bytes != usize::MAX {
        return bytes > max_bytes;
    }
    bytes > SIZE_SAFETY_BYTES || count > max_count
}

/// Nodes and the fill they were made for.
///
/// Redis: a quicklist keeps the fill of the moment it was made, whatever is configured later.
#[derive(Clone)]
pub(super) struct Quicklist {
    nodes: Sequence,
    fill: i32,
}

impl Quicklist {
    pub(super) fn new(fill: i32) -> Quicklist {
        Quicklist { nodes: Sequence::new(), fill: fill.clamp(-5, i32::from(i16::MAX)) }
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.count()
    }

    pub(super) fn nodes(&self) -> &Sequence {
        &self.nodes
    }

    /// Adds a listpack as a node at the tail; an empty one is dropped.
    pub(super) fn append_listpack(&mut self, pack: Listpack) {
        if !pack.is_empty() {
            self.nodes.insert(self.nodes.count(), Node::packed(pack));
        }
    }

    /// Adds an element as a plain node at the tail.
    pub(super) fn append_plain(&mut self, bytes: &[u8]) {
        self.nodes.insert(self.nodes.count(), Node::plain(bytes));
    }

    pub(super) fn push(&mut self, end: End, value: &[u8], limits: &ListLimits) {
        let (edge, boundary) = match end {
            End::Front => (self.nodes.first(), 0),
            End::Back => (self.nodes.last(), self.nodes.count()),
        };
        if value.len() >= limits.packed_threshold {
            self.nodes.insert(boundary, Node::plain(value));
        } else if self.allows_insert(edge, value.len(), limits) {
            match (self.nodes.grow_edge(end), end) {
                (Some(node), End::Front) => push_front(node, value),
                (Some(node), End::Back) => append(node, value),
                (None, _) => {}
            }
        } else {
            if end == End::Front {
                self.nodes.update(0, |node, _| node.close_gap());
            }
            self.nodes.insert(boundary, Node::single(value));
        }
    }

    pub(super) fn pop<R>(&mut self, end: End, with: impl FnOnce(Elem<'_>) -> R) -> Option<R> {
        let take = |node: &mut Node, _| match node {
            Node::Packed { pack, count } => {
                let pos = match end {
                    End::Front => pack.first(),
                    End::Back => pack.last(),
                }?;
                let result = with(pack.get(pos));
                match end {
                    End::Front => pack.delete_first(pack.bytes_len() / 2),
                    End::Back => {
                        pack.delete(pos);
                    }
                }
                *count -= 1;
                Some(result)
            }
            Node::Plain(plain) => {
                let result = with(Elem::Bytes(&plain.bytes));
                node.delete_range(0, 1);
                Some(result)
            }
        };
        match end {
            End::Front => self.nodes.update(0, take).flatten(),
            End::Back => self.nodes.update_last(take).flatten(),
        }
    }

    /// Inserts beside the element `index`.
    pub(super) fn insert(&mut self, index: usize, side: Side, value: &[u8], limits: &ListLimits) {
        let Some((node, start)) = self.nodes.node_at(index) else { return };
        let after = side == Side::After;
        let (offset, count) = (index - start, node.count());
        let at_edge = if after { offset + 1 == count } else { offset == 0 };
        // Index the new element will have.
        let place = index + usize::from(after);
        if value.len() >= limits.packed_threshold {
            if !at_edge {
                self.split(place);
            }
            self.nodes.insert(place, Node::plain(value));
            return;
        }
        if self.allows_insert(Some(node), value.len(), limits) {
            self.nodes.update(index, |node, offset| insert_in(node, offset, side, value));
            return;
        }
        if !at_edge {
            self.split(place);
            // The value joins the part that does not hold the pivot; the pivot's part is the centre of the merge.
            if after {
                self.nodes.update(place, |node, _| prepend(node, value));
                self.merge_around(index);
            } else {
                self.nodes.update(place - 1, |node, _| append(node, value));
                self.merge_around(index + 1);
            }
            return;
        }
        let neighbour = if after { Some(start + count) } else { start.checked_sub(1) };
        let neighbour = neighbour.filter(|&beside| {
            let node = self.nodes.node_at(beside).map(|(node, _)| node);
            self.allows_insert(node, value.len(), limits)
        });
        match neighbour {
            Some(beside) if after => {
                self.nodes.update(beside, |node, _| prepend(node, value));
            }
            Some(beside) => {
                self.nodes.update(beside, |node, _| append(node, value));
            }
            None => self.nodes.insert(place, Node::single(value)),
        }
    }

    /// Replaces the element `index`.
    pub(super) fn replace(&mut self, index: usize, value: &[u8], limits: &ListLimits) {
        let Some((node, start)) = self.nodes.node_at(index) else { return };
        let large = value.len() >= limits.packed_threshold;
        let count = node.count();
        match (node.is_plain(), large) {
            // Redis: a replacement in a listpack does not look at the node's limit.
            (false, false) => {
                self.nodes.update(index, |node, offset| {
                    let Node::Packed { pack, .. } = node else { return };
                    if let Some(pos) = i64::try_from(offset).ok().and_then(|offset| pack.seek(offset)) {
                        pack.replace(pos, value);
                    }
                });
            }
            (true, true) => {
                self.nodes.update(index, |node, _| *node = Node::plain(value));
            }
            (true, false) => {
                self.insert(index, Side::After, value, limits);
                self.nodes.remove(index);
            }
            (false, true) => {
                if index + 1 < start + count {
                    self.split(index + 1);
                }
                self.nodes.insert(index + 1, Node::plain(value));
                let alone = self.nodes.node_at(index).is_some_and(|(node, _)| node.count() == 1);
                self.delete_range(index, 1);
                if !alone {
                    self.merge_around(index);
                }
            }
        }
    }

    pub(super) fn delete_range(&mut self, start: usize, count: usize) {
        let mut rest = count.min(self.len().saturating_sub(start));
        while rest > 0 {
            let Some((node, first)) = self.nodes.node_at(start) else { return };
            let (offset, count) = (start - first, node.count());
            let deleted = rest.min(count - offset);
            if deleted == count {
                self.nodes.remove(start);
            } else {
                self.nodes.update(start, |node, offset| node.delete_range(offset, deleted));
            }
            rest -= deleted;
        }
    }

    /// Deletes up to `max` elements equal to `needle`, from that end on; returns how many.
    pub(super) fn remove(&mut self, end: End, max: usize, needle: &Needle<'_>) -> usize {
        let mut removed = 0;
        // Elements already looked at, on the side of `end`.
        let mut seen = 0;
        let mut found = Vec::new();
        while removed < max && seen < self.len() {
            let index = match end {
                End::Front => seen,
                End::Back => self.len() - 1 - seen,
            };
            let Some((node, first)) = self.nodes.node_at(index) else { break };
            let count = node.count();
            found.clear();
            match end {
                End::Front => node.matches(needle, max - removed, &mut found),
                End::Back => {
                    node.matches(needle, usize::MAX, &mut found);
                    let surplus = found.len().saturating_sub(max - removed);
                    found.drain(..surplus);
                }
            }
            if !found.is_empty() {
                self.nodes.update(first, |node, _| delete_offsets(node, &found));
            }
            removed += found.len();
            seen += count - found.len();
        }
        removed
    }

    /// Makes `boundary`, inside a node, the border of two.
    fn split(&mut self, boundary: usize) {
        let right = self.nodes.update(boundary, |node, offset| {
            let Node::Packed { pack, count } = node else { return None };
            let pos = pack.seek(i64::try_from(offset).ok()?)?;
            let right = Node::packed(pack.split_off(pos));
            *count -= u32::try_from(right.count()).ok()?;
            Some(right)
        });
        if let Some(right) = right.flatten() {
            self.nodes.insert(boundary, right);
        }
    }

    /// Joins the nodes around the one that holds `centre` where the fill allows: the two before it, the two after
    /// it, then itself with what is now before and after.
    fn merge_around(&mut self, centre: usize) {
        let Some((node, start)) = self.nodes.node_at(centre) else { return };
        let end = start + node.count();
        let before = start.checked_sub(1).and_then(|index| self.nodes.node_at(index)).map(|(_, first)| first);
        let after = self.nodes.node_at(end).map(|(node, first)| first + node.count());
        if let Some(before) = before {
            self.merge_at(before);
        }
        if let Some(after) = after {
            self.merge_at(after);
        }
        self.merge_at(start);
        self.merge_at(end);
    }

    /// Joins the nodes on both sides of `boundary` if the fill allows.
    fn merge_at(&mut self, boundary: usize) {
        let Some(last_left) = boundary.checked_sub(1) else { return };
        let (Some((left, _)), Some((right, first))) = (self.nodes.node_at(last_left), self.nodes.node_at(boundary))
        else {
            return;
        };
        if first != boundary || left.is_plain() || right.is_plain() {
            return;
        }
        let bytes = left.size() + right.size() - EMPTY_BYTES;
        if exceeds_limit(self.fill, bytes, left.count() + right.count()) {
            return;
        }
        let Some(Node::Packed { pack: right, .. }) = self.nodes.remove(boundary) else { return };
        self.nodes.update(last_left, |node, _| {
            let Node::Packed { pack, count } = node else { return };
            pack.append_all(&right);
            *count = u32::try_from(pack.len()).unwrap_or(u32::MAX);
        });
    }

    #[inline]
    fn allows_insert(&self, node: Option<&Node>, value_len: usize, limits: &ListLimits) -> bool {
        match node {
            Some(Node::Packed { pack, count }) if value_len < limits.packed_threshold => {
                let bytes = pack.bytes_len() + value_len + ELEMENT_OVERHEAD_BYTES;
                !exceeds_limit(self.fill, bytes, *count as usize + 1)
            }
            _ => false,
        }
    }

    /// The listpack of the only node, if `fits` holds for its bytes and elements.
    pub(super) fn take_single(&mut self, fits: impl FnOnce(usize, usize) -> bool) -> Option<Listpack> {
        if self.nodes.nodes() != 1 {
            return None;
        }
        match self.nodes.first()? {
            Node::Packed { pack, count } if fits(pack.bytes_len(), *count as usize) => {}
            _ => return None,
        }
        match self.nodes.remove(0)? {
            Node::Packed { mut pack, .. } => {
                pack.close_gap();
                Some(pack)
            }
            Node::Plain(_) => None,
        }
    }
}

/// [`prepend`] to the head of the list, where more will come: its listpack keeps room in front, a share of its size, so
/// that a push moves what is there only now and then.
#[inline]
fn push_front(node: &mut Node, value: &[u8]) {
    if let Node::Packed { pack, count } = node {
        pack.push_front(value, pack.bytes_len().clamp(FRONT_ROOM_MIN, FRONT_ROOM_MAX));
        *count += 1;
    }
}

fn prepend(node: &mut Node, value: &[u8]) {
    if let Node::Packed { pack, count } = node {
        pack.prepend(value);
        *count += 1;
    }
}

fn append(node: &mut Node, value: &[u8]) {
    if let Node::Packed { pack, count } = node {
        pack.append(value);
        *count += 1;
    }
}

fn insert_in(node: &mut Node, offset: usize, side: Side, value: &[u8]) {
    let Node::Packed { pack, count } = node else { return };
    let Some(pos) = i64::try_from(offset).ok().and_then(|offset| pack.seek(offset)) else { return };
    match side {
        Side::Before => pack.insert_before(pos, value),
        Side::After => pack.insert_after(pos, value),
    };
    *count += 1;
}

/// Deletes the elements at those ascending offsets, runs of neighbours at once.
pub(super) fn delete_offsets(node: &mut Node, offsets: &[usize]) {
    let mut end = offsets.len();
    while end > 0 {
        let mut start = end - 1;
        while start > 0 && offsets[start - 1] + 1 == offsets[start] {
            start -= 1;
        }
        node.delete_range(offsets[start], end - start);
        end = start;
    }
}
