//! The nodes of a quicklist in order, found by element index in O(log n).
//!
//! ```text
//! Branch: up to 32 × { elements below, child }      Leaf: up to 64 × node (16 bytes each)
//! ```
//!
//! A counted B-tree without keys: a node is named by the index of any of its elements, since none is empty.
//! Redis chains its nodes and walks them; here LINDEX in the middle of 10M elements (about 15 000 nodes) reads three
//! levels. A push or pop at an end goes down one edge of the tree, which stays in the first-level cache. The largest
//! allocation is 1.25 KiB, whatever the length.
//!
//! Invariants: no node is empty and no leaf or branch below the root is; a branch's counts are those of its children; all
//! leaves have one depth; a root branch has at least two children.

use super::End;
use super::node::Node;

const LEAF_MAX: usize = 64;
const BRANCH_MAX: usize = 32;
const _: () = assert!(size_of::<Kid>() <= 40);

/// Nodes in order with their element counts.
#[derive(Clone)]
pub(super) struct Sequence {
    root: Tree,
    count: usize,
    nodes: usize,
}

#[derive(Clone)]
enum Tree {
    Leaf(Vec<Node>),
    Branch(Vec<Kid>),
}

#[derive(Clone)]
struct Kid {
    count: usize,
    tree: Tree,
}

impl Sequence {
    pub(super) fn new() -> Sequence {
        Sequence { root: Tree::Leaf(Vec::new()), count: 0, nodes: 0 }
    }

    /// Elements in all nodes.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn nodes(&self) -> usize {
        self.nodes
    }

    /// The node that holds element `index`, and the index of its first element.
    pub(super) fn node_at(&self, index: usize) -> Option<(&Node, usize)> {
        if index >= self.count {
            return None;
        }
        let mut rest = index;
        let mut tree = &self.root;
        loop {
            match tree {
                Tree::Branch(kids) => tree = &kids[kid_of(kids, &mut rest)].tree,
                Tree::Leaf(nodes) => {
                    let at = node_of(nodes, &mut rest);
                    return Some((&nodes[at], index - rest));
                }
            }
        }
    }

    pub(super) fn first(&self) -> Option<&Node> {
        let mut tree = &self.root;
        loop {
            match tree {
                Tree::Branch(kids) => tree = &kids.first()?.tree,
                Tree::Leaf(nodes) => return nodes.first(),
            }
        }
    }

    pub(super) fn last(&self) -> Option<&Node> {
        let mut tree = &self.root;
        loop {
            match tree {
                Tree::Branch(kids) => tree = &kids.last()?.tree,
                Tree::Leaf(nodes) => return nodes.last(),
            }
        }
    }

    /// Lets `change` alter the node that holds element `index`, given the element's offset in the node. A node left
    /// empty is removed.
    pub(super) fn update<R>(&mut self, index: usize, change: impl FnOnce(&mut Node, usize) -> R) -> Option<R> {
        if index >= self.count {
            return None;
        }
        self.update_place(Some(index), change)
    }

    /// [`Sequence::update`] of the last node, without a search.
    pub(super) fn update_last<R>(&mut self, change: impl FnOnce(&mut Node, usize) -> R) -> Option<R> {
        if self.count == 0 {
            return None;
        }
        self.update_place(None, change)
    }

    /// Lends the node at an end and counts one element more in it, which the caller adds.
    #[inline]
    pub(super) fn grow_edge(&mut self, end: End) -> Option<&mut Node> {
        self.count += 1;
        let mut tree = &mut self.root;
        loop {
            match tree {
                Tree::Branch(kids) => {
                    let kid = match end {
                        End::Front => kids.first_mut(),
                        End::Back => kids.last_mut(),
                    }?;
                    kid.count += 1;
                    tree = &mut kid.tree;
                }
                Tree::Leaf(nodes) => {
                    return match end {
                        End::Front => nodes.first_mut(),
                        End::Back => nodes.last_mut(),
                    };
                }
            }
        }
    }

    /// `None` is the last element.
    fn update_place<R>(&mut self, place: Option<usize>, change: impl FnOnce(&mut Node, usize) -> R) -> Option<R> {
        let mut change = Some(change);
        let mut result = None;
        let update = self.root.update(place, &mut |node, offset| {
            if let Some(change) = change.take() {
                result = Some(change(node, offset));
            }
        });
        self.count = self.count - update.before + update.after;
        if update.after == 0 {
            self.nodes -= 1;
            self.collapse();
        }
        result
    }

    /// Adds a node whose first element gets index `boundary`, which lies between two nodes or at an end.
    pub(super) fn insert(&mut self, boundary: usize, node: Node) {
        debug_assert!(node.count() > 0, "no node is empty");
        self.count += node.count();
        self.nodes += 1;
        if let Some(right) = self.root.insert(boundary, node) {
            let left = std::mem::replace(&mut self.root, Tree::Leaf(Vec::new()));
            self.root = Tree::Branch(vec![Kid::new(left), Kid::new(right)]);
        }
    }

    /// Takes out the node that holds element `index`.
    pub(super) fn remove(&mut self, index: usize) -> Option<Node> {
        if index >= self.count {
            return None;
        }
        let node = self.root.remove(index)?;
        self.count -= node.count();
        self.nodes -= 1;
        self.collapse();
        Some(node)
    }

    fn collapse(&mut self) {
        while let Tree::Branch(kids) = &mut self.root {
            match kids.len() {
                0 => self.root = Tree::Leaf(Vec::new()),
                1 => {
                    let Some(only) = kids.pop() else { return };
                    self.root = only.tree;
                }
                _ => return,
            }
        }
    }

    /// The nodes in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Node> {
        let mut index = 0;
        std::iter::from_fn(move || {
            let (node, _) = self.node_at(index)?;
            index += node.count();
            Some(node)
        })
    }

    /// Bytes of the tree and its nodes, before the allocator rounds up.
    pub(super) fn memory_bytes(&self) -> usize {
        self.root.memory_bytes()
    }

    /// Asserts the invariants.
    pub(super) fn check(&self) {
        let mut depth = None;
        let (count, nodes) = self.root.check(0, &mut depth);
        assert_eq!(count, self.count, "elements");
        assert_eq!(nodes, self.nodes, "nodes");
        if let Tree::Branch(kids) = &self.root {
            assert!(kids.len() >= 2, "a root branch has two children");
        }
    }
}

/// Element counts of a changed node.
struct Update {
    before: usize,
    after: usize,
}

impl Tree {
    fn update(&mut self, place: Option<usize>, change: &mut dyn FnMut(&mut Node, usize)) -> Update {
        match self {
            Tree::Leaf(nodes) => {
                let (at, offset) = match place {
                    Some(mut index) => (node_of(nodes, &mut index), Some(index)),
                    None => (nodes.len() - 1, None),
                };
                let node = &mut nodes[at];
                let before = node.count();
                change(node, offset.unwrap_or(before - 1));
                let after = node.count();
                if after == 0 {
                    nodes.remove(at);
                }
                Update { before, after }
            }
            Tree::Branch(kids) => {
                let (at, place) = match place {
                    Some(mut index) => (kid_of(kids, &mut index), Some(index)),
                    None => (kids.len() - 1, None),
                };
                let kid = &mut kids[at];
                let update = kid.tree.update(place, change);
                kid.count = kid.count - update.before + update.after;
                if update.after == 0 {
                    tidy(kids, at);
                }
                update
            }
        }
    }

    fn insert(&mut self, boundary: usize, node: Node) -> Option<Tree> {
        match self {
            Tree::Leaf(nodes) => {
                let mut rest = boundary;
                let mut at = 0;
                while rest > 0 && at < nodes.len() {
                    debug_assert!(rest >= nodes[at].count(), "a boundary lies between nodes");
                    rest = rest.saturating_sub(nodes[at].count());
                    at += 1;
                }
                insert_or_split(nodes, at, node, LEAF_MAX).map(Tree::Leaf)
            }
            Tree::Branch(kids) => {
                let mut rest = boundary;
                let mut at = 0;
                while at + 1 < kids.len() && rest > kids[at].count {
                    rest -= kids[at].count;
                    at += 1;
                }
                let kid = &mut kids[at];
                kid.count += node.count();
                let right = kid.tree.insert(rest, node)?;
                let right = Kid::new(right);
                kid.count -= right.count;
                insert_or_split(kids, at + 1, right, BRANCH_MAX).map(Tree::Branch)
            }
        }
    }

    fn remove(&mut self, mut index: usize) -> Option<Node> {
        match self {
            Tree::Leaf(nodes) => {
                let at = node_of(nodes, &mut index);
                Some(nodes.remove(at))
            }
            Tree::Branch(kids) => {
                let at = kid_of(kids, &mut index);
                let kid = &mut kids[at];
                let node = kid.tree.remove(index)?;
                kid.count -= node.count();
                tidy(kids, at);
                Some(node)
            }
        }
    }

    fn count(&self) -> usize {
        match self {
            Tree::Leaf(nodes) => nodes.iter().map(Node::count).sum(),
            Tree::Branch(kids) => kids.iter().map(|kid| kid.count).sum(),
        }
    }

    fn len(&self) -> usize {
        match self {
            Tree::Leaf(nodes) => nodes.len(),
            Tree::Branch(kids) => kids.len(),
        }
    }

    fn memory_bytes(&self) -> usize {
        match self {
            Tree::Leaf(nodes) => {
                nodes.capacity() * size_of::<Node>() + nodes.iter().map(Node::memory_bytes).sum::<usize>()
            }
            Tree::Branch(kids) => {
                kids.capacity() * size_of::<Kid>() + kids.iter().map(|kid| kid.tree.memory_bytes()).sum::<usize>()
            }
        }
    }

    fn check(&self, level: usize, depth: &mut Option<usize>) -> (usize, usize) {
        match self {
            Tree::Leaf(nodes) => {
                assert_eq!(*depth.get_or_insert(level), level, "all leaves have one depth");
                assert!(nodes.len() <= LEAF_MAX && (level == 0 || !nodes.is_empty()), "a leaf's length");
                for node in nodes {
                    node.check();
                }
                (self.count(), nodes.len())
            }
            Tree::Branch(kids) => {
                assert!((1..=BRANCH_MAX).contains(&kids.len()), "a branch's length");
                let mut total = (0, 0);
                for kid in kids {
                    let (count, nodes) = kid.tree.check(level + 1, depth);
                    assert_eq!(count, kid.count, "count of a child");
                    total = (total.0 + count, total.1 + nodes);
                }
                total
            }
        }
    }
}

impl Kid {
    fn new(tree: Tree) -> Kid {
        Kid { count: tree.count(), tree }
    }
}

/// The child that holds element `index`, which is made relative to it.
#[inline]
fn kid_of(kids: &[Kid], index: &mut usize) -> usize {
    let mut at = 0;
    while at + 1 < kids.len() && *index >= kids[at].count {
        *index -= kids[at].count;
        at += 1;
    }
    at
}

/// The node of a leaf that holds element `index`, which is made relative to it.
#[inline]
fn node_of(nodes: &[Node], index: &mut usize) -> usize {
    let mut at = 0;
    while at + 1 < nodes.len() && *index >= nodes[at].count() {
        *index -= nodes[at].count();
        at += 1;
    }
    at
}

/// Inserts, or splits first when `max` items are there: in the middle, or at an end that is being added to, which
/// leaves full nodes behind. Returns the new right part.
fn insert_or_split<T>(items: &mut Vec<T>, at: usize, item: T, max: usize) -> Option<Vec<T>> {
    if items.len() < max {
        items.insert(at, item);
        return None;
    }
    if at == items.len() {
        return Some(vec![item]);
    }
    let cut = if at == 0 { 0 } else { max / 2 };
    let mut right = items.split_off(cut);
    if at <= cut {
        items.insert(at, item);
    } else {
        right.insert(at - cut, item);
    }
    Some(right)
}

/// After a removal below child `at`: drops it if empty, or joins it with a neighbour if both are small.
fn tidy(kids: &mut Vec<Kid>, at: usize) {
    if kids[at].tree.len() == 0 {
        kids.remove(at);
        return;
    }
    let max = match &kids[at].tree {
        Tree::Leaf(_) => LEAF_MAX,
        Tree::Branch(_) => BRANCH_MAX,
    };
    let fits = |left: usize| match (kids.get(left), kids.get(left + 1)) {
        (Some(left), Some(right)) => left.tree.len() + right.tree.len() <= max / 2,
        _ => false,
    };
    let left = if fits(at) {
        at
    } else if at > 0 && fits(at - 1) {
        at - 1
    } else {
        return;
    };
    let right = kids.remove(left + 1);
    let kid = &mut kids[left];
    kid.count += right.count;
    match (&mut kid.tree, right.tree) {
        (Tree::Leaf(nodes), Tree::Leaf(more)) => nodes.extend(more),
        (Tree::Branch(below), Tree::Branch(more)) => below.extend(more),
        _ => unreachable!("siblings have one depth"),
    }
}
