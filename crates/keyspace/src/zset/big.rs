//! The big form: members found by a hash index, ordered by a tree.
//!
//! Per 17-byte member: a 32-byte blob, 10.4–13.1 bytes of index, about 18.5 bytes of tree.
//!
//! Invariants: index and tree hold the same members; the score in a blob is that of its tree entry.

use rdb::size_class;

use crate::hashing::hash_key;
use crate::table::Table;

use super::Added;
use super::member::{Indexed, MemberRef};
use super::tree::{Entry, Tree};

/// Members with scores. Owns the blobs: each belongs to its tree entry.
pub(super) struct Big {
    tree: Tree,
    index: Table<Indexed>,
    /// Heap bytes of all blobs.
    blob_bytes: usize,
}

impl Big {
    pub(super) fn new() -> Big {
        Big { tree: Tree::new(), index: Table::new(), blob_bytes: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.tree.len()
    }

    pub(super) fn tree(&self) -> &Tree {
        &self.tree
    }

    #[inline]
    pub(super) fn score(&self, member: &[u8]) -> Option<f64> {
        Some(self.find(hash_key(member), member)?.score())
    }

    pub(super) fn rank(&self, member: &[u8]) -> Option<(usize, f64)> {
        let score = self.score(member)?;
        let rank = self.tree.count_where(|entry| entry.compare(score, member).is_lt());
        Some((rank, score))
    }

    pub(super) fn add(&mut self, member: &[u8], score: f64) -> Added {
        let hash = hash_key(member);
        let Some(blob) = self.find(hash, member) else {
            self.insert_new(hash, member, score);
            return Added::Added;
        };
        let old = blob.score();
        if old == score {
            return Added::Same;
        }
        if !self.tree.rescore_in_place(old, member, score) {
            self.tree.remove(old, member);
            blob.set_score(score);
            self.tree.insert(Entry { score, member: blob });
        }
        blob.set_score(score);
        Added::Updated
    }

    /// Adds a member, unless it is there: then nothing happens, and the answer is false.
    pub(super) fn add_absent(&mut self, member: &[u8], score: f64) -> bool {
        let hash = hash_key(member);
        if self.find(hash, member).is_some() {
            return false;
        }
        self.insert_new(hash, member, score);
        true
    }

    fn insert_new(&mut self, hash: u64, member: &[u8], score: f64) {
        let blob = MemberRef::new(score, member);
        self.blob_bytes += size_class::round_up(blob.blob_len());
        self.index.insert_unique(hash, Indexed::new(blob));
        self.tree.insert(Entry { score, member: blob });
    }

    pub(super) fn remove(&mut self, member: &[u8]) -> Option<f64> {
        let score = self.index.remove(hash_key(member), member)?.member().score();
        let entry = self.tree.remove(score, member)?;
        self.free(entry);
        Some(score)
    }

    /// Removes `count` members from `rank` on, each given to `with` first.
    pub(super) fn remove_ranks(&mut self, rank: usize, count: usize, mut with: impl FnMut(&[u8], f64)) -> usize {
        let mut removed = 0;
        let mut taken: Vec<Entry> = Vec::new();
        while removed < count {
            let here = self.tree.take_at(rank, count - removed, &mut |entry| taken.push(entry));
            if here == 0 {
                break;
            }
            removed += here;
            for entry in taken.drain(..) {
                let member = entry.member.bytes();
                with(member, entry.score);
                self.index.remove(hash_key(member), member);
                self.blob_bytes -= size_class::round_up(entry.member.blob_len());
                entry.member.free();
            }
        }
        removed
    }

    /// See [`Table::scan`].
    pub(super) fn scan(&self, cursor: u64, budget: usize, mut visit: impl FnMut(&[u8], f64)) -> u64 {
        self.index.scan(cursor, budget, |item| {
            let member = item.member();
            visit(member.bytes(), member.score());
        })
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<Big>() + self.tree.nodes_bytes() + self.index.memory_bytes() + self.blob_bytes
    }

    pub(super) fn check(&self) {
        self.tree.check();
        self.index.check();
        assert_eq!(self.tree.len(), self.index.len(), "index and tree hold the same members");
        let mut blob_bytes = 0;
        let mut rank = 0;
        while let Some((leaf, at)) = self.tree.leaf_at(rank) {
            for entry in leaf.get(at..).unwrap_or(&[]) {
                let bytes = entry.member.bytes();
                assert_eq!(self.find(hash_key(bytes), bytes), Some(entry.member), "a member is indexed");
                blob_bytes += size_class::round_up(entry.member.blob_len());
                rank += 1;
            }
        }
        assert_eq!(blob_bytes, self.blob_bytes, "bytes of blobs");
    }

    /// The members by their hashes, to ask for their memory ahead.
    #[inline]
    pub(super) fn index(&self) -> &Table<Indexed> {
        &self.index
    }

    #[inline]
    fn find(&self, hash: u64, member: &[u8]) -> Option<MemberRef> {
        self.index.find(hash, member).map(Indexed::member)
    }

    fn free(&mut self, entry: Entry) {
        self.blob_bytes -= size_class::round_up(entry.member.blob_len());
        entry.member.free();
    }
}

impl Drop for Big {
    fn drop(&mut self) {
        // The index's handles are not looked into any more.
        self.tree.free_members();
    }
}

impl Clone for Big {
    fn clone(&self) -> Self {
        let mut copy = Big::new();
        let mut rank = 0;
        while let Some((leaf, at)) = self.tree.leaf_at(rank) {
            for entry in leaf.get(at..).unwrap_or(&[]) {
                let member = entry.member.bytes();
                copy.insert_new(hash_key(member), member, entry.score);
                rank += 1;
            }
        }
        copy
    }
}
