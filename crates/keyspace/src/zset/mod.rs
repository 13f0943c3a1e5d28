//! The sorted set object: a small listpack, or a tree with a hash index.
//!
//! ```text
//! ZSet (8 bytes, tagged) ─► listpack: member, score, member, score, …    up to zset-max-listpack-entries / -value
//!                        └► Big ─► Tree   order statistics: score, then member bytes
//!                               └► Table  member → blob with its score
//! ```
//!
//! Everything about ranges goes through ranks: a range of scores or members is turned into ranks in O(log n), so
//! counting is a subtraction, and walking, LIMIT offsets and removal are by rank.
//!
//! Redis: the big form is called `skiplist`. A listpack becomes one when an addition passes the limits; removals never
//! turn it back, only a freshly built set (RDB load, Z*STORE) becomes a listpack again.
//!
//! Order: score (−0 equals 0), then bytes of the member. Scores are never NaN; callers refuse it.

use std::fmt;
use std::ops;

use rdb::listpack::{Elem, Listpack};

use crate::tagged::{Choice, Tagged};

mod big;
mod member;
mod packed;
mod range;
#[cfg(test)]
mod tests;
mod tree;

pub use range::{LexBound, Range, ScoreRange};

use big::Big;
use range::clamp;

/// What the configuration says about sorted sets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ZSetLimits {
    /// `zset-max-listpack-entries`: members of a listpack.
    pub max_listpack_entries: usize,
    /// `zset-max-listpack-value`: bytes of a member in a listpack.
    pub max_listpack_value: usize,
}

impl Default for ZSetLimits {
    fn default() -> Self {
        ZSetLimits { max_listpack_entries: 128, max_listpack_value: 64 }
    }
}

/// What [`ZSet::add`] did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Added {
    /// The member is new.
    Added,
    /// The member's score changed.
    Updated,
    /// The member had that score.
    Same,
}

/// A listpack that is no sorted set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InvalidZSet;

impl fmt::Display for InvalidZSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("malformed sorted set listpack")
    }
}

impl std::error::Error for InvalidZSet {}

/// A sorted set: 8 bytes, whatever it holds.
///
/// An operation that leaves it empty leaves an empty object; the caller deletes the key.
#[repr(transparent)]
pub struct ZSet {
    form: Tagged<Listpack, Big>,
}

const _: () = assert!(size_of::<ZSet>() == 8);

#[derive(Clone, Copy)]
enum Form<'a> {
    Pack(&'a Listpack),
    Big(&'a Big),
}

impl ZSet {
    /// An empty listpack.
    pub fn new() -> ZSet {
        ZSet { form: Tagged::thin(Listpack::new()) }
    }

    /// An empty set in the form that Redis picks for `members` members to come, the first of them `value_len` bytes.
    pub fn with_hint(members: usize, value_len: usize, limits: &ZSetLimits) -> ZSet {
        if members <= limits.max_listpack_entries && value_len <= limits.max_listpack_value {
            return ZSet::new();
        }
        ZSet { form: Tagged::boxed(Box::new(Big::new())) }
    }

    /// Before adding `members` members by one command.
    ///
    /// Redis: more of them than a listpack may hold make it a `skiplist` at once, even if most are there already.
    pub fn expect_members(&mut self, members: usize, limits: &ZSetLimits) {
        if members > limits.max_listpack_entries {
            self.make_big();
        }
    }

    /// A set from a saved listpack. Entries out of order are sorted.
    ///
    /// # Errors
    /// An odd number of elements, a score that is no number, or a member that comes twice.
    pub fn from_listpack(pack: Listpack, limits: &ZSetLimits) -> Result<ZSet, InvalidZSet> {
        if !pack.len().is_multiple_of(2) {
            return Err(InvalidZSet);
        }
        let mut sorted = true;
        let mut last: Option<(f64, Elem<'_>)> = None;
        // Uniqueness needs an index; a set of sane size is cheap to build, and only a large one is kept.
        let mut big = Big::new();
        for (member, score) in pack.pairs() {
            let score = packed::parse_score(score).filter(|score| !score.is_nan()).ok_or(InvalidZSet)?;
            let bytes = member.to_vec();
            if !big.add_absent(&bytes, score) {
                return Err(InvalidZSet);
            }
            sorted &= last.is_none_or(|(before, elem)| {
                before < score || (before == score && packed::compare(elem, &bytes).is_lt())
            });
            last = Some((score, member));
        }
        if packed::len(&pack) > limits.max_listpack_entries {
            return Ok(ZSet { form: Tagged::boxed(Box::new(big)) });
        }
        let pack = if sorted { pack } else { to_listpack(&big) };
        Ok(ZSet { form: Tagged::thin(pack) })
    }

    /// The listpack, if the set is one.
    pub fn as_listpack(&self) -> Option<&Listpack> {
        match self.form() {
            Form::Pack(pack) => Some(pack),
            Form::Big(_) => None,
        }
    }

    /// What OBJECT ENCODING answers: `listpack` or `skiplist`.
    pub fn encoding(&self) -> &'static str {
        match self.form() {
            Form::Pack(_) => "listpack",
            Form::Big(_) => "skiplist",
        }
    }

    /// Number of members.
    #[inline]
    pub fn len(&self) -> usize {
        match self.form() {
            Form::Pack(pack) => packed::len(pack),
            Form::Big(big) => big.len(),
        }
    }

    /// Whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The member's score.
    #[inline]
    pub fn score(&self, member: &[u8]) -> Option<f64> {
        match self.form() {
            Form::Pack(pack) => packed::find(pack, member).map(|(_, score)| score),
            Form::Big(big) => big.score(member),
        }
    }

    /// Adds a member or gives it a new score. `score` is not NaN.
    pub fn add(&mut self, member: &[u8], score: f64, limits: &ZSetLimits) -> Added {
        debug_assert!(!score.is_nan(), "callers refuse NaN");
        match self.form.get_mut() {
            Choice::Thin(pack) => {
                if let Some((pos, old)) = packed::find(pack, member) {
                    if old == score {
                        return Added::Same;
                    }
                    packed::delete(pack, pos);
                    packed::insert(pack, member, score);
                    return Added::Updated;
                }
                if packed::len(pack) < limits.max_listpack_entries
                    && member.len() <= limits.max_listpack_value
                    && pack.safe_to_add(member.len())
                {
                    packed::insert(pack, member, score);
                    return Added::Added;
                }
            }
            Choice::Boxed(big) => return big.add(member, score),
            Choice::Third(_) => {}
        }
        self.make_big();
        match self.form.get_mut() {
            Choice::Boxed(big) => big.add(member, score),
            _ => Added::Same,
        }
    }

    /// Removes a member; gives its score.
    pub fn remove(&mut self, member: &[u8]) -> Option<f64> {
        match self.form.get_mut() {
            Choice::Thin(pack) => {
                let (pos, score) = packed::find(pack, member)?;
                packed::delete(pack, pos);
                Some(score)
            }
            Choice::Boxed(big) => big.remove(member),
            Choice::Third(_) => None,
        }
    }

    /// The member's rank from the lowest, and its score.
    pub fn rank(&self, member: &[u8]) -> Option<(usize, f64)> {
        match self.form() {
            Form::Pack(pack) => packed::rank(pack, member),
            Form::Big(big) => big.rank(member),
        }
    }

    /// The member's rank from the highest, and its score.
    pub fn rank_back(&self, member: &[u8]) -> Option<(usize, f64)> {
        let (rank, score) = self.rank(member)?;
        Some((self.len() - 1 - rank, score))
    }

    /// The member with that rank, and its score.
    pub fn by_rank(&self, rank: usize) -> Option<(Elem<'_>, f64)> {
        match self.form() {
            Form::Pack(pack) => {
                let (member, score) = pack.pair(rank)?;
                Some((member, packed::score_of(score)))
            }
            Form::Big(big) => {
                let entry = big.tree().get(rank)?;
                Some((Elem::Bytes(entry.member.bytes()), entry.score))
            }
        }
    }

    /// A member, each with the same chance, and its score.
    pub fn random(&self, rng: &mut fastrand::Rng) -> Option<(Elem<'_>, f64)> {
        if self.is_empty() {
            return None;
        }
        self.by_rank(rng.usize(..self.len()))
    }

    /// Members with those ranks, ascending.
    pub fn range(&self, ranks: ops::Range<usize>) -> Range<'_> {
        self.walk(ranks, false)
    }

    /// Members with those ranks (counted from the lowest), descending.
    pub fn range_back(&self, ranks: ops::Range<usize>) -> Range<'_> {
        self.walk(ranks, true)
    }

    /// All members, ascending.
    pub fn iter(&self) -> Range<'_> {
        self.range(0..self.len())
    }

    /// The ranks of the members with scores in `range`: its length counts them. O(log n).
    pub fn score_ranks(&self, range: &ScoreRange) -> ops::Range<usize> {
        let (start, end) = match self.form() {
            Form::Pack(pack) => (
                packed::count_where(pack, |_, score| range.is_below(score)),
                packed::count_where(pack, |_, score| range.is_up_to_max(score)),
            ),
            Form::Big(big) => (
                big.tree().count_where(|entry| range.is_below(entry.score)),
                big.tree().count_where(|entry| range.is_up_to_max(entry.score)),
            ),
        };
        start.min(end)..end
    }

    /// The ranks of the members between `min` and `max`, where all scores are equal. O(log n).
    pub fn lex_ranks(&self, min: &LexBound<'_>, max: &LexBound<'_>) -> ops::Range<usize> {
        let (start, end) = match self.form() {
            Form::Pack(pack) => {
                let mut scratch = [0; 24];
                (
                    packed::count_where(pack, |member, _| min.is_above(member.to_bytes(&mut scratch))),
                    packed::count_where(pack, |member, _| max.reaches(member.to_bytes(&mut [0; 24]))),
                )
            }
            Form::Big(big) => (
                big.tree().count_where(|entry| min.is_above(entry.member.bytes())),
                big.tree().count_where(|entry| max.reaches(entry.member.bytes())),
            ),
        };
        start.min(end)..end
    }

    /// Removes the members with those ranks; returns how many. With [`Self::score_ranks`] and [`Self::lex_ranks`] also
    /// by score and member.
    pub fn remove_ranks(&mut self, ranks: ops::Range<usize>) -> usize {
        self.take_ranks(ranks, |_, _| ())
    }

    /// Removes the lowest member and gives it, with its score, to `with`.
    pub fn pop_min<R>(&mut self, with: impl FnOnce(Elem<'_>, f64) -> R) -> Option<R> {
        self.take_one(0, with)
    }

    /// Removes the highest member and gives it, with its score, to `with`.
    pub fn pop_max<R>(&mut self, with: impl FnOnce(Elem<'_>, f64) -> R) -> Option<R> {
        self.take_one(self.len().checked_sub(1)?, with)
    }

    /// Visits members from `cursor` on, about `count` of them, and gives the cursor to go on with, 0 at the end.
    ///
    /// A member that is there from the first call to the last is visited at least once, whatever changes between. A
    /// listpack is visited whole.
    pub fn scan(&self, cursor: u64, count: usize, mut visit: impl FnMut(Elem<'_>, f64)) -> u64 {
        match self.form() {
            Form::Pack(_) => {
                self.iter().for_each(|(member, score)| visit(member, score));
                0
            }
            Form::Big(big) => big.scan(cursor, count, |member, score| visit(Elem::Bytes(member), score)),
        }
    }

    /// Heap bytes behind the pointer.
    pub fn memory_bytes(&self) -> usize {
        match self.form() {
            Form::Pack(pack) => pack.allocated_bytes(),
            Form::Big(big) => big.memory_bytes(),
        }
    }

    /// Asserts the invariants of every level.
    pub fn check(&self) {
        match self.form() {
            Form::Pack(pack) => {
                pack.check();
                assert!(pack.len().is_multiple_of(2), "members come with scores");
                let mut last: Option<(f64, Vec<u8>)> = None;
                for (member, score) in pack.pairs() {
                    let score = packed::parse_score(score).unwrap_or(f64::NAN);
                    assert!(!score.is_nan(), "scores are numbers");
                    let bytes = member.to_vec();
                    if let Some((before, other)) = last {
                        assert!(before < score || (before == score && other < bytes), "pairs ascend");
                    }
                    last = Some((score, bytes));
                }
            }
            Form::Big(big) => big.check(),
        }
    }

    /// Whether its members are in a tree and a table.
    #[inline]
    #[must_use]
    pub fn is_big(&self) -> bool {
        matches!(self.form(), Form::Big(_))
    }

    /// Asks the processor for the bucket of the member with this hash.
    #[inline]
    pub fn prefetch_bucket(&self, hash: u64) {
        if let Form::Big(big) = self.form() {
            big.index().prefetch_bucket(hash);
        }
    }

    /// Asks for the member with this hash itself; reads the bucket.
    #[inline]
    pub fn prefetch_items(&self, hash: u64) {
        if let Form::Big(big) = self.form() {
            big.index().prefetch_items(hash);
        }
    }

    #[inline]
    fn form(&self) -> Form<'_> {
        match self.form.get() {
            Choice::Thin(pack) => Form::Pack(pack),
            Choice::Boxed(big) => Form::Big(big),
            Choice::Third(third) => match *third {},
        }
    }

    fn walk(&self, ranks: ops::Range<usize>, backward: bool) -> Range<'_> {
        match self.form() {
            Form::Pack(pack) => Range::packed(pack, ranks, backward),
            Form::Big(big) => Range::tree(big.tree(), ranks, backward),
        }
    }

    fn take_one<R>(&mut self, rank: usize, with: impl FnOnce(Elem<'_>, f64) -> R) -> Option<R> {
        let mut with = Some(with);
        let mut result = None;
        self.take_ranks(rank..rank.saturating_add(1), |member, score| {
            result = with.take().map(|with| with(member, score));
        });
        result
    }

    fn take_ranks(&mut self, ranks: ops::Range<usize>, mut with: impl FnMut(Elem<'_>, f64)) -> usize {
        let ranks = clamp(ranks, self.len());
        match self.form.get_mut() {
            Choice::Thin(pack) => {
                Range::packed(pack, ranks.clone(), false).for_each(|(member, score)| with(member, score));
                if let Some(pos) = packed::seek(pack, ranks.start) {
                    pack.delete_at(pos, ranks.len() * 2);
                }
                ranks.len()
            }
            Choice::Boxed(big) => {
                big.remove_ranks(ranks.start, ranks.len(), |member, score| with(Elem::Bytes(member), score))
            }
            Choice::Third(_) => 0,
        }
    }

    /// Gives up the compact form (SORT does, in Redis).
    pub fn make_big(&mut self) {
        let Form::Pack(pack) = self.form() else { return };
        let mut big = Box::new(Big::new());
        for (member, score) in pack.pairs() {
            big.add_absent(member.to_bytes(&mut [0; 24]), packed::score_of(score));
        }
        self.form = Tagged::boxed(big);
    }
}

fn to_listpack(big: &Big) -> Listpack {
    let mut pack = Listpack::new();
    for (member, score) in Range::tree(big.tree(), 0..big.len(), false) {
        packed::insert(&mut pack, member.to_bytes(&mut [0; 24]), score);
    }
    pack
}

impl Default for ZSet {
    fn default() -> Self {
        ZSet::new()
    }
}

impl Clone for ZSet {
    fn clone(&self) -> Self {
        let form = match self.form() {
            Form::Pack(pack) => Tagged::thin(pack.clone()),
            Form::Big(big) => Tagged::boxed(Box::new(big.clone())),
        };
        ZSet { form }
    }
}

impl fmt::Debug for ZSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Builds a set from members in any order: RDB load, Z*STORE, GEO…STORE.
///
/// Ascending and descending scores are the cheap orders (RDB holds them descending).
pub struct ZSetBuilder {
    big: Big,
    value_max: usize,
    value_bytes: usize,
}

impl ZSetBuilder {
    /// Nothing yet.
    pub fn new() -> ZSetBuilder {
        ZSetBuilder { big: Big::new(), value_max: 0, value_bytes: 0 }
    }

    /// Adds a member; false, and nothing done, if it is there. `score` is not NaN.
    pub fn push(&mut self, member: &[u8], score: f64) -> bool {
        debug_assert!(!score.is_nan(), "callers refuse NaN");
        let added = self.big.add_absent(member, score);
        if added {
            self.value_max = self.value_max.max(member.len());
            self.value_bytes += member.len();
        }
        added
    }

    /// The set: a listpack if the limits allow.
    pub fn finish(self, limits: &ZSetLimits) -> ZSet {
        let packs = self.big.len() <= limits.max_listpack_entries
            && self.value_max <= limits.max_listpack_value
            && Listpack::new().safe_to_add(self.value_bytes);
        let form = if packs { Tagged::thin(to_listpack(&self.big)) } else { Tagged::boxed(Box::new(self.big)) };
        ZSet { form }
    }
}

impl Default for ZSetBuilder {
    fn default() -> Self {
        ZSetBuilder::new()
    }
}
