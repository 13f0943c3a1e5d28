#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::HashSet;

use fastrand::Rng;
use proptest::prelude::*;

use super::*;

const NARROW: Limits = Limits { max_intset_entries: 10, max_listpack_entries: 6, max_listpack_value: 5 };
const NARROW_INTSET: Limits = Limits { max_intset_entries: 4, max_listpack_entries: 9, max_listpack_value: 5 };
const REDIS: Limits = Limits { max_intset_entries: 512, max_listpack_entries: 128, max_listpack_value: 64 };

type Model = HashSet<Vec<u8>>;

#[derive(Clone, Debug)]
enum Step {
    Add(Vec<u8>),
    AddElem(i64),
    Remove(Vec<u8>),
    Contains(Vec<u8>),
    Pop,
    PopMany(usize),
    Prepare(usize),
    Copy,
}

fn text() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => (-3_i64..16).prop_map(|number| number.to_string().into_bytes()),
        1 => prop_oneof![Just(99_999_i64), Just(-99_999), Just(i64::MAX), Just(i64::MIN)]
            .prop_map(|number| number.to_string().into_bytes()),
        1 => (0..12).prop_map(|number| format!("m{number}").into_bytes()),
        1 => prop_oneof![Just("01"), Just("+1"), Just("-0"), Just(""), Just("fives"), Just("sixsix")]
            .prop_map(|text| text.as_bytes().to_vec()),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        10 => text().prop_map(Step::Add),
        2 => (-3_i64..20).prop_map(Step::AddElem),
        3 => text().prop_map(Step::Remove),
        3 => text().prop_map(Step::Contains),
        1 => Just(Step::Pop),
        1 => (0..20_usize).prop_map(Step::PopMany),
        1 => (0..8_usize).prop_map(Step::Prepare),
        1 => Just(Step::Copy),
    ]
}

fn contents(set: &Set) -> Model {
    let all: Vec<_> = set.iter().map(|member| member.to_vec()).collect();
    let len = all.len();
    let model: Model = all.into_iter().collect();
    assert_eq!(model.len(), len, "each member once");
    model
}

/// The rules of 7.2, from what is known of a set before a new member comes.
fn encoding_after_add(before: Encoding, members: &Model, added: &[u8], limits: &Limits) -> Encoding {
    let is_integer = |text: &[u8]| {
        std::str::from_utf8(text).is_ok_and(|text| text.parse::<i64>().is_ok_and(|number| number.to_string() == text))
    };
    let longest = members.iter().map(Vec::len).max().unwrap_or(0);
    match before {
        Encoding::Intset if is_integer(added) => {
            if members.len() < limits.max_intset_entries {
                Encoding::Intset
            } else {
                Encoding::Hashtable
            }
        }
        Encoding::Intset
            if members.len() < limits.max_listpack_entries && longest.max(added.len()) <= limits.max_listpack_value =>
        {
            Encoding::Listpack
        }
        Encoding::Listpack
            if members.len() < limits.max_listpack_entries && added.len() <= limits.max_listpack_value =>
        {
            Encoding::Listpack
        }
        _ => Encoding::Hashtable,
    }
}

proptest! {
    #[test]
    fn a_set_is_like_the_model(
        steps in prop::collection::vec(step(), 1..100),
        limits in prop_oneof![Just(NARROW), Just(NARROW_INTSET), Just(REDIS)],
        seed in any::<u64>(),
    ) {
        let mut rng = Rng::with_seed(seed);
        let mut set = Set::for_member(b"1", 1, &limits);
        let mut model = Model::new();
        let mut encoding = Encoding::Intset;
        for step in steps {
            let step = if let Step::AddElem(value) = step {
                if !model.contains(value.to_string().as_bytes()) {
                    encoding = encoding_after_add(encoding, &model, value.to_string().as_bytes(), &limits);
                }
                let is_new = set.add_elem(Elem::Int(value), &limits);
                prop_assert_eq!(is_new, model.insert(value.to_string().into_bytes()));
                prop_assert!(set.contains_elem(Elem::Int(value)));
                Step::Contains(value.to_string().into_bytes())
            } else {
                step
            };
            match step {
                Step::AddElem(_) => {}
                Step::Add(member) => {
                    if !model.contains(&member) {
                        encoding = encoding_after_add(encoding, &model, &member, &limits);
                    }
                    prop_assert_eq!(set.add(&member, &limits), model.insert(member));
                }
                Step::Remove(member) => prop_assert_eq!(set.remove(&member), model.remove(&member)),
                Step::Contains(member) => {
                    prop_assert_eq!(set.contains(&member), model.contains(&member));
                    prop_assert_eq!(set.contains_elem(Elem::Bytes(&member)), model.contains(&member));
                }
                Step::Pop => {
                    let popped = set.pop(&mut rng, |member| member.to_vec());
                    prop_assert_eq!(popped.is_some(), !model.is_empty());
                    prop_assert!(popped.is_none_or(|member| model.remove(&member)));
                }
                Step::PopMany(count) => {
                    let before = model.len();
                    let stay = before.saturating_sub(count);
                    set.pop_many(&mut rng, count, &limits, |member| {
                        assert!(model.remove(&member.to_vec()));
                    });
                    prop_assert_eq!(model.len(), stay);
                    if stay * 5 <= count && encoding == Encoding::Hashtable {
                        encoding = set.encoding();
                    }
                }
                Step::Prepare(hint) => {
                    set.prepare(hint, &limits);
                    encoding = match encoding {
                        Encoding::Intset if hint > limits.max_intset_entries => Encoding::Hashtable,
                        Encoding::Listpack if hint > limits.max_listpack_entries => Encoding::Hashtable,
                        other => other,
                    };
                }
                Step::Copy => set = set.clone(),
            }
            set.check();
            prop_assert_eq!(set.encoding(), encoding);
            prop_assert_eq!(set.len(), model.len());
            prop_assert_eq!(set.is_empty(), model.is_empty());
            prop_assert_eq!(contents(&set), model.clone());
        }
    }

    #[test]
    fn random_members_are_members(
        len in 0_usize..60,
        count in 0_usize..90,
        kind in 0..3_u8,
        seed in any::<u64>(),
    ) {
        let set = numbers(len, kind);
        let mut rng = Rng::with_seed(seed);
        let mut distinct = Vec::new();
        let visited = set.random_distinct(&mut rng, count, |member| distinct.push(member.to_vec()));
        prop_assert_eq!(visited, count.min(len));
        prop_assert!(distinct.iter().all(|member| set.contains(member)));
        prop_assert_eq!(distinct.iter().collect::<HashSet<_>>().len(), visited);
        let mut repeated = Vec::new();
        set.random_with_repeats(&mut rng, count, |member| repeated.push(member.to_vec()));
        prop_assert_eq!(repeated.len(), if len == 0 { 0 } else { count });
        prop_assert!(repeated.iter().all(|member| set.contains(member)));
    }
}

fn numbers(len: usize, kind: u8) -> Set {
    let mut set = Set::intset();
    for number in 0..len {
        set.add(number.to_string().as_bytes(), &REDIS);
    }
    match kind {
        0 => {}
        1 => set.convert_to_listpack(),
        _ => set.convert_to_table(),
    }
    set
}

#[test]
fn the_first_member_and_the_number_to_come_choose_the_encoding() {
    let of = |member: &str, hint| Set::for_member(member.as_bytes(), hint, &REDIS).encoding().name();
    assert_eq!(of("1", 512), "intset");
    assert_eq!(of("1", 513), "hashtable");
    assert_eq!(of("a", 128), "listpack");
    assert_eq!(of("a", 129), "hashtable");
    let small_intset = Limits { max_intset_entries: 2, ..REDIS };
    assert_eq!(Set::for_member(b"1", 3, &small_intset).encoding(), Encoding::Listpack);
}

#[test]
fn an_intset_that_cannot_be_a_listpack_becomes_a_table() {
    let mut set = numbers(128, 0);
    assert!(set.add(b"a", &REDIS));
    assert_eq!(set.encoding(), Encoding::Hashtable);
    let mut set = numbers(127, 0);
    assert!(set.add(b"a", &REDIS));
    assert_eq!(set.encoding(), Encoding::Listpack);
    assert!(set.add(b"b", &REDIS));
    assert_eq!(set.encoding(), Encoding::Hashtable);
    assert_eq!(set.len(), 129);
}

#[test]
fn a_result_of_integers_can_become_an_intset() {
    let mut set = numbers(20, 2);
    set.convert_to_intset(&REDIS);
    assert_eq!(set.encoding(), Encoding::Intset);
    assert_eq!(contents(&set), contents(&numbers(20, 0)));
    let mut set = numbers(20, 1);
    set.convert_to_intset(&Limits { max_intset_entries: 19, ..REDIS });
    assert_eq!(set.encoding(), Encoding::Listpack);
}

/// Redis: SPOP of nearly all moves the rest to a new set.
#[test]
fn popping_nearly_all_of_a_table_leaves_a_listpack() {
    let mut rng = Rng::with_seed(5);
    let mut set = numbers(100, 2);
    set.pop_many(&mut rng, 90, &REDIS, |_| {});
    assert_eq!((set.len(), set.encoding()), (10, Encoding::Listpack));
    let mut set = numbers(100, 2);
    set.pop_many(&mut rng, 50, &REDIS, |_| {});
    assert_eq!((set.len(), set.encoding()), (50, Encoding::Hashtable));
    let mut set = numbers(100, 0);
    set.pop_many(&mut rng, 90, &REDIS, |_| {});
    assert_eq!((set.len(), set.encoding()), (10, Encoding::Intset));
}

#[test]
fn every_member_is_popped_equally_often() {
    let mut rng = Rng::with_seed(11);
    for kind in 0..3 {
        let mut counts = [0_i32; 12];
        for _ in 0..6_000 {
            let mut set = numbers(12, kind);
            let popped = set.pop(&mut rng, |member| member.as_int().unwrap()).unwrap();
            counts[usize::try_from(popped).unwrap()] += 1;
        }
        assert!(counts.iter().all(|count| (400..600).contains(count)), "{kind}: {counts:?}");
    }
}

#[test]
fn a_member_twice_is_refused() {
    let mut listpack = Listpack::new();
    listpack.append(b"a");
    listpack.append(b"b");
    assert_eq!(Set::from_listpack(listpack.clone()).unwrap().len(), 2);
    listpack.append(b"a");
    assert_eq!(Set::from_listpack(listpack).unwrap_err(), DuplicateMember);
}

#[test]
fn raw_words_of_all_kinds_come_back() {
    for kind in 0..3 {
        let raw = numbers(9, kind).into_raw();
        assert_eq!(raw.addr().get() & 0xc, 0, "bits 2 and 3 are free");
        // SAFETY: just given up.
        let set = unsafe { Set::from_raw(raw) };
        assert_eq!(contents(&set), contents(&numbers(9, 0)));
        assert_eq!(set.memory_bytes(0), set.memory_bytes(3));
        let mut seen = 0;
        assert_eq!(set.scan(0, 100, |_| seen += 1), 0);
        assert_eq!(seen, 9);
    }
}
