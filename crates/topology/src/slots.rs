//! Sets of slots, kept and written as ascending ranges.
//!
//! In JSON a set is `[[0,99],[200,200]]`, in commands and for people it is `0-99,200`; both ends belong to a range.
//! A set holds its ranges ascending, apart from each other by at least one slot, so two equal sets are equal field by
//! field and print alike.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How keys are hashed to slots, fixed when a cluster is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SlotSpace {
    /// 16384 slots by CRC16, as Redis Cluster.
    #[default]
    Redis,
    /// 1024 slots by CRC32, as Codis.
    Codis,
}

impl SlotSpace {
    /// How many slots there are.
    pub const fn slots(self) -> u16 {
        match self {
            SlotSpace::Redis => 16384,
            SlotSpace::Codis => 1024,
        }
    }

    /// All slots of it.
    pub fn all(self) -> SlotSet {
        SlotSet { ranges: vec![(0, self.slots() - 1)] }
    }
}

impl fmt::Display for SlotSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SlotSpace::Redis => "redis",
            SlotSpace::Codis => "codis",
        })
    }
}

impl FromStr for SlotSpace {
    type Err = BadRanges;

    fn from_str(text: &str) -> Result<SlotSpace, BadRanges> {
        match text {
            "redis" => Ok(SlotSpace::Redis),
            "codis" => Ok(SlotSpace::Codis),
            _ => Err(BadRanges(format!("a slot space is 'redis' or 'codis', not '{text}'"))),
        }
    }
}

/// A set of slots.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct SlotSet {
    /// First and last of each range: ascending, with at least one slot between two ranges.
    ranges: Vec<(u16, u16)>,
}

/// A text or JSON that is no set of slots, and why.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadRanges(pub String);

impl SlotSet {
    /// The empty set.
    pub const fn new() -> SlotSet {
        SlotSet { ranges: Vec::new() }
    }

    /// The slots from `first` to `last`, both included; nothing when `last` is before `first`.
    pub fn range(first: u16, last: u16) -> SlotSet {
        SlotSet { ranges: if first <= last { vec![(first, last)] } else { Vec::new() } }
    }

    /// The ranges, ascending; both ends belong to them.
    pub fn ranges(&self) -> &[(u16, u16)] {
        &self.ranges
    }

    /// Whether there is no slot in it.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// How many slots are in it: a walk over its ranges.
    pub fn count(&self) -> usize {
        self.ranges.iter().map(|&(first, last)| usize::from(last - first) + 1).sum()
    }

    /// Whether `slot` is in it, by binary search.
    pub fn contains(&self, slot: u16) -> bool {
        let after = self.ranges.partition_point(|&(first, _)| first <= slot);
        after.checked_sub(1).and_then(|at| self.ranges.get(at)).is_some_and(|&(_, last)| slot <= last)
    }

    /// The lowest slot.
    pub fn first(&self) -> Option<u16> {
        self.ranges.first().map(|&(first, _)| first)
    }

    /// The highest slot.
    pub fn last(&self) -> Option<u16> {
        self.ranges.last().map(|&(_, last)| last)
    }

    /// The slots, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        self.ranges.iter().flat_map(|&(first, last)| first..=last)
    }

    /// What is in either.
    pub fn union(&self, other: &SlotSet) -> SlotSet {
        SlotSet::normal(self.ranges.iter().chain(&other.ranges).copied().collect())
    }

    /// What is in both.
    pub fn intersection(&self, other: &SlotSet) -> SlotSet {
        let (mut ours, mut theirs) = (self.ranges.iter().peekable(), other.ranges.iter().peekable());
        let mut ranges = Vec::new();
        while let (Some(&&(first, last)), Some(&&(other_first, other_last))) = (ours.peek(), theirs.peek()) {
            let (from, to) = (first.max(other_first), last.min(other_last));
            if from <= to {
                ranges.push((from, to));
            }
            if last <= other_last {
                ours.next();
            } else {
                theirs.next();
            }
        }
        SlotSet { ranges }
    }

    /// What is in this one and not in `other`.
    pub fn difference(&self, other: &SlotSet) -> SlotSet {
        let mut ranges = Vec::new();
        let mut holes = other.ranges.iter().copied().peekable();
        for &(first, last) in &self.ranges {
            // What of the range is still to be looked at begins here; wider than a slot, for it may pass the last one.
            let mut from = u32::from(first);
            while let Some(&(hole_first, hole_last)) = holes.peek() {
                if u32::from(hole_last) < from {
                    holes.next();
                    continue;
                }
                if hole_first > last {
                    break;
                }
                if let Some(before) = hole_first.checked_sub(1).filter(|&before| from <= u32::from(before)) {
                    ranges.push((narrow(from), before));
                }
                from = u32::from(hole_last) + 1;
                if hole_last >= last {
                    break;
                }
                holes.next();
            }
            if from <= u32::from(last) {
                ranges.push((narrow(from), last));
            }
        }
        SlotSet { ranges }
    }

    /// Whether every slot of it is in `other` too.
    pub fn is_subset(&self, other: &SlotSet) -> bool {
        self.difference(other).is_empty()
    }

    /// Whether they have no slot in common.
    pub fn is_disjoint(&self, other: &SlotSet) -> bool {
        self.intersection(other).is_empty()
    }

    /// The `count` lowest slots of it (all, when there are fewer).
    pub fn lowest(&self, count: usize) -> SlotSet {
        self.iter().take(count).collect()
    }

    /// Whether all of it lies within a slot space; the error names the first slot that does not.
    pub fn within(&self, space: SlotSpace) -> Result<(), BadRanges> {
        match self.last() {
            Some(last) if last >= space.slots() => {
                Err(BadRanges(format!("slot {last} is beyond the last slot, {}", space.slots() - 1)))
            }
            _ => Ok(()),
        }
    }

    /// Sorts ranges that each are in order and joins those that touch or overlap.
    fn normal(mut given: Vec<(u16, u16)>) -> SlotSet {
        given.sort_unstable();
        let mut ranges: Vec<(u16, u16)> = Vec::with_capacity(given.len());
        for (first, last) in given {
            match ranges.last_mut() {
                Some((_, end)) if u32::from(first) <= u32::from(*end) + 1 => *end = last.max(*end),
                _ => ranges.push((first, last)),
            }
        }
        SlotSet { ranges }
    }
}

/// A number that is known to be a slot's.
fn narrow(slot: u32) -> u16 {
    u16::try_from(slot).unwrap_or(u16::MAX)
}

impl FromIterator<u16> for SlotSet {
    fn from_iter<I: IntoIterator<Item = u16>>(slots: I) -> SlotSet {
        SlotSet::normal(slots.into_iter().map(|slot| (slot, slot)).collect())
    }
}

/// `0-99,200`; nothing for the empty set.
impl fmt::Display for SlotSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, &(first, last)) in self.ranges.iter().enumerate() {
            if at > 0 {
                f.write_str(",")?;
            }
            if first == last {
                write!(f, "{first}")?;
            } else {
                write!(f, "{first}-{last}")?;
            }
        }
        Ok(())
    }
}

/// Reads `0-99,200`; ranges may come in any order, but no slot twice, and there must be one.
impl FromStr for SlotSet {
    type Err = BadRanges;

    fn from_str(text: &str) -> Result<SlotSet, BadRanges> {
        let number = |part: &str| {
            let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            let slot = if digits { part.parse::<u16>().ok() } else { None };
            slot.filter(|&slot| slot < SlotSpace::Redis.slots())
                .ok_or_else(|| BadRanges(format!("'{part}' in '{text}' is no slot: give ranges like 0-99,200")))
        };
        let mut pairs = Vec::new();
        for part in text.split(',') {
            pairs.push(match part.split_once('-') {
                Some((first, last)) => (number(first)?, number(last)?),
                None => (number(part)?, number(part)?),
            });
        }
        SlotSet::from_pairs(pairs)
    }
}

impl SlotSet {
    /// The set of ranges that were given by somebody: each in order, no slot twice.
    pub fn from_pairs(pairs: Vec<(u16, u16)>) -> Result<SlotSet, BadRanges> {
        if let Some((first, last)) = pairs.iter().find(|(first, last)| first > last) {
            return Err(BadRanges(format!("the range {first}-{last} ends before it begins")));
        }
        let given: usize = pairs.iter().map(|&(first, last)| usize::from(last - first) + 1).sum();
        let set = SlotSet::normal(pairs);
        if set.count() != given {
            return Err(BadRanges("a slot is named twice".to_string()));
        }
        Ok(set)
    }
}

impl Serialize for SlotSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.ranges.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for SlotSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SlotSet, D::Error> {
        let pairs = Vec::<(u16, u16)>::deserialize(deserializer)?;
        SlotSet::from_pairs(pairs).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts_are_read_and_printed() {
        for (given, printed) in [("0", "0"), ("0-99,200", "0-99,200"), ("5,4,3", "3-5"), ("16383,0-16382", "0-16383")] {
            assert_eq!(given.parse::<SlotSet>().unwrap().to_string(), printed, "{given}");
        }
        for bad in
            ["", ",", "1,", "-1", "+1", "1-", "5-4", "1,1", "1-5,5", "16384", "99999", "a", " 1", "1--2", "1-2-3"]
        {
            assert!(bad.parse::<SlotSet>().is_err(), "'{bad}' was read");
        }
        assert!("1-5,3".parse::<SlotSet>().unwrap_err().to_string().contains("twice"));
        assert_eq!(SlotSet::new().to_string(), "");
    }

    #[test]
    fn json_is_pairs() {
        let set: SlotSet = serde_json::from_str("[[200,200],[0,99]]").unwrap();
        assert_eq!(serde_json::to_string(&set).unwrap(), "[[0,99],[200,200]]");
        assert!(serde_json::from_str::<SlotSet>("[[9,3]]").is_err());
        assert!(serde_json::from_str::<SlotSet>("[[0,9],[3,4]]").is_err());
    }

    #[test]
    fn spaces_have_their_sizes() {
        assert_eq!(SlotSpace::Redis.all().count(), 16384);
        assert_eq!(SlotSpace::Codis.all().to_string(), "0-1023");
        assert!(SlotSet::range(1000, 1024).within(SlotSpace::Codis).is_err());
        assert!(SlotSet::range(1000, 1023).within(SlotSpace::Codis).is_ok());
    }

    fn slots() -> impl Strategy<Value = BTreeSet<u16>> {
        proptest::collection::btree_set(prop_oneof![0u16..40, 16370u16..16384, 65530u16..=65535], 0..40)
    }

    proptest! {
        #[test]
        fn sets_do_what_sets_do(left in slots(), right in slots()) {
            let (one, two): (SlotSet, SlotSet) = (left.iter().copied().collect(), right.iter().copied().collect());
            let same = |set: SlotSet, want: BTreeSet<u16>| {
                prop_assert_eq!(set.count(), want.len());
                prop_assert_eq!(&want.iter().copied().collect::<SlotSet>(), &set);
                prop_assert!(set.ranges().windows(2).all(|pair| u32::from(pair[0].1) + 1 < u32::from(pair[1].0)));
                Ok(())
            };
            same(one.union(&two), &left | &right)?;
            same(one.intersection(&two), &left & &right)?;
            same(one.difference(&two), &left - &right)?;
            same(one.lowest(5), left.iter().copied().take(5).collect())?;
            prop_assert_eq!(one.is_subset(&two), left.is_subset(&right));
            prop_assert_eq!(one.is_disjoint(&two), left.is_disjoint(&right));
            for slot in (0..45).chain(16365..16384).chain(65528..=65535) {
                prop_assert_eq!(one.contains(slot), left.contains(&slot));
            }
            prop_assert!(one.iter().eq(left.iter().copied()));
            if one.last().is_some_and(|last| last < 16384) {
                prop_assert_eq!(one.to_string().parse::<SlotSet>().unwrap(), one.clone());
            }
            let json = serde_json::to_string(&one).unwrap();
            prop_assert_eq!(serde_json::from_str::<SlotSet>(&json).unwrap(), one);
        }
    }
}
