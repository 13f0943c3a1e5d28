//! Readers of the journal.

use super::{BLOCK, Tail};
use crate::Keyspace;
use std::sync::Arc;

/// Called when bytes have come for a reader that asked to be told. It is called with no slot held, by any thread, and
/// must be quick.
pub type Waker = Arc<dyn Fn() + Send + Sync>;

/// What the journal knows of a reader.
pub(super) struct Place {
    pub(super) id: u64,
    /// It has read up to here.
    pub(super) at: u64,
    /// Bytes that are kept for it at most.
    pub(super) limit: u64,
    /// It reads no further than this for now.
    pub(super) until: u64,
    /// It lagged too far behind.
    pub(super) lost: bool,
    /// It is to be told of the next bytes.
    pub(super) armed: bool,
    pub(super) waker: Option<Waker>,
}

/// The bytes at a reader's place are no longer kept: it lagged too far behind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lost;

/// Reads the journal from a place on. What it has not read is kept for it. Dropping it ends that.
pub struct Reader {
    keyspace: Arc<Keyspace>,
    id: u64,
    at: u64,
}

impl Reader {
    pub(super) fn new(keyspace: Arc<Keyspace>, id: u64, at: u64) -> Reader {
        Reader { keyspace, id, at }
    }

    /// Offset of the next byte it will read.
    pub fn position(&self) -> u64 {
        self.at
    }

    /// Bytes that wait to be read.
    pub fn behind(&self) -> u64 {
        self.keyspace.journal.end().saturating_sub(self.at)
    }

    /// What stops this reader, for a thread that has the gate closed.
    pub fn stopper(&self) -> Stopper {
        Stopper { keyspace: self.keyspace.clone(), id: self.id }
    }

    /// Passes over all up to the offset `to`, or less if it stands beyond.
    pub fn skip_to(&mut self, to: u64) {
        self.at = self.at.max(to.min(self.keyspace.journal.end()));
        self.advance();
    }

    /// Sets what is called when bytes come after [`Reader::arm`].
    pub fn set_waker(&self, waker: Waker) {
        let mut tail = self.keyspace.journal.tail.lock();
        if let Some(place) = tail.place(self.id) {
            place.waker = Some(waker);
        }
    }

    /// Asks to be told of the next bytes, once. False: there are some already.
    pub fn arm(&self) -> bool {
        let mut tail = self.keyspace.journal.tail.lock();
        if tail.end > self.at {
            return false;
        }
        if let Some(place) = tail.place(self.id)
            && !place.armed
        {
            place.armed = true;
            tail.armed += 1;
        }
        true
    }

    /// Copies what is there to the end of `into`, stretches for replicas too: about `max` bytes, but at least one block's
    /// rest. Returns how many.
    ///
    /// # Errors
    /// The reader lagged too far behind.
    pub fn read(&mut self, into: &mut Vec<u8>, max: usize) -> Result<usize, Lost> {
        self.read_to(into, max, u64::MAX, None)
    }

    /// As [`Reader::read`], not beyond the offset `until`, and without the stretches that replicas alone see.
    ///
    /// # Errors
    /// The reader lagged too far behind.
    pub fn read_for_file(&mut self, into: &mut Vec<u8>, max: usize, until: u64) -> Result<usize, Lost> {
        let mut skipped = Vec::new();
        self.read_to(into, max, until, Some(&mut skipped))
    }

    fn read_to(
        &mut self,
        into: &mut Vec<u8>,
        max: usize,
        until: u64,
        mut skipped: Option<&mut Vec<(u64, u64)>>,
    ) -> Result<usize, Lost> {
        let journal = &self.keyspace.journal;
        let before = into.len();
        let from = self.at;
        loop {
            let mut tail = journal.tail.lock();
            if tail.place(self.id).is_none_or(|place| place.lost) {
                return Err(Lost);
            }
            let at = self.at;
            let stop = tail.place(self.id).map_or(u64::MAX, |place| place.until);
            let wanted = until.min(stop).min(tail.end).saturating_sub(at);
            if wanted == 0 || into.len() - before >= max {
                break;
            }
            let sealed_end = tail.end - tail.open.len() as u64;
            let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
            let (shared, copied) = if at >= sealed_end {
                let unread = usize::try_from(at - sealed_end).unwrap_or(usize::MAX);
                let rest = tail.open.get(unread..).unwrap_or_default();
                if rest.len() > BLOCK {
                    // A giant command: taken as a block of its own, not copied under the lock.
                    tail.seal();
                    continue;
                }
                let copied = wanted.min(rest.len());
                into.extend_from_slice(&rest[..copied]);
                (None, copied)
            } else {
                let index = tail.blocks.partition_point(|block| block.at + block.bytes.len() as u64 <= at);
                let Some(block) = tail.blocks.get(index) else { return Err(Lost) };
                let unread = usize::try_from(at - block.at).unwrap_or(usize::MAX);
                let copied = wanted.min(block.bytes.len() - unread);
                (Some((block.bytes.clone(), unread)), copied)
            };
            self.at += copied as u64;
            if let Some(skipped) = skipped.as_deref_mut() {
                let all = tail.replicas_only.iter();
                skipped.extend(all.filter(|range| range.1 > at && range.0 < self.at).copied());
            }
            drop(tail);
            if let Some((bytes, unread)) = shared {
                into.extend_from_slice(bytes.get(unread..unread + copied).unwrap_or_default());
            }
        }
        if let Some(skipped) = skipped {
            cut_out(into, before, from, self.at, skipped);
        }
        self.advance();
        Ok(into.len() - before)
    }

    /// Tells the journal what is no longer needed.
    fn advance(&self) {
        let mut tail = self.keyspace.journal.tail.lock();
        let at = self.at;
        if let Some(place) = tail.place(self.id) {
            place.at = at;
        }
        tail.trim();
    }
}

/// Makes a reader stop at an instant, until it is let go on.
pub struct Stopper {
    keyspace: Arc<Keyspace>,
    id: u64,
}

impl Stopper {
    /// The reader reads no further than what is recorded now; whoever reads on from here must be told the database. To be
    /// called with the gate closed. Returns the offset.
    pub fn stop_here(&self) -> u64 {
        let mut tail = self.keyspace.journal.tail.lock();
        let end = tail.end;
        tail.db = None;
        if let Some(place) = tail.place(self.id) {
            place.until = end;
        }
        end
    }

    /// The reader may read on.
    pub fn let_go(&self) {
        let mut tail = self.keyspace.journal.tail.lock();
        if let Some(place) = tail.place(self.id) {
            place.until = u64::MAX;
        }
    }
}

/// Takes the stretches out of `bytes[before..]`, which holds the journal from `from` to `to`.
fn cut_out(bytes: &mut Vec<u8>, before: usize, from: u64, to: u64, ranges: &mut Vec<(u64, u64)>) {
    ranges.sort_unstable();
    ranges.dedup();
    for (start, end) in ranges.iter().rev() {
        let (start, end) = ((*start).max(from), (*end).min(to));
        if start < end {
            let index = |offset: u64| before + usize::try_from(offset - from).unwrap_or(0);
            bytes.drain(index(start)..index(end));
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let journal = &self.keyspace.journal;
        let mut tail = journal.tail.lock();
        tail.places.retain(|place| place.id != self.id);
        tail.armed = tail.places.iter().filter(|place| place.armed).count();
        tail.trim();
        journal.settle(&mut tail);
    }
}

impl Tail {
    fn place(&mut self, id: u64) -> Option<&mut Place> {
        self.places.iter_mut().find(|place| place.id == id)
    }
}
