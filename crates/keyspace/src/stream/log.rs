//! The entries of a stream: blocks in the order of their ids, and what is counted about them.

use super::StreamId;
use super::block::{self, Head, StreamEntry, Walk, WalkBack};
use rdb::listpack::Listpack;
use resp::Args;
use std::collections::{BTreeMap, btree_map};

/// No block grows beyond this many bytes, whatever the settings say: what a listpack can hold with room to spare.
const BLOCK_BYTES_MAX: usize = 1 << 30;

/// What the configuration says about blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StreamLimits {
    /// `stream-node-max-bytes`; 0: no limit.
    pub node_max_bytes: usize,
    /// `stream-node-max-entries`; 0: no limit.
    pub node_max_entries: i64,
}

impl Default for StreamLimits {
    fn default() -> Self {
        StreamLimits { node_max_bytes: 4096, node_max_entries: 100 }
    }
}

impl StreamLimits {
    fn is_full(&self, block: &Listpack, added_bytes: usize) -> bool {
        let max_bytes = match self.node_max_bytes {
            0 => BLOCK_BYTES_MAX,
            bytes => bytes.min(BLOCK_BYTES_MAX),
        };
        block.bytes_len() + added_bytes >= max_bytes
            || self.node_max_entries != 0
                && Head::read(block).is_none_or(|head| head.live + head.deleted >= self.node_max_entries)
    }
}

/// What trimming goes by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TrimTo {
    /// So many entries stay.
    Len(u64),
    /// Entries from this id on stay.
    MinId(StreamId),
}

/// How to trim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trim {
    /// What stays.
    pub to: TrimTo,
    /// Only whole blocks go (`~`).
    pub approximate: bool,
    /// At most so many entries go; 0: no limit.
    pub limit: u64,
}

/// The entries.
///
/// Invariants: every block passes [`block::check`]; the ids of all entries, deleted ones included, ascend over all
/// blocks and do not pass `last_id`; `len` counts those that are not deleted.
#[derive(Clone, Default)]
pub struct Log {
    blocks: BTreeMap<StreamId, Listpack>,
    /// Heap bytes of all blocks.
    block_bytes: usize,
    len: u64,
    first_id: StreamId,
    last_id: StreamId,
    max_deleted_id: StreamId,
    entries_added: u64,
}

/// Blocks that make no stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InvalidStream;

impl Log {
    /// Entries.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Id of the first entry; 0-0 when there is none.
    pub fn first_id(&self) -> StreamId {
        self.first_id
    }

    /// The greatest id ever added or set.
    pub fn last_id(&self) -> StreamId {
        self.last_id
    }

    /// The greatest id ever deleted by its id.
    pub fn max_deleted_id(&self) -> StreamId {
        self.max_deleted_id
    }

    /// How many entries were ever added.
    pub fn entries_added(&self) -> u64 {
        self.entries_added
    }

    /// Blocks in order.
    pub fn blocks(&self) -> impl ExactSizeIterator<Item = (StreamId, &Listpack)> {
        self.blocks.iter().map(|(id, block)| (*id, block))
    }

    /// Heap bytes of the blocks and of what finds them.
    pub fn memory_bytes(&self) -> usize {
        self.block_bytes + self.blocks.len() * (size_of::<StreamId>() + size_of::<Listpack>()) * 4 / 3
    }

    /// Adds an entry behind all others. `fields` are names and values in turn. The id must pass [`Log::last_id`], and
    /// all fields together must stay below 1 GiB: callers refuse others.
    pub fn append(&mut self, id: StreamId, fields: Args<'_>, limits: &StreamLimits) {
        debug_assert!(id > self.last_id);
        let added_bytes = fields.count_bytes();
        match self.blocks.last_entry() {
            Some(mut last) if !limits.is_full(last.get(), added_bytes) => {
                let block_id = *last.key();
                let listpack = last.get_mut();
                let before = listpack.allocated_bytes();
                block::append(listpack, block_id, id, fields);
                self.block_bytes = self.block_bytes - before + listpack.allocated_bytes();
            }
            _ => {
                let listpack = block::begin(fields);
                self.block_bytes += listpack.allocated_bytes();
                self.blocks.insert(id, listpack);
            }
        }
        self.len += 1;
        self.entries_added = self.entries_added.wrapping_add(1);
        self.last_id = id;
        if self.len == 1 {
            self.first_id = id;
        }
    }

    /// Entries from `start` to `end`, both included.
    pub fn range(&self, start: StreamId, end: StreamId) -> Entries<'_> {
        let from = self.blocks.range(..=start).next_back().map_or(start, |(id, _)| *id);
        let blocks =
            if from <= end { self.blocks.range(from..=end) } else { self.blocks.range(StreamId::MIN..StreamId::MIN) };
        Entries { blocks, walk: None, start, end }
    }

    /// The same backwards.
    pub fn range_back(&self, start: StreamId, end: StreamId) -> EntriesBack<'_> {
        EntriesBack { blocks: self.blocks.range(..=end), walk: None, start, end }
    }

    /// The entry with this id.
    pub fn get(&self, id: StreamId) -> Option<StreamEntry<'_>> {
        self.range(id, id).next()
    }

    /// Id of the last entry that is not deleted.
    pub fn last_live_id(&self) -> Option<StreamId> {
        self.range_back(StreamId::MIN, StreamId::MAX).next().map(|entry| entry.id)
    }

    /// Deletes an entry. False: there is no such entry.
    pub fn delete(&mut self, id: StreamId) -> bool {
        let Some((&block_id, listpack)) = self.blocks.range_mut(..=id).next_back() else { return false };
        let Some((pos, live)) = find(block_id, listpack, id) else { return false };
        if live == 1 {
            self.remove_block(block_id);
        } else {
            block::mark_deleted(listpack, pos);
            let before = listpack.allocated_bytes();
            block::count_deleted(listpack, 1);
            self.block_bytes = self.block_bytes - before + listpack.allocated_bytes();
        }
        self.len -= 1;
        self.max_deleted_id = self.max_deleted_id.max(id);
        if id == self.first_id {
            self.find_first();
        }
        true
    }

    /// Removes entries at the front. Gives how many.
    pub fn trim(&mut self, trim: Trim) -> u64 {
        let mut deleted = 0;
        while let Some((&block_id, listpack)) = self.blocks.first_key_value() {
            let live = Head::read(listpack).map_or(0, |head| head.live.unsigned_abs());
            if matches!(trim.to, TrimTo::Len(len) if self.len <= len) || (trim.limit > 0 && deleted + live > trim.limit)
            {
                break;
            }
            let whole = match trim.to {
                TrimTo::Len(len) => self.len - live >= len,
                TrimTo::MinId(id) => last_of(block_id, listpack) < id,
            };
            if whole {
                self.remove_block(block_id);
                self.len -= live;
                deleted += live;
                continue;
            }
            if !trim.approximate {
                deleted += self.trim_block(block_id, trim.to);
            }
            break;
        }
        if deleted > 0 {
            self.find_first();
        }
        deleted
    }

    /// Deletes entries at the front of the first block, which is not to go as a whole.
    fn trim_block(&mut self, block_id: StreamId, to: TrimTo) -> u64 {
        let Some(listpack) = self.blocks.get_mut(&block_id) else { return 0 };
        let marked = {
            let Some(walk) = Walk::new(block_id, listpack) else { return 0 };
            let mut left = match to {
                TrimTo::Len(len) => self.len - len,
                TrimTo::MinId(_) => u64::MAX,
            };
            let mut ids = Vec::new();
            for (deleted, entry) in walk {
                if left == 0 || matches!(to, TrimTo::MinId(id) if entry.id >= id) {
                    break;
                }
                if !deleted {
                    left -= 1;
                    ids.push(entry.id);
                }
            }
            ids
        };
        let before = listpack.allocated_bytes();
        let mut ids = marked.iter().peekable();
        for (pos, id) in positions(block_id, listpack) {
            if ids.next_if_eq(&&id).is_some() {
                block::mark_deleted(listpack, pos);
            }
        }
        let count = marked.len();
        block::count_deleted(listpack, i64::try_from(count).unwrap_or(i64::MAX));
        self.block_bytes = self.block_bytes - before + listpack.allocated_bytes();
        self.len -= count as u64;
        count as u64
    }

    fn remove_block(&mut self, id: StreamId) {
        if let Some(listpack) = self.blocks.remove(&id) {
            self.block_bytes -= listpack.allocated_bytes();
        }
    }

    fn find_first(&mut self) {
        self.first_id = self.range(StreamId::MIN, StreamId::MAX).next().map_or(StreamId::MIN, |entry| entry.id);
    }

    /// Sets the last id, which may not be below [`Log::last_live_id`], and where given the other counters.
    pub fn set_last_id(&mut self, id: StreamId, entries_added: Option<u64>, max_deleted_id: Option<StreamId>) {
        if id < self.last_id {
            self.drop_tail(id);
        }
        self.last_id = id;
        self.entries_added = entries_added.unwrap_or(self.entries_added);
        self.max_deleted_id = max_deleted_id.unwrap_or(self.max_deleted_id);
    }

    /// Takes deleted entries with ids beyond `last` off the end.
    fn drop_tail(&mut self, last: StreamId) {
        while let Some(mut entry) = self.blocks.last_entry() {
            let block_id = *entry.key();
            if block_id > last {
                self.block_bytes -= entry.get().allocated_bytes();
                entry.remove();
                continue;
            }
            let listpack = entry.get_mut();
            let before = listpack.allocated_bytes();
            block::drop_tail(listpack, block_id, last);
            self.block_bytes = self.block_bytes - before + listpack.allocated_bytes();
            break;
        }
    }

    // ---- how far readers are -------------------------------------------------------------------------------------

    /// Whether entries were deleted by id from `start` on, so that counting by the counters is no longer right.
    pub fn has_gaps_from(&self, start: StreamId) -> bool {
        self.len > 0
            && !self.max_deleted_id.is_zero()
            && self.first_id <= self.max_deleted_id
            && start <= self.max_deleted_id
    }

    /// How many entries were ever added up to this id; `None` when that cannot be told.
    #[allow(clippy::cast_possible_wrap)]
    pub fn entries_until(&self, id: StreamId) -> Option<i64> {
        let added = self.entries_added as i64;
        if added == 0 {
            return Some(0);
        }
        if id == self.last_id || (self.len == 0 && id < self.last_id) {
            return Some(added);
        }
        if id > self.last_id {
            return None;
        }
        if self.max_deleted_id.is_zero() || self.max_deleted_id < self.first_id {
            let before = added.wrapping_sub(self.len as i64);
            if id < self.first_id {
                return Some(before);
            }
            if id == self.first_id {
                return Some(before.wrapping_add(1));
            }
        }
        None
    }

    /// Nodes that Redis' radix tree has for the same blocks: what XINFO STREAM tells.
    pub fn tree_nodes(&self) -> usize {
        const LEAF: usize = 16;
        // A branch with a child is followed by one node for the label's other bytes, if there are any.
        let edge = |parent: usize, child: usize| 1 + usize::from(child > parent + 1);
        let mut branches: Vec<usize> = Vec::new();
        let mut nodes = 0;
        let mut previous: Option<[u8; 16]> = None;
        for id in self.blocks.keys() {
            let key = id.to_raw();
            if let Some(previous) = previous {
                let common = key.iter().zip(previous).take_while(|(a, b)| **a == *b).count();
                let mut child = LEAF;
                while let Some(branch) = branches.pop_if(|branch| *branch > common) {
                    nodes += edge(branch, child);
                    child = branch;
                }
                if branches.last() != Some(&common) {
                    branches.push(common);
                }
                nodes += edge(common, child);
            }
            previous = Some(key);
        }
        let mut child = if previous.is_some() { LEAF } else { 0 };
        while let Some(branch) = branches.pop() {
            nodes += edge(branch, child);
            child = branch;
        }
        nodes + 1 + usize::from(child > 0)
    }

    // ---- from outside --------------------------------------------------------------------------------------------

    /// Adds a block behind all others.
    ///
    /// # Errors
    /// It breaks the layout, or its ids do not lie behind those of the block before.
    pub fn push_block(&mut self, id: StreamId, listpack: Listpack) -> Result<(), InvalidStream> {
        let facts = block::check(id, &listpack).ok_or(InvalidStream)?;
        if !self.blocks.is_empty() && id <= self.last_id {
            return Err(InvalidStream);
        }
        self.block_bytes += listpack.allocated_bytes();
        self.blocks.insert(id, listpack);
        self.len += facts.live;
        self.last_id = facts.last;
        Ok(())
    }

    /// Sets the counters after the last block.
    ///
    /// # Errors
    /// They contradict the blocks.
    pub fn finish(
        &mut self,
        len: u64,
        last_id: StreamId,
        max_deleted_id: StreamId,
        entries_added: u64,
    ) -> Result<(), InvalidStream> {
        if len != self.len || self.last_live_id().is_some_and(|live| live > last_id) {
            return Err(InvalidStream);
        }
        self.find_first();
        self.set_last_id(last_id, Some(entries_added), Some(max_deleted_id));
        Ok(())
    }

    /// Checks every invariant: for tests and fuzzing. Panics where one is broken.
    pub fn check(&self) {
        let mut last: Option<StreamId> = None;
        let (mut len, mut bytes) = (0, 0);
        for (id, listpack) in &self.blocks {
            listpack.check();
            assert!(last.is_none_or(|last| *id > last), "blocks ascend");
            let facts = block::check(*id, listpack);
            assert!(facts.is_some(), "a block is well-formed");
            if let Some(facts) = facts {
                last = Some(facts.last);
                len += facts.live;
            }
            bytes += listpack.allocated_bytes();
        }
        assert_eq!(len, self.len, "entries");
        assert_eq!(bytes, self.block_bytes, "bytes");
        assert!(last.is_none_or(|last| last <= self.last_id), "the last id is the greatest");
        let first = self.range(StreamId::MIN, StreamId::MAX).next().map_or(StreamId::MIN, |entry| entry.id);
        assert_eq!(first, self.first_id, "the first id");
    }
}

/// The flags' position of a live entry, and how many live ones the block has.
fn find(block_id: StreamId, listpack: &Listpack, id: StreamId) -> Option<(rdb::listpack::Pos, i64)> {
    let live = Head::read(listpack)?.live;
    let mut walk = WalkBack::new(block_id, listpack)?;
    while let Some((pos, deleted, entry)) = walk.step() {
        if entry.id <= id {
            return (entry.id == id && !deleted).then_some((pos, live));
        }
    }
    None
}

/// Flags' positions and ids of all entries, in order.
fn positions(block_id: StreamId, listpack: &Listpack) -> Vec<(rdb::listpack::Pos, StreamId)> {
    let mut found = Vec::new();
    if let Some(mut walk) = WalkBack::new(block_id, listpack) {
        while let Some((pos, _, entry)) = walk.step() {
            found.push((pos, entry.id));
        }
    }
    found.reverse();
    found
}

/// Id of the last entry, deleted or not.
fn last_of(block_id: StreamId, listpack: &Listpack) -> StreamId {
    WalkBack::new(block_id, listpack).and_then(|mut walk| walk.step()).map_or(block_id, |(_, _, entry)| entry.id)
}

/// See [`Log::range`].
pub struct Entries<'a> {
    blocks: btree_map::Range<'a, StreamId, Listpack>,
    walk: Option<Walk<'a>>,
    start: StreamId,
    end: StreamId,
}

impl<'a> Iterator for Entries<'a> {
    type Item = StreamEntry<'a>;

    fn next(&mut self) -> Option<StreamEntry<'a>> {
        loop {
            if let Some(walk) = &mut self.walk {
                for (deleted, entry) in walk {
                    if deleted || entry.id < self.start {
                        continue;
                    }
                    return (entry.id <= self.end).then_some(entry);
                }
            }
            let (id, block) = self.blocks.next()?;
            self.walk = Walk::new(*id, block);
            if let Some(walk) = &mut self.walk
                && *id < self.start
            {
                walk.seek(self.start);
            }
        }
    }
}

/// See [`Log::range_back`].
pub struct EntriesBack<'a> {
    blocks: btree_map::Range<'a, StreamId, Listpack>,
    walk: Option<WalkBack<'a>>,
    start: StreamId,
    end: StreamId,
}

impl<'a> Iterator for EntriesBack<'a> {
    type Item = StreamEntry<'a>;

    fn next(&mut self) -> Option<StreamEntry<'a>> {
        loop {
            if let Some(walk) = &mut self.walk {
                while let Some((_, deleted, entry)) = walk.step() {
                    if deleted || entry.id > self.end {
                        continue;
                    }
                    return (entry.id >= self.start).then_some(entry);
                }
            }
            let (id, block) = self.blocks.next_back()?;
            self.walk = WalkBack::new(*id, block);
        }
    }
}
