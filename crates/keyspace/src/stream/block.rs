//! A block: up to some hundred entries of a stream in one listpack, in Redis' layout.
//!
//! ```text
//! head:   live entries | deleted entries | n | name 1 | … | name n | 0
//! entry:  flags | ms | seq | value 1 | … | value n | pieces                    same names as the head (flag 2)
//!         flags | ms | seq | m | name 1 | value 1 | … | name m | value m | pieces
//! ```
//! `ms` and `seq` are differences to the block's own id, which is that of its first entry. Deleted entries stay, with
//! flag 1, until the whole block goes. `pieces` is how many listpack entries lie before it in the stream's entry, so
//! that a walk from the end finds the flags; the 0 behind the head ends such a walk.
//!
//! Invariant of blocks inside a stream: they pass [`check`]. So walks need not tell damage from the end.

use super::StreamId;
use rdb::listpack::{Batch, Elem, Iter, Listpack, Pos, Positions};
use resp::Args;

/// Flag of a deleted entry.
pub(super) const DELETED: i64 = 1;
/// Flag of an entry whose names are the head's.
const SAME_NAMES: i64 = 2;

/// An entry of a stream.
#[derive(Clone, Debug)]
pub struct StreamEntry<'a> {
    /// Its id.
    pub id: StreamId,
    len: usize,
    /// Names, when they are the head's.
    names: Option<Iter<'a>>,
    rest: Iter<'a>,
}

impl<'a> StreamEntry<'a> {
    /// How many fields.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no field.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Fields with their values, in order.
    pub fn fields(self) -> Fields<'a> {
        Fields { left: self.len, names: self.names, rest: self.rest }
    }
}

/// See [`StreamEntry::fields`].
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    left: usize,
    names: Option<Iter<'a>>,
    rest: Iter<'a>,
}

impl<'a> Iterator for Fields<'a> {
    type Item = (Elem<'a>, Elem<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let name = match &mut self.names {
            Some(names) => names.next()?,
            None => self.rest.next()?,
        };
        Some((name, self.rest.next()?))
    }
}

/// What a block begins with.
#[derive(Clone)]
pub(super) struct Head<'a> {
    /// Entries that are not deleted.
    pub(super) live: i64,
    /// Entries that are.
    pub(super) deleted: i64,
    /// Names.
    len: usize,
    names: Iter<'a>,
    /// The entries.
    entries: Iter<'a>,
}

fn int(iter: &mut Iter<'_>) -> Option<i64> {
    iter.next()?.as_int()
}

/// Passes over `count` pieces.
fn skip(iter: &mut Iter<'_>, count: usize) -> Option<()> {
    match count.checked_sub(1) {
        Some(last) => iter.nth(last).map(|_| ()),
        None => Some(()),
    }
}

impl<'a> Head<'a> {
    pub(super) fn read(block: &'a Listpack) -> Option<Head<'a>> {
        let mut iter = block.iter();
        let live = int(&mut iter)?;
        let deleted = int(&mut iter)?;
        let len = usize::try_from(int(&mut iter)?).ok()?;
        let names = iter.clone();
        skip(&mut iter, len)?;
        if int(&mut iter)? != 0 {
            return None;
        }
        Some(Head { live, deleted, len, names, entries: iter })
    }

    /// Reads an entry whose flags come next; leaves the iterator behind it. Also gives its flags.
    #[inline]
    fn entry(&self, block_id: StreamId, iter: &mut Iter<'a>) -> Option<(i64, StreamEntry<'a>)> {
        let flags = int(iter)?;
        let id = block_id.plus(int(iter)?, int(iter)?);
        let same = flags & SAME_NAMES != 0;
        let len = if same { self.len } else { usize::try_from(int(iter)?).ok()? };
        let entry = StreamEntry { id, len, names: same.then(|| self.names.clone()), rest: iter.clone() };
        skip(iter, if same { len } else { len.checked_mul(2)? })?;
        let pieces = int(iter)?;
        let expected = if same { len.checked_add(3)? } else { len.checked_mul(2)?.checked_add(4)? };
        (usize::try_from(pieces) == Ok(expected)).then_some((flags, entry))
    }
}

/// A walk over a block from its start, deleted entries included.
pub(super) struct Walk<'a> {
    id: StreamId,
    head: Head<'a>,
    rest: Iter<'a>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(id: StreamId, block: &'a Listpack) -> Option<Walk<'a>> {
        let head = Head::read(block)?;
        let rest = head.entries.clone();
        Some(Walk { id, head, rest })
    }

    /// Passes over entries before `start`, looking at their ids alone.
    pub(super) fn seek(&mut self, start: StreamId) {
        loop {
            let mut iter = self.rest.clone();
            if self.pass(&mut iter, start).is_none() {
                return;
            }
            self.rest = iter;
        }
    }

    /// Passes over the next entry if it lies before `start`.
    #[inline]
    fn pass(&self, iter: &mut Iter<'a>, start: StreamId) -> Option<()> {
        let flags = int(iter)?;
        if self.id.plus(int(iter)?, int(iter)?) >= start {
            return None;
        }
        let pieces =
            if flags & SAME_NAMES != 0 { self.head.len } else { usize::try_from(int(iter)?).ok()?.checked_mul(2)? };
        // The count of pieces comes behind them.
        iter.nth(pieces).map(|_| ())
    }
}

impl<'a> Iterator for Walk<'a> {
    /// Whether the entry is deleted, and the entry.
    type Item = (bool, StreamEntry<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (flags, entry) = self.head.entry(self.id, &mut self.rest)?;
        Some((flags & DELETED != 0, entry))
    }
}

/// A walk over a block from its end, deleted entries included.
pub(super) struct WalkBack<'a> {
    id: StreamId,
    block: &'a Listpack,
    head: Head<'a>,
    positions: Positions<'a>,
}

impl<'a> WalkBack<'a> {
    pub(super) fn new(id: StreamId, block: &'a Listpack) -> Option<WalkBack<'a>> {
        Some(WalkBack { id, block, head: Head::read(block)?, positions: block.positions() })
    }

    /// The flags' position, whether the entry is deleted, and the entry.
    pub(super) fn step(&mut self) -> Option<(Pos, bool, StreamEntry<'a>)> {
        let pieces = usize::try_from(self.positions.next_back()?.1.as_int()?).ok()?;
        let (pos, _) = self.positions.nth_back(pieces.checked_sub(1)?)?;
        let (flags, entry) = self.head.entry(self.id, &mut self.block.iter_from(pos))?;
        Some((pos, flags & DELETED != 0, entry))
    }
}

/// A new block of one entry. `fields` are names and values in turn.
pub(super) fn begin(fields: Args<'_>) -> Listpack {
    let mut batch = Batch::with_capacity(fields.count_bytes() * 2 + 64);
    batch.push_int(1);
    batch.push_int(0);
    batch.push_int(i64::try_from(fields.len() / 2).unwrap_or(i64::MAX));
    for index in (0..fields.len()).step_by(2) {
        batch.push(fields.at(index));
    }
    batch.push_int(0);
    push_entry(&mut batch, (0, 0), fields, true);
    let mut block = Listpack::new();
    block.append_batch(&batch);
    block
}

/// Adds an entry at a block's end.
pub(super) fn append(block: &mut Listpack, block_id: StreamId, id: StreamId, fields: Args<'_>) {
    let Some(head) = Head::read(block) else { return };
    let live = head.live;
    let same = head.len == fields.len() / 2
        && head.names.clone().take(head.len).enumerate().all(|(index, name)| name.eq_bytes(fields.at(2 * index)));
    let mut batch = Batch::with_capacity(fields.count_bytes() + 16 + 4 * fields.len());
    push_entry(&mut batch, id.minus(block_id), fields, same);
    set_counter(block, 0, live + 1);
    block.append_batch(&batch);
}

fn push_entry(batch: &mut Batch, (ms, seq): (i64, i64), fields: Args<'_>, same: bool) {
    let len = i64::try_from(fields.len() / 2).unwrap_or(i64::MAX);
    batch.push_int(if same { SAME_NAMES } else { 0 });
    batch.push_int(ms);
    batch.push_int(seq);
    if same {
        for index in (1..fields.len()).step_by(2) {
            batch.push(fields.at(index));
        }
        batch.push_int(len + 3);
    } else {
        batch.push_int(len);
        for field in fields {
            batch.push(field);
        }
        batch.push_int(2 * len + 4);
    }
}

/// Sets the count of live (0) or deleted (1) entries.
fn set_counter(block: &mut Listpack, index: i64, value: i64) {
    if let Some(pos) = block.seek(index) {
        block.replace_int(pos, value);
    }
}

/// Moves `count` entries from live to deleted in the counters; their flags are the caller's work.
pub(super) fn count_deleted(block: &mut Listpack, count: i64) {
    let Some(head) = Head::read(block) else { return };
    let (live, deleted) = (head.live, head.deleted);
    set_counter(block, 0, live - count);
    set_counter(block, 1, deleted + count);
}

/// Marks the entry whose flags are at `pos` as deleted. Positions stay what they are, as small numbers all take the
/// same room.
pub(super) fn mark_deleted(block: &mut Listpack, pos: Pos) {
    let flags = block.get(pos).as_int().unwrap_or(0);
    block.replace_int(pos, flags | DELETED);
}

/// Takes deleted entries off the end as long as their ids pass `last`. Those of a stream whose last id was set back
/// would otherwise lie before greater ones.
pub(super) fn drop_tail(block: &mut Listpack, block_id: StreamId, last: StreamId) {
    let mut cut = None;
    let mut count = 0;
    if let Some(mut walk) = WalkBack::new(block_id, block) {
        while let Some((pos, true, entry)) = walk.step() {
            if entry.id <= last {
                break;
            }
            cut = Some(pos);
            count += 1;
        }
    }
    if let Some(pos) = cut {
        let deleted = Head::read(block).map_or(0, |head| head.deleted);
        block.split_off(pos);
        set_counter(block, 1, deleted - count);
    }
}

/// What [`check`] found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Facts {
    pub(super) live: u64,
    /// Id of the last entry, deleted or not.
    pub(super) last: StreamId,
    /// Id of the last entry that is not deleted.
    pub(super) last_live: Option<StreamId>,
}

/// Checks a block from outside: its layout to the last piece, its counters, and that ids ascend from its own on.
/// `None`: damaged.
pub(super) fn check(id: StreamId, block: &Listpack) -> Option<Facts> {
    let head = Head::read(block)?;
    let mut iter = head.entries.clone();
    let (mut live, mut deleted) = (0_i64, 0_i64);
    let mut last: Option<StreamId> = None;
    let mut last_live = None;
    while iter.clone().next().is_some() {
        let (flags, entry) = head.entry(id, &mut iter)?;
        if flags & !(DELETED | SAME_NAMES) != 0 || entry.id < id || last.is_some_and(|last| entry.id <= last) {
            return None;
        }
        last = Some(entry.id);
        if flags & DELETED != 0 {
            deleted += 1;
        } else {
            live += 1;
            last_live = last;
        }
    }
    let last = last?;
    ((live, deleted) == (head.live, head.deleted)).then_some(Facts { live: live.unsigned_abs(), last, last_live })
}
