//! Order-statistic B+tree of the big form.
//!
//! ```text
//! Branch (2 KiB): up to 42 × { smallest entry below, count below, child }
//! Leaf          : up to 64 × { score f64, member handle }, a Vec that grows by 8 entries (128 bytes)
//! ```
//!
//! Leaves grow in steps of an allocator class instead of being kept full by moves between siblings: after a split
//! in the middle both halves take exactly their size, so the waste is at most 7 entries of 32..64 for any order of
//! insertion. A split at either end of the tree leaves the old leaf full and opens a new one (append-optimised).
//!
//! A member costs 16 bytes × (1 + about 8 %) in its leaf and 48 / (45 × 0.75) = 1.4 bytes above it. A search in 1M
//! members reads 3 branches (about 4 lines each, the upper two levels stay cached) and about 4 lines of the leaf;
//! member blobs are read only to compare equal scores.
//!
//! Invariants: entries ascend strictly; all leaves have one depth; no node except an empty root leaf is empty;
//! a branch's counts and smallest entries are those of its children; a root branch has at least two children.

use std::cmp::Ordering;

use super::member::MemberRef;

/// One member in order: its score and its blob.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) score: f64,
    pub(super) member: MemberRef,
}

impl Entry {
    const VACANT: Entry = Entry { score: 0.0, member: MemberRef::VACANT };

    /// Order against a score and member: score, then bytes.
    #[inline]
    pub(super) fn compare(&self, score: f64, member: &[u8]) -> Ordering {
        if self.score < score {
            Ordering::Less
        } else if self.score > score {
            Ordering::Greater
        } else {
            self.member.bytes().cmp(member)
        }
    }
}

const LEAF_MAX: usize = 64;
const LEAF_STEP: usize = 8;
const BRANCH_MAX: usize = 42;
const _: () = assert!(size_of::<Branch>() <= 2048);
const _: () = assert!(size_of::<Node>() == 24);

struct Branch {
    len: usize,
    mins: [Entry; BRANCH_MAX],
    counts: [usize; BRANCH_MAX],
    kids: [Node; BRANCH_MAX],
}

enum Node {
    Leaf(Vec<Entry>),
    Branch(Box<Branch>),
}

/// Where to take entries from.
enum Place<'a> {
    Key(f64, &'a [u8]),
    Rank(usize),
}

/// The tree. It owns its members' blobs: [`Tree::free_members`] must be called before dropping a non-empty one.
pub(super) struct Tree {
    root: Node,
    len: usize,
}

impl Tree {
    pub(super) fn new() -> Tree {
        Tree { root: Node::Leaf(Vec::new()), len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Inserts an entry that is not in the tree.
    pub(super) fn insert(&mut self, entry: Entry) {
        let inserted = self.root.insert(entry, true, true);
        self.len += 1;
        if let Some(right) = inserted.split {
            let left = std::mem::replace(&mut self.root, Node::Leaf(Vec::new()));
            let mut branch = Branch::new();
            branch.insert(0, left);
            branch.insert(1, right);
            self.root = Node::Branch(branch);
        }
    }

    /// Takes out the entry of that score and member, if there.
    pub(super) fn remove(&mut self, score: f64, member: &[u8]) -> Option<Entry> {
        let mut removed = None;
        self.take(Place::Key(score, member), 1, &mut |entry| removed = Some(entry));
        removed
    }

    /// Takes out up to `max` entries from `rank` on, as many as lie in one leaf; returns how many.
    pub(super) fn take_at(&mut self, rank: usize, max: usize, sink: &mut dyn FnMut(Entry)) -> usize {
        if rank >= self.len {
            return 0;
        }
        self.take(Place::Rank(rank), max, sink)
    }

    fn take(&mut self, place: Place<'_>, max: usize, sink: &mut dyn FnMut(Entry)) -> usize {
        let (taken, _) = self.root.take(place, max, sink);
        self.len -= taken;
        while let Node::Branch(branch) = &mut self.root {
            match branch.len {
                0 => self.root = Node::Leaf(Vec::new()),
                1 => {
                    let only = branch.remove(0);
                    self.root = only;
                }
                _ => break,
            }
        }
        taken
    }

    /// Gives the entry of `score` and `member` a new score if its place among its leaf's neighbours allows it.
    pub(super) fn rescore_in_place(&mut self, score: f64, member: &[u8], new: f64) -> bool {
        let mut node = &mut self.root;
        loop {
            match node {
                Node::Branch(branch) => {
                    let at = branch.child_where(|entry| entry.compare(score, member) != Ordering::Greater);
                    let Some(kid) = branch.kids.get_mut(at) else { return false };
                    node = kid;
                }
                Node::Leaf(entries) => {
                    let at = entries.partition_point(|entry| entry.compare(score, member) == Ordering::Less);
                    // The first entry of a leaf is a separator above; only inner places are changed here.
                    if at == 0 || at + 1 >= entries.len() {
                        return false;
                    }
                    let fits = entries[at - 1].compare(new, member) == Ordering::Less
                        && entries[at + 1].compare(new, member) == Ordering::Greater;
                    if fits {
                        entries[at].score = new;
                    }
                    return fits;
                }
            }
        }
    }

    /// How many entries satisfy `before`, which holds for a prefix of the order.
    #[inline]
    pub(super) fn count_where(&self, before: impl Fn(&Entry) -> bool) -> usize {
        let mut rank = 0;
        let mut node = &self.root;
        loop {
            match node {
                Node::Branch(branch) => {
                    let at = branch.child_where(&before);
                    rank += branch.counts[..at].iter().sum::<usize>();
                    node = &branch.kids[at];
                }
                Node::Leaf(entries) => return rank + entries.partition_point(&before),
            }
        }
    }

    /// The leaf that holds `rank`, and the entry's place in it.
    pub(super) fn leaf_at(&self, rank: usize) -> Option<(&[Entry], usize)> {
        if rank >= self.len {
            return None;
        }
        let mut rest = rank;
        let mut node = &self.root;
        loop {
            match node {
                Node::Branch(branch) => {
                    let at = branch.child_of_rank(&mut rest);
                    node = &branch.kids[at];
                }
                Node::Leaf(entries) => return Some((entries, rest)),
            }
        }
    }

    pub(super) fn get(&self, rank: usize) -> Option<&Entry> {
        let (leaf, at) = self.leaf_at(rank)?;
        leaf.get(at)
    }

    /// Frees every member's blob and empties the tree.
    pub(super) fn free_members(&mut self) {
        let root = std::mem::replace(&mut self.root, Node::Leaf(Vec::new()));
        self.len = 0;
        root.free_members();
    }

    /// Bytes of nodes, before the allocator rounds up.
    pub(super) fn nodes_bytes(&self) -> usize {
        self.root.bytes()
    }

    /// Asserts the invariants.
    pub(super) fn check(&self) {
        let mut previous: Option<Entry> = None;
        let mut depth = None;
        let count = self.root.check(0, &mut depth, &mut previous);
        assert_eq!(count, self.len, "length");
        if let Node::Branch(branch) = &self.root {
            assert!(branch.len >= 2, "a root branch has two children");
        }
    }
}

/// What an insertion below did.
struct Inserted {
    /// A new right sibling.
    split: Option<Node>,
    /// Whether the entry is the new smallest of the node.
    smallest: bool,
}

impl Node {
    /// `leftmost` and `rightmost`: whether the node lies on that edge of the tree.
    fn insert(&mut self, entry: Entry, leftmost: bool, rightmost: bool) -> Inserted {
        match self {
            Node::Leaf(entries) => insert_in_leaf(entries, entry, leftmost, rightmost),
            Node::Branch(branch) => {
                let bytes = entry.member.bytes();
                let at = branch.child_where(|other| other.compare(entry.score, bytes) == Ordering::Less);
                let last = at + 1 == branch.len;
                let below = branch.kids[at].insert(entry, leftmost && at == 0, rightmost && last);
                branch.counts[at] += 1;
                if below.smallest {
                    branch.mins[at] = entry;
                }
                let split = below.split.and_then(|right| {
                    branch.counts[at] = branch.kids[at].count();
                    branch.mins[at] = branch.kids[at].smallest();
                    branch.insert_or_split(at + 1, right, rightmost)
                });
                Inserted { split: split.map(Node::Branch), smallest: below.smallest && at == 0 }
            }
        }
    }

    /// Returns how many were taken and whether the node's smallest entry changed.
    fn take(&mut self, place: Place<'_>, max: usize, sink: &mut dyn FnMut(Entry)) -> (usize, bool) {
        match self {
            Node::Leaf(entries) => {
                let (at, count) = match place {
                    Place::Rank(rank) => (rank, max.min(entries.len().saturating_sub(rank))),
                    Place::Key(score, member) => match entries.binary_search_by(|entry| entry.compare(score, member)) {
                        Ok(at) => (at, 1),
                        Err(_) => (0, 0),
                    },
                };
                entries.drain(at..at + count).for_each(sink);
                if entries.capacity() - entries.len() >= 2 * LEAF_STEP {
                    entries.shrink_to(entries.len().next_multiple_of(LEAF_STEP));
                }
                (count, at == 0 && count > 0)
            }
            Node::Branch(branch) => {
                let (at, place) = match place {
                    Place::Rank(mut rank) => {
                        let at = branch.child_of_rank(&mut rank);
                        (at, Place::Rank(rank))
                    }
                    Place::Key(score, member) => {
                        let at = branch.child_where(|entry| entry.compare(score, member) != Ordering::Greater);
                        (at, Place::Key(score, member))
                    }
                };
                let (taken, changed) = branch.kids[at].take(place, max, sink);
                branch.counts[at] -= taken;
                if branch.counts[at] == 0 {
                    branch.remove(at);
                    return (taken, at == 0);
                }
                if changed {
                    branch.mins[at] = branch.kids[at].smallest();
                }
                branch.merge_if_small(at);
                (taken, changed && at == 0)
            }
        }
    }

    fn smallest(&self) -> Entry {
        match self {
            Node::Leaf(entries) => entries.first().copied().unwrap_or(Entry::VACANT),
            Node::Branch(branch) => branch.mins[0],
        }
    }

    fn count(&self) -> usize {
        match self {
            Node::Leaf(entries) => entries.len(),
            Node::Branch(branch) => branch.counts[..branch.len].iter().sum(),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Node::Leaf(entries) => entries.capacity() * size_of::<Entry>(),
            Node::Branch(branch) => {
                size_of::<Branch>() + branch.kids[..branch.len].iter().map(Node::bytes).sum::<usize>()
            }
        }
    }

    fn free_members(self) {
        match self {
            Node::Leaf(entries) => {
                for (at, entry) in entries.iter().enumerate() {
                    if let Some(later) = entries.get(at + 8) {
                        later.member.prefetch();
                    }
                    entry.member.free();
                }
            }
            Node::Branch(branch) => {
                let branch = *branch;
                branch.kids.into_iter().take(branch.len).for_each(Node::free_members);
            }
        }
    }

    fn check(&self, level: usize, depth: &mut Option<usize>, previous: &mut Option<Entry>) -> usize {
        match self {
            Node::Leaf(entries) => {
                assert_eq!(*depth.get_or_insert(level), level, "all leaves have one depth");
                assert!(level == 0 || !entries.is_empty(), "no leaf is empty");
                assert!(entries.len() <= LEAF_MAX, "a leaf's length");
                for entry in entries {
                    assert!(!entry.score.is_nan(), "no score is not a number");
                    assert_eq!(entry.score.to_bits(), entry.member.score().to_bits(), "score in the blob");
                    if let Some(before) = previous {
                        let order = before.compare(entry.score, entry.member.bytes());
                        assert_eq!(order, Ordering::Less, "entries ascend");
                    }
                    *previous = Some(*entry);
                }
                entries.len()
            }
            Node::Branch(branch) => {
                assert!((1..=BRANCH_MAX).contains(&branch.len), "a branch's length");
                let mut total = 0;
                for at in 0..branch.len {
                    let kid = &branch.kids[at];
                    assert_eq!(branch.mins[at].member, kid.smallest().member, "smallest entry of a child");
                    assert_eq!(branch.mins[at].score.to_bits(), kid.smallest().score.to_bits(), "its score");
                    let count = kid.check(level + 1, depth, previous);
                    assert_eq!(count, branch.counts[at], "count of a child");
                    total += count;
                }
                total
            }
        }
    }
}

fn insert_in_leaf(entries: &mut Vec<Entry>, entry: Entry, leftmost: bool, rightmost: bool) -> Inserted {
    let bytes = entry.member.bytes();
    let at = entries.partition_point(|other| other.compare(entry.score, bytes) == Ordering::Less);
    if entries.len() < LEAF_MAX {
        if entries.len() == entries.capacity() {
            let step = LEAF_STEP - entries.len() % LEAF_STEP;
            entries.reserve_exact(step);
        }
        entries.insert(at, entry);
        return Inserted { split: None, smallest: at == 0 };
    }
    let cut = if rightmost && at == LEAF_MAX {
        LEAF_MAX
    } else if leftmost && at == 0 {
        0
    } else {
        LEAF_MAX / 2
    };
    if cut == 0 {
        let right = std::mem::replace(entries, Vec::with_capacity(LEAF_STEP));
        entries.push(entry);
        return Inserted { split: Some(Node::Leaf(right)), smallest: true };
    }
    let into_left = at < cut || (at == cut && cut < LEAF_MAX);
    let right_len = LEAF_MAX - cut + usize::from(!into_left);
    let mut right = Vec::with_capacity(right_len.next_multiple_of(LEAF_STEP));
    right.extend_from_slice(&entries[cut..]);
    entries.truncate(cut);
    if into_left {
        entries.shrink_to((cut + 1).next_multiple_of(LEAF_STEP));
        entries.insert(at, entry);
    } else {
        entries.shrink_to(cut.next_multiple_of(LEAF_STEP));
        right.insert(at - cut, entry);
    }
    Inserted { split: Some(Node::Leaf(right)), smallest: at == 0 }
}

impl Branch {
    fn new() -> Box<Branch> {
        Box::new(Branch {
            len: 0,
            mins: [Entry::VACANT; BRANCH_MAX],
            counts: [0; BRANCH_MAX],
            kids: [const { Node::Leaf(Vec::new()) }; BRANCH_MAX],
        })
    }

    /// The last child whose smallest entry satisfies `before`, or the first child.
    #[inline]
    fn child_where(&self, before: impl Fn(&Entry) -> bool) -> usize {
        self.mins[1..self.len].partition_point(before)
    }

    /// The child that holds the rank, which is made relative to it.
    #[inline]
    fn child_of_rank(&self, rank: &mut usize) -> usize {
        let mut at = 0;
        while at + 1 < self.len && *rank >= self.counts[at] {
            *rank -= self.counts[at];
            at += 1;
        }
        at
    }

    /// Inserts a child; there is room.
    fn insert(&mut self, at: usize, node: Node) {
        let end = self.len + 1;
        self.mins[at..end].rotate_right(1);
        self.counts[at..end].rotate_right(1);
        self.kids[at..end].rotate_right(1);
        self.mins[at] = node.smallest();
        self.counts[at] = node.count();
        self.kids[at] = node;
        self.len = end;
    }

    fn remove(&mut self, at: usize) -> Node {
        let end = self.len;
        self.mins[at..end].rotate_left(1);
        self.counts[at..end].rotate_left(1);
        self.kids[at..end].rotate_left(1);
        self.len -= 1;
        std::mem::replace(&mut self.kids[end - 1], Node::Leaf(Vec::new()))
    }

    /// Moves the children from `at` on to the end of `target`.
    fn move_tail(&mut self, at: usize, target: &mut Branch) {
        for from in at..self.len {
            let to = target.len;
            target.mins[to] = self.mins[from];
            target.counts[to] = self.counts[from];
            std::mem::swap(&mut target.kids[to], &mut self.kids[from]);
            target.len += 1;
        }
        self.len = at;
    }

    fn insert_or_split(&mut self, at: usize, node: Node, rightmost: bool) -> Option<Box<Branch>> {
        if self.len < BRANCH_MAX {
            self.insert(at, node);
            return None;
        }
        let cut = if rightmost && at == BRANCH_MAX { BRANCH_MAX } else { BRANCH_MAX / 2 };
        let mut right = Branch::new();
        self.move_tail(cut, &mut right);
        if at <= cut && cut < BRANCH_MAX {
            self.insert(at, node);
        } else {
            right.insert(at - cut, node);
        }
        Some(right)
    }

    /// Joins child `at` with a neighbour when it has become small and both fit in three quarters of a node.
    fn merge_if_small(&mut self, at: usize) {
        let fits = |left: &Node, right: &Node| match (left, right) {
            (Node::Leaf(left), Node::Leaf(right)) => left.len() + right.len() <= LEAF_MAX * 3 / 4,
            (Node::Branch(left), Node::Branch(right)) => left.len + right.len <= BRANCH_MAX * 3 / 4,
            _ => false,
        };
        let small = match &self.kids[at] {
            Node::Leaf(entries) => entries.len() < LEAF_MAX / 4,
            Node::Branch(branch) => branch.len < BRANCH_MAX / 4,
        };
        if !small {
            return;
        }
        let left = if at + 1 < self.len && fits(&self.kids[at], &self.kids[at + 1]) {
            at
        } else if at > 0 && fits(&self.kids[at - 1], &self.kids[at]) {
            at - 1
        } else {
            return;
        };
        let right = self.remove(left + 1);
        match (&mut self.kids[left], right) {
            (Node::Leaf(entries), Node::Leaf(more)) => {
                let room = (entries.len() + more.len()).next_multiple_of(LEAF_STEP);
                entries.reserve_exact(room - entries.len());
                entries.extend_from_slice(&more);
            }
            (Node::Branch(branch), Node::Branch(mut more)) => more.move_tail(0, branch),
            _ => unreachable!("siblings have one depth"),
        }
        self.counts[left] = self.kids[left].count();
    }
}
