//! SCAN over the whole cluster, with Redis' promise: an element that is there from the first call to the last is returned
//! at least once, whatever moves meanwhile. Nothing is kept between calls: all of it is in the cursor, an unsigned number
//! that another proxy understands as well. It stays below 2^53 in practice, since some clients keep it as a double.
//!
//! **Our own servers** walk their slots in ascending order, and their cursor says where they are:
//!
//! ```text
//! bits   0..14  the slot
//!       14..    the place in it
//! ```
//!
//! So the cursor names the shard by itself: a call goes to the owner of its slot like a command on a key of that slot, and
//! is answered MOVED like one if the slot has another owner by now. A server that serves a proxy stops before the first
//! slot that it does not own, and the next call goes to the next slot's owner. Slots may change hands between two calls as
//! they like: each slot is walked where it is served when its turn comes, and an element never changes its slot. (A place
//! *in* a slot means something only to the process that gave it; a server recognises places that are not its own and begins
//! that slot anew.)
//!
//! **Servers of another make** know no order by slots, so one is walked after the other:
//!
//! ```text
//! bits   0..16  fingerprint of the topology at the begin of this pass, never 0
//!       16..26  number of the shard, by ascending node ids
//!       26..    the server's own cursor
//! ```
//!
//! A key that moves to a shard that was walked already, from one that was not, would be missed. Therefore a pass counts
//! only if nothing moved during it: the call after the last shard's end (its shard number is one too high) asks all
//! primaries for the topology, and if its fingerprint (who owns what, since which config epoch) is not that in the cursor,
//! or a slot is just moving, another pass begins. Resharding bumps the epoch of the new owner, so that a slot that went and
//! came back is seen too, and a failover changes the owner's id, after which the old cursor would mean nothing. During a
//! long resharding a SCAN therefore returns elements more than once, as SCAN may, and ends when things are quiet.

use crate::merge;

/// Bits of the number of a slot in the cursor of our own servers.
const SLOT_BITS: u32 = 14;
const SHARD_SHIFT: u32 = 16;
const INNER_SHIFT: u32 = 26;
/// Most shards that a cursor can tell apart.
pub const SHARDS_MAX: usize = 1 << (INNER_SHIFT - SHARD_SHIFT);
const INNER_MAX: u64 = u64::MAX >> INNER_SHIFT;

/// What is said when a server's cursor does not fit into ours.
pub const TOO_LARGE: &str = "ERR the server's cursor is too large to be passed on: use SCAN on the server itself";

/// The slot that a cursor of our own servers stands at.
#[inline]
pub fn slot_of_cursor(cursor: u64) -> u16 {
    (cursor & ((1 << SLOT_BITS) - 1)) as u16
}

/// What a topology looked like, in sixteen bits; never 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fingerprint(u16);

impl Fingerprint {
    /// That of a topology that never changes.
    pub const FIXED: Fingerprint = Fingerprint(1);

    /// Folds a hash.
    pub fn of(hash: u64) -> Self {
        let folded = hash ^ hash >> 32;
        let folded = folded ^ folded >> 16;
        #[expect(clippy::cast_possible_truncation, reason = "folded to sixteen bits")]
        let folded = folded as u16;
        Fingerprint(folded.max(1))
    }
}

/// Where a walk over servers of another make stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The topology at the begin of this pass.
    pub fingerprint: Fingerprint,
    /// The shard.
    pub shard: usize,
    /// The server's cursor.
    pub inner: u64,
}

impl Place {
    /// The begin of a pass.
    pub fn start(fingerprint: Fingerprint) -> Self {
        Place { fingerprint, shard: 0, inner: 0 }
    }

    /// The place that a client's cursor names; `now` is the topology, for a cursor of 0 or one that is none of ours.
    pub fn of_cursor(cursor: u64, now: Fingerprint) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "cut to sixteen bits")]
        let fingerprint = cursor as u16;
        if fingerprint == 0 {
            return Place::start(now);
        }
        let shard = (cursor >> SHARD_SHIFT) as usize % SHARDS_MAX;
        Place { fingerprint: Fingerprint(fingerprint), shard, inner: cursor >> INNER_SHIFT }
    }

    /// The cursor for the client; `None` if the server's does not fit.
    pub fn cursor(self) -> Option<u64> {
        let Place { fingerprint: Fingerprint(fingerprint), shard, inner } = self;
        if shard >= SHARDS_MAX || inner > INNER_MAX {
            return None;
        }
        Some(inner << INNER_SHIFT | (shard as u64) << SHARD_SHIFT | u64::from(fingerprint))
    }

    /// Where to go on after a shard answered with its next cursor. Behind the last shard follows the question for the
    /// topology: [`Place::is_pass_over`].
    pub fn next(self, server_cursor: u64) -> Place {
        if server_cursor != 0 {
            return Place { inner: server_cursor, ..self };
        }
        Place { shard: self.shard + 1, inner: 0, ..self }
    }

    /// Whether all shards were walked.
    pub fn is_pass_over(self, shards: usize) -> bool {
        self.shard >= shards
    }

    /// Where to go on after a pass, when `now` was just asked of all primaries; `None`: the walk is complete.
    pub fn after_pass(self, now: Fingerprint, is_moving: bool) -> Option<Place> {
        (now != self.fingerprint || is_moving).then_some(Place::start(now))
    }
}

/// The parts of a reply to SCAN: the cursor, and the bytes that follow it.
pub fn split_reply(reply: &[u8]) -> Option<(u64, &[u8])> {
    let (2, mut rest) = merge::elements(reply)? else { return None };
    let cursor = merge::bulk(merge::take_reply(&mut rest)?)?;
    Some((std::str::from_utf8(cursor).ok()?.parse().ok()?, rest))
}

/// Appends a reply to SCAN: a cursor and the elements as they came.
pub fn write_reply(out: &mut Vec<u8>, cursor: u64, elements: &[u8]) {
    let mut digits = itoa::Buffer::new();
    let digits = digits.format(cursor);
    let mut length = itoa::Buffer::new();
    for piece in ["*2\r\n$", length.format(digits.len()), "\r\n", digits, "\r\n"] {
        out.extend_from_slice(piece.as_bytes());
    }
    out.extend_from_slice(elements);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::cast_possible_truncation)]
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn cursors_come_back_as_they_went() {
        let fingerprint = Fingerprint::of(0x1234_5678_9abc_def0);
        for place in [
            Place { fingerprint, shard: 0, inner: 0 },
            Place { fingerprint, shard: 1023, inner: INNER_MAX },
            Place { fingerprint: Fingerprint::FIXED, shard: 5, inner: 1 << 27 },
        ] {
            let cursor = place.cursor().unwrap();
            assert_ne!(cursor, 0);
            assert_eq!(Place::of_cursor(cursor, Fingerprint::FIXED), place);
        }
        assert_eq!(Place { fingerprint, shard: 1024, inner: 0 }.cursor(), None);
        assert_eq!(Place { fingerprint, shard: 0, inner: INNER_MAX + 1 }.cursor(), None);
        // A hundred million keys in a shard: still exact in a double.
        assert!(Place { fingerprint, shard: 1023, inner: (1 << 27) - 1 }.cursor().unwrap() < 1 << 53);
    }

    #[test]
    fn any_cursor_is_some_place() {
        for cursor in [0, 1, 1 << 16, u64::MAX, 1 << 63] {
            assert!(Place::of_cursor(cursor, Fingerprint::FIXED).shard < SHARDS_MAX);
        }
        assert_eq!(Fingerprint::of(0), Fingerprint(1));
    }

    #[test]
    fn replies_are_taken_apart_and_put_together() {
        let reply = b"*2\r\n$2\r\n17\r\n*1\r\n$1\r\na\r\n";
        let (cursor, rest) = split_reply(reply).unwrap();
        assert_eq!(cursor, 17);
        let mut out = Vec::new();
        write_reply(&mut out, 17, rest);
        assert_eq!(out, reply);
        assert_eq!(split_reply(b"-ERR x\r\n"), None);
        assert_eq!(split_reply(b"*2\r\n$1\r\nx\r\n*0\r\n"), None);
    }

    /// Shards as sets of numbered keys, each with a slot; a server's cursor is the next key's number.
    struct Cluster {
        owner: Vec<usize>,
        moves: u64,
        shards: usize,
    }

    impl Cluster {
        fn fingerprint(&self) -> Fingerprint {
            Fingerprint::of(self.moves.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        }

        fn scan(&self, shard: usize, from: u64) -> (u64, Option<usize>) {
            let found = (from as usize..self.owner.len()).find(|key| self.owner[*key] == shard);
            (found.map_or(0, |key| key as u64 + 1) % (self.owner.len() as u64 + 1), found)
        }
    }

    /// Keys move at random between the calls of a scan; moves end at some time. All keys must have been returned.
    #[test]
    fn whatever_moves_nothing_is_missed() {
        for seed in 0..300 {
            let mut random = fastrand::Rng::with_seed(seed);
            let shards = random.usize(1..5);
            let keys = random.usize(1..30);
            let owner = (0..keys).map(|_| random.usize(0..shards)).collect();
            let mut cluster = Cluster { owner, moves: seed, shards };
            let (mut seen, mut cursor, mut calls) = (BTreeSet::new(), 0, 0);
            loop {
                let place = Place::of_cursor(cursor, cluster.fingerprint());
                calls += 1;
                let next = if place.is_pass_over(cluster.shards) {
                    place.after_pass(cluster.fingerprint(), false)
                } else {
                    let (next, found) = cluster.scan(place.shard, place.inner);
                    seen.extend(found);
                    Some(place.next(next))
                };
                if calls < 150 && random.u8(0..4) == 0 {
                    let key = random.usize(0..keys);
                    cluster.owner[key] = random.usize(0..shards);
                    cluster.moves += 1;
                }
                match next {
                    Some(place) => cursor = place.cursor().unwrap(),
                    None => break,
                }
            }
            assert_eq!(seen.len(), keys, "seed {seed}");
            assert!(calls < 400, "seed {seed}: it ends when nothing moves");
        }
    }
}
