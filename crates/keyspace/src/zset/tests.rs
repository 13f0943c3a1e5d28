#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::cmp::Ordering;
use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// Members by name, and the order computed afresh.
#[derive(Clone, Debug, Default)]
struct Model(BTreeMap<Vec<u8>, f64>);

impl Model {
    fn sorted(&self) -> Vec<(Vec<u8>, f64)> {
        let mut pairs: Vec<_> = self.0.iter().map(|(member, score)| (member.clone(), *score)).collect();
        pairs.sort_by(|a, b| a.1.partial_cmp(&b.1).unwrap_or(Ordering::Equal).then_with(|| a.0.cmp(&b.0)));
        pairs
    }
}

fn pairs(range: Range<'_>) -> Vec<(Vec<u8>, f64)> {
    range.map(|(member, score)| (member.to_vec(), score)).collect()
}

fn member(number: u32) -> Vec<u8> {
    match number % 3 {
        0 => number.to_string().into_bytes(),
        1 => format!("elem:{number:012}").into_bytes(),
        _ => vec![u8::try_from(number % 251).unwrap(); (number % 90) as usize],
    }
}

fn score() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => (-20_i32..20).prop_map(f64::from),
        2 => (-20_i32..20).prop_map(|number| f64::from(number) / 8.0),
        1 => prop_oneof![Just(f64::INFINITY), Just(f64::NEG_INFINITY), Just(-0.0), Just(1e300), Just(0.1)],
    ]
}

#[derive(Clone, Debug)]
enum Step {
    Add(u32, f64),
    Remove(u32),
    Pop(bool),
    RemoveRanks(usize, usize),
    RemoveScores(f64, f64),
    Look(u32),
    Scores(f64, f64, bool, bool),
}

fn step(members: u32) -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => (0..members, score()).prop_map(|(number, score)| Step::Add(number, score)),
        6 => (0..members).prop_map(Step::Remove),
        2 => any::<bool>().prop_map(Step::Pop),
        1 => (any::<usize>(), 0_usize..6).prop_map(|(start, count)| Step::RemoveRanks(start, count)),
        1 => (score(), score()).prop_map(|(min, max)| Step::RemoveScores(min, max)),
        4 => (0..members).prop_map(Step::Look),
        4 => (score(), score(), any::<bool>(), any::<bool>()).prop_map(|(a, b, c, d)| Step::Scores(a, b, c, d)),
    ]
}

fn apply(set: &mut ZSet, model: &mut Model, step: Step, limits: &ZSetLimits) {
    match step {
        Step::Add(number, score) => {
            let member = member(number);
            let expected = match model.0.get(&member) {
                None => Added::Added,
                Some(old) if *old == score => Added::Same,
                Some(_) => Added::Updated,
            };
            assert_eq!(set.add(&member, score, limits), expected);
            if expected != Added::Same {
                model.0.insert(member, score);
            }
        }
        Step::Remove(number) => {
            let member = member(number);
            assert_eq!(set.remove(&member), model.0.remove(&member));
        }
        Step::Pop(lowest) => {
            let sorted = model.sorted();
            let expected = if lowest { sorted.first() } else { sorted.last() }.cloned();
            let keep = |member: Elem<'_>, score| (member.to_vec(), score);
            let popped = if lowest { set.pop_min(keep) } else { set.pop_max(keep) };
            assert_eq!(popped, expected);
            if let Some((member, _)) = expected {
                model.0.remove(&member);
            }
        }
        Step::RemoveRanks(start, count) => {
            let start = start % (set.len() + 1);
            let gone: Vec<_> = model.sorted().into_iter().skip(start).take(count).collect();
            assert_eq!(set.remove_ranks(start..start + count), gone.len());
            for (member, _) in gone {
                model.0.remove(&member);
            }
        }
        Step::RemoveScores(min, max) => {
            // Narrow, or little would ever be left.
            let max = if max < min + 2.0 { max } else { min };
            let range = ScoreRange { min, max, min_exclusive: false, max_exclusive: false };
            let before = model.0.len();
            model.0.retain(|_, score| !(min <= *score && *score <= max));
            assert_eq!(set.remove_ranks(set.score_ranks(&range)), before - model.0.len());
        }
        Step::Look(number) => {
            let member = member(number);
            assert_eq!(set.score(&member), model.0.get(&member).copied());
            let rank = model.sorted().iter().position(|(other, _)| *other == member);
            assert_eq!(set.rank(&member).map(|(rank, _)| rank), rank);
            assert_eq!(set.rank_back(&member).map(|(rank, _)| rank), rank.map(|rank| model.0.len() - 1 - rank));
            if let Some(rank) = rank {
                assert_eq!(set.by_rank(rank).unwrap().0.to_vec(), member);
            }
        }
        Step::Scores(min, max, min_exclusive, max_exclusive) => {
            let range = ScoreRange { min, max, min_exclusive, max_exclusive };
            let inside = |score: f64| {
                (if min_exclusive { score > min } else { score >= min })
                    && (if max_exclusive { score < max } else { score <= max })
            };
            let mut expected: Vec<_> = model.sorted().into_iter().filter(|(_, score)| inside(*score)).collect();
            let ranks = set.score_ranks(&range);
            assert_eq!(ranks.len(), expected.len());
            assert_eq!(pairs(set.range(ranks.clone())), expected);
            expected.reverse();
            assert_eq!(pairs(set.range_back(ranks)), expected);
        }
    }
}

fn scan_all(set: &ZSet) -> Vec<Vec<u8>> {
    let mut seen = Vec::new();
    let mut cursor = 0;
    loop {
        cursor = set.scan(cursor, 10, |member, _| seen.push(member.to_vec()));
        if cursor == 0 {
            break;
        }
    }
    seen.sort();
    seen.dedup();
    seen
}

fn agrees(set: &ZSet, model: &Model) {
    let sorted = model.sorted();
    assert_eq!(pairs(set.iter()), sorted);
    let reversed: Vec<_> = sorted.iter().rev().cloned().collect();
    assert_eq!(pairs(set.range_back(0..usize::MAX)), reversed);
    assert_eq!(pairs(set.clone().iter()), sorted);
    assert_eq!(scan_all(set), model.0.keys().cloned().collect::<Vec<_>>());
    set.clone().check();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn a_small_set_behaves_like_the_model(
        steps in prop::collection::vec(step(60), 1..200),
        max_listpack_entries in prop_oneof![Just(128_usize), 0_usize..20],
    ) {
        let limits = ZSetLimits { max_listpack_entries, max_listpack_value: 64 };
        let (mut set, mut model) = (ZSet::new(), Model::default());
        for step in steps {
            apply(&mut set, &mut model, step, &limits);
            set.check();
            assert_eq!(set.len(), model.0.len());
        }
        agrees(&set, &model);
        if let Some(pack) = set.as_listpack() {
            let again = ZSet::from_listpack(pack.clone(), &limits).unwrap();
            assert_eq!(again.as_listpack(), Some(pack));
        }
    }

    #[test]
    fn a_big_set_behaves_like_the_model(steps in prop::collection::vec(step(3000), 500..4000)) {
        let limits = ZSetLimits { max_listpack_entries: 0, max_listpack_value: 64 };
        let (mut set, mut model) = (ZSet::new(), Model::default());
        for (at, step) in steps.into_iter().enumerate() {
            // The model sorts for what looks at order, so most steps here only change.
            if matches!(step, Step::Add(..) | Step::Remove(_)) || at % 37 == 0 {
                apply(&mut set, &mut model, step, &limits);
            }
            if at % 97 == 0 {
                set.check();
            }
        }
        set.check();
        agrees(&set, &model);
    }
}

const BIG: ZSetLimits = ZSetLimits { max_listpack_entries: 0, max_listpack_value: 0 };

#[test]
fn a_tree_of_some_levels_grows_and_shrinks_in_any_order() {
    let count = 60_000_u32;
    for stride in [1, 7919, count - 1] {
        let mut set = ZSet::new();
        for step in 0..count {
            let number = u32::try_from(u64::from(step) * u64::from(stride) % u64::from(count)).unwrap();
            set.add(format!("elem:{number:012}").as_bytes(), f64::from(number), &BIG);
        }
        set.check();
        assert_eq!(set.len(), 60_000);
        for number in (0..count).step_by(101) {
            let name = format!("elem:{number:012}");
            assert_eq!(set.rank(name.as_bytes()), Some((number as usize, f64::from(number))));
        }
        // Scores that move members far.
        for number in (0..count).step_by(7) {
            let name = format!("elem:{number:012}");
            assert_eq!(set.add(name.as_bytes(), f64::from(number) + 1e6, &BIG), Added::Updated);
        }
        set.check();
        assert_eq!(set.remove_ranks(10_000..40_000), 30_000);
        set.check();
        for number in 0..count {
            set.remove(format!("elem:{number:012}").as_bytes());
            if number % 5000 == 0 {
                set.check();
            }
        }
        assert!(set.is_empty());
        set.check();
    }
}

#[test]
fn members_of_one_score_are_found_by_lex_range() {
    for limits in [BIG, ZSetLimits { max_listpack_entries: 5000, max_listpack_value: 64 }] {
        let mut set = ZSet::new();
        for number in 0..2000_u32 {
            set.add(format!("m{number:05}").as_bytes(), 0.0, &limits);
        }
        set.check();
        let ranks = set.lex_ranks(&LexBound::Inclusive(b"m00010"), &LexBound::Exclusive(b"m00020"));
        assert_eq!(ranks, 10..20);
        let ranks = set.lex_ranks(&LexBound::Exclusive(b"m00010"), &LexBound::Inclusive(b"m00020"));
        assert_eq!(ranks, 11..21);
        assert_eq!(set.lex_ranks(&LexBound::Lowest, &LexBound::Highest), 0..2000);
        assert!(set.lex_ranks(&LexBound::Highest, &LexBound::Lowest).is_empty());
        assert!(set.lex_ranks(&LexBound::Highest, &LexBound::Highest).is_empty());
        assert!(set.lex_ranks(&LexBound::Exclusive(b"m00010"), &LexBound::Exclusive(b"m00010")).is_empty());
        assert!(set.lex_ranks(&LexBound::Inclusive(b"z"), &LexBound::Inclusive(b"a")).is_empty());
    }
}

#[test]
fn conversion_follows_the_limits() {
    let limits = ZSetLimits::default();
    let mut set = ZSet::new();
    for number in 0..128 {
        set.add(number.to_string().as_bytes(), 1.0, &limits);
    }
    assert_eq!(set.encoding(), "listpack");
    set.add(b"0", 2.0, &limits);
    assert_eq!(set.encoding(), "listpack");
    set.add(b"128", 1.0, &limits);
    assert_eq!(set.encoding(), "skiplist");
    set.pop_min(|_, _| ());
    assert_eq!(set.encoding(), "skiplist");

    let mut set = ZSet::new();
    set.add(&[b'x'; 64], 1.0, &limits);
    assert_eq!(set.encoding(), "listpack");
    set.add(&[b'x'; 65], 1.0, &limits);
    assert_eq!(set.encoding(), "skiplist");

    assert_eq!(ZSet::with_hint(129, 1, &limits).encoding(), "skiplist");
    assert_eq!(ZSet::with_hint(1, 65, &limits).encoding(), "skiplist");
    let mut set = ZSet::with_hint(1, 64, &limits);
    set.expect_members(128, &limits);
    assert_eq!(set.encoding(), "listpack");
    set.expect_members(129, &limits);
    assert_eq!(set.encoding(), "skiplist");
}

#[test]
fn a_built_set_is_a_listpack_if_it_fits() {
    let limits = ZSetLimits::default();
    for (count, len, encoding) in [(128, 1, "listpack"), (129, 1, "skiplist"), (2, 65, "skiplist")] {
        let mut builder = ZSetBuilder::new();
        for number in (0..count).rev() {
            let member = format!("{number:0len$}");
            assert!(builder.push(member.as_bytes(), f64::from(number)));
            assert!(!builder.push(member.as_bytes(), 5.0));
        }
        let set = builder.finish(&limits);
        set.check();
        assert_eq!((set.encoding(), set.len()), (encoding, usize::try_from(count).unwrap()));
    }
}

#[test]
fn scores_have_redis_bytes_in_a_listpack() {
    let limits = ZSetLimits::default();
    let mut set = ZSet::new();
    set.add(b"a", -0.0, &limits);
    set.add(b"b", 1.5, &limits);
    set.add(b"c", 3.0, &limits);
    set.add(b"d", 1e19, &limits);
    set.add(b"e", f64::INFINITY, &limits);
    let stored: Vec<Elem<'_>> = set.as_listpack().unwrap().pairs().map(|(_, score)| score).collect();
    assert_eq!(stored, [Elem::Int(0), Elem::Bytes(b"1.5"), Elem::Int(3), Elem::Bytes(b"1e+19"), Elem::Bytes(b"inf")]);
}

#[test]
fn hostile_listpacks_are_refused_or_sorted() {
    let limits = ZSetLimits::default();
    let pack = |elements: &[&[u8]]| {
        let mut pack = Listpack::new();
        elements.iter().for_each(|element| pack.append(element));
        pack
    };
    for bad in [&[&b"a"[..]][..], &[b"a", b"x"], &[b"a", b"nan"], &[b"a", b"1", b"a", b"2"]] {
        assert_eq!(ZSet::from_listpack(pack(bad), &limits).err(), Some(InvalidZSet));
    }
    let set = ZSet::from_listpack(pack(&[b"b", b"2", b"a", b"2", b"c", b"1"]), &limits).unwrap();
    set.check();
    assert_eq!(set.by_rank(0), Some((Elem::Bytes(b"c"), 1.0)));
    assert_eq!(set.rank(b"b"), Some((2, 2.0)));
}

#[test]
fn a_set_can_go_to_another_thread() {
    fn needs_send<T: Send + Sync>() {}
    needs_send::<ZSet>();
}
